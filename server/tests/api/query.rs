//! Questions about events, asked over HTTP. Expected numbers are counted by hand.
//!
//! What does not belong here: questions in SQL (`sql`), and events in every layer of the store
//! (`every_layer`).

mod every_layer;
mod sql;

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use weir_model::organizations::Level;
use weir_server::config::{ByteSize, Config};
use weir_testkit::{Answer, Caller, TestApp, until};

use crate::stored::send;

/// Three days in Berlin, of which the second one has 23 hours.
pub(crate) const DAYS: [&str; 3] = ["2026-03-28", "2026-03-29", "2026-03-30"];

/// An instance with a project in Berlin, and a key that asks questions.
pub(crate) async fn berlin() -> (TestApp, Caller) {
    let app = TestApp::with_owner().await;
    let owner = app.owner().key(&["project:write"]).await;
    let path = format!("/api/projects/{}/", app.project());
    let changed = owner.patch(&path, &json!({"timezone": "Europe/Berlin"})).await;
    assert_eq!(changed.status, 200, "{:?}", changed.body);
    let caller = app.owner().key(&["query:read"]).await;
    (app, caller)
}

/// Ada views a page on two days, first without a name on the second one, and buys on the first.
/// Bob views pages on the second and third day, and buys on the third.
pub(crate) async fn fill(app: &TestApp) {
    let event = |event: &str, id: &str, time: &str, properties: Value| json!({"event": event, "distinct_id": id, "timestamp": time, "properties": properties});
    let view = |id: &str, time: &str, page: &str| {
        let url = format!("https://shop.example/{page}");
        event("$pageview", id, time, json!({"$current_url": url, "page": page}))
    };
    let events = json!([
        view("ada", "2026-03-28T12:00:00Z", "home"),
        event("buy", "ada", "2026-03-28T13:00:00Z", json!({"price": 5.5})),
        view("anon", "2026-03-29T00:30:00Z", "home"),
        event("$identify", "ada", "2026-03-29T01:30:00Z", json!({"$anon_distinct_id": "anon"})),
        view("bob", "2026-03-29T10:00:00Z", "tea"),
        view("bob", "2026-03-30T08:00:00Z", "home"),
        event("buy", "bob", "2026-03-30T08:05:00Z", json!({"price": 4})),
        view("bob", "2026-03-30T08:10:00Z", "tea"),
    ]);
    send(app, events).await;
}

pub(crate) async fn post(app: &TestApp, caller: &Caller, body: &Value) -> Answer {
    caller.post(&format!("/api/projects/{}/query/", app.project()), body).await
}

/// The answer to a question about the three days.
async fn ask(app: &TestApp, caller: &Caller, question: Value) -> Value {
    let mut question = question;
    question["dateRange"] = json!({"date_from": DAYS[0], "date_to": DAYS[2]});
    let answer = post(app, caller, &json!({"query": question})).await;
    assert_eq!(answer.status, 200, "{question}: {:?}", answer.body);
    answer.json()
}

pub(crate) fn series(event: &str, math: &str) -> Value {
    json!({"kind": "EventsNode", "event": event, "math": math})
}

pub(crate) fn trends(series: Value) -> Value {
    json!({"kind": "TrendsQuery", "series": [series], "interval": "day"})
}

/// A member of each result.
fn each<'a>(answer: &'a Value, member: &str) -> Vec<&'a Value> {
    answer["results"].as_array().unwrap().iter().map(|result| &result[member]).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn trends_count_events_and_persons_by_the_days_of_the_project() {
    let (app, caller) = berlin().await;
    fill(&app).await;
    let answer = ask(&app, &caller, trends(series("$pageview", "total"))).await;
    assert_eq!(each(&answer, "data"), [&json!([1, 2, 2])]);
    assert_eq!(each(&answer, "days"), [&json!(DAYS)]);
    assert_eq!(answer["timezone"], "Europe/Berlin");
    let range = &answer["resolved_date_range"];
    let expected = json!({"date_from": "2026-03-27T23:00:00Z",
        "date_to": "2026-03-30T21:59:59.999999Z"});
    assert_eq!(*range, expected);
    assert_eq!((&answer["hasMore"], &answer["is_cached"]), (&Value::Null, &json!(false)));

    let answer = ask(&app, &caller, trends(series("$pageview", "dau"))).await;
    assert_eq!(each(&answer, "data"), [&json!([1, 2, 1])]);
    // `anon` became Ada.
    let mut persons = trends(series("$pageview", "dau"));
    persons["trendsFilter"] = json!({"display": "BoldNumber"});
    let answer = ask(&app, &caller, persons).await;
    assert_eq!(each(&answer, "aggregated_value"), [&json!(2)]);

    let mut sum = series("buy", "sum");
    sum["math_property"] = json!("price");
    let answer = ask(&app, &caller, trends(sum)).await;
    assert_eq!(each(&answer, "data"), [&json!([5.5, 0, 4])]);

    let mut pages = trends(series("$pageview", "total"));
    pages["breakdownFilter"] = json!({"breakdown": "page", "breakdown_type": "event"});
    let answer = ask(&app, &caller, pages).await;
    assert_eq!(each(&answer, "breakdown_value"), [&json!("home"), &json!("tea")]);
    assert_eq!(each(&answer, "data"), [&json!([1, 1, 1]), &json!([0, 1, 1])]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_day_may_have_23_hours() {
    let (app, caller) = berlin().await;
    fill(&app).await;
    let mut hours = trends(series("$pageview", "total"));
    hours["interval"] = json!("hour");
    hours["dateRange"] = json!({"date_from": DAYS[1], "date_to": DAYS[1]});
    let path = format!("/api/environments/{}/query/", app.project());
    let answer = caller.post(&path, &json!({"query": hours})).await.json();
    let mut expected = [0; 23];
    // 01:30, and 12:00, before which 02:00 was skipped.
    (expected[1], expected[11]) = (1, 1);
    assert_eq!(each(&answer, "data"), [&json!(expected)]);
    let days = answer["results"][0]["days"].as_array().unwrap();
    assert_eq!(
        (&days[1], &days[2]),
        (&json!("2026-03-29 01:00:00"), &json!("2026-03-29 03:00:00"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn each_kind_of_question_has_an_answer() {
    let (app, caller) = berlin().await;
    fill(&app).await;
    let view = || json!({"kind": "EventsNode", "event": "$pageview"});
    let buy = json!({"kind": "EventsNode", "event": "buy"});
    let funnel = json!({"kind": "FunnelsQuery", "series": [view(), buy]});
    let answer = ask(&app, &caller, funnel).await;
    assert_eq!(each(&answer, "count"), [&json!(2), &json!(2)]);
    // An hour, and five minutes.
    assert_eq!(answer["results"][1]["average_conversion_time"], 1_950);

    let entity = json!({"id": "$pageview", "type": "events"});
    let retention = json!({"kind": "RetentionQuery", "retentionFilter": {
        "retentionType": "retention_recurring", "period": "Day", "totalIntervals": 3,
        "targetEntity": entity, "returningEntity": entity,
    }});
    let answer = ask(&app, &caller, retention).await;
    let counts = |values: &Value| -> Vec<u64> {
        let values = values.as_array().unwrap().iter();
        values.map(|value| value["count"].as_u64().unwrap()).collect()
    };
    let found: Vec<_> = each(&answer, "values").into_iter().map(counts).collect();
    assert_eq!(found, [vec![1, 1, 0], vec![2, 1], vec![1]]);

    let paths = json!({"kind": "PathsQuery", "pathsFilter": {"includeEventTypes": ["$pageview"]}});
    let answer = ask(&app, &caller, paths).await;
    assert_eq!(each(&answer, "source"), [&json!("1_https://shop.example/home")]);
    assert_eq!(each(&answer, "target"), [&json!("2_https://shop.example/tea")]);
    assert_eq!(each(&answer, "average_conversion_time"), [&json!(600_000)]);

    let stickiness = json!({"kind": "StickinessQuery", "series": [view()], "interval": "day"});
    let answer = ask(&app, &caller, stickiness).await;
    assert_eq!(each(&answer, "data"), [&json!([0, 2, 0])]);

    let lifecycle = json!({"kind": "LifecycleQuery", "series": [view()], "interval": "day"});
    let node = json!({"kind": "InsightVizNode", "source": lifecycle});
    let mut framed = node;
    framed["source"]["dateRange"] = json!({"date_from": DAYS[0], "date_to": DAYS[2]});
    let answer = post(&app, &caller, &json!({"query": framed})).await.json();
    let results = answer["results"].as_array().unwrap();
    for (status, expected) in [
        ("new", [1, 1, 0]),
        ("returning", [0, 1, 1]),
        ("resurrecting", [0, 0, 0]),
        ("dormant", [0, 0, -1]),
    ] {
        let found = results.iter().find(|result| result["status"] == status).unwrap();
        assert_eq!(found["data"], json!(expected), "{status}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_site_has_visitors_views_and_sessions() {
    let (app, caller) = berlin().await;
    let event = |event: &str, id: &str, time: &str, properties: Value| json!({"event": event, "distinct_id": id, "timestamp": time, "properties": properties});
    let view = |id: &str, time: &str, path: &str, session: Option<&str>| {
        event("$pageview", id, time, json!({"$pathname": path, "$session_id": session}))
    };
    send(
        &app,
        json!([
            view("ada", "2026-03-28T12:00:00Z", "/home", Some("s1")),
            view("ada", "2026-03-28T12:00:20Z", "/tea", Some("s1")),
            view("bob", "2026-03-29T10:00:00Z", "/tea", Some("s2")),
            view("bob", "2026-03-30T08:00:00Z", "/home", None),
            event("buy", "bob", "2026-03-30T08:04:40Z", json!({})),
            view("cy", "2026-03-30T09:00:00Z", "/home", Some("s3")),
        ]),
    )
    .await;
    let compare = json!({"compare": true});
    let overview = json!({"kind": "WebOverviewQuery", "compareFilter": compare});
    let answer = ask(&app, &caller, overview).await;
    let keys = ["visitors", "views", "sessions", "session duration", "bounce rate"];
    assert_eq!(each(&answer, "key"), keys.map(|key| json!(key)).each_ref());
    let numbers = [3, 5, 4, 75, 50].map(|number| json!(number));
    assert_eq!(each(&answer, "value"), numbers.each_ref());
    assert_eq!(answer["results"][0]["previous"], 0);
    assert_eq!(answer["results"][4]["previous"], Value::Null);
    assert_eq!((&answer["hogql"], &answer["columns"]), (&Value::Null, &Value::Null));
    let range = &answer["resolved_date_range"];
    assert_eq!(range["date_from"], "2026-03-27T23:00:00Z");

    let exits = json!({"kind": "WebStatsTableQuery", "breakdownBy": "ExitPage",
        "includeBounceRate": true, "limit": 1});
    let answer = ask(&app, &caller, exits).await;
    let row = json!(["/tea", [2, null], [3, null], [0.5, null], 0.5]);
    assert_eq!(answer["results"], json!([row]));
    assert_eq!((&answer["hasMore"], &answer["limit"]), (&json!(true), &json!(1)));
    assert_eq!(answer["columns"][3], "context.columns.bounce_rate");
    assert_eq!(answer["resolved_date_range"], *range);

    let entered = json!([{"type": "session", "key": "$entry_pathname", "value": "/tea"}]);
    let days = json!({"kind": "WebTrendsQuery", "metrics": ["UniqueUsers"]});
    let mut filtered = days.clone();
    filtered["properties"] = entered;
    for (question, expected) in [(days, [1, 1, 2]), (filtered, [0, 1, 0])] {
        let answer = ask(&app, &caller, question).await;
        assert_eq!(each(&answer, "bucket"), DAYS.map(|day| json!(day)).each_ref());
        let expected = expected.map(|visitors| json!({"UniqueUsers": visitors}));
        assert_eq!(each(&answer, "metrics"), expected.each_ref());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_events_has_columns_an_order_and_pages() {
    let (app, caller) = berlin().await;
    fill(&app).await;
    let owner = app.owner().key(&["person:read"]).await;
    let path = format!("/api/projects/{}/persons/?distinct_id=anon", app.project());
    let ada = owner.get(&path).await.json()["results"][0]["id"].clone();
    let list = async |question: Value| {
        let mut question = question;
        question["kind"] = json!("EventsQuery");
        let answer = post(&app, &caller, &json!({"query": question})).await;
        assert_eq!(answer.status, 200, "{question}: {:?}", answer.body);
        answer.json()
    };
    let views = |limit: u32, offset: u32| json!({"select": ["distinct_id", "timestamp", "properties.page"], "where": ["event = '$pageview'"], "limit": limit, "offset": offset});
    let answer = list(views(2, 0)).await;
    assert_eq!(answer["columns"], json!(["distinct_id", "timestamp", "properties.page"]));
    assert_eq!(answer["types"], json!(["String", "DateTime64(6, 'UTC')", "String"]));
    assert_eq!(
        answer["results"],
        json!([["bob", "2026-03-30T08:10:00Z", "tea"], ["bob", "2026-03-30T08:00:00Z", "home"],])
    );
    assert_eq!((&answer["limit"], &answer["offset"]), (&json!(2), &json!(0)));
    assert_eq!((&answer["hasMore"], &answer["is_cached"]), (&json!(true), &json!(false)));
    assert!(answer["hogql"].as_str().unwrap().starts_with("SELECT distinct_id, timestamp"));
    let answer = list(views(2, 4)).await;
    assert_eq!(answer["results"], json!([["ada", "2026-03-28T12:00:00Z", "home"]]));
    assert_eq!((&answer["hasMore"], &answer["offset"]), (&json!(false), &json!(4)));

    let tea = json!([{"key": "page", "value": ["tea"], "type": "event", "operator": "exact"}]);
    for (question, expected) in [
        (
            json!({"select": ["event"], "orderBy": ["timestamp ASC"], "limit": 2}),
            json!([["$pageview"], ["buy"]]),
        ),
        (
            json!({"select": ["distinct_id", "event"], "personId": ada}),
            json!([
                ["ada", "$identify"],
                ["anon", "$pageview"],
                ["ada", "buy"],
                ["ada", "$pageview"]
            ]),
        ),
        // The day in Berlin.
        (
            json!({"select": ["event"], "after": DAYS[0], "before": DAYS[1]}),
            json!([["buy"], ["$pageview"]]),
        ),
        (json!({"select": ["count()"], "properties": tea}), json!([[2]])),
        (
            json!({"select": ["event", "count()"], "orderBy": ["count() DESC"]}),
            json!([["$pageview", 5], ["buy", 2], ["$identify", 1]]),
        ),
        (json!({"select": ["distinct_id"], "event": "buy"}), json!([["bob"], ["ada"]])),
    ] {
        assert_eq!(list(question.clone()).await["results"], expected, "{question}");
    }
    let answer = list(json!({"select": ["*", "event"], "limit": 1})).await;
    let event = &answer["results"][0][0];
    assert_eq!(answer["types"], json!(["Tuple", "String"]));
    assert_eq!((&event["event"], &event["distinct_id"]), (&json!("$pageview"), &json!("bob")));
    assert_eq!(event["properties"]["page"], "tea");
    assert_eq!(event["timestamp"], "2026-03-30T08:10:00Z");

    let faulty =
        json!({"kind": "EventsQuery", "select": ["event"], "where": ["event = 'a'", "file('x')"]});
    let answer = post(&app, &caller, &json!({"query": faulty})).await;
    let detail = "Unknown function `file` (line 1, column 1)";
    answer.assert_field_error(400, "validation_error", "invalid_input", detail, Some("where__1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_counts_when_it_is_stored_and_an_erased_person_does_not() {
    let (app, caller) = berlin().await;
    fill(&app).await;
    let persons = || trends(series("$pageview", "dau"));
    let always = async || {
        let mut question = persons();
        question["dateRange"] = json!({"date_from": DAYS[0], "date_to": DAYS[2]});
        let body = json!({"query": question, "refresh": "force_blocking"});
        post(&app, &caller, &body).await.json()["results"][0]["data"].clone()
    };
    assert_eq!(always().await, json!([1, 2, 1]));
    let event = json!({"event": "$pageview", "distinct_id": "cyd",
        "timestamp": "2026-03-30T12:00:00Z"});
    send(&app, json!([event])).await;
    assert_eq!(always().await, json!([1, 2, 2]));

    let owner = app.owner().key(&["person:read", "person:write"]).await;
    let path = format!("/api/projects/{}/persons/", app.project());
    let found = owner.get(&format!("{path}?distinct_id=bob")).await.json();
    let bob = found["results"][0]["id"].as_str().unwrap();
    let erased = owner.delete(&format!("{path}{bob}/?delete_events=true")).await;
    assert_eq!(erased.status, 202, "{:?}", erased.body);
    // No earlier answer is given again.
    let answer = ask(&app, &caller, persons()).await;
    assert_eq!(each(&answer, "data"), [&json!([1, 1, 1])]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_given_again_while_it_holds() {
    let (app, caller) = berlin().await;
    fill(&app).await;
    let question = || trends(series("buy", "total"));
    let first = ask(&app, &caller, question()).await;
    let second = ask(&app, &caller, question()).await;
    assert_eq!((&first["is_cached"], &second["is_cached"]), (&json!(false), &json!(true)));
    for same in ["results", "cache_key", "last_refresh"] {
        assert_eq!(first[same], second[same], "{same}");
    }
    // Another question has another key.
    let other = ask(&app, &caller, trends(series("buy", "dau"))).await;
    assert_ne!(first["cache_key"], other["cache_key"]);
    let event = json!({"event": "buy", "distinct_id": "bob", "timestamp": "2026-03-30T12:00:00Z"});
    send(&app, json!([event])).await;
    // For a moment the former answer may be given.
    until(async || {
        let answer = ask(&app, &caller, question()).await;
        let data = answer["results"][0]["data"].clone();
        if data == json!([1, 0, 2]) { Ok(()) } else { Err(data) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_of_a_question_names_its_field() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["query:read"]).await;
    let trend = |member: &str, value: Value| {
        let mut question = trends(series("buy", "total"));
        question[member] = value;
        json!({"query": question})
    };
    for (body, code, attr) in [
        (json!({}), "required", "query"),
        (json!({"query": 7}), "invalid_input", "query"),
        (json!({"query": {"kind": "Nothing"}}), "invalid_choice", "kind"),
        (trend("series", json!([series("buy", "nope")])), "invalid_choice", "series__0__math"),
        (trend("samplingFactor", json!(0.1)), "invalid_input", "samplingFactor"),
        (
            trend("trendsFilter", json!({"formula": "A +"})),
            "invalid_input",
            "trendsFilter__formula",
        ),
        (trend("dateRange", json!({"date_from": "soon"})), "invalid_input", "dateRange__date_from"),
        (json!({"query": {"kind": "EventsQuery", "select": []}}), "required", "select"),
        (
            json!({"query": {"kind": "EventsQuery", "select": ["event", "nothing"]}}),
            "invalid_input",
            "select__1",
        ),
        (json!({"query": {"kind": "HogQLQuery", "query": "select 1"}}), "invalid_input", "query"),
    ] {
        let (status, kind, found, detail, at) = post(&app, &caller, &body).await.error();
        assert_eq!((status, kind.as_str()), (400, "validation_error"), "{body}: {detail}");
        assert_eq!((found.as_str(), at.as_deref()), (code, Some(attr)), "{body}: {detail}");
    }
    let mut body = trend("interval", json!("day"));
    body["refresh"] = json!("soon");
    let answer = post(&app, &caller, &body).await;
    let detail = "\"soon\" is not a valid choice.";
    answer.assert_field_error(400, "validation_error", "invalid_choice", detail, Some("refresh"));
    body["refresh"] = json!(true);
    body["filters_override"] = json!({"properties": []});
    let answer = post(&app, &caller, &body).await;
    assert_eq!(answer.error().4.as_deref(), Some("filters_override"));
    body["filters_override"] = json!({});
    assert_eq!(post(&app, &caller, &body).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_needs_its_scope_and_its_project() {
    let (app, caller) = berlin().await;
    let question = json!({"query": trends(series("buy", "total"))});
    let other = app.owner().key(&["event:read", "project:write"]).await;
    let detail = "API key missing required scope 'query:read'";
    post(&app, &other, &question).await.assert_error(
        403,
        "authentication_error",
        "permission_denied",
        detail,
    );
    let outsider = app.outsider("mallory").await.key(&["*"]).await;
    let answer = post(&app, &outsider, &question).await;
    answer.assert_error(404, "invalid_request", "not_found", "Project not found.");
    // The events of another project do not count.
    fill(&app).await;
    let owner = app.owner().key(&["*"]).await;
    let made = owner.post("/api/projects/", &json!({"name": "Empty"})).await.json();
    let path = format!("/api/projects/{}/query/", made["id"]);
    let mut question = trends(series("$pageview", "total"));
    question["dateRange"] = json!({"date_from": "all"});
    let answer = owner.post(&path, &json!({"query": question})).await.json();
    assert_eq!(each(&answer, "count"), [&json!(0)]);
    let answer = post(&app, &caller, &json!({"query": question})).await.json();
    assert_eq!(each(&answer, "count"), [&json!(5)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_waits_is_cancelled_and_too_many_are_refused() {
    let app =
        TestApp::start(|_| {}, |limits| (limits.questions, limits.questions_waiting) = (0, 1))
            .await
            .set_up()
            .await;
    let caller = app.owner().key(&["query:read"]).await;
    let body = |id: &str| json!({"query": trends(series("a", "total")), "client_query_id": id});
    let path = |id: &str| format!("/api/projects/{}/query/{id}/", app.project());
    assert_eq!(caller.get(&path("first")).await.status, 404);
    assert_eq!(caller.delete(&path("first")).await.status, 404);
    let grace = app.member("grace", Level::Member).await.key(&["query:read"]).await;
    let first = body("first");
    let asking = post(&app, &caller, &first);
    let cancelling = async {
        let status = until(async || {
            let answer = caller.get(&path("first")).await;
            if answer.status == 200 { Ok(answer.json()) } else { Err(answer.status) }
        })
        .await;
        assert_eq!(status["query_status"]["complete"], false);
        // The id of another user's question is not known.
        assert_eq!(grace.get(&path("first")).await.status, 404);
        until(async || match app.app().metrics.query_waiting.get() {
            1 => Ok(()),
            waiting => Err(waiting),
        })
        .await;
        assert_eq!(post(&app, &caller, &body("second")).await.status, 503);
        assert_eq!(caller.delete(&path("first")).await.status, 204);
    };
    let (cancelled, ()) = tokio::join!(asking, cancelling);
    let detail = "The question was cancelled.";
    cancelled.assert_error(409, "server_error", "query_cancelled", detail);
    let status = caller.get(&path("first")).await.json()["query_status"].clone();
    assert_eq!((&status["complete"], &status["error"]), (&json!(true), &json!(true)));
    assert_eq!((&status["error_message"], &status["results"]), (&json!(detail), &Value::Null));
    let status = caller.get(&path("second")).await.json()["query_status"].clone();
    assert_eq!(status["error"], true);
    let answer = caller.call(Method::DELETE, &path("first")).send().await;
    assert_eq!(answer.status, 204, "one that has ended stays as it is");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_has_a_time_and_a_memory() {
    let small = |config: &mut Config| config.query_memory = ByteSize(1);
    let memory = TestApp::start(small, |_| {}).await.set_up().await;
    let time = TestApp::start(|_| {}, |limits| limits.question_time = Duration::ZERO).await;
    let time = time.set_up().await;
    for (app, code) in [(memory, "query_too_large"), (time, "query_timeout")] {
        fill(&app).await;
        let caller = app.owner().key(&["query:read"]).await;
        let mut question = trends(series("$pageview", "dau"));
        question["dateRange"] = json!({"date_from": DAYS[0], "date_to": DAYS[2]});
        let answer = post(&app, &caller, &json!({"query": question})).await;
        let (status, kind, found, detail, attr) = answer.error();
        assert_eq!((status, kind.as_str()), (400, "validation_error"), "{detail}");
        assert_eq!((found.as_str(), attr.as_deref()), (code, Some("query")), "{detail}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_are_counted_by_kind_and_outcome() {
    let listening = |config: &mut Config| config.metrics_listen = "127.0.0.1:0".parse().unwrap();
    let app = TestApp::start(listening, |_| {}).await.set_up().await;
    let caller = app.owner().key(&["query:read"]).await;
    let question = json!({"query": trends(series("buy", "total"))});
    for _ in 0..2 {
        assert_eq!(post(&app, &caller, &question).await.status, 200);
    }
    let page = app.metrics().await;
    for line in [
        "weir_queries_total{kind=\"TrendsQuery\",outcome=\"answered\"} 2",
        "weir_queries_total{kind=\"PathsQuery\",outcome=\"too_long\"} 0",
        "weir_query_seconds_count{kind=\"TrendsQuery\"} 2",
        "weir_query_answers_total{cache=\"hit\"} 1",
        "weir_query_answers_total{cache=\"miss\"} 1",
        "weir_query_waiting 0",
        "weir_query_memory_bytes 0",
    ] {
        assert!(page.lines().any(|found| found == line), "{line}");
    }
}
