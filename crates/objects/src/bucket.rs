//! A bucket: files go up in parts with checksums, and come back in parts.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use object_store::aws::{AmazonS3, AmazonS3Builder, Checksum};
use object_store::path::Path;
use object_store::{
    BackoffConfig, GetOptions, MultipartUpload, ObjectStore as _, ObjectStoreExt as _, PutMode,
    PutOptions, PutPayload, RetryConfig,
};
use weir_egress::{Egress, FaultClass, Rules};

use crate::connector::{Answered, Connector};
use crate::location::{Access, BucketLocation};

/// Bytes of a part of a file. Storages take parts of 5 MiB and more, and 10,000 of them.
const PART: u64 = 8 << 20;
/// Upper bound of bytes in an answer: a part, or a page of a list.
const ANSWER: usize = 9 << 20;
/// The timeout for removing the parts of a file that was not completed.
const ABORT: Duration = Duration::from_secs(30);

/// The result of a request.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a request had no success.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The settings cannot be used.
    #[error("{0}")]
    Settings(&'static str),
    /// The storage is not there, or does not answer now.
    #[error("the object storage does not answer ({0})")]
    Unreachable(FaultClass),
    /// The storage does not accept the credentials, or they do not allow this.
    #[error("the object storage refuses the credentials ({})", .0.unwrap_or("access denied"))]
    Denied(Option<&'static str>),
    /// There is no such bucket.
    #[error("the object storage has no such bucket")]
    NoBucket,
    /// There is no such object.
    #[error("the object storage has no object {0}")]
    Missing(String),
    /// The storage does not support a kind of request.
    #[error("the object storage does not support {0}, which Weir needs")]
    Unsupported(&'static str),
    /// There are more objects, or an object is larger, than expected.
    #[error("{0} has more in the object storage than expected")]
    TooLarge(String),
    /// An object has another size than expected.
    #[error("{name} has {found} bytes in the object storage instead of {expected}")]
    Length {
        /// The object.
        name: String,
        /// The expected size, bytes.
        expected: u64,
        /// The size, bytes.
        found: u64,
    },
    /// The answer is not one that this request has.
    #[error("the object storage gave an unexpected answer{}", status(*.0))]
    Unexpected(Option<FaultClass>),
    /// The file on this side cannot be read or written.
    #[error("{}: {source}", file.display())]
    File {
        /// The file on this machine.
        file: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

fn status(class: Option<FaultClass>) -> String {
    class.map_or_else(String::new, |class| format!(" ({class})"))
}

/// A bucket. All names are below the prefix of its location.
#[derive(Debug)]
pub struct Bucket {
    store: AmazonS3,
    location: BucketLocation,
}

impl Bucket {
    /// Sets up requests to a bucket. Sends none.
    ///
    /// The address is the operator's, as the one of the mail server is, so each may be
    /// dialled.
    ///
    /// # Errors
    /// [`Error::Settings`] when the settings cannot be used.
    pub fn new(location: &BucketLocation, access: &Access) -> Result<Self> {
        if let Some(fault) = access.fault() {
            return Err(Error::Settings(fault));
        }
        const ADDRESS: Error = Error::Settings("the address of the bucket cannot be used");
        let egress = Egress::new(Rules::any())
            .map_err(|_| Error::Settings("outgoing connections cannot be set up"))?;
        let url = match &access.endpoint {
            Some(endpoint) => endpoint.trim_end_matches('/').to_owned(),
            None => format!("https://s3.{}.amazonaws.com", access.region),
        };
        // The client builds requests from it with a parser of its own, and panics if that fails.
        let fits = |c: char| c.is_ascii_alphanumeric() || "-._~:/[]%".contains(c);
        if egress.judge_url(&url).is_err() || !url.chars().all(fits) {
            return Err(ADDRESS);
        }
        let store = AmazonS3Builder::new()
            .with_bucket_name(&location.bucket)
            .with_region(&access.region)
            .with_endpoint(url)
            .with_access_key_id(&access.key)
            .with_secret_access_key(&access.secret.0)
            .with_allow_http(true)
            .with_checksum_algorithm(Checksum::SHA256)
            // Some storages do not support deleting many files with one request.
            .with_disable_bulk_delete(true)
            .with_retry(retries())
            .with_http_connector(Connector::new(&egress, ANSWER))
            .build()
            .map_err(|_| ADDRESS)?;
        Ok(Self { store, location: location.clone() })
    }

    /// The bucket and the prefix of the names.
    pub fn location(&self) -> &BucketLocation {
        &self.location
    }

    /// The content of an object of at most `most` bytes; `None`: there is none.
    ///
    /// # Errors
    /// [`Error`] of the request.
    pub async fn get(&self, name: &str, most: u64) -> Result<Option<Vec<u8>>> {
        let path = self.path(name)?;
        // The answer to a request for the head alone has no code of an error.
        let options = GetOptions::new().with_range(Some(0..PART));
        let found = match self.store.get_opts(&path, options).await.map_err(|e| failed(&e, name)) {
            Ok(found) => found,
            Err(Error::Missing(_)) => return Ok(None),
            // An empty object has no bytes from the first on.
            Err(Error::Unexpected(Some(FaultClass::Status(416)))) => return Ok(Some(Vec::new())),
            Err(error) => return Err(error),
        };
        let size = found.meta.size;
        if size > most {
            return Err(Error::TooLarge(name.to_owned()));
        }
        let mut content: Vec<u8> = found.bytes().await.map_err(|e| failed(&e, name))?.into();
        while (content.len() as u64) < size {
            let at = content.len() as u64;
            content.extend_from_slice(&self.part(&path, name, at, size).await?);
        }
        Ok(Some(content))
    }

    /// Writes an object, also over one that is there.
    ///
    /// # Errors
    /// [`Error`] of the request.
    pub async fn put(&self, name: &str, content: Vec<u8>) -> Result<()> {
        let path = self.path(name)?;
        let put = self.store.put(&path, content.into()).await;
        put.map(drop).map_err(|e| failed(&e, name))
    }

    /// Writes an object unless one is there. Returns whether it was written: also `false`
    /// if it was written and the answer got lost.
    ///
    /// # Errors
    /// [`Error`] of the request.
    pub async fn create(&self, name: &str, content: Vec<u8>) -> Result<bool> {
        let options = PutOptions::from(PutMode::Create);
        let created = self.store.put_opts(&self.path(name)?, content.into(), options).await;
        match created {
            Ok(_) => Ok(true),
            Err(error) => match Answered::of(&error).map(|answered| answered.fault.class) {
                Some(FaultClass::Status(409 | 412)) => Ok(false),
                Some(FaultClass::Status(501)) => {
                    Err(Error::Unsupported("writes with the condition If-None-Match"))
                }
                _ => Err(failed(&error, name)),
            },
        }
    }

    /// Writes a file as an object. It is there as a whole or not at all.
    ///
    /// # Errors
    /// [`Error`] of the request or the file.
    pub async fn upload(&self, name: &str, path: &FilePath) -> Result<()> {
        let of_file = |source| Error::File { file: path.to_owned(), source };
        let file = Arc::new(File::open(path).map_err(of_file)?);
        let bytes = file.metadata().map_err(of_file)?.len();
        if bytes <= PART {
            let content = read_part(&file, 0, bytes).await.map_err(of_file)?;
            return self.put(name, content).await;
        }
        let upload = self.store.put_multipart(&self.path(name)?).await;
        let mut upload = upload.map_err(|e| failed(&e, name))?;
        let sent = send(&mut *upload, &file, bytes, |error| failed(error, name), of_file).await;
        if sent.is_err() {
            // What stays is for the rule of the bucket about incomplete uploads.
            let _ = tokio::time::timeout(ABORT, upload.abort()).await;
        }
        sent
    }

    /// Reads an object of this size into a file. The content is not compared with anything.
    ///
    /// # Errors
    /// [`Error`] of the request or the file.
    pub async fn download(&self, name: &str, bytes: u64, to: &FilePath) -> Result<()> {
        let of_file = |source| Error::File { file: to.to_owned(), source };
        let file = create(to).map_err(of_file)?;
        let (file, path) = (Arc::new(file), self.path(name)?);
        let mut at = 0;
        while at < bytes {
            let part = self.part(&path, name, at, bytes).await?;
            let (of, from) = (Arc::clone(&file), at);
            at += part.len() as u64;
            blocking(move || of.write_all_at(&part, from)).await.map_err(of_file)?;
        }
        blocking(move || file.sync_all()).await.map_err(of_file)
    }

    /// The next part of an object of this size.
    async fn part(&self, path: &Path, name: &str, at: u64, size: u64) -> Result<Bytes> {
        let range = at..size.min(at + PART);
        let options = GetOptions::new().with_range(Some(range.clone()));
        let of_length = |found| Error::Length { name: name.to_owned(), expected: size, found };
        let found = match self.store.get_opts(path, options).await.map_err(|e| failed(&e, name)) {
            // An empty object has no bytes from the first on.
            Err(Error::Unexpected(Some(FaultClass::Status(416)))) if at == 0 => {
                return Err(of_length(0));
            }
            found => found?,
        };
        if found.meta.size != size {
            return Err(of_length(found.meta.size));
        }
        let part = found.bytes().await.map_err(|e| failed(&e, name))?;
        match part.len() as u64 == range.end - range.start {
            true => Ok(part),
            false => Err(Error::Unexpected(None)),
        }
    }

    /// Removes an object, if it is there.
    ///
    /// # Errors
    /// [`Error`] of the request.
    pub async fn remove(&self, name: &str) -> Result<()> {
        match self.store.delete(&self.path(name)?).await.map_err(|e| failed(&e, name)) {
            Err(Error::Missing(_)) => Ok(()),
            done => done,
        }
    }

    /// The names of all objects that are wanted. Objects whose names no request can have are
    /// passed over.
    ///
    /// # Errors
    /// [`Error::TooLarge`] when there are more than `most` objects, or the wanted names have
    /// more than `bytes` bytes, and errors of the requests.
    pub async fn list(
        &self,
        most: usize,
        bytes: usize,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Result<BTreeSet<String>> {
        let prefix = match self.location.prefix.as_str() {
            "" => None,
            _ => Some(self.path("")?),
        };
        let mut found = self.store.list(prefix.as_ref());
        let skipped = prefix.as_ref().map_or(0, |prefix| prefix.as_ref().len() + 1);
        let (mut wanted, mut objects, mut taken) = (BTreeSet::new(), 0, 0);
        while let Some(next) = found.next().await {
            let next = next.map_err(|e| failed(&e, ""))?;
            let name = next.location.as_ref().get(skipped..).unwrap_or_default();
            objects += 1;
            if is_wanted(name) {
                taken += name.len();
                wanted.insert(name.to_owned());
            }
            if objects > most || taken > bytes {
                return Err(Error::TooLarge(self.location.to_string()));
            }
        }
        Ok(wanted)
    }

    fn path(&self, name: &str) -> Result<Path> {
        let path = match (self.location.prefix.as_str(), name) {
            ("", name) => Path::parse(name),
            (prefix, "") => Path::parse(prefix),
            (prefix, name) => Path::parse(format!("{prefix}/{name}")),
        };
        path.map_err(|_| Error::Settings("an object cannot have this name"))
    }
}

/// Sends a file part by part.
async fn send(
    upload: &mut dyn MultipartUpload,
    file: &Arc<File>,
    bytes: u64,
    failed: impl Fn(&object_store::Error) -> Error,
    of_file: impl Fn(io::Error) -> Error,
) -> Result<()> {
    let mut at = 0;
    while at < bytes {
        let part = read_part(file, at, PART.min(bytes - at)).await.map_err(&of_file)?;
        at += part.len() as u64;
        upload.put_part(PutPayload::from(part)).await.map_err(|e| failed(&e))?;
    }
    upload.complete().await.map(drop).map_err(|e| failed(&e))
}

async fn read_part(file: &Arc<File>, at: u64, bytes: u64) -> io::Result<Vec<u8>> {
    let file = Arc::clone(file);
    blocking(move || {
        let bytes = usize::try_from(bytes).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let mut part = vec![0; bytes];
        file.read_exact_at(&mut part, at)?;
        Ok(part)
    })
    .await
}

fn create(path: &FilePath) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    File::options().write(true).create(true).truncate(true).mode(0o600).open(path)
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}

/// Retries of a single request. The callers try again later, too.
fn retries() -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig {
            init_backoff: Duration::from_millis(200),
            max_backoff: Duration::from_secs(2),
            base: 3.,
        },
        max_retries: 2,
        retry_timeout: Duration::from_secs(60),
    }
}

fn failed(error: &object_store::Error, name: &str) -> Error {
    let Some(Answered { fault, code }) = Answered::of(error) else {
        return Error::Unexpected(None);
    };
    match (code, fault.class) {
        (Some("NoSuchBucket"), _) => Error::NoBucket,
        (_, FaultClass::Status(404)) => Error::Missing(name.to_owned()),
        (code, FaultClass::Status(401 | 403)) => Error::Denied(code),
        (_, class @ FaultClass::Status(408 | 429 | 500..)) => Error::Unreachable(class),
        (_, class @ (FaultClass::Status(_) | FaultClass::TooLarge)) => {
            Error::Unexpected(Some(class))
        }
        (_, class) => Error::Unreachable(class),
    }
}

#[cfg(test)]
mod tests;
