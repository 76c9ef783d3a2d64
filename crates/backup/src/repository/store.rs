//! Storing a snapshot as a backup.

use std::collections::{BTreeSet, HashMap};
use std::fs::{self, File};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use super::removal::Interrupted;
use super::{About, BACKUPS, DIGITS, FILES, Repository, UNFINISHED, refuse_low_disk, time_in_name};
use crate::copy::{copy, create_directory, names, sha256, sync_directory};
use crate::error::{Error, Result, failed};
use crate::fetch::{Fetch, Fetched, Needed};
use crate::manifest::{Entry, Manifest};
use crate::remote::{forget, manifest_name};

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

/// A file of a snapshot that is still being written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partial {
    /// Its path in the snapshot.
    pub path: String,
    /// Its bytes that belong to the backup. Zeros take the place of the others.
    pub bytes: u64,
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

impl Repository {
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

    /// Whether a backup takes the space of the files that it copies.
    fn shares_disk_with(&self, snapshot: &Path) -> Result<bool> {
        let device = |path: &Path| {
            let meta = fs::metadata(path).map_err(failed("read", path));
            meta.map(|meta| meta.dev())
        };
        Ok(device(&self.root)? == device(snapshot)?)
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
