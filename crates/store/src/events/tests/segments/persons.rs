//! Snapshots of persons, as pyarrow, delta-rs and DuckDB read them.

use std::path::Path;

use serde_json::{Value, json};
use uuid::Uuid;
use weir_model::PersonId;
use weir_testservers::python;

use super::super::support::{PROJECT, batch, events};
use super::support::{Opened, now, seal, uuid};
use crate::events::{apply, position, purge, write_persons};
use crate::hash_ranges::ScanLimits;
use crate::persons::{self, Facts, Merged, PersonState, PersonWrite, first_id};

/// What each engine reads of the table in a directory.
const SCRIPT: &str = r#"
import json, sys
import duckdb, pyarrow as pa
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem
from deltalake import DeltaTable

path = json.load(sys.stdin)
table = DeltaTable(path)
native = SubTreeFileSystem(path, LocalFileSystem())
found = table.to_pyarrow_table(filesystem=native)
at = found.schema.get_field_index("created_at")
later = table.to_pyarrow_table(filesystem=native, filters=[("is_identified", "=", True)]).num_rows
types = {field.name: str(field.type) for field in found.schema}
found = found.set_column(at, "created_at", found.column(at).cast(pa.int64())).to_pylist()
query = duckdb.connect()
rows = query.execute(
    "SELECT uuid, distinct_ids, properties, epoch_us(created_at), is_identified "
    "FROM read_parquet(?) ORDER BY uuid", [table.file_uris()]).fetchall()
resolved = query.execute(
    "SELECT count(DISTINCT uuid), count(*) FROM "
    "(SELECT uuid, unnest(distinct_ids) FROM read_parquet(?))", [table.file_uris()]).fetchone()
print(json.dumps({
    "version": table.version(), "types": types, "identified": later, "resolved": list(resolved),
    "pyarrow": [list(row.values()) for row in sorted(found, key=lambda row: row["uuid"])],
    "duckdb": [list(row) for row in rows],
}))
"#;

fn person(ids: &[&str], properties: &str, is_identified: bool) -> PersonState {
    PersonState::Person(Facts {
        distinct_ids: ids.iter().map(|id| (*id).to_owned()).collect(),
        properties: properties.to_owned(),
        created_at: 1_700_000_000_000_001,
        is_identified,
    })
}

/// Applies events `from..=to` with these records.
async fn add(opened: &Opened, from: u64, states: Vec<(&str, Option<i64>, PersonState)>) {
    let mut some = events(from, from + 9, "a");
    for event in &mut some {
        event.uuid = uuid(event.arrival);
    }
    let at = position(&opened.store, 0).await.unwrap().offset;
    let mut write = batch(0, at, at + 1, &some);
    write.projects[0].persons = states
        .into_iter()
        .map(|(first, expected, state)| PersonWrite {
            id: first_id(PROJECT, first),
            state,
            expected,
            version: expected.unwrap_or(0) + 1,
        })
        .collect();
    apply(&opened.store, write).await.unwrap();
}

/// The persons of the store, as rows.
async fn stored(opened: &Opened) -> Vec<Value> {
    let limits = ScanLimits::records(10_000);
    let page = persons::page(&opened.store, PROJECT, None, 1_000, limits, |_| true).await;
    let page = page.unwrap();
    assert_eq!(page.next, None);
    let mut rows: Vec<(Uuid, Value)> = page
        .persons
        .into_iter()
        .map(|person| {
            let PersonId(uuid) = person.id;
            let at = person.created_at.micros();
            let of = (person.distinct_ids, person.properties, person.is_identified);
            (uuid, json!([uuid, of.0, of.1, at, of.2]))
        })
        .collect();
    rows.sort_by_key(|(uuid, _)| *uuid);
    rows.into_iter().map(|(_, row)| row).collect()
}

fn parquet_files(directory: &Path) -> usize {
    let entries = std::fs::read_dir(directory).into_iter().flatten();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.ends_with(".parquet")).count()
}

#[tokio::test]
async fn a_snapshot_has_the_persons_of_the_store() {
    let mut opened = Opened::new().await;
    let directory = opened.table(PROJECT).join("persons");
    let one = person(&["a"], r#"{"größe":1.50}"#, false);
    let other = person(&["b"], "{}", false);
    add(&opened, 1, vec![("a", None, one), ("b", None, other)]).await;
    let written = write_persons(&opened.store, now()).await.unwrap();
    assert_eq!((written.projects, written.persons), (1, 2));
    let before = stored(&opened).await;
    // Two persons become one, and there is another one.
    let merged = PersonState::Merged(Merged { into: first_id(PROJECT, "a"), at: 1, by: uuid(3) });
    let both = person(&["a", "b", "ü"], r#"{"plan":"pro"}"#, true);
    let third = person(&["c"], "{}", false);
    add(&opened, 11, vec![("a", Some(1), both), ("b", Some(1), merged), ("c", None, third)]).await;
    opened = opened.reopen().await;
    let written = write_persons(&opened.store, now()).await.unwrap();
    assert_eq!((written.projects, written.persons), (1, 2));
    assert_eq!(parquet_files(&directory), 2, "the files of the snapshot before stay");
    let after = stored(&opened).await;
    assert_ne!(before, after);
    if std::env::var_os("WEIR_QUICK").is_none() {
        let found = python(SCRIPT, &json!(directory.to_str().unwrap())).await;
        assert_eq!(found["version"], 1);
        assert_eq!(found["pyarrow"], json!(after));
        assert_eq!(found["duckdb"], json!(after));
        assert_eq!((&found["identified"], &found["resolved"]), (&json!(1), &json!([2, 4])));
        let types = json!({
            "uuid": "string", "distinct_ids": "list<element: string not null>",
            "properties": "string", "created_at": "timestamp[us, tz=UTC]",
            "is_identified": "bool",
        });
        assert_eq!(found["types"], types);
    }
    // The log has a checkpoint in between.
    for _ in 0..101 {
        write_persons(&opened.store, now()).await.unwrap();
    }
    assert_eq!(parquet_files(&directory), 2);
    if std::env::var_os("WEIR_QUICK").is_none() {
        let found = python(SCRIPT, &json!(directory.to_str().unwrap())).await;
        assert_eq!((&found["version"], &found["pyarrow"]), (&json!(102), &json!(after)));
    }
    // Sealing and a start leave it alone, and a purge does not.
    seal(&opened.store, 10).await;
    opened = opened.reopen().await;
    assert_eq!(parquet_files(&directory), 2);
    // A log that is damaged is written again.
    std::fs::write(directory.join("_delta_log/00000000000000000102.json"), "{").unwrap();
    write_persons(&opened.store, now()).await.unwrap();
    assert_eq!(weir_segments::delta::newest(&directory).unwrap(), Some(0));
    purge(&opened.store, PROJECT).await.unwrap();
    assert!(!directory.exists());
}
