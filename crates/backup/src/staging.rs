//! A directory for files that are not complete yet. What an interrupted command has left
//! in it is removed by the next one.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::copy::{create_directory, lock, names};
use crate::error::{Result, failed};

/// A directory that one command uses at a time.
#[derive(Debug)]
pub struct Staging {
    path: PathBuf,
    _lock: File,
}

impl Staging {
    /// Creates the directory if there is none, takes its lock and empties it.
    ///
    /// # Errors
    /// [`crate::Error::InUse`] when another command uses it, and errors of the file system.
    pub fn create(path: &Path) -> Result<Self> {
        create_directory(path)?;
        let staging = Self { path: path.to_owned(), _lock: lock(path)? };
        staging.clear()?;
        Ok(staging)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes everything in it.
    ///
    /// # Errors
    /// When something cannot be removed.
    pub fn clear(&self) -> Result<()> {
        for name in names(&self.path)? {
            let path = self.path.join(name);
            let meta = fs::symlink_metadata(&path).map_err(failed("read", &path))?;
            let removed = match meta.is_dir() {
                true => fs::remove_dir_all(&path),
                false => fs::remove_file(&path),
            };
            removed.map_err(failed("remove", &path))?;
        }
        Ok(())
    }

    /// Removes the directory.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn remove(self) -> Result<()> {
        fs::remove_dir_all(&self.path).map_err(failed("remove", &self.path))
    }
}
