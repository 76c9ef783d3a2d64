//! The tables that other engines read have the segments of the catalog.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use weir_model::{ProjectId, Timestamp};
use weir_segments::delta::Table;
use weir_segments::{ColumnType, TypedColumn};

use super::super::support::PROJECT;
use super::removing::add_at;
use super::support::{NOW, Opened, add_blocks, compact, now, seal};
use crate::events::{drop_older, purge};
use crate::transaction::tests::stored_of;

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

    /// The commit of a version.
    fn commit(&self, version: u64) -> PathBuf {
        self.table(PROJECT).join(format!("_delta_log/{version:020}.json"))
    }
}

#[tokio::test]
async fn the_table_has_what_was_sealed_merged_and_removed() {
    const DAY: i64 = 86_400_000_000;
    let mut opened = Opened::new().await;
    for (number, day) in (0..).zip([1, 2, 3, 100, 101, 200]) {
        add_at(&opened, 0, number * 10 + 1, day * DAY).await;
    }
    assert_eq!(seal(&opened.store, 10).await.segments, 5);
    assert_eq!((opened.listed().len(), opened.version()), (5, Some(4)));
    assert_eq!(compact(&opened.store, 2, 1_000).await.unwrap().segments, 2);
    assert_eq!((opened.listed().len(), opened.version()), (4, Some(5)));
    let merge = fs::read_to_string(opened.commit(5)).unwrap();
    assert!(merge.contains("OPTIMIZE") && !merge.contains("\"dataChange\":true"), "{merge}");
    let before = Timestamp::from_micros(50 * DAY);
    assert_eq!(drop_older(&opened.store, PROJECT, before, now()).await.unwrap().segments, 2);
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
    assert_eq!(drop_older(&opened.store, PROJECT, before, now()).await.unwrap().segments, 3);
    assert_eq!((opened.listed().len(), opened.version()), (0, Some(8)));
}
