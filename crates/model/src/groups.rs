//! Groups: companies and other objects that events are about in addition to persons.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

use crate::time::Timestamp;

/// A group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Index of the group type within the project, 0 to 4.
    pub index: u8,
    /// Key of the group within its type.
    pub key: String,
    /// JSON object text.
    pub properties: String,
    /// Time of the first event of the group.
    pub created_at: Timestamp,
}

/// A cursor in the list of groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupCursor {
    /// Index of the group type.
    pub index: u8,
    /// Position among the groups of the type.
    pub hash: Uuid,
}

impl fmt::Display for GroupCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.index, self.hash)
    }
}

/// The text is not a valid cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidCursor;

impl FromStr for GroupCursor {
    type Err = InvalidCursor;

    fn from_str(text: &str) -> Result<Self, InvalidCursor> {
        let (index, hash) = text.split_once(':').ok_or(InvalidCursor)?;
        let index = index.parse().map_err(|_| InvalidCursor)?;
        Ok(Self { index, hash: hash.parse().map_err(|_| InvalidCursor)? })
    }
}

/// A filter for groups.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GroupQuery {
    /// Maximum number of groups.
    pub limit: u64,
    /// Number of groups to skip.
    pub offset: u64,
    /// Start after this cursor.
    pub after: Option<GroupCursor>,
    /// Only groups of this type.
    pub group_type: Option<String>,
    /// Only groups with this text in the key or the properties.
    pub search: Option<String>,
}
