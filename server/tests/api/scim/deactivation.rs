//! What ends when an identity provider deactivates a user, and what comes back.

use std::time::{Duration, Instant};

use http::Method;
use serde_json::{Value, json};
use weir_model::organizations::Level;
use weir_model::{OrganizationId, ProjectId};
use weir_server::limits::Limits;
use weir_store::users;
use weir_testkit::{Answer, TestApp};

use super::{PASSWORD, Provider, assert_refused, prove};
use crate::live::LiveStream;
use crate::organization_pages::newcomer;
use crate::web;

async fn switch(provider: &Provider, id: &str, active: bool) -> Answer {
    let change = json!([{"op": "replace", "path": "active", "value": active}]);
    provider.patch(&format!("/Users/{id}"), change).await
}

async fn post(app: &TestApp, path: &str, body: &Value) -> Answer {
    let call = app.anonymous().call(Method::POST, path).header("sec-fetch-site", "same-origin");
    call.json(body).send().await
}

async fn login(app: &TestApp, name: &str) -> Answer {
    let email = format!("{name}@mail.example");
    post(app, "/api/login/", &json!({"email": email, "password": PASSWORD})).await
}

/// The cookie of the session that an answer opens.
fn session(answer: &Answer) -> String {
    let lines = answer.headers.get_all("set-cookie").iter().filter_map(|line| line.to_str().ok());
    let mut pairs = lines.filter_map(|line| line.split(';').next());
    pairs.find(|pair| pair.starts_with("session=")).expect("a session").to_owned()
}

/// A member with a password: the id, and the cookie of a session.
async fn signed_up(app: &TestApp, name: &str, level: Level) -> (String, String) {
    let cookie = newcomer(app, &format!("{name}@mail.example"), level).await;
    let members = app.owner().key(&["organization_member:read"]).await;
    let path = format!("/api/organizations/@current/members/?email={name}%40mail.example");
    let found = members.get(&path).await.json();
    let id = found["results"][0]["user"]["uuid"].as_str().unwrap().to_owned();
    let row = users::by_email(app.store(), &format!("{name}@mail.example")).await.unwrap().unwrap();
    prove(app, row).await;
    (id, cookie)
}

/// A key for everything that a user makes in a session of the app.
async fn key(app: &TestApp, cookie: &str) -> String {
    let call = web::function(app, "create_key", "label=x&preset=all&days=30");
    let call = call.header("cookie", cookie);
    let answer = call.send().await;
    assert!(answer.status < 400, "{:?}", answer.body);
    let page = web::page(app, "/account/keys/reveal", cookie).await.text();
    let value = page.split("phx_").nth(1).expect("a key");
    let end = value.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(value.len());
    format!("phx_{}", &value[..end])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deactivated_user_is_out_with_the_answer() {
    let provider = Provider::new().await;
    let app = &provider.app;
    let (id, cookie) = signed_up(app, "grace", Level::Administrator).await;
    let caller = app.anonymous().with_key(&key(app, &cookie).await);
    assert_eq!(web::page(app, "/account", &cookie).await.status, 200);
    assert_eq!(caller.get("/api/organizations/@current/").await.status, 200);

    let answer = switch(&provider, &id, false).await;
    assert_eq!((answer.status, &answer.json()["active"]), (200, &json!(false)));
    // No wait: the first request after the answer is refused.
    assert_eq!(caller.get("/api/organizations/@current/").await.status, 401);
    assert_eq!(caller.get("/api/users/@me/").await.status, 401);
    let page = web::page(app, "/account", &cookie).await;
    assert_eq!(page.header("location"), Some("/login?next=/account"));
    assert_eq!(login(app, "grace").await.status, 400);
    assert_eq!(provider.level("grace").await, None);
    let shown = provider.get(&format!("/Users/{id}")).await.json();
    assert_eq!(
        (&shown["active"], &shown["userName"]),
        (&json!(false), &json!("grace@mail.example"))
    );

    // Again is no change, and activation brings the membership back, but no session and no key.
    assert_eq!(switch(&provider, &id, false).await.status, 200);
    let answer = switch(&provider, &id, true).await;
    assert_eq!((answer.status, &answer.json()["active"]), (200, &json!(true)));
    assert_eq!(provider.level("grace").await, Some(8));
    assert_eq!(web::page(app, "/account", &cookie).await.status, 303);
    assert_eq!(caller.get("/api/users/@me/").await.status, 401);
    let again = login(app, "grace").await;
    assert_eq!(again.status, 200, "{:?}", again.body);
    assert_eq!(web::page(app, "/account", &session(&again)).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_live_stream_of_a_deactivated_user_ends_within_a_second() {
    // So the deactivation ends it, not the regular check.
    let seldom = |limits: &mut Limits| limits.stream_check = Duration::from_secs(60 * 60);
    let provider = Provider::of(TestApp::start(|_| {}, seldom).await.set_up().await).await;
    for (name, is_removed) in [("grace", false), ("linus", true)] {
        let (id, cookie) = signed_up(&provider.app, name, Level::Member).await;
        let mut stream = LiveStream::open(&provider.app, &cookie).await;
        stream.until("hello").await;
        let answer = match is_removed {
            true => provider.delete(&format!("/Users/{id}")).await,
            false => switch(&provider, &id, false).await,
        };
        let answered = Instant::now();
        assert!([200, 204].contains(&answer.status), "{:?}", answer.body);
        stream.until("event: again").await;
        assert!(answered.elapsed() < Duration::from_secs(1), "{name}: {:?}", answered.elapsed());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_of_other_organizations_keeps_those() {
    let provider = Provider::new().await;
    let app = &provider.app;
    let (id, cookie) = signed_up(app, "grace", Level::Member).await;
    let caller = app.anonymous().with_key(&key(app, &cookie).await);
    let made = caller.post("/api/organizations/", &json!({"name": "Coffee"})).await;
    assert_eq!(made.status, 201, "{:?}", made.body);
    let coffee = format!("/api/organizations/{}/", made.json()["id"].as_str().unwrap());
    let tea = format!("/api/organizations/{}/", app.organization());
    assert_eq!(caller.get(&tea).await.status, 200);

    assert_eq!(switch(&provider, &id, false).await.status, 200);
    assert_eq!(caller.get(&tea).await.status, 404);
    assert_eq!(caller.get(&coffee).await.status, 200);
    assert_eq!(web::page(app, "/account", &cookie).await.status, 303, "all sessions end");
    let again = login(app, "grace").await;
    assert_eq!(again.status, 200, "the other organization is still there");

    // Neither an invite nor just-in-time provisioning leads back.
    let inviter = app.owner().key(&["organization_member:write"]).await;
    let invite = json!({"target_email": "grace@mail.example"});
    let invite = inviter.post("/api/organizations/@current/invites/", &invite).await.json();
    let link = format!("/api/signup/{}/", invite["token"].as_str().unwrap());
    let call = app.anonymous().call(Method::POST, &link).header("sec-fetch-site", "same-origin");
    let accepted = call.header("cookie", &session(&again)).json(&json!({})).send().await;
    assert_eq!(accepted.status, 400, "{:?}", accepted.body);
    assert_eq!(caller.get(&tea).await.status, 404);

    // The address of such a user belongs to the user.
    assert_eq!(switch(&provider, &id, true).await.status, 200);
    assert_eq!(caller.get(&tea).await.status, 200);
    let change = json!([{"op": "replace", "path": "userName", "value": "g@mail.example"}]);
    let answer = provider.patch(&format!("/Users/{id}"), change).await;
    assert_refused(&answer, 400, Some("mutability"));
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_of_the_projects_of_the_organization_end() {
    let provider = Provider::new().await;
    let app = &provider.app;
    let grace = app.member("grace", Level::Member).await;
    let id = grace.id().to_string();
    let all = grace.key(&["*"]).await;
    let made = all.post("/api/organizations/", &json!({"name": "Coffee"})).await.json();
    let coffee = OrganizationId(made["id"].as_str().unwrap().parse().unwrap());
    let theirs = ProjectId(made["teams"][0]["id"].as_i64().unwrap());
    let (tea, ours) = (app.organization(), app.project());
    let keys = [
        ("a project of the organization", grace.limited_key(&["*"], &[], &[ours]).await, 401),
        ("it and the organization", grace.limited_key(&["*"], &[tea], &[ours]).await, 401),
        ("projects of both", grace.limited_key(&["*"], &[], &[ours, theirs]).await, 200),
        ("it and the other one", grace.limited_key(&["*"], &[coffee], &[ours]).await, 200),
        ("a project of the other one", grace.limited_key(&["*"], &[], &[theirs]).await, 200),
        ("no limit", all, 200),
    ];
    assert_eq!(switch(&provider, &id, false).await.status, 200);
    for (what, caller, expected) in keys {
        assert_eq!(caller.get("/api/users/@me/").await.status, expected, "{what}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_owner_stays() {
    let provider = Provider::new().await;
    let app = &provider.app;
    let ada = app.owner().id().to_string();
    for answer in
        [switch(&provider, &ada, false).await, provider.delete(&format!("/Users/{ada}")).await]
    {
        assert_refused(&answer, 409, None);
        let detail = answer.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains("last owner"), "{detail}");
    }
    assert_eq!(provider.level("ada").await, Some(15));
    // An owner who is deactivated is none.
    let grace = app.member("grace", Level::Owner).await.id().to_string();
    assert_eq!(switch(&provider, &grace, false).await.status, 200);
    assert_refused(&switch(&provider, &ada, false).await, 409, None);
    // A provider makes no owners, so this one comes back one level lower.
    assert_eq!(switch(&provider, &grace, true).await.status, 200);
    assert_eq!(provider.level("grace").await, Some(8));
    assert_refused(&switch(&provider, &ada, false).await, 409, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_owners_cannot_be_deactivated_at_the_same_time() {
    let provider = Provider::new().await;
    let grace = provider.app.member("grace", Level::Owner).await.id().to_string();
    let ada = provider.app.owner().id().to_string();
    let (one, other) =
        tokio::join!(switch(&provider, &ada, false), switch(&provider, &grace, false));
    let mut statuses = [one.status, other.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_who_was_deactivated_and_removed_stays_out_until_added_again() {
    let provider = Provider::new().await;
    let (id, cookie) = signed_up(&provider.app, "grace", Level::Member).await;
    assert_eq!(switch(&provider, &id, false).await.status, 200);
    assert_eq!(provider.delete(&format!("/Users/{id}")).await.status, 204);
    assert_eq!(login(&provider.app, "grace").await.status, 400);
    assert_eq!(web::page(&provider.app, "/account", &cookie).await.status, 303);
    assert_eq!(provider.user("grace").await, id);
    assert_eq!(login(&provider.app, "grace").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_member_is_out_as_a_deactivated_one() {
    let provider = Provider::new().await;
    let app = &provider.app;
    let (id, cookie) = signed_up(app, "grace", Level::Member).await;
    let caller = app.anonymous().with_key(&key(app, &cookie).await);
    assert_eq!(caller.get("/api/users/@me/").await.status, 200);
    assert_eq!(provider.delete(&format!("/Users/{id}")).await.status, 204);
    assert_eq!(caller.get("/api/users/@me/").await.status, 401);
    assert_eq!(web::page(app, "/account", &cookie).await.status, 303);
    assert_eq!(login(app, "grace").await.status, 400);
    assert_eq!(provider.get(&format!("/Users/{id}")).await.status, 404);

    // A member of other organizations keeps those, but an invite does not lead back.
    let (id, cookie) = signed_up(app, "linus", Level::Member).await;
    let caller = app.anonymous().with_key(&key(app, &cookie).await);
    let made = caller.post("/api/organizations/", &json!({"name": "Coffee"})).await;
    assert_eq!(made.status, 201, "{:?}", made.body);
    assert_eq!(provider.delete(&format!("/Users/{id}")).await.status, 204);
    let again = login(app, "linus").await;
    assert_eq!(again.status, 200, "{:?}", again.body);
    let inviter = app.owner().key(&["organization_member:write"]).await;
    let invite = json!({"target_email": "linus@mail.example"});
    let invite = inviter.post("/api/organizations/@current/invites/", &invite).await.json();
    let link = format!("/api/signup/{}/", invite["token"].as_str().unwrap());
    let call = app.anonymous().call(Method::POST, &link).header("sec-fetch-site", "same-origin");
    let accepted = call.header("cookie", &session(&again)).json(&json!({})).send().await;
    assert_eq!(accepted.status, 400, "{:?}", accepted.body);
    assert_eq!(provider.level("linus").await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_does_not_escape_by_changing_the_address() {
    let provider = Provider::new().await;
    let app = &provider.app;
    let (id, cookie) = signed_up(app, "grace", Level::Member).await;
    let path = format!("/Users/{id}");
    let named = json!([{"op": "replace", "path": "displayName", "value": "Grace"}]);
    assert_eq!(provider.patch(&path, named).await.status, 200);
    let call = web::function(app, "change_address", "email=grace%40elsewhere.example");
    let moved = call.header("cookie", &cookie).send().await;
    assert_eq!(moved.status, 200, "{:?}", moved.body);

    let shown = provider.get(&path).await.json();
    assert_eq!(shown["userName"], "grace@elsewhere.example");
    // The new address belongs to the user, also when the provider sends the old one.
    let old = json!({"userName": "grace@mail.example", "active": false});
    let answer = provider.put(&path, &old).await;
    assert_eq!((answer.status, &answer.json()["active"]), (200, &json!(false)));
    assert_eq!(answer.json()["userName"], "grace@elsewhere.example");
    assert_eq!(web::page(app, "/account", &cookie).await.status, 303);
    let body = json!({"email": "grace@elsewhere.example", "password": PASSWORD});
    assert_eq!(post(app, "/api/login/", &body).await.status, 400);
    assert_eq!(switch(&provider, &id, true).await.status, 200);
    assert_eq!(post(app, "/api/login/", &body).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_address_of_owners_and_of_the_staff_belongs_to_them() {
    let provider = Provider::new().await;
    let app = &provider.app;
    let staff = app.owner().id().to_string();
    let owner = app.member("linus", Level::Owner).await.id().to_string();
    let admin = app.member("alan", Level::Administrator).await.id().to_string();
    let change = |name: &str| json!([{"op": "replace", "path": "userName", "value": name}]);
    for id in [&staff, &owner] {
        let answer = provider.patch(&format!("/Users/{id}"), change("x@mail.example")).await;
        assert_refused(&answer, 400, Some("mutability"));
    }
    // Neither while the owner is deactivated.
    assert_eq!(switch(&provider, &owner, false).await.status, 200);
    let answer = provider.patch(&format!("/Users/{owner}"), change("x@mail.example")).await;
    assert_refused(&answer, 400, Some("mutability"));
    let answer = provider.patch(&format!("/Users/{admin}"), change("x@mail.example")).await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_later_owner_of_a_domain_activates_its_users() {
    let provider = Provider::new().await;
    let (id, _) = signed_up(&provider.app, "grace", Level::Member).await;
    assert_eq!(switch(&provider, &id, false).await.status, 200);
    let owner = provider.app.owner().key(&["organization:write"]).await;
    let path = format!("/api/organizations/@current/domains/{}/", provider.domain);
    assert_eq!(owner.delete(&path).await.status, 204);
    assert_eq!(login(&provider.app, "grace").await.status, 400);

    let later = Provider::of(provider.app).await;
    assert_eq!(later.user("grace").await, id);
    assert_eq!(later.level("grace").await, Some(1));
    assert_eq!(login(&later.app, "grace").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_activates_a_user_without_a_domain() {
    let provider = Provider::new().await;
    let (id, _) = signed_up(&provider.app, "grace", Level::Member).await;
    assert_eq!(switch(&provider, &id, false).await.status, 200);
    let owner = provider.app.owner().key(&["organization:write"]).await;
    let path = format!("/api/organizations/@current/domains/{}/", provider.domain);
    assert_eq!(owner.delete(&path).await.status, 204);
    assert_eq!(login(&provider.app, "grace").await.status, 400);
    let identity = &provider.app.app().services.identity;
    assert_eq!(identity.activate("Grace@mail.example").await.unwrap(), Some(true));
    assert_eq!(identity.activate("grace@mail.example").await.unwrap(), Some(false));
    assert_eq!(identity.activate("eve@mail.example").await.unwrap(), None);
    assert_eq!(login(&provider.app, "grace").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_can_be_added_as_inactive() {
    let provider = Provider::new().await;
    let user = json!({"userName": "grace@mail.example", "active": false});
    let answer = provider.post("/Users", &user).await;
    assert_eq!((answer.status, &answer.json()["active"]), (201, &json!(false)));
    assert_eq!(provider.level("grace").await, None);
    let log = provider.app.owner().key(&["activity_log:read"]).await;
    let path = "/api/organizations/@current/activity_log/?scope=OrganizationMembership";
    let entries = log.get(path).await.json();
    let actions: Vec<_> =
        entries["results"].as_array().unwrap().iter().map(|one| one["activity"].clone()).collect();
    assert_eq!(actions, [json!("disabled"), json!("created")]);
    let id = answer.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(switch(&provider, &id, true).await.status, 200);
    assert_eq!(provider.level("grace").await, Some(1));
}
