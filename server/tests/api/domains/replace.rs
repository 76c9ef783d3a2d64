//! PUT `…/domains/{id}/`.

use serde_json::json;
use weir_testkit::TestApp;

use super::{REQUIRED, assert_guarded, claim, one, outsider, owner};

#[tokio::test(flavor = "multi_thread")]
async fn the_name_is_required_and_the_rest_as_in_a_change() {
    let app = TestApp::with_owner().await;
    let domain = claim(&app, "tea.example.com").await;
    let owner = owner(&app).await;
    let path = one(&app, &domain);
    let answer = owner.put(&path, &json!({"saml_entity_id": "idp"})).await;
    let detail = "This field is required.";
    answer.assert_field_error(400, "validation_error", "required", detail, Some("domain"));
    let name = domain["domain"].clone();
    let answer = owner.put(&path, &json!({"domain": name, "sso_enforcement": "saml"})).await;
    let attr = Some("sso_enforcement");
    answer.assert_field_error(400, "validation_error", "verification_required", REQUIRED, attr);
    let answer = owner.put(&path, &json!({"domain": name, "saml_entity_id": "idp"})).await;
    let mut expected = domain.clone();
    expected["saml_entity_id"] = json!("idp");
    assert_eq!((answer.status, answer.json()), (200, expected));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may() {
    let app = TestApp::with_owner().await;
    let domain = claim(&app, "tea.example.com").await;
    let path = one(&app, &domain);
    assert_guarded(&app, async |caller| caller.put(&path, &json!({})).await).await;
    let answer = outsider(&app).await.put(&path, &json!({})).await;
    answer.assert_error(404, "invalid_request", "not_found", "Organization not found.");
}
