//! A repository whose files are on another machine, such as in a bucket.
//!
//! Its manifests are copied into a local directory, which is used like a repository. The
//! content of a file is there only while it is stored or read.
//!
//! What belongs here: what such a storage must be able to do, and which content it has. What
//! does not: how it is asked (`weir-server`).

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::copy::create_directory;
use crate::error::{Error, FileFault, Result, failed};
use crate::manifest::{Entry, LONGEST, is_sha256};
use crate::repository::{BACKUPS, EXTENSION, FILES, MARKER, refuse_low_disk};

/// Longest marker, bytes.
const LONGEST_MARKER: u64 = 1 << 10;

/// A storage of files by their names, which have parts with `/` between them. A file is
/// there as a whole or not at all. Its functions block the thread.
pub trait Remote: fmt::Debug + Send + Sync {
    /// Where it is, for people.
    fn place(&self) -> String;

    /// The names of the files whose names begin with `part` and `/`, without these.
    ///
    /// # Errors
    /// [`Error::Remote`].
    fn list(&self, part: &str) -> Result<BTreeSet<String>>;

    /// The content of a file of at most `most` bytes; `None`: there is none.
    ///
    /// # Errors
    /// [`Error::Remote`].
    fn read(&self, name: &str, most: u64) -> Result<Option<Vec<u8>>>;

    /// Writes a file, also over one that is there.
    ///
    /// # Errors
    /// [`Error::Remote`].
    fn upload(&self, name: &str, from: &Path) -> Result<()>;

    /// Reads a file that should have this many bytes. Returns what is wrong with it. The
    /// content is compared by the caller.
    ///
    /// # Errors
    /// [`Error::Remote`].
    fn download(&self, name: &str, bytes: u64, to: &Path) -> Result<Option<FileFault>>;

    /// Removes a file, if it is there.
    ///
    /// # Errors
    /// [`Error::Remote`].
    fn remove(&self, name: &str) -> Result<()>;

    /// Makes sure that no other command has begun to write meanwhile.
    ///
    /// # Errors
    /// [`Error::Lost`] if one may have, and [`Error::Remote`].
    fn confirm(&self) -> Result<()>;

    /// Lets other commands write.
    ///
    /// # Errors
    /// [`Error::Remote`]. Other commands then have to wait.
    fn release(&self) -> Result<()>;
}

/// The files of a repository that are elsewhere.
#[derive(Debug)]
pub(crate) struct RemoteFiles {
    storage: Box<dyn Remote>,
    /// The checksums of the stored content.
    content: Mutex<BTreeSet<String>>,
    /// Bytes that stay free on the disk of files that are fetched.
    least_free: u64,
}

impl RemoteFiles {
    /// `content`: the checksums of what the storage has.
    pub(crate) fn new(
        storage: Box<dyn Remote>,
        content: BTreeSet<String>,
        least_free: u64,
    ) -> Self {
        Self { storage, content: Mutex::new(content), least_free }
    }

    pub(crate) fn storage(&self) -> &dyn Remote {
        &*self.storage
    }

    fn content(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn has(&self, sha256: &str) -> bool {
        self.content().contains(sha256)
    }

    /// Stores content, unless it is stored, and removes the local file.
    pub(crate) fn add(&self, sha256: &str, from: &Path) -> Result<()> {
        if !self.has(sha256) {
            self.storage.upload(&content_name(sha256), from)?;
            self.content().insert(sha256.to_owned());
        }
        fs::remove_file(from).map_err(failed("remove", from))
    }

    /// Copies the content of a file to its local path. Returns what is wrong with it.
    pub(crate) fn fetch(&self, entry: &Entry, to: &Path) -> Result<Option<FileFault>> {
        if let Some(directory) = to.parent() {
            create_directory(directory)?;
            // The reader copies it to its place before the fetched one goes.
            let copies = entry.bytes.saturating_mul(2);
            refuse_low_disk(directory, self.least_free.saturating_add(copies))?;
        }
        self.storage.download(&content_name(&entry.sha256), entry.bytes, to)
    }

    /// Removes content that is not used.
    pub(crate) fn remove_unused(&self, is_used: impl Fn(&str) -> bool) -> Result<()> {
        let unused: Vec<String> =
            self.content().iter().filter(|sha256| !is_used(sha256)).cloned().collect();
        for sha256 in unused {
            // Another command may use it now.
            self.storage.confirm()?;
            self.storage.remove(&content_name(&sha256))?;
            self.content().remove(&sha256);
        }
        Ok(())
    }
}

/// The checksums of the content that a storage has.
pub(crate) fn stored_content(storage: &dyn Remote) -> Result<BTreeSet<String>> {
    let sha256 = |name: String| name.split_once('/').map(|(_, sha256)| sha256.to_owned());
    let names = storage.list(FILES)?.into_iter().filter_map(sha256);
    Ok(names.filter(|name| is_sha256(name)).collect())
}

fn content_name(sha256: &str) -> String {
    format!("{FILES}/{}/{sha256}", sha256.get(..2).unwrap_or_default())
}

pub(crate) fn manifest_name(name: &str) -> String {
    format!("{BACKUPS}/{name}{EXTENSION}")
}

/// Copies the marker and the manifests into an empty directory. `least_free`: bytes that stay
/// free on its disk.
pub(crate) fn copy_down(storage: &dyn Remote, mirror: &Path, least_free: u64) -> Result<()> {
    let write = |path: &Path, bytes: &[u8]| {
        refuse_low_disk(mirror, least_free.saturating_add(bytes.len() as u64))?;
        fs::write(path, bytes).map_err(failed("write", path))
    };
    if let Some(marker) = storage.read(MARKER, LONGEST_MARKER)? {
        write(&mirror.join(MARKER), &marker)?;
    }
    let backups = mirror.join(BACKUPS);
    for name in storage.list(BACKUPS)? {
        // Names of backups have no such parts (`is_name`).
        if name.contains('/') || name.starts_with('.') || !name.ends_with(EXTENSION) {
            continue;
        }
        create_directory(&backups)?;
        // One more byte shows that a manifest is too long.
        let read = storage.read(&format!("{BACKUPS}/{name}"), LONGEST + 1)?;
        if let Some(manifest) = read {
            write(&backups.join(name), &manifest)?;
        }
    }
    Ok(())
}

/// Names the storage in an error, and not the local directory.
pub(crate) fn of_place(error: Error, storage: &dyn Remote) -> Error {
    let path = storage.place().into();
    match error {
        Error::Empty { .. } => Error::Empty { path },
        Error::Foreign { .. } => Error::Foreign { path },
        Error::OtherInstance { found, .. } => Error::OtherInstance { path, found },
        error => error,
    }
}

/// Removes the local copy of content, if there is one.
pub(crate) fn forget(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(failed("remove", path)(error)),
        _ => Ok(()),
    }
}
