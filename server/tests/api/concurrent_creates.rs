//! Many concurrent creations in one organization. All of them write the organization's
//! record and the head of its activity log, and all succeed.

use futures::future::join_all;
use serde_json::{Value, json};
use weir_server::config::{Config, StoreKind};
use weir_store::activity::{Verified, verify};
use weir_testkit::{Caller, TestApp};

const CALLS: usize = 50;

/// The collections below an organization, and the `n`-th body for each.
fn collections(n: usize) -> [(&'static str, Value); 4] {
    [
        ("projects", json!({"name": format!("Project {n}")})),
        ("invites", json!({"target_email": format!("p{n}@mail.example")})),
        ("domains", json!({"domain": format!("d{n}.example.com")})),
        (
            "batch_exports",
            json!({
                "name": format!("Export {n}"), "interval": "day",
                "destination": {"type": "S3", "config": {
                    "bucket_name": "events", "region": "eu-west-1", "prefix": "weir/",
                    "aws_access_key_id": "id", "aws_secret_access_key": "secret",
                }},
            }),
        ),
    ]
}

/// An instance with a store on disk, and a caller without a rate limit.
async fn started(data: &tempfile::TempDir) -> (TestApp, Caller) {
    let settings = |config: &mut Config| {
        config.store = StoreKind::RocksDb;
        config.data = data.path().to_owned();
        (config.rate_per_minute, config.rate_per_hour) = (0, 0);
    };
    let app = TestApp::start(settings, |_| {}).await.set_up().await;
    let caller = app.owner().key(&["*"]).await;
    (app, caller)
}

/// Sends all requests concurrently. All are answered with 201 and have an audit entry.
async fn all_are_made(app: &TestApp, caller: &Caller, bodies: Vec<(&'static str, Value)>) {
    let home = format!("/api/organizations/{}/", app.organization());
    let told = async || caller.get(&format!("{home}activity_log/")).await.json()["count"].as_u64();
    let (before, count) = (told().await.unwrap(), bodies.len() as u64);
    let home = &home;
    let call = |(collection, body): (&'static str, Value)| async move {
        let answer = caller.post(&format!("{home}{collection}/"), &body).await;
        assert_eq!(answer.status, 201, "{collection}: {:?}", answer.body);
    };
    join_all(bodies.into_iter().map(call)).await;
    let entries = told().await.unwrap();
    assert_eq!(entries, before + count);
    let verified = verify(app.store(), app.organization()).await.unwrap();
    assert_eq!(verified, Verified::Whole { entries });
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_concurrent_creates_of_each_kind_and_of_all_kinds() {
    let data = tempfile::tempdir().unwrap();
    let (app, caller) = started(&data).await;
    for kind in 0..collections(0).len() {
        let bodies = (0..CALLS).map(|n| collections(n)[kind].clone()).collect();
        all_are_made(&app, &caller, bodies).await;
    }
    let mixed = (CALLS..CALLS + CALLS / 4).flat_map(collections).collect();
    all_are_made(&app, &caller, mixed).await;
    app.stop().await;
}
