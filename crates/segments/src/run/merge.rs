//! Writing the entries of runs to a new one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::Path;

use uuid::Uuid;

use super::read::Index;
use super::{Entry, FilterSize, Key, KeyBytes, Run, RunWriter, RunWritten};
use crate::error::{Error, Result};

/// Writes the entries of all inputs whose project is to be kept to one new run. If several
/// inputs have a key, then the entry of the first one of them is written. One block of each
/// input is in memory at a time, beside what [`RunWriter`] holds.
///
/// # Errors
/// When an input is damaged, or a file cannot be read or written.
pub fn merge(
    inputs: &[&Run],
    path: &Path,
    filter: FilterSize,
    is_kept: impl Fn(i64) -> bool,
) -> Result<RunWritten> {
    let mut writer = RunWriter::create(path, filter)?;
    let mut inputs: Vec<_> = inputs.iter().map(|run| run.entries()).collect();
    // The next entry of each input.
    let mut waiting: Vec<Option<Entry>> = Vec::with_capacity(inputs.len());
    let mut order: BinaryHeap<Reverse<(Key, usize)>> = BinaryHeap::with_capacity(inputs.len());
    for (number, entries) in inputs.iter_mut().enumerate() {
        let entry = entries.next().transpose()?;
        order.extend(entry.map(|entry| Reverse((entry.key, number))));
        waiting.push(entry);
    }
    let mut last: Option<Key> = None;
    while let Some(Reverse((key, number))) = order.pop() {
        let (Some(entries), Some(slot)) = (inputs.get_mut(number), waiting.get_mut(number)) else {
            break;
        };
        let next = entries.next().transpose()?;
        order.extend(next.map(|entry| Reverse((entry.key, number))));
        let entry = std::mem::replace(slot, next);
        if last.replace(key) != Some(key)
            && is_kept(key.project)
            && let Some(entry) = entry
        {
            writer.push(entry)?;
        }
    }
    writer.finish()
}

/// What [`salvage`] has written.
#[derive(Debug)]
pub struct Salvaged {
    /// The new run.
    pub written: RunWritten,
    /// The number of entries that could not be read.
    pub lost: u64,
    /// The keys that they may have.
    pub keys: KeyRanges,
}

/// Ranges of keys, which do not overlap, in ascending order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeyRanges(Vec<KeyRange>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct KeyRange {
    from: KeyBytes,
    /// The key after the range; `None`: it ends with the last key that there can be.
    end: Option<KeyBytes>,
}

impl KeyRanges {
    /// All keys that there can be.
    pub fn all() -> Self {
        Self(vec![KeyRange { from: KeyBytes::default(), end: None }])
    }

    /// Whether a key is in one of the ranges.
    pub fn has(&self, key: &Key) -> bool {
        let key = key.to_bytes();
        self.overlap(&key, &key)
    }

    /// Whether a key of this project can be in one of the ranges.
    pub fn has_project(&self, project: i64) -> bool {
        let [least, most] = [Uuid::nil(), Uuid::max()].map(|uuid| Key { project, uuid }.to_bytes());
        self.overlap(&least, &most)
    }

    /// Whether there is a key from `least` to `most` in one of the ranges.
    fn overlap(&self, least: &KeyBytes, most: &KeyBytes) -> bool {
        let after = self.0.partition_point(|range| range.from <= *most);
        let last = after.checked_sub(1).and_then(|last| self.0.get(last));
        last.is_some_and(|range| range.end.as_ref().is_none_or(|end| least < end))
    }

    /// Adds a range that begins where the last one ends, or later.
    fn add(&mut self, range: KeyRange) {
        match self.0.last_mut() {
            Some(last) if last.end == Some(range.from) => last.end = range.end,
            _ => self.0.push(range),
        }
    }
}

/// Writes the readable entries of a damaged run, which may have no sound filter, to a new
/// run. A block whose entries contradict the index is not readable. `bytes` and `sums` are
/// those of the damaged run.
///
/// # Errors
/// When the header or the index of the run is damaged too, or a file cannot be read or
/// written.
pub fn salvage(
    damaged: &Path,
    bytes: u64,
    sums: &[u8],
    path: &Path,
    filter: FilterSize,
) -> Result<Salvaged> {
    Index::open(damaged, bytes, sums)?.salvage(path, filter)
}

impl Run {
    /// Writes the readable entries to a new run. The index of this run is in memory: damage
    /// of it in the file takes nothing away.
    ///
    /// # Errors
    /// When a file cannot be read or written.
    pub fn salvage(&self, path: &Path, filter: FilterSize) -> Result<Salvaged> {
        self.index().salvage(path, filter)
    }
}

impl Index {
    fn salvage(&self, path: &Path, filter: FilterSize) -> Result<Salvaged> {
        let mut writer = RunWriter::create(path, filter)?;
        let (mut read, mut keys) = (0, KeyRanges::default());
        for block in 0..self.blocks() {
            match self.sound_block(block) {
                Ok(entries) => {
                    for entry in super::read::decode(&entries) {
                        writer.push(entry)?;
                        read += 1;
                    }
                }
                Err(Error::Damaged { .. }) => {
                    if let Some(from) = self.first_key(block) {
                        keys.add(KeyRange { from, end: self.first_key(block + 1) });
                    }
                }
                Err(error) => return Err(error),
            }
        }
        let lost = self.len().saturating_sub(read);
        Ok(Salvaged { written: writer.finish()?, lost, keys })
    }
}
