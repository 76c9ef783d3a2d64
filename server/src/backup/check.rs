//! `weir check`: whether a data directory, or a backup, is complete and sound.
//!
//! It opens the store as a start does, so no server may run. A backup is opened from links
//! to its files, in a directory beside them.
//!
//! What belongs here: what is checked, and the list of faults. What does not: how files,
//! counts (`weir_store::events`), the log (`weir_ingest::log`) and stored content
//! (`weir_backup`) are compared.

use std::collections::HashSet;
use std::fmt;
use std::path::{Path, PathBuf};

use weir_backup::{Damage, Repository, Staging};
use weir_ingest::log::{self, Broken};
use weir_store::events::{self, Miscount, Unsound};
use weir_store::{Error as StoreError, Store};

use super::{BackupError, LOG, blocking, refuse};
use crate::config::Config;
use crate::log_tools::has_store;
use crate::serve::open_store;

/// The directory in a repository in which a backup is opened.
const STAGING: &str = ".weir-check";

/// Why a check could not be made, or what it found.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// The backup cannot be used.
    #[error(transparent)]
    Backup(#[from] BackupError),
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
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
    /// Opening the store found damaged files of events, and may have repaired them.
    AtOpening {
        /// The number of times.
        times: u64,
    },
    /// A file of the catalog of events is missing or damaged.
    File(Unsound),
    /// A project has not the events that were counted.
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

/// Checks the data directory, or with `directory` the backups there: the content of all, and
/// one completely, which is the one with this name or the newest.
///
/// # Errors
/// [`CheckError`] when the check could not be made.
pub async fn run(
    config: &Config,
    directory: Option<PathBuf>,
    name: Option<String>,
) -> Result<Vec<Fault>, CheckError> {
    refuse(config, directory.as_deref())?;
    let Some(directory) = directory else {
        if !has_store(config) {
            return Err(BackupError::NoStore(config.data.clone()).into());
        }
        return examine(config).await;
    };
    let (mut faults, linked) = blocking(move || Ok(examine_content(&directory, name)?)).await?;
    // Links to damaged content would be found damaged once more.
    if let Some(Linked { staging, _repository }) = linked {
        let of = Config { data: staging.path().to_owned(), ..config.clone() };
        let found = examine(&of).await;
        blocking(move || Ok(staging.remove()?)).await?;
        faults.extend(found?);
    }
    Ok(faults)
}

/// A backup whose files are linked into a directory of their own.
struct Linked {
    staging: Staging,
    /// Its lock is held until the check has ended.
    _repository: Repository,
}

/// Compares the content of all backups with their checksums, and links the files of one if
/// these are sound.
fn examine_content(
    directory: &Path,
    name: Option<String>,
) -> Result<(Vec<Fault>, Option<Linked>), weir_backup::Error> {
    let repository = Repository::open(directory)?;
    let chosen = repository.find(name.as_deref())?;
    let (mut faults, mut linked, mut verified) = (Vec::new(), None, HashSet::new());
    let mut damages = Vec::new();
    for backup in repository.names()? {
        let manifest = match repository.manifest(&backup) {
            Ok(manifest) => manifest,
            Err(error @ weir_backup::Error::Manifest { .. }) => {
                faults.push(Fault::Manifest { detail: error.to_string() });
                continue;
            }
            Err(error) => return Err(error),
        };
        let damaged = weir_backup::verify(&repository, &manifest, &mut verified)?;
        if backup == chosen && damaged.is_empty() {
            let staging = Staging::create(&repository.root().join(STAGING))?;
            weir_backup::link(&repository, &manifest, staging.path())?;
            linked = Some(staging);
        }
        let fault = |damage| Fault::Content { backup: backup.clone(), damage };
        damages.extend(damaged.iter().cloned());
        faults.extend(damaged.into_iter().map(fault));
    }
    // After all backups were compared, so that each that has the content is named.
    damages.iter().try_for_each(|damage| repository.set_aside(damage))?;
    Ok((faults, linked.map(|staging| Linked { staging, _repository: repository })))
}

/// Checks the data directory of these settings.
async fn examine(config: &Config) -> Result<Vec<Fault>, CheckError> {
    let store = match open_store(config).await {
        Ok(store) => store,
        Err(error @ (StoreError::InUse { .. } | StoreError::NewerSchema { .. })) => {
            return Err(error.into());
        }
        Err(error) => return Ok(vec![Fault::Unopened { detail: error.to_string() }]),
    };
    let found = compare(&store, config.data.join(LOG)).await;
    store.close_at_end().await?;
    found
}

/// Compares files, counts, and the positions with the log at this path.
async fn compare(store: &Store, at: PathBuf) -> Result<Vec<Fault>, CheckError> {
    let mut faults = Vec::new();
    let times = store.segment_damage();
    faults.extend((times > 0).then_some(Fault::AtOpening { times }));
    faults.extend(events::check_files(store).await?.into_iter().map(Fault::File));
    faults.extend(events::check_counts(store).await?.into_iter().map(Fault::Count));
    let positions = events::positions(store).await?;
    let applied = log::Applied::of(&positions);
    let inspected = blocking(move || Ok(log::inspect(&at, &positions, |_| {})?)).await?;
    let end = inspected.bounds().map_or(0, |(_, end)| end.0);
    let highest = applied.highest.0;
    faults.extend((end < highest).then_some(Fault::LogEnds { end, applied: highest }));
    // Damage of what is applied is no loss. A torn end was not acknowledged.
    let is_needed = |broken: &Broken| {
        broken.fault != log::Fault::Torn && broken.offset.0 + broken.bytes > applied.lowest.0
    };
    faults.extend(inspected.broken.into_iter().filter(is_needed).map(Fault::Log));
    Ok(faults)
}
