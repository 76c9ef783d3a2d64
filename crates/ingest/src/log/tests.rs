//! The log on real files: order, group commit, recovery from every kind of end.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use weir_model::ProjectId;
use weir_store::disk::{DiskMarks, DiskState};

use super::*;
use crate::batch::tests::batch;

pub(super) const PROJECT: ProjectId = ProjectId(3);

fn settings() -> LogSettings {
    LogSettings { segment_size: 64 << 10, newest_cache: 1 << 10, ..LogSettings::default() }
}

pub(super) fn open(directory: &Path) -> LocalLog {
    let disk = Arc::new(DiskState::new(None, DiskMarks::default()));
    LocalLog::open(directory, settings(), HashMap::new(), Applied::default(), disk).unwrap()
}

/// Everything in the log, in order.
fn all(log: &LocalLog) -> Vec<Arc<Record>> {
    let mut records: Vec<Arc<Record>> = Vec::new();
    let mut at = Offset(0);
    loop {
        let part = log.read(at, 10_000).unwrap();
        let Some(last) = part.last() else { return records };
        at = last.next;
        records.extend(part);
    }
}

fn segments(directory: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "log"))
        .collect();
    paths.sort();
    paths
}

pub(super) async fn fill(directory: &Path, records: u32) {
    let log = open(directory);
    for n in 0..records {
        log.append(PROJECT, batch(&format!("user-{n}"), 2).into_encoded()).await.unwrap();
    }
    log.close();
}

#[tokio::test]
async fn records_come_back_in_order_across_segments_and_restarts() {
    let place = tempfile::tempdir().unwrap();
    fill(place.path(), 300).await;
    fill(place.path(), 300).await;
    let log = open(place.path());
    assert!(segments(place.path()).len() > 2);
    let records = all(&log);
    assert_eq!(records.len(), 600);
    for (n, record) in records.iter().enumerate() {
        assert_eq!(record.first_arrival, 1 + 2 * n as u64);
        let batch = record.batch().unwrap();
        assert_eq!(batch.event(0).unwrap().distinct_id, format!("user-{}", n % 300));
    }
}

#[tokio::test]
async fn concurrent_appends_are_all_there() {
    let place = tempfile::tempdir().unwrap();
    let log = Arc::new(open(place.path()));
    let tasks: Vec<_> = (0..200)
        .map(|n| {
            let log = Arc::clone(&log);
            tokio::spawn(async move {
                log.append(PROJECT, batch(&format!("u{n}"), 3).into_encoded()).await
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    let records = all(&log);
    assert_eq!(records.len(), 200);
    let arrivals: Vec<u64> = records.iter().map(|r| r.first_arrival).collect();
    assert_eq!(arrivals, (0..200).map(|n| 1 + 3 * n).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_tail_torn_at_any_byte_loses_only_what_is_torn() {
    let place = tempfile::tempdir().unwrap();
    fill(place.path(), 3).await;
    let path = segments(place.path()).pop().unwrap();
    let whole = std::fs::read(&path).unwrap();
    let bounds: Vec<usize> = {
        let log = open(place.path());
        all(&log).iter().map(|r| usize::try_from(r.next.0).unwrap()).collect()
    };
    for cut in (bounds[1]..bounds[2]).step_by(7) {
        for garble in [false, true] {
            let mut bytes = whole.clone();
            for (n, byte) in bytes[cut..bounds[2]].iter_mut().enumerate() {
                *byte = if garble { 0xA5 ^ u8::try_from(n % 251).unwrap() } else { 0 };
            }
            std::fs::write(&path, &bytes).unwrap();
            let log = open(place.path());
            // Padding after the payload carries no data.
            let kept = all(&log).len();
            assert!(kept == 2 || (kept == 3 && bounds[2] - cut < 8), "cut at {cut}: {kept}");
            assert!(log.recovery().damaged.is_empty(), "a torn tail is no damage");
        }
    }
    // Appending continues after the repair, and a second crash keeps the records.
    let log = open(place.path());
    log.append(PROJECT, batch("after", 1).into_encoded()).await.unwrap();
    drop(log);
    let records = all(&open(place.path()));
    let last = records.last().unwrap().batch().unwrap();
    assert_eq!(last.event(0).unwrap().distinct_id, "after");
}

#[tokio::test]
async fn damage_of_acknowledged_records_is_reported_and_quarantined() {
    let place = tempfile::tempdir().unwrap();
    fill(place.path(), 5).await;
    let path = segments(place.path()).pop().unwrap();
    let second = {
        let log = open(place.path());
        usize::try_from(all(&log)[1].offset.0).unwrap()
    };
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[second + 80] ^= 0xFF;
    std::fs::write(&path, &bytes).unwrap();

    let log = open(place.path());
    assert_eq!(log.recovery().damaged.len(), 1);
    assert_eq!(log.recovery().damaged[0].0, second as u64);
    let copy = place.path().join("quarantine").join(format!("{second:020}.bytes"));
    let bytes = std::fs::metadata(&copy).unwrap().len();
    let records = all(&log);
    let readable: Vec<bool> = records.iter().map(|record| record.batch().is_ok()).collect();
    assert_eq!(readable, [true, false, true, true, true]);
    assert_eq!((records[1].project, records[1].count), (PROJECT, 2), "whose they are is known");
    assert_eq!(log.damage().unwrap(), Damage { copies: 1, bytes, missing: 0 });
    // A fault that only a read finds leads to the same copy.
    std::fs::remove_file(&copy).unwrap();
    assert!(log.damage().unwrap().is_none(), "it has been dealt with");
    log.quarantine(&records[1]).unwrap();
    assert_eq!(log.damage().unwrap().copies, 1);
}

#[tokio::test]
async fn the_parts_of_a_request_are_records_side_by_side() {
    let place = tempfile::tempdir().unwrap();
    let log = open(place.path());
    log.append(PROJECT, batch("before", 1).into_encoded()).await.unwrap();
    let parts: Vec<EncodedBatch> =
        ["a", "b", "c"].map(|id| batch(id, 700).into_encoded().without_decoded()).into();
    let first = log.append_all(PROJECT, parts.clone()).await.unwrap();
    log.append(PROJECT, batch("after", 1).into_encoded()).await.unwrap();
    let records = all(&log);
    let found: Vec<_> = records.iter().map(|record| (record.first_arrival, record.count)).collect();
    assert_eq!(found, [(1, 1), (2, 700), (702, 700), (1_402, 700), (2_102, 1)]);
    assert_eq!(records[1].offset, first);
    for (record, id) in records[1..4].iter().zip(["a", "b", "c"]) {
        let batch = record.batch().unwrap();
        assert!(batch.events().all(|event| event.distinct_id == id));
        // A record that waits in the cache counts with its decoded size.
        assert!(record.memory() >= batch.memory() + record.size());
    }
    // All parts are stored, or none.
    drop(log);
    let disk = Arc::new(DiskState::new(None, DiskMarks::default()));
    let room = parts[0].payload.len() * 2;
    let small = LogSettings { pending: room, ..settings() };
    let log =
        LocalLog::open(place.path(), small, HashMap::new(), Applied::default(), disk).unwrap();
    assert_eq!(log.append_all(PROJECT, parts).await, Err(AppendError::Busy));
    assert_eq!(all(&log).len(), 5);
}

#[tokio::test]
async fn damage_up_to_the_end_of_a_segment_does_not_stop_reading() {
    let place = tempfile::tempdir().unwrap();
    fill(place.path(), 600).await;
    let (damaged, count) = {
        let log = open(place.path());
        let records = all(&log);
        let second_segment = base_of(&segments(place.path())[1]);
        let last = records.iter().rfind(|r| r.offset.0 < second_segment).unwrap();
        (usize::try_from(last.offset.0).unwrap(), records.len())
    };
    let path = &segments(place.path())[0];
    let mut bytes = std::fs::read(path).unwrap();
    bytes[damaged + 80] ^= 0xFF;
    std::fs::write(path, &bytes).unwrap();

    let records = all(&open(place.path()));
    let readable = records.iter().filter(|record| record.batch().is_ok());
    assert_eq!((records.len(), readable.count()), (count, count - 1), "all but the damaged one");
}

#[tokio::test]
async fn applied_segments_are_not_read_at_the_start() {
    let place = tempfile::tempdir().unwrap();
    fill(place.path(), 600).await;
    let all_records = open(place.path()).recovery().records;
    let second = base_of(&segments(place.path())[1]);
    let disk = Arc::new(DiskState::new(None, DiskMarks::default()));
    let applied = Applied { lowest: Offset(second), highest: Offset(second) };
    let log = LocalLog::open(place.path(), settings(), HashMap::new(), applied, disk).unwrap();
    assert!(log.recovery().records < all_records);
    assert_eq!(all(&log).len() as u64, all_records, "they can still be read");
}

#[tokio::test]
async fn a_log_whose_end_is_gone_continues_behind_what_was_applied() {
    let place = tempfile::tempdir().unwrap();
    fill(place.path(), 5).await;
    let end = all(&open(place.path())).last().unwrap().next;
    let again = || {
        let disk = Arc::new(DiskState::new(None, DiskMarks::default()));
        let applied = Applied { lowest: end, highest: end };
        LocalLog::open(place.path(), settings(), HashMap::new(), applied, disk).unwrap()
    };
    for (round, lost) in ["the last record", "everything"].into_iter().enumerate() {
        for path in segments(place.path()) {
            if round == 0 {
                let mut bytes = std::fs::read(&path).unwrap();
                let at = usize::try_from(end.0).unwrap() - 40;
                bytes[at] ^= 0xFF;
                std::fs::write(&path, &bytes).unwrap();
            } else {
                std::fs::remove_file(&path).unwrap();
            }
        }
        let log = again();
        assert!(!log.recovery().missing.is_empty(), "{lost}");
        let offset = log.append(PROJECT, batch("after", 1).into_encoded()).await.unwrap();
        assert!(offset >= end, "{lost}");
        assert_eq!(log.read(end, 1).unwrap()[0].offset, offset);
        drop(log);
        let log = again();
        assert_eq!(log.recovery().missing, [], "{lost}: reported once");
        assert_eq!(log.read(end, 1).unwrap()[0].offset, offset);
    }
}

#[tokio::test]
async fn damage_of_a_whole_group_or_at_the_end_of_a_segment_is_reported() {
    let place = tempfile::tempdir().unwrap();
    let log = Arc::new(open(place.path()));
    // The writer writes them together, as far as it can.
    let appends = (0..50).map(|n| {
        let log = Arc::clone(&log);
        tokio::spawn(
            async move { log.append(PROJECT, batch(&format!("u{n}"), 1).into_encoded()).await },
        )
    });
    for append in appends.collect::<Vec<_>>() {
        append.await.unwrap().unwrap();
    }
    drop(log);
    let path = segments(place.path()).pop().unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[80] ^= 0xFF;
    std::fs::write(&path, &bytes).unwrap();
    let recovery = open(place.path()).recovery().clone();
    assert_eq!((recovery.damaged.len(), recovery.records), (1, 49));

    let place = tempfile::tempdir().unwrap();
    fill(place.path(), 600).await;
    let path = segments(place.path()).swap_remove(0);
    let last = {
        let next = base_of(&segments(place.path())[1]);
        let records = all(&open(place.path()));
        records.iter().rfind(|record| record.offset.0 < next).unwrap().offset
    };
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[usize::try_from(last.0).unwrap() + 80] ^= 0xFF;
    std::fs::write(&path, &bytes).unwrap();
    assert_eq!(open(place.path()).recovery().damaged[0].0, last.0);
}

#[tokio::test]
async fn records_that_are_missing_between_segments_are_reported() {
    for lost in ["the last record", "a segment"] {
        let place = tempfile::tempdir().unwrap();
        fill(place.path(), 600).await;
        let paths = segments(place.path());
        let (from, next) = (base_of(&paths[1]), base_of(&paths[2]));
        let records = all(&open(place.path()));
        let last = records.iter().rfind(|record| record.offset.0 < next).unwrap().offset.0;
        let begin = if lost == "a segment" {
            std::fs::remove_file(&paths[1]).unwrap();
            from
        } else {
            let mut bytes = std::fs::read(&paths[1]).unwrap();
            bytes[usize::try_from(last - from).unwrap()..].fill(0);
            std::fs::write(&paths[1], &bytes).unwrap();
            last
        };
        let log = open(place.path());
        assert_eq!(log.recovery().missing, [(begin, next - begin)], "{lost}");
        assert_eq!(log.damage().unwrap().missing, next - begin, "{lost}");
        // The numbers of the project's events say how many are lost.
        let gone = records.iter().filter(|r| (begin..next).contains(&r.offset.0)).count() as u64;
        assert_eq!(log.recovery().lost, [(next, 2 * gone)].into(), "{lost}");
        assert_eq!(log.read(Offset(next), 1).unwrap()[0].lost_before, 2 * gone, "{lost}");
        drop(log);
        // Applied records are no longer needed.
        let disk = Arc::new(DiskState::new(None, DiskMarks::default()));
        let next = Offset(next);
        let applied = Applied { lowest: next, highest: next };
        let log = LocalLog::open(place.path(), settings(), HashMap::new(), applied, disk).unwrap();
        assert_eq!(log.recovery().missing, [], "{lost}");
    }
}

#[tokio::test]
async fn damage_that_a_reader_finds_is_quarantined() {
    for header_of in ["a record", "the last record"] {
        let place = tempfile::tempdir().unwrap();
        fill(place.path(), 5).await;
        let log = open(place.path());
        let records = all(&open(place.path()));
        let damaged = if header_of == "a record" { &records[1] } else { &records[4] };
        let path = segments(place.path()).pop().unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[usize::try_from(damaged.offset.0).unwrap() + 30] ^= 0xFF;
        std::fs::write(&path, &bytes).unwrap();
        for _ in 0..2 {
            assert_eq!(all(&log).len(), 4, "{header_of}");
            let bytes = damaged.next.0 - damaged.offset.0;
            assert_eq!(log.damage().unwrap(), Damage { copies: 1, bytes, missing: 0 });
        }
    }
}

fn base_of(segment: &Path) -> u64 {
    segment.file_stem().unwrap().to_str().unwrap().parse().unwrap()
}

#[tokio::test]
async fn applied_segments_are_removed_beyond_the_bounds() {
    let place = tempfile::tempdir().unwrap();
    fill(place.path(), 600).await;
    let disk = Arc::new(DiskState::new(None, DiskMarks::default()));
    let keep = LogSettings { keep_bytes: 64 << 10, ..settings() };
    let log = LocalLog::open(place.path(), keep, HashMap::new(), Applied::default(), disk).unwrap();
    let before = segments(place.path()).len();
    assert!(before >= 4);
    log.release_before(Offset(0), Offset(0));
    assert_eq!(segments(place.path()).len(), before, "nothing is applied yet");
    let end = *log.end().borrow();
    let last = Offset(base_of(segments(place.path()).last().unwrap()));
    assert_eq!(log.release_before(end, Offset(0)), Some(last), "the next start needs all of them");
    assert_eq!(segments(place.path()).len(), before);
    assert_eq!(log.release_before(end, end), None);
    let after = segments(place.path()).len();
    assert!(after < before && after >= 1);
    assert_eq!(all(&log).last().unwrap().next, end);
}

#[tokio::test]
async fn a_segment_that_was_begun_early_is_removed_like_others() {
    let place = tempfile::tempdir().unwrap();
    let log = open(place.path());
    assert_eq!(log.begin_segment().await.unwrap(), Offset(0), "the last one is empty");
    log.append(PROJECT, batch("ada", 2).into_encoded()).await.unwrap();
    let end = *log.end().borrow();
    assert_eq!(log.begin_segment().await.unwrap(), end);
    assert_eq!(log.begin_segment().await.unwrap(), end, "once");
    log.append(PROJECT, batch("bob", 2).into_encoded()).await.unwrap();
    log.close();
    assert_eq!(segments(place.path()).len(), 2);
    let settings = LogSettings { keep_for: std::time::Duration::ZERO, ..settings() };
    let disk = Arc::new(DiskState::new(None, DiskMarks::default()));
    let log =
        LocalLog::open(place.path(), settings, HashMap::new(), Applied::default(), disk).unwrap();
    assert_eq!(all(&log).len(), 2);
    assert_eq!((log.recovery().missing.len(), log.begin()), (0, Offset(0)));
    log.release_before(end, end);
    assert_eq!(log.begin(), end);
    assert_eq!(segments(place.path()).len(), 1);
}

#[tokio::test]
async fn bounds_refuse_without_waiting() {
    let place = tempfile::tempdir().unwrap();
    let disk = Arc::new(DiskState::new(None, DiskMarks::default()));
    let small = LogSettings { backlog: 100, ..settings() };
    let log =
        LocalLog::open(place.path(), small, HashMap::new(), Applied::default(), disk).unwrap();
    log.append(PROJECT, batch("a", 1).into_encoded()).await.unwrap();
    assert_eq!(log.append(PROJECT, batch("a", 1).into_encoded()).await, Err(AppendError::Busy));
    let end = *log.end().borrow();
    log.release_before(end, end);
    log.append(PROJECT, batch("a", 1).into_encoded()).await.unwrap();
    let end = *log.end().borrow();
    log.release_before(end, end);
    log.close();
    assert_eq!(log.append(PROJECT, batch("a", 1).into_encoded()).await, Err(AppendError::Closed));
}

#[tokio::test]
async fn records_that_are_missing_before_the_first_segment_are_reported() {
    let place = tempfile::tempdir().unwrap();
    fill(place.path(), 300).await;
    let records = all(&open(place.path()));
    let paths = segments(place.path());
    std::fs::remove_file(&paths[0]).unwrap();
    let second = base_of(&paths[1]);
    // What the store has: nothing, or the first ten records.
    for applied in [0, 10] {
        let begin = records[applied].offset;
        let arrivals: HashMap<i64, u64> = [(PROJECT.0, 1 + 2 * applied as u64)].into();
        let disk = Arc::new(DiskState::new(None, DiskMarks::default()));
        let lowest = Applied { lowest: begin, highest: begin };
        let log = LocalLog::open(place.path(), settings(), arrivals, lowest, disk).unwrap();
        assert_eq!(log.recovery().missing, [(begin.0, second - begin.0)]);
        assert_eq!(log.damage().unwrap().missing, second - begin.0);
        let gone = records[applied..].iter().filter(|r| r.offset.0 < second).count() as u64;
        assert_eq!(log.recovery().lost, [(second, 2 * gone)].into());
        assert_eq!(log.read(begin, 1).unwrap()[0].lost_before, 2 * gone);
    }
    // A segment that was applied was removed on purpose.
    let disk = Arc::new(DiskState::new(None, DiskMarks::default()));
    let applied = Applied { lowest: Offset(second), highest: Offset(second) };
    let log = LocalLog::open(place.path(), settings(), HashMap::new(), applied, disk).unwrap();
    assert_eq!((log.recovery().missing.len(), log.recovery().lost.len()), (0, 0));
}

/// The store does not know the last number of a project whose last events it was not
/// given.
#[tokio::test]
async fn no_more_events_are_lost_than_the_bytes_can_hold() {
    let place = tempfile::tempdir().unwrap();
    let disk = Arc::new(DiskState::new(None, DiskMarks::default()));
    let arrivals = [(PROJECT.0, 1_000_000)].into();
    let log = LocalLog::open(place.path(), settings(), arrivals, Applied::default(), disk).unwrap();
    for id in ["a", "b"] {
        log.append(PROJECT, batch(id, 2).into_encoded()).await.unwrap();
    }
    let second = all(&log)[1].offset.0;
    drop(log);
    let path = segments(place.path()).pop().unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[30] ^= 0xFF;
    std::fs::write(&path, &bytes).unwrap();
    assert_eq!(open(place.path()).recovery().lost, [(second, second)].into());
}

fn change(path: &Path, at: u64, change: impl FnOnce(&mut [u8])) {
    let mut bytes = std::fs::read(path).unwrap();
    change(&mut bytes[usize::try_from(at).unwrap()..]);
    std::fs::write(path, bytes).unwrap();
}

/// The header of the last record proves that the records before it were acknowledged.
#[tokio::test]
async fn damage_at_the_end_of_acknowledged_records_is_reported() {
    for headers_of_two_are_destroyed in [false, true] {
        let place = tempfile::tempdir().unwrap();
        fill(place.path(), 5).await;
        let offsets: Vec<u64> = all(&open(place.path())).iter().map(|r| r.offset.0).collect();
        let path = segments(place.path()).pop().unwrap();
        let within = if headers_of_two_are_destroyed { 30 } else { 80 };
        for (damaged, within) in [(2, within), (3, within), (4, 80)] {
            change(&path, offsets[damaged] + within, |bytes| bytes[0] ^= 0xFF);
        }
        for start in 0..2 {
            let log = open(place.path());
            let recovery = log.recovery();
            assert_eq!(recovery.damaged, [(offsets[2], offsets[4] - offsets[2])]);
            assert_eq!(recovery.torn_bytes > 0, start == 0, "the last record is not certain");
            // An empty record replaces it.
            let lost = if headers_of_two_are_destroyed { vec![(offsets[4], 4)] } else { vec![] };
            assert_eq!(recovery.lost, lost.into_iter().collect());
            assert_eq!(recovery.missing, []);
            let bytes = offsets[4] - offsets[2];
            assert_eq!(log.damage().unwrap(), Damage { copies: 1, bytes, missing: 0 });
            let records = all(&log);
            assert_eq!(records.last().unwrap().offset.0, offsets[4]);
            assert_eq!(
                (records.last().unwrap().first_arrival, records.last().unwrap().count),
                (9, 0)
            );
            // Consumers get the damaged records, because the headers say whose they are.
            let expected: &[bool] = match headers_of_two_are_destroyed {
                true => &[true, true, true],
                false => &[true, true, false, false, true],
            };
            let readable: Vec<bool> = records.iter().map(|r| r.batch().is_ok()).collect();
            assert_eq!(readable, expected);
            for record in records.iter().filter(|record| record.is_damaged()) {
                log.quarantine(record).unwrap();
            }
            let copy = place.path().join(format!("quarantine/{:020}.bytes", offsets[2]));
            assert_eq!(std::fs::metadata(copy).unwrap().len(), bytes, "still of both");
            let _ = std::fs::remove_file(
                place.path().join(format!("quarantine/{:020}.bytes", offsets[3])),
            );
        }
    }
}

#[tokio::test]
async fn a_last_segment_that_was_cut_is_reported() {
    let place = tempfile::tempdir().unwrap();
    fill(place.path(), 5).await;
    let path = segments(place.path()).pop().unwrap();
    let whole = std::fs::read(&path).unwrap();
    let records = all(&open(place.path()));
    let (fourth, fifth) = (records[3].offset.0, records[4].offset.0);
    let end = records[4].next.0;
    let cuts = [
        ("within a record", fifth - 20, true),
        ("within a header", fourth + 30, true),
        ("behind a header", fourth + 56, true),
        ("between two records", fifth, true),
        ("after one byte", 1, true),
        ("behind the data", end + 8, false),
        // So does a crash leave it that interrupts the creation of the file.
        ("to nothing", 0, false),
    ];
    for (what, cut, is_damage) in cuts {
        std::fs::write(&path, &whole[..usize::try_from(cut).unwrap()]).unwrap();
        let log = open(place.path());
        let missing = settings().segment_size - cut;
        let expected = if is_damage { vec![(cut, missing)] } else { vec![] };
        assert_eq!(log.recovery().missing, expected, "{what}");
        assert_eq!(log.damage().unwrap().missing, if is_damage { missing } else { 0 }, "{what}");
        let is_within = (fourth + 56..fifth).contains(&cut);
        let damaged = if is_within { vec![(fourth, fifth - fourth)] } else { vec![] };
        assert_eq!(log.recovery().damaged, damaged, "{what}");
        // The damaged record, and an empty one behind it.
        let further = if is_within { 2 } else { 0 };
        let kept = records.iter().filter(|r| r.next.0 <= cut).count() + further;
        assert_eq!(all(&log).len(), kept, "{what}");
        // Appending continues.
        log.append(PROJECT, batch("after", 1).into_encoded()).await.unwrap();
        drop(log);
        let log = open(place.path());
        assert_eq!((log.recovery().missing.len(), all(&log).len()), (0, kept + 1), "{what}");
        assert_eq!(std::fs::metadata(&path).unwrap().len(), settings().segment_size, "{what}");
        let _ = std::fs::remove_dir_all(place.path().join("quarantine"));
    }
    // The same with the allocation interrupted in the middle.
    std::fs::write(&path, [0; 100]).unwrap();
    assert_eq!(open(place.path()).recovery(), &Recovery::default());
}

/// The records of a torn write have gaps too. Nothing says that they were acknowledged.
#[tokio::test]
async fn a_torn_write_of_several_records_is_no_damage() {
    let place = tempfile::tempdir().unwrap();
    let log = open(place.path());
    log.append(PROJECT, batch("before", 1).into_encoded()).await.unwrap();
    let parts: Vec<EncodedBatch> = ["a", "b", "c"].map(|id| batch(id, 2).into_encoded()).into();
    log.append_all(PROJECT, parts).await.unwrap();
    let records = all(&log);
    drop(log);
    let path = segments(place.path()).pop().unwrap();
    for (record, within) in [(1, 30), (2, 80), (3, 80)] {
        change(&path, records[record].offset.0 + within, |bytes| bytes[0] ^= 0xFF);
    }
    let log = open(place.path());
    let torn_bytes = log.recovery().torn_bytes;
    assert!(torn_bytes > 0);
    assert_eq!(log.recovery(), &Recovery { records: 1, torn_bytes, ..Recovery::default() });
    assert_eq!(all(&log).len(), 1);
}
