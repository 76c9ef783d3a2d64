//! JSON as text: reading and changing it without building a tree, so that every number
//! keeps its digits and every other byte stays as sent.
//!
//! What belongs here: reading (`cursor`, `members`, `tokens`), escapes of strings
//! (`escape`), writing (`write`, `edits`) and the normal form (`canonical`). What does not:
//! the meaning of a text (an event, a property, a column), and values as a tree or as a
//! type of ours (`serde_json`).
//!
//! Which part fits:
//! - [`Members`] checks the text and holds all members of one object.
//! - [`Cursor`] walks text that was checked before, once, within [`Limits`]. It is the
//!   reader of capture: it copies nothing.
//! - [`Tokens`] finds strings and numbers at any depth, for changes of single ones.
//!
//! Functions other than [`Members::parse`] require text that a JSON parser has accepted.
//! For other text the result is unspecified, but there is no panic and no endless loop.

#![forbid(unsafe_code)]

mod canonical;
mod cursor;
mod edits;
mod escape;
mod members;
mod tokens;
mod write;

pub use canonical::canonical;
pub use cursor::{Cursor, Fault, Key, Limits};
pub use edits::{Edits, Part, repair, replace_escapes, replace_strings, rewrite};
pub use escape::{Escape, string, string_lossy};
pub use members::{Members, member, member_range, take_member, with_member, without_members};
pub use tokens::{Token, Tokens, Weight, is_deeper_than, weigh};
pub use write::{ObjectWriter, is_empty_list, push_string, quoted};

#[cfg(test)]
mod tests;
