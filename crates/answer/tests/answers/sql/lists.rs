//! Lists of events, beside the SELECT that they stand for.

use proptest::prelude::*;
use serde_json::{Value as Json, json};
use weir_answer::{AnswerError, Cancel, MemoryPool, Run, events, events_times};
use weir_questions::Query;
use weir_questions::query::EventsQuery;
use weir_questions::results::EventsResult;

use super::source::TestRows;
use super::{CONDITIONS, LAYOUTS, ROWS, question};
use crate::Case;
use crate::world::{NAMES, Random, World, case, case_of};

fn list(value: &Json) -> EventsQuery {
    let mut value = value.clone();
    value["kind"] = json!("EventsQuery");
    match Query::read(&value) {
        Ok(Query::Events(query)) => query,
        other => panic!("{other:?}"),
    }
}

impl Case {
    #[track_caller]
    fn events(&self, query: &EventsQuery) -> EventsResult {
        self.same(&format!("{query:?}"), |source, run| {
            events(source, run, &self.asked(), query).unwrap()
        })
    }

    /// The attribute and detail of the fault.
    fn fault(&self, value: &Json) -> (String, String) {
        let (cancel, memory) = (Cancel::default(), MemoryPool::new(1 << 20));
        let run = Run { threads: 1, cancel: &cancel, memory: &memory };
        let source = TestRows::new(&self.sources[0].0, &self.world);
        match events(&source, &run, &self.asked(), &list(value)) {
            Err(AnswerError::Field(fault)) => (fault.attr.unwrap(), fault.detail),
            other => panic!("{other:?}"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn a_list_is_a_select(seed in any::<u64>()) {
        let mut random = Random::new(seed);
        let case = case(&mut random, 120);
        let columns: Vec<&str> =
            (0..1 + random.below(3)).map(|_| ROWS[random.below(ROWS.len())]).collect();
        let mut conditions: Vec<String> = (0..random.below(3))
            .map(|_| CONDITIONS[random.below(CONDITIONS.len())].to_owned())
            .collect();
        let (limit, offset) = (1 + random.below(30), random.below(10));
        let mut query = json!({ "select": columns, "where": conditions, "limit": limit,
            "offset": offset });
        let mut order = String::new();
        if random.one_in(2) {
            let key = format!("{}{}", columns[0], [" DESC", ""][random.below(2)]);
            query["orderBy"] = json!([key, "timestamp DESC"]);
            order = format!(" ORDER BY {key}, timestamp DESC");
        }
        if random.one_in(3) {
            let name = NAMES[random.below(NAMES.len())];
            query["event"] = json!(name);
            conditions.push(format!("event = '{name}'"));
        }
        if random.one_in(3) {
            let id = World::person_id(&format!("id-{}", random.below(5)));
            query["personId"] = json!(id);
            conditions.push(format!("person_id = '{id}'"));
        }
        if random.one_in(3) {
            query["after"] = json!("2026-10-20T10:00:00");
            conditions.push("timestamp > '2026-10-20 10:00:00'".to_owned());
        }
        if random.one_in(3) {
            query["before"] = json!("2026-10-27");
            conditions.push("timestamp < '2026-10-27'".to_owned());
        }
        if random.one_in(3) {
            query["properties"] = json!([{ "key": "plan", "value": "pro" }]);
            conditions.push("properties.plan = 'pro'".to_owned());
        }
        let found = case.events(&list(&query));
        let items: Vec<String> =
            columns.iter().enumerate().map(|(at, column)| format!("{column} AS c{at}")).collect();
        let filter = match conditions.is_empty() {
            true => String::new(),
            false => format!(" WHERE {}", conditions.join(" AND ")),
        };
        let select = format!("SELECT {} FROM events{filter}{order} LIMIT {limit} OFFSET {offset}",
            items.join(", "));
        let expected = case.hogql(&question(&select));
        prop_assert_eq!(found.results, expected.results, "{}", select);
        prop_assert_eq!(found.has_more, expected.has_more, "{}", select);
        prop_assert_eq!(found.columns, columns);
    }
}

#[test]
fn a_list_shows_whole_events() {
    let case = case_of(&mut Random::new(21), 5, 60, &LAYOUTS);
    let found = case.events(&list(&json!({ "select": ["*", "event", " * ", "uuid"], "limit": 3 })));
    assert_eq!(found.columns, ["*", "event", " * ", "uuid"]);
    assert_eq!(found.types, ["Tuple", "String", "Tuple", "UUID"]);
    assert!(found.has_more);
    let mut expected = case.world.counted_events();
    expected.sort_by_key(|(event, _)| (-event.timestamp, std::cmp::Reverse(event.arrival)));
    assert_eq!(found.results.len(), 3);
    for (row, (event, _)) in found.results.iter().zip(expected) {
        let properties: Json = serde_json::from_str(&event.properties).unwrap();
        assert_eq!(row[0]["uuid"], json!(event.uuid));
        assert_eq!(row[0]["event"], json!(event.event));
        assert_eq!(row[0]["distinct_id"], json!(event.distinct_id));
        assert_eq!(row[0]["properties"], properties);
        assert_eq!(row[0]["team_id"], json!(7));
        assert_eq!(row[0]["timestamp"], row[0]["created_at"]);
        assert_eq!(row[0]["elements_chain"], json!(""));
        assert_eq!((&row[1], &row[2], &row[3]), (&row[0]["event"], &row[0], &row[0]["uuid"]));
    }
}

#[test]
fn a_list_with_an_aggregate_has_groups() {
    let case = case_of(&mut Random::new(22), 5, 200, &LAYOUTS);
    let found = case.events(&list(&json!({ "select": ["event", "count()"],
        "orderBy": ["count() DESC"] })));
    let expected = "SELECT event, count() FROM events GROUP BY event ORDER BY count() DESC";
    assert_eq!(found.results, case.hogql(&question(expected)).results);
    assert_eq!(found.hogql, format!("{expected} LIMIT 100"));
}

#[test]
fn faults_name_their_text() {
    let case = case_of(&mut Random::new(23), 2, 5, &LAYOUTS);
    for (query, attr, detail) in [
        (
            json!({ "select": ["*", "event", "nothing"] }),
            "select__2",
            "Unknown field `nothing` (line 1, column 1)",
        ),
        (
            json!({ "select": ["event"], "where": ["event = 'a'", "file('x')"] }),
            "where__1",
            "Unknown function `file` (line 1, column 1)",
        ),
        (
            json!({ "select": ["event"], "orderBy": ["event DESC NULLS"] }),
            "orderBy__0",
            "Expected the end of the expression, found `NULLS` (line 1, column 12)",
        ),
        (json!({ "select": ["event"], "personId": "me" }), "personId", "Must be a valid UUID."),
    ] {
        assert_eq!(case.fault(&query), (attr.to_owned(), detail.to_owned()));
    }
}

#[test]
fn a_list_knows_the_times_that_it_needs() {
    let case = case_of(&mut Random::new(24), 2, 5, &LAYOUTS);
    let times = |value: &Json| {
        let found = events_times(&case.asked(), &list(value)).unwrap();
        found.into_iter().map(|times| (times.start, times.end)).collect::<Vec<_>>()
    };
    assert_eq!(times(&json!({ "select": ["event"] })), [(i64::MIN, i64::MAX)]);
    let range = json!({ "select": ["event"], "after": "2026-10-20T00:00:00Z",
        "before": "2026-10-21T00:00:00Z" });
    let day = |text: &str| weir_model::Timestamp::parse(text).unwrap().micros();
    let (begin, end) = (day("2026-10-20T00:00:00Z") + 1, day("2026-10-21T00:00:00Z"));
    assert_eq!(times(&range), [(begin, end)]);
    let none = json!({ "select": ["event"], "after": "2026-10-22", "before": "2026-10-21" });
    assert_eq!(times(&none), []);
}
