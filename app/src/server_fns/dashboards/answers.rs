//! Answers of tiles: asks their questions. What does not belong here: the chart and the table
//! of an answer (`results`, `site`).

use serde::de::DeserializeOwned;
use serde_json::Value;
use weir_model::dashboards::{DashboardPatch, TileChange};
use weir_questions::Query;
use weir_questions::query::{FunnelVisualization, FunnelsQuery};
use weir_questions::results::{
    FunnelStepResult, RetentionResult, TrendsResult, WebOverviewItem, WebTrendsItem,
};
use weir_service::questions::{Answered, Asking};
use weir_service::{Error, ProjectCtx, Services, SharedProject};

use super::results::{
    of_lifecycle, of_paths, of_rates, of_retention, of_rows, of_steps, of_stickiness, of_times,
    of_trends,
};
use super::site::{of_overview, of_site, of_visits};
use super::tiles::TileAnswer;
use crate::context::{ui_error, visit};
use crate::error::UiError;
use crate::server_fns::insights::answers::retention::period_labels;
use crate::server_fns::insights::answers::trends::of_range;

/// Who asks the question of a tile.
#[derive(Clone, Copy)]
pub(super) enum Asker<'a> {
    /// A member of the organization.
    Member(&'a ProjectCtx),
    /// A visitor with a share link.
    Visitor(SharedProject),
}

impl Asker<'_> {
    async fn ask(self, services: &Services, query: Query) -> Result<Answered, UiError> {
        let answered = match self {
            Self::Member(project) => {
                services.questions.ask(project, query, Asking::default()).await
            }
            Self::Visitor(project) => services.questions.ask_shared(project, query).await,
        };
        answered.map_err(tile_error)
    }
}

/// The error of one tile. In a page, a fault of the question, of the insight or of the load
/// does not change the status of the page, whose other tiles are shown.
pub(super) fn tile_error(error: Error) -> UiError {
    let visit = visit().filter(|visit| !visit.is_call);
    match (error, visit) {
        (Error::Invalid(fault), Some(_)) => UiError::Field(fault),
        // The insight was hidden after the tiles were listed.
        (Error::NotFound(_), Some(_)) => UiError::NotFound,
        (Error::Unavailable(_), Some(visit)) => {
            UiError::Unavailable { request_id: visit.request_id }
        }
        (error, _) => ui_error(error),
    }
}

/// Changes a tile of a dashboard, and returns the name of the dashboard.
pub(super) async fn change_tile(
    services: &Services,
    project: &ProjectCtx,
    dashboard: &str,
    change: TileChange,
) -> Result<String, UiError> {
    let patch = DashboardPatch { tiles: vec![change], ..DashboardPatch::default() };
    let changed = services.dashboards.update(project, dashboard, patch).await;
    Ok(changed.map_err(ui_error)?.brief.name)
}

/// The answer to the question of a tile.
pub(super) async fn answered(
    services: &Services,
    asker: Asker<'_>,
    query: Query,
) -> Result<TileAnswer, UiError> {
    let found = asker.ask(services, query.clone()).await?;
    let mut tile = match &query {
        Query::Trends(trends) => {
            let wholes: Vec<TrendsResult> = match of_range(trends) {
                Some(query) => results(&asker.ask(services, Query::Trends(query)).await?)?,
                None => Vec::new(),
            };
            of_trends(trends, &results::<Vec<TrendsResult>>(&found)?, &wholes)
        }
        Query::Funnels(funnel) => of_funnel(funnel, &found)?,
        Query::Retention(query) => {
            let results: Vec<RetentionResult> = results(&found)?;
            let until = found.answer.resolved_date_range.as_ref().map(|range| range.date_to);
            let (period, zone) = (query.filter.period, &found.answer.timezone);
            of_retention(&period_labels(&results, period, zone, until), &results)
        }
        Query::Paths(_) => of_paths(results(&found)?),
        Query::Stickiness(_) => of_stickiness(results(&found)?),
        Query::Lifecycle(query) => of_lifecycle(query.interval.word(), results(&found)?),
        Query::WebOverview(query) => {
            of_overview(query.compare.is_some(), &results::<Vec<WebOverviewItem>>(&found)?)
        }
        Query::WebTrends(query) => of_visits(query, &results::<Vec<WebTrendsItem>>(&found)?),
        Query::WebTable(query) => of_site(query, &results::<Vec<Vec<Value>>>(&found)?),
        Query::Events(_) | Query::HogQL(_) | Query::Actors(_) => {
            of_rows(columns(&found), results(&found)?)
        }
    };
    if found.answer.has_more == Some(true) {
        tile.notes.push("There is more than the question shows.".to_owned());
    }
    tile.timezone = found.answer.timezone;
    tile.computed_at = found.answer.last_refresh.to_string();
    Ok(tile)
}

/// The columns of an answer in rows.
fn columns(found: &Answered) -> Vec<String> {
    found.rows.iter().flat_map(|rows| rows.columns.iter().cloned()).collect()
}

fn results<T: DeserializeOwned>(found: &Answered) -> Result<T, UiError> {
    let read = serde_json::from_str(found.answer.results.get());
    read.map_err(|error| ui_error(Error::Internal(error.to_string())))
}

fn of_funnel(query: &FunnelsQuery, found: &Answered) -> Result<TileAnswer, UiError> {
    Ok(match query.filter.visualization {
        FunnelVisualization::Steps if query.breakdown.is_some() => {
            of_steps(&results::<Vec<Vec<FunnelStepResult>>>(found)?, true)
        }
        FunnelVisualization::Steps => of_steps(&[results(found)?], false),
        FunnelVisualization::TimeToConvert => of_times(&results(found)?),
        FunnelVisualization::Trends => {
            let range = found.answer.resolved_date_range.as_ref();
            let is_open = range.is_some_and(|range| range.date_to >= found.answer.last_refresh);
            of_rates(query.interval.word(), results(found)?, is_open)
        }
    })
}
