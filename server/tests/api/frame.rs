//! The frame of every page: search, preferences, messages, help, the instance.

use http::Method;
use serde_json::{Value, json};
use weir_testkit::{Call, TestApp};

use crate::stored::send;
use crate::web::{page, session};

fn function(app: &TestApp, name: &str, body: &str, cookie: &str) -> Call {
    let call = app.anonymous().call(Method::POST, &format!("/_fn/{name}"));
    call.header("content-type", "application/x-www-form-urlencoded")
        .header("sec-fetch-site", "same-origin")
        .header("cookie", cookie)
        .body(body.to_owned())
}

/// The session cookie of Grace, a member without administrator rights.
pub(crate) async fn member(app: &TestApp) -> String {
    let owner = app.owner().key(&["*"]).await;
    let invites = format!("/api/organizations/{}/invites/", app.organization());
    let body = json!({"target_email": "grace@mail.example", "level": 1});
    let invite = owner.post(&invites, &body).await.json();
    let link = format!("/api/signup/{}/", invite["token"].as_str().unwrap());
    let account = json!({"first_name": "Grace", "password": "plum-otter-violin-93"});
    let answer = app.anonymous().post(&link, &account).await;
    let set = answer.header("set-cookie").expect("a cookie");
    set.split(';').next().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn preferences_are_kept_and_applied() {
    let app = TestApp::with_owner().await;
    let (ada, grace) = (session(&app).await, member(&app).await);
    let before = page(&app, "/account/preferences", &ada).await.text();
    assert!(!before.contains("data-zone=") && !before.contains("data-shortcuts="), "{before}");
    assert!(before.contains("data-rows=\"comfortable\""), "{before}");

    let body = "zone=named&named=Europe%2FBerlin&numbers=point&rows=compact";
    assert_eq!(function(&app, "set_preferences", body, &ada).send().await.status, 200);
    let after = page(&app, "/help", &ada).await.text();
    assert!(after.contains("data-zone=\"Europe/Berlin\""), "{after}");
    assert!(after.contains("data-shortcuts=\"off\""), "{after}");
    assert!(after.contains("data-rows=\"compact\""), "{after}");
    let theirs = page(&app, "/help", &grace).await.text();
    assert!(!theirs.contains("data-zone="), "{theirs}");

    for body in [
        "zone=named&named=Nowhere&numbers=point",
        "zone=named&named=&numbers=point",
        "zone=utc&numbers=roman",
        "zone=utc&numbers=comma&rows=tall",
    ] {
        let refused = function(&app, "set_preferences", body, &ada).send().await;
        assert_eq!(refused.status, 400, "{body}");
    }
    let utc = "zone=utc&numbers=comma&shortcuts=on";
    assert_eq!(function(&app, "set_preferences", utc, &ada).send().await.status, 200);
    let after = page(&app, "/account/preferences", &ada).await.text();
    assert!(after.contains("data-zone=\"UTC\"") && !after.contains("data-shortcuts="), "{after}");
    // What a form does not have stays.
    assert!(after.contains("data-rows=\"compact\""), "{after}");
    let set = function(&app, "set_table_rows", "rows=comfortable", &ada).send().await;
    assert_eq!(set.status, 200);
    let after = page(&app, "/help", &ada).await.text();
    assert!(after.contains("data-rows=\"comfortable\"") && after.contains("\"UTC\""), "{after}");
    let wrong = function(&app, "set_table_rows", "rows=tall", &ada).send().await;
    assert!(wrong.status >= 400);
    let nobody = function(&app, "set_preferences", utc, "session=x").send().await;
    assert_eq!(nobody.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_are_named_to_users_who_may_see_them() {
    let app = TestApp::with_owner().await;
    let (ada, project) = (session(&app).await, app.project());
    let group = json!({"$group_type": "company", "$group_key": "acme/tea",
                       "$group_set": {"name": "Acme Tea"}});
    send(
        &app,
        json!([
            {"event": "$identify", "distinct_id": "ada",
             "properties": {"$set": {"email": "ada@example.com"}}},
            {"event": "$groupidentify", "distinct_id": "ada", "properties": group},
        ]),
    )
    .await;
    let owner = app.owner().key(&["*"]).await;
    let persons = format!("/api/projects/{project}/persons/?distinct_id=ada");
    let person = owner.get(&persons).await.json()["results"][0]["uuid"].clone();
    let person = person.as_str().unwrap();
    let theirs = app.outsider("mallory").await.key(&["*"]).await;
    let other = theirs.post("/api/organizations/", &json!({"name": "Beta"})).await.json();
    let (beta, foreign) = (other["id"].as_str().unwrap(), &other["teams"][0]["id"]);
    let name = async |path: &str, cookie: &str| {
        let mut body = form_urlencoded::Serializer::new(String::new());
        body.append_pair("path", path);
        let answer = function(&app, "find_object_name", &body.finish(), cookie).send().await;
        assert_eq!(answer.status, 200, "{path}");
        answer.json()
    };
    for (path, expected) in [
        (format!("/projects/{project}/persons/{person}"), json!("ada@example.com")),
        (format!("/projects/{project}/persons/x"), Value::Null),
        (format!("/projects/{project}/groups/company/acme%2Ftea"), json!("Acme Tea")),
        (format!("/projects/{project}/plugins/4711"), Value::Null),
        (format!("/projects/{foreign}/groups/company/acme"), Value::Null),
        (format!("/organizations/{beta}/exports/x"), Value::Null),
        ("/help/sign-in".to_owned(), json!("Let others sign in")),
        ("/nowhere".to_owned(), Value::Null),
    ] {
        assert_eq!(name(path.as_str(), ada.as_str()).await, expected, "{path}");
    }
    // A member who is no staff.
    let grace = member(&app).await;
    let of_project = format!("/projects/{project}/persons/{person}");
    assert_eq!(name(of_project.as_str(), grace.as_str()).await, "ada@example.com");
    let of_instance = format!("/instance/organizations/{}", app.organization());
    assert_eq!(name(of_instance.as_str(), ada.as_str()).await, "Acme Tea");
    assert_eq!(name(of_instance.as_str(), grace.as_str()).await, Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn people_find_what_they_may_see() {
    let app = TestApp::with_owner().await;
    let ada = session(&app).await;
    let mallory = app.outsider("mallory").await.key(&["*"]).await;
    mallory.post("/api/organizations/", &json!({"name": "Acme Secrets"})).await;

    let search = async |q: &str| {
        let answer = function(&app, "search", &format!("q={q}"), &ada).send().await;
        assert_eq!(answer.status, 200);
        answer.json()
    };
    let found = search("ACME").await;
    let organization = app.organization().to_string();
    assert_eq!(
        found,
        json!([{"title": "Organizations", "found": [
            {"name": "Acme Tea", "within": "", "href": format!("/organizations/{organization}")},
        ]}])
    );
    let found = search("exports").await;
    let href = format!("/organizations/{organization}/exports");
    assert_eq!(
        found[0]["found"][0],
        json!({"name": "Exports", "within": "Acme Tea", "href": href})
    );
    let project = search("shop").await;
    assert_eq!(project[0]["title"], "Projects");
    assert_eq!(search("%22nothing%3C").await, Value::Array(Vec::new()));

    // As a page, and as the part that scripts insert.
    let whole = page(&app, "/search?q=shop", &ada).await.text();
    let searched = "Names of pages, projects, organizations, members, exports and plugins";
    assert!(whole.contains(searched), "{whole}");
    assert!(whole.contains("in the current project names of events and persons"), "{whole}");
    assert!(whole.contains("data-found") && whole.contains("aria-label=\"Main\""), "{whole}");
    let part = page(&app, "/search?q=shop&part=1", &ada).await.text();
    assert!(part.contains("data-found") && !part.contains("aria-label=\"Main\""), "{part}");
    let none = page(&app, "/search?q=%3Cb%3E", &ada).await.text();
    assert!(none.contains("&lt;b&gt;") && !none.contains("\u{201c}<b>"), "{none}");
    assert_eq!(page(&app, "/search?q=shop", "session=x").await.status, 303);
}

#[tokio::test(flavor = "multi_thread")]
async fn search_finds_persons_and_events_of_the_current_project() {
    let app = TestApp::with_owner().await;
    let ada = session(&app).await;
    let events: Vec<Value> = (0..10)
        .map(|n| {
            json!({"event": "tea brewed", "distinct_id": format!("reader-{n}"),
                   "properties": {"$set": {"name": format!("Reader {n}")}}})
        })
        .collect();
    send(&app, json!(events)).await;
    let root = format!("/projects/{}", app.project());
    let search = async |q: &str| {
        let answer = function(&app, "search", &format!("q={q}"), &ada).send().await;
        assert_eq!(answer.status, 200);
        answer.json()
    };
    let found = search("brewed+TEA").await;
    assert_eq!(found[0]["title"], "Events");
    assert_eq!(found[0]["found"][0]["name"], "tea brewed");
    assert_eq!(found[0]["found"][0]["href"], format!("{root}/events?event=tea%20brewed"));
    let found = search("reader-7").await;
    assert_eq!(found[0]["title"], "Persons");
    assert_eq!(found[0]["found"][0]["name"], "Reader 7");
    // The list is short, and leads to the whole one.
    let found = search("reader").await;
    let persons = found[0]["found"].as_array().unwrap();
    assert_eq!(persons.len(), 9);
    assert_eq!(persons[8]["href"], format!("{root}/persons?q=reader"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_instance_is_for_staff() {
    let app = TestApp::with_owner().await;
    let (ada, grace) = (session(&app).await, member(&app).await);
    let shown = page(&app, "/instance", &ada).await;
    assert_eq!(shown.status, 200);
    let shown = shown.text();
    assert!(shown.contains(env!("CARGO_PKG_VERSION")), "{shown}");
    assert!(shown.contains("The data is in memory"), "{shown}");
    assert!(shown.contains("href=\"/instance\""), "the menu leads there: {shown}");

    assert_eq!(page(&app, "/instance", &grace).await.status, 404);
    for asked in ["get_instance", "enter_instance"] {
        let reported = function(&app, asked, "", &grace).send().await;
        assert_eq!(reported.status, 404, "{asked}");
    }
    // The gallery of components is hidden from other users.
    assert_eq!(page(&app, "/gallery", &ada).await.status, 200);
    assert_eq!(page(&app, "/gallery", &grace).await.status, 404);
    let theirs = page(&app, "/help", &grace).await.text();
    assert!(!theirs.contains("href=\"/instance\""), "{theirs}");
    assert_eq!(page(&app, "/instance", "session=x").await.status, 303);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_guide_is_in_the_app() {
    let app = TestApp::with_owner().await;
    let ada = session(&app).await;
    let index = page(&app, "/help", &ada).await.text();
    assert!(index.contains("href=\"/help/first-event\""), "{index}");
    let shown = page(&app, "/help/running", &ada).await.text();
    assert!(shown.contains("<h2 id=\"disk\">Disk</h2>"), "{shown}");
    for name in ["nothing", "..%2Fplugins", "README.md"] {
        assert_eq!(page(&app, &format!("/help/{name}"), &ada).await.status, 404, "{name}");
    }
    for name in ["nothing.png", "..%2F..%2Fimg%2Flive.png", "x.md"] {
        let path = format!("/_help/img/{name}");
        assert_eq!(app.anonymous().get(&path).await.status, 404, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_those_of_the_session() {
    let app = TestApp::with_owner().await;
    let (ada, elsewhere) = (session(&app).await, session(&app).await);
    let reported = format!("{ada}; notice=text=Saved%20the%20%3Cmap%3E.");
    let shown = page(&app, "/help", &reported).await.text();
    assert!(shown.contains("Saved the &lt;map&gt;."), "{shown}");

    let body = format!("id={}", app.project());
    assert_eq!(function(&app, "rotate_secret_key", &body, &ada).send().await.status, 200);
    let listed = page(&app, "/account/messages", &ada).await.text();
    assert!(listed.contains("The project has a new secret key."), "{listed}");
    let other = page(&app, "/account/messages", &elsewhere).await.text();
    assert!(other.contains("No message yet"), "{other}");
}
