//! Tokens, callbacks and answers that must be refused, one row each, with the reason.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::TimeDelta;
use serde_json::{Value, json};
use weir_egress::FaultClass;
use weir_oidc::{Answer, CallbackFault, Endpoint, ProviderError, Refusal, SignOn};
use weir_testservers::StubAnswer;

use crate::issuer::{
    ACCESS_TOKEN, CLIENT_ID, CLIENT_SECRET, CODE, EGRESS, Plan, SUBJECT, begun_at, change,
    discovery, egress, issuer, log_in, provider, said, said_text,
};
use crate::signers::{
    CLIENT_SECRET as SIGNED_BY_CLIENT_SECRET, EDWARDS, NOTHING, OTHER_RSA, P256, P384,
    PUBLIC_KEY_AS_SECRET, RSA, access_token_hash,
};

/// A name, the reason, and what the attacker changes.
type Row = (&'static str, Refusal, fn(&mut Plan));

const fn unreachable(answer: Answer, fault: FaultClass) -> Refusal {
    Refusal::Unreachable { answer, fault }
}

const fn member(answer: Answer, member: &'static str) -> Refusal {
    Refusal::Member { answer, member }
}

const TOKENS: &[Row] = &[
    ("no signature: alg none", Refusal::Algorithm, |plan| {
        plan.signer = &NOTHING;
        plan.header("alg", "none");
    }),
    ("alg none in another case", Refusal::Algorithm, |plan| {
        plan.signer = &NOTHING;
        plan.header("alg", "nOnE");
    }),
    ("RS256 without a signature", Refusal::Signature, |plan| plan.signer = &NOTHING),
    ("HS256 with the public key as secret", Refusal::Algorithm, |plan| {
        plan.signer = &PUBLIC_KEY_AS_SECRET;
        plan.header("alg", "HS256");
    }),
    ("HS256 with the client secret", Refusal::Algorithm, |plan| {
        plan.signer = &SIGNED_BY_CLIENT_SECRET;
        plan.header("alg", "HS256");
    }),
    ("HS256 with a secret of the key set", Refusal::Algorithm, |plan| {
        plan.signer = &SIGNED_BY_CLIENT_SECRET;
        plan.header("alg", "HS256");
        plan.key_set(&[SIGNED_BY_CLIENT_SECRET.jwk("a"), RSA.jwk("b")]);
    }),
    ("RS384, which is not among the three", Refusal::Algorithm, |plan| plan.header("alg", "RS384")),
    ("PS256, which is not among the three", Refusal::Algorithm, |plan| plan.header("alg", "PS256")),
    ("an unknown algorithm", Refusal::Algorithm, |plan| plan.header("alg", "XX999")),
    ("no algorithm", Refusal::TokenForm, |plan| plan.header("alg", Value::Null)),
    ("an algorithm that is a number", Refusal::TokenForm, |plan| plan.header("alg", 1)),
    ("a key of another issuer with the same id", Refusal::Signature, |plan| {
        plan.signer = &OTHER_RSA;
    }),
    ("a key of another issuer without an id", Refusal::Signature, |plan| {
        plan.signer = &OTHER_RSA;
        plan.header("kid", Value::Null);
    }),
    ("an unknown key", Refusal::UnknownKey, |plan| plan.header("kid", "b")),
    ("a key id that is a path", Refusal::UnknownKey, |plan| {
        plan.header("kid", "../../../../dev/null");
    }),
    ("a key id that is a number", Refusal::TokenForm, |plan| plan.header("kid", 1)),
    ("an own key in the header (jwk)", Refusal::Signature, |plan| {
        plan.signer = &OTHER_RSA;
        plan.header("jwk", OTHER_RSA.jwk("a"));
    }),
    ("an own key at an address in the header (jku)", Refusal::UnknownKey, |plan| {
        plan.signer = &OTHER_RSA;
        plan.header("kid", "b");
        plan.header("jku", "https://evil.example/keys");
    }),
    ("an own certificate in the header (x5c)", Refusal::Signature, |plan| {
        plan.signer = &OTHER_RSA;
        plan.header("x5c", json!(["MIIB"]));
    }),
    ("no key id, and several keys", Refusal::AmbiguousKey, |plan| {
        plan.header("kid", Value::Null);
        plan.key_set(&[OTHER_RSA.jwk("a"), RSA.jwk("b")]);
    }),
    ("two keys with one id", Refusal::AmbiguousKey, |plan| {
        plan.key_set(&[OTHER_RSA.jwk("a"), RSA.jwk("a")]);
    }),
    ("a key for encryption", Refusal::UnknownKey, |plan| {
        let mut key = RSA.jwk("a");
        change(&mut key, "use", "enc".into());
        plan.key_set(&[key]);
    }),
    ("a key for another algorithm", Refusal::UnknownKey, |plan| {
        let mut key = RSA.jwk("a");
        change(&mut key, "alg", "RS512".into());
        plan.key_set(&[key]);
    }),
    ("ES256 with a key of another curve", Refusal::UnknownKey, |plan| {
        plan.signer = &P384;
        plan.header("alg", "ES256");
        plan.key_set(&[P384.jwk("a"), RSA.jwk("b")]);
    }),
    ("ES256 with a P-384 key that claims to be P-256", Refusal::UnusableKey, |plan| {
        plan.signer = &P384;
        plan.header("alg", "ES256");
        let mut key = P384.jwk("a");
        change(&mut key, "crv", "P-256".into());
        plan.key_set(&[key]);
    }),
    ("ES256 with a point that is not on the curve", Refusal::UnusableKey, |plan| {
        plan.signer = &P256;
        plan.header("alg", "ES256");
        let mut key = P256.jwk("a");
        change(&mut key, "x", URL_SAFE_NO_PAD.encode([1; 32]).into());
        plan.key_set(&[key]);
    }),
    ("RS256 with a key for ES256", Refusal::UnknownKey, |plan| plan.key_set(&[P256.jwk("a")])),
    ("EdDSA with a key for RS256", Refusal::UnknownKey, |plan| {
        plan.signer = &EDWARDS;
        plan.header("alg", "EdDSA");
    }),
    ("a signature without its last character", Refusal::Signature, |plan| {
        plan.mangle = Box::new(|token| token[..token.len() - 1].to_owned());
    }),
    ("half a signature", Refusal::Signature, |plan| {
        plan.mangle = Box::new(|token| token[..token.len() - 100].to_owned());
    }),
    ("an ES256 signature of zeros", Refusal::Signature, |plan| {
        plan.header("alg", "ES256");
        plan.key_set(&[P256.jwk("a")]);
        plan.mangle = Box::new(|token| {
            let signed = token.rsplit_once('.').unwrap().0.to_owned();
            format!("{signed}.{}", URL_SAFE_NO_PAD.encode([0; 64]))
        });
    }),
    ("other claims under the same signature", Refusal::Signature, |plan| {
        let claims = plan.claims.to_string().replace(SUBJECT, "subject-2");
        plan.mangle = Box::new(move |token| {
            let [header, _, signature] = token.split('.').collect::<Vec<_>>().try_into().unwrap();
            format!("{header}.{}.{signature}", URL_SAFE_NO_PAD.encode(&claims))
        });
    }),
    ("a signature with characters of another alphabet", Refusal::Signature, |plan| {
        plan.mangle = Box::new(|token| token + "+/==");
    }),
    ("two parts", Refusal::TokenForm, |plan| {
        plan.mangle = Box::new(|token| token.rsplit_once('.').unwrap().0.to_owned());
    }),
    ("five parts, as an encrypted token has", Refusal::TokenForm, |plan| {
        plan.mangle = Box::new(|token| format!("{token}.a.b"));
    }),
    ("no JSON in the claims", Refusal::TokenForm, |plan| {
        plan.mangle = Box::new(|_| RSA.token(r#"{"alg":"RS256","kid":"a"}"#, "<html>"));
    }),
    ("a claim that is there twice", Refusal::TokenForm, |plan| {
        let claims = plan.claims.to_string();
        let twice = format!("{},\"sub\":\"subject-2\"}}", claims.trim_end_matches('}'));
        plan.mangle = Box::new(move |_| RSA.token(r#"{"alg":"RS256","kid":"a"}"#, &twice));
    }),
    ("an algorithm that is there twice", Refusal::TokenForm, |plan| {
        let claims = plan.claims.to_string();
        plan.mangle =
            Box::new(move |_| RSA.token(r#"{"alg":"RS256","alg":"none","kid":"a"}"#, &claims));
    }),
    ("claims that are nested deeply", Refusal::TokenForm, |plan| {
        let deep = "[".repeat(20_000) + &"]".repeat(20_000);
        plan.mangle =
            Box::new(move |_| RSA.token(r#"{"alg":"RS256"}"#, &format!("{{\"a\":{deep}}}")));
    }),
    ("a token of 100 KiB", Refusal::TokenTooLong, |plan| {
        plan.claim("groups", "a".repeat(100 * 1024));
    }),
    ("a critical extension", Refusal::TokenHeader, |plan| {
        plan.header("crit", json!(["exp"]));
    }),
    ("an unencoded payload (b64)", Refusal::TokenHeader, |plan| plan.header("b64", false)),
    ("a token in the token (cty)", Refusal::TokenHeader, |plan| plan.header("cty", "JWT")),
    ("an access token as ID token", Refusal::TokenHeader, |plan| plan.header("typ", "at+jwt")),
    ("a logout token as ID token", Refusal::TokenHeader, |plan| plan.header("typ", "logout+jwt")),
    ("another issuer", Refusal::Issuer, |plan| plan.claim("iss", "https://evil.example")),
    ("an issuer with a slash more", Refusal::Issuer, |plan| {
        let issuer = format!("{}/", plan.issuer);
        plan.claim("iss", issuer);
    }),
    ("an issuer in another case", Refusal::Issuer, |plan| {
        let issuer = plan.issuer.replace("http", "HTTP");
        plan.claim("iss", issuer);
    }),
    ("an issuer that is a list", Refusal::ClaimType("iss"), |plan| {
        let issuer = json!([plan.issuer]);
        plan.claim("iss", issuer);
    }),
    ("no issuer", Refusal::ClaimMissing("iss"), |plan| plan.claim("iss", Value::Null)),
    ("another audience", Refusal::Audience, |plan| plan.claim("aud", "other")),
    ("an audience that begins alike", Refusal::Audience, |plan| {
        plan.claim("aud", format!("{CLIENT_ID}2"));
    }),
    ("no audience", Refusal::ClaimMissing("aud"), |plan| plan.claim("aud", Value::Null)),
    ("an empty list of audiences", Refusal::Audience, |plan| plan.claim("aud", json!([]))),
    ("an audience that is an object", Refusal::ClaimType("aud"), |plan| {
        plan.claim("aud", json!({"client": CLIENT_ID}));
    }),
    ("a thousand audiences", Refusal::ClaimType("aud"), |plan| {
        plan.claim("aud", vec![CLIENT_ID; 1000]);
        plan.claim("azp", CLIENT_ID);
    }),
    ("several audiences, and not said to whom", Refusal::AuthorizedParty, |plan| {
        plan.claim("aud", json!([CLIENT_ID, "other"]));
    }),
    ("several audiences, issued to another client", Refusal::AuthorizedParty, |plan| {
        plan.claim("aud", json!([CLIENT_ID, "other"]));
        plan.claim("azp", "other");
    }),
    ("issued to another client", Refusal::AuthorizedParty, |plan| plan.claim("azp", "other")),
    ("issued to this client, for another", Refusal::Audience, |plan| {
        plan.claim("aud", json!(["other", "another"]));
        plan.claim("azp", CLIENT_ID);
    }),
    ("expired", Refusal::Expired, |plan| {
        plan.claim("exp", (begun_at() + plan.passed).timestamp() - 60);
    }),
    ("no expiry", Refusal::ClaimMissing("exp"), |plan| plan.claim("exp", Value::Null)),
    ("an expiry that is a text", Refusal::ClaimType("exp"), |plan| plan.claim("exp", "1900000000")),
    ("an expiry beyond every calendar", Refusal::ClaimType("exp"), |plan| plan.claim("exp", 1e300)),
    ("issued in the future", Refusal::IssuedInFuture, |plan| {
        plan.claim("iat", (begun_at() + plan.passed).timestamp() + 61);
    }),
    ("issued before the login", Refusal::IssuedBeforeLogin, |plan| {
        plan.claim("iat", begun_at().timestamp() - 61);
    }),
    ("no time of issue", Refusal::ClaimMissing("iat"), |plan| plan.claim("iat", Value::Null)),
    ("a time of signing in that is a text", Refusal::ClaimType("auth_time"), |plan| {
        plan.claim("auth_time", begun_at().timestamp().to_string());
    }),
    ("not valid yet", Refusal::NotYetValid, |plan| {
        plan.claim("nbf", (begun_at() + plan.passed).timestamp() + 61);
    }),
    ("the nonce of another login", Refusal::Nonce, |plan| {
        plan.claim("nonce", "n".repeat(43));
    }),
    ("no nonce", Refusal::ClaimMissing("nonce"), |plan| plan.claim("nonce", Value::Null)),
    ("an empty nonce", Refusal::Nonce, |plan| plan.claim("nonce", "")),
    ("the hash of another access token", Refusal::AccessTokenHash, |plan| {
        plan.claim("at_hash", access_token_hash("other"));
    }),
    ("a hash that is a number", Refusal::ClaimType("at_hash"), |plan| plan.claim("at_hash", 1)),
    ("no subject", Refusal::ClaimMissing("sub"), |plan| plan.claim("sub", Value::Null)),
    ("an empty subject", Refusal::Subject, |plan| plan.claim("sub", "")),
    ("a very long subject", Refusal::Subject, |plan| plan.claim("sub", "s".repeat(256))),
    ("a subject with a line break", Refusal::Subject, |plan| plan.claim("sub", "a\nb")),
    ("a subject that is a number", Refusal::ClaimType("sub"), |plan| plan.claim("sub", 1)),
    ("email_verified as a text", Refusal::ClaimType("email_verified"), |plan| {
        plan.claim("email_verified", "true");
    }),
    ("email_verified as a number", Refusal::ClaimType("email_verified"), |plan| {
        plan.claim("email_verified", 1);
    }),
    ("two addresses in one", Refusal::EmailForm, |plan| {
        plan.claim("email", "ada@corp.example,eve@evil.example");
    }),
    ("a second @", Refusal::EmailForm, |plan| {
        plan.claim("email", "ada@corp.example@evil.example");
    }),
    ("an address with a line break", Refusal::EmailForm, |plan| {
        plan.claim("email", "ada@corp.example\r\nbcc: eve@evil.example");
    }),
    ("addresses as a list", Refusal::ClaimType("email"), |plan| {
        plan.claim("email", json!(["ada@corp.example"]));
    }),
];

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

/// A name, the reason, and what the issuer publishes: from its document and URL.
type Published = (&'static str, Refusal, fn(Value, &str) -> StubAnswer);

fn with(mut document: Value, name: &str, value: impl Into<Value>) -> StubAnswer {
    change(&mut document, name, value.into());
    said(&document)
}

const DOCUMENTS: &[Published] = &[
    ("another issuer", Refusal::DiscoveryIssuer, |it, _| {
        with(it, "issuer", "https://evil.example")
    }),
    ("an issuer with a slash more", Refusal::DiscoveryIssuer, |it, url| {
        with(it, "issuer", format!("{url}/"))
    }),
    ("a template as issuer", Refusal::DiscoveryIssuer, |it, url| {
        with(it, "issuer", format!("{url}/{{tenantid}}"))
    }),
    ("no issuer", member(Answer::Discovery, "issuer"), |it, _| with(it, "issuer", Value::Null)),
    ("no token endpoint", member(Answer::Discovery, "token_endpoint"), |it, _| {
        with(it, "token_endpoint", Value::Null)
    }),
    ("no keys", member(Answer::Discovery, "jwks_uri"), |it, _| with(it, "jwks_uri", Value::Null)),
    ("keys over http", Refusal::EndpointUrl(Endpoint::Keys), |it, _| {
        with(it, "jwks_uri", "http://keys.example/keys")
    }),
    ("keys in a file", Refusal::EndpointUrl(Endpoint::Keys), |it, _| {
        with(it, "jwks_uri", "file:///etc/passwd")
    }),
    ("a token endpoint over http", Refusal::EndpointUrl(Endpoint::Token), |it, _| {
        with(it, "token_endpoint", "http://token.example/token")
    }),
    (
        "a script as authorization endpoint",
        Refusal::EndpointUrl(Endpoint::Authorization),
        |it, _| with(it, "authorization_endpoint", "javascript:alert(1)"),
    ),
    (
        "an authorization endpoint over http",
        Refusal::EndpointUrl(Endpoint::Authorization),
        |it, _| with(it, "authorization_endpoint", "http://login.example/authorize"),
    ),
    ("a user in an endpoint", Refusal::EndpointUrl(Endpoint::Token), |it, _| {
        with(it, "token_endpoint", "https://user:word@token.example/")
    }),
    ("a very long endpoint", Refusal::EndpointUrl(Endpoint::Token), |it, _| {
        with(it, "token_endpoint", format!("https://token.example/{}", "a".repeat(3000)))
    }),
    (
        "keys at the metadata service of a cloud",
        Refusal::EndpointForbidden(Endpoint::Keys),
        |it, _| with(it, "jwks_uri", "https://169.254.169.254/latest/meta-data"),
    ),
    (
        "a token endpoint in an inner network",
        Refusal::EndpointForbidden(Endpoint::Token),
        |it, _| with(it, "token_endpoint", "https://10.0.0.1/token"),
    ),
    (
        "userinfo on this machine, in another spelling",
        Refusal::EndpointForbidden(Endpoint::Userinfo),
        |it, _| with(it, "userinfo_endpoint", "https://[::ffff:7f00:2]/userinfo"),
    ),
    ("HTML", Refusal::NotJson(Answer::Discovery), |_, _| said_text(200, "text/html", "<html>")),
    ("a list", Refusal::NotJson(Answer::Discovery), |it, _| said(&json!([it]))),
    ("an endpoint that is a number", Refusal::NotJson(Answer::Discovery), |it, _| {
        with(it, "token_endpoint", 1)
    }),
    ("a redirect", unreachable(Answer::Discovery, FaultClass::Status(302)), |_, url| {
        StubAnswer::empty(302).with("location", &format!("{url}/keys"))
    }),
    ("two megabytes", unreachable(Answer::Discovery, FaultClass::TooLarge), |it, _| {
        with(it, "more", "a".repeat(2_000_000))
    }),
    ("nothing", unreachable(Answer::Discovery, FaultClass::Status(404)), |_, _| {
        StubAnswer::empty(404)
    }),
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
