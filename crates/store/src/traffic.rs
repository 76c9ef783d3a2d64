//! Traffic of projects: counted in memory during a minute ([`TrafficCounters`]), written once a
//! minute.
//!
//! | table | id | holds |
//! |---|---|---|
//! | `traffic_minute` | `[project, minute]` | counts of a minute; kept for a day |
//! | `traffic_hour` | `[project, hour]` | counts of an hour; kept for 30 days |
//! | `traffic_names` | `[project, day]` | events by name of a day (UTC); kept for 31 days |
//! | `unknown_keys` | 0 | the last keys that no project has, by sender |
//! | `refused_requests` | project | the last refused requests |
//!
//! Counts of the instance are stored under the project 0, which does not exist. Only one
//! task writes these records. So a record is read, added to and replaced, and a retry
//! writes the same. Counts since the last write are lost if the process does not stop in
//! order.

mod counters;
mod names;
mod refused;

use std::collections::BTreeMap;

use surrealdb::types::{Array, RecordId, RecordIdKey, SurrealValue, Value};
use weir_model::traffic::{Counts, UnknownKey};
use weir_model::{ProjectId, Timestamp};

pub use self::counters::{Applied, Pending, TrafficCounters};
pub use self::names::{NameCounts, names_since, write_names};
pub use self::refused::{Refusals, refused, write_refused};
use crate::bind::bind;
use crate::db::Statement;
use crate::events::{part, range};
use crate::{Result, Store};

/// The project number of counts without a known project.
pub const INSTANCE: ProjectId = ProjectId(0);
/// The number of minutes that are kept.
pub const MINUTES: i64 = 24 * 60;
/// The number of hours that are kept.
pub const HOURS: i64 = 30 * 24;
/// The number of senders of unknown keys that are kept.
const UNKNOWN: usize = 50;
/// Records that one transaction writes.
const RECORDS_PER_STATEMENT: usize = 100;

const READ: Statement = Statement::read("traffic by id", "SELECT * FROM $ids;");
const RANGE: Statement = Statement::read("traffic in order", "SELECT * FROM $range;");
const WRITE: Statement = Statement::write(
    "traffic write",
    "BEGIN; FOR $row IN $rows { UPSERT $row.id CONTENT $row RETURN NONE }; COMMIT;",
);
const DELETE: Statement = Statement::delete(
    "traffic of long ago",
    "BEGIN; DELETE $minutes RETURN NONE; DELETE $hours RETURN NONE; DELETE $names RETURN NONE;
    COMMIT;",
)
.within(std::time::Duration::from_secs(60));

/// The length of the time ranges that counts are kept for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Ranges of a minute.
    Minute,
    /// Ranges of an hour.
    Hour,
}

impl Unit {
    const fn table(self) -> &'static str {
        match self {
            Self::Minute => "traffic_minute",
            Self::Hour => "traffic_hour",
        }
    }

    /// The length in seconds.
    #[must_use]
    pub const fn seconds(self) -> i64 {
        match self {
            Self::Minute => 60,
            Self::Hour => 3_600,
        }
    }

    /// The number of this unit's ranges that have begun since 1970.
    #[must_use]
    pub fn at(self, time: Timestamp) -> i64 {
        time.micros().div_euclid(self.seconds() * 1_000_000)
    }
}

#[derive(Clone, SurrealValue)]
struct StoredReason {
    code: String,
    count: i64,
}

#[derive(SurrealValue)]
struct Row {
    id: RecordId,
    accepted: i64,
    dropped: i64,
    rejected: i64,
    requests: i64,
    bytes: i64,
    largest: i64,
    waiting: i64,
    took: Vec<i64>,
    reasons: Vec<StoredReason>,
}

#[derive(SurrealValue)]
struct StoredUnknown {
    mask: String,
    caller: String,
    count: i64,
    first_at: i64,
    last_at: i64,
}

#[derive(SurrealValue)]
struct UnknownRow {
    id: RecordId,
    keys: Vec<StoredUnknown>,
}

/// Counts of a project from one minute or hour (inclusive) to another (exclusive), by
/// their numbers. Those without traffic are not in the result.
///
/// # Errors
/// When the store cannot be read.
pub async fn between(
    store: &Store,
    project: ProjectId,
    unit: Unit,
    from: i64,
    to: i64,
) -> Result<BTreeMap<i64, Counts>> {
    let ids = range(unit.table(), &[project.0, from], &[project.0, to]);
    let rows: Vec<Row> = store.db.run(RANGE, bind! { range: ids }).await?.rows(0)?;
    rows.into_iter().map(|row| Ok((part(&row.id, 1, RANGE.name)?, counts(row)))).collect()
}

/// Adds counts to their minutes and hours.
///
/// # Errors
/// When the store cannot be read or written. A part of the counts may be written.
pub async fn write(store: &Store, counted: &BTreeMap<(ProjectId, i64), Counts>) -> Result<()> {
    let mut sums: Vec<(RecordId, Counts)> = Vec::new();
    let mut hours: BTreeMap<(ProjectId, i64), Counts> = BTreeMap::new();
    for ((project, minute), counts) in counted {
        sums.push((key(Unit::Minute, *project, *minute), counts.clone()));
        hours.entry((*project, minute.div_euclid(60))).or_default().add(counts);
    }
    sums.extend(hours.into_iter().map(|((project, hour), counts)| {
        let id = key(Unit::Hour, project, hour);
        (id, counts)
    }));
    for some in sums.chunks_mut(RECORDS_PER_STATEMENT) {
        let ids: Vec<RecordId> = some.iter().map(|(id, _)| id.clone()).collect();
        let present: Vec<Row> = store.db.run(READ, bind! { ids: ids }).await?.rows(0)?;
        for row in present {
            if let Some((_, sum)) = some.iter_mut().find(|(id, _)| *id == row.id) {
                sum.add(&counts(row));
            }
        }
        let rows: Vec<Row> = some.iter().map(|(id, sum)| row(id.clone(), sum)).collect();
        store.db.run(WRITE, bind! { rows: rows }).await?;
    }
    Ok(())
}

/// Removes counts that are kept no longer.
///
/// # Errors
/// When the store cannot be written; a further call continues.
pub async fn forget(store: &Store, project: ProjectId, now: Timestamp) -> Result<()> {
    let minute = Unit::Minute.at(now) - MINUTES;
    let hour = Unit::Hour.at(now) - HOURS;
    remove(store, project, minute, hour, names::day(now.micros()) - names::DAYS).await
}

/// Removes all counts of a project.
///
/// # Errors
/// When the store cannot be written; a further call continues.
pub(crate) async fn purge(store: &Store, project: ProjectId) -> Result<()> {
    store.traffic().forget(project);
    remove(store, project, i64::MAX, i64::MAX, i64::MAX).await?;
    refused::purge(store, project).await
}

async fn remove(store: &Store, project: ProjectId, minute: i64, hour: i64, day: i64) -> Result<()> {
    let before = |table, end: i64| range(table, &[project.0, 0], &[project.0, end]);
    let vars = bind! {
        minutes: before(Unit::Minute.table(), minute),
        hours: before(Unit::Hour.table(), hour),
        names: before(names::TABLE, day),
    };
    store.db.run(DELETE, vars).await.map(drop)
}

/// The last unknown keys by sender, newest first.
///
/// # Errors
/// When the store cannot be read.
pub async fn unknown_keys(store: &Store) -> Result<Vec<UnknownKey>> {
    let row: Option<UnknownRow> =
        store.db.run(READ, bind! { ids: vec![unknown_id()] }).await?.row(0)?;
    let shown = |stored: StoredUnknown| UnknownKey {
        mask: stored.mask,
        caller: stored.caller,
        count: unsigned(stored.count),
        first_at: Timestamp::from_micros(stored.first_at),
        last_at: Timestamp::from_micros(stored.last_at),
    };
    Ok(row.map(|row| row.keys.into_iter().map(shown).collect()).unwrap_or_default())
}

/// Adds unknown keys to the stored ones.
///
/// # Errors
/// When the store cannot be read or written.
pub async fn write_unknown(store: &Store, seen: &[UnknownKey]) -> Result<()> {
    if seen.is_empty() {
        return Ok(());
    }
    let united = unite(unknown_keys(store).await?, seen);
    let stored = |key: UnknownKey| StoredUnknown {
        mask: key.mask,
        caller: key.caller,
        count: signed(key.count),
        first_at: key.first_at.micros(),
        last_at: key.last_at.micros(),
    };
    let row = UnknownRow { id: unknown_id(), keys: united.into_iter().map(stored).collect() };
    store.db.run(WRITE, bind! { rows: vec![row] }).await.map(drop)
}

/// Merges both lists: one entry per key and sender, newest first, up to the number that
/// is kept.
#[must_use]
pub fn unite(mut keys: Vec<UnknownKey>, more: &[UnknownKey]) -> Vec<UnknownKey> {
    for seen in more {
        let same = keys.iter_mut().find(|key| key.mask == seen.mask && key.caller == seen.caller);
        match same {
            Some(key) => {
                key.count += seen.count;
                key.first_at = key.first_at.min(seen.first_at);
                key.last_at = key.last_at.max(seen.last_at);
            }
            None => keys.push(seen.clone()),
        }
    }
    keys.sort_by_key(|key| std::cmp::Reverse(key.last_at));
    keys.truncate(UNKNOWN);
    keys
}

fn key(unit: Unit, project: ProjectId, number: i64) -> RecordId {
    let parts = vec![Value::Number(project.0.into()), Value::Number(number.into())];
    RecordId::new(unit.table(), RecordIdKey::Array(Array::from(parts)))
}

fn unknown_id() -> RecordId {
    RecordId::new("unknown_keys", RecordIdKey::Number(0))
}

fn row(id: RecordId, counts: &Counts) -> Row {
    let reason =
        |(code, count): (&String, &u64)| StoredReason { code: code.clone(), count: signed(*count) };
    Row {
        id,
        accepted: signed(counts.accepted),
        dropped: signed(counts.dropped),
        rejected: signed(counts.rejected),
        requests: signed(counts.requests),
        bytes: signed(counts.bytes),
        largest: signed(counts.largest),
        waiting: signed(counts.waiting),
        took: counts.took.iter().map(|count| signed(*count)).collect(),
        reasons: counts.reasons.iter().map(reason).collect(),
    }
}

fn counts(row: Row) -> Counts {
    let mut counts = Counts {
        accepted: unsigned(row.accepted),
        dropped: unsigned(row.dropped),
        rejected: unsigned(row.rejected),
        requests: unsigned(row.requests),
        bytes: unsigned(row.bytes),
        largest: unsigned(row.largest),
        waiting: unsigned(row.waiting),
        ..Counts::default()
    };
    for (class, count) in counts.took.iter_mut().zip(row.took) {
        *class = unsigned(count);
    }
    counts.reasons.extend(row.reasons.into_iter().map(|kept| (kept.code, unsigned(kept.count))));
    counts
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Location, Settings};

    const PROJECT: ProjectId = ProjectId(7);

    fn some(accepted: u64) -> Counts {
        let mut counts = Counts { accepted, ..Counts::default() };
        counts.answered(100, 4);
        counts.refused(20, "invalid_payload");
        counts
    }

    #[tokio::test]
    async fn minutes_add_up_to_hours_and_go_when_they_are_old() {
        let store = Store::open(&Location::Memory, Settings::default()).await.unwrap();
        let minute = 60 * 60 * 24 * 365;
        let counted =
            [((PROJECT, minute), some(3)), ((PROJECT, minute + 1), some(4))].into_iter().collect();
        write(&store, &counted).await.unwrap();
        write(&store, &counted).await.unwrap();
        let minutes = between(&store, PROJECT, Unit::Minute, minute, minute + 2).await.unwrap();
        let found: Vec<(i64, u64)> = minutes.iter().map(|(at, c)| (*at, c.accepted)).collect();
        assert_eq!(found, [(minute, 6), (minute + 1, 8)]);
        let hour = minute / 60;
        let hours = between(&store, PROJECT, Unit::Hour, hour, hour + 1).await.unwrap();
        let all = hours.get(&hour).unwrap();
        assert_eq!((all.accepted, all.rejected, all.within(95)), (14, 4, Some(5)));
        assert_eq!(all.reasons.get("invalid_payload"), Some(&4));
        assert!(between(&store, ProjectId(8), Unit::Hour, 0, i64::MAX).await.unwrap().is_empty());

        let later = Timestamp::from_micros((minute + MINUTES + 1) * 60_000_000);
        forget(&store, PROJECT, later).await.unwrap();
        let left = between(&store, PROJECT, Unit::Minute, 0, i64::MAX).await.unwrap();
        assert_eq!(left.keys().copied().collect::<Vec<_>>(), [minute + 1]);
        purge(&store, PROJECT).await.unwrap();
        assert!(between(&store, PROJECT, Unit::Hour, 0, i64::MAX).await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn unknown_keys_are_kept_by_sender() {
        let store = Store::open(&Location::Memory, Settings::default()).await.unwrap();
        let seen = |mask: &str, at: i64| UnknownKey {
            mask: mask.to_owned(),
            caller: "192.0.2.1".to_owned(),
            count: 2,
            first_at: Timestamp::from_micros(at),
            last_at: Timestamp::from_micros(at),
        };
        write_unknown(&store, &[seen("phc_a", 1), seen("phc_b", 2)]).await.unwrap();
        write_unknown(&store, &[seen("phc_a", 3)]).await.unwrap();
        let found = unknown_keys(&store).await.unwrap();
        let reported: Vec<(&str, u64)> =
            found.iter().map(|key| (key.mask.as_str(), key.count)).collect();
        assert_eq!(reported, [("phc_a", 4), ("phc_b", 2)]);
    }
}
