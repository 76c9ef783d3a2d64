//! The tables of other engines: the segments of a project, listed in a log of Delta Lake.
//!
//! The catalog decides which segments a project has, and the log follows: a change of the
//! catalog [begins](begin), its transaction is committed, and then the log is, before any
//! file is deleted. A change that does not get as far leaves a log of which nothing is
//! known. The next pass of the sealing [compares](compare) it with the catalog. A log that
//! is damaged is written again. So no failure here is one of the seal, merge or removal; it
//! is logged.
//!
//! What belongs here: when the log is written, and from what. What does not: its form
//! (`weir_segments::delta`), and which segments there are (`catalog`).

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::Mutex;

use weir_model::{ProjectId, Timestamp};
use weir_segments::delta::{self, Change, Table, TableFile};
use weir_segments::{Error as FileError, TypedColumn};

use super::catalog::{self, SealedSegment, Segments};
use super::{lock, objects};
use crate::{Result, Store};

/// The versions of the logs that have exactly the segments of the catalog. The logs of
/// other projects are to be compared.
#[derive(Default)]
pub(super) struct Tables(Mutex<HashMap<ProjectId, u64>>);

/// A change of the segments of a project that has begun.
pub(super) struct Begun {
    project: ProjectId,
    /// The version that has the segments from before. `None`: it is not known.
    version: Option<u64>,
}

/// Begins a change. The caller keeps other tasks from changing files until it is committed.
pub(super) fn begin(store: &Store, project: ProjectId) -> Begun {
    Begun { project, version: lock(&store.segments.tables.0).remove(&project) }
}

impl Begun {
    /// Writes the change to the log, after its transaction. `columns` are all typed columns
    /// of the project.
    pub(super) async fn commit(
        self,
        store: &Store,
        columns: Vec<TypedColumn>,
        old: &[SealedSegment],
        new: &[SealedSegment],
        now: Timestamp,
    ) {
        let Self { project, version } = self;
        let (Some(files), Some(version)) = (&store.segments.files, version) else {
            return compare(store, project, now).await;
        };
        let rows = |of: &[SealedSegment]| of.iter().map(|segment| segment.rows).sum::<u64>();
        // A merge has the same events, and an erasure has fewer.
        let is_same = rows(old) == rows(new);
        let old: Vec<String> = old.iter().map(path).collect();
        let new: Vec<TableFile> = new.iter().map(file).collect();
        let (directory, millis) = (files.table(project), now.micros() / 1_000);
        let written = store.segments.blocking(directory.clone(), move || {
            let mut table = Table::open(&directory)?;
            if table.version() != Some(version) {
                return Ok(None);
            }
            let change = match (old.as_slice(), new.as_slice()) {
                ([], new) => Change::Add(new),
                (old, []) => Change::Remove(old),
                (old, new) if is_same => Change::Replace { old, new },
                (old, new) => Change::Rewrite { old, new },
            };
            table.commit(&columns, change, millis)?;
            Ok(table.version())
        });
        match written.await {
            Ok(Ok(Some(version))) => know(store, project, version).await,
            // Others have changed or removed the log.
            Ok(Ok(None)) => compare(store, project, now).await,
            Ok(Err(error)) => {
                tracing::warn!(%project, %error, "the table of events is compared");
                compare(store, project, now).await;
            }
            Err(error) => not_written(project, &error),
        }
    }
}

/// Brings the log of a project up to the catalog, unless it is known to be. The caller keeps
/// other tasks from changing files.
pub(super) async fn compare(store: &Store, project: ProjectId, now: Timestamp) {
    if let Err(error) = bring_up(store, project, now).await {
        not_written(project, &error);
    }
}

fn not_written(project: ProjectId, error: &dyn fmt::Display) {
    tracing::warn!(%project, %error, "the table of events is behind; trying again later");
}

async fn bring_up(store: &Store, project: ProjectId, now: Timestamp) -> Result<()> {
    let segments = &store.segments;
    let Some(files) = &segments.files else { return Ok(()) };
    let directory = files.table(project);
    let known = lock(&segments.tables.0).get(&project).copied();
    if known.is_some() {
        let of = directory.clone();
        let newest = segments.blocking(of.clone(), move || delta::newest(&of)).await?;
        // What cannot be read is compared.
        if let (Ok(newest), Some(version)) = (newest, known)
            && newest == known
        {
            objects::publish(store, project, version).await;
            return Ok(());
        }
    }
    lock(&segments.tables.0).remove(&project);
    if let Some(objects) = &segments.objects {
        objects.forget_version(project);
    }
    let columns = catalog::columns(store, project).await?;
    let mut listed: Vec<TableFile> = Vec::new();
    let mut all = Segments::of(store, project).await?;
    while let Some(some) = all.next(store).await? {
        listed.extend(some.iter().map(file));
    }
    let millis = now.micros() / 1_000;
    let written = segments
        .blocking(directory.clone(), move || bring_up_to(&directory, &columns, &listed, millis));
    match written.await? {
        Ok(Some(version)) => know(store, project, version).await,
        Ok(None) => {}
        Err(error) => not_written(project, &error),
    }
    Ok(())
}

/// Brings a log up to these files. One that is damaged, or that others have changed, is
/// written again. Returns its version; `None`: there is no log, and there are no files.
fn bring_up_to(
    directory: &Path,
    columns: &[TypedColumn],
    files: &[TableFile],
    now: i64,
) -> Result<Option<u64>, FileError> {
    let write = || {
        let mut table = Table::open(directory)?;
        if table.version().is_some() || !files.is_empty() {
            table.bring_up_to(columns, files, now)?;
        }
        Ok(table.version())
    };
    match write() {
        Err(FileError::VersionConflict { .. }) => write(),
        Err(
            error @ (FileError::Damaged { .. }
            | FileError::UnknownFormat { .. }
            | FileError::ColumnChanged { .. }),
        ) => {
            tracing::warn!(directory = %directory.display(), %error, "a table is written again");
            delta::remove(directory)?;
            write()
        }
        done => done,
    }
}

/// Removes the log of a deleted project. The caller keeps other tasks from changing files.
pub(super) async fn remove(store: &Store, project: ProjectId) -> Result<()> {
    let segments = &store.segments;
    let Some(files) = &segments.files else { return Ok(()) };
    lock(&segments.tables.0).remove(&project);
    if let Some(objects) = &segments.objects {
        objects.forget_table(project);
    }
    let directory = files.table(project);
    let removed = segments.blocking(directory.clone(), move || delta::remove(&directory));
    removed.await?.map_err(|error| segments.error(error))
}

/// The log has this version, and exactly the segments of the catalog.
async fn know(store: &Store, project: ProjectId, version: u64) {
    lock(&store.segments.tables.0).insert(project, version);
    objects::publish(store, project, version).await;
}

/// The path of a segment in the table of its project.
fn path(segment: &SealedSegment) -> String {
    let project = format!("{}/", segment.project);
    segment.file.strip_prefix(&project).unwrap_or(&segment.file).to_owned()
}

/// A segment as the table lists it. Nothing here may differ when the log is written again.
fn file(segment: &SealedSegment) -> TableFile {
    TableFile {
        path: path(segment),
        bytes: segment.bytes,
        rows: segment.rows,
        from_time: segment.times.from,
        to_time: segment.times.to,
        arrivals: Some((segment.first, segment.last)),
        modified: segment.sealed_at / 1_000,
    }
}
