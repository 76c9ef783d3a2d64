//! The kinds of questions that are answered: the one place that a further kind is added to.

use std::io::Write;
use std::ops::Range;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use weir_answer::{self as answer, AnswerError, Asked, FunnelResults, RowSource, Run};
use weir_model::Timestamp;
use weir_questions::Query;
use weir_questions::query::Scope;
use weir_questions::results::{EventsResult, HogQLResult, ResolvedRange, WebTableResult};
use weir_questions::time::DateText;

/// The words of the kinds that are answered.
pub const KINDS: [&str; 12] = [
    "TrendsQuery",
    "FunnelsQuery",
    "RetentionQuery",
    "PathsQuery",
    "StickinessQuery",
    "LifecycleQuery",
    "WebOverviewQuery",
    "WebStatsTableQuery",
    "WebTrendsQuery",
    "EventsQuery",
    "HogQLQuery",
    "ActorsQuery",
];

/// The most bytes of the results of a question.
const RESULT_BYTES: usize = 16 << 20;

/// The results of a question.
pub(super) struct Found {
    results: Box<RawValue>,
    has_more: Option<bool>,
    range: Option<ResolvedRange>,
    rows: Option<RowsInfo>,
}

/// What an answer in rows has beside its results.
#[derive(Debug, Clone, PartialEq)]
pub struct RowsInfo {
    /// The names of the columns. For a list of events or persons, as the question has them.
    pub columns: Vec<String>,
    /// The types of the columns: for a list of events a text for each, for SQL a list of its
    /// name and its type, and null for a list of persons.
    pub types: Value,
    /// Most rows.
    pub limit: u32,
    /// Rows that were skipped.
    pub offset: u32,
    /// The question as SQL. `None`: SQL cannot say it.
    pub hogql: Option<String>,
    /// Of a list of persons or groups.
    pub actors: Option<ActorsInfo>,
}

/// What a list of persons or groups has beside its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActorsInfo {
    /// How many are behind the number.
    pub count: u64,
    /// How many of the rows are of those without a record.
    pub missing: u64,
}

impl RowsInfo {
    /// The type of each column.
    pub fn column_types(&self) -> impl Iterator<Item = &str> {
        let types = self.types.as_array().into_iter().flatten();
        // Of SQL, a type is in a list behind its name.
        types.map(|of_column| of_column.as_str().or(of_column[1].as_str()).unwrap_or_default())
    }
}

/// The results of a question, and when they were computed.
pub(super) struct Computed {
    pub(super) results: Box<RawValue>,
    pub(super) has_more: Option<bool>,
    pub(super) range: Option<ResolvedRange>,
    pub(super) rows: Option<RowsInfo>,
    pub(super) at: Timestamp,
}

impl Found {
    pub(super) fn at(self, at: Timestamp) -> Computed {
        let Self { results, has_more, range, rows } = self;
        Computed { results, has_more, range, rows, at }
    }
}

/// Whether an answer can be given again. One in rows follows the clock, and the properties of
/// persons and groups, whose changes have no version.
pub(super) fn is_kept(query: &Query) -> bool {
    !matches!(query, Query::Events(_) | Query::HogQL(_) | Query::Actors(_))
}

/// `None`: the kind has no scope.
fn scope(query: &Query) -> Option<&Scope> {
    match query {
        Query::Trends(query) => Some(&query.scope),
        Query::Funnels(query) => Some(&query.scope),
        Query::Retention(query) => Some(&query.scope),
        Query::Paths(query) => Some(&query.scope),
        Query::Stickiness(query) => Some(&query.scope),
        Query::Lifecycle(query) => Some(&query.scope),
        Query::WebOverview(query) => Some(&query.scope.views),
        Query::WebTable(query) => Some(&query.scope.views),
        Query::WebTrends(query) => Some(&query.scope.views),
        Query::Actors(query) => scope(&query.source),
        Query::Events(_) | Query::HogQL(_) => None,
    }
}

/// Whether the range of a question begins with the first event.
pub(super) fn needs_earliest(query: &Query) -> bool {
    let dates = match query {
        Query::HogQL(query) => Some(&query.filters.dates),
        query => scope(query).map(|scope| &scope.dates),
    };
    dates.is_some_and(|dates| dates.date_from == Some(DateText::All))
}

/// The times of the events that the answer needs.
pub(super) fn times(asked: &Asked<'_>, query: &Query) -> Result<Vec<Range<i64>>, AnswerError> {
    match query {
        Query::Trends(query) => answer::trends_times(asked, query),
        Query::Funnels(query) => answer::funnel_times(asked, query),
        Query::Retention(query) => answer::retention_times(asked, query),
        Query::Paths(query) => answer::path_times(asked, query),
        Query::Stickiness(query) => answer::stickiness_times(asked, query),
        Query::Lifecycle(query) => answer::lifecycle_times(asked, query),
        Query::WebOverview(query) => answer::web_overview_times(asked, query),
        Query::WebTable(query) => answer::web_table_times(asked, query),
        Query::WebTrends(query) => answer::web_trends_times(asked, query),
        Query::Events(query) => answer::events_times(asked, query),
        Query::HogQL(query) => answer::hogql_times(asked, query),
        Query::Actors(query) => answer::actors_times(asked, query),
    }
}

/// Computes the answer. Blocks the thread.
pub(super) fn compute(
    source: &dyn RowSource,
    run: &Run<'_>,
    asked: &Asked<'_>,
    query: &Query,
) -> Result<Found, AnswerError> {
    match query {
        Query::Trends(query) => written(answer::trends(source, run, asked, query)?),
        Query::Funnels(query) => {
            let answer::Found { results, has_more, range } =
                answer::funnel(source, run, asked, query)?;
            match results {
                FunnelResults::Steps(results) => {
                    written(answer::Found { results, has_more, range })
                }
                FunnelResults::Values(results) => {
                    written(answer::Found { results, has_more, range })
                }
                FunnelResults::Times(results) => {
                    written(answer::Found { results, has_more, range })
                }
                FunnelResults::Trends(results) => {
                    written(answer::Found { results, has_more, range })
                }
            }
        }
        Query::Retention(query) => written(answer::retention(source, run, asked, query)?),
        Query::Paths(query) => written(answer::paths(source, run, asked, query)?),
        Query::Stickiness(query) => written(answer::stickiness(source, run, asked, query)?),
        Query::Lifecycle(query) => written(answer::lifecycle(source, run, asked, query)?),
        Query::WebOverview(query) => written(answer::web_overview(source, run, asked, query)?),
        Query::WebTrends(query) => written(answer::web_trends(source, run, asked, query)?),
        Query::WebTable(query) => {
            let found = answer::web_table(source, run, asked, query)?;
            let range = Some(found.range);
            let WebTableResult { columns, types, results, has_more, limit, offset } = found.results;
            let rows =
                RowsInfo { columns, types: json!(types), limit, offset, hogql: None, actors: None };
            Ok(Found { range, ..in_rows(&results, has_more, rows)? })
        }
        Query::Events(query) => {
            let EventsResult { columns, types, results, has_more, limit, offset, hogql } =
                answer::events(source, run, asked, query)?;
            let hogql = Some(hogql);
            let rows =
                RowsInfo { columns, types: json!(types), limit, offset, hogql, actors: None };
            in_rows(&results, has_more, rows)
        }
        Query::HogQL(query) => {
            let HogQLResult { query: _, columns, types, results, has_more, limit, offset, hogql } =
                answer::hogql(source, run, asked, query)?;
            let hogql = Some(hogql);
            let rows =
                RowsInfo { columns, types: json!(types), limit, offset, hogql, actors: None };
            in_rows(&results, has_more, rows)
        }
        Query::Actors(query) => {
            let found = answer::actors(source, run, asked, query)?;
            let actors =
                ActorsInfo { count: found.actors_count, missing: found.missing_actors_count };
            let rows = RowsInfo {
                columns: found.columns,
                types: Value::Null,
                limit: found.limit,
                offset: found.offset,
                hogql: None,
                actors: Some(actors),
            };
            in_rows(&found.results, found.has_more, rows)
        }
    }
}

fn written<T: Serialize>(found: answer::Found<T>) -> Result<Found, AnswerError> {
    let results = json_of(&found.results)?;
    Ok(Found { results, has_more: found.has_more, range: Some(found.range), rows: None })
}

fn in_rows(results: &[Vec<Value>], has_more: bool, rows: RowsInfo) -> Result<Found, AnswerError> {
    let results = json_of(&results)?;
    Ok(Found { results, has_more: Some(has_more), range: None, rows: Some(rows) })
}

fn json_of<T: Serialize>(results: &T) -> Result<Box<RawValue>, AnswerError> {
    let mut bytes = Bounded(Vec::new());
    let is_written = serde_json::to_writer(&mut bytes, results).is_ok();
    let text = String::from_utf8(bytes.0).ok().filter(|_| is_written);
    let results = text.and_then(|text| RawValue::from_string(text).ok());
    // Results are plain data, so there is no other reason.
    let too_large =
        || AnswerError::TooLarge { what: "bytes of results".to_owned(), limit: RESULT_BYTES };
    results.ok_or_else(too_large)
}

/// Bytes, at most [`RESULT_BYTES`].
struct Bounded(Vec<u8>);

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.0.len() + bytes.len() > RESULT_BYTES {
            return Err(std::io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_one_type_each() {
        let types_of = |types: Value| {
            let columns = Vec::new();
            let info = RowsInfo { columns, types, limit: 1, offset: 0, hogql: None, actors: None };
            info.column_types().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(types_of(json!(["String", "Int64"])), ["String", "Int64"]);
        assert_eq!(types_of(json!([["a", "String"], ["b", "Int64"]])), ["String", "Int64"]);
    }

    #[test]
    fn results_have_a_bound() {
        let found = |results: String| {
            let range = ResolvedRange {
                date_from: Timestamp::from_micros(0),
                date_to: Timestamp::from_micros(1),
            };
            written(answer::Found { results, has_more: None, range })
        };
        assert_eq!(found("x".repeat(9)).ok().unwrap().results.get(), "\"xxxxxxxxx\"");
        let refused = found("x".repeat(RESULT_BYTES)).err().unwrap();
        assert!(matches!(refused, AnswerError::TooLarge { limit: RESULT_BYTES, .. }));
    }
}
