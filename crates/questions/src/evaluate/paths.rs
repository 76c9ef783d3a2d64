//! What persons do after what (QRY-19).

use std::borrow::Cow;
use std::collections::HashMap;

use super::sessions::SESSION_GAP;

const MILLI: i128 = 1_000;

/// Most different edges that are in memory.
pub const EDGES_MAX: usize = 500_000;

/// The paths of the persons have more different edges than may be in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("paths have too many different edges")]
pub struct TooManyEdges;

/// An event of a person that is a step of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathEvent {
    /// Its time.
    pub time: i64,
    /// A number that stands for the name of the step. Numbers have the order of the names, so
    /// that no answer depends on which one was seen first.
    pub name: u32,
}

/// Which part of a path counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathRules {
    /// Most steps: at least two.
    pub steps: usize,
    /// Paths begin at the first step of this name. Others do not count.
    pub start: Option<u32>,
    /// Paths end at the first step of this name. Others do not count.
    pub end: Option<u32>,
    /// The name of the steps that a long path from a start to an end skips in its middle.
    pub gap: u32,
}

/// An edge: persons who went from a step to the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// The number of its first step in a path, from 1.
    pub step: usize,
    /// The name of its first step.
    pub source: u32,
    /// The name of its second step.
    pub target: u32,
    /// How often it is in a path.
    pub count: u64,
    /// The sum of the times between its steps, in microseconds.
    pub micros: i128,
}

impl Edge {
    /// The average time between its steps, in milliseconds.
    pub fn average_millis(&self) -> f64 {
        match self.count {
            0 => 0.0,
            count => self.micros as f64 / (i128::from(count) * MILLI) as f64,
        }
    }
}

/// Counts the edges of paths.
#[derive(Debug, Clone)]
pub struct Paths {
    rules: PathRules,
    edges: Edges,
}

/// Counts and times by step, source and target.
type Edges = HashMap<(usize, u32, u32), (u64, i128)>;

fn add(
    edges: &mut Edges,
    key: (usize, u32, u32),
    count: u64,
    micros: i128,
) -> Result<(), TooManyEdges> {
    if edges.len() == EDGES_MAX && !edges.contains_key(&key) {
        return Err(TooManyEdges);
    }
    let edge = edges.entry(key).or_default();
    edge.0 += count;
    edge.1 += micros;
    Ok(())
}

impl PathRules {
    /// Calls a function with each path of a person that counts, of its sorted events. Events
    /// of the same time are in the order of their names.
    pub fn paths(&self, events: &[PathEvent], mut see: impl FnMut(&[PathEvent])) {
        let key = |event: &PathEvent| (event.time, event.name);
        let mut events = Cow::Borrowed(events);
        if !events.is_sorted_by_key(key) {
            events.to_mut().sort_unstable_by_key(key);
        }
        let is_together =
            |a: &PathEvent, b: &PathEvent| b.time.saturating_sub(a.time) < SESSION_GAP;
        for session in events.chunk_by(is_together) {
            let runs = session.chunk_by(|a, b| a.name == b.name);
            let path: Vec<PathEvent> = runs.filter_map(|run| run.last().copied()).collect();
            if let Some(path) = part(&path, *self) {
                see(&path);
            }
        }
    }
}

impl Paths {
    /// For paths with these rules.
    pub fn new(rules: PathRules) -> Self {
        Self { rules, edges: HashMap::new() }
    }

    /// Counts the paths of a person by its sorted events. A pause of 30 minutes ends a path, and
    /// the same step several times in a row is one step, at the time of the last one.
    ///
    /// # Errors
    /// There are more than [`EDGES_MAX`] different edges.
    pub fn person(&mut self, events: &[PathEvent]) -> Result<(), TooManyEdges> {
        let mut found = Ok(());
        self.rules.paths(events, |path| {
            for (at, pair) in path.windows(2).enumerate() {
                let [source, target] = pair else { continue };
                let key = (at + 1, source.name, target.name);
                let micros = i128::from(target.time) - i128::from(source.time);
                found = found.and(add(&mut self.edges, key, 1, micros));
            }
        });
        found
    }

    /// Counts the paths of others with the same rules.
    ///
    /// # Errors
    /// There are more than [`EDGES_MAX`] different edges.
    pub fn merge(&mut self, other: Self) -> Result<(), TooManyEdges> {
        let mut edges = other.edges.into_iter();
        edges.try_for_each(|(key, (count, micros))| add(&mut self.edges, key, count, micros))
    }

    /// The bytes that its edges take in memory.
    pub fn bytes(&self) -> usize {
        // An entry has a byte beside it, and one of eight places stays free.
        self.edges.capacity() * (size_of::<((usize, u32, u32), (u64, i128))>() + 1) * 8 / 7
    }

    /// The edges with a count within bounds: those with the highest count, at most this many.
    pub fn edges(&self, most: usize, bounds: std::ops::RangeInclusive<u64>) -> Vec<Edge> {
        let mut edges: Vec<Edge> = self
            .edges
            .iter()
            .filter(|(_, (count, _))| bounds.contains(count))
            .map(|((step, source, target), (count, micros))| Edge {
                step: *step,
                source: *source,
                target: *target,
                count: *count,
                micros: *micros,
            })
            .collect();
        // Equal counts have a fixed order, so that an answer is always the same.
        edges.sort_unstable_by_key(|edge| {
            (std::cmp::Reverse(edge.count), edge.step, edge.source, edge.target)
        });
        edges.truncate(most);
        edges
    }
}

/// The part of a path that counts. `None`: it does not have the start or the end.
fn part(path: &[PathEvent], rules: PathRules) -> Option<Vec<PathEvent>> {
    let position = |path: &[PathEvent], name: u32| path.iter().position(|step| step.name == name);
    let path = match rules.start {
        Some(name) => path.get(position(path, name)?..)?,
        None => path,
    };
    let path = match rules.end {
        Some(name) => path.get(..=position(path, name)?)?,
        None => path,
    };
    let steps = rules.steps.max(2);
    let over = path.len().saturating_sub(steps);
    if over == 0 {
        return Some(path.to_vec());
    }
    Some(match (rules.start, rules.end) {
        (Some(_), Some(_)) => {
            // Both ends matter, so the middle is one step.
            let half = steps / 2;
            let (begin, rest) = path.split_at(half);
            let gap = rest.first().map(|step| PathEvent { name: rules.gap, ..*step });
            let end = rest.get(rest.len().saturating_sub(half)..).unwrap_or_default();
            begin.iter().copied().chain(gap).chain(end.iter().copied()).collect()
        }
        (None, Some(_)) => path.get(over..)?.to_vec(),
        _ => path.get(..steps)?.to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::evaluate::support::in_parts;

    const MINUTE: i64 = 60 * 1_000_000;
    const ANY: std::ops::RangeInclusive<u64> = 0..=u64::MAX;

    fn rules(start: Option<u32>, end: Option<u32>) -> PathRules {
        PathRules { steps: 4, start, end, gap: 99 }
    }

    /// Events with their minutes.
    fn events(events: &[(i64, u32)]) -> Vec<PathEvent> {
        events
            .iter()
            .map(|(minute, name)| PathEvent { time: minute * MINUTE, name: *name })
            .collect()
    }

    /// Edges as step, source and target, in the order of the path.
    fn edges(rules: PathRules, path: &[(i64, u32)]) -> Vec<(usize, u32, u32)> {
        let mut paths = Paths::new(rules);
        paths.person(&events(path)).unwrap();
        let mut edges: Vec<_> = paths
            .edges(100, ANY)
            .iter()
            .map(|edge| (edge.step, edge.source, edge.target))
            .collect();
        edges.sort_unstable();
        edges
    }

    #[test]
    fn a_pause_ends_a_path_and_repeated_steps_are_one() {
        let path = [(0, 1), (1, 1), (2, 2), (31, 3), (61, 4), (62, 5)];
        assert_eq!(edges(rules(None, None), &path), [(1, 1, 2), (1, 4, 5), (2, 2, 3)]);
        assert!(edges(rules(None, None), &[(0, 1), (1, 1)]).is_empty());
        assert!(edges(rules(None, None), &[]).is_empty());
        // Those of the same time.
        assert_eq!(edges(rules(None, None), &[(0, 2), (0, 1), (0, 2)]), [(1, 1, 2)]);
    }

    #[test]
    fn paths_have_a_start_an_end_and_a_number_of_steps() {
        let path = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6)];
        for (start, end, expected) in [
            (None, None, &[(1, 1, 2), (2, 2, 3), (3, 3, 4)][..]),
            (Some(4), None, &[(1, 4, 5), (2, 5, 6)]),
            (None, Some(3), &[(1, 1, 2), (2, 2, 3)]),
            // The last steps before the end.
            (None, Some(6), &[(1, 3, 4), (2, 4, 5), (3, 5, 6)]),
            (Some(2), Some(4), &[(1, 2, 3), (2, 3, 4)]),
            // The middle is skipped.
            (Some(1), Some(6), &[(1, 1, 2), (2, 2, 99), (3, 99, 5), (4, 5, 6)]),
            (Some(7), None, &[]),
            (None, Some(7), &[]),
            (Some(4), Some(2), &[]),
        ] {
            assert_eq!(edges(rules(start, end), &path), expected, "{start:?} {end:?}");
        }
    }

    #[test]
    fn edges_are_counted_and_timed() {
        let mut paths = Paths::new(rules(None, None));
        paths.person(&events(&[(0, 1), (2, 2)])).unwrap();
        paths.person(&events(&[(0, 1), (4, 2), (5, 3)])).unwrap();
        let found = paths.edges(100, ANY);
        assert_eq!((found[0].count, found[0].source, found[0].target), (2, 1, 2));
        assert_eq!(found[0].average_millis(), 180_000.0);
        // Rounded once.
        let edge = Edge { count: 17, micros: 5_258_826_757, ..found[0] };
        assert_eq!(edge.average_millis(), 5_258_826_757.0 / 17_000.0);
        assert_eq!(found.len(), 2);
        assert_eq!(paths.edges(1, ANY).len(), 1);
        assert_eq!(paths.edges(100, 2..=9)[0].target, 2);
        assert_eq!(paths.edges(100, 0..=1)[0].target, 3);
    }

    #[test]
    fn the_number_of_edges_is_bounded() {
        let mut paths = Paths::new(PathRules { steps: usize::MAX, ..rules(None, None) });
        let all = u32::try_from(EDGES_MAX).unwrap() + 1;
        let path: Vec<_> = (0..=all).map(|name| PathEvent { time: 0, name }).collect();
        assert_eq!(paths.person(&path), Err(TooManyEdges));
        assert_eq!(paths.edges(usize::MAX, ANY).len(), EDGES_MAX);
        // Edges that are there still count, also those of others.
        assert_eq!(paths.person(&path[..2]), Ok(()));
        let of = |path: &[PathEvent]| {
            let mut paths = Paths::new(paths.rules);
            paths.person(path).unwrap();
            paths
        };
        let known = of(&path[..2]);
        assert_eq!(paths.merge(known), Ok(()));
        assert_eq!(paths.edges(1, ANY)[0].count, 3);
        let mut other = Paths::new(rules(None, None));
        other.person(&events(&[(0, 7), (1, 3)])).unwrap();
        assert_eq!(paths.merge(other), Err(TooManyEdges));
    }

    #[test]
    fn times_of_any_size_are_added() {
        let mut paths = Paths::new(rules(None, None));
        let far = [PathEvent { time: i64::MIN, name: 1 }, PathEvent { time: i64::MAX, name: 2 }];
        assert_eq!(paths.person(&far), Ok(()));
        assert!(paths.edges(9, ANY).is_empty(), "they are far apart");
    }

    proptest! {
        #[test]
        fn edges_do_not_depend_on_order_and_parts(
            persons in prop::collection::vec(
                prop::collection::vec((0..90_i64, 0..4_u32), 0..8),
                0..20,
            ),
            order in any::<u64>(),
        ) {
            let persons: Vec<Vec<PathEvent>> = persons
                .into_iter()
                .map(|mut person| {
                    person.sort_unstable();
                    events(&person)
                })
                .collect();
            let empty = Paths::new(rules(Some(1), None));
            let mut one = empty.clone();
            let mut behind = 0;
            for person in &persons {
                one.person(person).unwrap();
                empty.rules.paths(person, |path| behind += path.len() as u64 - 1);
            }
            let all = in_parts(
                &persons,
                order,
                &empty,
                |part, person| part.person(person).unwrap(),
                |part, other| part.merge(other).unwrap(),
            );
            let edges = one.edges(usize::MAX, ANY);
            prop_assert_eq!(all.edges(usize::MAX, ANY), edges.clone());
            prop_assert_eq!(edges.iter().map(|edge| edge.count).sum::<u64>(), behind);
        }
    }
}
