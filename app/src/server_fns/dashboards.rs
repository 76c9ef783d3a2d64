//! Dashboards of a project: the list, one with its tiles, and the insights on it.

#[cfg(feature = "ssr")]
mod answers;
#[cfg(feature = "ssr")]
mod results;
pub(crate) mod sharing;
#[cfg(feature = "ssr")]
mod site;
pub(crate) mod tiles;

use leptos::prelude::*;
use serde::{Deserialize, Serialize};
use weir_model::dashboards::TileHeight;
#[cfg(feature = "ssr")]
use weir_service::{ProjectCtx, Services};

#[cfg(feature = "ssr")]
use crate::context::{enter_project, go, notice, notice_with_undo, redirect_with_notice, ui_error};
use crate::error::UiError;

/// The most insights that a form offers to add.
#[cfg(feature = "ssr")]
const OFFERED: u64 = 100;

/// A dashboard of the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DashboardLine {
    pub(crate) id: i64,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) pinned: bool,
    /// Whether a share link of it works.
    pub(crate) is_shared: bool,
    /// Number of its tiles.
    pub(crate) tiles: u64,
    pub(crate) created_at: String,
    /// Who created it. Empty: a former member.
    pub(crate) created_by: String,
}

/// A page of the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DashboardList {
    /// Number of dashboards that match the search.
    pub(crate) total: u64,
    pub(crate) dashboards: Vec<DashboardLine>,
}

/// A dashboard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DashboardView {
    pub(crate) id: i64,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) pinned: bool,
    /// The date at which its range begins. Empty: each insight has its own range.
    pub(crate) range: String,
    /// Whether its range also has an end.
    pub(crate) has_end: bool,
    /// Number of its filters of properties.
    pub(crate) filters: usize,
    pub(crate) is_shared: bool,
    /// The tiles in the order of the page.
    pub(crate) tiles: Vec<TileView>,
}

/// A tile of a dashboard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TileView {
    pub(crate) id: i64,
    /// Number of the insight.
    pub(crate) insight: i64,
    /// Short id of the insight. Empty: the page does not lead to it.
    pub(crate) short_id: String,
    pub(crate) name: String,
    pub(crate) description: String,
    /// Whether it is as wide as the page.
    pub(crate) is_wide: bool,
    pub(crate) height: TileHeight,
}

/// An insight that can be added to a dashboard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OfferedInsight {
    /// Its number.
    pub(crate) id: i64,
    pub(crate) name: String,
}

/// The insights that are not on a dashboard.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct InsightOffer {
    pub(crate) insights: Vec<OfferedInsight>,
    /// Whether there are more.
    pub(crate) has_more: bool,
}

/// A dashboard that has an insight, or can get it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InsightDashboard {
    pub(crate) id: i64,
    pub(crate) name: String,
    pub(crate) has_insight: bool,
}

/// The dashboards of an insight.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InsightDashboards {
    /// Number of the insight.
    pub(crate) id: i64,
    /// Its name.
    pub(crate) name: String,
    /// Number of all dashboards of the project.
    pub(crate) total: u64,
    /// A page of them.
    pub(crate) dashboards: Vec<InsightDashboard>,
}

/// Lists dashboards whose name contains a text.
#[server(prefix = "/_fn", endpoint = "list_dashboards")]
pub(crate) async fn list_dashboards(
    project: i64,
    #[server(default)] search: String,
    limit: u32,
    offset: u32,
) -> Result<DashboardList, UiError> {
    use weir_model::DashboardId;
    use weir_model::dashboards::DashboardBrief;
    use weir_model::pagination::Page;

    let (services, project) = enter_project(project).await?;
    let page = Page { limit: limit.clamp(1, 1000).into(), offset: offset.into() };
    let query = crate::filters::dashboards(&search);
    let dashboards = &services.dashboards;
    let found = dashboards.list(&project, &query, page).await.map_err(ui_error)?;
    let ids: Vec<DashboardId> = found.results.iter().map(|one| one.id).collect();
    let counts = dashboards.tile_counts(&project, &ids).await.map_err(ui_error)?;
    let line = |one: DashboardBrief| DashboardLine {
        tiles: counts.get(&one.id).map_or(0, |count| *count as u64),
        id: one.id.0,
        name: one.name,
        description: one.description,
        pinned: one.pinned,
        is_shared: one.is_shared,
        created_at: one.created_at.to_string(),
        created_by: one.created_by.map(|user| user.first_name).unwrap_or_default(),
    };
    Ok(DashboardList {
        total: found.count,
        dashboards: found.results.into_iter().map(line).collect(),
    })
}

/// Returns a dashboard.
#[server(prefix = "/_fn", endpoint = "get_dashboard")]
pub(crate) async fn get_dashboard(
    project: i64,
    dashboard: String,
) -> Result<DashboardView, UiError> {
    use weir_model::dashboards::DashboardTile;

    let (services, project) = enter_project(project).await?;
    let mut found = services.dashboards.get(&project, &dashboard).await.map_err(ui_error)?;
    found.tiles.sort_by_key(|tile| tile.layouts.position());
    let tile = |tile: DashboardTile| TileView {
        id: tile.id,
        insight: tile.insight.id.0,
        name: super::insights::name_of(&tile.insight),
        is_wide: tile.layouts.is_wide(),
        height: tile.layouts.height(),
        short_id: tile.insight.short_id,
        description: tile.insight.description.unwrap_or_default(),
    };
    let brief = found.brief;
    let Filters { range, has_end, properties } = Filters::of(&brief.filters);
    Ok(DashboardView {
        id: brief.id.0,
        name: brief.name,
        description: brief.description,
        pinned: brief.pinned,
        range,
        has_end,
        filters: properties,
        is_shared: brief.is_shared,
        tiles: found.tiles.into_iter().map(tile).collect(),
    })
}

/// Lists insights that are not on a dashboard.
#[server(prefix = "/_fn", endpoint = "list_insights_to_add")]
pub(crate) async fn list_insights_to_add(
    project: i64,
    dashboard: String,
) -> Result<InsightOffer, UiError> {
    use weir_model::DashboardId;
    use weir_model::dashboards::TILES_MAX;
    use weir_model::pagination::Page;
    use weir_service::Error;
    use weir_service::error::NOT_FOUND;

    let (services, project) = enter_project(project).await?;
    let dashboard = DashboardId::in_path(&dashboard);
    let dashboard = dashboard.ok_or_else(|| ui_error(Error::NotFound(NOT_FOUND)))?;
    // A dashboard has at most so many of them.
    let most = u64::try_from(TILES_MAX).unwrap_or(u64::MAX).saturating_add(OFFERED);
    let query = crate::filters::insights("");
    let page = Page { limit: most, offset: 0 };
    let found = services.insights.list(&project, &query, page).await.map_err(ui_error)?;
    let mut has_more = found.count > most;
    let others = found.results.into_iter().filter(|one| !one.dashboards.contains(&dashboard));
    let mut insights: Vec<OfferedInsight> = others
        .map(|one| OfferedInsight { id: one.id.0, name: super::insights::name_of(&one) })
        .collect();
    let offered = usize::try_from(OFFERED).unwrap_or(usize::MAX);
    has_more |= insights.len() > offered;
    insights.truncate(offered);
    Ok(InsightOffer { insights, has_more })
}

/// Lists dashboards, with whether they have this insight.
#[server(prefix = "/_fn", endpoint = "list_dashboards_of_insight")]
pub(crate) async fn list_dashboards_of_insight(
    project: i64,
    insight: String,
    limit: u32,
    offset: u32,
) -> Result<InsightDashboards, UiError> {
    use weir_model::pagination::Page;

    let (services, project) = enter_project(project).await?;
    let of = services.insights.get(&project, &insight).await.map_err(ui_error)?;
    let page = Page { limit: limit.clamp(1, 1000).into(), offset: offset.into() };
    let query = crate::filters::dashboards("");
    let found = services.dashboards.list(&project, &query, page).await.map_err(ui_error)?;
    let dashboards = found.results.into_iter().map(|one| InsightDashboard {
        has_insight: of.dashboards.contains(&one.id),
        id: one.id.0,
        name: one.name,
    });
    Ok(InsightDashboards {
        id: of.id.0,
        name: super::insights::name_of(&of),
        total: found.count,
        dashboards: dashboards.collect(),
    })
}

/// Creates a dashboard without tiles, and leads to it.
#[server(prefix = "/_fn", endpoint = "create_dashboard")]
pub(crate) async fn create_dashboard(
    project: i64,
    name: String,
    #[server(default)] description: String,
) -> Result<(), UiError> {
    use weir_model::Patch;
    use weir_model::dashboards::{DashboardInput, DashboardPatch};

    let (services, ctx) = enter_project(project).await?;
    let rest = DashboardPatch { description: Patch::Set(description), ..DashboardPatch::default() };
    let input = DashboardInput { name, rest };
    let made = services.dashboards.create(&ctx, input).await.map_err(ui_error)?.brief;
    let path = format!("/projects/{project}/dashboards/{}", made.id);
    redirect_with_notice(&path, &format!("Created {}.", made.name));
    Ok(())
}

/// Changes the fields of a dashboard that the form changed.
#[server(prefix = "/_fn", endpoint = "update_dashboard")]
pub(crate) async fn update_dashboard(
    project: i64,
    dashboard: String,
    #[server(default)] seen: String,
    name: String,
    #[server(default)] description: String,
    #[server(default)] range: String,
    // Browsers do not send unticked boxes.
    #[server(default)] pinned: bool,
) -> Result<(), UiError> {
    use weir_model::Patch;
    use weir_model::dashboards::DashboardPatch;

    use crate::edits::Edits;

    let (services, ctx) = enter_project(project).await?;
    let dashboards = &services.dashboards;
    let now = dashboards.get(&ctx, &dashboard).await.map_err(ui_error)?.brief;
    let mut edits = Edits::of(&seen);
    let stored = Filters::of(&now.filters).range;
    let patch = DashboardPatch {
        name: edits.text("name", "Name", &name, &now.name),
        description: edits.text("description", "Description", &description, &now.description),
        pinned: edits.tick("pinned", "Pin the dashboard", pinned, now.pinned),
        range: match edits.text("range", "Range", &range, &stored) {
            Patch::Set(from) if from.is_empty() => Patch::Clear,
            changed => changed,
        },
        ..DashboardPatch::default()
    };
    edits.check()?;
    let changed = dashboards.update(&ctx, &dashboard, patch).await;
    changed.map_err(|error| at_range(ui_error(error)))?;
    Ok(())
}

/// Hides a dashboard. It can be restored.
#[server(prefix = "/_fn", endpoint = "hide_dashboard")]
pub(crate) async fn hide_dashboard(project: i64, dashboard: String) -> Result<(), UiError> {
    let (services, ctx) = enter_project(project).await?;
    let name = set_deleted(&services, &ctx, &dashboard, true).await?;
    let number = project.to_string();
    let fields = [("project", number.as_str()), ("dashboard", dashboard.as_str())];
    let restore = <RestoreDashboard as server_fn::ServerFn>::PATH;
    notice_with_undo(&format!("Deleted {name}."), restore, &fields);
    go(&format!("/projects/{project}/dashboards"));
    Ok(())
}

/// Restores a hidden dashboard.
#[server(prefix = "/_fn", endpoint = "restore_dashboard")]
pub(crate) async fn restore_dashboard(project: i64, dashboard: String) -> Result<(), UiError> {
    let (services, ctx) = enter_project(project).await?;
    let name = set_deleted(&services, &ctx, &dashboard, false).await?;
    notice(&format!("Restored {name}."));
    Ok(())
}

/// Hides a dashboard or shows it again, and returns its name.
#[cfg(feature = "ssr")]
async fn set_deleted(
    services: &Services,
    project: &ProjectCtx,
    dashboard: &str,
    is_deleted: bool,
) -> Result<String, UiError> {
    use weir_model::Patch;
    use weir_model::dashboards::DashboardPatch;

    let patch = DashboardPatch { deleted: Patch::Set(is_deleted), ..DashboardPatch::default() };
    let changed = services.dashboards.update(project, dashboard, patch).await;
    Ok(changed.map_err(ui_error)?.brief.name)
}

/// Range and filters of a dashboard, as forms show them.
#[cfg(feature = "ssr")]
struct Filters {
    /// The beginning of the range. Empty: there is none.
    range: String,
    has_end: bool,
    /// Number of filters of properties.
    properties: usize,
}

#[cfg(feature = "ssr")]
impl Filters {
    fn of(stored: &serde_json::Value) -> Self {
        // A list of filters, or a group of them.
        let properties = match &stored["properties"] {
            serde_json::Value::Object(group) => group.get("values"),
            list => Some(list),
        };
        Self {
            range: stored["date_from"].as_str().unwrap_or_default().to_owned(),
            has_end: stored["date_to"].is_string(),
            properties: properties.and_then(|all| all.as_array()).map_or(0, Vec::len),
        }
    }
}

/// Moves the fault of a date to the field of the form.
#[cfg(feature = "ssr")]
fn at_range(error: UiError) -> UiError {
    use weir_model::errors::FieldError;

    match error {
        UiError::Field(fault) if fault.attr.as_deref() == Some("filters__date_from") => {
            UiError::Field(FieldError { attr: Some("range".to_owned()), ..fault })
        }
        other => other,
    }
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use serde_json::json;

    use super::Filters;

    #[test]
    fn forms_show_the_range_and_the_number_of_filters() {
        let filter = json!({"key": "plan", "operator": "exact", "value": ["pro"]});
        let stored = json!({"date_from": "-7d", "date_to": "-1d", "properties": [filter]});
        let Filters { range, has_end, properties } = Filters::of(&stored);
        assert_eq!((range.as_str(), has_end, properties), ("-7d", true, 1));
        let group = json!({"properties": {"type": "OR", "values": [filter, filter]}});
        assert_eq!(Filters::of(&group).properties, 2);
        assert_eq!(Filters::of(&json!({})).properties, 0);
    }
}
