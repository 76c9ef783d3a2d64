//! PATCH `…/domains/{id}/`.

use serde_json::{Value, json};
use weir_model::organizations::Level;
use weir_testkit::{Answer, TestApp};

use super::{
    REQUIRED, assert_guarded, challenge, claim, member, one, outsider, owner, path, verified,
};

/// Valid until 18 November 2036.
const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----
MIIBiDCCAS+gAwIBAgIUEIl2ydDdTgjBJZbQHlW7LH7/A4owCgYIKoZIzj0EAwIw
GjEYMBYGA1UEAwwPaWRwLmV4YW1wbGUuY29tMB4XDTI2MTEyMTIzNTk0MVoXDTM2
MTExODIzNTk0MVowGjEYMBYGA1UEAwwPaWRwLmV4YW1wbGUuY29tMFkwEwYHKoZI
zj0CAQYIKoZIzj0DAQcDQgAE4b8zF5k9SevDzmVMcBskjpxdN9oudJFhZK73VmBW
2vAxTf5x2mMlrA9Cf8tOBK4O+gw52RWXIRI0rtqo8IUfYKNTMFEwHQYDVR0OBBYE
FFfZGdDlgCwDj0dV+wzJVcA9bNzkMB8GA1UdIwQYMBaAFFfZGdDlgCwDj0dV+wzJ
VcA9bNzkMA8GA1UdEwEB/wQFMAMBAf8wCgYIKoZIzj0EAwIDRwAwRAIgXbNJEPS5
F5mM8iw4tsWfmheGWdUzwqir9JoLM1ajcVkCIHUL3Wbzb8vChnlQwmpcKCNUzcIs
bIcD9jsWxQwmy0sw
-----END CERTIFICATE-----";

async fn patch(app: &TestApp, domain: &Value, body: Value) -> Answer {
    owner(app).await.patch(&one(app, domain), &body).await
}

#[tokio::test(flavor = "multi_thread")]
async fn enforcement_and_jit_need_a_verified_domain() {
    let app = TestApp::with_owner().await;
    let domain = claim(&app, "tea.example.com").await;
    let caller = owner(&app).await;
    for (body, attr) in [
        (json!({"sso_enforcement": "saml"}), "sso_enforcement"),
        (json!({"sso_enforcement": "okta"}), "sso_enforcement"),
        (json!({"jit_provisioning_enabled": true}), "jit_provisioning_enabled"),
        // The stored values are refused too.
        (json!({"jit_provisioning_enabled": false}), "jit_provisioning_enabled"),
        (json!({"jit_provisioning_enabled": "no"}), "jit_provisioning_enabled"),
        (json!({"sso_enforcement": ""}), "sso_enforcement"),
        (domain.clone(), "jit_provisioning_enabled"),
        (
            json!({"sso_enforcement": "saml", "jit_provisioning_enabled": true}),
            "jit_provisioning_enabled",
        ),
    ] {
        let answer = caller.patch(&one(&app, &domain), &body).await;
        let code = "verification_required";
        answer.assert_field_error(400, "validation_error", code, REQUIRED, Some(attr));
    }
    let null = patch(&app, &domain, json!({"sso_enforcement": null})).await;
    let detail = "This field may not be null.";
    null.assert_field_error(400, "validation_error", "null", detail, Some("sso_enforcement"));
    // SAML fields may be set before.
    let answer = patch(&app, &domain, json!({"saml_entity_id": "idp"})).await;
    assert_eq!((answer.status, &answer.json()["saml_entity_id"]), (200, &json!("idp")));
    assert_eq!(patch(&app, &domain, json!({})).await.json(), answer.json());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unusable_provider_is_not_enforced() {
    let app = TestApp::with_owner().await;
    let domain = verified(&app, "tea.example.com").await;
    for provider in ["google-oauth2", "github", "gitlab", "saml"] {
        let answer = patch(&app, &domain, json!({"sso_enforcement": provider})).await;
        let detail =
            format!("Signing in through {provider} is not set up, so no member could sign in.");
        let code = "provider_unavailable";
        answer.assert_field_error(400, "validation_error", code, &detail, Some("sso_enforcement"));
    }
    let answer = patch(&app, &domain, json!({"sso_enforcement": "okta"})).await;
    let detail = "\"okta\" is not a valid choice.";
    let attr = Some("sso_enforcement");
    answer.assert_field_error(400, "validation_error", "invalid_choice", detail, attr);
    let body = json!({"sso_enforcement": "", "jit_provisioning_enabled": "yes"});
    let after = patch(&app, &domain, body).await.json();
    assert_eq!(
        (&after["sso_enforcement"], &after["jit_provisioning_enabled"]),
        (&json!(""), &json!(true))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_are_read() {
    let app = TestApp::with_owner().await;
    let domain = claim(&app, "tea.example.com").await;
    let (caller, path) = (owner(&app).await, one(&app, &domain));
    let services = &app.app().services;
    let expires_at = async || {
        let org = services.organizations.enter(&app.owner().ctx(), "@current").await.unwrap();
        let shown = services.domains.get(&org, domain["id"].as_str().unwrap()).await.unwrap();
        shown.saml_certificate_expires_at.map(|at| at.to_string())
    };
    let shown_at = path.replace("/api/organizations", "/organizations");
    let shown_at = shown_at.trim_end_matches('/').to_owned();
    let cookie = crate::web::session(&app).await;
    let inner: String = CERTIFICATE.lines().filter(|line| !line.starts_with('-')).collect();
    let spaced = CERTIFICATE.replace('\n', "\r\n");
    let padded = format!(" \n{CERTIFICATE}\n ");
    for good in [CERTIFICATE.to_owned(), inner.clone(), spaced, padded] {
        let after = caller.patch(&path, &json!({"saml_x509_cert": good})).await.json();
        assert_eq!(after["saml_x509_cert"], good, "stored as it was sent");
        assert_eq!(expires_at().await.as_deref(), Some("2036-11-18T23:59:41Z"));
    }
    let text = CERTIFICATE.to_owned();
    for bad in [
        "nonsense".to_owned(),
        " nonsense\n".to_owned(),
        "a".repeat(65_536),
        inner.replace("MII", "AII"),
        inner[..200].to_owned(),
        text.replace("CERTIFICATE", "PRIVATE KEY"),
        text.replace("-----END CERTIFICATE-----", ""),
        format!("{text}\n{text}"),
    ] {
        let answer = caller.patch(&path, &json!({"saml_x509_cert": bad})).await;
        let after = answer.json();
        assert_eq!((answer.status, &after["saml_x509_cert"]), (200, &json!(bad)));
        let [warning] = after["warnings"].as_array().unwrap().as_slice() else { panic!("{after}") };
        assert_eq!(
            (&warning["attr"], &warning["code"]),
            (&json!("saml_x509_cert"), &json!("invalid_certificate"))
        );
        let detail = warning["detail"].as_str().unwrap();
        assert!(detail.starts_with("This is not an X.509 certificate in PEM: "), "{detail}");
        assert_eq!((caller.get(&path).await.json(), expires_at().await), (after, None));
        // The page shows the error at the field.
        let page = crate::web::page(&app, &shown_at, &cookie).await;
        let text = String::from_utf8_lossy(&page.body).into_owned();
        assert!(text.contains("This is not an X.509 certificate in PEM: "), "{text}");
    }
    let after = caller.patch(&path, &json!({"saml_x509_cert": text})).await.json();
    assert_eq!((&after["warnings"], expires_at().await.is_some()), (&json!([]), true));
    let body = json!({"saml_entity_id": "idp", "saml_acs_url": "https://idp.example.com/acs"});
    assert_eq!(caller.patch(&path, &body).await.json()["has_saml"], true);
    let long = json!({"saml_x509_cert": format!(" {}", "a".repeat(65_536))});
    let answer = caller.patch(&path, &long).await;
    let detail = "Ensure this field has no more than 65536 characters.";
    let attr = Some("saml_x509_cert");
    answer.assert_field_error(400, "validation_error", "max_length", detail, attr);
    for blank in [json!(""), json!(" \n"), Value::Null] {
        let after = caller.patch(&path, &json!({"saml_x509_cert": blank})).await.json();
        assert_eq!((&after["saml_x509_cert"], &after["has_saml"]), (&blank, &json!(false)));
        assert_eq!(expires_at().await, None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_name_is_another_claim() {
    let app = TestApp::with_owner().await;
    let domain = verified(&app, "tea.example.com").await;
    patch(&app, &domain, json!({"jit_provisioning_enabled": true, "saml_entity_id": "idp"})).await;
    let other = claim(&app, "coffee.example.com").await;
    let answer = patch(&app, &domain, json!({"domain": other["domain"]})).await;
    let detail = "domain with this domain already exists.";
    answer.assert_field_error(400, "validation_error", "unique", detail, Some("domain"));
    let answer = patch(&app, &domain, json!({"domain": "TEA.example.com"})).await;
    assert_eq!(answer.error().2, "invalid_input");

    let mut after = patch(&app, &domain, json!({"domain": "milk.example.com"})).await.json();
    assert_ne!(challenge(&after), challenge(&domain));
    after["verification_challenge"] = domain["verification_challenge"].clone();
    let mut expected = domain.clone();
    for (field, value) in [
        ("domain", json!("milk.example.com")),
        ("is_verified", json!(false)),
        ("verified_at", Value::Null),
        ("saml_entity_id", json!("idp")),
    ] {
        expected[field] = value;
    }
    assert_eq!(after, expected);
    let names: Vec<Value> = owner(&app).await.get(&path(&app)).await.json()["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["domain"].clone())
        .collect();
    assert_eq!(names, ["coffee.example.com", "milk.example.com"]);
    claim(&app, "tea.example.com").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_are_in_the_activity_log() {
    let app = TestApp::with_owner().await;
    let domain = verified(&app, "tea.example.com").await;
    let body = json!({"jit_provisioning_enabled": true, "saml_x509_cert": CERTIFICATE});
    patch(&app, &domain, body).await;
    owner(&app).await.delete(&one(&app, &domain)).await;
    let services = &app.app().services;
    let org = services.organizations.enter(&app.owner().ctx(), "@current").await.unwrap();
    let query = weir_model::activity::ActivityQuery {
        scope: Some("OrganizationDomain".to_owned()),
        ..Default::default()
    };
    let page = weir_model::pagination::Page::default();
    let log = services.activity.of_organization(&org, &query, page).await.unwrap();
    let audit_entries = serde_json::to_value(&log.results).unwrap();
    let fields = |entry: &Value| -> Vec<String> {
        let changes = entry["detail"]["changes"].as_array().unwrap();
        changes.iter().map(|change| change["field"].as_str().unwrap().to_owned()).collect()
    };
    let audit_entries: Vec<_> = audit_entries
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| {
            assert_eq!(entry["detail"]["name"], "tea.example.com");
            assert_eq!(entry["personal_api_key"]["label"], "test");
            (entry["activity"].as_str().unwrap().to_owned(), fields(entry).join(" "))
        })
        .collect();
    let expected = [
        ("deleted", "domain"),
        ("updated", "jit_provisioning_enabled saml_x509_cert"),
        ("verified", "is_verified"),
        ("created", "domain"),
    ];
    assert_eq!(audit_entries, expected.map(|(action, of)| (action.to_owned(), of.to_owned())));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may() {
    let app = TestApp::with_owner().await;
    let domain = claim(&app, "tea.example.com").await;
    let path = one(&app, &domain);
    // The level is checked before the fields.
    assert_guarded(&app, async |caller| caller.patch(&path, &json!({"domain": 7})).await).await;
    // A missing domain is reported before the fields.
    let missing = format!("{}{}/", super::path(&app), uuid::Uuid::new_v4());
    let answer = owner(&app).await.patch(&missing, &json!({"domain": 7})).await;
    answer.assert_error(404, "invalid_request", "not_found", "Not found.");
    let foreign = path.replace(&app.organization().to_string(), "@current");
    let answer = outsider(&app).await.patch(&foreign, &json!({})).await;
    answer.assert_error(404, "invalid_request", "not_found", "Not found.");
    let administrator = member(&app, "linus", Level::Administrator).await;
    assert_eq!(administrator.patch(&path, &json!({"saml_acs_url": "x"})).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn whose_certificate_it_is_can_be_read() {
    let app = TestApp::with_owner().await;
    let domain = claim(&app, "tea.example.com").await;
    patch(&app, &domain, json!({"saml_x509_cert": CERTIFICATE})).await;
    let services = &app.app().services;
    let org = services.organizations.enter(&app.owner().ctx(), "@current").await.unwrap();
    let id = domain["id"].as_str().unwrap();
    let details = services.domains.get(&org, id).await.unwrap();
    assert_eq!(details.saml_certificate_subject.as_deref(), Some("CN=idp.example.com"));
}
