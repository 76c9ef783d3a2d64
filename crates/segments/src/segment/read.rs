//! Reading a segment: the footer once, then the pages of the wanted rows.

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use parquet::column::reader::{ColumnReader, get_column_reader};
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::{
    ColumnChunkMask, ColumnChunkMetaData, PageIndexPolicy, ParquetMetaData, ParquetMetaDataOptions,
    ParquetMetaDataReader, ParquetStatisticsPolicy,
};
use parquet::file::page_index::offset_index::PageLocation;
use parquet::file::serialized_reader::SerializedPageReader;
use uuid::Uuid;

use super::{BlockRows, OwnedEvent, columns};
use crate::checked::{CachedReader, CheckedFile};
use crate::error::{Error, Part, Result};

/// A segment to read from. A copy shares the file and what is known of it.
///
/// It holds where the pages of the columns are, but not those of typed columns: about 400
/// bytes for each block of 1,000 events, and four for each 16 KiB of the file
/// ([`memory`](Self::memory)). Reading takes about three times the size of the block for a
/// moment.
#[derive(Clone)]
pub struct Segment {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) file: Arc<CheckedFile>,
    rows: u64,
    pub(super) groups: Vec<Group>,
    blocks: Vec<BlockRows>,
    memory: usize,
}

/// A group of rows.
pub(super) struct Group {
    pub(super) first_row: u64,
    pub(super) rows: u64,
    /// As in [`columns::BASE`].
    pub(super) columns: Vec<Column>,
}

pub(super) struct Column {
    chunk: ColumnChunkMetaData,
    pub(super) pages: Vec<PageLocation>,
}

impl Segment {
    /// Opens a segment. `bytes` and `sums` are those of [`Written`](super::Written).
    ///
    /// # Errors
    /// When the file cannot be read, is damaged, or has an unknown format.
    pub fn open(path: &Path, bytes: u64, sums: &[u8]) -> Result<Self> {
        let file = Arc::new(CheckedFile::open(path, bytes, sums)?);
        let reader = CachedReader::new(Arc::clone(&file));
        // Statistics serve other readers.
        let options = ParquetMetaDataOptions::new()
            .with_column_stats_policy(ParquetStatisticsPolicy::SkipAll)
            .with_encoding_stats_policy(ParquetStatisticsPolicy::SkipAll)
            .with_size_stats_policy(ParquetStatisticsPolicy::SkipAll);
        let metadata = ParquetMetaDataReader::new()
            .with_offset_index_policy(PageIndexPolicy::Required)
            .with_offset_index_mask(ColumnChunkMask::columns(0..columns::BASE.len()))
            .with_metadata_options(Some(options))
            .parse_and_finish(&reader)
            .map_err(|e| decode(path, e))?;
        check_format(path, &metadata)?;
        let groups = groups(path, &metadata)?;
        let rows = groups.iter().map(|group| group.rows).sum();
        let blocks = blocks(path, &metadata)?;
        if blocks.last().is_none_or(|last| last.row + u64::from(last.rows) != rows) {
            return Err(content(path, "its blocks have another number of rows"));
        }
        let mut inner = Inner { file, rows, groups, blocks, memory: 0 };
        inner.memory = inner.size();
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The number of events.
    pub fn rows(&self) -> u64 {
        self.inner.rows
    }

    /// The blocks, in order.
    pub fn blocks(&self) -> &[BlockRows] {
        &self.inner.blocks
    }

    /// The block that begins with this arrival number.
    pub fn find_block(&self, first: u64) -> Option<BlockRows> {
        let blocks = &self.inner.blocks;
        blocks.get(blocks.binary_search_by_key(&first, |block| block.first).ok()?).copied()
    }

    /// Whether other copies of this value exist.
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.inner) > 1
    }

    /// Roughly the memory that this segment takes while it is open, bytes. Copies share it.
    pub fn memory(&self) -> usize {
        self.inner.memory
    }

    /// The events of `rows` rows from `first_row` on, in order.
    ///
    /// # Errors
    /// When the segment has no such rows, or cannot be read, or is damaged.
    pub fn block(&self, first_row: u64, rows: u32) -> Result<Vec<OwnedEvent>> {
        self.reader().rows(first_row, rows)
    }

    /// The event in a row.
    ///
    /// # Errors
    /// As [`block`](Self::block).
    pub fn row(&self, row: u64) -> Result<OwnedEvent> {
        let found = self.block(row, 1)?.pop();
        found.ok_or_else(|| content(self.inner.file.path(), "a row is missing"))
    }

    /// Reads the whole file and compares it with its checksums.
    ///
    /// # Errors
    /// When the file cannot be read, or is damaged.
    pub fn verify(&self) -> Result<()> {
        self.inner.file.verify()
    }

    /// For each column that an event consists of, the rows that its pages begin with.
    #[cfg(test)]
    pub(super) fn first_rows_of_pages(&self) -> Vec<Vec<u64>> {
        let mut columns = vec![Vec::new(); columns::BASE.len()];
        for group in &self.inner.groups {
            for (rows, column) in columns.iter_mut().zip(&group.columns) {
                let first = |page: &PageLocation| group.first_row + page.first_row_index as u64;
                rows.extend(column.pages.iter().map(first));
            }
        }
        columns
    }

    /// A reader for several neighbouring blocks. It keeps small reads, up to 1.5 MiB.
    pub(super) fn reader(&self) -> Reader<'_> {
        let file = CachedReader::new(Arc::clone(&self.inner.file));
        Reader { inner: &self.inner, file: Arc::new(file) }
    }
}

impl Inner {
    fn size(&self) -> usize {
        let of_column = |column: &Column| size_of::<Column>() + size_of_val(&column.pages[..]);
        let of_group =
            |group: &Group| size_of::<Group>() + group.columns.iter().map(of_column).sum::<usize>();
        size_of::<Self>()
            + self.file.memory()
            + size_of_val(&self.blocks[..])
            + self.groups.iter().map(of_group).sum::<usize>()
    }
}

/// Reads rows.
pub(super) struct Reader<'a> {
    inner: &'a Inner,
    file: Arc<CachedReader>,
}

impl Reader<'_> {
    /// The events of `rows` rows from `first` on, in order.
    pub(super) fn rows(&self, first: u64, rows: u32) -> Result<Vec<OwnedEvent>> {
        let path = self.inner.file.path();
        let end = first.saturating_add(rows.into());
        if end > self.inner.rows {
            return Err(Error::NoSuchRows { file: path.to_owned(), first, end });
        }
        let mut events = Vec::with_capacity(rows as usize);
        let groups = &self.inner.groups;
        let begin = groups.partition_point(|group| group.first_row + group.rows <= first);
        for group in groups.iter().skip(begin).take_while(|group| group.first_row < end) {
            let from = first.max(group.first_row) - group.first_row;
            let to = end.min(group.first_row + group.rows) - group.first_row;
            self.group_rows(group, from..to, &mut events).map_err(|e| decode(path, e))?;
        }
        match events.len() == rows as usize {
            true => Ok(events),
            false => Err(content(path, "rows are missing")),
        }
    }

    fn group_rows(
        &self,
        group: &Group,
        rows: Range<u64>,
        events: &mut Vec<OwnedEvent>,
    ) -> Result<(), ParquetError> {
        let [
            arrival,
            uuid,
            event,
            distinct_id,
            timestamp,
            received_at,
            elements_chain,
            historical,
            warnings,
            properties,
        ] = &group.columns[..]
        else {
            return Err(missing());
        };
        let wanted = WantedRows { file: &self.file, group_rows: group.rows, rows };
        let mut arrival = wanted.numbers(arrival)?.into_iter();
        let mut uuid = wanted.uuids(uuid)?.into_iter();
        let mut event = wanted.texts(event)?.into_iter();
        let mut distinct_id = wanted.texts(distinct_id)?.into_iter();
        let mut timestamp = wanted.numbers(timestamp)?.into_iter();
        let mut received_at = wanted.numbers(received_at)?.into_iter();
        let mut elements_chain = wanted.texts(elements_chain)?.into_iter();
        let mut historical = wanted.booleans(historical)?.into_iter();
        let mut warnings = wanted.lists(warnings)?.into_iter();
        for properties in wanted.texts(properties)? {
            events.push(OwnedEvent {
                arrival: arrival.next().ok_or_else(missing)?.cast_unsigned(),
                uuid: uuid.next().ok_or_else(missing)?,
                event: event.next().ok_or_else(missing)?,
                distinct_id: distinct_id.next().ok_or_else(missing)?,
                timestamp: timestamp.next().ok_or_else(missing)?,
                received_at: received_at.next().ok_or_else(missing)?,
                properties,
                elements_chain: elements_chain.next().ok_or_else(missing)?,
                historical: historical.next().ok_or_else(missing)?,
                warnings: warnings.next().ok_or_else(missing)?,
            });
        }
        Ok(())
    }
}

/// The wanted rows of a group.
struct WantedRows<'a> {
    file: &'a Arc<CachedReader>,
    group_rows: u64,
    /// Counted from the beginning of the group.
    rows: Range<u64>,
}

/// Skips to the wanted rows of a column, and collects their values with `$more`.
macro_rules! read {
    ($wanted:ident, $column:ident, $variant:ident, $levels:expr) => {{
        let ColumnReader::$variant(mut reader) = $wanted.open($column)? else {
            return Err(ParquetError::General("a column has another type".to_owned()));
        };
        let skip = count($wanted.rows.start)?;
        if reader.skip_records(skip)? != skip {
            return Err(missing());
        }
        let mut left = count($wanted.rows.end - $wanted.rows.start)?;
        let mut values = Vec::new();
        let levels: Option<(&mut Vec<i16>, &mut Vec<i16>)> = $levels;
        let (mut definitions, mut repetitions) = levels.unzip();
        while left > 0 {
            let (definitions, repetitions) =
                (definitions.as_deref_mut(), repetitions.as_deref_mut());
            let (rows, _, _) = reader.read_records(left, definitions, repetitions, &mut values)?;
            if rows == 0 {
                return Err(missing());
            }
            left = left.saturating_sub(rows);
        }
        values
    }};
}

impl WantedRows<'_> {
    fn open(&self, column: &Column) -> Result<ColumnReader, ParquetError> {
        let pages = SerializedPageReader::new(
            Arc::clone(self.file),
            &column.chunk,
            count(self.group_rows)?,
            Some(column.pages.clone()),
        )?;
        Ok(get_column_reader(column.chunk.column_descr_ptr(), Box::new(pages)))
    }

    fn numbers(&self, column: &Column) -> Result<Vec<i64>, ParquetError> {
        Ok(read!(self, column, Int64ColumnReader, None))
    }

    fn booleans(&self, column: &Column) -> Result<Vec<bool>, ParquetError> {
        Ok(read!(self, column, BoolColumnReader, None))
    }

    fn texts(&self, column: &Column) -> Result<Vec<String>, ParquetError> {
        let values = read!(self, column, ByteArrayColumnReader, None);
        values.iter().map(text).collect()
    }

    fn uuids(&self, column: &Column) -> Result<Vec<Uuid>, ParquetError> {
        let values = read!(self, column, ByteArrayColumnReader, None);
        let of = |value: &ByteArray| {
            let uuid = Uuid::try_parse_ascii(value.data());
            uuid.map_err(|e| ParquetError::General(e.to_string()))
        };
        values.iter().map(of).collect()
    }

    fn lists(&self, column: &Column) -> Result<Vec<Vec<String>>, ParquetError> {
        let (mut definitions, mut repetitions) = (Vec::new(), Vec::new());
        let values =
            read!(self, column, ByteArrayColumnReader, Some((&mut definitions, &mut repetitions)));
        let mut values = values.iter();
        let mut lists: Vec<Vec<String>> = Vec::new();
        for (definition, repetition) in definitions.into_iter().zip(repetitions) {
            if repetition == 0 {
                lists.push(Vec::new());
            }
            if definition > 0 {
                let list = lists.last_mut().ok_or_else(missing)?;
                list.push(text(values.next().ok_or_else(missing)?)?);
            }
        }
        Ok(lists)
    }
}

fn text(value: &ByteArray) -> Result<String, ParquetError> {
    value.as_utf8().map(str::to_owned)
}

pub(super) fn count(rows: u64) -> Result<usize, ParquetError> {
    usize::try_from(rows).map_err(|_| missing())
}

pub(super) fn missing() -> ParquetError {
    ParquetError::General("rows or columns are missing".to_owned())
}

/// Whether the file is a segment of the version that this code reads.
fn check_format(path: &Path, metadata: &ParquetMetaData) -> Result<()> {
    let version = value(metadata, columns::VERSION_KEY).unwrap_or("no segment");
    let schema = metadata.file_metadata().schema_descr();
    let names = schema.columns().iter().map(|column| column.path().string());
    if version == columns::VERSION && names.take(columns::BASE.len()).eq(columns::BASE) {
        return Ok(());
    }
    Err(Error::UnknownFormat { file: path.to_owned(), format: version.to_owned() })
}

fn groups(path: &Path, metadata: &ParquetMetaData) -> Result<Vec<Group>> {
    let mut groups = Vec::new();
    let mut first_row = 0;
    for (at, group) in metadata.row_groups().iter().enumerate() {
        let index = metadata.page_index_for_row_group(at);
        let column = |(number, chunk): (usize, &ColumnChunkMetaData)| {
            let pages = index.page_locations(number);
            let pages = pages.ok_or_else(|| content(path, "its page index is missing"))?;
            Ok(Column { chunk: chunk.clone(), pages: pages.clone() })
        };
        let columns = group.columns().iter().take(columns::BASE.len()).enumerate();
        let columns = columns.map(column).collect::<Result<Vec<_>>>()?;
        let rows = u64::try_from(group.num_rows())
            .map_err(|_| content(path, "a group has a negative number of rows"))?;
        groups.push(Group { first_row, rows, columns });
        first_row += rows;
    }
    Ok(groups)
}

/// The blocks, as the metadata of the file lists them.
fn blocks(path: &Path, metadata: &ParquetMetaData) -> Result<Vec<BlockRows>> {
    let wrong = || content(path, "its list of blocks is missing or wrong");
    let mut blocks: Vec<BlockRows> = Vec::new();
    let mut row = 0;
    for block in value(metadata, columns::BLOCKS_KEY).ok_or_else(wrong)?.split(',') {
        let (first, rows) = block.split_once(':').ok_or_else(wrong)?;
        let first = first.parse().map_err(|_| wrong())?;
        let rows: u32 = rows.parse().map_err(|_| wrong())?;
        blocks.push(BlockRows { first, row, rows });
        row += u64::from(rows);
    }
    Ok(blocks)
}

pub(super) fn value<'a>(metadata: &'a ParquetMetaData, key: &str) -> Option<&'a str> {
    let pairs = metadata.file_metadata().key_value_metadata()?;
    pairs.iter().find(|pair| pair.key == key)?.value.as_deref()
}

pub(super) fn content(path: &Path, reason: &str) -> Error {
    Error::damaged(path, Part::Content(reason.to_owned()))
}

/// What the reader of Parquet says, as our error: the one that reading the file gave, or
/// damage that the checksums do not show.
pub(super) fn decode(path: &Path, error: ParquetError) -> Error {
    let reason = error.to_string();
    let ParquetError::External(source) = error else { return content(path, &reason) };
    // It may have come through a stream.
    let source = match source.downcast::<io::Error>() {
        Ok(source) => source.into_inner(),
        Err(source) => Some(source),
    };
    match source.and_then(|source| source.downcast::<Error>().ok()) {
        Some(source) => *source,
        None => content(path, &reason),
    }
}
