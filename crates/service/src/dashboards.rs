//! Dashboards of a project (API-64).
//!
//! What belongs here: who may change dashboards, and their tiles. What does not: range and
//! filters (`filters`), share links (`sharing`), the order of tiles (`tiles`) and their
//! questions (`questions`), the insights of tiles (`insights`), and answers.

mod filters;
mod questions;
mod sharing;
mod tiles;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};
use weir_model::activity::{AuditAction, Entry, Subject};
use weir_model::dashboards::{
    COLOR_MAX, COLUMNS, DASHBOARDS_MAX, DESCRIPTION_MAX, Dashboard, DashboardBrief, DashboardInput,
    DashboardPatch, DashboardQuery, DashboardTile, HEIGHT_MAX, NAME_MAX, ROW_MAX, TILE_CHANGES_MAX,
    TILES_MAX, TileChange, TileLayout, TileLayouts,
};
use weir_model::errors::FieldError;
use weir_model::insights::Insight;
use weir_model::pagination::{Page, Paged};
use weir_model::{DashboardId, InsightId, Patch, ProjectId, validate};
use weir_store::dashboards::{
    self as rows, DashboardRow, Dependents, NO_INSIGHT, PlaceRow, TileRow,
};
use weir_store::ids;
use weir_store::insights as insight_rows;
use weir_store::numbered::Created;
use weir_store::update::{Updated, lock, update_with};

use self::filters::NO_FILTERS;
pub(crate) use self::questions::{TileQuestion, questions_of};
use crate::activity::{self, About, Changes};
use crate::ctx::ProjectCtx;
use crate::error::{Error, NOT_FOUND};
use crate::insights::{self, below, stored, tags};
use crate::policy::{self, Action};
use crate::unchecked::Unchecked;
use crate::{Core, Result, members, update};

/// The service for dashboards.
#[derive(Clone)]
pub struct Dashboards {
    core: Arc<Core>,
}

impl Dashboards {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// The dashboards of the project that are not hidden, in the order of their creation.
    ///
    /// # Errors
    /// [`Error::MissingScope`]; [`Error::Invalid`] for a page that is too large.
    pub async fn list(
        &self,
        project: &ProjectCtx,
        query: &DashboardQuery,
        page: Page,
    ) -> Result<Paged<DashboardBrief>> {
        policy::check(&project.org, Action::ReadDashboards)?;
        let search = query.search.as_deref().map(str::to_lowercase);
        let is_wanted = |brief: &rows::DashboardBrief| {
            !brief.deleted
                && search.as_deref().is_none_or(|part| brief.name.to_lowercase().contains(part))
                && query.pinned.is_none_or(|pinned| pinned == brief.pinned)
        };
        let found = rows::briefs(&self.core.store, project.project).await?.into_iter();
        let ids: Vec<DashboardId> = found.filter(is_wanted).map(|brief| brief.id).collect();
        let count = ids.len() as u64;
        let found = rows::rows(&self.core.store, project.project, &page.slice(ids)).await?;
        Ok(Paged { count, results: shown(&self.core, project, &found).await? })
    }

    /// One dashboard that is not hidden, with its tiles.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::NotFound`].
    pub async fn get(&self, project: &ProjectCtx, dashboard: &str) -> Result<Dashboard> {
        policy::check(&project.org, Action::ReadDashboards)?;
        let row = self.shown_row(project, dashboard).await?;
        self.show(project, row).await
    }

    /// Creates a dashboard without tiles.
    ///
    /// # Errors
    /// [`Error::MissingScope`]; [`Error::Invalid`], also for too many dashboards.
    pub async fn create(
        &self,
        project: &ProjectCtx,
        input: impl Into<Unchecked<'_, DashboardInput>>,
    ) -> Result<Dashboard> {
        policy::check(&project.org, Action::WriteDashboards)?;
        let DashboardInput { name, rest } = input.into().read()?;
        let (store, ctx) = (&self.core.store, &project.org.ctx);
        let mut row = DashboardRow {
            id: rows::next_number(store).await?,
            project: project.project,
            name: validate::text("name", &name, NAME_MAX)?,
            description: String::new(),
            pinned: false,
            deleted: false,
            tags: Vec::new(),
            filters: NO_FILTERS.to_owned(),
            tiles: Vec::new(),
            next_tile: 1,
            links: Vec::new(),
            next_link: 1,
            created_by: ctx.user(),
            created_at: ctx.now,
            revision: ids::time_ordered(ctx.now),
        };
        let empty = DashboardRow { name: String::new(), ..row.clone() };
        apply(&rest, &mut row)?;
        let entry = entry(project, &row, AuditAction::Created, changes(&empty, &row));
        match rows::create(store, project.org.organization, &row, &[entry]).await? {
            Created::Yes => self.show(project, row).await,
            refused => Err(update::not_created(refused, DASHBOARDS_MAX, "dashboards")),
        }
    }

    /// Changes a dashboard, also a hidden one, with some of its tiles.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::NotFound`]; [`Error::Invalid`], also for a missing
    /// tile or insight, and for too many tiles.
    pub async fn update(
        &self,
        project: &ProjectCtx,
        dashboard: &str,
        patch: impl Into<Unchecked<'_, DashboardPatch>>,
    ) -> Result<Dashboard> {
        policy::check(&project.org, Action::WriteDashboards)?;
        let id = self.find(project, dashboard).await?.id;
        let patch = patch.into().read()?;
        self.require_insights(project, &patch.tiles).await?;
        let row = self.change(project, id, |row| changed(row, &patch)).await?;
        self.show(project, row).await
    }

    /// Deletes a dashboard for ever. Its insights stay.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::NotFound`].
    pub async fn delete(&self, project: &ProjectCtx, dashboard: &str) -> Result<()> {
        policy::check(&project.org, Action::WriteDashboards)?;
        let id = self.find(project, dashboard).await?.id;
        let store = &self.core.store;
        let _permit = lock::<DashboardRow>(store, &rows::key(project.project, id)).await;
        let row = self.find(project, dashboard).await?;
        let changes = Changes::none().field("name", &Some(&row.name), &None);
        let entry = entry(project, &row, AuditAction::Deleted, changes);
        Ok(rows::delete(store, project.project, id, &[entry]).await?)
    }

    /// Changes a dashboard, and records what differs.
    async fn change(
        &self,
        project: &ProjectCtx,
        id: DashboardId,
        changed: impl Fn(&DashboardRow) -> Result<DashboardRow>,
    ) -> Result<DashboardRow> {
        let now = project.org.ctx.now;
        let change = |before: DashboardRow| {
            let changed = changed(&before).map(|row| {
                let changes = changes(&before, &row);
                let mut entries = Vec::new();
                if !changes.is_empty() {
                    entries.push(entry(project, &row, AuditAction::Updated, changes));
                }
                let with = Dependents::between(&before, &row);
                (update::change(before, row, now, entries, with), ())
            });
            std::future::ready(changed)
        };
        let key = rows::key(project.project, id);
        match update_with(&self.core.store, key, (), change).await? {
            Updated::Stored((row, ())) => Ok(row),
            Updated::Refused(reason) if reason == NO_INSIGHT => {
                let detail = "One of the insights was deleted.";
                Err(FieldError::new("tiles", "does_not_exist", detail).into())
            }
            Updated::Gone | Updated::Refused(_) => Err(Error::NotFound(NOT_FOUND)),
        }
    }

    /// Refuses changes of tiles that name an insight that is missing or hidden.
    async fn require_insights(&self, project: &ProjectCtx, changes: &[TileChange]) -> Result<()> {
        validate::list_length("tiles", changes.len(), TILE_CHANGES_MAX)?;
        let named = |change: &TileChange| match change.id {
            Some(_) => None,
            None => change.insight.filter(|_| !change.deleted),
        };
        let ids: BTreeSet<InsightId> = changes.iter().filter_map(named).collect();
        let ids: Vec<InsightId> = ids.into_iter().collect();
        let found = insight_rows::rows(&self.core.store, project.project, &ids).await?;
        for (at, change) in changes.iter().enumerate() {
            let Some(id) = named(change) else { continue };
            if !found.iter().any(|row| row.id == id && !row.deleted) {
                let detail = format!("Object with id={id} does not exist.");
                let attr = format!("tiles__{at}__insight");
                return Err(FieldError::new(&attr, "does_not_exist", detail).into());
            }
        }
        Ok(())
    }

    async fn find(&self, project: &ProjectCtx, dashboard: &str) -> Result<DashboardRow> {
        let missing = || Error::NotFound(NOT_FOUND);
        let id = DashboardId::in_path(dashboard).ok_or_else(missing)?;
        let found = rows::rows(&self.core.store, project.project, &[id]).await?;
        found.into_iter().next().ok_or_else(missing)
    }

    /// A dashboard that is not hidden.
    async fn shown_row(&self, project: &ProjectCtx, dashboard: &str) -> Result<DashboardRow> {
        let row = self.find(project, dashboard).await?;
        (!row.deleted).then_some(row).ok_or(Error::NotFound(NOT_FOUND))
    }

    async fn show(&self, project: &ProjectCtx, row: DashboardRow) -> Result<Dashboard> {
        let brief = shown(&self.core, project, std::slice::from_ref(&row)).await?.pop();
        let brief = brief.ok_or_else(|| Error::Internal("a dashboard is not shown".to_owned()))?;
        let ids: Vec<InsightId> = row.tiles.iter().map(|tile| tile.insight).collect();
        let mut found = insight_rows::rows(&self.core.store, project.project, &ids).await?;
        found.retain(|insight| !insight.deleted);
        let found = insights::shown(&self.core, project, found).await?;
        let mut found: BTreeMap<InsightId, Insight> =
            found.into_iter().map(|insight| (insight.id, insight)).collect();
        let mut tiles = Vec::with_capacity(row.tiles.len());
        for tile in row.tiles {
            let Some(insight) = found.remove(&tile.insight) else { continue };
            let layouts = layouts(&tile);
            tiles.push(DashboardTile { id: tile.id, insight, layouts, color: tile.color });
        }
        Ok(Dashboard { brief, tiles })
    }
}

/// The dashboards of a project that are not hidden.
pub(crate) async fn visible(core: &Core, project: ProjectId) -> Result<BTreeSet<DashboardId>> {
    let found = rows::briefs(&core.store, project).await?.into_iter();
    Ok(found.filter(|brief| !brief.deleted).map(|brief| brief.id).collect())
}

/// Refuses one more tile on a dashboard that has the maximum number.
pub(crate) fn require_room(tiles: &[TileRow], attr: &str) -> Result<(), FieldError> {
    if tiles.len() >= TILES_MAX {
        let detail = format!("A dashboard has at most {TILES_MAX} tiles. Remove one first.");
        return Err(FieldError::new(attr, "max_length", detail));
    }
    Ok(())
}

/// Dashboards without their tiles, in their order.
async fn shown(
    core: &Core,
    project: &ProjectCtx,
    found: &[DashboardRow],
) -> Result<Vec<DashboardBrief>> {
    let users = found.iter().map(|row| row.created_by).collect();
    let users = members::users_by_id(core, project.org.organization, users).await?;
    let now = project.org.ctx.now;
    let show = |row: &DashboardRow| -> Result<DashboardBrief> {
        Ok(DashboardBrief {
            id: row.id,
            name: row.name.clone(),
            description: row.description.clone(),
            pinned: row.pinned,
            deleted: row.deleted,
            tags: row.tags.clone(),
            filters: stored(&row.filters)?,
            is_shared: row.links.iter().any(|link| link.expires_at > now),
            created_at: row.created_at,
            created_by: users.get(&row.created_by).cloned(),
        })
    };
    found.iter().map(show).collect()
}

/// A dashboard after a change.
fn changed(before: &DashboardRow, patch: &DashboardPatch) -> Result<DashboardRow> {
    let mut row = before.clone();
    if let Some(name) = patch.name.clone().required("name")? {
        row.name = validate::text("name", &name, NAME_MAX)?;
    }
    apply(patch, &mut row)?;
    for (at, change) in patch.tiles.iter().enumerate() {
        let moved = change_tile(&mut row, change);
        moved.map_err(|fault| below("tiles", below(&at.to_string(), fault)))?;
    }
    Ok(row)
}

/// Changes all fields of a row except its name and its tiles.
fn apply(patch: &DashboardPatch, row: &mut DashboardRow) -> Result<()> {
    let sent = patch.clone();
    let description = sent
        .description
        .try_map(|text| validate::optional_text("description", &text, DESCRIPTION_MAX))?;
    row.description = description.apply(std::mem::take(&mut row.description), String::new());
    row.pinned = sent.pinned.required("pinned")?.unwrap_or(row.pinned);
    row.deleted = sent.deleted.required("deleted")?.unwrap_or(row.deleted);
    row.tags = tags(sent.tags, std::mem::take(&mut row.tags))?;
    row.filters = filters::changed(patch, &row.filters)?;
    Ok(())
}

/// Adds, changes or removes a tile. A fault names its field within the change.
fn change_tile(row: &mut DashboardRow, change: &TileChange) -> Result<(), FieldError> {
    let is_meant = |tile: &TileRow| match change.id {
        Some(id) => tile.id == id,
        None => change.insight == Some(tile.insight),
    };
    let found = row.tiles.iter().position(is_meant);
    if change.deleted && change.insight.is_some() && found.is_none() && change.id.is_none() {
        return Ok(());
    }
    let at = match found {
        Some(at) => at,
        None => add_tile(row, change)?,
    };
    if change.deleted {
        row.tiles.remove(at);
        return Ok(());
    }
    let Some(tile) = row.tiles.get_mut(at) else { return Ok(()) };
    match change.layouts {
        Patch::Keep => {}
        Patch::Clear => (tile.sm, tile.xs) = (None, None),
        Patch::Set(layouts) => {
            tile.sm = layouts.sm.map(|place| placed("sm", place, COLUMNS)).transpose()?;
            tile.xs = layouts.xs.map(|place| placed("xs", place, 1)).transpose()?;
        }
    }
    let color = change.color.clone();
    let color = color.try_map(|color| validate::optional_text("color", &color, COLOR_MAX))?;
    tile.color = color.over(tile.color.take()).filter(|color| !color.is_empty());
    Ok(())
}

/// Adds the tile of an insight, and returns its index.
fn add_tile(row: &mut DashboardRow, change: &TileChange) -> Result<usize, FieldError> {
    if let Some(id) = change.id {
        let detail = format!("Object with id={id} does not exist.");
        return Err(FieldError::new("id", "does_not_exist", detail));
    }
    let insight = change
        .insight
        .ok_or_else(|| FieldError::new("insight", "required", "This field is required."))?;
    require_room(&row.tiles, "insight")?;
    row.tiles.push(TileRow::new(row.next_tile, insight));
    row.next_tile += 1;
    Ok(row.tiles.len() - 1)
}

/// A place in a grid with this many columns.
fn placed(grid: &str, place: TileLayout, columns: i64) -> Result<PlaceRow, FieldError> {
    let TileLayout { x, y, w, h } = place;
    let attr = |field: &str| format!("layouts__{grid}__{field}");
    validate::within(&attr("x"), x, 0, columns - 1)?;
    validate::within(&attr("y"), y, 0, ROW_MAX)?;
    validate::within(&attr("w"), w, 1, columns - x)?;
    validate::within(&attr("h"), h, 1, HEIGHT_MAX)?;
    Ok(PlaceRow { x, y, w, h })
}

fn layouts(tile: &TileRow) -> TileLayouts {
    let shown = |place: PlaceRow| {
        let PlaceRow { x, y, w, h } = place;
        TileLayout { x, y, w, h }
    };
    TileLayouts { sm: tile.sm.map(shown), xs: tile.xs.map(shown) }
}

fn changes(before: &DashboardRow, after: &DashboardRow) -> Changes {
    let filters = |row: &DashboardRow| stored(&row.filters).ok();
    Changes::none()
        .field("name", &before.name, &after.name)
        .field("description", &before.description, &after.description)
        .field("pinned", &before.pinned, &after.pinned)
        .field("deleted", &before.deleted, &after.deleted)
        .field("tags", &before.tags, &after.tags)
        .field("filters", &filters(before), &filters(after))
        .field("tiles", &recorded(&before.tiles), &recorded(&after.tiles))
        .field("share_links", &sharing::recorded(before), &sharing::recorded(after))
}

/// Tiles as an audit entry has them.
fn recorded(tiles: &[TileRow]) -> Vec<Value> {
    let tile = |tile: &TileRow| {
        json!({
            "id": tile.id, "insight": tile.insight, "layouts": layouts(tile), "color": tile.color,
        })
    };
    tiles.iter().map(tile).collect()
}

fn entry(project: &ProjectCtx, row: &DashboardRow, action: AuditAction, changes: Changes) -> Entry {
    let about = About {
        subject: Subject::Dashboard,
        id: row.id.to_string(),
        name: Some(&row.name),
        project: Some(row.project),
    };
    activity::entry(&project.org.ctx, project.org.organization, about, action, changes)
}

#[cfg(test)]
mod tests {
    use weir_model::{Timestamp, UserId};

    use super::*;

    fn empty() -> DashboardRow {
        DashboardRow {
            id: DashboardId(1),
            project: ProjectId(1),
            name: "Sales".to_owned(),
            description: String::new(),
            pinned: false,
            deleted: false,
            tags: Vec::new(),
            filters: NO_FILTERS.to_owned(),
            tiles: Vec::new(),
            next_tile: 1,
            links: Vec::new(),
            next_link: 1,
            created_by: UserId(uuid::Uuid::nil()),
            created_at: Timestamp::EPOCH,
            revision: uuid::Uuid::nil(),
        }
    }

    fn of_insight(insight: i64) -> TileChange {
        TileChange { insight: Some(InsightId(insight)), ..TileChange::default() }
    }

    fn with(row: &DashboardRow, tiles: Vec<TileChange>) -> Result<DashboardRow> {
        changed(row, &DashboardPatch { tiles, ..DashboardPatch::default() })
    }

    fn fault(row: &DashboardRow, tile: TileChange) -> (String, String) {
        match with(row, vec![tile]) {
            Err(Error::Invalid(fault)) => (fault.attr.unwrap(), fault.code),
            other => panic!("{other:?}"),
        }
    }

    fn at(x: i64, w: i64) -> Patch<TileLayouts> {
        let sm = Some(TileLayout { x, y: 0, w, h: 5 });
        Patch::Set(TileLayouts { sm, xs: None })
    }

    #[test]
    fn a_tile_is_added_once_moved_and_removed() {
        let row = with(&empty(), vec![of_insight(5), of_insight(6), of_insight(5)]).unwrap();
        let tiles: Vec<_> = row.tiles.iter().map(|tile| (tile.id, tile.insight.0)).collect();
        assert_eq!((tiles, row.next_tile), (vec![(1, 5), (2, 6)], 3));
        let moved = TileChange { id: Some(2), layouts: at(6, 6), ..TileChange::default() };
        let red = TileChange { color: Patch::Set("red".to_owned()), ..of_insight(5) };
        let row = with(&row, vec![moved, red]).unwrap();
        assert_eq!(row.tiles[1].sm, Some(PlaceRow { x: 6, y: 0, w: 6, h: 5 }));
        assert_eq!(row.tiles[0].color.as_deref(), Some("red"));
        let removed = |change: TileChange| TileChange { deleted: true, ..change };
        let first = TileChange { id: Some(1), ..TileChange::default() };
        let row = with(&row, vec![removed(first), removed(of_insight(9))]).unwrap();
        assert_eq!(row.tiles.iter().map(|tile| tile.id).collect::<Vec<_>>(), [2]);
        // A number is not used again.
        assert_eq!(with(&row, vec![of_insight(5)]).unwrap().tiles[1].id, 3);
    }

    #[test]
    fn faults_of_tiles_have_their_path() {
        let row = with(&empty(), vec![of_insight(5)]).unwrap();
        let missing = TileChange { id: Some(7), ..TileChange::default() };
        let expected = |attr: &str, code: &str| (format!("tiles__0__{attr}"), code.to_owned());
        assert_eq!(fault(&row, missing), expected("id", "does_not_exist"));
        assert_eq!(fault(&row, TileChange::default()), expected("insight", "required"));
        for (x, w, attr, code) in [
            (-1, 6, "x", "min_value"),
            (12, 1, "x", "max_value"),
            (8, 5, "w", "max_value"),
            (8, 0, "w", "min_value"),
        ] {
            let tile = TileChange { layouts: at(x, w), ..of_insight(5) };
            assert_eq!(fault(&row, tile), expected(&format!("layouts__sm__{attr}"), code));
        }
        let many = 1..=i64::try_from(TILES_MAX).unwrap();
        let full = with(&empty(), many.map(of_insight).collect()).unwrap();
        assert_eq!(fault(&full, of_insight(999)), expected("insight", "max_length"));
    }
}
