//! Errors of scripts, and faults of the pool.

use serde::{Deserialize, Serialize};

/// The kind of an error of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ErrorKind {
    /// It threw, or its promise was rejected.
    Threw,
    /// It exceeded its time limit.
    TimedOut,
    /// It exceeded its memory limit.
    OutOfMemory,
    /// Its recursion is too deep.
    StackOverflow,
    /// It returned a value of the wrong type.
    BadResult,
    /// Its promise can never be settled.
    Unsettled,
    /// It does not compile, imports an unknown module, or threw while it was loaded.
    Load,
    /// `setupPlugin` failed.
    Setup,
    /// The process ended while it ran, for another reason than time.
    Crashed,
}

/// An error of a script, with details for its author.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{name}: {message}")]
pub struct ScriptError {
    /// The kind of error.
    pub kind: ErrorKind,
    /// The message, at most 2,000 characters.
    pub message: String,
    /// The name of the error's class, such as `TypeError`.
    pub name: String,
    /// The file, where known.
    pub file: Option<String>,
    /// The line, from 1.
    pub line: Option<u32>,
    /// The column, from 1.
    pub column: Option<u32>,
    /// The stack, at most 2,000 characters.
    pub stack: Option<String>,
    /// Whether a retry may succeed: it is a `RetryError`, or it was thrown after a
    /// `fetch` with a temporary failure.
    #[serde(default)]
    pub retry: bool,
}

impl ScriptError {
    /// An error without a position in the source.
    pub(crate) fn plain(kind: ErrorKind, message: impl Into<String>) -> Self {
        let name = match kind {
            ErrorKind::TimedOut => "TimeoutError",
            ErrorKind::OutOfMemory => "MemoryError",
            ErrorKind::BadResult => "ResultError",
            ErrorKind::Unsettled => "UnsettledError",
            ErrorKind::Crashed => "CrashError",
            ErrorKind::StackOverflow => "RangeError",
            ErrorKind::Threw | ErrorKind::Load | ErrorKind::Setup => "Error",
        };
        Self {
            kind,
            message: message.into(),
            name: name.to_owned(),
            file: None,
            line: None,
            column: None,
            stack: None,
            retry: false,
        }
    }
}

/// Why a request has no answer. No script is known to be at fault.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// No child process can be started.
    #[error("the process for plugins cannot be started")]
    Spawn(#[source] std::io::Error),
    /// A child process started but did not report that it is ready.
    #[error("the process for plugins does not answer")]
    NotReady,
    /// The kernel does not accept the filter of system calls. Scripts of members do not
    /// run without it.
    #[error("the process for plugins cannot be confined: {0}")]
    Unconfined(String),
    /// Child processes end before they have done any work.
    #[error("the process for plugins ends again and again")]
    KeepsEnding,
    /// A source was not compiled in time, because it is large or the machine is busy.
    #[error("{name}: compiling it takes longer than {seconds} seconds")]
    SlowCompile {
        /// The file.
        name: String,
        /// The limit in seconds.
        seconds: u64,
    },
    /// The pool has been shut down.
    #[error("the pool has been shut down")]
    ShutDown,
    /// A request could not be written as JSON.
    #[error("a request cannot be written")]
    Encode(#[from] serde_json::Error),
}
