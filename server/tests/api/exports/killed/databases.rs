//! PostgreSQL, where a run is one transaction, and HTTP, where acknowledged events stay.

use serde_json::json;
use weir_testkit::servers::{Hold, HoldingProxy, Postgres, Receiver};

use super::Instance;

#[tokio::test(flavor = "multi_thread")]
async fn a_table_in_postgres_holds_each_event_once() {
    let postgres = Postgres::start().await;
    let proxy = HoldingProxy::start(postgres.address()).await;
    let config = json!({
        "host": "127.0.0.1", "port": proxy.address().port(), "database": "postgres",
        "user": "weir", "password": "correct horse",
    });
    let mut instance = Instance::start().await;
    // Within the rows; before the commit; after the commit.
    let holds = [Hold::Bytes(8 << 20), Hold::Request(b"COMMIT\0"), Hold::Answer(b"COMMIT\0")];
    instance.export_and_kill(&proxy, &holds, "Postgres", &config).await;
    instance.assert_each_once(postgres.ask("SELECT uuid FROM events"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_gets_each_event_at_least_once() {
    let receiver = Receiver::start(&[]).await;
    let proxy = HoldingProxy::start(receiver.address()).await;
    let config = json!({"url": format!("{}/batch/", proxy.url()), "token": "phc_key"});
    let mut instance = Instance::start().await;
    // In the third request; after an accepted request.
    let holds = [Hold::Bytes(12 << 20), Hold::Answer(b"POST ")];
    instance.export_and_kill(&proxy, &holds, "HTTP", &config).await;
    let kept = receiver.seen().by_uuid();
    // The answer to one request was lost, so its events were sent again.
    assert!(kept.values().any(|times| *times > 1));
    instance.assert_each_once(kept.into_keys().collect());
}
