//! GET `…/{group}/{id}/check_for_updates/`.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn the_plugin_as_it_is() {
    each_group(async |place| {
        for body in [
            json!({"name": "Tea"}),
            json!({"plugin_type": "local"}),
            json!({"plugin_type": "inline"}),
            // Nothing outside is asked, and nothing is made up.
            json!({"url": "https://github.com/acme/tea", "tag": "1"}),
        ] {
            let (plugin, path) = place.made(&body).await;
            let check = format!("{path}check_for_updates/");
            let answer = place.owner.get(&check).await;
            assert_eq!(answer.status, 200, "{:?}", answer.body);
            assert_eq!(rest(&answer.json(), &plugin), json!({"plugin": plugin}));
            let raw = place.owner.get(&format!("{check}?raw=true")).await.json();
            assert_eq!(raw, json!({"plugin": plugin}));
            assert_eq!(place.owner.get(&path).await.json(), plugin);
        }
    })
    .await;
}
