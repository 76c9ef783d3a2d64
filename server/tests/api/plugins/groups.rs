//! Which group lists which plugin (PLG-6).

use super::*;

/// The groups that list a plugin.
async fn shown_in(fixture: &GroupFixture, plugin: &Value) -> Vec<&'static str> {
    let mut shown = Vec::new();
    for group in GROUPS {
        let list = fixture.owner.get(&fixture.beside(group)).await.json();
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
fn with_own(fixture: &GroupFixture, capabilities: &Value) -> Vec<&'static str> {
    let led = of(capabilities);
    GROUPS.into_iter().filter(|group| led.contains(group) || *group == fixture.group).collect()
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
    each_group(async |fixture| {
        for capabilities in every_kind() {
            let (plugin, path) = fixture.made(&json!({"capabilities": capabilities})).await;
            let shown = shown_in(fixture, &plugin).await;
            assert_eq!(shown, with_own(fixture, &capabilities), "{capabilities}");
            for group in GROUPS {
                let path = format!("{}{}/", fixture.beside(group), plugin["id"]);
                let status = if shown.contains(&group) { 200 } else { 404 };
                assert_eq!(fixture.owner.get(&path).await.status, status, "{capabilities}");
            }
            fixture.owner.delete(&path).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_what_it_can_do_moves_it() {
    each_group(async |fixture| {
        let (plugin, path) = fixture.made(&json!({"name": "Tea"})).await;
        for capabilities in every_kind() {
            let answer = fixture.owner.patch(&path, &json!({"capabilities": capabilities})).await;
            assert_eq!((answer.status, &answer.json()["capabilities"]), (200, &capabilities));
            let shown = shown_in(fixture, &plugin).await;
            // It stays in the group that it was created through until its code was
            // compiled.
            assert_eq!(shown, with_own(fixture, &capabilities), "{capabilities}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_code_was_found_to_do_cannot_be_changed_to_that_of_another_group() {
    let fixture = &fixture(GROUPS[0]).await;
    let (_, path) = fixture.made(&json!({"name": "Tea"})).await;
    let source = json!({"index.js": "export function onEvent() {}"});
    let before = fixture.owner.patch(&format!("{path}update_source/?raw=true"), &source).await;
    assert_eq!(before.status, 200);
    let before = fixture.owner.get(&path).await.json();
    for (capabilities, status) in [
        (json!({}), 400),
        (Value::Null, 400),
        (json!({"scheduled_tasks": ["runEveryHour"]}), 400),
        (json!({"methods": ["composeWebhook"], "odd": true}), 200),
        (before["capabilities"].clone(), 200),
    ] {
        let answer = fixture.owner.patch(&path, &json!({"capabilities": capabilities})).await;
        assert_eq!(answer.status, status, "{capabilities}: {:?}", answer.body);
        if status == 400 {
            let (_, _, code, _, attr) = answer.error();
            assert_eq!((code.as_str(), attr.as_deref()), ("invalid_input", Some("capabilities")));
        }
        assert_eq!(fixture.owner.get(&path).await.status, 200, "{capabilities}");
    }
    assert_eq!(fixture.owner.get(&path).await.json(), before);
}
