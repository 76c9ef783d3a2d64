//! Segment files: `<20 digits of the first offset>.log`, allocated in advance,
//! zero after the last record.
//!
//! What belongs here: creating, opening and reading one file. What does not: the records
//! in it (`frame`, `recovery`), writing them (`writer`).

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use super::LogError;

/// One open segment.
#[derive(Debug, Clone)]
pub(super) struct Segment {
    /// Offset of its first byte.
    pub(super) base: u64,
    /// Offset after its last record. It grows while the segment is open. Until recovery
    /// has scanned the file: the end of the file.
    pub(super) end: u64,
    /// When its last record was written, according to the file system. `None`: this
    /// process created the segment and still writes to it.
    pub(super) last_written_at: Option<SystemTime>,
    pub(super) path: PathBuf,
    pub(super) file: Arc<File>,
}

impl Segment {
    /// Creates and allocates the segment that begins at `base`, and makes its
    /// name durable.
    pub(super) fn create(directory: &Path, base: u64, size: u64) -> Result<Self, LogError> {
        let path = directory.join(format!("{base:020}.log"));
        let failed = |action| {
            let path = path.clone();
            move |source: std::io::Error| LogError::Io { action, path, source }
        };
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(failed("create"))?;
        let allocated = rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, size)
            .map_err(std::io::Error::from)
            .and_then(|()| file.sync_all());
        if let Err(error) = allocated {
            // A segment without allocated space must not stay. A full disk is refused
            // here, before anything in the segment is acknowledged.
            let _ = std::fs::remove_file(&path);
            return Err(failed("allocate")(error));
        }
        sync_directory(directory)?;
        Ok(Self { base, end: base, last_written_at: None, path, file: Arc::new(file) })
    }

    /// Opens the existing segments of `directory`, in order.
    pub(super) fn open_all(directory: &Path) -> Result<Vec<Self>, LogError> {
        let mut options = File::options();
        options.read(true).write(true);
        let segments = Self::list(directory)?;
        segments.into_iter().map(|(base, path)| Self::open(base, path, &options)).collect()
    }

    /// First offsets and paths of the existing segments, in order.
    pub(super) fn list(directory: &Path) -> Result<Vec<(u64, PathBuf)>, LogError> {
        let failed = |source| LogError::Io { action: "list", path: directory.to_owned(), source };
        let mut segments = Vec::new();
        for entry in std::fs::read_dir(directory).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let base = path
                .file_name()
                .and_then(|name| name.to_str())
                .and_then(|name| name.strip_suffix(".log"))
                .and_then(|digits| digits.parse::<u64>().ok());
            segments.extend(base.map(|base| (base, path)));
        }
        segments.sort();
        Ok(segments)
    }

    /// Opens the segment that begins at `base`.
    pub(super) fn open(base: u64, path: PathBuf, options: &OpenOptions) -> Result<Self, LogError> {
        let failed = |action| {
            let path = path.clone();
            move |source| LogError::Io { action, path, source }
        };
        let file = options.open(&path).map_err(failed("open"))?;
        let meta = file.metadata().map_err(failed("measure"))?;
        let last_written_at = meta.modified().ok();
        Ok(Self { base, end: base + meta.len(), last_written_at, path, file: Arc::new(file) })
    }

    /// The bytes of the segment up to its end.
    pub(super) fn read_all(&self) -> Result<Vec<u8>, LogError> {
        self.read_at(self.base, usize::try_from(self.end - self.base).unwrap_or(usize::MAX))
    }

    /// Reads bytes at a log offset. The result is shorter at the end of the file.
    pub(super) fn read_at(&self, offset: u64, length: usize) -> Result<Vec<u8>, LogError> {
        let mut buffer = vec![0; length];
        let mut filled = 0;
        while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            let position = offset - self.base + filled as u64;
            match self.file.read_at(rest, position) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(source) => {
                    return Err(LogError::Io { action: "read", path: self.path.clone(), source });
                }
            }
        }
        buffer.truncate(filled);
        Ok(buffer)
    }
}

/// Makes the names in a directory durable.
pub(super) fn sync_directory(directory: &Path) -> Result<(), LogError> {
    File::open(directory).and_then(|dir| dir.sync_all()).map_err(|source| LogError::Io {
        action: "sync",
        path: directory.to_owned(),
        source,
    })
}
