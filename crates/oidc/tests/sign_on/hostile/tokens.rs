//! Tokens that must be refused.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use weir_oidc::Refusal;

use super::Row;
use crate::issuer::{CLIENT_ID, SUBJECT, begun_at, change};
use crate::signers::{
    CLIENT_SECRET as SIGNED_BY_CLIENT_SECRET, EDWARDS, NOTHING, OTHER_RSA, P256, P384,
    PUBLIC_KEY_AS_SECRET, RSA, access_token_hash,
};

pub(super) const TOKENS: &[Row] = &[
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
