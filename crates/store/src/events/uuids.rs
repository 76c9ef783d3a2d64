//! The index of uuids: where the event with a uuid is, and that there is one.
//!
//! An entry has the key that the record `event_uuid:[project, uuid]` would have, and a
//! value of 15 bytes: a mark, the partition, the first arrival number of the block, and
//! the index in the block. Older entries are records, which take 130 bytes. Both are read,
//! so an older data directory stays as it is. The query engine cannot read this table.
//! Entries of sealed events move to files (`segments/runs`).
//!
//! What belongs here: keys and values of the index. What does not: which entries are
//! written (`apply`), and reading the events (`read`).

use surrealdb::types::SurrealValue;
use uuid::{Uuid, uuid};
use weir_model::ProjectId;
use weir_segments::run::Key;

use super::read::BlockRef;
use super::{PARTITIONS, keys};
use crate::transaction::{Entry, Keyspace, decode_record};
use crate::{Error, Result};

/// The first byte of a value. A record begins with the number of its format, which is
/// below 251 if it has one byte.
const MARK: u8 = 0xff;
/// Bytes of a value.
const LENGTH: usize = 15;
/// The index of an event that was erased with its person. The entry stays, so that the event
/// is refused when it is sent again.
pub(super) const ERASED: u32 = u32::MAX;
/// Any uuid whose bytes occur nowhere else in its key.
const PROBE: Uuid = uuid!("a5c31e77-90d4-4f6b-8be2-5d17f3c9066a");

/// Where an event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) partition: u16,
    /// First arrival number of its block.
    pub(super) first: u64,
    /// The index in its block, or [`ERASED`]. Of an entry in a run it is the index when the
    /// event was sealed: events before it may have been erased since.
    pub(super) index: u32,
}

/// An event of a batch and its place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Placed {
    pub(super) project: ProjectId,
    pub(super) uuid: Uuid,
    pub(super) place: Place,
}

impl Placed {
    /// What runs are searched for.
    pub(super) fn key(&self) -> Key {
        Key { project: self.project.0, uuid: self.uuid }
    }
}

/// An older entry: `at` has partition, first arrival number and index.
#[derive(SurrealValue)]
struct PlaceRow {
    at: Vec<i64>,
}

impl Place {
    pub(super) fn block_ref(self) -> BlockRef {
        (self.partition, self.first)
    }

    fn value(self) -> Vec<u8> {
        let mut value = Vec::with_capacity(LENGTH);
        value.push(MARK);
        value.extend_from_slice(&self.partition.to_be_bytes());
        value.extend_from_slice(&self.first.to_be_bytes());
        value.extend_from_slice(&self.index.to_be_bytes());
        value
    }

    fn of_value(value: &[u8]) -> Option<Self> {
        let value: &[u8; LENGTH] = value.try_into().ok()?;
        let (mark, rest) = value.split_first()?;
        let (partition, rest) = rest.split_first_chunk()?;
        let (first, rest) = rest.split_first_chunk()?;
        let index = rest.first_chunk()?;
        let place = Self {
            partition: u16::from_be_bytes(*partition),
            first: u64::from_be_bytes(*first),
            index: u32::from_be_bytes(*index),
        };
        (*mark == MARK && place.partition < PARTITIONS).then_some(place)
    }

    fn of_row(row: &PlaceRow) -> Option<Self> {
        let [partition, first, index] = row.at.as_slice() else { return None };
        let partition = u16::try_from(*partition).ok().filter(|number| *number < PARTITIONS)?;
        let (first, index) = (u64::try_from(*first).ok()?, u32::try_from(*index).ok()?);
        Some(Self { partition, first, index })
    }
}

/// The keys of a project's entries. They differ only in the uuid.
#[derive(Debug, Clone)]
pub(super) struct UuidKeys {
    keyspace: Keyspace,
    project: ProjectId,
    key: Vec<u8>,
    /// Where in the key the bytes of the uuid begin.
    at: usize,
}

impl UuidKeys {
    pub(super) fn of(keyspace: Keyspace, project: ProjectId) -> Result<Self> {
        let key = keyspace.key(keys::uuid(project, PROBE))?.into_bytes();
        let at = key.windows(16).position(|bytes| bytes == PROBE.as_bytes());
        let at = at.ok_or_else(|| damaged("the engine encodes uuids in another way"))?;
        Ok(Self { keyspace, project, key, at })
    }

    pub(super) fn key(&self, uuid: Uuid) -> Vec<u8> {
        let mut key = self.key.clone();
        if let Some(bytes) = key.get_mut(self.at..self.at + 16) {
            bytes.copy_from_slice(uuid.as_bytes());
        }
        key
    }

    /// Reads a value of either form.
    ///
    /// # Errors
    /// [`Error::Shape`] for everything else.
    pub(super) fn place(&self, uuid: Uuid, value: &[u8]) -> Result<Place> {
        let place = match value.first() {
            Some(&MARK) => Place::of_value(value),
            Some(_) => {
                let key = self.keyspace.key(keys::uuid(self.project, uuid))?;
                Place::of_row(&decode_record::<PlaceRow>(NAME, &key, value)?)
            }
            None => None,
        };
        place.ok_or_else(|| damaged("a value that is no place"))
    }
}

/// The entries of a batch, in the order of their keys.
pub(super) fn entries(keyspace: Keyspace, placed: &[Placed]) -> Result<Vec<Entry>> {
    let mut entries = Vec::with_capacity(placed.len());
    let mut keys: Option<UuidKeys> = None;
    for Placed { project, uuid, place } in placed {
        // Events of a project come together.
        let keys = match &mut keys {
            Some(keys) if keys.project == *project => keys,
            other => other.insert(UuidKeys::of(keyspace, *project)?),
        };
        entries.push(Entry { key: keys.key(*uuid), value: place.value() });
    }
    entries.sort_unstable_by(|one, other| one.key.cmp(&other.key));
    Ok(entries)
}

pub(super) const NAME: &str = "event uuids";

pub(super) fn damaged(detail: &str) -> Error {
    Error::Shape { statement: NAME, detail: detail.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::store;

    const PROJECT: ProjectId = ProjectId(7);

    #[tokio::test]
    async fn keys_are_those_of_records() {
        let keyspace = store().await.db.keyspace().await.unwrap();
        for project in [0, 1, 7, 255, 256, i64::MAX].map(ProjectId) {
            let of_project = UuidKeys::of(keyspace, project).unwrap();
            let mut last = Vec::new();
            let numbers = [0, 1, 2, 255, 256, 257, 1 << 64, u128::MAX >> 1, u128::MAX];
            for uuid in numbers.map(Uuid::from_u128) {
                let key = of_project.key(uuid);
                assert_eq!(key, keyspace.key(keys::uuid(project, uuid)).unwrap().into_bytes());
                assert!(last < key, "the order of keys is the order of uuids");
                last = key;
            }
        }
    }

    #[tokio::test]
    async fn what_is_no_place_is_an_error() {
        let keyspace = store().await.db.keyspace().await.unwrap();
        let keys = UuidKeys::of(keyspace, PROJECT).unwrap();
        let uuid = Uuid::from_u128(5);
        let place = Place { partition: 5, first: u64::MAX, index: u32::MAX };
        let value = place.value();
        assert_eq!(value.len(), LENGTH);
        assert_eq!(keys.place(uuid, &value).unwrap(), place);
        let wrong_partition = Place { partition: PARTITIONS, ..place }.value();
        let longer = [value.as_slice(), &[0]].concat();
        let record = |at: Vec<i64>| {
            let row = keyspace.row(keys::uuid(PROJECT, uuid), PlaceRow { at }.into_value());
            row.unwrap().into_value()
        };
        let older = record(vec![1, 2, 3]);
        assert_ne!(older.first(), Some(&MARK));
        let place = Place { partition: 1, first: 2, index: 3 };
        assert_eq!(keys.place(uuid, &older).unwrap(), place);
        for damaged in [
            &[] as &[u8],
            &[MARK],
            &value[..LENGTH - 1],
            &longer,
            &wrong_partition,
            &older[..older.len() - 1],
            &record(vec![1, 2]),
            &record(vec![-1, 2, 3]),
            &record(vec![1, 2, 1 << 32]),
        ] {
            let error = keys.place(uuid, damaged).unwrap_err();
            assert!(matches!(error, Error::Shape { .. }), "{damaged:?}: {error}");
        }
        // With another first byte, the value would have to be a record.
        let value = Place { partition: 0, first: 1, index: 0 }.value();
        for first in 0..MARK {
            let mut damaged = value.clone();
            damaged[0] = first;
            assert!(keys.place(uuid, &damaged).is_err(), "{first}");
        }
    }
}
