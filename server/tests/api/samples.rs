//! Requests of published client libraries, replayed in order. The fixtures in
//! `tests/fixtures/ingestion` have the format of each library, with invented data.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::Method;
use serde_json::{Value, json};
use weir_model::Timestamp;
use weir_testkit::{Answer, Caller, TestApp};

/// The project key in the fixtures.
const SAMPLE_KEY: &str = "phc_SampleProjectKey0000000000000000000000001";

struct Sample {
    name: String,
    content: Value,
}

fn samples(app: &TestApp) -> Vec<Sample> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/ingestion");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert_eq!(files.len(), 23);
    let now = app.app().services.clock.now();
    let in_hours =
        |hours: i64, minutes: i64| now.plus_seconds(hours * 3600 - minutes * 60).to_string();
    let read = |file: &PathBuf| {
        let text = std::fs::read_to_string(file)
            .unwrap()
            .replace(SAMPLE_KEY, app.project_key())
            .replace("<now + 5 h>", &in_hours(5, 0))
            .replace("<now + 5 h - 10 min>", &in_hours(5, 10));
        Sample {
            name: file.file_name().unwrap().to_str().unwrap().to_owned(),
            content: serde_json::from_str(&text).unwrap(),
        }
    };
    files.iter().map(read).collect()
}

impl Sample {
    fn expected(&self, name: &str) -> Option<&Value> {
        self.content["expect"].get(name)
    }

    async fn send(&self, app: &TestApp) -> Answer {
        let text = |name: &str| self.content[name].as_str().unwrap();
        let mut path = text("path").to_owned();
        for (index, (name, value)) in self.content["query"].as_object().unwrap().iter().enumerate()
        {
            let mark = if index == 0 { '?' } else { '&' };
            write!(path, "{mark}{name}={}", value.as_str().unwrap()).unwrap();
        }
        let method: Method = text("method").parse().unwrap();
        let mut call = app.anonymous().call(method, &path);
        for (name, value) in self.content["headers"].as_object().unwrap() {
            call = call.header(name, value.as_str().unwrap());
        }
        if text("wire_encoding") == "gzip" {
            call = call.header("content-encoding", "gzip");
        }
        call.body(self.body()).send().await
    }

    fn body(&self) -> Vec<u8> {
        let body = &self.content["body"];
        if body.is_null() {
            return Vec::new();
        }
        let json = body.to_string().into_bytes();
        let encoding = self.content["wire_encoding"].as_str().unwrap();
        if encoding.starts_with("gzip") {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(&json).unwrap();
            encoder.finish().unwrap()
        } else if encoding.starts_with("form") {
            let form = [("data", STANDARD.encode(json))];
            form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish().into_bytes()
        } else {
            assert!(encoding.starts_with("none"), "{encoding}");
            json
        }
    }
}

/// All stored events, newest first.
async fn stored(app: &TestApp, caller: &Caller) -> Vec<Value> {
    app.app().ingest.applied().await;
    let path = format!("/api/projects/{}/events/?limit=1000", app.project());
    caller.get(&path).await.json()["results"].as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_sample_is_answered_and_stored_as_expected() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["query:read", "person:read", "group:read"]).await;
    for sample in samples(&app) {
        let before = stored(&app, &caller).await;
        let answer = sample.send(&app).await;
        assert_eq!(json!(answer.status), *sample.expected("status").unwrap(), "{}", sample.name);
        let body = sample.expected("body").cloned().unwrap_or_else(|| json!({"status": 1}));
        assert_holds(&sample, &answer.json(), &body);
        let after = stored(&app, &caller).await;
        check_events(&sample, &before, &after);
        check_people(&app, &caller, &sample, &before, &after).await;
        if sample.expected("again").is_some() {
            assert_eq!(sample.send(&app).await.status, 200);
            assert_eq!(stored(&app, &caller).await.len(), after.len(), "{}", sample.name);
        }
    }
}

/// Settings may contain more than the library needs. All other answers must be equal.
fn assert_holds(sample: &Sample, found: &Value, expected: &Value) {
    if !sample.name.contains("config") && !sample.name.contains("decide") {
        assert_eq!(found, expected, "{}", sample.name);
        return;
    }
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(found[key], *value, "{}: {key}", sample.name);
    }
}

fn check_events(sample: &Sample, before: &[Value], after: &[Value]) {
    let name = &sample.name;
    let known: Vec<&Value> = before.iter().map(|event| &event["uuid"]).collect();
    let new: Vec<&Value> = after.iter().filter(|event| !known.contains(&&event["uuid"])).collect();
    let names: Vec<&str> = new.iter().rev().map(|event| event["event"].as_str().unwrap()).collect();
    if let Some(count) = sample.expected("events") {
        assert_eq!(json!(new.len()), *count, "{name}: {names:?}");
    }
    if let Some(wanted) = sample.expected("stored") {
        let mut names = names.clone();
        let mut wanted: Vec<&str> =
            wanted.as_array().unwrap().iter().map(|n| n.as_str().unwrap()).collect();
        names.sort_unstable();
        wanted.sort_unstable();
        assert_eq!(names, wanted, "{name}");
    }
    if let Some(wanted) = sample.expected("event") {
        assert_eq!(json!(names), json!([wanted]), "{name}");
    }
    if let Some(wanted) = sample.expected("session_id") {
        assert_eq!(new[0]["properties"]["$session_id"], *wanted, "{name}");
    }
    if let Some(added) = sample.expected("properties_added") {
        for (key, value) in added.as_object().unwrap() {
            assert_eq!(new[0]["properties"][key], *value, "{name}: {key}");
        }
    }
    if name.starts_with("06") {
        assert_eq!(seconds_before_receipt(new[0]), 2.715, "{name}");
    }
    if name.starts_with("22") {
        let before = seconds_before_receipt(new[0]);
        assert!((590.0..610.0).contains(&before), "{name}: {before}");
    }
    if name.starts_with("12") {
        assert!(new.iter().all(|event| event["historical"] == true), "{name}");
    }
}

async fn person(app: &TestApp, caller: &Caller, distinct_id: &Value) -> Value {
    let id = distinct_id.as_str().unwrap();
    let path = format!("/api/projects/{}/persons/?distinct_id={id}", app.project());
    caller.get(&path).await.json()["results"][0].clone()
}

/// The persons and groups that the sample expects.
async fn check_people(
    app: &TestApp,
    caller: &Caller,
    sample: &Sample,
    before: &[Value],
    after: &[Value],
) {
    let name = &sample.name;
    let known: Vec<&Value> = before.iter().map(|event| &event["uuid"]).collect();
    let new: Vec<&Value> = after.iter().filter(|event| !known.contains(&&event["uuid"])).collect();
    if sample.expected("person_created") == Some(&json!(false)) {
        assert!(new.iter().all(|event| event["person"].is_null()), "{name}");
    }
    let joined =
        ["person_of", "same_person"].iter().find_map(|key| sample.expected(key)?.as_array());
    if let Some(ids) = joined {
        let first = person(app, caller, &ids[0]).await;
        assert!(first["id"].is_string(), "{name}: {ids:?}");
        for id in ids {
            assert_eq!(person(app, caller, id).await["id"], first["id"], "{name}: {id}");
        }
    }
    // The sample is about the person of the newest event.
    let Some(newest) = new.first() else { return };
    let about = person(app, caller, &newest["distinct_id"]).await;
    if let Some(main) = sample.expected("main_distinct_id") {
        assert_eq!(person(app, caller, main).await["distinct_ids"][0], *main, "{name}");
    }
    if let Some(identified) = sample.expected("is_identified") {
        assert_eq!(about["is_identified"], *identified, "{name}");
    }
    if let Some(wanted) = sample.expected("person_properties_include") {
        for (key, value) in wanted.as_object().unwrap() {
            assert_eq!(about["properties"][key], *value, "{name}: {key}");
        }
    }
    let named = |key: &str| -> Vec<&str> {
        let names = sample.expected(key).and_then(Value::as_array);
        names.into_iter().flatten().filter_map(Value::as_str).collect()
    };
    for key in named("person_properties_absent_or_null") {
        assert!(about["properties"][key].is_null(), "{name}: {key}");
    }
    for key in named("person_must_not_get") {
        // Earlier samples are about the same person.
        assert_ne!(about["properties"][key], newest["properties"][key], "{name}: {key}");
    }
    if let Some(added) = sample.expected("property_on_last") {
        for (key, value) in added.as_object().unwrap() {
            let has = new.iter().filter(|event| event["properties"][key] == *value).count();
            assert!(has > 0, "{name}: {key}");
        }
    }
    if sample.expected("elements_chain").is_some() {
        assert!(new.iter().any(|event| event["elements_chain"] != ""), "{name}");
        let kept = |event: &&Value| event["properties"].get("$elements_chain").is_some();
        assert!(!new.iter().any(kept), "{name}");
    }
    let path = format!("/api/projects/{}/groups/", app.project());
    let groups = caller.get(&path).await.json()["results"].clone();
    if let Some(made) = sample.expected("group_created") {
        let is_it = |group: &Value| group["group_type"] == made[0] && group["group_key"] == made[1];
        assert!(groups.as_array().unwrap().iter().any(is_it), "{name}: {groups}");
    }
    if let Some(properties) = sample.expected("group_properties") {
        let has = |group: &Value| group["group_properties"] == *properties;
        assert!(groups.as_array().unwrap().iter().any(has), "{name}: {groups}");
    }
}

fn seconds_before_receipt(event: &Value) -> f64 {
    let time = |name: &str| Timestamp::parse(event[name].as_str().unwrap()).unwrap().micros();
    (time("created_at") - time("timestamp")) as f64 / 1e6
}
