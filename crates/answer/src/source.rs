//! Where the events of a question come from.
//!
//! What belongs here: what a store must offer to be asked. What does not: a store, which
//! implements it.

use std::sync::Arc;

use uuid::Uuid;
use weir_segments::{Bits, Codes, Columns};

use crate::error::SourceError;

/// The events of a project at one moment, and the persons of their distinct ids.
///
/// All methods may be called by several threads, and may block them.
pub trait Source: Sync {
    /// The parts that the events consist of. Each event is in one of them.
    fn parts(&self) -> &[Part];

    /// Opens a part by its number in [`parts`](Self::parts).
    ///
    /// # Errors
    /// It cannot be read.
    fn open(&self, part: usize) -> Result<OpenPart, SourceError>;

    /// Appends a number for each distinct id, in the same order. Equal texts have equal
    /// numbers, below `u32::MAX`, as long as the source exists. About a thousand are asked for
    /// at a time.
    ///
    /// # Errors
    /// There are more ids than may be in memory.
    fn ids(&self, distinct_ids: &[&[u8]], into: &mut Vec<u32>) -> Result<(), SourceError>;

    /// Appends the number of the person for each number of a distinct id (QRY-24). Numbers are
    /// dense: memory is taken in proportion to the largest one. `u32::MAX` stays what it is.
    fn persons(&self, ids: &[u32], into: &mut Vec<u32>);

    /// Whether rows of a part with arrival numbers between these, both included, may be of
    /// erased persons.
    fn may_have_erased(&self, part: usize, arrivals: (u64, u64)) -> bool;

    /// Sets the bit of each row of a part whose event is erased, from the arrival numbers and
    /// the numbers of the distinct ids of all its rows. `into` has a bit for each row.
    fn erased_rows(&self, part: usize, arrivals: &[u64], ids: &[u32], into: &mut Bits);

    /// Calls `see` with numbers of persons and times at which they were seen, so that the
    /// earliest time of a person is when it was first seen, also before the events of this
    /// source. In microseconds since 1970.
    ///
    /// # Errors
    /// It is not known.
    fn first_seen(&self, see: &mut dyn FnMut(u32, i64)) -> Result<(), SourceError>;
}

/// What is known of a part before it is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Bounds of the event times, both inclusive, microseconds since 1970.
    pub times: (i64, i64),
    /// Rows with a higher arrival number came later, and do not count.
    pub last: u64,
}

/// A part whose columns can be read.
#[derive(Clone)]
pub enum OpenPart {
    /// A segment.
    Segment(Columns),
    /// Events that are in no segment.
    Block(Arc<dyn Block>),
}

/// A few thousand events at most, by columns.
pub trait Block: Send + Sync {
    /// Arrival numbers of all rows.
    fn arrivals(&self) -> &[u64];

    /// Event times of all rows, microseconds since 1970.
    fn times(&self) -> &[i64];

    /// Names of the events of all rows.
    fn names(&self) -> Codes;

    /// The numbers of the distinct ids of all rows, as [`Source::ids`] has them.
    fn ids(&self) -> &[u32];

    /// Calls `see` with each row and its properties, a JSON object, in order.
    ///
    /// # Errors
    /// They cannot be read.
    fn properties(&self, see: &mut dyn FnMut(u32, &str)) -> Result<(), SourceError>;

    /// Calls `see` with each of these rows and its event, in order.
    ///
    /// # Errors
    /// They cannot be read.
    fn events(
        &self,
        rows: &Bits,
        see: &mut dyn FnMut(u32, BlockEvent<'_>),
    ) -> Result<(), SourceError>;
}

/// What the columns of a [`Block`] do not have of an event.
#[derive(Debug, Clone, Copy)]
pub struct BlockEvent<'a> {
    /// Its uuid.
    pub uuid: Uuid,
    /// Its distinct id.
    pub distinct_id: &'a str,
    /// When it was accepted, microseconds since 1970.
    pub received_at: i64,
    /// Its compact element chain.
    pub elements_chain: &'a str,
    /// Its properties, a JSON object.
    pub properties: &'a str,
}
