//! Which group shows which plugin (plugins 3).

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

/// The groups that what a plugin can do leads to.
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

/// The same, and the group that a plugin is made through.
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
            // Where it was made it stays, until its code was looked at.
            assert_eq!(shown, with_own(place, &capabilities), "{capabilities}");
        }
    })
    .await;
}
