//! The mode COPY: files in a bucket, and a statement that loads them, against moto and
//! [`RedshiftCopy`].

use serde_json::{Value, json};
use tokio_postgres::Client;
use weir_export::destination::{Altered, Destination, Failure};
use weir_export::destinations::DestinationAddresses;
use weir_export::rows::EventWithPerson;
use weir_model::exports::ExportModel;
use weir_testkit::servers::{Hold, HoldingProxy, Postgres, RedshiftCopy};

use crate::files::Bucket;
use crate::postgres::{
    alterations, client, job, opened, record, records, rows, two_runs_of_persons, types, write,
};
use crate::warehouse;

/// The directory of the run's files.
const DIRECTORY: &str = "in/it's/00000000-0000-0000-0000-000000000001/\
                         00000000-0000-0000-0000-000000000002";
const COUNTS: &str = "SELECT count(*), count(DISTINCT uuid) FROM events";

/// A database that loads from a bucket.
struct Setting {
    bucket: Bucket,
    client: Client,
    reader: RedshiftCopy,
    _server: Postgres,
}

impl Setting {
    async fn start() -> Self {
        let (server, bucket) = (Postgres::like_redshift().await, Bucket::start().await);
        let client = client(&server).await;
        let reader = RedshiftCopy::start(server.address(), bucket.url()).await;
        Self { bucket, client, reader, _server: server }
    }

    /// The destination. `more` has additional settings.
    fn at(&self, more: Value, more_inputs: Value) -> Box<dyn Destination> {
        let mut config = config(more_inputs);
        config["port"] = json!(self.reader.address().port());
        config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let addresses =
            DestinationAddresses { s3: self.bucket.url(), ..DestinationAddresses::default() };
        warehouse::destination("Redshift", &config, addresses)
    }
}

/// Settings of the mode. `more_inputs` replace some of `copy_inputs`.
fn config(more_inputs: Value) -> Value {
    let mut inputs = json!({
        "s3_bucket": "events", "region_name": "eu-west-1", "s3_key_prefix": "/in/it's/",
        "authorization": RedshiftCopy::ROLE,
        "bucket_credentials": {"aws_access_key_id": "AKIDWRITER", "aws_secret_access_key": "w"},
    });
    inputs.as_object_mut().unwrap().extend(more_inputs.as_object().unwrap().clone());
    json!({
        "host": "127.0.0.1", "database": "postgres", "user": "weir", "password": "correct horse",
        "mode": "COPY", "copy_inputs": inputs,
    })
}

/// An attempt of a run, and the clean-up if it fails.
async fn attempt(
    destination: &dyn Destination,
    records: &[EventWithPerson],
) -> Result<Vec<Altered>, Failure> {
    let columns = destination.columns();
    let mut writer = destination.begin(job(&columns)).await?;
    let done = match write(writer.as_mut(), &columns, records).await {
        Ok(()) => writer.finish().await,
        failed => failed,
    };
    if done.is_err() {
        writer.abort().await;
    }
    done.map(|()| writer.altered())
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_arrive_once_by_way_of_a_bucket_that_is_empty_afterwards() {
    let setting = Setting::start().await;
    let properties = r#"{"n": 9007199254740993, "t": "it's \\ \u0000", "$set": {"a": [null]}}"#;
    let mut strange = vec![record(1, properties)];
    strange.extend(records(3_000).into_iter().skip(1));
    strange[1].event.properties = format!("{{\"long\":\"{}\"}}", "x".repeat(70_000));
    for (table, json_type, stored) in
        [("events", "super", "super"), ("texts", "varchar", "character varying(65535)")]
    {
        let more = json!({"properties_data_type": json_type, "table_name": table});
        let destination = setting.at(more, json!({}));
        for _ in 0..2 {
            let altered = attempt(destination.as_ref(), &strange).await.unwrap();
            let alterations = alterations(&altered);
            let long = alterations.iter().find(|(event, ..)| *event == Some(2)).unwrap();
            assert_eq!(long.1, "properties");
            assert_eq!(
                alterations.len(),
                if json_type == "super" { 2 } else { 1 },
                "{alterations:?}"
            );
            assert_eq!(setting.bucket.keys().await, Vec::<String>::new());
        }
        let found = types(&setting.client, table).await;
        assert!(found.contains(&format!("properties|{stored}")), "{found:?}");
        let counts = format!("SELECT count(*), count(DISTINCT uuid) FROM {table}");
        assert_eq!(rows(&setting.client, &counts).await, ["3000|3000"]);
    }
    assert_eq!(
        rows(
            &setting.client,
            "SET timezone = 'UTC'; SELECT properties->>'n', properties->>'t', set, distinct_id, \
             elements, team_id, timestamp FROM events ORDER BY uuid LIMIT 2"
        )
        .await,
        [
            "9007199254740993|it's \\ |{\"a\": [null]}|ada\tℵ\\\n||3|\
             2026-06-01 10:00:05.250001+00",
            "NULL|NULL|NULL|ada\tℵ\\\n||3|2026-06-01 10:00:05.250002+00",
        ]
    );
    let asked = setting.reader.asked();
    assert_eq!(asked.len(), 4);
    let role = RedshiftCopy::ROLE;
    let place = format!("s3://events/{}/manifest", DIRECTORY.replace('\'', "''"));
    let expected = format!(
        "COPY weir_rows (\"uuid\", \"event\", \"properties\", \"elements\", \"set\", \
         \"set_once\", \"distinct_id\", \"team_id\", \"ip\", \"site_url\", \"timestamp\") \
         FROM '{place}' IAM_ROLE '{role}' REGION 'eu-west-1' MANIFEST FORMAT AS JSON 'auto' GZIP \
         TIMEFORMAT 'auto' COMPUPDATE OFF"
    );
    assert_eq!(asked[0], expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn persons_come_the_same_way() {
    let setting = Setting::start().await;
    let more = json!({"properties_data_type": "super", "table_name": "persons"});
    let destination = setting.at(more, json!({}));
    two_runs_of_persons(destination.as_ref(), &setting.client, "persons").await;
    assert_eq!(setting.bucket.keys().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_cut_before_its_copy_is_done_again() {
    let setting = Setting::start().await;
    let proxy = HoldingProxy::start(setting.reader.address()).await;
    let destination = setting.at(json!({"port": proxy.address().port()}), json!({}));
    let columns = destination.columns();
    let mut writer = destination.begin(job(&columns)).await.unwrap();
    write(writer.as_mut(), &columns, &records(1_000)).await.unwrap();
    proxy.hold(Hold::Request(b"COPY weir_rows"));
    tokio::select! {
        ended = writer.finish() => panic!("{ended:?}"),
        () = proxy.wait_until_held() => {}
    }
    drop(writer);
    proxy.open();
    let file = |number: u32| format!("{DIRECTORY}/{number:05}.json.gz");
    let left = [file(0), format!("{DIRECTORY}/manifest")];
    assert_eq!(setting.bucket.keys().await, left);
    assert_eq!(rows(&setting.client, COUNTS).await, ["0|0"]);

    // The earlier attempt had two more files.
    for number in [1, 2] {
        let script = "s3.put_object(Bucket='events', Key=given['key'], Body=b'old')\nprint('{}')";
        setting.bucket.boto(script, json!({"key": file(number)})).await;
    }
    assert_eq!(attempt(destination.as_ref(), &records(1_000)).await, Ok(Vec::new()));
    assert_eq!(rows(&setting.client, COUNTS).await, ["1000|1000"]);
    assert_eq!(setting.bucket.keys().await, Vec::<String>::new());
    assert_eq!(setting.reader.asked().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_read_access_to_the_bucket_is_final() {
    let setting = Setting::start().await;
    let keys = |id: &str, secret: &str| json!({"authorization": {"aws_access_key_id": id, "aws_secret_access_key": secret}});
    for (inputs, class) in [
        (json!({"authorization": "arn:aws:iam::123456789012:role/other"}), "WrongRole"),
        (keys("AKIAOTHER", "canary"), "InvalidCredentials"),
    ] {
        let destination = setting.at(json!({}), inputs);
        let failure = attempt(destination.as_ref(), &records(10)).await.unwrap_err();
        assert_eq!((failure.class, failure.is_retryable), (class, false));
        assert!(failure.message.contains("copy_inputs.authorization"), "{failure}");
        for secret in ["canary", "AKIAOTHER", "arn:aws"] {
            assert!(!failure.to_string().contains(secret), "{failure}");
        }
        assert_eq!(rows(&setting.client, COUNTS).await, ["0|0"]);
        assert_eq!(setting.bucket.keys().await, Vec::<String>::new());
    }
    // Valid keys, one of which contains special characters.
    let [id, secret] = RedshiftCopy::KEYS;
    let destination = setting.at(json!({}), keys(id, secret));
    assert_eq!(attempt(destination.as_ref(), &records(10)).await, Ok(Vec::new()));
    assert_eq!(rows(&setting.client, COUNTS).await, ["10|10"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_without_write_access_is_reported() {
    let setting = Setting::start().await;
    let destination = setting.at(json!({}), json!({"s3_bucket": "others"}));
    let failure = attempt(destination.as_ref(), &records(10)).await.unwrap_err();
    assert_eq!((failure.class, failure.is_retryable), ("NoSuchBucket", false));
    assert_eq!(setting.reader.asked(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_test_reaches_the_bucket_and_leaves_nothing() {
    let setting = Setting::start().await;
    for (inputs, expected) in [
        (json!({}), [None; 6]),
        (
            json!({"s3_bucket": "others"}),
            [None, None, None, None, Some("NoSuchBucket"), Some("NoSuchBucket")],
        ),
    ] {
        let destination = setting.at(json!({}), inputs);
        let mut outcomes = Vec::new();
        for step in 0..destination.steps().len() {
            outcomes.push(
                destination
                    .test(step, ExportModel::Events)
                    .await
                    .err()
                    .map(|failure| failure.class),
            );
        }
        assert_eq!(outcomes, expected);
        assert_eq!(setting.bucket.keys().await, Vec::<String>::new());
    }
    let tables = "SELECT count(*) FROM pg_class WHERE relname IN ('events', 'weir_rows')";
    assert_eq!(rows(&setting.client, tables).await, ["0"]);
}

#[tokio::test]
async fn settings_that_cannot_work_are_final() {
    let mut without = config(json!({}));
    without["copy_inputs"] = Value::Null;
    for config in [
        without,
        config(json!({"authorization": "reader"})),
        config(json!({"region_name": "evil.example/#"})),
        config(json!({"s3_bucket": "evil.example/#"})),
    ] {
        let failure = opened("Redshift", config.as_object().unwrap(), &[]).err().unwrap();
        assert_eq!((failure.class, failure.is_retryable), ("InvalidConfig", false), "{config}");
    }
}
