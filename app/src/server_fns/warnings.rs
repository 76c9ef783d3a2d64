//! What was dropped or altered on its way into a project, counted by reason.

use std::cmp::Reverse;

use leptos::prelude::*;
use serde::{Deserialize, Serialize};
use weir_model::live::Outcome;
use weir_model::outcomes::Meaning;

use crate::context::{enter_project, ui_error};
use crate::error::UiError;

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
