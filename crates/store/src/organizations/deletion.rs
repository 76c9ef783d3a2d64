//! Tombstones of deleted organizations and projects, whose data is removed in the
//! background.
//!
//! What belongs here: reading the table `deletion`. What does not: writing tombstones,
//! which is part of each deletion, and removing events (`events`).

use surrealdb::types::SurrealValue;
use uuid::Uuid;
use weir_model::{ProjectId, Timestamp};

use crate::bind::bind;
use crate::db::Statement;
use crate::{Result, Store};

/// A tombstone: data that is to be removed in the background.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deletion {
    /// Id of the deleted organization, or UUID of the deleted project.
    pub of: Uuid,
    /// The projects whose events are to be removed.
    pub projects: Vec<ProjectId>,
    /// When it was deleted.
    pub requested_at: Timestamp,
}

#[derive(Debug, SurrealValue)]
struct StoredDeletion {
    of: Uuid,
    projects: Vec<i64>,
    requested_at: i64,
}

// A table scan: there are few tombstones, and they are read rarely.
const DELETIONS: Statement = Statement::read(
    "organizations deletions",
    "SELECT projects, requested_at, record::id(id) AS of FROM deletion;",
);

/// The deletions whose events are still stored.
///
/// # Errors
/// Any failure of the store.
pub async fn deletions(store: &Store) -> Result<Vec<Deletion>> {
    let mut answer = store.db.run(DELETIONS, bind! {}).await?;
    let shown = |stored: StoredDeletion| Deletion {
        of: stored.of,
        projects: stored.projects.into_iter().map(ProjectId).collect(),
        requested_at: Timestamp::from_micros(stored.requested_at),
    };
    Ok(answer.rows::<StoredDeletion>(0)?.into_iter().map(shown).collect())
}

const DELETION_DONE: Statement = Statement::delete(
    "organizations deletion done",
    "DELETE type::record('deletion', $of) RETURN NONE;",
);

/// Removes a tombstone once the events of its deletion are removed.
///
/// # Errors
/// Any failure of the store.
pub async fn deletion_done(store: &Store, deletion: &Deletion) -> Result<()> {
    store.db.run(DELETION_DONE, bind! { of: deletion.of }).await.map(drop)
}
