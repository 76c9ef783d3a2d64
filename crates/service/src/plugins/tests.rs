//! Plugins on a store in memory: what tests over HTTP do not reach.

use serde_json::{Map, Value, json};
use weir_model::Patch;

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

/// The same person sixteen minutes after the sign-in.
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
async fn two_changes_at_once_are_both_kept() {
    let services = set_up().await;
    let org = org(&services).await;
    let id = installed(&services, &org).await;
    let plugins = &services.plugins;
    let changeable = async || plugins.changeable(&org, GROUP, &id, false).await.unwrap();
    let (first, second, third) = (changeable().await, changeable().await, changeable().await);
    let name = PluginPatch { name: Patch::Set("Tea".to_owned()), ..PluginPatch::default() };
    let metrics: Map<String, Value> = json!({"cups": "sum"}).as_object().unwrap().clone();
    let metrics = PluginPatch { metrics: Patch::Set(metrics), ..PluginPatch::default() };
    let source = vec![("index.js".to_owned(), Some("1".to_owned()))];
    let (named, measured, written) = tokio::join!(
        plugins.update(&org, first, name),
        plugins.update(&org, second, metrics),
        plugins.update_source(&org, third, source),
    );
    assert!(named.is_ok() && measured.is_ok() && written.is_ok());
    let whole = plugins.source(&org, GROUP, &id).await.unwrap();
    assert_eq!(whole.plugin.fields.name.as_deref(), Some("Tea"));
    assert_eq!(whole.plugin.fields.metrics.unwrap()["cups"], "sum");
    assert_eq!(whole.files["index.js"], "1");
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
