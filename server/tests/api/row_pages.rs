//! The pages for SQL and for exploring events: their rows are those of the API.

use serde_json::{Value, json};
use weir_testkit::{Answer, TestApp};

use crate::stored::{get, send};
use crate::traffic::function;
use crate::web::session;

/// Calls a server function for the project.
async fn call(app: &TestApp, cookie: &str, name: &str, fields: &[(&str, &str)]) -> Answer {
    let mut body = form_urlencoded::Serializer::new(String::new());
    body.append_pair("project", &app.project().to_string()).extend_pairs(fields);
    function(app, cookie, name, &body.finish()).await
}

/// What a server function answers.
async fn view(app: &TestApp, cookie: &str, name: &str, fields: &[(&str, &str)]) -> Value {
    let answer = call(app, cookie, name, fields).await;
    assert_eq!(answer.status, 200, "{fields:?}: {:?}", answer.body);
    answer.json()
}

/// Three events of two persons, of which one has a group.
async fn furnished() -> TestApp {
    let app = TestApp::with_owner().await;
    let event = |event: &str, id: &str, time: &str, properties: Value| json!({"event": event, "distinct_id": id, "timestamp": time, "properties": properties});
    let groups = json!({"company": "acme"});
    send(
        &app,
        json!([
            event("tea seen", "ada", "2026-03-27T12:00:00Z", json!({"plan": "pro"})),
            event(
                "tea paid",
                "ada",
                "2026-03-28T12:00:00Z",
                json!({"plan": "pro", "price": 2.5, "$groups": groups})
            ),
            event("tea paid", "bob", "2026-03-30T08:00:00Z", json!({"price": 4})),
        ]),
    )
    .await;
    app
}

#[tokio::test(flavor = "multi_thread")]
async fn sql_has_the_rows_of_the_api() {
    let app = furnished().await;
    let cookie = session(&app).await;
    let text = "SELECT event, count() AS n, max(properties.gone) AS gone\r\nFROM events\r\n\
                WHERE event LIKE 'tea%' GROUP BY event ORDER BY event LIMIT 1";
    let found = view(&app, &cookie, "get_sql", &[("query", text)]).await;
    assert_eq!(found["text"], text.replace("\r\n", "\n"));
    let answer = &found["answer"]["Ok"];
    let kinds = json!([["event", "String"], ["n", "Int64"], ["gone", "String"]]);
    assert_eq!(answer["columns"], kinds);
    assert_eq!(answer["rows"], json!([["tea paid", "2", null]]));
    assert_eq!((&answer["count"], &answer["has_more"]), (&json!(1), &json!(true)));
    let tables: Vec<&str> = found["tables"]
        .as_array()
        .unwrap()
        .iter()
        .map(|table| table["name"].as_str().unwrap())
        .collect();
    assert_eq!(tables, ["events", "persons", "groups", "sessions"]);

    let empty = view(&app, &cookie, "get_sql", &[]).await;
    assert_eq!((&empty["answer"], &empty["saved"]), (&Value::Null, &Value::Null));
    for (fields, attr, part) in [
        (&[("query", "SELECT event,\n nothing FROM events")][..], "query", "(line 2, column 2)"),
        (&[("query", "SELECT 1 FROM events"), ("filters", "[")][..], "filters", "not JSON"),
        (
            &[("query", "SELECT 1 FROM events WHERE {filters}"), ("filters", r#"{"x": 1}"#)][..],
            "filters",
            "x: ",
        ),
    ] {
        let found = view(&app, &cookie, "get_sql", fields).await;
        let fault = &found["answer"]["Err"];
        assert_eq!(fault["attr"], attr, "{fault}");
        assert!(fault["detail"].as_str().unwrap().contains(part), "{fault}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_in_sql_is_saved_and_opened_again() {
    let app = furnished().await;
    let cookie = session(&app).await;
    let caller = app.owner().key(&["insight:write"]).await;
    let filters = r#"{"dateRange":{"date_from":"2026-03-28"}}"#;
    let text = "SELECT count() FROM events WHERE {filters}";
    let fields = [("query", text), ("filters", filters), ("name", "Paid teas")];
    assert!(call(&app, &cookie, "save_sql", &fields).await.status < 400);
    let saved = get(&app, &caller, "insights/").await["results"][0].clone();
    assert_eq!((&saved["name"], &saved["query"]["query"]), (&json!("Paid teas"), &json!(text)));
    let short_id = saved["short_id"].as_str().unwrap();

    let opened = view(&app, &cookie, "get_sql", &[("insight", short_id)]).await;
    assert_eq!((&opened["text"], &opened["filters"]), (&json!(text), &json!(filters)));
    assert_eq!(opened["saved"], json!({"short_id": short_id, "name": "Paid teas"}));
    assert_eq!(opened["answer"]["Ok"]["rows"], json!([["2"]]));

    let fields = [("insight", short_id), ("query", "SELECT 1 FROM events"), ("name", "One")];
    assert!(call(&app, &cookie, "save_sql", &fields).await.status < 400);
    let opened = view(&app, &cookie, "get_sql", &[("insight", short_id)]).await;
    assert_eq!((&opened["text"], &opened["filters"]), (&json!("SELECT 1 FROM events"), &json!("")));

    // A question that the page cannot show is not replaced by an empty one.
    let path = format!("/api/projects/{}/insights/", app.project());
    for query in [
        json!({"kind": "TrendsQuery", "series": [{"event": "tea paid"}]}),
        json!({"kind": "HogQLQuery", "query": "SELECT {x} FROM events", "values": {"x": 1}}),
    ] {
        let made = caller.post(&path, &json!({"query": query})).await.json();
        let short_id = made["short_id"].as_str().unwrap();
        let asked = [("insight", short_id), ("query", "SELECT 1 FROM events")];
        for fields in [&asked[..1], &asked[..]] {
            assert_eq!(call(&app, &cookie, "get_sql", fields).await.status, 400, "{query}");
        }
        let fields = [&asked[..], &[("name", "One")][..]].concat();
        let refused = call(&app, &cookie, "save_sql", &fields).await;
        assert_eq!(refused.status, 400, "{query}");
        assert!(refused.text().contains("no question in SQL"), "{}", refused.text());
        let left = get(&app, &caller, &format!("insights/{short_id}/")).await;
        assert_eq!(left["query"], made["query"]);
    }
    assert_eq!(call(&app, &cookie, "get_sql", &[("insight", "gonegone")]).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn explored_events_are_those_of_the_api() {
    let app = furnished().await;
    let cookie = session(&app).await;
    let all = [("fields[from]", "2026-03-27"), ("fields[to]", "2026-03-30")];
    let paid = [("fields[property1]", "price"), ("fields[operator1]", "gte")];
    let paid = [&all[..], &paid[..], &[("fields[value1]", "2"), ("fields[columns]", "price")][..]];
    let found = view(&app, &cookie, "explore_events", &paid.concat()).await;
    let answer = &found["answer"]["Ok"];
    assert_eq!(answer["total"], 2);
    let rows = answer["rows"].as_array().unwrap();
    let values: Vec<&Value> = rows.iter().map(|row| &row["values"]).collect();
    assert_eq!(values, [&json!(["4"]), &json!(["2.5"])], "newest first");
    assert_eq!(rows[1]["groups"], json!([["company", "acme"]]));
    assert!(rows[0]["person"].is_string() && rows[0]["groups"] == json!([]));
    // Four days, of which two have an event.
    assert_eq!(answer["chart"]["counts"], json!([0, 1, 0, 1]));
    assert!(found["properties"].as_array().unwrap().contains(&json!("price")));

    // The same question by API, and in SQL.
    let caller = app.owner().key(&["query:read"]).await;
    let path = format!("/api/projects/{}/query/", app.project());
    let query: Value = serde_json::from_str(answer["query"].as_str().unwrap()).unwrap();
    let by_api = caller.post(&path, &json!({"query": query})).await.json();
    assert_eq!(by_api["results"][0][0], rows[0]["uuid"]);
    assert_eq!(by_api["results"].as_array().unwrap().len(), 2);
    let filters: Value = serde_json::from_str(answer["filters"].as_str().unwrap()).unwrap();
    let sql = json!({"kind": "HogQLQuery", "query": answer["sql"], "filters": filters});
    let in_sql = caller.post(&path, &json!({"query": sql})).await.json();
    assert_eq!(in_sql["results"], by_api["results"]);

    let of = async |fields: &[(&str, &str)]| {
        let fields = [&all[..], fields].concat();
        view(&app, &cookie, "explore_events", &fields).await["answer"].clone()
    };
    for (fields, total) in [
        (&[][..], 3),
        (&[("fields[event]", "tea seen")][..], 1),
        (&[("fields[person]", "bob")][..], 1),
        (&[("fields[group_type]", "company"), ("fields[group]", "acme")][..], 1),
        (&[("fields[where]", "length(event) > 100")][..], 0),
    ] {
        assert_eq!(of(fields).await["Ok"]["total"], total, "{fields:?}");
    }
    for (fields, attr) in [
        (&[("fields[where]", "nothing = 1")][..], "where"),
        (
            &[("fields[property2]", "x"), ("fields[operator2]", "regex"), ("fields[value2]", "(")]
                [..],
            "value2",
        ),
        (&[("fields[group]", "acme")][..], "group_type"),
    ] {
        assert_eq!(of(fields).await["Err"]["attr"], attr);
    }
    let none = of(&[("fields[event]", "gone")]).await;
    assert_eq!((&none["Ok"]["total"], &none["Ok"]["chart"]), (&json!(0), &Value::Null));
}
