//! PATCH `…/{group}/{id}/`.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_field_keeps_its_value() {
    each_group(async |fixture| {
        let body = json!({"name": "Tea", "metrics": {"cups": "sum"}, "tag": "1"});
        let (before, path) = fixture.made(&body).await;
        assert_eq!(fixture.owner.patch(&path, &json!({})).await.json(), before);
        // The address of a plugin cannot change.
        let read_only = json!({
            "id": 7, "url": "https://github.com/acme/other", "latest_tag": "9",
            "organization_id": null,
        });
        assert_eq!(fixture.owner.patch(&path, &read_only).await.json(), before);
        let patch = json!({
            "plugin_type": "repository", "name": "Green tea", "description": "d",
            "icon": "https://tea.example/i.png", "tag": null, "metrics": {"pots": "max"},
            "config_schema": [{"key": "cups", "type": "string"}], "public_jobs": null,
        });
        let answer = fixture.owner.patch(&path, &patch).await;
        assert_eq!(answer.status, 200, "{:?}", answer.body);
        let after = answer.json();
        let mut expected = before.clone();
        for (name, value) in patch.as_object().unwrap() {
            expected[name] = value.clone();
        }
        expected["config_schema"] = json!({"cups": {"key": "cups", "type": "string", "order": 0}});
        assert_eq!(after, expected);
        assert_eq!(fixture.owner.get(&path).await.json(), after);
        assert_eq!(fixture.owner.put(&path, &body).await.status, 200, "PUT does what PATCH does");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_change_nothing() {
    each_group(async |fixture| {
        let (before, path) = fixture.made(&json!({"name": "Tea"})).await;
        for (body, attr, code) in [
            (json!({"name": "x", "plugin_type": "y"}), "plugin_type", "invalid_choice"),
            (json!({"name": "x", "tag": "y".repeat(201)}), "tag", "max_length"),
            (json!({"name": "x", "config_schema": 7}), "config_schema", "invalid_input"),
            (json!({"name": "x", "is_global": null}), "is_global", "null"),
            (json!({"name": "x", "capabilities": "y"}), "capabilities", "not_a_dict"),
        ] {
            let answer = fixture.owner.patch(&path, &body).await;
            let (status, _, found, _, at) = answer.error();
            assert_eq!((status, found.as_str(), at.as_deref()), (400, code, Some(attr)), "{body}");
        }
        assert_eq!(fixture.owner.get(&path).await.json(), before);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_recorded_once() {
    each_group(async |fixture| {
        let (plugin, path) = fixture.made(&json!({"name": "Tea"})).await;
        fixture.owner.patch(&path, &json!({"name": "Tea", "metrics": {}})).await;
        fixture.owner.patch(&path, &json!({"name": "Green tea"})).await;
        let log = format!(
            "/api/organizations/{}/activity_log/?scope=Plugin&item_id={}",
            fixture.app.organization(),
            plugin["id"]
        );
        let log = fixture.owner.get(&log).await.json();
        assert_eq!(log["count"], 2, "{log}");
        let newest = &log["results"][0];
        assert_eq!((&newest["activity"], &newest["scope"]), (&json!("updated"), &json!("Plugin")));
        assert_eq!(
            newest["detail"],
            json!({"name": "Green tea", "changes": [{
                "type": "Plugin", "action": "changed", "field": "name",
                "before": "Tea", "after": "Green tea",
            }]})
        );
        assert_eq!(log["results"][1]["activity"], "installed");
    })
    .await;
}
