//! Sealed events: blocks whose data has moved from the database to files.
//!
//! Full blocks are sealed into segments, which are Parquet files of up to a million events
//! of one partition, and the entries of the index of uuids into runs, which are sorted
//! files. The blocks stay what they are: their summaries, the pointers to them and the
//! places of uuids do not change. Only the record with the data goes away, and reading a
//! block finds it in its segment. See `docs/adr/0017-segments.md`.
//!
//! Invariants: a file is complete and durable before a row of the catalog names it, and it
//! is removed only after no row names it. At every moment the data of a block is in its
//! record or in a segment of the catalog, and a stored uuid in the index or in a run that
//! is held open. One task at a time changes the files ([`Segments::changing`]).
//!
//! | module | content |
//! |---|---|
//! | `objects` | segments in a bucket, of which the directory has some |
//! | `files` | names of files, directories |
//! | `catalog` | which segments and runs there are |
//! | `read` | the events of a sealed block |
//! | `runs` | where the event of a sealed uuid is; merging runs |
//! | `repair` | finding damaged runs, and writing them again |
//! | `seal` | moving blocks into a segment |
//! | `merge` | merging segments |
//! | `retention` | removing segments |
//! | `erase` | removing the events of erased persons |
//! | `persons` | snapshots of persons for other engines |
//! | `table` | the list of segments for other engines |
//! | `start` | what a start checks |
//! | `check` | comparing everything with the catalog, for `weir check` |

mod catalog;
mod check;
mod erase;
mod files;
mod merge;
mod objects;
mod persons;
mod read;
mod repair;
mod retention;
mod runs;
mod seal;
mod start;
mod table;

use std::collections::{BTreeSet, HashSet};
use std::fs::File;
use std::future::Future;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use quick_cache::Weighter;
use quick_cache::unsync::Cache;
use tokio::sync::{Notify, OwnedMutexGuard};
use weir_model::ProjectId;
use weir_segments::{Error as FileError, Segment};

pub(super) use self::catalog::bytes;
pub use self::check::{Miscount, Unsound, check_counts, check_files};
pub(crate) use self::erase::{
    erase_blocks, erase_segment, has_files, has_replaced, segment_count, segments_to_check,
};
pub(crate) use self::files::{DIRECTORY, lock_existing};
#[cfg(test)]
pub(super) use self::merge::{Bounds as MergeBounds, merge_segments_within, remove_replaced};
pub use self::merge::{MergedSegments, merge_segments};
pub use self::objects::{
    BucketState, Copied, HeldObjects, SegmentCopies, SegmentFile, uses_bucket,
};
pub(crate) use self::persons::erase_snapshot;
pub use self::persons::{PersonSnapshots, write_persons};
pub(super) use self::read::{block, event};
pub use self::repair::{damage_found, repair_runs};
pub(super) use self::retention::purge;
pub use self::retention::{Dropped, Old, drop_older, removed};
pub(super) use self::runs::{Found, find, find_readable, forget, holds_any, unreadable};
pub use self::seal::{SealBounds, SealReport, seal_all};
pub(crate) use self::start::start;

use self::files::Files;
use self::merge::MergeProgress;
use self::objects::Objects;
use self::repair::{Checks, RunDamage};
use self::runs::HeldRun;
use self::table::Tables;
use crate::engine::SegmentBucket;
use crate::{Error, Result, Store};

/// The name of a change of files in errors.
const CHANGE: &str = "change event segments";
/// How long work waits for a backup that links files, which takes seconds at most.
const LONGEST_BACKUP: Duration = Duration::from_secs(60);
/// Time between two attempts to take the lock of the files during that time.
const TRY_AGAIN: Duration = Duration::from_millis(100);
/// Upper bound of the memory of open segments.
const OPEN_BYTES: u64 = 16 << 20;
/// Counted of an open segment at least, so that the number of open files is bounded.
const LEAST_WEIGHT: u64 = 64 << 10;
/// Open segments to expect. The cache sizes its table by it.
const OPEN: usize = 64;

#[derive(Debug, Clone)]
struct SegmentWeight;

impl Weighter<String, Segment> for SegmentWeight {
    fn weight(&self, _file: &String, segment: &Segment) -> u64 {
        LEAST_WEIGHT.max(segment.memory() as u64)
    }
}

/// Held by the only task that changes files, or rows of the catalog.
#[derive(Debug)]
pub(crate) struct Changing {
    _turn: OwnedMutexGuard<()>,
    /// `None`: the store is in memory.
    _lock: Option<File>,
}

/// The files of sealed events, as far as they are open.
pub(crate) struct Segments {
    /// `None`: the store is in memory, and nothing is sealed.
    files: Option<Files>,
    /// `None`: all segments are in the directory.
    objects: Option<Objects>,
    /// Segments that were read last, by the names of their files.
    open: Mutex<Cache<String, Segment, SegmentWeight>>,
    /// All runs, the oldest first. A run is here before an entry of the index of uuids is
    /// removed because of it.
    runs: Mutex<Arc<Vec<HeldRun>>>,
    /// Files that a merge or an erasure has replaced, and when, microseconds. They are removed
    /// later.
    replaced: Mutex<Vec<(String, i64)>>,
    /// Which logs of tables are complete.
    tables: Tables,
    /// Held by the task that changes files or rows of the catalog.
    changing: Arc<tokio::sync::Mutex<()>>,
    /// Files that a merge found damaged. Others are merged without them.
    unreadable: Mutex<HashSet<PathBuf>>,
    /// Files of runs of which damage was noticed, or not excluded. They stay here until they
    /// are found sound or replaced.
    suspects: Mutex<BTreeSet<String>>,
    /// Notified when there is another suspect.
    suspected: Notify,
    /// The progress of the pass that merges segments.
    merge_progress: Mutex<MergeProgress>,
    /// How far the check of all runs is.
    checks: Mutex<Checks>,
    /// Damaged blocks that were reported: project, partition, first arrival number.
    skipped: Mutex<HashSet<(ProjectId, u16, u64)>>,
    damage: AtomicU64,
}

impl Segments {
    /// The files of a data directory. `None`: there is none, and nothing is sealed.
    ///
    /// # Errors
    /// [`Error::Bucket`] when the settings of a bucket cannot be used.
    pub(crate) fn of(directory: Option<&Path>, bucket: Option<&SegmentBucket>) -> Result<Self> {
        Ok(Self {
            files: directory.map(Files::of),
            objects: bucket.filter(|_| directory.is_some()).map(Objects::new).transpose()?,
            open: Mutex::new(Cache::with_weighter(OPEN, OPEN_BYTES, SegmentWeight)),
            runs: Mutex::default(),
            replaced: Mutex::default(),
            tables: Tables::default(),
            changing: Arc::default(),
            unreadable: Mutex::default(),
            suspects: Mutex::default(),
            suspected: Notify::new(),
            merge_progress: Mutex::default(),
            checks: Mutex::default(),
            skipped: Mutex::default(),
            damage: AtomicU64::new(0),
        })
    }

    /// The path of the list of erasures, if there is a data directory.
    pub(crate) fn list_of_erasures(&self) -> Option<PathBuf> {
        self.files.as_ref().map(|files| files.beside(crate::erasures::FILE))
    }

    /// Bytes of the local copies of segments in a bucket.
    pub(crate) fn cached_bytes(&self) -> u64 {
        self.objects.as_ref().map_or(0, Objects::local_bytes)
    }

    /// How often a damaged file was found since the start.
    pub(crate) fn damage(&self) -> u64 {
        self.damage.load(Ordering::Relaxed)
    }

    /// How often the bucket could not be used since the start.
    pub(crate) fn bucket_failures(&self) -> u64 {
        self.objects.as_ref().map_or(0, Objects::failures)
    }

    /// The bucket, if the setting names one.
    pub(crate) fn bucket(&self) -> Option<BucketState> {
        self.objects.as_ref().map(Objects::state)
    }

    /// Waits until no other task changes files, and keeps others from it, and backups,
    /// which other processes make (`crate::checkpoint`).
    ///
    /// # Errors
    /// [`Error::File`] when the lock of the files cannot be taken.
    pub(crate) async fn changing(&self) -> Result<Changing> {
        self.changing_within(None).await
    }

    /// The same. It is an error if a backup has the lock for longer.
    async fn changing_within(&self, within: Option<Duration>) -> Result<Changing> {
        let turn = Arc::clone(&self.changing).lock_owned().await;
        let lock = match self.files.clone() {
            Some(files) => Some(self.lock_files(files, within).await?),
            None => None,
        };
        Ok(Changing { _turn: turn, _lock: lock })
    }

    async fn lock_files(&self, files: Files, within: Option<Duration>) -> Result<File> {
        if let Some(lock) = self.try_lock_files(&files).await? {
            return Ok(lock);
        }
        tracing::info!("waiting for a backup, which links files of events");
        let begun = Instant::now();
        let path = files.changes();
        let lock = match within {
            None => {
                let waiting = self.blocking(path, move || files.lock_changes());
                waiting.await?.map_err(|error| self.error(error))?
            }
            // A thread that waits for the lock could not be stopped.
            Some(within) => loop {
                if begun.elapsed() >= within {
                    let why = "a backup has not ended in time; is its process stopped?";
                    let source = std::io::Error::new(ErrorKind::TimedOut, why);
                    return Err(Error::File { file: path, source });
                }
                tokio::time::sleep(TRY_AGAIN).await;
                if let Some(lock) = self.try_lock_files(&files).await? {
                    break lock;
                }
            },
        };
        let seconds = begun.elapsed().as_secs_f64();
        tracing::info!(seconds, "the backup has linked the files of events");
        Ok(lock)
    }

    async fn try_lock_files(&self, files: &Files) -> Result<Option<File>> {
        let of = files.clone();
        let tried = self.blocking(files.changes(), move || of.try_lock_changes()).await?;
        tried.map_err(|error| self.error(error))
    }

    fn runs(&self) -> Arc<Vec<HeldRun>> {
        Arc::clone(&lock(&self.runs))
    }

    /// Notes that runs are to be checked, by their files. Returns whether this is new of one
    /// of them.
    fn suspect<'a>(&self, files: impl IntoIterator<Item = &'a str>) -> bool {
        let is_new = {
            let mut suspects = lock(&self.suspects);
            let before = suspects.len();
            suspects.extend(files.into_iter().map(str::to_owned));
            suspects.len() > before
        };
        if is_new {
            self.suspected.notify_one();
        }
        is_new
    }

    /// What becomes of a run that is damaged.
    fn damage_of(&self, number: u64) -> RunDamage {
        lock(&self.checks).damage_of(number)
    }

    /// Memory of the filters of all runs, bytes.
    pub(crate) fn memory_of_runs(&self) -> usize {
        lock(&self.runs).iter().map(|held| held.run.memory()).sum()
    }

    /// Replaces the runs that are held open.
    fn set_runs(&self, runs: Vec<HeldRun>) {
        *lock(&self.runs) = Arc::new(runs);
    }

    /// Whether a merge has found the file damaged.
    fn is_unreadable(&self, name: &str) -> bool {
        let path = self.files.as_ref().map(|files| files.path(name));
        path.is_some_and(|path| lock(&self.unreadable).contains(&path))
    }

    /// Remembers which of the files of a merge is damaged, so that it is merged no more. If
    /// it is none of them, then they do not go together. Fails with the error if it is not
    /// damage.
    fn leave_out<'a>(
        &self,
        error: Error,
        names: impl IntoIterator<Item = &'a String>,
    ) -> Result<()> {
        let (Error::Damaged { file: damaged, .. }, Some(files)) = (&error, &self.files) else {
            return Err(error);
        };
        let paths: Vec<PathBuf> = names.into_iter().map(|name| files.path(name)).collect();
        let mut unreadable = lock(&self.unreadable);
        match paths.contains(damaged) {
            true => unreadable.extend([damaged.clone()]),
            false => unreadable.extend(paths),
        }
        Ok(())
    }

    /// Forgets files that a merge or an erasure has replaced, and returns their names.
    fn take_replaced(&self, is_due: impl Fn(&str, i64) -> bool) -> Vec<String> {
        let mut replaced = lock(&self.replaced);
        let all = std::mem::take(&mut *replaced).into_iter();
        let (due, kept): (Vec<_>, Vec<_>) = all.partition(|(name, at)| is_due(name, *at));
        *replaced = kept;
        due.into_iter().map(|(name, _)| name).collect()
    }

    /// Closes segments whose files are removed.
    fn close<'a>(&self, names: impl IntoIterator<Item = &'a String>) {
        let mut open = lock(&self.open);
        for name in names {
            open.remove(name);
        }
    }

    /// The error of the store for an error with a file. Damage is logged and counted.
    fn error(&self, error: FileError) -> Error {
        let detail = error.to_string();
        match error {
            FileError::Io { file, source } => Error::File { file, source },
            FileError::Damaged { file, .. }
            | FileError::UnknownFormat { file, .. }
            | FileError::NoSuchRows { file, .. }
            | FileError::NotInOrder { file, .. }
            | FileError::Encode { file, .. } => self.damaged(file, detail),
            // Faults of a writer, and kinds that a later version of that crate adds.
            _ => self.damaged(PathBuf::new(), detail),
        }
    }

    /// The error for a damaged file, which is logged and counted.
    fn damaged(&self, file: PathBuf, detail: String) -> Error {
        self.damage.fetch_add(1, Ordering::Relaxed);
        tracing::error!(file = %file.display(), detail, "a file of stored events is damaged");
        Error::Damaged { file, detail }
    }

    /// Runs work on a file where it may block. A panic in it counts as damage of the file.
    async fn blocking<T: Send + 'static>(
        &self,
        file: PathBuf,
        work: impl FnOnce() -> Result<T, FileError> + Send + 'static,
    ) -> Result<Result<T, FileError>> {
        match tokio::task::spawn_blocking(work).await {
            Ok(done) => Ok(done),
            Err(join) if join.is_panic() => {
                let detail = format!("{}: {join}", file.display());
                Err(self.damaged(file, detail))
            }
            Err(_) => Err(Error::Stopped),
        }
    }
}

/// Changes files and rows of the catalog while no other task does. The work continues if
/// the caller is dropped: what is in memory must follow what is committed.
async fn change<T: Send + 'static, F: Future<Output = Result<T>> + Send + 'static>(
    store: &Store,
    work: impl FnOnce(Store) -> F,
) -> Result<T> {
    change_within(store, None, work).await
}

/// The same. It is an error if a backup has the lock for longer.
async fn change_within<T: Send + 'static, F: Future<Output = Result<T>> + Send + 'static>(
    store: &Store,
    within: Option<Duration>,
    work: impl FnOnce(Store) -> F,
) -> Result<T> {
    let changing = store.segments.changing_within(within).await?;
    let work = work(store.clone());
    let task = tokio::spawn(async move {
        let done = work.await;
        drop(changing);
        done
    });
    match task.await {
        Ok(done) => done,
        // It has left the catalog as it was.
        Err(join) if join.is_panic() => {
            Err(Error::Shape { statement: CHANGE, detail: join.to_string() })
        }
        // The runtime shuts down.
        Err(_) => Err(Error::Stopped),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::{Location, Settings};

    /// Longer than a change takes that does not wait.
    const AWHILE: Duration = Duration::from_millis(300);

    #[tokio::test]
    async fn a_panic_in_a_change_is_an_error_and_no_stop() {
        let store = Store::open(&Location::Memory, Settings::default()).await.unwrap();
        let failed = change(&store, |_| async {
            assert!(std::env::args().count() == 0, "a defect");
            Ok(())
        });
        let failed = failed.await.unwrap_err();
        let Error::Shape { detail, .. } = &failed else { panic!("{failed:?}") };
        assert!(detail.contains("a defect"), "{detail}");
        // The next change need not wait for it.
        assert_eq!(change(&store, |_| async { Ok(7) }).await.unwrap(), 7);
    }

    /// A backup in another process has the lock of the files.
    #[tokio::test]
    async fn a_change_waits_for_a_backup() {
        let directory = tempfile::tempdir().unwrap();
        let location = Location::Directory(directory.path().to_owned());
        let store = Store::open(&location, Settings::default()).await.unwrap();
        let lock = lock_existing(directory.path()).unwrap().unwrap();
        // A start and a repair do not wait for ever.
        let briefly = Some(Duration::from_millis(1));
        let refused = store.segments.changing_within(briefly).await.unwrap_err();
        let Error::File { source, .. } = &refused else { panic!("{refused:?}") };
        assert_eq!(source.kind(), ErrorKind::TimedOut);
        let has_changed = Arc::new(AtomicBool::new(false));
        let (changing, changed) = (store.clone(), Arc::clone(&has_changed));
        let work = |_: Store| async move {
            changed.store(true, Ordering::Release);
            Ok(7)
        };
        let mut change = tokio::spawn(async move { change(&changing, work).await });
        let waited = tokio::time::timeout(AWHILE, &mut change).await;
        assert!(waited.is_err() && !has_changed.load(Ordering::Acquire));
        drop(lock);
        assert_eq!(change.await.unwrap().unwrap(), 7);
        assert!(has_changed.load(Ordering::Acquire));
    }

    #[tokio::test]
    async fn a_backup_waits_for_a_change() {
        let directory = tempfile::tempdir().unwrap();
        let location = Location::Directory(directory.path().to_owned());
        let store = Store::open(&location, Settings::default()).await.unwrap();
        let changing = store.segments.changing().await.unwrap();
        let of = directory.path().to_owned();
        let mut backup = tokio::task::spawn_blocking(move || lock_existing(&of).unwrap());
        assert!(tokio::time::timeout(AWHILE, &mut backup).await.is_err());
        drop(changing);
        assert!(backup.await.unwrap().is_some());
    }
}
