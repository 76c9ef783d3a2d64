//! Keys of a project: the project key for sending events, and the secret keys.

use leptos::prelude::*;
use serde::{Deserialize, Serialize};

#[cfg(feature = "ssr")]
use crate::context::{enter_project, notice, projects_changed, ui_error};
use crate::error::UiError;

/// The keys of a project as pages show them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProjectKeysView {
    /// Name of the project.
    pub(crate) name: String,
    /// The current project key.
    pub(crate) present: TrafficView,
    /// The previous project key while it is valid, and its expiry time.
    pub(crate) old: Option<(TrafficView, String)>,
    /// Start time of each step of the traffic.
    pub(crate) times: Vec<String>,
    /// The secret key, if the user may rotate it.
    pub(crate) secret: Option<String>,
    /// Whether there is a previous secret key. It is valid until it is deleted.
    pub(crate) has_secret_backup: bool,
    /// Whether the user may rotate the keys.
    pub(crate) may_rotate: bool,
}

/// Events received with a project key in the last seven days.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TrafficView {
    pub(crate) key: String,
    /// Number of events of the last day.
    pub(crate) day: u64,
    /// Number of events of the last seven days.
    pub(crate) week: u64,
    /// Time of the last event.
    pub(crate) last_at: Option<String>,
    /// Number of events of each step.
    pub(crate) steps: Vec<u64>,
}

#[cfg(feature = "ssr")]
fn traffic(found: weir_service::projects::KeyTraffic) -> TrafficView {
    TrafficView {
        day: found.day(),
        week: found.week(),
        last_at: found.last_at.map(|time| time.to_string()),
        key: found.token,
        steps: found.steps,
    }
}

/// Returns the keys of a project.
#[server(prefix = "/_fn", endpoint = "get_project_keys")]
pub(crate) async fn get_project_keys(id: i64) -> Result<ProjectKeysView, UiError> {
    use weir_service::policy::Action;

    let (services, project) = enter_project(id).await?;
    let shown = services.projects.get(&project).await.map_err(ui_error)?;
    let keys = services.projects.keys(&project).await.map_err(ui_error)?;
    let missing = || UiError::Internal { request_id: String::new() };
    let mut all = keys.traffic.into_iter().map(traffic);
    let present = all.next().ok_or_else(missing)?;
    let old = keys.previous.and_then(|old| Some((all.next()?, old.until.to_string())));
    Ok(ProjectKeysView {
        name: shown.brief.name,
        present,
        old,
        times: keys.times.iter().map(ToString::to_string).collect(),
        secret: shown.secret_api_token,
        has_secret_backup: shown.secret_api_token_backup.is_some(),
        may_rotate: project.org.level >= Action::ResetProjectKeys.level(),
    })
}

/// Rotates the project key. The old key stays valid during the overlap.
#[server(prefix = "/_fn", endpoint = "rotate_project_key")]
pub(crate) async fn rotate_project_key(id: i64, overlap: String) -> Result<(), UiError> {
    use weir_model::keys::Overlap;

    let (services, project) = enter_project(id).await?;
    let overlap = Overlap::parse(&overlap).map_err(UiError::Field)?;
    services.projects.rotate_token(&project, overlap).await.map_err(ui_error)?;
    projects_changed().await;
    notice(match overlap {
        Overlap::None => "The project has a new key. The old one no longer works.",
        Overlap::Hour | Overlap::Day | Overlap::Week => {
            "The project has a new key. Both keys work for now."
        }
    });
    Ok(())
}

/// Ends the previous project key.
#[server(prefix = "/_fn", endpoint = "end_old_project_key")]
pub(crate) async fn end_old_project_key(id: i64) -> Result<(), UiError> {
    let (services, project) = enter_project(id).await?;
    services.projects.end_previous_token(&project).await.map_err(ui_error)?;
    projects_changed().await;
    notice("The old key no longer works.");
    Ok(())
}

/// Rotates the secret key. The old one stays valid as the backup. Requires a recent
/// sign-in.
#[server(prefix = "/_fn", endpoint = "rotate_secret_key")]
pub(crate) async fn rotate_secret_key(id: i64) -> Result<(), UiError> {
    let (services, project) = enter_project(id).await?;
    services.projects.rotate_secret_token(&project).await.map_err(ui_error)?;
    notice("The project has a new secret key.");
    Ok(())
}

/// Deletes the backup of the secret key.
#[server(prefix = "/_fn", endpoint = "delete_secret_backup")]
pub(crate) async fn delete_secret_backup(id: i64) -> Result<(), UiError> {
    let (services, project) = enter_project(id).await?;
    services.projects.delete_secret_backup(&project).await.map_err(ui_error)?;
    notice("The secret key before the current one no longer works.");
    Ok(())
}
