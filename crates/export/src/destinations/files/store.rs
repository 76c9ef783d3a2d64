//! Files in an object storage: S3, Azure, Google. Several parts are sent concurrently.
//!
//! What belongs here: the common part of the three. What does not: how each is configured
//! (`s3`, `azure_blob`, `google_cloud_storage`).

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use object_store::path::Path;
use object_store::{
    BackoffConfig, MultipartUpload, ObjectStore, ObjectStoreExt as _, PutPayload, RetryConfig,
};
use tokio::task::JoinSet;
use weir_egress::{Egress, FaultClass, Refused};
use weir_model::exports::ExportModel;
use weir_objects::{Answered, Connector};

use super::{Files, Parts, STEPS, Storage, columns};
use crate::columns::Columns;
use crate::destination::{Destination, Failure, Job, Writer};

/// Parts that are sent concurrently.
const CONCURRENT: usize = 4;
/// Upper bound of the parts of a file, in every storage.
const PARTS_MAX: usize = 10_000;
/// Upper bound of bytes in an answer: lists of parts and errors.
const ANSWER: usize = 1 << 20;
/// The timeout for removing incomplete data.
const ABORT: Duration = Duration::from_secs(30);

/// Retries of a single request. The run has its own retries, with longer waits.
pub(in crate::destinations) fn retries() -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig {
            init_backoff: Duration::from_millis(200),
            max_backoff: Duration::from_secs(5),
            base: 3.,
        },
        max_retries: 3,
        retry_timeout: Duration::from_secs(60),
    }
}

/// How requests are sent.
pub(in crate::destinations) fn connector(egress: &Egress) -> Connector {
    Connector::new(egress, ANSWER)
}

/// The URL of a storage. The client of the storage builds requests from it with its own
/// parser, and panics if that fails. This check therefore accepts only URLs that all
/// parsers read alike.
pub(in crate::destinations) fn endpoint(egress: &Egress, url: &str) -> Result<String, Failure> {
    match egress.judge_url(url) {
        // It is refused when it is dialled, as a name with such an address is.
        Ok(()) | Err(Refused::Address) => {}
        Err(refused) => return Err(refused.into()),
    }
    let fits = |c: char| c.is_ascii_alphanumeric() || "-._~:/[]%@!$&'()*+,;=".contains(c);
    if !url.chars().all(fits) {
        let message = "The address cannot be used: it has characters that no address has.";
        return Err(Failure::permanent("InvalidAddress", message));
    }
    Ok(url.trim_end_matches('/').to_owned())
}

/// Whether a text is valid in a header of a request. The client would panic here too.
pub(in crate::destinations) fn is_header(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// A storage, as far as exports use it.
pub(in crate::destinations) struct Store(Box<dyn ObjectStore>);

impl Store {
    pub(in crate::destinations) fn new(store: impl ObjectStore) -> Self {
        Self(Box::new(store))
    }

    /// Whether the storage answers, and accepts the bucket and the credentials, as far as
    /// its answer shows. A file of this name need not exist.
    pub(in crate::destinations) async fn reach(&self, name: &str) -> Result<(), Failure> {
        let Err(error) = self.0.get(&path(name)?).await else { return Ok(()) };
        match Answered::of(&error) {
            // Without the permission to list, S3 answers 403 for a missing file. Another
            // step checks the permission to write.
            Some(Answered {
                fault,
                code: None | Some("NoSuchKey" | "BlobNotFound" | "AccessDenied"),
            }) if matches!(fault.class, FaultClass::Status(403 | 404)) => Ok(()),
            _ => Err(failure(&error)),
        }
    }
}

#[async_trait]
impl Storage for Store {
    async fn put(&self, name: &str, content: Vec<Bytes>) -> Result<(), Failure> {
        let payload = content.into_iter().collect::<PutPayload>();
        self.0.put(&path(name)?, payload).await.map(drop).map_err(|error| failure(&error))
    }

    async fn open(&self, name: &str) -> Result<Box<dyn Parts>, Failure> {
        let upload = self.0.put_multipart(&path(name)?).await.map_err(|error| failure(&error))?;
        Ok(Box::new(Sending { upload, parts: JoinSet::new(), sent: 0 }))
    }

    async fn has(&self, name: &str) -> Result<bool, Failure> {
        match self.0.head(&path(name)?).await {
            Ok(_) => Ok(true),
            Err(error) if is_missing(&error) => Ok(false),
            Err(error) => Err(failure(&error)),
        }
    }

    async fn remove(&self, name: &str) -> Result<(), Failure> {
        match self.0.delete(&path(name)?).await {
            Err(error) if !is_missing(&error) => Err(failure(&error)),
            _ => Ok(()),
        }
    }
}

struct Sending {
    upload: Box<dyn MultipartUpload>,
    parts: JoinSet<object_store::Result<()>>,
    sent: usize,
}

impl Sending {
    /// Waits for one of the parts.
    async fn one(&mut self) -> Result<(), Failure> {
        match self.parts.join_next().await {
            None | Some(Ok(Ok(()))) => Ok(()),
            Some(Ok(Err(error))) => Err(failure(&error)),
            Some(Err(error)) => {
                tracing::error!(%error, "sending a part ended");
                Err(Failure::retryable("SendingFailed", "A part of a file could not be sent."))
            }
        }
    }
}

#[async_trait]
impl Parts for Sending {
    async fn add(&mut self, part: Vec<Bytes>) -> Result<(), Failure> {
        if self.sent == PARTS_MAX {
            return Err(Failure::permanent(
                "FileTooLarge",
                "The file is larger than storages take. Set max_file_size_mb.",
            ));
        }
        while self.parts.len() >= CONCURRENT {
            self.one().await?;
        }
        self.parts.spawn(self.upload.put_part(part.into_iter().collect()));
        self.sent += 1;
        Ok(())
    }

    async fn complete(&mut self) -> Result<(), Failure> {
        while !self.parts.is_empty() {
            self.one().await?;
        }
        self.upload.complete().await.map(drop).map_err(|error| failure(&error))
    }

    async fn abort(&mut self) {
        self.parts.shutdown().await;
        match tokio::time::timeout(ABORT, self.upload.abort()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(error = %failure(&error), "parts of a file stay"),
            Err(_) => tracing::warn!("parts of a file stay: the storage does not answer"),
        }
    }
}

fn path(name: &str) -> Result<Path, Failure> {
    Path::parse(name).map_err(|_| {
        Failure::permanent("InvalidPrefix", "Storages cannot have files of this name.")
    })
}

fn is_missing(error: &object_store::Error) -> bool {
    Answered::of(error).is_some_and(|Answered { fault, code }| {
        fault.class == FaultClass::Status(404)
            && !matches!(code, Some("NoSuchBucket" | "ContainerNotFound"))
    })
}

fn failure(error: &object_store::Error) -> Failure {
    Answered::of(error).map_or_else(
        || {
            Failure::retryable(
                "UnexpectedAnswer",
                "The storage answered with something that is not understood.",
            )
        },
        Failure::from,
    )
}

#[async_trait]
impl Destination for Files<Store> {
    fn columns(&self) -> Columns {
        columns()
    }

    async fn begin(&self, job: Job) -> Result<Box<dyn Writer>, Failure> {
        self.start(&job)
    }

    fn steps(&self) -> &'static [&'static str] {
        STEPS
    }

    async fn test(&self, step: usize, _: ExportModel) -> Result<(), Failure> {
        match step {
            0 => self.storage.reach(&self.probe()?).await,
            1 => self.test_writing().await,
            _ => self.test_removing().await,
        }
    }
}
