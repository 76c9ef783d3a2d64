//! Inspecting logs with every kind of fault. Nothing on disk changes.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use weir_store::disk::{DiskMarks, DiskState};
use weir_store::events::{PARTITIONS, historical_partition, live_partition};

use super::*;
use crate::batch::EncodedBatch;
use crate::batch::tests::batch;
use crate::log::{Applied, IngestLog as _, LocalLog, LogSettings};

const PROJECT: ProjectId = ProjectId(3);

async fn append(directory: &Path, batches: Vec<EncodedBatch>) {
    let disk = Arc::new(DiskState::new(None, DiskMarks::default()));
    let settings = LogSettings { segment_size: 64 << 10, ..LogSettings::default() };
    let log =
        LocalLog::open(directory, settings, HashMap::new(), Applied::default(), disk).unwrap();
    for batch in batches {
        log.append(PROJECT, batch).await.unwrap();
    }
    log.close();
}

async fn fill(directory: &Path, records: u32) {
    append(
        directory,
        (0..records).map(|n| batch(&format!("user-{n}"), 2).into_encoded()).collect(),
    )
    .await;
}

fn look(directory: &Path, positions: &[Position]) -> (Inspection, Vec<RecordSeen>) {
    let mut records = Vec::new();
    let found = inspect(directory, positions, |record| records.push(record.clone())).unwrap();
    (found, records)
}

/// All files below the directory with their content.
fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.insert(path.clone(), std::fs::read(&path).unwrap());
        }
    }
    found
}

fn change(path: &Path, at: u64, change: impl FnOnce(&mut [u8])) {
    let mut bytes = std::fs::read(path).unwrap();
    change(&mut bytes[usize::try_from(at).unwrap()..]);
    std::fs::write(path, bytes).unwrap();
}

#[tokio::test]
async fn inspection_lists_segments_and_records() {
    let place = tempfile::tempdir().unwrap();
    assert_eq!(look(&place.path().join("none"), &[]).0, Inspection::default());
    fill(place.path(), 600).await;
    let before = files(place.path());
    let (found, records) = look(place.path(), &[]);
    assert_eq!(files(place.path()), before, "nothing changes");
    assert!(found.segments.len() > 2 && found.broken.is_empty() && found.quarantine.is_empty());
    assert_eq!(
        found
            .segments
            .iter()
            .map(|s| (s.records, s.events))
            .fold((0, 0), |a, b| { (a.0 + b.0, a.1 + b.1) }),
        (600, 1_200)
    );
    for pair in found.segments.windows(2) {
        assert_eq!(pair[0].end, pair[1].begin);
    }
    let at = Timestamp::from_micros(1_780_000_000_000_000);
    assert_eq!(found.segments[0].received, Some((at, at)));
    assert_eq!(records.len(), 600);
    assert_eq!((records[1].first_arrival, records[1].events), (3, 2));
    assert_eq!((records[1].form, records[1].project), (Some(1), PROJECT));
    let content = Content { received_at: at, historical: false, dropped: 0 };
    assert_eq!(records[1].content, Ok(content));
    assert_eq!(found.bounds().unwrap().0, Offset(0));
}

#[tokio::test]
async fn inspection_reports_damage_and_changes_nothing() {
    let place = tempfile::tempdir().unwrap();
    fill(place.path(), 600).await;
    let (whole, records) = look(place.path(), &[]);
    let segments = &whole.segments;
    // A flipped byte in the second record, a missing segment, and half of the last
    // record.
    change(&segments[0].path, records[1].offset.0 + 80, |bytes| bytes[0] ^= 0xFF);
    std::fs::remove_file(&segments[1].path).unwrap();
    let (last, torn) = (segments.last().unwrap(), records.last().unwrap());
    change(&last.path, torn.offset.0 + 100 - last.begin.0, |bytes| bytes.fill(0));
    let before = files(place.path());
    let (found, left) = look(place.path(), &[]);
    assert_eq!(files(place.path()), before, "nothing is repaired");
    let broken: Vec<_> = found.broken.iter().map(|b| (b.offset, b.fault)).collect();
    assert_eq!(
        broken,
        [
            (records[1].offset, Fault::Damaged),
            (segments[1].begin, Fault::Missing),
            (torn.offset, Fault::Torn),
        ]
    );
    assert_eq!(found.broken[0].bytes, records[2].offset.0 - records[1].offset.0);
    assert_eq!(found.broken[1].bytes, segments[1].end.0 - segments[1].begin.0);
    assert_eq!(found.bounds().unwrap().1, torn.offset);
    assert_eq!(look(place.path(), &[Position::at(0)]).0.broken, found.broken);
    let gone = usize::try_from(segments[1].records).unwrap() + 2;
    assert_eq!(left.len(), records.len() - gone);

    // Opening repairs the log: damaged bytes go to `quarantine`, and the tail is cut.
    fill(place.path(), 0).await;
    let (found, _) = look(place.path(), &[]);
    assert!(found.broken.iter().all(|broken| broken.fault != Fault::Torn));
    assert_eq!(found.quarantine.len(), 1);
    let name = format!("{:020}.bytes", records[1].offset.0);
    assert!(found.quarantine[0].path.ends_with(name));
    assert_eq!(found.quarantine[0].bytes, records[2].offset.0 - records[1].offset.0);
    // The header is still readable.
    let [kept] = found.quarantine[0].records.as_slice() else { unreachable!() };
    assert_eq!((kept.project, kept.first_arrival, kept.events), (PROJECT, 3, 2));
    assert_eq!(kept.offset, records[1].offset);
    assert!(kept.content.as_ref().unwrap_err().contains("damaged"));
    assert!(found.quarantine[0].at.is_some() && found.quarantine[0].offset == Some(kept.offset));

    // Before the first segment, records are missing that were not applied.
    std::fs::remove_file(&segments[0].path).unwrap();
    for (position, missing) in [(records[3].offset.0, true), (segments[2].begin.0, false)] {
        let (found, _) = look(place.path(), &[Position::at(position), Position::at(u64::MAX)]);
        let before = Broken {
            offset: Offset(position),
            bytes: segments[2].begin.0 - position,
            fault: Fault::Missing,
        };
        assert_eq!(found.broken, if missing { vec![before] } else { vec![] });
    }
}

#[tokio::test]
async fn inspection_reports_damage_at_the_end() {
    let place = tempfile::tempdir().unwrap();
    fill(place.path(), 5).await;
    let (whole, records) = look(place.path(), &[]);
    let path = &whole.segments[0].path;
    let (fourth, fifth) = (records[3].offset, records[4].offset);
    let broken = || -> Vec<(Offset, Fault)> {
        look(place.path(), &[]).0.broken.iter().map(|b| (b.offset, b.fault)).collect()
    };
    for damaged in [fourth, fifth] {
        change(path, damaged.0 + 80, |bytes| bytes[0] ^= 0xFF);
    }
    assert_eq!(broken(), [(fourth, Fault::Damaged), (fifth, Fault::Torn)]);
    // The file is cut within the last record.
    let cut = fifth.0 + 60;
    let bytes = std::fs::read(path).unwrap();
    std::fs::write(path, &bytes[..usize::try_from(cut).unwrap()]).unwrap();
    assert_eq!(broken(), [(fourth, Fault::Damaged), (Offset(cut), Fault::Missing)]);
    // Opening repairs the log: nothing in it was cut off.
    fill(place.path(), 0).await;
    assert_eq!(broken(), [(fourth, Fault::Damaged)]);
    assert_eq!(look(place.path(), &[]).0.quarantine[0].records.len(), 2);
}

#[tokio::test]
async fn a_record_of_another_encoding_is_marked() {
    let place = tempfile::tempdir().unwrap();
    let mut strange = batch("a", 3).into_encoded();
    strange.payload = Bytes::from_static(&[9, 9, 9]);
    strange.payload_crc = crc32c::crc32c(&strange.payload);
    append(place.path(), vec![batch("a", 1).into_encoded(), strange]).await;
    let (found, records) = look(place.path(), &[]);
    assert_eq!((found.segments[0].records, found.segments[0].unreadable), (2, 1));
    assert!(found.broken.is_empty());
    assert_eq!((records[1].form, records[1].events), (Some(9), 3));
    assert!(records[1].content.as_ref().unwrap_err().contains("encoding 9"));

    // The copy says the same, also when the log no longer has the record.
    let disk = Arc::new(DiskState::new(None, DiskMarks::default()));
    let settings = LogSettings::default();
    let log =
        LocalLog::open(place.path(), settings, HashMap::new(), Applied::default(), disk).unwrap();
    let record = log.read(records[1].offset, 1).unwrap().remove(0);
    log.quarantine(&record).unwrap();
    drop(log);
    std::fs::remove_file(&found.segments[0].path).unwrap();
    let (found, _) = look(place.path(), &[]);
    assert_eq!(found.quarantine[0].records, records[1..]);
}

#[tokio::test]
async fn what_waits_is_counted_by_partition() {
    let place = tempfile::tempdir().unwrap();
    let live = batch("ada", 5);
    let historical = Batch { historical: true, ..batch("ada", 7) };
    append(
        place.path(),
        vec![live.clone().into_encoded(), historical.into_encoded(), live.into_encoded()],
    )
    .await;
    let (whole, records) = look(place.path(), &[]);
    let end = whole.bounds().unwrap().1.0;
    let own = usize::from(live_partition(PROJECT, "ada"));
    // In the middle of the first record.
    let mut positions = vec![Position::at(end); usize::from(PARTITIONS)];
    positions[own] = Position { offset: 0, index: 2 };
    let (found, _) = look(place.path(), &positions);
    let events: Vec<_> = found.waiting.iter().map(|waiting| waiting.events).collect();
    let expected: Vec<_> = (0..events.len()).map(|p| if p == own { 8 } else { 0 }).collect();
    assert_eq!(events, expected);
    assert_eq!(found.waiting[own].bytes, end);

    let own = usize::from(historical_partition(PROJECT));
    positions[own] = Position::at(records[1].offset.0);
    let (found, _) = look(place.path(), &positions);
    assert_eq!(found.waiting[own].events, 7);
    assert_eq!(found.waiting[own].bytes, end - records[1].offset.0);
}
