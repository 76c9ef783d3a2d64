//! Files at a place: what S3, Azure, Google's storage and a local directory have
//! in common (EXP-33).
//!
//! ```text
//! rows -> [encode, on a thread of its own] -> pieces -> parts, several on their way
//! ```
//!
//! What belongs here: a run's way from rows to whole files, in bounded memory.
//! What does not: bytes of files (`encode`), their names (`names`), how a place
//! takes a part (`store`, `local_directory`).
//!
//! A run has one file, or with `max_file_size_mb` several with a list of them,
//! written last: only then the run is whole. Files are cut by what is in them and
//! never by how rows arrive here, so a further try replaces the same names.

mod connector;
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

use self::encoding::{Encoding, Given};
use self::upload::Upload;
use super::clock;

/// The steps of the test of every storage.
pub(crate) const STEPS: &[&str] = &["Reach the storage", "Write a file", "Remove it"];
/// Bytes of a part that is sent to a storage.
pub(super) const PART: usize = 8 << 20;
/// Batches of rows that wait for the encoder.
const BATCHES: usize = 1;
/// Chunks of files that wait to be sent.
const CHUNKS: usize = 4;
/// The file that a test writes and removes.
const PROBE: &str = "weir-connection-test.txt";

/// A place for files. Names are relative, with `/` between their parts.
#[async_trait]
pub(super) trait Place: Send + Sync {
    /// Bytes of a part. All parts of a file but the last are of this size, because
    /// some storages want that.
    fn part_bytes(&self) -> usize {
        PART
    }

    /// Writes a file that is small; one of that name is replaced.
    async fn put(&self, name: &str, content: Vec<Bytes>) -> Result<(), Failure>;

    /// Begins a file that comes in parts. Nobody sees it before it is complete.
    async fn open(&self, name: &str) -> Result<Box<dyn Parts>, Failure>;

    /// Whether there is a file of this name.
    async fn has(&self, name: &str) -> Result<bool, Failure>;

    /// Removes a file; it is fine when there is none.
    async fn remove(&self, name: &str) -> Result<(), Failure>;
}

/// A file on its way to its place.
#[async_trait]
pub(super) trait Parts: Send {
    /// Takes the next part, and waits while too many are on their way.
    async fn add(&mut self, part: Vec<Bytes>) -> Result<(), Failure>;

    /// All parts are there: from now on the file is.
    async fn complete(&mut self) -> Result<(), Failure>;

    /// Removes the parts, as far as that can be done.
    async fn abort(&mut self);
}

/// What every place for files is set up with.
#[derive(Deserialize)]
struct Config {
    #[serde(default)]
    file_format: Format,
    compression: Option<Codec>,
    max_file_size_mb: Option<u64>,
}

/// Files at a place.
pub(super) struct Files<P> {
    pub(super) place: Arc<P>,
    prefix: Template,
    kind: FileKind,
    /// Bytes after which another file begins.
    max: Option<u64>,
}

impl<P: Place + 'static> Files<P> {
    pub(super) fn new(
        place: P,
        prefix: &str,
        config: &Map<String, Value>,
    ) -> Result<Self, Failure> {
        let Config { file_format, compression, max_file_size_mb } = read(config)?;
        let kind = FileKind::new(file_format, compression).ok_or_else(|| {
            Failure::last("InvalidConfig", "JSONLines files have no such compression.")
        })?;
        let max = max_file_size_mb.filter(|megabytes| *megabytes > 0);
        Ok(Self {
            place: Arc::new(place),
            prefix: Template::parse(prefix)?,
            kind,
            max: max.map(|megabytes| megabytes.saturating_mul(1 << 20)),
        })
    }

    /// Begins the files of a run. The place hears of it with the first bytes.
    pub(super) fn start(&self, job: &Job) -> Result<Box<dyn Writer>, Failure> {
        let names = Names::new(&self.prefix, &Bounds::from(job), self.kind, self.max.is_some())?;
        let encoding =
            Encoding { kind: self.kind, columns: job.columns.columns.clone(), max: self.max };
        let upload = Upload::new(Arc::clone(&self.place) as Arc<dyn Place>, names);
        let (rows, given) = mpsc::channel(BATCHES);
        let (go_on, stopped) = oneshot::channel();
        let delivery = tokio::spawn(deliver(encoding, upload, given, stopped));
        Ok(Box::new(FilesWriter {
            open: Some(Open { rows, _go_on: go_on, delivery }),
            failure: None,
        }))
    }

    /// Writes the file of the test, and takes it away again if that can be done.
    pub(super) async fn test_writing(&self) -> Result<(), Failure> {
        let name = self.probe()?;
        self.place.put(&name, vec![Bytes::from_static(b"This file may be removed.\n")]).await?;
        if let Err(failure) = self.place.remove(&name).await {
            // Another step tells.
            tracing::debug!(%failure, "the file of a test stays");
        }
        Ok(())
    }

    /// The same, and says whether it could be taken away.
    pub(super) async fn test_removing(&self) -> Result<(), Failure> {
        let name = self.probe()?;
        self.place.put(&name, vec![Bytes::from_static(b"This file may be removed.\n")]).await?;
        self.place.remove(&name).await
    }

    /// Where the file of the test is now.
    pub(super) fn probe(&self) -> Result<String, Failure> {
        let now = clock::now().into();
        let bounds = Bounds { start: Some(now), end: now, by_time: false, table: "events" };
        Ok(join(&self.prefix.directory(&bounds)?, PROBE))
    }
}

/// Settings of a destination; the others are passed over.
pub(super) fn read<'a, T: Deserialize<'a>>(config: &'a Map<String, Value>) -> Result<T, Failure> {
    T::deserialize(config).map_err(|error| {
        tracing::debug!(%error, "a config that is none");
        Failure::last("InvalidConfig", "A setting is missing, or is not what it should be.")
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

/// What a run hears whose rows ended too early.
fn cut_short() -> Failure {
    Failure::retryable("CutShort", "The run was cut short.")
}

/// Encodes and sends until the rows end or somebody stops it.
async fn deliver(
    encoding: Encoding,
    mut upload: Upload,
    given: mpsc::Receiver<Given>,
    stopped: oneshot::Receiver<()>,
) -> Result<(), Failure> {
    let (pieces, mut ready) = mpsc::channel(CHUNKS);
    let encoded = tokio::task::spawn_blocking(move || encoding.run(given, &pieces));
    let sent = tokio::select! {
        sent = upload.run(&mut ready) => sent,
        // The other end is never used, only dropped.
        _ = stopped => Err(cut_short()),
    };
    // The encoder must not wait for somebody who takes its pieces.
    drop(ready);
    if sent.is_err() {
        upload.abort().await;
    }
    match encoded.await {
        // What went wrong first.
        Ok(Err(failure)) => Err(failure),
        Ok(Ok(())) => sent,
        Err(error) => {
            tracing::error!(%error, "encoding rows ended");
            Err(Failure::retryable("EncodingFailed", "The events could not be written."))
        }
    }
}

/// A run's way to its files. Dropped, it stops everything behind it.
struct FilesWriter {
    open: Option<Open>,
    failure: Option<Failure>,
}

struct Open {
    rows: mpsc::Sender<Given>,
    /// Dropped before the delivery has ended: it stops.
    _go_on: oneshot::Sender<()>,
    delivery: JoinHandle<Result<(), Failure>>,
}

impl FilesWriter {
    async fn give(&mut self, given: Given) -> Result<(), Failure> {
        let is_taken = match &self.open {
            Some(open) => open.rows.send(given).await.is_ok(),
            None => false,
        };
        if is_taken { Ok(()) } else { self.outcome().await }
    }

    /// How the delivery ended; waits for it.
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
        self.give(Given::Rows(batch.rows)).await
    }

    async fn finish(&mut self) -> Result<(), Failure> {
        self.give(Given::End).await?;
        self.outcome().await
    }

    async fn abort(&mut self) {
        let Some(Open { rows, _go_on: go_on, delivery }) = self.open.take() else { return };
        drop((rows, go_on));
        self.failure = Some(cut_short());
        // It tells why it ended, which whoever aborts it knows.
        let _ = delivery.await;
    }
}

#[cfg(test)]
mod tests;
