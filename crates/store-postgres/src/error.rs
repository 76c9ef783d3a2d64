//! The meaning of errors of PostgreSQL for the engine.

use surrealdb_kvs::Error as StorageError;
use tokio_postgres::Error;
use weir_egress::{BuildError, PostgresFault};

/// Why a database is not opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// No server that takes writes was reached.
    #[error("no primary of the database was reached: {0}")]
    Unreachable(String),
    /// The server would lose data.
    #[error("the database must not be used, because {}", .0.join("; "))]
    Unsuitable(Vec<String>),
    /// A newer program created the table.
    #[error("the table has layout {found}, this program knows layouts up to {known}")]
    NewerLayout {
        /// The layout of the table.
        found: i32,
        /// The newest layout that this program knows.
        known: i32,
    },
    /// The database belongs to another data directory.
    #[error(
        "the database belongs to another data directory, which has the log and the files of \
         events; start Weir with that directory, or use an empty database"
    )]
    OtherDirectory,
    /// A statement failed.
    #[error("a statement failed: {0}")]
    Statement(String),
    /// It is unknown whether the database has kept the table.
    #[error("the database did not confirm that it has stored the table on a standby; try again")]
    Unconfirmed,
    /// Outgoing connections cannot be set up.
    #[error(transparent)]
    Egress(#[from] BuildError),
}

/// Why a server gave no connection. Another one, or a later attempt, may.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    #[error(transparent)]
    Dial(#[from] PostgresFault),
    #[error("no answer in time")]
    Silent,
    #[error("the server is a standby")]
    Standby,
    #[error("{}", described(.0))]
    Refused(#[from] Error),
    #[error("the database must not be used, because {}", .0.join("; "))]
    Unsuitable(Vec<String>),
}

impl ConnectError {
    /// Whether an operator must change something first.
    pub(crate) fn is_final(&self) -> bool {
        match self {
            Self::Unsuitable(_) => true,
            // Of the credentials and of the name of the database.
            Self::Refused(error) => error
                .code()
                .is_some_and(|code| code.code().starts_with("28") || code.code() == "3D000"),
            Self::Dial(_) | Self::Silent | Self::Standby => false,
        }
    }
}

/// A text for an error: the SQLSTATE and the message of the server, or what broke.
pub(crate) fn described(error: &Error) -> String {
    match error.as_db_error() {
        Some(refusal) => format!("{} (SQLSTATE {})", refusal.message(), refusal.code().code()),
        None => error.to_string(),
    }
}

/// The error of a statement of a transaction that is not committed. The transaction had no
/// effect.
pub(crate) fn of_statement(error: &Error) -> StorageError {
    let detail = described(error);
    let Some(code) = error.code().map(|code| code.code()) else {
        // The connection broke. Another attempt uses another one.
        return StorageError::TransactionConflict(detail);
    };
    match (code.get(..2).unwrap_or_default(), code) {
        // A serialization failure, a deadlock, a lock that another commit did not release in
        // time, and a server that is a standby now.
        ("40", _) | (_, "55P03" | "25006") => StorageError::TransactionConflict(detail),
        (_, "54000") => StorageError::TransactionKeyTooLarge,
        // The data or the disk of the server is damaged. The process stops.
        (_, "58030") | ("XX", _) => StorageError::Transaction(detail),
        // The server is busy, full, ending or in maintenance.
        ("08" | "53" | "55" | "57" | "58", _) => StorageError::ConnectionFailed(detail),
        _ => StorageError::Transaction(detail),
    }
}

/// The error of a `COMMIT`, after statements without errors.
pub(crate) fn of_commit(error: &Error) -> StorageError {
    match error.code().map(|code| code.code()) {
        // The server says that it has rolled back.
        Some(code) if code.starts_with("40") => StorageError::TransactionConflict(described(error)),
        // A server that is stopped while the commit waits for a standby has committed, and
        // ends the connection with an error.
        Some(_) | None => unknown(&described(error)),
    }
}

/// The outcome of a commit is unknown.
pub(crate) fn unknown(detail: &str) -> StorageError {
    StorageError::CommitOutcomeUnknown(detail.to_owned())
}

/// The transaction has lost its snapshot with its connection.
pub(crate) fn lost() -> StorageError {
    StorageError::TransactionConflict("the connection of this transaction broke".to_owned())
}
