//! `reset_token`, `rotate_secret_token` and `delete_secret_token_backup`, and project
//! keys in the web app.

use serde_json::{Value, json};
use weir_model::Timestamp;
use weir_model::organizations::Level;
use weir_service::{Clock, policy};
use weir_testkit::{Answer, Caller, TestApp};

use crate::web::{function, session};

const ACTIONS: [&str; 3] = ["reset_token/", "rotate_secret_token/", "delete_secret_token_backup/"];

async fn act(caller: &Caller, app: &TestApp, action: &str) -> Value {
    let path = format!("/api/projects/{}/{action}", app.project());
    let answer = caller.patch(&path, &json!({})).await;
    assert_eq!(answer.status, 200, "{action}: {:?}", answer.body);
    answer.json()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_old_key_stops_working_immediately() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["project:write"]).await;
    let capture = async |key: &str| {
        let event = json!({"token": key, "event": "a", "distinct_id": "b"});
        app.anonymous().post("/capture/", &event).await.status
    };
    let mut old = app.project_key().to_owned();
    assert_eq!(capture(&old).await, 200);
    // The project's first event is recorded in the background.
    app.app().ingest.applied().await;
    for _ in 0..3 {
        let shown = act(&caller, &app, "reset_token/").await;
        let new = shown["api_token"].as_str().unwrap().to_owned();
        assert!(new.starts_with("phc_") && new.len() > 40 && new != old);
        assert_eq!((capture(&old).await, capture(&new).await), (401, 200));
        let read = caller.get(&format!("/api/projects/{}/", app.project())).await.json();
        assert_eq!(read, shown);
        old = new;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_paths_below_the_organization_do_the_same() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["*"]).await;
    let below = |organization: &str, rest: &str| {
        format!("/api/organizations/{organization}/projects/{}/{rest}", app.project())
    };
    let home = app.organization().to_string();
    let before = caller.get(&below(&home, "")).await.json();
    for (action, changes) in ACTIONS.into_iter().zip(["api_token", "secret_api_token", ""]) {
        let answer = caller.patch(&below(&home, action), &json!({})).await;
        let after = answer.json();
        assert_eq!(answer.status, 200, "{action}: {:?}", answer.body);
        assert!(changes.is_empty() || after[changes] != before[changes], "{action}");
        assert_eq!(caller.get(&below(&home, "")).await.json(), after, "{action}");
    }
    // The changes of the project itself, in numbered pages.
    let at = format!("/api/projects/{}/", app.project());
    caller.patch(&at, &json!({"name": "Renamed"})).await;
    let pages = below(&home, "activity/");
    let first = caller.get(&format!("{pages}?limit=1")).await.json();
    assert_eq!(first["results"][0]["detail"]["changes"][0]["after"], "Renamed");
    let total = first["total_count"].as_u64().unwrap();
    assert!(total >= 3 && first["previous"].is_null(), "{first}");
    let next = first["next"].as_str().unwrap();
    assert!(next.ends_with("/activity/?limit=1&page=2"), "{next}");
    let second = caller.get(&next[next.find("/api/").unwrap()..]).await.json();
    assert_ne!(second["results"][0]["id"], first["results"][0]["id"]);
    let last = caller.get(&format!("{at}activity/?limit=100")).await.json();
    assert_eq!(last["results"].as_array().unwrap().len() as u64, total);
    assert!(last["next"].is_null());
    assert!(last["results"].as_array().unwrap().iter().all(|entry| entry["scope"] == "Team"));
    // Below another organization it does not exist.
    let other = caller.post("/api/organizations/", &json!({"name": "Beta"})).await.json();
    let other = other["id"].as_str().unwrap();
    for action in ACTIONS {
        let answer = caller.patch(&below(other, action), &json!({})).await;
        answer.assert_error(404, "invalid_request", "not_found", "Project not found.");
    }
    let answer = caller.get(&below(other, "activity/")).await;
    answer.assert_error(404, "invalid_request", "not_found", "Project not found.");
    let there = json!({"organization_id": other});
    let moved = caller.post(&below(&home, "change_organization/"), &there).await;
    assert_eq!((moved.status, &moved.json()["organization"]), (200, &json!(other)));
}

#[tokio::test(flavor = "multi_thread")]
async fn resets_at_the_same_time_leave_one_key() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["project:write"]).await;
    let reset = || act(&caller, &app, "reset_token/");
    let (a, b, c) = tokio::join!(reset(), reset(), reset());
    let now = caller.get(&format!("/api/projects/{}/", app.project())).await.json();
    let mut alive = Vec::new();
    for made in [a, b, c] {
        let event = json!({"token": made["api_token"], "event": "a", "distinct_id": "b"});
        if app.anonymous().post("/capture/", &event).await.status == 200 {
            alive.push(made["api_token"].clone());
        }
    }
    assert_eq!(alive, [now["api_token"].clone()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_key_moves_to_the_backup() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["project:write"]).await;
    let keys = |shown: &Value| {
        (shown["secret_api_token"].clone(), shown["secret_api_token_backup"].clone())
    };
    let none = act(&caller, &app, "delete_secret_token_backup/").await;
    assert_eq!(keys(&none), (Value::Null, Value::Null));
    let (first, backup) = keys(&act(&caller, &app, "rotate_secret_token/").await);
    assert!(first.as_str().unwrap().starts_with("phs_"));
    assert_eq!(backup, Value::Null);
    let (second, backup) = keys(&act(&caller, &app, "rotate_secret_token/").await);
    assert!(second != first && backup == first);
    let (third, backup) = keys(&act(&caller, &app, "rotate_secret_token/").await);
    assert!(third != second && backup == second);
    for _ in 0..2 {
        let shown = act(&caller, &app, "delete_secret_token_backup/").await;
        assert_eq!(keys(&shown), (third.clone(), Value::Null));
    }

    // Only users who may replace it can see it.
    let member = app.member("grace", Level::Member).await;
    let path = format!("/api/projects/{}/", app.project());
    for blind in [member.key(&["*"]).await, app.owner().key(&["project:read"]).await] {
        assert_eq!(keys(&blind.get(&path).await.json()), (Value::Null, Value::Null));
    }
    assert_eq!(keys(&caller.get(&path).await.json()), (third, Value::Null));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may() {
    let app = TestApp::with_owner().await;
    let member = app.member("grace", Level::Member).await;
    let member = member.key(&["*"]).await;
    let reader = app.owner().key(&["project:read"]).await;
    let outsider = app.outsider("mallory").await.key(&["*"]).await;
    for action in ACTIONS {
        let path = format!("/api/projects/{}/{action}", app.project());
        for (caller, detail) in [
            (&member, "Your organization access level is insufficient."),
            (&reader, "API key missing required scope 'project:write'"),
        ] {
            let answer = caller.patch(&path, &json!({})).await;
            answer.assert_error(403, "authentication_error", "permission_denied", detail);
        }
        let answer = outsider.patch(&path, &json!({})).await;
        answer.assert_error(404, "invalid_request", "not_found", "Project not found.");
        let current = format!("/api/projects/%40current/{}", action.trim_end_matches('/'));
        let caller = app.owner().key(&["*"]).await;
        assert_eq!(caller.patch(&current, &json!({})).await.status, 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn capture_takes_the_old_key_until_its_time() {
    let clock = Clock::fixed(Timestamp::from_micros(1_780_000_000_000_000));
    let app = TestApp::at(clock.clone()).await.set_up().await;
    let project = app.project();
    let capture = async |key: &str| {
        let event = json!({"token": key, "event": "a", "distinct_id": "b"});
        app.anonymous().post("/capture/", &event).await.status
    };
    let mut cookie = session(&app).await;
    let old = app.project_key().to_owned();
    let rotate = format!("id={project}&overlap=hour");
    let act = async |cookie: &str, name: &str, body: &str| -> Answer {
        let answer = function(&app, name, body).header("cookie", cookie).send().await;
        assert_eq!(answer.status, 200, "{name}: {:?}", answer.body);
        answer
    };
    act(&cookie, "rotate_project_key", &rotate).await;
    let keys = act(&cookie, "get_project_keys", &format!("id={project}")).await.json();
    let new = keys["present"]["key"].as_str().unwrap().to_owned();
    assert_ne!(old, new);
    assert_eq!(keys["old"][0]["key"], old);
    assert_eq!((capture(&old).await, capture(&new).await, capture(&new).await), (200, 200, 200));
    let keys = act(&cookie, "get_project_keys", &format!("id={project}")).await.json();
    assert_eq!((&keys["old"][0]["week"], &keys["present"]["week"]), (&json!(1), &json!(2)));
    clock.advance(60 * 60 - 1);
    assert_eq!(capture(&old).await, 200);
    clock.advance(1);
    assert_eq!((capture(&old).await, capture(&new).await), (401, 200), "without a restart");

    cookie = session(&app).await;
    act(&cookie, "rotate_project_key", &rotate).await;
    assert_eq!(capture(&new).await, 200);
    act(&cookie, "end_old_project_key", &format!("id={project}")).await;
    assert_eq!(capture(&new).await, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_app_makes_a_secret_key_after_a_recent_sign_in() {
    let clock = Clock::fixed(Timestamp::from_micros(1_780_000_000_000_000));
    let app = TestApp::at(clock.clone()).await.set_up().await;
    let caller = app.owner().key(&["project:write"]).await;
    let cookie = session(&app).await;
    let body = format!("id={}", app.project());
    let made = async |cookie: &str| {
        function(&app, "rotate_secret_key", &body).header("cookie", cookie).send().await.status
    };
    let secret = async || {
        let path = format!("/api/projects/{}/", app.project());
        caller.get(&path).await.json()["secret_api_token"].clone()
    };
    assert_eq!(made(&cookie).await, 200);
    let first = secret().await;
    assert!(first.is_string());
    clock.advance(policy::RECENT_SECONDS + 1);
    assert_eq!(made(&cookie).await, 403);
    assert_eq!(secret().await, first);
    // A script has its scope for this.
    let second = act(&caller, &app, "rotate_secret_token/").await;
    assert_eq!(second["secret_api_token_backup"], first);
    assert_eq!(made(&session(&app).await).await, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn projects_of_others_keep_their_keys() {
    let app = TestApp::with_owner().await;
    let cookie = session(&app).await;
    let theirs = app.outsider("mallory").await.key(&["*"]).await;
    let other = theirs.post("/api/organizations/", &json!({"name": "Beta"})).await.json();
    let (id, organization) = (other["teams"][0]["id"].to_string(), other["id"].clone());
    for (name, more) in [
        ("get_project_keys", ""),
        ("get_project_facts", ""),
        ("get_checklist", ""),
        ("get_start_help", ""),
        ("rotate_project_key", "&overlap=now"),
        ("end_old_project_key", ""),
        ("rotate_secret_key", ""),
        ("delete_secret_backup", ""),
        ("hide_checklist", "&hidden=true"),
        ("send_test_event", ""),
        ("delete_project", "&typed_name=Default+project"),
    ] {
        let body = format!("id={id}{more}");
        let answer = function(&app, name, &body).header("cookie", &cookie).send().await;
        assert_eq!(answer.status, 404, "{name}: {:?}", answer.body);
        assert_eq!(function(&app, name, &body).send().await.status, 401, "{name}");
    }
    let organization = organization.as_str().unwrap();
    let body = format!("organization={organization}&name=Mine&timezone=UTC");
    let answer = function(&app, "create_project", &body).header("cookie", &cookie).send().await;
    assert_eq!(answer.status, 404);
    let kept = theirs.get(&format!("/api/projects/{id}/")).await.json();
    assert_eq!(kept["api_token"], other["teams"][0]["api_token"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_event_arrives_and_a_project_goes_with_its_name() {
    let app = TestApp::with_owner().await;
    let cookie = session(&app).await;
    let call = async |name: &str, body: &str| {
        function(&app, name, body).header("cookie", &cookie).send().await
    };
    let organization = app.organization();
    let body = format!("organization={organization}&name=Blog&timezone=Europe%2FBerlin");
    let made = call("create_project", &body).await;
    assert_eq!(made.status, 200, "{:?}", made.body);
    let listed = app.owner().key(&["project:write"]).await;
    let found = listed.get("/api/projects/").await.json();
    let found = found["results"].as_array().unwrap().iter().find(|one| one["name"] == "Blog");
    let (id, token) = (found.unwrap()["id"].clone(), found.unwrap()["api_token"].clone());

    let sent = call("send_test_event", &format!("id={id}")).await;
    assert_eq!(sent.status, 200, "{:?}", sent.body);
    app.app().ingest.applied().await;
    let facts = call("get_project_facts", &format!("id={id}")).await.json();
    assert_eq!(facts["events"], json!(1));
    assert!(facts["first_event_at"].is_string());

    let wrong = call("delete_project", &format!("id={id}&typed_name=blog")).await;
    assert_ne!(wrong.status, 200);
    assert_eq!(listed.get(&format!("/api/projects/{id}/")).await.status, 200);
    let gone = call("delete_project", &format!("id={id}&typed_name=Blog")).await;
    assert_eq!(gone.status, 200, "{:?}", gone.body);
    assert_eq!(listed.get(&format!("/api/projects/{id}/")).await.status, 404);
    let event = json!({"token": token, "event": "a", "distinct_id": "b"});
    assert_eq!(app.anonymous().post("/capture/", &event).await.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_with_a_damaged_key_is_shown_on_the_start_page() {
    let app = TestApp::with_owner().await;
    let cookie = session(&app).await;
    let cut = &app.project_key()[..30];
    let event = json!({"token": cut, "event": "a", "distinct_id": "b"});
    assert_eq!(app.anonymous().post("/capture/", &event).await.status, 401);
    let body = format!("id={}", app.project());
    let help = function(&app, "get_start_help", &body).header("cookie", &cookie).send().await;
    let help = help.json();
    let audit_entries = help["strays"][0]["key"].as_str().unwrap();
    assert!(audit_entries.contains("cut or changed"), "{help}");
    assert_eq!(help["strays"][0]["address"], "127.0.0.1");
}
