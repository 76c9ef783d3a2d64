//! Plugins on a store in memory: cases that tests over HTTP do not reach.

use serde_json::{Map, Value, json};
use weir_model::Patch;
use weir_model::plugins::address::CodeSource;
use weir_model::plugins::{PLUGINS_MAX, PluginInput, PluginList, PluginType, SentArchive};
use weir_store::plugins::Created;

use super::*;
use crate::ctx::Ctx;
use crate::test_support::{ada, set_up};
use crate::{Actor, Services};

const GROUP: Group = Group::Destinations;

async fn org(services: &Services) -> OrgCtx {
    let ctx = ada(services).await;
    services.organizations.enter(&ctx, "@current").await.unwrap()
}

async fn installed(services: &Services, org: &OrgCtx) -> String {
    let made = services.plugins.create(org, GROUP, PluginInput::default()).await.unwrap();
    made.id.to_string()
}

/// The same user sixteen minutes after the sign-in.
fn later(org: &OrgCtx) -> OrgCtx {
    let now = org.ctx.now.plus_seconds(16 * 60);
    OrgCtx { ctx: Ctx { now, ..org.ctx.clone() }, ..org.clone() }
}

#[tokio::test(flavor = "multi_thread")]
async fn changing_source_wants_a_recent_sign_in() {
    let services = set_up().await;
    let org = org(&services).await;
    assert!(matches!(org.ctx.actor, Actor::Session { .. }));
    let id = installed(&services, &org).await;
    let plugins = &services.plugins;
    assert!(plugins.editable(&org, GROUP, &id).await.is_ok());
    let later = later(&org);
    let refused = plugins.editable(&later, GROUP, &id).await;
    assert!(matches!(refused, Err(Error::SignInAgain)));
    assert!(plugins.source(&later, GROUP, &id).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn two_concurrent_changes_are_both_kept() {
    let services = set_up().await;
    let org = org(&services).await;
    let id = installed(&services, &org).await;
    let plugins = &services.plugins;
    let changeable = async || plugins.changeable(&org, GROUP, &id, false).await.unwrap();
    let (first, second, third) = (changeable().await, changeable().await, changeable().await);
    let name = PluginPatch { name: Patch::Set("Tea".to_owned()), ..PluginPatch::default() };
    let metrics: Map<String, Value> = json!({"cups": "sum"}).as_object().unwrap().clone();
    let metrics = PluginPatch { metrics: Patch::Set(metrics), ..PluginPatch::default() };
    let source = vec![("index.js".to_owned(), Some("export onEvent".to_owned()))];
    let (named, measured, written) = tokio::join!(
        plugins.update(&org, first, name),
        plugins.update(&org, second, metrics),
        plugins.update_source(&org, third, source),
    );
    assert!(named.is_ok() && measured.is_ok() && written.is_ok());
    let whole = plugins.source(&org, GROUP, &id).await.unwrap();
    assert_eq!(whole.plugin.fields.name.as_deref(), Some("Tea"));
    assert_eq!(whole.plugin.fields.metrics.unwrap()["cups"], "sum");
    assert_eq!(whole.files["index.js"], "export onEvent");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_gone_is_not_changed() {
    let services = set_up().await;
    let org = org(&services).await;
    let id = installed(&services, &org).await;
    let plugins = &services.plugins;
    let first = plugins.changeable(&org, GROUP, &id, false).await.unwrap();
    let second = plugins.changeable(&org, GROUP, &id, false).await.unwrap();
    plugins.delete(&org, first).await.unwrap();
    let patch = PluginPatch { tag: Patch::Set("1".to_owned()), ..PluginPatch::default() };
    let refused = plugins.update(&org, second, patch).await;
    assert!(matches!(refused, Err(Error::NotFound(NOT_FOUND))));
}

fn from(url: &str) -> PluginInput {
    PluginInput { url: Some(CodeSource::read(url).unwrap()), ..PluginInput::default() }
}

fn compressed(files: &str) -> PluginInput {
    let archive = Some(SentArchive(files.as_bytes().to_vec()));
    PluginInput { archive, ..PluginInput::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn code_is_fetched_checked_and_kept() {
    let services = set_up().await;
    let org = org(&services).await;
    let plugins = &services.plugins;
    let url = "https://github.com/acme/tea?private_token=t0ken";
    let made = plugins.create(&org, GROUP, from(url)).await.unwrap();
    let fields = &made.fields;
    // The name shows that the token was sent.
    assert_eq!(fields.name.as_deref(), Some("t0ken"));
    assert_eq!((&fields.tag, &fields.latest_tag), (&Some("1".to_owned()), &Some("1".to_owned())));
    assert_eq!(fields.plugin_type, Some(PluginType::Custom));
    assert_eq!(fields.capabilities.as_ref().unwrap()["methods"], json!(["onEvent"]));
    assert!(fields.public_jobs.as_ref().unwrap().contains_key("stir"));
    let whole = plugins.source(&org, GROUP, &made.id.to_string()).await.unwrap();
    assert_eq!(whole.files.keys().collect::<Vec<_>>(), ["index.js", "plugin.json"]);
    let checked = plugins.check_for_updates(&org, GROUP, &made.id.to_string()).await.unwrap();
    assert_eq!(checked.plugin.fields.latest_tag.as_deref(), Some("2"));
    assert_eq!(checked.fault, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_fetch_is_reported() {
    let services = set_up().await;
    let org = org(&services).await;
    let plugins = &services.plugins;
    let refused = plugins.create(&org, GROUP, from("https://github.com/acme/gone")).await;
    let Err(Error::Invalid(fault)) = refused else { panic!("it was not refused") };
    assert_eq!((fault.attr.as_deref(), fault.detail.as_str()), (Some("url"), "HTTP 404"));
    let made = plugins.create(&org, GROUP, from("https://github.com/acme/silent")).await.unwrap();
    let checked = plugins.check_for_updates(&org, GROUP, &made.id.to_string()).await.unwrap();
    assert_eq!((checked.plugin, checked.fault), (made, Some("timed out".to_owned())));
    let refused = plugins.create(&org, GROUP, from("inline:nothing")).await;
    assert!(matches!(refused, Err(Error::Invalid(fault)) if fault.attr.as_deref() == Some("url")));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archive_has_to_say_what_it_is() {
    let services = set_up().await;
    let org = org(&services).await;
    let plugins = &services.plugins;
    let files = r#"plugin.json={"name": "Tea"};index.js=export onEvent;README.md=x"#;
    let mut input = compressed(files);
    input.fields.name = Patch::Set("Mint".to_owned());
    let made = plugins.create(&org, GROUP, input).await.unwrap();
    assert_eq!(made.fields.name.as_deref(), Some("Mint"));
    assert_eq!(made.fields.plugin_type, Some(PluginType::Source));
    for bad in ["index.js=1", r#"plugin.json={"name": "Tea"}"#] {
        let refused = plugins.create(&org, GROUP, compressed(bad)).await;
        let Err(Error::Invalid(fault)) = refused else { panic!("it was not refused") };
        assert_eq!(fault.attr.as_deref(), Some("archive"), "{bad}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_stay_and_leave_what_was_found_before() {
    let services = set_up().await;
    let org = org(&services).await;
    let plugins = &services.plugins;
    let id = installed(&services, &org).await;
    let write = async |text: &str| {
        let editable = plugins.editable(&org, GROUP, &id).await.unwrap();
        let change = vec![("index.js".to_owned(), Some(text.to_owned()))];
        plugins.update_source(&org, editable, change).await.unwrap()
    };
    let methods =
        |source: &Source| source.plugin.fields.capabilities.as_ref().unwrap()["methods"].clone();
    let good = write("export onEvent").await;
    assert_eq!((methods(&good), good.faults.len()), (json!(["onEvent"]), 0));
    let bad = write("export composeWebhook\nfault").await;
    assert_eq!(
        (methods(&bad), &bad.faults["index.js"]),
        (json!(["onEvent"]), &"2:1: fault".to_owned())
    );
    let read = plugins.source(&org, GROUP, &id).await.unwrap();
    assert_eq!(read.faults, bad.faults);
}

#[tokio::test(flavor = "multi_thread")]
async fn code_decides_where_a_plugin_is_shown() {
    let services = set_up().await;
    let org = org(&services).await;
    let plugins = &services.plugins;
    let id = installed(&services, &org).await;
    let write = async |text: &str| {
        let editable = plugins.editable(&org, GROUP, &id).await.unwrap();
        let change = vec![("index.js".to_owned(), Some(text.to_owned()))];
        plugins.update_source(&org, editable, change).await
    };
    // Code of another group would remove the plugin from its address.
    let Err(Error::Invalid(fault)) = write("export setupPlugin").await else {
        panic!("it was not refused")
    };
    assert_eq!(fault.attr.as_deref(), Some("index.js"));
    assert!(plugins.get(&org, GROUP, &id).await.is_ok());
    // A plugin that only changes events is in no group, but can be reached.
    write("export processEvent").await.unwrap();
    assert!(plugins.get(&org, GROUP, &id).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_add_a_plugin_to_the_group_of_its_code() {
    let services = set_up().await;
    let org = org(&services).await;
    let plugins = &services.plugins;
    let tea = || from("https://github.com/acme/tea");
    let refused = plugins.create(&org, Group::ImportApps, tea()).await;
    let Err(Error::Invalid(fault)) = refused else { panic!("it was not refused") };
    assert_eq!(fault.attr.as_deref(), Some("url"));
    let made = plugins.install(&org, Group::ImportApps, tea()).await.unwrap();
    let id = made.id.to_string();
    assert!(plugins.get(&org, Group::Destinations, &id).await.is_ok());
    // It stays in that group.
    let editable = plugins.editable(&org, Group::Destinations, &id).await.unwrap();
    let change = vec![("index.js".to_owned(), Some("export setupPlugin".to_owned()))];
    let refused = plugins.update_source(&org, editable, change).await;
    assert!(matches!(refused, Err(Error::Invalid(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn plugins_are_on_the_list_of_what_they_do() {
    let services = set_up().await;
    let org = org(&services).await;
    let plugins = &services.plugins;
    let steps = plugins.create(&org, GROUP, from("inline:bot-filter")).await.unwrap();
    let sends = plugins.create(&org, GROUP, from("https://github.com/acme/tea")).await.unwrap();
    let on = async |plugin_list: PluginList| -> Vec<PluginId> {
        let found = plugins.find_listed(&org, plugin_list).await.unwrap();
        assert!(
            found.iter().all(|one| one.is_own && one.is_unused && one.plugin_list == plugin_list)
        );
        found.into_iter().map(|one| one.plugin.id).collect()
    };
    assert_eq!(on(PluginList::Transformations).await, [steps.id]);
    assert_eq!(on(PluginList::Destinations).await, [sends.id]);
    assert!(on(PluginList::ImportApps).await.is_empty());
    let found = plugins.get_listed(&org, &steps.id.to_string()).await.unwrap();
    assert_eq!((found.plugin_list, found.group), (PluginList::Transformations, GROUP));
    assert_eq!(plugins.why_not_change(&org, &found).await.unwrap(), None);
    let id = steps.id.to_string();
    let history = plugins.history(&org, &id, Page { limit: 9, offset: 0 });
    assert_eq!(history.await.unwrap().count, 1);
    let missing = plugins.get_listed(&org, "4711").await;
    assert!(matches!(missing, Err(Error::NotFound(NOT_FOUND))));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_organization_has_a_maximum_of_plugins() {
    let services = set_up().await;
    let org = org(&services).await;
    let id = installed(&services, &org).await;
    let store = services.organizations.store();
    let first = PluginId::in_path(&id).unwrap();
    let row = rows::get(store, org.organization, first).await.unwrap().unwrap();
    for _ in 1..PLUGINS_MAX {
        let row = PluginRow { id: rows::next_number(store).await.unwrap(), ..row.clone() };
        let outcome = rows::create(store, &row, &NewSource::default(), PLUGINS_MAX, &[]).await;
        assert_eq!(outcome.unwrap(), Created::Yes);
    }
    let refused = services.plugins.create(&org, GROUP, PluginInput::default()).await;
    let Err(Error::Invalid(fault)) = refused else { panic!("it was not refused") };
    assert_eq!(fault.detail, "An organization may have at most 100 plugins. Delete one first.");
    let changeable = services.plugins.changeable(&org, GROUP, &id, false).await.unwrap();
    services.plugins.delete(&org, changeable).await.unwrap();
    assert!(services.plugins.create(&org, GROUP, PluginInput::default()).await.is_ok());
}
