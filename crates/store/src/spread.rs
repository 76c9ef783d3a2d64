//! Tables whose records are spread evenly by a hash in their ids: read in
//! stretches of it, because a limit does not reach a range scan.
//!
//! What belongs here: `[prefix…, hash]` as a record id, pages and removal.
//! What does not: what a record holds.

use std::ops::ControlFlow;

use surrealdb::types::{RecordId, RecordIdKey, RecordIdKeyRange, Value};
use uuid::Uuid;

use crate::bind::bind;
use crate::db::Statement;
use crate::{Result, Store};

/// Width of the first stretch that a page looks into: wide enough for one
/// statement where there is little, narrow where there are millions.
const FIRST_WIDTH: u128 = 1 << 112;
/// With so few records in a stretch, the next one is wider.
const FEW: usize = 64;
/// With so many records in a stretch, the next one is narrower.
const MANY: usize = 1_024;
/// Records that a removal takes at a time.
const PIECE: usize = 1_000;

const RANGE: Statement = Statement::read("records in order", "SELECT * FROM $range;");
const IDS: Statement = Statement::read("ids in order", "SELECT id FROM $range;");
const DELETE: Statement = Statement::read("purge in order", "DELETE $ids RETURN NONE;");

/// The records of a table that have the same ids but for the hash.
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

    /// Walks over the records from `from` on in order of their hashes, until
    /// `visit` breaks or `most` records were seen. Gives the hash at which to go
    /// on, but for the end.
    pub(crate) async fn walk(
        &self,
        store: &Store,
        from: Option<Uuid>,
        most: usize,
        visit: impl FnMut(Value) -> Result<ControlFlow<Uuid>>,
    ) -> Result<Option<Uuid>> {
        self.walk_with(RANGE, store, from, most, visit).await
    }

    async fn walk_with(
        &self,
        statement: Statement,
        store: &Store,
        from: Option<Uuid>,
        most: usize,
        mut visit: impl FnMut(Value) -> Result<ControlFlow<Uuid>>,
    ) -> Result<Option<Uuid>> {
        let mut low = from.map_or(0, |hash| hash.as_u128());
        let mut width = FIRST_WIDTH;
        let mut seen = 0;
        loop {
            let high = low.saturating_add(width);
            let vars = bind! { range: self.range(low, high) };
            let rows: Vec<Value> = store.db.run(statement, vars).await?.rows(0)?;
            width = match rows.len() {
                0..=FEW => width.saturating_mul(4),
                MANY.. => (width / 4).max(1),
                _ => width,
            };
            seen += rows.len();
            for row in rows {
                if let ControlFlow::Break(at) = visit(row)? {
                    return Ok(Some(at));
                }
            }
            if high == u128::MAX {
                return Ok(None);
            }
            low = high;
            if seen >= most {
                return Ok(Some(Uuid::from_u128(low)));
            }
        }
    }

    /// Removes all of them, in small transactions.
    pub(crate) async fn purge(&self, store: &Store) -> Result<()> {
        let mut from = None;
        loop {
            let mut ids = Vec::new();
            let next = self
                .walk_with(IDS, store, from, PIECE, |row| {
                    if let Value::Object(mut row) = row {
                        ids.extend(row.remove("id"));
                    }
                    Ok(ControlFlow::Continue(()))
                })
                .await?;
            for piece in ids.chunks(PIECE) {
                store.db.run(DELETE, bind! { ids: piece.to_vec() }).await?;
            }
            let Some(next) = next else { return Ok(()) };
            from = Some(next);
        }
    }

    fn parts(&self, hash: u128) -> RecordIdKey {
        let prefix = self.prefix.iter().map(|number| Value::Number((*number).into()));
        let parts: Vec<Value> = prefix.chain([Value::Uuid(Uuid::from_u128(hash).into())]).collect();
        RecordIdKey::Array(parts.into())
    }

    /// From `low` (inclusive) to `high` (exclusive; the highest of all is
    /// inclusive).
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
