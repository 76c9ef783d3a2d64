//! Questions in SQL, and lists of events, beside a plain evaluation of their trees.
//!
//! The plain evaluation takes one event after another, and groups and sorts lists. It shares
//! the evaluation of expressions with the engine, but nothing else.

mod duckdb;
mod hostile;
mod lists;
mod plain;
mod sessions;
mod source;

use proptest::prelude::*;
use serde_json::{Value as Json, json};
use weir_answer::{Cancel, MemoryPool, RowSource, Run, hogql, hogql_times};
use weir_questions::Query;
use weir_questions::query::HogQLQuery;
use weir_questions::results::HogQLResult;

use crate::world::{Random, case, case_of};
use crate::{Case, MEMORY};

fn question(text: &str) -> HogQLQuery {
    question_with(&json!({ "kind": "HogQLQuery", "query": text }))
}

fn question_with(question: &Json) -> HogQLQuery {
    match Query::read(question) {
        Ok(Query::HogQL(query)) => query,
        other => panic!("{other:?}"),
    }
}

impl Case {
    /// The answer, which must be the same however events are stored and read.
    #[track_caller]
    fn hogql(&self, query: &HogQLQuery) -> HogQLResult {
        self.same(&query.query, |source, run| {
            hogql(source, run, &self.asked(), query)
                .unwrap_or_else(|error| panic!("{}: {error}", query.query))
        })
    }

    #[track_caller]
    pub(crate) fn same<T: PartialEq + std::fmt::Debug>(
        &self,
        what: &str,
        answer: impl Fn(&dyn RowSource, &Run<'_>) -> T,
    ) -> T {
        let mut first = None;
        for (source, threads) in &self.sources {
            let (cancel, memory) = (Cancel::default(), MemoryPool::new(MEMORY));
            let run = Run { threads: *threads, cancel: &cancel, memory: &memory };
            let found = answer(&source::TestRows::new(source, &self.world), &run);
            assert_eq!(memory.used(), 0);
            match &first {
                None => first = Some(found),
                Some(first) => {
                    assert_eq!(found, *first, "{what}: {:?}, {threads} threads", source.layout());
                }
            }
        }
        first.unwrap()
    }
}

const ROWS: [&str; 26] = [
    "event",
    "distinct_id",
    "uuid",
    "timestamp",
    "team_id",
    "person_id",
    "created_at",
    "properties.plan",
    "properties.price",
    "properties.count",
    "properties.ok",
    "properties.$current_url",
    "properties.o.plan",
    "toFloat(properties.price)",
    "toDate(timestamp)",
    "toStartOfHour(timestamp)",
    "toStartOfWeek(timestamp)",
    "toStartOfMonth(timestamp + INTERVAL 3 WEEK)",
    "toString(timestamp)",
    "person.properties.tier",
    "person.properties.age + 1",
    "group_0.properties.size",
    "session.id",
    "JSONExtractString(properties, 'browser')",
    "if(event = 'buy', properties.price, properties.browser)",
    "length(properties)",
];

const CONDITIONS: [&str; 25] = [
    "event = 'buy'",
    "'$screen' = event",
    "event IN ('buy', '$pageview', 'ünlock')",
    "event NOT IN ('buy')",
    "event LIKE '$%'",
    "timestamp >= '2026-10-20'",
    "timestamp < now() - INTERVAL 2 DAY",
    "'2026-10-27 12:00' > timestamp",
    "timestamp BETWEEN '2026-10-18' AND '2026-10-27 09:30'",
    "timestamp != '2026-10-27'",
    "timestamp > NULL",
    "properties.price > 2",
    "properties.plan = 'pro'",
    "properties.browser != 'Chrome'",
    "properties.plan IS NOT NULL",
    "person.properties.tier = 'gold'",
    "group_0.properties.size >= 2.5",
    "(event = 'buy' OR properties.ok = true)",
    "toDate(timestamp) = '2026-10-25'",
    "toHour(timestamp) > properties.count",
    "match(properties.$current_url, '^/[ab]')",
    "distinct_id != 'id-1'",
    "person_id IN (SELECT person_id FROM events WHERE event = 'buy')",
    "properties.plan NOT IN (SELECT properties.plan FROM events WHERE properties.count = 40)",
    "timestamp IN (SELECT max(timestamp) FROM events GROUP BY distinct_id)",
];

fn any_row(random: &mut Random) -> &'static str {
    ROWS[random.below(ROWS.len())]
}

fn any_aggregate(random: &mut Random) -> String {
    let row = any_row(random);
    let condition = CONDITIONS[random.below(22)];
    match random.below(18) {
        0 | 1 => "count()".to_owned(),
        2 => format!("count({row})"),
        3 => format!("uniq({row})"),
        4 => "count(DISTINCT person_id)".to_owned(),
        5 => "sum(properties.price)".to_owned(),
        6 => "sum(properties.count) / count()".to_owned(),
        7 => "avg(properties.price)".to_owned(),
        8 => format!("min({row})"),
        9 => format!("max({row})"),
        10 => format!("any({row})"),
        11 => "median(properties.price)".to_owned(),
        12 => "quantile(0.9)(toFloat(properties.count))".to_owned(),
        13 => format!("argMin({row}, timestamp)"),
        14 => format!("argMax(event, {row})"),
        15 => format!("countIf({condition})"),
        16 => format!("sumIf(properties.count, {condition})"),
        _ => format!("groupUniqArray({row})"),
    }
}

fn any_where(random: &mut Random) -> String {
    let conditions: Vec<&str> =
        (0..random.below(4)).map(|_| CONDITIONS[random.below(CONDITIONS.len())]).collect();
    match conditions.is_empty() {
        true => String::new(),
        false => format!(" WHERE {}", conditions.join(" AND ")),
    }
}

fn any_limit(random: &mut Random) -> String {
    match random.below(4) {
        0 => String::new(),
        1 => format!(" LIMIT {}", random.below(4)),
        2 => format!(" LIMIT {} OFFSET {}", 1 + random.below(20), random.below(30)),
        _ => " LIMIT 1000".to_owned(),
    }
}

fn any_order(random: &mut Random, keys: &[String]) -> String {
    let keys: Vec<String> = (0..random.below(3))
        .map(|_| {
            let direction = ["", " DESC"][random.below(2)];
            format!("{}{direction}", keys[random.below(keys.len())])
        })
        .collect();
    match keys.is_empty() {
        true => String::new(),
        false => format!(" ORDER BY {}", keys.join(", ")),
    }
}

/// Columns with names, so that no two are the same.
fn named(columns: &[String]) -> String {
    let columns = columns.iter().enumerate().map(|(at, column)| format!("{column} AS c{at}"));
    columns.collect::<Vec<_>>().join(", ")
}

fn any_rows(random: &mut Random, with_limit: bool) -> (String, usize) {
    let mut columns: Vec<String> =
        (0..1 + random.below(3)).map(|_| any_row(random).to_owned()).collect();
    let distinct = random.one_in(4);
    let mut keys = columns.clone();
    if !distinct {
        keys.extend(["timestamp".to_owned(), any_row(random).to_owned()]);
    }
    if random.one_in(6) {
        columns.push("concat(event, ' ', distinct_id)".to_owned());
    }
    let text = format!(
        "SELECT {}{} FROM events{}{}{}",
        if distinct { "DISTINCT " } else { "" },
        named(&columns),
        any_where(random),
        any_order(random, &keys),
        if with_limit { any_limit(random) } else { String::new() },
    );
    (text, columns.len())
}

fn any_groups(random: &mut Random, with_limit: bool) -> (String, usize) {
    let groups: Vec<String> = (0..random.below(3)).map(|_| any_row(random).to_owned()).collect();
    let aggregates: Vec<String> = (0..1 + random.below(3)).map(|_| any_aggregate(random)).collect();
    let mut columns = groups.clone();
    columns.extend(aggregates);
    if random.one_in(4) {
        columns.rotate_left(1);
    }
    let order = any_order(random, &columns);
    let by = match groups.is_empty() {
        true => String::new(),
        false => format!(" GROUP BY {}", groups.join(", ")),
    };
    let having = if random.one_in(4) { " HAVING count() > 1" } else { "" };
    let distinct = if random.one_in(8) { "DISTINCT " } else { "" };
    let limit = if with_limit { any_limit(random) } else { String::new() };
    let (columns, count) = (named(&columns), columns.len());
    let filter = any_where(random);
    (format!("SELECT {distinct}{columns} FROM events{filter}{by}{having}{order}{limit}"), count)
}

fn any_question(random: &mut Random) -> String {
    match random.below(10) {
        0..4 => any_rows(random, true).0,
        4..7 => any_groups(random, true).0,
        7 => {
            let with_limit = random.one_in(3);
            let (inner, columns) = match random.one_in(2) {
                true => any_rows(random, with_limit),
                false => any_groups(random, with_limit),
            };
            let column = format!("c{}", random.below(columns));
            match random.below(3) {
                0 => format!(
                    "SELECT {column}, count() AS n FROM ({inner}) GROUP BY {column} ORDER BY n DESC"
                ),
                1 => {
                    format!("SELECT max({column}), uniq({column}), count({column}) FROM ({inner})")
                }
                _ => format!("SELECT * FROM ({inner}) WHERE {column} IS NOT NULL LIMIT 7 OFFSET 1"),
            }
        }
        8 => {
            let order = any_order(random, &["id".to_owned(), "properties.age".to_owned()]);
            let filter = [
                "",
                " WHERE properties.tier = 'gold'",
                " WHERE id IN (SELECT person_id FROM events WHERE event = 'buy')",
            ];
            let filter = filter[random.below(3)];
            format!(
                "SELECT id, created_at, properties.age, properties.o.x, is_identified, distinct_ids, \
                 properties FROM persons{filter}{order}"
            )
        }
        _ => {
            let order = any_order(random, &["key".to_owned(), "properties.size".to_owned()]);
            match random.one_in(2) {
                true => format!("SELECT * FROM groups{order}"),
                false => "SELECT index, sum(properties.size), count() FROM groups GROUP BY index"
                    .to_owned(),
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn questions_in_sql_are_answered_as_by_a_plain_evaluation(seed in any::<u64>()) {
        let mut random = Random::new(seed);
        let case = case(&mut random, 120);
        for _ in 0..4 {
            let text = any_question(&mut random);
            let query = question(&text);
            let found = case.hogql(&query);
            let (rows, has_more) = plain::answer(&case, &query);
            prop_assert_eq!(&found.results, &rows, "{}", text);
            prop_assert_eq!(found.has_more, has_more, "{}", text);
            prop_assert!(found.results.iter().all(|row| row.len() == found.columns.len()));
            // The normal form is the same question.
            let again = case.hogql(&question(&found.hogql));
            prop_assert_eq!(&again.results, &found.results, "{}", found.hogql);
        }
    }
}

#[test]
fn questions_that_are_easy_to_get_wrong_are_answered_as_by_a_plain_evaluation() {
    for seed in 40..44 {
        let case = case_of(&mut Random::new(seed), 9, 250, &LAYOUTS);
        let events = case.world.counted_events();
        let at = |place: usize| {
            let time = events[place * events.len() / 4].0.timestamp;
            weir_model::Timestamp::from_micros(time).to_string()
        };
        let (one, two) = (at(1).min(at(2)), at(1).max(at(2)));
        // The same texts as texts and as numbers.
        let mixed = "if(event = 'buy', properties.price, toString(properties.price))";
        for text in [
            "SELECT count() FROM events WHERE event = 'buy' AND event IN ('buy', '$screen')".into(),
            "SELECT count() FROM events WHERE event IN ('buy', '$screen') AND event IN ('$screen', \
             '$pageview') AND NOT event = 'x'"
                .into(),
            "SELECT count() FROM events WHERE event = 'buy' AND event = '$screen'".into(),
            "SELECT event FROM events WHERE event = 'buy' AND event = '$screen'".into(),
            format!("SELECT {mixed} AS x, count() FROM events GROUP BY x ORDER BY x"),
            format!("SELECT DISTINCT {mixed} AS x FROM events ORDER BY x DESC"),
            format!("SELECT groupUniqArray({mixed}), min({mixed}), max({mixed}) FROM events"),
            format!("SELECT argMin({mixed}, toStartOfMonth(timestamp)) FROM events"),
            "SELECT DISTINCT count() AS n FROM events GROUP BY distinct_id".into(),
            "SELECT DISTINCT count() AS n FROM events GROUP BY distinct_id, event LIMIT 3 OFFSET 1"
                .into(),
            "SELECT DISTINCT event FROM events LIMIT 2".into(),
            format!("SELECT count() FROM events WHERE timestamp = '{one}'"),
            format!("SELECT count() FROM events WHERE timestamp > '{one}'"),
            format!("SELECT count() FROM events WHERE timestamp >= '{one}'"),
            format!("SELECT count() FROM events WHERE timestamp < '{two}'"),
            format!("SELECT count() FROM events WHERE '{two}' >= timestamp"),
            format!("SELECT count() FROM events WHERE timestamp BETWEEN '{one}' AND '{two}'"),
            format!("SELECT count() FROM events WHERE timestamp NOT BETWEEN '{one}' AND '{two}'"),
            format!("SELECT count() FROM events WHERE NOT timestamp > '{one}'"),
            format!("SELECT uuid FROM events WHERE timestamp <= '{two}' ORDER BY timestamp DESC"),
            "SELECT uuid FROM events ORDER BY timestamp LIMIT 5".into(),
            "SELECT event FROM events LIMIT 0".into(),
            "SELECT count() FROM events LIMIT 0".into(),
            "SELECT count(), sum(properties.none), groupUniqArray(event) FROM events WHERE false"
                .into(),
            "SELECT event, count() FROM events WHERE false GROUP BY event".into(),
            "SELECT 1 AS one, count() FROM events GROUP BY one".into(),
            "SELECT count() FROM events HAVING count() < 0".into(),
            "SELECT countIf(toHour(timestamp) = properties.count) FROM events WHERE \
             toHour(timestamp) != properties.count"
                .into(),
            "SELECT uuid FROM events WHERE toDayOfWeek(timestamp) > properties.count".into(),
            "SELECT person_id, person.properties FROM events WHERE person.properties IS NULL".into(),
            "SELECT person.properties.o.x AS x, group_0.properties AS g, count() FROM events GROUP \
             BY x, g"
                .into(),
            "SELECT count() FROM events WHERE NOT (person_id IN (SELECT id FROM persons))".into(),
            "SELECT count() FROM events WHERE toString(person_id) IN (SELECT id FROM persons)"
                .into(),
            "SELECT count() FROM events WHERE properties.count IN (SELECT toInt(properties.count) \
             FROM events WHERE properties.ok = true LIMIT 1)"
                .into(),
            "SELECT id, distinct_ids FROM persons LIMIT 2 OFFSET 1".into(),
        ] {
            let query = question(&text);
            let found = case.hogql(&query);
            let (rows, has_more) = plain::answer(&case, &query);
            assert_eq!((found.results, found.has_more), (rows, has_more), "{text}");
        }
    }
}

#[test]
fn filters_beside_a_query_are_conditions_of_it() {
    let mut random = Random::new(5);
    let case = case_of(&mut random, 8, 300, &LAYOUTS);
    let count = |filters: Json, text: &str| {
        let query = question_with(&json!({ "kind": "HogQLQuery", "query": text,
            "filters": filters, "values": { "name": "buy" } }));
        case.hogql(&query).results[0][0].as_u64().unwrap()
    };
    let plain = |condition: &str| {
        count(json!({}), &format!("SELECT count() FROM events WHERE {condition}"))
    };
    let all = "SELECT count() FROM events WHERE {filters}";
    assert_eq!(count(json!({}), all), plain("true"));
    let plan = json!([{ "key": "plan", "value": "pro" }]);
    let pro = count(json!({ "properties": plan }), all);
    assert_eq!(pro, plain("properties.plan = 'pro'"));
    assert!(pro > 0);
    // Without `{filters}` they change nothing.
    assert_eq!(count(json!({ "properties": plan }), "SELECT count() FROM events"), plain("true"));
    let buy = "SELECT count() FROM events WHERE {filters} AND event = {name}";
    assert_eq!(
        count(json!({ "properties": plan }), buy),
        plain("properties.plan = 'pro' AND event = 'buy'")
    );
    let days = json!({ "dateRange": { "date_from": "2026-10-20", "date_to": "2026-10-25" } });
    assert_eq!(
        count(days.clone(), all),
        plain("timestamp >= '2026-10-20' AND timestamp < '2026-10-26'")
    );
    let nested = "SELECT sum(n) FROM (SELECT event, count() AS n FROM events WHERE {filters} \
                  GROUP BY event)";
    assert_eq!(
        count(days, nested),
        plain("timestamp >= '2026-10-20' AND timestamp < '2026-10-26'")
    );
    assert_eq!(
        count(json!({ "filterTestAccounts": true }), all),
        plain("(properties.plan != 'free' OR properties.plan IS NULL)")
    );
}

#[test]
fn the_times_of_a_question_are_those_of_all_its_parts() {
    let mut random = Random::new(6);
    let case = case_of(&mut random, 2, 5, &LAYOUTS);
    let at = |text: &str| {
        let start = case
            .calendar
            .at_clock(weir_model::Timestamp::parse(&format!("{text}T00:00:00Z")).unwrap().micros());
        start.unwrap()
    };
    for (text, expected) in [
        ("SELECT 1 FROM events", vec![(i64::MIN, i64::MAX)]),
        ("SELECT 1 FROM persons", vec![]),
        (
            "SELECT 1 FROM events WHERE timestamp >= '2026-10-02' AND timestamp < '2026-10-05' AND \
          timestamp >= '2026-10-01'",
            vec![(at("2026-10-02"), at("2026-10-05"))],
        ),
        (
            "SELECT 1 FROM events WHERE timestamp > '2026-10-05' AND timestamp < '2026-10-02'",
            vec![],
        ),
        (
            "SELECT 1 FROM events WHERE timestamp > '2026-10-05' OR event = 'a'",
            vec![(i64::MIN, i64::MAX)],
        ),
        (
            "SELECT 1 FROM events WHERE timestamp <= '2026-10-05' AND distinct_id IN (SELECT \
          distinct_id FROM events WHERE timestamp = '2026-10-07')",
            vec![(at("2026-10-07"), at("2026-10-07") + 1), (i64::MIN, at("2026-10-05") + 1)],
        ),
        (
            "SELECT count() FROM (SELECT event FROM events WHERE timestamp BETWEEN '2026-10-01' AND \
          '2026-10-02')",
            vec![(at("2026-10-01"), at("2026-10-02") + 1)],
        ),
    ] {
        let found = hogql_times(&case.asked(), &question(text)).unwrap();
        let found: Vec<_> = found.into_iter().map(|times| (times.start, times.end)).collect();
        assert_eq!(found, expected, "{text}");
    }
}

const LAYOUTS: [(crate::source::Layout, usize); 3] = [
    (crate::source::Layout::Blocks, 1),
    (crate::source::Layout::Mixed, 3),
    (crate::source::Layout::TableColumns, 2),
];
