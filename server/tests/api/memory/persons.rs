//! Few bytes that make the service read many large persons and groups: while it applies,
//! delivers, lists and exports them, and while it starts again.

use std::collections::HashSet;

use rustix::process::Signal;
use weir_testkit::servers::{Asked, Said, StandIn};
use weir_testkit::until;

use super::*;
use crate::plugins::group_of;

/// Number of persons, and of groups, of half a megabyte each.
const FAT: usize = 250;
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
    let body = json!({"api_key": made["project_api_key"], "batch": events}).to_string();
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
    let answer = |seen: &mut HashSet<Bytes>, asked: &Asked| {
        seen.insert(Bytes::from(asked.body.clone()));
        Some(Said::empty(200))
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
    let (folder, serving, made) = serving().await;
    let key = made["personal_api_key"].as_str().unwrap();
    let project = format!("/api/projects/{}/", made["project_id"]);
    let text = json!({"text": "x".repeat(500_000)});
    for tens in 0..FAT / 10 {
        let events = (tens * 10..tens * 10 + 10).flat_map(|n| set(n, &text)).collect();
        send(&serving, &made, events).await;
    }
    let has = async |serving: &Serving, name: &str| {
        let reader = serving.caller.with_key(key);
        for (list, properties) in [
            (format!("persons/?distinct_id=fat-{}", FAT - 1), "properties"),
            (format!("groups/?search=fat-{}&limit=1", FAT - 1), "group_properties"),
        ] {
            let found = reader.get(&format!("{project}{list}")).await.json();
            if found["results"][0][properties][name].is_null() {
                return false;
            }
        }
        true
    };
    until(async || has(&serving, "text").await).await;
    let receiver = deliver(&serving, &made).await;

    let watch = Watch::on(&serving);
    let last = json!({"last": 1});
    send(&serving, &made, (0..FAT).flat_map(|n| set(n, &last)).collect()).await;
    until(async || delivered(&receiver) > 0 || has(&serving, "last").await).await;
    watch.survived("events of 250 large persons and groups", SMALL);
    // The next start applies the acknowledged events.
    serving.signal(Signal::KILL);
    assert_eq!(serving.ended().await, None);
    let serving = Serving::start_with(limited(folder.path())).await;
    let watch = Watch::on(&serving);
    until(async || has(&serving, "last").await).await;
    until(async || delivered(&receiver) == FAT).await;
    watch.survived("the same after a kill, with deliveries", SMALL);

    let watch = Watch::on(&serving);
    let reader = serving.caller.with_key(key);
    let list = format!("{project}persons/?limit=1000");
    let (first, second) = tokio::join!(reader.get(&list), reader.get(&list));
    assert_eq!((first.status, second.status), (200, 200));
    assert!(first.body.len() > FAT * 500_000 || first.json()["next"].is_string());
    watch.survived("two lists of large persons", SMALL);

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
        run["status"] == "Completed" && run["records_completed"] == FAT
    })
    .await;
    watch.survived("an export of large persons", SMALL);
}
