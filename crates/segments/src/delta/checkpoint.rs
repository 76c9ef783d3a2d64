//! Checkpoints: what a table has as of a version, as Parquet.
//!
//! The first row is the protocol, the second the columns of the table, and each other row a
//! file. Removed files are not listed: they are deleted already, and no reader needs them.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::record::{Field, Row};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::{ColumnDescriptor, SchemaDescriptor};

use super::State;
use super::actions::{self, Action, Add, MetaData, Protocol};
use crate::error::{Error, Part, Result};

/// The columns, as the protocol names them.
const SCHEMA: &str = "
message checkpoint {
  optional group txn {
    required binary appId (UTF8);
    required int64 version;
    optional int64 lastUpdated;
  }
  optional group protocol {
    required int32 minReaderVersion;
    required int32 minWriterVersion;
  }
  optional group metaData {
    required binary id (UTF8);
    optional binary name (UTF8);
    optional binary description (UTF8);
    required group format {
      required binary provider (UTF8);
      required group options (MAP) {
        repeated group key_value { required binary key (UTF8); optional binary value (UTF8); }
      }
    }
    required binary schemaString (UTF8);
    required group partitionColumns (LIST) {
      repeated group list { optional binary element (UTF8); }
    }
    required group configuration (MAP) {
      repeated group key_value { required binary key (UTF8); optional binary value (UTF8); }
    }
    optional int64 createdTime;
  }
  optional group add {
    required binary path (UTF8);
    required group partitionValues (MAP) {
      repeated group key_value { required binary key (UTF8); optional binary value (UTF8); }
    }
    required int64 size;
    required int64 modificationTime;
    required boolean dataChange;
    optional binary stats (UTF8);
  }
  optional group remove {
    required binary path (UTF8);
    optional int64 deletionTimestamp;
    required boolean dataChange;
  }
}";

/// The rows of a checkpoint with these files.
pub(super) fn actions(adds: &[&Add]) -> usize {
    adds.len() + 2
}

/// A checkpoint as the bytes of its file.
pub(super) fn bytes(metadata: &MetaData, adds: &[&Add]) -> Result<Vec<u8>, ParquetError> {
    let schema = Arc::new(parse_message_type(SCHEMA)?);
    // Every reader has it.
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let descriptors = SchemaDescriptor::new(Arc::clone(&schema));
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    for descriptor in descriptors.columns() {
        let Some(mut column) = group.next_column()? else { break };
        write(column.untyped(), descriptor, metadata, adds)?;
        column.close()?;
    }
    group.close()?;
    writer.into_inner()
}

/// The values of a column.
enum Values<'a> {
    /// Empty lists and objects, and values that are not there.
    None,
    Texts(Vec<&'a str>),
    Longs(Vec<i64>),
    Ints(Vec<i32>),
    Booleans(Vec<bool>),
}

fn values<'a>(column: &str, metadata: &'a MetaData, adds: &[&'a Add]) -> Values<'a> {
    match column {
        "protocol.minReaderVersion" => Values::Ints(vec![actions::READER]),
        "protocol.minWriterVersion" => Values::Ints(vec![actions::WRITER]),
        "metaData.id" => Values::Texts(vec![&metadata.id]),
        "metaData.format.provider" => Values::Texts(vec![actions::PROVIDER]),
        "metaData.schemaString" => Values::Texts(vec![&metadata.schema_string]),
        "metaData.configuration.key_value.key" => Values::Texts(vec![actions::STATS]),
        "metaData.configuration.key_value.value" => Values::Texts(vec![metadata.bounded()]),
        "metaData.createdTime" => Values::Longs(vec![metadata.created_time]),
        "add.path" => Values::Texts(adds.iter().map(|add| &*add.path).collect()),
        "add.size" => Values::Longs(adds.iter().map(|add| add.size).collect()),
        "add.modificationTime" => {
            Values::Longs(adds.iter().map(|add| add.modification_time).collect())
        }
        "add.dataChange" => Values::Booleans(vec![false; adds.len()]),
        "add.stats" => Values::Texts(adds.iter().map(|add| &*add.stats).collect()),
        _ => Values::None,
    }
}

fn write(
    writer: &mut ColumnWriter<'_>,
    descriptor: &ColumnDescriptor,
    metadata: &MetaData,
    adds: &[&Add],
) -> Result<(), ParquetError> {
    let values = values(&descriptor.path().string(), metadata, adds);
    // One level is the group itself.
    let present = match values {
        Values::None => 1,
        _ => descriptor.max_def_level(),
    };
    let mut levels = vec![0; actions(adds)];
    let group = descriptor.path().parts().first().map(String::as_str);
    let rows = match group {
        Some("protocol") => 0..1,
        Some("metaData") => 1..2,
        Some("add") => 2..levels.len(),
        _ => 0..0,
    };
    levels.get_mut(rows).unwrap_or_default().fill(present);
    // Each row has at most one value of each column.
    let repetitions = vec![0; levels.len()];
    let repetitions = (descriptor.max_rep_level() > 0).then_some(&repetitions[..]);
    let levels = Some(&levels[..]);
    match (writer, values) {
        (ColumnWriter::ByteArrayColumnWriter(writer), Values::Texts(texts)) => {
            let texts: Vec<ByteArray> = texts.into_iter().map(ByteArray::from).collect();
            writer.write_batch(&texts, levels, repetitions)
        }
        (ColumnWriter::Int64ColumnWriter(writer), Values::Longs(values)) => {
            writer.write_batch(&values, levels, repetitions)
        }
        (ColumnWriter::Int32ColumnWriter(writer), Values::Ints(values)) => {
            writer.write_batch(&values, levels, repetitions)
        }
        (ColumnWriter::BoolColumnWriter(writer), Values::Booleans(values)) => {
            writer.write_batch(&values, levels, repetitions)
        }
        (ColumnWriter::ByteArrayColumnWriter(writer), Values::None) => {
            writer.write_batch(&[], levels, repetitions)
        }
        (ColumnWriter::Int64ColumnWriter(writer), Values::None) => {
            writer.write_batch(&[], levels, repetitions)
        }
        (ColumnWriter::Int32ColumnWriter(writer), Values::None) => {
            writer.write_batch(&[], levels, repetitions)
        }
        (ColumnWriter::BoolColumnWriter(writer), Values::None) => {
            writer.write_batch(&[], levels, repetitions)
        }
        _ => Err(ParquetError::General("a column has another type".to_owned())),
    }
    .map(|_| ())
}

/// Reads a checkpoint.
pub(super) fn read(path: &Path) -> Result<State> {
    let file = File::open(path).map_err(|e| Error::reading(path, e))?;
    let damaged = |reason: String| Error::damaged(path, Part::Content(reason));
    let reader = SerializedFileReader::new(file).map_err(|e| damaged(e.to_string()))?;
    let rows = reader.get_row_iter(None).map_err(|e| damaged(e.to_string()))?;
    let mut state = State::default();
    for row in rows {
        let row = row.map_err(|e| damaged(e.to_string()))?;
        for action in row.get_column_iter().filter_map(|(name, group)| action(name, group)) {
            let action = action.map_err(|column| damaged(format!("it has no {column}")))?;
            let applied = state.apply(action);
            applied.map_err(|format| Error::UnknownFormat { file: path.to_owned(), format })?;
        }
    }
    Ok(state)
}

/// The action in a column of a row. The error is the name of a value that is missing.
fn action(name: &str, group: &Field) -> Option<Result<Action, &'static str>> {
    let Field::Group(row) = group else { return None };
    let fields = Fields(row);
    match name {
        "protocol" => Some(fields.protocol().map(Action::Protocol)),
        "metaData" => Some(fields.metadata().map(Action::MetaData)),
        "add" => Some(fields.add().map(Action::Add)),
        _ => None,
    }
}

struct Fields<'a>(&'a Row);

impl Fields<'_> {
    fn get(&self, name: &'static str) -> Result<&Field, &'static str> {
        let mut columns = self.0.get_column_iter();
        columns.find(|(column, _)| *column == name).map(|(_, field)| field).ok_or(name)
    }

    fn text(&self, name: &'static str) -> Result<String, &'static str> {
        match self.get(name)? {
            Field::Str(text) => Ok(text.clone()),
            _ => Err(name),
        }
    }

    fn long(&self, name: &'static str) -> Result<i64, &'static str> {
        match self.get(name)? {
            Field::Long(value) => Ok(*value),
            _ => Err(name),
        }
    }

    fn int(&self, name: &'static str) -> Result<i32, &'static str> {
        match self.get(name)? {
            Field::Int(value) => Ok(*value),
            _ => Err(name),
        }
    }

    fn protocol(&self) -> Result<Protocol, &'static str> {
        Ok(Protocol {
            min_reader_version: self.int("minReaderVersion")?,
            min_writer_version: self.int("minWriterVersion")?,
        })
    }

    fn metadata(&self) -> Result<MetaData, &'static str> {
        let (id, schema) = (self.text("id")?, self.text("schemaString")?);
        let Field::MapInternal(configuration) = self.get("configuration")? else {
            return Err("configuration");
        };
        let is_bounded = |(key, _): &&(Field, Field)| *key == Field::Str(actions::STATS.to_owned());
        let bounded = match configuration.entries().iter().find(is_bounded) {
            Some((_, Field::Str(columns))) => columns,
            _ => return Err(actions::STATS),
        };
        Ok(MetaData::new(id, schema, self.long("createdTime")?, bounded))
    }

    fn add(&self) -> Result<Add, &'static str> {
        let (path, stats) = (self.text("path")?, self.text("stats")?);
        Ok(Add::new(path, self.long("size")?, self.long("modificationTime")?, false, stats))
    }
}
