//! Answers beside those of a plain evaluation, which reads all events one after another.
//!
//! Each case has events and a question that a number chooses. The events are in blocks or
//! segments, are read by one thread or several, and have persons with other numbers: the
//! answer is always the same.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod actors;
mod by_person;
mod paths;
mod random;
mod source;
mod sql;
mod trends;
mod web;
mod world;

use weir_answer::{Asked, Cancel, MemoryPool, Result, Run, Source};
use weir_model::Timestamp;
use weir_questions::query::FilterGroup;
use weir_questions::time::Calendar;

use source::TestSource;
use world::World;

/// Memory in which every question of these tests fits.
const MEMORY: usize = 256 << 20;

/// What a question of a case is asked with.
struct Case {
    world: World,
    calendar: Calendar,
    internal: FilterGroup,
    now: Timestamp,
    /// The events as they are stored, with the number of threads that read them.
    sources: Vec<(TestSource, usize)>,
}

impl Case {
    fn asked(&self) -> Asked<'_> {
        Asked {
            calendar: &self.calendar,
            now: self.now,
            earliest: self.world.earliest(),
            internal: &self.internal,
        }
    }

    /// Asserts that an answer is the expected one, however events are stored and read.
    #[track_caller]
    fn assert_answers<T: PartialEq + std::fmt::Debug>(
        &self,
        expected: &T,
        answer: impl Fn(&dyn Source, &Run<'_>, &Asked<'_>) -> Result<T>,
    ) {
        for (source, threads) in &self.sources {
            let (cancel, memory) = (Cancel::default(), MemoryPool::new(MEMORY));
            let run = Run { threads: *threads, cancel: &cancel, memory: &memory };
            let found = answer(source, &run, &self.asked()).unwrap();
            assert_eq!(found, *expected, "{:?} with {threads} threads", source.layout());
            assert_eq!(memory.used(), 0);
        }
    }
}
