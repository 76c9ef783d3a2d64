//! Snapshots of persons for other engines: a table of its own in the directory of the table
//! of events.
//!
//! Each snapshot is one commit that replaces the files of the snapshot before by its own.
//! The old files stay until the next one, for readers that have begun. A snapshot with erased
//! persons is written again without them, and its files are removed immediately.
//!
//! What belongs here: which persons are written, and when their files are removed. What does
//! not: the form of the files (`weir-segments`).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use uuid::Uuid;
use weir_model::persons::PersonRef;
use weir_model::{PersonId, ProjectId, Timestamp};
use weir_segments::Error as FileError;
use weir_segments::delta::{self, Table, TableFile};
use weir_segments::persons::{PersonRow, PersonsWriter, PersonsWritten, see_groups as persons_of};

use super::files::{Files, PERSONS, unusable};
use super::seal::{Heads, Lane};
use super::{change, objects};
use crate::disk::DiskLevel;
use crate::engine::create_private;
use crate::erasures::Erased;
use crate::hash_ranges::ScanLimits;
use crate::{Error, Result, Store, persons};

/// Persons of a page.
const PAGE: usize = 1_000;
/// Records that are read for a page: those of merged persons are passed over.
const RECORDS: usize = 10_000;
/// Persons of a file.
const FILE: u64 = 1_000_000;

/// What a call of [`write_persons`] wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PersonSnapshots {
    /// The number of projects.
    pub projects: usize,
    /// The number of persons in them.
    pub persons: u64,
}

/// Writes a snapshot of the persons of every project with events, while no task applies
/// events: each person is then written once, with all of its distinct ids.
///
/// # Errors
/// [`Error::DiskLow`] when the disk is low, [`Error::File`] when a file cannot be written,
/// [`Error::Bucket`] when the files cannot be uploaded, and errors of the store. A project
/// keeps its snapshot from before then.
pub async fn write_persons(store: &Store, now: Timestamp) -> Result<PersonSnapshots> {
    let mut written = PersonSnapshots::default();
    // Before the change, which holds the lock that this takes.
    while !objects::catch_up(store).await? {}
    let (mut heads, mut before) = (Heads::all(store).await?, None);
    while let Some(some) = heads.next(store).await? {
        for Lane { project, .. } in some {
            if before.replace(project) == Some(project) {
                continue;
            }
            let persons =
                change(store, move |store| async move { snapshot(&store, project, now).await });
            written.projects += 1;
            written.persons += persons.await?;
        }
    }
    Ok(written)
}

/// Writes the snapshot of a project. Returns the number of persons.
async fn snapshot(store: &Store, project: ProjectId, now: Timestamp) -> Result<u64> {
    let segments = &store.segments;
    let Some(files) = segments.files.clone() else { return Ok(0) };
    let directory = files.table(project).join(PERSONS);
    let created = {
        let directory = directory.clone();
        move || create_private(&directory).map_err(|source| unusable(&directory, source))
    };
    let created = segments.blocking(directory.clone(), created).await?;
    created.map_err(|error| segments.error(error))?;
    let mut new = Snapshot { directory: directory.clone(), files: Vec::new(), open: None, now };
    let mut from: Option<PersonId> = None;
    loop {
        if store.db.disk().check() == DiskLevel::Low {
            return Err(Error::DiskLow);
        }
        let limits = ScanLimits::records(RECORDS);
        let page = persons::page(store, project, from, PAGE, limits, |_| true).await?;
        let pushed = segments.blocking(directory.clone(), move || {
            page.persons.into_iter().try_for_each(|person| new.push(person))?;
            Ok(new)
        });
        new = pushed.await?.map_err(|error| segments.error(error))?;
        from = page.next;
        if from.is_none() {
            break;
        }
    }
    let (of, millis) = (directory.clone(), now.micros() / 1_000);
    let committed = segments.blocking(directory, move || {
        let new = new.finish()?;
        let rows = new.iter().map(|file| file.rows).sum();
        let before = commit(&of, &new, millis)?;
        let version = remove_unused(&of, &new, &before)?;
        Ok((rows, version))
    });
    let (rows, version) = committed.await?.map_err(|error| segments.error(error))?;
    if let Some(version) = version {
        publish(store, &files, project, version).await?;
    }
    Ok(rows)
}

/// Writes the snapshot of a project again without erased persons, if it has some. One that
/// cannot be read is removed: it is a copy, and can be made again.
///
/// # Errors
/// [`Error::DiskLow`] when the disk is low, [`Error::Bucket`] when the bucket cannot be used,
/// and [`Error::File`] when a file cannot be written.
pub(crate) async fn erase_snapshot(
    store: &Store,
    project: ProjectId,
    erased: &Arc<Erased>,
    now: Timestamp,
) -> Result<()> {
    let erased = Arc::clone(erased);
    let work =
        move |store: Store| async move { erase_from_snapshot(&store, project, erased, now).await };
    change(store, work).await
}

async fn erase_from_snapshot(
    store: &Store,
    project: ProjectId,
    erased: Arc<Erased>,
    now: Timestamp,
) -> Result<()> {
    let segments = &store.segments;
    let Some(files) = segments.files.clone() else { return Ok(()) };
    let directory = files.table(project).join(PERSONS);
    if !directory.exists() {
        return Ok(());
    }
    if store.db.disk().check() == DiskLevel::Low {
        return Err(Error::DiskLow);
    }
    let of = directory.clone();
    let written = segments.blocking(directory.clone(), move || rewrite(&of, &erased, now));
    let written = written.await?;
    if let Some(objects) = &segments.objects {
        // The next pass removes objects whose files do not exist.
        objects.untidy();
    }
    let version = match written {
        Ok(version) => version,
        Err(error @ (FileError::Damaged { .. } | FileError::UnknownFormat { .. })) => {
            tracing::warn!(%project, %error, "a snapshot of persons is removed; make it again");
            let of = directory.clone();
            let removed = segments.blocking(directory, move || {
                std::fs::remove_dir_all(&of).map_err(|source| unusable(&of, source))
            });
            return removed.await?.map_err(|error| segments.error(error));
        }
        Err(error) => return Err(segments.error(error)),
    };
    match version {
        Some(version) => publish(store, &files, project, version).await,
        None => Ok(()),
    }
}

/// Writes a snapshot again, if it has erased persons. Returns the version of the table then.
fn rewrite(directory: &Path, erased: &Erased, now: Timestamp) -> Result<Option<u64>, FileError> {
    let table = Table::open(directory)?;
    let paths: Vec<PathBuf> = table.paths().map(|path| directory.join(path)).collect();
    let is_erased = |person: &PersonRow| erased.takes_person(person.uuid, &person.distinct_ids);
    let mut has_erased = false;
    for path in &paths {
        persons_of(path, |group| {
            has_erased |= group.iter().any(is_erased);
            Ok(())
        })?;
    }
    if !has_erased {
        // Files that a snapshot before has left may have them.
        return remove_unused(directory, &[], &names_of(&table)).map(|_| None);
    }
    let of = directory.to_owned();
    let mut new = Snapshot { directory: of, files: Vec::new(), open: None, now };
    for path in &paths {
        persons_of(path, |group| {
            let mut kept = group.into_iter().filter(|person| !is_erased(person));
            kept.try_for_each(|person| new.push_row(person))
        })?;
    }
    let new = new.finish()?;
    commit(directory, &new, now.micros() / 1_000)?;
    remove_unused(directory, &new, &[])
}

/// The names of the files of a table.
fn names_of(table: &Table) -> Vec<String> {
    table.paths().map(str::to_owned).collect()
}

/// The files of a snapshot, which nothing names yet.
struct Snapshot {
    directory: PathBuf,
    files: Vec<TableFile>,
    open: Option<(String, PersonsWriter)>,
    now: Timestamp,
}

impl Snapshot {
    fn push(&mut self, person: PersonRef) -> Result<(), FileError> {
        self.push_row(PersonRow {
            uuid: person.id.0,
            distinct_ids: person.distinct_ids,
            properties: person.properties,
            created_at: person.created_at.micros(),
            is_identified: person.is_identified,
        })
    }

    fn push_row(&mut self, person: PersonRow) -> Result<(), FileError> {
        let (_, writer) = match &mut self.open {
            Some(open) => open,
            closed => {
                let name = format!("{}.parquet", Uuid::new_v4().simple());
                let writer = PersonsWriter::create(&self.directory.join(&name))?;
                closed.insert((name, writer))
            }
        };
        writer.push(person)?;
        match writer.rows() >= FILE {
            true => self.close(),
            false => Ok(()),
        }
    }

    fn close(&mut self) -> Result<(), FileError> {
        let Some((path, writer)) = self.open.take() else { return Ok(()) };
        let PersonsWritten { bytes, rows, from_time, to_time } = writer.finish()?;
        let modified = self.now.micros() / 1_000;
        let arrivals = None;
        self.files.push(TableFile { path, bytes, rows, from_time, to_time, arrivals, modified });
        Ok(())
    }

    fn finish(mut self) -> Result<Vec<TableFile>, FileError> {
        self.close()?;
        Ok(self.files)
    }
}

/// Replaces the files of the table by these. Returns the old ones.
fn commit(directory: &Path, new: &[TableFile], now: i64) -> Result<Vec<String>, FileError> {
    let replace = || {
        let mut table = Table::open(directory)?;
        let before: Vec<String> = table.paths().map(str::to_owned).collect();
        if table.version().is_some() || !new.is_empty() {
            table.replace_persons(new, now)?;
        }
        Ok(before)
    };
    match replace() {
        Err(
            error @ (FileError::Damaged { .. }
            | FileError::UnknownFormat { .. }
            | FileError::ColumnChanged { .. }),
        ) => {
            tracing::warn!(directory = %directory.display(), %error, "a table is written again");
            delta::remove(directory)?;
            replace()
        }
        done => done,
    }
}

/// Removes files of older snapshots, and of those that did not end. Returns the version.
fn remove_unused(
    directory: &Path,
    new: &[TableFile],
    before: &[String],
) -> Result<Option<u64>, FileError> {
    let failed = |source| unusable(directory, source);
    let kept: BTreeSet<&str> = new
        .iter()
        .map(|file| file.path.as_str())
        .chain(before.iter().map(String::as_str))
        .collect();
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let is_ours = name.ends_with(".parquet") || name.ends_with(".parquet.tmp");
        if is_ours && !kept.contains(name.as_str()) {
            std::fs::remove_file(entry.path()).map_err(failed)?;
        }
    }
    delta::newest(directory)
}

/// Brings the table in the bucket to this version, if there is a bucket.
async fn publish(store: &Store, files: &Files, project: ProjectId, version: u64) -> Result<()> {
    let Some(objects) = &store.segments.objects else { return Ok(()) };
    let table = format!("{project}/{PERSONS}");
    let directory = files.path(&table);
    let failed = |source| Error::File { file: directory.clone(), source };
    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir(&directory).map_err(failed)? {
        if let Ok(name) = entry.map_err(failed)?.file_name().into_string()
            && name.ends_with(".parquet")
        {
            names.insert(format!("{table}/{name}"));
        }
    }
    objects.copy_table(files, &table, &names, version).await
}
