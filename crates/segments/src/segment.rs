//! Segments: the events of contiguous blocks of one (project, partition), as Parquet.

use std::path::Path;

use uuid::Uuid;

use crate::{Error, Result};

/// An event to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentEvent<'a> {
    /// Arrival number within the project.
    pub arrival: u64,
    /// Unique within the project.
    pub uuid: Uuid,
    /// Name of the event.
    pub event: &'a str,
    /// Distinct id of the event.
    pub distinct_id: &'a str,
    /// Event time, microseconds since 1970.
    pub timestamp: i64,
    /// When it was accepted, microseconds since 1970.
    pub received_at: i64,
    /// Properties as JSON object text.
    pub properties: &'a str,
    /// Compact element chain, or empty.
    pub elements_chain: &'a str,
    /// Whether it was sent with `historical_migration`.
    pub historical: bool,
    /// Codes of the warnings about what was altered.
    pub warnings: &'a [String],
}

/// An event that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedEvent {
    /// Arrival number within the project.
    pub arrival: u64,
    /// Unique within the project.
    pub uuid: Uuid,
    /// Name of the event.
    pub event: String,
    /// Distinct id of the event.
    pub distinct_id: String,
    /// Event time, microseconds since 1970.
    pub timestamp: i64,
    /// When it was accepted, microseconds since 1970.
    pub received_at: i64,
    /// Properties as JSON object text.
    pub properties: String,
    /// Compact element chain, or empty.
    pub elements_chain: String,
    /// Whether it was sent with `historical_migration`.
    pub historical: bool,
    /// Codes of the warnings about what was altered.
    pub warnings: Vec<String>,
}

/// The rows of one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockRows {
    /// The arrival number of the first event, which is part of the id of the block.
    pub first: u64,
    /// The row of that event in the segment.
    pub row: u64,
    /// The number of rows.
    pub rows: u32,
}

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The number of events.
    pub rows: u64,
    /// The size of the file, bytes.
    pub bytes: u64,
    /// The blocks, in order.
    pub blocks: Vec<BlockRows>,
    /// Earliest event time, microseconds since 1970.
    pub from_time: i64,
    /// Latest event time, microseconds since 1970.
    pub to_time: i64,
    /// Checksums of the file, for [`Segment::open`]: four bytes for each 16 KiB.
    pub sums: Vec<u8>,
}

/// How a segment is written.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// The level of zstd.
    pub compression: i32,
}

impl Default for Options {
    fn default() -> Self {
        Self { compression: 3 }
    }
}

/// A segment that is being written.
pub struct Writer {}

impl Writer {
    /// Begins a segment that will have this name. Until [`finish`](Self::finish) it is
    /// `<name>.tmp`, which is removed when the writer is dropped.
    ///
    /// # Errors
    /// When the file cannot be created.
    pub fn create(_path: &Path, _options: &Options) -> Result<Self> {
        Err(unfinished())
    }

    /// Adds a block. The arrival number of its first event must be greater than that of the
    /// block before.
    ///
    /// # Errors
    /// When the block is empty or not in order, or cannot be written.
    pub fn push_block(&mut self, _events: &[SegmentEvent<'_>]) -> Result<()> {
        Err(unfinished())
    }

    /// Writes the rest, and gives the file its name. File and directory are synced.
    ///
    /// # Errors
    /// When there is no block, or the file cannot be written.
    pub fn finish(self) -> Result<Written> {
        Err(unfinished())
    }
}

/// A segment to read from. A copy shares the file and what is known of it.
#[derive(Clone)]
pub struct Segment {}

impl Segment {
    /// Opens a segment. `bytes` and `sums` are those of [`Written`].
    ///
    /// # Errors
    /// When the file cannot be read, is damaged, or has an unknown format.
    pub fn open(_path: &Path, _bytes: u64, _sums: &[u8]) -> Result<Self> {
        Err(unfinished())
    }

    /// The number of events.
    pub fn rows(&self) -> u64 {
        0
    }

    /// The blocks, in order.
    pub fn blocks(&self) -> &[BlockRows] {
        &[]
    }

    /// The memory that this segment takes while it is open, bytes.
    pub fn memory(&self) -> usize {
        0
    }

    /// The events of `rows` rows from `first_row` on, in order.
    ///
    /// # Errors
    /// When the segment has no such rows, or cannot be read, or is damaged.
    pub fn block(&self, _first_row: u64, _rows: u32) -> Result<Vec<OwnedEvent>> {
        Err(unfinished())
    }

    /// The event in a row.
    ///
    /// # Errors
    /// As [`block`](Self::block).
    pub fn row(&self, _row: u64) -> Result<OwnedEvent> {
        Err(unfinished())
    }

    /// Reads the whole file and compares it with its checksums.
    ///
    /// # Errors
    /// When the file cannot be read, or is damaged.
    pub fn verify(&self) -> Result<()> {
        Err(unfinished())
    }
}

/// Writes the blocks of all inputs, in order, to one new segment. One block is in memory at
/// a time, beside what [`Writer`] holds.
///
/// # Errors
/// When an input is damaged or not after the one before, or a file cannot be read or
/// written.
pub fn merge(_inputs: &[&Segment], _path: &Path, _options: &Options) -> Result<Written> {
    Err(unfinished())
}

fn unfinished() -> Error {
    Error::Io { file: Path::new("").to_owned(), source: std::io::ErrorKind::Unsupported.into() }
}
