//! `/api/projects/{project_id}/dashboards/`: insights side by side.

use serde_json::{Value, json};
use weir_model::Timestamp;
use weir_model::dashboards::{SHARE_LINKS_MAX, TILES_MAX};
use weir_service::Clock;
use weir_testkit::{Caller, TestApp};

fn path(app: &TestApp) -> String {
    format!("/api/projects/{}/dashboards/", app.project())
}

fn one(app: &TestApp, dashboard: &Value) -> String {
    format!("{}{}/", path(app), dashboard["id"])
}

async fn made(app: &TestApp, caller: &Caller, body: &Value) -> Value {
    let answer = caller.post(&path(app), body).await;
    assert_eq!(answer.status, 201, "{:?}", answer.body);
    answer.json()
}

async fn insight(app: &TestApp, caller: &Caller, event: &str) -> Value {
    let query = json!({"kind": "TrendsQuery", "series": [{"event": event}]});
    let path = format!("/api/projects/{}/insights/", app.project());
    let answer = caller.post(&path, &json!({"query": query})).await;
    assert_eq!(answer.status, 201, "{:?}", answer.body);
    answer.json()
}

async fn patched(caller: &Caller, path: &str, body: &Value) -> Value {
    let answer = caller.patch(path, body).await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    answer.json()
}

/// The numbers of the tiles of a dashboard.
fn shown(dashboard: &Value) -> Vec<i64> {
    let tiles = dashboard["tiles"].as_array().unwrap();
    tiles.iter().map(|tile| tile["id"].as_i64().unwrap()).collect()
}

async fn names(caller: &Caller, path: &str) -> Vec<String> {
    let answer = caller.get(path).await;
    assert_eq!(answer.status, 200, "{path}: {:?}", answer.body);
    let list = answer.json();
    let results = list["results"].as_array().unwrap();
    results.iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dashboard_is_created_read_changed_and_deleted() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["dashboard:write", "activity_log:read"]).await;
    let filter = json!({"key": "plan", "operator": "exact", "value": ["pro"]});
    let filters = json!({"date_from": "-7d", "date_to": null, "properties": [filter]});
    let body = json!({"name": " Growth ", "filters": filters, "tags": ["team"]});
    let dashboard = made(&app, &caller, &body).await;
    for (field, value) in [
        ("name", json!("Growth")),
        ("description", json!("")),
        ("pinned", json!(false)),
        ("deleted", json!(false)),
        ("tags", json!(["team"])),
        ("tiles", json!([])),
    ] {
        assert_eq!(dashboard[field], value, "{field}");
    }
    assert_eq!(dashboard["created_by"]["uuid"], json!(app.owner().id()));
    let canonical = &dashboard["filters"];
    assert_eq!(canonical["date_from"], "-7d");
    assert_eq!(canonical["properties"][0]["value"], "pro");
    assert!(canonical.get("date_to").is_none());
    let address = one(&app, &dashboard);
    assert_eq!(caller.get(&address).await.json(), dashboard);
    // What is sent back as it was answered changes nothing.
    assert_eq!(patched(&caller, &address, &dashboard).await, dashboard);

    let patch = json!({"name": "Sales", "description": "On Mondays", "filters": null});
    let changed = patched(&caller, &address, &patch).await;
    assert_eq!((&changed["name"], &changed["filters"]), (&json!("Sales"), &json!({})));
    assert_eq!(changed["description"], "On Mondays");

    assert_eq!(caller.delete(&address).await.status, 204);
    caller.get(&address).await.assert_error(404, "invalid_request", "not_found", "Not found.");
    let log = format!("/api/projects/{}/activity_log/?scope=Dashboard", app.project());
    let entries = caller.get(&log).await.json();
    let entries: Vec<(Value, Value)> = entries["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| (entry["activity"].clone(), entry["detail"]["name"].clone()))
        .collect();
    let expected = [("deleted", "Sales"), ("updated", "Sales"), ("created", "Growth")];
    assert_eq!(entries, expected.map(|(action, name)| (json!(action), json!(name))));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_has_no_tiles_and_no_hidden_dashboards() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["dashboard:write"]).await;
    let growth = made(&app, &caller, &json!({"name": "Growth", "pinned": true})).await;
    let sales = made(&app, &caller, &json!({"name": "Sales"})).await;
    let list = caller.get(&path(&app)).await.json();
    assert_eq!(list["count"], 2);
    assert!(list["results"][0].get("tiles").is_none());
    for (filter, expected) in [
        ("", vec!["Growth", "Sales"]),
        ("?search=ROW", vec!["Growth"]),
        ("?pinned=false", vec!["Sales"]),
        ("?limit=1&offset=1", vec!["Sales"]),
    ] {
        assert_eq!(names(&caller, &format!("{}{filter}", path(&app))).await, expected, "{filter}");
    }
    let hidden = patched(&caller, &one(&app, &sales), &json!({"deleted": true})).await;
    assert_eq!(hidden["deleted"], true);
    assert_eq!(caller.get(&one(&app, &sales)).await.status, 404);
    assert_eq!(names(&caller, &path(&app)).await, ["Growth"]);
    assert_eq!(caller.get(&one(&app, &growth)).await.status, 200);
    patched(&caller, &one(&app, &sales), &json!({"deleted": false})).await;
    assert_eq!(names(&caller, &path(&app)).await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn tiles_are_added_placed_and_removed() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["dashboard:write", "insight:write"]).await;
    let dashboard = made(&app, &caller, &json!({"name": "Growth"})).await;
    let address = one(&app, &dashboard);
    let (paid, visited) =
        (insight(&app, &caller, "paid").await, insight(&app, &caller, "visited").await);
    let added = json!({"tiles": [
        {"insight": paid["id"], "layouts": {"sm": {"x": 6, "y": 0, "w": 6, "h": 5, "minW": 3}}},
        {"insight": visited["id"], "color": "blue"},
        {"insight": paid["id"], "color": "red"},
    ]});
    let tiles = patched(&caller, &address, &added).await["tiles"].clone();
    assert_eq!(tiles.as_array().unwrap().len(), 2);
    let first = &tiles[0];
    assert_eq!((&first["id"], &first["color"]), (&json!(1), &json!("red")));
    let place = json!({"sm": {"x": 6, "y": 0, "w": 6, "h": 5}, "xs": null});
    assert_eq!(first["layouts"], place);
    assert_eq!(first["insight"]["id"], paid["id"]);
    assert_eq!(first["insight"]["dashboards"], json!([dashboard["id"]]));
    assert_eq!(tiles[1]["insight"]["query"], visited["query"]);

    // The tiles of the answer are accepted, as clients send them after a move.
    let mut moved = tiles.clone();
    moved[1]["layouts"] = json!({"sm": {"x": 0, "y": 0, "w": 6, "h": 5}, "xs": null});
    let after = patched(&caller, &address, &json!({"tiles": moved})).await;
    assert_eq!(after["tiles"][1]["layouts"], moved[1]["layouts"]);
    assert_eq!(after["tiles"][0], tiles[0]);
    assert_eq!(caller.get(&address).await.json(), after);

    let hidden = format!("/api/projects/{}/insights/{}/", app.project(), visited["id"]);
    patched(&caller, &hidden, &json!({"deleted": true})).await;
    assert_eq!(shown(&caller.get(&address).await.json()), [1]);
    patched(&caller, &hidden, &json!({"deleted": false})).await;
    assert_eq!(shown(&caller.get(&address).await.json()), [1, 2]);

    let removed = json!({"tiles": [{"id": 1, "deleted": true}]});
    let left = patched(&caller, &address, &removed).await;
    assert_eq!(shown(&left), [2]);
    let path = format!("/api/projects/{}/insights/", app.project());
    let of_paid = caller.get(&format!("{path}{}/", paid["id"])).await.json();
    assert_eq!(of_paid["dashboards"], json!([]));
    assert_eq!(caller.delete(&address).await.status, 204);
    let of_visited = caller.get(&format!("{path}{}/", visited["id"])).await.json();
    assert_eq!(of_visited["dashboards"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dashboard_has_a_maximum_of_tiles() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["dashboard:write", "insight:write"]).await;
    let dashboard = made(&app, &caller, &json!({"name": "Growth"})).await;
    let mut tiles = Vec::new();
    for _ in 0..TILES_MAX {
        tiles.push(json!({"insight": insight(&app, &caller, "paid").await["id"]}));
    }
    let full = patched(&caller, &one(&app, &dashboard), &json!({"tiles": tiles})).await;
    assert_eq!(full["tiles"].as_array().unwrap().len(), TILES_MAX);
    let one_more = insight(&app, &caller, "paid").await;
    let detail = "A dashboard has at most 50 tiles. Remove one first.";
    let tile = json!({"tiles": [{"insight": one_more["id"]}]});
    let refused = caller.patch(&one(&app, &dashboard), &tile).await;
    let attr = Some("tiles__0__insight");
    refused.assert_field_error(400, "validation_error", "max_length", detail, attr);
    let path = format!("/api/projects/{}/insights/{}/", app.project(), one_more["id"]);
    let refused = caller.patch(&path, &json!({"dashboards": [dashboard["id"]]})).await;
    let attr = Some("dashboards");
    refused.assert_field_error(400, "validation_error", "max_length", detail, attr);
    // A request may replace tiles.
    let replaced = json!({"tiles": [{"id": 1, "deleted": true}, {"insight": one_more["id"]}]});
    let after = patched(&caller, &one(&app, &dashboard), &replaced).await;
    assert_eq!(after["tiles"][49]["id"], 51);
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_name_their_field() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["dashboard:write", "insight:write"]).await;
    let dashboard = made(&app, &caller, &json!({"name": "Growth"})).await;
    let paid = insight(&app, &caller, "paid").await["id"].clone();
    let hidden = insight(&app, &caller, "hidden").await;
    let path_of_hidden = format!("/api/projects/{}/insights/{}/", app.project(), hidden["id"]);
    patched(&caller, &path_of_hidden, &json!({"deleted": true})).await;
    let tile = |tile: Value| json!({"tiles": [tile]});
    let at = |x: i64, w: i64| json!({"sm": {"x": x, "y": 0, "w": w, "h": 5}});
    for (body, attr, code) in [
        (json!({"name": null}), "name", "null"),
        (json!({"name": " "}), "name", "blank"),
        (json!({"description": "x".repeat(2001)}), "description", "max_length"),
        (json!({"filters": []}), "filters", "invalid_input"),
        (json!({"filters": {"date_from": "soon"}}), "filters__date_from", "invalid_input"),
        (json!({"filters": {"interval": "day"}}), "filters__interval", "invalid_input"),
        (json!({"tiles": {}}), "tiles", "not_a_list"),
        (json!({"tiles": vec![json!({}); 101]}), "tiles", "max_length"),
        (tile(json!(7)), "tiles__0", "not_a_dict"),
        (tile(json!({})), "tiles__0__insight", "required"),
        (tile(json!({"id": 9})), "tiles__0__id", "does_not_exist"),
        (tile(json!({"insight": 987_654})), "tiles__0__insight", "does_not_exist"),
        (tile(json!({"insight": hidden["id"]})), "tiles__0__insight", "does_not_exist"),
        (tile(json!({"insight": paid, "color": 7})), "tiles__0__color", "invalid_input"),
        (
            tile(json!({"insight": paid, "layouts": {"sm": {"x": 1}}})),
            "tiles__0__layouts__sm__y",
            "required",
        ),
        (
            tile(json!({"insight": paid, "layouts": at(8, 5)})),
            "tiles__0__layouts__sm__w",
            "max_value",
        ),
        (
            tile(json!({"insight": paid, "layouts": at(-1, 5)})),
            "tiles__0__layouts__sm__x",
            "min_value",
        ),
    ] {
        let answer = caller.patch(&one(&app, &dashboard), &body).await;
        let (status, kind, found, _, at) = answer.error();
        let found = (status, kind.as_str(), found.as_str(), at.as_deref());
        assert_eq!(found, (400, "validation_error", code, Some(attr)), "{body}");
    }
    assert_eq!(caller.get(&one(&app, &dashboard)).await.json(), dashboard);
    let (status, _, code, _, attr) = caller.post(&path(&app), &json!({})).await.error();
    assert_eq!((status, code.as_str(), attr.as_deref()), (400, "required", Some("name")));
}

#[tokio::test(flavor = "multi_thread")]
async fn dashboards_and_insights_of_another_project_do_not_exist() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["*"]).await;
    let dashboard = made(&app, &caller, &json!({"name": "Growth"})).await;
    let paid = insight(&app, &caller, "paid").await;
    let blog = caller.post("/api/projects/", &json!({"name": "Blog"})).await.json();
    let of_blog = format!("/api/projects/{}/dashboards/", blog["id"]);
    let foreign = format!("{of_blog}{}/", dashboard["id"]);
    for answer in [
        caller.get(&foreign).await,
        caller.patch(&foreign, &json!({"name": "x"})).await,
        caller.delete(&foreign).await,
    ] {
        answer.assert_error(404, "invalid_request", "not_found", "Not found.");
    }
    assert!(names(&caller, &of_blog).await.is_empty());
    let other = caller.post(&of_blog, &json!({"name": "Other"})).await.json();
    let tile = json!({"tiles": [{"insight": paid["id"]}]});
    let refused = caller.patch(&format!("{of_blog}{}/", other["id"]), &tile).await;
    let (status, _, code, _, attr) = refused.error();
    assert_eq!((status, code.as_str()), (400, "does_not_exist"));
    assert_eq!(attr.as_deref(), Some("tiles__0__insight"));
    // A key that is limited to the other project.
    let limited = app.owner().limited_key(&["*"], &[], &[app.project()]).await;
    assert_eq!(limited.get(&of_blog).await.status, 404);
    assert_eq!(limited.get(&one(&app, &dashboard)).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_share_link_shows_a_dashboard_without_an_account() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["dashboard:write", "insight:write", "activity_log:read"]).await;
    let dashboard = made(&app, &caller, &json!({"name": "Growth"})).await;
    let paid = insight(&app, &caller, "paid").await;
    let hidden = insight(&app, &caller, "hidden").await;
    let address = one(&app, &dashboard);
    let tiles = json!([{"insight": paid["id"], "color": "red"}, {"insight": hidden["id"]}]);
    patched(&caller, &address, &json!({"tiles": tiles})).await;
    let insights = format!("/api/projects/{}/insights/", app.project());
    patched(&caller, &format!("{insights}{}/", hidden["id"]), &json!({"deleted": true})).await;

    let links = format!("{address}share_links/");
    let link = caller.post(&links, &json!({"expires_in_days": 7})).await;
    assert_eq!(link.status, 201, "{:?}", link.body);
    let link = link.json();
    assert_eq!((&link["id"], &link["created_by"]["uuid"]), (&json!(1), &json!(app.owner().id())));
    let token = link["token"].as_str().unwrap().to_owned();
    let listed = caller.get(&links).await.json();
    assert_eq!((&listed["count"], &listed["results"][0]["token"]), (&json!(1), &Value::Null));
    assert_eq!(listed["results"][0]["expires_at"], link["expires_at"]);
    assert_eq!(caller.get(&address).await.json()["is_shared"], true);

    let visitor = app.anonymous();
    let path = format!("/api/shared_dashboards/{token}/");
    let shared = visitor.get(&path).await;
    assert_eq!(shared.status, 200, "{:?}", shared.body);
    let shared = shared.json();
    assert_eq!((&shared["name"], &shared["expires_at"]), (&json!("Growth"), &link["expires_at"]));
    assert_eq!(shared["tiles"].as_array().unwrap().len(), 1);
    assert_eq!(
        (&shared["tiles"][0]["id"], &shared["tiles"][0]["color"]),
        (&json!(1), &json!("red"))
    );
    assert_eq!(shared["tiles"][0]["query"], paid["query"]);
    assert!(!shared.to_string().contains("mail.example"), "{shared}");

    // Neither the token nor its hash is in the activity log.
    let log = format!("/api/projects/{}/activity_log/?scope=Dashboard", app.project());
    let log = caller.get(&log).await;
    assert_eq!(log.json()["results"][0]["detail"]["changes"][0]["field"], "share_links");
    let (_, secret) = token.split_once('_').unwrap();
    assert!(!log.text().contains(secret));

    // A hidden dashboard is not shared meanwhile.
    patched(&caller, &address, &json!({"deleted": true})).await;
    let gone = visitor.get(&path).await;
    gone.assert_error(404, "invalid_request", "not_found", "Not found.");
    patched(&caller, &address, &json!({"deleted": false})).await;
    assert_eq!(visitor.get(&path).await.status, 200);

    assert_eq!(caller.delete(&format!("{links}2/")).await.status, 404);
    assert_eq!(caller.delete(&format!("{links}1/")).await.status, 204);
    assert_eq!(visitor.get(&path).await.body, gone.body);
    assert_eq!(caller.get(&links).await.json()["count"], 0);
    assert_eq!(caller.get(&address).await.json()["is_shared"], false);
    let next = caller.post(&links, &json!({})).await.json();
    assert_eq!(next["id"], 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_share_link_expires() {
    let clock = Clock::fixed(Timestamp::parse("2026-05-28T20:26:40Z").unwrap());
    let app = TestApp::at(clock.clone()).await.set_up().await;
    let caller = app.owner().key(&["dashboard:write"]).await;
    let dashboard = made(&app, &caller, &json!({"name": "Growth"})).await;
    let links = format!("{}share_links/", one(&app, &dashboard));
    let link = caller.post(&links, &json!({"expires_in_days": 1})).await.json();
    assert_eq!(link["expires_at"], "2026-05-29T20:26:40Z");
    let usual = caller.post(&links, &json!({"expires_in_days": null})).await.json();
    assert_eq!(usual["expires_at"], "2026-06-27T20:26:40Z");
    let path = format!("/api/shared_dashboards/{}/", link["token"].as_str().unwrap());
    clock.advance(24 * 60 * 60 - 1);
    assert_eq!(app.anonymous().get(&path).await.status, 200);
    clock.advance(1);
    assert_eq!(app.anonymous().get(&path).await.status, 404);
    assert_eq!(caller.get(&links).await.json()["count"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn share_links_are_bounded_and_unknown_tokens_show_nothing() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["dashboard:write"]).await;
    let dashboard = made(&app, &caller, &json!({"name": "Growth"})).await;
    let links = format!("{}share_links/", one(&app, &dashboard));
    for (days, code) in [(json!(0), "min_value"), (json!(366), "max_value")] {
        let refused = caller.post(&links, &json!({"expires_in_days": days})).await;
        let (status, _, found, _, attr) = refused.error();
        let found = (status, found.as_str(), attr.as_deref());
        assert_eq!(found, (400, code, Some("expires_in_days")));
    }
    let mut token = String::new();
    for _ in 0..SHARE_LINKS_MAX {
        let link = caller.post(&links, &json!({})).await.json();
        link["token"].as_str().unwrap().clone_into(&mut token);
    }
    let (status, _, code, ..) = caller.post(&links, &json!({})).await.error();
    assert_eq!((status, code.as_str()), (400, "invalid_input"));
    let (project, secret) = token.split_once('_').unwrap();
    for token in [
        secret.to_owned(),
        format!("{project}_"),
        format!("{project}_{secret}x"),
        format!("0{project}_{secret}"),
        format!("{}_{secret}", app.project().0 + 1),
        "junk".to_owned(),
    ] {
        let answer = app.anonymous().get(&format!("/api/shared_dashboards/{token}/")).await;
        answer.assert_error(404, "invalid_request", "not_found", "Not found.");
    }
    // A key without the scope, and a reader.
    let reader = app.owner().key(&["dashboard:read"]).await;
    assert_eq!(reader.get(&links).await.json()["count"], 20);
    assert_eq!(reader.post(&links, &json!({})).await.status, 403);
    let path = format!("/api/shared_dashboards/{token}/");
    assert_eq!(app.anonymous().get(&path).await.status, 200);
    assert_eq!(caller.delete(&one(&app, &dashboard)).await.status, 204);
    assert_eq!(app.anonymous().get(&path).await.status, 404);
}
