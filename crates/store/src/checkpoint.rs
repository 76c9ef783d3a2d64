//! A checkpoint: the files of the store of a data directory, at one moment, while a service
//! may use it (DUR-16). This needs no connection to that service.
//!
//! RocksDB can make a checkpoint, but the query engine gives no access to it. So the files
//! are taken by what RocksDB itself relies on after a crash (`docs/adr/0023-backup.md`):
//!
//! - A table (`.sst`) is never written again. It is removed only after an entry of the
//!   manifest says so. So if the manifest has not grown while all tables were linked, then
//!   all tables that it names are linked.
//! - The write-ahead logs are only appended to. All but the newest are complete, and of that
//!   one a beginning is copied, which is what a crash leaves. A commit is acknowledged after
//!   it is in the log, so the copy has all commits from before.
//! - If the manifest, the name of it in `CURRENT` or the list of logs has changed, the
//!   attempt is repeated.
//!
//! The files of sealed events are linked before, under the lock that a change of the catalog
//! needs (`events::segments`). So the catalog in the checkpoint names files that are there.
//!
//! What belongs here: which files make a checkpoint. What does not: the ingest log
//! (`weir-ingest`), and where the files are stored (`weir-backup`).

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::Error;
use crate::engine::{STORE, create_private, lock_directory};
use crate::events::{SEGMENTS, lock_segments};

/// Attempts to link all files between two changes of the manifest.
const ATTEMPTS: u32 = 200;
/// The pause between two attempts. RocksDB changes its manifest some times a second at most.
const PAUSE: Duration = Duration::from_millis(50);
/// The file that names the manifest.
const CURRENT: &str = "CURRENT";
/// Longest content of that file, bytes.
const LONGEST_NAME: u64 = 256;
const MANIFEST: &str = "MANIFEST-";
/// Files that RocksDB copies into a checkpoint too, if they exist.
const IDENTITY: &str = "IDENTITY";
const OPTIONS: &str = "OPTIONS-";
/// Longest file with the settings of the database, bytes.
const LONGEST_OPTIONS: u64 = 1 << 20;
/// Settings of the database that a checkpoint relies on.
const NEEDED_OPTIONS: [(&str, &str); 3] = [
    ("recycle_log_file_num", "0"),
    ("track_and_verify_wals_in_manifest", "false"),
    ("track_and_verify_wals", "false"),
];
/// The ending of a file that is not complete.
const UNFINISHED: &str = ".tmp";

/// Why there is no checkpoint.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// An operation of the file system failed.
    #[error("cannot {action} `{}`", path.display())]
    Io {
        /// The operation.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        source: io::Error,
    },
    /// The database has settings with which its files cannot be copied like this.
    #[error("the settings of the database do not allow a backup: {detail}")]
    Options {
        /// The setting.
        detail: String,
    },
    /// A server of an earlier version uses the data directory.
    #[error(
        "a server of an earlier version uses the data directory `{}`; \
         start this version once, or stop Weir",
        path.display()
    )]
    Earlier {
        /// The data directory.
        path: PathBuf,
    },
    /// Something in the data directory is neither a file nor a directory.
    #[error("`{}` is neither a file nor a directory; move it away", path.display())]
    NoFile {
        /// Where it is in the data directory.
        path: PathBuf,
    },
    /// A part of the data directory is on another file system, which has no links to it.
    #[error(
        "`{}` is on another file system than the data directory; \
         move it there: a backup links the files of `store`, `segments` and `log`",
        path.display()
    )]
    OtherFileSystem {
        /// A file of this part.
        path: PathBuf,
    },
    /// The database changed its files in every attempt.
    #[error("the database changed its files in each of {attempts} attempts; try again later")]
    Unsettled {
        /// The number of attempts.
        attempts: u32,
    },
    /// The process is ending.
    #[error("the process is ending")]
    Interrupted,
}

type Result<T, E = CheckpointError> = std::result::Result<T, E>;

/// Writes a checkpoint of the store in `data` to the directory `target` on the same file
/// system: its files are links where that is possible.
///
/// Everything that was committed before this function was called is in it. Returns the
/// number of attempts.
///
/// # Errors
/// [`CheckpointError`] with the reason; [`CheckpointError::Interrupted`] when `is_stopped`
/// was set. What `target` has then is no checkpoint.
pub async fn checkpoint(data: &Path, target: &Path, is_stopped: &AtomicBool) -> Result<u32> {
    let lock = lock(data, is_stopped).await?;
    let (from, to) = (data.join(SEGMENTS), target.join(SEGMENTS));
    let linked = blocking(move || {
        remove(&to)?;
        link_below(&from, &to)
    });
    linked.await?;
    for attempt in 1..=ATTEMPTS {
        end_if(is_stopped)?;
        let (from, to) = (data.join(STORE), target.join(STORE));
        if blocking(move || link_engine(&from, &to)).await? {
            drop(lock);
            return Ok(attempt);
        }
        tracing::debug!(attempt, "the database changed its files during a checkpoint");
        tokio::time::sleep(PAUSE).await;
    }
    Err(CheckpointError::Unsettled { attempts: ATTEMPTS })
}

/// Links the store of a checkpoint to another directory on the same file system, so that it
/// can be opened there without a change of the checkpoint. Blocks the thread.
///
/// # Errors
/// [`CheckpointError`] with the reason.
pub(crate) fn link_again(from: &Path, target: &Path) -> Result<()> {
    match link_engine(&from.join(STORE), &target.join(STORE))? {
        true => Ok(()),
        false => Err(CheckpointError::Unsettled { attempts: 1 }),
    }
}

/// Waits for the lock of the files of events, for as long as a merge takes.
async fn lock(data: &Path, is_stopped: &AtomicBool) -> Result<File> {
    let of = data.to_owned();
    // If the process is asked to end meanwhile, the thread is left behind.
    let mut locking = tokio::task::spawn_blocking(move || lock_segments(&of));
    let locked = loop {
        end_if(is_stopped)?;
        if let Ok(locked) = tokio::time::timeout(PAUSE, &mut locking).await {
            break locked.map_err(|_| CheckpointError::Interrupted)?;
        }
    };
    match locked.map_err(failed("lock", data))? {
        Some(lock) => Ok(lock),
        None => lock_stopped(data),
    }
}

/// No server of this version has used the data directory yet. While none of an earlier one
/// runs, its own lock is enough.
fn lock_stopped(data: &Path) -> Result<File> {
    lock_directory(data).map_err(|error| match error {
        Error::Directory { path, source } => failed("lock", &path)(source),
        _ => CheckpointError::Earlier { path: data.to_owned() },
    })
}

fn end_if(is_stopped: &AtomicBool) -> Result<()> {
    match is_stopped.load(Ordering::Acquire) {
        true => Err(CheckpointError::Interrupted),
        false => Ok(()),
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(|_| CheckpointError::Interrupted)?
}

/// What says which files the database needs.
#[derive(Debug, PartialEq, Eq)]
struct Needed {
    /// The content of `CURRENT`.
    current: Vec<u8>,
    /// The name of the manifest.
    manifest: String,
    /// The length of the manifest, which only grows.
    length: u64,
    /// The write-ahead logs, the oldest first.
    logs: Vec<String>,
}

impl Needed {
    /// `None`: the manifest is being replaced.
    fn read(store: &Path) -> Result<Option<Self>> {
        let path = store.join(CURRENT);
        let mut current = Vec::new();
        let file = File::open(&path).map_err(failed("open", &path))?;
        file.take(LONGEST_NAME).read_to_end(&mut current).map_err(failed("read", &path))?;
        let name = std::str::from_utf8(&current).ok().and_then(|text| text.strip_suffix('\n'));
        let Some(manifest) = name.filter(|name| is_manifest(name)).map(str::to_owned) else {
            return Ok(None);
        };
        let path = store.join(&manifest);
        let length = match fs::metadata(&path) {
            Ok(meta) => meta.len(),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed("read", &path)(error)),
        };
        let mut logs = names(store)?;
        logs.retain(|name| is_numbered(name, ".log"));
        // By their numbers: from a million on, a number has more digits.
        logs.sort_by(|one, other| (one.len(), one).cmp(&(other.len(), other)));
        Ok(Some(Self { current, manifest, length, logs }))
    }
}

/// Makes one attempt. Returns whether the files are of one moment.
fn link_engine(store: &Path, target: &Path) -> Result<bool> {
    remove(target)?;
    create_private(target).map_err(failed("create", target))?;
    let Some(needed) = Needed::read(store)? else { return Ok(false) };
    for name in names(store)? {
        let (from, to) = (store.join(&name), target.join(&name));
        if is_numbered(&name, ".sst") || is_numbered(&name, ".blob") {
            // One that is not there any more is not needed, or the attempt is repeated.
            link(&from, &to)?;
        } else if name == IDENTITY || name.starts_with(OPTIONS) {
            copy(&from, &to, u64::MAX)?;
        }
    }
    // The newest first: until it has entries, the one before may still grow.
    if let Some((newest, older)) = needed.logs.split_last() {
        copy(&store.join(newest), &target.join(newest), u64::MAX)?;
        older.iter().try_for_each(|name| link(&store.join(name), &target.join(name)))?;
    }
    copy(&store.join(&needed.manifest), &target.join(&needed.manifest), needed.length)?;
    let current = target.join(CURRENT);
    fs::write(&current, &needed.current).map_err(failed("write", &current))?;
    let is_settled = Needed::read(store)?.as_ref() == Some(&needed);
    if is_settled {
        refuse_options(target)?;
    }
    Ok(is_settled)
}

/// Refuses settings of the database with which a copy of these files would be no
/// checkpoint: recycled logs are not only appended to, and tracked logs must have the
/// length that the manifest says.
fn refuse_options(store: &Path) -> Result<()> {
    let mut files = names(store)?;
    files.retain(|name| name.strip_prefix(OPTIONS).is_some_and(is_number));
    files.sort_by(|one, other| (one.len(), one).cmp(&(other.len(), other)));
    let Some(newest) = files.last() else {
        return Err(CheckpointError::Options { detail: "no file names them".to_owned() });
    };
    let path = store.join(newest);
    let file = File::open(&path).map_err(failed("open", &path))?;
    let mut bytes = Vec::new();
    file.take(LONGEST_OPTIONS).read_to_end(&mut bytes).map_err(failed("read", &path))?;
    let text = String::from_utf8_lossy(&bytes);
    for (option, needed) in NEEDED_OPTIONS {
        let value = |line: &str| {
            let value = line.trim().strip_prefix(option)?.strip_prefix('=')?;
            Some(value.to_owned())
        };
        let found = text.lines().find_map(value);
        if found.as_deref() != Some(needed) {
            let found = found.unwrap_or_else(|| "not set".to_owned());
            let detail = format!("`{option}` is {found}, and must be {needed}");
            return Err(CheckpointError::Options { detail });
        }
    }
    Ok(())
}

/// Removes what an earlier attempt has linked: it may be of another moment.
fn remove(target: &Path) -> Result<()> {
    match fs::remove_dir_all(target) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(failed("remove", target)(error)),
        _ => Ok(()),
    }
}

/// Links all complete files below a directory, which need not exist.
fn link_below(from: &Path, to: &Path) -> Result<()> {
    create_private(to).map_err(failed("create", to))?;
    if !from.exists() {
        return Ok(());
    }
    for name in names(from)? {
        let (from, to) = (from.join(&name), to.join(&name));
        match fs::symlink_metadata(&from) {
            Ok(meta) if meta.is_dir() => link_below(&from, &to)?,
            Ok(meta) if meta.is_file() && name.ends_with(UNFINISHED) => {}
            Ok(_) => link(&from, &to)?,
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(failed("read", &from)(error)),
        }
    }
    Ok(())
}

/// Links a file, unless it was removed.
fn link(from: &Path, to: &Path) -> Result<()> {
    // A symbolic link would be linked itself, and lead out of the backup.
    if fs::symlink_metadata(from).is_ok_and(|meta| !meta.is_file()) {
        return Err(CheckpointError::NoFile { path: from.to_owned() });
    }
    match fs::hard_link(from, to) {
        Err(error) if error.kind() == ErrorKind::CrossesDevices => {
            Err(CheckpointError::OtherFileSystem { path: from.to_owned() })
        }
        Err(error) if error.kind() != ErrorKind::NotFound => Err(failed("link", from)(error)),
        _ => Ok(()),
    }
}

/// Copies the beginning of a file, unless it was removed. Of a file that grows, what it has
/// now.
fn copy(from: &Path, to: &Path, at_most: u64) -> Result<()> {
    let file = match File::open(from) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        opened => opened.map_err(failed("open", from))?,
    };
    let length = file.metadata().map_err(failed("read", from))?.len().min(at_most);
    let mut target = File::create(to).map_err(failed("create", to))?;
    io::copy(&mut file.take(length), &mut target).map_err(failed("copy", from))?;
    Ok(())
}

/// The names in a directory. One that is not Unicode is none of ours.
fn names(directory: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed("list", directory))? {
        let entry = entry.map_err(failed("list", directory))?;
        names.extend(entry.file_name().into_string());
    }
    Ok(names)
}

/// Whether a name is a number with this ending.
fn is_numbered(name: &str, ending: &str) -> bool {
    name.strip_suffix(ending).is_some_and(is_number)
}

fn is_manifest(name: &str) -> bool {
    name.strip_prefix(MANIFEST).is_some_and(is_number)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The error of an operation on a path.
fn failed<'a>(
    action: &'static str,
    path: &'a Path,
) -> impl FnOnce(io::Error) -> CheckpointError + 'a {
    move |source| CheckpointError::Io { action, path: path.to_owned(), source }
}

#[cfg(test)]
mod tests;
