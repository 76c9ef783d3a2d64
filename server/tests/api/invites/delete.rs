//! DELETE `…/invites/{id}/`.

use serde_json::json;
use uuid::Uuid;
use weir_model::organizations::Level;
use weir_testkit::TestApp;

use super::{id, invite, member, owner, path, token};

#[tokio::test(flavor = "multi_thread")]
async fn any_member_takes_an_invite_back_and_its_link_is_dead() {
    let app = TestApp::with_owner().await;
    let made = invite(&app, "grace@mail.example").await;
    let member = member(&app, "linus", Level::Member).await;
    let one = format!("{}{}/", path(&app), id(&made));
    let link = format!("/api/signup/{}/", token(&made));
    assert_eq!(app.anonymous().get(&link).await.status, 200);
    let answer = member.delete(&one).await;
    assert_eq!((answer.status, answer.body.len()), (204, 0));
    assert_eq!(app.anonymous().get(&link).await.status, 400);
    for missing in [one, format!("{}{}/", path(&app), Uuid::nil()), format!("{}junk", path(&app))] {
        let answer = member.delete(&missing).await;
        answer.assert_error(404, "invalid_request", "not_found", "Not found.");
    }
    assert_eq!(owner(&app).await.get(&path(&app)).await.json()["count"], 0);
    // The address can be invited again.
    invite(&app, "grace@mail.example").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn invites_of_others_are_not_there() {
    let app = TestApp::with_owner().await;
    let made = invite(&app, "grace@mail.example").await;
    let other = app.outsider("mallory").await.key(&["*"]).await;
    let home = other.post("/api/organizations/", &json!({"name": "Home"})).await.json();
    let through_own =
        format!("/api/organizations/{}/invites/{}/", home["id"].as_str().unwrap(), id(&made));
    let answer = other.delete(&through_own).await;
    answer.assert_error(404, "invalid_request", "not_found", "Not found.");
    let answer = other.delete(&format!("{}{}/", path(&app), id(&made))).await;
    answer.assert_error(404, "invalid_request", "not_found", "Organization not found.");
    let reader = app.owner().key(&["organization_member:read"]).await;
    assert_eq!(reader.delete(&format!("{}{}/", path(&app), id(&made))).await.status, 403);
    assert_eq!(owner(&app).await.get(&path(&app)).await.json()["count"], 1);
}
