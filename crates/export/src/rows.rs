//! The data between the store and a destination: events with their persons, persons, and
//! rows of typed cells.
//!
//! What belongs here: data types. What does not: the columns of a destination
//! (`columns`), how cells are written (`encode`, `destinations`).

use std::sync::Arc;

use uuid::Uuid;
use weir_model::PersonId;
use weir_model::persons::PersonRef;
use weir_store::events::StoredEvent;

/// An event with the present state of its person.
#[derive(Debug, Clone)]
pub struct EventWithPerson {
    /// The event as it is stored.
    pub event: StoredEvent,
    /// Its person. `None`: the event has no person.
    pub person: Option<Arc<Person>>,
}

/// A person as exports show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// Id of the person.
    pub id: PersonId,
    /// Properties as the text of a JSON object.
    pub properties: String,
}

/// A distinct id with the person that it leads to now.
#[derive(Debug, Clone, Copy)]
pub struct PersonRecord<'a> {
    /// The distinct id.
    pub distinct_id: &'a str,
    /// The person.
    pub person: &'a PersonRef,
    /// The version of the person's record. It is greater after every change.
    pub version: i64,
    /// When the newest event of the run that led to the person was accepted, in
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
    /// A signed integer of 64 bits.
    Integer,
    /// A floating-point number of 64 bits.
    Float,
    /// True or false.
    Boolean,
    /// Microseconds since 1970, UTC.
    Timestamp,
    /// A uuid.
    Uuid,
}

/// A column of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Name of the column at the destination.
    pub name: String,
    /// Type of its cells.
    pub kind: Kind,
}

/// A value in a row. A cell is null or has the kind of its column.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// Null.
    Null,
    /// Text.
    Text(String),
    /// JSON as text.
    Json(String),
    /// A signed integer of 64 bits.
    Integer(i64),
    /// A floating-point number of 64 bits.
    Float(f64),
    /// True or false.
    Boolean(bool),
    /// Microseconds since 1970, UTC.
    Timestamp(i64),
    /// A uuid.
    Uuid(Uuid),
}

impl Cell {
    /// Bytes of memory that it takes, roughly.
    pub fn size(&self) -> usize {
        match self {
            Self::Text(text) | Self::Json(text) => text.len() + 8,
            Self::Null | Self::Boolean(_) => 1,
            Self::Integer(_) | Self::Float(_) | Self::Timestamp(_) => 8,
            Self::Uuid(_) => 16,
        }
    }
}

/// Rows; rows of events are in order of arrival. The division into batches is not stable
/// between attempts: a destination that names its parts counts rows itself.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Batch {
    /// The rows. Each has a cell for every column, in order.
    pub rows: Vec<Vec<Cell>>,
    /// The arrival number of each row, in the same order. `None` for persons, which have
    /// no arrival number.
    pub arrivals: Option<Vec<u64>>,
}
