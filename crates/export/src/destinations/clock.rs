//! Time and ids as foreign services want them.
//!
//! They judge signatures and tokens by the real clock, whatever time a run is told,
//! so this is the one place of the crate that reads it.

use chrono::{DateTime, Utc};
use uuid::Uuid;

/// The real time.
#[expect(clippy::disallowed_methods, reason = "foreign services judge signatures by it")]
pub(super) fn now() -> DateTime<Utc> {
    Utc::now()
}

/// An id that nobody has used: of a request, a session, a temporary name.
#[expect(clippy::disallowed_methods, reason = "its time says nothing, it must be unique alone")]
pub(super) fn unused_id() -> Uuid {
    Uuid::now_v7()
}
