//! An issuer on this machine whose answers a test makes, and a login at it.

use std::io;
use std::net::IpAddr;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};
use weir_egress::{Egress, Resolve, Rules};
use weir_oidc::{
    Begun, Callback, Identity, Kind, Now, Provider, Refusal, Secret, Settings, SignOn,
};
use weir_testservers::{StandIn, StubAnswer, StubRequest};

use crate::signers::{RSA, Signer};

pub(crate) const CLIENT_ID: &str = "weir-client";
pub(crate) const CLIENT_SECRET: &str = "hidden/client+secret%";
pub(crate) const REDIRECT_URI: &str = "https://weir.example/complete/keycloak/";
pub(crate) const ACCESS_TOKEN: &str = "hidden-access-token";
pub(crate) const CODE: &str = "hidden-code";
pub(crate) const SUBJECT: &str = "subject-1";

/// When logins of tests are begun.
pub(crate) fn begun_at() -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000, 0).unwrap()
}

/// This long after [`begun_at`].
pub(crate) fn after(passed: TimeDelta) -> Now {
    let uptime = Duration::from_secs(1_000_000) + passed.to_std().unwrap_or_default();
    Now { time: begun_at() + passed, uptime }
}

/// Every name has these addresses.
struct Names(Vec<IpAddr>);

#[async_trait::async_trait]
impl Resolve for Names {
    async fn addresses(&self, _: &str) -> io::Result<Vec<IpAddr>> {
        Ok(self.0.clone())
    }
}

/// Outgoing connections that may go to these networks, where every name has these addresses.
pub(crate) fn egress(allow: &[&str], addresses: &[&str]) -> Egress {
    let allow = allow.iter().map(|network| network.parse().unwrap()).collect();
    let names = Names(addresses.iter().map(|address| address.parse().unwrap()).collect());
    Egress::with_resolver(Rules { allow, own: Vec::new() }, Arc::new(names)).unwrap()
}

/// Outgoing connections that may go to this machine only. Every name has an address in an
/// inner network.
pub(crate) static EGRESS: LazyLock<Egress> =
    LazyLock::new(|| egress(&["127.0.0.1/32"], &["10.0.0.1"]));

/// What an issuer answers.
pub(crate) struct Script {
    /// The path before that of every endpoint.
    pub(crate) path: &'static str,
    pub(crate) discovery: StubAnswer,
    pub(crate) keys: StubAnswer,
    pub(crate) token: StubAnswer,
    pub(crate) userinfo: StubAnswer,
    /// The requests that arrived.
    pub(crate) asked: Vec<StubRequest>,
}

impl Script {
    /// How often a path was requested.
    pub(crate) fn count(&self, path: &str) -> usize {
        self.asked.iter().filter(|asked| asked.path.ends_with(path)).count()
    }
}

/// The issuer. Ends when dropped.
pub(crate) type Issuer = StandIn<Script>;

/// JSON with its type.
pub(crate) fn said(body: &Value) -> StubAnswer {
    StubAnswer::json(200, body).with("content-type", "application/json")
}

/// Any body with a type.
pub(crate) fn said_text(status: u16, kind: &str, body: &str) -> StubAnswer {
    let mut said = StubAnswer::empty(status).with("content-type", kind);
    said.body = body.as_bytes().to_vec();
    said
}

pub(crate) async fn issuer_below(path: &'static str) -> Issuer {
    let script = Script {
        path,
        discovery: StubAnswer::empty(500),
        keys: said(&json!({"keys": [RSA.jwk("a")]})),
        token: StubAnswer::empty(500),
        userinfo: StubAnswer::empty(500),
        asked: Vec::new(),
    };
    let issuer = StandIn::start(script, |script, asked| {
        script.asked.push(asked.clone());
        Some(match asked.path.strip_prefix(script.path.trim_end_matches('/'))? {
            "/.well-known/openid-configuration" => script.discovery.clone(),
            "/keys" => script.keys.clone(),
            "/token" => script.token.clone(),
            "/userinfo" => script.userinfo.clone(),
            _ => StubAnswer::empty(404),
        })
    })
    .await;
    let url = format!("{}{path}", issuer.url());
    issuer.lock().discovery = said(&discovery(&url));
    issuer
}

pub(crate) async fn issuer() -> Issuer {
    issuer_below("").await
}

/// The discovery document of an issuer.
pub(crate) fn discovery(url: &str) -> Value {
    let base = url.trim_end_matches('/');
    json!({
        "issuer": url,
        "authorization_endpoint": format!("{base}/authorize?tenant=1"),
        "token_endpoint": format!("{base}/token"),
        "jwks_uri": format!("{base}/keys"),
        "userinfo_endpoint": format!("{base}/userinfo"),
        "response_types_supported": ["code"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["RS256"],
    })
}

pub(crate) fn settings(kind: Kind, id: &str, issuer: &str) -> Settings {
    Settings {
        id: id.to_owned(),
        kind,
        display_name: "Example".to_owned(),
        issuer: issuer.to_owned(),
        api: String::new(),
        client_id: CLIENT_ID.to_owned(),
        client_secret: Secret::new(CLIENT_SECRET.to_owned()),
        scopes: Vec::new(),
    }
}

pub(crate) fn provider(issuer: &str) -> Provider {
    Provider::new(settings(Kind::OpenId, "keycloak", issuer)).unwrap()
}

/// The value of a parameter of a URL.
pub(crate) fn parameter(url: &url::Url, name: &str) -> String {
    let mut found = url.query_pairs().filter(|(other, _)| other == name);
    let value = found.next().map(|(_, value)| value.into_owned()).unwrap_or_default();
    assert!(found.next().is_none(), "{name} is there twice");
    value
}

/// What the issuer and the browser do after a login was begun. The default is a login that
/// must succeed.
pub(crate) struct Plan {
    pub(crate) issuer: String,
    pub(crate) state: String,
    pub(crate) header: Value,
    pub(crate) claims: Value,
    pub(crate) signer: &'static Signer,
    /// Changes the signed token.
    pub(crate) mangle: Box<dyn Fn(String) -> String>,
    pub(crate) keys: StubAnswer,
    /// The members of the answer besides the ID token.
    pub(crate) answer: Value,
    /// The whole answer, instead of the one with the ID token.
    pub(crate) whole_answer: Option<StubAnswer>,
    pub(crate) userinfo: StubAnswer,
    /// The query of the callback.
    pub(crate) query: String,
    /// The time between begin and callback.
    pub(crate) passed: TimeDelta,
}

impl Plan {
    pub(crate) fn new(issuer: &str, begun: &Begun) -> Self {
        let (state, nonce) = (parameter(&begun.url, "state"), parameter(&begun.url, "nonce"));
        let now = begun_at().timestamp();
        Self {
            issuer: issuer.to_owned(),
            header: json!({"alg": "RS256", "typ": "JWT", "kid": "a"}),
            claims: json!({
                "iss": issuer,
                "aud": CLIENT_ID,
                "sub": SUBJECT,
                "nonce": nonce,
                "iat": now,
                "exp": now + 300,
                "email": "ada@corp.example",
                "email_verified": true,
                "name": "Ada Lovelace",
            }),
            signer: &RSA,
            mangle: Box::new(|token| token),
            keys: said(&json!({"keys": [RSA.jwk("a")]})),
            answer: json!({"access_token": ACCESS_TOKEN, "token_type": "Bearer", "expires_in": 60}),
            whole_answer: None,
            userinfo: said(&json!({
                "sub": SUBJECT,
                "email": "ada@userinfo.example",
                "email_verified": true,
            })),
            query: format!("code={CODE}&state={state}"),
            passed: TimeDelta::seconds(5),
            state,
        }
    }

    /// Sets a claim; null removes it.
    pub(crate) fn claim(&mut self, name: &str, value: impl Into<Value>) {
        change(&mut self.claims, name, value.into());
    }

    /// Sets a member of the header; null removes it.
    pub(crate) fn header(&mut self, name: &str, value: impl Into<Value>) {
        change(&mut self.header, name, value.into());
    }

    /// Sets a member of the answer of the token endpoint; null removes it.
    pub(crate) fn member(&mut self, name: &str, value: impl Into<Value>) {
        change(&mut self.answer, name, value.into());
    }

    pub(crate) fn key_set(&mut self, keys: &[Value]) {
        self.keys = said(&json!({"keys": keys}));
    }

    /// The claims come from the userinfo endpoint.
    pub(crate) fn without_email(&mut self) {
        self.claim("email", Value::Null);
        self.claim("email_verified", Value::Null);
    }

    fn token(&self) -> String {
        (self.mangle)(self.signer.token(&self.header.to_string(), &self.claims.to_string()))
    }
}

pub(crate) fn change(object: &mut Value, name: &str, value: Value) {
    let object = object.as_object_mut().unwrap();
    match value {
        Value::Null => _ = object.remove(name),
        value => _ = object.insert(name.to_owned(), value),
    }
}

/// Begins a login, lets a test change what happens afterwards, and finishes it.
pub(crate) async fn log_in(
    sign_on: &SignOn,
    issuer: &Issuer,
    provider: &Provider,
    changing: impl FnOnce(&mut Plan),
) -> Result<Identity, Refusal> {
    let begun = sign_on.begin(provider, REDIRECT_URI, after(TimeDelta::zero())).await?;
    let mut plan = Plan::new(provider.issuer(), &begun);
    changing(&mut plan);
    {
        let mut script = issuer.lock();
        script.keys = plan.keys.clone();
        script.userinfo = plan.userinfo.clone();
        script.token = plan.whole_answer.clone().unwrap_or_else(|| {
            let mut answer = plan.answer.clone();
            change(&mut answer, "id_token", plan.token().into());
            said(&answer)
        });
    }
    let callback = Callback::read(&plan.query)?;
    sign_on.finish(provider, begun.pending, &callback, after(plan.passed)).await
}
