//! What can go wrong: in a script, and with the pool itself.

use serde::{Deserialize, Serialize};

/// What kind of trouble a script made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ErrorKind {
    /// It threw, or its promise was rejected.
    Threw,
    /// It ran longer than it may.
    TimedOut,
    /// It used more memory than it may.
    OutOfMemory,
    /// It called itself too deep.
    StackOverflow,
    /// What it returned is not what the function returns.
    BadResult,
    /// Its promise can never be settled.
    Unsettled,
    /// It does not compile, imports what there is not, or threw while it was loaded.
    Load,
    /// `setupPlugin` failed.
    Setup,
    /// The process ended under it, and not for the time that it took.
    Crashed,
}

/// An error of a script, in the words that its author needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{name}: {message}")]
pub struct ScriptError {
    /// What kind of trouble.
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
    /// Whether another try may help: it is a `RetryError`, or it was thrown after a
    /// `fetch` that came to nothing for now.
    #[serde(default)]
    pub retry: bool,
}

impl ScriptError {
    /// An error that has no place in the source.
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
    /// No child can be started.
    #[error("the process for plugins cannot be started")]
    Spawn(#[source] std::io::Error),
    /// A child started, but it did not say that it is ready.
    #[error("the process for plugins does not answer")]
    NotReady,
    /// The kernel does not take the filter of system calls: scripts of members are not
    /// run without it.
    #[error("the process for plugins cannot be confined: {0}")]
    Unconfined(String),
    /// Children end before they have done anything.
    #[error("the process for plugins ends again and again")]
    KeepsEnding,
    /// A source was not compiled in time: it is large, or the machine is busy.
    #[error("{name}: compiling it takes longer than {seconds} seconds")]
    SlowCompile {
        /// The file.
        name: String,
        /// The limit.
        seconds: u64,
    },
    /// The pool has been shut down.
    #[error("the pool has been shut down")]
    ShutDown,
    /// A request could not be written as JSON.
    #[error("a request cannot be written")]
    Encode(#[from] serde_json::Error),
}
