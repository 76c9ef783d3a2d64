//! POST `…/{group}/{id}/upgrade/`.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn the_plugin_as_it_is() {
    each_group(async |place| {
        for body in [json!({"name": "Tea"}), json!({"url": "https://github.com/acme/tea"})] {
            let (plugin, path) = place.made(&body).await;
            // Fields of the record are ignored.
            let answer = place.owner.post(&format!("{path}upgrade/"), &json!({"name": "x"})).await;
            assert_eq!((answer.status, answer.json()), (200, plugin.clone()));
            assert_eq!(place.owner.get(&path).await.json(), plugin);
        }
    })
    .await;
}
