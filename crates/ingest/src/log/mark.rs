//! `applying`: a file that is there while the log is applied. One that a start finds
//! says that the process ended in the middle, and perhaps because of what the log
//! holds.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

const NAME: &str = "applying";

/// The file.
#[derive(Debug)]
pub(crate) struct Mark(PathBuf);

impl Mark {
    /// Makes the file; gives whether it was there.
    pub(crate) fn set(directory: &Path) -> (Self, bool) {
        let path = directory.join(NAME);
        let was_there = match File::create_new(&path) {
            Ok(_) => false,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => true,
            Err(error) => {
                tracing::warn!(%error, path = %path.display(), "a crash will not be noticed");
                false
            }
        };
        (Self(path), was_there)
    }

    /// Removes it: the process ends as it should.
    pub(crate) fn clear(&self) {
        match std::fs::remove_file(&self.0) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => tracing::warn!(%error, "the next start will take this stop for a crash"),
        }
    }
}
