//! Dropped and altered events of a project, counted by reason.

use std::cmp::Reverse;

use leptos::prelude::*;
use serde::{Deserialize, Serialize};
use weir_model::live::Outcome;
use weir_model::outcomes::Meaning;

#[cfg(feature = "ssr")]
use crate::context::{enter_project, ui_error};
use crate::error::UiError;

/// Events on one page of the list.
const AFFECTED: usize = 50;

/// A reason with its count, as pages show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReasonView {
    /// The reason code. `weir_model::outcomes` has the texts.
    pub(crate) code: String,
    /// Number of events.
    pub(crate) count: u64,
    /// Time of the first event.
    pub(crate) first_at: String,
    /// Time of the last event.
    pub(crate) last_at: String,
    /// The newest stored sample.
    pub(crate) sample: Option<SampleView>,
}

/// A dropped or altered event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SampleView {
    /// When the server received it.
    pub(crate) received_at: String,
    /// Detail of the reason, such as the transformation that dropped the event.
    pub(crate) detail: Option<String>,
    /// Event name, if it had one.
    pub(crate) event: Option<String>,
    /// Distinct id, if it had one.
    pub(crate) distinct_id: Option<String>,
    /// The event as received; for a stored event, its properties. Long texts are
    /// truncated.
    pub(crate) payload: String,
}

/// An entry in the list of dropped and altered events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AffectedView {
    /// Reason codes. `weir_model::outcomes` has the texts.
    pub(crate) codes: Vec<String>,
    pub(crate) event: SampleView,
}

/// A page of the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AffectedPage {
    /// The events, newest first.
    pub(crate) events: Vec<AffectedView>,
    /// Cursor of older events.
    pub(crate) older: Option<String>,
    /// Reason codes of the project, for the filter.
    pub(crate) codes: Vec<String>,
    /// Number of events that cannot be read.
    pub(crate) unreadable: u64,
}

/// Lists dropped and altered events that were received between two times, optionally with
/// one reason code only.
#[server(prefix = "/_fn", endpoint = "list_affected")]
pub(crate) async fn list_affected(
    project: i64,
    #[server(default)] code: String,
    #[server(default)] from: String,
    #[server(default)] to: String,
    // Cursor of the previous page.
    #[server(default)] behind: String,
) -> Result<AffectedPage, UiError> {
    use weir_model::warnings::AffectedQuery;

    let (services, project) = enter_project(project).await?;
    let counts = services.events.warnings(&project).await.map_err(ui_error)?;
    let query = AffectedQuery {
        behind: behind.parse().ok(),
        limit: AFFECTED,
        ..crate::filters::affected(&code, &from, &to)
    };
    let page = services.events.affected(&project, &query).await.map_err(ui_error)?;
    let older = page.found.last().filter(|_| page.more).map(|(cursor, _)| cursor.to_string());
    let events = page.found.into_iter().map(|(cursor, event)| AffectedView {
        codes: event.codes,
        event: SampleView {
            received_at: cursor.received_at.to_string(),
            detail: event.detail,
            event: event.event,
            distinct_id: event.distinct_id,
            payload: event.payload,
        },
    });
    let codes = counts.into_iter().map(|counted| counted.code).collect();
    Ok(AffectedPage { events: events.collect(), older, codes, unreadable: page.unreadable })
}

/// Lists the reason codes of a project. Reasons for dropped events come first; within
/// each group the most recent first.
#[server(prefix = "/_fn", endpoint = "list_reasons")]
pub(crate) async fn list_reasons(project: i64) -> Result<Vec<ReasonView>, UiError> {
    let (services, project) = enter_project(project).await?;
    let mut counts = services.events.warnings(&project).await.map_err(ui_error)?;
    let is_dropped =
        |code: &str| Meaning::of(code).is_some_and(|found| found.outcome == Outcome::Dropped);
    counts.sort_by_key(|counted| (!is_dropped(&counted.code), Reverse(counted.last_at)));
    let reasons = counts.into_iter().map(|counted| ReasonView {
        sample: counted.samples.into_iter().next().map(|kept| SampleView {
            received_at: kept.received_at.to_string(),
            detail: kept.detail,
            event: kept.event,
            distinct_id: kept.distinct_id,
            payload: kept.payload,
        }),
        code: counted.code,
        count: counted.count,
        first_at: counted.first_at.to_string(),
        last_at: counted.last_at.to_string(),
    });
    Ok(reasons.collect())
}
