//! `…/activity_log/` of organizations and projects.

use http::Method;
use serde_json::{Value, json};
use weir_model::KeyId;
use weir_model::organizations::Level;
use weir_store::activity::{Verified, verify};
use weir_testkit::{Answer, Caller, TestApp};

fn of_organization(app: &TestApp) -> String {
    format!("/api/organizations/{}/activity_log/", app.organization())
}

fn of_project(app: &TestApp) -> String {
    format!("/api/projects/{}/activity_log/", app.project())
}

async fn entries(caller: &Caller, path: &str) -> Vec<Value> {
    let answer = caller.get(path).await;
    assert_eq!(answer.status, 200, "{path}: {:?}", answer.body);
    let list = answer.json();
    let results = list["results"].as_array().unwrap().clone();
    if !path.contains('?') {
        assert_eq!(list["count"], results.len());
    }
    results
}

/// The content of an entry, without values that differ between runs.
fn audit_entries(entry: &Value) -> Value {
    json!([
        entry["activity"],
        entry["scope"],
        entry["item_id"],
        entry["team_id"],
        entry["detail"]["name"],
        entry["detail"]["changes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|change| json!([change["field"], change["before"], change["after"]]))
            .collect::<Vec<_>>(),
    ])
}

#[tokio::test(flavor = "multi_thread")]
async fn every_change_of_the_api_leaves_one_entry() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["*"]).await;
    let key = caller.get("/api/personal_api_keys/@current/").await.json();
    let organization = format!("/api/organizations/{}/", app.organization());
    let (home, shop) = (app.organization().to_string(), app.project().0);
    let project = format!("/api/projects/{shop}/");
    let made = caller.post("/api/projects/", &json!({"name": "Blog"})).await.json();
    let blog = made["id"].as_i64().unwrap();
    let me = app.owner().id().to_string();
    let team = |action: &str, id: i64, name: &str, changes: Value| {
        json!([action, "Team", id.to_string(), id, name, changes])
    };
    let keys = |action: &str, field: &str| {
        team(action, shop, "Store", json!([[field, "(secret)", "(secret)"]]))
    };
    let mut seen = entries(&caller, &of_organization(&app)).await.len();
    let patch = Method::PATCH;
    let renamed = json!([["name", "Acme Tea", "Beta"]]);
    let named = json!([["first_name", "Ada", "Augusta"]]);
    for (method, path, body, expected) in [
        (
            &patch,
            organization.clone(),
            json!({"name": "Beta", "enforce_2fa": false}),
            json!(["updated", "Organization", home, null, "Acme Tea", renamed]),
        ),
        (
            &patch,
            project.clone(),
            json!({"name": "Store", "week_start_day": 1, "timezone": "UTC"}),
            team(
                "updated",
                shop,
                "Shop",
                json!([["name", "Shop", "Store"], ["week_start_day", null, 1]]),
            ),
        ),
        (
            &patch,
            format!("{organization}projects/{shop}/"),
            json!({"week_start_day": null}),
            team("updated", shop, "Store", json!([["week_start_day", 1, null]])),
        ),
        (&patch, format!("{project}reset_token/"), json!({}), keys("rotated", "api_token")),
        (
            &patch,
            format!("{project}rotate_secret_token/"),
            json!({}),
            keys("rotated", "secret_api_token"),
        ),
        (
            &patch,
            format!("{project}rotate_secret_token/"),
            json!({}),
            keys("rotated", "secret_api_token"),
        ),
        (
            &patch,
            format!("{project}delete_secret_token_backup/"),
            json!({}),
            keys("deleted", "secret_api_token_backup"),
        ),
        (
            &Method::DELETE,
            format!("/api/projects/{blog}/"),
            json!({}),
            team("deleted", blog, "Blog", json!([["name", "Blog", null]])),
        ),
        (
            &Method::POST,
            format!("{organization}projects/"),
            json!({"name": "Wiki", "timezone": "Asia/Tokyo"}),
            team("created", blog + 1, "Wiki", json!([["name", null, "Wiki"]])),
        ),
        (
            &patch,
            "/api/users/@me/".to_owned(),
            json!({"first_name": "Augusta", "theme_mode": "dark"}),
            json!(["updated", "User", me, null, "ada@mail.example", named]),
        ),
    ] {
        let answer = caller.call(method.clone(), &path).json(&body).send().await;
        assert!(answer.status < 300, "{method} {path}: {:?}", answer.body);
        let all = entries(&caller, &of_organization(&app)).await;
        assert_eq!(all.len(), seen + 1, "{method} {path}");
        seen += 1;
        assert_eq!(audit_entries(&all[0]), expected, "{method} {path}");
        assert_eq!(all[0]["organization_id"], home);
        assert_eq!(all[0]["user"]["uuid"], me);
        assert_eq!(all[0]["is_system"], false);
        assert_eq!(
            all[0]["personal_api_key"],
            json!({"id": key["id"], "label": "test", "mask_value": key["mask_value"]})
        );
        assert_eq!(all[0]["request_id"], answer.header("x-request-id").unwrap());
    }
    // Calls without a change and refused calls leave no entry.
    for (path, body) in [
        (&organization, json!({})),
        (&organization, json!({"name": "Beta"})),
        (&organization, json!({"name": ""})),
        (&project, json!({"name": "Store"})),
        (&"/api/users/@me/".to_owned(), json!({"theme_mode": "light"})),
        (&"/api/users/@me/".to_owned(), json!({"first_name": "Augusta"})),
        (&format!("{project}delete_secret_token_backup/"), json!({})),
    ] {
        caller.patch(path, &body).await;
        assert_eq!(entries(&caller, &of_organization(&app)).await.len(), seen, "{path} {body}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_recorded_with_their_limits() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["*"]).await;
    let beta = caller.post("/api/organizations/", &json!({"name": "Beta"})).await.json();
    let (acme, id) = (of_organization(&app), beta["id"].as_str().unwrap());
    let beta_log = format!("/api/organizations/{id}/activity_log/");
    let lengths =
        async || (entries(&caller, &acme).await.len(), entries(&caller, &beta_log).await.len());
    // Created by its owner in the web app: the entry about the organization itself.
    assert_eq!(entries(&caller, &beta_log).await[0]["activity"], "created");
    let (before, _) = lengths().await;

    let keys = &app.app().services.keys;
    let limited = app.owner().limited_key(&["user:read"], &[id.parse().unwrap()], &[]).await;
    assert_eq!(lengths().await, (before, 2));
    let of_project = app.owner().limited_key(&["user:read"], &[], &[app.project()]).await;
    assert_eq!(lengths().await, (before + 1, 2));
    let newest = entries(&caller, &acme).await.remove(0);
    let own = of_project.get("/api/personal_api_keys/@current/").await.json();
    assert_eq!(
        audit_entries(&newest),
        json!([
            "created",
            "PersonalAPIKey",
            own["id"],
            null,
            "test",
            [["label", null, "test"], ["scopes", null, ["user:read"]]]
        ])
    );
    assert_eq!(newest["personal_api_key"], Value::Null);

    let id = KeyId(
        limited.get("/api/personal_api_keys/@current/").await.json()["id"]
            .as_str()
            .unwrap()
            .to_owned(),
    );
    keys.roll(&app.owner().ctx(), &id).await.unwrap();
    keys.delete(&app.owner().ctx(), &id).await.unwrap();
    assert_eq!(lengths().await, (before + 1, 4));
    let log = entries(&caller, &beta_log).await;
    let actions: Vec<&Value> = log.iter().map(|entry| &entry["activity"]).collect();
    assert_eq!(actions, ["deleted", "rotated", "created", "created"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_is_recorded() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["*"]).await;
    let project = format!("/api/projects/{}/", app.project());
    let mut secrets = vec![caller.key().to_owned(), app.project_key().to_owned()];
    for action in ["reset_token/", "rotate_secret_token/", "rotate_secret_token/"] {
        let answer = caller.patch(&format!("{project}{action}"), &json!({})).await;
        assert_eq!(answer.status, 200);
        for field in ["api_token", "secret_api_token", "secret_api_token_backup"] {
            secrets.extend(answer.json()[field].as_str().map(str::to_owned));
        }
    }
    caller.patch(&format!("{project}delete_secret_token_backup/"), &json!({})).await;
    let key = caller.get("/api/personal_api_keys/@current/").await.json();
    let id = KeyId(key["id"].as_str().unwrap().to_owned());
    let rolled = app.app().services.keys.roll(&app.owner().ctx(), &id).await.unwrap();
    secrets.extend(rolled.value.clone());
    let caller = app.anonymous().with_key(&rolled.value.unwrap());
    for path in [of_organization(&app), of_project(&app)] {
        let text = String::from_utf8(caller.get(&path).await.body.to_vec()).unwrap();
        assert!(text.contains("(secret)"));
        for secret in &secrets {
            assert!(!text.contains(secret.as_str()), "{path}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_oldest_entry_is_the_set_up() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["activity_log:read"]).await;
    let log = entries(&caller, &of_organization(&app)).await;
    let first = log.last().unwrap();
    let id = app.organization().to_string();
    assert_eq!(
        audit_entries(first),
        json!(["created", "Organization", id, null, "Acme Tea", [["name", null, "Acme Tea"]]])
    );
    assert_eq!(first["user"]["email"], "ada@mail.example");
    assert_eq!(first["personal_api_key"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_filters_and_the_projects_own() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["*"]).await;
    let organization = format!("/api/organizations/{}/", app.organization());
    let other = caller.post("/api/projects/", &json!({"name": "Blog"})).await.json();
    for name in ["a", "b", "c"] {
        for path in [&organization, &format!("/api/projects/{}/", app.project())] {
            assert_eq!(caller.patch(path, &json!({"name": name})).await.status, 200);
        }
    }
    let all = entries(&caller, &of_organization(&app)).await;
    let times: Vec<&str> = all.iter().map(|entry| entry["created_at"].as_str().unwrap()).collect();
    assert!(times.is_sorted_by(|a, b| a >= b), "{times:?}");
    let page = caller.get(&format!("{}?limit=2&offset=3", of_organization(&app))).await.json();
    assert_eq!((&page["count"], &page["results"]), (&json!(all.len()), &json!(all[3..5])));
    let past = caller.get(&format!("{}?offset=99", of_organization(&app))).await.json();
    assert_eq!((&past["results"], &past["next"]), (&json!([]), &Value::Null));

    let own: Vec<Value> =
        all.iter().filter(|entry| entry["team_id"] == app.project().0).cloned().collect();
    assert_eq!((own.len(), entries(&caller, &of_project(&app)).await), (3, own.clone()));
    let page = caller.get(&format!("{}?limit=1&offset=1", of_project(&app))).await.json();
    assert_eq!((&page["count"], &page["results"]), (&json!(3), &json!([own[1]])));
    let blog = format!("/api/projects/{}/activity_log/", other["id"]);
    assert_eq!(entries(&caller, &blog).await.len(), 1);

    let grace = app.member("grace", Level::Administrator).await;
    grace.key(&["*"]).await.patch(&organization, &json!({"name": "d"})).await;
    let count = async |query: &str| {
        let list = caller.get(&format!("{}?{query}", of_organization(&app))).await.json();
        list["count"].as_i64().unwrap()
    };
    assert_eq!(count("scope=Team").await, 4);
    assert_eq!(count(&format!("scope=Team&item_id={}", app.project())).await, 3);
    assert_eq!(count(&format!("item_id={}", app.organization())).await, 5);
    // The creation of her key, and her change.
    assert_eq!(count(&format!("user={}", grace.id())).await, 2);
    assert_eq!(count(&format!("user={}&scope=Plugin", grace.id())).await, 0);
    let found = caller.get(&format!("{}?scope=Team&limit=1&offset=1", of_organization(&app))).await;
    assert_eq!((found.json()["count"].clone(), &found.json()["results"][0]), (json!(4), &own[1]));
    for (query, code, detail, attr) in [
        ("scope=Nothing", "invalid_choice", "\"Nothing\" is not a valid choice.", "scope"),
        ("user=x", "invalid_input", "Must be a valid UUID.", "user"),
    ] {
        for path in [of_organization(&app), of_project(&app)] {
            let answer = caller.get(&format!("{path}?{query}")).await;
            answer.assert_field_error(400, "validation_error", code, detail, Some(attr));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_the_changes_of_a_project_has_up_to_a_thousand_entries() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["*"]).await;
    let project = format!("/api/projects/{}/", app.project());
    for n in 0..=100 {
        let answer = caller.patch(&project, &json!({"name": format!("Project {n}")})).await;
        assert_eq!(answer.status, 200, "{:?}", answer.body);
    }
    let path = format!("{project}activity/");
    let all = caller.get(&format!("{path}?limit=1000&offset=0")).await.json();
    let (results, total) = (all["results"].as_array().unwrap(), &all["total_count"]);
    assert_eq!((&json!(results.len()), &all["next"]), (total, &Value::Null));
    assert!(results.len() > 100, "{}", results.len());
    let rest = caller.get(&format!("{path}?limit=1000&offset=100")).await.json();
    assert_eq!(rest["results"], json!(results[100..]));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_read() {
    let app = TestApp::with_owner().await;
    let denied = |answer: &Answer| {
        let detail = "API key missing required scope 'activity_log:read'";
        answer.assert_error(403, "authentication_error", "permission_denied", detail);
    };
    let member = app.member("grace", Level::Member).await;
    let reader = member.key(&["activity_log:read"]).await;
    let other = member.key(&["organization:write", "project:write"]).await;
    let outsider = app.outsider("mallory").await.key(&["*"]).await;
    let of_the_project = app.owner().limited_key(&["*"], &[], &[app.project()]).await;
    for path in [of_organization(&app), of_project(&app)] {
        assert_eq!(reader.get(&path).await.status, 200);
        denied(&other.get(&path).await);
        assert_eq!(outsider.get(&path).await.status, 404);
    }
    assert_eq!(of_the_project.get(&of_project(&app)).await.status, 200);
    assert_eq!(of_the_project.get(&of_organization(&app)).await.status, 403);
    assert_eq!(reader.get("/api/organizations/@current/activity_log").await.status, 200);
    assert_eq!(reader.get("/api/projects/%40current/activity_log/").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_changes_an_entry() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["*"]).await;
    for path in [of_organization(&app), of_project(&app)] {
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            let answer = caller.call(method, &path).json(&json!({})).send().await;
            assert_eq!((answer.status, answer.header("allow")), (405, Some("GET, HEAD, OPTIONS")));
            let one = caller.call(Method::DELETE, &format!("{path}x/")).send().await;
            assert_eq!(one.status, 404);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_writers_are_all_recorded_and_the_chain_holds() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["*"]).await;
    let before = entries(&caller, &of_organization(&app)).await.len();
    let organization = format!("/api/organizations/{}/", app.organization());
    let project = format!("/api/projects/{}/", app.project());
    let write = async |path: &str, word: &str| {
        for number in 0..8 {
            let body = json!({"name": format!("{word}{number}")});
            assert_eq!(caller.patch(path, &body).await.status, 200);
        }
    };
    tokio::join!(write(&organization, "x"), write(&project, "y"), write(&organization, "z"));
    let log = entries(&caller, &of_organization(&app)).await;
    assert_eq!(log.len(), before + 24);
    let mut after: Vec<&str> =
        log[..24].iter().map(|e| e["detail"]["changes"][0]["after"].as_str().unwrap()).collect();
    after.sort_unstable();
    after.dedup();
    assert_eq!(after.len(), 24);
    let entries = u64::try_from(log.len()).unwrap();
    let verified = verify(app.store(), app.organization()).await.unwrap();
    assert_eq!(verified, Verified::Whole { entries });
}
