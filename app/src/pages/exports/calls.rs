//! What is done with exports, as requests to the API.

use serde_json::{Map, Value, json};
use weir_model::exports::destinations::{Kind, Need};

use super::form::Shape;
use crate::server_fns::exports::ExportHead;
use crate::server_fns::exports::config::asked;
use crate::ui::api_request::ApiCall;

/// A request about the export; `rest` is what it does, if not by its method.
pub(super) fn call(method: &'static str, found: &ExportHead, rest: &str) -> ApiCall {
    below(method, &found.house.id, &format!("{}/{rest}", found.export.id))
}

fn below(method: &'static str, organization: &str, rest: &str) -> ApiCall {
    let path = format!("/api/organizations/{organization}/batch_exports/{rest}");
    ApiCall::new(method, path, "batch_export:write")
}

/// The request that saves a form. Fields that may be empty are left out of it,
/// because the API tells empty from left out; secrets are never printed.
pub(super) fn saving(shape: &Shape) -> ApiCall {
    let config = Value::Object(config(shape));
    let organization = &shape.house.id;
    match &shape.export {
        None => {
            let mut body = json!({
                "name": "{name}", "interval": "{interval}", "model": "{model}",
                "destination": {"type": shape.kind.name, "config": config},
                "paused": "{paused}",
            });
            if shape.house.projects.len() > 1 {
                body["team_id"] = Value::from("{team_id}");
            }
            below("POST", organization, "").with(body)
        }
        Some(export) => below("PATCH", organization, &format!("{}/", export.id)).with(json!({
            "name": "{name}", "interval": "{interval}", "destination": {"config": config},
        })),
    }
}

/// The request that does the first step of the test of a form's destination.
pub(super) fn testing(shape: &Shape) -> ApiCall {
    let config = Value::Object(config(shape));
    let organization = &shape.house.id;
    match &shape.export {
        None => below("POST", organization, "run_test_step_new/").with(json!({
            "step": 0, "model": "{model}",
            "destination": {"type": shape.kind.name, "config": config},
        })),
        Some(export) => {
            let rest = format!("{}/run_test_step/", export.id);
            let body = json!({"step": 0, "destination": {"config": config}});
            below("POST", organization, &rest).with(body)
        }
    }
}

fn config(shape: &Shape) -> Map<String, Value> {
    let is_new = shape.export.is_none();
    let mut config = Map::new();
    for asked in asked(shape.kind).into_iter().filter(|asked| !asked.path.contains("__")) {
        let field = asked.field;
        let is_always_given = match &field.kind {
            Kind::Boolean | Kind::Integer { .. } => true,
            Kind::Choice(_) => field.need != Need::Nullable,
            Kind::Texts => false,
            _ => field.need == Need::Required,
        };
        if field.is_secret {
            if is_new && field.need == Need::Required {
                config.insert(asked.path, Value::from("..."));
            }
        } else if is_always_given {
            let blank = format!("{{{}}}", asked.name());
            config.insert(asked.path, Value::from(blank));
        }
    }
    config
}
