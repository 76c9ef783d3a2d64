//! Sending events, and reading them in their project.

use serde_json::{Value, json};
use weir_testkit::{Caller, TestApp};

/// Sends events and waits until they are readable.
pub(crate) async fn send(app: &TestApp, events: Value) {
    let body = json!({"api_key": app.project_key(), "batch": events});
    assert_eq!(app.anonymous().post("/batch/", &body).await.status, 200);
    app.app().ingest.applied().await;
}

/// The answer at a path below the project.
pub(crate) async fn get(app: &TestApp, caller: &Caller, path: &str) -> Value {
    let answer = caller.get(&format!("/api/projects/{}/{path}", app.project())).await;
    assert_eq!(answer.status, 200, "{path}: {:?}", answer.body);
    answer.json()
}
