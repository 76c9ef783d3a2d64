//! Source text of plugins: from the text of an author to code for the engine and for
//! browsers (PLG-23).
//!
//! What belongs here: removing types and JSX, converting modules to functions, finding
//! imports, and positions of faults. What does not: running code (`weir-sandbox`),
//! archives (`weir-plugins`) and manifests (`weir-model`), and which modules exist.
//!
//! A text is measured before it is parsed ([`SOURCE_MAX`], [`NESTING_MAX`],
//! [`CHAIN_MAX`]). The compiler has no limits of time and memory and recurses for nested
//! text, so texts of members are compiled in a child process with such limits and a stack
//! of [`STACK`] bytes (`weir-sandbox`).

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

/// Maximum bytes of a source.
pub const SOURCE_MAX: usize = 512 * 1024;

#[cfg(test)]
mod tests;
