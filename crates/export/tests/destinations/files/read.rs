//! Reading exported files back: JSON Lines as text, Parquet with pyarrow and with
//! DuckDB.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use weir_testkit::servers::python;

use super::support::{PERSON, PROPERTIES};

const SCRIPT: &str = r#"
import json, sys
import duckdb, pyarrow as pa, pyarrow.parquet as pq
path = json.load(sys.stdin)
table = pq.read_table(path, partitioning=None)
plain = lambda value: value
micros = [field.name for field in table.schema if pa.types.is_timestamp(field.type)]
for name in micros:
    at = table.schema.get_field_index(name)
    table = table.set_column(at, name, table.column(name).cast(pa.int64()))
query = duckdb.connect()
query.execute("SET TimeZone = 'UTC'")
columns = query.execute("DESCRIBE SELECT * FROM read_parquet(?, hive_partitioning = false)", [path]).fetchall()
names = [column[0] for column in columns]
shown = [f"epoch_us({name})" if name in micros else f'"{name}"' for name in names]
found = query.execute(f"SELECT {', '.join(shown)} FROM read_parquet(?, hive_partitioning = false)", [path]).fetchall()
deep = query.execute(
    "SELECT json_extract_string(properties, '$.big'), "
    "json_extract_string(properties, '$.deep.a[0]') FROM read_parquet(?, hive_partitioning = false)", [path]).fetchall()
print(json.dumps({
    "pyarrow": {
        "types": {field.name: str(field.type) for field in pq.read_schema(path)},
        "rows": table.to_pylist(),
    },
    "duckdb": {
        "types": {column[0]: column[1] for column in columns},
        "rows": [dict(zip(names, row)) for row in found],
        "deep": deep,
    },
}))
"#;

/// The content of a file according to pyarrow and DuckDB.
async fn parquet(path: &Path) -> Value {
    python(SCRIPT, &json!(path.to_str().unwrap())).await
}

/// The lines of a file, decompressed by the codec in its name.
#[expect(clippy::disallowed_methods, reason = "the tests compressed it themselves")]
pub(crate) fn lines(path: &Path) -> Vec<String> {
    let compressed = fs::read(path).unwrap();
    let mut text = String::new();
    match path.extension().unwrap().to_str().unwrap() {
        "gz" => {
            flate2::read::MultiGzDecoder::new(&compressed[..]).read_to_string(&mut text).unwrap();
        }
        "br" => {
            brotli::Decompressor::new(&compressed[..], 4096).read_to_string(&mut text).unwrap();
        }
        "jsonl" => text = String::from_utf8(compressed).unwrap(),
        other => panic!("a codec of its own: {other}"),
    }
    text.lines().map(str::to_owned).collect()
}

/// The files below a directory: names relative to it, in order.
pub(crate) fn listed(root: &Path) -> Vec<String> {
    fn walk(at: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { walk(&path, found) } else { found.push(path) }
        }
    }
    let mut found = Vec::new();
    walk(root, &mut found);
    let name = |path: PathBuf| path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
    let mut names: Vec<String> = found.into_iter().map(name).collect();
    names.sort();
    names
}

/// The number of events in a file of one of the formats.
pub(crate) async fn events(path: &Path) -> usize {
    if path.to_string_lossy().contains(".jsonl") {
        return lines(path).len();
    }
    parquet(path).await["duckdb"]["rows"].as_array().unwrap().len()
}

/// The events of `odd` as rows.
fn expected() -> [Value; 2] {
    let hard = json!({
        "uuid": "00000000-0000-0000-0000-000000000001",
        "timestamp": 1_787_321_100_000_002_i64,
        "_inserted_at": 1_787_321_101_000_001_i64,
        "created_at": 1_787_321_101_000_001_i64,
        "event": "naïve \"🦀\"\n\t\\",
        "properties": PROPERTIES,
        "distinct_id": "a\u{0}b",
        "elements_chain": "button:nth-child=\"1\"text=\"Buy\"",
        "person_properties": PERSON,
        "person_id": "00000000-0000-0000-0000-000000000009",
    });
    let empty = json!({
        "uuid": "00000000-0000-0000-0000-000000000002",
        "timestamp": -1,
        "_inserted_at": 1_787_321_101_000_001_i64,
        "created_at": 1_787_321_101_000_001_i64,
        "event": "paid",
        "properties": "{}",
        "distinct_id": "user-2",
        "elements_chain": "",
        "person_properties": null,
        "person_id": null,
    });
    [hard, empty]
}

/// Asserts that a file holds the events of `odd`, with every value and every type.
pub(crate) async fn assert_odd(path: &Path) {
    let name = path.display();
    if path.to_string_lossy().contains(".jsonl") {
        assert_odd_lines(&lines(path));
        return;
    }
    let read = parquet(path).await;
    let [time, text] = ["timestamp[us, tz=UTC]", "string"];
    let of_pyarrow = types(time, text);
    let of_duckdb = types("TIMESTAMP WITH TIME ZONE", "VARCHAR");
    assert_eq!(read["pyarrow"]["types"], of_pyarrow, "{name}");
    assert_eq!(read["duckdb"]["types"], of_duckdb, "{name}");
    for reader in ["pyarrow", "duckdb"] {
        assert_eq!(read[reader]["rows"], json!(expected()), "{name} {reader}");
    }
    assert_eq!(read["duckdb"]["deep"], json!([["9007199254740993", "1"], [null, null]]), "{name}");
}

fn types(time: &str, text: &str) -> Value {
    json!({
        "uuid": text, "timestamp": time, "_inserted_at": time, "created_at": time, "event": text,
        "properties": text, "distinct_id": text, "elements_chain": text,
        "person_properties": text, "person_id": text,
    })
}

fn assert_odd_lines(lines: &[String]) {
    assert_eq!(lines.len(), 2);
    // Compared as text, so that no reader rounds a number.
    let flat = PROPERTIES.replace('\n', " ");
    assert!(lines[0].contains(&format!("\"properties\":{flat},")), "{}", lines[0]);
    assert!(lines[0].contains(&format!("\"person_properties\":{PERSON},")), "{}", lines[0]);
    for (line, expected) in lines.iter().zip(expected()) {
        let row: Value = serde_json::from_str(line).unwrap();
        assert_eq!(row.as_object().unwrap().len(), 10);
        for (name, expected) in expected.as_object().unwrap() {
            match name.as_str() {
                "properties" | "person_properties" => {
                    assert_eq!(row[name].is_object(), expected.is_string(), "{name}");
                }
                "timestamp" | "_inserted_at" | "created_at" => {
                    let time = weir_model::Timestamp::parse(row[name].as_str().unwrap()).unwrap();
                    assert_eq!(Some(time.micros()), expected.as_i64(), "{name}");
                }
                _ => assert_eq!(&row[name], expected, "{name}"),
            }
        }
    }
}
