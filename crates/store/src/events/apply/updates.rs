//! Records whose new content depends on the stored one: names, counts of skipped and altered
//! events, and group types.
//!
//! What belongs here: reading them and combining both. What does not: their ids, and what
//! their fields mean (`definitions`, `warnings`, `groups`).

use surrealdb::types::{Object, RecordId, Value};

use crate::Result;
use crate::db::Failure;
use crate::memory_budget::RECORDS_PER_STATEMENT;
use crate::transaction::{Keyspace, Row, RowKey, Transaction};

/// Names and group types that are read at a time. A name has 400 bytes at most, so these are
/// a megabyte with their keys.
const NAMES_PER_READ: usize = 1_024;
/// Samples of a count that are kept: the newest ones.
const SAMPLES: usize = 5;

/// How a record is combined with the stored one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::events) enum Rule {
    /// An event name: it stays from when it was first seen, and was last seen now.
    EventName,
    /// A property name: the stored one stays as it is.
    PropertyName,
    /// A count: it is added, and its sample comes first.
    Warning,
    /// Group types: they replace the stored ones, of which there must be so many.
    GroupTypes { expected: usize },
}

/// A record that is combined with the stored one.
pub(in crate::events) struct Update {
    pub(in crate::events) id: RecordId,
    key: RowKey,
    /// The record if nothing is stored.
    pub(in crate::events) content: Object,
    pub(in crate::events) rule: Rule,
}

/// The records of a batch that are combined with the stored ones. No two have the same id.
pub(in crate::events) struct Updates {
    keyspace: Keyspace,
    pub(in crate::events) names: Vec<Update>,
    /// Counts, whose samples are larger than names.
    pub(in crate::events) warnings: Vec<Update>,
}

impl Updates {
    pub(super) fn of(keyspace: Keyspace) -> Self {
        Self { keyspace, names: Vec::new(), warnings: Vec::new() }
    }

    pub(super) fn add(&mut self, (id, content): (RecordId, Object), rule: Rule) -> Result<()> {
        let key = self.keyspace.key(id.clone())?;
        let updates = match rule {
            Rule::EventName | Rule::PropertyName | Rule::GroupTypes { .. } => &mut self.names,
            Rule::Warning => &mut self.warnings,
        };
        updates.push(Update { id, key, content, rule });
        Ok(())
    }

    /// The records to write, combined with the stored ones.
    pub(super) async fn rows(&self, tx: &Transaction) -> Result<Vec<Row>, Failure> {
        let mut rows = Vec::with_capacity(self.names.len() + self.warnings.len());
        let names = self.names.chunks(NAMES_PER_READ);
        for some in names.chain(self.warnings.chunks(RECORDS_PER_STATEMENT)) {
            let keys: Vec<&RowKey> = some.iter().map(|update| &update.key).collect();
            let stored = tx.get_together::<Object>(&keys).await?;
            for (update, stored) in some.iter().zip(stored) {
                let combined = update.combined(stored);
                if let Some(content) = combined.map_err(|stale| tx.refusal(stale))? {
                    rows.push(self.keyspace.row(update.id.clone(), Value::Object(content))?);
                }
            }
        }
        Ok(rows)
    }
}

impl Update {
    /// The content to write. `None`: the stored one stays.
    ///
    /// # Errors
    /// The reason to refuse the batch.
    fn combined(&self, stored: Option<Object>) -> Result<Option<Object>, &'static str> {
        if self.rule == Rule::PropertyName && stored.is_some() {
            return Ok(None);
        }
        let (new, mut row) = (&self.content, stored.unwrap_or_default());
        match self.rule {
            Rule::EventName => see(&mut row, new),
            Rule::PropertyName => row.clone_from(new),
            Rule::Warning => {
                see(&mut row, new);
                row.insert("count", count(&row).saturating_add(count(new)));
                let mut samples = list(new, "samples");
                samples.extend(list(&row, "samples"));
                samples.truncate(SAMPLES);
                row.insert("samples", samples);
            }
            Rule::GroupTypes { expected } => {
                if list(&row, "names").len() != expected {
                    return Err("stale group types");
                }
                row.insert("names", list(new, "names"));
            }
        }
        Ok(Some(row))
    }
}

/// Notes when something was first and last seen.
fn see(row: &mut Object, new: &Object) {
    for field in ["first_at", "last_at"] {
        let stays = field == "first_at" && row.get(field).is_some_and(|at| !at.is_nullish());
        if let Some(at) = new.get(field).filter(|_| !stays) {
            row.insert(field, at.clone());
        }
    }
}

fn count(row: &Object) -> i64 {
    match row.get("count") {
        Some(Value::Number(count)) => count.to_int().unwrap_or(0),
        Some(_) | None => 0,
    }
}

fn list(row: &Object, field: &str) -> Vec<Value> {
    match row.get(field) {
        Some(Value::Array(values)) => values.to_vec(),
        Some(_) | None => Vec::new(),
    }
}
