//! The protocol of Snowflake's own drivers: signing in, running statements.
//!
//! What belongs here: sessions, statements that take long, the meaning of codes. What
//! does not: the statements of a run (`snowflake`).

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use uuid::Uuid;
use weir_egress::{Method, header};

use super::{Config, quoted};
use crate::destination::Failure;
use crate::destinations::warehouse::rest::{Answer, Pause, Service};
use crate::destinations::warehouse::rsa::{Key, KeyFault};
use crate::destinations::{Dependencies, clock};

/// The timeout for the answer to a statement. The server answers after 45 seconds in any
/// case, and is polled then.
const ANSWER: Duration = Duration::from_secs(120);
/// The timeout for a statement.
const STATEMENT: Duration = Duration::from_secs(3600);
/// Lifetime of a signed token in seconds.
const TOKEN: i64 = 60;
/// Codes of an expired session.
const EXPIRED: &[&str] = &["390110", "390111", "390112", "390114", "390115"];
/// The class of a failure for a statement that names something that does not exist.
pub(super) const NOT_FOUND: &str = "NotFound";
/// Codes of a statement that is still running.
const RUNNING: &[&str] = &["333333", "333334"];

pub(super) struct Session {
    pub(super) service: Service,
    base: String,
    config: Config,
    token: Mutex<String>,
    statements: AtomicU64,
}

impl Session {
    /// Signs in.
    pub(super) async fn open(
        config: &Config,
        dependencies: &Dependencies,
    ) -> Result<Self, Failure> {
        let session = Self {
            service: Service { name: "Snowflake", egress: dependencies.egress.clone() },
            base: config.base(dependencies)?,
            config: config.clone(),
            token: Mutex::new(String::new()),
            statements: AtomicU64::new(0),
        };
        session.sign_in().await?;
        Ok(session)
    }

    async fn sign_in(&self) -> Result<(), Failure> {
        let config = &self.config;
        let mut data = json!({
            "ACCOUNT_NAME": config.account_name(),
            "LOGIN_NAME": config.user,
            "CLIENT_APP_ID": "Weir",
            "CLIENT_APP_VERSION": env!("CARGO_PKG_VERSION"),
            "CLIENT_ENVIRONMENT": { "APPLICATION": "Weir" },
            // The storage behind stages may be Google's, and its tokens then come with
            // the answer. A statement whose connection is lost must not continue.
            "SESSION_PARAMETERS": {
                "GCS_USE_DOWNSCOPED_CREDENTIAL": true,
                "ABORT_DETACHED_QUERY": true,
                "TIMEZONE": "UTC",
            },
        });
        let proof = match config.authentication_type.as_str() {
            "keypair" => [("AUTHENTICATOR", "SNOWFLAKE_JWT".to_owned()), ("TOKEN", self.proof()?)],
            _ => {
                let password = config.password.clone().ok_or_else(|| {
                    Failure::permanent("AuthenticationFailed", "A password is needed.")
                })?;
                [("AUTHENTICATOR", "SNOWFLAKE".to_owned()), ("PASSWORD", password)]
            }
        };
        for (name, value) in proof {
            if let Some(data) = data.as_object_mut() {
                data.insert(name.to_owned(), Value::from(value));
            }
        }
        let request = self
            .service
            .request(Method::POST, &format!("{}/session/v1/login-request", self.base))?;
        let (database, schema) = (quoted(&config.database), quoted(&config.schema));
        let mut query = vec![
            ("request_id", clock::unused_id().to_string()),
            ("databaseName", database),
            ("schemaName", schema),
            ("warehouse", config.warehouse.clone()),
        ];
        query.extend(config.role.clone().map(|role| ("roleName", role)));
        let request = request.query(&query).header(header::ACCEPT, "application/json");
        let answer = self.service.send_json(request, &json!({ "data": data })).await?;
        let token = self.data(&answer)?.get("token").and_then(Value::as_str);
        let token = token.ok_or_else(|| unexpected("sign-in"))?;
        token.clone_into(&mut self.token.lock());
        Ok(())
    }

    /// The token that proves the possession of the key.
    fn proof(&self) -> Result<String, Failure> {
        let wrong = |fault: KeyFault| Failure::permanent("InvalidPrivateKey", fault.to_string());
        let config = &self.config;
        let key = config.private_key.as_deref().unwrap_or_default();
        let passphrase = config.private_key_passphrase.as_deref();
        let key = Key::read(key, passphrase).map_err(wrong)?;
        let who = format!("{}.{}", config.account_name(), config.user.to_uppercase());
        let now = clock::now().timestamp();
        let claims = json!({
            "iss": format!("{who}.{}", key.fingerprint().map_err(wrong)?),
            "sub": who,
            "iat": now,
            "exp": now + TOKEN,
        });
        key.token(None, &claims).map_err(wrong)
    }

    /// Runs a statement, waits for its end, and returns the `data` of the answer.
    pub(super) async fn run(&self, statement: &str) -> Result<Value, Failure> {
        let mut is_new = false;
        loop {
            let answer = self.begin(statement).await?;
            if !is_new && code(&answer).is_some_and(|code| EXPIRED.contains(&code)) {
                self.sign_in().await?;
                is_new = true;
                continue;
            }
            return self.end(answer).await;
        }
    }

    async fn begin(&self, statement: &str) -> Result<Answer, Failure> {
        let number = self.statements.fetch_add(1, Ordering::Relaxed) + 1;
        let id = clock::unused_id();
        let url = format!("{}/queries/v1/query-request?requestId={id}", self.base);
        let request = self.service.request(Method::POST, &url)?;
        let body = json!({
            "sqlText": statement,
            "asyncExec": false,
            "sequenceId": number,
            "querySubmissionTime": clock::now().timestamp_millis(),
        });
        let answer = self.service.send_json(self.signed(request), &body).await;
        if answer.is_err() {
            self.stop(statement, id).await;
        }
        answer
    }

    /// Cancels a statement that may still be running: the next attempt could not know its
    /// later effects.
    async fn stop(&self, statement: &str, id: Uuid) {
        let url =
            format!("{}/queries/v1/abort-request?requestId={}", self.base, clock::unused_id());
        if let Ok(request) = self.service.request(Method::POST, &url) {
            let body = json!({ "sqlText": statement, "requestId": id });
            let _ = self.service.send_json(self.signed(request), &body).await;
        }
    }

    async fn end(&self, mut answer: Answer) -> Result<Value, Failure> {
        let begun = tokio::time::Instant::now();
        let mut pause = Pause::short();
        while code(&answer).is_some_and(|code| RUNNING.contains(&code)) {
            if begun.elapsed() > STATEMENT {
                return Err(Failure::retryable(
                    "TimedOut",
                    "A statement took longer than an hour.",
                ));
            }
            pause.wait().await;
            let path = answer.body.pointer("/data/getResultUrl").and_then(Value::as_str);
            // Only a path of the same host: no other host gets the token.
            let path = path.filter(|path| path.starts_with('/'));
            let path = path.ok_or_else(|| unexpected("statement"))?;
            let request = self.service.request(Method::GET, &format!("{}{path}", self.base))?;
            answer = self.service.send(self.signed(request)).await?;
        }
        self.data(&answer).cloned()
    }

    fn signed(&self, request: weir_egress::RequestBuilder) -> weir_egress::RequestBuilder {
        request
            .header(header::AUTHORIZATION, format!("Snowflake Token=\"{}\"", self.token.lock()))
            .header(header::ACCEPT, "application/snowflake")
            .timeout(ANSWER)
    }

    /// Ends the session. It would also expire on the server.
    pub(super) async fn close(&self) {
        let url = format!("{}/session?delete=true", self.base);
        if let Ok(request) = self.service.request(Method::POST, &url) {
            let _ = self.service.send_json(self.signed(request), &json!({})).await;
        }
    }

    fn data<'a>(&self, answer: &'a Answer) -> Result<&'a Value, Failure> {
        if let Some(code) = code(answer) {
            return Err(of_code(code));
        }
        match (answer.status, answer.body.get("data")) {
            (200..=299, Some(data)) => Ok(data),
            _ => Err(self.service.refused(answer)),
        }
    }
}

fn unexpected(what: &str) -> Failure {
    Failure::retryable(
        "UnexpectedAnswer",
        format!("Snowflake's answer to the {what} is not known."),
    )
}

/// The error code of an answer, if it has one.
fn code(answer: &Answer) -> Option<&str> {
    let is_success = answer.body.get("success").and_then(Value::as_bool);
    answer.body.get("code").and_then(Value::as_str).filter(|_| is_success == Some(false))
}

/// The failure for a code of Snowflake (EXP-29).
fn of_code(code: &str) -> Failure {
    // Only a numeric code helps users to look it up.
    let shown =
        if code.bytes().all(|b| b.is_ascii_digit()) && code.len() <= 8 { code } else { "?" };
    let last =
        |class, why: &str| Failure::permanent(class, format!("Snowflake {why} (code {shown})."));
    let retryable =
        |class, why: &str| Failure::retryable(class, format!("Snowflake {why} (code {shown})."));
    match code {
        "390100" => last("AuthenticationFailed", "does not accept this user and password"),
        "390144" => last("AuthenticationFailed", "does not accept this key for the user"),
        "390201" | "390189" => last("PermissionDenied", "does not give the user this role"),
        "390422" => last("PermissionDenied", "does not allow connections from this address"),
        code if EXPIRED.contains(&code) => retryable("SessionExpired", "ended the session"),
        code if code.starts_with("390") => last("AuthenticationFailed", "refused the sign-in"),
        "002003" | "002043" => last(
            NOT_FOUND,
            "does not know the database, schema, table or warehouse, or the role may not use it: \
             names are case-sensitive",
        ),
        "003001" | "003041" => last("PermissionDenied", "does not allow the role to do this"),
        "000606" | "000609" | "002141" => {
            last("NoWarehouse", "has no warehouse of this name that the role may use")
        }
        "000608" => retryable("WarehouseSuspended", "has suspended the warehouse"),
        "000604" | "000630" => retryable("StatementStopped", "stopped the statement"),
        "000625" => retryable("Locked", "waited too long for a lock of the table"),
        "000904" => last("WrongColumns", "has another type or name of a column in the table"),
        code if code.starts_with("001") || code.starts_with("002") || code.starts_with("003") => {
            last("StatementRefused", "refused a statement")
        }
        code if code.starts_with("100") => last("DataRefused", "refused a value of the data"),
        _ => retryable("StatementFailed", "could not run a statement"),
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn codes_say_if_a_retry_can_help() {
        for (code, class, is_retryable) in [
            ("390100", "AuthenticationFailed", false),
            ("390144", "AuthenticationFailed", false),
            ("390112", "SessionExpired", true),
            ("002003", "NotFound", false),
            ("003001", "PermissionDenied", false),
            ("000606", "NoWarehouse", false),
            ("000608", "WarehouseSuspended", true),
            ("001003", "StatementRefused", false),
            ("100038", "DataRefused", false),
            ("261000", "StatementFailed", true),
        ] {
            let failure = of_code(code);
            assert_eq!((failure.class, failure.is_retryable), (class, is_retryable), "{code}");
            assert!(failure.message.contains(code), "{code}");
        }
        assert!(!of_code("<script>").message.contains("script"));
    }
}
