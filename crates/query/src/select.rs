//! Questions in SQL: `SELECT … FROM events|persons|groups|sessions`, a subset of HogQL
//! (QRY-40 to QRY-51).
//!
//! What belongs here: the clauses of such a query, what its names mean, its types, and its
//! normal form. What does not: expressions (`parser`, `tree`, `evaluate`), which exports
//! have too, and reading and grouping rows.
//!
//! All names come from closed lists, so no query reaches a file, the network or another
//! table. A name is resolved while it is parsed: FROM is parsed before the columns, and
//! an alias becomes the expression that it names.

mod aggregates;
mod clauses;
mod fragments;
mod groups;
mod names;
mod pieces;
mod tables;
mod tree;
mod types;
mod write;

use std::collections::BTreeMap;

use serde_json::Value as Json;
use weir_model::validate::SQL_MAX;

use super::error::QueryError;
use super::parser::Parser;
use names::Scope;

pub use aggregates::{Aggregate, AggregateCall};
pub use fragments::{FragmentError, Fragments, SelectedFragments, parse_fragments};
pub use tables::Table;
pub use tree::{Item, Order, Select, Source};

/// Rows of the result if the query has no LIMIT.
pub const LIMIT_DEFAULT: u32 = 100;
/// Maximum rows of a result.
pub const LIMIT_MAX: u32 = 50_000;
/// Maximum rows that are skipped.
pub const OFFSET_MAX: u32 = 1_000_000;
/// Maximum subqueries.
const SUBQUERIES: usize = 8;
/// Maximum depth of subqueries.
const SUBQUERY_DEPTH: usize = 3;
/// Maximum expressions of GROUP BY, and of ORDER BY.
const KEYS: usize = 16;
/// Maximum aggregates of one SELECT.
const AGGREGATES: usize = 64;
/// Maximum constants in lists after IN, together.
const CONSTANTS: usize = 10_000;
/// Maximum regular expressions: compiling a large one takes some milliseconds.
const REGULAR_EXPRESSIONS: usize = 8;
/// Maximum depth of a SELECT with its aggregates, groups and subqueries, so that its
/// normal form can be parsed again.
const HEIGHT: usize = 64;

/// Words that can be names only in quotes, beside those of exports.
const KEYWORDS: [&str; 27] = [
    "any",
    "anti",
    "asc",
    "asof",
    "by",
    "desc",
    "else",
    "end",
    "except",
    "final",
    "format",
    "full",
    "global",
    "intersect",
    "interval",
    "into",
    "natural",
    "nulls",
    "over",
    "qualify",
    "semi",
    "then",
    "ties",
    "using",
    "when",
    "window",
    "outer",
];

/// Parses a question in SQL. `values` replace `{name}`: texts, numbers, true, false and null.
/// `{filters}` is a condition of WHERE that the caller knows ([`Select::takes_filters`]).
///
/// # Errors
/// The first fault with its position: first of the tokens, then of FROM, then of the rest.
pub fn parse_select(text: &str, values: &BTreeMap<String, Json>) -> Result<Select, QueryError> {
    let mut parser = Parser::new(text, SQL_MAX)?;
    parser.select = Some(Selecting::new(values));
    parser.question()
}

/// The state of parsing a question.
pub(super) struct Selecting<'a> {
    values: &'a BTreeMap<String, Json>,
    /// The SELECTs that are being parsed; the innermost one is the last.
    scopes: Vec<Scope>,
    subqueries: usize,
    /// The subqueries around the one that is being parsed, and it.
    nesting: usize,
    constants: usize,
    regular_expressions: usize,
}

impl<'a> Selecting<'a> {
    fn new(values: &'a BTreeMap<String, Json>) -> Self {
        Self {
            values,
            scopes: Vec::new(),
            subqueries: 0,
            nesting: 0,
            constants: 0,
            regular_expressions: 0,
        }
    }
}

/// Whether a word can be a name only in quotes.
pub(super) fn is_keyword(word: &str) -> bool {
    super::write::is_keyword(word)
        || KEYWORDS.iter().any(|keyword| keyword.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests;
