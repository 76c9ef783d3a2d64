use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use weir_testservers::until;

use super::*;
use crate::bind::bind;
use crate::db::Statement;
use crate::{Location, Settings, Store};

const ADD: Statement = Statement::write(
    "add",
    "CREATE type::record('project', $number) SET number = $number, text = $text;",
);
const NUMBERS: Statement = Statement::read("numbers", "SELECT VALUE number FROM project;");
/// The length of a record. A write buffer holds a few dozens.
const LENGTH: usize = 10_000;
const ROUNDS: usize = 10;
/// Rounds until an attempt must have been repeated.
const MOST_ROUNDS: usize = 10_000;

async fn numbers(directory: &Path) -> Vec<i64> {
    let location = Location::Directory(directory.to_owned());
    let store = Store::open(&location, Settings::default()).await.unwrap();
    let mut found: Vec<i64> = store.db.run(NUMBERS, bind! {}).await.unwrap().rows(0).unwrap();
    store.close().await.unwrap();
    found.sort_unstable();
    found
}

/// Write buffers are small, so that the database changes its files during each checkpoint.
#[tokio::test(flavor = "multi_thread")]
async fn a_checkpoint_under_load_has_a_beginning_of_all_commits() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let settings = Settings { write_buffer: 256 << 10, ..Settings::default() };
    let store = Store::open(&Location::Directory(data.clone()), settings).await.unwrap();
    let (committed, is_over) = (Arc::new(AtomicI64::new(0)), Arc::new(AtomicBool::new(false)));
    let writer = {
        let (store, committed, is_over) = (store.clone(), committed.clone(), is_over.clone());
        tokio::spawn(async move {
            while !is_over.load(Ordering::Acquire) {
                let number = committed.load(Ordering::Acquire) + 1;
                let text = "x".repeat(LENGTH);
                store.db.run(ADD, bind! { number: number, text: text }).await.unwrap();
                committed.store(number, Ordering::Release);
            }
        })
    };
    let (mut round, mut repeated) = (0, 0);
    // The load must have changed files during an attempt.
    while round < ROUNDS || repeated == 0 {
        round += 1;
        assert!(round < MOST_ROUNDS, "no attempt was repeated");
        let begin = committed.load(Ordering::Acquire);
        if round <= ROUNDS {
            until(async || committed.load(Ordering::Acquire) >= begin + 20).await;
        }
        let before = committed.load(Ordering::Acquire);
        let target = directory.path().join(format!("copy-{round}"));
        let attempts = checkpoint(&data, &target, &AtomicBool::new(false)).await.unwrap();
        repeated += attempts - 1;
        if round > ROUNDS && attempts == 1 {
            // Like the first ones.
            continue;
        }
        let after = committed.load(Ordering::Acquire);
        let found = numbers(&target).await;
        let last = found.last().copied().unwrap_or_default();
        // One commit may be in the log and not yet acknowledged.
        assert!((before..=after + 1).contains(&last), "{before} to {after}, and not {last}");
        assert_eq!(found, (1..=last).collect::<Vec<_>>());
    }
    is_over.store(true, Ordering::Release);
    writer.await.unwrap();
    store.close().await.unwrap();
    // The same of a directory that no process uses.
    let target = directory.path().join("stopped");
    checkpoint(&data, &target, &AtomicBool::new(false)).await.unwrap();
    let all = committed.load(Ordering::Acquire);
    assert_eq!(numbers(&target).await, (1..=all).collect::<Vec<_>>());
}

#[test]
fn logs_are_in_the_order_of_their_numbers() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(directory.path().join(name), text).unwrap();
    for name in ["1000000.log", "999999.log", "000007.log", "LOG", "LOG.old.1", "a.log"] {
        write(name, "");
    }
    write(CURRENT, "MANIFEST-000005\n");
    assert_eq!(Needed::read(directory.path()).unwrap(), None, "the manifest is missing");
    write("MANIFEST-000005", "entries");
    let needed = Needed::read(directory.path()).unwrap().unwrap();
    assert_eq!(needed.logs, ["000007.log", "999999.log", "1000000.log"]);
    assert_eq!((needed.manifest.as_str(), needed.length), ("MANIFEST-000005", 7));
    for other in ["../MANIFEST-000005\n", "MANIFEST-\n", "MANIFEST-000005", ""] {
        write(CURRENT, other);
        assert_eq!(Needed::read(directory.path()).unwrap(), None, "{other}");
    }
}

/// A catalog that names a segment is only in a checkpoint that has the file, because the
/// lock that a change of the catalog needs is held.
#[tokio::test]
async fn files_of_events_are_linked_and_unfinished_ones_are_not() {
    let directory = tempfile::tempdir().unwrap();
    let (data, target) = (directory.path().join("data"), directory.path().join("copy"));
    let store = Store::open(&Location::Directory(data.clone()), Settings::default()).await.unwrap();
    let segments = data.join(SEGMENTS);
    fs::create_dir_all(segments.join("7/0")).unwrap();
    fs::write(segments.join("7/0/whole.parquet"), "events").unwrap();
    fs::write(segments.join("7/0/half.parquet.tmp"), "ev").unwrap();
    // A second one replaces the first.
    for _ in 0..2 {
        checkpoint(&data, &target, &AtomicBool::new(false)).await.unwrap();
    }
    std::os::unix::fs::symlink("whole.parquet", segments.join("7/0/link.parquet")).unwrap();
    let other = directory.path().join("other");
    let refused = checkpoint(&data, &other, &AtomicBool::new(false)).await.unwrap_err();
    assert!(matches!(refused, CheckpointError::NoFile { .. }), "{refused}");
    let copied = target.join(SEGMENTS).join("7/0");
    assert_eq!(fs::read_to_string(copied.join("whole.parquet")).unwrap(), "events");
    assert!(!copied.join("half.parquet.tmp").exists());
    store.close().await.unwrap();
}

#[tokio::test]
async fn a_checkpoint_that_is_asked_to_end_does_not_wait_for_the_lock() {
    let directory = tempfile::tempdir().unwrap();
    let (data, target) = (directory.path().join("data"), directory.path().join("copy"));
    let store = Store::open(&Location::Directory(data.clone()), Settings::default()).await.unwrap();
    let held = lock_segments(&data).unwrap().unwrap();
    let is_stopped = AtomicBool::new(true);
    let ended = checkpoint(&data, &target, &is_stopped).await.unwrap_err();
    assert!(matches!(ended, CheckpointError::Interrupted), "{ended}");
    drop(held);
    store.close().await.unwrap();
}

/// It does not take the lock of the files of events, and removes files at any time.
#[tokio::test]
async fn a_server_of_an_earlier_version_must_be_stopped_first() {
    let directory = tempfile::tempdir().unwrap();
    let (data, target) = (directory.path().join("data"), directory.path().join("copy"));
    let store = Store::open(&Location::Directory(data.clone()), Settings::default()).await.unwrap();
    store.close().await.unwrap();
    drop(store);
    let lock = data.join("segments.lock");
    fs::remove_file(&lock).unwrap();
    let served = lock_directory(&data).unwrap();
    let going = AtomicBool::new(false);
    let refused = checkpoint(&data, &target, &going).await.unwrap_err();
    assert!(matches!(refused, CheckpointError::Earlier { .. }), "{refused}");
    assert!(!lock.exists(), "the next command would take it for that of a server");
    drop(served);
    checkpoint(&data, &target, &going).await.unwrap();
    assert!(!lock.exists());
}

#[test]
fn settings_that_a_checkpoint_cannot_have_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let refused = || match refuse_options(directory.path()) {
        Ok(()) => String::new(),
        Err(error) => error.to_string(),
    };
    assert!(refused().contains("no file names them"), "{}", refused());
    let sound = "[DBOptions]\n  recycle_log_file_num=0\n  track_and_verify_wals=false\n  \
                 track_and_verify_wals_in_manifest=false\n";
    let write = |number: &str, text: &str| {
        fs::write(directory.path().join(format!("OPTIONS-{number}")), text).unwrap();
    };
    for (option, other) in [
        ("recycle_log_file_num=0", "recycle_log_file_num=4"),
        ("track_and_verify_wals=false", "track_and_verify_wals=true"),
        ("track_and_verify_wals_in_manifest=false", "track_and_verify_wals_in_manifest=true"),
        ("track_and_verify_wals=false", ""),
    ] {
        write("999999", &sound.replace(option, other));
        assert!(refused().contains("must be"), "{other}");
    }
    // The newest counts.
    write("1000000", sound);
    assert_eq!(refused(), "");
    write("1000001.dbtmp", "");
    assert_eq!(refused(), "");
}
