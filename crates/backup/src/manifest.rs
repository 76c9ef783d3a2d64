//! The manifest of a backup: every file with its length and checksum.
//!
//! A manifest is input: its size, the number of its files and their paths have bounds, and
//! no path leads out of the directory that is restored (DUR-19).

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::instance::is_id;
use crate::repository::About;

/// The form of manifests that this program writes and reads.
const VERSION: u32 = 1;
/// Longest manifest, bytes.
pub(crate) const LONGEST: u64 = 256 << 20;
/// Files of a backup.
const FILES: usize = 1_000_000;
/// Longest path of a file, bytes.
const LONGEST_PATH: usize = 512;
/// Names in a path.
const DEEPEST: usize = 8;
/// Zeros that all files of a backup may end with, bytes: a segment of the ingest log is
/// allocated before it is used.
const MOST_ZEROS: u64 = 1 << 30;
/// The parts of a data directory that a backup has: directories,
const PARTS: [&str; 3] = ["log", "segments", "store"];
/// and files.
const SINGLE: [&str; 1] = ["erasures.jsonl"];
/// Digits of a SHA-256.
const DIGITS: usize = 64;

/// What is in a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The form of the manifest.
    pub version: u32,
    /// The id of the instance.
    pub instance: String,
    /// The newest schema of the store that the program which made the backup knows.
    pub schema: i64,
    /// The version of that program.
    pub program: String,
    /// When the backup began, microseconds since 1970.
    pub created_at: i64,
    /// The files, by their paths.
    pub files: Vec<Entry>,
}

/// A file of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its path in the data directory.
    pub path: String,
    /// The length of its stored content, bytes.
    pub bytes: u64,
    /// The SHA-256 of its stored content.
    pub sha256: String,
    /// Zeros that follow the content, bytes. They are not stored.
    #[serde(default)]
    pub zeros: u64,
    /// When the file was changed last, nanoseconds since 1970. The next backup need not
    /// read a file with the same path, length and time. 0: it is always read.
    #[serde(default)]
    pub modified: i64,
}

impl Entry {
    /// Whether the file is never written again, so that a link is as good as a copy.
    pub(crate) fn is_immutable(&self) -> bool {
        match self.path.split_once('/') {
            Some(("segments", _)) => true,
            Some(("store", name)) => name.ends_with(".sst") || name.ends_with(".blob"),
            _ => false,
        }
    }
}

impl Manifest {
    pub(crate) fn new(instance: String, about: About, files: Vec<Entry>) -> Self {
        let About { schema, program, created_at } = about;
        Self { version: VERSION, instance, schema, program, created_at, files }
    }

    /// Reads a manifest; the error says what is wrong with it.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, String> {
        if bytes.len() as u64 > LONGEST {
            return Err(format!("it has more than {LONGEST} bytes"));
        }
        let manifest: Self = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if manifest.version != VERSION {
            return Err(format!("its version is {}, and not {VERSION}", manifest.version));
        }
        if !is_id(&manifest.instance) {
            return Err("it has no id of an instance".to_owned());
        }
        if manifest.files.len() > FILES {
            return Err(format!("it has more than {FILES} files"));
        }
        let mut paths = HashSet::new();
        let mut zeros = 0_u64;
        for Entry { path, sha256, zeros: of_file, .. } in &manifest.files {
            if !is_path(path) {
                return Err(format!("it has the path {path:?}"));
            }
            if !is_sha256(sha256) {
                return Err(format!("`{path}` has no SHA-256"));
            }
            if !paths.insert(path.as_str()) {
                return Err(format!("it has `{path}` twice"));
            }
            zeros = zeros.saturating_add(*of_file);
        }
        if zeros > MOST_ZEROS {
            return Err(format!("its files end with more than {MOST_ZEROS} zeros"));
        }
        Ok(manifest)
    }
}

/// Whether a path names a file in a part of a data directory.
fn is_path(path: &str) -> bool {
    if SINGLE.contains(&path) {
        return true;
    }
    let names: Vec<&str> = path.split('/').collect();
    path.len() <= LONGEST_PATH
        && (2..=DEEPEST).contains(&names.len())
        && names.first().is_some_and(|first| PARTS.contains(first))
        && names.iter().all(|name| !matches!(*name, "" | "." | ".."))
        // The commands print paths.
        && !path.contains(char::is_control)
}

/// Whether a text is a SHA-256 as this crate writes it.
pub(crate) fn is_sha256(text: &str) -> bool {
    text.len() == DIGITS && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
