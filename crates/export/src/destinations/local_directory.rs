//! A directory of the server, below the one that the operator configures for exports: for
//! single machines, where DuckDB reads the files.
//!
//! What belongs here: files that appear only when they are complete, and safe paths. Each
//! segment of a path is opened separately and never through a link, also if another
//! process changes the directory in the meantime. What does not: paths as text (`names`).
//!
//! A file is written under a name that begins with a dot. It gets its final name when it
//! is complete and synced.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use rustix::fs::{
    AtFlags, Mode, OFlags, fstat, fstatvfs, fsync, mkdirat, open as open_path, openat, renameat,
    statat, unlinkat,
};
use rustix::io::Errno;
use serde::Deserialize;
use serde_json::{Map, Value};
use weir_model::exports::ExportModel;

use super::Dependencies;
use super::files::{Files, Parts, Storage, columns, read};
use crate::columns::Columns;
use crate::destination::{Destination, Failure, Job, Writer};

/// The steps of its test.
pub(crate) const STEPS: &[&str] = &["Open the directory", "Write a file", "Remove it"];
/// Bytes that are written at a time. Larger parts bring no gain.
const PART: usize = 1 << 20;
/// Bytes of the disk that stay free: the smaller of this number and a twentieth of the
/// disk.
const STAYS_FREE: u64 = 1 << 30;

/// The settings that are not common to all files.
#[derive(Deserialize)]
struct Config {
    path: String,
}

/// Opens the destination.
pub(super) fn open(
    settings: &Map<String, Value>,
    dependencies: &Dependencies,
) -> Result<Files<Directory>, Failure> {
    let Config { path } = read(settings)?;
    if path.starts_with('/') {
        return Err(Failure::permanent(
            "InvalidPrefix",
            "The path begins below the directory for exports.",
        ));
    }
    let root = dependencies.local_root.clone().ok_or_else(|| {
        Failure::permanent(
            "LocalExportsOff",
            "Exports to the server's own disk are off. The operator of this instance can \
             set local_exports.",
        )
    })?;
    Files::new(Directory { root }, &path, settings)
}

/// The operator's directory for exports.
#[derive(Clone)]
pub(super) struct Directory {
    root: PathBuf,
}

/// What happens to missing directories.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    Make,
    Fail,
}

impl Directory {
    /// Opens the directory of a file, one segment after the other.
    fn walk<'a>(&self, name: &'a str, missing: Missing) -> Result<(OwnedFd, &'a str), Failure> {
        let (path, name) = name.rsplit_once('/').unwrap_or(("", name));
        let mut at = open_root(&self.root)?;
        for part in path.split('/').filter(|part| !part.is_empty()) {
            if missing == Missing::Make {
                match mkdirat(&at, part, Mode::RWXU) {
                    Ok(()) => fsync(&at).map_err(fault)?,
                    Err(Errno::EXIST) => {}
                    Err(error) => return Err(fault(error)),
                }
            }
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            at = openat(&at, part, flags, Mode::empty()).map_err(|error| match missing {
                Missing::Make if error == Errno::NOENT => gone(),
                Missing::Make | Missing::Fail => fault(error),
            })?;
        }
        Ok((at, name))
    }

    fn create(&self, name: &str) -> Result<Growing, Failure> {
        let (directory, name) = self.walk(name, Missing::Make)?;
        // Patterns for the files, such as `*.parquet*`, do not match this name.
        let temporary = format!(".{}.part", name.replace('.', "_"));
        // A remainder of an earlier attempt.
        match unlinkat(&directory, &temporary, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(fault(error)),
        }
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let file = openat(&directory, &temporary, flags, mode).map_err(|error| match error {
            Errno::NOENT => gone(),
            error => fault(error),
        })?;
        Ok(Growing { directory, file: file.into(), temporary, name: name.to_owned() })
    }

    fn has(&self, name: &str) -> Result<bool, Failure> {
        let (directory, name) = match self.walk(name, Missing::Fail) {
            Err(failure) if failure.class == MISSING => return Ok(false),
            walked => walked?,
        };
        match statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(fault(error)),
        }
    }

    fn remove(&self, name: &str) -> Result<(), Failure> {
        let (directory, name) = match self.walk(name, Missing::Fail) {
            Err(failure) if failure.class == MISSING => return Ok(()),
            walked => walked?,
        };
        match unlinkat(&directory, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(fault(error)),
        }
    }

    /// Whether the existing directories of a file can be opened.
    fn reach(&self, name: &str) -> Result<(), Failure> {
        match self.walk(name, Missing::Fail) {
            Err(failure) if failure.class == MISSING => Ok(()),
            walked => walked.map(drop),
        }
    }

    /// Removes the empty directories of a file.
    fn prune(&self, name: &str) -> Result<(), Failure> {
        let mut path = name;
        while let Some((above, _)) = path.rsplit_once('/') {
            path = above;
            let (parent, last) = match self.walk(path, Missing::Fail) {
                Err(failure) if failure.class == MISSING => continue,
                walked => walked?,
            };
            match unlinkat(&parent, last, AtFlags::REMOVEDIR) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(Errno::NOTEMPTY | Errno::EXIST) => break,
                Err(error) => return Err(fault(error)),
            }
        }
        Ok(())
    }
}

/// The failure when a created directory has disappeared: a test of a destination removes
/// the directories that it created if they are empty.
fn gone() -> Failure {
    Failure::retryable("WriteFailed", "The directory was taken away just now.")
}

fn open_root(root: &Path) -> Result<OwnedFd, Failure> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    open_path(root, flags, Mode::empty()).map_err(|error| {
        tracing::warn!(%error, root = %root.display(), "the directory for exports cannot be opened");
        Failure::permanent(
            "LocalExportsOff",
            "The directory for exports of this instance cannot be opened.",
        )
    })
}

/// The class of a failure for a missing directory.
const MISSING: &str = "NoDirectory";

fn fault(error: Errno) -> Failure {
    match error {
        Errno::NOENT => Failure::permanent(MISSING, "The directory is not there."),
        Errno::LOOP | Errno::NOTDIR => Failure::permanent(
            "NotADirectory",
            "A part of the path is no directory: a file, or a link, which exports do not follow.",
        ),
        Errno::ISDIR => {
            Failure::permanent("NotAFile", "Where the file belongs there is a directory.")
        }
        Errno::ACCESS | Errno::PERM | Errno::ROFS => {
            Failure::permanent("AccessDenied", "The server may not write in this directory.")
        }
        Errno::NAMETOOLONG => {
            Failure::permanent("InvalidPrefix", "A part of the path is too long.")
        }
        Errno::NOSPC | Errno::DQUOT => full(),
        _ => {
            tracing::error!(%error, "a file of an export cannot be written");
            Failure::retryable("WriteFailed", "The file could not be written.")
        }
    }
}

fn of_io(error: &io::Error) -> Failure {
    fault(Errno::from_io_error(error).unwrap_or(Errno::IO))
}

fn full() -> Failure {
    Failure::retryable("DiskFull", "The disk of the server is nearly full.")
}

/// A file that is not complete yet.
struct Growing {
    directory: OwnedFd,
    file: File,
    temporary: String,
    name: String,
}

impl Growing {
    fn write(&self, part: &[Bytes]) -> Result<(), Failure> {
        // The server itself stops accepting events when the disk is full.
        let disk = fstatvfs(&self.file).map_err(fault)?;
        let stays = STAYS_FREE.min(disk.f_blocks.saturating_mul(disk.f_frsize) / 20);
        if disk.f_bavail.saturating_mul(disk.f_frsize) < stays {
            return Err(full());
        }
        for bytes in part {
            (&self.file).write_all(bytes).map_err(|error| of_io(&error))?;
        }
        Ok(())
    }

    fn finish(&self) -> Result<(), Failure> {
        fsync(&self.file).map_err(fault)?;
        // Another attempt may have begun the same file again.
        let own = fstat(&self.file).map_err(fault)?;
        let there = statat(&self.directory, &self.temporary, AtFlags::SYMLINK_NOFOLLOW);
        if !there.is_ok_and(|there| (there.st_dev, there.st_ino) == (own.st_dev, own.st_ino)) {
            return Err(Failure::retryable("WriteFailed", "Another run writes the same file."));
        }
        renameat(&self.directory, &self.temporary, &self.directory, &self.name).map_err(fault)?;
        fsync(&self.directory).map_err(fault)
    }

    fn discard(&self) {
        if let Err(error) = unlinkat(&self.directory, &self.temporary, AtFlags::empty()) {
            tracing::warn!(%error, name = self.temporary, "a file that is not whole stays");
        }
    }
}

/// Runs disk operations on a thread that may block.
async fn on_disk<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
        tracing::error!(%error, "writing a file ended");
        Err(Failure::retryable("WriteFailed", "The file could not be written."))
    })
}

#[async_trait]
impl Storage for Directory {
    fn part_bytes(&self) -> usize {
        PART
    }

    async fn put(&self, name: &str, content: Vec<Bytes>) -> Result<(), Failure> {
        let mut file = self.open(name).await?;
        let written = match file.add(content).await {
            Ok(()) => file.complete().await,
            failed => failed,
        };
        if written.is_err() {
            file.abort().await;
        }
        written
    }

    async fn open(&self, name: &str) -> Result<Box<dyn Parts>, Failure> {
        let (directory, name) = (self.clone(), name.to_owned());
        let file = on_disk(move || directory.create(&name)).await?;
        Ok(Box::new(LocalFile(Arc::new(file))))
    }

    async fn has(&self, name: &str) -> Result<bool, Failure> {
        let (directory, name) = (self.clone(), name.to_owned());
        on_disk(move || directory.has(&name)).await
    }

    async fn remove(&self, name: &str) -> Result<(), Failure> {
        let (directory, name) = (self.clone(), name.to_owned());
        on_disk(move || directory.remove(&name)).await
    }
}

struct LocalFile(Arc<Growing>);

#[async_trait]
impl Parts for LocalFile {
    async fn add(&mut self, part: Vec<Bytes>) -> Result<(), Failure> {
        let file = Arc::clone(&self.0);
        on_disk(move || file.write(&part)).await
    }

    async fn complete(&mut self) -> Result<(), Failure> {
        let file = Arc::clone(&self.0);
        on_disk(move || file.finish()).await
    }

    async fn abort(&mut self) {
        let file = Arc::clone(&self.0);
        let discarded = on_disk(move || {
            file.discard();
            Ok(())
        });
        // `discarded` logs its own failures.
        let _ = discarded.await;
    }
}

#[async_trait]
impl Destination for Files<Directory> {
    fn columns(&self) -> Columns {
        columns()
    }

    async fn begin(&self, job: Job) -> Result<Box<dyn Writer>, Failure> {
        self.start(&job)
    }

    fn steps(&self) -> &'static [&'static str] {
        STEPS
    }

    async fn test(&self, step: usize, _: ExportModel) -> Result<(), Failure> {
        let (directory, name) = (Directory::clone(&self.storage), self.probe()?);
        match step {
            0 => on_disk(move || directory.reach(&name)).await,
            step => {
                let done = match step {
                    1 => self.test_writing().await,
                    _ => self.test_removing().await,
                };
                done.and(on_disk(move || directory.prune(&name)).await)
            }
        }
    }
}
