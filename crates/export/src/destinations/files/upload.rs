//! From pieces to files at their storage.
//!
//! What belongs here: parts, the manifest, and files of earlier attempts. What does not:
//! where a file ends (`encoding`), requests to a storage (`store`).

use std::sync::Arc;

use bytes::Bytes;
use serde_json::json;
use tokio::sync::mpsc;

use super::encoding::Piece;
use super::{Parts, Storage, cut_short};
use crate::destination::Failure;
use crate::names::Names;

/// The upload of a run's files.
pub(super) struct Upload {
    storage: Arc<dyn Storage>,
    names: Names,
    /// The file that is being sent.
    open: Option<Open>,
    /// Names of the complete files.
    whole: Vec<String>,
}

/// The state of a file that is being sent.
#[derive(Default)]
struct Open {
    /// `None` at the beginning: a small file is sent with one request.
    parts: Option<Box<dyn Parts>>,
    /// Bytes of an incomplete part.
    gathered: Vec<Bytes>,
    size: usize,
}

impl Upload {
    pub(super) fn new(storage: Arc<dyn Storage>, names: Names) -> Self {
        Self { storage, names, open: None, whole: Vec::new() }
    }

    /// Sends until the pieces end. An end without [`Piece::End`] is a failure.
    pub(super) async fn run(&mut self, pieces: &mut mpsc::Receiver<Piece>) -> Result<(), Failure> {
        while let Some(piece) = pieces.recv().await {
            match piece {
                Piece::Bytes(bytes) => self.add(bytes).await?,
                Piece::EndOfFile => self.complete().await?,
                Piece::End => return self.seal().await,
            }
        }
        Err(cut_short())
    }

    /// Removes the incomplete file.
    pub(super) async fn abort(&mut self) {
        if let Some(Open { parts: Some(mut parts), .. }) = self.open.take() {
            parts.abort().await;
        }
    }

    async fn add(&mut self, mut bytes: Bytes) -> Result<(), Failure> {
        if self.open.is_none() && self.whole.is_empty() && self.names.is_split() {
            // The manifest of an earlier attempt names files that change from now on.
            clear(&*self.storage, &self.names.manifest()).await;
        }
        let part_bytes = self.storage.part_bytes();
        let open = self.open.get_or_insert_default();
        while !bytes.is_empty() {
            if open.size == part_bytes {
                let part = std::mem::take(&mut open.gathered);
                open.size = 0;
                let name = self.names.file(self.whole.len());
                let parts = match &mut open.parts {
                    Some(parts) => parts,
                    none => none.insert(self.storage.open(&name).await?),
                };
                parts.add(part).await?;
            }
            let piece = bytes.split_to(bytes.len().min(part_bytes - open.size));
            open.size += piece.len();
            open.gathered.push(piece);
        }
        Ok(())
    }

    async fn complete(&mut self) -> Result<(), Failure> {
        let Some(open) = &mut self.open else { return Ok(()) };
        let name = self.names.file(self.whole.len());
        let rest = std::mem::take(&mut open.gathered);
        match &mut open.parts {
            Some(parts) => {
                parts.add(rest).await?;
                parts.complete().await?;
            }
            None => self.storage.put(&name, rest).await?,
        }
        self.open = None;
        self.whole.push(name);
        Ok(())
    }

    /// Writes the manifest, and removes files that only an earlier attempt had.
    async fn seal(&mut self) -> Result<(), Failure> {
        if self.whole.is_empty() || !self.names.is_split() {
            return Ok(());
        }
        for number in self.whole.len().. {
            let name = self.names.file(number);
            match self.storage.has(&name).await {
                Ok(true) => clear(&*self.storage, &name).await,
                Ok(false) => break,
                Err(failure) => {
                    // Credentials that may only write cannot look for files.
                    tracing::debug!(%failure, name, "cannot look for files of an earlier try");
                    break;
                }
            }
        }
        let manifest = json!({"files": self.whole}).to_string();
        self.storage.put(&self.names.manifest(), vec![manifest.into()]).await
    }
}

async fn clear(storage: &dyn Storage, name: &str) {
    if let Err(failure) = storage.remove(name).await {
        tracing::warn!(%failure, name, "a file of an earlier try stays");
    }
}
