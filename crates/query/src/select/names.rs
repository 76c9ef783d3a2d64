//! What names mean: fields of events, columns of tables and subqueries, aliases.

use super::aggregates::{AggregateCall, IN_AGGREGATE, has_aggregate};
use super::tables::Table;
use super::tree::{Select, Source};
use super::{CONSTANTS, REGULAR_EXPRESSIONS, SUBQUERIES, Selecting};
use crate::fields::{Field, GROUP_TYPES};
use crate::parser::{NODES, PATH, Parsed, Parser, shown};
use crate::tree::{Expression, Literal};
use crate::value::Kind;

/// The columns that `*` means in a query of events.
const ALL_OF_EVENTS: [Field; 6] = [
    Field::Uuid,
    Field::Event,
    Field::Timestamp,
    Field::DistinctId,
    Field::PersonId,
    Field::Properties,
];

/// What the expressions of one SELECT can name, and what they have named.
pub(super) struct Scope {
    pub(super) source: Source,
    /// The names of what is read, each of which may precede a column.
    pub(super) names: Vec<String>,
    /// The types of the columns of what is read.
    pub(super) kinds: Vec<Option<Kind>>,
    /// The columns of the result that have an alias, while the clauses that may name them
    /// are parsed.
    pub(super) aliases: Vec<(String, Expression)>,
    pub(super) aggregates: Vec<AggregateCall>,
    /// The types of the aggregates.
    pub(super) aggregate_kinds: Vec<Option<Kind>>,
    pub(super) sets: Vec<Select>,
    /// The place in which no aggregate can be, such as `WHERE`, if it is being parsed.
    pub(super) no_aggregates: Option<&'static str>,
    /// The fields, columns and properties outside of aggregates, each with its first byte, in
    /// the order of the text.
    pub(super) mentions: Vec<(usize, Expression)>,
}

impl Scope {
    pub(super) fn new(source: Source, alias: Option<String>) -> Self {
        let (name, kinds) = match &source {
            Source::Table(table) => {
                let kinds = table.columns().iter().map(|(_, kind)| Some(*kind)).collect();
                (Some(table.name().to_owned()), kinds)
            }
            Source::Select(inner) => (None, inner.known_kinds()),
        };
        Self {
            source,
            names: name.into_iter().chain(alias).collect(),
            kinds,
            aliases: Vec::new(),
            aggregates: Vec::new(),
            aggregate_kinds: Vec::new(),
            sets: Vec::new(),
            no_aggregates: None,
            mentions: Vec::new(),
        }
    }

    /// The place of a column.
    fn column(&self, name: &str) -> Option<usize> {
        match &self.source {
            Source::Table(table) => table.columns().iter().position(|(column, _)| *column == name),
            Source::Select(inner) => inner.items.iter().position(|item| item.name == name),
        }
    }

    /// The field, column or property of this name.
    fn named(&self, parts: &[String]) -> Option<Expression> {
        if matches!(self.source, Source::Table(Table::Events)) {
            return event_field(parts);
        }
        let (first, path) = parts.split_first()?;
        let at = self.column(first)?;
        if path.is_empty() {
            return Some(Expression::Column(at));
        }
        let is_json = self.kinds.get(at).copied().flatten() == Some(Kind::Json);
        (is_json && is_path(path)).then(|| Expression::ColumnProperty(at, path.to_vec()))
    }

    /// The columns that `*` means, with their names.
    pub(super) fn all(&self) -> Vec<(Expression, String)> {
        let columns = |names: Vec<&str>| {
            let columns = names.into_iter().enumerate();
            columns.map(|(at, name)| (Expression::Column(at), name.to_owned())).collect()
        };
        match &self.source {
            Source::Table(Table::Events) => ALL_OF_EVENTS
                .into_iter()
                .map(|field| (Expression::Field(field), field.name().to_owned()))
                .collect(),
            Source::Table(table) => {
                columns(table.columns().iter().map(|(name, _)| *name).collect())
            }
            Source::Select(inner) => {
                columns(inner.items.iter().map(|item| item.name.as_str()).collect())
            }
        }
    }
}

/// The field or property of an event.
fn event_field(parts: &[String]) -> Option<Expression> {
    let words: Vec<&str> = parts.iter().map(String::as_str).collect();
    let (field, path) = match words.as_slice() {
        ["person", "id"] => (Field::PersonId, 2),
        ["person", "properties", ..] => (Field::PersonProperties, 2),
        ["session", "id"] => (Field::SessionId, 2),
        [group, "properties", ..] if group.starts_with("group_") => {
            (Field::GroupProperties(group_type(group)?), 2)
        }
        [name, ..] => (Field::of(name)?, 1),
        [] => return None,
    };
    let path = parts.get(path..)?;
    if path.is_empty() {
        return Some(Expression::Field(field));
    }
    let has_path = field.has_properties() && is_path(path);
    has_path.then(|| Expression::Property(field, path.to_vec()))
}

/// The type of groups of a name such as `group_0`.
fn group_type(name: &str) -> Option<u8> {
    (0..GROUP_TYPES).find(|index| name == format!("group_{index}"))
}

fn is_path(path: &[String]) -> bool {
    path.len() <= PATH && !path.iter().any(String::is_empty)
}

/// What expressions of one SELECT refer to by its place.
struct Lists<'a> {
    groups: &'a [Expression],
    aggregates: &'a [AggregateCall],
    sets: &'a [Select],
}

/// What an expression has, with all that it refers to, as the parser counts it in the text.
#[derive(Default)]
struct Counts {
    nodes: usize,
    constants: usize,
    subqueries: usize,
    regular_expressions: usize,
}

impl Counts {
    fn add(&mut self, expression: &Expression, lists: &Lists<'_>) {
        match expression {
            Expression::And(_)
            | Expression::Or(_)
            | Expression::Not(_)
            | Expression::Negative(_) => {}
            Expression::Key(at) => {
                if let Some(group) = lists.groups.get(*at) {
                    self.add(group, lists);
                }
            }
            Expression::Aggregate(at) => {
                self.nodes += 1;
                if let Some(call) = lists.aggregates.get(*at) {
                    self.add_all(call.arguments.iter().chain(&call.condition), lists);
                }
            }
            Expression::InSet { set, .. } => {
                self.nodes += 1;
                if let Some(set) = lists.sets.get(*set) {
                    self.add_select(set);
                }
            }
            Expression::Literal(Literal::RegularExpression(_)) => {
                self.nodes += 1;
                self.regular_expressions += 1;
            }
            _ => self.nodes += 1,
        }
        let is_list = matches!(expression, Expression::In { .. });
        for (at, item) in expression.children().into_iter().enumerate() {
            if is_list && at > 0 && matches!(item, Expression::Literal(_)) {
                self.constants += 1;
            } else {
                self.add(item, lists);
            }
        }
    }

    fn add_all<'e>(&mut self, items: impl Iterator<Item = &'e Expression>, lists: &Lists<'_>) {
        for item in items {
            self.add(item, lists);
        }
    }

    fn add_select(&mut self, select: &Select) {
        self.subqueries += 1;
        if let Source::Select(inner) = &select.source {
            self.add_select(inner);
        }
        let (groups, aggregates, sets) = (&select.groups, &select.aggregates, &select.sets);
        let lists = Lists { groups, aggregates, sets };
        self.add_all(select.filter.iter().chain(groups).chain(select.outputs()), &lists);
    }
}

impl Selecting<'_> {
    /// The innermost SELECT that is being parsed.
    pub(super) fn scope(&mut self) -> Option<&mut Scope> {
        self.scopes.last_mut()
    }
}

impl Parser<'_> {
    /// The innermost SELECT that is being parsed, if this is a question.
    pub(super) fn scope(&self) -> Option<&Scope> {
        self.select.as_ref()?.scopes.last()
    }

    pub(super) fn scope_mut(&mut self) -> Option<&mut Scope> {
        self.select.as_mut()?.scope()
    }

    /// What a name means: an alias, or a field or column, possibly with the name of the table
    /// before it.
    pub(crate) fn resolve(&mut self, start: usize, parts: Vec<String>) -> Parsed<Expression> {
        let Some(scope) = self.scope() else { return Err(self.unknown(start, &parts)) };
        let alias = match parts.as_slice() {
            [name] => scope.aliases.iter().find(|(alias, _)| alias == name),
            _ => None,
        };
        let is_in_aggregate = scope.no_aggregates == Some(IN_AGGREGATE);
        let is_nested = |expression| is_in_aggregate && has_aggregate(expression);
        if let Some((_, expression)) = alias {
            if !is_nested(expression) {
                let expression = expression.clone();
                self.charge(&expression)?;
                return Ok(expression);
            }
            // In `max(timestamp)` the field is meant, even if this has the alias
            // `timestamp` (QRY-46).
            if scope.named(&parts).is_none() {
                let detail = format!("An aggregate cannot be in {IN_AGGREGATE}");
                return Err(self.fault(start, detail));
            }
        }
        let bare = match parts.split_first() {
            Some((first, rest)) if !rest.is_empty() && scope.names.contains(first) => rest,
            _ => &parts,
        };
        let Some(found) = scope.named(bare) else { return Err(self.unknown(start, &parts)) };
        if let Some(scope) = self.scope_mut()
            && !is_in_aggregate
        {
            scope.mentions.push((start, found.clone()));
        }
        Ok(found)
    }

    fn unknown(&self, start: usize, parts: &[String]) -> crate::QueryError {
        self.fault(start, format!("Unknown field `{}`", shown(&parts.join("."))))
    }

    /// Counts a copy of an expression.
    pub(super) fn charge(&mut self, expression: &Expression) -> Parsed<()> {
        let Some(scope) = self.scope() else { return Ok(()) };
        let lists = Lists { groups: &[], aggregates: &scope.aggregates, sets: &scope.sets };
        let mut counts = Counts::default();
        counts.add(expression, &lists);
        self.nodes += counts.nodes;
        if self.nodes > NODES {
            return Err(self.here("The query has too many expressions"));
        }
        self.count_subqueries(counts.subqueries)?;
        self.count_regular_expressions(counts.regular_expressions)?;
        self.count_constants(counts.constants)
    }

    /// Counts subqueries.
    pub(super) fn count_subqueries(&mut self, more: usize) -> Parsed<()> {
        let Some(select) = &mut self.select else { return Ok(()) };
        select.subqueries += more;
        if select.subqueries > SUBQUERIES {
            return Err(self.here(format!("The query has more than {SUBQUERIES} subqueries")));
        }
        Ok(())
    }

    /// Counts regular expressions.
    pub(super) fn count_regular_expressions(&mut self, more: usize) -> Parsed<()> {
        let Some(select) = &mut self.select else { return Ok(()) };
        select.regular_expressions += more;
        if select.regular_expressions > REGULAR_EXPRESSIONS {
            let detail =
                format!("The query has more than {REGULAR_EXPRESSIONS} regular expressions");
            return Err(self.here(detail));
        }
        Ok(())
    }

    /// Counts constants of lists.
    pub(super) fn count_constants(&mut self, more: usize) -> Parsed<()> {
        let Some(select) = &mut self.select else { return Ok(()) };
        select.constants += more;
        if select.constants > CONSTANTS {
            return Err(self.here(format!("Lists after IN have more than {CONSTANTS} constants")));
        }
        Ok(())
    }

    /// `{name}`: a value that is sent beside the query.
    pub(crate) fn placeholder(&mut self) -> Parsed<Expression> {
        let start = self.start();
        let name = self.placeholder_name()?;
        if name == "filters" {
            let detail = "`{filters}` can only be a condition of WHERE, joined with AND";
            return Err(self.fault(start, detail));
        }
        let value = self.select.as_ref().and_then(|select| select.values.get(&name));
        let literal = match value {
            Some(serde_json::Value::Null) => Literal::Null,
            Some(serde_json::Value::Bool(value)) => Literal::Boolean(*value),
            Some(serde_json::Value::String(text)) if !text.contains('\0') => {
                Literal::Text(text.clone())
            }
            Some(serde_json::Value::Number(number)) => match (number.as_i64(), number.as_f64()) {
                // The smallest integer has no literal.
                (Some(number), _) if number > i64::MIN => Literal::Integer(number),
                (None, Some(number)) if !is_whole(number) && number.is_finite() => {
                    Literal::Float(number)
                }
                _ => {
                    let detail = format!("The value of `{}` is too large", shown(&name));
                    return Err(self.fault(start, detail));
                }
            },
            Some(_) => {
                let detail = format!(
                    "The value of `{}` is not a text, number, true, false or null",
                    shown(&name)
                );
                return Err(self.fault(start, detail));
            }
            None => {
                let detail = format!("There is no value for `{{{}}}`", shown(&name));
                return Err(self.fault(start, detail));
            }
        };
        Ok(Expression::Literal(literal))
    }

    /// Whether `{filters}` is here; then it is taken.
    pub(super) fn take_filters(&mut self) -> bool {
        use crate::lexer::TokenKind::{Quoted, Sign, Word};
        let mut kinds = self.tokens.iter().skip(self.at).map(|token| &token.kind);
        let found = matches!(
            (kinds.next(), kinds.next(), kinds.next()),
            (Some(Sign("{")), Some(Word(name) | Quoted(name)), Some(Sign("}"))) if name == "filters"
        );
        self.at += if found { 3 } else { 0 };
        found
    }

    fn placeholder_name(&mut self) -> Parsed<String> {
        use crate::lexer::TokenKind::{Quoted, Word};
        self.at += 1;
        let name = match &self.token().kind {
            Word(name) | Quoted(name) => name.clone(),
            _ => return Err(self.unexpected("the name of a value")),
        };
        self.at += 1;
        self.expect_sign("}")?;
        Ok(name)
    }
}

/// Whether a number that does not fit 64 bits was written without a fraction: its digits
/// would be lost.
fn is_whole(number: f64) -> bool {
    number.fract() == 0.0 && number.abs() >= 9e18
}
