//! The only module that reads the time of day.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use weir_model::Timestamp;

/// A source of time: the system clock, or one that tests set.
#[derive(Debug, Clone, Default)]
pub struct Clock(Source);

#[derive(Debug, Clone, Default)]
enum Source {
    #[default]
    System,
    Fixed(Arc<AtomicI64>),
}

impl Clock {
    /// A clock with a fixed time, which only [`Clock::advance`] changes.
    pub fn fixed(at: Timestamp) -> Self {
        Self(Source::Fixed(Arc::new(AtomicI64::new(at.micros()))))
    }

    /// The present time.
    pub fn now(&self) -> Timestamp {
        match &self.0 {
            Source::System => {
                #[expect(clippy::disallowed_methods, reason = "this is the clock")]
                let now = chrono::Utc::now();
                now.into()
            }
            Source::Fixed(micros) => Timestamp::from_micros(micros.load(Ordering::Acquire)),
        }
    }

    /// The time since some moment. It never goes back, even when the system clock is
    /// set; a fixed clock changes only with [`Clock::advance`].
    pub fn uptime(&self) -> Duration {
        static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);
        match &self.0 {
            Source::System => BEGUN.elapsed(),
            Source::Fixed(micros) => {
                let micros = u64::try_from(micros.load(Ordering::Acquire));
                Duration::from_micros(micros.unwrap_or_default())
            }
        }
    }

    /// Advances a fixed clock; does nothing to the system clock.
    pub fn advance(&self, seconds: i64) {
        if let Source::Fixed(micros) = &self.0 {
            micros.fetch_add(seconds * 1_000_000, Ordering::AcqRel);
        }
    }
}
