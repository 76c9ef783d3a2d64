//! Texts of single rows, for questions in SQL.
//!
//! What belongs here: columns that have a text of its own for each event. What does not:
//! properties by their names, which are read as columns.

use weir_segments::{Bits, ColumnName};

use super::{Batch, Reader};
use crate::error::Result;
use crate::run::Reservation;

/// Texts of some rows, in the order of the rows.
#[derive(Debug)]
pub(crate) struct TextColumn<'a> {
    rows: Vec<u32>,
    ends: Vec<usize>,
    bytes: Vec<u8>,
    memory: Reservation<'a>,
}

impl<'a> TextColumn<'a> {
    fn new(rows: &[u32], memory: Reservation<'a>) -> Self {
        Self {
            rows: rows.to_vec(),
            ends: Vec::with_capacity(rows.len()),
            bytes: Vec::new(),
            memory,
        }
    }

    fn push(&mut self, row: u32, text: &[u8]) -> Result<()> {
        // A row without a text has an empty one.
        while self.rows.get(self.ends.len()).is_some_and(|next| *next < row) {
            self.ends.push(self.bytes.len());
        }
        if self.bytes.len() + text.len() > self.bytes.capacity() {
            let capacity = (self.bytes.len() + text.len()) * 3 / 2;
            self.memory.hold(self.bytes.len() + capacity)?;
            self.bytes.reserve_exact(capacity - self.bytes.len());
        }
        self.bytes.extend_from_slice(text);
        self.ends.push(self.bytes.len());
        Ok(())
    }

    /// The text of the row at this place in the list.
    pub(crate) fn at(&self, place: usize) -> &str {
        let begin = place.checked_sub(1).map_or(0, |before| self.end(before));
        let bytes = self.bytes.get(begin..self.end(place)).unwrap_or_default();
        std::str::from_utf8(bytes).unwrap_or_default()
    }

    fn end(&self, place: usize) -> usize {
        self.ends.get(place).copied().unwrap_or(self.bytes.len())
    }
}

impl<'a> Batch<'a> {
    /// Keeps no other rows than these.
    pub(crate) fn retain(&mut self, rows: &Bits) {
        self.kept.intersect(rows);
        self.nodes.iter_mut().for_each(|bits| bits.intersect(rows));
    }

    /// The number of the part.
    pub(crate) fn part(&self) -> usize {
        self.place.part
    }

    /// The number of the person of a row, if they were prepared.
    pub(crate) fn person(&self, row: usize) -> u32 {
        self.persons.get(row).copied().unwrap_or(weir_segments::NONE)
    }

    /// The texts of some rows in ascending order. The column is one of `uuid`, `distinct_id`,
    /// `elements_chain` and `properties`.
    pub(crate) fn texts(&mut self, column: &ColumnName, rows: &[u32]) -> Result<TextColumn<'a>> {
        let mut texts = TextColumn::new(rows, self.run.memory.reservation());
        let mut failed = Ok(());
        match &mut self.reader {
            Reader::Group { reader, .. } => reader.texts_at(column, rows, |row, text| {
                if failed.is_ok() {
                    failed = texts.push(row, text);
                }
            })?,
            Reader::Block(block) => {
                block.events(&bits(rows, self.place.rows), &mut |row, event| {
                    if failed.is_err() {
                        return;
                    }
                    failed = match column {
                        ColumnName::Uuid => {
                            let mut buffer = uuid::Uuid::encode_buffer();
                            let text = event.uuid.hyphenated().encode_lower(&mut buffer);
                            texts.push(row, text.as_bytes())
                        }
                        ColumnName::DistinctId => texts.push(row, event.distinct_id.as_bytes()),
                        ColumnName::ElementsChain => {
                            texts.push(row, event.elements_chain.as_bytes())
                        }
                        _ => texts.push(row, event.properties.as_bytes()),
                    };
                })?;
            }
        }
        failed?;
        Ok(texts)
    }

    /// When the events of some rows, in ascending order, were accepted.
    pub(crate) fn received(&mut self, rows: &[u32]) -> Result<Vec<i64>> {
        let mut times = Vec::with_capacity(rows.len());
        match &mut self.reader {
            Reader::Group { reader, .. } => {
                let mut all = Vec::new();
                reader.numbers(&ColumnName::ReceivedAt, &mut all)?;
                let time = |row: &u32| all.get(*row as usize).copied().unwrap_or_default();
                times.extend(rows.iter().map(time));
            }
            Reader::Block(block) => {
                block.events(&bits(rows, self.place.rows), &mut |_, event| {
                    times.push(event.received_at);
                })?;
            }
        }
        Ok(times)
    }
}

fn bits(rows: &[u32], size: usize) -> Bits {
    let mut bits = Bits::default();
    bits.reset(size);
    rows.iter().for_each(|row| bits.set(*row as usize));
    bits
}
