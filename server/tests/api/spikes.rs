//! A flood of events causes a warning, an import never does (ING-57).

use http::Method;
use serde_json::{Value, json};
use weir_testkit::TestApp;

/// More than a thousand a second over ten seconds.
const FLOOD: usize = 10_500;

/// Codes and counts of the warnings.
async fn noticed(app: &TestApp) -> Vec<(String, u64)> {
    app.app().ingest.applied().await;
    let reader = app.owner().key(&["project:read"]).await;
    let path = format!("/api/projects/{}/ingestion_warnings/", app.project());
    let list = reader.get(&path).await.json();
    let reasons = list["results"].as_array().unwrap();
    let of = |reason: &Value| {
        (reason["code"].as_str().unwrap().to_owned(), reason["count"].as_u64().unwrap())
    };
    reasons.iter().map(of).collect()
}

/// Sends a flood of events of one distinct id at one instant. It is the same event again
/// and again, because floods are detected by arrivals.
async fn flood(app: &TestApp, historical: bool) {
    let event = json!({
        "event": "a", "distinct_id": "hot", "uuid": "0191d5f0-0000-7000-8000-000000000001",
    });
    let events = vec![event; FLOOD];
    let body = json!({
        "api_key": app.project_key(), "historical_migration": historical, "batch": events,
    });
    let call = app.anonymous().call(Method::POST, "/batch/").json(&body);
    assert_eq!(call.send().await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_is_noticed_and_an_import_is_none() {
    let app = TestApp::with_owner().await;
    let repeats = |floods: usize| ("duplicate_uuid".to_owned(), (floods * FLOOD - 1) as u64);
    flood(&app, true).await;
    assert_eq!(noticed(&app).await, [repeats(1)]);
    // The same as live events: none is refused, and there is a warning.
    flood(&app, false).await;
    let found = noticed(&app).await;
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found.contains(&repeats(2)), "{found:?}");
    assert!(found.iter().any(|(code, _)| code == "spike_of_distinct_id"), "{found:?}");
    let reader = app.owner().key(&["query:read"]).await;
    let path = format!("/api/projects/{}/events/?limit=1", app.project());
    assert_eq!(reader.get(&path).await.json()["results"][0]["distinct_id"], "hot");
    app.stop().await;
}
