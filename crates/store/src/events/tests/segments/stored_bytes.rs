//! The disk space of the events of a project.

use super::super::support::PROJECT;
use super::support::{OTHER, Opened, add_blocks, seal};
use crate::events::stored_bytes;

#[tokio::test]
async fn the_bytes_of_blocks_and_of_segments_are_counted() {
    let opened = Opened::new().await;
    let bytes_of = async |project| stored_bytes(&opened.store, project).await.unwrap();
    assert_eq!(bytes_of(PROJECT).await, 0);
    add_blocks(&opened.store, PROJECT, 8, 20).await;
    let few = bytes_of(PROJECT).await;
    assert!(few > 0);
    // More blocks than one read takes.
    add_blocks(&opened.store, PROJECT, 72, 20).await;
    let unsealed = bytes_of(PROJECT).await;
    assert!(unsealed > 5 * few, "{few} {unsealed}");
    seal(&opened.store, 20).await;
    let files = opened.segment_files();
    let files = files.iter().map(|file| file.metadata().unwrap().len()).sum::<u64>();
    let sealed = bytes_of(PROJECT).await;
    assert!(files > 0 && sealed >= files, "{files} {sealed}");
    assert_eq!(bytes_of(OTHER).await, 0);
}
