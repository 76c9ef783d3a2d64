//! Trials of transformations with an event that is not stored.

use std::time::Duration;

use leptos::prelude::*;
use serde::{Deserialize, Serialize};
use weir_model::plugin_configs::DryOutcome;
#[cfg(feature = "ssr")]
use weir_service::plugin_configs::{Sample, Tried};

use super::object;
#[cfg(feature = "ssr")]
use crate::context::{enter_project, enter_with_token, go, ui_error};
use crate::error::UiError;

/// The key under which an event is kept for the trial page.
const FLASH: &str = "event to try";
/// Number of recent events to choose from.
const RECENT: usize = 20;
/// Value of the query parameter for an entered event.
pub(crate) const ENTERED: &str = "entered";
/// Value of the query parameter for the newest event.
pub(crate) const NEWEST: &str = "newest";

/// A stored event to choose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RecentEvent {
    /// Uuid of the event.
    pub(crate) uuid: String,
    /// Name of the event.
    pub(crate) event: String,
    /// Distinct id of the event.
    pub(crate) distinct_id: String,
    /// Event time.
    pub(crate) at: String,
}

/// The result of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct TriedView {
    /// The event before, as JSON.
    pub(crate) before: String,
    /// The event after all transformations, as JSON. `None`: it was dropped.
    pub(crate) after: Option<String>,
    /// The result of each transformation.
    pub(crate) steps: Vec<StepView>,
}

/// The result of one transformation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct StepView {
    /// Name of the config.
    pub(crate) name: String,
    /// The outcome for the event.
    pub(crate) outcome: DryOutcome,
    /// The error, if there was one.
    pub(crate) error: Option<String>,
    /// Duration in microseconds.
    pub(crate) took: u64,
    /// Lines that the plugin wrote into its log.
    pub(crate) logs: Vec<String>,
}

/// Lists the newest events of a project.
#[server(prefix = "/_fn", endpoint = "recent_events")]
pub(crate) async fn recent_events(project: i64) -> Result<Vec<RecentEvent>, UiError> {
    use weir_model::events::EventQuery;
    use weir_service::scan::SCAN_TIME;

    let (services, ctx) = enter_project(project).await?;
    let query = EventQuery { limit: RECENT, ..EventQuery::default() };
    let found = services.events.list(&ctx, &query, SCAN_TIME).await.map_err(ui_error)?;
    let event = |event: weir_model::events::Event| RecentEvent {
        uuid: event.uuid.to_string(),
        event: event.event,
        distinct_id: event.distinct_id,
        at: event.timestamp.to_string(),
    };
    Ok(found.events.into_iter().map(event).collect())
}

/// Keeps an entered event and redirects to the trial page. The event is stored for one
/// view only.
#[server(prefix = "/_fn", endpoint = "try_plugin_config")]
pub(crate) async fn try_plugin_config(
    project: i64,
    #[server(default)] config: Option<String>,
    sample: String,
) -> Result<(), UiError> {
    use weir_service::identity::FLASH_MAX;

    let (services, ctx, token) = enter_with_token()?;
    let sample = sample.trim();
    object("sample", sample)?;
    if sample.len() > FLASH_MAX {
        let detail = format!("The event may have at most {FLASH_MAX} bytes here.");
        return Err(UiError::field("sample", "max_length", &detail));
    }
    services.identity.put_flash(&ctx, &token, FLASH, sample).await.map_err(ui_error)?;
    let page = config.filter(|config| !config.is_empty());
    let page = page.unwrap_or_else(|| "try".to_owned());
    go(&format!("/projects/{project}/transformations/{page}?sample={ENTERED}#try"));
    Ok(())
}

/// Runs transformations with an event: the newest, the entered one, which is available
/// once, or a stored one by its uuid. `None`: the event does not exist.
#[server(prefix = "/_fn", endpoint = "see_trial")]
pub(crate) async fn see_trial(
    project: i64,
    config: Option<String>,
    sample: String,
) -> Result<Option<TriedView>, UiError> {
    let (services, ctx) = enter_project(project).await?;
    let sample = match sample.as_str() {
        NEWEST => Sample::Newest,
        ENTERED => {
            let (_, person, token) = enter_with_token()?;
            let kept = services.identity.take_flash(&person, &token, FLASH).await;
            let Some(kept) = kept.map_err(ui_error)? else { return Ok(None) };
            Sample::Given(object("sample", &kept)?)
        }
        id => match id.parse() {
            Ok(id) => Sample::Stored(id),
            Err(_) => return Ok(None),
        },
    };
    let tried = services.plugin_configs.compare(&ctx, config.as_deref(), sample).await;
    match tried {
        Ok(tried) => Ok(Some(TriedView::from(tried))),
        Err(weir_service::Error::NotFound(_)) => Ok(None),
        Err(error) => Err(ui_error(error)),
    }
}

/// Converts milliseconds of the API to whole microseconds.
fn microseconds(milliseconds: f64) -> u64 {
    let took = Duration::try_from_secs_f64(milliseconds / 1_000.0).unwrap_or_default();
    u64::try_from(took.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(feature = "ssr")]
impl From<Tried> for TriedView {
    fn from(tried: Tried) -> Self {
        let step = |step: weir_model::plugin_configs::DryStep| StepView {
            name: step.name,
            outcome: step.outcome,
            error: step.error,
            took: microseconds(step.duration_ms),
            logs: step.logs,
        };
        Self {
            before: tried.before.text().to_owned(),
            after: tried.run.event.map(|event| event.text().to_owned()),
            steps: tried.run.results.into_iter().map(step).collect(),
        }
    }
}
