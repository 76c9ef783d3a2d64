//! Stored events as the API returns them (API-46).

use std::sync::Arc;

use uuid::Uuid;

use crate::persons::PersonRef;
use crate::time::Timestamp;

/// One stored event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Unique id within the project.
    pub uuid: Uuid,
    /// Arrival number within the project. It increases with each accepted event.
    pub arrival: u64,
    /// Event name.
    pub event: String,
    /// Distinct id of the user that the event is about.
    pub distinct_id: String,
    /// Event time, corrected for the sender's clock.
    pub timestamp: Timestamp,
    /// Time of acceptance.
    pub created_at: Timestamp,
    /// JSON object text. Numbers are as they were sent.
    pub properties: String,
    /// Compact element chain of autocapture, or empty.
    pub elements_chain: String,
    /// Whether it was sent with `historical_migration`.
    pub historical: bool,
    /// The person, if there is one.
    pub person: Option<Arc<PersonRef>>,
}

/// A filter for events; newest event time first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EventQuery {
    /// At most this many, 1 to 1000.
    pub limit: usize,
    /// Event time strictly after.
    pub after: Option<Timestamp>,
    /// Event time strictly before, or at it with a smaller uuid than `before_uuid`.
    pub before: Option<Timestamp>,
    /// The uuid of the last event of the previous page, for events of the same time.
    pub before_uuid: Option<Uuid>,
    /// Event name.
    pub event: Option<String>,
    /// Distinct id of the user.
    pub distinct_id: Option<String>,
    /// Only events of one of these distinct ids. Empty: of all.
    pub any_of: Vec<String>,
    /// Only the event with this uuid.
    pub uuid: Option<Uuid>,
}
