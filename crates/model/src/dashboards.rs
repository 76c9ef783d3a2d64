//! Dashboards: insights of a project side by side (API-64).
//!
//! What belongs here: the resource, its tiles, its input and its limits. What does not: the
//! filters of a dashboard (`weir-questions`), and answers.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::{DashboardId, InsightId};
use crate::insights::Insight;
use crate::patch::Patch;
use crate::time::Timestamp;
use crate::users::User;

/// Longest name, in characters.
pub const NAME_MAX: usize = 400;
/// Longest description, in characters.
pub const DESCRIPTION_MAX: usize = 2_000;
/// Longest filters in their canonical form, in bytes.
pub const FILTERS_MAX: usize = 64 << 10;
/// Most dashboards of a project, hidden ones too.
pub const DASHBOARDS_MAX: usize = 1_000;
/// Most tiles of a dashboard.
pub const TILES_MAX: usize = 50;
/// Most tiles that one request changes: it may replace all of them.
pub const TILE_CHANGES_MAX: usize = 2 * TILES_MAX;
/// Longest color of a tile, in characters.
pub const COLOR_MAX: usize = 40;
/// Columns of the widest grid.
pub const COLUMNS: i64 = 12;
/// The last row in which a tile may begin.
pub const ROW_MAX: i64 = 10_000;
/// Most rows of a tile.
pub const HEIGHT_MAX: i64 = 100;

/// Most share links of a dashboard that have not expired.
pub const SHARE_LINKS_MAX: usize = 20;
/// Days that a share link works if a request names no number.
pub const SHARE_DAYS: i64 = 30;
/// Most days that a share link works.
pub const SHARE_DAYS_MAX: i64 = 365;

/// The fields of a dashboard that lists show.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct DashboardBrief {
    /// Number of the dashboard.
    pub id: DashboardId,
    /// Name.
    pub name: String,
    /// Description for people; may be empty.
    pub description: String,
    /// Whether it is pinned, for all members.
    pub pinned: bool,
    /// Whether it is hidden. Hidden dashboards are only in the answer to their change.
    pub deleted: bool,
    /// Labels, in the order in which they were sent.
    pub tags: Vec<String>,
    /// Range and filters for all insights of the dashboard: `date_from`, `date_to`,
    /// `explicitDate` and `properties`, as in a question.
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub filters: Value,
    /// Whether it has a share link that works.
    pub is_shared: bool,
    /// Time of creation.
    pub created_at: Timestamp,
    /// The user who created it; null if that user is no member any more.
    pub created_by: Option<User>,
}

/// A dashboard.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Dashboard {
    /// The fields that lists show.
    #[serde(flatten)]
    pub brief: DashboardBrief,
    /// The tiles whose insight is not hidden, in the order in which they were added.
    pub tiles: Vec<DashboardTile>,
}

/// A tile of a dashboard.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct DashboardTile {
    /// Number of the tile in its dashboard.
    pub id: i64,
    /// The insight.
    pub insight: Insight,
    /// Places of the tile.
    pub layouts: TileLayouts,
    /// Color of the tile; null: the default.
    pub color: Option<String>,
}

/// The places of a tile by the width of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TileLayouts {
    /// In the grid of 12 columns of a wide screen; null: below all others.
    pub sm: Option<TileLayout>,
    /// In the one column of a narrow screen; null: below all others.
    pub xs: Option<TileLayout>,
}

impl TileLayouts {
    /// The row and the column by which pages order tiles. Tiles without a place are the last.
    pub fn position(&self) -> (i64, i64) {
        self.sm.map_or((i64::MAX, 0), |place| (place.y, place.x))
    }

    /// Whether pages show the tile as wide as they are: it has more than half of the columns.
    pub fn is_wide(&self) -> bool {
        self.sm.is_some_and(|place| place.w > COLUMNS / 2)
    }

    /// How high pages show the tile.
    pub fn height(&self) -> TileHeight {
        self.sm.map_or(TileHeight::Usual, |place| TileHeight::of(place.h))
    }
}

/// How high pages show a tile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TileHeight {
    /// A low chart, and a table that scrolls.
    Low,
    /// As high as most charts.
    Usual,
    /// A high chart.
    High,
}

impl TileHeight {
    /// The height of a tile with this many rows of the grid.
    pub fn of(rows: i64) -> Self {
        match rows {
            ..=3 => Self::Low,
            4..=7 => Self::Usual,
            _ => Self::High,
        }
    }

    /// The rows of the grid that a tile of this height gets.
    pub fn rows(self) -> i64 {
        match self {
            Self::Low => 3,
            Self::Usual => 5,
            Self::High => 9,
        }
    }
}

/// A width or a height that a tile gets. The other one stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TileSize {
    /// Half as wide as the page.
    Half,
    /// As wide as the page.
    Wide,
    /// This high.
    Height(TileHeight),
}

/// Where a tile is moved in the order of pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TileMove {
    /// Before the tile before it.
    Earlier,
    /// After the tile after it.
    Later,
}

/// A place in a grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TileLayout {
    /// First column, from 0.
    pub x: i64,
    /// First row, from 0.
    pub y: i64,
    /// Width in columns.
    pub w: i64,
    /// Height in rows.
    pub h: i64,
}

/// A new dashboard.
#[derive(Debug, Clone, PartialEq)]
pub struct DashboardInput {
    /// Name, trimmed.
    pub name: String,
    /// All other fields, without tiles.
    pub rest: DashboardPatch,
}

/// A change of a dashboard.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DashboardPatch {
    /// Name. It cannot be null.
    pub name: Patch<String>,
    /// Description. Null means none.
    pub description: Patch<String>,
    /// Whether it is pinned.
    pub pinned: Patch<bool>,
    /// Whether it is hidden.
    pub deleted: Patch<bool>,
    /// Labels. Null means none.
    pub tags: Patch<Vec<String>>,
    /// Range and filters, as they were sent. Null means none.
    pub filters: Patch<Value>,
    /// The date at which the range begins, which then ends now. Null means no range. Other
    /// filters stay.
    pub range: Patch<String>,
    /// Changes of tiles, in order. Other tiles stay.
    pub tiles: Vec<TileChange>,
}

/// A change of one tile.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TileChange {
    /// The tile. `None`: the tile of `insight`, which is added if there is none.
    pub id: Option<i64>,
    /// The insight of a tile without an id.
    pub insight: Option<InsightId>,
    /// Its places. Null means that it has none.
    pub layouts: Patch<TileLayouts>,
    /// Its color.
    pub color: Patch<String>,
    /// Whether the tile is removed.
    pub deleted: bool,
}

/// Which dashboards a list has.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DashboardQuery {
    /// Part of the name, in any case.
    pub search: Option<String>,
    /// The value of `pinned`.
    pub pinned: Option<bool>,
}

/// A link that shows a dashboard without an account, until it expires.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ShareLink {
    /// Number of the link in its dashboard.
    pub id: i64,
    /// The secret of the link; null except in the answer that creates it.
    pub token: Option<String>,
    /// Time of creation.
    pub created_at: Timestamp,
    /// The user who created it; null if that user is no member any more.
    pub created_by: Option<User>,
    /// From this time on it does not work.
    pub expires_at: Timestamp,
}

/// A new share link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShareLinkInput {
    /// Days that it works, from 1 to [`SHARE_DAYS_MAX`].
    pub days: i64,
}

/// A dashboard as its share link shows it: without the names of users.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SharedDashboard {
    /// Name.
    pub name: String,
    /// Description; may be empty.
    pub description: String,
    /// Range and filters for all insights of the dashboard.
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub filters: Value,
    /// From this time on the link does not work.
    pub expires_at: Timestamp,
    /// The tiles, in the order in which they were added.
    pub tiles: Vec<SharedTile>,
}

/// A tile of a shared dashboard.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SharedTile {
    /// Number of the tile in its dashboard.
    pub id: i64,
    /// Name of the insight.
    pub name: Option<String>,
    /// Description of the insight.
    pub description: Option<String>,
    /// The question of the insight.
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub query: Value,
    /// Places of the tile.
    pub layouts: TileLayouts,
    /// Color of the tile; null: the default.
    pub color: Option<String>,
}
