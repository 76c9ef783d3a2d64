//! Databricks: a stand-in that keeps tables, volumes and statements as the public
//! reference of its REST interface describes, and checks every request. There is no local
//! server for it.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use parquet::file::reader::FileReader as _;
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::record::Field;
use serde_json::{Value, json};
use weir_export::destination::Destination;
use weir_export::destinations::DestinationAddresses;
use weir_model::exports::ExportModel;
use weir_testkit::servers::{StandIn, StubAnswer, StubRequest};

use crate::warehouse::{self, Act, Acts, ids, job, noise, row, rows, run, write};

const TABLE: &str = "`main`.`web`.`events`";

#[derive(Default)]
struct Lake {
    /// Names and types of the table's columns.
    columns: Vec<(String, String)>,
    rows: Vec<BTreeMap<String, Value>>,
    /// The files that `COPY INTO` has loaded.
    loaded: BTreeSet<String>,
    volumes: BTreeSet<String>,
    files: BTreeMap<String, Vec<u8>>,
    statements: Vec<String>,
    /// Running statements: their results, and how many polls still find them running.
    waiting: BTreeMap<String, (Value, u32)>,
    acts: Acts,
}

impl Lake {
    fn answer(&mut self, request: &StubRequest) -> Option<StubAnswer> {
        let mut what = format!("{} {}", request.method, request.path);
        if request.path == "/api/2.0/sql/statements/" {
            what = request.json()["statement"].as_str().unwrap().to_owned();
        }
        match self.acts.take(&what) {
            None => Some(self.act(request)),
            Some(Act::Say(said)) => Some(said),
            Some(Act::DoAndClose) => {
                self.act(request);
                None
            }
            Some(Act::Fail(reason)) => Some(failed(reason)),
        }
    }

    fn act(&mut self, request: &StubRequest) -> StubAnswer {
        if request.path == "/oidc/v1/token" {
            assert_eq!(request.body, b"grant_type=client_credentials&scope=all-apis");
            // client:secret
            assert_eq!(request.header("authorization"), "Basic Y2xpZW50OnNlY3JldA==");
            return StubAnswer::json(200, &json!({ "access_token": "t", "expires_in": 3600 }));
        }
        assert_eq!(request.header("authorization"), "Bearer t");
        if let Some(path) = request.path.strip_prefix("/api/2.0/fs/files") {
            return self.file(request, path);
        }
        if request.path == "/api/2.0/sql/statements/" {
            let what = request.json();
            assert_eq!(what["warehouse_id"], "1a2b");
            let statement = what["statement"].as_str().unwrap();
            if statement.starts_with("SELECT * FROM") && self.columns.is_empty() {
                return failed("BAD_REQUEST [TABLE_OR_VIEW_NOT_FOUND] leaked");
            }
            let columns = self.run(statement);
            let columns: Vec<Value> =
                columns.iter().map(|(n, t)| json!({ "name": n, "type_name": t })).collect();
            let id = format!("01f-{}", self.statements.len());
            let done = json!({
                "statement_id": id,
                "status": { "state": "SUCCEEDED" },
                "manifest": { "schema": { "columns": columns } },
            });
            self.waiting.insert(id.clone(), (done, 2));
            let status = json!({ "state": "PENDING" });
            return StubAnswer::json(200, &json!({ "statement_id": id, "status": status }));
        }
        let id = request.path.strip_prefix("/api/2.0/sql/statements/").unwrap();
        let (done, left) = self.waiting.get_mut(id).unwrap();
        if *left > 0 {
            *left -= 1;
            let status = json!({ "state": "RUNNING" });
            return StubAnswer::json(200, &json!({ "statement_id": id, "status": status }));
        }
        StubAnswer::json(200, done)
    }

    fn file(&mut self, request: &StubRequest, path: &str) -> StubAnswer {
        let (volume, _) = path.rsplit_once('/').unwrap();
        match request.method.as_str() {
            "PUT" => {
                assert_eq!(request.query, "overwrite=true");
                assert!(self.volumes.contains(volume), "{volume}");
                self.files.insert(path.to_owned(), request.body.clone());
                StubAnswer::empty(204)
            }
            "HEAD" if self.files.contains_key(path) => StubAnswer::empty(200),
            "HEAD" => StubAnswer::empty(404),
            method => panic!("{method} {path}"),
        }
    }

    /// Runs a statement and returns the columns of its result.
    fn run(&mut self, statement: &str) -> Vec<(String, String)> {
        self.statements.push(statement.to_owned());
        let path = |name: &str| format!("/Volumes/{}", name.replace('`', "").replace('.', "/"));
        if let Some(rest) = statement.strip_prefix("CREATE TABLE IF NOT EXISTS ") {
            let columns = rest.strip_prefix(TABLE).unwrap().trim().trim_matches(['(', ')']);
            if self.columns.is_empty() {
                let column = |column: &str| {
                    let (name, kind) = column.split_once(' ').unwrap();
                    (name.trim_matches('`').to_owned(), kind.to_owned())
                };
                self.columns = columns.split(", ").map(column).collect();
            }
        } else if let Some(name) = statement.strip_prefix("CREATE VOLUME IF NOT EXISTS ") {
            self.volumes.insert(path(name));
        } else if let Some(name) = statement.strip_prefix("CREATE VOLUME ") {
            assert!(self.volumes.insert(path(name)));
        } else if let Some(name) = statement.strip_prefix("DROP VOLUME IF EXISTS ") {
            let volume = path(name);
            self.volumes.remove(&volume);
            self.files.retain(|file, _| !file.starts_with(&format!("{volume}/")));
        } else if let Some(rest) = statement.strip_prefix("COPY INTO ") {
            self.copy(rest);
        } else if statement.starts_with("SELECT * FROM") {
            return self.columns.clone();
        } else {
            assert!(
                ["SELECT 1", "DESCRIBE SCHEMA `main`.`web`"].contains(&statement),
                "{statement}"
            );
        }
        Vec::new()
    }

    fn copy(&mut self, rest: &str) {
        let rest = rest.strip_prefix(TABLE).unwrap().strip_prefix(" FROM (SELECT ").unwrap();
        let (values, rest) = rest.split_once(" FROM '").unwrap();
        let (directory, rest) = rest.split_once("')").unwrap();
        let rest = rest
            .strip_prefix(
                " FILEFORMAT = PARQUET PATTERN = '*.parquet' COPY_OPTIONS ('mergeSchema' = '",
            )
            .unwrap();
        let evolves = rest == "true')";
        for value in values.split(", ") {
            let name = value.rsplit(' ').next().unwrap().trim_matches('`');
            let kind = match value.split_once('(') {
                Some(("PARSE_JSON", _)) => "VARIANT",
                Some(("CAST", _)) => "TIMESTAMP",
                _ => "STRING",
            };
            match self.columns.iter().find(|(other, _)| other == name) {
                Some((_, there)) if kind != "STRING" => assert_eq!(there, kind, "{name}"),
                Some(_) => {}
                None if evolves => self.columns.push((name.to_owned(), kind.to_owned())),
                None => panic!("the table has no {name}"),
            }
        }
        let is_in = |file: &&String| file.starts_with(directory) && file.ends_with(".parquet");
        let files: Vec<String> = self.files.keys().filter(is_in).cloned().collect();
        for file in files {
            if self.loaded.insert(file.clone()) {
                self.rows.extend(read(&self.files[&file]));
            }
        }
    }
}

/// A statement that failed, with this code and message.
fn failed(reason: &str) -> StubAnswer {
    let (code, message) = reason.split_once(' ').unwrap();
    let error = json!({ "error_code": code, "message": message });
    let status = json!({ "state": "FAILED", "error": error });
    StubAnswer::json(200, &json!({ "statement_id": "0", "status": status }))
}

/// The rows of a Parquet file.
fn read(file: &[u8]) -> Vec<BTreeMap<String, Value>> {
    let reader = SerializedFileReader::new(Bytes::copy_from_slice(file)).unwrap();
    let value = |field: &Field| match field {
        Field::Null => Value::Null,
        Field::Str(text) => Value::from(text.as_str()),
        Field::Long(number) => Value::from(*number),
        other => panic!("{other}"),
    };
    let rows = reader.get_row_iter(None).unwrap().map(Result::unwrap);
    rows.map(|row| {
        row.get_column_iter().map(|(name, field)| (name.clone(), value(field))).collect()
    })
    .collect()
}

struct Fixture {
    lake: StandIn<Lake>,
}

impl Fixture {
    async fn new() -> Self {
        Self { lake: StandIn::start(Lake::default(), Lake::answer).await }
    }

    fn destination(&self, changes: Value) -> Box<dyn Destination> {
        let mut config = json!({
            "server_hostname": "dbc-1.cloud.databricks.com",
            "http_path": "/sql/1.0/warehouses/1a2b",
            "client_id": "client",
            "client_secret": "secret",
            "catalog": "main",
            "schema": "web",
            "table_name": "events",
            "use_variant_type": true,
            "use_automatic_schema_evolution": true,
        });
        for (name, value) in changes.as_object().unwrap() {
            config[name] = value.clone();
        }
        let addresses =
            DestinationAddresses { databricks: self.lake.url(), ..DestinationAddresses::default() };
        warehouse::destination("Databricks", &config, addresses)
    }

    fn then(&self, part: &'static str, act: Act) {
        self.lake.lock().acts.then(part, act);
    }

    fn events(&self) -> Vec<String> {
        let lake = self.lake.lock();
        let id = |row: &BTreeMap<String, Value>| row["uuid"].as_str().unwrap().to_owned();
        let mut ids: Vec<String> = lake.rows.iter().map(id).collect();
        ids.sort();
        ids
    }

    fn is_clean(&self) -> bool {
        let lake = self.lake.lock();
        lake.volumes.is_empty() && lake.files.is_empty()
    }
}

#[tokio::test]
async fn events_arrive_and_the_volume_goes() {
    let fixture = Fixture::new().await;
    let destination = fixture.destination(json!({}));
    let job = job(destination.as_ref(), 1);
    let events = rows(&job, 1..=250);
    run(destination.as_ref(), job, events).await.unwrap();
    assert_eq!(fixture.events(), ids(1..=250));
    assert!(fixture.is_clean());
    let lake = fixture.lake.lock();
    let kinds: BTreeMap<_, _> = lake.columns.iter().cloned().collect();
    assert_eq!((kinds["properties"].as_str(), kinds["team_id"].as_str()), ("VARIANT", "BIGINT"));
    assert_eq!((kinds["timestamp"].as_str(), kinds["elements"].as_str()), ("TIMESTAMP", "STRING"));
    let row = &lake.rows[6];
    assert_eq!(row["timestamp"], "2026-07-01T10:00:00.123463+00:00");
    assert_eq!((&row["properties"], &row["team_id"]), (&json!("{\"n\":7}"), &json!(3)));
}

#[tokio::test]
async fn a_table_keeps_its_columns_unless_it_may_get_more() {
    let own = || {
        vec![
            ("uuid".to_owned(), "STRING".to_owned()),
            ("properties".to_owned(), "STRING".to_owned()),
        ]
    };
    for (evolves, columns) in [(false, 2), (true, 9)] {
        let fixture = Fixture::new().await;
        fixture.lake.lock().columns = own();
        let destination = fixture.destination(json!({ "use_automatic_schema_evolution": evolves }));
        let job = job(destination.as_ref(), 1);
        let events = rows(&job, 1..=3);
        run(destination.as_ref(), job, events).await.unwrap();
        assert_eq!(fixture.events(), ids(1..=3));
        let lake = fixture.lake.lock();
        assert_eq!((lake.columns.len(), lake.rows[0].len()), (columns, columns));
    }
}

#[tokio::test]
async fn properties_are_text_where_that_is_wanted() {
    let fixture = Fixture::new().await;
    let destination = fixture.destination(json!({ "use_variant_type": false }));
    let job = job(destination.as_ref(), 1);
    let events = rows(&job, 1..=3);
    run(destination.as_ref(), job, events).await.unwrap();
    let lake = fixture.lake.lock();
    assert!(lake.columns.contains(&("properties".to_owned(), "STRING".to_owned())));
    assert!(lake.statements.iter().all(|statement| !statement.contains("PARSE_JSON")));
}

#[tokio::test]
async fn nothing_to_export_copies_nothing() {
    let fixture = Fixture::new().await;
    let destination = fixture.destination(json!({}));
    let job = job(destination.as_ref(), 1);
    run(destination.as_ref(), job, Vec::new()).await.unwrap();
    assert!(fixture.is_clean());
    let lake = fixture.lake.lock();
    assert!(lake.statements.iter().all(|statement| !statement.starts_with("COPY")));
}

#[tokio::test]
async fn an_interrupted_run_of_many_files_restarts() {
    let fixture = Fixture::new().await;
    let destination = fixture.destination(json!({}));
    let job = job(destination.as_ref(), 1);
    let long = |n| row(&job, n, &format!("{{\"t\":\"{}\"}}", noise(n, 1 << 20)));
    let mut writer = destination.begin(job.clone()).await.unwrap();
    for n in 1..=40 {
        write(writer.as_mut(), vec![long(n)]).await.unwrap();
    }
    drop(writer);
    assert_eq!(fixture.events(), Vec::<String>::new());
    let mut writer = destination.begin(job.clone()).await.unwrap();
    for n in 1..=40 {
        write(writer.as_mut(), vec![long(n)]).await.unwrap();
    }
    writer.finish().await.unwrap();
    assert_eq!(fixture.events(), ids(1..=40));
    assert!(fixture.lake.lock().loaded.len() >= 2);
    assert!(fixture.is_clean());
}

#[tokio::test]
async fn a_copy_whose_answer_is_lost_is_not_done_twice() {
    let fixture = Fixture::new().await;
    let destination = fixture.destination(json!({}));
    let job = job(destination.as_ref(), 1);
    let events = rows(&job, 1..=30);
    fixture.then("COPY INTO", Act::DoAndClose);
    let failure = run(destination.as_ref(), job.clone(), events.clone()).await.unwrap_err();
    assert!(failure.is_retryable, "{failure}");
    assert_eq!(fixture.events(), ids(1..=30));
    run(destination.as_ref(), job, events).await.unwrap();
    assert_eq!(fixture.events(), ids(1..=30));
    assert!(fixture.is_clean());
}

#[tokio::test]
async fn failures_say_if_a_retry_can_help_and_quote_nothing() {
    let upload = "PUT /api/2.0/fs/files";
    for (part, act, class, is_retryable) in [
        ("POST /oidc", Act::Say(StubAnswer::json(401, &json!({}))), "AuthenticationFailed", false),
        ("POST /oidc", Act::Say(StubAnswer::empty(503)), "Unavailable", true),
        ("CREATE TABLE", Act::Say(StubAnswer::empty(403)), "PermissionDenied", false),
        ("CREATE TABLE", Act::Fail("BAD_REQUEST [SCHEMA_NOT_FOUND] leaked"), "NotFound", false),
        (
            "CREATE VOLUME",
            Act::Fail("BAD_REQUEST [INSUFFICIENT_PERMISSIONS] leaked"),
            "PermissionDenied",
            false,
        ),
        (upload, Act::Say(StubAnswer::empty(429).with("retry-after", "3")), "Unavailable", true),
        (upload, Act::Say(StubAnswer::empty(404)), "NotFound", false),
        ("COPY INTO", Act::Fail("TEMPORARILY_UNAVAILABLE leaked"), "Unavailable", true),
        (
            "COPY INTO",
            Act::Fail("BAD_REQUEST [CAST_INVALID_INPUT] leaked"),
            "StatementRefused",
            false,
        ),
    ] {
        let fixture = Fixture::new().await;
        fixture.then(part, act);
        let destination = fixture.destination(json!({}));
        let job = job(destination.as_ref(), 1);
        let events = rows(&job, 1..=3);
        let failure = run(destination.as_ref(), job, events).await.unwrap_err();
        assert_eq!((failure.class, failure.is_retryable), (class, is_retryable), "{part}");
        assert!(!failure.message.contains("leaked"), "{failure}");
        assert_eq!(fixture.events(), Vec::<String>::new(), "{part}");
    }
}

#[tokio::test]
async fn a_connection_test_leaves_nothing_and_names_the_failed_step() {
    let fixture = Fixture::new().await;
    let destination = fixture.destination(json!({}));
    for step in 0..destination.steps().len() {
        destination.test(step, ExportModel::Events).await.unwrap();
    }
    assert!(fixture.is_clean());
    fixture.then("PUT /api", Act::Say(StubAnswer::empty(403)));
    assert_eq!(
        destination.test(3, ExportModel::Events).await.unwrap_err().class,
        "PermissionDenied"
    );
    assert!(fixture.is_clean());
}
