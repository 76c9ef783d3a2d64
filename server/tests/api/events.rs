//! Reading events: filters, pages, dropped events.

use serde_json::{Value, json};
use weir_model::Timestamp;
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
    let text = answer.text();
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
    // Three events have the same time. Their uuids decide the order.
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

/// Some clients know only `limit` and `offset`. They stop at the first page that is not
/// full.
#[tokio::test(flavor = "multi_thread")]
async fn pages_by_offset_are_full_at_any_depth() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["query:read"]).await;
    let event = |n: usize| {
        let time = format!("2026-06-{:02}T10:00:{:02}Z", n % 20 + 1, n % 60);
        json!({"event": format!("e{}", n % 3), "distinct_id": format!("u{}", n % 40), "timestamp": time,
               "properties": {"n": n}})
    };
    for part in 0..6 {
        let batch: Vec<Value> = (part * 500..part * 500 + 500).map(event).collect();
        send(&app, json!(batch)).await;
    }
    let uuids = |list: &Value| -> Vec<String> {
        let results = list["results"].as_array().unwrap();
        results.iter().map(|event| event["uuid"].as_str().unwrap().to_owned()).collect()
    };
    for (filter, count) in [("", 3_000), ("&event=e1", 1_000), ("&distinct_id=u7", 75)] {
        let whole = list(&app, &caller, &format!("?limit=10000{filter}")).await;
        assert_eq!((uuids(&whole).len(), &whole["next"]), (count, &Value::Null), "{filter}");
        for limit in [40, 1_400] {
            let mut all = Vec::new();
            loop {
                let offset = all.len();
                let page =
                    list(&app, &caller, &format!("?limit={limit}&offset={offset}{filter}")).await;
                all.extend(uuids(&page));
                if all.len() - offset < limit {
                    break;
                }
            }
            assert_eq!(all, uuids(&whole), "{filter} {limit}");
        }
    }
    // A link continues after the page, wherever the page begins.
    let page = list(&app, &caller, "?limit=10&offset=5").await;
    let next = page["next"].as_str().unwrap();
    let next = caller.get(next.strip_prefix(&format!("http://{}", app.address())).unwrap()).await;
    let expected = uuids(&list(&app, &caller, "?limit=20").await);
    assert_eq!([uuids(&page), uuids(&next.json())[..5].to_vec()].concat(), expected[5..]);
    assert_eq!(names(&list(&app, &caller, "?offset=3000").await), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_an_unsorted_import_are_full_by_offsets_and_by_links() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["query:read"]).await;
    // In no order, over three years, some at the same time.
    let time = |n: usize| {
        let second = n as i64 / 2 * 1_103_515_245 % 94_608_000;
        Timestamp::from_micros(1_700_000_000_000_000 + second * 1_000_000).to_string()
    };
    let event = |n: usize| {
        json!({"event": format!("e{}", n % 3), "distinct_id": format!("u{}", n % 40),
               "timestamp": time(n), "properties": {"n": n}})
    };
    let mut times: Vec<String> = (0..900).map(time).collect();
    times.sort_unstable();
    let (after, before) = (&times[210], &times[720]);
    let between = times.iter().filter(|time| *time > after && *time < before).count();
    for part in 0..6 {
        let batch: Vec<Value> = (part * 150..part * 150 + 150).map(event).collect();
        send(&app, json!(batch)).await;
    }
    let uuids = |list: &Value| -> Vec<String> {
        let results = list["results"].as_array().unwrap();
        results.iter().map(|event| event["uuid"].as_str().unwrap().to_owned()).collect()
    };
    let within = format!("&after={after}&before={before}");
    let filters =
        [("", 900), ("&event=e1", 300), ("&distinct_id=u7", 23), (within.as_str(), between)];
    for (filter, count) in filters {
        let whole = list(&app, &caller, &format!("?limit=10000{filter}")).await;
        assert_eq!((uuids(&whole).len(), &whole["next"]), (count, &Value::Null), "{filter}");
        for limit in [40, 400] {
            let mut all = Vec::new();
            loop {
                let offset = all.len();
                let page =
                    list(&app, &caller, &format!("?limit={limit}&offset={offset}{filter}")).await;
                all.extend(uuids(&page));
                if all.len() - offset < limit {
                    break;
                }
            }
            assert_eq!(all, uuids(&whole), "{filter} {limit}");
        }
        let (mut all, mut next) = (Vec::new(), Some(format!("?limit=70{filter}")));
        let base = format!("http://{}/api/projects/{}/events/", app.address(), app.project());
        while let Some(query) = next {
            let page = list(&app, &caller, &query).await;
            all.extend(uuids(&page));
            next = page["next"].as_str().map(|link| link.strip_prefix(&base).unwrap().to_owned());
        }
        assert_eq!(all, uuids(&whole), "{filter} by links");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_large_events_are_sent_whole() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["query:read"]).await;
    for part in 0..3 {
        let large = "x".repeat(900_000);
        let event = |n: usize| {
            json!({"event": format!("{}", part * 10 + n), "distinct_id": "u",
                   "properties": {"large": &large}})
        };
        send(&app, json!((0..10).map(event).collect::<Vec<Value>>())).await;
    }
    // 27 MB: more than may be in memory at a time.
    let page = list(&app, &caller, "?limit=30").await;
    let found: std::collections::HashSet<String> = names(&page).into_iter().collect();
    assert_eq!((found.len(), &page["next"]), (30, &Value::Null));
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

#[tokio::test(flavor = "multi_thread")]
async fn every_dropped_event_of_a_large_request_is_listed() {
    const SENT: usize = 12_000;
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["project:read"]).await;
    let lost =
        |n: usize| json!({"event": format!("lost {n}"), "properties": {"a": "a".repeat(300)}});
    send(&app, Value::Array((0..SENT).map(lost).collect())).await;
    let mut lengths = Vec::new();
    let base = format!("http://{}/api/projects/{}/", app.address(), app.project());
    let mut next = Some("ingestion_warnings/events/?limit=1000".to_owned());
    while let Some(link) = next {
        let page = get(&app, &caller, &link).await;
        let payloads = page["results"].as_array().unwrap().iter();
        lengths.extend(payloads.map(|event| event["payload"].as_str().unwrap().len()));
        next = page["next"].as_str().map(|link| link.strip_prefix(&base).unwrap().to_owned());
    }
    assert_eq!(lengths.len(), SENT);
    // Of each of the three parts of the request, the first 1,000 have a long sample.
    let short = lengths.iter().filter(|length| **length == 256).count();
    let long = lengths.iter().filter(|length| **length > 300).count();
    assert_eq!((short, long), (SENT - 3_000, 3_000));
}

#[tokio::test(flavor = "multi_thread")]
async fn dropped_and_altered_events_are_all_listed() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["project:read"]).await;
    let mut all = Vec::new();
    for part in 0..3 {
        let dropped = |n: usize| json!({"event": format!("lost {n}"), "properties": {"n": n}});
        let mut batch: Vec<Value> = (part * 110..part * 110 + 110).map(dropped).collect();
        batch.push(json!({"event": "altered", "distinct_id": "u", "timestamp": "soon",
                          "properties": {"part": part}}));
        batch.push(json!({"event": "kept", "distinct_id": "u"}));
        send(&app, json!(batch)).await;
    }
    let path = "ingestion_warnings/events/";
    let base = format!("http://{}/api/projects/{}/", app.address(), app.project());
    let mut next = Some(format!("{path}?code=missing_distinct_id&limit=100"));
    while let Some(link) = next {
        let page = get(&app, &caller, &link).await;
        all.extend(page["results"].as_array().unwrap().clone());
        next = page["next"].as_str().map(|link| link.strip_prefix(&base).unwrap().to_owned());
    }
    let times: Vec<_> = all.iter().map(|event| event["received_at"].as_str().unwrap()).collect();
    assert!(times.is_sorted_by(|newer, older| newer >= older));
    let mut named: Vec<_> = all.iter().map(|event| event["event"].as_str().unwrap()).collect();
    named.sort_unstable();
    named.dedup();
    assert_eq!((all.len(), named.len()), (330, 330));
    assert_eq!(
        (&all[0]["outcome"], &all[0]["codes"]),
        (&json!("dropped"), &json!(["missing_distinct_id"]))
    );
    assert!(all.iter().any(|event| event["payload"].as_str().unwrap().contains("lost 7")));

    let altered = get(&app, &caller, &format!("{path}?code=invalid_timestamp")).await;
    let altered = altered["results"].as_array().unwrap();
    assert_eq!((altered.len(), &altered[0]["outcome"]), (3, &json!("accepted")));
    assert!(altered[0]["payload"].as_str().unwrap().contains(r#""part":2"#), "{}", altered[0]);
    let (first, last) = (times[329], times[0]);
    for (query, count) in [
        ("?limit=1000".to_owned(), 333),
        (format!("?limit=1000&code=missing_distinct_id&after={first}"), 220),
        (format!("?limit=1000&code=missing_distinct_id&before={last}"), 220),
        (format!("?limit=1000&code=missing_distinct_id&after={first}&before={last}"), 110),
        ("?limit=1000&offset=300".to_owned(), 33),
        ("?code=none".to_owned(), 0),
    ] {
        let found = get(&app, &caller, &format!("{path}{query}")).await;
        assert_eq!(found["results"].as_array().unwrap().len(), count, "{query}");
    }
    for attr in ["after", "before", "behind"] {
        let path = format!("/api/projects/{}/{path}?{attr}=x", app.project());
        let answer = caller.get(&path).await;
        assert_eq!((answer.status, &answer.json()["attr"]), (400, &json!(attr)));
    }
    let other = app.owner().key(&["event:read"]).await;
    let refused = other.get(&format!("/api/projects/{}/{path}", app.project())).await;
    assert_eq!(refused.status, 403);
}
