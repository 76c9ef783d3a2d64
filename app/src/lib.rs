//! The admin web app: pages, components, server functions.
//!
//! What belongs here: the user interface, and the thin server functions that call the
//! services. What does not: business rules (`weir-service`), and sockets and routes
//! (`weir-server`, which mounts this crate).
//!
//! The crate is compiled twice, see the features in `Cargo.toml`. The server renders
//! complete pages, so every page and form works without scripts. The browser hydrates the
//! same pages: links change the page without loading a document, and forms call server
//! functions.

#![expect(
    unreachable_pub,
    reason = "the component macro writes `pub` for components of any visibility"
)]

mod app;
mod areas;
#[cfg(not(feature = "ssr"))]
mod behaviours;
#[cfg(not(feature = "ssr"))]
mod client;
#[cfg(feature = "ssr")]
pub mod context;
mod days;
pub mod destination_test;
#[cfg(feature = "ssr")]
mod device;
mod edits;
pub mod error;
#[cfg(feature = "ssr")]
pub mod filters;
pub mod form_names;
mod frame;
#[cfg(feature = "ssr")]
pub mod help;
mod json;
mod key_words;
mod live;
pub mod local_path;
pub mod notice;
mod page_facts;
mod pages;
mod pattern;
mod plugin_settings;
pub mod process_facts;
#[cfg(feature = "ssr")]
mod qr;
mod questions;
pub mod row_questions;
mod server_fns;
#[cfg(feature = "ssr")]
pub mod shell;
pub mod theme;
mod ui;

pub use app::App;

/// Starts the app in the document of the server, when the code of its page is loaded. If that
/// fails, the links and forms of the document still work without scripts.
#[cfg(feature = "hydrate")]
pub fn hydrate() {
    wasm_bindgen_futures::spawn_local(async {
        let path = leptos::prelude::location().pathname().unwrap_or_default();
        if !areas::preload(&path).await {
            return;
        }
        if !client::navigation::shows_document_of_address() {
            // The user went back or forward meanwhile.
            let _ = leptos::prelude::location().reload();
            return;
        }
        start();
        leptos::mount::hydrate_body(App);
    });
}

/// Starts the app in an empty document.
#[cfg(feature = "csr")]
pub fn mount() {
    start();
    leptos::mount::mount_to_body(App);
}

/// Starts what the app does in the browser beside its components.
#[cfg(not(feature = "ssr"))]
fn start() {
    behaviours::start();
    client::navigation::prepare();
    client::paint::start();
    client::post::start();
    client::redraw::start();
}
