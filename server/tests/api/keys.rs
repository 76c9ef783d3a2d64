//! `/api/personal_api_keys/` with a key, and keys in the web app.

use http::Method;
use serde_json::Value;
use weir_model::Timestamp;
use weir_service::Clock;
use weir_testkit::{Answer, TestApp};

use crate::web::{function, session};

/// Calls a server function with a session.
async fn call(app: &TestApp, cookie: &str, name: &str, body: &str) -> Answer {
    function(app, name, body).header("cookie", cookie).send().await
}

/// A new key with this scope: its value and its id.
async fn new_key(app: &TestApp, cookie: &str, scope: &str) -> (String, String) {
    let scope = scope.replace(':', "%3A");
    let body = format!("label=CI&preset=custom&scopes%5B0%5D={scope}&days=30");
    let made = call(app, cookie, "create_key", &body).await;
    assert_eq!(made.status, 200, "{:?}", made.body);
    let value = revealed(app, cookie).await;
    let listed = call(app, cookie, "list_keys", "").await.json();
    (value, listed[0]["id"].as_str().unwrap().to_owned())
}

async fn revealed(app: &TestApp, cookie: &str) -> String {
    let shown = call(app, cookie, "reveal_key", "").await.json();
    shown["value"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_sees_itself_whatever_its_scopes() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["query:read"]).await;
    let answer = caller.get("/api/personal_api_keys/@current/").await;
    assert_eq!(answer.status, 200);
    let key = answer.json();
    assert_eq!(key["scopes"], serde_json::json!(["query:read"]));
    assert!(key["value"].is_null());
    assert!(key["mask_value"].as_str().unwrap().starts_with("phx_..."));
    let own = format!("/api/personal_api_keys/{}/", key["id"].as_str().unwrap());
    assert_eq!(caller.get(&own).await.json()["id"], key["id"]);
    let text = answer.text();
    assert!(!text.contains(caller.key()));
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_manage_no_keys() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["*"]).await;
    let key = caller.get("/api/personal_api_keys/@current/").await.json();
    let own = format!("/api/personal_api_keys/{}/", key["id"].as_str().unwrap());
    let roll = format!("{own}roll/");
    for (method, path) in [
        (Method::GET, "/api/personal_api_keys/"),
        (Method::POST, "/api/personal_api_keys/"),
        (Method::PATCH, &own),
        (Method::DELETE, &own),
        (Method::POST, &roll),
    ] {
        let answer = caller.call(method, path).send().await;
        let detail = "This action does not support Personal API Key access";
        answer.assert_error(403, "authentication_error", "permission_denied", detail);
    }
    assert_eq!(caller.get(&own).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_of_others_are_not_found() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["*"]).await;
    let theirs = app.outsider("mallory").await.key(&["*"]).await;
    let id = theirs.get("/api/personal_api_keys/@current/").await.json()["id"].clone();
    let found = caller.get(&format!("/api/personal_api_keys/{}/", id.as_str().unwrap())).await;
    let missing = caller.get("/api/personal_api_keys/nothing/").await;
    assert_eq!((found.status, &found.body), (404, &missing.body));
}

#[tokio::test(flavor = "multi_thread")]
async fn both_values_work_until_the_time_of_the_old_one() {
    let clock = Clock::fixed(Timestamp::from_micros(1_780_000_000_000_000));
    let app = TestApp::at(clock.clone()).await.set_up().await;
    let cookie = session(&app).await;
    let (old, id) = new_key(&app, &cookie, "organization:read").await;
    let works = async |value: &str| {
        app.anonymous().with_key(value).get("/api/organizations/").await.status == 200
    };
    let rotated = call(&app, &cookie, "rotate_key", &format!("id={id}&overlap=hour")).await;
    assert_eq!(rotated.status, 200, "{:?}", rotated.body);
    let new = revealed(&app, &cookie).await;
    assert!(works(&old).await && works(&new).await);
    let shown = call(&app, &cookie, "list_keys", "").await.json();
    assert!(shown[0]["previous"]["used_at"].is_string(), "{shown}");
    assert!(!shown.to_string().contains(&old[4..]), "a value is never told again");
    clock.advance(60 * 60);
    assert!(!works(&old).await && works(&new).await);

    let cookie = session(&app).await;
    call(&app, &cookie, "rotate_key", &format!("id={id}&overlap=week")).await;
    let newest = revealed(&app, &cookie).await;
    assert!(works(&new).await && works(&newest).await);
    let ended = call(&app, &cookie, "end_old_value", &format!("id={id}")).await;
    assert_eq!(ended.status, 200, "{:?}", ended.body);
    assert!(!works(&new).await && works(&newest).await);
    let wrong = call(&app, &cookie, "rotate_key", &format!("id={id}&overlap=year")).await;
    assert_ne!(wrong.status, 200);
    assert!(works(&newest).await, "nothing was changed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_call_names_the_missing_scope() {
    let app = TestApp::with_owner().await;
    let cookie = session(&app).await;
    let (value, id) = new_key(&app, &cookie, "organization:read").await;
    let caller = app.anonymous().with_key(&value);
    let path = format!("/api/projects/{}/", app.project());
    assert_eq!(caller.get(&path).await.status, 403);
    assert_eq!(caller.get("/api/organizations/").await.status, 200);
    let shown = call(&app, &cookie, "get_key", &format!("id={id}")).await.json();
    assert_eq!(
        (shown["refused"].as_u64(), shown["last"]["route"].as_str()),
        (Some(1), Some("GET /api/organizations/"))
    );
    let refusal = &shown["refusals"][0];
    assert_eq!(refusal["scope"], "project:read");
    assert_eq!(refusal["call"]["route"], "GET /api/projects/{project_id}/");
    assert_eq!(refusal["call"]["address"], "127.0.0.1");
    assert_eq!(refusal["held"], Value::Bool(false));

    let add = format!("id={id}&scope=project%3Aread");
    let added = call(&app, &cookie, "add_key_scope", &add).await;
    assert_eq!(added.status, 200, "{:?}", added.body);
    assert_eq!(caller.get(&path).await.status, 200);
    let shown = call(&app, &cookie, "get_key", &format!("id={id}")).await.json();
    assert_eq!(shown["refusals"][0]["held"], Value::Bool(true));
    assert_eq!(shown["scopes"], serde_json::json!(["organization:read", "project:read"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn only_its_owner_sees_and_changes_a_key_in_the_web_app() {
    let app = TestApp::with_owner().await;
    let cookie = session(&app).await;
    let theirs = app.outsider("mallory").await.key(&["event:read"]).await;
    let id = theirs.get("/api/personal_api_keys/@current/").await.json()["id"].clone();
    let id = id.as_str().unwrap();
    for (name, more) in [
        ("get_key", ""),
        ("rotate_key", "&overlap=now"),
        ("end_old_value", ""),
        ("add_key_scope", "&scope=plugin%3Awrite"),
        ("update_key", "&label=x&preset=all"),
        ("revoke_key", ""),
    ] {
        let answer = call(&app, &cookie, name, &format!("id={id}{more}")).await;
        assert_eq!(answer.status, 404, "{name}: {:?}", answer.body);
        let answer = function(&app, name, &format!("id={id}{more}")).send().await;
        assert_eq!(answer.status, 401, "{name}");
    }
    assert_eq!(theirs.get("/api/personal_api_keys/@current/").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_can_be_limited_in_the_web_app() {
    let app = TestApp::with_owner().await;
    let cookie = session(&app).await;
    let (value, id) = new_key(&app, &cookie, "project:read").await;
    let caller = app.anonymous().with_key(&value);
    assert_eq!(caller.get("/api/projects/").await.status, 200);
    let project = app.project();
    let body = format!(
        "id={id}&label=CI&preset=custom&scopes%5B2%5D=project%3Aread&reach%5Bkind%5D=projects\
         &reach%5Bprojects%5D%5B3%5D={project}"
    );
    let changed = call(&app, &cookie, "update_key", &body).await;
    assert_eq!(changed.status, 200, "{:?}", changed.body);
    assert_eq!(caller.get("/api/projects/").await.status, 403, "a list is beyond its limits");
    assert_eq!(caller.get(&format!("/api/projects/{project}/")).await.status, 200);
    let shown = call(&app, &cookie, "get_key", &format!("id={id}")).await.json();
    assert_eq!(shown["projects"], serde_json::json!([[project, "Shop"]]));
}
