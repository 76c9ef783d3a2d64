//! How often an issuer is asked for its document and its keys.

use chrono::TimeDelta;
use serde_json::{Value, json};
use weir_oidc::{ProviderError, Refusal, SignOn};
use weir_testservers::StubAnswer;

use crate::issuer::{
    EGRESS, Issuer, Plan, REDIRECT_URI, after, begun_at, issuer, log_in, provider, said,
};
use crate::signers::{OTHER_RSA, RSA};

const DOCUMENT: &str = "/.well-known/openid-configuration";

fn counts(issuer: &Issuer) -> (usize, usize) {
    let script = issuer.lock();
    (script.count(DOCUMENT), script.count("/keys"))
}

/// A callback this long after the first login was begun.
fn later(plan: &mut Plan, minutes: i64) {
    plan.passed = TimeDelta::minutes(minutes);
    let now = (begun_at() + plan.passed).timestamp();
    plan.claim("iat", now);
    plan.claim("exp", now + 60);
}

#[tokio::test]
async fn document_and_keys_are_fetched_once_an_hour() {
    let issuer = issuer().await;
    let provider = provider(&issuer.url());
    let sign_on = SignOn::new(EGRESS.clone());
    for _ in 0..5 {
        log_in(&sign_on, &issuer, &provider, |_| {}).await.unwrap();
    }
    assert_eq!(counts(&issuer), (1, 1));
    sign_on.begin(&provider, REDIRECT_URI, after(TimeDelta::minutes(59))).await.unwrap();
    assert_eq!(counts(&issuer), (1, 1));
    sign_on.begin(&provider, REDIRECT_URI, after(TimeDelta::minutes(61))).await.unwrap();
    assert_eq!(counts(&issuer), (2, 1));
}

#[tokio::test]
async fn concurrent_logins_share_one_request() {
    let issuer = issuer().await;
    let provider = provider(&issuer.url());
    let sign_on = SignOn::new(EGRESS.clone());
    let begin = || sign_on.begin(&provider, REDIRECT_URI, after(TimeDelta::zero()));
    let all = tokio::join!(begin(), begin(), begin(), begin(), begin(), begin());
    assert!(all.0.is_ok() && all.5.is_ok());
    assert_eq!(counts(&issuer), (1, 0));
}

#[tokio::test]
async fn a_failed_request_is_not_remembered() {
    let issuer = issuer().await;
    let provider = provider(&issuer.url());
    let sign_on = SignOn::new(EGRESS.clone());
    let working = issuer.lock().discovery.clone();
    issuer.lock().discovery.status = 503;
    assert!(log_in(&sign_on, &issuer, &provider, |_| {}).await.is_err());
    issuer.lock().discovery = working;
    assert!(log_in(&sign_on, &issuer, &provider, |_| {}).await.is_ok());
    assert_eq!(counts(&issuer), (2, 1));
}

#[tokio::test]
async fn new_keys_are_found_when_a_key_is_unknown_but_once_in_five_seconds() {
    let issuer = issuer().await;
    let provider = provider(&issuer.url());
    let sign_on = SignOn::new(EGRESS.clone());
    log_in(&sign_on, &issuer, &provider, |_| {}).await.unwrap();
    // The issuer has a new key.
    let rotated = |plan: &mut Plan| {
        plan.signer = &OTHER_RSA;
        plan.header("kid", "b");
        plan.keys = said(&json!({"keys": [RSA.jwk("a"), OTHER_RSA.jwk("b")]}));
    };
    log_in(&sign_on, &issuer, &provider, rotated).await.unwrap();
    assert_eq!(counts(&issuer), (1, 2));
    log_in(&sign_on, &issuer, &provider, rotated).await.unwrap();
    assert_eq!(counts(&issuer), (1, 2));
    // Unknown keys do not make this server ask again and again.
    let unknown = |plan: &mut Plan| plan.header("kid", "c");
    for _ in 0..3 {
        let outcome = log_in(&sign_on, &issuer, &provider, unknown).await;
        assert_eq!(outcome, Err(Refusal::UnknownKey));
    }
    assert_eq!(counts(&issuer), (1, 2));
    for (later, fetches) in [(4, 2), (5, 3), (9, 3), (10, 4)] {
        let outcome = log_in(&sign_on, &issuer, &provider, |plan| {
            unknown(plan);
            plan.passed += TimeDelta::seconds(later);
        });
        assert_eq!(outcome.await, Err(Refusal::UnknownKey));
        assert_eq!(counts(&issuer), (1, fetches), "{later} seconds later");
    }
}

#[tokio::test]
async fn a_new_key_under_the_id_of_an_old_one_is_found() {
    let issuer = issuer().await;
    let provider = provider(&issuer.url());
    let sign_on = SignOn::new(EGRESS.clone());
    log_in(&sign_on, &issuer, &provider, |_| {}).await.unwrap();
    let replaced = |plan: &mut Plan| {
        plan.signer = &OTHER_RSA;
        plan.key_set(&[OTHER_RSA.jwk("a")]);
    };
    log_in(&sign_on, &issuer, &provider, replaced).await.unwrap();
    assert_eq!(counts(&issuer), (1, 2));
    // Wrong signatures do not make this server ask again and again.
    for (later, fetches) in [(0, 2), (5, 3), (5, 3)] {
        let outcome = log_in(&sign_on, &issuer, &provider, |plan| {
            plan.key_set(&[OTHER_RSA.jwk("a")]);
            plan.passed += TimeDelta::seconds(later);
        });
        assert_eq!(outcome.await, Err(Refusal::Signature));
        assert_eq!(counts(&issuer), (1, fetches), "{later} seconds later");
    }
    log_in(&sign_on, &issuer, &provider, replaced).await.unwrap();
    assert_eq!(counts(&issuer), (1, 3));
}

#[tokio::test]
async fn visitors_fetch_no_keys() {
    let issuer = issuer().await;
    let provider = provider(&issuer.url());
    let sign_on = SignOn::new(EGRESS.clone());
    log_in(&sign_on, &issuer, &provider, |_| {}).await.unwrap();
    // A token in a callback is not read, and the issuer issues none for a code that it does
    // not know.
    let forged = RSA.token(r#"{"alg":"RS256","kid":"unknown"}"#, "{}");
    let refused = Refusal::NoToken(ProviderError::InvalidCode);
    for (query, expected) in [
        (format!("id_token={forged}"), Refusal::CodeMissing),
        (format!("code=forged&id_token={forged}"), refused),
    ] {
        let outcome = log_in(&sign_on, &issuer, &provider, |plan| {
            plan.query = format!("state={}&{query}", plan.state);
            let answer = said(&json!({"error": "invalid_grant"}));
            plan.whole_answer = Some(StubAnswer { status: 400, ..answer });
        });
        assert_eq!(outcome.await, Err(expected), "{query}");
    }
    assert_eq!(counts(&issuer), (1, 1));
}

#[tokio::test]
async fn a_key_that_was_withdrawn_is_not_used_after_an_hour() {
    let issuer = issuer().await;
    let provider = provider(&issuer.url());
    let sign_on = SignOn::new(EGRESS.clone());
    log_in(&sign_on, &issuer, &provider, |_| {}).await.unwrap();
    let now = after(TimeDelta::minutes(61));
    let begun = sign_on.begin(&provider, REDIRECT_URI, now).await.unwrap();
    let mut plan = Plan::new(provider.issuer(), &begun);
    later(&mut plan, 61);
    let mut answer = plan.answer.clone();
    let token = plan.signer.token(&plan.header.to_string(), &plan.claims.to_string());
    crate::issuer::change(&mut answer, "id_token", Value::from(token));
    {
        let mut script = issuer.lock();
        script.token = said(&answer);
        script.keys = said(&json!({"keys": [OTHER_RSA.jwk("b")]}));
    }
    let callback = weir_oidc::Callback::read(&plan.query).unwrap();
    let outcome = sign_on.finish(&provider, begun.pending, &callback, now).await;
    assert_eq!(outcome, Err(Refusal::UnknownKey));
}
