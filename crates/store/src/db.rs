//! The only way to the engine: statements of constant text with bound values, and guards
//! around every operation: a time limit, retry on conflict, typed errors, fail-stop.
//!
//! What belongs here: guarding an operation, running a statement and classifying errors.
//! What does not: the statements, which are in the module of their resource; reading and
//! writing records without a statement (`transaction`); opening the engine (`engine`).

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use surrealdb::Surreal;
use surrealdb::engine::local::Db as Local;
use surrealdb::types::{QueryError, SurrealValue, Value, Variables};
use surrealdb_core::kvs::Datastore;
use tokio::sync::{Notify, OnceCell};
use tracing::Instrument as _;
use weir_model::traces;

use crate::disk::DiskState;
use crate::engine::QUERY_TIMEOUT;
use crate::error::Error;
use crate::transaction::Keyspace;

/// Attempts of a transaction that conflicts with others. Callers that change one
/// organization concurrently rarely need more than one, because they wait for its keyed
/// lock (`keyed_lock`).
const ATTEMPTS: u32 = 16;
/// The wait before the second attempt. It doubles with every attempt.
const FIRST_WAIT: Duration = Duration::from_millis(5);
/// The longest wait between attempts.
const LONGEST_WAIT: Duration = Duration::from_millis(500);

/// How the engine begins the message of an error of a storage that was not reached.
const UNREACHABLE: &str = "Connection to storage backend failed: ";

/// What an operation does to the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Only reads.
    Read,
    /// Deletes, which frees disk space; what it writes besides is small (pointers, a
    /// tombstone, audit entries). Allowed while the disk is low.
    Delete,
    /// Writes: refused while the disk is low.
    Write,
    /// Small writes of a sign-in, so that an operator can sign in and free disk space.
    /// Refused only when the disk is nearly full.
    SignIn,
}

/// What the guards need to know about an operation on the engine. The name appears in
/// errors.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Operation {
    pub(crate) name: &'static str,
    pub(crate) access: Access,
    pub(crate) limit: Duration,
}

impl Operation {
    /// An operation that only reads.
    pub(crate) const fn read(name: &'static str) -> Self {
        Self { name, access: Access::Read, limit: Duration::from_secs(5) }
    }

    /// An operation that writes.
    pub(crate) const fn write(name: &'static str) -> Self {
        Self { name, access: Access::Write, limit: Duration::from_secs(10) }
    }

    /// An operation that deletes.
    pub(crate) const fn delete(name: &'static str) -> Self {
        Self { name, access: Access::Delete, limit: Duration::from_secs(5) }
    }

    /// The same operation with another time limit.
    pub(crate) const fn within(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }
}

/// A named statement. The name appears in errors.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Statement {
    pub(crate) name: &'static str,
    pub(crate) text: &'static str,
    pub(crate) access: Access,
    pub(crate) limit: Duration,
}

impl Statement {
    /// A statement that only reads. One that writes does not compile.
    pub(crate) const fn read(name: &'static str, text: &'static str) -> Self {
        assert!(!writes(text), "this statement writes");
        Self { name, text, access: Access::Read, limit: Duration::from_secs(5) }
    }

    /// A statement that deletes.
    pub(crate) const fn delete(name: &'static str, text: &'static str) -> Self {
        Self { name, text, access: Access::Delete, limit: Duration::from_secs(5) }
    }

    /// A statement that writes.
    pub(crate) const fn write(name: &'static str, text: &'static str) -> Self {
        Self { name, text, access: Access::Write, limit: Duration::from_secs(10) }
    }

    /// A small write that a sign-in needs.
    pub(crate) const fn sign_in(name: &'static str, text: &'static str) -> Self {
        Self { access: Access::SignIn, ..Self::write(name, text) }
    }

    /// The same statement with another time limit.
    pub(crate) const fn within(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    const fn operation(self) -> Operation {
        Operation { name: self.name, access: self.access, limit: self.limit }
    }
}

/// Whether a text contains a word that writes.
const fn writes(text: &str) -> bool {
    const WORDS: [&[u8]; 6] = [b"CREATE", b"DELETE", b"INSERT", b"RELATE", b"UPDATE", b"UPSERT"];
    let text = text.as_bytes();
    let mut at = 0;
    while at < text.len() {
        let mut word = 0;
        while word < WORDS.len() {
            let mut same = 0;
            while same < 6 && at + same < text.len() && text[at + same] == WORDS[word][same] {
                same += 1;
            }
            if same == 6 {
                return true;
            }
            word += 1;
        }
        at += 1;
    }
    false
}

/// The database handle of the process.
#[derive(Clone)]
pub(crate) struct Db {
    handle: Surreal<Local>,
    shared: Arc<Shared>,
}

struct Shared {
    datastore: Arc<Datastore>,
    stopped: AtomicBool,
    failed: Notify,
    disk: Arc<DiskState>,
    keyspace: OnceCell<Keyspace>,
}

/// The results of the parts of a statement, in order.
pub(crate) struct Answer {
    statement: &'static str,
    results: surrealdb::IndexedResults,
}

impl Answer {
    /// The rows of part `index`. Every statement of a text is a part, `BEGIN` too.
    pub(crate) fn rows<T: SurrealValue>(&mut self, index: usize) -> Result<Vec<T>, Error> {
        let value: Value = self.value(index)?;
        let items = match value {
            Value::Array(items) => items.into_iter().collect(),
            Value::None | Value::Null => Vec::new(),
            other => vec![other],
        };
        items.into_iter().map(|item| self.convert(item)).collect()
    }

    /// The first row of part `index`, if there is one.
    pub(crate) fn row<T: SurrealValue>(&mut self, index: usize) -> Result<Option<T>, Error> {
        Ok(self.rows(index)?.into_iter().next())
    }

    fn value(&mut self, index: usize) -> Result<Value, Error> {
        self.results.take(index).map_err(|error| Error::Shape {
            statement: self.statement,
            detail: error.message().to_owned(),
        })
    }

    fn convert<T: SurrealValue>(&self, value: Value) -> Result<T, Error> {
        T::from_value(value).map_err(|error| Error::Shape {
            statement: self.statement,
            detail: error.message().to_owned(),
        })
    }
}

/// Why an attempt failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The transaction had no effect because of a concurrent one, or its outcome is
    /// unknown. It is repeated.
    Conflict,
    /// The operation fails with this error.
    Final(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Final(error)
    }
}

impl Db {
    pub(crate) fn new(
        handle: Surreal<Local>,
        datastore: Arc<Datastore>,
        disk: Arc<DiskState>,
    ) -> Self {
        let shared = Shared {
            datastore,
            stopped: AtomicBool::new(false),
            failed: Notify::new(),
            disk,
            keyspace: OnceCell::new(),
        };
        Self { handle, shared: Arc::new(shared) }
    }

    /// Runs a statement. Every text is one transaction or one read, and idempotent: an
    /// attempt with an unknown outcome is repeated.
    pub(crate) async fn run(&self, statement: Statement, vars: Variables) -> Result<Answer, Error> {
        self.run_holding(statement, vars, ()).await
    }

    /// Runs a statement and keeps `held` until the transaction has ended, even if the
    /// caller is dropped before.
    pub(crate) async fn run_holding(
        &self,
        statement: Statement,
        vars: Variables,
        held: impl Send + 'static,
    ) -> Result<Answer, Error> {
        let db = self.clone();
        let operation = statement.operation();
        let attempt = move || {
            let (db, vars) = (db.clone(), vars.clone());
            async move { in_time(operation, db.once(statement, vars)).await }
        };
        self.guard(operation, held, attempt).await
    }

    /// Makes attempts of an operation until one succeeds or fails for good, and keeps
    /// `held` until then, even if the caller is dropped before. An attempt is a whole
    /// transaction.
    ///
    /// The work runs in its own task. So a caller that is dropped (because its client
    /// disconnects) cannot leave a transaction half done.
    pub(crate) async fn guard<T, F>(
        &self,
        operation: Operation,
        held: impl Send + 'static,
        attempt: impl FnMut() -> F + Send + 'static,
    ) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Failure>> + Send,
    {
        if self.shared.stopped.load(Ordering::Acquire) {
            return Err(Error::Stopped);
        }
        let disk = &self.shared.disk;
        let refused = match operation.access {
            Access::Read | Access::Delete => false,
            Access::Write => disk.is_low(),
            Access::SignIn => disk.is_nearly_full(),
        };
        if refused {
            return Err(Error::DiskLow);
        }
        let db = self.clone();
        let work = async move {
            let outcome = db.attempts(operation, attempt).await;
            drop(held);
            outcome
        };
        let span = tracing::info_span!(
            target: traces::TARGET,
            "store",
            otel.name = operation.name,
            db.system.name = "surrealdb"
        );
        match tokio::spawn(work).instrument(span).await {
            Ok(outcome) => outcome,
            Err(join) => {
                let detail = format!("the task ended early: {join}");
                let error = Error::Storage { statement: operation.name, detail };
                // A cancelled task means that the runtime is shutting down. After a panic
                // below an operation the state of the engine is unknown.
                if join.is_panic() {
                    self.stop(&error);
                }
                Err(error)
            }
        }
    }

    async fn attempts<T, F>(
        &self,
        operation: Operation,
        mut attempt: impl FnMut() -> F,
    ) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        let mut wait = FIRST_WAIT;
        for number in 1..=ATTEMPTS {
            match attempt().await {
                Ok(done) => return Ok(done),
                Err(Failure::Final(error)) => {
                    if matches!(error, Error::Storage { .. }) {
                        self.stop(&error);
                    }
                    return Err(error);
                }
                Err(Failure::Conflict) => {
                    tracing::debug!(statement = operation.name, number, "transaction conflict");
                    tokio::time::sleep(wait.mul_f64(jitter(number))).await;
                    wait = (wait * 2).min(LONGEST_WAIT);
                }
            }
        }
        Err(Error::Conflict { statement: operation.name, attempts: ATTEMPTS })
    }

    async fn once(&self, statement: Statement, vars: Variables) -> Result<Answer, Failure> {
        let outcome = self.handle.query(statement.text).bind(vars).await;
        let mut results = match outcome {
            Ok(results) => results,
            Err(error) => return Err(classify(statement.name, vec![error])),
        };
        // All errors, not the first: "not executed" would hide the conflict that caused
        // it.
        let errors: Vec<_> = results.take_errors().into_values().collect();
        if errors.is_empty() {
            Ok(Answer { statement: statement.name, results })
        } else {
            Err(classify(statement.name, errors))
        }
    }

    fn stop(&self, error: &Error) {
        if !self.shared.stopped.swap(true, Ordering::AcqRel) {
            tracing::error!(error = %error, "storage failure: no further writes are accepted");
            self.shared.failed.notify_waiters();
            self.shared.failed.notify_one();
        }
    }

    /// Returns when the engine has failed. The process should end then.
    pub(crate) async fn failed(&self) {
        if !self.shared.stopped.load(Ordering::Acquire) {
            self.shared.failed.notified().await;
        }
    }

    pub(crate) fn disk(&self) -> &Arc<DiskState> {
        &self.shared.disk
    }

    pub(crate) fn datastore(&self) -> &Datastore {
        &self.shared.datastore
    }

    /// Where the records are in the storage. It is read once.
    pub(crate) async fn keyspace(&self) -> Result<Keyspace, Error> {
        if self.shared.stopped.load(Ordering::Acquire) {
            return Err(Error::Stopped);
        }
        self.shared.keyspace.get_or_try_init(|| Keyspace::read(self.datastore())).await.copied()
    }

    /// Flushes and closes the engine. No statement runs afterwards.
    pub(crate) async fn close(&self) -> Result<(), Error> {
        self.shared.stopped.store(true, Ordering::Release);
        self.shared
            .datastore
            .shutdown()
            .await
            .map_err(|error| Error::Storage { statement: "close", detail: format!("{error:#}") })
    }
}

/// Ends an attempt that takes longer than the operation may.
pub(crate) async fn in_time<T>(
    operation: Operation,
    attempt: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let Operation { name: statement, limit, .. } = operation;
    tokio::time::timeout(limit, attempt).await.unwrap_or_else(|_elapsed| {
        Err(Failure::Final(Error::Timeout { statement, seconds: limit.as_secs() }))
    })
}

pub(crate) fn classify(statement: &'static str, errors: Vec<surrealdb::types::Error>) -> Failure {
    // The engine gives no kind to a commit whose outcome is unknown.
    let conflict = errors.iter().any(|error| {
        error.query_details() == Some(&QueryError::TransactionConflict)
            || error.message().contains("commit outcome is unknown")
    });
    if conflict {
        return Failure::Conflict;
    }
    let all = || errors.iter().map(surrealdb::types::Error::message).collect::<Vec<_>>().join("; ");
    // Only a storage behind a network has such errors. The engine passes on their text alone
    // if a statement fails.
    if errors.iter().any(|error| error.message().contains(UNREACHABLE)) {
        return Failure::Final(Error::Unavailable { statement, detail: all() });
    }
    if errors.iter().any(is_storage) {
        return Failure::Final(Error::Storage { statement, detail: all() });
    }
    // One statement took too long, and the others were not executed because of it. A
    // commit that took too long has the kind of a statement that was not executed.
    let timed_out = errors.iter().any(|error| {
        matches!(error.query_details(), Some(QueryError::TimedOut { .. }))
            || error.message().contains("exceeded the timeout")
    });
    if timed_out {
        return Failure::Final(Error::Timeout { statement, seconds: QUERY_TIMEOUT.as_secs() });
    }
    // Statements before and after the failed one are reported as errors too.
    let pending = |error: &&surrealdb::types::Error| {
        !matches!(error.query_details(), Some(QueryError::NotExecuted | QueryError::Cancelled))
    };
    let chosen = errors.iter().find(pending).or_else(|| errors.first());
    let detail = chosen.map_or_else(String::new, |error| error.message().to_owned());
    Failure::Final(match chosen {
        Some(error) if error.is_thrown() => {
            let reason = detail.rsplit(": ").next().unwrap_or(&detail).to_owned();
            Error::Refused { statement, reason }
        }
        Some(error) if error.is_already_exists() => Error::Exists { statement, detail },
        Some(_) | None => Error::Shape { statement, detail: all() },
    })
}

/// Whether an error comes from below the query engine, which gives no kind for such
/// errors. So the text is compared with the beginnings of messages of its storage layer
/// and of RocksDB. A commit that failed there is reported as a statement that was not
/// executed.
fn is_storage(error: &surrealdb::types::Error) -> bool {
    let below = matches!(error.query_details(), Some(QueryError::NotExecuted));
    if !error.is_internal() && !below {
        return false;
    }
    const COMMIT: &str = "Cannot COMMIT: ";
    const NOT_EXECUTED: &str = "The query was not executed due to a failed transaction. ";
    const BELOW: &str = "There was a problem with the key-value store: ";
    let mut message = error.message();
    for prefix in [COMMIT, NOT_EXECUTED, BELOW] {
        message = message.strip_prefix(prefix).unwrap_or(message);
    }
    ["There was a problem with the datastore", "There was a problem with a transaction"]
        .iter()
        .any(|opening| message.starts_with(opening))
        || (error.is_internal()
            && ["IO error", "Corruption"].iter().any(|sign| message.contains(sign)))
}

/// A factor between 0.5 and 1.5 that differs between attempts and callers, so that
/// conflicting writers do not conflict again.
fn jitter(attempt: u32) -> f64 {
    let address = std::ptr::from_ref(&attempt) as usize;
    let mixed = (address as u64 ^ u64::from(attempt)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    0.5 + f64::from((mixed >> 40) as u32) / f64::from(1_u32 << 24)
}

#[cfg(test)]
mod tests {
    use surrealdb::types::Error as Notifies;

    use super::*;
    use crate::disk::DiskMarks;
    use crate::{Location, Settings, Store};

    fn not_executed(message: &str) -> Notifies {
        Notifies::query(message.to_owned(), Some(QueryError::NotExecuted))
    }

    fn outcome(errors: Vec<Notifies>) -> Error {
        match classify("test", errors) {
            Failure::Final(error) => error,
            Failure::Conflict => Error::Conflict { statement: "test", attempts: 0 },
        }
    }

    #[tokio::test]
    async fn a_low_disk_refuses_writes_only() {
        let store = Store::open(&Location::Memory, Settings::default()).await.unwrap();
        let directory = tempfile::tempdir().unwrap();
        let marks = DiskMarks { high: u64::MAX, low: u64::MAX };
        let disk = Arc::new(DiskState::new(Some(directory.path().to_owned()), marks));
        let Db { handle, shared } = store.db.clone();
        let db = Db::new(handle, Arc::clone(&shared.datastore), disk);
        let nothing = |_| async { Ok(()) };
        let refused = db.transact(Operation::write("test"), (), nothing).await.unwrap_err();
        assert!(matches!(refused, Error::DiskLow), "{refused}");
        db.transact(Operation::read("test"), (), nothing).await.unwrap();
    }

    #[test]
    fn a_failed_commit_is_a_storage_failure() {
        let generic = "The query was not executed due to a failed transaction";
        let io = "There was a problem with a transaction: IO error: No space left on device";
        for errors in [
            vec![not_executed(generic), not_executed(&format!("Cannot COMMIT: {io}"))],
            vec![not_executed(&format!("{generic}. {io}"))],
            vec![not_executed(io)],
            vec![Notifies::internal(format!("There was a problem with the key-value store: {io}"))],
            vec![Notifies::internal(format!("Something: {io}"))],
            vec![Notifies::internal("Corruption: block checksum mismatch".to_owned())],
        ] {
            let detail = format!("{errors:?}");
            assert!(matches!(outcome(errors), Error::Storage { .. }), "{detail}");
        }
    }

    #[test]
    fn a_database_that_is_away_is_no_storage_failure() {
        let away = "Connection to storage backend failed: no answer in time";
        for errors in [
            vec![Notifies::internal(format!("There was a problem with the store: {away}"))],
            vec![not_executed(&format!("Cannot COMMIT: {away}"))],
        ] {
            let detail = format!("{errors:?}");
            let error = outcome(errors);
            assert!(matches!(error, Error::Unavailable { .. }), "{detail}");
            assert!(error.is_temporary());
        }
    }

    #[test]
    fn what_a_statement_says_itself_is_no_storage_failure() {
        let cancelled = not_executed("The query was not executed due to a failed transaction");
        let thrown = Notifies::thrown("An error occurred: position".to_owned());
        assert!(matches!(
            outcome(vec![cancelled.clone(), thrown]),
            Error::Refused { reason, .. } if reason == "position"
        ));
        let exists =
            Notifies::already_exists("Database record `a:1` already exists".to_owned(), None);
        assert!(matches!(outcome(vec![cancelled.clone(), exists]), Error::Exists { .. }));
        let late = not_executed("The query was not executed because it exceeded the timeout: 1m");
        let aborted =
            not_executed("Cannot COMMIT: the transaction was aborted due to a prior error");
        let outcome_of_late = outcome(vec![cancelled.clone(), late, aborted]);
        assert!(matches!(outcome_of_late, Error::Timeout { seconds: 60, .. }));
        let conflict = Notifies::query(
            "Cannot COMMIT: Transaction conflict: busy. This transaction can be retried".to_owned(),
            Some(QueryError::TransactionConflict),
        );
        assert!(matches!(outcome(vec![cancelled, conflict]), Error::Conflict { .. }));
    }
}
