//! `/api/users/@me/`.

use serde_json::json;
use weir_testkit::TestApp;

#[tokio::test(flavor = "multi_thread")]
async fn me() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["user:read"]).await;
    let me = caller.get("/api/users/@me/").await.json();
    assert_eq!(me["email"], "ada@mail.example");
    assert_eq!(me["uuid"], app.owner().id().to_string());
    assert_eq!(me["team"]["id"], app.project().0);
    assert_eq!(me["organization"]["id"], app.organization().to_string());
    assert_eq!(me["organizations"][0]["membership_level"], 15);
    assert_eq!(me["hedgehog_config"], json!({}));
    for key in ["password", "password_hash"] {
        assert!(me.get(key).is_none());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn users_cannot_reach_each_other() {
    let app = TestApp::with_owner().await;
    // The user who set the instance up is staff.
    let staff = app.owner().key(&["*"]).await;
    let outsider = app.outsider("grace").await;
    let other = outsider.key(&["*"]).await;
    let (own, theirs) = (app.owner().id().to_string(), outsider.id().to_string());
    let missing = uuid::Uuid::from_u128(7).to_string();
    let path = |id: &str| format!("/api/users/{id}/");

    assert_eq!(staff.get(&path(&own)).await.json(), staff.get(&path("@me")).await.json());
    for id in [theirs.as_str(), &missing, "1", "x"] {
        for answer in
            [staff.get(&path(id)).await, staff.patch(&path(id), &json!({"first_name": "M"})).await]
        {
            answer.assert_error(404, "invalid_request", "not_found", "Not found.");
        }
    }
    let detail = "As a non-staff user you're only allowed to access the `@me` user instance.";
    for id in [theirs.as_str(), &own, &missing, "1", "x"] {
        for answer in
            [other.get(&path(id)).await, other.patch(&path(id), &json!({"first_name": "M"})).await]
        {
            answer.assert_error(403, "authentication_error", "permission_denied", detail);
        }
    }
    assert_eq!(other.get(&path("@me")).await.json()["first_name"], "grace");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_key_cannot_change_is_refused() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["*"]).await;
    let path = "/api/users/@me/";
    let before = caller.get(path).await.json();
    let detail = "This action does not support Personal API Key access";
    for body in [
        json!({"password": "kettle-harbour-lichen-7", "current_password": "plum-otter-violin-93"}),
        json!({"password": null}),
        json!({"current_password": "plum-otter-violin-93"}),
        // Refused before the fields are validated. Either all fields are changed or none.
        json!({"email": "eve@mail.example", "first_name": ""}),
        json!({"email": "eve@mail.example", "first_name": "Eve"}),
    ] {
        let answer = caller.patch(path, &body).await;
        answer.assert_error(403, "authentication_error", "permission_denied", detail);
    }
    let body = json!({"notification_settings": {"plugin_disabled": false}, "first_name": "Eve"});
    caller.patch(path, &body).await.assert_field_error(
        400,
        "validation_error",
        "invalid_input",
        "Notifications cannot be set: this instance sends none.",
        Some("notification_settings"),
    );
    assert_eq!(caller.get(path).await.json(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_cannot_delete_a_user() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["*"]).await;
    let detail = "This action does not support Personal API Key access";
    for id in ["@me", "%40me", &app.owner().id().to_string(), "x"] {
        let answer = caller.delete(&format!("/api/users/{id}/")).await;
        answer.assert_error(403, "authentication_error", "permission_denied", detail);
    }
    assert_eq!(app.anonymous().delete("/api/users/@me/").await.status, 401);
    assert_eq!(caller.get("/api/users/@me/").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn change_me() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["*"]).await;
    let path = "/api/users/@me/";
    let answer =
        caller.patch(path, &json!({"first_name": " Augusta ", "theme_mode": "dark"})).await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    assert_eq!(answer.json()["first_name"], "Augusta");
    assert_eq!(answer.json()["theme_mode"], "dark");

    let other = caller.post("/api/organizations/", &json!({"name": "Beta"})).await.json();
    assert_eq!(caller.get(path).await.json()["organization"]["id"], other["id"]);
    let answer = caller.patch(path, &json!({"set_current_team": app.project()})).await;
    assert_eq!(answer.json()["organization"]["id"], app.organization().to_string());
    let answer = caller.patch(path, &json!({"set_current_organization": other["id"]})).await;
    assert_eq!(answer.json()["team"]["id"], other["teams"][0]["id"]);

    for (body, attr, code) in [
        (json!({"first_name": ""}), "first_name", "blank"),
        (json!({"theme_mode": "pink"}), "theme_mode", "invalid_choice"),
        (json!({"set_current_team": 4711}), "set_current_team", "does_not_exist"),
        (json!({"set_current_organization": "x"}), "set_current_organization", "does_not_exist"),
        (json!({"set_current_team": 1, "last_name": 5, "first_name": null}), "first_name", "null"),
    ] {
        let answer = caller.patch(path, &body).await;
        assert_eq!(
            (answer.status, &answer.json()["attr"], &answer.json()["code"]),
            (400, &json!(attr), &json!(code))
        );
    }
}
