//! A directory for files that are not complete yet. What an interrupted command has left
//! in it is removed by the next one, or by the server.
//!
//! | name in the directory | content |
//! |---|---|
//! | `weir-staging` | the marker of such a directory. The lock of this file is held by the command |
//! | `content` | the files. Nothing else is ever removed |

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::copy::{create_directory, lock, lock_existing};
use crate::error::{Error, Result, failed};

const MARKER: &str = "weir-staging";
const CONTENT: &str = "content";
/// Attempts to take the directory, about five seconds in all.
const ATTEMPTS: u32 = 100;
/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(50);

/// A directory that one command uses at a time. It is removed with the value.
#[derive(Debug)]
pub struct Staging {
    root: PathBuf,
    content: PathBuf,
    is_removed: bool,
    _lock: File,
}

impl Staging {
    /// Creates the directory if there is none, takes its lock and empties it. Waits some
    /// seconds for a server that removes it, or for a command that ends.
    ///
    /// # Errors
    /// [`Error::InUse`] when another command uses it, [`Error::NotOurs`] when it is another
    /// directory or a symbolic link, and errors of the file system.
    pub fn create(root: &Path) -> Result<Self> {
        for _ in 1..ATTEMPTS {
            match Self::create_without_waiting(root) {
                Err(error) if may_pass(&error) => pause(),
                created => return created,
            }
        }
        Self::create_without_waiting(root)
    }

    /// The same without waiting.
    pub(crate) fn create_without_waiting(root: &Path) -> Result<Self> {
        create_directory(root)?;
        let staging =
            Self::open(root, lock)?.ok_or_else(|| Error::InUse { path: root.to_owned() })?;
        staging.remove_content()?;
        create_directory(&staging.content)?;
        Ok(staging)
    }

    /// Removes the directory if it exists and no command uses it. Returns whether it did.
    ///
    /// # Errors
    /// As [`Staging::create`].
    pub fn remove_abandoned(root: &Path) -> Result<bool> {
        let marker = root.join(MARKER);
        match fs::symlink_metadata(&marker) {
            // Also while a command creates it.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(failed("read", &marker)(error)),
            Ok(_) => {}
        }
        // The marker is not created: a command that ends may have removed it meanwhile.
        match Self::open(root, lock_existing) {
            Ok(Some(staging)) => staging.remove().map(|()| true),
            Ok(None) => Ok(false),
            Err(error) if is_not_found(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// `take` takes the lock of the marker. `None`: another command uses it.
    fn open(root: &Path, take: fn(&Path) -> Result<Option<File>>) -> Result<Option<Self>> {
        let marker = root.join(MARKER);
        let is_directory = fs::symlink_metadata(root).map_err(failed("read", root))?.is_dir();
        let is_ours = is_directory
            && match fs::symlink_metadata(&marker) {
                Ok(meta) => meta.is_file(),
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    fs::read_dir(root).map_err(failed("list", root))?.next().is_none()
                }
                Err(error) => return Err(failed("read", &marker)(error)),
            };
        if !is_ours {
            return Err(Error::NotOurs { path: root.to_owned() });
        }
        let Some(lock) = take(&marker)? else { return Ok(None) };
        // The command that had the lock may have removed the directory, and another command
        // may have made a new one.
        let held = lock.metadata().map_err(failed("read", &marker))?;
        let is_same = |meta: fs::Metadata| (meta.dev(), meta.ino()) == (held.dev(), held.ino());
        if !fs::metadata(&marker).is_ok_and(is_same) {
            return Ok(None);
        }
        let (root, content) = (root.to_owned(), root.join(CONTENT));
        Ok(Some(Self { root, content, is_removed: false, _lock: lock }))
    }

    /// Where the files are.
    pub fn path(&self) -> &Path {
        &self.content
    }

    /// Removes the directory.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn remove(mut self) -> Result<()> {
        self.is_removed = true;
        self.remove_all()
    }

    fn remove_content(&self) -> Result<()> {
        match fs::remove_dir_all(&self.content) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(failed("remove", &self.content)(error))
            }
            _ => Ok(()),
        }
    }

    fn remove_all(&self) -> Result<()> {
        self.remove_content()?;
        let marker = self.root.join(MARKER);
        fs::remove_file(&marker).map_err(failed("remove", &marker))?;
        match fs::remove_dir(&self.root) {
            // Without the marker another command may use or remove the directory already.
            Err(error)
                if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::DirectoryNotEmpty) =>
            {
                Err(failed("remove", &self.root)(error))
            }
            _ => Ok(()),
        }
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if !self.is_removed {
            // The next command removes what stays.
            let _ = self.remove_all();
        }
    }
}

fn is_not_found(error: &Error) -> bool {
    matches!(error, Error::Io { source, .. } if source.kind() == ErrorKind::NotFound)
}

/// Whether an error may come from the removal of the directory in the same moment.
fn may_pass(error: &Error) -> bool {
    match error {
        Error::InUse { .. } => true,
        // A directory that is removed after it was found to exist.
        Error::Io { source, .. } if source.kind() == ErrorKind::AlreadyExists => true,
        error => is_not_found(error),
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "functions of this crate block their thread, and nothing tells that a lock is free"
)]
fn pause() {
    std::thread::sleep(PAUSE);
}
