//! From a backup to files: restoring a data directory, and verifying what is stored.

use std::collections::{BTreeSet, HashSet};
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;

use crate::copy::{copy, create_directory, is_unreadable, sync_directory};
use crate::error::{Error, FileFault, Result, failed};
use crate::instance;
use crate::manifest::{Entry, Manifest};
use crate::repository::{Repository, free_bytes};
use crate::staging::Staging;

/// What the directory is called in addition while it is restored.
const UNFINISHED: &str = ".weir-restoring";

/// What a restore wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Restored {
    /// The number of files.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
}

/// A file of a backup that is not as it was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// Its path in the data directory.
    pub path: String,
    /// What is wrong with it.
    pub fault: FileFault,
    /// The SHA-256 that its content must have.
    pub sha256: String,
}

/// Restores a backup to a directory that does not exist or is empty. Every checksum is
/// verified while its file is copied. The directory gets its name when it is complete and
/// on stable storage. `least_free`: bytes that stay free on its disk.
///
/// # Errors
/// [`Error::NotEmpty`], [`Error::NoSpace`], [`Error::Damaged`], and errors of the file
/// system. There is no target then.
pub fn restore(
    repository: &Repository,
    manifest: &Manifest,
    target: &Path,
    least_free: u64,
) -> Result<Restored> {
    let is_empty = match fs::read_dir(target) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == ErrorKind::NotFound,
    };
    if !is_empty {
        return Err(Error::NotEmpty { path: target.to_owned() });
    }
    let no_name = || Error::NoName { path: target.to_owned() };
    let mut name = target.file_name().ok_or_else(no_name)?.to_owned();
    name.push(UNFINISHED);
    let staging = Staging::create(&target.with_file_name(name))?;
    let size = manifest
        .files
        .iter()
        .fold(0, |sum: u64, entry| sum.saturating_add(entry.bytes).saturating_add(entry.zeros));
    let (needed, free) = (size.saturating_add(least_free), free_bytes(staging.path())?);
    if free < needed {
        return Err(Error::NoSpace { path: target.to_owned(), bytes: size, needed, free });
    }
    let bytes = write(repository, manifest, staging.path(), None)?;
    instance::write_to(staging.path(), &manifest.instance)?;
    // It replaces an empty directory, and no other one.
    fs::rename(staging.path(), target).map_err(failed("create", target))?;
    let above = target.parent().filter(|above| !above.as_os_str().is_empty());
    sync_directory(above.unwrap_or(Path::new(".")))?;
    Ok(Restored { files: manifest.files.len(), bytes })
}

/// Writes the files of a backup to an empty directory on the same file system, for reading:
/// files that are never written again are links. Their checksums are not verified.
///
/// # Errors
/// As [`restore`], and [`Error::Interrupted`] when `is_stopped` is set.
pub fn link(
    repository: &Repository,
    manifest: &Manifest,
    target: &Path,
    is_stopped: &AtomicBool,
) -> Result<()> {
    write(repository, manifest, target, Some(is_stopped)).map(|_| ())
}

/// Compares the content of all files of a backup with their checksums. Content in
/// `verified` is sound already, and sound content is added to it.
///
/// # Errors
/// When the file system fails otherwise than by damage, and [`Error::Interrupted`] when
/// `is_stopped` is set.
pub fn verify(
    repository: &Repository,
    manifest: &Manifest,
    verified: &mut HashSet<String>,
    is_stopped: &AtomicBool,
) -> Result<Vec<Damage>> {
    let mut damaged = Vec::new();
    for entry in &manifest.files {
        end_if(is_stopped)?;
        if verified.contains(&entry.sha256) {
            continue;
        }
        match copy_content(repository, entry, &mut io::sink()) {
            Ok(()) => {
                verified.insert(entry.sha256.clone());
            }
            Err(Error::Damaged { path, fault }) => {
                damaged.push(Damage { path, fault, sha256: entry.sha256.clone() });
            }
            Err(error) => return Err(error),
        }
    }
    Ok(damaged)
}

fn end_if(is_stopped: &AtomicBool) -> Result<()> {
    match is_stopped.load(Ordering::Acquire) {
        true => Err(Error::Interrupted),
        false => Ok(()),
    }
}

/// Writes all files durably, and returns their bytes. `for_reading`: with links, until this
/// is set.
fn write(
    repository: &Repository,
    manifest: &Manifest,
    target: &Path,
    for_reading: Option<&AtomicBool>,
) -> Result<u64> {
    let mut bytes = 0_u64;
    let mut directories: BTreeSet<PathBuf> = BTreeSet::from([target.to_owned()]);
    for entry in &manifest.files {
        for_reading.map_or(Ok(()), end_if)?;
        let path = target.join(&entry.path);
        // The paths of a manifest lead to no other directory (`Manifest::parse`).
        let above = path.ancestors().skip(1).take_while(|above| above.starts_with(target));
        directories.extend(above.map(Path::to_owned));
        if let Some(directory) = path.parent() {
            create_directory(directory)?;
        }
        let is_linked = for_reading.is_some()
            && entry.is_immutable()
            && fs::hard_link(repository.content(&entry.sha256), &path).is_ok();
        if !is_linked {
            write_file(repository, entry, &path)?;
        }
        bytes = entry.bytes.saturating_add(entry.zeros).saturating_add(bytes);
    }
    directories.iter().try_for_each(|directory| sync_directory(directory))?;
    Ok(bytes)
}

fn write_file(repository: &Repository, entry: &Entry, path: &Path) -> Result<()> {
    let mut file = File::create_new(path).map_err(failed("create", path))?;
    copy_content(repository, entry, &mut file)?;
    if entry.zeros > 0 {
        // Allocated, as the ingest log expects of its segments.
        match fallocate(&file, FallocateFlags::empty(), entry.bytes, entry.zeros) {
            // A file system that cannot allocate.
            Err(error) if error == Errno::OPNOTSUPP => {
                let length = entry.bytes.saturating_add(entry.zeros);
                file.set_len(length).map_err(failed("allocate", path))?;
            }
            allocated => {
                allocated.map_err(|error| failed("allocate", path)(error.into()))?;
            }
        }
    }
    file.sync_all().map_err(failed("sync", path))
}

/// Copies the content of a file, and compares it with its length and checksum.
fn copy_content(repository: &Repository, entry: &Entry, target: &mut impl io::Write) -> Result<()> {
    if let Some(fault) = repository.fetch(entry)? {
        return Err(Error::Damaged { path: entry.path.clone(), fault });
    }
    let copied = copy_local(repository, entry, target);
    repository.forget(entry)?;
    copied
}

fn copy_local(repository: &Repository, entry: &Entry, target: &mut impl io::Write) -> Result<()> {
    let damaged = |fault| Error::Damaged { path: entry.path.clone(), fault };
    let path = repository.content(&entry.sha256);
    let mut source = match File::open(&path) {
        Ok(source) => source,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(damaged(FileFault::Missing));
        }
        Err(error) => return Err(failed("open", &path)(error)),
    };
    let found = source.metadata().map_err(failed("read", &path))?.len();
    if found != entry.bytes {
        return Err(damaged(FileFault::Length { expected: entry.bytes, found }));
    }
    match copy(&mut source, target) {
        Ok((_, sha256)) if sha256 == entry.sha256 => Ok(()),
        Ok(_) => Err(damaged(FileFault::Bytes)),
        // What the device cannot read cannot be restored. A full disk is another error.
        Err(error) if is_unreadable(&error) => {
            Err(damaged(FileFault::Unreadable(error.to_string())))
        }
        Err(error) => Err(failed("copy", &path)(error)),
    }
}
