//! Persons: whom events are about.

use crate::ids::PersonId;
use crate::time::Timestamp;

/// A person as events show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersonRef {
    /// Id.
    pub id: PersonId,
    /// Distinct ids that lead to this person.
    pub distinct_ids: Vec<String>,
    /// JSON object text.
    pub properties: String,
    /// When it was first seen.
    pub created_at: Timestamp,
    /// Whether an identifying event named it.
    pub is_identified: bool,
}
