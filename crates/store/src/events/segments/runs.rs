//! Runs: where the events of sealed uuids are.
//!
//! Every seal adds a run, and runs of one level are merged, so that there are few. A merge
//! leaves out the uuids of deleted projects. All runs are held open, with their filters in
//! memory.
//!
//! A uuid is searched for in the index first and then in the runs. A seal adds its run
//! before it removes entries of the index. So a uuid that moves between the two searches is
//! found by one of them, if the runs are taken after the index was read.
//!
//! What belongs here: searching runs, merging them, and removing their uuids from the
//! index. What does not: the index itself (`uuids`).

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use weir_model::ProjectId;
use weir_segments::run::{self, Entry, FilterSize, Key, Run, RunWriter};
use weir_segments::{Error as FileError, RunWritten};

use super::catalog::{self, SealedRun};
use super::files::{Files, Unlisted};
use super::repair::RunDamage;
use super::{Segments, repair};
use crate::db::Operation;
use crate::disk::DiskLevel;
use crate::events::uuids::{Place, UuidKeys};
use crate::transaction::Transaction;
use crate::{Error, Result, Store, projects};

/// Runs of one level that are merged into one of the next level.
const FAN_IN: usize = 8;
/// Runs are not merged into one with more uuids: its file has some gigabytes, and there is
/// a second copy of it during the merge.
const MOST_ENTRIES: u64 = 64 << 20;
/// From this level on, filters are small. They have most of all uuids.
const LARGE_LEVEL: u8 = 2;
/// Entries of the index that one transaction removes.
const CHUNK: usize = 4_000;

const CLEAR: Operation = Operation::delete("clear sealed event uuids");
const CLEARED: Operation = Operation::delete("sealed event uuids are cleared");
const MERGE: Operation = Operation::write("merge runs of event uuids");
const FORGET: Operation = Operation::delete("forget event uuids of a project");

/// A run of the catalog that is open.
#[derive(Clone)]
pub(super) struct HeldRun {
    pub(super) sealed: Arc<SealedRun>,
    pub(super) run: Run,
}

/// The result of a search for a uuid. The later one is worth more than the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::events) enum Found {
    /// The run with this number is damaged where the uuid would be, and cannot be repaired.
    /// The event is new, or cannot be read either.
    Lost(u64),
    /// The run with this number is damaged where the uuid would be. Its repair shows whether
    /// it has the uuid.
    Unreadable(u64),
    /// The event is there.
    At(Place),
}

/// Searches for uuids in all runs, in the order of `keys`. `None`: no run has the uuid.
///
/// The index of uuids must have been read before.
///
/// # Errors
/// When a file cannot be read. Damage is a result.
pub(in crate::events) async fn find(
    segments: &Arc<Segments>,
    keys: Arc<[Key]>,
) -> Result<Vec<Option<Found>>> {
    let runs = segments.runs();
    if runs.is_empty() || keys.is_empty() {
        return Ok(vec![None; keys.len()]);
    }
    let of = Arc::clone(segments);
    let search = move || {
        let mut found = vec![None; keys.len()];
        // Most lookups find their keys in the newest.
        for held in runs.iter().rev() {
            of.find_in(held, &keys, &mut found)?;
        }
        Ok(found)
    };
    segments.blocking(PathBuf::new(), search).await?.map_err(|error| segments.error(error))
}

/// As [`find`], but a run that is damaged where one of the uuids would be is an error until
/// it is repaired in the background (`repair`). The same call succeeds then.
///
/// # Errors
/// [`Error::Damaged`] with the file of that run, and errors of [`find`].
pub(in crate::events) async fn find_readable(
    segments: &Arc<Segments>,
    keys: Arc<[Key]>,
) -> Result<Vec<Option<Found>>> {
    let found = find(segments, keys).await?;
    let damaged = found.iter().flatten().find_map(|found| match found {
        Found::Unreadable(run) => Some(*run),
        Found::Lost(_) | Found::At(_) => None,
    });
    match damaged {
        Some(run) => Err(unreadable(segments, run)),
        None => Ok(found),
    }
}

/// Whether a run has one of these uuids.
///
/// # Errors
/// As [`find_readable`].
pub(in crate::events) async fn holds_any(
    segments: &Arc<Segments>,
    keys: Arc<[Key]>,
) -> Result<bool> {
    let found = find_readable(segments, keys).await?;
    Ok(found.into_iter().flatten().any(|found| matches!(found, Found::At(_))))
}

/// The error for a uuid that a damaged run may have, by the number of the run.
pub(in crate::events) fn unreadable(segments: &Segments, run: u64) -> Error {
    let runs = segments.runs();
    let held = runs.iter().find(|held| held.sealed.number == run);
    let name = held.map(|held| held.sealed.file.as_str()).unwrap_or_default();
    let file = segments.files.as_ref().map(|files| files.path(name)).unwrap_or_default();
    let what = match segments.damage_of(run) {
        RunDamage::Due => "is damaged and not repaired yet",
        RunDamage::Lasting => "is damaged again after several repairs",
        RunDamage::Postponed => "is damaged and not repaired, because a segment is damaged too",
    };
    let detail = format!("the run of event uuids {} {what}", file.display());
    Error::Damaged { file, detail }
}

impl Segments {
    fn find_in(
        &self,
        held: &HeldRun,
        keys: &[Key],
        found: &mut [Option<Found>],
    ) -> Result<(), FileError> {
        let run = &held.run;
        let places = match run.find(keys) {
            Ok(places) => places.into_iter().map(|place| place.map(at)).collect(),
            Err(error @ FileError::Io { .. }) => return Err(error),
            Err(error) => {
                let number = held.sealed.number;
                let state = self.damage_of(number);
                let damage = match state {
                    // Reported when the repair failed.
                    RunDamage::Postponed => Found::Lost(number),
                    RunDamage::Due | RunDamage::Lasting => Found::Unreadable(number),
                };
                // Reported once, however often the search is repeated.
                let is_new =
                    state != RunDamage::Postponed && self.suspect([held.sealed.file.as_str()]);
                if is_new {
                    self.error(error);
                }
                if is_new && state == RunDamage::Lasting {
                    repair::report_lasting(&held.sealed);
                }
                // Only those that lead to the damaged part are concerned.
                let one = |key: &Key| match run.find(std::slice::from_ref(key)) {
                    Ok(places) => Ok(places.into_iter().flatten().next().map(at)),
                    Err(error @ FileError::Io { .. }) => Err(error),
                    Err(_) => Ok(Some(damage)),
                };
                keys.iter().map(one).collect::<Result<Vec<_>, _>>()?
            }
        };
        for (known, new) in found.iter_mut().zip(places) {
            *known = (*known).max(new);
        }
        Ok(())
    }
}

fn at(place: run::Place) -> Found {
    let run::Place { partition, first, index } = place;
    Found::At(Place { partition, first, index })
}

/// The size of the filter of a run of this level.
pub(super) fn filter(level: u8) -> FilterSize {
    match level {
        LARGE_LEVEL.. => FilterSize::Eight,
        _ => FilterSize::Sixteen,
    }
}

/// Removes the entries of the index whose uuids are in a run, for all runs of which some
/// may be left. Entries of a damaged run stay until it is repaired.
///
/// The caller keeps other tasks from changing runs.
pub(super) async fn clear_pending(store: &Store) -> Result<()> {
    for held in store.segments.runs().iter().filter(|held| held.sealed.is_pending) {
        let run = held.run.clone();
        let path = match &store.segments.files {
            Some(files) => files.path(&held.sealed.file),
            None => continue,
        };
        let entries = store.segments.blocking(path, move || run.entries().collect()).await?;
        let entries: Vec<Entry> = match entries {
            Ok(entries) => entries,
            Err(error @ FileError::Io { .. }) => return Err(store.segments.error(error)),
            Err(_) => {
                store.segments.suspect([held.sealed.file.as_str()]);
                continue;
            }
        };
        clear(store, held, &entries).await?;
    }
    Ok(())
}

/// Removes the entries of the index for the uuids of a run, and records that this is done.
pub(super) async fn clear(store: &Store, held: &HeldRun, entries: &[Entry]) -> Result<()> {
    let keyspace = store.db.keyspace().await?;
    let mut of_project: Option<(i64, UuidKeys)> = None;
    for some in entries.chunks(CHUNK) {
        let mut keys = Vec::with_capacity(some.len());
        for Entry { key: Key { project, uuid }, .. } in some {
            let of = match &mut of_project {
                Some((known, of)) if known == project => of,
                other => {
                    let of = UuidKeys::of(keyspace, ProjectId(*project))?;
                    &mut other.insert((*project, of)).1
                }
            };
            keys.push(of.key(*uuid));
        }
        store.db.delete_keys(CLEAR, keys).await?;
    }
    let cleared = Arc::new(SealedRun { is_pending: false, ..SealedRun::clone(&held.sealed) });
    store.db.set_row(CLEARED, cleared.row(keyspace)?).await?;
    let mut runs = store.segments.runs().to_vec();
    for held in runs.iter_mut().filter(|held| held.sealed.number == cleared.number) {
        held.sealed = Arc::clone(&cleared);
    }
    store.segments.set_runs(runs);
    Ok(())
}

/// Merges runs while there are enough of one level.
///
/// The caller keeps other tasks from changing runs.
pub(super) async fn merge_due(store: &Store) -> Result<()> {
    while let Some(group) = due(&store.segments) {
        if let Err(error) = merge(store, &group).await {
            if let (Error::Damaged { file, .. }, Some(files)) = (&error, &store.segments.files) {
                let names = || group.iter().map(|held| held.sealed.file.as_str());
                let is_one = names().any(|name| files.path(name) == *file);
                let suspects = names().filter(|name| !is_one || files.path(name) == *file);
                store.segments.suspect(suspects);
            }
            let names = group.iter().map(|held| &held.sealed.file);
            store.segments.leave_out(error, names)?;
        }
    }
    Ok(())
}

/// The oldest runs of one level that can be merged, the lowest level first.
fn due(segments: &Segments) -> Option<Vec<HeldRun>> {
    let mut runs = segments.runs().to_vec();
    runs.retain(|held| !held.sealed.is_pending && !segments.is_unreadable(&held.sealed.file));
    let highest = runs.iter().map(|held| held.sealed.level).max()?;
    (0..=highest).find_map(|level| {
        let of_level = runs.iter().filter(|held| held.sealed.level == level);
        let group: Vec<HeldRun> = of_level.take(FAN_IN).cloned().collect();
        let entries: u64 = group.iter().map(|held| held.sealed.entries).sum();
        (group.len() == FAN_IN && entries <= MOST_ENTRIES).then_some(group)
    })
}

async fn merge(store: &Store, group: &[HeldRun]) -> Result<()> {
    let segments = &store.segments;
    let Some(files) = &segments.files else { return Ok(()) };
    let level = group.iter().map(|held| held.sealed.level).max().unwrap_or(0).saturating_add(1);
    let (files, inputs) = (files.clone(), group.iter().map(|held| held.run.clone()));
    let inputs: Vec<Run> = inputs.collect();
    // Read after the group was chosen: a project that was created later has no uuids in it.
    let kept: HashSet<i64> = projects::numbers(store).await?.into_iter().collect();
    let merged = segments.blocking(files.path(""), move || {
        let inputs: Vec<&Run> = inputs.iter().collect();
        NewRun::create(&files, |path| {
            run::merge(&inputs, path, filter(level), |project| kept.contains(&project))
        })
    });
    let merged = merged.await?.map_err(|error| segments.error(error))?;
    let merged = merged.listed(catalog::next_run(store).await?, level, false);
    let keyspace = store.db.keyspace().await?;
    let row = Arc::new(merged.sealed.row(keyspace)?);
    let old = group.iter().map(|held| Ok(held.sealed.key(keyspace)?.into_bytes()));
    let old = Arc::new(old.collect::<Result<Vec<_>>>()?);
    let work = move |tx: Transaction| {
        let (row, old) = (Arc::clone(&row), Arc::clone(&old));
        async move {
            tx.delete(&old).await?;
            tx.set(&row).await
        }
    };
    store.db.transact(MERGE, (), work).await?;
    let is_merged = |held: &HeldRun| group.iter().any(|of| of.sealed.number == held.sealed.number);
    let mut runs = segments.runs().to_vec();
    runs.retain(|held| !is_merged(held));
    runs.push(merged);
    segments.set_runs(runs);
    let names: Vec<String> = group.iter().map(|held| held.sealed.file.clone()).collect();
    remove(store, names).await
}

/// Removes the uuids of a deleted project from all runs. The caller keeps other tasks from
/// changing runs. A run that is damaged keeps them until it is repaired or merged.
///
/// # Errors
/// [`Error::DiskLow`] when the disk is low, and errors of files and of the store; a further
/// call continues.
pub(in crate::events) async fn forget(store: &Store, project: ProjectId) -> Result<()> {
    let segments = &store.segments;
    let Some(files) = segments.files.clone() else { return Ok(()) };
    for held in segments.runs().iter() {
        let (of, run, level) = (files.clone(), held.run.clone(), held.sealed.level);
        let path = files.path(&held.sealed.file);
        let has = run.clone();
        let has = segments.blocking(path.clone(), move || has.has_project(project.0)).await?;
        match has {
            Ok(true) => {}
            Ok(false) => continue,
            Err(error @ FileError::Io { .. }) => return Err(segments.error(error)),
            Err(error) => {
                let _ = segments.error(error);
                segments.suspect([held.sealed.file.as_str()]);
                continue;
            }
        }
        if store.db.disk().check() == DiskLevel::Low {
            return Err(Error::DiskLow);
        }
        let written = segments.blocking(path, move || {
            NewRun::create(&of, |path| {
                run::merge(&[&run], path, filter(level), |of| of != project.0)
            })
        });
        let new = match written.await? {
            Ok(new) => new,
            Err(error @ FileError::Damaged { .. }) => {
                let _ = segments.error(error);
                segments.suspect([held.sealed.file.as_str()]);
                continue;
            }
            Err(error) => return Err(segments.error(error)),
        };
        let new = (new.written.entries > 0).then_some(new);
        replace(store, FORGET, &held.sealed, new).await?;
        remove(store, vec![held.sealed.file.clone()]).await?;
    }
    Ok(())
}

/// Replaces a run in the catalog and among the open ones; `None`: removes it there. Its file
/// stays. The caller keeps other tasks from changing runs.
pub(super) async fn replace(
    store: &Store,
    operation: Operation,
    old: &SealedRun,
    new: Option<NewRun>,
) -> Result<()> {
    let new = new.map(|new| new.listed(old.number, old.level, old.is_pending));
    let keyspace = store.db.keyspace().await?;
    match &new {
        Some(held) => store.db.set_row(operation, held.sealed.row(keyspace)?).await?,
        None => store.db.delete_keys(operation, vec![old.key(keyspace)?.into_bytes()]).await?,
    }
    // In one step: a search must find the uuids at every moment.
    let mut runs = store.segments.runs().to_vec();
    runs.retain(|held| held.sealed.number != old.number);
    runs.extend(new);
    runs.sort_by_key(|held| held.sealed.number);
    store.segments.set_runs(runs);
    Ok(())
}

/// Removes files of which no row of the catalog has the name.
pub(super) async fn remove(store: &Store, names: Vec<String>) -> Result<()> {
    let Some(files) = store.segments.files.clone() else { return Ok(()) };
    store.segments.close(&names);
    let of = files.clone();
    let removed = store.segments.blocking(files.path(""), move || {
        of.remove(&names);
        Ok(names)
    });
    let names = removed.await?.map_err(|error| store.segments.error(error))?;
    if let Some(objects) = &store.segments.objects {
        objects.remove(&files, &names).await;
    }
    Ok(())
}

/// A new run, which is complete and durable. The catalog does not name it.
pub(super) struct NewRun {
    file: Unlisted,
    written: RunWritten,
    pub(super) run: Run,
}

impl NewRun {
    /// Writes a run, and opens it: what cannot be opened is not used.
    pub(super) fn create(
        files: &Files,
        write: impl FnOnce(&Path) -> Result<RunWritten, FileError>,
    ) -> Result<Self, FileError> {
        let file = files.new_run()?;
        let path = file.path();
        let written = write(&path)?;
        let run = Run::open(&path, written.bytes, &written.sums)?;
        Ok(Self { file, written, run })
    }

    /// Writes a run with these entries, each key once.
    pub(super) fn of(
        files: &Files,
        entries: &mut Vec<Entry>,
        level: u8,
    ) -> Result<Self, FileError> {
        entries.sort_unstable_by_key(|entry| entry.key);
        entries.dedup_by_key(|entry| entry.key);
        Self::create(files, |path| {
            let mut writer = RunWriter::create(path, filter(level))?;
            for entry in entries.iter() {
                writer.push(*entry)?;
            }
            writer.finish()
        })
    }

    /// The run and its row. To be called before the transaction that adds the row.
    pub(super) fn listed(self, number: u64, level: u8, is_pending: bool) -> HeldRun {
        let Self { file, written: RunWritten { entries, bytes, sums }, run } = self;
        let file = file.keep();
        let sealed = SealedRun { number, file, entries, bytes, sums, level, is_pending };
        HeldRun { sealed: Arc::new(sealed), run }
    }
}
