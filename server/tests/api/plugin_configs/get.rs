//! GET `…/pipeline_transformation_configs/{id}/`.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn objects_are_texts_unless_they_are_asked_for() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let plugin = plugin(&app, &owner).await;
    let (config, path) = made(&app, &owner, &json!({"plugin": plugin, "order": 1})).await;
    for query in ["", "?expand=", "?expand=text"] {
        assert_eq!(owner.get(&format!("{path}{query}")).await.json(), config, "{query}");
    }
    let expanded = owner.get(&format!("{path}?expand=object")).await.json();
    assert_eq!(expanded["config"], values(&config));
    let info: Value = serde_json::from_str(config["plugin_info"].as_str().unwrap()).unwrap();
    assert_eq!(expanded["plugin_info"], info);
    let records =
        format!("/api/organizations/{}/pipeline_destinations/{plugin}/", app.organization());
    assert_eq!(owner.get(&records).await.json(), info);
}

#[tokio::test(flavor = "multi_thread")]
async fn hidden_ones_can_be_read() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let plugin = plugin(&app, &owner).await;
    let body = json!({"plugin": plugin, "order": 1, "deleted": true});
    let (config, path) = made(&app, &owner, &body).await;
    assert_eq!(owner.get(&path).await.json(), config);
}
