//! What is wrong with a source, and where. Not what the caller does about it.

use serde::Serialize;

use crate::position::{Lines, excerpt};

/// The first fault of a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{file}:{line}:{column}: {message}")]
pub struct SourceError {
    /// What is wrong, in one sentence.
    pub message: String,
    /// The file that was given.
    pub file: String,
    /// From 1.
    pub line: u32,
    /// From 1, in characters.
    pub column: u32,
    /// The part of the line around the fault; cut when the line is long.
    pub excerpt: String,
}

/// A fault before it has a file: what, and at which byte.
#[derive(Debug)]
pub(crate) struct Fault {
    message: String,
    at: usize,
}

impl Fault {
    pub(crate) fn new(message: impl Into<String>, at: usize) -> Self {
        Self { message: message.into(), at }
    }

    /// Finds the place in the text.
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
