//! Answers that clients of the protocol rely on, for all resources at the same time:
//! statuses, texts, pages, scopes. Tests about one resource are in its module.

use http::Method;
use serde_json::{Value, json};
use weir_model::KeyId;
use weir_model::organizations::Level;
use weir_server::router::routes;
use weir_testkit::{Answer, Caller, TestApp};

const AUTH: &str = "authentication_error";
const REQUEST: &str = "invalid_request";

async fn raw(caller: &Caller, content_type: &str, body: &'static str) -> Answer {
    let call = caller.call(Method::POST, "/api/organizations/");
    call.header("content-type", content_type).body(body).send().await
}

#[tokio::test(flavor = "multi_thread")]
async fn line_01_the_rows_of_the_status_table_with_a_key() {
    let app = TestApp::with_owner().await;
    let all = app.owner().key(&["*"]).await;
    let reader = app.owner().key(&["organization:read", "project:read"]).await;
    let of_project = app.owner().limited_key(&["*"], &[], &[app.project()]).await;
    let grace = app.member("grace", Level::Member).await;
    let member = grace.key(&["*"]).await;
    let outsider = app.outsider("mallory").await.key(&["*"]).await;
    let home = format!("/api/organizations/{}/", app.organization());
    let nowhere = format!("/api/organizations/{}/", uuid::Uuid::from_u128(7));
    let denied = "permission_denied";

    let answer = app.anonymous().with_key("phx_nothing").get(&home).await;
    let detail = "Personal API key found in request Authorization header is invalid.";
    answer.assert_error(401, AUTH, "authentication_failed", detail);
    let detail = "API key missing required scope 'organization:write'";
    reader.patch(&home, &json!({})).await.assert_error(403, AUTH, denied, detail);
    let detail = "This action does not support Personal API Key access";
    all.get("/api/personal_api_keys/").await.assert_error(403, AUTH, denied, detail);
    let detail = "API keys with scoped projects are only supported on project-based endpoints.";
    of_project.get(&home).await.assert_error(403, AUTH, denied, detail);
    let detail = "Your organization access level is insufficient.";
    member.patch(&home, &json!({})).await.assert_error(403, AUTH, denied, detail);
    for answer in [outsider.get(&home).await, all.get(&nowhere).await] {
        answer.assert_error(404, REQUEST, "not_found", "Not found.");
    }
    let detail = "Organization not found.";
    let answer = all.get(&format!("{nowhere}projects/")).await;
    answer.assert_error(404, REQUEST, "not_found", detail);
    let answer = outsider.get("/api/organizations/@current/").await;
    answer.assert_error(404, REQUEST, "not_found", "Current organization not found.");
    let answer = outsider.get("/api/projects/@current/").await;
    answer.assert_error(404, REQUEST, "not_found", "Project not found.");
    let answer = all.get("/api/nothing/").await;
    answer.assert_error(404, REQUEST, "not_found", "Endpoint not found.");
    assert_eq!(raw(&all, "application/json", "{").await.error().2, "parse_error");
    let answer = raw(&all, "application/json", "[]").await;
    let detail = "Invalid data. Expected a dictionary, but got list.";
    answer.assert_error(400, "validation_error", "invalid_input", detail);
    let detail = "Method \"DELETE\" not allowed.";
    let answer = all.delete("/api/organizations/").await;
    answer.assert_error(405, REQUEST, "method_not_allowed", detail);
    let answer = all.call(Method::GET, &home).header("accept", "text/html").send().await;
    let detail = "Could not satisfy the request Accept header.";
    answer.assert_error(406, REQUEST, "not_acceptable", detail);
    let answer = raw(&all, "text/plain", "{}").await;
    let detail = "Unsupported media type \"text/plain\" in request.";
    answer.assert_error(415, REQUEST, "unsupported_media_type", detail);
}

#[tokio::test(flavor = "multi_thread")]
async fn line_01_the_rows_of_the_validation_table_with_a_key() {
    let app = TestApp::with_owner().await;
    let all = app.owner().key(&["*"]).await;
    let project = format!("/api/projects/{}/", app.project());
    let (organizations, me) = ("/api/organizations/".to_owned(), "/api/users/@me/".to_owned());
    let (post, patch) = (Method::POST, Method::PATCH);
    for (method, path, body, code, detail, attr) in [
        (&post, &organizations, json!({}), "required", "This field is required.", "name"),
        (
            &post,
            &organizations,
            json!({"name": null}),
            "null",
            "This field may not be null.",
            "name",
        ),
        (
            &post,
            &organizations,
            json!({"name": " "}),
            "blank",
            "This field may not be blank.",
            "name",
        ),
        (
            &post,
            &organizations,
            json!({"name": "x".repeat(65)}),
            "max_length",
            "Ensure this field has no more than 64 characters.",
            "name",
        ),
        (&patch, &project, json!({"name": []}), "invalid_input", "Not a valid string.", "name"),
        (
            &patch,
            &project,
            json!({"name": "a\u{0}"}),
            "null_characters_not_allowed",
            "Null characters are not allowed.",
            "name",
        ),
        (
            &patch,
            &project,
            json!({"anonymize_ips": "x"}),
            "invalid_input",
            "Must be a valid boolean.",
            "anonymize_ips",
        ),
        (
            &patch,
            &project,
            json!({"week_start_day": 2}),
            "invalid_choice",
            "\"2\" is not a valid choice.",
            "week_start_day",
        ),
        (
            &patch,
            &project,
            json!({"app_urls": "x"}),
            "not_a_list",
            "Expected a list of items but got type \"str\".",
            "app_urls",
        ),
        (
            &patch,
            &project,
            json!({"app_urls": ["https://a.example", null]}),
            "null",
            "This field may not be null.",
            "app_urls__1",
        ),
        (
            &patch,
            &me,
            json!({"set_current_team": 4711}),
            "does_not_exist",
            "Object with id=4711 does not exist.",
            "set_current_team",
        ),
    ] {
        let answer = all.call(method.clone(), path).json(&body).send().await;
        answer.assert_field_error(400, "validation_error", code, detail, Some(attr));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn line_02_pages_of_every_list_have_the_same_edges() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["*"]).await;
    for name in ["Beta", "Gamma"] {
        caller.post("/api/organizations/", &json!({"name": name})).await;
        caller.patch("/api/organizations/@current/", &json!({"name": format!("{name} 2")})).await;
        caller.post("/api/projects/", &json!({"name": name})).await;
    }
    let current = caller.get("/api/organizations/@current/").await.json();
    let below =
        |list: &str| format!("/api/organizations/{}/{list}/", current["id"].as_str().unwrap());
    for path in [
        "/api/organizations/".to_owned(),
        "/api/projects/".to_owned(),
        below("projects"),
        below("activity_log"),
    ] {
        let get = async |query: &str| caller.get(&format!("{path}{query}")).await.json();
        let all = get("").await;
        let count = all["count"].as_u64().unwrap();
        assert!(count >= 2, "{path}");
        assert_eq!(all["results"].as_array().unwrap().len() as u64, count);
        assert_eq!((&all["next"], &all["previous"]), (&Value::Null, &Value::Null));
        for query in ["?limit=0", "?limit=-1&offset=-1", "?limit=x&offset=y", "?limit=&offset="] {
            assert_eq!(get(query).await, all, "{path}{query}");
        }
        let link = |query: &str| json!(format!("http://{}{path}{query}", app.address()));
        let first = get("?limit=1").await;
        assert_eq!(first["results"], json!([all["results"][0]]), "{path}");
        assert_eq!(first["next"], link("?limit=1&offset=1"));
        let second = get("?limit=5&limit=1&offset=1").await;
        assert_eq!(second["results"], json!([all["results"][1]]), "{path}");
        assert_eq!(second["previous"], link("?limit=1"));
        let past = get("?limit=2&offset=99").await;
        assert_eq!((&past["count"], &past["results"]), (&all["count"], &json!([])), "{path}");
        assert_eq!((&past["next"], &past["previous"]), (&Value::Null, &link("?limit=2&offset=97")));
        let large = get("?limit=5000&offset=1").await;
        assert_eq!(large["previous"], link("?limit=1000"), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn line_03_write_reads_and_read_does_not_write() {
    let app = TestApp::with_owner().await;
    let home = format!("/api/organizations/{}/", app.organization());
    let project = format!("/api/projects/{}/", app.project());
    for (object, path) in
        [("organization", home.as_str()), ("project", &project), ("user", "/api/users/@me/")]
    {
        let writer = app.owner().key(&[&format!("{object}:write")]).await;
        let reader = app.owner().key(&[&format!("{object}:read")]).await;
        assert_eq!(writer.get(path).await.json(), reader.get(path).await.json());
        assert_eq!(writer.patch(path, &json!({})).await.status, 200, "{path}");
        let detail = format!("API key missing required scope '{object}:write'");
        let answer = reader.patch(path, &json!({})).await;
        answer.assert_error(403, AUTH, "permission_denied", &detail);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn line_04_a_key_for_everything_does_every_action() {
    let app = TestApp::with_owner().await;
    let all = app.owner().key(&["*"]).await;
    let project = format!("/api/projects/{}/", app.project());
    for action in ["reset_token/", "rotate_secret_token/", "delete_secret_token_backup/"] {
        let answer = all.patch(&format!("{project}{action}"), &json!({})).await;
        assert_eq!(answer.status, 200, "{action}");
    }
    let to = json!({"organization_id": app.organization()});
    assert_eq!(all.post(&format!("{project}change_organization/"), &to).await.status, 200);
    assert_eq!(all.get("/api/personal_api_keys/@current/").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn line_12_a_rotated_key_stops_working_immediately_and_keeps_its_id() {
    let app = TestApp::with_owner().await;
    let old = app.owner().key(&["project:read"]).await;
    let current = "/api/personal_api_keys/@current/";
    let before = old.get(current).await.json();
    let id = KeyId(before["id"].as_str().unwrap().to_owned());
    let rolled = app.app().services.keys.roll(&app.owner().ctx(), &id).await.unwrap();
    let detail = "Personal API key found in request Authorization header is invalid.";
    old.get(current).await.assert_error(401, AUTH, "authentication_failed", detail);
    let new = app.anonymous().with_key(&rolled.value.unwrap());
    let after = new.get(current).await.json();
    for field in ["id", "label", "scopes", "scoped_teams", "scoped_organizations", "created_at"] {
        assert_eq!(after[field], before[field], "{field}");
    }
    assert_ne!(after["mask_value"], before["mask_value"]);
    assert!(before["last_rolled_at"].is_null() && !after["last_rolled_at"].is_null());
}

#[tokio::test(flavor = "multi_thread")]
async fn line_13_slashes_and_percent_signs_change_nothing() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["*"]).await;
    for route in routes().iter().filter(|route| route.method == Method::GET) {
        let words = |at: &str| {
            route
                .path
                .replace("{organization_id}", &format!("{at}current"))
                .replace("{project_id}", &format!("{at}current"))
                .replace("{user_id}", &format!("{at}me"))
                .replace("personal_api_keys/{id}", &format!("personal_api_keys/{at}current"))
        };
        // Other path parameters have no such word.
        if words("@").contains('{') {
            continue;
        }
        let with = caller.get(&words("@")).await;
        for path in [words("%40"), words("@").trim_end_matches('/').to_owned()] {
            let answer = caller.get(&path).await;
            assert_eq!(answer.status, with.status, "{path}");
            assert_eq!(answer.header("location"), None, "{path}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn line_15_no_id_of_one_organization_leads_anywhere_in_another() {
    let app = TestApp::with_owner().await;
    let ada = app.owner().key(&["*"]).await;
    let mallory = app.outsider("mallory").await.key(&["*"]).await;
    let hers = mallory.post("/api/organizations/", &json!({"name": "Mole"})).await.json();
    let (foreign, home) = (hers["id"].as_str().unwrap(), app.organization());
    let project = &hers["teams"][0]["id"];
    let missing = ada.get(&format!("/api/organizations/{home}/projects/4711/")).await;
    assert_eq!(missing.status, 404);
    for path in [
        format!("/api/organizations/{home}/projects/{project}/"),
        format!("/api/projects/{project}/"),
        format!("/api/organizations/{foreign}/"),
    ] {
        for method in [Method::GET, Method::PATCH, Method::DELETE] {
            let answer = ada.call(method, &path).json(&json!({"name": "x"})).send().await;
            assert_eq!((answer.status, &answer.body), (404, &missing.body), "{path}");
        }
    }
    // Objects that she can read do not contain it either.
    for path in [
        "/api/organizations/".to_owned(),
        "/api/projects/".to_owned(),
        "/api/users/@me/".to_owned(),
        format!("/api/organizations/{home}/activity_log/"),
    ] {
        let text = String::from_utf8(ada.get(&path).await.body.to_vec()).unwrap();
        assert!(!text.contains(foreign) && !text.contains("Mole"), "{path}");
    }
    assert_eq!(mallory.get(&format!("/api/projects/{project}/")).await.status, 200);
}
