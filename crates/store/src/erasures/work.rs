//! Removing the data of erased persons in the background, one project after another.
//!
//! 1. Stored events and samples are removed, and persons of snapshots ([`erase_stored`]).
//! 2. The log begins a new segment, so that the one with the events is removed once it is old
//!    enough ([`without_log_end`]). Any time after the erasure will do.
//! 3. When no reader of a table needs the replaced files any more, the files of the database
//!    are written again ([`finish`]).
//! 4. When the log begins behind the events, the erasure is done.
//!
//! Each step is recorded when it has ended, and does no harm when it is repeated. So a
//! process that is killed continues after its next start.
//!
//! What belongs here: the order of the steps, and failures. What does not: removing events
//! (`events/segments/erase`), and when steps are made (`weir-server`).

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use uuid::Uuid;
use weir_model::{ProjectId, Timestamp};

use super::active::{Erased, Pending};
use super::listed;
use super::rows::{self, Sweep};
use crate::db::Operation;
use crate::disk::DiskLevel;
use crate::{Error, Result, Store, events, warnings};

/// Writing the files of a range again. It waits for the compaction of the engine that runs.
const COMPACT: Operation =
    Operation::delete("write files again").within(Duration::from_secs(15 * 60));

/// Returns after a new erasure.
pub async fn changed(store: &Store) {
    store.erasures.changed().await;
}

/// Removes the stored events and samples of all erasures of which that is not done. A project
/// that fails does not keep the others from it.
///
/// # Errors
/// The first error, which is also recorded with its erasures. The next call continues.
pub async fn erase_stored(store: &Store, now: Timestamp) -> Result<()> {
    let mut first = Ok(());
    for (project, erased) in store.erasures.all() {
        let waiting: Vec<Arc<Pending>> =
            erased.pending.iter().filter(|one| !one.is_stored).cloned().collect();
        if waiting.is_empty() {
            continue;
        }
        let mut done = remove_stored(store, project, &erased, &waiting, now).await;
        for one in &waiting {
            let noted = match &done {
                Ok(()) => note_stored(store, project, one.id, now).await,
                Err(error) => note_failure(store, project, one.id, reason(error)).await,
            };
            done = done.and(noted);
        }
        if let Err(error) = done {
            tracing::warn!(%project, %error, "the data of erased persons is not removed yet");
            first = first.and(Err(error));
        }
    }
    first
}

async fn remove_stored(
    store: &Store,
    project: ProjectId,
    erased: &Arc<Erased>,
    waiting: &[Arc<Pending>],
    now: Timestamp,
) -> Result<()> {
    let mut failure = Ok(());
    if waiting.iter().any(|one| one.deletes_events) {
        match events::erase_blocks(store, project, erased).await {
            // A damaged block stays. What is in segments goes away all the same.
            Err(error @ Error::Shape { .. }) => failure = Err(error),
            done => done?,
        }
        // Merges may come in between. Names of files are never used again.
        let mut checked = HashSet::new();
        loop {
            let found = events::segments_to_check(store, project, erased, &checked).await?;
            if found.is_empty() {
                break;
            }
            for (left, sealed) in (0..found.len() as u64).rev().zip(found) {
                checked.insert(sealed.file.clone());
                match events::erase_segment(store, sealed, erased, now).await {
                    Ok(new) => {
                        checked.extend(new);
                        note_left(store, project, waiting, left).await?;
                    }
                    Err(error @ (Error::Bucket { .. } | Error::DiskLow | Error::Stopped)) => {
                        return Err(error);
                    }
                    // The others are checked all the same.
                    Err(error) => failure = failure.and(Err(error)),
                }
            }
        }
        warnings::erase(store, project, erased).await?;
    }
    events::erase_snapshot(store, project, erased, now).await?;
    failure
}

/// Why an erasure could not continue, for members: without paths and addresses.
fn reason(error: &Error) -> &'static str {
    match error {
        Error::DiskLow => "There is too little free disk space.",
        Error::Bucket { .. } => "The bucket of stored events cannot be used.",
        Error::Damaged { .. } | Error::Shape { .. } => "Stored events are damaged.",
        Error::File { .. } => "A file of stored events cannot be read or written.",
        _ => "The store cannot be used.",
    }
}

async fn note_left(
    store: &Store,
    project: ProjectId,
    waiting: &[Arc<Pending>],
    left: u64,
) -> Result<()> {
    let left = i64::try_from(left).unwrap_or(i64::MAX);
    for one in waiting.iter().filter(|one| one.deletes_events) {
        rows::update(store, project, one.id, move |report| report.segments_left = left).await?;
    }
    Ok(())
}

async fn note_stored(store: &Store, project: ProjectId, id: Uuid, now: Timestamp) -> Result<()> {
    // Before the files of the database are written again.
    rows::forget_texts(store, project, id).await?;
    rows::update(store, project, id, move |report| {
        report.stored_at = Some(now.micros());
        report.segments_left = 0;
        report.failure = None;
    })
    .await?;
    store
        .erasures
        .update(project, id, |one| Some(Pending { is_stored: true, texts: Vec::new(), ..one }));
    Ok(())
}

async fn note_failure(
    store: &Store,
    project: ProjectId,
    id: Uuid,
    reason: &'static str,
) -> Result<()> {
    rows::update(store, project, id, move |report| report.failure = Some(reason.to_owned())).await
}

/// What is in the log, and not yet known how far.
#[derive(Debug)]
pub struct WithoutLogEnd {
    erasures: Vec<(ProjectId, Uuid)>,
    sweeps: Vec<Sweep>,
}

impl WithoutLogEnd {
    /// Whether the log has nothing of the kind.
    pub fn is_empty(&self) -> bool {
        self.erasures.is_empty() && self.sweeps.is_empty()
    }
}

/// The erasures for which the log is to begin a new segment. Their events are in the log
/// before its end as of now.
///
/// # Errors
/// When the store cannot be read.
pub async fn without_log_end(store: &Store) -> Result<WithoutLogEnd> {
    let mut erasures = Vec::new();
    for (project, erased) in store.erasures.all() {
        let open = erased.pending.iter().filter(|one| one.deletes_events && one.log_end.is_none());
        erasures.extend(open.map(|one| (project, one.id)));
    }
    let mut sweeps = rows::sweeps(store).await?;
    sweeps.retain(|sweep| sweep.log_end.is_none());
    Ok(WithoutLogEnd { erasures, sweeps })
}

/// Notes the offset at which the new segment of the log begins.
///
/// # Errors
/// When the store cannot be written.
pub async fn note_log_end(store: &Store, of: WithoutLogEnd, end: u64) -> Result<()> {
    let offset = i64::try_from(end).unwrap_or(i64::MAX);
    for (project, id) in of.erasures {
        rows::update(store, project, id, move |report| report.log_end = Some(offset)).await?;
        let noted = |one| Some(Pending { log_end: Some(end), ..one });
        store.erasures.update(project, id, noted);
    }
    for sweep in of.sweeps {
        rows::set_sweep(store, Sweep { log_end: Some(offset), ..sweep }).await?;
    }
    Ok(())
}

/// Writes the files of the database again where that is due and `may_compact`, and ends what
/// is done. `log_begin` is the offset of the first byte that the log has. Returns whether
/// files were written.
///
/// # Errors
/// Errors of the store. The next call continues.
pub async fn finish(
    store: &Store,
    now: Timestamp,
    log_begin: u64,
    may_compact: bool,
) -> Result<bool> {
    let mut sweeps = rows::sweeps(store).await?;
    let compacts = may_compact && compact(store, now, &mut sweeps).await?;
    let is_gone = |end: Option<u64>| end.is_some_and(|end| end <= log_begin);
    // A start adds only those that are not done.
    listed::add_unlisted(store).await?;
    for (project, erased) in store.erasures.all() {
        for one in &erased.pending {
            if !one.is_compacted || one.deletes_events && !is_gone(one.log_end) {
                continue;
            }
            rows::end(store, project, one.id, now).await?;
            // Decoded before the events were removed.
            store.blocks.forget(project);
            store.erasures.update(project, one.id, |_| None);
            tracing::info!(%project, erasure = %one.id, "the data of an erased person is gone");
        }
    }
    for sweep in sweeps {
        let end = sweep.log_end.and_then(|end| u64::try_from(end).ok());
        if sweep.compacted == Some(true) && is_gone(end) {
            rows::end_sweep(store, sweep).await?;
        }
    }
    Ok(compacts)
}

/// Writes the files of the database again. Returns whether that was due.
async fn compact(store: &Store, now: Timestamp, sweeps: &mut [Sweep]) -> Result<bool> {
    let mut due: Vec<(ProjectId, Uuid)> = Vec::new();
    for (project, erased) in store.erasures.all() {
        let is_due = |one: &&Arc<Pending>| one.is_stored && !one.is_compacted;
        let some: Vec<Uuid> = erased.pending.iter().filter(is_due).map(|one| one.id).collect();
        if !some.is_empty() && !events::has_replaced(store, project) {
            due.extend(some.into_iter().map(|id| (project, id)));
        }
    }
    let is_due = |sweep: &Sweep| sweep.compacted != Some(true);
    let has_sweep = sweeps.iter().any(is_due);
    if due.is_empty() && !has_sweep {
        return Ok(false);
    }
    // A store in memory has no files.
    if events::has_files(store) {
        compact_files(store, &due, sweeps).await?;
    }
    for (project, id) in due {
        let at = now.micros();
        rows::update(store, project, id, move |report| report.compacted_at = Some(at)).await?;
        store.erasures.update(project, id, |one| Some(Pending { is_compacted: true, ..one }));
    }
    for sweep in sweeps.iter_mut().filter(|sweep| is_due(sweep)) {
        sweep.compacted = Some(true);
        rows::set_sweep(store, sweep.clone()).await?;
    }
    Ok(true)
}

/// Writes the files of the database again, one range after another. Between two, the engine
/// compacts as usual, for as long as the last one took: writers must not wait for an erasure.
async fn compact_files(store: &Store, due: &[(ProjectId, Uuid)], sweeps: &[Sweep]) -> Result<()> {
    let keyspace = store.db.keyspace().await?;
    let projects: BTreeSet<ProjectId> = due.iter().map(|(project, _)| *project).collect();
    let mut ranges = Vec::new();
    for project in projects {
        ranges.extend(rows::ranges_of_persons(keyspace, project)?);
    }
    let is_due = |sweep: &&Sweep| sweep.compacted != Some(true);
    let deleted: Vec<&Sweep> = sweeps.iter().filter(is_due).collect();
    let projects: BTreeSet<i64> =
        deleted.iter().flat_map(|sweep| sweep.projects.iter().copied()).collect();
    for project in projects {
        ranges.extend(rows::ranges_of_project(keyspace, ProjectId(project))?);
    }
    if !deleted.is_empty() {
        ranges.extend(rows::other_ranges(keyspace)?);
    }
    for range in ranges {
        if store.db.disk().check() == DiskLevel::Low {
            return Err(Error::DiskLow);
        }
        let begun = Instant::now();
        store.db.compact(COMPACT, range).await?;
        tokio::time::sleep(begun.elapsed()).await;
    }
    Ok(())
}

/// Notes that the data of deleted projects is to go away from the files of the database and
/// of the log.
///
/// # Errors
/// When the store cannot be written.
pub async fn request_sweep(store: &Store, projects: &[ProjectId], now: Timestamp) -> Result<()> {
    rows::add_sweep(store, projects, now).await?;
    store.erasures.notify();
    Ok(())
}
