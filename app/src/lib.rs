//! The admin web app: pages, components, server functions.
//!
//! What belongs here: what a person sees, and the thin functions behind it that
//! call the services. What does not: rules (`weir-service`), sockets and routes
//! (`weir-server`, which mounts this).
//!
//! Compiled twice, see the features in `Cargo.toml`. The server has all of it and
//! renders every page completely; moving on is loading the next page, and every
//! change is a form. The browser has only what moves: the *islands* in `live`,
//! which it takes over where the server drew them, and the small `behaviours`
//! that make forms and menus more comfortable. Without scripts every page and
//! every form works the same way.

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
