//! `/api/organizations/`.

use serde_json::json;
use weir_model::domains::SsoEnforcement;
use weir_model::organizations::Level;
use weir_testkit::{TestApp, until};

use super::domains::{enforce, verified};
use super::web;

const LEVEL: &str = "Your organization access level is insufficient.";

#[tokio::test(flavor = "multi_thread")]
async fn the_resource_has_every_field_of_its_type() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["organization:read"]).await;
    let body = caller.get(&format!("/api/organizations/{}/", app.organization())).await.json();
    let keys: Vec<&str> = body.as_object().unwrap().keys().map(String::as_str).collect();
    for key in [
        "id",
        "name",
        "slug",
        "created_at",
        "updated_at",
        "membership_level",
        "plugins_access_level",
        "teams",
        "available_features",
        "available_product_features",
        "is_member_join_email_enabled",
        "metadata",
        "customer_id",
        "enforce_2fa",
        "member_count",
    ] {
        assert!(keys.contains(&key), "{key} in {keys:?}");
    }
    assert_eq!(body["name"], "Acme Tea");
    assert_eq!(body["slug"], "acme-tea");
    assert_eq!(body["member_count"], "1");
    assert_eq!(body["metadata"], "{\"instance_tag\":\"none\"}");
    assert_eq!(body["membership_level"], 15);
    assert_eq!(body["plugins_access_level"], 9);
    assert_eq!(body["enforce_2fa"], false);
    assert_eq!(body["teams"][0]["name"], "Shop");
    let features = body["available_product_features"].as_array().unwrap();
    let known = body["available_features"].as_array().unwrap();
    assert!(features.iter().map(|feature| &feature["key"]).eq(known));
    assert!(features.iter().all(|feature| feature["limit"].is_null()));
    let created = body["created_at"].as_str().unwrap();
    assert!(created.ends_with('Z'), "{created}");
}

/// Clients enable the features in `available_features`, so each of them is used here. The
/// table of API-53 names the tests that hold each of them.
#[tokio::test(flavor = "multi_thread")]
async fn every_feature_that_is_named_works() {
    let providers = "github id secret".parse().unwrap();
    let app = TestApp::start(|config| config.sign_in_providers = providers, |_| {}).await;
    let app = app.set_up().await;
    let domain = verified(&app, "mail.example").await;
    let caller = app.owner().key(&["*"]).await;
    let organization = format!("/api/organizations/{}/", app.organization());
    let project = format!("/api/projects/{}/", app.project());
    let named = caller.get(&organization).await.json()["available_features"].clone();
    let expected = [
        "organizations_projects",
        "group_analytics",
        "data_pipelines",
        "social_sso",
        "saml",
        "sso_enforcement",
        "automatic_provisioning",
        "2fa",
        "2fa_enforcement",
        "audit_logs",
    ];
    assert_eq!(named, json!(expected));
    for feature in named.as_array().unwrap() {
        match feature.as_str().unwrap() {
            "organizations_projects" => {
                let path = format!("{organization}projects/");
                let made = caller.post(&path, &json!({"name": "Second"})).await;
                assert_eq!(made.status, 201, "{:?}", made.body);
                assert_eq!(caller.get(&path).await.json()["count"], 2);
            }
            "group_analytics" => {
                let properties = json!({"$group_type": "company", "$group_key": "acme",
                                        "$group_set": {"name": "Acme"}});
                let event = json!({"api_key": app.project_key(), "event": "$groupidentify",
                                   "distinct_id": "ada", "properties": properties});
                assert_eq!(app.anonymous().post("/capture/", &event).await.status, 200);
                let groups = format!("{project}groups/?group_type=company");
                until(async || caller.get(&groups).await.json()["results"] != json!([])).await;
            }
            "data_pipelines" => {
                let export = json!({"name": "Nowhere", "interval": "day", "paused": true,
                                    "destination": {"type": "NoOp", "config": {}}});
                let made = caller.post(&format!("{organization}batch_exports/"), &export).await;
                assert_eq!(made.status, 201, "{:?}", made.body);
            }
            "social_sso" => {
                let offered = app.anonymous().get("/_preflight/").await.json();
                assert_eq!(offered["available_social_auth_providers"]["github"], true);
            }
            "saml" => {
                let metadata = app.anonymous().get("/api/saml/metadata/").await;
                assert!(metadata.text().contains("AssertionConsumerService"));
            }
            "sso_enforcement" => {
                enforce(&app, "mail.example", SsoEnforcement::Saml).await;
                let body = json!({"email": "ada@mail.example"});
                let answer = app.anonymous().post("/api/login/precheck/", &body).await;
                assert_eq!(answer.json()["sso_enforcement"], "saml");
            }
            "automatic_provisioning" => {
                let path = format!("{organization}domains/{}/", domain["id"].as_str().unwrap());
                let body = json!({"jit_provisioning_enabled": true});
                assert_eq!(caller.patch(&path, &body).await.status, 200);
            }
            "2fa" | "2fa_enforcement" => second_step_is_required().await,
            "audit_logs" => {
                let log = caller.get(&format!("{organization}activity_log/")).await.json();
                assert_ne!(log["results"], json!([]));
            }
            other => panic!("nothing here uses `{other}`"),
        }
    }
}

/// An organization leads its members to the page where they turn two-step sign-in on.
async fn second_step_is_required() {
    let app = TestApp::with_owner().await;
    let session = web::session(&app).await;
    let caller = app.owner().key(&["organization:write"]).await;
    let home = format!("/organizations/{}", app.organization());
    assert_eq!(web::page(&app, &home, &session).await.status, 200);
    let after = caller.patch(&format!("/api{home}/"), &json!({"enforce_2fa": true})).await.json();
    assert_eq!(after["enforce_2fa"], true);
    let answer = web::page(&app, &home, &session).await;
    assert_eq!((answer.status, answer.header("location")), (303, Some("/account/security")));
    let page = web::page(&app, "/account/security", &session).await.text();
    assert!(page.contains("Two-step sign-in is required by"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn create_list_change_delete() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["organization:write", "project:read"]).await;
    let answer = caller.post("/api/organizations/", &json!({"name": "Beta"})).await;
    assert_eq!(answer.status, 201);
    let made = answer.json();
    assert_eq!(made["teams"][0]["name"], "Default project");
    let path = format!("/api/organizations/{}/", made["id"].as_str().unwrap());

    let list = caller.get("/api/organizations/").await.json();
    assert_eq!(list["count"], 2);
    assert_eq!(list["results"][0]["name"], "Acme Tea");
    assert_eq!(list["results"][1], made);

    let answer = caller.patch(&path, &json!({})).await;
    assert_eq!((answer.status, &answer.json()["name"]), (200, &json!("Beta")));
    let answer = caller.patch(&path, &json!({"name": "Gamma", "enforce_2fa": null})).await;
    assert_eq!(answer.json()["name"], "Gamma");
    assert_eq!(answer.json()["slug"], "beta");

    let answer = caller.put(&path, &json!({"enforce_2fa": true})).await;
    answer.assert_field_error(
        400,
        "validation_error",
        "required",
        "This field is required.",
        Some("name"),
    );
    let answer = caller.put(&path, &json!({"name": "Delta", "enforce_2fa": true})).await;
    assert_eq!((answer.status, &answer.json()["enforce_2fa"]), (200, &json!(true)));

    let answer = caller.delete(&path).await;
    assert_eq!((answer.status, answer.body.len()), (204, 0));
    assert_eq!(answer.header("content-type"), None);
    assert_eq!(caller.get(&path).await.status, 404);
    assert_eq!(caller.delete(&path).await.status, 404);
    assert_eq!(caller.get("/api/organizations/").await.json()["count"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn levels_come_before_validation() {
    let app = TestApp::with_owner().await;
    let path = format!("/api/organizations/{}/", app.organization());
    let member = app.member("grace", Level::Member).await;
    let administrator = app.member("linus", Level::Administrator).await;
    let member = member.key(&["*"]).await;
    let administrator = administrator.key(&["*"]).await;

    assert_eq!(member.get(&path).await.json()["membership_level"], 1);
    let shown = administrator.get(&path).await.json();
    assert_eq!((&shown["membership_level"], &shown["member_count"]), (&json!(8), &json!("3")));
    for body in [json!({"name": "New"}), json!({"name": ""})] {
        let answer = member.patch(&path, &body).await;
        answer.assert_error(403, "authentication_error", "permission_denied", LEVEL);
    }
    assert_eq!(administrator.patch(&path, &json!({"name": "New"})).await.status, 200);
    for caller in [&member, &administrator] {
        let answer = caller.delete(&path).await;
        answer.assert_error(403, "authentication_error", "permission_denied", LEVEL);
    }
    let projects = format!("{path}projects/");
    let answer = member.post(&projects, &json!({"name": ""})).await;
    answer.assert_error(403, "authentication_error", "permission_denied", LEVEL);
    assert_eq!(administrator.post(&projects, &json!({"name": "B"})).await.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn deleting_ends_the_project_keys_immediately() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["*"]).await;
    let event = json!({"api_key": app.project_key(), "event": "a", "distinct_id": "b"});
    assert_eq!(app.anonymous().post("/capture/", &event).await.status, 200);
    let path = format!("/api/organizations/{}/", app.organization());
    assert_eq!(caller.delete(&path).await.status, 204);
    let answer = app.anonymous().post("/capture/", &event).await;
    assert_eq!(answer.status, 401);
}
