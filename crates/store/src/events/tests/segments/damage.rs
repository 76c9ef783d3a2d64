//! A damaged file is an error, and never an event that was not sent.

use std::path::{Path, PathBuf};

use uuid::Uuid;
use weir_model::events::EventQuery;

use super::super::support::{PROJECT, batch, events, query, records};
use super::reading::known;
use super::seen::Seen;
use super::support::{Opened, add_blocks, merge_once, seal, uuid};
use crate::events::{
    Scan, Selection, StoredEvent, apply, page, position, purge, repair_runs, stored_uuids,
};
use crate::{Error, Result, Store};

pub(super) fn flip(file: &Path, at: usize) {
    let mut content = std::fs::read(file).unwrap();
    content[at] ^= 0x40;
    std::fs::write(file, content).unwrap();
}

async fn scan(store: &Store) -> Result<Vec<StoredEvent>> {
    let all = Selection { up_to: 1 << 40, ..Selection::default() };
    let mut scan = Scan::begin(store, PROJECT, all).await?;
    let mut found = Vec::new();
    while let Some(events) = scan.next().await? {
        found.extend(events);
    }
    Ok(found)
}

async fn by_uuid(store: &Store, uuid: Uuid) -> Result<Option<StoredEvent>> {
    let query = EventQuery { uuid: Some(uuid), ..query(3) };
    Ok(page(store, PROJECT, &query).await?.0.pop())
}

#[tokio::test]
async fn every_flipped_byte_of_a_segment_is_found_or_without_effect() {
    let mut opened = Opened::new().await;
    let sent = add_blocks(&opened.store, PROJECT, 8, 20).await;
    seal(&opened.store, 20).await;
    let file = opened.segment_files().remove(0);
    let length = std::fs::metadata(&file).unwrap().len();
    let length = usize::try_from(length).unwrap();
    let mut found = 0;
    for at in (0..length).step_by(length / 12).chain([length - 1]) {
        opened = opened.reopen_after(|_| flip(&file, at)).await;
        match scan(&opened.store).await {
            Ok(events) => assert_eq!(events, sent, "byte {at}"),
            Err(error) => {
                assert!(matches!(error, Error::Damaged { .. }), "byte {at}: {error}");
                assert!(error.to_string().contains(file.to_str().unwrap()), "{error}");
                assert!(opened.store.segment_damage() > 0);
                found += 1;
            }
        }
        // Blocks that are not in the file can be read.
        assert_eq!(by_uuid(&opened.store, uuid(21)).await.unwrap().as_ref(), Some(&sent[20]));
        opened = opened.reopen_after(|_| flip(&file, at)).await;
    }
    assert!(found > 10, "{found}");
    assert_eq!(scan(&opened.store).await.unwrap(), sent);
}

#[tokio::test]
async fn a_segment_that_is_missing_or_cut_is_an_error_until_it_is_purged() {
    let mut opened = Opened::new().await;
    let sent = add_blocks(&opened.store, PROJECT, 8, 20).await;
    seal(&opened.store, 20).await;
    let [one, other] = [0, 1].map(|at| opened.segment_files().remove(at));
    opened = opened
        .reopen_after(|_| {
            std::fs::remove_file(&one).unwrap();
            let content = std::fs::read(&other).unwrap();
            std::fs::write(&other, &content[..content.len() - 1]).unwrap();
        })
        .await;
    assert_eq!(opened.store.segment_damage(), 1, "the missing file is noticed at the start");
    assert!(matches!(scan(&opened.store).await.unwrap_err(), Error::Damaged { .. }));
    let of_file = |file: &Path| {
        let name = file.file_name().unwrap().to_str().unwrap();
        name.split('-').next().unwrap().parse::<u64>().unwrap()
    };
    for file in [&one, &other] {
        let error = by_uuid(&opened.store, uuid(of_file(file))).await.unwrap_err();
        assert!(matches!(error, Error::Damaged { .. }), "{error}");
    }
    // Their uuids are still refused.
    let mut again = events(1_000, 1_000, "a");
    again[0].uuid = sent[0].uuid;
    let refused = apply(&opened.store, batch(2, 0, 1, &again)).await.unwrap_err();
    assert!(matches!(refused, Error::Exists { .. }), "{refused}");
    purge(&opened.store, PROJECT).await.unwrap();
    assert_eq!(scan(&opened.store).await.unwrap(), []);
    assert_eq!(records(&opened.store, "event_time").await, 0);
    assert_eq!(records(&opened.store, "event_segment").await, 0);
}

#[tokio::test]
async fn a_run_is_written_again_when_it_is_damaged_or_missing() {
    let mut opened = Opened::new().await;
    let sent = add_blocks(&opened.store, PROJECT, 12, 200).await;
    let known = known(&sent);
    seal(&opened.store, 200).await;
    let before = Seen::of(&opened.store, &known).await;
    // One run of eight segments.
    assert_eq!(opened.run_files().len(), 1);
    for eighth in 0..=8 {
        let bytes =
            |file: &PathBuf| usize::try_from(std::fs::metadata(file).unwrap().len()).unwrap();
        let file = opened.run_files().into_iter().max_by_key(bytes).unwrap();
        let at = (bytes(&file) * eighth / 8).min(bytes(&file) - 1);
        opened = opened
            .reopen_after(|_| match at {
                0 => std::fs::remove_file(&file).unwrap(),
                at => flip(&file, at),
            })
            .await;
        let mut stored = match stored_uuids(&opened.store, PROJECT, &known).await {
            // Damage that a start does not find.
            Err(Error::Damaged { .. }) => {
                repair_runs(&opened.store).await.unwrap();
                stored_uuids(&opened.store, PROJECT, &known).await.unwrap()
            }
            found => found.unwrap(),
        };
        stored.sort_unstable();
        assert_eq!(stored, before.stored(), "byte {at}");
        let from = position(&opened.store, 2).await.unwrap().offset;
        let mut again = events(10_000, 10_000, "a");
        again[0].uuid = sent[usize::from(at > 0) * 77].uuid;
        let refused = apply(&opened.store, batch(2, from, from + 1, &again)).await.unwrap_err();
        assert!(matches!(refused, Error::Exists { .. }), "byte {at}: {refused}");
    }
}

/// The record of a block is damaged before it is sealed.
#[tokio::test]
async fn a_damaged_block_is_passed_over() {
    use crate::transaction::tests::{overwrite, stored_of};
    let opened = Opened::new().await;
    let store = &opened.store;
    add_blocks(store, PROJECT, 24, 20).await;
    // The third block of the first partition, of five that are closed.
    let (key, mut value) = stored_of(store, "event_block").await.remove(2);
    let at = value.len() - 30;
    value[at] ^= 0xff;
    value.truncate(value.len() - 20);
    overwrite(store, &key, value).await;
    let report = seal(store, 60).await;
    // 1 to 3 cannot be one segment: 1 and 2 are; 4 and 5 wait for a sixth.
    assert_eq!((report.segments, report.events), (4, 40 + 3 * 60));
    assert_eq!(seal(store, 40).await.events, 40 + 3 * 40);
    assert_eq!(records(store, "event_block").await, 4 + 1);
    assert!(scan(store).await.is_err());
}

#[tokio::test]
async fn a_damaged_segment_is_left_out_of_merges() {
    let mut opened = Opened::new().await;
    add_blocks(&opened.store, PROJECT, 24, 20).await;
    seal(&opened.store, 20).await;
    let is_second = |file: &PathBuf| file.to_str().unwrap().contains("/7/0/81-");
    let damaged = opened.segment_files().into_iter().find(is_second).unwrap();
    let content = std::fs::read(&damaged).unwrap();
    opened = opened.reopen_after(|_| flip(&damaged, content.len() / 2)).await;
    let mut merged = 0;
    while let Some(done) = merge_once(&opened.store, 2, 1_000).await {
        assert_eq!(done.segments, 2);
        merged += 1;
    }
    // Of five segments of a partition four become one. In the first one, the neighbours of
    // the damaged segment stay apart.
    assert_eq!(merged, 3 * 3 + 1);
    assert!(opened.store.segment_damage() > 0);
    let left = std::fs::read(&damaged).unwrap();
    assert_eq!(left.len(), content.len());
}
