//! Errors of the database, with the name of the statement that failed.

use std::path::PathBuf;

/// A failure of the store.
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
        /// The error of the operating system.
        #[source]
        source: std::io::Error,
    },
    /// The engine did not open.
    #[error("failed to open the store at `{location}`: {detail}")]
    Open {
        /// The path or URL that was opened.
        location: String,
        /// The message of the engine.
        detail: String,
    },
    /// The data was written by a newer version.
    #[error(
        "the data directory has schema version {found}, this program knows versions up to \
         {known}; nothing was changed; start the newer program, or restore a backup"
    )]
    NewerSchema {
        /// Schema version of the data.
        found: i64,
        /// Newest schema version that this program knows.
        known: i64,
    },
    /// An applied migration differs from the one in the program.
    #[error("migration {version} was applied with other text; the data belongs to another build")]
    ChangedMigration {
        /// The number of the migration.
        version: i64,
    },
    /// A record with this id exists already.
    #[error("`{statement}`: record exists: {detail}")]
    Exists {
        /// Name of the statement.
        statement: &'static str,
        /// The message of the engine.
        detail: String,
    },
    /// The records of a read need more memory together than one read may use.
    #[error("`{statement}`: the records are too large to be read together")]
    TooLarge {
        /// Name of the statement.
        statement: &'static str,
    },
    /// A statement ended itself with `THROW`. The transaction had no effect.
    #[error("`{statement}`: refused: {reason}")]
    Refused {
        /// Name of the statement.
        statement: &'static str,
        /// The thrown word.
        reason: String,
    },
    /// Concurrent writers kept conflicting. The transaction had no effect.
    #[error("`{statement}`: still in conflict after {attempts} attempts")]
    Conflict {
        /// Name of the statement.
        statement: &'static str,
        /// The number of attempts.
        attempts: u32,
    },
    /// The statement took too long.
    #[error("`{statement}`: no answer within {seconds} s")]
    Timeout {
        /// Name of the statement.
        statement: &'static str,
        /// The time limit, seconds.
        seconds: u64,
    },
    /// The result takes long to make. It is being made, and the same call can have it later.
    #[error("`{statement}`: the result is being made")]
    Making {
        /// Name of the read.
        statement: &'static str,
    },
    /// The result has an unexpected shape: the data comes from elsewhere, or this is a
    /// defect.
    #[error("`{statement}`: unexpected answer: {detail}")]
    Shape {
        /// Name of the statement.
        statement: &'static str,
        /// The unexpected shape.
        detail: String,
    },
    /// The engine failed. Writes stop and the process ends (fail-stop).
    #[error("`{statement}`: storage failure: {detail}")]
    Storage {
        /// Name of the statement.
        statement: &'static str,
        /// The message of the engine.
        detail: String,
    },
    /// A file of sealed events or of their uuids is not as it was written. Nothing of the
    /// damaged part was read.
    #[error("stored events cannot be read: {detail}")]
    Damaged {
        /// The file with the damage.
        file: PathBuf,
        /// What is damaged. Names the file.
        detail: String,
    },
    /// A file of sealed events or of their uuids could not be read or written.
    #[error("cannot use the file `{file}`")]
    File {
        /// The file that was read or written.
        file: PathBuf,
        /// The error of the operating system.
        #[source]
        source: std::io::Error,
    },
    /// The bucket of sealed events cannot be used now. Events that are on this machine can
    /// be read.
    #[error("the bucket of stored events `{location}` cannot be used: {detail}")]
    Bucket {
        /// The bucket and the prefix.
        location: String,
        /// Why.
        detail: String,
    },
    /// The database cannot be used now, or all connections to it are in use. The transaction
    /// had no effect.
    #[error("`{statement}`: the database cannot be used now: {detail}")]
    Unavailable {
        /// Name of the statement.
        statement: &'static str,
        /// Why.
        detail: String,
    },
    /// Free disk space is below the low threshold. Reads and deletions continue.
    #[error("too little free disk space")]
    DiskLow,
    /// The store stopped after a storage failure.
    #[error("the store has stopped after a storage failure")]
    Stopped,
}

impl Error {
    /// Whether the same call may succeed later without a change by the caller.
    pub fn is_temporary(&self) -> bool {
        matches!(
            self,
            Self::Bucket { .. }
                | Self::Conflict { .. }
                | Self::Timeout { .. }
                | Self::Making { .. }
                | Self::Unavailable { .. }
                | Self::DiskLow
                | Self::Stopped
        )
    }
}

/// Whether a transaction was committed: `false` when it ended itself with `THROW`.
pub(crate) fn is_done<T>(outcome: Result<T, Error>) -> Result<bool, Error> {
    match outcome {
        Ok(_) => Ok(true),
        Err(Error::Refused { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}
