//! What the database did, told with the name of the statement.

use std::path::PathBuf;

/// A store failure.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another process holds the data directory.
    #[error(
        "the data directory `{path}` is in use by another process (lock file `{lock}`); \
         stop that process or choose another directory with --data"
    )]
    InUse {
        /// The data directory.
        path: PathBuf,
        /// The lock file.
        lock: PathBuf,
    },
    /// The data directory cannot be used.
    #[error("cannot use the data directory `{path}`")]
    Directory {
        /// The data directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The engine did not open.
    #[error("failed to open the store at `{location}`: {detail}")]
    Open {
        /// Where.
        location: String,
        /// What the engine said.
        detail: String,
    },
    /// The data was written by a newer version.
    #[error(
        "the data directory has schema version {found}, this program knows versions up to \
         {known}; nothing was changed; start the newer program, or restore a backup"
    )]
    NewerSchema {
        /// Version of the data.
        found: i64,
        /// Newest version known here.
        known: i64,
    },
    /// A migration that was applied differs from the one in the program.
    #[error("migration {version} was applied with other text; the data belongs to another build")]
    ChangedMigration {
        /// The migration's number.
        version: i64,
    },
    /// A record with this identity exists.
    #[error("`{statement}`: record exists: {detail}")]
    Exists {
        /// Name of the statement.
        statement: &'static str,
        /// What the engine said.
        detail: String,
    },
    /// A statement stopped itself with `THROW`; the transaction had no effect.
    #[error("`{statement}`: refused: {reason}")]
    Refused {
        /// Name of the statement.
        statement: &'static str,
        /// The thrown word.
        reason: String,
    },
    /// Concurrent writers kept colliding; the transaction had no effect.
    #[error("`{statement}`: still in conflict after {attempts} attempts")]
    Conflict {
        /// Name of the statement.
        statement: &'static str,
        /// How often it was tried.
        attempts: u32,
    },
    /// The statement took too long.
    #[error("`{statement}`: no answer within {seconds} s")]
    Timeout {
        /// Name of the statement.
        statement: &'static str,
        /// The limit.
        seconds: u64,
    },
    /// The answer had another shape than expected: data from elsewhere, or a defect.
    #[error("`{statement}`: unexpected answer: {detail}")]
    Shape {
        /// Name of the statement.
        statement: &'static str,
        /// What was found.
        detail: String,
    },
    /// The engine failed. Writes stop and the process ends (fail-stop).
    #[error("`{statement}`: storage failure: {detail}")]
    Storage {
        /// Name of the statement.
        statement: &'static str,
        /// What the engine said.
        detail: String,
    },
    /// Free disk space is below the low mark: reads and deletes go on.
    #[error("too little free disk space")]
    DiskLow,
    /// The store stopped after a storage failure.
    #[error("the store has stopped after a storage failure")]
    Stopped,
}

impl Error {
    /// Whether the same call may work later without anything being changed.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::Conflict { .. } | Self::Timeout { .. } | Self::DiskLow | Self::Stopped)
    }
}

/// Whether a transaction was made: `false` when it stopped itself.
pub(crate) fn is_done<T>(outcome: Result<T, Error>) -> Result<bool, Error> {
    match outcome {
        Ok(_) => Ok(true),
        Err(Error::Refused { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}
