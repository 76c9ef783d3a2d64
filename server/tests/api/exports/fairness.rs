//! Slow exports of one organization leave slots for the exports of another.

use tokio::net::TcpListener;
use weir_server::config::Config;

use super::*;

/// Exports whose destination never answers: more than there are slots.
const SILENT: usize = 10;

/// An instance with the usual slots that sets no run aside.
async fn start() -> (TestApp, Clock) {
    let clock = Clock::fixed(Timestamp::from_micros(NOW));
    let settings = |config: &mut Config| {
        config.egress_allow = "127.0.0.1".parse().unwrap();
        config.rate_per_minute = 0;
        config.rate_per_hour = 0;
    };
    let options = |options: &mut Options| {
        options.clock = clock.clone();
        options.exports = Settings {
            jitter: 0,
            tick: Duration::from_millis(20),
            silence: Duration::from_secs(24 * 60 * 60),
            ..Settings::default()
        };
    };
    (TestApp::with_settings_and_options(settings, options).await.set_up().await, clock)
}

async fn send(app: &TestApp, key: &str, time: Timestamp) {
    let event = json!({"event": "bought", "distinct_id": "ada", "timestamp": time.to_string()});
    let body = json!({"api_key": key, "batch": [event]});
    assert_eq!(app.anonymous().post("/batch/", &body).await.status, 200);
    app.app().ingest.applied().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_exports_of_an_organization_do_not_stop_those_of_another() {
    let (app, clock) = start().await;
    let owner = owner(&app).await;
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/batch/", silent.local_addr().unwrap());
    let mut exports = Vec::new();
    for n in 0..SILENT {
        let export = json!({
            "name": format!("silent {n}"), "interval": "every 5 minutes",
            "destination": {"type": "HTTP", "config": {"url": url, "token": "phc_x"}},
        });
        exports.push(made(&app, &owner, &export).await.1);
    }
    send(&app, app.project_key(), clock.now()).await;
    clock.advance(300);
    for path in &exports {
        let has_run = |list: &Value| !list["results"][0]["id"].is_null();
        until(&owner, &format!("{path}runs/"), has_run).await;
    }
    // All runs of the organization that may send at the same time do.
    let mut sending = Vec::new();
    for _ in 0..Settings::default().of_an_organization {
        sending.push(silent.accept().await.unwrap());
    }

    let other = app.outsider("linus").await.key(&["*"]).await;
    let made = other.post("/api/organizations/", &json!({"name": "Other"})).await;
    assert_eq!(made.status, 201, "{:?}", made.body);
    let project = other.get("/api/projects/@current/").await.json();
    send(&app, project["api_token"].as_str().unwrap(), clock.now().plus_seconds(-600)).await;
    let list = "/api/organizations/@current/batch_exports/";
    let export = json!({
        "name": "quick", "interval": "every 5 minutes", "paused": true,
        "destination": {"type": "NoOp", "config": {}},
    });
    let made = other.post(list, &export).await;
    assert_eq!(made.status, 201, "{:?}", made.body);
    let path = format!("{list}{}/", made.json()["id"].as_str().unwrap());
    let started = other.post(&format!("{path}backfill/"), &json!({})).await;
    assert_eq!(started.status, 200, "{:?}", started.body);
    let ended = |list: &Value| !list["results"][0]["finished_at"].is_null();
    let runs = until(&other, &format!("{path}runs/"), ended).await;
    assert_eq!(runs["results"][0]["status"], "Completed", "{runs}");
}
