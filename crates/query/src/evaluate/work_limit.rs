//! A limit on the work for one event, so that no query blocks a processor.

use std::cell::Cell;

/// The maximum work for an event: bytes of texts that operators and functions read and
/// create, and characters that patterns compare. It takes about a tenth of a second.
pub const MAX_WORK: usize = 1 << 26;

/// The remaining work for one event.
#[derive(Debug, Clone)]
pub struct WorkLimit(Cell<usize>);

/// The condition of the query takes too long for an event, so it is unknown whether the
/// event satisfies it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkLimitReached;

impl WorkLimit {
    /// Subtracts work that is done or is about to be done.
    pub fn charge(&self, work: usize) {
        self.0.set(self.0.get().saturating_sub(work));
    }

    /// The work that was charged.
    pub fn charged(&self) -> usize {
        MAX_WORK - self.0.get()
    }

    /// Whether nothing is left. It stays so.
    pub fn is_used_up(&self) -> bool {
        self.0.get() == 0
    }
}

impl Default for WorkLimit {
    /// Returns a limit of [`MAX_WORK`].
    fn default() -> Self {
        Self(Cell::new(MAX_WORK))
    }
}
