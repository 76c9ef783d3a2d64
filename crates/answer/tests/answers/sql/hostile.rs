//! Questions that try to cost more than a question may, or to reach what they must not.

use std::time::{Duration, Instant};

use serde_json::json;
use weir_answer::{AnswerError, Cancel, MemoryPool, Run, hogql};

use super::source::TestRows;
use super::{LAYOUTS, question};
use crate::Case;
use crate::world::{Random, case_of};

fn large() -> Case {
    case_of(&mut Random::new(11), 12, 6_000, &LAYOUTS)
}

impl Case {
    /// How a question fails with so much memory and time.
    #[track_caller]
    fn fails(&self, text: &str, memory: usize, time: Duration) -> AnswerError {
        let query = question(text);
        let mut last = None;
        for (source, threads) in &self.sources {
            let (cancel, memory) = (Cancel::at(Instant::now() + time), MemoryPool::new(memory));
            let run = Run { threads: *threads, cancel: &cancel, memory: &memory };
            let source = TestRows::new(source, &self.world);
            let found = hogql(&source, &run, &self.asked(), &query);
            assert_eq!(memory.used(), 0, "{text}");
            last = found.err();
            assert!(last.is_some(), "{text}");
        }
        last.unwrap()
    }
}

const LONG: Duration = Duration::from_secs(600);

#[test]
fn memory_is_bounded() {
    let case = large();
    for text in [
        "SELECT uuid, count() FROM events GROUP BY uuid",
        "SELECT DISTINCT properties, uuid FROM events",
        "SELECT groupUniqArray(properties) FROM events GROUP BY uuid",
        "SELECT properties, elements_chain FROM events ORDER BY properties LIMIT 50000",
        "SELECT event FROM events ORDER BY uuid LIMIT 1 OFFSET 1000000",
        "SELECT count() FROM (SELECT * FROM events)",
        "SELECT count() FROM events WHERE uuid IN (SELECT uuid FROM events)",
        "SELECT median(toFloat(timestamp)), uniq(uuid), min(properties) FROM events GROUP BY uuid",
        "SELECT person_id, start_timestamp FROM sessions LIMIT 50000",
    ] {
        let error = case.fails(text, 200 << 10, LONG);
        assert!(matches!(error, AnswerError::Memory { limit: 204_800 }), "{text}: {error}");
    }
}

#[test]
fn lists_and_sets_are_bounded() {
    let case = large();
    let error = case.fails("SELECT groupUniqArray(uuid) FROM events", 256 << 20, LONG);
    assert_eq!(error.to_string(), "the question has more than 1000 values of groupUniqArray");
}

#[test]
fn work_for_one_row_is_bounded() {
    let case = large();
    let doubled = |levels: usize| {
        let mut text = "properties".to_owned();
        for _ in 0..levels {
            text = format!("replaceAll({text}, 'a', {text})");
        }
        text
    };
    for text in [
        format!("SELECT length({}) FROM events", doubled(6)),
        format!("SELECT count() FROM events WHERE empty({})", doubled(6)),
        format!("SELECT {}, count() FROM events GROUP BY 1", doubled(6)),
    ] {
        let query = weir_query::parse_select(&text, &std::collections::BTreeMap::new());
        // Texts that grow too long are null, and too much work is a fault.
        if query.is_err() {
            continue;
        }
        let (source, threads) = &case.sources[0];
        let (cancel, memory) = (Cancel::default(), MemoryPool::new(256 << 20));
        let run = Run { threads: *threads, cancel: &cancel, memory: &memory };
        let source = TestRows::new(source, &case.world);
        match hogql(&source, &run, &case.asked(), &question(&text)) {
            Ok(_) => {}
            Err(error) => assert!(error.to_string().contains("work for one row"), "{error}"),
        }
    }
}

#[test]
fn endless_questions_end() {
    let case = large();
    let list: Vec<String> = (0..3_000).map(|number| format!("'{number}'")).collect();
    let list = list.join(",");
    for text in [
        format!("SELECT count() FROM events WHERE concat(uuid, event) IN ({list})"),
        "SELECT countIf(match(concat(properties, properties), '(a+)+$|([a-z]+)*x')) FROM events"
            .to_owned(),
        "SELECT countIf(concat(properties, properties) LIKE '%a%a%a%a%a%a%b%') FROM events"
            .to_owned(),
        format!(
            "SELECT count() FROM sessions WHERE concat(start_timestamp, person_id) IN ({list})"
        ),
    ] {
        let begin = Instant::now();
        let error = case.fails(&text, 256 << 20, Duration::from_millis(1));
        assert!(matches!(error, AnswerError::TooLong), "{error}");
        assert!(begin.elapsed() < Duration::from_secs(20));
    }
}

#[test]
fn a_cancelled_question_ends() {
    let case = large();
    let (source, _) = &case.sources[0];
    let (cancel, memory) = (Cancel::default(), MemoryPool::new(256 << 20));
    cancel.cancel();
    let run = Run { threads: 2, cancel: &cancel, memory: &memory };
    for text in [
        "SELECT event, count() FROM events GROUP BY event",
        "SELECT event FROM events",
        "SELECT count() FROM sessions",
    ] {
        let source = TestRows::new(source, &case.world);
        let found = hogql(&source, &run, &case.asked(), &question(text));
        assert!(matches!(found, Err(AnswerError::Cancelled)), "{text}");
    }
}

#[test]
fn nothing_but_the_tables_of_the_project_is_read() {
    let case = case_of(&mut Random::new(3), 4, 50, &LAYOUTS);
    for (text, place) in [
        ("SELECT * FROM person", "line 1, column 15"),
        ("SELECT * FROM information_schema.tables", "line 1, column 15"),
        ("SELECT 1\nFROM surrealdb", "line 2, column 6"),
        ("SELECT * FROM url('http://localhost', 'CSV')", "line 1, column 15"),
        ("SELECT * FROM file('/etc/passwd')", "line 1, column 15"),
        ("SELECT * FROM s3('x')", "line 1, column 15"),
        ("SELECT * FROM remote('x')", "line 1, column 15"),
        ("SELECT file('/etc/passwd') FROM events", "line 1, column 8"),
        ("SELECT getSetting('x') FROM events", "line 1, column 8"),
        ("SELECT sleepEachRow(3) FROM events", "line 1, column 8"),
        ("SELECT 1 FROM events; DROP TABLE events", "line 1, column 23"),
        ("DELETE FROM events", "line 1, column 1"),
        ("SELECT 1 FROM events UNION ALL SELECT 1 FROM events", "line 1, column 22"),
        ("SELECT 1 FROM events, persons", "line 1, column 21"),
        ("SELECT 1 FROM events INTO OUTFILE 'x'", "line 1, column 22"),
    ] {
        let error = case.fails(text, 256 << 20, LONG);
        match error {
            AnswerError::Field(fault) => {
                assert_eq!(fault.attr.as_deref(), Some("query"));
                assert!(fault.detail.ends_with(&format!("({place})")), "{text}: {}", fault.detail);
            }
            other => panic!("{text}: {other}"),
        }
    }
    let count = |text: &str| case.hogql(&question(text)).results;
    assert_eq!(count("SELECT count() FROM events WHERE team_id = 8"), [[json!(0)]]);
    assert!(count("SELECT 1 FROM events WHERE team_id != 7").is_empty());
}

#[test]
fn depth_and_length_are_bounded() {
    let case = case_of(&mut Random::new(4), 2, 5, &LAYOUTS);
    let conditions = |count: usize| vec!["event = 'a'"; count].join(" OR ");
    for (text, fault) in [
        (
            format!("SELECT {}1{} FROM events", "(".repeat(9_000), ")".repeat(9_000)),
            "nested too deep",
        ),
        (format!("SELECT 1 FROM events WHERE {}", conditions(900)), "too many expressions"),
        ("SELECT 1 FROM events LIMIT 1000000000".to_owned(), "LIMIT is from 0 to 50000"),
        ("SELECT 1 FROM events OFFSET 1000000001".to_owned(), "OFFSET is from 0 to 1000000"),
        ("SELECT match(event, 'a{1000}{1000}') FROM events".to_owned(), "too large"),
        (format!("SELECT 1 FROM events WHERE {}", "NOT ".repeat(3_000)), "Expected an expression"),
    ] {
        match case.fails(&text, 256 << 20, LONG) {
            AnswerError::Field(found) => assert!(found.detail.contains(fault), "{}", found.detail),
            other => panic!("{other}"),
        }
    }
    // As wide as a question may be.
    let wide = format!("SELECT count() FROM events WHERE {}", conditions(400));
    assert_eq!(case.hogql(&question(&wide)).results, [[json!(0)]]);
}
