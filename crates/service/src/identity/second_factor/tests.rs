//! Second factors on a store in memory and a fixed clock.

use weir_model::Patch;
use weir_model::mail::MailContent;
use weir_model::organizations::OrganizationPatch;
use weir_store::mail::{self as mail_rows, MailRow};
use weir_store::sessions;

use super::*;
use crate::Services;
use crate::test_support::{self, PASSWORD, ada};

const EMAIL: &str = "ada.l@mail.example";
const STEP: i64 = 30;

/// Ada, whose second factor is on.
struct Ada {
    services: Services,
    ctx: Ctx,
    secret: Vec<u8>,
    codes: Vec<String>,
}

async fn context(services: &Services, token: &str) -> Option<Ctx> {
    services.identity.session(token, "request".to_owned()).await.unwrap()
}

async fn secret(services: &Services, user: UserId) -> Vec<u8> {
    let core = &services.identity.core;
    let row = rows::get(&core.store, user).await.unwrap().unwrap();
    core.sealer.open(&location(user), &row.secret.unwrap()).unwrap().bytes().to_vec()
}

/// The code that the app of a user shows now, confirmed or not.
pub(in crate::identity) async fn code_now(services: &Services, user: UserId) -> String {
    totp::code_at(&secret(services, user).await, services.clock.now())
}

fn code_of(error: &Error) -> &str {
    match error {
        Error::Invalid(fault) => &fault.code,
        Error::Conflict { code, .. } => code,
        Error::Throttled { .. } => "throttled",
        _ => "other",
    }
}

impl Ada {
    async fn open() -> Self {
        Self::on(test_support::set_up().await).await
    }

    async fn on(services: Services) -> Self {
        let ctx = ada(&services).await;
        services.identity.begin_second_factor(&ctx).await.unwrap();
        let secret = secret(&services, ctx.user()).await;
        let code = totp::code_at(&secret, ctx.now);
        let confirmed =
            services.identity.confirm_second_factor(&ctx, &code, &Peer::default()).await.unwrap();
        let ctx = context(&services, &confirmed.session.token).await.unwrap();
        // The code that turned the factor on cannot be used again.
        services.clock.advance(STEP);
        Self { services, ctx, secret, codes: confirmed.codes }
    }

    /// The code at this many seconds from now.
    fn code(&self, seconds: i64) -> String {
        totp::code_at(&self.secret, self.services.clock.now().plus_seconds(seconds))
    }

    /// A code of no step around now.
    fn wrong(&self) -> String {
        let near = [self.code(-STEP), self.code(0), self.code(STEP)];
        let mut codes = (0_u32..).map(|number| format!("{number:06}"));
        codes.find(|code| !near.contains(code)).unwrap()
    }

    /// The token of a waiting sign-in.
    async fn begin(&self) -> String {
        let signed_in =
            self.services.identity.sign_in(EMAIL, PASSWORD, &Peer::default()).await.unwrap_err();
        let Error::SecondFactor(pending) = signed_in else { panic!("{signed_in}") };
        pending.token
    }

    async fn end(&self, token: &str, code: &str) -> Result<NewSession> {
        self.services.identity.end_sign_in(token, code, &Peer::default()).await
    }

    async fn fresh(&self) -> Ctx {
        let session = self.end(&self.begin().await, &self.code(0)).await.unwrap();
        context(&self.services, &session.token).await.unwrap()
    }
}

#[tokio::test]
async fn turning_it_on_wants_a_code_and_ends_what_was_open() {
    let services = test_support::set_up().await;
    let identity = &services.identity;
    let peer = Peer::default();
    let other = identity.sign_in(EMAIL, PASSWORD, &peer).await.unwrap().token;
    let token = identity.sign_in(EMAIL, PASSWORD, &peer).await.unwrap().token;
    let ctx = context(&services, &token).await.unwrap();
    assert!(identity.enrolment(&ctx).await.unwrap().is_none());
    identity.begin_second_factor(&ctx).await.unwrap();
    let begun = identity.enrolment(&ctx).await.unwrap().unwrap();
    let secret = secret(&services, ctx.user()).await;
    assert_eq!((begun.secret.len(), begun.secret), (32, totp::base32(&secret)));
    // No code is requested until the factor is confirmed.
    identity.sign_in(EMAIL, PASSWORD, &peer).await.unwrap();
    assert!(!services.users.me(&ctx).await.unwrap().is_2fa_enabled);

    for bad in ["", "12345", "abcdef", "aaaa-aaaa-aaaa-aaaa"] {
        let refused = identity.confirm_second_factor(&ctx, bad, &peer).await.err().unwrap();
        assert_eq!(code_of(&refused), "2fa_invalid", "{bad}");
    }
    let code = totp::code_at(&secret, ctx.now);
    let confirmed = identity.confirm_second_factor(&ctx, &code, &peer).await.unwrap();
    assert_eq!(confirmed.codes.len(), 10);
    for ended in [&other, &token] {
        assert!(context(&services, ended).await.is_none());
    }
    let ctx = context(&services, &confirmed.session.token).await.unwrap();
    assert!(services.users.me(&ctx).await.unwrap().is_2fa_enabled);
    let state = identity.second_factor(&ctx).await.unwrap();
    assert_eq!((state.since, state.codes_left), (Some(ctx.now), 10));
    let again = identity.begin_second_factor(&ctx).await.unwrap_err();
    assert_eq!(code_of(&again), "2fa_state");
    let asked = identity.sign_in(EMAIL, PASSWORD, &peer).await.unwrap_err();
    assert!(matches!(asked, Error::SecondFactor(_)), "{asked}");
}

#[tokio::test]
async fn the_user_gets_a_mail_about_every_change() {
    let ada = Ada::on(test_support::set_up_with_mail().await).await;
    let (identity, peer) = (&ada.services.identity, Peer::default());
    let notified = async || {
        let due = mail_rows::due(&identity.core.store, ada.services.clock.now()).await.unwrap();
        let change = |row: MailRow| match row.mail.news {
            MailContent::UserChanged { change, .. } => Some(change),
            _ => None,
        };
        due.into_iter().filter_map(change).collect::<Vec<_>>()
    };
    assert_eq!(notified().await, [UserChange::AuthenticatorAppAdded]);
    identity.renew_recovery_codes(&ada.ctx, &ada.wrong(), &peer).await.unwrap_err();
    assert_eq!(notified().await.len(), 1, "a wrong code changes nothing");
    let codes = identity.renew_recovery_codes(&ada.ctx, &ada.code(0), &peer).await.unwrap();
    let after = notified().await;
    assert_eq!(after.len(), 2);
    assert!(after.contains(&UserChange::RecoveryCodesReplaced), "{after:?}");
    identity.disable_second_factor(&ada.ctx, &codes[0], &peer).await.unwrap();
    let after = notified().await;
    assert_eq!(after.len(), 3);
    assert!(after.contains(&UserChange::SecondFactorOff), "{after:?}");
}

#[tokio::test]
async fn a_set_up_waits_ten_minutes() {
    let services = test_support::set_up().await;
    let identity = &services.identity;
    let early = ada(&services).await;
    identity.begin_second_factor(&early).await.unwrap();
    services.clock.advance(CONFIRM_SECONDS);
    let ctx = ada(&services).await;
    assert!(identity.enrolment(&ctx).await.unwrap().is_none());
    let code = totp::code_at(&secret(&services, ctx.user()).await, ctx.now);
    let late = identity.confirm_second_factor(&ctx, &code, &Peer::default()).await.err().unwrap();
    assert_eq!(code_of(&late), "2fa_state");
    // A second set-up has another secret. A cancelled set-up is gone.
    identity.begin_second_factor(&ctx).await.unwrap();
    assert!(identity.enrolment(&ctx).await.unwrap().is_some());
    identity.cancel_second_factor(&ctx).await.unwrap();
    assert!(identity.enrolment(&ctx).await.unwrap().is_none());
}

#[tokio::test]
async fn a_code_works_once_and_one_step_either_side() {
    let ada = Ada::open().await;
    let (first, second) = (ada.begin().await, ada.begin().await);
    let code = ada.code(0);
    let session = ada.end(&first, &code).await.unwrap();
    assert!(context(&ada.services, &session.token).await.is_some());
    assert_eq!(code_of(&ada.end(&second, &code).await.unwrap_err()), "2fa_invalid");
    assert_eq!(code_of(&ada.end(&first, &ada.code(STEP)).await.unwrap_err()), "2fa_expired");
    // Codes older than the last one are used up with it.
    let before = ada.code(-STEP);
    assert_eq!(code_of(&ada.end(&second, &before).await.unwrap_err()), "2fa_invalid");
    ada.end(&second, &ada.code(STEP)).await.unwrap();

    ada.services.clock.advance(5 * STEP);
    let token = ada.begin().await;
    for apart in [-2, 2] {
        let refused = ada.end(&token, &ada.code(apart * STEP)).await.unwrap_err();
        assert_eq!(code_of(&refused), "2fa_invalid", "{apart}");
    }
    ada.end(&token, &ada.code(-STEP)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_works_for_one_of_two_concurrent_sign_ins() {
    let ada = Ada::open().await;
    let code = ada.code(0);
    let mut calls = Vec::new();
    for _ in 0..3 {
        let (identity, token) = (ada.services.identity.clone(), ada.begin().await);
        let code = code.clone();
        calls.push(tokio::spawn(async move {
            identity.end_sign_in(&token, &code, &Peer::default()).await
        }));
    }
    let mut opened = 0;
    for call in calls {
        match call.await.unwrap() {
            Ok(_) => opened += 1,
            Err(refused) => assert_eq!(code_of(&refused), "2fa_invalid"),
        }
    }
    assert_eq!(opened, 1);
}

#[tokio::test]
async fn wrong_codes_are_counted_and_slowed_down() {
    let ada = Ada::open().await;
    let identity = &ada.services.identity;
    let token = ada.begin().await;
    for failures in 0..5 {
        assert_eq!(identity.waiting(&token).await.unwrap().unwrap().failures, failures);
        let refused = ada.end(&token, &ada.wrong()).await.unwrap_err();
        assert_eq!(code_of(&refused), "2fa_invalid", "{failures}");
    }
    for code in [ada.wrong(), ada.code(0)] {
        let slowed = ada.end(&token, &code).await.unwrap_err();
        assert!(matches!(slowed, Error::Throttled { wait_seconds: 60 }), "{slowed}");
    }
    // Another sign-in does not help, and the password has its own counter.
    let other = ada.begin().await;
    assert_eq!(code_of(&ada.end(&other, &ada.code(0)).await.unwrap_err()), "throttled");
    ada.services.clock.advance(60);
    ada.end(&other, &ada.code(0)).await.unwrap();
    // The right code resets the counter.
    ada.services.clock.advance(STEP);
    assert_eq!(code_of(&ada.end(&token, &ada.wrong()).await.unwrap_err()), "2fa_invalid");
    ada.end(&token, &ada.code(0)).await.unwrap();
}

#[tokio::test]
async fn recovery_codes_work_once_each_until_there_are_new_ones() {
    let ada = Ada::open().await;
    let identity = &ada.services.identity;
    let [first, second, ..] = ada.codes.as_slice() else { panic!("{}", ada.codes.len()) };
    ada.end(&ada.begin().await, first).await.unwrap();
    let token = ada.begin().await;
    assert_eq!(code_of(&ada.end(&token, first).await.unwrap_err()), "2fa_invalid");
    let session = ada.end(&token, &second.to_uppercase().replace('-', " ")).await.unwrap();
    let ctx = context(&ada.services, &session.token).await.unwrap();
    assert_eq!(identity.second_factor(&ctx).await.unwrap().codes_left, 8);

    let peer = Peer::default();
    let wrong = identity.renew_recovery_codes(&ctx, &ada.wrong(), &peer).await.unwrap_err();
    assert_eq!(code_of(&wrong), "2fa_invalid");
    let renewed = identity.renew_recovery_codes(&ctx, &ada.code(0), &peer).await.unwrap();
    assert_eq!(identity.second_factor(&ctx).await.unwrap().codes_left, 10);
    let token = ada.begin().await;
    let third = ada.codes.get(2).unwrap();
    assert_eq!(code_of(&ada.end(&token, third).await.unwrap_err()), "2fa_invalid");
    ada.end(&token, renewed.first().unwrap()).await.unwrap();
}

#[tokio::test]
async fn a_sign_in_that_waits_ends_by_time_and_with_what_it_was_begun_by() {
    let ada = Ada::open().await;
    let identity = &ada.services.identity;
    let peer = Peer::default();
    for junk in ["", ".", "x.y", &"a".repeat(100), &format!("{}.x", ada.ctx.user())] {
        assert!(identity.waiting(junk).await.unwrap().is_none(), "{junk}");
        assert_eq!(code_of(&ada.end(junk, &ada.code(0)).await.unwrap_err()), "2fa_expired");
    }
    let token = ada.begin().await;
    ada.services.clock.advance(10 * 60);
    assert_eq!(code_of(&ada.end(&token, &ada.code(0)).await.unwrap_err()), "2fa_expired");

    // Signing out the other sessions ends waiting sign-ins too.
    let ctx = ada.fresh().await;
    let token = ada.begin().await;
    identity.end_other_sessions(&ctx).await.unwrap();
    assert!(identity.waiting(&token).await.unwrap().is_none());
    // The password changes.
    let token = ada.begin().await;
    let chosen = "kettle-harbour-lichen-7";
    let session = identity.change_password(&ctx, PASSWORD, chosen, &peer).await.unwrap();
    assert!(identity.waiting(&token).await.unwrap().is_none());
    let ctx = context(&ada.services, &session.token).await.unwrap();
    // The factor is removed, and another one is set up.
    let asked = identity.sign_in(EMAIL, chosen, &peer).await.unwrap_err();
    let Error::SecondFactor(pending) = asked else { panic!("{asked}") };
    ada.services.clock.advance(STEP);
    let session = identity.disable_second_factor(&ctx, &ada.code(0), &peer).await.unwrap();
    assert!(identity.waiting(&pending.token).await.unwrap().is_none());
    let ctx = context(&ada.services, &session.token).await.unwrap();
    identity.begin_second_factor(&ctx).await.unwrap();
    assert_eq!(
        code_of(&ada.end(&pending.token, &ada.code(STEP)).await.unwrap_err()),
        "2fa_expired"
    );
}

/// Data that was read before the factor was on opens nothing afterwards.
#[tokio::test]
async fn no_sign_in_overtakes_turning_it_on() {
    let services = test_support::set_up().await;
    let identity = &services.identity;
    let peer = Peer::default();
    let old = ada(&services).await;
    let ctx = ada(&services).await;
    let read = user_rows::get(&identity.core.store, ctx.user()).await.unwrap().unwrap();
    identity.begin_second_factor(&ctx).await.unwrap();
    let code = totp::code_at(&secret(&services, ctx.user()).await, ctx.now);
    identity.confirm_second_factor(&ctx, &code, &peer).await.unwrap();
    let refused = identity.open_or_ask(&read, &peer).await.unwrap_err();
    assert_eq!(code_of(&refused), "invalid_credentials");
    // The password alone does not bring back a session that ended.
    let refused = identity.sign_in_again(&old, PASSWORD, &peer).await.unwrap_err();
    assert!(matches!(refused, Error::NotAuthenticated), "{refused}");
    let open = sessions::of_user(&identity.core.store, ctx.user()).await.unwrap();
    assert_eq!(open.len(), 1);
}

#[tokio::test]
async fn changing_it_wants_a_recent_sign_in_and_a_code() {
    let ada = Ada::open().await;
    let identity = &ada.services.identity;
    let peer = Peer::default();
    let wrong = identity.disable_second_factor(&ada.ctx, &ada.wrong(), &peer).await;
    assert_eq!(code_of(&wrong.unwrap_err()), "2fa_invalid");
    ada.services.clock.advance(policy::RECENT_SECONDS + 1);
    let late = Ctx { now: ada.services.clock.now(), ..ada.ctx.clone() };
    let code = ada.code(0);
    let refused = [
        identity.begin_second_factor(&late).await.err(),
        identity.disable_second_factor(&late, &code, &peer).await.err(),
        identity.renew_recovery_codes(&late, &code, &peer).await.err(),
    ];
    for refused in refused {
        assert!(matches!(refused, Some(Error::SignInAgain)), "{refused:?}");
    }
    // The session needs only the password again. The code is requested after that.
    let again = identity.sign_in_again(&late, PASSWORD, &peer).await.unwrap();
    let ctx = context(&ada.services, &again.token).await.unwrap();
    let last = ada.codes.last().unwrap();
    let off = identity.disable_second_factor(&ctx, last, &peer).await.unwrap();
    assert!(context(&ada.services, &again.token).await.is_none());
    let ctx = context(&ada.services, &off.token).await.unwrap();
    assert_eq!(identity.second_factor(&ctx).await.unwrap().since, None);
    identity.sign_in(EMAIL, PASSWORD, &peer).await.unwrap();
    let gone = identity.disable_second_factor(&ctx, last, &peer).await.unwrap_err();
    assert_eq!(code_of(&gone), "2fa_state");
}

#[tokio::test]
async fn the_operator_takes_it_away() {
    let ada = Ada::open().await;
    let identity = &ada.services.identity;
    let (token, ctx) = (ada.begin().await, ada.fresh().await);
    assert_eq!(identity.remove_second_factor("nobody@mail.example").await.unwrap(), None);
    assert_eq!(identity.remove_second_factor(" ADA.L@mail.example").await.unwrap(), Some(true));
    assert_eq!(identity.remove_second_factor(EMAIL).await.unwrap(), Some(false));
    assert!(identity.waiting(&token).await.unwrap().is_none());
    let open = sessions::of_user(&identity.core.store, ctx.user()).await.unwrap();
    assert!(open.is_empty());
    identity.sign_in(EMAIL, PASSWORD, &Peer::default()).await.unwrap();
}

#[tokio::test]
async fn an_organization_that_enforces_it_refuses_members_without_it() {
    let services = test_support::set_up().await;
    let ctx = ada(&services).await;
    let org = services.organizations.enter(&ctx, "@current").await.unwrap();
    let key = test_support::key(&services, &ctx, test_support::key_input()).await;
    let patch = OrganizationPatch { enforce_2fa: Patch::Set(true), ..Default::default() };
    services.organizations.update(&org, patch).await.unwrap();
    let enter = async |ctx: &Ctx| services.organizations.enter(ctx, "@current").await;
    assert!(matches!(enter(&ctx).await, Err(Error::SecondFactorMissing)));
    let project = services.projects.enter(&ctx, "@current").await;
    assert!(matches!(project, Err(Error::SecondFactorMissing)));
    // Keys are not refused, and unknown callers get their usual answer.
    enter(&key).await.unwrap();
    let eve = test_support::outsider(&services, "eve").await;
    let strange = services.organizations.enter(&eve, &org.organization.to_string()).await;
    assert!(matches!(strange, Err(Error::NotFound(_))));
    let state = services.identity.second_factor(&ctx).await.unwrap();
    assert_eq!((state.since, state.demanded_by), (None, vec!["Acme Tea".to_owned()]));

    services.identity.begin_second_factor(&ctx).await.unwrap();
    let code = totp::code_at(&secret(&services, ctx.user()).await, ctx.now);
    let identity = &services.identity;
    let confirmed = identity.confirm_second_factor(&ctx, &code, &Peer::default()).await.unwrap();
    let ctx = context(&services, &confirmed.session.token).await.unwrap();
    enter(&ctx).await.unwrap();
}

/// The secret is readable neither in the store nor in the record of another user.
#[tokio::test]
async fn the_secret_is_sealed_for_its_user() {
    let ada = Ada::open().await;
    let core = &ada.services.identity.core;
    let row = rows::get(&core.store, ada.ctx.user()).await.unwrap().unwrap();
    let sealed = row.secret.unwrap();
    assert!(sealed.starts_with("w1."), "{sealed}");
    let other = UserId(Uuid::from_u128(7));
    assert!(core.sealer.open(&location(other), &sealed).is_err());
    let field = SealedField::SecondFactorSecret;
    let found = weir_store::sealing::with_other_keys(&core.store, field, "none", 10).await.unwrap();
    assert_eq!(found[0].record, ada.ctx.user().to_string());
    assert_eq!(found[0].organization, OrganizationId(Uuid::nil()));
    // Only the hashes of recovery codes are stored.
    assert!(ada.codes.iter().all(|code| !row.codes.contains(code)));
}

#[tokio::test]
async fn password_and_code_together_pass_an_exhausted_counter() {
    let ada = Ada::open().await;
    let identity = &ada.services.identity;
    let outsider = |number: u32| Peer {
        address: Some(std::net::Ipv4Addr::from(0xC633_6400 + number).into()),
        ..Peer::default()
    };
    for number in 0..6 {
        let guess = identity.sign_in(EMAIL, "wrong password here", &outsider(number)).await;
        assert_eq!(code_of(&guess.unwrap_err()), "invalid_credentials");
    }
    let concurrently = async |password: &str, code: &str, number: u32| {
        identity.sign_in_with_code(EMAIL, password, code, &outsider(number)).await
    };
    let right = ada.code(0);
    // The answer does not reveal which of the two is wrong, or that the user has a
    // factor.
    let throttled = identity.sign_in(EMAIL, PASSWORD, &outsider(7)).await.unwrap_err();
    for (password, code) in
        [(PASSWORD, ada.wrong().as_str()), ("wrong password here", right.as_str()), (PASSWORD, "x")]
    {
        let refused = concurrently(password, code, 8).await.unwrap_err();
        assert_eq!(format!("{refused:?}"), format!("{throttled:?}"), "{password} {code}");
    }
    let session = concurrently(PASSWORD, &right, 9).await.unwrap();
    assert!(context(&ada.services, &session.token).await.is_some());
    // A code works only once.
    assert_eq!(code_of(&concurrently(PASSWORD, &right, 9).await.unwrap_err()), "throttled");
    let session = concurrently(PASSWORD, &ada.codes[0], 9).await.unwrap();
    assert!(context(&ada.services, &session.token).await.is_some());
}

#[tokio::test]
async fn wrong_codes_from_unknown_senders_delay_neither_recovery_codes_nor_known_browsers() {
    let ada = Ada::open().await;
    let identity = &ada.services.identity;
    // Another person has the password.
    let token = ada.begin().await;
    for _ in 0..5 {
        assert_eq!(code_of(&ada.end(&token, &ada.wrong()).await.unwrap_err()), "2fa_invalid");
    }
    assert_eq!(code_of(&ada.end(&token, &ada.code(0)).await.unwrap_err()), "throttled");
    let session = ada.end(&token, &ada.codes[0]).await.unwrap();

    let browser = Peer { browser: Some(session.browser), ..Peer::default() };
    let token = ada.begin().await;
    assert_eq!(code_of(&ada.end(&token, &ada.code(0)).await.unwrap_err()), "throttled");
    identity.end_sign_in(&token, &ada.code(0), &browser).await.unwrap();
}

#[tokio::test]
async fn a_code_used_while_the_clock_was_ahead_blocks_no_current_code() {
    const YEAR: i64 = 366 * 24 * 60 * 60;
    let ada = Ada::open().await;
    ada.services.clock.advance(YEAR);
    ada.end(&ada.begin().await, &ada.code(0)).await.unwrap();
    ada.services.clock.advance(-YEAR);
    let code = ada.code(0);
    ada.end(&ada.begin().await, &code).await.unwrap();
    let again = ada.end(&ada.begin().await, &code).await.unwrap_err();
    assert_eq!(code_of(&again), "2fa_invalid", "it still works once");
}
