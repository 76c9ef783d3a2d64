//! Signing in by SAML over HTTP, from the request to the session. The test is the identity
//! provider, and signs with keys of its own (SSO-20, SSO-24, SSO-25, SSO-28, SSO-29).

use chrono::{DateTime, TimeDelta, Utc};
use http::Method;
use serde_json::{Value, json};
use weir_saml::SigningKey;
use weir_testkit::{Answer, Caller, DnsAnswer, TestApp};

use super::identity_provider::{Key, NEXT, OTHER, OWN, Request, Says};
use super::{get, leads_to, provider_time, set_cookie};
use crate::domains::{one, outsider, trust_settings, verified};
use crate::web;

pub(super) const ENTITY_ID: &str = "https://idp.example/metadata";
const SIGN_IN_URL: &str = "https://idp.example/sso";
pub(super) const FAILED: &str = "/login?error_code=sso_failed&next=/account";
/// Where a response without a pending login leads.
const STRAY: &str = "/login?error_code=sso_failed&next=/";
/// What administrators read about it.
const NO_PENDING_LOGIN: &str = "This browser did not begin this sign-in, has answered it \
                                already, or began it more than ten minutes ago. Sign-ins that \
                                begin at the provider are not accepted.";
const OTHER_REQUEST: &str = "The response answers another request than the one of this login.";

/// An instance whose owner has verified `mail.example` and entered the settings of an
/// identity provider. Colleagues join when they sign in.
pub(super) struct Connected {
    pub(super) app: TestApp,
    /// A key of the owner.
    pub(super) owner: Caller,
    /// The path of the domain in the API.
    domain: String,
    id: String,
}

impl Connected {
    pub(super) async fn start() -> Self {
        let app = TestApp::with_owner().await;
        let domain = verified(&app, "mail.example").await;
        let owner = app.owner().key(&["*"]).await;
        let path = one(&app, &domain);
        connect(&owner, &path, ENTITY_ID, OWN).await;
        trust_settings(&app, &path).await;
        let id = domain["id"].as_str().unwrap().to_owned();
        Self { app, owner, domain: path, id }
    }

    /// Leaves for the identity provider of this address: the cookie of the browser, and the
    /// request.
    pub(super) async fn begin_login(&self, email: &str) -> (String, Request) {
        begin_login(&self.app, email, "").await
    }

    /// Signs in with what the identity provider says about a colleague.
    pub(super) async fn through(&self, change: fn(&mut Says)) -> Answer {
        let (cookie, request) = self.begin_login("x@mail.example").await;
        let mut says = Says::about(&request, ENTITY_ID, "grace@mail.example");
        change(&mut says);
        bring(&self.app, &cookie, &request.relay_state, &says.signed()).await
    }

    /// Changes the domain.
    async fn patch(&self, body: Value) -> Value {
        let answer = self.owner.patch(&self.domain, &body).await;
        assert_eq!(answer.status, 200, "{:?}", answer.body);
        answer.json()
    }

    /// The addresses of the members, with their levels.
    async fn members(&self) -> Vec<(String, u64)> {
        let list = self.owner.get("/api/organizations/@current/members/").await.json();
        let member = |one: &Value| {
            (one["user"]["email"].as_str().unwrap().to_owned(), one["level"].as_u64().unwrap())
        };
        let mut members: Vec<_> = list["results"].as_array().unwrap().iter().map(member).collect();
        members.sort();
        members
    }
}

/// Enters the settings of an identity provider, as an administrator does.
pub(super) async fn connect(caller: &Caller, domain: &str, entity_id: &str, key: Key) {
    let body = json!({
        "saml_entity_id": entity_id,
        "saml_acs_url": SIGN_IN_URL,
        "saml_x509_cert": key.certificate,
        "jit_provisioning_enabled": true,
    });
    let answer = caller.patch(domain, &body).await;
    let domain = answer.json();
    assert_eq!((answer.status, &domain["has_saml"]), (200, &json!(true)), "{domain}");
    let mut warnings = domain["warnings"].as_array().unwrap().iter();
    assert!(warnings.all(|warning| warning["code"] == "settings_by_key"), "{domain}");
}

/// Leaves with the cookie of a browser that left before, or without one.
pub(super) async fn begin_login(app: &TestApp, email: &str, cookie: &str) -> (String, Request) {
    let query = form_urlencoded::Serializer::new(String::new())
        .append_pair("email", email)
        .append_pair("next", "/account")
        .finish();
    let answer = get(app, &format!("/login/saml/?{query}"), cookie).await;
    let request = Request::read(&leads_to(&answer));
    assert_eq!(request.to, SIGN_IN_URL);
    (set_cookie(&answer, "sso").unwrap(), request)
}

/// Brings a response, from the page of the identity provider.
pub(super) async fn bring(
    app: &TestApp,
    cookie: &str,
    relay_state: &str,
    response: &str,
) -> Answer {
    let body = form_urlencoded::Serializer::new(String::new())
        .append_pair("SAMLResponse", response)
        .append_pair("RelayState", relay_state)
        .finish();
    let call = app.anonymous().call(Method::POST, "/complete/saml/");
    let call = call.header("content-type", "application/x-www-form-urlencoded");
    let call = call.header("sec-fetch-site", "cross-site").header("cookie", cookie);
    call.header("origin", "https://idp.example").body(body).send().await
}

/// Fails unless the visitor is refused: without a session, and with the text that every
/// refusal has.
#[track_caller]
pub(super) fn assert_refused(answer: &Answer, to: &str, what: &str) {
    assert_eq!(leads_to(answer), to, "{what}");
    assert_eq!(set_cookie(answer, "session"), None, "{what}");
}

/// The reasons of refused sign-ins in the activity log of a caller's organization, the
/// newest first.
async fn reasons(caller: &Caller) -> Vec<String> {
    let path = "/api/organizations/@current/activity_log/?scope=OrganizationDomain";
    let entries = caller.get(path).await.json();
    let refused = entries["results"].as_array().unwrap().iter();
    let refused = refused.filter(|entry| entry["activity"] == "sign_in_refused");
    let reason = |entry: &Value| {
        let changes = entry["detail"]["changes"].as_array().unwrap();
        let found = changes.iter().find(|change| change["field"] == "reason").unwrap();
        found["after"].as_str().unwrap().to_owned()
    };
    refused.map(reason).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_colleague_joins_and_signs_in_by_a_signed_response() {
    let it = Connected::start().await;
    let answer = it.through(|_| {}).await;
    assert_eq!(leads_to(&answer), "/account");
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let session = set_cookie(&answer, "session").expect("a session");
    let page = web::page(&it.app, "/account", &session).await;
    assert_eq!(page.status, 200);
    assert!(page.text().contains("Grace Hopper"));
    let expected = [("ada@mail.example".to_owned(), 15), ("grace@mail.example".to_owned(), 1)];
    assert_eq!(it.members().await, expected);

    // The next sign-in is the same user's, whatever the name is by then.
    let answer = it.through(|says| says.attributes[1].1 = "Amazing Grace".to_owned()).await;
    assert!(set_cookie(&answer, "session").is_some());
    assert_eq!(it.members().await, expected);

    // Without just-in-time provisioning, a further colleague needs an invite.
    it.patch(json!({"jit_provisioning_enabled": false})).await;
    let linus = |says: &mut Says| {
        says.name_id = "subject of linus".to_owned();
        says.attributes[0].1 = "linus@mail.example".to_owned();
    };
    let answer = it.through(linus).await;
    assert_refused(&answer, "/login?error_code=jit_not_enabled&next=/account", "no invite");
    let invite = json!({"target_email": "linus@mail.example", "level": 8});
    let made = it.owner.post("/api/organizations/@current/invites/", &invite).await;
    assert_eq!(made.status, 201, "{:?}", made.body);
    assert!(set_cookie(&it.through(linus).await, "session").is_some());
    assert!(it.members().await.contains(&("linus@mail.example".to_owned(), 8)));
}

/// A certificate that is valid until then.
fn certificate_until(end: DateTime<Utc>) -> String {
    // A new key has a certificate for ten years.
    SigningKey::generate(end - TimeDelta::days(3650)).unwrap().certificate.base64()
}

pub(super) type Change = fn(&mut Says);

/// What is wrong, how the response says it, and the beginning of the reason that
/// administrators read.
pub(super) const WRONG: &[(&str, Change, &str)] = &[
    (
        "an audience elsewhere",
        |says| says.audience = "https://other.example/".to_owned(),
        "The audience is “https://other.example/”.",
    ),
    (
        "a recipient elsewhere",
        |says| says.recipient = "https://other.example/acs".to_owned(),
        "The recipient is “https://other.example/acs”.",
    ),
    (
        "a destination elsewhere",
        |says| says.destination = "https://other.example/acs".to_owned(),
        "The destination is “https://other.example/acs”.",
    ),
    (
        "too late",
        |says| says.not_on_or_after = provider_time() - TimeDelta::seconds(90),
        "NotOnOrAfter is earlier than the time of Weir",
    ),
    (
        "too early",
        |says| says.not_before = provider_time() + TimeDelta::seconds(90),
        "NotBefore is later than the time of Weir",
    ),
    (
        "another issuer",
        |says| says.issuer = "https://other.example/metadata".to_owned(),
        "The issuer is “https://other.example/metadata”.",
    ),
    (
        "an answer to another request",
        |says| says.in_response_to = format!("_{:032x}", 7),
        "The response answers another request than the one of this login.",
    ),
    (
        "another key",
        |says| says.key = OTHER,
        "Test the connection to read why this check failed: The signature is by a certificate",
    ),
    (
        "another address than the signed one",
        |says| says.forge = |document| document.replace("grace@", "ada@"),
        "Test the connection to read why this check failed: The signature is by a certificate",
    ),
    (
        "no signature",
        |says| {
            says.forge = |document| {
                let (before, rest) = document.split_once("<ds:Signature ").unwrap();
                let (_, after) = rest.split_once("</ds:Signature>").unwrap();
                format!("{before}{after}")
            };
        },
        "Test the connection to read why this check failed: The assertion is signed",
    ),
    (
        "a comment in the address",
        |says| says.forge = |document| document.replace("grace@", "grace<!-- -->@"),
        "Test the connection to read why this check failed: The response is readable XML.",
    ),
    (
        "a refusal by the identity provider",
        |says| says.status = "urn:oasis:names:tc:SAML:2.0:status:Responder",
        "Test the connection to read why this check failed: The identity provider reports success.",
    ),
    ("no address", |says| says.attributes.clear(), "No e-mail address was sent."),
    (
        "an address of another domain",
        |says| says.attributes[0].1 = "grace@elsewhere.example".to_owned(),
        "The address is not one of this domain.",
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_response_is_refused_with_its_reason_for_administrators_alone() {
    let it = Connected::start().await;
    for (what, change, reason) in WRONG {
        assert_refused(&it.through(*change).await, FAILED, what);
        let newest = reasons(&it.owner).await.swap_remove(0);
        assert!(newest.starts_with(reason), "{what}: {newest}");
    }
    assert_eq!(it.members().await.len(), 1);
    let page = get(&it.app, FAILED, "").await.text();
    assert!(page.contains("Try again, or ask an administrator of your organization."));
    // Nothing else was wrong with them.
    assert!(set_cookie(&it.through(|_| {}).await, "session").is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_and_its_assertion_count_once() {
    let it = Connected::start().await;
    let (cookie, request) = it.begin_login("x@mail.example").await;
    let says = Says::about(&request, ENTITY_ID, "grace@mail.example");
    let response = says.signed();
    let first = bring(&it.app, &cookie, &request.relay_state, &response).await;
    assert!(set_cookie(&first, "session").is_some());
    let again = bring(&it.app, &cookie, &request.relay_state, &response).await;
    assert_refused(&again, STRAY, "the same sign-in");
    let (cookie, request) = it.begin_login("x@mail.example").await;
    let again = bring(&it.app, &cookie, &request.relay_state, &response).await;
    assert_refused(&again, FAILED, "another sign-in");
    // A second response to another request with the same assertion.
    let (cookie, request) = it.begin_login("x@mail.example").await;
    let mut second = Says::about(&request, ENTITY_ID, "grace@mail.example");
    second.assertion = says.assertion;
    let again = bring(&it.app, &cookie, &request.relay_state, &second.signed()).await;
    assert_refused(&again, FAILED, "the same assertion");
    assert_eq!(
        reasons(&it.owner).await,
        ["This assertion was used before.", OTHER_REQUEST, NO_PENDING_LOGIN]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_that_this_browser_did_not_ask_for_is_refused() {
    let it = Connected::start().await;
    let (cookie, request) = it.begin_login("x@mail.example").await;
    let response = Says::about(&request, ENTITY_ID, "grace@mail.example").signed();
    // Another browser waits for an answer of its own.
    let (elsewhere, _) = it.begin_login("x@mail.example").await;
    for (what, cookie, relay_state, to) in [
        ("no cookie", "", request.relay_state.as_str(), STRAY),
        ("a made-up cookie", "sso=forged", &request.relay_state, STRAY),
        ("no relay state", &cookie, "", STRAY),
        ("another relay state", &cookie, "0199a1b2-0000-7000-8000-000000000001", STRAY),
        ("another browser", &elsewhere, &request.relay_state, FAILED),
    ] {
        let answer = bring(&it.app, cookie, relay_state, &response).await;
        assert_refused(&answer, to, what);
    }
    // Those that name the domain are recorded.
    let recorded = reasons(&it.owner).await;
    assert_eq!(recorded, [OTHER_REQUEST, NO_PENDING_LOGIN, NO_PENDING_LOGIN]);
    // It was signed for the first browser, and still counts there.
    let answer = bring(&it.app, &cookie, &request.relay_state, &response).await;
    assert!(set_cookie(&answer, "session").is_some());

    // A response that begins at the identity provider answers no request.
    let (cookie, request) = it.begin_login("x@mail.example").await;
    let mut unsolicited = Says::about(&request, ENTITY_ID, "grace@mail.example");
    unsolicited.forge = |document| {
        let (before, rest) = document.split_once(" InResponseTo=\"").unwrap();
        format!("{before}{}", rest.split_once('"').unwrap().1)
    };
    let response = unsolicited.signed();
    let answer = bring(&it.app, &cookie, &request.relay_state, &response).await;
    assert_refused(&answer, FAILED, "unsolicited");
    let newest = reasons(&it.owner).await.swap_remove(0);
    assert_eq!(newest, "The XML attribute InResponseTo of “Response” is missing.");
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_of_other_sites_are_taken_at_one_address_alone() {
    let it = Connected::start().await;
    let (cookie, request) = it.begin_login("x@mail.example").await;
    let response = Says::about(&request, ENTITY_ID, "grace@mail.example").signed();
    let fields = form_urlencoded::Serializer::new(String::new())
        .append_pair("SAMLResponse", &response)
        .append_pair("RelayState", &request.relay_state)
        .finish();
    for path in [
        "/complete/saml",
        "//complete/saml/",
        "/complete//saml/",
        "/complete/SAML/",
        "/complete/%73aml/",
        "/complete/saml/;x/",
        "/complete/saml/x/",
        "/complete/github/",
        "/login/saml/",
    ] {
        let call = it.app.anonymous().call(Method::POST, path);
        let call = call.header("content-type", "application/x-www-form-urlencoded");
        let call = call.header("sec-fetch-site", "cross-site").header("cookie", &cookie);
        let answer = call.body(fields.clone()).send().await;
        assert_eq!(set_cookie(&answer, "session"), None, "{path}");
        assert!(answer.status >= 400, "{path} {}", answer.status);
    }
    // A response is a form, and not a part of an address.
    let answer = get(&it.app, &format!("/complete/saml/?{fields}"), &cookie).await;
    assert!(answer.status >= 400, "{}", answer.status);
    assert_eq!(set_cookie(&answer, "session"), None);
    // None of them used the sign-in up.
    let answer = bring(&it.app, &cookie, &request.relay_state, &response).await;
    assert!(set_cookie(&answer, "session").is_some());
}

/// A user of another organization, who has verified `evil.example` and has an identity
/// provider of their own. Returns the key, the path of the domain and its id.
async fn evil(app: &TestApp, entity_id: &str) -> (Caller, String, String) {
    let eve = outsider(app).await;
    let domains = "/api/organizations/@current/domains/";
    let domain = eve.post(domains, &json!({"domain": "evil.example"})).await.json();
    let challenge = domain["verification_challenge"].as_str().unwrap();
    app.dns().set("_posthog-challenge.evil.example", DnsAnswer::txt(challenge));
    let id = domain["id"].as_str().unwrap().to_owned();
    let path = format!("{domains}{id}/");
    let checked = eve.post(&format!("{path}verify/"), &json!({})).await.json();
    assert_eq!(checked["is_verified"], true);
    connect(&eve, &path, entity_id, OTHER).await;
    (eve, path, id)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_of_another_organization_signs_in_no_member_of_this_one() {
    let it = Connected::start().await;
    let app = &it.app;
    let theirs = "https://evil.example/metadata";
    let (eve, path, evil_id) = evil(app, theirs).await;
    // Ada has signed in through the provider of her own domain, so it knows her.
    let ada = |request: &Request, entity_id: &str, key: Key| {
        let mut says = Says::about(request, entity_id, "ada@mail.example");
        says.key = key;
        says.signed()
    };
    let (cookie, request) = it.begin_login("ada@mail.example").await;
    let answer = bring(app, &cookie, &request.relay_state, &ada(&request, ENTITY_ID, OWN)).await;
    assert!(set_cookie(&answer, "session").is_some());

    // Their provider speaks about her, with the issuer that it has, and with that of hers.
    for entity_id in [theirs, ENTITY_ID] {
        connect(&eve, &path, entity_id, OTHER).await;
        let (cookie, request) = begin_login(app, "x@evil.example", "").await;
        assert_eq!(request.relay_state, evil_id);
        let response = ada(&request, entity_id, OTHER);
        let answer = bring(app, &cookie, &evil_id, &response).await;
        assert_refused(&answer, FAILED, entity_id);
        let newest = reasons(&eve).await.swap_remove(0);
        assert!(newest.starts_with("The address is not one of this domain."), "{newest}");
    }
    assert_eq!(reasons(&it.owner).await, [""; 0], "the other organization learns nothing");

    // Their key answers the request of her domain.
    let (cookie, request) = it.begin_login("ada@mail.example").await;
    let response = ada(&request, ENTITY_ID, OTHER);
    assert_refused(&bring(app, &cookie, &it.id, &response).await, FAILED, "their key");
    // A browser left for both providers. The answer to one comes with the relay state of
    // the other one.
    let (cookie, ours) = it.begin_login("ada@mail.example").await;
    let (cookie, request) = begin_login(app, "x@evil.example", &cookie).await;
    assert_ne!(ours.relay_state, request.relay_state);
    let response = ada(&request, ENTITY_ID, OTHER);
    assert_refused(&bring(app, &cookie, &it.id, &response).await, FAILED, "swapped");
    let reason = "Test the connection to read why this check failed: The signature is by a \
                  certificate of the connection.";
    assert_eq!(reasons(&it.owner).await, [reason; 2]);
    // There is no pending login at the domain that the response names.
    let (cookie, request) = it.begin_login("ada@mail.example").await;
    let response = ada(&request, ENTITY_ID, OTHER);
    assert_refused(&bring(app, &cookie, &evil_id, &response).await, STRAY, "their domain");
    // She is a member of her organization alone.
    let members = eve.get("/api/organizations/@current/members/").await.json();
    assert_eq!(members["count"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_domain_that_changes_hands_signs_in_no_member_of_its_first_organization() {
    let it = Connected::start().await;
    let app = &it.app;
    // Ada and Grace have signed in through the provider of the first organization.
    let emails = ["ada@mail.example", "grace@mail.example"];
    for email in emails {
        let (cookie, request) = it.begin_login(email).await;
        let says = Says::about(&request, ENTITY_ID, email);
        let answer = bring(app, &cookie, &request.relay_state, &says.signed()).await;
        assert!(set_cookie(&answer, "session").is_some(), "{email}");
    }
    let before = it.members().await;
    let (late, pending) = it.begin_login("ada@mail.example").await;
    assert_eq!(it.owner.delete(&it.domain).await.status, 204);

    // Another organization verifies the name. Its provider has the same entity id.
    let eve = outsider(app).await;
    let domains = "/api/organizations/@current/domains/";
    let domain = eve.post(domains, &json!({"domain": "mail.example"})).await.json();
    let challenge = domain["verification_challenge"].as_str().unwrap();
    app.dns().set("_posthog-challenge.mail.example", DnsAnswer::txt(challenge));
    let path = format!("{domains}{}/", domain["id"].as_str().unwrap());
    let checked = eve.post(&format!("{path}verify/"), &json!({})).await.json();
    assert_eq!(checked["is_verified"], true);
    connect(&eve, &path, ENTITY_ID, OTHER).await;
    trust_settings(app, &path).await;
    for email in emails {
        let (cookie, request) = begin_login(app, email, "").await;
        assert_eq!(request.relay_state, domain["id"].as_str().unwrap());
        let mut says = Says::about(&request, ENTITY_ID, email);
        says.key = OTHER;
        let answer = bring(app, &cookie, &request.relay_state, &says.signed()).await;
        assert_refused(&answer, FAILED, email);
        let newest = reasons(&eve).await.swap_remove(0);
        assert!(newest.contains("this sign-in must not take over"), "{newest}");
    }
    // An answer to the former provider comes too late, at either domain.
    let says = Says::about(&pending, ENTITY_ID, "ada@mail.example");
    for relay_state in [pending.relay_state.as_str(), domain["id"].as_str().unwrap()] {
        let answer = bring(app, &late, relay_state, &says.signed()).await;
        assert_refused(&answer, STRAY, "the former provider");
    }
    // Nor does it reach them by SCIM.
    let token = eve.post(&format!("{path}scim/token/"), &json!({})).await.json();
    let theirs = app.anonymous().with_key(token["value"].as_str().unwrap());
    for email in emails {
        let users = "/scim/v2/mail.example/Users";
        let answer = theirs.post(users, &json!({"userName": email})).await;
        assert_eq!(answer.status, 409, "{:?}", answer.body);
        let found = theirs.get(&format!("{users}?filter=userName%20eq%20%22{email}%22")).await;
        assert_eq!(found.json()["totalResults"], 0, "{email}");
    }
    assert_eq!(it.members().await, before);
    assert_eq!(eve.get("/api/organizations/@current/members/").await.json()["count"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_is_replaced_without_a_break() {
    let it = Connected::start().await;
    let works = async |key: Key| {
        let (cookie, request) = it.begin_login("x@mail.example").await;
        let mut says = Says::about(&request, ENTITY_ID, "grace@mail.example");
        says.key = key;
        let answer = bring(&it.app, &cookie, &request.relay_state, &says.signed()).await;
        set_cookie(&answer, "session").is_some()
    };
    assert_eq!([works(OWN).await, works(NEXT).await], [true, false]);
    let after = it.patch(json!({"saml_x509_cert_next": NEXT.certificate})).await;
    assert_eq!(after["saml_x509_cert"], OWN.certificate);
    assert_eq!([works(OWN).await, works(NEXT).await], [true, true]);
    // An older client sends back the one certificate that it knows: the other one stays.
    it.patch(json!({"saml_x509_cert": OWN.certificate})).await;
    assert_eq!([works(OWN).await, works(NEXT).await], [true, true]);
    let body = json!({"saml_x509_cert": NEXT.certificate, "saml_x509_cert_next": null});
    it.patch(body).await;
    assert_eq!([works(OWN).await, works(NEXT).await], [false, true]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_cannot_be_read_breaks_only_itself() {
    let it = Connected::start().await;
    let session = web::session(&it.app).await;
    let path = format!("/organizations/{}/domains/{}", it.app.organization(), it.id);
    let page = async || web::page(&it.app, &path, &session).await.text();
    it.patch(json!({"saml_x509_cert_next": "no certificate"})).await;
    assert!(page().await.contains("Second certificate: "));
    assert!(set_cookie(&it.through(|_| {}).await, "session").is_some());
    it.patch(json!({"saml_x509_cert": "no certificate"})).await;
    // No request can be made. The page that leads to the test says why.
    let text = page().await;
    let link = text.split("href=\"").find(|rest| rest.contains("purpose=test")).unwrap();
    let link = link.split('"').next().unwrap().replace("&amp;", "&");
    let left = get(&it.app, &link, &session).await;
    assert_eq!(leads_to(&left), format!("{path}?error_code=sso_not_available#saml"));
    let text = page().await;
    assert!(text.contains("The test could not begin. The certificate: "), "{text}");
    assert!(!text.contains("Checks of the last test"));
}

#[tokio::test(flavor = "multi_thread")]
async fn large_responses_are_read_up_to_their_own_limit() {
    let it = Connected::start().await;
    let large = |says: &mut Says| says.attributes.push(("groups".to_owned(), "g".repeat(150_000)));
    assert!(set_cookie(&it.through(large).await, "session").is_some());
    let (cookie, request) = it.begin_login("x@mail.example").await;
    let endless = "A".repeat(600_000);
    let answer = bring(&it.app, &cookie, &request.relay_state, &endless).await;
    assert_eq!(answer.status, 413);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_confirmed_by_a_new_sign_in_at_the_provider_alone() {
    let it = Connected::start().await;
    let (_, silent) = it.begin_login("x@mail.example").await;
    assert!(!silent.forces, "an ordinary sign-in may be silent");
    let session = set_cookie(&it.through(|_| {}).await, "session").unwrap();
    let confirm = async |change: fn(&mut Says)| {
        let (cookie, request) = begin_login(&it.app, "x@mail.example", &session).await;
        assert!(request.forces);
        let mut says = Says::about(&request, ENTITY_ID, "grace@mail.example");
        change(&mut says);
        bring(&it.app, &cookie, &request.relay_state, &says.signed()).await
    };
    let answer = confirm(|says| says.authenticated -= TimeDelta::hours(3)).await;
    let again = "/login/again?error_code=sign_in_not_recent&next=/account";
    assert_refused(&answer, again, "silent");
    let page = web::page(&it.app, again, &session).await.text();
    assert!(page.contains("the provider did not ask you to sign in again"), "{page}");
    assert!(page.contains("Confirm with single sign-on"), "{page}");
    let answer = confirm(|says| says.key = OTHER).await;
    assert_refused(&answer, "/login/again?error_code=sso_failed&next=/account", "refused");
    let answer = confirm(|_| {}).await;
    assert_eq!(leads_to(&answer), "/account");
    assert!(set_cookie(&answer, "session").is_some_and(|new| new != session));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_ends_soon_is_announced_on_the_page() {
    let it = Connected::start().await;
    let session = web::session(&it.app).await;
    let path = format!("/organizations/{}/domains/{}", it.app.organization(), it.id);
    let page = async || web::page(&it.app, &path, &session).await.text();
    assert!(!page().await.contains("The certificate expires soon"));
    let soon = certificate_until(provider_time() + TimeDelta::days(29));
    it.patch(json!({"saml_x509_cert": soon})).await;
    assert!(page().await.contains("The certificate expires soon"));
    it.patch(json!({"saml_x509_cert_next": OWN.certificate})).await;
    assert!(!page().await.contains("The certificate expires soon"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_in_the_browser_shows_the_check_that_failed_and_what_was_sent() {
    let it = Connected::start().await;
    let session = web::session(&it.app).await;
    let path = format!("/organizations/{}/domains/{}", it.app.organization(), it.id);
    let page = async || web::page(&it.app, &path, &session).await.text();
    let link = async || {
        let page = page().await;
        let links = page.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
        let mut links = links.filter(|link| link.contains("purpose=test"));
        links.next().expect("a link that tests the connection").replace("&amp;", "&")
    };
    let test = async |change: fn(&mut Says)| {
        let left = get(&it.app, &link().await, &session).await;
        let request = Request::read(&leads_to(&left));
        let cookie = set_cookie(&left, "sso").unwrap();
        let mut says = Says::about(&request, ENTITY_ID, "grace@mail.example");
        change(&mut says);
        let answer = bring(&it.app, &cookie, &request.relay_state, &says.signed()).await;
        assert_eq!(leads_to(&answer), format!("{path}#saml"));
        assert_eq!(set_cookie(&answer, "session"), None);
        page().await
    };
    let count = |page: &str, word: &str| page.matches(&format!("{word}</")).count();

    let page = test(|says| says.audience = "https://other.example/".to_owned()).await;
    assert!(page.contains("The audience is “https://other.example/”."), "{page}");
    // The step of the set-up says so too.
    assert_eq!([count(&page, "Failed"), count(&page, "Not reached")], [2, 3]);
    // Its signature was verified, so what it says is shown.
    for sent in ["NameID", "subject of grace@mail.example", "displayName", "Grace Hopper"] {
        assert!(page.contains(sent), "{sent} in {page}");
    }
    let page = test(|says| says.key = OTHER).await;
    assert!(page.contains("The signature is not by a certificate of the connection."));
    assert!(page.contains("It is shown once the signature is verified"), "{page}");
    assert!(!page.contains("Grace Hopper"), "an unverified response is not shown");
    let page = test(|_| {}).await;
    assert!(page.contains("A new user would become a member and sign in."), "{page}");
    assert_eq!([count(&page, "Failed"), count(&page, "Not reached")], [0, 0]);
    assert_eq!(it.members().await.len(), 1);
    // The checks are those of a sign-in, which the same response passes.
    assert!(set_cookie(&it.through(|_| {}).await, "session").is_some());
    let page = test(|_| {}).await;
    assert!(page.contains("This user would sign in."), "{page}");
    // A member sees neither the test nor what was sent.
    let own = set_cookie(&it.through(|_| {}).await, "session").unwrap();
    let seen = web::page(&it.app, &path, &own).await.text();
    assert!(!seen.contains("purpose=test") && !seen.contains("What the provider sent"), "{seen}");
}
