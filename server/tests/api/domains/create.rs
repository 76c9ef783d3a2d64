//! POST `…/domains/`

use serde_json::{Value, json};
use uuid::Uuid;
use weir_model::organizations::Level;
use weir_testkit::TestApp;

use super::{assert_guarded, challenge, claim, member, outsider, owner, path};

const WRONG_NAME: &str = "Please enter a valid domain or subdomain name.";

#[tokio::test(flavor = "multi_thread")]
async fn the_resource_has_every_field_of_its_type() {
    let app = TestApp::with_owner().await;
    let body = json!({
        "domain": " tea.example.com ",
        // Only a verified domain can have them: dropped.
        "jit_provisioning_enabled": true,
        "sso_enforcement": "saml",
        "saml_entity_id": " https://idp.example.com ",
        "saml_acs_url": "",
        // Read-only or unknown: ignored.
        "id": Uuid::nil(),
        "is_verified": true,
        "verified_at": "2024-01-01T00:00:00Z",
        "verification_challenge": "mine",
        "has_saml": true,
        "nonsense": 1,
    });
    let answer = owner(&app).await.post(&path(&app), &body).await;
    assert_eq!(answer.status, 201, "{:?}", answer.body);
    let mut made = answer.json();
    let text = challenge(&made).to_owned();
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    assert!(text.len() == 43 && text.chars().all(fits), "{text}");
    assert_ne!(made["id"], json!(Uuid::nil()));
    for field in ["id", "verification_challenge"] {
        made[field] = json!("[there]");
    }
    assert_eq!(
        made,
        json!({
            "id": "[there]",
            "domain": "tea.example.com",
            "is_verified": false,
            "verified_at": null,
            "verification_challenge": "[there]",
            "jit_provisioning_enabled": false,
            "sso_enforcement": "",
            "has_saml": false,
            "saml_entity_id": "https://idp.example.com",
            "saml_acs_url": "",
            "saml_x509_cert": null,
        })
    );
    let other = claim(&app, "coffee.example.com").await;
    assert_ne!(challenge(&other), text);
    assert_eq!((&other["saml_entity_id"], &other["saml_acs_url"]), (&Value::Null, &Value::Null));
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_are_checked_in_their_order() {
    let app = TestApp::with_owner().await;
    let owner = owner(&app).await;
    let domain = "tea.example.com";
    for (body, code, detail, attr) in [
        (json!({}), "required", "This field is required.", "domain"),
        (json!({"domain": null}), "null", "This field may not be null.", "domain"),
        (json!({"domain": " "}), "blank", "This field may not be blank.", "domain"),
        (json!({"domain": {}}), "invalid_input", "Not a valid string.", "domain"),
        (
            json!({"domain": format!("{}example.com", "a.".repeat(60))}),
            "max_length",
            "Ensure this field has no more than 128 characters.",
            "domain",
        ),
        (json!({"domain": "Tea.example.com"}), "invalid_input", WRONG_NAME, "domain"),
        (json!({"domain": "*.example.com"}), "invalid_input", WRONG_NAME, "domain"),
        (json!({"domain": "tea.example.com:80"}), "invalid_input", WRONG_NAME, "domain"),
        (json!({"domain": "tää.example.com"}), "invalid_input", WRONG_NAME, "domain"),
        (json!({"domain": "tea.xn--p1ai"}), "invalid_input", WRONG_NAME, "domain"),
        (json!({"domain": "192.0.2.1"}), "invalid_input", WRONG_NAME, "domain"),
        (json!({"domain": "localhost"}), "invalid_input", WRONG_NAME, "domain"),
        (
            json!({"domain": "co.uk"}),
            "invalid_input",
            "This is a public suffix: names below it belong to many.",
            "domain",
        ),
        (
            json!({"domain": domain, "jit_provisioning_enabled": "maybe", "sso_enforcement": "x"}),
            "invalid_input",
            "Must be a valid boolean.",
            "jit_provisioning_enabled",
        ),
        (
            json!({"domain": domain, "sso_enforcement": "okta"}),
            "invalid_choice",
            "\"okta\" is not a valid choice.",
            "sso_enforcement",
        ),
        (
            json!({"domain": domain, "sso_enforcement": null}),
            "null",
            "This field may not be null.",
            "sso_enforcement",
        ),
        (
            json!({"domain": domain, "sso_enforcement": "x".repeat(29)}),
            "max_length",
            "Ensure this field has no more than 28 characters.",
            "sso_enforcement",
        ),
        (
            json!({"domain": domain, "saml_acs_url": "x".repeat(513)}),
            "max_length",
            "Ensure this field has no more than 512 characters.",
            "saml_acs_url",
        ),
        (
            json!({"domain": domain, "saml_entity_id": []}),
            "invalid_input",
            "Not a valid string.",
            "saml_entity_id",
        ),
    ] {
        let answer = owner.post(&path(&app), &body).await;
        answer.assert_field_error(400, "validation_error", code, detail, Some(attr));
    }
    let answer = owner.post(&path(&app), &json!({"domain": domain, "saml_x509_cert": "??"})).await;
    let (status, _, code, detail, attr) = answer.error();
    assert_eq!(
        (status, code.as_str(), attr.as_deref()),
        (400, "invalid_input", Some("saml_x509_cert"))
    );
    assert!(detail.starts_with("This is not an X.509 certificate in PEM: "), "{detail}");
    assert_eq!(owner.get(&path(&app)).await.json()["count"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_is_claimed_once_in_the_instance() {
    let app = TestApp::with_owner().await;
    claim(&app, "tea.example.com").await;
    let outsider = outsider(&app).await;
    let theirs = "/api/organizations/@current/domains/";
    let body = json!({"domain": "tea.example.com"});
    for (caller, path) in [(&owner(&app).await, path(&app).as_str()), (&outsider, theirs)] {
        let detail = "domain with this domain already exists.";
        let answer = caller.post(path, &body).await;
        answer.assert_field_error(400, "validation_error", "unique", detail, Some("domain"));
    }
    // A domain below is another.
    let below = json!({"domain": "green.tea.example.com"});
    assert_eq!(outsider.post(theirs, &below).await.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may() {
    let app = TestApp::with_owner().await;
    let body = json!({"domain": "tea.example.com"});
    // Before the fields.
    assert_guarded(&app, async |caller| caller.post(&path(&app), &json!({})).await).await;
    let answer = outsider(&app).await.post(&path(&app), &body).await;
    answer.assert_error(404, "invalid_request", "not_found", "Organization not found.");
    let administrator = member(&app, "linus", Level::Administrator).await;
    assert_eq!(administrator.post(&path(&app), &body).await.status, 201);
    let current = json!({"domain": "coffee.example.com"});
    let path = "/api/organizations/%40current/domains";
    assert_eq!(owner(&app).await.post(path, &current).await.status, 201);
}
