//! The records of the persons or groups that a list shows, as they are now.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use serde_json::{Map, Value};
use weir_model::Timestamp;
use weir_questions::query::{ActorColumn, ActorsQuery, Scope};
use weir_questions::results::Actor;
use weir_segments::ColumnName;

use super::{Id, Row, Search, actors_times};
use crate::batch::Needs;
use crate::error::Result;
use crate::plan::Plan;
use crate::run::Run;
use crate::scan::scan;
use crate::sql::{GroupRow, PersonRow, RECORDS, RowSource};

/// Most bytes of the properties and distinct ids of a page. One record can have more.
const BYTES_MAX: usize = 8 << 20;

/// Notes when the persons or groups of rows were first seen.
pub(super) fn read_times(
    source: &dyn RowSource,
    run: &Run<'_>,
    group_type: Option<u8>,
    rows: &mut [Row],
) -> Result<()> {
    for rows in rows.chunks_mut(RECORDS) {
        run.cancel.check()?;
        let mut times: Vec<Option<i64>> = vec![None; rows.len()];
        let mut note = |at: usize, time: i64| {
            if let Some(place) = times.get_mut(at) {
                *place = Some(time);
            }
        };
        match group_type {
            None => {
                let persons: Vec<u32> = rows.iter().map(|row| row.actor).collect();
                source.person_records(&persons, &mut |at, row: PersonRow<'_>| {
                    note(at, row.created_at);
                })?;
            }
            Some(index) => {
                source.group_records(index, &keys(rows), &mut |at, row: GroupRow<'_>| {
                    note(at, row.created_at);
                })?;
            }
        }
        for (row, time) in rows.iter_mut().zip(times) {
            row.created_at = time;
        }
    }
    Ok(())
}

fn keys(rows: &[Row]) -> Vec<&str> {
    let keys = rows.iter().filter_map(|row| match &row.id {
        Id::Group(key) => Some(&**key),
        Id::Person(_) => None,
    });
    keys.collect()
}

/// The rows of results, and how many of them are of persons or groups without a record. Rows
/// behind those with [`BYTES_MAX`] are omitted.
pub(super) fn rows(
    search: &Search<'_, '_>,
    source: &dyn RowSource,
    query: &ActorsQuery,
    group_type: Option<u8>,
    rows: &[Row],
) -> Result<(Vec<Vec<Value>>, u64)> {
    let mut records = Records::new(query, rows.len());
    // Without a column that shows them, only their times and ids are kept.
    let is_shown = records.columns > 0;
    match group_type {
        None => {
            for (first, part) in (0..).step_by(RECORDS).zip(rows.chunks(RECORDS)) {
                let persons: Vec<u32> = part.iter().map(|row| row.actor).collect();
                source.person_records(&persons, &mut |at, row: PersonRow<'_>| {
                    let row = match is_shown {
                        true => row,
                        false => PersonRow { properties: "{}", distinct_ids: &[], ..row },
                    };
                    let bytes = size(row.properties, row.distinct_ids);
                    records.add(first + at, bytes, || person(&row));
                })?;
            }
        }
        Some(index) => {
            for (first, part) in (0..).step_by(RECORDS).zip(rows.chunks(RECORDS)) {
                source.group_records(index, &keys(part), &mut |at, row: GroupRow<'_>| {
                    let row = match is_shown {
                        true => row,
                        false => GroupRow { properties: "{}", ..row },
                    };
                    // They are in the record twice.
                    records.add(first + at, row.properties.len() * 2, || group(&row));
                })?;
            }
        }
    }
    let Records { mut found, end, .. } = records;
    let rows = rows.get(..end).unwrap_or(rows);
    let without_record = rows.iter().enumerate().filter(|(at, _)| !found.contains_key(at));
    let missing: HashSet<u32> = without_record.map(|(_, row)| row.actor).collect();
    let mut ids = match group_type {
        None if !missing.is_empty() => {
            distinct_ids(search, actors_times(search.asked, query)?, &missing)?
        }
        _ => HashMap::new(),
    };
    let results = rows.iter().enumerate().map(|(at, row)| {
        let without_record = || match &row.id {
            Id::Person(id) => {
                let distinct_id = ids.remove(&row.actor).unwrap_or_default();
                Actor::without_record(id.to_string(), distinct_id)
            }
            Id::Group(key) => Actor::group(group_type.unwrap_or_default(), key, Map::new(), None),
        };
        let actor = found.remove(&at).map_or_else(without_record, |(actor, _)| actor);
        actor.row(&query.select, row.events)
    });
    Ok((results.collect(), super::length(missing.len())))
}

/// The records of a page.
struct Records {
    /// Each with its bytes, by the place of its row.
    found: BTreeMap<usize, (Actor, usize)>,
    /// How many columns show the record.
    columns: usize,
    bytes: usize,
    /// The number of rows of the page.
    end: usize,
}

impl Records {
    fn new(query: &ActorsQuery, rows: usize) -> Self {
        let shows = |column: &&ActorColumn| match column {
            ActorColumn::Actor | ActorColumn::Person | ActorColumn::Group => true,
            ActorColumn::Id | ActorColumn::CreatedAt | ActorColumn::EventCount => false,
        };
        let columns = query.select.iter().filter(shows).count();
        Self { found: BTreeMap::new(), columns, bytes: 0, end: rows }
    }

    /// Keeps a record of this size. If all have too many bytes, the page ends before the last
    /// one; it has at least one.
    fn add(&mut self, at: usize, bytes: usize, record: impl FnOnce() -> Actor) {
        if at >= self.end {
            return;
        }
        let bytes = bytes.saturating_mul(self.columns);
        self.bytes = self.bytes.saturating_add(bytes);
        self.found.insert(at, (record(), bytes));
        while self.bytes > BYTES_MAX
            && self.found.len() > 1
            && let Some((last, (_, bytes))) = self.found.pop_last()
        {
            self.bytes = self.bytes.saturating_sub(bytes);
            self.end = last;
        }
    }
}

fn size(properties: &str, distinct_ids: &[String]) -> usize {
    properties.len() + distinct_ids.iter().map(String::len).sum::<usize>()
}

fn object(properties: &str) -> Map<String, Value> {
    serde_json::from_str(properties).unwrap_or_default()
}

fn person(row: &PersonRow<'_>) -> Actor {
    Actor::Person {
        id: row.id.to_string(),
        properties: object(row.properties),
        is_identified: row.is_identified,
        created_at: Some(Timestamp::from_micros(row.created_at)),
        distinct_ids: row.distinct_ids.to_vec(),
    }
}

fn group(row: &GroupRow<'_>) -> Actor {
    let created_at = Some(Timestamp::from_micros(row.created_at));
    Actor::group(row.index, row.key, object(row.properties), created_at)
}

/// A distinct id of the events of each of these persons: the first one in the order of their
/// texts.
fn distinct_ids(
    search: &Search<'_, '_>,
    times: Vec<Range<i64>>,
    persons: &HashSet<u32>,
) -> Result<HashMap<u32, String>> {
    let mut plan = Plan::new(&Scope::default(), search.asked, times)?;
    plan.keeps_all = true;
    let found: Vec<HashMap<u32, String>> =
        scan(search.source, search.run, &plan, HashMap::new, |found, batch| {
            batch.prepare(Needs { persons: true, ..Needs::default() })?;
            let is_wanted = |row: &usize| persons.contains(&batch.person(*row));
            let rows = batch.kept().ones().filter(is_wanted);
            let rows: Vec<u32> = rows.filter_map(|row| u32::try_from(row).ok()).collect();
            if rows.is_empty() {
                return Ok(());
            }
            let texts = batch.texts(&ColumnName::DistinctId, &rows)?;
            for (place, row) in rows.iter().enumerate() {
                keep_first(found, batch.person(*row as usize), texts.at(place));
            }
            Ok(())
        })?;
    let mut all = HashMap::new();
    for (person, text) in found.into_iter().flatten() {
        keep_first(&mut all, person, &text);
    }
    Ok(all)
}

fn keep_first(found: &mut HashMap<u32, String>, person: u32, text: &str) {
    match found.get_mut(&person) {
        Some(known) if text >= known.as_str() => {}
        Some(known) => text.clone_into(known),
        None => {
            found.insert(person, text.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_ends_before_too_many_bytes() {
        const MIB: usize = 1 << 20;
        let page = |columns: usize, sizes: &[(usize, usize)]| {
            let mut records = Records { found: BTreeMap::new(), columns, bytes: 0, end: 5 };
            for (at, bytes) in sizes {
                let record = || Actor::without_record(at.to_string(), String::new());
                records.add(*at, *bytes, record);
            }
            (records.end, records.found.into_keys().collect::<Vec<usize>>())
        };
        let each = |places: [usize; 3]| places.map(|at| (at, 3 * MIB));
        assert_eq!(page(1, &each([0, 1, 2])), (2, vec![0, 1]));
        assert_eq!(page(1, &each([2, 0, 1])), (2, vec![0, 1]), "in any order");
        assert_eq!(page(2, &each([0, 3, 4])), (3, vec![0]));
        assert_eq!(page(0, &each([0, 1, 4])), (5, vec![0, 1, 4]));
        assert_eq!(page(1, &[(0, 9 * MIB), (1, 1)]), (1, vec![0]), "a page has a row");
    }
}
