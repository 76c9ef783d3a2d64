//! The tree of a question in SQL.
//!
//! Rows of FROM go through the filter. If there are groups or aggregates, expressions of the
//! result, HAVING and ORDER BY are about a group: they have `Key` and `Aggregate`, and no
//! field or column outside of the expressions that these are for. Otherwise they are about a
//! row.

use super::aggregates::AggregateCall;
use super::tables::Table;
use crate::tree::Expression;

/// A SELECT.
#[derive(Debug, Clone, PartialEq)]
pub struct Select {
    /// The columns of the result, in order; their names differ.
    pub items: Vec<Item>,
    /// Whether equal rows of the result are one.
    pub is_distinct: bool,
    /// What is read.
    pub source: Source,
    /// The condition for rows; `None`: all rows.
    pub filter: Option<Expression>,
    /// Whether the filters that come beside the query apply too: `{filters}`.
    pub takes_filters: bool,
    /// The expressions of GROUP BY, for rows.
    pub groups: Vec<Expression>,
    /// The aggregates, each once, in the order of the text.
    pub aggregates: Vec<AggregateCall>,
    /// The subqueries of IN, each once, in the order of the text. Each has one column.
    pub sets: Vec<Select>,
    /// The condition for groups.
    pub having: Option<Expression>,
    /// The order of the result.
    pub order: Vec<Order>,
    /// Maximum rows; `None`, in a subquery alone: all rows.
    pub limit: Option<u32>,
    /// Rows that are skipped.
    pub offset: u32,
}

impl Select {
    /// Whether a row of the result is a group of rows: one, with aggregates but no GROUP BY.
    pub fn is_grouped(&self) -> bool {
        !self.groups.is_empty() || !self.aggregates.is_empty()
    }

    /// The expressions of the result, of HAVING and of ORDER BY.
    pub(super) fn outputs(&self) -> impl Iterator<Item = &Expression> {
        let items = self.items.iter().map(|item| &item.expression);
        items.chain(&self.having).chain(self.order.iter().map(|order| &order.expression))
    }

    /// The depth with all that its expressions refer to.
    pub(super) fn height(&self) -> usize {
        let inputs = self.filter.iter().chain(&self.groups).chain(self.arguments());
        let input = inputs.map(Expression::height).max().unwrap_or(0);
        let output = self.outputs().map(Expression::height).max().unwrap_or(0);
        let set = self.sets.iter().map(Self::height).max().unwrap_or(0);
        let source = match &self.source {
            Source::Table(_) => 0,
            Source::Select(inner) => inner.height(),
        };
        (input + output + set).max(source)
    }

    /// The arguments and conditions of the aggregates.
    fn arguments(&self) -> impl Iterator<Item = &Expression> {
        self.aggregates.iter().flat_map(|call| call.arguments.iter().chain(&call.condition))
    }
}

/// A column of the result.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// The expression of its value.
    pub expression: Expression,
    /// Its name: the alias, or the text of the expression.
    pub name: String,
}

/// What a SELECT reads.
#[derive(Debug, Clone, PartialEq)]
pub enum Source {
    /// A table.
    Table(Table),
    /// The result of another SELECT.
    Select(Box<Select>),
}

/// An expression of ORDER BY. Null is last in both directions.
#[derive(Debug, Clone, PartialEq)]
pub struct Order {
    /// The expression.
    pub expression: Expression,
    /// Whether large values are first.
    pub is_descending: bool,
}
