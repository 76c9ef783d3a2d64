//! The query of an export: `SELECT … FROM events WHERE …`, a part of HogQL
//! (EXP-15, EXP-16).
//!
//! What belongs here: reading the text into a typed tree, its normal form, the
//! schema that the API shows, and working it out over an event. What does not:
//! where events come from, what is done with the values.
//!
//! The text never becomes text of a database: what leaves this module is
//! [`Query`], whose names come from closed lists. Depth and length are bounded,
//! and every fault has its position.

mod error;
mod evaluate;
mod fields;
mod functions;
pub mod json;
mod lexer;
mod mentions;
mod parser;
mod schema;
mod tree;
mod value;
mod write;

pub use error::{Position, QueryError};
pub use evaluate::{Budget, Row, TEXT_MAX, WORK_MAX};
pub use fields::Field;
pub use functions::Function;
pub use parser::parse;
pub use schema::schema;
pub use tree::{Arithmetic, Column, Comparison, Expression, Literal, Query};
pub use value::{Kind, Value};

#[cfg(test)]
mod tests;
