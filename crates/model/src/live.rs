//! The list of events: one row for each event that reached a project, and for each refused
//! request.

mod columns;
mod cursor;
mod filter;

use serde::{Deserialize, Serialize};

pub use self::columns::{PROPERTY_COLUMN, PROPERTY_COLUMNS, property_columns};
pub use self::cursor::{RefusedCursor, RowCursor};
pub use self::filter::{EventsFilter, OutcomeLabel, PropertyFilter, RowFacts, RowFilter};
use crate::time::Timestamp;

/// Bytes of a dropped event that are stored as a sample: the beginning of its text, or of
/// its properties if only these are left.
pub const SAMPLE_LIMIT: usize = 4096;

/// Whether the sample of a dropped event, with this number of bytes, may be truncated. It
/// is cut between two characters, and a character has at most four bytes.
pub const fn may_be_cut(sample_bytes: usize) -> bool {
    sample_bytes + 4 > SAMPLE_LIMIT
}

/// The outcome of an event or a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Stored.
    Accepted,
    /// Not stored, although the request was answered with 200.
    Dropped,
    /// Refused together with its request, so its events are unknown.
    Rejected,
}

/// One row of the list of events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveRow {
    /// Unique within the project: the uuid of the event, or the number of the dropped
    /// event or refused request.
    pub key: String,
    /// Time of receipt.
    pub received_at: Timestamp,
    /// The outcome.
    pub outcome: Outcome,
    /// Drop reason or refusal code if dropped or rejected; warning codes if altered.
    pub reasons: Vec<String>,
    /// Details of the reason: the transformation that dropped the event, or the fault of
    /// the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Event name, if it has one.
    pub event: Option<String>,
    /// Distinct id, if it has one.
    pub distinct_id: Option<String>,
    /// Event time, if accepted.
    pub timestamp: Option<Timestamp>,
    /// URL or screen name of the event; for a request, its path.
    pub place: Option<String>,
    /// Client library that sent it.
    pub library: Option<String>,
    /// Bytes of its payload; if dropped, of the stored sample ([`SAMPLE_LIMIT`]); for a
    /// request, of its body.
    pub size: u64,
    /// JSON text: the event as stored, or as received if dropped, truncated if long.
    /// Bodies of requests are not stored.
    pub payload: String,
    /// The beginning of the project key of a refused request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_key: Option<String>,
    /// Person id, if there is a person.
    pub person: Option<String>,
    /// Changes of its person and groups, as messages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::{SAMPLE_LIMIT, may_be_cut};

    #[test]
    fn a_sample_as_long_as_the_limit_may_be_cut() {
        assert!(may_be_cut(SAMPLE_LIMIT));
        assert!(!may_be_cut(SAMPLE_LIMIT - 4));
        // The limit is in the middle of a character.
        let long = format!("a{}", "\u{1F9A6}".repeat(SAMPLE_LIMIT / 4));
        let end = long.floor_char_boundary(SAMPLE_LIMIT);
        assert!(end < SAMPLE_LIMIT && may_be_cut(end));
    }
}
