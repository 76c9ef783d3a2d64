//! GET `…/{group}/{id}/check_for_updates/`.

use super::hosts::NEWEST;
use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn the_plugin_as_it_is() {
    each_group(async |fixture| {
        for body in [
            json!({"name": "Tea"}),
            json!({"plugin_type": "local"}),
            json!({"plugin_type": "inline"}),
        ] {
            let (plugin, path) = fixture.made(&body).await;
            let check = format!("{path}check_for_updates/");
            let answer = fixture.owner.get(&check).await;
            assert_eq!(answer.status, 200, "{:?}", answer.body);
            let more = json!({"plugin": plugin, "update_error": null});
            assert_eq!(rest(&answer.json(), &plugin), more);
            let raw = fixture.owner.get(&format!("{check}?raw=true")).await.json();
            assert_eq!(raw, json!({"plugin": plugin}));
            assert_eq!(fixture.owner.get(&path).await.json(), plugin);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_newest_version_is_noted() {
    each_group(async |fixture| {
        let url = json!({"url": "https://github.com/acme/tea"});
        let (plugin, path) = fixture.made(&url).await;
        let check = format!("{path}check_for_updates/");
        let answer = fixture.owner.get(&check).await;
        assert_eq!(answer.status, 200, "{:?}", answer.body);
        let answer = answer.json();
        assert_eq!((&answer["latest_tag"], &answer["tag"]), (&json!(NEWEST), &plugin["tag"]));
        assert_eq!(answer["plugin"]["latest_tag"], NEWEST);
        assert_eq!(answer["update_error"], Value::Null);
        let before = fixture.owner.get(&path).await.json();
        assert_eq!(before, answer["plugin"]);
        // A host that does not answer changes nothing.
        fixture.host.goes_down();
        let answer = fixture.owner.get(&check).await.json();
        assert!(answer["update_error"].is_string(), "{answer}");
        assert_eq!(answer["plugin"], before);
        let raw = fixture.owner.get(&format!("{check}?raw=true")).await.json();
        assert_eq!(raw, json!({"plugin": before, "update_error": answer["update_error"]}));
    })
    .await;
}
