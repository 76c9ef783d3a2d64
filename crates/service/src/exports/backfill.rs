//! Backfills: the range of time that is exported again, the list, cancelling one
//! (EXP-10, EXP-24).

use weir_model::activity::{AuditAction, Entry};
use weir_model::errors::FieldError;
use weir_model::exports::lists::BackfillPage;
use weir_model::exports::{BACKFILLS_MAX, Backfill, BackfillInput, Run, Status};
use weir_model::pagination::Page;
use weir_model::{BackfillId, Timestamp};
use weir_store::exports::backfills as rows;
use weir_store::exports::{BackfillRow, ExportRow};
use weir_store::ids;

use super::change::audit_entry;
use super::{ExportScope, Exports, runs};
use crate::Result;
use crate::activity::Changes;
use crate::error::{Error, NOT_FOUND};
use crate::policy::{self, Action};

impl Exports {
    /// A page of the backfills of an export, newest first, after `cursor`.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::NotFound`].
    pub async fn backfills(
        &self,
        within: ExportScope<'_>,
        export: &str,
        cursor: Option<BackfillId>,
        page: Page,
    ) -> Result<BackfillPage> {
        policy::check(within.org, Action::ReadExports)?;
        let row = self.find(within, export).await?;
        let store = &self.core.store;
        let number = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
        let (offset, limit) = (number(page.offset), number(page.limit));
        let most = offset.saturating_add(limit).saturating_add(1);
        let found = rows::page(store, row.project, row.id, cursor, most).await?;
        let mut backfills: Vec<Backfill> = found.into_iter().skip(offset).collect();
        let more = backfills.len() > limit;
        backfills.truncate(limit);
        Ok(BackfillPage { backfills, more })
    }

    /// One backfill.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::NotFound`].
    pub async fn get_backfill(
        &self,
        within: ExportScope<'_>,
        export: &str,
        backfill: &str,
    ) -> Result<Backfill> {
        policy::check(within.org, Action::ReadExports)?;
        let row = self.find(within, export).await?;
        self.find_backfill(&row, backfill).await
    }

    /// Cancels an active backfill, and its runs.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::NotFound`]; [`Error::Invalid`] when it has
    /// ended.
    pub async fn cancel_backfill(
        &self,
        within: ExportScope<'_>,
        export: &str,
        backfill: &str,
    ) -> Result<()> {
        policy::check(within.org, Action::WriteExports)?;
        let row = self.find(within, export).await?;
        let found = self.find_backfill(&row, backfill).await?;
        let (store, now) = (&self.core.store, within.org.ctx.now);
        let entries = [cancelled(within, &row, &found)];
        let (project, export) = (row.project, row.id);
        if !found.status.is_active()
            || !rows::cancel(store, project, export, found.id, now, &entries).await?
        {
            return Err(runs::ended());
        }
        Ok(())
    }

    async fn find_backfill(&self, export: &ExportRow, backfill: &str) -> Result<Backfill> {
        let missing = || Error::NotFound(NOT_FOUND);
        let id = parse_id(backfill).ok_or_else(missing)?;
        let found = rows::find(&self.core.store, export.project, export.id, id).await?;
        found.ok_or_else(missing)
    }
}

/// The id in a path. Only its usual written form is accepted.
fn parse_id(text: &str) -> Option<BackfillId> {
    let id: BackfillId = text.parse().ok()?;
    text.eq_ignore_ascii_case(&id.to_string()).then_some(id)
}

fn cancelled(within: ExportScope<'_>, row: &ExportRow, backfill: &Backfill) -> Entry {
    let changes = Changes::none().field("backfill", &None, &Some(backfill.id)).field(
        "backfill_status",
        &Some(backfill.status),
        &Some(Status::Cancelled),
    );
    audit_entry(within, row, AuditAction::Updated, changes)
}

/// A new backfill of the interval of a run.
pub(super) fn again(export: &ExportRow, run: &Run, now: Timestamp) -> BackfillRow {
    BackfillRow {
        id: BackfillId(ids::time_ordered(now)),
        export: export.id,
        project: export.project,
        start_at: run.data_interval_start,
        end_at: run.data_interval_end,
        total_runs: Some(1),
        retry_of: Some(run.id),
        created_at: now,
    }
}

const START: &str = "start_at";
const END: &str = "end_at";
/// The message for bounds in another form.
const FORM: &str = "Write the bounds of a backfill as ISO 8601 times with an offset, such as \
                    2026-08-01T00:00:00+00:00, or as dates.";

/// A new backfill.
pub(super) fn row(
    export: &ExportRow,
    start_at: Option<Timestamp>,
    end_at: Timestamp,
    now: Timestamp,
) -> Result<BackfillRow> {
    let cadence = super::cadence(export)?;
    Ok(BackfillRow {
        id: BackfillId(ids::time_ordered(now)),
        export: export.id,
        project: export.project,
        start_at,
        end_at,
        // The time of the first event is found when the backfill starts.
        total_runs: start_at.map(|start| cadence.runs_between(start, end_at)),
        retry_of: None,
        created_at: now,
    })
}

/// The requested bounds, checked.
pub(super) fn bounds(
    input: &BackfillInput,
    export: &ExportRow,
    now: Timestamp,
) -> Result<(Option<Timestamp>, Timestamp)> {
    let requested = |attr, text: &Option<String>, own: Option<Timestamp>| {
        let requested = text.as_deref().map(|text| bound(attr, text)).transpose()?;
        // Clients send back the export as they have read it, with the bounds of its
        // schedule. These are not bounds of the backfill.
        Ok::<_, Error>(
            requested.filter(|requested| !input.has_export_fields || Some(*requested) != own),
        )
    };
    let start = requested(START, &input.start_at, export.start_at)?;
    let end = match requested(END, &input.end_at, export.end_at)? {
        Some(end) => end,
        None => super::cadence(export)?.boundary_before(now),
    };
    if end > now {
        return Err(fault(END, "The end of a backfill must not be in the future."));
    }
    if start.is_some_and(|start| start >= end) {
        return Err(fault(START, "The start of a backfill must be before its end."));
    }
    Ok((start, end))
}

fn fault(attr: &str, detail: &str) -> Error {
    FieldError::new(attr, "invalid_input", detail).into()
}

/// A time with an offset, or a date.
fn bound(attr: &str, text: &str) -> Result<Timestamp> {
    let text = text.trim();
    let read = match text.get(10..) {
        Some("") => Timestamp::parse_lenient(&format!("{text}T00:00Z")),
        Some(clock) if clock.contains(['Z', 'z', '+', '-']) => Timestamp::parse_lenient(text),
        Some(_) | None => None,
    };
    read.ok_or_else(|| fault(attr, FORM))
}

/// The error when the project has the maximum number of active backfills.
pub(super) fn too_many() -> Error {
    Error::TooMany {
        code: "too_many_concurrent_backfills",
        detail: format!(
            "The project has {BACKFILLS_MAX} backfills that are not done yet. Wait for one of \
             them, or cancel it."
        ),
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;
    use weir_model::{BatchExportId, OrganizationId, ProjectId};

    use super::*;

    fn time(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    /// Its schedule starts on a day in the past and ends on one in the future.
    fn export() -> ExportRow {
        ExportRow {
            id: BatchExportId(Uuid::nil()),
            organization: OrganizationId(Uuid::nil()),
            project: ProjectId(1),
            name: "Nightly".to_owned(),
            kind: "NoOp".to_owned(),
            config: "{}".to_owned(),
            secrets: None,
            model: "events".to_owned(),
            interval: "hour".to_owned(),
            timezone: None,
            offset_day: None,
            offset_hour: None,
            paused: false,
            created_at: time("2026-08-01T00:00:00Z"),
            updated_at: time("2026-08-01T00:00:00Z"),
            last_paused_at: None,
            backfilled: weir_store::exports::Backfilled(None),
            start_at: Some(time("2026-08-10T00:00:00Z")),
            end_at: Some(time("2027-01-01T00:00:00Z")),
            query: None,
            schema: None,
            revision: Uuid::nil(),
            latest: Vec::new(),
        }
    }

    type BoundTexts = Result<(Option<String>, String), (String, String)>;

    fn of(start: Option<&str>, end: Option<&str>, has_export_fields: bool) -> BoundTexts {
        let text = |text: Option<&str>| text.map(str::to_owned);
        let input = BackfillInput { start_at: text(start), end_at: text(end), has_export_fields };
        match bounds(&input, &export(), time("2026-08-21T14:30:00Z")) {
            Ok((start, end)) => Ok((start.map(|start| start.to_string()), end.to_string())),
            Err(Error::Invalid(fault)) => {
                assert_eq!(fault.code.as_str(), "invalid_input");
                Err((fault.attr.unwrap(), fault.detail))
            }
            Err(other) => panic!("{other}"),
        }
    }

    fn requested(start: Option<&str>, end: Option<&str>) -> BoundTexts {
        of(start, end, false)
    }

    fn refused(attr: &str, detail: &str) -> BoundTexts {
        Err((attr.to_owned(), detail.to_owned()))
    }

    #[test]
    fn bounds_are_times_with_an_offset_or_dates() {
        let end = "2026-08-21T14:00:00Z".to_owned();
        assert_eq!(requested(None, None), Ok((None, end.clone())));
        for text in [
            "2026-08-01",
            "2026-08-01T00:00:00+00:00",
            "2026-08-01 02:00+02:00",
            " 2026-08-01T00:00Z ",
        ] {
            let expected = (Some("2026-08-01T00:00:00Z".to_owned()), end.clone());
            assert_eq!(requested(Some(text), None), Ok(expected), "{text}");
        }
        for text in ["", "x", "2026-08-01T00:00:00", "2026-13-01", "20260801", "2026-08-0ä"] {
            assert_eq!(requested(Some(text), None), refused("start_at", FORM), "{text}");
            assert_eq!(requested(None, Some(text)), refused("end_at", FORM), "{text}");
        }
    }

    #[test]
    fn bounds_are_in_order_and_past() {
        let future = "The end of a backfill must not be in the future.";
        assert_eq!(requested(None, Some("2026-08-22")), refused("end_at", future));
        let order = refused("start_at", "The start of a backfill must be before its end.");
        assert_eq!(requested(Some("2026-08-02"), Some("2026-08-02")), order);
        // No interval has ended since then.
        assert_eq!(requested(Some("2026-08-21T14:00:00Z"), None), order);
        assert!(requested(Some("2026-08-21T14:00:00Z"), Some("2026-08-21T14:30:00Z")).is_ok());
    }

    #[test]
    fn the_window_of_the_schedule_is_no_bound() {
        let (start, end) = (Some("2026-08-10T00:00:00Z"), Some("2027-01-01T00:00:00Z"));
        let whole = Ok((None, "2026-08-21T14:00:00Z".to_owned()));
        assert_eq!(of(start, end, true), whole);
        assert_eq!(of(None, None, true), whole);
        // A changed value in the sent object is used.
        let day = Some("2026-08-20");
        let expected = (Some("2026-08-20T00:00:00Z".to_owned()), "2026-08-21T14:00:00Z".to_owned());
        assert_eq!(of(day, end, true), Ok(expected));
        let later = "The end of a backfill must not be in the future.";
        assert_eq!(of(start, Some("2027-01-02"), true), refused("end_at", later));
        // Bounds outside of such an object are used too.
        assert_eq!(requested(start, end), refused("end_at", later));
    }
}
