//! Reading the counts of persons, and the members of a group.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;
use weir_model::persons::PersonRef;
use weir_model::{PersonId, ProjectId};

use super::entries::{self, CountKeys, MERGES, Merges, NAME, PERSONS};
use super::results::{ResultBounds, Results};
use super::{Counts, Slot, group_scope, is_complete};
use crate::db::Operation;
use crate::events::{LIVE_PARTITIONS, PARTITIONS, heads, historical_partition, live_partition};
use crate::transaction::{ENTRIES_PER_READ, Entry, IdRange, Transaction};
use crate::{Error, Result, Store, persons};

/// Distinct ids whose counts one call reads. The counts of persons behind are not complete.
const IDS: usize = 20_000;
/// Distinct ids of a group that are read. A group with more has more members than are
/// counted.
pub const MEMBERS: usize = 100_000;
/// A group with so many members is kept for some time, because the next page of the list
/// asks for it again. Others are read every time, so their counts are always the latest.
const KEPT: usize = 1_000;
/// Entries that one transaction looks up.
const LOOKED_UP: usize = 14_000;
/// How often all merges are read for the ids that lead to one person. Chains of merges are
/// shortened while events are applied.
const PASSES: usize = 64;
/// Entries of a scan that are read at a time.
pub(super) const SCANNED: u32 = 4_096;

pub(super) const READ: Operation = Operation::read(NAME);
const READ_MERGES: Operation = Operation::read("merges of persons").within(Duration::from_secs(60));

/// The event counts of a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PersonCounts {
    /// The number of its stored events.
    pub events: u64,
    /// The earliest event time, microseconds; `None`: it never had an event.
    pub first: Option<i64>,
    /// The latest event time, microseconds.
    pub last: Option<i64>,
    /// Whether the events of all its distinct ids are counted. Otherwise it has at least
    /// these.
    pub is_complete: bool,
}

impl PersonCounts {
    fn of(counts: Counts, is_complete: bool) -> Self {
        let seen = |time| counts.is_seen().then_some(time);
        Self {
            events: u64::try_from(counts.events).unwrap_or(0),
            first: seen(counts.first),
            last: seen(counts.last),
            is_complete,
        }
    }
}

/// The event counts of persons, in the same order. `None`: events from before there were
/// counts are still being counted.
///
/// # Errors
/// When the store cannot be read.
pub async fn of_persons(
    store: &Store,
    project: ProjectId,
    persons: &[PersonRef],
) -> Result<Option<Vec<PersonCounts>>> {
    if !is_complete(store, project).await? {
        return Ok(None);
    }
    let keys = CountKeys::of(store.db.keyspace().await?, project)?;
    let strays = heads(store, project).await?.values().any(|head| head.strays);
    let (mut wanted, mut left) = (Vec::new(), IDS);
    let mut complete = Vec::with_capacity(persons.len());
    for (at, person) in persons.iter().enumerate() {
        let read = person.distinct_ids.iter().take(left);
        left -= read.len();
        complete.push(
            read.len() == person.distinct_ids.len()
                && !persons::may_list_less(&person.distinct_ids),
        );
        for id in read {
            let first_id = persons::first_id(project, id).0;
            let slots = slots(project, id, strays).map(Slot::byte);
            wanted.extend(slots.map(|slot| (keys.key(PERSONS, first_id, slot), at, slot)));
        }
    }
    // Neighbours are found faster.
    wanted.sort_unstable();
    let mut counts = vec![Counts::NONE; persons.len()];
    for some in wanted.chunks(LOOKED_UP) {
        let values = look_up(store, some.iter().map(|(key, ..)| key.clone()).collect()).await?;
        for ((_, at, slot), value) in some.iter().zip(values) {
            if let (Some(sum), Some(value)) = (counts.get_mut(*at), value) {
                *sum = sum.with_slot(*slot, Counts::of_value(&value)?);
            }
        }
    }
    let counts = counts.into_iter().zip(complete);
    Ok(Some(counts.map(|(counts, is_complete)| PersonCounts::of(counts, is_complete)).collect()))
}

/// The slots that a distinct id can have counts in.
fn slots(project: ProjectId, distinct_id: &str, strays: bool) -> impl Iterator<Item = Slot> {
    let own = live_partition(project, distinct_id);
    let live = (0..LIVE_PARTITIONS).filter(move |partition| strays || *partition == own);
    let partitions = live.chain([historical_partition(project)]).map(Slot::Partition);
    partitions.chain([Slot::Earlier, Slot::Removed])
}

/// A person with events of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// The person whose events name the group.
    pub person: PersonId,
    /// The counts of its events within the group.
    pub counts: PersonCounts,
}

/// The persons with events of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Members {
    /// Those with most events first, then in the order of their ids.
    pub members: Vec<Member>,
    /// Whether these are all of them. Otherwise only some distinct ids were read, so there
    /// are more members, and more events of these.
    pub is_complete: bool,
}

/// The members of large groups that were read last, by group type and key.
pub(crate) type MembersRead = Results<(u8, String), Members>;

const BOUNDS: ResultBounds<Members> = ResultBounds {
    at_a_time: 2,
    // Each may have some megabytes.
    kept: 4,
    kept_for: Duration::from_secs(10),
    is_kept: |found| found.members.len() >= KEPT,
    wait: Duration::from_secs(5),
};

pub(crate) fn no_members() -> MembersRead {
    Results::new(BOUNDS)
}

/// The persons with events of a group. Two distinct ids of one person are one member.
/// Those of a large group may be as they were some seconds ago. `None`: events from before
/// there were counts are still being counted.
///
/// # Errors
/// When the store cannot be read; [`Error::Making`](crate::Error::Making) while a large
/// group is read.
pub async fn members(
    store: &Store,
    project: ProjectId,
    index: u8,
    key: &str,
) -> Result<Option<Arc<Members>>> {
    if !is_complete(store, project).await? {
        return Ok(None);
    }
    let group = (index, key.to_owned());
    let (reader, key) = (store.clone(), key.to_owned());
    let made = async move { members_within(&reader, project, index, &key, MEMBERS).await };
    store.members.get(project, group, made).await.map(Some)
}

pub(super) async fn members_within(
    store: &Store,
    project: ProjectId,
    index: u8,
    key: &str,
    most: usize,
) -> Result<Members> {
    let keys = CountKeys::of(store.db.keyspace().await?, project)?;
    let mut rest = Some(keys.scope(group_scope(usize::from(index), key)));
    let mut found: Vec<(Uuid, Counts)> = Vec::new();
    while let Some(range) = rest.take().filter(|_| found.len() <= most) {
        let (entries, more) = scan(store, range).await?;
        entries::sums(&keys, &entries, &mut found)?;
        rest = more;
    }
    let is_complete = rest.is_none() && found.len() <= most;
    found.truncate(most);
    let mut merges = merges_of(store, &keys, found.iter().map(|(id, _)| *id)).await?;
    let mut persons: HashMap<Uuid, Counts> = HashMap::with_capacity(found.len());
    for (id, counts) in found {
        let person = merges.follow(id);
        // An id that was merged belongs to a person.
        let counts = Counts { has_person: counts.has_person || person != id, ..counts };
        let sum = persons.entry(person).or_insert(Counts::NONE);
        *sum = sum.with(counts);
    }
    persons.retain(|_, sum| sum.events > 0);
    // None of their events within the group has a person, but others may.
    let unknown = persons.iter().filter(|(_, sum)| !sum.has_person).map(|(id, _)| *id);
    for id in without_person(store, &keys, unknown.collect()).await? {
        persons.remove(&id);
    }
    let members = persons.into_iter();
    let member =
        |(id, sum)| Member { person: PersonId(id), counts: PersonCounts::of(sum, is_complete) };
    let mut members: Vec<Member> = members.map(member).collect();
    members.sort_unstable_by_key(|one| (std::cmp::Reverse(one.counts.events), one.person.0));
    Ok(Members { members, is_complete })
}

/// Those of the ids that are not the id of a person. None of them was merged.
async fn without_person(store: &Store, keys: &CountKeys, mut ids: Vec<Uuid>) -> Result<Vec<Uuid>> {
    ids.sort_unstable();
    let slots = (0..PARTITIONS).map(Slot::Partition).chain([Slot::Earlier]);
    let slots: Vec<u8> = slots.map(Slot::byte).collect();
    let mut without = Vec::new();
    for ids in ids.chunks(LOOKED_UP / slots.len()) {
        let wanted = ids.iter().flat_map(|id| slots.iter().map(|slot| (*id, *slot)));
        let wanted = wanted.map(|(id, slot)| keys.key(PERSONS, id, slot)).collect();
        let values = look_up(store, wanted).await?;
        for (id, values) in ids.iter().zip(values.chunks(slots.len())) {
            let mut is_person = false;
            for value in values.iter().flatten() {
                is_person |= Counts::of_value(value)?.has_person;
            }
            if !is_person {
                without.push(*id);
            }
        }
    }
    Ok(without)
}

/// The values of the entries with these keys, in the same order. At most [`LOOKED_UP`].
async fn look_up(store: &Store, keys: Vec<Vec<u8>>) -> Result<Vec<Option<Vec<u8>>>> {
    let keys = Arc::new(keys);
    let work = move |tx: Transaction| {
        let keys = Arc::clone(&keys);
        async move {
            let mut values = Vec::with_capacity(keys.len());
            for some in keys.chunks(ENTRIES_PER_READ) {
                let some: Vec<&[u8]> = some.iter().map(Vec::as_slice).collect();
                values.extend(tx.entries(&some).await?);
            }
            Ok(values)
        }
    };
    store.db.transact(READ, (), work).await
}

/// These ids and those that were merged into them, also through others. `None`: there are
/// more than `most`, or they are merged through too many others.
///
/// Reads all merges of the project, some times.
///
/// # Errors
/// When the store cannot be read.
pub(crate) async fn merged_into(
    store: &Store,
    project: ProjectId,
    into: impl IntoIterator<Item = Uuid>,
    most: usize,
) -> Result<Option<HashSet<Uuid>>> {
    let keys = CountKeys::of(store.db.keyspace().await?, project)?;
    let mut found: HashSet<Uuid> = into.into_iter().collect();
    for _ in 0..PASSES {
        let before = found.len();
        let mut rest = Some(keys.scope(MERGES));
        while let Some(range) = rest.take() {
            let (entries, more) = scan(store, range).await?;
            for Entry { key, value } in &entries {
                if found.contains(&entries::merged_into(value)?) {
                    found.insert(keys.read(key)?.0);
                }
            }
            if found.len() > most {
                return Ok(None);
            }
            rest = more;
        }
        if found.len() == before {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Shows all merges of a project as of one moment, some at a time: which id was merged into
/// which person. It may begin again.
///
/// # Errors
/// [`Error::Making`] while merges from before an update are not all here; the error of `see`;
/// when the store cannot be read.
pub(crate) async fn merges(
    store: &Store,
    project: ProjectId,
    see: impl Fn(&[(PersonId, PersonId)]) -> Result<()> + Send + Sync + 'static,
) -> Result<()> {
    if !is_complete(store, project).await? {
        return Err(Error::Making { statement: READ_MERGES.name });
    }
    let keys = CountKeys::of(store.db.keyspace().await?, project)?;
    let reading = Arc::new((keys, see));
    let work = move |tx: Transaction| {
        let reading = Arc::clone(&reading);
        async move {
            let (keys, see) = &*reading;
            let mut rest = Some(keys.scope(MERGES));
            while let Some(range) = rest.take() {
                let (entries, more) = tx.scan(&range, SCANNED).await?;
                let mut merges = Vec::with_capacity(entries.len());
                for Entry { key, value } in &entries {
                    let (from, into) = (keys.read(key)?.0, entries::merged_into(value)?);
                    merges.push((PersonId(from), PersonId(into)));
                }
                see(&merges)?;
                rest = more;
                // Entries in memory are read without waiting for anything.
                tokio::task::yield_now().await;
            }
            Ok(())
        }
    };
    store.db.transact(READ_MERGES, (), work).await
}

/// Shows first ids with the time of their first event, some at a time. Each writer of counts
/// has a time of its own.
///
/// # Errors
/// [`Error::Making`] while events from before an update are not all counted; the error of
/// `see`; when the store cannot be read.
pub(crate) async fn first_seen(
    store: &Store,
    project: ProjectId,
    mut see: impl FnMut(&[(PersonId, i64)]) -> Result<()>,
) -> Result<()> {
    if !is_complete(store, project).await? {
        return Err(Error::Making { statement: READ.name });
    }
    let keys = CountKeys::of(store.db.keyspace().await?, project)?;
    let mut rest = Some(keys.scope(PERSONS));
    while let Some(range) = rest.take() {
        let (entries, more) = scan(store, range).await?;
        let mut seen = Vec::with_capacity(entries.len());
        for Entry { key, value } in &entries {
            let ((id, slot), counts) = (keys.read(key)?, Counts::of_value(value)?);
            if slot != Slot::Removed.byte() && counts.is_seen() {
                seen.push((PersonId(id), counts.first));
            }
        }
        see(&seen)?;
        rest = more;
    }
    Ok(())
}

/// The first entries of a range, and the rest of it.
pub(super) async fn scan(store: &Store, range: IdRange) -> Result<(Vec<Entry>, Option<IdRange>)> {
    let range = Arc::new(range);
    let work = move |tx: Transaction| {
        let range = Arc::clone(&range);
        async move { tx.scan(&range, SCANNED).await }
    };
    store.db.transact(READ, (), work).await
}

/// The merges that these ids lead through. A longer chain would be damaged data.
async fn merges_of(
    store: &Store,
    keys: &CountKeys,
    ids: impl Iterator<Item = Uuid>,
) -> Result<Merges> {
    let mut merges = Merges::default();
    let mut open: Vec<Uuid> = ids.collect();
    let mut requested: HashSet<Uuid> = open.iter().copied().collect();
    for _ in 0..persons::HOPS {
        if open.is_empty() {
            break;
        }
        let mut further = Vec::new();
        for ids in open.chunks(LOOKED_UP) {
            let wanted = ids.iter().map(|id| keys.key(MERGES, *id, 0)).collect();
            for (from, value) in ids.iter().zip(look_up(store, wanted).await?) {
                let Some(value) = value else { continue };
                let into = entries::merged_into(&value)?;
                merges.insert(*from, into);
                if requested.insert(into) {
                    further.push(into);
                }
            }
        }
        further.sort_unstable();
        open = further;
    }
    Ok(merges)
}
