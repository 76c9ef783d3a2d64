//! GET `…/{group}/repository/`.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn the_catalogue_is_listed() {
    each_group(async |fixture| {
        let path = format!("{}repository/", fixture.path());
        let answer = fixture.owner.get(&path).await;
        assert_eq!(answer.status, 200, "{:?}", answer.body);
        let answer = rest(&answer.json(), &nothing());
        let results = answer["results"].as_array().unwrap();
        assert!(results.len() >= 12, "{results:?}");
        for entry in results {
            assert!(entry["url"].as_str().unwrap().starts_with("inline:"), "{entry}");
            assert_eq!(
                (&entry["verified"], &entry["maintainer"]),
                (&json!(true), &json!("official"))
            );
            for text in ["name", "description", "type"] {
                assert!(entry[text].as_str().is_some_and(|text| !text.is_empty()), "{entry}");
            }
        }
        // The record is that of the newest plugin.
        fixture.made(&json!({"name": "Old"})).await;
        let (newest, _) = fixture.made(&json!({"name": "New"})).await;
        let with_record = fixture.owner.get(&path).await.json();
        assert_eq!(rest(&with_record, &newest), answer);
        let raw = fixture.owner.get(&format!("{path}?raw=true")).await.json();
        assert_eq!(raw, answer["results"]);
    })
    .await;
}
