//! The part of a form that a passkey fills in.
//!
//! `public/passkeys.js` acts on it: it holds the button of the form back, asks the server for
//! a challenge and the browser for the answer, and sends the form then. The script is a file
//! of its own, because the entry has no room for what few pages need.

use leptos::prelude::*;

/// The field for the answer, and a text that says how it went.
#[component]
pub(crate) fn PasskeyAnswer(
    /// Path of the server function that makes the challenge.
    begin: &'static str,
    /// Whether a passkey is made; otherwise one is used.
    #[prop(optional)]
    makes: bool,
) -> impl IntoView {
    view! {
        <input type="hidden" name="answer" data-passkey=begin data-passkey-makes=makes.then_some("") />
        <p class="hint needs-scripts" role="status" data-passkey-status=""></p>
        <p class="hint needs-no-scripts">"Passkeys need scripts. Allow them for this page, or use another way."</p>
        <script type="module" src="/passkeys.js" nonce=nonce()></script>
    }
}

/// What allows the script in a page of the server.
#[cfg(feature = "ssr")]
fn nonce() -> Option<String> {
    leptos::nonce::use_nonce().map(|nonce| nonce.to_string())
}

/// A script that the app adds to a page needs nothing.
#[cfg(not(feature = "ssr"))]
fn nonce() -> Option<String> {
    None
}
