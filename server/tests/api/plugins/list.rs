//! GET `…/{group}/`.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn by_id_page_by_page() {
    each_group(async |fixture| {
        let path = fixture.path();
        let empty = json!({"count": 0, "next": null, "previous": null, "results": []});
        assert_eq!(fixture.owner.get(&path).await.json(), empty);
        let mut all = Vec::new();
        for name in ["c", "a", "b"] {
            all.push(fixture.made(&json!({"name": name})).await.0);
        }
        let list = fixture.owner.get(&path).await.json();
        assert_eq!((&list["count"], &list["results"]), (&json!(3), &json!(all)));
        let page = fixture.owner.get(&format!("{path}?limit=2&offset=2")).await.json();
        assert_eq!((&page["count"], &page["results"]), (&json!(3), &json!([all[2]])));
        assert_eq!(page["next"], Value::Null);
        assert!(page["previous"].as_str().unwrap().ends_with(&format!("{path}?limit=2")));
        let first = fixture.owner.get(&format!("{path}?limit=2")).await.json();
        assert!(first["next"].as_str().unwrap().ends_with("?limit=2&offset=2"));
        let current = format!("/api/organizations/@current/{}", fixture.group);
        assert_eq!(fixture.owner.get(&current).await.json()["results"], json!(all));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn own_ones_those_for_all_and_those_in_use() {
    each_group(async |fixture| {
        let (own, path) = fixture.made(&json!({"name": "Tea"})).await;
        let elsewhere = fixture.elsewhere().await;
        let seen = async || ids(&elsewhere.caller.get(&elsewhere.path).await.json());
        assert_eq!(seen().await, Vec::<Value>::new());
        let offered = fixture.owner.patch(&path, &json!({"is_global": true})).await;
        assert_eq!(offered.status, 200, "{:?}", offered.body);
        assert_eq!(seen().await, [own["id"].clone()]);
        // When it is no longer offered, it stays visible where it is in use.
        let config = configured(&elsewhere.caller, &elsewhere.project, &own, false).await;
        fixture.owner.patch(&path, &json!({"is_global": false})).await;
        assert_eq!(seen().await, [own["id"].clone()]);
        let shown = elsewhere.caller.get(&elsewhere.of(&own)).await.json();
        assert_eq!(
            (&shown["is_global"], &shown["organization_name"]),
            (&json!(false), &json!("Acme Tea"))
        );
        let hidden = elsewhere.caller.patch(&config, &json!({"deleted": true})).await;
        assert_eq!(hidden.status, 200, "{:?}", hidden.body);
        assert_eq!(seen().await, Vec::<Value>::new());
        assert_not_found(&elsewhere.caller.get(&elsewhere.of(&own)).await);
        assert_eq!(ids(&fixture.owner.get(&fixture.path()).await.json()), [own["id"].clone()]);
    })
    .await;
}
