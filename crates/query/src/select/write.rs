//! The normal form of a question: its tree as text, with as few parentheses as possible. It is
//! parsed to the same tree (QRY-44).

use std::fmt::Write as _;

use super::aggregates::{Aggregate, AggregateCall};
use super::is_keyword;
use super::names::Scope;
use super::tree::{Item, Select, Source};
use crate::fields::Field;
use crate::tree::{Expression, Literal};
use crate::write::{NOT, Style, level, part, push_name, push_quoted, write};

/// The alias of a subquery after FROM.
const SUBQUERY: &str = "t";

/// What expressions of one SELECT refer to by its place.
#[derive(Clone, Copy)]
struct Lists<'a> {
    source: &'a Source,
    groups: &'a [Expression],
    aggregates: &'a [AggregateCall],
    sets: &'a [Select],
}

impl<'a> Lists<'a> {
    fn of(select: &'a Select) -> Self {
        let Select { source, groups, aggregates, sets, .. } = select;
        Self { source, groups, aggregates, sets }
    }
}

/// Expressions of one SELECT.
struct Normal<'a> {
    lists: Lists<'a>,
    /// The columns with an alias, in the clauses that can name them.
    aliases: Vec<&'a Item>,
}

impl Normal<'_> {
    /// A name of what is read, after the name of the table if it would be taken for another
    /// one.
    fn push_read(&self, out: &mut String, name: &str, has_path: bool) {
        let table = match self.lists.source {
            Source::Table(table) => table.name(),
            Source::Select(_) => SUBQUERY,
        };
        let is_alias = !has_path && self.aliases.iter().any(|item| item.name == name);
        if is_alias || (has_path && name == table) {
            out.push_str(table);
            out.push('.');
        }
        push_name(out, name, is_keyword);
    }

    fn push_column(&self, out: &mut String, at: usize, path: &[String]) {
        self.push_read(out, column(self.lists.source, at), !path.is_empty());
        push_path(out, path);
    }

    fn push_field(&self, out: &mut String, field: Field, path: &[String]) {
        match field {
            Field::PersonProperties => out.push_str("person.properties"),
            Field::SessionId | Field::GroupProperties(_) => out.push_str(field.name()),
            field => self.push_read(out, field.name(), !path.is_empty()),
        }
        push_path(out, path);
    }

    fn push_aggregate(&mut self, out: &mut String, at: usize) {
        let Some(call) = self.lists.aggregates.get(at) else { return };
        out.push_str(call.aggregate.name());
        if call.condition.is_some() {
            out.push_str("If");
        }
        if let Aggregate::Quantile(level) = call.aggregate
            && call.aggregate.name() == "quantile"
        {
            let _ = write!(out, "({level:?})");
        }
        out.push('(');
        for (place, argument) in call.arguments.iter().chain(&call.condition).enumerate() {
            if place > 0 {
                out.push_str(", ");
            }
            write(out, argument, self);
        }
        out.push(')');
    }

    /// An expression of GROUP BY or ORDER BY: if it is a column of the result, its name, or
    /// its number if it would be taken for one.
    fn push_key(&mut self, out: &mut String, expression: &Expression, items: &[Item]) {
        if let Some(item) = self.aliases.iter().find(|item| item.expression == *expression) {
            return push_name(out, &item.name, is_keyword);
        }
        if matches!(expression, Expression::Literal(Literal::Integer(_)))
            && let Some(at) = items.iter().position(|item| item.expression == *expression)
        {
            let _ = write!(out, "{}", at + 1);
            return;
        }
        write(out, expression, self);
    }
}

impl Style for Normal<'_> {
    fn field(&mut self, out: &mut String, expression: &Expression) {
        match expression {
            Expression::Field(field) => self.push_field(out, *field, &[]),
            Expression::Property(field, path) => self.push_field(out, *field, path),
            Expression::Column(at) => self.push_column(out, *at, &[]),
            Expression::ColumnProperty(at, path) => self.push_column(out, *at, path),
            Expression::Aggregate(at) => self.push_aggregate(out, *at),
            Expression::Key(at) => {
                if let Some(group) = self.lists.groups.get(*at) {
                    write(out, group, self);
                }
            }
            _ => {}
        }
    }

    fn text(&mut self, out: &mut String, text: &str) {
        push_quoted(out, '\'', text);
    }

    fn is_bare(&self, expression: &Expression, least: u8) -> bool {
        match expression {
            Expression::Key(at) => {
                self.lists.groups.get(*at).is_none_or(|group| self.is_bare(group, least))
            }
            other => level(other) >= least,
        }
    }

    fn alias(&mut self, out: &mut String, expression: &Expression) -> bool {
        // A constant is shorter than its name, and can be where no name can.
        if matches!(expression, Expression::Literal(_)) {
            return false;
        }
        let found = self.aliases.iter().find(|item| item.expression == *expression);
        if let Some(item) = found {
            push_name(out, &item.name, is_keyword);
        }
        found.is_some()
    }

    fn set(&mut self, out: &mut String, at: usize) {
        if let Some(set) = self.lists.sets.get(at) {
            push_select(out, set);
        }
    }
}

fn push_path(out: &mut String, path: &[String]) {
    for name in path {
        out.push('.');
        push_name(out, name, is_keyword);
    }
}

/// The name of a column of what is read.
fn column(source: &Source, at: usize) -> &str {
    match source {
        Source::Table(table) => table.columns().get(at).map_or("", |(name, _)| *name),
        Source::Select(inner) => inner.items.get(at).map_or("", |item| item.name.as_str()),
    }
}

/// The name of a column of the result that has no alias.
pub(super) fn default_name(expression: &Expression, scope: &Scope) -> String {
    let lists = Lists {
        source: &scope.source,
        groups: &[],
        aggregates: &scope.aggregates,
        sets: &scope.sets,
    };
    default_name_in(expression, lists)
}

fn default_name_in(expression: &Expression, lists: Lists<'_>) -> String {
    let bare = match expression {
        Expression::Key(at) => lists.groups.get(*at).unwrap_or(expression),
        other => other,
    };
    if let Expression::Column(at) = bare {
        return column(lists.source, *at).to_owned();
    }
    let mut out = String::new();
    write(&mut out, expression, &mut Normal { lists, aliases: Vec::new() });
    out
}

/// The text of an expression of a SELECT.
pub(super) fn name(expression: &Expression, select: &Select) -> String {
    default_name_in(expression, Lists::of(select))
}

impl Select {
    /// The query in normal form, which is parsed to the same tree unless it is too long.
    pub fn normal_form(&self) -> String {
        let mut out = String::new();
        push_select(&mut out, self);
        out
    }
}

fn push_select(out: &mut String, select: &Select) {
    let lists = Lists::of(select);
    let mut style = Normal { lists, aliases: Vec::new() };
    let mut aliases = Vec::new();
    out.push_str(if select.is_distinct { "SELECT DISTINCT " } else { "SELECT " });
    for (at, item) in select.items.iter().enumerate() {
        if at > 0 {
            out.push_str(", ");
        }
        write(out, &item.expression, &mut style);
        if item.name != default_name_in(&item.expression, lists) {
            out.push_str(" AS ");
            push_name(out, &item.name, is_keyword);
            aliases.push(item);
        }
    }
    out.push_str(" FROM ");
    match &select.source {
        Source::Table(table) => out.push_str(table.name()),
        Source::Select(inner) => {
            out.push('(');
            push_select(out, inner);
            let _ = write!(out, ") AS {SUBQUERY}");
        }
    }
    push_filter(out, select, &mut style);
    style.aliases = aliases;
    for (at, group) in select.groups.iter().enumerate() {
        out.push_str(if at == 0 { " GROUP BY " } else { ", " });
        let key = Expression::Key(at);
        match group {
            Expression::Literal(_) => style.push_key(out, group, &select.items),
            _ if style.alias(out, &key) => {}
            _ => write(out, group, &mut style),
        }
    }
    if let Some(having) = &select.having {
        out.push_str(" HAVING ");
        write(out, having, &mut style);
    }
    for (at, order) in select.order.iter().enumerate() {
        out.push_str(if at == 0 { " ORDER BY " } else { ", " });
        style.push_key(out, &order.expression, &select.items);
        if order.is_descending {
            out.push_str(" DESC");
        }
    }
    if let Some(limit) = select.limit {
        let _ = write!(out, " LIMIT {limit}");
    }
    if select.offset > 0 {
        let _ = write!(out, " OFFSET {}", select.offset);
    }
}

/// The condition of WHERE, with `{filters}` as its last part.
fn push_filter(out: &mut String, select: &Select, style: &mut Normal<'_>) {
    match (&select.filter, select.takes_filters) {
        (None, false) => {}
        (None, true) => out.push_str(" WHERE {filters}"),
        (Some(filter), false) => {
            out.push_str(" WHERE ");
            write(out, filter, style);
        }
        (Some(filter), true) => {
            out.push_str(" WHERE ");
            match filter {
                Expression::And(_) => write(out, filter, style),
                other => part(out, other, style, NOT),
            }
            out.push_str(" AND {filters}");
        }
    }
}
