//! What a start checks: the files are those of the catalog, and all runs are open before the
//! first event is applied.
//!
//! - A file without a row is the rest of a seal or a merge that did not end. It is removed,
//!   if all files of the catalog are there.
//! - A row without a file is damage. It is reported, and so is every read of the segment.
//!   If no file is there at all, then the start ends: the directory is another one.
//! - A run that is damaged or missing is repaired (`repair`). A run that cannot be read for
//!   another reason ends the start.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::sync::Arc;

use weir_segments::Error as FileError;
use weir_segments::run::Run;

use super::catalog::{self, Segments};
use super::files::Files;
use super::repair;
use super::runs::{HeldRun, unusable};
use crate::{Result, Store};

/// Opens all runs, and removes the files that belong to nothing.
///
/// # Errors
/// [`crate::Error::File`] when the directory or a run cannot be read, or the directory has
/// none of the files that it must have, and errors of the store.
pub(crate) async fn start(store: &Store) -> Result<()> {
    let segments = &store.segments;
    let Some(files) = segments.files.clone() else { return Ok(()) };
    let mut known: BTreeSet<String> = BTreeSet::new();
    let mut all = Segments::all(store).await?;
    while let Some(some) = all.next(store).await? {
        known.extend(some.into_iter().map(|segment| segment.file));
    }
    let runs = catalog::runs(store).await?;
    known.extend(runs.iter().map(|run| run.file.clone()));
    compare(store, &files, known).await?;
    let mut damaged = Vec::new();
    for sealed in runs {
        let (path, of_run) = (files.path(&sealed.file), sealed.clone());
        let open = {
            let path = path.clone();
            move || Run::open(&path, of_run.bytes, &of_run.sums)
        };
        match segments.blocking(path, open).await? {
            Ok(run) => repair::hold(store, HeldRun { sealed: Arc::new(sealed), run }),
            Err(error) if is_damage(&error) => {
                // Logged and counted. A missing file was.
                if !matches!(error, FileError::Io { .. }) {
                    let _ = segments.error(error);
                }
                damaged.push(sealed);
            }
            Err(error) => return Err(segments.error(error)),
        }
    }
    repair::repair(store, &files, damaged).await
}

/// Whether the file itself is damaged or missing, so that opening it again does not help.
fn is_damage(error: &FileError) -> bool {
    match error {
        FileError::Io { source, .. } => source.kind() == ErrorKind::NotFound,
        error => matches!(error, FileError::Damaged { .. }),
    }
}

/// Reports missing files. If there are none, removes files that the catalog does not know.
async fn compare(store: &Store, files: &Files, known: BTreeSet<String>) -> Result<()> {
    let segments = &store.segments;
    let (of, root) = (files.clone(), files.path(""));
    let compared = segments.blocking(root, move || {
        let root = of.path("");
        let present = of.all().map_err(|source| unusable(&root, source))?;
        if !known.is_empty() && known.is_disjoint(&present) {
            return Err(unusable(&root, io::Error::new(ErrorKind::NotFound, NONE)));
        }
        let missing: Vec<String> = known.difference(&present).cloned().collect();
        let unknown: Vec<String> = present.difference(&known).cloned().collect();
        if missing.is_empty() {
            of.remove(&unknown);
        }
        Ok((unknown.len(), missing))
    });
    let (unknown, missing) = compared.await?.map_err(|error| segments.error(error))?;
    match (unknown, missing.len()) {
        (0, _) => {}
        (_, 0) => {
            tracing::info!(files = unknown, "removed files of seals and merges that did not end");
        }
        _ => tracing::warn!(files = unknown, "unknown files stay while others are missing"),
    }
    for name in missing {
        let path = files.path(&name);
        let detail = format!("{} does not exist", path.display());
        // It is logged and counted. A reader of the segment gets the error.
        let _ = segments.damaged(path, detail);
    }
    Ok(())
}

/// Why a start ends with a directory that is not ours.
const NONE: &str = "none of the files of stored events is there; is the directory mounted?";
