//! Actions on several entries of a list: each entry is checked, and the answer says what
//! failed and why.

use http::Method;
use serde_json::{Value, json};
use weir_model::organizations::Level;
use weir_testkit::{Answer, TestApp};

use crate::organization_pages::{newcomer, outsider};
use crate::stored::send;
use crate::web::session;

const UNKNOWN: &str = "00000000-0000-4000-8000-000000000000";

/// A call with these fields and selected ids.
async fn call(
    app: &TestApp,
    name: &str,
    cookie: &str,
    fields: &[(&str, &str)],
    ids: &[&str],
) -> Answer {
    let mut body = form_urlencoded::Serializer::new(String::new());
    body.extend_pairs(fields).extend_pairs(ids.iter().map(|id| ("ids[]", *id)));
    let call = app.anonymous().call(Method::POST, &format!("/_fn/{name}"));
    call.header("content-type", "application/x-www-form-urlencoded")
        .header("sec-fetch-site", "same-origin")
        .header("cookie", cookie)
        .body(body.finish())
        .send()
        .await
}

/// The values of a field of all entries of a list.
async fn listed(app: &TestApp, path: &str, scope: &str, field: &str) -> Vec<Value> {
    let caller = app.owner().key(&[scope]).await;
    let list = caller.get(path).await.json();
    list["results"].as_array().unwrap().iter().map(|one| one[field].clone()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn exports_are_paused_and_resumed() {
    let app = TestApp::with_owner().await;
    let cookie = session(&app).await;
    let home = app.organization().to_string();
    let writer = app.owner().key(&["batch_export:write"]).await;
    let path = format!("/api/organizations/{home}/batch_exports/");
    let mut ids = Vec::new();
    for name in ["Lake", "Mill"] {
        let made = json!({
            "name": name, "interval": "day", "model": "events",
            "destination": {"type": "NoOp", "config": {}},
        });
        let made = writer.post(&path, &made).await.json();
        ids.push(made["id"].as_str().unwrap().to_owned());
    }
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let fields = [("organization", home.as_str())];
    let paused = async || listed(&app, &path, "batch_export:read", "paused").await;

    let answer = call(&app, "pause_exports", &cookie, &fields, &ids).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let notice = answer.header("set-cookie").unwrap();
    assert!(notice.contains("Paused%202%20exports.") && notice.contains("unpause_exports"));
    assert_eq!(paused().await, [true, true]);

    // One that does not exist does not stop the others.
    let with_unknown = [ids[0], UNKNOWN, ids[1]];
    let answer = call(&app, "unpause_exports", &cookie, &fields, &with_unknown).await;
    assert_ne!(answer.status, 200);
    assert!(answer.text().contains("Unpaused 2 of 3 exports."), "{}", answer.text());
    assert_eq!(paused().await, [false, false]);

    let none = call(&app, "pause_exports", &cookie, &fields, &[]).await;
    assert!(none.text().contains("Select at least one entry."), "{}", none.text());
    let many: Vec<String> = (0..101).map(|id| id.to_string()).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let many = call(&app, "pause_exports", &cookie, &fields, &many).await;
    assert!(many.text().contains("Select at most 100 entries."), "{}", many.text());
    assert_eq!(call(&app, "pause_exports", "session=x", &fields, &ids).await.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn invites_are_renewed_and_revoked() {
    let app = TestApp::with_owner().await;
    let cookie = session(&app).await;
    let home = app.organization().to_string();
    let writer = app.owner().key(&["organization_member:write"]).await;
    let path = format!("/api/organizations/{home}/invites/");
    for email in ["a@mail.example", "b@mail.example", "c@mail.example"] {
        assert_eq!(writer.post(&path, &json!({"target_email": email})).await.status, 201);
    }
    let ids = async || -> Vec<String> {
        let list = writer.get(&path).await.json();
        let all = list["results"].as_array().unwrap().iter();
        all.map(|one| one["id"].as_str().unwrap().to_owned()).collect()
    };
    let before = ids().await;
    let two: Vec<&str> = before.iter().take(2).map(String::as_str).collect();
    let fields = [("id", home.as_str())];
    let answer = call(&app, "resend_invites", &cookie, &fields, &two).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let links = call(&app, "reveal_invite_links", &cookie, &fields, &[]).await.json();
    assert_eq!(links.as_array().unwrap().len(), 2);

    let now = ids().await;
    let all: Vec<&str> = now.iter().map(String::as_str).collect();
    let plain = newcomer(&app, "grace@mail.example", Level::Member).await;
    let answer = call(&app, "revoke_invites", &cookie, &fields, &all).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(ids().await.is_empty());
    let gone = call(&app, "revoke_invites", &plain, &fields, &all).await;
    assert!(gone.text().contains("Revoked none of 3 invites."), "{}", gone.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn members_are_removed_by_those_who_may() {
    let app = TestApp::with_owner().await;
    let cookie = session(&app).await;
    let home = app.organization().to_string();
    let (grace, linus) =
        (app.member("grace", Level::Member).await, app.member("linus", Level::Member).await);
    let plain = newcomer(&app, "barbara@mail.example", Level::Member).await;
    let (grace, linus) = (grace.id().to_string(), linus.id().to_string());
    let ids = [grace.as_str(), linus.as_str()];
    let fields = [("id", home.as_str())];
    let members = format!("/api/organizations/{home}/members/");
    let count = async || listed(&app, &members, "organization_member:read", "id").await.len();

    let refused = call(&app, "remove_members", &plain, &fields, &ids).await;
    assert!(refused.text().contains("Removed none of 2 members."), "{}", refused.text());
    assert_eq!(count().await, 4);
    // The owner stays.
    let owner = app.owner().id().to_string();
    let with_owner = [ids[0], owner.as_str()];
    let partly = call(&app, "remove_members", &cookie, &fields, &with_owner).await;
    assert!(partly.text().contains("Removed 1 of 2 members."), "{}", partly.text());
    let removed = call(&app, "remove_members", &cookie, &fields, &ids[1..]).await;
    assert_eq!(removed.status, 200, "{}", removed.text());
    assert_eq!(count().await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn persons_are_deleted_after_their_number_was_typed() {
    let app = TestApp::with_owner().await;
    let cookie = session(&app).await;
    let plain = newcomer(&app, "grace@mail.example", Level::Member).await;
    let events = ["ada", "bob", "cyd"].map(|id| json!({"event": "seen", "distinct_id": id}));
    send(&app, json!(events)).await;
    let project = app.project().to_string();
    let path = format!("/api/projects/{project}/persons/");
    let persons = async || listed(&app, &path, "person:read", "id").await;
    let ids = persons().await;
    let ids: Vec<&str> = ids.iter().filter_map(Value::as_str).collect();
    assert_eq!(ids.len(), 3);
    let fields = |typed: &'static str| [("project", project.as_str()), ("typed_name", typed)];

    let wrong = call(&app, "delete_persons", &cookie, &fields("3 persons"), &ids[..2]).await;
    assert!(wrong.text().contains("Type it exactly: 2 persons"), "{}", wrong.text());
    let refused = call(&app, "delete_persons", &plain, &fields("2 persons"), &ids[..2]).await;
    assert!(refused.text().contains("Deleted none of 2 persons."), "{}", refused.text());
    // Only persons of the project of the call, and only in projects of the user.
    let blog = app.owner().key(&["*"]).await.post("/api/projects/", &json!({"name": "Blog"})).await;
    assert_eq!(blog.status, 201, "{}", blog.text());
    let blog = blog.json()["id"].to_string();
    let elsewhere = [("project", blog.as_str()), ("typed_name", "2 persons")];
    let foreign = call(&app, "delete_persons", &cookie, &elsewhere, &ids[..2]).await;
    assert!(foreign.text().contains("Deleted none of 2 persons."), "{}", foreign.text());
    let grace = outsider(&app).await;
    let outside = call(&app, "delete_persons", &grace, &fields("2 persons"), &ids[..2]).await;
    assert_eq!(outside.status, 404, "{}", outside.text());
    assert_eq!(persons().await.len(), 3);
    let with_unknown = [ids[0], UNKNOWN];
    let partly = call(&app, "delete_persons", &cookie, &fields("2 persons"), &with_unknown).await;
    assert!(partly.text().contains("Deleted 1 of 2 persons."), "{}", partly.text());
    let deleted = call(&app, "delete_persons", &cookie, &fields("2 persons"), &ids[1..]).await;
    assert_eq!(deleted.status, 200, "{}", deleted.text());
    assert!(persons().await.is_empty());
    // The message names no person.
    assert!(deleted.header("set-cookie").unwrap().contains("Deleted%202%20persons."));

    let many: Vec<String> = (0..51).map(|id| id.to_string()).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let many = call(&app, "delete_persons", &cookie, &fields("51 persons"), &many).await;
    assert!(many.text().contains("Select at most 50 entries."), "{}", many.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_revoked() {
    let app = TestApp::with_owner().await;
    let cookie = session(&app).await;
    for _ in 0..2 {
        app.owner().key(&["organization:read"]).await;
    }
    let keys = async || app.app().services.keys.list(&app.owner().ctx()).await.unwrap();
    let ids: Vec<String> = keys().await.into_iter().map(|key| key.id.to_string()).collect();
    assert!(ids.len() >= 2);
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let theirs = newcomer(&app, "grace@mail.example", Level::Owner).await;
    let refused = call(&app, "revoke_keys", &theirs, &[], &ids).await;
    assert!(refused.text().contains("Revoked none of "), "{}", refused.text());
    let revoked = call(&app, "revoke_keys", &cookie, &[], &ids).await;
    assert_eq!(revoked.status, 200, "{}", revoked.text());
    assert!(keys().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn transformations_are_switched() {
    let app = TestApp::with_owner().await;
    let cookie = session(&app).await;
    let writer = app.owner().key(&["plugin:write"]).await;
    let (home, project) = (app.organization().to_string(), app.project().to_string());
    let plugins = format!("/api/organizations/{home}/pipeline_destinations/");
    let configs = format!("/api/projects/{project}/pipeline_transformation_configs/");
    let installed = writer.post(&plugins, &json!({"url": "inline:bot-filter"})).await;
    let plugin = installed.json()["id"].clone();
    let mut ids = Vec::new();
    for order in [1, 2] {
        let config = json!({"plugin": plugin, "enabled": false, "order": order, "config": {}});
        let made = writer.post(&configs, &config).await;
        assert_eq!(made.status, 201, "{}", made.text());
        ids.push(made.json()["id"].to_string());
    }
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let enabled = async || listed(&app, &configs, "plugin:read", "enabled").await;
    for (word, expected) in [("on", true), ("off", false)] {
        let fields = [("project", project.as_str()), ("enabled", word)];
        let answer = call(&app, "switch_plugin_configs", &cookie, &fields, &ids).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(enabled().await, [expected, expected]);
    }
    // The page of the plugin switches the configs of several projects.
    let used: Vec<String> = ids.iter().map(|id| format!("{project}-{id}")).collect();
    let mut used: Vec<&str> = used.iter().map(String::as_str).collect();
    let fields = [("enabled", "on")];
    let answer = call(&app, "switch_used_configs", &cookie, &fields, &used).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(answer.header("set-cookie").unwrap().contains("switch_used_configs"));
    assert_eq!(enabled().await, [true, true]);
    used[0] = "4711-1";
    let answer = call(&app, "switch_used_configs", &cookie, &[("enabled", "off")], &used).await;
    assert!(answer.text().contains("Switched off 1 of 2 configs."), "{}", answer.text());
    // Only in projects of the user.
    let grace = outsider(&app).await;
    let answer = call(&app, "switch_used_configs", &grace, &[("enabled", "off")], &used[1..]).await;
    assert!(answer.text().contains("Switched off none of 1 config."), "{}", answer.text());
}
