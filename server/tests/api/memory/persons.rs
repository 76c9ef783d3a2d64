//! Few bytes that make the service read many large persons and groups: while it applies,
//! delivers, lists and exports them, and while it starts again.

use std::collections::HashSet;

use rustix::process::Signal;
use weir_testkit::servers::{StandIn, StubAnswer, StubRequest};
use weir_testkit::until;

use super::*;
use crate::plugins::group_of;

/// Number of persons, and of groups, with one large property each.
const FAT: usize = 100;
const DAYS: [&str; 2] = ["2025-03-04", "2025-03-05"];
const POSTS: &str = "export function composeWebhook(event, { config }) {
    return event.event === '$set' ? { url: config.url, body: event.distinct_id } : null
}";

/// Events that set properties of a person and of a group.
fn set(n: usize, properties: &Value) -> [Value; 2] {
    let id = format!("fat-{n}");
    let group = json!({"$group_type": "company", "$group_key": id, "$group_set": properties});
    [
        json!({"event": "$set", "distinct_id": id, "timestamp": DAYS[0],
               "properties": {"$set": properties}}),
        json!({"event": "$groupidentify", "distinct_id": "ada", "properties": group}),
    ]
}

async fn send(serving: &Serving, made: &Value, events: Vec<Value>) {
    send_in(serving, made, events, false).await;
}

/// Sends events. Those of an import are all applied by one consumer.
async fn send_in(serving: &Serving, made: &Value, events: Vec<Value>, is_import: bool) {
    let body = json!({"api_key": made["project_api_key"], "batch": events,
                      "historical_migration": is_import});
    let body = body.to_string();
    let call = serving.caller.call(Method::POST, "/batch/").body(gzip(body.as_bytes()));
    let answer = call.header("content-encoding", "gzip").send().await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
}

fn made_by(answer: &weir_testkit::Answer) -> Value {
    assert!([200, 201].contains(&answer.status), "{:?}", answer.body);
    answer.json()["id"].clone()
}

/// Delivers events from now on, and returns the delivered persons.
async fn deliver(serving: &Serving, made: &Value) -> StandIn<HashSet<Bytes>> {
    let reader = serving.caller.with_key(made["personal_api_key"].as_str().unwrap());
    let answer = |seen: &mut HashSet<Bytes>, request: &StubRequest| {
        seen.insert(Bytes::from(request.body.clone()));
        Some(StubAnswer::empty(200))
    };
    let receiver = StandIn::start(HashSet::new(), answer).await;
    let manifest = json!({"name": "Post", "config": [{"key": "url", "type": "string"}]});
    let files = json!({"index.js": POSTS, "plugin.json": manifest.to_string()});
    let organization = made["organization_id"].as_str().unwrap();
    let group = format!("/api/organizations/{organization}/{}/", group_of(&files));
    let plugin = made_by(&reader.post(&group, &json!({"name": "Post"})).await);
    made_by(&reader.patch(&format!("{group}{plugin}/update_source/"), &files).await);
    let config = json!({"plugin": plugin, "order": 1, "enabled": true,
                        "config": {"url": receiver.url()}});
    let configs = format!("/api/projects/{}/pipeline_transformation_configs/", made["project_id"]);
    made_by(&reader.post(&configs, &config).await);
    until(async || {
        send(serving, made, vec![json!({"event": "$set", "distinct_id": "probe"})]).await;
        !receiver.lock().is_empty()
    })
    .await;
    receiver
}

fn delivered(receiver: &StandIn<HashSet<Bytes>>) -> usize {
    receiver.lock().iter().filter(|id| id.starts_with(b"fat-")).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn large_persons_and_groups_are_worked_on_in_a_gigabyte() {
    work_on("large", FAT, &[json!({"text": "x".repeat(500_000)})]).await;
}

/// Makes so many persons and groups of half a megabyte. Then reads and changes them in
/// every way.
async fn work_on(kind: &str, count: usize, parts: &[Value]) {
    let (folder, serving, made) = serving().await;
    let key = made["personal_api_key"].as_str().unwrap();
    let project = format!("/api/projects/{}/", made["project_id"]);
    // The person first, because a search reads all groups.
    let has_last = async |serving: &Serving| {
        let reader = serving.caller.with_key(key);
        for list in ["persons/?distinct_id", "groups/?limit=1&search"] {
            let found = reader.get(&format!("{project}{list}=fat-{}", count - 1)).await;
            if !String::from_utf8_lossy(&found.body).contains(r#""last":1"#) {
                return false;
            }
        }
        true
    };
    let watch = Watch::on(&serving);
    let numbers: Vec<usize> = (0..count).collect();
    let reader = serving.caller.with_key(key);
    for some in numbers.chunks(4) {
        let all = some.iter().flat_map(|n| parts.iter().flat_map(|part| set(*n, part)));
        let mut all: Vec<Value> = all.collect();
        let [first, .., last] = some else { unreachable!() };
        let (made_first, last) = (format!("made-{first}"), format!("fat-{last}"));
        // Applied after the events of the same distinct id.
        all.extend(["ada", &last].map(|id| json!({"event": made_first, "distinct_id": id})));
        send(&serving, &made, all).await;
        until(async || {
            let found = reader.get(&format!("{project}events/?event={made_first}")).await.json();
            found["results"].as_array().is_some_and(|events| events.len() == 2)
        })
        .await;
    }
    watch.survived(&format!("making {count} {kind} persons and groups"), SMALL);
    let receiver = deliver(&serving, &made).await;

    let watch = Watch::on(&serving);
    let last = json!({"last": 1});
    // An import applies them in this order: first all persons, then all groups.
    let both = numbers.iter().map(|n| <(Value, Value)>::from(set(*n, &last)));
    let (mut all, groups): (Vec<Value>, Vec<Value>) = both.unzip();
    all.extend(groups);
    for is_import in [true, false] {
        send_in(&serving, &made, all.clone(), is_import).await;
    }
    until(async || delivered(&receiver) > 0 || has_last(&serving).await).await;
    watch.survived(&format!("events of {count} {kind} persons and groups"), SMALL);
    // The next start applies the acknowledged events.
    serving.signal(Signal::KILL);
    assert_eq!(serving.ended().await, None);
    let serving = Serving::start_with(limited(folder.path())).await;
    let watch = Watch::on(&serving);
    until(async || has_last(&serving).await).await;
    until(async || delivered(&receiver) == count).await;
    watch.survived("the same after a kill, with deliveries", SMALL);

    let watch = Watch::on(&serving);
    let reader = serving.caller.with_key(key);
    let list = format!("{project}persons/?limit=1000");
    let (first, second) = tokio::join!(reader.get(&list), reader.get(&list));
    assert_eq!((first.status, second.status), (200, 200));
    assert!(first.body.len() > count * 500_000 || first.json()["next"].is_string());
    watch.survived(&format!("two lists of {kind} persons"), SMALL);

    let watch = Watch::on(&serving);
    let export = json!({"name": "People", "interval": "day", "paused": true, "model": "persons",
        "destination": {"type": "LocalDirectory", "config": {"path": "out"}}});
    let export = made_by(&reader.post(&format!("{project}batch_exports/"), &export).await);
    let path = format!("{project}batch_exports/{}/", export.as_str().unwrap());
    let bounds = json!({"start_at": DAYS[0], "end_at": DAYS[1]});
    let begun = reader.post(&format!("{path}backfill/"), &bounds).await;
    assert_eq!(begun.status, 200, "{:?}", begun.body);
    until(async || {
        let runs = reader.get(&format!("{path}runs/")).await.json();
        let run = &runs["results"][0];
        assert!(run["latest_error"].is_null(), "{run}");
        run["status"] == "Completed" && run["records_completed"] == count
    })
    .await;
    watch.survived(&format!("an export of {kind} persons"), SMALL);
}
