//! Rows as files: JSON Lines and Parquet, with their codecs (EXP-35).
//!
//! ```text
//! rows -> encoder -> bytes, a piece at a time -> sender
//! ```
//!
//! What belongs here: bytes. What does not: names of files (`names`), where they are sent
//! (`destinations`).
//!
//! All of it uses the processor and never waits: call it on a thread that may block.
//! Memory is bounded: JSON Lines hold a buffer of rows, Parquet a group of rows of at most
//! 48 MiB.
//!
//! Invariant: the same rows, written in the same calls of `write`, give the same bytes.

mod json_lines;
mod output;
mod parquet;

use bytes::Bytes;
use serde::Deserialize;

use crate::destination::Failure;
use crate::rows::{Cell, Column};

use self::json_lines::JsonLines;
use self::parquet::Parquet;

/// The format of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub(crate) enum Format {
    /// One JSON object per line.
    #[default]
    #[serde(rename = "JSONLines")]
    JsonLines,
    /// Parquet: columns, in groups of rows.
    Parquet,
}

/// The compression of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Codec {
    Gzip,
    Brotli,
    Zstd,
    Lz4,
    Snappy,
}

impl Codec {
    const fn extension(self) -> &'static str {
        match self {
            Self::Gzip => "gz",
            Self::Brotli => "br",
            Self::Zstd => "zst",
            Self::Lz4 => "lz4",
            Self::Snappy => "sz",
        }
    }
}

/// The kind of a file: a format with a codec that suits it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileKind {
    format: Format,
    codec: Option<Codec>,
}

impl FileKind {
    /// The kind. `None` if JSON Lines do not support this codec.
    pub(crate) fn new(format: Format, codec: Option<Codec>) -> Option<Self> {
        match (format, codec) {
            (Format::JsonLines, Some(Codec::Zstd | Codec::Lz4 | Codec::Snappy)) => None,
            _ => Some(Self { format, codec }),
        }
    }

    /// The extension of such files: `jsonl.gz`. Parquet names its codec in the extension
    /// too, although the codec applies inside the file.
    pub(crate) fn extension(self) -> String {
        let format = match self.format {
            Format::JsonLines => "jsonl",
            Format::Parquet => "parquet",
        };
        match self.codec {
            Some(codec) => format!("{format}.{}", codec.extension()),
            None => format.to_owned(),
        }
    }
}

/// Why rows could not be written.
#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    /// The writer of Parquet refused them.
    #[error(transparent)]
    Parquet(#[from] ::parquet::errors::ParquetError),
    /// They could not be compressed.
    #[error(transparent)]
    Compressing(#[from] std::io::Error),
}

impl From<EncodeError> for Failure {
    fn from(error: EncodeError) -> Self {
        tracing::error!(%error, "rows could not be encoded");
        Self::permanent("EncodingFailed", "The events could not be written in this file format.")
    }
}

/// Encodes one file.
pub(crate) enum Encoder {
    JsonLines(Box<JsonLines>),
    Parquet(Box<Parquet>),
}

impl Encoder {
    /// An empty file with these columns.
    pub(crate) fn new(kind: FileKind, columns: &[Column]) -> Result<Self, EncodeError> {
        Self::with_max(kind, columns, None)
    }

    /// An empty file that will be ended after roughly `max` bytes.
    pub(crate) fn with_max(
        kind: FileKind,
        columns: &[Column],
        max: Option<u64>,
    ) -> Result<Self, EncodeError> {
        Ok(match kind.format {
            Format::JsonLines => Self::JsonLines(Box::new(JsonLines::new(kind.codec, columns)?)),
            Format::Parquet => Self::Parquet(Box::new(Parquet::new(kind.codec, columns, max)?)),
        })
    }

    /// Adds rows, each with a cell for every column.
    pub(crate) fn write(&mut self, rows: &[Vec<Cell>]) -> Result<(), EncodeError> {
        match self {
            Self::JsonLines(file) => file.write(rows),
            Self::Parquet(file) => file.write(rows),
        }
    }

    /// Size of the file so far, roughly. Bytes inside the compressor count as far as they
    /// are known.
    pub(crate) fn size(&self) -> u64 {
        match self {
            Self::JsonLines(file) => file.size(),
            Self::Parquet(file) => file.size(),
        }
    }

    /// The bytes that are ready and have not been taken yet.
    pub(crate) fn take(&mut self) -> Vec<Bytes> {
        match self {
            Self::JsonLines(file) => file.take(),
            Self::Parquet(file) => file.take(),
        }
    }

    /// Ends the file and returns its last bytes.
    pub(crate) fn finish(self) -> Result<Vec<Bytes>, EncodeError> {
        match self {
            Self::JsonLines(file) => file.finish(),
            Self::Parquet(file) => file.finish(),
        }
    }
}

/// Writes rows, each with a cell for every column, as one file of Parquet that all readers
/// understand. The names of the columns must differ. It uses the processor: call it on a
/// thread that may block.
///
/// # Errors
/// [`EncodeError::Parquet`]: the writer refuses the columns.
pub fn parquet_file(
    columns: &[Column],
    rows: impl IntoIterator<Item = Vec<Cell>>,
) -> Result<Vec<Bytes>, EncodeError> {
    let mut file = Parquet::new(Some(Codec::Snappy), columns, None)?;
    for row in rows {
        file.write(&[row])?;
    }
    file.finish()
}

#[cfg(test)]
mod tests;
