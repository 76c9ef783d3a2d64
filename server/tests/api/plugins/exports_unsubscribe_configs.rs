//! GET `…/{group}/exports_unsubscribe_configs/`.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn enabled_configs_of_plugins_that_do_something() {
    each_group(async |fixture| {
        let path = format!("{}exports_unsubscribe_configs/", fixture.path());
        let empty = fixture.owner.get(&path).await.json();
        assert_eq!(rest(&empty, &nothing()), whole(&json!([])));
        let project = json!(fixture.app.project());
        let can = |methods: &[&str], is_global: bool| {
            json!({"capabilities": {"methods": methods}, "is_global": is_global})
        };
        let (counted, _) = fixture.made(&can(&["onEvent"], false)).await;
        let (filter, _) = fixture.made(&can(&["processEvent"], false)).await;
        let (offered, _) = fixture.made(&can(&["processEvent"], true)).await;
        let (unknown, _) = fixture.made(&json!({})).await;
        let config = configured(&fixture.owner, &project, &counted, true).await;
        configured(&fixture.owner, &project, &counted, false).await;
        configured(&fixture.owner, &project, &filter, true).await;
        configured(&fixture.owner, &project, &offered, true).await;
        configured(&fixture.owner, &project, &unknown, true).await;

        let answer = fixture.owner.get(&path).await.json();
        let plugins: Vec<&Value> =
            answer["results"].as_array().unwrap().iter().map(|one| &one["plugin"]).collect();
        assert_eq!(plugins, [&counted["id"], &filter["id"]]);
        assert_eq!(answer["id"], counted["id"]);
        // In the form of the list of configs.
        let shown = &answer["results"][0];
        let one = fixture.owner.get(&config).await.json();
        for name in ["id", "plugin", "enabled", "order", "config", "team_id", "created_at"] {
            assert_eq!(shown[name], one[name], "{name}");
        }
        let raw = fixture.owner.get(&format!("{path}?raw=true")).await.json();
        assert_eq!(raw, answer["results"]);
        // Configs of other organizations are not included.
        let elsewhere = fixture.elsewhere().await;
        let theirs = format!("{}exports_unsubscribe_configs/?raw=true", elsewhere.path);
        assert_eq!(elsewhere.caller.get(&theirs).await.json(), json!([]));
    })
    .await;
}
