//! GET `…/domains/`.

use serde_json::json;
use weir_model::organizations::Level;
use weir_testkit::TestApp;

use super::{claim, member, outsider, owner, path};

#[tokio::test(flavor = "multi_thread")]
async fn in_the_order_of_names_with_pages() {
    let app = TestApp::with_owner().await;
    for name in ["tea.example.com", "a.example.com", "tea-2.example.com", "b.example.com"] {
        claim(&app, name).await;
    }
    let caller = app.owner().key(&["organization:read"]).await;
    let shown = async |query: &str| {
        let list = caller.get(&format!("{}{query}", path(&app))).await.json();
        let names = list["results"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["domain"].as_str().unwrap().split('.').next().unwrap().to_owned());
        (list["count"].as_u64().unwrap(), names.collect::<Vec<_>>().join(" "))
    };
    assert_eq!(shown("").await, (4, "a b tea-2 tea".to_owned()));
    assert_eq!(shown("?limit=2&offset=1").await, (4, "b tea-2".to_owned()));
    assert_eq!(shown("?offset=4").await, (4, String::new()));
    let next = caller.get(&format!("{}?limit=3", path(&app))).await.json()["next"].clone();
    let expected = format!("http://{}{}?limit=3&offset=3", app.address(), path(&app));
    assert_eq!(next, json!(expected));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_read() {
    let app = TestApp::with_owner().await;
    claim(&app, "tea.example.com").await;
    let lacking = app.owner().key(&["project:read"]).await;
    lacking.get(&path(&app)).await.assert_error(
        403,
        "authentication_error",
        "permission_denied",
        "API key missing required scope 'organization:read'",
    );
    let answer = outsider(&app).await.get(&path(&app)).await;
    answer.assert_error(404, "invalid_request", "not_found", "Organization not found.");
    for caller in [owner(&app).await, member(&app, "grace", Level::Member).await] {
        assert_eq!(caller.get(&path(&app)).await.json()["count"], 1);
        let answer = caller.get("/api/organizations/@current/domains").await;
        assert_eq!(answer.json()["count"], 1);
    }
    // Other organizations do not see it.
    let theirs = app.outsider("eve").await.key(&["*"]).await;
    theirs.post("/api/organizations/", &json!({"name": "Milk"})).await;
    assert_eq!(theirs.get("/api/organizations/@current/domains/").await.json()["count"], 0);
}
