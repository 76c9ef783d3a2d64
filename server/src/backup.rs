//! `weir backup`, `weir restore` and `weir check`, and backups that the server makes itself.
//!
//! A backup is made from the files of the data directory, by the command or by the server.
//! The command needs no connection to the server, which may run.
//! The order makes it consistent (DUR-16, `docs/adr/0023-backup.md`): the segments of the
//! ingest log are linked, then the store, then newer segments of the log. So the log has
//! every event that the store does not have yet, and the positions in the store say which
//! these are.
//!
//! What belongs here: the commands, their order and their outcome. What does not: when the
//! server makes a backup (`schedule`), the files of the store (`weir_store::checkpoint`) and
//! of the log (`weir_ingest::log`), storing and restoring them (`weir_backup`).

mod bucket;
pub mod check;
mod last;
mod lease;
mod place;
pub mod schedule;
mod segments;

use std::collections::HashSet;
use std::io::ErrorKind;
use std::num::NonZeroUsize;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use uuid::Uuid;
use weir_backup::{
    About, Damage, Entry, Fetch, Found, Limits, Manifest, Partial, Repository, Restored, Staging,
    Stored,
};
use weir_ingest::log::{self, LogError};
use weir_model::Timestamp;
use weir_service::sealing::{KeyError, KeySource};
use weir_store::events::HeldObjects;
use weir_store::{CheckpointError, SegmentBucket, checkpoint, erasures, schema_version};

use crate::config::{Config, StoreKind};
use crate::log_tools::has_store;
use crate::logs::with_causes;
use crate::master_key;
use crate::serve::StopSignals;
use place::{Opened, Place};
use schedule::Schedule;
use segments::BucketSegments;

pub use last::LastBackup;

/// The directory in the data directory for the links of a backup while it is stored.
const STAGING: &str = ".weir-backup";
/// A file in the data directory that each server with a store writes.
const CURRENT: &str = "store/CURRENT";
/// The ingest log, in the data directory and in a backup.
const LOG: &str = "log";
/// Attempts, if the log removes segments in the moment between linking them. It does so
/// only while the disk is low.
const ATTEMPTS: u32 = 10;

/// Why a command on backups failed.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// A store in memory has no files.
    #[error("a store in memory has no files")]
    InMemory,
    /// The files of a database are the ones of its server.
    #[error(
        "the store is in a PostgreSQL database: back up and restore the database with its own \
         tools, and the directories `log` and `segments` of the data directory with it"
    )]
    InDatabase,
    /// The data directory has no store.
    #[error("there is no store in the data directory `{0}`")]
    NoStore(PathBuf),
    /// Files of events are in a bucket that the settings do not name.
    #[error(
        "files of events are in a bucket: give this command the settings of the server \
         (segments and others)"
    )]
    InBucket,
    /// Objects of the bucket of files of events cannot be kept from being removed.
    #[error("the lock of the objects with files of events cannot be taken")]
    Held(#[source] std::io::Error),
    /// The files of events that are in a bucket cannot be listed.
    #[error("the files of events that are in a bucket cannot be listed")]
    Segments(#[source] weir_store::Error),
    /// The target is neither a directory of this machine nor a bucket.
    #[error("`{0}` is neither a directory nor a place such as s3://bucket/prefix")]
    Remote(PathBuf),
    /// The settings of the bucket of backups cannot be used.
    #[error("the settings of the bucket of backups (backup_endpoint and others): {0}")]
    Access(&'static str),
    /// The files of the store belong to another user.
    #[error(
        "the store in the data directory `{0}` belongs to another user; run the command as \
         that user"
    )]
    NotOwner(PathBuf),
    /// The directory of backups would be in the data directory.
    #[error("`{0}` is in the data directory: choose a directory outside it")]
    Inside(PathBuf),
    /// The directory of the schedule had backups, and has none any more.
    #[error(
        "`{0}` had backups and has none now: its disk may not be mounted; to begin again there, \
         run `weir backup` with this directory once"
    )]
    Vanished(PathBuf),
    /// The backup was made by a newer program.
    #[error(
        "the backup has schema version {found}, this program knows versions up to {known}; \
         restore it with the newer program"
    )]
    NewerSchema {
        /// Schema version of the program that made the backup.
        found: i64,
        /// Newest schema version that this program knows.
        known: i64,
    },
    /// The log removed segments during every attempt.
    #[error("the ingest log removes segments faster than they are linked; free disk space first")]
    LogMoves,
    /// The list of erasures cannot be copied.
    #[error("the list of erased persons cannot be copied")]
    Erasures(#[source] std::io::Error),
    /// The process cannot receive signals.
    #[error("the process cannot be set up")]
    Signals(#[source] std::io::Error),
    /// The master key cannot be found.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The files of the store cannot be linked.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The log cannot be read or linked.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The backup cannot be stored, read or restored.
    #[error(transparent)]
    Backup(#[from] weir_backup::Error),
    /// The process is ending.
    #[error("the process is ending")]
    Interrupted,
}

/// A backup to make.
#[derive(Debug)]
struct Order {
    /// The directory of backups, or the address of a bucket.
    directory: PathBuf,
    /// When it begins.
    began_at: Timestamp,
    /// How many backups stay there; `None`: all of them.
    keep: Option<NonZeroUsize>,
}

/// A backup that was made.
#[derive(Debug)]
struct Made {
    /// What was stored.
    stored: Stored,
    /// The names of the old backups that were removed.
    removed: Vec<String>,
    /// What is noted of it in the data directory.
    last: LastBackup,
}

/// Stores a backup in a directory or a bucket, and returns the lines to print.
///
/// # Errors
/// [`BackupError`] with the reason. Earlier backups stay as they are.
pub async fn back_up(
    config: &Config,
    directory: PathBuf,
    now: Timestamp,
) -> Result<String, BackupError> {
    refuse_backup(config, &directory)?;
    let key = about_key(master_key::source(config)?.as_ref());
    let is_stopped = stop_flag().map_err(BackupError::Signals)?;
    let order = Order { directory, began_at: now, keep: None };
    let Made { stored, .. } = make(config, order, is_stopped).await?;
    Ok(outcome(&stored, &key))
}

/// Refuses a backup that would not be complete, or would be in the wrong place. Returns where
/// it is stored.
fn refuse_backup(config: &Config, directory: &Path) -> Result<Place, BackupError> {
    refuse(config)?;
    if !has_store(config) {
        return Err(BackupError::NoStore(config.data.clone()));
    }
    refuse_other_user(&config.data)?;
    segments::bucket(config)?;
    match Place::of(config, directory)? {
        Place::Directory(directory) if is_inside(&directory, &config.data) => {
            Err(BackupError::Inside(directory))
        }
        place => Ok(place),
    }
}

/// Makes a backup, and notes it as the last one. Only one is made at a time: another command
/// or the server may be making one.
async fn make(
    config: &Config,
    order: Order,
    is_stopped: Arc<AtomicBool>,
) -> Result<Made, BackupError> {
    let begun = Instant::now();
    let Order { directory, began_at, keep } = order;
    let (place, known_as) = (Place::of(config, &directory)?, place::known_as(&directory));
    // With a schedule, another place says nothing about its age.
    let is_noted = Schedule::of(config).is_none_or(|schedule| schedule.directory == known_as);
    let data = config.data.clone();
    let begin = blocking(move || {
        let staging = Staging::create(&data.join(STAGING))?;
        let id = weir_backup::instance_id(&data, || Uuid::new_v4().to_string())?;
        Ok((staging, id))
    });
    let (staging, id) = begin.await?;
    // Before anything is linked, so that a wrong place is noticed first.
    let opened = place.create(config, id, began_at).await?;
    let linked = link_with_bucket(config, staging.path(), &is_stopped).await;
    let about = About {
        schema: schema_version(),
        program: env!("CARGO_PKG_VERSION").to_owned(),
        created_at: began_at.micros(),
    };
    let least_free = config.disk_marks().high;
    let data = config.data.clone();
    let made = blocking(move || {
        let Opened { repository, mirror } = opened;
        let stored = linked.and_then(|Linked { held, mut in_bucket }| {
            let stored = last_segment(staging.path()).and_then(|partial| {
                let limits = Limits { is_stopped: &is_stopped, least_free };
                let fetch = in_bucket.as_mut().map(|segments| segments as &mut dyn Fetch);
                let (snapshot, partial) = (staging.path(), partial.as_ref());
                Ok(repository.store_fetching(snapshot, partial, about, limits, fetch)?)
            });
            drop(held);
            if let Some(segments) = in_bucket {
                segments.close();
            }
            stored
        });
        let made = stored.map(|stored| {
            let took_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
            let removed = keep.map(|keep| remove_old(&repository, keep, &stored));
            let last = LastBackup {
                directory: known_as,
                name: stored.name.clone(),
                began_at,
                took_ms,
                bytes: stored.bytes,
                new_bytes: stored.new_bytes,
            };
            // While no other backup can be noted.
            if is_noted && let Err(error) = last::write(&data, &last) {
                tracing::warn!(%error, "the time of this backup is not noted");
            }
            Made { stored, removed: removed.unwrap_or_default(), last }
        });
        let closed = repository.close();
        drop(mirror);
        let unlinked = staging.remove();
        if let Err(error) = closed {
            let error = with_causes(&error);
            tracing::warn!(error, "the bucket is not released; it will be after some minutes");
        }
        let made = made?;
        // The backup exists, whatever happens to its links.
        if let Err(error) = unlinked {
            let error = with_causes(&error);
            tracing::warn!(error, "the links are not removed; a server that runs removes them");
        }
        if let Some(error) = &made.stored.unremoved {
            let error = with_causes(error);
            tracing::warn!(error, "unused content stays; the next backup removes it");
        }
        Ok(made)
    });
    made.await
}

/// Removes the backups beyond those that stay, and returns their names. The backup that was
/// just stored exists, whatever happens to them.
fn remove_old(repository: &Repository, keep: NonZeroUsize, stored: &Stored) -> Vec<String> {
    repository.remove_old(keep, &stored.name).unwrap_or_else(|error| {
        let error = with_causes(&error);
        tracing::warn!(error, "not all old backups were removed; the next backup removes them");
        Vec::new()
    })
}

/// A flag that is set when the process is asked to end, so that a command can remove its
/// links first.
pub(crate) fn stop_flag() -> std::io::Result<Arc<AtomicBool>> {
    let mut signals = StopSignals::new()?;
    let flag = Arc::new(AtomicBool::new(false));
    let of = Arc::clone(&flag);
    tokio::spawn(async move {
        signals.stop().await;
        tracing::info!("stopping: the links are removed first");
        of.store(true, Ordering::Release);
    });
    Ok(flag)
}

/// Removes the links that a killed command has left in the data directory: they keep files
/// on the disk that the service has removed.
pub async fn remove_abandoned(config: &Config) {
    if config.store != StoreKind::RocksDb {
        return;
    }
    let links = [STAGING, check::STAGING, segments::STAGING];
    for name in links.into_iter().chain(place::MIRRORS) {
        let at = config.data.join(name);
        // It fails only when the process ends.
        let _ = blocking(move || {
            remove_links(&at, name);
            Ok(())
        })
        .await;
    }
}

fn remove_links(at: &Path, name: &str) {
    match Staging::remove_abandoned(at) {
        Ok(true) => tracing::info!(name, "removed the links of an interrupted command"),
        Ok(false) => {}
        Err(error) => tracing::warn!(name, %error, "links were not removed yet"),
    }
}

/// What was linked for a backup, and what else it needs.
struct Linked {
    /// Objects of the bucket stay as long as this does.
    held: Option<HeldObjects>,
    /// `None`: all files of events are linked.
    in_bucket: Option<BucketSegments>,
}

/// Links everything that a backup needs and the data directory has.
async fn link_with_bucket(
    config: &Config,
    staging: &Path,
    is_stopped: &Arc<AtomicBool>,
) -> Result<Linked, BackupError> {
    // The catalog in the links may name an object that is not needed any more afterwards.
    let held = segments::hold(config).await?;
    take(&config.data, staging, is_stopped).await?;
    let in_bucket = BucketSegments::open(config, staging, Arc::clone(is_stopped)).await?;
    Ok(Linked { held, in_bucket })
}

/// Links the files of a data directory.
async fn take(data: &Path, staging: &Path, is_stopped: &AtomicBool) -> Result<(), BackupError> {
    for _ in 0..ATTEMPTS {
        let newest = link_log(data, staging).await?;
        let attempts = checkpoint(data, staging, is_stopped).await?;
        tracing::debug!(attempts, "the store is linked");
        copy_erasures(data, staging).await?;
        link_log(data, staging).await?;
        // The log removes its oldest segments first. So if this one is there, none was
        // removed that was written in between.
        if newest.is_none_or(|newest| newest.exists()) {
            return Ok(());
        }
    }
    Err(BackupError::LogMoves)
}

/// Copies the list of erasures, which is written to while the server runs. It has all
/// erasures that the store has.
async fn copy_erasures(data: &Path, staging: &Path) -> Result<(), BackupError> {
    let (from, to) = (data.join(erasures::FILE), staging.join(erasures::FILE));
    blocking(move || match std::fs::copy(&from, &to) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        copied => copied.map(|_| ()).map_err(BackupError::Erasures),
    })
    .await
}

async fn link_log(data: &Path, staging: &Path) -> Result<Option<PathBuf>, BackupError> {
    let (from, to) = (data.join(LOG), staging.join(LOG));
    blocking(move || Ok(log::link(&from, &to)?)).await
}

/// Links the store and the files of events of a data directory, for a command that opens
/// them. A server may run. The data itself is never changed.
///
/// # Errors
/// [`BackupError`] with the reason. The links are removed then.
pub(crate) async fn link_store(
    data: &Path,
    is_stopped: &AtomicBool,
) -> Result<Staging, BackupError> {
    refuse_other_user(data)?;
    let at = data.join(check::STAGING);
    let staging = blocking(move || Ok(Staging::create(&at)?)).await?;
    checkpoint(data, staging.path(), is_stopped).await?;
    Ok(staging)
}

/// Removes the links of [`link_store`].
///
/// # Errors
/// When they cannot be removed. A server that runs removes them later.
pub(crate) async fn unlink_store(staging: Staging) -> Result<(), BackupError> {
    blocking(move || Ok(staging.remove()?)).await
}

/// How much of the last segment of the log is in the backup.
fn last_segment(staging: &Path) -> Result<Option<Partial>, BackupError> {
    let Some((path, bytes)) = log::last_segment(&staging.join(LOG))? else { return Ok(None) };
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    Ok(name.map(|name| Partial { path: format!("{LOG}/{name}"), bytes }))
}

/// Which backup is restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// The newest with a sound manifest.
    Newest,
    /// The one with this name.
    Named(String),
    /// The newest with a sound manifest that began at this time or before (DUR-24).
    At(Timestamp),
}

/// Restores a backup to the data directory, which must not exist or be empty, and returns
/// the lines to print.
///
/// # Errors
/// [`BackupError`] with the reason. There is no data directory then.
pub async fn restore(
    config: &Config,
    directory: PathBuf,
    which: Which,
) -> Result<String, BackupError> {
    refuse(config)?;
    let source = master_key::source(config)?;
    let key = source.location();
    let key = match source.find() {
        Ok(Some(_)) => format!("{key} must have that of the original instance"),
        _ => format!("if the original instance has one, put it in {key} before Weir starts"),
    };
    let (target, least_free) = (config.data.clone(), config.disk_marks().high);
    warn_other_user(&target);
    // The data is not on this disk yet, so nothing needs its space.
    let opened = Place::of(config, &directory)?.open(config, 0).await?;
    let restored = blocking(move || {
        let Opened { repository, mirror: _mirror } = opened;
        let Found { name, passed_over } = match which {
            Which::Newest => repository.find(None)?,
            Which::Named(name) => repository.find(Some(&name))?,
            Which::At(time) => repository.find_at(time.micros())?,
        };
        if !passed_over.is_empty() {
            let newer = passed_over.join(", ");
            tracing::warn!(backup = name, newer, "manifests of newer backups cannot be used");
        }
        let mut manifest = repository.manifest(&name)?;
        take_newest_erasures(&repository, &name, &mut manifest);
        let known = schema_version();
        if manifest.schema > known {
            return Err(BackupError::NewerSchema { found: manifest.schema, known });
        }
        let restored = weir_backup::restore(&repository, &manifest, &target, least_free)?;
        Ok((name, Timestamp::from_micros(manifest.created_at), restored))
    });
    let (name, began_at, Restored { files, bytes }) = restored.await?;
    let to_upload = config.segment_bucket().map(|SegmentBucket { location, .. }| {
        format!(
            "\nAll files of events are in the data directory. After the start, Weir uploads them \
             to {location}, which no other instance may use"
        )
    });
    Ok(format!(
        "Restored the backup {name} to {}: {files} files, {bytes} bytes\n\
         It began at {began_at}\n\
         The master key is not in the backup: {key}{}",
        config.data.display(),
        to_upload.unwrap_or_default()
    ))
}

/// Puts the list of erasures of the newest backup into this one: persons that were erased
/// after it was made are erased again. A newer list that is damaged is passed over.
fn take_newest_erasures(repository: &Repository, name: &str, manifest: &mut Manifest) {
    let names = repository.names().unwrap_or_else(|error| {
        tracing::warn!(%error, "newer backups cannot be listed: their erasures are unknown");
        Vec::new()
    });
    for newer in names.iter().rev().take_while(|newer| newer.as_str() != name) {
        match sound_list(repository, newer) {
            Ok(None) => return,
            Ok(Some(list)) => {
                manifest.files.retain(|entry| !is_list(entry));
                manifest.files.push(list);
                return;
            }
            // The backup that was asked for may be the only one that can be read.
            Err(error) => {
                let error = with_causes(&error);
                tracing::warn!(
                    backup = newer,
                    error,
                    "the list of erasures of a newer backup cannot be read: persons that it alone \
                     lists are restored"
                );
            }
        }
    }
}

/// The list of erasures of a backup, if it has one, after its content was compared.
fn sound_list(repository: &Repository, name: &str) -> weir_backup::Result<Option<Entry>> {
    let mut manifest = repository.manifest(name)?;
    manifest.files.retain(is_list);
    let is_stopped = AtomicBool::new(false);
    let damaged = weir_backup::verify(repository, &manifest, &mut HashSet::new(), &is_stopped)?;
    match damaged.into_iter().next() {
        Some(Damage { path, fault, .. }) => Err(weir_backup::Error::Damaged { path, fault }),
        None => Ok(manifest.files.pop()),
    }
}

fn is_list(entry: &Entry) -> bool {
    entry.path == erasures::FILE
}

/// Refuses a store that has no files.
fn refuse(config: &Config) -> Result<(), BackupError> {
    match config.store {
        StoreKind::Memory => Err(BackupError::InMemory),
        StoreKind::Postgres(_) => Err(BackupError::InDatabase),
        StoreKind::RocksDb => Ok(()),
    }
}

/// Refuses another user than that of the server: links of that user could not be removed by
/// the server, and files would not be readable for it after a restore.
fn refuse_other_user(data: &Path) -> Result<(), BackupError> {
    // A server has written it. The data directory may be a mount point of another user.
    match is_of_other_user(&data.join(CURRENT)) {
        true => Err(BackupError::NotOwner(data.to_owned())),
        false => Ok(()),
    }
}

/// Warns if the files of a restore will probably not be readable for the service.
fn warn_other_user(data: &Path) {
    let absolute = std::path::absolute(data).ok();
    if let Some(above) = absolute.as_deref().and_then(Path::parent)
        && is_of_other_user(above)
    {
        tracing::warn!(
            directory = %above.display(),
            "the directory belongs to another user: the restored files must belong to the user \
             of the service"
        );
    }
}

/// Whether a file belongs to another user. What cannot be read is noticed later.
fn is_of_other_user(path: &Path) -> bool {
    let user = rustix::process::geteuid().as_raw();
    std::fs::metadata(path).is_ok_and(|meta| meta.uid() != user)
}

/// Whether a directory, which need not exist, is in another one or is the same.
fn is_inside(directory: &Path, other: &Path) -> bool {
    let (Ok(directory), Ok(other)) = (std::path::absolute(directory), other.canonicalize()) else {
        return false;
    };
    let existing = directory.ancestors().find_map(|above| above.canonicalize().ok());
    existing.is_some_and(|existing| existing.starts_with(&other))
}

/// What to do with the key, which is not in the backup.
fn about_key(source: &dyn KeySource) -> String {
    match source.find() {
        Ok(Some(_)) => format!(
            "The master key is not in the backup. Keep a copy of {}, separate from the backups. \
             Without it the stored secrets are lost",
            source.location()
        ),
        Ok(None) => "There is no master key yet, because no secret is stored".to_owned(),
        // The backup is complete without it.
        Err(error) => format!("The master key is not in the backup. It cannot be read: {error}"),
    }
}

fn outcome(stored: &Stored, key: &str) -> String {
    let Stored { name, files, bytes, new_files, new_bytes, kept_for, unsound, .. } = stored;
    let unsound = match unsound {
        0 => String::new(),
        unsound => format!(
            "\n{unsound} files of events are damaged or missing in the bucket, and so they are in \
             this backup: the lines of the log name them"
        ),
    };
    let kept = match kept_for.is_empty() {
        true => String::new(),
        false => format!(
            "\nUnused content of the directory stays, because these files of `backups` cannot be \
             read as manifests: {}",
            kept_for.iter().map(|name| format!("{name:?}.json")).collect::<Vec<_>>().join(", ")
        ),
    };
    format!(
        "Stored the backup {name}: {files} files, {bytes} bytes; \
         new: {new_files} files, {new_bytes} bytes\n\
         {key}{kept}{unsound}"
    )
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, BackupError> + Send + 'static,
) -> Result<T, BackupError> {
    tokio::task::spawn_blocking(work).await.map_err(|_| BackupError::Interrupted)?
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::sync::atomic::AtomicBool;

    use weir_backup::{About, Limits, Manifest, Repository};
    use weir_store::erasures;

    use super::take_newest_erasures;

    /// Nothing ends a backup.
    static GOING: AtomicBool = AtomicBool::new(false);

    /// Stores a backup that has only this list of erasures, and returns its name.
    fn store(repository: &Repository, folder: &Path, created_at: i64, list: &str) -> String {
        let snapshot = folder.join("snapshot");
        fs::create_dir_all(&snapshot).unwrap();
        fs::write(snapshot.join(erasures::FILE), list).unwrap();
        let about = About { schema: 1, program: "1.0.0".to_owned(), created_at };
        let limits = Limits { is_stopped: &GOING, least_free: 0 };
        repository.store(&snapshot, None, about, limits).unwrap().name
    }

    /// The stored content of the list in this manifest.
    fn content(root: &Path, manifest: &Manifest) -> PathBuf {
        let [list] = manifest.files.as_slice() else { panic!("{manifest:?}") };
        root.join("files").join(&list.sha256[..2]).join(&list.sha256)
    }

    #[test]
    fn the_newest_list_of_erasures_that_is_not_damaged_is_restored() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("backups");
        let repository = Repository::create(&root, "instance").unwrap();
        let names = [(1_000_000, "1"), (2_000_000, "1\n2"), (3_000_000, "1\n2\n3")]
            .map(|(at, list)| store(&repository, folder.path(), at, list));
        let restored = |name: &str| {
            let mut manifest = repository.manifest(name).unwrap();
            take_newest_erasures(&repository, name, &mut manifest);
            fs::read_to_string(content(&root, &manifest)).unwrap()
        };
        assert_eq!(names.each_ref().map(|name| restored(name)), ["1\n2\n3"; 3]);
        let newest = content(&root, &repository.manifest(&names[2]).unwrap());
        fs::write(newest, "damage").unwrap();
        assert_eq!(restored(&names[0]), "1\n2");
        assert_eq!(restored(&names[1]), "1\n2");
    }
}
