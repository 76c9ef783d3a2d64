//! The files of segments and runs: their names, making them durable, removing them.
//!
//! | file, in `segments` of the data directory | content |
//! |---|---|
//! | `<project>/<partition>/<first>-<last>-<random>.parquet` | a segment: its events, from the first to the last arrival number |
//! | `<project>/_delta_log` | the log of the table of these segments (`table`) |
//! | `<project>/persons` | the table of persons (`persons`) |
//! | `uuids/<random>.run` | a run of uuids |
//! | `bucket` | the bucket that has the segments, if they are in one (`objects`) |
//!
//! A name is never used again, so what was read of a file stays right.
//!
//! What belongs here: paths and directories. What does not: which files there must be
//! (`catalog`), and what is in them (`weir-segments`).

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use uuid::Uuid;
use weir_model::ProjectId;
use weir_segments::Error as FileError;

use crate::engine::create_private;

/// The directory in the data directory.
pub(crate) const DIRECTORY: &str = "segments";
/// The file in the data directory whose lock is held by the process that changes files.
const CHANGES: &str = "segments.lock";
/// The file in the data directory that backups and checks lock while they read objects.
const HELD: &str = "segments.held";
/// The directory of runs in that directory.
const RUNS: &str = "uuids";
/// The directory of the table of persons in that of a project.
pub(super) const PERSONS: &str = "persons";
/// The directory of the log of a table.
pub(super) const LOG: &str = "_delta_log";
/// The file of a log that names its newest checkpoint.
pub(super) const LAST_CHECKPOINT: &str = "_last_checkpoint";
const SEGMENT: &str = "parquet";
const RUN: &str = "run";
/// What a file is called in addition while it is written.
const UNFINISHED: &str = ".tmp";

/// The directory of the files.
#[derive(Debug, Clone)]
pub(super) struct Files {
    data: PathBuf,
    root: PathBuf,
}

impl Files {
    /// The files of a data directory.
    pub(super) fn of(data: &Path) -> Self {
        Self { data: data.to_owned(), root: data.join(DIRECTORY) }
    }

    /// Keeps backups from linking files. `None`: one is linking them.
    pub(super) fn try_lock_changes(&self) -> Result<Option<File>, FileError> {
        let locked = lock_file(&self.data).and_then(|file| Ok(try_lock(&file)?.then_some(file)));
        locked.map_err(|source| unusable(&self.changes(), source))
    }

    /// The same, and waits until no backup links files. Blocks the thread.
    pub(super) fn lock_changes(&self) -> Result<File, FileError> {
        let locked = lock_file(&self.data).and_then(|file| wait_lock(&file).map(|()| file));
        locked.map_err(|source| unusable(&self.changes(), source))
    }

    /// The file whose lock is held by the process that changes files.
    pub(super) fn changes(&self) -> PathBuf {
        self.data.join(CHANGES)
    }

    /// Whether a backup or a check reads objects of segments.
    pub(super) fn are_objects_held(&self) -> io::Result<bool> {
        match File::options().read(true).write(true).open(self.data.join(HELD)) {
            Ok(file) => try_lock(&file).map(|is_locked| !is_locked),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The path of a file of the data directory.
    pub(super) fn beside(&self, name: &str) -> PathBuf {
        self.data.join(name)
    }

    /// The path of a file.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// The directory of the segments of a project, which is a table.
    pub(super) fn table(&self, project: ProjectId) -> PathBuf {
        self.root.join(project.to_string())
    }

    /// A name for a segment, whose directory exists.
    pub(super) fn new_segment(
        &self,
        project: ProjectId,
        partition: u16,
        (first, last): (u64, u64),
    ) -> Result<Unlisted, FileError> {
        let name = format!("{first}-{last}-{}.{SEGMENT}", random());
        self.new_file(&format!("{project}/{partition}"), &name)
    }

    /// A name for a run, whose directory exists.
    pub(super) fn new_run(&self) -> Result<Unlisted, FileError> {
        self.new_file(RUNS, &format!("{}.{RUN}", random()))
    }

    fn new_file(&self, directory: &str, name: &str) -> Result<Unlisted, FileError> {
        self.create(directory).map_err(|source| unusable(&self.root.join(directory), source))?;
        Ok(Unlisted { files: self.clone(), name: format!("{directory}/{name}"), is_kept: false })
    }

    /// Creates a directory for files, durably. The directory of a new file itself is
    /// synced with the file.
    fn create(&self, directory: &str) -> io::Result<()> {
        let path = self.root.join(directory);
        create_private(&path)?;
        let mut above = path.ancestors().skip(1).take_while(|at| at.starts_with(&self.data));
        above.try_for_each(|directory| File::open(directory)?.sync_all())
    }

    /// Writes a small file, whole or not at all.
    pub(super) fn write(&self, name: &str, content: &str) -> io::Result<()> {
        create_private(&self.root)?;
        let (path, unfinished) = (self.path(name), self.path(&format!("{name}{UNFINISHED}")));
        let mut file = File::create(&unfinished)?;
        file.write_all(content.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&unfinished, &path)?;
        File::open(&self.root)?.sync_all()
    }

    /// The name of a file of ours while it is not complete. Its directory exists.
    pub(super) fn unfinished(&self, path: &Path) -> Result<PathBuf, FileError> {
        let directory = path.parent().unwrap_or(&self.root);
        create_private(directory).map_err(|source| unusable(directory, source))?;
        let mut name = path.as_os_str().to_owned();
        name.push(UNFINISHED);
        Ok(name.into())
    }

    /// Removes files that no row of the catalog names any more. One that stays is removed
    /// at the next start.
    pub(super) fn remove(&self, names: &[String]) {
        for name in names {
            match std::fs::remove_file(self.path(name)) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => {
                    tracing::warn!(file = name, %error, "an unused file was not removed yet");
                }
            }
        }
    }

    /// Gives a damaged file another name, so that it stays and is not one of ours.
    pub(super) fn set_aside(&self, name: &str) {
        let (from, to) = (self.path(name), self.path(&format!("{name}.damaged")));
        match std::fs::rename(&from, &to) {
            Ok(()) => tracing::warn!(file = %to.display(), "a damaged file was set aside"),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => tracing::warn!(file = name, %error, "a damaged file keeps its name"),
        }
    }

    /// Removes the table of persons of a project, and its directories once they are empty.
    pub(super) fn remove_directories(&self, project: ProjectId) {
        let directory = self.table(project);
        // It has snapshots of this project alone.
        let _ = std::fs::remove_dir_all(directory.join(PERSONS));
        let Ok(partitions) = std::fs::read_dir(&directory) else { return };
        for partition in partitions.flatten() {
            // A directory with a file stays.
            let _ = std::fs::remove_dir(partition.path());
        }
        let _ = std::fs::remove_dir(&directory);
    }

    /// The names of all files that look like ours. Others are left alone.
    pub(super) fn all(&self) -> io::Result<BTreeSet<String>> {
        let mut names = BTreeSet::new();
        for top in entries(&self.root)? {
            if top == RUNS {
                let runs = entries(&self.root.join(RUNS))?.into_iter();
                names.extend(runs.filter(|run| is_run(run)).map(|run| format!("{RUNS}/{run}")));
            } else if is_number(&top) {
                let partitions = entries(&self.root.join(&top))?;
                for partition in partitions.into_iter().filter(|name| is_number(name)) {
                    let directory = format!("{top}/{partition}");
                    let segments = entries(&self.root.join(&directory))?.into_iter();
                    let segments = segments.filter(|segment| is_segment(segment));
                    names.extend(segments.map(|segment| format!("{directory}/{segment}")));
                }
            }
        }
        Ok(names)
    }
}

/// A new file that no row of the catalog names. It is removed with this value, unless it is
/// [kept](Self::keep).
#[derive(Debug)]
pub(super) struct Unlisted {
    files: Files,
    name: String,
    is_kept: bool,
}

impl Unlisted {
    pub(super) fn path(&self) -> PathBuf {
        self.files.path(&self.name)
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Keeps the file, and returns its name. To be called before the transaction that names
    /// it: its outcome may be unknown.
    pub(super) fn keep(mut self) -> String {
        self.is_kept = true;
        self.name.clone()
    }
}

impl Drop for Unlisted {
    fn drop(&mut self) {
        if !self.is_kept {
            self.files.remove(std::slice::from_ref(&self.name));
        }
    }
}

/// The file whose lock is held by the process that changes files, or rows that name them.
fn lock_file(data: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.create(true).truncate(false).read(true).write(true);
    options.open(data.join(CHANGES))
}

fn try_lock(file: &File) -> io::Result<bool> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(error) if error == Errno::WOULDBLOCK => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn wait_lock(file: &File) -> io::Result<()> {
    rustix::io::retry_on_intr(|| flock(file, FlockOperation::LockExclusive))?;
    Ok(())
}

/// Takes the lock of the files of a data directory for a backup: no process changes files,
/// or rows that name them, meanwhile. It ends with the value. Blocks the thread, for as long
/// as a merge takes. The file is not created: a server of a version that does
/// not take the lock may run. `None`: there is no file.
pub(crate) fn lock_existing(data: &Path) -> io::Result<Option<File>> {
    let file = match File::options().read(true).write(true).open(data.join(CHANGES)) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    wait_lock(&file)?;
    Ok(Some(file))
}

/// Keeps the server from removing objects of segments. It ends with the value. Several
/// processes can do so. Blocks the thread for a moment.
pub(super) fn hold_objects(data: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.create(true).truncate(false).read(true).write(true);
    let file = options.open(data.join(HELD))?;
    rustix::io::retry_on_intr(|| flock(&file, FlockOperation::LockShared))?;
    Ok(file)
}

/// The error for a directory that cannot be used.
pub(super) fn unusable(path: &Path, source: io::Error) -> FileError {
    FileError::Io { file: path.to_owned(), source }
}

/// The names in a directory; none if it does not exist.
fn entries(directory: &Path) -> io::Result<Vec<String>> {
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if is_absent(&error) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut names = Vec::new();
    for entry in entries {
        names.extend(entry?.file_name().into_string());
    }
    Ok(names)
}

/// Whether there is no such directory. A file with its name is not ours either.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

fn random() -> String {
    Uuid::new_v4().simple().to_string()
}

fn is_random(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_run(name: &str) -> bool {
    let name = name.strip_suffix(UNFINISHED).unwrap_or(name);
    name.strip_suffix(RUN).and_then(|name| name.strip_suffix('.')).is_some_and(is_random)
}

/// Whether a name is one of a segment, with its directory.
pub(super) fn is_segment_path(name: &str) -> bool {
    let parts: Vec<&str> = name.split('/').collect();
    match parts.as_slice() {
        [project, partition, name] => {
            is_number(project) && is_number(partition) && is_segment(name)
        }
        _ => false,
    }
}

/// Whether an object of a bucket is one of ours: a segment, or a file of a table.
pub(super) fn is_object(name: &str) -> bool {
    let parts: Vec<&str> = name.split('/').collect();
    match parts.as_slice() {
        [project, LOG, file] | [project, PERSONS, LOG, file] => is_number(project) && is_log(file),
        [project, PERSONS, file] => {
            let file = file.strip_suffix(SEGMENT).and_then(|name| name.strip_suffix('.'));
            is_number(project) && file.is_some_and(is_random)
        }
        _ => is_segment_path(name) && !name.ends_with(UNFINISHED),
    }
}

/// Whether a name is one of the log of a table.
fn is_log(name: &str) -> bool {
    let version = name.strip_suffix(".json").or_else(|| name.strip_suffix(".checkpoint.parquet"));
    name == LAST_CHECKPOINT || version.is_some_and(|name| name.len() == 20 && is_number(name))
}

/// Whether a name is one of a run, with its directory.
pub(super) fn is_run_path(name: &str) -> bool {
    name.split_once('/').is_some_and(|(directory, name)| directory == RUNS && is_run(name))
}

fn is_segment(name: &str) -> bool {
    let name = name.strip_suffix(UNFINISHED).unwrap_or(name);
    let name = name.strip_suffix(SEGMENT).and_then(|name| name.strip_suffix('.'));
    let parts: Option<Vec<&str>> = name.map(|name| name.split('-').collect());
    match parts.as_deref() {
        Some([first, last, random]) => is_number(first) && is_number(last) && is_random(random),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_objects_with_the_exact_names_of_ours_are_ours() {
        let (random, version) = (random(), format!("{:020}", 7));
        for name in [
            format!("7/0/1-20-{random}.parquet"),
            format!("7/_delta_log/{version}.json"),
            format!("7/_delta_log/{version}.checkpoint.parquet"),
            "7/_delta_log/_last_checkpoint".to_owned(),
            format!("7/persons/{random}.parquet"),
            format!("7/persons/_delta_log/{version}.json"),
        ] {
            assert!(is_object(&name), "{name}");
            assert!(!is_object(&format!("a/{name}")) && !is_object(&format!("{name}.tmp")));
        }
        for other in [
            "weir-owner".to_owned(),
            "2025/report.csv".to_owned(),
            "2025/1/1-2.parquet".to_owned(),
            "7/_delta_log/1.json".to_owned(),
            format!("7/{version}.json"),
            "7/persons/persons.parquet".to_owned(),
            format!("uuids/{random}.run"),
        ] {
            assert!(!is_object(&other), "{other}");
        }
    }

    #[test]
    fn only_files_with_our_names_are_listed() {
        let data = tempfile::tempdir().unwrap();
        let files = Files::of(data.path());
        assert!(files.all().unwrap().is_empty());
        let segment = files.new_segment(ProjectId(7), 2, (1, 64_000)).unwrap().keep();
        let run = files.new_run().unwrap().keep();
        let unused = files.new_run().unwrap();
        std::fs::write(unused.path(), b"").unwrap();
        drop(unused);
        let random = random();
        let unfinished = format!("{run}.tmp");
        for name in [&segment, &run, &unfinished] {
            std::fs::write(files.path(name), b"").unwrap();
        }
        std::fs::create_dir_all(files.path("notes/1")).unwrap();
        std::fs::create_dir_all(files.table(ProjectId(7)).join("_delta_log")).unwrap();
        for other in [
            "README".to_owned(),
            "uuids/notes.run".to_owned(),
            format!("uuids/{random}.parquet"),
            "7/notes.parquet".to_owned(),
            "7/_delta_log/00000000000000000000.json".to_owned(),
            "7/2/events.parquet".to_owned(),
            format!("7/2/1-{random}.parquet"),
            format!("7/2/1-2-{random}.parquet.bak"),
            format!("notes/1/1-2-{random}.parquet"),
        ] {
            std::fs::write(files.path(&other), b"").unwrap();
        }
        assert_eq!(files.all().unwrap(), [segment.clone(), run.clone(), unfinished.clone()].into());
        files.remove(&[segment.clone(), segment, run, unfinished]);
        assert!(files.all().unwrap().is_empty());
        files.remove_directories(ProjectId(7));
        assert!(files.path("7/2/events.parquet").exists());
    }
}
