//! Many hostile answers from one address through one server: none opens a session, the visitor
//! reads one code, administrators read why each one was refused, and valid answers count
//! afterwards (SSO-26, SSO-42).
//!
//! Which check refuses an answer is the subject of the tests of `weir-saml` and `weir-oidc`.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use chrono::TimeDelta;
use ring::hmac;
use serde_json::{Value, json};
use weir_testkit::{Answer, Caller};

use super::identity_provider::{OTHER, OWN};
use super::openid::{self, CODE, Token, keycloak, of};
use super::{get, leads_to, provider_time, saml, set_cookie};
use crate::domains::{enforce, verified};

/// The refused sign-ins that administrators read.
struct Log {
    caller: Caller,
    count: u64,
}

impl Log {
    async fn of(caller: Caller) -> Self {
        let mut log = Self { caller, count: 0 };
        log.count = log.newest().await.0;
        log
    }

    /// The number of entries about domains, and the newest one.
    async fn newest(&self) -> (u64, Value) {
        let path = "/api/organizations/@current/activity_log/?scope=OrganizationDomain&limit=1";
        let list = self.caller.get(path).await.json();
        (list["count"].as_u64().unwrap(), list["results"][0].clone())
    }

    /// The reason of the refusal that was recorded since the last call.
    async fn next(&mut self, what: &str) -> String {
        let (count, newest) = self.newest().await;
        assert_eq!(count, self.count + 1, "{what}: {newest}");
        self.count = count;
        assert_eq!(newest["activity"], "sign_in_refused", "{what}");
        let changes = newest["detail"]["changes"].as_array().unwrap();
        let reason = changes.iter().find(|change| change["field"] == "reason").unwrap();
        let reason = reason["after"].as_str().unwrap().to_owned();
        assert!(reason.len() > 15 && reason.ends_with('.'), "{what}: {reason}");
        reason
    }
}

/// Right responses.
const VALID_RESPONSES: [saml::Change; 5] = [
    |_| {},
    |says| says.attributes.reverse(),
    |says| says.attributes.push(("groups".to_owned(), "staff".to_owned())),
    |says| says.not_on_or_after += TimeDelta::minutes(1),
    |says| says.authenticated -= TimeDelta::hours(1),
];

#[tokio::test(flavor = "multi_thread")]
async fn many_hostile_responses_of_one_address_are_refused_with_their_reasons() {
    let it = saml::Connected::start().await;
    let mut log = Log::of(it.owner.clone()).await;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus/saml_response");
    let mut files: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    // Also those that are valid elsewhere: they answer no login of this server. Half of them
    // are enough.
    let files: Vec<_> = files.iter().step_by(2).collect();
    assert!(files.len() >= 60, "{}", files.len());
    for file in files {
        let what = file.display().to_string();
        let response = STANDARD.encode(fs::read(file).unwrap());
        let (cookie, request) = it.begin_login("x@mail.example").await;
        let answer = saml::bring(&it.app, &cookie, &request.relay_state, &response).await;
        saml::assert_refused(&answer, saml::FAILED, &what);
        log.next(&what).await;
    }
    for (what, change, reason) in saml::WRONG {
        saml::assert_refused(&it.through(*change).await, saml::FAILED, what);
        let recorded = log.next(what).await;
        assert!(recorded.starts_with(reason), "{what}: {recorded}");
    }
    for change in VALID_RESPONSES.into_iter().cycle().take(20) {
        let answer = it.through(change).await;
        assert_eq!(leads_to(&answer), "/account");
        assert!(set_cookie(&answer, "session").is_some());
    }
}

/// What is wrong, how the token says it, and a part of the reason.
const TOKENS: &[(&str, openid::Change, &str)] = &[
    ("no signature: alg none", |token| without_signature(token, "none"), "another algorithm"),
    ("alg none in another case", |token| without_signature(token, "nOnE"), "another algorithm"),
    (
        "RS256 without a signature",
        |token| without_signature(token, "RS256"),
        "The signature of the ID token is wrong",
    ),
    (
        "HS256 with the public key",
        |token| {
            token.header["alg"] = json!("HS256");
            token.forge = |text| signed_with_secret(&text, OWN.certificate);
        },
        "another algorithm",
    ),
    (
        "HS256 with the client secret",
        |token| {
            token.header["alg"] = json!("HS256");
            token.forge = |text| signed_with_secret(&text, "secret");
        },
        "another algorithm",
    ),
    ("RS384", |token| token.header["alg"] = json!("RS384"), "another algorithm"),
    ("PS256", |token| token.header["alg"] = json!("PS256"), "another algorithm"),
    ("no algorithm", |token| token.header["alg"] = Value::Null, "not a signed JSON Web Token"),
    ("another key", |token| token.key = OTHER, "The signature of the ID token is wrong"),
    ("an unknown key", |token| token.header["kid"] = json!("b"), "not in the key set"),
    (
        "a key id that is a path",
        |token| token.header["kid"] = json!("../../../../dev/null"),
        "not in the key set",
    ),
    (
        "a key id that is a number",
        |token| token.header["kid"] = json!(1),
        "not a signed JSON Web Token",
    ),
    (
        "an own key in the header",
        |token| {
            token.key = OTHER;
            token.header["jwk"] = OTHER.jwk();
        },
        "The signature of the ID token is wrong",
    ),
    (
        "an own key at an address in the header",
        |token| {
            token.key = OTHER;
            token.header["kid"] = json!("b");
            token.header["jku"] = json!("https://evil.example/keys");
        },
        "not in the key set",
    ),
    (
        "a critical extension",
        |token| token.header["crit"] = json!(["exp"]),
        "The header of the ID token",
    ),
    (
        "an access token",
        |token| token.header["typ"] = json!("at+jwt"),
        "The header of the ID token",
    ),
    (
        "a token in the token",
        |token| token.header["cty"] = json!("JWT"),
        "The header of the ID token",
    ),
    (
        "an unencoded payload",
        |token| token.header["b64"] = json!(false),
        "The header of the ID token",
    ),
    (
        "two parts",
        |token| token.forge = |text| text.rsplit_once('.').unwrap().0.to_owned(),
        "not a signed JSON Web Token",
    ),
    (
        "five parts",
        |token| token.forge = |text| format!("{text}.a.b"),
        "not a signed JSON Web Token",
    ),
    (
        "other claims under the same signature",
        |token| token.forge = |text| about_another_user(&text),
        "The signature of the ID token is wrong",
    ),
    (
        "half a signature",
        |token| token.forge = |text| text[..text.len() - 100].to_owned(),
        "The signature of the ID token is wrong",
    ),
    ("another issuer", |token| token.set("iss", json!("https://evil.example")), "(iss)"),
    (
        "an issuer with a slash more",
        |token| {
            let issuer = format!("{}/", token.claims["iss"].as_str().unwrap());
            token.set("iss", json!(issuer));
        },
        "(iss)",
    ),
    (
        "an issuer that is a list",
        |token| {
            let issuer = json!([token.claims["iss"]]);
            token.set("iss", issuer);
        },
        "\"iss\" has another type",
    ),
    ("no issuer", |token| token.set("iss", Value::Null), "\"iss\" is missing"),
    ("another audience", |token| token.set("aud", json!("other")), "(aud)"),
    ("no audience", |token| token.set("aud", Value::Null), "\"aud\" is missing"),
    ("an empty list of audiences", |token| token.set("aud", json!([])), "(aud)"),
    (
        "an audience that is an object",
        |token| token.set("aud", json!({"client": "weir-client"})),
        "\"aud\" has another type",
    ),
    (
        "several audiences, and not said to whom",
        |token| token.set("aud", json!(["weir-client", "other"])),
        "(azp)",
    ),
    ("issued to another client", |token| token.set("azp", json!("other")), "(azp)"),
    ("expired", |token| token.set("exp", in_seconds(-90)), "(exp)"),
    ("no expiry", |token| token.set("exp", Value::Null), "\"exp\" is missing"),
    (
        "an expiry that is a text",
        |token| token.set("exp", json!("1900000000")),
        "\"exp\" has another type",
    ),
    ("issued in the future", |token| token.set("iat", in_seconds(90)), "in the future (iat)"),
    ("issued before the login", |token| token.set("iat", in_seconds(-90)), "before the login"),
    ("not valid yet", |token| token.set("nbf", in_seconds(90)), "(nbf)"),
    ("the nonce of another login", |token| token.set("nonce", json!("n".repeat(43))), "nonce"),
    ("no nonce", |token| token.set("nonce", Value::Null), "\"nonce\" is missing"),
    (
        "the hash of another access token",
        |token| token.set("at_hash", json!("77QmUPtjPfzWtF2AnpK9RQ")),
        "(at_hash)",
    ),
    ("no subject", |token| token.set("sub", Value::Null), "\"sub\" is missing"),
    ("an empty subject", |token| token.set("sub", json!("")), "(sub)"),
    ("a very long subject", |token| token.set("sub", json!("s".repeat(256))), "(sub)"),
    (
        "email_verified as a text",
        |token| token.set("email_verified", json!("true")),
        "\"email_verified\" has another type",
    ),
    (
        "email_verified as a number",
        |token| token.set("email_verified", json!(1)),
        "\"email_verified\" has another type",
    ),
    (
        "two addresses",
        |token| token.set("email", json!("ada@mail.example,eve@mail.example")),
        "\"email\"",
    ),
];

type Callback = (&'static str, fn(&str) -> String, &'static str);

/// What is wrong, the query of the callback from its state, and a part of the reason.
const CALLBACKS: &[Callback] = &[
    (
        "the state of another login",
        |_| format!("code={CODE}&state={}", "s".repeat(43)),
        "The parameter \"state\" of the callback is not the one of this login",
    ),
    ("no state", |_| format!("code={CODE}"), "no parameter \"state\""),
    ("an empty state", |_| format!("code={CODE}&state="), "is empty"),
    ("no code", |state| format!("state={state}"), "no parameter \"code\""),
    (
        "two codes",
        |state| format!("code={CODE}&state={state}&code=other"),
        "the parameter \"code\" twice",
    ),
    (
        "two states, the right one last",
        |state| format!("state=other&code={CODE}&state={state}"),
        "the parameter \"state\" twice",
    ),
    (
        "a second state in another spelling",
        |state| format!("code={CODE}&state={state}&%73tate=other"),
        "the parameter \"state\" twice",
    ),
    (
        "the issuer of another provider",
        |state| format!("code={CODE}&state={state}&iss=https%3A%2F%2Fevil.example"),
        "The parameter \"iss\" of the callback",
    ),
    (
        "denied by the user",
        |state| format!("error=access_denied&state={state}"),
        "access was denied there",
    ),
    (
        "an error with a code",
        |state| format!("code={CODE}&state={state}&error=server_error"),
        "a fault of its own",
    ),
    (
        "an error that is in no standard",
        |state| format!("error=made-up&state={state}"),
        "not in the standards",
    ),
    ("a code with a line break", |state| format!("code=a%0d%0ab&state={state}"), "is empty"),
    (
        "a hundred parameters",
        |state| format!("code={CODE}&state={state}{}", "&a=b".repeat(100)),
        "too many or too long parameters",
    ),
];

/// Right tokens.
const VALID_TOKENS: [openid::Change; 5] = [
    |_| {},
    |token| token.set("groups", json!(["staff"])),
    |token| token.set("aud", json!(["weir-client"])),
    |token| token.set("azp", json!("weir-client")),
    |token| token.header["typ"] = json!("jwt"),
];

/// A token without its signature, with this algorithm.
fn without_signature(token: &mut Token, algorithm: &str) {
    token.header["alg"] = json!(algorithm);
    token.forge = |text| format!("{}.", text.rsplit_once('.').unwrap().0);
}

/// The token with a signature by this secret.
fn signed_with_secret(token: &str, secret: &str) -> String {
    let (signed, _) = token.rsplit_once('.').unwrap();
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(hmac::sign(&key, signed.as_bytes())))
}

/// The token with another subject under the same signature.
fn about_another_user(token: &str) -> String {
    let (header, rest) = token.split_once('.').unwrap();
    let (claims, signature) = rest.split_once('.').unwrap();
    let claims = String::from_utf8(URL_SAFE_NO_PAD.decode(claims).unwrap()).unwrap();
    let claims = claims.replace("subject of Ada", "subject of Eve");
    format!("{header}.{}.{signature}", URL_SAFE_NO_PAD.encode(claims))
}

/// A time of a token.
fn in_seconds(seconds: i64) -> Value {
    json!(provider_time().timestamp() + seconds)
}

/// The right query.
fn right(state: &str) -> String {
    format!("code={CODE}&state={state}")
}

/// Signs in after entering an address of the domain, with what the issuer says about Ada and
/// the query that the browser brings.
async fn through(
    it: &openid::Connected,
    change: openid::Change,
    query: fn(&str) -> String,
) -> Answer {
    let (cookie, request) = it.begin_login_as("email=ada%40mail.example&", "").await;
    it.answer(&request, change);
    let path = format!("/complete/keycloak/?{}", query(of(&request, "state")));
    get(&it.app, &path, &cookie).await
}

#[tokio::test(flavor = "multi_thread")]
async fn many_hostile_tokens_and_callbacks_of_one_address_are_refused_with_their_reasons() {
    let it = openid::Connected::start().await;
    verified(&it.app, "mail.example").await;
    enforce(&it.app, "mail.example", keycloak()).await;
    let mut log = Log::of(it.app.owner().key(&["activity_log:read"]).await).await;
    let tokens = TOKENS.iter().map(|(what, change, reason)| {
        let query: fn(&str) -> String = right;
        (what, *change, query, reason)
    });
    let callbacks = CALLBACKS.iter().map(|(what, query, reason)| {
        let change: openid::Change = |_| {};
        (what, change, *query, reason)
    });
    let hostile: Vec<_> = tokens.chain(callbacks).collect();
    assert!(hostile.len() >= 40, "{}", hostile.len());
    for (what, change, query, reason) in hostile {
        let answer = through(&it, change, query).await;
        assert_eq!(leads_to(&answer), openid::FAILED, "{what}");
        assert_eq!(set_cookie(&answer, "session"), None, "{what}");
        let recorded = log.next(what).await;
        assert!(recorded.contains(reason), "{what}: {recorded}");
    }
    for change in VALID_TOKENS.into_iter().cycle().take(20) {
        let answer = through(&it, change, right).await;
        assert_eq!(leads_to(&answer), "/account");
        assert!(set_cookie(&answer, "session").is_some());
    }
}
