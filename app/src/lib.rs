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
pub mod destination_test;
#[cfg(feature = "ssr")]
mod device;
mod edits;
pub mod error;
pub mod facts;
pub mod form_names;
mod frame;
#[cfg(feature = "ssr")]
pub mod help;
mod key_words;
mod live;
pub mod local_path;
pub mod notice;
mod page_facts;
mod pages;
mod plugin_settings;
#[cfg(feature = "ssr")]
mod qr;
mod server_fns;
#[cfg(feature = "ssr")]
pub mod shell;
pub mod theme;
mod ui;

pub use app::App;

/// Starts what the app does in the browser beside its components. Call it once, before the
/// app is hydrated.
#[cfg(not(feature = "ssr"))]
pub fn start() {
    behaviours::start();
    client::navigation::prepare();
    client::post::start();
}
