//! Users whose address was never proved, and accounts at providers that are not the user's
//! own (SSO-46, SSO-47).

use serde_json::json;
use weir_model::Patch;
use weir_model::activity::{ActivityQuery, AuditAction};
use weir_model::domains::SsoEnforcement;
use weir_model::invites::{InviteInput, SignUpInput};
use weir_model::organizations::{Level, OrganizationPatch};
use weir_model::pagination::Page;
use weir_model::sso::ProviderName;
use weir_store::domains::DomainRow;
use weir_store::{keys, members, users};

use super::{
    domain, issuer, level, opened, origin, owner, reasons, rename, says, session, through,
    through_saml,
};
use crate::Services;
use crate::ctx::{Ctx, OrgCtx};
use crate::error::Error;
use crate::identity::{NewSession, Peer, SignedOn};
use crate::scim::Precondition;
use crate::test_support::{PASSWORD, join, key_input, organization, outsider, set_up};

const GRACE: &str = "grace@acme.example";
const GOOGLE: ProviderName = ProviderName::GOOGLE;

/// Mallory, who owns another organization.
async fn mallory(services: &Services) -> OrgCtx {
    let mallory = outsider(services, "mallory").await;
    rename(services, &mallory, "mallory@evil.example").await;
    organization(services, &mallory, "Evil").await;
    services.organizations.enter(&mallory, "@current").await.unwrap()
}

/// A user with this address who accepted an invite of an organization.
async fn signed_up(services: &Services, org: &OrgCtx, email: &str) -> NewSession {
    let invite = InviteInput {
        target_email: email.to_owned(),
        first_name: String::new(),
        level: Level::Member,
        message: None,
        send_email: false,
    };
    let invite = services.invites.create(org, invite).await.unwrap();
    let input = || Ok(SignUpInput { first_name: "G".to_owned(), password: PASSWORD.to_owned() });
    let (peer, token) = (Peer::default(), invite.token.unwrap());
    let made = services.identity.sign_up(&token.0, input, &peer, "request").await.unwrap();
    made.1.unwrap()
}

/// Links an account at a provider of the instance.
async fn link(services: &Services, ctx: &Ctx, name: &str, answer: &str) -> SignedOn {
    let (identity, peer) = (&services.identity, Peer::default());
    let name = ProviderName::parse(name).unwrap();
    let left = identity.begin_linking(ctx, name, "/back", origin(None, &peer)).await.unwrap();
    identity.finish_login(name, answer, origin(Some(&left.browser), &peer)).await.unwrap()
}

fn linked() -> SignedOn {
    SignedOn::Linked("/back".to_owned())
}

async fn require(services: &Services, domain: weir_model::DomainId, sso: SsoEnforcement) {
    let set = |row: &DomainRow| {
        let row = DomainRow { sso_enforcement: sso, ..row.clone() };
        Ok::<_, weir_store::Error>(Some((row, Vec::new())))
    };
    let store = services.organizations.store();
    weir_store::update::update(store, domain, (), set).await.unwrap();
}

/// An answer without an address.
fn nameless(subject: &str) -> String {
    json!({"issuer": "https://idp.example", "subject": subject}).to_string()
}

#[tokio::test]
async fn the_first_proof_of_an_address_ends_what_another_person_prepared() {
    let services = set_up().await;
    let org = owner(&services).await;
    let acme = domain(&services, &org, "acme.example", SsoEnforcement::Off, true).await;
    // Mallory invites the address of a colleague, and uses the link.
    let evil = mallory(&services).await;
    let prepared = signed_up(&services, &evil, GRACE).await;
    let ctx = session(&services, &prepared).await.unwrap();
    services.keys.create(&ctx, key_input()).await.unwrap();
    let private = says("mallory at github", "m@elsewhere.example");
    assert_eq!(link(&services, &ctx, "github", &private).await, linked());

    let answer = says("grace", GRACE);
    let first = opened(through_saml(&services, acme, "x@acme.example", &answer).await);
    assert_eq!(first.user, prepared.user);
    assert_eq!(level(&services, &org, first.user).await, Some(Level::Member));
    assert_eq!(level(&services, &evil, first.user).await, None);
    assert!(session(&services, &prepared).await.is_none());
    let by_password = services.identity.sign_in(GRACE, PASSWORD, &Peer::default()).await;
    assert!(matches!(by_password, Err(Error::Invalid(_))));
    let refused = through(&services, "github", &private).await;
    assert!(matches!(refused, SignedOn::Refused(..)));
    let store = services.organizations.store();
    assert!(keys::of_user(store, first.user).await.unwrap().is_empty());
    let ctx = session(&services, &first).await.unwrap();
    assert_eq!(services.identity.linked_accounts(&ctx).await.unwrap().len(), 1);
    assert!(services.users.me(&ctx).await.unwrap().is_email_verified);
    // Mallory's organization reads that the user left.
    let query = ActivityQuery::default();
    let log = services.activity.of_organization(&evil, &query, Page::default()).await;
    let entries = log.unwrap().results;
    assert!(entries.iter().any(|entry| entry.is_system && entry.activity == AuditAction::Deleted));

    // The second sign-in ends nothing.
    services.keys.create(&ctx, key_input()).await.unwrap();
    let answer = says("grace", "Grace@acme.example");
    opened(through_saml(&services, acme, "x@acme.example", &answer).await);
    assert!(session(&services, &first).await.is_some());
    assert_eq!(keys::of_user(store, first.user).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_member_who_never_proved_the_address_does_so_once() {
    let services = set_up().await;
    let org = owner(&services).await;
    domain(&services, &org, "acme.example", SsoEnforcement::Off, true).await;
    let before = signed_up(&services, &org, GRACE).await;
    let ctx = session(&services, &before).await.unwrap();
    // An issuer that no domain trusts proves no address.
    assert_eq!(link(&services, &ctx, "issuer", &says("g", GRACE)).await, linked());
    opened(through(&services, "issuer", &says("g", GRACE)).await);
    assert!(session(&services, &before).await.is_some());
    assert!(!services.users.me(&ctx).await.unwrap().is_email_verified);

    let now = opened(through(&services, "google-oauth2", &says("g", GRACE)).await);
    assert_eq!(now.user, before.user);
    assert!(session(&services, &before).await.is_none());
    assert_eq!(level(&services, &org, now.user).await, Some(Level::Member));
    let ctx = session(&services, &now).await.unwrap();
    assert_eq!(services.identity.linked_accounts(&ctx).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_provider_that_lets_a_new_user_join_without_trust_proves_no_address() {
    let services = set_up().await;
    let org = owner(&services).await;
    domain(&services, &org, "acme.example", SsoEnforcement::Off, true).await;
    // A colleague who left still has the address at GitHub.
    let before = opened(through(&services, "github", &says("former", GRACE)).await);
    let ctx = session(&services, &before).await.unwrap();
    services.keys.create(&ctx, key_input()).await.unwrap();

    let now = opened(through(&services, "google-oauth2", &says("g", GRACE)).await);
    assert_eq!(now.user, before.user);
    assert!(session(&services, &before).await.is_none());
    let store = services.organizations.store();
    assert!(keys::of_user(store, now.user).await.unwrap().is_empty());
    let refused = through(&services, "github", &says("former", GRACE)).await;
    assert!(matches!(refused, SignedOn::Refused(..)));
    assert_eq!(level(&services, &org, now.user).await, Some(Level::Member));
}

#[tokio::test]
async fn an_organization_keeps_its_only_owner() {
    let services = set_up().await;
    let org = owner(&services).await;
    let acme = domain(&services, &org, "acme.example", SsoEnforcement::Off, true).await;
    let grace = outsider(&services, "grace").await;
    let store = services.organizations.store();
    let row = users::get(store, grace.user()).await.unwrap().unwrap();
    let row = users::UserRow { email: GRACE.to_owned(), ..row };
    users::create(store, &row, GRACE).await.unwrap();
    organization(&services, &grace, "Own").await;
    let own = services.organizations.enter(&grace, "@current").await.unwrap();
    opened(through_saml(&services, acme, "x@acme.example", &says("g", GRACE)).await);
    assert_eq!(level(&services, &own, grace.user()).await, Some(Level::Owner));
    assert_eq!(level(&services, &org, grace.user()).await, Some(Level::Member));
}

#[tokio::test]
async fn provisioning_takes_an_address_that_another_person_occupied() {
    let services = set_up().await;
    let org = owner(&services).await;
    let acme = domain(&services, &org, "acme.example", SsoEnforcement::Off, false).await;
    let evil = mallory(&services).await;
    let prepared = signed_up(&services, &evil, GRACE).await;
    let scim = scim(&services, &org, acme).await;
    let user = json!({"schemas": [], "userName": GRACE});
    services.scim.create_user(&scim, &user).await.unwrap();
    assert_eq!(level(&services, &org, prepared.user).await, Some(Level::Member));
    assert_eq!(level(&services, &evil, prepared.user).await, None);
    assert!(session(&services, &prepared).await.is_none());
    let by_password = services.identity.sign_in(GRACE, PASSWORD, &Peer::default()).await;
    assert!(matches!(by_password, Err(Error::Invalid(_))));
}

/// The identity provider of a domain, with its token.
async fn scim(
    services: &Services,
    org: &OrgCtx,
    domain: weir_model::DomainId,
) -> crate::scim::ScimCtx {
    let id = domain.to_string();
    let of = services.scim.provisionable(org, &id).await.unwrap();
    let token = services.scim.create_token(org, of).await.unwrap().value.unwrap();
    services.scim.authenticate(&id, &token, super::SITE, "request".to_owned()).await.unwrap()
}

#[tokio::test]
async fn an_account_with_another_address_does_not_count_where_its_provider_is_required() {
    let services = set_up().await;
    let org = owner(&services).await;
    let mail = domain(&services, &org, "mail.example", SsoEnforcement::Off, false).await;
    let private = says("private", "ada@elsewhere.example");
    // Linked and used while nothing is required.
    let (identity, peer) = (&services.identity, Peer::default());
    let by_password = identity.sign_in("ada.l@mail.example", PASSWORD, &peer).await.unwrap();
    let ctx = session(&services, &by_password).await.unwrap();
    assert_eq!(link(&services, &ctx, "google-oauth2", &private).await, linked());
    let before = opened(through(&services, "google-oauth2", &private).await);
    let impact = services.domains.impact(&org, &mail.to_string()).await.unwrap();
    assert!(impact.ways.iter().all(|way| way.proved.is_empty() && way.locks_out_owners));

    require(&services, mail, SsoEnforcement::Provider(GOOGLE)).await;
    assert!(session(&services, &before).await.is_none());
    let refused = through(&services, "google-oauth2", &private).await;
    assert_eq!(refused, SignedOn::Refused(None, "/next".to_owned()));
    assert_eq!(reasons(&services, &org).await, [""; 0], "the address is not one of the domain");
    let unsaid = through(&services, "google-oauth2", &nameless("private")).await;
    assert_eq!(unsaid, SignedOn::Refused(None, "/next".to_owned()));
    // The own account signs in, and a private one cannot be linked there.
    let own = says("own", "Ada.L@mail.example");
    let own = opened(through(&services, "google-oauth2", &own).await);
    let ctx = session(&services, &own).await.unwrap();
    let other = says("another", "ada@elsewhere.example");
    let refused = link(&services, &ctx, "google-oauth2", &other).await;
    assert_eq!(refused, SignedOn::NotLinked(Some("other_address"), "/back".to_owned()));
    let impact = services.domains.impact(&org, &mail.to_string()).await.unwrap();
    let google = impact.ways.iter().find(|way| way.sso_enforcement.text() == "google-oauth2");
    assert_eq!(google.unwrap().proved.len(), 1);
}

#[tokio::test]
async fn an_account_counts_without_an_address_after_it_proved_one() {
    let services = set_up().await;
    let org = owner(&services).await;
    let acme = domain(&services, &org, "acme.example", issuer(), true).await;
    let first = opened(through(&services, "issuer", &says("g", GRACE)).await);
    let later = opened(through(&services, "issuer", &nameless("g")).await);
    assert_eq!(later.user, first.user);
    assert!(session(&services, &later).await.is_some());
    // Not after another address.
    let moved = through(&services, "issuer", &says("g", "g@elsewhere.example")).await;
    assert!(matches!(moved, SignedOn::Refused(..)));
    // And not an account that was linked before and never proved anything.
    require(&services, acme, SsoEnforcement::Off).await;
    let ctx = session(&services, &first).await.unwrap();
    assert_eq!(link(&services, &ctx, "issuer", &nameless("private")).await, linked());
    opened(through(&services, "issuer", &nameless("private")).await);
    require(&services, acme, issuer()).await;
    let refused = through(&services, "issuer", &nameless("private")).await;
    assert!(matches!(refused, SignedOn::Refused(..)));
}

#[tokio::test]
async fn a_user_deactivated_in_one_organization_signs_in_to_another() {
    let services = set_up().await;
    let org = owner(&services).await;
    let acme = domain(&services, &org, "acme.example", SsoEnforcement::Off, true).await;
    let first = opened(through(&services, "google-oauth2", &says("g", GRACE)).await);
    let grace = session(&services, &first).await.unwrap();
    let evil = mallory(&services).await;
    join(&services, evil.organization, &grace, Level::Member).await;
    let scim = scim(&services, &org, acme).await;
    let off = json!({
        "schemas": ["urn:ietf:params:scim:api:messages:2.0:PatchOp"],
        "Operations": [{"op": "replace", "path": "active", "value": false}],
    });
    let id = first.user.to_string();
    services.scim.patch_user(&scim, &id, &off, &Precondition::default()).await.unwrap();
    assert_eq!(level(&services, &org, first.user).await, None);

    let again = opened(through(&services, "google-oauth2", &says("g", GRACE)).await);
    assert_eq!(again.user, first.user);
    assert_eq!(level(&services, &org, first.user).await, None);
    assert_eq!(level(&services, &evil, first.user).await, Some(Level::Member));
    // The provider of the organization counts for its members alone.
    let by_saml = through_saml(&services, acme, "x@acme.example", &says("g", GRACE)).await;
    assert!(matches!(by_saml, SignedOn::Refused(..)));
}

async fn demand_a_second_factor(services: &Services, org: &OrgCtx) {
    let patch = OrganizationPatch { enforce_2fa: Patch::Set(true), ..Default::default() };
    services.organizations.update(org, patch).await.unwrap();
}

#[tokio::test]
async fn a_provider_stands_for_the_second_factor_where_it_is_trusted() {
    let services = set_up().await;
    let org = owner(&services).await;
    domain(&services, &org, "acme.example", SsoEnforcement::Off, true).await;
    let own = opened(through(&services, "google-oauth2", &says("g", GRACE)).await);
    let grace = session(&services, &own).await.unwrap();
    let private = says("private", "grace@elsewhere.example");
    assert_eq!(link(&services, &grace, "google-oauth2", &private).await, linked());
    let private = opened(through(&services, "google-oauth2", &private).await);
    let private = session(&services, &private).await.unwrap();
    let other = mallory(&services).await;
    join(&services, other.organization, &grace, Level::Member).await;
    for org in [&org, &other] {
        demand_a_second_factor(&services, org).await;
    }
    let enters = async |ctx: &Ctx, org: &OrgCtx| {
        let entered = services.organizations.enter(ctx, &org.organization.to_string()).await;
        entered.is_ok()
    };
    assert!(enters(&grace, &org).await);
    assert!(!enters(&grace, &other).await, "the other organization trusts no provider");
    assert!(!enters(&private, &org).await, "no domain confirms the address of the private account");
}

#[tokio::test]
async fn the_link_of_the_operator_needs_no_second_factor_where_a_provider_is_required() {
    let services = set_up().await;
    let org = owner(&services).await;
    demand_a_second_factor(&services, &org).await;
    let by_link = async || {
        let link = services.identity.sign_in_link("ada.l@mail.example").await.unwrap().unwrap();
        let (page, token) = link.split_once("?token=").unwrap();
        let (user, peer) = (page.strip_prefix("/login/link/").unwrap(), Peer::default());
        let used = services.identity.use_sign_in_link(user, token, &peer, "request").await;
        let ctx = session(&services, &used.unwrap()).await.unwrap();
        services.organizations.enter(&ctx, &org.organization.to_string()).await.is_ok()
    };
    assert!(!by_link().await);
    domain(&services, &org, "mail.example", SsoEnforcement::Saml, false).await;
    assert!(by_link().await);
}

#[tokio::test]
async fn unlinking_ends_the_other_sessions() {
    let services = set_up().await;
    let _ = owner(&services).await;
    let (identity, peer) = (&services.identity, Peer::default());
    let this = identity.sign_in("ada.l@mail.example", PASSWORD, &peer).await.unwrap();
    let ctx = session(&services, &this).await.unwrap();
    let answer = says("a", "a@elsewhere.example");
    assert_eq!(link(&services, &ctx, "github", &answer).await, linked());
    let other = opened(through(&services, "github", &answer).await);
    let id = identity.linked_accounts(&ctx).await.unwrap().remove(0).id;
    identity.unlink(&ctx, &id).await.unwrap();
    assert!(session(&services, &other).await.is_none());
    assert!(session(&services, &this).await.is_some());
}

#[tokio::test]
async fn ways_that_do_not_work_are_no_ways() {
    let services = set_up().await;
    let org = owner(&services).await;
    let acme = domain(&services, &org, "acme.example", SsoEnforcement::Off, true).await;
    let own = opened(through_saml(&services, acme, "x@acme.example", &says("g", GRACE)).await);
    let ctx = session(&services, &own).await.unwrap();
    let ours = crate::sso::ProviderInput {
        name: "ours".to_owned(),
        label: String::new(),
        issuer: "https://ours.example".to_owned(),
        client_id: "weir".to_owned(),
        client_secret: "secret".to_owned().into(),
    };
    services.providers.save(&org.ctx, ours).await.unwrap();
    assert_eq!(link(&services, &ctx, "ours", &says("g", "g@x.example")).await, linked());
    let all = services.identity.linked_accounts(&ctx).await.unwrap();
    let id = |connection: &str| {
        let found = all.iter().find(|one| one.connection.starts_with(connection));
        found.unwrap().id.clone()
    };
    services.providers.remove(&org.ctx, "ours").await.unwrap();
    let refused = services.identity.unlink(&ctx, &id("saml")).await;
    assert!(matches!(refused, Err(Error::Conflict { code: "last_way", .. })));
    // An account that signs in no user can be unlinked.
    services.identity.unlink(&ctx, &id("ours")).await.unwrap();
}

#[tokio::test]
async fn a_deactivated_user_gets_no_session_and_no_key() {
    let services = set_up().await;
    let org = owner(&services).await;
    let store = services.organizations.store();
    let now = services.clock.now();
    let linus = outsider(&services, "linus").await;
    join(&services, org.organization, &linus, Level::Member).await;
    members::set_active(store, linus.user(), false, &[], now).await.unwrap();
    let refused = services.keys.create(&linus, key_input()).await;
    assert!(matches!(refused, Err(Error::NotAuthenticated)));
    assert!(keys::of_user(store, linus.user()).await.unwrap().is_empty());
}
