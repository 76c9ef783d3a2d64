//! Tables whose records are spread evenly by a hash in their ids. They are read in ranges
//! of the hash, because a limit does not stop a range scan.
//!
//! A range is chosen by the number of its records. Their sizes differ, and a sender who
//! chooses the keys can make many large records neighbours. So the ids of a range are
//! read first, and then its records in pieces of a bounded number of bytes.
//!
//! What belongs here: `[prefix…, hash]` as a record id, pages and removal. What does not:
//! the content of a record.

use std::ops::ControlFlow;
use std::time::Instant;

use surrealdb::types::{RecordId, RecordIdKey, RecordIdKeyRange, Value};
use uuid::Uuid;

use crate::bind::bind;
use crate::db::Statement;
use crate::memory_budget::{RECORDS_PER_STATEMENT, read_large};
use crate::{Error, Result, Store};

/// Width of the first range that a page reads: wide enough for one statement when there
/// are few records, narrow when there are millions.
const FIRST_WIDTH: u128 = 1 << 112;
/// After a range with at most this many records, the next one is wider.
const FEW: usize = 64;
/// After a range with at least this many records, the next one is narrower.
const MANY: usize = 1_024;
/// Records of the first piece of a page. The size of the next piece follows from the
/// bytes of the one before, up to [`RECORDS_PER_STATEMENT`], because later records may all be large.
const FIRST_PIECE: usize = 16;
/// The intended bytes of a piece.
const PIECE_BYTES: usize = 4 << 20;
/// Records that a removal deletes at a time. The engine reads each of them, however large
/// they are. No caller waits for the result, hence the long limit of `DELETE`.
const REMOVED: usize = 64;

const RANGE: Statement = Statement::read("records in order", "SELECT * FROM $range;");
const IDS: Statement = Statement::read("ids in order", "SELECT VALUE id FROM $range;");
const DELETE: Statement = Statement::delete("purge in order", "DELETE $ids RETURN NONE;")
    .within(std::time::Duration::from_secs(60));

/// How far a walk reads before it returns a cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScanLimits {
    /// The approximate number of records.
    pub records: usize,
    /// No further piece is read after this time. The first piece is always read.
    pub until: Option<Instant>,
}

impl ScanLimits {
    /// Stops after so many records, without a time limit.
    #[must_use]
    pub const fn records(records: usize) -> Self {
        Self { records, until: None }
    }

    fn is_over(self, seen: usize) -> bool {
        seen >= self.records || self.until.is_some_and(|until| Instant::now() >= until)
    }
}

/// The records of a table whose ids differ only in the hash.
#[derive(Debug, Clone)]
pub(crate) struct Spread {
    pub(crate) table: &'static str,
    pub(crate) prefix: Vec<i64>,
}

impl Spread {
    /// The id of the record with this hash.
    pub(crate) fn key(&self, hash: Uuid) -> RecordId {
        RecordId::new(self.table, self.parts(hash.as_u128()))
    }

    /// Reads the records from `from` on in order of their hashes, until `visit` breaks or
    /// `limits` is over. Returns the hash at which to continue; `None` at the end.
    ///
    /// `size` returns the approximate bytes of a record. It bounds how much is in memory
    /// at a time.
    pub(crate) async fn walk(
        &self,
        store: &Store,
        from: Option<Uuid>,
        limits: ScanLimits,
        size: impl Fn(&Value) -> usize,
        mut visit: impl FnMut(Value) -> Result<ControlFlow<Uuid>>,
    ) -> Result<Option<Uuid>> {
        let mut ranges = HashRanges::begin(from);
        let (mut seen, mut piece) = (0, FIRST_PIECE);
        while let Some((low, high, hashes)) = ranges.next(self, store).await? {
            let (mut begin, mut rest) = (low, hashes.as_slice());
            while !rest.is_empty() {
                let (now, later) = rest.split_at(piece.min(rest.len()));
                let end = later.first().copied().unwrap_or(high);
                let vars = bind! { range: self.range(begin, end) };
                let rows: Vec<Value> = read_large(store, RANGE, vars).await?;
                let bytes: usize = rows.iter().map(&size).sum();
                let each = bytes / rows.len().max(1);
                piece = (PIECE_BYTES / each.max(1)).clamp(1, RECORDS_PER_STATEMENT);
                seen += now.len();
                for row in rows {
                    if let ControlFlow::Break(at) = visit(row)? {
                        return Ok(Some(at));
                    }
                }
                (begin, rest) = (end, later);
                if limits.is_over(seen) && !(rest.is_empty() && high == u128::MAX) {
                    return Ok(Some(Uuid::from_u128(begin)));
                }
            }
        }
        Ok(None)
    }

    /// Removes all of these records, in small transactions.
    pub(crate) async fn purge(&self, store: &Store) -> Result<()> {
        let mut ranges = HashRanges::begin(None);
        while let Some((_, _, hashes)) = ranges.next(self, store).await? {
            let ids: Vec<_> = hashes.iter().map(|hash| self.key(Uuid::from_u128(*hash))).collect();
            for piece in ids.chunks(REMOVED) {
                read_large::<Value>(store, DELETE, bind! { ids: piece.to_vec() }).await?;
            }
        }
        Ok(())
    }

    /// The hashes of the records in a range, in order.
    async fn hashes(&self, store: &Store, low: u128, high: u128) -> Result<Vec<u128>> {
        let vars = bind! { range: self.range(low, high) };
        let ids: Vec<RecordId> = store.db.run(IDS, vars).await?.rows(0)?;
        ids.iter()
            .map(|id| match &id.key {
                RecordIdKey::Array(parts) => match parts.get(self.prefix.len()) {
                    Some(Value::Uuid(hash)) => Ok(hash.as_u128()),
                    Some(_) | None => Err(unexpected()),
                },
                _ => Err(unexpected()),
            })
            .collect()
    }

    fn parts(&self, hash: u128) -> RecordIdKey {
        let prefix = self.prefix.iter().map(|number| Value::Number((*number).into()));
        let parts: Vec<Value> = prefix.chain([Value::Uuid(Uuid::from_u128(hash).into())]).collect();
        RecordIdKey::Array(parts.into())
    }

    /// From `low` (inclusive) to `high` (exclusive, but the highest hash is inclusive).
    fn range(&self, low: u128, high: u128) -> RecordId {
        let end = match high {
            u128::MAX => std::ops::Bound::Included(self.parts(high)),
            _ => std::ops::Bound::Excluded(self.parts(high)),
        };
        let start = std::ops::Bound::Included(self.parts(low));
        let bounds = RecordIdKeyRange { start, end };
        RecordId::new(self.table, RecordIdKey::Range(Box::new(bounds)))
    }
}

/// Consecutive ranges of the hash, whose width follows the number of records.
struct HashRanges {
    low: u128,
    width: u128,
    is_done: bool,
}

impl HashRanges {
    fn begin(from: Option<Uuid>) -> Self {
        let low = from.map_or(0, |hash| hash.as_u128());
        Self { low, width: FIRST_WIDTH, is_done: false }
    }

    /// The next range: its beginning, its end, and the hashes in it.
    async fn next(
        &mut self,
        spread: &Spread,
        store: &Store,
    ) -> Result<Option<(u128, u128, Vec<u128>)>> {
        if self.is_done {
            return Ok(None);
        }
        let low = self.low;
        let high = low.saturating_add(self.width);
        let hashes = spread.hashes(store, low, high).await?;
        self.width = match hashes.len() {
            0..=FEW => self.width.saturating_mul(4),
            MANY.. => (self.width / 4).max(1),
            _ => self.width,
        };
        self.low = high;
        self.is_done = high == u128::MAX;
        Ok(Some((low, high, hashes)))
    }
}

fn unexpected() -> Error {
    Error::Shape { statement: IDS.name, detail: "unexpected id".to_owned() }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::{Location, Settings};

    const CREATE: Statement = Statement::write("test", "INSERT INTO person $rows RETURN NONE;");

    async fn filled(hashes: impl Iterator<Item = u128>) -> (Store, Spread) {
        let store = Store::open(&Location::Memory, Settings::default()).await.unwrap();
        let spread = Spread { table: "person", prefix: vec![7] };
        let row = |hash: u128| {
            let mut row = surrealdb::types::Object::new();
            row.insert("id", spread.key(Uuid::from_u128(hash)));
            Value::Object(row)
        };
        let rows: Vec<Value> = hashes.map(row).collect();
        store.db.run(CREATE, bind! { rows: rows }).await.unwrap();
        (store, spread)
    }

    async fn all(
        store: &Store,
        spread: &Spread,
        limits: ScanLimits,
        size: usize,
    ) -> (usize, usize) {
        let (mut from, mut pages) = (None, 0);
        let seen = RefCell::new(0);
        // The largest number of records that were in memory at a time.
        let (together, largest) = (RefCell::new(0), RefCell::new(0_usize));
        loop {
            let count = |_: &Value| {
                *together.borrow_mut() += 1;
                size
            };
            let next = spread
                .walk(store, from, limits, count, |_| {
                    let concurrently = together.replace(0);
                    let highest = (*largest.borrow()).max(concurrently);
                    largest.replace(highest);
                    *seen.borrow_mut() += 1;
                    Ok(ControlFlow::Continue(()))
                })
                .await
                .unwrap();
            pages += 1;
            let Some(next) = next else { break };
            from = Some(next);
        }
        let largest = *largest.borrow();
        let is_one = limits.records >= 1_000 && limits.until.is_none();
        assert!(!is_one || pages == 1, "{pages}");
        (seen.into_inner(), largest)
    }

    #[tokio::test]
    async fn records_side_by_side_are_read_in_pieces_by_their_sizes() {
        let base = 1_u128 << 100;
        let (store, spread) = filled((0..100).map(|n| base + n).chain([u128::MAX])).await;
        let many = ScanLimits::records(10_000);
        assert_eq!(all(&store, &spread, many, 100).await, (101, RECORDS_PER_STATEMENT));
        assert_eq!(all(&store, &spread, many, PIECE_BYTES / 2).await, (101, FIRST_PIECE));
        let few = all(&store, &spread, ScanLimits::records(7), 100).await;
        assert_eq!(few.0, 101, "short pages leave nothing out");
        let late = ScanLimits { until: Some(Instant::now()), ..many };
        let seen = all(&store, &spread, late, 100).await;
        assert_eq!(seen, (101, FIRST_PIECE), "a walk without time reads a piece and goes on later");
        spread.purge(&store).await.unwrap();
        assert_eq!(all(&store, &spread, many, 100).await, (0, 0));
    }
}
