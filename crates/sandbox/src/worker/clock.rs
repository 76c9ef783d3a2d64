//! The time limit of the running script. Processor time counts, so that a busy machine
//! makes no script late. Waiting for the host does not count.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::confine::processor_time;

/// Additional time for reading the error of a script after its limit.
const LAST_WORDS: Duration = Duration::from_millis(10);
/// A script may take at most this many times its limit in wall clock time, independent of
/// its processor time.
const FAR: u32 = 20;

/// The clock of a child process. Clones are cheap and use the same state.
#[derive(Clone, Default)]
pub(super) struct Clock(Rc<State>);

#[derive(Default)]
struct State {
    run: Cell<Option<Run>>,
    met: Cell<bool>,
    /// Total time of waiting for the host since the child process began.
    waited: Cell<Duration>,
    /// The latest processor time, which can be used again: reading it is a system call,
    /// and the end of a step is the beginning of the next one.
    said: Cell<Option<Duration>>,
}

/// The values at the start of a limit.
#[derive(Clone, Copy)]
struct Run {
    limit: Duration,
    began: Instant,
    processor: Duration,
    waited: Duration,
}

impl Clock {
    /// Starts a new limit.
    pub(super) fn start(&self, limit: Duration) {
        let (began, waited) = (Instant::now(), self.0.waited.get());
        let processor = self.0.said.take().unwrap_or_else(processor_time);
        let run = Run { limit, began, processor, waited };
        self.0.run.set(Some(run));
        self.0.met.set(false);
    }

    /// Whether the limit is reached. It stays reached until the next start.
    pub(super) fn over(&self) -> bool {
        if !self.0.met.get() && self.0.run.get().is_some_and(|run| self.is_over(run)) {
            self.0.met.set(true);
        }
        self.0.met.get()
    }

    fn is_over(&self, run: Run) -> bool {
        let waited = self.0.waited.get().saturating_sub(run.waited);
        let wall = run.began.elapsed().saturating_sub(waited);
        // Processor time never exceeds wall clock time, which is cheaper to read.
        wall >= run.limit
            && (wall >= run.limit * FAR
                || processor_time().saturating_sub(run.processor) >= run.limit)
    }

    /// Whether the limit was reached since the last start.
    pub(super) fn met(&self) -> bool {
        self.0.met.get()
    }

    /// Marks the limit as reached.
    pub(super) fn end(&self) {
        self.0.met.set(true);
    }

    /// Time that the child process has used since it began: processor time and waiting
    /// for the host, because both delay others.
    pub(super) fn spent(&self) -> Duration {
        let processor = processor_time();
        self.0.said.set(Some(processor));
        processor + self.0.waited.get()
    }

    /// Begins a request: time since the previous request is not charged.
    pub(super) fn begin(&self) {
        self.0.said.set(None);
    }

    /// Runs a closure whose time does not count.
    pub(super) fn stopped<T>(&self, wait: impl FnOnce() -> T) -> T {
        let from = Instant::now();
        let outcome = wait();
        self.0.waited.set(self.0.waited.get() + from.elapsed());
        outcome
    }

    /// Runs a closure that may take a short time after the limit, and may run code of the
    /// script again.
    pub(super) fn last_words<T>(&self, say: impl FnOnce() -> T) -> T {
        let before = (self.0.run.get(), self.0.met.get());
        self.start(LAST_WORDS);
        let outcome = say();
        self.0.run.set(before.0);
        self.0.met.set(before.1 || self.0.met.get());
        outcome
    }
}
