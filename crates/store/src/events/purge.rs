//! Removing all stored data of a deleted project: events and their pointers, persons,
//! groups, definitions, warnings.
//!
//! It uses small transactions, so that other work does not wait for long. Pointers to a
//! block are removed before the block, and the heads last. So a purge that was
//! interrupted starts again and finds the rest.

use surrealdb::types::{RecordId, SurrealValue, Value};
use weir_model::ProjectId;

use super::block::{StoredEvent, decode};
use super::keys;
use super::read::{BLOCKS, BlockRow, firsts_between, heads};
use crate::bind::bind;
use crate::db::Statement;
use crate::{Result, Store, definitions, groups, imports, persons, projects, traffic, warnings};

/// The range of arrival numbers that one statement reads.
const WINDOW: u64 = 50_000;
/// Records that one transaction deletes.
const CHUNK: usize = 1_000;

const DELETE: Statement = Statement::delete("purge records", "DELETE $ids RETURN NONE;");
// A few hundred records at most of each, see `warnings` and `projects`.
const DELETE_COUNTS: Statement = Statement::delete(
    "purge counts",
    "BEGIN;
     DELETE $counts RETURN NONE;
     DELETE $traffic RETURN NONE;
     COMMIT;",
);

/// Removes all stored data of a project that receives no events any more. Does nothing
/// when there is none.
///
/// # Errors
/// When the store cannot be read or written; a further call continues.
pub async fn purge(store: &Store, project: ProjectId) -> Result<()> {
    let heads = heads(store, project).await?;
    for (partition, head) in &heads {
        let end = u64::try_from(head.last).unwrap_or(0) + 1;
        let mut low = 0;
        while low < end {
            let high = low.saturating_add(WINDOW).min(end);
            for first in firsts_between(store, project, *partition, low, high).await? {
                purge_block(store, project, *partition, first).await?;
            }
            low = high;
        }
    }
    let vars = bind! {
        counts: warnings::of_project("ingestion_warning", project),
        traffic: projects::traffic_of_project(project),
    };
    store.db.run(DELETE_COUNTS, vars).await?;
    warnings::purge(store, project).await?;
    persons::purge(store, project).await?;
    groups::purge(store, project).await?;
    definitions::purge(store, project).await?;
    traffic::purge(store, project).await?;
    imports::purge(store, project).await?;
    delete(store, heads.keys().map(|partition| keys::head(project, *partition)).collect()).await
}

async fn purge_block(store: &Store, project: ProjectId, partition: u16, first: u64) -> Result<()> {
    let block = keys::block(project, partition, first);
    let row: Option<BlockRow> =
        store.db.run(BLOCKS, bind! { ids: vec![block.clone()] }).await?.row(0)?;
    let events = match row.map(|row| decode(&row.data)).transpose() {
        Ok(events) => events.unwrap_or_default(),
        Err(error) => {
            tracing::error!(
                %project, partition, first, %error,
                "a damaged block is removed; records that lead to its events may stay"
            );
            Vec::new()
        }
    };
    delete(store, leading_to(project, partition, first, &events)).await?;
    delete(store, vec![keys::summary(project, partition, first), block]).await
}

/// The pointers that were written for the events of a block.
fn leading_to(
    project: ProjectId,
    partition: u16,
    first: u64,
    events: &[StoredEvent],
) -> Vec<RecordId> {
    let mut ids = Vec::with_capacity(2 * events.len());
    ids.extend(events.iter().map(|event| keys::uuid(project, event.uuid)));
    // The width that a write chose is not known here. Deleting ids that do not exist does
    // no harm.
    for width in keys::WIDTHS {
        let mut buckets: Vec<i64> =
            events.iter().map(|event| keys::bucket(event.timestamp, width)).collect();
        buckets.sort_unstable();
        buckets.dedup();
        let pointer = |bucket| keys::time(project, width, bucket, partition, first);
        ids.extend(buckets.into_iter().map(pointer));
    }
    ids
}

async fn delete(store: &Store, ids: Vec<RecordId>) -> Result<()> {
    for chunk in ids.chunks(CHUNK) {
        let ids: Vec<Value> = chunk.iter().map(|id| id.clone().into_value()).collect();
        store.db.run(DELETE, bind! { ids: ids }).await?;
    }
    Ok(())
}
