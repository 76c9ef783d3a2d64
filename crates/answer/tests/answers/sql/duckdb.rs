//! Answers beside those of DuckDB to the same statements.
//!
//! The other side has a table with a column for each property, and local times that Python
//! computes. So grouping, sorting, aggregates and the time zone are those of other programs.

use serde_json::{Value as Json, json};
use weir_questions::time::{Calendar, WeekStart};
use weir_testservers::python;

use super::{LAYOUTS, question};
use crate::world::{Random, World, case_of};

/// Reads the events and statements, and writes the rows of each statement.
const SCRIPT: &str = r#"
import datetime, json, sys, zoneinfo
import duckdb

given = json.load(sys.stdin)
zone = zoneinfo.ZoneInfo("Europe/Berlin")
epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)

def local(micros):
    time = epoch + datetime.timedelta(microseconds=micros)
    return time.astimezone(zone).replace(tzinfo=None)

def number(value):
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return None
    return None if value is None else float(value)

def text(value):
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, separators=(",", ":"))

db = duckdb.connect()
db.execute("""CREATE TABLE e (uuid TEXT, event TEXT, distinct_id TEXT, person TEXT, ts BIGINT,
    local TIMESTAMP, plan TEXT, price DOUBLE, n BIGINT, ok BOOLEAN, url TEXT, browser TEXT)""")
rows = []
for uuid, event, distinct_id, person, ts, properties in given["events"]:
    p = json.loads(properties)
    rows.append((uuid, event, distinct_id, person, ts, local(ts), text(p.get("plan")),
        number(p.get("price")), p.get("count"), p.get("ok"), p.get("$current_url"),
        p.get("browser")))
db.executemany("INSERT INTO e VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
db.execute("CREATE TABLE c (now_local TIMESTAMP)")
db.execute("INSERT INTO c VALUES (?)", [local(given["now"])])
found = [db.execute(statement).fetchall() for statement in given["statements"]]
json.dump(found, sys.stdout)
"#;

/// The same question here and there.
const STATEMENTS: [(&str, &str); 21] = [
    ("SELECT count() FROM events", "SELECT count(*) FROM e"),
    (
        "SELECT event, count() AS n FROM events GROUP BY event ORDER BY n DESC, event",
        "SELECT event, count(*) AS n FROM e GROUP BY event ORDER BY n DESC, event",
    ),
    (
        "SELECT toDate(timestamp) AS d, count(), count(DISTINCT person_id) FROM events GROUP BY d \
         ORDER BY d LIMIT 1000",
        "SELECT strftime(local, '%Y-%m-%d') AS d, count(*), count(DISTINCT person) FROM e GROUP \
         BY d ORDER BY d",
    ),
    (
        "SELECT toHour(timestamp) AS h, toDayOfWeek(timestamp) AS w, count() FROM events GROUP BY \
         h, w ORDER BY w DESC, h LIMIT 500",
        "SELECT hour(local) AS h, isodow(local) AS w, count(*) FROM e GROUP BY h, w ORDER BY w \
         DESC, h",
    ),
    (
        "SELECT toDate(toStartOfWeek(timestamp)) AS w, uniq(distinct_id) FROM events GROUP BY w \
         ORDER BY w",
        "SELECT strftime(date_trunc('week', local), '%Y-%m-%d') AS w, count(DISTINCT distinct_id) \
         FROM e GROUP BY w ORDER BY w",
    ),
    (
        "SELECT toYear(timestamp) AS y, toMonth(timestamp) AS m, sum(properties.count) FROM events \
         GROUP BY y, m ORDER BY y, m",
        "SELECT year(local) AS y, month(local) AS m, sum(n)::BIGINT FROM e GROUP BY y, m ORDER BY \
         y, m",
    ),
    (
        "SELECT toString(properties.plan) AS plan, count() FROM events WHERE properties.plan IS \
         NOT NULL GROUP BY plan HAVING count() > 2 ORDER BY count() DESC, plan",
        "SELECT plan, count(*) FROM e WHERE plan IS NOT NULL GROUP BY plan HAVING count(*) > 2 \
         ORDER BY count(*) DESC, plan",
    ),
    (
        "SELECT sum(properties.count), avg(properties.count), min(toInt(properties.count)), \
         max(toInt(properties.count)), count(properties.count) FROM events",
        "SELECT sum(n)::BIGINT, avg(n), min(n), max(n), count(n) FROM e",
    ),
    (
        "SELECT event, median(toFloat(properties.price)), min(toFloat(properties.price)), \
         max(toFloat(properties.price)) FROM events GROUP BY event ORDER BY event",
        "SELECT event, quantile_cont(price, 0.5), min(price), max(price) FROM e GROUP BY event \
         ORDER BY event",
    ),
    (
        "SELECT quantile(0.25)(properties.count), quantile(0.9)(properties.count) FROM events",
        "SELECT quantile_cont(n, 0.25), quantile_cont(n, 0.9) FROM e",
    ),
    (
        "SELECT DISTINCT event, properties.browser AS b FROM events ORDER BY event DESC, b",
        "SELECT DISTINCT event, browser AS b FROM e ORDER BY event DESC, b NULLS LAST",
    ),
    (
        "SELECT countIf(event = 'buy'), sumIf(properties.count, properties.ok = true), \
         uniqIf(person_id, properties.browser = 'Chrome') FROM events",
        "SELECT count(*) FILTER (event = 'buy'), (sum(n) FILTER (ok))::BIGINT, count(DISTINCT \
         person) FILTER (browser = 'Chrome') FROM e",
    ),
    (
        "SELECT count() FROM events WHERE person_id IN (SELECT person_id FROM events WHERE event = \
         'buy' AND properties.ok = true) AND event != 'buy'",
        "SELECT count(*) FROM e WHERE person IN (SELECT person FROM e WHERE event = 'buy' AND ok) \
         AND event != 'buy'",
    ),
    (
        "SELECT n, count() FROM (SELECT distinct_id, count() AS n FROM events GROUP BY \
         distinct_id) GROUP BY n ORDER BY n DESC LIMIT 3 OFFSET 1",
        "SELECT n, count(*) FROM (SELECT distinct_id, count(*) AS n FROM e GROUP BY distinct_id) \
         GROUP BY n ORDER BY n DESC LIMIT 3 OFFSET 1",
    ),
    (
        "SELECT distinct_id, argMin(event, timestamp) FROM events GROUP BY distinct_id ORDER BY \
         distinct_id",
        "SELECT distinct_id, min(event) FROM e JOIN (SELECT distinct_id AS d, min(ts) AS t FROM e \
         GROUP BY d) ON distinct_id = d AND ts = t GROUP BY distinct_id ORDER BY distinct_id",
    ),
    (
        "SELECT event, distinct_id, uuid FROM events WHERE event LIKE '$%' OR event ILIKE '%UP' \
         ORDER BY timestamp DESC, uuid LIMIT 20 OFFSET 5",
        "SELECT event, distinct_id, uuid FROM e WHERE event LIKE '$%' OR event ILIKE '%UP' ORDER \
         BY ts DESC, uuid LIMIT 20 OFFSET 5",
    ),
    (
        "SELECT CASE WHEN properties.count < 3 THEN 'few' WHEN properties.count < 10 THEN 'some' \
         ELSE 'many' END AS size, count() FROM events GROUP BY size ORDER BY size",
        "SELECT CASE WHEN n < 3 THEN 'few' WHEN n < 10 THEN 'some' ELSE 'many' END AS size, \
         count(*) FROM e GROUP BY size ORDER BY size",
    ),
    (
        "SELECT count() FROM events WHERE timestamp >= '2026-10-24' AND timestamp < '2026-10-26 \
         02:30'",
        "SELECT count(*) FROM e WHERE local >= TIMESTAMP '2026-10-24' AND local < TIMESTAMP \
         '2026-10-26 02:30'",
    ),
    (
        "SELECT dateDiff('day', timestamp, now()) AS d, dateDiff('month', timestamp, now()) AS m, \
         count() FROM events GROUP BY d, m ORDER BY d LIMIT 1000",
        "SELECT date_diff('day', local, now_local) AS d, date_diff('month', local, now_local) AS \
         m, count(*) FROM e, c GROUP BY d, m ORDER BY d",
    ),
    (
        "SELECT extract(properties.$current_url, '^/([a-z])') AS p, count() FROM events WHERE \
         properties.$current_url IS NOT NULL GROUP BY p ORDER BY p",
        "SELECT regexp_extract(url, '^/([a-z])', 1) AS p, count(*) FROM e WHERE url IS NOT NULL \
         GROUP BY p ORDER BY p",
    ),
    (
        "SELECT upper(substring(event, 1, 2)) || '-' || toString(length(event)) AS x, count() FROM \
         events WHERE NOT (event = 'buy' AND properties.count BETWEEN 1 AND 2) GROUP BY x ORDER BY \
         x DESC",
        "SELECT upper(substring(event, 1, 2)) || '-' || length(event)::TEXT AS x, count(*) FROM e \
         WHERE NOT (event = 'buy' AND n BETWEEN 1 AND 2) GROUP BY x ORDER BY x DESC",
    ),
];

#[tokio::test]
async fn answers_are_those_of_duckdb() {
    // `make quick` installs no Python.
    if std::env::var_os("WEIR_QUICK").is_some() {
        return;
    }
    for seed in [31, 32, 33] {
        let mut case = case_of(&mut Random::new(seed), 9, 1_500, &LAYOUTS);
        case.calendar = Calendar::new("Europe/Berlin", WeekStart::Monday).unwrap();
        let events = case.world.counted_events();
        let events = events.into_iter().map(|(event, person)| {
            json!([
                event.uuid,
                event.event,
                event.distinct_id,
                World::person_id(person),
                event.timestamp,
                event.properties,
            ])
        });
        let statements: Vec<&str> = STATEMENTS.iter().map(|(_, there)| *there).collect();
        let given = json!({ "events": events.collect::<Vec<_>>(), "statements": statements,
            "now": case.now.micros() });
        let found = python(SCRIPT, &given).await;
        for ((here, _), expected) in STATEMENTS.iter().zip(found.as_array().unwrap()) {
            let rows = case.hogql(&question(here)).results;
            assert_same(&json!(rows), expected, here);
        }
    }
}

/// Numbers may be written with a fraction.
#[track_caller]
fn assert_same(found: &Json, expected: &Json, text: &str) {
    match (found, expected) {
        (Json::Array(found), Json::Array(expected)) if found.len() == expected.len() => {
            found.iter().zip(expected).for_each(|(a, b)| assert_same(a, b, text));
        }
        (Json::Number(a), Json::Number(b)) if a.as_f64() == b.as_f64() => {}
        _ => assert_eq!(found, expected, "{text}"),
    }
}
