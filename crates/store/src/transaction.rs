//! Transactions on records by their ids, past the query engine.
//!
//! A statement costs the query engine several times what the storage needs for the same
//! record. So records that every event reads or writes are read and written here: in the
//! same tables, with the same bytes. Statements can run in the same transaction.
//!
//! This is only right for schemaless tables without indexes, events and views: a record
//! is a single key then. A statement in the same transaction must not read or write
//! records that the transaction reads or writes by id, because the engine caches records
//! of statements.
//!
//! An index that has no record per entry is a table too, whose values are its own
//! ([`Entry`]). No statement can read such a table.
//!
//! What belongs here: the encoding of records, and reading, writing and deleting them by
//! id. What does not: the guards around a transaction (`db`), and which records are
//! written (the module of their resource).

use std::borrow::{Borrow, Cow};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use surrealdb::types::{RecordId, SurrealValue, Value, Variables};
use surrealdb_catalog::providers::DatabaseProvider as _;
use surrealdb_catalog::{DatabaseId, NamespaceId, Record};
use surrealdb_core::dbs::Session;
use surrealdb_core::err::anyhow_to_types_error;
use surrealdb_core::kvs::{Datastore, QueryRequest};
use surrealdb_datastore::key::schema::RecordKey;
use surrealdb_expr::val;
use surrealdb_kvs::key::{AnyRange, KVKey as _, KVKeyDecode as _, KVSubspace, RawRange};
use surrealdb_kvs::value::KVValue as _;
use surrealdb_kvs::{Key, KeyRange, TransactionType};

use crate::db::{Access, Db, Failure, Operation, Statement, classify, in_time};
use crate::engine::{DATABASE, NAMESPACE};
use crate::memory_budget::{RECORDS_PER_STATEMENT, ReadSize};
use crate::{Error, Result};

/// Entries of an index that a reader reads at a time. An entry has some 25 bytes, or 130 if
/// it is an older one, and its key some 90.
pub(crate) const ENTRIES_PER_READ: usize = 256;
/// The same for a writer, and for other small values of its batch: a megabyte at most, which
/// is less than the batch itself. Through a network, a read costs more than its entries.
const SMALL_VALUES_PER_READ: usize = 4_096;

/// The part of the storage that holds the records.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Keyspace {
    ns: NamespaceId,
    db: DatabaseId,
}

/// A record id, and the key of its record in the storage.
#[derive(Debug, Clone)]
pub(crate) struct RowKey {
    id: val::RecordId,
    bytes: Vec<u8>,
}

/// A record as it is in the storage.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    key: RowKey,
    value: Vec<u8>,
}

/// An entry of an index: a key as a record has it, and a value that is no record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) key: Vec<u8>,
    pub(crate) value: Vec<u8>,
}

/// A range of record ids of one table.
#[derive(Debug, Clone)]
pub(crate) struct IdRange {
    start: Vec<u8>,
    end: Vec<u8>,
}

impl IdRange {
    /// The keys from `start` (inclusive) to `end` (exclusive).
    pub(crate) fn between(start: Vec<u8>, end: Vec<u8>) -> Self {
        Self { start, end }
    }

    /// All keys of the storage.
    pub(crate) fn everything() -> Self {
        Self { start: vec![0], end: vec![0xff] }
    }

    /// The keys after this one, which is of the range.
    fn after(&self, key: &[u8]) -> Self {
        // No other key is between a key and the same with a further byte.
        let mut start = key.to_owned();
        start.push(0);
        Self { start, end: self.end.clone() }
    }
}

impl AnyRange for &IdRange {
    fn into_key_range(self) -> KeyRange<'static> {
        KeyRange { start: Key::from(self.start.clone()), end: Key::from(self.end.clone()) }
    }
}

/// As [`Db::compact`] needs it.
impl KVSubspace for IdRange {
    fn encode_bound(&self) -> anyhow::Result<Key<'static>> {
        Ok(Key::from(self.start.clone()))
    }

    fn raw_range(&self) -> anyhow::Result<RawRange> {
        Ok(self.raw(AnyRange::into_key_range(self)))
    }
}

impl Keyspace {
    pub(crate) async fn read(datastore: &Datastore) -> Result<Self> {
        const NAME: &str = "keyspace";
        let wrong = |error| match failure(NAME, error) {
            Failure::Final(error) => error,
            Failure::Conflict => Error::Conflict { statement: NAME, attempts: 1 },
        };
        let tx = datastore.transaction(TransactionType::Read).await;
        let tx = tx.map_err(|error| wrong(anyhow_to_types_error(error)))?;
        let found = tx.get_db_by_name(NAMESPACE, DATABASE, None).await;
        // A transaction that only reads has no effect to lose.
        let _ = tx.cancel().await;
        let found = found.map_err(|error| wrong(anyhow_to_types_error(error)))?;
        let found = found.ok_or_else(|| shape(NAME, "the database does not exist"))?;
        Ok(Self { ns: found.namespace_id, db: found.database_id })
    }

    /// The key of a record.
    pub(crate) fn key(self, id: RecordId) -> Result<RowKey> {
        let table = id.table.to_string();
        let val::Value::RecordId(id) = val::convert_public_value_to_internal(Value::RecordId(id))
        else {
            return Err(shape("record id", &table));
        };
        let key = RecordKey {
            ns: self.ns,
            db: self.db,
            tb: Cow::Borrowed(&id.table),
            id: Cow::Borrowed(&id.key),
        };
        let bytes = key.encode_key().map_err(|error| shape("record id", &format!("{error:#}")))?;
        Ok(RowKey { bytes: bytes.into_vec(), id })
    }

    /// The keys of records, in the same order.
    pub(crate) fn keys(self, ids: impl IntoIterator<Item = RecordId>) -> Result<Vec<RowKey>> {
        ids.into_iter().map(|id| self.key(id)).collect()
    }

    /// The ids from `from` (inclusive) to `to` (exclusive), which are of one table. An
    /// array sorts after the arrays that it begins with.
    pub(crate) fn range(self, from: RecordId, to: RecordId) -> Result<IdRange> {
        Ok(IdRange { start: self.key(from)?.bytes, end: self.key(to)?.bytes })
    }

    /// The ids that are arrays which begin with the array of `id`.
    pub(crate) fn beginning_with(self, id: RecordId) -> Result<IdRange> {
        const BEHIND_EVERY_VALUE: u8 = 0xff;
        let start = self.key(id)?.bytes;
        // The last byte ends the array. Other arrays have a further value there.
        let mut end = start.clone();
        if let Some(last) = end.last_mut() {
            *last = BEHIND_EVERY_VALUE;
        }
        Ok(IdRange { start, end })
    }

    /// The record with this id and content, as a statement would write it.
    pub(crate) fn row(self, id: RecordId, content: Value) -> Result<Row> {
        let key = self.key(id)?;
        let mut content = val::convert_public_value_to_internal(content);
        remove_none(&mut content);
        if let val::Value::Object(object) = &mut content {
            object.insert("id", val::Value::RecordId(key.id.clone()));
        }
        let value = Record::new(content).kv_encode_value();
        let value = value.map_err(|error| shape("record", &format!("{error:#}")))?;
        Ok(Row { key, value })
    }
}

impl RowKey {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

impl Row {
    pub(crate) fn key(&self) -> &RowKey {
        &self.key
    }

    #[cfg(test)]
    pub(crate) fn into_value(self) -> Vec<u8> {
        self.value
    }

    /// The order of the records in the storage.
    pub(crate) fn in_order(&self, other: &Self) -> std::cmp::Ordering {
        self.key.bytes.cmp(&other.key.bytes)
    }
}

type Running<'a> = Pin<Box<dyn Future<Output = Result<(), Failure>> + Send + 'a>>;

/// A transaction, as [`Db::transact`] runs it. It sees its own writes, and of others what
/// was committed before it began.
#[derive(Clone)]
pub(crate) struct Transaction {
    db: Db,
    inner: Arc<surrealdb_datastore::Transaction>,
    name: &'static str,
}

impl Db {
    /// Runs a transaction and commits it. `work` is repeated after a conflict with another
    /// transaction, or when it is unknown whether the commit had an effect.
    pub(crate) async fn transact<T, F>(
        &self,
        operation: Operation,
        held: impl Send + 'static,
        work: impl Fn(Transaction) -> F + Send + Sync + 'static,
    ) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Failure>> + Send + 'static,
    {
        let (db, work) = (self.clone(), Arc::new(work));
        let attempt = move || {
            let (db, work) = (db.clone(), Arc::clone(&work));
            async move {
                let tx = Transaction::begin(db, operation).await?;
                let done = in_time(operation, async {
                    let done = work(tx.clone()).await?;
                    if operation.access != Access::Read {
                        let committed = tx.inner.commit().await;
                        committed.map_err(|error| tx.failure(anyhow_to_types_error(error)))?;
                    }
                    Ok(done)
                });
                let done = done.await;
                if !tx.inner.closed() {
                    // It was not committed, so nothing is lost if this fails.
                    let _ = tx.inner.cancel().await;
                }
                done
            }
        };
        self.guard(operation, held, attempt).await
    }

    /// Writes the files with the ids of a range again, so that none has records any more that
    /// were deleted or replaced before this call. The engine makes no other compaction
    /// meanwhile, so that writers wait if it takes long: the range must be small.
    pub(crate) async fn compact(&self, operation: Operation, range: IdRange) -> Result<()> {
        let range = Arc::new(range);
        self.transact(operation, (), move |tx: Transaction| {
            let range = Arc::clone(&range);
            async move {
                let compacted = tx.inner.compact(&*range).await;
                compacted.map_err(|error| tx.failure(anyhow_to_types_error(error)))
            }
        })
        .await
    }

    /// The record with this id.
    pub(crate) async fn get_one<T: SurrealValue + Send + 'static>(
        &self,
        operation: Operation,
        id: RecordId,
    ) -> Result<Option<T>> {
        Ok(self.get(operation, vec![id]).await?.into_iter().flatten().next())
    }

    /// The records with these ids, in the same order. `None`: there is no such record.
    pub(crate) async fn get<T: SurrealValue + Send + 'static>(
        &self,
        operation: Operation,
        ids: Vec<RecordId>,
    ) -> Result<Vec<Option<T>>> {
        let keys = Arc::new(self.keyspace().await?.keys(ids)?);
        self.transact(operation, (), move |tx| {
            let keys = Arc::clone(&keys);
            async move { tx.get(&keys).await }
        })
        .await
    }

    /// Writes a row, in a transaction of its own.
    pub(crate) async fn set_row(&self, operation: Operation, row: Row) -> Result<()> {
        let row = Arc::new(row);
        let work = move |tx: Transaction| {
            let row = Arc::clone(&row);
            async move { tx.set(&row).await }
        };
        self.transact(operation, (), work).await
    }

    /// Removes what has these keys, in one transaction.
    pub(crate) async fn delete_keys(&self, operation: Operation, keys: Vec<Vec<u8>>) -> Result<()> {
        let keys = Arc::new(keys);
        let work = move |tx: Transaction| {
            let keys = Arc::clone(&keys);
            async move { tx.delete(&keys).await }
        };
        self.transact(operation, (), work).await
    }

    /// Removes all records or entries of a range, `most` in a transaction.
    pub(crate) async fn delete_range(
        &self,
        operation: Operation,
        range: IdRange,
        most: u32,
    ) -> Result<()> {
        let range = Arc::new(range);
        loop {
            let range = Arc::clone(&range);
            let work = move |tx: Transaction| {
                let range = Arc::clone(&range);
                async move { tx.delete_some(&range, most).await }
            };
            if self.transact(operation, (), work).await? == 0 {
                return Ok(());
            }
        }
    }

    /// The first `most` records of `rest`, which becomes the range after them. `None`: the
    /// range was read to its end.
    pub(crate) async fn next_rows<T: SurrealValue + Send + 'static>(
        &self,
        operation: Operation,
        rest: &mut Option<IdRange>,
        most: u32,
    ) -> Result<Option<Vec<T>>> {
        let Some(range) = rest.take() else { return Ok(None) };
        let range = Arc::new(range);
        let work = move |tx: Transaction| {
            let range = Arc::clone(&range);
            async move { tx.first::<T>(&range, most).await }
        };
        let (rows, more) = self.transact(operation, (), work).await?;
        *rest = more;
        Ok(Some(rows))
    }

    /// All records of a range, which must fit into memory, `most` in a transaction.
    pub(crate) async fn all_rows<T: SurrealValue + Send + 'static>(
        &self,
        operation: Operation,
        range: IdRange,
        most: u32,
    ) -> Result<Vec<T>> {
        let (mut found, mut rest) = (Vec::new(), Some(range));
        while let Some(rows) = self.next_rows::<T>(operation, &mut rest, most).await? {
            found.extend(rows);
        }
        Ok(found)
    }
}

impl Transaction {
    async fn begin(db: Db, operation: Operation) -> Result<Self, Failure> {
        let kind = match operation.access {
            Access::Read => TransactionType::Read,
            Access::Write | Access::Delete | Access::SignIn => TransactionType::Write,
        };
        let inner = db.datastore().transaction(kind).await;
        let inner = inner.map_err(|error| failure(operation.name, anyhow_to_types_error(error)))?;
        Ok(Self { db, inner: Arc::new(inner), name: operation.name })
    }

    /// The records with these keys, in the same order. `None`: there is no such record.
    pub(crate) async fn get<T: SurrealValue>(
        &self,
        keys: &[impl Borrow<RowKey> + Sync],
    ) -> Result<Vec<Option<T>>, Failure> {
        let mut found = Vec::with_capacity(keys.len());
        // Some at a time, because records may be large.
        for some in keys.chunks(RECORDS_PER_STATEMENT) {
            found.extend(self.get_together(some).await?);
        }
        Ok(found)
    }

    /// The same with one read. The caller bounds its bytes.
    pub(crate) async fn get_together<T: SurrealValue>(
        &self,
        keys: &[impl Borrow<RowKey> + Sync],
    ) -> Result<Vec<Option<T>>, Failure> {
        let mut found = Vec::with_capacity(keys.len());
        for (key, value) in keys.iter().zip(self.values(keys).await?) {
            found.push(value.map(|value| self.decode(key.borrow(), &value)).transpose()?);
        }
        Ok(found)
    }

    /// The record with this key.
    pub(crate) async fn get_one<T: SurrealValue>(
        &self,
        key: &RowKey,
    ) -> Result<Option<T>, Failure> {
        Ok(self.get(&[key]).await?.into_iter().flatten().next())
    }

    /// The record with this key. If another transaction changes it before this one
    /// commits, this one is in conflict, even if it does not write the record.
    pub(crate) async fn get_for_update<T: SurrealValue>(
        &self,
        key: &RowKey,
    ) -> Result<Option<T>, Failure> {
        let value = self.inner.getu(Key::from(key.bytes.as_slice())).await;
        let value = value.map_err(|error| self.failure(anyhow_to_types_error(error.into())))?;
        Ok(value.map(|value| self.decode(key, &value)).transpose()?)
    }

    /// Fails with [`Error::Exists`] if one of these records is there already, or if two have
    /// the same id.
    ///
    /// `rows` must be in the order of the storage: neighbours are found faster. The caller has
    /// found none of them before, so the bytes of those that are there are bounded by what
    /// others have written since.
    pub(crate) async fn require_no_rows(&self, rows: &[Row]) -> Result<(), Failure> {
        let exists = |detail: String| Error::Exists { statement: self.name, detail };
        if !rows.is_sorted_by(|one, next| one.in_order(next).is_lt()) {
            return Err(exists("two records with one id".to_owned()).into());
        }
        let keys: Vec<&RowKey> = rows.iter().map(Row::key).collect();
        let (mut rest, mut size) = (keys.as_slice(), ReadSize::default());
        while !rest.is_empty() {
            let (some, later) = size.split(rest);
            for (key, value) in some.iter().zip(self.values(some).await?) {
                if value.is_some() {
                    return Err(exists(format!("a record of {}", key.id.table.as_str())).into());
                }
            }
            size.note(some.len(), 0);
            rest = later;
        }
        Ok(())
    }

    /// Writes new records. Fails as [`Self::require_no_rows`] does.
    pub(crate) async fn insert(&self, rows: &[Row]) -> Result<(), Failure> {
        self.require_no_rows(rows).await?;
        for row in rows {
            self.set(row).await?;
        }
        Ok(())
    }

    /// Writes a record, which replaces the one with the same id.
    pub(crate) async fn set(&self, Row { key, value }: &Row) -> Result<(), Failure> {
        let written = self.inner.set(Key::from(key.bytes.as_slice()), value).await;
        written.map_err(|error| self.failure(anyhow_to_types_error(error)))
    }

    /// Fails with [`Error::Exists`] if one of these entries is there already, or if two have
    /// the same key. `values` are those of the storage, and `entries` must be in the order of
    /// their keys.
    pub(crate) fn require_no_entries(
        &self,
        entries: &[Entry],
        values: &[Option<Vec<u8>>],
    ) -> Result<(), Failure> {
        let exists =
            |detail: &str| Error::Exists { statement: self.name, detail: detail.to_owned() };
        if !entries.is_sorted_by(|one, next| one.key < next.key) {
            return Err(exists("two entries with one key").into());
        }
        if values.iter().any(Option::is_some) {
            return Err(exists("an entry of an index").into());
        }
        Ok(())
    }

    /// Writes an entry of an index, which replaces the one with the same key.
    pub(crate) async fn put(&self, Entry { key, value }: &Entry) -> Result<(), Failure> {
        let written = self.inner.set(Key::from(key.as_slice()), value).await;
        written.map_err(|error| self.failure(anyhow_to_types_error(error)))
    }

    /// The values of the entries with these keys, in the same order.
    pub(crate) async fn entries(&self, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>, Failure> {
        let keys: Vec<Key<'_>> = keys.iter().map(|key| Key::from(*key)).collect();
        let found = self.inner.getm(&keys, None).await;
        let found = found.map_err(|error| self.failure(anyhow_to_types_error(error.into())))?;
        // What is missing would count as absent.
        if found.values.len() != keys.len() {
            return Err(shape(self.name, "a read without some of its keys").into());
        }
        Ok(found.values)
    }

    /// The same for thousands of entries or other small values, such as those of a batch.
    pub(crate) async fn small_values(
        &self,
        keys: &[&[u8]],
    ) -> Result<Vec<Option<Vec<u8>>>, Failure> {
        let mut values = Vec::with_capacity(keys.len());
        for some in keys.chunks(SMALL_VALUES_PER_READ) {
            values.extend(self.entries(some).await?);
        }
        Ok(values)
    }

    /// Deletes the records or entries with these keys, if there are any.
    pub(crate) async fn delete(&self, keys: &[Vec<u8>]) -> Result<(), Failure> {
        for key in keys {
            let deleted = self.inner.del(Key::from(key.as_slice())).await;
            deleted.map_err(|error| self.failure(anyhow_to_types_error(error)))?;
        }
        Ok(())
    }

    /// Deletes the first `most` records or entries of a range. Returns how many there were.
    pub(crate) async fn delete_some(&self, range: &IdRange, most: u32) -> Result<usize, Failure> {
        let keys = self.keys(range, most).await?;
        self.delete(&keys).await?;
        Ok(keys.len())
    }

    /// The ids in a range, in order. The range must be narrow.
    pub(crate) async fn ids(&self, range: &IdRange) -> Result<Vec<RecordId>, Failure> {
        let wrong = |detail: String| Failure::from(shape(self.name, &detail));
        let id = |key: Vec<u8>| {
            let key = RecordKey::decode_key(&key).map_err(|error| wrong(format!("{error:#}")))?;
            let id = val::RecordId { table: key.tb.into_owned(), key: key.id.into_owned() };
            let id = val::convert_value_to_public_value(val::Value::RecordId(id));
            match id.map_err(|error| wrong(format!("{error:#}")))? {
                Value::RecordId(id) => Ok(id),
                _ => Err(wrong("unexpected record id".to_owned())),
            }
        };
        self.keys(range, u32::MAX).await?.into_iter().map(id).collect()
    }

    /// The numbers of the array ids in a range, in order: as [`Self::ids`], for ids of
    /// numbers alone, of which there may be thousands.
    pub(crate) async fn numbers<const N: usize>(
        &self,
        range: &IdRange,
    ) -> Result<Vec<[i64; N]>, Failure> {
        let numbers = |key: Vec<u8>| {
            let key = RecordKey::decode_key(&key).ok()?;
            let val::RecordIdKey::Array(parts) = key.id.as_ref() else { return None };
            let mut numbers = [0; N];
            if parts.len() != N {
                return None;
            }
            for (number, part) in numbers.iter_mut().zip(parts.iter()) {
                let val::Value::Number(val::Number::Int(part)) = part else { return None };
                *number = *part;
            }
            Some(numbers)
        };
        let found: Option<_> = self.keys(range, u32::MAX).await?.into_iter().map(numbers).collect();
        found.ok_or_else(|| shape(self.name, "unexpected record id").into())
    }

    /// The number of ids in a range, at most `most`. Reads no more of them.
    pub(crate) async fn count(&self, range: &IdRange, most: u32) -> Result<usize, Failure> {
        // The engine's own way to count is made for large ranges.
        Ok(self.keys(range, most).await?.len())
    }

    /// The first `most` records of a range, and the rest of the range. `None`: there is no
    /// rest.
    pub(crate) async fn first<T: SurrealValue>(
        &self,
        range: &IdRange,
        most: u32,
    ) -> Result<(Vec<T>, Option<IdRange>), Failure> {
        let (found, rest) = self.scan(range, most).await?;
        let rows = found.into_iter().map(|Entry { key, value }| self.decode_raw(key, &value));
        Ok((rows.collect::<Result<_>>()?, rest))
    }

    /// The first `most` entries of a range, and the rest of the range. `None`: there is no
    /// rest.
    pub(crate) async fn scan(
        &self,
        range: &IdRange,
        most: u32,
    ) -> Result<(Vec<Entry>, Option<IdRange>), Failure> {
        let found = self.inner.scan_raw(range, most, 0, None).await;
        let found = found.map_err(|error| self.failure(anyhow_to_types_error(error)))?;
        let is_full = found.len() >= most as usize;
        let rest = found.last().filter(|_| is_full).map(|(key, _)| range.after(key));
        Ok((found.into_iter().map(|(key, value)| Entry { key, value }).collect(), rest))
    }

    /// Passes over the first `most` entries of a range. Returns how many there were, and the
    /// rest of the range. `None`: there is no rest.
    pub(crate) async fn pass(
        &self,
        range: &IdRange,
        most: u32,
    ) -> Result<(usize, Option<IdRange>), Failure> {
        let keys = self.keys(range, most).await?;
        let is_full = keys.len() >= most as usize;
        let rest = keys.last().filter(|_| is_full).map(|key| range.after(key));
        Ok((keys.len(), rest))
    }

    /// The last record of a range. Reads no other one.
    pub(crate) async fn last<T: SurrealValue>(
        &self,
        range: &IdRange,
    ) -> Result<Option<T>, Failure> {
        let found = self.inner.scanr_raw(range, 1, 0, None).await;
        let found = found.map_err(|error| self.failure(anyhow_to_types_error(error)))?;
        let last = found.into_iter().next();
        Ok(last.map(|(key, value)| self.decode_raw(key, &value)).transpose()?)
    }

    async fn keys(&self, range: &IdRange, most: u32) -> Result<Vec<Vec<u8>>, Failure> {
        let keys = self.inner.keys_raw(range, most, 0, None).await;
        keys.map_err(|error| self.failure(anyhow_to_types_error(error)))
    }

    /// Runs a statement in this transaction. Its text must not begin or end one.
    ///
    /// Not inlined: the type of the future of the engine is so deep that the compiler
    /// refuses it in other crates.
    #[inline(never)]
    pub(crate) fn run(&self, statement: Statement, vars: Variables) -> Running<'_> {
        Box::pin(async move {
            let session = Session::owner().with_ns(NAMESPACE).with_db(DATABASE);
            let request = QueryRequest::new(statement.text, &session)
                .with_variables(Some(vars))
                .with_transaction(Arc::clone(&self.inner));
            let answered = self.db.datastore().run(request).await;
            let results = answered.map_err(|error| failure(statement.name, error))?;
            let errors: Vec<_> = results.into_iter().filter_map(|part| part.result.err()).collect();
            if errors.is_empty() { Ok(()) } else { Err(classify(statement.name, errors)) }
        })
    }

    /// The failure of a transaction that ends itself without an effect, as `THROW` does
    /// in a statement.
    pub(crate) fn refusal(&self, reason: &str) -> Failure {
        Error::Refused { statement: self.name, reason: reason.to_owned() }.into()
    }

    async fn values(
        &self,
        keys: &[impl Borrow<RowKey> + Sync],
    ) -> Result<Vec<Option<Vec<u8>>>, Failure> {
        let keys: Vec<&[u8]> = keys.iter().map(|key| key.borrow().bytes()).collect();
        self.entries(&keys).await
    }

    fn decode<T: SurrealValue>(&self, key: &RowKey, value: &[u8]) -> Result<T> {
        decode_record(self.name, key, value)
    }

    /// The content of a record that was found by a range.
    fn decode_raw<T: SurrealValue>(&self, bytes: Vec<u8>, value: &[u8]) -> Result<T> {
        let key = RecordKey::decode_key(&bytes)
            .map_err(|error| shape(self.name, &format!("{error:#}")))?;
        let id = val::RecordId { table: key.tb.into_owned(), key: key.id.into_owned() };
        self.decode(&RowKey { id, bytes }, value)
    }

    fn failure(&self, error: surrealdb::types::Error) -> Failure {
        failure(self.name, error)
    }
}

/// The content of a record. `name` appears in errors.
pub(crate) fn decode_record<T: SurrealValue>(
    name: &'static str,
    key: &RowKey,
    value: &[u8],
) -> Result<T> {
    let wrong = |detail: &str| shape(name, detail);
    let record = Record::kv_decode_value(value, key.id.clone())
        .map_err(|error| wrong(&format!("{error:#}")))?;
    let value = val::convert_value_to_public_value(record.data)
        .map_err(|error| wrong(&format!("{error:#}")))?;
    T::from_value(value).map_err(|error| wrong(error.message()))
}

fn failure(name: &'static str, error: surrealdb::types::Error) -> Failure {
    classify(name, vec![error])
}

fn shape(statement: &'static str, detail: &str) -> Error {
    Error::Shape { statement, detail: detail.to_owned() }
}

/// Removes absent fields, which a statement does not store. Members of arrays stay.
fn remove_none(value: &mut val::Value) {
    match value {
        val::Value::Object(object) => object.retain(|_, value| {
            remove_none(value);
            !matches!(value, val::Value::None)
        }),
        val::Value::Array(array) => array.iter_mut().for_each(remove_none),
        _ => {}
    }
}

#[cfg(test)]
pub(crate) mod tests;
