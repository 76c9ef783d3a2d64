//! Signing in by OpenID Connect over HTTP, from the redirect to the session. The test is the
//! issuer, and signs the tokens (SSO-1, SSO-6, SSO-7, SSO-20, SSO-22, SSO-26).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::Method;
use serde_json::{Value, json};
use weir_model::domains::SsoEnforcement;
use weir_model::sso::ProviderName;
use weir_server::config::Config;
use weir_testkit::{Answer, TestApp};
use weir_testservers::{StandIn, StubAnswer};

use super::identity_provider::{Key, OTHER, OWN};
use super::{get, leads_to, provider_time, set_cookie};
use crate::domains::{enforce, one, owner, verified};
use crate::web;

const CLIENT: &str = "weir-client";
pub(super) const CODE: &str = "the-code";
pub(super) const FAILED: &str = "/login?error_code=sso_failed&next=/account";

/// What the issuer answers.
struct Issuer {
    url: String,
    /// The token for the next code.
    token: String,
}

/// The parts of a token, and its key.
pub(super) struct Token {
    pub(super) header: Value,
    pub(super) claims: Value,
    pub(super) key: Key,
    /// What happens to the token after it was signed.
    pub(super) forge: fn(String) -> String,
}

impl Token {
    /// Sets a claim.
    pub(super) fn set(&mut self, name: &str, value: Value) {
        self.claims[name] = value;
    }
}

/// An instance with the issuer as provider `keycloak`.
pub(super) struct Connected {
    pub(super) app: TestApp,
    issuer: StandIn<Issuer>,
}

impl Connected {
    pub(super) async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    /// The same with other settings.
    async fn start_with(change: fn(&mut Config)) -> Self {
        let Self { app, issuer } = Self::before_set_up(change).await;
        Self { app: app.set_up().await, issuer }
    }

    /// The same before the instance has a user.
    async fn before_set_up(change: fn(&mut Config)) -> Self {
        let script = Issuer { url: String::new(), token: String::new() };
        let issuer = StandIn::start(script, |script, asked| {
            let answer = match asked.path.as_str() {
                "/.well-known/openid-configuration" => json!({
                    "issuer": script.url,
                    "authorization_endpoint": format!("{}/authorize", script.url),
                    "token_endpoint": format!("{}/token", script.url),
                    "jwks_uri": format!("{}/keys", script.url),
                    "response_types_supported": ["code"],
                    "subject_types_supported": ["public"],
                    "id_token_signing_alg_values_supported": ["RS256"],
                }),
                "/keys" => json!({"keys": [OWN.jwk()]}),
                "/token" => {
                    let body = String::from_utf8_lossy(&asked.body).into_owned();
                    let has = |part: &str| body.contains(part);
                    // The proof of the code comes with the code, and not before.
                    assert!(has(&format!("code={CODE}")) && has("code_verifier="), "{body}");
                    json!({"access_token": "t", "token_type": "Bearer", "id_token": script.token})
                }
                _ => return Some(StubAnswer::empty(404)),
            };
            Some(StubAnswer::json(200, &answer).with("content-type", "application/json"))
        })
        .await;
        let url = issuer.url();
        issuer.lock().url.clone_from(&url);
        let setting = format!("keycloak {CLIENT} secret {url}");
        let app = TestApp::start(
            |config| {
                config.egress_allow = "127.0.0.1".parse().unwrap();
                config.sign_in_providers = setting.parse().unwrap();
                change(config);
            },
            |_| {},
        );
        Self { app: app.await, issuer }
    }

    /// Leaves for the issuer: the cookie of the browser, and the parameters of the request.
    async fn begin_login(&self) -> (String, Vec<(String, String)>) {
        self.begin_login_as("", "").await
    }

    /// The same with parameters, in a browser with this cookie.
    pub(super) async fn begin_login_as(
        &self,
        more: &str,
        cookie: &str,
    ) -> (String, Vec<(String, String)>) {
        let path = format!("/login/keycloak/?{more}next=/account");
        let answer = get(&self.app, &path, cookie).await;
        let location = leads_to(&answer);
        let (to, query) = location.split_once('?').unwrap();
        assert_eq!(to, format!("{}/authorize", self.issuer.url()));
        let pairs = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        (set_cookie(&answer, "pending_login").unwrap(), pairs)
    }

    /// Signs in with what the issuer says about Ada.
    async fn through(&self, change: fn(&mut Token)) -> Answer {
        let (cookie, request) = self.begin_login().await;
        self.answer(&request, change);
        let callback = format!("/complete/keycloak/?code={CODE}&state={}", of(&request, "state"));
        get(&self.app, &callback, &cookie).await
    }

    /// Prepares the token that answers a request.
    pub(super) fn answer(&self, request: &[(String, String)], change: Change) {
        let now = provider_time().timestamp();
        let mut token = Token {
            header: json!({"alg": "RS256", "typ": "JWT", "kid": "a"}),
            claims: json!({
                "iss": self.issuer.url(),
                "aud": CLIENT,
                "sub": "subject of Ada",
                "nonce": of(request, "nonce"),
                "iat": now,
                "exp": now + 300,
                "email": "ada@mail.example",
                "email_verified": true,
                "name": "Ada Lovelace",
            }),
            key: OWN,
            forge: |token| token,
        };
        change(&mut token);
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(&token.header), part(&token.claims));
        let signature = URL_SAFE_NO_PAD.encode(token.key.sign(signed.as_bytes()));
        self.issuer.lock().token = (token.forge)(format!("{signed}.{signature}"));
    }
}

/// A parameter of a request.
pub(super) fn of<'a>(request: &'a [(String, String)], name: &str) -> &'a str {
    &request.iter().find(|(found, _)| found == name).unwrap().1
}

pub(super) fn keycloak() -> SsoEnforcement {
    SsoEnforcement::Provider(ProviderName::parse("keycloak").unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_signs_in_and_a_colleague_joins_through_the_issuer_of_the_domain() {
    let it = Connected::start().await;
    let domain = verified(&it.app, "mail.example").await;
    enforce(&it.app, "mail.example", keycloak()).await;
    let answer = it.through(|_| {}).await;
    assert_eq!(leads_to(&answer), "/account");
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let session = set_cookie(&answer, "session").expect("a session");
    assert_eq!(web::page(&it.app, "/account", &session).await.status, 200);

    let colleague = |token: &mut Token| {
        token.set("sub", json!("subject of Grace"));
        token.set("email", json!("grace@mail.example"));
    };
    let refused = "/login?error_code=jit_not_enabled&next=/account";
    assert_eq!(leads_to(&it.through(colleague).await), refused);
    let owner = owner(&it.app).await;
    let body = json!({"jit_provisioning_enabled": true});
    assert_eq!(owner.patch(&one(&it.app, &domain), &body).await.status, 200);
    assert!(set_cookie(&it.through(colleague).await, "session").is_some());
    // An issuer of the instance speaks about addresses of any domain, but decides nothing
    // about a domain that does not trust it.
    let unknown_user = |token: &mut Token| {
        token.set("sub", json!("subject of Eve"));
        token.set("email", json!("eve@elsewhere.example"));
    };
    let unknown = "/login?error_code=no_new_organizations&next=/account";
    assert_eq!(leads_to(&it.through(unknown_user).await), unknown);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_user_is_offered_an_organization_where_the_instance_allows_it() {
    let it = Connected::start_with(|config| config.new_organizations = true).await;
    verified(&it.app, "mail.example").await;
    let new_user = |token: &mut Token| {
        token.set("sub", json!("subject of Eve"));
        token.set("email", json!("eve@elsewhere.example"));
    };
    let first = it.through(new_user).await;
    assert_eq!(leads_to(&first), "/organizations/new");
    let session = set_cookie(&first, "session").expect("a session");
    assert_eq!(web::page(&it.app, "/organizations/new", &session).await.status, 200);
    let form = web::function(&it.app, "create_organization", "name=Eve+and+company");
    let created = form.header("cookie", &session).send().await;
    assert_eq!(created.status, 200, "{:?}", created.body);
    // The identity is linked: the next sign-in is the same user's, with an organization.
    let again = it.through(new_user).await;
    assert_eq!(leads_to(&again), "/account");
    let session = set_cookie(&again, "session").expect("a session");
    let page = web::page(&it.app, "/organizations", &session).await;
    assert!(String::from_utf8_lossy(&page.body).contains("Eve and company"));
    // A user who exists is not taken over, and a claimed domain keeps its rules.
    let taken = it.through(|token| {
        token.set("sub", json!("another subject"));
        token.set("email", json!("eve@elsewhere.example"));
    });
    assert_eq!(leads_to(&taken.await), "/login?error_code=sso_failed&next=/account");
    let claimed = it.through(|token| {
        token.set("sub", json!("subject of Grace"));
        token.set("email", json!("grace@mail.example"));
    });
    let code = "/login?error_code=jit_not_enabled&next=/account";
    assert_eq!(leads_to(&claimed.await), code);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_user_of_an_instance_is_that_of_its_set_up() {
    let it = Connected::before_set_up(|config| config.new_organizations = true).await;
    let ada = |token: &mut Token| token.set("email", json!("ada@mail.example"));
    let refused = "/login?error_code=no_new_organizations&next=/account";
    assert_eq!(leads_to(&it.through(ada).await), refused);
    // The set-up creates the user of this address, who links the provider.
    let it = Connected { app: it.app.set_up().await, issuer: it.issuer };
    assert_eq!(leads_to(&it.through(ada).await), "/login?error_code=sso_failed&next=/account");
}

pub(super) type Change = fn(&mut Token);

/// Who does not join where the domain requires nothing, how the token says it, and the code
/// that the visitor reads.
const NOT_NEW: &[(&str, Change, &str)] = &[
    ("an address that is not verified", |token| grace(token, json!(false)), "sso_failed"),
    ("a verification that is a text", |token| grace(token, json!("true")), "sso_failed"),
    ("no word about the address", |token| grace(token, Value::Null), "sso_failed"),
    (
        "an address of a subdomain",
        |token| token.set("email", json!("grace@tea.mail.example")),
        "no_new_organizations",
    ),
    (
        "an address with a full-width letter",
        |token| token.set("email", json!("grace@\u{ff4d}ail.example")),
        "sso_failed",
    ),
    (
        "an address with a full stop at the end",
        |token| token.set("email", json!("grace@mail.example.")),
        "sso_failed",
    ),
    (
        "an address in another address",
        |token| token.set("email", json!("grace@mail.example@elsewhere.example")),
        "sso_failed",
    ),
    ("a member", |_| {}, "sso_failed"),
    (
        "a member in another case",
        |token| token.set("email", json!("ADA@MAIL.example")),
        "sso_failed",
    ),
];

/// A colleague who has not signed in yet.
fn grace(token: &mut Token, is_verified: Value) {
    token.set("sub", json!("subject of Grace"));
    token.set("email", json!("grace@mail.example"));
    token.set("email_verified", is_verified);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_colleague_joins_through_an_issuer_that_the_domain_does_not_require() {
    let it = Connected::start().await;
    let domain = verified(&it.app, "mail.example").await;
    let owner = it.app.owner().key(&["*"]).await;
    let body = json!({"jit_provisioning_enabled": true});
    assert_eq!(owner.patch(&one(&it.app, &domain), &body).await.status, 200);
    let members = async || {
        let list = owner.get("/api/organizations/@current/members/").await.json();
        list["results"].as_array().unwrap().clone()
    };
    for (what, change, code) in NOT_NEW {
        let answer = it.through(*change).await;
        let to = format!("/login?error_code={code}&next=/account");
        assert_eq!((leads_to(&answer), set_cookie(&answer, "session")), (to, None), "{what}");
        assert_eq!(members().await.len(), 1, "{what}");
    }
    let joined = it.through(|token| grace(token, json!(true))).await;
    assert_eq!(leads_to(&joined), "/account");
    let session = set_cookie(&joined, "session").expect("a session");
    assert_eq!(web::page(&it.app, "/account", &session).await.status, 200);
    let members = members().await;
    let new = members.iter().find(|one| one["user"]["email"] == "grace@mail.example").unwrap();
    assert_eq!((&new["level"], &new["user"]["is_email_verified"]), (&json!(1), &json!(true)));

    // Another required provider.
    enforce(&it.app, "mail.example", SsoEnforcement::Saml).await;
    let other = it.through(|token| {
        token.set("sub", json!("subject of Linus"));
        token.set("email", json!("linus@mail.example"));
    });
    let other = other.await;
    assert_eq!((leads_to(&other), set_cookie(&other, "session")), (FAILED.to_owned(), None));
}

/// What is wrong, and how the token says it.
const WRONG: &[(&str, Change)] = &[
    ("another audience", |token| token.set("aud", json!("other"))),
    ("another issuer", |token| token.set("iss", json!("https://evil.example"))),
    ("another login", |token| token.set("nonce", json!("n".repeat(43)))),
    ("expired", |token| token.set("exp", json!(provider_time().timestamp() - 90))),
    ("issued before the login", |token| token.set("iat", json!(provider_time().timestamp() - 90))),
    ("another key", |token| token.key = OTHER),
    ("an address that is not verified", |token| token.set("email_verified", json!(false))),
    ("an address without a word about it", |token| token.set("email_verified", Value::Null)),
    ("no subject", |token| token.set("sub", json!(""))),
    ("two addresses", |token| token.set("email", json!("ada@mail.example,eve@mail.example"))),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_token_opens_no_session_and_the_visitor_reads_one_text() {
    let it = Connected::start().await;
    verified(&it.app, "mail.example").await;
    enforce(&it.app, "mail.example", keycloak()).await;
    for (what, change) in WRONG {
        let answer = it.through(*change).await;
        assert_eq!(leads_to(&answer), FAILED, "{what}");
        assert_eq!(set_cookie(&answer, "session"), None, "{what}");
    }
    assert!(set_cookie(&it.through(|_| {}).await, "session").is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn administrators_of_the_entered_address_learn_why_a_token_was_refused() {
    let it = Connected::start().await;
    verified(&it.app, "mail.example").await;
    enforce(&it.app, "mail.example", keycloak()).await;
    // The sign-in page passes the address on.
    let page = get(&it.app, "/login?email=ada%40mail.example&next=/account", "").await.text();
    let as_ada = "email=ada%40mail.example&amp;";
    assert!(page.contains(&format!("/login/keycloak/?{as_ada}next=/account")), "{page}");
    let owner = it.app.owner().key(&["activity_log:read"]).await;
    let path = "/api/organizations/@current/activity_log/?scope=OrganizationDomain";
    let log = async || owner.get(path).await.text();
    let callback = async |more: &str, change: fn(&mut Token), query: &str| {
        let (cookie, request) = it.begin_login_as(more, "").await;
        it.answer(&request, change);
        let path = format!("/complete/keycloak/?{query}&state={}", of(&request, "state"));
        assert_eq!(leads_to(&get(&it.app, &path, &cookie).await), FAILED);
    };
    let code = format!("code={CODE}");
    callback("", |token| token.set("aud", json!("other")), &code).await;
    assert!(!log().await.contains("sign_in_refused"), "it is not known whose that is");
    let as_ada = "email=ada%40mail.example&";
    callback(as_ada, |token| token.set("aud", json!("other")), &code).await;
    callback(as_ada, |_| {}, "error=access_denied").await;
    let log = log().await;
    for reason in ["The ID token is for another client", "access was denied there"] {
        assert!(log.contains(reason), "{reason} in {log}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn staff_reads_on_the_instance_page_why_sign_ins_were_refused() {
    let it = Connected::start().await;
    let session = web::session(&it.app).await;
    let page = async || web::page(&it.app, "/instance", &session).await.text();
    assert!(!page().await.contains("Refused sign-ins"));
    // No address was entered, so no organization learns of them.
    let answer = it.through(|token| token.set("aud", json!("other"))).await;
    assert_eq!(leads_to(&answer), FAILED);
    let stray = get(&it.app, "/complete/keycloak/?code=c&state=s", "").await;
    assert_eq!(leads_to(&stray), "/login?error_code=sso_failed&next=/");
    let page = page().await;
    for shown in [
        "Refused sign-ins",
        "The ID token is for another client",
        "This browser did not begin this sign-in",
    ] {
        assert!(page.contains(shown), "{shown} in {page}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_confirmed_by_a_new_sign_in_at_the_issuer_alone() {
    let it = Connected::start().await;
    verified(&it.app, "mail.example").await;
    enforce(&it.app, "mail.example", keycloak()).await;
    let session = set_cookie(&it.through(|_| {}).await, "session").expect("a session");
    let confirm = async |change: fn(&mut Token)| {
        let (pending_login, request) = it.begin_login_as("", &session).await;
        assert_eq!((of(&request, "prompt"), of(&request, "max_age")), ("login", "0"));
        it.answer(&request, change);
        let path = format!("/complete/keycloak/?code={CODE}&state={}", of(&request, "state"));
        get(&it.app, &path, &format!("{pending_login}; {session}")).await
    };
    let answer =
        confirm(|token| token.set("auth_time", json!(provider_time().timestamp() - 900))).await;
    let again = "/login/again?error_code=sign_in_not_recent&next=/account";
    assert_eq!((leads_to(&answer).as_str(), set_cookie(&answer, "session")), (again, None));
    let answer = confirm(|token| token.set("auth_time", json!(provider_time().timestamp()))).await;
    assert_eq!(leads_to(&answer), "/account");
    assert!(set_cookie(&answer, "session").is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_callback_belongs_to_one_browser_and_one_login() {
    let it = Connected::start().await;
    verified(&it.app, "mail.example").await;
    enforce(&it.app, "mail.example", keycloak()).await;
    let (cookie, request) = it.begin_login().await;
    let (other, second) = it.begin_login().await;
    it.answer(&request, |_| {});
    let callback =
        |state: &str, more: &str| format!("/complete/keycloak/?code={CODE}&state={state}{more}");
    let state = of(&request, "state");
    let unknown = "/login?error_code=sso_failed&next=/";
    for (what, cookie, path, to) in [
        ("no cookie", "", callback(state, ""), unknown),
        ("a made-up cookie", "pending_login=forged", callback(state, ""), unknown),
        ("the state of another browser", other.as_str(), callback(state, ""), FAILED),
    ] {
        let answer = get(&it.app, &path, cookie).await;
        assert_eq!(
            (leads_to(&answer).as_str(), set_cookie(&answer, "session")),
            (to, None),
            "{what}"
        );
    }
    // A form of another site is no callback.
    let call = it.app.anonymous().call(Method::POST, "/complete/keycloak/");
    let call = call.header("cookie", &cookie).header("sec-fetch-site", "cross-site");
    assert!(call.send().await.status >= 400);
    // The login is used up by its first callback, whatever comes of it.
    let answer = get(&it.app, &callback(state, "&iss=https%3A%2F%2Fevil.example"), &cookie).await;
    assert_eq!(leads_to(&answer), FAILED);
    assert_eq!(leads_to(&get(&it.app, &callback(state, ""), &cookie).await), unknown);
    assert_ne!(of(&request, "state"), of(&second, "state"));
    for name in ["nonce", "code_challenge"] {
        assert_ne!(of(&request, name), of(&second, name), "{name}");
    }
}
