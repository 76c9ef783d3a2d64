//! The note of the last backup, in a file of the data directory.
//!
//! What belongs here: reading and writing that file. It is written by the command or the
//! server, whichever made the backup, and the server shows it. It is no part of a backup.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use weir_model::Timestamp;

const FILE: &str = "last-backup.json";
/// The same while it is not complete.
const UNFINISHED: &str = "last-backup.json.tmp";
/// Longest file, bytes. A path has at most 4 KiB, and each of its bytes takes at most six.
const LONGEST: u64 = 32 << 10;

/// A backup that was stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastBackup {
    /// The directory of backups, absolute, or the address of the bucket.
    pub directory: PathBuf,
    /// The name of the backup.
    pub name: String,
    /// When it began.
    pub began_at: Timestamp,
    /// Milliseconds until it was stored.
    pub took_ms: u64,
    /// The bytes of all of its files.
    pub bytes: u64,
    /// The bytes that no earlier backup in the directory had.
    pub new_bytes: u64,
}

/// Reads the note. A file that cannot be read says nothing, and the next backup replaces it.
pub(super) fn read(data: &Path) -> Option<LastBackup> {
    let file = File::open(data.join(FILE)).ok()?;
    let mut text = Vec::new();
    file.take(LONGEST).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

/// Writes the note. A reader sees the former one or this one.
pub(super) fn write(data: &Path, last: &LastBackup) -> io::Result<()> {
    let (path, unfinished) = (data.join(FILE), data.join(UNFINISHED));
    let mut file = File::create(&unfinished)?;
    file.write_all(&serde_json::to_vec(last)?)?;
    file.sync_all()?;
    fs::rename(unfinished, path)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use weir_model::Timestamp;

    use super::{FILE, LastBackup, read, write};

    #[test]
    fn what_is_noted_can_be_read_again() {
        let data = tempfile::tempdir().unwrap();
        assert_eq!(read(data.path()), None);
        let mut last = LastBackup {
            directory: "/mnt/backups".into(),
            name: "20260601T100000.000Z-0123456789abcdef".to_owned(),
            began_at: Timestamp::from_micros(1_780_308_000_000_000),
            took_ms: 1_500,
            bytes: 7_000,
            new_bytes: 300,
        };
        for bytes in [7_000, 8_000] {
            last.bytes = bytes;
            write(data.path(), &last).unwrap();
            assert_eq!(read(data.path()).as_ref(), Some(&last));
        }
        assert_eq!(fs::read_dir(data.path()).unwrap().count(), 1);
        fs::write(data.path().join(FILE), "{").unwrap();
        assert_eq!(read(data.path()), None);
    }
}
