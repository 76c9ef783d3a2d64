//! GET `…/pipeline_transformation_configs/`.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn configs_are_listed_by_order_then_by_plugin() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let (first, second) = (plugin(&app, &owner).await, plugin(&app, &owner).await);
    let mut names = Vec::new();
    for (plugin, order, name) in
        [(second, 1, "c"), (first, 2, "d"), (first, 1, "a"), (first, 1, "b"), (second, -5, "0")]
    {
        let body = json!({"plugin": plugin, "order": order, "name": name});
        made(&app, &owner, &body).await;
        names.push(name);
    }
    names.sort_unstable();
    let list = owner.get(&path(&app)).await.json();
    let found: Vec<&str> = list["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|config| config["name"].as_str().unwrap())
        .collect();
    assert_eq!(found, names);
    assert_eq!((&list["count"], &list["next"]), (&json!(5), &Value::Null));

    let page = owner.get(&format!("{}?limit=2&offset=2", path(&app))).await.json();
    let found: Vec<&Value> =
        page["results"].as_array().unwrap().iter().map(|config| &config["name"]).collect();
    assert_eq!(found, ["b", "c"]);
    assert!(page["next"].as_str().unwrap().ends_with("?limit=2&offset=4"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_has_no_records_of_plugins_and_no_hidden_configs() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let plugin = plugin(&app, &owner).await;
    let (shown, _) = made(&app, &owner, &json!({"plugin": plugin, "order": 1})).await;
    made(&app, &owner, &json!({"plugin": plugin, "order": 0, "deleted": true})).await;
    let list = owner.get(&path(&app)).await.json();
    let mut expected = shown.clone();
    expected["plugin_info"] = Value::Null;
    assert_eq!(list["results"], json!([expected]));
    let list = owner.get(&format!("{}?expand=object", path(&app))).await.json();
    assert_eq!(list["results"][0]["config"], json!({"host": "example.com"}));
    assert_eq!(list["count"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_shows_its_own() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let plugin = plugin(&app, &owner).await;
    let (_, one) = made(&app, &owner, &json!({"plugin": plugin, "order": 1})).await;
    let projects = format!("/api/organizations/{}/projects/", app.organization());
    let other = owner.post(&projects, &json!({"name": "Other"})).await.json();
    let elsewhere = path(&app).replace(&app.project().to_string(), &other["id"].to_string());
    assert_eq!(owner.get(&elsewhere).await.json()["count"], 0);
    let at = one.replace(&path(&app), &elsewhere);
    assert_not_found(&owner.get(&at).await);
    assert_not_found(&owner.patch(&at, &json!({"name": "N"})).await);
    assert_not_found(&owner.delete(&at).await);
    assert_eq!(owner.get(&one).await.status, 200);
}
