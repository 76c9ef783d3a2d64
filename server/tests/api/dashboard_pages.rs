//! The pages of dashboards: the answers of tiles, the order of tiles, and what a share link
//! shows without a session.

use http::Method;
use serde_json::{Value, json};
use weir_testkit::{Answer, Caller, TestApp};

use crate::stored::send;
use crate::traffic::function;
use crate::web::{page, session};

/// A dashboard of the first project, and who uses its pages.
struct Furnished {
    app: TestApp,
    owner: Caller,
    cookie: String,
    dashboard: i64,
}

/// Two persons paid three times. A dashboard has no tiles yet.
async fn furnished() -> Furnished {
    let app = TestApp::with_owner().await;
    let paid = |id: &str| json!({"event": "paid", "distinct_id": id});
    send(&app, json!([paid("ada"), paid("ada"), paid("bob")])).await;
    let owner = app.owner().key(&["dashboard:write", "insight:write"]).await;
    let cookie = session(&app).await;
    let path = format!("/api/projects/{}/dashboards/", app.project());
    let made = owner.post(&path, &json!({"name": "Growth"})).await.json();
    Furnished { dashboard: made["id"].as_i64().unwrap(), app, owner, cookie }
}

impl Furnished {
    fn root(&self) -> String {
        format!("/api/projects/{}/", self.app.project())
    }

    /// Saves an insight with this question, and returns its number.
    async fn insight(&self, name: &str, query: Value) -> i64 {
        let path = format!("{}insights/", self.root());
        let made = self.owner.post(&path, &json!({"name": name, "query": query})).await;
        assert_eq!(made.status, 201, "{:?}", made.body);
        made.json()["id"].as_i64().unwrap()
    }

    /// Calls a function of the dashboard by a script of its page.
    async fn call(&self, name: &str, more: &str) -> Answer {
        let (project, dashboard) = (self.app.project(), self.dashboard);
        let body = format!("project={project}&dashboard={dashboard}&{more}");
        function(&self.app, &self.cookie, name, &body).await
    }

    async fn add(&self, name: &str, query: Value) -> i64 {
        let insight = self.insight(name, query).await;
        let added = self.call("add_tile", &format!("insight={insight}")).await;
        assert!(added.status < 400, "{:?}", added.body);
        insight
    }

    /// The names of the tiles in the order of the page.
    async fn names(&self) -> Vec<String> {
        let found = self.call("get_dashboard", "").await.json();
        let tiles = found["tiles"].as_array().unwrap();
        tiles.iter().map(|tile| tile["name"].as_str().unwrap().to_owned()).collect()
    }

    /// The first number in the table of a tile.
    async fn number(&self, more: &str) -> Option<f64> {
        let answer = self.call("answer_tile", more).await;
        assert_eq!(answer.status, 200, "{more}: {:?}", answer.body);
        answer.json()["rows"][0][1]["Number"].as_f64()
    }

    fn page(&self) -> String {
        format!("/projects/{}/dashboards/{}", self.app.project(), self.dashboard)
    }

    /// Makes a share link by the form, and returns the path of its page.
    async fn share(&self) -> String {
        let made = self.call("create_share_link", "days=7").await;
        assert!(made.status < 400, "{:?}", made.body);
        let shown = page(&self.app, &format!("{}/sharing/link", self.page()), &self.cookie).await;
        let text = shown.text();
        let (_, token) = text.split_once("/shared/").expect("the address of the link");
        let is_token = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let end = token.find(|c: char| !is_token(c)).unwrap();
        format!("/shared/{}", &token[..end])
    }
}

fn trends(more: &Value) -> Value {
    let mut query = json!({"kind": "TrendsQuery", "series": [{"event": "paid"}]});
    for (name, value) in more.as_object().unwrap() {
        query[name] = value.clone();
    }
    query
}

/// The answer to a browser without a session.
async fn visit(app: &TestApp, path: &str) -> Answer {
    app.anonymous().call(Method::GET, path).header("accept", "text/html").send().await
}

#[tokio::test(flavor = "multi_thread")]
async fn tiles_have_the_range_and_the_filters_of_their_dashboard() {
    let all = furnished().await;
    let unique = trends(&json!({"series": [{"event": "paid", "math": "dau"}]}));
    all.add("Payments", trends(&json!({}))).await;
    all.add("Payers", unique).await;
    assert_eq!(all.number("tile=1").await, Some(3.0));
    // Persons of a range are not the sum of its days: another question asks for them.
    assert_eq!(all.number("tile=2").await, Some(2.0));
    assert_eq!(all.number("tile=1&range=-30d").await, Some(3.0));
    let refused = all.call("answer_tile", "tile=1&range=soon").await;
    assert_eq!(refused.status, 400, "{:?}", refused.body);
    assert_eq!(all.call("answer_tile", "tile=9").await.status, 404);

    let path = format!("{}dashboards/{}/", all.root(), all.dashboard);
    let long_ago = json!({"date_from": "2020-01-01", "date_to": "2020-01-31"});
    assert_eq!(all.owner.patch(&path, &json!({"filters": long_ago})).await.status, 200);
    assert_eq!(all.number("tile=1").await, Some(0.0));
    assert_eq!(all.number("tile=1&range=-7d").await, Some(3.0));
    let filter = json!({"key": "plan", "operator": "exact", "value": ["pro"]});
    let filters = json!({"filters": {"properties": [filter]}});
    assert_eq!(all.owner.patch(&path, &filters).await.status, 200);
    assert_eq!(all.number("tile=1").await, Some(0.0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_of_a_tile_is_shown_in_it() {
    let all = furnished().await;
    let of_person = json!({"type": "person", "key": "plan", "operator": "exact", "value": ["a"]});
    all.add("Refused", trends(&json!({"properties": [of_person]}))).await;
    all.add("Payments", trends(&json!({}))).await;
    let shown = page(&all.app, &all.page(), &all.cookie).await;
    assert_eq!(shown.status, 200);
    let text = shown.text();
    assert!(text.contains("Numbers of Payments"), "{text}");
    assert!(text.contains("alert-error"), "{text}");
    assert!(!text.contains("Numbers of Refused"), "{text}");
    // Every kind of question has a table.
    all.add(
        "Steps",
        json!({"kind": "FunnelsQuery", "series": [{"event": "paid"}, {"event": "left"}]}),
    )
    .await;
    all.add("Return", json!({"kind": "RetentionQuery", "retentionFilter": {}})).await;
    all.add("Ways", json!({"kind": "PathsQuery", "pathsFilter": {}})).await;
    let series = json!([{"event": "paid"}]);
    all.add("Days", json!({"kind": "StickinessQuery", "series": series})).await;
    all.add("Life", json!({"kind": "LifecycleQuery", "series": series})).await;
    all.add("List", json!({"kind": "EventsQuery", "select": ["event"]})).await;
    all.add("Site", json!({"kind": "WebOverviewQuery"})).await;
    all.add("Pages", json!({"kind": "WebStatsTableQuery", "breakdownBy": "Page"})).await;
    all.add("Visits", json!({"kind": "WebTrendsQuery", "metrics": ["Sessions"]})).await;
    for tile in 3..=11 {
        let answer = all.call("answer_tile", &format!("tile={tile}")).await;
        assert_eq!(answer.status, 200, "{tile}: {:?}", answer.body);
        assert!(!answer.json()["columns"].as_array().unwrap().is_empty(), "{tile}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tiles_are_moved_by_buttons_and_removed() {
    let all = furnished().await;
    let first = all.add("One", trends(&json!({}))).await;
    all.add("Two", trends(&json!({}))).await;
    all.add("Three", trends(&json!({}))).await;
    assert!(all.call("move_tile", "tile=3&to=earlier").await.status < 400);
    assert_eq!(all.names().await, ["One", "Three", "Two"]);
    assert!(all.call("move_tile", "tile=1&to=later").await.status < 400);
    assert_eq!(all.names().await, ["Three", "One", "Two"]);
    assert!(all.call("order_tiles", "wanted=1,2,3").await.status < 400);
    assert_eq!(all.names().await, ["One", "Two", "Three"]);
    for refused in ["1,1", "1,9", "1,x", ""] {
        let answer = all.call("order_tiles", &format!("wanted={refused}")).await;
        assert_eq!(answer.status, 404, "{refused}");
    }
    assert!(all.call("order_tiles", "wanted=3,1").await.status < 400);
    assert_eq!(all.names().await, ["Three", "Two", "One"]);
    for size in ["wide", "half", "low", "high", "usual"] {
        let answer = all.call("resize_tile", &format!("tile=2&size={size}")).await;
        assert!(answer.status < 400, "{size}");
    }
    assert_eq!(all.call("resize_tile", "tile=2&size=huge").await.status, 400);
    assert!(all.call("remove_tile", &format!("insight={first}")).await.status < 400);
    assert_eq!(all.names().await, ["Three", "Two"]);
    for (of, rest) in [("move_tile", "tile=1&to=later"), ("resize_tile", "tile=1&size=wide")] {
        assert_eq!(all.call(of, rest).await.status, 404, "{of}");
    }

    let line = function(
        &all.app,
        &all.cookie,
        "list_dashboards",
        &format!("project={}&limit=5&offset=0", all.app.project()),
    )
    .await
    .json();
    assert_eq!((&line["total"], &line["dashboards"][0]["tiles"]), (&json!(1), &json!(2)));
    let offer = all.call("list_insights_to_add", "").await.json();
    assert_eq!(offer["insights"][0]["id"], json!(first));
}

#[tokio::test(flavor = "multi_thread")]
async fn forms_change_and_delete_a_dashboard() {
    let all = furnished().await;
    let changed = all.call("update_dashboard", "name=Sales&description=Mondays&range=-7d").await;
    assert!(changed.status < 400, "{:?}", changed.body);
    let path = format!("{}dashboards/{}/", all.root(), all.dashboard);
    let stored = all.owner.get(&path).await.json();
    assert_eq!((&stored["name"], &stored["description"]), (&json!("Sales"), &json!("Mondays")));
    assert_eq!(stored["filters"], json!({"date_from": "-7d"}));
    let wrong = all.call("update_dashboard", "name=Sales&description=Mondays&range=soon").await;
    assert_eq!(wrong.status, 400);
    assert!(wrong.text().contains("\"attr\":\"range\""), "{}", wrong.text());
    assert!(all.call("hide_dashboard", "").await.status < 400);
    assert_eq!(page(&all.app, &all.page(), &all.cookie).await.status, 404);
    assert!(all.call("restore_dashboard", "").await.status < 400);
    assert_eq!(page(&all.app, &all.page(), &all.cookie).await.status, 200);

    // A user of another organization sees nothing of it.
    let outsider = all.app.outsider("mallory").await.key(&["*"]).await;
    assert_eq!(outsider.get(&path).await.status, 404);
    let made = outsider.post("/api/organizations/", &json!({"name": "Beta"})).await.json();
    let foreign = &made["teams"][0]["id"];
    let path = format!("/api/projects/{foreign}/dashboards/");
    let hers = outsider.post(&path, &json!({"name": "Hers"})).await.json()["id"].clone();
    for project in [foreign, &json!(987_654)] {
        for dashboard in [&hers, &json!(all.dashboard)] {
            for name in ["get_dashboard", "answer_tile", "list_share_links", "create_share_link"] {
                let body = format!("project={project}&dashboard={dashboard}&tile=1&days=7");
                let answer = function(&all.app, &all.cookie, name, &body).await;
                assert_eq!(answer.status, 404, "{name} {body}");
            }
        }
    }
    // Nor is her dashboard one of the project of another one.
    let body = format!("project={}&dashboard={hers}&tile=1&days=7", all.app.project());
    assert_eq!(function(&all.app, &all.cookie, "get_dashboard", &body).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_share_link_shows_answers_without_a_session_until_it_is_revoked() {
    let all = furnished().await;
    let payments = all.add("Payments", trends(&json!({}))).await;
    all.add("List", json!({"kind": "EventsQuery", "select": ["distinct_id"]})).await;
    let path = all.share().await;
    // The address is shown once.
    let again = page(&all.app, &format!("{}/sharing/link", all.page()), &all.cookie).await;
    assert!(!again.text().contains("/shared/"), "{}", again.text());

    let shown = visit(&all.app, &path).await;
    assert_eq!(shown.status, 200, "{:?}", shown.body);
    assert_eq!(shown.header("referrer-policy"), Some("no-referrer"));
    assert_eq!(shown.header("x-robots-tag"), Some("noindex, nofollow"));
    let text = shown.text();
    assert!(text.contains("Growth") && text.contains("Numbers of Payments"), "{text}");
    // Lists of events are not answered, and nothing else of the organization is there.
    assert!(text.contains("not answered through a share link"), "{text}");
    let organization = all.app.organization().to_string();
    for secret in ["mail.example", organization.as_str(), "/projects/", "phc_", "bob"] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
    let token = path.strip_prefix("/shared/").unwrap();
    let ask = async |tile: i64| {
        let body = format!("token={token}&tile={tile}");
        crate::web::function(&all.app, "answer_shared_tile", &body).send().await
    };
    let answer = ask(1).await;
    assert_eq!(answer.json()["rows"][0][1]["Number"].as_f64(), Some(3.0));
    assert_eq!((ask(2).await.status, ask(3).await.status), (400, 404));

    // A hidden insight and a hidden dashboard are not shown, although the answer is kept.
    let insight = format!("{}insights/{payments}/", all.root());
    assert_eq!(all.owner.patch(&insight, &json!({"deleted": true})).await.status, 200);
    assert_eq!(ask(1).await.status, 404);
    assert!(!visit(&all.app, &path).await.text().contains("Payments"));
    assert_eq!(all.owner.patch(&insight, &json!({"deleted": false})).await.status, 200);
    assert!(all.call("hide_dashboard", "").await.status < 400);
    assert_eq!((visit(&all.app, &path).await.status, ask(1).await.status), (404, 404));
    assert!(all.call("restore_dashboard", "").await.status < 400);
    assert_eq!((visit(&all.app, &path).await.status, ask(1).await.status), (200, 200));

    let links = all.call("list_share_links", "").await.json();
    assert_eq!(links[0]["id"], 1);
    assert!(all.call("revoke_share_link", "link=1").await.status < 400);
    assert_eq!(all.call("list_share_links", "").await.json(), json!([]));
    for path in [path.as_str(), "/shared/1_x", "/shared/x"] {
        let refused = visit(&all.app, path).await;
        assert_eq!(refused.status, 404, "{path}");
        assert_eq!(refused.header("x-robots-tag"), Some("noindex, nofollow"), "{path}");
        assert!(refused.text().contains("This link does not work"), "{}", refused.text());
    }
    assert_eq!(ask(1).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_link_is_shown_on_the_page_of_its_dashboard() {
    let all = furnished().await;
    let path = format!("{}dashboards/", all.root());
    let other = all.owner.post(&path, &json!({"name": "Sales"})).await.json()["id"].clone();
    assert!(all.call("create_share_link", "days=7").await.status < 400);
    let project = all.app.project();
    let elsewhere = format!("/projects/{project}/dashboards/{other}/sharing/link");
    let shown = page(&all.app, &elsewhere, &all.cookie).await;
    assert!(!shown.text().contains("/shared/"), "{}", shown.text());
    let shown = page(&all.app, &format!("{}/sharing/link", all.page()), &all.cookie).await;
    assert!(shown.text().contains("/shared/"), "{}", shown.text());
}
