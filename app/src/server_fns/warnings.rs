//! What was dropped or altered on its way into a project, counted by reason.

use std::cmp::Reverse;

use leptos::prelude::*;
use serde::{Deserialize, Serialize};
use weir_model::live::Outcome;
use weir_model::outcomes::Meaning;

use crate::context::{enter_project, ui_error};
use crate::error::UiError;

/// Events of one page of the list.
const AFFECTED: usize = 50;

/// One reason as pages show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReasonView {
    /// Its code, of which `weir_model::outcomes` knows the words.
    pub(crate) code: String,
    /// How many events.
    pub(crate) count: u64,
    /// First time.
    pub(crate) first_at: String,
    /// Last time.
    pub(crate) last_at: String,
    /// The newest one that was kept.
    pub(crate) sample: Option<SampleView>,
}

/// One event that was dropped or altered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SampleView {
    /// When it reached us.
    pub(crate) received_at: String,
    /// What the reason does not say: which transformation dropped it.
    pub(crate) detail: Option<String>,
    /// Name, if it had one.
    pub(crate) event: Option<String>,
    /// Whom it was about, if it said.
    pub(crate) distinct_id: Option<String>,
    /// As received (of a stored event: its properties), cut when long.
    pub(crate) payload: String,
}

/// A dropped or altered event in the list of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AffectedView {
    /// Codes, of which `weir_model::outcomes` knows the words.
    pub(crate) codes: Vec<String>,
    /// The event.
    pub(crate) event: SampleView,
}

/// A part of the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AffectedPage {
    /// The events, newest first.
    pub(crate) events: Vec<AffectedView>,
    /// Where older ones begin.
    pub(crate) older: Option<String>,
    /// Codes that were given in the project, to choose from.
    pub(crate) codes: Vec<String>,
    /// How many events cannot be read.
    pub(crate) unreadable: u64,
}

/// Dropped and altered events: of a code unless it is empty, that reached us between
/// two moments.
#[server(prefix = "/_fn", endpoint = "list_affected")]
pub(crate) async fn list_affected(
    project: i64,
    #[server(default)] code: String,
    #[server(default)] from: String,
    #[server(default)] to: String,
    // Where the page before ended.
    #[server(default)] behind: String,
) -> Result<AffectedPage, UiError> {
    use weir_model::warnings::AffectedQuery;

    use crate::ui::field::moment;

    let (services, project) = enter_project(project).await?;
    let counts = services.events.warnings(&project).await.map_err(ui_error)?;
    let query = AffectedQuery {
        code: Some(code).filter(|code| !code.is_empty()),
        // The moment itself belongs to what is shown.
        after: moment(&from)
            .map(|from| weir_model::Timestamp::from_micros(from.micros().saturating_sub(1))),
        before: moment(&to),
        behind: behind.parse().ok(),
        limit: AFFECTED,
        ..AffectedQuery::default()
    };
    let page = services.events.affected(&project, &query).await.map_err(ui_error)?;
    let older = page.found.last().filter(|_| page.more).map(|(place, _)| place.to_string());
    let events = page.found.into_iter().map(|(place, event)| AffectedView {
        codes: event.codes,
        event: SampleView {
            received_at: place.received_at.to_string(),
            detail: event.detail,
            event: event.event,
            distinct_id: event.distinct_id,
            payload: event.payload,
        },
    });
    let codes = counts.into_iter().map(|counted| counted.code).collect();
    Ok(AffectedPage { events: events.collect(), older, codes, unreadable: page.unreadable })
}

/// All reasons that were given in a project: those for which events are missing
/// come first, and of each kind the one that was seen last.
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
