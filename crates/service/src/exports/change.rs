//! Changes of an export: computed from the stored row, and written only if the row has
//! not changed since.
//!
//! What belongs here: the row after a change, and its audit entries. What does not: who
//! may ask for the change.

use serde_json::Value;
use weir_model::activity::{AuditAction, Entry, Subject};
use weir_model::errors::FieldError;
use weir_model::exports::{
    BACKFILLS_MAX, Backfill, BackfillInput, BatchExport, BatchExportPatch, Destination,
    ExportModel, Interval, LAST_DAY, LAST_HOUR, NAME_MAX, Run, Status,
};
use weir_model::{BatchExportId, Patch, Timestamp, validate};
use weir_query as query;
use weir_schedule::UTC;
use weir_store::exports::{
    self as rows, BackfillRow, Backfilled, BackfilledPause, ExportRow, NewBackfill,
    TOO_MANY_BACKFILLS,
};
use weir_store::update::{Updated, update_with};

use super::{ExportScope, Exports, backfill, cadence, config, model};
use crate::Result;
use crate::activity::{self, About, Changes};
use crate::error::{Error, NOT_FOUND};
use crate::projects::timezone;
use crate::update;

impl Exports {
    /// Changes an export. A change that has nothing to do writes nothing.
    pub(super) async fn change(
        &self,
        within: ExportScope<'_>,
        export: BatchExportId,
        wanted: &ExportChange,
    ) -> Result<BatchExport> {
        let _directories = match wanted {
            ExportChange::Patch(patch) if patch.destination.is_some() || patch.config.is_some() => {
                Some(self.directories.lock().await)
            }
            _ => None,
        };
        let now = within.org.ctx.now;
        let change = |before: ExportRow| async move {
            within.require(&before)?;
            let Computed { row, backfill, entries } =
                self.computed(within, &before, wanted).await?;
            let backfill_id = backfill.as_ref().map(|backfill| backfill.id);
            let with = backfill.map(|row| NewBackfill { row, most: BACKFILLS_MAX });
            Ok::<_, Error>((update::change(before, row, now, entries, with), backfill_id))
        };
        match update_with(&self.core.store, export, (), change).await? {
            Updated::Stored((row, backfill_id)) => {
                Ok(BatchExport { backfill_id, ..self.show(row).await? })
            }
            Updated::Refused(reason) if reason == TOO_MANY_BACKFILLS => Err(backfill::too_many()),
            Updated::Gone | Updated::Refused(_) => Err(Error::NotFound(NOT_FOUND)),
        }
    }

    async fn computed(
        &self,
        within: ExportScope<'_>,
        before: &ExportRow,
        wanted: &ExportChange,
    ) -> Result<Computed> {
        let now = within.org.ctx.now;
        match wanted {
            ExportChange::Patch(patch) => {
                let (row, secrets) = self.patched(within, before, patch.clone()).await?;
                let changes = changes(Some(before), &row, secrets)?;
                let entries = (!changes.is_empty())
                    .then(|| audit_entry(within, &row, AuditAction::Updated, changes))
                    .into_iter()
                    .collect();
                Ok(Computed { row, backfill: None, entries })
            }
            ExportChange::Unpause { backfill } => {
                let mut row = ExportRow { paused: false, ..before.clone() };
                if !before.paused {
                    return Ok(Computed { row, backfill: None, entries: Vec::new() });
                }
                let paused_at = before.last_paused_at.unwrap_or(before.created_at);
                // The interval in which the pause began had no run.
                let missed = cadence(before)?.boundary_before(paused_at);
                // Intervals that the backfill of the previous pause covers are not
                // repeated.
                let had = self.had(before).await?.filter(|until| *until <= paused_at);
                let missed = had.map_or(missed, |until| missed.max(until));
                let backfill = (*backfill && missed < now)
                    .then(|| backfill::row(&row, Some(missed), now, now))
                    .transpose()?;
                if let Some(backfill) = &backfill {
                    // The schedule has possibly not reached the last boundary yet.
                    row.backfilled = Backfilled(Some(BackfilledPause {
                        backfill: Some(backfill.id),
                        earlier: before.backfilled.0.and_then(|pause| pause.backfill),
                        since: paused_at,
                        until: now,
                    }));
                }
                let changes = changes(Some(before), &row, Vec::new())?;
                let mut entries = vec![audit_entry(within, &row, AuditAction::Updated, changes)];
                let started = |backfill| started(within, &row, backfill, Changes::none());
                entries.extend(backfill.as_ref().map(started));
                Ok(Computed { row, backfill, entries })
            }
            ExportChange::Again(run) => {
                let backfill = backfill::again(before, run, now);
                let changes = Changes::none().field("retried_run", &None, &Some(run.id));
                let entries = vec![started(within, before, &backfill, changes)];
                Ok(Computed { row: before.clone(), backfill: Some(backfill), entries })
            }
            ExportChange::Backfill(input) => {
                let (start, end) = backfill::bounds(input, before, now)?;
                let backfill = backfill::row(before, start, end, now)?;
                let entries = vec![started(within, before, &backfill, Changes::none())];
                Ok(Computed { row: before.clone(), backfill: Some(backfill), entries })
            }
        }
    }

    /// Until when the backfill of the newest pause covers the missed intervals.
    async fn had(&self, export: &ExportRow) -> Result<Option<Timestamp>> {
        let Some(id) = export.backfilled.0.and_then(|pause| pause.backfill) else {
            return Ok(None);
        };
        let (store, project) = (&self.core.store, export.project);
        let found = rows::backfills::find(store, project, export.id, id).await?;
        let delivers =
            |found: &Backfill| found.status.is_active() || found.status == Status::Completed;
        Ok(found.filter(delivers).map(|found| found.end_at))
    }

    async fn patched(
        &self,
        within: ExportScope<'_>,
        before: &ExportRow,
        patch: BatchExportPatch,
    ) -> Result<(ExportRow, Vec<String>)> {
        let mut row = before.clone();
        if let Some(name) = patch.name.required("name")? {
            row.name = validate::text("name", &name, NAME_MAX)?;
        }
        if patch.model.required("model")?.is_some_and(|sent| sent.text() != before.model) {
            let detail = "What is exported cannot be changed. Create another export.";
            return Err(FieldError::new("model", "invalid_input", detail).into());
        }
        let present = config::kind(&before.kind)?;
        let kind = patch.destination.unwrap_or(present);
        let sent = patch.config.unwrap_or_default();
        let mut secrets = Vec::new();
        if kind != present {
            // A new destination takes no settings from the old one.
            let whole = config::complete(kind, &sent)?;
            self.judge(kind, &whole, None)?;
            self.check_directory(row.organization, kind, &whole).await?;
            row.kind = kind.name.to_owned();
            secrets = config::store(&self.core.sealer, &mut row, kind, &whole).await?;
        } else if !sent.0.is_empty() {
            let stored = config::open(&self.core.sealer, before)?;
            let whole = config::changed(kind, &stored, &sent)?;
            secrets = config::changed_secrets(kind, &stored, &whole);
            self.judge(kind, &whole, Some(&stored))?;
            if whole.get("path") != stored.get("path") {
                self.check_directory(row.organization, kind, &whole).await?;
            }
            if whole != stored {
                config::store(&self.core.sealer, &mut row, kind, &whole).await?;
            }
        }
        let offsets = (patch.offset_day, patch.offset_hour);
        reschedule(&mut row, patch.interval, patch.timezone, offsets)?;
        let paused = patch.paused.required("paused")?.unwrap_or(before.paused);
        if paused && !before.paused {
            row.last_paused_at = Some(within.org.ctx.now);
        }
        row.paused = paused;
        if let Patch::Set(time) = patch.last_paused_at {
            check_paused(time, within.org.ctx.now)?;
        }
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
}

/// A requested change of an export.
pub(super) enum ExportChange {
    Patch(BatchExportPatch),
    Unpause { backfill: bool },
    Backfill(BackfillInput),
    Again(Box<Run>),
}

/// The result of a change. Without audit entries nothing changed.
struct Computed {
    row: ExportRow,
    backfill: Option<BackfillRow>,
    entries: Vec<Entry>,
}

/// Parses a query and stores it with its schema; an empty text removes the query.
pub(super) fn set_query(row: &mut ExportRow, text: Option<&str>) -> Result<()> {
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

/// Changes the interval of an export, and where its days and weeks begin.
fn reschedule(
    row: &mut ExportRow,
    interval: Patch<Interval>,
    zone: Patch<String>,
    (day, hour): (Patch<i64>, Patch<i64>),
) -> Result<()> {
    if let Some(interval) = interval.required("interval")? {
        row.interval = interval.text().to_owned();
        // Offsets that the new interval does not have are removed, unless they are
        // sent.
        row.offset_day = row.offset_day.filter(|_| interval == Interval::Week);
        row.offset_hour = row.offset_hour.filter(|_| has_hour(interval));
    }
    row.timezone = zone.try_map(timezone)?.over(row.timezone.take());
    row.timezone.take_if(|zone| zone == UTC);
    row.offset_day = day.over(row.offset_day);
    row.offset_hour = hour.over(row.offset_hour);
    Ok(())
}

/// Whether an interval begins at a chosen hour.
fn has_hour(interval: Interval) -> bool {
    matches!(interval, Interval::Day | Interval::Week)
}

/// Only days and weeks have an offset in hours, and only weeks one in days (EXP-19).
fn check_offsets(row: &ExportRow) -> Result<()> {
    for (attr, offset, most) in
        [("offset_day", row.offset_day, LAST_DAY), ("offset_hour", row.offset_hour, LAST_HOUR)]
    {
        if offset.is_some_and(|offset| !(0..=most).contains(&offset)) {
            return Err(validate::invalid_choice(attr, &offset.unwrap_or_default()).into());
        }
    }
    let interval = cadence(row)?.interval();
    let fault = |attr, detail| Err(FieldError::new(attr, "invalid_input", detail).into());
    if row.offset_day.is_some() && interval != Interval::Week {
        return fault("offset_day", "Only the interval `week` begins on a day.");
    }
    if row.offset_hour.is_some() && !has_hour(interval) {
        return fault("offset_hour", "Only the intervals `day` and `week` begin at an hour.");
    }
    Ok(())
}

/// Checks the rules between the fields of an export.
pub(super) fn check(row: &ExportRow) -> Result<()> {
    if let (Some(start), Some(end)) = (row.start_at, row.end_at)
        && end <= start
    {
        let detail = "The end must be after the start.";
        return Err(FieldError::new("end_at", "invalid_input", detail).into());
    }
    check_offsets(row)?;
    if row.kind == "HTTP" && row.query.is_some() {
        let detail = "The destination HTTP takes whole events, so it has no query.";
        return Err(FieldError::new("hogql_query", "invalid_input", detail).into());
    }
    match model(row)? {
        ExportModel::Events => Ok(()),
        ExportModel::Persons => check_persons(row),
    }
}

/// Refuses settings that an export of persons cannot have.
fn check_persons(row: &ExportRow) -> Result<()> {
    if row.kind == "HTTP" {
        let detail = "The destination HTTP takes events only.";
        return Err(FieldError::body("invalid_input", detail).into());
    }
    if row.query.is_some() {
        let detail = "A query chooses among events. An export of persons has none.";
        return Err(FieldError::new("hogql_query", "invalid_input", detail).into());
    }
    let config = config::shown(row)?;
    for name in ["exclude_events", "include_events"] {
        let names = config.get(name).and_then(Value::as_array);
        if names.is_some_and(|names| !names.is_empty()) {
            let attr = format!("destination__config__{name}");
            let detail = "Names choose among events. An export of persons has none.";
            return Err(FieldError::new(&attr, "invalid_input", detail).into());
        }
    }
    Ok(())
}

/// Refuses a pause that begins in the future. Intervals that end before a pause have
/// their runs.
pub(super) fn check_paused(last_paused_at: Timestamp, now: Timestamp) -> Result<()> {
    if last_paused_at > now {
        let detail = "The last pause must not be in the future.";
        return Err(FieldError::new("last_paused_at", "invalid_input", detail).into());
    }
    Ok(())
}

/// The changed fields for the audit entry; of secrets only the names.
pub(super) fn changes(
    before: Option<&ExportRow>,
    after: &ExportRow,
    secrets: Vec<String>,
) -> Result<Changes> {
    let destination = |row: &ExportRow| {
        config::shown(row).map(|config| Destination { kind: row.kind.clone(), config })
    };
    let destinations = (before.map(destination).transpose()?, Some(destination(after)?));
    let times = |time: Option<Option<Timestamp>>| time.flatten();
    let changes = Changes::none()
        .field("name", &before.map(|row| &row.name), &Some(&after.name))
        .field("destination", &destinations.0, &destinations.1)
        .field("model", &before.map(|row| &row.model), &Some(&after.model))
        .field("interval", &before.map(|row| &row.interval), &Some(&after.interval))
        .field("timezone", &before.and_then(|row| row.timezone.as_ref()), &after.timezone.as_ref())
        .field("offset_day", &before.and_then(|row| row.offset_day), &after.offset_day)
        .field("offset_hour", &before.and_then(|row| row.offset_hour), &after.offset_hour)
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

pub(super) fn audit_entry(
    within: ExportScope<'_>,
    row: &ExportRow,
    action: AuditAction,
    changes: Changes,
) -> Entry {
    let about = About {
        subject: Subject::BatchExport,
        id: row.id.to_string(),
        name: Some(&row.name),
        project: Some(row.project),
    };
    activity::entry(&within.org.ctx, row.organization, about, action, changes)
}

/// The audit entry about a started backfill. `changes` are its further fields.
fn started(
    within: ExportScope<'_>,
    row: &ExportRow,
    backfill: &BackfillRow,
    changes: Changes,
) -> Entry {
    let changes = changes
        .field("backfill", &None, &Some(backfill.id))
        .field("backfill_start_at", &None, &backfill.start_at)
        .field("backfill_end_at", &None, &Some(backfill.end_at));
    audit_entry(within, row, AuditAction::Triggered, changes)
}
