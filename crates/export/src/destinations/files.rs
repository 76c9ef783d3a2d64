//! Files at a storage: the common part of S3, Azure, Google Cloud Storage and a local
//! directory (EXP-33).
//!
//! ```text
//! rows -> [encode, on a separate thread] -> pieces -> parts, several sent concurrently
//! ```
//!
//! What belongs here: from the rows of a run to complete files, in bounded memory. What
//! does not: bytes of files (`encode`), their names (`names`), how a storage takes a part
//! (`store`, `local_directory`).
//!
//! A run has one file, or with `max_file_size_mb` several files and a manifest. The
//! manifest is written last; the run is complete only then. The content decides where
//! files are divided, and the division of rows into batches does not. A retry therefore
//! replaces files of the same names.

mod answers;
mod encoding;
pub(super) mod store;
mod upload;

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use weir_model::exports::prefix::{Bounds, Template, join};

use crate::columns::{Columns, Source};
use crate::destination::{Failure, Job, Writer};
use crate::encode::{Codec, FileKind, Format};
use crate::names::Names;
use crate::rows::{Batch, Kind};

use self::encoding::{EncoderInput, Encoding};
use self::upload::Upload;
use super::clock;

/// The steps of the test of every storage.
pub(crate) const STEPS: &[&str] = &["Reach the storage", "Write a file", "Remove it"];
/// Bytes of a part that is sent to a storage.
pub(super) const PART: usize = 8 << 20;
/// Batches of rows that may wait for the encoder.
const BATCHES: usize = 1;
/// Chunks of files that may wait for sending.
const CHUNKS: usize = 4;
/// The file that a test writes and removes.
const PROBE: &str = "weir-connection-test.txt";

/// A storage for files. Names are relative, with `/` between their segments.
#[async_trait]
pub(super) trait Storage: Send + Sync {
    /// Bytes of a part. All parts of a file except the last one have this size, because
    /// some storages require that.
    fn part_bytes(&self) -> usize {
        PART
    }

    /// Writes a small file. An existing file of that name is replaced.
    async fn put(&self, name: &str, content: Vec<Bytes>) -> Result<(), Failure>;

    /// Begins a file that consists of parts. It is not visible before it is complete.
    async fn open(&self, name: &str) -> Result<Box<dyn Parts>, Failure>;

    /// Whether there is a file of this name.
    async fn has(&self, name: &str) -> Result<bool, Failure>;

    /// Removes a file. A missing file is no error.
    async fn remove(&self, name: &str) -> Result<(), Failure>;
}

/// A file that is being written.
#[async_trait]
pub(super) trait Parts: Send {
    /// Takes the next part, and waits while too many are being sent.
    async fn add(&mut self, part: Vec<Bytes>) -> Result<(), Failure>;

    /// Completes the file. It becomes visible.
    async fn complete(&mut self) -> Result<(), Failure>;

    /// Removes the parts, as far as possible.
    async fn abort(&mut self);
}

/// The settings of all storages for files.
#[derive(Deserialize)]
struct Config {
    #[serde(default)]
    file_format: Format,
    compression: Option<Codec>,
    max_file_size_mb: Option<u64>,
}

/// A destination that writes files to a storage.
pub(super) struct Files<P> {
    pub(super) storage: Arc<P>,
    prefix: Template,
    kind: FileKind,
    /// Bytes after which the next file begins.
    max: Option<u64>,
}

impl<P: Storage + 'static> Files<P> {
    pub(super) fn new(
        storage: P,
        prefix: &str,
        config: &Map<String, Value>,
    ) -> Result<Self, Failure> {
        let Config { file_format, compression, max_file_size_mb } = read(config)?;
        let kind = FileKind::new(file_format, compression).ok_or_else(|| {
            Failure::permanent("InvalidConfig", "JSONLines files have no such compression.")
        })?;
        let max = max_file_size_mb.filter(|megabytes| *megabytes > 0);
        Ok(Self {
            storage: Arc::new(storage),
            prefix: Template::parse(prefix)?,
            kind,
            max: max.map(|megabytes| megabytes.saturating_mul(1 << 20)),
        })
    }

    /// Begins the files of a run. The storage is first contacted with the first bytes.
    pub(super) fn start(&self, job: &Job) -> Result<Box<dyn Writer>, Failure> {
        let names = Names::new(&self.prefix, &Bounds::from(job), self.kind, self.max.is_some())?;
        let encoding =
            Encoding { kind: self.kind, columns: job.columns.columns.clone(), max: self.max };
        let upload = Upload::new(Arc::clone(&self.storage) as Arc<dyn Storage>, names);
        let (rows, given) = mpsc::channel(BATCHES);
        let (go_on, stopped) = oneshot::channel();
        let delivery = tokio::spawn(deliver(encoding, upload, given, stopped));
        Ok(Box::new(FilesWriter {
            open: Some(Open { rows, _go_on: go_on, delivery }),
            failure: None,
        }))
    }

    /// Writes the file of the test, and tries to remove it again.
    pub(super) async fn test_writing(&self) -> Result<(), Failure> {
        let name = self.probe()?;
        self.storage.put(&name, vec![Bytes::from_static(b"This file may be removed.\n")]).await?;
        if let Err(failure) = self.storage.remove(&name).await {
            // Another step of the test reports this.
            tracing::debug!(%failure, "the file of a test stays");
        }
        Ok(())
    }

    /// Writes the file of the test, and fails if it cannot be removed.
    pub(super) async fn test_removing(&self) -> Result<(), Failure> {
        let name = self.probe()?;
        self.storage.put(&name, vec![Bytes::from_static(b"This file may be removed.\n")]).await?;
        self.storage.remove(&name).await
    }

    /// The name of the test file at present.
    pub(super) fn probe(&self) -> Result<String, Failure> {
        let now = clock::now().into();
        let bounds = Bounds { start: Some(now), end: now, by_time: false, table: "events" };
        Ok(join(&self.prefix.directory(&bounds)?, PROBE))
    }
}

/// Reads the settings of a destination and ignores others.
pub(super) fn read<'a, T: Deserialize<'a>>(config: &'a Map<String, Value>) -> Result<T, Failure> {
    T::deserialize(config).map_err(|error| {
        tracing::debug!(%error, "invalid config");
        Failure::permanent("InvalidConfig", "A setting is missing, or is not what it should be.")
    })
}

/// The columns of events in files.
pub(super) fn columns() -> Columns {
    Columns::of(&[
        ("uuid", Kind::Uuid, Source::Uuid),
        ("timestamp", Kind::Timestamp, Source::Timestamp),
        ("_inserted_at", Kind::Timestamp, Source::InsertedAt),
        ("created_at", Kind::Timestamp, Source::InsertedAt),
        ("event", Kind::Text, Source::Event),
        ("properties", Kind::Json, Source::Properties),
        ("distinct_id", Kind::Text, Source::DistinctId),
        ("elements_chain", Kind::Text, Source::ElementsChain),
        ("person_properties", Kind::Json, Source::PersonProperties),
        ("person_id", Kind::Uuid, Source::PersonId),
    ])
}

/// The failure of a run whose rows ended too early.
fn cut_short() -> Failure {
    Failure::retryable("CutShort", "The run was cut short.")
}

/// Encodes and sends until the rows end or the writer is dropped.
async fn deliver(
    encoding: Encoding,
    mut upload: Upload,
    given: mpsc::Receiver<EncoderInput>,
    stopped: oneshot::Receiver<()>,
) -> Result<(), Failure> {
    let (pieces, mut ready) = mpsc::channel(CHUNKS);
    let encoded = tokio::task::spawn_blocking(move || encoding.run(given, &pieces));
    let sent = tokio::select! {
        sent = upload.run(&mut ready) => sent,
        // Nothing is ever sent on this channel. The writer only drops its end.
        _ = stopped => Err(cut_short()),
    };
    // The encoder must not wait for a receiver of its pieces.
    drop(ready);
    if sent.is_err() {
        upload.abort().await;
    }
    match encoded.await {
        // The first failure is the cause of the others.
        Ok(Err(failure)) => Err(failure),
        Ok(Ok(())) => sent,
        Err(error) => {
            tracing::error!(%error, "encoding rows ended");
            Err(Failure::retryable("EncodingFailed", "The events could not be written."))
        }
    }
}

/// Writes a run to files. Dropping it stops the encoder and the upload.
struct FilesWriter {
    open: Option<Open>,
    failure: Option<Failure>,
}

struct Open {
    rows: mpsc::Sender<EncoderInput>,
    /// Dropping it before the delivery has ended stops the delivery.
    _go_on: oneshot::Sender<()>,
    delivery: JoinHandle<Result<(), Failure>>,
}

impl FilesWriter {
    async fn give(&mut self, given: EncoderInput) -> Result<(), Failure> {
        let is_taken = match &self.open {
            Some(open) => open.rows.send(given).await.is_ok(),
            None => false,
        };
        if is_taken { Ok(()) } else { self.outcome().await }
    }

    /// Waits for the end of the delivery and returns its outcome.
    async fn outcome(&mut self) -> Result<(), Failure> {
        if let Some(open) = self.open.take() {
            let ended = open.delivery.await;
            let outcome = ended.unwrap_or_else(|error| {
                tracing::error!(%error, "sending files ended");
                Err(Failure::retryable("SendingFailed", "The files could not be sent."))
            });
            self.failure = outcome.err();
        }
        self.failure.clone().map_or(Ok(()), Err)
    }
}

#[async_trait]
impl Writer for FilesWriter {
    async fn write(&mut self, batch: Batch) -> Result<(), Failure> {
        self.give(EncoderInput::Rows(batch.rows)).await
    }

    async fn finish(&mut self) -> Result<(), Failure> {
        self.give(EncoderInput::End).await?;
        self.outcome().await
    }

    async fn abort(&mut self) {
        let Some(Open { rows, _go_on: go_on, delivery }) = self.open.take() else { return };
        drop((rows, go_on));
        self.failure = Some(cut_short());
        // The outcome is ignored, because the caller aborts the run.
        let _ = delivery.await;
    }
}

#[cfg(test)]
mod tests;
