//! Writing the entries of runs to a new one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::Path;

use super::read::Index;
use super::{Entry, FilterSize, Key, Run, RunWriter, RunWritten};
use crate::error::Result;

/// Writes the entries of all inputs to one new run. One block of each input is in memory at
/// a time, beside what [`RunWriter`] holds.
///
/// # Errors
/// When an input is damaged, two inputs have the same key, or a file cannot be read or
/// written.
pub fn merge(inputs: &[&Run], path: &Path, filter: FilterSize) -> Result<RunWritten> {
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
    while let Some(Reverse((_, number))) = order.pop() {
        let (Some(entries), Some(slot)) = (inputs.get_mut(number), waiting.get_mut(number)) else {
            break;
        };
        let next = entries.next().transpose()?;
        order.extend(next.map(|entry| Reverse((entry.key, number))));
        if let Some(entry) = std::mem::replace(slot, next) {
            writer.push(entry)?;
        }
    }
    writer.finish()
}

/// Writes the entries of a run whose filter is damaged to a new run. `bytes` and `sums` are
/// those of the damaged run.
///
/// # Errors
/// When more than the filter is damaged, or a file cannot be read or written.
pub fn rebuild(
    damaged: &Path,
    bytes: u64,
    sums: &[u8],
    path: &Path,
    filter: FilterSize,
) -> Result<RunWritten> {
    let index = Index::open(damaged, bytes, sums)?;
    let mut writer = RunWriter::create(path, filter)?;
    for entry in index.entries() {
        writer.push(entry?)?;
    }
    writer.finish()
}
