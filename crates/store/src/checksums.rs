//! Reading the whole database, for `weir check`: RocksDB compares the checksum of a block only
//! when it is read.
//!
//! Keys are enough, because a block has the values too, and the memory is that of some
//! hundred keys.
//!
//! What belongs here: damage of the files of the database. What does not: what its records
//! mean, and files of events (`events::check_files`).

use std::sync::Arc;
use std::time::Duration;

use crate::db::Operation;
use crate::transaction::{IdRange, Transaction};
use crate::{Result, Store};

/// A page may be behind many deleted entries, and on a slow disk.
const PAGE: Operation =
    Operation::read("all entries of the database").within(Duration::from_secs(60));
/// Keys that are read at a time. The values of blocks of events have up to a megabyte each.
const KEYS: u32 = 500;

/// Reads every entry of the database, and returns their number. After an error of the storage
/// the store cannot be used any more.
///
/// # Errors
/// [`crate::Error::Storage`] when a part is damaged or cannot be read.
pub async fn read_all(store: &Store) -> Result<u64> {
    let (mut entries, mut rest) = (0, Some(IdRange::everything()));
    while let Some(range) = rest {
        let range = Arc::new(range);
        let work = move |tx: Transaction| {
            let range = Arc::clone(&range);
            async move { tx.pass(&range, KEYS).await }
        };
        let (passed, after) = store.db.transact(PAGE, (), work).await?;
        entries += passed as u64;
        rest = after;
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};
    use std::sync::atomic::AtomicBool;

    use uuid::Uuid;
    use weir_testservers::until;

    use super::read_all;
    use crate::db::{Failure, Operation};
    use crate::transaction::{Entry, Transaction};
    use crate::{Location, Settings, Store, checkpoint};

    /// Transactions, and entries that each writes: several pages.
    const ROUNDS: u64 = 6;
    const ENTRIES: u64 = 1_000;
    /// Random uuids of a value, which cannot be compressed.
    const UUIDS: usize = 16;
    /// Bytes of a table that has entries of the test alone in its middle.
    const LARGE: u64 = 100_000;

    /// Writes entries that nothing reads.
    async fn add(store: &Store, round: u64) {
        let work = move |tx: Transaction| async move {
            for number in 0..ENTRIES {
                let key = format!("/test {round} {number:08}").into_bytes();
                let value = (0..UUIDS).flat_map(|_| Uuid::new_v4().into_bytes()).collect();
                tx.put(&Entry { key, value }).await?;
            }
            Ok::<(), Failure>(())
        };
        store.db.transact(Operation::write("test"), (), work).await.unwrap();
    }

    /// The largest table of the database, and its length.
    fn largest(data: &Path) -> Option<(PathBuf, u64)> {
        let entries = std::fs::read_dir(data.join("store")).unwrap();
        let tables = entries.map(|entry| entry.unwrap().path());
        let tables = tables.filter(|path| path.extension().is_some_and(|name| name == "sst"));
        // A compaction may have removed it.
        let tables = tables.filter_map(|path| Some((path.clone(), path.metadata().ok()?.len())));
        tables.max_by_key(|(_, bytes)| *bytes)
    }

    #[tokio::test]
    async fn damage_of_what_nothing_else_reads_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let (data, copy) = (directory.path().join("data"), directory.path().join("copy"));
        // Small write buffers, so that tables are written.
        let settings = Settings { write_buffer: 256 << 10, ..Settings::default() };
        let store = Store::open(&Location::Directory(data.clone()), settings).await.unwrap();
        let before = read_all(&store).await.unwrap();
        for round in 0..ROUNDS {
            add(&store, round).await;
        }
        let after = read_all(&store).await.unwrap();
        assert!(after >= before + ROUNDS * ENTRIES, "{before} and {after}");
        until(async || largest(&data).is_some_and(|(_, bytes)| bytes >= LARGE)).await;
        checkpoint(&data, &copy, &AtomicBool::new(false)).await.unwrap();
        store.close().await.unwrap();

        let (table, _) = largest(&copy).unwrap();
        let mut bytes = std::fs::read(&table).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        // The link is to the table of the other store.
        std::fs::remove_file(&table).unwrap();
        std::fs::write(&table, bytes).unwrap();
        let copied = Store::open(&Location::Directory(copy), Settings::default()).await.unwrap();
        let error = read_all(&copied).await.unwrap_err().to_string();
        assert!(error.contains("checksum mismatch"), "{error}");
    }
}
