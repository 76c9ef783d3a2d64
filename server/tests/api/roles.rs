//! `/api/organizations/{organization_id}/roles/`: names for groups of members.

use serde_json::{Value, json};
use weir_model::organizations::Level;
use weir_testkit::{Caller, TestApp};

fn path(app: &TestApp) -> String {
    format!("/api/organizations/{}/roles/", app.organization())
}

async fn made(app: &TestApp, caller: &Caller, name: &str) -> Value {
    let answer = caller.post(&path(app), &json!({"name": name})).await;
    assert_eq!(answer.status, 201, "{:?}", answer.body);
    answer.json()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_is_made_renamed_given_taken_and_deleted() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["organization:write"]).await;
    let grace = app.member("grace", Level::Member).await;
    let role = made(&app, &caller, " Support ").await;
    let id = role["id"].as_str().unwrap();
    assert_eq!(
        (&role["name"], &role["members"], &role["is_default"]),
        (&json!("Support"), &json!([]), &json!(false))
    );
    assert_eq!(role["created_by"]["uuid"], json!(app.owner().id()));

    let one = format!("{}{id}/", path(&app));
    let collection = format!("{one}role_memberships/");
    let body = json!({"user_uuid": grace.id()});
    let given = caller.post(&collection, &body).await;
    assert_eq!(given.status, 201, "{:?}", given.body);
    let given = given.json();
    assert_eq!(
        (&given["role_id"], &given["user"]["uuid"], &given["organization_member"]["level"]),
        (&role["id"], &json!(grace.id()), &json!(1))
    );
    assert_eq!(given["joined_at"], given["updated_at"]);
    let place = format!("{collection}{}/", given["id"].as_str().unwrap());
    assert_eq!(caller.get(&place).await.json(), given);
    assert_eq!(caller.get(&collection).await.json()["results"], json!([given]));
    assert_eq!(caller.get(&one).await.json()["members"], json!([given]));

    let renamed = caller.patch(&one, &json!({"name": "Help"})).await;
    assert_eq!((renamed.status, &renamed.json()["name"]), (200, &json!("Help")));
    let listed = caller.get(&path(&app)).await.json();
    assert_eq!((&listed["count"], &listed["results"][0]["name"]), (&json!(1), &json!("Help")));

    assert_eq!(caller.delete(&place).await.status, 204);
    assert_eq!(caller.delete(&place).await.status, 404);
    assert_eq!(caller.get(&collection).await.json()["count"], 0);
    assert_eq!(caller.delete(&one).await.status, 204);
    let answer = caller.get(&one).await;
    answer.assert_error(404, "invalid_request", "not_found", "Not found.");
    assert_eq!(caller.get(&path(&app)).await.json()["count"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn faults() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["organization:write"]).await;
    let role = made(&app, &caller, "Support").await;
    let other = made(&app, &caller, "Sales").await;
    let one = |role: &Value| format!("{}{}/", path(&app), role["id"].as_str().unwrap());
    let taken = "There is already a role with this name.";
    for answer in [
        caller.post(&path(&app), &json!({"name": "SUPPORT"})).await,
        caller.patch(&one(&other), &json!({"name": "support"})).await,
    ] {
        answer.assert_field_error(400, "validation_error", "unique", taken, Some("name"));
    }
    // Its own name in another spelling is not a conflict.
    assert_eq!(caller.patch(&one(&role), &json!({"name": "SUPPORT"})).await.status, 200);
    let long = json!({"name": "x".repeat(201)});
    for (body, code) in
        [(json!({}), "required"), (json!({"name": " "}), "blank"), (long, "max_length")]
    {
        assert_eq!(caller.post(&path(&app), &body).await.error().2, code, "{body}");
    }
    let outsider = app.outsider("mallory").await;
    let collection = format!("{}role_memberships/", one(&role));
    let answer = caller.post(&collection, &json!({"user_uuid": outsider.id()})).await;
    let detail = "User does not exist.";
    answer.assert_field_error(400, "validation_error", "invalid_input", detail, None);
    let me = json!({"user_uuid": app.owner().id()});
    assert_eq!(caller.post(&collection, &me).await.status, 201);
    let answer = caller.post(&collection, &me).await;
    let detail = "User is already part of the role.";
    answer.assert_field_error(400, "validation_error", "invalid_input", detail, None);
}

/// A user who leaves loses all roles, and does not get them back by joining again.
#[tokio::test(flavor = "multi_thread")]
async fn a_role_ends_with_the_membership() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["organization:write", "organization_member:write"]).await;
    let grace = app.member("grace", Level::Member).await;
    let role = made(&app, &caller, "Support").await;
    let one = format!("{}{}/", path(&app), role["id"].as_str().unwrap());
    let collection = format!("{one}role_memberships/");
    let body = json!({"user_uuid": grace.id()});
    assert_eq!(caller.post(&collection, &body).await.status, 201);
    let member = format!("/api/organizations/{}/members/{}/", app.organization(), grace.id());
    assert_eq!(caller.delete(&member).await.status, 204);
    assert_eq!(caller.get(&one).await.json()["members"], json!([]));
    app.join(&grace, Level::Member).await;
    assert_eq!(caller.get(&one).await.json()["members"], json!([]));
    assert_eq!(caller.post(&collection, &body).await.status, 201);
    assert_eq!(caller.get(&collection).await.json()["count"], 1);
}
