//! The order of all persons of a project by their counts.
//!
//! One scan reads the merges and then all counts. It holds the merges in memory, and the
//! counts of persons that have several ids; all others go through a heap. A ranking is
//! kept for some time, because the next page of a list asks for it again.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use uuid::Uuid;
use weir_model::persons::{PersonOrder, SortBy};
use weir_model::{PersonId, ProjectId, Timestamp};

use super::entries::{self, CountKeys, MERGES, Merges, PERSONS};
use super::read::scan;
use super::results::{ResultBounds, Results};
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

/// The rankings that were made last, by order.
pub(crate) type Rankings = Results<PersonOrder, Ranking>;

const BOUNDS: ResultBounds<Ranking> = ResultBounds {
    // Making one takes memory.
    at_a_time: 1,
    kept: 16,
    kept_for: Duration::from_secs(10),
    is_kept: |_| true,
    wait: Duration::from_secs(5),
};

pub(crate) fn no_rankings() -> Rankings {
    Results::new(BOUNDS)
}

/// The persons of a project in an order, as they are now or were some seconds ago. Persons
/// without events are omitted. `None`: events from before there were counts are still
/// being counted.
///
/// # Errors
/// When the store cannot be read; [`Error::Making`](crate::Error::Making) while it is made.
pub async fn ranking(
    store: &Store,
    project: ProjectId,
    order: PersonOrder,
    now: Timestamp,
) -> Result<Option<Arc<Ranking>>> {
    if !is_complete(store, project).await? {
        return Ok(None);
    }
    let reader = store.clone();
    let made = async move { make(&reader, project, order, now, RANKED).await };
    store.rankings.get(project, order, made).await.map(Some)
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
