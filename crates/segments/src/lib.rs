//! Immutable files of sealed events.
//!
//! | module | file | holds |
//! |---|---|---|
//! | [`segment`] | Parquet | the events of contiguous blocks of one (project, partition) |
//! | [`run`] | sorted entries with a filter | which uuids are stored, and where their events are |
//! | [`persons`] | Parquet | a snapshot of persons, for other engines |
//! | [`delta`] | log of Delta Lake | which files a table has, for other engines |
//!
//! A segment or a run is written once, synced, and never changed. Its checksums
//! ([`Written::sums`], [`RunWritten::sums`]) are not in the file: the caller keeps them, and
//! every read compares what it reads with them before it decodes it. So a damaged byte is an
//! error ([`Error::Damaged`]) and never a wrong answer.
//!
//! A [`Segment`] or [`Run`] keeps its file open: it can be read to the end also after the
//! file was removed, and takes a descriptor until its last copy is dropped.
//!
//! All functions block the thread: they read and write files. What belongs here: the form
//! of the files. What does not: which files there are, when they are written and removed,
//! and in what order that happens with a transaction (`weir-store`).

mod bits;
mod checked;
pub mod delta;
mod error;
pub mod persons;
pub mod run;
pub mod segment;

pub use bits::Bits;
pub use error::{Error, Part, Result};
pub use run::{Entry, FilterSize, Key, Place, Run, RunWriter, RunWritten};
pub use segment::{
    BlockRows, Codes, ColumnName, ColumnType, Columns, Complete, GroupReader, NONE, Options,
    OwnedEvent, RowGroup, Segment, SegmentEvent, TypedColumn, Writer, Written,
};
