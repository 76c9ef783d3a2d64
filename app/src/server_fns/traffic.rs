//! Traffic of a project over time.

use leptos::prelude::*;
use serde::{Deserialize, Serialize};
use weir_model::Timestamp;

#[cfg(feature = "ssr")]
use crate::context::{enter_project, ui_error};
use crate::error::UiError;
use crate::ui::field::parse_time;

/// Number of points of a trend.
const TREND: usize = 24;

/// Traffic of a project in a time range. Lists have one value for each step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TrafficView {
    /// Start time of each step.
    pub(crate) times: Vec<String>,
    /// End time of the last step.
    pub(crate) end: String,
    /// Length of a step, in seconds.
    pub(crate) step_seconds: i64,
    /// Number of stored events.
    pub(crate) accepted: Vec<u64>,
    /// Number of dropped events.
    pub(crate) dropped: Vec<u64>,
    /// Approximate number of stored events by their own time, if requested. `None` if there
    /// are too many to count.
    pub(crate) by_event_time: Option<Vec<u64>>,
    /// Number of refused requests.
    pub(crate) rejected: Vec<u64>,
    /// Median response time, in milliseconds.
    pub(crate) half: Vec<Option<u64>>,
    /// 95th percentile of the response time, in milliseconds.
    pub(crate) most: Vec<Option<u64>>,
    /// Bytes in the log that were not applied yet, for the whole instance.
    pub(crate) waiting: Vec<u64>,
    /// Size of the largest body, in bytes. `None` without requests.
    pub(crate) largest: Vec<Option<u64>>,
    /// Totals of the range.
    pub(crate) total: Totals,
    /// Totals of the previous range of the same length, if requested and still stored.
    pub(crate) before: Option<Totals>,
    /// Time at which the latest event was received.
    pub(crate) last_event: Option<String>,
    /// Counts over time by reason code.
    pub(crate) trends: Vec<(String, Vec<u64>)>,
    /// Requests without a known project, for staff only.
    pub(crate) unknown_senders: Option<UnknownSendersView>,
}

/// Totals of a range.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Totals {
    /// Number of stored events.
    pub(crate) accepted: u64,
    /// Number of dropped events.
    pub(crate) dropped: u64,
    /// Number of refused requests.
    pub(crate) rejected: u64,
    /// Number of requests answered with 200.
    pub(crate) requests: u64,
    /// Median response time, in milliseconds.
    pub(crate) half: Option<u64>,
    /// 95th percentile of the response time, in milliseconds.
    pub(crate) most: Option<u64>,
    /// Size of the largest body, in bytes.
    pub(crate) largest: u64,
    /// Average size of a body, in bytes.
    pub(crate) mean: u64,
    /// Refused requests by code.
    pub(crate) refusals: Vec<(String, u64)>,
}

/// Requests without a known project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UnknownSendersView {
    /// Refused requests by code.
    pub(crate) refusals: Vec<(String, u64)>,
    /// Requests with keys of no project.
    pub(crate) keys: Vec<UnknownView>,
}

/// Requests of one sender with a key of no project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UnknownView {
    /// The beginning of the key.
    pub(crate) mask: String,
    /// IP address of the sender.
    pub(crate) caller: String,
    /// Number of requests.
    pub(crate) count: u64,
    /// Time of the first request.
    pub(crate) first_at: String,
    /// Time of the last request.
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

/// The time range between two times of an address. The end is exclusive.
pub(crate) fn between(from: &str, to: &str) -> Option<(Timestamp, Timestamp)> {
    parse_time(from).zip(parse_time(to)).filter(|(from, to)| from < to)
}

/// Returns the traffic of a project between two times (the end is exclusive). Without
/// times, of a range that ends now: `1h`, `6h`, `24h`, `7d` or `30d`.
#[server(prefix = "/_fn", endpoint = "get_traffic")]
pub(crate) async fn get_traffic(
    project: i64,
    range: String,
    #[server(default)] from: String,
    #[server(default)] to: String,
    #[server(default)] compare: bool,
    #[server(default)] by_event_time: bool,
) -> Result<TrafficView, UiError> {
    use weir_service::traffic::{Range, Window};

    let (services, project) = enter_project(project).await?;
    let range = Range::from_text(&range).unwrap_or(Range::Day);
    let window = match between(&from, &to) {
        Some((from, to)) => Window::Between(from, to),
        None => Window::Last(range),
    };
    let report = services.traffic.report(&project, window, compare).await.map_err(ui_error)?;
    let by_event_time = match by_event_time {
        true => services.traffic.by_event_time(&project, window).await.map_err(ui_error)?,
        false => None,
    };
    let last = services.traffic.last_event(&project).await.map_err(ui_error)?;
    let unknown_senders =
        services.traffic.unknown_senders(&project, window).await.map_err(ui_error)?;
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
    let unknown_senders = unknown_senders.map(|found| UnknownSendersView {
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
        by_event_time,
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
        unknown_senders,
    })
}

/// The codes of refusals, the most frequent first.
fn refusals(reasons: std::collections::BTreeMap<String, u64>) -> Vec<(String, u64)> {
    use weir_model::traffic::Refusal;

    let mut found: Vec<(String, u64)> =
        reasons.into_iter().filter(|(code, _)| Refusal::of(code).is_some()).collect();
    found.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    found
}
