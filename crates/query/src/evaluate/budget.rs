//! How much may be worked out of one event, so that no query holds up a processor.

use std::cell::Cell;

/// Work for an event: bytes of texts that operators and functions read and make,
/// and characters that patterns compare. It takes a tenth of a second, about.
pub const WORK_MAX: usize = 1 << 26;

/// What is left of the work that may be done for one event.
#[derive(Debug, Clone)]
pub struct Budget(Cell<usize>);

impl Budget {
    /// That work is done, or will be.
    pub fn charge(&self, work: usize) {
        self.0.set(self.0.get().saturating_sub(work));
    }

    /// Whether there is nothing left. It stays so.
    #[must_use]
    pub fn is_used_up(&self) -> bool {
        self.0.get() == 0
    }
}

impl Default for Budget {
    /// The whole of [`WORK_MAX`].
    fn default() -> Self {
        Self(Cell::new(WORK_MAX))
    }
}
