//! Counts of requests and events, and the import report computed from them: server
//! functions, the report, and access to them.

use http::Method;
use serde_json::{Value, json};
use weir_model::live::SAMPLE_LIMIT;
use weir_model::traffic::Counts;
use weir_service::traffic::{Range, Report};
use weir_testkit::{Answer, TestApp};

use crate::stored::send;
use crate::web::{page, session};

/// A call of a server function by a script of the app's own page.
pub(crate) async fn function(app: &TestApp, cookie: &str, name: &str, body: &str) -> Answer {
    let call = app.anonymous().call(Method::POST, &format!("/_fn/{name}"));
    call.header("content-type", "application/x-www-form-urlencoded")
        .header("sec-fetch-site", "same-origin")
        .header("cookie", cookie)
        .body(body.to_owned())
        .send()
        .await
}

async fn report(app: &TestApp) -> Report {
    let services = &app.app().services;
    let ctx = app.owner().ctx();
    let project = services.projects.enter(&ctx, &app.project().to_string()).await.unwrap();
    services.traffic.report(&project, Range::Hour, true).await.unwrap()
}

async fn total(app: &TestApp) -> Counts {
    report(app).await.total
}

#[tokio::test(flavor = "multi_thread")]
async fn events_and_requests_are_counted_once() {
    let app = TestApp::with_owner().await;
    assert!(total(&app).await.is_silent());
    send(
        &app,
        json!([{"event": "a", "distinct_id": "ada"}, {"event": "b", "distinct_id": "ada"},
               {"event": "of no one"}]),
    )
    .await;
    let counts = total(&app).await;
    assert_eq!((counts.accepted, counts.dropped, counts.requests), (2, 1, 1));
    assert_eq!(counts.reasons.get("missing_distinct_id"), Some(&1));
    assert!(counts.within(95).is_some() && counts.largest > 50);

    // A body that cannot be read contains its key near its beginning.
    let broken = format!(r#"{{"api_key": "{}", "batch": [{{"#, app.project_key());
    let refused = app.anonymous().call(Method::POST, "/batch/").body(broken).send().await;
    assert_eq!(refused.status, 400);
    let counts = total(&app).await;
    assert_eq!((counts.requests, counts.rejected), (1, 1));
    assert_eq!(counts.reasons.get("invalid_payload"), Some(&1));

    // Written and unwritten counts are added up.
    app.app().services.traffic.write().await.unwrap();
    assert_eq!(total(&app).await, counts);
    let later = report(&app).await;
    assert_eq!(later.steps.len(), 60);
    assert!(later.before.is_some_and(|before| before.is_silent()));
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_requests_are_rows_of_the_live_list() {
    let app = TestApp::with_owner().await;
    let cookie = session(&app).await;
    let theirs = app.outsider("mallory").await.key(&["*"]).await;
    let other = theirs.post("/api/organizations/", &json!({"name": "Beta"})).await.json();
    let foreign = other["teams"][0]["api_token"].as_str().unwrap().to_owned();
    app.app().tokens.refresh().await;
    let post = |path: &'static str, body: String| {
        let call = app.anonymous().call(Method::POST, path).header("user-agent", "sender/1.2");
        call.body(body).send()
    };
    let broken = |key: &str| format!(r#"{{"api_key": "{key}", "batch": [{{"#);
    let read = format!("project={}&limit=50", app.project());
    let rows = || async {
        let found = function(&app, &cookie, "list_events", &read).await.json();
        let all = found["rows"].as_array().unwrap().clone();
        all.into_iter().filter(|row| row["outcome"] == "rejected").collect::<Vec<Value>>()
    };

    // Requests of another project, or of none, are not shown.
    assert_eq!(post("/batch/", broken(&foreign)).await.status, 400);
    assert_eq!(post("/batch/", broken("phc_nobodyhasthiskey")).await.status, 400);
    assert_eq!(post("/batch/", "nonsense".to_owned()).await.status, 400);
    assert_eq!(rows().await, Vec::<Value>::new());

    // The stream contains the same rows as the next query of the page.
    let mut watch = app.app().ingest.live().watch(app.project());
    let body = broken(app.project_key());
    let size = body.len();
    assert_eq!(post("/e", body).await.status, 400);
    let found = rows().await;
    let [row] = &found[..] else { panic!("{found:?}") };
    assert_eq!((&row["reasons"], &row["place"]), (&json!(["invalid_payload"]), &json!("/e/")));
    assert_eq!((&row["library"], &row["size"]), (&json!("sender/1.2"), &json!(size)));
    assert!(row["detail"].is_string(), "{row}");
    let read_one = format!("project={}&key={}", app.project(), row["key"].as_str().unwrap());
    let one = function(&app, &cookie, "get_event", &read_one).await.json();
    let masked = one["project_key"].as_str().unwrap();
    assert_eq!(masked, format!("{}...", &app.project_key()[..8]));
    assert!(!one.to_string().contains(app.project_key()), "{one}");
    let streamed = watch.try_recv().unwrap();
    assert_eq!(serde_json::to_value(&*streamed).unwrap()["key"], row["key"]);
    assert!(watch.try_recv().is_err());

    app.app().services.traffic.write().await.unwrap();
    assert_eq!(rows().await, found);
    let path = format!("/projects/{}/events?outcome=rejected", app.project());
    let shown = page(&app, &path, &cookie).await;
    let text = String::from_utf8(shown.body.to_vec()).unwrap();
    assert!(text.contains("Rejected") && text.contains("The body could not be read."), "{path}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sample_that_was_cut_says_so() {
    let app = TestApp::with_owner().await;
    let cookie = session(&app).await;
    let long = "a".repeat(2 * SAMPLE_LIMIT);
    send(&app, json!([{"event": "of no one", "properties": {"long": long}}])).await;
    let read = format!("project={}&limit=5", app.project());
    let found = function(&app, &cookie, "list_events", &read).await.json();
    let row = &found["rows"][0];
    // Capture truncates to the length that pages check for.
    assert_eq!(row["size"], json!(SAMPLE_LIMIT));
    let shown = async |path: String| {
        let shown = page(&app, &format!("/projects/{}/{path}", app.project()), &cookie).await;
        String::from_utf8(shown.body.to_vec()).unwrap()
    };
    let caption = "The first 4 KiB of the payload as received";
    let live = shown(format!("events?selected={}", row["key"].as_str().unwrap())).await;
    assert!(live.contains(caption) && live.contains("at least 4.0 KiB"), "{live}");
    assert!(!live.contains("Send it again with curl"), "{live}");
    assert!(shown("health".to_owned()).await.contains(caption));
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_filtered_paged_and_downloaded() {
    let app = TestApp::with_owner().await;
    let cookie = session(&app).await;
    send(
        &app,
        json!([
            {"event": "Sign up", "distinct_id": "ada", "properties": {"plan": "pro"}},
            {"event": "sign out", "distinct_id": "bob", "properties": {"plan": "free"}},
            {"event": "of no one"},
        ]),
    )
    .await;
    let names = async |query: &str| {
        let read = format!("project={}&{query}", app.project());
        let found = function(&app, &cookie, "list_events", &read).await.json();
        let rows = found["rows"].as_array().unwrap().clone();
        let mut names: Vec<String> =
            rows.iter().map(|row| row["event"].as_str().unwrap().to_owned()).collect();
        names.sort();
        (names, found["older"].as_str().map(str::to_owned))
    };
    let cases: [(&str, &[&str]); 7] = [
        ("limit=9", &["Sign up", "of no one", "sign out"]),
        ("limit=9&filter[event]=SIGN", &["Sign up", "sign out"]),
        ("limit=9&filter[outcome]=dropped", &["of no one"]),
        ("limit=9&filter[person]=bob", &["sign out"]),
        ("limit=9&filter[property]=plan&filter[value]=pro", &["Sign up"]),
        ("limit=9&filter[to]=2020-01-01T00:00", &[]),
        ("limit=9&filter[range]=1h", &["Sign up", "of no one", "sign out"]),
    ];
    for (filter, expected) in cases {
        let (found, older) = names(filter).await;
        assert_eq!((found, older), (expected.iter().map(ToString::to_string).collect(), None));
    }
    let (mut all, mut before) = (Vec::new(), String::new());
    loop {
        let (found, older) = names(&format!("limit=1&before={before}")).await;
        assert!(found.len() <= 1);
        all.extend(found);
        let Some(older) = older else { break };
        before = older.replace(',', "%2C");
    }
    all.sort();
    assert_eq!(all, ["Sign up", "of no one", "sign out"]);

    // The chart has the same filter.
    let counts = async |query: &str| {
        let read = format!("project={}&filter[range]=24h&{query}", app.project());
        let found = function(&app, &cookie, "count_events", &read).await.json();
        let sum = |name: &str| {
            found[name].as_array().unwrap().iter().filter_map(Value::as_u64).sum::<u64>()
        };
        (found["counted"].clone(), sum("accepted"), sum("dropped"))
    };
    for (query, counted, accepted, dropped) in [
        ("", "All", 2, 1),
        ("filter[event]=SIGN", "Matching", 2, 0),
        ("filter[event]=one", "Matching", 0, 1),
        ("filter[person]=bob", "Matching", 1, 0),
        ("filter[property]=plan&filter[value]=pro", "Matching", 1, 0),
        ("filter[event]=sign&filter[outcome]=dropped", "Matching", 0, 0),
    ] {
        assert_eq!(counts(query).await, (json!(counted), accepted, dropped), "{query}");
    }

    // Rows have the values of the properties that were asked for.
    let read = format!("project={}&limit=9&properties[0]=plan&properties[1]=$lib", app.project());
    let found = function(&app, &cookie, "list_events", &read).await.json();
    let values = |name: &str| {
        let mut rows = found["rows"].as_array().unwrap().iter();
        rows.find(|row| row["event"] == name).unwrap()["properties"].clone()
    };
    assert_eq!(values("Sign up")[0], "pro");
    assert_eq!(values("of no one"), json!([null, null]));
    assert_eq!(found["frequent"][0], "plan");
    let path = format!("/projects/{}/events?properties=plan", app.project());
    let shown = page(&app, &path, &cookie).await.text();
    assert!(shown.contains("data-label=\"plan\"") && shown.contains("Show properties"), "{shown}");

    let file = format!("/_csv/projects/{}/events?event=sign&range=24h", app.project());
    let answer = page(&app, &file, &cookie).await;
    let text = String::from_utf8(answer.body.to_vec()).unwrap();
    assert_eq!(answer.header("content-type"), Some("text/csv; charset=utf-8"));
    assert!(text.starts_with("\"received\",\"event_time\",\"outcome\""), "{text}");
    assert_eq!(text.lines().count(), 3, "{text}");
    let former = page(&app, &format!("/projects/{}/live?q=a", app.project()), &cookie).await;
    let to = format!("/projects/{}/events?event=a", app.project());
    assert_eq!((former.status, former.header("location")), (308, Some(to.as_str())));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_of_the_time_is_counted_alone() {
    let app = TestApp::with_owner().await;
    let cookie = session(&app).await;
    send(&app, json!([{"event": "a", "distinct_id": "ada"}])).await;
    let now = app.app().services.clock.now();
    let read = |from: i64, to: i64| {
        let (from, to) = (now.plus_seconds(from), now.plus_seconds(to));
        format!("project={}&range=30d&compare=true&from={from}&to={to}", app.project())
    };
    for (from, to, accepted, step) in [
        (-180, 120, 1, 60),
        (-7_200, -3_600, 0, 60),
        (-72_000, 60, 1, 900),
        (-400_000, 60, 1, 3_600),
        // An invalid range is replaced by the default.
        (60, -180, 1, 21_600),
    ] {
        let found = function(&app, &cookie, "get_traffic", &read(from, to)).await.json();
        assert_eq!(
            (&found["total"]["accepted"], &found["step_seconds"]),
            (&json!(accepted), &json!(step)),
            "{from} {to}"
        );
        let times = found["times"].as_array().unwrap();
        assert!(times.last().unwrap().as_str() < found["end"].as_str(), "{found}");
    }
    for query in ["from=2026-01-01T00:00&to=2026-01-02T00:00", "from=soon&to=", "to=x"] {
        let path = format!("/projects/{}/health?{query}", app.project());
        assert_eq!(page(&app, &path, &cookie).await.status, 200, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_also_counted_by_their_own_time() {
    let app = TestApp::with_owner().await;
    let cookie = session(&app).await;
    let old = app.app().services.clock.now().plus_seconds(-5 * 86_400).to_string();
    send(
        &app,
        json!([{"event": "a", "distinct_id": "ada"},
               {"event": "b", "distinct_id": "ada", "timestamp": old}]),
    )
    .await;
    let body = format!("project={}&range=30d", app.project());
    let found = function(&app, &cookie, "get_traffic", &body).await.json();
    assert_eq!(found["by_event_time"], Value::Null);
    let body = format!("{body}&by_event_time=true");
    let found = function(&app, &cookie, "get_traffic", &body).await.json();
    let steps = |name: &str| -> Vec<u64> {
        let counts = found[name].as_array().unwrap().iter();
        counts.filter_map(Value::as_u64).filter(|count| *count > 0).collect()
    };
    assert_eq!((steps("accepted"), steps("by_event_time")), (vec![2], vec![1, 1]));
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_keys_are_shown_masked() {
    let app = TestApp::with_owner().await;
    let cookie = session(&app).await;
    let body = json!({"api_key": "phc_nobodyhasthiskey", "event": "a", "distinct_id": "b"});
    assert_eq!(app.anonymous().post("/capture/", &body).await.status, 401);
    let body = format!("project={}&range=1h", app.project());
    let found = function(&app, &cookie, "get_traffic", &body).await.json();
    assert_eq!(found["unknown_senders"]["keys"][0]["mask"], "phc_nobo...");
    assert_eq!(found["unknown_senders"]["keys"][0]["caller"], "127.0.0.1");
    assert_eq!(found["unknown_senders"]["refusals"], json!([["invalid_api_key", 1]]));
    assert_eq!(found["total"]["rejected"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_migration_is_started_followed_and_finished() {
    let app = TestApp::with_owner().await;
    let cookie = session(&app).await;
    let project = app.project();
    let started = format!("project={project}&source=Old+tool&total=10&file=it%27s.jsonl&note=");
    let answer = function(&app, &cookie, "start_import", &started).await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    let event = |n: u32| {
        json!({"event": "past", "distinct_id": "ada", "timestamp": format!("2024-01-01T00:00:0{n}Z"),
               "properties": {"$lib": "=importer"}})
    };
    let batch = json!({"api_key": app.project_key(), "historical_migration": true,
                       "batch": [event(1), event(3), event(2), {"event": "of no one"}]});
    assert_eq!(app.anonymous().post("/batch/", &batch).await.status, 200);
    // Old events that are not marked as historical.
    send(&app, json!([event(5)])).await;

    let read = format!("project={project}");
    let found: Value = function(&app, &cookie, "get_imports", &read).await.json();
    let plan = &found["plans"][0];
    assert_eq!(
        (&plan["source"], &plan["sent"], &plan["total"]),
        (&json!("Old tool"), &json!(4), &json!(10))
    );
    let of = |historical: bool| {
        let sources = found["sources"].as_array().unwrap();
        sources.iter().find(|source| source["historical"] == historical).unwrap().clone()
    };
    let (marked, unmarked) = (of(true), of(false));
    assert_eq!((&marked["accepted"], &marked["dropped"]), (&json!(3), &json!(1)));
    assert_eq!((&marked["out_of_order"], &marked["missing_ids"]), (&json!(1), &json!(1)));
    assert_eq!(marked["times"], json!(["2024-01-01T00:00:01Z", "2024-01-01T00:00:03Z"]));
    assert_eq!(unmarked["accepted"], 1);

    let report = format!("/_csv/projects/{project}/migrations");
    let csv = page(&app, &report, &cookie).await;
    assert_eq!((csv.status, csv.header("content-type")), (200, Some("text/csv; charset=utf-8")));
    let text = String::from_utf8(csv.body.to_vec()).unwrap();
    assert_eq!(text.lines().count(), 3, "{text}");
    assert!(text.contains("\"'=importer\""), "{text}");
    assert!(!text.contains(app.project_key()), "{text}");

    let shown = page(&app, &format!("/projects/{project}/migrations"), &cookie).await;
    assert_eq!(shown.status, 200);
    let id = plan["id"].as_str().unwrap();
    let finish = format!("project={project}&plan={id}");
    assert_eq!(function(&app, &cookie, "finish_import", &finish).await.status, 200);
    let found: Value = function(&app, &cookie, "get_imports", &read).await.json();
    assert!(found["plans"][0]["finished_at"].is_string());
    let log = app.owner().key(&["activity_log:read"]).await;
    let reported = log.get(&format!("/api/projects/{project}/activity_log/")).await.json();
    let changes = reported["results"].as_array().unwrap().iter();
    let changes = changes.map(|entry| &entry["detail"]["changes"][0]);
    let changes: Vec<Value> = changes
        .filter(|change| change["field"] == "migration")
        .map(|change| json!([change["before"], change["after"]]))
        .collect();
    assert_eq!(changes, [json!(["Old tool", null]), json!([null, "Old tool"])]);

    let refused =
        function(&app, &cookie, "start_import", &format!("project={project}&source=")).await;
    assert_eq!(refused.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn projects_of_others_show_nothing() {
    let app = TestApp::with_owner().await;
    let cookie = session(&app).await;
    let theirs = app.outsider("mallory").await.key(&["*"]).await;
    let other = theirs.post("/api/organizations/", &json!({"name": "Beta"})).await.json();
    let foreign = other["teams"][0]["id"].to_string();
    for id in [foreign.as_str(), "4711"] {
        let report = format!("/_csv/projects/{id}/migrations");
        assert_eq!(page(&app, &report, &cookie).await.status, 404, "{id}");
        assert_eq!(app.anonymous().get(&report).await.status, 303, "{id}");
        for (name, more) in [
            ("get_traffic", "&range=1h"),
            ("get_overview", ""),
            ("get_imports", ""),
            ("start_import", "&source=a"),
            ("finish_import", "&plan=00000000-0000-0000-0000-000000000000"),
            ("list_event_definitions", "&limit=5&offset=0"),
            ("get_event_definition", "&event=a"),
            ("list_insights", "&limit=5&offset=0"),
            ("get_insight", "&insight=abcdefgh"),
            ("list_question_names", ""),
            ("answer_question", "&question[event]=a"),
            ("list_persons_of_number", "&limit=5&offset=0"),
            ("get_web", ""),
            ("save_insight", "&name=a&question[event]=a"),
            ("hide_insight", "&insight=abcdefgh"),
            ("restore_insight", "&insight=abcdefgh"),
            ("list_persons", "&limit=5&offset=0"),
            ("get_person", "&person=00000000-0000-0000-0000-000000000000"),
            ("list_groups", "&limit=5&offset=0"),
            ("get_group", "&group_type=a&key=b&limit=5&offset=0"),
        ] {
            let answer = function(&app, &cookie, name, &format!("project={id}{more}")).await;
            assert_eq!(answer.status, 404, "{name} {id}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn event_definitions_have_counts_and_samples() {
    let app = TestApp::with_owner().await;
    let cookie = session(&app).await;
    let project = app.project();
    send(
        &app,
        json!([
            {"event": "paid", "distinct_id": "u", "timestamp": "2026-06-01T10:00:00Z",
             "properties": {"price": 1, "plan": "pro"}},
            {"event": "paid", "distinct_id": "u", "timestamp": "2026-06-01T11:00:00Z",
             "properties": {"price": "free"}},
            {"event": "opened / closed", "distinct_id": "u"},
        ]),
    )
    .await;
    let list = async |more: &str| {
        let body = format!("project={project}&{more}");
        function(&app, &cookie, "list_event_definitions", &body).await.json()
    };
    let names = |list: &Value| {
        let names = list["names"].as_array().unwrap().iter();
        names.map(|row| row["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let all = list("limit=50&offset=0").await;
    assert_eq!(names(&all), ["opened / closed", "paid"]);
    assert_eq!((&all["total"], &all["others"]), (&json!(2), &json!(0)));
    assert_eq!(all["names"][1]["events"], 2);
    assert_eq!(names(&list("limit=50&offset=0&order=-events").await), ["paid", "opened / closed"]);
    assert_eq!(names(&list("limit=50&offset=0&search=PAI").await), ["paid"]);
    let second = list("limit=1&offset=1&order=-name").await;
    assert_eq!((names(&second), &second["total"]), (vec!["opened / closed".to_owned()], &json!(2)));

    let get = async |event: &str| {
        let body = format!("project={project}&event={event}");
        function(&app, &cookie, "get_event_definition", &body).await
    };
    let paid = get("paid").await.json();
    assert_eq!((&paid["seen"]["events"], &paid["read"]), (&json!(2), &json!(2)));
    let property = |name: &str| {
        let properties = paid["properties"].as_array().unwrap();
        properties.iter().find(|property| property["name"] == name).cloned()
    };
    let price =
        json!({"name": "price", "kinds": "Text, Number", "sample": "\"free\"", "events": 2});
    assert_eq!(property("price"), Some(price));
    let plan = json!({"name": "plan", "kinds": "Text", "sample": "\"pro\"", "events": 1});
    assert_eq!(property("plan"), Some(plan));
    assert_eq!(get("opened%20%2F%20closed").await.status, 200);
    assert_eq!(get("never").await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn persons_and_groups_show_what_is_known() {
    let app = TestApp::with_owner().await;
    let cookie = session(&app).await;
    let project = app.project();
    send(
        &app,
        json!([
            {"event": "$pageview", "distinct_id": "anon-1", "timestamp": "2026-06-01T09:00:00Z"},
            {"event": "$identify", "distinct_id": "ada", "timestamp": "2026-06-01T10:00:00Z",
             "properties": {"$anon_distinct_id": "anon-1", "$set": {"email": "ada@example.com"}}},
            {"event": "$groupidentify", "distinct_id": "ada", "timestamp": "2026-06-01T10:01:00Z",
             "properties": {"$group_type": "company", "$group_key": "acme/tea",
                            "$group_set": {"name": "Acme Tea"}}},
            {"event": "paid", "distinct_id": "ada", "timestamp": "2026-06-01T10:02:00Z",
             "properties": {"$groups": {"company": "acme/tea", "line": 1, "office": 1,
                                        "team": "blue", "unit": 1, "venue": 1}}},
        ]),
    )
    .await;
    let body = format!("project={project}&search=ada%40example&limit=5&offset=0");
    let found = function(&app, &cookie, "list_persons", &body).await.json();
    assert_eq!(found["persons"].as_array().unwrap().len(), 1);
    assert_eq!(found["persons"][0]["name"], "ada@example.com");

    let id = found["persons"][0]["id"].as_str().unwrap();
    let person = function(&app, &cookie, "get_person", &format!("project={project}&person={id}"))
        .await
        .json();
    let person = &person["Person"];
    let email = person["properties"].as_array().unwrap();
    let email = email.iter().find(|property| property["name"] == "email").unwrap();
    assert_eq!(email["set_by"], json!(["$identify", "2026-06-01T10:00:00Z"]));
    assert_eq!(person["events"].as_array().unwrap().len(), 4);
    assert_eq!(person["events"][0]["event"], "paid");
    // A project has at most five group types.
    let groups = json!([
        ["company", "acme/tea", true],
        ["line", "1", true],
        ["office", "1", true],
        ["team", "blue", true],
        ["unit", "1", true],
        ["venue", "1", false]
    ]);
    assert_eq!(person["groups"], groups);
    let joined = person["ids"].as_array().unwrap().iter().filter(|id| id["joined"].is_array());
    assert_eq!(joined.count(), 1);
    let body = format!("project={project}&person={id}&event=paid");
    let filtered = function(&app, &cookie, "get_person", &body).await.json();
    assert_eq!(filtered["Person"]["events"].as_array().unwrap().len(), 1);

    let body = format!("project={project}&group_type=company&key=acme%2Ftea&limit=50&offset=0");
    let group = function(&app, &cookie, "get_group", &body).await.json();
    assert_eq!(group["name"], "Acme Tea");
    assert_eq!(group["members"]["Ok"]["members"][0][0], id);
    // Events name this group, but no event has created it.
    let body = format!("project={project}&group_type=team&key=blue&limit=50&offset=0");
    let named = function(&app, &cookie, "get_group", &body).await.json();
    assert_eq!((&named["name"], &named["first_seen"]), (&json!("blue"), &Value::Null));
    assert_eq!(named["members"]["Ok"]["members"][0][0], id);
    for path in [
        "persons".to_owned(),
        format!("persons/{id}"),
        "groups".to_owned(),
        "groups/company".to_owned(),
        "groups/company/acme%2Ftea".to_owned(),
        "groups/team".to_owned(),
        "groups/team/blue".to_owned(),
        "health?range=7d&compare=1".to_owned(),
    ] {
        let shown = page(&app, &format!("/projects/{project}/{path}"), &cookie).await;
        assert_eq!(shown.status, 200, "{path}");
    }
    for path in ["persons/x", "groups/nothing", "groups/nothing/nobody", "groups/venue/1"] {
        let shown = page(&app, &format!("/projects/{project}/{path}"), &cookie).await;
        assert_eq!(shown.status, 404, "{path}");
    }
}
