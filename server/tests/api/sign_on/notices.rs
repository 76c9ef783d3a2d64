//! Who learns of a change of how users sign in: the activity log, and mails (SSO-30, SSO-33,
//! SSO-35).

use serde_json::{Value, json};
use weir_service::identity::Peer;
use weir_testkit::{DnsAnswer, MailSink, Received, TestApp};

use super::identity_provider::{NEXT, OWN, Says};
use super::saml::{self, ENTITY_ID};
use super::set_cookie;
use crate::domains::{one, trust_settings, verified};
use crate::web;

async fn with_mail() -> (TestApp, MailSink) {
    let sink = MailSink::start().await;
    let mail = sink.url();
    let app = TestApp::start(
        move |config| {
            config.public_url = "http://localhost:8000".parse().unwrap();
            config.smtp_url = mail.parse().unwrap();
        },
        |_| {},
    );
    (app.await.set_up().await, sink)
}

/// The mails with this subject, as soon as there are this many of them.
pub(crate) async fn mails(sink: &MailSink, subject: &str, count: usize) -> Vec<Received> {
    let mut wanted = count;
    loop {
        let all = sink.wait_for(wanted).await;
        let is_it = |mail: &&Received| mail.header("Subject") == Some(subject);
        let found: Vec<Received> = all.iter().filter(is_it).cloned().collect();
        if found.len() >= count {
            return found;
        }
        wanted = all.len() + 1;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn providers_of_the_instance_are_changed_by_staff_with_entries_and_mails() {
    let (app, sink) = with_mail().await;
    let session = web::session(&app).await;
    let log = app.owner().key(&["activity_log:read"]).await;
    let act = async |name: &str, fields: &[(&str, &str)]| {
        let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        let answer = web::function(&app, name, &body).header("cookie", &session).send().await;
        assert_eq!(answer.status, 200, "{name} {:?}", answer.body);
    };
    let save = async |label: &str, secret: &str| {
        let fields = [
            ("name", "ours"),
            ("label", label),
            ("issuer", "https://issuer.example"),
            ("client_id", "weir"),
            ("client_secret", secret),
        ];
        act("save_provider", &fields).await;
    };
    save("Ours", "a-hidden-secret").await;
    save("Our provider", "").await;
    act("remove_provider", &[("name", "ours")]).await;

    let path = "/api/organizations/@current/activity_log/?scope=SignInProvider";
    let entries = log.get(path).await.json();
    assert!(!entries.to_string().contains("hidden"), "{entries}");
    let entry = |entry: &Value| {
        let changes = entry["detail"]["changes"].as_array().unwrap().iter();
        let fields: Vec<&str> = changes.map(|change| change["field"].as_str().unwrap()).collect();
        assert_eq!((&entry["item_id"], &entry["detail"]["name"]), (&json!("ours"), &json!("ours")));
        (entry["activity"].as_str().unwrap().to_owned(), fields.join(" "))
    };
    let entries: Vec<_> = entries["results"].as_array().unwrap().iter().map(entry).collect();
    let expected = [
        ("deleted", "label issuer client_id"),
        ("updated", "label"),
        ("created", "label issuer client_id client_secret"),
    ];
    assert_eq!(entries, expected.map(|(action, fields)| (action.to_owned(), fields.to_owned())));

    let saved = mails(&sink, "A sign-in provider of Weir was changed", 2).await;
    let removed = mails(&sink, "A sign-in provider of Weir was removed", 1).await;
    for mail in saved.iter().chain(&removed) {
        assert_eq!(mail.to, ["ada@mail.example"]);
        assert!(mail.text.contains("by ada@mail.example"), "{}", mail.text);
        assert!(mail.text.contains("http://localhost:8000/instance#providers"), "{}", mail.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn owners_learn_of_changed_rules_and_members_of_linked_accounts() {
    let (app, sink) = with_mail().await;
    let owner = app.owner().key(&["*"]).await;
    let path = one(&app, &verified(&app, "mail.example").await);
    saml::connect(&owner, &path, ENTITY_ID, OWN).await;
    trust_settings(&app, &path).await;
    // What changes nothing for members who sign in causes no mail.
    assert_eq!(owner.patch(&path, &json!({})).await.status, 200);

    // The first sign-in links the account.
    for _ in 0..2 {
        let (cookie, request) = saml::begin_login(&app, "x@mail.example", "").await;
        let says = Says::about(&request, ENTITY_ID, "ada@mail.example");
        let answer = saml::bring(&app, &cookie, &request.relay_state, &says.signed()).await;
        assert!(set_cookie(&answer, "session").is_some());
    }
    for body in [
        json!({"sso_enforcement": "saml"}),
        json!({"saml_x509_cert_next": NEXT.certificate}),
        json!({"saml_sign_requests": true}),
    ] {
        assert_eq!(owner.patch(&path, &body).await.status, 200, "{body}");
    }
    assert_eq!(owner.delete(&path).await.status, 204);

    let removed = mails(&sink, "The domain mail.example was removed", 1).await;
    let linked = mails(&sink, "An account was linked to yours on Weir", 1).await;
    let changed = mails(&sink, "The sign-in rules of mail.example were changed", 4).await;
    assert_eq!((removed.len(), linked.len(), changed.len()), (1, 1, 4));
    let says = |words: &str| changed.iter().any(|mail| mail.text.contains(words));
    for words in [
        "just-in-time provisioning, the entity id of the SAML provider",
        ": the second certificate of the SAML provider.",
        ": the required way of signing in.",
        ": signing of requests to the SAML provider.",
    ] {
        assert!(says(words), "{words}");
    }
    for mail in removed.iter().chain(&changed) {
        assert_eq!(mail.to, ["ada@mail.example"]);
        assert!(mail.text.contains("by ada@mail.example"), "{}", mail.text);
    }
    let log = owner.get("/api/organizations/@current/activity_log/?scope=User").await.json();
    let entries = log["results"].as_array().unwrap().iter();
    let linked = entries.filter(|entry| entry.to_string().contains("linked_account"));
    assert_eq!(linked.count(), 1);
}

/// Settings that a key saved count for members alone. An owner who stands for them changes no
/// field, and lets the provider sign owners in.
#[tokio::test(flavor = "multi_thread")]
async fn owners_learn_that_stored_settings_count_for_more_users() {
    let (app, sink) = with_mail().await;
    let owner = app.owner().key(&["*"]).await;
    let domain = verified(&app, "mail.example").await;
    let path = one(&app, &domain);
    let by_key = json!({"jit_provisioning_enabled": true});
    assert_eq!(owner.patch(&path, &by_key).await.status, 200);
    let session = web::session(&app).await;
    let id = domain["id"].as_str().unwrap();
    let body = format!("id={}&domain={id}&enabled=on", app.organization());
    for _ in 0..2 {
        let saved = web::function(&app, "set_provisioning", &body).header("cookie", &session);
        let saved = saved.send().await;
        assert_eq!(saved.status, 200, "{:?}", saved.body);
    }
    assert_eq!(owner.delete(&path).await.status, 204);

    mails(&sink, "The domain mail.example was removed", 1).await;
    let changed = mails(&sink, "The sign-in rules of mail.example were changed", 2).await;
    let confirmed = "by ada@mail.example: for whom the stored settings count.";
    let confirmed = changed.iter().filter(|mail| mail.text.contains(confirmed));
    assert_eq!((changed.len(), confirmed.count()), (2, 1));
    let log = "/api/organizations/@current/activity_log/?scope=OrganizationDomain";
    let log = owner.get(log).await.json();
    let entries = log["results"].as_array().unwrap().iter();
    let confirmed = entries.filter(|entry| entry.to_string().contains("settings_confirmed"));
    assert_eq!(confirmed.count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_user_learns_of_a_link_of_the_operator_that_was_used() {
    let (app, sink) = with_mail().await;
    let reader = app.owner().key(&["activity_log:read"]).await;
    let newest = async || {
        let path = "/api/organizations/@current/activity_log/?scope=User";
        let entry = reader.get(path).await.json()["results"][0].clone();
        let change = &entry["detail"]["changes"][0];
        json!([entry["is_system"], entry["detail"]["name"], change["field"], change["action"]])
    };
    let identity = &app.app().services.identity;
    let link = identity.sign_in_link("ada@mail.example").await.unwrap().unwrap();
    let made = json!([true, "ada@mail.example", "sign_in_link_until", "created"]);
    assert_eq!(newest().await, made);
    assert_eq!(identity.sign_in_link("unknown@mail.example").await.unwrap(), None);
    let (page, token) = link.split_once("?token=").unwrap();
    let user = page.strip_prefix("/login/link/").unwrap();
    identity.use_sign_in_link(user, token, &Peer::default(), "request").await.unwrap();
    let used = json!([false, "ada@mail.example", "signed_in_by", "created"]);
    assert_eq!(newest().await, used);
    let subject = "A link of the operator signed in to your account on Weir";
    assert_eq!(mails(&sink, subject, 1).await[0].to, ["ada@mail.example"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn owners_learn_of_verified_and_renamed_domains() {
    let (app, sink) = with_mail().await;
    let owner = app.owner().key(&["*"]).await;
    // The provider is stored before the domain is verified, and acts from then on.
    let root = format!("/api/organizations/{}/domains/", app.organization());
    let body = json!({
        "domain": "mail.example",
        "saml_entity_id": ENTITY_ID,
        "saml_acs_url": "https://idp.example/sso",
        "saml_x509_cert": OWN.certificate,
    });
    let domain = owner.post(&root, &body).await.json();
    let challenge = domain["verification_challenge"].as_str().unwrap();
    app.dns().set("_posthog-challenge.mail.example", DnsAnswer::txt(challenge));
    let path = one(&app, &domain);
    let verified = owner.post(&format!("{path}verify/"), &json!({})).await.json();
    assert_eq!(verified["is_verified"], true, "{verified}");
    let renamed = owner.patch(&path, &json!({"domain": "tea.example"})).await;
    assert_eq!(renamed.status, 200, "{:?}", renamed.body);
    for subject in ["The domain mail.example was verified", "The domain mail.example was renamed"] {
        assert_eq!(mails(&sink, subject, 1).await[0].to, ["ada@mail.example"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_of_members_shows_how_each_one_signs_in() {
    let (app, _sink) = with_mail().await;
    let owner = app.owner().key(&["*"]).await;
    let path = one(&app, &verified(&app, "mail.example").await);
    saml::connect(&owner, &path, ENTITY_ID, OWN).await;
    trust_settings(&app, &path).await;
    let mut session = String::new();
    for email in ["ada@mail.example", "grace@mail.example"] {
        let (cookie, request) = saml::begin_login(&app, email, "").await;
        let says = Says::about(&request, ENTITY_ID, email);
        let answer = saml::bring(&app, &cookie, &request.relay_state, &says.signed()).await;
        session = set_cookie(&answer, "session").unwrap();
    }
    let page = format!("/organizations/{}/members", app.organization());
    let page = web::page(&app, &page, &session).await.text();
    assert!(page.contains("Password, SAML"), "Ada: {page}");
    assert!(page.contains(">SAML<"), "Grace: {page}");
    let list = owner.get("/api/organizations/@current/members/").await.json();
    let social: Vec<&Value> =
        list["results"].as_array().unwrap().iter().map(|one| &one["has_social_auth"]).collect();
    assert_eq!(social, [&json!(true), &json!(true)]);
}
