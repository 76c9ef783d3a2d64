//! Batch exports: the records, their schedule, and starting work on them (EXP-5,
//! EXP-6).
//!
//! What belongs here: who may do what, the meaning of a change, keeping secrets sealed.
//! What does not: running exports; the parts of a config (`weir_model::exports`); the
//! query language (`weir-query`).

mod backfill;
mod change;
mod config;
mod directories;
mod logs;
mod overview;
mod preview;
mod runs;
mod trial;
mod unattended;

use std::sync::Arc;

use serde_json::{Map, Value};
use tokio::sync::Mutex;
use weir_model::activity::AuditAction;
use weir_model::errors::FieldError;
use weir_model::exports::addresses::{Address, addresses};
use weir_model::exports::destinations::DestinationType;
use weir_model::exports::{
    BackfillInput, BatchExport, BatchExportInput, BatchExportPatch, Destination, EXPORTS_MAX,
    ExportModel, Failing, LATEST_RUNS, NAME_MAX, Run,
};
use weir_model::limits::LimitName;
use weir_model::pagination::{Page, Paged};
use weir_model::{BatchExportId, Patch, ProjectId, Timestamp, validate};
use weir_schedule::{Cadence, UTC};
use weir_store::exports::{self as rows, Backfilled, Created, ExportRow, Of};
use weir_store::{ids, organizations, projects};

use self::change::{ExportChange, audit_entry, changes, check, check_paused, set_query};
use crate::activity::Changes;
use crate::ctx::{OrgCtx, ProjectCtx};
use crate::error::{Error, NOT_FOUND};
use crate::policy::{self, Action};
use crate::projects::timezone;
use crate::unchecked::Unchecked;
use crate::{Core, Result, current, limits};

pub use overview::{Condition, ExportOverview, Overview, OverviewQuery};
pub use preview::BackfillPreview;
pub use runs::RunBeside;
pub use trial::{NewTrial, SentDestination, Trial};

/// The message for an address that is never connected to.
const INNER: &str = "This is on a network that this server does not connect to. The operator can \
                     allow it with egress_allow.";

/// The number of exports whose runs or settings are in memory at a time, where only a part
/// of them is needed.
const AT_A_TIME: usize = 32;

/// The scope of a call about exports: an organization, or one of its projects.
#[derive(Debug, Clone, Copy)]
pub struct ExportScope<'a> {
    org: &'a OrgCtx,
    project: Option<ProjectId>,
}

impl ExportScope<'_> {
    /// Hides an export of another organization, or of another project than the one of the
    /// request.
    fn require(&self, row: &ExportRow) -> Result<()> {
        let is_within = row.organization == self.org.organization
            && self.project.is_none_or(|project| project == row.project);
        is_within.then_some(()).ok_or(Error::NotFound(NOT_FOUND))
    }
}

impl<'a> From<&'a OrgCtx> for ExportScope<'a> {
    fn from(org: &'a OrgCtx) -> Self {
        Self { org, project: None }
    }
}

impl<'a> From<&'a ProjectCtx> for ExportScope<'a> {
    fn from(project: &'a ProjectCtx) -> Self {
        Self { org: &project.org, project: Some(project.project) }
    }
}

impl<'a> ExportScope<'a> {
    /// The organization.
    pub fn org(self) -> &'a OrgCtx {
        self.org
    }

    /// The owner whose exports are listed.
    fn of(self) -> Of {
        match self.project {
            Some(project) => Of::Project(project),
            None => Of::Organization(self.org.organization),
        }
    }
}

/// An export that is not paused and fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailingExport {
    /// The name of the export.
    pub name: String,
    /// Since when and why it fails.
    pub failing: Failing,
}

/// The rules about hosts that are never connected to.
pub trait HostPolicy: Send + Sync {
    /// Whether this host, as written, is refused. The addresses of a name are checked
    /// with every connection.
    fn refuses(&self, host: &str) -> bool;

    /// Why no connection to this address is possible, for people; none: one is
    /// possible.
    fn fault(&self, _address: &Address) -> Option<String> {
        None
    }
}

/// The service for batch exports.
#[derive(Clone)]
pub struct Exports {
    core: Arc<Core>,
    /// Locked while a directory of the server is checked and stored.
    directories: Arc<Mutex<()>>,
}

impl Exports {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core, directories: Arc::default() }
    }

    /// Checks the addresses of a destination when they are entered (EXP-4): those that
    /// it did not have `before`.
    fn judge(
        &self,
        kind: &DestinationType,
        config: &Map<String, Value>,
        before: Option<&Map<String, Value>>,
    ) -> Result<()> {
        let hosts = &self.core.hosts;
        let known = before.map(|before| addresses(kind, before)).unwrap_or_default();
        for found in addresses(kind, config).into_iter().filter(|found| !known.contains(found)) {
            let (attr, address) = found;
            let (Address::Host(text) | Address::Url(text)) = &address;
            let fault = match hosts.refuses(text) {
                true => Some(INNER.to_owned()),
                false => hosts.fault(&address),
            };
            if let Some(detail) = fault {
                return Err(FieldError::new(&attr, "invalid_input", detail).into());
            }
        }
        Ok(())
    }

    /// The exports of the organization or the project, newest first.
    ///
    /// # Errors
    /// [`Error::MissingScope`].
    pub async fn list(&self, within: ExportScope<'_>, page: Page) -> Result<Paged<BatchExport>> {
        policy::check(within.org, Action::ReadExports)?;
        let mut ids = rows::ordered(&self.core.store, within.of()).await?;
        ids.reverse();
        let count = ids.len() as u64;
        let page = page.slice(ids);
        let found = rows::rows(&self.core.store, within.org.organization, &page).await?;
        Ok(Paged { count, results: self.shown(found).await? })
    }

    /// The failing exports: those that are not paused and whose runs fail, even if they
    /// are retried. Those that fail longest first. Without exports this costs one read of
    /// an empty list.
    ///
    /// # Errors
    /// [`Error::MissingScope`].
    pub async fn failing(&self, within: ExportScope<'_>) -> Result<Vec<FailingExport>> {
        policy::check(within.org, Action::ReadExports)?;
        let store = &self.core.store;
        let ids = rows::ordered(store, within.of()).await?;
        let mut found = rows::briefs(store, within.org.organization, &ids).await?;
        found.retain(|row| !row.paused);
        let mut failing = Vec::new();
        for some in found.chunks(AT_A_TIME) {
            let runs = rows::decisive_runs(store, some, LATEST_RUNS).await?;
            failing.extend(some.iter().zip(runs).filter_map(|(row, runs)| {
                let failing = Failing::of(&runs)?;
                Some(FailingExport { name: row.name.clone(), failing })
            }));
        }
        failing.sort_by_key(|export| export.failing.since);
        Ok(failing)
    }

    /// One export.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::NotFound`].
    pub async fn get(&self, within: ExportScope<'_>, export: &str) -> Result<BatchExport> {
        policy::check(within.org, Action::ReadExports)?;
        let row = self.find(within, export).await?;
        self.show(row).await
    }

    /// Creates an export.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::SignInAgain`]; [`Error::Invalid`], also when the
    /// project has the maximum number of exports, or the organization as many as its limit
    /// (API-58).
    pub async fn create(
        &self,
        within: ExportScope<'_>,
        input: impl Into<Unchecked<'_, BatchExportInput>>,
    ) -> Result<BatchExport> {
        policy::check(within.org, Action::WriteExports)?;
        let input = input.into().read()?;
        policy::recent_if_person(&within.org.ctx)?;
        let ctx = &within.org.ctx;
        let project = self.project(within, input.team_id).await?;
        if let Some(time) = input.last_paused_at {
            check_paused(time, ctx.now)?;
        }
        let last_paused_at = input.last_paused_at.or(input.paused.then_some(ctx.now));
        let mut row = ExportRow {
            id: BatchExportId(ids::time_ordered(ctx.now)),
            organization: within.org.organization,
            project,
            name: validate::text("name", &input.name, NAME_MAX)?,
            kind: input.destination.name.to_owned(),
            config: String::new(),
            secrets: None,
            model: input.model.text().to_owned(),
            interval: input.interval.text().to_owned(),
            timezone: input.timezone.map(timezone).transpose()?.filter(|zone| zone != UTC),
            offset_day: input.offset_day,
            offset_hour: input.offset_hour,
            paused: input.paused,
            created_at: ctx.now,
            updated_at: ctx.now,
            last_paused_at,
            backfilled: Backfilled(None),
            start_at: input.start_at,
            end_at: input.end_at,
            query: None,
            schema: None,
            revision: ids::time_ordered(ctx.now),
            latest: Vec::new(),
        };
        let whole = config::complete(input.destination, &input.config)?;
        self.judge(input.destination, &whole, None)?;
        let _directories = self.directories.lock().await;
        self.check_directory(row.organization, input.destination, &whole).await?;
        let secrets = config::store(&self.core.sealer, &mut row, input.destination, &whole).await?;
        set_query(&mut row, input.hogql_query.as_deref())?;
        check(&row)?;
        let changes = changes(None, &row, secrets)?;
        let created = audit_entry(within, &row, AuditAction::Created, changes);
        let home = organizations::get(&self.core.store, row.organization).await?;
        let home = home.ok_or(Error::NotFound(NOT_FOUND))?;
        let most = limits::applying(&self.core, &home).refused_from(LimitName::Exports);
        match rows::create(&self.core.store, &row, EXPORTS_MAX, most, &[created]).await? {
            Created::Yes => self.show(row).await,
            Created::OverLimit => {
                Err(FieldError::body(limits::LIMIT_REACHED, limits::EXPORTS_FULL).into())
            }
            Created::TooMany => {
                let detail =
                    format!("A project may have at most {EXPORTS_MAX} exports. Delete one first.");
                Err(FieldError::body("invalid_input", detail).into())
            }
            Created::Gone => Err(Error::NotFound(NOT_FOUND)),
        }
    }

    /// Changes an export. Missing fields stay as they are; secrets too, while address
    /// and user of the destination are the same.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::SignInAgain`], [`Error::NotFound`],
    /// [`Error::Invalid`].
    pub async fn update(
        &self,
        within: ExportScope<'_>,
        export: &str,
        patch: impl Into<Unchecked<'_, BatchExportPatch>>,
    ) -> Result<BatchExport> {
        policy::check(within.org, Action::WriteExports)?;
        let id = self.find(within, export).await?.id;
        let patch = patch.into().read()?;
        if patch.destination.is_some() || patch.config.is_some() {
            policy::recent_if_person(&within.org.ctx)?;
        }
        self.change(within, id, &ExportChange::Patch(patch)).await
    }

    /// Deletes an export with its runs and backfills.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::NotFound`].
    pub async fn delete(&self, within: ExportScope<'_>, export: &str) -> Result<()> {
        policy::check(within.org, Action::WriteExports)?;
        let row = self.find(within, export).await?;
        let changes = Changes::none().field("name", &Some(&row.name), &None);
        let deleted = audit_entry(within, &row, AuditAction::Deleted, changes);
        Ok(rows::delete(&self.core.store, row.organization, row.id, &[deleted]).await?)
    }

    /// Pauses an export: its schedule starts no further runs. A paused export stays as
    /// it is.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::NotFound`].
    pub async fn pause(&self, within: ExportScope<'_>, export: &str) -> Result<BatchExport> {
        let patch = BatchExportPatch { paused: Patch::Set(true), ..BatchExportPatch::default() };
        self.update(within, export, patch).await
    }

    /// Lets the schedule start runs again. With `backfill` the missed intervals are
    /// exported too. An export that is not paused stays as it is.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::NotFound`]; [`Error::TooMany`] when the
    /// project has too many backfills.
    pub async fn unpause(
        &self,
        within: ExportScope<'_>,
        export: &str,
        backfill: impl Into<Unchecked<'_, bool>>,
    ) -> Result<BatchExport> {
        policy::check(within.org, Action::WriteExports)?;
        let id = self.find(within, export).await?.id;
        let backfill = backfill.into().read()?;
        self.change(within, id, &ExportChange::Unpause { backfill }).await
    }

    /// Exports a range of time again, independently of the schedule.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::NotFound`], [`Error::Invalid`];
    /// [`Error::TooMany`] when the project has too many backfills.
    pub async fn backfill(
        &self,
        within: ExportScope<'_>,
        export: &str,
        input: impl Into<Unchecked<'_, BackfillInput>>,
    ) -> Result<BatchExport> {
        policy::check(within.org, Action::WriteExports)?;
        let id = self.find(within, export).await?.id;
        let input = input.into().read()?;
        self.change(within, id, &ExportChange::Backfill(input)).await
    }

    /// The project of a new export (EXP-5).
    async fn project(
        &self,
        within: ExportScope<'_>,
        chosen: Option<ProjectId>,
    ) -> Result<ProjectId> {
        if let Some(project) = within.project {
            return Ok(project);
        }
        let (store, org) = (&self.core.store, within.org);
        if let Some(chosen) = chosen {
            let found = projects::find(store, chosen).await?;
            let is_ours = found.is_some_and(|row| row.brief.organization == org.organization)
                && policy::project_in_limits(&org.ctx, org.organization, chosen);
            let detail = format!("Object with id={chosen} does not exist.");
            let fault = || FieldError::new("team_id", "does_not_exist", detail).into();
            return if is_ours { Ok(chosen) } else { Err(fault()) };
        }
        if let Some(row) = current::project(&self.core, &org.ctx).await?
            && row.brief.organization == org.organization
            && policy::project_in_limits(&org.ctx, org.organization, row.brief.id)
        {
            return Ok(row.brief.id);
        }
        let mut oldest = projects::ordered(store, org.organization).await?.into_iter();
        let found =
            oldest.find(|project| policy::project_in_limits(&org.ctx, org.organization, *project));
        found.ok_or_else(|| {
            let detail = "The organization has no project.";
            FieldError::new("team_id", "required", detail).into()
        })
    }

    /// The export with this id, in the organization or project of the caller.
    async fn find(&self, within: ExportScope<'_>, export: &str) -> Result<ExportRow> {
        let missing = || Error::NotFound(NOT_FOUND);
        let id = parse_id(export).ok_or_else(missing)?;
        let found = rows::rows(&self.core.store, within.org.organization, &[id]).await?;
        let row = found.into_iter().next().ok_or_else(missing)?;
        within.require(&row)?;
        Ok(row)
    }

    async fn show(&self, row: ExportRow) -> Result<BatchExport> {
        let shown = self.shown(vec![row]).await?.into_iter().next();
        shown.ok_or(Error::NotFound(NOT_FOUND))
    }

    async fn shown(&self, found: Vec<ExportRow>) -> Result<Vec<BatchExport>> {
        let runs = rows::decisive_runs(&self.core.store, &found, LATEST_RUNS).await?;
        let show = |(row, mut runs): (ExportRow, Vec<Run>)| {
            let failing = Failing::of(&runs);
            runs.truncate(LATEST_RUNS);
            shown(row, runs, failing)
        };
        found.into_iter().zip(runs).map(show).collect()
    }
}

/// The schedule of an export.
fn cadence(row: &ExportRow) -> Result<Cadence> {
    let zone = row.timezone.as_deref();
    let known = Cadence::stored(&row.interval, zone, row.offset_day, row.offset_hour);
    let unknown = || Error::Internal(format!("unknown interval `{}` of {zone:?}", row.interval));
    known.ok_or_else(unknown)
}

/// When the schedule starts the next run of an export, if nothing changes until then;
/// none: it starts no more runs.
pub fn next_run(export: &BatchExport, now: Timestamp) -> Option<Timestamp> {
    Cadence::next_run(export, now)
}

fn model(row: &ExportRow) -> Result<ExportModel> {
    let unknown = || Error::Internal(format!("unknown model `{}`", row.model));
    ExportModel::of(&row.model).ok_or_else(unknown)
}

/// The id in a path. Only its usual written form is accepted.
fn parse_id(text: &str) -> Option<BatchExportId> {
    let id: BatchExportId = text.parse().ok()?;
    text.eq_ignore_ascii_case(&id.to_string()).then_some(id)
}

fn shown(row: ExportRow, latest_runs: Vec<Run>, failing: Option<Failing>) -> Result<BatchExport> {
    let config = config::shown(&row)?;
    let schema = row.schema.as_deref().map(config::read_json).transpose()?;
    Ok(BatchExport {
        model: model(&row)?,
        interval: cadence(&row)?.interval(),
        timezone: row.timezone.unwrap_or_else(|| UTC.to_owned()),
        offset_day: row.offset_day,
        offset_hour: row.offset_hour,
        id: row.id,
        team_id: row.project,
        name: row.name,
        destination: Destination { kind: row.kind, config },
        paused: row.paused,
        created_at: row.created_at,
        last_updated_at: row.updated_at,
        last_paused_at: row.last_paused_at,
        start_at: row.start_at,
        end_at: row.end_at,
        latest_runs,
        latest_error: failing.as_ref().and_then(|failing| failing.error.clone()),
        failing_since: failing.as_ref().map(|failing| failing.since),
        next_try_at: failing.and_then(|failing| failing.next_try),
        hogql_query: row.query,
        schema,
        backfill_id: None,
    })
}

#[cfg(test)]
mod tests;
