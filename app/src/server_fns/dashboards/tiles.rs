//! The tiles of a dashboard: their answers, and changes of them.

use leptos::prelude::*;
use serde::{Deserialize, Serialize};

#[cfg(feature = "ssr")]
use crate::context::{enter_project, notice, notice_with_undo, ui_error};
use crate::error::UiError;
use crate::server_fns::insights::answers::SeriesView;

/// The answer to the question of a tile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct TileAnswer {
    pub(crate) chart: Option<TileChart>,
    pub(crate) columns: Vec<TileColumn>,
    pub(crate) rows: Vec<Vec<TileValue>>,
    /// Number of rows that the tile does not show.
    pub(crate) hidden_rows: u64,
    /// What else there is to say about the answer.
    pub(crate) notes: Vec<String>,
    /// The time zone of the intervals.
    pub(crate) timezone: String,
    /// When it was computed.
    pub(crate) computed_at: String,
}

/// The chart of a tile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct TileChart {
    /// What it shows, such as `Per day`.
    pub(crate) title: String,
    /// The texts of the intervals.
    pub(crate) intervals: Vec<String>,
    /// The series that it draws.
    pub(crate) series: Vec<SeriesView>,
    /// The unit of the numbers.
    pub(crate) unit: String,
}

/// A column of the table of a tile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TileColumn {
    pub(crate) label: String,
    /// Whether it has numbers.
    pub(crate) has_numbers: bool,
}

/// A value of the table of a tile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum TileValue {
    Text(String),
    Number(f64),
    Percent(f64),
    /// A part of a whole.
    Share {
        part: u64,
        whole: u64,
    },
    /// There is none.
    Missing,
}

/// Answers the question of a tile. `range` is the date at which the range begins; empty: the
/// range of the dashboard.
#[server(prefix = "/_fn", endpoint = "answer_tile")]
pub(crate) async fn answer_tile(
    project: i64,
    dashboard: String,
    tile: i64,
    #[server(default)] range: String,
) -> Result<TileAnswer, UiError> {
    use super::answers::{Asker, answered, tile_error};

    let (services, project) = enter_project(project).await?;
    let range = Some(range.as_str()).filter(|range| !range.is_empty());
    let query = services.dashboards.question(&project, &dashboard, tile, range).await;
    let query = query.map_err(tile_error)?;
    answered(&services, Asker::Member(&project), query).await
}

/// Adds an insight to a dashboard.
#[server(prefix = "/_fn", endpoint = "add_tile")]
pub(crate) async fn add_tile(
    project: i64,
    dashboard: String,
    insight: String,
) -> Result<(), UiError> {
    use weir_model::InsightId;
    use weir_model::dashboards::TileChange;

    let (services, project) = enter_project(project).await?;
    let insight = InsightId::in_path(&insight).ok_or_else(unknown_insight)?;
    let change = TileChange { insight: Some(insight), ..TileChange::default() };
    let name = super::answers::change_tile(&services, &project, &dashboard, change).await?;
    notice(&format!("Added the insight to {name}."));
    Ok(())
}

/// Removes an insight from a dashboard.
#[server(prefix = "/_fn", endpoint = "remove_tile")]
pub(crate) async fn remove_tile(
    project: i64,
    dashboard: String,
    insight: String,
) -> Result<(), UiError> {
    use weir_model::InsightId;
    use weir_model::dashboards::TileChange;

    let (services, ctx) = enter_project(project).await?;
    let id = InsightId::in_path(&insight).ok_or_else(unknown_insight)?;
    let change = TileChange { insight: Some(id), deleted: true, ..TileChange::default() };
    let name = super::answers::change_tile(&services, &ctx, &dashboard, change).await?;
    let number = project.to_string();
    let fields = [
        ("project", number.as_str()),
        ("dashboard", dashboard.as_str()),
        ("insight", insight.as_str()),
    ];
    let add = <AddTile as server_fn::ServerFn>::PATH;
    notice_with_undo(&format!("Removed the insight from {name}."), add, &fields);
    Ok(())
}

/// Moves a tile by one: `earlier`, otherwise later.
#[server(prefix = "/_fn", endpoint = "move_tile")]
pub(crate) async fn move_tile(
    project: i64,
    dashboard: String,
    tile: i64,
    to: String,
) -> Result<(), UiError> {
    use weir_model::dashboards::TileMove;

    let (services, project) = enter_project(project).await?;
    let to = match to.as_str() {
        "earlier" => TileMove::Earlier,
        _ => TileMove::Later,
    };
    services.dashboards.move_tile(&project, &dashboard, tile, to).await.map_err(ui_error)
}

/// Puts the tiles of a page into an order: `wanted` has their numbers, with commas.
#[server(prefix = "/_fn", endpoint = "order_tiles")]
pub(crate) async fn order_tiles(
    project: i64,
    dashboard: String,
    wanted: String,
) -> Result<(), UiError> {
    use weir_model::dashboards::TILES_MAX;

    let (services, project) = enter_project(project).await?;
    // No tile has the number 0.
    let wanted = wanted.split(',').take(TILES_MAX + 1);
    let wanted: Vec<i64> = wanted.map(|tile| tile.parse().unwrap_or_default()).collect();
    services.dashboards.order_tiles(&project, &dashboard, &wanted).await.map_err(ui_error)
}

/// Changes the width or the height of a tile. `size` is `half`, `wide`, `low`, `usual` or
/// `high`.
#[server(prefix = "/_fn", endpoint = "resize_tile")]
pub(crate) async fn resize_tile(
    project: i64,
    dashboard: String,
    tile: i64,
    size: String,
) -> Result<(), UiError> {
    use weir_model::dashboards::{TileHeight, TileSize};

    let (services, project) = enter_project(project).await?;
    let size = match size.as_str() {
        "half" => TileSize::Half,
        "wide" => TileSize::Wide,
        "low" => TileSize::Height(TileHeight::Low),
        "usual" => TileSize::Height(TileHeight::Usual),
        "high" => TileSize::Height(TileHeight::High),
        _ => return Err(UiError::field("size", "invalid_choice", "Choose a size.")),
    };
    services.dashboards.resize_tile(&project, &dashboard, tile, size).await.map_err(ui_error)
}

#[cfg(feature = "ssr")]
fn unknown_insight() -> UiError {
    UiError::field("insight", "does_not_exist", "Choose an insight.")
}
