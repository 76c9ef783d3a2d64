//! Exports read the events of all layers of the store: a run by arrival, a backfill by time.

use weir_server::config::Config;

use super::*;
use crate::layers::{assert_all_layers, in_all_layers, large_requests, on_disk};

/// The uuids of all events of a project.
async fn uuids(caller: &Caller, project: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut path = format!("/api/projects/{project}/events/?limit=10");
    loop {
        let page = caller.get(&path).await.json();
        for event in page["results"].as_array().unwrap() {
            found.push(event["uuid"].as_str().unwrap().to_owned());
        }
        let Some(next) = page["next"].as_str() else { break };
        path = next.split_once("/api/").map(|(_, rest)| format!("/api/{rest}")).unwrap();
    }
    found.sort_unstable();
    found
}

/// An export to a project of another instance.
fn to(receiver: &TestApp, interval: &str, key: &Value) -> Value {
    let url = format!("http://{}/batch/", receiver.address());
    json!({
        "name": interval, "interval": interval,
        "destination": {"type": "HTTP", "config": {"url": url, "token": key}},
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_and_a_backfill_export_events_of_all_layers() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Clock::fixed(Timestamp::from_micros(NOW));
    let settings = |config: &mut Config| {
        on_disk(config, &folder);
        config.egress_allow = "127.0.0.1".parse().unwrap();
        (config.rate_per_minute, config.rate_per_hour) = (0, 0);
    };
    let options = |options: &mut Options| {
        large_requests(options);
        options.clock = clock.clone();
        options.exports =
            Settings { jitter: 0, tick: Duration::from_millis(50), ..Settings::default() };
    };
    let app = TestApp::with_settings_and_options(settings, options).await.set_up().await;
    let quick = |config: &mut Config| (config.rate_per_minute, config.rate_per_hour) = (0, 0);
    let receiver = TestApp::with_settings_and_options(quick, large_requests).await.set_up().await;
    let (owner, reader) = (owner(&app).await, owner(&receiver).await);
    let (run, backfill) = (json!(receiver.project()), {
        let path = format!("/api/organizations/{}/projects/", receiver.organization());
        reader.post(&path, &json!({"name": "Backfill"})).await.json()
    });
    let key = json!(receiver.project_key());
    let (_, by_run) = made(&app, &owner, &to(&receiver, "every 5 minutes", &key)).await;
    let paused = with(to(&receiver, "day", &backfill["api_token"]), "paused", json!(true));
    let (_, by_day) = made(&app, &owner, &paused).await;
    let mut sent = in_all_layers(&app).await;
    sent.sort_unstable();

    // 20:26:40: the interval ends at 20:30.
    clock.advance(260);
    let ended = |list: &Value| !list["results"][0]["finished_at"].is_null();
    let list = until(&owner, &format!("{by_run}runs/"), ended).await;
    assert_eq!(list["results"][0]["status"], "Completed", "{list}");
    assert_eq!(list["results"][0]["records_completed"], sent.len(), "{list}");

    let bounds = json!({"start_at": "2026-05-27", "end_at": "2026-05-28"});
    let begun = owner.post(&format!("{by_day}backfill/"), &bounds).await;
    assert_eq!(begun.status, 200, "{:?}", begun.body);
    let path = format!("{by_day}backfills/{}/", begun.json()["backfill_id"].as_str().unwrap());
    let done = until(&owner, &path, |backfill| !backfill["finished_at"].is_null()).await;
    assert_eq!(done["status"], "Completed", "{done}");

    receiver.app().ingest.applied().await;
    assert_eq!(uuids(&reader, &run).await, sent);
    assert_eq!(uuids(&reader, &backfill["id"]).await, sent);
    assert_all_layers(&app).await;
    app.stop().await;
    receiver.stop().await;
}
