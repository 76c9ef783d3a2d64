//! Writing a segment.
//!
//! The first events wait in memory until they are enough to choose the typed columns
//! (`typed`). Then each block is encoded and compressed column by column; a group of rows is
//! in memory in this form until it is complete, because Parquet has its columns one after
//! another.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};
use parquet::column::page::{CompressedPage, PageWriteSpec, PageWriter};
use parquet::column::writer::{ColumnWriter, get_column_writer};
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterPropertiesPtr;
use parquet::file::writer::{SerializedFileWriter, SerializedPageWriter, TrackedWrite};
use parquet::schema::types::{ColumnDescPtr, SchemaDescriptor};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use uuid::fmt::Hyphenated;

use super::typed::{ColumnType, Sample, Scalar, TypedColumn, each, scalar};
use super::{BlockRows, Options, OwnedEvent, SegmentEvent, columns};
use crate::checked::CheckedWriter;
use crate::error::{Error, Result};

/// The largest number of rows in a group.
pub(super) const GROUP_ROWS: usize = 64_000;
/// Compressed bytes at which a group ends.
const GROUP_BYTES: usize = 32 << 20;
/// Events from which the typed columns are chosen.
const SAMPLE_ROWS: usize = 16_000;
/// The largest arrival number: the column is signed, because some readers have no other.
const LAST_ARRIVAL: u64 = i64::MAX.cast_unsigned();
/// Bytes of events that wait until the typed columns are chosen.
const SAMPLE_BYTES: usize = 16 << 20;

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The number of events.
    pub rows: u64,
    /// The size of the file, bytes.
    pub bytes: u64,
    /// The blocks, in order.
    pub blocks: Vec<BlockRows>,
    /// Earliest event time, microseconds since 1970.
    pub from_time: i64,
    /// Latest event time, microseconds since 1970.
    pub to_time: i64,
    /// The smallest arrival number.
    pub from_arrival: u64,
    /// The largest arrival number.
    pub to_arrival: u64,
    /// The typed columns, in the order of the names of their properties.
    pub typed: Vec<TypedColumn>,
    /// Checksums of the file, for [`Segment::open`](super::Segment::open): four bytes for
    /// each 16 KiB, and five more.
    pub sums: Vec<u8>,
}

/// A segment that is being written.
///
/// It holds up to 16 MiB of events until the typed columns are chosen, later up to 32 MiB of
/// compressed events, and in each case the encoded form of one block.
pub struct Writer {
    path: PathBuf,
    options: Options,
    state: State,
    blocks: Vec<BlockRows>,
    rows: u64,
    from_time: i64,
    to_time: i64,
    from_arrival: u64,
    to_arrival: u64,
}

enum State {
    /// The typed columns are not chosen yet.
    Sampling {
        file: CheckedWriter,
        blocks: Vec<Vec<OwnedEvent>>,
        rows: usize,
        bytes: usize,
    },
    Writing(Box<Groups>),
    /// Writing has failed.
    Failed,
}

impl Writer {
    /// Begins a segment that will have this name. Until [`finish`](Self::finish) it is
    /// `<name>.tmp`, which is removed when the writer is dropped.
    ///
    /// # Errors
    /// When the file cannot be created.
    pub fn create(path: &Path, options: &Options) -> Result<Self> {
        let file = CheckedWriter::create(path)?;
        let state = State::Sampling { file, blocks: Vec::new(), rows: 0, bytes: 0 };
        Ok(Self::new(path, options, state))
    }

    /// As [`create`](Self::create), with typed columns that are chosen already.
    pub(super) fn with_columns(
        path: &Path,
        options: &Options,
        typed: Vec<TypedColumn>,
    ) -> Result<Self> {
        let groups = Groups::begin(CheckedWriter::create(path)?, options.compression, typed)?;
        Ok(Self::new(path, options, State::Writing(Box::new(groups))))
    }

    fn new(path: &Path, options: &Options, state: State) -> Self {
        Self {
            path: path.to_owned(),
            options: options.clone(),
            state,
            blocks: Vec::new(),
            rows: 0,
            from_time: i64::MAX,
            to_time: i64::MIN,
            from_arrival: u64::MAX,
            to_arrival: 0,
        }
    }

    /// Adds a block. The arrival number of its first event must be greater than that of the
    /// block before.
    ///
    /// # Errors
    /// When the block is empty, not in order, or too large for a group of rows (64,000), has
    /// an arrival number of 2^63 or more, or cannot be written.
    pub fn push_block(&mut self, events: &[SegmentEvent<'_>]) -> Result<()> {
        let first = events.first().map_or(0, |event| event.arrival);
        self.push_block_of(first, events)
    }

    /// Adds what is left of a block whose first events may have been removed: the block keeps
    /// the id with the arrival number `first`.
    ///
    /// # Errors
    /// As [`push_block`](Self::push_block), and when an event is before `first`.
    pub fn push_block_of(&mut self, first: u64, events: &[SegmentEvent<'_>]) -> Result<()> {
        let wrong = |what| Error::NotInOrder { file: self.path.clone(), what };
        let begins = events.first().ok_or_else(|| wrong("a block has no events"))?.arrival;
        if begins < first {
            return Err(wrong("a block has an event before its first one"));
        }
        if self.blocks.last().is_some_and(|last| last.first >= first) {
            return Err(wrong("a block does not begin after the block before"));
        }
        let rows = match u32::try_from(events.len()) {
            Ok(rows) if events.len() <= GROUP_ROWS => rows,
            _ => return Err(wrong("a block has more events than a group of rows")),
        };
        if let Some(event) = events.iter().find(|event| event.arrival > LAST_ARRIVAL) {
            let (file, arrival) = (self.path.clone(), event.arrival);
            return Err(Error::ArrivalTooLarge { file, arrival });
        }
        self.blocks.push(BlockRows { first, row: self.rows, rows });
        self.rows += u64::from(rows);
        for event in events {
            self.from_time = self.from_time.min(event.timestamp);
            self.to_time = self.to_time.max(event.timestamp);
            self.from_arrival = self.from_arrival.min(event.arrival);
            self.to_arrival = self.to_arrival.max(event.arrival);
        }
        match &mut self.state {
            State::Sampling { blocks, rows, bytes, .. } => {
                *rows += events.len();
                *bytes += events.iter().map(size).sum::<usize>();
                blocks.push(events.iter().map(OwnedEvent::from).collect());
                match *rows >= SAMPLE_ROWS || *bytes >= SAMPLE_BYTES {
                    true => self.end_sampling(),
                    false => Ok(()),
                }
            }
            State::Writing(groups) => groups.push(events),
            State::Failed => Err(failed(&self.path)),
        }
    }

    /// Chooses the typed columns, and writes the blocks that wait.
    fn end_sampling(&mut self) -> Result<()> {
        let State::Sampling { file, blocks, .. } =
            std::mem::replace(&mut self.state, State::Failed)
        else {
            return Err(failed(&self.path));
        };
        let mut sample = Sample::default();
        for event in blocks.iter().flatten() {
            sample.add(&event.properties);
        }
        let mut groups =
            Groups::begin(file, self.options.compression, sample.columns(&self.options.known))?;
        for events in blocks {
            let events: Vec<SegmentEvent<'_>> = events.iter().map(SegmentEvent::from).collect();
            groups.push(&events)?;
        }
        self.state = State::Writing(Box::new(groups));
        Ok(())
    }

    /// Writes the rest, and gives the file its name. File and directory are synced.
    ///
    /// # Errors
    /// When there is no block, a write before has failed, or the file cannot be written.
    pub fn finish(mut self) -> Result<Written> {
        if self.blocks.is_empty() {
            return Err(Error::NotInOrder { file: self.path, what: "a segment has no blocks" });
        }
        if matches!(self.state, State::Sampling { .. }) {
            self.end_sampling()?;
        }
        let State::Writing(groups) = self.state else { return Err(failed(&self.path)) };
        let typed = groups.typed.clone();
        let (bytes, sums) = groups.finish(&self.blocks)?;
        Ok(Written {
            rows: self.rows,
            bytes,
            blocks: self.blocks,
            from_time: self.from_time,
            to_time: self.to_time,
            from_arrival: self.from_arrival,
            to_arrival: self.to_arrival,
            typed,
            sums,
        })
    }
}

fn failed(path: &Path) -> Error {
    Error::Encode { file: path.to_owned(), reason: "a write before has failed".to_owned() }
}

/// Memory that an event takes while it waits, bytes.
fn size(event: &SegmentEvent<'_>) -> usize {
    let texts = [event.event, event.distinct_id, event.properties, event.elements_chain];
    let warnings: usize = event.warnings.iter().map(|code| size_of::<String>() + code.len()).sum();
    size_of::<OwnedEvent>() + texts.iter().map(|text| text.len()).sum::<usize>() + warnings
}

/// The file, and the group of rows that is being filled.
struct Groups {
    path: PathBuf,
    writer: SerializedFileWriter<CheckedWriter>,
    properties: WriterPropertiesPtr,
    typed: Vec<TypedColumn>,
    /// For each typed column, the number of events whose value it does not hold.
    lost: Vec<u64>,
    columns: Vec<Column>,
    rows: usize,
}

/// A column of the group. It is compressed in memory.
struct Column {
    writer: ColumnWriter<'static>,
    pages: Pages,
}

impl Groups {
    fn begin(file: CheckedWriter, level: i32, typed: Vec<TypedColumn>) -> Result<Self> {
        let path = file.path().to_owned();
        let begin = || -> Result<_, ParquetError> {
            let schema = columns::schema(&typed)?;
            let descriptor = SchemaDescriptor::new(Arc::clone(&schema));
            let properties = columns::properties(&descriptor, level, GROUP_ROWS)?;
            let writer = SerializedFileWriter::new(file, schema, Arc::clone(&properties))?;
            Ok((writer, properties))
        };
        let (writer, properties) = begin().map_err(|e| encode(&path, e))?;
        let lost = vec![0; typed.len()];
        Ok(Self { path, writer, properties, typed, lost, columns: Vec::new(), rows: 0 })
    }

    fn push(&mut self, events: &[SegmentEvent<'_>]) -> Result<()> {
        let path = self.path.clone();
        self.encode(events).map_err(|e| encode(&path, e))
    }

    fn encode(&mut self, events: &[SegmentEvent<'_>]) -> Result<(), ParquetError> {
        if self.rows + events.len() > GROUP_ROWS {
            self.close_group()?;
        }
        if self.columns.is_empty() {
            let descriptors = self.writer.schema_descr().columns();
            self.columns = descriptors.iter().map(|of| Column::new(of, &self.properties)).collect();
        }
        let (base, typed) = self
            .columns
            .split_at_mut_checked(columns::BASE.len())
            .ok_or_else(|| general("a column is missing"))?;
        encode_base(base, events)?;
        encode_typed(typed, &self.typed, &mut self.lost, events)?;
        self.rows += events.len();
        let compressed: usize = self.columns.iter().map(|column| column.pages.len()).sum();
        match compressed >= GROUP_BYTES {
            true => self.close_group(),
            false => Ok(()),
        }
    }

    fn close_group(&mut self) -> Result<(), ParquetError> {
        if self.rows == 0 {
            return Ok(());
        }
        let mut group = self.writer.next_row_group()?;
        for column in self.columns.drain(..) {
            let closed = column.writer.close()?;
            group.append_column(&column.pages.take(), closed)?;
        }
        group.close()?;
        self.rows = 0;
        Ok(())
    }

    fn finish(mut self, blocks: &[BlockRows]) -> Result<(u64, Vec<u8>)> {
        let path = self.path.clone();
        let end = || -> Result<_, ParquetError> {
            self.close_group()?;
            let mut text = String::new();
            for (at, block) in blocks.iter().enumerate() {
                let comma = if at == 0 { "" } else { "," };
                write!(text, "{comma}{}:{}", block.first, block.rows)
                    .map_err(|e| general(&e.to_string()))?;
            }
            let blocks = KeyValue::new(columns::BLOCKS_KEY.to_owned(), text);
            self.writer.append_key_value_metadata(blocks);
            let typed = KeyValue::new(columns::TYPED_KEY.to_owned(), self.typed_text());
            self.writer.append_key_value_metadata(typed);
            self.writer.into_inner()
        };
        end().map_err(|e| encode(&path, e))?.finish(&[])
    }

    /// The value of [`columns::TYPED_KEY`].
    fn typed_text(&self) -> String {
        let mut text = String::new();
        for (column, lost) in self.typed.iter().zip(&self.lost) {
            if !text.is_empty() {
                text.push(',');
            }
            text.extend(utf8_percent_encode(&column.property, NON_ALPHANUMERIC));
            text.push(':');
            text.push_str(&lost.to_string());
        }
        text
    }
}

impl Column {
    fn new(descriptor: &ColumnDescPtr, properties: &WriterPropertiesPtr) -> Self {
        let pages = Pages::default();
        let writer = get_column_writer(
            Arc::clone(descriptor),
            Arc::clone(properties),
            Box::new(pages.clone()),
        );
        Self { writer, pages }
    }
}

/// The compressed pages of a column. Its writer and the group share them.
#[derive(Clone)]
struct Pages(Arc<Mutex<TrackedWrite<Vec<u8>>>>);

impl Default for Pages {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(TrackedWrite::new(Vec::new()))))
    }
}

impl Pages {
    fn lock(&self) -> MutexGuard<'_, TrackedWrite<Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn len(&self) -> usize {
        self.lock().bytes_written()
    }

    fn take(&self) -> Bytes {
        let mut pages = self.lock();
        // It buffers small writes.
        let _ = pages.flush();
        std::mem::take(pages.inner_mut()).into()
    }
}

impl PageWriter for Pages {
    fn write_page(&mut self, page: CompressedPage) -> Result<PageWriteSpec, ParquetError> {
        SerializedPageWriter::new(&mut self.lock()).write_page(page)
    }

    fn close(&mut self) -> Result<(), ParquetError> {
        Ok(self.lock().flush()?)
    }
}

/// Encodes the columns that an event consists of.
fn encode_base(base: &mut [Column], events: &[SegmentEvent<'_>]) -> Result<(), ParquetError> {
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
    ] = base
    else {
        return Err(general("a column is missing"));
    };
    // They are below 2^63.
    numbers(arrival, events.iter().map(|event| event.arrival.cast_signed()))?;
    uuids(uuid, events)?;
    texts(event, events.iter().map(|event| event.event), None, None)?;
    texts(distinct_id, events.iter().map(|event| event.distinct_id), None, None)?;
    numbers(timestamp, events.iter().map(|event| event.timestamp))?;
    numbers(received_at, events.iter().map(|event| event.received_at))?;
    texts(elements_chain, events.iter().map(|event| event.elements_chain), None, None)?;
    booleans(historical, events.iter().map(|event| event.historical), None)?;
    lists(warnings, events)?;
    texts(properties, events.iter().map(|event| event.properties), None, None)
}

/// The value of a property in one event.
#[derive(Debug, Clone, PartialEq)]
enum Found<'a> {
    /// None, or `null`.
    Nothing,
    /// A value that no column can hold, or properties that cannot be read to their end.
    Other,
    Scalar(Scalar<'a>),
}

/// Encodes the typed columns, and adds to `lost` the events whose value a column does not
/// hold.
fn encode_typed(
    columns: &mut [Column],
    typed: &[TypedColumn],
    lost: &mut [u64],
    events: &[SegmentEvent<'_>],
) -> Result<(), ParquetError> {
    if typed.is_empty() {
        return Ok(());
    }
    let mut values = vec![vec![Found::Nothing; events.len()]; typed.len()];
    for (row, event) in events.iter().enumerate() {
        let is_complete = each(event.properties, |name, json| {
            // They are in the order of their properties.
            let at = typed.binary_search_by(|column| column.property.as_str().cmp(name));
            let value = at.ok().and_then(|at| values.get_mut(at)?.get_mut(row));
            if let Some(value) = value {
                *value = match json {
                    "null" => Found::Nothing,
                    _ => scalar(json).map_or(Found::Other, Found::Scalar),
                };
            }
        });
        if !is_complete {
            // Another value may follow.
            for value in values.iter_mut().filter_map(|values| values.get_mut(row)) {
                *value = Found::Other;
            }
        }
    }
    for (((column, of), values), lost) in columns.iter_mut().zip(typed).zip(values).zip(lost) {
        *lost += encode_values(column, of.kind, &values)?;
    }
    Ok(())
}

/// Encodes the values of one typed column. A value of another type becomes null. Returns
/// how many of them there are.
fn encode_values(
    column: &mut Column,
    kind: ColumnType,
    values: &[Found<'_>],
) -> Result<u64, ParquetError> {
    let is_of_kind = |value: &Found<'_>| {
        matches!(
            (kind, value),
            (ColumnType::Text, Found::Scalar(Scalar::Text(_)))
                | (ColumnType::Number, Found::Scalar(Scalar::Number(_)))
                | (ColumnType::Boolean, Found::Scalar(Scalar::Boolean(_)))
        )
    };
    let is_lost = |value: &&Found<'_>| !matches!(value, Found::Nothing) && !is_of_kind(value);
    let lost = values.iter().filter(is_lost).count() as u64;
    let levels: Vec<i16> = values.iter().map(|value| i16::from(is_of_kind(value))).collect();
    let levels = Some(&levels[..]);
    let values = values.iter().filter_map(|value| match value {
        Found::Scalar(scalar) => Some(scalar),
        Found::Nothing | Found::Other => None,
    });
    match kind {
        ColumnType::Text => {
            let values = values.filter_map(|value| match value {
                Scalar::Text(text) => Some(text.as_ref()),
                Scalar::Number(_) | Scalar::Boolean(_) => None,
            });
            texts(column, values, levels, None)?;
        }
        ColumnType::Number => {
            let values: Vec<f64> = values
                .filter_map(|value| match value {
                    Scalar::Number(number) => Some(*number),
                    Scalar::Text(_) | Scalar::Boolean(_) => None,
                })
                .collect();
            let ColumnWriter::DoubleColumnWriter(writer) = &mut column.writer else {
                return Err(other_type());
            };
            writer.write_batch(&values, levels, None)?;
        }
        ColumnType::Boolean => {
            let values = values.filter_map(|value| match value {
                Scalar::Boolean(boolean) => Some(*boolean),
                Scalar::Text(_) | Scalar::Number(_) => None,
            });
            booleans(column, values, levels)?;
        }
    }
    Ok(lost)
}

fn numbers(column: &mut Column, values: impl Iterator<Item = i64>) -> Result<(), ParquetError> {
    let ColumnWriter::Int64ColumnWriter(writer) = &mut column.writer else {
        return Err(other_type());
    };
    writer.write_batch(&values.collect::<Vec<_>>(), None, None).map(|_| ())
}

fn booleans(
    column: &mut Column,
    values: impl Iterator<Item = bool>,
    levels: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let ColumnWriter::BoolColumnWriter(writer) = &mut column.writer else {
        return Err(other_type());
    };
    writer.write_batch(&values.collect::<Vec<_>>(), levels, None).map(|_| ())
}

fn uuids(column: &mut Column, events: &[SegmentEvent<'_>]) -> Result<(), ParquetError> {
    let ColumnWriter::ByteArrayColumnWriter(writer) = &mut column.writer else {
        return Err(other_type());
    };
    // One allocation for all of them.
    let mut all = BytesMut::with_capacity(events.len() * Hyphenated::LENGTH);
    let mut text = [0; Hyphenated::LENGTH];
    for event in events {
        all.extend_from_slice(event.uuid.hyphenated().encode_lower(&mut text).as_bytes());
    }
    let of = |_: &SegmentEvent<'_>| ByteArray::from(all.split_to(Hyphenated::LENGTH).freeze());
    let values: Vec<ByteArray> = events.iter().map(of).collect();
    writer.write_batch(&values, None, None).map(|_| ())
}

fn texts<'a>(
    column: &mut Column,
    values: impl Iterator<Item = &'a str> + Clone,
    definitions: Option<&[i16]>,
    repetitions: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let ColumnWriter::ByteArrayColumnWriter(writer) = &mut column.writer else {
        return Err(other_type());
    };
    // One allocation for all of them.
    let mut all = BytesMut::with_capacity(values.clone().map(str::len).sum());
    for text in values.clone() {
        all.extend_from_slice(text.as_bytes());
    }
    let values: Vec<ByteArray> =
        values.map(|text| ByteArray::from(all.split_to(text.len()).freeze())).collect();
    writer.write_batch(&values, definitions, repetitions).map(|_| ())
}

/// Encodes lists of texts: for each text, whether it begins a row and that it is there; for
/// an empty list, that a row begins without one.
fn lists(column: &mut Column, events: &[SegmentEvent<'_>]) -> Result<(), ParquetError> {
    let (mut definitions, mut repetitions) = (Vec::new(), Vec::new());
    for event in events {
        definitions.push(i16::from(!event.warnings.is_empty()));
        repetitions.push(0);
        for _ in event.warnings.iter().skip(1) {
            definitions.push(1);
            repetitions.push(1);
        }
    }
    let codes = events.iter().flat_map(|event| event.warnings).map(String::as_str);
    texts(column, codes, Some(&definitions), Some(&repetitions))
}

fn general(what: &str) -> ParquetError {
    ParquetError::General(what.to_owned())
}

fn other_type() -> ParquetError {
    general("a column has another type")
}

/// What the writer of Parquet says, as our error: what the system said, if it did.
fn encode(path: &Path, error: ParquetError) -> Error {
    let reason = error.to_string();
    match error {
        ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(source) => Error::io(path, *source),
            Err(_) => Error::Encode { file: path.to_owned(), reason },
        },
        _ => Error::Encode { file: path.to_owned(), reason },
    }
}
