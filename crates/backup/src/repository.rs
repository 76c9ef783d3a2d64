//! The directory of backups: opening it, and finding backups. `store` stores a snapshot,
//! `removal` removes what no backup has.

mod removal;
mod store;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use chrono::DateTime;

use crate::copy::{create_directory, create_durably, lock, names, sha256, sync_directory};
use crate::error::{Error, FileFault, Result, failed};
use crate::instance::{read, write};
use crate::manifest::{Entry, LONGEST, Manifest};
use crate::remote::{Remote, RemoteFiles, copy_down, forget, of_place, stored_content};

pub use store::{Limits, Partial, Stored};

/// The directory of manifests.
pub(crate) const BACKUPS: &str = "backups";
/// The directory of the content of files.
pub(crate) const FILES: &str = "files";
/// The extension of a manifest.
pub(crate) const EXTENSION: &str = ".json";
/// The file that makes a directory a repository, with the id of the instance. Its lock is
/// held by the command that uses the repository.
pub(crate) const MARKER: &str = "weir-repository";
/// The name of a file that is not complete.
const UNFINISHED: &str = "unfinished";
/// A new file system has this directory.
const LOST_AND_FOUND: &str = "lost+found";
/// Digits of the SHA-256 of a manifest that its name has.
const DIGITS: usize = 16;
/// The time in the name of a backup. Names sort by it.
const TIME: &str = "%Y%m%dT%H%M%S%.3fZ";
/// Longest name of a backup.
const LONGEST_NAME: usize = 64;

/// A directory of backups that one command uses at a time.
#[derive(Debug)]
pub struct Repository {
    root: PathBuf,
    instance: String,
    /// `None`: the file system is mounted for reading.
    lock: Option<File>,
    /// Where the files are; `None`: in the directory.
    remote: Option<RemoteFiles>,
}

/// What a manifest says of its backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// The newest schema of the store that this program knows.
    pub schema: i64,
    /// The version of this program.
    pub program: String,
    /// When the backup began, microseconds since 1970.
    pub created_at: i64,
}

/// Refuses to write to a disk that has fewer free bytes than this.
///
/// # Errors
/// [`Error::LowDisk`], and when the disk cannot be measured.
pub fn refuse_low_disk(path: &Path, least: u64) -> Result<()> {
    match free_bytes(path)? < least {
        true => Err(Error::LowDisk { path: path.to_owned(), least }),
        false => Ok(()),
    }
}

/// The free bytes of the disk that has this path.
pub(crate) fn free_bytes(path: &Path) -> Result<u64> {
    let stat = rustix::fs::statvfs(path).map_err(|e| failed("measure", path)(e.into()))?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// A backup that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Its name.
    pub name: String,
    /// The names of newer backups whose manifests cannot be used, the newest first.
    pub passed_over: Vec<String>,
}

impl Repository {
    /// Opens the directory of backups of an instance, and creates it if there is none.
    ///
    /// # Errors
    /// [`Error::InUse`] when another command uses it, [`Error::Foreign`] when it has other
    /// files, [`Error::OtherInstance`], and errors of the file system.
    pub fn create(root: &Path, instance: &str) -> Result<Self> {
        create_durably(root)?;
        let marker = root.join(MARKER);
        if !marker.exists() && names(root)?.iter().any(|name| name != LOST_AND_FOUND) {
            return Err(Error::Foreign { path: root.to_owned() });
        }
        let lock = Self::lock(root)?;
        match read(&marker)? {
            Some(found) if found != instance => {
                return Err(Error::OtherInstance { path: root.to_owned(), found });
            }
            Some(_) => {}
            // It is new. This keeps its lock: the file is the same.
            None => write(&marker, instance)?,
        }
        let repository =
            Self { root: root.to_owned(), instance: instance.to_owned(), lock, remote: None };
        create_directory(&root.join(BACKUPS))?;
        create_directory(&root.join(FILES))?;
        sync_directory(root)?;
        Ok(repository)
    }

    /// Opens a directory that has backups.
    ///
    /// # Errors
    /// [`Error::InUse`] when another command uses it, [`Error::Empty`] when it has no
    /// backups, and errors of the file system.
    pub fn open(root: &Path) -> Result<Self> {
        let empty = || Error::Empty { path: root.to_owned() };
        if !root.join(BACKUPS).is_dir() || !root.join(MARKER).is_file() {
            return Err(empty());
        }
        let lock = Self::lock(root)?;
        let instance = read(&root.join(MARKER))?.ok_or_else(empty)?;
        Ok(Self { root: root.to_owned(), instance, lock, remote: None })
    }

    /// As [`Repository::create`], for files that are elsewhere. `mirror` is an empty local
    /// directory, which is used until the value is dropped. `least_free`: bytes that stay free
    /// on its disk. The storage must be held by this command; it is released if this fails.
    ///
    /// # Errors
    /// As [`Repository::create`], [`Error::LowDisk`], and [`Error::Remote`].
    pub fn create_remote(
        mirror: &Path,
        instance: &str,
        storage: Box<dyn Remote>,
        least_free: u64,
    ) -> Result<Self> {
        match Self::create_mirror(mirror, instance, &*storage, least_free) {
            Ok((repository, content)) => Ok(Self {
                remote: Some(RemoteFiles::new(storage, content, least_free)),
                ..repository
            }),
            Err(error) => {
                // The error says more.
                let _ = storage.release();
                Err(of_place(error, &*storage))
            }
        }
    }

    /// The second value is the content of the storage.
    fn create_mirror(
        mirror: &Path,
        instance: &str,
        storage: &dyn Remote,
        least_free: u64,
    ) -> Result<(Self, BTreeSet<String>)> {
        copy_down(storage, mirror, least_free)?;
        let is_new = !Self::exists(mirror);
        let repository = Self::create(mirror, instance)?;
        if is_new {
            storage.upload(MARKER, &mirror.join(MARKER))?;
        }
        Ok((repository, stored_content(storage)?))
    }

    /// As [`Repository::open`], for files that are elsewhere. It is only read. `mirror` and
    /// `least_free` are those of [`Repository::create_remote`].
    ///
    /// # Errors
    /// As [`Repository::open`], [`Error::LowDisk`], and [`Error::Remote`].
    pub fn open_remote(mirror: &Path, storage: Box<dyn Remote>, least_free: u64) -> Result<Self> {
        let copied = copy_down(&*storage, mirror, least_free);
        let opened = copied.and_then(|()| Self::open(mirror));
        let repository = opened.map_err(|error| of_place(error, &*storage))?;
        // What it has is not needed for reading.
        let remote = Some(RemoteFiles::new(storage, BTreeSet::new(), least_free));
        Ok(Self { remote, ..repository })
    }

    /// Lets other commands use the repository.
    ///
    /// # Errors
    /// [`Error::Remote`]: other commands have to wait.
    pub fn close(self) -> Result<()> {
        self.remote.as_ref().map_or(Ok(()), |remote| remote.storage().release())
    }

    /// Whether a directory has been used for backups.
    pub fn exists(root: &Path) -> bool {
        root.join(MARKER).is_file()
    }

    fn lock(root: &Path) -> Result<Option<File>> {
        match lock(&root.join(MARKER)) {
            // No command can change it, and it can be restored.
            Err(Error::Io { source, .. }) if source.kind() == ErrorKind::ReadOnlyFilesystem => {
                Ok(None)
            }
            locked => locked?.ok_or_else(|| Error::InUse { path: root.to_owned() }).map(Some),
        }
    }

    /// Whether its file system is mounted for reading.
    pub fn is_read_only(&self) -> bool {
        self.lock.is_none()
    }

    /// Where it is.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The names of the backups, the oldest first.
    ///
    /// # Errors
    /// When they cannot be listed.
    pub fn names(&self) -> Result<Vec<String>> {
        let mut names = self.manifests()?;
        names.retain(|name| is_name(name));
        Ok(names)
    }

    /// The names of all files that may be manifests.
    fn manifests(&self) -> Result<Vec<String>> {
        let files = names(&self.root.join(BACKUPS))?.into_iter();
        let name = |file: String| file.strip_suffix(EXTENSION).map(str::to_owned);
        Ok(files.filter_map(name).collect())
    }

    /// Finds a backup; `None`: the newest whose manifest is sound, or the newest if none is.
    ///
    /// # Errors
    /// [`Error::Unknown`], [`Error::Empty`], and errors of the file system: a backup whose
    /// manifest cannot be read now is not passed over.
    pub fn find(&self, name: Option<&str>) -> Result<Found> {
        let names = self.names()?;
        let newest = names.last().ok_or_else(|| Error::Empty { path: self.root.clone() })?;
        if let Some(name) = name {
            return match names.iter().any(|known| known == name) {
                true => Ok(Found { name: name.to_owned(), passed_over: Vec::new() }),
                false => Err(Error::Unknown { name: name.to_owned(), names }),
            };
        }
        let found = self.newest_sound(names.iter().rev(), i64::MAX)?;
        Ok(found.unwrap_or_else(|| Found { name: newest.clone(), passed_over: Vec::new() }))
    }

    /// Finds the newest backup with a sound manifest that began at this time or before,
    /// microseconds since 1970 (DUR-24).
    ///
    /// # Errors
    /// [`Error::NoneBefore`], [`Error::Empty`], and errors of the file system, as
    /// [`Repository::find`].
    pub fn find_at(&self, at: i64) -> Result<Found> {
        let names = self.names()?;
        if names.is_empty() {
            return Err(Error::Empty { path: self.root.clone() });
        }
        let latest = time_in_name(at);
        let is_early =
            |name: &&String| name.get(..latest.len()).is_some_and(|time| time <= latest.as_str());
        let found = self.newest_sound(names.iter().rev().filter(is_early), at)?;
        found.ok_or(Error::NoneBefore { names })
    }

    /// Finds the first backup that began at this time or before and has a sound manifest.
    /// `names`: the newest first.
    fn newest_sound<'a>(
        &self,
        names: impl Iterator<Item = &'a String>,
        at: i64,
    ) -> Result<Option<Found>> {
        let mut passed_over = Vec::new();
        for name in names {
            match self.manifest(name) {
                // The name has the time without the microseconds.
                Ok(manifest) if manifest.created_at > at => {}
                Ok(_) => return Ok(Some(Found { name: name.clone(), passed_over })),
                Err(Error::Manifest { .. }) => passed_over.push(name.clone()),
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Reads the manifest of a backup.
    ///
    /// # Errors
    /// [`Error::Manifest`] when it is damaged or unknown, and errors of the file system.
    pub fn manifest(&self, name: &str) -> Result<Manifest> {
        let wrong = |reason: String| Error::Manifest { name: name.to_owned(), reason };
        let path = self.manifest_path(name);
        let file = File::open(&path).map_err(failed("open", &path))?;
        let mut bytes = Vec::new();
        file.take(LONGEST + 1).read_to_end(&mut bytes).map_err(failed("read", &path))?;
        let hash = name.rsplit_once('-').map(|(_, hash)| hash);
        if hash != sha256(&bytes).get(..DIGITS) {
            return Err(wrong("its bytes differ from the checksum in its name".to_owned()));
        }
        let manifest = Manifest::parse(&bytes).map_err(wrong)?;
        match manifest.instance == self.instance {
            true => Ok(manifest),
            false => Err(wrong(format!("it is of another instance ({})", manifest.instance))),
        }
    }

    /// The path of the content with this checksum.
    pub(crate) fn content(&self, sha256: &str) -> PathBuf {
        let directory = sha256.get(..2).unwrap_or_default();
        self.root.join(FILES).join(directory).join(sha256)
    }

    /// Makes the content of a file local, if it is elsewhere. Returns what is wrong with it.
    pub(crate) fn fetch(&self, entry: &Entry) -> Result<Option<FileFault>> {
        match &self.remote {
            Some(remote) => remote.fetch(entry, &self.content(&entry.sha256)),
            None => Ok(None),
        }
    }

    /// Removes what [`Repository::fetch`] made.
    pub(crate) fn forget(&self, entry: &Entry) -> Result<()> {
        match &self.remote {
            Some(_) => forget(&self.content(&entry.sha256)),
            None => Ok(()),
        }
    }

    fn manifest_path(&self, name: &str) -> PathBuf {
        self.root.join(BACKUPS).join(format!("{name}{EXTENSION}"))
    }
}

/// A time, microseconds since 1970, as names of backups begin with it.
fn time_in_name(micros: i64) -> String {
    DateTime::from_timestamp_micros(micros).unwrap_or_default().format(TIME).to_string()
}

/// Whether a text can be the name of a backup. It leads to no other directory.
fn is_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-');
    !name.is_empty()
        && !name.starts_with('.')
        && name.len() <= LONGEST_NAME
        && name.bytes().all(is_allowed)
}
