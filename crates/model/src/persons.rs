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

impl PersonRef {
    /// Bytes of its texts.
    #[must_use]
    pub fn size(&self) -> usize {
        self.properties.len() + self.distinct_ids.iter().map(String::len).sum::<usize>()
    }
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
    /// Text within a distinct id, a name or an e-mail address; or a property with its
    /// value, as `plan = pro`.
    pub search: Option<String>,
}

/// Distinct ids that programs send for want of one, in any case of letters (ING-51).
const PLACEHOLDERS: [&str; 11] = [
    "anonymous",
    "guest",
    "distinctid",
    "distinct_id",
    "id",
    "not_authenticated",
    "email",
    "undefined",
    "true",
    "false",
    "",
];

/// The same, in this spelling only.
const EXACT_PLACEHOLDERS: [&str; 6] = ["[object Object]", "NaN", "None", "none", "null", "0"];

/// Whether a distinct id stands for no single person, also within quotes: it is
/// good for events and of no use for merging.
#[must_use]
pub fn is_placeholder(distinct_id: &str) -> bool {
    let bare = distinct_id.trim();
    let bare = ['"', '\'']
        .into_iter()
        .find_map(|quote| bare.strip_prefix(quote)?.strip_suffix(quote))
        .unwrap_or(bare)
        .trim();
    PLACEHOLDERS.iter().any(|placeholder| bare.eq_ignore_ascii_case(placeholder))
        || EXACT_PLACEHOLDERS.contains(&bare)
}
