//! The kinds of questions that are answered: the one place that a further kind is added to.

use std::io::Write;
use std::ops::Range;

use serde::Serialize;
use serde_json::value::RawValue;
use weir_answer::{self as answer, AnswerError, Asked, FunnelResults, Run, Source};
use weir_model::Timestamp;
use weir_model::errors::FieldError;
use weir_questions::Query;
use weir_questions::query::Scope;
use weir_questions::results::ResolvedRange;
use weir_questions::time::DateText;

use crate::Result;

/// The words of the kinds that are answered.
pub const KINDS: [&str; 6] = [
    "TrendsQuery",
    "FunnelsQuery",
    "RetentionQuery",
    "PathsQuery",
    "StickinessQuery",
    "LifecycleQuery",
];

/// The most bytes of the results of a question.
const RESULT_BYTES: usize = 16 << 20;

/// The results of a question.
pub(super) struct Found {
    results: Box<RawValue>,
    has_more: Option<bool>,
    range: ResolvedRange,
}

/// The results of a question, and when they were computed.
pub(super) struct Computed {
    pub(super) results: Box<RawValue>,
    pub(super) has_more: Option<bool>,
    pub(super) range: ResolvedRange,
    pub(super) at: Timestamp,
}

impl Found {
    pub(super) fn at(self, at: Timestamp) -> Computed {
        let Self { results, has_more, range } = self;
        Computed { results, has_more, range, at }
    }
}

/// Refuses a kind of question that has no answer here.
pub(super) fn check(query: &Query) -> Result<()> {
    match scope(query) {
        Some(_) => Ok(()),
        None => Err(unanswered(query).into()),
    }
}

fn unanswered(query: &Query) -> FieldError {
    let detail = format!("Questions of the kind {} are not answered.", query.kind());
    FieldError::new("kind", "invalid_choice", detail)
}

/// `None`: the kind has no answer here.
fn scope(query: &Query) -> Option<&Scope> {
    match query {
        Query::Trends(query) => Some(&query.scope),
        Query::Funnels(query) => Some(&query.scope),
        Query::Retention(query) => Some(&query.scope),
        Query::Paths(query) => Some(&query.scope),
        Query::Stickiness(query) => Some(&query.scope),
        Query::Lifecycle(query) => Some(&query.scope),
        Query::Events(_) | Query::HogQL(_) | Query::Actors(_) => None,
    }
}

/// Whether the range of a question begins with the first event.
pub(super) fn needs_earliest(query: &Query) -> bool {
    scope(query).is_some_and(|scope| scope.dates.date_from == Some(DateText::All))
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
        Query::Events(_) | Query::HogQL(_) | Query::Actors(_) => Err(unanswered(query).into()),
    }
}

/// Computes the answer. Blocks the thread.
pub(super) fn compute(
    source: &dyn Source,
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
        Query::Events(_) | Query::HogQL(_) | Query::Actors(_) => Err(unanswered(query).into()),
    }
}

fn written<T: Serialize>(found: answer::Found<T>) -> Result<Found, AnswerError> {
    let mut bytes = Bounded(Vec::new());
    let is_written = serde_json::to_writer(&mut bytes, &found.results).is_ok();
    let text = String::from_utf8(bytes.0).ok().filter(|_| is_written);
    let results = text.and_then(|text| RawValue::from_string(text).ok());
    // Results are plain data, so there is no other reason.
    let too_large =
        || AnswerError::TooLarge { what: "bytes of results".to_owned(), limit: RESULT_BYTES };
    let results = results.ok_or_else(too_large)?;
    Ok(Found { results, has_more: found.has_more, range: found.range })
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
