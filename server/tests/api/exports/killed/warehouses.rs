//! Warehouses: one statement loads the files, and it is not executed twice. Snowflake is
//! emulated by fakesnow. BigQuery and Databricks are stand-ins that keep tables and jobs,
//! and do not load a file a second time, as the public references say. Other requests to
//! them are tested in `weir-export`.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;

use flate2::read::GzDecoder;
use serde_json::{Value, json};
use weir_testkit::servers::{
    Fakesnow, Hold, HoldingProxy, StandIn, StubAnswer, StubRequest, python,
};

use super::{Instance, texts};

/// A private key for tests only.
const KEY: &str = include_str!("../../../../../crates/export/tests/keys/rsa.pem");
/// Within the rows; before the statement that loads them; after it.
const COPIED: [Hold; 3] =
    [Hold::Bytes(3 << 20), Hold::Request(b"COPY INTO "), Hold::Answer(b"COPY INTO ")];

#[tokio::test(flavor = "multi_thread")]
async fn a_table_in_snowflake_holds_each_event_once() {
    let fakesnow = Fakesnow::start().await;
    let proxy = HoldingProxy::start(fakesnow.address()).await;
    let config = json!({
        "account": "org-account", "database": "DB", "warehouse": "COMPUTE_WH",
        "schema": "PUBLIC", "user": "weir", "password": "secret",
    });
    let mut instance = Instance::with_host(proxy.url()).await;
    instance.export_and_kill(&proxy, &COPIED, "Snowflake", &config).await;
    let read = r#"
import json, sys, snowflake.connector
con = snowflake.connector.connect(
    user="weir", password="secret", account="fakesnow", host="127.0.0.1", port=json.load(sys.stdin),
    protocol="http", database="DB", schema="PUBLIC",
    session_parameters={"CLIENT_OUT_OF_BAND_TELEMETRY_ENABLED": False})
rows = con.cursor().execute('SELECT "uuid" FROM "DB"."PUBLIC"."events"').fetchall()
print(json.dumps([row[0] for row in rows]))"#;
    let found = python(read, &json!(fakesnow.address().port())).await;
    instance.assert_each_once(texts(&found));
}

/// Tables with the ids of their events; jobs that are done.
#[derive(Default)]
struct Google {
    tables: BTreeMap<String, (Value, Vec<String>)>,
    jobs: BTreeSet<String>,
}

impl Google {
    fn answer(&mut self, request: &StubRequest) -> StubAnswer {
        let path = request.path.replace("%5F", "_");
        if path == "/token" {
            return StubAnswer::json(200, &json!({"access_token": "t", "expires_in": 3600}));
        }
        if path.starts_with("/upload/") {
            let (what, file) = parts(&request.body);
            return self.begin(&what, file);
        }
        let path = path.strip_prefix("/bigquery/v2/projects/acme/").unwrap();
        if let Some(job) = path.strip_prefix("jobs/") {
            return match self.jobs.contains(job) {
                true => StubAnswer::json(200, &json!({"status": {"state": "DONE"}})),
                false => StubAnswer::json(404, &json!({})),
            };
        }
        if let Some(table) = path.strip_prefix("datasets/web/tables/") {
            let found = match request.method.as_str() {
                "DELETE" => self.tables.remove(table).map(|(made, _)| made),
                _ => self.tables.get(table).map(|(made, _)| made.clone()),
            };
            return found
                .map_or(StubAnswer::json(404, &json!({})), |made| StubAnswer::json(200, &made));
        }
        match path {
            "jobs" => self.begin(&request.json(), &[]),
            "datasets/web" => StubAnswer::json(200, &json!({"location": "EU"})),
            _ => {
                assert_eq!(path, "datasets/web/tables");
                let made = request.json();
                let id = made["tableReference"]["tableId"].as_str().unwrap().to_owned();
                let is_there = self.tables.contains_key(&id);
                self.tables.entry(id).or_insert_with(|| (made.clone(), Vec::new()));
                StubAnswer::json(if is_there { 409 } else { 200 }, &made)
            }
        }
    }

    /// Runs a job immediately. A job with a known id does not run again.
    fn begin(&mut self, what: &Value, file: &[u8]) -> StubAnswer {
        let id = what["jobReference"]["jobId"].as_str().unwrap().to_owned();
        if !self.jobs.insert(id) {
            return StubAnswer::json(409, &json!({}));
        }
        let job = &what["configuration"];
        let (to, rows) = match job["query"]["query"].as_str() {
            Some(query) => {
                let (to, from) = query.split_once(" SELECT ").unwrap();
                let (to, from) = (named(to), named(from));
                (to, self.tables[from].1.clone())
            }
            None => (job["load"]["destinationTable"]["tableId"].as_str().unwrap(), ids(file)),
        };
        self.tables.get_mut(to).unwrap().1.extend(rows);
        StubAnswer::json(200, &json!({"status": {"state": "PENDING"}}))
    }
}

/// The table of the data set that a part of a statement names.
fn named(statement: &str) -> &str {
    let (_, rest) = statement.split_once("`acme.web.").unwrap();
    rest.split_once('`').unwrap().0
}

/// The request in a multipart body, and the file after it, followed by some bytes of the
/// form.
fn parts(body: &[u8]) -> (Value, &[u8]) {
    let behind_head = |from: usize| {
        let found = body[from..].windows(4).position(|end| end == b"\r\n\r\n");
        from + found.unwrap() + 4
    };
    let first = behind_head(0);
    let mut values = serde_json::Deserializer::from_slice(&body[first..]).into_iter::<Value>();
    let what = values.next().unwrap().unwrap();
    (what, &body[behind_head(first + values.byte_offset())..])
}

/// The ids of the events in a file of compressed lines.
#[expect(clippy::disallowed_methods, reason = "the destination compressed it")]
fn ids(file: &[u8]) -> Vec<String> {
    let mut lines = String::new();
    GzDecoder::new(file).read_to_string(&mut lines).unwrap();
    let id = |line: &str| {
        let row: Value = serde_json::from_str(line).unwrap();
        row["uuid"].as_str().unwrap().to_owned()
    };
    lines.lines().map(id).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_in_bigquery_holds_each_event_once() {
    let answer = |google: &mut Google, request: &StubRequest| Some(google.answer(request));
    let google = StandIn::start(Google::default(), answer).await;
    let proxy = HoldingProxy::start(google.address()).await;
    let config = json!({
        "project_id": "acme", "dataset_id": "web", "table_id": "events", "private_key": KEY,
        "private_key_id": "key-1", "token_uri": format!("{}/token", proxy.url()),
        "client_email": "weir@acme.iam.example",
    });
    let mut instance = Instance::with_host(proxy.url()).await;
    let holds =
        [Hold::Bytes(3 << 20), Hold::Request(b"INSERT INTO "), Hold::Answer(b"INSERT INTO ")];
    instance.export_and_kill(&proxy, &holds, "BigQuery", &config).await;
    let google = google.lock();
    // The staging tables are deleted.
    let tables: Vec<&String> = google.tables.keys().collect();
    assert_eq!(tables, ["events"]);
    instance.assert_each_once(google.tables["events"].1.clone());
}

/// Files of volumes, and the files that are loaded into the table.
#[derive(Default)]
struct Lake {
    columns: Vec<Value>,
    files: BTreeMap<String, Vec<u8>>,
    loaded: BTreeMap<String, Vec<u8>>,
}

impl Lake {
    fn answer(&mut self, request: &StubRequest) -> StubAnswer {
        if request.path == "/oidc/v1/token" {
            return StubAnswer::json(200, &json!({"access_token": "t", "expires_in": 3600}));
        }
        if let Some(path) = request.path.strip_prefix("/api/2.0/fs/files") {
            if request.method == "PUT" {
                self.files.insert(path.to_owned(), request.body.clone());
                return StubAnswer::empty(204);
            }
            return StubAnswer::empty(if self.files.contains_key(path) { 200 } else { 404 });
        }
        assert_eq!(request.path, "/api/2.0/sql/statements/");
        let statement = request.json()["statement"].as_str().unwrap().to_owned();
        let status = match self.run(&statement) {
            true => json!({"state": "SUCCEEDED"}),
            false => {
                let error =
                    json!({"error_code": "BAD_REQUEST", "message": "[TABLE_OR_VIEW_NOT_FOUND]"});
                json!({"state": "FAILED", "error": error})
            }
        };
        let manifest = json!({"schema": {"columns": self.columns}});
        StubAnswer::json(200, &json!({"statement_id": "1", "status": status, "manifest": manifest}))
    }

    /// Runs a statement; false if the table that it reads is missing.
    fn run(&mut self, statement: &str) -> bool {
        if statement.starts_with("SELECT * FROM ") {
            return !self.columns.is_empty();
        }
        if statement.starts_with("CREATE TABLE ") {
            let (_, columns) = statement.split_once(" (").unwrap();
            let columns = columns.strip_suffix(')').unwrap().split(", ");
            let column = |column: &str| {
                let (name, kind) = column.split_once(' ').unwrap();
                json!({"name": name.trim_matches('`'), "type_name": kind})
            };
            self.columns = columns.map(column).collect();
        } else if let Some(volume) = statement.strip_prefix("DROP VOLUME IF EXISTS ") {
            let directory = format!("/Volumes/{}/", volume.replace('`', "").replace('.', "/"));
            self.files.retain(|path, _| !path.starts_with(&directory));
        } else if statement.starts_with("COPY INTO ") {
            let (_, rest) = statement.split_once(" FROM '").unwrap();
            let (directory, _) = rest.split_once('\'').unwrap();
            let is_in = |path: &str| path.starts_with(directory) && path.ends_with(".parquet");
            for (path, file) in self.files.iter().filter(|(path, _)| is_in(path)) {
                // A file that was loaded before is skipped.
                self.loaded.entry(path.clone()).or_insert_with(|| file.clone());
            }
        } else {
            assert!(statement.starts_with("CREATE VOLUME IF NOT EXISTS "), "{statement}");
        }
        true
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_in_databricks_holds_each_event_once() {
    let answer = |lake: &mut Lake, request: &StubRequest| Some(lake.answer(request));
    let lake = StandIn::start(Lake::default(), answer).await;
    let proxy = HoldingProxy::start(lake.address()).await;
    let config = json!({
        "server_hostname": "dbc-1.cloud.databricks.com", "http_path": "/sql/1.0/warehouses/1a2b",
        "client_id": "client", "client_secret": "secret", "catalog": "main", "schema": "web",
        "table_name": "events",
    });
    let mut instance = Instance::with_host(proxy.url()).await;
    instance.export_and_kill(&proxy, &COPIED, "Databricks", &config).await;

    let folder = tempfile::tempdir().unwrap();
    let files: Vec<Vec<u8>> = lake.lock().loaded.values().cloned().collect();
    for (number, file) in files.iter().enumerate() {
        std::fs::write(folder.path().join(format!("{number}.parquet")), file).unwrap();
    }
    let read = "
import glob, json, sys, pyarrow.parquet as pq
files = glob.glob(json.load(sys.stdin) + '/*.parquet')
tables = [pq.read_table(file, columns=['uuid'], partitioning=None) for file in files]
print(json.dumps([uuid for table in tables for uuid in table.column('uuid').to_pylist()]))";
    let found = python(read, &json!(folder.path().to_str().unwrap())).await;
    instance.assert_each_once(texts(&found));
}
