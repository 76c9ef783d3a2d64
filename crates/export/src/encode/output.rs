//! Where encoders write to: chunks of one size, so that nothing is copied when a
//! file grows.

use std::io;

use bytes::{Bytes, BytesMut};

/// Bytes of a chunk.
pub(super) const CHUNK: usize = 1 << 20;

/// What was written and not taken yet.
#[derive(Default)]
pub(super) struct Output {
    full: Vec<Bytes>,
    open: BytesMut,
    written: u64,
}

impl Output {
    /// All bytes that were ever written.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// What is there.
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
