//! GET `…/{group}/repository/`.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn the_catalogue_is_empty() {
    each_group(async |place| {
        let path = format!("{}repository/", place.path());
        let answer = place.owner.get(&path).await;
        assert_eq!(answer.status, 200, "{:?}", answer.body);
        assert_eq!(rest(&answer.json(), &nothing()), json!({"results": []}));
        // The record is that of the newest plugin.
        place.made(&json!({"name": "Old"})).await;
        let (newest, _) = place.made(&json!({"name": "New"})).await;
        let answer = place.owner.get(&path).await.json();
        assert_eq!(rest(&answer, &newest), json!({"results": []}));
        let raw = place.owner.get(&format!("{path}?raw=true")).await.json();
        assert_eq!(raw, json!([]));
    })
    .await;
}
