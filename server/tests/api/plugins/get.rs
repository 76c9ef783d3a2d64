//! GET `…/{group}/{id}/`.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn it_is_shown_where_it_belongs() {
    each_group(async |fixture| {
        // It is in no group except the one that it is created through.
        let body = json!({"name": "Tea", "capabilities": {"methods": ["processEvent"]}});
        let (plugin, path) = fixture.made(&body).await;
        assert_eq!(fixture.owner.get(&path).await.json(), plugin);
        assert_eq!(fixture.owner.get(path.trim_end_matches('/')).await.json(), plugin);
        for group in GROUPS.into_iter().filter(|group| *group != fixture.group) {
            let other = format!("{}{}/", fixture.beside(group), plugin["id"]);
            assert_not_found(&fixture.owner.get(&other).await);
            assert_not_found(&fixture.owner.patch(&other, &json!({"name": []})).await);
            assert_not_found(&fixture.owner.delete(&other).await);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_keep_to_themselves_is_not_there() {
    each_group(async |fixture| {
        let (plugin, path) = fixture.made(&json!({"name": "Tea"})).await;
        let elsewhere = fixture.elsewhere().await;
        let foreign = elsewhere.of(&plugin);
        assert_not_found(&elsewhere.caller.get(&foreign).await);
        assert_not_found(&elsewhere.caller.patch(&foreign, &json!({"name": "x"})).await);
        assert_not_found(&elsewhere.caller.delete(&foreign).await);
        let answer = elsewhere.caller.get(&path).await;
        answer.assert_error(404, "invalid_request", "not_found", "Organization not found.");
        for id in ["0", "-1", "01", "1e3", "99999999999999999999", "x"] {
            assert_not_found(&fixture.owner.get(&format!("{}{id}/", fixture.path())).await);
        }
    })
    .await;
}
