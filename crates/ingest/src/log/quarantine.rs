//! `quarantine`: copies of records that could not be read, byte for byte as in the log,
//! header first. A copy stays when its segment is removed.
//!
//! | file | holds |
//! |---|---|
//! | `<20 digits of an offset>.bytes` | the bytes of the log from that offset: a record whose payload this program does not know, or a damaged range |
//!
//! What belongs here: writing, listing and reading these files. What does not: deciding
//! which records to keep (`recovery`, the pipeline).

use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use super::frame::{ALIGN, HEADER, Header};
use super::segment::sync_directory;
use super::{LogError, Record};

const DIRECTORY: &str = "quarantine";
const EXTENSION: &str = "bytes";

/// A file in `quarantine`.
#[derive(Debug, Clone)]
pub(crate) struct QuarantinedRecord {
    pub(super) path: PathBuf,
    /// The offset in the log that the copy is from. `None` if the name of the file is not
    /// an offset.
    pub(crate) offset: Option<u64>,
    pub(super) meta: std::fs::Metadata,
}

/// A record of a quarantined copy with a readable header.
#[derive(Debug)]
pub(super) struct ReadableRecord {
    pub(super) header: Header,
    /// The payload, or `None` if it is damaged.
    pub(super) payload: Option<Vec<u8>>,
}

/// What can be recovered from such a file.
#[derive(Debug)]
pub(crate) struct Intact {
    pub(crate) records: Vec<Record>,
    /// Events of records whose payload is damaged.
    pub(crate) damaged: u64,
}

/// Keeps a copy of the bytes at `offset`. An existing copy stays as it is: every
/// partition reads the same record, and so does every start. A longer copy is of a damaged
/// range that begins with the record.
pub(super) fn keep(log: &Path, offset: u64, bytes: &[u8]) -> Result<(), LogError> {
    let directory = directory(log);
    let path = directory.join(format!("{offset:020}.{EXTENSION}"));
    let present = std::fs::metadata(&path).map(|meta| meta.len()).ok();
    if present.is_some_and(|present| present >= bytes.len() as u64) {
        return Ok(());
    }
    std::fs::create_dir_all(&directory)
        .and_then(|()| File::create(&path))
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .map_err(|source| LogError::Io { action: "write", path, source })?;
    sync_directory(&directory)
}

/// The directory of these files.
pub(super) fn directory(log: &Path) -> PathBuf {
    log.join(DIRECTORY)
}

/// The files, in order of their names. A missing directory is an empty list.
pub(crate) fn list(log: &Path) -> Result<Vec<QuarantinedRecord>, LogError> {
    let directory = directory(log);
    let failed = |source| LogError::Io { action: "list", path: directory.clone(), source };
    let entries = match std::fs::read_dir(&directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed)?;
        let (path, meta) = (entry.path(), entry.metadata().map_err(failed)?);
        let is_ours = path.extension().is_some_and(|extension| extension == EXTENSION);
        let stem = path.file_stem().and_then(|stem| stem.to_str()).filter(|_| is_ours);
        let offset = stem.and_then(|digits| digits.parse().ok());
        files.push(QuarantinedRecord { path, offset, meta });
    }
    files.sort_by(|left, right| left.path.cmp(&right.path));
    Ok(files)
}

impl QuarantinedRecord {
    /// The records whose header, at least, is readable, in order.
    pub(super) fn read(&self) -> Result<Vec<ReadableRecord>, LogError> {
        let Some(offset) = self.offset else { return Ok(Vec::new()) };
        let bytes = std::fs::read(&self.path).map_err(|source| LogError::Io {
            action: "read",
            path: self.path.clone(),
            source,
        })?;
        Ok(kept(&bytes, offset))
    }

    /// The records that are intact.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(crate) fn intact(&self) -> Result<Intact, LogError> {
        let mut intact = Intact { records: Vec::new(), damaged: 0 };
        for ReadableRecord { header, payload } in self.read()? {
            match payload {
                Some(payload) => intact.records.push(Record::from_disk(&header, payload.into())),
                None => intact.damaged += u64::from(header.count),
            }
        }
        Ok(intact)
    }
}

fn kept(bytes: &[u8], base: u64) -> Vec<ReadableRecord> {
    let mut found = Vec::new();
    let mut at = 0;
    while at + HEADER <= bytes.len() {
        let rest = bytes.get(at..).unwrap_or_default();
        let Some(header) = Header::read(rest, base + at as u64) else {
            at += ALIGN as usize;
            continue;
        };
        let payload = rest
            .get(HEADER..)
            .and_then(|rest| rest.get(..header.length as usize))
            .filter(|payload| crc32c::crc32c(payload) == header.payload_crc)
            .map(<[u8]>::to_vec);
        at += match payload {
            Some(_) => usize::try_from(header.span()).unwrap_or(usize::MAX),
            // The end of the record is not certain.
            None => HEADER,
        };
        found.push(ReadableRecord { header, payload });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(offset: u64, payload: &[u8]) -> Vec<u8> {
        let header = Header {
            offset,
            synced: 0,
            project: 3,
            first_arrival: 7,
            count: 2,
            length: u32::try_from(payload.len()).unwrap(),
            payload_crc: crc32c::crc32c(payload),
            historical: None,
        };
        let mut bytes = Vec::new();
        header.write(payload, &mut bytes);
        bytes
    }

    #[test]
    fn records_are_found_before_behind_and_within_damage() {
        let mut bytes = vec![0xAA; 16];
        bytes.extend(record(1_016, b"intact"));
        let damaged = bytes.len();
        bytes.extend(record(1_000 + damaged as u64, b"damaged"));
        bytes[damaged + HEADER] ^= 1;
        bytes.extend([0xAA; 24]);
        let last = bytes.len();
        bytes.extend(record(1_000 + last as u64, b"intact too"));
        let found = kept(&bytes, 1_000);
        let payloads: Vec<_> = found.iter().map(|kept| kept.payload.as_deref()).collect();
        assert_eq!(payloads, [Some(&b"intact"[..]), None, Some(b"intact too")]);
        assert!(found.iter().all(|kept| (kept.header.project, kept.header.count) == (3, 2)));
        assert!(kept(&bytes, 1_008).is_empty(), "they say where they are from");
    }

    #[test]
    fn an_incomplete_copy_is_written_again() {
        let place = tempfile::tempdir().unwrap();
        assert!(list(place.path()).unwrap().is_empty());
        let bytes = record(64, b"payload");
        keep(place.path(), 64, &bytes).unwrap();
        let files = list(place.path()).unwrap();
        std::fs::write(&files[0].path, &bytes[..20]).unwrap();
        assert!(files[0].read().unwrap().is_empty());
        keep(place.path(), 64, &bytes).unwrap();
        assert_eq!(files[0].read().unwrap().len(), 1);
        std::fs::write(place.path().join(DIRECTORY).join("notes.txt"), "x").unwrap();
        let offsets: Vec<_> = list(place.path()).unwrap().iter().map(|file| file.offset).collect();
        assert_eq!(offsets, [Some(64), None]);
    }
}
