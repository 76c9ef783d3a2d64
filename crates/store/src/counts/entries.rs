//! Keys and values of the counts.
//!
//! A key is that of a record `event_count:[project, scope, id]` and a byte for the slot, so
//! all keys of a project have one length. A value is a mark and, for counts, the number of
//! events, the first and the last time; for a merge, the id of the person. The query engine
//! cannot read this table.

use std::collections::HashMap;

use surrealdb::types::{Array, RecordId, RecordIdKey, Value};
use uuid::{Uuid, uuid};
use weir_model::{PersonId, ProjectId};

use super::{Counts, EventCounts};
use crate::db::Failure;
use crate::events::PARTITIONS;
use crate::transaction::{ENTRIES_PER_READ, Entry, IdRange, Keyspace, Transaction};
use crate::{Error, Result};

/// The scope of all events of a person.
pub(super) const PERSONS: Uuid = Uuid::nil();
/// The scope of merges: which person an id was merged into.
pub(super) const MERGES: Uuid = Uuid::max();

/// The first byte of counts: no event has a person.
const WITHOUT_PERSON: u8 = 0;
/// The first byte of counts: at least one event has a person.
const WITH_PERSON: u8 = 1;
/// The first byte of a merge.
const MERGED: u8 = 2;

// Any uuids whose bytes occur nowhere else in a key.
const SCOPE_PROBE: Uuid = uuid!("a5c31e77-90d4-4f6b-8be2-5d17f3c9066a");
const ID_PROBE: Uuid = uuid!("5be0c9d2-13f7-4ea1-9c66-81d2b7a4f03e");

/// Ids whose counts one read has: each has as many entries as there are slots.
const IDS_PER_READ: usize = ENTRIES_PER_READ / (PARTITIONS as usize + 2);

/// The writer of counts. Each one has its own entries, so that writers do not conflict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slot {
    /// The events that a partition stores.
    Partition(u16),
    /// Events from before there were counts.
    Earlier,
    /// Removed events, which are subtracted.
    Removed,
}

impl Slot {
    pub(super) fn byte(self) -> u8 {
        match self {
            Self::Partition(partition) => u8::try_from(partition).unwrap_or(u8::MAX - 2),
            Self::Earlier => u8::MAX - 1,
            Self::Removed => u8::MAX,
        }
    }
}

/// The keys of a project's entries.
#[derive(Debug, Clone)]
pub(super) struct CountKeys {
    key: Vec<u8>,
    /// Where the bytes of the scope and of the id begin.
    scope_at: usize,
    id_at: usize,
}

impl CountKeys {
    pub(super) fn of(keyspace: Keyspace, project: ProjectId) -> Result<Self> {
        let uuid = |uuid: Uuid| Value::Uuid(uuid.into());
        let parts = vec![Value::Number(project.0.into()), uuid(SCOPE_PROBE), uuid(ID_PROBE)];
        let mut key = keyspace.key(record(parts))?.into_bytes();
        key.push(0);
        let at = |probe: Uuid| key.windows(16).position(|bytes| bytes == probe.as_bytes());
        match (at(SCOPE_PROBE), at(ID_PROBE)) {
            (Some(scope_at), Some(id_at)) if scope_at < id_at => Ok(Self { scope_at, id_at, key }),
            _ => Err(damaged("the engine encodes uuids in another way")),
        }
    }

    pub(super) fn key(&self, scope: Uuid, id: Uuid, slot: u8) -> Vec<u8> {
        let mut key = self.key.clone();
        for (at, uuid) in [(self.scope_at, scope), (self.id_at, id)] {
            if let Some(bytes) = key.get_mut(at..at + 16) {
                bytes.copy_from_slice(uuid.as_bytes());
            }
        }
        if let Some(last) = key.last_mut() {
            *last = slot;
        }
        key
    }

    /// All entries of a scope, in the order of their ids and slots.
    pub(super) fn scope(&self, scope: Uuid) -> IdRange {
        let start = self.key(scope, Uuid::nil(), 0);
        let mut end = self.key(scope, Uuid::max(), u8::MAX);
        end.push(0);
        IdRange::between(start, end)
    }

    /// The id and the slot in a key.
    pub(super) fn read(&self, key: &[u8]) -> Result<(Uuid, u8)> {
        let id = key.get(self.id_at..self.id_at + 16).and_then(|id| Uuid::from_slice(id).ok());
        match (id, key.last()) {
            (Some(id), Some(slot)) if key.len() == self.key.len() => Ok((id, *slot)),
            _ => Err(damaged("a key of another length")),
        }
    }
}

/// All entries of a project.
pub(super) fn of_project(keyspace: Keyspace, project: ProjectId) -> Result<IdRange> {
    keyspace.beginning_with(record(vec![Value::Number(project.0.into())]))
}

/// All entries of a project in ranges of about the same size.
pub(crate) fn ranges(keyspace: Keyspace, project: ProjectId) -> Result<Vec<IdRange>> {
    const RANGES: u128 = 16;
    let keys = CountKeys::of(keyspace, project)?;
    let hash = |at: u128| Uuid::from_u128(at << 124);
    let scopes = (0..RANGES).map(|at| keys.key(hash(at), Uuid::nil(), 0));
    let of_persons = (1..RANGES).map(|at| keys.key(PERSONS, hash(at), 0));
    let mut bounds: Vec<Vec<u8>> = scopes.chain(of_persons).collect();
    bounds.sort_unstable();
    let mut end = keys.key(Uuid::max(), Uuid::max(), u8::MAX);
    end.push(0);
    let ends = bounds.iter().skip(1).cloned().chain([end]);
    Ok(bounds.iter().cloned().zip(ends).map(|(from, to)| IdRange::between(from, to)).collect())
}

fn record(parts: Vec<Value>) -> RecordId {
    RecordId::new("event_count", RecordIdKey::Array(Array::from(parts)))
}

impl Counts {
    fn value(self) -> Vec<u8> {
        let mut value = Vec::with_capacity(25);
        value.push(if self.has_person { WITH_PERSON } else { WITHOUT_PERSON });
        for number in [self.events, self.first, self.last] {
            value.extend_from_slice(&number.to_be_bytes());
        }
        value
    }

    pub(super) fn of_value(value: &[u8]) -> Result<Self> {
        let wrong = || damaged("a value that is no count");
        let (mark, rest) = value.split_first().ok_or_else(wrong)?;
        let (numbers, []) = rest.as_chunks::<8>() else { return Err(wrong()) };
        let [events, first, last] = numbers else { return Err(wrong()) };
        let [events, first, last] = [events, first, last].map(|bytes| i64::from_be_bytes(*bytes));
        match *mark {
            WITHOUT_PERSON | WITH_PERSON => {
                Ok(Self { events, first, last, has_person: *mark == WITH_PERSON })
            }
            _ => Err(wrong()),
        }
    }
}

/// The entry of a merge.
pub(super) fn merge(keys: &CountKeys, from: PersonId, into: PersonId) -> Entry {
    let mut value = vec![MERGED];
    value.extend_from_slice(into.0.as_bytes());
    Entry { key: keys.key(MERGES, from.0, 0), value }
}

/// The person in the value of a merge.
pub(super) fn merged_into(value: &[u8]) -> Result<Uuid> {
    let into = value.strip_prefix(&[MERGED]).and_then(|into| Uuid::from_slice(into).ok());
    into.ok_or_else(|| damaged("a value that is no merge"))
}

/// The entries that a transaction adds to or replaces.
#[derive(Debug, Clone, Default)]
pub(crate) struct CountWrites {
    /// Counts to add, by key.
    sums: Vec<(Vec<u8>, Counts)>,
    merges: Vec<Entry>,
}

impl CountWrites {
    /// Adds the counts of events, and merges.
    pub(crate) fn add(
        &mut self,
        keyspace: Keyspace,
        project: ProjectId,
        slot: Slot,
        counts: &EventCounts,
        merges: &[(PersonId, PersonId)],
    ) -> Result<()> {
        let keys = CountKeys::of(keyspace, project)?;
        let slot = slot.byte();
        let sum = |((scope, id), counts): (&(Uuid, Uuid), &Counts)| {
            (keys.key(*scope, *id, slot), *counts)
        };
        self.sums.extend(counts.rows.iter().map(sum));
        // Neighbours are found faster.
        self.sums.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        self.merges.extend(merges.iter().map(|(from, into)| merge(&keys, *from, *into)));
        Ok(())
    }

    /// The keys of the counts.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &[u8]> {
        self.sums.iter().map(|(key, _)| key.as_slice())
    }

    /// The entries with the sums of the counts and those of the store. `values` are the stored
    /// ones of [`Self::keys`]. No other transaction may write the same slot at the same time.
    pub(crate) fn sums(&self, values: &[Option<Vec<u8>>]) -> Result<Vec<Entry>> {
        let sum = |((key, counts), value): (&(Vec<u8>, Counts), &Option<Vec<u8>>)| {
            let present = value.as_deref().map_or(Ok(Counts::NONE), Counts::of_value);
            Ok(Entry { key: key.clone(), value: present?.with(*counts).value() })
        };
        self.sums.iter().zip(values).map(sum).collect()
    }

    /// The entries of the merges.
    pub(crate) fn merges(&self) -> &[Entry] {
        &self.merges
    }

    /// Adds the counts to those of the store, as [`Self::sums`] does, and writes the merges.
    pub(crate) async fn write(&self, tx: &Transaction) -> Result<(), Failure> {
        let keys: Vec<&[u8]> = self.keys().collect();
        let sums = self.sums(&tx.small_values(&keys).await?)?;
        for entry in sums.iter().chain(&self.merges) {
            tx.put(entry).await?;
        }
        Ok(())
    }
}

/// All slots of a count. That of removed events is the last one.
fn slots() -> impl Iterator<Item = Slot> {
    (0..PARTITIONS).map(Slot::Partition).chain([Slot::Earlier, Slot::Removed])
}

/// The keys of all slots of the count that a key belongs to, in the order of [`slots`].
fn of_all_slots(key: &[u8]) -> Vec<Vec<u8>> {
    let of_slot = |slot: Slot| {
        let mut key = key.to_vec();
        if let Some(last) = key.last_mut() {
            *last = slot.byte();
        }
        key
    };
    slots().map(of_slot).collect()
}

/// Counts of erased events, which are subtracted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Subtracted {
    /// By the key of the slot of removed events.
    sums: Vec<(Vec<u8>, Counts)>,
}

impl Subtracted {
    pub(crate) fn of(keyspace: Keyspace, project: ProjectId, counts: &EventCounts) -> Result<Self> {
        let mut writes = CountWrites::default();
        writes.add(keyspace, project, Slot::Removed, counts, &[])?;
        Ok(Self { sums: writes.sums })
    }

    /// Subtracts them. A count of which nothing is left goes away. A partition that adds to
    /// such a count at the same time is in conflict, and one of both is repeated.
    pub(crate) async fn write(&self, tx: &Transaction) -> Result<(), Failure> {
        for (key, counts) in &self.sums {
            let keys = of_all_slots(key);
            let wanted: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
            let values = tx.entries(&wanted).await?;
            let (mut left, mut removed) = (Counts::NONE, Counts::NONE);
            for (slot, value) in slots().zip(&values) {
                let Some(value) = value else { continue };
                let found = Counts::of_value(value)?;
                left = left.with_slot(slot.byte(), found);
                if slot == Slot::Removed {
                    removed = found;
                }
            }
            if left.events > counts.events {
                let value = removed.with(*counts).value();
                tx.put(&Entry { key: key.clone(), value }).await?;
                continue;
            }
            let present = keys.into_iter().zip(values).filter(|(_, value)| value.is_some());
            tx.delete(&present.map(|(key, _)| key).collect::<Vec<_>>()).await?;
        }
        Ok(())
    }
}

/// Removes the counts of all events of these ids, and the merges of these ids. With
/// `keeps_events` the events stay: they stay counted, and have no person.
pub(crate) async fn forget(
    tx: &Transaction,
    keyspace: Keyspace,
    project: ProjectId,
    ids: &[Uuid],
    keeps_events: bool,
) -> Result<(), Failure> {
    let keys = CountKeys::of(keyspace, project)?;
    let removed = Slot::Removed.byte();
    for some in ids.chunks(IDS_PER_READ) {
        let counts = some.iter().flat_map(|id| of_all_slots(&keys.key(PERSONS, *id, removed)));
        let counts: Vec<Vec<u8>> = counts.collect();
        let wanted: Vec<&[u8]> = counts.iter().map(Vec::as_slice).collect();
        let values = tx.entries(&wanted).await?;
        let mut gone: Vec<Vec<u8>> = Vec::new();
        for (key, value) in counts.iter().zip(values) {
            let Some(mut value) = value else { continue };
            if !keeps_events {
                gone.push(key.clone());
            } else if let Some(mark) = value.first_mut().filter(|mark| **mark == WITH_PERSON) {
                *mark = WITHOUT_PERSON;
                tx.put(&Entry { key: key.clone(), value }).await?;
            }
        }
        let merges: Vec<Vec<u8>> = some.iter().map(|id| keys.key(MERGES, *id, 0)).collect();
        let wanted: Vec<&[u8]> = merges.iter().map(Vec::as_slice).collect();
        let values = tx.entries(&wanted).await?;
        let present = merges.iter().zip(values).filter(|(_, value)| value.is_some());
        gone.extend(present.map(|(key, _)| key.clone()));
        tx.delete(&gone).await?;
    }
    Ok(())
}

/// The sums of counts by id, for entries in the order of their keys.
pub(super) fn sums(
    keys: &CountKeys,
    entries: &[Entry],
    sums: &mut Vec<(Uuid, Counts)>,
) -> Result<()> {
    for Entry { key, value } in entries {
        let (id, slot) = keys.read(key)?;
        let counts = Counts::of_value(value)?;
        match sums.last_mut() {
            Some((last, sum)) if *last == id => *sum = sum.with_slot(slot, counts),
            _ => sums.push((id, Counts::NONE.with_slot(slot, counts))),
        }
    }
    Ok(())
}

/// Merges that were read: which id was merged into which.
#[derive(Debug, Default)]
pub(super) struct Merges {
    into: HashMap<Uuid, Uuid>,
}

impl Merges {
    pub(super) fn len(&self) -> usize {
        self.into.len()
    }

    pub(super) fn insert(&mut self, from: Uuid, into: Uuid) {
        self.into.insert(from, into);
    }

    /// The id that these merges lead to. Shortens the chain, so that long ones are
    /// followed once.
    pub(super) fn follow(&mut self, id: Uuid) -> Uuid {
        let (mut at, mut passed) = (id, Vec::new());
        // A chain without end would be damaged data.
        while let Some(into) = self.into.get(&at).filter(|_| passed.len() <= self.into.len()) {
            passed.push(at);
            at = *into;
        }
        // The last one leads there already.
        passed.pop();
        for from in passed {
            self.into.insert(from, at);
        }
        at
    }
}

pub(super) const NAME: &str = "event counts";

pub(super) fn damaged(detail: &str) -> Error {
    Error::Shape { statement: NAME, detail: detail.to_owned() }
}
