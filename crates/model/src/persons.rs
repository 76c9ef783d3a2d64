//! Persons: whom events are about.

use crate::ids::PersonId;
use crate::time::Timestamp;

/// A person as events show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersonRef {
    /// Id.
    pub id: PersonId,
    /// Distinct ids that lead to this person, the main one first.
    pub distinct_ids: Vec<String>,
    /// JSON object text.
    pub properties: String,
    /// When it was first seen.
    pub created_at: Timestamp,
    /// Whether an identifying event named it.
    pub is_identified: bool,
}

/// Which persons are asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PersonQuery {
    /// How many at most.
    pub limit: u64,
    /// How many to pass over.
    pub offset: u64,
    /// The first id to look at.
    pub after: Option<PersonId>,
    /// The person that this distinct id leads to.
    pub distinct_id: Option<String>,
    /// Text within a distinct id, a name or an e-mail address.
    pub search: Option<String>,
}
