//! Counts what the engine asks of its storage, to know what a storage behind a network would
//! cost (`docs/adr/0032-several-nodes.md`).
//!
//! The engine runs on RocksDB or in memory as always. [`Calls`] is between both, and only if
//! [`Settings::calls`](crate::Settings::calls) has it.
//!
//! What belongs here: the counts of a transaction, and which calls would be round trips. What
//! does not: passing calls on (`counted`).

mod counted;

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use surrealdb_cnf::ConfigMap;
use surrealdb_core::CommunityComposer;
use surrealdb_core::kvs::{TransactionBuilderFactory, TransactionBuilderParts};
use surrealdb_kvs::Key;
use tokio_util::sync::CancellationToken;

use counted::CountedBuilder;

/// Counts what the engine asks of its storage. Clones share the counts. They take memory
/// until [`Calls::take`] is called.
#[derive(Debug, Clone, Default)]
pub struct Calls {
    delay: Option<Duration>,
    ended: Arc<Mutex<Vec<TransactionCalls>>>,
}

impl PartialEq for Calls {
    fn eq(&self, other: &Self) -> bool {
        self.delay == other.delay && Arc::ptr_eq(&self.ended, &other.ended)
    }
}

impl Eq for Calls {}

impl Calls {
    /// Also delays each of the [`RoundTrips::remembering`], as a network would.
    #[must_use]
    pub fn delaying(delay: Duration) -> Self {
        Self { delay: Some(delay), ..Self::default() }
    }

    /// The transactions that have ended since this function was called before, in the order
    /// of their ends.
    pub fn take(&self) -> Vec<TransactionCalls> {
        std::mem::take(&mut *self.ended())
    }

    fn ended(&self) -> MutexGuard<'_, Vec<TransactionCalls>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Builds the engine's own storage, with the counts before it.
impl TransactionBuilderFactory for Calls {
    type RouterState = ();

    async fn new_transaction_builder(
        &self,
        path: &str,
        canceller: CancellationToken,
        config: ConfigMap,
    ) -> anyhow::Result<TransactionBuilderParts<Self::RouterState>> {
        let parts = CommunityComposer().new_transaction_builder(path, canceller, config).await?;
        let builder = CountedBuilder::new(parts.builder, self.clone());
        Ok(TransactionBuilderParts::without_router_state(Box::new(builder)))
    }

    fn path_valid(&self, v: &str) -> anyhow::Result<String> {
        CommunityComposer().path_valid(v)
    }
}

/// What a transaction asked of the storage.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TransactionCalls {
    /// The number of calls, by the name of the method.
    pub methods: BTreeMap<&'static str, u64>,
    /// What these calls would be through a network.
    pub round_trips: RoundTrips,
    /// Records or keys that were returned.
    pub rows_read: u64,
    /// Bytes of the returned keys and values.
    pub bytes_read: u64,
    /// Keys that were written or deleted.
    pub rows_written: u64,
    /// Bytes of the written keys and values.
    pub bytes_written: u64,
    /// Whether it was committed.
    pub is_committed: bool,
}

/// Round trips of the calls of a transaction to a storage behind a network.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RoundTrips {
    /// Of an adapter that sends each call, the beginning and the end.
    pub naive: u64,
    /// Of an adapter that begins with the first read, and sends all writes with the commit.
    /// A read of what the transaction wrote is none. Save points are none.
    pub buffered: u64,
    /// Of an adapter that also remembers which values the transaction has read by their
    /// keys.
    pub remembering: u64,
}

/// The counts of a transaction that has not ended.
struct Tally {
    calls: Calls,
    state: Mutex<TallyState>,
}

#[derive(Default)]
struct TallyState {
    counts: TransactionCalls,
    /// Keys that were written, and those and the keys that were read.
    written: HashSet<Vec<u8>>,
    known: HashSet<Vec<u8>>,
    /// Whether the storage must check or write something at the end.
    must_commit: bool,
    has_ended: bool,
}

/// Whether a call is a round trip of [`RoundTrips::remembering`].
type IsRoundTrip = bool;

impl Tally {
    /// The beginning of a transaction.
    fn new(calls: Calls) -> Self {
        let mut state = TallyState::default();
        state.counts.round_trips.naive = 1;
        Self { calls, state: Mutex::new(state) }
    }

    /// A read of values by their keys.
    fn read(&self, method: &'static str, keys: &[Key<'_>]) -> IsRoundTrip {
        let mut state = self.state();
        state.count(method);
        state.read(keys)
    }

    /// A read that lets the commit fail if the key has changed until then.
    fn read_for_update(&self, method: &'static str, key: &Key<'_>) -> IsRoundTrip {
        let mut state = self.state();
        state.count(method);
        state.must_commit = true;
        state.read(std::slice::from_ref(key))
    }

    /// A read of a range, or of the next part of one. What was written is added from memory.
    fn read_range(&self, method: &'static str) -> IsRoundTrip {
        let mut state = self.state();
        state.count(method);
        state.counts.round_trips.buffered += 1;
        state.counts.round_trips.remembering += 1;
        true
    }

    /// A write whose result does not depend on the value before.
    fn write(&self, method: &'static str, key: &Key<'_>, bytes: usize) {
        let mut state = self.state();
        state.count(method);
        state.write(key, bytes);
    }

    /// A write that depends on the value before, which is read.
    fn write_if(&self, method: &'static str, key: &Key<'_>, bytes: usize) -> IsRoundTrip {
        let mut state = self.state();
        state.count(method);
        let is_round_trip = state.read(std::slice::from_ref(key));
        state.write(key, bytes);
        is_round_trip
    }

    /// A call that an adapter answers alone.
    fn local(&self, method: &'static str) {
        self.state().count(method);
    }

    /// What a read returned.
    fn returned(&self, rows: usize, bytes: u64) {
        let mut state = self.state();
        state.counts.rows_read += rows as u64;
        state.counts.bytes_read += bytes;
    }

    /// The end of the transaction. A later one changes nothing.
    fn end(&self, method: &'static str, is_committed: bool) -> IsRoundTrip {
        let mut state = self.state();
        if std::mem::replace(&mut state.has_ended, true) {
            return false;
        }
        state.count(method);
        let is_round_trip = is_committed && state.must_commit;
        state.counts.round_trips.buffered += u64::from(is_round_trip);
        state.counts.round_trips.remembering += u64::from(is_round_trip);
        state.counts.is_committed = is_committed;
        let counts = std::mem::take(&mut state.counts);
        drop(state);
        self.calls.ended().push(counts);
        is_round_trip
    }

    /// Waits as a round trip would, if the calls are delayed.
    async fn wait(&self, is_round_trip: IsRoundTrip) {
        let Some(delay) = self.calls.delay.filter(|_| is_round_trip) else { return };
        // Not by a timer of the runtime, which has a resolution of a millisecond.
        let _ = tokio::task::spawn_blocking(move || block(delay)).await;
    }

    fn state(&self) -> MutexGuard<'_, TallyState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TallyState {
    fn count(&mut self, method: &'static str) {
        *self.counts.methods.entry(method).or_default() += 1;
        self.counts.round_trips.naive += 1;
    }

    fn read(&mut self, keys: &[Key<'_>]) -> IsRoundTrip {
        let is_written = keys.iter().all(|key| self.written.contains(key.as_slice()));
        self.counts.round_trips.buffered += u64::from(!is_written);
        let is_known = keys.iter().all(|key| self.known.contains(key.as_slice()));
        self.counts.round_trips.remembering += u64::from(!is_known);
        self.known.extend(keys.iter().map(|key| key.to_vec()));
        !is_known
    }

    fn write(&mut self, key: &Key<'_>, bytes: usize) {
        self.must_commit = true;
        self.counts.rows_written += 1;
        self.counts.bytes_written += (key.len() + bytes) as u64;
        self.written.insert(key.to_vec());
        self.known.insert(key.to_vec());
    }
}

/// Blocks the thread for this time, more exactly than a timer.
fn block(delay: Duration) {
    let began = Instant::now();
    while let Some(left) = delay.checked_sub(began.elapsed()).filter(|left| !left.is_zero()) {
        std::thread::park_timeout(left);
    }
}

#[cfg(test)]
mod tests {
    use surrealdb::types::{Object, RecordId, RecordIdKey, Value, Variables};
    use surrealdb_kvs::{Direction, TransactionType};

    use super::*;
    use crate::db::{Operation, Statement};
    use crate::transaction::{IdRange, Row, Transaction};
    use crate::{Location, Settings, Store};

    async fn store(calls: &Calls) -> Store {
        let settings = Settings { calls: Some(calls.clone()), ..Settings::default() };
        Store::open(&Location::Memory, settings).await.unwrap()
    }

    async fn rows(store: &Store) -> Arc<Vec<Row>> {
        let keyspace = store.db.keyspace().await.unwrap();
        let row = |number: i64| {
            let id = RecordId::new("counted", RecordIdKey::Number(number));
            keyspace.row(id, Value::Object(Object::new())).unwrap()
        };
        Arc::new((1..=3).map(row).collect())
    }

    /// The ended transactions that called these methods so often, and no others. The engine
    /// has transactions of its own.
    fn with(calls: &Calls, methods: &[(&'static str, u64)]) -> Vec<TransactionCalls> {
        let methods: BTreeMap<_, _> = methods.iter().copied().collect();
        calls.take().into_iter().filter(|one| one.methods == methods).collect()
    }

    #[tokio::test]
    async fn writes_are_sent_with_the_commit() {
        let calls = Calls::default();
        let store = store(&calls).await;
        let rows = rows(&store).await;
        calls.take();
        let work = move |tx: Transaction| {
            let rows = Arc::clone(&rows);
            async move {
                tx.insert(&rows).await?;
                // It was written before, so no storage is asked.
                tx.get::<Value>(&[rows[0].key()]).await?;
                Ok(())
            }
        };
        store.db.transact(Operation::write("test"), (), work).await.unwrap();
        let found = with(&calls, &[("getm", 2), ("set", 3), ("commit", 1)]);
        let [one] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(one.round_trips, RoundTrips { naive: 7, buffered: 2, remembering: 2 });
        assert_eq!((one.rows_written, one.rows_read, one.is_committed), (3, 1, true));
        assert!(one.bytes_written > 0 && one.bytes_read > 0);
    }

    #[tokio::test]
    async fn a_value_is_read_once() {
        let calls = Calls::default();
        let store = store(&calls).await;
        let rows = rows(&store).await;
        calls.take();
        let work = move |tx: Transaction| {
            let rows = Arc::clone(&rows);
            async move {
                tx.get::<Value>(&[rows[0].key(), rows[1].key()]).await?;
                tx.get::<Value>(&[rows[1].key()]).await?;
                Ok(())
            }
        };
        store.db.transact(Operation::read("test"), (), work).await.unwrap();
        let found = with(&calls, &[("getm", 2), ("cancel", 1)]);
        let [one] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(one.round_trips, RoundTrips { naive: 4, buffered: 2, remembering: 1 });
        assert!(!one.is_committed);
    }

    #[tokio::test]
    async fn the_empty_part_after_the_last_one_is_no_round_trip() {
        let calls = Calls::default();
        let store = store(&calls).await;
        let rows = rows(&store).await;
        let inserted = Arc::clone(&rows);
        let work = move |tx: Transaction| {
            let rows = Arc::clone(&inserted);
            async move { tx.insert(&rows).await }
        };
        store.db.transact(Operation::write("test"), (), work).await.unwrap();
        let key = |at: usize| rows[at].key().clone().into_bytes();
        let range = IdRange::between(key(0), [key(2), vec![0]].concat());
        calls.take();
        let tx = store.db.datastore().transaction(TransactionType::Read).await.unwrap();
        let cursor = tx.open_keys_cursor_raw(&range, Direction::Forward, 0, None).await;
        let mut cursor = cursor.unwrap();
        for expected in [2, 1, 0] {
            assert_eq!(cursor.next_batch(2).await.unwrap().len(), expected);
        }
        drop(cursor);
        tx.cancel().await.unwrap();
        let methods = [("open_keys_cursor", 1), ("part of a cursor", 2), ("cancel", 1)];
        let found = with(&calls, &methods);
        let [one] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(one.round_trips, RoundTrips { naive: 5, buffered: 2, remembering: 2 });
        assert_eq!(one.rows_read, 3);
    }

    #[tokio::test]
    async fn a_statement_is_counted_when_its_answer_is_there() {
        const READ: Statement = Statement::read("test", "SELECT * FROM project");
        let calls = Calls::default();
        let store = store(&calls).await;
        calls.take();
        store.db.run(READ, Variables::new()).await.unwrap();
        assert!(!calls.take().is_empty());
    }
}
