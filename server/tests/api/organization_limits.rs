//! Limits of organizations: staff chooses them, members see them, capture and the
//! management API keep them, and owners get mails (API-56, API-57, API-58, ING-66, ING-67).

use http::Method;
use rustix::process::Signal;
use serde_json::{Value, json};
use weir_model::Timestamp;
use weir_model::organizations::Level;
use weir_service::Clock;
use weir_testkit::{Answer, Caller, MailSink, Received, TestApp};

use crate::process::{self, Serving};
use crate::web::{cookie, function, session};

/// Chooses limits as the staff.
async fn choose(app: &TestApp, body: &Value) -> Value {
    let staff = app.owner().key(&["*"]).await;
    let path = format!("/api/instance/organizations/{}/limits/", app.organization());
    let answer = staff.patch(&path, body).await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    answer.json()
}

/// The limits as a member sees them.
async fn shown(app: &TestApp) -> Value {
    let reader = app.owner().key(&["organization:read"]).await;
    let answer = reader.get(&format!("/api/organizations/{}/limits/", app.organization())).await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    answer.json()
}

async fn send_with(app: &TestApp, key: &str, event: &str) -> Answer {
    let body = json!({"api_key": key, "event": event, "distinct_id": "ada"});
    app.anonymous().post("/i/v0/e/", &body).await
}

async fn send(app: &TestApp, event: &str) -> Answer {
    send_with(app, app.project_key(), event).await
}

async fn stored(app: &TestApp) -> Vec<Value> {
    app.app().ingest.applied().await;
    let reader = app.owner().key(&["query:read"]).await;
    let path = format!("/api/projects/{}/events/", app.project());
    reader.get(&path).await.json()["results"].as_array().unwrap().clone()
}

/// Another organization: the key of its project.
async fn other(app: &TestApp) -> String {
    let owner = app.outsider("mallory").await.key(&["*"]).await;
    let made = owner.post("/api/organizations/", &json!({"name": "Beta"})).await.json();
    made["teams"][0]["api_token"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn events_beyond_a_rejecting_limit_are_429_until_the_month_ends() {
    let clock = Clock::fixed(Timestamp::parse("2026-01-31T23:30:00Z").unwrap());
    let app = TestApp::at(clock.clone()).await.set_up().await;
    let other = other(&app).await;
    choose(&app, &json!({"events_per_month_limit": 2, "events_per_month_action": "reject"})).await;
    for event in ["one", "two"] {
        assert_eq!(send(&app, event).await.status, 200);
    }
    let refused = send(&app, "three").await;
    let detail = "The organization of this project has reached its limit of events in a calendar \
                  month. The events were not stored. Send them again after 1801 seconds.";
    refused.assert_error(429, "throttled_error", "over_limit", detail);
    assert_eq!(refused.header("retry-after"), Some("1801"));
    assert!(refused.header("access-control-allow-origin").is_some());
    assert!(!refused.text().contains("quota"), "libraries would stop without a word");
    let batch = json!({"api_key": app.project_key(), "batch": [
        {"event": "four", "distinct_id": "ada"}, {"event": "five", "distinct_id": "ada"},
    ]});
    assert_eq!(app.anonymous().post("/batch/", &batch).await.status, 429);
    assert_eq!(stored(&app).await.len(), 2);
    assert_eq!(send_with(&app, &other, "elsewhere").await.status, 200);

    let limits = shown(&app).await;
    assert_eq!(
        limits["events_per_month"],
        json!({"limit": 2, "action": "reject", "is_default": false, "usage": 2,
               "measured_at": null})
    );
    assert_eq!(limits["resets_at"], "2026-02-01T00:00:00Z");

    // The refused requests are shown, with the number of events that they had.
    let session = session(&app).await;
    let read = format!("project={}&limit=50", app.project());
    let call = function(&app, "list_events", &read).header("cookie", &session);
    let rows = call.send().await.json()["rows"].as_array().unwrap().clone();
    let rejected = rows.iter().filter(|row| row["outcome"] == "rejected");
    let details: Vec<&str> = rejected
        .map(|row| {
            assert_eq!(row["reasons"], json!(["over_limit"]), "{row}");
            row["detail"].as_str().unwrap()
        })
        .collect();
    assert_eq!(details.len(), 2, "{details:?}");
    for count in [1, 2] {
        let expected = format!("Events per month: 2. Events in the request: {count}.");
        assert!(details.contains(&expected.as_str()), "{details:?}");
    }

    clock.advance(1_800);
    assert_eq!(send(&app, "in February").await.status, 200);
    assert_eq!(shown(&app).await["events_per_month"]["usage"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn events_beyond_a_dropping_limit_are_answered_and_shown_as_dropped() {
    let listening = |config: &mut weir_server::config::Config| {
        config.metrics_listen = "127.0.0.1:0".parse().unwrap();
    };
    let app = TestApp::start(listening, |_| {}).await.set_up().await;
    choose(&app, &json!({"events_per_month_limit": 1, "events_per_month_action": "drop"})).await;
    assert_eq!(send(&app, "kept").await.status, 200);
    let dropped = send(&app, "dropped").await;
    assert_eq!((dropped.status, dropped.json()), (200, json!({"status": 1})));
    // What is dropped anyway keeps its own reason.
    let nameless = json!({"api_key": app.project_key(), "event": "of no one"});
    assert_eq!(app.anonymous().post("/i/v0/e/", &nameless).await.status, 200);
    // The newer protocol says so for each event.
    let uuid = "880f267e-6093-4048-93c9-55f9b0a7978d";
    let batch = json!({"created_at": "2026-06-01T10:35:00Z", "batch": [
        {"event": "newer", "uuid": uuid, "distinct_id": "ada",
         "timestamp": "2026-06-01T10:34:59Z", "properties": {}},
    ]});
    let newer = app
        .anonymous()
        .call(Method::POST, "/i/v1/analytics/events")
        .header("authorization", &format!("Bearer {}", app.project_key()))
        .header("content-type", "application/json")
        .header("user-agent", "posthog-python/7.91.1")
        .header("posthog-sdk-info", "posthog-python/7.91.1")
        .header("posthog-attempt", "1")
        .header("posthog-request-id", "cd497c5e-d34e-41e5-b50a-307bc0973d46")
        .header("posthog-request-timestamp", "2026-06-01T10:35:00.595094+00:00")
        .body(batch.to_string())
        .send()
        .await;
    assert_eq!(
        (newer.status, newer.json()),
        (200, json!({"results": {uuid: {"result": "drop", "details": "over_monthly_limit"}}}))
    );

    let names: Vec<Value> = stored(&app).await.iter().map(|row| row["event"].clone()).collect();
    assert_eq!(names, ["kept"]);
    let reader = app.owner().key(&["project:read"]).await;
    let path = format!("/api/projects/{}/ingestion_warnings/", app.project());
    let warnings = reader.get(&path).await.json()["results"].clone();
    let of = |code: &str| {
        let all = warnings.as_array().unwrap();
        all.iter().find(|entry| entry["code"] == code).unwrap_or(&Value::Null)
    };
    let over = of("over_monthly_limit");
    assert_eq!((&over["outcome"], &over["count"]), (&json!("dropped"), &json!(2)), "{warnings}");
    assert_eq!(of("missing_distinct_id")["count"], 1, "{warnings}");
    let page = app.metrics().await;
    for line in [
        "weir_capture_events_dropped_total{reason=\"over_monthly_limit\"} 2",
        "weir_capture_events_over_limit_total{limit=\"events_per_month\",action=\"drop\"} 3",
    ] {
        assert!(page.lines().any(|shown| shown == line), "{line} in {page}");
    }
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_that_warns_takes_all_events() {
    let app = TestApp::with_owner().await;
    choose(&app, &json!({"events_per_month_limit": 1, "events_per_month_action": "warn"})).await;
    for event in ["one", "two", "three"] {
        assert_eq!(send(&app, event).await.status, 200);
    }
    assert_eq!(stored(&app).await.len(), 3);
    assert_eq!(shown(&app).await["events_per_month"]["usage"], 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_burst_is_taken_and_then_as_many_events_as_a_second_allows() {
    let clock = Clock::fixed(Timestamp::parse("2026-06-01T10:00:00Z").unwrap());
    let app = TestApp::at(clock.clone()).await.set_up().await;
    let other = other(&app).await;
    choose(&app, &json!({"events_per_second_limit": 1, "events_per_second_action": "reject"}))
        .await;
    for _ in 0..10 {
        assert_eq!(send(&app, "in the burst").await.status, 200);
    }
    let refused = send(&app, "too fast").await;
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("1")));
    assert_eq!(send_with(&app, &other, "elsewhere").await.status, 200);
    clock.advance(1);
    assert_eq!(send(&app, "a second later").await.status, 200);
    assert_eq!(send(&app, "too fast again").await.status, 429);
    clock.advance(60);
    assert_eq!(shown(&app).await["events_per_second"]["usage"], 1, "11 in the last minute");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_measured_disk_space_limits_events() {
    let app = TestApp::with_owner().await;
    choose(&app, &json!({"disk_bytes_limit": 1, "disk_bytes_action": "reject"})).await;
    assert_eq!(send(&app, "before the measurement").await.status, 200);
    assert_eq!(stored(&app).await.len(), 1);
    app.app().services.limits.measure().await.unwrap();
    let refused = send(&app, "beyond").await;
    assert_eq!(refused.status, 429);
    assert!(refused.error().3.contains("its limit of disk space"), "{:?}", refused.body);
    let disk = shown(&app).await["disk_bytes"].clone();
    assert!(disk["usage"].as_u64().unwrap() > 100 && disk["measured_at"].is_string(), "{disk}");
    choose(&app, &json!({"disk_bytes_action": "drop"})).await;
    assert_eq!(send(&app, "dropped").await.status, 200);
    assert_eq!(stored(&app).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn owners_get_mails_at_80_and_at_100_percent() {
    let sink = MailSink::start().await;
    let mail = sink.url();
    let app = TestApp::start(
        move |config| {
            config.public_url = "http://localhost:8000".parse().unwrap();
            config.smtp_url = mail.parse().unwrap();
        },
        |_| {},
    );
    let app = app.await.set_up().await;
    app.member("grace", Level::Administrator).await;
    choose(&app, &json!({"events_per_month_limit": 5, "events_per_month_action": "reject"})).await;
    for _ in 0..4 {
        assert_eq!(send(&app, "a").await.status, 200);
    }
    let first = limit_mails(&sink, 1).await;
    assert_eq!((first.len(), &first[0].to), (1, &vec!["ada@mail.example".to_owned()]));
    let subject = first[0].header("Subject").unwrap();
    assert!(subject.contains("80 %") && subject.contains("Acme Tea"), "{subject}");
    assert_eq!(send(&app, "a").await.status, 200);
    let both = limit_mails(&sink, 2).await;
    assert!(both[1].header("Subject").unwrap().contains("has reached its limit"), "{both:?}");
    let text = &both[1].text;
    let page = format!("http://localhost:8000/organizations/{}#limits", app.organization());
    assert!(text.contains(&page), "{text}");
    // Each of them is sent once.
    app.app().services.limits.warn_events().await.unwrap();
    app.app().services.limits.measure().await.unwrap();
    assert_eq!(limit_mails(&sink, 2).await.len(), 2);
}

/// The mails about limits, as soon as there are this many of them.
async fn limit_mails(sink: &MailSink, count: usize) -> Vec<Received> {
    let mut wanted = count;
    loop {
        let all = sink.wait_for(wanted).await;
        let is_it = |mail: &&Received| {
            mail.header("Subject").is_some_and(|subject| subject.contains(" limit: "))
        };
        let found: Vec<Received> = all.iter().filter(is_it).cloned().collect();
        if found.len() >= count {
            return found;
        }
        wanted = all.len() + 1;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_in_the_settings_are_those_of_all_organizations() {
    let settings = |config: &mut weir_server::config::Config| {
        config.limit_members = "2 reject".parse().unwrap();
        config.limit_disk = "1GiB warn".parse().unwrap();
    };
    let app = TestApp::start(settings, |_| {}).await.set_up().await;
    let limits = shown(&app).await;
    assert_eq!(
        limits["members"],
        json!({"limit": 2, "action": "reject", "is_default": true, "usage": 1,
               "measured_at": null})
    );
    assert_eq!(limits["disk_bytes"]["limit"], 1_u64 << 30);
    assert_eq!(limits["exports"]["limit"], Value::Null);
    let none = choose(&app, &json!({"members_action": "none"})).await["members"].clone();
    assert_eq!((&none["limit"], &none["is_default"]), (&Value::Null, &json!(false)));
    let own = json!({"members_limit": 7, "members_action": "warn"});
    let own = choose(&app, &own).await["members"].clone();
    assert_eq!((&own["limit"], &own["action"]), (&json!(7), &json!("warn")));
    let fewer = choose(&app, &json!({"members_limit": 6})).await["members"].clone();
    assert_eq!((&fewer["limit"], &fewer["action"]), (&json!(6), &json!("warn")));
    for default in [json!({"members_limit": null}), json!({"members_action": "default"})] {
        let again = choose(&app, &default).await["members"].clone();
        assert_eq!((&again["limit"], &again["is_default"]), (&json!(2), &json!(true)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn staff_chooses_and_members_read() {
    let app = TestApp::with_owner().await;
    let home = app.organization();
    let (own, all) = (
        format!("/api/organizations/{home}/limits/"),
        format!("/api/instance/organizations/{home}/limits/"),
    );
    let member = app.member("grace", Level::Member).await.key(&["*"]).await;
    let outsider = app.outsider("mallory").await.key(&["*"]).await;
    let limited = app.owner().limited_key(&["*"], &[home], &[]).await;
    let narrow = app.owner().key(&["organization:write"]).await;
    assert_eq!(member.get(&own).await.status, 200);
    assert_eq!(limited.get(&own).await.status, 200);
    assert_eq!(outsider.get(&own).await.status, 404);
    assert_eq!(member.patch(&own, &json!({"members_limit": 5})).await.status, 405);
    let change = json!({"members_limit": 5, "members_action": "reject"});
    for caller in [&member, &outsider, &limited] {
        for answer in [
            caller.get("/api/instance/organizations/").await,
            caller.get(&all).await,
            caller.patch(&all, &change).await,
            // Before the fields are checked.
            caller.patch(&all, &json!({"members_limit": 0})).await,
        ] {
            answer.assert_error(404, "invalid_request", "not_found", "Not found.");
        }
    }
    let detail = "API key missing required scope '*'";
    for answer in [narrow.get(&all).await, narrow.patch(&all, &change).await] {
        answer.assert_error(403, "authentication_error", "permission_denied", detail);
    }
    let staff = app.owner().key(&["*"]).await;
    assert_eq!(staff.get(&all).await.status, 200);
    let list = staff.get("/api/instance/organizations/").await.json();
    assert_eq!((&list["count"], &list["results"][0]["name"]), (&json!(1), &json!("Acme Tea")));

    for (body, attr, code) in [
        (json!({"members_limit": 0}), "members_limit", "min_value"),
        (json!({"members_limit": "many"}), "members_limit", "invalid_input"),
        (json!({"members_action": "drop"}), "members_action", "invalid_choice"),
        (json!({"members_action": "reject"}), "members_limit", "required"),
        (json!({"members_limit": 5}), "members_action", "required"),
        (json!({"events_per_second_limit": 10_000_001}), "events_per_second_limit", "max_value"),
    ] {
        let (status, _, found, _, at) = staff.patch(&all, &body).await.error();
        assert_eq!((status, found.as_str(), at.as_deref()), (400, code, Some(attr)), "{body}");
    }
    choose(&app, &change).await;
    let log = app.owner().key(&["activity_log:read"]).await;
    let path = format!("/api/organizations/{home}/activity_log/?scope=Organization");
    let log = log.get(&path).await.json();
    let entry = &log["results"][0];
    assert_eq!((&entry["scope"], &entry["activity"]), (&json!("Organization"), &json!("updated")));
    let changed = &entry["detail"]["changes"];
    assert_eq!(changed.as_array().unwrap().len(), 1, "{entry}");
    assert_eq!(
        (&changed[0]["field"], &changed[0]["before"], &changed[0]["after"]),
        (&json!("members_limit"), &json!("default"), &json!("5 reject"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pages_are_for_staff_and_save_what_was_changed() {
    let app = TestApp::with_owner().await;
    let home = app.organization();
    let ada = session(&app).await;
    let grace = with_password(&app, "grace@mail.example").await;
    let call = async |name: &str, body: &str, cookie: &str| {
        function(&app, name, body).header("cookie", cookie).send().await
    };
    let id = format!("id={home}");
    for (name, body) in [
        ("list_instance_organizations", "limit=50&offset=0"),
        ("get_instance_organization", id.as_str()),
        ("save_limits", id.as_str()),
    ] {
        assert_eq!(call(name, body, &grace).await.status, 404, "{name}");
    }
    assert_eq!(call("get_instance_organization", &id, &ada).await.status, 200);
    assert_eq!(call("get_organization_limits", &id, &grace).await.status, 200);
    let saved = format!(
        "{id}&exports_action=reject&exports_limit=3&events_per_month_action=default\
         &events_per_second_action=default&disk_bytes_action=default&members_action=default"
    );
    assert_eq!(call("save_limits", &saved, &ada).await.status, 200);
    let limits = shown(&app).await;
    assert_eq!(
        (&limits["exports"]["limit"], &limits["members"]["limit"]),
        (&json!(3), &json!(null))
    );
    for (wrong, at) in [
        (saved.replace("exports_limit=3", "exports_limit=0"), "exports_limit"),
        // A number without an action is not forgotten silently.
        (format!("{saved}&members_limit=5"), "members_action"),
    ] {
        let refused = call("save_limits", &wrong, &ada).await;
        assert!(refused.status >= 400 && refused.text().contains(at), "{}", refused.text());
    }
}

/// The session of a new member who signed up by an invite.
async fn with_password(app: &TestApp, email: &str) -> String {
    let owner = app.owner().key(&["*"]).await;
    let invites = format!("/api/organizations/{}/invites/", app.organization());
    let invite = owner.post(&invites, &json!({"target_email": email, "level": 1})).await;
    cookie(&sign_up(app, &invite).await)
}

async fn sign_up(app: &TestApp, invite: &Answer) -> Answer {
    let link = format!("/api/signup/{}/", invite.json()["token"].as_str().unwrap());
    let account = json!({"first_name": "Grace", "password": "plum-otter-violin-93"});
    app.anonymous().post(&link, &account).await
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_members_are_invited_or_join_than_the_limit() {
    let app = TestApp::with_owner().await;
    let owner = app.owner().key(&["*"]).await;
    let invites = format!("/api/organizations/{}/invites/", app.organization());
    let invite =
        async |email: &str| owner.post(&invites, &json!({"target_email": email, "level": 1})).await;
    choose(&app, &json!({"members_limit": 3, "members_action": "reject"})).await;
    let grace = invite("grace@mail.example").await;
    let linus = invite("linus@mail.example").await;
    assert_eq!((grace.status, linus.status), (201, 201));
    let refused = invite("joan@mail.example").await;
    let detail = "The organization has as many members, with those who are invited, as the \
                  operator of this instance allows.";
    refused.assert_field_error(
        400,
        "validation_error",
        "limit_reached",
        detail,
        Some("target_email"),
    );
    // An invite that replaces another one takes no further place.
    assert_eq!(invite("linus@mail.example").await.status, 201);
    assert_eq!(sign_up(&app, &grace).await.status, 201);
    // Those who are there stay, and no more join.
    choose(&app, &json!({"members_limit": 1})).await;
    let linus = {
        choose(&app, &json!({"members_action": "warn"})).await;
        let made = invite("linus@mail.example").await;
        choose(&app, &json!({"members_action": "reject"})).await;
        made
    };
    let refused = sign_up(&app, &linus).await;
    let detail = "The organization has as many members as the operator of this instance allows.";
    refused.assert_field_error(400, "validation_error", "limit_reached", detail, None);
    assert_eq!(shown(&app).await["members"]["usage"], 2);
    choose(&app, &json!({"members_limit": 3})).await;
    assert_eq!(sign_up(&app, &linus).await.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_exports_are_created_than_the_limit() {
    let app = TestApp::with_owner().await;
    let owner = app.owner().key(&["*"]).await;
    let path = format!("/api/organizations/{}/batch_exports/", app.organization());
    let export = json!({"name": "Nowhere", "interval": "day", "paused": true,
                        "destination": {"type": "NoOp", "config": {}}});
    choose(&app, &json!({"exports_limit": 1, "exports_action": "reject"})).await;
    let first = owner.post(&path, &export).await;
    assert_eq!(first.status, 201, "{:?}", first.body);
    // The limit is that of all projects together.
    let projects = format!("/api/organizations/{}/projects/", app.organization());
    let second = owner.post(&projects, &json!({"name": "Second"})).await.json()["id"].clone();
    let elsewhere = owner.post(&format!("/api/projects/{second}/batch_exports/"), &export).await;
    let detail = "The organization has as many exports as the operator of this instance \
                  allows. Delete one first.";
    elsewhere.assert_field_error(400, "validation_error", "limit_reached", detail, None);
    assert_eq!(shown(&app).await["exports"]["usage"], 1);
    let id = first.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(owner.delete(&format!("{path}{id}/")).await.status, 204);
    assert_eq!(owner.post(&path, &export).await.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_of_the_month_survive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path();
    let made = process::set_up(data, "plum-otter-violin-93").await;
    let made: Value = serde_json::from_str(&made.out).unwrap();
    let event = json!({"api_key": made["project_api_key"], "event": "a", "distinct_id": "ada"});
    let keyed = |serving: &Serving| -> Caller {
        serving.caller.with_key(made["personal_api_key"].as_str().unwrap())
    };
    let path = "/api/instance/organizations/@current/limits/";
    let serving = Serving::start(data).await;
    let body = json!({"events_per_month_limit": 3, "events_per_month_action": "reject"});
    assert_eq!(keyed(&serving).patch(path, &body).await.status, 200);
    for _ in 0..2 {
        assert_eq!(serving.caller.post("/i/v0/e/", &event).await.status, 200);
    }
    serving.signal(Signal::TERM);
    assert_eq!(serving.ended().await, Some(0));

    let serving = Serving::start(data).await;
    let limits = keyed(&serving).get("/api/organizations/@current/limits/").await.json();
    assert_eq!(limits["events_per_month"]["usage"], 2, "{limits}");
    assert_eq!(serving.caller.post("/i/v0/e/", &event).await.status, 200);
    assert_eq!(serving.caller.post("/i/v0/e/", &event).await.status, 429);
    serving.signal(Signal::TERM);
    assert_eq!(serving.ended().await, Some(0));
}
