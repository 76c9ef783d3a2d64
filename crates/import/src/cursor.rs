//! The cursor file, from which an interrupted import continues.
//!
//! What belongs here: its content, writing it atomically, and checking whether it belongs
//! to this import. What does not: when it is written (`deliver`).
//!
//! It is written after a request was acknowledged. If the process is killed before that,
//! the next run sends the request again; the host recognizes the events by their uuids.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::error::ImportError;
use crate::format::Format;
use crate::source::{self, FileIdentity};
use crate::walk::Position;

const VERSION: u32 = 1;

/// The content of a cursor file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cursor {
    weir_import: u32,
    /// The import that it belongs to.
    pub(crate) job: Job,
    /// Total number of lines with events to send.
    pub(crate) events: u64,
    /// Acknowledged lines.
    pub(crate) accepted: u64,
    /// Acknowledged events that merge two ids.
    pub(crate) links: u64,
    /// Lines that are too large for the host.
    pub(crate) refused: u64,
    /// The position after the last acknowledged event; `None` before the first.
    pub(crate) position: Option<Position>,
}

/// The identity of an import.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Job {
    /// Address of the host.
    pub(crate) to: String,
    /// SHA-256 of the project key. The key is not stored in the file.
    pub(crate) project_key_sha256: String,
    pub(crate) files: Vec<JobFile>,
    pub(crate) undated_as_now: bool,
}

/// A file of an import.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct JobFile {
    /// Only for display: a moved file is still the same.
    pub(crate) path: String,
    pub(crate) identity: FileIdentity,
    pub(crate) format: Format,
}

impl Job {
    /// The hash that identifies a project key.
    pub(crate) fn hash_of_key(key: &str) -> String {
        source::hex(&Sha256::digest(key.as_bytes()))
    }

    /// The difference to the job at the beginning, if there is one.
    fn difference(&self, begun: &Self) -> Option<String> {
        if self.to != begun.to {
            return Some(format!("`--to` is not `{}` any more", begun.to));
        }
        if self.project_key_sha256 != begun.project_key_sha256 {
            return Some("the project key has changed".to_owned());
        }
        if self.undated_as_now != begun.undated_as_now {
            return Some("`--undated-as-now` has changed".to_owned());
        }
        if self.files.len() != begun.files.len() {
            return Some(format!(
                "there were {} files and not {}",
                begun.files.len(),
                self.files.len()
            ));
        }
        self.files.iter().zip(&begun.files).find_map(|(now, then)| {
            if now.identity != then.identity {
                return Some(format!("`{}` has changed", now.path));
            }
            let (now_read, then_read) = (now.format.word(), then.format.word());
            (now_read != then_read)
                .then(|| format!("`{}` was read as {then_read} and not {now_read}", now.path))
        })
    }
}

impl Cursor {
    /// The cursor of an import that has sent nothing yet.
    pub(crate) fn begin(job: Job, events: u64) -> Self {
        Self {
            weir_import: VERSION,
            job,
            events,
            accepted: 0,
            links: 0,
            refused: 0,
            position: None,
        }
    }

    /// Loads the file; `None` if there is none.
    pub(crate) fn load(path: &Path, job: &Job) -> Result<Option<Self>, ImportError> {
        let text = match std::fs::read(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => {
                return Err(ImportError::Cursor { action: "read", path: path.to_owned(), source });
            }
        };
        let cursor: Self = serde_json::from_slice(&text)
            .ok()
            .filter(|cursor: &Self| cursor.weir_import == VERSION)
            .ok_or_else(|| ImportError::NotACursor { path: path.to_owned() })?;
        match job.difference(&cursor.job) {
            None => Ok(Some(cursor)),
            Some(what) => Err(ImportError::Changed { what, path: path.to_owned() }),
        }
    }

    /// Replaces the file atomically.
    pub(crate) fn save(&self, path: &Path) -> Result<(), ImportError> {
        let failed =
            |source| ImportError::Cursor { action: "write", path: path.to_owned(), source };
        let mut file = tempfile::NamedTempFile::new_in(folder(path)).map_err(failed)?;
        let text = serde_json::to_vec_pretty(self).map_err(|error| failed(error.into()))?;
        file.write_all(&text).map_err(failed)?;
        file.as_file().sync_data().map_err(failed)?;
        file.persist(path).map_err(|error| failed(error.error))?;
        Ok(())
    }

    /// Removes the file of a complete import.
    pub(crate) fn remove(path: &Path) -> Result<(), ImportError> {
        std::fs::remove_file(path).map_err(|source| ImportError::Cursor {
            action: "remove",
            path: path.to_owned(),
            source,
        })
    }
}

/// The default path of the cursor file: next to the first file.
pub(crate) fn default_path(first: &Path) -> PathBuf {
    let mut path = first.as_os_str().to_owned();
    path.push(".weir-cursor");
    path.into()
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::{Cursor, Job, JobFile, default_path};
    use crate::error::ImportError;
    use crate::format::Format;
    use crate::source::Input;

    fn job(folder: &std::path::Path) -> Job {
        let path = folder.join("events.jsonl");
        std::fs::write(&path, "{}\n").unwrap();
        let input = Input::open(&path).unwrap();
        Job {
            to: "http://127.0.0.1:8000/".to_owned(),
            project_key_sha256: Job::hash_of_key("phc_1"),
            files: vec![JobFile {
                path: input.name.to_string(),
                identity: input.identity,
                format: Format::Jsonl,
            }],
            undated_as_now: false,
        }
    }

    #[test]
    fn what_is_saved_is_loaded_and_holds_no_key() {
        let folder = tempfile::tempdir().unwrap();
        let job = job(folder.path());
        let path = default_path(&folder.path().join("events.jsonl"));
        assert_eq!(path.file_name().unwrap(), "events.jsonl.weir-cursor");
        assert_eq!(Cursor::load(&path, &job).unwrap(), None);
        let mut cursor = Cursor::begin(job.clone(), 7);
        cursor.save(&path).unwrap();
        cursor.accepted = 3;
        cursor.save(&path).unwrap();
        assert_eq!(Cursor::load(&path, &job).unwrap(), Some(cursor));
        assert!(!std::fs::read_to_string(&path).unwrap().contains("phc_1"));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
        Cursor::remove(&path).unwrap();
        assert_eq!(Cursor::load(&path, &job).unwrap(), None);
    }

    #[test]
    fn another_import_is_refused_and_says_what_differs() {
        let folder = tempfile::tempdir().unwrap();
        let begun = job(folder.path());
        let path = folder.path().join("cursor");
        Cursor::begin(begun.clone(), 7).save(&path).unwrap();
        let other = |change: fn(&mut Job)| {
            let mut job = begun.clone();
            change(&mut job);
            job
        };
        for (job, expected) in [
            (other(|job| job.to.push('x')), "`--to` is not `http://127.0.0.1:8000/` any more"),
            (other(|job| job.project_key_sha256.clear()), "the project key has changed"),
            (other(|job| job.undated_as_now = true), "`--undated-as-now` has changed"),
            (other(|job| job.files.clear()), "there were 1 files and not 0"),
            (
                other(|job| job.files[0].format = Format::Posthog),
                "was read as jsonl and not posthog",
            ),
            (other(|job| job.files[0].identity.size = 9), "events.jsonl` has changed"),
        ] {
            let error = Cursor::load(&path, &job).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
            assert!(error.contains("nothing is stored twice"), "{error}");
        }
    }

    #[test]
    fn a_damaged_cursor_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let job = job(folder.path());
        let path = folder.path().join("cursor");
        for text in ["", "{}", "{\"weir_import\":2}"] {
            std::fs::write(&path, text).unwrap();
            let refused = Cursor::load(&path, &job);
            assert!(matches!(refused, Err(ImportError::NotACursor { .. })), "{text}");
        }
    }
}
