//! The admin web app: pages, components, server functions.
//!
//! What belongs here: what a person sees, and the thin functions behind it that
//! call the services. What does not: rules (`weir-service`), sockets and routes
//! (`weir-server`, which mounts this).
//!
//! Compiled twice, see the features in `Cargo.toml`: the server renders every
//! page completely, the browser takes it over. Without scripts every page and
//! every form works the same way, because forms are real forms.

#![expect(
    unreachable_pub,
    reason = "the component macro writes `pub` for components of any visibility"
)]

mod app;
#[cfg(feature = "ssr")]
pub mod context;
pub mod error;
mod frame;
mod live;
pub mod local_path;
mod pages;
mod server_fns;
#[cfg(feature = "ssr")]
pub mod shell;
pub mod theme;
mod ui;

pub use app::App;
