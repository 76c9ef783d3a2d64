//! BigQuery: a stand-in that keeps tables and jobs as the public reference of its REST
//! interface describes, and checks every request. There is no local server for it.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use flate2::read::GzDecoder;
use ring::signature::{KeyPair as _, RSA_PKCS1_2048_8192_SHA256, RsaKeyPair, UnparsedPublicKey};
use serde_json::{Value, json};
use weir_export::destination::{Destination, Failure};
use weir_export::destinations::DestinationAddresses;
use weir_model::exports::ExportModel;
use weir_testkit::servers::{StandIn, StubAnswer, StubRequest};

use crate::warehouse::{
    self, Act, Acts, KEY, ids, job, job_of_persons, noise, person, row, rows, run, uuid, write,
};

const PROJECT: &str = "/bigquery/v2/projects/my%2Dproject";
const TOKEN: &str = "token-1";

#[derive(Default)]
struct Table {
    made: Value,
    rows: Vec<Value>,
}

#[derive(Default)]
struct Google {
    tables: BTreeMap<String, Table>,
    /// The outcome of each job, and how many polls still find it running.
    jobs: BTreeMap<String, (Option<&'static str>, u32)>,
    calls: Vec<String>,
    merges: Vec<String>,
    acts: Acts,
}

impl Google {
    fn answer(&mut self, request: &StubRequest) -> Option<StubAnswer> {
        let call = format!("{} {}", request.method, request.path);
        self.calls.push(call.clone());
        match self.acts.take(&call) {
            None => Some(self.act(request, None)),
            Some(Act::Say(said)) => Some(said),
            Some(Act::DoAndClose) => {
                self.act(request, None);
                None
            }
            // The requested job fails.
            Some(Act::Fail(reason)) => Some(self.act(request, Some(reason))),
        }
    }

    fn act(&mut self, request: &StubRequest, failing: Option<&'static str>) -> StubAnswer {
        if request.path == "/token" {
            return token(request);
        }
        if request.header("authorization") != format!("Bearer {TOKEN}") {
            return StubAnswer::json(401, &json!({}));
        }
        let upload = format!("/upload{PROJECT}/jobs");
        if request.path == upload {
            assert_eq!(
                (request.method.as_str(), request.query.as_str()),
                ("POST", "uploadType=multipart")
            );
            let (what, file) = parts(request);
            return self.begin(&what, file, failing);
        }
        let path = request.path.strip_prefix(PROJECT).unwrap_or_else(|| panic!("{}", request.path));
        let tables = "/datasets/web/tables";
        match (request.method.as_str(), path) {
            ("GET", "/datasets/web") => StubAnswer::json(200, &json!({ "location": "EU" })),
            ("POST", path) if path == tables => {
                let made = request.json();
                let reference = &made["tableReference"];
                assert_eq!(
                    (&reference["projectId"], &reference["datasetId"]),
                    (&json!("my-project"), &json!("web"))
                );
                let id = reference["tableId"].as_str().unwrap().to_owned();
                if self.tables.contains_key(&id) {
                    return StubAnswer::json(409, &json!({}));
                }
                self.tables.insert(id, Table { made: made.clone(), rows: Vec::new() });
                StubAnswer::json(200, &made)
            }
            ("POST", "/jobs") => self.begin(&request.json(), Vec::new(), failing),
            (method, path) => {
                if let Some(id) = path.strip_prefix("/datasets/web/tables/") {
                    let id = id.replace("%5F", "_");
                    let found = match method {
                        "GET" => self.tables.get(&id).map(|table| table.made.clone()),
                        "DELETE" => self.tables.remove(&id).map(|_| Value::Null),
                        _ => panic!("{method} {path}"),
                    };
                    return found.map_or(StubAnswer::json(404, &json!({})), |table| {
                        StubAnswer::json(200, &table)
                    });
                }
                let id = path.strip_prefix("/jobs/").unwrap_or_else(|| panic!("{method} {path}"));
                assert_eq!((method, request.query.as_str()), ("GET", "location=EU"));
                let Some((failed, left)) = self.jobs.get_mut(&id.replace("%5F", "_")) else {
                    return StubAnswer::json(404, &json!({}));
                };
                let status = match (*left, *failed) {
                    (0, None) => json!({ "state": "DONE" }),
                    (0, Some(reason)) => {
                        json!({ "state": "DONE", "errorResult": { "reason": reason, "message": "leaked" } })
                    }
                    _ => json!({ "state": "RUNNING" }),
                };
                *left = left.saturating_sub(1);
                StubAnswer::json(200, &json!({ "status": status }))
            }
        }
    }

    /// A new job. It takes effect immediately, however long it reports that it is
    /// running.
    fn begin(&mut self, what: &Value, file: Vec<u8>, failing: Option<&'static str>) -> StubAnswer {
        let reference = &what["jobReference"];
        assert_eq!(
            (&reference["projectId"], &reference["location"]),
            (&json!("my-project"), &json!("EU"))
        );
        let id = reference["jobId"].as_str().unwrap().to_owned();
        if self.jobs.contains_key(&id) {
            return StubAnswer::json(
                409,
                &json!({ "error": { "errors": [{ "reason": "duplicate" }] } }),
            );
        }
        if failing.is_none() {
            let load = &what["configuration"]["load"];
            let query = &what["configuration"]["query"];
            if load.is_object() {
                self.load(load, &file);
            } else {
                assert_eq!(query["useLegacySql"], false);
                self.query(query["query"].as_str().unwrap());
            }
        }
        self.jobs.insert(id, (failing, 2));
        StubAnswer::json(200, &json!({ "status": { "state": "PENDING" } }))
    }

    #[expect(clippy::disallowed_methods, reason = "the destination compressed it")]
    fn load(&mut self, load: &Value, file: &[u8]) {
        assert_eq!(load["sourceFormat"], "NEWLINE_DELIMITED_JSON");
        assert_eq!(load["writeDisposition"], "WRITE_APPEND");
        assert_eq!(load["createDisposition"], "CREATE_NEVER");
        let id = load["destinationTable"]["tableId"].as_str().unwrap();
        let table = self.tables.get_mut(id).unwrap();
        let mut lines = String::new();
        GzDecoder::new(file).read_to_string(&mut lines).unwrap();
        let fields = table.made["schema"]["fields"].as_array().unwrap();
        for line in lines.lines() {
            let row: Value = serde_json::from_str(line).unwrap();
            for (name, value) in row.as_object().unwrap() {
                let field = fields.iter().find(|field| field["name"] == name.as_str()).unwrap();
                let fits = match field["type"].as_str().unwrap() {
                    "STRING" | "TIMESTAMP" => value.is_string(),
                    "INT64" => value.is_i64(),
                    "BOOL" => value.is_boolean(),
                    "JSON" => true,
                    other => panic!("{other}"),
                };
                assert!(fits || value.is_null(), "{name}: {value}");
            }
            table.rows.push(row);
        }
    }

    /// Runs `INSERT INTO ... SELECT` and `SELECT 1`. A `MERGE` is only recorded.
    fn query(&mut self, query: &str) {
        if let Some(merge) = query.strip_prefix("MERGE INTO ") {
            return self.merges.push(merge.to_owned());
        }
        let Some(rest) = query.strip_prefix("INSERT INTO `my-project.web.") else {
            assert_eq!(query, "SELECT 1");
            return;
        };
        let (to, rest) = rest.split_once("` (").unwrap();
        let (names, from) = rest.split_once(") SELECT ").unwrap();
        let (same, from) = from.split_once(" FROM `my-project.web.").unwrap();
        assert_eq!(names, same);
        let rows = self.tables[from.strip_suffix('`').unwrap()].rows.clone();
        self.tables.get_mut(to).unwrap().rows.extend(rows);
    }
}

/// Checks the request for a token, and issues one.
fn token(request: &StubRequest) -> StubAnswer {
    let form = String::from_utf8(request.body.clone()).unwrap();
    let grant = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=";
    let claim = form.strip_prefix(grant).unwrap();
    let (signed, signature) = claim.rsplit_once('.').unwrap();
    let (header, claims) = signed.split_once('.').unwrap();
    let read = |part: &str| -> Value {
        serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
    };
    let (header, claims) = (read(header), read(claims));
    assert_eq!((&header["alg"], &header["kid"]), (&json!("RS256"), &json!("key-1")));
    assert_eq!(claims["iss"], "weir@my-project.iam.example");
    assert_eq!(claims["scope"], "https://www.googleapis.com/auth/bigquery");
    assert!(claims["aud"].as_str().unwrap().ends_with("/token"));
    assert!(claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap() <= 3600);
    let der: String = KEY.lines().filter(|line| !line.starts_with('-')).collect();
    let der = base64::prelude::BASE64_STANDARD.decode(der).unwrap();
    let pair = RsaKeyPair::from_pkcs8(&der).unwrap();
    UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, pair.public_key())
        .verify(signed.as_bytes(), &BASE64_URL_SAFE_NO_PAD.decode(signature).unwrap())
        .unwrap();
    StubAnswer::json(200, &json!({ "access_token": TOKEN, "expires_in": 3600 }))
}

/// The two parts of an upload.
fn parts(request: &StubRequest) -> (Value, Vec<u8>) {
    let kind = request.header("content-type");
    let mark = kind.strip_prefix("multipart/related; boundary=").unwrap();
    let mark = format!("--{mark}");
    let find = |text: &str, from: usize| {
        let found =
            request.body[from..].windows(text.len()).position(|part| part == text.as_bytes());
        found.map(|at| from + at).unwrap()
    };
    let first = find("\r\n\r\n", find(&mark, 0)) + 4;
    let between = find(&mark, first);
    let second = find("\r\n\r\n", between) + 4;
    let end = find(&format!("\r\n{mark}--"), second);
    let what = serde_json::from_slice(&request.body[first..between]).unwrap();
    (what, request.body[second..end].to_vec())
}

struct Fixture {
    google: StandIn<Google>,
}

impl Fixture {
    async fn new() -> Self {
        Self { google: StandIn::start(Google::default(), Google::answer).await }
    }

    fn destination(&self, use_json_type: bool) -> Box<dyn Destination> {
        let config = json!({
            "project_id": "my-project",
            "dataset_id": "web",
            "table_id": "events",
            "private_key": KEY,
            "private_key_id": "key-1",
            "token_uri": format!("{}/token", self.google.url()),
            "client_email": "weir@my-project.iam.example",
            "use_json_type": use_json_type,
            "exclude_events": null,
        });
        let addresses =
            DestinationAddresses { bigquery: self.google.url(), ..DestinationAddresses::default() };
        warehouse::destination("BigQuery", &config, addresses)
    }

    fn then(&self, part: &'static str, act: Act) {
        self.google.lock().acts.then(part, act);
    }

    /// The ids of the events in the table.
    fn events(&self) -> Vec<String> {
        let google = self.google.lock();
        let rows = google.tables.get("events").map(|table| table.rows.as_slice());
        let id = |row: &Value| row["uuid"].as_str().unwrap().to_owned();
        let mut ids: Vec<String> = rows.unwrap_or_default().iter().map(id).collect();
        ids.sort();
        ids
    }

    fn tables(&self) -> Vec<String> {
        self.google.lock().tables.keys().cloned().collect()
    }
}

#[tokio::test]
async fn events_arrive_in_a_partitioned_table() {
    let fixture = Fixture::new().await;
    let destination = fixture.destination(false);
    let job = job(destination.as_ref(), 1);
    let events = rows(&job, 1..=250);
    run(destination.as_ref(), job, events).await.unwrap();
    assert_eq!(fixture.events(), ids(1..=250));
    assert_eq!(fixture.tables(), ["events"]);
    let google = fixture.google.lock();
    let table = &google.tables["events"];
    assert_eq!(table.made["timePartitioning"], json!({ "type": "DAY", "field": "timestamp" }));
    let row = table.rows.iter().find(|row| row["properties"] == "{\"n\":7}").unwrap();
    assert_eq!(row["timestamp"], "2026-07-01T10:00:00.123463+00:00");
    assert_eq!((&row["team_id"], &row["set"]), (&json!(3), &Value::Null));
}

#[tokio::test]
async fn persons_are_merged_into_a_table_of_their_own() {
    let fixture = Fixture::new().await;
    let destination = fixture.destination(false);
    let job = job_of_persons(destination.as_ref(), 1);
    let people = vec![person("ada", 1, 5), person("anon", 2, 0)];
    run(destination.as_ref(), job.clone(), people.clone()).await.unwrap();
    // A job whose answer was lost is not repeated.
    run(destination.as_ref(), job, people).await.unwrap();
    assert_eq!(fixture.tables(), ["events"]);
    let google = fixture.google.lock();
    let fields = google.tables["events"].made["schema"]["fields"].as_array().unwrap().clone();
    let kind = |name: &str| {
        fields.iter().find(|field| field["name"] == name).map(|field| field["type"].clone())
    };
    assert_eq!(fields.len(), 9);
    assert_eq!(kind("is_deleted"), Some(json!("BOOL")));
    assert_eq!(kind("person_version"), Some(json!("INT64")));
    let begin = "`my-project.web.events` there USING (SELECT `team_id`, `distinct_id`, ";
    assert_eq!(google.merges.len(), 1);
    assert!(google.merges[0].starts_with(begin), "{}", google.merges[0]);
}

#[tokio::test]
async fn events_are_no_table_for_persons() {
    let fixture = Fixture::new().await;
    let destination = fixture.destination(false);
    let first = job(destination.as_ref(), 1);
    let events = rows(&first, 1..=2);
    run(destination.as_ref(), first, events).await.unwrap();
    let persons = job_of_persons(destination.as_ref(), 2);
    let failure = run(destination.as_ref(), persons, vec![person("ada", 1, 5)]).await.unwrap_err();
    assert_eq!((failure.class, failure.is_retryable), ("NoPersonsTable", false));
}

#[tokio::test]
async fn properties_are_json_where_the_table_says_so() {
    let fixture = Fixture::new().await;
    let with_json = fixture.destination(true);
    let first = job(with_json.as_ref(), 1);
    let event = row(&first, 1, "{\"n\":9007199254740993,\"far\":1e999}");
    let altered = run(with_json.as_ref(), first, vec![event]).await.unwrap();
    assert_eq!(altered.len(), 1);
    assert_eq!((altered[0].uuid, altered[0].column.as_str()), (Some(uuid(1)), "properties"));
    {
        let google = fixture.google.lock();
        let row = &google.tables["events"].rows[0];
        assert_eq!(row["properties"], json!({ "n": 9_007_199_254_740_993_i64, "far": "1e999" }));
    }
    // The table keeps its types after the setting changes, and columns that it does not
    // have are skipped.
    {
        let mut google = fixture.google.lock();
        let fields =
            google.tables.get_mut("events").unwrap().made["schema"]["fields"].as_array_mut();
        fields.unwrap().retain(|field| field["name"] != "site_url");
    }
    let with_text = fixture.destination(false);
    let mut second = job(with_text.as_ref(), 2);
    second.columns = Arc::new(with_json.columns());
    let event = row(&second, 2, "{\"n\":2}");
    run(with_text.as_ref(), second, vec![event]).await.unwrap();
    let google = fixture.google.lock();
    let row = &google.tables["events"].rows[1];
    assert_eq!((&row["properties"], row.get("site_url")), (&json!({ "n": 2 }), None));
}

#[tokio::test]
async fn nothing_to_export_runs_no_job() {
    let fixture = Fixture::new().await;
    let destination = fixture.destination(false);
    let job = job(destination.as_ref(), 1);
    run(destination.as_ref(), job, Vec::new()).await.unwrap();
    assert_eq!(fixture.events(), Vec::<String>::new());
    assert!(fixture.google.lock().jobs.is_empty());
}

#[tokio::test]
async fn a_run_of_many_files_is_one_statement() {
    let fixture = Fixture::new().await;
    let destination = fixture.destination(false);
    let job = job(destination.as_ref(), 1);
    let long = |n| row(&job, n, &format!("{{\"t\":\"{}\"}}", noise(n, 1 << 20)));
    let mut writer = destination.begin(job.clone()).await.unwrap();
    for n in 1..=40 {
        write(writer.as_mut(), vec![long(n)]).await.unwrap();
    }
    assert_eq!(fixture.events(), Vec::<String>::new());
    writer.finish().await.unwrap();
    assert_eq!(fixture.events(), ids(1..=40));
    let google = fixture.google.lock();
    assert!(google.jobs.len() >= 3, "{:?}", google.jobs);
}

#[tokio::test]
async fn an_upload_whose_answer_is_lost_is_not_loaded_twice() {
    let fixture = Fixture::new().await;
    let destination = fixture.destination(false);
    fixture.then("POST /upload", Act::DoAndClose);
    fixture.then("POST /upload", Act::Say(StubAnswer::empty(503)));
    let job = job(destination.as_ref(), 1);
    let events = rows(&job, 1..=20);
    run(destination.as_ref(), job, events).await.unwrap();
    assert_eq!(fixture.events(), ids(1..=20));
    assert_eq!(
        fixture.google.lock().calls.iter().filter(|call| call.contains("/upload")).count(),
        3
    );
}

#[tokio::test]
async fn an_interrupted_run_restarts() {
    let fixture = Fixture::new().await;
    let destination = fixture.destination(false);
    let job = job(destination.as_ref(), 1);
    let mut writer = destination.begin(job.clone()).await.unwrap();
    let events = rows(&job, 1..=150);
    write(writer.as_mut(), events.clone()).await.unwrap();
    drop(writer);
    assert_eq!(fixture.events(), Vec::<String>::new());
    run(destination.as_ref(), job, events).await.unwrap();
    assert_eq!(fixture.events(), ids(1..=150));
    assert_eq!(fixture.tables(), ["events"]);
}

#[tokio::test]
async fn a_run_that_was_done_and_could_not_say_so_is_not_done_again() {
    let fixture = Fixture::new().await;
    let destination = fixture.destination(false);
    let job = job(destination.as_ref(), 1);
    let events = rows(&job, 1..=30);
    // The statement succeeds, and its answer is lost.
    fixture.then("POST /bigquery/v2/projects/my%2Dproject/jobs", Act::DoAndClose);
    let failure = run(destination.as_ref(), job.clone(), events.clone()).await.unwrap_err();
    assert!(failure.is_retryable, "{failure}");
    run(destination.as_ref(), job.clone(), events.clone()).await.unwrap();
    run(destination.as_ref(), job, events).await.unwrap();
    assert_eq!(fixture.events(), ids(1..=30));
    assert_eq!(fixture.tables(), ["events"]);
}

#[tokio::test]
async fn a_statement_that_failed_is_tried_under_another_id() {
    let fixture = Fixture::new().await;
    let destination = fixture.destination(false);
    let job = job(destination.as_ref(), 1);
    let events = rows(&job, 1..=30);
    fixture.then("POST /bigquery/v2/projects/my%2Dproject/jobs", Act::Fail("backendError"));
    let failure = run(destination.as_ref(), job.clone(), events.clone()).await.unwrap_err();
    assert_eq!((failure.class, failure.is_retryable), ("Unavailable", true));
    run(destination.as_ref(), job, events).await.unwrap();
    assert_eq!(fixture.events(), ids(1..=30));
}

#[tokio::test]
async fn failures_say_if_a_retry_can_help() {
    let throttled = json!({ "error": { "errors": [{ "reason": "rateLimitExceeded" }] } });
    let denied =
        json!({ "error": { "errors": [{ "reason": "accessDenied" }], "message": "leaked" } });
    let invalid = json!({ "error": "invalid_grant", "error_description": "leaked" });
    let datasets = "GET /bigquery/v2/projects/my%2Dproject/datasets/web";
    for (part, act, class, is_retryable) in [
        ("POST /token", Act::Say(StubAnswer::json(400, &invalid)), "AuthenticationFailed", false),
        ("POST /token", Act::Say(StubAnswer::empty(503)), "Unavailable", true),
        (datasets, Act::Say(StubAnswer::json(401, &json!({}))), "AuthenticationFailed", false),
        (datasets, Act::Say(StubAnswer::json(403, &throttled)), "Throttled", true),
        (datasets, Act::Say(StubAnswer::json(403, &denied)), "PermissionDenied", false),
        (datasets, Act::Say(StubAnswer::empty(404)), "NotFound", false),
        (datasets, Act::Say(StubAnswer::empty(429).with("retry-after", "9")), "Unavailable", true),
        ("POST /upload", Act::Say(StubAnswer::json(400, &json!({}))), "Refused", false),
        ("POST /upload", Act::Fail("invalid"), "DataRefused", false),
        ("POST /upload", Act::Fail("accessDenied"), "PermissionDenied", false),
        ("POST /upload", Act::Fail("jobInternalError"), "Unavailable", true),
    ] {
        let fixture = Fixture::new().await;
        fixture.then(part, act);
        let destination = fixture.destination(false);
        let job = job(destination.as_ref(), 1);
        let events = rows(&job, 1..=3);
        let failure: Failure = run(destination.as_ref(), job, events).await.unwrap_err();
        assert_eq!((failure.class, failure.is_retryable), (class, is_retryable), "{part}");
        assert!(!failure.message.contains("leaked"), "{failure}");
        assert_eq!(fixture.events(), Vec::<String>::new(), "{part}");
    }
}

#[tokio::test]
async fn a_connection_test_leaves_nothing_and_names_the_failed_step() {
    let fixture = Fixture::new().await;
    let destination = fixture.destination(false);
    for step in 0..destination.steps().len() {
        destination.test(step, ExportModel::Events).await.unwrap();
    }
    assert_eq!(fixture.tables(), Vec::<String>::new());
    fixture.then("/datasets/web", Act::Say(StubAnswer::empty(404)));
    assert_eq!(destination.test(1, ExportModel::Events).await.unwrap_err().class, "NotFound");
}
