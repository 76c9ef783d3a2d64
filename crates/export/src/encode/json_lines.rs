//! JSON Lines: one JSON object per row. JSON columns are nested in their stored form, so
//! that no number changes.
//!
//! What belongs here: the format and its compression. What does not: where a file ends
//! (`destinations::files`).

use std::io::Write as _;

use brotli::CompressorWriter;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use uuid::fmt::Hyphenated;
use weir_model::Timestamp;

use super::output::Output;
use super::{Codec, EncodeError};
use crate::rows::{Cell, Column};

/// A higher quality costs more time than its savings are worth.
const BROTLI_QUALITY: u32 = 5;
/// The window of Brotli, as a power of two: 4 MiB.
const BROTLI_WINDOW: u32 = 22;
/// Bytes that Brotli writes at a time.
const BROTLI_BUFFER: usize = 64 << 10;

enum Compressor {
    Plain(Output),
    Gzip(GzEncoder<Output>),
    Brotli(Box<CompressorWriter<Output>>),
}

/// A file of JSON Lines.
pub(crate) struct JsonLines {
    /// `"name":` of each column.
    keys: Vec<Vec<u8>>,
    compressor: Compressor,
    lines: Vec<u8>,
}

impl JsonLines {
    pub(super) fn new(codec: Option<Codec>, columns: &[Column]) -> Result<Self, EncodeError> {
        let output = Output::default();
        let compressor = match codec {
            Some(Codec::Brotli) => {
                let compressor =
                    CompressorWriter::new(output, BROTLI_BUFFER, BROTLI_QUALITY, BROTLI_WINDOW);
                Compressor::Brotli(Box::new(compressor))
            }
            Some(Codec::Gzip) => Compressor::Gzip(GzEncoder::new(output, Compression::default())),
            // `FileKind::new` refuses the other codecs for JSON Lines.
            _ => Compressor::Plain(output),
        };
        let key = |column: &Column| {
            let mut key = Vec::new();
            text(&mut key, &column.name)?;
            key.push(b':');
            Ok(key)
        };
        let keys = columns.iter().map(key).collect::<Result<_, EncodeError>>()?;
        Ok(Self { keys, compressor, lines: Vec::new() })
    }

    pub(super) fn write(&mut self, rows: &[Vec<Cell>]) -> Result<(), EncodeError> {
        self.lines.clear();
        for row in rows {
            self.lines.push(b'{');
            for (at, (key, cell)) in self.keys.iter().zip(row).enumerate() {
                if at > 0 {
                    self.lines.push(b',');
                }
                self.lines.extend_from_slice(key);
                value(&mut self.lines, cell)?;
            }
            self.lines.extend_from_slice(b"}\n");
        }
        match &mut self.compressor {
            Compressor::Plain(output) => output.write_all(&self.lines)?,
            Compressor::Gzip(compressor) => compressor.write_all(&self.lines)?,
            Compressor::Brotli(compressor) => compressor.write_all(&self.lines)?,
        }
        Ok(())
    }

    pub(super) fn size(&self) -> u64 {
        let output = match &self.compressor {
            Compressor::Plain(output) => output,
            Compressor::Gzip(compressor) => compressor.get_ref(),
            Compressor::Brotli(compressor) => compressor.get_ref(),
        };
        output.written()
    }

    pub(super) fn take(&mut self) -> Vec<Bytes> {
        let output = match &mut self.compressor {
            Compressor::Plain(output) => output,
            Compressor::Gzip(compressor) => compressor.get_mut(),
            Compressor::Brotli(compressor) => compressor.get_mut(),
        };
        output.take()
    }

    pub(super) fn finish(self) -> Result<Vec<Bytes>, EncodeError> {
        let mut output = match self.compressor {
            Compressor::Plain(output) => output,
            Compressor::Gzip(compressor) => compressor.finish()?,
            Compressor::Brotli(compressor) => compressor.into_inner(),
        };
        Ok(output.take())
    }
}

fn value(line: &mut Vec<u8>, cell: &Cell) -> Result<(), EncodeError> {
    match cell {
        Cell::Null => line.extend_from_slice(b"null"),
        Cell::Text(value) => text(line, value)?,
        Cell::Json(json) => {
            let from = line.len();
            line.extend_from_slice(json.as_bytes());
            // Stored JSON may have line breaks between its tokens, but not within its
            // texts.
            for byte in line.iter_mut().skip(from) {
                if matches!(*byte, b'\n' | b'\r') {
                    *byte = b' ';
                }
            }
        }
        Cell::Integer(value) => write!(line, "{value}")?,
        // JSON has no infinity. `serde_json` writes null for it.
        Cell::Float(value) => serde_json::to_writer(line, value).map_err(std::io::Error::from)?,
        Cell::Boolean(value) => write!(line, "{value}")?,
        Cell::Timestamp(micros) => write!(line, "\"{}\"", Timestamp::from_micros(*micros))?,
        Cell::Uuid(uuid) => {
            let mut buffer = [0; Hyphenated::LENGTH];
            line.push(b'"');
            line.extend_from_slice(uuid.hyphenated().encode_lower(&mut buffer).as_bytes());
            line.push(b'"');
        }
    }
    Ok(())
}

/// Writes a text as a JSON string.
fn text(line: &mut Vec<u8>, text: &str) -> Result<(), EncodeError> {
    Ok(serde_json::to_writer(line, text).map_err(std::io::Error::from)?)
}
