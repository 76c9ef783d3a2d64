//! `/api/projects/{project_id}/alerts/`: numbers that are compared with bounds, with the mails
//! and requests to webhooks that follow.

use serde_json::{Value, json};
use weir_model::Timestamp;
use weir_model::organizations::Level;
use weir_service::Clock;
use weir_testkit::{Caller, MailSink, Received, TestApp, until};
use weir_testservers::{StandIn, StubAnswer};

use crate::stored::send;

fn path(app: &TestApp) -> String {
    format!("/api/projects/{}/alerts/", app.project())
}

fn one(app: &TestApp, alert: &Value) -> String {
    format!("{}{}/", path(app), alert["id"])
}

async fn made(caller: &Caller, path: &str, body: &Value) -> Value {
    let answer = caller.post(path, body).await;
    assert_eq!(answer.status, 201, "{:?}", answer.body);
    answer.json()
}

/// An insight with the number of payments by day.
async fn insight(app: &TestApp, caller: &Caller) -> Value {
    let query = json!({"kind": "TrendsQuery", "series": [{"event": "paid"}]});
    let body = json!({"name": "Payments", "query": query});
    made(caller, &format!("/api/projects/{}/insights/", app.project()), &body).await
}

/// The body of an alert that fires above `upper` in the current interval.
fn above(insight: &Value, upper: f64) -> Value {
    json!({
        "insight": insight["id"],
        "name": "Many payments",
        "threshold": {"configuration": {"type": "absolute", "bounds": {"upper": upper}}},
        "config": {
            "type": "TrendsAlertConfig", "series_index": 0, "check_ongoing_interval": true,
        },
    })
}

/// The alert once it was checked this often.
async fn checked(caller: &Caller, path: &str, times: usize) -> Value {
    until(async || {
        let alert = caller.get(path).await.json();
        (alert["checks"].as_array().unwrap().len() >= times).then_some(alert)
    })
    .await
}

fn paid(count: usize) -> Value {
    Value::Array(vec![json!({"event": "paid", "distinct_id": "ada"}); count])
}

#[tokio::test(flavor = "multi_thread")]
async fn an_alert_needs_the_scopes_to_read_its_numbers() {
    let app = TestApp::with_owner().await;
    let all = app.owner().key(&["*"]).await;
    let insight = insight(&app, &all).await;
    let body = above(&insight, 10.0);
    let alert = made(&all, &path(&app), &body).await;
    for (scopes, missing) in [
        (&["alert:write"][..], "insight:read"),
        (&["alert:write", "insight:read"][..], "query:read"),
        (&["alert:write", "query:read"][..], "insight:read"),
    ] {
        let caller = app.owner().key(scopes).await;
        let detail = format!("API key missing required scope '{missing}'");
        let change = json!({"name": "Other"});
        for answer in
            [caller.post(&path(&app), &body).await, caller.patch(&one(&app, &alert), &change).await]
        {
            answer.assert_error(403, "authentication_error", "permission_denied", &detail);
        }
    }
    let caller = app.owner().key(&["alert:write"]).await;
    assert_eq!(caller.delete(&one(&app, &alert)).await.status, 204);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_alert_is_added_changed_and_deleted() {
    let app = TestApp::with_owner().await;
    let scopes = ["alert:write", "insight:write", "query:read", "activity_log:read"];
    let caller = app.owner().key(&scopes).await;
    let insight = insight(&app, &caller).await;
    let mut body = above(&insight, 10.0);
    body["subscribed_users"] = json!([app.owner().id()]);
    let alert = made(&caller, &path(&app), &body).await;
    for (field, value) in [
        ("name", json!("Many payments")),
        ("condition", json!({"type": "absolute_value"})),
        ("calculation_interval", json!("daily")),
        ("skip_weekend", json!(false)),
        ("enabled", json!(true)),
        ("state", json!("Not firing")),
        ("snoozed_until", Value::Null),
        ("webhook_url", Value::Null),
        ("config", body["config"].clone()),
    ] {
        assert_eq!(alert[field], value, "{field}");
    }
    assert_eq!(alert["insight"]["short_id"], insight["short_id"]);
    assert_eq!(alert["subscribed_users"][0]["email"], "ada@mail.example");
    let bounds = &alert["threshold"]["configuration"]["bounds"];
    assert_eq!((&bounds["lower"], bounds["upper"].as_f64()), (&Value::Null, Some(10.0)));

    let address = one(&app, &alert);
    let alert = checked(&caller, &address, 1).await;
    assert_eq!((&alert["state"], alert["last_value"].as_f64()), (&json!("Not firing"), Some(0.0)));
    // An answer can be sent back as it is.
    assert_eq!(caller.patch(&address, &alert).await.json(), alert);
    let snoozed = json!({"snoozed_until": "2100-01-01T09:00:00Z"});
    let snoozed = caller.patch(&address, &snoozed).await.json();
    assert_eq!(snoozed["state"], "Snoozed");
    assert_eq!(snoozed["next_check_at"], snoozed["snoozed_until"]);
    let resumed = caller.patch(&address, &json!({"snoozed_until": null})).await.json();
    assert_eq!(resumed["state"], "Not firing");
    let off = caller.patch(&address, &json!({"enabled": false})).await.json();
    assert_eq!((&off["enabled"], &off["next_check_at"]), (&json!(false), &Value::Null));
    let list = caller.get(&format!("{}?insight={}", path(&app), insight["id"])).await.json();
    assert_eq!(list["count"], 1);
    let none = caller.get(&format!("{}?insight=987654", path(&app))).await.json();
    assert_eq!(none["count"], 0);
    assert_eq!(caller.delete(&address).await.status, 204);
    caller.get(&address).await.assert_error(404, "invalid_request", "not_found", "Not found.");
    let log = format!("/api/projects/{}/activity_log/?scope=AlertConfiguration", app.project());
    let log = caller.get(&log).await.json();
    let actions: Vec<&Value> =
        log["results"].as_array().unwrap().iter().map(|entry| &entry["activity"]).collect();
    assert_eq!(actions, ["deleted", "updated", "updated", "updated", "created"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_name_their_field_and_another_project_sees_nothing() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["*"]).await;
    let insight = insight(&app, &caller).await;
    let outsider = app.outsider("grace").await;
    let insights = format!("/api/projects/{}/insights/", app.project());
    let lifecycle = json!({"query": {"kind": "LifecycleQuery", "series": [{"event": "paid"}]}});
    let lifecycle = made(&caller, &insights, &lifecycle).await;
    let blog = caller.post("/api/projects/", &json!({"name": "Blog"})).await.json();
    let with = |field: &str, value: Value| {
        let mut body = above(&insight, 10.0);
        body[field] = value;
        body
    };
    let bounds =
        |kind: &str, bounds: Value| json!({"configuration": {"type": kind, "bounds": bounds}});
    let config = |index: i64| json!({"type": "TrendsAlertConfig", "series_index": index});
    let at_bounds = "threshold__configuration__bounds";
    for (body, attr, code) in [
        (json!({}), "insight", "required"),
        (json!({"insight": insight["id"]}), "name", "required"),
        (with("threshold", Value::Null), "threshold", "null"),
        (with("threshold", json!({})), "threshold__configuration", "required"),
        (
            with("threshold", bounds("most", json!({}))),
            "threshold__configuration__type",
            "invalid_choice",
        ),
        (with("threshold", bounds("absolute", json!({}))), at_bounds, "required"),
        (
            with("threshold", bounds("absolute", json!({"lower": 2, "upper": 1}))),
            at_bounds,
            "invalid_input",
        ),
        (
            with("threshold", bounds("absolute", json!({"upper": "much"}))),
            "threshold__configuration__bounds__upper",
            "invalid_input",
        ),
        (
            with("threshold", bounds("percentage", json!({"upper": 0.2}))),
            "threshold__configuration__type",
            "invalid_input",
        ),
        (
            with("threshold", bounds("absolute", json!({"lower": 2}))),
            "config__check_ongoing_interval",
            "invalid_input",
        ),
        (with("config", config(1)), "config__series_index", "invalid_input"),
        (with("config", config(99)), "config__series_index", "max_value"),
        (with("config", json!({"type": "Other"})), "config__type", "invalid_choice"),
        (with("condition", json!({"type": "most"})), "condition__type", "invalid_choice"),
        (with("calculation_interval", json!("yearly")), "calculation_interval", "invalid_choice"),
        (with("snoozed_until", json!("2020-01-01T00:00:00Z")), "snoozed_until", "invalid_input"),
        (with("subscribed_users", json!(["ada"])), "subscribed_users__0", "invalid_input"),
        (with("subscribed_users", json!([outsider.id()])), "subscribed_users__0", "does_not_exist"),
        (with("webhook_url", json!("ftp://hooks.example/")), "webhook_url", "invalid_input"),
        (with("webhook_url", json!("http://127.0.0.1:9/")), "webhook_url", "invalid_input"),
        (with("insight", json!(987_654)), "insight", "does_not_exist"),
        (with("insight", lifecycle["id"].clone()), "insight", "invalid_input"),
    ] {
        let (status, kind, found, _, at) = caller.post(&path(&app), &body).await.error();
        let found = (status, kind.as_str(), found.as_str(), at.as_deref());
        assert_eq!(found, (400, "validation_error", code, Some(attr)), "{body}");
    }
    // An insight of another project does not exist.
    let other = format!("/api/projects/{}/alerts/", blog["id"]);
    let (status, _, code, _, at) = caller.post(&other, &above(&insight, 10.0)).await.error();
    assert_eq!((status, code.as_str(), at.as_deref()), (400, "does_not_exist", Some("insight")));
    let alert = made(&caller, &path(&app), &above(&insight, 10.0)).await;
    assert_eq!(caller.get(&other).await.json()["count"], 0);
    let foreign = format!("{other}{}/", alert["id"]);
    for answer in [
        caller.get(&foreign).await,
        caller.patch(&foreign, &json!({"name": "x"})).await,
        caller.delete(&foreign).await,
    ] {
        answer.assert_error(404, "invalid_request", "not_found", "Not found.");
    }
    let reader = app.owner().key(&["alert:read"]).await;
    assert_eq!(reader.get(&one(&app, &alert)).await.status, 200);
    assert_eq!(reader.delete(&one(&app, &alert)).await.status, 403);
}

/// A webhook that keeps the bodies, and answers the first `refused` requests with 500.
async fn webhook(refused: usize) -> StandIn<Vec<Value>> {
    StandIn::start(Vec::new(), move |kept: &mut Vec<Value>, request| {
        kept.push(request.json());
        Some(StubAnswer::empty(if kept.len() > refused { 204 } else { 500 }))
    })
    .await
}

/// Mails about alerts, as soon as there are this many of them.
async fn mails(sink: &MailSink, count: usize) -> Vec<Received> {
    let is_it = |mail: &&Received| {
        mail.header("Subject").is_some_and(|subject| subject.starts_with("The alert "))
    };
    until(async || {
        let all = sink.received();
        let found: Vec<Received> = all.iter().filter(is_it).cloned().collect();
        (found.len() >= count).then_some(found)
    })
    .await
}

async fn with_targets(sink: &MailSink, clock: Clock) -> TestApp {
    let mail = sink.url();
    TestApp::with_settings_at(clock, move |config| {
        config.public_url = "http://localhost:8000".parse().unwrap();
        config.smtp_url = mail.parse().unwrap();
        config.egress_allow = "127.0.0.1".parse().unwrap();
    })
    .await
    .set_up()
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_alert_that_fires_sends_one_mail_and_one_request() {
    let (sink, hook) = (MailSink::start().await, webhook(1).await);
    let clock = Clock::fixed(Timestamp::parse("2026-08-21T12:00:00Z").unwrap());
    let app = with_targets(&sink, clock.clone()).await;
    let caller = app.owner().key(&["*"]).await;
    let insight = insight(&app, &caller).await;
    let grace = app.member("grace", Level::Member).await;
    let mut body = above(&insight, 2.0);
    body["subscribed_users"] = json!([app.owner().id(), grace.id()]);
    body["webhook_url"] = json!(format!("{}/hook", hook.url()));
    // A former member gets no mail.
    let alert = made(&caller, &path(&app), &body).await;
    let member = format!("/api/organizations/{}/members/{}/", app.organization(), grace.id());
    assert_eq!(caller.delete(&member).await.status, 204);
    let address = one(&app, &alert);
    let quiet = checked(&caller, &address, 1).await;
    assert_eq!((&quiet["state"], &quiet["last_notified_at"]), (&json!("Not firing"), &Value::Null));
    assert_eq!(quiet["subscribed_users"].as_array().unwrap().len(), 1);

    send(&app, paid(3)).await;
    clock.advance(24 * 60 * 60);
    // The events of the day before are not those of the current one.
    checked(&caller, &address, 2).await;
    send(&app, paid(3)).await;
    clock.advance(60 * 60);
    let now = caller.patch(&address, &json!({"calculation_interval": "hourly"})).await;
    assert_eq!(now.status, 200);
    let fires = checked(&caller, &address, 3).await;
    assert_eq!((&fires["state"], fires["last_value"].as_f64()), (&json!("Firing"), Some(3.0)));
    assert_eq!(fires["checks"][0]["targets_notified"], true);
    let mail = mails(&sink, 1).await.remove(0);
    assert_eq!(mail.to, ["ada@mail.example"]);
    assert_eq!(mail.header("Subject"), Some("The alert Many payments fires"));
    assert!(
        mail.text.contains("paid: the value 3 (22-Aug-2026) is above the bound 2."),
        "{mail:?}"
    );
    let page = format!(
        "http://localhost:8000/projects/{}/insights/{}/alerts?alert={}",
        app.project(),
        insight["short_id"].as_str().unwrap(),
        alert["id"],
    );
    assert!(mail.text.contains(&page), "{mail:?}");

    // The request is tried again, with the same id.
    until(async || caller.get(&address).await.json()["webhook_error"] == "HTTP 500").await;
    clock.advance(60);
    until(async || hook.lock().len() == 2).await;
    until(async || caller.get(&address).await.json()["webhook_error"] == Value::Null).await;
    let requests = hook.lock().clone();
    assert_eq!(requests[0], requests[1]);
    assert_eq!(requests[0]["url"], json!(page));
    assert_eq!(
        (&requests[0]["state"], requests[0]["value"].as_f64()),
        (&json!("Firing"), Some(3.0))
    );
    assert_eq!(requests[0]["alert"], json!({"id": alert["id"], "name": "Many payments"}));
    let text = requests[0]["text"].as_str().unwrap();
    assert!(text.starts_with("The alert Many payments fires. paid: the value 3"), "{text}");

    // While it fires, there is no other mail or request.
    clock.advance(2 * 60 * 60);
    let again = checked(&caller, &address, 4).await;
    assert_eq!(
        (&again["state"], &again["checks"][0]["targets_notified"]),
        (&json!("Firing"), &json!(false))
    );
    assert_eq!((mails(&sink, 1).await.len(), hook.lock().len()), (1, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn checks_that_fail_are_reported_once_and_show_why() {
    let sink = MailSink::start().await;
    let clock = Clock::fixed(Timestamp::parse("2026-08-21T12:00:00Z").unwrap());
    let app = with_targets(&sink, clock.clone()).await;
    let caller = app.owner().key(&["*"]).await;
    let insight = insight(&app, &caller).await;
    let mut body = above(&insight, 2.0);
    body["subscribed_users"] = json!([app.owner().id()]);
    let alert = made(&caller, &path(&app), &body).await;
    let address = one(&app, &alert);
    checked(&caller, &address, 1).await;
    let question = json!({"query": {"kind": "LifecycleQuery", "series": [{"event": "paid"}]}});
    let insight = format!("/api/projects/{}/insights/{}/", app.project(), insight["id"]);
    assert_eq!(caller.patch(&insight, &question).await.status, 200);
    clock.advance(24 * 60 * 60);
    for times in 2..=4 {
        checked(&caller, &address, times).await;
        clock.advance(5 * 60);
    }
    let failed = caller.get(&address).await.json();
    assert_eq!(failed["state"], "Errored");
    assert_eq!(failed["last_error"], "Alerts are about insights with trends.");
    let found = mails(&sink, 1).await;
    assert_eq!(found[0].header("Subject"), Some("The alert Many payments cannot be checked"));
    clock.advance(24 * 60 * 60);
    checked(&caller, &address, 5).await;
    assert_eq!(mails(&sink, 1).await.len(), 1);

    // An alert goes away with its insight.
    assert_eq!(caller.delete(&insight).await.status, 204);
    assert_eq!(caller.get(&address).await.status, 404);
}
