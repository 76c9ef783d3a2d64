//! Questions in SQL, asked over HTTP.

use serde_json::{Value, json};
use weir_testkit::{Caller, TestApp};

use super::{DAYS, berlin, fill, post};
use crate::stored::send;

/// The answer to a question in SQL.
pub(super) async fn sql(app: &TestApp, caller: &Caller, text: &str) -> Value {
    let question = json!({"kind": "HogQLQuery", "query": text});
    let answer = post(app, caller, &json!({"query": question})).await;
    assert_eq!(answer.status, 200, "{text}: {:?}", answer.body);
    answer.json()
}

#[tokio::test(flavor = "multi_thread")]
async fn sql_groups_events_by_what_they_are_for_the_project() {
    let (app, caller) = berlin().await;
    fill(&app).await;
    let text = "SELECT event, count() AS n, uniq(person_id) AS people FROM events \
                GROUP BY event ORDER BY n DESC";
    let answer = sql(&app, &caller, text).await;
    assert_eq!(answer["columns"], json!(["event", "n", "people"]));
    assert_eq!(answer["types"], json!([["event", "String"], ["n", "Int64"], ["people", "Int64"]]));
    // `anon` became Ada.
    assert_eq!(answer["results"], json!([["$pageview", 5, 2], ["buy", 2, 2], ["$identify", 1, 1]]));
    assert_eq!((&answer["hasMore"], &answer["is_cached"]), (&json!(false), &json!(false)));
    assert_eq!((&answer["limit"], &answer["offset"]), (&json!(100), &json!(0)));
    assert_eq!(answer["resolved_date_range"], Value::Null);
    assert_eq!(answer["timezone"], "Europe/Berlin");
    let again = sql(&app, &caller, answer["hogql"].as_str().unwrap()).await;
    assert_eq!((&again["results"], &again["hogql"]), (&answer["results"], &answer["hogql"]));
    for (text, expected) in [
        (
            "SELECT sum(properties.price), avg(properties.price), max(timestamp) FROM events \
             WHERE event = 'buy'",
            json!([[9.5, 4.75, "2026-03-30T08:05:00Z"]]),
        ),
        // The clock was set forward on this day.
        (
            "SELECT toDate(timestamp) AS day, count() FROM events \
             WHERE timestamp >= '2026-03-29' AND timestamp < '2026-03-30' GROUP BY day",
            json!([["2026-03-29", 3]]),
        ),
        ("SELECT toHour(timestamp) AS hour FROM events WHERE event = '$identify'", json!([[3]])),
        ("SELECT count(), sum(pageview_count), uniq(person_id) FROM sessions", json!([[6, 5, 2]])),
        (
            "SELECT max(n) FROM (SELECT distinct_id, count() AS n FROM events GROUP BY distinct_id)",
            json!([[4]]),
        ),
        (
            "SELECT distinct_id FROM events WHERE distinct_id IN \
             (SELECT distinct_id FROM events WHERE properties.price > 5) LIMIT 1 OFFSET 1",
            json!([["ada"]]),
        ),
    ] {
        assert_eq!(sql(&app, &caller, text).await["results"], expected, "{text}");
    }
    let filtered = json!({
        "kind": "HogQLQuery",
        "query": "SELECT count() FROM events WHERE {filters} AND event = {name}",
        "values": {"name": "$pageview"},
        "filters": {
            "dateRange": {"date_from": DAYS[1], "date_to": DAYS[2]},
            "properties": [{"key": "page", "value": ["tea"], "type": "event",
                "operator": "exact"}],
        },
    });
    let answer = post(&app, &caller, &json!({"query": filtered})).await.json();
    assert_eq!(answer["results"], json!([[2]]));
}

#[tokio::test(flavor = "multi_thread")]
async fn sql_reads_persons_and_groups_as_they_are_now() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["query:read"]).await;
    let group = |size: u32| json!({"$group_type": "company", "$group_key": "acme", "$group_set": {"size": size}});
    let set = |tier: &str| json!({"$set": {"tier": tier}, "$groups": {"company": "acme"}});
    send(
        &app,
        json!([
            {"event": "$groupidentify", "distinct_id": "ada", "properties": group(12)},
            {"event": "order", "distinct_id": "ada", "properties": set("silver")},
            {"event": "order", "distinct_id": "bob"},
        ]),
    )
    .await;
    let orders = "SELECT distinct_id, person.properties.tier, group_0.properties.size FROM events \
                  WHERE event = 'order' ORDER BY distinct_id";
    let persons = "SELECT properties.tier, is_identified, distinct_ids FROM persons \
                   ORDER BY properties.tier";
    let groups = "SELECT index, key, properties.size FROM groups";
    let all = async || {
        let mut found = Vec::new();
        for text in [orders, persons, groups] {
            found.push(sql(&app, &caller, text).await["results"].clone());
        }
        found
    };
    assert_eq!(
        all().await,
        [
            json!([["ada", "silver", "12"], ["bob", null, null]]),
            json!([["silver", false, ["ada"]], [null, false, ["bob"]]]),
            json!([[0, "acme", "12"]]),
        ]
    );
    send(
        &app,
        json!([
            {"event": "$groupidentify", "distinct_id": "ada", "properties": group(13)},
            {"event": "seen", "distinct_id": "ada", "properties": set("gold")},
        ]),
    )
    .await;
    assert_eq!(
        all().await,
        [
            json!([["ada", "gold", "13"], ["bob", null, null]]),
            json!([["gold", false, ["ada"]], [null, false, ["bob"]]]),
            json!([[0, "acme", "13"]]),
        ]
    );

    let owner = app.owner().key(&["*"]).await;
    let path = format!("/api/projects/{}/persons/", app.project());
    let found = owner.get(&format!("{path}?distinct_id=ada")).await.json();
    let ada = found["results"][0]["id"].as_str().unwrap();
    let erased = owner.delete(&format!("{path}{ada}/?delete_events=true")).await;
    assert_eq!(erased.status, 202, "{:?}", erased.body);
    assert_eq!(sql(&app, &caller, orders).await["results"], json!([["bob", null, null]]));
    assert_eq!(sql(&app, &caller, persons).await["results"], json!([[null, false, ["bob"]]]));

    // Another project has none of it.
    let made = owner.post("/api/projects/", &json!({"name": "Empty"})).await.json();
    let path = format!("/api/projects/{}/query/", made["id"]);
    for table in ["events", "persons", "groups", "sessions"] {
        let text = format!("SELECT count() FROM {table}");
        let question = json!({"query": {"kind": "HogQLQuery", "query": text}});
        assert_eq!(owner.post(&path, &question).await.json()["results"], json!([[0]]), "{table}");
    }
    let foreign = format!("SELECT 1 FROM events WHERE team_id != {}", app.project());
    assert_eq!(sql(&app, &caller, &foreign).await["results"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_sql_is_refused_with_its_position() {
    let (app, caller) = berlin().await;
    fill(&app).await;
    let deep = format!("SELECT {}1{} FROM events", "(".repeat(9_000), ")".repeat(9_000));
    let wide = format!("SELECT 1 FROM events WHERE {}1", "1 OR ".repeat(3_000));
    for (text, ending) in [
        ("SELECT * FROM person", "(line 1, column 15)"),
        ("SELECT *\nFROM information_schema.tables", "(line 2, column 6)"),
        ("SELECT * FROM file('/etc/passwd')", "(line 1, column 15)"),
        ("SELECT * FROM url('http://127.0.0.1/', CSV)", "(line 1, column 15)"),
        ("SELECT file('/etc/passwd') FROM events", "(line 1, column 8)"),
        ("SELECT sleepEachRow(3) FROM events", "(line 1, column 8)"),
        ("SELECT event FROM events; DROP TABLE events", "found `DROP` (line 1, column 27)"),
        ("DELETE FROM events", "(line 1, column 1)"),
        ("SELECT event FROM events UNION ALL SELECT event FROM events", "(line 1, column 26)"),
        ("SELECT event FROM events, persons", "(line 1, column 25)"),
        ("SELECT event FROM events LIMIT 50001", "LIMIT is from 0 to 50000 (line 1, column 32)"),
        ("SELECT event FROM events OFFSET 1000000000", "(line 1, column 33)"),
        ("SELECT match(event, 'a{1000}{1000}') FROM events", ")"),
        (deep.as_str(), ")"),
        (wide.as_str(), ")"),
    ] {
        let question = json!({"query": {"kind": "HogQLQuery", "query": text}});
        let answer = post(&app, &caller, &question).await;
        let (status, kind, code, detail, attr) = answer.error();
        let start: String = text.chars().take(60).collect();
        assert_eq!((status, kind.as_str()), (400, "validation_error"), "{start}: {detail}");
        assert_eq!((code.as_str(), attr.as_deref()), ("invalid_input", Some("query")), "{start}");
        assert!(detail.contains("(line ") && detail.ends_with(ending), "{start}: {detail}");
    }
    // A value stays a value.
    let question = json!({"kind": "HogQLQuery", "values": {"name": "buy' OR true OR '"},
        "query": "SELECT count() FROM events WHERE event = {name}"});
    let answer = post(&app, &caller, &json!({"query": question})).await.json();
    assert_eq!(answer["results"], json!([[0]]));
    assert_eq!(sql(&app, &caller, "SELECT count() FROM events").await["results"], json!([[8]]));
}
