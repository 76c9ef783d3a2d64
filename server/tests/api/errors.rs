//! The status table (API-2) and the order of checks (API-5).

use http::Method;
use serde_json::json;
use weir_model::organizations::Level;
use weir_testkit::TestApp;

const AUTH: &str = "authentication_error";
const REQUEST: &str = "invalid_request";

#[tokio::test(flavor = "multi_thread")]
async fn no_credential() {
    let app = TestApp::with_owner().await;
    let nobody = app.anonymous();
    let detail = "Authentication credentials were not provided.";
    let path = "/api/organizations/";
    nobody.get(path).await.assert_error(401, AUTH, "not_authenticated", detail);
    for scheme in ["Basic YTpi", "Bearer", "Bearer  ", "Token x"] {
        let answer = nobody.call(Method::GET, path).header("authorization", scheme).send().await;
        answer.assert_error(401, AUTH, "not_authenticated", detail);
    }
    // A cookie is not a credential here.
    let answer = nobody.call(Method::GET, path).header("cookie", "session=x").send().await;
    answer.assert_error(401, AUTH, "not_authenticated", detail);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_credential_names_where_it_was_found() {
    let app = TestApp::with_owner().await;
    let nobody = app.anonymous();
    let detail = |place: &str| format!("Personal API key found in request {place} is invalid.");
    let code = "authentication_failed";
    for key in ["phx_nothing", "nonsense", app.project_key()] {
        let answer = nobody.with_key(key).get("/api/users/@me/").await;
        answer.assert_error(401, AUTH, code, &detail("Authorization header"));
    }
    let body = json!({"personal_api_key": "phx_nothing", "name": "x"});
    let answer = nobody.post("/api/organizations/", &body).await;
    answer.assert_error(401, AUTH, code, &detail("body"));
    let answer = nobody.get("/api/users/@me/?personal_api_key=phx_nothing").await;
    answer.assert_error(401, AUTH, code, &detail("query string"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_found_in_header_body_and_query_in_this_order() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["*"]).await;
    let key = caller.key();
    let nobody = app.anonymous();
    let in_query = format!("/api/users/@me/?personal_api_key={key}");
    assert_eq!(nobody.get(&in_query).await.status, 200);
    let in_body = json!({"personal_api_key": key, "name": "Beta"});
    assert_eq!(nobody.post("/api/organizations/", &in_body).await.status, 201);
    let form = nobody
        .call(Method::POST, "/api/organizations/")
        .header("content-type", "application/x-www-form-urlencoded")
        .body(format!("personal_api_key={key}&name=Gamma"));
    assert_eq!(form.send().await.status, 201);
    // Only the first credential found counts.
    assert_eq!(nobody.with_key("phx_wrong").get(&in_query).await.status, 401);
    for scheme in ["bearer", "BEARER", "Bearer  "] {
        let call = nobody.call(Method::GET, "/api/users/@me/");
        let answer = call.header("authorization", &format!("{scheme} {key} ")).send().await;
        assert_eq!(answer.status, 200, "{scheme}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_paths_come_before_everything() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["*"]).await;
    for path in ["/api/", "/api/nothing", "/api/organizations//", "/api/a/b/c/", "/api/users/"] {
        for caller in [&caller, &app.anonymous()] {
            let answer = caller.call(Method::GET, path).header("accept", "image/png").send().await;
            answer.assert_error(404, REQUEST, "not_found", "Endpoint not found.");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn accept_comes_before_the_key() {
    let app = TestApp::with_owner().await;
    let path = "/api/organizations/";
    let answer = app.anonymous().call(Method::GET, path).header("accept", "text/html").send().await;
    let detail = "Could not satisfy the request Accept header.";
    answer.assert_error(406, REQUEST, "not_acceptable", detail);
    let browser = "text/html,application/xml;q=0.9,*/*;q=0.8";
    let answer = app.anonymous().call(Method::GET, path).header("accept", browser).send().await;
    assert_eq!(answer.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn other_methods_are_refused_after_authentication() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["user:read"]).await;
    let list = "/api/organizations/";
    let answer = app.anonymous().delete(list).await;
    assert_eq!(answer.status, 401);
    let answer = caller.delete(list).await;
    answer.assert_error(405, REQUEST, "method_not_allowed", "Method \"DELETE\" not allowed.");
    assert_eq!(answer.header("allow"), Some("GET, POST, HEAD, OPTIONS"));
    let answer = caller.put(list, &json!({})).await;
    answer.assert_error(405, REQUEST, "method_not_allowed", "Method \"PUT\" not allowed.");
    // A caller without access does not see the methods of a path.
    let missing = format!("{list}{}/", uuid(7));
    let answer = caller.post(&missing, &json!({})).await;
    answer.assert_error(404, REQUEST, "not_found", "Not found.");
    let answer = caller.post(&format!("{list}{}/", app.organization()), &json!({})).await;
    assert_eq!(answer.status, 405);
    // There is no method override.
    let call = caller.call(Method::POST, &format!("{list}{}/", app.organization()));
    let answer = call.header("x-http-method-override", "DELETE").send().await;
    assert_eq!(answer.status, 405);
}

#[tokio::test(flavor = "multi_thread")]
async fn head_options_and_allow() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["organization:read"]).await;
    let path = format!("/api/organizations/{}/", app.organization());
    let answer = caller.call(Method::HEAD, &path).send().await;
    assert_eq!((answer.status, answer.body.len()), (200, 0));
    let answer = caller.call(Method::OPTIONS, &path).send().await;
    assert_eq!(answer.status, 200);
    let allow = Some("GET, PUT, PATCH, DELETE, HEAD, OPTIONS");
    assert_eq!(answer.header("allow"), allow);
    assert_eq!(caller.get(&path).await.header("allow"), allow);
    assert_eq!(app.anonymous().get(&path).await.header("allow"), allow);
    let other = app.owner().key(&["user:read"]).await;
    let detail = "API key missing required scope 'organization:read'";
    let answer = other.call(Method::OPTIONS, &path).send().await;
    answer.assert_error(403, AUTH, "permission_denied", detail);
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_cannot_be_read() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["*"]).await;
    let post = |content_type: &'static str, body: &'static str| {
        let call = caller.call(Method::POST, "/api/organizations/");
        call.header("content-type", content_type).body(body).send()
    };
    let answer = post("application/json", "{\"name\": ").await;
    let (status, kind, code, detail, attr) = answer.error();
    assert_eq!((status, kind.as_str(), code.as_str(), attr), (400, REQUEST, "parse_error", None));
    assert!(detail.starts_with("JSON parse error - "), "{detail}");
    let answer = post("text/plain", "{}").await;
    let detail = "Unsupported media type \"text/plain\" in request.";
    answer.assert_error(415, REQUEST, "unsupported_media_type", detail);
    let answer = caller.call(Method::POST, "/api/organizations/").body("{}").send().await;
    let detail = "Unsupported media type \"\" in request.";
    answer.assert_error(415, REQUEST, "unsupported_media_type", detail);
    let answer = post("application/json", "[1]").await;
    let detail = "Invalid data. Expected a dictionary, but got list.";
    answer.assert_error(400, "validation_error", "invalid_input", detail);
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(64), "]".repeat(64));
    let call = caller.call(Method::POST, "/api/organizations/");
    let answer = call.header("content-type", "application/json").body(deep).send().await;
    assert_eq!(answer.error().2, "parse_error");
    // The key is checked first.
    let call = app.anonymous().call(Method::POST, "/api/organizations/");
    let answer = call.header("content-type", "application/json").body("{").send().await;
    assert_eq!(answer.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_key_may_comes_before_the_body() {
    let app = TestApp::with_owner().await;
    let member = app.member("grace", Level::Member).await;
    let of_projects = app.owner().limited_key(&["*"], &[], &[app.project()]).await;
    let of_organizations = app.owner().limited_key(&["*"], &[app.organization()], &[]).await;
    let member = member.key(&["*"]).await;
    let own = format!("/api/organizations/{}/", app.organization());
    let nested = format!("{own}projects/");
    let only_projects =
        "API keys with scoped projects are only supported on project-based endpoints.";
    let no_new = "API keys with scoped organizations cannot create organizations.";
    let level = "Your organization access level is insufficient.";
    let post = Method::POST;
    for (caller, method, path, detail) in [
        (&of_projects, &post, "/api/organizations/", only_projects),
        (&of_projects, &Method::PATCH, &own, only_projects),
        (&of_projects, &Method::PUT, &own, only_projects),
        (&of_projects, &post, &nested, only_projects),
        (&of_projects, &post, "/api/projects/", only_projects),
        (&of_organizations, &post, "/api/organizations/", no_new),
        (&member, &post, &nested, level),
        (&member, &post, "/api/projects/", level),
    ] {
        for (content_type, body) in [("text/plain", "x"), ("application/json", "{")] {
            let call = caller.call(method.clone(), path).header("content-type", content_type);
            let answer = call.body(body).send().await;
            answer.assert_error(403, AUTH, "permission_denied", detail);
        }
    }
    // A missing level is reported after the body was found readable.
    let call = member.call(Method::PATCH, &own).header("content-type", "text/plain");
    assert_eq!(call.body("x").send().await.status, 415);
    let answer = member.patch(&own, &json!({"name": ""})).await;
    answer.assert_error(403, AUTH, "permission_denied", level);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_missing_is_named_below_it() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["*"]).await;
    let theirs = app.outsider("mallory").await.key(&["*"]).await;
    let other = theirs.post("/api/organizations/", &json!({"name": "Beta"})).await.json();
    let foreign = other["id"].as_str().unwrap();
    let organizations = "/api/organizations/";
    for id in [foreign, &uuid(7).to_string(), "junk"] {
        let answer = caller.get(&format!("{organizations}{id}/")).await;
        answer.assert_error(404, REQUEST, "not_found", "Not found.");
        let below = format!("{organizations}{id}/projects/");
        for answer in [
            caller.get(&below).await,
            caller.post(&below, &json!({"name": "x"})).await,
            caller.get(&format!("{below}{}/", app.project())).await,
        ] {
            answer.assert_error(404, REQUEST, "not_found", "Organization not found.");
        }
    }
    let foreign = other["teams"][0]["id"].to_string();
    for id in [foreign.as_str(), "4711", "junk"] {
        for path in [
            format!("/api/projects/{id}/"),
            format!("{organizations}{}/projects/{id}/", app.organization()),
        ] {
            let answer = caller.get(&path).await;
            answer.assert_error(404, REQUEST, "not_found", "Not found.");
        }
        for below in ["events/", "ingestion_warnings/"] {
            let answer = caller.get(&format!("/api/projects/{id}/{below}")).await;
            answer.assert_error(404, REQUEST, "not_found", "Project not found.");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_are_too_large() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["*"]).await;
    let name = "x".repeat(1 << 20);
    let answer = caller.post("/api/organizations/", &json!({"name": name})).await;
    assert_eq!(answer.status, 413);
    assert_eq!(answer.error().2, "payload_too_large");
    assert_eq!(caller.get("/api/organizations/").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_carries_an_id_and_the_headers_of_its_kind() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["*"]).await;
    let mut ids = Vec::new();
    for path in ["/api/organizations/", "/api/nothing/", "/_health", "/nothing", "/e/"] {
        let answer = caller.get(path).await;
        let id = answer.header("x-request-id").unwrap().to_owned();
        assert_eq!(uuid::Uuid::parse_str(&id).unwrap().get_version_num(), 7);
        ids.push(id);
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{path}");
        assert_eq!(answer.header("server"), None);
    }
    ids.dedup();
    assert_eq!(ids.len(), 5);
    let answer = caller.get("/api/organizations/").await;
    let policy = "default-src 'none'; frame-ancestors 'none'";
    assert_eq!(answer.header("content-security-policy"), Some(policy));
    assert_eq!(answer.header("cross-origin-resource-policy"), Some("same-origin"));
    assert_eq!(answer.header("access-control-allow-origin"), None);
    assert_eq!(answer.header("strict-transport-security"), None);
    // An id that the caller sends is not used.
    let call = caller.call(Method::GET, "/_health").header("x-request-id", "mine");
    assert_ne!(call.send().await.header("x-request-id"), Some("mine"));
}

#[tokio::test(flavor = "multi_thread")]
async fn slashes_at_the_end_are_optional_and_never_redirected() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["*"]).await;
    let organization = format!("/api/organizations/{}", app.organization());
    for path in [
        "/api/organizations",
        "/api/organizations/",
        "/api/organizations?limit=1",
        &organization,
        "/api/organizations/@current",
        "/api/organizations/%40current/",
        "/api/users/%40me",
        "/api/personal_api_keys/%40current/",
        "/api/projects/@current",
        "/api/projects/%40current/events",
    ] {
        assert_eq!(caller.get(path).await.status, 200, "{path}");
    }
}

fn uuid(number: u128) -> uuid::Uuid {
    uuid::Uuid::from_u128(number)
}
