//! The pages of exports and the server functions of their forms.

use http::Method;
use weir_testkit::Call;

use super::*;
use crate::web::{page, session};

const DAY: i64 = 24 * 3600;

/// A call of a server function by a script of the app's own page.
fn function(app: &TestApp, cookie: &str, name: &str, fields: &[(&str, &str)]) -> Call {
    let mut body = form_urlencoded::Serializer::new(String::new());
    body.extend_pairs(fields);
    app.anonymous()
        .call(Method::POST, &format!("/_fn/{name}"))
        .header("content-type", "application/x-www-form-urlencoded")
        .header("sec-fetch-site", "same-origin")
        .header("cookie", cookie)
        .body(body.finish())
}

fn pages(app: &TestApp) -> String {
    format!("/organizations/{}/exports", app.organization())
}

/// The links of a page whose addresses contain this text.
fn links(html: &str, part: &str) -> Vec<String> {
    let all = html.split(" href=\"").skip(1).filter_map(|rest| rest.split('"').next());
    all.filter(|href| href.contains(part)).map(|href| href.replace("&amp;", "&")).collect()
}

fn lists(html: &str, run: &Run) -> bool {
    html.contains(&format!("id=\"run-{}\"", run.id))
}

/// The fields of a form for an export to a database.
fn fields<'a>(organization: &'a str, changes: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let mut fields = vec![
        ("organization", organization),
        ("destination", "Postgres"),
        ("name", "Warehouse"),
        ("interval", "hour"),
        ("model", "events"),
        ("config[host]", "db.example"),
        ("config[port]", "5432"),
        ("config[database]", "d"),
        ("config[schema]", "public"),
        ("config[table_name]", "events"),
        ("secrets[user]", "u-canary"),
        ("secrets[password]", "p-canary"),
    ];
    for &(name, _) in changes {
        fields.retain(|(field, _)| *field != name);
    }
    fields.extend_from_slice(changes);
    fields
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_is_created_and_changed_by_its_form() {
    let (app, _) = app().await;
    let (owner, cookie) = (owner(&app).await, session(&app).await);
    let organization = app.organization().to_string();

    // A missing value is reported at its field, with the field's name in the form.
    let without = [("config[host]", ""), ("secrets[password]", "")];
    let answer =
        function(&app, &cookie, "create_export", &fields(&organization, &without)).send().await;
    assert_eq!(answer.status, 400);
    assert!(answer.text().contains("config[host]"), "{}", answer.text());
    let without = [("secrets[password]", "")];
    let answer =
        function(&app, &cookie, "create_export", &fields(&organization, &without)).send().await;
    assert!(answer.text().contains("secrets[password]"), "{}", answer.text());

    // The user name that the form sent before is kept for the page.
    let kept = [("secrets[user]", "")];
    let answer =
        function(&app, &cookie, "create_export", &fields(&organization, &kept)).send().await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let made = answer.header("location").unwrap().to_owned();
    let id = made.rsplit('/').next().unwrap().to_owned();
    let shown = owner.get(&format!("{}{id}/", path(&app))).await.json();
    assert_eq!(shown["destination"]["config"]["port"], 5432);
    assert_eq!(shown["destination"]["config"]["has_self_signed_cert"], false);

    for rest in ["", "/backfill", "/settings", "/logs"] {
        let answer = page(&app, &format!("{made}{rest}"), &cookie).await;
        assert_eq!(answer.status, 200, "{rest}");
        let html = answer.text();
        assert!(html.contains("Warehouse"), "{rest}");
        assert!(!html.contains("p-canary") && !html.contains("u-canary"), "{rest}");
    }

    // Empty secrets keep their values. With another host they must be entered again.
    let with_id = |changes: &[(&'static str, &'static str)]| {
        let mut all = vec![("secrets[user]", ""), ("secrets[password]", "")];
        all.extend_from_slice(changes);
        all
    };
    let mut same = with_id(&[("name", "Renamed"), ("config[database]", "other")]);
    same.push(("export", id.as_str()));
    let answer =
        function(&app, &cookie, "update_export", &fields(&organization, &same)).send().await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let shown = owner.get(&format!("{}{id}/", path(&app))).await.json();
    assert_eq!(
        (&shown["name"], &shown["destination"]["config"]["database"]),
        (&json!("Renamed"), &json!("other"))
    );
    let mut moved = with_id(&[("config[host]", "elsewhere.example")]);
    moved.push(("export", id.as_str()));
    let answer =
        function(&app, &cookie, "update_export", &fields(&organization, &moved)).send().await;
    assert_eq!(answer.status, 400);
    assert!(answer.text().contains("secrets[user]"), "{}", answer.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_is_tested_by_the_form() {
    let (app, _) = app().await;
    let cookie = session(&app).await;
    let organization = app.organization().to_string();
    let try_it = async |fields: &[(&str, &str)]| {
        let answer = function(&app, &cookie, "test_export", fields).send().await;
        assert_ne!(answer.status, 200);
        answer.text()
    };
    let nowhere = [("organization", organization.as_str()), ("destination", "NoOp")];
    assert!(try_it(&nowhere).await.contains("connection"));
    // An address of this machine is refused here.
    let http = [
        ("organization", organization.as_str()),
        ("destination", "HTTP"),
        ("config[url]", "http://127.0.0.1:9/batch/"),
        ("secrets[token]", "t-canary"),
    ];
    let output = try_it(&http).await;
    assert!(output.contains("ForbiddenAddress") && output.contains("Skipped"), "{output}");
    assert!(!output.contains("t-canary"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_shows_failing_exports_and_runs_show_the_reason() {
    let (app, _) = app().await;
    let (owner, cookie) = (owner(&app).await, session(&app).await);
    let html = page(&app, &pages(&app), &cookie).await.text();
    assert!(html.contains("No export yet"));

    let (export, _) = made(&app, &owner, &with(postgres(), "name", json!("Broken"))).await;
    made(&app, &owner, &with(postgres(), "name", json!("Fine"))).await;
    let failed = Run {
        latest_error: Some("NameNotFound: The name of the host has no address.".to_owned()),
        ..run(&export, 3600, Status::Failed)
    };
    create_run(app.store(), &failed).await;
    let html = page(&app, &pages(&app), &cookie).await.text();
    let (broken, fine) = (html.find("Broken").unwrap(), html.find("Fine").unwrap());
    assert!(broken < fine && html.contains("Failing"));
    let html = page(&app, &format!("{}?state=paused", pages(&app)), &cookie).await.text();
    assert!(html.contains("Clear filters") && !html.contains(">Broken<"));

    // A run that is retried has not ended, and its export is failing.
    let (retried, _) = made(&app, &owner, &with(postgres(), "name", json!("Retried"))).await;
    let again = Run {
        latest_error: Some("ConnectionRefused: No connection is accepted there.".to_owned()),
        failing_since: Some(Timestamp::from_micros(NOW)),
        next_try_at: Some(Timestamp::from_micros(NOW).plus_seconds(120)),
        ..run(&retried, 3600, Status::Running)
    };
    create_run(app.store(), &again).await;
    let html = page(&app, &format!("{}?state=failing", pages(&app)), &cookie).await.text();
    for words in
        ["Retried", "Failing since", "next try", "ConnectionRefused", "The last run failed."]
    {
        assert!(html.contains(words), "{words}");
    }
    assert!(html.contains("2<span class=\"hidden\"> failing exports"), "the rail counts it");
    for words in [
        "Retried: Failing since 2026-05-28 20:26 UTC, next try 2026-05-28 20:28 UTC. \
         ConnectionRefused: No connection is accepted there.",
        "Broken: Failing since",
    ] {
        assert!(html.contains(words), "{words}");
    }
    let one = format!("{}/{}", pages(&app), retried["id"].as_str().unwrap());
    let html = page(&app, &one, &cookie).await.text();
    for words in ["Failing since", "next try", "Failing, retried", "Next try"] {
        assert!(html.contains(words), "{words}");
    }

    let one = format!("{}/{}", pages(&app), export["id"].as_str().unwrap());
    let html = page(&app, &one, &cookie).await.text();
    assert!(html.contains("NameNotFound") && html.contains("What to check"));
    let html = page(&app, &format!("{one}/backfill?look=1"), &cookie).await.text();
    assert!(html.contains("There is nothing to export in this range."));

    // A paused export can be resumed.
    let ids = [
        ("organization", app.organization().to_string()),
        ("export", export["id"].as_str().unwrap().to_owned()),
    ];
    let ids: Vec<(&str, &str)> = ids.iter().map(|(name, value)| (*name, value.as_str())).collect();
    for (name, expected) in [("pause_export", true), ("unpause_export", false)] {
        let answer = function(&app, &cookie, name, &ids).send().await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let path = format!("{}{}/", path(&app), export["id"].as_str().unwrap());
        assert_eq!(owner.get(&path).await.json()["paused"], expected);
    }
    let mut wrong = ids.clone();
    wrong.push(("typed_name", "broken"));
    assert_ne!(function(&app, &cookie, "delete_export", &wrong).send().await.status, 200);
    wrong.pop();
    wrong.push(("typed_name", "Broken"));
    assert_eq!(function(&app, &cookie, "delete_export", &wrong).send().await.status, 200);
    assert_eq!(page(&app, &one, &cookie).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shape_leads_to_its_run_however_old_it_is() {
    let (app, clock) = app().await;
    let owner = owner(&app).await;
    let (export, _) = made(&app, &owner, &paused()).await;
    for week in 1..=3 {
        ran(&app, &export, 7 * DAY * week, Status::Completed).await;
    }
    clock.advance(22 * DAY);
    let cookie = session(&app).await;
    let list = page(&app, &pages(&app), &cookie).await.text();
    let ways = links(&list, "#run-");
    // A link to the last run, and one from the shape of each of the three runs.
    assert_eq!(ways.len(), 4, "{ways:?}");
    for way in ways {
        let (address, run) = way.split_once('#').unwrap();
        let html = page(&app, address, &cookie).await.text();
        assert!(html.contains(&format!("id=\"{run}\"")), "{way}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_that_are_older_than_a_week_are_found() {
    let (app, clock) = app().await;
    let owner = owner(&app).await;
    let (export, _) = made(&app, &owner, &paused()).await;
    let old = ran(&app, &export, DAY, Status::Failed).await;
    let new = ran(&app, &export, 20 * DAY, Status::Completed).await;
    clock.advance(21 * DAY);
    let cookie = session(&app).await;
    let one = format!("{}/{}", pages(&app), export["id"].as_str().unwrap());
    let shown = async |address: &str| page(&app, address, &cookie).await.text();

    let html = shown(&one).await;
    assert!(lists(&html, &new) && !lists(&html, &old));
    let html = shown(&links(&html, "after=")[0]).await;
    assert!(lists(&html, &new) && lists(&html, &old));

    // A filter shows how far it has searched, and has a link to continue.
    let html = shown(&format!("{one}?state=failed")).await;
    assert!(html.contains("No matching run in the last 7 days") && !lists(&html, &old));
    let html = shown(&links(&html, "after=")[0]).await;
    assert!(lists(&html, &old) && !lists(&html, &new));

    // Ten days after the export was created.
    let before = "before=2026-06-07T00:00";
    let html = shown(&format!("{one}?{before}")).await;
    assert!(lists(&html, &old) && !lists(&html, &new));
    let html = shown(&format!("{one}?{before}&state=cancelled")).await;
    assert!(html.contains("Clear filters") && !html.contains("last 7 days"));
}

#[tokio::test(flavor = "multi_thread")]
async fn exports_of_others_are_not_there() {
    let (app, _) = app().await;
    let cookie = session(&app).await;
    let theirs = app.outsider("mallory").await.key(&["*"]).await;
    let other = theirs.post("/api/organizations/", &json!({"name": "Beta"})).await.json();
    let organization = other["id"].as_str().unwrap();
    let answer =
        theirs.post(&format!("/api/organizations/{organization}/batch_exports/"), &s3()).await;
    let export = answer.json()["id"].as_str().unwrap().to_owned();
    for rest in ["", "/new", &format!("/{export}"), &format!("/{export}/settings")] {
        let path = format!("/organizations/{organization}/exports{rest}");
        assert_eq!(page(&app, &path, &cookie).await.status, 404, "{path}");
    }
    // It is missing below another organization of the user too.
    assert_eq!(page(&app, &format!("{}/{export}", pages(&app)), &cookie).await.status, 404);
    for name in ["pause_export", "unpause_export", "get_export", "get_export_secrets"] {
        let fields =
            [("organization", organization), ("export", export.as_str()), ("failed", "false")];
        let answer = function(&app, &cookie, name, &fields).send().await;
        assert_eq!(answer.status, 404, "{name}");
    }
}
