use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::segment::ColumnType;

const NOW: i64 = 1_800_000_000_123;

fn column(property: &str, kind: ColumnType) -> TypedColumn {
    TypedColumn { property: property.to_owned(), kind }
}

fn columns() -> Vec<TypedColumn> {
    vec![
        column("$browser", ColumnType::Text),
        column("a b", ColumnType::Number),
        column("paying", ColumnType::Boolean),
    ]
}

fn file(path: &str, rows: u64) -> TableFile {
    TableFile {
        path: path.to_owned(),
        bytes: rows * 64,
        rows,
        from_time: 1_700_000_000_000_001,
        to_time: 1_700_000_001_500_000,
        arrivals: Some((10, 10 + rows)),
        modified: NOW - 5,
    }
}

/// The lines of a commit.
fn lines(directory: &TempDir, version: u64) -> Vec<Value> {
    let path = Log::of(directory.path()).commit(version);
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The names in the directory of the log, in order.
fn names(directory: &TempDir) -> Vec<String> {
    let entries = fs::read_dir(directory.path().join("_delta_log")).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn paths(table: &Table) -> Vec<&str> {
    table.paths().collect()
}

fn add(table: &mut Table, path: &str) -> u64 {
    table.commit(&columns(), Change::Add(&[file(path, 5)]), NOW).unwrap().unwrap()
}

#[test]
fn the_first_commit_says_what_the_table_is() {
    let directory = tempfile::tempdir().unwrap();
    let mut table = Table::open(directory.path()).unwrap();
    assert_eq!((table.version(), table.paths().count()), (None, 0));
    assert!(!directory.path().join("_delta_log").exists(), "nothing before the first commit");
    let files = [file("0/10-15-a.parquet", 5)];
    assert_eq!(table.commit(&columns(), Change::Add(&files), NOW).unwrap(), Some(0));
    assert_eq!(names(&directory), ["00000000000000000000.json"]);
    let [info, protocol, metadata, add] = &lines(&directory, 0)[..] else { panic!() };
    assert_eq!(info["commitInfo"]["timestamp"], NOW);
    assert_eq!(info["commitInfo"]["operation"], "WRITE");
    let versions = json!({ "protocol": { "minReaderVersion": 1, "minWriterVersion": 2 } });
    assert_eq!(*protocol, versions);
    let metadata = &metadata["metaData"];
    assert_eq!(metadata["format"], json!({ "provider": "parquet", "options": {} }));
    assert_eq!(metadata["partitionColumns"], json!([]));
    let stats = json!({ "delta.dataSkippingStatsColumns": "arrival,timestamp" });
    assert_eq!(metadata["configuration"], stats);
    assert_eq!(metadata["createdTime"], NOW);
    let schema: Value = serde_json::from_str(metadata["schemaString"].as_str().unwrap()).unwrap();
    assert_eq!(schema["type"], "struct");
    let found: Vec<(&str, &Value, bool)> = schema["fields"]
        .as_array()
        .unwrap()
        .iter()
        .map(|field| {
            let name = field["name"].as_str().unwrap();
            (name, &field["type"], field["nullable"].as_bool().unwrap())
        })
        .collect();
    let codes = json!({ "type": "array", "elementType": "string", "containsNull": false });
    let [long, text, time, yes, double] =
        ["long", "string", "timestamp", "boolean", "double"].map(Value::from);
    let expected = [
        ("arrival", &long, false),
        ("uuid", &text, false),
        ("event", &text, false),
        ("distinct_id", &text, false),
        ("timestamp", &time, false),
        ("received_at", &time, false),
        ("elements_chain", &text, false),
        ("historical", &yes, false),
        ("warnings", &codes, false),
        ("properties", &text, false),
        ("properties_$browser", &text, true),
        ("properties_a_b", &double, true),
        ("properties_paying", &yes, true),
    ];
    assert_eq!(found, expected);
    assert_eq!(schema["fields"][11]["metadata"]["comment"], "property a b");
    let add = &add["add"];
    let stats: Value = serde_json::from_str(add["stats"].as_str().unwrap()).unwrap();
    let expected = json!({
        "path": "0/10-15-a.parquet",
        "partitionValues": {},
        "size": 320,
        "modificationTime": NOW - 5,
        "dataChange": true,
        "stats": add["stats"],
    });
    assert_eq!(*add, expected);
    let expected = json!({
        "numRecords": 5,
        "minValues": { "arrival": 10, "timestamp": "2023-11-14T22:13:20.000001Z" },
        "maxValues": { "arrival": 15, "timestamp": "2023-11-14T22:13:21.500000Z" },
        "nullCount": { "arrival": 0, "timestamp": 0 },
    });
    assert_eq!(stats, expected);
}

#[test]
fn bounds_that_text_cannot_hold_are_not_given() {
    let directory = tempfile::tempdir().unwrap();
    let mut table = Table::open(directory.path()).unwrap();
    let files = [TableFile {
        from_time: i64::MIN,
        to_time: i64::MAX,
        arrivals: None,
        ..file("0/a.parquet", 5)
    }];
    table.commit(&[], Change::Add(&files), NOW).unwrap();
    let lines = lines(&directory, 0);
    let stats: Value = serde_json::from_str(lines[3]["add"]["stats"].as_str().unwrap()).unwrap();
    assert_eq!((&stats["minValues"], &stats["maxValues"]), (&json!({}), &json!({})));
    assert_eq!(Table::open(directory.path()).unwrap().version(), Some(0));
}

#[test]
fn a_merge_is_no_change_of_data_and_a_removal_is_one() {
    let directory = tempfile::tempdir().unwrap();
    let mut table = Table::open(directory.path()).unwrap();
    let [a, b, c] = ["0/a.parquet", "0/b.parquet", "1/c.parquet"];
    for path in [a, b, c] {
        add(&mut table, path);
    }
    let old = [a.to_owned(), b.to_owned()];
    let new = [file("0/ab.parquet", 10)];
    let replace = Change::Replace { old: &old, new: &new };
    assert_eq!(table.commit(&columns(), replace, NOW).unwrap(), Some(3));
    let lines = |version| lines(&directory, version);
    let [info, first, second, third] = &lines(3)[..] else { panic!() };
    assert_eq!(info["commitInfo"]["operation"], "OPTIMIZE");
    for (line, path) in [(&first["remove"], a), (&second["remove"], b)] {
        assert_eq!((&line["path"], &line["dataChange"]), (&path.into(), &false.into()));
        assert_eq!(line["deletionTimestamp"], NOW);
        assert_eq!(line["size"], 320);
    }
    assert_eq!(third["add"]["dataChange"], false);
    assert_eq!(paths(&table), ["0/ab.parquet", c]);
    // Once more, as after a crash.
    assert_eq!(table.commit(&columns(), replace, NOW).unwrap(), None);
    table.commit(&columns(), Change::Remove(&[c.to_owned()]), NOW).unwrap();
    assert_eq!(lines(4)[1]["remove"]["dataChange"], true);
    assert_eq!(lines(4).len(), 2);
    assert_eq!(paths(&Table::open(directory.path()).unwrap()), ["0/ab.parquet"]);
}

#[test]
fn files_without_some_events_are_a_change_of_data() {
    let directory = tempfile::tempdir().unwrap();
    let mut table = Table::open(directory.path()).unwrap();
    add(&mut table, "0/1.parquet");
    let old = ["0/1.parquet".to_owned()];
    let new = [file("0/2.parquet", 3)];
    let change = Change::Rewrite { old: &old, new: &new };
    let version = table.commit(&columns(), change, 7).unwrap().unwrap();
    let lines = lines(&directory, version);
    let changes: Vec<&Value> = lines
        .iter()
        .filter_map(|line| line.get("add").or(line.get("remove"))?.get("dataChange"))
        .collect();
    assert_eq!(changes, [&Value::Bool(true), &Value::Bool(true)]);
    assert_eq!(paths(&table), ["0/2.parquet"]);
}

#[test]
fn columns_are_added_and_never_changed() {
    let directory = tempfile::tempdir().unwrap();
    let mut table = Table::open(directory.path()).unwrap();
    let mut columns = columns();
    table.commit(&columns, Change::Add(&[file("0/a", 5)]), NOW).unwrap();
    columns.push(column("new", ColumnType::Number));
    assert_eq!(table.commit(&columns, Change::Add(&[]), NOW + 1).unwrap(), Some(1));
    let [first, second] = [&lines(&directory, 0)[2], &lines(&directory, 1)[1]];
    for unchanged in ["id", "createdTime"] {
        assert_eq!(first["metaData"][unchanged], second["metaData"][unchanged]);
    }
    let schema = second["metaData"]["schemaString"].as_str().unwrap();
    assert!(schema.contains("properties_new"), "{schema}");
    assert_eq!(table.commit(&columns, Change::Add(&[]), NOW).unwrap(), None);
    let mut table = Table::open(directory.path()).unwrap();
    let mut changed = columns.clone();
    changed[1].kind = ColumnType::Text;
    for columns in [&columns[..2], &changed] {
        let error = table.commit(columns, Change::Add(&[file("0/b", 5)]), NOW).unwrap_err();
        assert!(matches!(error, Error::ColumnChanged { .. }), "{error}");
    }
    columns.push(column("A.b", ColumnType::Number));
    let error = table.commit(&columns, Change::Add(&[]), NOW).unwrap_err();
    assert!(error.to_string().contains("two columns"), "{error}");
    assert_eq!((table.version(), names(&directory).len()), (Some(1), 2));
}

#[test]
fn a_path_that_needs_other_characters_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let mut table = Table::open(directory.path()).unwrap();
    for path in ["", "/a", "a b", "ä", "a%20", "s3://a"] {
        let error = table.commit(&[], Change::Add(&[file(path, 1)]), NOW).unwrap_err();
        assert!(matches!(error, Error::Encode { .. }), "{path}");
    }
    assert_eq!(table.version(), None);
}

#[test]
fn a_version_is_written_once() {
    let directory = tempfile::tempdir().unwrap();
    let mut one = Table::open(directory.path()).unwrap();
    add(&mut one, "0/a");
    let mut other = Table::open(directory.path()).unwrap();
    add(&mut one, "0/b");
    let error = other.commit(&columns(), Change::Add(&[file("0/c", 5)]), NOW).unwrap_err();
    assert!(matches!(error, Error::VersionConflict { version: 1, .. }), "{error}");
    let mut other = Table::open(directory.path()).unwrap();
    assert_eq!(paths(&other), ["0/a", "0/b"]);
    assert_eq!(add(&mut other, "0/c"), 2);
}

#[test]
fn the_log_has_checkpoints_and_does_not_grow_for_ever() {
    let directory = tempfile::tempdir().unwrap();
    let mut table = Table::open(directory.path()).unwrap();
    let mut expected: Vec<TableFile> = Vec::new();
    for version in 0..3 * CHECKPOINT + 5 {
        if version % 5 == 4 {
            // One that a checkpoint may have, and the newest.
            let gone = [expected.remove(0).path, expected.pop().unwrap().path];
            table.commit(&columns(), Change::Remove(&gone), NOW).unwrap();
        } else {
            let new = file(&format!("0/{version:03}.parquet"), version);
            table.commit(&columns(), Change::Add(std::slice::from_ref(&new)), NOW).unwrap();
            expected.push(new);
        }
        assert_eq!(table.version(), Some(version));
        assert_eq!(newest(directory.path()).unwrap(), Some(version));
        let mut again = Table::open(directory.path()).unwrap();
        assert_eq!(again.version(), Some(version));
        assert_eq!(again.bring_up_to(&columns(), &expected, NOW).unwrap(), None, "{version}");
        assert!(names(&directory).len() as u64 <= 2 * CHECKPOINT + 4, "{:?}", names(&directory));
        if version % 7 == 0 {
            table = again;
        }
    }
    // The last checkpoint but one, and everything after it.
    let names = names(&directory);
    let checkpoint = |version: u64| format!("{version:020}.checkpoint.parquet");
    assert_eq!(names[0], checkpoint(199));
    assert_eq!(names[1], "00000000000000000199.json");
    assert_eq!(names.iter().filter(|name| name.ends_with(".parquet")).count(), 2);
    assert!(names.contains(&checkpoint(299)));
    assert_eq!(names.iter().filter(|name| name.ends_with(".json")).count(), 106);
    let last = fs::read_to_string(directory.path().join("_delta_log/_last_checkpoint")).unwrap();
    let last: Value = serde_json::from_str(&last).unwrap();
    assert_eq!(last["version"], 299);
    // The last five commits add two files, and two rows are no files.
    assert_eq!(last["size"], expected.len());
}

#[test]
fn a_table_is_brought_up_to_the_catalog() {
    let directory = tempfile::tempdir().unwrap();
    let mut table = Table::open(directory.path()).unwrap();
    let files = [file("0/a", 5), file("0/b", 5), file("1/c", 7)];
    assert_eq!(table.bring_up_to(&columns(), &files, NOW).unwrap(), Some(0));
    assert_eq!(table.bring_up_to(&columns(), &files, NOW).unwrap(), None);
    // After a merge without its commit.
    let files = [file("0/ab", 10), file("1/c", 7)];
    assert_eq!(table.bring_up_to(&columns(), &files, NOW).unwrap(), Some(1));
    let lines = |version| lines(&directory, version);
    let changes = |version: u64| -> Vec<bool> {
        let of = |line: &Value| {
            let action = line.get("add").or(line.get("remove"))?;
            action["dataChange"].as_bool()
        };
        lines(version).iter().filter_map(of).collect()
    };
    assert_eq!(changes(1), [false; 3]);
    // After a seal and a removal without theirs.
    let files = [file("0/ab", 10), file("0/d", 1)];
    assert_eq!(table.bring_up_to(&columns(), &files, NOW).unwrap(), Some(2));
    assert_eq!(changes(2), [true; 2]);
    // Another file of the same name.
    let files = [file("0/ab", 10), TableFile { bytes: 1, ..file("0/d", 1) }];
    assert_eq!(table.bring_up_to(&columns(), &files, NOW).unwrap(), Some(3));
    // From nothing.
    remove(directory.path()).unwrap();
    assert_eq!(newest(directory.path()).unwrap(), None);
    remove(directory.path()).unwrap();
    let mut table = Table::open(directory.path()).unwrap();
    assert_eq!(table.bring_up_to(&columns()[..1], &files, NOW).unwrap(), Some(0));
    assert_eq!(paths(&table), ["0/ab", "0/d"]);
}

#[test]
fn what_a_crash_has_left_does_no_harm() {
    let directory = tempfile::tempdir().unwrap();
    let mut table = Table::open(directory.path()).unwrap();
    let log = directory.path().join("_delta_log");
    fs::create_dir(&log).unwrap();
    fs::write(log.join(".tmp"), "{\"add\"").unwrap();
    assert_eq!(Table::open(directory.path()).unwrap().version(), None);
    assert_eq!(add(&mut table, "0/a"), 0);
    for n in 1..CHECKPOINT {
        add(&mut table, &format!("0/{n}"));
    }
    fs::write(log.join(".tmp"), "{\"add\"").unwrap();
    // A checkpoint of which no reader knows, and which the next commit writes again.
    let other = tempfile::tempdir().unwrap();
    let mut copy = Table::open(other.path()).unwrap();
    copy.state = Table::open(directory.path()).unwrap().state;
    copy.version = Some(CHECKPOINT - 1);
    fs::create_dir(other.path().join("_delta_log")).unwrap();
    copy.checkpoint_if_due().unwrap();
    let name = format!("{:020}.checkpoint.parquet", CHECKPOINT - 1);
    fs::copy(other.path().join("_delta_log").join(&name), log.join(&name)).unwrap();
    let mut table = Table::open(directory.path()).unwrap();
    assert_eq!((table.version(), table.paths().count()), (Some(CHECKPOINT - 1), 100));
    assert_eq!(add(&mut table, "0/last"), CHECKPOINT);
    assert_eq!(Table::open(directory.path()).unwrap().paths().count(), 101);
}

#[test]
fn a_log_that_is_damaged_or_of_others_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let mut table = Table::open(directory.path()).unwrap();
    for n in 0..CHECKPOINT + 3 {
        add(&mut table, &format!("0/{n}"));
    }
    let log = directory.path().join("_delta_log");
    let newest = log.join("00000000000000000101.json");
    let is_damaged = || {
        let error = Table::open(directory.path()).err().unwrap();
        assert!(matches!(error, Error::Damaged { .. }), "{error}");
    };
    let text = fs::read_to_string(&newest).unwrap();
    for other in ["{\"add\":{}}", "{", "{\"unknown\":{}}", &text[..text.len() - 9]] {
        fs::write(&newest, other).unwrap();
        is_damaged();
    }
    let later = r#"{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":[]}}"#;
    fs::write(&newest, later).unwrap();
    let error = Table::open(directory.path()).err().unwrap();
    assert!(matches!(error, Error::UnknownFormat { .. }), "{error}");
    fs::remove_file(&newest).unwrap();
    is_damaged();
    fs::write(&newest, &text).unwrap();
    Table::open(directory.path()).unwrap();
    let checkpoint = log.join("00000000000000000099.checkpoint.parquet");
    let bytes = fs::read(&checkpoint).unwrap();
    for length in [0, 4, bytes.len() / 2, bytes.len() - 1] {
        fs::write(&checkpoint, &bytes[..length]).unwrap();
        is_damaged();
    }
    fs::remove_file(&checkpoint).unwrap();
    Table::open(directory.path()).unwrap();
    fs::remove_file(log.join("00000000000000000000.json")).unwrap();
    is_damaged();
}
