//! The admin web app: pages, components, server functions.
//!
//! What belongs here: the user interface, and the thin server functions that call the
//! services. What does not: business rules (`weir-service`), and sockets and routes
//! (`weir-server`, which mounts this crate).
//!
//! The crate is compiled twice, see the features in `Cargo.toml`. The server build has
//! everything and renders complete pages; a link loads the next page, and every change is
//! a form. The browser build has only interactive parts: the *islands* in `live`, which
//! the server draws and the browser keeps up to date, and the small `behaviours`, which
//! make forms and menus more comfortable. Every page and every form also works without
//! scripts.

#![expect(
    unreachable_pub,
    reason = "the component macro writes `pub` for components of any visibility"
)]

#[cfg(feature = "ssr")]
mod app;
#[cfg(any(feature = "hydrate", feature = "csr"))]
mod behaviours;
#[cfg(feature = "ssr")]
pub mod context;
#[cfg(feature = "ssr")]
mod device;
#[cfg(feature = "ssr")]
mod edits;
pub mod error;
#[cfg(feature = "ssr")]
pub mod facts;
#[cfg(feature = "ssr")]
mod frame;
#[cfg(feature = "csr")]
mod gallery;
#[cfg(feature = "ssr")]
pub mod help;
#[cfg(any(feature = "ssr", feature = "hydrate", feature = "csr"))]
mod key_words;
mod live;
pub mod local_path;
#[cfg(feature = "ssr")]
pub mod notice;
#[cfg(feature = "ssr")]
mod pages;
#[cfg(feature = "ssr")]
mod plugin_settings;
#[cfg(feature = "ssr")]
mod qr;
mod server_fns;
#[cfg(feature = "ssr")]
pub mod shell;
#[cfg(feature = "ssr")]
pub mod theme;
mod ui;

#[cfg(any(feature = "hydrate", feature = "csr"))]
pub use behaviours::start as start_behaviours;
#[cfg(feature = "csr")]
pub use gallery::Gallery;
