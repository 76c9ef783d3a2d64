//! The list of exports for pages, with the condition of each; failing exports first.
//!
//! What belongs here: what "failing" means, and the filters of the list. What does not:
//! the list of the API, which is in order of creation.

use weir_model::exports::{BatchExport, Failing, LATEST_RUNS, RECENT_RUNS, Run};
use weir_model::pagination::{Page, Paged};
use weir_model::{BatchExportId, ProjectId, Timestamp};
use weir_store::exports::{self as rows, ExportBrief};

use super::{AT_A_TIME, ExportScope, Exports, shown};
use crate::Result;
use crate::policy::{self, Action};

/// The condition of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// Its runs fail, or are retried.
    Failing,
    /// Its schedule starts runs.
    Active,
    /// Its schedule starts no runs until it is unpaused.
    Paused,
}

impl Condition {
    /// All conditions, in the order of the list.
    pub const ALL: [Self; 3] = [Self::Failing, Self::Active, Self::Paused];

    /// The name of the condition in a URL.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Failing => "failing",
            Self::Active => "active",
            Self::Paused => "paused",
        }
    }

    /// The condition with this name.
    pub fn of(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|condition| condition.text() == text)
    }

    /// The condition of an export.
    pub fn of_export(export: &BatchExport) -> Self {
        Self::judge(export.paused, export.failing_since.is_some())
    }

    fn judge(paused: bool, fails: bool) -> Self {
        match (fails, paused) {
            (true, _) => Self::Failing,
            (false, true) => Self::Paused,
            (false, false) => Self::Active,
        }
    }
}

/// The filter of the list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OverviewQuery {
    /// Exports with this text in their name, in any case.
    pub name: Option<String>,
    /// Exports with this kind of destination.
    pub kind: Option<String>,
    /// Exports in this condition. A paused export also matches `Paused` if it fails.
    pub condition: Option<Condition>,
    /// Exports of this project.
    pub project: Option<ProjectId>,
}

/// An export and its condition.
#[derive(Debug, Clone, PartialEq)]
pub struct ExportOverview {
    /// The export, without its newest runs.
    pub export: BatchExport,
    /// Its condition.
    pub condition: Condition,
    /// Its newest runs, newest first: at most [`RECENT_RUNS`].
    pub recent: Vec<Run>,
    /// When its schedule starts the next run.
    pub next_run: Option<Timestamp>,
}

/// A page of exports.
#[derive(Debug, Clone, PartialEq)]
pub struct Overview {
    /// The number of exports without a filter.
    pub all: u64,
    /// The exports that match the filter.
    pub found: Paged<ExportOverview>,
}

impl Exports {
    /// The exports of the organization or the project with their condition: failing
    /// ones first, then newest first.
    ///
    /// # Errors
    /// [`Error::MissingScope`](crate::Error::MissingScope).
    pub async fn overview(
        &self,
        within: ExportScope<'_>,
        query: &OverviewQuery,
        page: Page,
    ) -> Result<Overview> {
        policy::check(within.org, Action::ReadExports)?;
        let store = &self.core.store;
        let mut ids = rows::ordered(store, within.of()).await?;
        ids.reverse();
        let all = rows::briefs(store, within.org.organization, &ids).await?;
        let mut wanted: Vec<(BatchExportId, Condition, Option<Failing>)> = Vec::new();
        for some in all.chunks(AT_A_TIME) {
            let runs = rows::decisive_runs(store, some, LATEST_RUNS).await?;
            for (row, runs) in some.iter().zip(runs) {
                let failing = Failing::of(&runs);
                let condition = Condition::judge(row.paused, failing.is_some());
                if wants(query, row, condition) {
                    wanted.push((row.id, condition, failing));
                }
            }
        }
        wanted.sort_by_key(|(_, condition, _)| *condition != Condition::Failing);
        let count = wanted.len() as u64;
        let mut wanted = page.slice(wanted);
        let ids: Vec<BatchExportId> = wanted.iter().map(|(id, ..)| *id).collect();
        let some = rows::rows(store, within.org.organization, &ids).await?;
        // Without those that were deleted since.
        wanted.retain(|(id, ..)| some.iter().any(|row| row.id == *id));
        let runs = rows::latest_runs(store, &some, RECENT_RUNS).await?;
        let mut results = Vec::with_capacity(some.len());
        for ((row, (_, condition, failing)), recent) in some.into_iter().zip(wanted).zip(runs) {
            let export = shown(row, Vec::new(), failing)?;
            let next_run = super::next_run(&export, within.org.ctx.now);
            results.push(ExportOverview { export, condition, recent, next_run });
        }
        Ok(Overview { all: all.len() as u64, found: Paged { count, results } })
    }
}

fn wants(query: &OverviewQuery, row: &ExportBrief, condition: Condition) -> bool {
    let name = query.name.as_ref().map(|name| name.to_lowercase());
    let in_condition = match query.condition {
        None => true,
        Some(Condition::Paused) => row.paused,
        Some(wanted) => wanted == condition,
    };
    in_condition
        && name.is_none_or(|name| row.name.to_lowercase().contains(&name))
        && query.kind.as_ref().is_none_or(|kind| *kind == row.kind)
        && query.project.is_none_or(|project| project == row.project)
}
