//! PATCH and PUT `…/members/{uuid}/`: the rules of API-31, in their order.

use serde_json::{Value, json};
use uuid::Uuid;
use weir_model::organizations::Level;
use weir_testkit::{Answer, TestApp};

use super::{path, writer};

const NOT_AN_ADMIN: &str = "You can only edit others if you are an admin.";
const TARGET_ABOVE: &str = "You can only edit others with level lower or equal to you.";
const OWN_LEVEL: &str = "You can't change your own access level.";
const OWNERS_MAKE_OWNERS: &str =
    "You can only make another member owner if you're this organization's owner.";

#[track_caller]
fn assert_denied(answer: &Answer, detail: &str) {
    answer.assert_error(403, "authentication_error", "permission_denied", detail);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_violated_rule_is_reported() {
    let app = TestApp::with_owner().await;
    let barbara = app.member("barbara", Level::Member).await;
    let grace = app.member("grace", Level::Member).await;
    let linus = app.member("linus", Level::Administrator).await;
    let to_grace = path(&app, &grace);
    let to_linus = path(&app, &linus);
    let to_ada = path(&app, app.owner());
    let (member, administrator, owner) =
        (writer(&barbara).await, writer(&linus).await, writer(app.owner()).await);

    for body in [json!({"level": 1}), json!({"level": 3}), json!({})] {
        assert_denied(&member.patch(&to_grace, &body).await, NOT_AN_ADMIN);
    }
    for body in [json!({"level": 1}), json!({"level": 3}), json!({})] {
        assert_denied(&administrator.patch(&to_ada, &body).await, TARGET_ABOVE);
    }
    for level in [json!(2), json!("x"), json!([1]), json!(true)] {
        let answer = owner.patch(&to_ada, &json!({"level": level})).await;
        let detail = match &level {
            Value::String(text) => format!("\"{text}\" is not a valid choice."),
            other => format!("\"{other}\" is not a valid choice."),
        };
        answer.assert_field_error(
            400,
            "validation_error",
            "invalid_choice",
            &detail,
            Some("level"),
        );
    }
    let answer = owner.patch(&to_grace, &json!({"level": null})).await;
    let detail = "This field may not be null.";
    answer.assert_field_error(400, "validation_error", "null", detail, Some("level"));
    for (caller, person, level) in
        [(&owner, app.owner(), 15), (&administrator, &linus, 1), (&member, &barbara, 15)]
    {
        let answer = caller.patch(&path(&app, person), &json!({"level": level})).await;
        assert_denied(&answer, OWN_LEVEL);
        let own = format!("/api/organizations/{}/members/@me/", app.organization());
        assert_denied(&caller.put(&own, &json!({"level": level})).await, OWN_LEVEL);
        assert_eq!(caller.patch(&own.replace('@', "%40"), &json!({})).await.status, 200);
    }
    assert_denied(&administrator.patch(&to_grace, &json!({"level": 15})).await, OWNERS_MAKE_OWNERS);

    let answer = administrator.patch(&to_grace, &json!({"level": "8"})).await;
    assert_eq!((answer.status, &answer.json()["level"]), (200, &json!(8)));
    let answer = owner.put(&to_linus, &json!({"level": 15})).await;
    assert_eq!((answer.status, &answer.json()["level"]), (200, &json!(15)));
    // The caller keeps the level, and one owner may demote another.
    let list = owner.get(&format!("/api/organizations/{}/members/", app.organization())).await;
    let results = list.json()["results"].clone();
    let ada = results.as_array().unwrap().iter().find(|one| one["user"]["first_name"] == "Ada");
    assert_eq!(ada.unwrap()["level"], 15);
    assert_eq!(owner.patch(&to_linus, &json!({"level": 8})).await.json()["level"], 8);
    assert_eq!(owner.put(&to_linus, &json!({})).await.json()["level"], 8);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_member_is_not_found() {
    let app = TestApp::with_owner().await;
    let owner = writer(app.owner()).await;
    let stranger = app.outsider("mallory").await;
    let base = format!("/api/organizations/{}/members", app.organization());
    let simple = app.owner().id().0.simple().to_string();
    for id in
        [stranger.id().to_string(), Uuid::nil().to_string(), "junk".into(), "1".into(), simple]
    {
        for answer in [
            owner.patch(&format!("{base}/{id}/"), &json!({"level": 3})).await,
            owner.put(&format!("{base}/{id}"), &json!({"level": 3})).await,
            owner.delete(&format!("{base}/{id}/")).await,
        ] {
            answer.assert_error(404, "invalid_request", "not_found", "Not found.");
        }
    }
    let reader = app.owner().key(&["organization_member:read"]).await;
    let answer = reader.patch(&path(&app, app.owner()), &json!({"level": 3})).await;
    assert_denied(&answer, "API key missing required scope 'organization_member:write'");
    let outsider = stranger.key(&["*"]).await;
    let answer = outsider.patch(&path(&app, app.owner()), &json!({"level": 3})).await;
    answer.assert_error(404, "invalid_request", "not_found", "Organization not found.");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_two_owners_who_demote_each_other_wins() {
    for _ in 0..5 {
        let app = TestApp::with_owner().await;
        let linus = app.member("linus", Level::Owner).await;
        let (ada, other) = (writer(app.owner()).await, writer(&linus).await);
        let (to_linus, to_ada) = (path(&app, &linus), path(&app, app.owner()));
        let body = json!({"level": 1});
        let (first, second) =
            tokio::join!(ada.patch(&to_linus, &body), other.patch(&to_ada, &body));
        let mut statuses = [first.status, second.status];
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 403], "{first:?} {second:?}");
        let list = ada.get(&format!("/api/organizations/{}/members/", app.organization())).await;
        let results = list.json()["results"].clone();
        let owners = results.as_array().unwrap().iter().filter(|one| one["level"] == 15).count();
        assert_eq!(owners, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_recorded_in_the_activity_log() {
    let app = TestApp::with_owner().await;
    let grace = app.member("grace", Level::Member).await;
    let owner = app.owner().key(&["*"]).await;
    assert_eq!(owner.patch(&path(&app, &grace), &json!({"level": 8})).await.status, 200);
    // Setting the same level again is not a change.
    assert_eq!(owner.patch(&path(&app, &grace), &json!({"level": 8})).await.status, 200);
    let page = weir_model::pagination::Page::default();
    let of = weir_store::activity::Of::Organization(app.organization());
    let (_, entries) = weir_store::activity::page(app.store(), of, page).await.unwrap();
    let changes: Vec<Value> = entries
        .iter()
        .map(|entry| serde_json::to_value(entry).unwrap())
        .filter(|entry| {
            entry["scope"] == "OrganizationMembership" && entry["activity"] == "updated"
        })
        .collect();
    assert_eq!(changes.len(), 1, "{changes:?}");
    assert_eq!(changes[0]["detail"]["name"], "grace@mail.example");
    let change = &changes[0]["detail"]["changes"][0];
    assert_eq!((&change["before"], &change["after"]), (&json!(1), &json!(8)));
}
