//! Events in every layer of the store are read alike: in the open block, in closed blocks, in
//! segments and in merged segments. Exports and plugins have the same tests in their modules.

use serde_json::{Value, json};
use tempfile::TempDir;
use uuid::Uuid;
use weir_server::config::{Config, StoreKind};
use weir_server::serve::Options;
use weir_store::events::{SealBounds, merge_segments, seal_all};
use weir_testkit::TestApp;

use crate::traffic::function;
use crate::web::session;

/// Events of a block.
const BLOCK: usize = 4;
/// Characters of an event: a block is full with a mebibyte.
const LONG: usize = 264_000;
/// Segments that are merged into one.
const MERGED: usize = 16;

/// Settings of an instance that stores its events on disk.
pub(crate) fn on_disk(config: &mut Config, folder: &TempDir) {
    config.store = StoreKind::RocksDb;
    config.data = folder.path().join("data");
}

/// Options with which the log takes a block in one request.
pub(crate) fn large_requests(options: &mut Options) {
    options.log.segment_size = 16 << 20;
}

/// Sends events of one person, named `layer`, on 2026-05-27, of which some are in each layer.
/// Returns their uuids in the order in which they were sent.
pub(crate) async fn in_all_layers(app: &TestApp) -> Vec<String> {
    let mut sent = Vec::new();
    blocks(app, MERGED + 1, &mut sent).await;
    // The newest block stays open.
    assert_eq!(seal(app).await, MERGED);
    let merged = merge_segments(app.store(), app.app().services.clock.now()).await.unwrap();
    assert_eq!(merged.map(|merged| merged.segments), Some(MERGED));
    blocks(app, 2, &mut sent).await;
    assert_eq!(seal(app).await, 2);
    // One that is closed, and one that is not full.
    blocks(app, 1, &mut sent).await;
    send(app, 1, &mut sent).await;
    sent
}

/// Asserts that the last blocks have not been sealed meanwhile.
pub(crate) async fn assert_all_layers(app: &TestApp) {
    assert_eq!(seal(app).await, 2, "closed blocks");
}

/// Seals every closed block into a segment of its own, and returns their number.
async fn seal(app: &TestApp) -> usize {
    let bounds = SealBounds { events: 1, age: i64::MAX, ..SealBounds::default() };
    let now = app.app().services.clock.now();
    let report = seal_all(app.store(), now, usize::MAX, bounds).await.unwrap();
    assert!(report.failure.is_none(), "{report:?}");
    report.segments
}

async fn blocks(app: &TestApp, count: usize, sent: &mut Vec<String>) {
    for _ in 0..count {
        send(app, BLOCK, sent).await;
    }
}

/// Sends events and waits until they are stored.
async fn send(app: &TestApp, count: usize, sent: &mut Vec<String>) {
    let mut batch: Vec<Value> = Vec::new();
    for _ in 0..count {
        let (number, uuid) = (sent.len(), Uuid::new_v4().to_string());
        batch.push(json!({
            "event": "layer", "distinct_id": "ada", "uuid": uuid,
            "timestamp": format!("2026-05-27T12:{:02}:{:02}Z", number / 60, number % 60),
            "properties": {"number": number, "long": "x".repeat(LONG)},
        }));
        sent.push(uuid);
    }
    let body = json!({"api_key": app.project_key(), "batch": batch});
    let answer = app.anonymous().post("/batch/", &body).await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    app.app().ingest.applied().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_the_live_list_and_the_page_of_a_person_show_events_of_all_layers() {
    let folder = tempfile::tempdir().unwrap();
    let settings = |config: &mut Config| on_disk(config, &folder);
    let app = TestApp::with_settings_and_options(settings, large_requests).await.set_up().await;
    let sent = in_all_layers(&app).await;
    let (cookie, owner) = (session(&app).await, app.owner().key(&["*"]).await);
    let project = app.project();

    // By time, and each event by its uuid.
    let mut found = Vec::new();
    let mut path = format!("/api/projects/{project}/events/?limit=10&distinct_id=ada");
    loop {
        let page = owner.get(&path).await.json();
        for event in page["results"].as_array().unwrap() {
            found.push(event["uuid"].as_str().unwrap().to_owned());
        }
        let Some(next) = page["next"].as_str() else { break };
        path = next.split_once("/api/").map(|(_, rest)| format!("/api/{rest}")).unwrap();
    }
    found.reverse();
    assert_eq!(found, sent);
    for (number, uuid) in sent.iter().enumerate().step_by(3) {
        let path = format!("/api/projects/{project}/events/?uuid={uuid}");
        let list = owner.get(&path).await.json();
        assert_eq!(list["results"][0]["properties"]["number"], number, "{uuid}");
    }

    // In the live list, by arrival. A page of it takes bounded memory.
    let (mut count, mut text, mut from) = (0, String::new(), String::new());
    loop {
        let body = format!("project={project}&limit=1000{from}");
        let list = function(&app, &cookie, "list_events", &body).await.json();
        let rows = list["rows"].as_array().unwrap();
        count += rows.iter().filter(|row| row["event"] == "layer").count();
        text += &list.to_string();
        let Some(older) = list["older"].as_str() else { break };
        from = format!("&before={older}");
    }
    assert_eq!(count, sent.len());
    assert!(sent.iter().all(|uuid| text.contains(uuid)), "{text:.2000}");

    // On the page of the person, a page of events at a time.
    let persons = format!("/api/projects/{project}/persons/?distinct_id=ada");
    let person = owner.get(&persons).await.json()["results"][0]["id"].clone();
    let person = person.as_str().unwrap().to_owned();
    let (mut found, mut from) = (Vec::new(), String::new());
    loop {
        let body = format!("project={project}&person={person}{from}");
        let shown = function(&app, &cookie, "get_person", &body).await;
        assert_eq!(shown.status, 200, "{:?}", shown.body);
        let shown = &shown.json()["Person"];
        let text = shown.to_string();
        let new: Vec<&String> = sent.iter().filter(|uuid| text.contains(*uuid)).collect();
        found.extend(new.into_iter().cloned());
        let Some([at, uuid]) = shown["older"].as_array().map(Vec::as_slice) else { break };
        let (at, uuid) = (at.as_str().unwrap(), uuid.as_str().unwrap());
        from = format!("&before={at}&before_uuid={uuid}");
    }
    found.sort_unstable();
    found.dedup();
    let mut all = sent.clone();
    all.sort_unstable();
    assert_eq!(found, all);
    assert_all_layers(&app).await;
    app.stop().await;
}
