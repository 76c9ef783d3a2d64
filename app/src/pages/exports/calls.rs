//! Requests to the API that correspond to the forms of exports.

use serde_json::{Map, Value, json};
use weir_model::exports::destinations::{Kind, Need};

use super::form::Shape;
use crate::server_fns::exports::ExportHead;
use crate::server_fns::exports::config::{form_settings, may_be_empty};
use crate::ui::api_request::ApiCall;

/// A request about the export. `rest` is the end of its path.
pub(super) fn call(method: &'static str, found: &ExportHead, rest: &str) -> ApiCall {
    below(method, &found.organization.id, &format!("{}/{rest}", found.export.id))
}

fn below(method: &'static str, organization: &str, rest: &str) -> ApiCall {
    let path = format!("/api/organizations/{organization}/batch_exports/{rest}");
    ApiCall::new(method, path, "batch_export:write")
}

/// The request that saves a form. Secrets are never printed.
pub(super) fn saving(shape: &Shape) -> ApiCall {
    let organization = &shape.organization.id;
    let mut body = json!({
        "name": "{name}", "interval": "{interval}", "timezone": "{timezone:optional}",
        "offset_day": "{offset_day:optional}", "offset_hour": "{offset_hour:optional}",
        "start_at": "{start_at:time}", "end_at": "{end_at:time}",
        "destination": {"config": config(shape)},
    });
    if shape.takes_query() {
        body["hogql_query"] = Value::from("{hogql_query:optional}");
    }
    let Some(export) = &shape.export else {
        body["model"] = Value::from("{model}");
        body["destination"]["type"] = Value::from(shape.kind.name);
        body["paused"] = Value::from("{paused}");
        if shape.organization.projects.len() > 1 {
            body["team_id"] = Value::from("{team_id}");
        }
        return below("POST", organization, "").with(body);
    };
    below("PATCH", organization, &format!("{}/", export.id)).with(body)
}

/// The request that runs the first step of the test of a destination.
pub(super) fn testing(shape: &Shape) -> ApiCall {
    let config = config(shape);
    let organization = &shape.organization.id;
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

/// The settings. Required secrets of a new export are dots, optional ones are blanks;
/// stored secrets are omitted because they stay. Nested settings are omitted too: they
/// may be empty only together.
fn config(shape: &Shape) -> Value {
    let is_new = shape.export.is_none();
    let mut config = Map::new();
    for setting in
        form_settings(shape.kind).into_iter().filter(|setting| !setting.path.contains("__"))
    {
        let (field, name) = (setting.field, setting.name());
        let blank = match &field.kind {
            _ if field.is_secret && !is_new => continue,
            _ if field.is_secret && field.need == Need::Required => "...".to_owned(),
            _ if field.is_secret => format!("{{{name}:secret}}"),
            Kind::Texts => format!("{{{name}:list}}"),
            kind if field.need == Need::Required || may_be_empty(kind) => format!("{{{name}}}"),
            _ => format!("{{{name}:optional}}"),
        };
        config.insert(setting.path, Value::from(blank));
    }
    Value::Object(config)
}
