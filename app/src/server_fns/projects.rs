//! Projects.

use leptos::prelude::*;
use serde::{Deserialize, Serialize};

use crate::context::{anyone, enter_project, projects_changed, ui_error};
use crate::error::UiError;

/// A project as pages show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProjectView {
    /// Number.
    pub(crate) id: i64,
    /// Name.
    pub(crate) name: String,
    /// Id of its organization.
    pub(crate) organization: String,
    /// Project key: public, write only.
    pub(crate) key: String,
    /// Scheme and host that events are sent to.
    pub(crate) host: String,
    /// IANA name of the time zone.
    pub(crate) timezone: String,
    /// Whether client addresses are left out of events.
    pub(crate) anonymize_ips: bool,
    /// Whether events have no persons.
    pub(crate) person_processing_opt_out: bool,
    /// Whether an event was ever stored.
    pub(crate) has_events: bool,
    /// When it was created.
    pub(crate) created_at: String,
}

/// One project.
#[server(prefix = "/_fn", endpoint = "get_project")]
pub(crate) async fn get_project(id: i64) -> Result<ProjectView, UiError> {
    let (services, project) = enter_project(id).await?;
    let (_, visit) = anyone()?;
    let found = services.projects.get(&project).await.map_err(ui_error)?;
    Ok(ProjectView {
        id,
        name: found.brief.name,
        organization: found.brief.organization.to_string(),
        key: found.brief.api_token,
        host: visit.origin,
        timezone: found.brief.timezone,
        anonymize_ips: found.anonymize_ips,
        person_processing_opt_out: found.person_processing_opt_out,
        has_events: found.brief.ingested_event,
        created_at: found.created_at.to_string(),
    })
}

/// Changes the settings.
#[server(prefix = "/_fn", endpoint = "update_project")]
pub(crate) async fn update_project(
    id: i64,
    name: String,
    timezone: String,
    // A box that is not ticked is not sent.
    #[server(default)] anonymize_ips: bool,
    #[server(default)] person_processing_opt_out: bool,
) -> Result<(), UiError> {
    use weir_model::Patch;
    use weir_model::projects::ProjectPatch;

    let (services, project) = enter_project(id).await?;
    let patch = ProjectPatch {
        name: Patch::Set(name),
        timezone: Patch::Set(timezone.trim().to_owned()),
        anonymize_ips: Patch::Set(anonymize_ips),
        person_processing_opt_out: Patch::Set(person_processing_opt_out),
        ..ProjectPatch::default()
    };
    services.projects.update(&project, patch).await.map_err(|error| match ui_error(error) {
        UiError::Field(fault) if fault.attr.as_deref() == Some("timezone") => UiError::field(
            "timezone",
            &fault.code,
            "Enter a time zone by its IANA name, such as UTC or Europe/Berlin.",
        ),
        other => other,
    })?;
    projects_changed().await;
    Ok(())
}
