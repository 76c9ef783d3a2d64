//! Questions of each kind but trends on the page of insights: its numbers are those of the API.

use serde_json::{Value, json};
use weir_model::Timestamp;
use weir_testkit::{Answer, Caller, TestApp};

use crate::stored::send;
use crate::traffic::function;
use crate::web::session;

/// The fields of a form as server functions take them.
fn body(app: &TestApp, question: &[(&str, &str)]) -> String {
    let field = |(name, value): &(&str, &str)| format!("&question[{name}]={value}");
    format!("project={}{}", app.project(), question.iter().map(field).collect::<String>())
}

async fn ask(app: &TestApp, cookie: &str, question: &[(&str, &str)]) -> Answer {
    function(app, cookie, "answer_question", &body(app, question)).await
}

/// What the page has of an answer.
async fn results(app: &TestApp, cookie: &str, question: &[(&str, &str)]) -> Value {
    let answer = ask(app, cookie, question).await;
    assert_eq!(answer.status, 200, "{question:?}: {:?}", answer.body);
    answer.json()["results"].clone()
}

/// A question is refused at a field of its form.
async fn refused(app: &TestApp, cookie: &str, question: &[(&str, &str)], field: &str) {
    let answer = ask(app, cookie, question).await;
    assert_eq!(answer.status, 400, "{question:?}: {:?}", answer.body);
    let text = answer.text();
    assert!(text.contains(&format!("\"attr\":\"{field}\"")), "{question:?}: {text}");
}

/// Saves a question on the page. Returns the insight as the API has it, and the results that
/// the API has for its question.
async fn saved(
    app: &TestApp,
    cookie: &str,
    caller: &Caller,
    question: &[(&str, &str)],
) -> (Value, Value) {
    let save = format!("{}&name=Payers", body(app, question));
    assert!(function(app, cookie, "save_insight", &save).await.status < 400);
    let path = format!("/api/projects/{}/", app.project());
    let insight = caller.get(&format!("{path}insights/")).await.json()["results"][0].clone();
    let query = json!({"query": insight["query"], "refresh": "force_blocking"});
    let answer = caller.post(&format!("{path}query/"), &query).await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    let results = answer.json()["results"].clone();
    (insight, results)
}

/// The fields of the form in which the page shows a saved insight.
async fn shown(app: &TestApp, cookie: &str, insight: &Value) -> Value {
    let short_id = insight["short_id"].as_str().unwrap();
    let this = format!("project={}&insight={short_id}", app.project());
    function(app, cookie, "get_insight", &this).await.json()["form"].clone()
}

/// The beginning of the present minute, from which a test counts.
fn minute(app: &TestApp) -> Timestamp {
    let now = app.app().services.clock.now().micros();
    Timestamp::from_micros(now - now % 60_000_000)
}

/// The time so many seconds before.
fn ago(now: Timestamp, seconds: i64) -> String {
    now.plus_seconds(-seconds).to_string()
}

/// The persons behind a number of the answer to a question, which parameters name.
async fn behind(app: &TestApp, cookie: &str, parameters: &[(&str, &str)]) -> Value {
    let field = |(name, value): &(&str, &str)| format!("&fields[{name}]={value}");
    let fields = parameters.iter().map(field).collect::<String>();
    let this = format!("project={}{fields}&limit=50&offset=0", app.project());
    let answer = function(app, cookie, "list_persons_of_number", &this).await;
    assert_eq!(answer.status, 200, "{parameters:?}: {:?}", answer.body);
    answer.json()
}

/// The names of persons, sorted.
fn names(found: &Value) -> Vec<&str> {
    let persons = found["persons"].as_array().unwrap().iter();
    let mut names: Vec<&str> = persons.map(|person| person["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_of_a_page_lead_to_their_persons() {
    let app = TestApp::with_owner().await;
    let cookie = session(&app).await;
    let now = minute(&app);
    let event = |id: &str, event: &str, plan: &str, seconds: i64| {
        let properties = json!({"plan": plan});
        json!({"event": event, "distinct_id": id, "timestamp": ago(now, seconds), "properties": properties})
    };
    send(
        &app,
        json!([
            event("ada", "seen", "pro", 300),
            event("ada", "paid", "pro", 240),
            event("ada", "paid", "pro", 230),
            event("bob", "seen", "free", 300),
            event("cy", "paid", "free", 300),
        ]),
    )
    .await;
    let funnel = [("kind", "funnel"), ("step1", "seen"), ("step2", "paid")];
    for (question, number, detail, expected) in [
        (&[("event", "paid")][..], &[][..], None, &["ada", "cy"][..]),
        (
            &[("event", "paid"), ("breakdown", "plan")][..],
            &[("value", "pro")][..],
            Some("pro"),
            &["ada"][..],
        ),
        (&funnel[..], &[("step", "1")][..], Some("Did step 1: seen"), &["ada", "bob"][..]),
        (&funnel[..], &[("step", "-2")][..], Some("Stopped before step 2: paid"), &["bob"][..]),
        (
            &[("kind", "stickiness")][..],
            &[("active", "1")][..],
            Some("Active in 1 day"),
            &["ada", "bob", "cy"][..],
        ),
        (
            &[("kind", "lifecycle")][..],
            &[("status", "new")][..],
            Some("New"),
            &["ada", "bob", "cy"][..],
        ),
    ] {
        let parameters = [question, number].concat();
        let found = behind(&app, &cookie, &parameters).await;
        assert_eq!(names(&found), expected, "{parameters:?}");
        assert_eq!(found["total"], json!(expected.len()), "{parameters:?}");
        assert_eq!(found["details"], json!(detail.into_iter().collect::<Vec<_>>()));
    }
    let found = behind(&app, &cookie, &[("event", "paid")]).await;
    assert_eq!(
        (&found["persons"][0]["name"], &found["persons"][0]["events"]),
        (&json!("ada"), &json!(2))
    );
    assert_eq!(
        (&found["title"], found["intervals"].as_array().unwrap().len()),
        (&json!("Number of events: paid"), 8)
    );
    // The shown question is that of the API.
    let caller = app.owner().key(&["query:read"]).await;
    let query: Value = serde_json::from_str(found["query"].as_str().unwrap()).unwrap();
    let path = format!("/api/projects/{}/query/", app.project());
    let answer = caller.post(&path, &json!({"query": query})).await.json();
    assert_eq!(answer["actors_count"], 2);
}

/// The number of persons of each step, and the median time to it.
fn steps(steps: &Value, time: &str) -> Vec<(u64, Option<f64>)> {
    let steps = steps.as_array().unwrap().iter();
    steps.map(|step| (step["count"].as_u64().unwrap(), step[time].as_f64())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_funnel_has_the_numbers_of_the_api() {
    let app = TestApp::with_owner().await;
    let cookie = session(&app).await;
    let caller = app.owner().key(&["insight:write", "query:read"]).await;
    let now = minute(&app);
    let event = |id: &str, event: &str, plan: &str, seconds: i64| {
        let properties = json!({"plan": plan});
        json!({"event": event, "distinct_id": id, "timestamp": ago(now, seconds), "properties": properties})
    };
    send(
        &app,
        json!([
            event("ada", "seen", "pro", 300),
            event("ada", "paid", "pro", 240),
            event("bob", "seen", "free", 300),
            event("bob", "paid", "free", 120),
            event("cy", "seen", "free", 300),
            event("dan", "paid", "pro", 300),
        ]),
    )
    .await;
    let two = [("kind", "funnel"), ("step1", "seen"), ("step2", "paid")];
    let with = |more: &[(&'static str, &'static str)]| -> Vec<(&'static str, &'static str)> {
        let is_kept =
            |field: &&(&'static str, &'static str)| more.iter().all(|(name, _)| *name != field.0);
        two.iter().filter(is_kept).chain(more).copied().collect()
    };

    let found = results(&app, &cookie, &two).await["funnel"].clone();
    assert_eq!(found["names"], json!(["seen", "paid"]));
    assert_eq!((&found["values"][0]["label"], &found["has_others"]), (&json!(""), &json!(false)));
    let of_page = steps(&found["values"][0]["steps"], "median");
    assert_eq!(of_page, [(3, None), (2, Some(120.0))]);
    let (insight, of_api) = saved(&app, &cookie, &caller, &two).await;
    assert_eq!(steps(&of_api, "median_conversion_time"), of_page);
    assert_eq!(insight["derived_name"], "Funnel: seen, paid");
    let form = shown(&app, &cookie, &insight).await;
    assert_eq!((&form["kind"], &form["step2"]), (&json!("funnel"), &json!("paid")));

    let by_plan = results(&app, &cookie, &with(&[("breakdown", "plan")])).await;
    let of_value = |value: &Value| {
        let counts = steps(&value["steps"], "median").into_iter().map(|(count, _)| count);
        (value["label"].as_str().unwrap().to_owned(), counts.collect::<Vec<_>>())
    };
    let values = by_plan["funnel"]["values"].as_array().unwrap().iter();
    let expected = [("free".to_owned(), vec![2, 1]), ("pro".to_owned(), vec![1, 1])];
    assert_eq!(values.map(of_value).collect::<Vec<_>>(), expected);

    let any_order = with(&[("order", "unordered"), ("window", "90"), ("unit", "second")]);
    let any_order = results(&app, &cookie, &any_order).await["funnel"].clone();
    assert_eq!(any_order["names"], json!(["Completed 1 step", "Completed 2 steps"]));
    let of_page = steps(&any_order["values"][0]["steps"], "median");
    assert_eq!(of_page, [(4, None), (1, Some(60.0))]);

    for (name, value, field) in [
        ("step2", "", "step2"),
        ("window", "0", "window"),
        ("unit", "year", "unit"),
        ("order", "sorted", "order"),
        ("range", "soon", "range"),
    ] {
        refused(&app, &cookie, &with(&[(name, value)]), field).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn retention_has_the_numbers_of_the_api() {
    let app = TestApp::with_owner().await;
    let cookie = session(&app).await;
    let caller = app.owner().key(&["insight:write", "query:read"]).await;
    let now = minute(&app);
    let event = |id: &str, event: &str, days: i64| json!({"event": event, "distinct_id": id, "timestamp": ago(now, days * 86_400)});
    send(
        &app,
        json!([
            event("ada", "seen", 2),
            event("ada", "paid", 1),
            event("ada", "paid", 0),
            event("bob", "seen", 2),
            event("bob", "seen", 1),
            event("bob", "paid", 0),
        ]),
    )
    .await;
    let question = [
        ("kind", "retention"),
        ("target_event", "seen"),
        ("returning_event", "paid"),
        ("period", "Day"),
        ("total", "3"),
    ];
    let cohorts = results(&app, &cookie, &question).await["retention"].clone();
    let cohorts = cohorts.as_array().unwrap();
    let counts: Vec<&Value> = cohorts.iter().map(|cohort| &cohort["counts"]).collect();
    assert_eq!(counts, [&json!([2, 1, 2]), &json!([1, 1]), &json!([0])]);
    // Such as 21 Aug 2026, with the year of the clock.
    let last = cohorts[2]["label"].as_str().unwrap();
    assert_eq!((last.split(' ').count(), last.rsplit(' ').next()), (3, ago(now, 0).get(..4)));

    let (insight, of_api) = saved(&app, &cookie, &caller, &question).await;
    let of_api = of_api.as_array().unwrap().iter().map(|cohort| {
        let values = cohort["values"].as_array().unwrap().iter();
        Value::Array(values.map(|value| value["count"].clone()).collect())
    });
    let of_api: Vec<Value> = of_api.collect();
    assert_eq!(of_api.iter().collect::<Vec<_>>(), counts);
    assert_eq!(insight["derived_name"], "Retention: seen, then paid");
    let form = shown(&app, &cookie, &insight).await;
    assert_eq!((&form["kind"], &form["total"]), (&json!("retention"), &json!("3")));

    let first = [("kind", "retention"), ("target_event", "seen"), ("type", "retention_first_time")];
    let cohorts = results(&app, &cookie, &first).await["retention"].clone();
    let began = cohorts.as_array().unwrap().iter();
    let began: u64 = began.map(|cohort| cohort["counts"][0].as_u64().unwrap()).sum();
    assert_eq!(began, 2, "each person begins once");
    let weeks = [("kind", "retention"), ("period", "Week"), ("total", "2")];
    let weeks = results(&app, &cookie, &weeks).await["retention"].clone();
    let label = weeks[1]["label"].as_str().unwrap();
    assert!(label.contains('–'), "the days of a week: {label}");

    for (name, value) in [("total", "32"), ("total", "0"), ("period", "Year"), ("type", "once")] {
        refused(&app, &cookie, &[("kind", "retention"), (name, value)], name).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn stickiness_has_the_numbers_of_the_api() {
    let app = TestApp::with_owner().await;
    let cookie = session(&app).await;
    let caller = app.owner().key(&["insight:write", "query:read"]).await;
    let now = minute(&app);
    let event = |id: &str, seconds: i64| json!({"event": "seen", "distinct_id": id, "timestamp": ago(now, seconds)});
    // Events that are equal in everything count once.
    let (first, second) = (2 * 86_400, 86_400);
    let events = [("ada", first), ("ada", second), ("ada", second - 1), ("bob", second)];
    send(&app, json!(events.map(|(id, seconds)| event(id, seconds)))).await;

    let stickiness = [("kind", "stickiness"), ("event", "seen")];
    let found = results(&app, &cookie, &stickiness).await["stickiness"].clone();
    assert_eq!(found["total"], 2);
    assert_eq!((&found["labels"][1], &found["counts"][1]), (&json!("2 days"), &json!(1)));
    let (insight, of_api) = saved(&app, &cookie, &caller, &stickiness).await;
    assert_eq!((&of_api[0]["data"], &of_api[0]["labels"]), (&found["counts"], &found["labels"]));
    assert_eq!(shown(&app, &cookie, &insight).await["least"], "1");
    let twice = [("kind", "stickiness"), ("event", "seen"), ("least", "2"), ("cumulative", "on")];
    let found = results(&app, &cookie, &twice).await["stickiness"].clone();
    assert_eq!((&found["counts"][0], &found["counts"][1]), (&json!(1), &json!(0)));
    let label = found["labels"][0].as_str().unwrap();
    assert_eq!(label, "1 day or more");
    let minutes = [("kind", "stickiness"), ("interval", "minute"), ("range", "-7d")];
    refused(&app, &cookie, &minutes, "interval").await;
    refused(&app, &cookie, &[("kind", "stickiness"), ("least", "many")], "least").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lifecycle_has_the_numbers_of_the_api() {
    let app = TestApp::with_owner().await;
    let cookie = session(&app).await;
    let caller = app.owner().key(&["insight:write", "query:read"]).await;
    let now = minute(&app);
    let event = |id: &str, days: i64| json!({"event": "seen", "distinct_id": id, "timestamp": ago(now, days * 86_400)});
    send(&app, json!([event("ada", 3), event("ada", 2), event("bob", 1)])).await;

    let lifecycle = [("kind", "lifecycle"), ("event", "seen")];
    let found = results(&app, &cookie, &lifecycle).await["lifecycle"].clone();
    let (insight, of_api) = saved(&app, &cookie, &caller, &lifecycle).await;
    assert_eq!(insight["derived_name"], "Lifecycle: seen");
    assert_eq!(shown(&app, &cookie, &insight).await["kind"], "lifecycle");
    // The page has the days of the API in the form of its charts.
    let labels = of_api[0]["labels"].to_string().replace('-', " ");
    assert_eq!(found["intervals"].to_string(), labels);
    let (of_page, of_api) = (found["statuses"].as_array().unwrap(), of_api.as_array().unwrap());
    assert_eq!(of_page.len(), 4);
    let numbers = |data: &Value| -> Vec<f64> {
        data.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
    };
    for (of_page, of_api) in of_page.iter().zip(of_api) {
        assert_eq!(of_page["status"], of_api["status"]);
        assert_eq!(numbers(&of_page["data"]), numbers(&of_api["data"]));
        assert_eq!(of_page["sum"].as_f64(), of_api["count"].as_f64());
    }
    let dormant = of_page.iter().find(|one| one["status"] == "dormant").unwrap();
    assert!(dormant["sum"].as_f64().unwrap() < 0.0, "{dormant}");
    let minutes = [("kind", "lifecycle"), ("interval", "minute"), ("range", "-24h")];
    refused(&app, &cookie, &minutes, "interval").await;
    refused(&app, &cookie, &[("kind", "lifecycle"), ("range", "soon")], "range").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_have_the_numbers_of_the_api() {
    let app = TestApp::with_owner().await;
    let cookie = session(&app).await;
    let caller = app.owner().key(&["insight:write", "query:read"]).await;
    let now = minute(&app);
    let event = |id: &str, event: &str, seconds: i64| json!({"event": event, "distinct_id": id, "timestamp": ago(now, seconds)});
    send(
        &app,
        json!([
            event("ada", "seen", 300),
            event("ada", "paid", 240),
            event("bob", "seen", 300),
            event("bob", "paid", 120),
            event("bob", "drunk", 60),
        ]),
    )
    .await;
    let paths = [("kind", "paths"), ("events", "custom_event")];
    let found = results(&app, &cookie, &paths).await["paths"].clone();
    let (insight, of_api) = saved(&app, &cookie, &caller, &paths).await;
    assert_eq!(insight["derived_name"], "Paths: Custom events");
    assert_eq!(shown(&app, &cookie, &insight).await["events"], "custom_event");
    let of_page: Vec<_> = found["edges"].as_array().unwrap().iter().map(edge_of_page).collect();
    let of_api: Vec<_> = of_api.as_array().unwrap().iter().map(edge_of_api).collect();
    assert_eq!(of_page, of_api);
    let expected = [
        ("1_seen".to_owned(), "2_paid".to_owned(), json!(2), Some(120_000.0)),
        ("2_paid".to_owned(), "3_drunk".to_owned(), json!(1), Some(60_000.0)),
    ];
    assert_eq!(of_page, expected);
    let number = [("from", "1_seen"), ("to", "2_paid"), ("length", "3")];
    let found = behind(&app, &cookie, &[&paths[..], &number[..]].concat()).await;
    assert_eq!(names(&found), ["ada", "bob"]);
    assert_eq!(found["details"], json!(["From step 1: seen", "To step 2: paid"]));
    for (name, value) in [("length", "1"), ("length", "many"), ("events", "clicks")] {
        refused(&app, &cookie, &[("kind", "paths"), (name, value)], name).await;
    }
}

/// The keys of both steps of an edge, how often it is, and its average time in milliseconds.
type Edge = (String, String, Value, Option<f64>);

fn edge_of_page(edge: &Value) -> Edge {
    let step = edge["step"].as_u64().unwrap();
    let key = |step: u64, name: &str| format!("{step}_{}", edge[name].as_str().unwrap());
    (key(step, "from"), key(step + 1, "to"), edge["count"].clone(), edge["average"].as_f64())
}

fn edge_of_api(edge: &Value) -> Edge {
    let key = |name: &str| edge[name].as_str().unwrap().to_owned();
    let average = edge["average_conversion_time"].as_f64();
    (key("source"), key("target"), edge["value"].clone(), average)
}
