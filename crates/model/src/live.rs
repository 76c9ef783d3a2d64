//! The live list: one row for everything that reached a project.

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

/// What became of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Stored.
    Accepted,
    /// Not stored, although the request was answered with 200.
    Dropped,
}

/// One row of the live list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveRow {
    /// Unique within the project: the uuid of the event, or the number of the drop.
    pub key: String,
    /// When it reached us.
    pub received_at: Timestamp,
    /// What became of it.
    pub outcome: Outcome,
    /// Code of the reason when dropped, codes of the warnings when altered.
    pub reasons: Vec<String>,
    /// What the reason does not say: which transformation dropped it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Name, if it had one.
    pub event: Option<String>,
    /// Whom it is about, if it said.
    pub distinct_id: Option<String>,
    /// Event time, when accepted.
    pub timestamp: Option<Timestamp>,
    /// URL or screen it names.
    pub place: Option<String>,
    /// Library that sent it.
    pub library: Option<String>,
    /// Bytes of its payload.
    pub size: u64,
    /// JSON text: the event as stored, or as received when dropped; cut when long.
    pub payload: String,
    /// Person id, when there is a person.
    pub person: Option<String>,
    /// What it does to its person and groups, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<String>,
}
