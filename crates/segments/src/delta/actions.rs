//! The actions of a commit: lines of JSON.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use chrono::{DateTime, Datelike as _, SecondsFormat};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{Columns, TableFile};
use crate::error::{Error, Part, Result};
use crate::segment::{ColumnType, TypedColumn};

/// The version of the protocol that readers must know.
pub(super) const READER: i32 = 1;
/// The version of the protocol that writers must know.
pub(super) const WRITER: i32 = 2;

/// One line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Action {
    CommitInfo(Value),
    Protocol(Protocol),
    MetaData(MetaData),
    Add(Add),
    Remove(Remove),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Protocol {
    pub(super) min_reader_version: i32,
    pub(super) min_writer_version: i32,
}

/// What the table is. The type of the values is an object without entries, or a list
/// without elements, where it has no meaning here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MetaData {
    pub(super) id: String,
    format: Format,
    pub(super) schema_string: String,
    partition_columns: Vec<String>,
    configuration: Map<String, Value>,
    pub(super) created_time: i64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Format {
    provider: String,
    options: Map<String, Value>,
}

/// A file of the table.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Add {
    pub(super) path: String,
    partition_values: Map<String, Value>,
    pub(super) size: i64,
    pub(super) modification_time: i64,
    data_change: bool,
    /// An object as text.
    pub(super) stats: String,
}

/// A file that the table has no more.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Remove {
    pub(super) path: String,
    deletion_timestamp: i64,
    data_change: bool,
    extended_file_metadata: bool,
    partition_values: Map<String, Value>,
    size: i64,
}

impl Action {
    /// For people, and the histories that readers show.
    pub(super) fn info(operation: &str, now: i64) -> Self {
        Self::CommitInfo(json!({
            "timestamp": now,
            "operation": operation,
            "operationParameters": {},
            "engineInfo": concat!("weir-segments ", env!("CARGO_PKG_VERSION")),
        }))
    }

    pub(super) fn protocol() -> Self {
        Self::Protocol(Protocol { min_reader_version: READER, min_writer_version: WRITER })
    }
}

impl Protocol {
    /// The error has the name of the unknown format.
    pub(super) fn check(&self) -> Result<(), String> {
        let Self { min_reader_version: reader, min_writer_version: writer } = self;
        match (*reader, *writer) {
            (READER, WRITER) => Ok(()),
            _ => Err(format!("Delta Lake {reader}, {writer}")),
        }
    }
}

impl MetaData {
    /// `bounded` are the columns that have bounds, in the files that have any.
    pub(super) fn new(id: String, schema_string: String, created_time: i64, bounded: &str) -> Self {
        Self {
            id,
            format: Format { provider: PROVIDER.to_owned(), options: Map::new() },
            schema_string,
            partition_columns: Vec::new(),
            configuration: Map::from_iter([(STATS.to_owned(), bounded.into())]),
            created_time,
        }
    }

    /// The columns that have bounds.
    pub(super) fn bounded(&self) -> &str {
        self.configuration.get(STATS).and_then(Value::as_str).unwrap_or_default()
    }

    /// The same table with other columns.
    pub(super) fn with_schema(&self, schema_string: String) -> Self {
        Self { schema_string, ..self.clone() }
    }

    /// The first column that is missing in a new schema, or has another type there.
    pub(super) fn changed_column(&self, schema: &str) -> Result<Option<String>, String> {
        let fields = |schema: &str| -> Result<Vec<FieldType>, String> {
            let schema: Fields = serde_json::from_str(schema).map_err(|e| e.to_string())?;
            Ok(schema.fields)
        };
        let new = fields(schema)?;
        let changed = fields(&self.schema_string)?.into_iter().find(|old| !new.contains(old));
        Ok(changed.map(|column| column.name))
    }
}

/// The columns that have bounds in [`stats`], as the configuration of a table names them.
/// Without it, delta-rs compares the other columns with null: a filter then finds no rows
/// through pyarrow.
pub(super) const STATS: &str = "delta.dataSkippingStatsColumns";

impl Columns<'_> {
    /// The columns that have bounds in [`stats`].
    pub(super) fn bounded(self) -> &'static str {
        match self {
            Self::Events(_) => "arrival,timestamp",
            Self::Persons => "created_at",
        }
    }

    /// The column of [`TableFile::from_time`].
    fn time(self) -> &'static str {
        match self {
            Self::Events(_) => "timestamp",
            Self::Persons => "created_at",
        }
    }
}

/// The format of the files.
pub(super) const PROVIDER: &str = "parquet";

#[derive(Deserialize)]
struct Fields {
    fields: Vec<FieldType>,
}

#[derive(PartialEq, Deserialize)]
struct FieldType {
    name: String,
    r#type: Value,
}

impl Add {
    /// The error says why the table cannot have the file.
    pub(super) fn of(
        file: &TableFile,
        columns: Columns<'_>,
        data_change: bool,
    ) -> Result<Self, String> {
        let TableFile { path, bytes, .. } = file;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
        if path.is_empty() || path.starts_with('/') || !path.chars().all(is_plain) {
            return Err(format!("{path:?} has characters that a path in a table cannot have"));
        }
        let size = i64::try_from(*bytes).map_err(|_| format!("{path} is too large"))?;
        Ok(Self::new(path.clone(), size, file.modified, data_change, stats(file, columns)))
    }

    pub(super) fn new(
        path: String,
        size: i64,
        modification_time: i64,
        data_change: bool,
        stats: String,
    ) -> Self {
        Self { path, partition_values: Map::new(), size, modification_time, data_change, stats }
    }

    pub(super) fn is_same(&self, other: &Self) -> bool {
        let of = |add: &Self| (add.size, add.modification_time);
        of(self) == of(other) && self.stats == other.stats
    }

    /// The number of events.
    pub(super) fn rows(&self) -> u64 {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Rows {
            num_records: u64,
        }
        serde_json::from_str(&self.stats).map_or(0, |stats: Rows| stats.num_records)
    }
}

impl Remove {
    pub(super) fn of(add: &Add, data_change: bool, now: i64) -> Self {
        Self {
            path: add.path.clone(),
            deletion_timestamp: now,
            data_change,
            extended_file_metadata: true,
            partition_values: Map::new(),
            size: add.size,
        }
    }
}

/// The smallest and largest values of a file, which tell a reader that it need not open it.
fn stats(file: &TableFile, columns: Columns<'_>) -> String {
    let (mut least, mut most, mut nulls) = (Map::new(), Map::new(), Map::new());
    let mut bounds = |name: &str, from: Option<Value>, to: Option<Value>| {
        nulls.insert(name.to_owned(), 0.into());
        least.extend(from.map(|from| (name.to_owned(), from)));
        most.extend(to.map(|to| (name.to_owned(), to)));
    };
    if let Some((from, to)) = file.arrivals {
        bounds("arrival", Some(from.into()), Some(to.into()));
    }
    bounds(columns.time(), time(file.from_time), time(file.to_time));
    json!({
        "numRecords": file.rows,
        "minValues": least,
        "maxValues": most,
        "nullCount": nulls,
    })
    .to_string()
}

/// A time as text, if it has a year of four digits.
fn time(micros: i64) -> Option<Value> {
    let time = DateTime::from_timestamp_micros(micros)?;
    (1..=9999)
        .contains(&time.year())
        .then(|| time.to_rfc3339_opts(SecondsFormat::Micros, true).into())
}

/// The columns of the table, as text. The error says why a table cannot have them.
pub(super) fn schema(columns: Columns<'_>) -> Result<String, String> {
    let field = |name: &str, of: Value, nullable: bool, metadata: Value| json!({ "name": name, "type": of, "nullable": nullable, "metadata": metadata });
    let texts = json!({ "type": "array", "elementType": "string", "containsNull": false });
    let events: [(&str, Value); 10] = [
        ("arrival", "long".into()),
        ("uuid", "string".into()),
        ("event", "string".into()),
        ("distinct_id", "string".into()),
        ("timestamp", "timestamp".into()),
        ("received_at", "timestamp".into()),
        ("elements_chain", "string".into()),
        ("historical", "boolean".into()),
        ("warnings", texts.clone()),
        ("properties", "string".into()),
    ];
    let persons: [(&str, Value); 5] = [
        ("uuid", "string".into()),
        ("distinct_ids", texts),
        ("properties", "string".into()),
        ("created_at", "timestamp".into()),
        ("is_identified", "boolean".into()),
    ];
    let (base, typed): (&[(&str, Value)], &[TypedColumn]) = match columns {
        Columns::Events(typed) => (&events, typed),
        Columns::Persons => (&persons, &[]),
    };
    let mut fields: Vec<Value> =
        base.iter().map(|(name, of)| field(name, of.clone(), false, json!({}))).collect();
    let mut names = HashSet::new();
    for column in typed {
        let name = column.name();
        if !names.insert(name.to_lowercase()) {
            return Err(format!("two columns have the name {name}"));
        }
        let of = match column.kind {
            ColumnType::Text => "string",
            ColumnType::Number => "double",
            ColumnType::Boolean => "boolean",
        };
        // The name of the column may differ from it.
        let comment = json!({ "comment": format!("property {}", column.property) });
        fields.push(field(&name, of.into(), true, comment));
    }
    Ok(json!({ "type": "struct", "fields": fields }).to_string())
}

/// The content of a commit.
pub(super) fn text(actions: &[Action]) -> Result<String, String> {
    let mut text = String::new();
    for action in actions {
        text.push_str(&serde_json::to_string(action).map_err(|e| e.to_string())?);
        text.push('\n');
    }
    Ok(text)
}

/// Reads a commit.
pub(super) fn read(path: &Path) -> Result<Vec<Action>> {
    let bytes = fs::read(path).map_err(|e| Error::reading(path, e))?;
    let damaged = |reason: String| Error::damaged(path, Part::Content(reason));
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).map_err(|e| damaged(e.to_string()))).collect()
}
