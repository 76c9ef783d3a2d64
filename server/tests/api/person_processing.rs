//! Projects that do not process persons (ING-42).

use serde_json::{Value, json};
use weir_testkit::{Caller, TestApp};

use crate::stored::{get, send};

async fn switch(app: &TestApp, caller: &Caller, off: bool) {
    let path = format!("/api/projects/{}/", app.project());
    let answer = caller.patch(&path, &json!({"person_processing_opt_out": off})).await;
    assert_eq!((answer.status, &answer.json()["person_processing_opt_out"]), (200, &json!(off)));
}

/// An event with many person properties. `flag` is its `$process_person_profile`.
fn event_of(who: &str, flag: Option<bool>) -> Value {
    let mut event = json!({
        "event": "paid", "distinct_id": who,
        "$set": {"plan": "gold"},
        "properties": {
            "price": 7, "$browser": "Chrome", "$ip": "192.0.2.7",
            "$set": {"email": "ada@example.com"}, "$set_once": {"source": "ad"}, "$unset": ["x"],
        },
    });
    if let Some(flag) = flag {
        event["properties"]["$process_person_profile"] = json!(flag);
    }
    event
}

async fn stored(app: &TestApp, caller: &Caller, who: &str) -> (Value, Value) {
    let found = get(app, caller, &format!("events/?distinct_id={who}")).await;
    let event = &found["results"][0];
    (event["properties"].clone(), event["person"].clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn events_have_no_persons_while_the_project_opts_out() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["project:write", "event:read", "person:read"]).await;
    let path = format!("/api/projects/{}/", app.project());
    assert_eq!(caller.get(&path).await.json()["person_processing_opt_out"], false);

    send(&app, json!([event_of("by-flag", Some(false))])).await;
    let by_flag = stored(&app, &caller, "by-flag").await;
    let plain = json!({
        "price": 7, "$browser": "Chrome", "$ip": "192.0.2.7", "$process_person_profile": false,
    });
    assert_eq!(by_flag, (plain, Value::Null));

    switch(&app, &caller, true).await;
    send(
        &app,
        json!([
            event_of("silent", None),
            event_of("willing", Some(true)),
            event_of("refusing", Some(false)),
            {"event": "$identify", "distinct_id": "ada",
             "properties": {"$anon_distinct_id": "silent", "$set": {"plan": "gold"}}},
        ]),
    )
    .await;
    for who in ["silent", "willing", "refusing"] {
        assert_eq!(stored(&app, &caller, who).await, by_flag, "{who}");
    }
    assert_eq!(get(&app, &caller, "persons/").await["results"], json!([]));
    let warnings = get(&app, &caller, "ingestion_warnings/").await;
    let warning = &warnings["results"][0];
    assert_eq!((&warning["code"], &warning["count"]), (&json!("profile_switched_off"), &json!(1)));

    // Turned on again: events from the meantime stay without persons.
    switch(&app, &caller, false).await;
    send(&app, json!([event_of("later", None)])).await;
    let (properties, person) = stored(&app, &caller, "later").await;
    assert_eq!(properties.get("$process_person_profile"), None);
    assert_eq!(person["properties"]["plan"], "gold");
    assert_eq!(person["properties"]["$browser"], "Chrome");
    assert_eq!(stored(&app, &caller, "silent").await, by_flag);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_newer_protocol_and_imports_follow_the_setting_too() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["project:write", "event:read", "person:read"]).await;
    switch(&app, &caller, true).await;
    let mut event = event_of("newer", Some(true));
    event["uuid"] = json!("0197c2f4-1c10-7d20-8e30-4f5061728394");
    event["timestamp"] = json!("2026-06-01T10:00:00Z");
    event["options"] = json!({"process_person_profile": true});
    let body = json!({"created_at": "2026-06-01T10:00:00Z", "batch": [event]});
    let answer = app
        .anonymous()
        .call(http::Method::POST, "/i/v1/analytics/events")
        .header("authorization", &format!("Bearer {}", app.project_key()))
        .header("user-agent", "test/1.0")
        .header("posthog-sdk-info", "test/1.0")
        .header("posthog-attempt", "1")
        .header("posthog-request-id", "0197c2f4-1c10-7d20-8e30-4f5061728395")
        .header("posthog-request-timestamp", "2026-06-01T10:00:00Z")
        .json(&body)
        .send()
        .await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    let import = json!({
        "api_key": app.project_key(), "historical_migration": true,
        "batch": [event_of("imported", None)],
    });
    assert_eq!(app.anonymous().post("/batch/", &import).await.status, 200);
    app.app().ingest.applied().await;
    for who in ["newer", "imported"] {
        let (properties, person) = stored(&app, &caller, who).await;
        assert_eq!((&properties["$process_person_profile"], person), (&json!(false), Value::Null));
        assert_eq!(properties.get("$set"), None, "{who}");
    }
    assert_eq!(get(&app, &caller, "persons/").await["results"], json!([]));
}
