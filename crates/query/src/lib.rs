//! Queries in subsets of HogQL: of exports, `SELECT … FROM events WHERE …` (EXP-15, EXP-16),
//! and of questions, which also have groups, an order and subqueries ([`parse_select`]), or
//! are sent in parts ([`parse_fragments`]).
//!
//! What belongs here: parsing the text to a typed tree, its normal form, the schema that
//! the API returns, and evaluating expressions for an event, a row or a group. What does not:
//! reading events and writing the values (`weir-export`), and grouping and sorting rows.
//!
//! The text is never passed to a database: the result of parsing is [`Query`] or [`Select`],
//! whose names come from closed lists. Depth and length are bounded, and every fault has a
//! position.

mod error;
mod evaluate;
mod export;
mod fields;
mod functions;
mod lexer;
mod mentions;
mod parser;
mod path;
mod regular_expression;
mod schema;
mod select;
mod tree;
mod value;
mod write;

pub use error::{Position, QueryError};
pub use evaluate::{MAX_WORK, QueryInput, TEXT_MAX, WorkLimit, WorkLimitReached};
pub use export::parse;
pub use fields::{Field, GROUP_TYPES};
pub use functions::Function;
pub use regular_expression::RegularExpression;
pub use schema::schema;
pub use select::{
    Aggregate, AggregateCall, FragmentError, Fragments, Item, LIMIT_DEFAULT, LIMIT_MAX, OFFSET_MAX,
    Order, Select, SelectedFragments, Source, Table, parse_fragments, parse_select,
};
pub use weir_model::validate::SQL_MAX;

pub use tree::{Arithmetic, Column, Comparison, Expression, Literal, Query, TimeUnit};
pub use value::{Kind, Value};

#[cfg(test)]
mod tests;
