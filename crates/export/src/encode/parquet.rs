//! Parquet: JSON and uuids are text, times are microseconds in UTC.
//!
//! Columns are written one by one with the writer of the `parquet` crate, without Arrow
//! arrays: those would double the number of crates.
//!
//! What belongs here: the format, groups of rows and the estimated size. What does not:
//! where a file ends (`destinations::files`).

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use parquet::basic::{
    BrotliLevel, Compression, GzipLevel, LogicalType, Repetition, TimeUnit, Type as Physical,
    ZstdLevel,
};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type, TypePtr};
use uuid::fmt::Hyphenated;

use super::output::Output;
use super::{Codec, EncodeError};
use crate::rows::{Cell, Column, Kind};

/// Bytes of values in a group of rows, before compression. The whole group is in memory
/// until it is complete, and up to twice as much for a moment while a column grows.
/// Roughly 8,000 events.
pub(super) const GROUP_BYTES: usize = 8 << 20;

/// A file of Parquet.
pub(crate) struct Parquet {
    writer: SerializedFileWriter<Output>,
    columns: Vec<Values>,
    /// Bytes of values after which a group ends.
    group: usize,
    /// Bytes of the values in memory.
    held: usize,
    /// Bytes of the values in the groups that are written, before compression.
    compressed: usize,
}

impl Parquet {
    /// A file that ends after roughly `max` bytes has no larger groups, because the
    /// compressed size is known only after a group.
    pub(super) fn new(
        codec: Option<Codec>,
        columns: &[Column],
        max: Option<u64>,
    ) -> Result<Self, EncodeError> {
        let fields = columns.iter().map(field).collect::<Result<Vec<_>, _>>()?;
        let schema = Type::group_type_builder("rows").with_fields(fields).build()?;
        let mut properties = WriterProperties::builder().set_compression(compression(codec));
        for column in columns {
            let path = ColumnPath::from(vec![column.name.clone()]);
            // No reader searches for the smallest JSON, and no two of these values are
            // equal.
            if column.kind == Kind::Json {
                properties =
                    properties.set_column_statistics_enabled(path.clone(), EnabledStatistics::None);
            }
            if matches!(column.kind, Kind::Json | Kind::Uuid | Kind::Timestamp) {
                properties = properties.set_column_dictionary_enabled(path, false);
            }
        }
        let (schema, properties) = (Arc::new(schema), Arc::new(properties.build()));
        let writer = SerializedFileWriter::new(Output::default(), schema, properties)?;
        let columns = columns.iter().map(|column| Values::new(column.kind)).collect();
        let group = max.and_then(|max| usize::try_from(max).ok()).unwrap_or(usize::MAX);
        Ok(Self { writer, columns, group: group.min(GROUP_BYTES), held: 0, compressed: 0 })
    }

    pub(super) fn write(&mut self, rows: &[Vec<Cell>]) -> Result<(), EncodeError> {
        for row in rows {
            for (at, column) in self.columns.iter_mut().enumerate() {
                self.held += column.push(row.get(at).unwrap_or(&Cell::Null));
            }
            if self.held >= self.group {
                self.close_group()?;
            }
        }
        Ok(())
    }

    fn close_group(&mut self) -> Result<(), EncodeError> {
        if self.held == 0 {
            return Ok(());
        }
        let mut group = self.writer.next_row_group()?;
        for values in &mut self.columns {
            let mut column = group
                .next_column()?
                .ok_or_else(|| ParquetError::General("a column is missing".to_owned()))?;
            values.write(column.untyped())?;
            column.close()?;
        }
        group.close()?;
        self.compressed += std::mem::take(&mut self.held);
        Ok(())
    }

    /// The values in memory count with the size that they will have if they compress like
    /// the groups before.
    pub(super) fn size(&self) -> u64 {
        let written = self.writer.bytes_written();
        let held = match self.compressed {
            0 => self.held,
            compressed => self.held.saturating_mul(written) / compressed,
        };
        u64::try_from(written + held).unwrap_or(u64::MAX)
    }

    pub(super) fn take(&mut self) -> Vec<Bytes> {
        self.writer.inner_mut().take()
    }

    pub(super) fn finish(mut self) -> Result<Vec<Bytes>, EncodeError> {
        self.close_group()?;
        Ok(self.writer.into_inner()?.take())
    }
}

fn compression(codec: Option<Codec>) -> Compression {
    match codec {
        None => Compression::UNCOMPRESSED,
        Some(Codec::Gzip) => Compression::GZIP(GzipLevel::default()),
        Some(Codec::Brotli) => Compression::BROTLI(BrotliLevel::default()),
        Some(Codec::Zstd) => Compression::ZSTD(ZstdLevel::default()),
        // Readers disagree about the older LZ4 of Parquet.
        Some(Codec::Lz4) => Compression::LZ4_RAW,
        Some(Codec::Snappy) => Compression::SNAPPY,
    }
}

fn field(column: &Column) -> Result<TypePtr, ParquetError> {
    let (physical, logical) = match column.kind {
        Kind::Text | Kind::Json | Kind::Uuid => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        Kind::Integer => (Physical::INT64, None),
        Kind::Float => (Physical::DOUBLE, None),
        Kind::Boolean => (Physical::BOOLEAN, None),
        Kind::Timestamp => {
            let unit = TimeUnit::MICROS;
            (Physical::INT64, Some(LogicalType::timestamp(true, unit)))
        }
    };
    let field = Type::primitive_type_builder(&column.name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(logical)
        .build()?;
    Ok(Arc::new(field))
}

/// The values of one column in the present group.
struct Values {
    kind: Kind,
    /// 1 for each row with a value, 0 for null.
    levels: Vec<i16>,
    typed: Typed,
    /// Bytes of the texts of the last group. The next one begins with this capacity:
    /// growing step by step takes twice as much.
    usual: usize,
}

enum Typed {
    /// All texts one after another, and the end of each.
    Texts(BytesMut, Vec<usize>),
    Integers(Vec<i64>),
    Floats(Vec<f64>),
    Booleans(Vec<bool>),
}

impl Values {
    fn new(kind: Kind) -> Self {
        let typed = match kind {
            Kind::Text | Kind::Json | Kind::Uuid => Typed::Texts(BytesMut::new(), Vec::new()),
            Kind::Integer | Kind::Timestamp => Typed::Integers(Vec::new()),
            Kind::Float => Typed::Floats(Vec::new()),
            Kind::Boolean => Typed::Booleans(Vec::new()),
        };
        Self { kind, levels: Vec::new(), typed, usual: 0 }
    }

    /// Adds a cell. A cell of another kind becomes null. Returns roughly how many bytes
    /// it takes.
    fn push(&mut self, cell: &Cell) -> usize {
        if let Typed::Texts(texts, _) = &mut self.typed
            && texts.is_empty()
        {
            texts.reserve(self.usual);
        }
        let taken = match (&mut self.typed, cell) {
            (Typed::Texts(texts, ends), Cell::Text(text) | Cell::Json(text)) => {
                texts.extend_from_slice(text.as_bytes());
                ends.push(texts.len());
                Some(text.len())
            }
            (Typed::Texts(texts, ends), Cell::Uuid(uuid)) => {
                let mut buffer = [0; Hyphenated::LENGTH];
                texts.extend_from_slice(uuid.hyphenated().encode_lower(&mut buffer).as_bytes());
                ends.push(texts.len());
                Some(Hyphenated::LENGTH)
            }
            (Typed::Integers(values), Cell::Integer(value)) if self.kind == Kind::Integer => {
                values.push(*value);
                Some(size_of::<i64>())
            }
            (Typed::Integers(values), Cell::Timestamp(value)) if self.kind == Kind::Timestamp => {
                values.push(*value);
                Some(size_of::<i64>())
            }
            (Typed::Floats(values), Cell::Float(value)) => {
                values.push(*value);
                Some(size_of::<f64>())
            }
            (Typed::Booleans(values), Cell::Boolean(value)) => {
                values.push(*value);
                Some(1)
            }
            _ => None,
        };
        self.levels.push(i16::from(taken.is_some()));
        taken.unwrap_or(0) + size_of::<i16>()
    }

    /// Writes the values and clears them.
    fn write(&mut self, column: &mut ColumnWriter<'_>) -> Result<(), ParquetError> {
        let levels = Some(&self.levels[..]);
        match (column, &mut self.typed) {
            (ColumnWriter::ByteArrayColumnWriter(column), Typed::Texts(texts, ends)) => {
                self.usual = texts.len();
                let mut rest = std::mem::take(texts).freeze();
                let mut from = 0;
                let slice = |end: usize| {
                    let text = rest.split_to(end - from);
                    from = end;
                    ByteArray::from(text)
                };
                let values: Vec<ByteArray> = ends.drain(..).map(slice).collect();
                column.write_batch(&values, levels, None)?;
            }
            (ColumnWriter::Int64ColumnWriter(column), Typed::Integers(values)) => {
                column.write_batch(values, levels, None)?;
                values.clear();
            }
            (ColumnWriter::DoubleColumnWriter(column), Typed::Floats(values)) => {
                column.write_batch(values, levels, None)?;
                values.clear();
            }
            (ColumnWriter::BoolColumnWriter(column), Typed::Booleans(values)) => {
                column.write_batch(values, levels, None)?;
                values.clear();
            }
            _ => return Err(ParquetError::General("a column of another type".to_owned())),
        }
        self.levels.clear();
        Ok(())
    }
}
