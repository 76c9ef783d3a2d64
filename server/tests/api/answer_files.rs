//! Answers as files: their values are those of the API, and who may download them.

use std::time::Duration;

use http::Method;
use serde_json::{Map, Value, json};
use weir_testkit::{TestApp, parquet_rows};

use crate::stored::send;
use crate::web::{page, session};

/// A column of each type, with values that spreadsheets would evaluate.
const SQL: &str = "SELECT uuid, event, timestamp, toFloat(properties.price) AS price, \
                   toInt(properties.parts) AS parts, event = 'tea paid' AS paid, \
                   properties.note AS note, properties.tags AS tags \
                   FROM events ORDER BY timestamp";

/// Three events whose properties have values of all types, or none.
async fn furnished() -> TestApp {
    let app = TestApp::with_owner().await;
    let event = |event: &str, minute: u8, properties: Value| json!({"event": event, "distinct_id": "ada", "timestamp": format!("2026-03-28T12:{minute:02}:00.000125Z"), "properties": properties});
    let paid = json!({"price": 2.5, "parts": -3, "note": "a \"b\",\nc", "tags": ["x", 1]});
    send(
        &app,
        json!([
            event("tea paid", 1, paid),
            event("=sum(A1)", 2, json!({"price": -0.1, "note": "@cmd"})),
            event("tea seen", 3, json!({"note": "", "parts": 9_007_199_254_740_993_i64})),
        ]),
    )
    .await;
    app
}

/// The address of a file with these fields.
fn address(project: &str, file: &str, fields: &[(&str, &str)]) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(fields);
    format!("/_answers/{project}/{file}?{}", query.finish())
}

/// The answer of the API to a question.
async fn answer(app: &TestApp, query: &Value) -> Value {
    let caller = app.owner().key(&["query:read"]).await;
    let path = format!("/api/projects/{}/query/", app.project());
    let answer = caller.post(&path, &json!({"query": query})).await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    answer.json()
}

/// The rows of an answer, each with the names of its columns.
fn named(answer: &Value) -> Vec<Map<String, Value>> {
    let columns: Vec<&str> =
        answer["columns"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    let rows = answer["results"].as_array().unwrap().iter();
    let row = |row: &Value| {
        let values = row.as_array().unwrap().iter().cloned();
        columns.iter().map(|name| (*name).to_owned()).zip(values).collect()
    };
    rows.map(row).collect()
}

/// A value as CSV files have it.
fn csv_cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        other => {
            let text = other.as_str().map_or_else(|| other.to_string(), str::to_owned);
            let mark = if text.starts_with(['=', '@']) { "'" } else { "" };
            format!("\"{mark}{}\"", text.replace('"', "\"\""))
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_sql_have_the_values_of_the_api() {
    let app = furnished().await;
    let cookie = session(&app).await;
    let project = app.project().to_string();
    let of_api = answer(&app, &json!({"kind": "HogQLQuery", "query": SQL})).await;
    let rows = named(&of_api);
    assert_eq!(rows.len(), 3);
    assert_eq!(rows[2]["parts"], json!(9_007_199_254_740_993_i64));

    let file = page(&app, &address(&project, "sql.parquet", &[("query", SQL)]), &cookie).await;
    assert_eq!(file.status, 200, "{:?}", file.body);
    assert_eq!(file.header("content-type"), Some("application/vnd.apache.parquet"));
    assert_eq!(file.header("cache-control"), Some("no-store"));
    let disposition = file.header("content-disposition");
    assert_eq!(disposition, Some("attachment; filename=\"sql-shop.parquet\""));
    let stored: Vec<Map<String, Value>> = parquet_rows(&file.body);
    // A list is text in the file.
    let mut expected = rows.clone();
    for row in &mut expected {
        if row["tags"].is_array() {
            row["tags"] = json!(row["tags"].to_string());
        }
    }
    assert_eq!(stored, expected);

    let file = page(&app, &address(&project, "sql.csv", &[("query", SQL)]), &cookie).await;
    assert_eq!(file.header("content-type"), Some("text/csv; charset=utf-8"));
    let head =
        "\"uuid\",\"event\",\"timestamp\",\"price\",\"parts\",\"paid\",\"note\",\"tags\"\r\n";
    let mut text = head.to_owned();
    for row in of_api["results"].as_array().unwrap() {
        let cells: Vec<String> = row.as_array().unwrap().iter().map(csv_cell).collect();
        text.push_str(&cells.join(","));
        text.push_str("\r\n");
    }
    assert_eq!(file.text(), text);
    assert!(text.contains("\"'=sum(A1)\"") && text.contains(",-0.1,"), "{text}");

    let empty = [("query", "SELECT event FROM events WHERE event = 'gone'")];
    let file = page(&app, &address(&project, "sql.csv", &empty), &cookie).await;
    assert_eq!(file.text(), "\"event\"\r\n");
    let file = page(&app, &address(&project, "sql.parquet", &empty), &cookie).await;
    assert!(parquet_rows(&file.body).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_explored_events_have_the_values_of_the_api() {
    let app = furnished().await;
    let cookie = session(&app).await;
    let project = app.project().to_string();
    let fields = [
        ("range", "all"),
        ("property1", "note"),
        ("operator1", "is_set"),
        ("where", "distinct_id = 'ada'"),
        ("columns", "price, note"),
        ("order", "timestamp"),
    ];
    let query = json!({
        "kind": "EventsQuery",
        "select": ["uuid", "timestamp", "event", "distinct_id", "person_id", "properties.$groups",
            "properties.price", "properties.note"],
        "where": ["distinct_id = 'ada'"],
        "properties": [{"key": "note", "operator": "is_set"}],
        "orderBy": ["timestamp ASC"],
    });
    let mut of_api = answer(&app, &query).await;
    let names =
        ["uuid", "timestamp", "event", "distinct_id", "person_id", "groups", "price", "note"];
    of_api["columns"] = json!(names);
    let rows = named(&of_api);
    assert!(rows.len() >= 2, "{rows:?}");
    let file = page(&app, &address(&project, "events.parquet", &fields), &cookie).await;
    assert_eq!(file.status, 200, "{:?}", file.body);
    assert_eq!(parquet_rows(&file.body), rows);
    let file = page(&app, &address(&project, "events.csv", &fields), &cookie).await;
    let text = file.text();
    let head = names.map(|name| format!("\"{name}\"")).join(",");
    assert!(text.starts_with(&format!("{head}\r\n")), "{text}");
    assert!(text.contains("\"'=sum(A1)\"") && text.contains("\"'@cmd\""), "{text}");

    // A fault is at a field of the page, which shows it.
    let refused = [("range", "-5d")];
    let refused = page(&app, &address(&project, "events.csv", &refused), &cookie).await;
    assert_eq!((refused.status, refused.error().4.as_deref()), (400, Some("range")));
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_of_the_page_apply_to_its_files() {
    let app = furnished().await;
    let cookie = session(&app).await;
    let filters = r#"{"properties": [{"key": "note", "operator": "exact", "value": ["@cmd"]}]}"#;
    let fields = [("query", "SELECT event FROM events WHERE {filters}"), ("filters", filters)];
    let project = app.project().to_string();
    let file = page(&app, &address(&project, "sql.csv", &fields), &cookie).await;
    assert_eq!(file.text(), "\"event\"\r\n\"'=sum(A1)\"\r\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_a_refused_question_is_the_fault_with_its_position() {
    let app = furnished().await;
    let cookie = session(&app).await;
    let project = app.project().to_string();
    for (sql, position) in [
        ("SELECT secret FROM events", "(line 1, column 8)"),
        ("SELECT event\r\nFROM system.tables", "(line 2, column "),
        ("DROP TABLE events", "(line 1, column 1)"),
        ("SELECT file('/etc/passwd') FROM events", "(line 1, column 8)"),
        ("SELECT event FROM events; SELECT 1", "(line 1, column "),
    ] {
        for file in ["sql.csv", "sql.parquet"] {
            let path = address(&project, file, &[("query", sql)]);
            let refused = page(&app, &path, &cookie).await;
            let (status, _, _, detail, attr) = refused.error();
            assert_eq!((status, attr.as_deref()), (400, Some("query")), "{sql}: {detail}");
            assert!(detail.contains(position), "{sql}: {detail}");
            // A browser shows the page, which has the fault at its field.
            let call = app.anonymous().call(Method::GET, &path).header("cookie", &cookie);
            let led = call.header("accept", "text/html").send().await;
            assert_eq!(led.status, 303, "{sql}");
            let to = led.header("location").unwrap();
            assert!(to.starts_with(&format!("/projects/{project}/sql?query=")), "{to}");
            assert!(to.contains("&__path=/_fn/get_sql&__err="), "{to}");
        }
    }
    let long = "x".repeat(5_000);
    let refused = page(&app, &address(&project, "sql.csv", &[("query", &long)]), &cookie).await;
    assert_eq!(refused.error().2, "max_length");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_of_a_refused_file_shows_its_fault_and_does_not_ask_again() {
    let app = TestApp::start(|_| {}, |limits| limits.question_time = Duration::ZERO).await;
    let app = app.set_up().await;
    send(&app, json!([{"event": "tea paid", "distinct_id": "ada"}])).await;
    let cookie = session(&app).await;
    let project = app.project().to_string();
    for (file, fields) in [
        ("sql.csv", [("query", "SELECT event FROM events")]),
        ("events.parquet", [("range", "all")]),
    ] {
        let call = app.anonymous().call(Method::GET, &address(&project, file, &fields));
        let led = call.header("cookie", &cookie).header("accept", "text/html").send().await;
        assert_eq!(led.status, 303, "{file}");
        let to = led.header("location").unwrap().to_owned();
        assert!(to.contains("query_timeout"), "{to}");
        // The page has the text of the address.
        let other = to.replace("longer%20than", "more%20than");
        assert_ne!(other, to);
        let shown = page(&app, &other, &cookie).await;
        assert!(shown.text().contains("The question took more than"), "{file}: {}", shown.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_other_projects_are_not_there() {
    let app = TestApp::with_owner().await;
    let cookie = session(&app).await;
    let theirs = app.outsider("mallory").await.key(&["*"]).await;
    let other = theirs.post("/api/organizations/", &json!({"name": "Beta"})).await.json();
    let foreign = other["teams"][0]["id"].to_string();
    let fields = [("query", "SELECT event FROM events")];
    for project in [foreign.as_str(), "4711", "junk"] {
        let path = address(project, "sql.csv", &fields);
        let missing = page(&app, &path, &cookie).await;
        missing.assert_error(404, "invalid_request", "not_found", "Not found.");
        assert_eq!(page(&app, &path, "session=x").await.status, 303, "{project}");
    }
    let own = app.project().to_string();
    for file in ["sql.xlsx", "sql", "other.csv"] {
        assert_eq!(page(&app, &address(&own, file, &fields), &cookie).await.status, 404, "{file}");
    }
}
