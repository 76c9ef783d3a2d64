//! The REST interface of BigQuery: tokens, tables, jobs.
//!
//! What belongs here: requests and the meaning of their answers. What does not: the
//! tables and jobs of a run (`bigquery`).

use std::time::Duration;

use bytes::Bytes;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use tokio::time::Instant;
use weir_egress::{Method, RequestBuilder, header};

use super::Config;
use crate::destination::Failure;
use crate::destinations::warehouse::rest::{Answer, Pause, Service};
use crate::destinations::warehouse::rsa::{Key, KeyFault};
use crate::destinations::warehouse::token::Token;
use crate::destinations::{Dependencies, clock};

const SCOPE: &str = "https://www.googleapis.com/auth/bigquery";
/// Lifetime of a signed claim in seconds.
const CLAIM: i64 = 3600;
/// The timeout for the upload of one file.
const UPLOAD: Duration = Duration::from_secs(600);
/// The timeout for a job.
const JOB: Duration = Duration::from_secs(3600);
/// How often a file is sent if the outcome is unknown. The id of the job prevents loading
/// it twice.
const SENDS: usize = 3;

/// A client of the interface, for one service account.
pub(super) struct Api {
    service: Service,
    base: String,
    config: Config,
    key: Key,
    token: Token,
}

/// The outcome of a job.
#[derive(Debug)]
pub(super) enum Ended {
    /// It succeeded.
    Done,
    /// It failed, and changed nothing.
    Failed(Failure),
}

impl Api {
    pub(super) fn new(config: &Config, dependencies: &Dependencies) -> Result<Self, Failure> {
        let key = Key::read(&config.private_key, None).map_err(invalid)?;
        Ok(Self {
            service: Service { name: "BigQuery", egress: dependencies.egress.clone() },
            base: dependencies.addresses.bigquery.clone(),
            config: config.clone(),
            key,
            token: Token::default(),
        })
    }

    /// A valid token.
    pub(super) async fn token(&self) -> Result<String, Failure> {
        let refused = "Google does not accept the key of the service account.";
        self.token.get(&self.service, || self.token_request(), refused).await
    }

    fn token_request(&self) -> Result<RequestBuilder, Failure> {
        let now = clock::now().timestamp();
        let claims = json!({
            "iss": self.config.client_email,
            "scope": SCOPE,
            "aud": self.config.token_uri,
            "iat": now,
            "exp": now + CLAIM,
        });
        let claim = self.key.token(Some(&self.config.private_key_id), &claims).map_err(invalid)?;
        let form =
            [("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"), ("assertion", &claim)];
        Ok(self.service.request(Method::POST, &self.config.token_uri)?.form(&form))
    }

    /// Makes a request. `path` is relative to the project. Returns the answer with any
    /// status.
    async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Answer, Failure> {
        let project = encoded(&self.config.project_id);
        let url = format!("{}/bigquery/v2/projects/{project}/{path}", self.base);
        let token = self.token().await?;
        let request = self.service.request(method, &url)?.bearer_auth(token);
        match body {
            Some(body) => self.service.send_json(request, body).await,
            None => self.service.send(request).await,
        }
    }

    /// The location of the dataset.
    pub(super) async fn location(&self) -> Result<String, Failure> {
        let path = format!("datasets/{}", encoded(&self.config.dataset_id));
        let answer = self.call(Method::GET, &path, None).await?;
        let dataset = self.good(answer)?;
        let location = dataset.get("location").and_then(Value::as_str);
        location.map(str::to_owned).ok_or_else(|| self.service.unexpected())
    }

    /// A table of the dataset, or `None` if there is no such table.
    pub(super) async fn table(&self, id: &str) -> Result<Option<Value>, Failure> {
        let answer = self.call(Method::GET, &self.table_path(id), None).await?;
        if answer.status == 404 {
            return Ok(None);
        }
        self.good(answer).map(Some)
    }

    /// Creates a table. `rest` has its description without the name. An existing table is
    /// no error.
    pub(super) async fn create(&self, id: &str, rest: Value) -> Result<(), Failure> {
        let path = format!("datasets/{}/tables", encoded(&self.config.dataset_id));
        let mut table = rest;
        if let Some(table) = table.as_object_mut() {
            table.insert("tableReference".to_owned(), self.reference(id));
        }
        let answer = self.call(Method::POST, &path, Some(&table)).await?;
        if answer.status == 409 {
            return Ok(());
        }
        self.good(answer).map(drop)
    }

    /// Removes a table, if there is one.
    pub(super) async fn remove(&self, id: &str) -> Result<(), Failure> {
        let answer = self.call(Method::DELETE, &self.table_path(id), None).await?;
        if answer.status == 404 {
            return Ok(());
        }
        self.good(answer).map(drop)
    }

    /// Loads a file of JSON lines into a table exactly once, also if answers are lost.
    pub(super) async fn load(
        &self,
        job: &str,
        location: &str,
        table: &str,
        file: Bytes,
    ) -> Result<(), Failure> {
        let what = json!({
            "jobReference": self.job_reference(job, location),
            "configuration": { "load": {
                "destinationTable": self.reference(table),
                "sourceFormat": "NEWLINE_DELIMITED_JSON",
                "createDisposition": "CREATE_NEVER",
                "writeDisposition": "WRITE_APPEND",
            }},
        });
        let (kind, body) = related(&what, &file);
        let project = encoded(&self.config.project_id);
        let base = &self.base;
        let url = format!("{base}/upload/bigquery/v2/projects/{project}/jobs?uploadType=multipart");
        let mut pause = Pause::short();
        for send in 1.. {
            let token = self.token().await?;
            let request = self.service.request(Method::POST, &url)?.bearer_auth(token);
            let request = request.header(header::CONTENT_TYPE, &kind).timeout(UPLOAD);
            let begun = match self.service.send(request.body(body.clone())).await {
                // The job exists: an earlier answer was lost.
                Ok(answer) if answer.status == 409 => Ok(()),
                Ok(answer) => self.good(answer).map(drop),
                Err(failure) => Err(failure),
            };
            match begun {
                Ok(()) => break,
                Err(failure) if send == SENDS || !failure.is_retryable => return Err(failure),
                Err(_) => pause.wait().await,
            }
        }
        self.ended(job, location).await
    }

    /// Runs a statement as this job, and waits for its end.
    pub(super) async fn query(
        &self,
        job: &str,
        location: &str,
        statement: &str,
    ) -> Result<(), Failure> {
        let what = json!({
            "jobReference": self.job_reference(job, location),
            "configuration": { "query": { "query": statement, "useLegacySql": false } },
        });
        let answer = self.call(Method::POST, "jobs", Some(&what)).await?;
        if answer.status != 409 {
            self.good(answer)?;
        }
        self.ended(job, location).await
    }

    async fn ended(&self, job: &str, location: &str) -> Result<(), Failure> {
        match self.job(job, location).await? {
            Some(Ended::Done) => Ok(()),
            Some(Ended::Failed(failure)) => Err(failure),
            None => Err(self.service.unexpected()),
        }
    }

    /// Waits for the end of a job. `None` if there is no such job.
    pub(super) async fn job(&self, job: &str, location: &str) -> Result<Option<Ended>, Failure> {
        let path = format!("jobs/{}?location={}", encoded(job), encoded(location));
        let begun = Instant::now();
        let mut pause = Pause::short();
        loop {
            let answer = self.call(Method::GET, &path, None).await?;
            if answer.status == 404 {
                return Ok(None);
            }
            let job = self.good(answer)?;
            if job.pointer("/status/state").and_then(Value::as_str) == Some("DONE") {
                let error = job.pointer("/status/errorResult");
                return Ok(Some(error.map_or(Ended::Done, |error| Ended::Failed(of_job(error)))));
            }
            if begun.elapsed() > JOB {
                return Err(Failure::retryable("TimedOut", "A job took longer than an hour."));
            }
            pause.wait().await;
        }
    }

    fn table_path(&self, id: &str) -> String {
        format!("datasets/{}/tables/{}", encoded(&self.config.dataset_id), encoded(id))
    }

    fn reference(&self, table: &str) -> Value {
        let config = &self.config;
        json!({
            "projectId": config.project_id, "datasetId": config.dataset_id, "tableId": table,
        })
    }

    fn job_reference(&self, job: &str, location: &str) -> Value {
        json!({ "projectId": self.config.project_id, "jobId": job, "location": location })
    }

    /// The body of a successful answer.
    fn good(&self, answer: Answer) -> Result<Value, Failure> {
        let reason = answer.body.pointer("/error/errors/0/reason").and_then(Value::as_str);
        // BigQuery answers with the status 403 for exceeded rates too.
        if answer.status == 403 && reason.is_some_and(is_retryable) {
            return Err(Failure {
                wait: answer.wait,
                ..Failure::retryable("Throttled", "BigQuery asks to be called less often.")
            });
        }
        self.service.good(answer)
    }
}

fn invalid(fault: KeyFault) -> Failure {
    Failure::permanent("InvalidPrivateKey", fault.to_string())
}

fn encoded(part: &str) -> String {
    utf8_percent_encode(part, NON_ALPHANUMERIC).to_string()
}

/// Whether an error with this reason is temporary.
fn is_retryable(reason: &str) -> bool {
    matches!(
        reason,
        "backendError"
            | "internalError"
            | "jobBackendError"
            | "jobInternalError"
            | "jobRateLimitExceeded"
            | "quotaExceeded"
            | "rateLimitExceeded"
            | "resourcesExceeded"
            | "stopped"
            | "timeout"
    )
}

/// The failure for the error of a job.
fn of_job(error: &Value) -> Failure {
    let reason = error.get("reason").and_then(Value::as_str).unwrap_or_default();
    match reason {
        "accessDenied" => Failure::permanent(
            "PermissionDenied",
            "The service account may not write to the table, or may not run jobs.",
        ),
        "notFound" => Failure::permanent("NotFound", "The dataset or the table is not there."),
        "invalid" | "invalidQuery" => Failure::permanent(
            "DataRefused",
            "BigQuery refused the rows: a column of the table has another type.",
        ),
        "billingNotEnabled" | "billingTierLimitExceeded" => {
            Failure::permanent("PermissionDenied", "The project has no billing that allows this.")
        }
        reason if is_retryable(reason) => {
            Failure::retryable("Unavailable", "BigQuery could not run the job now.")
        }
        _ => Failure::permanent("JobFailed", "BigQuery could not run the job."),
    }
}

/// A multipart body with two parts, and its content type.
fn related(what: &Value, file: &[u8]) -> (String, Bytes) {
    let mark = clock::unused_id().simple().to_string();
    let mut body = format!(
        "--{mark}\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n{what}\r\n\
         --{mark}\r\nContent-Type: application/octet-stream\r\n\r\n"
    )
    .into_bytes();
    body.extend_from_slice(file);
    body.extend_from_slice(format!("\r\n--{mark}--\r\n").as_bytes());
    (format!("multipart/related; boundary={mark}"), Bytes::from(body))
}
