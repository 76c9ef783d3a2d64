//! Runs: sorted files that say where the event of a uuid is.

use std::path::Path;

use uuid::Uuid;

use crate::{Error, Result};

/// What a run is searched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The project.
    pub project: i64,
    /// The uuid of an event.
    pub uuid: Uuid,
}

/// Where an event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The partition of the block.
    pub partition: u16,
    /// The first arrival number of the block.
    pub first: u64,
    /// The index of the event in the block.
    pub index: u32,
}

/// One entry of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// The key.
    pub key: Key,
    /// Where its event is.
    pub place: Place,
}

/// The size of the fingerprints in a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FilterSize {
    /// 9 bits of memory for an entry. One in 256 absent keys needs a read.
    Eight,
    /// 18 bits of memory for an entry. One in 65,536 absent keys needs a read.
    #[default]
    Sixteen,
}

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunWritten {
    /// The number of entries.
    pub entries: u64,
    /// The size of the file, bytes.
    pub bytes: u64,
    /// Checksums of the file, for [`Run::open`]: four bytes for each 16 KiB.
    pub sums: Vec<u8>,
}

/// A run that is being written.
pub struct RunWriter {}

impl RunWriter {
    /// Begins a run that will have this name. Until [`finish`](Self::finish) it is
    /// `<name>.tmp`, which is removed when the writer is dropped.
    ///
    /// # Errors
    /// When the file cannot be created.
    pub fn create(_path: &Path, _filter: FilterSize) -> Result<Self> {
        Err(unfinished())
    }

    /// Adds an entry. Its key must be greater than the one before.
    ///
    /// # Errors
    /// When the key is not greater, or the entry cannot be written.
    pub fn push(&mut self, _entry: Entry) -> Result<()> {
        Err(unfinished())
    }

    /// Writes the rest, and gives the file its name. File and directory are synced.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn finish(self) -> Result<RunWritten> {
        Err(unfinished())
    }
}

/// A run to search. A copy shares the file, the filters and the index.
#[derive(Clone)]
pub struct Run {}

impl Run {
    /// Opens a run. `bytes` and `sums` are those of [`RunWritten`].
    ///
    /// # Errors
    /// When the file cannot be read, is damaged, or has an unknown format.
    pub fn open(_path: &Path, _bytes: u64, _sums: &[u8]) -> Result<Self> {
        Err(unfinished())
    }

    /// The number of entries.
    pub fn len(&self) -> u64 {
        0
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The memory that this run takes while it is open, bytes.
    pub fn memory(&self) -> usize {
        0
    }

    /// The places of these keys, in the order of the keys; `None`: the run does not have the
    /// key. The keys need not be sorted.
    ///
    /// # Errors
    /// When the run cannot be read, or is damaged.
    pub fn find(&self, _keys: &[Key]) -> Result<Vec<Option<Place>>> {
        Err(unfinished())
    }

    /// All entries in order. The iterator ends after an error.
    pub fn entries(&self) -> Entries {
        Entries {}
    }

    /// Reads the whole file and compares it with its checksums.
    ///
    /// # Errors
    /// When the file cannot be read, or is damaged.
    pub fn verify(&self) -> Result<()> {
        Err(unfinished())
    }
}

/// The entries of a run, in order.
pub struct Entries {}

impl Iterator for Entries {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        None
    }
}

/// Writes the entries of all inputs to one new run. A key may be in one input only.
///
/// # Errors
/// When an input is damaged, two inputs have the same key, or a file cannot be read or
/// written.
pub fn merge(_inputs: &[&Run], _path: &Path, _filter: FilterSize) -> Result<RunWritten> {
    Err(unfinished())
}

/// Writes the entries of a run whose filter is damaged to a new run. `bytes` and `sums` are
/// those of the damaged run.
///
/// # Errors
/// When more than the filter is damaged, or a file cannot be read or written.
pub fn rebuild(
    _damaged: &Path,
    _bytes: u64,
    _sums: &[u8],
    _path: &Path,
    _filter: FilterSize,
) -> Result<RunWritten> {
    Err(unfinished())
}

fn unfinished() -> Error {
    Error::Io { file: Path::new("").to_owned(), source: std::io::ErrorKind::Unsupported.into() }
}
