//! What reached a project, counted over time.

use leptos::prelude::*;
use serde::{Deserialize, Serialize};
use weir_model::Timestamp;

use crate::context::{enter_project, ui_error};
use crate::error::UiError;
use crate::ui::field::moment;

/// Points of a trend.
const TREND: usize = 24;

/// What reached a project within a range.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TrafficView {
    /// When each step begins.
    pub(crate) times: Vec<String>,
    /// When the last one ends.
    pub(crate) end: String,
    /// Seconds of a step.
    pub(crate) step_seconds: i64,
    /// Events that were stored.
    pub(crate) accepted: Vec<u64>,
    /// Events that were not.
    pub(crate) dropped: Vec<u64>,
    /// Requests that were refused.
    pub(crate) rejected: Vec<u64>,
    /// Milliseconds within which half of the requests were answered.
    pub(crate) half: Vec<Option<u64>>,
    /// The same for 95 of 100.
    pub(crate) most: Vec<Option<u64>>,
    /// Bytes that waited to be applied, of the whole instance.
    pub(crate) waiting: Vec<u64>,
    /// Bytes of the largest body; none without requests.
    pub(crate) largest: Vec<Option<u64>>,
    /// All of it together.
    pub(crate) total: Totals,
    /// The same for as long before, if asked for and kept.
    pub(crate) before: Option<Totals>,
    /// When the latest event came.
    pub(crate) last_event: Option<String>,
    /// Codes with how often each was given, over time.
    pub(crate) trends: Vec<(String, Vec<u64>)>,
    /// What is about the instance, for those who run it.
    pub(crate) strangers: Option<StrangersView>,
}

/// Sums over a range.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Totals {
    /// Events that were stored.
    pub(crate) accepted: u64,
    /// Events that were not.
    pub(crate) dropped: u64,
    /// Requests that were refused.
    pub(crate) rejected: u64,
    /// Requests that were answered with 200.
    pub(crate) requests: u64,
    /// Milliseconds within which half of them were answered.
    pub(crate) half: Option<u64>,
    /// The same for 95 of 100.
    pub(crate) most: Option<u64>,
    /// Bytes of the largest body.
    pub(crate) largest: u64,
    /// Bytes of a body on average.
    pub(crate) mean: u64,
    /// Refusals by code.
    pub(crate) refusals: Vec<(String, u64)>,
}

/// Requests of which no project is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StrangersView {
    /// Refusals by code.
    pub(crate) refusals: Vec<(String, u64)>,
    /// Keys that no project has.
    pub(crate) keys: Vec<UnknownView>,
}

/// Requests with a key that no project has, from one sender.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UnknownView {
    /// The beginning of the key.
    pub(crate) mask: String,
    /// Address of the sender.
    pub(crate) caller: String,
    /// How many requests.
    pub(crate) count: u64,
    /// The first one.
    pub(crate) first_at: String,
    /// The last one.
    pub(crate) last_at: String,
}

impl From<weir_model::traffic::Counts> for Totals {
    fn from(counts: weir_model::traffic::Counts) -> Self {
        let requests = counts.requests + counts.rejected;
        Self {
            accepted: counts.accepted,
            dropped: counts.dropped,
            rejected: counts.rejected,
            requests: counts.requests,
            half: counts.within(50),
            most: counts.within(95),
            largest: counts.largest,
            mean: counts.bytes / requests.max(1),
            refusals: refusals(counts.reasons),
        }
    }
}

/// The time from one moment to before another, as an address has them.
pub(crate) fn between(from: &str, to: &str) -> Option<(Timestamp, Timestamp)> {
    moment(from).zip(moment(to)).filter(|(from, to)| from < to)
}

/// What reached a project from one moment to before another or, where these are
/// none, within a range that ends now: `1h`, `6h`, `24h`, `7d` or `30d`.
#[server(prefix = "/_fn", endpoint = "get_traffic")]
pub(crate) async fn get_traffic(
    project: i64,
    range: String,
    #[server(default)] from: String,
    #[server(default)] to: String,
    #[server(default)] compare: bool,
) -> Result<TrafficView, UiError> {
    use weir_service::traffic::{Range, Window};

    let (services, project) = enter_project(project).await?;
    let range = Range::from_text(&range).unwrap_or(Range::Day);
    let window = match between(&from, &to) {
        Some((from, to)) => Window::Between(from, to),
        None => Window::Last(range),
    };
    let report = services.traffic.report(&project, window, compare).await.map_err(ui_error)?;
    let last = services.traffic.last_event(&project).await.map_err(ui_error)?;
    let strangers = services.traffic.strangers(&project, window).await.map_err(ui_error)?;
    let steps = &report.steps;
    let of = |value: fn(&weir_model::traffic::Counts) -> u64| {
        steps.iter().map(|(_, counts)| value(counts)).collect::<Vec<u64>>()
    };
    let trends = report.total.reasons.keys().map(|code| {
        let each =
            |counts: &weir_model::traffic::Counts| counts.reasons.get(code).copied().unwrap_or(0);
        let values: Vec<u64> = steps.iter().map(|(_, counts)| each(counts)).collect();
        let together = values.len().div_ceil(TREND).max(1);
        (
            code.clone(),
            values.chunks(together).map(|some| some.iter().sum::<u64>()).collect::<Vec<u64>>(),
        )
    });
    let within = |hundredths| {
        steps.iter().map(|(_, counts)| counts.within(hundredths)).collect::<Vec<Option<u64>>>()
    };
    let strangers = strangers.map(|found| StrangersView {
        refusals: refusals(found.refused),
        keys: found
            .keys
            .into_iter()
            .map(|key| UnknownView {
                mask: key.mask,
                caller: key.caller,
                count: key.count,
                first_at: key.first_at.to_string(),
                last_at: key.last_at.to_string(),
            })
            .collect(),
    });
    Ok(TrafficView {
        times: steps.iter().map(|(at, _)| at.to_string()).collect(),
        end: steps
            .last()
            .map(|(at, _)| at.plus_seconds(report.step_seconds).to_string())
            .unwrap_or_default(),
        step_seconds: report.step_seconds,
        accepted: of(|counts| counts.accepted),
        dropped: of(|counts| counts.dropped),
        rejected: of(|counts| counts.rejected),
        half: within(50),
        most: within(95),
        waiting: report.waiting.clone(),
        largest: steps
            .iter()
            .map(|(_, counts)| Some(counts.largest).filter(|_| !counts.is_silent()))
            .collect(),
        trends: trends.collect(),
        total: Totals::from(report.total.clone()),
        before: report.before.clone().map(Totals::from),
        last_event: last.map(|time| time.to_string()),
        strangers,
    })
}

/// The codes that are refusals, the most frequent first.
fn refusals(reasons: std::collections::BTreeMap<String, u64>) -> Vec<(String, u64)> {
    use weir_model::traffic::Refusal;

    let mut found: Vec<(String, u64)> =
        reasons.into_iter().filter(|(code, _)| Refusal::of(code).is_some()).collect();
    found.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    found
}
