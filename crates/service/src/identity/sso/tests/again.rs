//! Confirming an open session through a provider, and what counts as a recent sign-in
//! (SSO-41).

use serde_json::json;
use weir_model::Timestamp;
use weir_model::domains::SsoEnforcement;
use weir_model::sso::{Connection, ProviderName};

use super::{domain, opened, origin, owner, says, session, through, through_saml};
use crate::ctx::Ctx;
use crate::error::Error;
use crate::identity::{Confirming, Peer, SignedOn};
use crate::sso::ProviderInput;
use crate::test_support::{self, ada, set_up};
use crate::{Result, Services};

const ADA: &str = "ada.l@mail.example";
const NOT_RECENT: SignedOn = SignedOn::NotConfirmed(Some("sign_in_not_recent"), String::new());

/// An answer about a user who signed in at the provider at this time.
fn says_at(subject: &str, email: &str, at: Timestamp) -> String {
    json!({"subject": subject, "email": email, "verified": true, "at": at.micros()}).to_string()
}

/// A change that needs a recent sign-in.
async fn change(services: &Services, ctx: &Ctx) -> Result<()> {
    services.keys.create(ctx, test_support::key_input()).await.map(drop)
}

/// The outcome without the path.
fn short(outcome: SignedOn) -> SignedOn {
    match outcome {
        SignedOn::NotConfirmed(code, _) => SignedOn::NotConfirmed(code, String::new()),
        other => other,
    }
}

#[tokio::test]
async fn a_provider_confirms_a_session_only_with_a_new_sign_in() {
    let services = set_up().await;
    let (identity, peer) = (&services.identity, Peer::default());
    let org = owner(&services).await;
    let acme = domain(&services, &org, "mail.example", SsoEnforcement::Saml, false).await;
    let begun = services.clock.now();
    let first = says_at("ada", ADA, begun);
    let first = opened(through_saml(&services, acme, ADA, &first).await);
    let ctx = session(&services, &first).await.unwrap();
    change(&services, &ctx).await.unwrap();

    services.clock.advance(16 * 60);
    let ctx = session(&services, &first).await.unwrap();
    assert!(matches!(change(&services, &ctx).await, Err(Error::SignInAgain)));
    let confirm = async |answer: &str| {
        let left = identity.begin_saml_login(Some(&ctx), ADA, "/next", origin(None, &peer)).await;
        let left = left.unwrap();
        assert!(left.url.ends_with("&again"), "{}", left.url);
        let from = origin(Some(&left.browser), &peer);
        short(identity.finish_saml_login(&acme.to_string(), answer, from).await.unwrap())
    };
    // The provider has a session of its own, and requested nothing of the user.
    let earlier = begun.plus_seconds(-1);
    assert_eq!(confirm(&says_at("ada", ADA, earlier)).await, NOT_RECENT);
    let just_before = services.clock.now().plus_seconds(-61);
    assert_eq!(confirm(&says_at("ada", ADA, just_before)).await, NOT_RECENT);
    assert_eq!(confirm("refused").await, SignedOn::NotConfirmed(None, String::new()));
    let ctx_after = session(&services, &first).await.unwrap();
    assert!(matches!(change(&services, &ctx_after).await, Err(Error::SignInAgain)));

    let now = services.clock.now();
    let confirmed = opened(confirm(&says_at("ada", ADA, now)).await);
    let ctx = session(&services, &confirmed).await.unwrap();
    change(&services, &ctx).await.unwrap();
    assert!(session(&services, &first).await.is_none(), "the new session replaces the old one");
}

#[tokio::test]
async fn a_silent_sign_in_is_as_recent_as_the_one_at_the_provider() {
    let services = set_up().await;
    let org = owner(&services).await;
    let acme = domain(&services, &org, "mail.example", SsoEnforcement::Saml, false).await;
    // A browser that signed out and in again is not more recent than before.
    let now = services.clock.now();
    let silent = says_at("ada", ADA, now.plus_seconds(-3 * 60 * 60));
    let silent = opened(through_saml(&services, acme, ADA, &silent).await);
    let ctx = session(&services, &silent).await.unwrap();
    assert!(matches!(change(&services, &ctx).await, Err(Error::SignInAgain)));
    // A clock that is ahead does not make a sign-in recent for longer.
    let ahead = says_at("ada", ADA, now.plus_seconds(24 * 60 * 60));
    let ahead = opened(through_saml(&services, acme, ADA, &ahead).await);
    services.clock.advance(16 * 60);
    let ctx = session(&services, &ahead).await.unwrap();
    assert!(matches!(change(&services, &ctx).await, Err(Error::SignInAgain)));
}

#[tokio::test]
async fn a_provider_that_states_no_time_confirms_only_users_without_another_way() {
    let services = set_up().await;
    let (identity, peer) = (&services.identity, Peer::default());
    let org = owner(&services).await;
    domain(&services, &org, "acme.example", SsoEnforcement::Off, true).await;
    let link = identity.begin_linking(&org.ctx, ProviderName::GITHUB, "/", origin(None, &peer));
    let (answer, link) = (says("ada at github", "ada@elsewhere.example"), link.await.unwrap());
    let from = origin(Some(&link.browser), &peer);
    identity.finish_login(ProviderName::GITHUB, &answer, from).await.unwrap();
    let google = ProviderName::GOOGLE;
    let grace = says("grace", "grace@acme.example");
    for (what, name, answer, expected) in [
        ("a user with a password", ProviderName::GITHUB, answer, false),
        ("a user without a password and a passkey", google, grace, true),
    ] {
        let first = opened(through(&services, name.text(), &answer).await);
        services.clock.advance(16 * 60);
        let ctx = session(&services, &first).await.unwrap();
        let left =
            identity.begin_login(Some(&ctx), name, "", "/", origin(None, &peer)).await.unwrap();
        let from = origin(Some(&left.browser), &peer);
        let outcome = identity.finish_login(name, &answer, from).await.unwrap();
        assert_eq!(matches!(outcome, SignedOn::Opened(..)), expected, "{what}: {outcome:?}");
        assert_eq!(short(outcome) == NOT_RECENT, !expected, "{what}");
    }
}

#[tokio::test]
async fn the_ways_to_confirm_are_those_that_work() {
    let services = set_up().await;
    let (identity, peer) = (&services.identity, Peer::default());
    let ctx = ada(&services).await;
    let email = "Ada.L@mail.example".to_owned();
    let by_password = Confirming {
        email,
        provider: None,
        has_password: true,
        has_passkey: false,
        by_operator: false,
    };
    assert_eq!(identity.confirming(&ctx).await.unwrap(), by_password);
    // A named issuer has the label that staff gave it, on every page.
    let input = ProviderInput {
        name: "ours".to_owned(),
        label: "Our directory".to_owned(),
        issuer: "https://a.example".to_owned(),
        client_id: "weir".to_owned(),
        client_secret: "secret".to_owned().into(),
    };
    services.providers.save(&ctx, input).await.unwrap();
    let ours = ProviderName::parse("ours").unwrap();
    let link = identity.begin_linking(&ctx, ours, "/", origin(None, &peer)).await.unwrap();
    let from = origin(Some(&link.browser), &peer);
    identity.finish_login(ours, &says("ada", ADA), from).await.unwrap();
    let by_ours = opened(through(&services, "ours", &says("ada", ADA)).await);
    let by_ours = session(&services, &by_ours).await.unwrap();
    let label = "Our directory".to_owned();
    assert_eq!(identity.linked_accounts(&by_ours).await.unwrap()[0].name, label);
    assert_eq!(identity.own_sessions(&by_ours).await.unwrap()[0].opened_by, label);
    let org = services.organizations.enter(&by_ours, "@current").await.unwrap();
    let methods = services.members.sign_in_methods(&org, &[ctx.user()]).await.unwrap();
    assert_eq!(methods, [["Password".to_owned(), label.clone()]]);
    let provider = Some((Connection::Provider(ours), label));
    let expected = Confirming { provider, ..by_password.clone() };
    assert_eq!(identity.confirming(&by_ours).await.unwrap(), expected);

    // A session of the operator where a provider is required.
    let acme = domain(&services, &org, "mail.example", SsoEnforcement::Saml, false).await;
    let link = identity.sign_in_link(ADA).await.unwrap().unwrap();
    let (page, token) = link.split_once("?token=").unwrap();
    let user = page.strip_prefix("/login/link/").unwrap();
    let by_link = identity.use_sign_in_link(user, token, &peer, "request").await.unwrap();
    let by_link = session(&services, &by_link).await.unwrap();
    let expected = Confirming {
        provider: Some((Connection::Saml(acme), "SAML".to_owned())),
        has_password: false,
        by_operator: true,
        ..by_password
    };
    assert_eq!(identity.confirming(&by_link).await.unwrap(), expected);
}
