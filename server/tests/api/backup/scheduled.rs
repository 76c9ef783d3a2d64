//! Backups that a server makes, and the page that shows the last one.

use std::collections::BTreeSet;

use weir_testkit::until;

use super::{Instance, SEALED, page, session, stop};
use crate::process::Serving;

#[tokio::test(flavor = "multi_thread")]
async fn a_server_makes_backups_and_the_newest_stay() {
    let instance = Instance::new().await;
    let watched = instance.serve_with_backups(&[]).await;
    let caller = watched.serving.caller.clone();
    instance.send(&caller, 0..SEALED).await;
    instance.numbers(&caller, SEALED).await;
    let mut seen = BTreeSet::new();
    let before = instance.names();
    until(async || {
        seen.extend(instance.names());
        // More than those that stay were made after the last event.
        seen.difference(&before).count() > 3
    })
    .await;
    assert!(instance.names().len() <= 3, "the newest two, and one that was just stored");
    // The note of the last one is read each second.
    until(async || watched.value("weir_backup_last_success_seconds").await > 1_700_000_000.0).await;
    assert_eq!(watched.value("weir_backup_interval_seconds").await.to_bits(), 1_f64.to_bits());
    assert_eq!(watched.value("weir_backup_failures_total").await.to_bits(), 0_f64.to_bits());
    assert!(watched.value("weir_backup_bytes").await > 0.0);
    let page = watched.page().await;
    for part in ["Last backup", " ago", "The newest 2 stay.", "Its size"] {
        assert!(page.contains(part), "{part} in {page}");
    }
    assert!(!page.contains("Last attempt"), "{page}");
    stop(watched.serving).await;
    assert!(!instance.data().join(".weir-backup").exists(), "its links were removed");
    let names = instance.names();
    assert_eq!(names.len(), 2, "{names:?}");
    let checked = instance.run(&["check", "backups"]).await;
    assert!(checked.ok, "{}{}", checked.out, checked.err);
    for name in names {
        let folder = instance.restore(&name).await;
        let restored = Serving::start(folder.path()).await;
        assert_eq!(instance.numbers(&restored.caller, SEALED).await.len(), 100);
        stop(restored).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_backup_is_shown_and_made_again() {
    let instance = Instance::new().await;
    let letter = instance.backups().join("letter");
    std::fs::create_dir(instance.backups()).unwrap();
    std::fs::write(&letter, "").unwrap();
    let watched = instance.serve_with_backups(&[]).await;
    until(async || watched.value("weir_backup_failures_total").await > 1.0).await;
    let shown = watched.page().await;
    assert!(shown.contains("has other files than backups"), "{shown}");
    assert!(instance.names().is_empty() && letter.exists());
    std::fs::remove_file(&letter).unwrap();
    until(async || !instance.names().is_empty()).await;
    until(async || !watched.page().await.contains("Last attempt")).await;
    stop(watched.serving).await;

    // The disk of the backups is not mounted: no new directory takes their place.
    let moved = instance.folder.path().join("moved");
    std::fs::rename(instance.backups(), &moved).unwrap();
    let watched = instance.serve_with_backups(&[]).await;
    until(async || watched.page().await.contains("its disk may not be mounted")).await;
    stop(watched.serving).await;
    assert!(!instance.backups().exists());
    std::fs::rename(&moved, instance.backups()).unwrap();
    let before = instance.names();
    let watched = instance.serve_with_backups(&[]).await;
    until(async || instance.names() != before).await;
    stop(watched.serving).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_by_hand_is_shown() {
    let instance = Instance::new().await;
    let serving = instance.serve().await;
    let session = session(&serving).await;
    let shown = page(&serving, &session).await;
    assert!(shown.contains("None known") && shown.contains("Set up backups"), "{shown}");
    instance.back_up().await;
    let directory = instance.backups().display().to_string();
    until(async || page(&serving, &session).await.contains(&directory)).await;
    stop(serving).await;
}
