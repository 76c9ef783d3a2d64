//! The live list: one row for everything that reached a project, be it an event
//! or a request that was refused.

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

/// Bytes of a dropped event that are kept to look at: the beginning of its text, or of
/// its properties where they are all that is left.
pub const SAMPLE_LIMIT: usize = 4096;

/// Whether the sample of a dropped event may lack its end. It is cut between two
/// characters, of which none has more than four bytes.
#[must_use]
pub const fn may_be_cut(sample: &str) -> bool {
    sample.len() + 4 > SAMPLE_LIMIT
}

/// What became of an event, or of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Stored.
    Accepted,
    /// Not stored, although the request was answered with 200.
    Dropped,
    /// Refused with the whole request, so that its events are not known.
    Rejected,
}

/// One row of the live list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveRow {
    /// Unique within the project: the uuid of the event, or the number of the drop
    /// or of the refused request.
    pub key: String,
    /// When it reached us.
    pub received_at: Timestamp,
    /// What became of it.
    pub outcome: Outcome,
    /// Code of the reason when dropped or rejected, codes of the warnings when
    /// altered.
    pub reasons: Vec<String>,
    /// What the reason does not say: which transformation dropped it, or what was
    /// wrong with the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Name, if it had one.
    pub event: Option<String>,
    /// Whom it is about, if it said.
    pub distinct_id: Option<String>,
    /// Event time, when accepted.
    pub timestamp: Option<Timestamp>,
    /// URL or screen it names; of a request, where it was sent to.
    pub place: Option<String>,
    /// Library that sent it.
    pub library: Option<String>,
    /// Bytes of its payload; when dropped, of what is kept of it ([`SAMPLE_LIMIT`]); of
    /// a request, those of its body.
    pub size: u64,
    /// JSON text: the event as stored, or as received when dropped; cut when long.
    /// Of a request nothing is kept.
    pub payload: String,
    /// The beginning of the project key that a refused request carried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_key: Option<String>,
    /// Person id, when there is a person.
    pub person: Option<String>,
    /// What it does to its person and groups, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::{SAMPLE_LIMIT, may_be_cut};

    #[test]
    fn a_sample_as_long_as_the_limit_may_be_cut() {
        assert!(may_be_cut(&"a".repeat(SAMPLE_LIMIT)));
        assert!(!may_be_cut(&"a".repeat(SAMPLE_LIMIT - 4)));
        // The limit is within a character.
        let long = format!("a{}", "\u{1F9A6}".repeat(SAMPLE_LIMIT / 4));
        let end = long.floor_char_boundary(SAMPLE_LIMIT);
        assert!(end < SAMPLE_LIMIT && may_be_cut(&long[..end]));
    }
}
