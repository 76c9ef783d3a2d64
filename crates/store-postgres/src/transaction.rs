//! A transaction: reads on the snapshot of a connection, merged with its own writes.
//!
//! A transaction takes a connection and its snapshot with its first read, and not when it
//! begins. So `BEGIN` and the first read are one exchange with the server. A transaction that
//! only writes takes them with its commit.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::join;
use surrealdb_kvs::api::{BoxFut, GetMultiResult, KeysResult, ScanResult, Transactable};
use surrealdb_kvs::{Direction, Error, Key, KeyRange, Result, Val};
use tokio::sync::{Mutex, MutexGuard};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::buffer::WriteBuffer;
use crate::commit;
use crate::connection::Chosen;
use crate::error::{lost, of_statement};
use crate::pool::{Lease, Pool};
use crate::scan::ScanRequest;
use crate::statements::{BEGIN_READ, BEGIN_WRITE};

/// Longest key, bytes. The index of the table takes no longer ones.
const KEY_MAX: usize = 2600;
/// Longest value, bytes. A statement with a longer one may not be sent, and then the others
/// of its commit must not be sent either.
const VALUE_MAX: usize = 256 << 20;

/// A transaction of the engine.
pub(crate) struct PostgresTransaction {
    pool: Pool,
    is_write: bool,
    is_done: AtomicBool,
    state: Mutex<State>,
}

/// What a transaction has read and written.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) snapshot: Snapshot,
    pub(crate) buffer: WriteBuffer,
    /// The keys that were read for update, and whether the snapshot has them.
    pub(crate) tracked: BTreeMap<Vec<u8>, bool>,
}

/// Where a transaction reads.
#[derive(Default)]
pub(crate) enum Snapshot {
    /// It has read nothing.
    #[default]
    None,
    /// On this connection, after a statement that was answered.
    Open(Lease),
    /// The connection broke, or a caller did not wait for an answer on it.
    Lost,
}

impl PostgresTransaction {
    pub(crate) fn new(pool: Pool, is_write: bool) -> Self {
        Self { pool, is_write, is_done: AtomicBool::new(false), state: Mutex::default() }
    }

    /// The state of an open transaction, to read.
    async fn to_read(&self, version: Option<u64>) -> Result<MutexGuard<'_, State>> {
        if version.is_some() {
            return Err(Error::UnsupportedVersionedQueries);
        }
        if self.closed() {
            return Err(Error::TransactionFinished);
        }
        Ok(self.state.lock().await)
    }

    /// The state of an open transaction, to write a key and a value of this length.
    async fn to_write(&self, key: &[u8], value: usize) -> Result<MutexGuard<'_, State>> {
        if self.closed() {
            return Err(Error::TransactionFinished);
        }
        if !self.is_write {
            return Err(Error::TransactionReadonly);
        }
        if key.len() > KEY_MAX {
            return Err(Error::TransactionKeyTooLarge);
        }
        if value > VALUE_MAX {
            return Err(Error::TransactionTooLarge);
        }
        Ok(self.state.lock().await)
    }

    /// Runs a statement that reads on the snapshot.
    ///
    /// The snapshot is lost while the statement runs. So it stays lost if the caller does not
    /// wait for the answer, and its connection is closed.
    pub(crate) async fn rows(
        &self,
        state: &mut State,
        chosen: Chosen,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>> {
        let (lease, rows) = match std::mem::replace(&mut state.snapshot, Snapshot::Lost) {
            Snapshot::Open(lease) => {
                let rows = lease.client.query(chosen(&lease.statements), parameters).await;
                (lease, rows)
            }
            Snapshot::None => {
                let lease = match self.pool.lease().await {
                    Ok(lease) => lease,
                    Err(error) => {
                        state.snapshot = Snapshot::None;
                        return Err(error);
                    }
                };
                let begin = if self.is_write { BEGIN_WRITE } else { BEGIN_READ };
                let warnings = lease.warnings();
                let (begun, rows) = join(
                    lease.client.batch_execute(begin),
                    lease.client.query(chosen(&lease.statements), parameters),
                )
                .await;
                // A transaction of before is still open.
                if lease.warnings() != warnings {
                    return Err(lost());
                }
                let rows = begun.and(rows);
                (lease, rows)
            }
            Snapshot::Lost => return Err(lost()),
        };
        match rows {
            Ok(rows) => {
                state.snapshot = Snapshot::Open(lease);
                Ok(rows)
            }
            Err(error) => Err(of_statement(&error)),
        }
    }

    /// The value of a key of the snapshot.
    async fn stored(&self, state: &mut State, key: &[u8]) -> Result<Option<Val>> {
        let rows = self.rows(state, |all| &all.get, &[&key]).await?;
        rows.first().map(|row| column(row, 0)).transpose()
    }

    /// The value of a key, as this transaction sees it.
    async fn seen(&self, state: &mut State, key: &[u8]) -> Result<Option<Val>> {
        match state.buffer.get(key) {
            Some(written) => Ok(written.map(<[u8]>::to_vec)),
            None => self.stored(state, key).await,
        }
    }

    /// Writes a key or removes it, if it has this value.
    async fn change(
        &self,
        key: Key<'_>,
        value: Option<Val>,
        expected: Option<&[u8]>,
    ) -> Result<()> {
        let length = value.as_ref().map_or(0, Vec::len);
        let mut state = self.to_write(&key, length).await?;
        if self.seen(&mut state, &key).await?.as_deref() != expected {
            return Err(Error::TransactionConditionNotMet);
        }
        state.buffer.write(key.into_vec(), value);
        Ok(())
    }

    /// Reads keys, with their values if these are requested.
    async fn scanned(
        &self,
        range: KeyRange<'_>,
        version: Option<u64>,
        request: ScanRequest,
    ) -> Result<Vec<(Vec<u8>, Val)>> {
        let mut state = self.to_read(version).await?;
        self.scan_range(&mut state, range, request).await
    }
}

/// A column of a row.
pub(crate) fn column<'a, T: tokio_postgres::types::FromSql<'a>>(
    row: &'a Row,
    at: usize,
) -> Result<T> {
    row.try_get(at).map_err(|error| of_statement(&error))
}

fn keys_of(found: Vec<(Vec<u8>, Val)>) -> KeysResult {
    let keys: Vec<Vec<u8>> = found.into_iter().map(|(key, _)| key).collect();
    KeysResult { key_bytes: sum(keys.iter().map(Vec::len)), keys }
}

fn values_of(values: Vec<(Vec<u8>, Val)>) -> ScanResult {
    ScanResult {
        key_bytes: sum(values.iter().map(|(key, _)| key.len())),
        value_bytes: sum(values.iter().map(|(_, value)| value.len())),
        values,
    }
}

fn sum(lengths: impl Iterator<Item = usize>) -> u64 {
    u64::try_from(lengths.sum::<usize>()).unwrap_or(u64::MAX)
}

impl Transactable for PostgresTransaction {
    fn kind(&self) -> &'static str {
        "postgresql"
    }

    fn closed(&self) -> bool {
        self.is_done.load(Ordering::Acquire)
    }

    fn writeable(&self) -> bool {
        self.is_write
    }

    fn cancel(&self) -> BoxFut<'_, Result<()>> {
        Box::pin(async move {
            if self.is_done.swap(true, Ordering::AcqRel) {
                return Err(Error::TransactionFinished);
            }
            if let State { snapshot: Snapshot::Open(lease), .. } =
                std::mem::take(&mut *self.state.lock().await)
            {
                lease.roll_back();
            }
            Ok(())
        })
    }

    fn commit(&self) -> BoxFut<'_, Result<()>> {
        Box::pin(async move {
            if self.is_done.swap(true, Ordering::AcqRel) {
                return Err(Error::TransactionFinished);
            }
            if !self.is_write {
                return Err(Error::TransactionReadonly);
            }
            let state = std::mem::take(&mut *self.state.lock().await);
            commit::commit(&self.pool, state).await
        })
    }

    fn exists<'a>(&'a self, key: Key<'a>, version: Option<u64>) -> BoxFut<'a, Result<bool>> {
        Box::pin(async move {
            let mut state = self.to_read(version).await?;
            if let Some(written) = state.buffer.get(&key) {
                return Ok(written.is_some());
            }
            let key = key.as_slice();
            Ok(!self.rows(&mut state, |all| &all.exists, &[&key]).await?.is_empty())
        })
    }

    fn get<'a>(&'a self, key: Key<'a>, version: Option<u64>) -> BoxFut<'a, Result<Option<Val>>> {
        Box::pin(async move {
            let mut state = self.to_read(version).await?;
            self.seen(&mut state, &key).await
        })
    }

    fn getu<'a>(&'a self, key: Key<'a>) -> BoxFut<'a, Result<Option<Val>>> {
        Box::pin(async move {
            let mut state = self.to_write(&key, 0).await?;
            // The commit checks what it writes.
            if let Some(written) = state.buffer.get(&key) {
                return Ok(written.map(<[u8]>::to_vec));
            }
            let found = self.stored(&mut state, &key).await?;
            state.tracked.insert(key.into_vec(), found.is_some());
            Ok(found)
        })
    }

    /// A commit takes locks of rows that were read for update, which it shares with other
    /// commits that only read them.
    fn shared_locked_reads(&self) -> bool {
        true
    }

    fn getm<'a>(
        &'a self,
        keys: &'a [Key<'a>],
        version: Option<u64>,
    ) -> BoxFut<'a, Result<GetMultiResult>> {
        Box::pin(async move {
            let mut state = self.to_read(version).await?;
            let mut values: Vec<Option<Val>> = Vec::with_capacity(keys.len());
            // Where a value that is not written by this transaction belongs.
            let mut places: HashMap<&[u8], Vec<usize>> = HashMap::new();
            for (place, key) in keys.iter().enumerate() {
                match state.buffer.get(key) {
                    Some(written) => values.push(written.map(<[u8]>::to_vec)),
                    None => {
                        values.push(None);
                        places.entry(key.as_slice()).or_default().push(place);
                    }
                }
            }
            if !places.is_empty() {
                let asked: Vec<&[u8]> = places.keys().copied().collect();
                for row in self.rows(&mut state, |all| &all.get_many, &[&asked]).await? {
                    let key: &[u8] = column(&row, 0)?;
                    let value: &[u8] = column(&row, 1)?;
                    for place in places.get(key).into_iter().flatten() {
                        if let Some(found) = values.get_mut(*place) {
                            *found = Some(value.to_vec());
                        }
                    }
                }
            }
            let found = || values.iter().flatten();
            let records = sum(found().map(|_| 1));
            let value_bytes = sum(found().map(Vec::len));
            Ok(GetMultiResult { values, records, value_bytes })
        })
    }

    fn set<'a>(&'a self, key: Key<'a>, val: Val) -> BoxFut<'a, Result<()>> {
        Box::pin(async move {
            let mut state = self.to_write(&key, val.len()).await?;
            state.buffer.write(key.into_vec(), Some(val));
            Ok(())
        })
    }

    fn put<'a>(&'a self, key: Key<'a>, val: Val) -> BoxFut<'a, Result<()>> {
        Box::pin(async move {
            match self.change(key, Some(val), None).await {
                Err(Error::TransactionConditionNotMet) => Err(Error::TransactionKeyAlreadyExists),
                changed => changed,
            }
        })
    }

    fn putc<'a>(&'a self, key: Key<'a>, val: Val, chk: Option<Val>) -> BoxFut<'a, Result<()>> {
        Box::pin(async move { self.change(key, Some(val), chk.as_deref()).await })
    }

    fn del<'a>(&'a self, key: Key<'a>) -> BoxFut<'a, Result<()>> {
        Box::pin(async move {
            let mut state = self.to_write(&key, 0).await?;
            state.buffer.write(key.into_vec(), None);
            Ok(())
        })
    }

    fn delc<'a>(&'a self, key: Key<'a>, chk: Option<&'a [u8]>) -> BoxFut<'a, Result<()>> {
        Box::pin(async move { self.change(key, None, chk).await })
    }

    fn count<'a>(&'a self, rng: KeyRange<'a>, version: Option<u64>) -> BoxFut<'a, Result<usize>> {
        Box::pin(async move {
            let mut state = self.to_read(version).await?;
            self.count_range(&mut state, &rng).await
        })
    }

    fn keys<'a>(
        &'a self,
        rng: KeyRange<'a>,
        limit: u32,
        skip: u32,
        version: Option<u64>,
    ) -> BoxFut<'a, Result<KeysResult>> {
        Box::pin(async move {
            let request = ScanRequest::keys(Direction::Forward, limit, skip);
            Ok(keys_of(self.scanned(rng, version, request).await?))
        })
    }

    fn keysr<'a>(
        &'a self,
        rng: KeyRange<'a>,
        limit: u32,
        skip: u32,
        version: Option<u64>,
    ) -> BoxFut<'a, Result<KeysResult>> {
        Box::pin(async move {
            let request = ScanRequest::keys(Direction::Backward, limit, skip);
            Ok(keys_of(self.scanned(rng, version, request).await?))
        })
    }

    fn scan<'a>(
        &'a self,
        rng: KeyRange<'a>,
        limit: u32,
        skip: u32,
        version: Option<u64>,
    ) -> BoxFut<'a, Result<ScanResult>> {
        Box::pin(async move {
            let request = ScanRequest::values(Direction::Forward, limit, skip);
            Ok(values_of(self.scanned(rng, version, request).await?))
        })
    }

    fn scanr<'a>(
        &'a self,
        rng: KeyRange<'a>,
        limit: u32,
        skip: u32,
        version: Option<u64>,
    ) -> BoxFut<'a, Result<ScanResult>> {
        Box::pin(async move {
            let request = ScanRequest::values(Direction::Backward, limit, skip);
            Ok(values_of(self.scanned(rng, version, request).await?))
        })
    }

    fn new_save_point(&self) -> BoxFut<'_, Result<()>> {
        Box::pin(async move {
            self.to_read(None).await?.buffer.save();
            Ok(())
        })
    }

    fn release_last_save_point(&self) -> BoxFut<'_, Result<()>> {
        Box::pin(async move {
            self.to_read(None).await?.buffer.release();
            Ok(())
        })
    }

    fn rollback_to_save_point(&self) -> BoxFut<'_, Result<()>> {
        Box::pin(async move { self.to_read(None).await?.buffer.undo() })
    }

    /// Has no effect: deleted rows stay in the files of the server until its autovacuum
    /// removes them, and in its write-ahead log and backups as long as the operator keeps
    /// these. No statement removes them from there.
    fn compact<'a>(&'a self, _range: Option<KeyRange<'a>>) -> BoxFut<'a, Result<()>> {
        Box::pin(async move { Ok(()) })
    }
}

impl Drop for PostgresTransaction {
    fn drop(&mut self) {
        if let State { snapshot: Snapshot::Open(lease), .. } = std::mem::take(self.state.get_mut())
        {
            lease.roll_back();
        }
    }
}
