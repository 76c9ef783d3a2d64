//! GET `…/{group}/exports_unsubscribe_configs/`.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn enabled_configs_of_plugins_that_do_something() {
    each_group(async |place| {
        let path = format!("{}exports_unsubscribe_configs/", place.path());
        let empty = place.owner.get(&path).await.json();
        assert_eq!(rest(&empty, &nothing()), whole(&json!([])));
        let project = json!(place.app.project());
        let can = |methods: &[&str], is_global: bool| {
            json!({"capabilities": {"methods": methods}, "is_global": is_global})
        };
        let (counted, _) = place.made(&can(&["onEvent"], false)).await;
        let (filter, _) = place.made(&can(&["processEvent"], false)).await;
        let (offered, _) = place.made(&can(&["processEvent"], true)).await;
        let (unknown, _) = place.made(&json!({})).await;
        let config = configured(&place.owner, &project, &counted, true).await;
        configured(&place.owner, &project, &counted, false).await;
        configured(&place.owner, &project, &filter, true).await;
        configured(&place.owner, &project, &offered, true).await;
        configured(&place.owner, &project, &unknown, true).await;

        let answer = place.owner.get(&path).await.json();
        let plugins: Vec<&Value> =
            answer["results"].as_array().unwrap().iter().map(|one| &one["plugin"]).collect();
        assert_eq!(plugins, [&counted["id"], &filter["id"]]);
        assert_eq!(answer["id"], counted["id"]);
        // In the form of the list of configs.
        let shown = &answer["results"][0];
        let one = place.owner.get(&config).await.json();
        for name in ["id", "plugin", "enabled", "order", "config", "team_id", "created_at"] {
            assert_eq!(shown[name], one[name], "{name}");
        }
        let raw = place.owner.get(&format!("{path}?raw=true")).await.json();
        assert_eq!(raw, answer["results"]);
        // Configs of other organizations are not included.
        let elsewhere = place.elsewhere().await;
        let theirs = format!("{}exports_unsubscribe_configs/?raw=true", elsewhere.path);
        assert_eq!(elsewhere.caller.get(&theirs).await.json(), json!([]));
    })
    .await;
}
