//! DELETE `…/{group}/{id}/`.

use super::*;
use weir_model::PluginId;
use weir_store::plugins;

#[tokio::test(flavor = "multi_thread")]
async fn it_is_gone_with_its_source_and_its_configs() {
    each_group(async |place| {
        let (plugin, path) = place.made(&json!({"name": "Tea"})).await;
        place.owner.patch(&format!("{path}update_source/"), &json!({"tea.txt": "1"})).await;
        let project = json!(place.app.project());
        let config = configured(&place.owner, &project, &plugin, true).await;
        let answer = place.owner.delete(&path).await;
        assert_eq!((answer.status, answer.body.len()), (204, 0));
        assert_not_found(&place.owner.get(&path).await);
        assert_not_found(&place.owner.delete(&path).await);
        assert_not_found(&place.owner.patch(&path, &json!({"name": []})).await);
        assert_not_found(&place.owner.get(&format!("{path}source/")).await);
        assert_not_found(&place.owner.get(&config).await);
        assert_eq!(place.owner.get(&place.path()).await.json()["count"], 0);
        let id = PluginId(plugin["id"].as_i64().unwrap());
        assert!(plugins::files(place.app.store(), id).await.unwrap().is_empty());
        let log = format!("/api/organizations/{}/activity_log/", place.app.organization());
        let log = place.owner.get(&log).await.json();
        let newest = &log["results"][0];
        assert_eq!(newest["activity"], "uninstalled");
        assert_eq!(newest["detail"]["name"], "Tea");
        for (at, deed) in [(1, "deleted"), (2, "disabled")] {
            let entry = &log["results"][at];
            assert_eq!(
                (&entry["activity"], &entry["scope"]),
                (&json!(deed), &json!("PluginConfig"))
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
    each_group(async |place| {
        let elsewhere = place.elsewhere().await;
        let url = json!({"url": "https://github.com/acme/tea"});
        let (theirs, _) = made(&elsewhere.caller, &elsewhere.path, &url).await;
        let (own, _) = place.made(&url).await;
        let organization = elsewhere.path.trim_end_matches('/').rsplit_once('/').unwrap().0;
        assert_eq!(elsewhere.caller.delete(&format!("{organization}/")).await.status, 204);
        let id = |plugin: &Value| PluginId(plugin["id"].as_i64().unwrap());
        let left = plugins::rows(place.app.store(), &[id(&theirs), id(&own)]).await.unwrap();
        assert_eq!(left.into_iter().map(|row| row.id).collect::<Vec<_>>(), [id(&own)]);
    })
    .await;
}
