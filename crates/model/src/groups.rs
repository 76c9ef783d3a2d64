//! Groups: what events are about beside persons.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

use crate::time::Timestamp;

/// A group (ING-52).
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

/// Where a group stands in the list of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupPlace {
    /// Index of its type.
    pub index: u8,
    /// Its place among those of the type.
    pub hash: Uuid,
}

impl fmt::Display for GroupPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.index, self.hash)
    }
}

/// A text that is no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoPlace;

impl FromStr for GroupPlace {
    type Err = NoPlace;

    fn from_str(text: &str) -> Result<Self, NoPlace> {
        let (index, hash) = text.split_once(':').ok_or(NoPlace)?;
        let index = index.parse().map_err(|_| NoPlace)?;
        Ok(Self { index, hash: hash.parse().map_err(|_| NoPlace)? })
    }
}

/// Which groups are asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GroupQuery {
    /// How many at most.
    pub limit: u64,
    /// How many to pass over.
    pub offset: u64,
    /// Where to begin.
    pub after: Option<GroupPlace>,
    /// Of this type only.
    pub group_type: Option<String>,
    /// Text within the key or the properties.
    pub search: Option<String>,
}
