//! Snapshots of persons for other engines: a table of its own in the directory of the table
//! of events.
//!
//! Each snapshot is one commit that puts its files in the place of those of the snapshot
//! before. These stay until the next one, for readers that have begun.
//!
//! What belongs here: which persons are written, and when their files go away. What does
//! not: the form of the files (`weir-segments`).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use uuid::Uuid;
use weir_model::persons::PersonRef;
use weir_model::{PersonId, ProjectId, Timestamp};
use weir_segments::Error as FileError;
use weir_segments::delta::{self, Table, TableFile};
use weir_segments::persons::{PersonRow, PersonsWriter, PersonsWritten};

use super::files::{Files, PERSONS, unusable};
use super::seal::{Heads, Lane};
use super::{change, objects};
use crate::disk::DiskLevel;
use crate::engine::create_private;
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

/// The files of a snapshot, which nothing names yet.
struct Snapshot {
    directory: PathBuf,
    files: Vec<TableFile>,
    open: Option<(String, PersonsWriter)>,
    now: Timestamp,
}

impl Snapshot {
    fn push(&mut self, person: PersonRef) -> Result<(), FileError> {
        let (_, writer) = match &mut self.open {
            Some(open) => open,
            closed => {
                let name = format!("{}.parquet", Uuid::new_v4().simple());
                let writer = PersonsWriter::create(&self.directory.join(&name))?;
                closed.insert((name, writer))
            }
        };
        writer.push(PersonRow {
            uuid: person.id.0,
            distinct_ids: person.distinct_ids,
            properties: person.properties,
            created_at: person.created_at.micros(),
            is_identified: person.is_identified,
        })?;
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

/// Puts these files in the place of those that the table has. Returns the old ones.
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
