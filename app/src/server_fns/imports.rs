//! Historical migrations of a project.

use leptos::prelude::*;
use serde::{Deserialize, Serialize};

#[cfg(feature = "ssr")]
use crate::context::{enter_project, go, ui_error};
use crate::error::UiError;

/// Data of the migrations page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ImportsView {
    /// Announced migrations, newest first.
    pub(crate) plans: Vec<PlanView>,
    /// Migrated events by source, newest day first.
    pub(crate) sources: Vec<SourceView>,
}

/// An announced migration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PlanView {
    /// Id of the migration.
    pub(crate) id: String,
    /// The system that the events come from.
    pub(crate) source: String,
    /// Name of the file. Can be empty.
    pub(crate) file: String,
    /// A note for other users.
    pub(crate) note: String,
    /// Expected number of events, if known.
    pub(crate) total: Option<u64>,
    /// Number of historical events received since the start.
    pub(crate) sent: u64,
    /// Estimated seconds until the end, if it can be computed.
    pub(crate) seconds_left: Option<u64>,
    /// Start time.
    pub(crate) created_at: String,
    /// Time when it was marked as finished.
    pub(crate) finished_at: Option<String>,
}

/// Events of one key and client library on one day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SourceView {
    /// The day, such as 2026-08-21.
    pub(crate) day: String,
    /// The beginning of the key.
    pub(crate) key: String,
    /// The client library.
    pub(crate) library: String,
    /// Whether the events were sent with `historical_migration`.
    pub(crate) historical: bool,
    /// Number of events sent.
    pub(crate) sent: u64,
    /// Number of events accepted.
    pub(crate) accepted: u64,
    /// Number of events dropped.
    pub(crate) dropped: u64,
    /// Average events per minute.
    pub(crate) rate: u64,
    /// Highest number of events in one minute.
    pub(crate) peak: u64,
    /// Earliest and latest event time.
    pub(crate) times: Option<(String, String)>,
    /// Time of the last request.
    pub(crate) last_at: String,
    /// Number of events with an earlier time than the event before.
    pub(crate) out_of_order: u64,
    /// Number of events with a time in the future.
    pub(crate) future: u64,
    /// Events without a distinct id.
    pub(crate) missing_ids: u64,
    /// Drop reasons with their counts.
    pub(crate) reasons: Vec<(String, u64)>,
}

/// Returns the migrations of a project.
#[server(prefix = "/_fn", endpoint = "get_imports")]
pub(crate) async fn get_imports(project: i64) -> Result<ImportsView, UiError> {
    use weir_model::Timestamp;
    use weir_model::imports::ImportSource;
    use weir_service::imports::Progress;

    let (services, project) = enter_project(project).await?;
    let plans = services.imports.plans(&project).await.map_err(ui_error)?;
    let sources = services.imports.sources(&project).await.map_err(ui_error)?;
    let plan = |progress: Progress| PlanView {
        id: progress.plan.id.to_string(),
        total: progress.plan.total,
        sent: progress.sent,
        seconds_left: progress.seconds_left,
        created_at: progress.plan.created_at.to_string(),
        finished_at: progress.plan.finished.map(|(at, _)| at.to_string()),
        source: progress.plan.source,
        file: progress.plan.file,
        note: progress.plan.note,
    };
    let time = |micros: i64| Timestamp::from_micros(micros).to_string();
    let source = |source: ImportSource| SourceView {
        day: source.day_text(),
        sent: source.counts.sent(),
        accepted: source.counts.accepted,
        dropped: source.counts.dropped,
        rate: source.counts.rate(),
        peak: source.counts.peak,
        times: source
            .counts
            .has_times()
            .then(|| (time(source.counts.oldest), time(source.counts.newest))),
        last_at: time(source.counts.last_at),
        out_of_order: source.counts.out_of_order,
        future: source.counts.future,
        missing_ids: source.counts.missing_ids,
        key: source.key,
        library: source.library,
        historical: source.historical,
        reasons: source.counts.reasons.into_iter().collect(),
    };
    Ok(ImportsView {
        plans: plans.into_iter().map(plan).collect(),
        sources: sources.into_iter().map(source).collect(),
    })
}

/// Announces a migration and redirects to its script.
#[server(prefix = "/_fn", endpoint = "start_import")]
pub(crate) async fn start_import(
    project: i64,
    source: String,
    #[server(default)] total: String,
    #[server(default)] file: String,
    #[server(default)] note: String,
) -> Result<(), UiError> {
    use weir_service::imports::PlanInput;

    let (services, entered) = enter_project(project).await?;
    let input = PlanInput { source, file, note, total };
    let plan = services.imports.start(&entered, input).await.map_err(ui_error)?;
    go(&format!("/projects/{project}/migrations?plan={}", plan.id));
    Ok(())
}

/// Marks a migration as finished.
#[server(prefix = "/_fn", endpoint = "finish_import")]
pub(crate) async fn finish_import(project: i64, plan: String) -> Result<(), UiError> {
    let (services, project) = enter_project(project).await?;
    services.imports.finish(&project, &plan).await.map_err(ui_error)
}
