//! The HTML document around the app: head, theme, and the script that hydrates the page.

use leptos::nonce::use_nonce;
use leptos::prelude::*;
use leptos_meta::MetaTags;

use crate::app::App;
use crate::context::{WebContext, visit};
use crate::theme::Theme;

/// Pages with live data. Without scripts they reload automatically.
const RELOADED: [&str; 2] = ["/start", "/live"];
/// Query parameter of an open row. The page does not reload while the user reads it.
const ROW: &str = "row=";

/// A complete HTML document.
pub fn shell() -> impl IntoView {
    let visit = visit();
    let theme = visit.as_ref().map_or(Theme::System, |visit| visit.theme);
    let preferences = visit.map(|visit| visit.preferences).unwrap_or_default();
    let zone = preferences.zone.name().map(str::to_owned);
    let no_keys = (!preferences.shortcuts).then_some("off");
    let uri = use_context::<http::request::Parts>().map(|parts| parts.uri).unwrap_or_default();
    view! {
        <!DOCTYPE html>
        <html lang="en" data-theme=theme.word() data-zone=zone data-shortcuts=no_keys>
            <head>
                <meta charset="utf-8" />
                <meta name="viewport" content="width=device-width, initial-scale=1" />
                <meta name="color-scheme" content=color_scheme(theme) />
                <link rel="icon" href="/mark.svg" type="image/svg+xml" />
                {files()}
                {is_reloaded(&uri).then(|| view! {
                    <noscript><meta http-equiv="refresh" content="5" /></noscript>
                })}
                <MetaTags />
            </head>
            <body>
                <App />
            </body>
        </html>
    }
}

fn is_reloaded(uri: &http::Uri) -> bool {
    let shows_arrivals = uri.path().starts_with("/projects/")
        && RELOADED.iter().any(|end| uri.path().ends_with(end));
    let row = uri.query().is_some_and(|query| query.split('&').any(|pair| pair.starts_with(ROW)));
    shows_arrivals && !row
}

fn color_scheme(theme: Theme) -> &'static str {
    match theme {
        Theme::System => "light dark",
        Theme::Light => "light",
        Theme::Dark => "dark",
    }
}

/// Links to the files. The style sheet is first, and the script does not block the page.
/// The wasm file is not preloaded, because without scripts it would be loaded for
/// nothing.
fn files() -> impl IntoView {
    let assets = use_context::<WebContext>().map(|web| web.assets).unwrap_or_default();
    let nonce = use_nonce();
    let scripts = assets.scripts.into_iter().map(|href| {
        view! { <link rel="modulepreload" href=href nonce=nonce.clone() /> }
    });
    view! {
        {assets.css.map(|href| view! { <link rel="stylesheet" href=href /> })}
        {scripts.collect_view()}
        {assets.start_script.map(|src| view! { <script type="module" src=src nonce=nonce.clone()></script> })}
    }
}

#[cfg(test)]
mod tests {
    use super::is_reloaded;

    #[test]
    fn pages_with_arrivals_reload_unless_a_row_is_open() {
        for (address, expected) in [
            ("/projects/1/start", true),
            ("/projects/1/live?q=a", true),
            ("/projects/1/live?q=a&row=b", false),
            ("/projects/1/settings", false),
            ("/start", false),
        ] {
            assert_eq!(is_reloaded(&address.parse().unwrap()), expected, "{address}");
        }
    }
}
