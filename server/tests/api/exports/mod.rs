//! `/api/organizations/{organization_id}/batch_exports/` and the same below a
//! project (service.md "Batch exports", batch-exports 1, 4, 5, 7, 8).

mod backfill;
mod create;
mod delete;
mod get;
mod list;
mod pause;
mod runs;
mod secrets;
mod unpause;
mod update;

use serde_json::{Value, json};
use weir_model::Timestamp;
use weir_service::Clock;
use weir_testkit::{Answer, Caller, TestApp};

/// 2026-05-28T20:26:40Z, a Thursday.
const NOW: i64 = 1_780_000_000_000_000;

/// An instance whose clock stands still until the test moves it.
async fn app() -> (TestApp, Clock) {
    let clock = Clock::fixed(Timestamp::from_micros(NOW));
    (TestApp::at(clock.clone()).await.set_up().await, clock)
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

/// A new export; gives its path too.
async fn made(app: &TestApp, caller: &Caller, body: &Value) -> (Value, String) {
    let answer = caller.post(&path(app), body).await;
    assert_eq!(answer.status, 201, "{:?}", answer.body);
    let export = answer.json();
    let path = format!("{}{}/", path(app), export["id"].as_str().unwrap());
    (export, path)
}

#[track_caller]
fn assert_invalid(answer: &Answer, attr: Option<&str>, code: &str, detail: &str) {
    answer.assert_field_error(400, "validation_error", code, detail, attr);
}

#[track_caller]
fn assert_not_found(answer: &Answer) {
    answer.assert_error(404, "invalid_request", "not_found", "Not found.");
}
