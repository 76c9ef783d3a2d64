//! Plugins on a running instance, all through HTTP: events are sent as libraries send
//! them, and read back.

mod broken;
mod conservation;
mod destinations;
mod hostile;
mod killed;
mod neighbours;
mod protected;
mod tasks;
mod transformations;

use serde_json::{Value, json};
use uuid::Uuid;
use weir_server::config::Config;
use weir_server::serve::Options;
use weir_service::Clock;
use weir_testkit::{Answer, Caller, TestApp, until};

use super::group_of;

/// Events per page.
const PAGE: usize = 500;

/// An instance with an owner and a project, whose plugins run.
pub(super) struct Instance {
    pub(super) app: TestApp,
    pub(super) owner: Caller,
}

/// A project and its project key.
#[derive(Clone)]
pub(super) struct Project {
    id: Value,
    key: String,
}

/// A plugin and its config.
pub(super) struct Installed {
    /// Path of the plugin.
    pub(super) plugin: String,
    pub(super) config: String,
    /// The config's id.
    pub(super) id: i64,
}

impl Instance {
    pub(super) async fn start() -> Self {
        Self::with(|_| {}, |_| {}).await
    }

    /// An instance whose clock stops until the test moves it.
    pub(super) async fn at(clock: &Clock) -> Self {
        Self::with(|_| {}, |options| options.clock = clock.clone()).await
    }

    pub(super) async fn with(
        settings: impl FnOnce(&mut Config),
        options: impl FnOnce(&mut Options),
    ) -> Self {
        let settings = |config: &mut Config| {
            config.egress_allow = "127.0.0.1".parse().unwrap();
            config.rate_per_minute = 0;
            config.rate_per_hour = 0;
            settings(config);
        };
        let app = TestApp::with_settings_and_options(settings, options).await.set_up().await;
        let owner = app.owner().key(&["*"]).await;
        Self { app, owner }
    }

    /// The first project.
    pub(super) fn project(&self) -> Project {
        Project { id: json!(self.app.project()), key: self.app.project_key().to_owned() }
    }

    /// Another project in the same organization.
    async fn another(&self, name: &str) -> Project {
        let path = format!("/api/organizations/{}/projects/", self.app.organization());
        let made = ok(201, &self.owner.post(&path, &json!({"name": name})).await);
        let key = made["api_token"].as_str().unwrap().to_owned();
        Project { id: made["id"].clone(), key }
    }

    fn configs(project: &Project) -> String {
        format!("/api/projects/{}/pipeline_transformation_configs/", project.id)
    }

    /// Creates a plugin from its files, and returns its path and record.
    async fn plugin(&self, files: &Value) -> (String, Value) {
        let group = format!("/api/organizations/{}/{}/", self.app.organization(), group_of(files));
        let made = ok(
            201,
            &self.owner.post(&group, &json!({"plugin_type": "source", "name": "Tea"})).await,
        );
        let path = format!("{group}{}/", made["id"]);
        let answer = ok(200, &self.owner.patch(&format!("{path}update_source/"), files).await);
        assert_eq!(answer["source_errors"], json!({}), "{answer}");
        (path, answer)
    }

    /// Creates an enabled config of a plugin.
    pub(super) async fn enabled(
        &self,
        project: &Project,
        plugin: &Value,
        order: i64,
        config: &Value,
    ) -> (String, i64) {
        let body = json!({"plugin": plugin, "order": order, "enabled": true, "config": config});
        let path = Self::configs(project);
        let made = ok(201, &self.owner.post(&path, &body).await);
        (format!("{path}{}/", made["id"]), made["id"].as_i64().unwrap())
    }

    /// Creates a plugin from its files, with an enabled config.
    async fn install_files(
        &self,
        project: &Project,
        order: i64,
        files: &Value,
        config: &Value,
    ) -> Installed {
        let (plugin, record) = self.plugin(files).await;
        let (config, id) = self.enabled(project, &record["id"], order, config).await;
        Installed { plugin, config, id }
    }

    /// Creates a plugin of one file without settings, with an enabled config.
    async fn install(&self, project: &Project, order: i64, source: &str) -> Installed {
        self.install_files(project, order, &json!({"index.js": source}), &json!({})).await
    }

    /// Replaces the source.
    async fn rewrite(&self, installed: &Installed, source: &str) {
        let path = format!("{}update_source/", installed.plugin);
        ok(200, &self.owner.patch(&path, &json!({"index.js": source})).await);
    }

    /// The config as the API shows it.
    async fn shown(&self, installed: &Installed) -> Value {
        ok(200, &self.owner.get(&format!("{}?expand=object", installed.config)).await)
    }

    /// Waits until the shown config meets the condition.
    async fn until_shown(&self, installed: &Installed, wanted: impl Fn(&Value) -> bool) -> Value {
        until(async || Some(self.shown(installed).await).filter(&wanted)).await
    }

    /// Sends events and asserts that they were accepted.
    pub(super) async fn send(&self, project: &Project, events: &[Value]) {
        send(&self.app.anonymous(), project, events).await;
    }

    /// The events of a project, oldest first, once all accepted events are applied.
    pub(super) async fn stored(&self, project: &Project) -> Vec<Value> {
        self.app.app().ingest.applied().await;
        stored(&self.owner, project, "").await
    }

    /// Sends an event again and again until the result is the expected one (`None`: it
    /// was dropped). From then on the change has taken effect.
    pub(super) async fn until_works(
        &self,
        project: &Project,
        wanted: impl Fn(Option<&Value>) -> bool,
    ) {
        until(async || {
            let found = self.probed(project).await;
            wanted(found.as_ref()).then_some(())
        })
        .await;
    }

    /// The result of an event that is sent now.
    async fn probed(&self, project: &Project) -> Option<Value> {
        let id = Uuid::new_v4();
        let probe = json!({
            "event": "probe", "uuid": id.to_string(), "distinct_id": format!("probe-{id}"),
            "properties": {"probe": true},
        });
        self.send(project, &[probe]).await;
        self.app.app().ingest.applied().await;
        stored(&self.owner, project, &format!("&uuid={id}")).await.pop()
    }

    /// How many events were dropped for this reason, and the newest of them.
    async fn dropped(&self, project: &Project, code: &str) -> (u64, Value) {
        self.app.app().ingest.applied().await;
        let path = format!("/api/projects/{}/ingestion_warnings/", project.id);
        let list = ok(200, &self.owner.get(&path).await);
        let reasons = list["results"].as_array().unwrap();
        let Some(found) = reasons.iter().find(|reason| reason["code"] == code) else {
            return (0, Value::Null);
        };
        (found["count"].as_u64().unwrap(), found["samples"][0].clone())
    }
}

pub(super) async fn send(caller: &Caller, project: &Project, events: &[Value]) {
    let body = json!({"api_key": project.key, "batch": events});
    ok(200, &caller.post("/batch/", &body).await);
}

/// The events of a project with these query parameters, oldest first.
pub(super) async fn stored(caller: &Caller, project: &Project, query: &str) -> Vec<Value> {
    let mut path = format!("/api/projects/{}/events/?limit={PAGE}{query}", project.id);
    let mut events = Vec::new();
    loop {
        let page = ok(200, &caller.get(&path).await);
        events.extend(page["results"].as_array().unwrap().iter().cloned());
        let Some(next) = page["next"].as_str() else { break };
        let (_, rest) = next.split_once("/api/").unwrap();
        path = format!("/api/{rest}");
    }
    events.reverse();
    events
}

pub(super) fn event(name: &str, properties: Value) -> Value {
    let id = Uuid::new_v4().to_string();
    json!({"event": name, "uuid": id, "distinct_id": "ada", "properties": properties})
}

/// The only event of a name.
#[track_caller]
pub(super) fn only<'a>(events: &'a [Value], name: &str) -> &'a Value {
    let found: Vec<&Value> = events.iter().filter(|event| event["event"] == name).collect();
    assert_eq!(found.len(), 1, "{name}: {events:?}");
    found[0]
}

/// The events without those of `until_works`.
fn without_probes(events: Vec<Value>) -> Vec<Value> {
    events.into_iter().filter(|event| event["properties"]["probe"] != true).collect()
}

/// The answer, which must have this status.
#[track_caller]
pub(super) fn ok(status: u16, answer: &Answer) -> Value {
    assert_eq!(answer.status, status, "{:?}", answer.body);
    answer.json()
}
