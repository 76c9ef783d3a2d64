//! The tables that other engines read have the segments of the catalog.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use weir_model::Timestamp;
use weir_segments::delta::{self, Change, Table};
use weir_segments::{ColumnType, TypedColumn};

use super::super::support::{PROJECT, batch, events};
use super::removing::add_at;
use super::support::{NOW, Opened, drop_old, merge_once, now, seal, uuid};
use crate::events::segments::{MergeBounds, merge_segments_within};
use crate::events::{SealBounds, apply, position, purge, seal_all};
use crate::transaction::tests::stored_of;

const DAY: i64 = 86_400_000_000;

impl Opened {
    /// The paths in the table of the project, which must be the files that there are.
    #[track_caller]
    fn listed(&self) -> BTreeSet<PathBuf> {
        let directory = self.table(PROJECT);
        let table = Table::open(&directory).unwrap();
        let listed: BTreeSet<PathBuf> = table.paths().map(|path| directory.join(path)).collect();
        assert_eq!(listed, self.segment_files().into_iter().collect());
        listed
    }

    fn version(&self) -> Option<u64> {
        Table::open(&self.table(PROJECT)).unwrap().version()
    }

    /// The name and type of each typed column, as the newest commit with columns has them.
    fn columns(&self) -> Vec<(String, String)> {
        let newest = self.version().unwrap();
        let texts = (0..=newest).rev().map(|version| fs::read_to_string(self.commit(version)));
        let lines: Vec<Value> = texts
            .flat_map(|text| -> Vec<Value> {
                text.unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
            })
            .collect();
        let schema = lines.iter().find_map(|line| line["metaData"]["schemaString"].as_str());
        let schema: Value = serde_json::from_str(schema.unwrap()).unwrap();
        let fields = schema["fields"].as_array().unwrap().iter();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        fields
            .map(|field| (text(&field["name"]), text(&field["type"])))
            .filter_map(|(name, of)| Some((name.strip_prefix("properties_")?.to_owned(), of)))
            .collect()
    }

    /// Adds a block whose events have these properties.
    async fn add(&self, first: u64, properties: &str) {
        let mut some = events(first, first + 9, "a");
        for event in &mut some {
            event.properties = properties.to_owned();
            event.uuid = uuid(event.arrival);
        }
        let at = position(&self.store, 0).await.unwrap().offset;
        apply(&self.store, batch(0, at, at + 1, &some)).await.unwrap();
    }

    /// The commit of a version.
    fn commit(&self, version: u64) -> PathBuf {
        self.table(PROJECT).join(format!("_delta_log/{version:020}.json"))
    }
}

#[tokio::test]
async fn the_table_has_what_was_sealed_merged_and_removed() {
    let mut opened = Opened::new().await;
    for (number, day) in (0..).zip([1, 2, 3, 100, 101, 200]) {
        add_at(&opened, 0, number * 10 + 1, day * DAY).await;
    }
    assert_eq!(seal(&opened.store, 10).await.segments, 5);
    assert_eq!((opened.listed().len(), opened.version()), (5, Some(4)));
    assert_eq!(merge_once(&opened.store, 2, 1_000).await.unwrap().segments, 2);
    assert_eq!((opened.listed().len(), opened.version()), (4, Some(5)));
    let merge = fs::read_to_string(opened.commit(5)).unwrap();
    assert!(merge.contains("OPTIMIZE") && !merge.contains("\"dataChange\":true"), "{merge}");
    let before = Timestamp::from_micros(50 * DAY);
    assert_eq!(drop_old(&opened.store, PROJECT, before, &[]).await.unwrap().segments, 2);
    assert_eq!((opened.listed().len(), opened.version()), (2, Some(6)));
    assert!(fs::read_to_string(opened.commit(6)).unwrap().contains("DELETE"));
    // Nothing changes, and nothing is written.
    for _ in 0..2 {
        assert_eq!(seal(&opened.store, 10).await.segments, 0);
        assert_eq!((opened.listed().len(), opened.version()), (2, Some(6)));
        opened = opened.reopen().await;
    }
    add_at(&opened, 0, 61, 201 * DAY).await;
    assert_eq!(seal(&opened.store, 10).await.segments, 1);
    assert_eq!((opened.listed().len(), opened.version()), (3, Some(7)));
    let before = Timestamp::from_micros(500 * DAY);
    assert_eq!(drop_old(&opened.store, PROJECT, before, &[]).await.unwrap().segments, 3);
    assert_eq!((opened.listed().len(), opened.version()), (0, Some(8)));
}

#[tokio::test]
async fn the_table_has_the_typed_columns_of_its_files() {
    let mut opened = Opened::new().await;
    let column = |name: &str, of: &str| (name.to_owned(), of.to_owned());
    opened.add(1, r#"{"n":1,"plan":"a"}"#).await;
    opened.add(11, r#"{"n":"one","b":true,"plan":"b"}"#).await;
    assert_eq!(seal(&opened.store, 10).await.segments, 1);
    let mut expected = vec![column("n", "double"), column("plan", "string")];
    assert_eq!(opened.columns(), expected);
    opened = opened.reopen().await;
    opened.add(21, r#"{"n":"two","A":1}"#).await;
    // A column is added, and none changes.
    assert_eq!(seal(&opened.store, 10).await.segments, 1);
    expected.push(column("b", "boolean"));
    assert_eq!(opened.columns(), expected);
    opened.add(31, "{}").await;
    assert_eq!(seal(&opened.store, 10).await.segments, 1);
    expected.push(column("A", "double"));
    assert_eq!(opened.columns(), expected);
    merge_once(&opened.store, 3, 1_000).await.unwrap();
    assert_eq!((opened.listed().len(), opened.columns()), (1, expected.clone()));
    fs::remove_dir_all(opened.table(PROJECT).join("_delta_log")).unwrap();
    opened = opened.reopen().await;
    seal(&opened.store, 10).await;
    assert_eq!((opened.listed().len(), opened.columns()), (1, expected));
    assert_eq!(opened.store.segment_damage(), 0);
}

/// Changes the log of an open or a closed store.
async fn change(opened: Opened, is_open: bool, change: impl FnOnce(&Path)) -> Opened {
    let table = opened.table(PROJECT);
    if is_open {
        change(&table);
        return opened;
    }
    opened.reopen_after(|_| change(&table)).await
}

fn remove_newest(table: &Path) {
    let newest = delta::newest(table).unwrap().unwrap();
    fs::remove_file(table.join(format!("_delta_log/{newest:020}.json"))).unwrap();
}

/// A process that ends between a transaction and its commit in the log.
#[tokio::test]
async fn a_commit_that_is_missing_is_written_by_the_next_pass() {
    for is_open in [true, false] {
        let mut opened = Opened::new().await;
        for (number, day) in (0..).zip([1, 2, 100, 101, 200]) {
            add_at(&opened, 0, number * 10 + 1, day * DAY).await;
        }
        seal(&opened.store, 10).await;
        for files in [4, 3, 2] {
            assert_eq!(opened.listed().len(), files);
            let version = opened.version();
            opened = change(opened, is_open, remove_newest).await;
            assert_eq!(seal(&opened.store, 10).await.segments, 0);
            assert_eq!((opened.listed().len(), opened.version()), (files, version));
            if files == 4 {
                merge_once(&opened.store, 2, 1_000).await.unwrap();
            } else {
                let before = Timestamp::from_micros(50 * DAY);
                drop_old(&opened.store, PROJECT, before, &[]).await.unwrap();
            }
        }
    }
}

#[tokio::test]
async fn a_log_that_is_gone_damaged_or_changed_is_written_again() {
    type How<'a> = &'a dyn Fn(&Path);
    const FIRST: &str = "_delta_log/00000000000000000000.json";
    const PROTOCOL: &str =
        r#"{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":[]}}"#;
    let other_types = |table: &Path| {
        for entry in fs::read_dir(table.join("_delta_log")).unwrap() {
            let path = entry.unwrap().path();
            let text = fs::read_to_string(&path).unwrap();
            fs::write(&path, text.replace("double", "string")).unwrap();
        }
    };
    let changes: [(&str, How<'_>); 6] = [
        ("gone", &|table| fs::remove_dir_all(table.join("_delta_log")).unwrap()),
        ("begins later", &|table| fs::remove_file(table.join(FIRST)).unwrap()),
        ("damaged", &|table| fs::write(table.join(FIRST), "{").unwrap()),
        ("newer", &|table| fs::write(table.join(FIRST), PROTOCOL).unwrap()),
        ("other types", &other_types),
        ("other files", &|table| {
            let mut other = Table::open(table).unwrap();
            let columns = [TypedColumn { property: "n".to_owned(), kind: ColumnType::Number }];
            let gone: Vec<String> = other.paths().take(1).map(str::to_owned).collect();
            other.commit(&columns, Change::Remove(&gone), 0).unwrap();
        }),
    ];
    let mut opened = Opened::new().await;
    for number in 0..4 {
        opened.add(number * 10 + 1, r#"{"n":1}"#).await;
    }
    seal(&opened.store, 10).await;
    let (mut files, mut next) = (3, 41);
    for (what, how) in changes {
        assert_eq!(opened.listed().len(), files);
        opened = change(opened, false, how).await;
        assert_eq!(seal(&opened.store, 10).await.segments, 0);
        assert_eq!(opened.listed().len(), files, "{what}");
        // It is found with the next segment at the latest.
        opened = change(opened, true, how).await;
        opened.add(next, r#"{"n":1}"#).await;
        assert_eq!(seal(&opened.store, 10).await.segments, 1);
        (files, next) = (files + 1, next + 10);
        assert_eq!(opened.listed().len(), files, "{what}");
    }
    assert_eq!(opened.columns(), [("n".to_owned(), "double".to_owned())]);
    assert_eq!(opened.store.segment_damage(), 0);
}

#[tokio::test]
async fn events_are_sealed_and_merged_without_a_log() {
    let opened = Opened::new().await;
    for number in 0..4 {
        opened.add(number * 10 + 1, r#"{"n":1}"#).await;
    }
    let log = opened.table(PROJECT).join("_delta_log");
    fs::create_dir_all(opened.table(PROJECT)).unwrap();
    fs::write(&log, "a file").unwrap();
    assert_eq!(seal(&opened.store, 10).await.segments, 3);
    assert_eq!(merge_once(&opened.store, 2, 1_000).await.unwrap().segments, 2);
    fs::remove_file(&log).unwrap();
    assert_eq!(seal(&opened.store, 10).await.segments, 0);
    assert_eq!((opened.listed().len(), opened.version()), (2, Some(0)));
}

/// For a reader that has begun with the version before the merge.
#[tokio::test]
async fn files_that_were_merged_stay_for_a_while() {
    const MINUTE: i64 = 60_000_000;
    let opened = Opened::new().await;
    for number in 0..5 {
        opened.add(number * 10 + 1, r#"{"n":1}"#).await;
    }
    seal(&opened.store, 10).await;
    let old = opened.listed();
    let bounds = MergeBounds { fan_in: 4, events: 1_000 };
    merge_segments_within(&opened.store, now(), bounds).await.unwrap().unwrap();
    for (minutes, files) in [(0, 5), (9, 5), (10, 1)] {
        let at = Timestamp::from_micros(NOW + minutes * MINUTE);
        let bounds = SealBounds { events: 10, age: i64::MAX, ..SealBounds::default() };
        seal_all(&opened.store, at, usize::MAX, bounds).await.unwrap();
        assert_eq!(opened.segment_files().len(), files);
        assert_eq!(old.iter().all(|file| file.exists()), files == 5);
    }
    assert_eq!(opened.listed().len(), 1);
}

#[tokio::test]
async fn a_purge_leaves_no_table() {
    let opened = Opened::new().await;
    for number in 0..5 {
        opened.add(number * 10 + 1, r#"{"n":1}"#).await;
    }
    seal(&opened.store, 10).await;
    let bounds = MergeBounds { fan_in: 2, events: 1_000 };
    merge_segments_within(&opened.store, now(), bounds).await.unwrap().unwrap();
    assert_eq!(stored_of(&opened.store, "event_columns").await.len(), 1);
    for _ in 0..2 {
        purge(&opened.store, PROJECT).await.unwrap();
        assert_eq!(stored_of(&opened.store, "event_columns").await.len(), 0);
        assert!(!opened.table(PROJECT).exists());
        seal(&opened.store, 10).await;
    }
}
