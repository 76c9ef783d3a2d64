//! The commit of a transaction: its writes, and the check of what it has read for update.
//!
//! PostgreSQL fails a statement with a serialization failure (40001) in these cases, all of
//! them since the snapshot, which the statements of a commit rely on:
//! - `SELECT … FOR UPDATE` or `FOR SHARE` of a row that was changed or deleted;
//! - `INSERT … ON CONFLICT` of a key that was inserted, also with `DO NOTHING`.
//!
//! It does not fail `INSERT … ON CONFLICT` of a key that the snapshot has and that was
//! deleted, so the rows are locked first. Nor does it fail `DELETE` of a key that the
//! snapshot does not have and that was inserted, so such a key is inserted before it is
//! deleted. The same is done with a missing key that was read for update.
//!
//! Of transactions that write one key, the first to commit has an effect, and the others are
//! repeated, as in the engine's own storages. One case differs: a key that is missing in the
//! snapshot, and that others have inserted and deleted again since, is no conflict.

use std::collections::BTreeMap;
use std::time::Duration;

use surrealdb_kvs::Error as StorageError;
use tokio::time::timeout;
use tokio_postgres::{Client, Error, Statement};

use crate::buffer::Write;
use crate::error::{lost, of_commit, of_statement, unknown};
use crate::pool::{Lease, Pool};
use crate::statements::{BEGIN_WRITE, COMMIT};
use crate::transaction::{Snapshot, State};

/// How long a commit may wait for the server, and for its standbys. Then the connection is
/// closed, and it is unknown whether the commit has an effect.
const LIMIT: Duration = Duration::from_secs(120);
/// Upper bound of bytes in the statements that are sent together, as long as there are
/// several keys.
const BATCH: usize = 4 << 20;

/// Bytes of a key in a statement besides its own.
const KEY: usize = 16;

/// Statements that are sent together.
#[derive(Default)]
struct Batch {
    /// Keys that are written, and that the snapshot may have.
    locked: Vec<Vec<u8>>,
    /// Keys that were read for update, and that the snapshot has.
    shared: Vec<Vec<u8>>,
    /// Keys that must not have been inserted.
    held: Vec<Vec<u8>>,
    set: Vec<Vec<u8>>,
    values: Vec<Vec<u8>>,
    deleted: Vec<Vec<u8>>,
    bytes: usize,
}

/// The end of an attempt to commit.
enum Outcome {
    Committed,
    /// The transaction has no effect. It has ended, unless the connection broke.
    Refused(StorageError),
    /// The same, and the transaction is still open.
    Failed(StorageError),
    /// The connection must not be used any more.
    Unknown(StorageError),
}

/// Commits a transaction.
///
/// The commit is a task of its own. If its caller is dropped, it ends all the same, and its
/// connection counts as used until then. Otherwise a server whose standby does not answer
/// would get another connection for each attempt.
pub(crate) async fn commit(pool: &Pool, state: State) -> Result<(), StorageError> {
    let (lease, begins) = match state.snapshot {
        Snapshot::Lost => return Err(lost()),
        Snapshot::Open(lease) => (Some(lease), false),
        Snapshot::None => (None, true),
    };
    let batches = batches(state.buffer.into_writes(), state.tracked, begins);
    if batches.is_empty() {
        if let Some(lease) = lease {
            lease.roll_back();
        }
        return Ok(());
    }
    let lease = match lease {
        Some(lease) => lease,
        None => pool.lease().await?,
    };
    match tokio::spawn(end(lease, batches, begins)).await {
        Ok(done) => done,
        Err(error) => Err(unknown(&format!("the task of the commit ended early: {error}"))),
    }
}

/// Sends a commit, and returns its connection if that can be used again.
async fn end(lease: Lease, batches: Vec<Batch>, begins: bool) -> Result<(), StorageError> {
    let sent = timeout(LIMIT, send_all(&lease, &batches, begins)).await;
    let outcome = sent.unwrap_or_else(|_| Outcome::Unknown(unknown("no answer in time")));
    match outcome {
        Outcome::Committed => {
            lease.release();
            Ok(())
        }
        Outcome::Refused(error) => {
            lease.release();
            Err(error)
        }
        Outcome::Failed(error) => {
            lease.roll_back();
            Err(error)
        }
        Outcome::Unknown(error) => Err(error),
    }
}

async fn send_all(lease: &Lease, batches: &[Batch], begins: bool) -> Outcome {
    let warnings = lease.warnings();
    if begins {
        // Awaited: without a transaction each statement would be a commit of its own.
        if let Err(error) = lease.client.batch_execute(BEGIN_WRITE).await {
            return Outcome::Failed(of_statement(&error));
        }
        if lease.warnings() != warnings {
            return Outcome::Failed(lost());
        }
    }
    for (at, batch) in batches.iter().enumerate() {
        let outcome = send(lease, batch, at + 1 == batches.len()).await;
        if !matches!(outcome, Outcome::Committed) {
            return outcome;
        }
    }
    // A commit that did not wait for its standby says so in a warning, and in no error.
    if lease.warnings() != warnings {
        return Outcome::Unknown(unknown("the server has sent a warning"));
    }
    Outcome::Committed
}

/// Sends a batch, with `COMMIT` if it is the last one, without waiting in between. After a
/// statement that fails, the server refuses the next ones, and rolls back instead of
/// committing.
async fn send(lease: &Lease, batch: &Batch, commits: bool) -> Outcome {
    let (client, all) = (&lease.client, &lease.statements);
    // Polled in this order, and each is sent by its first poll.
    let (locked, shared, held, set, deleted, committed) = futures::join!(
        run(client, &all.lock, &batch.locked),
        run(client, &all.share, &batch.shared),
        run(client, &all.hold, &batch.held),
        write(client, &all.set, batch),
        run(client, &all.delete, &batch.deleted),
        end_if(client, commits),
    );
    let statements = [locked, shared, held, set, deleted];
    match (statements.into_iter().find_map(Result::err), committed) {
        (None, Ok(())) => Outcome::Committed,
        (None, Err(error)) => match of_commit(&error) {
            conflict @ StorageError::TransactionConflict(_) => Outcome::Refused(conflict),
            other => Outcome::Unknown(other),
        },
        (Some(error), _) if error.as_db_error().is_some() => {
            let error = of_statement(&error);
            if commits { Outcome::Refused(error) } else { Outcome::Failed(error) }
        }
        // The server may have got all of it.
        (Some(error), _) if commits => Outcome::Unknown(of_commit(&error)),
        (Some(error), _) => Outcome::Failed(of_statement(&error)),
    }
}

async fn end_if(client: &Client, commits: bool) -> Result<(), Error> {
    if commits { client.batch_execute(COMMIT).await } else { Ok(()) }
}

async fn run(client: &Client, statement: &Statement, keys: &[Vec<u8>]) -> Result<(), Error> {
    if keys.is_empty() {
        return Ok(());
    }
    client.execute(statement, &[&keys]).await.map(drop)
}

async fn write(client: &Client, statement: &Statement, batch: &Batch) -> Result<(), Error> {
    if batch.set.is_empty() {
        return Ok(());
    }
    client.execute(statement, &[&batch.set, &batch.values]).await.map(drop)
}

/// The statements of a commit. The keys are in order, so that commits rarely wait for each
/// other in a circle; the server ends such a circle with an error (40P01).
///
/// `begins`: the transaction has no snapshot yet. It has seen nothing that could have been
/// changed, so it locks and holds nothing.
fn batches(
    writes: impl Iterator<Item = Write>,
    mut tracked: BTreeMap<Vec<u8>, bool>,
    begins: bool,
) -> Vec<Batch> {
    let mut all: Vec<Batch> = Vec::new();
    let mut batch = Batch::default();
    for (key, value) in writes {
        tracked.remove(&key);
        batch.bytes += KEY + 3 * key.len() + value.as_ref().map_or(0, Vec::len);
        if !begins {
            batch.locked.push(key.clone());
        }
        match value {
            Some(value) => {
                batch.set.push(key);
                batch.values.push(value);
            }
            None => {
                if !begins {
                    batch.held.push(key.clone());
                }
                batch.deleted.push(key);
            }
        }
        if batch.bytes >= BATCH {
            all.push(std::mem::take(&mut batch));
        }
    }
    for (key, is_there) in tracked {
        batch.bytes += KEY + 2 * key.len();
        if is_there {
            batch.shared.push(key);
        } else {
            batch.held.push(key.clone());
            batch.deleted.push(key);
        }
        if batch.bytes >= BATCH {
            all.push(std::mem::take(&mut batch));
        }
    }
    if batch.bytes > 0 {
        all.push(batch);
    }
    all
}
