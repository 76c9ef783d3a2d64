//! Destinations that are plugins: `onEvent` with `fetch`, `composeWebhook`.

use weir_store::events::{EventBounds, heads};
use weir_testkit::servers::{StandIn, StubAnswer, StubRequest};

use super::*;
use crate::layers::{assert_all_layers, in_all_layers, large_requests, on_disk};

/// A receiver of requests that can be down.
#[derive(Default)]
struct Inbox {
    is_down: bool,
    refused: usize,
    taken: Vec<StubRequest>,
}

type Receiver = StandIn<Inbox>;

async fn receiver() -> Receiver {
    let answer = |inbox: &mut Inbox, request: &StubRequest| {
        if inbox.is_down {
            inbox.refused += 1;
            return Some(StubAnswer::empty(503));
        }
        inbox.taken.push(request.clone());
        Some(StubAnswer::json(200, &json!({"ok": true})))
    };
    StandIn::start(Inbox::default(), answer).await
}

/// The names of the events that it accepted.
fn names(receiver: &Receiver) -> Vec<String> {
    let inbox = receiver.lock();
    let name = |request: &StubRequest| request.json()["event"].as_str().unwrap().to_owned();
    inbox.taken.iter().map(name).collect()
}

fn settings() -> Value {
    json!([{"key": "url", "type": "string", "required": true}])
}

/// A destination whose settings contain the address of the receiver.
async fn destination(
    instance: &Instance,
    project: &Project,
    source: &str,
    receiver: &Receiver,
) -> Installed {
    let manifest = json!({"name": "Post", "config": settings()});
    let files = json!({"index.js": source, "plugin.json": manifest.to_string()});
    let config = json!({"url": format!("{}/hook", receiver.url())});
    instance.install_files(project, 1, &files, &config).await
}

const POSTS: &str = "import fetch from 'node-fetch'
export async function onEvent(event, { config }) {
    const answer = await fetch(config.url, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', 'X-From': 'weir' },
        body: JSON.stringify({
            event: event.event, person: event.distinct_id, properties: event.properties,
        }),
    })
    if (!answer.ok) { throw new RetryError('answered with ' + answer.status) }
    const said = await answer.json()
    if (!said.ok) { throw new Error('not ok') }
}";

const UUIDS: &str = "import fetch from 'node-fetch'
export async function onEvent(event, { config }) {
    const body = JSON.stringify({ event: event.event, uuid: event.uuid })
    const answer = await fetch(config.url, { method: 'POST', body })
    if (!answer.ok) { throw new RetryError('answered with ' + answer.status) }
}";

#[tokio::test(flavor = "multi_thread")]
async fn events_are_posted_by_the_plugin() {
    let (instance, receiver) = (Instance::start().await, receiver().await);
    let project = instance.project();
    // Earlier events are not delivered.
    instance.send(&project, &[event("before", json!({}))]).await;
    instance.stored(&project).await;
    let installed = destination(&instance, &project, POSTS, &receiver).await;
    until(async || {
        instance.send(&project, &[event("begin", json!({}))]).await;
        names(&receiver).contains(&"begin".to_owned()).then_some(())
    })
    .await;
    for n in 0..30 {
        instance.send(&project, &[event(&format!("paid {n}"), json!({"n": n}))]).await;
    }
    until(async || {
        let names = names(&receiver);
        (0..30).all(|n| names.contains(&format!("paid {n}"))).then_some(())
    })
    .await;
    assert!(!names(&receiver).contains(&"before".to_owned()));
    let taken = receiver.lock().taken.clone();
    let first = taken.iter().find(|request| request.json()["event"] == "paid 7").unwrap();
    assert_eq!((first.method.as_str(), first.path.as_str()), ("POST", "/hook"));
    assert_eq!(first.header("x-from"), "weir");
    assert_eq!(
        (&first.json()["person"], &first.json()["properties"]["n"]),
        (&json!("ada"), &json!(7))
    );
    instance.until_shown(&installed, |shown| shown["delivery_rate_24h"] == 1.0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_receiver_misses_while_it_is_down_comes_later() {
    let (instance, receiver) = (Instance::start().await, receiver().await);
    let project = instance.project();
    let installed = destination(&instance, &project, POSTS, &receiver).await;
    until(async || {
        instance.send(&project, &[event("begin", json!({}))]).await;
        names(&receiver).contains(&"begin".to_owned()).then_some(())
    })
    .await;
    receiver.lock().is_down = true;
    let missed: Vec<Value> = (0..5).map(|n| event(&format!("missed {n}"), json!({}))).collect();
    instance.send(&project, &missed).await;
    // Ingestion does not wait for the delivery.
    let events = instance.stored(&project).await;
    only(&events, "missed 4");
    until(async || (receiver.lock().refused >= 2).then_some(())).await;
    let shown = instance.until_shown(&installed, |shown| !shown["error"].is_null()).await;
    assert!(shown["error"]["message"].as_str().unwrap().contains("503"), "{shown}");
    // Retention keeps what it has not received.
    let heads = heads(instance.app.store(), instance.app.project()).await.unwrap();
    let newest = u64::try_from(heads.values().map(|head| head.last).max().unwrap()).unwrap();
    let [waiting] = instance.app.undelivered().await[..] else { panic!("one destination") };
    assert!(waiting.after + 5 <= newest, "{waiting:?} {newest}");
    receiver.lock().is_down = false;
    until(async || {
        let names = names(&receiver);
        (0..5).all(|n| names.contains(&format!("missed {n}"))).then_some(())
    })
    .await;
    until(async || {
        let waiting = instance.app.undelivered().await;
        (waiting == [EventBounds::after(newest)]).then_some(())
    })
    .await;
    assert_eq!(instance.shown(&installed).await["enabled"], true);
    ok(200, &instance.owner.patch(&installed.config, &json!({"enabled": false})).await);
    assert_eq!(instance.app.undelivered().await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_bad_event_does_not_delay_the_others() {
    let (instance, receiver) = (Instance::start().await, receiver().await);
    let project = instance.project();
    let source = POSTS.replace(
        "const answer",
        "if (event.event === 'bad') { throw new Error('never') }\n const answer",
    );
    let installed = destination(&instance, &project, &source, &receiver).await;
    until(async || {
        instance.send(&project, &[event("begin", json!({}))]).await;
        names(&receiver).contains(&"begin".to_owned()).then_some(())
    })
    .await;
    let events = [event("bad", json!({})), event("good", json!({}))];
    instance.send(&project, &events).await;
    until(async || names(&receiver).contains(&"good".to_owned()).then_some(())).await;
    let shown = instance.until_shown(&installed, |shown| !shown["error"].is_null()).await;
    assert!(shown["error"]["message"].as_str().unwrap().contains("never"), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn webhooks_are_composed_and_sent() {
    let (instance, receiver) = (Instance::start().await, receiver().await);
    let project = instance.project();
    let source = "export function composeWebhook(event, { config }) {
        if (event.event.startsWith('$')) { return null }
        const isDate = event.timestamp instanceof Date
        const day = isDate ? event.timestamp.toISOString().slice(0, 10) : 'none'
        return {
            url: config.url,
            headers: event.event === 'put' ? { 'x-day': day } : undefined,
            method: event.event === 'put' ? 'PUT' : undefined,
            body: JSON.stringify({ event: event.event, properties: event.properties }),
        }
    }";
    let installed = destination(&instance, &project, source, &receiver).await;
    until(async || {
        instance.send(&project, &[event("begin", json!({}))]).await;
        names(&receiver).contains(&"begin".to_owned()).then_some(())
    })
    .await;
    let mut put = event("put", json!({"n": 1}));
    put["timestamp"] = json!("2026-06-01T10:00:00Z");
    instance.send(&project, &[event("$pageview", json!({})), put]).await;
    until(async || names(&receiver).contains(&"put".to_owned()).then_some(())).await;
    let taken = receiver.lock().taken.clone();
    let found = taken.iter().find(|request| request.json()["event"] == "put").unwrap();
    assert_eq!(found.method, "PUT");
    assert_eq!(found.header("x-day"), "2026-06-01");
    assert_eq!(found.json()["properties"]["n"], 1);
    let first = taken.iter().find(|request| request.json()["event"] == "begin").unwrap();
    assert_eq!((first.method.as_str(), first.header("content-type")), ("POST", "application/json"));
    assert!(!names(&receiver).contains(&"$pageview".to_owned()));
    instance.until_shown(&installed, |shown| shown["delivery_rate_24h"] == 1.0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn inner_addresses_are_refused() {
    let receiver = receiver().await;
    let closed = |config: &mut Config| config.egress_allow = "192.0.2.1".parse().unwrap();
    let instance = Instance::with(closed, |_| {}).await;
    let project = instance.project();
    for source in [
        POSTS,
        "export function composeWebhook(event, { config }) {
            return { url: config.url, body: '{}' }
        }",
        "export async function onEvent() { await fetch('http://[::ffff:127.0.0.1]/') }",
        "export async function onEvent() { await fetch('file:///etc/passwd') }",
    ] {
        // A setting with such an address is refused when it is saved. Code can contain
        // one.
        let address = json!(format!("{}/hook", receiver.url())).to_string();
        let source = source.replace("config.url", &address);
        let installed = instance.install(&project, 1, &source).await;
        until(async || {
            instance.send(&project, &[event("begin", json!({}))]).await;
            let error = instance.shown(&installed).await["error"].clone();
            (!error.is_null()).then_some(())
        })
        .await;
        ok(200, &instance.owner.patch(&installed.config, &json!({"enabled": false})).await);
    }
    let inbox = receiver.lock();
    assert_eq!((inbox.taken.len(), inbox.refused), (0, 0), "nothing was reached");
}

/// The receiver is down until events are in all layers of the store.
#[tokio::test(flavor = "multi_thread")]
async fn events_of_all_layers_are_delivered() {
    let folder = tempfile::tempdir().unwrap();
    let settings = |config: &mut Config| on_disk(config, &folder);
    let (instance, receiver) = (Instance::with(settings, large_requests).await, receiver().await);
    let project = instance.project();
    destination(&instance, &project, UUIDS, &receiver).await;
    until(async || {
        // Segments whose events are months apart are not merged.
        let mut begin = event("begin", json!({}));
        begin["timestamp"] = json!("2026-05-27T11:00:00Z");
        instance.send(&project, &[begin]).await;
        names(&receiver).contains(&"begin".to_owned()).then_some(())
    })
    .await;
    receiver.lock().is_down = true;
    let sent = in_all_layers(&instance.app).await;
    until(async || (receiver.lock().refused > 0).then_some(())).await;
    receiver.lock().is_down = false;
    let mut delivered = until(async || {
        let inbox = receiver.lock();
        let taken =
            inbox.taken.iter().map(StubRequest::json).filter(|request| request["event"] == "layer");
        let uuids: Vec<String> =
            taken.map(|request| request["uuid"].as_str().unwrap().to_owned()).collect();
        if sent.iter().all(|uuid| uuids.contains(uuid)) { Ok(uuids) } else { Err(uuids.len()) }
    })
    .await;
    // One can come again after a fault.
    delivered.dedup();
    assert_eq!(delivered, sent, "in order of arrival");
    assert_all_layers(&instance.app).await;
    instance.app.stop().await;
}
