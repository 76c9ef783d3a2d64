//! The table of sessions, beside sessions of a plain evaluation.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value as Json, json};
use weir_model::Timestamp;
use weir_segments::OwnedEvent;

use super::question;
use crate::Case;
use crate::world::{Random, World, case};

const GAP: i64 = 30 * 60 * 1_000_000;

/// All sessions, the newest first.
fn sessions(case: &Case) -> Vec<Vec<Json>> {
    let mut persons: BTreeMap<&str, Vec<&OwnedEvent>> = BTreeMap::new();
    for (event, person) in case.world.counted_events() {
        persons.entry(person).or_default().push(event);
    }
    let mut found = Vec::new();
    for (person, mut events) in persons {
        events.sort_by_key(|event| (event.timestamp, event.arrival));
        let text = |event: &OwnedEvent, name: &str| {
            let object: Json = serde_json::from_str(&event.properties).unwrap();
            let text = match &object[name] {
                Json::Null => return None,
                Json::String(text) => text.clone(),
                other => other.to_string(),
            };
            (!text.is_empty()).then_some(text)
        };
        let mut own: Vec<(Option<String>, Vec<&OwnedEvent>)> = Vec::new();
        for event in events {
            let id = text(event, "$session_id");
            let is_it = |(known, events): &&mut (Option<String>, Vec<&OwnedEvent>)| {
                let last = events.last().unwrap().timestamp;
                *known == id && (id.is_some() || event.timestamp - last < GAP)
            };
            match own.iter_mut().rev().find(is_it) {
                Some((_, events)) => events.push(event),
                None => own.push((id, vec![event])),
            }
        }
        for (id, events) in own {
            let (first, last) = (events[0], events[events.len() - 1]);
            let mut with_url = events.iter().filter_map(|event| text(event, "$current_url"));
            let entry = with_url.next();
            let exit = with_url.next_back().or_else(|| entry.clone());
            let pageviews = events.iter().filter(|event| event.event == "$pageview").count();
            let length = last.timestamp - first.timestamp;
            let time = |micros| Timestamp::from_micros(micros).to_string();
            let row = json!([
                id,
                World::person_id(person),
                time(first.timestamp),
                time(last.timestamp),
                length / 1_000_000,
                events.len(),
                pageviews,
                entry,
                exit,
                null,
                pageviews == 1 && length < 10_000_000,
            ]);
            found.push(((-first.timestamp, std::cmp::Reverse(first.arrival)), row));
        }
    }
    found.sort_by_key(|(by, _)| *by);
    found.into_iter().map(|(_, row)| row.as_array().unwrap().clone()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn sessions_are_those_of_a_plain_evaluation(seed in any::<u64>()) {
        let mut random = Random::new(seed);
        let case = case(&mut random, 100);
        let columns = "session_id, person_id, start_timestamp, end_timestamp, duration, \
            event_count, pageview_count, entry_current_url, exit_current_url, entry_referrer, \
            is_bounce";
        let found = case.hogql(&question(&format!("SELECT {columns} FROM sessions LIMIT 1000")));
        let expected = sessions(&case);
        prop_assert_eq!(&found.results, &expected);
        // A range shows the sessions that begin in it.
        let text = format!("SELECT {columns} FROM sessions WHERE start_timestamp >= '2026-10-26T00:00:00Z' LIMIT 1000");
        let expected: Vec<Vec<Json>> = expected
            .into_iter()
            .filter(|row| row[2].as_str().unwrap() >= "2026-10-26T00:00:00Z")
            .collect();
        let found = case.hogql(&question(&text)).results;
        // A session with an id may have begun more than a day before the range.
        let is_old = |row: &&Vec<Json>| !expected.contains(row);
        prop_assert!(found.iter().filter(is_old).all(|row| !row[0].is_null()));
        prop_assert!(expected.iter().all(|row| found.contains(row)));
        let groups = case.hogql(&question(
            "SELECT entry_current_url, count(), sum(event_count) FROM sessions GROUP BY \
             entry_current_url ORDER BY count() DESC",
        ));
        let events: u64 = groups.results.iter().map(|row| row[2].as_u64().unwrap()).sum();
        prop_assert_eq!(events, case.world.counted_events().len() as u64);
    }
}
