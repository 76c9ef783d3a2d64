//! Batch exports: the list, one export, pausing, resuming and deleting. Creating and
//! editing is in `form`, runs are in `runs`, backfills in `backfills`.

pub(crate) mod backfills;
pub(crate) mod config;
pub(crate) mod form;
pub(crate) mod runs;

use leptos::prelude::*;
use serde::{Deserialize, Serialize};
use server_fn::ServerFn;
use weir_model::exports::{BatchExport, Run};

#[cfg(feature = "ssr")]
use crate::context::{
    enter_organization, notice, notice_with_undo, redirect_with_notice, ui_error,
};
use crate::error::UiError;

/// An organization with the names that pages about exports show.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OrganizationView {
    /// Id of the organization.
    pub(crate) id: String,
    /// Name of the organization.
    pub(crate) name: String,
    /// Number and name of each project.
    pub(crate) projects: Vec<(i64, String)>,
}

impl OrganizationView {
    /// The name of a project.
    pub(crate) fn project(&self, id: i64) -> String {
        let found = self.projects.iter().find(|(project, _)| *project == id);
        found.map_or_else(|| format!("Project {id}"), |(_, name)| name.clone())
    }
}

impl From<weir_model::organizations::Organization> for OrganizationView {
    fn from(organization: weir_model::organizations::Organization) -> Self {
        let projects = organization.teams.into_iter();
        Self {
            id: organization.row.id.to_string(),
            name: organization.row.name,
            projects: projects.map(|project| (project.id.0, project.name)).collect(),
        }
    }
}

/// An export in the list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ExportRow {
    pub(crate) export: BatchExport,
    /// The condition: `failing`, `active` or `paused`.
    pub(crate) condition: String,
    /// The newest runs, newest first.
    pub(crate) recent: Vec<Run>,
    /// Start time of the next run.
    pub(crate) next_run: Option<String>,
}

/// A page of the list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ExportList {
    pub(crate) organization: OrganizationView,
    /// Total number of exports, without the filter.
    pub(crate) all: u64,
    /// Number of exports that match the filter.
    pub(crate) count: u64,
    /// The exports of this page.
    pub(crate) rows: Vec<ExportRow>,
}

/// One export, with the data that all its pages show.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ExportHead {
    pub(crate) organization: OrganizationView,
    pub(crate) export: BatchExport,
    /// The condition: `failing`, `active` or `paused`.
    pub(crate) condition: String,
    /// Start time of the next run.
    pub(crate) next_run: Option<String>,
    /// Whether the sign-in is recent enough to change the destination.
    pub(crate) recent_sign_in: bool,
}

/// Lists the exports of an organization, failing ones first.
#[server(prefix = "/_fn", endpoint = "list_exports")]
pub(crate) async fn list_exports(
    organization: String,
    name: String,
    state: String,
    destination: String,
    // Number of the project. Empty: all projects.
    #[server(default)] project: String,
    limit: u32,
    offset: u32,
) -> Result<ExportList, UiError> {
    use weir_model::pagination::Page;

    let (services, org) = enter_organization(&organization).await?;
    let query = crate::filters::exports(&name, &state, &destination, &project);
    let page = Page { limit: limit.min(1000).into(), offset: offset.into() };
    let found = services.exports.overview((&org).into(), &query, page).await.map_err(ui_error)?;
    let organization = services.organizations.get(&org).await.map_err(ui_error)?.into();
    let row = |one: weir_service::exports::ExportOverview| ExportRow {
        export: one.export,
        condition: one.condition.text().to_owned(),
        recent: one.recent,
        next_run: one.next_run.map(|next| next.to_string()),
    };
    Ok(ExportList {
        organization,
        all: found.all,
        count: found.found.count,
        rows: found.found.results.into_iter().map(row).collect(),
    })
}

/// Returns one export.
#[server(prefix = "/_fn", endpoint = "get_export")]
pub(crate) async fn get_export(
    organization: String,
    export: String,
) -> Result<ExportHead, UiError> {
    use weir_service::exports::Condition;
    use weir_service::policy;

    let (services, org) = enter_organization(&organization).await?;
    let found = services.exports.get((&org).into(), &export).await.map_err(ui_error)?;
    let organization = services.organizations.get(&org).await.map_err(ui_error)?.into();
    Ok(ExportHead {
        organization,
        condition: Condition::of_export(&found).text().to_owned(),
        next_run: weir_service::exports::next_run(&found, org.ctx.now).map(|next| next.to_string()),
        recent_sign_in: policy::recent_if_person(&org.ctx).is_ok(),
        export: found,
    })
}

#[server(prefix = "/_fn", endpoint = "pause_export")]
pub(crate) async fn pause_export(organization: String, export: String) -> Result<(), UiError> {
    let (services, org) = enter_organization(&organization).await?;
    let paused = services.exports.pause((&org).into(), &export).await.map_err(ui_error)?;
    let text = format!("Paused {}. Its schedule starts no runs.", paused.name);
    let fields = [("organization", organization.as_str()), ("export", export.as_str())];
    notice_with_undo(&text, UnpauseExport::PATH, &fields);
    Ok(())
}

/// Resumes the schedule of an export, optionally with a backfill of the missed intervals.
#[server(prefix = "/_fn", endpoint = "unpause_export")]
pub(crate) async fn unpause_export(
    organization: String,
    export: String,
    // Browsers do not send unticked boxes.
    #[server(default)] backfill: Option<String>,
) -> Result<(), UiError> {
    let (services, org) = enter_organization(&organization).await?;
    let backfill = backfill.is_some();
    let found =
        services.exports.unpause((&org).into(), &export, backfill).await.map_err(ui_error)?;
    if found.backfill_id.is_some() {
        notice(&format!("Unpaused {}. A backfill exports the missed events.", found.name));
        return Ok(());
    }
    let text = format!("Unpaused {}.", found.name);
    let fields = [("organization", organization.as_str()), ("export", export.as_str())];
    notice_with_undo(&text, PauseExport::PATH, &fields);
    Ok(())
}

/// Deletes an export if its name was typed.
#[server(prefix = "/_fn", endpoint = "delete_export")]
pub(crate) async fn delete_export(
    organization: String,
    export: String,
    typed_name: String,
) -> Result<(), UiError> {
    let (services, org) = enter_organization(&organization).await?;
    let present = services.exports.get((&org).into(), &export).await.map_err(ui_error)?;
    if typed_name.trim() != present.name {
        let detail = format!("Type the name exactly: {}", present.name);
        return Err(UiError::field("typed_name", "mismatch", &detail));
    }
    services.exports.delete((&org).into(), &export).await.map_err(ui_error)?;
    let text = format!("Deleted {}. Delivered rows stay at the destination.", present.name);
    redirect_with_notice(&format!("/organizations/{organization}/exports"), &text);
    Ok(())
}
