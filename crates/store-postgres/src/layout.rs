//! The table, its version, and the data directory that it belongs to.
//!
//! The log and the files of events are in a data directory. The positions in the table are
//! those of that log. So a database is used with one data directory only, and the lock of
//! that directory keeps other processes out.

use std::time::Duration;

use tokio::time::timeout;
use tokio_postgres::{Client, Error};
use uuid::Uuid;

use crate::connection::NewConnection;
use crate::error::{OpenError, described};

/// The newest layout of the table.
const LAYOUT: i32 = 1;
/// The timeout for all statements.
const LIMIT: Duration = Duration::from_secs(60);

/// Begins a transaction that no other process is in.
const BEGIN: &str = "BEGIN; SELECT pg_advisory_xact_lock(x'77656972'::bigint)";

/// Values are compressed already, or small. Rows that are written again find room on their
/// page. Deleted rows are removed after some thousand, not after a fifth of a large table.
const CREATE: &str = "\
    CREATE SCHEMA IF NOT EXISTS weir; \
    CREATE TABLE weir.kv (key bytea PRIMARY KEY, value bytea NOT NULL) WITH ( \
        fillfactor = 80, \
        autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_scale_factor = 0.01, \
        autovacuum_analyze_threshold = 5000, autovacuum_analyze_scale_factor = 0.05, \
        toast.autovacuum_vacuum_threshold = 5000, \
        toast.autovacuum_vacuum_scale_factor = 0.01); \
    ALTER TABLE weir.kv ALTER COLUMN value SET STORAGE EXTERNAL; \
    CREATE TABLE weir.layout (version integer NOT NULL, directory text NOT NULL)";

/// Creates the table if it is missing, and checks that it is for this program and this data
/// directory.
pub(crate) async fn settle(connection: &NewConnection, directory: Uuid) -> Result<(), OpenError> {
    let before = connection.warnings();
    let settled = timeout(LIMIT, create_or_read(&connection.client, directory)).await;
    let found = settled
        .map_err(|_| OpenError::Statement("no answer in time".to_owned()))?
        .map_err(|error| OpenError::Statement(described(&error)))?;
    let Some((version, owner)) = found else {
        return Err(OpenError::Statement("the table weir.layout has no row".to_owned()));
    };
    if version > LAYOUT {
        return Err(OpenError::NewerLayout { found: version, known: LAYOUT });
    }
    if owner != directory.to_string() {
        return Err(OpenError::OtherDirectory);
    }
    if connection.warnings() != before {
        return Err(OpenError::Unconfirmed);
    }
    Ok(())
}

/// The version of the table and the id of its data directory. `None`: there is no row.
async fn create_or_read(client: &Client, directory: Uuid) -> Result<Option<(i32, String)>, Error> {
    client.batch_execute(BEGIN).await?;
    let exists = client.query("SELECT to_regclass('weir.layout') IS NOT NULL", &[]).await?;
    let exists = exists.first().map(|row| row.try_get::<_, bool>(0)).transpose()?;
    if exists != Some(true) {
        client.batch_execute(CREATE).await?;
        let directory = directory.to_string();
        let insert = "INSERT INTO weir.layout (version, directory) VALUES ($1, $2)";
        client.execute(insert, &[&LAYOUT, &directory]).await?;
    }
    let rows = client.query("SELECT version, directory FROM weir.layout", &[]).await?;
    let found = match rows.first() {
        Some(row) => Some((row.try_get(0)?, row.try_get(1)?)),
        None => None,
    };
    client.batch_execute("COMMIT").await?;
    Ok(found)
}
