//! `/api/projects/{project_id}/subscriptions/`: answers of insights and dashboards by mail, with
//! charts and numbers.

use serde_json::{Value, json};
use weir_model::Timestamp;
use weir_model::organizations::Level;
use weir_service::Clock;
use weir_testkit::{Caller, MailSink, Received, TestApp, until};

use crate::stored::send;

const START: &str = "2026-08-21T13:00:00Z";
const ADA: &str = "ada@mail.example";

fn path(app: &TestApp) -> String {
    format!("/api/projects/{}/subscriptions/", app.project())
}

fn one(app: &TestApp, subscription: &Value) -> String {
    format!("{}{}/", path(app), subscription["id"])
}

async fn made(caller: &Caller, path: &str, body: &Value) -> Value {
    let answer = caller.post(path, body).await;
    assert_eq!(answer.status, 201, "{:?}", answer.body);
    answer.json()
}

fn question() -> Value {
    json!({
        "kind": "TrendsQuery", "series": [{"event": "paid"}], "dateRange": {"date_from": "-3d"},
    })
}

async fn insight(app: &TestApp, caller: &Caller, name: &str, query: &Value) -> Value {
    let body = json!({"name": name, "query": query});
    made(caller, &format!("/api/projects/{}/insights/", app.project()), &body).await
}

/// A daily subscription of Ada.
fn daily(insight: &Value) -> Value {
    json!({
        "insight": insight["id"], "target_type": "email", "target_value": ADA,
        "frequency": "daily", "start_date": START,
    })
}

async fn with_mail(sink: &MailSink, clock: Clock) -> TestApp {
    let mail = sink.url();
    TestApp::with_settings_at(clock, move |config| {
        config.public_url = "http://localhost:8000".parse().unwrap();
        config.smtp_url = mail.parse().unwrap();
    })
    .await
    .set_up()
    .await
}

fn clock() -> Clock {
    Clock::fixed(Timestamp::parse("2026-08-21T12:00:00Z").unwrap())
}

/// The mails with this subject, as soon as there are this many of them.
async fn mails(sink: &MailSink, subject: &str, count: usize) -> Vec<Received> {
    until(async || {
        let mut found = sink.received();
        found.retain(|mail| mail.header("Subject") == Some(subject));
        (found.len() >= count).then_some(found)
    })
    .await
}

fn paid(count: usize) -> Value {
    Value::Array(vec![json!({"event": "paid", "distinct_id": "ada"}); count])
}

/// Width and height of a PNG image.
fn size(image: &[u8]) -> (u32, u32) {
    assert_eq!(&image[..8], b"\x89PNG\r\n\x1a\n");
    assert_eq!(&image[image.len() - 8..image.len() - 4], b"IEND");
    let number = |at: usize| u32::from_be_bytes(image[at..at + 4].try_into().unwrap());
    (number(16), number(20))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_needs_the_scopes_to_read_its_numbers() {
    let app = TestApp::with_owner().await;
    let all = app.owner().key(&["*"]).await;
    let insight = insight(&app, &all, "Payments", &question()).await;
    let mut body = daily(&insight);
    body["start_date"] = json!("2100-01-04T09:00:00Z");
    let subscription = made(&all, &path(&app), &body).await;
    for (scopes, missing) in [
        (&["subscription:write"][..], "insight:read"),
        (&["subscription:write", "insight:read"][..], "query:read"),
        (&["subscription:write", "query:read"][..], "insight:read"),
    ] {
        let caller = app.owner().key(scopes).await;
        let detail = format!("API key missing required scope '{missing}'");
        let change = json!({"title": "Other"});
        for answer in [
            caller.post(&path(&app), &body).await,
            caller.patch(&one(&app, &subscription), &change).await,
        ] {
            answer.assert_error(403, "authentication_error", "permission_denied", &detail);
        }
    }
    let caller = app.owner().key(&["subscription:write"]).await;
    assert_eq!(caller.delete(&one(&app, &subscription)).await.status, 204);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_is_added_changed_and_deleted() {
    let app = TestApp::with_owner().await;
    let scopes = ["subscription:write", "insight:write", "query:read", "activity_log:read"];
    let caller = app.owner().key(&scopes).await;
    let insight = insight(&app, &caller, "Payments", &question()).await;
    let mut body = daily(&insight);
    body["start_date"] = json!("2100-01-04T09:00:00Z");
    body["title"] = json!("Payments by mail");
    let subscription = made(&caller, &path(&app), &body).await;
    for (field, value) in [
        ("insight", insight["id"].clone()),
        ("dashboard", Value::Null),
        ("title", json!("Payments by mail")),
        ("target_type", json!("email")),
        ("target_value", json!(ADA)),
        ("frequency", json!("daily")),
        ("interval", json!(1)),
        ("byweekday", Value::Null),
        ("bysetpos", Value::Null),
        ("count", Value::Null),
        ("until_date", Value::Null),
        ("deleted", json!(false)),
        ("summary", json!("sent every day")),
        ("next_delivery_date", json!("2100-01-04T09:00:00Z")),
        ("last_delivery_date", Value::Null),
    ] {
        assert_eq!(subscription[field], value, "{field}");
    }
    assert_eq!(subscription["created_by"]["email"], ADA);
    let address = one(&app, &subscription);
    // An answer can be sent back as it is.
    assert_eq!(caller.patch(&address, &subscription).await.json(), subscription);
    let monthly = json!({"frequency": "monthly", "byweekday": ["monday"], "bysetpos": 1});
    let monthly = caller.patch(&address, &monthly).await.json();
    assert_eq!(monthly["summary"], "sent every month on the first Monday");
    assert_eq!(monthly["next_delivery_date"], "2100-01-04T09:00:00Z");
    let hidden = caller.patch(&address, &json!({"deleted": true})).await.json();
    assert_eq!((&hidden["deleted"], &hidden["next_delivery_date"]), (&json!(true), &Value::Null));
    assert_eq!(caller.get(&path(&app)).await.json()["count"], 0);
    caller.patch(&address, &json!({"deleted": false})).await;
    for (filter, count) in [
        (format!("insight={}", insight["id"]), 1),
        ("insight=987654".to_owned(), 0),
        ("dashboard=1".to_owned(), 0),
    ] {
        let list = caller.get(&format!("{}?{filter}", path(&app))).await.json();
        assert_eq!(list["count"], count, "{filter}");
    }
    // Without a mail server nothing can be sent.
    let tested = caller.post(&format!("{address}test-delivery/"), &json!({})).await;
    assert_eq!(tested.status, 400, "{:?}", tested.body);
    assert_eq!(caller.delete(&address).await.status, 204);
    caller.get(&address).await.assert_error(404, "invalid_request", "not_found", "Not found.");
    let log = format!("/api/projects/{}/activity_log/?scope=Subscription", app.project());
    let log = caller.get(&log).await.json();
    let actions: Vec<&Value> =
        log["results"].as_array().unwrap().iter().map(|entry| &entry["activity"]).collect();
    assert_eq!(actions, ["deleted", "updated", "updated", "updated", "created"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_name_their_field_and_another_project_sees_nothing() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["*"]).await;
    let insight = insight(&app, &caller, "Payments", &question()).await;
    app.outsider("grace").await;
    let blog = caller.post("/api/projects/", &json!({"name": "Blog"})).await.json();
    let with = |field: &str, value: Value| {
        let mut body = daily(&insight);
        body[field] = value;
        body
    };
    let without = |field: &str| {
        let mut body = daily(&insight);
        body.as_object_mut().unwrap().remove(field);
        body
    };
    let monthly = |weekdays: Value, place: Value| {
        let mut body = with("frequency", json!("monthly"));
        (body["byweekday"], body["bysetpos"]) = (weekdays, place);
        body
    };
    for (body, attr, code) in [
        (json!({}), "insight", "required"),
        (without("target_value"), "target_value", "required"),
        (without("frequency"), "frequency", "required"),
        (without("start_date"), "start_date", "required"),
        (with("dashboard", json!(1)), "dashboard", "invalid_input"),
        (with("insight", json!(987_654)), "insight", "does_not_exist"),
        (with("target_type", json!("slack")), "target_type", "invalid_choice"),
        (with("target_type", json!("webhook")), "target_type", "invalid_choice"),
        (with("invite_message", json!("Hello")), "invite_message", "invalid_input"),
        (with("frequency", json!("hourly")), "frequency", "invalid_choice"),
        (with("interval", json!(0)), "interval", "min_value"),
        (with("interval", json!(101)), "interval", "max_value"),
        (with("interval", Value::Null), "interval", "null"),
        (with("count", json!(0)), "count", "min_value"),
        (with("start_date", Value::Null), "start_date", "null"),
        (with("start_date", json!("soon")), "start_date", "invalid_input"),
        (with("until_date", json!("2026-08-01T00:00:00Z")), "until_date", "invalid_input"),
        (with("byweekday", json!("monday")), "byweekday", "not_a_list"),
        (with("byweekday", json!(["someday"])), "byweekday__0", "invalid_choice"),
        (with("byweekday", json!(["monday"])), "byweekday", "invalid_input"),
        (with("bysetpos", json!(1)), "bysetpos", "invalid_input"),
        (monthly(json!(["monday"]), Value::Null), "bysetpos", "invalid_input"),
        (monthly(Value::Null, json!(1)), "byweekday", "invalid_input"),
        (monthly(json!(["monday"]), json!(5)), "bysetpos", "invalid_choice"),
        (with("target_value", json!(", ,")), "target_value", "blank"),
        // A user of another organization, no user, and too many.
        (with("target_value", json!("grace@mail.example")), "target_value", "does_not_exist"),
        (with("target_value", json!("ada@mail.example,x")), "target_value", "does_not_exist"),
        (with("target_value", json!(vec![ADA; 21].join(","))), "target_value", "max_length"),
    ] {
        let (status, kind, found, _, at) = caller.post(&path(&app), &body).await.error();
        let found = (status, kind.as_str(), found.as_str(), at.as_deref());
        assert_eq!(found, (400, "validation_error", code, Some(attr)), "{body}");
    }
    // An insight of another project does not exist.
    let other = format!("/api/projects/{}/subscriptions/", blog["id"]);
    let (status, _, code, _, at) = caller.post(&other, &daily(&insight)).await.error();
    assert_eq!((status, code.as_str(), at.as_deref()), (400, "does_not_exist", Some("insight")));
    let subscription = made(&caller, &path(&app), &daily(&insight)).await;
    assert_eq!(caller.get(&other).await.json()["count"], 0);
    let foreign = format!("{other}{}/", subscription["id"]);
    for answer in [
        caller.get(&foreign).await,
        caller.patch(&foreign, &json!({"title": "x"})).await,
        caller.post(&format!("{foreign}test-delivery/"), &json!({})).await,
        caller.delete(&foreign).await,
    ] {
        answer.assert_error(404, "invalid_request", "not_found", "Not found.");
    }
    let reader = app.owner().key(&["subscription:read"]).await;
    assert_eq!(reader.get(&one(&app, &subscription)).await.status, 200);
    assert_eq!(reader.delete(&one(&app, &subscription)).await.status, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mail_has_the_numbers_of_the_answer_and_a_chart() {
    let (sink, clock) = (MailSink::start().await, clock());
    let app = with_mail(&sink, clock.clone()).await;
    let caller = app.owner().key(&["*"]).await;
    let insight = insight(&app, &caller, "Payments", &question()).await;
    let grace = app.member("grace", Level::Member).await;
    let mut body = daily(&insight);
    body["target_value"] = json!(format!("{ADA}, grace@mail.example"));
    let subscription = made(&caller, &path(&app), &body).await;
    assert_eq!(subscription["next_delivery_date"], START);
    // A former member gets no mail.
    let member = format!("/api/organizations/{}/members/{}/", app.organization(), grace.id());
    assert_eq!(caller.delete(&member).await.status, 204);
    send(&app, paid(3)).await;
    clock.advance(60 * 60);

    let mail = mails(&sink, "Payments", 1).await.remove(0);
    assert_eq!(mail.to, [ADA]);
    let query = format!("/api/projects/{}/query/", app.project());
    let answer = caller.post(&query, &json!({"query": question()})).await.json();
    let result = &answer["results"][0];
    assert_eq!(result["data"], json!([0, 0, 0, 3]));
    // The name is as wide as the heading of its column.
    let mut line = "paid  ".to_owned();
    let numbers = result["data"].as_array().unwrap().iter();
    for (number, label) in numbers.zip(result["labels"].as_array().unwrap()) {
        let label = label.as_str().unwrap();
        assert!(mail.text.contains(&format!(">{label}</th>")), "{label}: {mail:?}");
        assert!(mail.text.contains(&format!(">{number}</td>")), "{number}: {mail:?}");
        let (number, width) = (number.to_string(), label.len());
        line.push_str(&format!("  {number:>width$}"));
    }
    assert!(mail.text.contains(&format!("\n{line}\n")), "{line}: {mail:?}");
    assert!(mail.text.contains("2026-08-18 to 2026-08-21, UTC"), "{mail:?}");
    for part in ["multipart/alternative", "multipart/related", "src=\"cid:chart-1@weir\""] {
        assert!(mail.text.contains(part), "{part}: {mail:?}");
    }
    let [image] = mail.images().try_into().unwrap();
    let (width, height) = size(&image);
    assert!(width == 1_000 && (1..=600).contains(&height), "{width} {height}");
    let short_id = insight["short_id"].as_str().unwrap();
    let page = format!("http://localhost:8000/projects/{}/insights/{short_id}", app.project());
    let settings = format!("{page}/subscriptions?subscription={}", subscription["id"]);
    assert!(mail.text.contains(&settings) && mail.text.contains(&format!("{page}\n")), "{mail:?}");

    let sent = caller.get(&one(&app, &subscription)).await.json();
    assert_eq!(sent["next_delivery_date"], "2026-08-22T13:00:00Z");
    assert!(sent["last_delivery_date"].is_string() && sent["last_error"].is_null(), "{sent}");
    // Two times that were missed are one mail.
    clock.advance(2 * 24 * 60 * 60);
    mails(&sink, "Payments", 2).await;
    let next = "2026-08-24T13:00:00Z";
    let address = one(&app, &subscription);
    until(async || caller.get(&address).await.json()["next_delivery_date"] == next).await;
    assert_eq!(mails(&sink, "Payments", 2).await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dashboard_has_its_first_six_insights_and_a_test_goes_to_the_caller() {
    let (sink, clock) = (MailSink::start().await, clock());
    let app = with_mail(&sink, clock.clone()).await;
    let caller = app.owner().key(&["*"]).await;
    app.member("grace", Level::Member).await;
    let dashboards = format!("/api/projects/{}/dashboards/", app.project());
    let dashboard = made(&caller, &dashboards, &json!({"name": "Sales"})).await;
    let insights = format!("/api/projects/{}/insights/", app.project());
    let total = json!({
        "kind": "TrendsQuery", "series": [{"event": "paid"}],
        "trendsFilter": {"display": "BoldNumber"},
    });
    let on_dashboard = json!([dashboard["id"]]);
    let usual = question();
    for at in 1..=8 {
        let query = if at == 1 { &total } else { &usual };
        let body = json!({
            "name": format!("Insight {at}"), "query": query, "dashboards": on_dashboard,
        });
        made(&caller, &insights, &body).await;
    }
    send(&app, paid(2)).await;
    let body = json!({
        "dashboard": dashboard["id"], "target_type": "email", "target_value": "grace@mail.example",
        "frequency": "weekly", "byweekday": ["friday"], "start_date": "2026-08-28T13:00:00Z",
        "title": "Sales of the week",
    });
    let subscription = made(&caller, &path(&app), &body).await;
    let test = format!("{}test-delivery/", one(&app, &subscription));
    assert_eq!(caller.post(&test, &json!({})).await.status, 204);
    let mail = mails(&sink, "Test: Sales of the week", 1).await.remove(0);
    assert_eq!((mail.to.as_slice(), mail.images().len()), ([ADA.to_owned()].as_slice(), 5));
    assert!(mail.text.contains("The dashboard has 2 more insights."), "{mail:?}");
    assert!(mail.text.contains("Insight 6") && !mail.text.contains("Insight 7"), "{mail:?}");
    // The one number.
    assert!(mail.text.contains("line-height:1.2\">2</p>"), "{mail:?}");
    let again = caller.post(&test, &json!({})).await;
    assert_eq!(again.status, 400, "{:?}", again.body);
    clock.advance(60);
    assert_eq!(caller.post(&test, &json!({})).await.status, 204);
    let sent = caller.get(&one(&app, &subscription)).await.json();
    assert_eq!(
        (&sent["last_delivery_date"], &sent["next_delivery_date"]),
        (&Value::Null, &json!("2026-08-28T13:00:00Z"))
    );

    // A question that cannot be answered is named, and the others are sent.
    let mut minutes = question();
    (minutes["interval"], minutes["dateRange"]) = (json!("minute"), json!({"date_from": "-365d"}));
    let broken = json!({ "query": minutes });
    let first = caller.get(&insights).await.json()["results"][0]["id"].clone();
    assert_eq!(caller.patch(&format!("{insights}{first}/"), &broken).await.status, 200);
    clock.advance(7 * 24 * 60 * 60 + 60 * 60);
    let mail = mails(&sink, "Sales of the week", 1).await.remove(0);
    assert_eq!(
        (mail.to.as_slice(), mail.images().len()),
        (["grace@mail.example".to_owned()].as_slice(), 5)
    );
    let sent = caller.get(&one(&app, &subscription)).await.json();
    assert!(sent["last_error"].as_str().unwrap().starts_with("Insight 1: "), "{sent}");

    // It goes away with its dashboard.
    assert_eq!(caller.delete(&format!("{dashboards}{}/", dashboard["id"])).await.status, 204);
    assert_eq!(caller.get(&one(&app, &subscription)).await.status, 404);
}
