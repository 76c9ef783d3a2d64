//! Groups: what events are about beside persons.

use crate::time::Timestamp;

/// A group (ingestion 4.6).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Index of its type within the project, 0 to 4.
    pub index: u8,
    /// Its key within the type.
    pub key: String,
    /// JSON object text.
    pub properties: String,
    /// When it was first seen.
    pub created_at: Timestamp,
}

/// Which groups are asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GroupQuery {
    /// How many at most.
    pub limit: u64,
    /// How many to pass over.
    pub offset: u64,
    /// Where to begin: index of the type, and place within it.
    pub after: Option<(u8, uuid::Uuid)>,
    /// Of this type only.
    pub group_type: Option<String>,
    /// Text within the key or the properties.
    pub search: Option<String>,
}
