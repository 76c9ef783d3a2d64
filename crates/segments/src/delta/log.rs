//! The files of the log: names, writing and removing them.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::checked::create_private;
use crate::error::{Error, Result};

/// The directory of the log.
const DIRECTORY: &str = "_delta_log";
/// Digits of a version.
const DIGITS: usize = 20;
const COMMIT: &str = ".json";
const CHECKPOINT: &str = ".checkpoint.parquet";
const LAST_CHECKPOINT: &str = "_last_checkpoint";

pub(super) struct Log {
    table: PathBuf,
    directory: PathBuf,
}

/// The versions that have a file, in order.
#[derive(Default)]
pub(super) struct Versions {
    pub(super) commits: Vec<u64>,
    pub(super) checkpoints: Vec<u64>,
}

/// Removes the log of the table in a directory, if there is one. The files of the table
/// stay. The next commit begins a new table with the version 0.
///
/// # Errors
/// When a file cannot be removed.
pub fn remove(table: &Path) -> Result<()> {
    let log = Log::of(table);
    match fs::remove_dir_all(&log.directory) {
        Ok(()) => sync(table),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(Error::io(&log.directory, e)),
    }
}

impl Log {
    pub(super) fn of(table: &Path) -> Self {
        Self { table: table.to_owned(), directory: table.join(DIRECTORY) }
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(super) fn commit(&self, version: u64) -> PathBuf {
        self.directory.join(format!("{version:0DIGITS$}{COMMIT}"))
    }

    pub(super) fn checkpoint(&self, version: u64) -> PathBuf {
        self.directory.join(format!("{version:0DIGITS$}{CHECKPOINT}"))
    }

    pub(super) fn versions(&self) -> Result<Versions> {
        let failed = |e| Error::io(&self.directory, e);
        let entries = match fs::read_dir(&self.directory) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Versions::default()),
            entries => entries.map_err(failed)?,
        };
        let mut versions = Versions::default();
        for entry in entries {
            let name = entry.map_err(failed)?.file_name();
            let Some(name) = name.to_str() else { continue };
            let version = |suffix: &str| -> Option<u64> {
                let digits = name.strip_suffix(suffix).filter(|digits| digits.len() == DIGITS)?;
                digits.parse().ok()
            };
            versions.commits.extend(version(COMMIT));
            versions.checkpoints.extend(version(CHECKPOINT));
        }
        versions.commits.sort_unstable();
        versions.checkpoints.sort_unstable();
        Ok(versions)
    }

    pub(super) fn write_commit(&self, version: u64, text: &str) -> Result<()> {
        if !self.directory.exists() {
            fs::create_dir(&self.directory).map_err(|e| Error::io(&self.directory, e))?;
            sync(&self.table)?;
        }
        let path = self.commit(version);
        // Weir is the only writer. This finds a second one that is not in the same moment.
        if path.exists() {
            return Err(Error::VersionConflict { file: path, version });
        }
        self.write(&path, text.as_bytes())
    }

    pub(super) fn write_checkpoint(
        &self,
        version: u64,
        bytes: &[u8],
        actions: usize,
    ) -> Result<()> {
        self.write(&self.checkpoint(version), bytes)?;
        let last = json!({ "version": version, "size": actions }).to_string();
        self.write(&self.directory.join(LAST_CHECKPOINT), last.as_bytes())
    }

    /// Removes the files of older versions, in order: what is left after a crash is complete.
    pub(super) fn remove_before(&self, version: u64) -> Result<()> {
        let Versions { commits, checkpoints } = self.versions()?;
        let commits = commits.into_iter().map(|commit| (commit, self.commit(commit)));
        let checkpoints = checkpoints.into_iter().map(|of| (of, self.checkpoint(of)));
        let mut old: Vec<(u64, PathBuf)> =
            commits.chain(checkpoints).filter(|(of, _)| *of < version).collect();
        old.sort_unstable();
        for (_, path) in old {
            fs::remove_file(&path).map_err(|e| Error::io(&path, e))?;
        }
        Ok(())
    }

    /// Writes a file durably, whole or not at all.
    fn write(&self, path: &Path, bytes: &[u8]) -> Result<()> {
        // Readers pass over such a name. What a crash has left is written over.
        let temporary = self.directory.join(".tmp");
        let written = create_private(&temporary).and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_all()
        });
        written.map_err(|e| Error::io(&temporary, e))?;
        fs::rename(&temporary, path).map_err(|e| Error::io(path, e))?;
        sync(&self.directory)
    }
}

fn sync(directory: &Path) -> Result<()> {
    let synced = File::open(directory).and_then(|directory| directory.sync_all());
    synced.map_err(|e| Error::io(directory, e))
}
