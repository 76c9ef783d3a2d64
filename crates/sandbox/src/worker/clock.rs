//! How long the script that runs may still run. Time of the processor counts, so that
//! a busy machine makes no script late; waiting for the host does not.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::confine::processor_time;

/// What a script still gets to say what went wrong, after its time is over.
const LAST_WORDS: Duration = Duration::from_millis(10);
/// So many times its limit a script may take by the clock on the wall, whatever it
/// gets of the processor.
const FAR: u32 = 20;

/// The clock of a child. Cheap to clone: all clones are the same clock.
#[derive(Clone, Default)]
pub(super) struct Clock(Rc<State>);

#[derive(Default)]
struct State {
    run: Cell<Option<Run>>,
    met: Cell<bool>,
    /// All waiting for the host since the child began.
    waited: Cell<Duration>,
    /// What the processor's clock has just said: asking it is a call of the system,
    /// and the end of a step is the beginning of the next one.
    said: Cell<Option<Duration>>,
}

/// What was when it was wound up.
#[derive(Clone, Copy)]
struct Run {
    limit: Duration,
    began: Instant,
    processor: Duration,
    waited: Duration,
}

impl Clock {
    /// Winds it up.
    pub(super) fn start(&self, limit: Duration) {
        let (began, waited) = (Instant::now(), self.0.waited.get());
        let processor = self.0.said.take().unwrap_or_else(processor_time);
        let run = Run { limit, began, processor, waited };
        self.0.run.set(Some(run));
        self.0.met.set(false);
    }

    /// Whether time is over. Stays so until the next start.
    pub(super) fn over(&self) -> bool {
        if !self.0.met.get() && self.0.run.get().is_some_and(|run| self.is_over(run)) {
            self.0.met.set(true);
        }
        self.0.met.get()
    }

    fn is_over(&self, run: Run) -> bool {
        let waited = self.0.waited.get().saturating_sub(run.waited);
        let wall = run.began.elapsed().saturating_sub(waited);
        // Nobody has more of the processor than of the wall, which is cheaper to ask.
        wall >= run.limit
            && (wall >= run.limit * FAR
                || processor_time().saturating_sub(run.processor) >= run.limit)
    }

    /// Whether the limit was met since the last start.
    pub(super) fn met(&self) -> bool {
        self.0.met.get()
    }

    /// Time is over, whatever the clock says.
    pub(super) fn end(&self) {
        self.0.met.set(true);
    }

    /// What the child has used up since it began: of the processor, and with waiting
    /// for the host, which keeps others waiting too.
    pub(super) fn spent(&self) -> Duration {
        let processor = processor_time();
        self.0.said.set(Some(processor));
        processor + self.0.waited.get()
    }

    /// A request begins: what was used up since the last one is nobody's.
    pub(super) fn begin(&self) {
        self.0.said.set(None);
    }

    /// Runs something that does not count.
    pub(super) fn stopped<T>(&self, wait: impl FnOnce() -> T) -> T {
        let from = Instant::now();
        let outcome = wait();
        self.0.waited.set(self.0.waited.get() + from.elapsed());
        outcome
    }

    /// Runs something that may take a moment even though time is over, and may be
    /// code of the script again.
    pub(super) fn last_words<T>(&self, say: impl FnOnce() -> T) -> T {
        let before = (self.0.run.get(), self.0.met.get());
        self.start(LAST_WORDS);
        let outcome = say();
        self.0.run.set(before.0);
        self.0.met.set(before.1 || self.0.met.get());
        outcome
    }
}
