//! The questions of tiles: each is that of its insight, with the range and the filters of the
//! dashboard.
//!
//! What does not belong here: the answers (`crate::questions`).

use serde_json::json;
use weir_model::errors::FieldError;
use weir_model::{InsightId, ProjectId};
use weir_questions::Query;
use weir_questions::query::DashboardFilters;
use weir_store::dashboards::{DashboardRow, TileRow};
use weir_store::insights::{self as insight_rows, InsightRow};

use super::sharing::OpenLink;
use super::{Dashboards, layouts};
use crate::ctx::{ProjectCtx, SharedProject};
use crate::error::{Error, NOT_FOUND};
use crate::insights::{below, stored};
use crate::policy::{self, Action};
use crate::{Core, Result};

/// An insight of a dashboard, and its question, which can have a fault.
pub(crate) type TileQuestion = (InsightRow, Result<Query, FieldError>);

impl Dashboards {
    /// The question of a tile. `date_from` begins a range until now, which replaces that of
    /// the dashboard.
    ///
    /// # Errors
    /// [`Error::MissingScope`]; [`Error::NotFound`], also for a tile whose insight is hidden;
    /// [`Error::Invalid`] for a date that cannot be read, and for a question that cannot have
    /// the range or the filters.
    pub async fn question(
        &self,
        project: &ProjectCtx,
        dashboard: &str,
        tile: i64,
        date_from: Option<&str>,
    ) -> Result<Query> {
        policy::check(&project.org, Action::ReadDashboards)?;
        let row = self.shown_row(project, dashboard).await?;
        let mut filters = filters_of(&row)?;
        if let Some(date_from) = date_from {
            let range = DashboardFilters::read(&json!({ "date_from": date_from }));
            filters.dates = range.map_err(|fault| below("filters", fault))?.dates;
        }
        self.question_of(project.project, &row, tile, &filters).await
    }

    /// The question of a tile of a share link, and the project that it is about.
    ///
    /// # Errors
    /// [`Error::NotFound`] for a link that does not work, and for a tile that it does not
    /// show; [`Error::Invalid`] as [`question`](Self::question).
    pub async fn shared_question(&self, token: &str, tile: i64) -> Result<(SharedProject, Query)> {
        let OpenLink { row, project, .. } = self.open(token).await?;
        let query = self.question_of(project.project, &row, tile, &filters_of(&row)?).await?;
        Ok((project, query))
    }

    async fn question_of(
        &self,
        project: ProjectId,
        row: &DashboardRow,
        tile: i64,
        filters: &DashboardFilters,
    ) -> Result<Query> {
        let missing = || Error::NotFound(NOT_FOUND);
        let tile = row.tiles.iter().find(|one| one.id == tile).ok_or_else(missing)?;
        let found = insight_rows::rows(&self.core.store, project, &[tile.insight]).await?.pop();
        let insight = found.filter(|insight| !insight.deleted).ok_or_else(missing)?;
        Ok(filters.applied(Query::read(&stored(&insight.query)?)?)?)
    }
}

/// The insights of a dashboard that are not hidden, in the order of its page.
pub(crate) async fn questions_of(core: &Core, row: &DashboardRow) -> Result<Vec<TileQuestion>> {
    let filters = filters_of(row)?;
    let mut tiles: Vec<&TileRow> = row.tiles.iter().collect();
    tiles.sort_by_key(|tile| layouts(tile).position());
    let ids: Vec<InsightId> = tiles.iter().map(|tile| tile.insight).collect();
    let found = insight_rows::rows(&core.store, row.project, &ids).await?.into_iter();
    let question = |insight: InsightRow| -> Result<TileQuestion> {
        let query = Query::read(&stored(&insight.query)?);
        Ok((insight, query.and_then(|query| filters.applied(query))))
    };
    found.filter(|insight| !insight.deleted).map(question).collect()
}

fn filters_of(row: &DashboardRow) -> Result<DashboardFilters> {
    Ok(DashboardFilters::read(&stored(&row.filters)?)?)
}
