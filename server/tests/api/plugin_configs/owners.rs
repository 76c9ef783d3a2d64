//! Configs after their project, organization or plugin was deleted.

use super::*;
use weir_model::{OrganizationId, PluginId};
use weir_store::activity::{Verified, verify};
use weir_store::plugin_configs as stored;

async fn uses(app: &TestApp, plugin: i64) -> usize {
    stored::of_plugin(app.store(), PluginId(plugin)).await.unwrap().len()
}

async fn uses_in(app: &TestApp, organization: OrganizationId) -> usize {
    stored::of_organization(app.store(), organization).await.unwrap().len()
}

/// A plugin of another organization that is offered to all.
async fn offered(owner: &Caller) -> (String, i64) {
    let beta = organization(owner).await;
    let plugin = json!({"plugin_type": "source", "name": "O", "is_global": true});
    let plugin = plugin_with(&beta, owner, &plugin).await;
    (beta, plugin)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_takes_its_configs_with_it() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let plugin = plugin(&app, &owner).await;
    made(&app, &owner, &json!({"plugin": plugin, "order": 1, "enabled": true})).await;
    made(&app, &owner, &json!({"plugin": plugin, "order": 1, "deleted": true})).await;
    assert_eq!((uses(&app, plugin).await, uses_in(&app, app.organization()).await), (2, 2));
    assert_eq!(owner.delete(&format!("/api/projects/{}/", app.project())).await.status, 204);
    assert_eq!((uses(&app, plugin).await, uses_in(&app, app.organization()).await), (0, 0));
    assert!(stored::positions(app.store(), app.project()).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_organization_takes_its_configs_with_it() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let (_, plugin) = offered(&owner).await;
    made(&app, &owner, &json!({"plugin": plugin, "order": 1})).await;
    let organization = format!("/api/organizations/{}/", app.organization());
    assert_eq!(owner.delete(&organization).await.status, 204);
    assert_eq!((uses(&app, plugin).await, uses_in(&app, app.organization()).await), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_takes_its_configs_with_it_wherever_they_are() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let (beta, plugin) = offered(&owner).await;
    let (config, one) = made(&app, &owner, &json!({"plugin": plugin, "order": 1})).await;
    let (hidden, _) =
        made(&app, &owner, &json!({"plugin": plugin, "order": 2, "deleted": true})).await;
    let record = format!("/api/organizations/{beta}/pipeline_destinations/{plugin}/");
    assert_eq!(owner.patch(&record, &json!({"is_global": false})).await.status, 200);
    assert_eq!(owner.get(&one).await.status, 200);
    assert_eq!(owner.delete(&record).await.status, 204);
    assert_not_found(&owner.get(&one).await);
    // The log here has the entry, without the user of the other organization.
    let gone = ("deleted".to_owned(), json!({"name": ["O", null]}));
    for config in [&config, &hidden] {
        assert_eq!(audit_entries(&app, &owner, config).await.last(), Some(&gone));
    }
    let log = format!("/api/organizations/{}/activity_log/", app.organization());
    let log = owner.get(&log).await.json();
    let newest = &log["results"][0];
    assert_eq!((&newest["is_system"], &newest["user"]), (&json!(true), &Value::Null));
    let there = owner.get(&format!("/api/organizations/{beta}/activity_log/")).await.json();
    let newest = &there["results"][0];
    assert_eq!((&newest["activity"], &newest["is_system"]), (&json!("uninstalled"), &json!(false)));
    for organization in [app.organization(), OrganizationId(beta.parse().unwrap())] {
        let chain = verify(app.store(), organization).await.unwrap();
        assert!(matches!(chain, Verified::Whole { .. }), "{chain:?}");
    }
    assert_eq!(owner.get(&path(&app)).await.json()["count"], 0);
    assert_eq!((uses(&app, plugin).await, uses_in(&app, app.organization()).await), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_organization_takes_the_configs_of_its_plugins_with_it() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let (beta, plugin) = offered(&owner).await;
    let (config, one) = made(&app, &owner, &json!({"plugin": plugin, "order": 1})).await;
    assert_eq!(owner.delete(&format!("/api/organizations/{beta}/")).await.status, 204);
    assert_not_found(&owner.get(&one).await);
    // The log here has the entry.
    let gone = ("deleted".to_owned(), json!({"name": ["O", null]}));
    assert_eq!(audit_entries(&app, &owner, &config).await.last(), Some(&gone));
    let chain = verify(app.store(), app.organization()).await.unwrap();
    assert!(matches!(chain, Verified::Whole { .. }), "{chain:?}");
}

/// In the other organization the plugin would be visible only because of the config, and
/// the config's secrets belong to the organization that it leaves.
#[tokio::test(flavor = "multi_thread")]
async fn a_project_with_configs_stays_in_its_organization() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let plugin = plugin(&app, &owner).await;
    let body = json!({"plugin": plugin, "order": 1, "deleted": true});
    let (_, one) = made(&app, &owner, &body).await;
    let to = json!({"organization_id": organization(&owner).await});
    let path = format!("/api/projects/{}/change_organization/", app.project());
    owner.post(&path, &to).await.assert_error(
        409,
        "server_error",
        "conflict",
        "The project has transformation configs, whose plugins and secrets belong to its \
         organization. Delete them first.",
    );
    assert_eq!(owner.get(&one).await.status, 200);
    assert_eq!(owner.delete(&one).await.status, 204);
    assert_eq!(owner.post(&path, &to).await.status, 200);
}
