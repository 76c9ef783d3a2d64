//! A session with a database: signing in, statements.
//!
//! What belongs here: the connection, and the meaning of its errors for users. What does
//! not: the text of statements (`postgres`, `redshift`).
//!
//! Invariant: users see errors of the server as a class of fault and an SQLSTATE, never
//! as text of the server (SEC-29).

use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::config::SslMode;
use tokio_postgres::{Client, Config, CopyInSink, Error, NoTls, SimpleQueryMessage};
use weir_egress::{Egress, Fault, FaultClass, PostgresFault, PostgresStream, Trust};

use crate::destination::Failure;

/// The class of a failure for a row that violates a constraint of its table.
pub(super) const CONSTRAINT: &str = "Constraint";
/// The timeout for signing in.
const SIGN_IN: Duration = Duration::from_secs(30);
/// The timeout for an answer, and for accepting rows. A server that is silent for longer
/// counts as failed.
const SILENCE: Duration = Duration::from_secs(600);
/// The timeout for a statement that copies all rows of a run into their table. The server
/// sends nothing meanwhile.
const MERGE: Duration = Duration::from_secs(3600);
/// How long to wait for the reason why the connection ended.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// Upper bound of bytes that a server may send in a session. Its answers are only names
/// and counts.
const ANSWERS_MAX: usize = 16 << 20;

/// The address of a database, and the credentials.
pub(crate) struct Credentials {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) database: String,
    pub(crate) user: String,
    pub(crate) password: String,
    pub(crate) trust: Trust,
}

/// A session. Dropping it closes the connection immediately, and the server rolls back.
pub(crate) struct Session {
    client: Client,
    line: Option<JoinHandle<Result<(), Error>>>,
}

impl Session {
    /// Signs in.
    pub(crate) async fn open(egress: &Egress, credentials: &Credentials) -> Result<Self, Failure> {
        let wire = dial(egress, credentials).await?;
        let mut config = Config::new();
        config
            .user(&credentials.user)
            .password(&credentials.password)
            .dbname(&credentials.database)
            .application_name("weir")
            // The connection is protected already.
            .ssl_mode(SslMode::Disable);
        let signed_in = timeout(SIGN_IN, config.connect_raw(wire, NoTls)).await;
        let signed_in = signed_in.map_err(|_| Failure::from(Fault::from(FaultClass::TimedOut)))?;
        let (client, connection) = signed_in.map_err(|error| failure(&error))?;
        Ok(Self { client, line: Some(tokio::spawn(connection)) })
    }

    /// Runs statements without a result, with a timeout of ten minutes.
    pub(crate) async fn run(&mut self, sql: &str) -> Result<(), Failure> {
        self.run_within(SILENCE, sql).await
    }

    /// Runs a statement that processes all rows of a run, with a timeout of one hour.
    pub(crate) async fn merge(&mut self, sql: &str) -> Result<(), Failure> {
        self.run_within(MERGE, sql).await
    }

    /// The same for a statement whose errors differ in the text of the server but not in
    /// their codes. `meaning` gets the SQLSTATE and the text. The text is discarded
    /// afterwards.
    pub(crate) async fn merge_explained(
        &mut self,
        sql: &str,
        meaning: fn(&str, &str) -> Option<Failure>,
    ) -> Result<(), Failure> {
        let ran = within(MERGE, self.client.batch_execute(sql)).await?;
        let Err(error) = ran else { return Ok(()) };
        let refusal = error.as_db_error().and_then(|refusal| {
            let words = format!("{} {}", refusal.message(), refusal.detail().unwrap_or_default());
            meaning(refusal.code().code(), &words)
        });
        match refusal {
            Some(failure) => Err(failure),
            None => Err(self.failure(error).await),
        }
    }

    async fn run_within(&mut self, limit: Duration, sql: &str) -> Result<(), Failure> {
        match within(limit, self.client.batch_execute(sql)).await? {
            Ok(()) => Ok(()),
            Err(error) => Err(self.failure(error).await),
        }
    }

    /// The rows of a result, as text.
    pub(crate) async fn rows(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, Failure> {
        let answer = match answered(self.client.simple_query(sql)).await? {
            Ok(answer) => answer,
            Err(error) => return Err(self.failure(error).await),
        };
        let mut rows = Vec::new();
        for message in answer {
            if let SimpleQueryMessage::Row(row) = message {
                rows.push((0..row.len()).map(|at| row.get(at).map(str::to_owned)).collect());
            }
        }
        Ok(rows)
    }

    /// Begins a `COPY … FROM STDIN`.
    pub(crate) async fn copy(&mut self, sql: &str) -> Result<Pin<Box<CopyInSink<Bytes>>>, Failure> {
        match answered(self.client.copy_in(sql)).await? {
            Ok(copy) => Ok(Box::pin(copy)),
            Err(error) => Err(self.failure(error).await),
        }
    }

    /// The failure for an error. Only the task of the connection knows why the connection
    /// ended.
    pub(crate) async fn failure(&mut self, error: Error) -> Failure {
        if error.as_db_error().is_none()
            && let Some(line) = &mut self.line
            && let Ok(ended) = timeout(LAST_WORDS, line).await
        {
            self.line = None;
            if let Ok(Err(reason)) = ended {
                return failure(&reason);
            }
        }
        failure(&error)
    }

    /// Ends the session.
    pub(crate) fn hang_up(&mut self) {
        if let Some(line) = self.line.take() {
            line.abort();
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.hang_up();
    }
}

/// Waits for an answer of a server for at most ten minutes, because a run occupies a slot
/// meanwhile.
pub(crate) async fn answered<T>(work: impl Future<Output = T>) -> Result<T, Failure> {
    within(SILENCE, work).await
}

async fn within<T>(limit: Duration, work: impl Future<Output = T>) -> Result<T, Failure> {
    timeout(limit, work).await.map_err(|_| Fault::from(FaultClass::TimedOut).into())
}

/// A connection with TLS. A server without TLS is accepted only in a private network.
pub(crate) async fn dial(
    egress: &Egress,
    credentials: &Credentials,
) -> Result<PostgresStream, Failure> {
    let Credentials { host, port, trust, .. } = credentials;
    let dialled = egress.dial_postgres(host, *port, *trust, ANSWERS_MAX).await;
    dialled.map_err(|fault| match fault {
        PostgresFault::Connection(fault) => fault.into(),
        PostgresFault::NoTls => Failure::permanent(
            "TlsNeeded",
            "The server does not speak TLS. Switch it on there: without it only servers \
             in a network of one's own are talked to.",
        ),
        PostgresFault::OtherServer => Failure::permanent(
            "NoDatabase",
            "What answers at this host and port is no PostgreSQL server.",
        ),
    })
}

fn failure(error: &Error) -> Failure {
    match error.code() {
        Some(code) => of_code(code.code()),
        // Other errors: the connection broke, or the answer is not valid.
        None => {
            tracing::info!(%error, "the session with a database ended");
            Fault::from(FaultClass::Broken).into()
        }
    }
}

/// The failure for an SQLSTATE (EXP-29).
fn of_code(code: &str) -> Failure {
    let (class, message) = match (code.get(..2).unwrap_or_default(), code) {
        ("28", _) => (
            "WrongPassword",
            "The user or the password is wrong, or this user may not sign in from here.",
        ),
        (_, "3D000") => ("MissingDatabase", "There is no such database."),
        (_, "3F000") => ("MissingSchema", "There is no such schema. Create it first."),
        (_, "42501") => (
            "MissingPrivilege",
            "The user lacks a privilege: USAGE of the schema, TEMPORARY on the database, and \
             SELECT, INSERT, UPDATE and DELETE on the table (or CREATE in the schema, if the \
             table is missing).",
        ),
        (_, "42P01") => ("MissingTable", "The table went away while the run was under way."),
        (_, "42703") => ("MissingColumn", "A column went away while the run was under way."),
        (_, "23502") => (
            "NotNull",
            "A column that takes no null got none of the event's values. Allow null there, or \
             give it a default.",
        ),
        ("23", _) => (
            CONSTRAINT,
            "A row breaks a rule of the table: a unique key, a foreign key or a check.",
        ),
        (_, "22001") => ("TooLong", "A value is longer than its column takes."),
        ("22", _) | (_, "42804") => {
            ("WrongType", "A value does not fit the type of its column in the table.")
        }
        (_, "21000") => (
            "SameIdTwice",
            "Two rows of the run are one and the same by the unique key of the table.",
        ),
        (_, "53100") => ("DiskFull", "The disk of the database is full."),
        (_, "25006") => return busy("The database takes no changes at the moment."),
        ("08" | "25" | "40" | "53" | "55" | "57" | "58" | "XX", _) => {
            return busy("The database is busy, stopping, or in trouble.");
        }
        _ => {
            return Failure::permanent(
                "Refused",
                format!("The server refused a statement{}", message(code)),
            );
        }
    };
    Failure::permanent(class, message)
}

fn busy(message: &str) -> Failure {
    Failure::retryable("DatabaseUnavailable", message)
}

/// An SQLSTATE for users, if it has the form of one.
fn message(code: &str) -> String {
    let is_code = code.len() == 5 && code.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if is_code { format!(" (SQLSTATE {code}).") } else { ".".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_server_that_falls_silent_is_given_up() {
        let never = std::future::pending::<()>();
        let failure = within(Duration::from_millis(10), never).await.unwrap_err();
        assert_eq!((failure.class, failure.is_retryable), ("TimedOut", true));
    }
}
