//! Files of events that are in a bucket: a backup fetches those that the data directory does
//! not have (DUR-31).
//!
//! What belongs here: whether an instance has such files, and asking for them one at a time.
//! What does not: which ones there are and copying them (`weir_store::events`), and storing them
//! (`weir_backup`).

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::FutureExt as _;
use tokio::runtime::Handle;
use weir_backup::{Error, Fetch, Fetched, Needed, Result, Staging};
use weir_store::SegmentBucket;
use weir_store::events::{Copied, HeldObjects, SegmentCopies, SegmentFile, uses_bucket};

use super::{BackupError, blocking};
use crate::config::Config;
use crate::logs::with_causes;

/// The file in the data directory that says which bucket has files of events.
const CLAIM: &str = "segments/bucket";
/// The directory in the data directory where the catalog of a backup is read.
pub(super) const STAGING: &str = ".weir-catalog";
/// The directory of the files of events.
const DIRECTORY: &str = "segments";
/// The pause between two checks whether the process was asked to end.
const PAUSE: Duration = Duration::from_millis(100);

/// The bucket that may have files of events. `None`: the data directory has all of them.
///
/// # Errors
/// [`BackupError::InBucket`] when it has not, and the settings do not name the bucket.
pub(super) fn bucket(config: &Config) -> Result<Option<SegmentBucket>, BackupError> {
    let bucket = config.segment_bucket();
    // The file is there also after the setting was removed.
    match bucket.is_none() && config.data.join(CLAIM).exists() {
        true => Err(BackupError::InBucket),
        false => Ok(bucket),
    }
}

/// Keeps objects from being removed, if files of events may be in a bucket. To be called
/// before the files of the data directory are linked.
///
/// # Errors
/// As [`bucket`], and [`BackupError::Held`].
pub(super) async fn hold(config: &Config) -> Result<Option<HeldObjects>, BackupError> {
    if bucket(config)?.is_none() {
        return Ok(None);
    }
    let data = config.data.clone();
    blocking(move || HeldObjects::of(&data).map(Some).map_err(BackupError::Held)).await
}

/// The files of events of a snapshot, of which some are in a bucket alone.
pub(super) struct BucketSegments {
    copies: SegmentCopies,
    /// What [`Fetch::next`] returned last.
    current: Option<SegmentFile>,
    place: String,
    handle: Handle,
    /// Set when the process is asked to end.
    is_stopped: Arc<AtomicBool>,
    /// The links to the database from which the catalog is read.
    scratch: Staging,
}

impl BucketSegments {
    /// The files of events of a snapshot of the data directory. `None`: none is in a bucket.
    ///
    /// # Errors
    /// As [`bucket`], and when the catalog or the bucket cannot be read.
    pub(super) async fn open(
        config: &Config,
        snapshot: &Path,
        is_stopped: Arc<AtomicBool>,
    ) -> Result<Option<Self>, BackupError> {
        let claim = snapshot.join(CLAIM);
        let Some(bucket) = bucket(config)?.filter(|_| claim.exists()) else { return Ok(None) };
        let (at, data) = (config.data.join(STAGING), config.data.clone());
        let (least_free, links) = (config.disk_marks().high, snapshot.to_owned());
        let scratch = blocking(move || {
            let is_used = uses_bucket(&links).map_err(BackupError::Segments)?;
            // A restored instance is not the one that the bucket belongs to.
            std::fs::remove_file(&claim).map_err(|source| Error::Io {
                action: "remove",
                path: claim.clone(),
                source,
            })?;
            if !is_used {
                return Ok(None);
            }
            // The database writes beside its links.
            weir_backup::refuse_low_disk(&data, least_free)?;
            Ok(Some(Staging::create(&at)?))
        });
        let Some(scratch) = scratch.await? else { return Ok(None) };
        // Boxed: the type of the future of the engine is deep.
        let opened = SegmentCopies::open(&config.data, snapshot, scratch.path(), &bucket).boxed();
        Ok(Some(Self {
            copies: opened.await.map_err(BackupError::Segments)?,
            current: None,
            place: bucket.location.to_string(),
            handle: Handle::current(),
            is_stopped,
            scratch,
        }))
    }

    /// Closes the database, and removes its links. Blocks the thread.
    pub(super) fn close(self) {
        let Self { copies, handle, scratch, .. } = self;
        handle.block_on(copies.close());
        if let Err(error) = scratch.remove() {
            let error = with_causes(&error);
            tracing::warn!(error, "the links are not removed; a server that runs removes them");
        }
    }

    /// Returns when the process is asked to end.
    async fn stopped(&self) {
        while !self.is_stopped.load(Ordering::Acquire) {
            tokio::time::sleep(PAUSE).await;
        }
    }

    fn failed(&self, error: weir_store::Error) -> Error {
        Error::Remote { place: self.place.clone(), source: Box::new(error) }
    }
}

impl Fetch for BucketSegments {
    fn next(&mut self) -> Result<Option<Needed>> {
        let next = self.handle.block_on(self.copies.next());
        self.current = next.map_err(|error| self.failed(error))?;
        let needed = |SegmentFile { name, bytes }: &SegmentFile| Needed {
            path: format!("{DIRECTORY}/{name}"),
            bytes: *bytes,
        };
        Ok(self.current.as_ref().map(needed))
    }

    fn fetch(&mut self, at: &Path) -> Result<Fetched> {
        let Some(file) = &self.current else { return Ok(Fetched::Absent) };
        // A file may have half a gigabyte, and its storage may be slow.
        let copied = self.handle.block_on(async {
            tokio::select! {
                copied = self.copies.copy(file, at) => Some(copied),
                () = self.stopped() => None,
            }
        });
        let Some(copied) = copied else { return Err(Error::Interrupted) };
        let (fetched, detail) = match copied.map_err(|error| self.failed(error))? {
            Copied::Sound => return Ok(Fetched::Sound),
            Copied::Damaged(detail) => (Fetched::Damaged, detail),
            Copied::Absent(detail) => (Fetched::Absent, detail),
        };
        tracing::error!(file = file.name, detail, "a file of events is not sound in this backup");
        Ok(fetched)
    }
}
