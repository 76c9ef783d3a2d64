//! Snapshots of persons, as Parquet, for other engines. Weir reads one only to write it again
//! without the persons that are erased.
//!
//! | column | type | |
//! |---|---|---|
//! | `uuid` | text | 36 characters |
//! | `distinct_ids` | list of texts | all distinct ids that lead to the person, also by merges |
//! | `properties` | text | a JSON object |
//! | `created_at` | microseconds, UTC | |
//! | `is_identified` | boolean | |
//!
//! What belongs here: the form of the file. What does not: which persons there are
//! (`weir-store`), and the log of their table (`delta`).

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, TimeUnit, Type as Physical, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader as _, RowGroupReader};
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{Type, TypePtr};
use uuid::Uuid;

use crate::checked::CheckedWriter;
use crate::error::{Error, Part, Result};
use crate::segment::columns::{list, required};

/// Persons of a group of rows.
const GROUP_ROWS: usize = 64_000;
/// Bytes of their texts after which a group ends. They wait in memory.
const GROUP_BYTES: usize = 16 << 20;
/// How strongly pages are compressed.
const LEVEL: i32 = 3;

/// A person to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersonRow {
    /// Unique within the project.
    pub uuid: Uuid,
    /// The distinct ids, the main one first.
    pub distinct_ids: Vec<String>,
    /// Properties as JSON object text.
    pub properties: String,
    /// When the person was first seen, microseconds since 1970.
    pub created_at: i64,
    /// Whether an identifying event named the person.
    pub is_identified: bool,
}

/// A file of persons that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersonsWritten {
    /// Bytes of the file.
    pub bytes: u64,
    /// The number of persons.
    pub rows: u64,
    /// The earliest `created_at`.
    pub from_time: i64,
    /// The latest `created_at`.
    pub to_time: i64,
}

/// Writes a file of persons. Until [`finish`](Self::finish) it is `<name>.tmp`, which is
/// removed when the writer is dropped.
pub struct PersonsWriter {
    path: PathBuf,
    writer: SerializedFileWriter<CheckedWriter>,
    group: Vec<PersonRow>,
    group_bytes: usize,
    rows: u64,
    from_time: i64,
    to_time: i64,
}

impl PersonsWriter {
    /// Begins a file that will have this name.
    ///
    /// # Errors
    /// When the file cannot be created.
    pub fn create(path: &Path) -> Result<Self> {
        let file = CheckedWriter::create(path)?;
        let begin = || -> Result<_, ParquetError> {
            let properties = WriterProperties::builder()
                .set_compression(Compression::ZSTD(ZstdLevel::try_new(LEVEL)?))
                .set_created_by(format!("weir-segments {}", env!("CARGO_PKG_VERSION")))
                .set_dictionary_enabled(false)
                .build();
            SerializedFileWriter::new(file, schema()?, Arc::new(properties))
        };
        let writer = begin().map_err(|e| encode(path, &e))?;
        Ok(Self {
            path: path.to_owned(),
            writer,
            group: Vec::new(),
            group_bytes: 0,
            rows: 0,
            from_time: i64::MAX,
            to_time: i64::MIN,
        })
    }

    /// The number of persons so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Adds a person.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn push(&mut self, person: PersonRow) -> Result<()> {
        let ids: usize = person.distinct_ids.iter().map(String::len).sum();
        self.group_bytes += size_of::<PersonRow>() + person.properties.len() + ids;
        self.rows += 1;
        self.from_time = self.from_time.min(person.created_at);
        self.to_time = self.to_time.max(person.created_at);
        self.group.push(person);
        match self.group.len() >= GROUP_ROWS || self.group_bytes >= GROUP_BYTES {
            true => self.write_group(),
            false => Ok(()),
        }
    }

    fn write_group(&mut self) -> Result<()> {
        let persons = std::mem::take(&mut self.group);
        self.group_bytes = 0;
        if persons.is_empty() {
            return Ok(());
        }
        let mut write = || -> Result<(), ParquetError> {
            let mut group = self.writer.next_row_group()?;
            let uuids = persons.iter().map(|person| person.uuid.to_string().into_bytes().into());
            column::<ByteArrayType, _>(&mut group, uuids.collect(), None)?;
            lists(&mut group, &persons)?;
            let texts = persons.iter().map(|person| ByteArray::from(person.properties.as_str()));
            column::<ByteArrayType, _>(&mut group, texts.collect(), None)?;
            let times = persons.iter().map(|person| person.created_at);
            column::<Int64Type, _>(&mut group, times.collect(), None)?;
            let identified = persons.iter().map(|person| person.is_identified);
            column::<BoolType, _>(&mut group, identified.collect(), None)?;
            group.close().map(drop)
        };
        write().map_err(|e| encode(&self.path, &e))
    }

    /// Writes the rest, and gives the file its name. File and directory are synced.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn finish(mut self) -> Result<PersonsWritten> {
        self.write_group()?;
        let file = self.writer.into_inner().map_err(|e| encode(&self.path, &e))?;
        let (bytes, _) = file.finish(&[])?;
        let Self { rows, from_time, to_time, .. } = self;
        Ok(PersonsWritten { bytes, rows, from_time, to_time })
    }
}

/// Reads the persons of a file, and calls `see` with those of each group of rows: at most
/// 64,000, or about 16 MiB.
///
/// # Errors
/// When the file cannot be read or is damaged, and errors of `see`.
pub fn see_groups(path: &Path, mut see: impl FnMut(Vec<PersonRow>) -> Result<()>) -> Result<()> {
    let damaged = |reason: String| Error::damaged(path, Part::Content(reason));
    let file = File::open(path).map_err(|error| Error::reading(path, error))?;
    let reader = SerializedFileReader::new(file).map_err(|error| damaged(error.to_string()))?;
    for at in 0..reader.num_row_groups() {
        let read = reader.get_row_group(at).and_then(|group| read_group(&*group));
        see(read.map_err(|error| damaged(error.to_string()))?)?;
    }
    Ok(())
}

fn read_group(group: &dyn RowGroupReader) -> Result<Vec<PersonRow>, ParquetError> {
    let wrong = || ParquetError::General("a column has other values".to_owned());
    let rows = usize::try_from(group.metadata().num_rows()).map_err(|_| wrong())?;
    let text = |bytes: &ByteArray| bytes.as_utf8().map(str::to_owned);
    let uuids = values::<ByteArrayType>(group, 0, rows, None)?;
    let (mut definition, mut repetition) = (Vec::new(), Vec::new());
    let levels = Some((&mut definition, &mut repetition));
    let mut ids = values::<ByteArrayType>(group, 1, rows, levels)?.into_iter();
    let mut lists: Vec<Vec<String>> = Vec::with_capacity(rows);
    for (definition, repetition) in definition.into_iter().zip(repetition) {
        if repetition == 0 {
            lists.push(Vec::new());
        }
        if definition > 0 {
            let id = text(&ids.next().ok_or_else(wrong)?)?;
            lists.last_mut().ok_or_else(wrong)?.push(id);
        }
    }
    let properties = values::<ByteArrayType>(group, 2, rows, None)?;
    let times = values::<Int64Type>(group, 3, rows, None)?;
    let identified = values::<BoolType>(group, 4, rows, None)?;
    let lengths = [uuids.len(), lists.len(), properties.len(), times.len(), identified.len()];
    if lengths.iter().any(|length| *length != rows) {
        return Err(wrong());
    }
    let columns = uuids.iter().zip(lists).zip(&properties).zip(times).zip(identified);
    let mut persons = Vec::with_capacity(rows);
    for ((((uuid, distinct_ids), properties), created_at), is_identified) in columns {
        persons.push(PersonRow {
            uuid: Uuid::parse_str(&text(uuid)?).map_err(|_| wrong())?,
            distinct_ids,
            properties: text(properties)?,
            created_at,
            is_identified,
        });
    }
    Ok(persons)
}

/// The values of a column of a group of rows. `levels` get those of definition and
/// repetition.
fn values<T: DataType>(
    group: &dyn RowGroupReader,
    column: usize,
    rows: usize,
    levels: Option<(&mut Vec<i16>, &mut Vec<i16>)>,
) -> Result<Vec<T::T>, ParquetError> {
    let missing = || ParquetError::General("a column is missing".to_owned());
    let reader = T::get_column_reader(group.get_column_reader(column)?);
    let mut reader = reader.ok_or_else(missing)?;
    let (mut definitions, mut repetitions) = levels.unzip();
    let (mut left, mut values) = (rows, Vec::new());
    while left > 0 {
        let (definitions, repetitions) = (definitions.as_deref_mut(), repetitions.as_deref_mut());
        let (read, _, _) = reader.read_records(left, definitions, repetitions, &mut values)?;
        if read == 0 {
            return Err(missing());
        }
        left = left.saturating_sub(read);
    }
    Ok(values)
}

fn schema() -> Result<TypePtr, ParquetError> {
    let text = LogicalType::String;
    let fields = vec![
        required("uuid", Physical::BYTE_ARRAY, Some(text.clone()))?,
        list("distinct_ids")?,
        required("properties", Physical::BYTE_ARRAY, Some(text))?,
        required(
            "created_at",
            Physical::INT64,
            Some(LogicalType::timestamp(true, TimeUnit::MICROS)),
        )?,
        required("is_identified", Physical::BOOLEAN, None)?,
    ];
    Ok(Arc::new(Type::group_type_builder("persons").with_fields(fields).build()?))
}

/// Writes the next column of a group of rows. `levels` are those of definition and
/// repetition.
fn column<T: DataType, W: std::io::Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: Vec<T::T>,
    levels: Option<(&[i16], &[i16])>,
) -> Result<(), ParquetError> {
    let missing = || ParquetError::General("a column is missing".to_owned());
    let mut column = group.next_column()?.ok_or_else(missing)?;
    let (definition, repetition) = levels.unzip();
    column.typed::<T>().write_batch(&values, definition, repetition)?;
    column.close()
}

/// Writes the distinct ids. The level of definition is 0 for a person without one; the level
/// of repetition is 0 for the first of a person.
fn lists<W: std::io::Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    persons: &[PersonRow],
) -> Result<(), ParquetError> {
    let (mut definition, mut repetition, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for person in persons {
        if person.distinct_ids.is_empty() {
            definition.push(0);
            repetition.push(0);
        }
        for (at, id) in person.distinct_ids.iter().enumerate() {
            definition.push(1);
            repetition.push(i16::from(at > 0));
            values.push(ByteArray::from(id.as_str()));
        }
    }
    column::<ByteArrayType, _>(group, values, Some((&definition, &repetition)))
}

fn encode(path: &Path, error: &ParquetError) -> Error {
    Error::Encode { file: path.to_owned(), reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn persons_are_read_as_they_were_written() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("persons.parquet");
        let person = |number: u128, ids: &[&str]| PersonRow {
            uuid: Uuid::from_u128(number),
            distinct_ids: ids.iter().map(|id| (*id).to_owned()).collect(),
            properties: format!(r#"{{"number":{number}}}"#),
            created_at: 7,
            is_identified: ids.len() > 1,
        };
        let persons = [person(1, &["ada", "a-1"]), person(2, &[]), person(3, &["", "ä", "x"])];
        let mut writer = PersonsWriter::create(&path).unwrap();
        persons.iter().cloned().try_for_each(|person| writer.push(person)).unwrap();
        writer.finish().unwrap();
        let mut read = Vec::new();
        see_groups(&path, |group| {
            read.extend(group);
            Ok(())
        })
        .unwrap();
        assert_eq!(read, persons);
        std::fs::write(&path, b"another file").unwrap();
        let error = see_groups(&path, |_| Ok(())).unwrap_err();
        assert!(matches!(error, Error::Damaged { .. }), "{error}");
    }
}
