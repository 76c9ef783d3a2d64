//! When the rules of a domain act, and who may change what decides about sign-ins.

use weir_model::domains::{DomainInput, SamlPatch, SsoEnforcement};
use weir_model::sso::ProviderName;
use weir_store::domains::DomainRow;

use super::{domain, opened, origin, outsider, owner, reasons, says, session, through};
use crate::ctx::Ctx;
use crate::error::Error;
use crate::identity::{Peer, SignedOn};
use crate::sso::ProviderInput;
use crate::test_support::{PASSWORD, ada, set_up};
use crate::{Result, Services};

const DAY: i64 = 24 * 60 * 60;

/// Changes a domain as the daily checks do when its record is missing.
async fn suspend(services: &Services, domain: weir_model::DomainId) {
    let now = services.clock.now();
    let set = |row: &DomainRow| {
        let failing_since = Some(now.plus_seconds(-8 * DAY));
        let row = DomainRow { failing_since, checked_at: Some(now), ..row.clone() };
        Ok::<_, weir_store::Error>(Some((row, Vec::new())))
    };
    let store = services.organizations.store();
    weir_store::update::update(store, domain, (), set).await.unwrap();
}

#[tokio::test]
async fn a_domain_whose_record_is_gone_requires_nothing_and_lets_no_user_in() {
    let services = set_up().await;
    let (identity, peer) = (&services.identity, Peer::default());
    let org = owner(&services).await;
    let acme = domain(&services, &org, "mail.example", SsoEnforcement::Saml, true).await;
    assert!(identity.sign_in("ada.l@mail.example", PASSWORD, &peer).await.is_err());
    let left =
        identity.begin_saml_login(None, "x@mail.example", "/", origin(None, &peer)).await.unwrap();
    suspend(&services, acme).await;

    // A sign-in that was begun before.
    let answer = says("x", "x@mail.example");
    let from = origin(Some(&left.browser), &peer);
    let outcome = identity.finish_saml_login(&acme.to_string(), &answer, from).await.unwrap();
    assert_eq!(outcome, SignedOn::Refused(None, "/".to_owned()));
    assert_eq!(reasons(&services, &org).await, ["The rules of the domain are not in force."]);
    // No further one begins.
    let later = identity.begin_saml_login(None, "x@mail.example", "/", origin(None, &peer)).await;
    assert!(matches!(later.map(drop), Err(Error::NotFound(_))));
    // Just-in-time provisioning lets no user in, also not through Google.
    let outcome = through(&services, "google-oauth2", &says("x", "x@mail.example")).await;
    assert_eq!(outcome, SignedOn::Refused(Some("no_new_organizations"), "/next".to_owned()));
    let precheck = identity.precheck("x@mail.example", &peer).await.unwrap();
    assert_eq!((precheck.sso_enforcement, precheck.saml_available), (None, false));
    let by_password = identity.sign_in("ada.l@mail.example", PASSWORD, &peer).await.unwrap();
    assert!(session(&services, &by_password).await.is_some());
}

#[tokio::test]
async fn what_decides_about_sign_ins_is_changed_after_a_recent_sign_in_alone() {
    let services = set_up().await;
    let now = ada(&services).await;
    let org = owner(&services).await;
    let acme = domain(&services, &org, "acme.example", SsoEnforcement::Off, true).await;
    let account = opened(through(&services, "google-oauth2", &says("x", "x@acme.example")).await);
    let member = session(&services, &account).await.unwrap();
    let linked = services.identity.linked_accounts(&member).await.unwrap().remove(0);
    let later = |ctx: &Ctx| Ctx { now: ctx.now.plus_seconds(16 * 60), ..ctx.clone() };
    let (ctx, member) = (later(&now), later(&member));
    let org = services.organizations.enter(&ctx, "@current").await.unwrap();
    let peer = Peer::default();
    let input = ProviderInput {
        name: "ours".to_owned(),
        label: String::new(),
        issuer: "https://a.example".to_owned(),
        client_id: "weir".to_owned(),
        client_secret: "secret".to_owned().into(),
    };
    let name = DomainInput { domain: "b.example".to_owned(), saml: SamlPatch::default() };
    let refused = |what: &str, outcome: Result<()>| {
        assert!(matches!(outcome, Err(Error::SignInAgain)), "{what}: {outcome:?}");
    };
    refused("a new domain", services.domains.create(&org, name).await.map(drop));
    let changeable = services.domains.changeable(&org, &acme.to_string()).await;
    refused("a change of a domain", changeable.map(drop));
    refused("a provider", services.providers.save(&ctx, input).await);
    refused("a removed provider", services.providers.remove(&ctx, "ours").await);
    let from = origin(None, &peer);
    let left = services.identity.begin_linking(&ctx, ProviderName::GITHUB, "/", from).await;
    refused("a linked account", left.map(drop));
    refused("an unlinked account", services.identity.unlink(&member, &linked.id).await);
    // Keys have no session, and change no provider.
    let eve = outsider(&services, "eve").await;
    assert!(matches!(services.providers.list(&eve).await, Err(Error::NotFound(_))));
}
