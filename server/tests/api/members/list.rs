//! GET `…/members/`.

use http::Method;
use serde_json::{Value, json};
use uuid::Uuid;
use weir_model::Timestamp;
use weir_model::organizations::Level;
use weir_service::Clock;
use weir_store::members;
use weir_testkit::TestApp;

use super::writer;
use crate::web::session;

fn names(list: &Value) -> Vec<&str> {
    let results = list["results"].as_array().unwrap();
    results.iter().map(|item| item["user"]["first_name"].as_str().unwrap()).collect()
}

/// The owner Ada, then Grace, then Linus, an hour apart.
async fn three() -> TestApp {
    let clock = Clock::fixed(Timestamp::from_micros(1_780_000_000_000_000));
    let app = TestApp::at(clock.clone()).await.set_up().await;
    for (name, level) in [("grace", Level::Member), ("linus", Level::Administrator)] {
        clock.advance(3600);
        app.member(name, level).await;
    }
    app
}

#[tokio::test(flavor = "multi_thread")]
async fn the_resource_has_every_field_of_its_type() {
    let app = three().await;
    let caller = app.owner().key(&["organization_member:read"]).await;
    session(&app).await;
    let list = caller.get(&format!("/api/organizations/{}/members/", app.organization())).await;
    // Ada signed in just now, Linus never has.
    assert_eq!(list.json()["results"][2]["last_login"], "2026-05-28T22:26:40Z");
    let mut linus = list.json()["results"][0].clone();
    assert!(linus["id"].as_str().unwrap().parse::<Uuid>().is_ok());
    linus["id"] = json!("[id]");
    for id in ["id", "uuid", "distinct_id"] {
        assert!(!linus["user"][id].is_null());
        linus["user"][id] = json!("[id]");
    }
    assert_eq!(
        linus,
        json!({
            "id": "[id]",
            "user": {
                "id": "[id]",
                "uuid": "[id]",
                "distinct_id": "[id]",
                "first_name": "linus",
                "last_name": "",
                "email": "linus@mail.example",
                "is_email_verified": false,
                "hedgehog_config": {},
            },
            "level": 8,
            "joined_at": "2026-05-28T22:26:40Z",
            "updated_at": "2026-05-28T22:26:40Z",
            "is_2fa_enabled": false,
            "has_social_auth": false,
            "last_login": null,
        })
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn order_and_pages() {
    let app = three().await;
    let caller = app.owner().key(&["organization_member:read"]).await;
    for organization in [app.organization().to_string(), "@current".into(), "%40current".into()] {
        let base = format!("/api/organizations/{organization}/members");
        for (query, expected, count) in [
            ("/", vec!["linus", "grace", "Ada"], 3),
            ("", vec!["linus", "grace", "Ada"], 3),
            ("/?order=joined_at", vec!["Ada", "grace", "linus"], 3),
            ("/?order=-joined_at", vec!["linus", "grace", "Ada"], 3),
            ("/?order=level", vec!["linus", "grace", "Ada"], 3),
            ("/?limit=1&offset=1", vec!["grace"], 3),
            ("/?offset=7", vec![], 3),
            ("/?email=grace@mail.example", vec!["grace"], 1),
            ("/?email=GRACE@mail.example", vec!["grace"], 1),
            ("/?email=grace", vec![], 0),
            ("/?search=LIN", vec!["linus"], 1),
            ("/?search=mail.example&limit=2", vec!["linus", "grace"], 3),
            ("/?search=", vec!["linus", "grace", "Ada"], 3),
            ("/?updated_after=2026-05-28T21:00:00Z", vec!["linus", "grace"], 2),
            ("/?updated_after=2026-05-28T21:00:00Z&search=gra", vec!["grace"], 1),
        ] {
            let list = caller.get(&format!("{base}{query}")).await.json();
            assert_eq!(names(&list), expected, "{query}");
            assert_eq!(list["count"], count, "{query}");
        }
    }
    let base = format!("/api/organizations/{}/members/", app.organization());
    let list = caller.get(&format!("{base}?limit=1&order=joined_at")).await.json();
    let next = format!("http://{}{base}?limit=1&offset=1&order=joined_at", app.address());
    assert_eq!((&list["next"], &list["previous"]), (&json!(next), &Value::Null));
    let answer = caller.get(&format!("{base}?updated_after=yesterday")).await;
    answer.assert_field_error(
        400,
        "validation_error",
        "invalid_input",
        "Datetime has wrong format. Use one of these formats instead: \
         YYYY-MM-DDThh:mm[:ss[.uuuuuu]][+HH:MM|-HH:MM|Z].",
        Some("updated_after"),
    );
    let answer = caller.get(&format!("{base}?search={}", "x".repeat(201))).await;
    assert_eq!((answer.status, &answer.json()["attr"]), (400, &json!("search")));
}

#[tokio::test(flavor = "multi_thread")]
async fn disabled_users_and_non_persons_are_not_listed() {
    let app = three().await;
    let caller = app.owner().key(&["*"]).await;
    let base = format!("/api/organizations/{}/", app.organization());
    let bot = app.outsider_with_address("robot", "robot@posthogbot.user").await;
    app.join(&bot, Level::Member).await;
    let gone = app.member("mallory", Level::Member).await;
    let now = app.app().services.clock.now();
    let listed = async || {
        let list = caller.get(&format!("{base}members/")).await.json();
        let count = caller.get(&base).await.json()["member_count"].clone();
        assert_eq!(count, json!(list["count"].to_string()));
        names(&list).iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(listed().await.len(), 4);
    members::set_active(app.store(), gone.id(), false, &[], now).await.unwrap();
    assert_eq!(listed().await, ["linus", "grace", "Ada"]);
    for who in ["mallory", "robot"] {
        let found = caller.get(&format!("{base}members/?search={who}")).await.json();
        assert_eq!(found["count"], 0, "{who}");
    }
    for person in [&bot, &gone] {
        let path = format!("{base}members/{}/", person.id());
        let answer = caller.patch(&path, &json!({"level": 8})).await;
        answer.assert_error(404, "invalid_request", "not_found", "Not found.");
    }
    members::set_active(app.store(), gone.id(), true, &[], now).await.unwrap();
    assert!(listed().await.contains(&"mallory".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_read() {
    let app = three().await;
    let path = format!("/api/organizations/{}/members/", app.organization());
    let member = app.member("barbara", Level::Member).await;
    let reader = member.key(&["organization_member:read"]).await;
    assert_eq!(reader.get(&path).await.status, 200);
    assert_eq!(writer(&member).await.get(&path).await.status, 200);
    let other = member.key(&["organization:write"]).await;
    other.get(&path).await.assert_error(
        403,
        "authentication_error",
        "permission_denied",
        "API key missing required scope 'organization_member:read'",
    );
    let outsider = app.outsider("mallory").await.key(&["*"]).await;
    let missing = outsider.get(&format!("/api/organizations/{}/members/", Uuid::nil())).await;
    missing.assert_error(404, "invalid_request", "not_found", "Organization not found.");
    assert_eq!(outsider.get(&path).await.body, missing.body);
    // Members cannot be added here, and a single one cannot be read.
    let answer = reader.post(&path, &json!({})).await;
    answer.assert_error(
        405,
        "invalid_request",
        "method_not_allowed",
        "Method \"POST\" not allowed.",
    );
    let one = reader.call(Method::GET, &super::path(&app, &member)).send().await;
    one.assert_error(405, "invalid_request", "method_not_allowed", "Method \"GET\" not allowed.");
    assert_eq!(one.header("allow"), Some("PUT, PATCH, DELETE, OPTIONS"));
}
