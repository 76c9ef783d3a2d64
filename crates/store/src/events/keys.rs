//! Record ids of the event tables, built from typed parts.

use surrealdb::types::{Array, RecordId, RecordIdKey, Value};
use uuid::Uuid;
use weir_model::ProjectId;

use crate::Error;

/// Widths of the ranges of event time with pointers to blocks, in seconds. A block takes
/// the narrowest width with which it needs few pointers.
pub(super) const WIDTHS: [i64; 4] = [60, 3_600, 86_400, 30 * 86_400];
/// The largest number of pointers that one write adds for a block, except with the widest
/// ranges.
const POINTERS: usize = 8;

fn id(table: &'static str, parts: Vec<Value>) -> RecordId {
    RecordId::new(table, RecordIdKey::Array(Array::from(parts)))
}

fn number(value: u64) -> Value {
    int(i64::try_from(value).unwrap_or(i64::MAX))
}

fn int(value: i64) -> Value {
    Value::Number(value.into())
}

/// `event_block:[project, partition, first]`
pub(super) fn block(project: ProjectId, partition: u16, first: u64) -> RecordId {
    id("event_block", vec![int(project.0), int(partition.into()), number(first)])
}

/// `event_summary:[project, partition, first]`
pub(super) fn summary(project: ProjectId, partition: u16, first: u64) -> RecordId {
    id("event_summary", vec![int(project.0), int(partition.into()), number(first)])
}

/// `event_head:[project, partition]`
pub(crate) fn head(project: ProjectId, partition: u16) -> RecordId {
    id("event_head", vec![int(project.0), int(partition.into())])
}

/// `event_uuid:[project, uuid]`
pub(super) fn uuid(project: ProjectId, uuid: Uuid) -> RecordId {
    id("event_uuid", vec![int(project.0), Value::Uuid(uuid.into())])
}

/// `event_uuid:[project]`, with which the ids of all uuids of a project begin.
pub(super) fn uuids(project: ProjectId) -> RecordId {
    id("event_uuid", vec![int(project.0)])
}

/// `event_time:[project, width, bucket, partition, first]`
pub(super) fn time(
    project: ProjectId,
    width: i64,
    bucket: i64,
    partition: u16,
    first: u64,
) -> RecordId {
    let parts = vec![int(project.0), int(width), int(bucket), int(partition.into()), number(first)];
    id("event_time", parts)
}

/// `event_time:[project, width, bucket]`, which is no record but the bound of a range.
pub(super) fn time_bucket(project: ProjectId, width: i64, bucket: i64) -> RecordId {
    id("event_time", vec![int(project.0), int(width), int(bucket)])
}

/// `event_segment:[project, partition, first]`
pub(super) fn segment(project: ProjectId, partition: u16, first: u64) -> RecordId {
    id("event_segment", vec![int(project.0), int(partition.into()), number(first)])
}

/// `event_segment_sums:<file>`
pub(super) fn segment_sums(file: &str) -> RecordId {
    RecordId::new("event_segment_sums", RecordIdKey::String(file.to_owned()))
}

/// The bounds of the ids of a table whose ids are arrays that begin with a project.
pub(super) fn all_projects(table: &'static str) -> (RecordId, RecordId) {
    (id(table, vec![int(0)]), id(table, vec![int(i64::MAX)]))
}

/// `event_removed:<project>`
pub(super) fn removed(project: ProjectId) -> RecordId {
    RecordId::new("event_removed", RecordIdKey::Number(project.0))
}

/// `event_columns:<project>`
pub(super) fn columns(project: ProjectId) -> RecordId {
    RecordId::new("event_columns", RecordIdKey::Number(project.0))
}

/// `event_uuid_run:[number]`
pub(super) fn uuid_run(run: u64) -> RecordId {
    id("event_uuid_run", vec![number(run)])
}

/// `ingest_position:<partition>`
pub(super) fn position(partition: u16) -> RecordId {
    RecordId::new("ingest_position", RecordIdKey::Number(partition.into()))
}

/// The number at `index` of an array id.
pub(crate) fn part(record: &RecordId, index: usize, statement: &'static str) -> Result<i64, Error> {
    let wrong = || Error::Shape { statement, detail: "unexpected record id".to_owned() };
    let RecordIdKey::Array(parts) = &record.key else { return Err(wrong()) };
    match parts.get(index) {
        Some(Value::Number(number)) => number.to_int().ok_or_else(wrong),
        Some(_) | None => Err(wrong()),
    }
}

/// The width and the ranges (buckets) of event time that contain `times` (microseconds).
pub(super) fn time_buckets(times: &[i64]) -> (i64, Vec<i64>) {
    let mut chosen = (WIDTHS[0], Vec::new());
    for width in WIDTHS {
        let mut buckets: Vec<i64> = times.iter().map(|t| bucket(*t, width)).collect();
        buckets.sort_unstable();
        buckets.dedup();
        let few = buckets.len() <= POINTERS;
        chosen = (width, buckets);
        if few {
            break;
        }
    }
    chosen
}

/// The range of `width` seconds that contains a time in microseconds.
pub(super) fn bucket(micros: i64, width: i64) -> i64 {
    micros.div_euclid(width * 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::time_buckets;

    #[test]
    fn blocks_take_the_narrowest_width_that_needs_few_pointers() {
        let minute = 60_000_000;
        assert_eq!(time_buckets(&[0, 5, minute]), (60, vec![0, 1]));
        let hours: Vec<i64> = (0..20).map(|n| n * 7 * minute).collect();
        assert_eq!(time_buckets(&hours), (3600, vec![0, 1, 2]));
        let years: Vec<i64> = (0..1000).map(|n| n * 40 * 24 * 60 * minute).collect();
        assert_eq!(time_buckets(&years).0, 30 * 86_400);
    }
}
