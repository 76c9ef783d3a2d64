//! GET `…/{group}/{id}/`.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn it_is_shown_where_it_belongs() {
    each_group(async |place| {
        // It is in no group except the one that it is created through.
        let body = json!({"name": "Tea", "capabilities": {"methods": ["processEvent"]}});
        let (plugin, path) = place.made(&body).await;
        assert_eq!(place.owner.get(&path).await.json(), plugin);
        assert_eq!(place.owner.get(path.trim_end_matches('/')).await.json(), plugin);
        for group in GROUPS.into_iter().filter(|group| *group != place.group) {
            let other = format!("{}{}/", place.beside(group), plugin["id"]);
            assert_not_found(&place.owner.get(&other).await);
            assert_not_found(&place.owner.patch(&other, &json!({"name": []})).await);
            assert_not_found(&place.owner.delete(&other).await);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_keep_to_themselves_is_not_there() {
    each_group(async |place| {
        let (plugin, path) = place.made(&json!({"name": "Tea"})).await;
        let elsewhere = place.elsewhere().await;
        let foreign = elsewhere.of(&plugin);
        assert_not_found(&elsewhere.caller.get(&foreign).await);
        assert_not_found(&elsewhere.caller.patch(&foreign, &json!({"name": "x"})).await);
        assert_not_found(&elsewhere.caller.delete(&foreign).await);
        let answer = elsewhere.caller.get(&path).await;
        answer.assert_error(404, "invalid_request", "not_found", "Organization not found.");
        for id in ["0", "-1", "01", "1e3", "99999999999999999999", "x"] {
            assert_not_found(&place.owner.get(&format!("{}{id}/", place.path())).await);
        }
    })
    .await;
}
