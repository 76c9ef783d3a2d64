//! GET `…/{group}/`.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn by_id_page_by_page() {
    each_group(async |place| {
        let path = place.path();
        let empty = json!({"count": 0, "next": null, "previous": null, "results": []});
        assert_eq!(place.owner.get(&path).await.json(), empty);
        let mut all = Vec::new();
        for name in ["c", "a", "b"] {
            all.push(place.made(&json!({"name": name})).await.0);
        }
        let list = place.owner.get(&path).await.json();
        assert_eq!((&list["count"], &list["results"]), (&json!(3), &json!(all)));
        let page = place.owner.get(&format!("{path}?limit=2&offset=2")).await.json();
        assert_eq!((&page["count"], &page["results"]), (&json!(3), &json!([all[2]])));
        assert_eq!(page["next"], Value::Null);
        assert!(page["previous"].as_str().unwrap().ends_with(&format!("{path}?limit=2")));
        let first = place.owner.get(&format!("{path}?limit=2")).await.json();
        assert!(first["next"].as_str().unwrap().ends_with("?limit=2&offset=2"));
        let current = format!("/api/organizations/@current/{}", place.group);
        assert_eq!(place.owner.get(&current).await.json()["results"], json!(all));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn own_ones_those_for_all_and_those_in_use() {
    each_group(async |place| {
        let (own, path) = place.made(&json!({"name": "Tea"})).await;
        let elsewhere = place.elsewhere().await;
        let seen = async || ids(&elsewhere.caller.get(&elsewhere.path).await.json());
        assert_eq!(seen().await, Vec::<Value>::new());
        let offered = place.owner.patch(&path, &json!({"is_global": true})).await;
        assert_eq!(offered.status, 200, "{:?}", offered.body);
        assert_eq!(seen().await, [own["id"].clone()]);
        // Taken back, it stays visible where it is in use.
        let config = configured(&elsewhere.caller, &elsewhere.project, &own, false).await;
        place.owner.patch(&path, &json!({"is_global": false})).await;
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
        assert_eq!(ids(&place.owner.get(&place.path()).await.json()), [own["id"].clone()]);
    })
    .await;
}
