//! DELETE `…/domains/{id}/`.

use serde_json::json;
use weir_model::domains::SsoEnforcement;
use weir_model::organizations::Level;
use weir_testkit::TestApp;

use super::{assert_guarded, claim, enforce, member, one, outsider, owner, path, verified};

#[tokio::test(flavor = "multi_thread")]
async fn the_name_is_free_and_its_rules_end() {
    let app = TestApp::with_owner().await;
    let made = verified(&app, "tea.example.com").await;
    enforce(&app, "tea.example.com", SsoEnforcement::Saml).await;
    let asked = async || {
        let body = json!({"email": "eve@tea.example.com"});
        app.anonymous().post("/api/login/precheck/", &body).await.json()["sso_enforcement"].clone()
    };
    assert_eq!(asked().await, json!("saml"));
    let owner = owner(&app).await;
    let answer = owner.delete(&one(&app, &made)).await;
    assert_eq!((answer.status, answer.body.len()), (204, 0));
    assert_eq!(asked().await, json!(null));
    let answer = owner.delete(&one(&app, &made)).await;
    answer.assert_error(404, "invalid_request", "not_found", "Not found.");
    assert_eq!(owner.get(&path(&app)).await.json()["count"], 0);
    let again = outsider(&app).await;
    let path = "/api/organizations/@current/domains/";
    let answer = again.post(path, &json!({"domain": "tea.example.com"})).await;
    assert_eq!(answer.status, 201, "{:?}", answer.body);
    assert_ne!(answer.json()["verification_challenge"], made["verification_challenge"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may() {
    let app = TestApp::with_owner().await;
    let made = claim(&app, "tea.example.com").await;
    let path = one(&app, &made);
    assert_guarded(&app, async |caller| caller.delete(&path).await).await;
    let outsider = outsider(&app).await;
    let foreign = path.replace(&app.organization().to_string(), "@current");
    let answer = outsider.delete(&foreign).await;
    answer.assert_error(404, "invalid_request", "not_found", "Not found.");
    let administrator = member(&app, "linus", Level::Administrator).await;
    assert_eq!(administrator.delete(&path).await.status, 204);
}
