//! Runs: sorted files that say where the event of a uuid is.
//!
//! A file is a sequence of chunks of 16 KiB, each with its own checksum (`checked`). All
//! numbers are big-endian.
//!
//! | part | content |
//! |---|---|
//! | header, one chunk | `WEIRRUN` and a zero, version (1, four bytes), bits of the filters (8 or 16, four bytes), number of entries, first byte of the index (eight bytes each) |
//! | section, repeated | blocks of entries, one chunk each, then the filter of these entries, from the beginning of a chunk |
//! | index | for each section: its first byte, its entries, first byte and length of its filter (eight bytes each); then the first key of each block |
//!
//! An entry has 38 bytes: project (eight, with the sign flipped, so that bytes sort like
//! numbers), uuid (16), partition (two), first arrival number of the block (eight), index in
//! the block (four). A full block has 431 entries, and 2,432 full blocks are a section; the
//! last ones are smaller.
//!
//! A filter says which keys a section does not have. It is a binary fuse filter over XXH64
//! (seed 0) of the first 24 bytes of the entries (`filter`). Each section has its own, so
//! that building a filter takes bounded memory however long the run is. A filter alone never
//! says that a key is there: the entry does.
//!
//! What belongs here: the form of the file. What does not: checksums and names of files
//! (`checked`), which runs there are and which are merged when (`weir-store`).

mod filter;
mod merge;
mod read;
mod write;

use uuid::Uuid;

pub use merge::{KeyRanges, Salvaged, merge, salvage};
pub use read::{Entries, Run};
pub use write::{RunWriter, RunWritten};

use crate::checked::CHUNK;

/// The name of the format, at the beginning of the file.
const MAGIC: [u8; 8] = *b"WEIRRUN\0";
/// The version of the format.
const VERSION: u32 = 1;
/// Bytes of the header that have a meaning.
const HEADER: usize = 32;
/// Bytes of a key.
const KEY: usize = 24;
/// Bytes of an entry.
const ENTRY: usize = 38;
/// Entries of a full block.
const BLOCK: usize = CHUNK / ENTRY;
/// Blocks of a full section: about a million entries.
const SECTION: usize = 2_432;
/// Bytes of a section in the index.
const SECTION_ENTRY: usize = 32;

/// What a run is searched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The id of the project that has the event.
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
    /// The event, by project and uuid.
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

impl FilterSize {
    fn bits(self) -> u32 {
        match self {
            Self::Eight => 8,
            Self::Sixteen => 16,
        }
    }

    fn of_bits(bits: u32) -> Option<Self> {
        [Self::Eight, Self::Sixteen].into_iter().find(|size| size.bits() == bits)
    }
}

/// A key as it is in the file. The bytes sort as the keys do.
type KeyBytes = [u8; KEY];

impl Key {
    fn to_bytes(self) -> KeyBytes {
        let mut bytes = [0; KEY];
        let (project, uuid) = bytes.split_at_mut(8);
        let unsigned = self.project.cast_unsigned() ^ (1 << 63);
        project.copy_from_slice(&unsigned.to_be_bytes());
        uuid.copy_from_slice(self.uuid.as_bytes());
        bytes
    }
}

impl Entry {
    fn to_bytes(self) -> [u8; ENTRY] {
        let mut bytes = [0; ENTRY];
        let parts: [&[u8]; 4] = [
            &self.key.to_bytes(),
            &self.place.partition.to_be_bytes(),
            &self.place.first.to_be_bytes(),
            &self.place.index.to_be_bytes(),
        ];
        for (to, from) in bytes.iter_mut().zip(parts.into_iter().flatten()) {
            *to = *from;
        }
        bytes
    }

    fn from_bytes(bytes: &[u8; ENTRY]) -> Option<Self> {
        let mut numbers = Numbers(bytes);
        let project = (numbers.u64()? ^ (1 << 63)).cast_signed();
        let key = Key { project, uuid: Uuid::from_bytes(numbers.take()?) };
        let partition = u16::from_be_bytes(numbers.take()?);
        Some(Self { key, place: Place { partition, first: numbers.u64()?, index: numbers.u32()? } })
    }
}

/// Reads numbers from bytes.
struct Numbers<'a>(&'a [u8]);

impl Numbers<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_be_bytes)
    }
}

#[cfg(test)]
mod tests;
