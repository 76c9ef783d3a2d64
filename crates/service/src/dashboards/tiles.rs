//! The order and the sizes of tiles. Pages show tiles row by row, by their places in the wide
//! grid, and those without a place at the end.

use std::collections::{BTreeMap, BTreeSet};

use weir_model::dashboards::{COLUMNS, TileHeight, TileMove, TileSize};
use weir_model::{DashboardId, InsightId};
use weir_store::dashboards::{self as rows, DashboardRow, PlaceRow, TileRow};
use weir_store::insights as insight_rows;

use super::{Dashboards, layouts};
use crate::Result;
use crate::ctx::ProjectCtx;
use crate::error::{Error, NOT_FOUND};
use crate::policy::{self, Action};

/// The width of a tile that has no place: half of the wide grid.
const WIDTH: i64 = COLUMNS / 2;

impl Dashboards {
    /// Moves a tile by one in the order of pages. The first tile is not moved to an earlier
    /// place, and the last one not to a later place.
    ///
    /// # Errors
    /// [`Error::MissingScope`]; [`Error::NotFound`], also for a tile whose insight is hidden.
    pub async fn move_tile(
        &self,
        project: &ProjectCtx,
        dashboard: &str,
        tile: i64,
        to: TileMove,
    ) -> Result<()> {
        self.arrange(project, dashboard, |order, shown| moved(order, shown, tile, to)).await
    }

    /// Puts tiles into an order. They share the places that they have now; all other tiles
    /// stay, such as those of other pages.
    ///
    /// # Errors
    /// [`Error::MissingScope`]; [`Error::NotFound`], also for a tile whose insight is hidden,
    /// and for a tile that is named twice.
    pub async fn order_tiles(
        &self,
        project: &ProjectCtx,
        dashboard: &str,
        wanted: &[i64],
    ) -> Result<()> {
        self.arrange(project, dashboard, |order, shown| ordered(order, shown, wanted)).await
    }

    /// Changes the width or the height of a tile.
    ///
    /// # Errors
    /// [`Error::MissingScope`]; [`Error::NotFound`], also for a tile whose insight is hidden.
    pub async fn resize_tile(
        &self,
        project: &ProjectCtx,
        dashboard: &str,
        tile: i64,
        size: TileSize,
    ) -> Result<()> {
        self.arrange(project, dashboard, |order, shown| resized(order, shown, tile, size)).await
    }

    /// Changes the tiles in the order of pages, of which these insights are shown, and gives
    /// all tiles places in that order.
    async fn arrange(
        &self,
        project: &ProjectCtx,
        dashboard: &str,
        change: impl Fn(&mut Vec<TileRow>, &BTreeSet<InsightId>) -> Result<()>,
    ) -> Result<()> {
        policy::check(&project.org, Action::WriteDashboards)?;
        let row = self.shown_row(project, dashboard).await?;
        let ids: Vec<InsightId> = row.tiles.iter().map(|tile| tile.insight).collect();
        let found = insight_rows::rows(&self.core.store, project.project, &ids).await?.into_iter();
        let shown: BTreeSet<InsightId> =
            found.filter(|insight| !insight.deleted).map(|insight| insight.id).collect();
        let changed = |before: &DashboardRow| arranged(before, |order| change(order, &shown));
        self.change(project, row.id, changed).await.map(drop)
    }

    /// The number of tiles of dashboards whose insights are not hidden.
    ///
    /// # Errors
    /// [`Error::MissingScope`].
    pub async fn tile_counts(
        &self,
        project: &ProjectCtx,
        dashboards: &[DashboardId],
    ) -> Result<BTreeMap<DashboardId, usize>> {
        policy::check(&project.org, Action::ReadDashboards)?;
        let store = &self.core.store;
        let briefs = insight_rows::briefs(store, project.project).await?.into_iter();
        let shown: BTreeSet<InsightId> =
            briefs.filter(|brief| !brief.deleted).map(|brief| brief.id).collect();
        let found = rows::rows(store, project.project, dashboards).await?.into_iter();
        let count = |row: DashboardRow| {
            let tiles = row.tiles.iter().filter(|tile| shown.contains(&tile.insight));
            (row.id, tiles.count())
        };
        Ok(found.map(count).collect())
    }
}

/// A dashboard after a change of the order or of the sizes of its tiles.
fn arranged(
    before: &DashboardRow,
    change: impl FnOnce(&mut Vec<TileRow>) -> Result<()>,
) -> Result<DashboardRow> {
    let mut order = before.tiles.clone();
    order.sort_by_key(|tile| layouts(tile).position());
    change(&mut order)?;
    let places = places(&order);
    let mut row = before.clone();
    for tile in &mut row.tiles {
        if let Some((sm, xs)) = places.get(&tile.id) {
            (tile.sm, tile.xs) = (Some(*sm), Some(*xs));
        }
    }
    Ok(row)
}

/// The index of a tile whose insight is shown.
fn index_of(order: &[TileRow], shown: &BTreeSet<InsightId>, tile: i64) -> Result<usize> {
    let at = order.iter().position(|one| one.id == tile && shown.contains(&one.insight));
    at.ok_or(Error::NotFound(NOT_FOUND))
}

fn moved(
    order: &mut Vec<TileRow>,
    shown: &BTreeSet<InsightId>,
    tile: i64,
    to: TileMove,
) -> Result<()> {
    let at = index_of(order, shown, tile)?;
    let is_shown = |at: &usize| order.get(*at).is_some_and(|tile| shown.contains(&tile.insight));
    let neighbor = match to {
        TileMove::Earlier => (0..at).rev().find(is_shown),
        TileMove::Later => (at + 1..order.len()).find(is_shown),
    };
    if let Some(neighbor) = neighbor {
        let moving = order.remove(at);
        order.insert(neighbor, moving);
    }
    Ok(())
}

fn ordered(order: &mut [TileRow], shown: &BTreeSet<InsightId>, wanted: &[i64]) -> Result<()> {
    let mut moving = Vec::new();
    let mut indexes = BTreeSet::new();
    for tile in wanted {
        let at = index_of(order, shown, *tile)?;
        if !indexes.insert(at) {
            return Err(Error::NotFound(NOT_FOUND));
        }
        moving.extend(order.get(at).cloned());
    }
    for (at, tile) in indexes.into_iter().zip(moving) {
        if let Some(place) = order.get_mut(at) {
            *place = tile;
        }
    }
    Ok(())
}

fn resized(
    order: &mut [TileRow],
    shown: &BTreeSet<InsightId>,
    tile: i64,
    size: TileSize,
) -> Result<()> {
    let at = index_of(order, shown, tile)?;
    if let Some(tile) = order.get_mut(at) {
        let (w, h) = wide_size(tile);
        let (w, h) = match size {
            TileSize::Half => (WIDTH, h),
            TileSize::Wide => (COLUMNS, h),
            TileSize::Height(height) => {
                tile.xs = Some(PlaceRow { x: 0, y: 0, w: 1, h: height.rows() });
                (w, height.rows())
            }
        };
        tile.sm = Some(PlaceRow { x: 0, y: 0, w, h });
    }
    Ok(())
}

/// The columns and rows that a tile has in the wide grid, or gets there.
fn wide_size(tile: &TileRow) -> (i64, i64) {
    tile.sm.map_or((WIDTH, TileHeight::Usual.rows()), |place| (place.w, place.h))
}

/// The places of tiles in this order, in both grids, by the number of the tile.
fn places(order: &[TileRow]) -> BTreeMap<i64, (PlaceRow, PlaceRow)> {
    let (mut x, mut y, mut row_height, mut narrow_y) = (0_i64, 0_i64, 0_i64, 0_i64);
    let mut places = BTreeMap::new();
    for tile in order {
        let (w, h) = wide_size(tile);
        if x + w > COLUMNS {
            (x, y, row_height) = (0, y + row_height, 0);
        }
        let sm = PlaceRow { x, y, w, h };
        (x, row_height) = (x + w, row_height.max(h));
        let h = tile.xs.map_or(TileHeight::Usual.rows(), |place| place.h);
        places.insert(tile.id, (sm, PlaceRow { x: 0, y: narrow_y, w: 1, h }));
        narrow_y += h;
    }
    places
}

#[cfg(test)]
mod tests {
    use weir_model::{ProjectId, Timestamp, UserId};

    use super::*;

    fn dashboard(tiles: Vec<TileRow>) -> DashboardRow {
        DashboardRow {
            id: DashboardId(1),
            project: ProjectId(1),
            name: "Sales".to_owned(),
            description: String::new(),
            pinned: false,
            deleted: false,
            tags: Vec::new(),
            filters: "{}".to_owned(),
            tiles,
            next_tile: 9,
            links: Vec::new(),
            next_link: 1,
            created_by: UserId(uuid::Uuid::nil()),
            created_at: Timestamp::EPOCH,
            revision: uuid::Uuid::nil(),
        }
    }

    fn tile(id: i64) -> TileRow {
        TileRow::new(id, InsightId(id))
    }

    fn at(id: i64, x: i64, y: i64, w: i64) -> TileRow {
        TileRow { sm: Some(PlaceRow { x, y, w, h: 4 }), ..tile(id) }
    }

    /// Moves a tile, and returns the order after it. Tile 3 is hidden.
    fn order(tiles: Vec<TileRow>, id: i64, to: TileMove) -> Vec<i64> {
        let shown = [1, 2, 4, 5].map(InsightId).into();
        let row = arranged(&dashboard(tiles), |order| moved(order, &shown, id, to)).unwrap();
        let mut tiles = row.tiles;
        tiles.sort_by_key(|tile| layouts(tile).position());
        tiles.iter().map(|tile| tile.id).collect()
    }

    #[test]
    fn a_tile_is_moved_among_those_that_are_shown() {
        let added = || [1, 2, 3, 4].map(tile).to_vec();
        assert_eq!(order(added(), 1, TileMove::Later), [2, 1, 3, 4]);
        assert_eq!(order(added(), 2, TileMove::Later), [1, 3, 4, 2]);
        assert_eq!(order(added(), 4, TileMove::Earlier), [1, 4, 2, 3]);
        // Those at the ends stay.
        assert_eq!(order(added(), 1, TileMove::Earlier), [1, 2, 3, 4]);
        assert_eq!(order(added(), 4, TileMove::Later), [1, 2, 3, 4]);
        // Tiles with a place come before those without one.
        let placed = vec![tile(1), at(2, 6, 0, 6), at(4, 0, 0, 6), at(5, 0, 4, 12)];
        assert_eq!(order(placed, 1, TileMove::Earlier), [4, 2, 1, 5]);
        let shown = [1].map(InsightId).into();
        for missing in [3, 7] {
            let refused = moved(&mut added(), &shown, missing, TileMove::Later);
            assert!(matches!(refused, Err(Error::NotFound(_))), "{missing}");
        }
    }

    #[test]
    fn moved_tiles_keep_their_sizes_and_fill_rows() {
        let tiles = [at(1, 0, 0, 12), at(2, 0, 4, 4), at(4, 4, 4, 8), tile(5)];
        let places = places(&tiles);
        let wide: Vec<_> = places.values().map(|(sm, _)| (sm.x, sm.y, sm.w, sm.h)).collect();
        assert_eq!(wide, [(0, 0, 12, 4), (0, 4, 4, 4), (4, 4, 8, 4), (0, 8, 6, 5)]);
        let narrow: Vec<_> = places.values().map(|(_, xs)| (xs.x, xs.y, xs.w, xs.h)).collect();
        assert_eq!(narrow, [(0, 0, 1, 5), (0, 5, 1, 5), (0, 10, 1, 5), (0, 15, 1, 5)]);
    }

    #[test]
    fn tiles_share_their_places_in_a_new_order() {
        let shown: BTreeSet<InsightId> = [1, 2, 4, 5].map(InsightId).into();
        let mut tiles = [1, 2, 3, 4, 5].map(tile).to_vec();
        ordered(&mut tiles, &shown, &[4, 1]).unwrap();
        let ids: Vec<i64> = tiles.iter().map(|tile| tile.id).collect();
        assert_eq!(ids, [4, 2, 3, 1, 5]);
        for refused in [&[1, 1][..], &[1, 3], &[7]] {
            let refusal = ordered(&mut tiles, &shown, refused);
            assert!(matches!(refusal, Err(Error::NotFound(_))), "{refused:?}");
        }
    }

    #[test]
    fn a_tile_gets_the_width_of_the_page_and_keeps_its_height() {
        let shown: BTreeSet<InsightId> = [1, 2].map(InsightId).into();
        let before = dashboard(vec![at(1, 0, 0, 6), tile(2)]);
        let width = |row: &DashboardRow| -> Vec<_> {
            row.tiles.iter().map(|tile| tile.sm.map(|place| (place.y, place.w, place.h))).collect()
        };
        let wide = arranged(&before, |order| resized(order, &shown, 2, TileSize::Wide)).unwrap();
        assert_eq!(width(&wide), [Some((0, 6, 4)), Some((4, 12, 5))]);
        let half = arranged(&wide, |order| resized(order, &shown, 2, TileSize::Half)).unwrap();
        assert_eq!(width(&half), [Some((0, 6, 4)), Some((0, 6, 5))]);
    }

    #[test]
    fn a_tile_gets_a_height_in_both_grids_and_keeps_its_width() {
        let shown: BTreeSet<InsightId> = [1, 2].map(InsightId).into();
        let before = dashboard(vec![at(1, 0, 0, 12), tile(2)]);
        let sizes = |row: &DashboardRow, id: i64| {
            let tile = row.tiles.iter().find(|tile| tile.id == id).unwrap();
            (tile.sm.map(|place| (place.w, place.h)), tile.xs.map(|place| (place.y, place.h)))
        };
        let size = TileSize::Height(TileHeight::High);
        let high = arranged(&before, |order| resized(order, &shown, 1, size)).unwrap();
        assert_eq!(sizes(&high, 1), (Some((12, 9)), Some((0, 9))));
        assert_eq!(sizes(&high, 2), (Some((6, 5)), Some((9, 5))));
        for height in [TileHeight::Low, TileHeight::Usual, TileHeight::High] {
            assert_eq!(TileHeight::of(height.rows()), height);
        }
        let missing = arranged(&before, |order| resized(order, &shown, 7, size));
        assert!(matches!(missing, Err(Error::NotFound(_))));
    }
}
