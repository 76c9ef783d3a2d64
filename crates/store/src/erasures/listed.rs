//! The list of erasures beside the database, for backups.
//!
//! An older backup does not know of later erasures. The newest backup has the list as of its
//! time, and `weir restore` restores that list with each backup. After the start, erasures of
//! the list that the database does not know are applied again ([`unapplied`]).
//!
//! The file has a line of JSON for each erasure of the last [`DAYS`] days: with the first ids
//! of the distinct ids, which are hashes, and without the distinct ids.
//!
//! What belongs here: this file. What does not: applying an erasure again (`weir-service`).

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use uuid::Uuid;
use weir_model::{PersonId, ProjectId, Timestamp, UserId};

use super::rows::{self, Report};
use crate::{Error, Result, Store, persons, projects};

/// The name of the file in the data directory.
pub const FILE: &str = "erasures.jsonl";
/// Days for which an erasure is listed. Backups must not be kept for longer.
pub(super) const DAYS: i64 = 400;
/// Bytes of the file that are read.
const MOST_BYTES: u64 = 1 << 30;
/// Microseconds of a day.
const DAY: i64 = 86_400_000_000;
/// What the file is called in addition while it is written.
const UNFINISHED: &str = ".tmp";

/// An erasure of the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    /// Id of the erasure.
    pub id: Uuid,
    project: i64,
    person: Uuid,
    requested_at: i64,
    requested_by: Uuid,
    /// Whether events are erased too.
    pub deletes_events: bool,
    /// The first ids of the distinct ids.
    ids: Vec<Uuid>,
}

impl Listed {
    fn of(project: ProjectId, id: Uuid, report: &Report, ids: &[Uuid]) -> Self {
        let (requested_by, person) = report.facts();
        Self {
            id,
            project: project.0,
            person,
            requested_at: report.requested_at,
            requested_by,
            deletes_events: report.deletes_events,
            ids: ids.to_vec(),
        }
    }

    /// The project of the person.
    pub fn project(&self) -> ProjectId {
        ProjectId(self.project)
    }

    /// The person, and the persons that its distinct ids may have had before.
    pub fn persons(&self) -> impl Iterator<Item = PersonId> {
        std::iter::once(self.person).chain(self.ids.iter().copied()).map(PersonId)
    }

    /// When the erasure was requested.
    pub fn requested_at(&self) -> Timestamp {
        Timestamp::from_micros(self.requested_at)
    }

    /// The user who requested it.
    pub fn requested_by(&self) -> UserId {
        UserId(self.requested_by)
    }
}

fn path(store: &Store) -> Option<PathBuf> {
    store.segments.list_of_erasures()
}

async fn blocking<T: Send + 'static>(
    path: PathBuf,
    work: impl FnOnce(&Path) -> io::Result<T> + Send + 'static,
) -> Result<T> {
    let of = path.clone();
    let done = tokio::task::spawn_blocking(move || work(&of)).await;
    done.map_err(|_| Error::Stopped)?.map_err(|source| Error::File { file: path, source })
}

/// Adds an erasure to the list. A failure is logged: it is added before it is done
/// ([`add_unlisted`]), or by the next start.
pub(super) async fn append(
    store: &Store,
    project: ProjectId,
    id: Uuid,
    report: &Report,
    ids: &[Uuid],
) {
    if path(store).is_none() {
        return;
    }
    store.erasures.unlisted.lock().await.push(Listed::of(project, id, report, ids));
    if let Err(error) = add_unlisted(store).await {
        tracing::error!(%project, erasure = %id, %error, "an erasure is not listed for backups yet");
    }
}

/// Adds the erasures to the list that it lacks.
///
/// # Errors
/// [`Error::File`] when the list cannot be written.
pub(super) async fn add_unlisted(store: &Store) -> Result<()> {
    let Some(path) = path(store) else { return Ok(()) };
    let mut unlisted = store.erasures.unlisted.lock().await;
    if unlisted.is_empty() {
        return Ok(());
    }
    let lines = unlisted.iter().map(line).collect::<io::Result<String>>();
    blocking(path, move |path| add(path, &lines?)).await?;
    unlisted.clear();
    Ok(())
}

fn add(path: &Path, lines: &str) -> io::Result<()> {
    let mut options = File::options();
    options.create(true).append(true).mode(0o600);
    let mut file = options.open(path)?;
    let before = file.metadata()?.len();
    let added = file.write_all(lines.as_bytes()).and_then(|()| file.sync_all());
    if added.is_err() {
        // The next line must not continue a part of one.
        file.set_len(before)?;
    }
    added
}

fn line(listed: &Listed) -> io::Result<String> {
    let mut line = serde_json::to_string(listed).map_err(io::Error::other)?;
    line.push('\n');
    Ok(line)
}

/// The erasures of the list that the database does not know, because it is that of an older
/// backup, without those of projects that it does not have. Brings the list up to date: older
/// ones go away, and those that are not done are there.
///
/// # Errors
/// When the list cannot be read or written, and errors of the store.
pub async fn unapplied(store: &Store, now: Timestamp) -> Result<Vec<Listed>> {
    let Some(path) = path(store) else { return Ok(Vec::new()) };
    let mut unlisted = store.erasures.unlisted.lock().await;
    let oldest = now.micros().saturating_sub(DAYS * DAY);
    let (mut listed, mut is_changed) = blocking(path.clone(), read).await?;
    let before = listed.len();
    listed.retain(|one| one.requested_at >= oldest);
    is_changed |= listed.len() != before;
    let known: HashSet<Uuid> = listed.iter().map(|one| one.id).collect();
    for (project, erased) in store.erasures.all() {
        for one in erased.pending.iter().filter(|one| !known.contains(&one.id)) {
            if let Some(report) = rows::report(store, project, one.id).await? {
                listed.push(Listed::of(project, one.id, &report, &one.ids));
                is_changed = true;
            }
        }
    }
    if is_changed {
        let listed = listed.clone();
        blocking(path, move |path| write(path, &listed)).await?;
    }
    // Those were not done, so they are there.
    unlisted.clear();
    drop(unlisted);
    let mut unknown = Vec::new();
    for one in listed {
        let project = one.project();
        if rows::report(store, project, one.id).await?.is_some() {
            continue;
        }
        // After a restore, the number of a project that the backup does not know is given to a
        // new project. No person of that one was erased.
        let found = projects::find(store, project).await?;
        if found.is_some_and(|row| row.created_at <= one.requested_at()) {
            unknown.push(one);
        }
    }
    Ok(unknown)
}

/// Distinct ids whose events were erased.
#[derive(Debug, Default)]
pub struct ErasedIds {
    /// By project and first id: when the last erasure was requested, microseconds.
    until: HashMap<(ProjectId, Uuid), i64>,
}

impl ErasedIds {
    fn add(&mut self, project: ProjectId, ids: &[Uuid], requested_at: i64) {
        for id in ids {
            let until = self.until.entry((project, *id)).or_insert(requested_at);
            *until = requested_at.max(*until);
        }
    }

    /// Whether an event with this distinct id, which was received at this time
    /// (microseconds), was erased with its person.
    pub fn takes(&self, project: ProjectId, distinct_id: &str, received_at: i64) -> bool {
        let first_id = persons::first_id(project, distinct_id).0;
        self.until.get(&(project, first_id)).is_some_and(|until| received_at <= *until)
    }
}

/// The distinct ids of all erasures that took events, for a replay of the log: those of the
/// list, and those that are not done.
///
/// # Errors
/// [`Error::File`] when the list cannot be read.
pub async fn erased_ids(store: &Store) -> Result<ErasedIds> {
    let mut erased = ErasedIds::default();
    if let Some(path) = path(store) {
        let _unlisted = store.erasures.unlisted.lock().await;
        let (listed, _) = blocking(path, read).await?;
        for one in listed.iter().filter(|one| one.deletes_events) {
            erased.add(one.project(), &one.ids, one.requested_at);
        }
    }
    for (project, of_project) in store.erasures.all() {
        for one in of_project.pending.iter().filter(|one| one.deletes_events) {
            erased.add(project, &one.ids, one.requested_at);
        }
    }
    Ok(erased)
}

/// The lines, and whether some are not complete.
fn read(path: &Path) -> io::Result<(Vec<Listed>, bool)> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok((Vec::new(), false)),
        Err(error) => return Err(error),
    };
    let (mut listed, mut is_broken) = (Vec::new(), false);
    for line in BufReader::new(file.take(MOST_BYTES)).split(b'\n') {
        match serde_json::from_slice(&line?) {
            Ok(one) => listed.push(one),
            Err(error) => {
                is_broken = true;
                tracing::warn!(%error, "a line of the list of erasures is not complete");
            }
        }
    }
    Ok((listed, is_broken))
}

fn write(path: &Path, listed: &[Listed]) -> io::Result<()> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(UNFINISHED);
    let unfinished = PathBuf::from(unfinished);
    let mut options = File::options();
    options.create(true).write(true).truncate(true).mode(0o600);
    let mut file = options.open(&unfinished)?;
    for one in listed {
        file.write_all(line(one)?.as_bytes())?;
    }
    file.sync_all()?;
    std::fs::rename(&unfinished, path)?;
    match path.parent() {
        Some(directory) => File::open(directory)?.sync_all(),
        None => Ok(()),
    }
}

/// Records that an erasure of the list has been applied again, or that there was nothing to
/// erase.
///
/// # Errors
/// When the store cannot be written.
pub async fn note_applied(store: &Store, listed: &Listed, now: Timestamp) -> Result<()> {
    rows::add_done(store, listed, PersonId(listed.person), now).await
}
