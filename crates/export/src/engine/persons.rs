//! The persons of a run: those that its events lead to, with a row for each distinct id,
//! each person once, in bounded memory.
//!
//! ```text
//! scan -> ids of the persons of a share -> their records -> rows -> channel
//! ```
//!
//! What belongs here: which persons, in which order. What does not: reading events
//! (`weir_store::events`), columns (`persons` of the crate), sending (`attempt`).
//!
//! A share is a subset of all persons. The first one contains all of them. When it is too
//! large for memory, half of its persons are left for another pass over the events. The
//! id of a person decides which half it is in, so no two passes have the same person.
//!
//! Persons that are merged while a run reads are exported as they are at that time: a
//! distinct id that already has a row may get another one with a greater version.

use std::collections::{HashMap, HashSet};

use tokio::sync::mpsc;
use weir_model::PersonId;
use weir_store::events::Scan;
use weir_store::persons;

use super::source::{Part, PendingRows, RowsRequest, of_store};
use crate::destination::Failure;
use crate::rows::{Cell, PersonRecord};

/// Ids whose person is cached.
const KNOWN: usize = 200_000;
/// Records that are read at a time. Each may have a megabyte, and eight runs may be
/// active.
const FETCH: usize = 8;
/// Upper bound of rows in a part.
const ROWS: usize = 1_000;
/// Upper bound of their bytes. A person with many distinct ids has its properties in each
/// row.
const BYTES: u64 = 1 << 20;

/// A subset of the persons, by the last bits of their ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PersonShard {
    /// Number of bits that are compared.
    bits: u32,
    /// Value of these bits.
    value: u64,
}

impl PersonShard {
    const ALL: Self = Self { bits: 0, value: 0 };
    /// All ids have the same value in the bits above.
    const BITS_MAX: u32 = 60;

    fn has(self, person: PersonId) -> bool {
        let (_, low) = person.0.as_u64_pair();
        low & ((1 << self.bits) - 1) == self.value
    }

    /// Keeps one half and returns the other. `None` if it cannot be halved.
    fn halve(&mut self) -> Option<Self> {
        if self.bits == Self::BITS_MAX {
            return None;
        }
        let other = Self { bits: self.bits + 1, value: self.value | (1 << self.bits) };
        self.bits += 1;
        Some(other)
    }
}

/// Makes the rows of a run.
pub(super) async fn make(
    request: &RowsRequest,
    sender: &mpsc::Sender<PendingRows>,
) -> Result<(), Failure> {
    let mut shards = vec![PersonShard::ALL];
    while let Some(shard) = shards.pop() {
        let Some(found) = found(request, shard, &mut shards, sender).await? else { break };
        if !give(request, found, sender).await? {
            break;
        }
    }
    Ok(())
}

/// The persons of a share, with the time at which their newest event was accepted. Halves
/// that do not fit into memory are added to `shards`. `None` if the receiver is gone.
async fn found(
    request: &RowsRequest,
    mut shard: PersonShard,
    shards: &mut Vec<PersonShard>,
    sender: &mpsc::Sender<PendingRows>,
) -> Result<Option<HashMap<PersonId, i64>>, Failure> {
    let RowsRequest { store, project, .. } = request;
    let selection = request.selection.clone();
    let mut scan = Scan::begin(store, *project, selection).await.map_err(of_store)?;
    let mut known: HashMap<PersonId, Option<PersonId>> = HashMap::new();
    let mut found: HashMap<PersonId, i64> = HashMap::new();
    while let Some(events) = scan.next().await.map_err(of_store)? {
        if sender.is_closed() {
            return Ok(None);
        }
        let mut seen: HashMap<&str, i64> = HashMap::new();
        for event in &events {
            let at = seen.entry(&event.distinct_id).or_insert(event.received_at);
            *at = (*at).max(event.received_at);
        }
        let seen: Vec<(PersonId, i64)> =
            seen.into_iter().map(|(id, at)| (persons::first_id(*project, id), at)).collect();
        let requested: Vec<PersonId> =
            seen.iter().map(|(id, _)| *id).filter(|id| !known.contains_key(id)).collect();
        let led = persons::resolve_merged(store, *project, requested.iter().copied()).await;
        let led = led.map_err(of_store)?;
        known.extend(requested.into_iter().map(|id| (id, led.get(&id).copied())));
        for (id, at) in seen {
            let person = known.get(&id).copied().flatten();
            let Some(person) = person.filter(|person| shard.has(*person)) else { continue };
            let newest = found.entry(person).or_insert(at);
            *newest = (*newest).max(at);
        }
        while found.len() > request.persons {
            let Some(other) = shard.halve() else { break };
            shards.push(other);
            found.retain(|person, _| shard.has(*person));
        }
        if known.len() > KNOWN {
            known.clear();
        }
    }
    Ok(Some(found))
}

/// Sends the rows of these persons, as they are now. Returns `false` if the receiver is
/// gone.
async fn give(
    request: &RowsRequest,
    found: HashMap<PersonId, i64>,
    sender: &mpsc::Sender<PendingRows>,
) -> Result<bool, Failure> {
    let RowsRequest { store, project, columns, .. } = request;
    let mut found: Vec<(PersonId, i64)> = found.into_iter().collect();
    // Every attempt has this order, and it is the order of the store.
    found.sort_unstable();
    let mut part = Part::default();
    for some in found.chunks(FETCH) {
        let wanted = some.iter().map(|(id, _)| *id);
        let people = persons::resolve_versioned(store, *project, wanted).await;
        let people = people.map_err(of_store)?;
        let mut given: HashSet<PersonId> = HashSet::new();
        for (id, seen_at) in some {
            let Some(found) = people.get(id) else { continue };
            let (person, version) = (&found.person, found.version);
            // Two persons that have been merged since.
            if !given.insert(person.id) {
                continue;
            }
            for distinct_id in &person.distinct_ids {
                let record = PersonRecord { distinct_id, person, version, seen_at: *seen_at };
                let row = columns.row_of_person(*project, record);
                part.bytes += row.iter().map(Cell::size).sum::<usize>() as u64;
                part.batch.rows.push(row);
                if part.batch.rows.len() >= ROWS || part.bytes >= BYTES {
                    let whole = std::mem::take(&mut part);
                    if sender.send(PendingRows::Finished(whole)).await.is_err() {
                        return Ok(false);
                    }
                }
            }
        }
    }
    Ok(sender.send(PendingRows::Finished(part)).await.is_ok())
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn both_halves_together_have_each_person_once() {
        let mut shards = vec![PersonShard::ALL];
        for _ in 0..3 {
            let others: Vec<PersonShard> =
                shards.iter_mut().filter_map(PersonShard::halve).collect();
            shards.extend(others);
        }
        assert_eq!(shards.len(), 8);
        for n in 0..100_u128 {
            let person = PersonId(Uuid::from_u128((n << 64) | (n * 7_919)));
            assert_eq!(shards.iter().filter(|shard| shard.has(person)).count(), 1, "{n}");
        }
    }

    #[test]
    fn halving_ends() {
        let mut shard = PersonShard::ALL;
        let mut halves = 0;
        while shard.halve().is_some() {
            halves += 1;
        }
        assert_eq!(halves, PersonShard::BITS_MAX);
        assert!(shard.has(PersonId(Uuid::nil())));
    }
}
