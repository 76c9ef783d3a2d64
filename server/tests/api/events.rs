//! Reading events back: filters, pages, what was dropped.

use serde_json::{Value, json};
use weir_testkit::{Caller, TestApp};

use crate::stored::{get, send};

async fn list(app: &TestApp, caller: &Caller, query: &str) -> Value {
    get(app, caller, &format!("events/{query}")).await
}

fn names(list: &Value) -> Vec<String> {
    let results = list["results"].as_array().unwrap();
    results.iter().map(|event| event["event"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_sent_is_read_back() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["event:read"]).await;
    let uuid = "5d0a0f4e-6f0c-4d3e-9a53-0c5f1b0a7e11";
    send(
        &app,
        json!([{
            "event": "paid", "distinct_id": "u1", "uuid": uuid,
            "timestamp": "2026-06-01T10:00:00.123456Z",
            "properties": {"big": 12345678901234567890_u64, "half": 0.5, "text": "a"},
        }]),
    )
    .await;
    let answer = caller.get(&format!("/api/projects/{}/events/", app.project())).await;
    let text = String::from_utf8(answer.body.to_vec()).unwrap();
    assert!(text.contains("12345678901234567890"), "{text}");
    let event = &answer.json()["results"][0];
    assert_eq!(event["id"], uuid);
    assert_eq!(event["uuid"], uuid);
    assert_eq!(event["event"], "paid");
    assert_eq!(event["distinct_id"], "u1");
    assert_eq!(event["timestamp"], "2026-06-01T10:00:00.123456Z");
    assert_eq!(event["properties"]["half"], 0.5);
    assert_eq!(event["historical"], false);
    assert_eq!(event["elements_chain"], "");
    for key in ["created_at", "person"] {
        assert!(event.get(key).is_some(), "{key}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_follow_the_link_without_gap_or_double() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["query:read"]).await;
    // Three share a time: the uuid decides among them.
    let times = [1, 2, 2, 2, 3, 4, 5];
    let events: Vec<Value> = times
        .iter()
        .enumerate()
        .map(|(n, second)| {
            json!({"event": format!("e{n}"), "distinct_id": "u", "timestamp": format!("2026-06-01T10:00:0{second}Z")})
        })
        .collect();
    send(&app, json!(events)).await;
    let base = format!("http://{}", app.address());
    let mut seen = Vec::new();
    let mut path = format!("/api/projects/{}/events/?limit=2&distinct_id=u", app.project());
    loop {
        let page = caller.get(&path).await.json();
        seen.extend(page["results"].as_array().unwrap().iter().map(|event| {
            (
                event["timestamp"].as_str().unwrap().to_owned(),
                event["event"].as_str().unwrap().to_owned(),
            )
        }));
        match page["next"].as_str() {
            Some(next) => path = next.strip_prefix(&base).unwrap().to_owned(),
            None => break,
        }
    }
    assert!(seen.iter().map(|(time, _)| time).is_sorted_by(|a, b| a >= b), "{seen:?}");
    let mut found: Vec<String> = seen.into_iter().map(|(_, name)| name).collect();
    found.sort();
    assert_eq!(found, ["e0", "e1", "e2", "e3", "e4", "e5", "e6"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn filters() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["query:read"]).await;
    let uuid = "5d0a0f4e-6f0c-4d3e-9a53-0c5f1b0a7e12";
    send(
        &app,
        json!([
            {"event": "a", "distinct_id": "u1", "timestamp": "2026-06-01T10:00:01Z"},
            {"event": "b", "distinct_id": "u1", "timestamp": "2026-06-01T10:00:02Z"},
            {"event": "a", "distinct_id": "u2", "timestamp": "2026-06-01T10:00:03Z", "uuid": uuid},
        ]),
    )
    .await;
    for (query, expected) in [
        ("?event=a", vec!["a", "a"]),
        ("?distinct_id=u1", vec!["b", "a"]),
        ("?event=a&distinct_id=u1", vec!["a"]),
        ("?after=2026-06-01T10:00:01Z", vec!["a", "b"]),
        ("?before=2026-06-01T10:00:03Z", vec!["b", "a"]),
        ("?after=2026-06-01T10:00:01Z&before=2026-06-01T10:00:03Z", vec!["b"]),
        ("?after=2026-06-01T12:00:01%2B02:00", vec!["a", "b"]),
        ("?after=2026-06-01T12:00:01+02:00", vec!["a", "b"]),
        ("?after=2026-06-01T10:00:01", vec!["a", "b"]),
        ("?after=2026-06-01%2010:00:01.5", vec!["a", "b"]),
        ("?after=2026-06-01+12:00:01+02:00", vec!["a", "b"]),
        ("?after=2026-06-01T10:00", vec!["a", "b", "a"]),
        ("?before=2026-06-01T10:01&after=2026-06-01T09:59Z", vec!["a", "b", "a"]),
        (&format!("?uuid={uuid}"), vec!["a"]),
        ("?event=none", vec![]),
        ("?limit=0", vec!["a", "b", "a"]),
    ] {
        assert_eq!(names(&list(&app, &caller, query).await), expected, "{query}");
    }
    for (query, attr) in [
        ("?after=x", "after"),
        ("?after=2026-06-01", "after"),
        ("?before=x", "before"),
        ("?before=2026-06-01T25:00", "before"),
        ("?uuid=x", "uuid"),
    ] {
        let answer = caller.get(&format!("/api/projects/{}/events/{query}", app.project())).await;
        assert_eq!((answer.status, &answer.json()["attr"]), (400, &json!(attr)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_uuid_is_stored_once() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["query:read"]).await;
    let uuid = "5d0a0f4e-6f0c-4d3e-9a53-0c5f1b0a7e13";
    for second in [1, 2] {
        let time = format!("2026-06-01T10:00:0{second}Z");
        send(&app, json!([{"event": "a", "distinct_id": "u", "uuid": uuid, "timestamp": time}]))
            .await;
    }
    assert_eq!(names(&list(&app, &caller, "").await), ["a"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn drops_are_counted_and_sampled() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["project:read"]).await;
    send(
        &app,
        json!([
            {"event": "kept", "distinct_id": "u"},
            {"event": "nobody"},
            {"distinct_id": "u"},
            {"event": "nobody either", "distinct_id": " "},
        ]),
    )
    .await;
    let path = format!("/api/projects/{}/ingestion_warnings/", app.project());
    let body = caller.get(&path).await.json();
    let found = body["results"].as_array().unwrap();
    let of = |code: &str| found.iter().find(|entry| entry["code"] == code).unwrap().clone();
    assert_eq!(of("missing_distinct_id")["count"], 2);
    assert_eq!(of("missing_event_name")["count"], 1);
    assert_eq!(of("missing_event_name")["outcome"], "dropped");
    let sample = &of("missing_distinct_id")["samples"][0];
    assert!(sample["payload"].as_str().unwrap().contains("nobody"), "{sample}");
}
