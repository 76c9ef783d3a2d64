//! GET `…/pipeline_transformation_configs/{id}/frontend/`.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn the_module_comes_alone_or_with_the_config() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let plugin = plugin(&app, &owner).await;
    let (config, one) = made(&app, &owner, &json!({"plugin": plugin, "order": 1})).await;
    let path = format!("{one}frontend/");
    let module = format!(
        "export function getFrontendApp() {{ return {}; }}\n",
        json!({"id": plugin, "config_id": config["id"], "no_frontend": true}),
    );
    let mut whole = config.clone();
    whole["frontend"] = json!(module);
    assert_eq!(owner.get(&path).await.json(), whole);
    let rather = "application/json;q=0.5, text/javascript";
    for accept in ["application/javascript", "text/javascript, */*;q=0.1", rather] {
        let call = owner.call(Method::GET, &path).header("accept", accept);
        let answer = call.send().await;
        assert_eq!(answer.status, 200, "{:?}", answer.body);
        assert_eq!(answer.header("content-type"), Some("application/javascript; charset=UTF-8"));
        assert_eq!(String::from_utf8_lossy(&answer.body), module);
    }
    // What browser libraries send when they ask for JSON, and what they would not mind.
    let either = "application/json, text/javascript, */*; q=0.01";
    for accept in ["application/json", "*/*", either, "text/javascript;q=0.5, application/json"] {
        let call = owner.call(Method::GET, &path).header("accept", accept);
        assert_eq!(call.send().await.json(), whole);
    }
    let expanded = owner.get(&format!("{path}?expand=object")).await.json();
    assert_eq!(expanded["config"], values(&config));
    // Only here.
    let call = owner.call(Method::GET, &one).header("accept", "application/javascript");
    assert_eq!(call.send().await.status, 406);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_is_not_made_yet_says_so() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let plugin = plugin(&app, &owner).await;
    let (_, one) = made(&app, &owner, &json!({"plugin": plugin, "order": 1})).await;
    let source = format!(
        "/api/organizations/{}/pipeline_destinations/{plugin}/update_source/",
        app.organization(),
    );
    let answer = owner.patch(&source, &json!({"frontend.tsx": "export const scene = {}"})).await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    let found = owner.get(&format!("{one}frontend/")).await.json();
    assert!(found["frontend"].as_str().unwrap().contains("\"transpiling\":true"), "{found}");
}
