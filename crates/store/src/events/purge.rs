//! Removing all stored data of a deleted project: events, their pointers and uuids, persons,
//! groups, definitions, warnings, reports of erasures, insights, dashboards,
//! annotations, alerts, subscriptions.
//!
//! It uses small transactions, so that other work does not wait for long. Sealed events go
//! first (`segments/retention`). What leads to a block is removed before the block, and the
//! heads last. So a purge that was interrupted starts again and finds the rest.

use std::collections::BTreeMap;

use weir_model::ProjectId;

use super::apply::Head;
use super::block::{StoredEvent, decode};
use super::read::{block_data, firsts_between, heads};
use super::uuids::UuidKeys;
use super::{keys, segments};
use crate::bind::bind;
use crate::db::{Operation, Statement};
use crate::transaction::{Keyspace, RowKey};
use crate::{
    Result, Store, alerts, annotations, counts, dashboards, definitions, erasures, groups, imports,
    insights, persons, projects, subscriptions, traffic, warnings,
};

/// The range of arrival numbers that one statement reads.
const WINDOW: u64 = 50_000;
/// Records that one transaction deletes.
const CHUNK: usize = 1_000;
/// Entries of the index of uuids that one transaction deletes.
const UUIDS: u32 = 1_000;

const DELETE: Operation = Operation::delete("purge events");
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
    purge_events(store, project, &heads).await?;
    counts::purge(store, project).await?;
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
    erasures::purge(store, project).await?;
    insights::purge(store, project).await?;
    dashboards::purge(store, project).await?;
    annotations::purge(store, project).await?;
    alerts::purge(store, project).await?;
    subscriptions::purge(store, project).await?;
    store.blocks.forget(project);
    store.people.forget(project);
    // What needs disk space comes last.
    purge_uuids(store, project).await?;
    let keyspace = store.db.keyspace().await?;
    let heads = heads.keys().map(|partition| keys::head(project, *partition));
    let heads = keyspace.keys(heads.chain([keys::removed(project)]))?;
    delete(store, heads.into_iter().map(RowKey::into_bytes).collect()).await
}

/// Removes the uuids of a project: those of erased events, which no block has, and those in
/// runs.
async fn purge_uuids(store: &Store, project: ProjectId) -> Result<()> {
    let range = store.db.keyspace().await?.beginning_with(keys::uuids(project))?;
    store.db.delete_range(DELETE, range, UUIDS).await?;
    let _changing = store.segments.changing().await?;
    segments::forget(store, project).await
}

async fn purge_events(
    store: &Store,
    project: ProjectId,
    heads: &BTreeMap<u16, Head>,
) -> Result<()> {
    // A block that is sealed now would come back.
    let _changing = store.segments.changing().await?;
    segments::purge(store, project).await?;
    for (partition, head) in heads {
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
    Ok(())
}

async fn purge_block(store: &Store, project: ProjectId, partition: u16, first: u64) -> Result<()> {
    let data = block_data(store, project, (partition, first)).await?;
    let events = match data.map(|data| decode(&data)).transpose() {
        Ok(events) => events.unwrap_or_default(),
        Err(error) => {
            tracing::error!(
                %project, partition, first, %error,
                "a damaged block is removed; entries that lead to its events may stay"
            );
            Vec::new()
        }
    };
    let keyspace = store.db.keyspace().await?;
    delete(store, leading_to(keyspace, project, partition, first, &events)?).await?;
    let block = [keys::summary(project, partition, first), keys::block(project, partition, first)];
    let block = keyspace.keys(block)?.into_iter().map(RowKey::into_bytes);
    delete(store, block.collect()).await
}

/// The keys of what leads to the events of a block: entries of the index of uuids, and
/// pointers.
fn leading_to(
    keyspace: Keyspace,
    project: ProjectId,
    partition: u16,
    first: u64,
    events: &[StoredEvent],
) -> Result<Vec<Vec<u8>>> {
    let uuids = UuidKeys::of(keyspace, project)?;
    let mut leading: Vec<Vec<u8>> = events.iter().map(|event| uuids.key(event.uuid)).collect();
    // The width that a write chose is not known here. Deleting ids that do not exist does
    // no harm.
    for width in keys::WIDTHS {
        let mut buckets: Vec<i64> =
            events.iter().map(|event| keys::bucket(event.timestamp, width)).collect();
        buckets.sort_unstable();
        buckets.dedup();
        for bucket in buckets {
            let pointer = keyspace.key(keys::time(project, width, bucket, partition, first))?;
            leading.push(pointer.into_bytes());
        }
    }
    Ok(leading)
}

/// Deletes what has these keys, some at a time.
async fn delete(store: &Store, keys: Vec<Vec<u8>>) -> Result<()> {
    for some in keys.chunks(CHUNK) {
        store.db.delete_keys(DELETE, some.to_vec()).await?;
    }
    Ok(())
}
