//! PATCH `…/pipeline_transformation_configs/rearrange/`.

use super::*;

async fn rearrange(app: &TestApp, caller: &Caller, body: &Value) -> Answer {
    caller.patch(&format!("{}rearrange/", path(app)), body).await
}

/// Names and orders, in the order of the answer.
#[track_caller]
fn order(answer: &Answer) -> Vec<(String, i64)> {
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    let answer = answer.json();
    let of = |config: &Value| {
        (config["name"].as_str().unwrap().to_owned(), config["order"].as_i64().unwrap())
    };
    let results: Vec<(String, i64)> =
        answer["results"].as_array().unwrap().iter().map(of).collect();
    // The answer also has the fields of a config: the first one.
    for (field, value) in answer["results"][0].as_object().unwrap() {
        assert_eq!(&answer[field], value, "{field}");
    }
    results
}

fn at(names: &[(&str, i64)]) -> Vec<(String, i64)> {
    names.iter().map(|(name, order)| ((*name).to_owned(), *order)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_say_the_positions_of_configs() {
    let (app, clock) = app().await;
    let owner = owner(&app).await;
    let plugin = plugin(&app, &owner).await;
    let mut ids = Vec::new();
    let mut configs = Vec::new();
    for (name, order, enabled) in [("a", 1, true), ("b", 2, false), ("c", 3, true)] {
        let body = json!({"plugin": plugin, "order": order, "name": name, "enabled": enabled});
        let (config, _) = made(&app, &owner, &body).await;
        ids.push(config["id"].to_string());
        configs.push(config);
    }
    let hidden = json!({"plugin": plugin, "order": 0, "name": "h", "deleted": true});
    let (hidden, hidden_path) = made(&app, &owner, &hidden).await;
    clock.advance(1);
    let mut orders = json!({"987654": 1, "junk": 2});
    orders[&ids[2]] = json!(-1);
    orders[&ids[1]] = json!("0");
    orders[hidden["id"].to_string()] = json!(9);
    let answer = rearrange(&app, &owner, &json!({"orders": orders})).await;
    assert_eq!(order(&answer), at(&[("c", -1), ("b", 0), ("a", 1)]));
    let list = owner.get(&path(&app)).await.json();
    assert_eq!(list["results"], answer.json()["results"]);
    assert_eq!(owner.get(&hidden_path).await.json(), hidden);

    let (first, last) = (&list["results"][0], &list["results"][2]);
    assert_eq!(first["updated_at"], "2026-05-28T20:26:41Z");
    assert_eq!(last["updated_at"], "2026-05-28T20:26:40Z");
    let recorded_of = audit_entries(&app, &owner, &configs[2]).await;
    let moved = ("order_changed".to_owned(), json!({"order": [3, -1]}));
    assert_eq!(recorded_of.last(), Some(&moved));
    assert_eq!(audit_entries(&app, &owner, &configs[0]).await.last().unwrap().0, "enabled");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_plugin_can_be_moved() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let (one, other) = (plugin(&app, &owner).await, plugin(&app, &owner).await);
    for (plugin, order, name) in [(one, 1, "a"), (other, 2, "b"), (other, 3, "c")] {
        made(&app, &owner, &json!({"plugin": plugin, "order": order, "name": name})).await;
    }
    let answer = rearrange(&app, &owner, &json!({"plugin": one, "order": 9})).await;
    assert_eq!(order(&answer), at(&[("b", 2), ("c", 3), ("a", 9)]));

    let unused = plugin(&app, &owner).await;
    let none = format!("Object with id={unused} does not exist.");
    for (body, attr, code, detail) in [
        (json!({"plugin": unused, "order": 1}), "plugin", "does_not_exist", none.as_str()),
        (json!({"plugin": one}), "order", "required", "This field is required."),
        (json!({"plugin": null, "order": 1}), "plugin", "null", "This field may not be null."),
        (
            json!({"orders": [1]}),
            "orders",
            "not_a_dict",
            "Expected a dictionary of items but got type \"list\".",
        ),
        (
            json!({"orders": {"1": "x"}}),
            "orders__1",
            "invalid_input",
            "A valid integer is required.",
        ),
        (
            json!({"orders": {"1": 2_147_483_648_i64}}),
            "orders__1",
            "max_value",
            "Ensure this value is less than or equal to 2147483647.",
        ),
    ] {
        assert_invalid(&rearrange(&app, &owner, &body).await, Some(attr), code, detail);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_configs_of_a_plugin_the_id_or_the_name_says_which() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let (one, other) = (plugin(&app, &owner).await, plugin(&app, &owner).await);
    let mut ids = Vec::new();
    for (plugin, order, name) in [(one, 1, "a"), (one, 2, "b"), (one, 3, "b"), (other, 4, "d")] {
        let body = json!({"plugin": plugin, "order": order, "name": name});
        ids.push(made(&app, &owner, &body).await.0["id"].clone());
    }
    let moved = async |body: Value| order(&rearrange(&app, &owner, &body).await);
    let answer = moved(json!({"plugin": one, "order": 9, "id": ids[1]})).await;
    assert_eq!(answer, at(&[("a", 1), ("b", 3), ("d", 4), ("b", 9)]));
    let answer = moved(json!({"plugin": one, "order": 5, "name": "a", "enabled": true})).await;
    assert_eq!(answer, at(&[("b", 3), ("d", 4), ("a", 5), ("b", 9)]));
    // A config is moved with its plugin and an order; other fields are ignored.
    let answer = moved(json!({"plugin": other, "order": 1, "name": "new"})).await;
    assert_eq!(answer, at(&[("d", 1), ("b", 3), ("a", 5), ("b", 9)]));

    for (extra, attr) in [
        (json!({}), "plugin"),
        (json!({"name": "b"}), "name"),
        (json!({"name": "x"}), "name"),
        (json!({"id": ids[3]}), "id"),
        (json!({"id": 987}), "id"),
    ] {
        let mut body = json!({"plugin": one, "order": 1});
        body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        let (status, _, code, detail, at) = rearrange(&app, &owner, &body).await.error();
        assert_eq!((status, code.as_str(), at.as_deref()), (400, "invalid_input", Some(attr)));
        for (id, name) in [(&ids[0], "a"), (&ids[1], "b"), (&ids[2], "b")] {
            assert!(detail.contains(&format!("{id} ({name})")), "{detail}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_to_do_is_no_fault() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    // Without a config the record is empty.
    let answer = rearrange(&app, &owner, &json!({"orders": {}})).await;
    let expected = json!({
        "id": null, "plugin": null, "enabled": false, "order": 0, "config": "{}", "error": null,
        "team_id": app.project(), "plugin_info": null, "delivery_rate_24h": null,
        "created_at": null, "updated_at": null, "name": null, "description": null,
        "deleted": false, "on_failure": "store_unchanged", "results": [],
    });
    assert_eq!((answer.status, answer.json()), (200, expected));

    let plugin = plugin(&app, &owner).await;
    let (config, _) = made(&app, &owner, &json!({"plugin": plugin, "order": 4, "name": "a"})).await;
    for body in [
        json!({"orders": {}}),
        json!({"orders": {config["id"].to_string(): 4}}),
        json!({"plugin": plugin, "order": 4, "enabled": true, "name": "N"}),
    ] {
        assert_eq!(order(&rearrange(&app, &owner, &body).await), at(&[("a", 4)]), "{body}");
    }
    assert_eq!(audit_entries(&app, &owner, &config).await.len(), 1);
    let detail = "Say the new places in `orders`, or that of one config with `plugin` and `order`.";
    for body in [json!({}), json!({"orders": null}), json!({"order": 9, "name": "N"})] {
        let answer = rearrange(&app, &owner, &body).await;
        assert_invalid(&answer, Some("orders"), "required", detail);
    }
    let path = format!("{}rearrange/?expand=object", path(&app));
    let expanded = owner.patch(&path, &json!({"orders": {}})).await.json();
    assert_eq!(expanded["config"], json!({"host": "example.com"}));
    assert_eq!(expanded["results"][0]["config"], expanded["config"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_orders_are_applied_as_a_whole() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let plugin = plugin(&app, &owner).await;
    let mut ids = Vec::new();
    for name in ["a", "b", "c"] {
        let body = json!({"plugin": plugin, "order": 0, "name": name});
        ids.push(made(&app, &owner, &body).await.0["id"].to_string());
    }
    let orders = |n: i64| {
        let mut orders = json!({});
        for id in &ids {
            orders[id] = json!(n);
        }
        json!({"orders": orders})
    };
    let bodies: Vec<Value> = (1..=4).map(orders).collect();
    let all = bodies.iter().map(|body| rearrange(&app, &owner, body));
    for answer in futures::future::join_all(all).await {
        assert_eq!(answer.status, 200, "{:?}", answer.body);
    }
    let list = owner.get(&path(&app)).await.json();
    let places: Vec<&Value> =
        list["results"].as_array().unwrap().iter().map(|config| &config["order"]).collect();
    assert!(places.iter().all(|place| *place == places[0]), "{places:?}");
}

/// Neither within the organization nor outside it, whatever rights the caller has there.
#[tokio::test(flavor = "multi_thread")]
async fn configs_of_other_projects_stay_where_they_are() {
    let (app, _) = app().await;
    let owner = owner(&app).await;
    let plugin = plugin(&app, &owner).await;
    let (own, _) = made(&app, &owner, &json!({"plugin": plugin, "order": 1, "name": "a"})).await;
    let beside = owner.post("/api/projects/", &json!({"name": "Blog"})).await.json();
    let beta = owner.post("/api/organizations/", &json!({"name": "Beta"})).await.json();
    let theirs = plugin_with(
        beta["id"].as_str().unwrap(),
        &owner,
        &json!({"plugin_type": "source", "name": "T"}),
    )
    .await;
    let mut others = Vec::new();
    for (project, plugin) in [(&beside["id"], plugin), (&beta["teams"][0]["id"], theirs)] {
        let path = format!("/api/projects/{project}/pipeline_transformation_configs/");
        let answer = owner.post(&path, &json!({"plugin": plugin, "order": 5})).await;
        assert_eq!(answer.status, 201, "{:?}", answer.body);
        let config = answer.json();
        others.push((format!("{path}{}/", config["id"]), config));
    }
    let mut orders = json!({own["id"].to_string(): 2});
    for (_, config) in &others {
        orders[config["id"].to_string()] = json!(9);
    }
    let answer = rearrange(&app, &owner, &json!({"orders": orders})).await;
    assert_eq!(order(&answer), at(&[("a", 2)]));
    for (path, config) in &others {
        assert_eq!(owner.get(path).await.json(), *config);
    }
    // A plugin that only they use does not exist here.
    let answer = rearrange(&app, &owner, &json!({"plugin": theirs, "order": 9})).await;
    let detail = format!("Object with id={theirs} does not exist.");
    assert_invalid(&answer, Some("plugin"), "does_not_exist", &detail);
}
