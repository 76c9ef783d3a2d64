//! Tokens, callbacks and answers that must be refused, one row each, with the reason. The rows
//! for tokens are in `tokens`, and those for what an issuer publishes in `documents`.

mod documents;
mod tokens;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::TimeDelta;
use serde_json::{Value, json};
use weir_egress::FaultClass;
use weir_oidc::{Answer, CallbackFault, ProviderError, Refusal, SignOn};
use weir_testservers::StubAnswer;

use self::documents::{DOCUMENTS, with};
use self::tokens::TOKENS;
use crate::issuer::{
    ACCESS_TOKEN, CLIENT_SECRET, CODE, EGRESS, Plan, SUBJECT, change, discovery, egress, issuer,
    log_in, provider, said, said_text,
};
use crate::signers::RSA;

/// A name, the reason, and what the attacker changes.
type Row = (&'static str, Refusal, fn(&mut Plan));

const fn unreachable(answer: Answer, fault: FaultClass) -> Refusal {
    Refusal::Unreachable { answer, fault }
}

const fn member(answer: Answer, member: &'static str) -> Refusal {
    Refusal::Member { answer, member }
}

const CALLBACKS: &[Row] = &[
    ("the state of another login", Refusal::State, |plan| {
        plan.query = format!("code={CODE}&state={}", "s".repeat(43));
    }),
    ("no state", Refusal::StateMissing, |plan| plan.query = format!("code={CODE}")),
    ("an empty state", Refusal::Callback(CallbackFault::Malformed), |plan| {
        plan.query = format!("code={CODE}&state=");
    }),
    ("the state without its last character", Refusal::State, |plan| {
        plan.query = format!("code={CODE}&state={}", &plan.state[..42]);
    }),
    ("no code", Refusal::CodeMissing, |plan| plan.query = format!("state={}", plan.state)),
    ("two codes", Refusal::Callback(CallbackFault::Twice("code")), |plan| {
        plan.query += "&code=other";
    }),
    ("two states, the right one last", Refusal::Callback(CallbackFault::Twice("state")), |plan| {
        plan.query = format!("state=other&{}", plan.query);
    }),
    (
        "a second state in another spelling",
        Refusal::Callback(CallbackFault::Twice("state")),
        |plan| {
            plan.query += "&%73tate=other";
        },
    ),
    ("the issuer of another provider (mix-up)", Refusal::CallbackIssuer, |plan| {
        plan.query += "&iss=https%3A%2F%2Fevil.example";
    }),
    ("an issuer with a slash more in the callback", Refusal::CallbackIssuer, |plan| {
        plan.query += &format!("&iss={}/", plan.issuer);
    }),
    ("denied by the user", Refusal::RefusedByProvider(ProviderError::AccessDenied), |plan| {
        plan.query = format!("error=access_denied&state={}", plan.state);
    }),
    ("an error with a code", Refusal::RefusedByProvider(ProviderError::ServerError), |plan| {
        plan.query += "&error=server_error";
    }),
    ("an error that is in no standard", Refusal::RefusedByProvider(ProviderError::Other), |plan| {
        plan.query = format!("error=<script>alert(1)</script>&state={}", plan.state);
    }),
    ("an error for another login", Refusal::State, |plan| {
        plan.query = "error=access_denied&state=other".to_owned();
    }),
    ("an error with a huge description", Refusal::Callback(CallbackFault::TooLong), |plan| {
        let description = "a".repeat(10_000);
        plan.query =
            format!("error=access_denied&error_description={description}&state={}", plan.state);
    }),
    ("a code of 5000 characters", Refusal::Callback(CallbackFault::TooLong), |plan| {
        plan.query = format!("code={}&state={}", "c".repeat(5000), plan.state);
    }),
    ("a code with a line break", Refusal::Callback(CallbackFault::Malformed), |plan| {
        plan.query = format!("code=a%0d%0ab&state={}", plan.state);
    }),
    ("a hundred parameters", Refusal::Callback(CallbackFault::TooLong), |plan| {
        plan.query += &"&a=b".repeat(100);
    }),
    ("after ten minutes", Refusal::LoginExpired, |plan| plan.passed = TimeDelta::minutes(10)),
    ("before it was begun", Refusal::LoginExpired, |plan| plan.passed = TimeDelta::minutes(-2)),
];

const ANSWERS: &[Row] = &[
    ("a token answer in HTML", Refusal::NotJson(Answer::Token), |plan| {
        plan.whole_answer = Some(said_text(200, "text/html", "<html>hidden</html>"));
    }),
    ("HTML that claims to be JSON", Refusal::NotJson(Answer::Token), |plan| {
        plan.whole_answer = Some(said_text(200, "application/json", "<html>hidden</html>"));
    }),
    ("JSON that claims to be a form", Refusal::NotJson(Answer::Token), |plan| {
        let kind = "application/x-www-form-urlencoded";
        plan.whole_answer = Some(said_text(200, kind, r#"{"access_token": "a"}"#));
    }),
    ("a token answer without a type", Refusal::NotJson(Answer::Token), |plan| {
        plan.whole_answer = Some(StubAnswer::json(200, &plan.answer));
    }),
    ("a token answer that is a list", Refusal::NotJson(Answer::Token), |plan| {
        plan.whole_answer = Some(said(&json!([plan.answer])));
    }),
    ("a token answer with two access tokens", Refusal::NotJson(Answer::Token), |plan| {
        let body = r#"{"access_token":"a","access_token":"b","token_type":"Bearer"}"#;
        plan.whole_answer = Some(said_text(200, "application/json", body));
    }),
    ("a token answer of 5 MB", unreachable(Answer::Token, FaultClass::TooLarge), |plan| {
        plan.member("more", "a".repeat(5_000_000))
    }),
    (
        "a token answer that leads elsewhere",
        unreachable(Answer::Token, FaultClass::Status(307)),
        |plan| {
            let to = format!("{}/keys", plan.issuer);
            plan.whole_answer = Some(StubAnswer::empty(307).with("location", &to));
        },
    ),
    (
        "a token answer with another success",
        unreachable(Answer::Token, FaultClass::Status(201)),
        |plan| plan.whole_answer = Some(said_text(201, "application/json", "{}")),
    ),
    (
        "a fault of the token endpoint",
        unreachable(Answer::Token, FaultClass::Status(503)),
        |plan| {
            plan.whole_answer = Some(said_text(503, "application/json", r#"{"error":"hidden"}"#))
        },
    ),
    ("a code that is not accepted", Refusal::NoToken(ProviderError::InvalidCode), |plan| {
        let error = json!({"error": "invalid_grant", "error_description": "hidden"});
        plan.whole_answer =
            Some(StubAnswer::json(400, &error).with("content-type", "application/json"));
    }),
    ("a client that is not accepted", Refusal::NoToken(ProviderError::InvalidClient), |plan| {
        let error = json!({"error": "invalid_client"});
        plan.whole_answer =
            Some(StubAnswer::json(401, &error).with("content-type", "application/json"));
    }),
    ("a refusal without a reason", unreachable(Answer::Token, FaultClass::Status(400)), |plan| {
        plan.whole_answer = Some(said_text(400, "application/json", "{}"))
    }),
    ("an error beside a token", Refusal::NoToken(ProviderError::Other), |plan| {
        plan.member("error", 1);
    }),
    ("no ID token", member(Answer::Token, "id_token"), |plan| {
        plan.whole_answer = Some(said(&plan.answer));
    }),
    ("no access token", member(Answer::Token, "access_token"), |plan| {
        plan.member("access_token", Value::Null);
    }),
    ("an access token that ends a header", member(Answer::Token, "access_token"), |plan| {
        plan.member("access_token", "a\r\nx: y");
    }),
    ("another type of token", member(Answer::Token, "token_type"), |plan| {
        plan.member("token_type", "mac");
    }),
    ("a key set with 101 keys", Refusal::TooManyKeys, |plan| {
        plan.key_set(&vec![RSA.jwk("a"); 101]);
    }),
    ("a key set with 10,000 keys", Refusal::TooManyKeys, |plan| {
        plan.key_set(&vec![json!({"kty": "RSA", "kid": "a"}); 10_000]);
    }),
    ("a key set of 2 MB", unreachable(Answer::Keys, FaultClass::TooLarge), |plan| {
        plan.key_set(&[RSA.jwk("a"), json!("a".repeat(2_000_000))])
    }),
    ("an empty key set", Refusal::NoUsableKey, |plan| plan.key_set(&[])),
    ("a short RSA key", Refusal::NoUsableKey, |plan| {
        let mut key = RSA.jwk("a");
        change(&mut key, "n", URL_SAFE_NO_PAD.encode([0xc1; 128]).into());
        plan.key_set(&[key]);
    }),
    ("an RSA key of 16384 bits", Refusal::NoUsableKey, |plan| {
        let mut key = RSA.jwk("a");
        change(&mut key, "n", URL_SAFE_NO_PAD.encode([0xc1; 2048]).into());
        plan.key_set(&[key]);
    }),
    ("a key set in HTML", Refusal::NotJson(Answer::Keys), |plan| {
        plan.keys = said_text(200, "text/html", "<html>");
    }),
    ("no key set", unreachable(Answer::Keys, FaultClass::Status(404)), |plan| {
        plan.keys = StubAnswer::empty(404)
    }),
    ("userinfo of another user", Refusal::UserinfoSubject, |plan| {
        plan.without_email();
        plan.userinfo = said(&json!({
            "sub": "subject-2", "email": "eve@corp.example", "email_verified": true,
        }));
    }),
    ("userinfo without a subject", Refusal::ClaimMissing("sub"), |plan| {
        plan.without_email();
        plan.userinfo = said(&json!({"email": "ada@corp.example", "email_verified": true}));
    }),
    ("userinfo with email_verified as a text", Refusal::ClaimType("email_verified"), |plan| {
        plan.without_email();
        plan.userinfo = said(&json!({
            "sub": SUBJECT, "email": "ada@corp.example", "email_verified": "true",
        }));
    }),
    ("userinfo as a token", Refusal::NotJson(Answer::Userinfo), |plan| {
        plan.without_email();
        plan.userinfo = said_text(200, "application/jwt", "a.b.c");
    }),
    (
        "a fault of the userinfo endpoint",
        unreachable(Answer::Userinfo, FaultClass::Status(401)),
        |plan| {
            plan.without_email();
            plan.userinfo = StubAnswer::empty(401);
        },
    ),
];

/// The administrator reads a sentence with nothing that a provider wrote.
fn check_texts(name: &str, refusal: Refusal) {
    let text = refusal.for_administrators();
    assert!(text.len() > 20 && text.ends_with('.'), "{name}: {text}");
    for secret in [CODE, ACCESS_TOKEN, CLIENT_SECRET, "hidden", "evil", "<", "script", "meta-data"]
    {
        assert!(!format!("{text} {refusal:?}").contains(secret), "{name}: {text}");
    }
}

async fn check(rows: &[Row]) {
    for (name, expected, changing) in rows {
        let issuer = issuer().await;
        let provider = provider(&issuer.url());
        let sign_on = SignOn::new(EGRESS.clone());
        let outcome = log_in(&sign_on, &issuer, &provider, changing).await;
        assert_eq!(outcome, Err(*expected), "{name}");
        check_texts(name, *expected);
    }
}

#[tokio::test]
async fn hostile_tokens_are_refused() {
    assert!(TOKENS.len() >= 40);
    check(TOKENS).await;
}

#[tokio::test]
async fn hostile_callbacks_are_refused() {
    assert!(CALLBACKS.len() >= 20);
    check(CALLBACKS).await;
}

#[tokio::test]
async fn hostile_answers_are_refused() {
    check(ANSWERS).await;
}

#[tokio::test]
async fn hostile_documents_are_refused() {
    for (name, expected, publish) in DOCUMENTS {
        let issuer = issuer().await;
        let url = issuer.url();
        issuer.lock().discovery = publish(discovery(&url), &url);
        let sign_on = SignOn::new(EGRESS.clone());
        let outcome = log_in(&sign_on, &issuer, &provider(&url), |_| {}).await;
        assert_eq!(outcome, Err(*expected), "{name}");
        check_texts(name, *expected);
        // A document that was refused is asked for once, and leads to no other request.
        assert_eq!(issuer.lock().asked.len(), 1, "{name}");
    }
}

#[tokio::test]
async fn an_issuer_that_names_itself_must_do_so() {
    let issuer = issuer().await;
    let url = issuer.url();
    let name = "authorization_response_iss_parameter_supported";
    issuer.lock().discovery = with(discovery(&url), name, true);
    let sign_on = SignOn::new(EGRESS.clone());
    let provider = provider(&url);
    let outcome = log_in(&sign_on, &issuer, &provider, |_| {}).await;
    assert_eq!(outcome, Err(Refusal::CallbackIssuerMissing));
    // Also with an error instead of a code.
    let outcome = log_in(&sign_on, &issuer, &provider, |plan| {
        plan.query = format!("error=access_denied&state={}", plan.state);
    });
    assert_eq!(outcome.await, Err(Refusal::CallbackIssuerMissing));
    let outcome = log_in(&sign_on, &issuer, &provider, |plan| {
        plan.query += &format!("&iss={}", plan.issuer);
    });
    assert!(outcome.await.is_ok());
}

#[tokio::test]
async fn a_name_with_an_inner_address_is_not_dialled() {
    let issuer = issuer().await;
    let url = issuer.url();
    issuer.lock().discovery = with(discovery(&url), "jwks_uri", "https://inner.example/keys");
    let sign_on = SignOn::new(EGRESS.clone());
    let outcome = log_in(&sign_on, &issuer, &provider(&url), |_| {}).await;
    assert_eq!(outcome, Err(unreachable(Answer::Keys, FaultClass::Forbidden)));
    // Nor is this machine, if the operator has not allowed it.
    let rules = weir_egress::Rules::default();
    let sign_on = SignOn::new(weir_egress::Egress::new(rules).unwrap());
    let outcome = log_in(&sign_on, &issuer, &provider(&url), |_| {}).await;
    assert_eq!(outcome, Err(unreachable(Answer::Discovery, FaultClass::Forbidden)));
}

#[tokio::test]
async fn an_issuer_at_localhost_is_on_this_machine() {
    let issuer = issuer().await;
    let url = issuer.url().replace("127.0.0.1", "localhost");
    issuer.lock().discovery = said(&discovery(&url));
    let provider = provider(&url);
    let forbidden = Err(unreachable(Answer::Discovery, FaultClass::Forbidden));
    for (addresses, expected) in [
        (&["127.0.0.1"][..], Ok(())),
        // The operator allows this network, but not http to it.
        (&["10.0.0.1"][..], forbidden),
        (&["127.0.0.1", "10.0.0.1"][..], forbidden),
    ] {
        let sign_on = SignOn::new(egress(&["127.0.0.0/8", "10.0.0.0/8"], addresses));
        let outcome = log_in(&sign_on, &issuer, &provider, |_| {}).await;
        assert_eq!(outcome.map(drop), expected, "{addresses:?}");
    }
}

#[tokio::test]
async fn a_login_is_finished_with_the_provider_that_it_was_begun_with() {
    let (honest, evil) = (issuer().await, issuer().await);
    let sign_on = SignOn::new(EGRESS.clone());
    let begun_with = provider(&honest.url());
    let now = crate::issuer::after(TimeDelta::zero());
    for change in 0..3 {
        let mut settings =
            crate::issuer::settings(weir_oidc::Kind::OpenId, "keycloak", &honest.url());
        match change {
            0 => settings.id = "other".to_owned(),
            1 => settings.issuer = evil.url(),
            _ => settings.client_id = "other".to_owned(),
        }
        let other = weir_oidc::Provider::new(settings).unwrap();
        let begun = sign_on.begin(&begun_with, crate::issuer::REDIRECT_URI, now).await.unwrap();
        let plan = Plan::new(begun_with.issuer(), &begun);
        let callback = weir_oidc::Callback::read(&plan.query).unwrap();
        let outcome = sign_on.finish(&other, begun.pending, &callback, now).await;
        assert_eq!(outcome, Err(Refusal::OtherProvider));
    }
    assert_eq!(evil.lock().asked.len(), 0);
    assert_eq!(honest.lock().count("/token"), 0);
}

#[tokio::test]
async fn a_token_of_another_login_is_refused() {
    let issuer = issuer().await;
    let provider = provider(&issuer.url());
    let sign_on = SignOn::new(EGRESS.clone());
    let mut first = Value::Null;
    log_in(&sign_on, &issuer, &provider, |plan| first = plan.claims.clone()).await.unwrap();
    let outcome = log_in(&sign_on, &issuer, &provider, |plan| plan.claims = first).await;
    assert_eq!(outcome, Err(Refusal::Nonce));
}
