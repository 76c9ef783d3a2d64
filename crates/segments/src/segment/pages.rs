//! The values of the columns of a group of rows.
//!
//! Texts are decoded by `encodings` from the decompressed pages: without one object for each
//! value, and codes of dictionaries stay codes. Numbers and booleans are decoded by
//! `parquet`.
//!
//! Nothing is decoded before it was compared with its checksums. What cannot be decoded, or
//! has another number of values than its group has rows, is [`Error::Damaged`]. A page has a
//! bound in bytes, and counts that the file states are compared with the rows of the group
//! before memory is allocated for them.

mod encodings;

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use bytes::Bytes;
use memchr::memmem::Finder;
use parquet::basic::{Encoding, EncodingMask};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::page_index::offset_index::PageLocation;
use parquet::file::serialized_reader::SerializedPageReader;

use super::ColumnType;
use super::read::{content, decode, missing};
use super::scan::{ColumnName, Columns, RowGroup};
use crate::Bits;
use crate::error::{Error, Result};
use encodings::{ColumnBytes, Pages, other_type};

/// The code of a missing value.
pub const NONE: u32 = u32::MAX;

/// Texts as codes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Codes {
    /// For each row, the index of its text in `values`, or [`NONE`].
    pub codes: Vec<u32>,
    /// The texts, each once. Not every one occurs in a row.
    pub values: Vec<Bytes>,
}

/// Reads the columns of a group of rows. Each call reads the file again: a whole column in
/// one piece, if it says nothing else.
///
/// All methods return an error when the segment does not have the column, or it has values
/// of another kind; when the file cannot be read; and when it is damaged.
pub struct GroupReader<'a> {
    columns: &'a Columns,
    group: RowGroup,
    definitions: Vec<i16>,
}

impl<'a> GroupReader<'a> {
    pub(super) fn new(columns: &'a Columns, group: RowGroup) -> Self {
        Self { columns, group, definitions: Vec::new() }
    }

    /// The numbers of all rows: [`Arrival`](ColumnName::Arrival),
    /// [`Timestamp`](ColumnName::Timestamp) or [`ReceivedAt`](ColumnName::ReceivedAt).
    ///
    /// # Errors
    /// See [`GroupReader`].
    pub fn numbers(&mut self, column: &ColumnName, into: &mut Vec<i64>) -> Result<()> {
        use ColumnName::{Arrival, ReceivedAt, Timestamp};
        let at = self.base(column, &[Arrival, Timestamp, ReceivedAt])?;
        let reader = self.values(at)?;
        let rows = self.rows();
        let read = || match reader {
            ColumnReader::Int64ColumnReader(reader) => {
                read_all(reader, rows, &mut self.definitions, into)
            }
            _ => Err(other_type()),
        };
        read().map_err(|e| decode(self.columns.path(), e))
    }

    /// The numbers of the typed column of a property. `valid` says which rows have one; the
    /// others have 0 in `into`.
    ///
    /// # Errors
    /// See [`GroupReader`].
    pub fn doubles(&mut self, property: &str, into: &mut Vec<f64>, valid: &mut Bits) -> Result<()> {
        let at = self.typed(property, ColumnType::Number)?;
        let reader = self.values(at)?;
        let rows = self.rows();
        let mut values = Vec::new();
        let read = || match reader {
            ColumnReader::DoubleColumnReader(reader) => {
                read_all(reader, rows, &mut self.definitions, &mut values)
            }
            _ => Err(other_type()),
        };
        read().map_err(|e| decode(self.columns.path(), e))?;
        into.clear();
        into.resize(rows, 0.0);
        valid.reset(rows);
        let present = self.definitions.iter().zip(into.iter_mut()).enumerate();
        let present = present.filter(|(_, (definition, _))| **definition > 0);
        for ((row, (_, into)), value) in present.zip(values) {
            *into = value;
            valid.set(row);
        }
        Ok(())
    }

    /// The values of [`Historical`](ColumnName::Historical) or of a typed column. `valid`
    /// says which rows have one.
    ///
    /// # Errors
    /// See [`GroupReader`].
    pub fn booleans(
        &mut self,
        column: &ColumnName,
        into: &mut Bits,
        valid: &mut Bits,
    ) -> Result<()> {
        let at = match column {
            ColumnName::Typed(property) => self.typed(property, ColumnType::Boolean)?,
            base => self.base(base, &[ColumnName::Historical])?,
        };
        let reader = self.values(at)?;
        let rows = self.rows();
        let mut values = Vec::new();
        let read = || match reader {
            ColumnReader::BoolColumnReader(reader) => {
                read_all(reader, rows, &mut self.definitions, &mut values)
            }
            _ => Err(other_type()),
        };
        read().map_err(|e| decode(self.columns.path(), e))?;
        into.reset(rows);
        valid.reset(rows);
        if matches!(column, ColumnName::Historical) {
            self.definitions.clear();
            self.definitions.resize(rows, 1);
        }
        let present = self.definitions.iter().enumerate().filter(|(_, level)| **level > 0);
        for ((row, _), value) in present.zip(values) {
            valid.set(row);
            if value {
                into.set(row);
            }
        }
        Ok(())
    }

    /// The texts of [`Event`](ColumnName::Event) or of a typed column, as codes.
    ///
    /// # Errors
    /// See [`GroupReader`].
    pub fn codes(&mut self, column: &ColumnName) -> Result<Codes> {
        let chunk = self.chunk(self.with_dictionary(column)?)?;
        let mut pages = self.pages(chunk)?;
        pages.codes().map_err(|e| decode(self.columns.path(), e))
    }

    /// The texts that occur in [`Event`](ColumnName::Event) or in a typed column, and maybe
    /// others. `None`: not all of them are in the dictionary, which alone is read.
    ///
    /// # Errors
    /// See [`GroupReader`].
    pub fn dictionary(&mut self, column: &ColumnName) -> Result<Option<Vec<Bytes>>> {
        let chunk = self.chunk(self.with_dictionary(column)?)?;
        let is_all = |encodings: &EncodingMask| encodings.is_only(Encoding::RLE_DICTIONARY);
        if chunk.dictionary_page_offset().is_none()
            || !chunk.page_encoding_stats_mask().is_some_and(is_all)
        {
            return Ok(None);
        }
        let all = self.byte_range(chunk)?;
        let end = u64::try_from(chunk.data_page_offset()).unwrap_or(0);
        let mut pages = self.pages_between(chunk, all.start..end.min(all.end), self.rows())?;
        pages.dictionary().map(Some).map_err(|e| decode(self.columns.path(), e))
    }

    /// Calls `see` with each row and its text, in order, until it breaks. The columns are
    /// those that have no dictionary: uuids, distinct ids, element chains, properties. The
    /// text is not checked to be UTF-8.
    ///
    /// # Errors
    /// See [`GroupReader`].
    pub fn each_text(
        &mut self,
        column: &ColumnName,
        see: impl FnMut(u32, &[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        let chunk = self.chunk(self.plain(column)?)?;
        let mut pages = self.pages(chunk)?;
        pages.each_text(0, see).map_err(|e| decode(self.columns.path(), e))
    }

    /// As [`each_text`](Self::each_text), for the texts that contain one of the needles.
    /// Whole pages are searched for them.
    ///
    /// # Errors
    /// See [`GroupReader`].
    pub fn each_with(
        &mut self,
        column: &ColumnName,
        needles: &[Finder<'_>],
        see: impl FnMut(u32, &[u8]),
    ) -> Result<()> {
        let chunk = self.chunk(self.plain(column)?)?;
        let mut pages = self.pages(chunk)?;
        pages.each_with(needles, see).map_err(|e| decode(self.columns.path(), e))
    }

    /// As [`each_text`](Self::each_text), for some rows of the group, which must be in
    /// ascending order. Pages without any of them are not read.
    ///
    /// # Errors
    /// See [`GroupReader`]; and when the group has no such rows, or they are not in order.
    pub fn texts_at(
        &mut self,
        column: &ColumnName,
        rows: &[u32],
        mut see: impl FnMut(u32, &[u8]),
    ) -> Result<()> {
        let at = self.plain(column)?;
        let chunk = self.chunk(at)?;
        if !rows.is_sorted() {
            let what = "rows are not in ascending order";
            return Err(Error::NotInOrder { file: self.columns.path().to_owned(), what });
        }
        if let Some(last) = rows.last().filter(|last| **last >= self.group.rows) {
            let first = self.group.first_row.saturating_add((*last).into());
            let file = self.columns.path().to_owned();
            return Err(Error::NoSuchRows { file, first, end: first.saturating_add(1) });
        }
        let groups = &self.columns.segment.inner.groups;
        let column = groups.get(self.group.number).and_then(|group| group.columns.get(at));
        let locations = column.map(|column| &column.pages[..]).unwrap_or_default();
        let mut left = rows;
        while !left.is_empty() {
            let run = self.neighbours(locations, left)?;
            let mut pages = self.pages_between(chunk, run.bytes, run.rows.len())?;
            let (wanted, later) = left.split_at_checked(run.wanted).unwrap_or((left, &[]));
            let mut wanted = wanted.iter().peekable();
            let first = u32::try_from(run.rows.start).unwrap_or(NONE);
            let read = pages.each_text(first, |row, text| {
                while wanted.next_if_eq(&&row).is_some() {
                    see(row, text);
                }
                match wanted.peek() {
                    Some(_) => ControlFlow::Continue(()),
                    None => ControlFlow::Break(()),
                }
            });
            read.map_err(|e| decode(self.columns.path(), e))?;
            left = later;
        }
        Ok(())
    }

    /// The pages without a gap that have the first ones of the wanted rows.
    fn neighbours(&self, locations: &[PageLocation], wanted: &[u32]) -> Result<Run> {
        let wrong = || content(self.columns.path(), "its page index is wrong");
        let page_of = |row: u32| {
            let begun = |page: &PageLocation| page.first_row_index <= i64::from(row);
            locations.partition_point(begun).checked_sub(1)
        };
        let begin = wanted.first().and_then(|row| page_of(*row)).ok_or_else(wrong)?;
        let (mut end, mut count) = (begin, 0);
        for row in wanted {
            let page = page_of(*row).ok_or_else(wrong)?;
            if page > end {
                break;
            }
            end = page + 1;
            count += 1;
        }
        let run = || {
            let (first, last) = (locations.get(begin)?, locations.get(end.checked_sub(1)?)?);
            let bytes = u64::try_from(first.offset).ok()?
                ..u64::try_from(last.offset.checked_add(last.compressed_page_size.into())?).ok()?;
            let to = locations.get(end).map(|next| usize::try_from(next.first_row_index));
            let to = to.unwrap_or(Ok(self.rows())).ok()?;
            Some(Run {
                bytes,
                rows: usize::try_from(first.first_row_index).ok()?..to,
                wanted: count,
            })
        };
        run().ok_or_else(wrong)
    }

    fn rows(&self) -> usize {
        self.group.rows as usize
    }

    fn chunk(&self, at: usize) -> Result<&'a ColumnChunkMetaData> {
        self.columns.chunk(self.group, at)
    }

    /// The number of a column that is one of these.
    fn base(&self, column: &ColumnName, of: &[ColumnName]) -> Result<usize> {
        let is_it = of.contains(column);
        column.base().filter(|_| is_it).ok_or_else(|| self.no_such(column))
    }

    fn typed(&self, property: &str, kind: ColumnType) -> Result<usize> {
        let at = self.columns.typed_at(property, kind);
        at.ok_or_else(|| self.no_such(&ColumnName::Typed(property.to_owned())))
    }

    fn with_dictionary(&self, column: &ColumnName) -> Result<usize> {
        match column {
            ColumnName::Typed(property) => self.typed(property, ColumnType::Text),
            base => self.base(base, &[ColumnName::Event]),
        }
    }

    fn plain(&self, column: &ColumnName) -> Result<usize> {
        use ColumnName::{DistinctId, ElementsChain, Properties, Uuid};
        self.base(column, &[Uuid, DistinctId, ElementsChain, Properties])
    }

    fn no_such(&self, column: &ColumnName) -> Error {
        Error::NoSuchColumn { file: self.columns.path().to_owned(), column: column.to_string() }
    }

    /// A reader of the values of a column.
    fn values(&self, at: usize) -> Result<ColumnReader> {
        let chunk = self.chunk(at)?;
        let pages = self.pages(chunk)?;
        Ok(get_column_reader(chunk.column_descr_ptr(), Box::new(pages.reader)))
    }

    /// All pages of a column.
    fn pages(&self, chunk: &ColumnChunkMetaData) -> Result<Pages> {
        self.pages_between(chunk, self.byte_range(chunk)?, self.rows())
    }

    /// Some neighbouring pages of a column, which have so many rows. Their bytes are read.
    fn pages_between(
        &self,
        chunk: &ColumnChunkMetaData,
        bytes: Range<u64>,
        rows: usize,
    ) -> Result<Pages> {
        let wrong = || content(self.columns.path(), "a column has no such bytes");
        let all = self.byte_range(chunk)?;
        if bytes.start < all.start || bytes.end > all.end || bytes.is_empty() {
            return Err(wrong());
        }
        let start = i64::try_from(bytes.start).map_err(|_| wrong())?;
        let length = i64::try_from(bytes.end - bytes.start).map_err(|_| wrong())?;
        let has_dictionary = bytes.start == all.start && chunk.dictionary_page_offset().is_some();
        let builder = chunk.clone().into_builder().set_total_compressed_size(length);
        let builder = match has_dictionary {
            true => builder,
            false => builder.set_dictionary_page_offset(None).set_data_page_offset(start),
        };
        let (begin, read) = self.columns.segment.inner.file.read(bytes.clone())?;
        let from = usize::try_from(bytes.start - begin).map_err(|_| wrong())?;
        let to = usize::try_from(bytes.end - begin).map_err(|_| wrong())?;
        if to > read.len() {
            return Err(wrong());
        }
        let part = ColumnBytes { start: bytes.start, bytes: read.slice(from..to) };
        let is_optional = chunk.column_descr().max_def_level() > 0;
        let open = || SerializedPageReader::new(Arc::new(part), &builder.build()?, rows, None);
        let reader = open().map_err(|e| decode(self.columns.path(), e))?;
        Ok(Pages { reader, left: rows, has_dictionary, is_optional })
    }

    fn byte_range(&self, chunk: &ColumnChunkMetaData) -> Result<Range<u64>> {
        let start = chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset());
        let range = || {
            let start = u64::try_from(start).ok()?;
            Some(start..start.checked_add(u64::try_from(chunk.compressed_size()).ok()?)?)
        };
        range().ok_or_else(|| content(self.columns.path(), "a column has no such bytes"))
    }
}

/// Pages without a gap.
struct Run {
    bytes: Range<u64>,
    /// Counted from the beginning of the group.
    rows: Range<usize>,
    /// The number of wanted rows that these pages have.
    wanted: usize,
}

/// Reads all values of a column, which must have so many rows.
fn read_all<T: DataType>(
    mut reader: ColumnReaderImpl<T>,
    rows: usize,
    definitions: &mut Vec<i16>,
    values: &mut Vec<T::T>,
) -> Result<(), ParquetError> {
    definitions.clear();
    values.clear();
    let mut total = 0;
    while total <= rows {
        // One more, to see that there is none.
        let most = rows - total + 1;
        let (read, _, _) = reader.read_records(most, Some(definitions), None, values)?;
        if read == 0 {
            break;
        }
        total += read;
    }
    match total == rows {
        true => Ok(()),
        false => Err(missing()),
    }
}
