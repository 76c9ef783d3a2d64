//! From rows to pieces of files. It blocks on the processor and on the receiver of the
//! pieces.
//!
//! What belongs here: where a file ends. What does not: the bytes of a file (`encode`),
//! sending the pieces (`upload`).

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::destination::Failure;
use crate::encode::{Encoder, FileKind};
use crate::rows::{Cell, Column};

/// Rows that are encoded in one call. With [`BLOCK_BYTES`] this decides where files are
/// divided, independent of the batches.
const BLOCK_ROWS: usize = 1024;
/// Bytes of cells that are encoded in one call, roughly.
const BLOCK_BYTES: usize = 4 << 20;

pub(super) enum EncoderInput {
    Rows(Vec<Vec<Cell>>),
    /// The end of all rows. Without it, the rows were interrupted.
    End,
}

/// The output of the encoder.
pub(super) enum Piece {
    /// The next bytes of the file, at most one chunk.
    Bytes(Bytes),
    EndOfFile,
    /// The end of all files.
    End,
}

/// How rows are encoded and divided into files.
pub(super) struct Encoding {
    pub(super) kind: FileKind,
    pub(super) columns: Vec<Column>,
    /// Bytes after which the next file begins.
    pub(super) max: Option<u64>,
}

impl Encoding {
    /// Encodes until the rows end or the receiver of the pieces is gone.
    pub(super) fn run(
        self,
        mut given: mpsc::Receiver<EncoderInput>,
        pieces: &mpsc::Sender<Piece>,
    ) -> Result<(), Failure> {
        let mut files = Files { encoding: self, pieces, file: None };
        let mut block = Vec::new();
        let mut bytes = 0;
        while let Some(given) = given.blocking_recv() {
            let EncoderInput::Rows(rows) = given else {
                if files.write(&block)? && files.end()? {
                    files.give(Piece::End);
                }
                return Ok(());
            };
            for row in rows {
                bytes += row.iter().map(Cell::size).sum::<usize>();
                block.push(row);
                if block.len() == BLOCK_ROWS || bytes >= BLOCK_BYTES {
                    if !files.write(&block)? {
                        return Ok(());
                    }
                    block.clear();
                    bytes = 0;
                }
            }
        }
        Ok(())
    }
}

struct Files<'a> {
    encoding: Encoding,
    pieces: &'a mpsc::Sender<Piece>,
    file: Option<Encoder>,
}

impl Files<'_> {
    /// Writes rows to the file, and ends the file when it is large enough. Returns false
    /// if the receiver is gone.
    fn write(&mut self, rows: &[Vec<Cell>]) -> Result<bool, Failure> {
        if rows.is_empty() {
            return Ok(true);
        }
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let Encoding { kind, columns, max } = &self.encoding;
                none.insert(Encoder::with_max(*kind, columns, *max)?)
            }
        };
        file.write(rows)?;
        let is_full = self.encoding.max.is_some_and(|max| file.size() >= max);
        let chunks = file.take();
        Ok(self.send(chunks) && (!is_full || self.end()?))
    }

    fn end(&mut self) -> Result<bool, Failure> {
        let Some(file) = self.file.take() else { return Ok(true) };
        let chunks = file.finish()?;
        Ok(self.send(chunks) && self.give(Piece::EndOfFile))
    }

    fn send(&self, chunks: Vec<Bytes>) -> bool {
        chunks.into_iter().all(|bytes| self.give(Piece::Bytes(bytes)))
    }

    fn give(&self, piece: Piece) -> bool {
        self.pieces.blocking_send(piece).is_ok()
    }
}
