//! Dashboards of projects, with their tiles.
//!
//! What belongs here: statements about the tables below. What does not: who may change
//! dashboards (`weir-service`); insights (`insights`).
//!
//! | table | id | holds |
//! |---|---|---|
//! | `dashboard` | `[project, dashboard]` | the record with its tiles and share links |
//! | `project_dashboard` | `[project, dashboard]` | a [`DashboardBrief`]: the list of a project |
//! | `dashboard_link` | `[project, hash]` | the dashboard of a share link, by the hash of its token |
//!
//! The insight of a tile names the dashboard. The record of the project counts its
//! dashboards.

use std::collections::BTreeSet;

use surrealdb::types::{SurrealValue, Value, Variables};
use uuid::Uuid;
use weir_model::activity::Entry;
use weir_model::dashboards::DASHBOARDS_MAX;
use weir_model::{DashboardId, InsightId, OrganizationId, ProjectId, Timestamp, UserId};

use crate::bind::bind;
use crate::db::Statement;
use crate::numbered::{self, Created, NumberedKey};
use crate::subscriptions::remove_subscriptions;
use crate::update::{Row, update_text};
use crate::{Result, Store, ids, lists};

/// A dashboard as stored.
#[derive(Debug, Clone, PartialEq, Eq, SurrealValue)]
pub struct DashboardRow {
    /// Its number.
    #[surreal(rename = "number")]
    pub id: DashboardId,
    /// The project that it belongs to.
    pub project: ProjectId,
    /// Name.
    pub name: String,
    /// Description for people; may be empty.
    pub description: String,
    /// Whether it is pinned.
    pub pinned: bool,
    /// Whether it is hidden.
    pub deleted: bool,
    /// Labels.
    pub tags: Vec<String>,
    /// Range and filters in their canonical form, as JSON.
    pub filters: String,
    /// The tiles, in the order in which they were added.
    pub tiles: Vec<TileRow>,
    /// The number of the next tile.
    pub next_tile: i64,
    /// The share links, oldest first.
    pub links: Vec<LinkRow>,
    /// The number of the next share link.
    pub next_link: i64,
    /// The user who created it.
    pub created_by: UserId,
    /// When it was created.
    pub created_at: Timestamp,
    /// A new value after every change.
    pub revision: Uuid,
}

/// A share link as stored.
#[derive(Debug, Clone, PartialEq, Eq, SurrealValue)]
pub struct LinkRow {
    /// Its number in the dashboard.
    #[surreal(rename = "number")]
    pub id: i64,
    /// The hash of its token.
    pub hash: String,
    /// The user who created it.
    pub created_by: UserId,
    /// When it was created.
    pub created_at: Timestamp,
    /// From when on it does not work.
    pub expires_at: Timestamp,
}

/// A tile as stored.
#[derive(Debug, Clone, PartialEq, Eq, SurrealValue)]
pub struct TileRow {
    /// Its number in the dashboard.
    #[surreal(rename = "number")]
    pub id: i64,
    /// The insight that it shows. A dashboard has at most one tile of an insight.
    pub insight: InsightId,
    /// Its place on wide screens.
    pub sm: Option<PlaceRow>,
    /// Its place on narrow screens.
    pub xs: Option<PlaceRow>,
    /// Its color.
    pub color: Option<String>,
}

/// The place of a tile in a grid, as stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, SurrealValue)]
pub struct PlaceRow {
    /// First column, from 0.
    pub x: i64,
    /// First row, from 0.
    pub y: i64,
    /// Width in columns.
    pub w: i64,
    /// Height in rows.
    pub h: i64,
}

impl TileRow {
    /// A new tile without a place.
    pub fn new(id: i64, insight: InsightId) -> Self {
        Self { id, insight, sm: None, xs: None, color: None }
    }
}

/// The fields of a dashboard by which a list is filtered.
#[derive(Debug, Clone, PartialEq, Eq, SurrealValue)]
pub struct DashboardBrief {
    /// Its number.
    #[surreal(rename = "number")]
    pub id: DashboardId,
    /// Name.
    pub name: String,
    /// Whether it is pinned.
    pub pinned: bool,
    /// Whether it is hidden.
    pub deleted: bool,
}

/// The key of a dashboard.
pub fn key(project: ProjectId, dashboard: DashboardId) -> NumberedKey {
    NumberedKey { project, number: dashboard.0 }
}

/// Records that change with a dashboard: the insights of which it gets or loses a tile, and
/// the hashes of share links that it gets or loses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dependents {
    added: Vec<i64>,
    removed: Vec<i64>,
    opened: Vec<String>,
    closed: Vec<String>,
}

impl Dependents {
    /// What differs between two states of a dashboard.
    pub fn between(before: &DashboardRow, after: &DashboardRow) -> Self {
        let insights = |row: &DashboardRow| -> BTreeSet<i64> {
            row.tiles.iter().map(|tile| tile.insight.0).collect()
        };
        let hashes = |row: &DashboardRow| -> BTreeSet<String> {
            row.links.iter().map(|link| link.hash.clone()).collect()
        };
        let (tiles_before, tiles_after) = (insights(before), insights(after));
        let (links_before, links_after) = (hashes(before), hashes(after));
        Self {
            added: tiles_after.difference(&tiles_before).copied().collect(),
            removed: tiles_before.difference(&tiles_after).copied().collect(),
            opened: links_after.difference(&links_before).cloned().collect(),
            closed: links_before.difference(&links_after).cloned().collect(),
        }
    }
}

/// The word that refuses a change: an insight of a new tile is deleted.
pub const NO_INSIGHT: &str = "insight";

macro_rules! write_list {
    () => {
        "UPSERT type::record('project_dashboard', [$row.project, $row.number]) CONTENT {
             number: $row.number, name: $row.name, pinned: $row.pinned, deleted: $row.deleted,
         } RETURN NONE;"
    };
}

/// Writes what the list needs of `$row`, the insights of its added and removed tiles, and
/// the pointers of its share links.
macro_rules! write_dependents {
    () => {
        concat!(
            write_list!(),
            "FOR $insight IN $added {
                 LET $found = (UPDATE type::record('insight', [$row.project, $insight])
                               SET dashboards = array::union(dashboards, [$row.number])
                               RETURN VALUE number);
                 IF $found = [] { THROW 'insight' };
             };
             FOR $insight IN $removed {
                 UPDATE type::record('insight', [$row.project, $insight])
                     SET dashboards = array::complement(dashboards, [$row.number])
                     RETURN NONE;
             };
             FOR $hash IN $opened {
                 UPSERT type::record('dashboard_link', [$row.project, $hash])
                     CONTENT { dashboard: $row.number } RETURN NONE;
             };
             FOR $hash IN $closed {
                 DELETE type::record('dashboard_link', [$row.project, $hash]) RETURN NONE;
             };"
        )
    };
}

impl Row for DashboardRow {
    type Id = NumberedKey;
    type With = Dependents;
    const TABLE: &'static str = "dashboard";
    const UPDATE: &'static str = "dashboards update";
    const TEXT: &'static str = update_text!(write_dependents!());

    fn touch(&mut self, now: Timestamp) {
        self.revision = ids::time_ordered(now);
    }

    fn bind(&self, with: Dependents, vars: &mut Variables) -> Result<()> {
        vars.insert("added", with.added);
        vars.insert("removed", with.removed);
        vars.insert("opened", with.opened);
        vars.insert("closed", with.closed);
        Ok(())
    }
}

const NEXT_NUMBER: Statement =
    Statement::write("dashboards next number", "RETURN sequence::nextval('dashboard_number');");

/// A number that no dashboard has.
///
/// # Errors
/// Any failure of the store.
pub async fn next_number(store: &Store) -> Result<DashboardId> {
    numbered::next(store, NEXT_NUMBER).await.map(DashboardId)
}

/// All dashboards of a project in the order of their numbers, also hidden ones.
///
/// # Errors
/// Any failure of the store.
pub async fn briefs(store: &Store, project: ProjectId) -> Result<Vec<DashboardBrief>> {
    numbered::briefs(store, project, "dashboards of a project", "project_dashboard").await
}

/// Dashboards of a project, in the order of `ids`; missing ones are skipped.
///
/// # Errors
/// Any failure of the store; [`crate::Error::TooLarge`] for several that are too large together.
pub async fn rows(
    store: &Store,
    project: ProjectId,
    ids: &[DashboardId],
) -> Result<Vec<DashboardRow>> {
    let numbers: Vec<i64> = ids.iter().map(|id| id.0).collect();
    numbered::rows(store, project, DashboardRow::TABLE, &numbers).await
}

#[derive(Debug, SurrealValue)]
struct Linked {
    dashboard: DashboardId,
}

/// The dashboard with a share link whose token has this hash. It is found by the hash, so
/// that no secret is compared.
///
/// # Errors
/// Any failure of the store.
pub async fn by_link(store: &Store, project: ProjectId, hash: &str) -> Result<Option<DashboardId>> {
    let key: Vec<Value> = vec![project.0.into_value(), hash.to_owned().into_value()];
    let found = lists::records::<Linked>(store, "dashboard_link", vec![key]).await?;
    Ok(found.into_iter().flatten().next().map(|found| found.dashboard))
}

const CREATE: Statement = Statement::write(
    "dashboards create",
    numbered::create_text!("dashboard", "dashboards", write_list!()),
);

/// Adds a dashboard without tiles to this organization's project.
///
/// # Errors
/// Any failure of the store.
pub async fn create(
    store: &Store,
    organization: OrganizationId,
    row: &DashboardRow,
    activities: &[Entry],
) -> Result<Created> {
    numbered::create(store, CREATE, organization, row, DASHBOARDS_MAX, bind! {}, activities).await
}

const DELETE: Statement = Statement::delete(
    "dashboards delete",
    numbered::delete_text!(
        "dashboard",
        "dashboards",
        "FOR $tile IN $row.tiles {
             UPDATE type::record('insight', [$project, $tile.insight])
                 SET dashboards = array::complement(dashboards, [$record_number])
                 RETURN NONE;
         };
         FOR $link IN $row.links {
             DELETE type::record('dashboard_link', [$project, $link.hash]) RETURN NONE;
         };
         DELETE type::record('project_dashboard', [$project, $record_number]) RETURN NONE;",
        remove_subscriptions!("dashboard")
    ),
);

/// Deletes a dashboard with its tiles, share links and subscriptions. Its insights stay. Does
/// nothing when it is already deleted.
///
/// # Errors
/// Any failure of the store.
pub async fn delete(
    store: &Store,
    project: ProjectId,
    dashboard: DashboardId,
    activities: &[Entry],
) -> Result<()> {
    numbered::delete(store, DELETE, key(project, dashboard), bind! {}, activities).await
}

/// Removes all dashboards of a deleted project.
///
/// # Errors
/// When the store cannot be written; a further call continues.
pub(crate) async fn purge(store: &Store, project: ProjectId) -> Result<()> {
    // In this order for the reason given at `insights::purge`.
    numbered::purge(store, project, &["dashboard", "project_dashboard", "dashboard_link"]).await
}
