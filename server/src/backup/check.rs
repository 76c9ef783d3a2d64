//! `weir check`: whether a data directory, or a backup, is complete and sound.
//!
//! It opens the store as a start does, which may change files. So a backup is opened from
//! links to its files, in a directory beside them, and a data directory from links as a
//! backup takes them. The data itself is never changed, and a server may run.
//!
//! What belongs here: what is checked, and the list of faults. What does not: how files,
//! counts (`weir_store::events`), the log (`weir_ingest::log`) and stored content
//! (`weir_backup`) are compared.

use std::collections::HashSet;
use std::fmt;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use weir_backup::{Damage, Manifest, Repository, Staging};
use weir_ingest::log::{self, Broken};
use weir_store::events::{self, HeldObjects, Miscount, Unsound};
use weir_store::{Error as StoreError, Store};

use super::place::{Opened, Place};
use super::{BackupError, LOG, blocking, refuse, refuse_other_user, segments, stop_flag, take};
use crate::config::{Config, SegmentLocation};
use crate::log_tools::has_store;
use crate::serve::{StopSignals, open_store};

/// The directory in a repository, or in the data directory, with the links that are opened.
pub(super) const STAGING: &str = ".weir-check";

/// Why a check could not be made, or what it found.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// The backup cannot be used.
    #[error(transparent)]
    Backup(#[from] BackupError),
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The links cannot be made.
    #[error(
        "the file system of `{0}` is mounted for reading: the content of its backups was \
         compared, and no backup was opened"
    )]
    ReadOnly(PathBuf),
    /// There are faults. They were printed.
    #[error("faults found: {0}")]
    Faulty(usize),
}

/// Something that is not as it must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The manifest of a backup cannot be used.
    Manifest {
        /// Why. Names the backup.
        detail: String,
    },
    /// A file of a backup is damaged.
    Content {
        /// The name of the backup.
        backup: String,
        /// The file, and what is wrong with it.
        damage: Damage,
    },
    /// The store cannot be opened.
    Unopened {
        /// Why.
        detail: String,
    },
    /// A part of the store cannot be read.
    Unread {
        /// The part.
        part: &'static str,
        /// Why.
        detail: String,
    },
    /// Opening the store found damaged files of events, and may have repaired them.
    AtOpening {
        /// The number of times.
        times: u64,
    },
    /// A file of the catalog of events is missing or damaged.
    File(Unsound),
    /// A project does not have the events that were counted.
    Count(Miscount),
    /// The log has no sound record in a range that is needed.
    Log(Broken),
    /// The log ends before what the store has applied.
    LogEnds {
        /// Where it ends.
        end: u64,
        /// How far it was applied.
        applied: u64,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Manifest { detail } => f.write_str(detail),
            Self::Content { backup, damage: Damage { path, fault, .. } } => {
                write!(f, "backup {backup}: {path}: {fault}")
            }
            Self::Unopened { detail } => write!(f, "the store cannot be opened: {detail}"),
            Self::Unread { part, detail } => write!(f, "{part} cannot be read: {detail}"),
            Self::AtOpening { times } => {
                write!(f, "opening the store found damaged files of events: {times}")
            }
            Self::File(Unsound { file, detail }) => write!(f, "segments/{file}: {detail}"),
            Self::Count(Miscount { project, expected, found, failure }) => {
                write!(f, "project {}: {found} events, and {expected} were counted", project.0)?;
                failure.as_ref().map_or(Ok(()), |failure| write!(f, "; {failure}"))
            }
            Self::Log(Broken { offset, bytes, fault }) => {
                write!(f, "ingest log: {bytes} bytes at {} are {}", offset.0, fault.name())
            }
            Self::LogEnds { end, applied } => {
                write!(f, "the ingest log ends at {end}, and was applied up to {applied}")
            }
        }
    }
}

/// What a check found.
#[derive(Debug)]
pub struct Checked {
    /// What is not as it must be.
    pub faults: Vec<Fault>,
    /// Why the check ended before it was complete.
    pub failure: Option<CheckError>,
}

/// Checks the data directory, or with `directory` the backups there: the content of all, and
/// one completely, which is the one with this name or the newest.
pub async fn run(config: &Config, directory: Option<PathBuf>, name: Option<String>) -> Checked {
    let mut faults = Vec::new();
    let failure = check(config, directory, name, &mut faults).await.err();
    Checked { faults, failure }
}

async fn check(
    config: &Config,
    directory: Option<PathBuf>,
    name: Option<String>,
    faults: &mut Vec<Fault>,
) -> Result<(), CheckError> {
    refuse(config)?;
    let mut signals = StopSignals::new().map_err(BackupError::Signals)?;
    let (of, staging, mirror, held) = match directory {
        None => {
            let (staging, held) = link_data(config).await?;
            (config.clone(), Some(staging), None, held)
        }
        Some(directory) => {
            // The thread that links files is waited for, so that it can remove them.
            let is_stopped = stop_flag().map_err(BackupError::Signals)?;
            let least_free = config.disk_marks().high;
            let opened = Place::of(config, &directory)?.open(config, least_free).await?;
            let examined = blocking(move || {
                let Opened { repository, mirror } = opened;
                Ok((examine_content(&repository, name, &is_stopped), mirror))
            });
            let ((found, linked), mirror) = examined.await?;
            faults.extend(found);
            // A backup has all files of events.
            let of = Config { segments: SegmentLocation::default(), ..config.clone() };
            (of, linked?, mirror, None)
        }
    };
    // Links to damaged content would be found damaged once more. The lock of the repository
    // is free again: the links are enough.
    let examined = match staging {
        Some(staging) => examine(&of, staging, faults, &mut signals).await,
        None => Ok(()),
    };
    drop(held);
    // The links of a bucket are in its mirror.
    if let Some(mirror) = mirror {
        blocking(move || Ok(mirror.remove()?)).await?;
    }
    examined
}

/// Links the files of the data directory as a backup does. Objects of files of events stay as
/// long as the second value does.
async fn link_data(config: &Config) -> Result<(Staging, Option<HeldObjects>), BackupError> {
    if !has_store(config) {
        return Err(BackupError::NoStore(config.data.clone()));
    }
    refuse_other_user(&config.data)?;
    let held = segments::hold(config).await?;
    let at = config.data.join(STAGING);
    let staging = blocking(move || Ok(Staging::create(&at)?)).await?;
    // What is being linked cannot be removed, so a signal is noticed in between.
    let is_stopped = stop_flag().map_err(BackupError::Signals)?;
    take(&config.data, staging.path(), &is_stopped).await?;
    Ok((staging, held))
}

/// Compares the content of all backups with their checksums, and links the files of one if
/// these are sound. What was found is returned also with an error.
fn examine_content(
    repository: &Repository,
    name: Option<String>,
    is_stopped: &AtomicBool,
) -> (Vec<Fault>, Result<Option<Staging>, CheckError>) {
    let mut faults = Vec::new();
    let linked = compare_content(repository, name, &mut faults, is_stopped);
    (faults, linked)
}

fn compare_content(
    repository: &Repository,
    name: Option<String>,
    faults: &mut Vec<Fault>,
    is_stopped: &AtomicBool,
) -> Result<Option<Staging>, CheckError> {
    let sound = compare_backups(repository, name, faults, is_stopped).map_err(BackupError::from)?;
    // What follows writes to the directory.
    if repository.is_read_only() {
        return Err(CheckError::ReadOnly(repository.root().to_owned()));
    }
    // After all backups were compared, so that each that has the content is named.
    for fault in faults.iter() {
        if let Fault::Content { damage, .. } = fault {
            repository.set_aside(damage).map_err(BackupError::from)?;
        }
    }
    let Some(manifest) = sound else { return Ok(None) };
    let at = repository.root().join(STAGING);
    let staging = Staging::create(&at).map_err(BackupError::from)?;
    let linked = weir_backup::link(repository, &manifest, staging.path(), is_stopped);
    linked.map_err(BackupError::from)?;
    Ok(Some(staging))
}

/// Compares the content of all backups. Returns the manifest of the one with this name, or
/// of the newest, if its content is sound.
fn compare_backups(
    repository: &Repository,
    name: Option<String>,
    faults: &mut Vec<Fault>,
    is_stopped: &AtomicBool,
) -> Result<Option<Manifest>, weir_backup::Error> {
    repository.put_back()?;
    let chosen = repository.find(name.as_deref())?.name;
    let (mut sound, mut verified) = (None, HashSet::new());
    for backup in repository.names()? {
        let manifest = match repository.manifest(&backup) {
            Ok(manifest) => manifest,
            Err(error @ weir_backup::Error::Manifest { .. }) => {
                faults.push(Fault::Manifest { detail: error.to_string() });
                continue;
            }
            Err(error) => return Err(error),
        };
        let damaged = weir_backup::verify(repository, &manifest, &mut verified, is_stopped)?;
        if backup == chosen && damaged.is_empty() {
            sound = Some(manifest);
        }
        let fault = |damage| Fault::Content { backup: backup.clone(), damage };
        faults.extend(damaged.into_iter().map(fault));
    }
    Ok(sound)
}

/// Checks the linked files, and removes the links, also after a signal. The database writes
/// beside the links until it is closed, and cannot be stopped while it is being opened.
async fn examine(
    config: &Config,
    staging: Staging,
    faults: &mut Vec<Fault>,
    signals: &mut StopSignals,
) -> Result<(), CheckError> {
    let of = Config { data: staging.path().to_owned(), ..config.clone() };
    let examined = match open_store(&of).await {
        Ok(store) => {
            let compared = tokio::select! {
                compared = compare(&store, of.data.join(LOG), faults) => compared,
                () = signals.stop() => Err(BackupError::Interrupted.into()),
            };
            let closed = store.close_at_end().await;
            compared.and(closed.map_err(CheckError::from))
        }
        Err(error) if !is_damage(&error) => Err(error.into()),
        Err(error) => {
            faults.push(Fault::Unopened { detail: error.to_string() });
            Ok(())
        }
    };
    let removed = blocking(move || Ok(staging.remove()?)).await;
    examined?;
    Ok(removed?)
}

/// Compares files, counts, and the positions with the log at this path, and reads the rest of
/// the database.
async fn compare(store: &Store, at: PathBuf, faults: &mut Vec<Fault>) -> Result<(), CheckError> {
    compare_events(store, at, faults).await?;
    // The last, because the store cannot be used any more after an error of the storage.
    unread("the database", weir_store::read_all(store).await, faults)?;
    Ok(())
}

/// Compares what belongs to events.
async fn compare_events(
    store: &Store,
    at: PathBuf,
    faults: &mut Vec<Fault>,
) -> Result<(), CheckError> {
    let times = store.segment_damage();
    faults.extend((times > 0).then_some(Fault::AtOpening { times }));
    let mut files = Vec::new();
    let checked = events::check_files(store, &mut files).await;
    faults.extend(files.into_iter().map(Fault::File));
    unread("the catalog of the files of events", checked, faults)?;
    let mut counts = Vec::new();
    let checked = events::check_counts(store, &mut counts).await;
    faults.extend(counts.into_iter().map(Fault::Count));
    unread("the counts of events", checked, faults)?;
    let positions = events::positions(store).await;
    let Some(positions) = unread("the positions in the ingest log", positions, faults)? else {
        return Ok(());
    };
    let applied = log::Applied::of(&positions);
    let inspect = || {
        let (at, positions) = (at.clone(), positions.clone());
        blocking(move || Ok(log::inspect(&at, &positions, |_| {})?))
    };
    // Damage of what is applied is no loss. A torn end was not acknowledged.
    let is_needed = |broken: &Broken| {
        broken.fault != log::Fault::Torn && broken.offset.0 + broken.bytes > applied.lowest.0
    };
    let inspected = inspect().await?;
    let end = inspected.bounds().map_or(0, |(_, end)| end.0);
    let highest = applied.highest.0;
    faults.extend((end < highest).then_some(Fault::LogEnds { end, applied: highest }));
    let mut broken = inspected.broken;
    broken.retain(is_needed);
    if !broken.is_empty() {
        // A server may have written the last segment while it was read, and then it is whole
        // now: the writer writes in order.
        let again = inspect().await?.broken;
        broken.retain(|broken| again.contains(broken));
    }
    faults.extend(broken.into_iter().map(Fault::Log));
    Ok(())
}

/// The result of reading a part. That it is damaged is a fault.
fn unread<T>(
    part: &'static str,
    read: Result<T, StoreError>,
    faults: &mut Vec<Fault>,
) -> Result<Option<T>, CheckError> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(error) if !is_damage(&error) => Err(error.into()),
        Err(error) => {
            faults.push(Fault::Unread { part, detail: error.to_string() });
            Ok(None)
        }
    }
}

/// Whether an error says something about the data, and not about the machine or the program.
fn is_damage(error: &StoreError) -> bool {
    let of_machine = ["No space left on device", "Permission denied", "Too many open files"];
    match error {
        // That no file of events is there is damage.
        StoreError::File { source, .. } => source.kind() == ErrorKind::NotFound,
        StoreError::Open { detail, .. } | StoreError::Storage { detail, .. } => {
            !of_machine.iter().any(|cause| detail.contains(cause))
        }
        StoreError::InUse { .. }
        | StoreError::Directory { .. }
        | StoreError::NewerSchema { .. }
        | StoreError::Bucket { .. }
        | StoreError::Timeout { .. }
        | StoreError::Conflict { .. }
        | StoreError::Unavailable { .. }
        | StoreError::DiskLow
        | StoreError::Stopped => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(kind: ErrorKind) -> StoreError {
        StoreError::File { file: "segments/1.parquet".into(), source: kind.into() }
    }

    #[test]
    fn damage_is_a_fault_and_an_error_of_the_machine_is_none() {
        let mut faults = Vec::new();
        let detail = |detail: &str| StoreError::Storage { statement: "a", detail: detail.into() };
        for damage in [file(ErrorKind::NotFound), detail("Corruption: block checksum mismatch")] {
            assert_eq!(unread::<()>("the counts", Err(damage), &mut faults).unwrap(), None);
        }
        assert_eq!(faults.len(), 2);
        for other in [
            file(ErrorKind::PermissionDenied),
            detail("IO error: No space left on device"),
            StoreError::Timeout { statement: "a", seconds: 60 },
            StoreError::DiskLow,
        ] {
            unread::<()>("the counts", Err(other), &mut faults).unwrap_err();
        }
        assert_eq!(faults.len(), 2, "what was found before stays");
    }
}
