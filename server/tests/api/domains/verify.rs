//! POST `…/domains/{id}/verify/`, and later verifications, against a real name server
//! whose answers change.

use std::time::{Duration, Instant};

use http::Method;
use serde_json::json;
use weir_model::Timestamp;
use weir_model::organizations::Level;
use weir_service::Clock;
use weir_testkit::{DnsAnswer, TestApp};

use super::{
    assert_guarded, challenge, claim, claim_with, member, one, outsider, owner, path, record,
    verified, verify, verify_with,
};

#[tokio::test(flavor = "multi_thread")]
async fn without_the_record_it_is_200_and_unverified_and_with_it_verified_once() {
    let app = TestApp::with_owner().await;
    let domain = claim(&app, "tea.example.com").await;
    let answer = verify(&app, &domain).await;
    assert_eq!((answer.status, answer.json()), (200, domain.clone()));
    app.dns().set(&record(&domain), DnsAnswer::txt("another"));
    let answer = verify(&app, &domain).await;
    assert_eq!((answer.status, answer.json()), (200, domain.clone()));

    // Earlier DNS answers are not cached.
    app.dns().set(&record(&domain), DnsAnswer::txt(challenge(&domain)));
    let before = app.app().services.clock.now();
    let answer = verify(&app, &domain).await;
    let after = answer.json();
    assert_eq!((answer.status, &after["is_verified"]), (200, &json!(true)));
    let at = Timestamp::parse(after["verified_at"].as_str().unwrap()).unwrap();
    assert!(at >= before, "{after}");
    assert_eq!(owner(&app).await.get(&one(&app, &domain)).await.json(), after);

    let queries = app.dns().query_count();
    let answer = verify(&app, &domain).await;
    let detail = "This domain has already been verified.";
    answer.assert_field_error(400, "validation_error", "already_verified", detail, None);
    assert_eq!(app.dns().query_count(), queries);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_proves_a_domain() {
    let app = TestApp::with_owner().await;
    let caller = owner(&app).await;
    let strings = |strings: &[&str]| strings.iter().map(|text| (*text).to_owned()).collect();
    for (at, is_tcp) in [(0, false), (1, true)] {
        let domain = claim_with(&caller, &app, &format!("many{at}.example.com")).await;
        let filling = "x".repeat(250);
        let records = vec![
            strings(&["another"]),
            strings(&[&filling, &filling]),
            strings(&[challenge(&domain)]),
        ];
        let answer = if is_tcp { DnsAnswer::TxtOverTcp(records) } else { DnsAnswer::Txt(records) };
        app.dns().set(&record(&domain), answer);
        assert_eq!(
            verify_with(&caller, &app, &domain).await.json()["is_verified"],
            true,
            "tcp: {is_tcp}"
        );
    }
    let domain = claim_with(&caller, &app, "split.example.com").await;
    let (start, end) = challenge(&domain).split_at(20);
    app.dns().set(&record(&domain), DnsAnswer::Txt(vec![strings(&[start, end])]));
    assert_eq!(verify_with(&caller, &app, &domain).await.json()["is_verified"], true, "split");

    let domain = claim_with(&caller, &app, "first.example.com").await;
    app.dns().set(&record(&domain), DnsAnswer::Txt(vec![strings(&[challenge(&domain), "more"])]));
    assert_eq!(
        verify_with(&caller, &app, &domain).await.json()["is_verified"],
        true,
        "first string"
    );

    for (name, alias) in [
        ("alias", DnsAnswer::Alias as fn(String) -> DnsAnswer),
        ("alias-alone", DnsAnswer::AliasAlone as fn(String) -> DnsAnswer),
    ] {
        let domain = claim_with(&caller, &app, &format!("{name}.example.com")).await;
        let target = format!("{name}.proofs.example.net");
        app.dns().set(&record(&domain), alias(target.clone()));
        app.dns().set(&target, DnsAnswer::txt(challenge(&domain)));
        assert_eq!(verify_with(&caller, &app, &domain).await.json()["is_verified"], true, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not() {
    let app = TestApp::with_owner().await;
    let caller = owner(&app).await;
    let domain = claim_with(&caller, &app, "tea.example.com").await;
    let text = challenge(&domain).to_owned();
    for answer in [
        DnsAnswer::Nothing,
        DnsAnswer::Failure,
        DnsAnswer::Refusal,
        DnsAnswer::AliasAlone("nowhere.example.net".to_owned()),
        DnsAnswer::AliasAlone(record(&domain)),
        DnsAnswer::txt(&text.to_ascii_lowercase().replace(|c: char| c.is_ascii_digit(), "x")),
        DnsAnswer::txt(&format!("{text} ")),
        DnsAnswer::txt(&format!("x{text}")),
        DnsAnswer::txt(""),
        DnsAnswer::Txt(vec![vec!["x".to_owned(), text.clone()]]),
    ] {
        app.dns().set(&record(&domain), answer.clone());
        let reply = verify_with(&caller, &app, &domain).await;
        assert_eq!((reply.status, reply.json()), (200, domain.clone()), "{answer:?}");
    }
    // The record must be at the domain itself, not at a parent or sibling.
    app.dns().set("tea.example.com", DnsAnswer::txt(&text));
    app.dns().set("_posthog-challenge.example.com", DnsAnswer::txt(&text));
    app.dns().set(&record(&domain), DnsAnswer::Nothing);
    assert_eq!(verify_with(&caller, &app, &domain).await.json(), domain);
}

#[tokio::test(flavor = "multi_thread")]
async fn silence_and_garbage_end_within_the_time_limit() {
    let app = TestApp::with_owner().await;
    let domain = claim(&app, "tea.example.com").await;
    for answer in [DnsAnswer::Silence, DnsAnswer::Garbage] {
        app.dns().set(&record(&domain), answer.clone());
        let start = Instant::now();
        let reply = verify(&app, &domain).await;
        assert_eq!((reply.status, reply.json()), (200, domain.clone()), "{answer:?}");
        // The limit is five seconds; the rest is for a busy machine.
        assert!(start.elapsed() < Duration::from_secs(8), "{answer:?}: {:?}", start.elapsed());
    }
    let ctx = app.owner().ctx();
    let org = app.app().services.organizations.enter(&ctx, "@current").await.unwrap();
    let shown = app.app().services.domains.get(&org, domain["id"].as_str().unwrap()).await.unwrap();
    assert!(shown.checked_at.is_some(), "the attempt is stored");
}

#[tokio::test(flavor = "multi_thread")]
async fn required_level_and_body() {
    let app = TestApp::with_owner().await;
    let domain = claim(&app, "tea.example.com").await;
    let path_of = format!("{}verify/", one(&app, &domain));
    assert_guarded(&app, async |caller| caller.post(&path_of, &json!({})).await).await;
    let outsider = outsider(&app).await;
    let foreign = path_of.replace(&app.organization().to_string(), "@current");
    let answer = outsider.post(&foreign, &json!({})).await;
    answer.assert_error(404, "invalid_request", "not_found", "Not found.");
    assert_eq!(app.dns().query_count(), 0);

    // Fields of the resource may be sent and are ignored.
    app.dns().set(&record(&domain), DnsAnswer::txt(challenge(&domain)));
    let administrator = member(&app, "linus", Level::Administrator).await;
    let body = json!({"domain": "coffee.example.com", "sso_enforcement": "okta"});
    let after = administrator.post(&path_of, &body).await.json();
    assert_eq!((&after["domain"], &after["is_verified"]), (&domain["domain"], &json!(true)));
    let other = claim(&app, "coffee.example.com").await;
    let bare = format!("{}{}/verify", path(&app), other["id"].as_str().unwrap());
    assert_eq!(owner(&app).await.call(Method::POST, &bare).send().await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_looked_for_again_every_day() {
    let clock = Clock::fixed(Timestamp::from_micros(1_780_000_000_000_000));
    let app = TestApp::at(clock.clone()).await.set_up().await;
    let domain = verified(&app, "tea.example.com").await;
    let domains = &app.app().services.domains;
    let shown = async || {
        let ctx = app.owner().ctx();
        let org = app.app().services.organizations.enter(&ctx, "@current").await.unwrap();
        domains.get(&org, domain["id"].as_str().unwrap()).await.unwrap()
    };
    app.dns().set(&record(&domain), DnsAnswer::Failure);
    let mut since = None;
    for day in 1..=8 {
        clock.advance(24 * 60 * 60);
        domains.check_again().await.unwrap();
        let now = shown().await;
        since = since.or(now.verification_failing_since);
        assert!(since.is_some() && now.verification_failing_since == since, "day {day}");
        assert_eq!((now.domain.is_verified, now.is_suspended), (true, day == 8), "day {day}");
    }
    // The API object does not contain it.
    let listed = owner(&app).await.get(&path(&app)).await.json()["results"][0].clone();
    assert_eq!(listed, domain);
    app.dns().set(&record(&domain), DnsAnswer::txt(challenge(&domain)));
    clock.advance(24 * 60 * 60);
    domains.check_again().await.unwrap();
    let now = shown().await;
    assert_eq!((now.verification_failing_since, now.is_suspended), (None, false));
}
