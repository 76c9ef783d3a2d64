//! Spikes: sudden floods of events (ING-57). They are detected and shown, never dropped.
//!
//! What belongs here: detecting that a distinct id or a project sends so much that a user
//! should check it. What does not: processing fewer of its events. A person is written
//! once per batch, however many of its events the batch has, and partitions keep the
//! events of other users separate.
//!
//! Time is the time of receipt, so a backlog that is processed late is no spike. Imports
//! are no spikes either.

use std::collections::HashMap;

use weir_model::ProjectId;
use weir_model::outcomes::Warning;

use super::apply_batch::{Part, Spike};

/// Length of a window in microseconds.
const WINDOW: i64 = 10_000_000;
/// Events of one distinct id within a window that are a spike: 1,000 per second for the
/// whole window.
const OF_ID: u64 = 10_000;
/// Events of a project in one partition within a window below which there is no spike.
const OF_PROJECT: u64 = 20_000;
/// How many times the usual number they must reach.
const TIMES_USUAL: f64 = 10.0;
/// Weight of the last window in the usual number.
const WEIGHT: f64 = 0.1;
/// Events of one distinct id in a batch from which on it is watched.
const WATCH_FROM_EVENTS: u64 = 50;
/// Upper bound of distinct ids, and of projects, that are watched.
const WATCHED: usize = 1_000;

/// The counts of one consumer.
#[derive(Debug, Default)]
pub(crate) struct Spikes {
    ids: HashMap<(ProjectId, String), Window>,
    projects: HashMap<ProjectId, (Window, Usual)>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Window {
    number: i64,
    events: u64,
}

/// The average number of events per window.
#[derive(Debug, Default, Clone, Copy)]
struct Usual(f64);

impl Window {
    /// Counts events. Returns the events of the window so far, and the previous window if
    /// a new one begins.
    fn count(&mut self, number: i64, events: u64) -> (u64, Option<Self>) {
        // Receipt times of one batch may be in two windows. The later one counts.
        let before = (number > self.number).then_some(*self);
        if before.is_some() {
            *self = Self { number, events: 0 };
        }
        self.events += events;
        (self.events, before)
    }
}

impl Spikes {
    /// Counts the events of a project in a batch. Returns the spikes that they belong to.
    pub(super) fn search(&mut self, project: ProjectId, part: &Part) -> Vec<Spike> {
        let Some(last) = part.items.last() else { return Vec::new() };
        let at = last.received_at();
        let spikes = [self.of_project(project, at, part), self.of_ids(project, at, part)];
        spikes.into_iter().flatten().collect()
    }

    fn of_project(&mut self, project: ProjectId, at: i64, part: &Part) -> Option<Spike> {
        let number = at / WINDOW;
        if self.projects.len() >= WATCHED {
            self.projects.clear();
        }
        let events = part.items.len() as u64;
        let (window, usual) = self.projects.entry(project).or_default();
        let (so_far, before) = window.count(number, events);
        if let Some(before) = before.filter(|before| before.number > 0) {
            // Windows without events count too.
            let empty = i32::try_from(number - before.number - 1).unwrap_or(i32::MAX);
            let last = before.events as f64;
            usual.0 = (usual.0 * (1.0 - WEIGHT) + last * WEIGHT) * (1.0 - WEIGHT).powi(empty);
        }
        let is_spike =
            so_far > OF_PROJECT && usual.0 > 0.0 && so_far as f64 > usual.0 * TIMES_USUAL;
        is_spike.then_some(Spike { warning: Warning::ProjectSpike, events, at, of: None })
    }

    fn of_ids(&mut self, project: ProjectId, at: i64, part: &Part) -> Option<Spike> {
        let number = at / WINDOW;
        let mut counts: HashMap<&str, u64> = HashMap::new();
        for event in part.items.iter().filter_map(|item| item.event()) {
            *counts.entry(event.distinct_id).or_default() += 1;
        }
        if self.ids.len() >= WATCHED {
            self.ids.retain(|_, window| window.number == number);
        }
        let mut hottest: Option<Spike> = None;
        for (id, events) in counts.into_iter().filter(|(_, events)| *events >= WATCH_FROM_EVENTS) {
            if self.ids.len() >= WATCHED {
                break;
            }
            let window = self.ids.entry((project, id.to_owned())).or_default();
            let (so_far, _) = window.count(number, events);
            if so_far > OF_ID && hottest.as_ref().is_none_or(|spike| events > spike.events) {
                let of = Some(id.to_owned());
                hottest = Some(Spike { warning: Warning::DistinctIdSpike, events, at, of });
            }
        }
        hottest
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::batch::Batch;
    use crate::batch::tests::batch;
    use crate::logged::LoggedBatch;
    use crate::pipeline::apply_batch::Item;

    const SECOND: i64 = 1_000_000;

    /// This many events of one distinct id, received in this second.
    fn part(distinct_id: &str, events: u32, second: i64) -> Part {
        let received_at = 1_780_000_000 * SECOND + second * SECOND;
        let batch = Batch { received_at, ..batch(distinct_id, events) };
        let batch = Arc::new(LoggedBatch::of(&batch));
        let items = (0..events as usize)
            .map(|index| Item::new(Arc::clone(&batch), index, index as u64))
            .collect();
        Part { items, ..Part::default() }
    }

    fn warned(spikes: &mut Spikes, part: Part) -> Vec<Warning> {
        spikes.search(ProjectId(1), &part).iter().map(|spike| spike.warning).collect()
    }

    #[test]
    fn a_distinct_id_is_hot_from_a_thousand_events_a_second_on() {
        let mut spikes = Spikes::default();
        for second in 0..9 {
            assert_eq!(warned(&mut spikes, part("hot", 1_050, second)), []);
        }
        assert_eq!(warned(&mut spikes, part("hot", 1_050, 9)), [Warning::DistinctIdSpike]);
        assert_eq!(warned(&mut spikes, part("other", 1_050, 9)), []);
        assert_eq!(warned(&mut spikes, part("hot", 1_050, 20)), [], "another window");
    }

    #[test]
    fn a_project_spikes_when_it_sends_ten_times_its_usual() {
        let mut spikes = Spikes::default();
        for window in 0..40 {
            for id in ["a", "b", "c"] {
                assert_eq!(warned(&mut spikes, part(id, 600, window * 10)), []);
            }
        }
        for id in 0..5 {
            assert_eq!(warned(&mut spikes, part(&format!("u{id}"), 4_000, 400)), []);
        }
        assert_eq!(warned(&mut spikes, part("u9", 4_000, 401)), [Warning::ProjectSpike]);
        // The same rate continues, so it becomes the usual one.
        let mut last = Vec::new();
        for window in 41..100 {
            for id in 0..6 {
                last = warned(&mut spikes, part(&format!("u{id}"), 4_000, window * 10));
            }
        }
        assert_eq!(last, []);
    }

    #[test]
    fn a_project_that_begins_is_no_spike() {
        let mut spikes = Spikes::default();
        for id in 0..10 {
            assert_eq!(warned(&mut spikes, part(&format!("u{id}"), 4_000, 0)), []);
        }
    }
}
