//! The server is killed during a run, and started again. Every event is at the
//! destination, exactly once where that is possible, and the counts agree.
//!
//! The position of the run at that moment is chosen by a proxy to its destination, which
//! blocks there ([`HoldingProxy`]). No test waits for a fixed time.

mod databases;
mod files;
mod redshift;
mod service;
mod warehouses;

use std::path::{Path, PathBuf};

use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;
use uuid::Uuid;
use weir_testkit::Caller;
use weir_testkit::servers::{Hold, HoldingProxy, python};

use super::until;
use crate::process::{Serving, set_up_with, weir_through};

/// Events of a run. Files are split at about 4 MiB of events.
const EVENTS: usize = 4_000;
/// Events of a request.
const EVENTS_PER_BATCH: usize = 250;
/// Distinct users of the events.
const USERS: usize = 20;
/// The day of all events, and the next day.
const DAYS: [&str; 2] = ["2025-03-04", "2025-03-05"];
/// A process that is started with this prefix ends when this process ends, for any
/// reason.
const WITH_THE_TEST: [&str; 4] = ["/usr/bin/setpriv", "--pdeathsig", "KILL", "--"];
/// Makes a bucket in the region eu-west-1, by [`boto`].
const BUCKET: &str = "
s3.create_bucket(Bucket='events', CreateBucketConfiguration={'LocationConstraint': 'eu-west-1'})
print('{}')";

/// The program with its own data directory.
struct Instance {
    folder: TempDir,
    /// Address of Snowflake, Google, Databricks and the S3 of Redshift, if they are
    /// emulated.
    host: Option<String>,
    made: Value,
    serving: Option<Serving>,
    /// The events that were sent, in order of their ids.
    sent: Vec<String>,
}

/// An export and its running backfill.
struct Export {
    path: String,
    backfill: String,
}

fn weir(folder: &Path) -> Command {
    let mut command = weir_through(&WITH_THE_TEST.map(str::to_owned), folder);
    command.args(["--egress-allow", "127.0.0.1", "--rate-per-minute", "0", "--rate-per-hour", "0"]);
    command.arg("--local-exports").arg(folder.join("exports"));
    command
}

/// An event whose text compresses badly.
fn event(number: usize, name: &str, id: Uuid) -> Value {
    let text: String = (0..150).map(|_| Uuid::new_v4().simple().to_string()).collect();
    json!({
        "event": name, "uuid": id.to_string(), "distinct_id": format!("user-{}", number % USERS),
        "timestamp": format!("{}T{:02}:{:02}:00Z", DAYS[0], number % 24, number % 60),
        "properties": {"number": number, "text": text},
    })
}

impl Instance {
    /// Starts an instance and sends the events.
    async fn start() -> Self {
        Self::with(None).await
    }

    /// The same with Snowflake, Google, Databricks and the S3 of Redshift at this
    /// address.
    async fn with_host(host: String) -> Self {
        Self::with(Some(host)).await
    }

    async fn with(host: Option<String>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("exports")).unwrap();
        let made = set_up_with(weir(folder.path()), "plum-otter-violin-93").await;
        assert!(made.ok, "{}", made.err);
        let made = serde_json::from_str(&made.out).unwrap();
        let mut instance = Self { folder, host, made, serving: None, sent: Vec::new() };
        instance.go_on().await;
        instance.ingest().await;
        instance
    }

    /// Starts the service again with its existing data.
    async fn go_on(&mut self) {
        let folder = self.folder.path();
        self.serving = Some(match &self.host {
            None => Serving::start_with(weir(folder)).await,
            Some(host) => Serving::launch(service::command(folder, host)).await,
        });
    }

    async fn kill(&mut self) {
        let serving = self.serving.take().unwrap();
        serving.signal(Signal::KILL);
        assert_eq!(serving.ended().await, None);
    }

    fn caller(&self) -> Caller {
        let key = self.made["personal_api_key"].as_str().unwrap();
        self.serving.as_ref().unwrap().caller.with_key(key)
    }

    /// A path below the project.
    fn path(&self, rest: &str) -> String {
        format!("/api/projects/{}/{rest}", self.made["project_id"])
    }

    /// The directory of exports to files of this machine.
    fn exports(&self) -> PathBuf {
        self.folder.path().join("exports")
    }

    /// Sends the events and waits until all can be read.
    async fn ingest(&mut self) {
        let caller = self.caller();
        for first in (0..EVENTS).step_by(EVENTS_PER_BATCH) {
            let batch: Vec<Value> = (first..first + EVENTS_PER_BATCH)
                .map(|number| {
                    let id = Uuid::new_v4();
                    self.sent.push(id.to_string());
                    // The last event of each user has another name.
                    let name = if number < EVENTS - USERS { "bought" } else { "last" };
                    event(number, name, id)
                })
                .collect();
            let body = json!({"api_key": self.made["project_api_key"], "batch": batch});
            let answer = caller.post("/batch/", &body).await;
            assert_eq!(answer.status, 200, "{:?}", answer.body);
        }
        self.sent.sort_unstable();
        // Events of one user become readable in order.
        let path = self.path("events/?event=last");
        let is_all = |list: &Value| list["results"].as_array().unwrap().len() == USERS;
        until(&caller, &path, is_all).await;
    }

    /// Creates an export and starts a backfill of all events in one run.
    async fn export(&self, kind: &str, config: &Value) -> Export {
        let caller = self.caller();
        // A paused export has no other runs.
        let body = json!({
            "name": kind, "interval": "day", "paused": true,
            "destination": {"type": kind, "config": config},
        });
        let made = caller.post(&self.path("batch_exports/"), &body).await;
        assert_eq!(made.status, 201, "{:?}", made.body);
        let path = self.path(&format!("batch_exports/{}/", made.json()["id"].as_str().unwrap()));
        let bounds = json!({"start_at": DAYS[0], "end_at": DAYS[1]});
        let begun = caller.post(&format!("{path}backfill/"), &bounds).await;
        assert_eq!(begun.status, 200, "{:?}", begun.body);
        let backfill = begun.json()["backfill_id"].as_str().unwrap().to_owned();
        Export { path, backfill }
    }

    /// The only run of an export.
    async fn run(&self, export: &Export) -> Value {
        let list = self.caller().get(&format!("{}runs/", export.path)).await.json();
        let runs = list["results"].as_array().unwrap();
        assert_eq!(runs.len(), 1, "{list}");
        runs[0].clone()
    }

    /// Exports through this proxy, and kills the service whenever the proxy blocks. The
    /// restarted service continues the run. After the last time the run completes.
    async fn export_and_kill(
        &mut self,
        proxy: &HoldingProxy,
        holds: &[Hold],
        kind: &str,
        config: &Value,
    ) {
        let mut made = None;
        for hold in holds {
            proxy.hold(*hold);
            let export = match made.take() {
                None => self.export(kind, config).await,
                Some(export) => {
                    self.go_on().await;
                    export
                }
            };
            proxy.wait_until_held().await;
            let run = self.run(&export).await;
            assert_eq!((&run["status"], &run["finished_at"]), (&json!("Running"), &Value::Null));
            assert_eq!(run["records_total_count"], EVENTS, "{run}");
            self.kill().await;
            proxy.open();
            made = Some(export);
        }
        self.go_on().await;
        self.assert_completed(&made.unwrap(), holds.len() + 1).await;
    }

    /// Waits for the end of the run. `tries` is the number of its attempts, which shows
    /// that it was interrupted.
    async fn assert_completed(&self, export: &Export, tries: usize) {
        let caller = self.caller();
        let backfill = format!("{}backfills/{}/", export.path, export.backfill);
        let done = until(&caller, &backfill, |backfill| !backfill["finished_at"].is_null()).await;
        let run = self.run(export).await;
        assert_eq!((&done["status"], &run["status"]), (&json!("Completed"), &json!("Completed")));
        assert_eq!(
            (&run["records_completed"], &run["records_total_count"]),
            (&json!(EVENTS), &json!(EVENTS)),
            "{run}"
        );
        let id = run["id"].as_str().unwrap();
        let log = caller.get(&format!("{}runs/{id}/logs/?limit=500", export.path)).await.json();
        let begins = format!("Try {tries}: ");
        let is_it = |line: &Value| line["message"].as_str().unwrap().starts_with(&begins);
        assert!(log["results"].as_array().unwrap().iter().any(is_it), "{begins}{log}");
    }

    /// Asserts that these are the events that were sent, each once.
    fn assert_each_once(&self, mut found: Vec<String>) {
        found.sort_unstable();
        assert_eq!(found.len(), self.sent.len());
        // A comparison without output of the lists, because they are too long to read.
        assert!(found == self.sent, "other events arrived than were sent");
    }
}

/// The output of a script; `s3` is Amazon's client for the server at this address.
async fn boto(url: &str, region: &str, script: &str) -> Value {
    let prelude = "
import json, sys, boto3
url, region = json.load(sys.stdin)
s3 = boto3.client('s3', endpoint_url=url, region_name=region,
                  aws_access_key_id='a', aws_secret_access_key='b')
";
    python(&format!("{prelude}{script}"), &json!([url, region])).await
}

/// The texts in a JSON list.
fn texts(list: &Value) -> Vec<String> {
    list.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}
