//! The refusal of a change because the browser does not prove that it comes from a page
//! of this instance (`cross_site`).
//!
//! Browsers without `Sec-Fetch-Site`, such as Safari before 16.4, send the origin `null`
//! from pages with a no-referrer policy, such as those of links from mails. So users
//! without bad intent see this page too.

use axum::response::{Html, IntoResponse, Response};
use http::{HeaderMap, StatusCode, header};

use super::{style_sheet, visit};

/// The text for a script.
const TEXT: &str = "This request came from another site. Open the page again and retry.\n";

/// The refusal: a page for a form, one line for a script.
pub(super) fn answer(headers: &HeaderMap) -> Response {
    if !visit::wants_page(headers) {
        return (StatusCode::FORBIDDEN, TEXT).into_response();
    }
    let (why, what_to_do) = match says_nothing(headers) {
        true => (
            "Your browser does not say which page sent the form, so Weir cannot tell it from \
             one of another site.",
            "Open the page again in a current version of Firefox, Chrome, Edge or Safari (16.4 or \
             later). If yours is current, an extension or a proxy takes this away: switch it off \
             for Weir. A link from a mail works on until it is used.",
        ),
        false => (
            "The form came from another site, or from another address than the one that Weir is \
             known by.",
            "Open Weir at its own address, the one that its mails and its public_url have, and \
             send the form from there.",
        ),
    };
    (StatusCode::FORBIDDEN, Html(page(why, what_to_do))).into_response()
}

/// Whether the browser sends nothing about the page.
fn says_nothing(headers: &HeaderMap) -> bool {
    let origin = headers.get(header::ORIGIN);
    !headers.contains_key("sec-fetch-site") && origin.is_none_or(|origin| origin == "null")
}

/// The page. It contains only constant texts.
fn page(why: &str, what_to_do: &str) -> String {
    let sheet =
        style_sheet().map(|address| format!("<link rel=\"stylesheet\" href=\"{address}\">"));
    let sheet = sheet.unwrap_or_default();
    format!(
        "<!DOCTYPE html><html lang=\"en\" data-theme=\"system\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\">{sheet}\
         <title>Nothing was changed - Weir</title></head>\
         <body><main id=\"main\" class=\"entrance-form\"><h1>Nothing was changed</h1>\
         <p>{why}</p><p>{what_to_do}</p><p><a class=\"button\" href=\"/\">Open Weir</a></p>\
         </main></body></html>"
    )
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::says_nothing;

    #[test]
    fn what_a_browser_says() {
        for (headers, expected) in [
            (&[][..], true),
            (&[("origin", "null")][..], true),
            (&[("origin", "https://evil.example")][..], false),
            (&[("origin", "null"), ("sec-fetch-site", "cross-site")][..], false),
        ] {
            let map: HeaderMap = headers
                .iter()
                .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
                .collect();
            assert_eq!(says_nothing(&map), expected, "{headers:?}");
        }
    }
}
