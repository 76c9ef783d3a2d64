//! A process that ends between two steps leaves nothing that the next start does not put in
//! order.

use super::super::support::{PROJECT, batch, events, records};
use super::reading::known;
use super::seen::Seen;
use super::support::{Opened, add_blocks, files, merge_once, seal};
use crate::Error;
use crate::bind::bind;
use crate::db::Statement;
use crate::events::{apply, position};
use crate::transaction::tests::{overwrite, stored_of};

#[tokio::test]
async fn files_that_the_catalog_does_not_know_are_removed_at_the_start() {
    let mut opened = Opened::new().await;
    let sent = add_blocks(&opened.store, PROJECT, 12, 20).await;
    let known = known(&sent);
    seal(&opened.store, 20).await;
    let before = Seen::of(&opened.store, &known).await;
    let own = opened.files();
    let random = "0123456789abcdef0123456789abcdef";
    let strange = ["notes.txt", "7/0/notes.parquet", "uuids/notes.run"];
    opened = opened
        .reopen_after(|directory| {
            let (segment, run) = (&own[0], own.last().unwrap());
            for name in
                [format!("7/0/1-20-{random}.parquet"), format!("7/0/1-20-{random}.parquet.tmp")]
            {
                std::fs::copy(segment, directory.join(name)).unwrap();
            }
            std::fs::copy(run, directory.join(format!("uuids/{random}.run"))).unwrap();
            std::fs::write(directory.join(format!("uuids/{random}.run.tmp")), b"half").unwrap();
            for name in strange {
                std::fs::write(directory.join(name), b"not ours").unwrap();
            }
        })
        .await;
    let mut expected = own;
    expected.extend(strange.map(|name| opened.directory.path().join("segments").join(name)));
    expected.sort();
    assert_eq!(opened.files(), expected);
    before.assert_same(&Seen::of(&opened.store, &known).await);
    assert_eq!(opened.store.segment_damage(), 0);
}

/// The run is in the catalog, and the index still has some of its uuids.
#[tokio::test]
async fn the_index_is_cleared_after_a_crash() {
    let mut opened = Opened::new().await;
    let sent = add_blocks(&opened.store, PROJECT, 12, 20).await;
    let known = known(&sent);
    let entries = stored_of(&opened.store, "event_uuid").await;
    seal(&opened.store, 20).await;
    let before = Seen::of(&opened.store, &known).await;
    assert_eq!(records(&opened.store, "event_uuid").await, 80);
    for (key, value) in entries.into_iter().step_by(3) {
        overwrite(&opened.store, &key, value).await;
    }
    const PENDING: Statement =
        Statement::write("test", "UPDATE event_uuid_run SET pending = true RETURN NONE;");
    opened.store.db.run(PENDING, bind! {}).await.unwrap();
    assert!(records(&opened.store, "event_uuid").await > 130);
    opened = opened.reopen().await;
    // Each uuid counts once, wherever it is.
    before.assert_same(&Seen::of(&opened.store, &known).await);
    let from = position(&opened.store, 2).await.unwrap().offset;
    for event in [&sent[0], &sent[1], &sent[2]] {
        let mut again = events(1_000, 1_000, "a");
        again[0].uuid = event.uuid;
        let refused = apply(&opened.store, batch(2, from, from + 1, &again)).await.unwrap_err();
        assert!(matches!(refused, Error::Exists { .. }), "{refused}");
    }
    assert_eq!(seal(&opened.store, 20).await.segments, 0);
    assert_eq!(records(&opened.store, "event_uuid").await, 80);
    before.assert_same(&Seen::of(&opened.store, &known).await);
    opened = opened.reopen().await;
    before.assert_same(&Seen::of(&opened.store, &known).await);
}

/// The merged segment is in the catalog, and the old files are still there.
#[tokio::test]
async fn old_files_of_a_merge_are_removed_at_the_start() {
    let mut opened = Opened::new().await;
    let sent = add_blocks(&opened.store, PROJECT, 12, 20).await;
    let known = known(&sent);
    seal(&opened.store, 20).await;
    let before = Seen::of(&opened.store, &known).await;
    let old: Vec<_> =
        opened.files().into_iter().map(|file| (std::fs::read(&file).unwrap(), file)).collect();
    while merge_once(&opened.store, 2, 1_000).await.is_some() {}
    let new = opened.files();
    opened = opened
        .reopen_after(|directory| {
            for (content, file) in &old {
                std::fs::write(file, content).unwrap();
            }
            assert!(files(directory).len() > new.len());
        })
        .await;
    assert_eq!(opened.files(), new);
    before.assert_same(&Seen::of(&opened.store, &known).await);
}
