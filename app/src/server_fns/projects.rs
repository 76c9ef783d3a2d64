//! Projects.

use leptos::prelude::*;
use serde::{Deserialize, Serialize};
use weir_model::projects::RETENTION_DAYS_MAX;

#[cfg(feature = "ssr")]
use crate::context::{
    anyone, capture_host, enter_organization, enter_project, go, projects_changed,
    redirect_with_notice, ui_error,
};
use crate::error::UiError;

/// A project as pages show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProjectView {
    /// Number of the project.
    pub(crate) id: i64,
    /// Name of the project.
    pub(crate) name: String,
    /// Id of its organization.
    pub(crate) organization: String,
    /// Project key. It is public and write-only.
    pub(crate) key: String,
    /// Scheme and host of Weir.
    pub(crate) host: String,
    /// Where client libraries send events: the host, and the prefix if one is set.
    pub(crate) capture_host: String,
    /// IANA name of the time zone.
    pub(crate) timezone: String,
    /// Whether IP addresses of clients are removed from events.
    pub(crate) anonymize_ips: bool,
    /// Whether events are stored without persons.
    pub(crate) person_processing_opt_out: bool,
    /// Days that events are kept; `None`: for ever.
    pub(crate) event_retention_days: Option<i64>,
    /// Whether an event was ever stored.
    pub(crate) has_events: bool,
    /// Time of creation.
    pub(crate) created_at: String,
    /// Whether the user may rotate its keys.
    pub(crate) may_rotate: bool,
    /// Whether the user may change how long events are kept.
    pub(crate) may_change_retention: bool,
    /// Whether the user may delete it.
    pub(crate) may_delete: bool,
}

/// Amounts of a project's data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProjectFactsView {
    /// Number of stored events.
    pub(crate) events: u64,
    /// The earliest event time.
    pub(crate) first_event_at: Option<String>,
    /// The latest event time.
    pub(crate) last_event_at: Option<String>,
    /// Number of batch exports.
    pub(crate) exports: usize,
    /// Number of configs of transformations and other plugins.
    pub(crate) configs: usize,
}

/// Returns one project.
#[server(prefix = "/_fn", endpoint = "get_project")]
pub(crate) async fn get_project(id: i64) -> Result<ProjectView, UiError> {
    use weir_service::policy::Action;

    let (services, project) = enter_project(id).await?;
    let (_, visit) = anyone()?;
    let found = services.projects.get(&project).await.map_err(ui_error)?;
    let level = project.org.level;
    Ok(ProjectView {
        id,
        may_rotate: level >= Action::ResetProjectKeys.level(),
        may_change_retention: level >= Action::ChangeRetention.level(),
        may_delete: level >= Action::DeleteProject.level(),
        name: found.brief.name,
        organization: found.brief.organization.to_string(),
        key: found.brief.api_token,
        host: visit.origin,
        capture_host: capture_host()?,
        timezone: found.brief.timezone,
        anonymize_ips: found.anonymize_ips,
        person_processing_opt_out: found.person_processing_opt_out,
        event_retention_days: found.event_retention_days,
        has_events: found.brief.ingested_event,
        created_at: found.created_at.to_string(),
    })
}

/// Counts the data of a project, which is deleted with it.
#[server(prefix = "/_fn", endpoint = "get_project_facts")]
pub(crate) async fn get_project_facts(id: i64) -> Result<ProjectFactsView, UiError> {
    let (services, project) = enter_project(id).await?;
    let found = services.projects.facts(&project).await.map_err(ui_error)?;
    Ok(ProjectFactsView {
        events: found.events,
        first_event_at: found.first_event_at.map(|time| time.to_string()),
        last_event_at: found.last_event_at.map(|time| time.to_string()),
        exports: found.exports,
        configs: found.configs,
    })
}

/// Adds a project to an organization and redirects to its start page.
#[server(prefix = "/_fn", endpoint = "create_project")]
pub(crate) async fn create_project(
    organization: String,
    name: String,
    timezone: String,
) -> Result<(), UiError> {
    use weir_model::Patch;
    use weir_model::projects::ProjectPatch;

    let (services, org) = enter_organization(&organization).await?;
    let settings = ProjectPatch {
        name: Patch::Set(name),
        timezone: Patch::Set(timezone.trim().to_owned()),
        ..ProjectPatch::default()
    };
    let made = services.projects.create(&org, settings).await;
    let made = made.map_err(|error| in_words(ui_error(error)))?;
    projects_changed().await;
    go(&format!("/projects/{}/start", made.brief.id));
    Ok(())
}

/// Deletes the project with all its data, if its name was typed.
#[server(prefix = "/_fn", endpoint = "delete_project")]
pub(crate) async fn delete_project(id: i64, typed_name: String) -> Result<(), UiError> {
    let (services, project) = enter_project(id).await?;
    let present = services.projects.get(&project).await.map_err(ui_error)?.brief;
    if typed_name.trim() != present.name {
        let detail = format!("Type the name exactly: {}", present.name);
        return Err(UiError::field("typed_name", "mismatch", &detail));
    }
    services.projects.delete(&project).await.map_err(ui_error)?;
    projects_changed().await;
    let organization = format!("/organizations/{}", present.organization);
    redirect_with_notice(&organization, &format!("The project {} is deleted.", present.name));
    Ok(())
}

/// Updates the settings that were changed in the form.
#[server(prefix = "/_fn", endpoint = "update_project")]
pub(crate) async fn update_project(
    id: i64,
    #[server(default)] seen: String,
    name: String,
    timezone: String,
    // Browsers do not send unticked boxes.
    #[server(default)] anonymize_ips: bool,
    #[server(default)] person_processing_opt_out: bool,
) -> Result<(), UiError> {
    use weir_model::projects::ProjectPatch;

    use crate::edits::Edits;

    let (services, project) = enter_project(id).await?;
    let now = services.projects.get(&project).await.map_err(ui_error)?;
    let mut edits = Edits::of(&seen);
    let patch = ProjectPatch {
        name: edits.text("name", "Name", &name, &now.brief.name),
        timezone: edits.text("timezone", "Time zone", timezone.trim(), &now.brief.timezone),
        anonymize_ips: edits.tick(
            "anonymize_ips",
            "Remove client IP addresses from events",
            anonymize_ips,
            now.anonymize_ips,
        ),
        person_processing_opt_out: edits.tick(
            "person_processing_opt_out",
            "Store events without persons",
            person_processing_opt_out,
            now.person_processing_opt_out,
        ),
        ..ProjectPatch::default()
    };
    edits.check()?;
    let changed = services.projects.update(&project, patch).await;
    changed.map_err(|error| in_words(ui_error(error)))?;
    projects_changed().await;
    Ok(())
}

/// Sets how many days events are kept; empty: for ever. If that removes more events than
/// before, the name of the project must be typed.
#[server(prefix = "/_fn", endpoint = "set_event_retention")]
pub(crate) async fn set_event_retention(
    id: i64,
    #[server(default)] days: String,
    #[server(default)] retention_name: String,
) -> Result<(), UiError> {
    let (services, project) = enter_project(id).await?;
    let days = retention_days(&days)?;
    let changed = services.projects.set_retention(&project, days, &retention_name).await;
    changed.map_err(|error| match ui_error(error) {
        UiError::Field(fault) if fault.code == "mismatch" => {
            UiError::field("retention_name", &fault.code, &fault.detail)
        }
        other => other,
    })?;
    let kept = match days {
        Some(1) => "for 1 day".to_owned(),
        Some(days) => format!("for {days} days"),
        None => "for ever".to_owned(),
    };
    redirect_with_notice(&format!("/projects/{id}/settings"), &format!("Events are kept {kept}."));
    Ok(())
}

/// The entered days that events are kept; `None`: for ever.
pub(crate) fn retention_days(entered: &str) -> Result<Option<i64>, UiError> {
    let entered = entered.trim();
    if entered.is_empty() {
        return Ok(None);
    }
    let days = entered.parse().ok().filter(|days| (1..=RETENTION_DAYS_MAX).contains(days));
    let detail = format!("Enter a whole number from 1 to {RETENTION_DAYS_MAX}, or nothing.");
    days.map(Some).ok_or_else(|| UiError::field("days", "invalid", &detail))
}

/// Explains the format of a time zone in the error.
pub(super) fn in_words(error: UiError) -> UiError {
    match error {
        UiError::Field(fault) if fault.attr.as_deref() == Some("timezone") => UiError::field(
            "timezone",
            &fault.code,
            "Enter a time zone by its IANA name, such as UTC or Europe/Berlin.",
        ),
        other => other,
    }
}
