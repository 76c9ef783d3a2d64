//! Damaged runs are found and written again, and one fault does not stop all other work.

use std::path::{Path, PathBuf};
use std::time::Duration;

use uuid::Uuid;
use weir_segments::run::Key;

use super::super::support::{PROJECT, batch, events, records};
use super::damage::flip;
use super::reading::known;
use super::seen::Seen;
use super::support::{
    OTHER, Opened, add_blocks, files, merge_once, now, open_again, open_with, seal, uuid,
};
use crate::bind::bind;
use crate::db::Statement;
use crate::disk::DiskMarks;
use crate::events::segments::find;
use crate::events::{
    SealBounds, StoredEvent, apply, damage_found, position, repair_runs, seal_all, stored_uuids,
};
use crate::{Error, Settings, Store};

/// A byte among the entries of a run: the header has the first 16 KiB.
pub(super) const ENTRY: usize = (16 << 10) + 100;
/// A byte in the filter of a run of eight blocks, which follows four parts with entries.
const FILTER: usize = 5 * (16 << 10) + 40;
/// Longer than a function takes that does not wait.
const AWHILE: Duration = Duration::from_millis(300);

async fn assert_refused(store: &Store, sent: &[StoredEvent]) {
    let from = position(store, 2).await.unwrap().offset;
    for event in sent.iter().step_by(19) {
        let mut again = events(100_000, 100_000, "a");
        again[0].uuid = event.uuid;
        let refused = apply(store, batch(2, from, from + 1, &again)).await.unwrap_err();
        assert!(matches!(refused, Error::Exists { .. }), "{}: {refused}", event.arrival);
    }
}

/// Uuids that are not stored, and that a filter leads to the damaged part of a run.
async fn new_in_damage(store: &Store) -> Vec<Uuid> {
    let candidates: Vec<Uuid> = (200_000..2_200_000).map(uuid).collect();
    let keys = candidates.iter().map(|uuid| Key { project: PROJECT.0, uuid: *uuid });
    let found = find(&store.segments, keys.collect()).await.unwrap();
    let mut new: Vec<Uuid> =
        candidates.iter().zip(found).filter_map(|(uuid, found)| found.map(|_| *uuid)).collect();
    assert!(!new.is_empty());
    new.truncate(3);
    new
}

fn set_aside(directory: &Path) -> Vec<PathBuf> {
    let mut all = files(directory);
    all.retain(|file| file.extension().is_some_and(|name| name == "damaged"));
    all
}

#[tokio::test]
async fn damaged_entries_of_a_run_are_found_by_the_next_pass_and_written_again() {
    let mut opened = Opened::new().await;
    let sent = add_blocks(&opened.store, PROJECT, 12, 200).await;
    let known = known(&sent);
    seal(&opened.store, 200).await;
    let before = Seen::of(&opened.store, &known).await;
    let run = opened.run_files().remove(0);
    // The index may still have its uuids.
    const PENDING: Statement =
        Statement::write("test", "UPDATE event_uuid_run SET pending = true RETURN NONE;");
    opened.store.db.run(PENDING, bind! {}).await.unwrap();
    opened = opened.reopen_after(|_| flip(&run, ENTRY)).await;
    assert_eq!(opened.store.segment_damage(), 0, "a start does not read all entries");
    add_blocks(&opened.store, PROJECT, 4, 200).await;
    assert_eq!(seal(&opened.store, 200).await.segments, 4, "damage does not stop the sealing");
    assert_eq!(opened.store.segment_damage(), 1);
    assert!(!run.exists());
    assert_eq!(set_aside(opened.directory.path()).len(), 1);
    assert_refused(&opened.store, &sent).await;
    assert_eq!(records(&opened.store, "event_uuid").await, 4 * 200);
    // Nothing is damaged any more.
    opened = opened.reopen().await;
    seal(&opened.store, 200).await;
    assert_eq!(opened.store.segment_damage(), 0);
    let mut stored = stored_uuids(&opened.store, PROJECT, &known).await.unwrap();
    stored.sort_unstable();
    assert_eq!(stored, before.stored());
}

#[tokio::test]
async fn a_new_event_whose_uuid_leads_to_damage_is_refused_at_once_and_stored_after_the_repair() {
    let mut opened = Opened::new().await;
    let sent = add_blocks(&opened.store, PROJECT, 12, 200).await;
    seal(&opened.store, 200).await;
    let run = opened.run_files().remove(0);
    opened = opened.reopen_after(|_| flip(&run, ENTRY)).await;
    let store = &opened.store;
    assert!(tokio::time::timeout(AWHILE, damage_found(store)).await.is_err());
    let new = new_in_damage(store).await;
    let from = position(store, 2).await.unwrap().offset;
    let other = events(90_000, 90_000, "a");
    let mut event = events(90_001, 90_001, "a");
    event[0].uuid = new[0];
    // A merge or a backup, for as long as it likes.
    let changing = store.segments.changing().await.unwrap();
    let repairing = store.clone();
    let repair = tokio::spawn(async move { repair_runs(&repairing).await });
    damage_found(store).await;
    for _ in 0..3 {
        let refused = apply(store, batch(2, from, from + 1, &event)).await.unwrap_err();
        assert!(matches!(refused, Error::Damaged { .. }), "{refused}");
        assert!(refused.to_string().contains(run.to_str().unwrap()), "{refused}");
        let refused = stored_uuids(store, PROJECT, &new).await.unwrap_err();
        assert!(matches!(refused, Error::Damaged { .. }), "{refused}");
    }
    assert_eq!(store.segment_damage(), 1, "it is reported once");
    // Other batches do not wait.
    apply(store, batch(2, from, from + 1, &other)).await.unwrap();
    assert!(run.exists() && !repair.is_finished());
    drop(changing);
    repair.await.unwrap().unwrap();
    assert!(!run.exists());
    assert_eq!(set_aside(opened.directory.path()).len(), 1);
    let damage = store.segment_damage();
    assert_eq!(stored_uuids(store, PROJECT, &new).await.unwrap(), [] as [Uuid; 0]);
    assert_refused(store, &sent).await;
    apply(store, batch(2, from + 1, from + 2, &event)).await.unwrap();
    assert_eq!(stored_uuids(store, PROJECT, &new).await.unwrap(), new[..1]);
    assert_eq!(store.segment_damage(), damage, "the run is sound");
    assert!(tokio::time::timeout(AWHILE, damage_found(store)).await.is_err());
}

/// Runs are repaired while their uuids are searched for: all are found, or the search is
/// refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn uuids_are_found_at_every_moment_of_a_repair() {
    let mut opened = Opened::new().await;
    let sent = add_blocks(&opened.store, PROJECT, 12, 200).await;
    seal(&opened.store, 200).await;
    let uuids = known(&sent);
    let expected = stored_uuids(&opened.store, PROJECT, &uuids).await.unwrap().len();
    let run = opened.run_files().remove(0);
    opened = opened.reopen_after(|_| flip(&run, ENTRY)).await;
    let store = opened.store.clone();
    let sealing = tokio::spawn(async move { seal(&store, 200).await.segments });
    let mut rounds = 0;
    while !sealing.is_finished() || rounds < 2 {
        match stored_uuids(&opened.store, PROJECT, &uuids).await {
            Ok(found) => {
                assert_eq!(found.len(), expected, "round {rounds}");
                rounds += 1;
            }
            Err(Error::Damaged { .. }) => assert_eq!(rounds, 0),
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(sealing.await.unwrap(), 0);
    assert!(!run.exists());
}

#[tokio::test]
async fn a_repair_reads_only_segments_of_projects_that_lost_uuids() {
    let mut opened = Opened::new().await;
    let sent = add_blocks(&opened.store, PROJECT, 8, 200).await;
    add_blocks(&opened.store, OTHER, 8, 200).await;
    assert_eq!(seal(&opened.store, 200).await.segments, 8);
    // One run has the uuids of both projects, those of the first one first.
    let (runs, other) = (opened.run_files(), opened.table(OTHER));
    assert_eq!(runs.len(), 1);
    let mut segments = opened.segment_files();
    segments.retain(|file| file.starts_with(&other));
    assert_eq!(segments.len(), 4);
    opened = opened
        .reopen_after(|_| {
            flip(&runs[0], ENTRY);
            for segment in &segments {
                let length = std::fs::metadata(segment).unwrap().len();
                flip(segment, usize::try_from(length).unwrap() / 2);
            }
        })
        .await;
    seal(&opened.store, 200).await;
    assert!(!runs[0].exists());
    assert_eq!(opened.store.segment_damage(), 1, "that of the run");
    assert_refused(&opened.store, &sent).await;
}

/// A device that damages what was written to it, again and again.
#[tokio::test]
async fn a_run_that_repairs_do_not_help_is_repaired_a_few_times() {
    let opened = Opened::new().await;
    let store = &opened.store;
    let sent = add_blocks(store, PROJECT, 12, 400).await;
    seal(store, 400).await;
    let uuids = known(&sent);
    let largest = || {
        let bytes = |file: &PathBuf| std::fs::metadata(file).unwrap().len();
        opened.run_files().into_iter().max_by_key(bytes).unwrap()
    };
    for repairs in 0..=3 {
        assert_eq!(stored_uuids(store, PROJECT, &uuids).await.unwrap().len(), sent.len());
        let run = largest();
        flip(&run, ENTRY);
        let refused = stored_uuids(store, PROJECT, &uuids).await.unwrap_err();
        let Error::Damaged { file, detail } = &refused else { panic!("{refused}") };
        assert_eq!(*file, run);
        assert_eq!(detail.contains("after several repairs"), repairs == 3, "{detail}");
        repair_runs(store).await.unwrap();
        assert_eq!(run.exists(), repairs == 3);
    }
    let (run, damage) = (largest(), store.segment_damage());
    assert!(tokio::time::timeout(AWHILE, damage_found(store)).await.is_err());
    seal(store, 400).await;
    let refused = stored_uuids(store, PROJECT, &uuids).await.unwrap_err();
    assert!(matches!(refused, Error::Damaged { .. }), "{refused}");
    assert_eq!(largest(), run);
    assert_eq!(store.segment_damage(), damage, "it is not reported again and again");
    // The next start begins with a few attempts.
    let opened = opened.reopen().await;
    seal(&opened.store, 400).await;
    let stored = stored_uuids(&opened.store, PROJECT, &uuids).await.unwrap();
    assert_eq!(stored.len(), sent.len());
}

/// A search has met damage, and a verification finds none.
#[tokio::test]
async fn a_run_that_was_read_wrongly_twice_is_written_again() {
    let opened = Opened::new().await;
    let store = &opened.store;
    let sent = add_blocks(store, PROJECT, 12, 200).await;
    seal(store, 200).await;
    let (uuids, run) = (known(&sent), opened.run_files().remove(0));
    for is_first in [true, false] {
        flip(&run, ENTRY);
        let refused = stored_uuids(store, PROJECT, &uuids).await.unwrap_err();
        assert!(matches!(refused, Error::Damaged { .. }), "{refused}");
        flip(&run, ENTRY);
        repair_runs(store).await.unwrap();
        assert_eq!(run.exists(), is_first);
        assert_eq!(stored_uuids(store, PROJECT, &uuids).await.unwrap().len(), sent.len());
    }
}

#[tokio::test]
async fn a_run_that_could_not_be_opened_is_repaired_when_the_disk_has_space_again() {
    let opened = Opened::new().await;
    let sent = add_blocks(&opened.store, PROJECT, 12, 200).await;
    let known = known(&sent);
    seal(&opened.store, 200).await;
    let before = Seen::of(&opened.store, &known).await;
    let run = opened.run_files().remove(0);
    let directory = opened.close().await;
    // Its header.
    flip(&run, 3);
    let disk = DiskMarks { high: u64::MAX, low: u64::MAX };
    let full = Settings { disk, ..Settings::default() };
    let store = open_with(directory.path(), &full).await.unwrap();
    let bounds = SealBounds { events: 200, age: i64::MAX, ..SealBounds::default() };
    for _ in 0..2 {
        let report = seal_all(&store, now(), usize::MAX, bounds).await.unwrap();
        assert!(matches!(report.failure, Some(Error::DiskLow)), "{:?}", report.failure);
        assert!(run.exists());
    }
    assert!(stored_uuids(&store, PROJECT, &known).await.unwrap().len() < known.len());
    store.disk().empty();
    seal(&store, 200).await;
    assert!(!run.exists());
    assert_eq!(set_aside(directory.path()).len(), 1);
    before.assert_same(&Seen::of(&store, &known).await);
    assert_refused(&store, &sent).await;
    let damage = store.segment_damage();
    seal(&store, 200).await;
    assert_eq!(store.segment_damage(), damage);
}

#[tokio::test]
async fn a_run_stays_as_it_is_while_a_segment_cannot_be_read() {
    let mut opened = Opened::new().await;
    let sent = add_blocks(&opened.store, PROJECT, 12, 200).await;
    seal(&opened.store, 200).await;
    let (run, segment) = (opened.run_files().remove(0), opened.segment_files().remove(0));
    let middle = usize::try_from(std::fs::metadata(&segment).unwrap().len()).unwrap() / 2;
    opened = opened
        .reopen_after(|_| {
            flip(&run, ENTRY);
            flip(&segment, middle);
        })
        .await;
    seal(&opened.store, 200).await;
    assert!(run.exists());
    assert_eq!(set_aside(opened.directory.path()), [] as [PathBuf; 0]);
    // The first segment has the first 200.
    assert_refused(&opened.store, &sent[200..]).await;
    let damage = opened.store.segment_damage();
    seal(&opened.store, 200).await;
    // An event that leads to the damage is new, as far as anything can be read.
    let new = new_in_damage(&opened.store).await;
    assert_eq!(stored_uuids(&opened.store, PROJECT, &new).await.unwrap(), [] as [Uuid; 0]);
    let from = position(&opened.store, 2).await.unwrap().offset;
    let mut event = events(100_000, 100_000, "a");
    event[0].uuid = new[0];
    apply(&opened.store, batch(2, from, from + 1, &event)).await.unwrap();
    assert_eq!(opened.store.segment_damage(), damage, "it is not tried again and again");
    // The segment comes back from a backup.
    opened = opened.reopen_after(|_| flip(&segment, middle)).await;
    seal(&opened.store, 200).await;
    assert!(!run.exists());
    assert_refused(&opened.store, &sent).await;
    opened = opened.reopen().await;
    assert_refused(&opened.store, &sent).await;
    assert_eq!(opened.store.segment_damage(), 0);
}

/// What can be read of a run that cannot be opened is not found in it.
#[tokio::test]
async fn uuids_of_a_run_that_is_not_open_are_read_from_the_segments_that_can_be_read() {
    let mut opened = Opened::new().await;
    let sent = add_blocks(&opened.store, PROJECT, 12, 200).await;
    seal(&opened.store, 200).await;
    let (run, segment) = (opened.run_files().remove(0), opened.segment_files().remove(0));
    let middle = usize::try_from(std::fs::metadata(&segment).unwrap().len()).unwrap() / 2;
    opened = opened
        .reopen_after(|_| {
            flip(&run, ENTRY);
            flip(&run, FILTER);
            flip(&segment, middle);
        })
        .await;
    assert!(run.exists());
    assert_refused(&opened.store, &sent[200..]).await;
    // The segment comes back from a backup.
    opened = opened.reopen_after(|_| flip(&segment, middle)).await;
    assert!(!run.exists());
    assert_refused(&opened.store, &sent).await;
}

#[tokio::test]
async fn a_start_without_the_directory_of_the_files_fails_and_changes_nothing() {
    let opened = Opened::new().await;
    let sent = add_blocks(&opened.store, PROJECT, 12, 20).await;
    let known = known(&sent);
    seal(&opened.store, 20).await;
    let before = Seen::of(&opened.store, &known).await;
    let directory = opened.close().await;
    let [segments, away] = ["segments", "away"].map(|name| directory.path().join(name));
    std::fs::rename(&segments, &away).unwrap();
    let failed = open_again(directory.path()).await.err().unwrap();
    let Error::File { source, .. } = failed else { panic!("{failed}") };
    assert!(source.to_string().contains("mounted"), "{source}");
    std::fs::rename(&away, &segments).unwrap();
    // Runs that cannot be opened for another reason than damage.
    let run = files(&segments).pop().unwrap();
    let elsewhere = directory.path().join("elsewhere");
    std::fs::rename(&run, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&run, &run).unwrap();
    let failed = open_again(directory.path()).await.err().unwrap();
    assert!(matches!(failed, Error::File { .. }), "{failed}");
    assert!(failed.to_string().contains(run.to_str().unwrap()), "{failed}");
    std::fs::rename(&elsewhere, &run).unwrap();
    let store = open_again(directory.path()).await.unwrap();
    before.assert_same(&Seen::of(&store, &known).await);
    assert_eq!(store.segment_damage(), 0);
}

#[tokio::test]
async fn unknown_files_stay_while_others_are_missing() {
    let mut opened = Opened::new().await;
    add_blocks(&opened.store, PROJECT, 8, 20).await;
    seal(&opened.store, 20).await;
    let [missing, unknown] = [0, 1].map(|at| opened.segment_files().remove(at));
    let renamed = missing.with_file_name("1-20-0123456789abcdef0123456789abcdef.parquet");
    opened = opened.reopen_after(|_| std::fs::rename(&missing, &renamed).unwrap()).await;
    assert!(renamed.exists() && unknown.exists());
    assert_eq!(opened.store.segment_damage(), 1);
    opened = opened
        .reopen_after(|_| {
            std::fs::copy(&renamed, &missing).unwrap();
        })
        .await;
    assert!(!renamed.exists() && missing.exists());
    assert_eq!(opened.store.segment_damage(), 0);
}

#[tokio::test]
async fn a_partition_that_cannot_be_sealed_does_not_stop_the_others() {
    let opened = Opened::new().await;
    let store = &opened.store;
    let sent = add_blocks(store, PROJECT, 12, 20).await;
    // A file is where the directory of the second partition must be.
    std::fs::create_dir_all(opened.table(PROJECT)).unwrap();
    std::fs::write(opened.table(PROJECT).join("1"), b"").unwrap();
    let bounds = SealBounds { events: 20, age: i64::MAX, ..SealBounds::default() };
    let report = seal_all(store, now(), usize::MAX, bounds).await.unwrap();
    let failed = report.failure.unwrap();
    assert!(matches!(failed, Error::File { .. }), "{failed}");
    assert_eq!(report.segments, 3 * 2);
    while merge_once(store, 2, 1_000).await.is_some() {}
    assert_eq!(records(store, "event_segment").await, 3, "merges go on");
    std::fs::remove_file(opened.table(PROJECT).join("1")).unwrap();
    assert_eq!(seal(store, 20).await.segments, 2);
    assert_refused(store, &sent).await;
}

#[tokio::test]
async fn merged_runs_forget_the_uuids_of_deleted_projects() {
    let opened = Opened::new().await;
    let store = &opened.store;
    let sent = add_blocks(store, PROJECT, 20, 20).await;
    add_blocks(store, OTHER, 16, 20).await;
    const DELETE: Statement = Statement::delete("test", "DELETE project:8 RETURN NONE;");
    store.db.run(DELETE, bind! {}).await.unwrap();
    // 28 runs become three of eight and four of one.
    assert_eq!(seal(store, 20).await.segments, 16 + 12);
    const ENTRIES: Statement = Statement::read("test", "SELECT VALUE entries FROM event_uuid_run;");
    let entries = store.db.run(ENTRIES, bind! {}).await.unwrap().rows::<i64>(0).unwrap();
    assert_eq!(entries.iter().sum::<i64>(), 16 * 20 + 4 * 20, "{entries:?}");
    assert_refused(store, &sent).await;
}
