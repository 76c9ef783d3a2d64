//! Writing the entries of runs to a new one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::Path;

use super::read::Index;
use super::{Entry, FilterSize, Key, Run, RunWriter, RunWritten};
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
}

/// Writes the readable entries of a damaged run, which may have no sound filter, to a new
/// run. `bytes` and `sums` are those of the damaged run.
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
        let mut read = 0;
        for block in 0..self.blocks() {
            match self.block(block) {
                Ok(entries) => {
                    for entry in super::read::decode(&entries) {
                        writer.push(entry)?;
                        read += 1;
                    }
                }
                Err(Error::Damaged { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Salvaged { written: writer.finish()?, lost: self.len().saturating_sub(read) })
    }
}
