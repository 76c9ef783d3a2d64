//! Archives of plugins: zip, and tar compressed with gzip.
//!
//! What belongs here: reading archives in bounded time and memory. What does not:
//! fetching archives (`fetch`), and choosing files.
//!
//! The fuzz target `archives` includes this file (`fuzz/`), so it must not depend on
//! other modules. Nothing is written to disk. Names only select files. Even so, an
//! archive is refused if a name leads out of it, because only a hostile archive contains
//! such a name.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::ops::Range;

use weir_model::plugins::{FILE_NAME_MAX, SOURCE_MAX};

/// Maximum bytes of an archive.
pub(crate) const ARCHIVE_BYTES_MAX: usize = 5 << 20;
/// Maximum entries of an archive.
const ENTRIES_MAX: usize = 10_000;
/// Maximum bytes of a header that describes the next file, such as a long name.
const EXTENSION_MAX: u64 = 64 << 10;
/// Maximum bytes of a path, including its folders.
pub(crate) const PATH_MAX: usize = 4 << 10;
pub(crate) const FOLDERS_MAX: usize = 64;
/// Maximum bytes that decompression reads, of all entries.
const EXTRACTED_BYTES_MAX: u64 = 100 << 20;
/// How often a zip archive may be read. A sound one is read twice at most: its directory
/// and its files.
const ZIP_READS: usize = 4;
/// Bytes that may be read in addition: searching for the end record of a short archive.
const ZIP_READ_SPARE: usize = 16 << 10;
/// The record at the end of a zip archive, and what precedes its larger form.
const ZIP_END: &[u8] = b"PK\x05\x06";
const ZIP_END_BYTES: usize = 22;
const ZIP64_LOCATOR: &[u8] = b"PK\x06\x07";
const ZIP64_LOCATOR_BYTES: usize = 20;
/// Maximum bytes of the useful files, with their paths and [`FILE_COST`] each.
pub(crate) const KEPT_MAX: usize = 16 << 20;
/// The memory that a file takes in addition to its content and path.
const FILE_COST: usize = 256;
/// Extensions of source files.
const EXTENSIONS: [&str; 6] = ["json", "js", "ts", "tsx", "mjs", "cjs"];

/// Why an archive is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ArchiveFault {
    #[error("This is neither a zip archive nor a tar archive compressed with gzip.")]
    Unknown,
    #[error("The archive is damaged.")]
    Damaged,
    #[error("The archive is larger than 5 MiB.")]
    TooLarge,
    #[error("The archive holds too much.")]
    TooMuch,
    #[error("The archive describes a file in more than 64 KiB.")]
    Extension,
    #[error("The archive holds a file with an impossible name.")]
    Path,
}

/// Returns the texts of an archive that may be sources, below `folder` if one is named. A
/// single folder around everything is removed from the paths. Files larger than a source
/// may be are skipped.
pub(crate) fn extract(
    archive: &[u8],
    folder: Option<&str>,
) -> Result<BTreeMap<String, String>, ArchiveFault> {
    if archive.len() > ARCHIVE_BYTES_MAX {
        return Err(ArchiveFault::TooLarge);
    }
    let mut found = Found::default();
    match archive {
        [b'P', b'K', ..] => zip(archive, &mut found)?,
        [0x1f, 0x8b, ..] => tar(archive, &mut found)?,
        _ => return Err(ArchiveFault::Unknown),
    }
    Ok(found.below(folder))
}

/// The useful content of an archive.
#[derive(Debug, Default)]
struct Found {
    /// By path, split at `/`.
    files: BTreeMap<Vec<String>, Vec<u8>>,
    /// The first folders of all paths; `None` for files outside of folders. Two are
    /// enough to know that there is no single folder.
    tops: BTreeSet<Option<String>>,
    kept: usize,
}

impl Found {
    /// Records a file; returns its path if its content may be useful.
    fn note(&mut self, name: &str, size: u64) -> Result<Option<Vec<String>>, ArchiveFault> {
        let path = path(name)?;
        let (Some(first), Some(last)) = (path.first(), path.last()) else {
            return Err(ArchiveFault::Path);
        };
        if self.tops.len() < 2 {
            self.tops.insert((path.len() > 1).then(|| first.clone()));
        }
        let is_of_use = last.len() <= FILE_NAME_MAX
            && last.rsplit_once('.').is_some_and(|(_, end)| EXTENSIONS.contains(&end));
        Ok((is_of_use && size <= SOURCE_MAX as u64).then_some(path))
    }

    fn keep(&mut self, path: Vec<String>, content: Vec<u8>) -> Result<(), ArchiveFault> {
        let names: usize = path.iter().map(String::len).sum();
        self.kept += content.len() + names + FILE_COST;
        if self.kept > KEPT_MAX {
            return Err(ArchiveFault::TooMuch);
        }
        self.files.insert(path, content);
        Ok(())
    }

    /// The texts below the folder that everything is in, and below `folder` within it.
    fn below(self, folder: Option<&str>) -> BTreeMap<String, String> {
        let mut base: Vec<String> = match Vec::from_iter(&self.tops)[..] {
            [Some(top)] => vec![top.clone()],
            _ => Vec::new(),
        };
        base.extend(folder.into_iter().flat_map(|folder| folder.split('/')).map(str::to_owned));
        let mut texts = BTreeMap::new();
        for (path, content) in self.files {
            let Some(rest) = path.strip_prefix(base.as_slice()).filter(|rest| !rest.is_empty())
            else {
                continue;
            };
            // Only text can be source.
            let Ok(text) = String::from_utf8(content) else { continue };
            // Some editors write a byte order mark.
            let text = text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text);
            texts.insert(rest.join("/"), text);
        }
        texts
    }
}

/// The parts of a name.
fn path(name: &str) -> Result<Vec<String>, ArchiveFault> {
    if name.len() > PATH_MAX || name.starts_with('/') || name.contains(['\\', '\0']) {
        return Err(ArchiveFault::Path);
    }
    let parts: Vec<String> =
        name.split('/').filter(|part| !matches!(*part, "" | ".")).map(str::to_owned).collect();
    if parts.is_empty() || parts.len() > FOLDERS_MAX || parts.iter().any(|part| part == "..") {
        return Err(ArchiveFault::Path);
    }
    Ok(parts)
}

fn zip(archive: &[u8], found: &mut Found) -> Result<(), ArchiveFault> {
    if announces_too_much(archive) {
        return Err(ArchiveFault::TooMuch);
    }
    let left = ZIP_READS * archive.len() + ZIP_READ_SPARE;
    let archive = Metered { archive: Cursor::new(archive), left };
    let mut archive = zip::ZipArchive::new(archive).map_err(|_| ArchiveFault::Damaged)?;
    if archive.len() > ENTRIES_MAX {
        return Err(ArchiveFault::TooMuch);
    }
    let mut read = 0;
    for index in 0..archive.len() {
        let mut file = archive.by_index(index).map_err(|_| ArchiveFault::Damaged)?;
        if !file.is_file() || file.is_symlink() {
            path_of_folder(file.name())?;
            continue;
        }
        let name = file.name().to_owned();
        let Some(path) = found.note(&name, file.size())? else { continue };
        // The size in the header may be wrong.
        let content = bounded(&mut file, &mut read)?;
        found.keep(path, content)?;
    }
    Ok(())
}

/// Whether an end record announces more entries than an archive may have. The crate
/// reads all of them before it says how many there are. It tries everything that looks
/// like an end record, so all of these count.
fn announces_too_much(archive: &[u8]) -> bool {
    archive.windows(ZIP_END_BYTES).enumerate().any(|(at, record)| {
        if !record.starts_with(ZIP_END) {
            return false;
        }
        let (entries, directory) = (number(record, 10..12), number(record, 16..20));
        // Compressed bytes may look like an end record by chance. Their directory is
        // hardly ever before them.
        if entries > ENTRIES_MAX && directory < at {
            return true;
        }
        // The larger form of the record, which the crate reads if a field is full. Small
        // archives do not need it.
        let is_full = entries == usize::from(u16::MAX) || directory == u32::MAX as usize;
        let before = at.checked_sub(ZIP64_LOCATOR_BYTES).and_then(|from| archive.get(from..at));
        is_full && before.is_some_and(|before| before.starts_with(ZIP64_LOCATOR))
    })
}

/// A number in a record, which begins with its lowest byte.
fn number(record: &[u8], field: Range<usize>) -> usize {
    let bytes = record.get(field).unwrap_or_default();
    bytes.iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte))
}

/// An archive that can be read only a few times. If an end record is wrong, the crate
/// tries the one before it, and many entries may have the same content. So a small archive
/// could take hours.
struct Metered<'a> {
    archive: Cursor<&'a [u8]>,
    left: usize,
}

impl Read for Metered<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.archive.read(into)?;
        // An empty read takes time too.
        self.left = self.left.saturating_sub(read.max(1));
        if self.left == 0 {
            return Err(io::Error::other("the archive is read too often"));
        }
        Ok(read)
    }
}

impl Seek for Metered<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.archive.seek(to)
    }
}

/// Folders and links are skipped, but their names are checked.
fn path_of_folder(name: &str) -> Result<(), ArchiveFault> {
    match path(name) {
        Err(_) if name.trim_matches(['/', '.']).is_empty() && !name.contains("..") => Ok(()),
        read => read.map(drop),
    }
}

fn tar(archive: &[u8], found: &mut Found) -> Result<(), ArchiveFault> {
    #[expect(clippy::disallowed_methods, reason = "what it gives is cut")]
    let extracted = flate2::read::MultiGzDecoder::new(archive).take(EXTRACTED_BYTES_MAX);
    let mut archive = tar::Archive::new(extracted);
    // Raw, because otherwise the crate reads headers that describe the next file
    // completely, however long.
    let headers = archive.entries().map_err(|_| ArchiveFault::Damaged)?.raw(true);
    let mut read = 0;
    let mut long_name = None;
    let mut entries = 0;
    // A file has three such headers at most.
    for (number, header) in headers.enumerate() {
        if number >= 4 * ENTRIES_MAX || entries > ENTRIES_MAX {
            return Err(ArchiveFault::TooMuch);
        }
        let mut entry = header.map_err(|_| ArchiveFault::Damaged)?;
        let kind = entry.header().entry_type();
        let is_pax = kind.is_pax_local_extensions() || kind.is_pax_global_extensions();
        if is_pax || kind.is_gnu_longname() || kind.is_gnu_longlink() {
            let content = extension(&mut entry)?;
            if is_pax {
                long_name = pax_path(&content)?.or(long_name);
            } else if kind.is_gnu_longname() {
                let end = content.iter().position(|byte| *byte == 0).unwrap_or(content.len());
                long_name = content.get(..end).map(<[u8]>::to_vec);
            }
            continue;
        }
        // Sparse files store the end of their content in another form.
        if kind.is_gnu_sparse() {
            return Err(ArchiveFault::Damaged);
        }
        entries += 1;
        let name = long_name.take().unwrap_or_else(|| entry.path_bytes().into_owned());
        let name = String::from_utf8_lossy(&name);
        if !kind.is_file() {
            // Git writes a global header, which has its own name.
            if kind.is_dir() {
                path_of_folder(&name)?;
            }
            continue;
        }
        let Some(path) = found.note(&name, entry.size())? else { continue };
        let content = bounded(&mut entry, &mut read)?;
        found.keep(path, content)?;
    }
    Ok(())
}

/// The content of a header that describes the next file.
fn extension(entry: &mut tar::Entry<'_, impl Read>) -> Result<Vec<u8>, ArchiveFault> {
    if entry.size() > EXTENSION_MAX {
        return Err(ArchiveFault::Extension);
    }
    let mut content = Vec::new();
    entry.read_to_end(&mut content).map_err(|_| ArchiveFault::Damaged)?;
    Ok(content)
}

/// The name that such a header gives the next file.
fn pax_path(content: &[u8]) -> Result<Option<Vec<u8>>, ArchiveFault> {
    let mut path = None;
    for record in tar::PaxExtensions::new(content) {
        let record = record.map_err(|_| ArchiveFault::Damaged)?;
        match record.key_bytes() {
            b"path" => path = Some(record.value_bytes().to_vec()),
            // A file whose size does not fit the usual header is too large anyway.
            b"size" => return Err(ArchiveFault::TooMuch),
            _ => {}
        }
    }
    Ok(path)
}

/// The content of a file. Counts the bytes read of all files.
fn bounded(file: &mut impl Read, read: &mut u64) -> Result<Vec<u8>, ArchiveFault> {
    let mut content = Vec::new();
    let most = SOURCE_MAX as u64 + 1;
    file.take(most).read_to_end(&mut content).map_err(|_| ArchiveFault::Damaged)?;
    *read += content.len() as u64;
    if content.len() as u64 >= most || *read > EXTRACTED_BYTES_MAX {
        return Err(ArchiveFault::TooMuch);
    }
    Ok(content)
}

#[cfg(test)]
mod checks;
#[cfg(test)]
mod tests;
