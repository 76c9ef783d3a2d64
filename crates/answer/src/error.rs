//! Why a question has no answer.

use weir_model::errors::FieldError;

/// A result of this crate.
pub type Result<T, E = AnswerError> = std::result::Result<T, E>;

/// An error of a [`Source`](crate::Source).
pub type SourceError = Box<dyn std::error::Error + Send + Sync>;

/// Why a question has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// A field of the question cannot be used.
    #[error("{}", .0.detail)]
    Field(FieldError),
    /// The question has more of something than may be in memory.
    #[error("the question has more than {limit} {what}")]
    TooLarge {
        /// What there is too much of, such as `values of $browser`.
        what: String,
        /// How many there may be.
        limit: usize,
    },
    /// The question needs more memory than all questions may have together.
    #[error("the question needs more than {limit} bytes of memory")]
    Memory {
        /// Bytes of all questions.
        limit: usize,
    },
    /// The question took longer than it may.
    #[error("the question took too long")]
    TooLong,
    /// The question was cancelled.
    #[error("the question was cancelled")]
    Cancelled,
    /// A segment cannot be read.
    #[error(transparent)]
    Segment(#[from] weir_segments::Error),
    /// The source of the events failed.
    #[error("{0}")]
    Source(#[from] SourceError),
}

impl From<FieldError> for AnswerError {
    fn from(fault: FieldError) -> Self {
        Self::Field(fault)
    }
}
