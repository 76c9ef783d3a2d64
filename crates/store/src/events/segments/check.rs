//! Comparing everything with the catalog, for `weir check`: files with their checksums, and
//! the events that can be read with the counts.
//!
//! What belongs here: finding faults. What does not: repairing (`repair`), and what a start
//! notices anyway (`start`).

use weir_model::ProjectId;
use weir_segments::{Error as FileError, Run, Segment};

use super::catalog::{self, Segments};
use super::retention::removed;
use super::seal::{Heads, Lane};
use crate::events::{Scan, Selection, heads};
use crate::{Error, Result, Store, projects};

/// A file of the catalog that is missing, damaged or another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsound {
    /// Its name below `segments` of the data directory.
    pub file: String,
    /// What is wrong with it.
    pub detail: String,
}

/// A project whose events are not as many as were counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Miscount {
    /// The project.
    pub project: ProjectId,
    /// The events that it must have.
    pub expected: u64,
    /// The events that can be read.
    pub found: u64,
    /// What ended the reading, if not all events were read.
    pub failure: Option<String>,
}

/// Reads every file of the catalog, and compares it with its checksums and its row.
///
/// # Errors
/// When the catalog cannot be read.
pub async fn check_files(store: &Store) -> Result<Vec<Unsound>> {
    let Some(files) = store.segments.files.clone() else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    let mut all = Segments::all(store).await?;
    while let Some(some) = all.next(store).await? {
        for sealed in some {
            let Some(sums) = catalog::sums(store, &sealed.file).await? else {
                let detail = "the catalog has no checksums of it".to_owned();
                found.push(Unsound { file: sealed.file, detail });
                continue;
            };
            let (path, bytes, rows) = (files.path(&sealed.file), sealed.bytes, sealed.rows);
            let of = path.clone();
            let checked = store.segments.blocking(path, move || {
                let segment = Segment::open(&of, bytes, &sums)?;
                segment.verify().map(|()| segment.rows())
            });
            found.extend(unsound(sealed.file, rows, checked.await?));
        }
    }
    for sealed in catalog::runs(store).await? {
        let (path, bytes, entries) = (files.path(&sealed.file), sealed.bytes, sealed.entries);
        let (of, sums) = (path.clone(), sealed.sums);
        let checked = store.segments.blocking(path, move || {
            let run = Run::open(&of, bytes, &sums)?;
            run.verify().map(|()| run.len())
        });
        found.extend(unsound(sealed.file, entries, checked.await?));
    }
    Ok(found)
}

/// The fault of a file that must have so many rows, if it has one.
fn unsound(file: String, expected: u64, rows: Result<u64, FileError>) -> Option<Unsound> {
    let detail = match rows {
        Ok(found) if found == expected => return None,
        Ok(found) => format!("it has {found} rows, and {expected} in the catalog"),
        Err(error) => error.to_string(),
    };
    Some(Unsound { file, detail })
}

/// Reads every event of every project, and compares their numbers with the counts. Projects
/// that are being deleted are skipped, because their events go away first.
///
/// # Errors
/// When heads or projects cannot be read.
pub async fn check_counts(store: &Store) -> Result<Vec<Miscount>> {
    let mut found = Vec::new();
    let (mut lanes, mut before) = (Heads::all(store).await?, None);
    while let Some(some) = lanes.next(store).await? {
        for Lane { project, .. } in some {
            if before.replace(project) == Some(project)
                || projects::find(store, project).await?.is_none()
            {
                continue;
            }
            found.extend(miscount(store, project).await?);
        }
    }
    Ok(found)
}

async fn miscount(store: &Store, project: ProjectId) -> Result<Option<Miscount>> {
    let heads = heads(store, project).await?;
    let counted = heads.values().filter_map(|head| u64::try_from(head.count).ok()).sum::<u64>();
    let expected = counted.saturating_sub(removed(store, project).await?);
    let last = heads.values().filter_map(|head| u64::try_from(head.last).ok()).max();
    let selection = Selection { up_to: last.unwrap_or(0), ..Selection::default() };
    let (mut events, mut failure) = (0, None);
    match Scan::begin(store, project, selection).await {
        Ok(mut scan) => loop {
            match scan.next().await {
                Ok(Some(batch)) => events += batch.len() as u64,
                Ok(None) => break,
                Err(error) => {
                    failure = Some(error.to_string());
                    break;
                }
            }
        },
        Err(error @ Error::Stopped) => return Err(error),
        Err(error) => failure = Some(error.to_string()),
    }
    let is_sound = failure.is_none() && events == expected;
    Ok((!is_sound).then_some(Miscount { project, expected, found: events, failure }))
}
