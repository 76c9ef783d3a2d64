//! Which assertions were used. The caller has the storage.

use std::future::Future;

use chrono::{DateTime, Utc};

/// What a cache knew about an assertion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remembered {
    /// It was not known, and is from now on.
    Now,
    /// It was known.
    Before,
}

/// The storage did not answer. The response is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the use of an assertion could not be recorded")]
pub struct ReplayUnavailable;

/// Remembers the assertions that were used.
pub trait ReplayCache {
    /// Records the use of an assertion of an issuer, in one step with the question whether
    /// it was used: of two calls at the same time, one gets [`Remembered::Now`]. After
    /// `until` the other checks refuse the assertion, so it can be forgotten.
    fn remember(
        &self,
        issuer: &str,
        assertion: &str,
        until: DateTime<Utc>,
    ) -> impl Future<Output = Result<Remembered, ReplayUnavailable>> + Send;
}
