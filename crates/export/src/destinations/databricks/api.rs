//! The REST interface of Databricks: tokens, statements of a SQL warehouse, files of
//! volumes.
//!
//! What belongs here: requests and the meaning of their answers. What does not: the
//! statements and files of a run (`databricks`).

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::time::Instant;
use weir_egress::{Method, RequestBuilder};

use super::Config;
use crate::destination::Failure;
use crate::destinations::Dependencies;
use crate::destinations::warehouse::rest::{Pause, Service};
use crate::destinations::warehouse::token::Token;

/// The class of a failure for a statement that names something that does not exist.
pub(super) const NOT_FOUND: &str = "NotFound";
/// The timeout for the upload of one file.
const UPLOAD: Duration = Duration::from_secs(600);
/// The timeout for a statement, including the start of its warehouse.
const STATEMENT: Duration = Duration::from_secs(3600);

/// A client of the interface, for one service principal.
pub(super) struct Api {
    service: Service,
    base: String,
    config: Config,
    token: Token,
}

impl Api {
    pub(super) fn new(config: &Config, dependencies: &Dependencies) -> Self {
        Self {
            service: Service { name: "Databricks", egress: dependencies.egress.clone() },
            base: dependencies.addresses.databricks.replace("{host}", &config.server_hostname),
            config: config.clone(),
            token: Token::default(),
        }
    }

    /// A valid token.
    pub(super) async fn token(&self) -> Result<String, Failure> {
        let refused = "Databricks does not accept the client id and the client secret.";
        self.token.get(&self.service, || self.token_request(), refused).await
    }

    fn token_request(&self) -> Result<RequestBuilder, Failure> {
        let url = format!("{}/oidc/v1/token", self.base);
        let request = self.service.request(Method::POST, &url)?;
        Ok(request
            .basic_auth(&self.config.client_id, Some(&self.config.client_secret))
            .form(&[("grant_type", "client_credentials"), ("scope", "all-apis")]))
    }

    async fn request(&self, method: Method, path: &str) -> Result<RequestBuilder, Failure> {
        let token = self.token().await?;
        let request = self.service.request(method, &format!("{}{path}", self.base))?;
        Ok(request.bearer_auth(token))
    }

    /// Runs a statement, waits for its end, and returns the columns of its result.
    pub(super) async fn run(&self, statement: &str) -> Result<Vec<(String, String)>, Failure> {
        let request = self.request(Method::POST, "/api/2.0/sql/statements/").await?;
        let what = json!({
            "warehouse_id": self.config.warehouse()?,
            "statement": statement,
            "wait_timeout": "10s",
            "on_wait_timeout": "CONTINUE",
            "disposition": "INLINE",
            "format": "JSON_ARRAY",
        });
        let answer = self.service.send_json(request, &what).await?;
        let mut body = self.service.good(answer)?;
        let begun = Instant::now();
        let mut pause = Pause::short();
        loop {
            match body.pointer("/status/state").and_then(Value::as_str) {
                Some("SUCCEEDED") => return Ok(columns(&body)),
                Some("PENDING" | "RUNNING") => {}
                Some("FAILED") => return Err(of_statement(&body)),
                Some("CANCELED" | "CLOSED") => {
                    return Err(Failure::retryable(
                        "StatementStopped",
                        "The statement was stopped at Databricks.",
                    ));
                }
                _ => return Err(self.service.unexpected()),
            }
            let id = body.get("statement_id").and_then(Value::as_str);
            let fits = |id: &&str| id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
            let id = id.filter(fits).ok_or_else(|| self.service.unexpected())?.to_owned();
            if begun.elapsed() > STATEMENT {
                let path = format!("/api/2.0/sql/statements/{id}/cancel");
                let request = self.request(Method::POST, &path).await?;
                let _ = self.service.send_json(request, &json!({})).await;
                return Err(Failure::retryable(
                    "TimedOut",
                    "A statement took longer than an hour.",
                ));
            }
            pause.wait().await;
            let path = format!("/api/2.0/sql/statements/{id}");
            let answer = self.service.send(self.request(Method::GET, &path).await?).await?;
            body = self.service.good(answer)?;
        }
    }

    /// Writes a file of a volume. An existing file is replaced.
    pub(super) async fn upload(&self, path: &str, file: Bytes) -> Result<(), Failure> {
        let path = format!("/api/2.0/fs/files{path}?overwrite=true");
        let request = self.request(Method::PUT, &path).await?.timeout(UPLOAD);
        let request = request.header("content-type", "application/octet-stream");
        self.service.good(self.service.send(request.body(file)).await?).map(drop)
    }

    /// Whether a volume has this file.
    pub(super) async fn has(&self, path: &str) -> Result<bool, Failure> {
        let request = self.request(Method::HEAD, &format!("/api/2.0/fs/files{path}")).await?;
        let answer = self.service.send(request).await?;
        if answer.status == 404 {
            return Ok(false);
        }
        self.service.good(answer).map(|_| true)
    }
}

/// Names and types of the columns of a result.
fn columns(body: &Value) -> Vec<(String, String)> {
    let columns = body.pointer("/manifest/schema/columns").and_then(Value::as_array);
    let column = |column: &Value| {
        let text = |name| column.get(name).and_then(Value::as_str).map(str::to_owned);
        Some((text("name")?, text("type_name").or_else(|| text("type_text"))?))
    };
    columns.into_iter().flatten().filter_map(column).collect()
}

/// The failure for the error of a statement. Messages begin with a class of error in
/// brackets.
fn of_statement(body: &Value) -> Failure {
    let text = |at| body.pointer(at).and_then(Value::as_str).unwrap_or_default();
    let (code, message) = (text("/status/error/error_code"), text("/status/error/message"));
    let class = message.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    let class = class.map_or("", |(class, _)| class.split('.').next().unwrap_or_default());
    match (class, code) {
        ("INSUFFICIENT_PERMISSIONS", _) | (_, "PERMISSION_DENIED") => Failure::permanent(
            "PermissionDenied",
            "The service principal may not do this: it needs the warehouse, the catalog and the \
             schema, and may make tables and volumes there.",
        ),
        ("TABLE_OR_VIEW_NOT_FOUND" | "SCHEMA_NOT_FOUND" | "NO_SUCH_CATALOG_EXCEPTION", _)
        | (_, "NOT_FOUND") => {
            Failure::permanent(NOT_FOUND, "The catalog, the schema or the table is not there.")
        }
        (_, "UNAUTHENTICATED") => {
            Failure::permanent("AuthenticationFailed", "Databricks ended the sign-in.")
        }
        (
            _,
            "TEMPORARILY_UNAVAILABLE"
            | "WORKSPACE_TEMPORARILY_UNAVAILABLE"
            | "SERVICE_UNDER_MAINTENANCE"
            | "RESOURCE_EXHAUSTED"
            | "DEADLINE_EXCEEDED"
            | "INTERNAL_ERROR"
            | "IO_ERROR"
            | "ABORTED"
            | "CANCELLED"
            | "UNKNOWN",
        ) => Failure::retryable("Unavailable", "Databricks could not run the statement now."),
        _ => Failure::permanent(
            "StatementRefused",
            "Databricks refused the statement: a column of the table may have another type.",
        ),
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn failures_of_statements_say_if_a_retry_can_help() {
        for (code, message, class, is_retryable) in [
            ("BAD_REQUEST", "[TABLE_OR_VIEW_NOT_FOUND] The table", "NotFound", false),
            ("BAD_REQUEST", "[INSUFFICIENT_PERMISSIONS] User", "PermissionDenied", false),
            ("BAD_REQUEST", "[CAST_INVALID_INPUT.X] The value", "StatementRefused", false),
            ("TEMPORARILY_UNAVAILABLE", "later", "Unavailable", true),
            ("INTERNAL_ERROR", "", "Unavailable", true),
        ] {
            let error = json!({ "error_code": code, "message": message });
            let failure = of_statement(&json!({ "status": { "error": error } }));
            assert_eq!((failure.class, failure.is_retryable), (class, is_retryable), "{message}");
        }
    }
}
