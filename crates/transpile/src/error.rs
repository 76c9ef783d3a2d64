//! Faults of a source and their positions. The caller decides what to do about them.

use serde::Serialize;

use crate::position::{Lines, excerpt};

/// The first fault of a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{file}:{line}:{column}: {message}")]
pub struct SourceError {
    /// Description of the fault, in one sentence.
    pub message: String,
    /// The file name that was passed.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1, in characters.
    pub column: u32,
    /// The part of the line around the fault, truncated if the line is long.
    pub excerpt: String,
}

/// A fault without a file: the message and the byte position.
#[derive(Debug)]
pub(crate) struct Fault {
    message: String,
    at: usize,
}

impl Fault {
    pub(crate) fn new(message: impl Into<String>, at: usize) -> Self {
        Self { message: message.into(), at }
    }

    /// Adds file, line and column.
    pub(crate) fn in_file(self, file: &str, text: &str) -> SourceError {
        let (line, column) = Lines::of(text).place(text, self.at);
        SourceError {
            message: self.message,
            file: file.to_owned(),
            line,
            column,
            excerpt: excerpt(text, self.at),
        }
    }
}
