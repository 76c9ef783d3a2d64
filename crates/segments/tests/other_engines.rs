//! Segments and their table as other engines read them: delta-rs with pyarrow and with
//! DataFusion, and DuckDB.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;
use uuid::Uuid;
use weir_segments::delta::{CHECKPOINT, Change, Table, TableFile};
use weir_segments::{
    ColumnType, Options, OwnedEvent, Segment, SegmentEvent, TypedColumn, Writer, Written, segment,
};
use weir_testservers::python;

const NOW: i64 = 1_800_000_000_000;

/// Reads the table in a directory. The columns of a row are named; times are microseconds.
const SCRIPT: &str = r#"
import json, sys
import duckdb, pyarrow as pa
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem
from deltalake import DeltaTable, QueryBuilder

path = json.load(sys.stdin)
table = DeltaTable(path)

def plain(found):
    for at, field in enumerate(found.schema):
        if pa.types.is_timestamp(field.type):
            found = found.set_column(at, field.name, found.column(at).cast(pa.int64()))
    return found.to_pylist()

def rows(found):
    return sorted(plain(found), key=lambda row: row["arrival"])

files = table.file_uris()
query = duckdb.connect()
query.execute("SET TimeZone = 'UTC'")
of = "read_parquet(?, union_by_name = true, hive_partitioning = false)"
columns = query.execute(f"DESCRIBE SELECT * FROM {of}", [files]).fetchall()
shown = [f'epoch_us("{n}") AS "{n}"' if t.startswith("TIMESTAMP") else f'"{n}"' for n, t, *_ in columns]
by_duckdb = query.execute(f"SELECT {', '.join(shown)} FROM {of} ORDER BY arrival", [files]).fetchall()
# The file system of deltalake is Python code, which threads of pyarrow may call while the
# interpreter ends. It then aborts.
native = SubTreeFileSystem(path, LocalFileSystem())
pyarrow = table.to_pyarrow_table(filesystem=native)
fusion = QueryBuilder().register("events", table)
counts = fusion.execute(
    'SELECT count(*), count(DISTINCT uuid), min(arrival), max(arrival), min(timestamp), '
    'max(timestamp) FROM events')
since = fusion.execute("SELECT count(*) FROM events WHERE timestamp >= '2023-11-15T00:00:00Z'")
value = lambda found: list(plain(pa.table(found.read_all()))[0].values())
print(json.dumps({
    "version": table.version(),
    "files": sorted(table.file_uris()),
    "records": sum(table.get_add_actions(flatten=True)["num_records"].to_pylist()),
    "schema": {field.name: str(field.type) for field in pyarrow.schema},
    "counts": value(counts) + value(since),
    "rows": {
        "pyarrow": rows(pyarrow),
        "datafusion": rows(pa.table(fusion.execute("SELECT * FROM events").read_all())),
        "duckdb": [dict(zip([n for n, *_ in columns], row)) for row in by_duckdb],
    },
    "duckdb": {name: of for name, of, *_ in columns},
    "filtered": table.to_pyarrow_table(
        filters=[("arrival", ">=", 100)], filesystem=native
    ).num_rows,
}))
"#;

fn event(arrival: u64, properties: &str) -> OwnedEvent {
    OwnedEvent {
        arrival,
        uuid: Uuid::from_u128(u128::from(arrival) << 64 | 0x8000_0000_0000_4000),
        event: ["$pageview", "signed up", "🦀 \"quoted\""][arrival as usize % 3].to_owned(),
        distinct_id: format!("person-{}", arrival % 5),
        timestamp: 1_700_000_000_000_001 + arrival as i64 * 60_000_000,
        received_at: 1_700_000_000_500_000 + arrival as i64,
        properties: properties.to_owned(),
        elements_chain: String::new(),
        historical: arrival.is_multiple_of(2),
        warnings: ["one", "two, three"][..arrival as usize % 3]
            .iter()
            .map(ToString::to_string)
            .collect(),
    }
}

/// The table of a project, and the events that it must have.
struct Project {
    directory: TempDir,
    table: Table,
    columns: Vec<TypedColumn>,
    files: BTreeMap<String, (TableFile, Written)>,
    events: BTreeMap<String, Vec<OwnedEvent>>,
}

impl Project {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let table = Table::open(directory.path()).unwrap();
        let (columns, files, events) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        Self { directory, table, columns, files, events }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn options(&self) -> Options {
        let mut options = Options::default();
        options.known.clone_from(&self.columns);
        options
    }

    /// What the store does after a file was written.
    fn written(&mut self, name: &str, written: Written) -> TableFile {
        for column in &written.typed {
            if !self.columns.contains(column) {
                self.columns.push(column.clone());
            }
        }
        let file = TableFile {
            path: name.to_owned(),
            bytes: written.bytes,
            rows: written.rows,
            from_time: written.from_time,
            to_time: written.to_time,
            arrivals: Some((written.from_arrival, written.to_arrival)),
            modified: NOW,
        };
        self.files.insert(name.to_owned(), (file.clone(), written));
        file
    }

    fn seal(&mut self, name: &str, events: Vec<OwnedEvent>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut writer = Writer::create(&path, &self.options()).unwrap();
        for block in events.chunks(7) {
            writer.push_block(&block.iter().map(SegmentEvent::from).collect::<Vec<_>>()).unwrap();
        }
        let file = self.written(name, writer.finish().unwrap());
        self.events.insert(name.to_owned(), events);
        self.table.commit(&self.columns, Change::Add(&[file]), NOW).unwrap();
    }

    fn merge(&mut self, old: [&str; 2], name: &str) {
        let old = old.map(str::to_owned);
        let inputs = old.each_ref().map(|name| {
            let (_, written) = self.files.remove(name).unwrap();
            Segment::open(&self.path(name), written.bytes, &written.sums).unwrap()
        });
        let inputs: Vec<&Segment> = inputs.iter().collect();
        let written = segment::merge(&inputs, &self.path(name), &self.options()).unwrap();
        let new = [self.written(name, written)];
        let events = old.iter().flat_map(|name| self.events.remove(name).unwrap()).collect();
        self.events.insert(name.to_owned(), events);
        let change = Change::Replace { old: &old, new: &new };
        self.table.commit(&self.columns, change, NOW).unwrap();
        for name in old {
            fs::remove_file(self.path(&name)).unwrap();
        }
    }

    /// Compares what all engines read with the events. Returns the rows.
    async fn check(&self) -> Vec<Value> {
        let found = python(SCRIPT, &json!(self.directory.path().to_str().unwrap())).await;
        assert_eq!(found["version"], self.table.version().unwrap());
        let path = |name: &str| self.path(name).to_str().unwrap().to_owned();
        let files: Vec<String> = self.files.keys().map(|name| path(name)).collect();
        assert_eq!(found["files"], json!(files));
        let mut events: Vec<&OwnedEvent> = self.events.values().flatten().collect();
        events.sort_by_key(|event| event.arrival);
        assert_eq!(found["records"], events.len());
        let (first, last) = (events[0].arrival, events[events.len() - 1].arrival);
        let since = events.iter().filter(|event| event.timestamp >= 1_700_006_400_000_000).count();
        let times = || events.iter().map(|event| event.timestamp);
        let (from, to) = (times().min().unwrap(), times().max().unwrap());
        let counts = json!([events.len(), events.len(), first, last, from, to, since]);
        assert_eq!(found["counts"], counts);
        let filtered = events.iter().filter(|event| event.arrival >= 100).count();
        assert_eq!(found["filtered"], filtered);
        let expected: Vec<Value> = events.iter().map(|event| self.row(event)).collect();
        for engine in ["pyarrow", "datafusion", "duckdb"] {
            let rows = found["rows"][engine].as_array().unwrap();
            assert_eq!(rows.len(), expected.len(), "{engine}");
            for (row, expected) in rows.iter().zip(&expected) {
                assert_eq!(row, expected, "{engine}");
            }
        }
        self.check_types(&found);
        expected
    }

    fn check_types(&self, found: &Value) {
        let mut types = vec![
            ("arrival".to_owned(), "int64", "BIGINT"),
            ("uuid".to_owned(), "string", "VARCHAR"),
            ("event".to_owned(), "string", "VARCHAR"),
            ("distinct_id".to_owned(), "string", "VARCHAR"),
            ("timestamp".to_owned(), "timestamp[us, tz=UTC]", "TIMESTAMP WITH TIME ZONE"),
            ("received_at".to_owned(), "timestamp[us, tz=UTC]", "TIMESTAMP WITH TIME ZONE"),
            ("elements_chain".to_owned(), "string", "VARCHAR"),
            ("historical".to_owned(), "bool", "BOOLEAN"),
            ("warnings".to_owned(), "list<element: string not null>", "VARCHAR[]"),
            ("properties".to_owned(), "string", "VARCHAR"),
        ];
        types.extend(self.columns.iter().map(|column| match column.kind {
            ColumnType::Text => (column.name(), "string", "VARCHAR"),
            ColumnType::Number => (column.name(), "double", "DOUBLE"),
            ColumnType::Boolean => (column.name(), "bool", "BOOLEAN"),
        }));
        for (engine, at) in [("schema", 0), ("duckdb", 1)] {
            let found = found[engine].as_object().unwrap();
            assert_eq!(found.len(), types.len(), "{engine}");
            for (name, pyarrow, duckdb) in &types {
                assert_eq!(found[name], [*pyarrow, *duckdb][at], "{engine}: {name}");
            }
        }
    }

    /// An event as a row of the table.
    fn row(&self, event: &OwnedEvent) -> Value {
        let mut row = json!({
            "arrival": event.arrival,
            "uuid": event.uuid,
            "event": event.event,
            "distinct_id": event.distinct_id,
            "timestamp": event.timestamp,
            "received_at": event.received_at,
            "elements_chain": event.elements_chain,
            "historical": event.historical,
            "warnings": event.warnings,
            "properties": event.properties,
        });
        let properties: Value = serde_json::from_str(&event.properties).unwrap();
        for column in &self.columns {
            let value = &properties[&column.property];
            let fits = match column.kind {
                ColumnType::Text => value.is_string(),
                ColumnType::Number => value.is_number(),
                ColumnType::Boolean => value.is_boolean(),
            };
            row[column.name()] = match value.as_f64() {
                _ if !fits => Value::Null,
                Some(number) => number.into(),
                None => value.clone(),
            };
        }
        row
    }
}

#[tokio::test]
async fn other_engines_read_the_table_of_a_project() {
    // `make quick` installs no Python.
    if std::env::var_os("WEIR_QUICK").is_some() {
        return;
    }
    let mut project = Project::new();
    let some = |from: u64, properties: &dyn Fn(u64) -> String| -> Vec<OwnedEvent> {
        (from..from + 20).map(|n| event(n, &properties(n))).collect()
    };
    let of_web = |n: u64| {
        format!(
            r#"{{"$browser":"Firefox","count":{n},"paying":{},"a b":null}}"#,
            n.is_multiple_of(2)
        )
    };
    project.seal("0/1-20-a.parquet", some(1, &of_web));
    // Other types, and a column more.
    let others = |n: u64| format!(r#"{{"$browser":{n},"count":"{n}","a b":"\u00e4{}"}}"#, n % 3);
    project.seal("0/41-60-b.parquet", some(41, &others));
    project.seal("1/100-119-c.parquet", some(100, &of_web));
    assert_eq!(project.columns.len(), 4);
    let before = project.check().await;

    project.merge(["0/1-20-a.parquet", "0/41-60-b.parquet"], "0/1-60-d.parquet");
    assert_eq!(project.check().await, before, "the same events in other files");

    // Commits until the log has a checkpoint.
    let mut known = |version: u64| {
        let file = project.files["1/100-119-c.parquet"].0.clone();
        let gone = [file.path.clone()];
        let change =
            if version.is_multiple_of(2) { Change::Remove(&gone) } else { Change::Add(&[file]) };
        project.table.commit(&project.columns, change, NOW).unwrap().unwrap()
    };
    let mut version = 4;
    while version <= CHECKPOINT {
        version = known(version) + 1;
    }
    known(version);
    let log = project.path("_delta_log");
    let name = |version: u64, of: &str| log.join(format!("{version:020}{of}"));
    assert!(Path::new(&name(CHECKPOINT - 1, ".checkpoint.parquet")).exists());
    for old in 0..CHECKPOINT {
        fs::remove_file(name(old, ".json")).unwrap();
    }
    assert_eq!(project.check().await, before, "from the checkpoint");
}
