//! PATCH `…/pipeline_transformation_configs/{id}/`.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_field_keeps_its_value() {
    let (app, clock) = app().await;
    let owner = owner(&app).await;
    let plugin = plugin(&app, &owner).await;
    let (before, path) = made(&app, &owner, &json!({"plugin": plugin, "order": 1})).await;
    clock.advance(5);
    for nothing in [
        json!({}),
        json!({"plugin": plugin, "id": 1, "error": "x", "team_id": 9, "unknown": 1}),
        json!({"config": null, "order": 1, "enabled": false}),
        json!({"config": before["config"]}),
    ] {
        assert_eq!(owner.patch(&path, &nothing).await.json(), before, "{nothing}");
    }
    assert_eq!(audit_entries(&app, &owner, &before).await.len(), 1);

    let patch = json!({"name": " Mine ", "description": "D", "order": "7", "enabled": 1});
    let answer = owner.patch(&path, &patch).await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    let after = answer.json();
    for (field, value) in [
        ("name", json!("Mine")),
        ("description", json!("D")),
        ("order", json!(7)),
        ("enabled", json!(true)),
        ("updated_at", json!("2026-05-28T20:26:45Z")),
        ("created_at", before["created_at"].clone()),
    ] {
        assert_eq!(after[field], value, "{field}");
    }
    assert_eq!(owner.get(&path).await.json(), after);
    let entries = audit_entries(&app, &owner, &before).await;
    assert_eq!(
        entries[1..],
        [
            ("updated".to_owned(), json!({"name": [null, "Mine"], "description": [null, "D"]})),
            ("order_changed".to_owned(), json!({"order": [1, 7]})),
            ("enabled".to_owned(), json!({"enabled": [false, true]})),
        ]
    );
    // An empty value is replaced by the plugin's.
    let cleared = owner.patch(&path, &json!({"name": "", "description": null})).await.json();
    assert_eq!(
        (&cleared["name"], &cleared["description"]),
        (&json!("Sampler"), &json!("Keeps a part"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn new_values_replace_all() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let plugin = plugin(&app, &owner).await;
    let config = json!({"host": "h", "mode": "a", "own": 1});
    let body = json!({"plugin": plugin, "order": 1, "config": config});
    let (config, path) = made(&app, &owner, &body).await;
    let patch = json!({"config": {"mode": "b", "own": [2]}});
    let after = owner.patch(&path, &patch).await.json();
    assert_eq!(values(&after), json!({"mode": "b", "own": [2]}));
    let changes = json!({
        "config__host": ["h", null], "config__mode": ["a", "b"], "config__own": [1, [2]],
    });
    let entries = audit_entries(&app, &owner, &config).await;
    assert_eq!(entries[1..], [("config_updated".to_owned(), changes)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_must_be_there_is_asked_for_when_it_matters() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let plugin = plugin(&app, &owner).await;
    let body = json!({"plugin": plugin, "order": 1, "config": {"host": ""}});
    let (_, path) = made(&app, &owner, &body).await;
    let required = |answer: &Answer| {
        assert_invalid(answer, Some("config__host"), "required", "This field is required.");
    };
    required(&owner.patch(&path, &json!({"enabled": true})).await);
    let whole = json!({"enabled": true, "config": {"host": "h"}});
    assert_eq!(owner.patch(&path, &whole).await.status, 200);
    required(&owner.patch(&path, &json!({"config": {}})).await);

    // The plugin has a new required setting. Changes that do not contain the values still
    // work.
    let schema = json!({"host": {"type": "string"}, "more": {"type": "string", "required": true}});
    let record =
        format!("/api/organizations/{}/pipeline_destinations/{plugin}/", app.organization());
    let answer = owner.patch(&record, &json!({"config_schema": schema})).await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    assert_eq!(owner.patch(&path, &json!({"name": "N"})).await.status, 200);
    assert_eq!(owner.patch(&path, &json!({"enabled": false})).await.status, 200);
    let answer = owner.patch(&path, &json!({"enabled": true})).await;
    assert_invalid(&answer, Some("config__more"), "required", "This field is required.");
}

#[tokio::test(flavor = "multi_thread")]
async fn hiding_disables_and_can_be_taken_back() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let plugin = plugin(&app, &owner).await;
    let body = json!({"plugin": plugin, "order": 1, "enabled": true});
    let (config, one) = made(&app, &owner, &body).await;
    let hidden = owner.patch(&one, &json!({"deleted": true, "enabled": true})).await.json();
    assert_eq!((&hidden["enabled"], &hidden["deleted"]), (&json!(false), &json!(true)));
    assert_eq!(owner.get(&path(&app)).await.json()["count"], 0);
    let still = owner.patch(&one, &json!({"enabled": true})).await.json();
    assert_eq!(still["enabled"], false);
    let back = owner.patch(&one, &json!({"deleted": false})).await.json();
    assert_eq!((&back["enabled"], &back["deleted"]), (&json!(false), &json!(false)));
    assert_eq!(owner.get(&path(&app)).await.json()["count"], 1);
    let entries = audit_entries(&app, &owner, &config).await;
    let expected = [
        ("updated".to_owned(), json!({"deleted": [false, true]})),
        ("disabled".to_owned(), json!({"enabled": [true, false]})),
        ("updated".to_owned(), json!({"deleted": [true, false]})),
    ];
    assert_eq!(entries[2..], expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn faults() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let plugin = plugin(&app, &owner).await;
    let (before, path) = made(&app, &owner, &json!({"plugin": plugin, "order": 1})).await;
    for (body, attr, code) in [
        (json!({"enabled": null}), "enabled", "null"),
        (json!({"order": null}), "order", "null"),
        (json!({"order": 1.5}), "order", "invalid_input"),
        (json!({"config": 7}), "config", "invalid_input"),
        (json!({"config": {"mode": 7}}), "config__mode", "invalid_choice"),
        (json!({"deleted": "x"}), "deleted", "invalid_input"),
        (json!({"name": "x".repeat(401)}), "name", "max_length"),
    ] {
        let answer = owner.patch(&path, &body).await;
        let (status, _, found, _, at) = answer.error();
        assert_eq!((status, found.as_str(), at.as_deref()), (400, code, Some(attr)), "{body}");
    }
    assert_eq!(owner.get(&path).await.json(), before);
    // PUT works like PATCH.
    assert_eq!(owner.put(&path, &json!({"plugin": plugin, "order": 1})).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn short_values_are_recorded() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let plugin = plugin(&app, &owner).await;
    let (config, path) = made(&app, &owner, &json!({"plugin": plugin, "order": 1})).await;
    let newest = async |values: Value| {
        let answer = owner.patch(&path, &json!({"config": values})).await;
        assert_eq!(answer.status, 200, "{:?}", answer.body);
        audit_entries(&app, &owner, &config).await.pop().unwrap().1
    };
    let is_hash = |value: &Value| {
        value.as_str().is_some_and(|hash| hash.len() == 71 && hash.starts_with("sha256:"))
    };
    let (host, long) = ("example.com", json!("x".repeat(5000)));
    let one = newest(json!({"host": host, "code": long})).await;
    assert!(one["config__code"][0].is_null() && is_hash(&one["config__code"][1]), "{one}");
    // Several long values become one change of `config`, and so do many values.
    let both = newest(json!({"host": host, "code": "a", "own": long})).await;
    assert_eq!(both.as_object().unwrap().len(), 1, "{both}");
    assert!(is_hash(&both["config"][0]) && is_hash(&both["config"][1]), "{both}");
    let mut many: serde_json::Map<String, Value> =
        (0..60).map(|n| (format!("k{n}"), json!(n))).collect();
    many.insert("host".to_owned(), json!(host));
    newest(json!({"host": host})).await;
    let audit_entries = newest(Value::Object(many.clone())).await;
    many.remove("host");
    assert_eq!(audit_entries, json!({"config": [{}, many]}));
}

/// Otherwise the audit entry could not be read back.
#[tokio::test(flavor = "multi_thread")]
async fn values_are_nested_no_deeper_as_a_text_either() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let plugin = plugin(&app, &owner).await;
    let (config, path) = made(&app, &owner, &json!({"plugin": plugin, "order": 1})).await;
    let of =
        |depth: usize| format!(r#"{{"a": {}{}}}"#, "[".repeat(depth - 1), "]".repeat(depth - 1));
    let answer = owner.patch(&path, &json!({"config": of(65)})).await;
    let detail = "More than 64 nested objects and lists.";
    assert_invalid(&answer, Some("config"), "invalid_input", detail);
    let answer = owner.patch(&path, &json!({"config": of(64)})).await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    assert_eq!(audit_entries(&app, &owner, &config).await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_plugin_never_changes() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let (one, other) = (plugin(&app, &owner).await, plugin(&app, &owner).await);
    let (before, path) = made(&app, &owner, &json!({"plugin": one, "order": 1})).await;
    let detail = "The plugin of a config never changes. Make another config.";
    for body in [json!({"plugin": other}), json!({"plugin": 987, "name": "N"})] {
        assert_invalid(&owner.patch(&path, &body).await, Some("plugin"), "invalid_input", detail);
    }
    let null = owner.patch(&path, &json!({"plugin": null})).await;
    assert_invalid(&null, Some("plugin"), "null", "This field may not be null.");
    // The object that was read can be sent back.
    assert_eq!(owner.patch(&path, &before).await.json(), before);
}
