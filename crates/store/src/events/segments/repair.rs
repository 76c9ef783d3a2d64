//! Finding damaged runs, and writing them again.
//!
//! A search that meets damage notes the run ([`Segments::suspect`]), and is an error immediately:
//! a uuid that leads to the damaged part may be new, because filters are not exact. The server
//! waits for such a note ([`damage_found`]) and repairs the run in the background
//! ([`repair_runs`]). A sealing pass checks the noted runs too, and some of the others, so that
//! all are read from time to time. A start repairs the runs that cannot be opened.
//!
//! What can be read of a damaged run is written to a new one, and the uuids that are lost
//! with the rest are read from the segments of the projects that they can belong to. Only
//! uuids of events that were removed for their age, or erased with their person, stay lost.
//! The damaged file gets another name.
//! If a segment cannot be read either, then the damaged run stays as it is, and a uuid that
//! leads to the damaged part counts as new: an event of it that is stored already cannot be
//! read. After the next start it is tried again. While the disk is low nothing is repaired,
//! and a later attempt continues. The same holds while a bucket with needed segments does not
//! answer.
//! A run that repairs do not help is repaired a few times, and then rarely: its events wait,
//! and the log says what to do.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use weir_model::ProjectId;
use weir_segments::run::{self, Entry, Key, KeyRanges, Place, Run};
use weir_segments::{Error as FileError, Segment};

use super::catalog::{self, SealedRun, SealedSegment, Segments as Catalog};
use super::files::Files;
use super::runs::{self, HeldRun, NewRun};
use super::{LONGEST_BACKUP, Segments, change_within, lock, objects, read};
use crate::db::Operation;
use crate::disk::DiskLevel;
use crate::{Error, Result, Store};

/// A run that is written from segments has so many uuids, or those of one segment more: up
/// to two million, which take 100 MB of memory.
const MOST: usize = 1_000_000;
/// The level of such a run.
const LEVEL: u8 = 1;
/// Bytes of runs that one pass checks at most, and one run more.
const CHECK: u64 = 256 << 20;
/// After so many attempts on a run, further ones are rare: they do not help.
const ATTEMPTS: u32 = 3;
/// Time between two of the rare attempts.
const PAUSE: Duration = Duration::from_secs(60 * 60);

const REPLACE: Operation = Operation::write("replace a run of event uuids");
const REMOVE: Operation = Operation::delete("remove a run of event uuids");

/// What becomes of a run that is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunDamage {
    /// The next attempt may repair it.
    Due,
    /// Attempts have not helped. The next one comes after a pause.
    Lasting,
    /// It is left as it is until the next start.
    Postponed,
}

/// How far the check of all runs is.
#[derive(Debug, Default)]
pub(super) struct Checks {
    /// The number of the run that was checked last.
    last: u64,
    /// Damaged runs that are left as they are until the next start.
    postponed: BTreeSet<u64>,
    /// Damaged runs that no start or pass could open, and that are not repaired yet.
    unopened: Vec<SealedRun>,
    /// What was tried with suspect runs, by their numbers, which a repair does not change.
    attempts: BTreeMap<u64, Attempts>,
}

/// Attempts on one run since the start.
#[derive(Debug, Clone, Copy)]
struct Attempts {
    count: u32,
    /// When the last one ended.
    last: Instant,
}

impl Checks {
    /// Leaves runs that could not be opened to the next pass.
    pub(super) fn leave(&mut self, unopened: impl IntoIterator<Item = SealedRun>) {
        self.unopened.extend(unopened);
    }

    pub(super) fn damage_of(&self, number: u64) -> RunDamage {
        match self.attempts.get(&number) {
            _ if self.postponed.contains(&number) => RunDamage::Postponed,
            Some(attempts) if attempts.count >= ATTEMPTS => RunDamage::Lasting,
            _ => RunDamage::Due,
        }
    }

    /// Time until a run may be repaired; `None`: not before the next start.
    fn until_due(&self, number: u64, now: Instant) -> Option<Duration> {
        match self.damage_of(number) {
            RunDamage::Due => Some(Duration::ZERO),
            RunDamage::Lasting => {
                let attempts = self.attempts.get(&number);
                let since = attempts.map(|attempts| now.saturating_duration_since(attempts.last));
                Some(PAUSE.saturating_sub(since.unwrap_or(PAUSE)))
            }
            RunDamage::Postponed => None,
        }
    }

    /// Whether a run may be repaired now.
    fn is_due(&self, number: u64, now: Instant) -> bool {
        self.until_due(number, now).is_some_and(|wait| wait.is_zero())
    }

    fn note_attempt(&mut self, number: u64, now: Instant) {
        let attempts = self.attempts.entry(number).or_insert(Attempts { count: 0, last: now });
        *attempts = Attempts { count: attempts.count.saturating_add(1), last: now };
    }
}

/// Returns when a search has met damage of a run that can be repaired now
/// ([`repair_runs`]).
pub async fn damage_found(store: &Store) {
    let segments = &store.segments;
    loop {
        let suspected = segments.suspected.notified();
        match until_due(segments) {
            Some(wait) if wait.is_zero() => return,
            Some(wait) => {
                let _ = tokio::time::timeout(wait, suspected).await;
            }
            None => suspected.await,
        }
    }
}

/// Time until a suspect run may be repaired; `None`: there is none.
fn until_due(segments: &Segments) -> Option<Duration> {
    let runs = segments.runs();
    let suspects = lock(&segments.suspects).clone();
    let suspects = runs.iter().filter(|held| suspects.contains(&held.sealed.file));
    let (checks, now) = (lock(&segments.checks), Instant::now());
    suspects.filter_map(|held| checks.until_due(held.sealed.number, now)).min()
}

/// Repairs the runs in which a search has met damage. It waits for other changes of files, as
/// long as these take, and for a backup up to 60 s. Batches are applied meanwhile, unless they
/// have uuids that may be in the damaged part.
///
/// # Errors
/// [`Error::DiskLow`], [`Error::Bucket`], [`Error::File`] (also when a backup does not end in
/// time), and errors of the store. A further call tries again.
pub async fn repair_runs(store: &Store) -> Result<()> {
    let work = |store: Store| async move {
        let suspects = suspects(&store);
        check_runs(&store, suspects).await
    };
    change_within(store, Some(LONGEST_BACKUP), work).await
}

/// Checks some runs, and repairs those that are damaged. The caller keeps other tasks from
/// changing runs.
///
/// # Errors
/// The first error. What it concerns is checked again in the next pass.
pub(super) async fn check(store: &Store) -> Result<()> {
    let suspects = suspects(store);
    let mut next = next_to_check(store);
    next.extend(suspects);
    next.sort_by_key(|held| held.sealed.number);
    next.dedup_by_key(|held| held.sealed.number);
    check_runs(store, next).await
}

async fn check_runs(store: &Store, runs: Vec<HeldRun>) -> Result<()> {
    let segments = &store.segments;
    let Some(files) = segments.files.clone() else { return Ok(()) };
    let mut damaged = Vec::new();
    let mut failed = Ok(());
    for held in runs {
        let SealedRun { number, file, .. } = &*held.sealed;
        if !lock(&segments.checks).is_due(*number, Instant::now()) {
            continue;
        }
        let (path, run) = (files.path(file), held.run.clone());
        let error = match segments.blocking(path, move || run.verify()).await {
            Ok(Ok(())) => {
                let is_suspect = lock(&segments.suspects).contains(file);
                let is_known = lock(&segments.checks).attempts.contains_key(number);
                match (is_suspect, is_known) {
                    (false, _) => {}
                    // A search has read it wrongly, once.
                    (true, false) => trust(segments, &held.sealed),
                    (true, true) => damaged.push(SealedRun::clone(&held.sealed)),
                }
                continue;
            }
            Ok(Err(error @ FileError::Io { .. })) => segments.error(error),
            Ok(Err(error)) => {
                let _ = segments.error(error);
                damaged.push(SealedRun::clone(&held.sealed));
                continue;
            }
            Err(error) => error,
        };
        segments.suspect([file.as_str()]);
        failed = failed.and(Err(error));
    }
    segments.suspect(damaged.iter().map(|sealed| sealed.file.as_str()));
    let suspects = damaged.clone();
    let unopened = std::mem::take(&mut lock(&segments.checks).unopened);
    // Those that a pass repaired before it failed are held.
    let unopened: Vec<SealedRun> =
        unopened.into_iter().filter(|sealed| !is_held(segments, sealed.number)).collect();
    damaged.extend(unopened.iter().cloned());
    let repaired = match damaged.is_empty() || store.db.disk().check() != DiskLevel::Low {
        true => repair(store, &files, damaged).await,
        false => Err(Error::DiskLow),
    };
    match &repaired {
        Ok(()) => suspects.iter().for_each(|sealed| trust(segments, sealed)),
        Err(error) => {
            if matches!(error, Error::Damaged { .. }) {
                let (mut checks, now) = (lock(&segments.checks), Instant::now());
                suspects.iter().for_each(|sealed| checks.note_attempt(sealed.number, now));
            }
            lock(&segments.checks).leave(unopened);
        }
    }
    failed.and(repaired)
}

/// Ends the suspicion of a run that was found sound, or replaced. The next search decides.
fn trust(segments: &Segments, sealed: &SealedRun) {
    lock(&segments.checks).note_attempt(sealed.number, Instant::now());
    lock(&segments.suspects).remove(&sealed.file);
}

/// Logs that a run is damaged although it was repaired.
pub(super) fn report_lasting(sealed: &SealedRun) {
    tracing::error!(
        file = sealed.file,
        attempts = ATTEMPTS,
        pause_seconds = PAUSE.as_secs(),
        "a run of event uuids is damaged again after several repairs; events whose uuids may \
         be in it wait in the ingest log; check the disk and the memory of this machine, move \
         the data directory to another disk if this one fails, and restart"
    );
}

fn is_held(segments: &Segments, number: u64) -> bool {
    segments.runs().iter().any(|held| held.sealed.number == number)
}

/// The runs that are suspect. The caller keeps other tasks from changing runs.
fn suspects(store: &Store) -> Vec<HeldRun> {
    let segments = &store.segments;
    let runs = segments.runs();
    let mut suspects = lock(&segments.suspects);
    // The others were replaced.
    suspects.retain(|file| runs.iter().any(|held| held.sealed.file == *file));
    runs.iter().filter(|held| suspects.contains(&held.sealed.file)).cloned().collect()
}

/// The runs after the last one that was checked.
fn next_to_check(store: &Store) -> Vec<HeldRun> {
    let segments = &store.segments;
    let mut checks = lock(&segments.checks);
    let runs = segments.runs();
    let mut next = Vec::new();
    if runs.last().is_none_or(|newest| newest.sealed.number <= checks.last) {
        checks.last = 0;
    }
    let (mut bytes, mut last) = (0, checks.last);
    for held in runs.iter().filter(|held| held.sealed.number > checks.last) {
        if bytes > CHECK {
            break;
        }
        bytes += held.sealed.bytes;
        last = held.sealed.number;
        next.push(held.clone());
    }
    checks.last = last;
    next
}

/// Writes damaged or missing runs again. A run that cannot be repaired stays as it is.
///
/// # Errors
/// [`Error::File`] when a file cannot be read or written for another reason than damage,
/// [`Error::Bucket`] when segments are needed that are in a bucket alone and it does not
/// answer, and errors of the store. Then some runs are repaired, and there may be further
/// runs.
pub(super) async fn repair(store: &Store, files: &Files, damaged: Vec<SealedRun>) -> Result<()> {
    let mut incomplete: Vec<(SealedRun, Option<Readable>)> = Vec::new();
    for sealed in damaged {
        match salvage(store, files, &sealed).await? {
            Some(Readable { run, lost: 0, .. }) => {
                replace(store, files, &sealed, Some(run)).await?
            }
            readable => incomplete.push((sealed, readable)),
        }
    }
    if incomplete.is_empty() {
        return Ok(());
    }
    tracing::error!(
        runs = incomplete.len(),
        "runs of event uuids are damaged; what is lost is read from the segments"
    );
    let is_damaged = |number: u64| incomplete.iter().any(|(sealed, _)| sealed.number == number);
    let held = store.segments.runs();
    let sound = held.iter().filter(|held| !is_damaged(held.sealed.number));
    // What can be read of a run that is not open is found only if the run is replaced.
    let open = incomplete.iter().filter(|(sealed, _)| is_held(&store.segments, sealed.number));
    let readable = open.clone().filter_map(|(_, readable)| readable.as_ref());
    let known = sound.map(|held| &held.run).chain(readable.map(|readable| &readable.run.run));
    let known: Vec<Run> = known.cloned().collect();
    let lost: Vec<KeyRanges> = match open.count() == incomplete.len() {
        true => incomplete.iter().map(|(_, readable)| lost_keys(readable.as_ref())).collect(),
        false => vec![KeyRanges::all()],
    };
    let is_pending = incomplete.iter().any(|(sealed, _)| sealed.is_pending);
    let is_complete = restore(store, files, known.into(), lost.into(), is_pending).await?;
    for (sealed, readable) in incomplete {
        match is_complete {
            true => replace(store, files, &sealed, readable.map(|readable| readable.run)).await?,
            false => postpone(store, files, sealed).await?,
        }
    }
    Ok(())
}

/// The keys that are not in what can be read of a run.
fn lost_keys(readable: Option<&Readable>) -> KeyRanges {
    readable.map_or_else(KeyRanges::all, |readable| readable.keys.clone())
}

/// What can be read of a damaged run.
struct Readable {
    run: NewRun,
    /// The number of entries that cannot be read.
    lost: u64,
    /// The keys that they may have.
    keys: KeyRanges,
}

/// Writes what can be read of a run to a new one; `None`: nothing can be read.
async fn salvage(store: &Store, files: &Files, sealed: &SealedRun) -> Result<Option<Readable>> {
    let segments = &store.segments;
    let (of, of_run, damaged) = (files.clone(), sealed.clone(), files.path(&sealed.file));
    let runs = segments.runs();
    let held = runs.iter().find(|held| held.sealed.number == sealed.number);
    let run = held.map(|held| held.run.clone());
    let salvaged = segments.blocking(damaged.clone(), {
        let damaged = damaged.clone();
        move || {
            let filter = runs::filter(of_run.level);
            let (mut entries, mut lost, mut keys) = (0, 0, KeyRanges::default());
            let run = NewRun::create(&of, |path| {
                let salvaged = match &run {
                    Some(run) => run.salvage(path, filter)?,
                    None => run::salvage(&damaged, of_run.bytes, &of_run.sums, path, filter)?,
                };
                (entries, lost, keys) = (salvaged.written.entries, salvaged.lost, salvaged.keys);
                Ok(salvaged.written)
            })?;
            Ok((entries > 0).then_some(Readable { run, lost, keys }))
        }
    });
    match salvaged.await? {
        Ok(readable) => Ok(readable),
        Err(error) if is_lost(&error, &damaged) => Ok(None),
        Err(error) => Err(segments.error(error)),
    }
}

/// Whether this file is damaged or missing, so that reading it again does not help.
pub(super) fn is_lost(error: &FileError, path: &Path) -> bool {
    match error {
        FileError::Damaged { file, .. } => file == path,
        FileError::Io { file, source } => file == path && source.kind() == ErrorKind::NotFound,
        _ => false,
    }
}

/// Replaces a damaged run by a new one; `None`: removes the damaged one.
async fn replace(store: &Store, files: &Files, old: &SealedRun, new: Option<NewRun>) -> Result<()> {
    let is_again = new.is_some();
    runs::replace(store, if is_again { REPLACE } else { REMOVE }, old, new).await?;
    let (of, name) = (files.clone(), old.file.clone());
    let set_aside = store.segments.blocking(files.path(&old.file), move || {
        of.set_aside(&name);
        Ok(())
    });
    set_aside.await?.map_err(|error| store.segments.error(error))?;
    match is_again {
        true => tracing::warn!(file = old.file, "a damaged run of event uuids was written again"),
        false => tracing::warn!(file = old.file, "a run of event uuids was lost and is replaced"),
    }
    Ok(())
}

/// Leaves a damaged run as it is until the next start.
async fn postpone(store: &Store, files: &Files, sealed: SealedRun) -> Result<()> {
    let segments = &store.segments;
    lock(&segments.checks).postponed.insert(sealed.number);
    // It is not merged.
    lock(&segments.unreadable).insert(files.path(&sealed.file));
    let file = sealed.file.clone();
    let is_held = is_held(segments, sealed.number);
    match is_held || hold_if_opened(store, files, sealed).await?.is_none() {
        true => tracing::error!(
            file,
            "a run of event uuids is not repaired, because a segment is damaged too; \
             an event that is sent again is stored twice if it is in the damage of both"
        ),
        false => tracing::error!(
            file,
            "a run of event uuids is not repaired, because a segment is damaged too; \
             an event of it that is sent again is stored twice"
        ),
    }
    Ok(())
}

/// Opens a run and holds it. Returns the run and the error if it is damaged or missing.
pub(super) async fn hold_if_opened(
    store: &Store,
    files: &Files,
    sealed: SealedRun,
) -> Result<Option<(SealedRun, FileError)>> {
    let segments = &store.segments;
    let (path, of_run) = (files.path(&sealed.file), sealed.clone());
    let open = {
        let path = path.clone();
        move || Run::open(&path, of_run.bytes, &of_run.sums)
    };
    match segments.blocking(path.clone(), open).await? {
        Ok(run) => hold(store, HeldRun { sealed: Arc::new(sealed), run }),
        Err(error) if is_lost(&error, &path) => return Ok(Some((sealed, error))),
        Err(error) => return Err(segments.error(error)),
    }
    Ok(None)
}

/// Holds a run open.
fn hold(store: &Store, held: HeldRun) {
    let mut runs = store.segments.runs().to_vec();
    runs.push(held);
    runs.sort_by_key(|held| held.sealed.number);
    store.segments.set_runs(runs);
}

/// Adds runs with the `lost` uuids of the segments that none of the runs `known` has. Returns
/// whether all segments could be read.
async fn restore(
    store: &Store,
    files: &Files,
    known: Arc<[Run]>,
    lost: Arc<[KeyRanges]>,
    is_pending: bool,
) -> Result<bool> {
    let is_concerned = |project: ProjectId| lost.iter().any(|keys| keys.has_project(project.0));
    if needs_bucket(store, files, is_concerned).await? {
        objects::ask(store).await?;
    }
    let mut waiting: Vec<Entry> = Vec::new();
    let mut is_complete = true;
    let mut all = Catalog::all(store).await?;
    while let Some(some) = all.next(store).await? {
        for sealed in some {
            if !is_concerned(sealed.project) {
                continue;
            }
            let segment = match read::open(store, &sealed).await {
                Ok(Some(segment)) => segment,
                Ok(None) | Err(Error::Damaged { .. }) => {
                    is_complete = false;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let (project, partition) = (sealed.project.0, sealed.partition);
            let of_segment = |segment: Segment| {
                let (path, known, lost) =
                    (files.path(&sealed.file), Arc::clone(&known), Arc::clone(&lost));
                let work = move || missing(&segment, (project, partition), &known, &lost);
                store.segments.blocking(path, work)
            };
            let mut missing = of_segment(segment).await?;
            if matches!(missing, Ok((_, Some(_))))
                && let Some(segment) = objects::fetch_again(store, &sealed).await?
            {
                missing = of_segment(segment).await?;
            }
            let (entries, damage) = missing.map_err(|error| store.segments.error(error))?;
            waiting.extend(entries);
            if let Some(error) = damage {
                let _ = store.segments.error(error);
                is_complete = false;
            }
            if waiting.len() >= MOST {
                add(store, files, std::mem::take(&mut waiting), is_pending).await?;
            }
        }
    }
    if !waiting.is_empty() {
        add(store, files, waiting, is_pending).await?;
    }
    Ok(is_complete)
}

/// Whether a segment of these projects is in the bucket alone.
async fn needs_bucket(
    store: &Store,
    files: &Files,
    is_concerned: impl Fn(ProjectId) -> bool,
) -> Result<bool> {
    if store.segments.objects.is_none() {
        return Ok(false);
    }
    let mut all = Catalog::all(store).await?;
    while let Some(some) = all.next(store).await? {
        let is_elsewhere = |sealed: &SealedSegment| !files.path(&sealed.file).exists();
        if some.iter().any(|sealed| is_concerned(sealed.project) && is_elsewhere(sealed)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The entries for the events of a segment whose keys are among the lost ones and in no run,
/// and the first damage.
fn missing(
    segment: &Segment,
    (project, partition): (i64, u16),
    known: &[Run],
    lost: &[KeyRanges],
) -> Result<(Vec<Entry>, Option<FileError>), FileError> {
    let (mut entries, mut damage) = (Vec::new(), None);
    for block in segment.blocks() {
        let events = match segment.block(block.row, block.rows) {
            Ok(events) => events,
            Err(error @ FileError::Io { .. }) => return Err(error),
            Err(error) => {
                damage.get_or_insert(error);
                continue;
            }
        };
        let of_block: Vec<Entry> = (0..)
            .zip(&events)
            .map(|(index, event)| Entry {
                key: Key { project, uuid: event.uuid },
                place: Place { partition, first: block.first, index },
            })
            .filter(|entry| lost.iter().any(|keys| keys.has(&entry.key)))
            .collect();
        let keys: Vec<Key> = of_block.iter().map(|entry| entry.key).collect();
        let mut is_known = vec![false; keys.len()];
        for run in known {
            // Where a run is damaged, its uuids are added.
            let found = run.find(&keys).unwrap_or_default();
            for (known, found) in is_known.iter_mut().zip(found) {
                *known |= found.is_some();
            }
        }
        let new = of_block.into_iter().zip(is_known).filter(|(_, is_known)| !is_known);
        entries.extend(new.map(|(entry, _)| entry));
    }
    Ok((entries, damage))
}

/// Adds a run with these entries.
async fn add(
    store: &Store,
    files: &Files,
    mut entries: Vec<Entry>,
    is_pending: bool,
) -> Result<()> {
    let of = files.clone();
    let written =
        store.segments.blocking(files.path(""), move || NewRun::of(&of, &mut entries, LEVEL));
    let new = written.await?.map_err(|error| store.segments.error(error))?;
    let new = new.listed(catalog::next_run(store).await?, LEVEL, is_pending);
    store.db.set_row(REPLACE, new.sealed.row(store.db.keyspace().await?)?).await?;
    tracing::info!(uuids = new.sealed.entries, "lost event uuids were read from the segments");
    hold(store, new);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_on_a_run_become_rare() {
        let (mut checks, began) = (Checks::default(), Instant::now());
        for _ in 0..ATTEMPTS {
            assert!(checks.is_due(5, began));
            assert_eq!(checks.damage_of(5), RunDamage::Due);
            checks.note_attempt(5, began);
        }
        assert_eq!(checks.damage_of(5), RunDamage::Lasting);
        assert_eq!(checks.until_due(5, began), Some(PAUSE));
        assert!(!checks.is_due(5, began + PAUSE / 2));
        assert!(checks.is_due(5, began + PAUSE));
        assert!(checks.is_due(6, began), "others are not concerned");
        checks.note_attempt(5, began + PAUSE);
        assert!(!checks.is_due(5, began + PAUSE + PAUSE / 2), "one attempt for each pause");
        checks.postponed.insert(5);
        assert_eq!(checks.damage_of(5), RunDamage::Postponed);
        assert_eq!(checks.until_due(5, began + 9 * PAUSE), None);
    }
}
