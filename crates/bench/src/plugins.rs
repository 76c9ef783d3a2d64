//! Transformations of an instance under test, enabled through its API.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::api::Api;
use crate::weir::Instance;

/// A transformation to enable.
#[derive(Debug, Clone, Copy)]
pub enum Transformation<'a> {
    /// JavaScript.
    Script(&'a str),
    /// A step of the catalogue: its id, and its config as JSON text.
    Native(&'a str, &'a str),
}

/// Enables transformations in a project, in this order; returns the ids of the configs.
/// They take effect within a second.
///
/// # Errors
/// If the service refuses.
pub async fn enable(
    api: &mut Api,
    instance: &Instance,
    project: i64,
    transformations: &[Transformation<'_>],
) -> Result<Vec<i64>> {
    let mut enabled = Vec::new();
    for (order, transformation) in transformations.iter().enumerate() {
        let (plugin, config) = match transformation {
            Transformation::Script(source) => (scripted(api, instance, source).await?, json!({})),
            Transformation::Native(id, config) => {
                let body = json!({ "plugin_type": "inline", "url": format!("inline:{id}") });
                let made = asked(api, "POST", &plugins_path(instance), &body).await?;
                (id_of(&made)?, serde_json::from_str(config)?)
            }
        };
        let body = json!({ "plugin": plugin, "order": order, "enabled": true, "config": config });
        let made = asked(api, "POST", &configs_path(project), &body).await?;
        enabled.push(id_of(&made)?);
    }
    Ok(enabled)
}

/// Disables configs.
///
/// # Errors
/// If the service refuses.
pub async fn disable(api: &mut Api, project: i64, configs: &[i64]) -> Result<()> {
    for config in configs {
        let path = format!("{}{config}/", configs_path(project));
        asked(api, "PATCH", &path, &json!({ "enabled": false })).await?;
    }
    Ok(())
}

/// Creates a plugin with one file; returns its id.
async fn scripted(api: &mut Api, instance: &Instance, source: &str) -> Result<i64> {
    let plugins = plugins_path(instance);
    let body = json!({ "plugin_type": "source", "name": "Bench" });
    let id = id_of(&asked(api, "POST", &plugins, &body).await?)?;
    let path = format!("{plugins}{id}/update_source/");
    let answer = asked(api, "PATCH", &path, &json!({ "index.js": source })).await?;
    ensure!(answer["source_errors"] == json!({}), "a source has faults: {answer}");
    Ok(id)
}

async fn asked(api: &mut Api, method: &str, path: &str, body: &Value) -> Result<Value> {
    let (status, answer) = api.call(method, path, &body.to_string()).await?;
    let text = String::from_utf8_lossy(&answer);
    ensure!((200..300).contains(&status), "{method} {path} was answered with {status}: {text}");
    Ok(serde_json::from_slice(&answer)?)
}

fn id_of(record: &Value) -> Result<i64> {
    record["id"].as_i64().context("a record has no id")
}

fn plugins_path(instance: &Instance) -> String {
    format!("/api/organizations/{}/pipeline_destinations/", instance.organization_id)
}

fn configs_path(project: i64) -> String {
    format!("/api/projects/{project}/pipeline_transformation_configs/")
}
