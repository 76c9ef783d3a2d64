//! Stored events as they are read back (API-46).

use std::sync::Arc;

use uuid::Uuid;

use crate::persons::PersonRef;
use crate::time::Timestamp;

/// One stored event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Identity within the project.
    pub uuid: Uuid,
    /// Arrival number within the project; rises with acceptance.
    pub arrival: u64,
    /// Name.
    pub event: String,
    /// Whom it is about.
    pub distinct_id: String,
    /// Event time, corrected for the sender's clock.
    pub timestamp: Timestamp,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// JSON object text, numbers as they were sent.
    pub properties: String,
    /// Compact element chain of autocapture, or empty.
    pub elements_chain: String,
    /// Whether it came with `historical_migration`.
    pub historical: bool,
    /// The person, if there is one.
    pub person: Option<Arc<PersonRef>>,
}

/// Which events to read; newest event time first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EventQuery {
    /// At most this many, 1 to 1000.
    pub limit: usize,
    /// Event time strictly after.
    pub after: Option<Timestamp>,
    /// Event time strictly before, or at it with a smaller uuid than `before_uuid`.
    pub before: Option<Timestamp>,
    /// Where the previous page ended, among events of one time.
    pub before_uuid: Option<Uuid>,
    /// Name.
    pub event: Option<String>,
    /// Whom it is about.
    pub distinct_id: Option<String>,
    /// About any of these, if there are some.
    pub any_of: Vec<String>,
    /// Identity.
    pub uuid: Option<Uuid>,
}
