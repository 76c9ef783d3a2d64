//! Ranges of time, and the intervals that they are divided into.

use std::ops::Range;

use weir_model::Timestamp;
use weir_questions::evaluate::SESSION_REACH;
use weir_questions::results::{Axis, ResolvedRange};
use weir_questions::time::{Buckets, TimeRange};

/// A range of time in one or more intervals.
#[derive(Debug, Clone)]
pub(crate) struct Span {
    /// Events in it count.
    pub(crate) times: Range<i64>,
    /// One more than intervals.
    pub(crate) boundaries: Vec<i64>,
    pub(crate) axis: Axis,
}

impl Span {
    /// A range as one interval.
    pub(crate) fn whole(range: &TimeRange) -> Self {
        Self::of(range.begin()..range.end())
    }

    /// Times as one interval.
    pub(crate) fn of(times: Range<i64>) -> Self {
        Self { boundaries: vec![times.start, times.end], times, axis: Axis::default() }
    }

    pub(crate) fn len(&self) -> usize {
        self.boundaries.len().saturating_sub(1)
    }

    pub(crate) fn resolved(&self) -> ResolvedRange {
        resolved(&self.times)
    }
}

impl From<&Buckets> for Span {
    fn from(buckets: &Buckets) -> Self {
        Self {
            times: buckets.begin()..buckets.end(),
            boundaries: buckets.boundaries().to_vec(),
            axis: Axis::from(buckets),
        }
    }
}

/// The range of an answer.
pub(crate) fn resolved(times: &Range<i64>) -> ResolvedRange {
    ResolvedRange {
        date_from: Timestamp::from_micros(times.start),
        date_to: Timestamp::from_micros(times.end.saturating_sub(1)),
    }
}

/// The times of the events that the sessions need which begin in a range.
pub(crate) fn with_reach(times: &Range<i64>) -> Range<i64> {
    times.start.saturating_sub(SESSION_REACH)..times.end.saturating_add(SESSION_REACH)
}

/// Finds the intervals of times, most of which are in the interval of the one before.
#[derive(Debug)]
pub(crate) struct Cursor<'a> {
    span: &'a Span,
    at: usize,
    current: Range<i64>,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(span: &'a Span) -> Self {
        Self { span, at: 0, current: 0..0 }
    }

    /// The number of the interval of a time. `None`: it is not in the range.
    pub(crate) fn index(&mut self, time: i64) -> Option<usize> {
        if self.current.contains(&time) {
            return Some(self.at);
        }
        if !self.span.times.contains(&time) {
            return None;
        }
        let boundaries = &self.span.boundaries;
        let at = boundaries.partition_point(|boundary| *boundary <= time).checked_sub(1)?;
        let (start, end) = (*boundaries.get(at)?, *boundaries.get(at + 1)?);
        self.current = start.max(self.span.times.start)..end.min(self.span.times.end);
        self.at = at;
        Some(at)
    }
}
