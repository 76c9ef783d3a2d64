//! How long a project keeps its events: who may change it, and what the page asks.

use serde_json::json;
use weir_model::organizations::Level;
use weir_testkit::{Answer, TestApp};

use crate::organization_pages::newcomer;
use crate::web::{function, page, session};

async fn set(app: &TestApp, cookie: &str, days: &str, name: &str) -> Answer {
    let project = app.project().to_string();
    let mut body = form_urlencoded::Serializer::new(String::new());
    body.extend_pairs([("id", project.as_str()), ("days", days), ("retention_name", name)]);
    let call = function(app, "set_event_retention", &body.finish());
    call.header("cookie", cookie).send().await
}

async fn days(app: &TestApp) -> serde_json::Value {
    let caller = app.owner().key(&["project:read"]).await;
    caller.get(&format!("/api/projects/{}/", app.project())).await.json()["event_retention_days"]
        .clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn members_cannot_change_it() {
    let app = TestApp::with_owner().await;
    let flat = format!("/api/projects/{}/", app.project());
    let nested = format!("/api/organizations/{}/projects/{}/", app.organization(), app.project());
    let member = app.member("grace", Level::Member).await.key(&["project:write"]).await;
    let admin = app.member("linus", Level::Administrator).await.key(&["project:write"]).await;
    let detail = "Your organization access level is insufficient.";
    for path in [&flat, &nested] {
        for body in [
            json!({"event_retention_days": 30}),
            json!({"name": "Mine", "event_retention_days": 1}),
        ] {
            let answer = member.patch(path, &body).await;
            answer.assert_error(403, "authentication_error", "permission_denied", detail);
        }
    }
    assert_eq!(days(&app).await, json!(null));
    assert_eq!(admin.patch(&flat, &json!({"event_retention_days": 30})).await.status, 200);
    let answer = member.patch(&nested, &json!({"event_retention_days": null})).await;
    answer.assert_error(403, "authentication_error", "permission_denied", detail);
    let same = json!({"name": "Tea", "event_retention_days": 30});
    let same = member.patch(&flat, &same).await;
    assert_eq!((same.status, &same.json()["name"]), (200, &json!("Tea")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shorter_time_is_confirmed_by_name() {
    let app = TestApp::with_owner().await;
    let cookie = session(&app).await;
    let caller = app.owner().key(&["project:read"]).await;
    let shown = caller.get(&format!("/api/projects/{}/", app.project())).await.json();
    let name = shown["name"].as_str().unwrap();
    let settings = format!("/projects/{}/settings", app.project());
    let preview = async |days: &str| {
        page(&app, &format!("{settings}?look=retention&days={days}"), &cookie).await.text()
    };
    let warning = "From now on, Weir removes events older than 30 days";

    let shown = preview("30").await;
    assert!(shown.contains(warning) && shown.contains("name=\"retention_name\""), "{shown}");
    assert!(shown.contains("Keep events for 30 days"), "{shown}");
    for typed in ["", "Other"] {
        let refused = set(&app, &cookie, "30", typed).await;
        assert_eq!(refused.status, 400, "{:?}", refused.body);
        assert!(refused.text().contains("Type the name exactly"), "{:?}", refused.body);
    }
    assert_eq!(days(&app).await, json!(null));
    assert_eq!(set(&app, &cookie, "30", name).await.status, 200);
    assert_eq!(days(&app).await, json!(30));
    assert_eq!(set(&app, &cookie, "29", "").await.status, 400);
    let shown = preview("30").await;
    assert!(shown.contains("No change.") && !shown.contains(warning), "{shown}");

    // A longer time removes nothing.
    let shown = preview("31").await;
    assert!(shown.contains("Events will be kept for 31 days."), "{shown}");
    assert!(!shown.contains("name=\"retention_name\""), "{shown}");
    assert_eq!(set(&app, &cookie, "31", "").await.status, 200);
    assert!(preview("").await.contains("Events will be kept for ever."));
    assert_eq!(set(&app, &cookie, "", "").await.status, 200);
    assert_eq!(days(&app).await, json!(null));

    for wrong in ["0", "3651", "1.5", "x"] {
        let shown = preview(wrong).await;
        assert!(shown.contains("Enter a whole number from 1 to 3650"), "{wrong} {shown}");
        assert_eq!(set(&app, &cookie, wrong, name).await.status, 400, "{wrong}");
    }
    let plain = page(&app, &settings, &cookie).await.text();
    assert!(plain.contains("Preview change") && !plain.contains(warning), "{plain}");

    let log = app.owner().key(&["activity_log:read"]).await;
    let log = log.get(&format!("/api/projects/{}/activity_log/", app.project())).await.json();
    assert!(log.to_string().contains("event_retention_days"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn members_see_it_and_the_reason() {
    let app = TestApp::with_owner().await;
    let admin = app.owner().key(&["project:write"]).await;
    let path = format!("/api/projects/{}/", app.project());
    let changed = admin.patch(&path, &json!({"event_retention_days": 77})).await;
    assert_eq!(changed.status, 200, "{:?}", changed.body);
    let cookie = newcomer(&app, "grace@mail.example", Level::Member).await;
    let settings = format!("/projects/{}/settings", app.project());
    let shown = page(&app, &format!("{settings}?look=retention&days=5"), &cookie).await.text();
    let (_, rest) = shown.split_once("id=\"days\"").expect(&shown);
    let field = rest.split('>').next().unwrap();
    assert!(field.contains("disabled") && field.contains("value=\"77\""), "{field}");
    assert!(shown.contains("Administrators and owners of the organization can change this."));
    assert!(!shown.contains("Preview change") && !shown.contains("retention_name"), "{shown}");
    let refused = set(&app, &cookie, "5", "").await;
    assert_eq!(refused.status, 403, "{:?}", refused.body);
    assert_eq!(days(&app).await, json!(77));
}
