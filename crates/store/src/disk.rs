//! The disk guard: the engine must never meet a full disk (DUR-13).
//!
//! Below the high threshold the service reports itself not ready. Below the low threshold
//! writes are refused. Reads and deletions continue, and signing in works down to a
//! quarter of the low threshold. When free space rises above the high threshold, the
//! service returns to normal automatically.

use std::path::{Path, PathBuf};
#[cfg(test)]
use std::sync::atomic::AtomicBool;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// Thresholds of free disk space, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskMarks {
    /// Below this the service reports itself not ready.
    pub high: u64,
    /// Below this writes are refused.
    pub low: u64,
}

impl Default for DiskMarks {
    fn default() -> Self {
        Self { high: 1 << 30, low: 256 << 20 }
    }
}

/// How much free space the disk has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskLevel {
    /// Enough free space.
    Ok,
    /// Below the high threshold.
    Warning,
    /// Below the low threshold. Stays until free space reaches the high threshold again.
    Low,
}

/// The state that the guard sets and every writer reads.
#[derive(Debug)]
pub struct DiskState {
    directory: Option<PathBuf>,
    marks: DiskMarks,
    level: AtomicU8,
    free: AtomicU64,
    /// Whether a test pretends that all is free.
    #[cfg(test)]
    is_empty: AtomicBool,
}

impl DiskState {
    /// The state of the file system that holds `directory`; `None` for a store in memory,
    /// which always has enough.
    pub fn new(directory: Option<PathBuf>, marks: DiskMarks) -> Self {
        let state = Self {
            directory,
            marks,
            level: AtomicU8::new(0),
            free: AtomicU64::new(u64::MAX),
            #[cfg(test)]
            is_empty: AtomicBool::new(false),
        };
        state.check();
        state
    }

    /// Measures free space and sets the level. To be called every second.
    pub fn check(&self) -> DiskLevel {
        let Some(directory) = &self.directory else { return DiskLevel::Ok };
        let free = free_space(directory);
        #[cfg(test)]
        let free = if self.is_empty.load(Ordering::Relaxed) { Some(u64::MAX) } else { free };
        let Some(free) = free else { return self.level() };
        self.free.store(free, Ordering::Relaxed);
        let before = self.level();
        let now = next_level(before, free, self.marks);
        self.level.store(now as u8, Ordering::Release);
        if now != before {
            tracing::warn!(free_bytes = free, level = ?now, "free disk space changed level");
        }
        now
    }

    /// From now on all of the disk is free.
    #[cfg(test)]
    pub(crate) fn empty(&self) {
        self.is_empty.store(true, Ordering::Relaxed);
        self.check();
    }

    /// The level at the last check.
    pub fn level(&self) -> DiskLevel {
        match self.level.load(Ordering::Acquire) {
            0 => DiskLevel::Ok,
            1 => DiskLevel::Warning,
            _ => DiskLevel::Low,
        }
    }

    /// Whether writes are refused.
    pub fn is_low(&self) -> bool {
        self.level() == DiskLevel::Low
    }

    /// Whether even the writes of a sign-in are refused: a quarter of the low threshold
    /// stays reserved for the engine.
    pub(crate) fn is_nearly_full(&self) -> bool {
        self.is_low() && self.free_bytes() < self.marks.low / 4
    }

    /// Free bytes at the last check.
    pub fn free_bytes(&self) -> u64 {
        self.free.load(Ordering::Relaxed)
    }
}

/// Name of the ballast file in the data directory.
const BALLAST: &str = "ballast";
/// Size of the ballast file.
const BALLAST_BYTES: u64 = 64 << 20;

/// Keeps a ballast file in the data directory. An operator who has to repair a full disk
/// can delete it to free space. The file is made again at a start when free space would
/// stay above the high threshold with the file in place.
///
/// # Errors
/// When it cannot be written. The service works without it.
pub(crate) fn keep_ballast(directory: &Path, marks: DiskMarks) -> std::io::Result<()> {
    let path = directory.join(BALLAST);
    if path.exists()
        || free_space(directory).is_none_or(|free| free < marks.high.saturating_add(BALLAST_BYTES))
    {
        return Ok(());
    }
    let file = std::fs::File::create(&path)?;
    let flags = rustix::fs::FallocateFlags::empty();
    let allocated = rustix::fs::fallocate(&file, flags, 0, BALLAST_BYTES);
    allocated.or_else(|error| {
        // An incomplete file would never be completed.
        std::fs::remove_file(&path)?;
        Err(error.into())
    })
}

fn next_level(before: DiskLevel, free: u64, marks: DiskMarks) -> DiskLevel {
    if free < marks.low {
        DiskLevel::Low
    } else if free >= marks.high {
        DiskLevel::Ok
    } else if before == DiskLevel::Low {
        // Between the thresholds after a shortage: writes wait for the high threshold.
        // Otherwise they would start and stop with every file that is deleted.
        DiskLevel::Low
    } else {
        DiskLevel::Warning
    }
}

/// Free bytes of the file system that holds a directory; `None` if the system does not say.
pub fn free_space(directory: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(directory)
        .map_err(|error| tracing::error!(%error, "cannot measure free disk space"))
        .ok()?;
    Some(stat.f_bavail.saturating_mul(stat.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::{BALLAST, DiskLevel, DiskMarks, keep_ballast, next_level};

    #[test]
    fn ballast_is_kept_where_there_is_room() {
        let place = tempfile::tempdir().unwrap();
        let full = DiskMarks { high: u64::MAX, low: 0 };
        keep_ballast(place.path(), full).unwrap();
        assert!(!place.path().join(BALLAST).exists());
        for _ in 0..2 {
            keep_ballast(place.path(), DiskMarks { high: 0, low: 0 }).unwrap();
            assert_eq!(place.path().join(BALLAST).metadata().unwrap().len(), 64 << 20);
        }
    }

    #[test]
    fn levels_have_hysteresis() {
        let marks = DiskMarks { high: 100, low: 20 };
        let cases = [
            (DiskLevel::Ok, 100, DiskLevel::Ok),
            (DiskLevel::Ok, 99, DiskLevel::Warning),
            (DiskLevel::Ok, 19, DiskLevel::Low),
            (DiskLevel::Low, 50, DiskLevel::Low),
            (DiskLevel::Low, 100, DiskLevel::Ok),
            (DiskLevel::Warning, 20, DiskLevel::Warning),
        ];
        for (before, free, after) in cases {
            assert_eq!(next_level(before, free, marks), after, "{before:?} {free}");
        }
    }
}
