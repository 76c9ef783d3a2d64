//! Segments in a bucket: uploads, local copies, and the tables there.
//!
//! With the setting `segments`, the files of segments are objects of a bucket, with the
//! names that they have in the directory. What the directory has of them is a cache.
//!
//! - An object is complete before a row of the catalog names it, and it is removed only
//!   after the log of the table in the bucket does not name it.
//! - The log in the bucket is a copy of the one in the directory (`log`).
//! - A read of a segment that is not in the directory fetches it and compares it with its
//!   checksums (`fetch`). Copies that were used least recently are removed.
//! - What is in the bucket is listed with the first pass of sealing. Objects with names of
//!   ours that nothing names are removed then, and after a removal or a seal has failed.
//! - One process uses the location of a bucket (`claim`). It checks that before each removal.
//! - While a backup or a check reads objects, none of a segment is removed (`copies`).
//!
//! Runs of uuids stay in the directory: each search reads them. A start sends no
//! request, unless a damaged run needs segments to be repaired.
//!
//! What belongs here: what is where. What does not: requests (`weir-objects`), and which
//! segments there are (`catalog`).

mod claim;
mod copies;
mod fetch;
mod log;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Semaphore;
use weir_model::ProjectId;
use weir_objects::{Bucket, Error as BucketError};
use weir_segments::Segment;

pub(super) use self::claim::location_in;
pub use self::claim::uses_bucket;
pub use self::copies::{Copied, HeldObjects, SegmentCopies, SegmentFile};
pub(super) use self::fetch::{fetch, fetch_again};
pub(super) use self::log::publish;

use self::log::publish_table;
use super::catalog::{self, SealedSegment, Segments as Catalog};
use super::files::{Files, LOG, is_object, is_segment_path};
use super::{Segments, change, lock};
use crate::engine::SegmentBucket;
use crate::keyed_lock::KeyedLocks;
use crate::{Error, Result, Store};

/// Objects that may be there, also those that are not ours.
const MOST: usize = 1 << 22;
/// Bytes of the names of ours: about a million.
const NAMES: usize = 64 << 20;
/// Files that are fetched at a time.
const FETCHES: usize = 4;
/// Objects that a pass removes because nothing names them.
const TIDIED: usize = 1_000;
/// Segments from before the setting that a pass uploads.
const UPLOADS: usize = 64;
/// Time for the bucket to answer before a repair fetches segments.
const ANSWER: Duration = Duration::from_secs(60);

/// The bucket of event segments, for the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketState {
    /// `s3://bucket/prefix`.
    pub location: String,
    /// Why it could not be used last; `None` if nothing has failed since it was last claimed.
    pub failure: Option<String>,
    /// Bytes of the copies in the data directory.
    pub cached_bytes: u64,
}

/// The bucket, and what is known of it and of the local copies.
pub(super) struct Objects {
    bucket: Bucket,
    /// Upper bound of local copies, bytes.
    cache: u64,
    known: Mutex<BucketContents>,
    local: Mutex<Local>,
    /// Held while the bucket is claimed.
    claiming: tokio::sync::Mutex<()>,
    fetching: KeyedLocks<String>,
    fetches: Semaphore,
    failures: AtomicU64,
    /// Why the bucket could not be used last; `None` after it was claimed.
    failure: Mutex<Option<String>>,
}

#[derive(Default)]
struct BucketContents {
    /// Whether the bucket answered last, and is used by this process alone.
    is_ours: bool,
    /// The names of our objects; `None`: they were not listed yet. Some of them may be
    /// removed already.
    present: Option<BTreeSet<String>>,
    /// Whether `present` has all of them.
    is_listed: bool,
    /// Whether all segments of the catalog are objects, as far as they exist and are sound.
    is_complete: bool,
    /// Whether `present` has no objects that nothing names.
    is_tidy: bool,
    /// The versions of the logs in the bucket, by the directories of their tables.
    published: HashMap<String, u64>,
    /// Segments that are missing in both places and were reported.
    missing: HashSet<String>,
    /// Segments that were not uploaded, because they cannot be read here. They were reported.
    unreadable: HashSet<String>,
    /// Segments whose objects are damaged or missing: no other copy is better.
    damaged: HashSet<String>,
}

/// A segment of the directory.
struct LocalFile {
    bytes: u64,
    /// The number of the last use.
    used: u64,
    /// Whether the bucket has it too, so that it may be removed here.
    is_copy: bool,
}

/// The segments that the directory has.
#[derive(Default)]
struct Local {
    /// By their names.
    files: HashMap<String, LocalFile>,
    bytes: u64,
    uses: u64,
}

impl Local {
    fn touch(&mut self, name: &str) {
        self.uses += 1;
        if let Some(file) = self.files.get_mut(name) {
            file.used = self.uses;
        }
    }

    fn add(&mut self, name: &str, bytes: u64, is_copy: bool) {
        self.uses += 1;
        let file = LocalFile { bytes, used: self.uses, is_copy };
        if self.files.insert(name.to_owned(), file).is_none() {
            self.bytes += bytes;
        }
    }

    fn remove(&mut self, name: &str) {
        if let Some(file) = self.files.remove(name) {
            self.bytes = self.bytes.saturating_sub(file.bytes);
        }
    }
}

impl Objects {
    pub(super) fn new(settings: &SegmentBucket) -> Result<Self> {
        let SegmentBucket { location, access, cache } = settings;
        let bucket = Bucket::new(location, access).map_err(|error| Error::Bucket {
            location: location.to_string(),
            detail: error.to_string(),
        })?;
        Ok(Self {
            bucket,
            cache: *cache,
            known: Mutex::default(),
            local: Mutex::default(),
            claiming: tokio::sync::Mutex::default(),
            fetching: KeyedLocks::default(),
            fetches: Semaphore::new(FETCHES),
            failures: AtomicU64::new(0),
            failure: Mutex::default(),
        })
    }

    /// Bytes of local copies.
    pub(super) fn local_bytes(&self) -> u64 {
        lock(&self.local).bytes
    }

    /// How often the bucket could not be used.
    pub(super) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Where the bucket is, and why it could not be used last.
    pub(super) fn state(&self) -> BucketState {
        BucketState {
            location: self.bucket.location().to_string(),
            failure: lock(&self.failure).clone(),
            cached_bytes: self.local_bytes(),
        }
    }

    /// Notes a file of the directory, and whether the bucket has it too.
    pub(super) fn has_local(&self, name: &str, bytes: u64, is_copy: bool) {
        lock(&self.local).add(name, bytes, is_copy);
    }

    /// Notes that a file was read.
    pub(super) fn used(&self, name: &str) {
        lock(&self.local).touch(name);
    }

    /// Uploads a segment.
    async fn upload(&self, name: &str, path: &Path, bytes: u64) -> Result<()> {
        if let Err(error) = self.bucket.upload(name, path).await {
            if !matches!(error, BucketError::File { .. }) {
                lock(&self.known).is_ours = false;
            }
            return Err(self.error(error));
        }
        self.has_local(name, bytes, true);
        self.has_object(name);
        Ok(())
    }

    /// Notes an object.
    fn has_object(&self, name: &str) {
        if let Some(present) = &mut lock(&self.known).present {
            present.insert(name.to_owned());
        }
    }

    /// Removes objects that no row names any more, after the change of the table. What
    /// cannot be removed now is removed by a later pass.
    pub(super) async fn remove(&self, files: &Files, names: &[String]) {
        for name in names {
            lock(&self.local).remove(name);
        }
        let segments: Vec<&String> = names.iter().filter(|name| is_segment_path(name)).collect();
        if !segments.is_empty() && are_held(files) {
            lock(&self.known).is_tidy = false;
            return;
        }
        for name in segments {
            let table = name.split('/').next().unwrap_or_default();
            let is_published = lock(&self.known).published.contains_key(table);
            // A reader of the table may still need it, or the bucket does not answer.
            if !is_published || self.remove_object(files, name).await.is_err() {
                lock(&self.known).is_tidy = false;
                return;
            }
        }
    }

    /// Removes an object, if the bucket still belongs to this process.
    async fn remove_object(&self, files: &Files, name: &str) -> Result<()> {
        let removed = match self.check_owner(files).await {
            Ok(()) => self.bucket.remove(name).await.map_err(|error| self.error(error)),
            Err(error) => Err(error),
        };
        match &removed {
            Ok(()) => {
                if let Some(present) = &mut lock(&self.known).present {
                    present.remove(name);
                }
            }
            Err(error) => {
                tracing::warn!(object = name, %error, "an unused object was not removed yet");
            }
        }
        removed
    }

    /// What is in the bucket is to be listed again.
    fn list_again(&self) {
        lock(&self.known).is_listed = false;
    }

    /// Forgets which version of the log the bucket has. A later pass removes its objects.
    pub(super) fn forget_table(&self, project: ProjectId) {
        let mut known = lock(&self.known);
        known.published.remove(&project.to_string());
        known.is_tidy = false;
    }

    /// Forgets which version of the log the bucket has, so that both logs are compared.
    pub(super) fn forget_version(&self, project: ProjectId) {
        lock(&self.known).published.remove(&project.to_string());
    }

    /// Removes local copies that were used least recently, until they have at most
    /// [`cache`](Self::cache) bytes. One that is being read stays.
    fn evict(&self, segments: &Segments, files: &Files) {
        let mut oldest: Vec<(u64, String)> = {
            let local = lock(&self.local);
            if local.bytes <= self.cache {
                return;
            }
            let copies = local.files.iter().filter(|(_, file)| file.is_copy);
            copies.map(|(name, file)| (file.used, name.clone())).collect()
        };
        oldest.sort_unstable();
        // The one that was used last is needed now.
        oldest.pop();
        for (_, name) in oldest {
            if self.local_bytes() <= self.cache {
                return;
            }
            {
                let mut open = lock(&segments.open);
                if open.peek(&name).is_some_and(Segment::is_shared) {
                    continue;
                }
                open.remove(&name);
            }
            files.remove(std::slice::from_ref(&name));
            lock(&self.local).remove(&name);
        }
    }

    /// The error of the store for an error of the bucket.
    fn error(&self, error: BucketError) -> Error {
        match error {
            BucketError::File { file, source } => Error::File { file, source },
            error => self.refused(error.to_string()),
        }
    }

    fn refused(&self, detail: String) -> Error {
        self.failures.fetch_add(1, Ordering::Relaxed);
        *lock(&self.failure) = Some(detail.clone());
        Error::Bucket { location: self.bucket.location().to_string(), detail }
    }

    /// Copies a table whose files are all in the directory: new files, then the log, and
    /// then files go away that the directory does not have.
    pub(super) async fn copy_table(
        &self,
        files: &Files,
        table: &str,
        names: &BTreeSet<String>,
        version: u64,
    ) -> Result<()> {
        let prefix = format!("{table}/");
        let there: BTreeSet<String> = {
            let known = lock(&self.known);
            let present = known.present.iter().flatten();
            present.filter(|name| name.starts_with(&prefix)).cloned().collect()
        };
        for name in names.difference(&there) {
            self.bucket.upload(name, &files.path(name)).await.map_err(|e| self.error(e))?;
            self.has_object(name);
        }
        publish_table(self, files, table, version).await?;
        let log = format!("{table}/{LOG}/");
        for name in there.difference(names).filter(|name| !name.starts_with(&log)) {
            self.remove_object(files, name).await?;
        }
        Ok(())
    }

    /// The objects of the next project, whose names are `begin` or later.
    fn next_project(&self, begin: &mut String) -> Option<(String, Vec<String>)> {
        let known = lock(&self.known);
        let present = known.present.as_ref()?;
        let (project, _) = present.range(begin.clone()..).next()?.split_once('/')?;
        // `0` follows `/`.
        let (from, end) = (format!("{project}/"), format!("{project}0"));
        let names = present.range(from..end.clone()).cloned().collect();
        *begin = end;
        Some((project.to_owned(), names))
    }

    /// Notes that the bucket may have objects that nothing names.
    pub(super) fn untidy(&self) {
        lock(&self.known).is_tidy = false;
    }

    /// Whether the bucket has no objects that nothing names.
    pub(super) fn is_tidy(&self) -> bool {
        lock(&self.known).is_tidy
    }

    /// Whether the bucket answered last, and is used by this process alone.
    pub(super) fn is_usable(&self) -> bool {
        lock(&self.known).is_ours
    }

    async fn list(&self) -> Result<()> {
        if lock(&self.known).is_listed {
            return Ok(());
        }
        let listed = self.bucket.list(MOST, NAMES, is_object).await;
        let listed = listed.map_err(|error| self.error(error))?;
        for (name, file) in &mut lock(&self.local).files {
            file.is_copy |= listed.contains(name);
        }
        let mut known = lock(&self.known);
        known.present = Some(listed);
        known.missing.clear();
        known.unreadable.clear();
        (known.is_listed, known.is_complete, known.is_tidy) = (true, false, false);
        Ok(())
    }
}

/// Makes sure that the bucket answers soon, and is that of this data directory. Work that holds
/// the lock of changes asks before it fetches many segments: a request to a bucket that is
/// silent takes minutes. Without a bucket it does nothing.
///
/// # Errors
/// [`Error::Bucket`], at the latest after 60 s.
pub(super) async fn ask(store: &Store) -> Result<()> {
    let (Some(objects), Some(files)) = (&store.segments.objects, &store.segments.files) else {
        return Ok(());
    };
    match tokio::time::timeout(ANSWER, objects.check_owner(files)).await {
        Ok(answered) => answered,
        Err(_) => Err(objects.refused(format!("no answer within {} s", ANSWER.as_secs()))),
    }
}

/// Lists the bucket if that is needed, and uploads segments that it does not have, up to
/// some. Returns whether all were. A pass of sealing begins with it: without a bucket that
/// answers, nothing is sealed.
pub(super) async fn catch_up(store: &Store) -> Result<bool> {
    let (Some(objects), Some(files)) = (&store.segments.objects, &store.segments.files) else {
        return Ok(true);
    };
    objects.claim(files).await?;
    if !lock(&objects.known).is_listed {
        let list = |store: Store| async move {
            match &store.segments.objects {
                Some(objects) => objects.list().await,
                None => Ok(()),
            }
        };
        change(store, list).await?;
    }
    if lock(&objects.known).is_complete {
        return Ok(true);
    }
    let (mut all, mut uploads) = (Catalog::all(store).await?, 0);
    while let Some(some) = all.next(store).await? {
        for segment in some {
            let is_done = |known: &BucketContents| {
                let present = known.present.as_ref();
                present.is_some_and(|present| present.contains(&segment.file))
                    || known.unreadable.contains(&segment.file)
            };
            if is_done(&lock(&objects.known)) {
                continue;
            }
            let path = files.path(&segment.file);
            if !path.exists() {
                if lock(&objects.known).missing.insert(segment.file.clone()) {
                    let detail = format!("{} is neither here nor in the bucket", path.display());
                    let _ = store.segments.damaged(path, detail);
                }
                continue;
            }
            if uploads == UPLOADS {
                return Ok(false);
            }
            uploads += 1;
            change(store, |store| async move { upload_old(&store, &segment).await }).await?;
        }
    }
    lock(&objects.known).is_complete = true;
    objects.evict(&store.segments, files);
    Ok(true)
}

/// Uploads a segment from before the setting. One that is damaged, or cannot be read, stays
/// here alone: what it still has is not replaced by less.
async fn upload_old(store: &Store, segment: &SealedSegment) -> Result<()> {
    let segments = &store.segments;
    let (Some(objects), Some(files)) = (&segments.objects, &segments.files) else {
        return Ok(());
    };
    let (name, path, bytes) = (&segment.file, files.path(&segment.file), segment.bytes);
    // It may have been merged or removed in between.
    let Some(sums) = catalog::sums(store, name).await?.filter(|_| path.exists()) else {
        return Ok(());
    };
    let at = path.clone();
    let checked =
        segments.blocking(path.clone(), move || Segment::open(&at, bytes, &sums)?.verify());
    let uploaded = match checked.await {
        Ok(Ok(())) => objects.upload(name, &path, bytes).await,
        Ok(Err(error)) => Err(segments.error(error)),
        Err(error) => Err(error),
    };
    match uploaded {
        Err(error @ (Error::File { .. } | Error::Damaged { .. })) => {
            tracing::error!(file = name, %error, "a segment is not uploaded; it stays here alone");
            lock(&objects.known).unreadable.insert(name.clone());
            Ok(())
        }
        uploaded => uploaded,
    }
}

/// Whether objects of segments must stay, because a backup or a check reads them. A later
/// pass removes them.
fn are_held(files: &Files) -> bool {
    match files.are_objects_held() {
        Ok(false) => false,
        Ok(true) => {
            tracing::info!("unused objects stay while a backup or a check reads the bucket");
            true
        }
        Err(error) => {
            tracing::warn!(%error, "unused objects stay: it is unknown whether they are read");
            true
        }
    }
}

/// Removes objects that nothing names, if there may be some. Files that a merge has replaced
/// stay as long as in the directory. The caller keeps other tasks from changing files, and
/// the logs of the tables are up to date as far as `published` says.
pub(super) async fn tidy(store: &Store) -> Result<()> {
    let (Some(objects), Some(files)) = (&store.segments.objects, &store.segments.files) else {
        return Ok(());
    };
    {
        let known = lock(&objects.known);
        // Unknown objects stay while others are missing.
        let is_known = known.is_listed && known.is_complete && known.missing.is_empty();
        if !is_known || known.is_tidy {
            return Ok(());
        }
    }
    if are_held(files) {
        return Ok(());
    }
    let (mut is_tidy, mut removed, mut begin) = (true, 0, String::new());
    'projects: while let Some((project, names)) = objects.next_project(&mut begin) {
        let number = project.parse().ok().map(ProjectId);
        // One with zeros before it is not ours.
        let Some(number) = number.filter(|number| number.to_string() == project) else { continue };
        let (mut named, mut has_segments) = (HashSet::new(), false);
        let mut all = Catalog::of(store, number).await?;
        while let Some(some) = all.next(store).await? {
            has_segments |= !some.is_empty();
            named.extend(some.into_iter().map(|segment| segment.file));
        }
        named.extend(lock(&store.segments.replaced).iter().map(|(name, _)| name.clone()));
        let is_published = lock(&objects.known).published.contains_key(&project);
        for name in names {
            let is_unused = match is_segment_path(&name) {
                true => !named.contains(&name),
                // The other files of a table are in the directory too.
                false => !files.path(&name).exists(),
            };
            if !is_unused {
                continue;
            }
            // A reader of the table may still need it.
            if has_segments && !is_published {
                is_tidy = false;
                continue 'projects;
            }
            if removed == TIDIED || objects.remove_object(files, &name).await.is_err() {
                is_tidy = false;
                break 'projects;
            }
            removed += 1;
        }
    }
    if removed > 0 {
        tracing::info!(objects = removed, "removed objects of the bucket that nothing names");
    }
    lock(&objects.known).is_tidy = is_tidy;
    Ok(())
}

/// A new segment that is in the bucket. The next pass removes its object, unless it is
/// [named](Self::named).
pub(super) struct Uploaded<'a> {
    objects: Option<&'a Objects>,
    name: String,
}

impl Uploaded<'_> {
    /// The catalog names the segment.
    pub(super) fn named(mut self) {
        self.objects = None;
    }
}

impl Drop for Uploaded<'_> {
    fn drop(&mut self) {
        if let Some(objects) = self.objects {
            // Also if it is unknown whether the upload was completed.
            objects.has_object(&self.name);
            lock(&objects.known).is_tidy = false;
            lock(&objects.local).remove(&self.name);
        }
    }
}

/// Uploads a new segment before its row, and makes room for it. Without a bucket it does
/// nothing.
pub(super) async fn upload<'a>(
    store: &'a Store,
    name: &str,
    path: &Path,
    bytes: u64,
) -> Result<Uploaded<'a>> {
    let mut uploaded = Uploaded { objects: None, name: name.to_owned() };
    let (Some(objects), Some(files)) = (&store.segments.objects, &store.segments.files) else {
        return Ok(uploaded);
    };
    if !objects.is_usable() {
        objects.claim(files).await?;
    }
    uploaded.objects = Some(objects);
    objects.upload(name, path, bytes).await?;
    objects.evict(&store.segments, files);
    Ok(uploaded)
}
