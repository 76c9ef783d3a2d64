//! The query of an export: `SELECT … FROM events WHERE …`, a subset of HogQL (EXP-15,
//! EXP-16).
//!
//! What belongs here: parsing the text to a typed tree, its normal form, the schema that
//! the API returns, and evaluating it for an event. What does not: reading events and
//! writing the values (`weir-export`).
//!
//! The text is never passed to a database: the result of parsing is [`Query`], whose
//! names come from closed lists. Depth and length are bounded, and every fault has a
//! position.

mod error;
mod evaluate;
mod fields;
mod functions;
mod lexer;
mod mentions;
mod parser;
mod path;
mod schema;
mod tree;
mod value;
mod write;

pub use error::{Position, QueryError};
pub use evaluate::{MAX_WORK, QueryInput, TEXT_MAX, WorkLimit, WorkLimitReached};
pub use fields::Field;
pub use functions::Function;
pub use parser::parse;
pub use schema::schema;
pub use tree::{Arithmetic, Column, Comparison, Expression, Literal, Query};
pub use value::{Kind, Value};

#[cfg(test)]
mod tests;
