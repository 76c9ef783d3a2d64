//! The erasures that are not done, in memory: which events are not shown any more.
//!
//! A reader asks for the erasures of its project, and leaves out the events that they take
//! ([`Erased::takes`]). What is here is committed, and all of it is loaded at a start.
//!
//! What belongs here: deciding about an event, a block or a person. What does not: removing
//! them (`work`).

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use tokio::sync::Notify;
use uuid::Uuid;
use weir_model::{PersonId, ProjectId};

use super::listed::Listed;
use crate::events::{StoredEvent, Summary, fingerprint};
use crate::persons;

/// An erasure that is not done.
#[derive(Debug, Clone)]
pub(crate) struct Pending {
    pub(crate) id: Uuid,
    /// When it was requested, microseconds.
    pub(crate) requested_at: i64,
    /// Whether events are erased too.
    pub(crate) deletes_events: bool,
    /// By partition, the arrival number of the last event that is erased.
    pub(crate) bounds: Vec<u64>,
    /// The first ids of the distinct ids.
    pub(crate) ids: Vec<Uuid>,
    /// The fingerprints of those that are known.
    pub(crate) prints: Vec<u32>,
    /// Distinct ids as JSON texts, as far as the person lists them. Empty once nothing is
    /// stored any more.
    pub(crate) texts: Vec<String>,
    /// Whether all stored events and samples are removed.
    pub(crate) is_stored: bool,
    /// Whether the files of the database were written again since.
    pub(crate) is_compacted: bool,
    /// The offset of the log before which the events are.
    pub(crate) log_end: Option<u64>,
}

impl Pending {
    /// Whether a person has more distinct ids than it lists, so that the fingerprints of some
    /// are not known.
    fn has_unlisted(&self) -> bool {
        self.ids.len() > self.prints.len()
    }
}

/// The erasures of a project that are not done.
#[derive(Debug)]
pub(crate) struct Erased {
    project: ProjectId,
    /// The oldest first.
    pub(crate) pending: Vec<Arc<Pending>>,
    /// For the first id of a distinct id whose events are erased: the last such erasure.
    ids: HashMap<Uuid, usize>,
    /// Sorted fingerprints of these distinct ids.
    prints: Vec<u32>,
    has_unlisted: bool,
    /// The first ids of all erased persons.
    persons: HashSet<Uuid>,
}

impl Erased {
    fn of(project: ProjectId, pending: Vec<Arc<Pending>>) -> Self {
        let (mut ids, mut prints, mut has_unlisted) = (HashMap::new(), Vec::new(), false);
        let mut persons = HashSet::new();
        for (at, one) in pending.iter().enumerate() {
            persons.extend(one.ids.iter().copied());
            if one.deletes_events {
                // Of two, the later one has the higher bounds.
                ids.extend(one.ids.iter().map(|id| (*id, at)));
                prints.extend_from_slice(&one.prints);
                has_unlisted |= one.has_unlisted();
            }
        }
        prints.sort_unstable();
        prints.dedup();
        Self { project, pending, ids, prints, has_unlisted, persons }
    }

    /// The erasure that an event belongs to, by its number in [`Self::pending`]. `None`: the
    /// event stays.
    pub(crate) fn taken_by(
        &self,
        partition: u16,
        arrival: u64,
        distinct_id: &str,
    ) -> Option<usize> {
        let (at, bound) = self.last_of(partition, distinct_id)?;
        (arrival <= bound).then_some(at)
    }

    /// The arrival number of the last event of a partition with this distinct id that is
    /// erased. `None`: all of its events stay.
    pub(crate) fn bound_of(&self, partition: u16, distinct_id: &str) -> Option<u64> {
        self.last_of(partition, distinct_id).map(|(_, bound)| bound)
    }

    /// The last erasure of a distinct id, by its number in [`Self::pending`], and its bound in
    /// a partition.
    fn last_of(&self, partition: u16, distinct_id: &str) -> Option<(usize, u64)> {
        if !self.has_unlisted
            && self.prints.binary_search(&fingerprint(self.project, distinct_id)).is_err()
        {
            return None;
        }
        self.of_first_id(partition, persons::first_id(self.project, distinct_id))
    }

    /// As [`Self::bound_of`], by the first id of the distinct id.
    pub(crate) fn bound_of_first_id(&self, partition: u16, first_id: PersonId) -> Option<u64> {
        self.of_first_id(partition, first_id).map(|(_, bound)| bound)
    }

    fn of_first_id(&self, partition: u16, first_id: PersonId) -> Option<(usize, u64)> {
        let at = *self.ids.get(&first_id.0)?;
        let bound = self.pending.get(at)?.bounds.get(usize::from(partition))?;
        Some((at, *bound))
    }

    /// Whether an event is erased.
    pub(crate) fn takes(&self, partition: u16, arrival: u64, distinct_id: &str) -> bool {
        self.taken_by(partition, arrival, distinct_id).is_some()
    }

    /// Whether a stored event is erased.
    pub(crate) fn takes_event(&self, partition: u16, event: &StoredEvent) -> bool {
        self.takes(partition, event.arrival, &event.distinct_id)
    }

    /// Whether a block may have erased events, by its summary.
    pub(crate) fn may_concern(&self, summary: &Summary) -> bool {
        let (ids, _) = summary.ids.as_chunks::<4>();
        let has = |print: &u32| ids.binary_search(&print.to_be_bytes()).is_ok();
        self.has_unlisted || self.prints.iter().any(has)
    }

    /// Whether events are stored that are to be erased.
    pub(crate) fn has_stored_events(&self) -> bool {
        self.pending.iter().any(|one| one.deletes_events && !one.is_stored)
    }

    /// The arrival number of the last event of a partition that may be erased.
    pub(crate) fn bound(&self, partition: u16) -> u64 {
        let with_events = self.pending.iter().filter(|one| one.deletes_events);
        let bounds = with_events.filter_map(|one| one.bounds.get(usize::from(partition)));
        bounds.copied().max().unwrap_or(0)
    }

    /// Whether a person of a snapshot is erased, by its id and its distinct ids.
    pub(crate) fn takes_person(&self, id: Uuid, distinct_ids: &[String]) -> bool {
        let first_id = |id: &String| persons::first_id(self.project, id).0;
        self.persons.contains(&id)
            || distinct_ids.iter().any(|id| self.persons.contains(&first_id(id)))
    }

    /// The number in [`Self::pending`] of the erasure that a dropped or altered event belongs
    /// to: by its distinct id, or because its payload has one of the distinct ids as a text.
    pub(crate) fn sample_taken_by(
        &self,
        distinct_id: Option<&str>,
        payload: &str,
        received_at: i64,
    ) -> Option<usize> {
        let distinct_id = distinct_id.and_then(quoted);
        // The empty text is in many payloads, and says nothing.
        let is_in_payload = |text: &str| text != "\"\"" && payload.contains(text);
        self.pending.iter().position(|one| {
            one.deletes_events
                && received_at <= one.requested_at
                && one
                    .texts
                    .iter()
                    .any(|text| distinct_id.as_ref() == Some(text) || is_in_payload(text))
        })
    }
}

/// A text as it is in JSON.
pub(super) fn quoted(text: &str) -> Option<String> {
    serde_json::to_string(text).ok()
}

/// The erasures of all projects that are not done.
#[derive(Debug, Default)]
pub(crate) struct Active {
    projects: RwLock<HashMap<ProjectId, Arc<Erased>>>,
    /// How often `projects` was changed, with its lock.
    changes: AtomicU64,
    /// Locked by the one who changes `projects`.
    changing: Mutex<()>,
    changed: Notify,
    /// Erasures that the list for backups lacks, because it could not be written. Locked while
    /// the list is written.
    pub(super) unlisted: tokio::sync::Mutex<Vec<Listed>>,
}

impl Active {
    fn read(&self) -> RwLockReadGuard<'_, HashMap<ProjectId, Arc<Erased>>> {
        self.projects.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, HashMap<ProjectId, Arc<Erased>>> {
        self.projects.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The erasures of a project whose events are not shown any more. `None`: all are shown.
    pub(crate) fn of(&self, project: ProjectId) -> Option<Arc<Erased>> {
        self.numbered(project).0
    }

    /// The same, and a number. As long as the number is the same, so are the erasures.
    pub(crate) fn numbered(&self, project: ProjectId) -> (Option<Arc<Erased>>, u64) {
        let projects = self.read();
        let erased = projects.get(&project).filter(|erased| !erased.ids.is_empty()).cloned();
        (erased, self.changes.load(Ordering::Relaxed))
    }

    /// The erasures of each project that are not done.
    pub(crate) fn all(&self) -> Vec<(ProjectId, Arc<Erased>)> {
        self.read().iter().map(|(project, erased)| (*project, Arc::clone(erased))).collect()
    }

    /// The number of the distinct ids of all of them.
    pub(crate) fn distinct_ids(&self) -> usize {
        let of = |erased: &Arc<Erased>| -> usize {
            erased.pending.iter().map(|one| one.ids.len()).sum()
        };
        self.read().values().map(of).sum()
    }

    /// The bytes of the texts of the distinct ids of all of them.
    pub(crate) fn text_bytes(&self) -> usize {
        let of = |erased: &Arc<Erased>| -> usize {
            erased.pending.iter().flat_map(|one| &one.texts).map(String::len).sum()
        };
        self.read().values().map(of).sum()
    }

    /// Adds an erasure.
    pub(crate) fn add(&self, project: ProjectId, new: Pending) {
        self.change(project, |mut pending| {
            pending.push(Arc::new(new));
            // Bounds rise with each erasure, also if the clock was set back.
            pending.sort_by(|one, next| (&one.bounds, one.id).cmp(&(&next.bounds, next.id)));
            pending
        });
        self.notify();
    }

    /// Changes an erasure. Without a result it is removed.
    pub(crate) fn update(
        &self,
        project: ProjectId,
        id: Uuid,
        change: impl FnOnce(Pending) -> Option<Pending>,
    ) {
        let mut change = Some(change);
        let mut changed = |one: Arc<Pending>| match change.take_if(|_| one.id == id) {
            Some(change) => change(Pending::clone(&one)).map(Arc::new),
            None => Some(one),
        };
        self.change(project, |pending| pending.into_iter().filter_map(&mut changed).collect());
    }

    /// Forgets the erasures of a deleted project.
    pub(crate) fn forget(&self, project: ProjectId) {
        self.change(project, |_| Vec::new());
    }

    /// Replaces the erasures of a project. Readers have the former ones until the new ones are
    /// complete: their sets may be large.
    fn change(
        &self,
        project: ProjectId,
        change: impl FnOnce(Vec<Arc<Pending>>) -> Vec<Arc<Pending>>,
    ) {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.read().get(&project).cloned();
        let pending = change(before.as_ref().map(|of| of.pending.clone()).unwrap_or_default());
        let erased = (!pending.is_empty()).then(|| Arc::new(Erased::of(project, pending)));
        // The former ones are dropped after the lock.
        let mut projects = self.write();
        self.changes.fetch_add(1, Ordering::Relaxed);
        match erased {
            Some(erased) => projects.insert(project, erased),
            None => projects.remove(&project),
        };
    }

    /// Wakes the task that removes the data.
    pub(crate) fn notify(&self) {
        self.changed.notify_one();
    }

    /// Returns after a new erasure.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::PARTITIONS;

    const PROJECT: ProjectId = ProjectId(7);

    fn pending(number: u128, texts: &[&str], unlisted: &[&str], bound: u64) -> Pending {
        let first_id = |text: &&str| persons::first_id(PROJECT, text).0;
        Pending {
            id: Uuid::from_u128(number),
            requested_at: 5,
            deletes_events: true,
            bounds: vec![bound; PARTITIONS.into()],
            ids: texts.iter().chain(unlisted).map(first_id).collect(),
            prints: texts.iter().map(|text| fingerprint(PROJECT, text)).collect(),
            texts: texts.iter().filter_map(|text| quoted(text)).collect(),
            is_stored: false,
            is_compacted: false,
            log_end: None,
        }
    }

    #[test]
    fn events_up_to_the_bound_are_taken_by_the_last_erasure() {
        let active = Active::default();
        assert!(active.of(PROJECT).is_none());
        active.add(PROJECT, pending(1, &["ada", "a-1"], &[], 10));
        active.add(PROJECT, pending(2, &["ada"], &[], 20));
        let erased = active.of(PROJECT).unwrap();
        for id in ["ada", "a-1", "bob"] {
            let first_id = persons::first_id(PROJECT, id);
            assert_eq!(erased.bound_of_first_id(0, first_id), erased.bound_of(0, id), "{id}");
        }
        for (distinct_id, arrival, expected) in [
            ("ada", 5, Some(1)),
            ("ada", 20, Some(1)),
            ("ada", 21, None),
            ("a-1", 10, Some(0)),
            ("a-1", 11, None),
            ("bob", 1, None),
        ] {
            assert_eq!(erased.taken_by(3, arrival, distinct_id), expected, "{distinct_id}");
        }
        assert_eq!(erased.bound(0), 20);
        let bounds = ["ada", "a-1", "bob"].map(|id| erased.bound_of(3, id));
        assert_eq!(bounds, [Some(20), Some(10), None]);
        assert!(active.of(ProjectId(8)).is_none());
        let (_, number) = active.numbered(PROJECT);
        assert_eq!(active.numbered(PROJECT).1, number);
        active.update(PROJECT, Uuid::from_u128(2), |_| None);
        assert_ne!(active.numbered(PROJECT).1, number);
        assert_eq!(active.of(PROJECT).unwrap().taken_by(0, 20, "ada"), None);
        active.update(PROJECT, Uuid::from_u128(1), |_| None);
        assert!(active.of(PROJECT).is_none());
    }

    #[test]
    fn changes_at_the_same_time_are_all_kept() {
        let active = Active::default();
        std::thread::scope(|scope| {
            for number in 1..=8 {
                let active = &active;
                scope.spawn(move || {
                    active.add(PROJECT, pending(number, &["ada"], &[], 10));
                    let stored = |one: Pending| Some(Pending { is_stored: true, ..one });
                    active.update(PROJECT, Uuid::from_u128(number), stored);
                });
            }
        });
        let erased = active.of(PROJECT).unwrap();
        assert_eq!(erased.pending.len(), 8);
        assert!(erased.pending.iter().all(|one| one.is_stored));
        active.forget(PROJECT);
        assert!(active.of(PROJECT).is_none());
    }

    #[test]
    fn distinct_ids_that_a_person_does_not_list_are_taken_too() {
        let active = Active::default();
        active.add(PROJECT, pending(1, &["ada"], &["hidden"], 10));
        let erased = active.of(PROJECT).unwrap();
        assert!(erased.takes(0, 1, "hidden") && erased.takes(0, 1, "ada"));
        assert!(!erased.takes(0, 1, "bob"));
        assert!(erased.takes_person(Uuid::nil(), &["hidden".to_owned()]));
        assert!(!erased.takes_person(Uuid::nil(), &["bob".to_owned()]));
    }

    #[test]
    fn an_erasure_without_events_takes_none() {
        let active = Active::default();
        active.add(PROJECT, Pending { deletes_events: false, ..pending(1, &["ada"], &[], 9) });
        assert!(active.of(PROJECT).is_none());
        let (_, erased) = active.all().remove(0);
        assert!(erased.takes_person(persons::first_id(PROJECT, "ada").0, &[]));
    }

    #[test]
    fn samples_are_taken_by_their_distinct_id_or_their_payload() {
        let active = Active::default();
        active.add(PROJECT, pending(1, &["a\"da"], &[], 10));
        let erased = active.of(PROJECT).unwrap();
        let taken = |id, payload, at| erased.sample_taken_by(id, payload, at);
        assert_eq!(taken(Some("a\"da"), "", 5), Some(0));
        assert_eq!(taken(None, r#"{"alias":"a\"da"}"#, 5), Some(0));
        assert_eq!(taken(None, r#"{"alias":"xa\"dax"}"#, 5), None);
        assert_eq!(taken(Some("a\"da"), "", 6), None, "received later");
    }
}
