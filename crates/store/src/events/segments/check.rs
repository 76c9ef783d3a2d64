//! Comparing everything with the catalog, for `weir check`: files with their checksums, and
//! the events that can be read with the counts.
//!
//! What belongs here: finding faults. What does not: repairing (`repair`), and what a start
//! notices anyway (`start`).

use std::io::ErrorKind;

use weir_model::ProjectId;
use weir_segments::{Error as FileError, Run, Segment};

use super::catalog::{self, SealedSegment, Segments};
use super::files::Files;
use super::objects;
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
    /// The project that was counted.
    pub project: ProjectId,
    /// The events that it must have.
    pub expected: u64,
    /// The events that can be read.
    pub found: u64,
    /// What ended the reading, if not all events were read.
    pub failure: Option<String>,
}

/// Reads every file of the catalog, and compares it with its checksums and its row. Segments
/// in a bucket are fetched. What is unsound is added to `found`, also if an error ends the
/// comparison.
///
/// # Errors
/// When the catalog or a file cannot be read for another reason than damage.
pub async fn check_files(store: &Store, found: &mut Vec<Unsound>) -> Result<()> {
    let Some(files) = store.segments.files.clone() else { return Ok(()) };
    let mut all = Segments::all(store).await?;
    while let Some(some) = all.next(store).await? {
        for sealed in some {
            let Some(sums) = catalog::sums(store, &sealed.file).await? else {
                let detail = "the catalog has no checksums of it".to_owned();
                found.push(Unsound { file: sealed.file, detail });
                continue;
            };
            if let Some(detail) = fetch_missing(store, &files, &sealed, &sums).await? {
                found.push(Unsound { file: sealed.file, detail });
                continue;
            }
            let (path, bytes, rows) = (files.path(&sealed.file), sealed.bytes, sealed.rows);
            let of = path.clone();
            let checked = store.segments.blocking(path, move || {
                let segment = Segment::open(&of, bytes, &sums)?;
                segment.verify().map(|()| segment.rows())
            });
            found.extend(unsound(store, sealed.file, rows, checked.await)?);
        }
    }
    for sealed in catalog::runs(store).await? {
        let (path, bytes, entries) = (files.path(&sealed.file), sealed.bytes, sealed.entries);
        let (of, sums) = (path.clone(), sealed.sums);
        let checked = store.segments.blocking(path, move || {
            let run = Run::open(&of, bytes, &sums)?;
            run.verify().map(|()| run.len())
        });
        found.extend(unsound(store, sealed.file, entries, checked.await)?);
    }
    Ok(())
}

/// Fetches a segment that is in the bucket alone. Returns what is wrong with it, if it cannot
/// be fetched.
async fn fetch_missing(
    store: &Store,
    files: &Files,
    sealed: &SealedSegment,
    sums: &[u8],
) -> Result<Option<String>> {
    let Some(objects) = &store.segments.objects else { return Ok(None) };
    if files.path(&sealed.file).exists() {
        return Ok(None);
    }
    let absent = "it is neither in the data directory nor in the bucket".to_owned();
    let fetched = objects::fetch(store, sealed, sums).await;
    // A server that runs may have claimed the bucket since the links were made.
    if matches!(fetched, Err(Error::Bucket { .. }))
        && objects.is_absent(files, &sealed.file).await?
    {
        return Ok(Some(absent));
    }
    match fetched {
        Ok(found) => Ok(found.is_none().then_some(absent)),
        Err(Error::Damaged { detail, .. }) => Ok(Some(detail)),
        Err(error) => Err(error),
    }
}

/// The fault of a file that must have so many rows, if it has one.
fn unsound(
    store: &Store,
    file: String,
    expected: u64,
    rows: Result<Result<u64, FileError>>,
) -> Result<Option<Unsound>> {
    let detail = match rows {
        Ok(Ok(found)) if found == expected => return Ok(None),
        Ok(Ok(found)) => format!("it has {found} rows, and {expected} in the catalog"),
        Ok(Err(error @ FileError::Io { .. })) if !is_missing(&error) => {
            return Err(store.segments.error(error));
        }
        Ok(Err(error)) => error.to_string(),
        // A panic of a reader.
        Err(error @ Error::Damaged { .. }) => error.to_string(),
        Err(error) => return Err(error),
    };
    Ok(Some(Unsound { file, detail }))
}

fn is_missing(error: &FileError) -> bool {
    matches!(error, FileError::Io { source, .. } if source.kind() == ErrorKind::NotFound)
}

/// Whether an error says nothing about the data.
fn is_of_system(error: &Error) -> bool {
    match error {
        Error::File { source, .. } => source.kind() != ErrorKind::NotFound,
        Error::Stopped | Error::Bucket { .. } | Error::DiskLow => true,
        _ => false,
    }
}

/// Reads every event of every project, and compares their numbers with the counts. Projects
/// that are being deleted are skipped, because their events go away first. What differs is
/// added to `found`, also if an error ends the comparison.
///
/// # Errors
/// When heads or projects cannot be read.
pub async fn check_counts(store: &Store, found: &mut Vec<Miscount>) -> Result<()> {
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
    Ok(())
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
                Err(error) if is_of_system(&error) => return Err(error),
                Err(error) => {
                    failure = Some(error.to_string());
                    break;
                }
            }
        },
        Err(error) if is_of_system(&error) => return Err(error),
        Err(error) => failure = Some(error.to_string()),
    }
    // Events that are to be erased are not shown, and still counted until they are removed.
    let erased = store.erasures.of(project);
    let is_waiting = erased.is_some_and(|erased| erased.has_stored_events());
    let is_fewer = is_waiting && events < expected;
    let is_sound = failure.is_none() && (events == expected || is_fewer);
    Ok((!is_sound).then_some(Miscount { project, expected, found: events, failure }))
}
