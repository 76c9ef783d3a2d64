//! POST `…/domains/`.

use serde_json::{Value, json};
use uuid::Uuid;
use weir_model::DomainId;
use weir_model::domains::DOMAINS_MAX;
use weir_model::organizations::Level;
use weir_store::domains::{self, DomainRow};
use weir_testkit::TestApp;

use super::{assert_guarded, challenge, claim, member, outsider, owner, path, record, verify};

const WRONG_NAME: &str = "Please enter a valid domain or subdomain name.";

#[tokio::test(flavor = "multi_thread")]
async fn the_resource_has_every_field_of_its_type() {
    let app = TestApp::with_owner().await;
    let body = json!({
        "domain": " tea.example.com ",
        // Only a verified domain can have them, so they are not stored.
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
            "saml_x509_cert_next": null,
            "saml_sign_requests": false,
            "warnings": [],
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
            json!({"domain": domain, "sso_enforcement": "Okta"}),
            "invalid_choice",
            "\"Okta\" is not a valid choice.",
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
    assert_eq!(owner.get(&path(&app)).await.json()["count"], 0);
}

/// A claim reserves a name within its organization, a verification in the instance.
#[tokio::test(flavor = "multi_thread")]
async fn a_name_belongs_to_who_proved_it() {
    let app = TestApp::with_owner().await;
    let mine = claim(&app, "tea.example.com").await;
    let outsider = outsider(&app).await;
    let theirs = "/api/organizations/@current/domains/";
    let body = json!({"domain": "tea.example.com"});
    let unique = |answer: weir_testkit::Answer| {
        let detail = "domain with this domain already exists.";
        answer.assert_field_error(400, "validation_error", "unique", detail, Some("domain"));
    };
    unique(owner(&app).await.post(&path(&app), &body).await);
    let answer = outsider.post(theirs, &body).await;
    let claimed = answer.json();
    assert_eq!((answer.status, &claimed["is_verified"]), (201, &json!(false)));
    assert_ne!(claimed["verification_challenge"], mine["verification_challenge"]);

    // Both records are in DNS. The first organization to verify gets the domain.
    let both = [&mine, &claimed].map(|one| vec![challenge(one).to_owned()]);
    app.dns().set(&record(&mine), weir_testkit::DnsAnswer::Txt(both.into()));
    assert_eq!(verify(&app, &mine).await.json()["is_verified"], true);
    let one = format!("{theirs}{}/", claimed["id"].as_str().unwrap());
    let answer = outsider.post(&format!("{one}verify/"), &json!({})).await;
    let detail = "Another organization on this instance has verified this domain, so it cannot \
                  be verified here. The operator of the instance can release it.";
    answer.assert_field_error(400, "validation_error", "verified_elsewhere", detail, None);
    // The claim has a warning.
    let warnings = json!([{"attr": "domain", "code": "verified_elsewhere", "detail": detail}]);
    let shown = outsider.get(&one).await.json();
    assert_eq!((&shown["is_verified"], &shown["warnings"]), (&json!(false), &warnings));
    let listed = outsider.get(theirs).await.json();
    assert_eq!(listed["results"][0]["warnings"], warnings);
    // A claim reserves no name, so deleting it takes the domain from no organization, and
    // no claim is left.
    assert_eq!(outsider.delete(&one).await.status, 204);
    unique(outsider.post(theirs, &body).await);
    let own = super::one(&app, &mine);
    assert_eq!(owner(&app).await.get(&own).await.json()["is_verified"], true);
    assert_eq!(owner(&app).await.delete(&own).await.status, 204);
    assert_eq!(outsider.post(theirs, &body).await.status, 201);
    // A subdomain is another domain.
    let below = json!({"domain": "green.tea.example.com"});
    assert_eq!(outsider.post(theirs, &below).await.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may() {
    let app = TestApp::with_owner().await;
    let body = json!({"domain": "tea.example.com"});
    // Rights are checked before the fields.
    assert_guarded(&app, async |caller| caller.post(&path(&app), &json!({})).await).await;
    let answer = outsider(&app).await.post(&path(&app), &body).await;
    answer.assert_error(404, "invalid_request", "not_found", "Organization not found.");
    let administrator = member(&app, "linus", Level::Administrator).await;
    assert_eq!(administrator.post(&path(&app), &body).await.status, 201);
    let current = json!({"domain": "coffee.example.com"});
    let path = "/api/organizations/%40current/domains";
    assert_eq!(owner(&app).await.post(path, &current).await.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_domain_more_than_the_maximum_is_refused() {
    let app = TestApp::with_owner().await;
    let made = claim(&app, "d0.example.com").await;
    let store = app.store();
    let id = DomainId(made["id"].as_str().unwrap().parse().unwrap());
    let row = domains::get(store, app.organization(), id).await.unwrap().unwrap();
    for number in 1..DOMAINS_MAX {
        let domain = format!("d{number}.example.com");
        let row = DomainRow { id: DomainId(Uuid::new_v4()), domain, ..row.clone() };
        domains::create(store, &row, DOMAINS_MAX, &[]).await.unwrap();
    }
    let body = json!({"domain": "tea.example.com"});
    let refused = owner(&app).await.post(&path(&app), &body).await;
    let detail = "An organization may have at most 200 domains. Delete one first.";
    refused.assert_field_error(400, "validation_error", "invalid_input", detail, None);
}
