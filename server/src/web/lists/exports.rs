//! The exports of an organization, and the runs, the backfills and the log of one.

use weir_app::filters;
use weir_model::exports::lists::{BACKFILL_PAGE, RunQuery};
use weir_model::exports::{Backfill, BatchExport, LOG_PAGE, LogLine, Run};
use weir_model::pagination::{Page, Paged};
use weir_model::{BackfillId, RunId};
use weir_service::exports::{ExportOverview, RunBeside};

use super::{Asked, Organization};
use crate::web::csv::{Column, CsvList, by_cursor, by_offset, optional};

/// An export and the name of its project.
type ExportRow = (ExportOverview, String);

const EXPORTS: &[Column<ExportRow>] = &[
    ("id", |(it, _)| it.export.id.to_string()),
    ("name", |(it, _)| it.export.name.clone()),
    ("project", |(_, project)| project.clone()),
    ("destination", |(it, _)| it.export.destination.kind.clone()),
    ("model", |(it, _)| it.export.model.to_string()),
    ("interval", |(it, _)| it.export.interval.to_string()),
    ("time_zone", |(it, _)| it.export.timezone.clone()),
    ("state", |(it, _)| it.condition.text().to_owned()),
    ("paused", |(it, _)| it.export.paused.to_string()),
    ("failing_since", |(it, _)| optional(it.export.failing_since.as_ref())),
    ("latest_error", |(it, _)| optional(it.export.latest_error.as_ref())),
    ("last_run_status", |(it, _)| it.recent.first().map_or("", |run| run.status.text()).to_owned()),
    ("last_run_created", |(it, _)| optional(it.recent.first().map(|run| run.created_at).as_ref())),
    ("next_run", |(it, _)| optional(it.next_run.as_ref())),
    ("created", |(it, _)| it.export.created_at.to_string()),
];

/// A run and what pages show beside it.
type RunRow = (Run, Option<RunBeside>);

const RUNS: &[Column<RunRow>] = &[
    ("id", |(it, _)| it.id.to_string()),
    ("interval_start", |(it, _)| optional(it.data_interval_start.as_ref())),
    ("interval_end", |(it, _)| it.data_interval_end.to_string()),
    ("status", |(it, _)| it.status.text().to_owned()),
    ("records_completed", |(it, _)| optional(it.records_completed.as_ref())),
    ("records_total", |(it, _)| optional(it.records_total_count.as_ref())),
    ("attempts", |(_, beside)| optional(beside.map(|it| it.attempt).as_ref())),
    ("bytes", |(_, beside)| optional(beside.map(|it| it.bytes).as_ref())),
    ("backfill", |(_, beside)| optional(beside.and_then(|it| it.backfill).as_ref())),
    ("created", |(it, _)| it.created_at.to_string()),
    ("ended", |(it, _)| optional(it.finished_at.as_ref())),
    ("next_try", |(it, _)| optional(it.next_try_at.as_ref())),
    ("latest_error", |(it, _)| optional(it.latest_error.as_ref())),
];

const BACKFILLS: &[Column<Backfill>] = &[
    ("id", |it| it.id.to_string()),
    ("start", |it| optional(it.start_at.as_ref())),
    ("end", |it| it.end_at.to_string()),
    ("status", |it| it.status.text().to_owned()),
    ("records", |it| optional(it.total_records_count.as_ref())),
    ("finished_runs", |it| optional(it.progress.map(|of| of.finished_runs).as_ref())),
    ("total_runs", |it| optional(it.progress.map(|of| of.total_runs).as_ref())),
    ("created", |it| it.created_at.to_string()),
    ("ended", |it| optional(it.finished_at.as_ref())),
];

const LOGS: &[Column<LogLine>] = &[
    ("time", |it| it.timestamp.to_string()),
    ("level", |it| it.level.text().to_owned()),
    ("run", |it| it.instance_id.to_string()),
    ("message", |it| it.message.clone()),
];

pub(super) fn exports(asked: &Asked<'_>, within: Organization) -> CsvList {
    let name = within.name.clone();
    let [export, state, destination, project] =
        ["name", "state", "destination", "project"].map(|name| asked.value(name));
    let query = filters::exports(&export, &state, &destination, &project);
    let pages = by_offset(move |page| {
        let (Organization { services, org, projects, .. }, query) = (within.clone(), query.clone());
        async move {
            let found = services.exports.overview((&org).into(), &query, page).await?.found;
            let project = |export: &BatchExport| {
                let named = projects.iter().find(|(id, _)| *id == export.team_id);
                named.map_or_else(|| export.team_id.to_string(), |(_, name)| name.clone())
            };
            let row = |it: ExportOverview| {
                let project = project(&it.export);
                (it, project)
            };
            Ok(Paged { count: found.count, results: found.results.into_iter().map(row).collect() })
        }
    });
    CsvList::new("exports", &name, EXPORTS, pages)
}

pub(super) fn runs(asked: &Asked<'_>, within: Organization, export: &str) -> CsvList {
    let (name, export) = (within.name.clone(), export.to_owned());
    let [state, after, before] = ["state", "after", "before"].map(|name| asked.value(name));
    let query = filters::runs(&state, &after, &before);
    let pages = by_cursor(None, move |cursor: Option<RunId>| {
        let (Organization { services, org, .. }, export) = (within.clone(), export.clone());
        let query = RunQuery { cursor, ..query.clone() };
        async move {
            let exports = &services.exports;
            let page = exports.runs((&org).into(), &export, &query).await?;
            let ids: Vec<RunId> = page.runs.iter().map(|run| run.id).collect();
            let beside = exports.beside_runs((&org).into(), &export, &ids).await?;
            let next = ids.last().filter(|_| page.more).map(|last| Some(*last));
            let row = |run: Run| {
                let beside = beside.iter().find(|beside| beside.id == run.id).copied();
                (run, beside)
            };
            Ok((page.runs.into_iter().map(row).collect(), next))
        }
    });
    CsvList::new("runs", &name, RUNS, pages)
}

pub(super) fn backfills(within: Organization, export: &str) -> CsvList {
    let (name, export) = (within.name.clone(), export.to_owned());
    let pages = by_cursor(None, move |cursor: Option<BackfillId>| {
        let (Organization { services, org, .. }, export) = (within.clone(), export.clone());
        async move {
            let wanted = Page { limit: BACKFILL_PAGE as u64, offset: 0 };
            let exports = &services.exports;
            let page = exports.backfills((&org).into(), &export, cursor, wanted).await?;
            let next = page.backfills.last().filter(|_| page.more).map(|last| Some(last.id));
            Ok((page.backfills, next))
        }
    });
    CsvList::new("backfills", &name, BACKFILLS, pages)
}

pub(super) fn logs(asked: &Asked<'_>, within: Organization, export: &str) -> CsvList {
    let (name, export) = (within.name.clone(), export.to_owned());
    let [run, level, text] = ["run", "level", "text"].map(|name| asked.value(name));
    let pages = by_cursor(None, move |before| {
        let (Organization { services, org, .. }, export) = (within.clone(), export.clone());
        let query = filters::logs(&level, &text, before, LOG_PAGE + 1);
        let run = run.clone();
        async move {
            let exports = &services.exports;
            let mut lines = if run.is_empty() {
                exports.logs((&org).into(), &export, None, query).await?
            } else {
                exports.run_logs((&org).into(), &export, &run, query).await?
            };
            let more = lines.len() > LOG_PAGE;
            lines.truncate(LOG_PAGE);
            let next = lines.last().filter(|_| more).map(|line| Some(line.timestamp));
            Ok((lines, next))
        }
    });
    CsvList::new("log", &name, LOGS, pages)
}
