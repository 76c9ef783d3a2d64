use std::sync::Arc;

use serde_json::{Map, Value, json};
use weir_model::pagination::Page;
use weir_model::plugin_configs::{
    JOBS_MAX, JobInput, LogLevel, PluginConfig, PluginConfigInput, PluginConfigPatch,
    SentAttachment, SentConfig,
};
use weir_model::plugins::address::CodeSource;
use weir_model::plugins::{Group, PluginInput, PluginPatch};
use weir_model::{Patch, PluginConfigId};
use weir_store::ids;
use weir_store::plugin_configs::{self as rows, ConfigRow, Created};
use weir_store::plugin_runtime::health::{self, Note};
use weir_store::sealing::{SealedField, with_other_keys};

use super::values::{Opened, location_of_attachment};
use super::{Failing, Numbers, ORDER_CHANGED, RunningConfigs, Sample};
use crate::Services;
use crate::ctx::ProjectCtx;
use crate::error::Error;
use crate::sealing::Sealer;
use crate::test_support::{ada, set_up, set_up_with_mail};

fn map(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

async fn project(services: &Services) -> ProjectCtx {
    let ctx = ada(services).await;
    services.projects.enter(&ctx, "@current").await.unwrap()
}

/// A config of a plugin with a secret setting and a file setting.
async fn made(services: &Services, project: &ProjectCtx) -> PluginConfig {
    let schema = json!({
        "token": {"type": "string", "secret": true}, "host": {"type": "string"},
        "key": {"type": "attachment", "secret": true},
    });
    let fields = PluginPatch { config_schema: Patch::Set(map(schema)), ..PluginPatch::default() };
    let input = PluginInput { fields, ..PluginInput::default() };
    let plugin = services.plugins.create(&project.org, Group::Destinations, input).await.unwrap();
    let attachment = SentAttachment {
        key: "key".to_owned(),
        name: "key.json".to_owned(),
        media_type: "application/json".to_owned(),
        contents: vec![0, 255, b'{'],
    };
    let input = PluginConfigInput {
        plugin: plugin.id,
        order: 1,
        rest: PluginConfigPatch {
            config: Some(SentConfig(map(json!({"token": "hunter2", "host": "h"})))),
            add_attachments: vec![attachment],
            ..PluginConfigPatch::default()
        },
    };
    services.plugin_configs.create(project, input).await.unwrap()
}

async fn row(services: &Services, project: &ProjectCtx, id: PluginConfigId) -> ConfigRow {
    let store = &services.plugin_configs.core.store;
    let found = rows::rows(store, project.project, &[id]).await.unwrap();
    found.into_iter().next().unwrap()
}

/// The secrets and the contents of the attachment.
async fn opened(services: &Services, sealer: &Sealer, row: &ConfigRow) -> (Value, Vec<u8>) {
    let store = &services.plugin_configs.core.store;
    let secrets = Opened::of(sealer, row).unwrap().secrets;
    let uid = row.attachments[0].uid;
    let found = with_other_keys(store, SealedField::PluginAttachment, "none", 10).await.unwrap();
    let attached = found.into_iter().find(|one| one.record == uid.to_string()).unwrap();
    let place = location_of_attachment(row.organization, uid);
    (Value::Object(secrets), sealer.open(&place, &attached.sealed).unwrap().bytes().to_vec())
}

/// A patch that changes only values.
fn sent(config: Value) -> PluginConfigPatch {
    PluginConfigPatch { config: Some(SentConfig(map(config))), ..PluginConfigPatch::default() }
}

/// What running plugins may do with the configs of these services.
fn running(services: &Services) -> RunningConfigs {
    RunningConfigs::new(Arc::clone(&services.plugin_configs.core))
}

#[tokio::test]
async fn what_is_sealed_opens_to_what_was_sent() {
    let services = set_up().await;
    let project = project(&services).await;
    let config = made(&services, &project).await;
    let sealer = &services.plugin_configs.core.sealer;
    let stored = row(&services, &project, config.id).await;
    assert_eq!(stored.values, r#"{"host":"h"}"#);
    let expected = (json!({"token": "hunter2"}), vec![0, 255, b'{']);
    assert_eq!(opened(&services, sealer, &stored).await, expected);

    // A change without the secret keeps it.
    let id = config.id.to_string();
    for (change, token) in [
        (json!({"host": "h"}), "hunter2"),
        (json!({"host": "h", "token": null}), "hunter2"),
        (json!({"host": "h", "token": "(secret)"}), "hunter2"),
        (json!({"host": "h", "token": "new"}), "new"),
    ] {
        services.plugin_configs.update(&project, &id, sent(change)).await.unwrap();
        let stored = row(&services, &project, config.id).await;
        let expected = (json!({"token": token}), vec![0, 255, b'{']);
        assert_eq!(opened(&services, sealer, &stored).await, expected);
    }
}

#[tokio::test]
async fn what_becomes_a_secret_keeps_like_one() {
    let services = set_up().await;
    let project = project(&services).await;
    let sealer = &services.plugin_configs.core.sealer;
    // The answer sent back, then without the key, then with null.
    for change in [
        json!({"token": "(secret)", "host": "(secret)", "own": 1}),
        json!({"own": 1}),
        json!({"host": null, "own": 1}),
    ] {
        let config = made(&services, &project).await;
        let (group, plugin) = (Group::Destinations, config.plugin.to_string());
        let schema = json!({"host": {"type": "string", "secret": true}});
        let patch =
            PluginPatch { config_schema: Patch::Set(map(schema)), ..PluginPatch::default() };
        let plugins = &services.plugins;
        let changeable = plugins.changeable(&project.org, group, &plugin, false).await.unwrap();
        plugins.update(&project.org, changeable, patch).await.unwrap();
        let id = config.id.to_string();
        services.plugin_configs.update(&project, &id, sent(change.clone())).await.unwrap();
        let opened = Opened::of(sealer, &row(&services, &project, config.id).await).unwrap();
        let expected = json!({"token": "hunter2", "host": "h"});
        assert_eq!(Value::Object(opened.secrets), expected, "{change}");
        assert_eq!(Value::Object(opened.shown), json!({"own": 1}), "{change}");
    }
}

#[tokio::test]
async fn a_project_has_room_for_so_many() {
    let services = set_up().await;
    let project = project(&services).await;
    let config = made(&services, &project).await;
    let store = &services.plugin_configs.core.store;
    let present = row(&services, &project, config.id).await;
    // Hidden configs count too.
    for (room, expected) in [(2, Created::Yes), (2, Created::TooMany), (3, Created::Yes)] {
        let new = ConfigRow {
            id: rows::next_number(store).await.unwrap(),
            attachments: Vec::new(),
            deleted: true,
            revision: ids::time_ordered(project.org.ctx.now),
            ..present.clone()
        };
        for _ in 0..2 {
            // The second run is a retry after a lost answer.
            let created = rows::create(store, &new, &[], room, 20, &[]).await.unwrap();
            assert_eq!(created, expected);
        }
    }
    assert_eq!(rows::positions(store, project.project).await.unwrap().len(), 3);
}

#[tokio::test]
async fn what_was_changed_meanwhile_is_not_deleted() {
    let services = set_up().await;
    let project = project(&services).await;
    let config = made(&services, &project).await;
    let store = &services.plugin_configs.core.store;
    let before = row(&services, &project, config.id).await.revision;
    let id = config.id.to_string();
    services
        .plugin_configs
        .update(&project, &id, sent(json!({"host": "h", "token": "new"})))
        .await
        .unwrap();
    let delete = async |revision| {
        rows::delete(store, project.project, config.id, revision, &[]).await.unwrap()
    };
    assert!(!delete(before).await);
    let now = row(&services, &project, config.id).await.revision;
    assert!(delete(now).await);
    assert!(rows::rows(store, project.project, &[config.id]).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_sealed_text_opens_only_at_its_location() {
    let services = set_up().await;
    let project = project(&services).await;
    let (one, other) = (made(&services, &project).await, made(&services, &project).await);
    let sealer = &services.plugin_configs.core.sealer;
    let one = row(&services, &project, one.id).await;
    let other = row(&services, &project, other.id).await;
    let copied = ConfigRow { secrets: one.secrets.clone(), ..other };
    assert!(Opened::of(sealer, &copied).is_err());
}

#[tokio::test]
async fn a_change_of_the_key_finds_what_is_sealed() {
    let services = set_up().await;
    let project = project(&services).await;
    let config = made(&services, &project).await;
    let store = &services.plugin_configs.core.store;
    for field in [SealedField::PluginConfigSecrets, SealedField::PluginAttachment] {
        let found = weir_store::sealing::with_other_keys(store, field, "none", 10).await.unwrap();
        assert_eq!(found.len(), 1, "{field:?}");
        assert_eq!(found[0].organization, project.org.organization);
        let expected = match field {
            SealedField::PluginConfigSecrets => config.id.to_string(),
            _ => row(&services, &project, config.id).await.attachments[0].uid.to_string(),
        };
        assert_eq!(found[0].record, expected);
    }
}

#[tokio::test]
async fn so_many_jobs_may_wait() {
    let services = set_up().await;
    let project = project(&services).await;
    let config = made(&services, &project).await;
    let (group, plugin) = (Group::Destinations, config.plugin.to_string());
    let plugins = &services.plugins;
    let changeable = plugins.changeable(&project.org, group, &plugin, false).await.unwrap();
    let jobs = Patch::Set(map(json!({"import": {}})));
    let patch = PluginPatch { public_jobs: jobs, ..PluginPatch::default() };
    plugins.update(&project.org, changeable, patch).await.unwrap();
    let id = config.id.to_string();
    let start = async || {
        let job = JobInput { kind: "import".to_owned(), ..JobInput::default() };
        services.plugin_configs.job(&project, &id, Some(job)).await
    };
    for _ in 0..JOBS_MAX {
        start().await.unwrap();
    }
    let refused = start().await;
    assert!(matches!(refused, Err(Error::TooMany { code: "too_many_jobs", .. })));
}

#[tokio::test]
async fn what_a_plugin_runs_with_is_in_the_clear() {
    let services = set_up().await;
    let project = project(&services).await;
    let config = made(&services, &project).await;
    let stored = row(&services, &project, config.id).await;
    let opened = running(&services).open(&stored).await.unwrap();
    assert_eq!(Value::Object(opened.values), json!({"token": "hunter2", "host": "h"}));
    let [attachment] = opened.attachments.as_slice() else { panic!("one is attached") };
    assert_eq!((attachment.key.as_str(), attachment.name.as_str()), ("key", "key.json"));
    assert_eq!(attachment.contents, [0, 255, b'{']);
}

#[tokio::test]
async fn administrators_get_mail_about_a_failing_config() {
    let services = set_up_with_mail().await;
    let project = project(&services).await;
    let config = made(&services, &project).await;
    let id = config.id.to_string();
    let enable = PluginConfigPatch { enabled: Patch::Set(true), ..PluginConfigPatch::default() };
    services.plugin_configs.update(&project, &id, enable).await.unwrap();
    let failed = row(&services, &project, config.id).await;
    let running = running(&services);
    let off = || running.switch_off(&failed, "no tea");
    assert!(off().await.unwrap());
    let shown = services.plugin_configs.get(&project, &id).await.unwrap();
    let error = shown.fields.error.unwrap();
    assert_eq!((shown.fields.enabled, error.message()), (false, "no tea"));
    // No second mail is sent.
    assert!(!off().await.unwrap());
    assert_eq!(services.mails.waiting().await.unwrap(), 1);
}

#[tokio::test]
async fn a_second_config_of_location_is_warned_of() {
    let services = set_up().await;
    let project = project(&services).await;
    let url = Some(CodeSource::read("inline:location").unwrap());
    let input = PluginInput { url, ..PluginInput::default() };
    let plugin = services.plugins.create(&project.org, Group::Destinations, input).await.unwrap();
    let configs = &services.plugin_configs;
    let made = async |enabled: bool| {
        let rest = PluginConfigPatch { enabled: Patch::Set(enabled), ..sent(json!({})) };
        let input = PluginConfigInput { plugin: plugin.id, order: 1, rest };
        configs.create(&project, input).await.unwrap().id.to_string()
    };
    let logged = async |config: &str| {
        let page = Page { limit: 10, offset: 0 };
        configs.logs(&project, config, page).await.unwrap().results
    };
    let (first, second) = (made(true).await, made(false).await);
    assert!(logged(&first).await.is_empty() && logged(&second).await.is_empty());
    let enable = PluginConfigPatch { enabled: Patch::Set(true), ..PluginConfigPatch::default() };
    configs.update(&project, &second, enable).await.unwrap();
    let lines = logged(&second).await;
    assert_eq!((lines.len(), lines[0].kind), (1, LogLevel::Warn));
    assert!(lines[0].message.contains(&format!("config {first} ")), "{}", lines[0].message);
    assert!(logged(&first).await.is_empty());
    assert_eq!(logged(&made(true).await).await.len(), 1);
}

#[tokio::test]
async fn steps_of_the_catalogue_judge_their_values() {
    let services = set_up().await;
    let project = project(&services).await;
    let url = Some(CodeSource::read("inline:url-normalisation").unwrap());
    let input = PluginInput { url, ..PluginInput::default() };
    let plugin = services.plugins.create(&project.org, Group::Destinations, input).await.unwrap();
    let config = |pattern: &str| PluginConfigInput {
        plugin: plugin.id,
        order: 1,
        rest: sent(json!({"pattern": pattern})),
    };
    let refused = services.plugin_configs.create(&project, config("(")).await;
    let Err(Error::Invalid(fault)) = refused else { panic!("it was not refused") };
    assert_eq!(fault.attr.as_deref(), Some("config__pattern"));
    assert!(services.plugin_configs.create(&project, config("[0-9]+")).await.is_ok());
}

/// A config of a step of the catalogue, at the end of the list.
async fn step(services: &Services, project: &ProjectCtx, id: &str) -> PluginConfig {
    let url = Some(CodeSource::read(&format!("inline:{id}")).unwrap());
    let input = PluginInput { url, ..PluginInput::default() };
    let plugin = services.plugins.create(&project.org, Group::Destinations, input).await.unwrap();
    let order = services.plugin_configs.last_order(project).await.unwrap();
    let input = PluginConfigInput { plugin: plugin.id, order, rest: PluginConfigPatch::default() };
    services.plugin_configs.create(project, input).await.unwrap()
}

#[tokio::test]
async fn an_order_that_others_changed_is_not_overwritten() {
    let services = set_up().await;
    let project = project(&services).await;
    let configs = &services.plugin_configs;
    let first = step(&services, &project, "bot-filter").await.id;
    // A plugin that does not change events is not in the order.
    made(&services, &project).await;
    let second = step(&services, &project, "location").await.id;
    let order = async || configs.transformations(&project).await.unwrap();
    assert_eq!(order().await, [first, second]);
    configs.reorder(&project, &[first, second], &[second, first]).await.unwrap();
    assert_eq!(order().await, [second, first]);
    let refused = configs.reorder(&project, &[first, second], &[first, second]).await;
    assert!(matches!(refused, Err(Error::Conflict { code: ORDER_CHANGED, .. })));
    let other = configs.reorder(&project, &[second, first], &[second]).await;
    assert!(matches!(other, Err(Error::Invalid(_))));
    assert_eq!(order().await, [second, first]);
}

#[tokio::test]
async fn failing_transformations_are_counted_apart() {
    let services = set_up().await;
    let project = project(&services).await;
    let configs = &services.plugin_configs;
    let transformation = step(&services, &project, "bot-filter").await;
    let sound = step(&services, &project, "location").await;
    let destination = made(&services, &project).await;
    let hidden = step(&services, &project, "remove-null-properties").await;
    let hide = PluginConfigPatch { deleted: Patch::Set(true), ..PluginConfigPatch::default() };
    configs.update(&project, &hidden.id.to_string(), hide).await.unwrap();
    assert_eq!(configs.failing(&project).await.unwrap(), Failing::default());
    let hour = configs.core.clock.now().micros().div_euclid(3_600_000_000);
    let note = |config: &PluginConfig, failed: u64| Note {
        config: config.id,
        project: project.project,
        hour,
        succeeded: 1,
        failed,
        dropped: 0,
        fault: None,
    };
    let notes =
        [note(&transformation, 2), note(&sound, 0), note(&destination, 1), note(&hidden, 1)];
    health::note(&configs.core.store, &notes).await.unwrap();
    let failing = Failing { transformations: 1, others: 1 };
    assert_eq!(configs.failing(&project).await.unwrap(), failing);
}

#[tokio::test]
async fn stages_name_the_plugin_and_hidden_configs() {
    let services = set_up().await;
    let project = project(&services).await;
    let configs = &services.plugin_configs;
    let (kept, hidden) =
        (step(&services, &project, "bot-filter").await, made(&services, &project).await);
    let hide = PluginConfigPatch { deleted: Patch::Set(true), ..PluginConfigPatch::default() };
    configs.update(&project, &hidden.id.to_string(), hide).await.unwrap();
    let stages = configs.stages(&project).await.unwrap();
    let stage_names: Vec<_> = stages.iter().map(|one| (one.config.id, one.transforms)).collect();
    assert_eq!(stage_names.len(), 2);
    assert!(stage_names.contains(&(kept.id, true)) && stage_names.contains(&(hidden.id, false)));
    let stage = configs.stage(&project, &hidden.id.to_string()).await.unwrap();
    assert_eq!((stage.config.fields.deleted, stage.plugin.id), (true, hidden.plugin));
    assert_eq!(stage.numbers, Numbers::default());
    assert_eq!(configs.why_not_change(&project).await.unwrap(), None);
}

#[tokio::test]
async fn a_trial_shows_the_event_before_and_after() {
    let services = set_up().await;
    let project = project(&services).await;
    let configs = &services.plugin_configs;
    let config = step(&services, &project, "bot-filter").await.id.to_string();
    let sample = Sample::Given(map(json!({"event": "brewed", "properties": {"cups": 2}})));
    let tried = configs.compare(&project, Some(&config), sample).await.unwrap();
    assert!(tried.before.text().contains(r#""event":"brewed""#));
    // The stand-in changes nothing.
    assert_eq!((tried.run.event, tried.run.results.len()), (Some(tried.before), 1));
    let none = configs.compare(&project, None, Sample::Newest).await.unwrap();
    assert!(none.run.results.is_empty());
    let missing = configs.compare(&project, None, Sample::Stored(uuid::Uuid::nil())).await;
    assert!(matches!(missing, Err(Error::NotFound(_))));
}
