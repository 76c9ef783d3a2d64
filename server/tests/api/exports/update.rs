//! PATCH `…/batch_exports/{id}/`.

use super::*;
use weir_model::exports::config::SEND_AGAIN;

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_field_keeps_its_value() {
    let (app, clock) = app().await;
    let owner = owner(&app).await;
    let (before, path) = made(&app, &owner, &s3()).await;
    clock.advance(5);
    assert_eq!(owner.patch(&path, &json!({})).await.json(), before);
    assert_eq!(owner.patch(&path, &json!({"destination": {}})).await.json(), before);
    let unknown = json!({"id": "x", "team_id": 999, "latest_runs": 1, "unknown": 2});
    assert_eq!(owner.patch(&path, &unknown).await.json(), before);

    let patch = json!({
        "name": "Weekly", "interval": "week", "start_at": "2026-06-01T00:00Z",
        "destination": {"config": {"prefix": "new/", "max_file_size_mb": "10"}},
    });
    let answer = owner.patch(&path, &patch).await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    let after = answer.json();
    assert_eq!(after["name"], "Weekly");
    assert_eq!(after["interval"], "week");
    assert_eq!(after["start_at"], "2026-06-01T00:00:00Z");
    assert_eq!(after["last_updated_at"], "2026-05-28T20:26:45Z");
    let config = &after["destination"]["config"];
    assert_eq!((&config["prefix"], &config["bucket_name"]), (&json!("new/"), &json!("events")));
    assert_eq!(config["max_file_size_mb"], 10);
    assert_eq!(owner.get(&path).await.json(), after);
    let cleared = owner.patch(&path, &json!({"start_at": null})).await.json();
    assert_eq!(cleared["start_at"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_exported_stays() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let (events, path) = made(&app, &owner, &s3()).await;
    assert_eq!(owner.patch(&path, &json!({"model": "events"})).await.json(), events);
    let detail = "What is exported cannot be changed. Create another export.";
    let answer = owner.patch(&path, &json!({"model": "persons"})).await;
    assert_invalid(&answer, Some("model"), "invalid_input", detail);
    let answer = owner.patch(&path, &json!({"model": null})).await;
    assert_invalid(&answer, Some("model"), "null", "This field may not be null.");

    // Values that are invalid for an export of persons are refused in a change too.
    let (persons, path) = made(&app, &owner, &with(s3(), "model", json!("persons"))).await;
    let http = json!({"type": "HTTP", "config": {"url": "https://x.example/batch/", "token": "t"}});
    for (patch, attr) in [
        (json!({"model": "events"}), Some("model")),
        (json!({"hogql_query": "SELECT event FROM events"}), Some("hogql_query")),
        (
            json!({"destination": {"config": {"include_events": ["paid"]}}}),
            Some("destination__config__include_events"),
        ),
        (json!({"destination": http}), None),
    ] {
        let answer = owner.patch(&path, &patch).await;
        let (status, _, code, _, at) = answer.error();
        assert_eq!((status, code.as_str(), at.as_deref()), (400, "invalid_input", attr), "{patch}");
    }
    assert_eq!(owner.get(&path).await.json(), persons);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_host_wants_the_secrets_again() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let (_, path) = made(&app, &owner, &postgres()).await;
    let config = |config: Value| json!({"destination": {"config": config}});
    for (sent, attr) in [
        (json!({"host": "evil.example"}), "destination__config__user"),
        (json!({"host": "evil.example", "user": "u-canary"}), "destination__config__password"),
        (json!({"port": 1}), "destination__config__user"),
        (json!({"user": "root"}), "destination__config__password"),
    ] {
        let answer = owner.patch(&path, &config(sent)).await;
        assert_invalid(&answer, Some(attr), "required", SEND_AGAIN);
    }
    let moved = json!({"host": "db2.example", "user": "u", "password": "p"});
    assert_eq!(owner.patch(&path, &config(moved)).await.status, 200);
    assert_eq!(owner.patch(&path, &config(json!({"table_name": "t"}))).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_endpoint_wants_the_key_again() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let storage = json!({"type": "GoogleCloudStorage", "config": {
        "bucket_name": "events", "service_account_key": "{\"private_key\": \"canary\"}",
    }});
    let (export, path) = made(&app, &owner, &with(s3(), "destination", storage)).await;
    assert!(!export.to_string().contains("canary"), "{export}");
    let config = |config: Value| json!({"destination": {"config": config}});
    for endpoint in ["https://storage.evil.example", "http://127.0.0.1:1"] {
        let answer = owner.patch(&path, &config(json!({"endpoint_url": endpoint}))).await;
        let attr = Some("destination__config__service_account_key");
        assert_invalid(&answer, attr, "required", SEND_AGAIN);
    }
    let moved = json!({"endpoint_url": "https://gcs.example", "service_account_key": "{}"});
    assert_eq!(owner.patch(&path, &config(moved)).await.status, 200);
    assert_eq!(owner.patch(&path, &config(json!({"prefix": "p/"}))).await.status, 200);
    // A directory of the server has no secrets, and its path cannot leave the configured
    // directory.
    let local = json!({"type": "LocalDirectory", "config": {"path": "events/daily"}});
    let (_, path) = made(&app, &owner, &with(s3(), "destination", local)).await;
    assert_eq!(owner.patch(&path, &config(json!({"path": "events/new"}))).await.status, 200);
    for out in ["/etc", "../events", "events/../../x", "", "a//b"] {
        let answer = owner.patch(&path, &config(json!({"path": out}))).await;
        let (status, _, _, _, attr) = answer.error();
        assert_eq!((status, attr.as_deref()), (400, Some("destination__config__path")), "{out}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_type_starts_from_nothing() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let (_, path) = made(&app, &owner, &s3()).await;
    let destination = |value: Value| json!({"destination": value});
    let answer = owner.patch(&path, &destination(json!({"type": "Postgres"}))).await;
    let attr = Some("destination__config__host");
    assert_invalid(&answer, attr, "required", "This field is required.");
    let answer = owner.patch(&path, &json!({"destination": postgres()["destination"]})).await;
    assert_eq!(answer.json()["destination"]["type"], "Postgres");
    assert!(answer.json()["destination"]["config"].get("bucket_name").is_none());
    let no_op = destination(json!({"type": "NoOp", "config": {}}));
    let answer = owner.patch(&path, &no_op).await.json();
    assert_eq!(answer["destination"]["config"]["arg"], "");
    let answer = owner.patch(&path, &destination(json!({"type": "Ftp"}))).await;
    let detail = "\"Ftp\" is not a valid choice.";
    assert_invalid(&answer, Some("destination__type"), "invalid_choice", detail);
}

#[tokio::test(flavor = "multi_thread")]
async fn pausing_by_patch_notes_when() {
    let (app, clock) = app().await;
    let owner = owner(&app).await;
    let (_, path) = made(&app, &owner, &s3()).await;
    clock.advance(60);
    let paused = owner.patch(&path, &json!({"paused": true})).await.json();
    assert_eq!(paused["last_paused_at"], "2026-05-28T20:27:40Z");
    clock.advance(60);
    let again = owner.patch(&path, &json!({"paused": true})).await.json();
    assert_eq!(again["last_paused_at"], paused["last_paused_at"]);
    let body = json!({"paused": false, "last_paused_at": "2026-01-01T00:00Z"});
    let given = owner.patch(&path, &body).await.json();
    assert_eq!(
        (&given["paused"], &given["last_paused_at"]),
        (&json!(false), &json!("2026-01-01T00:00:00Z"))
    );
    for (body, attr, code) in [
        (json!({"paused": null}), "paused", "null"),
        (json!({"name": null}), "name", "null"),
        (json!({"interval": null}), "interval", "null"),
        (
            json!({"end_at": "2026-01-01T00:00Z", "start_at": "2026-01-02T00:00Z"}),
            "end_at",
            "invalid_input",
        ),
        (json!({"hogql_query": "SELECT"}), "hogql_query", "invalid_input"),
        (json!({"last_paused_at": "2027-01-01T00:00Z"}), "last_paused_at", "invalid_input"),
    ] {
        let answer = owner.patch(&path, &body).await;
        let (status, _, found, _, at) = answer.error();
        assert_eq!((status, found.as_str(), at.as_deref()), (400, code, Some(attr)), "{body}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_is_replaced_and_cleared() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let query = with(s3(), "hogql_query", json!("SELECT event FROM events"));
    let (before, path) = made(&app, &owner, &query).await;
    let same = owner.patch(&path, &json!({"hogql_query": before["hogql_query"]})).await.json();
    assert_eq!(same, before);
    let other = owner.patch(&path, &json!({"hogql_query": "SELECT uuid AS id FROM events"})).await;
    assert_eq!(other.json()["schema"]["fields"][0]["alias"], "id");
    let none = owner.patch(&path, &json!({"hogql_query": null})).await.json();
    assert_eq!((&none["hogql_query"], &none["schema"]), (&Value::Null, &Value::Null));
    // PUT works like PATCH with the fields that a new export requires.
    let answer = owner.put(&path, &json!({"name": "Weekly"})).await;
    let detail = "This field is required.";
    answer.assert_field_error(400, "validation_error", "required", detail, Some("destination"));
    let answer = owner.put(&path, &s3()).await;
    assert_eq!((answer.status, &answer.json()["id"]), (200, &owner.get(&path).await.json()["id"]));
}
