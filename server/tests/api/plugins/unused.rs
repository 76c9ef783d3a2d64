//! GET `…/{group}/unused/`.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn own_plugins_that_no_enabled_config_uses() {
    each_group(async |fixture| {
        let path = format!("{}unused/", fixture.path());
        let empty = fixture.owner.get(&path).await.json();
        assert_eq!(rest(&empty, &nothing()), whole(&json!([])));
        let project = json!(fixture.app.project());
        let (used, _) = fixture.made(&json!({"name": "used"})).await;
        let (resting, _) = fixture.made(&json!({"name": "resting"})).await;
        let (offered, _) = fixture.made(&json!({"name": "offered", "is_global": true})).await;
        let (back, one) = fixture.made(&json!({"name": "offered before", "is_global": true})).await;
        let (never, _) = fixture.made(&json!({"name": "never"})).await;
        configured(&fixture.owner, &project, &used, true).await;
        configured(&fixture.owner, &project, &resting, false).await;
        // It does not matter which organization uses it.
        let elsewhere = fixture.elsewhere().await;
        configured(&elsewhere.caller, &elsewhere.project, &offered, true).await;
        configured(&elsewhere.caller, &elsewhere.project, &back, true).await;
        let taken = fixture.owner.patch(&one, &json!({"is_global": false})).await;
        assert_eq!(taken.status, 200, "{:?}", taken.body);

        let answer = fixture.owner.get(&path).await.json();
        let expected = json!([resting["id"], never["id"]]);
        assert_eq!(rest(&answer, &resting), whole(&expected));
        assert_eq!(fixture.owner.get(&format!("{path}?raw=true")).await.json(), expected);
        let second = fixture.owner.get(&format!("{path}?limit=1&offset=1")).await.json();
        assert_eq!(second["results"], json!([never["id"]]));
        assert_eq!((&second["count"], &second["next"]), (&json!(2), &Value::Null));
        assert_eq!(second["id"], never["id"], "the record of the first result of the page");
        let raw = fixture.owner.get(&format!("{path}?raw=true&limit=1")).await.json();
        assert_eq!(raw, json!([resting["id"]]));
        // Unused plugins of others are not listed here.
        let theirs = format!("{}unused/?raw=true", elsewhere.path);
        assert_eq!(elsewhere.caller.get(&theirs).await.json(), json!([]));
    })
    .await;
}
