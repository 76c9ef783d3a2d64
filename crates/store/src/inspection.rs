//! What a data directory holds, read without bringing its schema up to date: for commands
//! that say what is there, or what an upgrade would do.
//!
//! What belongs here: the version of the schema, and counts of records. What does not: which
//! migrations there are (`migrations`), and copies of files of a running server
//! (`checkpoint`).

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use surrealdb::types::SurrealValue;

use crate::bind::bind;
use crate::db::{Db, Statement};
use crate::engine::BareEngine;
use crate::migrations::{self, StoredSchema};
use crate::{Error, Result};

/// Time for counting the records of a table.
const COUNT_TIME: Duration = Duration::from_secs(20);

/// Lists tables with the statements that count their records.
macro_rules! tables {
    ($($name:literal)+) => {
        &[$((
            $name,
            Statement::read(
                concat!("records of ", $name),
                concat!("SELECT count() AS records FROM `", $name, "` GROUP ALL;"),
            )
            .within(COUNT_TIME),
        )),+]
    };
}

/// The tables that are counted. The engine counts keys and reads no records. Those of events
/// and uuids count blocks and files.
const TABLES: &[(&str, Statement)] = tables! {
    "user" "passkey" "session" "throttle" "organization" "membership" "invite" "domain" "role"
    "project" "api_key" "plugin" "plugin_config" "batch_export" "batch_export_run"
    "batch_export_backfill" "activity" "mail" "person" "event_group" "event_block"
    "event_segment" "event_uuid_run" "affected_block"
};

// One small row per project and partition.
const HEADS: Statement = Statement::read("events by partition", "SELECT * FROM event_head;");

#[derive(SurrealValue)]
struct Counted {
    records: i64,
}

#[derive(SurrealValue)]
struct HeadCount {
    count: i64,
}

/// What a data directory holds.
#[derive(Debug)]
pub struct Inspection {
    /// The schema. An error says why this program refuses it.
    pub schema: Result<StoredSchema>,
    /// Number of stored events.
    pub events: Result<u64>,
    /// Number of records by table, of fewer tables if the process is ending. An error: the
    /// schema does not have the table, or counting takes too long.
    pub tables: Vec<(&'static str, Result<u64>)>,
}

/// Reads what a data directory holds. No other process may use it, as with a checkpoint.
/// The schema stays as it is. Opening the engine may change its files. `is_stopped`: the
/// process is ending.
///
/// # Errors
/// [`Error::InUse`], [`Error::Directory`] or [`Error::Open`].
pub async fn inspect(data: &Path, is_stopped: &AtomicBool) -> Result<Inspection> {
    let engine = BareEngine::open(data).await?;
    let schema = migrations::compare(&engine.db).await;
    let events = count_events(&engine.db).await;
    let mut tables = Vec::with_capacity(TABLES.len());
    for (name, statement) in TABLES {
        if is_stopped.load(Ordering::Acquire) {
            break;
        }
        tables.push((*name, count(&engine.db, *statement).await));
    }
    engine.close_at_end().await?;
    Ok(Inspection { schema, events, tables })
}

/// Reads the schema of a data directory that no other process uses. The schema stays as it
/// is. Opening the engine may change its files.
///
/// # Errors
/// [`Error::NewerSchema`] and [`Error::ChangedMigration`] when this program refuses the data;
/// otherwise as [`inspect`].
pub async fn stored_schema(data: &Path) -> Result<StoredSchema> {
    let engine = BareEngine::open(data).await?;
    let schema = migrations::compare(&engine.db).await;
    engine.close_at_end().await?;
    schema
}

async fn count(db: &Db, statement: Statement) -> Result<u64> {
    let counted = db.run(statement, bind! {}).await?.row::<Counted>(0)?;
    // A table without records has no row.
    let records = counted.map_or(0, |counted| counted.records);
    u64::try_from(records)
        .map_err(|error| Error::Shape { statement: statement.name, detail: error.to_string() })
}

async fn count_events(db: &Db) -> Result<u64> {
    let heads: Vec<HeadCount> = db.run(HEADS, bind! {}).await?.rows(0)?;
    Ok(heads.iter().filter_map(|head| u64::try_from(head.count).ok()).sum())
}

#[cfg(test)]
mod tests {
    use weir_testservers::until;

    use super::*;
    use crate::{Location, Settings, Store, schema_version};

    const OLDER: Statement = Statement::write(
        "an older data directory",
        "DELETE migration WHERE record::id(id) > 24;
         REMOVE TABLE passkey;
         CREATE project:1 SET number = 1; CREATE project:2 SET number = 2;
         CREATE event_head:1 SET count = 7; CREATE event_head:2 SET count = 4;",
    );

    /// As [`inspect`]. The engine releases its files in a task of its own, some time after the
    /// last handle is dropped.
    async fn inspect_released(data: &Path, is_stopped: bool) -> Inspection {
        until(async || match inspect(data, &AtomicBool::new(is_stopped)).await {
            Err(Error::Open { .. }) => None,
            inspected => Some(inspected.unwrap()),
        })
        .await
    }

    #[tokio::test]
    async fn an_older_data_directory_is_read_as_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let location = Location::Directory(directory.path().to_owned());
        let store = Store::open(&location, Settings::default()).await.unwrap();
        store.db.run(OLDER, bind! {}).await.unwrap();
        store.close().await.unwrap();
        drop(store);
        let found = inspect_released(directory.path(), false).await;
        let schema = found.schema.unwrap();
        assert_eq!((schema.version, schema.missing[0].name), (24, "passkeys"));
        assert_eq!(schema.missing.last().unwrap().version, schema_version());
        assert_eq!(found.events.unwrap(), 11);
        let records = |table: &str| {
            let counted = found.tables.iter().find(|(name, _)| *name == table).unwrap();
            counted.1.as_ref().ok().copied()
        };
        assert_eq!((records("project"), records("user")), (Some(2), Some(0)));
        assert_eq!(records("passkey"), None, "this schema does not have the table");
    }

    #[tokio::test]
    async fn a_newer_data_directory_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let location = Location::Directory(directory.path().to_owned());
        let store = Store::open(&location, Settings::default()).await.unwrap();
        let newer = "CREATE migration:99 SET checksum = 'of a newer program';";
        store.db.run(Statement::write("a newer data directory", newer), bind! {}).await.unwrap();
        store.close().await.unwrap();
        drop(store);
        // What is counted can be read all the same.
        let found = inspect_released(directory.path(), true).await;
        assert!(found.events.is_ok());
        assert!(found.tables.is_empty(), "the process is ending");
        let refused = found.schema.unwrap_err();
        assert!(matches!(refused, Error::NewerSchema { found: 99, .. }), "{refused}");
        assert!(refused.to_string().contains("start the newer program"), "{refused}");
    }

    #[tokio::test]
    async fn a_directory_that_is_in_use_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let location = Location::Directory(directory.path().to_owned());
        let store = Store::open(&location, Settings::default()).await.unwrap();
        let refused = stored_schema(directory.path()).await.unwrap_err();
        assert!(matches!(refused, Error::InUse { .. }), "{refused}");
        store.close().await.unwrap();
    }
}
