//! `/api/organizations/{organization_id}/pipeline_destinations/` and the other two groups
//! (PLG-6). All three have the same operations, so every test runs for each of them.

mod activity;
mod archive;
mod check_for_updates;
mod create;
mod delete;
mod exports_unsubscribe_configs;
mod get;
mod groups;
mod hosts;
mod list;
mod pages;
mod permissions;
mod published;
mod repository;
mod running;
mod source;
mod unused;
mod update;
mod update_source;
mod upgrade;

use serde_json::{Value, json};
use weir_model::plugins::PluginsAccess;
use weir_server::config::Config;
use weir_server::serve::Options;
use weir_testkit::{Answer, Caller, TestApp};

use hosts::{Host, tea_of};

const GROUPS: [&str; 3] =
    ["pipeline_destinations", "pipeline_frontend_apps", "pipeline_import_apps"];

/// A group in an instance of its own.
struct GroupFixture {
    app: TestApp,
    /// A key of the owner, who is staff of the instance.
    owner: Caller,
    group: &'static str,
    /// The host of plugin code.
    host: Host,
}

/// Runs a test for each of the groups.
async fn each_group(test: impl AsyncFn(&GroupFixture)) {
    for group in GROUPS {
        test(&fixture(group).await).await;
    }
}

/// A group of a new instance.
async fn fixture(group: &'static str) -> GroupFixture {
    let host = Host::start().await;
    host.has(tea_of(group));
    let settings = |config: &mut Config| config.egress_allow = "127.0.0.1".parse().unwrap();
    let options = |options: &mut Options| {
        let origins = &mut options.plugins.origins;
        origins.github = host.url();
        origins.gitlab = host.url();
    };
    let app = TestApp::with_settings_and_options(settings, options).await.set_up().await;
    let owner = app.owner().key(&["*"]).await;
    GroupFixture { app, owner, group, host }
}

impl GroupFixture {
    /// The group in the owner's organization.
    fn path(&self) -> String {
        self.beside(self.group)
    }

    /// Another group of the owner's organization.
    fn beside(&self, group: &str) -> String {
        format!("/api/organizations/{}/{group}/", self.app.organization())
    }

    /// Creates a plugin of the owner's organization, and returns its path too.
    async fn made(&self, body: &Value) -> (Value, String) {
        made(&self.owner, &self.path(), body).await
    }

    /// Sets the rights of the owner's organization.
    async fn allow(&self, access: PluginsAccess) {
        let services = &self.app.app().services;
        let (organization, now) = (self.app.organization(), services.clock.now());
        let changed = services.organizations.set_plugins_access(organization, access, now).await;
        assert!(changed.unwrap());
    }

    /// A user with another organization, and the group there.
    async fn elsewhere(&self) -> Elsewhere {
        let caller = self.app.outsider("mallory").await.key(&["*"]).await;
        let answer = caller.post("/api/organizations/", &json!({"name": "Coffee"})).await;
        assert_eq!(answer.status, 201, "{:?}", answer.body);
        let organization = answer.json();
        let path =
            format!("/api/organizations/{}/{}/", organization["id"].as_str().unwrap(), self.group);
        Elsewhere { caller, path, project: organization["teams"][0]["id"].clone() }
    }
}

/// Another organization.
struct Elsewhere {
    caller: Caller,
    /// The group there.
    path: String,
    project: Value,
}

impl Elsewhere {
    /// The path of a plugin there.
    fn of(&self, plugin: &Value) -> String {
        format!("{}{}/", self.path, plugin["id"])
    }
}

async fn made(caller: &Caller, group: &str, body: &Value) -> (Value, String) {
    let answer = caller.post(group, body).await;
    assert_eq!(answer.status, 201, "{:?}", answer.body);
    let plugin = answer.json();
    let path = format!("{group}{}/", plugin["id"]);
    (plugin, path)
}

/// Creates a config of a plugin in a project, and returns its path.
async fn configured(caller: &Caller, project: &Value, plugin: &Value, enabled: bool) -> String {
    let path = format!("/api/projects/{project}/pipeline_transformation_configs/");
    let body = json!({"plugin": plugin["id"], "order": 1, "enabled": enabled});
    let answer = caller.post(&path, &body).await;
    assert_eq!(answer.status, 201, "{:?}", answer.body);
    format!("{path}{}/", answer.json()["id"])
}

/// The ids of a list.
fn ids(list: &Value) -> Vec<Value> {
    list["results"].as_array().unwrap().iter().map(|plugin| plugin["id"].clone()).collect()
}

/// An answer without the fields of a record.
fn rest(answer: &Value, record: &Value) -> Value {
    let mut rest = answer.clone();
    let fields = rest.as_object_mut().unwrap();
    for (name, value) in record.as_object().unwrap() {
        assert_eq!(fields.remove(name).as_ref(), Some(value), "{name}");
    }
    rest
}

/// A list that fits into one page, without the fields of a record.
fn whole(results: &Value) -> Value {
    let count = results.as_array().unwrap().len();
    json!({"results": results, "count": count, "next": null, "previous": null})
}

/// The record when there is no plugin to show.
fn nothing() -> Value {
    json!({
        "id": null, "plugin_type": null, "name": null, "description": null, "url": null,
        "icon": null, "config_schema": null, "tag": null, "latest_tag": null, "is_global": false,
        "organization_id": null, "organization_name": null, "capabilities": null,
        "metrics": null, "public_jobs": null,
    })
}

#[track_caller]
fn assert_not_found(answer: &Answer) {
    answer.assert_error(404, "invalid_request", "not_found", "Not found.");
}

#[track_caller]
fn assert_forbidden(answer: &Answer, detail: &str) {
    answer.assert_error(403, "authentication_error", "permission_denied", detail);
}

#[track_caller]
fn assert_invalid(answer: &Answer, attr: Option<&str>, code: &str, detail: &str) {
    answer.assert_field_error(400, "validation_error", code, detail, attr);
}

/// The group that a plugin with these files belongs to.
pub(crate) fn group_of(files: &Value) -> &'static str {
    let text = files.to_string();
    let has = |names: &[&str]| names.iter().any(|name| text.contains(name));
    match () {
        () if has(&["processEvent", "onEvent", "composeWebhook"]) => "pipeline_destinations",
        () if has(&["index.js", "index.ts"]) => "pipeline_import_apps",
        () => "pipeline_frontend_apps",
    }
}
