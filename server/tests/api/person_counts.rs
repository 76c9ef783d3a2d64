//! Event counts of persons and members of groups, compared with the list of events.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use weir_testkit::{Caller, TestApp};

use crate::stored::{get, send};
use crate::web::{page, session};

/// All results of a list, read by following its links.
async fn walk(app: &TestApp, caller: &Caller, path: &str) -> Vec<Value> {
    let base = format!("http://{}/api/projects/{}/", app.address(), app.project());
    let (mut path, mut all) = (path.to_owned(), Vec::new());
    loop {
        let page = get(app, caller, &path).await;
        all.extend(page["results"].as_array().unwrap().iter().cloned());
        match page["next"].as_str() {
            Some(next) => path = next.strip_prefix(&base).unwrap().to_owned(),
            None => return all,
        }
    }
}

/// Number of events, first and last time, by person.
type Sums = BTreeMap<String, (u64, String, String)>;

/// The sums of listed events, of a group or of all.
fn of_events(events: &[Value], group: Option<&str>) -> Sums {
    let mut sums = Sums::new();
    for event in events {
        let of_group = &event["properties"]["$group_0"];
        if group.is_some_and(|group| of_group != group) || event["person"].is_null() {
            continue;
        }
        let at = event["timestamp"].as_str().unwrap().to_owned();
        let id = event["person"]["id"].as_str().unwrap().to_owned();
        let sum = sums.entry(id).or_insert((0, at.clone(), at.clone()));
        *sum = (sum.0 + 1, sum.1.clone().min(at.clone()), sum.2.clone().max(at));
    }
    sums
}

/// The sums that a list of persons or members shows.
fn of_list(list: &[Value]) -> Sums {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let sum = |row: &Value| {
        assert_eq!(row["is_event_count_exact"], true);
        let times = (text(&row["first_seen"]), text(&row["last_seen"]));
        (text(&row["id"]), (row["event_count"].as_u64().unwrap(), times.0, times.1))
    };
    list.iter().map(sum).collect()
}

/// Events of some persons with merges and groups, some of them sent twice.
async fn fill(app: &TestApp) {
    for round in 0..6 {
        let event = |n: usize| {
            let id = format!("user-{}", n * 7 % 13);
            let minute = n * 11 % 60;
            let mut event = json!({
                "event": "used", "distinct_id": id,
                "uuid": format!("018f0000-0000-7000-8000-{:012}", round * 1_000 + n),
                "timestamp": format!("2026-06-0{}T10:{minute:02}:00Z", round + 1),
                "properties": {"n": n},
            });
            match n % 3 {
                0 => event["properties"]["$groups"] = json!({"company": "acme"}),
                1 => event["properties"]["$groups"] = json!({"company": "umbrella"}),
                _ => {}
            }
            if n == 5 {
                event["event"] = json!("$identify");
                event["properties"]["$anon_distinct_id"] = json!(format!("user-{}", round + 1));
            }
            event
        };
        let events: Vec<Value> = (0..40).map(event).collect();
        send(app, json!(events)).await;
        send(app, json!(events[..7])).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn persons_have_the_counts_of_their_events() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["person:read", "event:read"]).await;
    fill(&app).await;
    let events = walk(&app, &caller, "events/?limit=1000").await;
    assert_eq!(events.len(), 240);
    let persons = walk(&app, &caller, "persons/?limit=3").await;
    assert_eq!(of_list(&persons), of_events(&events, None));
    assert!(persons.len() < 13, "some were merged");
    for person in &persons {
        let id = person["id"].as_str().unwrap();
        assert_eq!(get(&app, &caller, &format!("persons/{id}/")).await, *person);
    }
    for group in ["acme", "umbrella"] {
        let path = format!("groups/members/?group_type_index=0&group_key={group}&limit=4");
        let first = get(&app, &caller, &path).await;
        let members = walk(&app, &caller, &path).await;
        assert_eq!(
            (&first["count"], &first["is_count_exact"]),
            (&json!(members.len()), &json!(true))
        );
        assert_eq!(of_list(&members), of_events(&events, Some(group)));
        let counts = members.iter().map(|member| member["event_count"].as_u64().unwrap());
        assert!(counts.is_sorted_by(|one, next| one >= next));
    }
    let none = get(&app, &caller, "groups/members/?group_type_index=4&group_key=acme").await;
    assert_eq!((&none["count"], &none["results"]), (&json!(0), &json!([])));
}

#[tokio::test(flavor = "multi_thread")]
async fn persons_are_listed_in_every_order() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["person:read"]).await;
    fill(&app).await;
    let all = walk(&app, &caller, "persons/").await;
    for name in ["event_count", "first_seen", "last_seen"] {
        let value = |person: &Value| match &person[name] {
            Value::Number(number) => format!("{:0>9}", number.as_u64().unwrap()),
            other => other.as_str().unwrap().to_owned(),
        };
        for (order, is_descending) in [(format!("-{name}"), true), (name.to_owned(), false)] {
            let found = walk(&app, &caller, &format!("persons/?limit=4&order={order}")).await;
            let values: Vec<String> = found.iter().map(value).collect();
            assert!(
                values.is_sorted_by(|one, next| match is_descending {
                    true => one >= next,
                    false => one <= next,
                }),
                "{order}: {values:?}"
            );
            assert_eq!(of_list(&found), of_list(&all), "{order}");
        }
    }
    let page = get(&app, &caller, "persons/").await;
    assert!(page["ordered_at"].is_null() && page["is_cut"].is_null(), "{page}");
    let page = get(&app, &caller, "persons/?order=-last_seen").await;
    assert!(page["ordered_at"].is_string() && page["is_cut"] == false, "{page}");
    let project = app.project();
    for query in ["order=name", "order=-event_count&search=a", "order=-event_count&distinct_id=a"] {
        let answer = caller.get(&format!("/api/projects/{project}/persons/?{query}")).await;
        assert_eq!((answer.status, &answer.json()["attr"]), (400, &json!("order")), "{query}");
    }
    let members = format!("/api/projects/{project}/groups/members/");
    for (query, attr) in [
        ("", "group_type_index"),
        ("?group_type_index=5&group_key=a", "group_type_index"),
        ("?group_type_index=0", "group_key"),
    ] {
        let answer = caller.get(&format!("{members}{query}")).await;
        assert_eq!((answer.status, &answer.json()["attr"]), (400, &json!(attr)), "{query}");
    }
    let other = app.owner().key(&["group:read"]).await;
    assert_eq!(other.get(&format!("{members}?group_type_index=0&group_key=a")).await.status, 403);
}

/// An order is kept for some seconds. Persons can be merged meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn a_person_that_was_merged_after_the_order_was_made_is_not_listed() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["person:read"]).await;
    fill(&app).await;
    let before = walk(&app, &caller, "persons/?order=-event_count").await;
    let [into, from] = [&before[0], &before[1]].map(|person| person["distinct_ids"][0].clone());
    let merge = json!({
        "event": "$merge_dangerously", "distinct_id": into, "properties": {"alias": from},
    });
    send(&app, json!([merge])).await;
    let path = format!("persons/?distinct_id={}", from.as_str().unwrap());
    let merged = get(&app, &caller, &path).await;
    let into = &before[0]["id"];
    assert_eq!(&merged["results"][0]["id"], into);
    let after = walk(&app, &caller, "persons/?order=-event_count").await;
    assert_eq!(after.len(), before.len() - 1);
    assert_eq!(after.iter().filter(|person| person["id"] == *into).count(), 1);
}

/// The links work without scripts, and say the present order.
#[tokio::test(flavor = "multi_thread")]
async fn the_headings_of_the_list_change_its_order() {
    let app = TestApp::with_owner().await;
    let cookie = session(&app).await;
    let shown = async |query: &str| {
        let answer =
            page(&app, &format!("/projects/{}/persons{query}", app.project()), &cookie).await;
        assert_eq!(answer.status, 200);
        answer.text()
    };
    assert!(shown("").await.contains("No person yet"));
    assert!(shown("?order=last_seen").await.contains("No person with events"));
    fill(&app).await;
    let html = shown("").await;
    assert!(html.contains("order=-event_count") && !html.contains("aria-sort"), "{html}");
    let html = shown("?order=-event_count").await;
    assert!(html.contains(r#"aria-sort="descending""#), "{html}");
    assert!(html.contains("order=event_count") && html.contains("order=-last_seen"), "{html}");
    let html = shown("?order=first_seen").await;
    assert!(html.contains(r#"aria-sort="ascending""#), "{html}");
    let html = shown("?order=-event_count&q=user-3").await;
    assert!(!html.contains("aria-sort"), "a search has no order: {html}");
}
