//! What a question may use: threads, time and memory.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use crate::error::{AnswerError, Result};

/// The largest number of bytes that a reservation grows by.
const STEP: usize = 256 << 10;
/// Smaller pools are taken in so many steps.
const STEPS: usize = 64;

/// Ends a question early: when it is cancelled, or takes too long.
#[derive(Debug, Default)]
pub struct Cancel {
    flag: AtomicBool,
    until: Option<Instant>,
}

impl Cancel {
    /// For a question that may take until this instant.
    pub fn at(until: Instant) -> Self {
        Self { flag: AtomicBool::new(false), until: Some(until) }
    }

    /// Cancels the question. Its threads end after at most a few thousand rows.
    pub fn cancel(&self) {
        self.flag.store(true, Ordering::Relaxed);
    }

    /// Whether the question may continue.
    ///
    /// # Errors
    /// [`AnswerError::Cancelled`] or [`AnswerError::TooLong`].
    pub(crate) fn check(&self) -> Result<()> {
        if self.flag.load(Ordering::Relaxed) {
            return Err(AnswerError::Cancelled);
        }
        match self.until {
            Some(until) if Instant::now() >= until => Err(AnswerError::TooLong),
            _ => Ok(()),
        }
    }
}

/// The memory of all questions together.
#[derive(Debug)]
pub struct MemoryPool {
    limit: usize,
    used: AtomicUsize,
}

impl MemoryPool {
    /// A pool of this many bytes.
    pub fn new(limit: usize) -> Self {
        Self { limit, used: AtomicUsize::new(0) }
    }

    /// The bytes that are reserved now.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// A reservation without bytes.
    pub(crate) fn reservation(&self) -> Reservation<'_> {
        Reservation { pool: self, held: 0 }
    }

    fn take(&self, bytes: usize) -> Result<()> {
        let more = |used: usize| used.checked_add(bytes).filter(|used| *used <= self.limit);
        match self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) {
            Ok(_) => Ok(()),
            Err(_) => Err(AnswerError::Memory { limit: self.limit }),
        }
    }
}

/// Bytes of a [`MemoryPool`], until it is dropped.
#[derive(Debug)]
pub(crate) struct Reservation<'a> {
    pool: &'a MemoryPool,
    held: usize,
}

impl Reservation<'_> {
    /// Holds at least this many bytes. Call it before memory of this size is allocated.
    pub(crate) fn hold(&mut self, bytes: usize) -> Result<()> {
        let Some(more) = bytes.checked_sub(self.held).filter(|more| *more > 0) else {
            return Ok(());
        };
        let step = (self.pool.limit / STEPS).clamp(1, STEP);
        let more = more.next_multiple_of(step);
        self.pool.take(more)?;
        self.held += more;
        Ok(())
    }

    /// Holds this many bytes more.
    pub(crate) fn hold_more(&mut self, used: &mut usize, bytes: usize) -> Result<()> {
        *used = used.saturating_add(bytes);
        self.hold(*used)
    }

    /// Releases what is not held by this many bytes.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        if let Some(less) = self.held.checked_sub(bytes) {
            self.pool.used.fetch_sub(less, Ordering::Relaxed);
            self.held = bytes;
        }
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        self.shrink(0);
    }
}

/// What a question may use.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    /// The number of threads, which are started by the calling one and have its priority. With
    /// one, the calling thread does all.
    pub threads: usize,
    /// When the question ends early.
    pub cancel: &'a Cancel,
    /// The memory of all questions.
    pub memory: &'a MemoryPool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_has_a_limit_and_gets_memory_back() {
        let pool = MemoryPool::new(1 << 20);
        let mut first = pool.reservation();
        first.hold(100_000).unwrap();
        first.hold(50_000).unwrap();
        assert!((100_000..200_000).contains(&pool.used()));
        let mut second = pool.reservation();
        assert!(matches!(second.hold(1 << 20), Err(AnswerError::Memory { limit: 1_048_576 })));
        second.hold(900_000).unwrap();
        first.shrink(0);
        assert!(pool.used() >= 900_000);
        drop((first, second));
        assert_eq!(pool.used(), 0);
    }

    #[test]
    fn a_question_ends_when_it_is_cancelled_or_takes_too_long() {
        let cancel = Cancel::default();
        assert!(cancel.check().is_ok());
        cancel.cancel();
        assert!(matches!(cancel.check(), Err(AnswerError::Cancelled)));
        assert!(matches!(Cancel::at(Instant::now()).check(), Err(AnswerError::TooLong)));
    }
}
