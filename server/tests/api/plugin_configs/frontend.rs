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
    // The `Accept` header with which browser libraries ask for JSON but also accept
    // others.
    let either = "application/json, text/javascript, */*; q=0.01";
    for accept in ["application/json", "*/*", either, "text/javascript;q=0.5, application/json"] {
        let call = owner.call(Method::GET, &path).header("accept", accept);
        assert_eq!(call.send().await.json(), whole);
    }
    let expanded = owner.get(&format!("{path}?expand=object")).await.json();
    assert_eq!(expanded["config"], values(&config));
    // Only this operation returns JavaScript.
    let call = owner.call(Method::GET, &one).header("accept", "application/javascript");
    assert_eq!(call.send().await.status, 406);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_is_a_module_or_says_what_is_wrong() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let source = "export const scene = { title: 'Tea', component: () => <b>Tea</b> }";
    let plugin = written(&app, &owner, &json!({"frontend.tsx": source})).await;
    let (_, one) = made(&app, &owner, &json!({"plugin": plugin, "order": 1})).await;
    let path = format!("{one}frontend/");
    let module = owner.get(&path).await.json()["frontend"].as_str().unwrap().to_owned();
    assert!(module.contains("getFrontendApp") && module.contains("Tea"), "{module}");
    assert!(!module.contains("<b>"), "{module}");
    // It shows a page, so it belongs to the frontend apps now.
    let source = format!(
        "/api/organizations/{}/pipeline_frontend_apps/{plugin}/update_source/",
        app.organization(),
    );
    let answer = owner.patch(&source, &json!({"frontend.tsx": "export const scene = <b>"})).await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    let audit_entries = owner.get(&path).await.json()["frontend"].as_str().unwrap().to_owned();
    assert!(
        audit_entries.contains("\"error\":") && audit_entries.contains("\"config_id\":"),
        "{audit_entries}"
    );
}
