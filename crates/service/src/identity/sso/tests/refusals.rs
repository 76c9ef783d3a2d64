//! What a refused answer of a provider counts, and what is recorded of it (SSO-26, SSO-42).

use serde_json::json;
use weir_model::DomainId;
use weir_model::activity::{ActivityQuery, AuditAction};
use weir_model::domains::{DomainInput, SamlPatch, SsoEnforcement};
use weir_model::pagination::Page;
use weir_model::sso::ProviderName;
use weir_store::domains::DomainRow;

use super::super::decide::Reason;
use super::{domain, issuer, opened, origin, owner, reasons, says, through};
use crate::Services;
use crate::ctx::{Ctx, OrgCtx};
use crate::error::Error;
use crate::identity::{Peer, RefusedSignIns, SignedOn};
use crate::test_support::{PASSWORD, ada, outsider, set_up};

/// What is recorded of an answer without a pending login.
const STRAY: &str = "This browser did not begin this sign-in, has answered it already, or began \
                     it more than ten minutes ago. Sign-ins that begin at the provider are not \
                     accepted.";

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
    for _ in 0..298 {
        identity.count_answer(&peer).await.unwrap();
    }
    for _ in 0..2 {
        let refused = finish("no JSON").await.unwrap();
        assert_eq!(refused, SignedOn::Refused(None, "/next".to_owned()));
    }
    let left = identity.begin_login(None, google, "", "/next", origin(None, &peer)).await.unwrap();
    let from = origin(Some(&left.browser), &peer);
    let answer = says("x", "x@acme.example");
    let refused = Box::new(SignedOn::Refused(None, "/next".to_owned()));
    let early = identity.finish_login(google, &answer, from).await.unwrap();
    assert_eq!(early, SignedOn::TooEarly(2, refused));
    identity.sign_in("ada.l@mail.example", PASSWORD, &peer).await.unwrap();
    // The answer that came too early used nothing up.
    services.clock.advance(2);
    opened(identity.finish_login(google, &answer, from).await.unwrap());
}

#[tokio::test]
async fn an_office_begins_many_sign_ins_apart_from_its_prechecks() {
    let services = set_up().await;
    let (identity, peer, google) = (&services.identity, office(), ProviderName::GOOGLE);
    for _ in 0..300 {
        identity.count_precheck(&peer).await.unwrap();
    }
    for _ in 0..299 {
        identity.count_beginning(&peer).await.unwrap();
    }
    let begin = async || identity.begin_login(None, google, "", "/", origin(None, &peer)).await;
    begin().await.unwrap();
    let late = begin().await.map(drop);
    assert!(matches!(late, Err(Error::Throttled { .. })), "{late:?}");
    let late = identity.begin_passkey_sign_in(origin(None, &peer)).await.map(drop);
    assert!(matches!(late, Err(Error::Throttled { .. })), "{late:?}");
}

#[tokio::test]
async fn a_stray_answer_is_recorded_for_the_domain_that_it_names() {
    let services = set_up().await;
    let (identity, peer) = (&services.identity, office());
    let org = owner(&services).await;
    let id = domain(&services, &org, "acme.example", SsoEnforcement::Off, true).await;
    let input = DomainInput { domain: "claimed.example".to_owned(), saml: SamlPatch::default() };
    let claimed = services.domains.create(&org, input).await.unwrap().id.to_string();
    let stray = async |relay_state: &str, browser: Option<&str>| {
        let answer = says("x", "x@acme.example");
        let from = origin(browser, &peer);
        let outcome = identity.finish_saml_login(relay_state, &answer, from).await.unwrap();
        assert_eq!(outcome, SignedOn::Refused(None, "/".to_owned()));
    };
    let acme = id.to_string();
    for unknown in ["", "no domain", "0199a1b2-0000-7000-8000-000000000001", claimed.as_str()] {
        stray(unknown, None).await;
    }
    assert_eq!(refusals(&services, &org).await, 0);
    stray(&acme, None).await;
    stray(&acme, Some("another")).await;
    // The browser begins a sign-in, and too much time passes.
    let left = identity.begin_saml_login(None, "x@acme.example", "/", origin(None, &peer));
    let left = left.await.unwrap();
    services.clock.advance(10 * 60);
    stray(&acme, Some(&left.browser)).await;
    assert_eq!(reasons(&services, &org).await, [STRAY; 3]);
    // There is a bound, which other refusals do not share.
    for _ in 3..199 {
        assert!(identity.may_record_stray(id).await.unwrap());
    }
    for _ in 0..3 {
        stray(&acme, None).await;
    }
    assert_eq!(refusals(&services, &org).await, 4);
    assert!(identity.may_record_refusal(id).await.unwrap());
    services.clock.advance(15 * 60);
    stray(&acme, None).await;
    assert_eq!(refusals(&services, &org).await, 5);
}

/// How many refusals the administrators see.
async fn refusals(services: &Services, org: &OrgCtx) -> u64 {
    let query = ActivityQuery {
        activity: Some(AuditAction::SignInRefused.text().to_owned()),
        ..ActivityQuery::default()
    };
    services.activity.of_organization(org, &query, Page::default()).await.unwrap().count
}

#[tokio::test]
async fn staff_reads_why_sign_ins_through_providers_were_refused() {
    let services = set_up().await;
    let (identity, peer) = (&services.identity, office());
    let ada = ada(&services).await;
    let lists = async |ctx: &Ctx| {
        let lists = identity.refused_sign_ins(ctx).await?;
        let named = |(name, list): (ProviderName, Vec<RefusedSignIns>)| {
            let list = list.into_iter().map(|one| (one.reason, one.count, one.last_at));
            (name.to_string(), list.collect::<Vec<_>>())
        };
        Ok::<_, Error>(lists.into_iter().map(named).collect::<Vec<_>>())
    };
    let eve = outsider(&services, "eve").await;
    assert!(matches!(lists(&eve).await, Err(Error::NotFound(_))));
    // No address was entered, so no organization learns of it.
    through(&services, "github", "no JSON").await;
    let first = services.clock.now();
    services.clock.advance(5);
    through(&services, "github", &says("x", "x@elsewhere.example")).await;
    through(&services, "issuer", "no JSON").await;
    services.clock.advance(5);
    for name in [ProviderName::GITHUB, ProviderName::GITLAB] {
        for _ in 0..3 {
            identity.finish_login(name, "x", origin(None, &peer)).await.unwrap();
        }
    }
    let now = services.clock.now();
    let between = first.plus_seconds(5);
    let of_github = vec![
        (STRAY.to_owned(), 3_u64, now),
        (Reason::NoOrganization.text().to_owned(), 1, between),
        ("scripted".to_owned(), 1, first),
    ];
    let of_issuer = vec![("scripted".to_owned(), 1, between)];
    let expected = [("google-oauth2", vec![]), ("github", of_github), ("issuer", of_issuer)];
    let expected = expected.map(|(name, list)| (name.to_owned(), list));
    assert_eq!(lists(&ada).await.unwrap(), expected);
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
    for _ in 0..3 {
        finish("unsigned: a text of the visitor").await;
    }
    let check = "Test the connection to read why this check failed: Signature.";
    assert_eq!(reasons(&services, &org).await, [check; 3]);
    for _ in 3..199 {
        assert!(identity.may_record_refusal(acme).await.unwrap());
    }
    for _ in 0..3 {
        finish("unsigned").await;
    }
    assert_eq!(reasons(&services, &org).await, [check; 4]);
    // What the provider signed is recorded with its reason, however many came before.
    finish("refused").await;
    assert_eq!(reasons(&services, &org).await[0], "scripted");
    services.clock.advance(15 * 60);
    finish("unsigned").await;
    assert_eq!(reasons(&services, &org).await.len(), 6);
    // After an hour without one, the bound is that of the first time.
    services.clock.advance(60 * 60);
    for _ in 0..2 {
        finish("unsigned").await;
    }
    assert_eq!(reasons(&services, &org).await.len(), 8);
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
