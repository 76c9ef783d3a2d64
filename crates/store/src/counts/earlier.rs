//! Counting the events from before there were counts, in the background.
//!
//! The migration wrote a cursor for each partition of each project: the last arrival number
//! at that time. Later events are counted when they are stored. One more cursor is for the
//! merges of a project. Each step counts some blocks, and moves the cursor in the same
//! transaction. The last step removes the cursor, so a project without cursors is counted.
//!
//! Other tasks do not remove or move blocks during a step. Events that are removed before
//! they are counted are not subtracted ([`Uncounted`]), so a removal does not wait for the
//! counting.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use surrealdb::types::{Array, RecordId, RecordIdKey, SurrealValue, Value};
use uuid::Uuid;
use weir_model::ProjectId;

use super::entries::{self, NAME};
use super::{CountWrites, EventCounts, Slot};
use crate::db::Operation;
use crate::events::{PARTITIONS, StoredEvent, blocks_between, read_whole_block};
use crate::hash_ranges::ScanLimits;
use crate::persons;
use crate::transaction::{Keyspace, RowKey, Transaction};
use crate::{Error, Result, Store};

/// Blocks that a step counts.
const BLOCKS: usize = 4;
/// Arrival numbers among which a step searches for blocks.
const WINDOW: u64 = 50_000;
/// Persons whose merges a step reads.
const PERSONS: usize = 2_000;
/// The number of the cursor for merges: no partition has it.
const MERGES: u16 = PARTITIONS;
/// Entries that one transaction removes.
const CHUNK: u32 = 1_000;

const CURSORS: Operation = Operation::read("cursors of event counts");
const COUNT: Operation =
    Operation::write("count earlier events").within(std::time::Duration::from_secs(60));
const PURGE: Operation = Operation::delete("purge event counts");

/// A cursor: events up to `last` are to be counted, from `next` on.
#[derive(Debug, Clone, SurrealValue)]
struct Cursor {
    id: RecordId,
    next: i64,
    last: i64,
    /// The next person, of the cursor for merges.
    person: Option<Uuid>,
}

/// Counting the events of all projects, step by step.
#[derive(Debug, Default)]
pub struct Counting {
    /// The next step is for the first project from here on: those before failed.
    from: i64,
    /// The first failure since the beginning was tried.
    failure: Option<Error>,
    /// The projects whose failure was logged.
    logged: BTreeSet<ProjectId>,
}

/// What a step of [`Counting`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Everything is counted.
    Done,
    /// So many events were counted, and there is more to do.
    Counted(u64),
}

impl Counting {
    /// Counts the next events from before there were counts. A project that fails is logged
    /// once, and the others are counted.
    ///
    /// # Errors
    /// The first failure, when all other projects are counted. The next call begins with
    /// the first project.
    pub async fn step(&mut self, store: &Store) -> Result<Progress> {
        let _changing = store.segments.changing().await?;
        let Some(cursor) = first_cursor(store, self.from).await? else {
            self.from = 0;
            return self.failure.take().map_or(Ok(Progress::Done), Err);
        };
        let project = ProjectId(crate::events::part(&cursor.id, 0, CURSORS.name)?);
        let counted = match cursor.partition() {
            Ok(MERGES) => merges(store, project, cursor).await.map(|()| 0),
            Ok(partition) => events(store, project, partition, cursor).await,
            Err(error) => Err(error),
        };
        match counted {
            Ok(events) => {
                self.logged.remove(&project);
                Ok(Progress::Counted(events))
            }
            Err(error) => {
                if self.logged.insert(project) {
                    tracing::warn!(%project, %error, "earlier events are not counted yet");
                }
                self.from = project.0.saturating_add(1);
                self.failure.get_or_insert(error);
                Ok(Progress::Counted(0))
            }
        }
    }
}

/// The first cursor of a project from a number on.
async fn first_cursor(store: &Store, from: i64) -> Result<Option<Cursor>> {
    let keyspace = store.db.keyspace().await?;
    let (from, to) = (id(ProjectId(from), &[]), id(ProjectId(i64::MAX), &[]));
    let range = Arc::new(keyspace.range(from, to)?);
    let work = move |tx: Transaction| {
        let range = Arc::clone(&range);
        async move { tx.first::<Cursor>(&range, 1).await }
    };
    let (cursors, _) = store.db.transact(CURSORS, (), work).await?;
    Ok(cursors.into_iter().next())
}

/// Counts the next events of a partition.
async fn events(store: &Store, project: ProjectId, partition: u16, cursor: Cursor) -> Result<u64> {
    let (next, last) = cursor.rest();
    let end = next.saturating_add(WINDOW).min(last.saturating_add(1));
    let firsts = blocks_between(store, project, partition, next, end).await?;
    let (mut counts, mut counted) = (EventCounts::default(), 0);
    // They are subtracted from groups when they are removed. The other counts of their person
    // went away with the person.
    let erased = store.erasures.of(project);
    let is_erased = |event: &StoredEvent| {
        let erased = erased.as_deref();
        erased.is_some_and(|erased| erased.takes_event(partition, event))
    };
    // All blocks that begin before this number are counted.
    let mut reached = end;
    for (at, first) in firsts.into_iter().enumerate() {
        if at >= BLOCKS {
            reached = first;
            break;
        }
        let block = match read_whole_block(store, project, (partition, first)).await {
            Ok(block) => block,
            // Its events are not shown either.
            Err(error @ (Error::Damaged { .. } | Error::Shape { .. })) => {
                tracing::error!(%project, partition, first, %error, "a block is not counted");
                continue;
            }
            Err(error) => return Err(error),
        };
        for event in block.iter().filter(|event| event.arrival <= last) {
            match is_erased(event) {
                true => counts.add_stored_to_groups(project, event),
                false => counts.add_stored(project, event),
            }
            counted += 1;
        }
    }
    let mut writes = CountWrites::default();
    let keyspace = store.db.keyspace().await?;
    writes.add(keyspace, project, Slot::Earlier, &counts, &[])?;
    let is_last = reached > last;
    let after = (!is_last).then(|| Cursor { next: int(reached), ..cursor.clone() });
    advance(store, keyspace, cursor, after, writes).await?;
    Ok(counted)
}

/// Writes the merges of the next persons.
async fn merges(store: &Store, project: ProjectId, cursor: Cursor) -> Result<()> {
    let limits = ScanLimits::records(PERSONS);
    let (found, next) = persons::merges(store, project, cursor.person, limits).await?;
    let mut writes = CountWrites::default();
    let keyspace = store.db.keyspace().await?;
    let mut counts = EventCounts::default();
    found.iter().for_each(|(_, into)| counts.mark_person(*into));
    writes.add(keyspace, project, Slot::Earlier, &counts, &found)?;
    let after = next.map(|next| Cursor { person: Some(next), ..cursor.clone() });
    advance(store, keyspace, cursor, after, writes).await
}

/// Writes counts and moves the cursor in one transaction.
async fn advance(
    store: &Store,
    keyspace: Keyspace,
    before: Cursor,
    after: Option<Cursor>,
    writes: CountWrites,
) -> Result<()> {
    let key = Arc::new(keyspace.key(before.id.clone())?);
    let row = after.map(|after| keyspace.row(before.id.clone(), after.content())).transpose()?;
    let place = (before.next, before.person);
    let changed = Arc::new((writes, row));
    let work = move |tx: Transaction| {
        let (key, changed) = (Arc::clone(&key), Arc::clone(&changed));
        async move {
            let present: Option<Cursor> = tx.get_for_update(&key).await?;
            // It may run twice, and counts once.
            if present.is_none_or(|present| (present.next, present.person) != place) {
                return Ok(());
            }
            let (writes, row) = &*changed;
            writes.write(&tx).await?;
            match row {
                Some(row) => tx.set(row).await,
                None => tx.delete(&[RowKey::clone(&key).into_bytes()]).await,
            }
        }
    };
    store.db.transact(COUNT, (), work).await
}

impl Cursor {
    fn partition(&self) -> Result<u16> {
        let partition = crate::events::part(&self.id, 1, CURSORS.name)?;
        u16::try_from(partition).map_err(|_| unexpected())
    }

    /// The first block that is not counted, and the last event that this cursor is for.
    fn rest(&self) -> (u64, u64) {
        (u64::try_from(self.next).unwrap_or(0), u64::try_from(self.last).unwrap_or(0))
    }

    /// The record without its id.
    fn content(self) -> Value {
        match self.into_value() {
            Value::Object(mut object) => {
                object.remove("id");
                Value::Object(object)
            }
            other => other,
        }
    }
}

/// The events of a project from before there were counts that are not counted yet.
#[derive(Debug)]
pub(crate) struct Uncounted {
    /// By partition, see [`Cursor::rest`].
    rest: HashMap<u16, (u64, u64)>,
}

impl Uncounted {
    /// The caller keeps others from counting.
    pub(crate) async fn of(store: &Store, project: ProjectId) -> Result<Self> {
        let range = Arc::new(store.db.keyspace().await?.beginning_with(id(project, &[]))?);
        let work = move |tx: Transaction| {
            let range = Arc::clone(&range);
            async move { tx.first::<Cursor>(&range, u32::from(MERGES) + 1).await }
        };
        let (cursors, _) = store.db.transact(CURSORS, (), work).await?;
        let rest = cursors.iter().map(|cursor| Ok((cursor.partition()?, cursor.rest())));
        Ok(Self { rest: rest.collect::<Result<_>>()? })
    }

    /// Whether an event of the block at this place is one of them.
    pub(crate) fn contains(&self, (partition, first): (u16, u64), arrival: u64) -> bool {
        let rest = self.rest.get(&partition);
        rest.is_some_and(|(next, last)| first >= *next && arrival <= *last)
    }
}

/// Whether all events of a project are counted.
pub(crate) async fn is_complete(store: &Store, project: ProjectId) -> Result<bool> {
    let range = Arc::new(store.db.keyspace().await?.beginning_with(id(project, &[]))?);
    let work = move |tx: Transaction| {
        let range = Arc::clone(&range);
        async move { tx.count(&range, 1).await }
    };
    Ok(store.db.transact(CURSORS, (), work).await? == 0)
}

/// Removes all counts of a project, in small transactions. The caller keeps others from
/// counting.
///
/// # Errors
/// When the store cannot be written; a further call continues.
pub(crate) async fn purge(store: &Store, project: ProjectId) -> Result<()> {
    let keyspace = store.db.keyspace().await?;
    let cursors = keyspace.beginning_with(id(project, &[]))?;
    for range in [cursors, entries::of_project(keyspace, project)?] {
        store.db.delete_range(PURGE, range, CHUNK).await?;
    }
    Ok(())
}

/// `event_count_cursor:[project, partition]`, or the beginning of such ids.
fn id(project: ProjectId, partition: &[u16]) -> RecordId {
    let partition = partition.iter().map(|number| Value::Number(i64::from(*number).into()));
    let parts: Vec<Value> =
        [Value::Number(project.0.into())].into_iter().chain(partition).collect();
    RecordId::new("event_count_cursor", RecordIdKey::Array(Array::from(parts)))
}

fn int(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn unexpected() -> Error {
    Error::Shape { statement: NAME, detail: "an unexpected cursor".to_owned() }
}
