//! The life of an export to S3 on a running instance, all through the API: every five
//! minutes, a backfill of a month, a pause, another bucket. `end2end/exports.py` does the
//! same with the real clock.

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;
use weir_server::config::Config;
use weir_testkit::servers::{Moto, python};

use super::*;

/// Seconds per day.
const DAY: i64 = 86_400;

const BOTO: &str = "
import json, sys, boto3
url, bucket = json.load(sys.stdin)
s3 = boto3.client('s3', endpoint_url=url, region_name='eu-west-1',
                  aws_access_key_id='a', aws_secret_access_key='b')
";

const MAKE: &str = "
for name in ['first', 'second']:
    s3.create_bucket(Bucket=name, CreateBucketConfiguration={'LocationConstraint': 'eu-west-1'})
print('{}')";

/// The ids of events, by file names.
const READ: &str = "
keys = [o['Key'] for o in s3.list_objects_v2(Bucket=bucket).get('Contents', [])]
text = lambda key: s3.get_object(Bucket=bucket, Key=key)['Body'].read().splitlines()
print(json.dumps({key: [json.loads(line)['uuid'] for line in text(key)] for key in keys}))";

/// An S3 server with two buckets.
struct Storage(Moto);

impl Storage {
    async fn start() -> Self {
        let storage = Self(Moto::start().await);
        storage.boto(MAKE, "").await;
        storage
    }

    async fn boto(&self, script: &str, bucket: &str) -> Value {
        python(&format!("{BOTO}{script}"), &json!([self.0.url(), bucket])).await
    }

    /// The files of a bucket and the events in each.
    async fn files(&self, bucket: &str) -> BTreeMap<String, BTreeSet<String>> {
        let files = self.boto(READ, bucket).await;
        let read = |(name, lines): (&String, &Value)| {
            let lines = lines.as_array().unwrap();
            let ids: BTreeSet<String> =
                lines.iter().map(|id| id.as_str().unwrap().to_owned()).collect();
            assert_eq!(ids.len(), lines.len(), "{name} has an event twice");
            (name.clone(), ids)
        };
        files.as_object().unwrap().iter().map(read).collect()
    }

    fn export(&self, interval: &str, prefix: &str) -> Value {
        json!({
            "name": prefix, "interval": interval,
            "destination": {"type": "S3", "config": {
                "bucket_name": "first", "region": "eu-west-1", "prefix": prefix,
                "aws_access_key_id": "AKIDEXAMPLE", "aws_secret_access_key": "secret",
                "endpoint_url": self.0.url(),
            }},
        })
    }
}

/// An instance whose clock the test moves.
async fn start() -> (TestApp, Clock) {
    let clock = Clock::fixed(Timestamp::from_micros(NOW));
    let settings = |config: &mut Config| {
        config.egress_allow = "127.0.0.1".parse().unwrap();
        config.rate_per_minute = 0;
        config.rate_per_hour = 0;
    };
    let options = |options: &mut Options| {
        options.clock = clock.clone();
        options.exports =
            Settings { jitter: 0, tick: Duration::from_millis(50), ..Settings::default() };
    };
    (TestApp::with_settings_and_options(settings, options).await.set_up().await, clock)
}

/// Sends an event for each of these times, and waits until they are readable. Returns
/// their ids.
async fn send(app: &TestApp, times: &[Timestamp]) -> BTreeSet<String> {
    let mut ids = BTreeSet::new();
    let batch: Vec<Value> = times
        .iter()
        .map(|time| {
            let id = Uuid::new_v4().to_string();
            let event = json!({
                "event": "bought", "uuid": id, "distinct_id": "ada",
                "timestamp": time.to_string(),
            });
            ids.insert(id);
            event
        })
        .collect();
    let body = json!({"api_key": app.project_key(), "batch": batch});
    assert_eq!(app.anonymous().post("/batch/", &body).await.status, 200);
    app.app().ingest.applied().await;
    ids
}

/// Waits for the run of the interval with this end. It exported this many events.
async fn ran_until(caller: &Caller, path: &str, end: &str, events: usize) {
    let of_it = |list: &Value| {
        let runs = list["results"].as_array().unwrap().iter();
        let mut runs = runs.filter(|run| run["data_interval_end"] == end);
        runs.find(|run| !run["finished_at"].is_null()).cloned()
    };
    let list = until(caller, &format!("{path}runs/"), |list| of_it(list).is_some()).await;
    let run = of_it(&list).unwrap();
    assert_eq!(run["status"], "Completed", "{run}");
    assert_eq!(
        (&run["records_completed"], &run["records_total_count"]),
        (&json!(events), &json!(events)),
        "{run}"
    );
}

/// Waits for the end of the backfill in an answer. It had this many runs.
async fn filled(caller: &Caller, path: &str, answer: &Answer, runs: usize) {
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    let id = answer.json()["backfill_id"].as_str().unwrap().to_owned();
    let path = format!("{path}backfills/{id}/");
    let done = until(caller, &path, |backfill| !backfill["finished_at"].is_null()).await;
    assert_eq!(done["status"], "Completed", "{done}");
    assert_eq!(done["progress"]["total_runs"], runs, "{done}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_to_s3_through_its_life() {
    let storage = Storage::start().await;
    let (app, clock) = start().await;
    let owner = owner(&app).await;
    let (_, path) = made(&app, &owner, &storage.export("every 5 minutes", "five")).await;
    let file = |from: &str, to: &str| {
        format!("five/2026-05-28T20:{from}+00:00-2026-05-28T20:{to}+00:00.jsonl")
    };

    // 20:26:40: events until 20:30 are in the first file.
    let mut sent = send(&app, &[clock.now(); 40]).await;
    let month: Vec<Timestamp> =
        (1..=30).map(|days| clock.now().plus_seconds(-days * DAY)).collect();
    let past = send(&app, &month).await;
    sent.extend(past.iter().cloned());
    clock.advance(210);
    ran_until(&owner, &path, "2026-05-28T20:30:00Z", 70).await;
    let mut expected = BTreeMap::from([(file("25:00", "30:00"), sent)]);
    assert_eq!(storage.files("first").await, expected);

    // The next file has the events since then.
    let next = send(&app, &[clock.now(); 7]).await;
    clock.advance(300);
    ran_until(&owner, &path, "2026-05-28T20:35:00Z", 7).await;
    expected.insert(file("30:00", "35:00"), next);
    assert_eq!(storage.files("first").await, expected);

    // A month in daily intervals.
    let days = with(storage.export("day", "days"), "paused", json!(true));
    let (_, by_days) = made(&app, &owner, &days).await;
    let bounds = json!({"start_at": "2026-04-28", "end_at": "2026-05-28"});
    let begun = owner.post(&format!("{by_days}backfill/"), &bounds).await;
    filled(&owner, &by_days, &begun, 30).await;
    let (found, files): (BTreeMap<_, _>, BTreeMap<_, _>) =
        storage.files("first").await.into_iter().partition(|(name, _)| name.starts_with("days/"));
    assert!(
        found.contains_key(
            "days/2026-05-27T00:00:00+00:00-2026-05-28T00:00:00+00:00_backfill.jsonl"
        )
    );
    assert_eq!(found.len(), 30, "{found:?}");
    assert_eq!(found.values().flatten().cloned().collect::<BTreeSet<_>>(), past);
    assert_eq!(files, expected);
    expected.extend(found);

    // 20:35:10: events during a pause wait for a backfill. It begins with the interval in
    // which the pause began. It makes no difference whether the schedule has reached its
    // last boundary when the pause ends.
    assert_eq!(owner.post(&format!("{path}pause/"), &json!({})).await.status, 200);
    clock.advance(20);
    let missed = send(&app, &[clock.now(); 9]).await;
    clock.advance(580);
    let unpaused = owner.post(&format!("{path}unpause/"), &json!({"backfill": true})).await;
    // The two intervals without events have no runs.
    filled(&owner, &path, &unpaused, 1).await;
    let backfilled = file("35:00", "40:00").replace(".jsonl", "_backfill.jsonl");
    expected.insert(backfilled, missed);
    assert_eq!(storage.files("first").await, expected);

    // 20:45:10: another bucket, with the keys of the first.
    let other = json!({"destination": {"config": {"bucket_name": "second"}}});
    let changed = owner.patch(&path, &other).await;
    assert_eq!(changed.status, 200, "{:?}", changed.body);
    let later = send(&app, &[clock.now(); 5]).await;
    clock.advance(300);
    ran_until(&owner, &path, "2026-05-28T20:50:00Z", 5).await;
    let moved = BTreeMap::from([(file("45:00", "50:00"), later)]);
    assert_eq!(storage.files("second").await, moved);
    assert_eq!(storage.files("first").await, expected);
}
