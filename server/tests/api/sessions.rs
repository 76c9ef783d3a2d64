//! Reading sessions.

use serde_json::{Value, json};
use uuid::Uuid;
use weir_testkit::TestApp;

use crate::stored::{get, send};

/// 2026-06-01T10:00:00Z in milliseconds.
const MADE: u128 = 1_780_308_000_000;

/// A session id made this many minutes after 10:00.
fn session(minutes: u128) -> String {
    Uuid::from_u128(((MADE + minutes * 60_000) << 80) | (7 << 76) | (2 << 62)).to_string()
}

fn event(name: &str, who: &str, clock: &str, session: &str) -> Value {
    json!({"event": name, "distinct_id": who, "timestamp": format!("2026-06-01T{clock}Z"),
           "properties": {"$session_id": session, "$current_url": format!("https://a/{clock}")}})
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sessions_of_a_person_across_its_distinct_ids() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["event:read"]).await;
    let (first, second, third) = (session(0), session(60), session(120));
    let mut identify = event("$identify", "ada", "10:01:00", &first);
    identify["properties"]["$anon_distinct_id"] = json!("anon-1");
    send(
        &app,
        json!([
            event("$pageview", "anon-1", "10:00:05", &first),
            event("$autocapture", "anon-1", "10:00:30.500", &first),
            identify,
            event("$pageview", "ada", "10:02:00", &first),
            event("$pageview", "ada", "11:00:00", &second),
            {"event": "$screen", "distinct_id": "ada", "timestamp": "2026-06-01T12:00:00Z",
             "properties": {"$session_id": third, "$screen_name": "Cart"}},
            event("paid", "ada", "12:00:01", "my-own-id"),
            event("paid", "ada", "12:00:01", &session(180)),
            {"event": "paid", "distinct_id": "ada", "properties": {}},
            event("$pageview", "eve", "10:00:00", &session(0)),
        ]),
    )
    .await;

    let found = get(&app, &caller, "sessions/?distinct_id=ada").await;
    assert_eq!(
        (&found["count"], &found["next"], &found["previous"], &found["since"]),
        (&json!(3), &Value::Null, &Value::Null, &Value::Null)
    );
    assert_eq!(found["not_counted"], json!({"not_uuid_v7": 1, "made_after_first_event": 1}));
    assert_eq!(
        found["results"][2],
        json!({
            "session_id": first,
            "distinct_ids": ["anon-1", "ada"],
            "start_timestamp": "2026-06-01T10:00:05Z",
            "end_timestamp": "2026-06-01T10:02:00Z",
            "duration": 115.0,
            "is_bounce": false,
            "entry_current_url": "https://a/10:00:05",
            "exit_current_url": "https://a/10:02:00",
            "entry_screen_name": null,
            "exit_screen_name": null,
            "pageview_count": 2,
            "screen_count": 0,
            "autocapture_count": 1,
            "event_count": 4,
        })
    );
    let brief = |n: usize| {
        let result = &found["results"][n];
        (&result["session_id"], &result["is_bounce"], &result["entry_screen_name"])
    };
    assert_eq!(brief(0), (&json!(third), &json!(true), &json!("Cart")));
    assert_eq!(brief(1), (&json!(second), &json!(true), &Value::Null));
    // With any distinct id of the person.
    assert_eq!(get(&app, &caller, "sessions/?distinct_id=anon-1").await["count"], 3);
    assert_eq!(get(&app, &caller, "sessions/?distinct_id=nobody").await["count"], 0);

    let page = get(&app, &caller, "sessions/?distinct_id=ada&limit=1&offset=1").await;
    assert_eq!((&page["count"], page["results"].as_array().unwrap().len()), (&json!(3), 1));
    assert_eq!(page["results"][0], found["results"][1]);
    for (link, offset) in [("next", "&offset=2"), ("previous", "")] {
        let url = page[link].as_str().unwrap();
        assert!(url.ends_with(&format!("/sessions/?distinct_id=ada&limit=1{offset}")), "{url}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_longer_than_the_search_window_is_not_truncated() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["query:read"]).await;
    let (old, new) = (session(0), session(60));
    let mut events = vec![
        event("$pageview", "ada", "10:00:00", &old),
        event("$pageview", "ada", "10:59:00", &old),
        event("$pageview", "ada", "11:00:00", &new),
    ];
    // As many as are read, including the last two of those above.
    events.extend((0..4_998).map(|n| {
        let mut tick = event("tick", "ada", "11:00:30", &new);
        // Equal events would be duplicates.
        tick["properties"]["n"] = json!(n);
        tick
    }));
    for part in events.chunks(2_500) {
        send(&app, json!(part)).await;
    }
    let found = get(&app, &caller, "sessions/?distinct_id=ada").await;
    assert_eq!((&found["count"], &found["since"]), (&json!(1), &json!("2026-06-01T10:59:00Z")));
    let result = &found["results"][0];
    assert_eq!((&result["session_id"], &result["event_count"]), (&json!(new), &json!(4_999)));
    assert_eq!(found["not_counted"], json!({}));
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_need_a_distinct_id_and_a_scope_of_events() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["event:read"]).await;
    for query in ["", "?distinct_id=", "?limit=5"] {
        let path = format!("/api/projects/{}/sessions/{query}", app.project());
        caller.get(&path).await.assert_field_error(
            400,
            "validation_error",
            "required",
            "This field is required.",
            Some("distinct_id"),
        );
    }
    let path = format!("/api/projects/{}/sessions/?distinct_id=ada", app.project());
    let other = app.owner().key(&["person:read"]).await.get(&path).await;
    let detail = "API key missing required scope 'query:read'";
    other.assert_error(403, "authentication_error", "permission_denied", detail);
}
