//! DELETE `…/{group}/{id}/`.

use super::*;
use weir_model::PluginId;
use weir_store::plugins;

#[tokio::test(flavor = "multi_thread")]
async fn it_is_gone_with_its_source_and_its_configs() {
    each_group(async |fixture| {
        let (plugin, path) = fixture.made(&json!({"name": "Tea"})).await;
        fixture.owner.patch(&format!("{path}update_source/"), &json!({"tea.txt": "1"})).await;
        let project = json!(fixture.app.project());
        let config = configured(&fixture.owner, &project, &plugin, true).await;
        let answer = fixture.owner.delete(&path).await;
        assert_eq!((answer.status, answer.body.len()), (204, 0));
        assert_not_found(&fixture.owner.get(&path).await);
        assert_not_found(&fixture.owner.delete(&path).await);
        assert_not_found(&fixture.owner.patch(&path, &json!({"name": []})).await);
        assert_not_found(&fixture.owner.get(&format!("{path}source/")).await);
        assert_not_found(&fixture.owner.get(&config).await);
        assert_eq!(fixture.owner.get(&fixture.path()).await.json()["count"], 0);
        let id = PluginId(plugin["id"].as_i64().unwrap());
        assert!(plugins::files(fixture.app.store(), id).await.unwrap().is_empty());
        let log = format!("/api/organizations/{}/activity_log/", fixture.app.organization());
        let log = fixture.owner.get(&log).await.json();
        let newest = &log["results"][0];
        assert_eq!(newest["activity"], "uninstalled");
        assert_eq!(newest["detail"]["name"], "Tea");
        for (at, action) in [(1, "deleted"), (2, "disabled")] {
            let entry = &log["results"][at];
            assert_eq!(
                (&entry["activity"], &entry["scope"]),
                (&json!(action), &json!("PluginConfig"))
            );
            assert!(config.ends_with(&format!("/{}/", entry["item_id"].as_str().unwrap())));
            assert_eq!(entry["team_id"], project);
            assert_eq!(entry["is_system"], false);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_organization_takes_its_plugins_with_it() {
    each_group(async |fixture| {
        let elsewhere = fixture.elsewhere().await;
        let url = json!({"url": "https://github.com/acme/tea"});
        let (theirs, _) = made(&elsewhere.caller, &elsewhere.path, &url).await;
        let (own, _) = fixture.made(&url).await;
        let organization = elsewhere.path.trim_end_matches('/').rsplit_once('/').unwrap().0;
        assert_eq!(elsewhere.caller.delete(&format!("{organization}/")).await.status, 204);
        let id = |plugin: &Value| PluginId(plugin["id"].as_i64().unwrap());
        let left = plugins::rows(fixture.app.store(), &[id(&theirs), id(&own)]).await.unwrap();
        assert_eq!(left.into_iter().map(|row| row.id).collect::<Vec<_>>(), [id(&own)]);
    })
    .await;
}
