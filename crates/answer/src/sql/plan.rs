//! What a SELECT reads of events.
//!
//! What belongs here: which conditions of WHERE choose times and names, which of them are
//! about one column with few values, and which columns expressions need. What does not:
//! reading them (`rows`).

use std::collections::BTreeSet;
use std::ops::Range;

use weir_query::{
    Comparison, Expression, Field, GROUP_TYPES, Literal, QueryInput, Select, Source, Table, Value,
    WorkLimit,
};
use weir_questions::evaluate::SESSION_ID;

use super::Filters;
use super::clock::Clock;
use crate::plan::{NODES_MAX, Plan, group_property};
use crate::span::with_reach;

/// All times.
pub(super) const ALWAYS: Range<i64> = i64::MIN..i64::MAX;

/// The conditions of WHERE, all of which must be true.
#[derive(Debug)]
pub(super) struct Conditions<'q> {
    /// The times that they leave.
    pub(super) times: Range<i64>,
    /// The names of events that they leave. `None`: all names.
    pub(super) names: Option<BTreeSet<&'q str>>,
    /// All others.
    pub(super) rest: Vec<&'q Expression>,
}

impl<'q> Conditions<'q> {
    /// Of a SELECT from events.
    pub(super) fn of(select: &'q Select, clock: &Clock<'_>) -> Self {
        let mut found = Self { times: ALWAYS, names: None, rest: Vec::new() };
        let is_time =
            |expression: &Expression| matches!(expression, Expression::Field(Field::Timestamp));
        for condition in conjuncts(select.filter.as_ref()) {
            if let Some(times) = times_of(condition, &is_time, clock) {
                found.times = intersected(&found.times, &times);
            } else if let Some(names) = names_of(condition) {
                found.names = Some(match found.names {
                    None => names,
                    Some(known) => known.intersection(&names).copied().collect(),
                });
            } else {
                found.rest.push(condition);
            }
        }
        found
    }
}

/// The parts of a condition that all must be true.
fn conjuncts(filter: Option<&Expression>) -> Vec<&Expression> {
    match filter {
        None => Vec::new(),
        Some(Expression::And(items)) => {
            items.iter().flat_map(|item| conjuncts(Some(item))).collect()
        }
        Some(other) => vec![other],
    }
}

pub(super) fn intersected(a: &Range<i64>, b: &Range<i64>) -> Range<i64> {
    let start = a.start.max(b.start);
    start..a.end.min(b.end).max(start)
}

/// The times for which a comparison with constants is true. `None`: it is another condition.
fn times_of(
    condition: &Expression,
    is_time: &dyn Fn(&Expression) -> bool,
    clock: &Clock<'_>,
) -> Option<Range<i64>> {
    match condition {
        Expression::Compare(Comparison::NotEqual, ..) => None,
        Expression::Compare(comparison, left, right) if is_time(left) && is_constant(right) => {
            Some(compared(*comparison, instant(right, clock)))
        }
        Expression::Compare(comparison, left, right) if is_time(right) && is_constant(left) => {
            let turned = match comparison {
                Comparison::Less => Comparison::Greater,
                Comparison::LessOrEqual => Comparison::GreaterOrEqual,
                Comparison::Greater => Comparison::Less,
                Comparison::GreaterOrEqual => Comparison::LessOrEqual,
                same => *same,
            };
            Some(compared(turned, instant(left, clock)))
        }
        Expression::Between { value, low, high, is_negated: false }
            if is_time(value) && is_constant(low) && is_constant(high) =>
        {
            let from = compared(Comparison::GreaterOrEqual, instant(low, clock));
            let to = compared(Comparison::LessOrEqual, instant(high, clock));
            Some(intersected(&from, &to))
        }
        _ => None,
    }
}

/// The times for which a comparison with a time is true: none, if that is null.
fn compared(comparison: Comparison, with: Option<i64>) -> Range<i64> {
    let Some(with) = with else { return 0..0 };
    let after = with.saturating_add(1);
    match comparison {
        Comparison::Equal => with..after,
        Comparison::NotEqual => ALWAYS,
        Comparison::Less => i64::MIN..with,
        Comparison::LessOrEqual => i64::MIN..after,
        Comparison::Greater => after..i64::MAX,
        Comparison::GreaterOrEqual => with..i64::MAX,
    }
}

fn names_of(condition: &Expression) -> Option<BTreeSet<&str>> {
    let is_name = |expression: &Expression| matches!(expression, Expression::Field(Field::Event));
    match condition {
        Expression::Compare(Comparison::Equal, left, right) if is_name(left) => {
            Some([text(right)?].into())
        }
        Expression::Compare(Comparison::Equal, left, right) if is_name(right) => {
            Some([text(left)?].into())
        }
        Expression::In { value, among, is_negated: false }
            if is_name(value) && among.len() <= NODES_MAX =>
        {
            among.iter().map(text).collect()
        }
        _ => None,
    }
}

fn text(expression: &Expression) -> Option<&str> {
    match expression {
        Expression::Literal(Literal::Text(text)) => Some(text),
        _ => None,
    }
}

fn is_constant(expression: &Expression) -> bool {
    match expression {
        Expression::Field(_)
        | Expression::Property(..)
        | Expression::Column(_)
        | Expression::ColumnProperty(..)
        | Expression::Key(_)
        | Expression::Aggregate(_)
        | Expression::InSet { .. } => false,
        other => other.children().into_iter().all(is_constant),
    }
}

/// The instant that a constant is compared as.
fn instant(constant: &Expression, clock: &Clock<'_>) -> Option<i64> {
    let input = Constants::new(clock);
    constant.evaluate(&input).instant(&input)
}

/// What constants can see.
pub(super) struct Constants<'c, 'q> {
    clock: &'c Clock<'q>,
    work_limit: WorkLimit,
}

impl<'c, 'q> Constants<'c, 'q> {
    pub(super) fn new(clock: &'c Clock<'q>) -> Self {
        Self { clock, work_limit: WorkLimit::default() }
    }
}

impl QueryInput for Constants<'_, '_> {
    fn field(&self, _field: Field) -> Value<'_> {
        Value::Null
    }

    fn property(&self, _field: Field, _path: &[String]) -> Value<'_> {
        Value::Null
    }

    fn work_limit(&self) -> &WorkLimit {
        &self.work_limit
    }

    super::clock_methods!(clock);
}

/// The times of the events that a SELECT and those in it need.
pub(super) fn times(
    select: &Select,
    filters: Option<&Filters>,
    clock: &Clock<'_>,
    into: &mut Vec<Range<i64>>,
) {
    select.sets.iter().for_each(|set| times(set, filters, clock, into));
    match &select.source {
        Source::Select(inner) => times(inner, filters, clock, into),
        Source::Table(Table::Events) => into.push(event_times(select, filters, clock)),
        Source::Table(Table::Sessions) => into.push(session_times(select, clock).1),
        Source::Table(Table::Persons | Table::Groups) => {}
    }
}

/// The times of the events that a SELECT from events needs.
pub(super) fn event_times(
    select: &Select,
    filters: Option<&Filters>,
    clock: &Clock<'_>,
) -> Range<i64> {
    let times = Conditions::of(select, clock).times;
    match filters.filter(|_| select.takes_filters) {
        Some(filters) => intersected(&times, &filters.times),
        None => times,
    }
}

/// The times at which sessions of a SELECT begin, and those of the events that it needs.
pub(super) fn session_times(select: &Select, clock: &Clock<'_>) -> (Range<i64>, Range<i64>) {
    let start = Table::Sessions.columns().iter().position(|(name, _)| *name == "start_timestamp");
    let is_start = |expression: &Expression| match expression {
        Expression::Column(at) => Some(*at) == start,
        _ => false,
    };
    let conditions = conjuncts(select.filter.as_ref());
    let found = conditions.into_iter().filter_map(|item| times_of(item, &is_start, clock));
    let begin = found.fold(ALWAYS, |all, times| intersected(&all, &times));
    let events = match begin.is_empty() {
        true => begin.clone(),
        false => with_reach(&begin),
    };
    (begin, events)
}

/// Which properties of persons or groups are needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NeededProperties {
    All,
    Named(BTreeSet<String>),
}

impl NeededProperties {
    fn add(wanted: &mut Option<Self>, path: Option<&[String]>) {
        match (&mut *wanted, path.and_then(|path| path.first())) {
            (Some(Self::All), _) => {}
            (_, None) => *wanted = Some(Self::All),
            (Some(Self::Named(names)), Some(name)) => {
                names.insert(name.clone());
            }
            (None, Some(name)) => *wanted = Some(Self::Named([name.clone()].into())),
        }
    }

    pub(super) fn join(wanted: &mut Option<Self>, other: Option<&Self>) {
        match (&mut *wanted, other) {
            (_, None) | (Some(Self::All), _) => {}
            (Some(Self::Named(names)), Some(Self::Named(more))) => {
                names.extend(more.iter().cloned());
            }
            (_, Some(other)) => *wanted = Some(other.clone()),
        }
    }
}

/// What expressions read of an event.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Needed {
    /// Slots of properties.
    pub(super) slots: Vec<usize>,
    pub(super) names: bool,
    pub(super) time: bool,
    pub(super) person_id: bool,
    pub(super) uuid: bool,
    pub(super) distinct_id: bool,
    pub(super) received_at: bool,
    pub(super) elements_chain: bool,
    /// All properties, as text.
    pub(super) properties: bool,
    pub(super) of_person: Option<NeededProperties>,
    pub(super) of_groups: [Option<NeededProperties>; GROUP_TYPES as usize],
}

/// A column with few values, which one condition is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coded {
    Name,
    Slot(usize),
}

impl Needed {
    /// Adds what an expression needs.
    pub(super) fn add(&mut self, expression: &Expression, plan: &mut Plan) {
        match expression {
            Expression::Field(field) => self.add_field(*field, None, plan),
            Expression::Property(field, path) => self.add_field(*field, Some(path), plan),
            other => other.children().into_iter().for_each(|item| self.add(item, plan)),
        }
    }

    fn add_field(&mut self, field: Field, path: Option<&[String]>, plan: &mut Plan) {
        match field {
            Field::TeamId => {}
            Field::Timestamp => self.time = true,
            Field::Event => self.names = true,
            Field::DistinctId => self.distinct_id = true,
            Field::Uuid => self.uuid = true,
            Field::CreatedAt => self.received_at = true,
            Field::ElementsChain => self.elements_chain = true,
            Field::PersonId => self.person_id = true,
            Field::SessionId => self.add_slot(SESSION_ID, plan),
            Field::Properties => match path.and_then(|path| path.first()) {
                Some(name) => self.add_slot(name, plan),
                None => self.properties = true,
            },
            Field::PersonProperties => NeededProperties::add(&mut self.of_person, path),
            Field::GroupProperties(index) => {
                self.add_slot(&group_property(index), plan);
                if let Some(wanted) = self.of_groups.get_mut(usize::from(index)) {
                    NeededProperties::add(wanted, path);
                }
            }
        }
    }

    fn add_slot(&mut self, property: &str, plan: &mut Plan) {
        let slot = plan.slot(property);
        if !self.slots.contains(&slot) {
            self.slots.push(slot);
        }
    }

    /// The column, if this is all that is needed.
    pub(super) fn coded(&self) -> Option<Coded> {
        let only = |needed: Self| needed == *self;
        match self.slots[..] {
            [] if only(Self { names: true, ..Self::default() }) => Some(Coded::Name),
            [slot] if only(Self { slots: vec![slot], ..Self::default() }) => {
                Some(Coded::Slot(slot))
            }
            _ => None,
        }
    }

    pub(super) fn has_persons(&self) -> bool {
        self.person_id || self.of_person.is_some()
    }
}
