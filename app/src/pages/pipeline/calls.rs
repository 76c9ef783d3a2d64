//! Requests to the API that correspond to the forms of configs.

use serde_json::{Map, Value, json};

use crate::plugin_settings::{Kind, Part, Setting, field, settings, with_fields};
use crate::server_fns::plugin_configs::views::ConfigDetail;
use crate::ui::api_request::ApiCall;

/// A request about the configs of a project. `rest` is the end of its path.
pub(super) fn call(method: &'static str, project: i64, rest: &str) -> ApiCall {
    let path = format!("/api/projects/{project}/pipeline_transformation_configs/{rest}");
    ApiCall::new(method, path, "plugin:write")
}

/// The request that changes fields of a config.
pub(super) fn change(project: i64, config: &str, fields: Value) -> ApiCall {
    call("PATCH", project, &format!("{config}/")).with(fields)
}

/// The request that adds a config. Its secrets are blanks that the reader fills in.
pub(super) fn creation(project: i64, plugin: &str, form: &[Part]) -> ApiCall {
    let value = |(at, setting): (usize, &Setting)| {
        let value = if setting.secret { "...".to_owned() } else { blank(at, setting) };
        (setting.key.clone(), Value::from(value))
    };
    let config: Map<String, Value> = with_fields(form).map(value).collect();
    let plugin = plugin.parse::<i64>().unwrap_or_default();
    let fields = json!({
        "plugin": plugin, "order": 1, "name": "{name:optional}", "enabled": "{enabled}",
        "config": config,
    });
    call("POST", project, "").with(fields)
}

/// The request that saves the form of a config. Secrets are omitted, so they stay.
pub(super) fn saving(project: i64, found: &ConfigDetail) -> ApiCall {
    let mut config = found.values.clone();
    for setting in settings(&found.form).filter(|one| one.secret || one.kind == Kind::File) {
        config.remove(&setting.key);
    }
    for (at, setting) in with_fields(&found.form).filter(|(_, one)| !one.secret) {
        // A field contains the JSON text, which as a string would be another value.
        let is_parsed = |value: &Value| !value.is_string() && !value.is_null();
        if setting.kind == Kind::Json && config.get(&setting.key).is_some_and(is_parsed) {
            continue;
        }
        config.insert(setting.key.clone(), Value::from(blank(at, setting)));
    }
    let mut fields = json!({"name": "{name}", "description": "{description}", "config": config});
    if found.line.transforms {
        fields["on_failure"] = "{on_failure}".into();
    }
    change(project, &found.line.id, fields)
}

fn blank(at: usize, setting: &Setting) -> String {
    format!("{{{}}}", field(at, setting))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{creation, saving};
    use crate::plugin_settings::parts;
    use crate::server_fns::plugin_configs::views::{ConfigDetail, ConfigLine};

    #[test]
    fn examples_show_settings_as_blanks_and_no_secrets() {
        let schema = json!({
            "mode": {"type": "string", "order": 0},
            "token": {"type": "string", "secret": true, "order": 1},
            "rules": {"type": "json", "order": 2},
            "table": {"type": "attachment", "order": 3},
        });
        let form = parts(schema.as_object());
        let config = json!({
            "mode": "{settings[0][value]}", "token": "...", "rules": "{settings[2][value]}",
        });
        assert_eq!(
            creation(7, "3", &form).body,
            Some(json!({
                "plugin": 3, "order": 1, "name": "{name:optional}", "enabled": "{enabled}",
                "config": config,
            }))
        );

        let values = json!({
            "mode": "a", "token": "(secret)", "rules": {"a": 1}, "table": {"size": 3}, "own": 1,
        });
        let found = ConfigDetail {
            line: ConfigLine { id: "5".to_owned(), ..ConfigLine::default() },
            form,
            values: values.as_object().unwrap().clone(),
            ..ConfigDetail::default()
        };
        let call = saving(7, &found);
        assert_eq!(call.path, "/api/projects/7/pipeline_transformation_configs/5/");
        let config = json!({"mode": "{settings[0][value]}", "rules": {"a": 1}, "own": 1});
        assert_eq!(
            call.body,
            Some(json!({"name": "{name}", "description": "{description}", "config": config}))
        );
    }
}
