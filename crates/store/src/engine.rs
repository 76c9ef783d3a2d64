//! Opening and closing the engine (DUR-9).
//!
//! Only this module and `calls`, which is for measurements, use SurrealDB's unstable
//! construction path. Only a datastore that we build takes explicit cache and buffer sizes
//! (the defaults grow with the machine's memory) and reports the result of closing it.

use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use surrealdb::Surreal;
use surrealdb::engine::local::Db as Local;
use surrealdb_cnf::ConfigMap;
use surrealdb_core::kvs::Datastore;
use surrealdb_rpc::capabilities::{Capabilities, Targets};
use tokio::sync::{Semaphore, broadcast};
use uuid::Uuid;
use weir_model::UserId;
use weir_objects::{Access, BucketLocation};
use weir_store_postgres::Settings as DatabaseSettings;

use crate::calls::Calls;
use crate::counts::{self, MembersRead, Rankings};
use crate::db::Db;
use crate::disk::{self, DiskLevel, DiskMarks, DiskState};
use crate::erasures::{self, Active};
use crate::error::Error;
use crate::events::{self, BucketState, Segments, SharedBlocks};
use crate::keyed_lock::KeyedLocks;
use crate::people::PeopleMaps;
use crate::plugin_runtime::changes::ChangeNotifier;
use crate::traffic::TrafficCounters;
use crate::{in_memory, migrations, postgres};

const MIB: u64 = 1 << 20;
/// Bytes of a block of the storage before compression.
const BLOCK_SIZE: u64 = 16 << 10;
/// Storage calls that may run on the threads of the runtime at the same time. Above this
/// number the engine hands each call to another thread, which costs several times as much
/// as a read from the cache. The program has more threads than processors, so that a read
/// from disk does not block everything.
const INLINE: usize = 64;
/// The number of notifications of deactivated users that a receiver may be behind.
const DEACTIVATED: usize = 64;
/// Concurrent reads of records that may be large. The engine holds about three copies of
/// the data that such a statement reads.
const LARGE_READS: usize = 2;
/// Concurrent reads of pages of events by arrival.
const ARRIVAL_READS: usize = 2;
/// Bytes of decoded blocks that all pages of events together may keep for their next
/// steps.
pub(crate) const KEPT_BLOCKS: usize = 32 << 20;

/// The directory of the engine in the data directory.
pub(crate) const STORE: &str = "store";
/// Names of the namespace and the database that hold all tables.
pub(crate) const NAMESPACE: &str = "weir";
pub(crate) const DATABASE: &str = "weir";

/// The engine's own limit for the time of a query.
pub(crate) const QUERY_TIMEOUT: Duration = Duration::from_secs(60);

/// Where the data is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// RocksDB in this data directory.
    Directory(PathBuf),
    /// In a PostgreSQL database. The log, the files of events and what else belongs to this
    /// machine are in a data directory.
    Database {
        /// The data directory.
        directory: PathBuf,
        /// The database.
        database: DatabaseSettings,
    },
    /// In memory, for tests. Nothing survives.
    Memory,
}

impl Location {
    fn directory(&self) -> Option<&Path> {
        match self {
            Self::Directory(directory) | Self::Database { directory, .. } => Some(directory),
            Self::Memory => None,
        }
    }
}

/// Memory sizes and disk thresholds of the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Bytes of RocksDB's block cache.
    pub block_cache: u64,
    /// Bytes of one write buffer.
    pub write_buffer: u64,
    /// The largest number of write buffers.
    pub write_buffers: u32,
    /// Thresholds of free disk space at which the service warns and stops writing.
    pub disk: DiskMarks,
    /// The bucket of event segments; `None`: they are in the data directory alone.
    pub segments: Option<SegmentBucket>,
    /// Counts the calls of the engine, for measurements. `None`: nothing is between the engine
    /// and its storage.
    pub calls: Option<Calls>,
}

/// A bucket of event segments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentBucket {
    /// The bucket and the prefix of the names.
    pub location: BucketLocation,
    /// How it is reached.
    pub access: Access,
    /// Upper bound of the copies in the data directory, bytes.
    pub cache: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            // The engine takes the room of its write buffers from the block cache, and keeps
            // written ones to find conflicts in (docs/benchmarks.md, "What RocksDB is set to"). A
            // cache of their size would hold no block.
            block_cache: 96 * MIB,
            write_buffer: 16 * MIB,
            write_buffers: 3,
            disk: DiskMarks::default(),
            segments: None,
            calls: None,
        }
    }
}

/// The open store. Clones share one engine.
#[derive(Clone)]
pub struct Store {
    pub(crate) db: Db,
    pub(crate) locks: KeyedLocks<Uuid>,
    pub(crate) row_locks: KeyedLocks<String>,
    pub(crate) plugin_changes: ChangeNotifier,
    pub(crate) deactivated: broadcast::Sender<UserId>,
    pub(crate) large_reads: Arc<Semaphore>,
    pub(crate) arrival_reads: Arc<Semaphore>,
    pub(crate) kept_blocks: Arc<Semaphore>,
    pub(crate) blocks: Arc<SharedBlocks>,
    pub(crate) erasures: Arc<Active>,
    pub(crate) segments: Arc<Segments>,
    pub(crate) rankings: Rankings,
    pub(crate) members: MembersRead,
    pub(crate) people: Arc<PeopleMaps>,
    traffic: Arc<TrafficCounters>,
    _lock: Arc<Option<File>>,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").finish_non_exhaustive()
    }
}

impl Store {
    /// Opens the store, brings the schema up to date and checks that the store is usable.
    ///
    /// # Errors
    /// [`Error::InUse`] when another process has the directory, [`Error::NewerSchema`]
    /// when a newer program wrote it (nothing is changed), [`Error::File`] when the
    /// directory of segments cannot be read, [`Error::Directory`] or [`Error::Open`]
    /// otherwise.
    pub async fn open(location: &Location, settings: Settings) -> Result<Self, Error> {
        let directory = location.directory().map(Path::to_owned);
        let lock = directory.as_deref().map(lock_directory).transpose()?;
        if let Some(directory) = &directory {
            remove_archived_logs(&directory.join(STORE));
        }
        let segments = Segments::of(directory.as_deref(), settings.segments.as_ref())?;
        let db = open_engine(location, &settings).await?;
        migrations::run(&db).await?;
        if *location == Location::Memory {
            in_memory::keep(db.datastore()).await.map_err(|e| Error::Open {
                location: "memory".to_owned(),
                detail: format!("{e:#}"),
            })?;
        }
        if let Some(directory) = &directory {
            refuse_deleted_files(directory)?;
            if let Err(error) = disk::keep_ballast(directory, settings.disk) {
                tracing::warn!(%error, "the ballast file could not be written");
            }
        }
        let plugin_changes = ChangeNotifier::default();
        let store = Self {
            db,
            locks: KeyedLocks::default(),
            row_locks: KeyedLocks::default(),
            plugin_changes,
            deactivated: broadcast::channel(DEACTIVATED).0,
            large_reads: Arc::new(Semaphore::new(LARGE_READS)),
            arrival_reads: Arc::new(Semaphore::new(ARRIVAL_READS)),
            kept_blocks: Arc::new(Semaphore::new(KEPT_BLOCKS)),
            blocks: Arc::default(),
            erasures: Arc::default(),
            segments: Arc::new(segments),
            rankings: counts::no_rankings(),
            members: counts::no_members(),
            people: Arc::default(),
            traffic: Arc::default(),
            _lock: Arc::new(lock),
        };
        // Before the first event is read.
        erasures::start(&store).await?;
        events::start_segments(&store).await?;
        Ok(store)
    }

    /// Returns when the engine has failed. The process should end then.
    pub async fn failed(&self) {
        self.db.failed().await;
    }

    /// Measures free disk space. To be called every second.
    pub fn check_disk(&self) -> DiskLevel {
        self.db.disk().check()
    }

    /// The state of the disk guard, shared with other writers to the same disk.
    pub fn disk(&self) -> Arc<DiskState> {
        Arc::clone(self.db.disk())
    }

    /// The traffic counts that are not written yet.
    pub fn traffic(&self) -> &Arc<TrafficCounters> {
        &self.traffic
    }

    /// How often a file of sealed events, or of their uuids, was found damaged since the
    /// store was opened.
    pub fn segment_damage(&self) -> u64 {
        self.segments.damage()
    }

    /// Memory of the filters and indexes for the uuids of sealed events, bytes.
    pub fn segment_filter_bytes(&self) -> usize {
        self.segments.memory_of_runs()
    }

    /// Bytes of the local copies of event segments, if these are in a bucket.
    pub fn segment_cache_bytes(&self) -> u64 {
        self.segments.cached_bytes()
    }

    /// How often the bucket of event segments could not be used since the store was opened.
    pub fn segment_bucket_failures(&self) -> u64 {
        self.segments.bucket_failures()
    }

    /// The bucket of event segments, if the setting names one.
    pub fn segment_bucket(&self) -> Option<BucketState> {
        self.segments.bucket()
    }

    /// Flushes and closes the engine. Statements fail afterwards.
    ///
    /// # Errors
    /// When the engine could not flush. Acknowledged events are still safe in the
    /// write-ahead log.
    pub async fn close(&self) -> Result<(), Error> {
        self.db.close().await
    }

    /// Closes the engine when the process is about to end. When the last handle is
    /// dropped, the engine's task shuts it down a second time and logs errors about that.
    /// So this function leaks one handle.
    ///
    /// # Errors
    /// As [`Store::close`].
    pub async fn close_at_end(self) -> Result<(), Error> {
        let closed = self.close().await;
        std::mem::forget(self);
        closed
    }
}

/// Opens the engine, and leaves the schema as it is.
async fn open_engine(location: &Location, settings: &Settings) -> Result<Db, Error> {
    let directory = location.directory();
    let path = match location {
        Location::Directory(directory) => {
            postgres::refuse_database(directory)?;
            format!("rocksdb://{}?sync=every", directory.join(STORE).display())
        }
        Location::Database { database, .. } => database.address.to_string(),
        Location::Memory => "memory".to_owned(),
    };
    let failed = |detail: String| Error::Open { location: path.clone(), detail };
    let guard = Arc::new(DiskState::new(directory.map(Path::to_owned), settings.disk));
    let builder = Datastore::builder()
        .with_config(engine_settings(settings))
        .with_runtime_worker_threads(INLINE)
        .with_capabilities(capabilities())
        .with_query_timeout(Some(QUERY_TIMEOUT))
        .without_maintenance_tasks();
    let datastore = match location {
        Location::Directory(_) | Location::Memory => match &settings.calls {
            None => builder.build_with_path(&path).await,
            Some(calls) => builder.build_with_factory_path(&path, calls.clone()).await,
        },
        Location::Database { directory, database } => {
            let storage = postgres::open(directory, database).await?;
            builder.build_with_factory_path(&path, storage).await
        }
    };
    let datastore = datastore.map_err(|e| failed(format!("{e:#}")))?;
    if *location == Location::Memory {
        in_memory::fill(&datastore).await.map_err(|e| failed(format!("{e:#}")))?;
    }
    datastore.check_version().await.map_err(|e| failed(format!("{e:#}")))?;
    datastore.bootstrap().await.map_err(|e| failed(format!("{e:#}")))?;
    datastore.start_maintenance_tasks();
    let handle = Surreal::<Local>::unstable_from_datastore(Arc::clone(&datastore), None)
        .await
        .map_err(|e| failed(e.message().to_owned()))?;
    handle.use_ns(NAMESPACE).use_db(DATABASE).await.map_err(|e| failed(e.message().to_owned()))?;
    Ok(Db::new(handle, datastore, guard))
}

/// The engine of a data directory, opened to read from it what may have an older schema.
pub(crate) struct BareEngine {
    pub(crate) db: Db,
    _lock: File,
}

impl BareEngine {
    /// Opens the engine of a data directory that no other process uses. The schema stays as
    /// it is.
    pub(crate) async fn open(data: &Path) -> Result<Self, Error> {
        let lock = lock_directory(data)?;
        let location = Location::Directory(data.to_owned());
        let db = open_engine(&location, &Settings::default()).await?;
        Ok(Self { db, _lock: lock })
    }

    /// As [`Store::close_at_end`].
    pub(crate) async fn close_at_end(self) -> Result<(), Error> {
        let closed = self.db.close().await;
        std::mem::forget(self);
        closed
    }
}

/// The capabilities of statements: built-in functions, nothing outside the engine.
fn capabilities() -> Capabilities {
    Capabilities::all()
        .with_scripting(false)
        .with_guest_access(false)
        .with_live_query_notifications(false)
        .with_network_targets(Targets::None)
}

fn engine_settings(settings: &Settings) -> ConfigMap {
    ConfigMap::empty()
        // Records of a list of ids are read one after another. They share a transaction
        // whose reads cannot overlap, so the engine's work to parallelize them is wasted.
        .with_key_value("fan_out_row_threshold", "1000000")
        .with_key_value("rocksdb_block_cache_size", settings.block_cache.to_string())
        .with_key_value("rocksdb_write_buffer_size", settings.write_buffer.to_string())
        .with_key_value("rocksdb_max_write_buffer_number", settings.write_buffers.to_string())
        // A read of one record decompresses a block.
        .with_key_value("rocksdb_block_size", BLOCK_SIZE.to_string())
        // The engine's own values, 2, 8 and 12, favour scans. Most keys are random, so each
        // compaction writes all of the next level, and twice the files halve how often.
        .with_key_value("rocksdb_file_compaction_trigger", "4")
        .with_key_value("rocksdb_level0_slowdown_writes_trigger", "20")
        .with_key_value("rocksdb_level0_stop_writes_trigger", "36")
        // The bookkeeping of blob files has a known fault in this RocksDB line
        // (facebook/rocksdb#14897).
        .with_key_value("rocksdb_enable_blob_files", "false")
        // A write-ahead log is deleted as soon as its records are in tables. The default keeps
        // some of them, with erased data, in a directory `archive`.
        .with_key_value("rocksdb_wal_size_limit", "0")
        .with_key_value("rocksdb_jobs_count", "2")
        .with_key_value("rocksdb_keep_log_file_num", "2")
        .with_key_value("rocksdb_max_open_files", "256")
}

/// Removes the write-ahead logs that an older version has kept after their records were in
/// tables. The engine does not read them.
fn remove_archived_logs(engine: &Path) {
    let Ok(entries) = std::fs::read_dir(engine.join("archive")) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.extension().is_some_and(|extension| extension == "log")
            && let Err(error) = std::fs::remove_file(&path)
        {
            tracing::warn!(file = %path.display(), %error, "an old log of the database stays");
        }
    }
}

/// Creates the directory (accessible to the owner only) and takes its lock.
pub(crate) fn lock_directory(directory: &Path) -> Result<File, Error> {
    let unusable = |source| Error::Directory { path: directory.to_owned(), source };
    create_private(directory).map_err(unusable)?;
    let path = directory.join("LOCK");
    let file = File::options()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .open(&path)
        .map_err(unusable)?;
    flock(&file, FlockOperation::NonBlockingLockExclusive)
        .map_err(|_| Error::InUse { path: directory.to_owned(), lock: path })?;
    Ok(file)
}

pub(crate) fn create_private(directory: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

/// A process that holds deleted files open would acknowledge events that are then lost
/// (DUR-14).
fn refuse_deleted_files(directory: &Path) -> Result<(), Error> {
    for file in open_files(directory) {
        if file.to_string_lossy().ends_with(" (deleted)") {
            return Err(Error::Open {
                location: directory.display().to_string(),
                detail: format!("the engine holds a deleted file: {}", file.display()),
            });
        }
    }
    Ok(())
}

/// The files below a directory that this process has open. The names of deleted ones end
/// with ` (deleted)`.
pub(crate) fn open_files(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else { return Vec::new() };
    let root = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
    let targets = entries.flatten().filter_map(|entry| std::fs::read_link(entry.path()).ok());
    targets.filter(|target| target.starts_with(&root)).collect()
}

#[cfg(test)]
mod tests {
    use super::{Location, STORE, Settings, Store, refuse_deleted_files};

    #[tokio::test]
    async fn the_storage_has_the_settings_that_storing_needs() {
        let directory = tempfile::tempdir().unwrap();
        let location = Location::Directory(directory.path().to_owned());
        let store = Store::open(&location, Settings::default()).await.unwrap();
        store.close_at_end().await.unwrap();
        let files = std::fs::read_dir(directory.path().join(STORE)).unwrap().flatten();
        let is_options = |path: &std::path::PathBuf| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("OPTIONS-"))
        };
        let newest = files.map(|file| file.path()).filter(is_options).max().unwrap();
        let options = std::fs::read_to_string(newest).unwrap();
        for expected in [
            "block_size=16384",
            "level0_file_num_compaction_trigger=4",
            // A default that `scripts/rocksdb` changes.
            "memtable_whole_key_filtering=true",
        ] {
            assert!(options.contains(expected), "{expected} is missing in {options}");
        }
    }

    #[test]
    fn a_deleted_file_of_the_data_directory_refuses_the_start() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("held");
        let held = std::fs::File::create(&path).unwrap();
        assert!(refuse_deleted_files(directory.path()).is_ok());
        std::fs::remove_file(&path).unwrap();
        let refused = refuse_deleted_files(directory.path()).unwrap_err().to_string();
        assert!(refused.contains("holds a deleted file"), "{refused}");
        // Files that other directories lost are of no concern, and neither are closed ones.
        assert!(refuse_deleted_files(tempfile::tempdir().unwrap().path()).is_ok());
        drop(held);
        assert!(refuse_deleted_files(directory.path()).is_ok());
    }
}
