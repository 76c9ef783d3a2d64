//! GET `…/members/{uuid}/scoped_api_keys/` (API-32).

use serde_json::json;
use weir_model::organizations::Level;
use weir_testkit::TestApp;

use super::path;

#[tokio::test(flavor = "multi_thread")]
async fn keys_that_reach_the_organization() {
    let app = TestApp::with_owner().await;
    let grace = app.member("grace", Level::Member).await;
    let reader = app.owner().key(&["organization_member:read"]).await;
    let keys = format!("{}scoped_api_keys/", path(&app, &grace));
    let none = json!({"has_keys": false, "has_keys_active_last_week": false, "keys": []});
    assert_eq!(reader.get(&keys).await.json(), none);

    let all = grace.key(&["*"]).await;
    let other = all.post("/api/organizations/", &json!({"name": "Home"})).await.json();
    let other = other["id"].as_str().unwrap().parse().unwrap();
    grace.limited_key(&["*"], &[other], &[]).await;
    grace.limited_key(&["*"], &[app.organization()], &[]).await;
    grace.limited_key(&["*"], &[], &[app.project()]).await;
    let found = reader.get(&keys).await.json();
    assert_eq!(found["keys"].as_array().unwrap().len(), 3, "{found}");
    assert_eq!(
        (&found["has_keys"], &found["has_keys_active_last_week"]),
        (&json!(true), &json!(true))
    );
    let oldest = &found["keys"][2];
    assert_eq!(oldest["name"], "test");
    assert!(oldest["last_used_at"].is_string() && oldest.get("value").is_none(), "{oldest}");

    let own = format!("/api/organizations/{}/members/@me/scoped_api_keys", app.organization());
    assert_eq!(all.get(&own).await.json(), found);
    let missing = keys.replace(&grace.id().to_string(), "junk");
    reader.get(&missing).await.assert_error(404, "invalid_request", "not_found", "Not found.");
    let lacking = app.owner().key(&["organization:read"]).await;
    lacking.get(&keys).await.assert_error(
        403,
        "authentication_error",
        "permission_denied",
        "API key missing required scope 'organization_member:read'",
    );
}
