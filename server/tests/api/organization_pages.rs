//! The pages of an organization and their forms: who may use them, and what a member
//! without administrator rights does not see. And the activity log as a file.

use http::Method;
use serde_json::{Value, json};
use weir_model::invites::{InviteInput, SignUpInput};
use weir_model::organizations::Level;
use weir_service::identity::Peer;
use weir_testkit::{Answer, TestApp};

use crate::web::{page, session};

const PASSWORD: &str = "plum-otter-violin-93";

/// A call of a server function by a script of the app's own page.
async fn call(app: &TestApp, name: &str, cookie: &str, fields: &[(&str, &str)]) -> Answer {
    let mut body = form_urlencoded::Serializer::new(String::new());
    body.extend_pairs(fields);
    let call = app.anonymous().call(Method::POST, &format!("/_fn/{name}"));
    call.header("content-type", "application/x-www-form-urlencoded")
        .header("sec-fetch-site", "same-origin")
        .header("cookie", cookie)
        .body(body.finish())
        .send()
        .await
}

fn input(email: &str, level: Level) -> InviteInput {
    InviteInput {
        target_email: email.to_owned(),
        first_name: String::new(),
        level,
        message: None,
        send_email: true,
    }
}

/// The cookie of a user who joined the owner's organization just now.
pub(crate) async fn newcomer(app: &TestApp, email: &str, level: Level) -> String {
    let services = &app.app().services;
    let org = services.organizations.enter(&app.owner().ctx(), "@current").await.unwrap();
    let invite = services.invites.create(&org, input(email, level)).await.unwrap();
    let new = || Ok(SignUpInput { first_name: "Grace".to_owned(), password: PASSWORD.to_owned() });
    let link = invite.token.unwrap().0;
    let joined = services.identity.sign_up(&link, new, &Peer::default(), "test").await.unwrap();
    format!("session={}", joined.1.unwrap().token)
}

/// The cookie of a user with only another organization.
pub(crate) async fn outsider(app: &TestApp) -> String {
    let cookie = newcomer(app, "mallory@mail.example", Level::Member).await;
    let home = app.organization().to_string();
    let left = call(app, "leave_organization", &cookie, &[("id", &home)]).await;
    assert_eq!(left.status, 200, "{:?}", left.body);
    let made = call(app, "create_organization", &cookie, &[("name", "Beta")]).await;
    assert_eq!(made.status, 200, "{:?}", made.body);
    cookie
}

#[tokio::test(flavor = "multi_thread")]
async fn outsiders_find_nothing() {
    let app = TestApp::with_owner().await;
    let cookie = outsider(&app).await;
    let own = session(&app).await;
    let home = app.organization().to_string();
    for path in ["", "/members", "/invites", "/domains", "/activity"] {
        let path = format!("/organizations/{home}{path}");
        assert_eq!(page(&app, &path, &cookie).await.status, 404, "{path}");
        assert_eq!(page(&app, &path, &own).await.status, 200, "{path}");
    }
    let me = app.owner().id().to_string();
    for (name, fields) in [
        ("list_members", vec![("search", ""), ("limit", "5"), ("offset", "0")]),
        ("list_invites", vec![("limit", "5"), ("offset", "0")]),
        ("preview_invites", vec![("people", "a@mail.example")]),
        ("send_invites", vec![("people", "a@mail.example"), ("level", "1")]),
        ("list_domains", vec![]),
        ("add_domain", vec![("domain", "acme.example")]),
        ("change_level", vec![("user", me.as_str()), ("level", "1")]),
        ("remove_member", vec![("user", me.as_str())]),
        ("set_join_mail", vec![]),
        ("enforce_second_factor", vec![("enforce", "true")]),
    ] {
        let fields: Vec<_> = [("id", home.as_str())].into_iter().chain(fields).collect();
        let answer = call(&app, name, &cookie, &fields).await;
        assert_eq!(answer.status, 404, "{name} {:?}", answer.body);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn plain_members_change_no_settings() {
    let app = TestApp::with_owner().await;
    let cookie = newcomer(&app, "grace@mail.example", Level::Member).await;
    let home = app.organization().to_string();
    let me = app.owner().id().to_string();
    for (name, fields) in [
        ("rename_organization", vec![("name", "Mine")]),
        ("set_join_mail", vec![]),
        ("enforce_second_factor", vec![("enforce", "true")]),
        ("add_domain", vec![("domain", "acme.example")]),
        ("change_level", vec![("user", me.as_str()), ("level", "1")]),
        ("remove_member", vec![("user", me.as_str())]),
        ("send_invites", vec![("people", "a@mail.example"), ("level", "15")]),
    ] {
        let fields: Vec<_> = [("id", home.as_str())].into_iter().chain(fields).collect();
        let answer = call(&app, name, &cookie, &fields).await;
        assert_eq!(answer.status, 403, "{name} {:?}", answer.body);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_of_invites_are_for_those_who_could_make_them() {
    let app = TestApp::with_owner().await;
    let services = &app.app().services;
    let cookie = newcomer(&app, "grace@mail.example", Level::Member).await;
    let org = services.organizations.enter(&app.owner().ctx(), "@current").await.unwrap();
    let owners =
        services.invites.create(&org, input("o@mail.example", Level::Owner)).await.unwrap();
    let plain =
        services.invites.create(&org, input("m@mail.example", Level::Member)).await.unwrap();
    let home = app.organization().to_string();
    let fields = [("id", home.as_str()), ("limit", "50"), ("offset", "0")];
    let path = format!("/organizations/{home}/invites");
    let own = session(&app).await;
    for (cookie, sees_all) in [(&cookie, false), (&own, true)] {
        for answer in
            [call(&app, "list_invites", cookie, &fields).await, page(&app, &path, cookie).await]
        {
            let text = answer.text();
            assert_eq!(answer.status, 200, "{text}");
            assert!(text.contains("o@mail.example"), "{text}");
            assert!(text.contains(&plain.id.to_string()), "{text}");
            assert_eq!(text.contains(&owners.id.to_string()), sees_all, "{text}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pasted_list_is_previewed_and_sent() {
    let app = TestApp::with_owner().await;
    let cookie = session(&app).await;
    let home = app.organization().to_string();
    let people = "Grace H <grace@mail.example>, ada@mail.example\nnobody";
    let path = format!(
        "/organizations/{home}/invites?people={}",
        form_urlencoded::byte_serialize(people.as_bytes()).collect::<String>()
    );
    let shown = page(&app, &path, &cookie).await.text();
    for word in ["Will be invited", "Is a member already", "Not a valid address", "Send invites"] {
        assert!(shown.contains(word), "{word}: {shown}");
    }
    let fields = [("id", home.as_str()), ("people", people), ("level", "8"), ("message", "")];
    let sent = call(&app, "send_invites", &cookie, &fields).await;
    assert_eq!(sent.status, 200, "{:?}", sent.body);
    let caller = app.owner().key(&["organization_member:read"]).await;
    let list = caller.get(&format!("/api/organizations/{home}/invites/")).await.json();
    let results = list["results"].as_array().unwrap();
    let made: Vec<Value> = results
        .iter()
        .map(|one| json!([one["target_email"], one["first_name"], one["level"]]))
        .collect();
    assert_eq!(made, [json!(["grace@mail.example", "Grace", 8])]);
    // The link is shown once, by the page that the form redirects to.
    let link = async || {
        let shown = page(&app, &format!("/organizations/{home}/invites"), &cookie).await.text();
        let (_, rest) = shown.split_once("/signup/")?;
        rest.split(|c: char| !c.is_ascii_alphanumeric()).next().map(str::to_owned)
    };
    let opens =
        async |token: &str| app.anonymous().get(&format!("/api/signup/{token}/")).await.status;
    let first = link().await.expect("a link");
    assert_eq!((link().await, opens(&first).await), (None, 200));
    // A new invite has another link.
    let writer = app.owner().key(&["organization_member:write"]).await;
    let list = writer.get(&format!("/api/organizations/{home}/invites/")).await.json();
    let id = list["results"][0]["id"].as_str().unwrap();
    let fields = [("id", home.as_str()), ("invite", id)];
    assert_eq!(call(&app, "resend_invite", &cookie, &fields).await.status, 200);
    let second = link().await.expect("another link");
    assert_eq!((opens(&first).await, opens(&second).await, link().await), (400, 200, None));
    assert_eq!(call(&app, "revoke_invite", &cookie, &fields).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_activity_log_is_a_file() {
    let app = TestApp::with_owner().await;
    let cookie = session(&app).await;
    let home = app.organization().to_string();
    let name = "=cmd|\"calc\"";
    let fields = [("id", home.as_str()), ("name", name)];
    let renamed = call(&app, "rename_organization", &cookie, &fields).await;
    assert_eq!(renamed.status, 200, "{:?}", renamed.body);
    let key = app.owner().key(&["organization:write"]).await;
    let patched =
        key.patch(&format!("/api/organizations/{home}/"), &json!({"name": "Acme Tea"})).await;
    assert_eq!(patched.status, 200);
    let path = |query: &str| format!("/_csv/organizations/{home}/activity?{query}");
    let answer = page(&app, &path(""), &cookie).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), Some("text/csv; charset=utf-8"));
    let file = answer.text();
    let mut lines = file.split("\r\n");
    assert!(lines.next().unwrap().starts_with("\"id\",\"time\",\"name\""), "{file}");
    assert!(file.contains(",\"'=cmd|\"\"calc\"\"\","), "{file}");
    assert!(file.contains("\"key test\"") && file.contains("\"web app\""), "{file}");
    // With the filter of the page.
    let filtered = page(&app, &path("kind=Organization&action=updated"), &cookie).await.text();
    assert_eq!(filtered.split("\r\n").count(), 4, "{filtered}");
    let none = page(&app, &path("to=2000-01-01"), &cookie).await.text();
    assert_eq!(none.split("\r\n").count(), 2, "{none}");
    // The page shows the same.
    let page_path = format!("/organizations/{home}/activity?kind=Organization&action=updated");
    let shown = page(&app, &page_path, &cookie).await.text();
    let file = format!("/_csv/organizations/{home}/activity?kind=Organization&amp;action=updated");
    assert!(shown.contains(&file), "{shown}");
    // Other clients do not get it.
    let answer = app.anonymous().get(&path("")).await;
    assert_eq!(answer.status, 303);
    assert!(answer.header("location").unwrap().starts_with("/login?next=/_csv/organizations/"));
    let other = outsider(&app).await;
    assert_eq!(page(&app, &path(""), &other).await.status, 404);
    assert_eq!(page(&app, "/_csv/organizations//activity", &other).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_level_is_changed_and_a_member_removed() {
    let app = TestApp::with_owner().await;
    let cookie = session(&app).await;
    let grace = app.member("grace", Level::Member).await;
    let home = app.organization().to_string();
    let user = grace.id().to_string();
    let level = async || {
        let caller = app.owner().key(&["organization_member:read"]).await;
        let list = caller.get(&format!("/api/organizations/{home}/members/")).await.json();
        let members = list["results"].as_array().unwrap().clone();
        let found = members.iter().find(|one| one["user"]["uuid"] == user.as_str());
        found.map(|one| one["level"].clone())
    };
    let fields = [("id", home.as_str()), ("user", user.as_str()), ("level", "8")];
    let changed = call(&app, "change_level", &cookie, &fields).await;
    assert_eq!(changed.status, 200, "{:?}", changed.body);
    assert_eq!(level().await, Some(json!(8)));
    let fields = [("id", home.as_str()), ("user", user.as_str()), ("level", "7")];
    assert_ne!(call(&app, "change_level", &cookie, &fields).await.status, 200);
    let removed = call(&app, "remove_member", &cookie, &fields[..2]).await;
    assert_eq!(removed.status, 200, "{:?}", removed.body);
    assert_eq!(level().await, None);
    // The owner stays, and the error names the reason.
    let refused = call(&app, "leave_organization", &cookie, &fields[..1]).await;
    assert_eq!(refused.status, 400, "{:?}", refused.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn removal_from_the_last_organization_signs_out() {
    let app = TestApp::with_owner().await;
    let owner = session(&app).await;
    let home = app.organization().to_string();
    let last = newcomer(&app, "grace@mail.example", Level::Member).await;
    let other = newcomer(&app, "linus@mail.example", Level::Member).await;
    let leaving = newcomer(&app, "barbara@mail.example", Level::Member).await;
    let made = call(&app, "create_organization", &other, &[("name", "Beta")]).await;
    assert_eq!(made.status, 200, "{:?}", made.body);
    let caller = app.owner().key(&["organization_member:read"]).await;
    let list = caller.get(&format!("/api/organizations/{home}/members/")).await.json();
    let members = list["results"].as_array().unwrap();
    for (email, cookie, expected) in
        [("grace@mail.example", &last, 401), ("linus@mail.example", &other, 200)]
    {
        assert_eq!(call(&app, "list_sessions", cookie, &[]).await.status, 200, "{email}");
        let found = members.iter().find(|one| one["user"]["email"] == email).unwrap();
        let user = found["user"]["uuid"].as_str().unwrap();
        let fields = [("id", home.as_str()), ("user", user)];
        let removed = call(&app, "remove_member", &owner, &fields).await;
        assert_eq!(removed.status, 200, "{:?}", removed.body);
        assert_eq!(call(&app, "list_sessions", cookie, &[]).await.status, expected, "{email}");
    }
    // A member can leave and keeps using the app.
    let left = call(&app, "leave_organization", &leaving, &[("id", home.as_str())]).await;
    assert_eq!(left.status, 200, "{:?}", left.body);
    assert_eq!(call(&app, "list_sessions", &leaving, &[]).await.status, 200);
    assert_eq!(call(&app, "list_sessions", &owner, &[]).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_does_not_reveal_enforced_second_factors() {
    let app = TestApp::with_owner().await;
    let cookie = session(&app).await;
    let found = call(&app, "search", &cookie, &[("q", "ada@")]).await;
    assert!(found.text().contains("ada@mail.example"), "{:?}", found.body);
    let writer = app.owner().key(&["organization:write"]).await;
    let path = format!("/api/organizations/{}/", app.organization());
    assert_eq!(writer.patch(&path, &json!({"enforce_2fa": true})).await.status, 200);
    let found = call(&app, "search", &cookie, &[("q", "ada@")]).await;
    assert_eq!(found.status, 200, "{:?}", found.body);
    assert!(!found.text().contains("ada@mail.example"), "{:?}", found.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_domain_is_claimed_checked_and_removed() {
    let app = TestApp::with_owner().await;
    let cookie = session(&app).await;
    let home = app.organization().to_string();
    let fields = [("id", home.as_str()), ("domain", "Tea.Example.com ")];
    let added = call(&app, "add_domain", &cookie, &fields).await;
    assert_eq!(added.status, 200, "{:?}", added.body);
    let caller = app.owner().key(&["organization:read"]).await;
    let list = caller.get(&format!("/api/organizations/{home}/domains/")).await.json();
    let domain = list["results"][0]["id"].as_str().unwrap();
    let fields = [("id", home.as_str()), ("domain", domain)];
    let checked = call(&app, "check_domain", &cookie, &fields).await;
    assert_eq!(checked.status, 200, "{:?}", checked.body);
    let path = format!("/organizations/{home}/domains/{domain}");
    let shown = page(&app, &path, &cookie).await.text();
    assert!(shown.contains("_posthog-challenge.tea.example.com"), "{shown}");
    assert!(shown.contains("there is no TXT record at this name"), "{shown}");
    // Sign-in rules require a verified domain.
    let mut on = fields.to_vec();
    on.push(("enabled", "on"));
    let refused = call(&app, "set_provisioning", &cookie, &on).await;
    assert_eq!(refused.status, 400, "{:?}", refused.body);
    let mut wrong = fields.to_vec();
    wrong.push(("typed_name", "coffee.example.com"));
    assert_ne!(call(&app, "remove_domain", &cookie, &wrong).await.status, 200);
    let mut right = fields.to_vec();
    right.push(("typed_name", "tea.example.com"));
    assert_eq!(call(&app, "remove_domain", &cookie, &right).await.status, 200);
    assert_eq!(page(&app, &path, &cookie).await.status, 404);
}
