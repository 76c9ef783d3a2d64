//! The order of all persons of a project by their counts.
//!
//! One scan reads the merges and then all counts. It holds the merges in memory, and the
//! counts of persons that have several ids; all others go through a heap. A ranking is
//! kept for some time, because the next page of a list asks for it again.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use uuid::Uuid;
use weir_model::persons::{PersonOrder, SortBy};
use weir_model::{PersonId, ProjectId, Timestamp};

use super::entries::{self, CountKeys, MERGES, Merges, PERSONS};
use super::read::scan;
use super::{Counts, is_complete};
use crate::{Result, Store};

/// The largest number of persons of a ranking.
pub const RANKED: usize = 10_000;
/// Merges that are read. With more of them a ranking is not complete.
const MERGED: usize = 1_000_000;
/// Entries that are read.
const ENTRIES: usize = 20_000_000;
/// How long a scan reads.
const TIME: Duration = Duration::from_secs(20);
/// How long a ranking is kept at least.
const KEPT: Duration = Duration::from_secs(10);
/// How many times as long as it took to make a ranking, it is kept.
const KEPT_TIMES: u32 = 10;
/// Rankings that are kept.
const RANKINGS: usize = 16;

/// The first persons of a project in an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ranking {
    /// The persons, at most [`RANKED`].
    pub persons: Vec<PersonId>,
    /// The number of all persons with events.
    pub all: usize,
    /// Whether all counts were read.
    pub is_complete: bool,
    /// When it was made.
    pub at: Timestamp,
}

/// The rankings that were made last.
#[derive(Debug, Default)]
pub(crate) struct Rankings {
    kept: Mutex<Vec<Kept>>,
    /// Held while a ranking is made: only one at a time, because it takes memory.
    making: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct Kept {
    project: ProjectId,
    order: PersonOrder,
    ranking: Arc<Ranking>,
    until: Instant,
}

impl Rankings {
    fn get(&self, project: ProjectId, order: PersonOrder) -> Option<Arc<Ranking>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        kept.retain(|kept| kept.until > now);
        let found = kept.iter().find(|kept| kept.project == project && kept.order == order);
        found.map(|kept| Arc::clone(&kept.ranking))
    }

    fn put(&self, new: Kept) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= RANKINGS {
            kept.remove(0);
        }
        kept.push(new);
    }
}

/// The persons of a project in an order, as they are now or were some seconds ago. Persons
/// without events are omitted. `None`: events from before there were counts are still
/// being counted.
///
/// # Errors
/// When the store cannot be read.
pub async fn ranking(
    store: &Store,
    project: ProjectId,
    order: PersonOrder,
    now: Timestamp,
) -> Result<Option<Arc<Ranking>>> {
    if !is_complete(store, project).await? {
        return Ok(None);
    }
    if let Some(ranking) = store.rankings.get(project, order) {
        return Ok(Some(ranking));
    }
    let _making = store.rankings.making.lock().await;
    if let Some(ranking) = store.rankings.get(project, order) {
        return Ok(Some(ranking));
    }
    let began = Instant::now();
    let ranking = Arc::new(make(store, project, order, now, RANKED).await?);
    let until = Instant::now() + KEPT.max(began.elapsed() * KEPT_TIMES);
    store.rankings.put(Kept { project, order, ranking: Arc::clone(&ranking), until });
    Ok(Some(ranking))
}

pub(crate) async fn make(
    store: &Store,
    project: ProjectId,
    order: PersonOrder,
    at: Timestamp,
    most: usize,
) -> Result<Ranking> {
    let until = Instant::now() + TIME;
    let keys = CountKeys::of(store.db.keyspace().await?, project)?;
    let mut merges = Merges::default();
    let mut targets: HashSet<Uuid> = HashSet::new();
    let mut rest = Some(keys.scope(MERGES));
    while let Some(range) = rest.take_if(|_| merges.len() < MERGED && Instant::now() < until) {
        let (entries, more) = scan(store, range).await?;
        for entry in entries {
            let into = entries::merged_into(&entry.value)?;
            merges.insert(keys.read(&entry.key)?.0, into);
            targets.insert(into);
        }
        rest = more;
    }
    let mut is_complete = rest.is_none();
    let mut first = First { order, most, heap: BinaryHeap::new(), all: 0 };
    let mut joined: HashMap<Uuid, Counts> = HashMap::new();
    let mut read = 0;
    let mut rest = Some(keys.scope(PERSONS));
    // The last id may have further entries.
    let mut sums: Vec<(Uuid, Counts)> = Vec::new();
    while let Some(range) = rest.take_if(|_| read < ENTRIES && Instant::now() < until) {
        let (entries, more) = scan(store, range).await?;
        read += entries.len();
        entries::sums(&keys, &entries, &mut sums)?;
        rest = more;
        let open = if rest.is_some() { sums.pop() } else { None };
        for (id, counts) in sums.drain(..) {
            let person = merges.follow(id);
            if person == id && !targets.contains(&id) {
                first.push(id, counts);
                continue;
            }
            let sum = joined.entry(person).or_insert(Counts::NONE);
            *sum = Counts { has_person: true, ..sum.with(counts) };
        }
        sums.extend(open);
    }
    is_complete &= rest.is_none();
    for (person, counts) in joined {
        first.push(person, counts);
    }
    let all = first.all;
    let persons = first.heap.into_sorted_vec().into_iter().map(|Reverse((_, id))| PersonId(id.0));
    Ok(Ranking { persons: persons.collect(), all, is_complete, at })
}

/// The first persons in an order.
struct First {
    order: PersonOrder,
    most: usize,
    /// The last of them is at the top.
    heap: BinaryHeap<Reverse<(i64, Reverse<Uuid>)>>,
    all: usize,
}

impl First {
    fn push(&mut self, id: Uuid, counts: Counts) {
        if !counts.has_person || counts.events <= 0 {
            return;
        }
        self.all += 1;
        let key = match self.order.by {
            SortBy::EventCount => counts.events,
            SortBy::FirstSeen => counts.first,
            SortBy::LastSeen => counts.last,
        };
        let key = if self.order.is_descending { key } else { key.saturating_neg() };
        self.heap.push(Reverse((key, Reverse(id))));
        if self.heap.len() > self.most {
            self.heap.pop();
        }
    }
}
