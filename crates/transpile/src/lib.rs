//! Source text of plugins: from what an author writes to what the engine and browsers
//! run (PLG-23).
//!
//! What belongs here: types and JSX taken out, modules turned into functions, which
//! modules a text asks for, and where a fault is. What does
//! not: running anything, archives and manifests, which modules exist.
//!
//! A text is measured before it is parsed ([`SOURCE_MAX`], [`NESTING_MAX`],
//! [`CHAIN_MAX`]). The compiler itself has no limits of time and memory and calls itself
//! for whatever is nested, so texts of members are compiled in a child process that has
//! such limits and a stack of [`STACK`] bytes (`weir-sandbox`).

mod analysis;
mod compile;
mod depth;
mod error;
mod page;
mod position;
mod scan;
mod server;

pub use analysis::Import;
pub use depth::{FRONTEND_MAX, STACK};
pub use error::SourceError;
pub use page::{Page, frontend, site};
pub use scan::{CHAIN_MAX, NESTING_MAX};
pub use server::{Kind, Script, server};

/// The longest source that is read, in bytes.
pub const SOURCE_MAX: usize = 512 * 1024;

#[cfg(test)]
mod tests;
