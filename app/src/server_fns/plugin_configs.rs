//! Plugin configs of projects: lists, settings, order, jobs, logs.
//!
//! What does not belong here: trials (`trial`), and the types that pages show (`views`).

pub(crate) mod trial;
pub(crate) mod views;

use leptos::prelude::*;
use server_fn::ServerFn;
use weir_model::PluginConfigId;
use weir_model::json::{Unparsed, VALUES, parse};
use weir_model::plugin_configs::{PluginConfigPatch, SentConfig};
#[cfg(feature = "ssr")]
use weir_service::plugin_configs::Stage;
#[cfg(feature = "ssr")]
use weir_service::{ProjectCtx, Services};

#[cfg(feature = "ssr")]
use crate::context::{enter_project, go, notice, notice_with_undo, redirect_with_notice, ui_error};
use crate::error::UiError;
use crate::plugin_settings::{SentSetting, field, field_at, parts, shown, values, with_fields};
use views::{ConfigDetail, ConfigLine, LogView, OfferedPlugin, PipelineView};

/// Label of the setting for events that a transformation cannot process.
pub(crate) const ON_FAILURE: &str = "On failure";
/// Path of the list of transformations, below the project.
const TRANSFORMATIONS: &str = "transformations";
/// Path of the list of other configs, below the project.
const OTHERS: &str = "plugins";

/// The path of a config's page.
pub(crate) fn config_path(project: i64, transforms: bool, config: &str) -> String {
    let list = if transforms { TRANSFORMATIONS } else { OTHERS };
    format!("/projects/{project}/{list}/{config}")
}

/// The project, and the config with this id.
#[cfg(feature = "ssr")]
async fn enter_config(
    project: i64,
    config: &str,
) -> Result<(Services, ProjectCtx, Stage), UiError> {
    let (services, ctx) = enter_project(project).await?;
    let stage = services.plugin_configs.stage(&ctx, config).await.map_err(ui_error)?;
    Ok((services, ctx, stage))
}

/// Lists the transformations of a project. Hidden ones are separate.
#[server(prefix = "/_fn", endpoint = "list_transformations")]
pub(crate) async fn list_transformations(project: i64) -> Result<PipelineView, UiError> {
    let (services, ctx) = enter_project(project).await?;
    let found = services.projects.get(&ctx).await.map_err(ui_error)?;
    let configs = &services.plugin_configs;
    let mut stages = configs.stages(&ctx).await.map_err(ui_error)?;
    stages.retain(|stage| stage.transforms);
    let (hidden, listed): (Vec<Stage>, Vec<Stage>) =
        stages.into_iter().partition(|stage| stage.config.fields.deleted);
    Ok(PipelineView {
        project_name: found.brief.name,
        organization: found.brief.organization.to_string(),
        listed: listed.into_iter().map(ConfigLine::from).collect(),
        hidden: hidden.into_iter().map(ConfigLine::from).collect(),
        read_only_reason: configs.why_not_change(&ctx).await.map_err(ui_error)?,
    })
}

/// Returns one config with all its details.
#[server(prefix = "/_fn", endpoint = "get_plugin_config")]
pub(crate) async fn get_plugin_config(
    project: i64,
    config: String,
) -> Result<ConfigDetail, UiError> {
    let (services, ctx, stage) = enter_config(project, &config).await?;
    let found = services.projects.get(&ctx).await.map_err(ui_error)?;
    let read_only_reason = services.plugin_configs.why_not_change(&ctx).await.map_err(ui_error)?;
    let listed = services.plugins.get_listed(&ctx.org, &stage.plugin.id.to_string()).await;
    // The user can have lost access to the plugin of a hidden config.
    let plugin_list = listed.ok().map(|found| found.plugin_list.text().to_owned());
    Ok(ConfigDetail {
        project_name: found.brief.name,
        organization: found.brief.organization.to_string(),
        plugin_list,
        read_only_reason,
        ..ConfigDetail::of(stage)
    })
}

/// Returns a plugin with the data for the form of a new config.
#[server(prefix = "/_fn", endpoint = "offer_plugin_config")]
pub(crate) async fn offer_plugin_config(
    project: i64,
    plugin: String,
) -> Result<OfferedPlugin, UiError> {
    let (services, ctx) = enter_project(project).await?;
    let home = services.projects.get(&ctx).await.map_err(ui_error)?;
    let found = services.plugins.get_listed(&ctx.org, &plugin).await.map_err(ui_error)?;
    let read_only_reason = services.plugin_configs.why_not_change(&ctx).await.map_err(ui_error)?;
    Ok(OfferedPlugin::of(home.brief, found, read_only_reason))
}

/// Creates a config and redirects to it.
#[server(prefix = "/_fn", endpoint = "create_plugin_config")]
pub(crate) async fn create_plugin_config(
    project: i64,
    plugin: i64,
    name: String,
    #[server(default)] enabled: Option<String>,
    #[server(default)] settings: Vec<SentSetting>,
) -> Result<(), UiError> {
    use weir_model::plugin_configs::PluginConfigInput;
    use weir_model::{Patch, PluginId};

    let (services, ctx) = enter_project(project).await?;
    let id = plugin.to_string();
    let found = services.plugins.get_listed(&ctx.org, &id).await.map_err(ui_error)?;
    let form = parts(found.plugin.fields.config_schema.as_ref());
    let configs = &services.plugin_configs;
    let input = PluginConfigInput {
        plugin: PluginId(plugin),
        order: configs.last_order(&ctx).await.map_err(ui_error)?,
        rest: PluginConfigPatch {
            enabled: Patch::Set(enabled.is_some()),
            config: Some(SentConfig(values(&form, &settings, serde_json::Map::new()))),
            name: named(&name, &crate::server_fns::plugins::views::name_of(&found.plugin)),
            ..PluginConfigPatch::default()
        },
    };
    let made = configs.create(&ctx, input).await.map_err(|error| at_field(error, &form))?;
    let made = configs.stage(&ctx, &made.id.to_string()).await.map_err(ui_error)?;
    let line = ConfigLine::from(made);
    let state = if line.enabled { "It works from now on." } else { "It is switched off." };
    let path = config_path(project, line.transforms, &line.id);
    redirect_with_notice(&path, &format!("Added {}. {state}", line.name));
    Ok(())
}

/// Changes the name, the description and the settings of a config.
#[server(prefix = "/_fn", endpoint = "save_plugin_config")]
pub(crate) async fn save_plugin_config(
    project: i64,
    config: String,
    #[server(default)] seen: String,
    name: String,
    #[server(default)] description: String,
    #[server(default)] on_failure: Option<String>,
    #[server(default)] settings: Vec<SentSetting>,
) -> Result<(), UiError> {
    use std::collections::{BTreeMap, BTreeSet};

    use weir_model::Patch;
    use weir_model::plugin_configs::OnFailure;

    use crate::edits::Edits;

    let (services, ctx, stage) = enter_config(project, &config).await?;
    let form = parts(stage.plugin.fields.config_schema.as_ref());
    let present = views::values_of(&stage.config);
    let own = stage.plugin.fields.description.as_deref().unwrap_or_default();
    let plugin_name = crate::server_fns::plugins::views::name_of(&stage.plugin);
    let mut edits = Edits::of(&seen);
    let shown_name = ConfigLine::from(stage.clone()).name;
    let name = match edits.is_own("name", "Name", &name, &shown_name) {
        true => named(&name, &plugin_name),
        false => Patch::Keep,
    };
    let shown_text = stage.config.fields.description.as_deref().unwrap_or_default();
    let is_own_text = edits.is_own("description", "Description", &description, shown_text);
    let policy = stage.config.fields.on_failure;
    let on_failure = match on_failure.as_deref().and_then(OnFailure::of) {
        Some(wanted) if edits.is_own("on_failure", ON_FAILURE, wanted.text(), policy.text()) => {
            Patch::Set(wanted)
        }
        Some(_) | None => Patch::Keep,
    };
    // Settings that the sender did not change keep their stored values.
    let sent: BTreeMap<&str, &str> =
        settings.iter().map(|one| (one.key.as_str(), one.value.as_str())).collect();
    let mut left_alone = BTreeSet::new();
    for (at, setting) in with_fields(&form).filter(|(_, setting)| !setting.secret) {
        let stored = present.get(&setting.key).map(shown).unwrap_or_default();
        let sent = sent.get(setting.key.as_str()).copied().unwrap_or_default();
        if !edits.is_own(&field(at, setting), &setting.name, sent, &stored) {
            left_alone.insert(setting.key.clone());
        }
    }
    edits.check()?;
    let settings: Vec<SentSetting> =
        settings.into_iter().filter(|one| !left_alone.contains(&one.key)).collect();
    let patch = PluginConfigPatch {
        config: Some(SentConfig(values(&form, &settings, present))),
        name,
        on_failure,
        description: match description.trim() {
            _ if !is_own_text => Patch::Keep,
            // The plugin's description is a default and is not stored in the config.
            text if text.is_empty() || text == own.trim() => Patch::Clear,
            text => Patch::Set(text.replace("\r\n", "\n")),
        },
        ..PluginConfigPatch::default()
    };
    let saved = services.plugin_configs.update(&ctx, &config, patch).await;
    saved.map_err(|error| at_field(error, &form))?;
    Ok(())
}

/// Enables or disables a config. The undo does the opposite.
#[server(prefix = "/_fn", endpoint = "switch_plugin_config")]
pub(crate) async fn switch_plugin_config(
    project: i64,
    config: String,
    #[server(default)] enabled: Option<String>,
) -> Result<(), UiError> {
    let (services, ctx) = enter_project(project).await?;
    let enabled = enabled.is_some_and(|word| word == "on");
    let (name, switched) = switch(&services, &ctx, &config, enabled).await;
    switched?;
    let project = project.to_string();
    let (text, back) = match enabled {
        true => (format!("Switched {name} on."), "off"),
        false => (format!("Switched {name} off."), "on"),
    };
    let fields = [("project", project.as_str()), ("config", config.as_str()), ("enabled", back)];
    notice_with_undo(&text, SwitchPluginConfig::PATH, &fields);
    Ok(())
}

/// Enables or disables a config. Returns its name too; the id if there is no such config.
#[cfg(feature = "ssr")]
pub(super) async fn switch(
    services: &Services,
    ctx: &ProjectCtx,
    config: &str,
    enabled: bool,
) -> (String, Result<(), UiError>) {
    use weir_model::Patch;

    let configs = &services.plugin_configs;
    let stage = match configs.stage(ctx, config).await {
        Ok(stage) => stage,
        Err(error) => return (config.to_owned(), Err(ui_error(error))),
    };
    let form = parts(stage.plugin.fields.config_schema.as_ref());
    let patch = PluginConfigPatch { enabled: Patch::Set(enabled), ..PluginConfigPatch::default() };
    let switched = configs.update(ctx, config, patch).await;
    // The settings are on another page, so the error names the missing setting.
    let switched = switched.map(drop).map_err(|error| match ui_error(error) {
        UiError::Field(fault) => {
            let key = fault.attr.as_deref().and_then(|attr| attr.strip_prefix("config__"));
            let named = crate::plugin_settings::settings(&form)
                .find(|setting| Some(setting.key.as_str()) == key)
                .map_or_else(String::new, |setting| format!("{}: ", setting.name));
            UiError::form(&fault.code, &format!("{named}{}", fault.detail))
        }
        other => other,
    });
    (ConfigLine::from(stage).name, switched)
}

/// Hides a config. It can be restored.
#[server(prefix = "/_fn", endpoint = "hide_plugin_config")]
pub(crate) async fn hide_plugin_config(project: i64, config: String) -> Result<(), UiError> {
    use weir_model::Patch;

    let (services, ctx, stage) = enter_config(project, &config).await?;
    let hidden = PluginConfigPatch { deleted: Patch::Set(true), ..PluginConfigPatch::default() };
    services.plugin_configs.update(&ctx, &config, hidden).await.map_err(ui_error)?;
    let line = ConfigLine::from(stage);
    let (was, number) = (if line.enabled { "on" } else { "off" }, project.to_string());
    let fields = [("project", number.as_str()), ("config", config.as_str()), ("enabled", was)];
    notice_with_undo(&format!("Deleted {}.", line.name), RestorePluginConfig::PATH, &fields);
    if line.transforms {
        go(&format!("/projects/{project}/{TRANSFORMATIONS}"));
    }
    Ok(())
}

/// Restores a hidden config with its settings.
#[server(prefix = "/_fn", endpoint = "restore_plugin_config")]
pub(crate) async fn restore_plugin_config(
    project: i64,
    config: String,
    #[server(default)] enabled: Option<String>,
) -> Result<(), UiError> {
    use weir_model::Patch;

    let (services, ctx, stage) = enter_config(project, &config).await?;
    let shown = PluginConfigPatch {
        deleted: Patch::Set(false),
        enabled: Patch::Set(enabled.is_some_and(|word| word == "on")),
        ..PluginConfigPatch::default()
    };
    services.plugin_configs.update(&ctx, &config, shown).await.map_err(ui_error)?;
    notice(&format!("Restored {}.", ConfigLine::from(stage).name));
    Ok(())
}

/// Deletes a config permanently, with its files, storage and waiting jobs, if its name
/// was typed.
#[server(prefix = "/_fn", endpoint = "delete_plugin_config")]
pub(crate) async fn delete_plugin_config(
    project: i64,
    config: String,
    typed_name: String,
) -> Result<(), UiError> {
    use crate::server_fns::plugins::refuse_other_name;

    let (services, ctx, stage) = enter_config(project, &config).await?;
    let line = ConfigLine::from(stage);
    refuse_other_name(&typed_name, &line.name)?;
    services.plugin_configs.delete(&ctx, &config).await.map_err(ui_error)?;
    let listed = services.plugins.get_listed(&ctx.org, &line.plugin).await;
    let path = match listed {
        Ok(found) if !line.transforms => crate::server_fns::plugins::plugin_path(
            &ctx.org.organization.to_string(),
            found.plugin_list.text(),
            &line.plugin,
        ),
        Ok(_) | Err(_) => format!("/projects/{project}/{TRANSFORMATIONS}"),
    };
    redirect_with_notice(&path, &format!("Deleted {} permanently.", line.name));
    Ok(())
}

/// Sets the order of the transformations to `wanted`, if the current order is `seen`.
/// Both are ids separated by commas. The undo sets the previous order. If another user was
/// faster, the error contains `wanted`, because the page asks which of both orders to use.
#[server(prefix = "/_fn", endpoint = "reorder_transformations")]
pub(crate) async fn reorder_transformations(
    project: i64,
    seen: String,
    wanted: String,
) -> Result<(), UiError> {
    use weir_service::plugin_configs::ORDER_CHANGED;

    let (services, ctx) = enter_project(project).await?;
    let reordered = services.plugin_configs.reorder(&ctx, &ids(&seen)?, &ids(&wanted)?).await;
    reordered.map_err(|error| match ui_error(error) {
        UiError::Field(fault) if fault.code == ORDER_CHANGED => {
            UiError::field("wanted", ORDER_CHANGED, &wanted)
        }
        other => other,
    })?;
    let project = project.to_string();
    let fields =
        [("project", project.as_str()), ("seen", wanted.as_str()), ("wanted", seen.as_str())];
    let text = "Changed the order of the transformations.";
    notice_with_undo(text, ReorderTransformations::PATH, &fields);
    Ok(())
}

/// Starts a job of the plugin.
#[server(prefix = "/_fn", endpoint = "run_plugin_job")]
pub(crate) async fn run_plugin_job(
    project: i64,
    config: String,
    job: String,
    #[server(default)] payload: String,
) -> Result<(), UiError> {
    use weir_model::plugin_configs::JobInput;

    let (services, ctx) = enter_project(project).await?;
    let payload = object("payload", &payload)?;
    let input = JobInput { kind: job.clone(), payload, operation: START.to_owned() };
    services.plugin_configs.job(&ctx, &config, Some(input)).await.map_err(
        |error| match ui_error(error) {
            UiError::Field(fault) => {
                let attr = fault.attr.as_deref().and_then(|attr| attr.strip_prefix("job__"));
                let field = if attr == Some("payload") { "payload" } else { "job" };
                UiError::field(field, &fault.code, &fault.detail)
            }
            other => other,
        },
    )?;
    notice(&format!("The job {job} was started. Its result appears in the log."));
    Ok(())
}

/// Lists log lines of a config, newest first.
#[server(prefix = "/_fn", endpoint = "list_plugin_logs")]
pub(crate) async fn list_plugin_logs(
    project: i64,
    config: String,
    limit: u32,
    offset: u32,
) -> Result<LogView, UiError> {
    use weir_model::pagination::Page;

    let (services, ctx) = enter_project(project).await?;
    let page = Page { limit: limit.min(1000).into(), offset: offset.into() };
    let found = services.plugin_configs.logs(&ctx, &config, page).await.map_err(ui_error)?;
    Ok(LogView::from(found))
}

/// Removes the file of a setting from a config.
#[server(prefix = "/_fn", endpoint = "remove_plugin_attachment")]
pub(crate) async fn remove_plugin_attachment(
    project: i64,
    config: String,
    key: String,
) -> Result<(), UiError> {
    let (services, ctx) = enter_project(project).await?;
    let patch =
        PluginConfigPatch { remove_attachments: vec![key.clone()], ..PluginConfigPatch::default() };
    services.plugin_configs.update(&ctx, &config, patch).await.map_err(ui_error)?;
    notice(&format!("Removed the file of {key}."));
    Ok(())
}

/// The operation of a job.
const START: &str = "start";

/// The change of the config's name. The plugin's name is a default and is not stored.
fn named(name: &str, of_plugin: &str) -> weir_model::Patch<String> {
    use weir_model::Patch;

    match name.trim() {
        "" => Patch::Clear,
        name if name == of_plugin => Patch::Clear,
        name => Patch::Set(name.to_owned()),
    }
}

/// Moves an error to the form field of the invalid setting.
#[cfg(feature = "ssr")]
fn at_field(error: weir_service::Error, form: &[crate::plugin_settings::Part]) -> UiError {
    match ui_error(error) {
        UiError::Field(fault) => {
            match fault.attr.as_deref().and_then(|attr| field_at(form, attr)) {
                Some(field) => UiError::field(&field, &fault.code, &fault.detail),
                None => UiError::Field(fault),
            }
        }
        other => other,
    }
}

/// Parses a JSON object. An empty text is an empty object.
pub(super) fn object(
    field: &str,
    text: &str,
) -> Result<serde_json::Map<String, serde_json::Value>, UiError> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(serde_json::Map::new());
    }
    match parse(text, VALUES) {
        Ok(serde_json::Value::Object(object)) => Ok(object),
        Ok(_) => Err(UiError::field(field, "invalid_input", "Enter a JSON object: {\"a\": 1}.")),
        Err(Unparsed::Malformed(error)) => {
            let detail = format!("This is no JSON: {error}.");
            Err(UiError::field(field, "invalid_input", &detail))
        }
        Err(fault) => Err(UiError::field(field, "invalid_input", &fault.sentence())),
    }
}

fn ids(text: &str) -> Result<Vec<PluginConfigId>, UiError> {
    let wrong = |_| UiError::form("invalid_input", "The order could not be read.");
    let words = text.split(',').filter(|word| !word.is_empty());
    words.map(|word| word.trim().parse::<PluginConfigId>().map_err(wrong)).collect()
}

#[cfg(test)]
mod tests {
    use weir_model::Patch;

    use super::{ids, named, object};

    #[test]
    fn a_config_named_like_its_plugin_has_no_own_name() {
        assert_eq!(named(" ", "Tea"), Patch::Clear);
        assert_eq!(named("Tea ", "Tea"), Patch::Clear);
        assert_eq!(named("Mint", "Tea"), Patch::Set("Mint".to_owned()));
    }

    #[test]
    fn orders_and_objects_are_parsed() {
        assert_eq!(ids("3,1,2").unwrap().len(), 3);
        assert!(ids("").unwrap().is_empty());
        assert!(ids("1,x").is_err());
        assert!(object("payload", " ").unwrap().is_empty());
        assert_eq!(object("payload", r#"{"a": 1}"#).unwrap()["a"], 1);
        for bad in ["[]", "{", "7"] {
            assert_eq!(object("payload", bad).unwrap_err().attr(), Some("payload"), "{bad}");
        }
    }
}
