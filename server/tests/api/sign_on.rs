//! Signing in through a provider over HTTP, with a provider on this machine whose answers
//! the test makes: GitHub, because its protocol needs no signatures. SAML is in `saml`, and
//! the other ways of signing in that enforcement closes are in `enforcement`.

mod enforcement;
mod hostile;
mod identity_provider;
pub(crate) mod notices;
mod openid;
mod saml;
mod signed_requests;
mod trust;

use std::slice;

use chrono::{DateTime, Utc};
use http::Method;
use serde_json::{Value, json};
use weir_model::domains::SsoEnforcement;
use weir_model::sso::ProviderName;
use weir_store::domains::{DomainRow, ordered, rows};
use weir_store::throttle::{self, CountResult::Counted, Rule};
use weir_testkit::{Answer, TestApp};
use weir_testservers::{StandIn, StubAnswer};

use super::domains::{enforce, verified};
use super::web;

/// A certificate of an identity provider, valid until 18 November 2036.
const CERTIFICATE: &str = "MIIBiDCCAS+gAwIBAgIUEIl2ydDdTgjBJZbQHlW7LH7/A4owCgYIKoZIzj0EAwIw\
GjEYMBYGA1UEAwwPaWRwLmV4YW1wbGUuY29tMB4XDTI2MTEyMTIzNTk0MVoXDTM2\
MTExODIzNTk0MVowGjEYMBYGA1UEAwwPaWRwLmV4YW1wbGUuY29tMFkwEwYHKoZI\
zj0CAQYIKoZIzj0DAQcDQgAE4b8zF5k9SevDzmVMcBskjpxdN9oudJFhZK73VmBW\
2vAxTf5x2mMlrA9Cf8tOBK4O+gw52RWXIRI0rtqo8IUfYKNTMFEwHQYDVR0OBBYE\
FFfZGdDlgCwDj0dV+wzJVcA9bNzkMB8GA1UdIwQYMBaAFFfZGdDlgCwDj0dV+wzJ\
VcA9bNzkMA8GA1UdEwEB/wQFMAMBAf8wCgYIKoZIzj0EAwIDRwAwRAIgXbNJEPS5\
F5mM8iw4tsWfmheGWdUzwqir9JoLM1ajcVkCIHUL3Wbzb8vChnlQwmpcKCNUzcIs\
bIcD9jsWxQwmy0sw";
const PASSWORD: &str = "plum-otter-violin-93";

/// A user at the provider.
struct GitHub {
    id: u64,
    email: String,
}

type Provider = StandIn<GitHub>;

/// A provider with this user.
async fn stand_in(user: GitHub) -> Provider {
    StandIn::start(user, |user, request| {
        let answer = match request.path.as_str() {
            "/login/oauth/access_token" => json!({"access_token": "t", "token_type": "bearer"}),
            "/api/v3/user" => json!({"id": user.id, "login": "ada", "name": "Ada"}),
            "/api/v3/user/emails" => {
                json!([{"email": user.email, "primary": true, "verified": true}])
            }
            _ => return Some(StubAnswer::empty(404)),
        };
        Some(StubAnswer::json(200, &answer).with("content-type", "application/json"))
    })
    .await
}

/// The time of a provider, which has a clock of its own.
#[expect(clippy::disallowed_methods, reason = "it is not the clock of the service")]
fn provider_time() -> DateTime<Utc> {
    Utc::now()
}

/// An instance with an owner, and a provider whose user has Ada's address.
async fn instance() -> (TestApp, Provider) {
    let provider = stand_in(GitHub { id: 7, email: "ada@mail.example".to_owned() }).await;
    let setting = format!("github id secret {}", provider.url());
    let app = TestApp::start(
        |config| {
            config.egress_allow = "127.0.0.1".parse().unwrap();
            config.sign_in_providers = setting.parse().unwrap();
        },
        |_| {},
    )
    .await;
    (app.set_up().await, provider)
}

async fn get(app: &TestApp, path: &str, cookie: &str) -> Answer {
    app.anonymous().call(Method::GET, path).header("cookie", cookie).send().await
}

/// The value of a cookie that an answer sets, with its name.
fn set_cookie(answer: &Answer, name: &str) -> Option<String> {
    let set = answer.headers.get_all("set-cookie").iter().filter_map(|line| line.to_str().ok());
    let mut set = set.filter_map(|line| line.split(';').next());
    set.find(|pair| pair.starts_with(&format!("{name}="))).map(str::to_owned)
}

#[track_caller]
fn leads_to(answer: &Answer) -> String {
    assert_eq!(answer.status, 303, "{:?}", answer.body);
    answer.header("location").unwrap().to_owned()
}

/// Leaves for the provider: the cookie of the browser, and the path of the callback.
async fn begin_login(app: &TestApp, query: &str, cookie: &str) -> (String, String) {
    let answer = get(app, &format!("/login/github/{query}"), cookie).await;
    let location = leads_to(&answer);
    assert!(location.contains("/login/oauth/authorize?"), "{location}");
    assert!(location.contains("code_challenge_method=S256"), "{location}");
    let state = location.split('&').find_map(|part| part.strip_prefix("state=")).unwrap();
    let pending_login = set_cookie(&answer, "pending_login").unwrap();
    (pending_login, format!("/complete/github/?code=c&state={state}"))
}

/// Signs in through the provider: where it leads, and the cookie of the session.
async fn through(app: &TestApp) -> (String, Option<String>) {
    let (cookie, callback) = begin_login(app, "?next=/account", "").await;
    let answer = get(app, &callback, &cookie).await;
    (leads_to(&answer), set_cookie(&answer, "session"))
}

fn github() -> SsoEnforcement {
    SsoEnforcement::Provider(ProviderName::GITHUB)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_signs_in_through_the_provider_that_the_domain_requires() {
    let (app, provider) = instance().await;
    let failed = "/login?error_code=sso_failed&next=/account".to_owned();
    // The address alone is not enough.
    assert_eq!(through(&app).await, (failed.clone(), None));
    verified(&app, "mail.example").await;
    assert_eq!(through(&app).await, (failed.clone(), None));
    enforce(&app, "mail.example", github()).await;
    let (location, session) = through(&app).await;
    assert_eq!(location, "/account");
    let session = session.unwrap();
    assert_eq!(web::page(&app, "/account", &session).await.status, 200);

    // Another number with the same address is another account there, of the same member.
    provider.lock().id = 8;
    assert_eq!(through(&app).await.0, "/account");
    // The account of a user counts only while it has the address of the user. The provider
    // confirms addresses of other domains, but signs in none of their users.
    *provider.lock() = GitHub { id: 7, email: "eve@elsewhere.example".to_owned() };
    assert_eq!(through(&app).await, (failed.clone(), None));
    *provider.lock() = GitHub { id: 9, email: "eve@elsewhere.example".to_owned() };
    let unknown = "/login?error_code=no_new_organizations&next=/account".to_owned();
    assert_eq!(through(&app).await, (unknown, None));
    *provider.lock() = GitHub { id: 9, email: "grace@mail.example".to_owned() };
    let no_invite = "/login?error_code=jit_not_enabled&next=/account".to_owned();
    assert_eq!(through(&app).await, (no_invite, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_organization_lets_no_new_member_in() {
    let (app, provider) = instance().await;
    let domain = verified(&app, "mail.example").await;
    let owner = app.owner().key(&["*"]).await;
    let domain = format!(
        "/api/organizations/{}/domains/{}/",
        app.organization(),
        domain["id"].as_str().unwrap()
    );
    let jit = owner.patch(&domain, &json!({"jit_provisioning_enabled": true})).await;
    assert_eq!(jit.status, 200, "{:?}", jit.body);
    // Afterwards: what a key changes does not sign in owners by their address.
    enforce(&app, "mail.example", github()).await;
    let limits = format!("/api/instance/organizations/{}/limits/", app.organization());
    let choose = async |most: i64| {
        let body = json!({"members_limit": most, "members_action": "reject"});
        assert_eq!(owner.patch(&limits, &body).await.status, 200);
    };
    choose(1).await;
    assert_eq!(through(&app).await.0, "/account", "a member signs in");
    *provider.lock() = GitHub { id: 9, email: "grace@mail.example".to_owned() };
    let full = "/login?error_code=organization_full&next=/account".to_owned();
    assert_eq!(through(&app).await, (full.clone(), None));
    let page = app.anonymous().get(&full).await.text();
    assert!(page.contains("as many members as the operator of this site allows"), "{page}");
    choose(2).await;
    assert_eq!(through(&app).await.0, "/account");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_counts_once_in_the_browser_that_left() {
    let (app, _provider) = instance().await;
    verified(&app, "mail.example").await;
    enforce(&app, "mail.example", github()).await;
    let (cookie, callback) = begin_login(&app, "", "").await;
    let (other, _) = begin_login(&app, "", "").await;
    let failed = "/login?error_code=sso_failed&next=/";
    for (path, cookie) in [
        (callback.as_str(), ""),
        (&callback, other.as_str()),
        (&callback, "pending_login=forged"),
        ("/complete/gitlab/?code=c&state=s", &cookie),
        ("/complete/nothing/?code=c", &cookie),
    ] {
        let answer = get(&app, path, cookie).await;
        assert_eq!(leads_to(&answer), failed, "{path} {cookie}");
        assert_eq!(set_cookie(&answer, "session"), None);
    }
    assert_eq!(get(&app, "/complete/No/?code=c", &cookie).await.status, 404);
    let first = get(&app, &callback, &cookie).await;
    assert_eq!(leads_to(&first), "/");
    assert!(set_cookie(&first, "session").is_some());
    assert_eq!(leads_to(&get(&app, &callback, &cookie).await), failed);
}

#[tokio::test(flavor = "multi_thread")]
async fn enforcement_ends_sessions_of_a_password_and_refuses_every_other_method() {
    let (app, _provider) = instance().await;
    let session = web::session(&app).await;
    assert_eq!(web::page(&app, "/account", &session).await.status, 200);
    verified(&app, "mail.example").await;
    enforce(&app, "mail.example", github()).await;

    let answer = web::page(&app, "/account", &session).await;
    assert_eq!(leads_to(&answer), "/login?next=/account");
    // No key can be made in the session.
    let call = app.anonymous().call(Method::POST, "/_fn/create_key").header("cookie", &session);
    let call = call.header("content-type", "application/x-www-form-urlencoded");
    let body = "label=x&scopes=&scopes[0]=*";
    let answer = call.header("sec-fetch-site", "same-origin").body(body).send().await;
    assert!(answer.status != 200, "{:?}", answer.body);
    let post = async |path: &str, body: Value| {
        let call = app.anonymous().call(Method::POST, path);
        call.header("sec-fetch-site", "same-origin").json(&body).send().await
    };
    let login = json!({"email": "ada@mail.example", "password": PASSWORD});
    let detail = "You can only login with SSO for this account (github).";
    let answer = post("/api/login/", login).await;
    answer.assert_field_error(400, "validation_error", "sso_enforced", detail, None);
    let precheck = post("/api/login/precheck/", json!({"email": "x@mail.example"})).await.json();
    assert_eq!(precheck["sso_enforcement"], "github");
    let page = get(&app, "/login?email=x%40mail.example", "").await.text();
    assert!(page.contains("Continue with GitHub") && !page.contains("type=\"password\""));

    // The way in that the operator keeps.
    let identity = &app.app().services.identity;
    let link = identity.sign_in_link("ada@mail.example").await.unwrap().unwrap();
    let (id, token) = link.strip_prefix("/login/link/").unwrap().split_once("?token=").unwrap();
    assert_eq!(get(&app, &link, "").await.status, 200, "opening it uses nothing up");
    let used = web::function(&app, "sign_in_by_link", &format!("id={id}&token={token}"));
    let used = used.send().await;
    let session = set_cookie(&used, "session").expect("a session");
    assert_eq!(web::page(&app, "/account", &session).await.status, 200);
    // What confirms this session is named, and a password is not asked for.
    let again = web::page(&app, "/login/again?next=/account", &session).await.text();
    assert!(again.contains("weir user sign-in-link --email ada@mail.example"), "{again}");
    assert!(again.contains("Confirm with GitHub") && !again.contains("type=\"password\""));
    let body = format!("password={PASSWORD}&next=/account");
    let call = app.anonymous().call(Method::POST, "/_fn/sign_in_again").header("cookie", &session);
    let call = call.header("content-type", "application/x-www-form-urlencoded");
    let refused = call.header("sec-fetch-site", "same-origin").body(body).send().await.text();
    assert!(refused.contains("Your organization accepts no password"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn images_and_frames_of_other_sites_neither_begin_nor_end_a_sign_in() {
    let (app, _provider) = instance().await;
    verified(&app, "mail.example").await;
    enforce(&app, "mail.example", github()).await;
    let (cookie, callback) = begin_login(&app, "?next=/account", "").await;
    let ask = async |path: &str, what: &str| {
        let call = app.anonymous().call(Method::GET, path).header("cookie", &cookie);
        call.header("sec-fetch-dest", what).header("sec-fetch-site", "cross-site").send().await
    };
    for what in ["image", "iframe", "script", "empty"] {
        for path in [callback.as_str(), "/login/github/", "/login/saml/?email=x%40mail.example"] {
            let answer = ask(path, what).await;
            assert_eq!(answer.status, 403, "{path} {what}");
            assert_eq!(answer.header("set-cookie"), None, "{path} {what}");
        }
    }
    // Without a pending login they count nothing.
    for _ in 0..40 {
        assert_eq!(get(&app, "/complete/github/?code=c&state=s", "").await.status, 303);
    }
    let answer = ask(&callback, "document").await;
    assert_eq!(leads_to(&answer), "/account");
    assert!(set_cookie(&answer, "session").is_some());
}

/// The counter of this kind for the network of the test. An attempt must wait for a minute.
async fn must_wait(app: &TestApp, kind: &'static str) -> Rule {
    let key = "127.0.0.1/32".to_owned();
    let rule = Rule { kind, key, waits: &[60], forget_after: 60 * 60 };
    let now = app.app().services.clock.now();
    assert_eq!(throttle::count(app.store(), slice::from_ref(&rule), now).await.unwrap(), Counted);
    rule
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_that_must_wait_reads_so_on_a_page_and_can_come_again() {
    let (app, _provider) = instance().await;
    verified(&app, "mail.example").await;
    enforce(&app, "mail.example", github()).await;
    let wait = |answer: &Answer| {
        assert_eq!(leads_to(answer), "/login?error_code=sso_too_many&next=/account");
        assert_eq!(set_cookie(answer, "session"), None);
        let seconds = answer.header("retry-after").unwrap().parse::<u64>().unwrap();
        assert!((1..=60).contains(&seconds), "{seconds}");
    };
    let (cookie, callback) = begin_login(&app, "?next=/account", "").await;
    let answers = must_wait(&app, "answer").await;
    wait(&get(&app, &callback, &cookie).await);
    let page = get(&app, "/login?error_code=sso_too_many", "").await.text();
    assert!(page.contains("Too many sign-ins came from your network."), "{page}");
    throttle::reset(app.store(), &answers).await.unwrap();
    assert_eq!(leads_to(&get(&app, &callback, &cookie).await), "/account");

    let beginnings = must_wait(&app, "beginning").await;
    wait(&get(&app, "/login/github/?next=/account", "").await);
    throttle::reset(app.store(), &beginnings).await.unwrap();
    begin_login(&app, "?next=/account", "").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_is_linked_from_the_own_page_alone() {
    let (app, provider) = instance().await;
    provider.lock().email = "ada@elsewhere.example".to_owned();
    let session = web::session(&app).await;
    let page = web::page(&app, "/account/security", &session).await.text();
    let link = page.split("href=\"/login/github/").nth(1).expect("a link to the provider");
    let link = link.split('"').next().unwrap().replace("&amp;", "&");
    // Another site does not know the proof, and another session has another one.
    for forged in ["?purpose=link", "?purpose=link&proof=x", "?purpose=test&proof=x"] {
        let answer = get(&app, &format!("/login/github/{forged}"), &session).await;
        assert_eq!(leads_to(&answer), "/login?error_code=sso_not_available&next=/", "{forged}");
    }
    let (pending_login, callback) = begin_login(&app, &link, &session).await;
    let answer = get(&app, &callback, &format!("{pending_login}; {session}")).await;
    assert_eq!(leads_to(&answer), "/account/security");
    let page = web::page(&app, "/account/security", &session).await.text();
    assert!(page.contains("ada@elsewhere.example"));
    assert_eq!(through(&app).await.0, "/account");
}

/// Gives a domain the settings of a SAML provider.
async fn with_saml(app: &TestApp, name: &str) -> String {
    let ids = ordered(app.store(), app.organization()).await.unwrap();
    let found = rows(app.store(), app.organization(), &ids).await.unwrap();
    let domain = found.into_iter().find(|row| row.domain == name).unwrap();
    let set = |row: &DomainRow| {
        let row = DomainRow {
            saml_entity_id: Some("https://idp.example/metadata".to_owned()),
            saml_acs_url: Some("https://idp.example/sso".to_owned()),
            saml_x509_cert: Some(CERTIFICATE.to_owned()),
            ..row.clone()
        };
        Ok::<_, weir_store::Error>(Some((row, Vec::new())))
    };
    weir_store::update::update(app.store(), domain.id, (), set).await.unwrap();
    domain.id.to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn saml_begins_with_the_address_and_takes_answers_of_other_sites() {
    let (app, _provider) = instance().await;
    let metadata = app.anonymous().get("/api/saml/metadata/").await;
    assert_eq!(metadata.header("content-type"), Some("application/samlmetadata+xml"));
    let text = metadata.text();
    assert!(text.contains("/complete/saml/\"") && text.contains("WantAssertionsSigned=\"true\""));

    let missing = get(&app, "/login/saml/?email=x%40mail.example", "").await;
    assert_eq!(leads_to(&missing), "/login?error_code=sso_not_available&next=/");
    verified(&app, "mail.example").await;
    let domain = with_saml(&app, "mail.example").await;
    let left = get(&app, "/login/saml/?email=x%40mail.example&next=/account", "").await;
    let location = leads_to(&left);
    assert!(location.starts_with("https://idp.example/sso?SAMLRequest="), "{location}");
    let relay_state = domain.replace('-', "%2D");
    assert!(location.contains(&format!("&RelayState={relay_state}")), "{location}");
    let cookie = set_cookie(&left, "sso").unwrap();

    let body = format!("SAMLResponse=PHg%2B&RelayState={domain}");
    let answer = async |cookie: &str| {
        let call = app.anonymous().call(Method::POST, "/complete/saml/");
        let call = call.header("content-type", "application/x-www-form-urlencoded");
        let call = call.header("sec-fetch-site", "cross-site").header("cookie", cookie);
        call.body(body.clone()).send().await
    };
    let refused = answer(&cookie).await;
    assert_eq!(leads_to(&refused), "/login?error_code=sso_failed&next=/account");
    assert_eq!(set_cookie(&refused, "session"), None);
    // The pending login is used up. Both refusals are recorded for administrators.
    assert_eq!(leads_to(&answer(&cookie).await), "/login?error_code=sso_failed&next=/");
    let log = app.owner().key(&["activity_log:read"]).await;
    let path = "/api/organizations/@current/activity_log/?scope=OrganizationDomain";
    let entries = log.get(path).await.json();
    let refused = entries["results"].as_array().unwrap().iter();
    let refused = refused.filter(|entry| entry["activity"] == "sign_in_refused");
    assert_eq!(refused.count(), 2, "{entries:?}");
}
