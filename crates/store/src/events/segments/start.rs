//! What a start checks and repairs: the files are those of the catalog, and all runs are
//! open before the first event is applied.
//!
//! - A file without a row is the rest of a seal or a merge that did not end. It is removed.
//! - A row without a file is damage. It is reported, and so is every read of the segment.
//! - A run whose filter is damaged is written again from its uuids. A run whose uuids are
//!   damaged or that is missing is written again from the segments.

use std::collections::BTreeSet;
use std::sync::Arc;

use weir_segments::run::{self, Entry, Key, Place, Run, RunWriter};
use weir_segments::{Error as FileError, RunWritten, Segment};

use super::catalog::{self, SealedRun, Segments};
use super::files::Files;
use super::read;
use super::runs::{self, HeldRun, unusable};
use crate::db::Operation;
use crate::transaction::Transaction;
use crate::{Result, Store};

/// A run that is written from segments has about so many uuids,
const MOST: usize = 1_000_000;
/// and this level.
const LEVEL: u8 = 1;

const REPLACE: Operation = Operation::write("replace a run of event uuids");

/// Opens all runs, and removes the files that belong to nothing.
///
/// # Errors
/// [`crate::Error::File`] when the directory cannot be read, and errors of the store.
pub(crate) async fn start(store: &Store) -> Result<()> {
    let Some(files) = store.segments.files.clone() else { return Ok(()) };
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
        match open(store, &files, sealed).await? {
            Ok(held) => hold(store, held),
            Err(sealed) => damaged.push(sealed),
        }
    }
    match damaged.as_slice() {
        [] => Ok(()),
        lost => restore(store, &files, lost).await,
    }
}

/// Removes files that the catalog does not know, and reports missing ones.
async fn compare(store: &Store, files: &Files, known: BTreeSet<String>) -> Result<()> {
    let segments = &store.segments;
    let of = files.clone();
    let root = files.path("");
    let compared = segments.blocking(root, move || {
        let present = of.all().map_err(|source| unusable(&of.path(""), source))?;
        let unknown: Vec<String> = present.difference(&known).cloned().collect();
        of.remove(&unknown);
        let missing: Vec<String> = known.difference(&present).cloned().collect();
        Ok((unknown.len(), missing))
    });
    let (removed, missing) = compared.await?.map_err(|error| segments.error(error))?;
    if removed > 0 {
        tracing::info!(files = removed, "removed files of seals and merges that did not end");
    }
    for name in missing {
        let path = files.path(&name);
        let detail = format!("{} does not exist", path.display());
        // It is logged and counted. A reader of the segment gets the error.
        let _ = segments.damaged(path, detail);
    }
    Ok(())
}

fn hold(store: &Store, held: HeldRun) {
    let mut runs = store.segments.runs().to_vec();
    runs.push(held);
    runs.sort_by_key(|held| held.sealed.number);
    store.segments.set_runs(runs);
}

/// Opens a run. If only its filter is damaged, it is written again. `Err` with the run:
/// its uuids are lost.
async fn open(
    store: &Store,
    files: &Files,
    sealed: SealedRun,
) -> Result<Result<HeldRun, SealedRun>> {
    let segments = &store.segments;
    let path = files.path(&sealed.file);
    let of_run = sealed.clone();
    let file = path.clone();
    let opened =
        segments.blocking(file.clone(), move || Run::open(&file, of_run.bytes, &of_run.sums));
    let error = match opened.await? {
        Ok(run) => return Ok(Ok(HeldRun { sealed: Arc::new(sealed), run })),
        Err(error) => error,
    };
    // Logged and counted.
    let _ = segments.error(error);
    let (of, of_run) = (files.clone(), sealed.clone());
    let rewritten = segments.blocking(path.clone(), move || {
        let name = of.new_run().map_err(|source| unusable(&of.path("uuids"), source))?;
        let (damaged, path) = (of.path(&of_run.file), of.path(&name));
        let filter = runs::filter(of_run.level);
        let written = run::rebuild(&damaged, of_run.bytes, &of_run.sums, &path, filter)?;
        let run = Run::open(&path, written.bytes, &written.sums)?;
        Ok((name, written, run))
    });
    match rewritten.await? {
        Ok((name, written, run)) => {
            let held = replace(store, &sealed, name, written, run).await?;
            tracing::warn!(file = %path.display(), "the filter of a run was written again");
            Ok(Ok(held))
        }
        Err(_) => Ok(Err(sealed)),
    }
}

/// Puts a new file in the place of that of a run.
async fn replace(
    store: &Store,
    old: &SealedRun,
    file: String,
    written: RunWritten,
    run: Run,
) -> Result<HeldRun> {
    let sealed = runs::sealed(old.number, file, written, old.level, old.is_pending);
    let row = Arc::new(sealed.row(store.db.keyspace().await?)?);
    let work = move |tx: Transaction| {
        let row = Arc::clone(&row);
        async move { tx.set(&row).await }
    };
    store.db.transact(REPLACE, (), work).await?;
    runs::remove(store, vec![old.file.clone()]).await?;
    Ok(HeldRun { sealed: Arc::new(sealed), run })
}

/// Writes the uuids of lost runs again, from all segments: those that no other run has.
/// Uuids of segments that were removed, or are damaged too, stay lost.
async fn restore(store: &Store, files: &Files, lost: &[SealedRun]) -> Result<()> {
    tracing::error!(
        runs = lost.len(),
        "runs of event uuids are lost; they are written again from the segments"
    );
    let mut waiting: Vec<Entry> = Vec::new();
    let mut all = Segments::all(store).await?;
    while let Some(some) = all.next(store).await? {
        for sealed in some {
            let segment = match read::open(store, &sealed).await {
                Ok(Some(segment)) => segment,
                Ok(None) => continue,
                Err(_) => {
                    tracing::error!(file = sealed.file, "the uuids of this segment stay lost");
                    continue;
                }
            };
            let (project, partition) = (sealed.project.0, sealed.partition);
            let known = store.segments.runs();
            let path = files.path(&sealed.file);
            let missing = store
                .segments
                .blocking(path, move || Ok(missing(&segment, project, partition, &known)));
            let (entries, failed) = missing.await?.map_err(|error| store.segments.error(error))?;
            waiting.extend(entries);
            if let Some(error) = failed {
                let _ = store.segments.error(error);
                tracing::error!(file = sealed.file, "some uuids of this segment stay lost");
            }
            if waiting.len() >= MOST {
                add(store, files, std::mem::take(&mut waiting)).await?;
            }
        }
    }
    if !waiting.is_empty() {
        add(store, files, waiting).await?;
    }
    let keyspace = store.db.keyspace().await?;
    let rows = lost.iter().map(|run| Ok(run.key(keyspace)?.into_bytes()));
    let rows = Arc::new(rows.collect::<Result<Vec<_>>>()?);
    let work = move |tx: Transaction| {
        let rows = Arc::clone(&rows);
        async move { tx.delete(&rows).await }
    };
    store.db.transact(REPLACE, (), work).await?;
    runs::remove(store, lost.iter().map(|run| run.file.clone()).collect()).await
}

/// The entries for the events of a segment that no run has, and the first error.
fn missing(
    segment: &Segment,
    project: i64,
    partition: u16,
    known: &[HeldRun],
) -> (Vec<Entry>, Option<FileError>) {
    let (mut entries, mut failed) = (Vec::new(), None);
    for block in segment.blocks() {
        let events = match segment.block(block.row, block.rows) {
            Ok(events) => events,
            Err(error) => {
                failed.get_or_insert(error);
                continue;
            }
        };
        let of_block: Vec<Entry> = (0..)
            .zip(&events)
            .map(|(index, event)| Entry {
                key: Key { project, uuid: event.uuid },
                place: Place { partition, first: block.first, index },
            })
            .collect();
        let keys: Vec<Key> = of_block.iter().map(|entry| entry.key).collect();
        let mut is_known = vec![false; keys.len()];
        for held in known {
            // Where a run is damaged, its uuids are added.
            let found = held.run.find(&keys).unwrap_or_default();
            for (known, found) in is_known.iter_mut().zip(found) {
                *known |= found.is_some();
            }
        }
        let new = of_block.into_iter().zip(is_known).filter(|(_, is_known)| !is_known);
        entries.extend(new.map(|(entry, _)| entry));
    }
    (entries, failed)
}

/// Adds a run with these entries.
async fn add(store: &Store, files: &Files, mut entries: Vec<Entry>) -> Result<()> {
    let of = files.clone();
    let written = store.segments.blocking(files.path("uuids"), move || {
        entries.sort_unstable_by_key(|entry| entry.key);
        let name = of.new_run().map_err(|source| unusable(&of.path("uuids"), source))?;
        let path = of.path(&name);
        let mut writer = RunWriter::create(&path, runs::filter(LEVEL))?;
        for entry in entries {
            writer.push(entry)?;
        }
        let written = writer.finish()?;
        let run = Run::open(&path, written.bytes, &written.sums)?;
        Ok((name, written, run))
    });
    let (name, written, run) = written.await?.map_err(|error| store.segments.error(error))?;
    let number = catalog::next_run(store).await?;
    let sealed = runs::sealed(number, name, written, LEVEL, false);
    let row = Arc::new(sealed.row(store.db.keyspace().await?)?);
    let work = move |tx: Transaction| {
        let row = Arc::clone(&row);
        async move { tx.set(&row).await }
    };
    store.db.transact(REPLACE, (), work).await?;
    hold(store, HeldRun { sealed: Arc::new(sealed), run });
    Ok(())
}
