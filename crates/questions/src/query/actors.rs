//! Persons and groups behind a number of an answer (QRY-31).
//!
//! What belongs here: which number it is (its cell), and which columns a list of persons
//! has. What does not: the question that the number answers, which is the source.

use serde::ser::{Error as _, SerializeMap as _};
use serde::{Serialize, Serializer};
use serde_json::Value;
use weir_model::errors::FieldError;

use super::Query;
use super::breakdown::BreakdownFilter;
use super::common::date;
use super::funnels::{FunnelVisualization, FunnelsQuery};
use super::input::{Fields, Input};
use super::lifecycle::{LifecycleQuery, LifecycleStatus};
use super::paths::{PathKeys, PathsQuery};
use super::retention::RetentionQuery;
use super::stickiness::{StickinessOperator, StickinessQuery};
use super::trends::TrendsQuery;
use crate::choices::choices;
use crate::evaluate::FunnelOutcome;
use crate::results::{BreakdownValue, CompareLabel};
use crate::time::DateText;

/// Rows by default.
pub const ACTORS_LIMIT: u32 = 100;
/// Most rows.
pub const ACTORS_LIMIT_MAX: u32 = 1_000;
/// Most columns, and most columns of an order.
const COLUMNS_MAX: usize = 10;
/// Most characters of an order.
const ORDER_MAX: usize = 200;
/// Most characters of a breakdown value.
const BREAKDOWN_VALUE_MAX: usize = 10_000;
/// The largest number of an interval or period. There are fewer buckets.
const INTERVAL_MAX: i64 = 10_000;

choices! {
    /// A column of a list of persons or groups.
    ActorColumn {
        /// The person or the group, with its properties.
        Actor = "actor",
        /// The same.
        Person = "person",
        /// The same.
        Group = "group",
        /// The id of the person, or the key of the group.
        Id = "id",
        /// When it was first seen.
        CreatedAt = "created_at",
        /// How many of its events the number counts. Of trends alone.
        EventCount = "event_count",
    }
}

/// A column that orders a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActorOrder {
    /// [`ActorColumn::Id`], [`ActorColumn::CreatedAt`] or [`ActorColumn::EventCount`].
    pub column: ActorColumn,
    /// Whether the largest value is first.
    pub is_descending: bool,
}

/// Which persons who did steps of a funnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FunnelStep {
    /// The number of the step, from 0.
    pub step: usize,
    /// Whether they did all steps before it and not it. Otherwise they did it.
    pub is_dropped: bool,
}

impl FunnelStep {
    /// Whether a person is one of them.
    pub fn contains(self, outcome: &FunnelOutcome) -> bool {
        match self.is_dropped {
            true => outcome.steps() == self.step,
            false => outcome.steps() > self.step,
        }
    }
}

/// A number of an answer. It fits the kind of the source.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// Of trends.
    Trends {
        /// The bucket that contains this time, and with cumulative numbers all before it.
        /// `None`: the whole range.
        day: Option<DateText>,
        /// The number of the series, from 0.
        series: usize,
        /// The breakdown value. `None`: all values.
        breakdown: Option<BreakdownValue>,
        /// Which of two compared ranges.
        compare: CompareLabel,
    },
    /// Of stickiness.
    Stickiness {
        /// In how many intervals the persons are active. `None`: in at least one.
        intervals: Option<u32>,
        /// How their number of intervals is compared with it.
        operator: StickinessOperator,
        /// The number of the series, from 0.
        series: usize,
        /// Which of two compared ranges.
        compare: CompareLabel,
    },
    /// Of a lifecycle.
    Lifecycle {
        /// The bucket that contains this time. `None`: all of them.
        day: Option<DateText>,
        /// The status. `None`: all of them.
        status: Option<LifecycleStatus>,
    },
    /// Of retention: the persons who begin in a period.
    Retention {
        /// The number of the period, from 0.
        period: usize,
        /// The number of the period after it for which they count. `None`: all who begin.
        after: Option<usize>,
        /// The breakdown value. `None`: all values.
        breakdown: Option<BreakdownValue>,
    },
    /// Of paths.
    Paths(PathKeys),
    /// Of the steps of a funnel.
    FunnelStep {
        /// Which persons.
        step: FunnelStep,
        /// The breakdown value. `None`: all values.
        breakdown: Option<BreakdownValue>,
    },
    /// Of the rate of a funnel over time.
    FunnelTrend {
        /// The bucket that contains this time, in which the persons begin.
        begin: DateText,
        /// Whether they did not do the last step.
        is_dropped: bool,
        /// The breakdown value. `None`: all values.
        breakdown: Option<BreakdownValue>,
    },
}

/// A question for the persons or groups behind a number.
#[derive(Debug, Clone, PartialEq)]
pub struct ActorsQuery {
    /// The question that the number answers: any kind but numbers of a site, lists of events,
    /// SQL and this one.
    pub source: Box<Query>,
    /// The number.
    pub cell: Cell,
    /// The columns: at least one.
    pub select: Vec<ActorColumn>,
    /// The order. Rows that are equal in it, or all rows if it is empty, are ordered by id.
    pub order: Vec<ActorOrder>,
    /// Most rows.
    pub limit: u32,
    /// Rows that are skipped.
    pub offset: u32,
}

impl ActorsQuery {
    pub(super) fn read(fields: &Fields<'_>) -> Result<Self, FieldError> {
        let read = ["source", "select", "orderBy", "limit", "offset"];
        fields.check(&read, &["search", "properties", "fixedProperties"])?;
        let source = fields.required("source")?.object()?;
        let kind = source.required("kind")?;
        let (query, cell) = match kind.value.as_str() {
            Some("InsightActorsQuery") => insight(&source)?,
            Some("StickinessActorsQuery") => {
                let inner = inner(&source, "StickinessQuery")?;
                let query = StickinessQuery::read(&inner)?;
                let cell = stickiness(&source, &query, &["operator"])?;
                (Query::Stickiness(query), cell)
            }
            Some("FunnelsActorsQuery") => funnel(&source)?,
            _ => return Err(kind.no_choice()),
        };
        let has_count = matches!(query, Query::Trends(_));
        let (limit, offset) = fields.page(ACTORS_LIMIT_MAX, ACTORS_LIMIT)?;
        Ok(Self {
            source: Box::new(query),
            cell,
            select: columns(fields, has_count)?,
            order: order(fields, has_count)?,
            limit,
            offset,
        })
    }
}

/// Members that say which number it is.
const CELL: [&str; 11] = [
    "appearance",
    "breakdown",
    "compare",
    "day",
    "funnelStep",
    "funnelStepBreakdown",
    "funnelTrendsDropOff",
    "funnelTrendsEntrancePeriodStart",
    "interval",
    "series",
    "status",
];
/// Members that would change the answer.
const REFUSED: [&str; 2] = ["includeRecordings", "funnelCustomSteps"];

const NO_PERSONS: &str = "The persons behind numbers of a site cannot be listed.";

/// The question and the number of an `InsightActorsQuery`.
fn insight(fields: &Fields<'_>) -> Result<(Query, Cell), FieldError> {
    let inner = fields.required("source")?.object()?;
    let kind = inner.required("kind")?;
    Ok(match kind.value.as_str() {
        Some("TrendsQuery") => {
            let query = TrendsQuery::read(&inner)?;
            check(fields, &["day", "series", "breakdown", "compare"])?;
            let cell = Cell::Trends {
                day: day(fields, "day")?,
                series: series(fields, query.series.len())?,
                breakdown: breakdown(fields, "breakdown", query.breakdown.as_ref())?,
                compare: compare(fields, query.compare.is_some())?,
            };
            (Query::Trends(query), cell)
        }
        Some("StickinessQuery") => {
            let query = StickinessQuery::read(&inner)?;
            let cell = stickiness(fields, &query, &[])?;
            (Query::Stickiness(query), cell)
        }
        Some("LifecycleQuery") => {
            let query = LifecycleQuery::read(&inner)?;
            check(fields, &["day", "status"])?;
            let status = fields.get("status").map(|input| input.choice()).transpose()?;
            (Query::Lifecycle(query), Cell::Lifecycle { day: day(fields, "day")?, status })
        }
        Some("RetentionQuery") => {
            let query = RetentionQuery::read(&inner)?;
            check(fields, &["interval", "appearance", "breakdown"])?;
            let period = fields.required("interval")?.integer(0, INTERVAL_MAX - 1)?;
            let last = i64::from(query.filter.total) - 1;
            let after = fields.get("appearance").map(|input| input.integer(0, last)).transpose()?;
            let cell = Cell::Retention {
                period: usize::try_from(period).unwrap_or_default(),
                after: after.and_then(|number| usize::try_from(number).ok()),
                breakdown: breakdown(fields, "breakdown", query.breakdown.as_ref())?,
            };
            (Query::Retention(query), cell)
        }
        Some("PathsQuery") => {
            let (query, keys) = PathsQuery::read_with_keys(&inner)?;
            check(fields, &[])?;
            (Query::Paths(query), Cell::Paths(keys))
        }
        Some("WebOverviewQuery" | "WebStatsTableQuery" | "WebTrendsQuery") => {
            return Err(kind.fault("invalid_choice", NO_PERSONS));
        }
        _ => return Err(kind.no_choice()),
    })
}

/// Refuses members that do not name a number of this kind of question.
fn check(fields: &Fields<'_>, read: &[&str]) -> Result<(), FieldError> {
    for name in CELL.iter().filter(|name| !read.contains(name)) {
        if let Some(input) = fields.get(name) {
            return Err(input.invalid("The numbers of this question are not named by this field."));
        }
    }
    let read: Vec<&str> = ["source"].iter().chain(read).copied().collect();
    fields.check(&read, &REFUSED)
}

/// The members of a source, which has a kind.
fn inner<'a>(fields: &Fields<'a>, expected: &str) -> Result<Fields<'a>, FieldError> {
    let inner = fields.required("source")?.object()?;
    let kind = inner.required("kind")?;
    match kind.value.as_str() == Some(expected) {
        true => Ok(inner),
        false => Err(kind.no_choice()),
    }
}

fn stickiness(
    fields: &Fields<'_>,
    query: &StickinessQuery,
    more: &[&str],
) -> Result<Cell, FieldError> {
    let read: Vec<&str> = ["day", "series", "compare"].iter().chain(more).copied().collect();
    check(fields, &read)?;
    let intervals = fields.get("day").map(|input| input.integer(1, INTERVAL_MAX)).transpose()?;
    // With cumulative numbers, persons with more intervals count too.
    let default = match query.filter.is_cumulative {
        true => StickinessOperator::GreaterOrEqual,
        false => StickinessOperator::Exact,
    };
    Ok(Cell::Stickiness {
        intervals: intervals.and_then(|number| u32::try_from(number).ok()),
        operator: fields.choice("operator", default)?,
        series: series(fields, query.series.len())?,
        compare: compare(fields, query.compare.is_some())?,
    })
}

fn funnel(fields: &Fields<'_>) -> Result<(Query, Cell), FieldError> {
    let query = FunnelsQuery::read(&inner(fields, "FunnelsQuery")?)?;
    let is_trend = query.filter.visualization == FunnelVisualization::Trends;
    match is_trend {
        true => check(
            fields,
            &["funnelStepBreakdown", "funnelTrendsDropOff", "funnelTrendsEntrancePeriodStart"],
        )?,
        false => check(fields, &["funnelStep", "funnelStepBreakdown"])?,
    }
    let filter = query.breakdown.as_ref().map(BreakdownFilter::of_funnels);
    let breakdown = breakdown(fields, "funnelStepBreakdown", filter.as_ref())?;
    let cell = match is_trend {
        true => {
            let name = "funnelTrendsEntrancePeriodStart";
            fields.required(name)?;
            let begin = day(fields, name)?.ok_or_else(|| fields.fault(name, "required", DAY))?;
            let is_dropped = fields.flag("funnelTrendsDropOff")?;
            Cell::FunnelTrend { begin, is_dropped, breakdown }
        }
        false => {
            let input = fields.required("funnelStep")?;
            let step = funnel_step(&input, query.series.len())?;
            Cell::FunnelStep { step, breakdown }
        }
    };
    Ok((Query::Funnels(query), cell))
}

/// The number of a step from 1; a negative one for persons who did not do it, which the first
/// step has not.
fn funnel_step(input: &Input<'_>, steps: usize) -> Result<FunnelStep, FieldError> {
    let most = i64::try_from(steps).unwrap_or(i64::MAX);
    let number = input.integer(-most, most)?;
    if number == 0 || number == -1 {
        return Err(input.invalid("Enter the number of a step, such as 1, or -2."));
    }
    let step = usize::try_from(number.unsigned_abs() - 1).unwrap_or_default();
    Ok(FunnelStep { step, is_dropped: number < 0 })
}

const DAY: &str = "Enter a date or a time, such as 2026-08-21.";

/// A time that names a bucket.
fn day(fields: &Fields<'_>, name: &str) -> Result<Option<DateText>, FieldError> {
    match date(fields, name)? {
        Some(DateText::All | DateText::Relative(_)) => {
            Err(fields.fault(name, "invalid_input", DAY))
        }
        day => Ok(day),
    }
}

fn series(fields: &Fields<'_>, count: usize) -> Result<usize, FieldError> {
    let Some(input) = fields.get("series") else { return Ok(0) };
    let last = i64::try_from(count).unwrap_or(i64::MAX) - 1;
    Ok(usize::try_from(input.integer(0, last)?).unwrap_or_default())
}

fn compare(fields: &Fields<'_>, is_compared: bool) -> Result<CompareLabel, FieldError> {
    let Some(input) = fields.get("compare") else { return Ok(CompareLabel::Current) };
    match input.value.as_str() {
        Some("current") => Ok(CompareLabel::Current),
        Some("previous") if is_compared => Ok(CompareLabel::Previous),
        Some("previous") => Err(input.invalid("The question compares nothing.")),
        _ => Err(input.no_choice()),
    }
}

/// A breakdown value of a result, in the form that the results of the question have.
fn breakdown(
    fields: &Fields<'_>,
    name: &str,
    filter: Option<&BreakdownFilter>,
) -> Result<Option<BreakdownValue>, FieldError> {
    let Some(input) = fields.get(name) else { return Ok(None) };
    let Some(filter) = filter else {
        return Err(input.invalid("The question has no breakdown."));
    };
    let count = filter.breakdowns.len();
    let items = match input.value {
        Value::Array(_) => input.list(count)?,
        _ => vec![input.clone()],
    };
    let mut texts = items
        .iter()
        .map(|item| match item.value {
            Value::Number(_) | Value::Bool(_) => Ok(item.value.to_string()),
            _ => item.text(BREAKDOWN_VALUE_MAX),
        })
        .collect::<Result<Vec<_>, _>>()?;
    if texts.len() != count {
        let detail = format!("Expected the values of {count} properties.");
        return Err(input.invalid(detail));
    }
    Ok(Some(match texts.pop() {
        Some(only) if filter.is_single => BreakdownValue::One(only),
        last => BreakdownValue::Many(texts.into_iter().chain(last).collect()),
    }))
}

fn columns(fields: &Fields<'_>, has_count: bool) -> Result<Vec<ActorColumn>, FieldError> {
    let default = || vec![ActorColumn::Actor, ActorColumn::Id, ActorColumn::CreatedAt];
    let Some(input) = fields.get("select") else { return Ok(default()) };
    let items = input.list(COLUMNS_MAX)?;
    if items.is_empty() {
        return Ok(default());
    }
    let read = |item: &Input<'_>| -> Result<ActorColumn, FieldError> {
        match item.choice()? {
            ActorColumn::EventCount if !has_count => Err(item.invalid(NO_COUNT)),
            column => Ok(column),
        }
    };
    items.iter().map(read).collect()
}

const NO_COUNT: &str = "Persons behind a number of trends alone have a number of events.";

/// Columns with `ASC` or `DESC`; several in a text have commas in between.
fn order(fields: &Fields<'_>, has_count: bool) -> Result<Vec<ActorOrder>, FieldError> {
    let Some(input) = fields.get("orderBy") else { return Ok(Vec::new()) };
    let mut order = Vec::new();
    for item in input.list(COLUMNS_MAX)? {
        let text = item.name(ORDER_MAX)?;
        for part in text.split(',') {
            let mut words = part.split_whitespace();
            let column = match words.next() {
                Some("id" | "actor_id") => ActorColumn::Id,
                Some("created_at") => ActorColumn::CreatedAt,
                Some("event_count") if has_count => ActorColumn::EventCount,
                Some("event_count") => return Err(item.invalid(NO_COUNT)),
                _ => return Err(item.no_choice()),
            };
            let is_descending = match words.next() {
                None => false,
                Some(word) if word.eq_ignore_ascii_case("asc") => false,
                Some(word) if word.eq_ignore_ascii_case("desc") => true,
                Some(_) => return Err(item.no_choice()),
            };
            if words.next().is_some() {
                return Err(item.no_choice());
            }
            if order.len() == COLUMNS_MAX {
                let detail = format!("Ensure this field has no more than {COLUMNS_MAX} columns.");
                return Err(input.fault("max_length", detail));
            }
            order.push(ActorOrder { column, is_descending });
        }
    }
    Ok(order)
}

impl Serialize for ActorOrder {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let direction = if self.is_descending { "DESC" } else { "ASC" };
        serializer.collect_str(&format_args!("{} {direction}", self.column.word()))
    }
}

impl Serialize for ActorsQuery {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("select", &self.select)?;
        map.serialize_entry("source", &WrittenSource(self))?;
        if !self.order.is_empty() {
            map.serialize_entry("orderBy", &self.order)?;
        }
        map.serialize_entry("limit", &self.limit)?;
        map.serialize_entry("offset", &self.offset)?;
        map.end()
    }
}

/// The source of a question with its number.
struct WrittenSource<'a>(&'a ActorsQuery);

impl Serialize for WrittenSource<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ActorsQuery { source, cell, .. } = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("kind", cell.kind())?;
        if let Cell::Paths(keys) = cell {
            // They are members of the filter of the paths.
            let mut source = serde_json::to_value(source).map_err(S::Error::custom)?;
            if let Some(Value::Object(filter)) = source.get_mut("pathsFilter") {
                for (name, key) in keys.named() {
                    filter.extend(key.map(|key| (name.to_owned(), Value::from(key.to_string()))));
                }
            }
            map.serialize_entry("source", &source)?;
        } else {
            map.serialize_entry("source", source)?;
        }
        for (name, value) in cell.members() {
            if !value.is_null() {
                map.serialize_entry(name, &value)?;
            }
        }
        map.end()
    }
}

impl Cell {
    /// The kind of the node that has its members.
    fn kind(&self) -> &'static str {
        match self {
            Self::Stickiness { .. } => "StickinessActorsQuery",
            Self::FunnelStep { .. } | Self::FunnelTrend { .. } => "FunnelsActorsQuery",
            _ => "InsightActorsQuery",
        }
    }

    /// Its members in JSON. Those that are null are omitted.
    fn members(&self) -> Vec<(&'static str, Value)> {
        let day = |day: &Option<DateText>| day.map_or(Value::Null, |day| day.to_string().into());
        let value = |value: &Option<BreakdownValue>| match value {
            None => Value::Null,
            Some(BreakdownValue::One(text)) => Value::from(text.as_str()),
            Some(BreakdownValue::Many(texts)) => Value::from(texts.as_slice()),
        };
        match self {
            Self::Trends { day: at, series, breakdown, compare } => vec![
                ("day", day(at)),
                ("series", Value::from(*series)),
                ("breakdown", value(breakdown)),
                ("compare", Value::from(compare.word())),
            ],
            Self::Stickiness { intervals, operator, series, compare } => vec![
                ("day", Value::from(*intervals)),
                ("operator", Value::from(operator.word())),
                ("series", Value::from(*series)),
                ("compare", Value::from(compare.word())),
            ],
            Self::Lifecycle { day: at, status } => {
                vec![("day", day(at)), ("status", Value::from(status.map(LifecycleStatus::word)))]
            }
            Self::Retention { period, after, breakdown } => vec![
                ("interval", Value::from(*period)),
                ("appearance", Value::from(*after)),
                ("breakdown", value(breakdown)),
            ],
            Self::Paths(_) => Vec::new(),
            Self::FunnelStep { step, breakdown } => {
                let number = i64::try_from(step.step + 1).unwrap_or_default();
                let number = if step.is_dropped { -number } else { number };
                vec![("funnelStep", Value::from(number)), ("funnelStepBreakdown", value(breakdown))]
            }
            Self::FunnelTrend { begin, is_dropped, breakdown } => vec![
                ("funnelTrendsEntrancePeriodStart", day(&Some(*begin))),
                ("funnelTrendsDropOff", Value::from(*is_dropped)),
                ("funnelStepBreakdown", value(breakdown)),
            ],
        }
    }
}
