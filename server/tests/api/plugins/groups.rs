//! Which group lists which plugin (PLG-6).

use super::*;

/// The groups that list a plugin.
async fn shown_in(place: &Place, plugin: &Value) -> Vec<&'static str> {
    let mut shown = Vec::new();
    for group in GROUPS {
        let list = place.owner.get(&place.beside(group)).await.json();
        if ids(&list).contains(&plugin["id"]) {
            shown.push(group);
        }
    }
    shown
}

/// The groups for these capabilities.
fn of(capabilities: &Value) -> Vec<&'static str> {
    let [destinations, frontend, import] = GROUPS;
    match capabilities.to_string().as_str() {
        "{}" | "null" | r#"{"jobs":["x"]}"# => vec![frontend],
        r#"{"methods":["onEvent"]}"# | r#"{"methods":["composeWebhook"]}"# => vec![destinations],
        r#"{"methods":[]}"# | r#"{"scheduled_tasks":["runEveryHour"]}"# => vec![import],
        r#"{"methods":["processEvent"]}"# | r#"{"scheduled_tasks":[]}"# => vec![],
        _ => vec![destinations, import],
    }
}

/// These groups, and the group that a plugin is created through.
fn with_own(place: &Place, capabilities: &Value) -> Vec<&'static str> {
    let led = of(capabilities);
    GROUPS.into_iter().filter(|group| led.contains(group) || *group == place.group).collect()
}

fn every_kind() -> Vec<Value> {
    vec![
        json!({}),
        Value::Null,
        json!({"jobs": ["x"]}),
        json!({"methods": ["onEvent"]}),
        json!({"methods": ["composeWebhook"]}),
        json!({"methods": []}),
        json!({"methods": ["processEvent"]}),
        json!({"scheduled_tasks": ["runEveryHour"]}),
        json!({"scheduled_tasks": []}),
        json!({"methods": ["onEvent"], "scheduled_tasks": ["runEveryHour"]}),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn what_it_can_do_and_where_it_was_made() {
    each_group(async |place| {
        for capabilities in every_kind() {
            let (plugin, path) = place.made(&json!({"capabilities": capabilities})).await;
            let shown = shown_in(place, &plugin).await;
            assert_eq!(shown, with_own(place, &capabilities), "{capabilities}");
            for group in GROUPS {
                let path = format!("{}{}/", place.beside(group), plugin["id"]);
                let status = if shown.contains(&group) { 200 } else { 404 };
                assert_eq!(place.owner.get(&path).await.status, status, "{capabilities}");
            }
            place.owner.delete(&path).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_what_it_can_do_moves_it() {
    each_group(async |place| {
        let (plugin, path) = place.made(&json!({"name": "Tea"})).await;
        for capabilities in every_kind() {
            let answer = place.owner.patch(&path, &json!({"capabilities": capabilities})).await;
            assert_eq!((answer.status, &answer.json()["capabilities"]), (200, &capabilities));
            let shown = shown_in(place, &plugin).await;
            // It stays in the group that it was created through until its code was
            // compiled.
            assert_eq!(shown, with_own(place, &capabilities), "{capabilities}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_code_was_found_to_do_cannot_be_changed_to_that_of_another_group() {
    let place = &place(GROUPS[0]).await;
    let (_, path) = place.made(&json!({"name": "Tea"})).await;
    let source = json!({"index.js": "export function onEvent() {}"});
    let before = place.owner.patch(&format!("{path}update_source/?raw=true"), &source).await;
    assert_eq!(before.status, 200);
    let before = place.owner.get(&path).await.json();
    for (capabilities, status) in [
        (json!({}), 400),
        (Value::Null, 400),
        (json!({"scheduled_tasks": ["runEveryHour"]}), 400),
        (json!({"methods": ["composeWebhook"], "odd": true}), 200),
        (before["capabilities"].clone(), 200),
    ] {
        let answer = place.owner.patch(&path, &json!({"capabilities": capabilities})).await;
        assert_eq!(answer.status, status, "{capabilities}: {:?}", answer.body);
        if status == 400 {
            let (_, _, code, _, attr) = answer.error();
            assert_eq!((code.as_str(), attr.as_deref()), ("invalid_input", Some("capabilities")));
        }
        assert_eq!(place.owner.get(&path).await.status, 200, "{capabilities}");
    }
    assert_eq!(place.owner.get(&path).await.json(), before);
}
