//! Backfills: which stretch of time is exported anew, the list, ending one
//! (batch-exports 5).

use weir_model::activity::{Deed, Entry};
use weir_model::errors::FieldError;
use weir_model::exports::lists::{BACKFILL_PAGE, BackfillPage};
use weir_model::exports::{BACKFILLS_MAX, Backfill, BackfillInput, Run, Status};
use weir_model::{BackfillId, Timestamp};
use weir_schedule::Cadence;
use weir_store::exports::backfills as rows;
use weir_store::exports::{BackfillRow, ExportRow};
use weir_store::ids;

use super::change::told;
use super::{Exports, Within, runs};
use crate::Result;
use crate::activity::Changes;
use crate::error::{Error, NOT_FOUND};
use crate::policy::{self, Action};

impl Exports {
    /// A page of the backfills of an export, newest first: those after `cursor` in
    /// the list.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::NotFound`].
    pub async fn backfills(
        &self,
        within: Within<'_>,
        export: &str,
        cursor: Option<BackfillId>,
    ) -> Result<BackfillPage> {
        policy::check(within.org, Action::ReadExports)?;
        let row = self.find(within, export).await?;
        let store = &self.core.store;
        let mut backfills =
            rows::page(store, row.project, row.id, cursor, BACKFILL_PAGE + 1).await?;
        let more = backfills.len() > BACKFILL_PAGE;
        backfills.truncate(BACKFILL_PAGE);
        Ok(BackfillPage { backfills, more })
    }

    /// One backfill.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::NotFound`].
    pub async fn get_backfill(
        &self,
        within: Within<'_>,
        export: &str,
        backfill: &str,
    ) -> Result<Backfill> {
        policy::check(within.org, Action::ReadExports)?;
        let row = self.find(within, export).await?;
        self.find_backfill(&row, backfill).await
    }

    /// Cancels a backfill that has not ended, and its runs.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::NotFound`]; [`Error::Invalid`] when it
    /// has ended.
    pub async fn cancel_backfill(
        &self,
        within: Within<'_>,
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

/// The id in a path, in its usual written form only.
fn parse_id(text: &str) -> Option<BackfillId> {
    let id: BackfillId = text.parse().ok()?;
    text.eq_ignore_ascii_case(&id.to_string()).then_some(id)
}

fn cancelled(within: Within<'_>, row: &ExportRow, backfill: &Backfill) -> Entry {
    let changes = Changes::none().field("backfill", &None, &Some(backfill.id)).field(
        "backfill_status",
        &Some(backfill.status),
        &Some(Status::Cancelled),
    );
    told(within, row, Deed::Updated, changes)
}

/// A new backfill that exports what a run exported.
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

/// What bounds of another form hear.
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
        // Where the first event is, is found out when work begins.
        total_runs: start_at.map(|start| cadence.runs_between(start, end_at)),
        retry_of: None,
        created_at: now,
    })
}

/// The bounds that were asked for, checked.
pub(super) fn bounds(
    input: &BackfillInput,
    cadence: &Cadence,
    now: Timestamp,
) -> Result<(Option<Timestamp>, Timestamp)> {
    let read = |text: &Option<String>| text.as_deref().map(bound).transpose();
    let start = read(&input.start_at)?;
    let end = read(&input.end_at)?.unwrap_or_else(|| cadence.boundary_before(now));
    if end > now {
        return Err(fault("The end of a backfill must not be in the future."));
    }
    if start.is_some_and(|start| start >= end) {
        return Err(fault("The start of a backfill must be before its end."));
    }
    Ok((start, end))
}

fn fault(detail: &str) -> Error {
    FieldError::body("invalid_input", detail).into()
}

/// A time with an offset, or a date.
fn bound(text: &str) -> Result<Timestamp> {
    let text = text.trim();
    let read = match text.get(10..) {
        Some("") => Timestamp::parse_lenient(&format!("{text}T00:00Z")),
        Some(clock) if clock.contains(['Z', 'z', '+', '-']) => Timestamp::parse_lenient(text),
        Some(_) | None => None,
    };
    read.ok_or_else(|| fault(FORM))
}

/// That the project has as many backfills as may go on at a time.
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
    use super::*;
    use weir_model::exports::Interval;
    use weir_schedule::UTC;

    fn asked(start: Option<&str>, end: Option<&str>) -> Result<(Option<String>, String), String> {
        let input =
            BackfillInput { start_at: start.map(str::to_owned), end_at: end.map(str::to_owned) };
        let now = Timestamp::parse("2026-08-21T14:30:00Z").unwrap();
        let cadence = Cadence::of(Interval::Hour, UTC, None, None).unwrap();
        match bounds(&input, &cadence, now) {
            Ok((start, end)) => Ok((start.map(|start| start.to_string()), end.to_string())),
            Err(Error::Invalid(fault)) => {
                assert_eq!((fault.attr, fault.code.as_str()), (None, "invalid_input"));
                Err(fault.detail)
            }
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn bounds_are_times_with_an_offset_or_dates() {
        let end = "2026-08-21T14:00:00Z".to_owned();
        assert_eq!(asked(None, None), Ok((None, end.clone())));
        for text in [
            "2026-08-01",
            "2026-08-01T00:00:00+00:00",
            "2026-08-01 02:00+02:00",
            " 2026-08-01T00:00Z ",
        ] {
            let expected = (Some("2026-08-01T00:00:00Z".to_owned()), end.clone());
            assert_eq!(asked(Some(text), None), Ok(expected), "{text}");
        }
        for text in ["", "x", "2026-08-01T00:00:00", "2026-13-01", "20260801", "2026-08-0ä"] {
            assert_eq!(asked(Some(text), None).unwrap_err(), FORM, "{text}");
            assert_eq!(asked(None, Some(text)).unwrap_err(), FORM, "{text}");
        }
    }

    #[test]
    fn bounds_are_in_order_and_past() {
        let future = "The end of a backfill must not be in the future.";
        assert_eq!(asked(None, Some("2026-08-22")).unwrap_err(), future);
        let order = "The start of a backfill must be before its end.";
        assert_eq!(asked(Some("2026-08-02"), Some("2026-08-02")).unwrap_err(), order);
        // Nothing is complete since then.
        assert_eq!(asked(Some("2026-08-21T14:00:00Z"), None).unwrap_err(), order);
        assert!(asked(Some("2026-08-21T14:00:00Z"), Some("2026-08-21T14:30:00Z")).is_ok());
    }
}
