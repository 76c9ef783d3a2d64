//! How answers are computed from the events of persons (QRY-13 to QRY-21).
//!
//! What belongs here: rules over events that an engine has found, sorted by person and time.
//! What does not: finding them, and the shape of results (`results`). All times are
//! microseconds since 1970-01-01 UTC.
//!
//! An engine may share the persons of a question among threads: each has an accumulator, and
//! `merge` adds one to another. No result depends on the order of persons (QRY-28).
//!
//! The work for a person is in proportion to the number of its events, times a number that
//! the question bounds. Memory is in proportion to the numbers of buckets, steps and edges,
//! and in a funnel to the number of persons.

mod attribution;
mod breakdown;
#[cfg(feature = "matching")]
mod filter;
mod funnel;
mod lifecycle;
mod path_names;
mod paths;
mod percentile;
mod property;
mod retention;
mod sessions;
mod stickiness;
mod sum;
#[cfg(test)]
mod support;
mod web;

pub use attribution::{STEP_VALUES_MAX, TooManyValues, by_value, grouped};
pub use breakdown::{BREAKDOWN_TEXT_MAX, BreakdownRank, NumberRanges, breakdown_text};
#[cfg(feature = "matching")]
pub use filter::{FilterFault, Matcher, patterns};
pub use funnel::{
    ExclusionRange, FunnelEvent, FunnelOutcome, FunnelRules, FunnelTotals, Histogram, StepTotals,
    histogram,
};
pub use lifecycle::Lifecycle;
pub use path_names::PathNames;
pub use paths::{EDGES_MAX, Edge, PathEvent, PathRules, Paths, TooManyEdges};
pub use percentile::percentile;
pub use property::{Numeric, PropertyValue};
pub use retention::{RETURNING, Retention, RetentionEvent, TARGET};
pub use sessions::{
    AUTOCAPTURE, PAGEVIEW, SESSION_GAP, SESSION_ID, SESSION_REACH, Session, SessionEvent, sessions,
};
pub use stickiness::Stickiness;
pub use sum::{ExactSum, NumberTotals};
pub use web::{WebEvent, WebRules, WebSession, WebTotals, web_sessions, web_values};

/// Most events of a person that are in memory at the same time.
pub const PERSON_EVENTS_MAX: usize = 1_000_000;

/// A person has more events than may be in memory at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a person has more than {0} events")]
pub struct TooManyEvents(pub usize);

/// Calls a function with the events of each person. Events are sorted by person, and by time
/// within a person.
///
/// # Errors
/// A person has more than `most` events.
pub fn for_each_person<P: PartialEq, E>(
    events: impl IntoIterator<Item = (P, E)>,
    most: usize,
    mut visit: impl FnMut(&P, &[E]),
) -> Result<(), TooManyEvents> {
    let mut current: Option<P> = None;
    let mut own = Vec::new();
    for (person, event) in events {
        if current.as_ref() != Some(&person) {
            if let Some(last) = &current {
                visit(last, &own);
            }
            own.clear();
            current = Some(person);
        }
        if own.len() == most {
            return Err(TooManyEvents(most));
        }
        own.push(event);
    }
    if let Some(last) = &current {
        visit(last, &own);
    }
    Ok(())
}

/// Adds counts to others of the same question.
fn add_counts(counts: &mut [u64], more: &[u64]) {
    for (count, more) in counts.iter_mut().zip(more) {
        *count += more;
    }
}

/// The number of the bucket that contains a time, of buckets between these boundaries.
fn bucket(boundaries: &[i64], time: i64) -> Option<usize> {
    let after = boundaries.partition_point(|boundary| *boundary <= time);
    after.checked_sub(1).filter(|at| at + 1 < boundaries.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_person_by_person() {
        let events = [(1, "a"), (1, "b"), (2, "c"), (1, "d")];
        let mut seen = Vec::new();
        let visit = |person: &i32, own: &[&str]| seen.push((*person, own.concat()));
        assert_eq!(for_each_person(events, 2, visit), Ok(()));
        let expected = [(1, "ab".to_owned()), (2, "c".to_owned()), (1, "d".to_owned())];
        assert_eq!(seen, expected);
        assert_eq!(for_each_person([(1, 1), (1, 2)], 1, |_, _| {}), Err(TooManyEvents(1)));
        assert_eq!(for_each_person([(); 0].map(|()| (1, 1)), 1, |_, _| panic!()), Ok(()));
    }

    #[test]
    fn a_time_is_in_one_bucket_or_none() {
        let boundaries = [10, 20, 30];
        for (time, expected) in
            [(9, None), (10, Some(0)), (19, Some(0)), (20, Some(1)), (29, Some(1)), (30, None)]
        {
            assert_eq!(bucket(&boundaries, time), expected, "{time}");
        }
        assert_eq!(bucket(&[], 5), None);
    }
}
