//! Segments: the events of contiguous blocks of one (project, partition), as Parquet.
//!
//! DuckDB, Spark and pyarrow read a segment (`columns` lists what they find). Weir reads
//! events back by their rows: a block is never divided between groups of rows, and pages
//! begin with blocks, so that a block costs little more than its own events. Where the
//! blocks are is in the metadata of the file, under `weir.blocks`: the first arrival number
//! and the number of rows of each, as `first:rows,first:rows`. `weir.typed` has the property
//! of each typed column and the number of events whose value it does not hold, as
//! `name:lost,name:lost` with percent-encoded names.
//!
//! Events are read by their rows ([`Segment`]), or column by column ([`Columns`]).
//!
//! What belongs here: the form of the file. What does not: checksums and names of files
//! (`checked`), which blocks a segment gets and when (`weir-store`).

pub(crate) mod columns;
mod pages;
mod read;
mod scan;
mod typed;
mod write;

use std::path::Path;

use uuid::Uuid;

pub use pages::{Codes, GroupReader, NONE};
pub use read::Segment;
pub use scan::{ColumnName, Columns, Complete, RowGroup};
pub use typed::{ColumnType, TABLE_COLUMNS, TypedColumn};
pub use write::{Writer, Written};

use crate::Result;

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

impl<'a> From<&'a OwnedEvent> for SegmentEvent<'a> {
    fn from(event: &'a OwnedEvent) -> Self {
        Self {
            arrival: event.arrival,
            uuid: event.uuid,
            event: &event.event,
            distinct_id: &event.distinct_id,
            timestamp: event.timestamp,
            received_at: event.received_at,
            properties: &event.properties,
            elements_chain: &event.elements_chain,
            historical: event.historical,
            warnings: &event.warnings,
        }
    }
}

impl From<&SegmentEvent<'_>> for OwnedEvent {
    fn from(event: &SegmentEvent<'_>) -> Self {
        Self {
            arrival: event.arrival,
            uuid: event.uuid,
            event: event.event.to_owned(),
            distinct_id: event.distinct_id.to_owned(),
            timestamp: event.timestamp,
            received_at: event.received_at,
            properties: event.properties.to_owned(),
            elements_chain: event.elements_chain.to_owned(),
            historical: event.historical,
            warnings: event.warnings.to_vec(),
        }
    }
}

/// The rows of one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockRows {
    /// The arrival number that is part of the id of the block: that of its first event when
    /// it was written. The event may have been removed since.
    pub first: u64,
    /// The first row of the block in the segment.
    pub row: u64,
    /// The number of rows.
    pub rows: u32,
}

/// How a segment is written.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// The level of zstd, from 1 to 22.
    pub compression: i32,
    /// The typed columns that the table of the project has, at most [`TABLE_COLUMNS`]; more
    /// are ignored. A property of this list gets its column in each file whose sampled
    /// events have such a value, and never a column of another type.
    pub known: Vec<TypedColumn>,
}

impl Default for Options {
    fn default() -> Self {
        Self { compression: 3, known: Vec::new() }
    }
}

/// Blocks that [`merge`] reads to choose the typed columns.
const SAMPLED_BLOCKS: usize = 16;

/// Writes the blocks of all inputs, in order, to one new segment. One block of the inputs is
/// in memory at a time, beside what [`Writer`] holds.
///
/// The typed columns are chosen from blocks of all parts of the inputs. A known column that
/// an input has is made again, so no value goes away.
///
/// # Errors
/// When an input is damaged or not after the one before, or a file cannot be read or
/// written.
pub fn merge(inputs: &[&Segment], path: &Path, options: &Options) -> Result<Written> {
    let mut writer = Writer::with_columns(path, options, columns_of(inputs, options)?)?;
    for input in inputs {
        let reader = input.reader();
        for block in input.blocks() {
            push(&mut writer, block.first, &reader.rows(block.row, block.rows)?)?;
        }
    }
    writer.finish()
}

/// Writes the blocks of a segment to a new one, with the events of each that `kept` returns.
/// A block without events goes away. `None`: no event is left, and no file was written. The
/// typed columns and the memory are those of [`merge`].
///
/// # Errors
/// When the segment is damaged, or a file cannot be read or written.
pub fn rewrite(
    input: &Segment,
    path: &Path,
    options: &Options,
    mut kept: impl FnMut(BlockRows, Vec<OwnedEvent>) -> Vec<OwnedEvent>,
) -> Result<Option<Written>> {
    let mut writer = Writer::with_columns(path, options, columns_of(&[input], options)?)?;
    let (reader, mut is_empty) = (input.reader(), true);
    for block in input.blocks() {
        let events = kept(*block, reader.rows(block.row, block.rows)?);
        if !events.is_empty() {
            push(&mut writer, block.first, &events)?;
            is_empty = false;
        }
    }
    match is_empty {
        true => Ok(None),
        false => writer.finish().map(Some),
    }
}

fn push(writer: &mut Writer, first: u64, events: &[OwnedEvent]) -> Result<()> {
    let events: Vec<SegmentEvent<'_>> = events.iter().map(SegmentEvent::from).collect();
    writer.push_block_of(first, &events)
}

/// The typed columns for the events of these segments.
fn columns_of(inputs: &[&Segment], options: &Options) -> Result<Vec<TypedColumn>> {
    let mut sample = typed::Sample::default();
    let blocks: Vec<_> = inputs
        .iter()
        .flat_map(|input| input.blocks().iter().map(move |block| (*input, *block)))
        .collect();
    for (input, block) in blocks.iter().step_by(blocks.len().div_ceil(SAMPLED_BLOCKS).max(1)) {
        for event in input.block(block.row, block.rows)? {
            sample.add(&event.properties);
        }
    }
    for input in inputs {
        let columns = input.columns(&options.known)?;
        for known in &options.known {
            if columns.typed(&known.property).is_some_and(|(kind, _)| kind == known.kind) {
                sample.keep(known);
            }
        }
    }
    Ok(sample.columns(&options.known))
}

#[cfg(test)]
mod tests;
