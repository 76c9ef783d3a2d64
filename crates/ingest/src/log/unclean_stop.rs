//! `applying`: a file that exists while the log is applied. If a start finds it, the
//! process ended unexpectedly, and a record of the log may be the cause.
//!
//! What belongs here: the file. What does not: applying carefully after such a start
//! (`pipeline::consumer`).

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

const NAME: &str = "applying";

/// The path of the file.
#[derive(Debug)]
pub(crate) struct UncleanStopFile(PathBuf);

impl UncleanStopFile {
    /// Creates the file. Returns whether it existed already.
    pub(crate) fn create(directory: &Path) -> (Self, bool) {
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

    /// Removes the file: the process ends normally.
    pub(crate) fn remove(&self) {
        match std::fs::remove_file(&self.0) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => tracing::warn!(%error, "the next start will take this stop for a crash"),
        }
    }
}
