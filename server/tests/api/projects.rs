//! `/api/projects/` and the same paths below an organization.

mod change_organization;
mod delete;
mod retention;
mod tokens;

use serde_json::json;
use weir_testkit::TestApp;

fn exports_of(app: &TestApp) -> String {
    format!("/api/projects/{}/batch_exports/", app.project())
}

/// A body that creates a batch export.
fn export() -> serde_json::Value {
    let config = json!({
        "bucket_name": "events", "region": "eu-west-1", "prefix": "weir/",
        "aws_access_key_id": "id", "aws_secret_access_key": "secret",
    });
    json!({
        "name": "Nightly", "interval": "day", "destination": {"type": "S3", "config": config},
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn flat_and_nested_show_the_same() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["project:write", "organization:read"]).await;
    let nested = format!("/api/organizations/{}/projects/", app.organization());
    assert_eq!(
        caller.get("/api/projects/").await.json()["results"],
        caller.get(&nested).await.json()["results"]
    );
    let flat = caller.get(&format!("/api/projects/{}/", app.project())).await;
    let deep = caller.get(&format!("{nested}{}/", app.project())).await;
    assert_eq!((flat.status, flat.json()), (200, deep.json()));
    let current = caller.get("/api/projects/@current/").await;
    assert_eq!(current.json(), flat.json());
    assert_eq!(flat.json()["api_token"], app.project_key());
    assert!(flat.json()["id"].is_i64());
    assert_eq!(flat.json()["project_id"], flat.json()["id"]);
    for key in [
        "uuid",
        "organization",
        "timezone",
        "ingested_event",
        "app_urls",
        "created_at",
        "effective_membership_level",
    ] {
        assert!(!flat.json()[key].is_null(), "{key}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn create_and_change() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["project:write"]).await;
    let made =
        caller.post("/api/projects/", &json!({"name": "Blog", "timezone": "Europe/Berlin"})).await;
    assert_eq!(made.status, 201, "{:?}", made.body);
    let made = made.json();
    assert_eq!(made["organization"], app.organization().to_string());
    let path = format!("/api/projects/{}/", made["id"]);
    // Capture accepts it immediately.
    let event = json!({"token": made["api_token"], "event": "a", "distinct_id": "b"});
    assert_eq!(app.anonymous().post("/capture/", &event).await.status, 200);

    let nested = format!("/api/organizations/{}/projects/", app.organization());
    let other = caller.post(&nested, &json!({})).await;
    assert_eq!((other.status, &other.json()["name"]), (201, &json!("Default project")));
    let numbers: Vec<i64> = caller.get("/api/projects/").await.json()["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|project| project["id"].as_i64().unwrap())
        .collect();
    assert_eq!(numbers.len(), 3);
    assert!(numbers.is_sorted(), "{numbers:?}");

    let changed = caller
        .patch(&path, &json!({"anonymize_ips": true, "api_token": "phc_mine", "id": 7}))
        .await;
    assert_eq!(changed.status, 200);
    assert_eq!(changed.json()["anonymize_ips"], true);
    assert_eq!(changed.json()["api_token"], made["api_token"]);
    let changed = caller.patch(&format!("{nested}{}/", made["id"]), &json!({"name": "Log"})).await;
    assert_eq!((changed.status, &changed.json()["name"]), (200, &json!("Log")));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_setting_can_be_given_at_the_beginning() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["project:write"]).await;
    let settings = json!({
        "name": "Blog",
        "completed_snippet_onboarding": true,
        "timezone": "Europe/Berlin",
        "app_urls": ["https://blog.example"],
        "anonymize_ips": "yes",
        "person_processing_opt_out": true,
        "person_display_name_properties": ["email", "name"],
        "week_start_day": 1,
        "event_retention_days": 30,
        "product_description": "Words.",
    });
    let nested = format!("/api/organizations/{}/projects/", app.organization());
    for path in ["/api/projects/", nested.as_str()] {
        let made = caller.post(path, &settings).await;
        assert_eq!(made.status, 201, "{:?}", made.body);
        let made = made.json();
        for (name, value) in settings.as_object().unwrap() {
            let expected = if name == "anonymize_ips" { &json!(true) } else { value };
            assert_eq!(&made[name], expected, "{name}");
        }
        let read = caller.get(&format!("/api/projects/{}/", made["id"])).await;
        assert_eq!(read.json(), made);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_change_is_none() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["*"]).await;
    for path in [
        format!("/api/projects/{}/", app.project()),
        format!("/api/organizations/{}/", app.organization()),
        "/api/users/@me/".to_owned(),
    ] {
        let before = caller.get(&path).await.json();
        for body in [json!({}), json!({"id": 7, "nothing": 1})] {
            let answer = caller.patch(&path, &body).await;
            assert_eq!((answer.status, answer.json()), (200, before.clone()), "{path}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_that_are_none_are_not_found() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["*"]).await;
    for id in ["abc", "0", "-1", "007", "99999", "%FF", "9223372036854775808"] {
        for tail in ["", "events/", "ingestion_warnings/"] {
            let answer = caller.get(&format!("/api/projects/{id}/{tail}")).await;
            let detail = if tail.is_empty() { "Not found." } else { "Project not found." };
            answer.assert_error(404, "invalid_request", "not_found", detail);
        }
    }
}
