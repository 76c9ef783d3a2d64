//! What a store must offer to be asked in SQL or for lists of persons, beside events.

use std::ops::ControlFlow;

use uuid::Uuid;

use crate::error::SourceError;
use crate::source::Source;

/// Most persons or groups that are asked for at a time.
pub(crate) const RECORDS: usize = 1_000;

/// Events, persons and groups of a project at one moment.
///
/// All methods may be called by several threads, and may block them.
pub trait RowSource: Source {
    /// The number of the project: `team_id`.
    fn project(&self) -> i64;

    /// Appends the id of the person for each number of a person, in the same order (QRY-24).
    fn person_ids(&self, persons: &[u32], into: &mut Vec<Uuid>);

    /// Calls `see` with the place in the list of each person that has a record, and its
    /// properties, a JSON object, as they are now. At most 1,000 persons are asked for at a
    /// time.
    ///
    /// # Errors
    /// They cannot be read.
    fn person_properties(
        &self,
        persons: &[u32],
        see: &mut dyn FnMut(usize, &str),
    ) -> Result<(), SourceError>;

    /// Calls `see` with the place in the list of each group that has a record, and its
    /// properties, a JSON object, as they are now. At most 1,000 groups of one type are asked
    /// for at a time.
    ///
    /// # Errors
    /// They cannot be read.
    fn group_properties(
        &self,
        index: u8,
        keys: &[&str],
        see: &mut dyn FnMut(usize, &str),
    ) -> Result<(), SourceError>;

    /// Calls `see` with the place in the list of each person that has a record, and the record
    /// as it is now. At most 1,000 persons are asked for at a time.
    ///
    /// # Errors
    /// They cannot be read.
    fn person_records(
        &self,
        persons: &[u32],
        see: &mut dyn FnMut(usize, PersonRow<'_>),
    ) -> Result<(), SourceError>;

    /// Calls `see` with the place in the list of each group that has a record, and the record
    /// as it is now. At most 1,000 groups of one type are asked for at a time.
    ///
    /// # Errors
    /// They cannot be read.
    fn group_records(
        &self,
        index: u8,
        keys: &[&str],
        see: &mut dyn FnMut(usize, GroupRow<'_>),
    ) -> Result<(), SourceError>;

    /// Calls `see` with each person that has a record and was not merged into another one,
    /// until it breaks.
    ///
    /// # Errors
    /// They cannot be read.
    fn each_person(
        &self,
        see: &mut dyn FnMut(PersonRow<'_>) -> ControlFlow<()>,
    ) -> Result<(), SourceError>;

    /// Calls `see` with each group, until it breaks.
    ///
    /// # Errors
    /// They cannot be read.
    fn each_group(
        &self,
        see: &mut dyn FnMut(GroupRow<'_>) -> ControlFlow<()>,
    ) -> Result<(), SourceError>;
}

/// A row of the table `persons`.
#[derive(Debug, Clone, Copy)]
pub struct PersonRow<'a> {
    /// Its id.
    pub id: Uuid,
    /// When it was first seen, microseconds since 1970.
    pub created_at: i64,
    /// Its properties, a JSON object.
    pub properties: &'a str,
    /// Whether an identifying event named it.
    pub is_identified: bool,
    /// Its distinct ids.
    pub distinct_ids: &'a [String],
}

/// A row of the table `groups`.
#[derive(Debug, Clone, Copy)]
pub struct GroupRow<'a> {
    /// The number of its type.
    pub index: u8,
    /// Its key.
    pub key: &'a str,
    /// Its properties, a JSON object.
    pub properties: &'a str,
    /// When it was first seen, microseconds since 1970.
    pub created_at: i64,
}
