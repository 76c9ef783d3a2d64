//! Saved insights of projects.
//!
//! What belongs here: statements about the tables below. What does not: which questions can
//! be saved, and who may change them (`weir-service`); tiles (`dashboards`).
//!
//! | table | id | holds |
//! |---|---|---|
//! | `insight` | `[project, insight]` | the record, with the dashboards that have a tile of it |
//! | `project_insight` | `[project, insight]` | an [`InsightBrief`]: the list of a project |
//! | `insight_short` | `[project, short id]` | the number |
//!
//! The tiles are in the records of dashboards. A transaction that adds or removes a tile
//! writes both records, so that they agree. The record of the project counts its insights.

use surrealdb::types::{SurrealValue, Value, Variables};
use uuid::Uuid;
use weir_model::activity::Entry;
use weir_model::insights::INSIGHTS_MAX;
use weir_model::{DashboardId, InsightId, OrganizationId, ProjectId, Timestamp, UserId};

use crate::alerts::remove_alerts;
use crate::bind::bind;
use crate::dashboards::TileRow;
use crate::db::Statement;
use crate::numbered::{self, Created, NumberedKey};
use crate::subscriptions::remove_subscriptions;
use crate::update::{Row, update_text};
use crate::{Result, Store, lists};

/// An insight as stored.
#[derive(Debug, Clone, PartialEq, Eq, SurrealValue)]
pub struct InsightRow {
    /// Its number.
    #[surreal(rename = "number")]
    pub id: InsightId,
    /// The project that it belongs to.
    pub project: ProjectId,
    /// Letters that identify it within the project. They never change.
    pub short_id: String,
    /// Name.
    pub name: Option<String>,
    /// Name that a client made from the question.
    pub derived_name: Option<String>,
    /// Description for people.
    pub description: Option<String>,
    /// The question in its canonical form, as JSON.
    pub query: String,
    /// Labels.
    pub tags: Vec<String>,
    /// Whether it is marked as a favorite of the project.
    pub favorited: bool,
    /// Whether it was saved for later.
    pub saved: bool,
    /// Whether it is hidden.
    pub deleted: bool,
    /// The dashboards that have a tile of it, also hidden dashboards.
    pub dashboards: Vec<DashboardId>,
    /// The user who created it.
    pub created_by: UserId,
    /// When it was created.
    pub created_at: Timestamp,
    /// The user who changed it last.
    pub last_modified_by: UserId,
    /// When it was last changed.
    pub last_modified_at: Timestamp,
}

impl InsightRow {
    fn key(&self) -> NumberedKey {
        key(self.project, self.id)
    }
}

/// The key of an insight.
pub fn key(project: ProjectId, insight: InsightId) -> NumberedKey {
    NumberedKey { project, number: insight.0 }
}

/// The fields of an insight by which a list is filtered.
#[derive(Debug, Clone, PartialEq, Eq, SurrealValue)]
pub struct InsightBrief {
    /// Its number.
    #[surreal(rename = "number")]
    pub id: InsightId,
    /// Letters that identify it within the project.
    pub short_id: String,
    /// Name.
    pub name: Option<String>,
    /// Name that a client made from the question.
    pub derived_name: Option<String>,
    /// Whether it is marked as a favorite of the project.
    pub favorited: bool,
    /// Whether it was saved for later.
    pub saved: bool,
    /// Whether it is hidden.
    pub deleted: bool,
    /// The user who created it.
    pub created_by: UserId,
}

/// The tiles of a dashboard after a tile of an insight was added or removed.
#[derive(Debug, Clone, PartialEq, Eq, SurrealValue)]
pub struct ChangedTiles {
    /// The dashboard.
    pub dashboard: DashboardId,
    /// Its revision when it was read.
    pub before: Uuid,
    /// Its revision after the change.
    pub after: Uuid,
    /// Its tiles after the change.
    pub tiles: Vec<TileRow>,
    /// The number of its next tile after the change.
    pub next_tile: i64,
}

/// The word that refuses a change: a dashboard was changed since it was read.
pub const STALE: &str = "stale";

/// Writes what the list needs of `$row`, and the tiles `$boards` of the dashboards on which
/// it gets or loses a tile. Throws `stale` if one of them was changed since it was read.
macro_rules! write_list_and_tiles {
    () => {
        "UPSERT type::record('project_insight', [$row.project, $row.number]) CONTENT {
             number: $row.number, short_id: $row.short_id, name: $row.name,
             derived_name: $row.derived_name, favorited: $row.favorited, saved: $row.saved,
             deleted: $row.deleted, created_by: $row.created_by,
         } RETURN NONE;
         FOR $board IN $boards {
             LET $revision = (SELECT VALUE revision FROM ONLY
                 type::record('dashboard', [$row.project, $board.dashboard]));
             IF $revision != $board.before AND $revision != $board.after { THROW 'stale' };
             UPDATE type::record('dashboard', [$row.project, $board.dashboard])
                 SET tiles = $board.tiles, next_tile = $board.next_tile,
                     revision = $board.after
                 RETURN NONE;
         };"
    };
}

impl Row for InsightRow {
    type Id = NumberedKey;
    type With = Vec<ChangedTiles>;
    const TABLE: &'static str = "insight";
    const UPDATE: &'static str = "insights update";
    const TEXT: &'static str = update_text!(write_list_and_tiles!());

    fn touch(&mut self, now: Timestamp) {
        self.last_modified_at = now;
    }

    fn bind(&self, boards: Vec<ChangedTiles>, vars: &mut Variables) -> Result<()> {
        vars.insert("boards", boards);
        Ok(())
    }
}

const NEXT_NUMBER: Statement =
    Statement::write("insights next number", "RETURN sequence::nextval('insight_number');");

/// A number that no insight has.
///
/// # Errors
/// Any failure of the store.
pub async fn next_number(store: &Store) -> Result<InsightId> {
    numbered::next(store, NEXT_NUMBER).await.map(InsightId)
}

/// All insights of a project in the order of their numbers, also hidden ones.
///
/// # Errors
/// Any failure of the store.
pub async fn briefs(store: &Store, project: ProjectId) -> Result<Vec<InsightBrief>> {
    numbered::briefs(store, project, "insights of a project", "project_insight").await
}

/// Insights of a project, in the order of `ids`; missing ones are skipped.
///
/// # Errors
/// Any failure of the store; [`crate::Error::TooLarge`] for several that are too large together.
pub async fn rows(store: &Store, project: ProjectId, ids: &[InsightId]) -> Result<Vec<InsightRow>> {
    let numbers: Vec<i64> = ids.iter().map(|id| id.0).collect();
    numbered::rows(store, project, InsightRow::TABLE, &numbers).await
}

#[derive(Debug, SurrealValue)]
struct ShortId {
    insight: InsightId,
}

/// The number of the insight with this short id, which must not be empty.
///
/// # Errors
/// Any failure of the store.
pub async fn by_short_id(
    store: &Store,
    project: ProjectId,
    short_id: &str,
) -> Result<Option<InsightId>> {
    let key: Vec<Value> = vec![project.0.into_value(), short_id.to_owned().into_value()];
    let found = lists::records::<ShortId>(store, "insight_short", vec![key]).await?;
    Ok(found.into_iter().flatten().next().map(|found| found.insight))
}

const CREATE: Statement = Statement::write(
    "insights create",
    numbered::create_text!(
        "insight",
        "insights",
        "LET $same = (SELECT VALUE insight FROM ONLY
             type::record('insight_short', [$row.project, $row.short_id]));
         IF $same != NONE { THROW 'taken' };
         UPSERT type::record('insight_short', [$row.project, $row.short_id])
             CONTENT { insight: $row.number } RETURN NONE;",
        write_list_and_tiles!()
    ),
);

/// Adds an insight of this organization's project, with its tiles.
///
/// # Errors
/// Any failure of the store.
pub async fn create(
    store: &Store,
    organization: OrganizationId,
    row: &InsightRow,
    boards: &[ChangedTiles],
    activities: &[Entry],
) -> Result<Created> {
    let dependent = bind! { boards: boards.to_vec() };
    numbered::create(store, CREATE, organization, row, INSIGHTS_MAX, dependent, activities).await
}

const DELETE: Statement = Statement::delete(
    "insights delete",
    numbered::delete_text!(
        "insight",
        "insights",
        "FOR $dashboard IN $row.dashboards {
             LET $tiles = (SELECT VALUE tiles
                           FROM ONLY type::record('dashboard', [$project, $dashboard]));
             IF $tiles != NONE {
                 LET $others = (SELECT * FROM $tiles WHERE insight != $record_number);
                 UPDATE type::record('dashboard', [$project, $dashboard])
                     SET tiles = $others, revision = $revision RETURN NONE;
             };
         };
         DELETE type::record('insight_short', [$project, $row.short_id]) RETURN NONE;
         DELETE type::record('project_insight', [$project, $record_number]) RETURN NONE;",
        remove_alerts!(),
        remove_subscriptions!("insight")
    ),
);

/// Deletes an insight with its alerts, its subscriptions and its tiles, whose dashboards get the revision
/// `revision`. Does nothing when it is already deleted.
///
/// # Errors
/// Any failure of the store.
pub async fn delete(
    store: &Store,
    row: &InsightRow,
    revision: Uuid,
    activities: &[Entry],
) -> Result<()> {
    numbered::delete(store, DELETE, row.key(), bind! { revision: revision }, activities).await
}

/// Removes all insights of a deleted project.
///
/// # Errors
/// When the store cannot be written; a further call continues.
pub(crate) async fn purge(store: &Store, project: ProjectId) -> Result<()> {
    // The records first: a change that is not finished yet finds none, and writes no list.
    numbered::purge(store, project, &["insight", "insight_short", "project_insight"]).await
}

#[cfg(test)]
mod tests;
