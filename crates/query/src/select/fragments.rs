//! Questions about events whose expressions are sent one by one: columns, conditions and an
//! order (QRY-52).
//!
//! What belongs here: parsing each text for itself, and making one SELECT of them. What does
//! not: the expressions, which are those of a question in SQL.

use std::collections::BTreeMap;

use super::aggregates::has_aggregate;
use super::clauses::Clause;
use super::names::Scope;
use super::tables::Table;
use super::tree::{Item, Order, Select, Source};
use super::write::{default_name, name};
use super::{HEIGHT, KEYS, Selecting};
use crate::error::QueryError;
use crate::lexer::TokenKind;
use crate::parser::{ALIAS, COLUMNS, Parser, joined, shown};
use crate::tree::Expression;

/// Maximum characters of one text.
const TEXT_MAX: usize = 1_000;

/// The texts of a question about events.
#[derive(Debug, Clone, Copy)]
pub struct Fragments<'a> {
    /// Columns: expressions, each possibly with an alias.
    pub select: &'a [String],
    /// Conditions that all must be true.
    pub conditions: &'a [String],
    /// The order: expressions, each possibly with ASC or DESC.
    pub order: &'a [String],
    /// Maximum rows.
    pub limit: u32,
    /// Rows that are skipped.
    pub offset: u32,
}

/// One SELECT for all texts.
#[derive(Debug, Clone, PartialEq)]
pub struct SelectedFragments {
    /// The SELECT. With an aggregate, the other columns are its groups.
    pub select: Select,
    /// For each text of a column, the place of its item: equal columns share one.
    pub places: Vec<usize>,
}

/// A fault in one of the texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FragmentError {
    /// In a column, by its place.
    Select(usize, QueryError),
    /// In a condition, by its place.
    Condition(usize, QueryError),
    /// In a part of the order, by its place.
    Order(usize, QueryError),
}

/// Parses the texts of a question about events.
///
/// # Errors
/// The first fault with the text that it is in, and its position there.
pub fn parse_fragments(fragments: &Fragments<'_>) -> Result<SelectedFragments, FragmentError> {
    let no_values = BTreeMap::new();
    let mut selecting = Selecting::new(&no_values);
    selecting.scopes.push(Scope::new(Source::Table(Table::Events), None));
    let mut state = State { selecting: Some(selecting), nodes: 0 };
    let (mut items, mut places, mut owners) = (Vec::new(), Vec::new(), Vec::new());
    for (at, text) in fragments.select.iter().enumerate() {
        let item = state.parse(text, Parser::fragment_item);
        let item = item.map_err(|fault| FragmentError::Select(at, fault))?;
        let known = items.iter().position(|other: &Item| *other == item);
        if known.is_none() && items.iter().any(|other| other.name == item.name) {
            let detail = format!("Two columns are named `{}`", shown(&item.name));
            return Err(FragmentError::Select(at, at_start(detail)));
        }
        places.push(known.unwrap_or(items.len()));
        if known.is_none() {
            items.push(item);
            owners.push(at);
        }
        if items.len() > COLUMNS {
            let detail = format!("There are more than {COLUMNS} columns");
            return Err(FragmentError::Select(at, at_start(detail)));
        }
    }
    let mut conditions = Vec::new();
    for (at, text) in fragments.conditions.iter().enumerate() {
        let condition = state.parse(text, Parser::fragment_condition);
        conditions.push(condition.map_err(|fault| FragmentError::Condition(at, fault))?);
    }
    state.name_columns(&items);
    let mut order = Vec::new();
    for (at, text) in fragments.order.iter().enumerate() {
        let fault = |fault| FragmentError::Order(at, fault);
        order.push(state.parse(text, Parser::fragment_order).map_err(fault)?);
        if order.len() > KEYS {
            return Err(fault(at_start(format!("The order has more than {KEYS} expressions"))));
        }
    }
    let (aggregates, sets) = state.lists();
    let filter = (!conditions.is_empty()).then(|| joined(conditions, Expression::And));
    let mut groups: Vec<Expression> = Vec::new();
    if !aggregates.is_empty() {
        let keys = items.iter().map(|item| &item.expression).filter(|key| !has_aggregate(key));
        keys.for_each(|key| {
            if !groups.contains(key) {
                groups.push(key.clone());
            }
        });
    }
    let mut select = Select {
        items,
        is_distinct: false,
        source: Source::Table(Table::Events),
        filter,
        takes_filters: false,
        groups,
        aggregates,
        sets,
        having: None,
        order,
        limit: Some(fragments.limit),
        offset: fragments.offset,
    };
    if select.groups.len() > KEYS {
        let detail = format!("Beside an aggregate, there are at most {KEYS} other columns");
        return Err(FragmentError::Select(0, at_start(detail)));
    }
    if let Some((clause, column)) = select.group() {
        let column = name(&column, &select);
        let fault = at_start(format!("`{}` must be in an aggregate", shown(&column)));
        return Err(match clause {
            Clause::Order(at) => FragmentError::Order(at, fault),
            Clause::Item(at) => {
                FragmentError::Select(owners.get(at).copied().unwrap_or_default(), fault)
            }
            Clause::Having => FragmentError::Select(0, fault),
        });
    }
    if select.height() > HEIGHT {
        return Err(FragmentError::Select(0, at_start("The query is nested too deep".to_owned())));
    }
    Ok(SelectedFragments { select, places })
}

/// A fault of a whole text.
fn at_start(detail: String) -> QueryError {
    QueryError { detail, position: crate::error::Position { line: 1, column: 1 } }
}

/// What the parsers of the texts share.
struct State<'a> {
    /// It is with the parser while a text is parsed.
    selecting: Option<Selecting<'a>>,
    nodes: usize,
}

impl<'a> State<'a> {
    /// Parses one text as a whole.
    fn parse<T>(
        &mut self,
        text: &'a str,
        read: impl FnOnce(&mut Parser<'a>) -> Result<T, QueryError>,
    ) -> Result<T, QueryError> {
        let mut parser = Parser::new(text, TEXT_MAX)?;
        parser.select = self.selecting.take();
        parser.nodes = self.nodes;
        let found = read(&mut parser)?;
        if !matches!(parser.token().kind, TokenKind::End) {
            return Err(parser.unexpected("the end of the expression"));
        }
        self.nodes = parser.nodes;
        self.selecting = parser.select.take();
        Ok(found)
    }

    /// Lets the texts that follow name columns by their aliases.
    fn name_columns(&mut self, items: &[Item]) {
        let Some(scope) = self.selecting.as_mut().and_then(Selecting::scope) else { return };
        let named = items.iter().filter(|item| default_name(&item.expression, scope) != item.name);
        scope.aliases = named.map(|item| (item.name.clone(), item.expression.clone())).collect();
    }

    fn lists(&mut self) -> (Vec<super::AggregateCall>, Vec<Select>) {
        let scope = self.selecting.as_mut().and_then(|selecting| selecting.scopes.pop());
        scope.map(|scope| (scope.aggregates, scope.sets)).unwrap_or_default()
    }
}

impl Parser<'_> {
    fn fragment_item(&mut self) -> Result<Item, QueryError> {
        let start = self.start();
        let item = self.item()?;
        if item.name.chars().count() > ALIAS {
            let detail = format!("Give the column a name of at most {ALIAS} characters with AS");
            return Err(self.fault(start, detail));
        }
        Ok(item)
    }

    fn fragment_condition(&mut self) -> Result<Expression, QueryError> {
        let start = self.start();
        self.set_no_aggregates(Some("a condition"));
        let condition = self.whole()?;
        self.check_condition(start, &condition)?;
        self.set_no_aggregates(None);
        Ok(condition)
    }

    fn fragment_order(&mut self) -> Result<Order, QueryError> {
        let expression = self.whole()?;
        let is_descending = self.take_word("desc");
        if !is_descending {
            self.take_word("asc");
        }
        Ok(Order { expression, is_descending })
    }
}
