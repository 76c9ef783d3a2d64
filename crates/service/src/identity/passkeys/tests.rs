//! Passkeys on a store in memory and a fixed clock, with an authenticator in software.

use serde_json::Value;
use weir_model::activity::{ActivityQuery, AuditAction};
use weir_model::domains::{DomainInput, SamlPatch, SsoEnforcement};
use weir_model::organizations::{Level, OrganizationPatch};
use weir_model::pagination::Page;
use weir_model::sso::ProviderName;
use weir_model::{Patch, UserId};
use weir_store::domains::DomainRow;
use weir_store::mail::MailRow;
use weir_testservers::SoftPasskey;

use super::*;
use crate::Services;
use crate::identity::second_factor::tests as second_factor_tests;
use crate::test_support::{self, PASSWORD, ada, join, outsider, person};

const SITE: &str = "https://weir.example";
const EMAIL: &str = "ada.l@mail.example";

fn from<'a>(browser: Option<&'a str>, peer: &'a Peer) -> Origin<'a> {
    Origin { site: SITE, browser, peer, request_id: "request" }
}

fn code_of(error: &Error) -> &str {
    match error {
        Error::Invalid(fault) => &fault.code,
        Error::Conflict { code, .. } => code,
        Error::SignInAgain => "again",
        Error::NotFound(_) => "not found",
        Error::NotAuthenticated => "not authenticated",
        Error::Forbidden(_) => "forbidden",
        _ => "other",
    }
}

/// The code of a refusal, or `yes`.
fn outcome<T>(result: Result<T>) -> String {
    result.map_or_else(|error| code_of(&error).to_owned(), |_| "yes".to_owned())
}

/// Ada and a device of hers.
struct Ada {
    services: Services,
    ctx: Ctx,
    device: SoftPasskey,
    codes: Vec<String>,
}

impl Ada {
    async fn open() -> Self {
        Self::on(test_support::set_up().await).await
    }

    async fn on(services: Services) -> Self {
        let ctx = ada(&services).await;
        let (device, added) = add(&services, &ctx, "Phone").await;
        let ctx = context(&services, &added.session.token).await.unwrap();
        Self { services, ctx, device, codes: added.codes }
    }

    async fn challenge(&self) -> PasskeyChallenge {
        let peer = Peer::default();
        self.services.identity.begin_passkey_sign_in(from(None, &peer)).await.unwrap()
    }

    async fn finish(&self, challenge: &PasskeyChallenge, answer: &str) -> Result<NewSession> {
        let peer = Peer::default();
        let from = from(Some(&challenge.browser), &peer);
        self.services.identity.sign_in_with_passkey(answer, from).await
    }

    /// Signs in with the device, with a challenge of its own.
    async fn sign_in(&mut self) -> Result<NewSession> {
        let challenge = self.challenge().await;
        let answer = self.device.answer(&challenge.options);
        self.finish(&challenge, &answer).await
    }
}

async fn context(services: &Services, token: &str) -> Option<Ctx> {
    services.identity.session(token, "request".to_owned()).await.unwrap()
}

async fn add(services: &Services, ctx: &Ctx, name: &str) -> (SoftPasskey, AddedPasskey) {
    let (identity, peer) = (&services.identity, Peer::default());
    let begun = identity.begin_adding_passkey(ctx, from(None, &peer)).await.unwrap();
    let (device, answer) = SoftPasskey::create(&begun.options, SITE);
    let from = from(Some(&begun.browser), &peer);
    (device, identity.add_passkey(ctx, name, &answer, from).await.unwrap())
}

/// The token of a sign-in with the password that waits for the second step.
async fn waiting(services: &Services) -> String {
    let signed_in = services.identity.sign_in(EMAIL, PASSWORD, &Peer::default()).await;
    let Err(Error::SecondFactor(pending)) = signed_in else { panic!("{signed_in:?}") };
    pending.token
}

async fn changes(services: &Services, ctx: &Ctx, action: AuditAction) -> Vec<(String, Value)> {
    let organization = services.users.me(ctx).await.unwrap().organizations[0].id.to_string();
    let org = services.organizations.enter(ctx, &organization).await.unwrap();
    let all = ActivityQuery::default();
    let log = services.activity.of_organization(&org, &all, Page::default()).await.unwrap();
    let entries = log.results.into_iter().filter(|entry| entry.activity == action);
    let changes = entries.flat_map(|entry| entry.detail.changes);
    changes.map(|change| (change.field, change.after)).collect()
}

#[tokio::test]
async fn the_first_passkey_turns_the_second_factor_on() {
    let services = test_support::set_up_with_mail().await;
    let other = services.identity.sign_in(EMAIL, PASSWORD, &Peer::default()).await.unwrap();
    let ada = Ada::on(services).await;
    let (services, identity) = (&ada.services, &ada.services.identity);
    assert!(context(services, &other.token).await.is_none(), "it has not seen the factor");
    assert_eq!(ada.codes.len(), 10);
    assert!(services.users.me(&ada.ctx).await.unwrap().is_2fa_enabled);
    let state = identity.second_factor(&ada.ctx).await.unwrap();
    assert_eq!((state.since, state.has_app, state.codes_left), (Some(ada.ctx.now), false, 10));

    // The second one changes nothing about that.
    services.clock.advance(1);
    let later = Ctx { now: services.clock.now(), ..ada.ctx.clone() };
    let (_, added) = add(services, &later, "  Key \u{1f511} ").await;
    assert_eq!(added.codes, Vec::<String>::new());
    assert!(context(services, &added.session.token).await.is_some());
    let listed = identity.own_passkeys(&ada.ctx).await.unwrap();
    let names: Vec<&str> = listed.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["Phone", "Key \u{1f511}"]);
    assert_eq!(listed[0].used_at, None);
    let store = services.organizations.store();
    let mails = weir_store::mail::due(store, services.clock.now()).await.unwrap();
    let is_about = |mail: &&MailRow| format!("{mail:?}").contains("PasskeyAdded");
    assert_eq!(mails.iter().filter(is_about).count(), 2);
}

#[tokio::test]
async fn the_list_of_members_names_passkeys() {
    let ada = Ada::open().await;
    let me = ada.services.users.me(&ada.ctx).await.unwrap();
    let organization = me.organizations[0].id.to_string();
    let org = ada.services.organizations.enter(&ada.ctx, &organization).await.unwrap();
    let methods = ada.services.members.sign_in_methods(&org, &[ada.ctx.user()]).await.unwrap();
    assert_eq!(methods, [["Password", "Passkey"]]);
}

#[tokio::test]
async fn a_passkey_signs_in_alone() {
    let mut ada = Ada::open().await;
    let session = ada.sign_in().await.unwrap();
    let ctx = context(&ada.services, &session.token).await.unwrap();
    assert_eq!(ctx.user(), ada.ctx.user());
    let sessions = ada.services.identity.own_sessions(&ctx).await.unwrap();
    assert_eq!(sessions[0].opened_by, "Passkey");
    let listed = ada.services.identity.own_passkeys(&ctx).await.unwrap();
    assert_eq!(listed[0].used_at, Some(ctx.now));
    // The challenge names no user and no passkey.
    let options: Value = serde_json::from_str(&ada.challenge().await.options).unwrap();
    assert_eq!(options["allowCredentials"], serde_json::json!([]));
    assert_eq!(options["rpId"], "weir.example");
    assert_eq!(options["userVerification"], "required");
}

#[tokio::test]
async fn what_the_authenticator_keeps_says_nothing_about_the_user() {
    let ada = Ada::open().await;
    let peer = Peer::default();
    let begun = ada.services.identity.begin_adding_passkey(&ada.ctx, from(None, &peer));
    let options: Value = serde_json::from_str(&begun.await.unwrap().options).unwrap();
    let handle = Uuid::from_slice(ada.device.handle.as_ref().unwrap()).unwrap();
    assert_ne!(UserId(handle), ada.ctx.user());
    // All passkeys of a user have one handle, and the ones that exist are excluded.
    let (second, _) = SoftPasskey::create(&options.to_string(), SITE);
    assert_eq!(second.handle, ada.device.handle);
    assert_eq!(options["excludeCredentials"].as_array().unwrap().len(), 1);
    let selection = &options["authenticatorSelection"];
    assert_eq!(selection["residentKey"], "required");
    assert_eq!(selection["userVerification"], "required");
}

#[tokio::test]
async fn a_challenge_is_answered_once_in_its_browser_and_in_time() {
    let mut ada = Ada::open().await;
    let challenge = ada.challenge().await;
    let answer = ada.device.answer(&challenge.options);
    let other =
        PasskeyChallenge { browser: secrets::token().unwrap().reveal(), ..challenge.clone() };
    assert_eq!(outcome(ada.finish(&other, &answer).await), "passkey_expired");
    assert_eq!(outcome(ada.finish(&challenge, &answer).await), "yes");
    assert_eq!(outcome(ada.finish(&challenge, &answer).await), "passkey_expired", "a replay");
    // An answer to one challenge is worth nothing for another one, not even the first time.
    let (first, second) = (ada.challenge().await, ada.challenge().await);
    let answer = ada.device.answer(&first.options);
    assert_eq!(outcome(ada.finish(&second, &answer).await), "passkey_refused");
    let late = ada.challenge().await;
    let answer = ada.device.answer(&late.options);
    ada.services.clock.advance(weir_webauthn::SECONDS);
    assert_eq!(outcome(ada.finish(&late, &answer).await), "passkey_expired");
    // A wrong answer uses a challenge up.
    let challenge = ada.challenge().await;
    assert_eq!(outcome(ada.finish(&challenge, "{}").await), "passkey_refused");
    let answer = ada.device.answer(&challenge.options);
    assert_eq!(outcome(ada.finish(&challenge, &answer).await), "passkey_expired");
}

/// A browser has one challenge of each purpose.
#[tokio::test]
async fn a_newer_challenge_replaces_the_older_one() {
    let mut ada = Ada::open().await;
    let peer = Peer::default();
    let first = ada.challenge().await;
    let again = from(Some(&first.browser), &peer);
    let second = ada.services.identity.begin_passkey_sign_in(again).await.unwrap();
    assert_eq!(second.browser, first.browser);
    let answer = ada.device.answer(&first.options);
    assert_eq!(outcome(ada.finish(&first, &answer).await), "passkey_refused");
}

#[tokio::test]
async fn hostile_answers_are_refused() {
    type Flaw = fn(&mut SoftPasskey);
    let mut ada = Ada::open().await;
    let flaws: [(&str, Flaw); 7] = [
        ("another origin", |device| device.origin = "https://evil.example".to_owned()),
        ("another port", |device| device.origin = "https://weir.example:8443".to_owned()),
        ("without TLS", |device| device.origin = "http://weir.example".to_owned()),
        ("another relying party", |device| device.rp_id = "evil.example".to_owned()),
        ("a user who is not verified", |device| device.verifies = false),
        ("another handle", |device| device.handle = Some(vec![7; 16])),
        ("no handle", |device| device.handle = None),
    ];
    for (what, flaw) in flaws {
        let mut device = ada.device.copied();
        flaw(&mut device);
        let challenge = ada.challenge().await;
        let answer = device.answer(&challenge.options);
        assert_eq!(outcome(ada.finish(&challenge, &answer).await), "passkey_refused", "{what}");
    }
    for what in ["authenticatorData", "signature", "clientDataJSON"] {
        let challenge = ada.challenge().await;
        let mut answer: Value =
            serde_json::from_str(&ada.device.answer(&challenge.options)).unwrap();
        let text = answer["response"][what].as_str().unwrap().to_owned();
        let other = if text.ends_with('A') { "Q" } else { "A" };
        answer["response"][what] = format!("{}{other}", &text[..text.len() - 1]).into();
        let refused = ada.finish(&challenge, &answer.to_string()).await;
        assert_eq!(outcome(refused), "passkey_refused", "{what}");
    }
    let long = "a".repeat(20 << 10);
    for answer in ["", "null", "[]", "{", long.as_str()] {
        let challenge = ada.challenge().await;
        assert_eq!(outcome(ada.finish(&challenge, answer).await), "passkey_refused");
    }
    assert_eq!(outcome(ada.sign_in().await), "yes", "the device itself is accepted");
}

#[tokio::test]
async fn a_new_passkey_is_checked_too() {
    let services = test_support::set_up().await;
    let ctx = ada(&services).await;
    let (identity, peer) = (&services.identity, Peer::default());
    let finish = async |begun: &PasskeyChallenge, name: &str, answer: &str| {
        outcome(identity.add_passkey(&ctx, name, answer, from(Some(&begun.browser), &peer)).await)
    };
    let begin = async || identity.begin_adding_passkey(&ctx, from(None, &peer)).await.unwrap();
    let begun = begin().await;
    let (_, answer) = SoftPasskey::create(&begun.options, "https://evil.example");
    assert_eq!(finish(&begun, "a", &answer).await, "passkey_refused");
    let begun = begin().await;
    let (_, answer) = SoftPasskey::create_verifying(&begun.options, SITE, false);
    assert_eq!(finish(&begun, "a", &answer).await, "passkey_refused");
    let begun = begin().await;
    let options = begun.options.replace("weir.example", "evil.example");
    let (_, answer) = SoftPasskey::create(&options, SITE);
    assert_eq!(finish(&begun, "a", &answer).await, "passkey_refused");
    // A name that is not valid does not use the challenge up.
    let begun = begin().await;
    let (_, answer) = SoftPasskey::create(&begun.options, SITE);
    assert_eq!(finish(&begun, " ", &answer).await, "blank");
    assert_eq!(finish(&begun, &"n".repeat(65), &answer).await, "max_length");
    // Another session of the same browser did not ask for it.
    let other = ada(&services).await;
    let stolen = from(Some(&begun.browser), &peer);
    let refused = identity.add_passkey(&other, "a", &answer, stolen).await;
    assert_eq!(outcome(refused), "passkey_expired");
    let begun = begin().await;
    let (_, answer) = SoftPasskey::create(&begun.options, SITE);
    assert_eq!(finish(&begun, &"n".repeat(64), &answer).await, "yes");
}

#[tokio::test]
async fn a_passkey_is_the_second_step_after_a_password() {
    let mut ada = Ada::open().await;
    let identity = ada.services.identity.clone();
    let peer = Peer::default();
    let token = waiting(&ada.services).await;
    let state = identity.waiting(&token).await.unwrap().unwrap();
    assert_eq!((state.has_app, state.has_passkey), (false, true));
    let begun = identity.begin_passkey_step(&token, from(None, &peer)).await.unwrap();
    // A device may leave out whose it is, because the user is known.
    ada.device.handle = None;
    let answer = ada.device.answer(&begun.options);
    let browser = from(Some(&begun.browser), &peer);
    // The answer belongs to this sign-in, not to another one.
    let other = waiting(&ada.services).await;
    let refused = identity.end_sign_in_with_passkey(&other, &answer, browser).await;
    assert_eq!(outcome(refused), "passkey_expired");
    let begun = identity.begin_passkey_step(&token, from(None, &peer)).await.unwrap();
    let answer = ada.device.answer(&begun.options);
    let browser = from(Some(&begun.browser), &peer);
    let session = identity.end_sign_in_with_passkey(&token, &answer, browser).await.unwrap();
    assert!(context(&ada.services, &session.token).await.is_some());
    let refused = identity.end_sign_in_with_passkey(&token, &answer, browser).await;
    assert_eq!(outcome(refused), "2fa_expired");
    // A recovery code works too. A code of an app does not: there is none.
    for (code, expected) in [("123456", "2fa_invalid"), (ada.codes[0].as_str(), "yes")] {
        let token = waiting(&ada.services).await;
        assert_eq!(outcome(identity.end_sign_in(&token, code, &peer).await), expected, "{code}");
    }
}

#[tokio::test]
async fn a_passkey_of_another_user_is_no_second_step() {
    let ada = Ada::open().await;
    let identity = &ada.services.identity;
    let peer = Peer::default();
    let eve = outsider(&ada.services, "eve").await;
    let mut device = passkey_of(&ada.services, &eve).await;
    let token = waiting(&ada.services).await;
    let begun = identity.begin_passkey_step(&token, from(None, &peer)).await.unwrap();
    let answer = device.answer(&begun.options);
    let browser = from(Some(&begun.browser), &peer);
    let refused = identity.end_sign_in_with_passkey(&token, &answer, browser).await;
    assert_eq!(outcome(refused), "passkey_refused");
    // Nor does it confirm the identity of Ada.
    let begun = identity.begin_passkey_confirmation(&ada.ctx, from(None, &peer)).await.unwrap();
    let answer = device.answer(&begun.options);
    let browser = from(Some(&begun.browser), &peer);
    let refused = identity.sign_in_again_with_passkey(&ada.ctx, &answer, browser).await;
    assert_eq!(outcome(refused), "passkey_refused");
    // Nor can Ada rename or remove it.
    let id = &identity.own_passkeys(&eve).await.unwrap()[0].id;
    assert_eq!(outcome(identity.rename_passkey(&ada.ctx, id, "mine").await), "not found");
    assert_eq!(outcome(identity.remove_passkey(&ada.ctx, id, &peer).await), "not found");
}

/// The device of a user whose session is not stored.
async fn passkey_of(services: &Services, ctx: &Ctx) -> SoftPasskey {
    let (identity, peer) = (&services.identity, Peer::default());
    let begun = identity.begin_adding_passkey(ctx, from(None, &peer)).await.unwrap();
    let (device, answer) = SoftPasskey::create(&begun.options, SITE);
    let browser = from(Some(&begun.browser), &peer);
    let waits = identity.take_challenge(Purpose::Add, Some(ctx), None, browser).await.unwrap();
    let made = party(SITE).unwrap().register(&answer, &waits.challenge).unwrap();
    let row = PasskeyRow {
        hash: hash(made.id()),
        user: ctx.user(),
        handle: waits.handle.unwrap(),
        rp_id: "weir.example".to_owned(),
        name: "Eve's".to_owned(),
        credential: written(&made).unwrap(),
        added_at: ctx.now,
        used_at: None,
        refused_at: None,
    };
    let (session, _) = identity.new_session(ctx.user(), &peer).unwrap();
    let opened = weir_store::sessions::create(
        services.organizations.store(),
        &session,
        None,
        weir_store::sessions::Proved::default(),
    );
    assert!(opened.await.unwrap());
    let (new, _) = identity.new_session(ctx.user(), &peer).unwrap();
    let change = Change { replaced: &session.hash, session: &new, mails: &[], activities: &[] };
    let turns_on = Some(TurnsOn { factor: Uuid::from_u128(9), codes: Vec::new() });
    let store = services.organizations.store();
    assert_eq!(
        rows::add(store, &row, turns_on, PASSKEYS_MAX, change).await.unwrap(),
        PasskeyOutcome::Yes
    );
    device
}

#[tokio::test]
async fn a_counter_that_goes_back_is_refused_and_recorded() {
    let mut ada = Ada::open().await;
    let mut copy = ada.device.copied();
    assert_eq!(outcome(ada.sign_in().await), "yes");
    // The copy has the counter that the device had.
    let challenge = ada.challenge().await;
    let answer = copy.answer(&challenge.options);
    assert_eq!(outcome(ada.finish(&challenge, &answer).await), "passkey_refused");
    let listed = ada.services.identity.own_passkeys(&ada.ctx).await.unwrap();
    assert_eq!(listed[0].refused_at, Some(ada.ctx.now));
    let recorded = changes(&ada.services, &ada.ctx, AuditAction::SignInRefused).await;
    assert_eq!(recorded[0], ("passkey".to_owned(), "Phone".into()));
    assert_eq!(outcome(ada.sign_in().await), "yes", "the device goes on");
}

#[tokio::test]
async fn of_two_answers_with_one_counter_one_counts() {
    let mut ada = Ada::open().await;
    let mut copy = ada.device.copied();
    let (first, second) = (ada.challenge().await, ada.challenge().await);
    let answers = (ada.device.answer(&first.options), copy.answer(&second.options));
    let (one, other) =
        tokio::join!(ada.finish(&first, &answers.0), ada.finish(&second, &answers.1));
    let mut outcomes = [outcome(one), outcome(other)];
    outcomes.sort();
    assert_eq!(outcomes, ["passkey_refused", "yes"]);
}

#[tokio::test]
async fn a_removed_passkey_opens_nothing() {
    let mut ada = Ada::open().await;
    let identity = ada.services.identity.clone();
    let peer = Peer::default();
    let (mut second, added) = add(&ada.services, &ada.ctx, "Key").await;
    let ctx = context(&ada.services, &added.session.token).await.unwrap();
    let other = ada.sign_in().await.unwrap();
    let mut listed = identity.own_passkeys(&ctx).await.unwrap();
    // Both were added at the same time.
    listed.sort_by_key(|passkey| passkey.name == "Key");
    let challenge = ada.challenge().await;
    let answer = ada.device.answer(&challenge.options);
    let removed = identity.remove_passkey(&ctx, &listed[0].id, &peer).await.unwrap();
    assert!(!removed.turned_off, "another one is left");
    assert_eq!(outcome(ada.finish(&challenge, &answer).await), "passkey_refused");
    assert!(context(&ada.services, &other.token).await.is_none(), "its sessions have ended");
    let ctx = context(&ada.services, &removed.session.token).await.unwrap();
    std::mem::swap(&mut ada.device, &mut second);
    assert_eq!(outcome(ada.sign_in().await), "yes");

    // The last one takes the second factor along.
    let removed = identity.remove_passkey(&ctx, &listed[1].id, &peer).await.unwrap();
    assert!(removed.turned_off);
    let ctx = context(&ada.services, &removed.session.token).await.unwrap();
    assert!(!ada.services.users.me(&ctx).await.unwrap().is_2fa_enabled);
    assert_eq!(identity.second_factor(&ctx).await.unwrap().codes_left, 0);
    assert_eq!(outcome(identity.sign_in(EMAIL, PASSWORD, &peer).await), "yes");
    let recorded = changes(&ada.services, &ctx, AuditAction::Updated).await;
    assert_eq!(recorded[0], ("passkey".to_owned(), Value::Null));
    assert_eq!(recorded[1], ("is_2fa_enabled".to_owned(), false.into()));
}

#[tokio::test]
async fn changes_want_a_recent_sign_in_and_a_passkey_is_one() {
    let mut ada = Ada::open().await;
    let identity = ada.services.identity.clone();
    let peer = Peer::default();
    let id = identity.own_passkeys(&ada.ctx).await.unwrap()[0].id.clone();
    ada.services.clock.advance(16 * 60);
    let late = Ctx { now: ada.services.clock.now(), ..ada.ctx.clone() };
    let begun = identity.begin_adding_passkey(&late, from(None, &peer)).await;
    assert_eq!(outcome(begun), "again");
    let added = identity.add_passkey(&late, "a", "{}", from(None, &peer)).await;
    assert_eq!(outcome(added), "again");
    assert_eq!(outcome(identity.remove_passkey(&late, &id, &peer).await), "again");
    let renewed = identity.renew_recovery_codes_with_passkey(&late, "{}", from(None, &peer)).await;
    assert_eq!(outcome(renewed), "again");

    let begun = identity.begin_passkey_confirmation(&late, from(None, &peer)).await.unwrap();
    let answer = ada.device.answer(&begun.options);
    let browser = from(Some(&begun.browser), &peer);
    let session = identity.sign_in_again_with_passkey(&late, &answer, browser).await.unwrap();
    let ctx = context(&ada.services, &session.token).await.unwrap();
    let begun = identity.begin_passkey_confirmation(&ctx, from(None, &peer)).await.unwrap();
    let answer = ada.device.answer(&begun.options);
    let browser = from(Some(&begun.browser), &peer);
    let codes = identity.renew_recovery_codes_with_passkey(&ctx, &answer, browser).await.unwrap();
    assert_eq!(codes.len(), 10);
    assert!(codes.iter().all(|code| !ada.codes.contains(code)));
    identity.rename_passkey(&ctx, &id, " Old phone ").await.unwrap();
    assert_eq!(identity.own_passkeys(&ctx).await.unwrap()[0].name, "Old phone");
    assert_eq!(outcome(identity.rename_passkey(&ctx, &id, "").await), "blank");
    assert_eq!(outcome(identity.remove_passkey(&ctx, &id, &peer).await), "yes");
}

#[tokio::test]
async fn a_user_has_at_most_twenty() {
    let ada = Ada::open().await;
    let mut ctx = ada.ctx.clone();
    for number in 1..PASSKEYS_MAX {
        let (_, added) = add(&ada.services, &ctx, &number.to_string()).await;
        ctx = context(&ada.services, &added.session.token).await.unwrap();
    }
    let peer = Peer::default();
    let begun = ada.services.identity.begin_adding_passkey(&ctx, from(None, &peer)).await;
    assert_eq!(outcome(begun), "too_many_passkeys");
}

#[tokio::test]
async fn an_organization_that_requires_a_second_factor_accepts_a_passkey() {
    let services = test_support::set_up().await;
    let ctx = ada(&services).await;
    let id = services.users.me(&ctx).await.unwrap().organizations[0].id.to_string();
    let org = services.organizations.enter(&ctx, &id).await.unwrap();
    let patch = OrganizationPatch { enforce_2fa: Patch::Set(true), ..Default::default() };
    services.organizations.update(&org, patch).await.unwrap();
    let enter = async |ctx: &Ctx| services.organizations.enter(ctx, &id).await.is_ok();
    assert!(!enter(&ctx).await);
    let mut ada = Ada::on(services.clone()).await;
    assert!(enter(&ada.ctx).await);
    let session = ada.sign_in().await.unwrap();
    let ctx = context(&services, &session.token).await.unwrap();
    assert!(enter(&ctx).await);
    let key = services.identity.own_passkeys(&ctx).await.unwrap()[0].id.clone();
    let removed = services.identity.remove_passkey(&ctx, &key, &Peer::default()).await.unwrap();
    let ctx = context(&services, &removed.session.token).await.unwrap();
    assert!(!enter(&ctx).await, "as after the removal of an app");
}

#[tokio::test]
async fn a_domain_that_requires_a_provider_refuses_passkeys() {
    let mut ada = Ada::open().await;
    let services = ada.services.clone();
    let id = services.users.me(&ada.ctx).await.unwrap().organizations[0].id.to_string();
    let org = services.organizations.enter(&ada.ctx, &id).await.unwrap();
    let session = ada.sign_in().await.unwrap();
    let token = waiting(&services).await;
    let peer = Peer::default();
    let step = services.identity.begin_passkey_step(&token, from(None, &peer)).await.unwrap();
    let input = DomainInput { domain: "mail.example".to_owned(), saml: SamlPatch::default() };
    let domain = services.domains.create(&org, input).await.unwrap().id;
    let verified_at = Some(ada.ctx.now);
    let set = |row: &DomainRow| {
        let sso_enforcement = SsoEnforcement::Provider(ProviderName::GITHUB);
        let row = DomainRow { verified_at, sso_enforcement, ..row.clone() };
        Ok::<_, weir_store::Error>(Some((row, Vec::new())))
    };
    let store = services.organizations.store();
    weir_store::update::update(store, domain, (), set).await.unwrap();

    assert!(context(&services, &session.token).await.is_none(), "its session does not count");
    assert_eq!(outcome(ada.sign_in().await), "sso_enforced");
    let answer = ada.device.answer(&step.options);
    let browser = from(Some(&step.browser), &peer);
    let ended = services.identity.end_sign_in_with_passkey(&token, &answer, browser).await;
    assert_eq!(outcome(ended), "sso_enforced");
    let begun = services.identity.begin_adding_passkey(&ada.ctx, from(None, &peer)).await;
    assert_eq!(outcome(begun), "sso_enforced");
}

#[tokio::test]
async fn the_app_and_passkeys_share_the_second_factor() {
    let mut ada = Ada::open().await;
    let identity = ada.services.identity.clone();
    let peer = Peer::default();
    identity.begin_second_factor(&ada.ctx).await.unwrap();
    let kept = identity.second_factor(&ada.ctx).await.unwrap();
    assert_eq!((kept.has_app, kept.codes_left), (false, 10), "the set-up changes nothing yet");
    let typed = second_factor_tests::code_now(&ada.services, ada.ctx.user()).await;
    let confirmed = identity.confirm_second_factor(&ada.ctx, &typed, &peer).await.unwrap();
    let ctx = context(&ada.services, &confirmed.session.token).await.unwrap();
    assert!(identity.second_factor(&ctx).await.unwrap().has_app);

    // Without the passkey the app is left, without the app the passkey.
    let ended = identity.disable_second_factor(&ctx, &confirmed.codes[0], &peer).await.unwrap();
    let ctx = context(&ada.services, &ended.token).await.unwrap();
    let left = identity.second_factor(&ctx).await.unwrap();
    assert_eq!((left.since.is_some(), left.has_app, left.codes_left), (true, false, 9));
    let refused = identity.disable_second_factor(&ctx, &confirmed.codes[1], &peer).await;
    assert_eq!(outcome(refused), "2fa_state", "there is no app any more");
    assert_eq!(outcome(ada.sign_in().await), "yes");
    waiting(&ada.services).await;

    // The operator takes away both.
    assert_eq!(identity.remove_second_factor(EMAIL).await.unwrap(), Some(true));
    assert_eq!(outcome(ada.sign_in().await), "passkey_refused");
    assert_eq!(outcome(identity.sign_in(EMAIL, PASSWORD, &peer).await), "yes");
}

#[tokio::test]
async fn keys_of_the_api_do_nothing_with_passkeys() {
    let ada = Ada::open().await;
    let (services, peer) = (&ada.services, Peer::default());
    let key = test_support::key(services, &ada.ctx, test_support::key_input()).await;
    let identity = &services.identity;
    let id = identity.own_passkeys(&ada.ctx).await.unwrap()[0].id.clone();
    assert_eq!(outcome(identity.own_passkeys(&key).await), "forbidden");
    let begun = identity.begin_adding_passkey(&key, from(None, &peer)).await;
    assert_eq!(outcome(begun), "forbidden");
    assert_eq!(outcome(identity.rename_passkey(&key, &id, "a").await), "forbidden");
    assert_eq!(outcome(identity.remove_passkey(&key, &id, &peer).await), "forbidden");
    let begun = identity.begin_passkey_confirmation(&key, from(None, &peer)).await;
    assert_eq!(outcome(begun), "forbidden");
}

#[tokio::test]
async fn a_user_without_another_way_keeps_the_last_passkey() {
    let ada = Ada::open().await;
    let services = &ada.services;
    let eve = outsider(services, "eve").await;
    passkey_of(services, &eve).await;
    let organization = services.users.me(&ada.ctx).await.unwrap().organizations[0].id;
    join(services, organization, &eve, Level::Member).await;
    let eve = person(services, eve.user());
    let id = services.identity.own_passkeys(&eve).await.unwrap()[0].id.clone();
    let refused = services.identity.remove_passkey(&eve, &id, &Peer::default()).await;
    assert_eq!(outcome(refused), "last_way", "there is no password");
}
