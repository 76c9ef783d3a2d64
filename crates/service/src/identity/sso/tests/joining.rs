//! Who becomes a member by signing in, and through which providers.

use serde_json::json;
use weir_model::domains::SsoEnforcement;
use weir_model::organizations::Level;
use weir_model::pagination::Page;
use weir_model::sso::ProviderName;
use weir_store::domains::DomainRow;

use super::super::decide::Reason;
use super::{
    domain, invite_linus, issuer, level, opened, origin, owner, reasons, rename, says, session,
    through, through_saml,
};
use crate::error::Error;
use crate::identity::{Peer, SignedOn};
use crate::test_support::{join, organization, outsider, set_up};

#[tokio::test]
async fn a_new_colleague_becomes_a_member_and_stays_the_same_user() {
    let services = set_up().await;
    let org = owner(&services).await;
    let acme = domain(&services, &org, "acme.example", SsoEnforcement::Off, true).await;
    let answer = says("grace", "Grace@Acme.example");
    let first = opened(through_saml(&services, acme, "x@acme.example", &answer).await);
    assert_eq!(level(&services, &org, first.user).await, Some(Level::Member));
    let ctx = session(&services, &first).await.unwrap();
    let me = services.users.me(&ctx).await.unwrap();
    assert_eq!((me.email.as_str(), me.first_name.as_str()), ("Grace@acme.example", "Grace H"));
    assert!(me.is_email_verified);

    // The same assertion does not work twice, another one does.
    let again = through_saml(&services, acme, "x@acme.example", &answer).await;
    assert_eq!(again, SignedOn::Refused(None, "/next".to_owned()));
    let answer = says("grace", "grace@acme.example");
    let second = opened(through_saml(&services, acme, "x@acme.example", &answer).await);
    assert_eq!(second.user, first.user);
    // Another subject with this address is the same member.
    let third = opened(
        through_saml(&services, acme, "x@acme.example", &says("g2", "grace@acme.example")).await,
    );
    assert_eq!(third.user, first.user);
    let linked = services.identity.linked_accounts(&ctx).await.unwrap();
    assert_eq!(linked.len(), 2);
    assert_eq!(linked[0].name, "SAML");
    // There is no password.
    let refused = services.identity.sign_in("grace@acme.example", "x", &Peer::default()).await;
    assert!(matches!(refused, Err(Error::Invalid(_))));
}

#[tokio::test]
async fn a_provider_speaks_for_its_own_domain_only() {
    let services = set_up().await;
    let org = owner(&services).await;
    let acme = domain(&services, &org, "acme.example", SsoEnforcement::Off, true).await;
    // Eve owns another organization, with a provider that says what she wants.
    let eve = outsider(&services, "eve").await;
    organization(&services, &eve, "Evil").await;
    let evil = services.organizations.enter(&eve, "@current").await.unwrap();
    let theirs = domain(&services, &evil, "evil.example", SsoEnforcement::Off, true).await;
    for email in ["ada.l@mail.example", "grace@acme.example", "x@sub.evil.example", "x"] {
        let outcome = through_saml(&services, theirs, "x@evil.example", &says("e", email)).await;
        assert_eq!(outcome, SignedOn::Refused(None, "/next".to_owned()), "{email}");
    }
    // The relay state of another domain finds no pending login.
    let (identity, peer) = (&services.identity, Peer::default());
    let left =
        identity.begin_saml_login(None, "x@evil.example", "/", origin(None, &peer)).await.unwrap();
    let answer = says("g", "grace@acme.example");
    let from = origin(Some(&left.browser), &peer);
    let outcome = identity.finish_saml_login(&acme.to_string(), &answer, from).await.unwrap();
    assert!(matches!(outcome, SignedOn::Refused(..)));
    // A user with an address of Eve's domain who is a member of Acme Tea alone.
    let victim = outsider(&services, "victim").await;
    join(&services, org.organization, &victim, Level::Administrator).await;
    rename(&services, &victim, "victim@evil.example").await;
    let answer = says("v", "victim@evil.example");
    let outcome = through_saml(&services, theirs, "x@evil.example", &answer).await;
    assert_eq!(outcome, SignedOn::Refused(None, "/next".to_owned()));
    assert_eq!(level(&services, &evil, victim.user()).await, None);
    let why = reasons(&services, &evil).await;
    assert_eq!(why[0], Reason::Elsewhere.text());
    let other = Reason::OtherDomain.text();
    assert_eq!(why[1..5], [Reason::NoAddress.text(), other, other, other]);
}

#[tokio::test]
async fn an_invite_decides_about_the_level() {
    let services = set_up().await;
    let org = owner(&services).await;
    domain(&services, &org, "acme.example", issuer(), true).await;
    invite_linus(&services, &org).await;
    let session = opened(through(&services, "issuer", &says("l", "linus@acme.example")).await);
    assert_eq!(level(&services, &org, session.user).await, Some(Level::Administrator));
    let page = services.invites.list(&org, Page::default()).await.unwrap();
    assert_eq!(page.count, 0);
}

#[tokio::test]
async fn without_joining_the_visitor_learns_the_code_alone() {
    let services = set_up().await;
    let org = owner(&services).await;
    domain(&services, &org, "acme.example", SsoEnforcement::Off, false).await;
    for (email, code) in [
        ("x@acme.example", Some("jit_not_enabled")),
        ("x@elsewhere.example", Some("no_new_organizations")),
        ("ada.l@mail.example", None),
    ] {
        let outcome = through(&services, "google-oauth2", &says("x", email)).await;
        assert_eq!(outcome, SignedOn::Refused(code, "/next".to_owned()), "{email}");
    }
    assert_eq!(reasons(&services, &org).await, [Reason::NoJoining.text()]);
    let outcome = through(&services, "google-oauth2", "no JSON").await;
    assert_eq!(outcome, SignedOn::Refused(None, "/next".to_owned()));
}

#[tokio::test]
async fn with_joining_google_is_trusted_about_members_and_others_are_not() {
    let services = set_up().await;
    let org = owner(&services).await;
    domain(&services, &org, "mail.example", SsoEnforcement::Off, true).await;
    for name in ["github", "issuer"] {
        // Another spelling of the address creates no second user.
        for email in ["ada.l@mail.example", "ADA.L@MAIL.example"] {
            let outcome = through(&services, name, &says("x", email)).await;
            assert_eq!(outcome, SignedOn::Refused(None, "/next".to_owned()), "{name} {email}");
        }
    }
    let ada = opened(through(&services, "google-oauth2", &says("x", "ada.l@mail.example")).await);
    assert_eq!(ada.user, org.ctx.user());
    assert_eq!(reasons(&services, &org).await, [Reason::NotTrusted.text(); 4]);
}

#[tokio::test]
async fn a_new_user_joins_through_any_provider_that_the_rules_allow() {
    let services = set_up().await;
    let org = owner(&services).await;
    let acme = domain(&services, &org, "acme.example", SsoEnforcement::Off, true).await;
    let count = async || {
        let store = services.organizations.store();
        weir_store::instance::counts(store).await.unwrap().users
    };
    let refused = async |name: &str, answer: &str, code: Option<&'static str>| {
        let before = count().await;
        let outcome = through(&services, name, answer).await;
        assert_eq!(outcome, SignedOn::Refused(code, "/next".to_owned()), "{name} {answer}");
        assert_eq!(count().await, before, "{name} {answer}");
    };
    for name in ["google-oauth2", "github", "issuer"] {
        let unconfirmed =
            json!({"issuer": "https://idp.example", "subject": "u", "email": "u@acme.example"});
        refused(name, &unconfirmed.to_string(), None).await;
        let unclaimed = Some("no_new_organizations");
        refused(name, &says("s", "s@sub.acme.example"), unclaimed).await;
        refused(name, &says("s", "s@notacme.example"), unclaimed).await;

        let email = format!("{name}@acme.example");
        let first = opened(through(&services, name, &says(name, &email)).await);
        assert_eq!(level(&services, &org, first.user).await, Some(Level::Member), "{name}");
        let ctx = session(&services, &first).await.unwrap();
        assert!(services.users.me(&ctx).await.unwrap().is_email_verified);
        let again = opened(through(&services, name, &says(name, &email)).await);
        assert_eq!(again.user, first.user);
        // Another subject with the address is this user only if the domain trusts the provider.
        if name != "google-oauth2" {
            refused(name, &says("another", &email.to_uppercase()), None).await;
        }
    }
    invite_linus(&services, &org).await;
    let linus = opened(through(&services, "issuer", &says("l", "Linus@ACME.example")).await);
    assert_eq!(level(&services, &org, linus.user).await, Some(Level::Administrator));

    // Another required provider.
    let github = SsoEnforcement::Provider(ProviderName::GITHUB);
    for sso in [SsoEnforcement::Saml, github] {
        let set = |row: &DomainRow| {
            let row = DomainRow { sso_enforcement: sso, ..row.clone() };
            Ok::<_, weir_store::Error>(Some((row, Vec::new())))
        };
        let store = services.organizations.store();
        weir_store::update::update(store, acme, (), set).await.unwrap();
        for name in ["google-oauth2", "issuer"] {
            refused(name, &says("n", "new@acme.example"), None).await;
        }
        assert_eq!(reasons(&services, &org).await[0], Reason::OtherMethod.text());
    }
    opened(through(&services, "github", &says("n", "new@acme.example")).await);
}
