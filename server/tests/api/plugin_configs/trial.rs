//! POST `…/pipeline_transformation_configs/{id}/test/` and `…/test/`.

use super::*;

/// A config of a plugin whose code is `body`.
async fn step(app: &TestApp, caller: &Caller, order: i64, body: &str) -> (Value, String) {
    let source = format!("export function processEvent(event) {{ {body} }}");
    let plugin = written(app, caller, &json!({"index.js": source})).await;
    made(app, caller, &json!({"plugin": plugin, "order": order, "enabled": true})).await
}

fn visit() -> Value {
    json!({"event": {
        "event": "visit", "distinct_id": "ada", "properties": {"path": "/tea", "n": 1},
    }})
}

#[tokio::test(flavor = "multi_thread")]
async fn each_step_shows_what_it_did() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let (second, _) = step(
        &app,
        &owner,
        2,
        "console.log('seen', event.event); event.properties.n += 1; return event",
    )
    .await;
    let (first, _) =
        step(&app, &owner, 1, "event.properties.path = 'x'; throw new Error('no tea')").await;
    let (last, _) = step(&app, &owner, 3, "return event").await;
    let answer = owner.post(&format!("{}test/", path(&app)), &visit()).await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    let answer = answer.json();
    let steps = answer["results"].as_array().unwrap();
    let outcomes: Vec<(&Value, &Value)> =
        steps.iter().map(|step| (&step["config"], &step["outcome"])).collect();
    assert_eq!(
        outcomes,
        [
            (&first["id"], &json!("failed")),
            (&second["id"], &json!("changed")),
            (&last["id"], &json!("unchanged")),
        ]
    );
    // A failed step leaves the event unchanged.
    assert!(steps[0]["error"].as_str().unwrap().contains("no tea"), "{}", steps[0]);
    assert_eq!(steps[1]["error"], Value::Null);
    assert_eq!(steps[1]["event"]["properties"]["n"], 2);
    assert!(steps[1]["logs"][0].as_str().unwrap().contains("seen"), "{}", steps[1]);
    assert!(steps.iter().all(|step| step["duration_ms"].as_f64().is_some_and(|ms| ms >= 0.0)));
    assert_eq!(answer["event"]["properties"]["path"], "/tea");
    assert_eq!(answer["event"]["properties"]["n"], 2);
    // No event was stored.
    let events = format!("/api/projects/{}/events/", app.project());
    assert_eq!(owner.get(&events).await.json()["results"], json!([]));
    let health = owner.get(&path(&app)).await.json();
    assert_eq!(health["results"][0]["error"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_drops_the_event_ends_it() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let (dropping, one) = step(&app, &owner, 1, "return null").await;
    let (_, other) = step(&app, &owner, 2, "event.event = 'late'; return event").await;
    let answer = owner.post(&format!("{}test/", path(&app)), &visit()).await.json();
    assert_eq!(answer["event"], Value::Null);
    assert_eq!(answer["results"].as_array().unwrap().len(), 1);
    assert_eq!(answer["results"][0]["config"], dropping["id"]);
    assert_eq!(answer["results"][0]["outcome"], "dropped");
    // A single config, also a disabled one. Without an event an example is used.
    owner.patch(&other, &json!({"enabled": false})).await;
    let answer = owner.post(&format!("{other}test/"), &json!({})).await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    assert_eq!(answer.json()["event"]["event"], "late");
    let answer = owner.post(&format!("{one}test/"), &json!({"event": null})).await.json();
    assert_eq!(answer["event"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_newest_event_keeps_its_digits() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let (_, one) = step(&app, &owner, 1, "event.properties.seen = true; return event").await;
    let body = format!(
        r#"{{"api_key":"{}","event":"visit","distinct_id":"ada","properties":{{"n":12345678901234567890123}}}}"#,
        app.project_key(),
    );
    let call = app.anonymous().call(Method::POST, "/i/v0/e/");
    let sent = call.header("content-type", "application/json").body(body.into_bytes()).send();
    assert_eq!(sent.await.status, 200);
    app.app().ingest.applied().await;
    let answer = owner.post(&format!("{one}test/"), &json!({})).await;
    let text = String::from_utf8_lossy(&answer.body);
    // After the step, and in the result.
    assert_eq!(text.matches(r#""n":12345678901234567890123"#).count(), 2, "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_of_the_catalogue_is_tried_alike() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let organization = app.organization().to_string();
    let catalogue = json!({"url": "inline:property-filter"});
    let plugin = plugin_with(&organization, &owner, &catalogue).await;
    let body = json!({
        "plugin": plugin, "order": 1, "enabled": true, "config": {"properties": "path"},
    });
    let (_, one) = made(&app, &owner, &body).await;
    let answer = owner.post(&format!("{one}test/"), &visit()).await.json();
    assert_eq!(answer["results"][0]["outcome"], "changed", "{answer}");
    assert_eq!(answer["event"]["properties"], json!({"n": 1}));
}

#[tokio::test(flavor = "multi_thread")]
async fn faults() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let (_, one) = step(&app, &owner, 1, "return event").await;
    let test = format!("{one}test/");
    for (event, attr, code, detail) in [
        (json!(7), "event", "not_a_dict", "Expected a dictionary of items but got type \"int\"."),
        (json!({"event": 7}), "event__event", "invalid_input", "Not a valid string."),
        (json!({"distinct_id": []}), "event__distinct_id", "invalid_input", "Not a valid string."),
        (json!({"properties": 7}), "event__properties", "invalid_input", "Expected an object."),
    ] {
        let answer = owner.post(&test, &json!({"event": event})).await;
        assert_invalid(&answer, Some(attr), code, detail);
    }
    assert_not_found(&owner.post(&format!("{}999/test/", path(&app)), &visit()).await);
    let reader = app.owner().key(&["plugin:read"]).await;
    for path in [test, format!("{}test/", path(&app))] {
        assert_eq!(reader.post(&path, &visit()).await.status, 403);
    }
}
