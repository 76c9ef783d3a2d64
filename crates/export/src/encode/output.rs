//! The output of encoders: chunks of one size, so that a growing file is never copied.

use std::io;

use bytes::{Bytes, BytesMut};

/// Bytes of a chunk.
pub(super) const CHUNK: usize = 1 << 20;

/// Bytes that were written and have not been taken yet.
#[derive(Default)]
pub(super) struct Output {
    full: Vec<Bytes>,
    open: BytesMut,
    written: u64,
}

impl Output {
    /// The number of all bytes written so far.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// Takes the bytes that are ready.
    pub(super) fn take(&mut self) -> Vec<Bytes> {
        let mut chunks = std::mem::take(&mut self.full);
        if !self.open.is_empty() {
            chunks.push(self.open.split().freeze());
        }
        chunks
    }
}

impl io::Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.open.len() == self.open.capacity() {
            let open = std::mem::replace(&mut self.open, BytesMut::with_capacity(CHUNK));
            if !open.is_empty() {
                self.full.push(open.freeze());
            }
        }
        let room = self.open.capacity() - self.open.len();
        let written = bytes.len().min(room);
        self.open.extend_from_slice(&bytes[..written]);
        self.written += u64::try_from(written).unwrap_or(u64::MAX);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
