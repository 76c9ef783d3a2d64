//! `/api/projects/{project_id}/annotations/`: what happened at a time.

use serde_json::{Value, json};
use weir_testkit::{Caller, TestApp};

fn path(app: &TestApp) -> String {
    format!("/api/projects/{}/annotations/", app.project())
}

fn one(app: &TestApp, annotation: &Value) -> String {
    format!("{}{}/", path(app), annotation["id"])
}

async fn made(caller: &Caller, path: &str, body: &Value) -> Value {
    let answer = caller.post(path, body).await;
    assert_eq!(answer.status, 201, "{:?}", answer.body);
    answer.json()
}

async fn contents(caller: &Caller, path: &str) -> Vec<String> {
    let answer = caller.get(path).await;
    assert_eq!(answer.status, 200, "{path}: {:?}", answer.body);
    let list = answer.json();
    let results = list["results"].as_array().unwrap();
    results.iter().map(|one| one["content"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_annotation_is_added_changed_hidden_and_deleted() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["annotation:write", "activity_log:read"]).await;
    let body = json!({"content": " New prices ", "date_marker": "2026-06-01T09:00"});
    let annotation = made(&caller, &path(&app), &body).await;
    for (field, value) in [
        ("content", json!("New prices")),
        ("date_marker", json!("2026-06-01T09:00:00Z")),
        ("scope", json!("project")),
        ("dashboard_item", Value::Null),
        ("dashboard_id", Value::Null),
        ("deleted", json!(false)),
    ] {
        assert_eq!(annotation[field], value, "{field}");
    }
    assert_eq!(annotation["created_by"]["uuid"], json!(app.owner().id()));
    let address = one(&app, &annotation);
    assert_eq!(caller.get(&address).await.json(), annotation);
    assert_eq!(caller.patch(&address, &annotation).await.json(), annotation);
    let changed = caller.patch(&address, &json!({"content": "Higher prices"})).await.json();
    assert_eq!(changed["content"], "Higher prices");
    assert_eq!(caller.patch(&address, &json!({"deleted": true})).await.json()["deleted"], true);
    assert_eq!(caller.get(&address).await.status, 404);
    assert!(contents(&caller, &path(&app)).await.is_empty());
    assert_eq!(caller.patch(&address, &json!({"deleted": false})).await.status, 200);
    assert_eq!(caller.delete(&address).await.status, 204);
    caller.delete(&address).await.assert_error(404, "invalid_request", "not_found", "Not found.");
    let log = format!("/api/projects/{}/activity_log/?scope=Annotation", app.project());
    let log = caller.get(&log).await.json();
    let actions: Vec<&Value> =
        log["results"].as_array().unwrap().iter().map(|entry| &entry["activity"]).collect();
    assert_eq!(actions, ["deleted", "updated", "updated", "updated", "created"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn annotations_are_listed_by_their_time() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["*"]).await;
    let dashboards = format!("/api/projects/{}/dashboards/", app.project());
    let dashboard = made(&caller, &dashboards, &json!({"name": "Growth"})).await;
    for (content, day, place) in [
        ("May", 1, json!({})),
        ("Ascension", 14, json!({"scope": "dashboard", "dashboard_id": dashboard["id"]})),
        ("Labour day", 1, json!({"scope": "project", "dashboard_id": dashboard["id"]})),
    ] {
        let mut body = place;
        body["content"] = json!(content);
        body["date_marker"] = json!(format!("2026-05-{day:02}T00:00:00Z"));
        made(&caller, &path(&app), &body).await;
    }
    for (filter, expected) in [
        ("", vec!["Ascension", "Labour day", "May"]),
        ("?search=DAY", vec!["Labour day"]),
        ("?scope=dashboard", vec!["Ascension"]),
        ("?date_from=2026-05-02T00:00", vec!["Ascension"]),
        ("?date_to=2026-05-14T00:00:00Z", vec!["Labour day", "May"]),
        ("?limit=1&offset=1", vec!["Labour day"]),
    ] {
        assert_eq!(contents(&caller, &format!("{}{filter}", path(&app))).await, expected);
    }
    for (filter, attr) in [("scope=organization", "scope"), ("date_from=soon", "date_from")] {
        let (status, _, _, _, at) = caller.get(&format!("{}?{filter}", path(&app))).await.error();
        assert_eq!((status, at.as_deref()), (400, Some(attr)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_name_their_field_and_another_project_sees_nothing() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["*"]).await;
    let with = |field: &str, value: Value| {
        let mut body = json!({"content": "May", "date_marker": "2026-05-01T00:00"});
        body[field] = value;
        body
    };
    for (body, attr, code) in [
        (json!({}), "content", "required"),
        (json!({"content": "May"}), "date_marker", "required"),
        (with("content", json!("x".repeat(1001))), "content", "max_length"),
        (with("date_marker", json!("soon")), "date_marker", "invalid_input"),
        (with("date_marker", Value::Null), "date_marker", "null"),
        (with("scope", json!("organization")), "scope", "invalid_choice"),
        (with("scope", json!("dashboard")), "dashboard_id", "required"),
        (with("scope", json!("dashboard_item")), "dashboard_item", "required"),
        (with("dashboard_item", json!(987_654)), "dashboard_item", "does_not_exist"),
        (with("dashboard_id", json!(987_654)), "dashboard_id", "does_not_exist"),
    ] {
        let (status, kind, found, _, at) = caller.post(&path(&app), &body).await.error();
        let found = (status, kind.as_str(), found.as_str(), at.as_deref());
        assert_eq!(found, (400, "validation_error", code, Some(attr)), "{body}");
    }
    let body = with("deleted", json!(false));
    let annotation = made(&caller, &path(&app), &body).await;
    let blog = caller.post("/api/projects/", &json!({"name": "Blog"})).await.json();
    let other = format!("/api/projects/{}/annotations/", blog["id"]);
    assert!(contents(&caller, &other).await.is_empty());
    let foreign = format!("{other}{}/", annotation["id"]);
    for answer in [
        caller.get(&foreign).await,
        caller.patch(&foreign, &json!({"content": "x"})).await,
        caller.delete(&foreign).await,
    ] {
        answer.assert_error(404, "invalid_request", "not_found", "Not found.");
    }
    assert_eq!(caller.get(&one(&app, &annotation)).await.json(), annotation);
}
