//! The lines of a file, plain or gzip, in bounded memory.
//!
//! What belongs here: opening, decompressing, splitting into lines, and checking whether
//! a file has changed. What does not: the content of a line (`format`).

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::bufread::MultiGzDecoder;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::error::ImportError;

/// Maximum bytes of a line. This is more than an event may have, because an export has
/// columns that are not sent.
const LINE_LIMIT: usize = 16 << 20;
/// Bytes at both ends of a file that distinguish it from another one of the same size.
const SAMPLE: u64 = 64 << 10;
const BUFFER: usize = 256 << 10;
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// A file to import.
#[derive(Debug, Clone)]
pub(crate) struct Input {
    path: PathBuf,
    /// The path for display.
    pub(crate) name: Arc<str>,
    pub(crate) identity: FileIdentity,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileIdentity {
    /// Bytes on disk.
    pub(crate) size: u64,
    /// SHA-256 of its beginning and end.
    sample: String,
}

impl Input {
    /// Opens a file and reads its identity.
    pub(crate) fn open(path: &Path) -> Result<Self, ImportError> {
        let unreadable = |source| ImportError::Read { path: path.to_owned(), source };
        let mut file = File::open(path).map_err(unreadable)?;
        let metadata = file.metadata().map_err(unreadable)?;
        if !metadata.is_file() {
            return Err(ImportError::NotAFile { path: path.to_owned() });
        }
        let size = metadata.len();
        let mut sample = Vec::new();
        (&file).take(SAMPLE).read_to_end(&mut sample).map_err(unreadable)?;
        if let Some((kind, hint)) = compressed(&sample) {
            return Err(ImportError::Compressed { path: path.to_owned(), kind, hint });
        }
        file.seek(SeekFrom::Start(size.saturating_sub(SAMPLE))).map_err(unreadable)?;
        file.take(SAMPLE).read_to_end(&mut sample).map_err(unreadable)?;
        let identity = FileIdentity { size, sample: hex(&Sha256::digest(&sample)) };
        let name = path.display().to_string().into();
        Ok(Self { path: path.to_owned(), name, identity })
    }

    /// Its lines, from the first one. Bytes read from disk are added to `read`.
    pub(crate) fn lines(&self, read: Arc<AtomicU64>) -> Result<Lines, ImportError> {
        let unreadable = |source| ImportError::Read { path: self.path.clone(), source };
        let file = File::open(&self.path).map_err(unreadable)?;
        let mut file = BufReader::with_capacity(BUFFER, Counting { file, read });
        let is_gzip = file.fill_buf().map_err(unreadable)?.starts_with(&GZIP);
        let reader: Box<dyn BufRead + Send> = if is_gzip {
            #[expect(clippy::disallowed_methods, reason = "read in pieces; lines have a limit")]
            let decompressed = MultiGzDecoder::new(file);
            Box::new(BufReader::with_capacity(BUFFER, decompressed))
        } else {
            Box::new(file)
        };
        Ok(Lines {
            path: self.path.clone(),
            reader,
            is_gzip,
            buffer: Vec::new(),
            line: 0,
            bytes: 0,
            digest: Sha256::new(),
            ended: false,
        })
    }
}

/// Detects an unsupported compression by the first bytes.
fn compressed(start: &[u8]) -> Option<(&'static str, &'static str)> {
    [
        (&b"PK\x03\x04"[..], "a zip archive", "unzip"),
        (b"\x28\xb5\x2f\xfd", "compressed with zstd", "zstd -d"),
        (b"BZh", "compressed with bzip2", "bunzip2"),
        (b"\xfd7zXZ", "compressed with xz", "unxz"),
        (b"PAR1", "a Parquet file", "write JSON Lines instead"),
    ]
    .into_iter()
    .find(|(magic, ..)| start.starts_with(magic))
    .map(|(_, kind, hint)| (kind, hint))
}

/// A line, or the reason why it cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line<'a> {
    /// The text without the line break.
    Text(&'a [u8]),
    /// The line exceeds the limit.
    TooLong,
    /// The file ends too early.
    Damaged(String),
}

/// How far a file was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mark {
    pub(crate) line: u64,
    /// Decompressed bytes.
    pub(crate) bytes: u64,
    /// SHA-256 of these bytes.
    pub(crate) sha256: String,
}

/// The lines of one file.
pub(crate) struct Lines {
    path: PathBuf,
    reader: Box<dyn BufRead + Send>,
    is_gzip: bool,
    buffer: Vec<u8>,
    line: u64,
    bytes: u64,
    digest: Sha256,
    ended: bool,
}

impl Lines {
    /// The number of the last line.
    pub(crate) fn number(&self) -> u64 {
        self.line
    }

    /// The position after the last line.
    pub(crate) fn mark(&self) -> Mark {
        let sha256 = hex(&self.digest.clone().finalize());
        Mark { line: self.line, bytes: self.bytes, sha256 }
    }

    /// The next line; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<Line<'_>>, ImportError> {
        self.buffer.clear();
        let mut too_long = false;
        let mut complete = false;
        while !complete && !self.ended {
            let piece = match self.reader.fill_buf() {
                Ok(piece) => piece,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if self.is_gzip && is_damage(&error) => {
                    self.ended = true;
                    self.line += 1;
                    return Ok(Some(Line::Damaged(error.to_string())));
                }
                Err(source) => return Err(ImportError::Read { path: self.path.clone(), source }),
            };
            if piece.is_empty() {
                self.ended = true;
                break;
            }
            let end = memchr::memchr(b'\n', piece);
            complete = end.is_some();
            let taken = end.map_or(piece.len(), |end| end + 1);
            let piece = piece.get(..taken).unwrap_or_default();
            too_long |= self.buffer.len() + piece.len() > LINE_LIMIT;
            if !too_long {
                self.buffer.extend_from_slice(piece);
            }
            self.digest.update(piece);
            self.bytes += taken as u64;
            self.reader.consume(taken);
        }
        if !complete && self.buffer.is_empty() && !too_long {
            return Ok(None);
        }
        self.line += 1;
        if too_long {
            return Ok(Some(Line::TooLong));
        }
        let text = self.buffer.as_slice();
        // Some tools begin a file with a byte order mark.
        let text =
            if self.line == 1 { text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text) } else { text };
        Ok(Some(Line::Text(text.trim_ascii())))
    }
}

/// Whether the error comes from the decoder, not from the disk.
fn is_damage(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
    matches!(error.kind(), InvalidData | InvalidInput | UnexpectedEof)
}

/// Counts the bytes read from disk.
struct Counting {
    file: File,
    read: Arc<AtomicU64>,
}

impl Read for Counting {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.read.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
