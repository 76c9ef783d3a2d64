//! What is exported between the store and a destination: events with their
//! persons, persons, and rows of typed cells.
//!
//! What belongs here: data. What does not: which columns a destination has
//! (`columns`), how cells are written (`encode`, `destinations`).

use std::sync::Arc;

use uuid::Uuid;
use weir_model::PersonId;
use weir_model::persons::PersonRef;
use weir_store::events::StoredEvent;

/// An event with what is known about its person now.
#[derive(Debug, Clone)]
pub struct Record {
    /// The event.
    pub event: StoredEvent,
    /// Its person; none: the event makes none.
    pub person: Option<Arc<Person>>,
}

/// A person as exports show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// Id.
    pub id: PersonId,
    /// JSON object text.
    pub properties: String,
}

/// A distinct id with the person that it leads to now.
#[derive(Debug, Clone, Copy)]
pub struct PersonRecord<'a> {
    /// The distinct id.
    pub distinct_id: &'a str,
    /// The person.
    pub person: &'a PersonRef,
    /// The version of what is said here: greater after every change.
    pub version: i64,
    /// When the newest event of the run that led to the person was accepted,
    /// microseconds since 1970.
    pub seen_at: i64,
}

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Text.
    Text,
    /// JSON as text.
    Json,
    /// 64 bits.
    Integer,
    /// 64 bits.
    Float,
    /// True or false.
    Boolean,
    /// Microseconds since 1970, UTC.
    Timestamp,
    /// A uuid.
    Uuid,
}

/// A column of what is exported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name at the destination.
    pub name: String,
    /// Its type.
    pub kind: Kind,
}

/// A value in a row. A cell is null or of its column's kind.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// Nothing.
    Null,
    /// Text.
    Text(String),
    /// JSON as text.
    Json(String),
    /// A whole number.
    Integer(i64),
    /// A number.
    Float(f64),
    /// True or false.
    Boolean(bool),
    /// Microseconds since 1970, UTC.
    Timestamp(i64),
    /// A uuid.
    Uuid(Uuid),
}

impl Cell {
    /// About how many bytes it takes.
    #[must_use]
    pub fn size(&self) -> usize {
        match self {
            Self::Text(text) | Self::Json(text) => text.len() + 8,
            Self::Null | Self::Boolean(_) => 1,
            Self::Integer(_) | Self::Float(_) | Self::Timestamp(_) => 8,
            Self::Uuid(_) => 16,
        }
    }
}

/// Rows; those of events in order of arrival. Which ones come together is nobody's
/// promise: a destination that names its parts counts rows itself.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Batch {
    /// The rows; each has a cell for every column, in order.
    pub rows: Vec<Vec<Cell>>,
    /// The arrival number of each row, in the same order; none: they are persons,
    /// which do not arrive.
    pub arrivals: Option<Vec<u64>>,
}
