//! Files as values of settings: `add_attachment[key]` and `remove_attachment[key]` in
//! forms.

use super::*;
use uuid::Uuid;
use weir_model::plugin_configs::{ATTACHMENT_MAX, ATTACHMENTS_MAX};
use weir_store::sealing::{SealedField, with_other_keys};

const BYTES: &[u8] = b"\x00\xff--b-not\r\nthe end\x80";

async fn stored(app: &TestApp, uid: &Value) -> bool {
    let uid: Uuid = uid.as_str().unwrap().parse().unwrap();
    let found = with_other_keys(app.store(), SealedField::PluginAttachment, "none", 100).await;
    found.unwrap().iter().any(|row| row.record == uid.to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_attached_replaced_and_removed() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let plugin = plugin(&app, &owner).await.to_string();
    let file = Some(("a.csv", "text/csv"));
    let parts = [
        Part("plugin", None, plugin.as_bytes()),
        Part("order", None, b"1"),
        Part("config", None, br#"{"host": "h"}"#),
        Part("add_attachment[table]", file, BYTES),
    ];
    let answer = send_form(&owner, Method::POST, &path(&app), &parts).await;
    assert_eq!(answer.status, 201, "{:?}", answer.body);
    let config = answer.json();
    let one = format!("{}{}/", path(&app), config["id"]);
    let first = values(&config)["table"].clone();
    let expected = json!({
        "uid": first["uid"], "saved": true, "size": BYTES.len(), "name": "a.csv", "type": "text/csv",
    });
    assert_eq!(values(&config), json!({"host": "h", "table": expected}));
    assert!(stored(&app, &first["uid"]).await);

    // The shown value can be sent back, and other changes keep the file.
    let patch = json!({"config": values(&config), "name": "N"});
    assert_eq!(values(&owner.patch(&one, &patch).await.json()), values(&config));

    let file = Some(("b.csv", "text/csv; charset=utf-8"));
    let parts = [Part("add_attachment[table]", file, b"2")];
    let after = send_form(&owner, Method::PATCH, &one, &parts).await.json();
    let second = values(&after)["table"].clone();
    assert_eq!((&second["name"], &second["size"]), (&json!("b.csv"), &json!(1)));
    assert!(!stored(&app, &first["uid"]).await && stored(&app, &second["uid"]).await);

    let parts = [Part("remove_attachment[table]", None, b"true")];
    let after = send_form(&owner, Method::PATCH, &one, &parts).await.json();
    assert_eq!(values(&after), json!({"host": "h"}));
    assert!(!stored(&app, &second["uid"]).await);
    // There is no attachment left to remove.
    let again = send_form(&owner, Method::PATCH, &one, &parts).await;
    assert_eq!(again.json(), after);
    let actions: Vec<String> =
        audit_entries(&app, &owner, &config).await.into_iter().map(|(action, _)| action).collect();
    assert_eq!(
        actions,
        ["created", "attachment_created", "updated", "attachment_updated", "attachment_deleted"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_file_is_not_recorded() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let plugin = plugin(&app, &owner).await;
    let (config, one) = made(&app, &owner, &json!({"plugin": plugin, "order": 1})).await;
    let file = Some(("acme-key.json", "application/json"));
    let parts = [Part("add_attachment[credentials]", file, b"{}")];
    let after = send_form(&owner, Method::PATCH, &one, &parts).await;
    let shown = values(&after.json())["credentials"].clone();
    let expected = json!({
        "uid": shown["uid"], "saved": true, "size": -1, "name": "(secret)",
        "type": "application/octet-stream",
    });
    assert_eq!(shown, expected);
    let entries = audit_entries(&app, &owner, &config).await;
    assert_eq!(entries[1].1, json!({"config__credentials": [null, expected]}));

    // A plugin cannot remove the secrecy, also not for a later value.
    let schema = json!({"credentials": {"type": "attachment"}, "table": {"type": "attachment"}});
    let record =
        format!("/api/organizations/{}/pipeline_destinations/{plugin}/", app.organization());
    assert_eq!(owner.patch(&record, &json!({"config_schema": schema})).await.status, 200);
    assert_eq!(values(&owner.get(&one).await.json())["credentials"], expected);
    let parts = [
        Part("add_attachment[credentials]", file, b"{}"),
        Part("add_attachment[table]", file, b"{}"),
    ];
    let after = values(&send_form(&owner, Method::PATCH, &one, &parts).await.json());
    assert_eq!(after["credentials"]["name"], "(secret)");
    assert_eq!(after["table"]["name"], "acme-key.json");
    let audit_entries = json!(audit_entries(&app, &owner, &config).await);
    assert_eq!(audit_entries.to_string().matches("acme-key.json").count(), 1, "{audit_entries}");
}

#[tokio::test(flavor = "multi_thread")]
async fn so_many_files_may_be_attached() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let mut schema = json!({});
    for number in 0..=ATTACHMENTS_MAX {
        schema[format!("file{number}")] = json!({"type": "attachment"});
    }
    let plugin = json!({"plugin_type": "source", "config_schema": schema});
    let plugin = plugin_with(&app.organization().to_string(), &owner, &plugin).await;
    let (before, one) = made(&app, &owner, &json!({"plugin": plugin, "order": 1})).await;
    let fields: Vec<String> =
        (0..=ATTACHMENTS_MAX).map(|number| format!("add_attachment[file{number}]")).collect();
    let file = Some(("f", "text/plain"));
    let parts: Vec<Part<'_>> = fields.iter().map(|field| Part(field, file, b"x")).collect();
    let detail = "At most 20 files may be attached. Remove one first.";
    let answer = send_form(&owner, Method::PATCH, &one, &parts).await;
    assert_invalid(&answer, Some("config"), "invalid_input", detail);
    assert_eq!(owner.get(&one).await.json(), before);

    let (last, rest) = parts.split_last().unwrap();
    assert_eq!(send_form(&owner, Method::PATCH, &one, rest).await.status, 200);
    let last = Part(last.0, last.1, last.2);
    let answer = send_form(&owner, Method::PATCH, &one, std::slice::from_ref(&last)).await;
    assert_invalid(&answer, Some("config"), "invalid_input", detail);
    // A removed attachment allows a new one, and one can be replaced.
    let exchange = [last, Part("remove_attachment[file0]", None, b"")];
    let replace = [Part("add_attachment[file1]", file, b"y")];
    for parts in [&exchange[..], &replace[..]] {
        let answer = send_form(&owner, Method::PATCH, &one, parts).await;
        assert_eq!(answer.status, 200, "{:?}", answer.body);
        assert_eq!(values(&answer.json()).as_object().unwrap().len(), ATTACHMENTS_MAX);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn faults() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let plugin = plugin(&app, &owner).await;
    let (before, one) = made(&app, &owner, &json!({"plugin": plugin, "order": 1})).await;
    let large = vec![b'x'; ATTACHMENT_MAX + 1];
    let name = "n".repeat(201);
    let file = Some(("f", "text/plain"));
    for (part, attr, code, detail) in [
        (
            Part("add_attachment[host]", file, b"x"),
            "config__host",
            "invalid_input",
            "The plugin takes no file here.",
        ),
        (
            Part("add_attachment[nothing]", file, b"x"),
            "config__nothing",
            "invalid_input",
            "The plugin takes no file here.",
        ),
        (
            Part("add_attachment[table]", file, &large),
            "config__table",
            "max_length",
            "Ensure this file has no more than 262144 bytes.",
        ),
        (
            Part("add_attachment[table]", Some((&name, "text/plain")), b"x"),
            "config__table",
            "max_length",
            "Ensure this field has no more than 200 characters.",
        ),
    ] {
        let answer = send_form(&owner, Method::PATCH, &one, &[part]).await;
        assert_invalid(&answer, Some(attr), code, detail);
    }
    // Files under other names are unknown fields.
    let parts = [Part("table", file, b"x"), Part("add_attachment[]", file, b"x")];
    assert_eq!(send_form(&owner, Method::PATCH, &one, &parts).await.json(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_came_and_went_in_one_call_was_never_there() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let plugin = plugin(&app, &owner).await;
    let (before, one) = made(&app, &owner, &json!({"plugin": plugin, "order": 1})).await;
    let parts = [
        Part("add_attachment[table]", Some(("f", "text/plain")), b"x"),
        Part("remove_attachment[table]", None, b""),
    ];
    assert_eq!(send_form(&owner, Method::PATCH, &one, &parts).await.json(), before);
}
