//! What the settings of a key may do: its scope changes domains, and opens no session of a
//! higher level (SSO-45).

use serde_json::{Value, json};
use weir_model::organizations::Level;

use super::identity_provider::{OTHER, OWN, Says};
use super::saml::{self, ENTITY_ID};
use super::set_cookie;
use crate::domains::{one, trust_settings, verified};

#[tokio::test(flavor = "multi_thread")]
async fn a_key_with_its_own_provider_signs_in_no_owner_and_no_administrator() {
    let app = weir_testkit::TestApp::with_owner().await;
    let owner = app.owner().key(&["*"]).await;
    let path = one(&app, &verified(&app, "mail.example").await);
    let admin = app.member("alan", Level::Administrator).await;
    app.member("grace", Level::Member).await;
    saml::connect(&owner, &path, ENTITY_ID, OWN).await;
    trust_settings(&app, &path).await;
    let enters = async |name: &str, subject: &str, key| {
        let (cookie, request) = saml::begin_login(&app, "x@mail.example", "").await;
        let mut says = Says::about(&request, ENTITY_ID, &format!("{name}@mail.example"));
        says.key = key;
        says.name_id = subject.to_owned();
        let answer = saml::bring(&app, &cookie, &request.relay_state, &says.signed()).await;
        set_cookie(&answer, "session").is_some()
    };
    // Ada and Alan are linked to the provider that the owner stands for.
    assert!(enters("ada", "1", OWN).await && enters("alan", "2", OWN).await);

    let attacker = admin.key(&["organization:write"]).await;
    saml::connect(&attacker, &path, ENTITY_ID, OTHER).await;
    for (name, linked) in [("ada", "1"), ("alan", "2")] {
        assert!(!enters(name, linked, OTHER).await, "{name}, by the subject that is known");
        assert!(!enters(name, "9", OTHER).await, "{name}, by the address");
    }
    assert!(enters("grace", "3", OTHER).await, "a member");

    // The owner stands for the settings: the sign-ins of before count again.
    saml::connect(&owner, &path, ENTITY_ID, OWN).await;
    trust_settings(&app, &path).await;
    assert!(enters("ada", "1", OWN).await && enters("alan", "2", OWN).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_of_an_owner_requires_saml_and_reads_who_is_not_signed_in() {
    let app = weir_testkit::TestApp::with_owner().await;
    let owner = app.owner().key(&["*"]).await;
    let path = one(&app, &verified(&app, "mail.example").await);
    saml::connect(&owner, &path, ENTITY_ID, OWN).await;
    let warnings = async || {
        let domain = owner.get(&path).await.json();
        let both = |warning: &Value| (warning["attr"].clone(), warning["code"].clone());
        domain["warnings"].as_array().unwrap().iter().map(both).collect::<Vec<_>>()
    };
    assert_eq!(warnings().await, [(json!("saml_entity_id"), json!("settings_by_key"))]);

    let answer = owner.patch(&path, &json!({"sso_enforcement": "saml"})).await;
    let domain = answer.json();
    assert_eq!((answer.status, &domain["sso_enforcement"]), (200, &json!("saml")), "{domain}");
    let codes = domain["warnings"].as_array().unwrap().iter();
    let codes: Vec<_> = codes.map(|warning| warning["code"].as_str().unwrap()).collect();
    assert_eq!(codes, ["settings_by_key", "would_lock_out"]);
    let detail = domain["warnings"][1]["detail"].as_str().unwrap();
    assert!(detail.contains("any more: ada@mail.example."), "{detail}");
    // What the first warning says.
    let (cookie, request) = saml::begin_login(&app, "x@mail.example", "").await;
    let says = Says::about(&request, ENTITY_ID, "ada@mail.example");
    let refused = saml::bring(&app, &cookie, &request.relay_state, &says.signed()).await;
    assert_eq!(set_cookie(&refused, "session"), None);

    trust_settings(&app, &path).await;
    assert!(warnings().await.is_empty());
    let (cookie, request) = saml::begin_login(&app, "x@mail.example", "").await;
    let says = Says::about(&request, ENTITY_ID, "ada@mail.example");
    let opened = saml::bring(&app, &cookie, &request.relay_state, &says.signed()).await;
    assert!(set_cookie(&opened, "session").is_some());
    // Nothing is locked out any more.
    for way in ["", "saml"] {
        let domain = owner.patch(&path, &json!({"sso_enforcement": way})).await.json();
        assert!(!domain.to_string().contains("would_lock_out"), "{domain}");
    }
}
