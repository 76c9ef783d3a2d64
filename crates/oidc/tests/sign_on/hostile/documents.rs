//! Documents of issuers that must be refused.

use serde_json::{Value, json};
use weir_egress::FaultClass;
use weir_oidc::{Answer, Endpoint, Refusal};
use weir_testservers::StubAnswer;

use super::{member, unreachable};
use crate::issuer::{change, said, said_text};

/// A name, the reason, and what the issuer publishes: from its document and URL.
pub(super) type Published = (&'static str, Refusal, fn(Value, &str) -> StubAnswer);

pub(super) fn with(mut document: Value, name: &str, value: impl Into<Value>) -> StubAnswer {
    change(&mut document, name, value.into());
    said(&document)
}

pub(super) const DOCUMENTS: &[Published] = &[
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
