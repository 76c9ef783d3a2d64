//! The records of the persons or groups that a list shows, as they are now.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use serde_json::{Map, Value};
use weir_model::Timestamp;
use weir_questions::query::{ActorColumn, ActorsQuery, Scope};
use weir_questions::results::Actor;
use weir_segments::ColumnName;

use super::{Id, Row, Search, actors_times};
use crate::batch::Needs;
use crate::error::{AnswerError, Result};
use crate::plan::Plan;
use crate::run::Run;
use crate::scan::scan;
use crate::sql::{GroupRow, PersonRow, RECORDS, RowSource};

/// Most bytes of the properties and distinct ids of a list.
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

/// The rows of results, and how many of them are of persons or groups without a record.
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
    let found = records.finish()?;
    let missing: HashSet<u32> = rows
        .iter()
        .zip(&found)
        .filter(|(_, found)| found.is_none())
        .map(|(row, _)| row.actor)
        .collect();
    let mut ids = match group_type {
        None if !missing.is_empty() => {
            distinct_ids(search, actors_times(search.asked, query)?, &missing)?
        }
        _ => HashMap::new(),
    };
    let results = rows.iter().zip(found).map(|(row, found)| {
        let actor = found.unwrap_or_else(|| match &row.id {
            Id::Person(id) => {
                let distinct_id = ids.remove(&row.actor).unwrap_or_default();
                Actor::without_record(id.to_string(), distinct_id)
            }
            Id::Group(key) => Actor::group(group_type.unwrap_or_default(), key, Map::new(), None),
        });
        actor.row(&query.select, row.events)
    });
    Ok((results.collect(), super::length(missing.len())))
}

/// Records of rows, by their place.
struct Records {
    found: Vec<Option<Actor>>,
    /// How many columns show the record.
    columns: usize,
    bytes: usize,
}

impl Records {
    fn new(query: &ActorsQuery, rows: usize) -> Self {
        let shows = |column: &&ActorColumn| match column {
            ActorColumn::Actor | ActorColumn::Person | ActorColumn::Group => true,
            ActorColumn::Id | ActorColumn::CreatedAt | ActorColumn::EventCount => false,
        };
        let columns = query.select.iter().filter(shows).count();
        Self { found: vec![None; rows], columns, bytes: 0 }
    }

    /// Keeps a record of this size, unless there are too many bytes already.
    fn add(&mut self, at: usize, bytes: usize, record: impl FnOnce() -> Actor) {
        self.bytes = self.bytes.saturating_add(bytes.saturating_mul(self.columns));
        if self.bytes <= BYTES_MAX
            && let Some(place) = self.found.get_mut(at)
        {
            *place = Some(record());
        }
    }

    fn finish(self) -> Result<Vec<Option<Actor>>> {
        match self.bytes <= BYTES_MAX {
            true => Ok(self.found),
            false => {
                let what = "bytes of properties in its list".to_owned();
                Err(AnswerError::TooLarge { what, limit: BYTES_MAX })
            }
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
