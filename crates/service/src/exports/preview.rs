//! What a backfill would do, before it is started (EXP-24).
//!
//! What belongs here: the number of runs and the approximate number of events, and
//! warnings about the range. What does not: starting the backfill ([`backfill`]).

use std::collections::HashSet;
use std::time::Duration;

use serde_json::Value;
use weir_model::Timestamp;
use weir_model::exports::{BackfillInput, ExportModel, Status};
use weir_schedule::COUNTED;
use weir_store::events::{self, EventBounds, Selection, TimeRange};
use weir_store::exports::ExportRow;
use weir_store::exports::backfills as rows;

use super::{ExportScope, Exports, backfill, cadence, config, model};
use crate::Result;
use crate::policy::{self, Action};

/// How long events are counted. After that the number is not known.
const COUNTING: Duration = Duration::from_secs(3);
/// The maximum number of backfills that are checked for an overlap, newest first.
const CHECKED_MAX: usize = 200;

/// The effects of a backfill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackfillPreview {
    /// Where its first run begins; none: no stored event can be exported.
    pub start_at: Option<Timestamp>,
    /// The exclusive end of its last run.
    pub end_at: Timestamp,
    /// The maximum number of runs. Intervals without events have no run.
    pub runs: u64,
    /// How many intervals of the export each run covers.
    pub intervals_per_run: u64,
    /// The approximate number of events; none: counting takes too long, or persons are
    /// exported. Ignores a condition of the query.
    pub events: Option<u64>,
    /// The time of the project's first event.
    pub first_event: Option<Timestamp>,
    /// Whether the requested start is before the interval of that event.
    pub begins_before_first_event: bool,
    /// Whether scheduled runs, or a completed backfill, may already have delivered a
    /// part of it.
    pub may_repeat: bool,
    /// Whether an active backfill covers a part of it too.
    pub overlaps_active: bool,
    /// Whether the query has a condition, so that there may be fewer events.
    pub has_condition: bool,
}

impl Exports {
    /// Computes the effects of a backfill with these bounds.
    ///
    /// # Errors
    /// [`Error::MissingScope`](crate::Error::MissingScope),
    /// [`Error::NotFound`](crate::Error::NotFound);
    /// [`Error::Invalid`](crate::Error::Invalid) as for the backfill itself.
    pub async fn preview_backfill(
        &self,
        within: ExportScope<'_>,
        export: &str,
        input: &BackfillInput,
    ) -> Result<BackfillPreview> {
        policy::check(within.org, Action::ReadExports)?;
        let row = self.find(within, export).await?;
        let (store, now) = (&self.core.store, within.org.ctx.now);
        let cadence = cadence(&row)?;
        let (wanted, end_at) = backfill::bounds(input, &row, now)?;
        let heads = events::heads(store, row.project).await?;
        let spans = heads.values().filter_map(events::Head::span);
        let first_event = spans.map(|span| span.from).min().map(Timestamp::from_micros);
        let wanted_time =
            TimeRange { start: wanted.map_or(i64::MIN, Timestamp::micros), end: end_at.micros() };
        let all = EventBounds { after: 0, up_to: u64::MAX, time: wanted_time };
        let ends = |at: i64| cadence.interval_end(wanted, Timestamp::from_micros(at)).micros();
        let firsts = events::first_times(store, row.project, all, COUNTED, ends).await?;
        let firsts: Vec<Timestamp> = firsts.into_iter().map(Timestamp::from_micros).collect();
        let plan = cadence.backfill_plan(wanted, end_at, &firsts);
        let start_at = plan.map(|plan| plan.start);
        let (runs, intervals_per_run) = plan.map_or((0, 1), |plan| (plan.runs, plan.each));
        let count = match start_at {
            None => Some(0),
            Some(start) => self.about(&row, start, end_at).await?,
        };
        let mut preview = BackfillPreview {
            start_at,
            end_at,
            runs,
            intervals_per_run,
            events: count,
            first_event,
            begins_before_first_event: wanted
                .zip(first_event)
                .is_some_and(|(wanted, first)| wanted < cadence.boundary_before(first)),
            may_repeat: end_at > cadence.boundary_before(row.created_at),
            overlaps_active: false,
            has_condition: has_condition(&row)?,
        };
        for other in rows::page(store, row.project, row.id, None, CHECKED_MAX).await? {
            let overlaps = other.end_at > start_at.unwrap_or(end_at)
                && other.start_at.is_none_or(|start| start < end_at);
            preview.overlaps_active |= overlaps && other.status.is_active();
            preview.may_repeat |= overlaps && other.status == Status::Completed;
        }
        Ok(preview)
    }

    /// The approximate number of events that an export takes from a range of time.
    async fn about(
        &self,
        row: &ExportRow,
        start: Timestamp,
        end: Timestamp,
    ) -> Result<Option<u64>> {
        if model(row)? == ExportModel::Persons {
            return Ok(None);
        }
        let config = config::shown(row)?;
        let names = |key: &str| -> HashSet<String> {
            let names = config.get(key).and_then(Value::as_array).into_iter().flatten();
            names.filter_map(|name| name.as_str().map(str::to_owned)).collect()
        };
        let selection = Selection {
            after: 0,
            up_to: u64::MAX,
            time: Some(TimeRange { start: start.micros(), end: end.micros() }),
            except: Vec::new(),
            include: names("include_events"),
            exclude: names("exclude_events"),
        };
        let counted = events::estimate(&self.core.store, row.project, selection);
        match tokio::time::timeout(COUNTING, counted).await {
            Ok(about) => Ok(Some(about?)),
            Err(_elapsed) => Ok(None),
        }
    }
}

fn has_condition(row: &ExportRow) -> Result<bool> {
    let schema: Option<Value> = row.schema.as_deref().map(config::read_json).transpose()?;
    Ok(schema.is_some_and(|schema| schema.get("filter").is_some_and(|filter| !filter.is_null())))
}
