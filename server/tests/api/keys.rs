//! `/api/personal_api_keys/`, seen with a key.

use http::Method;
use weir_testkit::TestApp;

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
    let text = String::from_utf8(answer.body.to_vec()).unwrap();
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
    let theirs = app.stranger("mallory").await.key(&["*"]).await;
    let id = theirs.get("/api/personal_api_keys/@current/").await.json()["id"].clone();
    let found = caller.get(&format!("/api/personal_api_keys/{}/", id.as_str().unwrap())).await;
    let missing = caller.get("/api/personal_api_keys/nothing/").await;
    assert_eq!((found.status, &found.body), (404, &missing.body));
}
