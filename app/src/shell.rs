//! The document around the app, on the server only: head, theme, and the
//! script that brings the page to life.

use leptos::nonce::use_nonce;
use leptos::prelude::*;
use leptos_meta::MetaTags;

use crate::app::App;
use crate::context::{WebContext, visit};
use crate::theme::Theme;

/// Pages that show what arrives; without scripts they load themselves anew.
const RELOADED: [&str; 2] = ["/start", "/live"];

/// A complete page.
pub fn shell() -> impl IntoView {
    let theme = visit().map_or(Theme::System, |visit| visit.theme);
    let path = use_context::<http::request::Parts>()
        .map(|parts| parts.uri.path().to_owned())
        .unwrap_or_default();
    let reloaded = path.starts_with("/projects/") && RELOADED.iter().any(|end| path.ends_with(end));
    view! {
        <!DOCTYPE html>
        <html lang="en" data-theme=theme.word()>
            <head>
                <meta charset="utf-8" />
                <meta name="viewport" content="width=device-width, initial-scale=1" />
                <meta name="color-scheme" content=color_scheme(theme) />
                <link rel="icon" href="/mark.svg" type="image/svg+xml" />
                {files()}
                {reloaded.then(|| view! {
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

fn color_scheme(theme: Theme) -> &'static str {
    match theme {
        Theme::System => "light dark",
        Theme::Light => "light",
        Theme::Dark => "dark",
    }
}

/// The style sheet first; the program does not hold up the page. The wasm file
/// is not preloaded: without scripts it would be loaded for nothing.
fn files() -> impl IntoView {
    let assets = use_context::<WebContext>().map(|web| web.assets).unwrap_or_default();
    let nonce = use_nonce();
    let preload = |address: Option<String>| {
        let nonce = nonce.clone();
        address.map(|href| view! { <link rel="modulepreload" href=href nonce=nonce /> })
    };
    view! {
        {assets.css.map(|href| view! { <link rel="stylesheet" href=href /> })}
        {preload(assets.glue)}
        {assets.boot.map(|src| view! { <script type="module" src=src nonce=nonce.clone()></script> })}
    }
}
