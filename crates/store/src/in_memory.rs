//! Databases in memory, which only tests open.
//!
//! A process opens hundreds of them, and the migrations would take half of the time of most
//! tests. So the first one applies the migrations, and the others begin with a copy of it.

use std::sync::OnceLock;

use surrealdb_core::kvs::Datastore;
use surrealdb_kvs::{Key, TransactionType};

use crate::transaction::IdRange;

/// Keys and values of a database after the migrations.
static MIGRATED: OnceLock<Vec<(Vec<u8>, Vec<u8>)>> = OnceLock::new();

/// Fills an empty database with the copy, if there is one.
///
/// # Errors
/// Those of the engine.
pub(crate) async fn fill(datastore: &Datastore) -> anyhow::Result<()> {
    let Some(rows) = MIGRATED.get() else { return Ok(()) };
    let tx = datastore.transaction(TransactionType::Write).await?;
    for (key, value) in rows {
        tx.set(Key::from(key.clone()), value).await?;
    }
    tx.commit().await
}

/// Keeps a copy of a database that has just been migrated, unless there is one.
///
/// # Errors
/// Those of the engine.
pub(crate) async fn keep(datastore: &Datastore) -> anyhow::Result<()> {
    if MIGRATED.get().is_some() {
        return Ok(());
    }
    let tx = datastore.transaction(TransactionType::Read).await?;
    let rows = tx.scan_raw(&IdRange::everything(), u32::MAX, 0, None).await;
    tx.cancel().await?;
    // Another test may have been faster.
    let _ = MIGRATED.set(rows?);
    Ok(())
}
