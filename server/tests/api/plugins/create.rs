//! POST `…/{group}/`.

use std::collections::BTreeSet;

use super::hosts::{files, tea_of};
use super::*;
use weir_model::PluginId;
use weir_model::plugins::PLUGINS_MAX;
use weir_service::plugins::URL_TAKEN;
use weir_store::plugins::{self, NewSource, PluginRow};

#[tokio::test(flavor = "multi_thread")]
async fn a_new_plugin_is_source_that_is_not_there_yet() {
    each_group(async |fixture| {
        let (mut plugin, path) = fixture.made(&json!({"name": "Tea"})).await;
        assert_eq!(fixture.owner.get(&path).await.json(), plugin);
        assert!(plugin["id"].take().as_i64().unwrap() > 0);
        assert_eq!(
            plugin,
            json!({
                "id": null, "plugin_type": "source", "name": "Tea", "description": null,
                "url": null, "icon": null, "config_schema": {}, "tag": null, "latest_tag": null,
                "is_global": false, "organization_id": fixture.app.organization(),
                "organization_name": "Acme Tea", "capabilities": {}, "metrics": {},
                "public_jobs": {},
            })
        );
        // No field is required, and neither is the slash at the end.
        let answer = fixture.owner.post(fixture.path().trim_end_matches('/'), &json!({})).await;
        assert_eq!((answer.status, &answer.json()["name"]), (201, &Value::Null));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_sent_is_kept() {
    each_group(async |fixture| {
        let sent = json!({
            "plugin_type": "local", "name": "Tea", "description": "Counts cups.",
            "icon": "https://tea.example/icon.png", "tag": "1.2",
            "config_schema": {"cups": {"type": "string", "odd": [1, null]}},
            "capabilities": {"jobs": ["brew"], "odd": true},
            "metrics": {"cups": "sum"},
            "public_jobs": {"brew": {"payload": {"cups": {"type": "number"}}}},
        });
        let (plugin, _) = fixture.made(&sent).await;
        for (name, value) in sent.as_object().unwrap() {
            assert_eq!(&plugin[name], value, "{name}");
        }
        for kind in ["local", "custom", "repository", "source", "inline"] {
            let (plugin, _) = fixture.made(&json!({"plugin_type": kind})).await;
            assert_eq!(plugin["plugin_type"], kind);
        }
        let nulls = json!({
            "plugin_type": null, "name": null, "description": null, "icon": null, "tag": null,
            "url": null, "config_schema": null, "capabilities": null, "metrics": null,
            "public_jobs": null,
        });
        let (plugin, _) = fixture.made(&nulls).await;
        for name in nulls.as_object().unwrap().keys() {
            assert_eq!(plugin[name], Value::Null, "{name}");
        }
        // Read-only fields are ignored.
        let read_only = json!({"id": 7, "latest_tag": "9", "organization_name": "x"});
        let (plugin, _) = fixture.made(&read_only).await;
        assert_ne!(plugin["id"], 7);
        assert_eq!(plugin["latest_tag"], Value::Null);
        assert_eq!(plugin["organization_name"], "Acme Tea");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_settings_becomes_an_object() {
    each_group(async |fixture| {
        let list = json!([{"markdown": "# Tea"}, {"key": "cups", "type": "string", "order": 9}]);
        let (plugin, _) = fixture.made(&json!({"config_schema": list})).await;
        assert_eq!(
            plugin["config_schema"],
            json!({
                "_text_0": {"markdown": "# Tea", "order": 0},
                "cups": {"key": "cups", "type": "string", "order": 1},
            })
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_name_the_first_field() {
    each_group(async |fixture| {
        let long = |most: usize| "x".repeat(most + 1);
        let too_long =
            |most: usize| format!("Ensure this field has no more than {most} characters.");
        let not_object =
            |kind: &str| format!("Expected a dictionary of items but got type \"{kind}\".");
        for (body, attr, code, detail) in [
            (
                json!({"plugin_type": "Source", "name": []}),
                "plugin_type",
                "invalid_choice",
                "\"Source\" is not a valid choice.".to_owned(),
            ),
            (json!({"name": []}), "name", "invalid_input", "Not a valid string.".to_owned()),
            (json!({"name": long(200)}), "name", "max_length", too_long(200)),
            (json!({"description": long(10_000)}), "description", "max_length", too_long(10_000)),
            (json!({"icon": long(800)}), "icon", "max_length", too_long(800)),
            (json!({"tag": long(200)}), "tag", "max_length", too_long(200)),
            (
                json!({"config_schema": "x"}),
                "config_schema",
                "invalid_input",
                "Expected an object, or a list of objects.".to_owned(),
            ),
            (
                json!({"config_schema": [7]}),
                "config_schema",
                "invalid_input",
                "Every item of the list must be an object.".to_owned(),
            ),
            (
                json!({"is_global": "perhaps"}),
                "is_global",
                "invalid_input",
                "Must be a valid boolean.".to_owned(),
            ),
            (json!({"capabilities": []}), "capabilities", "not_a_dict", not_object("list")),
            (json!({"metrics": "x"}), "metrics", "not_a_dict", not_object("str")),
            (json!({"public_jobs": 7}), "public_jobs", "not_a_dict", not_object("int")),
            (
                json!({"metrics": {"x": long(65_536)}}),
                "metrics",
                "max_length",
                "Ensure this field has no more than 65536 bytes of JSON.".to_owned(),
            ),
        ] {
            let answer = fixture.owner.post(&fixture.path(), &body).await;
            assert_invalid(&answer, Some(attr), code, &detail);
        }
        assert_eq!(fixture.owner.get(&fixture.path()).await.json()["count"], 0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_names_a_repository_or_a_package() {
    each_group(async |fixture| {
        for url in [
            "https://github.com/acme/tea",
            "https://github.com/acme/tea/commit/0a1b2c",
            "https://github.com/acme/tea/releases/tag/v1",
            "https://github.com/acme/tea/archive/refs/tags/v2.zip",
            "https://gitlab.com/acme/group/tea",
            "https://gitlab.com/acme/tea/-/tree/dev",
        ] {
            let (plugin, path) = fixture.made(&json!({"url": url})).await;
            assert_eq!((&plugin["url"], &plugin["name"]), (&json!(url), &json!("Tea")));
            assert_eq!(plugin["plugin_type"], "custom");
            assert_eq!(plugin["description"], "Counts cups.");
            assert_eq!(plugin["config_schema"]["cups"]["default"], "1");
            assert!(plugin["capabilities"]["methods"].is_array(), "{plugin}");
            assert_eq!(plugin["public_jobs"], json!({"brew": {"payload": {}}}));
            let source = fixture.owner.get(&format!("{path}source/?raw=true")).await.json();
            let names: Vec<&String> = source.as_object().unwrap().keys().collect();
            assert_eq!(names, ["index.js", "plugin.json"]);
        }
        let chosen = json!({
            "url": "https://github.com/acme/other/tree/main", "tag": "7",
            "plugin_type": "repository",
        });
        let (plugin, _) = fixture.made(&chosen).await;
        assert_eq!((&plugin["tag"], &plugin["plugin_type"]), (&json!("7"), &json!("repository")));
        for bad in [
            "tea",
            "https://example.org/acme/tea",
            "https://github.com/acme",
            "https://github.com/acme/tea/issues",
            "file:///etc/passwd",
        ] {
            let answer = fixture.owner.post(&fixture.path(), &json!({"url": bad})).await;
            let detail = "Enter the address of a repository on github.com or gitlab.com, or of a \
                          package on npmjs.com.";
            assert_invalid(&answer, Some("url"), "invalid_input", detail);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_address_has_must_be_a_plugin() {
    each_group(async |fixture| {
        let url = json!({"url": "https://github.com/acme/tea"});
        let manifest = |text: &str| files(&[("plugin.json", text), ("index.js", "")]);
        for (files, detail) in [
            (files(&[("index.js", "")]), "The archive has no plugin.json."),
            (manifest("{}"), "plugin.json: name: This field is required."),
            (
                manifest(r#"{"name": "Tea", "stateless": true, "config": [{"key": "cups"}]}"#),
                "plugin.json: stateless: A plugin that can be configured has state.",
            ),
            (
                manifest(r#"{"name": "Tea", "posthogVersion": "{}"}"#),
                "plugin.json: posthogVersion: Not a version, or a range of versions.",
            ),
        ] {
            fixture.host.has(files);
            let answer = fixture.owner.post(&fixture.path(), &url).await;
            assert_invalid(&answer, Some("url"), "invalid_input", detail);
        }
        fixture.host.goes_down();
        let answer = fixture.owner.post(&fixture.path(), &url).await;
        let (status, _, code, _, attr) = answer.error();
        assert_eq!((status, code.as_str(), attr.as_deref()), (400, "invalid_input", Some("url")));
        assert_eq!(fixture.owner.get(&fixture.path()).await.json()["count"], 0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_catalogue_is_installed_by_its_addresses() {
    let (mut all, mut installed) = (BTreeSet::new(), BTreeSet::new());
    for group in GROUPS {
        let fixture = fixture(group).await;
        let catalogue = fixture.owner.get(&format!("{}repository/?raw=true", fixture.path())).await;
        for entry in catalogue.json().as_array().unwrap() {
            let url = entry["url"].to_string();
            all.insert(url.clone());
            let answer = fixture.owner.post(&fixture.path(), &json!({"url": entry["url"]})).await;
            if answer.status == 400 {
                let (_, _, _, detail, attr) = answer.error();
                assert_eq!(attr.as_deref(), Some("url"), "{detail}");
                assert!(detail.contains("Make this plugin through"), "{detail}");
                continue;
            }
            installed.insert(url);
            let plugin = answer.json();
            for same in ["name", "url", "description"] {
                assert_eq!(plugin[same], entry[same]);
            }
            assert_eq!(plugin["plugin_type"], "inline");
            assert_eq!(plugin["organization_id"], json!(fixture.app.organization()));
            let path = format!("{}{}/", fixture.path(), plugin["id"]);
            assert_eq!(fixture.owner.get(&path).await.status, 200, "{plugin}");
        }
        let answer = fixture.owner.post(&fixture.path(), &json!({"url": "inline:nothing"})).await;
        let detail = "The catalogue has no plugin \"nothing\".";
        assert_invalid(&answer, Some("url"), "invalid_input", detail);
    }
    assert_eq!(installed, all, "each entry can be installed through some group");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_is_installed_once() {
    each_group(async |fixture| {
        let url = |url: &str| json!({"url": url});
        let first = url("https://github.com/acme/tea");
        // Code that fits every group.
        fixture.host.has(tea_of("pipeline_frontend_apps"));
        let (_, path) = fixture.made(&first).await;
        for again in ["https://github.com/acme/tea", "https://github.com/acme/tea/?private_token=t"]
        {
            // In the other groups too, because it is the same plugin.
            for group in GROUPS {
                let answer = fixture.owner.post(&fixture.beside(group), &url(again)).await;
                assert_invalid(&answer, None, "invalid_input", URL_TAKEN);
            }
        }
        // Another version of it, and another organization.
        fixture.made(&url("https://github.com/acme/tea/tree/main")).await;
        let elsewhere = fixture.elsewhere().await;
        made(&elsewhere.caller, &elsewhere.path, &first).await;
        // And again after it was deleted.
        assert_eq!(fixture.owner.delete(&path).await.status, 204);
        fixture.made(&first).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_two_concurrent_installs_of_an_address_succeeds() {
    each_group(async |fixture| {
        let (path, url) = (fixture.path(), json!({"url": "https://github.com/acme/tea"}));
        let (one, other) =
            futures::join!(fixture.owner.post(&path, &url), fixture.owner.post(&path, &url));
        let (made, refused) = if one.status == 201 { (one, other) } else { (other, one) };
        assert_eq!(made.status, 201, "{:?}", made.body);
        assert_invalid(&refused, None, "invalid_input", URL_TAKEN);
        let listed = fixture.owner.get(&fixture.path()).await.json();
        assert_eq!(listed["count"], 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_kept_sealed_and_shown_nowhere() {
    each_group(async |fixture| {
        let url = "https://gitlab.com/acme/tea/-/tree/main?private_token=canary-8261&x=1";
        let (plugin, path) = fixture.made(&json!({"url": url})).await;
        assert_eq!(plugin["url"], "https://gitlab.com/acme/tea/-/tree/main");
        let id = PluginId(plugin["id"].as_i64().unwrap());
        let rows = plugins::rows(fixture.app.store(), &[id]).await.unwrap();
        let sealed = rows[0].private_token.as_deref().unwrap();
        assert!(sealed.starts_with("w1.") && !sealed.contains("canary"), "{sealed}");
        let log = format!("/api/organizations/{}/activity_log/", fixture.app.organization());
        for path in [path, fixture.path(), format!("{}activity/", fixture.path()), log] {
            let text = fixture.owner.get(&path).await.json().to_string();
            assert!(!text.contains("canary"), "{text}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_plugin_more_than_the_maximum_is_refused() {
    let fixture = fixture("pipeline_destinations").await;
    let (plugin, path) = fixture.made(&json!({})).await;
    let store = fixture.app.store();
    let id = PluginId(plugin["id"].as_i64().unwrap());
    let row = plugins::rows(store, &[id]).await.unwrap().remove(0);
    for _ in 1..PLUGINS_MAX {
        let row = PluginRow { id: plugins::next_number(store).await.unwrap(), ..row.clone() };
        plugins::create(store, &row, &NewSource::default(), PLUGINS_MAX, &[]).await.unwrap();
    }
    let refused = fixture.owner.post(&fixture.path(), &json!({})).await;
    let detail = "An organization may have at most 100 plugins. Delete one first.";
    assert_invalid(&refused, None, "invalid_input", detail);
    assert_eq!(fixture.owner.delete(&path).await.status, 204);
    assert_eq!(fixture.owner.post(&fixture.path(), &json!({})).await.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_have_a_maximum_of_values() {
    let fixture = fixture("pipeline_destinations").await;
    let sent = |values: usize| json!({"metrics": {"x": vec![0; values - 1]}});
    assert_eq!(fixture.owner.post(&fixture.path(), &sent(1000)).await.status, 201);
    let refused = fixture.owner.post(&fixture.path(), &sent(1001)).await;
    let detail = "Ensure this field has no more than 1000 values.";
    assert_invalid(&refused, Some("metrics"), "max_length", detail);
}
