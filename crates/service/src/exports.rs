//! Batch exports: the records, their schedule and what starts work on them
//! (service.md "Batch export", batch-exports 1, 4, 5, 7, 8).
//!
//! What belongs here: who may do what, what a change means, keeping secrets
//! sealed. What does not: running exports; the parts of a config
//! (`weir_model::exports`); the query language (`weir-export`).

mod backfill;
mod config;

use std::sync::Arc;

use weir_export::query;
use weir_model::activity::{Deed, Entry, Subject};
use weir_model::errors::FieldError;
use weir_model::exports::destinations::DestinationType;
use weir_model::exports::{
    BACKFILLS_MAX, BackfillInput, BatchExport, BatchExportInput, BatchExportPatch, Destination,
    Interval, NAME_MAX, Run,
};
use weir_model::pagination::{Page, Paged};
use weir_model::{BatchExportId, Patch, ProjectId, Timestamp, validate};
use weir_store::exports::{self as rows, BackfillRow, Changed, ExportRow, Of};
use weir_store::{ids, projects};

use crate::activity::{self, About, Changes};
use crate::ctx::{OrgCtx, ProjectCtx};
use crate::error::{Error, NOT_FOUND};
use crate::organizations::required;
use crate::policy::{self, Action};
use crate::{Core, Result, current};

/// How often a change is worked out anew when somebody else was faster.
const TRIES: usize = 5;

/// What a call about exports is within: an organization, or one project of it.
#[derive(Debug, Clone, Copy)]
pub struct Within<'a> {
    org: &'a OrgCtx,
    project: Option<ProjectId>,
}

impl<'a> From<&'a OrgCtx> for Within<'a> {
    fn from(org: &'a OrgCtx) -> Self {
        Self { org, project: None }
    }
}

impl<'a> From<&'a ProjectCtx> for Within<'a> {
    fn from(project: &'a ProjectCtx) -> Self {
        Self { org: &project.org, project: Some(project.project) }
    }
}

impl<'a> Within<'a> {
    /// The organization.
    #[must_use]
    pub fn org(self) -> &'a OrgCtx {
        self.org
    }
}

/// Batch exports.
#[derive(Clone)]
pub struct Exports {
    core: Arc<Core>,
}

impl Exports {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// The exports of the organization or the project, newest first.
    ///
    /// # Errors
    /// [`Error::MissingScope`].
    pub async fn list(&self, within: Within<'_>, page: Page) -> Result<Paged<BatchExport>> {
        policy::check(within.org, Action::ReadExports)?;
        let of = match within.project {
            Some(project) => Of::Project(project),
            None => Of::Organization(within.org.organization),
        };
        let mut ids = rows::ordered(&self.core.store, of).await?;
        ids.reverse();
        let count = ids.len() as u64;
        let page = page.slice(ids);
        let found = rows::rows(&self.core.store, within.org.organization, &page).await?;
        Ok(Paged { count, results: self.shown(found).await? })
    }

    /// One export.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::NotFound`].
    pub async fn get(&self, within: Within<'_>, export: &str) -> Result<BatchExport> {
        policy::check(within.org, Action::ReadExports)?;
        let row = self.find(within, export).await?;
        self.show(row).await
    }

    /// Creates an export.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::SignInAgain`], [`Error::Invalid`].
    pub async fn create(&self, within: Within<'_>, input: BatchExportInput) -> Result<BatchExport> {
        policy::check(within.org, Action::WriteExports)?;
        policy::recent_if_person(&within.org.ctx)?;
        let ctx = &within.org.ctx;
        let project = self.project(within, input.team_id).await?;
        let last_paused_at = input.last_paused_at.or(input.paused.then_some(ctx.now));
        let mut row = ExportRow {
            id: BatchExportId(ids::time_ordered(ctx.now)),
            organization: within.org.organization,
            project,
            name: validate::text("name", &input.name, NAME_MAX)?,
            kind: input.destination.name.to_owned(),
            config: String::new(),
            secrets: None,
            interval: input.interval.text().to_owned(),
            paused: input.paused,
            created_at: ctx.now,
            updated_at: ctx.now,
            last_paused_at,
            start_at: input.start_at,
            end_at: input.end_at,
            query: None,
            schema: None,
            revision: ids::time_ordered(ctx.now),
            latest: Vec::new(),
        };
        let whole = config::complete(input.destination, &input.config)?;
        let secrets = config::store(&self.core.sealer, &mut row, input.destination, &whole).await?;
        set_query(&mut row, input.hogql_query.as_deref())?;
        check(&row)?;
        let changes = changes(None, &row, secrets)?;
        let created = told(within, &row, Deed::Created, changes);
        if !rows::create(&self.core.store, &row, &[created]).await? {
            return Err(Error::NotFound(NOT_FOUND));
        }
        self.show(row).await
    }

    /// Changes an export. What is left out keeps, secrets too while address and
    /// user of the destination are the same.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::SignInAgain`], [`Error::NotFound`],
    /// [`Error::Invalid`].
    pub async fn update(
        &self,
        within: Within<'_>,
        export: &str,
        patch: BatchExportPatch,
    ) -> Result<BatchExport> {
        policy::check(within.org, Action::WriteExports)?;
        if patch.destination.is_some() || patch.config.is_some() {
            policy::recent_if_person(&within.org.ctx)?;
        }
        self.change(within, export, &Wish::Patch(patch)).await
    }

    /// Deletes an export with its runs and backfills.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::NotFound`].
    pub async fn delete(&self, within: Within<'_>, export: &str) -> Result<()> {
        policy::check(within.org, Action::WriteExports)?;
        let row = self.find(within, export).await?;
        let changes = Changes::none().field("name", &Some(&row.name), &None);
        let deleted = told(within, &row, Deed::Deleted, changes);
        Ok(rows::delete(&self.core.store, row.organization, row.id, &[deleted]).await?)
    }

    /// Pauses an export: the schedule starts no further runs. Pausing what is
    /// paused changes nothing.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::NotFound`].
    pub async fn pause(&self, within: Within<'_>, export: &str) -> Result<BatchExport> {
        let patch = BatchExportPatch { paused: Patch::Set(true), ..BatchExportPatch::default() };
        self.update(within, export, patch).await
    }

    /// Lets the schedule start runs again; with `backfill` what was missed is
    /// exported too. An export that is not paused stays as it is.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::NotFound`]; [`Error::TooMany`] when the
    /// project has too many backfills.
    pub async fn unpause(
        &self,
        within: Within<'_>,
        export: &str,
        backfill: bool,
    ) -> Result<BatchExport> {
        policy::check(within.org, Action::WriteExports)?;
        self.change(within, export, &Wish::Unpause { backfill }).await
    }

    /// Exports a stretch of time anew, beside the schedule.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::NotFound`], [`Error::Invalid`];
    /// [`Error::TooMany`] when the project has too many backfills.
    pub async fn backfill(
        &self,
        within: Within<'_>,
        export: &str,
        input: BackfillInput,
    ) -> Result<BatchExport> {
        policy::check(within.org, Action::WriteExports)?;
        self.change(within, export, &Wish::Backfill(input)).await
    }

    /// Works out a change of an export and stores it; anew when somebody else
    /// changed the export meanwhile.
    async fn change(&self, within: Within<'_>, export: &str, wish: &Wish) -> Result<BatchExport> {
        for _ in 0..TRIES {
            let before = self.find(within, export).await?;
            let Change { mut row, backfill, entries } =
                self.worked_out(within, &before, wish).await?;
            if entries.is_empty() {
                return self.show(before).await;
            }
            // A backfill alone is no change of the export.
            if row != before {
                row.updated_at = within.org.ctx.now;
                row.revision = ids::time_ordered(within.org.ctx.now);
            }
            let store = &self.core.store;
            let outcome = rows::update(
                store,
                &row,
                before.revision,
                backfill.as_ref(),
                BACKFILLS_MAX,
                &entries,
            )
            .await?;
            match outcome {
                Changed::Yes => {
                    let backfill_id = backfill.map(|backfill| backfill.id);
                    return Ok(BatchExport { backfill_id, ..self.show(row).await? });
                }
                Changed::TooManyBackfills => return Err(backfill::too_many()),
                Changed::Stale => {}
            }
        }
        Err(Error::Unavailable("the export is being changed by others"))
    }

    async fn worked_out(
        &self,
        within: Within<'_>,
        before: &ExportRow,
        wish: &Wish,
    ) -> Result<Change> {
        let now = within.org.ctx.now;
        match wish {
            Wish::Patch(patch) => {
                let (row, secrets) = self.patched(within, before, patch.clone()).await?;
                let changes = changes(Some(before), &row, secrets)?;
                let entries = (!changes.is_empty())
                    .then(|| told(within, &row, Deed::Updated, changes))
                    .into_iter()
                    .collect();
                Ok(Change { row, backfill: None, entries })
            }
            Wish::Unpause { backfill } => {
                let row = ExportRow { paused: false, ..before.clone() };
                if !before.paused {
                    return Ok(Change { row, backfill: None, entries: Vec::new() });
                }
                let missed = before.last_paused_at.unwrap_or(before.created_at);
                let backfill = (*backfill && missed < now)
                    .then(|| backfill::row(&row, Some(missed), now, now))
                    .transpose()?;
                let changes = changes(Some(before), &row, Vec::new())?;
                let mut entries = vec![told(within, &row, Deed::Updated, changes)];
                entries.extend(backfill.as_ref().map(|backfill| started(within, &row, backfill)));
                Ok(Change { row, backfill, entries })
            }
            Wish::Backfill(input) => {
                let (start, end) = backfill::bounds(input, interval(before)?, now)?;
                let backfill = backfill::row(before, start, end, now)?;
                let entries = vec![started(within, before, &backfill)];
                Ok(Change { row: before.clone(), backfill: Some(backfill), entries })
            }
        }
    }

    async fn patched(
        &self,
        within: Within<'_>,
        before: &ExportRow,
        patch: BatchExportPatch,
    ) -> Result<(ExportRow, Vec<String>)> {
        let mut row = before.clone();
        if let Some(name) = required("name", patch.name)? {
            row.name = validate::text("name", &name, NAME_MAX)?;
        }
        let present = config::kind(&before.kind)?;
        let kind = patch.destination.unwrap_or(present);
        let sent = patch.config.unwrap_or_default();
        let mut secrets = Vec::new();
        if kind != present {
            // Nothing of the old destination gets to the new one.
            let whole = config::complete(kind, &sent)?;
            row.kind = kind.name.to_owned();
            secrets = config::store(&self.core.sealer, &mut row, kind, &whole).await?;
        } else if !sent.0.is_empty() {
            let stored = config::open(&self.core.sealer, before)?;
            let whole = config::changed(kind, &stored, &sent)?;
            secrets = config::changed_secrets(kind, &stored, &whole);
            if whole != stored {
                config::store(&self.core.sealer, &mut row, kind, &whole).await?;
            }
        }
        if let Some(interval) = required("interval", patch.interval)? {
            row.interval = interval.text().to_owned();
        }
        let paused = required("paused", patch.paused)?.unwrap_or(before.paused);
        if paused && !before.paused {
            row.last_paused_at = Some(within.org.ctx.now);
        }
        row.paused = paused;
        row.last_paused_at = patch.last_paused_at.over(row.last_paused_at);
        row.start_at = patch.start_at.over(row.start_at);
        row.end_at = patch.end_at.over(row.end_at);
        match patch.hogql_query {
            Patch::Keep => {}
            Patch::Clear => set_query(&mut row, None)?,
            Patch::Set(query) => set_query(&mut row, Some(&query))?,
        }
        check(&row)?;
        Ok((row, secrets))
    }

    /// The project of a new export (batch-exports 8, "team_id").
    async fn project(&self, within: Within<'_>, chosen: Option<ProjectId>) -> Result<ProjectId> {
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
        if let Some(row) = current::project(&self.core, org.ctx.user()).await?
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

    /// The export of this id, where the caller looks for it.
    async fn find(&self, within: Within<'_>, export: &str) -> Result<ExportRow> {
        let missing = || Error::NotFound(NOT_FOUND);
        let id = parse_id(export).ok_or_else(missing)?;
        let found = rows::rows(&self.core.store, within.org.organization, &[id]).await?;
        let row = found.into_iter().next().ok_or_else(missing)?;
        match within.project {
            Some(project) if project != row.project => Err(missing()),
            _ => Ok(row),
        }
    }

    async fn show(&self, row: ExportRow) -> Result<BatchExport> {
        let shown = self.shown(vec![row]).await?.into_iter().next();
        shown.ok_or(Error::NotFound(NOT_FOUND))
    }

    async fn shown(&self, found: Vec<ExportRow>) -> Result<Vec<BatchExport>> {
        let runs = rows::latest_runs(&self.core.store, &found).await?;
        found.into_iter().zip(runs).map(|(row, runs)| shown(row, runs)).collect()
    }
}

/// What a call wants of an export.
enum Wish {
    Patch(BatchExportPatch),
    Unpause { backfill: bool },
    Backfill(BackfillInput),
}

/// What a call makes of an export. No entry: nothing.
struct Change {
    row: ExportRow,
    backfill: Option<BackfillRow>,
    entries: Vec<Entry>,
}

/// Reads a query and stores what it means; an empty one is none.
fn set_query(row: &mut ExportRow, text: Option<&str>) -> Result<()> {
    let text = text.map(str::trim).filter(|text| !text.is_empty());
    (row.query, row.schema) = match text {
        None => (None, None),
        Some(text) => {
            let fault = |error: query::QueryError| {
                FieldError::new("hogql_query", "invalid_input", error.to_string())
            };
            let parsed = query::parse(text).map_err(fault)?;
            let schema = query::schema(&parsed);
            let json = config::json(&schema)?;
            (Some(schema.hogql_query), Some(json))
        }
    };
    Ok(())
}

/// What holds between the fields of an export.
fn check(row: &ExportRow) -> Result<()> {
    if let (Some(start), Some(end)) = (row.start_at, row.end_at)
        && end <= start
    {
        let detail = "The end must be after the start.";
        return Err(FieldError::new("end_at", "invalid_input", detail).into());
    }
    if row.kind == "HTTP" && row.query.is_some() {
        let detail = "The destination HTTP takes whole events, so it has no query.";
        return Err(FieldError::new("hogql_query", "invalid_input", detail).into());
    }
    Ok(())
}

fn interval(row: &ExportRow) -> Result<Interval> {
    let unknown = || Error::Internal(format!("unknown interval `{}`", row.interval));
    Interval::of(&row.interval).ok_or_else(unknown)
}

/// The id in a path, in its usual written form only.
fn parse_id(text: &str) -> Option<BatchExportId> {
    let id: BatchExportId = text.parse().ok()?;
    text.eq_ignore_ascii_case(&id.to_string()).then_some(id)
}

/// What a change makes of the fields that people know; of secrets the names.
fn changes(before: Option<&ExportRow>, after: &ExportRow, secrets: Vec<String>) -> Result<Changes> {
    let destination = |row: &ExportRow| {
        config::shown(row).map(|config| Destination { kind: row.kind.clone(), config })
    };
    let destinations = (before.map(destination).transpose()?, Some(destination(after)?));
    let times = |time: Option<Option<Timestamp>>| time.flatten();
    let changes = Changes::none()
        .field("name", &before.map(|row| &row.name), &Some(&after.name))
        .field("destination", &destinations.0, &destinations.1)
        .field("interval", &before.map(|row| &row.interval), &Some(&after.interval))
        .field("paused", &before.map(|row| row.paused), &Some(after.paused))
        .field(
            "last_paused_at",
            &times(before.map(|row| row.last_paused_at)),
            &after.last_paused_at,
        )
        .field("start_at", &times(before.map(|row| row.start_at)), &after.start_at)
        .field("end_at", &times(before.map(|row| row.end_at)), &after.end_at)
        .field("hogql_query", &before.and_then(|row| row.query.as_ref()), &after.query.as_ref());
    let secret =
        |changes: Changes, name: String| changes.secret(&format!("destination__config__{name}"));
    Ok(secrets.into_iter().fold(changes, secret))
}

fn told(within: Within<'_>, row: &ExportRow, deed: Deed, changes: Changes) -> Entry {
    let about = About {
        subject: Subject::BatchExport,
        id: row.id.to_string(),
        name: Some(&row.name),
        project: Some(row.project),
    };
    activity::entry(&within.org.ctx, row.organization, about, deed, changes)
}

/// That a backfill was started.
fn started(within: Within<'_>, row: &ExportRow, backfill: &BackfillRow) -> Entry {
    let changes = Changes::none()
        .field("backfill", &None, &Some(backfill.id))
        .field("backfill_start_at", &None, &backfill.start_at)
        .field("backfill_end_at", &None, &Some(backfill.end_at));
    told(within, row, Deed::Triggered, changes)
}

fn shown(row: ExportRow, latest_runs: Vec<Run>) -> Result<BatchExport> {
    let config = config::shown(&row)?;
    let schema = row.schema.as_deref().map(config::read_json).transpose()?;
    Ok(BatchExport {
        interval: interval(&row)?,
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
        hogql_query: row.query,
        schema,
        backfill_id: None,
    })
}

#[cfg(test)]
mod tests;
