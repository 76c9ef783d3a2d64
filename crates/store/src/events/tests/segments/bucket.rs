//! Segments in a bucket, at a real server of S3 (moto). `make quick` installs none.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

use serde_json::{Value, json};
use weir_model::Timestamp;
use weir_model::erasures::ErasureState;
use weir_objects::{Access, Bucket, BucketLocation};
use weir_testservers::{Moto, SwitchedProxy, python};

use super::super::support::{PROJECT, ada, batch, events, records};
use super::columns::{read_properties, shown, without_warnings};
use super::damage::flip;
use super::erasing;
use super::reading::known;
use super::removing::add_at;
use super::repair::ENTRY;
use super::seen::Seen;
use super::support::{
    NOW, Opened, add_blocks, drop_old, merge_once, now, open_again, open_with, seal,
};
use crate::erasures::erase_stored;
use crate::events::segments::{MergeBounds, merge_segments_within, remove_replaced};
use crate::events::{
    Copied, HeldObjects, Needed, OpenPart, Scan, SealBounds, SealReport, SegmentCopies,
    SegmentFile, Selection, StoredEvent, TimeRange, apply, damage_found, open_part, open_replaced,
    position, purge, repair_runs, seal_all, snapshot, stored_uuids, uses_bucket, write_persons,
};
use crate::persons::{PersonWrite, first_id};
use crate::{Error, Result, SegmentBucket, Settings, Store, checkpoint};

const DAY: i64 = 86_400_000_000;
const LOCATION: &str = "s3://events/weir";
/// Keeps all copies.
const LARGE: u64 = 1 << 30;

/// Reads the table of a project as delta-rs does.
const SCRIPT: &str = r#"
import json, sys
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

given = json.load(sys.stdin)
table = DeltaTable(given["table"], storage_options={
    "AWS_ENDPOINT_URL": given["url"], "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret",
})
found = QueryBuilder().register("events", table).execute(
    "SELECT count(*) AS events, min(arrival) AS first, max(arrival) AS last FROM events")
row = pa.table(found.read_all()).to_pylist()[0]
print(json.dumps({
    "version": table.version(), "files": len(table.file_uris()), "events": list(row.values()),
}))
"#;

/// A server with a bucket, behind a proxy that can be switched off.
struct Storage {
    moto: Moto,
    proxy: SwitchedProxy,
}

impl Storage {
    /// `None`: there is no server.
    async fn start() -> Option<Self> {
        if std::env::var_os("WEIR_QUICK").is_some() {
            return None;
        }
        let moto = Moto::start().await;
        moto.create_bucket("events").await;
        let proxy = SwitchedProxy::start(moto.address()).await;
        Some(Self { moto, proxy })
    }

    fn settings(&self, cache: u64) -> Settings {
        let (location, access) = (LOCATION.parse().unwrap(), self.access());
        let segments = Some(SegmentBucket { location, access, cache });
        Settings { segments, ..Settings::default() }
    }

    fn access(&self) -> Access {
        Access {
            endpoint: Some(self.proxy.url()),
            region: "us-east-1".to_owned(),
            key: "key".to_owned(),
            secret: "secret".parse().unwrap(),
        }
    }

    fn bucket(&self) -> Bucket {
        let access = Access { endpoint: Some(self.moto.url()), ..self.access() };
        Bucket::new(&LOCATION.parse::<BucketLocation>().unwrap(), &access).unwrap()
    }

    /// The names of all objects.
    async fn names(&self) -> BTreeSet<String> {
        self.bucket().list(10_000, 1 << 20, |_| true).await.unwrap()
    }

    /// The names of segments.
    async fn segments(&self) -> Vec<String> {
        let names = self.names().await.into_iter();
        names.filter(|name| name.ends_with(".parquet") && !name.contains("_delta_log")).collect()
    }

    /// The version, the number of files and events, the first and the last arrival number
    /// of the table, as another engine reads it.
    async fn table(&self) -> Value {
        let table = format!("{LOCATION}/{PROJECT}");
        python(SCRIPT, &json!({ "url": self.moto.url(), "table": table })).await
    }
}

async fn all(store: &Store) -> Result<Vec<StoredEvent>> {
    let all = Selection { up_to: 1 << 40, ..Selection::default() };
    let mut scan = Scan::begin(store, PROJECT, all).await?;
    let mut found = Vec::new();
    while let Some(events) = scan.next().await? {
        found.extend(events);
    }
    Ok(found)
}

/// The report of a pass, also if it failed.
async fn pass(store: &Store, events: u64, at: Timestamp) -> SealReport {
    let bounds = SealBounds { events, age: i64::MAX, ..SealBounds::default() };
    seal_all(store, at, usize::MAX, bounds).await.unwrap()
}

fn remove_segments(directory: &Path) {
    for file in segment_paths(directory) {
        std::fs::remove_file(file).unwrap();
    }
}

fn segment_paths(directory: &Path) -> Vec<PathBuf> {
    let mut files = super::support::files(directory);
    files.retain(|file| file.extension().is_some_and(|name| name == "parquet"));
    files
}

#[tokio::test]
async fn the_bucket_has_what_was_sealed_merged_and_removed() {
    let Some(storage) = Storage::start().await else { return };
    let mut opened = Opened::with(storage.settings(LARGE)).await;
    for (number, day) in (0..).zip([1, 2, 3, 100, 101, 200]) {
        add_at(&opened, 0, number * 10 + 1, day * DAY).await;
    }
    assert_eq!(seal(&opened.store, 10).await.segments, 5);
    assert_eq!(storage.segments().await.len(), 5);
    let found = storage.table().await;
    assert_eq!(found, json!({ "version": 4, "files": 5, "events": [50, 1, 50] }));
    assert_eq!(merge_once(&opened.store, 2, 1_000).await.unwrap().segments, 2);
    let found = storage.table().await;
    assert_eq!(found, json!({ "version": 5, "files": 4, "events": [50, 1, 50] }));
    assert_eq!(storage.segments().await.len(), 4);
    let before = Timestamp::from_micros(50 * DAY);
    assert_eq!(drop_old(&opened.store, PROJECT, before, &[]).await.unwrap().segments, 2);
    let found = storage.table().await;
    assert_eq!(found, json!({ "version": 6, "files": 2, "events": [20, 31, 50] }));
    assert_eq!(storage.segments().await.len(), 2);
    // A log that is written again in the directory is written again in the bucket.
    opened = opened
        .reopen_after(|directory| {
            std::fs::remove_dir_all(directory.join(format!("{PROJECT}/_delta_log"))).unwrap();
        })
        .await;
    seal(&opened.store, 10).await;
    let found = storage.table().await;
    assert_eq!(found, json!({ "version": 0, "files": 2, "events": [20, 31, 50] }));
    // Snapshots of persons, two of which are kept.
    for _ in 0..3 {
        write_persons(&opened.store, now()).await.unwrap();
    }
    let of_persons = format!("{PROJECT}/persons/_delta_log/");
    let names = storage.names().await;
    assert_eq!(names.iter().filter(|name| name.starts_with(&of_persons)).count(), 0);
    add_person(&opened).await;
    for _ in 0..3 {
        write_persons(&opened.store, now()).await.unwrap();
    }
    let names = storage.names().await;
    assert_eq!(names.iter().filter(|name| name.starts_with(&of_persons)).count(), 3);
    assert_eq!(storage.segments().await.len(), 2 + 2);
    purge(&opened.store, PROJECT).await.unwrap();
    seal(&opened.store, 10).await;
    assert_eq!(storage.names().await, ["weir-owner".to_owned()].into());
    assert_eq!(opened.store.segment_damage(), 0);
}

#[tokio::test]
async fn erased_events_leave_the_bucket() {
    let Some(storage) = Storage::start().await else { return };
    let opened = Opened::with(storage.settings(LARGE)).await;
    let store = &opened.store;
    let persons = vec![erasing::person(None), erasing::pointer()];
    erasing::add(store, &["ada", "bob"], persons).await;
    erasing::add(store, &["bob", "bob"], Vec::new()).await;
    assert_eq!(seal(store, 2).await.segments, 1);
    let before = storage.segments().await;
    erasing::erase(store, "ada", true).await.unwrap();
    storage.proxy.switch(false);
    let error = erase_stored(store, now()).await.unwrap_err();
    assert!(matches!(error, Error::Bucket { .. }), "{error}");
    assert_eq!(erasing::state(store).await.state(), ErasureState::Failed);
    storage.proxy.switch(true);
    erase_stored(store, now()).await.unwrap();
    assert_eq!(erasing::state(store).await.state(), ErasureState::Clearing);
    let found = storage.table().await;
    assert_eq!(found, json!({ "version": 1, "files": 1, "events": [1, 2, 2] }));
    remove_replaced(store, Timestamp::from_micros(NOW + DAY)).await.unwrap();
    seal(store, 1_000).await;
    let after = storage.segments().await;
    assert_eq!(after.len(), 1);
    assert!(!before.contains(&after[0]), "the old object is removed");
    assert_eq!(store.segment_damage(), 0);
}

/// Adds an event with a person.
async fn add_person(opened: &Opened) {
    let at = position(&opened.store, 0).await.unwrap().offset;
    let mut write = batch(0, at, at + 1, &events(1_000, 1_000, "a"));
    write.projects[0].persons = vec![PersonWrite {
        id: first_id(PROJECT, "a"),
        state: ada("{}"),
        expected: None,
        version: 1,
    }];
    apply(&opened.store, write).await.unwrap();
}

#[tokio::test]
async fn copies_are_evicted_and_fetched_when_they_are_read() {
    let Some(storage) = Storage::start().await else { return };
    let mut opened = Opened::with(storage.settings(1)).await;
    let sent = add_blocks(&opened.store, PROJECT, 24, 37).await;
    let known = known(&sent);
    let before = Seen::of(&opened.store, &known).await;
    assert_eq!(seal(&opened.store, 37).await.segments, 20);
    assert_eq!(storage.segments().await.len(), 20);
    assert_eq!(opened.segment_files().len(), 1);
    before.assert_same(&Seen::of(&opened.store, &known).await);
    assert_eq!(opened.segment_files().len(), 1);
    let bytes = std::fs::metadata(&opened.segment_files()[0]).unwrap().len();
    assert_eq!(opened.store.segment_cache_bytes(), bytes);
    // Without any copy, and with a merge of segments that are not here.
    opened = opened.reopen_after(remove_segments).await;
    before.assert_same(&Seen::of(&opened.store, &known).await);
    seal(&opened.store, 37).await;
    assert_eq!(merge_once(&opened.store, 5, 10_000).await.unwrap().segments, 5);
    before.assert_same(&Seen::of(&opened.store, &known).await);
    assert_eq!(storage.segments().await.len(), 16);
    assert_eq!(opened.store.segment_damage(), 0);
}

#[tokio::test]
async fn a_storage_that_is_down_delays_sealing_and_is_no_damage() {
    let Some(storage) = Storage::start().await else { return };
    let mut opened = Opened::with(storage.settings(LARGE)).await;
    let sent = add_blocks(&opened.store, PROJECT, 8, 20).await;
    storage.proxy.switch(false);
    let report = pass(&opened.store, 20, now()).await;
    assert_eq!(report.segments, 0);
    assert!(matches!(report.failure, Some(Error::Bucket { .. })), "{:?}", report.failure);
    let state = opened.store.segment_bucket().unwrap();
    assert!(state.location == LOCATION && state.failure.is_some(), "{state:?}");
    assert!(opened.segment_files().is_empty());
    let data = opened.directory.path();
    assert!(data.join("segments/bucket").exists() && !uses_bucket(data).unwrap());
    // Events are stored and read meanwhile.
    let more = add_blocks(&opened.store, PROJECT, 4, 20).await;
    let sent = [sent, more].concat();
    assert_eq!(all(&opened.store).await.unwrap(), sent);
    storage.proxy.switch(true);
    assert_eq!(seal(&opened.store, 20).await.segments, 8);
    assert_eq!(opened.store.segment_bucket().unwrap().failure, None);
    assert!(uses_bucket(opened.directory.path()).unwrap());
    // A start sends nothing, and what is not here is an error that says so.
    storage.proxy.switch(false);
    opened = opened.reopen_after(|_| {}).await;
    assert_eq!(all(&opened.store).await.unwrap(), sent);
    opened = opened.reopen_after(remove_segments).await;
    let error = all(&opened.store).await.unwrap_err();
    assert!(matches!(error, Error::Bucket { .. }) && error.is_temporary(), "{error}");
    assert!(error.to_string().contains(LOCATION), "{error}");
    // It goes away between two requests of a pass.
    add_blocks(&opened.store, PROJECT, 4, 20).await;
    assert_eq!(pass(&opened.store, 20, now()).await.segments, 0);
    storage.proxy.switch(true);
    assert_eq!(seal(&opened.store, 20).await.segments, 4);
    assert_eq!(all(&opened.store).await.unwrap().len(), 16 * 20);
    // Removed while it is down: the objects go away later.
    storage.proxy.switch(false);
    purge(&opened.store, PROJECT).await.unwrap();
    storage.proxy.switch(true);
    assert_eq!(storage.segments().await.len(), 12);
    seal(&opened.store, 20).await;
    assert_eq!(storage.names().await, ["weir-owner".to_owned()].into());
    assert_eq!(opened.store.segment_damage(), 0);
}

#[tokio::test]
async fn objects_stay_while_a_backup_reads_them() {
    let Some(storage) = Storage::start().await else { return };
    let opened = Opened::with(storage.settings(LARGE)).await;
    for (number, day) in (0..).zip([1, 2, 3, 100, 101, 200]) {
        add_at(&opened, 0, number * 10 + 1, day * DAY).await;
    }
    assert_eq!(seal(&opened.store, 10).await.segments, 5);
    let held = [0, 1].map(|_| HeldObjects::of(opened.directory.path()).unwrap());
    assert_eq!(merge_once(&opened.store, 2, 1_000).await.unwrap().segments, 2);
    let before = Timestamp::from_micros(50 * DAY);
    assert_eq!(drop_old(&opened.store, PROJECT, before, &[]).await.unwrap().segments, 2);
    let [first, second] = held;
    drop(first);
    seal(&opened.store, 10).await;
    assert_eq!(storage.segments().await.len(), 6, "a check still reads them");
    drop(second);
    seal(&opened.store, 10).await;
    assert_eq!(storage.segments().await.len(), 2);
    assert_eq!(storage.table().await["files"], 2);
}

#[tokio::test]
async fn segments_of_a_checkpoint_are_copied_from_the_bucket() {
    let Some(storage) = Storage::start().await else { return };
    let opened = Opened::with(storage.settings(1)).await;
    add_blocks(&opened.store, PROJECT, 24, 37).await;
    assert_eq!(seal(&opened.store, 37).await.segments, 20);
    let data = opened.directory.path();
    let (copy, scratch) = (data.join("copy"), data.join("scratch"));
    checkpoint(data, &copy, &AtomicBool::new(false)).await.unwrap();
    assert!(uses_bucket(&copy).unwrap() && !uses_bucket(&scratch).unwrap());
    let settings = storage.settings(1).segments.unwrap();
    let location = "s3://events/other".parse().unwrap();
    let elsewhere = SegmentBucket { location, ..settings.clone() };
    let refused = SegmentCopies::open(data, &copy, &scratch, &elsewhere).await.err().unwrap();
    assert!(matches!(refused, Error::Bucket { .. }), "{refused}");
    let mut copies = SegmentCopies::open(data, &copy, &scratch, &settings).await.unwrap();
    let mut found = Vec::new();
    while let Some(segment) = copies.next().await.unwrap() {
        found.push(segment);
    }
    let names: BTreeSet<String> = found.iter().map(|segment| segment.name.clone()).collect();
    assert_eq!(names, storage.segments().await.into_iter().collect::<BTreeSet<_>>());

    let at = |segment: &SegmentFile| copy.join("segments").join(&segment.name);
    let (local, distant): (Vec<SegmentFile>, Vec<SegmentFile>) =
        found.into_iter().partition(|segment| at(segment).exists());
    let ([local], [distant, absent, ..]) = (local.as_slice(), distant.as_slice()) else {
        panic!("{local:?} {distant:?}")
    };
    // What is there is compared, and replaced if it is damaged.
    assert_eq!(copies.copy(local, &at(local)).await.unwrap(), Copied::Sound);
    let content = std::fs::read(at(local)).unwrap();
    std::fs::remove_file(at(local)).unwrap();
    std::fs::write(at(local), &content).unwrap();
    flip(&at(local), content.len() / 2);
    assert_eq!(copies.copy(local, &at(local)).await.unwrap(), Copied::Sound);
    assert_eq!(std::fs::read(at(local)).unwrap(), content);
    // What is not there is fetched, also if it is damaged.
    assert_eq!(copies.copy(distant, &at(distant)).await.unwrap(), Copied::Sound);
    let mut damaged = std::fs::read(at(distant)).unwrap();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    storage.bucket().put(&distant.name, damaged.clone()).await.unwrap();
    assert_eq!(copies.copy(distant, &at(distant)).await.unwrap(), Copied::Sound);
    std::fs::remove_file(at(distant)).unwrap();
    let copied = copies.copy(distant, &at(distant)).await.unwrap();
    assert!(matches!(copied, Copied::Damaged(_)), "{copied:?}");
    assert_eq!(std::fs::read(at(distant)).unwrap(), damaged);
    storage.bucket().remove(&absent.name).await.unwrap();
    let copied = copies.copy(absent, &at(absent)).await.unwrap();
    assert!(matches!(copied, Copied::Absent(_)) && !at(absent).exists(), "{copied:?}");
    copies.close().await;
    std::fs::remove_dir_all(&scratch).unwrap();
}

/// A removal while the storage is down, and one after a merge.
#[tokio::test]
async fn objects_stay_as_long_as_the_table_in_the_bucket_names_them() {
    let Some(storage) = Storage::start().await else { return };
    let opened = Opened::with(storage.settings(LARGE)).await;
    for (number, day) in (0..).zip([1, 2, 3, 100, 101, 200]) {
        add_at(&opened, 0, number * 10 + 1, day * DAY).await;
    }
    seal(&opened.store, 10).await;
    storage.proxy.switch(false);
    assert_eq!(pass(&opened.store, 10, now()).await.segments, 0);
    assert_eq!(merge_once(&opened.store, 2, 1_000).await, None);
    let before = Timestamp::from_micros(2 * DAY);
    storage.proxy.switch(true);
    // No pass has found that the storage is back.
    assert_eq!(drop_old(&opened.store, PROJECT, before, &[]).await.unwrap().segments, 1);
    let found = storage.table().await;
    assert_eq!(found, json!({ "version": 4, "files": 5, "events": [50, 1, 50] }));
    seal(&opened.store, 10).await;
    let found = storage.table().await;
    assert_eq!(found, json!({ "version": 5, "files": 4, "events": [40, 11, 50] }));
    assert_eq!(storage.segments().await.len(), 4);
    // Files of a merge stay for a while, also as objects.
    let bounds = MergeBounds { fan_in: 2, events: 1_000 };
    merge_segments_within(&opened.store, now(), bounds).await.unwrap().unwrap();
    for (minutes, objects) in [(0, 5), (9, 5), (10, 3)] {
        pass(&opened.store, 10, Timestamp::from_micros(NOW + minutes * 60_000_000)).await;
        assert_eq!(storage.segments().await.len(), objects, "{minutes}");
    }
    assert_eq!(storage.table().await["files"], 3);
}

#[tokio::test]
async fn wrong_credentials_delay_sealing() {
    let Some(storage) = Storage::start().await else { return };
    let opened = Opened::with(storage.settings(LARGE)).await;
    add_blocks(&opened.store, PROJECT, 8, 20).await;
    storage.moto.check_credentials().await;
    let report = pass(&opened.store, 20, now()).await;
    assert_eq!(report.segments, 0);
    let failure = report.failure.unwrap().to_string();
    assert!(failure.contains("InvalidAccessKeyId"), "{failure}");
    assert_eq!(records(&opened.store, "event_block").await, 8);
}

#[tokio::test]
async fn a_damaged_object_or_copy_is_found_by_its_checksums() {
    let Some(storage) = Storage::start().await else { return };
    let mut opened = Opened::with(storage.settings(LARGE)).await;
    let sent = add_blocks(&opened.store, PROJECT, 12, 20).await;
    seal(&opened.store, 20).await;
    // A copy that is damaged is fetched again by the read that finds it.
    let copy = opened.segment_files().remove(0);
    let middle = usize::try_from(std::fs::metadata(&copy).unwrap().len() / 3).unwrap();
    opened = opened.reopen_after(|_| flip(&copy, middle)).await;
    assert_eq!(all(&opened.store).await.unwrap(), sent);
    assert_eq!(opened.store.segment_damage(), 0);
    // By columns: when it is opened, and while it is open.
    opened = opened.reopen_after(|_| flip(&copy, middle)).await;
    assert_eq!(shown(&opened.store).await, without_warnings(&sent));
    let found = snapshot(&opened.store, PROJECT, TimeRange::ALL).await.unwrap();
    let mut held = Vec::new();
    for part in found.parts() {
        held.extend(open_part(&opened.store, &found, part, Needed::Columns).await.unwrap());
    }
    flip(&copy, middle);
    let mut fetched = 0;
    for part in &held {
        let OpenPart::Segment(segment) = part else { continue };
        let Err(error) = read_properties(segment) else { continue };
        let again = open_replaced(&opened.store, &found, segment, error).await.unwrap();
        read_properties(&again).unwrap();
        fetched += 1;
    }
    assert_eq!((fetched, opened.store.segment_damage()), (1, 0));
    // They hold the engine.
    drop((held, found));
    // A merge does the same.
    opened = opened.reopen_after(|_| flip(&copy, middle)).await;
    seal(&opened.store, 20).await;
    let bounds = MergeBounds { fan_in: 2, events: 40 };
    for _ in 0..4 {
        merge_segments_within(&opened.store, now(), bounds).await.unwrap().unwrap();
    }
    assert_eq!(opened.store.segment_damage(), 0);
    opened = opened.reopen_after(|_| {}).await;
    seal(&opened.store, 20).await;
    assert_eq!(all(&opened.store).await.unwrap(), sent);
    // Objects that are damaged, cut or missing.
    let (bucket, name) = (storage.bucket(), storage.segments().await.remove(0));
    let content = bucket.get(&name, LARGE).await.unwrap().unwrap();
    let mut flipped = content.clone();
    flipped[content.len() / 3] ^= 1;
    for wrong in [Some(flipped), Some(content[..content.len() - 1].to_vec()), None] {
        match wrong {
            Some(wrong) => bucket.put(&name, wrong).await.unwrap(),
            None => bucket.remove(&name).await.unwrap(),
        }
        opened = opened.reopen_after(remove_segments).await;
        let error = all(&opened.store).await.unwrap_err();
        assert!(matches!(error, Error::Damaged { .. }), "{error}");
        assert!(error.to_string().contains(&name), "{error}");
        assert!(opened.store.segment_damage() > 0);
        bucket.put(&name, content.clone()).await.unwrap();
        opened = opened.reopen_after(|_| {}).await;
        assert_eq!(all(&opened.store).await.unwrap(), sent);
    }
}

#[tokio::test]
async fn segments_from_before_the_setting_are_uploaded() {
    let Some(storage) = Storage::start().await else { return };
    let mut opened = Opened::new().await;
    let sent = add_blocks(&opened.store, PROJECT, 24, 20).await;
    seal(&opened.store, 20).await;
    opened = opened.reopen_with(storage.settings(1)).await;
    // An object that nothing names, and some that are not ours.
    let orphan = format!("{PROJECT}/0/1-20-{}.parquet", "0".repeat(32));
    let of_others = ["notes.txt", "2025/report.csv", "7/0/1-20.parquet", "9/_delta_log/1.json"];
    for name in of_others.into_iter().chain([orphan.as_str()]) {
        storage.bucket().put(name, b"x".to_vec()).await.unwrap();
    }
    seal(&opened.store, 20).await;
    let names = storage.names().await;
    let segments = names.iter().filter(|name| name.ends_with(".parquet"));
    assert_eq!(segments.count(), 20 + 1);
    assert!(!names.contains(&orphan));
    assert!(of_others.iter().all(|name| names.contains(*name)), "{names:?}");
    assert_eq!(opened.segment_files().len(), 1);
    let found = storage.table().await;
    assert_eq!(found["events"][0], 400);
    assert_eq!(found["files"], 20);
    assert_eq!(all(&opened.store).await.unwrap(), sent);
    // Without the setting the start says where they are.
    let directory = opened.close().await;
    let refused = open_again(directory.path()).await.err().unwrap();
    let Error::File { source, .. } = refused else { panic!("{refused}") };
    assert!(source.to_string().contains(LOCATION), "{source}");
}

#[tokio::test]
async fn two_data_directories_never_share_a_bucket() {
    let Some(storage) = Storage::start().await else { return };
    let opened = Opened::with(storage.settings(LARGE)).await;
    add_blocks(&opened.store, PROJECT, 8, 20).await;
    seal(&opened.store, 20).await;
    let names = storage.names().await;
    let other = Opened::with(storage.settings(LARGE)).await;
    add_blocks(&other.store, PROJECT, 8, 20).await;
    let report = pass(&other.store, 20, Timestamp::from_micros(NOW)).await;
    let failure = report.failure.unwrap().to_string();
    assert!(failure.contains("another data directory"), "{failure}");
    assert_eq!(storage.names().await, names);
    // An emptied bucket is not filled with a part of the segments.
    for name in &names {
        storage.bucket().remove(name).await.unwrap();
    }
    let report = pass(&opened.store, 20, now()).await;
    let failure = report.failure.unwrap().to_string();
    assert!(failure.contains("no objects of this data directory"), "{failure}");
    assert!(storage.names().await.is_empty());
    // And what it does not have is not damaged.
    let opened = opened.reopen_after(remove_segments).await;
    let error = all(&opened.store).await.unwrap_err();
    assert!(matches!(error, Error::Bucket { .. }), "{error}");
    assert_eq!(opened.store.segment_damage(), 0);
}

/// As a restored backup beside the running instance.
#[tokio::test]
async fn a_copy_of_a_data_directory_never_shares_its_bucket() {
    let Some(storage) = Storage::start().await else { return };
    for is_copy_first in [false, true] {
        let settings = storage.settings(LARGE);
        let opened = Opened::with(settings.clone()).await;
        for name in storage.names().await {
            storage.bucket().remove(&name).await.unwrap();
        }
        add_blocks(&opened.store, PROJECT, 8, 20).await;
        seal(&opened.store, 20).await;
        let directory = opened.close().await;
        let other = tempfile::tempdir().unwrap();
        let from = directory.path().join(".");
        let copied = Command::new("cp").arg("-r").arg(from).arg(other.path()).status();
        assert!(copied.unwrap().success());
        let (first, second) = match is_copy_first {
            true => (other.path(), directory.path()),
            false => (directory.path(), other.path()),
        };
        let first = open_with(first, &settings).await.unwrap();
        add_blocks(&first, PROJECT, 8, 20).await;
        assert_eq!(pass(&first, 20, now()).await.segments, 8);
        let names = storage.segments().await;
        let second = open_with(second, &settings).await.unwrap();
        add_blocks(&second, PROJECT, 8, 20).await;
        for _ in 0..2 {
            let report = pass(&second, 20, now()).await;
            assert_eq!(report.segments, 0);
            let failure = report.failure.unwrap().to_string();
            assert!(failure.contains("another process"), "{failure}");
        }
        purge(&second, PROJECT).await.unwrap();
        assert_eq!(storage.segments().await, names);
        assert!(pass(&first, 20, now()).await.failure.is_none());
        assert_eq!(storage.segments().await, names);
    }
}

#[tokio::test]
async fn segments_that_cannot_be_read_here_are_not_uploaded() {
    let Some(storage) = Storage::start().await else { return };
    let opened = Opened::new().await;
    add_blocks(&opened.store, PROJECT, 24, 20).await;
    seal(&opened.store, 20).await;
    let [damaged, unreadable] = [0, 1].map(|at| opened.segment_files().remove(at));
    let directory = opened.close().await;
    flip(&damaged, usize::try_from(std::fs::metadata(&damaged).unwrap().len() / 3).unwrap());
    std::fs::remove_file(&unreadable).unwrap();
    std::fs::create_dir(&unreadable).unwrap();
    let store = open_with(directory.path(), &storage.settings(1)).await.unwrap();
    for _ in 0..2 {
        let report = pass(&store, 20, now()).await;
        assert!(report.failure.is_none(), "{:?}", report.failure);
        assert!(!report.is_limited);
    }
    assert_eq!(storage.segments().await.len(), 18);
    // What is here alone is never evicted.
    assert!(damaged.exists() && unreadable.exists());
    assert!(store.segment_damage() > 0);
}

/// A run is damaged and the segments that have its uuids are in a bucket that is down.
#[tokio::test]
async fn a_start_does_not_wait_for_the_bucket() {
    let Some(storage) = Storage::start().await else { return };
    let mut opened = Opened::with(storage.settings(1)).await;
    let sent = add_blocks(&opened.store, PROJECT, 8, 20).await;
    seal(&opened.store, 20).await;
    let before = Seen::of(&opened.store, &known(&sent)).await;
    let run = opened.run_files().remove(0);
    storage.proxy.switch(false);
    opened = opened.reopen_after(|_| std::fs::write(&run, b"damaged").unwrap()).await;
    let report = pass(&opened.store, 20, now()).await;
    assert!(matches!(report.failure, Some(Error::Bucket { .. })), "{:?}", report.failure);
    storage.proxy.switch(true);
    seal(&opened.store, 20).await;
    before.assert_same(&Seen::of(&opened.store, &known(&sent)).await);
    // What was read for the repair does not stay, although nothing was listed then.
    assert_eq!(opened.segment_files().len(), 1);
}

/// A run is damaged, and its uuids are read from segments that are here, or in the bucket
/// alone.
#[tokio::test]
async fn a_repair_needs_the_bucket_only_for_segments_that_are_not_here() {
    let Some(storage) = Storage::start().await else { return };
    let mut opened = Opened::with(storage.settings(LARGE)).await;
    let sent = add_blocks(&opened.store, PROJECT, 12, 200).await;
    seal(&opened.store, 200).await;
    let uuids = known(&sent);
    storage.proxy.switch(false);
    for is_here in [true, false] {
        let run = opened.run_files().remove(0);
        opened = opened
            .reopen_after(|directory| {
                flip(&run, ENTRY);
                if !is_here {
                    remove_segments(directory);
                }
            })
            .await;
        let store = &opened.store;
        let refused = stored_uuids(store, PROJECT, &uuids).await.unwrap_err();
        assert!(matches!(refused, Error::Damaged { .. }), "{refused}");
        if !is_here {
            let failed = repair_runs(store).await.unwrap_err();
            assert!(matches!(failed, Error::Bucket { .. }), "{failed}");
            assert!(run.exists());
            // The damage is still to be repaired.
            damage_found(store).await;
            storage.proxy.switch(true);
        }
        repair_runs(store).await.unwrap();
        assert!(!run.exists());
        assert_eq!(stored_uuids(store, PROJECT, &uuids).await.unwrap().len(), sent.len());
    }
}
