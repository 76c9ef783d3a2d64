//! The event layout that was not chosen: a record per event, and pointer records for the
//! other orders. Kept so that the figures of `docs/adr/0003-event-layout.md` can be
//! reproduced. Compiled for the benchmark only.
//!
//! | table | id | holds |
//! |---|---|---|
//! | `measure_event` | `[project, arrival]` | the event |
//! | `measure_uuid` | `[project, uuid]` | its arrival number |
//! | `measure_time` | `[project, second, arrival]` | nothing |
//! | `measure_id` | `[project, distinct id, arrival]` | nothing |

use std::ops::Bound;

use surrealdb::types::{Array, RecordId, RecordIdKey, RecordIdKeyRange, SurrealValue, Value};
use weir_model::ProjectId;

use crate::bind::bind;
use crate::db::Statement;
use crate::events::StoredEvent;
use crate::{Error, Result, Store};

/// The first range of arrival numbers that a read by distinct id searches.
const FIRST_ARRIVALS: i64 = 4_096;

const WRITE: Statement = Statement::write(
    "measure: write",
    "BEGIN;
    INSERT INTO measure_uuid $uuids RETURN NONE;
    INSERT INTO measure_event $events RETURN NONE;
    INSERT INTO measure_time $times RETURN NONE;
    INSERT INTO measure_id $ids RETURN NONE;
    COMMIT;",
)
.within(std::time::Duration::from_secs(60));
const EVENTS: Statement = Statement::read("measure: events", "SELECT * FROM $ids;");
const RANGE: Statement = Statement::read("measure: range", "SELECT VALUE id FROM $range;");

#[derive(SurrealValue)]
struct EventRow {
    id: RecordId,
    uuid: Value,
    event: String,
    distinct_id: String,
    timestamp: i64,
    received_at: i64,
    properties: String,
}

#[derive(SurrealValue)]
struct UuidRow {
    id: RecordId,
    arrival: i64,
}

#[derive(SurrealValue)]
struct IdRow {
    id: RecordId,
}

/// Writes events with their pointers in one synced transaction.
///
/// # Errors
/// When nothing was written.
pub async fn write(store: &Store, project: ProjectId, events: &[StoredEvent]) -> Result<()> {
    let count = events.len();
    let mut rows = Vec::with_capacity(count);
    let (mut uuids, mut times, mut ids) =
        (Vec::with_capacity(count), Vec::with_capacity(count), Vec::with_capacity(count));
    for event in events {
        let arrival = number(event.arrival);
        let uuid = Value::Uuid(event.uuid.into());
        uuids.push(UuidRow { id: id("measure_uuid", vec![int(project.0), uuid.clone()]), arrival });
        times.push(IdRow {
            id: id(
                "measure_time",
                vec![int(project.0), int(second(event.timestamp)), int(arrival)],
            ),
        });
        let whom = Value::String(event.distinct_id.clone());
        ids.push(IdRow { id: id("measure_id", vec![int(project.0), whom, int(arrival)]) });
        rows.push(EventRow {
            id: id("measure_event", vec![int(project.0), int(arrival)]),
            uuid,
            event: event.event.clone(),
            distinct_id: event.distinct_id.clone(),
            timestamp: event.timestamp,
            received_at: event.received_at,
            properties: event.properties.clone(),
        });
    }
    let vars = bind! { uuids: uuids, events: rows, times: times, ids: ids };
    store.db.run(WRITE, vars).await?;
    Ok(())
}

/// Reads the `limit` events before arrival number `before` and returns their number.
///
/// # Errors
/// When the store cannot be read.
pub async fn by_arrival(
    store: &Store,
    project: ProjectId,
    before: u64,
    limit: usize,
) -> Result<usize> {
    let before = number(before);
    let first = before.saturating_sub(i64::try_from(limit).unwrap_or(i64::MAX)).max(1);
    fetch(store, project, (first..before).collect()).await
}

/// Reads the newest `limit` events before a time (microseconds) and returns their number.
///
/// # Errors
/// When the store cannot be read.
pub async fn by_time(
    store: &Store,
    project: ProjectId,
    before: i64,
    limit: usize,
) -> Result<usize> {
    let mut arrivals = Vec::new();
    let (mut high, mut width) = (second(before), 1);
    // The search ends after ten years without an event.
    while arrivals.len() < limit && width < 400_000_000 {
        let range = range("measure_time", vec![int(project.0)], high - width, high);
        let mut part = scan(store, range).await?;
        part.reverse();
        arrivals.append(&mut part);
        high -= width;
        width *= 4;
    }
    arrivals.truncate(limit);
    fetch(store, project, arrivals).await
}

/// Reads the newest `limit` events of a distinct id before arrival number `before` and
/// returns their number.
///
/// # Errors
/// When the store cannot be read.
pub async fn by_distinct_id(
    store: &Store,
    project: ProjectId,
    distinct_id: &str,
    before: u64,
    limit: usize,
) -> Result<usize> {
    let mut arrivals = Vec::new();
    let (mut high, mut width) = (number(before), FIRST_ARRIVALS);
    while arrivals.len() < limit && high > 0 {
        let low = high.saturating_sub(width).max(0);
        let start = vec![int(project.0), Value::String(distinct_id.to_owned())];
        let mut part = scan(store, range("measure_id", start, low, high)).await?;
        part.reverse();
        arrivals.append(&mut part);
        high = low;
        width *= 4;
    }
    arrivals.truncate(limit);
    fetch(store, project, arrivals).await
}

/// The arrival numbers at the end of the ids of a range.
async fn scan(store: &Store, range: RecordId) -> Result<Vec<i64>> {
    let found: Vec<RecordId> = store.db.run(RANGE, bind! { range: range }).await?.rows(0)?;
    found.iter().map(last_number).collect()
}

async fn fetch(store: &Store, project: ProjectId, arrivals: Vec<i64>) -> Result<usize> {
    let ids: Vec<RecordId> =
        arrivals.iter().map(|n| id("measure_event", vec![int(project.0), int(*n)])).collect();
    let rows: Vec<EventRow> = store.db.run(EVENTS, bind! { ids: ids }).await?.rows(0)?;
    Ok(rows.len())
}

fn last_number(record: &RecordId) -> Result<i64> {
    let wrong =
        || Error::Shape { statement: RANGE.name, detail: "unexpected record id".to_owned() };
    let RecordIdKey::Array(parts) = &record.key else { return Err(wrong()) };
    match parts.iter().last() {
        Some(Value::Number(number)) => number.to_int().ok_or_else(wrong),
        Some(_) | None => Err(wrong()),
    }
}

/// Ids that begin with `start` and continue with `low` (inclusive) to `high` (exclusive).
fn range(table: &'static str, start: Vec<Value>, low: i64, high: i64) -> RecordId {
    let key = |end: i64| {
        let mut parts = start.clone();
        parts.push(int(end));
        RecordIdKey::Array(Array::from(parts))
    };
    let bounds =
        RecordIdKeyRange { start: Bound::Included(key(low)), end: Bound::Excluded(key(high)) };
    RecordId::new(table, RecordIdKey::Range(Box::new(bounds)))
}

fn id(table: &'static str, parts: Vec<Value>) -> RecordId {
    RecordId::new(table, RecordIdKey::Array(Array::from(parts)))
}

fn int(value: i64) -> Value {
    Value::Number(value.into())
}

fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn second(micros: i64) -> i64 {
    micros.div_euclid(1_000_000)
}
