//! Every list of the API can be read to its end: by offsets, by a client that stops at
//! the first page that is shorter than its limit, and by following `next`.

use std::collections::HashSet;

use serde_json::{Value, json};
use weir_model::exports::{LogLevel, LogLine};
use weir_model::plugin_configs::{LogLevel as ConfigLevel, LogSource};
use weir_model::{PluginConfigId, RunId};
use weir_server::openapi::document;
use weir_store::exports::logs as export_logs;
use weir_store::plugin_runtime::logs as config_logs;

use super::fixtures::World;
use super::operations::{Operation, answer_schema, guarded, operations};
use crate::stored::send;

/// Least number of rows in every list.
const ROWS: u32 = 5;

#[tokio::test(flavor = "multi_thread")]
async fn every_list_is_read_once_by_offsets_and_by_links() {
    let world = World::new().await;
    events(&world).await;
    let mut walked = 0;
    for operation in guarded().filter(is_list) {
        let last = last_word(&operation).to_owned();
        let parameters = operation.item["parameters"].as_array().unwrap();
        let is_paged = parameters.iter().any(|parameter| parameter["name"] == "offset");
        assert!(is_paged, "{}", operation.path);
        let ids = world.ids(&operation).await;
        fill(&world, &operation, &last, &ids).await;
        let path = operation.path_with(&ids);
        let path = format!("{path}{}", if path.contains('?') { "&" } else { "?" });
        let (whole, _) = page(&world, &format!("{path}limit=500")).await;
        assert!(whole.len() >= ROWS as usize, "{path}: {}", whole.len());
        let different: HashSet<&String> = whole.iter().collect();
        assert_eq!(different.len(), whole.len(), "{path}");
        assert_eq!(by_offset(&world, &path).await, whole, "{path} by offsets");
        assert_eq!(by_next(&world, &path).await, whole, "{path} by links");
        walked += 1;
    }
    assert!(walked > 25, "{walked}");
}

/// Whether it returns an object with `results`. An export has all of them in one answer.
fn is_list(operation: &Operation) -> bool {
    let Some(schema) = answer_schema(operation).filter(|_| operation.method == http::Method::GET)
    else {
        return false;
    };
    if operation.path.ends_with("/export/") {
        return false;
    }
    let address = schema["$ref"].as_str().unwrap_or("#/none").trim_start_matches('#').to_owned();
    let schema = document().unwrap().pointer(&address).unwrap_or(&schema).clone();
    let parts = schema["allOf"].as_array().cloned().unwrap_or_default();
    parts.iter().chain([&schema]).any(|part| part["properties"]["results"].is_object())
}

/// The last word of its path.
fn last_word(operation: &Operation) -> &str {
    operation.path.trim_end_matches('/').rsplit('/').next().unwrap()
}

async fn page(world: &World, path: &str) -> (Vec<String>, Option<String>) {
    let answer = world.owner.get(path).await;
    assert_eq!(answer.status, 200, "{path}: {:?}", answer.body);
    let page = answer.json();
    let results = page["results"].as_array().unwrap().iter().map(Value::to_string).collect();
    (results, page["next"].as_str().map(str::to_owned))
}

async fn by_offset(world: &World, path: &str) -> Vec<String> {
    let mut all = Vec::new();
    loop {
        let (results, _) = page(world, &format!("{path}limit=2&offset={}", all.len())).await;
        let is_last = results.len() < 2;
        all.extend(results);
        if is_last {
            return all;
        }
    }
}

async fn by_next(world: &World, path: &str) -> Vec<String> {
    let base = format!("http://{}", world.app.address());
    let (mut all, mut path) = (Vec::new(), format!("{path}limit=2"));
    loop {
        let (results, next) = page(world, &path).await;
        assert!(results.len() <= 2, "{path}");
        all.extend(results);
        let Some(next) = next else { return all };
        path = next.strip_prefix(&base).unwrap().to_owned();
    }
}

/// Adds rows to the list of an operation, unless events have made them.
async fn fill(world: &World, operation: &Operation, last: &str, ids: &[(String, String)]) {
    let project = world.app.project();
    for n in 0..ROWS {
        match last {
            "groups" if operation.path.contains("/scim/") => {
                drop(world.object(operation, last, ids).await);
            }
            "events"
            | "persons"
            | "groups"
            | "sessions"
            | "event_definitions"
            | "property_definitions"
            | "ingestion_warnings"
            | "repository" => {}
            "members" => drop(world.member().await),
            "projects" => drop(world.project().await),
            "organizations" => {
                let body = json!({"name": format!("Organization {n}")});
                assert_eq!(world.owner.post("/api/organizations/", &body).await.status, 201);
            }
            _ if operation.path.ends_with("/projects/{project_id}/activity/")
                || last == "activity_log" =>
            {
                let body = json!({"name": format!("Project {n}")});
                let path = format!("/api/projects/{project}/");
                assert_eq!(world.owner.patch(&path, &body).await.status, 200);
            }
            // Lists about plugins: each plugin was created, and none is used.
            "activity" | "unused" => {
                let path = operation.path.replace(&format!("{last}/"), "");
                let list = operations().into_iter().find(|other| other.path == path).unwrap();
                let collection = last_word(&list).to_owned();
                world.object(&list, &collection, ids).await;
            }
            "exports_unsubscribe_configs" => export_config(world).await,
            "runs" => drop(world.run(ids).await),
            "backfills" => drop(world.backfill().await),
            "logs" if operation.path.contains("_configs") => {
                let line = config_logs::Line {
                    config: PluginConfigId(ids.last().unwrap().1.parse().unwrap()),
                    at: world.app.app().services.clock.now(),
                    source: LogSource::Console,
                    level: ConfigLevel::Info,
                    message: format!("Line {n}"),
                };
                config_logs::append(world.app.store(), &[line]).await.unwrap();
            }
            "logs" => log(world, ids, n).await,
            collection => drop(world.object(operation, collection, ids).await),
        }
    }
}

/// An enabled config of a plugin that delivers events.
async fn export_config(world: &World) {
    let path = format!("/api/organizations/{}/pipeline_destinations/", world.app.organization());
    let plugin =
        json!({"plugin_type": "source", "name": "P", "capabilities": {"methods": ["onEvent"]}});
    let plugin = world.owner.post(&path, &plugin).await;
    assert_eq!(plugin.status, 201, "{:?}", plugin.body);
    // Only a few configs of a project may be enabled.
    let path = format!("/api/projects/{}/pipeline_transformation_configs/", world.project().await);
    let config = json!({"plugin": plugin.json()["id"], "order": 1, "enabled": true});
    let config = world.owner.post(&path, &config).await;
    assert_eq!(config.status, 201, "{:?}", config.body);
}

/// Adds a line to the log of the run of a path, or of a new run. Two lines have the same
/// time.
async fn log(world: &World, ids: &[(String, String)], n: u32) {
    let of = |name: &str| ids.iter().find(|(known, _)| known == name).map(|(_, id)| id.clone());
    let run = match of("run_id") {
        Some(run) => run,
        None => world.run(ids).await,
    };
    let run: RunId = run.parse().unwrap();
    let line = LogLine {
        log_source_id: of("export_id").unwrap().parse().unwrap(),
        instance_id: run,
        timestamp: world.app.app().services.clock.now().plus_seconds(i64::from(n / 2)),
        level: LogLevel::Info,
        message: format!("Line {n}"),
    };
    export_logs::add(world.app.store(), &line, n).await.unwrap();
}

/// Events that create persons, groups, sessions and names, and some that are dropped.
async fn events(world: &World) {
    let mut sent = vec![
        json!({"event": "no distinct id"}),
        json!({"distinct_id": "no name"}),
        json!({"event": 7, "distinct_id": "a name that is no text"}),
        json!({"event": "a", "distinct_id": "b", "uuid": "none"}),
        json!({"event": "a", "distinct_id": "b", "properties": 7}),
    ];
    for n in 0..ROWS {
        let session = format!("01900000-0000-7000-8000-{n:012x}");
        sent.push(json!({
            "event": format!("event {n}"), "distinct_id": "ada",
            // Soon after the time in the session ids.
            "timestamp": "2024-06-10T02:40:00Z",
            "properties": {"$session_id": session, format!("property {n}"): n},
        }));
        sent.push(json!({
            "event": "$groupidentify", "distinct_id": format!("person {n}"),
            "properties": {"$group_type": "company", "$group_key": format!("key {n}"),
                           // The group whose members are listed.
                           "$groups": {"company": "ada"}},
        }));
    }
    send(&world.app, json!(sent)).await;
}
