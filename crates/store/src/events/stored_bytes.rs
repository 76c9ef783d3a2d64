//! The disk space of the stored events of a project: its event segments, as the catalog has
//! them, and the records of blocks that are not sealed.
//!
//! What does not belong here: indexes, persons and groups, and the free space that the
//! engine and the file system keep.

use std::sync::Arc;

use weir_model::ProjectId;

use super::{keys, segments};
use crate::db::Operation;
use crate::transaction::{Entry, IdRange, Transaction};
use crate::{Result, Store};

/// Blocks that are read at a time. Each has a megabyte or two.
const BLOCKS: u32 = 8;

const READ: Operation = Operation::read("bytes of event blocks");

/// Bytes of the stored events of a project.
///
/// # Errors
/// Any failure of the store.
pub async fn stored_bytes(store: &Store, project: ProjectId) -> Result<u64> {
    let sealed = segments::bytes(store, project).await?;
    let (from, to) = (keys::block(project, 0, 0), keys::block(project, u16::MAX, 0));
    let mut rest = Some(store.db.keyspace().await?.range(from, to)?);
    let mut unsealed = 0;
    while let Some(range) = rest {
        let range: Arc<IdRange> = Arc::new(range);
        let work = move |tx: Transaction| {
            let range = Arc::clone(&range);
            async move {
                let (blocks, rest) = tx.scan(&range, BLOCKS).await?;
                let bytes = |Entry { key, value }: &Entry| (key.len() + value.len()) as u64;
                Ok((blocks.iter().map(bytes).sum::<u64>(), rest))
            }
        };
        let (bytes, next) = store.db.transact(READ, (), work).await?;
        unsealed += bytes;
        rest = next;
    }
    Ok(sealed + unsealed)
}
