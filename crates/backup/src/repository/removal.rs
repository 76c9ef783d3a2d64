//! Removing old backups and what none has, and moving damaged content.

use std::collections::HashSet;
use std::fs;
use std::io::ErrorKind;
use std::num::NonZeroUsize;
use std::time::SystemTime;

use super::{BACKUPS, FILES, Repository, is_name};
use crate::copy::{create_directory, is_unreadable, names, sha256_of, sync_directory};
use crate::error::{Error, FileFault, Result, failed};
use crate::manifest::is_sha256;
use crate::remote::manifest_name;
use crate::restore::Damage;

/// The directory of damaged content.
const DAMAGED: &str = "damaged";

/// What becomes of the content that an interrupted backup has stored.
#[derive(Debug, Clone, Copy)]
pub(super) enum Interrupted {
    /// It stays for the next backup. It is newer than the newest manifest.
    Stays,
    /// It goes: a backup has used what it needs of it.
    Goes,
}

impl Repository {
    /// Removes the oldest backups, so that `keep` stay, and the content that none of these
    /// has (DUR-23). The backup `newest` stays, also if names of others sort after it. While
    /// a manifest cannot be read, all backups stay: their content would stay too. Returns
    /// the names of the removed backups, the oldest first.
    ///
    /// # Errors
    /// Errors of the file system. A later call removes what is left.
    pub fn remove_old(&self, keep: NonZeroUsize, newest: &str) -> Result<Vec<String>> {
        let mut old = self.manifests()?;
        for name in &old {
            match self.manifest(name) {
                Ok(_) if is_name(name) => {}
                Ok(_) | Err(Error::Manifest { .. }) => return Ok(Vec::new()),
                Err(error) => return Err(error),
            }
        }
        old.retain(|name| name != newest);
        old.truncate(old.len().saturating_sub(keep.get() - 1));
        for name in &old {
            if let Some(remote) = &self.remote {
                remote.storage().confirm()?;
                remote.storage().remove(&manifest_name(name))?;
            }
            let path = self.manifest_path(name);
            fs::remove_file(&path).map_err(failed("remove", &path))?;
        }
        if !old.is_empty() {
            // A manifest that comes back after a crash would have no content.
            sync_directory(&self.root.join(BACKUPS))?;
            self.remove_unused(Interrupted::Goes)?;
        }
        Ok(old)
    }

    /// Moves content whose length or bytes are wrong to `damaged`, so that the next backup
    /// stores it again. It is read a second time before. What is missing or cannot be read
    /// stays as it is: a device may be able to read it later. Returns whether it was moved.
    ///
    /// # Errors
    /// When it cannot be moved.
    pub fn set_aside(&self, damage: &Damage) -> Result<bool> {
        if !matches!(damage.fault, FileFault::Length { .. } | FileFault::Bytes) {
            return Ok(false);
        }
        let (from, directory) = (self.content(&damage.sha256), self.root.join(DAMAGED));
        let found = match sha256_of(&from) {
            // Content that several backups have may have been moved already.
            Err(error) if error.kind() == ErrorKind::NotFound || is_unreadable(&error) => {
                return Ok(false);
            }
            found => found.map_err(failed("read", &from))?,
        };
        if found == damage.sha256 {
            return Ok(false);
        }
        create_directory(&directory)?;
        fs::rename(&from, directory.join(&damage.sha256)).map_err(failed("move", &from))?;
        Ok(true)
    }

    /// Moves content of `damaged` back whose checksum is right, unless it was stored again:
    /// it was moved after wrong reads. Content that cannot be read stays there.
    ///
    /// # Errors
    /// When it cannot be moved.
    pub fn put_back(&self) -> Result<()> {
        let damaged = self.root.join(DAMAGED);
        if self.is_read_only() || !damaged.is_dir() {
            return Ok(());
        }
        for name in names(&damaged)?.into_iter().filter(|name| is_sha256(name)) {
            let (from, to) = (damaged.join(&name), self.content(&name));
            if to.exists() || !sha256_of(&from).is_ok_and(|found| found == name) {
                continue;
            }
            let directory = to.parent().unwrap_or(&self.root);
            create_directory(directory)?;
            fs::rename(&from, &to).map_err(failed("move", &from))?;
            sync_directory(directory)?;
        }
        Ok(())
    }

    /// Removes content that no backup has. While a manifest cannot be read, everything
    /// stays, because it is not known what that backup has. Returns the names of these.
    pub(super) fn remove_unused(&self, interrupted: Interrupted) -> Result<Vec<String>> {
        let mut used: HashSet<String> = HashSet::new();
        let mut newest: Option<SystemTime> = None;
        let mut kept_for = Vec::new();
        for name in self.manifests()? {
            let manifest = match self.manifest(&name) {
                // A copy under another name may be the only one, and may be wanted again.
                Ok(manifest) if is_name(&name) => manifest,
                _ => {
                    kept_for.push(name);
                    continue;
                }
            };
            used.extend(manifest.files.into_iter().map(|entry| entry.sha256));
            let path = self.manifest_path(&name);
            let written = fs::metadata(&path).and_then(|meta| meta.modified());
            newest = newest.max(Some(written.map_err(failed("read", &path))?));
        }
        if !kept_for.is_empty() {
            return Ok(kept_for);
        }
        if let Some(remote) = &self.remote {
            // A bucket is not full, so nothing needs to be removed before.
            if matches!(interrupted, Interrupted::Goes) {
                remote.remove_unused(|sha256| used.contains(sha256))?;
            }
            return Ok(kept_for);
        }
        let files = self.root.join(FILES);
        for directory in names(&files)? {
            let directory = files.join(directory);
            if !directory.is_dir() {
                continue;
            }
            for name in names(&directory)? {
                let path = directory.join(&name);
                if !is_sha256(&name) || used.contains(&name) {
                    continue;
                }
                let stays = match interrupted {
                    Interrupted::Goes => false,
                    Interrupted::Stays => {
                        let written = fs::metadata(&path).and_then(|meta| meta.modified());
                        Some(written.map_err(failed("read", &path))?) > newest
                    }
                };
                if !stays {
                    fs::remove_file(&path).map_err(failed("remove", &path))?;
                }
            }
        }
        Ok(kept_for)
    }
}
