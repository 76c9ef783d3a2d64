//! Segments in a bucket: uploads, local copies, and the tables there.
//!
//! With the setting `segments`, the files of segments are objects of a bucket, with the
//! names that they have in the directory. What the directory has of them is a cache.
//!
//! - An object is complete before a row of the catalog names it, and it is removed only
//!   after the log of the table in the bucket does not name it.
//! - The log in the bucket is a copy of the one in the directory (`log`).
//! - A read of a segment that is not in the directory fetches it and compares it with its
//!   checksums ([`fetch`]). Copies that were used least recently are removed.
//! - What is in the bucket is listed with the first pass of sealing, and after a request
//!   to remove something has failed. Objects that nothing names are removed then.
//!
//! Runs of uuids stay in the directory: each search reads them. A start sends no
//! request, unless a damaged run needs segments to be repaired.
//!
//! What belongs here: what is where. What does not: requests (`weir-objects`), and which
//! segments there are (`catalog`).

mod log;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Semaphore;
use uuid::Uuid;
use weir_model::ProjectId;
use weir_objects::{Bucket, Error as BucketError};
use weir_segments::{Error as FileError, Segment};

pub(super) use self::log::publish;

use self::log::publish_table;
use super::catalog::{SealedSegment, Segments as Catalog};
use super::files::{Files, is_segment_path, unusable};
use super::{Segments, change, lock};
use crate::disk::DiskLevel;
use crate::engine::SegmentBucket;
use crate::keyed_lock::KeyedLocks;
use crate::{Error, Result, Store};

/// The object that says which data directory the bucket, or its prefix, belongs to.
const OWNER: &str = "weir-owner";
/// The file that says the same in the directory of segments, and where the bucket is.
pub(super) const CLAIM: &str = "bucket";
/// The directory of the log of a table.
const LOG: &str = "_delta_log";
/// Objects that may be there.
const MOST: usize = 1 << 22;
/// Files that are fetched at a time.
const FETCHES: usize = 4;
/// Objects that a pass removes because nothing names them.
const TIDIED: usize = 1_000;
/// Segments from before the setting that a pass uploads.
const UPLOADS: usize = 64;

/// The bucket, and what is known of it and of the local copies.
pub(super) struct Objects {
    bucket: Bucket,
    /// Upper bound of local copies, bytes.
    cache: u64,
    known: Mutex<Known>,
    local: Mutex<Local>,
    fetching: KeyedLocks<String>,
    fetches: Semaphore,
    failures: AtomicU64,
}

#[derive(Default)]
struct Known {
    /// Whether the bucket answered last, and is the one of this data directory.
    is_ours: bool,
    /// The names of all objects; `None`: they were not listed yet.
    present: Option<BTreeSet<String>>,
    /// Whether `present` is right. Otherwise it has names of objects that do not exist, or
    /// must be removed.
    is_listed: bool,
    /// Whether all segments of the catalog are objects, as far as they exist.
    is_complete: bool,
    /// Whether objects that nothing names were removed since the list.
    is_tidy: bool,
    /// The versions of the logs in the bucket, by the directories of their tables.
    published: HashMap<String, u64>,
    /// Segments that are missing in both places and were reported.
    missing: HashSet<String>,
}

/// The segments that the directory has.
#[derive(Default)]
struct Local {
    /// By the name: bytes, and the number of the last use.
    files: HashMap<String, (u64, u64)>,
    bytes: u64,
    uses: u64,
}

impl Local {
    fn touch(&mut self, name: &str) {
        self.uses += 1;
        if let Some((_, used)) = self.files.get_mut(name) {
            *used = self.uses;
        }
    }

    fn add(&mut self, name: &str, bytes: u64) {
        self.uses += 1;
        if self.files.insert(name.to_owned(), (bytes, self.uses)).is_none() {
            self.bytes += bytes;
        }
    }

    fn remove(&mut self, name: &str) {
        if let Some((bytes, _)) = self.files.remove(name) {
            self.bytes = self.bytes.saturating_sub(bytes);
        }
    }
}

impl Objects {
    pub(super) fn new(settings: &SegmentBucket) -> Result<Self> {
        let SegmentBucket { place, access, cache } = settings;
        let bucket = Bucket::new(place, access).map_err(|error| Error::Bucket {
            place: place.to_string(),
            detail: error.to_string(),
        })?;
        Ok(Self {
            bucket,
            cache: *cache,
            known: Mutex::default(),
            local: Mutex::default(),
            fetching: KeyedLocks::default(),
            fetches: Semaphore::new(FETCHES),
            failures: AtomicU64::new(0),
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

    /// Notes a file of the directory.
    pub(super) fn has_local(&self, name: &str, bytes: u64) {
        lock(&self.local).add(name, bytes);
    }

    /// Notes that a file was read.
    pub(super) fn used(&self, name: &str) {
        lock(&self.local).touch(name);
    }

    /// Uploads a new segment, before a row names it.
    pub(super) async fn upload(&self, name: &str, path: &Path, bytes: u64) -> Result<()> {
        if let Err(error) = self.bucket.upload(name, path).await {
            lock(&self.known).is_ours = false;
            return Err(self.error(&error));
        }
        self.has_local(name, bytes);
        if let Some(present) = &mut lock(&self.known).present {
            present.insert(name.to_owned());
        }
        Ok(())
    }

    /// Removes objects that no row names any more, after the change of the table. What
    /// cannot be removed now is found by the next list.
    pub(super) async fn remove(&self, names: &[String]) {
        for name in names {
            lock(&self.local).remove(name);
        }
        for name in names.iter().filter(|name| is_segment_path(name)) {
            let table = name.split('/').next().unwrap_or_default();
            let is_published = lock(&self.known).published.contains_key(table);
            // A reader of the table may still need it, or the bucket does not answer.
            if !is_published || self.remove_object(name).await.is_err() {
                return self.list_again();
            }
        }
    }

    async fn remove_object(&self, name: &str) -> Result<(), ()> {
        match self.bucket.remove(name).await {
            Ok(()) => {
                if let Some(present) = &mut lock(&self.known).present {
                    present.remove(name);
                }
                Ok(())
            }
            Err(error) => {
                tracing::warn!(object = name, %error, "an unused object was not removed yet");
                Err(())
            }
        }
    }

    /// What is in the bucket is to be listed again.
    fn list_again(&self) {
        lock(&self.known).is_listed = false;
    }

    /// Forgets which version of the log the bucket has. Its objects are removed after the
    /// next list.
    pub(super) fn forget_table(&self, project: ProjectId) {
        let mut known = lock(&self.known);
        known.published.remove(&project.to_string());
        known.is_listed = false;
    }

    /// Forgets which version of the log the bucket has, so that both logs are compared.
    pub(super) fn forget_version(&self, project: ProjectId) {
        lock(&self.known).published.remove(&project.to_string());
    }

    /// Forgets a local copy that is damaged, if the bucket has another one.
    pub(super) fn discard(&self, segments: &Segments, name: &str, path: &Path) {
        let is_present =
            lock(&self.known).present.as_ref().is_some_and(|present| present.contains(name));
        if is_present && std::fs::remove_file(path).is_ok() {
            lock(&segments.open).remove(name);
            lock(&self.local).remove(name);
            tracing::warn!(object = name, "a damaged local copy is fetched again");
        }
    }

    /// Removes local copies that were used least recently, until they have at most
    /// [`cache`](Self::cache) bytes. One that is being read stays.
    fn evict(&self, segments: &Segments, files: &Files) {
        let mut oldest: Vec<(u64, String)> = {
            let (known, local) = (lock(&self.known), lock(&self.local));
            let Some(present) = known.present.as_ref().filter(|_| local.bytes > self.cache) else {
                return;
            };
            let names = local.files.iter().filter(|(name, _)| present.contains(*name));
            names.map(|(name, (_, used))| (*used, name.clone())).collect()
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
    fn error(&self, error: &BucketError) -> Error {
        self.refused(error.to_string())
    }

    fn refused(&self, detail: String) -> Error {
        self.failures.fetch_add(1, Ordering::Relaxed);
        Error::Bucket { place: self.bucket.place().to_string(), detail }
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
            self.bucket.upload(name, &files.path(name)).await.map_err(|e| self.error(&e))?;
            if let Some(present) = &mut lock(&self.known).present {
                present.insert(name.clone());
            }
        }
        publish_table(self, files, table, version).await?;
        let log = format!("{table}/{LOG}/");
        for name in there.difference(names).filter(|name| !name.starts_with(&log)) {
            let removed = self.remove_object(name).await;
            removed.map_err(|()| self.refused(format!("{name} cannot be removed")))?;
        }
        Ok(())
    }

    /// Whether the bucket answered last, and belongs to this data directory.
    pub(super) fn is_usable(&self) -> bool {
        lock(&self.known).is_ours
    }

    /// Makes sure that the bucket answers, and belongs to this data directory.
    async fn claim(&self, files: &Files) -> Result<()> {
        lock(&self.known).is_ours = false;
        let path = files.path(CLAIM);
        let place = self.bucket.place().to_string();
        let failed = |source| Error::File { file: path.clone(), source };
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                // Without a place until the bucket has it.
                let id = Uuid::new_v4().to_string();
                files.write(CLAIM, &id).map_err(failed)?;
                id
            }
            Err(error) => return Err(failed(error)),
        };
        let (id, before) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
        let of_bucket = |error: BucketError| self.error(&error);
        let mut owner = self.bucket.get(OWNER, 1 << 10).await.map_err(of_bucket)?;
        if owner.is_none() {
            if !before.is_empty() {
                let detail =
                    format!("it has no objects of this data directory; they are in {before}");
                return Err(self.refused(detail));
            }
            self.bucket.create(OWNER, id.into()).await.map_err(of_bucket)?;
            // Some storages ignore the condition.
            owner = self.bucket.get(OWNER, 1 << 10).await.map_err(of_bucket)?;
        }
        if owner.as_deref() != Some(id.as_bytes()) {
            return Err(self.refused("it belongs to another data directory".to_owned()));
        }
        if before != place {
            files.write(CLAIM, &format!("{id} {place}")).map_err(failed)?;
        }
        lock(&self.known).is_ours = true;
        Ok(())
    }

    async fn list(&self) -> Result<()> {
        if lock(&self.known).is_listed {
            return Ok(());
        }
        let listed = self.bucket.list(MOST).await.map_err(|error| self.error(&error))?;
        let mut known = lock(&self.known);
        known.present = Some(listed.into_iter().map(|listed| listed.name).collect());
        known.missing.clear();
        (known.is_listed, known.is_complete, known.is_tidy) = (true, false, false);
        Ok(())
    }
}

/// What the data directory says about a bucket that its segments are in.
pub(super) fn claimed(files: &Files) -> Option<String> {
    let text = std::fs::read_to_string(files.path(CLAIM)).ok()?;
    text.trim().split_once(' ').map(|(_, place)| place.to_owned())
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
            let is_present = |known: &Known| {
                known.present.as_ref().is_some_and(|present| present.contains(&segment.file))
            };
            if is_present(&lock(&objects.known)) {
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

/// Uploads a segment from before the setting.
async fn upload_old(store: &Store, segment: &SealedSegment) -> Result<()> {
    let (Some(objects), Some(files)) = (&store.segments.objects, &store.segments.files) else {
        return Ok(());
    };
    let path = files.path(&segment.file);
    // It may have been merged or removed in between.
    match path.exists() {
        true => objects.upload(&segment.file, &path, segment.bytes).await,
        false => Ok(()),
    }
}

/// Removes objects that nothing names, once after each list. Files that a merge has
/// replaced stay as long as in the directory. The caller keeps other tasks from changing
/// files, and the logs of the tables are up to date as far as `published` says.
pub(super) async fn tidy(store: &Store) -> Result<()> {
    let (Some(objects), Some(files)) = (&store.segments.objects, &store.segments.files) else {
        return Ok(());
    };
    let present = {
        let known = lock(&objects.known);
        match &known.present {
            // Unknown objects stay while others are missing.
            Some(present)
                if known.is_listed
                    && known.is_complete
                    && !known.is_tidy
                    && known.missing.is_empty() =>
            {
                present.clone()
            }
            _ => return Ok(()),
        }
    };
    let (mut named, mut projects) = (HashSet::new(), HashSet::new());
    let mut all = Catalog::all(store).await?;
    while let Some(some) = all.next(store).await? {
        projects.extend(some.iter().map(|segment| segment.project.to_string()));
        named.extend(some.into_iter().map(|segment| segment.file));
    }
    named.extend(lock(&store.segments.replaced).iter().map(|(name, _)| name.clone()));
    let (mut is_tidy, mut removed) = (true, 0);
    for name in present {
        let table = name.split('/').next().unwrap_or_default();
        let is_unused = match is_segment_path(&name) {
            true => !named.contains(&name),
            // The other files of a table are in the directory too.
            false => is_of_table(&name) && !files.path(&name).exists(),
        };
        if !is_unused {
            continue;
        }
        if removed == TIDIED {
            is_tidy = false;
            break;
        }
        let is_read =
            projects.contains(table) && !lock(&objects.known).published.contains_key(table);
        match is_read {
            true => is_tidy = false,
            false if objects.remove_object(&name).await.is_ok() => removed += 1,
            false => is_tidy = false,
        }
    }
    if removed > 0 {
        tracing::info!(objects = removed, "removed objects of the bucket that nothing names");
    }
    lock(&objects.known).is_tidy = is_tidy;
    Ok(())
}

/// Whether an object is a file of a table, but no segment.
fn is_of_table(name: &str) -> bool {
    let project = name.split_once('/').map_or("", |(project, _)| project);
    !project.is_empty() && project.bytes().all(|byte| byte.is_ascii_digit())
}

/// Uploads a new segment before its row, and makes room for it. Without a bucket it does
/// nothing.
pub(super) async fn upload(store: &Store, name: &str, path: &Path, bytes: u64) -> Result<()> {
    let (Some(objects), Some(files)) = (&store.segments.objects, &store.segments.files) else {
        return Ok(());
    };
    if !objects.is_usable() {
        objects.claim(files).await?;
    }
    objects.upload(name, path, bytes).await?;
    objects.evict(&store.segments, files);
    Ok(())
}

/// Fetches a segment into the directory, and opens it; `None`: the bucket does not have it.
pub(super) async fn fetch(
    store: &Store,
    sealed: &SealedSegment,
    sums: &[u8],
) -> Result<Option<Segment>> {
    let segments = &store.segments;
    let (Some(objects), Some(files)) = (&segments.objects, segments.files.clone()) else {
        return Ok(None);
    };
    let (name, bytes) = (&sealed.file, sealed.bytes);
    let _permits = objects.fetching.take([name.clone()]).await;
    let path = files.path(name);
    let open = |path: PathBuf| {
        let sums = sums.to_vec();
        move || Segment::open(&path, bytes, &sums)
    };
    // Another reader may have fetched it.
    match segments.blocking(path.clone(), open(path.clone())).await? {
        Err(FileError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {}
        opened => return opened.map(Some).map_err(|error| segments.error(error)),
    }
    let _slot = objects.fetches.acquire().await.map_err(|_| Error::Stopped)?;
    if store.db.disk().check() == DiskLevel::Low {
        return Err(Error::DiskLow);
    }
    let (of, at) = (files.clone(), path.clone());
    let unfinished = segments.blocking(path.clone(), move || of.unfinished(&at)).await?;
    let unfinished = unfinished.map_err(|error| segments.error(error))?;
    let place = objects.bucket.place();
    if let Err(error) = objects.bucket.download(name, bytes, &unfinished).await {
        let _ = std::fs::remove_file(&unfinished);
        return match error {
            BucketError::Missing(_) => Ok(None),
            BucketError::Length { expected, found, .. } => {
                let detail =
                    format!("{name} in {place} has {found} bytes, and was written with {expected}");
                Err(segments.damaged(path, detail))
            }
            error => Err(objects.error(&error)),
        };
    }
    let (check, open, to) = (open(unfinished.clone()), open(path.clone()), path.clone());
    let checked = segments.blocking(path.clone(), move || {
        if let Err(error) = check().and_then(|segment| segment.verify()) {
            let _ = std::fs::remove_file(&unfinished);
            return Ok(Err(error));
        }
        std::fs::rename(&unfinished, &to).map_err(|source| unusable(&to, source))?;
        open().map(Ok)
    });
    match checked.await?.map_err(|error| segments.error(error))? {
        Ok(segment) => {
            // It may be evicted from now on, and stays readable.
            objects.has_local(name, bytes);
            objects.evict(segments, &files);
            Ok(Some(segment))
        }
        Err(error) => {
            Err(segments.damaged(path, format!("{name} in {place} is damaged ({error})")))
        }
    }
}
