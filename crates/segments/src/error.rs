//! What can go wrong with a file.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Error numbers of Linux for a sector that the device cannot read, for a damaged structure
/// of the file system, and for a wrong checksum of the file system.
const EIO: i32 = 5;
const EUCLEAN: i32 = 117;
const EBADMSG: i32 = 74;

/// What went wrong with a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The content is not what was written. Nothing of the damaged part was returned.
    #[error("{} is damaged: {part}", file.display())]
    Damaged {
        /// The file with the damaged part.
        file: PathBuf,
        /// The damaged part.
        part: Part,
    },
    /// The file was written by a newer version of Weir, or is another kind of file.
    #[error("{} has the unknown format {format}", file.display())]
    UnknownFormat {
        /// The file with this format.
        file: PathBuf,
        /// The name or number of the format, as the file or its checksums state it.
        format: String,
    },
    /// The system could not read or write the file.
    #[error("{}: {source}", file.display())]
    Io {
        /// The file that was read or written.
        file: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The caller requested rows that the segment does not have.
    #[error("{} has no rows from {first} to {end}", file.display())]
    NoSuchRows {
        /// The segment that was read.
        file: PathBuf,
        /// The first of the rows.
        first: u64,
        /// The row after the last one.
        end: u64,
    },
    /// The caller requested a column that the segment does not have, or values of another
    /// kind than the column has.
    #[error("{} has no such values in the column {column}", file.display())]
    NoSuchColumn {
        /// The segment that was read.
        file: PathBuf,
        /// The name of the column.
        column: String,
    },
    /// The caller wrote blocks or entries that are not in ascending order, the same one
    /// twice, or an empty block; or requested rows that are not in ascending order.
    #[error("{}: {what}", file.display())]
    NotInOrder {
        /// The file that was to be written or read.
        file: PathBuf,
        /// What is not in order.
        what: &'static str,
    },
    /// The caller wrote an event with an arrival number of 2^63 or more.
    #[error("{} cannot have the arrival number {arrival}", file.display())]
    ArrivalTooLarge {
        /// The segment that was to be written.
        file: PathBuf,
        /// The arrival number.
        arrival: u64,
    },
    /// Another writer has written this version of a table.
    #[error("{} is there already", file.display())]
    VersionConflict {
        /// The file of the other writer.
        file: PathBuf,
        /// The version that both writers chose.
        version: u64,
    },
    /// The caller took a column from a table, or gave it another type.
    #[error("{}: the column {column} cannot go away or change its type", table.display())]
    ColumnChanged {
        /// The directory of the log.
        table: PathBuf,
        /// The name of the column.
        column: String,
    },
    /// The content could not be encoded.
    #[error("{} could not be encoded: {reason}", file.display())]
    Encode {
        /// The file that was to be written.
        file: PathBuf,
        /// Why, as the encoder says it.
        reason: String,
    },
}

impl Error {
    pub(crate) fn io(file: &Path, source: io::Error) -> Self {
        Self::Io { file: file.to_owned(), source }
    }

    /// The error of reading a file that exists. What the device or the file system has lost
    /// is damage: reading again does not help.
    pub(crate) fn reading(file: &Path, source: io::Error) -> Self {
        match source.raw_os_error() {
            Some(EIO | EUCLEAN | EBADMSG) => {
                Self::damaged(file, Part::Unreadable(source.to_string()))
            }
            _ => Self::io(file, source),
        }
    }

    pub(crate) fn damaged(file: &Path, part: Part) -> Self {
        Self::Damaged { file: file.to_owned(), part }
    }
}

/// A part of a file that is damaged.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Part {
    /// The file is shorter or longer than it was written.
    Length {
        /// The length that it was written with, bytes.
        expected: u64,
        /// The length that it has, bytes.
        found: u64,
    },
    /// The bytes of the file in this range differ from their checksum.
    Bytes {
        /// The first byte of the range.
        first: u64,
        /// The byte after the last one of the range.
        end: u64,
    },
    /// The device or the file system cannot read it, as the system says it.
    Unreadable(String),
    /// The checksums that the caller gave. The file itself may be sound.
    Sums,
    /// The bytes are as they were written, but cannot be decoded.
    Content(String),
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length { expected, found } => {
                write!(f, "it has {found} bytes, and was written with {expected}")
            }
            Self::Bytes { first, end } => write!(f, "the bytes from {first} to {end}"),
            Self::Unreadable(reason) => write!(f, "it cannot be read: {reason}"),
            Self::Sums => f.write_str("its checksums"),
            Self::Content(reason) => write!(f, "it cannot be decoded: {reason}"),
        }
    }
}
