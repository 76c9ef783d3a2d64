//! `/api/projects/{project_id}/insights/`: saved questions.

use futures::future::join_all;
use serde_json::{Value, json};
use weir_model::insights::QUERY_MAX;
use weir_model::organizations::Level;
use weir_store::organizations::deletions;
use weir_testkit::{Caller, TestApp};

use crate::stored::send;
use crate::traffic::function;
use crate::web::session;

fn path(app: &TestApp) -> String {
    format!("/api/projects/{}/insights/", app.project())
}

fn trends(event: &str) -> Value {
    json!({"kind": "TrendsQuery", "series": [{"kind": "EventsNode", "event": event}]})
}

async fn made(app: &TestApp, caller: &Caller, body: &Value) -> Value {
    let answer = caller.post(&path(app), body).await;
    assert_eq!(answer.status, 201, "{:?}", answer.body);
    answer.json()
}

fn one(app: &TestApp, insight: &Value) -> String {
    format!("{}{}/", path(app), insight["id"])
}

async fn dashboard(app: &TestApp, caller: &Caller, name: &str) -> Value {
    let path = format!("/api/projects/{}/dashboards/", app.project());
    let answer = caller.post(&path, &json!({"name": name})).await;
    assert_eq!(answer.status, 201, "{:?}", answer.body);
    answer.json()
}

async fn tiles(app: &TestApp, caller: &Caller, dashboard: &Value) -> Vec<Value> {
    let path = format!("/api/projects/{}/dashboards/{}/", app.project(), dashboard["id"]);
    let answer = caller.get(&path).await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    let tiles = answer.json()["tiles"].as_array().unwrap().clone();
    tiles.iter().map(|tile| tile["insight"]["id"].clone()).collect()
}

async fn ids(caller: &Caller, path: &str) -> Vec<i64> {
    let answer = caller.get(path).await;
    assert_eq!(answer.status, 200, "{path}: {:?}", answer.body);
    let list = answer.json();
    let results = list["results"].as_array().unwrap();
    results.iter().map(|insight| insight["id"].as_i64().unwrap()).collect()
}

/// Actions and changed fields of the audit entries about an insight, oldest first.
async fn audit_entries(
    app: &TestApp,
    caller: &Caller,
    insight: &Value,
) -> Vec<(String, Vec<String>)> {
    let path = format!(
        "/api/projects/{}/activity_log/?scope=Insight&item_id={}",
        app.project(),
        insight["id"]
    );
    let list = caller.get(&path).await.json();
    let changed = |entry: &Value| {
        let changes = entry["detail"]["changes"].as_array().unwrap();
        let fields = changes.iter().map(|change| change["field"].as_str().unwrap().to_owned());
        (entry["activity"].as_str().unwrap().to_owned(), fields.collect())
    };
    list["results"].as_array().unwrap().iter().rev().map(changed).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_insight_is_saved_read_changed_and_deleted() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["insight:write", "activity_log:read"]).await;
    let query = json!({"kind": "InsightVizNode", "source": trends("paid"), "full": true});
    let body = json!({"name": " Sales ", "query": query, "tags": ["a", "b", "a"]});
    let insight = made(&app, &caller, &body).await;
    let canonical = insight["query"].clone();
    assert_eq!(canonical["kind"], "TrendsQuery");
    assert_eq!(canonical["series"][0]["event"], "paid");
    for (field, value) in [
        ("name", json!("Sales")),
        ("derived_name", Value::Null),
        ("description", Value::Null),
        ("dashboards", json!([])),
        ("tags", json!(["a", "b"])),
        ("favorited", json!(false)),
        ("saved", json!(true)),
        ("deleted", json!(false)),
    ] {
        assert_eq!(insight[field], value, "{field}");
    }
    let me = json!(app.owner().id());
    assert_eq!((&insight["created_by"]["uuid"], &insight["last_modified_by"]["uuid"]), (&me, &me));
    let short = insight["short_id"].as_str().unwrap();
    let (by_id, by_short_id) = (one(&app, &insight), format!("{}{short}/", path(&app)));
    for address in [&by_id, &by_short_id] {
        assert_eq!(caller.get(address).await.json(), insight);
    }

    // What is sent back as it was answered changes nothing.
    assert_eq!(caller.patch(&by_id, &insight).await.json(), insight);
    let patch = json!({"description": "Per day", "favorited": true, "name": ""});
    let changed = caller.patch(&by_short_id, &patch).await;
    assert_eq!(changed.status, 200, "{:?}", changed.body);
    let changed = changed.json();
    assert_eq!((&changed["name"], &changed["description"]), (&Value::Null, &json!("Per day")));
    assert_eq!(changed["query"], canonical);
    let other = caller.patch(&by_id, &json!({"query": trends("signed up")})).await.json();
    assert_eq!(other["query"]["series"][0]["event"], "signed up");

    assert_eq!(caller.delete(&by_short_id).await.status, 204);
    for answer in [caller.get(&by_id).await, caller.get(&by_short_id).await] {
        answer.assert_error(404, "invalid_request", "not_found", "Not found.");
    }
    let expected = [
        ("created", vec!["query", "name", "tags"]),
        ("updated", vec!["name", "description", "favorited"]),
        ("updated", vec!["query"]),
        ("deleted", vec![]),
    ];
    let entries = audit_entries(&app, &caller, &insight).await;
    let entries: Vec<(&str, Vec<&str>)> = entries
        .iter()
        .map(|(action, fields)| (action.as_str(), fields.iter().map(String::as_str).collect()))
        .collect();
    assert_eq!(entries, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hidden_insight_is_only_in_the_answer_to_its_change() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["insight:write"]).await;
    let insight = made(&app, &caller, &json!({"query": trends("paid")})).await;
    let hidden = caller.patch(&one(&app, &insight), &json!({"deleted": true})).await;
    assert_eq!((hidden.status, &hidden.json()["deleted"]), (200, &json!(true)));
    assert_eq!(caller.get(&one(&app, &insight)).await.status, 404);
    assert!(ids(&caller, &path(&app)).await.is_empty());
    let shown = caller.patch(&one(&app, &insight), &json!({"deleted": false})).await;
    assert_eq!(shown.status, 200);
    assert_eq!(ids(&caller, &path(&app)).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_filtered_and_paged_in_the_order_of_creation() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["insight:write"]).await;
    let grace = app.member("grace", Level::Member).await;
    let hers = grace.key(&["insight:write"]).await;
    let body = |name: &str| json!({"name": name, "query": trends("paid")});
    let sales = made(&app, &caller, &body("Sales in Ödenburg")).await;
    let derived = json!({"derived_name": "Count of sales", "saved": false, "query": trends("a")});
    let derived = made(&app, &caller, &derived).await;
    let visits = made(&app, &hers, &body("Visits")).await;
    let marked = json!({"favorited": true});
    assert_eq!(caller.patch(&one(&app, &visits), &marked).await.status, 200);
    let number = |insight: &Value| insight["id"].as_i64().unwrap();
    let (one, two, three) = (number(&sales), number(&derived), number(&visits));
    assert!(one < two && two < three);
    let by_short_id = format!("?short_id={}", sales["short_id"].as_str().unwrap());
    let by_user = |id: String| format!("?created_by={id}");
    let (by_grace, by_none) =
        (by_user(grace.id().to_string()), by_user(app.organization().to_string()));
    for (filter, expected) in [
        ("", vec![one, two, three]),
        ("?search=SALES", vec![one, two]),
        ("?search=%C3%B6den", vec![one]),
        ("?saved=false", vec![two]),
        ("?saved=true&search=visit", vec![three]),
        ("?favorited=true", vec![three]),
        ("?limit=1&offset=1", vec![two]),
        (by_short_id.as_str(), vec![one]),
        (by_grace.as_str(), vec![three]),
        (by_none.as_str(), vec![]),
    ] {
        let path = format!("{}{filter}", path(&app));
        assert_eq!(ids(&caller, &path).await, expected, "{filter}");
    }
    for (filter, attr, code) in [
        ("saved=maybe", "saved", "invalid_choice"),
        ("created_by=ada", "created_by", "invalid_input"),
    ] {
        let answer = caller.get(&format!("{}?{filter}", path(&app))).await;
        let (status, _, found, _, at) = answer.error();
        assert_eq!((status, found.as_str(), at.as_deref()), (400, code, Some(attr)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_name_their_field() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["insight:write", "dashboard:write"]).await;
    let unknown = json!({"kind": "TrendsQuery", "series": [{"event": "a", "math": "most"}]});
    let values: Vec<String> = (0..1000).map(|n| format!("{n:0>100}")).collect();
    assert!(values.concat().len() > QUERY_MAX);
    let long = json!({
        "kind": "TrendsQuery", "series": [{"event": "a"}],
        "properties": [{"key": "plan", "operator": "exact", "value": values}],
    });
    let with = |field: &str, value: Value| {
        let mut body = json!({"query": trends("a")});
        body[field] = value;
        body
    };
    for (body, attr, code) in [
        (json!({}), "query", "required"),
        (json!({"query": null}), "query", "null"),
        (json!({"query": "trends"}), "query", "invalid_input"),
        (json!({"query": {"kind": "FeatureQuery"}}), "query__kind", "invalid_choice"),
        (json!({"query": unknown}), "query__series__0__math", "invalid_choice"),
        (json!({"query": long}), "query", "max_length"),
        (with("name", json!("x".repeat(401))), "name", "max_length"),
        (with("description", json!([])), "description", "invalid_input"),
        (with("dashboards", json!(7)), "dashboards", "not_a_list"),
        (with("dashboards", json!(["a"])), "dashboards__0", "invalid_input"),
        (with("dashboards", json!([987_654])), "dashboards", "does_not_exist"),
        (with("dashboards", json!(vec![1; 51])), "dashboards", "max_length"),
        (with("tags", json!([""])), "tags__0", "blank"),
        (with("tags", json!(vec!["a"; 21])), "tags", "max_length"),
        (with("favorited", Value::Null), "favorited", "null"),
    ] {
        let (status, kind, found, _, at) = caller.post(&path(&app), &body).await.error();
        let found = (status, kind.as_str(), found.as_str(), at.as_deref());
        assert_eq!(found, (400, "validation_error", code, Some(attr)));
    }
    assert!(ids(&caller, &path(&app)).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_insight_is_put_on_dashboards_and_removed_from_them() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["insight:write", "dashboard:write"]).await;
    let sales = dashboard(&app, &caller, "Sales").await;
    let visits = dashboard(&app, &caller, "Visits").await;
    let body = json!({"query": trends("paid"), "dashboards": [sales["id"]]});
    let insight = made(&app, &caller, &body).await;
    assert_eq!(insight["dashboards"], json!([sales["id"]]));
    assert_eq!(tiles(&app, &caller, &sales).await, [insight["id"].clone()]);

    let moved = json!({"dashboards": [visits["id"], visits["id"]]});
    let answer = caller.patch(&one(&app, &insight), &moved).await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    assert_eq!(answer.json()["dashboards"], json!([visits["id"]]));
    assert!(tiles(&app, &caller, &sales).await.is_empty());
    assert_eq!(tiles(&app, &caller, &visits).await, [insight["id"].clone()]);

    // A hidden dashboard is not named, and keeps its tile.
    let board = format!("/api/projects/{}/dashboards/{}/", app.project(), visits["id"]);
    assert_eq!(caller.patch(&board, &json!({"deleted": true})).await.status, 200);
    assert_eq!(caller.get(&one(&app, &insight)).await.json()["dashboards"], json!([]));
    let named = json!({"dashboards": [visits["id"]]});
    let (status, _, code, ..) = caller.patch(&one(&app, &insight), &named).await.error();
    assert_eq!((status, code.as_str()), (400, "does_not_exist"));
    let none = json!({"dashboards": null});
    assert_eq!(caller.patch(&one(&app, &insight), &none).await.status, 200);
    assert_eq!(caller.patch(&board, &json!({"deleted": false})).await.status, 200);
    assert_eq!(tiles(&app, &caller, &visits).await, [insight["id"].clone()]);

    assert_eq!(caller.delete(&one(&app, &insight)).await.status, 204);
    assert!(tiles(&app, &caller, &visits).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn changing_its_dashboards_needs_their_scope_too() {
    let app = TestApp::with_owner().await;
    let both = app.owner().key(&["insight:write", "dashboard:write"]).await;
    let sales = dashboard(&app, &both, "Sales").await;
    let caller = app.owner().key(&["insight:write", "dashboard:read"]).await;
    let body = json!({"query": trends("paid"), "dashboards": [sales["id"]]});
    let detail = "API key missing required scope 'dashboard:write'";
    let refused = caller.post(&path(&app), &body).await;
    refused.assert_error(403, "authentication_error", "permission_denied", detail);
    let insight = made(&app, &caller, &json!({"query": trends("paid"), "dashboards": []})).await;
    let refused = caller.patch(&one(&app, &insight), &json!({"dashboards": [sales["id"]]})).await;
    refused.assert_error(403, "authentication_error", "permission_denied", detail);
    // The same dashboards again need no further scope.
    assert_eq!(both.patch(&one(&app, &insight), &body).await.status, 200);
    let again = json!({"dashboards": [sales["id"]], "name": "Sales"});
    assert_eq!(caller.patch(&one(&app, &insight), &again).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn insights_of_another_project_do_not_exist() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["*"]).await;
    let insight = made(&app, &caller, &json!({"query": trends("paid")})).await;
    let blog = caller.post("/api/projects/", &json!({"name": "Blog"})).await.json();
    let other = format!("/api/projects/{}/insights/", blog["id"]);
    assert!(ids(&caller, &other).await.is_empty());
    for id in [insight["id"].to_string(), insight["short_id"].as_str().unwrap().to_owned()] {
        let path = format!("{other}{id}/");
        for answer in [
            caller.get(&path).await,
            caller.patch(&path, &json!({"name": "x"})).await,
            caller.delete(&path).await,
        ] {
            answer.assert_error(404, "invalid_request", "not_found", "Not found.");
        }
    }
    let board = dashboard(&app, &caller, "Sales").await;
    let foreign = json!({"query": trends("paid"), "dashboards": [board["id"]]});
    let (status, _, code, _, attr) = caller.post(&other, &foreign).await.error();
    assert_eq!((status, code.as_str()), (400, "does_not_exist"));
    assert_eq!(attr.as_deref(), Some("dashboards"));
    assert_eq!(caller.get(&one(&app, &insight)).await.json(), insight);
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_changes_of_different_fields_are_all_kept() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["*"]).await;
    let board = dashboard(&app, &caller, "Sales").await;
    let insight = made(&app, &caller, &json!({"query": trends("paid")})).await;
    let address = &one(&app, &insight);
    let board_address = &format!("/api/projects/{}/dashboards/{}/", app.project(), board["id"]);
    let other = made(&app, &caller, &json!({"query": trends("other")})).await;
    let changes = [
        (address, json!({"name": "Sales"})),
        (address, json!({"description": "Per day"})),
        (address, json!({"favorited": true})),
        (address, json!({"dashboards": [board["id"]]})),
        (board_address, json!({"tiles": [{"insight": other["id"]}]})),
        (board_address, json!({"pinned": true})),
    ];
    let call = |(path, body): (&String, Value)| {
        let caller = &caller;
        let path = path.clone();
        async move {
            let answer = caller.patch(&path, &body).await;
            assert_eq!(answer.status, 200, "{body}: {:?}", answer.body);
        }
    };
    join_all(changes.into_iter().map(call)).await;
    let after = caller.get(address).await.json();
    assert_eq!((&after["name"], &after["description"]), (&json!("Sales"), &json!("Per day")));
    assert_eq!((&after["favorited"], &after["dashboards"]), (&json!(true), &json!([board["id"]])));
    let mut shown = tiles(&app, &caller, &board).await;
    shown.sort_by_key(Value::as_i64);
    assert_eq!(shown, [insight["id"].clone(), other["id"].clone()]);
    assert_eq!(caller.get(board_address).await.json()["pinned"], true);
    assert_eq!(audit_entries(&app, &caller, &insight).await.len(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn they_are_removed_with_their_project() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["*"]).await;
    let blog = caller.post("/api/projects/", &json!({"name": "Blog"})).await.json();
    let of_blog = format!("/api/projects/{}/", blog["id"]);
    let insight = json!({"query": trends("paid")});
    assert_eq!(caller.post(&format!("{of_blog}insights/"), &insight).await.status, 201);
    let board = json!({"name": "Sales"});
    assert_eq!(caller.post(&format!("{of_blog}dashboards/"), &board).await.status, 201);
    let annotation = json!({"content": "May", "date_marker": "2026-05-01T00:00"});
    assert_eq!(caller.post(&format!("{of_blog}annotations/"), &annotation).await.status, 201);
    assert_eq!(caller.delete(&of_blog).await.status, 204);
    let gone = caller.get(&format!("{of_blog}insights/")).await;
    gone.assert_error(404, "invalid_request", "not_found", "Project not found.");
    let services = &app.app().services;
    let later = services.clock.now().plus_seconds(3600);
    services.organizations.purge_deleted(later).await.unwrap();
    assert!(deletions(app.store()).await.unwrap().is_empty());
    let project = blog["id"].to_string().parse().unwrap();
    assert!(weir_store::insights::briefs(app.store(), project).await.unwrap().is_empty());
    assert!(weir_store::dashboards::briefs(app.store(), project).await.unwrap().is_empty());
    assert!(weir_store::annotations::all(app.store(), project).await.unwrap().is_empty());
}

/// Label and number of the whole range of each series, in order of the labels.
fn wholes(answer: &Value) -> Vec<(String, f64)> {
    let label = |one: &Value| one["label"].as_str().unwrap().to_owned();
    let series = answer["results"]["trends"]["series"].as_array().unwrap().iter();
    let mut found: Vec<(String, f64)> =
        series.map(|one| (label(one), one["numbers"]["whole"].as_f64().unwrap())).collect();
    found.sort_by(|one, other| one.0.cmp(&other.0));
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_answers_and_saves_the_question_of_its_form() {
    let app = TestApp::with_owner().await;
    let cookie = session(&app).await;
    let project = app.project();
    let paid = |id: &str, properties: Value| json!({"event": "paid", "distinct_id": id, "properties": properties});
    send(
        &app,
        json!([
            paid("ada", json!({"price": 2.5, "plan": "pro"})),
            paid("ada", json!({"price": 4, "plan": "pro"})),
            paid("bob", json!({"price": 1})),
        ]),
    )
    .await;
    let call = async |name: &str, more: &[&str], question: &str| {
        let of_form = question.split('&').filter(|field| !field.is_empty()).map(|field| {
            let (field, value) = field.split_once('=').unwrap();
            format!("question[{field}]={value}")
        });
        let mut pairs = vec![format!("project={project}"), "question[event]=paid".to_owned()];
        pairs.extend(more.iter().map(|pair| (*pair).to_owned()));
        pairs.extend(of_form);
        function(&app, &cookie, name, &pairs.join("&")).await
    };
    let all = |number: f64| vec![("paid".to_owned(), number)];
    for (more, expected) in [
        ("", 3.0),
        ("math=dau", 2.0),
        ("math=sum&property=price", 7.5),
        ("math=avg&property=price", 2.5),
    ] {
        let answer = call("answer_question", &[], more).await;
        assert_eq!(answer.status, 200, "{more}: {:?}", answer.body);
        assert_eq!(wholes(&answer.json()), all(expected), "{more}");
    }
    let by_plan = call("answer_question", &[], "math=dau&breakdown=plan&compare=on").await.json();
    let expected = [("Without a value".to_owned(), 1.0), ("pro".to_owned(), 1.0)];
    assert_eq!(wholes(&by_plan), expected);
    let series = &by_plan["results"]["trends"]["series"];
    assert_eq!(series[0]["before"]["whole"].as_f64(), Some(0.0));
    for (more, field) in [
        ("math=sum", "property"),
        ("math=most", "math"),
        ("range=soon", "range"),
        ("interval=minute", "interval"),
    ] {
        let answer = call("answer_question", &[], more).await;
        assert_eq!(answer.status, 400, "{more}: {:?}", answer.body);
        let text = answer.text();
        assert!(text.contains(&format!("\"attr\":\"{field}\"")), "{more}: {text}");
    }

    assert!(call("save_insight", &["name=Payers"], "math=dau").await.status < 400);
    let caller = app.owner().key(&["insight:write"]).await;
    let saved = caller.get(&path(&app)).await.json()["results"][0].clone();
    assert_eq!(
        (&saved["name"], &saved["query"]["series"][0]["math"]),
        (&json!("Payers"), &json!("dau"))
    );
    assert_eq!(saved["derived_name"], "Unique persons: paid");
    let short_id = saved["short_id"].as_str().unwrap();
    let this = format!("insight={short_id}");
    let this = [this.as_str()];
    let shown = call("get_insight", &this, "").await.json();
    assert_eq!(shown["form"]["math"], "dau");
    let change = [this[0], "name=Payments"];
    assert!(call("save_insight", &change, "math=total&range=-30d").await.status < 400);
    let changed = caller.get(&one(&app, &saved)).await.json();
    assert_eq!((&changed["name"], &changed["short_id"]), (&json!("Payments"), &saved["short_id"]));
    assert_eq!(changed["query"]["dateRange"]["date_from"], "-30d");
    assert!(call("hide_insight", &this, "").await.status < 400);
    assert!(ids(&caller, &path(&app)).await.is_empty());
    assert!(call("restore_insight", &this, "").await.status < 400);
    assert_eq!(ids(&caller, &path(&app)).await.len(), 1);
}
