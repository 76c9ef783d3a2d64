//! What an owner decides: `/api/organizations/{id}/domains/{id}/scim/`, and the
//! section of the domain page.

use serde_json::{Value, json};
use weir_model::organizations::Level;
use weir_server::Config;
use weir_testkit::{MailSink, TestApp};

use super::{Provider, assert_refused};
use crate::domains::verified;
use crate::sign_on::notices::mails;
use crate::web;

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_shown_once_and_its_use_is_noted() {
    let app = TestApp::with_owner().await;
    let domain = verified(&app, "mail.example").await["id"].as_str().unwrap().to_owned();
    let path = format!("/api/organizations/@current/domains/{domain}/scim/");
    let reader = app.owner().key(&["organization:read"]).await;
    let address = format!("/scim/v2/{domain}");
    assert_eq!(reader.get(&path).await.json(), json!({"path": address, "token": null}));

    let owner = app.owner().key(&["organization:write", "organization_member:write"]).await;
    let made = owner.post(&format!("{path}token/"), &json!({})).await;
    assert_eq!(made.status, 201, "{:?}", made.body);
    let token = made.json();
    let value = token["value"].as_str().unwrap().to_owned();
    assert!(value.starts_with("scim_") && value.len() > 50, "{value}");
    let shown = reader.get(&path).await;
    assert!(!String::from_utf8_lossy(&shown.body).contains(&value));
    let shown = shown.json();
    assert_eq!(
        shown["token"],
        json!({"value": null, "mask_value": token["mask_value"], "created_by": "ada@mail.example",
               "created_at": token["created_at"], "last_used_at": null})
    );
    app.anonymous().with_key(&value).get(&format!("{address}/Users")).await;
    let used = reader.get(&path).await.json();
    assert!(used["token"]["last_used_at"].is_string(), "{used}");
    // The store has the hash.
    let id = domain.parse().unwrap();
    let state = weir_store::scim::state(app.store(), id).await.unwrap().unwrap();
    assert!(!format!("{state:?}").contains(&value));

    assert_eq!(owner.delete(&format!("{path}token/")).await.status, 204);
    assert_eq!(reader.get(&path).await.json()["token"], Value::Null);
    assert_eq!(owner.delete(&format!("{path}token/")).await.status, 404);

    let log = app.owner().key(&["activity_log:read"]).await;
    let log_path = "/api/organizations/@current/activity_log/?scope=OrganizationDomain";
    let entries = log.get(log_path).await;
    assert!(!String::from_utf8_lossy(&entries.body).contains(&value));
    let entries = entries.json();
    let actions: Vec<_> = entries["results"].as_array().unwrap().iter().take(2).collect();
    assert_eq!(
        (&actions[0]["activity"], &actions[1]["activity"]),
        (&json!("deleted"), &json!("created"))
    );
    assert_eq!(actions[0]["detail"]["changes"][0]["field"], "scim_token");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_owners_make_tokens_and_set_levels() {
    let app = TestApp::with_owner().await;
    let scopes = ["organization:write", "organization_member:write"];
    let claimer = app.owner().key(&scopes).await;
    let root = "/api/organizations/@current/domains/";
    let domain = claimer.post(root, &json!({"domain": "coffee.example"})).await.json();
    let path = format!("{root}{}/scim/token/", domain["id"].as_str().unwrap());
    let answer = claimer.post(&path, &json!({})).await;
    let detail = "The domain must be verified first.";
    answer.assert_field_error(400, "validation_error", "verification_required", detail, None);

    let provider = Provider::of(app).await;
    let (app, domain) = (&provider.app, &provider.domain);
    let group = provider.group("Tea", &[]).await;
    let path = format!("/api/organizations/{}/domains/{domain}/scim/", app.organization());
    let member = app.member("grace", Level::Member).await.key(&scopes).await;
    let admin = app.member("alan", Level::Administrator).await.key(&scopes).await;
    // A key for domains alone gives no identity provider power over members.
    let domains_only = app.owner().key(&["organization:write"]).await;
    for caller in [&member, &admin, &domains_only] {
        let made = caller.post(&format!("{path}token/"), &json!({})).await;
        assert_eq!(made.status, 403, "{:?}", made.body);
        let set = caller.patch(&format!("{path}groups/{group}/"), &json!({"level": 8})).await;
        assert_eq!(set.status, 403, "{:?}", set.body);
    }
    assert_eq!(member.delete(&format!("{path}token/")).await.status, 403);
    let without = app.owner().key(&["project:read"]).await;
    assert_eq!(without.get(&path).await.status, 403, "without the scope to read");
    // To revoke a token, an administrator is enough.
    assert_eq!(admin.delete(&format!("{path}token/")).await.status, 204);
    assert_refused(&provider.get("/Users").await, 401, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn owners_learn_of_tokens_levels_and_deactivated_users() {
    let sink = MailSink::start().await;
    let url = sink.url();
    let mail = move |config: &mut Config| {
        config.public_url = "http://localhost:8000".parse().unwrap();
        config.smtp_url = url.parse().unwrap();
    };
    let provider = Provider::of(TestApp::start(mail, |_| {}).await.set_up().await).await;
    let grace = provider.user("grace").await;
    let alan = provider.user("alan").await;
    let group = provider.group("Tea", &[]).await;
    let scopes = ["organization:write", "organization_member:write"];
    let owner = provider.app.owner().key(&scopes).await;
    let path = format!("/api/organizations/@current/domains/{}/scim/", provider.domain);
    let set = owner.patch(&format!("{path}groups/{group}/"), &json!({"level": 8})).await;
    assert_eq!(set.status, 200, "{:?}", set.body);
    let off = json!([{"op": "replace", "path": "active", "value": false}]);
    assert_eq!(provider.patch(&format!("/Users/{grace}"), off).await.status, 200);
    assert_eq!(provider.delete(&format!("/Users/{alan}")).await.status, 204);
    assert_eq!(owner.post(&format!("{path}token/"), &json!({})).await.status, 201);
    assert_eq!(owner.delete(&format!("{path}token/")).await.status, 204);
    let expected = [
        "The SCIM token of mail.example was made",
        "The level of a group of mail.example was changed",
        "grace@mail.example was deactivated",
        "alan@mail.example was deactivated",
        "The SCIM token of mail.example was replaced",
        "The SCIM token of mail.example was revoked",
    ];
    for subject in expected {
        let found = mails(&sink, subject, 1).await;
        assert_eq!(found[0].to, ["ada@mail.example"], "{subject}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_administrator_sees_the_groups() {
    let provider = Provider::new().await;
    let grace = provider.user("grace").await;
    let group = provider.group("Tea", &[&grace]).await;
    let reader = provider.app.owner().key(&["organization:read"]).await;
    let path = format!("/api/organizations/@current/domains/{}/scim/groups/", provider.domain);
    let listed = reader.get(&path).await.json();
    assert_eq!(listed["count"], 1);
    let shown = &listed["results"][0];
    assert_eq!(
        *shown,
        json!({"id": group, "display_name": "Tea", "external_id": null, "member_count": 1,
               "level": null, "created_at": shown["created_at"], "updated_at": shown["updated_at"]})
    );
    assert_eq!(reader.get(&format!("{path}{group}/")).await.json(), *shown);
    let missing = format!("{path}00000000-0000-0000-0000-000000000000/");
    assert_eq!(reader.get(&missing).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_domain_takes_its_groups_and_its_token_with_it() {
    let provider = Provider::new().await;
    let grace = provider.user("grace").await;
    provider.group("Tea", &[&grace]).await;
    let owner = provider.app.owner().key(&["organization:write"]).await;
    let path = format!("/api/organizations/@current/domains/{}/", provider.domain);
    assert_eq!(owner.delete(&path).await.status, 204);
    assert_eq!(provider.get("/Users").await.status, 401);
    let id = provider.domain.parse().unwrap();
    let store = provider.app.store();
    assert!(weir_store::scim::state(store, id).await.unwrap().is_none());
    assert!(weir_store::scim::groups(store, id).await.unwrap().is_empty());
    assert!(weir_store::scim::users(store, id).await.unwrap().is_empty());
    assert_eq!(provider.level("grace").await, Some(1), "members stay");
}

#[tokio::test(flavor = "multi_thread")]
async fn members_are_notified_of_a_user_whom_the_provider_adds() {
    let sink = MailSink::start().await;
    let url = sink.url();
    let mail = move |config: &mut Config| {
        config.public_url = "http://localhost:8000".parse().unwrap();
        config.smtp_url = url.parse().unwrap();
    };
    let app = TestApp::start(mail, |_| {}).await.set_up().await;
    let provider = Provider::of(app).await;
    let owner = provider.app.owner().key(&["organization:write"]).await;
    let on = json!({"is_member_join_email_enabled": true});
    assert_eq!(owner.patch("/api/organizations/@current/", &on).await.status, 200);
    provider.user("grace").await;
    // The first one is about the token.
    let mails = sink.wait_for(2).await;
    let told = |mail: &&weir_testkit::Received| mail.text.contains("grace@mail.example");
    assert_eq!(mails.iter().find(told).unwrap().to, ["ada@mail.example"]);
}

/// Sends a form of the app as a browser without scripts does.
async fn form(app: &TestApp, name: &str, cookie: &str, body: &str) -> weir_testkit::Answer {
    let call = web::function(app, name, body).header("cookie", cookie);
    call.header("accept", "text/html").send().await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_makes_shows_and_revokes_a_token_without_scripts() {
    let app = TestApp::with_owner().await;
    let domain = verified(&app, "mail.example").await["id"].as_str().unwrap().to_owned();
    let cookie = web::session(&app).await;
    let path = format!("/organizations/{}/domains/{domain}", app.organization());
    let page = web::page(&app, &path, &cookie).await.text();
    assert!(
        page.contains("Create token") && page.contains(&format!("/scim/v2/{domain}")),
        "{page}"
    );
    let ids = format!("id={}&domain={domain}", app.organization());
    let made = form(&app, "create_scim_token", &cookie, &ids).await;
    assert_eq!(made.status, 303, "{:?}", made.body);
    let reveal = format!("{path}/token");
    assert!(made.header("location").unwrap().ends_with(&reveal), "{:?}", made.headers);
    let shown = web::page(&app, &reveal, &cookie).await.text();
    let value = shown.split("scim_").nth(1).expect("a token");
    let end = value.find(|c: char| !c.is_ascii_alphanumeric()).unwrap();
    let value = format!("scim_{}", &value[..end]);
    let caller = app.anonymous().with_key(&value);
    assert_eq!(caller.get(&format!("/scim/v2/{domain}/Users")).await.status, 200);
    let again = web::page(&app, &reveal, &cookie).await.text();
    assert!(!again.contains(&value) && again.contains("There is no token to show"), "{again}");
    let page = web::page(&app, &path, &cookie).await.text();
    assert!(page.contains("Replace token") && !page.contains(&value));

    let revoked = form(&app, "revoke_scim_token", &cookie, &ids).await;
    assert_eq!(revoked.status, 303, "{:?}", revoked.body);
    assert_eq!(caller.get(&format!("/scim/v2/{domain}/Users")).await.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_sets_the_level_of_a_group() {
    let provider = Provider::new().await;
    let app = &provider.app;
    let grace = provider.user("grace").await;
    let group = provider.group("Tea", &[&grace]).await;
    let cookie = web::session(app).await;
    let ids = format!("id={}&domain={}&group={group}", app.organization(), provider.domain);
    let set = async |level: &str| {
        form(app, "set_scim_level", &cookie, &format!("{ids}&group_level={level}")).await
    };
    assert_eq!(set("8").await.status, 303);
    assert_eq!(provider.level("grace").await, Some(8));
    set("15").await;
    assert_eq!(provider.level("grace").await, Some(8), "a group makes no owners");
    assert_eq!(set("").await.status, 303);
    assert_eq!(provider.level("grace").await, Some(1));
    let path = format!("/organizations/{}/domains/{}", app.organization(), provider.domain);
    let page = web::page(app, &path, &cookie).await.text();
    assert!(page.contains("Level of its members") && page.contains("Tea"));
    let path = format!("/organizations/{}/activity", app.organization());
    let log = web::page(app, &path, &cookie).await.text();
    assert!(log.contains("Identity provider of"), "{log}");
}
