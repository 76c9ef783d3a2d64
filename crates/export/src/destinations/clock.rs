//! Time and ids for external services.
//!
//! External services check signatures and tokens with the real clock, so this module
//! reads it, independent of the time of a run. It is the only module of the crate that
//! does.

use chrono::{DateTime, Utc};
use uuid::Uuid;

/// The real time.
#[expect(clippy::disallowed_methods, reason = "foreign services judge signatures by it")]
pub(super) fn now() -> DateTime<Utc> {
    Utc::now()
}

/// A new unique id for a request, a session or a temporary name.
#[expect(clippy::disallowed_methods, reason = "its time says nothing, it must be unique alone")]
pub(super) fn unused_id() -> Uuid {
    Uuid::now_v7()
}
