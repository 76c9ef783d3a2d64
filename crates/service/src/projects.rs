//! Projects: entering one, listing, creating, changing, deleting (API-26), and the
//! rules that capture needs.
//!
//! What belongs here: reading and changing a project for its caller. What does not:
//! levels and scopes (`policy`), stored events (`events`), keys and the organization of
//! a project (`projects::tokens`, `projects::moving`).

mod checklist;
mod facts;
mod misdirected;
mod moving;
mod tokens;
mod traffic;

use std::sync::Arc;

use weir_model::activity::{AuditAction, Entry, Subject};
use weir_model::errors::FieldError;
use weir_model::pagination::{Page, Paged};
use weir_model::projects::{
    DEFAULT_NAME, DESCRIPTION_MAX, ITEM_MAX, LIST_MAX, NAME_MAX, Project, ProjectBrief,
    ProjectPatch, ProjectSecrets, RETENTION_DAYS_MAX, WEEK_STARTS, removes_more, serde_object,
};
use weir_model::scopes::{Scope, ScopeObject};
use weir_model::{OrganizationId, Patch, ProjectId, Timestamp, validate};
use weir_store::projects::{self as rows, ProjectRow, ProjectRulesRow};
use weir_store::update::lock;
use weir_store::{groups, organizations as organization_rows};

use crate::activity::{self, About, Changes};
use crate::ctx::{Ctx, OrgCtx, ProjectCtx};
use crate::error::{Error, NOT_FOUND};
use crate::policy::{self, Action};
use crate::unchecked::Unchecked;
use crate::update::{stored, update};
use crate::{Core, Result, current, organizations, secrets};

pub use checklist::Checklist;
pub use facts::ProjectFacts;
pub use misdirected::{LikelyOrigin, UnknownKeyRequest};
pub use tokens::{PreviousKey, ProjectKeys};
pub use traffic::KeyTraffic;

use traffic::Traffic;

/// The message for a caller without a current project.
pub const NO_CURRENT: &str = "Project not found.";

/// The rules of a project that capture needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProjectRules {
    /// The project.
    pub id: ProjectId,
    /// The organization of the project.
    pub organization: OrganizationId,
    /// Whether IP addresses of clients are removed from events.
    pub anonymize_ips: bool,
    /// Whether events have no persons.
    pub person_processing_opt_out: bool,
    /// When the key of the request stops working; `None`: never.
    pub ends_at: Option<Timestamp>,
}

impl ProjectRules {
    /// Whether the key of the request works at this time.
    #[must_use]
    pub fn work_at(&self, now: Timestamp) -> bool {
        self.ends_at.is_none_or(|end| now < end)
    }
}

impl From<ProjectRulesRow> for ProjectRules {
    fn from(row: ProjectRulesRow) -> Self {
        Self {
            id: row.id,
            organization: row.organization,
            anonymize_ips: row.anonymize_ips,
            person_processing_opt_out: row.person_processing_opt_out,
            ends_at: row.ends_at,
        }
    }
}

/// The service for projects.
#[derive(Clone)]
pub struct Projects {
    core: Arc<Core>,
    traffic: Arc<Traffic>,
}

impl Projects {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core, traffic: Arc::default() }
    }

    /// Proves that the actor may see the project: a number or `@current`.
    ///
    /// # Errors
    /// [`Error::NotFound`], the same for an id that is malformed, unknown, of a project
    /// of others or outside the key's limits; [`Error::SecondFactorMissing`].
    pub async fn enter(&self, ctx: &Ctx, id: &str) -> Result<ProjectCtx> {
        let (row, missing) = if id == "@current" {
            (current::project(&self.core, ctx).await?, NO_CURRENT)
        } else {
            let project = ProjectId::in_path(id).ok_or(Error::NotFound(NOT_FOUND))?;
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
        policy::refuse_project_keys(ctx)?;
        self.list_within_limits(ctx, page).await
    }

    /// As [`list`](Self::list), also for keys that are limited to projects: they see those.
    ///
    /// # Errors
    /// [`Error::MissingScope`].
    pub async fn list_within_limits(&self, ctx: &Ctx, page: Page) -> Result<Paged<ProjectBrief>> {
        ctx.require(Scope::read(ScopeObject::Project))?;
        Ok(page.of(self.within_limits(ctx).await?))
    }

    /// The project of a caller who has exactly one. It is named by no answer, so it needs no
    /// scope.
    ///
    /// # Errors
    /// As [`enter`](Self::enter).
    pub async fn only(&self, ctx: &Ctx) -> Result<Option<ProjectCtx>> {
        let store = &self.core.store;
        let mut only = None;
        for belonging in organization_rows::of_user(store, ctx.user()).await? {
            let organization = belonging.row.id;
            if !policy::organization_in_limits(ctx, organization) {
                continue;
            }
            for project in rows::ordered(store, organization).await? {
                if policy::project_in_limits(ctx, organization, project)
                    && only.replace(project).is_some()
                {
                    return Ok(None);
                }
            }
        }
        match only {
            Some(project) => self.enter(ctx, &project.to_string()).await.map(Some),
            None => Ok(None),
        }
    }

    /// The projects of all organizations of the caller within the limits of the key, by number.
    async fn within_limits(&self, ctx: &Ctx) -> Result<Vec<ProjectBrief>> {
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
        all.retain(|brief| policy::project_in_limits(ctx, brief.organization, brief.id));
        all.sort_by_key(|project| project.id);
        Ok(all)
    }

    /// The projects of an organization, by number.
    ///
    /// # Errors
    /// [`Error::MissingScope`].
    pub async fn list_in(&self, org: &OrgCtx, page: Page) -> Result<Paged<ProjectBrief>> {
        policy::check(org, Action::ReadProject)?;
        let (store, home) = (&self.core.store, org.organization);
        let mut ids = rows::ordered(store, home).await?;
        ids.retain(|project| policy::project_in_limits(&org.ctx, home, *project));
        let count = ids.len() as u64;
        let results = rows::briefs(store, home, &page.slice(ids)).await?;
        Ok(Paged { count, results })
    }

    /// Adds a project with these settings. It becomes the current project of the user,
    /// and of the session if there is one. Other sessions keep their current project.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::Forbidden`] below administrator and
    /// for keys that are limited to projects, [`Error::Invalid`].
    pub async fn create(&self, org: &OrgCtx, settings: ProjectPatch) -> Result<Project> {
        policy::check(org, Action::CreateProject)?;
        policy::refuse_project_keys(&org.ctx)?;
        let store = &self.core.store;
        let number = rows::next_number(store).await?;
        let token = secrets::project_key()?;
        let name = DEFAULT_NAME.to_owned();
        let mut row = ProjectRow::new(number, org.organization, name, token, org.ctx.now);
        apply_allowed(org, settings, &mut row)?;
        let changes = Changes::none().field("name", &None, &Some(&row.brief.name));
        let created = audit_entry(org, &row, AuditAction::Created, changes);
        if !rows::create(store, &row, org.ctx.user(), &[created]).await? {
            return Err(Error::NotFound(NOT_FOUND));
        }
        current::follow(&self.core, &org.ctx, org.organization, Some(number)).await;
        Ok(shown(org, row, Vec::new(), ProjectSecrets::default()))
    }

    /// The project.
    ///
    /// # Errors
    /// [`Error::MissingScope`].
    pub async fn get(&self, project: &ProjectCtx) -> Result<Project> {
        policy::check(&project.org, Action::ReadProject)?;
        let row = self.row(project).await?;
        self.show(&project.org, row).await
    }

    /// Changes the project's settings.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::Invalid`], [`Error::Forbidden`] below
    /// administrator if the change is one of how long events are kept.
    pub async fn update(
        &self,
        project: &ProjectCtx,
        patch: impl Into<Unchecked<'_, ProjectPatch>>,
    ) -> Result<Project> {
        policy::check(&project.org, Action::UpdateProject)?;
        self.update_if(project, patch.into().read()?, |_| Ok(())).await
    }

    /// Sets how many days events are kept; `None`: for ever. If that removes more events than
    /// before, `typed_name` must be the name of the project.
    ///
    /// # Errors
    /// As [`Self::update`]; [`Error::Invalid`] with the code `mismatch` for another name.
    pub async fn set_retention(
        &self,
        project: &ProjectCtx,
        days: Option<i64>,
        typed_name: &str,
    ) -> Result<Project> {
        policy::check(&project.org, Action::UpdateProject)?;
        // A user without the right need not type the name first.
        policy::check(&project.org, Action::ChangeRetention)?;
        let patch = ProjectPatch {
            event_retention_days: days.map_or(Patch::Clear, Patch::Set),
            ..ProjectPatch::default()
        };
        let is_confirmed = |row: &ProjectRow| {
            let name = &row.brief.name;
            if removes_more(row.event_retention_days, days) && typed_name.trim() != *name {
                let detail = format!("Type the name exactly: {name}");
                return Err(FieldError::new("typed_name", "mismatch", detail).into());
            }
            Ok(())
        };
        self.update_if(project, patch, is_confirmed).await
    }

    /// Changes settings if `check` accepts the row that is changed.
    async fn update_if(
        &self,
        project: &ProjectCtx,
        patch: ProjectPatch,
        check: impl Fn(&ProjectRow) -> Result<()>,
    ) -> Result<Project> {
        let org = &project.org;
        let change = |row: &mut ProjectRow| {
            if row.brief.organization != org.organization {
                return Err(Error::NotFound(NOT_FOUND));
            }
            check(row)?;
            apply_allowed(org, patch.clone(), row)
        };
        let entries = |before: &ProjectRow, after: &ProjectRow| {
            vec![audit_entry(org, before, AuditAction::Updated, Changes::between(before, after))]
        };
        let (id, now) = (project.project, org.ctx.now);
        let row = stored(update(&self.core, id, now, (), change, entries).await?)?;
        self.show(org, row).await
    }

    /// Deletes the project. Its keys stop working immediately; stored events are
    /// removed in the background.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::Forbidden`] below administrator.
    pub async fn delete(&self, project: &ProjectCtx) -> Result<()> {
        let org = &project.org;
        policy::check(org, Action::DeleteProject)?;
        let _permit = lock::<ProjectRow>(&self.core.store, &project.project).await;
        let row = self.row(project).await?;
        let changes = Changes::none().field("name", &Some(&row.brief.name), &None);
        let deleted = audit_entry(org, &row, AuditAction::Deleted, changes);
        let (home, now) = (org.organization, org.ctx.now);
        rows::delete(&self.core.store, home, project.project, now, &[deleted]).await?;
        tracing::info!(
            project.id = %project.project,
            organization.id = %home,
            user.id = %org.ctx.user(),
            request.id = org.ctx.request_id,
            "project deleted"
        );
        Ok(())
    }

    /// The working tokens of all projects, for the cache of capture.
    ///
    /// # Errors
    /// Any failure of the store.
    pub async fn all_tokens(&self) -> Result<Vec<(String, ProjectRules)>> {
        let now = self.core.clock.now();
        let all = rows::all_tokens(&self.core.store).await?.into_iter();
        let all = all.map(|(token, rules)| (token, ProjectRules::from(rules)));
        Ok(all.filter(|(_, rules)| rules.work_at(now)).collect())
    }

    /// The project of this token, while the token works.
    ///
    /// # Errors
    /// Any failure of the store.
    pub async fn by_token(&self, token: &str) -> Result<Option<ProjectRules>> {
        let now = self.core.clock.now();
        let found = rows::by_token(&self.core.store, token).await?.map(ProjectRules::from);
        Ok(found.filter(|rules| rules.work_at(now)))
    }

    /// The stored project, while it is in the organization that it was entered through.
    async fn row(&self, project: &ProjectCtx) -> Result<ProjectRow> {
        let row = rows::find(&self.core.store, project.project).await?;
        let row = row.filter(|row| row.brief.organization == project.org.organization);
        row.ok_or(Error::NotFound(NOT_FOUND))
    }

    async fn show(&self, org: &OrgCtx, row: ProjectRow) -> Result<Project> {
        let group_types = groups::types(&self.core.store, row.brief.id).await?;
        // A caller who may replace the secret keys may see them. A key that only reads
        // cannot see them.
        let secrets = match policy::check(org, Action::ResetProjectKeys) {
            Ok(()) => self.secrets(&row)?,
            Err(_refused) => ProjectSecrets::default(),
        };
        Ok(shown(org, row, group_types, secrets))
    }
}

/// Applies the settings, if the caller may make each of the changes. A retention that stays
/// the same is no change.
fn apply_allowed(org: &OrgCtx, patch: ProjectPatch, row: &mut ProjectRow) -> Result<()> {
    let before = row.event_retention_days;
    apply(patch, row)?;
    if row.event_retention_days != before {
        policy::check(org, Action::ChangeRetention)?;
    }
    Ok(())
}

/// Checks the settings in the order of the resource, and applies them.
fn apply(patch: ProjectPatch, row: &mut ProjectRow) -> Result<(), FieldError> {
    let brief = &mut row.brief;
    if let Some(name) = patch.name.required("name")? {
        brief.name = validate::text("name", &name, NAME_MAX)?;
    }
    let is_completed = patch.completed_snippet_onboarding;
    set(
        &mut brief.completed_snippet_onboarding,
        is_completed.required("completed_snippet_onboarding")?,
    );
    if let Some(name) = patch.timezone.required("timezone")? {
        brief.timezone = timezone(name)?;
    }
    if let Some(urls) = patch.app_urls.required("app_urls")? {
        row.app_urls = validate::texts("app_urls", &urls, LIST_MAX, ITEM_MAX)?;
    }
    set(&mut row.anonymize_ips, patch.anonymize_ips.required("anonymize_ips")?);
    set(
        &mut row.person_processing_opt_out,
        patch.person_processing_opt_out.required("person_processing_opt_out")?,
    );
    let names = patch.person_display_name_properties.try_map(|names| {
        validate::texts("person_display_name_properties", &names, LIST_MAX, ITEM_MAX)
    })?;
    row.person_display_name_properties = names.over(row.person_display_name_properties.take());
    row.week_start_day = patch.week_start_day.try_map(week_start_day)?.over(row.week_start_day);
    let days = patch.event_retention_days.try_map(|days| {
        validate::within("event_retention_days", days, 1, RETENTION_DAYS_MAX).map(|()| days)
    })?;
    row.event_retention_days = days.over(row.event_retention_days);
    let description = patch
        .product_description
        .try_map(|text| validate::optional_text("product_description", &text, DESCRIPTION_MAX))?;
    row.product_description = description.over(row.product_description.take());
    Ok(())
}

fn set<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}

fn week_start_day(day: i64) -> Result<i64, FieldError> {
    if WEEK_STARTS.contains(&day) {
        return Ok(day);
    }
    Err(validate::invalid_choice("week_start_day", &day))
}

/// A time zone by its IANA name, in the spelling of the table.
///
/// # Errors
/// `invalid_choice` at `timezone`.
pub fn timezone(name: String) -> Result<String, FieldError> {
    match weir_schedule::zone_name(&name) {
        Some(known) if known == name => Ok(name),
        // The look-up ignores case, the result does not.
        Some(_) | None => Err(validate::invalid_choice("timezone", &name)),
    }
}

/// The audit entry about a project.
fn audit_entry(org: &OrgCtx, row: &ProjectRow, action: AuditAction, changes: Changes) -> Entry {
    let about = About {
        subject: Subject::Project,
        id: row.brief.id.to_string(),
        name: Some(&row.brief.name),
        project: Some(row.brief.id),
    };
    activity::entry(&org.ctx, org.organization, about, action, changes)
}

fn shown(
    org: &OrgCtx,
    row: ProjectRow,
    group_types: Vec<String>,
    secrets: ProjectSecrets,
) -> Project {
    Project {
        project_id: row.brief.id,
        created_at: row.created_at,
        updated_at: row.updated_at,
        effective_membership_level: Some(org.level),
        has_group_types: !group_types.is_empty(),
        group_types,
        app_urls: row.app_urls,
        anonymize_ips: row.anonymize_ips,
        person_processing_opt_out: row.person_processing_opt_out,
        test_account_filters: Vec::new(),
        data_attributes: vec!["data-attr".to_owned()],
        person_display_name_properties: row.person_display_name_properties,
        session_recording_opt_in: false,
        autocapture_opt_out: false,
        week_start_day: row.week_start_day,
        event_retention_days: row.event_retention_days,
        primary_dashboard: None,
        recording_domains: None,
        surveys_opt_in: None,
        heatmaps_opt_in: None,
        product_description: row.product_description,
        secret_api_token: secrets.primary,
        secret_api_token_backup: secrets.backup,
        default_modifiers: serde_object::Empty {},
        live_events_token: None,
        brief: row.brief,
    }
}

#[cfg(test)]
mod tests;
