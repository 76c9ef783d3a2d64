//! The storage of the engine, with counts before it: every call is counted and passed on.
//!
//! [`Transactable`] has more functions than these. The others divide a range into parts, and
//! call these functions for each part: `getr`, `delr`, `clrr`, `batch_keys` and
//! `batch_keys_vals`. RocksDB has no better way for them.

use std::any::{Any, TypeId};
use std::ops::ControlFlow;
use std::sync::Arc;

use surrealdb_kvs::api::{
    BoxFut, GetMultiResult, KeyVisitor, KeysBatch, KeysResult, ScanChunkStats, ScanCursorKeys,
    ScanCursorVals, ScanResult, ValVisitor, ValsBatch,
};
use surrealdb_kvs::timestamp::{BoxTimeStamp, BoxTimeStampImpl};
use surrealdb_kvs::{
    Direction, Key, KeyRange, Metrics, Result, Transactable, TransactionBuilder, TransactionType,
    Val,
};

use super::{Calls, Tally};

/// Begins transactions that are counted.
pub(super) struct CountedBuilder {
    inner: Box<dyn TransactionBuilder>,
    calls: Calls,
}

impl CountedBuilder {
    pub(super) fn new(inner: Box<dyn TransactionBuilder>, calls: Calls) -> Self {
        Self { inner, calls }
    }
}

impl TransactionBuilder for CountedBuilder {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn new_transaction(
        &self,
        write: TransactionType,
    ) -> BoxFut<'_, Result<(Box<dyn Transactable>, bool)>> {
        Box::pin(async move {
            let (inner, is_local) = self.inner.new_transaction(write).await?;
            let tally = Tally::new(self.calls.clone());
            let counted: Box<dyn Transactable> = Box::new(CountedTransaction { inner, tally });
            Ok((counted, is_local))
        })
    }

    fn shutdown(&self) -> BoxFut<'_, Result<()>> {
        self.inner.shutdown()
    }

    fn register_metrics(&self) -> Option<Metrics> {
        self.inner.register_metrics()
    }

    fn collect_u64_metric(&self, metric: &str) -> Option<u64> {
        self.inner.collect_u64_metric(metric)
    }

    fn wait_until_serve_ready(&self) -> BoxFut<'_, Result<()>> {
        self.inner.wait_until_serve_ready()
    }

    fn extension(&self, id: TypeId) -> Option<Arc<dyn Any + Send + Sync>> {
        self.inner.extension(id)
    }
}

struct CountedTransaction {
    inner: Box<dyn Transactable>,
    tally: Tally,
}

impl Drop for CountedTransaction {
    /// The engine does not end every transaction that reads.
    fn drop(&mut self) {
        self.tally.end("drop", false);
    }
}

impl CountedTransaction {
    /// Counts what a read of a range returned, once it is there.
    fn scanned(&self, found: Result<ScanResult>) -> Result<ScanResult> {
        let found = found?;
        self.tally.returned(found.values.len(), found.key_bytes + found.value_bytes);
        Ok(found)
    }

    /// The same for keys alone.
    fn listed(&self, found: Result<KeysResult>) -> Result<KeysResult> {
        let found = found?;
        self.tally.returned(found.keys.len(), found.key_bytes);
        Ok(found)
    }

    fn got(&self, found: Result<Option<Val>>) -> Result<Option<Val>> {
        let found = found?;
        if let Some(value) = &found {
            self.tally.returned(1, value.len() as u64);
        }
        Ok(found)
    }
}

impl Transactable for CountedTransaction {
    fn kind(&self) -> &'static str {
        self.inner.kind()
    }

    fn closed(&self) -> bool {
        self.inner.closed()
    }

    fn writeable(&self) -> bool {
        self.inner.writeable()
    }

    fn cancel<'a>(&'a self) -> BoxFut<'a, Result<()>> {
        Box::pin(async move {
            self.tally.end("cancel", false);
            self.inner.cancel().await
        })
    }

    fn commit<'a>(&'a self) -> BoxFut<'a, Result<()>> {
        Box::pin(async move {
            let committed = self.inner.commit().await;
            self.tally.wait(self.tally.end("commit", committed.is_ok())).await;
            committed
        })
    }

    fn exists<'a>(&'a self, key: Key<'a>, version: Option<u64>) -> BoxFut<'a, Result<bool>> {
        Box::pin(async move {
            self.tally.wait(self.tally.read("exists", std::slice::from_ref(&key))).await;
            self.inner.exists(key, version).await
        })
    }

    fn get<'a>(&'a self, key: Key<'a>, version: Option<u64>) -> BoxFut<'a, Result<Option<Val>>> {
        Box::pin(async move {
            self.tally.wait(self.tally.read("get", std::slice::from_ref(&key))).await;
            self.got(self.inner.get(key, version).await)
        })
    }

    fn getu<'a>(&'a self, key: Key<'a>) -> BoxFut<'a, Result<Option<Val>>> {
        Box::pin(async move {
            self.tally.wait(self.tally.read_for_update("getu", &key)).await;
            self.got(self.inner.getu(key).await)
        })
    }

    fn shared_locked_reads(&self) -> bool {
        self.inner.shared_locked_reads()
    }

    fn getm<'a>(
        &'a self,
        keys: &'a [Key<'a>],
        version: Option<u64>,
    ) -> BoxFut<'a, Result<GetMultiResult>> {
        Box::pin(async move {
            self.tally.wait(self.tally.read("getm", keys)).await;
            let found = self.inner.getm(keys, version).await?;
            let rows = found.values.iter().flatten().count();
            self.tally.returned(rows, found.value_bytes);
            Ok(found)
        })
    }

    fn set<'a>(&'a self, key: Key<'a>, val: Val) -> BoxFut<'a, Result<()>> {
        Box::pin(async move {
            self.tally.write("set", &key, val.len());
            self.inner.set(key, val).await
        })
    }

    fn replace<'a>(&'a self, key: Key<'a>, val: Val) -> BoxFut<'a, Result<()>> {
        Box::pin(async move {
            self.tally.write("replace", &key, val.len());
            self.inner.replace(key, val).await
        })
    }

    fn put<'a>(&'a self, key: Key<'a>, val: Val) -> BoxFut<'a, Result<()>> {
        Box::pin(async move {
            self.tally.wait(self.tally.write_if("put", &key, val.len())).await;
            self.inner.put(key, val).await
        })
    }

    fn putc<'a>(&'a self, key: Key<'a>, val: Val, chk: Option<Val>) -> BoxFut<'a, Result<()>> {
        Box::pin(async move {
            self.tally.wait(self.tally.write_if("putc", &key, val.len())).await;
            self.inner.putc(key, val, chk).await
        })
    }

    fn del<'a>(&'a self, key: Key<'a>) -> BoxFut<'a, Result<()>> {
        Box::pin(async move {
            self.tally.write("del", &key, 0);
            self.inner.del(key).await
        })
    }

    fn delc<'a>(&'a self, key: Key<'a>, chk: Option<&'a [u8]>) -> BoxFut<'a, Result<()>> {
        Box::pin(async move {
            self.tally.wait(self.tally.write_if("delc", &key, 0)).await;
            self.inner.delc(key, chk).await
        })
    }

    fn clr<'a>(&'a self, key: Key<'a>) -> BoxFut<'a, Result<()>> {
        Box::pin(async move {
            self.tally.write("clr", &key, 0);
            self.inner.clr(key).await
        })
    }

    fn clrc<'a>(&'a self, key: Key<'a>, chk: Option<&'a [u8]>) -> BoxFut<'a, Result<()>> {
        Box::pin(async move {
            self.tally.wait(self.tally.write_if("clrc", &key, 0)).await;
            self.inner.clrc(key, chk).await
        })
    }

    fn count<'a>(&'a self, rng: KeyRange<'a>, version: Option<u64>) -> BoxFut<'a, Result<usize>> {
        Box::pin(async move {
            self.tally.wait(self.tally.read_range("count")).await;
            self.inner.count(rng, version).await
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
            self.tally.wait(self.tally.read_range("keys")).await;
            self.listed(self.inner.keys(rng, limit, skip, version).await)
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
            self.tally.wait(self.tally.read_range("keysr")).await;
            self.listed(self.inner.keysr(rng, limit, skip, version).await)
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
            self.tally.wait(self.tally.read_range("scan")).await;
            self.scanned(self.inner.scan(rng, limit, skip, version).await)
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
            self.tally.wait(self.tally.read_range("scanr")).await;
            self.scanned(self.inner.scanr(rng, limit, skip, version).await)
        })
    }

    fn open_keys_cursor<'a>(
        &'a self,
        rng: KeyRange<'a>,
        dir: Direction,
        skip: u32,
        version: Option<u64>,
    ) -> BoxFut<'a, Result<Box<dyn ScanCursorKeys + 'a>>> {
        Box::pin(async move {
            self.tally.local("open_keys_cursor");
            let inner = self.inner.open_keys_cursor(rng, dir, skip, version).await?;
            let parts = RangeParts::of(&self.tally);
            let counted: Box<dyn ScanCursorKeys + 'a> = Box::new(CountedKeys { inner, parts });
            Ok(counted)
        })
    }

    fn open_vals_cursor<'a>(
        &'a self,
        rng: KeyRange<'a>,
        dir: Direction,
        skip: u32,
        version: Option<u64>,
    ) -> BoxFut<'a, Result<Box<dyn ScanCursorVals + 'a>>> {
        Box::pin(async move {
            self.tally.local("open_vals_cursor");
            let inner = self.inner.open_vals_cursor(rng, dir, skip, version).await?;
            let parts = RangeParts::of(&self.tally);
            let counted: Box<dyn ScanCursorVals + 'a> = Box::new(CountedValues { inner, parts });
            Ok(counted)
        })
    }

    fn new_save_point(&self) -> BoxFut<'_, Result<()>> {
        self.tally.local("new_save_point");
        self.inner.new_save_point()
    }

    fn release_last_save_point(&self) -> BoxFut<'_, Result<()>> {
        self.tally.local("release_last_save_point");
        self.inner.release_last_save_point()
    }

    fn rollback_to_save_point(&self) -> BoxFut<'_, Result<()>> {
        self.tally.local("rollback_to_save_point");
        self.inner.rollback_to_save_point()
    }

    fn timestamp(&self) -> BoxFut<'_, Result<BoxTimeStamp>> {
        self.inner.timestamp()
    }

    fn safe_timestamp(&self) -> BoxFut<'_, Result<BoxTimeStamp>> {
        self.inner.safe_timestamp()
    }

    fn timestamp_impl(&self) -> BoxTimeStampImpl {
        self.inner.timestamp_impl()
    }

    fn compact<'a>(&'a self, range: Option<KeyRange<'a>>) -> BoxFut<'a, Result<()>> {
        self.tally.local("compact");
        self.inner.compact(range)
    }
}

/// Counts the parts of a range that a cursor reads.
struct RangeParts<'a> {
    tally: &'a Tally,
    /// Whether the last part was short: an adapter knows then that none follows.
    is_at_end: bool,
}

impl<'a> RangeParts<'a> {
    fn of(tally: &'a Tally) -> Self {
        Self { tally, is_at_end: false }
    }

    /// Counts a part that was read. `is_stopped`: its reader did not want more of it.
    async fn read(&mut self, limit: u32, rows: usize, bytes: u64, is_stopped: bool) {
        if limit == 0 || (self.is_at_end && rows == 0) {
            return;
        }
        self.is_at_end = rows < limit as usize && !is_stopped;
        self.tally.returned(rows, bytes);
        self.tally.wait(self.tally.read_range("part of a cursor")).await;
    }

    /// Counts a part whose rows were passed to a reader.
    async fn passed(&mut self, limit: u32, part: &ScanChunkStats, is_stopped: bool) {
        let rows = usize::try_from(part.rows).unwrap_or(usize::MAX);
        self.read(limit, rows, part.key_bytes + part.value_bytes, is_stopped).await;
    }
}

struct CountedKeys<'a> {
    inner: Box<dyn ScanCursorKeys + 'a>,
    parts: RangeParts<'a>,
}

impl ScanCursorKeys for CountedKeys<'_> {
    fn next_batch<'s>(&'s mut self, limit: u32) -> BoxFut<'s, Result<KeysBatch<'s>>> {
        let Self { inner, parts } = self;
        Box::pin(async move {
            let batch = inner.next_batch(limit).await?;
            parts.read(limit, batch.len(), batch.key_bytes, false).await;
            Ok(batch)
        })
    }

    fn for_each<'s>(
        &'s mut self,
        limit: u32,
        f: &'s mut dyn KeyVisitor,
    ) -> BoxFut<'s, Result<ScanChunkStats>> {
        Box::pin(async move {
            let mut is_stopped = false;
            let mut visit = |key: &[u8]| -> Result<ControlFlow<()>> {
                let flow = f(key)?;
                is_stopped |= flow.is_break();
                Ok(flow)
            };
            let part = self.inner.for_each(limit, &mut visit).await?;
            self.parts.passed(limit, &part, is_stopped).await;
            Ok(part)
        })
    }
}

struct CountedValues<'a> {
    inner: Box<dyn ScanCursorVals + 'a>,
    parts: RangeParts<'a>,
}

impl ScanCursorVals for CountedValues<'_> {
    fn next_batch<'s>(&'s mut self, limit: u32) -> BoxFut<'s, Result<ValsBatch<'s>>> {
        let Self { inner, parts } = self;
        Box::pin(async move {
            let batch = inner.next_batch(limit).await?;
            let bytes = batch.key_bytes + batch.value_bytes;
            parts.read(limit, batch.len(), bytes, false).await;
            Ok(batch)
        })
    }

    fn for_each<'s>(
        &'s mut self,
        limit: u32,
        f: &'s mut dyn ValVisitor,
    ) -> BoxFut<'s, Result<ScanChunkStats>> {
        Box::pin(async move {
            let mut is_stopped = false;
            let mut visit = |key: &[u8], value: &[u8]| -> Result<ControlFlow<()>> {
                let flow = f(key, value)?;
                is_stopped |= flow.is_break();
                Ok(flow)
            };
            let part = self.inner.for_each(limit, &mut visit).await?;
            self.parts.passed(limit, &part, is_stopped).await;
            Ok(part)
        })
    }
}
