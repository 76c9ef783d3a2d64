//! What a backfill would do, before it is started (EXP-24).
//!
//! What belongs here: how many runs and about how many events, and what people
//! should know of the stretch. What does not: starting it ([`backfill`]).

use std::collections::HashSet;
use std::time::Duration;

use serde_json::Value;
use weir_model::Timestamp;
use weir_model::exports::{BackfillInput, ExportModel, Status};
use weir_schedule::COUNTED;
use weir_store::events::{self, Selection, TimeStretch, Wanted};
use weir_store::exports::ExportRow;
use weir_store::exports::backfills as rows;

use super::{Exports, Within, backfill, cadence, config, model};
use crate::Result;
use crate::policy::{self, Action};

/// How long events are counted; beyond that their number is not said.
const COUNTING: Duration = Duration::from_secs(3);
/// Backfills that are looked at for those that overlap: the newest.
const LOOK: usize = 200;

/// What a backfill would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackfillPreview {
    /// Where its first run begins; none: nothing is stored that it could export.
    pub start_at: Option<Timestamp>,
    /// The instant after the last one.
    pub end_at: Timestamp,
    /// How many runs it takes: not more than these. Intervals without events have none.
    pub runs: u64,
    /// How many intervals of the export each run covers.
    pub intervals_per_run: u64,
    /// About how many events these are; none: counting takes too long, or persons
    /// are exported. A condition of the query is not looked at.
    pub records: Option<u64>,
    /// When the first event happened that the project has.
    pub first_event: Option<Timestamp>,
    /// Whether the wanted start is before that.
    pub begins_before_first_event: bool,
    /// Whether regular runs, or an earlier backfill, may have delivered some of it.
    pub may_repeat: bool,
    /// Whether a backfill that goes on has some of it too.
    pub overlaps_active: bool,
    /// Whether the query has a condition, so that it may be fewer.
    pub has_condition: bool,
}

impl Exports {
    /// What a backfill with these bounds would do.
    ///
    /// # Errors
    /// [`Error::MissingScope`](crate::Error::MissingScope),
    /// [`Error::NotFound`](crate::Error::NotFound);
    /// [`Error::Invalid`](crate::Error::Invalid) as for the backfill itself.
    pub async fn preview_backfill(
        &self,
        within: Within<'_>,
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
            TimeStretch { start: wanted.map_or(i64::MIN, Timestamp::micros), end: end_at.micros() };
        let all = Wanted { after: 0, up_to: u64::MAX, time: wanted_time };
        let ends = |at: i64| cadence.interval_end(wanted, Timestamp::from_micros(at)).micros();
        let firsts = events::first_times(store, row.project, all, COUNTED, ends).await?;
        let firsts: Vec<Timestamp> = firsts.into_iter().map(Timestamp::from_micros).collect();
        let plan = cadence.backfill_plan(wanted, end_at, &firsts);
        let start_at = plan.map(|plan| plan.start);
        let (runs, intervals_per_run) = plan.map_or((0, 1), |plan| (plan.runs, plan.each));
        let records = match start_at {
            None => Some(0),
            Some(start) => self.about(&row, start, end_at).await?,
        };
        let mut preview = BackfillPreview {
            start_at,
            end_at,
            runs,
            intervals_per_run,
            records,
            first_event,
            begins_before_first_event: wanted
                .zip(first_event)
                .is_some_and(|(wanted, first)| wanted < cadence.boundary_before(first)),
            may_repeat: end_at > cadence.boundary_before(row.created_at),
            overlaps_active: false,
            has_condition: has_condition(&row)?,
        };
        for other in rows::page(store, row.project, row.id, None, LOOK).await? {
            let overlaps = other.end_at > start_at.unwrap_or(end_at)
                && other.start_at.is_none_or(|start| start < end_at);
            preview.overlaps_active |= overlaps && other.status.is_active();
            preview.may_repeat |= overlaps && other.status == Status::Completed;
        }
        Ok(preview)
    }

    /// About how many events an export takes of a stretch of time.
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
            time: Some(TimeStretch { start: start.micros(), end: end.micros() }),
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
