//! Set-up, sign-in and sessions on a store in memory and a fixed clock.

use weir_model::Timestamp;
use weir_store::{members, sessions, users};

use super::*;
use crate::ctx::{Actor, Ctx};
use crate::error::Error;
use crate::test_support::{self, PASSWORD, setup_input};
use crate::{Services, secrets};

fn peer(address: &str) -> Peer {
    Peer {
        address: Some(address.parse().unwrap()),
        agent: Some("Test/1.0".to_owned()),
        browser: None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn audit_entries_of_concurrent_changes_of_an_address_form_a_chain() {
    let services = test_support::set_up().await;
    let ctx = test_support::ada(&services).await;
    let first = services.users.me(&ctx).await.unwrap().email;
    let change = |number: i32| {
        let (identity, ctx) = (services.identity.clone(), ctx.clone());
        let email = format!("ada-{number}@example.com");
        tokio::spawn(async move { identity.change_address(&ctx, &email).await.unwrap() })
    };
    let changes: Vec<_> = (0..8).map(change).collect();
    for change in changes {
        change.await.unwrap();
    }
    let last = services.users.me(&ctx).await.unwrap().email;
    let org = services.organizations.enter(&ctx, "@current").await.unwrap();
    test_support::assert_chain(&services, &org, "email", &first, &last, 8).await;
}

async fn signed_in(services: &Services, token: &str) -> Option<Ctx> {
    services.identity.session(token, "request".to_owned()).await.unwrap()
}

fn code(error: &Error) -> (Option<&str>, &str) {
    match error {
        Error::Invalid(field) => (field.attr.as_deref(), &field.code),
        _ => (None, "other"),
    }
}

#[tokio::test]
async fn set_up_once_with_a_token() {
    let services = test_support::empty().await;
    let identity = &services.identity;
    assert!(!identity.is_set_up().await.unwrap());
    let first = identity.issue_setup_token().await.unwrap().unwrap();
    let second = identity.issue_setup_token().await.unwrap().unwrap();
    assert_eq!(
        identity.setup_token_state(&first.token).await.unwrap(),
        SetupTokenState::Unknown,
        "a new token replaces the old"
    );
    assert_eq!(identity.setup_token_state(&second.token).await.unwrap(), SetupTokenState::Valid);
    let refused =
        identity.setup(Some(&first.token), setup_input(), &Peer::default()).await.unwrap_err();
    assert!(matches!(refused, Error::NotFound(_)), "{refused}");

    services.clock.advance(30 * 60);
    assert_eq!(identity.setup_token_state(&second.token).await.unwrap(), SetupTokenState::Expired);
    assert!(identity.setup(Some(&second.token), setup_input(), &Peer::default()).await.is_err());

    let third = identity.issue_setup_token().await.unwrap().unwrap();
    let outcome =
        identity.setup(Some(&third.token), setup_input(), &peer("192.0.2.1")).await.unwrap();
    assert!(identity.is_set_up().await.unwrap());
    assert_eq!((outcome.user.id, outcome.project.0), (1, 1));
    assert!(outcome.project_api_key.starts_with("phc_"));
    let session = outcome.session.unwrap();
    assert_eq!(signed_in(&services, &session.token).await.unwrap().user(), outcome.user.uuid);
    let store = &identity.core.store;
    let owner = members::rows(store, outcome.organization, &[outcome.user.uuid]).await.unwrap();
    assert_eq!(owner[0].user.last_login, Some(services.clock.now()), "setting up signs in");

    assert_eq!(identity.setup_token_state(&third.token).await.unwrap(), SetupTokenState::Unknown);
    assert!(identity.issue_setup_token().await.unwrap().is_none());
    for token in [Some(third.token.as_str()), None] {
        let refused = identity.setup(token, setup_input(), &Peer::default()).await.unwrap_err();
        assert!(matches!(refused, Error::NotFound(_)), "{refused}");
    }
}

#[tokio::test]
async fn a_link_outlives_a_restart_within_its_time() {
    let services = test_support::empty().await;
    let issued = services.identity.issue_setup_token().await.unwrap().unwrap();
    services.clock.advance(10 * 60);
    let identity = test_support::restarted(&services).identity;
    assert_eq!(identity.resume_setup_token(&issued.token).await.unwrap(), Some(issued.clone()));
    for other in ["", "other"] {
        assert_eq!(identity.resume_setup_token(other).await.unwrap(), None, "{other}");
    }
    services.clock.advance(20 * 60);
    assert_eq!(identity.resume_setup_token(&issued.token).await.unwrap(), None, "expired");
    let next = identity.issue_setup_token().await.unwrap().unwrap();
    identity.setup(Some(&next.token), setup_input(), &Peer::default()).await.unwrap();
    assert_eq!(identity.resume_setup_token(&next.token).await.unwrap(), None, "used");
}

#[tokio::test]
async fn a_set_up_on_the_host_brings_a_key() {
    let services = test_support::empty().await;
    let identity = &services.identity;
    let key = test_support::key_input();
    let (outcome, made) = identity.setup_with_key(setup_input(), key.clone()).await.unwrap();
    assert_eq!(outcome.session, None);
    let value = made.value.clone().unwrap();
    let ctx = services.keys.authenticate(&value, "header", "request".to_owned()).await.unwrap();
    assert_eq!(ctx.user(), outcome.user.uuid);
    assert_eq!((made.user_id, made.label.as_str()), (1, "test"));
    let ada = test_support::person(&services, outcome.user.uuid);
    assert_eq!(services.keys.list(&ada).await.unwrap().len(), 1);
    // A second set-up creates nothing, and no key either.
    let refused = identity.setup_with_key(setup_input(), key).await.unwrap_err();
    assert!(matches!(refused, Error::NotFound(_)), "{refused}");
    assert_eq!(services.keys.list(&ada).await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn parallel_set_ups_have_one_winner() {
    let services = test_support::empty().await;
    let token = services.identity.issue_setup_token().await.unwrap().unwrap().token;
    let mut calls = Vec::new();
    for number in 0..8 {
        let (identity, token) = (services.identity.clone(), token.clone());
        calls.push(tokio::spawn(async move {
            let mut input = setup_input();
            input.email = format!("ada{number}@mail.example");
            // Some attempts come from the host. They pass no more often than the
            // others.
            let token = (number % 2 == 0).then_some(token.as_str());
            identity.setup(token, input, &Peer::default()).await
        }));
    }
    let mut winners = Vec::new();
    for call in calls {
        match call.await.unwrap() {
            Ok(outcome) => winners.push(outcome),
            Err(error) => assert!(matches!(error, Error::NotFound(_)), "{error}"),
        }
    }
    assert_eq!(winners.len(), 1);
    let rows = services.projects.all_tokens().await.unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].0, winners[0].project_api_key);
}

#[tokio::test]
async fn set_up_names_the_first_invalid_field() {
    let services = test_support::empty().await;
    let wrong = |change: fn(&mut SetupInput)| {
        let mut input = setup_input();
        change(&mut input);
        input
    };
    let cases = [
        (wrong(|i| i.first_name = "  ".into()), "first_name", "blank"),
        (wrong(|i| i.email = "ada".into()), "email", "invalid_input"),
        (wrong(|i| i.password = "short".into()), "password", "password_too_short"),
        (wrong(|i| i.password = "abcabcabcabcabc".into()), "password", "password_too_weak"),
        (
            wrong(|i| i.password = "analytical ada.l engine".into()),
            "password",
            "password_too_similar",
        ),
        (
            wrong(|i| i.password = format!("{}-x-9-kettle", i.organization)),
            "password",
            "password_too_similar",
        ),
        (wrong(|i| i.organization = "x".repeat(65)), "organization", "max_length"),
        (wrong(|i| i.project = String::new()), "project", "blank"),
    ];
    for (input, attr, expected) in cases {
        let error = services.identity.setup(None, input, &Peer::default()).await.unwrap_err();
        assert_eq!(code(&error), (Some(attr), expected));
    }
    assert!(!services.identity.is_set_up().await.unwrap());
}

#[tokio::test]
async fn signing_in() {
    let services = test_support::set_up().await;
    let here = peer("192.0.2.1");
    for spelling in ["Ada.L@mail.example", " ada.l@MAIL.example ", "ａda.l@mail.example"] {
        let session = services.identity.sign_in(spelling, PASSWORD, &here).await.unwrap();
        assert!(signed_in(&services, &session.token).await.is_some());
        assert!(!format!("{session:?}").contains(&session.token));
    }
    let mut answers = Vec::new();
    for (email, password) in [
        ("ada.l@mail.example", "wrong password here"),
        ("ada.l@mail.example", ""),
        ("nobody@mail.example", PASSWORD),
        ("", ""),
        ("\0", "\0"),
        ("user:⟨x⟩`'\"; RETURN 1;", PASSWORD),
        ("12345", PASSWORD),
        (&"@".repeat(100_000), &"p".repeat(100_000)),
    ] {
        let error = services.identity.sign_in(email, password, &here).await.unwrap_err();
        answers.push(error.to_string());
        assert_eq!(code(&error), (None, "invalid_credentials"));
    }
    assert!(answers.iter().all(|answer| *answer == answers[0]));
    for token in ["", "x", "with space", &"a".repeat(100)] {
        assert!(signed_in(&services, token).await.is_none());
    }
}

#[tokio::test]
async fn a_dearer_hash_replaces_the_cheap_one() {
    let services = test_support::set_up().await;
    let store = &services.identity.core.store;
    let before = users::by_email(store, "ada.l@mail.example").await.unwrap().unwrap();
    let here = Peer::default();
    let parameters = HashParameters { memory_kib: 16, ..HashParameters::cheapest() };
    let dearer = test_support::restarted_with_hashing(&services, parameters);
    let sign_in = || dearer.identity.sign_in("ada.l@mail.example", PASSWORD, &here);
    // Two sign-ins run concurrently. One of them renews the hash, and both succeed.
    let (one, other) = tokio::join!(sign_in(), sign_in());
    let after = users::by_email(store, "ada.l@mail.example").await.unwrap().unwrap();
    assert_ne!(before.password, after.password);
    assert!(after.password.unwrap().0.contains("m=16,"));
    for session in [one, other, sign_in().await] {
        assert!(signed_in(&services, &session.unwrap().token).await.is_some());
    }
}

#[tokio::test]
async fn a_password_that_was_replaced_opens_no_session() {
    let services = test_support::set_up().await;
    let identity = &services.identity;
    let store = &identity.core.store;
    let ada = users::by_email(store, "ada.l@mail.example").await.unwrap().unwrap();
    // The password was right when it was checked.
    let proved = ada.password.unwrap();
    let after = users::PasswordHash("another".to_owned());
    assert!(users::replace_hash(store, ada.id, &proved, &after).await.unwrap());
    let proved = sessions::Proved { password: Some(&proved), second_factor: None };
    let error = identity.open_session(ada.id, &Peer::default(), None, proved).await.unwrap_err();
    assert_eq!(code(&error), (None, "invalid_credentials"));
    assert!(sessions::of_user(store, ada.id).await.unwrap().is_empty());
}

#[tokio::test]
async fn failures_slow_down_a_user_and_never_lock_one_out() {
    let services = test_support::set_up().await;
    let identity = &services.identity;
    let guess = async |number: u32| {
        // Every guess comes from another network of one site, so only the counters of
        // the user apply.
        let from = peer(&format!("198.51.100.{}", number % 250));
        identity.sign_in(" ADA.L@mail.example", "wrong password here", &from).await.unwrap_err()
    };
    for number in 0..6 {
        assert_eq!(code(&guess(number).await).1, "invalid_credentials", "{number}");
    }
    assert_eq!(identity.refusals(), 6);
    let mut waits = Vec::new();
    for number in 6..18 {
        let Error::Throttled { wait_seconds } = guess(number).await else { panic!("{number}") };
        waits.push(wait_seconds);
        services.clock.advance(i64::try_from(wait_seconds).unwrap());
        assert_eq!(code(&guess(number).await).1, "invalid_credentials");
    }
    assert_eq!(waits, [2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900, 900]);
    assert_eq!(identity.refusals(), 6 + 12 * 2);

    // The right password has to wait there too, but only for a limited time.
    let here = peer("198.51.100.251");
    let early = identity.sign_in("ada.l@mail.example", PASSWORD, &here).await;
    assert!(matches!(early, Err(Error::Throttled { wait_seconds: 900 })));
    // A restart does not help.
    let restarted = test_support::restarted(&services);
    let early = restarted.identity.sign_in("ada.l@mail.example", PASSWORD, &here).await;
    assert!(matches!(early, Err(Error::Throttled { .. })));
    services.clock.advance(900);
    identity.sign_in("ada.l@mail.example", PASSWORD, &here).await.unwrap();
    // Success resets the counter of the user.
    for number in 0..5 {
        assert_eq!(code(&guess(number).await).1, "invalid_credentials");
    }
    identity.sign_in("ada.l@mail.example", PASSWORD, &here).await.unwrap();
}

#[tokio::test]
async fn tries_from_elsewhere_hold_an_owner_up_for_a_minute_at_most() {
    let services = test_support::set_up().await;
    let identity = &services.identity;
    let email = "ada.l@mail.example";
    // The owner has no known browser, no second factor and no mail.
    let owner = peer("203.0.113.9");
    // An unknown client tries for two days, from all networks of one site, as soon as
    // it is allowed to.
    let (mut tries, mut waited) = (0_u32, 0);
    let began = services.clock.now();
    while services.clock.now() < began.plus_seconds(2 * 24 * 60 * 60) {
        let from = peer(&format!("2001:db8:7:{tries:x}::1"));
        let refused = identity.sign_in(email, "wrong password here", &from).await.unwrap_err();
        if let Error::Throttled { wait_seconds } = refused {
            services.clock.advance(i64::try_from(wait_seconds).unwrap());
            continue;
        }
        tries += 1;
        // The owner signs in between these attempts.
        if tries == 20 {
            identity.sign_in(email, PASSWORD, &owner).await.unwrap();
        } else if tries.is_multiple_of(50)
            && let Err(Error::Throttled { wait_seconds }) =
                identity.sign_in(email, "another wrong one", &owner).await
        {
            waited = waited.max(wait_seconds);
        }
    }
    assert!(tries < 250, "a quarter of an hour for each: {tries}");
    assert!(waited <= 60, "{waited}");
    services.clock.advance(60);
    identity.sign_in(email, PASSWORD, &owner).await.unwrap();
}

#[tokio::test]
async fn unknown_senders_of_many_sites_do_not_keep_an_owner_out() {
    let services = test_support::set_up().await;
    let identity = &services.identity;
    let email = "ada.l@mail.example";
    // Whenever an attempt is allowed, the unknown clients are faster than the owner.
    let mut site = 0_u32;
    let mut flood = async || {
        let mut allowed = 0;
        for _ in 0..60 {
            site += 1;
            let from = peer(&format!("2001:db8:{site:x}::1"));
            let refused = identity.sign_in(email, "wrong password here", &from).await.unwrap_err();
            allowed += u32::from(!matches!(refused, Error::Throttled { .. }));
        }
        allowed
    };
    assert_eq!(flood().await, 21 + 2, "twenty are free, one begins to wait, two of the provider");
    for _ in 0..3 {
        services.clock.advance(60);
        assert_eq!(flood().await, 1, "one a minute from all of them together");
    }
    // The owner has no known browser, no second factor, and mistypes once.
    let owner = peer("203.0.113.9");
    let mistyped = identity.sign_in(email, "another wrong one", &owner).await.unwrap_err();
    assert_eq!(code(&mistyped).1, "invalid_credentials");
    identity.sign_in(email, PASSWORD, &owner).await.unwrap();
    // The sign-in of the owner did not give more attempts to the unknown clients.
    assert_eq!(flood().await, 0);
    // From there it works again and again, but only two wrong attempts are allowed in a
    // day.
    for _ in 0..2 {
        identity.sign_in(email, "another wrong one", &owner).await.unwrap_err();
    }
    let held = identity.sign_in(email, PASSWORD, &owner).await;
    assert!(matches!(held, Err(Error::Throttled { wait_seconds: 1..=60 })));
}

/// A browser in which a user has signed in, now in another network.
fn known(session: &NewSession) -> Peer {
    Peer { browser: Some(session.browser.clone()), ..peer("203.0.113.9") }
}

#[tokio::test]
async fn attempts_from_unknown_senders_delay_no_known_browser() {
    let services = test_support::set_up().await;
    let identity = &services.identity;
    let (email, wrong) = ("ada.l@mail.example", "wrong password here");
    let session = identity.sign_in(email, PASSWORD, &peer("192.0.2.1")).await.unwrap();
    let browser = known(&session);
    let ctx = signed_in(&services, &session.token).await.unwrap();
    // Unknown clients try as often as they are allowed to, also from her network.
    for number in 0..30 {
        let elsewhere = peer(&format!("198.51.{number}.1"));
        identity.sign_in(email, wrong, &elsewhere).await.unwrap_err();
        let another = format!("guess{number}@mail.example");
        identity.sign_in(&another, wrong, &peer("203.0.113.9")).await.unwrap_err();
    }
    // The network that signs in here next has used up its attempts too.
    for _ in 0..2 {
        identity.sign_in(email, wrong, &peer("192.0.2.1")).await.unwrap_err();
    }
    for outsider in [peer("192.0.2.1"), peer("203.0.113.9")] {
        let held = identity.sign_in(email, PASSWORD, &outsider).await;
        assert!(matches!(held, Err(Error::Throttled { .. })));
    }
    // An invented token identifies no browser, and a token of one user identifies no
    // browser of another.
    for token in ["", "x", &"a".repeat(43), &"a".repeat(65)] {
        let made_up = Peer { browser: Some(token.to_owned()), ..peer("192.0.2.1") };
        let held = identity.sign_in(email, PASSWORD, &made_up).await;
        assert!(matches!(held, Err(Error::Throttled { .. })), "{token}");
    }
    let again = identity.sign_in(email, PASSWORD, &browser).await.unwrap();
    assert_eq!(again.browser, session.browser, "it stays the same browser");
    // Proving the password again in an open session does not have to wait either.
    let outsider = peer("198.51.100.1");
    identity.sign_in_again(&ctx, PASSWORD, &outsider).await.unwrap();

    // The known browser has its own attempts, and they are limited too.
    for number in 0..6 {
        let error = identity.sign_in(email, wrong, &browser).await.unwrap_err();
        assert_eq!(code(&error).1, "invalid_credentials", "{number}");
    }
    let held = identity.sign_in(email, PASSWORD, &browser).await;
    assert!(matches!(held, Err(Error::Throttled { wait_seconds: 2 })));
    services.clock.advance(2);
    identity.sign_in(email, PASSWORD, &browser).await.unwrap();
}

#[tokio::test]
async fn only_the_latest_browsers_are_known() {
    let services = test_support::set_up().await;
    let identity = &services.identity;
    let mut browsers = Vec::new();
    for _ in 0..21 {
        services.clock.advance(1);
        let signed_in = identity.sign_in("ada.l@mail.example", PASSWORD, &Peer::default()).await;
        browsers.push(known(&signed_in.unwrap()));
    }
    let user = users::by_email(&identity.core.store, "ada.l@mail.example").await.unwrap();
    let user = user.map(|user| user.id);
    let mut are_known = Vec::new();
    for browser in &browsers {
        are_known.push(identity.trusted_browser(user, browser).await.unwrap().is_some());
    }
    assert!(!are_known[0] && are_known[1..].iter().all(|known| *known), "{are_known:?}");
    assert_eq!(identity.trusted_browser(None, &browsers[20]).await.unwrap(), None);
}

#[tokio::test]
async fn counters_outlive_a_clock_that_was_ahead() {
    const YEAR: i64 = 366 * 24 * 60 * 60;
    let services = test_support::set_up().await;
    let identity = &services.identity;
    let here = peer("192.0.2.1");
    let guess = async || {
        identity.sign_in("ada.l@mail.example", "wrong password here", &here).await.unwrap_err()
    };
    services.clock.advance(YEAR);
    for _ in 0..6 {
        assert_eq!(code(&guess().await).1, "invalid_credentials");
    }
    assert!(matches!(guess().await, Error::Throttled { wait_seconds: 2 }));
    services.clock.advance(-YEAR);
    // The count is kept, and the wait that it causes begins now.
    assert_eq!(code(&guess().await).1, "invalid_credentials");
    assert!(matches!(guess().await, Error::Throttled { wait_seconds: 4 }));
    services.clock.advance(4);
    identity.sign_in("ada.l@mail.example", PASSWORD, &here).await.unwrap();
}

#[tokio::test]
async fn failures_slow_down_a_network_and_success_does_not_reset_it() {
    let services = test_support::set_up().await;
    let identity = &services.identity;
    let network = peer("2001:db8:1:2::1");
    let neighbour = peer("2001:db8:1:2:ffff::7");
    for number in 0..20 {
        let email = format!("guess{number}@mail.example");
        let error = identity.sign_in(&email, "wrong password here", &network).await.unwrap_err();
        assert_eq!(code(&error).1, "invalid_credentials", "{number}");
        // The user signs in between the guesses.
        identity.sign_in("ada.l@mail.example", PASSWORD, &neighbour).await.unwrap();
    }
    let error = identity.sign_in("g@mail.example", "wrong password", &network).await.unwrap_err();
    assert_eq!(code(&error).1, "invalid_credentials");
    let error = identity.sign_in("ada.l@mail.example", PASSWORD, &neighbour).await.unwrap_err();
    assert!(matches!(error, Error::Throttled { wait_seconds: 2 }), "{error}");
    identity.sign_in("ada.l@mail.example", PASSWORD, &peer("2001:db8:1:3::1")).await.unwrap();
    identity.sign_in("ada.l@mail.example", PASSWORD, &Peer::default()).await.unwrap();
    // A day later the count is forgotten.
    services.clock.advance(24 * 60 * 60 + 1);
    for number in 0..20 {
        let email = format!("guess{number}@mail.example");
        let error = identity.sign_in(&email, "wrong password here", &network).await.unwrap_err();
        assert_eq!(code(&error).1, "invalid_credentials", "{number}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_guesses_are_all_counted() {
    let services = test_support::set_up().await;
    let guesses: Vec<_> = (0..24)
        .map(|_| {
            let identity = services.identity.clone();
            tokio::spawn(async move {
                identity.sign_in("ada.l@mail.example", "wrong password", &Peer::default()).await
            })
        })
        .collect();
    let mut tried = 0;
    for guess in guesses {
        let error = guess.await.unwrap().unwrap_err();
        if let Error::Invalid(_) = error {
            tried += 1;
        }
    }
    assert!(tried <= 6, "{tried} of 24 guesses were tried");
}

#[tokio::test]
async fn sessions_end() {
    let services = test_support::set_up().await;
    let open = async || {
        services
            .identity
            .sign_in("ada.l@mail.example", PASSWORD, &Peer::default())
            .await
            .unwrap()
            .token
    };
    let hours = |hours: i64| services.clock.advance(hours * 60 * 60);

    // Idle: twelve hours without use.
    let idle = open().await;
    hours(12);
    assert!(signed_in(&services, &idle).await.is_some());
    hours(12);
    services.clock.advance(1);
    assert!(signed_in(&services, &idle).await.is_none());
    hours(-13);
    assert!(signed_in(&services, &idle).await.is_none(), "it stays ended");

    // Absolute: fourteen days however much it is used.
    let used = open().await;
    for _ in 0..27 {
        hours(12);
        assert!(signed_in(&services, &used).await.is_some());
    }
    hours(12);
    assert!(signed_in(&services, &used).await.is_none());

    // Signing out ends one session, not the other.
    let (one, other) = (open().await, open().await);
    let ctx = signed_in(&services, &one).await.unwrap();
    services.identity.sign_out(&ctx).await.unwrap();
    assert!(signed_in(&services, &one).await.is_none());
    let ctx = signed_in(&services, &other).await.unwrap();
    let left = sessions::of_user(&services.identity.core.store, ctx.user()).await.unwrap();
    assert_eq!(left.len(), 1, "sessions that ended were removed");
}

#[tokio::test]
async fn signing_in_again_gives_a_new_token() {
    let services = test_support::set_up().await;
    let identity = &services.identity;
    let before = identity.sign_in("ada.l@mail.example", PASSWORD, &Peer::default()).await.unwrap();
    services.clock.advance(60 * 60);
    let ctx = signed_in(&services, &before.token).await.unwrap();
    let Actor::Session { signed_in_at, .. } = ctx.actor else { panic!("no session") };
    assert_eq!(signed_in_at.plus_seconds(60 * 60), ctx.now);
    let ctx = signed_in(&services, &before.token).await.unwrap();
    let error = identity.sign_in_again(&ctx, "wrong", &Peer::default()).await.unwrap_err();
    assert_eq!(code(&error).1, "invalid_credentials");
    assert!(signed_in(&services, &before.token).await.is_some());
    let after = identity.sign_in_again(&ctx, PASSWORD, &Peer::default()).await.unwrap();
    assert!(signed_in(&services, &before.token).await.is_none());
    let ctx = signed_in(&services, &after.token).await.unwrap();
    let Actor::Session { signed_in_at, .. } = ctx.actor else { panic!("no session") };
    assert_eq!(signed_in_at, ctx.now);
}

#[tokio::test]
async fn a_flash_is_shown_once() {
    let services = test_support::set_up().await;
    let identity = &services.identity;
    let token =
        identity.sign_in("ada.l@mail.example", PASSWORD, &Peer::default()).await.unwrap().token;
    let ctx = signed_in(&services, &token).await.unwrap();
    identity.put_flash(&ctx, &token, "new_key", "phx_secret").await.unwrap();
    identity.put_flash(&ctx, &token, "notice", "saved").await.unwrap();
    let wrong = identity.take_flash(&ctx, "another", "new_key").await;
    assert!(matches!(wrong, Err(Error::NotAuthenticated)));
    let take = async |name: &str| identity.take_flash(&ctx, &token, name).await.unwrap();
    assert_eq!(take("other").await, None);
    assert_eq!(take("new_key").await.as_deref(), Some("phx_secret"));
    assert_eq!(take("new_key").await, None);
    assert_eq!(take("notice").await.as_deref(), Some("saved"));
    identity.put_flash(&ctx, &token, "new_key", "one").await.unwrap();
    identity.put_flash(&ctx, &token, "new_key", "two").await.unwrap();
    assert_eq!(take("new_key").await.as_deref(), Some("two"));
}

#[tokio::test]
async fn nothing_secret_is_stored() {
    let services = test_support::empty().await;
    let setup = services.identity.issue_setup_token().await.unwrap().unwrap();
    let outcome =
        services.identity.setup(Some(&setup.token), setup_input(), &Peer::default()).await.unwrap();
    let token = outcome.session.unwrap().token;
    let store = &services.identity.core.store;
    let row = sessions::of_user(store, outcome.user.uuid).await.unwrap().remove(0);
    assert_eq!(row.hash, secrets::sha256_hex(&token));
    assert_eq!(row.expires_at, row.signed_in_at.plus_seconds(14 * 24 * 60 * 60));
    assert!(row.signed_in_at > Timestamp::EPOCH);
    let user = users::get(store, outcome.user.uuid).await.unwrap().unwrap();
    assert!(user.password.as_ref().unwrap().0.starts_with("$argon2id$v=19$"));
    assert!(!format!("{user:?}").contains("argon2"));
    assert!(!format!("{:?}", setup_input()).contains(PASSWORD));
}

#[tokio::test]
async fn changing_a_password_needs_the_present_one() {
    let services = test_support::set_up().await;
    let identity = &services.identity;
    let here = Peer::default();
    let open =
        async || identity.sign_in("ada.l@mail.example", PASSWORD, &here).await.unwrap().token;
    let (other, this) = (open().await, open().await);
    let ctx = signed_in(&services, &this).await.unwrap();
    let chosen = "kettle-harbour-lichen-7";
    for (current, password, expected) in [
        ("wrong", chosen, (Some("current_password"), "invalid_credentials")),
        (PASSWORD, "short", (Some("password"), "password_too_short")),
        (PASSWORD, "acme tea and ada.l", (Some("password"), "password_too_similar")),
    ] {
        let refused = identity.change_password(&ctx, current, password, &here).await.unwrap_err();
        assert_eq!(code(&refused), expected, "{password}");
    }
    assert!(signed_in(&services, &other).await.is_some());
    let session = identity.change_password(&ctx, PASSWORD, chosen, &here).await.unwrap();
    for ended in [&other, &this] {
        assert!(signed_in(&services, ended).await.is_none());
    }
    assert!(signed_in(&services, &session.token).await.is_some());
    assert!(identity.sign_in("ada.l@mail.example", PASSWORD, &here).await.is_err());
    identity.sign_in("ada.l@mail.example", chosen, &here).await.unwrap();
}

#[tokio::test]
async fn sessions_are_listed_and_ended_by_their_owner() {
    let services = test_support::set_up().await;
    let identity = &services.identity;
    let email = "ada.l@mail.example";
    let one = identity.sign_in(email, PASSWORD, &peer("192.0.2.1")).await.unwrap().token;
    services.clock.advance(60);
    let two = identity.sign_in(email, PASSWORD, &peer("192.0.2.2")).await.unwrap().token;
    services.clock.advance(60);
    let this = identity.sign_in(email, PASSWORD, &Peer::default()).await.unwrap().token;
    let ctx = signed_in(&services, &this).await.unwrap();
    let listed = identity.own_sessions(&ctx).await.unwrap();
    let shown: Vec<_> = listed.iter().map(|s| (s.is_this, s.address.as_deref())).collect();
    assert_eq!(shown, [(true, None), (false, Some("192.0.2.2")), (false, Some("192.0.2.1"))]);
    assert!(listed.iter().all(|session| session.id.len() == 16));

    let missing = identity.end_session(&ctx, "0000000000000000").await.unwrap_err();
    assert!(matches!(missing, Error::NotFound(_)), "{missing}");
    let eve = test_support::outsider(&services, "eve").await;
    let foreign = identity.end_session(&eve, &listed[1].id).await.unwrap_err();
    assert!(matches!(foreign, Error::NotFound(_)), "{foreign}");
    identity.end_session(&ctx, &listed[1].id).await.unwrap();
    assert!(signed_in(&services, &two).await.is_none());
    assert!(signed_in(&services, &one).await.is_some());
    identity.end_other_sessions(&ctx).await.unwrap();
    assert!(signed_in(&services, &one).await.is_none());
    assert!(signed_in(&services, &this).await.is_some());
    // A session that ended by age is not listed.
    identity.sign_in(email, PASSWORD, &Peer::default()).await.unwrap();
    let mut listed = Vec::new();
    for _ in 0..2 {
        services.clock.advance(7 * 60 * 60);
        let ctx = signed_in(&services, &this).await.unwrap();
        listed.push(identity.own_sessions(&ctx).await.unwrap().len());
    }
    assert_eq!(listed, [2, 1]);
}
