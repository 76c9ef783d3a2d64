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

use weir_segments::Error as FileError;

use super::catalog::{self, Segments};
use super::files::{Files, is_run_path, unusable};
use super::{LONGEST_BACKUP, lock, objects, repair};
use crate::disk::DiskLevel;
use crate::{Error, Result, Store};

/// Opens all runs, and removes the files that belong to nothing.
///
/// # Errors
/// [`crate::Error::File`] when the directory or a run cannot be read, or the directory has
/// none of the files that it must have, and errors of the store.
pub(crate) async fn start(store: &Store) -> Result<()> {
    let segments = &store.segments;
    let Some(files) = segments.files.clone() else { return Ok(()) };
    // A repair replaces runs, and no backup must come in between.
    let _changing = segments.changing_within(Some(LONGEST_BACKUP)).await?;
    let mut known: BTreeSet<String> = BTreeSet::new();
    let mut all = Segments::all(store).await?;
    while let Some(some) = all.next(store).await? {
        for segment in some {
            if let Some(objects) = &segments.objects
                && files.path(&segment.file).exists()
            {
                objects.has_local(&segment.file, segment.bytes, false);
            }
            known.insert(segment.file);
        }
    }
    let has_segments = !known.is_empty();
    let runs = catalog::runs(store).await?;
    known.extend(runs.iter().map(|run| run.file.clone()));
    compare(store, &files, known, has_segments).await?;
    let mut damaged = Vec::new();
    for sealed in runs {
        if let Some((sealed, error)) = repair::hold_if_opened(store, &files, sealed).await? {
            // Logged and counted, as a missing file was before.
            if !matches!(error, FileError::Io { .. }) {
                let _ = segments.error(error);
            }
            damaged.push(sealed);
        }
    }
    let repaired = match damaged.is_empty() || store.db.disk().check() != DiskLevel::Low {
        true => repair::repair(store, &files, damaged.clone()).await,
        false => Err(Error::DiskLow),
    };
    match repaired {
        Err(error @ (Error::DiskLow | Error::Bucket { .. })) => {
            tracing::error!(
                runs = damaged.len(), %error,
                "damaged runs are not repaired yet; until then, events of them that are sent \
                 again are stored twice"
            );
            lock(&segments.checks).leave(damaged);
            Ok(())
        }
        repaired => repaired,
    }
}

/// Reports missing files. If there are none, removes files that the catalog does not know.
async fn compare(
    store: &Store,
    files: &Files,
    known: BTreeSet<String>,
    has_segments: bool,
) -> Result<()> {
    let segments = &store.segments;
    let (of, root, is_cache) = (files.clone(), files.path(""), segments.objects.is_some());
    let compared = segments.blocking(root, move || {
        let root = of.path("");
        let present = of.all().map_err(|source| unusable(&root, source))?;
        let mut missing: Vec<String> = known.difference(&present).cloned().collect();
        if is_cache {
            // They are in the bucket.
            missing.retain(|name| is_run_path(name));
        } else if let (Some(location), false) = (objects::location_in(&of), missing.is_empty()) {
            let why = format!("stored events are in {location}; set `segments`");
            return Err(unusable(&root, io::Error::new(ErrorKind::NotFound, why)));
        }
        if has_segments && !missing.is_empty() && known.is_disjoint(&present) {
            return Err(unusable(&root, io::Error::new(ErrorKind::NotFound, NONE)));
        }
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
