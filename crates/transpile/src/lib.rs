//! Source text of plugins: from what an author writes to what the engine and browsers
//! run (plugins 6.1).
//!
//! What belongs here: types and JSX taken out, modules turned into functions, which
//! modules a text asks for, which names it exports, and where a fault is. What does
//! not: running anything, archives and manifests, which modules exist.
//!
//! Every text has a result in bounded time and memory: it is measured before it is
//! parsed ([`SOURCE_MAX`], [`NESTING_MAX`], [`CHAIN_MAX`]), and it is parsed on a thread
//! whose stack is large enough for these bounds.

mod analysis;
mod compile;
mod depth;
mod error;
mod page;
mod position;
mod scan;
mod server;

pub use analysis::{Export, Import};
pub use depth::FRONTEND_MAX;
pub use error::SourceError;
pub use page::{Page, frontend, site};
pub use scan::{CHAIN_MAX, NESTING_MAX};
pub use server::{Kind, Script, exports, server};

/// The longest source that is read, in bytes.
pub const SOURCE_MAX: usize = 512 * 1024;

#[cfg(test)]
mod tests;
