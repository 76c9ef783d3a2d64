//! Operations that end the work on an export answer quickly, however much work is under
//! way.

use std::time::Instant;

use tokio::net::TcpListener;
use weir_server::config::Config;

use super::*;

/// Intervals with an event. A backfill has a run for each.
const RUNS: i64 = 60;
/// The time that users see on a machine without other load.
const CONCURRENT: Duration = Duration::from_secs(1);

/// An instance that works on its exports all the time.
async fn busy() -> TestApp {
    let clock = Clock::fixed(Timestamp::from_micros(NOW));
    let settings = |config: &mut Config| {
        config.egress_allow = "127.0.0.1".parse().unwrap();
        config.rate_per_minute = 0;
        config.rate_per_hour = 0;
    };
    let options = |options: &mut Options| {
        options.clock = clock.clone();
        options.exports =
            Settings { jitter: 0, tick: Duration::from_millis(20), ..Settings::default() };
    };
    TestApp::with_settings_and_options(settings, options).await.set_up().await
}

/// On a machine that other tests keep busy, answers take longer. `read` is the time that
/// reading one export takes meanwhile.
async fn within(what: &str, expected: u16, read: Duration, answer: impl Future<Output = Answer>) {
    let allowed = CONCURRENT + read * 20;
    let begun = Instant::now();
    let answer = answer.await;
    assert_eq!(answer.status, expected, "{what}: {:?}", answer.body);
    assert!(begun.elapsed() < allowed, "{what} took {:?}", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelling_and_deleting_do_not_wait_for_runs() {
    let app = busy().await;
    let owner = owner(&app).await;
    let now = Timestamp::from_micros(NOW);
    let event = |n: i64| {
        json!({
            "event": "bought", "distinct_id": "ada",
            "timestamp": now.plus_seconds(-300 * n).to_string(),
        })
    };
    let batch: Vec<Value> = (1..=RUNS).map(event).collect();
    let body = json!({"api_key": app.project_key(), "batch": batch});
    assert_eq!(app.anonymous().post("/batch/", &body).await.status, 200);
    app.app().ingest.applied().await;

    let mut exports = Vec::new();
    for n in 0..3 {
        let export = json!({
            "name": format!("busy {n}"), "interval": "every 5 minutes", "paused": true,
            "destination": {"type": "NoOp", "config": {}},
        });
        let (_, path) = made(&app, &owner, &export).await;
        let started = owner.post(&format!("{path}backfills/"), &json!({})).await;
        assert_eq!(started.status, 201, "{:?}", started.body);
        exports.push((path, started.json()["backfill_id"].as_str().unwrap().to_owned()));
    }
    for (path, id) in &exports {
        let backfill = format!("{path}backfills/{id}/");
        let begun = |shown: &Value| shown["progress"]["finished_runs"].as_u64() > Some(0);
        let shown = until(&owner, &backfill, begun).await;
        assert_eq!(shown["status"], "Running", "{shown}");
    }
    // This run has not ended while it is cancelled: nothing answers it.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/batch/", silent.local_addr().unwrap());
    let export = json!({
        "name": "silent", "interval": "every 5 minutes", "paused": true,
        "destination": {"type": "HTTP", "config": {"url": url, "token": "phc_x"}},
    });
    let (_, waits) = made(&app, &owner, &export).await;
    let started = owner.post(&format!("{waits}backfills/"), &json!({})).await;
    assert_eq!(started.status, 201, "{:?}", started.body);
    let _sending = silent.accept().await.unwrap();
    let runs = owner.get(&format!("{waits}runs/")).await.json();
    let run = format!("{waits}runs/{}/", runs["results"][0]["id"].as_str().unwrap());

    let (path, id) = &exports[0];
    let begun = Instant::now();
    assert_eq!(owner.get(path).await.status, 200);
    let read = begun.elapsed();
    let name = json!({"name": "still busy"});
    within("changing an export", 200, read, owner.patch(path, &name)).await;
    let (cancel, nothing) = (format!("{run}cancel/"), json!({}));
    within("cancelling a run", 200, read, owner.post(&cancel, &nothing)).await;
    assert_eq!(owner.get(&run).await.json()["status"], "Cancelled");
    let cancel = format!("{path}backfills/{id}/cancel/");
    within("cancelling a backfill", 200, read, owner.post(&cancel, &nothing)).await;
    within("deleting an export", 204, read, owner.delete(&exports[1].0)).await;
    let project = format!("/api/organizations/{}/projects/{}/", app.organization(), app.project());
    within("deleting the project", 204, read, owner.delete(&project)).await;
}
