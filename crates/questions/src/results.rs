//! The shapes of results as API clients know them (QRY-22, QRY-23).
//!
//! What belongs here: members and texts of results, and building them from a question, its
//! buckets and numbers. What does not: computing the numbers (`evaluate`).

mod actors;
mod amount;
mod breakdown;
mod funnels;
mod lifecycle;
mod paths;
mod retention;
mod rows;
mod stickiness;
mod trends;
mod web;

use serde::{Deserialize, Serialize};

pub use actors::{Actor, ActorsResult};
pub use amount::Amount;
pub use breakdown::{BREAKDOWN_NULL, BREAKDOWN_OTHER, BreakdownValue};
pub use funnels::{FunnelStepResult, FunnelTrendResult, TimeToConvertResult, funnel_steps};
pub use lifecycle::LifecycleResult;
pub use paths::{PathResult, path_key};
pub use retention::{RetentionResult, RetentionValue, retention};
pub use rows::{EventsResult, HogQLResult};
pub use stickiness::StickinessResult;
pub use trends::{ActionResult, CompareLabel, TrendsResult, cumulative, with_formula};
pub use web::{WebOverviewItem, WebRow, WebTableResult, WebTrendsItem};

/// The dates of a result: the texts of its buckets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Axis {
    /// The beginning of each bucket, as `2026-08-21` or `2026-08-21 14:00:00`.
    pub days: Vec<String>,
    /// The text of each bucket for readers.
    pub labels: Vec<String>,
}

#[cfg(feature = "zones")]
impl From<&crate::time::Buckets> for Axis {
    fn from(buckets: &crate::time::Buckets) -> Self {
        Self { days: buckets.days().to_vec(), labels: buckets.labels().to_vec() }
    }
}

/// The answer to a question about persons: results, and what they were computed from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer<T> {
    /// The results.
    pub results: T,
    /// Whether there are more breakdown values or edges than results.
    #[serde(rename = "hasMore", default, skip_serializing_if = "Option::is_none")]
    pub has_more: Option<bool>,
    /// The range that was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_date_range: Option<ResolvedRange>,
    /// The time zone of the project.
    pub timezone: String,
    /// Whether the results were computed before.
    pub is_cached: bool,
    /// When the results were computed.
    pub last_refresh: weir_model::Timestamp,
}

/// The range of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResolvedRange {
    /// Its first instant.
    pub date_from: weir_model::Timestamp,
    /// Its last instant, which is included.
    pub date_to: weir_model::Timestamp,
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use weir_model::Timestamp;

    use super::*;

    #[test]
    fn an_answer_says_what_it_was_computed_from() {
        let time = |text: &str| Timestamp::parse(text).unwrap();
        let answer = Answer {
            results: vec![1, 2],
            has_more: None,
            resolved_date_range: Some(ResolvedRange {
                date_from: time("2026-08-14T00:00:00Z"),
                date_to: time("2026-08-21T23:59:59.999999Z"),
            }),
            timezone: "UTC".to_owned(),
            is_cached: false,
            last_refresh: time("2026-08-21T14:05:00Z"),
        };
        let value = serde_json::to_value(&answer).unwrap();
        let expected = json!({
            "results": [1, 2],
            "resolved_date_range": { "date_from": "2026-08-14T00:00:00Z",
                "date_to": "2026-08-21T23:59:59.999999Z" },
            "timezone": "UTC",
            "is_cached": false,
            "last_refresh": "2026-08-21T14:05:00Z",
        });
        assert_eq!(value, expected);
        assert_eq!(serde_json::from_value::<Answer<Vec<i32>>>(value).unwrap(), answer);
    }
}
