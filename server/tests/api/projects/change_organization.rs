//! `POST …/change_organization/`.

use serde_json::{Value, json};
use weir_model::organizations::Level;
use weir_testkit::{Answer, Caller, TestApp};

async fn beta(caller: &Caller) -> String {
    let made = caller.post("/api/organizations/", &json!({"name": "Beta"})).await.json();
    made["id"].as_str().unwrap().to_owned()
}

async fn change(caller: &Caller, app: &TestApp, to: &str) -> Answer {
    let path = format!("/api/projects/{}/change_organization/", app.project());
    caller.post(&path, &json!({"organization_id": to})).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_project_goes_with_its_keys_and_events() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["*"]).await;
    let project = format!("/api/projects/{}/", app.project());
    let event = json!({"token": app.project_key(), "event": "a", "distinct_id": "b"});
    assert_eq!(app.anonymous().post("/capture/", &event).await.status, 200);
    app.app().ingest.applied().await;
    let rotated = caller.patch(&format!("{project}rotate_secret_token/"), &json!({})).await.json();
    let member = app.member("grace", Level::Member).await;
    let member = member.key(&["*"]).await;
    assert_eq!(member.get(&project).await.status, 200);
    let to = beta(&caller).await;

    let answer = change(&caller, &app, &to).await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    let moved = answer.json();
    assert_eq!(moved["organization"], to);
    for field in ["id", "uuid", "name", "api_token", "secret_api_token"] {
        assert_eq!(moved[field], rotated[field], "{field}");
    }
    assert_eq!(caller.get(&project).await.json(), moved);
    assert_eq!(member.get(&project).await.status, 404);
    let listed = async |organization: &str| {
        let path = format!("/api/organizations/{organization}/projects/");
        let list = caller.get(&path).await.json();
        let ids = list["results"].as_array().unwrap().iter().map(|item| item["id"].clone());
        ids.collect::<Vec<Value>>().contains(&json!(app.project()))
    };
    let from = app.organization().to_string();
    assert_eq!((listed(&from).await, listed(&to).await), (false, true));
    let events = caller.get(&format!("{project}events/")).await.json();
    assert_eq!(events["results"].as_array().unwrap().len(), 1);
    assert_eq!(app.anonymous().post("/capture/", &event).await.status, 200);

    // Both organizations have an entry; earlier entries stay with the first.
    for organization in [&from, &to] {
        let path = format!("/api/organizations/{organization}/activity_log/?limit=1");
        let newest = caller.get(&path).await.json()["results"][0].clone();
        let change = &newest["detail"]["changes"][0];
        assert_eq!((&newest["scope"], &change["field"]), (&json!("Team"), &json!("organization")));
        assert_eq!((&change["before"], &change["after"]), (&json!(from), &json!(to)));
    }
    let log = caller.get(&format!("{project}activity_log/")).await.json();
    assert_eq!((&log["count"], &log["results"][0]["organization_id"]), (&json!(1), &json!(to)));

    // Moving it to its own organization does nothing. Then it moves back.
    assert_eq!(change(&caller, &app, &to).await.json(), moved);
    assert_eq!(change(&caller, &app, &from).await.json()["organization"], from);
    let log = caller.get(&format!("{project}activity_log/")).await.json();
    assert_eq!(log["count"], 3, "{log}");
    let deleted = caller.delete(&format!("/api/organizations/{to}/")).await;
    assert_eq!((deleted.status, caller.get(&project).await.status), (204, 200));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_administrator_of_both_is_needed() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["*"]).await;
    let (kind, attr) = ("validation_error", Some("organization_id"));
    let both = "You must be an administrator of both organizations.";
    // A member here, an owner there.
    let grace = app.member("grace", Level::Member).await;
    let grace_key = grace.key(&["*"]).await;
    let hers = beta(&grace_key).await;
    let answer = change(&grace_key, &app, &hers).await;
    answer.assert_field_error(400, kind, "invalid_input", both, attr);
    // An organization that the owner has no access to does not exist for the owner.
    for id in [hers.as_str(), &uuid::Uuid::from_u128(7).to_string(), "junk"] {
        let detail = format!("Object with id={id} does not exist.");
        let answer = change(&caller, &app, id).await;
        answer.assert_field_error(400, kind, "does_not_exist", &detail, attr);
    }
    let path = format!("/api/projects/{}/change_organization/", app.project());
    let required = "This field is required.";
    let answer = caller.post(&path, &json!({})).await;
    answer.assert_field_error(400, kind, "required", required, attr);
    // An administrator here, a member there.
    let linus = app.member("linus", Level::Administrator).await;
    let linus = linus.key(&["*"]).await;
    let his = beta(&linus).await;
    assert_eq!(change(&linus, &app, &his).await.status, 200);
    let gone = change(&caller, &app, &his).await;
    gone.assert_error(404, "invalid_request", "not_found", "Project not found.");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_exports_stays() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["*"]).await;
    let to = beta(&caller).await;
    let made = caller.post(&super::exports_of(&app), &super::export()).await;
    assert_eq!(made.status, 201, "{:?}", made.body);
    let detail = "The project has exports, which belong to its organization. Delete them first.";
    let answer = change(&caller, &app, &to).await;
    answer.assert_error(409, "server_error", "conflict", detail);
    let path = format!("{}{}/", super::exports_of(&app), made.json()["id"].as_str().unwrap());
    assert_eq!(caller.delete(&path).await.status, 204);
    assert_eq!(change(&caller, &app, &to).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn limited_keys_do_not_carry_it_away() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["*"]).await;
    let to = beta(&caller).await;
    let of_project = app.owner().limited_key(&["*"], &[], &[app.project()]).await;
    assert_eq!(change(&of_project, &app, &to).await.status, 403);
    let of_organization = app.owner().limited_key(&["*"], &[app.organization()], &[]).await;
    let answer = change(&of_organization, &app, &to).await;
    assert_eq!((answer.status, answer.error().2.as_str()), (400, "does_not_exist"));
    let reader = app.owner().key(&["project:read"]).await;
    let detail = "API key missing required scope 'project:write'";
    let answer = change(&reader, &app, &to).await;
    answer.assert_error(403, "authentication_error", "permission_denied", detail);
}
