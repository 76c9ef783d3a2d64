//! The directory of backups: storing a snapshot, finding backups, removing what none has.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::{self, File};
use std::io::{ErrorKind, Read as _, Write as _};
use std::num::NonZeroUsize;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use chrono::DateTime;

use crate::copy::{
    copy, create_directory, create_durably, is_unreadable, lock, names, sha256, sha256_of,
    sync_directory,
};
use crate::error::{Error, FileFault, Result, failed};
use crate::fetch::{Fetch, Fetched, Needed};
use crate::instance::{read, write};
use crate::manifest::{Entry, LONGEST, Manifest, is_sha256};
use crate::remote::{
    Remote, RemoteFiles, copy_down, forget, manifest_name, of_place, stored_content,
};
use crate::restore::Damage;

/// The directory of manifests.
pub(crate) const BACKUPS: &str = "backups";
/// The directory of the content of files.
pub(crate) const FILES: &str = "files";
/// The directory of damaged content.
const DAMAGED: &str = "damaged";
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

/// What ends a backup before it is complete.
#[derive(Debug, Clone, Copy)]
pub struct Limits<'a> {
    /// Set when the process is asked to end.
    pub is_stopped: &'a AtomicBool,
    /// Free bytes that a backup leaves on the disk if the data is on it too.
    pub least_free: u64,
}

impl Limits<'_> {
    /// `shared`: a directory on the disk that has the data too.
    fn check(self, shared: Option<&Path>) -> Result<()> {
        if self.is_stopped.load(Ordering::Acquire) {
            return Err(Error::Interrupted);
        }
        shared.map_or(Ok(()), |path| refuse_low_disk(path, self.least_free))
    }
}

/// Refuses to write to a disk that has fewer free bytes than this.
///
/// # Errors
/// [`Error::LowDisk`], and when the disk cannot be measured.
pub fn refuse_low_disk(path: &Path, least: u64) -> Result<()> {
    let stat = rustix::fs::statvfs(path).map_err(|e| failed("measure", path)(e.into()))?;
    match stat.f_bavail.saturating_mul(stat.f_frsize) < least {
        true => Err(Error::LowDisk { path: path.to_owned(), least }),
        false => Ok(()),
    }
}

/// A file of a snapshot that is still being written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partial {
    /// Its path in the snapshot.
    pub path: String,
    /// Its bytes that belong to the backup. Zeros take the place of the others.
    pub bytes: u64,
}

/// What becomes of the content that an interrupted backup has stored.
#[derive(Debug, Clone, Copy)]
enum Interrupted {
    /// It stays for the next backup. It is newer than the newest manifest.
    Stays,
    /// It goes: a backup has used what it needs of it.
    Goes,
}

/// What a backup stored.
#[derive(Debug, Default)]
pub struct Stored {
    /// The name of the backup.
    pub name: String,
    /// The number of its files.
    pub files: usize,
    /// The bytes of their content.
    pub bytes: u64,
    /// The number of files whose content no earlier backup had.
    pub new_files: usize,
    /// The bytes of that content.
    pub new_bytes: u64,
    /// The names of manifests that cannot be read. Until they are repaired or removed, no
    /// unused content is removed.
    pub kept_for: Vec<String>,
    /// Why unused content was not removed. The next backup tries it again.
    pub unremoved: Option<Error>,
    /// The number of files that were fetched and are damaged or absent ([`Fetch`]).
    pub unsound: usize,
}

/// What was stored of a backup that is being made.
#[derive(Debug)]
struct Progress {
    entries: Vec<Entry>,
    stored: Stored,
    /// Directories of content, which are synced at the end.
    directories: BTreeSet<PathBuf>,
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

    /// Stores the files of a snapshot as a backup. Each is removed from the snapshot as soon
    /// as it is stored, because a link keeps a file on the disk that the service has removed.
    /// What an interrupted backup has stored is used if this one needs it, and removed
    /// otherwise.
    ///
    /// # Errors
    /// [`Error::Interrupted`], [`Error::LowDisk`], and errors of the file system. Earlier
    /// backups stay as they are.
    pub fn store(
        &self,
        snapshot: &Path,
        partial: Option<&Partial>,
        about: About,
        limits: Limits<'_>,
    ) -> Result<Stored> {
        self.store_fetching(snapshot, partial, about, limits, None)
    }

    /// The same for a snapshot whose directory may not have all files: `fetch` has the others.
    /// They are put into the directory one at a time.
    ///
    /// # Errors
    /// As [`Repository::store`], and those of `fetch`.
    pub fn store_fetching(
        &self,
        snapshot: &Path,
        partial: Option<&Partial>,
        about: About,
        limits: Limits<'_>,
        fetch: Option<&mut dyn Fetch>,
    ) -> Result<Stored> {
        // Manifests may have been removed to free space.
        self.remove_unused(Interrupted::Stays)?;
        self.put_back()?;
        match self.store_all(snapshot, partial, about, limits, fetch) {
            // The backup exists now, whatever happens to the rest.
            Ok(stored) => Ok(match self.remove_unused(Interrupted::Goes) {
                Ok(kept_for) => Stored { kept_for, ..stored },
                Err(error) => Stored { unremoved: Some(error), ..stored },
            }),
            Err(error) => {
                // It says more than an error of one of these.
                let _ = fs::remove_file(self.root.join(FILES).join(UNFINISHED));
                let _ = self.remove_unused(Interrupted::Stays);
                Err(error)
            }
        }
    }

    /// Removes the oldest backups, so that `keep` stay, and the content that none of these
    /// has (DUR-23). The backup `newest` stays, also if names of others sort after it. While
    /// a manifest cannot be read, all backups stay: their content would stay too. Returns
    /// the names of the removed backups, the oldest first.
    ///
    /// # Errors
    /// Errors of the file system. A later call removes what is left.
    pub fn remove_old(&self, keep: NonZeroUsize, newest: &str) -> Result<Vec<String>> {
        let mut old = self.manifests()?;
        for name in &old {
            match self.manifest(name) {
                Ok(_) if is_name(name) => {}
                Ok(_) | Err(Error::Manifest { .. }) => return Ok(Vec::new()),
                Err(error) => return Err(error),
            }
        }
        old.retain(|name| name != newest);
        old.truncate(old.len().saturating_sub(keep.get() - 1));
        for name in &old {
            if let Some(remote) = &self.remote {
                remote.storage().confirm()?;
                remote.storage().remove(&manifest_name(name))?;
            }
            let path = self.manifest_path(name);
            fs::remove_file(&path).map_err(failed("remove", &path))?;
        }
        if !old.is_empty() {
            // A manifest that comes back after a crash would have no content.
            sync_directory(&self.root.join(BACKUPS))?;
            self.remove_unused(Interrupted::Goes)?;
        }
        Ok(old)
    }

    fn store_all(
        &self,
        snapshot: &Path,
        partial: Option<&Partial>,
        about: About,
        limits: Limits<'_>,
        fetch: Option<&mut dyn Fetch>,
    ) -> Result<Stored> {
        let known = self.known()?;
        let shared = self.shares_disk_with(snapshot)?.then(|| self.root.join(FILES));
        let mut progress = Progress {
            entries: Vec::new(),
            stored: Stored::default(),
            directories: BTreeSet::from([self.root.join(FILES)]),
        };
        if let Some(fetch) = fetch {
            while let Some(needed) = fetch.next()? {
                limits.check(shared.as_deref())?;
                self.store_fetched(snapshot, needed, &known, limits, fetch, &mut progress)?;
            }
        }
        let mut paths = Vec::new();
        files_below(snapshot, "", &mut paths)?;
        for path in paths {
            limits.check(shared.as_deref())?;
            let source = snapshot.join(&path);
            let partial = partial.filter(|partial| partial.path == path);
            let before = known.get(&path);
            let (entry, is_new) = self.add(path, &source, partial, before)?;
            fs::remove_file(&source).map_err(failed("remove", &source))?;
            self.note(entry, is_new, &mut progress);
        }
        let Progress { entries, mut stored, directories } = progress;
        directories.iter().try_for_each(|directory| sync_directory(directory))?;
        stored.name = self.write(&Manifest::new(self.instance.clone(), about, entries))?;
        Ok(stored)
    }

    /// Stores a file that the snapshot may not have. It is not fetched if the newest backup has
    /// it.
    fn store_fetched(
        &self,
        snapshot: &Path,
        needed: Needed,
        known: &HashMap<String, Entry>,
        limits: Limits<'_>,
        fetch: &mut dyn Fetch,
        progress: &mut Progress,
    ) -> Result<()> {
        let Needed { path, bytes } = needed;
        let source = snapshot.join(&path);
        let is_sound = |before: &&Entry| {
            before.modified != 0 && (before.bytes, before.zeros) == (bytes, 0) && self.has(before)
        };
        if let Some(before) = known.get(&path).filter(is_sound) {
            // The snapshot may have a copy.
            forget(&source)?;
            self.note(before.clone(), false, progress);
            return Ok(());
        }
        // What is fetched, and the copy of it that the repository makes.
        let copies = if source.exists() { 0 } else { bytes.saturating_mul(2) };
        refuse_low_disk(snapshot, limits.least_free.saturating_add(copies))?;
        let fetched = fetch.fetch(&source)?;
        if fetched != Fetched::Sound {
            progress.stored.unsound += 1;
        }
        if fetched == Fetched::Absent {
            return Ok(());
        }
        let (mut entry, is_new) = self.add(path, &source, None, None)?;
        if fetched == Fetched::Damaged {
            entry.modified = 0;
        }
        forget(&source)?;
        self.note(entry, is_new, progress);
        Ok(())
    }

    /// Notes that a file is stored.
    fn note(&self, entry: Entry, is_new: bool, progress: &mut Progress) {
        let Progress { entries, stored, directories } = progress;
        stored.files += 1;
        stored.bytes += entry.bytes;
        if is_new {
            stored.new_files += 1;
            stored.new_bytes += entry.bytes;
        }
        // Also those of content that is not new: the command that stored it may have been
        // interrupted before it synced them.
        if self.remote.is_none() {
            directories.extend(self.content(&entry.sha256).parent().map(Path::to_owned));
        }
        entries.push(entry);
    }

    /// Moves content whose length or bytes are wrong to `damaged`, so that the next backup
    /// stores it again. It is read a second time before. What is missing or cannot be read
    /// stays as it is: a device may be able to read it later. Returns whether it was moved.
    ///
    /// # Errors
    /// When it cannot be moved.
    pub fn set_aside(&self, damage: &Damage) -> Result<bool> {
        if !matches!(damage.fault, FileFault::Length { .. } | FileFault::Bytes) {
            return Ok(false);
        }
        let (from, directory) = (self.content(&damage.sha256), self.root.join(DAMAGED));
        let found = match sha256_of(&from) {
            // Content that several backups have may have been moved already.
            Err(error) if error.kind() == ErrorKind::NotFound || is_unreadable(&error) => {
                return Ok(false);
            }
            found => found.map_err(failed("read", &from))?,
        };
        if found == damage.sha256 {
            return Ok(false);
        }
        create_directory(&directory)?;
        fs::rename(&from, directory.join(&damage.sha256)).map_err(failed("move", &from))?;
        Ok(true)
    }

    /// Moves content of `damaged` back whose checksum is right, unless it was stored again:
    /// it was moved after wrong reads. Content that cannot be read stays there.
    ///
    /// # Errors
    /// When it cannot be moved.
    pub fn put_back(&self) -> Result<()> {
        let damaged = self.root.join(DAMAGED);
        if self.is_read_only() || !damaged.is_dir() {
            return Ok(());
        }
        for name in names(&damaged)?.into_iter().filter(|name| is_sha256(name)) {
            let (from, to) = (damaged.join(&name), self.content(&name));
            if to.exists() || !sha256_of(&from).is_ok_and(|found| found == name) {
                continue;
            }
            let directory = to.parent().unwrap_or(&self.root);
            create_directory(directory)?;
            fs::rename(&from, &to).map_err(failed("move", &from))?;
            sync_directory(directory)?;
        }
        Ok(())
    }

    /// Whether a backup takes the space of the files that it copies.
    fn shares_disk_with(&self, snapshot: &Path) -> Result<bool> {
        let device = |path: &Path| {
            let meta = fs::metadata(path).map_err(failed("read", path));
            meta.map(|meta| meta.dev())
        };
        Ok(device(&self.root)? == device(snapshot)?)
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

    /// The files of the newest backup whose manifest can be read, by their paths.
    fn known(&self) -> Result<HashMap<String, Entry>> {
        let newest = self.names()?.iter().rev().find_map(|name| self.manifest(name).ok());
        let files = newest.map(|manifest| manifest.files).unwrap_or_default().into_iter();
        Ok(files.map(|entry| (entry.path.clone(), entry)).collect())
    }

    /// Stores one file, unless its content is stored. Returns whether it is new.
    fn add(
        &self,
        path: String,
        source: &Path,
        partial: Option<&Partial>,
        before: Option<&Entry>,
    ) -> Result<(Entry, bool)> {
        let file = File::open(source).map_err(failed("open", source))?;
        let meta = file.metadata().map_err(failed("read", source))?;
        let length = partial.map_or(meta.len(), |partial| partial.bytes.min(meta.len()));
        let zeros = meta.len() - length;
        // A file that is being written may change without another time.
        let modified = partial.map_or_else(|| modified(&meta), |_| 0);
        if let Some(before) = before
            && modified != 0
            && (before.modified, before.bytes, before.zeros) == (modified, length, zeros)
            && self.has(before)
        {
            return Ok((before.clone(), false));
        }
        let unfinished = self.root.join(FILES).join(UNFINISHED);
        let mut target = File::create(&unfinished).map_err(failed("create", &unfinished))?;
        let (bytes, sha256) =
            copy(&mut file.take(length), &mut target).map_err(failed("copy", source))?;
        if bytes != length {
            return Err(Error::Changed { path: source.to_owned() });
        }
        let entry = Entry { path, bytes, sha256, zeros, modified };
        let is_new = !self.has(&entry);
        target.sync_all().map_err(failed("sync", &unfinished))?;
        let content = self.content(&entry.sha256);
        if let Some(directory) = content.parent() {
            create_directory(directory)?;
        }
        // Also over stored content, which may be damaged: these bytes were just read.
        fs::rename(&unfinished, &content).map_err(failed("rename", &unfinished))?;
        if let Some(remote) = &self.remote {
            remote.add(&entry.sha256, &content)?;
        }
        Ok((entry, is_new))
    }

    /// Whether the content of a file is stored, by its name and its length.
    fn has(&self, entry: &Entry) -> bool {
        if let Some(remote) = &self.remote {
            return remote.has(&entry.sha256);
        }
        let meta = fs::metadata(self.content(&entry.sha256));
        meta.is_ok_and(|meta| meta.is_file() && meta.len() == entry.bytes)
    }

    /// Writes a manifest durably, and returns the name of the backup.
    fn write(&self, manifest: &Manifest) -> Result<String> {
        let (backups, unfinished) =
            (self.root.join(BACKUPS), self.root.join(FILES).join(UNFINISHED));
        let bytes = serde_json::to_vec(manifest)
            .map_err(|error| failed("write", &unfinished)(error.into()))?;
        let (time, hash) = (time_in_name(manifest.created_at), sha256(&bytes));
        let name = format!("{time}-{}", hash.get(..DIGITS).unwrap_or_default());
        // One that could not be read again would be no backup.
        Manifest::parse(&bytes).map_err(|reason| Error::Manifest { name: name.clone(), reason })?;
        let mut file = File::create(&unfinished).map_err(failed("create", &unfinished))?;
        let written = file.write_all(&bytes).and_then(|()| file.sync_all());
        written.map_err(failed("write", &unfinished))?;
        if let Some(remote) = &self.remote {
            remote.storage().confirm()?;
            remote.storage().upload(&manifest_name(&name), &unfinished)?;
        }
        let path = self.manifest_path(&name);
        fs::rename(&unfinished, &path).map_err(failed("create", &path))?;
        sync_directory(&backups)?;
        Ok(name)
    }

    /// Removes content that no backup has. While a manifest cannot be read, everything
    /// stays, because it is not known what that backup has. Returns the names of these.
    fn remove_unused(&self, interrupted: Interrupted) -> Result<Vec<String>> {
        let mut used: HashSet<String> = HashSet::new();
        let mut newest: Option<SystemTime> = None;
        let mut kept_for = Vec::new();
        for name in self.manifests()? {
            let manifest = match self.manifest(&name) {
                // A copy under another name may be the only one, and may be wanted again.
                Ok(manifest) if is_name(&name) => manifest,
                _ => {
                    kept_for.push(name);
                    continue;
                }
            };
            used.extend(manifest.files.into_iter().map(|entry| entry.sha256));
            let path = self.manifest_path(&name);
            let written = fs::metadata(&path).and_then(|meta| meta.modified());
            newest = newest.max(Some(written.map_err(failed("read", &path))?));
        }
        if !kept_for.is_empty() {
            return Ok(kept_for);
        }
        if let Some(remote) = &self.remote {
            // A bucket is not full, so nothing needs to be removed before.
            if matches!(interrupted, Interrupted::Goes) {
                remote.remove_unused(|sha256| used.contains(sha256))?;
            }
            return Ok(kept_for);
        }
        let files = self.root.join(FILES);
        for directory in names(&files)? {
            let directory = files.join(directory);
            if !directory.is_dir() {
                continue;
            }
            for name in names(&directory)? {
                let path = directory.join(&name);
                if !is_sha256(&name) || used.contains(&name) {
                    continue;
                }
                let stays = match interrupted {
                    Interrupted::Goes => false,
                    Interrupted::Stays => {
                        let written = fs::metadata(&path).and_then(|meta| meta.modified());
                        Some(written.map_err(failed("read", &path))?) > newest
                    }
                };
                if !stays {
                    fs::remove_file(&path).map_err(failed("remove", &path))?;
                }
            }
        }
        Ok(kept_for)
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

/// When a file was changed last, nanoseconds since 1970.
fn modified(meta: &fs::Metadata) -> i64 {
    meta.mtime().saturating_mul(1_000_000_000).saturating_add(meta.mtime_nsec())
}

/// The paths of all files below a directory, sorted within each directory.
fn files_below(root: &Path, below: &str, paths: &mut Vec<String>) -> Result<()> {
    let directory = root.join(below);
    for name in names(&directory)? {
        let path = if below.is_empty() { name } else { format!("{below}/{name}") };
        let at = root.join(&path);
        let meta = match fs::symlink_metadata(&at) {
            Ok(meta) => meta,
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(failed("read", &at)(error)),
        };
        if meta.is_dir() {
            files_below(root, &path, paths)?;
        } else if meta.is_file() {
            paths.push(path);
        } else {
            return Err(Error::NoFile { path: at });
        }
    }
    Ok(())
}
