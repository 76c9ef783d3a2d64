//! How a project is doing, for its overview page.

use leptos::prelude::*;
use serde::{Deserialize, Serialize};

#[cfg(feature = "ssr")]
use crate::context::{enter_project, ui_error};
use crate::error::UiError;
use crate::server_fns::activity::EntryView;

/// Number of the last changes.
const CHANGES: u64 = 5;

/// How a project is doing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct OverviewView {
    /// Today in the zone of the project, by hour up to now.
    pub(crate) today: PeriodView,
    /// The number of hours of this day.
    pub(crate) hours: usize,
    /// The last 30 days with today, by day.
    pub(crate) month: PeriodView,
    /// Events by name in these days.
    pub(crate) by_name: ByNameView,
    /// Persons with an event in the last five minutes.
    pub(crate) active: u64,
    /// Whether there may be more such persons.
    pub(crate) is_least: bool,
    /// Number of failing exports of the project.
    pub(crate) failing_exports: u64,
    /// Number of transformations that failed in the last 24 hours.
    pub(crate) failing_transformations: u64,
    /// Number of configs of destinations and apps that failed in the last 24 hours.
    pub(crate) failing_others: u64,
    /// The last changes in the organization, newest first.
    pub(crate) changes: Vec<EntryView>,
}

/// Events of a period.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PeriodView {
    /// The number of stored events in each step.
    pub(crate) steps: Vec<u64>,
    /// Stored events.
    pub(crate) accepted: u64,
    /// Dropped events.
    pub(crate) dropped: u64,
}

/// Events by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ByNameView {
    /// The most frequent names with the number of their events.
    pub(crate) names: Vec<(String, u64)>,
    /// The number of events of all other names.
    pub(crate) others: u64,
}

/// Returns how a project is doing.
#[server(prefix = "/_fn", endpoint = "get_overview")]
pub(crate) async fn get_overview(project: i64) -> Result<OverviewView, UiError> {
    use futures::future::try_join4;
    use weir_model::activity::ActivityQuery;
    use weir_model::pagination::Page;
    use weir_service::overview::{Period, Summary};

    let (services, project) = enter_project(project).await?;
    let (all, newest) = (ActivityQuery::default(), Page { limit: CHANGES, offset: 0 });
    let (found, exports, configs, changes) = try_join4(
        services.overview.summary(&project),
        services.exports.failing((&project).into()),
        services.plugin_configs.failing(&project),
        services.activity.of_organization(&project.org, &all, newest),
    )
    .await
    .map_err(ui_error)?;
    let Summary { today, hours, month, by_name, active } = found;
    let period = |Period { steps, accepted, dropped }| PeriodView { steps, accepted, dropped };
    Ok(OverviewView {
        today: period(today),
        hours,
        month: period(month),
        by_name: ByNameView { names: by_name.names, others: by_name.others },
        active: active.count,
        is_least: active.is_least,
        failing_exports: exports.len() as u64,
        failing_transformations: configs.transformations as u64,
        failing_others: configs.others as u64,
        changes: changes.results.into_iter().map(EntryView::from).collect(),
    })
}
