//! Counts since the last write. Each request and each applied batch takes one short lock;
//! events take none. The number of entries is bounded.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use weir_model::imports::ImportSource;
use weir_model::traffic::{Counts, UnknownKey};
use weir_model::{ProjectId, Timestamp};

use super::names::day;
use super::{INSTANCE, NameCounts, Refusals, Unit, unite};
use crate::events::WarningCount;

/// The largest number of minutes of projects that wait to be written. It is reached only
/// while the store refuses writes.
const MOST: usize = 50_000;
/// The largest number of days of projects whose names wait to be written.
const DAYS: usize = 1_000;
/// The largest number of sources of imports that wait to be written.
const SOURCES: usize = 2_000;
/// The largest number of waiting sources of one project. Client libraries name
/// themselves, and one project must not use up the bound of all.
const SOURCES_OF_PROJECT: usize = 100;

/// Counts that are not written yet.
#[derive(Debug, Default)]
pub struct TrafficCounters {
    pending: Mutex<Pending>,
    refusals: Refusals,
}

/// Counts that wait to be written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pending {
    /// Counts by project and minute.
    pub minutes: BTreeMap<(ProjectId, i64), Counts>,
    /// Events by name, by project and day.
    pub names: BTreeMap<(ProjectId, i64), NameCounts>,
    /// Sources of imports with their projects.
    pub sources: Vec<(ProjectId, ImportSource)>,
    /// Keys that no project has.
    pub unknown: Vec<UnknownKey>,
}

/// The applied events of a project in one batch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Applied {
    /// Number of stored events, by the minute in which they were received.
    pub accepted: Vec<(i64, u64)>,
    /// Number of stored events by the day in which they were received, and by name.
    pub names: Vec<(i64, String, u64)>,
    /// For each reason: the minute, the code, the number of events, and whether they were
    /// dropped for it.
    pub reasons: Vec<(i64, String, u64, bool)>,
}

impl Applied {
    /// Counts events, each with its time of receipt and its name, by the minute in which
    /// they were received. Events are in order of arrival, so there are few minutes.
    pub fn of<'a>(
        events: impl Iterator<Item = (i64, &'a str)>,
        warnings: &[WarningCount],
        is_dropped: impl Fn(&str) -> bool,
    ) -> Self {
        let minute = |micros: i64| Unit::Minute.at(Timestamp::from_micros(micros));
        let mut accepted: Vec<(i64, u64)> = Vec::new();
        let mut names: HashMap<(i64, &str), u64> = HashMap::new();
        let mut last = (i64::MIN, 0);
        for (micros, name) in events {
            *names.entry((day(micros), name)).or_default() += 1;
            // Most events are of the same request as the one before.
            let at = if micros == last.0 { last.1 } else { minute(micros) };
            last = (micros, at);
            match accepted.last_mut().filter(|(present, _)| *present == at) {
                Some((_, count)) => *count += 1,
                None => accepted.push((at, 1)),
            }
        }
        let reason = |warning: &WarningCount| {
            let count = u64::try_from(warning.count).unwrap_or(0);
            let dropped = is_dropped(&warning.code);
            (minute(warning.seen.to), warning.code.clone(), count, dropped)
        };
        let mut names: Vec<(i64, String, u64)> =
            names.into_iter().map(|((day, name), count)| (day, name.to_owned(), count)).collect();
        // The most frequent names are counted first, because a day has a bound of names.
        names.sort_by_key(|(day, _, count)| (*day, std::cmp::Reverse(*count)));
        Self { accepted, names, reasons: warnings.iter().map(reason).collect() }
    }
}

impl TrafficCounters {
    /// Counts a request that was answered with 200.
    pub fn answered(&self, project: ProjectId, at: Timestamp, bytes: u64, milliseconds: u64) {
        self.lock().count(project, Unit::Minute.at(at), |counts| {
            counts.answered(bytes, milliseconds);
        });
    }

    /// Counts a refused request, of a project if it is known.
    pub fn refused(&self, project: Option<ProjectId>, at: Timestamp, bytes: u64, code: &str) {
        let project = project.unwrap_or(INSTANCE);
        self.lock().count(project, Unit::Minute.at(at), |counts| counts.refused(bytes, code));
    }

    /// The refused requests themselves.
    pub fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    /// Adds the counts of an applied batch.
    pub fn applied(&self, project: ProjectId, applied: &Applied) {
        let mut pending = self.lock();
        for (minute, events) in &applied.accepted {
            pending.count(project, *minute, |counts| counts.accepted += events);
        }
        for (day, name, events) in &applied.names {
            pending.name(project, *day, |counts| counts.count(name, *events));
        }
        for (minute, code, events, is_dropped) in &applied.reasons {
            pending.count(project, *minute, |counts| {
                counts.reason(code, *events);
                if *is_dropped {
                    counts.dropped += events;
                }
            });
        }
    }

    /// Records how many bytes wait to be applied.
    pub fn waiting(&self, at: Timestamp, bytes: u64) {
        self.lock().count(INSTANCE, Unit::Minute.at(at), |counts| {
            counts.waiting = counts.waiting.max(bytes);
        });
    }

    /// Records a key that no project has.
    pub fn unknown_key(&self, seen: UnknownKey) {
        let mut pending = self.lock();
        pending.unknown = unite(std::mem::take(&mut pending.unknown), &[seen]);
    }

    /// Adds the source of events that belong to an import.
    pub fn imported(&self, project: ProjectId, source: ImportSource) {
        self.lock().import(project, source);
    }

    /// The minutes of a project that are not written yet.
    pub fn minutes(&self, project: ProjectId) -> Vec<(i64, Counts)> {
        let pending = self.lock();
        let of_project = pending.minutes.range((project, i64::MIN)..=(project, i64::MAX));
        of_project.map(|((_, minute), counts)| (*minute, counts.clone())).collect()
    }

    /// The events by name since a day that are not written yet.
    pub fn names_since(&self, project: ProjectId, from: Timestamp) -> NameCounts {
        let (mut all, pending) = (NameCounts::default(), self.lock());
        let days = pending.names.range((project, day(from.micros()))..=(project, i64::MAX));
        days.for_each(|(_, counts)| all.add(counts));
        all
    }

    /// The sources of a project that are not written yet.
    pub fn sources(&self, project: ProjectId) -> Vec<ImportSource> {
        let pending = self.lock();
        let of_project = pending.sources.iter().filter(|(of, _)| *of == project);
        of_project.map(|(_, source)| source.clone()).collect()
    }

    /// The unknown keys that are not written yet.
    pub fn unknown_keys(&self) -> Vec<UnknownKey> {
        self.lock().unknown.clone()
    }

    /// Takes all counts, to write them.
    pub fn take(&self) -> Pending {
        std::mem::take(&mut *self.lock())
    }

    /// Drops the unwritten counts of a deleted project.
    pub(super) fn forget(&self, project: ProjectId) {
        let mut pending = self.lock();
        pending.minutes.retain(|(of, _), _| *of != project);
        pending.names.retain(|(of, _), _| *of != project);
        pending.sources.retain(|(of, _)| *of != project);
        drop(pending);
        self.refusals.forget(project);
    }

    /// Puts back counts that could not be written.
    pub fn put_back(&self, unwritten: Pending) {
        let mut pending = self.lock();
        let newer = std::mem::replace(&mut *pending, unwritten);
        for ((project, minute), more) in newer.minutes {
            pending.count(project, minute, |counts| counts.add(&more));
        }
        for ((project, day), more) in newer.names {
            pending.name(project, day, |counts| counts.add(&more));
        }
        for (project, source) in newer.sources {
            pending.import(project, source);
        }
        pending.unknown = unite(std::mem::take(&mut pending.unknown), &newer.unknown);
    }

    fn lock(&self) -> MutexGuard<'_, Pending> {
        // Every change leaves consistent counts, so a poisoned lock does no harm.
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pending {
    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.minutes.is_empty()
            && self.names.is_empty()
            && self.sources.is_empty()
            && self.unknown.is_empty()
    }

    fn count(&mut self, project: ProjectId, minute: i64, change: impl FnOnce(&mut Counts)) {
        let key = (project, minute);
        if self.minutes.len() >= MOST && !self.minutes.contains_key(&key) {
            return;
        }
        change(self.minutes.entry(key).or_default());
    }

    fn name(&mut self, project: ProjectId, day: i64, change: impl FnOnce(&mut NameCounts)) {
        let key = (project, day);
        if self.names.len() < DAYS || self.names.contains_key(&key) {
            change(self.names.entry(key).or_default());
        }
    }

    fn import(&mut self, project: ProjectId, source: ImportSource) {
        let same = self.sources.iter_mut().find(|(of, present)| {
            *of == project
                && present.day == source.day
                && present.historical == source.historical
                && present.key == source.key
                && present.library == source.library
        });
        if let Some((_, present)) = same {
            present.counts.add(&source.counts);
            return;
        }
        let of_project = self.sources.iter().filter(|(of, _)| *of == project).count();
        if self.sources.len() < SOURCES && of_project < SOURCES_OF_PROJECT {
            self.sources.push((project, source));
        }
    }
}

#[cfg(test)]
mod tests {
    use weir_model::Timestamp;

    use super::*;
    use crate::events::Span;

    const PROJECT: ProjectId = ProjectId(3);

    #[test]
    fn what_is_put_back_is_added_to_what_came_since() {
        let counters = TrafficCounters::default();
        let now = Timestamp::from_micros(120_000_001);
        counters.answered(PROJECT, now, 10, 2);
        let taken = counters.take();
        assert!(counters.take().is_empty());
        counters.refused(Some(PROJECT), now, 5, "not_accepted");
        counters.refused(None, now, 5, "invalid_payload");
        counters.put_back(taken);
        let minutes = counters.minutes(PROJECT);
        assert_eq!(minutes.len(), 1);
        let (minute, counts) = minutes.into_iter().next().unwrap();
        assert_eq!((minute, counts.requests, counts.rejected), (2, 1, 1));
        assert_eq!(counters.minutes(INSTANCE).len(), 1);
    }

    #[test]
    fn what_waits_of_a_project_that_goes_is_forgotten() {
        let (counters, other) = (TrafficCounters::default(), ProjectId(4));
        for project in [PROJECT, other] {
            counters.answered(project, Timestamp::from_micros(1), 10, 2);
        }
        counters.forget(PROJECT);
        assert!(counters.minutes(PROJECT).is_empty());
        assert_eq!(counters.minutes(other).len(), 1);
    }

    #[test]
    fn events_are_counted_in_the_minute_in_which_they_came() {
        let warning = WarningCount {
            code: "missing_distinct_id".to_owned(),
            count: 2,
            seen: Span { from: 1, to: 60_000_000 },
            sample: None,
        };
        let received = [(1, "a"), (1, "b"), (59_999_999, "b"), (60_000_000, "b")];
        let applied = Applied::of(received.into_iter(), &[warning], |_| true);
        assert_eq!(applied.accepted, [(0, 3), (1, 1)]);
        let named = |name: &str, events: u64| (0, name.to_owned(), events);
        assert_eq!(applied.names, [named("b", 3), named("a", 1)]);
        let counters = TrafficCounters::default();
        counters.applied(PROJECT, &applied);
        let found: Vec<(i64, u64, u64)> = counters
            .minutes(PROJECT)
            .into_iter()
            .map(|(minute, counts)| (minute, counts.accepted, counts.dropped))
            .collect();
        assert_eq!(found, [(0, 3, 0), (1, 1, 2)]);
        let names = counters.names_since(PROJECT, Timestamp::EPOCH).names;
        assert_eq!(names, [("a".to_owned(), 1), ("b".to_owned(), 3)].into());
    }
}
