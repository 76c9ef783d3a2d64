//! DELETE `…/members/{uuid}/`.

use serde_json::json;
use weir_model::organizations::Level;
use weir_testkit::{Answer, TestApp};

use super::{path, writer};

#[track_caller]
fn assert_owner_stays(answer: &Answer) {
    let detail = "Cannot leave the organization as its owner!";
    answer.assert_field_error(400, "validation_error", "invalid_input", detail, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn owners_stay_and_others_go() {
    let app = TestApp::with_owner().await;
    let grace = app.member("grace", Level::Member).await;
    let barbara = app.member("barbara", Level::Member).await;
    let linus = app.member("linus", Level::Administrator).await;
    let second = app.member("second", Level::Owner).await;
    let administrator = writer(&linus).await;
    let owner = writer(app.owner()).await;
    let denied = |answer: Answer, detail: &str| {
        answer.assert_error(403, "authentication_error", "permission_denied", detail);
    };

    let not_an_admin = "You can only edit others if you are an admin.";
    denied(writer(&barbara).await.delete(&path(&app, &grace)).await, not_an_admin);
    let above = "You can only edit others with level lower or equal to you.";
    denied(administrator.delete(&path(&app, app.owner())).await, above);
    assert_owner_stays(&owner.delete(&path(&app, app.owner())).await);
    assert_owner_stays(&owner.delete(&path(&app, &second)).await);
    let own = format!("/api/organizations/{}/members/@me/", app.organization());
    assert_owner_stays(&owner.delete(&own).await);

    let answer = administrator.delete(&path(&app, &grace)).await;
    assert_eq!((answer.status, answer.body.len()), (204, 0));
    let answer = administrator.delete(&path(&app, &grace)).await;
    answer.assert_error(404, "invalid_request", "not_found", "Not found.");
    // A member leaves the organization.
    assert_eq!(writer(&barbara).await.delete(&own).await.status, 204);
    assert_eq!(administrator.delete(&path(&app, &linus)).await.status, 204);
    let list = owner.get(&format!("/api/organizations/{}/members/", app.organization())).await;
    assert_eq!(list.json()["count"], 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_member_sees_nothing_and_moves_to_another_organization() {
    let app = TestApp::with_owner().await;
    let grace = app.member("grace", Level::Administrator).await;
    let key = grace.key(&["*"]).await;
    let limited = grace.limited_key(&["*"], &[app.organization()], &[]).await;
    let home = key.post("/api/organizations/", &json!({"name": "Home"})).await.json();
    let body = json!({"set_current_organization": app.organization()});
    assert_eq!(key.patch("/api/users/@me/", &body).await.status, 200);
    assert_eq!(key.get("/api/organizations/@current/").await.json()["name"], "Acme Tea");

    assert_eq!(writer(app.owner()).await.delete(&path(&app, &grace)).await.status, 204);
    let me = key.get("/api/users/@me/").await.json();
    assert_eq!(me["organization"]["id"], home["id"]);
    assert_eq!(me["team"]["id"], home["teams"][0]["id"]);
    let gone = format!("/api/organizations/{}/", app.organization());
    assert_eq!(key.get(&gone).await.status, 404);
    assert_eq!(limited.get(&gone).await.status, 404);
    assert_eq!(limited.get("/api/organizations/").await.json()["count"], 0);
    assert_eq!(limited.get(&format!("/api/projects/{}/", app.project())).await.status, 404);
}
