//! POST `…/pipeline_transformation_configs/`.

use super::*;
use weir_model::plugin_configs::ENABLED_MAX;

#[tokio::test(flavor = "multi_thread")]
async fn a_config_is_created_from_a_plugin_and_an_order() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let plugin = plugin(&app, &owner).await;
    let (config, path) = made(&app, &owner, &json!({"plugin": plugin, "order": 3})).await;
    let expected = json!({
        "id": config["id"], "plugin": plugin, "enabled": false, "order": 3,
        "config": "{\"host\":\"example.com\"}", "error": null, "team_id": app.project(),
        "plugin_info": config["plugin_info"], "delivery_rate_24h": null,
        "created_at": "2026-05-28T20:26:40Z", "updated_at": "2026-05-28T20:26:40Z",
        "name": "Sampler", "description": "Keeps a part", "deleted": false,
        "on_failure": "store_unchanged",
    });
    assert_eq!(config, expected);
    let info: Value = serde_json::from_str(config["plugin_info"].as_str().unwrap()).unwrap();
    assert_eq!((&info["id"], &info["name"]), (&json!(plugin), &json!("Sampler")));
    assert_eq!(owner.get(&path).await.json(), config);
    let fields = json!({
        "plugin": [null, plugin], "order": [null, 3], "name": [null, "Sampler"],
        "config__host": [null, "example.com"],
    });
    assert_eq!(audit_entries(&app, &owner, &config).await, vec![("created".to_owned(), fields)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn values_come_as_an_object_as_its_text_and_in_forms() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let plugin = plugin(&app, &owner).await;
    let sent = json!({"host": "h", "mode": "b", "rules": "[1]", "own": {"a": [true]}});
    let of = |config: Value| json!({"plugin": plugin, "order": 1, "config": config});
    let (as_object, _) = made(&app, &owner, &of(sent.clone())).await;
    let (as_text, _) = made(&app, &owner, &of(json!(sent.to_string()))).await;
    let form = form_urlencoded::Serializer::new(String::new())
        .append_pair("plugin", &plugin.to_string())
        .append_pair("order", "1")
        .append_pair("enabled", "false")
        .append_pair("config", &sent.to_string())
        .finish();
    let call = owner.call(Method::POST, &path(&app)).body(form);
    let as_form = call.header("content-type", "application/x-www-form-urlencoded").send().await;
    for config in [as_object, as_text, as_form.json()] {
        assert_eq!(values(&config), sent);
    }
    for nothing in [Value::Null, json!("null")] {
        let (config, _) = made(&app, &owner, &of(nothing)).await;
        assert_eq!(values(&config), json!({"host": "example.com"}));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_field_at_fault_is_named() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let plugin = plugin(&app, &owner).await;
    let required = "This field is required.";
    let null = "This field may not be null.";
    let integer = "A valid integer is required.";
    let no_object = "Expected an object, or a string with the JSON text of one.";
    for (body, attr, code, detail) in [
        (json!({}), "plugin", "required", required),
        (json!({"order": 1}), "plugin", "required", required),
        (json!({"plugin": null, "order": 1}), "plugin", "null", null),
        (json!({"plugin": "x", "order": 1}), "plugin", "invalid_input", integer),
        (
            json!({"plugin": 987, "order": 1}),
            "plugin",
            "does_not_exist",
            "Object with id=987 does not exist.",
        ),
        (
            json!({"plugin": -1, "order": 1}),
            "plugin",
            "does_not_exist",
            "Object with id=-1 does not exist.",
        ),
        (json!({"plugin": plugin}), "order", "required", required),
        (json!({"plugin": plugin, "order": null}), "order", "null", null),
        (json!({"plugin": plugin, "order": "x"}), "order", "invalid_input", integer),
        (
            json!({"plugin": plugin, "order": 2_147_483_648_i64}),
            "order",
            "max_value",
            "Ensure this value is less than or equal to 2147483647.",
        ),
        (
            json!({"plugin": plugin, "order": -2_147_483_649_i64}),
            "order",
            "min_value",
            "Ensure this value is greater than or equal to -2147483648.",
        ),
        (
            json!({"plugin": plugin, "order": 1, "enabled": "perhaps"}),
            "enabled",
            "invalid_input",
            "Must be a valid boolean.",
        ),
        (json!({"plugin": plugin, "order": 1, "deleted": null}), "deleted", "null", null),
        (
            json!({"plugin": plugin, "order": 1, "config": [1]}),
            "config",
            "invalid_input",
            no_object,
        ),
        (
            json!({"plugin": plugin, "order": 1, "config": "{"}),
            "config",
            "invalid_input",
            no_object,
        ),
        (
            json!({"plugin": plugin, "order": 1, "config": {"host": ["x"]}}),
            "config__host",
            "invalid_input",
            "Not a valid string.",
        ),
        (
            json!({"plugin": plugin, "order": 1, "config": {"mode": "c"}}),
            "config__mode",
            "invalid_choice",
            "\"c\" is not a valid choice.",
        ),
        (
            json!({"plugin": plugin, "order": 1, "config": {"rules": "{"}}),
            "config__rules",
            "invalid_input",
            "Value must be valid JSON.",
        ),
        (
            json!({"plugin": plugin, "order": 1, "config": {"own": "x".repeat(65_536)}}),
            "config",
            "max_length",
            "Ensure this field has no more than 65536 bytes of JSON.",
        ),
        (
            json!({"plugin": plugin, "order": 1, "name": "x".repeat(401)}),
            "name",
            "max_length",
            "Ensure this field has no more than 400 characters.",
        ),
        (
            json!({"plugin": plugin, "order": 1, "description": "x".repeat(1001)}),
            "description",
            "max_length",
            "Ensure this field has no more than 1000 characters.",
        ),
    ] {
        let answer = owner.post(&path(&app), &body).await;
        assert_invalid(&answer, Some(attr), code, detail);
    }
    assert_eq!(owner.get(&path(&app)).await.json()["count"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_must_be_there_is_asked_for_once_it_is_enabled() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let plugin = plugin(&app, &owner).await;
    let of = |enabled: bool, config: Value| json!({"plugin": plugin, "order": 1, "enabled": enabled, "config": config});
    made(&app, &owner, &of(false, json!({"host": "", "mode": "b"}))).await;
    for (config, attr) in [
        (json!({"host": ""}), "config__host"),
        (json!({"host": null}), "config__host"),
        (json!({"mode": "b"}), "config__depth"),
    ] {
        let answer = owner.post(&path(&app), &of(true, config)).await;
        assert_invalid(&answer, Some(attr), "required", "This field is required.");
    }
    let (config, _) = made(&app, &owner, &of(true, json!({"mode": "b", "depth": "2"}))).await;
    assert_eq!(config["enabled"], true);
    let actions: Vec<String> =
        audit_entries(&app, &owner, &config).await.into_iter().map(|(action, _)| action).collect();
    assert_eq!(actions, ["created", "enabled"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_must_be_visible() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    // It makes no difference that the caller also belongs to the other organization.
    let beta = organization(&owner).await;
    let hidden = plugin_with(&beta, &owner, &json!({"plugin_type": "source", "name": "H"})).await;
    let offered = json!({"plugin_type": "source", "name": "O", "is_global": true});
    let offered = plugin_with(&beta, &owner, &offered).await;
    let answer = owner.post(&path(&app), &json!({"plugin": hidden, "order": 1})).await;
    let detail = format!("Object with id={hidden} does not exist.");
    assert_invalid(&answer, Some("plugin"), "does_not_exist", &detail);
    made(&app, &owner, &json!({"plugin": offered, "order": 1})).await;

    // It is no longer offered, but stays visible because a config uses it.
    let taken_back = format!("/api/organizations/{beta}/pipeline_destinations/{offered}/");
    let answer = owner.patch(&taken_back, &json!({"is_global": false})).await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    let (_, second) = made(&app, &owner, &json!({"plugin": offered, "order": 2})).await;
    // A hidden config does not make a plugin visible.
    for config in owner.get(&path(&app)).await.json()["results"].as_array().unwrap() {
        let one = format!("{}{}/", path(&app), config["id"]);
        assert_eq!(owner.patch(&one, &json!({"deleted": true})).await.status, 200);
    }
    let answer = owner.post(&path(&app), &json!({"plugin": offered, "order": 3})).await;
    let detail = format!("Object with id={offered} does not exist.");
    assert_invalid(&answer, Some("plugin"), "does_not_exist", &detail);
    // It does not show the plugin, and a change does not make it visible again.
    let is_hidden = owner.patch(&second, &json!({"name": "N"})).await.json();
    assert_eq!((&is_hidden["name"], &is_hidden["plugin_info"]), (&json!("N"), &Value::Null));
    let back = json!({"deleted": false});
    let answer = owner.patch(&second, &back).await;
    let detail = "Its plugin is no longer offered to the organization.";
    assert_invalid(&answer, Some("deleted"), "invalid_input", detail);
    assert_eq!(owner.get(&second).await.json(), is_hidden);
    assert_eq!(owner.patch(&taken_back, &json!({"is_global": true})).await.status, 200);
    assert!(owner.get(&second).await.json()["plugin_info"].is_string());
    assert_eq!(owner.patch(&second, &back).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_may_have_several_and_twenty_may_be_enabled() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let plugin = plugin(&app, &owner).await;
    let of = |enabled: bool| json!({"plugin": plugin, "order": 1, "enabled": enabled});
    // Concurrently, so that the limit is tested under a race.
    let both = (path(&app), of(true));
    let answers =
        futures::future::join_all((0..ENABLED_MAX + 3).map(|_| owner.post(&both.0, &both.1))).await;
    let good = answers.iter().filter(|answer| answer.status == 201);
    assert_eq!(good.count(), ENABLED_MAX);
    let detail = "At most 20 transformations of a project may be enabled. Disable one first.";
    for refused in answers.iter().filter(|answer| answer.status != 201) {
        assert_invalid(refused, Some("enabled"), "invalid_input", detail);
    }
    let (_, further) = made(&app, &owner, &of(false)).await;
    let enabled = json!({"enabled": true});
    let answer = owner.patch(&further, &enabled).await;
    assert_invalid(&answer, Some("enabled"), "invalid_input", detail);
    // An enabled config can still be changed.
    let first = answers.iter().find(|answer| answer.status == 201).unwrap().json();
    let first = format!("{}{}/", path(&app), first["id"]);
    let answer = owner.patch(&first, &json!({"enabled": true, "name": "N"})).await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    assert_eq!(owner.patch(&first, &json!({"enabled": false})).await.status, 200);
    assert_eq!(owner.patch(&further, &enabled).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn native_values_are_answered_to_who_asks_for_them() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let plugin = plugin(&app, &owner).await;
    let body = json!({"plugin": plugin, "order": 1});
    let config = owner.post(&format!("{}?expand=object", path(&app)), &body).await.json();
    assert_eq!(config["config"], json!({"host": "example.com"}));
    assert_eq!(config["plugin_info"]["name"], "Sampler");
    assert_eq!(config["delivery_rate_24h"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_made_hidden_is_not_enabled() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let plugin = plugin(&app, &owner).await;
    let body = json!({"plugin": plugin, "order": 1, "enabled": true, "deleted": true});
    let (config, _) = made(&app, &owner, &body).await;
    assert_eq!((&config["enabled"], &config["deleted"]), (&json!(false), &json!(true)));
}
