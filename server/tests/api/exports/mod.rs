//! `/api/organizations/{organization_id}/batch_exports/` and the same paths below a
//! project (EXP-5).

mod backfill;
mod backfills;
mod busy;
mod create;
mod delete;
mod delivery;
mod fairness;
mod get;
mod killed;
mod layers;
mod list;
mod logs;
mod offsets;
mod pages;
mod pause;
mod running;
mod runs;
mod secrets;
mod testing;
mod unpause;
mod update;

use std::time::Duration;

use serde_json::{Value, json};
use weir_export::engine::Settings;
use weir_model::exports::{Backfill, Run, Status};
use weir_model::{BatchExportId, RunId, Timestamp};
use weir_server::serve::Options;
use weir_service::Clock;
use weir_store::exports::backfills as stored_backfills;
use weir_store::exports::runs::{self as stored_runs, RunRow};
use weir_store::exports::schedule::{self, Schedule};
use weir_store::{Store, ids};
use weir_testkit::{Answer, Caller, TestApp};

/// 2026-05-28T20:26:40Z, a Thursday.
const NOW: i64 = 1_780_000_000_000_000;

/// An instance whose clock stops until the test moves it, and that processes no exports:
/// runs of a test stay as they are.
async fn app() -> (TestApp, Clock) {
    let clock = Clock::fixed(Timestamp::from_micros(NOW));
    let options = |options: &mut Options| {
        options.clock = clock.clone();
        options.exports = idle();
    };
    (TestApp::with_options(|_| {}, options).await.set_up().await, clock)
}

/// Settings with which the engine of exports polls once, and begins no run.
pub(crate) fn idle() -> Settings {
    Settings { parallel: 0, tick: Duration::from_secs(24 * 60 * 60), ..Settings::default() }
}

async fn owner(app: &TestApp) -> Caller {
    app.owner().key(&["*"]).await
}

fn path(app: &TestApp) -> String {
    format!("/api/organizations/{}/batch_exports/", app.organization())
}

fn project_path(app: &TestApp) -> String {
    format!("/api/projects/{}/batch_exports/", app.project())
}

fn s3() -> Value {
    json!({
        "name": "Nightly", "interval": "day",
        "destination": {"type": "S3", "config": {
            "bucket_name": "events", "region": "eu-west-1", "prefix": "weir/",
            "aws_access_key_id": "AK-canary", "aws_secret_access_key": "SK-canary",
        }},
    })
}

/// An export whose runs only the test starts.
fn paused() -> Value {
    with(s3(), "paused", json!(true))
}

fn postgres() -> Value {
    json!({
        "name": "Warehouse", "interval": "hour",
        "destination": {"type": "Postgres", "config": {
            "host": "db.example", "database": "d", "user": "u-canary", "password": "p-canary",
        }},
    })
}

fn with(mut body: Value, field: &str, value: Value) -> Value {
    body[field] = value;
    body
}

/// Creates an export, and returns its path too.
async fn made(app: &TestApp, caller: &Caller, body: &Value) -> (Value, String) {
    let answer = caller.post(&path(app), body).await;
    assert_eq!(answer.status, 201, "{:?}", answer.body);
    let export = answer.json();
    let path = format!("{}{}/", path(app), export["id"].as_str().unwrap());
    (export, path)
}

fn id(export: &Value) -> BatchExportId {
    export["id"].as_str().unwrap().parse().unwrap()
}

/// The stored backfills of an export, newest first.
async fn stored(app: &TestApp, export: &Value) -> Vec<Backfill> {
    let export = id(export);
    stored_backfills::page(app.store(), app.project(), export, None, 100).await.unwrap()
}

/// A run over the hour before `seconds` after [`NOW`], created at that time.
fn run(export: &Value, seconds: i64, status: Status) -> Run {
    let created_at = Timestamp::from_micros(NOW).plus_seconds(seconds);
    Run {
        id: RunId(ids::time_ordered(created_at)),
        status,
        records_completed: None,
        latest_error: None,
        data_interval_start: Some(created_at.plus_seconds(-3600)),
        data_interval_end: created_at,
        cursor: None,
        created_at,
        finished_at: None,
        last_updated_at: created_at,
        records_total_count: None,
        batch_export: id(export),
        failing_since: None,
        next_try_at: None,
    }
}

/// Stores such a run.
async fn ran(app: &TestApp, export: &Value, seconds: i64, status: Status) -> Run {
    let run = run(export, seconds, status);
    create_run(app.store(), &run).await;
    run
}

/// Creates a run as the schedule does.
pub(crate) async fn create_run(store: &Store, run: &Run) {
    let (export, end) = (run.batch_export, run.data_interval_end);
    let row = RunRow::new(run.clone());
    let at = |last_end| Schedule::new(last_end, 0, "hour".to_owned());
    let (before, after) = (at(run.data_interval_start.unwrap_or(end)), at(end));
    // The scheduler of the service may begin the schedule at the same time.
    weir_testkit::until(async || {
        let present = schedule::all(store).await.unwrap().remove(&export);
        schedule::advance(store, export, present.as_ref(), &before).await.unwrap().then_some(())
    })
    .await;
    assert!(stored_runs::create(store, &row, &before, &after).await.unwrap());
}

/// The answer once the condition holds.
async fn until(caller: &Caller, path: &str, is_wanted: impl Fn(&Value) -> bool) -> Value {
    weir_testkit::until(async || {
        let answer = caller.get(path).await;
        assert_eq!(answer.status, 200, "{:?}", answer.body);
        let answer = answer.json();
        if is_wanted(&answer) { Ok(answer) } else { Err(answer) }
    })
    .await
}

#[track_caller]
fn assert_invalid(answer: &Answer, attr: Option<&str>, code: &str, detail: &str) {
    answer.assert_field_error(400, "validation_error", code, detail, attr);
}

#[track_caller]
fn assert_not_found(answer: &Answer) {
    answer.assert_error(404, "invalid_request", "not_found", "Not found.");
}
