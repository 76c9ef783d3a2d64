//! The map of persons of a project, in memory: which distinct ids are one person.
//!
//! Questions about events count persons, and a merge changes no event. So a question asks the
//! map for the number of each distinct id, and for the person of each number. An event counts
//! for the person that its distinct id leads to through merges. A distinct id that was never
//! merged is a person of its own, whether or not a record of a person exists.
//!
//! The first question makes the map: it reads all merges, and the distinct ids are added as
//! events are read. Later questions add the merges that were committed since (`feed`). Merges
//! are removed only when a person is erased or a project is deleted, and then the map is
//! dropped. It is also dropped when no question used it for some time, or when the maps
//! become too large together. So a process without questions holds nothing here.
//!
//! What belongs here: which maps there are, and what is new for them. What does not: events,
//! records of persons (`persons`), and the entries of merges (`counts`).

mod feed;
mod map;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::time::timeout;
use weir_model::ProjectId;

use self::feed::{Change, Feed, Merge, Outcome, Ticket};
use crate::keyed_lock::KeyedLocks;
use crate::{Result, Store, counts};

pub use self::feed::MergePosition;
pub use self::map::{People, PersonView};

/// Distinct ids of a map, and other ids that were merged. They take about 140 MB.
const IDS: usize = 2_500_000;
/// Bytes of all maps that no question uses.
const BYTES: usize = 48 << 20;
/// How long a map stays that no question uses.
const PAUSE: Duration = Duration::from_secs(10 * 60);
/// How long a question waits for transactions before it reads all merges instead.
const SETTLES: Duration = Duration::from_secs(2);
/// Bytes of a map without ids.
const OVERHEAD: usize = 1 << 10;

/// The map of a project, and the persons of its ids as of now. Call it after the heads of
/// the events are read: then it has every merge that these events have made.
///
/// Adding many merges takes some milliseconds of the thread.
///
/// # Errors
/// [`Error::Making`](crate::Error::Making) while merges from before an update are not all
/// counted, [`Error::TooLarge`](crate::Error::TooLarge) when more ids were merged than a map
/// may have, and errors of the store.
pub async fn of(store: &Store, project: ProjectId) -> Result<(Arc<People>, PersonView)> {
    let maps = &store.people;
    let _permits = maps.making.take([project]).await;
    let is_settled = maps.settled(project, SETTLES).await;
    let FoundMap { position, map } = maps.find(project, Instant::now());
    // A map that some question always holds would become full of ids of other questions.
    let map = map.filter(|(people, _)| people.has_space());
    let (people, merges) = map.unwrap_or_else(|| (Arc::new(People::of(project, IDS)), None));
    match merges.filter(|_| is_settled) {
        Some(merges) => people.merge(&merges)?,
        None => {
            let reader = Arc::clone(&people);
            counts::merges(store, project, move |merges| reader.merge(merges)).await?;
        }
    }
    let view = people.view(position);
    maps.keep(project, &people, position);
    Ok((people, view))
}

/// Calls `see` with the number of each distinct id that ever had an event, and the time of its
/// first event, also one that was removed since, in microseconds. A distinct id may be seen
/// several times: the least time counts. New ids are added to the map.
///
/// # Errors
/// As [`of`].
pub async fn first_seen(
    store: &Store,
    project: ProjectId,
    people: &People,
    mut see: impl FnMut(u32, i64),
) -> Result<()> {
    counts::first_seen(store, project, |seen| people.each_number(seen, &mut see)).await
}

/// Drops the maps that no question used for some time, and the least recently used ones if
/// they are too large together. To be called every second.
pub fn drop_unused(store: &Store, now: Instant) {
    store.people.drop_unused(now, BYTES);
}

/// The maps of all projects, and the transactions that change them.
#[derive(Debug, Default)]
pub(crate) struct PeopleMaps {
    state: Mutex<State>,
    /// A transaction has ended.
    ended: Notify,
    /// Held while merges are added to the map of a project.
    making: KeyedLocks<ProjectId>,
}

#[derive(Debug, Default)]
struct State {
    /// The projects that each transaction in flight changes, by the number of its ticket.
    in_flight: BTreeMap<u64, Vec<ProjectId>>,
    /// The next number of a ticket or a feed.
    next: u64,
    /// The projects that questions were asked about.
    projects: HashMap<ProjectId, ProjectMap>,
}

/// The map of a project, and what is new for it.
#[derive(Debug)]
struct ProjectMap {
    feed: Feed,
    /// The map, and how far it has the merges of the feed. `None`: it is not made yet.
    map: Option<(Arc<People>, MergePosition)>,
    /// When a question used it last.
    used: Instant,
}

/// What there is for a question.
struct FoundMap {
    /// The position of the feed.
    position: MergePosition,
    /// The map, and the merges that it lacks. No merges: all are to be read.
    map: Option<(Arc<People>, Option<Vec<Merge>>)>,
}

impl PeopleMaps {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// To be called before a transaction that adds merges. `None`: there are none. The ticket
    /// must exist until the transaction has ended.
    pub(crate) fn begin_merges(
        self: &Arc<Self>,
        merges: Vec<(ProjectId, Vec<Merge>)>,
    ) -> Option<Arc<Ticket>> {
        (!merges.is_empty()).then(|| self.begin(Change::Merges(merges)))
    }

    /// The same for a transaction that removes merges of a project.
    pub(crate) fn begin_removal(self: &Arc<Self>, project: ProjectId) -> Arc<Ticket> {
        self.begin(Change::Removal(project))
    }

    fn begin(self: &Arc<Self>, change: Change) -> Arc<Ticket> {
        let mut state = self.state();
        let number = state.number();
        state.in_flight.insert(number, change.projects());
        drop(state);
        Arc::new(Ticket::new(Arc::clone(self), number, change))
    }

    /// Notes the end of a transaction.
    fn end(&self, ticket: u64, change: &Change, outcome: Outcome) {
        let mut state = self.state();
        state.in_flight.remove(&ticket);
        // Large maps are dropped after the lock, which ingestion takes too.
        let removed = match change {
            Change::Merges(projects) => {
                for (project, merges) in projects {
                    if let Some(found) = state.projects.get_mut(project) {
                        found.feed.add(ticket, merges, outcome);
                    }
                }
                None
            }
            Change::Removal(project) => state.projects.remove(project),
        };
        drop(state);
        drop(removed);
        self.ended.notify_waiters();
    }

    /// Drops the map of a project.
    pub(crate) fn forget(&self, project: ProjectId) {
        let removed = self.state().projects.remove(&project);
        drop(removed);
    }

    /// Waits until the transactions that change a project and are in flight now have ended.
    /// Returns whether they have.
    async fn settled(&self, project: ProjectId, wait: Duration) -> bool {
        let last = self.state().next;
        let ended = async {
            loop {
                // Notices what ends from here on.
                let ended = self.ended.notified();
                if !self.is_in_flight(project, last) {
                    return;
                }
                ended.await;
            }
        };
        timeout(wait, ended).await.is_ok()
    }

    /// Whether a transaction with a ticket up to this number changes a project.
    fn is_in_flight(&self, project: ProjectId, last: u64) -> bool {
        self.state().in_flight.range(..=last).any(|(_, projects)| projects.contains(&project))
    }

    fn find(&self, project: ProjectId, now: Instant) -> FoundMap {
        let mut state = self.state();
        let number = state.number();
        let found = state.projects.entry(project).or_insert_with(|| ProjectMap {
            feed: Feed::new(number),
            map: None,
            used: now,
        });
        found.used = now;
        let map = found.map.as_ref();
        FoundMap {
            position: found.feed.position(),
            map: map.map(|(people, at)| (Arc::clone(people), found.feed.since(*at))),
        }
    }

    /// Keeps a map that has the merges up to a position, unless merges were removed since the
    /// position was read.
    fn keep(&self, project: ProjectId, people: &Arc<People>, position: MergePosition) {
        let mut state = self.state();
        let found = state.projects.get_mut(&project);
        let found = found.filter(|found| found.feed.is_of(position));
        let replaced = found.and_then(|found| found.map.replace((Arc::clone(people), position)));
        drop(state);
        drop(replaced);
    }

    fn drop_unused(&self, now: Instant, most_bytes: usize) {
        let mut state = self.state();
        let unused = state.projects.iter().filter(|(_, map)| map.is_unused());
        let mut unused: Vec<(Instant, ProjectId, usize)> =
            unused.map(|(project, map)| (map.used, *project, map.bytes())).collect();
        unused.sort_unstable_by_key(|(used, ..)| std::cmp::Reverse(*used));
        let (mut bytes, mut removed) = (0, Vec::new());
        for (used, project, size) in unused {
            if bytes + size > most_bytes || now.saturating_duration_since(used) >= PAUSE {
                removed.extend(state.projects.remove(&project));
            } else {
                bytes += size;
            }
        }
        drop(state);
        drop(removed);
    }
}

impl State {
    /// A number that is higher than those before.
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

impl ProjectMap {
    /// Whether no question holds the map. A question gets it under the lock of the state.
    fn is_unused(&self) -> bool {
        self.map.as_ref().is_none_or(|(people, _)| Arc::strong_count(people) == 1)
    }

    /// Bytes of a map that no question holds: otherwise this may wait for one.
    fn bytes(&self) -> usize {
        OVERHEAD + self.feed.bytes() + self.map.as_ref().map_or(0, |(people, _)| people.bytes())
    }
}

#[cfg(test)]
mod tests;
