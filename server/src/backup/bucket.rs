//! Backups in a bucket: the requests of a repository.
//!
//! What belongs here: how a repository asks its bucket. What does not: what a repository is
//! (`weir_backup`), and who may write to it (`lease`).

use std::collections::BTreeSet;
use std::path::Path;

use tokio::runtime::Handle;
use weir_backup::{Error, FileFault, Remote, Result};
use weir_model::Timestamp;
use weir_objects::{Access, Bucket, BucketLocation, Error as BucketError};

use super::lease::Lease;

/// The part with the leases.
const LEASES: &str = "leases";
/// Objects of a part, and bytes of their names. A backup has no more files.
const MOST: usize = 1_000_000;
const MOST_NAMES: usize = 80 << 20;

/// The storage of a repository. Its functions are called on threads that may block.
#[derive(Debug)]
pub(super) struct BucketStorage {
    location: BucketLocation,
    access: Access,
    bucket: Bucket,
    handle: Handle,
    /// `None`: it is only read.
    lease: Option<Lease>,
}

impl BucketStorage {
    /// A storage that is only read. It needs no other right.
    pub(super) fn to_read(location: &BucketLocation, access: Access) -> Result<Self> {
        let bucket = Bucket::new(location, &access).map_err(|error| failed(location, error))?;
        let (location, handle) = (location.clone(), Handle::current());
        Ok(Self { location, access, bucket, handle, lease: None })
    }

    /// A storage that this command alone writes to, until it is released.
    pub(super) async fn to_write(
        location: &BucketLocation,
        access: Access,
        now: Timestamp,
    ) -> Result<Self> {
        let storage = Self::to_read(location, access)?;
        let lease = Lease::take(storage.part(LEASES)?, location, now).await?;
        Ok(Self { lease: Some(lease), ..storage })
    }

    /// The bucket with a part as its prefix.
    fn part(&self, part: &str) -> Result<Bucket> {
        let BucketLocation { bucket, prefix } = &self.location;
        let prefix = match prefix.as_str() {
            "" => part.to_owned(),
            prefix => format!("{prefix}/{part}"),
        };
        let location = BucketLocation { bucket: bucket.clone(), prefix };
        Bucket::new(&location, &self.access).map_err(|error| self.failed(error))
    }

    fn failed(&self, error: BucketError) -> Error {
        failed(&self.location, error)
    }
}

/// The error of a request.
pub(super) fn failed(location: &BucketLocation, error: BucketError) -> Error {
    Error::Remote { place: location.to_string(), source: Box::new(error) }
}

impl Remote for BucketStorage {
    fn place(&self) -> String {
        self.location.to_string()
    }

    fn list(&self, part: &str) -> Result<BTreeSet<String>> {
        let bucket = self.part(part)?;
        let listed = self.handle.block_on(bucket.list(MOST, MOST_NAMES, |_| true));
        listed.map_err(|error| self.failed(error))
    }

    fn read(&self, name: &str, most: u64) -> Result<Option<Vec<u8>>> {
        self.handle.block_on(self.bucket.get(name, most)).map_err(|error| self.failed(error))
    }

    fn upload(&self, name: &str, from: &Path) -> Result<()> {
        self.handle.block_on(self.bucket.upload(name, from)).map_err(|error| self.failed(error))
    }

    fn download(&self, name: &str, bytes: u64, to: &Path) -> Result<Option<FileFault>> {
        match self.handle.block_on(self.bucket.download(name, bytes, to)) {
            Ok(()) => Ok(None),
            Err(BucketError::Missing(_)) => Ok(Some(FileFault::Missing)),
            Err(BucketError::Length { expected, found, .. }) => {
                Ok(Some(FileFault::Length { expected, found }))
            }
            Err(error) => Err(self.failed(error)),
        }
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.handle.block_on(self.bucket.remove(name)).map_err(|error| self.failed(error))
    }

    fn confirm(&self) -> Result<()> {
        match &self.lease {
            Some(lease) => self.handle.block_on(lease.confirm()),
            None => Ok(()),
        }
    }

    fn release(&self) -> Result<()> {
        match &self.lease {
            Some(lease) => self.handle.block_on(lease.release()),
            None => Ok(()),
        }
    }
}
