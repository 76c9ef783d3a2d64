//! `reset_token`, `rotate_secret_token` and `delete_secret_token_backup`.

use serde_json::{Value, json};
use weir_model::organizations::Level;
use weir_testkit::{Caller, TestApp};

const ACTIONS: [&str; 3] = ["reset_token/", "rotate_secret_token/", "delete_secret_token_backup/"];

async fn act(caller: &Caller, app: &TestApp, action: &str) -> Value {
    let path = format!("/api/projects/{}/{action}", app.project());
    let answer = caller.patch(&path, &json!({})).await;
    assert_eq!(answer.status, 200, "{action}: {:?}", answer.body);
    answer.json()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_old_key_is_dead_at_once() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["project:write"]).await;
    let capture = async |key: &str| {
        let event = json!({"token": key, "event": "a", "distinct_id": "b"});
        app.anonymous().post("/capture/", &event).await.status
    };
    let mut old = app.project_key().to_owned();
    assert_eq!(capture(&old).await, 200);
    // The project notes its first event, in the background.
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

    // Only who may replace it sees it.
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
    let outsider = app.stranger("mallory").await.key(&["*"]).await;
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
