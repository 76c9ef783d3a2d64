//! From creating an export to events at its destination, all through the API, with
//! another instance as the receiver.

use super::*;

/// An instance whose clock the test moves, and an instance that receives its events.
async fn both() -> (TestApp, Clock, TestApp) {
    let clock = Clock::fixed(Timestamp::from_micros(NOW));
    let settings = |config: &mut weir_server::config::Config| {
        config.egress_allow = "127.0.0.1".parse().unwrap();
    };
    let app = TestApp::with_settings_at(clock.clone(), settings).await.set_up().await;
    (app, clock, TestApp::with_owner().await)
}

fn to(receiver: &TestApp) -> Value {
    let url = format!("http://{}/batch/", receiver.address());
    json!({
        "name": "Copy", "interval": "every 5 minutes",
        "destination": {"type": "HTTP", "config": {"url": url, "token": receiver.project_key()}},
    })
}

/// Sends events and waits until they can be read.
async fn sent(app: &TestApp, caller: &Caller, names: &[&str]) {
    for name in names {
        let event = json!({
            "api_key": app.project_key(), "event": name, "distinct_id": "ada",
            "properties": {"name": name, "number": 9_007_199_254_740_993_i64},
        });
        assert_eq!(app.anonymous().post("/capture/", &event).await.status, 200);
    }
    let last = names.last().unwrap();
    let path = format!("/api/projects/{}/events/?event={last}", app.project());
    until(caller, &path, |list| !list["results"].as_array().unwrap().is_empty()).await;
}

fn ended(runs: usize) -> impl Fn(&Value) -> bool {
    move |list| {
        let results = list["results"].as_array().unwrap();
        results.len() >= runs && results.iter().all(|run| !run["finished_at"].is_null())
    }
}

async fn names(app: &TestApp, caller: &Caller) -> Vec<String> {
    let list = caller.get(&format!("/api/projects/{}/events/", app.project())).await.json();
    let results = list["results"].as_array().unwrap().iter();
    let mut names: Vec<String> =
        results.map(|event| event["event"].as_str().unwrap().to_owned()).collect();
    names.sort_unstable();
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_sent_arrives_at_the_end_of_its_interval() {
    let (app, clock, receiver) = both().await;
    let (owner, reader) = (owner(&app).await, owner(&receiver).await);
    let (_, path) = made(&app, &owner, &to(&receiver)).await;
    sent(&app, &owner, &["one", "two", "three"]).await;
    // 20:26:40: the interval ends at 20:30.
    clock.advance(260);
    let list = until(&owner, &format!("{path}runs/"), ended(1)).await;
    let run = &list["results"][0];
    assert_eq!((&run["status"], &run["latest_error"]), (&json!("Completed"), &Value::Null));
    assert_eq!(
        (&run["records_completed"], &run["records_total_count"]),
        (&json!(3), &json!(3)),
        "{run}"
    );
    assert_eq!(run["data_interval_end"], "2026-05-28T20:30:00Z");
    until(&reader, &format!("/api/projects/{}/events/", receiver.project()), |list| {
        list["results"].as_array().unwrap().len() == 3
    })
    .await;
    let arrived = reader.get(&format!("/api/projects/{}/events/", receiver.project())).await.json();
    let kept = owner.get(&format!("/api/projects/{}/events/", app.project())).await.json();
    let key = |event: &Value| (event["uuid"].clone(), event["properties"]["number"].clone());
    let sorted = |list: &Value| {
        let mut keys: Vec<_> = list["results"].as_array().unwrap().iter().map(key).collect();
        keys.sort_by_key(|key| key.0.to_string());
        keys
    };
    assert_eq!(sorted(&arrived), sorted(&kept));
    let id = run["id"].as_str().unwrap();
    let log = owner.get(&format!("{path}runs/{id}/logs/")).await.json();
    assert!(log["count"].as_u64().unwrap() > 0, "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_missed_in_a_pause_comes_with_a_backfill() {
    let (app, clock, receiver) = both().await;
    let (owner, reader) = (owner(&app).await, owner(&receiver).await);
    let (_, path) = made(&app, &owner, &to(&receiver)).await;
    assert_eq!(owner.post(&format!("{path}pause/"), &json!({})).await.status, 200);
    clock.advance(30);
    sent(&app, &owner, &["missed"]).await;
    clock.advance(900);
    let unpaused = owner.post(&format!("{path}unpause/"), &json!({"backfill": true})).await.json();
    let backfill = unpaused["backfill_id"].as_str().unwrap();
    let backfill = format!("{path}backfills/{backfill}/");
    // Time passes while the run is processed.
    let done = until(&owner, &backfill, |backfill| {
        clock.advance(1);
        !backfill["finished_at"].is_null()
    })
    .await;
    assert_eq!(done["status"], "Completed", "{done}");
    assert_eq!(done["progress"]["progress"], 1.0);
    let events = format!("/api/projects/{}/events/", receiver.project());
    until(&reader, &events, |list| !list["results"].as_array().unwrap().is_empty()).await;
    assert_eq!(names(&receiver, &reader).await, ["missed"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_refused_fails_and_is_retried_once_the_token_is_right() {
    let (app, clock, receiver) = both().await;
    let (owner, reader) = (owner(&app).await, owner(&receiver).await);
    let mut wrong = to(&receiver);
    wrong["destination"]["config"]["token"] = json!("phc_wrong");
    let (_, path) = made(&app, &owner, &wrong).await;
    sent(&app, &owner, &["one"]).await;
    clock.advance(260);
    let list = until(&owner, &format!("{path}runs/"), ended(1)).await;
    let failed = &list["results"][0];
    assert_eq!(failed["status"], "Failed", "{failed}");
    assert!(!failed["latest_error"].as_str().unwrap().is_empty());

    let token = json!({"destination": {"config": {"token": receiver.project_key()}}});
    assert_eq!(owner.patch(&path, &token).await.status, 200);
    let retry = format!("{path}runs/{}/retry/", failed["id"].as_str().unwrap());
    let retried = owner.post(&retry, &json!({})).await.json();
    let backfill = format!("{path}backfills/{}/", retried["backfill_id"].as_str().unwrap());
    let done = until(&owner, &backfill, |backfill| {
        clock.advance(1);
        !backfill["finished_at"].is_null()
    })
    .await;
    assert_eq!(done["status"], "Completed", "{done}");
    let events = format!("/api/projects/{}/events/", receiver.project());
    until(&reader, &events, |list| !list["results"].as_array().unwrap().is_empty()).await;
    assert_eq!(names(&receiver, &reader).await, ["one"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_to_nowhere_has_runs_too() {
    let (app, clock, _) = both().await;
    let owner = owner(&app).await;
    let destination = json!({"type": "NoOp", "config": {}});
    let body = with(with(s3(), "interval", json!("hour")), "destination", destination);
    let (_, path) = made(&app, &owner, &body).await;
    sent(&app, &owner, &["one", "two"]).await;
    clock.advance(3600);
    let list = until(&owner, &format!("{path}runs/"), ended(1)).await;
    let run = &list["results"][0];
    assert_eq!((&run["status"], &run["records_completed"]), (&json!("Completed"), &json!(2)));
    assert_eq!(owner.get(&path).await.json()["latest_runs"][0], *run);
}
