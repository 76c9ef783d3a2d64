//! Erasing and exporting a person.

use std::path::{Path, PathBuf};
use std::time::Duration;

use http::Method;
use rustix::process::Signal;
use serde_json::{Value, json};
use weir_model::organizations::Level;
use weir_model::{ProjectId, Timestamp};
use weir_service::Clock;
use weir_testkit::{Caller, TestApp, until};

use crate::layers::{large_requests, on_disk};
use crate::process::{self, Serving};
use crate::stored::{get, send};

/// In everything that is stored of the person, and in nothing else.
const MARKER: &str = "ada-7c51e0b9d2f84a6e93";
/// Characters of an event: four of them fill a block.
const LONG: usize = 264_000;
/// Longer than files stay that were replaced, seconds.
const REPLACED: i64 = 700;
/// The most bytes that a compressed part of a file has.
const MOST: u64 = 64 << 20;

/// The files below a directory that have the marker, also in compressed parts.
fn with_marker(directory: &Path) -> Vec<PathBuf> {
    let (mut found, mut directories) = (Vec::new(), vec![directory.to_owned()]);
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                directories.push(path);
            } else if std::fs::read(&path).is_ok_and(|bytes| has_marker(&bytes)) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn has_marker(bytes: &[u8]) -> bool {
    // How a frame of zstd begins. Blocks of events, of the log and of Parquet are frames.
    const FRAME: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
    let is_in = |bytes: &[u8]| memchr::memmem::find(bytes, MARKER.as_bytes()).is_some();
    is_in(bytes) || memchr::memmem::find_iter(bytes, FRAME).any(|at| is_in(&frame(&bytes[at..])))
}

/// What a frame of zstd has, as far as it can be read.
fn frame(bytes: &[u8]) -> Vec<u8> {
    use std::io::Read as _;
    let mut content = Vec::new();
    if let Ok(decoder) = zstd::stream::read::Decoder::with_buffer(bytes) {
        let _ = decoder.single_frame().take(MOST).read_to_end(&mut content);
    }
    content
}

async fn find(app: &TestApp, caller: &Caller, distinct_id: &str) -> Option<String> {
    let found = get(app, caller, &format!("persons/?distinct_id={distinct_id}")).await;
    found["results"][0]["id"].as_str().map(str::to_owned)
}

/// The state of an erasure, as soon as it is wanted.
async fn state(app: &TestApp, caller: &Caller, id: &str, wanted: &str) -> Value {
    until(async || {
        let found = get(app, caller, &format!("persons/{id}/erasure/")).await;
        let erasure = found["erasure"].clone();
        if erasure["state"] == wanted { Ok(erasure) } else { Err(erasure) }
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn no_file_has_bytes_of_an_erased_person_in_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Clock::fixed(Timestamp::from_micros(1_787_322_000_000_000));
    let settings = |config: &mut weir_server::Config| {
        on_disk(config, &folder);
        (config.seal_seconds, config.seal_events) = (1, 1);
    };
    let options = |options: &mut weir_server::serve::Options| {
        large_requests(options);
        options.clock = clock.clone();
        options.log.keep_for = Duration::ZERO;
    };
    let app = TestApp::with_settings_and_options(settings, options).await.set_up().await;
    let caller = app.owner().key(&["person:read", "person:write", "event:read"]).await;
    let long = "x".repeat(LONG);
    let event = |distinct_id: &str| {
        json!({"event": "$pageview", "distinct_id": distinct_id,
               "properties": {"of": distinct_id, "long": long, "$set": {"name": distinct_id}}})
    };
    // A block that is closed and sealed, an open block, and a dropped event.
    let anonymous = format!("anon-{MARKER}");
    send(&app, json!([event(MARKER), event("bob"), event(&anonymous)])).await;
    send(&app, json!([event(MARKER), event(MARKER), event(MARKER), event("bob")])).await;
    send(
        &app,
        json!([
            {"event": "$identify", "distinct_id": MARKER,
             "properties": {"$anon_distinct_id": anonymous}},
            {"event": "paid", "distinct_id": MARKER, "properties": {"n": 1}},
            {"event": "", "distinct_id": MARKER},
        ]),
    )
    .await;
    let segments = folder.path().join("data/segments");
    until(async || {
        let sealed = with_marker(&segments);
        if sealed.is_empty() { Err("nothing is sealed") } else { Ok(()) }
    })
    .await;
    for part in ["log", "store", "segments"] {
        let found = with_marker(&folder.path().join("data").join(part));
        assert!(!found.is_empty(), "the search finds what is in {part}");
    }
    let id = find(&app, &caller, MARKER).await.unwrap();
    let path = format!("/api/projects/{}/persons/{id}/?delete_events=true", app.project());
    let answer = caller.delete(&path).await;
    assert_eq!(answer.status, 202, "{:?}", answer.body);
    let erasure = answer.json();
    assert_eq!((&erasure["person"], &erasure["delete_events"]), (&json!(id), &json!(true)));
    // From the answer on.
    for distinct_id in [MARKER, &anonymous] {
        let events = get(&app, &caller, &format!("events/?distinct_id={distinct_id}")).await;
        assert_eq!(events["results"], json!([]), "{distinct_id}");
        assert_eq!(find(&app, &caller, distinct_id).await, None);
    }
    assert_eq!(caller.get(path.split('?').next().unwrap()).await.status, 404);
    let again = caller.delete(&path).await;
    assert_eq!((again.status, &again.json()["id"]), (202, &erasure["id"]));

    let clearing = state(&app, &caller, &id, "clearing").await;
    assert_eq!((&clearing["events_removed"], &clearing["segments_left"]), (&json!(7), &json!(0)));
    assert_eq!(clearing["samples_removed"], 1);
    // Replaced files stay for readers of the table.
    clock.advance(REPLACED);
    let done = state(&app, &caller, &id, "done").await;
    assert!(done["done_at"].is_string() && done["failure"].is_null(), "{done}");
    until(async || {
        let left = with_marker(folder.path());
        if left.is_empty() { Ok(()) } else { Err(left) }
    })
    .await;
    let events = get(&app, &caller, "events/?distinct_id=bob").await;
    assert_eq!(events["results"].as_array().unwrap().len(), 2);

    // A later event of the distinct id makes a new person.
    send(&app, json!([{"event": "back", "distinct_id": MARKER}])).await;
    let back = find(&app, &caller, MARKER).await.unwrap();
    let person = get(&app, &caller, &format!("persons/{back}/")).await;
    assert_eq!((&person["event_count"], &person["distinct_ids"]), (&json!(1), &json!([MARKER])));
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn administrators_erase_persons_of_their_projects_alone() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["person:read", "person:write", "event:read"]).await;
    send(&app, json!([{"event": "seen", "distinct_id": "ada"}])).await;
    let id = find(&app, &caller, "ada").await.unwrap();
    let path = format!("/api/projects/{}/persons/{id}/", app.project());
    assert_eq!(get(&app, &caller, &format!("persons/{id}/erasure/")).await["erasure"], json!(null));
    let member = app.member("mo", Level::Member).await.key(&["person:write"]).await;
    assert_eq!(member.delete(&path).await.status, 403);
    let outsider = app.outsider("eve").await.key(&["person:write"]).await;
    assert_eq!(outsider.delete(&path).await.status, 404);
    let reader = app.owner().key(&["person:read"]).await;
    assert_eq!(reader.delete(&path).await.status, 403);
    let wrong = caller.delete(&format!("{path}?delete_events=perhaps")).await;
    let detail = "Must be `true` or `false`.";
    let attr = Some("delete_events");
    wrong.assert_field_error(400, "validation_error", "invalid_input", detail, attr);
    // Without its events.
    let answer = caller.delete(&path).await;
    assert_eq!((answer.status, &answer.json()["delete_events"]), (202, &json!(false)));
    let events = get(&app, &caller, "events/?distinct_id=ada").await;
    assert_eq!(events["results"][0]["person"], json!(null));
    let activity = app.owner().key(&["activity_log:read"]).await;
    let of = format!("/api/projects/{}/activity_log/?scope=Person", app.project());
    let entries = activity.get(&of).await.json();
    let entry = &entries["results"][0];
    assert_eq!((&entry["activity"], &entry["item_id"]), (&json!("deleted"), &json!(id)));
    assert_eq!(entry["detail"]["name"], json!(null));
}

/// An older backup does not know of an erasure that the list of a newer one has.
#[tokio::test(flavor = "multi_thread")]
async fn a_start_applies_the_erasures_of_the_list_once() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path();
    let made = process::set_up(data, "plum-otter-violin-93").await;
    let made: Value = serde_json::from_str(&made.out).unwrap();
    let seen = |distinct_id: &str| {
        let event = format!("seen by {distinct_id}");
        json!({"api_key": made["project_api_key"], "event": event, "distinct_id": distinct_id})
    };
    let serving = Serving::start(data).await;
    for distinct_id in ["ada", "bob"] {
        assert_eq!(serving.caller.post("/i/v0/e/", &seen(distinct_id)).await.status, 200);
    }
    assert_eq!(process::events(&serving.caller, &made, 2).await.len(), 2);
    let caller = serving.caller.with_key(made["personal_api_key"].as_str().unwrap());
    let path = format!("/api/projects/{}/persons/?distinct_id=ada", made["project_id"]);
    let found = caller.get(&path).await.json();
    let id = &found["results"][0]["id"];
    assert!(id.is_string(), "{found}");
    serving.signal(Signal::TERM);
    assert_eq!(serving.ended().await, Some(0));
    let listed = json!({
        "id": "01902f5e-0000-7000-8000-000000000001",
        "project": made["project_id"],
        "person": id,
        "requested_at": Clock::default().now().micros(),
        "requested_by": "01902f5e-0000-7000-8000-000000000002",
        "deletes_events": true,
        "ids": [id],
    });
    std::fs::write(data.join("data/erasures.jsonl"), format!("{listed}\n")).unwrap();

    let serving = Serving::start(data).await;
    assert_eq!(process::events(&serving.caller, &made, 1).await, ["seen by bob"]);
    // A later event is of a new person, which the next start does not erase.
    assert_eq!(serving.caller.post("/i/v0/e/", &seen("ada")).await.status, 200);
    process::events(&serving.caller, &made, 2).await;
    serving.signal(Signal::TERM);
    assert_eq!(serving.ended().await, Some(0));
    let serving = Serving::start(data).await;
    assert_eq!(process::events(&serving.caller, &made, 2).await.len(), 2);
    serving.signal(Signal::TERM);
    assert_eq!(serving.ended().await, Some(0));
}

/// An older backup does not know a project either, whose number a new project then gets.
#[tokio::test(flavor = "multi_thread")]
async fn an_erasure_of_the_list_is_not_applied_to_a_later_project_with_the_same_number() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path();
    let made = process::set_up(data, "plum-otter-violin-93").await;
    let made: Value = serde_json::from_str(&made.out).unwrap();
    let number = made["project_id"].as_i64().unwrap() + 1;
    let id = weir_store::persons::first_id(ProjectId(number), "ada").0;
    let listed = json!({
        "id": "01902f5e-0000-7000-8000-000000000001",
        "project": number,
        "person": id,
        "requested_at": Clock::default().now().micros(),
        "requested_by": "01902f5e-0000-7000-8000-000000000002",
        "deletes_events": true,
        "ids": [id],
    });
    std::fs::write(data.join("data/erasures.jsonl"), format!("{listed}\n")).unwrap();
    let serving = Serving::start(data).await;
    let key = made["personal_api_key"].as_str().unwrap();
    let caller = serving.caller.with_key(key);
    let project = caller.post("/api/projects/", &json!({"name": "New"})).await.json();
    assert_eq!(project["id"], number, "{project}");
    let of_project = json!({"project_id": number, "personal_api_key": key});
    let event = json!({"api_key": project["api_token"], "event": "seen", "distinct_id": "ada"});
    assert_eq!(serving.caller.post("/i/v0/e/", &event).await.status, 200);
    assert_eq!(process::events(&serving.caller, &of_project, 1).await, ["seen"]);
    serving.signal(Signal::TERM);
    assert_eq!(serving.ended().await, Some(0));

    let serving = Serving::start(data).await;
    // Erasures of the list are applied before the server answers.
    let caller = serving.caller.with_key(key);
    let list = caller.get(&format!("/api/projects/{number}/events/")).await.json();
    assert_eq!(list["results"][0]["event"], "seen", "{list}");
    let found = caller.get(&format!("/api/projects/{number}/persons/?distinct_id=ada")).await;
    assert_eq!(found.json()["results"].as_array().unwrap().len(), 1);
    serving.signal(Signal::TERM);
    assert_eq!(serving.ended().await, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_has_everything_of_a_person() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["person:read", "event:read"]).await;
    send(
        &app,
        json!([
            {"event": "seen", "distinct_id": "anon", "properties": {"n": 1}},
            {"event": "$identify", "distinct_id": "ada",
             "properties": {"$anon_distinct_id": "anon", "$set": {"big": 12345678901234567890_u64}}},
            {"event": "seen", "distinct_id": "bob"},
        ]),
    )
    .await;
    let id = find(&app, &caller, "anon").await.unwrap();
    let path = format!("/api/projects/{}/persons/{id}/export/", app.project());
    let whole = caller.get(&path).await.json();
    assert_eq!(whole["person"]["id"], json!(id));
    assert_eq!(whole["person"]["properties"]["big"], 12345678901234567890_u64);
    let call = caller.call(Method::GET, &path).header("accept", "application/x-ndjson");
    let answer = call.send().await;
    assert_eq!(answer.header("content-type"), Some("application/x-ndjson"));
    let lines: Vec<Value> =
        answer.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["person"], whole["person"]);
    let events: Vec<Value> = lines[1..].iter().map(|line| line["event"].clone()).collect();
    assert_eq!(Value::from(events.clone()), whole["results"]);
    let mut of: Vec<&str> =
        events.iter().map(|event| event["distinct_id"].as_str().unwrap()).collect();
    of.sort_unstable();
    assert_eq!(of, ["ada", "anon"]);
}
