//! The one place that reads the time of day.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use weir_model::Timestamp;

/// A source of time: the system's, or one that tests set.
#[derive(Debug, Clone, Default)]
pub struct Clock(Source);

#[derive(Debug, Clone, Default)]
enum Source {
    #[default]
    System,
    Fixed(Arc<AtomicI64>),
}

impl Clock {
    /// A clock that stands still until [`Clock::advance`] moves it.
    #[must_use]
    pub fn fixed(at: Timestamp) -> Self {
        Self(Source::Fixed(Arc::new(AtomicI64::new(at.micros()))))
    }

    /// Now.
    #[must_use]
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

    /// Moves a fixed clock; does nothing to the system's.
    pub fn advance(&self, seconds: i64) {
        if let Source::Fixed(micros) = &self.0 {
            micros.fetch_add(seconds * 1_000_000, Ordering::AcqRel);
        }
    }
}
