//! Questions in SQL, and lists of events.
//!
//! What belongs here: running a SELECT over events, persons, groups, sessions or another
//! SELECT. What does not: its text and what expressions mean (`weir-query`), and reading
//! columns of events (`scan`, `batch`).
//!
//! | module | holds |
//! |---|---|
//! | `plan` | which conditions choose times and names, and which columns are needed |
//! | `rows` | events: filtering them, and evaluating expressions for each |
//! | `tables` | persons and groups |
//! | `sessions` | sessions, which are derived from events |
//! | `stage` | what is made of rows: groups, or the first ones in an order |
//! | `aggregate`, `group`, `sort`, `value`, `clock` | their parts |
//! | `events` | lists of events |
//!
//! An answer does not depend on threads and on where events are stored (QRY-28): aggregates
//! are exact, and rows with equal values of ORDER BY have an order too.

mod aggregate;
mod clock;
mod entities;
mod events;
mod group;
mod plan;
mod rows;
mod sessions;
mod sort;
mod source;
mod stage;
mod tables;
mod value;

use std::ops::Range;

use serde_json::Value as Json;
use weir_model::errors::FieldError;
use weir_query::{Expression, QueryError, Select, Source as From, Table, parse_select};
use weir_questions::query::{DateRange, HogQLFilters, HogQLQuery, Scope};
use weir_questions::results::HogQLResult;
use weir_questions::time::{DateText, Interval};

use self::clock::Clock;
use self::stage::{Rows, Set, Stage};
use crate::Asked;
use crate::error::{AnswerError, Result};
use crate::run::Run;

pub use events::{events, events_times};
pub(crate) use source::RECORDS;
pub use source::{GroupRow, PersonRow, RowSource};
pub use value::type_name;

/// Most bytes of JSON of a result.
const RESULT_MAX: usize = 8 << 20;

/// The methods of [`QueryInput`](weir_query::QueryInput) about the clock, by the field of the
/// input that is the clock.
macro_rules! clock_methods {
    ($($clock:ident).+) => {
        fn now(&self) -> Option<i64> {
            Some(self.$($clock).+.now)
        }

        fn local(&self, micros: i64) -> Option<i64> {
            self.$($clock).+.local(micros)
        }

        fn instant(&self, local: i64) -> Option<i64> {
            self.$($clock).+.instant(local)
        }

        fn start_of(&self, unit: weir_query::TimeUnit, micros: i64) -> Option<i64> {
            self.$($clock).+.start_of(unit, micros)
        }

        fn shifted(&self, micros: i64, count: i64, unit: weir_query::TimeUnit) -> Option<i64> {
            self.$($clock).+.shifted(micros, count, unit)
        }
    };
}
use clock_methods;

/// The methods about the clock and sets, for an input with a field `worker`.
macro_rules! worker_methods {
    () => {
        fn set_has(&self, set: usize, value: &weir_query::Value<'_>) -> Option<bool> {
            self.worker.set_has(set, value)
        }

        $crate::sql::clock_methods!(worker.clock);
    };
}
use worker_methods;

/// What `{filters}` stands for.
#[derive(Debug)]
pub(crate) struct Filters {
    /// Which events count; its range is not read.
    scope: Scope,
    times: Range<i64>,
}

/// What a question is asked with.
#[derive(Clone, Copy)]
struct Context<'q, 'a> {
    source: &'q dyn RowSource,
    run: &'q Run<'a>,
    asked: &'q Asked<'q>,
    filters: Option<&'q Filters>,
}

impl<'q> Context<'q, '_> {
    fn clock(&self) -> Clock<'q> {
        clock_of(self.asked)
    }
}

fn clock_of<'q>(asked: &'q Asked<'_>) -> Clock<'q> {
    Clock::new(asked.calendar, asked.now.micros())
}

/// The times of the events that the answer to a question in SQL needs.
///
/// # Errors
/// [`AnswerError::Field`]: the query or its filters cannot be used.
pub fn hogql_times(asked: &Asked<'_>, query: &HogQLQuery) -> Result<Vec<Range<i64>>> {
    let select = parsed(query)?;
    let filters = filters_of(asked, &query.filters)?;
    Ok(times_of(asked, &select, &filters))
}

/// Answers a question in SQL (QRY-40 to QRY-58).
///
/// # Errors
/// See [`AnswerError`]. A fault of the query names its line and column.
pub fn hogql(
    source: &dyn RowSource,
    run: &Run<'_>,
    asked: &Asked<'_>,
    query: &HogQLQuery,
) -> Result<HogQLResult> {
    let select = parsed(query)?;
    let filters = filters_of(asked, &query.filters)?;
    let context = Context { source, run, asked, filters: Some(&filters) };
    let found = result(context, &select)?;
    let columns: Vec<String> = select.items.iter().map(|item| item.name.clone()).collect();
    let types = select.kinds().into_iter().map(|kind| value::type_name(kind).to_owned());
    Ok(HogQLResult {
        query: query.query.clone(),
        types: columns.iter().cloned().zip(types).collect(),
        columns,
        results: found.rows,
        has_more: found.has_more,
        limit: select.limit.unwrap_or_default(),
        offset: select.offset,
        hogql: select.normal_form(),
    })
}

fn parsed(query: &HogQLQuery) -> Result<Select> {
    parse_select(&query.query, &query.values).map_err(|fault| sql_fault("query", &fault).into())
}

/// The fault of a text with SQL in a field.
fn sql_fault(field: &str, fault: &QueryError) -> FieldError {
    FieldError::new(field, "invalid_input", fault.to_string())
}

/// A range that is not given does not limit events.
fn filters_of(asked: &Asked<'_>, filters: &HogQLFilters) -> Result<Filters> {
    let DateRange { date_from, date_to, .. } = filters.dates;
    let mut times = plan::ALWAYS;
    if date_from.is_some() || date_to.is_some() {
        let (calendar, now) = (asked.calendar, asked.now);
        let range = calendar.range(&filters.dates, Interval::Day, now, asked.earliest);
        let range = range.map_err(|fault| AnswerError::Field(in_filters(fault)))?;
        if date_from.is_some_and(|date| date != DateText::All) {
            times.start = range.begin();
        }
        if date_to.is_some() {
            times.end = range.end();
        }
    }
    let scope = Scope {
        properties: filters.properties.clone(),
        filter_test_accounts: filters.filter_test_accounts,
        ..Scope::default()
    };
    Ok(Filters { scope, times })
}

fn in_filters(fault: FieldError) -> FieldError {
    let attr = fault.attr.map(|attr| format!("filters__{attr}"));
    FieldError { attr, ..fault }
}

fn times_of(asked: &Asked<'_>, select: &Select, filters: &Filters) -> Vec<Range<i64>> {
    let mut times = Vec::new();
    plan::times(select, Some(filters), &clock_of(asked), &mut times);
    times.retain(|times| !times.is_empty());
    times
}

/// Rows as JSON.
struct Found {
    rows: Vec<Vec<Json>>,
    has_more: bool,
}

/// The result of a whole question.
fn result(context: Context<'_, '_>, select: &Select) -> Result<Found> {
    let kinds = select.kinds();
    let found = run(context, select)?;
    let limit = select.limit.unwrap_or_default() as usize;
    let mut has_more = found.rows.len() > limit;
    let mut memory = context.run.memory.reservation();
    let (mut rows, mut written, mut held) = (Vec::new(), 0, 0);
    for row in found.rows.iter().take(limit) {
        written += row.iter().map(value::json_bytes).sum::<usize>();
        if written > RESULT_MAX && !rows.is_empty() {
            has_more = true;
            break;
        }
        memory.hold_more(&mut held, row.iter().map(|value| 2 * value::bytes(value)).sum())?;
        rows.push(row.iter().zip(&kinds).map(|(value, kind)| value::json(value, *kind)).collect());
    }
    Ok(Found { rows, has_more })
}

/// Runs a SELECT: its rows behind OFFSET, and one more than LIMIT if there are more.
fn run<'a>(context: Context<'_, 'a>, select: &Select) -> Result<Rows<'a>> {
    if select.takes_filters && !matches!(select.source, From::Table(Table::Events)) {
        let detail = "`{filters}` is a condition for events.";
        return Err(FieldError::new("query", "invalid_input", detail).into());
    }
    let sets = select.sets.iter().map(|set| {
        // Only which values there are matters.
        let mut set = set.clone();
        set.is_distinct |= !set.is_grouped() && set.limit.is_none() && set.order.is_empty();
        Set::new(&run_limited(context, &set)?, context.run)
    });
    let sets: Vec<Set<'a>> = sets.collect::<Result<_>>()?;
    let stage = Stage::new(context, select, sets);
    let sink = match &select.source {
        From::Table(Table::Events) => rows::feed(context, select, &stage)?,
        From::Table(Table::Persons) => tables::persons(&stage)?,
        From::Table(Table::Groups) => tables::groups(&stage)?,
        From::Table(Table::Sessions) => sessions::feed(context, select, &stage)?,
        From::Select(inner) => {
            let inner = run_limited(context, inner)?;
            tables::rows(&stage, &inner)?
        }
    };
    stage.finish(sink)
}

/// The rows of a SELECT in another one, without the one that says that there are more.
fn run_limited<'a>(context: Context<'_, 'a>, select: &Select) -> Result<Rows<'a>> {
    let mut found = run(context, select)?;
    if let Some(limit) = select.limit {
        found.rows.truncate(limit as usize);
    }
    Ok(found)
}

/// Adds a condition to a SELECT.
fn add_condition(select: &mut Select, condition: Expression) {
    select.filter = Some(match select.filter.take() {
        None => condition,
        Some(Expression::And(mut items)) => {
            items.push(condition);
            Expression::And(items)
        }
        Some(other) => Expression::And(vec![other, condition]),
    });
}
