//! Historical migrations of a project.

use leptos::prelude::*;
use serde::{Deserialize, Serialize};

use crate::context::{enter_project, go, ui_error};
use crate::error::UiError;

/// Everything that is known of migrations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ImportsView {
    /// Those that people have announced, the newest first.
    pub(crate) plans: Vec<PlanView>,
    /// What came from where, the newest day first.
    pub(crate) sources: Vec<SourceView>,
}

/// A migration that somebody has announced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PlanView {
    /// Id.
    pub(crate) id: String,
    /// Where the events come from.
    pub(crate) source: String,
    /// Name of the file; may be empty.
    pub(crate) file: String,
    /// What else is to be known.
    pub(crate) note: String,
    /// How many events there are, if that is known.
    pub(crate) total: Option<u64>,
    /// Historical events that came since.
    pub(crate) sent: u64,
    /// Seconds until all are sent, if that can be told.
    pub(crate) seconds_left: Option<u64>,
    /// When it was started.
    pub(crate) created_at: String,
    /// When it was marked finished.
    pub(crate) finished_at: Option<String>,
}

/// Events of one key and library on one day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SourceView {
    /// The day, such as 2026-08-21.
    pub(crate) day: String,
    /// The beginning of the key.
    pub(crate) key: String,
    /// The library.
    pub(crate) library: String,
    /// Whether they came with `historical_migration`.
    pub(crate) historical: bool,
    /// Events that were sent.
    pub(crate) sent: u64,
    /// Those that were accepted.
    pub(crate) accepted: u64,
    /// Those that were not.
    pub(crate) dropped: u64,
    /// Events of a minute, on average.
    pub(crate) rate: u64,
    /// Events of the fullest minute.
    pub(crate) peak: u64,
    /// The earliest and the latest event time.
    pub(crate) times: Option<(String, String)>,
    /// When the last request came.
    pub(crate) last_at: String,
    /// Events that are earlier than the one before.
    pub(crate) out_of_order: u64,
    /// Events that were ahead of our clock.
    pub(crate) future: u64,
    /// Events without a distinct id.
    pub(crate) missing_ids: u64,
    /// Codes of reasons for which events were dropped.
    pub(crate) reasons: Vec<(String, u64)>,
}

/// What is known of the migrations of a project.
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

/// Announces a migration and leads to its script.
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

/// Marks a migration finished.
#[server(prefix = "/_fn", endpoint = "finish_import")]
pub(crate) async fn finish_import(project: i64, plan: String) -> Result<(), UiError> {
    let (services, project) = enter_project(project).await?;
    services.imports.finish(&project, &plan).await.map_err(ui_error)
}
