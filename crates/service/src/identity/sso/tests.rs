//! Who may sign in through a provider: the table of the decision, and what follows in the
//! store.

mod acting;
mod again;
mod decisions;
mod joining;
mod proofs;
mod refusals;
mod trust;

use serde_json::json;
use weir_model::activity::{ActivityQuery, AuditAction};
use weir_model::domains::{DomainInput, DomainPatch, SamlPatch, SsoEnforcement};
use weir_model::invites::InviteInput;
use weir_model::organizations::{Level, OrganizationPatch};
use weir_model::pagination::Page;
use weir_model::sso::ProviderName;
use weir_model::{DomainId, Patch, UserId};
use weir_store::domains::DomainRow;
use weir_store::organizations;
use weir_store::users::{self, UserRow};

use super::{Origin, SignedOn};
use crate::ctx::{Ctx, OrgCtx};
use crate::error::Error;
use crate::identity::{NewSession, Peer};
use crate::test_support::{self, PASSWORD, ada, join, outsider, set_up};
use crate::{Result, Services};

const SITE: &str = "https://weir.example";
/// A certificate, valid until 18 November 2036.
const CERTIFICATE: &str = "MIIBiDCCAS+gAwIBAgIUEIl2ydDdTgjBJZbQHlW7LH7/A4owCgYIKoZIzj0EAwIw\
GjEYMBYGA1UEAwwPaWRwLmV4YW1wbGUuY29tMB4XDTI2MTEyMTIzNTk0MVoXDTM2\
MTExODIzNTk0MVowGjEYMBYGA1UEAwwPaWRwLmV4YW1wbGUuY29tMFkwEwYHKoZI\
zj0CAQYIKoZIzj0DAQcDQgAE4b8zF5k9SevDzmVMcBskjpxdN9oudJFhZK73VmBW\
2vAxTf5x2mMlrA9Cf8tOBK4O+gw52RWXIRI0rtqo8IUfYKNTMFEwHQYDVR0OBBYE\
FFfZGdDlgCwDj0dV+wzJVcA9bNzkMB8GA1UdIwQYMBaAFFfZGdDlgCwDj0dV+wzJ\
VcA9bNzkMA8GA1UdEwEB/wQFMAMBAf8wCgYIKoZIzj0EAwIDRwAwRAIgXbNJEPS5\
F5mM8iw4tsWfmheGWdUzwqir9JoLM1ajcVkCIHUL3Wbzb8vChnlQwmpcKCNUzcIs\
bIcD9jsWxQwmy0sw";

fn origin<'a>(browser: Option<&'a str>, peer: &'a Peer) -> Origin<'a> {
    Origin { site: SITE, browser, peer, request_id: "request" }
}

/// An answer of a provider.
fn says(subject: &str, email: &str) -> String {
    json!({"issuer": "https://idp.example", "subject": subject, "email": email, "verified": true, "name": "Grace H"})
        .to_string()
}

/// Signs in through a provider of the instance.
async fn through(services: &Services, name: &str, answer: &str) -> SignedOn {
    let (name, peer) = (ProviderName::parse(name).unwrap(), Peer::default());
    let identity = &services.identity;
    let left = identity.begin_login(None, name, "", "/next", origin(None, &peer)).await.unwrap();
    assert_eq!(left.url, format!("https://provider.example/?back={SITE}/complete/{name}/"));
    identity.finish_login(name, answer, origin(Some(&left.browser), &peer)).await.unwrap()
}

/// Signs in through the SAML provider of the domain of an address.
async fn through_saml(
    services: &Services,
    domain: DomainId,
    email: &str,
    answer: &str,
) -> SignedOn {
    let (identity, peer) = (&services.identity, Peer::default());
    let left = identity.begin_saml_login(None, email, "/next", origin(None, &peer)).await.unwrap();
    let relay = domain.to_string();
    assert_eq!(left.url, format!("https://idp.example/sso?RelayState={relay}"));
    identity.finish_saml_login(&relay, answer, origin(Some(&left.browser), &peer)).await.unwrap()
}

#[track_caller]
fn opened(outcome: SignedOn) -> NewSession {
    match outcome {
        SignedOn::Opened(session, next) => {
            assert_eq!(next, "/next");
            session
        }
        other => panic!("{other:?}"),
    }
}

async fn session(services: &Services, session: &NewSession) -> Option<Ctx> {
    services.identity.session(&session.token, "request".to_owned()).await.unwrap()
}

/// A verified domain with SAML settings, and these rules.
async fn domain(
    services: &Services,
    org: &OrgCtx,
    name: &str,
    sso: SsoEnforcement,
    jit: bool,
) -> DomainId {
    let input = DomainInput { domain: name.to_owned(), saml: SamlPatch::default() };
    let made = services.domains.create(org, input).await.unwrap();
    let now = services.clock.now();
    let set = |row: &DomainRow| {
        let row = DomainRow {
            verified_at: Some(now),
            sso_enforcement: sso,
            jit_provisioning_enabled: jit,
            saml_entity_id: Some("https://idp.example".to_owned()),
            saml_acs_url: Some("https://idp.example/sso".to_owned()),
            saml_x509_cert: Some(CERTIFICATE.to_owned()),
            // As if the staff of the instance had done it.
            provider_rank: Some(100),
            rules_rank: Some(100),
            ..row.clone()
        };
        Ok::<_, weir_store::Error>(Some((row, Vec::new())))
    };
    let store = services.organizations.store();
    weir_store::update::update(store, made.id, (), set).await.unwrap();
    made.id
}

async fn owner(services: &Services) -> OrgCtx {
    let ctx = ada(services).await;
    services.organizations.enter(&ctx, "@current").await.unwrap()
}

async fn level(services: &Services, org: &OrgCtx, user: UserId) -> Option<Level> {
    let store = services.organizations.store();
    organizations::level(store, org.organization, user).await.unwrap()
}

/// Reasons of refusals that the administrators see, newest first.
async fn reasons(services: &Services, org: &OrgCtx) -> Vec<String> {
    let query = ActivityQuery {
        activity: Some(AuditAction::SignInRefused.text().to_owned()),
        ..ActivityQuery::default()
    };
    let log = services.activity.of_organization(org, &query, Page::default()).await.unwrap();
    let reason = |entry: weir_model::activity::Activity| {
        assert!(entry.is_system);
        let reason = entry.detail.changes.into_iter().find(|change| change.field == "reason");
        reason.unwrap().after.as_str().unwrap().to_owned()
    };
    log.results.into_iter().map(reason).collect()
}

async fn rename(services: &Services, ctx: &Ctx, email: &str) {
    let store = services.organizations.store();
    let row = users::get(store, ctx.user()).await.unwrap().unwrap();
    let row = UserRow { email: email.to_owned(), is_email_verified: true, ..row };
    users::create(store, &row, email).await.unwrap();
}

/// Invites `linus@acme.example` as an administrator.
async fn invite_linus(services: &Services, org: &OrgCtx) {
    let invite = InviteInput {
        target_email: "linus@acme.example".to_owned(),
        first_name: String::new(),
        level: Level::Administrator,
        message: None,
        send_email: false,
    };
    services.invites.create(org, invite).await.unwrap();
}

fn issuer() -> SsoEnforcement {
    SsoEnforcement::Provider(ProviderName::parse("issuer").unwrap())
}

#[tokio::test]
async fn enforcement_refuses_every_other_method() {
    let services = set_up().await;
    let (identity, peer) = (&services.identity, Peer::default());
    let org = owner(&services).await;
    let before = identity.sign_in("ada.l@mail.example", PASSWORD, &peer).await.unwrap();
    let ctx = session(&services, &before).await.unwrap();
    // Ada links GitHub while nothing is required.
    let left = identity
        .begin_linking(&ctx, ProviderName::GITHUB, "/back", origin(None, &peer))
        .await
        .unwrap();
    let from = origin(Some(&left.browser), &peer);
    let answer = says("ada at github", "ada@elsewhere.example");
    let linked = identity.finish_login(ProviderName::GITHUB, &answer, from).await.unwrap();
    assert_eq!(linked, SignedOn::Linked("/back".to_owned()));
    opened(through(&services, "github", &answer).await);

    let acme = domain(&services, &org, "mail.example", SsoEnforcement::Saml, false).await;
    // The sessions that a password and another provider opened do not count any more.
    assert!(session(&services, &before).await.is_none());
    assert!(matches!(identity.check_session(&ctx).await, Err(Error::NotAuthenticated)));
    assert!(identity.sign_in("ada.l@mail.example", PASSWORD, &peer).await.is_err());
    let outcome = through(&services, "github", &answer).await;
    assert_eq!(outcome, SignedOn::Refused(None, "/next".to_owned()));
    // The provider of the domain, and the operator.
    let answer = says("ada", "ada.l@mail.example");
    let by_saml = opened(through_saml(&services, acme, "x@mail.example", &answer).await);
    assert!(session(&services, &by_saml).await.is_some());
    let link = identity.sign_in_link("Ada.L@mail.example").await.unwrap().unwrap();
    let (page, token) = link.split_once("?token=").unwrap();
    let user = page.strip_prefix("/login/link/").unwrap();
    let opened = identity.use_sign_in_link(user, token, &peer, "request").await.unwrap();
    let ctx = session(&services, &opened).await.unwrap();
    assert!(services.keys.create(&ctx, test_support::key_input()).await.is_ok());
    let twice = identity.use_sign_in_link(user, token, &peer, "request").await;
    assert!(matches!(twice, Err(Error::Invalid(_))));
    assert_eq!(identity.sign_in_link("unknown@mail.example").await.unwrap(), None);
}

#[tokio::test]
async fn a_pending_login_belongs_to_one_browser_and_works_once() {
    let services = set_up().await;
    let org = owner(&services).await;
    domain(&services, &org, "acme.example", SsoEnforcement::Off, true).await;
    let (identity, peer, google) = (&services.identity, Peer::default(), ProviderName::GOOGLE);
    let answer = says("x", "x@acme.example");
    let left = identity.begin_login(None, google, "", "/", origin(None, &peer)).await.unwrap();
    let other = identity.begin_login(None, google, "", "/", origin(None, &peer)).await.unwrap();
    let finish = async |browser: Option<&str>| {
        let outcome = identity.finish_login(google, &answer, origin(browser, &peer)).await.unwrap();
        matches!(outcome, SignedOn::Opened(..))
    };
    assert!(!finish(None).await);
    assert!(!finish(Some("another")).await);
    assert!(finish(Some(&left.browser)).await);
    assert!(!finish(Some(&left.browser)).await, "it works once");
    services.clock.advance(10 * 60);
    assert!(!finish(Some(&other.browser)).await, "it waits ten minutes");
    assert!(identity.prune_pending_logins().await.unwrap());
}

#[tokio::test]
async fn a_session_of_a_provider_needs_no_second_factor() {
    let services = set_up().await;
    let org = owner(&services).await;
    domain(&services, &org, "acme.example", SsoEnforcement::Off, true).await;
    let patch = OrganizationPatch { enforce_2fa: Patch::Set(true), ..Default::default() };
    services.organizations.update(&org, patch).await.unwrap();
    let id = org.organization.to_string();
    assert!(services.organizations.enter(&org.ctx, &id).await.is_err());
    let opened = opened(through(&services, "google-oauth2", &says("x", "x@acme.example")).await);
    let ctx = session(&services, &opened).await.unwrap();
    assert!(services.organizations.enter(&ctx, &id).await.is_ok());
    // The Security page says so too.
    let demanding = async |ctx| services.identity.second_factor(ctx).await.unwrap().demanded_by;
    assert_eq!(demanding(&ctx).await, [""; 0]);
    assert_eq!(demanding(&org.ctx).await, ["Acme Tea"]);
}

#[tokio::test]
async fn the_last_way_in_cannot_be_removed() {
    let services = set_up().await;
    let org = owner(&services).await;
    domain(&services, &org, "acme.example", SsoEnforcement::Off, true).await;
    let opened = opened(through(&services, "google-oauth2", &says("x", "x@acme.example")).await);
    let ctx = session(&services, &opened).await.unwrap();
    let linked = services.identity.linked_accounts(&ctx).await.unwrap();
    let refused = services.identity.unlink(&ctx, &linked[0].id).await;
    assert!(matches!(refused, Err(Error::Conflict { code: "last_way", .. })));
    // Ada cannot remove what is linked to another user.
    let refused = services.identity.unlink(&org.ctx, &linked[0].id).await;
    assert!(matches!(refused, Err(Error::NotFound(_))));
}

#[tokio::test]
async fn owners_are_not_locked_out_by_accident() {
    let services = set_up().await;
    let org = owner(&services).await;
    let acme = domain(&services, &org, "mail.example", SsoEnforcement::Off, false).await;
    let enforce = async |text: &str, confirmed: Option<&str>| {
        let patch = DomainPatch {
            sso_enforcement: Patch::Set(text.to_owned()),
            confirmed_name: confirmed.map(str::to_owned),
            ..DomainPatch::default()
        };
        let changeable = services.domains.changeable(&org, &acme.to_string()).await?;
        services.domains.update(&org, changeable, patch).await
    };
    let code = |outcome: Result<_>| match outcome {
        Err(Error::Invalid(fault)) => fault.code,
        Ok(_) => "saved".to_owned(),
        Err(other) => panic!("{other:?}"),
    };
    assert_eq!(code(enforce("gitlab", None).await.map(drop)), "provider_unavailable");
    assert_eq!(code(enforce("okta", None).await.map(drop)), "invalid_choice");
    assert_eq!(code(enforce("saml", None).await.map(drop)), "would_lock_out");
    assert_eq!(code(enforce("saml", Some("acme.example")).await.map(drop)), "would_lock_out");
    // After Ada has signed in this way once, nothing has to be confirmed.
    let answer = says("ada", "ada.l@mail.example");
    opened(through_saml(&services, acme, "x@mail.example", &answer).await);
    let impact = services.domains.impact(&org, &acme.to_string()).await.unwrap();
    let ada = "Ada.L@mail.example";
    assert_eq!((&*impact.members, impact.includes_you), (&[ada.to_owned()][..], true));
    let ways: Vec<_> = impact
        .ways
        .iter()
        .map(|way| (way.sso_enforcement.text(), way.proved.len(), way.locks_out_owners))
        .collect();
    let expected =
        [("google-oauth2", 0, true), ("github", 0, true), ("saml", 1, false), ("issuer", 0, true)];
    assert_eq!(ways, expected);
    assert_eq!(impact.ways[0].unproved, [ada]);
    // An owner with an address elsewhere is not affected.
    let eve = outsider(&services, "eve").await;
    rename(&services, &eve, "eve@elsewhere.example").await;
    join(&services, org.organization, &eve, Level::Owner).await;
    let impact = services.domains.impact(&org, &acme.to_string()).await.unwrap();
    assert_eq!(impact.owners_elsewhere.len(), 1);
    assert!(impact.ways.iter().all(|way| !way.locks_out_owners));
    assert_eq!(code(enforce("saml", None).await.map(drop)), "saved");
    assert_eq!(code(enforce("", None).await.map(drop)), "saved");
    assert_eq!(code(enforce("github", None).await.map(drop)), "saved");
}

#[tokio::test]
async fn a_lock_out_is_confirmed_with_the_name_of_the_domain() {
    let services = set_up().await;
    let org = owner(&services).await;
    let acme = domain(&services, &org, "mail.example", SsoEnforcement::Off, false).await;
    let patch = |confirmed: Option<&str>| DomainPatch {
        sso_enforcement: Patch::Set("github".to_owned()),
        confirmed_name: confirmed.map(str::to_owned),
        ..DomainPatch::default()
    };
    for (confirmed, expected) in
        [(None, false), (Some("mail"), false), (Some("mail.example"), true)]
    {
        let changeable = services.domains.changeable(&org, &acme.to_string()).await.unwrap();
        let saved = services.domains.update(&org, changeable, patch(confirmed)).await;
        assert_eq!(saved.is_ok(), expected, "{confirmed:?}");
    }
}

#[tokio::test]
async fn a_test_shows_the_checks_and_signs_no_user_in() {
    let services = set_up().await;
    let org = owner(&services).await;
    let acme = domain(&services, &org, "acme.example", SsoEnforcement::Off, true).await;
    let (identity, peer) = (&services.identity, Peer::default());
    let mut outcomes = Vec::new();
    for answer in [says("x", "x@acme.example"), "refused".to_owned()] {
        let left =
            identity.begin_saml_test(&org, acme, "/domain", origin(None, &peer)).await.unwrap();
        let from = origin(Some(&left.browser), &peer);
        let done = identity.finish_saml_login(&acme.to_string(), &answer, from).await.unwrap();
        assert_eq!(done, SignedOn::Tested("/domain".to_owned()));
        let test = identity.last_test(&org, acme).await.unwrap().unwrap();
        outcomes.push((test.works, test.outcome, test.checks[0].passed));
    }
    assert_eq!(
        outcomes,
        [
            (true, "A new user would become a member and sign in.".to_owned(), Some(true)),
            (false, "scripted".to_owned(), Some(false)),
        ]
    );
    let page = weir_store::instance::counts(services.organizations.store()).await.unwrap();
    assert_eq!(page.users, 1);
    let member = outsider(&services, "eve").await;
    join(&services, org.organization, &member, Level::Member).await;
    let id = org.organization.to_string();
    let member = services.organizations.enter(&member, &id).await.unwrap();
    let refused = identity.begin_saml_test(&member, acme, "/", origin(None, &peer)).await;
    assert!(matches!(refused.map(drop), Err(Error::Forbidden(_))));
}

#[tokio::test]
async fn staff_manages_providers() {
    let services = set_up().await;
    let ctx = ada(&services).await;
    let input = |name: &str, issuer: &str, secret: &str| crate::sso::ProviderInput {
        name: name.to_owned(),
        label: "Ours".to_owned(),
        issuer: issuer.to_owned(),
        client_id: "weir".to_owned(),
        client_secret: secret.to_owned().into(),
    };
    let save = async |ctx: &Ctx, name: &str, issuer: &str, secret: &str| match services
        .providers
        .save(ctx, input(name, issuer, secret))
        .await
    {
        Ok(()) => "saved".to_owned(),
        Err(Error::Invalid(fault)) => format!("{} {}", fault.attr.unwrap_or_default(), fault.code),
        Err(Error::NotFound(_)) => "not found".to_owned(),
        Err(other) => panic!("{other:?}"),
    };
    assert_eq!(save(&ctx, "ours", "https://a.example", "s1").await, "saved");
    assert_eq!(save(&ctx, "ours", "https://a.example", "").await, "saved");
    for (name, issuer, secret, expected) in [
        ("ours", "https://b.example", "", "client_secret blank"),
        ("Ours", "https://a.example", "s", "name invalid_input"),
        ("github", "", "s", "name invalid_input"),
        ("theirs", "wrong", "s", "issuer invalid_input"),
    ] {
        assert_eq!(save(&ctx, name, issuer, secret).await, expected, "{name} {issuer}");
    }
    let eve = outsider(&services, "eve").await;
    assert_eq!(save(&eve, "theirs", "https://a.example", "s").await, "not found");
    let names: Vec<String> = services
        .providers
        .list(&ctx)
        .await
        .unwrap()
        .into_iter()
        .map(|facts| format!("{} {}", facts.name, facts.is_fixed))
        .collect();
    assert_eq!(names, ["google-oauth2 true", "github true", "issuer true", "ours false"]);
    // The stored secret is sealed, and opens for the sign-in.
    let outcome = through(&services, "ours", &says("x", "x@elsewhere.example")).await;
    assert_eq!(outcome, SignedOn::Refused(Some("no_new_organizations"), "/next".to_owned()));
    services.providers.remove(&ctx, "ours").await.unwrap();
    let peer = Peer::default();
    let name = ProviderName::parse("ours").unwrap();
    let gone = services.identity.begin_login(None, name, "", "/", origin(None, &peer)).await;
    assert!(matches!(gone.map(drop), Err(Error::NotFound(_))));
}
