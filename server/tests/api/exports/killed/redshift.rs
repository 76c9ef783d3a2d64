//! Redshift. A PostgreSQL executes its SQL here, and a stand-in its COPY. A run deletes
//! its events and inserts them, in one transaction.

use serde_json::{Value, json};
use weir_testkit::servers::{Hold, HoldingProxy, Moto, Postgres, RedshiftCopy};

use super::{BUCKET, Instance, boto};

/// Settings of the mode INSERT, through this proxy.
fn config(proxy: &HoldingProxy) -> Value {
    json!({
        "host": "127.0.0.1", "port": proxy.address().port(), "database": "postgres",
        "user": "weir", "password": "correct horse", "properties_data_type": "super",
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_in_redshift_holds_each_event_once() {
    let postgres = Postgres::like_redshift().await;
    let proxy = HoldingProxy::start(postgres.address()).await;
    let mut instance = Instance::start().await;
    // Within the rows; before the commit; after the commit; and when the rows of the
    // previous attempt are deleted but the new ones are not inserted.
    let holds = [
        Hold::Bytes(8 << 20),
        Hold::Request(b"COMMIT\0"),
        Hold::Answer(b"COMMIT\0"),
        Hold::Answer(b"DELETE FROM "),
    ];
    instance.export_and_kill(&proxy, &holds, "Redshift", &config(&proxy)).await;
    instance.assert_each_once(postgres.ask("SELECT uuid FROM events"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_redshift_copies_to_holds_each_event_once() {
    let (postgres, moto) = (Postgres::like_redshift().await, Moto::start().await);
    boto(&moto.url(), "eu-west-1", BUCKET).await;
    let redshift = RedshiftCopy::start(postgres.address(), moto.url()).await;
    let proxy = HoldingProxy::start(redshift.address()).await;
    let mut config = config(&proxy);
    config["mode"] = json!("COPY");
    config["copy_inputs"] = json!({
        "s3_bucket": "events", "region_name": "eu-west-1", "s3_key_prefix": "in",
        "authorization": RedshiftCopy::ROLE,
        "bucket_credentials": {"aws_access_key_id": "AKIDWRITER", "aws_secret_access_key": "w"},
    });
    let mut instance = Instance::with_host(moto.url()).await;
    // When all rows wait in the bucket; when Redshift has read them; after the commit,
    // before the bucket is cleared.
    let holds = [
        Hold::Request(b"COPY weir_rows"),
        Hold::Answer(b"COPY weir_rows"),
        Hold::Answer(b"COMMIT\0"),
    ];
    instance.export_and_kill(&proxy, &holds, "Redshift", &config).await;
    instance.assert_each_once(postgres.ask("SELECT uuid FROM events"));
    let count = "print(s3.list_objects_v2(Bucket='events')['KeyCount'])";
    assert_eq!(boto(&moto.url(), "eu-west-1", count).await, 0);
}
