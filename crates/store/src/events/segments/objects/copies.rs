//! Segments of a bucket for a backup: which ones the catalog of a checkpoint names, and
//! copies of them.
//!
//! A backup is made from files, and another process may use the store and the bucket. So the
//! catalog is read from links to the checkpoint, the bucket is only read, and a lock keeps
//! the other process from removing objects meanwhile (`HeldObjects`).
//!
//! What belongs here: copying a segment from the bucket to a path. What does not: links to
//! what the data directory has (`checkpoint`), local copies of a server (`fetch`), and where
//! backups are stored (`weir-backup`).

use std::collections::VecDeque;
use std::error::Error as _;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use weir_objects::{Bucket, Error as BucketError};
use weir_segments::{Error as FileError, Segment};

use super::super::catalog::{SealedSegment, Segments as Catalog, sums_in};
use super::super::files::{Files, hold_objects};
use super::super::lock;
use super::Objects;
use super::claim::check_to_read;
use crate::checkpoint::link_again;
use crate::db::Db;
use crate::engine::{BareEngine, SegmentBucket, create_private, open_files};
use crate::{Error, Result, migrations};

/// Downloads of a segment: the first may have been damaged on its way.
const ATTEMPTS: u32 = 2;
/// What a copy is called in addition while it is compared.
const UNFINISHED: &str = ".fetched";
/// Longest time for the database to close its files. The engine waits up to 30 s for a rewrite
/// of tables.
const CLOSING: Duration = Duration::from_secs(60);
/// The pause between two checks whether files are open.
const PAUSE: Duration = Duration::from_millis(20);

/// Keeps the server of a data directory from removing objects of segments, as long as it
/// lives. The objects are removed later.
#[derive(Debug)]
pub struct HeldObjects {
    _lock: File,
}

impl HeldObjects {
    /// Takes the lock of a data directory. To be called before its checkpoint is made. Blocks
    /// the thread for a moment.
    ///
    /// # Errors
    /// When the file of the lock cannot be opened.
    pub fn of(data: &Path) -> io::Result<Self> {
        hold_objects(data).map(|lock| Self { _lock: lock })
    }
}

/// A segment that the catalog names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentFile {
    /// Its name below `segments` of the data directory, and in the bucket.
    pub name: String,
    /// Its length, bytes.
    pub bytes: u64,
}

/// What a copy of a segment is like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Copied {
    /// It has the checksums of the catalog.
    Sound,
    /// Neither the copy nor the object has them, and why. The path has what there is.
    Damaged(String),
    /// Nothing can be copied, and why.
    Absent(String),
}

/// Iterates over the segments of a checkpoint, whose objects are in a bucket.
pub struct SegmentCopies {
    engine: BareEngine,
    /// Where the database of the checkpoint is open.
    scratch: PathBuf,
    bucket: Bucket,
    rest: Catalog,
    page: VecDeque<SealedSegment>,
}

impl SegmentCopies {
    /// Reads the catalog of a checkpoint of `data`. The database is opened in `scratch`, a
    /// directory on the same file system, which is to be removed later.
    ///
    /// # Errors
    /// [`Error::Bucket`] when the bucket cannot be used or is not that of the data directory,
    /// [`Error::Open`] when the database cannot be opened or has an older schema, and as
    /// [`crate::inspection::stored_schema`].
    pub async fn open(
        data: &Path,
        checkpoint: &Path,
        scratch: &Path,
        settings: &SegmentBucket,
    ) -> Result<Self> {
        let SegmentBucket { location, access, .. } = settings;
        let bucket = Bucket::new(location, access).map_err(|error| Error::Bucket {
            location: location.to_string(),
            detail: error.to_string(),
        })?;
        check_to_read(&bucket, &Files::of(data)).await?;
        let unusable =
            |detail: String| Error::Open { location: scratch.display().to_string(), detail };
        let (from, to) = (checkpoint.to_owned(), scratch.to_owned());
        let linked = tokio::task::spawn_blocking(move || link_again(&from, &to)).await;
        linked.map_err(|_| Error::Stopped)?.map_err(|error| {
            let cause = error.source().map(|cause| format!(": {cause}"));
            unusable(format!("{error}{}", cause.unwrap_or_default()))
        })?;
        let engine = BareEngine::open(scratch).await?;
        let rest = match catalog_of(&engine.db).await {
            Ok(Some(rest)) => Ok(rest),
            Ok(None) => {
                let why = "its schema is that of an earlier version; start this version once";
                Err(unusable(why.to_owned()))
            }
            Err(error) => Err(error),
        };
        match rest {
            Ok(rest) => {
                let (scratch, page) = (scratch.to_owned(), VecDeque::new());
                Ok(Self { engine, scratch, bucket, rest, page })
            }
            Err(error) => {
                close(engine, scratch).await;
                Err(error)
            }
        }
    }

    /// The next segment; `None`: there are no more.
    ///
    /// # Errors
    /// When the catalog cannot be read.
    pub async fn next(&mut self) -> Result<Option<SegmentFile>> {
        while self.page.is_empty() {
            match self.rest.next_in(&self.engine.db).await? {
                Some(page) => self.page = page.into(),
                None => return Ok(None),
            }
        }
        let next = self.page.pop_front();
        Ok(next.map(|SealedSegment { file, bytes, .. }| SegmentFile { name: file, bytes }))
    }

    /// Puts a segment at a path, unless a sound copy is there. A damaged copy is replaced if
    /// the object is sound. Without a copy, a damaged object is put there all the same: its
    /// other parts can be read.
    ///
    /// # Errors
    /// [`Error::Bucket`] when the bucket cannot be used, [`Error::File`] when the file cannot
    /// be read or written, and when the catalog cannot be read.
    pub async fn copy(&self, segment: &SegmentFile, at: &Path) -> Result<Copied> {
        let SegmentFile { name, bytes } = segment;
        let Some(sums) = sums_in(&self.engine.db, name).await? else {
            let why = "the catalog has no checksums of it".to_owned();
            return Ok(if at.exists() { Copied::Damaged(why) } else { Copied::Absent(why) });
        };
        let mut damage = None;
        if at.exists() {
            match damage_of(at, *bytes, &sums).await {
                Ok(None) => return Ok(Copied::Sound),
                Ok(found) => damage = found,
                // The device may be unable to read it, and the bucket may have it too.
                Err(error @ Error::File { .. }) => damage = Some(error.to_string()),
                Err(error) => return Err(error),
            }
        }
        let has_copy = damage.is_some();
        let failed = |source| Error::File { file: at.to_owned(), source };
        at.parent().map_or(Ok(()), create_private).map_err(failed)?;
        let mut unfinished = at.as_os_str().to_owned();
        unfinished.push(UNFINISHED);
        let unfinished = PathBuf::from(unfinished);
        let mut is_fetched = false;
        for _ in 0..ATTEMPTS {
            match self.bucket.download(name, *bytes, &unfinished).await {
                Ok(()) => {}
                Err(error @ (BucketError::Missing(_) | BucketError::Length { .. })) => {
                    is_fetched = false;
                    damage.get_or_insert(error.to_string());
                    break;
                }
                Err(BucketError::File { file, source }) => {
                    return Err(Error::File { file, source });
                }
                Err(error) => {
                    let location = self.bucket.location().to_string();
                    return Err(Error::Bucket { location, detail: error.to_string() });
                }
            }
            let Some(detail) = damage_of(&unfinished, *bytes, &sums).await? else {
                std::fs::rename(&unfinished, at).map_err(failed)?;
                return Ok(Copied::Sound);
            };
            is_fetched = true;
            damage.get_or_insert(detail);
        }
        let why = damage.unwrap_or_default();
        if has_copy || !is_fetched {
            let _ = std::fs::remove_file(&unfinished);
            return Ok(if has_copy { Copied::Damaged(why) } else { Copied::Absent(why) });
        }
        std::fs::rename(&unfinished, at).map_err(failed)?;
        Ok(Copied::Damaged(why))
    }

    /// Closes the database. Its files are closed in a task of the engine, so this waits for
    /// that, a minute at most: the directory can be removed then.
    pub async fn close(self) {
        let Self { engine, scratch, .. } = self;
        close(engine, &scratch).await;
    }
}

/// The segments of a database. `None`: its schema is that of an earlier version.
async fn catalog_of(db: &Db) -> Result<Option<Catalog>> {
    match migrations::compare(db).await?.missing.is_empty() {
        true => Catalog::all_in(db).await.map(Some),
        false => Ok(None),
    }
}

/// Closes an engine, and waits until it has closed its files.
async fn close(engine: BareEngine, scratch: &Path) {
    drop(engine);
    let begun = Instant::now();
    while begun.elapsed() < CLOSING && !open_files(scratch).is_empty() {
        tokio::time::sleep(PAUSE).await;
    }
}

impl Objects {
    /// Whether the bucket is that of a data directory and has no such object. Which process
    /// uses it does not matter. Later reads know that it is missing.
    ///
    /// # Errors
    /// As [`check_to_read`].
    pub(in crate::events::segments) async fn is_absent(
        &self,
        files: &Files,
        name: &str,
    ) -> Result<bool> {
        check_to_read(&self.bucket, files).await?;
        let is_absent = match self.bucket.get(name, 0).await {
            Ok(found) => found.is_none(),
            Err(BucketError::TooLarge(_)) => false,
            Err(error) => return Err(self.error(error)),
        };
        if is_absent {
            lock(&self.known).missing.insert(name.to_owned());
        }
        Ok(is_absent)
    }
}

/// What is wrong with a file of a segment; `None`: nothing. A panic of a reader is damage.
async fn damage_of(at: &Path, bytes: u64, sums: &[u8]) -> Result<Option<String>> {
    let (path, sums) = (at.to_owned(), sums.to_vec());
    let verify = move || Segment::open(&path, bytes, &sums)?.verify();
    match tokio::task::spawn_blocking(verify).await {
        Ok(Ok(())) => Ok(None),
        Ok(Err(FileError::Io { file, source })) => Err(Error::File { file, source }),
        Ok(Err(error)) => Ok(Some(error.to_string())),
        Err(join) if join.is_panic() => Ok(Some(join.to_string())),
        Err(_) => Err(Error::Stopped),
    }
}
