//! What a refused answer of a provider counts, and what is recorded of it (SSO-26, SSO-42).

use serde_json::json;
use weir_model::DomainId;
use weir_model::domains::SsoEnforcement;
use weir_model::sso::ProviderName;
use weir_store::domains::DomainRow;

use super::super::decide::Reason;
use super::{domain, issuer, opened, origin, owner, reasons, says, through};
use crate::Services;
use crate::error::Error;
use crate::identity::{Peer, SignedOn};
use crate::test_support::{PASSWORD, set_up};

/// The peer of an office.
fn office() -> Peer {
    Peer { address: Some("192.0.2.7".parse().unwrap()), ..Peer::default() }
}

#[tokio::test]
async fn answers_without_a_pending_login_count_nothing() {
    let services = set_up().await;
    let (identity, peer, google) = (&services.identity, office(), ProviderName::GOOGLE);
    let org = owner(&services).await;
    domain(&services, &org, "acme.example", SsoEnforcement::Off, true).await;
    // A page of another site has many images with the address of the callback.
    for _ in 0..40 {
        let unknown = identity.finish_login(google, "x", origin(None, &peer)).await.unwrap();
        assert_eq!(unknown, SignedOn::Refused(None, "/".to_owned()));
        let from = origin(Some("another"), &peer);
        identity.finish_saml_login("no domain", "x", from).await.unwrap();
    }
    let finish = async |answer: &str| {
        let left =
            identity.begin_login(None, google, "", "/next", origin(None, &peer)).await.unwrap();
        identity.finish_login(google, answer, origin(Some(&left.browser), &peer)).await
    };
    opened(finish(&says("x", "x@acme.example")).await.unwrap());
    // Refused answers count, and delay answers alone.
    let mut refused = 0;
    while let Ok(SignedOn::Refused(..)) = finish("no JSON").await {
        refused += 1;
        assert!(refused < 30, "answers of providers are not limited");
    }
    let late = finish(&says("x", "x@acme.example")).await;
    assert!(matches!(late, Err(Error::Throttled { .. })), "{late:?}");
    identity.sign_in("ada.l@mail.example", PASSWORD, &peer).await.unwrap();
}

#[tokio::test]
async fn a_visitor_writes_nothing_into_the_activity_log() {
    let services = set_up().await;
    let (identity, peer) = (&services.identity, Peer::default());
    let org = owner(&services).await;
    let acme = domain(&services, &org, "acme.example", SsoEnforcement::Off, true).await;
    let finish = async |answer: &str| {
        let left = identity.begin_saml_login(None, "x@acme.example", "/", origin(None, &peer));
        let browser = left.await.unwrap().browser;
        let from = origin(Some(&browser), &peer);
        let outcome = identity.finish_saml_login(&acme.to_string(), answer, from).await.unwrap();
        assert_eq!(outcome, SignedOn::Refused(None, "/".to_owned()));
    };
    for _ in 0..30 {
        finish("unsigned: a text of the visitor").await;
    }
    let check = "Test the connection to read why this check failed: Signature.";
    assert_eq!(reasons(&services, &org).await, [check; 20]);
    // What the provider signed is recorded with its reason, however many came before.
    finish("refused").await;
    assert_eq!(reasons(&services, &org).await[0], "scripted");
    services.clock.advance(15 * 60);
    finish("unsigned").await;
    assert_eq!(reasons(&services, &org).await.len(), 22);
}

#[tokio::test]
async fn administrators_learn_why_the_required_provider_was_refused() {
    let services = set_up().await;
    let (identity, peer) = (&services.identity, Peer::default());
    let org = owner(&services).await;
    domain(&services, &org, "acme.example", issuer(), false).await;
    let finish = async |name: ProviderName, email: &str, answer: &str| {
        let left = identity.begin_login(None, name, email, "/", origin(None, &peer)).await.unwrap();
        let from = origin(Some(&left.browser), &peer);
        identity.finish_login(name, answer, from).await.unwrap();
    };
    let required = ProviderName::parse("issuer").unwrap();
    finish(required, "X@Acme.example", "no JSON").await;
    assert_eq!(reasons(&services, &org).await, ["scripted"]);
    let without = json!({"subject": "x", "verified": true}).to_string();
    finish(required, "x@acme.example", &without).await;
    assert_eq!(reasons(&services, &org).await, [Reason::NoAddress.text(), "scripted"]);
    // It is not known whose these are.
    for (name, email) in [
        (required, ""),
        (required, "x@elsewhere.example"),
        (ProviderName::GITHUB, "x@acme.example"),
    ] {
        finish(name, email, "no JSON").await;
    }
    assert_eq!(reasons(&services, &org).await.len(), 2);
    let outcome = through(&services, "issuer", "no JSON").await;
    assert_eq!(outcome, SignedOn::Refused(None, "/next".to_owned()));
}

async fn with_wrong_url(services: &Services, domain: DomainId) {
    let set = |row: &DomainRow| {
        let row = DomainRow { saml_acs_url: Some("wrong".to_owned()), ..row.clone() };
        Ok::<_, weir_store::Error>(Some((row, Vec::new())))
    };
    let store = services.organizations.store();
    weir_store::update::update(store, domain, (), set).await.unwrap();
}

#[tokio::test]
async fn a_test_shows_faults_of_the_settings() {
    let services = set_up().await;
    let org = owner(&services).await;
    let acme = domain(&services, &org, "acme.example", SsoEnforcement::Off, true).await;
    with_wrong_url(&services, acme).await;
    let (identity, peer) = (&services.identity, Peer::default());
    let left = identity.begin_saml_test(&org, acme, "/domain", origin(None, &peer)).await;
    assert!(matches!(left.map(drop), Err(Error::Invalid(_))));
    let test = identity.last_test(&org, acme).await.unwrap().unwrap();
    assert_eq!(test.outcome, "The test could not begin. Enter a complete URL.");
    assert!(!test.works && test.checks.is_empty());
}
