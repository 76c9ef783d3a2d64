//! Data of running plugins, on a store in memory.

use surrealdb::types::SurrealValue;
use uuid::Uuid;
use weir_model::plugin_configs::{LogLevel, LogSource};
use weir_model::plugins::{PluginType, PluginsAccess};
use weir_model::{OrganizationId, PluginConfigId, PluginId, ProjectId, Timestamp};

use super::cursors::{Cursor, cursor, save_cursor};
use super::health::{Fault, Note};
use super::logs::Line;
use super::storage::Bounds;
use super::{PluginChange, health, logs, registry, storage, switch_off, tasks};
use crate::bind::bind;
use crate::db::Statement;
use crate::plugin_configs::{self as configs, ConfigRow, Created, NewContents};
use crate::plugins::{self, NewSource, PluginRow};
use crate::update::tests::replace;
use crate::{Error, Location, Settings, Store, organizations, update};

const HOME: OrganizationId = OrganizationId(Uuid::from_u128(1));
const PROJECT: ProjectId = ProjectId(1);
const OTHER: ProjectId = ProjectId(2);
const CONFIG: PluginConfigId = PluginConfigId(7);
const GONE: PluginConfigId = PluginConfigId(99);

const PUT: Statement = Statement::write(
    "test organization",
    "UPSERT type::record('organization', $row.uuid)
         CONTENT object::extend($row, { plugins_access: NONE });
     UPSERT project:1 CONTENT { organization: $row.uuid };
     UPSERT project:2 CONTENT { organization: $row.uuid };",
);

const PUT_OTHER: Statement = Statement::write(
    "test other organization",
    "UPSERT type::record('organization', $organization) CONTENT { uuid: $organization };",
);

fn at(second: i64) -> Timestamp {
    Timestamp::EPOCH.plus_seconds(second)
}

fn plugin(number: i64) -> PluginRow {
    PluginRow {
        id: PluginId(number),
        organization: HOME,
        created_group: None,
        is_analysed: false,
        plugin_type: Some(PluginType::Source),
        name: None,
        description: None,
        url: None,
        private_token: None,
        icon: None,
        config_schema: None,
        tag: None,
        latest_tag: None,
        latest_tag_checked_at: None,
        is_global: false,
        was_global: false,
        capabilities: None,
        metrics: None,
        public_jobs: None,
        created_at: at(0),
        updated_at: at(0),
        revision: Uuid::from_u128(u128::try_from(number).unwrap()),
    }
}

fn config(number: i64, order: i64, plugin: i64) -> ConfigRow {
    ConfigRow {
        id: PluginConfigId(number),
        organization: HOME,
        project: PROJECT,
        plugin: PluginId(plugin),
        enabled: true,
        order,
        values: "{}".to_owned(),
        secrets: None,
        secret_keys: Vec::new(),
        attachments: Vec::new(),
        name: None,
        description: None,
        deleted: false,
        on_failure: None,
        created_at: at(0),
        updated_at: at(0),
        revision: Uuid::from_u128(u128::try_from(number).unwrap()),
        web_token: "token".to_owned(),
    }
}

/// A store with a plugin and an enabled config of it.
async fn store() -> Store {
    let store = Store::open(&Location::Memory, Settings::default()).await.unwrap();
    let row = organizations::OrganizationRow::new(HOME, at(0));
    store.db.run(PUT, bind! { row: row }).await.unwrap();
    let source = NewSource {
        change: ["index.js", "frontend.tsx", "site.ts"]
            .map(|name| (name.to_owned(), Some("1".to_owned())))
            .into(),
        build: Some(plugins::build::Build {
            site: Some("()".to_owned()),
            ..plugins::build::Build::default()
        }),
    };
    let made = plugins::create(&store, &plugin(1), &source, 9, &[]).await.unwrap();
    assert_eq!(made, plugins::Created::Yes);
    put(&store, &config(7, 1, 1)).await;
    store
}

async fn put(store: &Store, row: &ConfigRow) {
    let made = configs::create(store, row, &[], 100, 100, &[]).await.unwrap();
    assert_eq!(made, Created::Yes);
}

/// A note about the config as it was created.
fn note(hour: i64, succeeded: u64, failed: u64, fault: Option<Fault>) -> Note {
    let fault = fault.map(|fault| (config(7, 1, 1).revision, fault));
    Note { config: CONFIG, project: PROJECT, hour, succeeded, failed, dropped: 1, fault }
}

fn fault(message: &str, second: i64) -> Fault {
    Fault { message: message.to_owned(), at: at(second), sample: Some("{}".to_owned()) }
}

fn line(message: &str) -> Line {
    Line {
        config: CONFIG,
        at: at(1),
        source: LogSource::Console,
        level: LogLevel::Warn,
        message: message.to_owned(),
    }
}

#[tokio::test]
async fn what_is_enabled_comes_in_its_order() {
    let store = store().await;
    let other = plugin(2);
    plugins::create(&store, &other, &NewSource::default(), 9, &[]).await.unwrap();
    put(&store, &config(8, 0, 2)).await;
    put(&store, &ConfigRow { enabled: false, ..config(9, 0, 2) }).await;
    let enabled = registry::running_with_source(&store, PROJECT).await.unwrap();
    let ids: Vec<i64> = enabled.iter().map(|one| one.config.id.0).collect();
    assert_eq!(ids, [8, 7]);
    assert_eq!(enabled[0].plugin, other);
    let files: Vec<&String> = enabled[1].files.keys().collect();
    assert_eq!(files, ["index.js"]);
    let site = registry::site_apps(&store, PROJECT).await.unwrap();
    assert!(site.len() == 1 && site[0].0.id == CONFIG);
    assert!(registry::running_with_source(&store, OTHER).await.unwrap().is_empty());
    assert_eq!(registry::enabled_projects(&store).await.unwrap(), [PROJECT]);
}

#[tokio::test]
async fn nothing_runs_where_the_organization_may_not_configure_plugins() {
    let store = store().await;
    for (access, runs) in [(PluginsAccess::None, 0), (PluginsAccess::Config, 1)] {
        let change = |row: &organizations::OrganizationRow| {
            let row = row.clone();
            let after = organizations::OrganizationRow { plugins_access_level: access, ..row };
            Ok::<_, crate::Error>(Some((after, Vec::new())))
        };
        assert!(update::update(&store, HOME, (), change).await.unwrap().stored().is_some());
        assert_eq!(registry::running_with_source(&store, PROJECT).await.unwrap().len(), runs);
        assert_eq!(registry::site_apps(&store, PROJECT).await.unwrap().len(), runs);
    }
}

#[tokio::test]
async fn what_is_no_longer_offered_runs_where_it_is_configured() {
    let store = store().await;
    let other = OrganizationId(Uuid::from_u128(2));
    store.db.run(PUT_OTHER, bind! { organization: other.0 }).await.unwrap();
    let offered = PluginRow { organization: other, is_global: true, was_global: true, ..plugin(2) };
    plugins::create(&store, &offered, &NewSource::default(), 9, &[]).await.unwrap();
    put(&store, &config(8, 0, 2)).await;
    let taken = PluginRow { is_global: false, revision: Uuid::from_u128(20), ..offered.clone() };
    replace(&store, taken.id, &taken, NewSource::default()).await;
    let enabled = registry::running_with_source(&store, PROJECT).await.unwrap();
    let ids: Vec<i64> = enabled.iter().map(|one| one.config.id.0).collect();
    assert_eq!(ids, [8, 7]);
    let read = configs::briefs_of_plugin(&store, PluginId(2)).await.unwrap();
    assert_eq!(read.iter().map(|brief| brief.id).collect::<Vec<_>>(), [PluginConfigId(8)]);
    let deleted = plugins::delete(&store, other, PluginId(2), &read, &[]).await;
    assert_eq!(deleted.unwrap(), plugins::Deleted::Yes);
    assert_eq!(registry::running_with_source(&store, PROJECT).await.unwrap().len(), 1);
}

#[tokio::test]
async fn every_change_is_notified() {
    let store = store().await;
    let mut changes = store.plugin_changes();
    let before = config(7, 1, 1);
    let after = ConfigRow { revision: Uuid::from_u128(8), ..before.clone() };
    replace(&store, CONFIG, &after, NewContents { most: 20, ..NewContents::default() }).await;
    assert_eq!(changes.try_recv(), Ok(PluginChange::Project(PROJECT)));
    assert!(configs::delete(&store, PROJECT, CONFIG, after.revision, &[]).await.unwrap());
    assert_eq!(changes.try_recv(), Ok(PluginChange::Project(PROJECT)));
    plugins::delete(&store, HOME, PluginId(1), &[], &[]).await.unwrap();
    assert_eq!(changes.try_recv(), Ok(PluginChange::Plugin(PluginId(1))));
    assert!(changes.try_recv().is_err());
}

#[tokio::test]
async fn counts_add_up_and_the_last_fault_stays() {
    let store = store().await;
    let notes = [
        note(1_000, 5, 1, Some(fault("older", 1))),
        note(1_001, 7, 2, Some(fault("newer", 2))),
        note(1_001, 1, 0, None),
    ];
    health::note(&store, &notes).await.unwrap();
    health::note(&store, &[note(1_001, 1, 0, None)]).await.unwrap();
    let health = async |since| {
        health::health(&store, &[CONFIG, GONE], since).await.unwrap()[&CONFIG].clone()
    };
    let all = health(0).await;
    assert_eq!((all.succeeded, all.failed, all.dropped), (14, 3, 4));
    assert_eq!(all.fault, Some(fault("newer", 2)));
    assert_eq!(health(1_001).await.succeeded, 9);

    // Old counts are removed, and a change of the config clears the fault.
    health::note(&store, &[note(1_001 + 192, 1, 0, None)]).await.unwrap();
    assert_eq!(health(0).await.succeeded, 1);
    let before = config(7, 1, 1);
    let after = ConfigRow { revision: Uuid::from_u128(8), ..before.clone() };
    replace(&store, CONFIG, &after, NewContents { most: 20, ..NewContents::default() }).await;
    assert_eq!(health(0).await.fault, None);
}

#[tokio::test]
async fn notes_about_what_is_not_there_are_skipped() {
    let store = store().await;
    let gone = Note { config: GONE, ..note(1, 1, 0, None) };
    let foreign = Note { project: OTHER, ..note(1, 1, 0, None) };
    health::note(&store, &[gone, foreign]).await.unwrap();
    let health = health::health(&store, &[CONFIG, GONE], 0).await.unwrap();
    assert!(health.values().all(|health| *health == health::Health::default()));
}

#[tokio::test]
async fn samples_and_messages_are_cut() {
    let store = store().await;
    let long = Fault { message: "ä".repeat(9_000), at: at(1), sample: Some("ä".repeat(9_000)) };
    health::note(&store, &[note(1, 0, 1, Some(long))]).await.unwrap();
    let found = health::health(&store, &[CONFIG], 0).await.unwrap()[&CONFIG].fault.clone();
    let found = found.unwrap();
    assert_eq!((found.message.len(), found.sample.unwrap().len()), (2_000, 4_096));
}

#[tokio::test]
async fn what_keeps_failing_is_switched_off_once() {
    let store = store().await;
    let failed = config(7, 1, 1);
    let off = || switch_off(&store, &failed, at(9), "too often", &[], &[]);
    assert!(off().await.unwrap());
    assert!(!off().await.unwrap());
    let row = configs::rows(&store, PROJECT, &[CONFIG]).await.unwrap().remove(0);
    assert!(!row.enabled && row.updated_at == at(9) && row.revision != Uuid::from_u128(7));
    assert_eq!(row.web_token, "token");
    assert!(!configs::of_plugin(&store, PluginId(1)).await.unwrap()[0].enabled);
    assert!(registry::running_with_source(&store, PROJECT).await.unwrap().is_empty());
    let health = health::health(&store, &[CONFIG], 0).await.unwrap();
    assert_eq!(health[&CONFIG].fault.as_ref().unwrap().message, "too often");
    // A late note about a fault does not replace the reason.
    health::note(&store, &[note(1, 0, 3, Some(fault("no tea", 10)))]).await.unwrap();
    let health = health::health(&store, &[CONFIG], 0).await.unwrap();
    assert_eq!(health[&CONFIG].failed, 3);
    assert_eq!(health[&CONFIG].fault, Some(Fault { at: at(9), ..fault("too often", 10) }));
    for other in
        [ConfigRow { project: OTHER, ..config(7, 1, 1) }, ConfigRow { id: GONE, ..config(7, 1, 1) }]
    {
        assert!(!switch_off(&store, &other, at(9), "x", &[], &[]).await.unwrap());
    }
}

#[tokio::test]
async fn a_fault_before_a_change_is_not_reported_after_it() {
    let store = store().await;
    let before = config(7, 1, 1);
    let after = ConfigRow { revision: Uuid::from_u128(8), updated_at: at(5), ..before.clone() };
    replace(&store, CONFIG, &after, NewContents { most: 20, ..NewContents::default() }).await;
    // An event from before the change failed after it.
    health::note(&store, &[note(1, 0, 1, Some(fault("late", 6)))]).await.unwrap();
    let health =
        async || health::health(&store, &[CONFIG], 0).await.unwrap().remove(&CONFIG).unwrap();
    let found = health().await;
    assert_eq!((found.failed, found.fault), (1, None));
    // It does not disable the changed config either.
    assert!(!switch_off(&store, &before, at(7), "too often", &[], &[]).await.unwrap());
    let new = Note { fault: Some((after.revision, fault("new", 4))), ..note(1, 0, 1, None) };
    health::note(&store, &[new]).await.unwrap();
    assert_eq!(health().await.fault, Some(fault("new", 4)));
    assert!(switch_off(&store, &after, at(9), "too often", &[], &[]).await.unwrap());
}

#[tokio::test]
async fn what_is_switched_off_keeps_the_event_that_it_failed_with() {
    let store = store().await;
    health::note(&store, &[note(1, 0, 20, Some(fault("no tea", 1)))]).await.unwrap();
    assert!(switch_off(&store, &config(7, 1, 1), at(9), "too often", &[], &[]).await.unwrap());
    let health = health::health(&store, &[CONFIG], 0).await.unwrap();
    assert_eq!(health[&CONFIG].fault, Some(fault("too often", 9)));
}

#[tokio::test]
async fn the_newest_lines_are_kept_newest_first() {
    let store = store().await;
    let lines: Vec<Line> = (1..=600).map(|n| line(&n.to_string())).collect();
    // Each statement has to end within the time of a statement.
    for part in lines.chunks(200).chain(lines.chunks(200)) {
        logs::append(&store, part).await.unwrap();
    }
    let gone = Line { config: GONE, ..line("gone") };
    logs::append(&store, &[gone]).await.unwrap();
    let (count, page) = logs::page(&store, CONFIG, 1, 2).await.unwrap();
    assert_eq!(count, 1_000);
    let messages: Vec<&str> = page.iter().map(|one| one.line.message.as_str()).collect();
    assert_eq!(messages, ["599", "598"]);
    assert_eq!(page[0].line, line("599"));
    assert_eq!(logs::page(&store, CONFIG, 0, 5_000).await.unwrap().1.len(), 1_000);
    assert!(logs::page(&store, CONFIG, 1_000, 10).await.unwrap().1.is_empty());
    assert_eq!(logs::page(&store, GONE, 0, 10).await.unwrap(), (0, Vec::new()));
}

#[tokio::test]
async fn storage_has_bounds() {
    let store = store().await;
    let bounds = Bounds { keys: 2, bytes: 10 };
    let set = async |key: &str, value: &str| {
        storage::set(&store, PROJECT, CONFIG, key, value, bounds).await.unwrap()
    };
    assert!(set("a", "1").await && set("b", "22").await && set("b", "333").await);
    assert!(!set("c", "1").await, "a third key");
    assert!(!set("a", "1234567").await, "too many bytes");
    assert!(!set(&"x".repeat(201), "1").await);
    let get = async |key: &str| storage::get(&store, CONFIG, key).await.unwrap();
    assert_eq!(get("b").await.as_deref(), Some("333"));
    for _ in 0..2 {
        storage::remove(&store, CONFIG, "b").await.unwrap();
    }
    assert_eq!(get("b").await, None);
    assert!(set("c", "1234567").await, "there is room again");
    let usual = Bounds::USUAL;
    assert!(!storage::set(&store, OTHER, CONFIG, "a", "1", usual).await.unwrap());
    assert!(!storage::set(&store, PROJECT, GONE, "a", "1", usual).await.unwrap());
}

#[tokio::test]
async fn concurrent_increments_are_all_counted() {
    let store = store().await;
    let by = |by| storage::increment(&store, CONFIG, "n", by);
    let (one, other, third) = tokio::join!(by(1), by(1), by(1));
    let mut found = [one.unwrap(), other.unwrap(), third.unwrap()];
    found.sort_unstable();
    assert_eq!(found, [1, 2, 3]);
    assert_eq!(by(-10).await.unwrap(), -7);
    let usual = Bounds::USUAL;
    assert!(storage::set(&store, PROJECT, CONFIG, "n", "\"text\"", usual).await.unwrap());
    assert_eq!(by(5).await.unwrap(), 5);
    let gone = storage::increment(&store, GONE, "n", 1).await;
    assert!(matches!(gone, Err(Error::Refused { .. })));
}

#[tokio::test]
async fn positions_and_times_read_back() {
    let store = store().await;
    assert_eq!(cursor(&store, CONFIG).await.unwrap(), None);
    let first = Cursor { config: CONFIG, after: 5, tries: 0, failed_since: None };
    let second = Cursor { tries: 3, failed_since: Some(at(2)), ..first };
    for saved in [first, second] {
        assert!(save_cursor(&store, PROJECT, &saved).await.unwrap());
        assert_eq!(cursor(&store, CONFIG).await.unwrap(), Some(saved));
    }
    assert!(!save_cursor(&store, OTHER, &first).await.unwrap());
    let last = async || tasks::last_run(&store, CONFIG, "runEveryHour").await.unwrap();
    assert_eq!(last().await, None);
    assert!(tasks::save_run(&store, PROJECT, CONFIG, "runEveryHour", at(3)).await.unwrap());
    assert_eq!(last().await, Some(at(3)));
}

#[derive(Debug, SurrealValue)]
struct Left {
    left: i64,
}

const LEFT: Statement = Statement::read(
    "test left",
    "RETURN { left: count((SELECT VALUE id FROM plugin_health, plugin_count, plugin_log,
         plugin_log_head, plugin_storage, plugin_storage_size, plugin_cursor, plugin_task)) };",
);

#[tokio::test]
async fn all_of_it_goes_with_the_config() {
    let store = store().await;
    health::note(&store, &[note(1, 1, 1, None)]).await.unwrap();
    logs::append(&store, &[line("a")]).await.unwrap();
    storage::set(&store, PROJECT, CONFIG, "a", "1", Bounds::USUAL).await.unwrap();
    save_cursor(
        &store,
        PROJECT,
        &Cursor { config: CONFIG, after: 1, tries: 0, failed_since: None },
    )
    .await
    .unwrap();
    tasks::save_run(&store, PROJECT, CONFIG, "runEveryDay", at(1)).await.unwrap();
    let left = async || {
        let mut answer = store.db.run(LEFT, bind! {}).await.unwrap();
        answer.row::<Left>(0).unwrap().unwrap().left
    };
    assert_eq!(left().await, 8);
    let revision = config(7, 1, 1).revision;
    assert!(configs::delete(&store, PROJECT, CONFIG, revision, &[]).await.unwrap());
    assert_eq!(left().await, 0);
}
