//! Skipped and altered events, counted and sampled. The events themselves are in
//! `affected`.
//!
//! | table | id | holds |
//! |---|---|---|
//! | `ingestion_warning` | `[project, code, partition]` | count, first and last time, the last samples |

mod affected;

use std::sync::Arc;

use surrealdb::types::{Object, RecordId, RecordIdKey, RecordIdKeyRange, SurrealValue, Value};
use weir_model::warnings::{AffectedCursor, AffectedQuery};
use weir_model::{ProjectId, Timestamp};

use crate::bind::bind;
use crate::db::Statement;
use crate::erasures::Erased;
use crate::events::{Sample, WarningCount};
use crate::{Result, Store};

pub use self::affected::{
    Affected, AffectedBlock, AffectedBuilder, AffectedPage, DAYS, KEPT, forget, one, open, page,
};
pub(crate) use self::affected::{purge, rows as affected_rows};

const COUNTS: Statement = Statement::read("ingestion warnings", "SELECT * FROM $range;");

// Samples of others go away too. They are examples, and the next events bring others.
const FORGET_SAMPLES: Statement = Statement::delete(
    "erase samples",
    "FOR $id IN $ids { UPDATE $id SET samples = [] RETURN NONE };",
);

/// A reason or warning with its count over all partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counted {
    /// Code of the reason or warning.
    pub code: String,
    /// Number of events.
    pub count: u64,
    /// When it first happened.
    pub first_at: Timestamp,
    /// When it last happened.
    pub last_at: Timestamp,
    /// Some of the events, newest first.
    pub samples: Vec<Skipped>,
}

/// One skipped or altered event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Unique within the project.
    pub key: String,
    /// Code of the reason.
    pub code: String,
    /// When the event was received.
    pub received_at: Timestamp,
    /// Details of the reason: for example which transformation dropped the event.
    pub detail: Option<String>,
    /// Name of the event, if it had one.
    pub event: Option<String>,
    /// Distinct id of the event, if it had one.
    pub distinct_id: Option<String>,
    /// The payload as received, cut when it is long.
    pub payload: String,
}

#[derive(SurrealValue)]
struct CountRow {
    id: RecordId,
    count: i64,
    first_at: i64,
    last_at: i64,
    samples: Option<Vec<StoredSample>>,
}

/// A sample as it is stored in the record of its count.
#[derive(SurrealValue)]
struct StoredSample {
    received_at: i64,
    detail: Option<String>,
    event: Option<String>,
    distinct_id: Option<String>,
    payload: String,
}

/// All skipped or altered events of a project, counted by reason.
pub async fn counts(store: &Store, project: ProjectId) -> Result<Vec<Counted>> {
    let vars = bind! { range: of_project("ingestion_warning", project) };
    let rows: Vec<CountRow> = store.db.run(COUNTS, vars).await?.rows(0)?;
    let mut counts: Vec<Counted> = Vec::new();
    for row in rows {
        let RecordIdKey::Array(parts) = &row.id.key else { continue };
        let Some(Value::String(code)) = parts.get(1) else { continue };
        let kept = row.samples.unwrap_or_default().into_iter();
        let seen = Counted {
            code: code.clone(),
            count: u64::try_from(row.count).unwrap_or(0),
            first_at: Timestamp::from_micros(row.first_at),
            last_at: Timestamp::from_micros(row.last_at),
            samples: kept.map(|kept| skipped(code, kept)).collect(),
        };
        match counts.iter_mut().find(|c| c.code == seen.code) {
            Some(present) => {
                present.count += seen.count;
                present.first_at = present.first_at.min(seen.first_at);
                present.last_at = present.last_at.max(seen.last_at);
                present.samples.extend(seen.samples);
            }
            None => counts.push(seen),
        }
    }
    for counted in &mut counts {
        counted.samples.sort_by_key(|sample| std::cmp::Reverse(sample.received_at));
    }
    Ok(counts)
}

/// Removes what the samples of counts, and dropped and altered events, say of erased persons.
///
/// # Errors
/// When the store cannot be read or written; a further call continues.
pub(crate) async fn erase(store: &Store, project: ProjectId, erased: &Arc<Erased>) -> Result<()> {
    let vars = bind! { range: of_project("ingestion_warning", project) };
    let rows: Vec<CountRow> = store.db.run(COUNTS, vars).await?.rows(0)?;
    let is_erased = |sample: &StoredSample| {
        let id = sample.distinct_id.as_deref();
        erased.sample_taken_by(id, &sample.payload, sample.received_at).is_some()
    };
    let has_erased = |row: &CountRow| row.samples.iter().flatten().any(is_erased);
    let ids: Vec<RecordId> = rows.into_iter().filter(has_erased).map(|row| row.id).collect();
    if !ids.is_empty() {
        store.db.run(FORGET_SAMPLES, bind! { ids: ids }).await?;
    }
    affected::erase(store, project, erased).await
}

impl From<Sample> for StoredSample {
    fn from(sample: Sample) -> Self {
        let Sample { code: _, received_at, detail, event, distinct_id, payload } = sample;
        Self { received_at, detail, event, distinct_id, payload }
    }
}

fn skipped(code: &str, kept: StoredSample) -> Skipped {
    Skipped {
        key: String::new(),
        code: code.to_owned(),
        received_at: Timestamp::from_micros(kept.received_at),
        detail: kept.detail,
        event: kept.event,
        distinct_id: kept.distinct_id,
        payload: kept.payload,
    }
}

/// The latest dropped events of a project, newest first.
pub async fn dropped(store: &Store, project: ProjectId, limit: usize) -> Result<Vec<Skipped>> {
    let query = AffectedQuery { is_dropped: true, limit, ..AffectedQuery::default() };
    let found = page(store, project, &query).await?.found;
    Ok(found.into_iter().map(|(cursor, event)| Skipped::of(cursor, event)).collect())
}

impl Skipped {
    /// A dropped event as the live list shows it.
    pub fn of(cursor: AffectedCursor, event: Affected) -> Self {
        Self {
            key: sample_key(cursor.partition.into(), cursor.number),
            code: event.codes.into_iter().next().unwrap_or_default(),
            received_at: cursor.received_at,
            detail: event.detail,
            event: event.event,
            distinct_id: event.distinct_id,
            payload: event.payload,
        }
    }
}

/// The key of a sample in the live list.
pub fn sample_key(partition: i64, number: i64) -> String {
    format!("drop-{partition}-{number}")
}

/// Partition and number of the sample with this key.
pub fn read_sample_key(key: &str) -> Option<(u16, i64)> {
    let (partition, number) = key.strip_prefix("drop-")?.split_once('-')?;
    Some((partition.parse().ok()?, number.parse().ok()?))
}

/// The record of a count, with what a batch adds to it.
pub(crate) fn count_record(
    project: ProjectId,
    partition: u16,
    warning: WarningCount,
) -> (RecordId, Object) {
    let parts = vec![
        Value::Number(project.0.into()),
        Value::String(warning.code),
        Value::Number(i64::from(partition).into()),
    ];
    let samples = warning.sample.into_iter().map(|sample| StoredSample::from(sample).into_value());
    let mut object = Object::new();
    object.insert("count", warning.count);
    object.insert("first_at", warning.seen.from);
    object.insert("last_at", warning.seen.to);
    object.insert("samples", samples.collect::<Vec<Value>>());
    (RecordId::new("ingestion_warning", RecordIdKey::Array(parts.into())), object)
}

/// All ids of a table that begin with the project: a few hundred at most.
pub(crate) fn of_project(table: &'static str, project: ProjectId) -> RecordId {
    let key = |n: i64| RecordIdKey::Array(vec![Value::Number(n.into())].into());
    let bounds = RecordIdKeyRange {
        start: std::ops::Bound::Included(key(project.0)),
        end: std::ops::Bound::Excluded(key(project.0 + 1)),
    };
    RecordId::new(table, RecordIdKey::Range(Box::new(bounds)))
}
