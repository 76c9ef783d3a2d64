//! The start page of a project: the test event, the checklist, and troubleshooting while
//! no event arrives.

use leptos::prelude::*;
use serde::{Deserialize, Serialize};

#[cfg(feature = "ssr")]
use crate::context::{anyone, enter_project, send_event, ui_error};
use crate::error::UiError;

/// After this time without an event, in seconds, a problem is likely.
const PATIENCE_SECONDS: i64 = 2 * 60;

/// The steps after the first event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ChecklistView {
    /// Whether the organization has another member or an invite.
    pub(crate) teammate: bool,
    /// Whether the user has a read-only key.
    pub(crate) read_only_key: bool,
    /// Whether the project has a batch export.
    pub(crate) export: bool,
    /// Whether the user has hidden the list.
    pub(crate) hidden: bool,
}

/// A request with another key that was probably meant for the project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StrayView {
    /// Time of the request.
    pub(crate) at: String,
    /// IP address of the client.
    pub(crate) address: String,
    /// What is wrong with its key, in words.
    pub(crate) key: String,
}

/// Troubleshooting data while no event arrives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StartHelpView {
    /// Whether an event would be expected by now.
    pub(crate) is_late: bool,
    /// Requests with another key, newest first.
    pub(crate) strays: Vec<StrayView>,
}

/// Returns the checklist of a project.
#[server(prefix = "/_fn", endpoint = "get_checklist")]
pub(crate) async fn get_checklist(id: i64) -> Result<ChecklistView, UiError> {
    let (services, project) = enter_project(id).await?;
    let found = services.projects.checklist(&project).await.map_err(ui_error)?;
    let weir_service::projects::Checklist { teammate, read_only_key, export, hidden } = found;
    Ok(ChecklistView { teammate, read_only_key, export, hidden })
}

/// Hides the checklist of a project for the user, or shows it again.
#[server(prefix = "/_fn", endpoint = "hide_checklist")]
pub(crate) async fn hide_checklist(id: i64, hidden: bool) -> Result<(), UiError> {
    let (services, project) = enter_project(id).await?;
    services.projects.set_checklist_hidden(&project, hidden).await.map_err(ui_error)
}

/// Returns the troubleshooting data.
#[server(prefix = "/_fn", endpoint = "get_start_help")]
pub(crate) async fn get_start_help(id: i64) -> Result<StartHelpView, UiError> {
    use weir_service::projects::{LikelyOrigin, UnknownKeyRequest};

    let (services, project) = enter_project(id).await?;
    let (_, visit) = anyone()?;
    let found = services.projects.get(&project).await.map_err(ui_error)?;
    let strays = services.projects.strays(&project, visit.peer.address).await.map_err(ui_error)?;
    let shown = |stray: UnknownKeyRequest| StrayView {
        at: stray.at.to_string(),
        address: stray.address.map(|address| address.to_string()).unwrap_or_default(),
        key: match stray.likeness {
            LikelyOrigin::Damaged => "a key that begins like this one and is cut or changed",
            LikelyOrigin::Ended => "the key that this project had before, which has ended",
            LikelyOrigin::Personal => "a personal API key, which cannot send events",
            LikelyOrigin::Other => "a key that no project here has",
        }
        .to_owned(),
    };
    let patient_until = found.created_at.plus_seconds(PATIENCE_SECONDS);
    Ok(StartHelpView {
        is_late: project.org.ctx.now > patient_until,
        strays: strays.into_iter().map(shown).collect(),
    })
}

/// Sends a test event to the project through capture, like a client.
#[server(prefix = "/_fn", endpoint = "send_test_event")]
pub(crate) async fn send_test_event(id: i64) -> Result<(), UiError> {
    let (services, project) = enter_project(id).await?;
    let found = services.projects.get(&project).await.map_err(ui_error)?;
    let body = serde_json::json!({
        "api_key": found.brief.api_token,
        "event": "test event",
        "distinct_id": "weir-start-page",
        "properties": { "$lib": "weir", "sent_from": "start page" },
    });
    match send_event(body.to_string()).await? {
        200..300 => Ok(()),
        503 => Err(ui_error(weir_service::Error::Unavailable("capture accepts no events now"))),
        status => {
            let detail = format!("Capture answered {status}: the event was not accepted.");
            Err(UiError::form("not_taken", &detail))
        }
    }
}
