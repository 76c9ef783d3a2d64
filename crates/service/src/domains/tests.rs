//! Domains on a store in memory, with name servers of the test.

use std::sync::Mutex;

use weir_model::Timestamp;
use weir_model::errors::ErrorKind;
use weir_model::invites::{InviteInput, SignUpInput};
use weir_model::organizations::Level;
use weir_model::sso::ProviderName;
use weir_store::mail::MailRow;

use super::*;
use crate::Services;
use crate::ctx::Ctx;
use crate::identity::Peer;
use crate::test_support::{self, PASSWORD, ada, organization};

/// Name servers with the same records everywhere.
#[derive(Default)]
struct Records(Mutex<Option<Vec<TxtRecord>>>);

impl Records {
    fn are(&self, texts: &[&str]) {
        let records = texts.iter().map(|text| vec![text.as_bytes().to_vec()]).collect();
        *self.0.lock().unwrap() = Some(records);
    }

    fn fail(&self) {
        *self.0.lock().unwrap() = None;
    }
}

impl TxtLookup for Records {
    fn txt<'a>(&'a self, _name: &'a str) -> Pending<'a> {
        let records = self.0.lock().unwrap().clone();
        let answer = records.ok_or_else(|| LookupError("no name servers".to_owned()));
        Box::pin(async move { answer })
    }
}

async fn set_up() -> (Services, OrgCtx, Arc<Records>) {
    let records = Arc::new(Records::default());
    let services = test_support::set_up_with_lookup(Arc::<Records>::clone(&records)).await;
    let org = enter(&services, &ada(&services).await).await;
    (services, org, records)
}

async fn enter(services: &Services, ctx: &Ctx) -> OrgCtx {
    services.organizations.enter(ctx, "@current").await.unwrap()
}

/// The owner's organization, with the present time.
async fn now(services: &Services, org: &OrgCtx) -> OrgCtx {
    enter(services, &test_support::person(services, org.ctx.user())).await
}

fn input(name: &str) -> DomainInput {
    DomainInput { domain: name.to_owned(), saml: SamlPatch::default() }
}

async fn verified(services: &Services, org: &OrgCtx, records: &Records, name: &str) -> Domain {
    let made = services.domains.create(org, input(name)).await.unwrap();
    records.are(&[&made.verification_challenge]);
    let domain = verify(services, org, &made).await.unwrap();
    assert!(domain.is_verified);
    domain
}

async fn verify(services: &Services, org: &OrgCtx, domain: &Domain) -> Result<Domain> {
    let changeable = services.domains.changeable(org, &domain.id.to_string()).await?;
    services.domains.verify(org, changeable).await
}

async fn update(
    services: &Services,
    org: &OrgCtx,
    domain: &Domain,
    patch: DomainPatch,
) -> Result<Domain> {
    let changeable = services.domains.changeable(org, &domain.id.to_string()).await?;
    services.domains.update(org, changeable, patch).await
}

async fn shown(services: &Services, org: &OrgCtx, domain: &Domain) -> DomainDetails {
    services.domains.get(org, &domain.id.to_string()).await.unwrap()
}

/// Writes an enforcement, and SAML settings so that it is in force.
async fn enforce(services: &Services, org: &OrgCtx, domain: &Domain, sso: SsoEnforcement) {
    let store = services.organizations.store();
    let enforced = |row: &DomainRow| {
        let saml = Some("https://idp.example".to_owned());
        let row = DomainRow {
            sso_enforcement: sso,
            saml_entity_id: saml.clone(),
            saml_acs_url: saml.clone(),
            saml_x509_cert: saml,
            ..row.clone()
        };
        Ok::<_, weir_store::Error>(Some((row, Vec::new())))
    };
    let updated = weir_store::update::update(store, domain.id, (), enforced).await.unwrap();
    assert!(updated.stored().is_some_and(|row| row.organization == org.organization));
}

fn code(error: &Error) -> &str {
    match error {
        Error::Invalid(fault) => &fault.code,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn one_of_several_concurrent_claims_wins() {
    let (services, org, records) = set_up().await;
    let ctx = test_support::outsider(&services, "grace").await;
    organization(&services, &ctx, "Coffee").await;
    let other = enter(&services, &ctx).await;
    for round in 0..5 {
        let name = format!("acme{round}.example.com");
        let mut outcomes = Vec::new();
        let mut claimed = Vec::new();
        let claims = [&org, &other, &org, &other]
            .map(|org| (services.clone(), org.clone(), input(&name)))
            .map(|(services, org, input)| {
                tokio::spawn(async move { services.domains.create(&org, input).await })
            });
        for claim in claims {
            outcomes.push(claim.await.unwrap());
        }
        // One in each organization.
        for outcome in outcomes {
            match outcome {
                Ok(domain) => claimed.push(domain),
                Err(error) => assert_eq!(code(&error), "unique"),
            }
        }
        let [first, second] = claimed.as_slice() else { panic!("{claimed:?}") };
        records.are(&[&first.verification_challenge, &second.verification_challenge]);
        let mut holders = Vec::new();
        for (org, domain) in [(&org, first), (&org, second), (&other, first), (&other, second)] {
            let Ok(changeable) = services.domains.changeable(org, &domain.id.to_string()).await
            else {
                continue;
            };
            let (services, org) = (services.clone(), org.clone());
            holders
                .push(tokio::spawn(async move { services.domains.verify(&org, changeable).await }));
        }
        assert_eq!(holders.len(), 2);
        let mut won = 0;
        for holder in holders {
            match holder.await.unwrap() {
                Ok(domain) => won += usize::from(domain.is_verified),
                Err(error) => assert_eq!(code(&error), "verified_elsewhere"),
            }
        }
        assert_eq!(won, 1);
    }
}

#[tokio::test]
async fn public_suffixes_are_refused() {
    let (services, org, _) = set_up().await;
    for name in ["co.uk", "github.io", "example", "xn--a.com", "127.0.0.1", "a--b.com"] {
        let error = services.domains.create(&org, input(name)).await.unwrap_err();
        assert_eq!(code(&error), "invalid_input", "{name}");
    }
    for name in ["acme.co.uk", "acme.github.io", "xn--bcher-kva.example", "www.acme.example"] {
        services.domains.create(&org, input(name)).await.unwrap();
    }
}

#[tokio::test]
async fn another_name_is_another_claim() {
    let (services, org, records) = set_up().await;
    let domain = verified(&services, &org, &records, "acme.example").await;
    let jit = DomainPatch { jit_provisioning_enabled: Patch::Set(true), ..DomainPatch::default() };
    let domain = update(&services, &org, &domain, jit.clone()).await.unwrap();
    assert!(domain.jit_provisioning_enabled);
    enforce(&services, &org, &domain, SsoEnforcement::Saml).await;

    let same =
        DomainPatch { domain: Patch::Set("acme.example".to_owned()), ..DomainPatch::default() };
    let unchanged = update(&services, &org, &domain, same).await.unwrap();
    assert_eq!(unchanged.verification_challenge, domain.verification_challenge);
    assert!(unchanged.is_verified);

    let renamed =
        DomainPatch { domain: Patch::Set("tea.example".to_owned()), ..DomainPatch::default() };
    // A patch with another name cannot set fields that only a verified domain has.
    let both = DomainPatch { domain: renamed.domain.clone(), ..jit };
    let error = update(&services, &org, &domain, both).await.unwrap_err();
    assert_eq!(code(&error), "verification_required");
    let after = update(&services, &org, &domain, renamed).await.unwrap();
    assert_ne!(after.verification_challenge, domain.verification_challenge);
    assert_eq!((after.is_verified, after.verified_at), (false, None));
    assert_eq!(
        (after.jit_provisioning_enabled, after.sso_enforcement),
        (false, SsoEnforcement::Off)
    );
    // The old name is free, the new one is not.
    services.domains.create(&org, input("acme.example")).await.unwrap();
    let error = services.domains.create(&org, input("tea.example")).await.unwrap_err();
    assert_eq!(code(&error), "unique");
    // No verified domain is left to check.
    services.clock.advance(2 * DAY_SECONDS);
    let due = rows::due(services.organizations.store(), services.clock.now()).await.unwrap();
    assert_eq!(due, []);
}

#[tokio::test]
async fn a_record_that_goes_away_suspends_after_seven_days() {
    let (services, org, records) = set_up().await;
    let domain = verified(&services, &org, &records, "acme.example").await;
    enforce(&services, &org, &domain, SsoEnforcement::Saml).await;
    let peer = Peer::default();
    let enforced = async || {
        let answer = services.identity.precheck("eve@acme.example", &peer).await.unwrap();
        answer.sso_enforcement.is_some()
    };
    let next_day = async || {
        services.clock.advance(DAY_SECONDS);
        services.domains.check_again().await.unwrap();
        let org = now(&services, &org).await;
        shown(&services, &org, &domain).await
    };
    let found = next_day().await;
    assert_eq!((found.verification_failing_since, found.is_suspended), (None, false));
    let checked_at = found.checked_at;
    // Not due again on the same day.
    records.fail();
    services.domains.check_again().await.unwrap();
    assert_eq!(shown(&services, &org, &domain).await.checked_at, checked_at);

    let missing = next_day().await;
    let since = missing.verification_failing_since;
    assert_eq!(since, Some(services.clock.now()));
    for _ in 1..7 {
        let missing = next_day().await;
        assert!(missing.domain.is_verified && !missing.is_suspended);
        assert_eq!(missing.verification_failing_since, since);
    }
    assert!(enforced().await);
    records.are(&["another"]);
    let suspended = next_day().await;
    assert!(suspended.domain.is_verified && suspended.is_suspended);
    assert!(!enforced().await);

    records.are(&[&domain.verification_challenge]);
    let found = next_day().await;
    assert_eq!((found.verification_failing_since, found.is_suspended), (None, false));
    assert!(enforced().await);

    // The log has an entry when it begins, when the rules are suspended, and when it
    // ends.
    let query = weir_model::activity::ActivityQuery::default();
    let log = services.activity.of_organization(&org, &query, Page::default());
    let audit_entries = log.await.unwrap().results;
    let by_itself: Vec<_> = audit_entries.iter().filter(|entry| entry.is_system).collect();
    let states: Vec<_> = by_itself
        .iter()
        .map(|entry| entry.detail.changes.last().unwrap().after.as_str().unwrap())
        .collect();
    assert_eq!(states, ["found", "missing, rules suspended", "missing"]);
}

#[tokio::test]
async fn owners_are_notified_before_the_last_certificate_expires() {
    let services = test_support::set_up_with_mail().await;
    let ctx = test_support::ada(&services).await;
    let org = enter(&services, &ctx).await;
    let now = services.clock.now();
    let day = |days: i64| Some(now.plus_seconds(days * DAY_SECONDS));
    let id = services.domains.create(&org, input("acme.example")).await.unwrap().id;
    let store = services.organizations.store();
    let stored = |row: &DomainRow| {
        let saml = Some("https://idp.example".to_owned());
        let row = DomainRow {
            verified_at: Some(now),
            due_at: Some(now),
            saml_entity_id: saml.clone(),
            saml_acs_url: saml.clone(),
            saml_x509_cert: saml,
            certificate_expires_at: day(20),
            next_certificate_expires_at: day(40),
            ..row.clone()
        };
        Ok::<_, weir_store::Error>(Some((row, Vec::new())))
    };
    weir_store::update::update(store, id, (), stored).await.unwrap();
    let mut notified = Vec::new();
    for day in 0..45 {
        services.domains.check_again().await.unwrap();
        let mails = weir_store::mail::due(store, services.clock.now()).await.unwrap();
        let about = |mail: &&MailRow| format!("{mail:?}").contains("CertificateExpires");
        if mails.iter().filter(about).count() > notified.len() {
            notified.push(day);
        }
        services.clock.advance(DAY_SECONDS);
    }
    // 30 and 7 days before the second one expires, on the day of the first check after.
    assert_eq!(notified, [10, 33]);
}

#[tokio::test]
async fn time_without_checks_does_not_suspend() {
    let (services, org, records) = set_up().await;
    let domain = verified(&services, &org, &records, "acme.example").await;
    records.fail();
    services.clock.advance(DAY_SECONDS);
    services.domains.check_again().await.unwrap();
    services.clock.advance(30 * DAY_SECONDS);
    let org = now(&services, &org).await;
    assert!(!shown(&services, &org, &domain).await.is_suspended);
    records.are(&[&domain.verification_challenge]);
    services.domains.check_again().await.unwrap();
    assert_eq!(shown(&services, &org, &domain).await.verification_failing_since, None);
}

#[tokio::test]
async fn domains_are_spread_over_the_day() {
    let start = Timestamp::from_micros(1_780_000_000_000_000);
    let mut hours = std::collections::BTreeSet::new();
    for at in 0..200 {
        let domain = DomainId(ids::time_ordered(start.plus_seconds(at)));
        let next = checks::next(domain, start);
        assert!(next > start && next <= start.plus_seconds(DAY_SECONDS));
        // From then on, the same time every day.
        assert_eq!(checks::next(domain, next), next.plus_seconds(DAY_SECONDS));
        hours.insert((next.micros() - start.micros()) / (3_600 * 1_000_000));
    }
    assert!(hours.len() > 20, "{hours:?}");
}

#[tokio::test]
async fn a_password_is_refused_where_a_provider_is_enforced() {
    let (services, org, records) = set_up().await;
    let key = test_support::key(&services, &org.ctx, test_support::key_input()).await;
    let domain = verified(&services, &org, &records, "mail.example").await;
    let peer = Peer::default();
    let sign_in = async |email: &str, password: &str| {
        services.identity.sign_in(email, password, &peer).await.map(drop)
    };
    sign_in("ada.l@mail.example", PASSWORD).await.unwrap();
    enforce(&services, &org, &domain, SsoEnforcement::Saml).await;

    // The same answer whether or not there is such a user, and for every password.
    for (email, password) in [
        ("ada.l@mail.example", PASSWORD),
        ("Ada.L@MAIL.example", "wrong"),
        ("nobody@mail.example", "wrong"),
    ] {
        let Error::Invalid(fault) = sign_in(email, password).await.unwrap_err() else { panic!() };
        assert_eq!(fault.code, "sso_enforced");
        assert_eq!(fault.detail, "You can only login with SSO for this account (saml).");
    }
    let again = services.identity.sign_in_again(&org.ctx, PASSWORD, &peer).await.unwrap_err();
    assert_eq!(code(&again), "sso_enforced");
    // A subdomain or a sibling is another domain.
    for email in ["ada@tea.mail.example", "ada@mail.example.org", "mail.example", "ada@", "@"] {
        assert_eq!(code(&sign_in(email, "wrong").await.unwrap_err()), "invalid_credentials");
    }
    // Keys are not affected.
    enter(&services, &key).await;

    let invite = InviteInput {
        target_email: "grace@mail.example".to_owned(),
        first_name: String::new(),
        level: Level::Member,
        message: None,
        send_email: false,
    };
    let invite = services.invites.create(&org, invite).await.unwrap();
    let input = || {
        let (first_name, password) = ("Grace".to_owned(), PASSWORD.to_owned());
        Ok(SignUpInput { first_name, password })
    };
    let link = invite.token.unwrap().0;
    let error = services.identity.sign_up(&link, input, &peer, "request").await.unwrap_err();
    assert_eq!(code(&error), "sso_enforced");

    enforce(&services, &org, &domain, SsoEnforcement::Off).await;
    sign_in("ada.l@mail.example", PASSWORD).await.unwrap();
    services.identity.sign_up(&link, input, &peer, "request").await.unwrap();
}

#[tokio::test]
async fn rules_act_only_while_the_domain_is_verified() {
    let (services, org, _) = set_up().await;
    let made = services.domains.create(&org, input("mail.example")).await.unwrap();
    let google = SsoEnforcement::Provider(ProviderName::GOOGLE);
    enforce(&services, &org, &made, google).await;
    let peer = Peer::default();
    services.identity.sign_in("ada.l@mail.example", PASSWORD, &peer).await.unwrap();
    let answer = services.identity.precheck("ada.l@mail.example", &peer).await.unwrap();
    assert_eq!((answer.sso_enforcement, answer.saml_available), (None, false));
}

#[tokio::test]
async fn questions_are_counted_by_network() {
    let (services, _, _) = set_up().await;
    let peer = Peer { address: Some("192.0.2.7".parse().unwrap()), ..Peer::default() };
    let set_lookup = async |peer: &Peer| services.identity.precheck("a@mail.example", peer).await;
    for _ in 0..300 {
        set_lookup(&peer).await.unwrap();
    }
    assert_eq!(set_lookup(&peer).await.unwrap_err().kind(), ErrorKind::RateLimited);
    let other = Peer { address: Some("192.0.2.8".parse().unwrap()), ..Peer::default() };
    set_lookup(&other).await.unwrap();
    services.clock.advance(61);
    set_lookup(&peer).await.unwrap();
}

#[tokio::test]
async fn the_operator_releases_claims() {
    let (services, org, records) = set_up().await;
    services.domains.create(&org, input("stale.example")).await.unwrap();
    verified(&services, &org, &records, "acme.example").await;
    let release = async |name, too| services.domains.release(name, too).await.unwrap();
    assert_eq!(release("nobody.example", true).await, Released::Unverified);
    assert_eq!(release("", true).await, Released::Unverified);
    assert_eq!(release("stale.example", true).await, Released::Unverified);
    assert_eq!(release("acme.example", false).await, Released::Verified);
    assert_eq!(release("acme.example", true).await, Released::Yes);
    assert_eq!(services.domains.list(&org, Page::default()).await.unwrap().count, 1);
}

#[tokio::test]
async fn an_organization_takes_its_domains_with_it() {
    let (services, org, records) = set_up().await;
    verified(&services, &org, &records, "acme.example").await;
    services.domains.create(&org, input("tea.example")).await.unwrap();
    services.organizations.delete(&org).await.unwrap();
    let store = services.organizations.store();
    assert_eq!(rows::by_name(store, "acme.example").await.unwrap(), None);
    assert_eq!(rows::ordered(store, org.organization).await.unwrap(), []);
    services.clock.advance(2 * DAY_SECONDS);
    assert_eq!(rows::due(store, services.clock.now()).await.unwrap(), []);
}

#[tokio::test]
async fn the_answer_of_the_name_servers_is_shown() {
    let (services, org, records) = set_up().await;
    let made = services.domains.create(&org, input("acme.example")).await.unwrap();
    let id = made.id.to_string();
    let look = async || {
        let changeable = services.domains.changeable(&org, &id).await.unwrap();
        services.domains.look(&org, changeable).await.unwrap()
    };
    let before = shown(&services, &org, &made).await;
    assert_eq!((before.last_answer, before.next_check_at), (None, None));
    records.are(&[]);
    let found = look().await;
    let nothing = "there is no TXT record at this name";
    assert_eq!((found.last_answer.as_deref(), found.domain.is_verified), (Some(nothing), false));
    records.are(&["v=spf1 -all"]);
    let other = "the record is another one: \"v=spf1 -all\"";
    assert_eq!(look().await.last_answer.as_deref(), Some(other));
    records.are(&[&made.verification_challenge]);
    let found = look().await;
    assert_eq!(found.last_answer.as_deref(), Some("a TXT record with this value"));
    assert!(found.domain.is_verified && found.next_check_at.is_some());
    // A verified domain can be checked at any time too.
    records.are(&[]);
    let found = look().await;
    assert!(found.domain.is_verified && found.verification_failing_since.is_some());
    assert_eq!(found.last_answer.as_deref(), Some(nothing));
}

#[tokio::test]
async fn the_members_of_a_domain_are_those_with_its_addresses() {
    let (services, org, _) = set_up().await;
    let made = services.domains.create(&org, input("mail.example")).await.unwrap();
    let linus = test_support::outsider(&services, "linus").await;
    test_support::join(&services, org.organization, &linus, Level::Member).await;
    let impact = services.domains.impact(&org, &made.id.to_string()).await.unwrap();
    assert!(impact.includes_you);
    assert_eq!(impact.members.len(), 2);
    let other = services.domains.create(&org, input("more.mail.example")).await.unwrap();
    let impact = services.domains.impact(&org, &other.id.to_string()).await.unwrap();
    assert_eq!(impact.owners_elsewhere, ["Ada.L@mail.example"]);
    assert!(impact.members.is_empty() && !impact.includes_you);
    assert!(impact.ways.iter().all(|way| way.unproved.is_empty() && !way.locks_out_owners));
}

#[tokio::test]
async fn an_organization_has_a_maximum_of_domains() {
    let (services, org, _) = set_up().await;
    let made = services.domains.create(&org, input("d0.example")).await.unwrap();
    let store = services.organizations.store();
    let row = rows::get(store, org.organization, made.id).await.unwrap().unwrap();
    for number in 1..DOMAINS_MAX {
        let id = DomainId(ids::time_ordered(org.ctx.now));
        let row = DomainRow { id, domain: format!("d{number}.example"), ..row.clone() };
        let outcome = rows::create(store, &row, DOMAINS_MAX, &[]).await.unwrap();
        assert_eq!(outcome, Created::Yes);
    }
    let refused = services.domains.create(&org, input("one.more.example")).await.unwrap_err();
    let Error::Invalid(fault) = refused else { panic!("{refused}") };
    assert_eq!(fault.detail, "An organization may have at most 200 domains. Delete one first.");
    let changeable = services.domains.changeable(&org, &made.id.to_string()).await.unwrap();
    services.domains.delete(&org, changeable).await.unwrap();
    assert!(services.domains.create(&org, input("one.more.example")).await.is_ok());
}
