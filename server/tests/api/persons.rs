//! Reading persons and groups.

use std::time::Duration;

use serde_json::{Value, json};
use weir_server::limits::Limits;
use weir_testkit::{Caller, TestApp};

use crate::stored::{get, send};
use crate::web::{page, session};

fn field<'a>(list: &'a Value, name: &str) -> Vec<&'a Value> {
    list["results"].as_array().unwrap().iter().map(|result| &result[name]).collect()
}

/// All results of a list, read by following its links.
async fn walk(app: &TestApp, caller: &Caller, path: &str) -> Vec<Value> {
    let base = format!("http://{}/api/projects/{}/", app.address(), app.project());
    let mut path = path.to_owned();
    let mut all = Vec::new();
    loop {
        let page = get(app, caller, &path).await;
        all.extend(page["results"].as_array().unwrap().iter().cloned());
        match page["next"].as_str() {
            Some(next) => path = next.strip_prefix(&base).unwrap().to_owned(),
            None => return all,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_is_found_by_every_distinct_id_and_its_uuid() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["person:read", "event:read"]).await;
    send(
        &app,
        json!([
            {"event": "$pageview", "distinct_id": "anon-1"},
            {"event": "$identify", "distinct_id": "ada", "timestamp": "2026-06-01T10:00:00Z",
             "properties": {"$anon_distinct_id": "anon-1",
                            "$set": {"email": "ada@example.com", "big": 12345678901234567890_u64}}},
            {"event": "paid", "distinct_id": "eve"},
        ]),
    )
    .await;
    let found = get(&app, &caller, "persons/?distinct_id=anon-1").await;
    let ada = &found["results"][0];
    assert_eq!(found["results"].as_array().unwrap().len(), 1);
    assert_eq!(found["next"], Value::Null);
    assert_eq!(ada["id"], ada["uuid"]);
    assert_eq!(ada["name"], "ada@example.com");
    assert_eq!(ada["is_identified"], true);
    assert_eq!(ada["created_at"], "2026-06-01T10:00:00Z");
    assert_eq!(ada["properties"]["email"], "ada@example.com");
    assert_eq!(ada["properties"]["big"], 12345678901234567890_u64);
    let mut ids: Vec<&str> =
        ada["distinct_ids"].as_array().unwrap().iter().map(|id| id.as_str().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["ada", "anon-1"]);

    for distinct_id in ["ada", "anon-1"] {
        let events = get(&app, &caller, &format!("events/?distinct_id={distinct_id}")).await;
        // The person of an event has no counts.
        let mut person = ada.clone();
        for name in ["event_count", "is_event_count_exact", "first_seen", "last_seen"] {
            assert!(person.as_object_mut().unwrap().remove(name).is_some(), "{name}");
        }
        assert_eq!(events["results"][0]["person"], person, "{distinct_id}");
    }
    let id = ada["id"].as_str().unwrap();
    assert_eq!(get(&app, &caller, &format!("persons/{id}/")).await, *ada);
    for missing in ["00000000-0000-0000-0000-000000000000", "x"] {
        let path = format!("/api/projects/{}/persons/{missing}/", app.project());
        let answer = caller.get(&path).await;
        answer.assert_error(404, "invalid_request", "not_found", "Not found.");
    }
    assert!(field(&get(&app, &caller, "persons/?distinct_id=nobody").await, "id").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn persons_come_in_pages_and_are_searched() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["person:read"]).await;
    let events: Vec<Value> = (0..25)
        .map(|n| {
            json!({"event": "$set", "distinct_id": format!("user-{n:02}"),
                   "properties": {"$set": {"name": format!("Person {n:02}"), "Seats": n,
                                           "plan": if n == 3 { "Pro" } else { "free" }}}})
        })
        .collect();
    send(&app, json!(events)).await;

    for path in
        ["persons/?limit=4", "persons/?limit=25", "persons/", "persons/?limit=7&search=user"]
    {
        let all = walk(&app, &caller, path).await;
        let mut names: Vec<&str> = all.iter().map(|p| p["name"].as_str().unwrap()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!((all.len(), names.len()), (25, 25), "{path}");
    }
    let behind = walk(&app, &caller, "persons/?limit=4&offset=20").await;
    assert_eq!(behind.len(), 5);
    for (search, names) in [
        ("user-07", vec!["Person 07"]),
        ("PERSON%2011", vec!["Person 11"]),
        ("nobody", vec![]),
        ("plan%20%3D%20pro", vec!["Person 03"]),
        ("seats=12", vec!["Person 12"]),
        ("seats=1", vec!["Person 01"]),
        ("seats=99", vec![]),
        ("none=", vec![]),
        ("user-1", (10..20).map(|_| "").collect()),
    ] {
        let found = get(&app, &caller, &format!("persons/?search={search}")).await;
        assert_eq!(field(&found, "name").len(), names.len(), "{search}");
        if let [name] = names[..] {
            assert_eq!(field(&found, "name"), [name]);
        }
    }
    let wrong = format!("/api/projects/{}/persons/?after=x", app.project());
    caller.get(&wrong).await.assert_field_error(
        400,
        "validation_error",
        "invalid_input",
        "Must be a valid UUID.",
        Some("after"),
    );
}

/// A time limit that every step exceeds: it reads a few records and stops.
fn hurry(limits: &mut Limits) {
    limits.scan_time = Duration::ZERO;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_without_time_ends_in_a_link_and_an_offset_in_an_error() {
    let app = TestApp::start(|_| {}, hurry).await.set_up().await;
    let caller = app.owner().key(&["person:read", "group:read", "event:read"]).await;
    let mut events: Vec<Value> = (0..200)
        .map(|n| {
            json!({"event": "$set", "distinct_id": format!("user-{n}"),
                   "properties": {"$set": {"plan": if n == 137 { "pro" } else { "free" }}}})
        })
        .collect();
    events.extend((0..200).map(|n| {
        json!({"event": "$groupidentify", "distinct_id": "user-1", "properties": {
            "$group_type": "company", "$group_key": format!("key-{n}"),
            "$group_set": {"plan": if n == 137 { "pro" } else { "free" }}}})
    }));
    send(&app, json!(events)).await;

    for (list, search) in [("persons", "plan%3Dpro"), ("groups", "pro")] {
        let rare = format!("{list}/?limit=10&search={search}");
        let first = get(&app, &caller, &rare).await;
        assert!(first["next"].is_string(), "{list}: {first}");
        assert_eq!(walk(&app, &caller, &rare).await.len(), 1, "{list}");
        let none = format!("{list}/?limit=10&search=nobody");
        assert_eq!(walk(&app, &caller, &none).await, Vec::<Value>::new(), "{list}");
        // Without a search every step finds results, so pages are full.
        let page = get(&app, &caller, &format!("{list}/?limit=60")).await;
        assert_eq!(page["results"].as_array().unwrap().len(), 60, "{list}");
        assert_eq!(walk(&app, &caller, &format!("{list}/?limit=60")).await.len(), 200, "{list}");
        // A caller that counts offsets would take a short page for the last one.
        for query in ["limit=60&offset=150", &format!("search={search}&offset=0")] {
            let path = format!("/api/projects/{}/{list}/?{query}", app.project());
            caller.get(&path).await.assert_field_error(
                400,
                "validation_error",
                "invalid_input",
                "This page takes too long to find. Omit `offset` and follow the link in \
                 `next` of each page.",
                Some("offset"),
            );
        }
    }

    let deep = format!("/api/projects/{}/events/?offset=150", app.project());
    caller.get(&deep).await.assert_field_error(
        400,
        "validation_error",
        "invalid_input",
        "This page takes too long to find. Omit `offset` and follow the link in `next` of \
         each page, or ask for a shorter time with `after` and `before`.",
        Some("offset"),
    );
    for (filter, count) in [("", 400), ("&event=$set", 200), ("&event=none", 0)] {
        let all = walk(&app, &caller, &format!("events/?limit=60{filter}")).await;
        assert_eq!(all.len(), count, "{filter}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_with_large_persons_are_sent_whole() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["person:read", "event:read"]).await;
    let big = "x".repeat(500_000);
    for id in 0..40 {
        let set = json!({"$set": {"big": big}});
        let event = json!({"event": "$set", "distinct_id": format!("p{id}"), "properties": set});
        send(&app, json!([event])).await;
    }
    // 20 MB: more than is read at a time.
    let page = get(&app, &caller, "persons/?limit=100").await;
    let (shown, next) = (page["results"].as_array().unwrap().len(), &page["next"]);
    assert_eq!((shown, next), (40, &Value::Null));
    assert_eq!(walk(&app, &caller, "persons/?limit=36").await.len(), 40);

    // The person is in each of its events.
    let event = json!({"event": "click", "distinct_id": "p1"});
    send(&app, Value::Array(vec![event; 60])).await;
    let page = get(&app, &caller, "events/?event=click&limit=100").await;
    let clicks = page["results"].as_array().unwrap();
    assert_eq!((clicks.len(), &page["next"]), (60, &Value::Null));
    assert!(clicks.iter().all(|click| click["person"]["properties"]["big"] == *big));
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_and_their_types_are_read_back() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["group:read", "project:read"]).await;
    let group = |kind: &str, key: &str, set: Value| {
        json!({"event": "$groupidentify", "distinct_id": "s", "timestamp": "2026-06-01T10:00:00Z",
               "properties": {"$group_type": kind, "$group_key": key, "$group_set": set}})
    };
    let mut events = vec![group("company", "acme", json!({"name": "Acme", "size": 10}))];
    events.extend((0..9).map(|n| group("team", &format!("t{n}"), json!({}))));
    events.push(json!({"event": "paid", "distinct_id": "u",
                       "properties": {"$groups": {"company": "nobody made it"}}}));
    events.push(group("company", "bad", json!("text")));
    events.push(group("company", &"k".repeat(401), json!({})));
    send(&app, json!(events)).await;

    let types = get(&app, &caller, "groups_types/").await;
    assert_eq!(
        types,
        json!([
            {"group_type": "company", "group_type_index": 0},
            {"group_type": "team", "group_type_index": 1},
        ])
    );
    let companies = get(&app, &caller, "groups/?group_type=company").await;
    assert_eq!(
        companies["results"],
        json!([{
            "group_type": "company", "group_type_index": 0, "group_key": "acme",
            "group_properties": {"name": "Acme", "size": 10},
            "created_at": "2026-06-01T10:00:00Z",
        }])
    );
    for path in ["groups/", "groups/?limit=3"] {
        assert_eq!(walk(&app, &caller, path).await.len(), 10, "{path}");
    }
    let found = get(&app, &caller, "groups/?search=ACME").await;
    assert_eq!(field(&found, "group_key"), ["acme"]);
    assert!(field(&get(&app, &caller, "groups/?group_type=none").await, "group_key").is_empty());

    let warnings = get(&app, &caller, "ingestion_warnings/").await;
    assert_eq!(field(&warnings, "code"), ["group_key_too_long", "invalid_group_set"]);
}

/// The three silent cases (ING-30), and the samples of altered events.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_skipped_or_altered_is_shown_with_a_sample() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["project:read", "event:read"]).await;
    send(
        &app,
        json!([
            {"distinct_id": "no name"},
            {"event": "no id"},
            {"event": "blank id", "distinct_id": " "},
            {"event": "$identify", "distinct_id": "ada",
             "properties": {"$anon_distinct_id": "undefined"}},
        ]),
    )
    .await;
    let events = get(&app, &caller, "events/").await;
    assert_eq!(field(&events, "event"), ["$identify"]);
    let warnings = get(&app, &caller, "ingestion_warnings/").await;
    let shown: Vec<(&str, &str, u64, usize)> = warnings["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|warning| {
            (
                warning["code"].as_str().unwrap(),
                warning["outcome"].as_str().unwrap(),
                warning["count"].as_u64().unwrap(),
                warning["samples"].as_array().unwrap().len(),
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            ("illegal_merge_id", "accepted", 1, 1),
            ("missing_distinct_id", "dropped", 2, 1),
            ("missing_event_name", "dropped", 1, 1),
        ]
    );
    assert_eq!(warnings["results"][0]["samples"][0]["distinct_id"], "ada");
}

/// The text of a page below the project.
async fn shown(app: &TestApp, cookie: &str, path: &str) -> String {
    let answer = page(app, &format!("/projects/{}/{path}", app.project()), cookie).await;
    assert_eq!(answer.status, 200, "{path}");
    answer.text()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_with_unread_distinct_ids_has_the_counts_of_all() {
    let app = TestApp::with_owner().await;
    let cookie = session(&app).await;
    let caller = app.owner().key(&["*"]).await;
    let identified = |anonymous: String| {
        json!({"event": "$identify", "distinct_id": "ada", "timestamp": "2026-06-01T10:00:00Z",
               "properties": {"$anon_distinct_id": anonymous}})
    };
    let ids = |numbers: std::ops::Range<usize>| -> Vec<Value> {
        numbers.map(|n| identified(format!("anon-{n}"))).collect()
    };
    send(&app, json!(ids(0..99))).await;
    let person = get(&app, &caller, "persons/?distinct_id=ada").await["results"][0].clone();
    assert_eq!(person["distinct_ids"].as_array().unwrap().len(), 100);
    let path = format!("persons/{}", person["id"].as_str().unwrap());
    let html = shown(&app, &cookie, &path).await;
    assert!(html.contains("Last seen</dt>"), "{html}");
    assert!(html.contains("2026-06-01 10:00 UTC") && !html.contains("on this page"), "{html}");

    // Events of some ids are not read, and one of them has the newest event.
    send(&app, json!(ids(99..150))).await;
    let last = json!({"event": "late", "distinct_id": "anon-0",
                      "timestamp": "2026-06-01T11:00:00Z"});
    send(&app, json!([last])).await;
    let html = shown(&app, &cookie, &path).await;
    for words in [
        "151</dd>",
        "2026-06-01 11:00 UTC",
        "51 more distinct ids are not shown. These 100 are the first one and those that were \
         merged last.",
        "Of the distinct ids on this page only. The others can have newer events.",
        "events of the distinct ids on this page.",
    ] {
        assert!(html.contains(words), "{words}: {html}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_shows_its_members_however_many_events_there_are() {
    let app = TestApp::with_owner().await;
    let cookie = session(&app).await;
    let of_acme = |person: usize| {
        json!({"event": "used", "distinct_id": format!("user-{person}"),
               "properties": {"$groups": {"company": "acme"}}})
    };
    send(&app, (0..2).map(of_acme).collect()).await;
    let html = shown(&app, &cookie, "groups/company/acme").await;
    assert!(html.contains("2 persons with events of the group."), "{html}");
    assert!(html.contains("Persons seen with the group"), "{html}");

    send(&app, (2..60).map(of_acme).collect()).await;
    let html = shown(&app, &cookie, "groups/company/acme").await;
    for words in [
        "60 persons with events of the group.",
        "1 to 50 of 60 members",
        "The last ones that arrived. The group has older ones, which are not shown.",
    ] {
        assert!(html.contains(words), "{words}: {html}");
    }

    // More events than are searched.
    let others: Vec<Value> =
        (0..2_000).map(|_| json!({"event": "other", "distinct_id": "eve"})).collect();
    send(&app, json!(others)).await;
    let html = shown(&app, &cookie, "groups/company/acme").await;
    for words in [
        "60 persons with events of the group.",
        "The last ones that arrived. The group may have older ones, which are not searched.",
        "None of the newest events of the project names the group.",
    ] {
        assert!(html.contains(words), "{words}: {html}");
    }
    assert!(html.contains("Persons seen with the group") && !html.contains("2,000"), "{html}");
    let html = shown(&app, &cookie, "groups/company/acme?offset=50").await;
    assert!(html.contains("51 to 60 of 60 members"), "{html}");
}
