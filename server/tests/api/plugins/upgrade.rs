//! POST `…/{group}/{id}/upgrade/`.

use super::hosts::{files, tea};
use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn what_is_edited_here_stays_as_it_is() {
    each_group(async |fixture| {
        let (plugin, path) = fixture.made(&json!({"name": "Tea"})).await;
        // Fields of the record are ignored.
        let answer = fixture.owner.post(&format!("{path}upgrade/"), &json!({"name": "x"})).await;
        assert_eq!((answer.status, answer.json()), (200, plugin.clone()));
        assert_eq!(fixture.owner.get(&path).await.json(), plugin);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn newer_code_replaces_the_present_code() {
    let fixture = fixture(GROUPS[0]).await;
    let (_, path) = fixture.made(&json!({"url": "https://github.com/acme/tea"})).await;
    let upgrade = format!("{path}upgrade/");
    let mut newer = files(&[
        ("plugin.json", r#"{"name": "Green tea", "main": "green.ts"}"#),
        ("green.ts", "export function composeWebhook(event: object) { return null }"),
        ("schema.json", "{}"),
    ]);
    fixture.host.has(newer.clone());
    let answer = fixture.owner.post(&upgrade, &json!({})).await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    let answer = answer.json();
    assert_eq!(answer["name"], "Green tea");
    assert_eq!(answer["capabilities"]["methods"], json!(["composeWebhook"]));
    // Fields that the newer manifest omits keep their values.
    assert_eq!(answer["config_schema"]["cups"]["default"], "1");
    let text = newer.remove("green.ts").unwrap();
    newer.insert("index.ts".to_owned(), text);
    let source = fixture.owner.get(&format!("{path}source/?raw=true")).await.json();
    assert_eq!(source, json!(newer));

    let log = format!("{}activity/?raw=true", fixture.path());
    let newest = fixture.owner.get(&log).await.json()["results"][0].clone();
    assert_eq!(newest["activity"], "updated");
    let changes = newest["detail"]["changes"].as_array().unwrap();
    let fields: Vec<&str> = changes.iter().filter_map(|change| change["field"].as_str()).collect();
    for field in ["name", "capabilities", "index.js", "index.ts"] {
        assert!(fields.contains(&field), "{field}: {fields:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_plugin_changes_nothing() {
    let fixture = fixture(GROUPS[0]).await;
    let (plugin, path) = fixture.made(&json!({"url": "https://github.com/acme/tea"})).await;
    let upgrade = format!("{path}upgrade/");
    let mut broken = tea();
    broken.remove("plugin.json");
    fixture.host.has(broken);
    let answer = fixture.owner.post(&upgrade, &json!({})).await;
    let detail = "The archive has no plugin.json.";
    assert_invalid(&answer, Some("url"), "invalid_input", detail);
    // An upgrade cannot move a plugin to another group.
    let manifest = r#"{"name": "Hourly"}"#;
    let hourly = ("index.ts", "export function runEveryHour() {}");
    fixture.host.has(files(&[("plugin.json", manifest), hourly]));
    let (status, _, _, detail, attr) = fixture.owner.post(&upgrade, &json!({})).await.error();
    assert_eq!((status, attr.as_deref()), (400, Some("index.ts")), "{detail}");
    assert!(detail.contains("stays in its group"), "{detail}");
    fixture.host.goes_down();
    assert_eq!(fixture.owner.post(&upgrade, &json!({})).await.status, 400);
    assert_eq!(fixture.owner.get(&path).await.json(), plugin);
}
