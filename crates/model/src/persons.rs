//! Persons: the users that events are about.

use crate::ids::PersonId;
use crate::time::Timestamp;

/// A person, as shown with events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersonRef {
    /// Unique id of the person.
    pub id: PersonId,
    /// Distinct ids of the person, the main one first.
    pub distinct_ids: Vec<String>,
    /// JSON object text.
    pub properties: String,
    /// Time of the first event of the person.
    pub created_at: Timestamp,
    /// Whether an identifying event was received for the person.
    pub is_identified: bool,
}

impl PersonRef {
    /// Bytes of its texts.
    pub fn size(&self) -> usize {
        self.properties.len() + self.distinct_ids.iter().map(String::len).sum::<usize>()
    }
}

/// A filter for persons.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PersonQuery {
    /// Maximum number of persons.
    pub limit: u64,
    /// Number of persons to skip.
    pub offset: u64,
    /// Start at this id (inclusive).
    pub after: Option<PersonId>,
    /// Only the person of this distinct id.
    pub distinct_id: Option<String>,
    /// Text within a distinct id, a name or a mail address; or a property and its value,
    /// as `plan = pro`.
    pub search: Option<String>,
}

/// What persons are sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SortBy {
    /// The number of their events.
    EventCount,
    /// The time of their first event.
    FirstSeen,
    /// The time of their last event.
    LastSeen,
}

/// An order of persons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PersonOrder {
    /// What they are sorted by.
    pub by: SortBy,
    /// Whether the largest number or the latest time comes first.
    pub is_descending: bool,
}

impl PersonOrder {
    /// The names of all orders. A descending one begins with `-`.
    pub const NAMES: [&str; 6] =
        ["-event_count", "event_count", "-first_seen", "first_seen", "-last_seen", "last_seen"];

    /// The order with this name.
    pub fn named(name: &str) -> Option<Self> {
        let (name, is_descending) = match name.strip_prefix('-') {
            Some(name) => (name, true),
            None => (name, false),
        };
        let by = match name {
            "event_count" => SortBy::EventCount,
            "first_seen" => SortBy::FirstSeen,
            "last_seen" => SortBy::LastSeen,
            _ => return None,
        };
        Some(Self { by, is_descending })
    }
}

/// Placeholder values that programs send as distinct id by mistake, ignoring case
/// (ING-51).
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

/// Placeholder values that are case-sensitive.
const EXACT_PLACEHOLDERS: [&str; 6] = ["[object Object]", "NaN", "None", "none", "null", "0"];

/// Whether a distinct id is a placeholder, also within quotes. Events with it are stored,
/// but it never merges persons.
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
