//! Which columns and groups of rows a segment has, for readers of columns (`pages`).
//!
//! What belongs here: what the footer says. What does not: the values (`pages`), and what a
//! reader makes of them (`weir-store` and above).

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::Type as Physical;
use parquet::file::metadata::{
    ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataOptions, ParquetMetaDataReader,
    ParquetStatisticsPolicy, RowGroupMetaData,
};
use parquet::file::statistics::Statistics;
use percent_encoding::percent_decode_str;

use super::pages::GroupReader;
use super::read::{Segment, content, decode, value};
use super::write::GROUP_ROWS;
use super::{ColumnType, TypedColumn, columns};
use crate::checked::CachedReader;
use crate::error::{Error, Result};

/// A column of a segment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ColumnName {
    /// Arrival numbers.
    Arrival,
    /// Uuids, as text of 36 characters.
    Uuid,
    /// Names of events.
    Event,
    /// Distinct ids.
    DistinctId,
    /// Event times, microseconds since 1970.
    Timestamp,
    /// When events were accepted, microseconds since 1970.
    ReceivedAt,
    /// Compact element chains.
    ElementsChain,
    /// Whether events were sent with `historical_migration`.
    Historical,
    /// Properties as JSON object text.
    Properties,
    /// The typed column of the property of this name.
    Typed(String),
}

impl ColumnName {
    /// Its number in [`columns::BASE`].
    pub(super) fn base(&self) -> Option<usize> {
        match self {
            Self::Arrival => Some(0),
            Self::Uuid => Some(1),
            Self::Event => Some(2),
            Self::DistinctId => Some(3),
            Self::Timestamp => Some(4),
            Self::ReceivedAt => Some(5),
            Self::ElementsChain => Some(6),
            Self::Historical => Some(7),
            Self::Properties => Some(9),
            Self::Typed(_) => None,
        }
    }
}

impl fmt::Display for ColumnName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Typed(property) => write!(f, "of the property {property}"),
            base => f.write_str(
                base.base().and_then(|at| columns::BASE.get(at)).copied().unwrap_or_default(),
            ),
        }
    }
}

/// Whether a typed column holds the value of every event that has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Complete {
    /// It does: null means that the event has no value, or `null`. Numbers are doubles, so
    /// whole numbers from 2^53 on may have lost digits.
    Yes,
    /// It does not: for null, the column `properties` says what the value is.
    No,
    /// The file does not say it. Read it as `No`.
    Unknown,
}

/// A group of rows of a segment: what a thread takes at a time, at most 64,000 rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowGroup {
    /// Its number in the segment, from 0.
    pub number: usize,
    /// Its first row in the segment.
    pub first_row: u64,
    /// The number of rows.
    pub rows: u32,
    /// Bounds of the event times, both inclusive, microseconds since 1970. All times, if the
    /// file does not say it.
    pub times: (i64, i64),
    /// Bounds of the arrival numbers, both inclusive. All numbers, if the file does not say
    /// it.
    pub arrivals: (u64, u64),
}

/// A segment to be read column by column. A copy shares the file and what is known of it.
#[derive(Clone)]
pub struct Columns {
    pub(super) segment: Segment,
    footer: Arc<Footer>,
}

struct Footer {
    metadata: ParquetMetaData,
    groups: Vec<RowGroup>,
    /// By the names of their properties.
    typed: HashMap<String, Typed>,
    memory: usize,
}

/// A typed column.
#[derive(Debug, Clone, Copy)]
pub(super) struct Typed {
    /// Its number among all columns.
    at: usize,
    kind: ColumnType,
    complete: Complete,
}

impl Segment {
    /// Reads the footer again: a [`Segment`] holds neither typed columns nor statistics.
    ///
    /// `known` are the typed columns of the table. They say which property a column of a file
    /// from version 0.1.0 belongs to, because several properties can have the same
    /// [name](TypedColumn::name) of a column.
    ///
    /// # Errors
    /// When the file cannot be read, or is damaged.
    pub fn columns(&self, known: &[TypedColumn]) -> Result<Columns> {
        let file = &self.inner.file;
        let path = file.path();
        let bounded = [ColumnName::Arrival.base(), ColumnName::Timestamp.base()];
        let bounded: Vec<usize> = bounded.into_iter().flatten().collect();
        let options = ParquetMetaDataOptions::new()
            .with_column_stats_policy(ParquetStatisticsPolicy::skip_except(&bounded))
            .with_size_stats_policy(ParquetStatisticsPolicy::SkipAll);
        let metadata = ParquetMetaDataReader::new()
            .with_metadata_options(Some(options))
            .parse_and_finish(&CachedReader::new(Arc::clone(file)))
            .map_err(|e| decode(path, e))?;
        let groups = groups(path, &metadata)?;
        let typed = typed(path, &metadata, known)?;
        let of_typed = |name: &String| name.len() + size_of::<(String, Typed)>();
        let memory = size_of::<Footer>()
            + metadata.memory_size()
            + size_of_val(&groups[..])
            + typed.keys().map(of_typed).sum::<usize>();
        let footer = Arc::new(Footer { metadata, groups, typed, memory });
        Ok(Columns { segment: self.clone(), footer })
    }
}

impl Columns {
    /// The groups of rows, in order.
    pub fn groups(&self) -> &[RowGroup] {
        &self.footer.groups
    }

    /// The type of the typed column of a property, and whether it holds every value. `None`:
    /// the property has none in this file.
    pub fn typed(&self, property: &str) -> Option<(ColumnType, Complete)> {
        let typed = self.footer.typed.get(property)?;
        Some((typed.kind, typed.complete))
    }

    /// Roughly the memory that this takes beside the segment, bytes. Copies share it.
    pub fn memory(&self) -> usize {
        self.footer.memory
    }

    /// A reader of the columns of a group, which must be one of [`groups`](Self::groups).
    pub fn group(&self, group: RowGroup) -> GroupReader<'_> {
        GroupReader::new(self, group)
    }

    pub(super) fn path(&self) -> &Path {
        self.segment.inner.file.path()
    }

    /// The number of a column among all columns, if its values are of this type.
    pub(super) fn typed_at(&self, property: &str, kind: ColumnType) -> Option<usize> {
        self.footer.typed.get(property).filter(|typed| typed.kind == kind).map(|typed| typed.at)
    }

    /// A column in a group of rows.
    pub(super) fn chunk(&self, group: RowGroup, at: usize) -> Result<&ColumnChunkMetaData> {
        let chunk = self.footer.metadata.row_groups().get(group.number);
        chunk.and_then(|chunk| chunk.columns().get(at)).ok_or_else(|| Error::NoSuchRows {
            file: self.path().to_owned(),
            first: group.first_row,
            end: group.first_row.saturating_add(group.rows.into()),
        })
    }
}

fn groups(path: &Path, metadata: &ParquetMetaData) -> Result<Vec<RowGroup>> {
    let bounds = |group: &RowGroupMetaData, column: ColumnName| {
        let chunk = group.columns().get(column.base()?)?;
        let Some(Statistics::Int64(statistics)) = chunk.statistics() else { return None };
        Some((*statistics.min_opt()?, *statistics.max_opt()?))
    };
    let mut groups = Vec::new();
    let mut first_row = 0;
    for (number, group) in metadata.row_groups().iter().enumerate() {
        let rows = u32::try_from(group.num_rows()).ok();
        let rows = rows
            .filter(|rows| *rows as usize <= GROUP_ROWS)
            .ok_or_else(|| content(path, "a group has too many rows"))?;
        let times = bounds(group, ColumnName::Timestamp).unwrap_or((i64::MIN, i64::MAX));
        // They are below 2^63.
        let arrivals = bounds(group, ColumnName::Arrival)
            .map_or((0, u64::MAX), |(from, to)| (from.cast_unsigned(), to.cast_unsigned()));
        groups.push(RowGroup { number, first_row, rows, times, arrivals });
        first_row += u64::from(rows);
    }
    Ok(groups)
}

/// The typed columns, by the names of their properties.
fn typed(
    path: &Path,
    metadata: &ParquetMetaData,
    known: &[TypedColumn],
) -> Result<HashMap<String, Typed>> {
    let wrong = || content(path, "its list of typed columns is wrong");
    let all = metadata.file_metadata().schema_descr().columns();
    let mut found = Vec::new();
    for (at, column) in all.iter().enumerate().skip(columns::BASE.len()) {
        let kind = match column.physical_type() {
            Physical::BYTE_ARRAY => ColumnType::Text,
            Physical::DOUBLE => ColumnType::Number,
            Physical::BOOLEAN => ColumnType::Boolean,
            _ => return Err(wrong()),
        };
        found.push((at, column.name(), kind));
    }
    let Some(text) = value(metadata, columns::TYPED_KEY) else {
        let named = |known: &TypedColumn| {
            let name = known.name();
            let is_it = |(_, found, kind): &&(_, &str, _)| *found == name && *kind == known.kind;
            let (at, _, kind) = *found.iter().find(is_it)?;
            Some((known.property.clone(), Typed { at, kind, complete: Complete::Unknown }))
        };
        return Ok(known.iter().filter_map(named).collect());
    };
    let mut typed = HashMap::new();
    let mut listed = text.split_terminator(',');
    for (at, name, kind) in found {
        let (property, lost) = listed.next().and_then(|of| of.split_once(':')).ok_or_else(wrong)?;
        let property = percent_decode_str(property).decode_utf8().map_err(|_| wrong())?;
        let column = TypedColumn { property: property.into_owned(), kind };
        if column.name() != name {
            return Err(wrong());
        }
        let complete = match lost.parse::<u64>().map_err(|_| wrong())? {
            0 => Complete::Yes,
            _ => Complete::No,
        };
        typed.insert(column.property, Typed { at, kind, complete });
    }
    match listed.next() {
        None => Ok(typed),
        Some(_) => Err(wrong()),
    }
}
