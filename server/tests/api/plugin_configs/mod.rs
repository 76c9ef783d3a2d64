//! `/api/projects/{project_id}/pipeline_transformation_configs/` (PLG-13).

mod access;
mod attachments;
mod create;
mod delete;
mod frontend;
mod get;
mod health;
mod job;
mod list;
mod logs;
mod owners;
mod rearrange;
mod secrets;
mod site_app;
mod trial;
mod update;

use http::Method;
use serde_json::{Value, json};
use weir_model::Timestamp;
use weir_service::Clock;
use weir_testkit::{Answer, Caller, TestApp};

use crate::plugins::group_of;

/// 2026-05-28T20:26:40Z.
const NOW: i64 = 1_780_000_000_000_000;

/// An instance whose clock stops until the test moves it.
async fn app() -> (TestApp, Clock) {
    let clock = Clock::fixed(Timestamp::from_micros(NOW));
    (TestApp::at(clock.clone()).await.set_up().await, clock)
}

async fn owner(app: &TestApp) -> Caller {
    app.owner().key(&["*"]).await
}

fn path(app: &TestApp) -> String {
    format!("/api/projects/{}/pipeline_transformation_configs/", app.project())
}

/// The settings of the plugins in these tests.
fn settings() -> Value {
    json!([
        {"markdown": "# Read this"},
        {"key": "host", "type": "string", "required": true, "default": "example.com"},
        {"key": "token", "type": "string", "secret": true},
        {"key": "mode", "type": "choice", "choices": ["a", "b"]},
        {"key": "rules", "type": "json"},
        {"key": "table", "type": "attachment"},
        {"key": "credentials", "type": "attachment", "secret": true},
        {"key": "depth", "type": "string", "required_if": [["mode", "b"]]},
    ])
}

/// Creates a plugin of the caller.
async fn plugin_with(organization: &str, caller: &Caller, plugin: &Value) -> i64 {
    let path = format!("/api/organizations/{organization}/pipeline_destinations/");
    let answer = caller.post(&path, plugin).await;
    assert_eq!(answer.status, 201, "{:?}", answer.body);
    answer.json()["id"].as_i64().unwrap()
}

async fn plugin(app: &TestApp, caller: &Caller) -> i64 {
    let plugin = json!({
        "plugin_type": "source", "name": "Sampler", "description": "Keeps a part",
        "config_schema": settings(), "public_jobs": {"import": {}},
    });
    plugin_with(&app.organization().to_string(), caller, &plugin).await
}

/// Creates a plugin with source files.
async fn written(app: &TestApp, caller: &Caller, files: &Value) -> i64 {
    let organization = app.organization().to_string();
    let group = format!("/api/organizations/{organization}/{}/", group_of(files));
    let plugin = caller.post(&group, &json!({"name": "Written"})).await;
    assert_eq!(plugin.status, 201, "{:?}", plugin.body);
    let plugin = plugin.json()["id"].as_i64().unwrap();
    let answer = caller.patch(&format!("{group}{plugin}/update_source/"), files).await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    assert_eq!(answer.json()["source_errors"], json!({}));
    plugin
}

/// Creates a config, and returns its path too.
async fn made(app: &TestApp, caller: &Caller, body: &Value) -> (Value, String) {
    let answer = caller.post(&path(app), body).await;
    assert_eq!(answer.status, 201, "{:?}", answer.body);
    let config = answer.json();
    let path = format!("{}{}/", path(app), config["id"]);
    (config, path)
}

/// The stored row of a config.
async fn row(app: &TestApp, config: &Value) -> weir_store::plugin_configs::ConfigRow {
    let id = weir_model::PluginConfigId(config["id"].as_i64().unwrap());
    let found = weir_store::plugin_configs::rows(app.store(), app.project(), &[id]).await;
    found.unwrap().into_iter().next().unwrap()
}

/// Creates an organization of the caller.
async fn organization(caller: &Caller) -> String {
    let made = caller.post("/api/organizations/", &json!({"name": "Beta"})).await.json();
    made["id"].as_str().unwrap().to_owned()
}

/// The values of a config.
#[track_caller]
fn values(config: &Value) -> Value {
    serde_json::from_str(config["config"].as_str().unwrap()).unwrap()
}

/// The audit entries about the config, oldest first: the action, and the fields with
/// their values before and after.
async fn audit_entries(app: &TestApp, caller: &Caller, config: &Value) -> Vec<(String, Value)> {
    let path = format!(
        "/api/projects/{}/activity_log/?scope=PluginConfig&item_id={}",
        app.project(),
        config["id"],
    );
    let log = caller.get(&path).await.json();
    let mut entries: Vec<(String, Value)> = Vec::new();
    for entry in log["results"].as_array().unwrap() {
        let mut changes = json!({});
        for change in entry["detail"]["changes"].as_array().unwrap() {
            let field = change["field"].as_str().unwrap();
            changes[field] = json!([change["before"], change["after"]]);
        }
        entries.push((entry["activity"].as_str().unwrap().to_owned(), changes));
    }
    entries.reverse();
    entries
}

/// A part of a form: the field, and for a file its name and media type.
struct Part<'a>(&'a str, Option<(&'a str, &'a str)>, &'a [u8]);

/// Sends a form with files.
async fn send_form(caller: &Caller, method: Method, path: &str, parts: &[Part<'_>]) -> Answer {
    let mut body = Vec::new();
    for Part(field, file, contents) in parts {
        body.extend(format!("--b\r\ncontent-disposition: form-data; name=\"{field}\"").bytes());
        if let Some((name, media_type)) = file {
            let more = format!("; filename=\"{name}\"\r\ncontent-type: {media_type}");
            body.extend(more.bytes());
        }
        body.extend(b"\r\n\r\n");
        body.extend(*contents);
        body.extend(b"\r\n");
    }
    body.extend(b"--b--\r\n");
    let call = caller.call(method, path);
    call.header("content-type", "multipart/form-data; boundary=b").body(body).send().await
}

#[track_caller]
fn assert_invalid(answer: &Answer, attr: Option<&str>, code: &str, detail: &str) {
    answer.assert_field_error(400, "validation_error", code, detail, attr);
}

#[track_caller]
fn assert_not_found(answer: &Answer) {
    answer.assert_error(404, "invalid_request", "not_found", "Not found.");
}
