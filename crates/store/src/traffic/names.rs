//! Events by name and day of receipt (UTC).
//!
//! What belongs here: the counts of a day, their bounds, and their table. What does not:
//! collecting the counts since the last write (`counters`).

use std::collections::BTreeMap;

use surrealdb::types::{Array, RecordId, RecordIdKey, SurrealValue, Value};
use weir_model::{ProjectId, Timestamp};

use super::{READ, RECORDS_PER_STATEMENT, StoredReason, WRITE, signed, unsigned};
use crate::bind::bind;
use crate::db::Statement;
use crate::events::range;
use crate::{Result, Store};

/// The number of days that are kept.
pub(super) const DAYS: i64 = 31;
/// Names that are counted in a day of a project. Events of further names are counted
/// together.
const NAMES: usize = 100;
/// Upper bound of bytes in a name. Events with a longer one are counted together.
const NAME_BYTES: usize = 200;
pub(super) const TABLE: &str = "traffic_names";

const RANGE: Statement = Statement::read("names in order", "SELECT * FROM $range;");

/// The number of the day of a time: days since 1970 in UTC.
pub(super) fn day(micros: i64) -> i64 {
    micros.div_euclid(24 * 60 * 60 * 1_000_000)
}

/// Numbers of events by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NameCounts {
    /// Events by name.
    pub names: BTreeMap<String, u64>,
    /// Events of further names.
    pub others: u64,
}

impl NameCounts {
    /// Counts events of a name.
    pub fn count(&mut self, name: &str, events: u64) {
        if let Some(count) = self.names.get_mut(name) {
            *count += events;
        } else if name.len() <= NAME_BYTES && self.names.len() < NAMES {
            self.names.insert(name.to_owned(), events);
        } else {
            self.others += events;
        }
    }

    /// Adds other counts.
    pub fn add(&mut self, other: &Self) {
        for (name, events) in &other.names {
            self.count(name, *events);
        }
        self.others += other.others;
    }
}

#[derive(SurrealValue)]
struct Row {
    id: RecordId,
    names: Vec<StoredReason>,
    others: i64,
}

impl Row {
    fn counts(self) -> NameCounts {
        let names = self.names.into_iter().map(|row| (row.code, unsigned(row.count)));
        NameCounts { names: names.collect(), others: unsigned(self.others) }
    }
}

/// Adds counts to those of their days.
///
/// # Errors
/// When the store cannot be read or written. A part of the counts may be written.
pub async fn write_names(
    store: &Store,
    counted: &BTreeMap<(ProjectId, i64), NameCounts>,
) -> Result<()> {
    let mut sums: Vec<(RecordId, NameCounts)> = counted
        .iter()
        .map(|((project, day), counts)| (key(*project, *day), counts.clone()))
        .collect();
    for some in sums.chunks_mut(RECORDS_PER_STATEMENT) {
        let ids: Vec<RecordId> = some.iter().map(|(id, _)| id.clone()).collect();
        let present: Vec<Row> = store.db.run(READ, bind! { ids: ids }).await?.rows(0)?;
        for row in present {
            if let Some((_, sum)) = some.iter_mut().find(|(id, _)| *id == row.id) {
                let newer = std::mem::replace(sum, row.counts());
                sum.add(&newer);
            }
        }
        let row = |(id, sum): &(RecordId, NameCounts)| Row {
            id: id.clone(),
            names: sum
                .names
                .iter()
                .map(|(name, count)| StoredReason { code: name.clone(), count: signed(*count) })
                .collect(),
            others: signed(sum.others),
        };
        let rows: Vec<Row> = some.iter().map(row).collect();
        store.db.run(WRITE, bind! { rows: rows }).await?;
    }
    Ok(())
}

/// The events of a project by name since the day of a time. Each day counts at most a
/// hundred names, so the result is bounded.
///
/// # Errors
/// When the store cannot be read.
pub async fn names_since(store: &Store, project: ProjectId, from: Timestamp) -> Result<NameCounts> {
    let ids = range(TABLE, &[project.0, day(from.micros())], &[project.0, i64::MAX]);
    let rows: Vec<Row> = store.db.run(RANGE, bind! { range: ids }).await?.rows(0)?;
    let mut all = NameCounts::default();
    for row in rows {
        let of_day = row.counts();
        for (name, events) in of_day.names {
            *all.names.entry(name).or_default() += events;
        }
        all.others += of_day.others;
    }
    Ok(all)
}

fn key(project: ProjectId, day: i64) -> RecordId {
    let parts = vec![Value::Number(project.0.into()), Value::Number(day.into())];
    RecordId::new(TABLE, RecordIdKey::Array(Array::from(parts)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Location, Settings};

    const PROJECT: ProjectId = ProjectId(7);
    const DAY: i64 = 24 * 60 * 60 * 1_000_000;

    fn counted(names: &[(&str, u64)]) -> NameCounts {
        let mut counts = NameCounts::default();
        for (name, events) in names {
            counts.count(name, *events);
        }
        counts
    }

    #[tokio::test]
    async fn days_add_up_and_go_when_they_are_old() {
        let store = Store::open(&Location::Memory, Settings::default()).await.unwrap();
        let days = [
            ((PROJECT, 20_000), counted(&[("a", 2), ("b", 1)])),
            ((PROJECT, 20_001), counted(&[("a", 5)])),
            ((ProjectId(8), 20_001), counted(&[("c", 9)])),
        ];
        let days = days.into_iter().collect();
        write_names(&store, &days).await.unwrap();
        write_names(&store, &days).await.unwrap();
        let since = async |day: i64| {
            let from = Timestamp::from_micros(day * DAY + 7);
            names_since(&store, PROJECT, from).await.unwrap()
        };
        assert_eq!(since(20_000).await, counted(&[("a", 14), ("b", 2)]));
        assert_eq!(since(20_001).await, counted(&[("a", 10)]));
        let later = Timestamp::from_micros((20_001 + DAYS) * DAY);
        super::super::forget(&store, PROJECT, later).await.unwrap();
        assert_eq!(since(0).await, counted(&[("a", 10)]));
        super::super::purge(&store, PROJECT).await.unwrap();
        assert_eq!(since(0).await, NameCounts::default());
    }

    #[test]
    fn names_of_a_day_are_bounded() {
        let mut counts = NameCounts::default();
        for number in 0..NAMES + 5 {
            counts.count(&format!("name {number}"), 2);
        }
        counts.count(&"x".repeat(NAME_BYTES + 1), 3);
        counts.count("name 0", 1);
        assert_eq!((counts.names.len(), counts.others), (NAMES, 13));
        assert_eq!(counts.names.get("name 0"), Some(&3));
    }
}
