//! The lists of pages as CSV files: their lines, their filters, and who may download them.

use serde_json::json;
use weir_model::organizations::Level;
use weir_testkit::TestApp;

use crate::frame::member;
use crate::stored::{get, send};
use crate::web::{page, session};

/// The pages with lists: the path, the beginning of the name of the file, and of its head.
fn files(app: &TestApp) -> Vec<(String, &'static str, &'static str)> {
    let (home, project) = (app.organization(), app.project());
    let of_organization = [
        ("", "projects", "id,name,"),
        ("/members", "members", "id,first_name,"),
        ("/invites", "invites", "email,first_name,"),
        ("/domains", "domains", "id,domain,"),
        ("/activity", "activity", "id,time,"),
        ("/exports", "exports", "id,name,"),
        ("/plugins/transformations", "plugins-transformations", "id,name,"),
        ("/plugins/destinations", "plugins-destinations", "id,name,"),
    ];
    let of_project = [
        ("events", "events", "received,event_time,"),
        ("insights", "insights", "short_id,name,"),
        ("insights/persons", "persons-behind-a-number", "id,name,"),
        ("dashboards", "dashboards", "id,name,"),
        ("definitions", "event-definitions", "name,events_30d,"),
        ("health/events", "dropped-and-altered-events", "received,outcome,"),
        ("persons", "persons", "id,name,"),
        ("groups", "groups", "type,key,"),
        ("groups/company", "groups", "type,key,"),
        ("groups/company/a%2Fb/persons", "group-persons", "id,name,"),
        ("groups/company/a%2Fb/events", "group-events", "event_time,received,"),
        ("definitions/seen", "event-properties", "property,types,"),
        ("health/unknown-keys", "unknown-project-keys", "key,sender,"),
        ("migrations", "imports", "day,key,"),
        ("transformations", "transformations", "id,name,"),
        ("settings/keys", "project-keys", "key,events_24h,"),
    ];
    let of_organization = of_organization
        .map(|(path, name, head)| (format!("/organizations/{home}{path}"), name, head));
    let of_project =
        of_project.map(|(path, name, head)| (format!("/projects/{project}/{path}"), name, head));
    of_organization.into_iter().chain(of_project).collect()
}

/// Events of each kind, and a group.
async fn furnished() -> TestApp {
    let app = TestApp::with_owner().await;
    let group = json!({"$group_type": "company", "$group_key": "a/b"});
    send(
        &app,
        json!([
            {"event": "seen", "distinct_id": "=ada"},
            {"event": "of no one"},
            {"event": "$groupidentify", "distinct_id": "bob", "properties": group},
        ]),
    )
    .await;
    app
}

#[tokio::test(flavor = "multi_thread")]
async fn every_list_is_a_file() {
    let app = furnished().await;
    let cookie = session(&app).await;
    let own = [
        ("/account/keys".to_owned(), "api-keys", "id,label,"),
        ("/account/messages".to_owned(), "messages", "time,message"),
        ("/account/security/sessions".to_owned(), "sessions", "id,user_agent,"),
        ("/organizations".to_owned(), "organizations", "id,name,"),
        ("/instance/organizations".to_owned(), "instance-organizations", "id,name,"),
    ];
    for (path, name, head) in own.into_iter().chain(files(&app)) {
        let answer = page(&app, &format!("/_csv{path}"), &cookie).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        assert_eq!(answer.header("content-type"), Some("text/csv; charset=utf-8"), "{path}");
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{path}");
        let file = answer.header("content-disposition").unwrap();
        assert!(file.starts_with(&format!("attachment; filename=\"{name}")), "{path}: {file}");
        let text = answer.text();
        assert!(text.replace('"', "").starts_with(head), "{path}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_has_the_filter_of_its_page() {
    let app = furnished().await;
    let cookie = session(&app).await;
    app.member("grace", Level::Member).await;
    let (home, project) = (app.organization(), app.project());
    let lines = async |path: String| {
        let text = page(&app, &format!("/_csv{path}"), &cookie).await.text();
        text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    for (path, expected) in [
        (format!("/organizations/{home}/members"), 2),
        (format!("/organizations/{home}/members?search=grace&offset=5"), 1),
        (format!("/projects/{project}/definitions"), 2),
        (format!("/projects/{project}/definitions?q=SEE"), 1),
        (format!("/projects/{project}/persons"), 2),
        (format!("/projects/{project}/persons?q=bob"), 1),
        (format!("/projects/{project}/groups/company?q=a/b"), 1),
        (format!("/projects/{project}/groups/company?q=c"), 0),
        (format!("/projects/{project}/health/events?code=missing_distinct_id"), 1),
        (format!("/projects/{project}/health/events?to=2000-01-01T00:00"), 0),
        (format!("/projects/{project}/events?event=seen"), 1),
    ] {
        let found = lines(path.clone()).await;
        assert_eq!(found.len(), expected, "{path}: {found:?}");
    }
    let ada = lines(format!("/projects/{project}/persons?q==ada")).await;
    assert!(ada.iter().any(|line| line.contains("\"'=ada\"")), "no formula: {ada:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_person_one_group_and_one_event_name_have_files() {
    let app = TestApp::with_owner().await;
    let cookie = session(&app).await;
    let used = |event: &str, person: &str| {
        let properties = json!({"plan": "pro", "$groups": {"company": "a/b"}});
        json!({"event": event, "distinct_id": person, "properties": properties})
    };
    let mut events = vec![used("left", "ada"), used("seen", "bob")];
    events.extend((0..60).map(|_| used("seen", "ada")));
    send(&app, json!(events)).await;
    let caller = app.owner().key(&["*"]).await;
    let found = get(&app, &caller, "persons/?distinct_id=ada").await;
    let ada = found["results"][0]["id"].as_str().unwrap();
    let lines = async |path: String| {
        let answer = page(&app, &format!("/_csv/projects/{}/{path}", app.project()), &cookie).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answer.text().lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(lines(format!("persons/{ada}/events")).await.len(), 61);
    let left = lines(format!("persons/{ada}/events?event=left")).await;
    assert!(left.len() == 1 && left[0].contains("\"left\",\"ada\""), "{left:?}");

    let persons = lines("groups/company/a%2Fb/persons".to_owned()).await;
    assert_eq!(persons.len(), 2, "{persons:?}");
    assert!(persons[0].contains("\"ada\",\"61\",\"true\""), "{persons:?}");
    // The page and the file show the last events that arrived.
    assert_eq!(lines("groups/company/a%2Fb/events".to_owned()).await.len(), 50);
    assert_eq!(lines("groups/company/c/events".to_owned()).await, [""; 0]);

    let properties = lines("definitions/left".to_owned()).await;
    let plan = "\"plan\",\"String\",\"\"\"pro\"\"\",\"1\",\"1\"".to_owned();
    assert!(properties.contains(&plan), "{properties:?}");

    for path in ["persons/x/events", "groups/team/a/persons", "definitions/missing"] {
        let path = format!("/_csv/projects/{}/{path}", app.project());
        assert_eq!(page(&app, &path, &cookie).await.status, 404, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_of_the_instance_are_files_for_staff() {
    let app = TestApp::with_owner().await;
    let (ada, grace) = (session(&app).await, member(&app).await);
    let unknown = format!("/_csv/projects/{}/health/unknown-keys", app.project());
    for path in ["/_csv/instance/organizations", unknown.as_str()] {
        assert_eq!(page(&app, path, &ada).await.status, 200, "{path}");
        assert_eq!(page(&app, path, &grace).await.status, 404, "{path}");
    }
    let body = json!({"api_key": "phc_nobodyhasthiskey", "event": "a", "distinct_id": "b"});
    assert_eq!(app.anonymous().post("/capture/", &body).await.status, 401);
    let text = page(&app, &unknown, &ada).await.text();
    assert!(text.contains("\"phc_nobo...\",\"127.0.0.1\",\"1\""), "{text}");
    let sessions = page(&app, "/_csv/account/security/sessions", &grace).await.text();
    assert_eq!(sessions.lines().count(), 2, "those of other users are not in it: {sessions}");
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_for_those_who_may_open_the_page() {
    let app = furnished().await;
    let cookie = session(&app).await;
    let theirs = app.outsider("mallory").await.key(&["*"]).await;
    let other = theirs.post("/api/organizations/", &json!({"name": "Beta"})).await.json();
    let (foreign, project) = (other["id"].as_str().unwrap(), other["teams"][0]["id"].to_string());
    for (path, ..) in files(&app) {
        let file = format!("/_csv{path}");
        let anonymous = app.anonymous().get(&file).await;
        assert_eq!(anonymous.status, 303, "{path}");
        assert!(anonymous.header("location").unwrap().starts_with("/login?next=/_csv/"), "{path}");
        let of_others = path
            .replace(&app.organization().to_string(), foreign)
            .replace(&format!("/projects/{}/", app.project()), &format!("/projects/{project}/"));
        let answer = page(&app, &format!("/_csv{of_others}"), &cookie).await;
        assert_eq!(answer.status, 404, "{of_others}");
    }
    for path in ["/", "/nowhere", "/projects", "/organizations/x/members", "/projects/1/groups/x"] {
        assert_eq!(page(&app, &format!("/_csv{path}"), &cookie).await.status, 404, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_list_is_whole() {
    let app = TestApp::with_owner().await;
    let cookie = session(&app).await;
    let events: Vec<_> =
        (0..130).map(|at| json!({"event": "seen", "distinct_id": format!("p{at}")})).collect();
    send(&app, json!(events)).await;
    for list in ["persons", "events"] {
        let path = format!("/_csv/projects/{}/{list}", app.project());
        let text = page(&app, &path, &cookie).await.text();
        assert_eq!(text.lines().count(), 131, "{list}");
    }
}
