//! The query of an export: `SELECT … FROM events WHERE …`, a part of HogQL
//! (batch-exports 7).
//!
//! What belongs here: reading the text into a typed tree, its normal form, and
//! the schema that the API shows. What does not: evaluating it.
//!
//! The text never becomes text of a database: what leaves this module is
//! [`Query`], whose names come from closed lists. Depth and length are bounded,
//! and every fault has its position.

mod error;
mod fields;
mod functions;
mod lexer;
mod parser;
mod schema;
mod tree;
mod write;

pub use error::{Position, QueryError};
pub use fields::Field;
pub use functions::Function;
pub use parser::parse;
pub use schema::schema;
pub use tree::{Arithmetic, Column, Comparison, Expression, Literal, Query};

#[cfg(test)]
mod tests;
