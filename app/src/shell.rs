//! The HTML document around the app: head, theme, and the script that hydrates the page.

use leptos::nonce::use_nonce;
use leptos::prelude::*;
use leptos_meta::MetaTags;

use crate::app::App;
use crate::areas::area_of;
use crate::context::{WebContext, visit};
use crate::theme::Theme;

/// Pages with live data. Without scripts they reload automatically.
const RELOADED: [&str; 2] = ["start", "events"];
/// Query parameters with which the page does not reload: the user reads a row or past
/// events, or has paused.
const STILL: [&str; 4] = ["selected=", "before=", "to=", "paused="];

/// A complete HTML document.
pub fn shell() -> impl IntoView {
    let visit = visit();
    let theme = visit.as_ref().map_or(Theme::System, |visit| visit.theme);
    let preferences = visit.map(|visit| visit.preferences).unwrap_or_default();
    let zone = preferences.zone.name().map(str::to_owned);
    let rows = preferences.rows.word();
    let no_keys = (!preferences.shortcuts).then_some("off");
    let uri = use_context::<http::request::Parts>().map(|parts| parts.uri).unwrap_or_default();
    view! {
        <!DOCTYPE html>
        <html lang="en" data-theme=theme.word() data-zone=zone data-rows=rows data-shortcuts=no_keys>
            <head>
                <meta charset="utf-8" />
                <meta name="viewport" content="width=device-width, initial-scale=1" />
                <meta name="color-scheme" content=color_scheme(theme) />
                <link rel="icon" href="/mark.svg" type="image/svg+xml" />
                {files(uri.path())}
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
    let of_project = uri.path().strip_prefix("/projects/").and_then(|rest| rest.split_once('/'));
    let shows_arrivals = of_project.is_some_and(|(_, page)| RELOADED.contains(&page));
    let is_still = |pair: &str| {
        // Forms send empty fields too.
        STILL.iter().any(|name| pair.strip_prefix(name).is_some_and(|value| !value.is_empty()))
    };
    shows_arrivals && !uri.query().unwrap_or_default().split('&').any(is_still)
}

fn color_scheme(theme: Theme) -> &'static str {
    match theme {
        Theme::System => "light dark",
        Theme::Light => "light",
        Theme::Dark => "dark",
    }
}

/// Links to the files. The style sheet is first, and the script does not block the page.
/// No wasm file is preloaded, because without scripts it would be loaded for nothing: the
/// start script preloads what it finds in `data-code`.
fn files(path: &str) -> impl IntoView {
    let assets = use_context::<WebContext>().map(|web| web.assets).unwrap_or_default();
    let nonce = use_nonce();
    let code = area_of(path).and_then(|area| assets.area_code.get(area.name));
    let code = code.map(|files| files.join(" "));
    let scripts = assets.scripts.into_iter().map(|href| {
        view! { <link rel="modulepreload" href=href nonce=nonce.clone() /> }
    });
    view! {
        {assets.css.map(|href| view! { <link rel="stylesheet" href=href /> })}
        {scripts.collect_view()}
        {assets.start_script.map(|src| view! { <script type="module" src=src data-code=code nonce=nonce.clone()></script> })}
    }
}

#[cfg(test)]
mod tests {
    use super::is_reloaded;

    #[test]
    fn pages_with_arrivals_reload_unless_a_row_is_open() {
        for (address, expected) in [
            ("/projects/1/start", true),
            ("/projects/1/events?event=a&to=", true),
            ("/projects/1/events?to=2026-08-21T14:05", false),
            ("/projects/1/events?paused=1", false),
            ("/projects/1/events?event=a&selected=b", false),
            ("/projects/1/settings", false),
            ("/projects/1/health/events", false),
            ("/start", false),
        ] {
            assert_eq!(is_reloaded(&address.parse().unwrap()), expected, "{address}");
        }
    }
}
