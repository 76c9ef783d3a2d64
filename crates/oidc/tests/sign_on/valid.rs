//! Logins that must succeed, one row each.

use chrono::TimeDelta;
use serde_json::{Value, json};
use weir_oidc::{Callback, Email, Identity, Kind, Provider, SignOn};

use crate::issuer::{
    ACCESS_TOKEN, CLIENT_ID, CLIENT_SECRET, CODE, EGRESS, Plan, REDIRECT_URI, SUBJECT, after,
    begun_at, change, discovery, issuer, issuer_below, log_in, parameter, provider, said,
    said_text, settings,
};
use crate::signers::{EDWARDS, OTHER_RSA, P256, RSA, access_token_hash, long_access_token_hash};

type Row = (&'static str, fn(&mut Plan));

const ROWS: &[Row] = &[
    ("RS256", |_| {}),
    ("ES256", |plan| {
        plan.signer = &P256;
        plan.header("alg", "ES256");
        plan.key_set(&[P256.jwk("a")]);
    }),
    ("EdDSA", |plan| {
        plan.signer = &EDWARDS;
        plan.header("alg", "EdDSA");
        plan.key_set(&[EDWARDS.jwk("a")]);
        plan.claim("at_hash", long_access_token_hash(ACCESS_TOKEN));
    }),
    ("a single key without an id", |plan| plan.header("kid", Value::Null)),
    ("one key of several types with the same id", |plan| {
        plan.key_set(&[P256.jwk("a"), EDWARDS.jwk("a"), RSA.jwk("a")]);
    }),
    ("a key among a hundred", |plan| {
        let mut keys: Vec<Value> = (0..99).map(|id| OTHER_RSA.jwk(&id.to_string())).collect();
        keys.push(RSA.jwk("a"));
        plan.key_set(&keys);
    }),
    ("a key set with its own type", |plan| {
        plan.keys = said_text(
            200,
            "application/jwk-set+json; charset=utf-8",
            &json!({"keys": [RSA.jwk("a")]}).to_string(),
        );
    }),
    ("no type in the header", |plan| plan.header("typ", Value::Null)),
    ("a type in lower case", |plan| plan.header("typ", "jwt")),
    ("addresses of other keys in the header are ignored", |plan| {
        plan.header("jku", "https://evil.example/keys");
        plan.header("x5u", "https://evil.example/certificate");
        plan.header("jwk", OTHER_RSA.jwk("a"));
    }),
    ("a list with one audience", |plan| plan.claim("aud", json!([CLIENT_ID]))),
    ("several audiences, issued to this client", |plan| {
        plan.claim("aud", json!(["other", CLIENT_ID]));
        plan.claim("azp", CLIENT_ID);
    }),
    ("one audience, issued to this client", |plan| plan.claim("azp", CLIENT_ID)),
    ("expired for 59 seconds", |plan| {
        plan.claim("exp", (begun_at() + plan.passed).timestamp() - 59);
    }),
    ("issued 60 seconds in the future", |plan| {
        plan.claim("iat", (begun_at() + plan.passed).timestamp() + 60);
    }),
    ("issued 60 seconds before the login", |plan| {
        plan.claim("iat", begun_at().timestamp() - 60);
    }),
    ("valid from now", |plan| plan.claim("nbf", begun_at().timestamp())),
    ("times with a fraction", |plan| {
        plan.claim("iat", 1_800_000_000.5);
        plan.claim("exp", 1_800_000_300.25);
    }),
    ("a hash of the access token", |plan| {
        plan.claim("at_hash", access_token_hash(ACCESS_TOKEN));
    }),
    ("a callback that names the issuer", |plan| plan.query += &format!("&iss={}", plan.issuer)),
    ("a callback with other parameters", |plan| {
        plan.query += "&session_state=1&scope=openid+email&authuser=0&authuser=1";
    }),
    ("a token type in lower case", |plan| plan.member("token_type", "bearer")),
    ("unknown claims", |plan| {
        plan.claim("groups", vec!["a"; 1000]);
        plan.claim("email ", "other@corp.example");
        plan.claim("https://example.com/role", json!({"a": [null]}));
    }),
    ("nine minutes at the provider", |plan| {
        plan.passed = TimeDelta::minutes(9);
        let now = (begun_at() + plan.passed).timestamp();
        plan.claim("iat", now);
        plan.claim("exp", now + 60);
    }),
];

fn ada(issuer: &str) -> Identity {
    Identity {
        provider: "keycloak".to_owned(),
        issuer: issuer.to_owned(),
        subject: SUBJECT.to_owned(),
        email: Some(Email { address: "ada@corp.example".to_owned(), verified: true }),
        name: Some("Ada Lovelace".to_owned()),
        signed_in_at: None,
    }
}

#[tokio::test]
async fn every_valid_login_is_accepted() {
    assert!(ROWS.len() >= 20);
    for (name, changing) in ROWS {
        let issuer = issuer().await;
        let provider = provider(&issuer.url());
        let sign_on = SignOn::new(EGRESS.clone());
        let identity = log_in(&sign_on, &issuer, &provider, changing).await;
        assert_eq!(identity, Ok(ada(provider.issuer())), "{name}");
    }
}

#[tokio::test]
async fn the_request_has_state_nonce_and_a_proof_of_the_code() {
    let issuer = issuer().await;
    let provider = provider(&issuer.url());
    let sign_on = SignOn::new(EGRESS.clone());
    let now = after(TimeDelta::zero());
    let begun = sign_on.begin(&provider, REDIRECT_URI, now).await.unwrap();
    let value = |name| parameter(&begun.url, name);
    assert_eq!(begun.url.path(), "/authorize");
    assert_eq!(value("tenant"), "1");
    assert_eq!(value("response_type"), "code");
    assert_eq!(value("client_id"), CLIENT_ID);
    assert_eq!(value("redirect_uri"), REDIRECT_URI);
    assert_eq!(value("scope"), "openid profile email");
    assert_eq!(value("code_challenge_method"), "S256");
    assert_eq!(
        [value("state"), value("nonce"), value("code_challenge")].map(|it| it.len()),
        [43; 3]
    );
    let again = sign_on.begin(&provider, REDIRECT_URI, now).await.unwrap();
    for name in ["state", "nonce", "code_challenge"] {
        assert_ne!(value(name), parameter(&again.url, name), "{name}");
    }
    assert_eq!(begun.pending.provider(), "keycloak");
    assert_eq!(begun.pending.expires_at(), begun_at() + TimeDelta::minutes(10));
    let shown = format!("{begun:?} {again:?} {provider:?}");
    for secret in [&*value("state"), &*value("nonce"), CLIENT_SECRET] {
        assert!(!shown.contains(secret), "{shown}");
    }
}

#[tokio::test]
async fn a_user_is_asked_to_sign_in_again_and_the_issuer_says_when() {
    let issuer = issuer().await;
    let provider = provider(&issuer.url());
    let sign_on = SignOn::new(EGRESS.clone());
    let now = after(TimeDelta::zero());
    let silent = sign_on.begin(&provider, REDIRECT_URI, now).await.unwrap();
    assert_eq!(["prompt", "max_age"].map(|name| parameter(&silent.url, name)), ["", ""]);
    let again = silent.asking_again();
    assert_eq!(["prompt", "max_age"].map(|name| parameter(&again.url, name)), ["login", "0"]);
    let at = begun_at() - TimeDelta::hours(3);
    let says = |plan: &mut Plan| plan.claim("auth_time", at.timestamp());
    let identity = log_in(&sign_on, &issuer, &provider, says).await.unwrap();
    assert_eq!(identity.signed_in_at, Some(at));
    // GitHub knows no such request.
    let github = Provider::new(settings(Kind::GitHub, "github", &issuer.url())).unwrap();
    let again = sign_on.begin(&github, REDIRECT_URI, now).await.unwrap().asking_again();
    assert_eq!(["prompt", "max_age"].map(|name| parameter(&again.url, name)), ["", ""]);
}

#[tokio::test]
async fn a_stored_login_is_the_same_login() {
    let issuer = issuer().await;
    let provider = provider(&issuer.url());
    let sign_on = SignOn::new(EGRESS.clone());
    let begun = sign_on.begin(&provider, REDIRECT_URI, after(TimeDelta::zero())).await.unwrap();
    let plan = Plan::new(provider.issuer(), &begun);
    let stored = begun.pending.to_stored();
    assert!(!format!("{stored:?} {:?}", begun.pending).contains(&plan.state));
    let pending = weir_oidc::PendingLogin::from_stored(stored.expose()).unwrap();
    assert_eq!(pending.expires_at(), begun.pending.expires_at());
    let callback = Callback::read(&plan.query).unwrap();
    let mut answer = plan.answer.clone();
    let token = plan.signer.token(&plan.header.to_string(), &plan.claims.to_string());
    change(&mut answer, "id_token", token.into());
    issuer.lock().token = said(&answer);
    let identity = sign_on.finish(&provider, pending, &callback, after(plan.passed)).await;
    assert_eq!(identity, Ok(ada(provider.issuer())));
    for text in ["", "{}", "null", &stored.expose()[1..]] {
        assert!(weir_oidc::PendingLogin::from_stored(text).is_none(), "{text}");
    }
}

#[tokio::test]
async fn the_code_is_exchanged_with_the_secret_as_the_issuer_takes_it() {
    let sign_on = SignOn::new(EGRESS.clone());
    for (methods, has_header) in [
        (Value::Null, true),
        (json!(["client_secret_basic", "client_secret_post"]), true),
        (json!(["client_secret_post", "private_key_jwt"]), false),
    ] {
        let issuer = issuer().await;
        let provider = provider(&issuer.url());
        let mut document = discovery(&issuer.url());
        change(&mut document, "token_endpoint_auth_methods_supported", methods);
        issuer.lock().discovery = said(&document);
        log_in(&sign_on, &issuer, &provider, |_| {}).await.unwrap();
        let script = issuer.lock();
        let asked = script.asked.iter().find(|asked| asked.path == "/token").unwrap();
        let form: Vec<(String, String)> =
            form_urlencoded::parse(&asked.body).into_owned().collect();
        let value = |name: &str| form.iter().find(|(other, _)| other == name).map(|it| &*it.1);
        assert_eq!(value("grant_type"), Some("authorization_code"));
        assert_eq!(value("code"), Some(CODE));
        assert_eq!(value("redirect_uri"), Some(REDIRECT_URI));
        assert_eq!(value("code_verifier").map(str::len), Some(43));
        assert_eq!(value("client_secret"), (!has_header).then_some(CLIENT_SECRET));
        // The base64 of "weir-client:hidden%2Fclient%2Bsecret%25".
        let header = "Basic d2Vpci1jbGllbnQ6aGlkZGVuJTJGY2xpZW50JTJCc2VjcmV0JTI1";
        assert_eq!(asked.header("authorization"), if has_header { header } else { "" });
    }
}

#[tokio::test]
async fn an_issuer_may_have_a_path_and_a_slash_at_its_end() {
    for path in ["/", "/realms/a", "/realms/a/"] {
        let issuer = issuer_below(path).await;
        let provider = provider(&format!("{}{path}", issuer.url()));
        let sign_on = SignOn::new(EGRESS.clone());
        let identity = log_in(&sign_on, &issuer, &provider, |_| {}).await;
        assert_eq!(identity, Ok(ada(provider.issuer())), "{path}");
    }
}

#[tokio::test]
async fn userinfo_adds_an_address_that_the_token_lacks() {
    let issuer = issuer().await;
    let provider = provider(&issuer.url());
    let sign_on = SignOn::new(EGRESS.clone());
    let identity = log_in(&sign_on, &issuer, &provider, Plan::without_email).await.unwrap();
    let email = Email { address: "ada@userinfo.example".to_owned(), verified: true };
    assert_eq!(identity.email, Some(email));
    assert_eq!(
        issuer.lock().asked.last().unwrap().header("authorization"),
        "Bearer hidden-access-token"
    );
    // Not asked for, if the token has an address.
    log_in(&sign_on, &issuer, &provider, |_| {}).await.unwrap();
    assert_eq!(issuer.lock().count("/userinfo"), 1);
    // A token cannot verify the address of another answer.
    let identity = log_in(&sign_on, &issuer, &provider, |plan| {
        plan.claim("email", Value::Null);
        plan.userinfo = said(&json!({"sub": SUBJECT, "email": "ada@userinfo.example"}));
    });
    let email = identity.await.unwrap().email;
    assert_eq!(email, Some(Email { address: "ada@userinfo.example".to_owned(), verified: false }));
    // No address at all is an identity still, which may be linked already.
    let identity = log_in(&sign_on, &issuer, &provider, |plan| {
        plan.without_email();
        plan.userinfo = said(&json!({"sub": SUBJECT}));
    });
    assert_eq!(identity.await.unwrap().email, None);
}

#[tokio::test]
async fn an_address_without_the_word_of_the_provider_is_not_verified() {
    let sign_on = SignOn::new(EGRESS.clone());
    for says in [json!(false), Value::Null] {
        let issuer = issuer().await;
        let provider = provider(&issuer.url());
        let identity =
            log_in(&sign_on, &issuer, &provider, |plan| plan.claim("email_verified", says)).await;
        assert!(!identity.unwrap().email.unwrap().verified);
    }
}

#[tokio::test]
async fn another_issuer_under_the_name_of_google_verifies_as_all_others() {
    let issuer = issuer().await;
    let google = settings(Kind::Google, "google-oauth2", &issuer.url());
    let google = Provider::new(google).unwrap();
    let sign_on = SignOn::new(EGRESS.clone());
    for (says, expected) in [(true, true), (false, false)] {
        let changing = |plan: &mut Plan| plan.claim("email_verified", says);
        let identity = log_in(&sign_on, &issuer, &google, changing).await.unwrap();
        assert_eq!(identity.email.unwrap().verified, expected);
    }
}
