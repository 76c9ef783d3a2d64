//! Files with checksums: how segments, runs and snapshots of persons are written and named.
//! Segments and runs are also read here. Snapshots are not read with checksums.
//!
//! The checksums of a file are CRC-32C of each [`CHUNK`] of it. Callers that read the file
//! keep them, as one list of bytes: the version of the list (1), the checksums (four bytes
//! each, little-endian), and the checksum of all this (four bytes).
//!
//! What belongs here: bytes. What does not: what they mean (`segment`, `run`, `persons`).

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::ops::Range;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};

use crate::error::{Error, Part, Result};

/// Bytes that share a checksum, and the unit of reading. Small, because a read needs a few
/// kilobytes from each column.
pub(crate) const CHUNK: usize = 16 << 10;
/// Bytes that are collected before they are written.
const BUFFER: usize = 16 * CHUNK;
/// The version of the list of checksums.
const SUMS_VERSION: u8 = 1;
/// Reads that a [`CachedReader`] keeps: about two for each base column of a segment.
const RECENT: usize = 24;
/// A larger read is not kept.
const LARGEST_RECENT: usize = 4 * CHUNK;

/// Creates a file that only its owner can read, or empties one that is there.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}

/// A new file, named `<name>.tmp` until it is complete.
pub(crate) struct CheckedWriter {
    /// `None`: the file has its final name.
    unfinished: Option<File>,
    path: PathBuf,
    temporary: PathBuf,
    buffer: Vec<u8>,
    written: u64,
    sums: Vec<u32>,
}

impl CheckedWriter {
    pub(crate) fn create(path: &Path) -> Result<Self> {
        let mut name = OsString::from(path);
        name.push(".tmp");
        let temporary = PathBuf::from(name);
        // A `.tmp` file that a crash left is overwritten.
        let file = create_private(&temporary).map_err(|e| Error::io(&temporary, e))?;
        Ok(Self {
            unfinished: Some(file),
            path: path.to_owned(),
            temporary,
            buffer: Vec::with_capacity(BUFFER + CHUNK),
            written: 0,
            sums: Vec::new(),
        })
    }

    /// The final name.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes that were written so far.
    pub(crate) fn len(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<()> {
        self.write_all(bytes).map_err(|e| Error::io(&self.temporary, e))
    }

    /// Pads the last chunk with zeros.
    pub(crate) fn align(&mut self) -> Result<()> {
        let over = self.buffer.len() % CHUNK;
        match over {
            0 => Ok(()),
            _ => self.push(&[0; CHUNK][over..]),
        }
    }

    /// Writes the rest. Replaces the first chunk by `first` and zeros, unless `first` is
    /// empty. The caller must have written only zeros there. Syncs the file and gives it its
    /// name. Returns its size and checksums.
    pub(crate) fn finish(mut self, first: &[u8]) -> Result<(u64, Vec<u8>)> {
        self.close(first).map_err(|e| Error::io(&self.temporary, e))?;
        let mut sums = vec![SUMS_VERSION];
        sums.extend(self.sums.iter().flat_map(|sum| sum.to_le_bytes()));
        let list_checksum = crc32c::crc32c(&sums);
        sums.extend(list_checksum.to_le_bytes());
        Ok((self.written, sums))
    }

    fn close(&mut self, first: &[u8]) -> io::Result<()> {
        self.write_chunks(self.buffer.len())?;
        let Some(file) = &self.unfinished else { return Ok(()) };
        if !first.is_empty() {
            let mut chunk = vec![0; CHUNK.min(usize::try_from(self.written).unwrap_or(CHUNK))];
            chunk.get_mut(..first.len()).ok_or(io::ErrorKind::InvalidInput)?.copy_from_slice(first);
            file.write_all_at(&chunk, 0)?;
            *self.sums.first_mut().ok_or(io::ErrorKind::InvalidInput)? = crc32c::crc32c(&chunk);
        }
        file.sync_all()?;
        fs::rename(&self.temporary, &self.path)?;
        self.unfinished = None;
        // The name is durable with the directory.
        let directory = self.path.parent().filter(|parent| !parent.as_os_str().is_empty());
        File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
    }

    /// Writes so many bytes of the buffer: whole chunks, or all that the file will have.
    fn write_chunks(&mut self, bytes: usize) -> io::Result<()> {
        let Some(file) = &mut self.unfinished else { return Ok(()) };
        let chunks = self.buffer.get(..bytes).unwrap_or_default();
        file.write_all(chunks)?;
        self.sums.extend(chunks.chunks(CHUNK).map(crc32c::crc32c));
        self.written += chunks.len() as u64;
        self.buffer.drain(..bytes);
        Ok(())
    }
}

impl Write for CheckedWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.get(..BUFFER).unwrap_or(bytes);
        self.buffer.extend_from_slice(taken);
        if self.buffer.len() >= BUFFER {
            self.write_chunks(self.buffer.len() / CHUNK * CHUNK)?;
        }
        Ok(taken.len())
    }

    /// Does nothing: a chunk is written when it is complete, because its checksum is then
    /// known.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for CheckedWriter {
    fn drop(&mut self) {
        if self.unfinished.is_some() {
            // If it stays, the next file of this name overwrites it.
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

/// A complete file.
pub(crate) struct CheckedFile {
    file: File,
    path: PathBuf,
    len: u64,
    sums: Box<[u32]>,
}

impl CheckedFile {
    pub(crate) fn open(path: &Path, bytes: u64, sums: &[u8]) -> Result<Self> {
        let sums = decode_checksums(path, bytes, sums)?;
        let file = File::open(path).map_err(|e| Error::reading(path, e))?;
        let found = file.metadata().map_err(|e| Error::reading(path, e))?.len();
        if found != bytes {
            return Err(Error::damaged(path, Part::Length { expected: bytes, found }));
        }
        Ok(Self { file, path: path.to_owned(), len: bytes, sums })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Memory that this takes, bytes.
    pub(crate) fn memory(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.sums) + self.path.as_os_str().len()
    }

    /// Reads all chunks with bytes of this range, and compares them with their checksums.
    /// Returns them and the position of the first byte in the file.
    pub(crate) fn read(&self, range: Range<u64>) -> Result<(u64, Bytes)> {
        if range.start > range.end || range.end > self.len {
            let reason = format!("it refers to the bytes from {} to {}", range.start, range.end);
            return Err(Error::damaged(&self.path, Part::Content(reason)));
        }
        let chunk = CHUNK as u64;
        let first = range.start / chunk;
        let begin = first * chunk;
        let end = range.end.div_ceil(chunk).saturating_mul(chunk).min(self.len).max(begin);
        let length = usize::try_from(end - begin)
            .map_err(|_| Error::io(&self.path, io::ErrorKind::OutOfMemory.into()))?;
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, begin).map_err(|e| match e.kind() {
            io::ErrorKind::UnexpectedEof => {
                let found = self.file.metadata().map_or(0, |file| file.len());
                Error::damaged(&self.path, Part::Length { expected: self.len, found })
            }
            _ => Error::reading(&self.path, e),
        })?;
        let sums = self.sums.iter().skip(usize::try_from(first).unwrap_or(usize::MAX));
        let mut at = begin;
        let mut chunks = bytes.chunks(CHUNK);
        for (chunk, sum) in chunks.by_ref().zip(sums) {
            let end = at + chunk.len() as u64;
            if crc32c::crc32c(chunk) != *sum {
                return Err(Error::damaged(&self.path, Part::Bytes { first: at, end }));
            }
            at = end;
        }
        match chunks.next() {
            None => Ok((begin, bytes.into())),
            Some(_) => Err(Error::damaged(&self.path, Part::Sums)),
        }
    }

    /// Compares the whole file with its checksums.
    pub(crate) fn verify(&self) -> Result<()> {
        let found = self.file.metadata().map_err(|e| Error::reading(&self.path, e))?.len();
        if found != self.len {
            return Err(Error::damaged(&self.path, Part::Length { expected: self.len, found }));
        }
        let mut at = 0;
        while at < self.len {
            let end = self.len.min(at + BUFFER as u64);
            self.read(at..end)?;
            at = end;
        }
        Ok(())
    }
}

/// The checksums of a file of so many bytes, from the list that the caller kept.
fn decode_checksums(path: &Path, bytes: u64, sums: &[u8]) -> Result<Box<[u32]>> {
    let damaged = || Error::damaged(path, Part::Sums);
    let (list, list_checksum) = sums.split_last_chunk::<4>().ok_or_else(damaged)?;
    if crc32c::crc32c(list) != u32::from_le_bytes(*list_checksum) {
        return Err(damaged());
    }
    let (version, list) = list.split_first().ok_or_else(damaged)?;
    if *version != SUMS_VERSION {
        let format = format!("{version} of checksums");
        return Err(Error::UnknownFormat { file: path.to_owned(), format });
    }
    let (sums, rest) = list.as_chunks::<4>();
    if !rest.is_empty() || sums.len() as u64 != bytes.div_ceil(CHUNK as u64) {
        return Err(damaged());
    }
    Ok(sums.iter().map(|sum| u32::from_le_bytes(*sum)).collect())
}

/// A file as one reader sees it. It keeps its last small reads, so that neighbouring pages
/// are read and compared once: at most 1.5 MiB. Clones share the cache.
#[derive(Clone)]
pub(crate) struct CachedReader {
    file: Arc<CheckedFile>,
    recent: Arc<Mutex<VecDeque<(u64, Bytes)>>>,
}

impl CachedReader {
    pub(crate) fn new(file: Arc<CheckedFile>) -> Self {
        Self { file, recent: Arc::default() }
    }

    fn get(&self, start: u64, length: usize) -> Result<Bytes> {
        let end = start.saturating_add(length as u64);
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let slice_of = |(begin, bytes): &(u64, Bytes)| {
            let from = usize::try_from(start.checked_sub(*begin)?).ok()?;
            let to = from.checked_add(length)?;
            (to <= bytes.len()).then(|| bytes.slice(from..to))
        };
        if let Some(bytes) = recent.iter().find_map(slice_of) {
            return Ok(bytes);
        }
        let read = self.file.read(start..end)?;
        let bytes = slice_of(&read);
        if read.1.len() <= LARGEST_RECENT {
            if recent.len() >= RECENT {
                recent.pop_front();
            }
            recent.push_back(read);
        }
        bytes.ok_or_else(|| {
            Error::damaged(self.file.path(), Part::Content("it ends too early".to_owned()))
        })
    }
}

impl Length for CachedReader {
    fn len(&self) -> u64 {
        self.file.len()
    }
}

impl ChunkReader for CachedReader {
    type T = CachedRead;

    fn get_read(&self, start: u64) -> Result<CachedRead, ParquetError> {
        Ok(CachedRead { reader: self.clone(), at: start })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        self.get(start, length).map_err(|e| ParquetError::External(Box::new(e)))
    }
}

/// Reads a file from a byte to the end.
pub(crate) struct CachedRead {
    reader: CachedReader,
    at: u64,
}

impl Read for CachedRead {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.reader.len().saturating_sub(self.at)).unwrap_or(usize::MAX);
        let length = buffer.len().min(left).min(CHUNK);
        let bytes = self.reader.get(self.at, length).map_err(io::Error::other)?;
        buffer.get_mut(..length).unwrap_or_default().copy_from_slice(&bytes);
        self.at += length as u64;
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path, bytes: &[u8]) -> (u64, Vec<u8>) {
        let mut writer = CheckedWriter::create(path).unwrap();
        for part in bytes.chunks(70_001) {
            writer.push(part).unwrap();
        }
        writer.finish(&[]).unwrap()
    }

    fn content(length: usize) -> Vec<u8> {
        (0..length).map(|at| (at * at / 7) as u8).collect()
    }

    #[test]
    fn every_range_reads_as_it_was_written() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        for length in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, BUFFER, BUFFER + 5, 3 * BUFFER + 100] {
            let bytes = content(length);
            let (size, sums) = write(&path, &bytes);
            assert_eq!(size, length as u64);
            assert_eq!(sums.len(), 5 + 4 * length.div_ceil(CHUNK));
            let file = Arc::new(CheckedFile::open(&path, size, &sums).unwrap());
            file.verify().unwrap();
            let reader = CachedReader::new(file);
            for from in (0..length).step_by(7_919) {
                for to in [from, from + 1, from + CHUNK, length] {
                    let to = to.min(length);
                    let found = reader.get(from as u64, to - from).unwrap();
                    assert_eq!(found, bytes[from..to], "{from} to {to} of {length}");
                }
            }
            let mut all = Vec::new();
            reader.get_read(0).unwrap().read_to_end(&mut all).unwrap();
            assert_eq!(all, bytes);
            assert!(reader.get(length as u64, 1).is_err());
        }
    }

    #[test]
    fn the_beginning_can_be_written_last() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let mut writer = CheckedWriter::create(&path).unwrap();
        writer.push(&[0; 3]).unwrap();
        writer.align().unwrap();
        writer.align().unwrap();
        assert_eq!(writer.len(), CHUNK as u64);
        writer.push(&content(2 * BUFFER)).unwrap();
        let (size, sums) = writer.finish(b"abc").unwrap();
        let file = CheckedFile::open(&path, size, &sums).unwrap();
        file.verify().unwrap();
        let (begin, bytes) = file.read(0..3).unwrap();
        assert_eq!((begin, &bytes[..4]), (0, &b"abc\0"[..]));
    }

    #[test]
    fn each_flipped_bit_and_each_other_length_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let bytes = content(2 * CHUNK + 100);
        let (size, sums) = write(&path, &bytes);
        for at in (0..bytes.len()).step_by(997) {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << (at % 8);
            fs::write(&path, &flipped).unwrap();
            let file = CheckedFile::open(&path, size, &sums).unwrap();
            let error = file.read(at as u64..at as u64 + 1).unwrap_err();
            let Error::Damaged { part: Part::Bytes { first, end }, .. } = error else {
                panic!("{error}");
            };
            assert!((first..end).contains(&(at as u64)));
            assert!(file.verify().is_err());
        }
        for other in [&bytes[..bytes.len() - 1], &[&bytes[..], &[0]].concat(), &[]] {
            fs::write(&path, other).unwrap();
            let error = CheckedFile::open(&path, size, &sums).err().unwrap();
            assert!(matches!(error, Error::Damaged { part: Part::Length { .. }, .. }), "{error}");
        }
    }

    #[test]
    fn a_file_that_changes_while_it_is_open_is_damaged() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let (size, sums) = write(&path, &content(2 * CHUNK));
        let file = CheckedFile::open(&path, size, &sums).unwrap();
        File::options().write(true).open(&path).unwrap().set_len(CHUNK as u64).unwrap();
        file.read(0..1).unwrap();
        let error = file.read(size - 1..size).unwrap_err();
        assert!(matches!(error, Error::Damaged { part: Part::Length { .. }, .. }), "{error}");
        assert!(file.verify().is_err());
    }

    #[test]
    fn checksums_that_are_damaged_or_of_another_version_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let (size, sums) = write(&path, &content(2 * CHUNK));
        let open = |size: u64, sums: &[u8]| CheckedFile::open(&path, size, sums).err().unwrap();
        for at in 0..sums.len() {
            let mut flipped = sums.clone();
            flipped[at] ^= 4;
            let error = open(size, &flipped);
            assert!(matches!(error, Error::Damaged { part: Part::Sums, .. }), "{error}");
            assert!(matches!(open(size, &sums[..at]), Error::Damaged { .. }));
        }
        assert!(matches!(open(size + 1, &sums), Error::Damaged { .. }));
        let mut newer = vec![2];
        newer.extend(crc32c::crc32c(&newer).to_le_bytes());
        assert!(matches!(open(size, &newer), Error::UnknownFormat { .. }));
    }

    #[test]
    fn an_unfinished_file_is_removed_and_has_another_name() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let names = || fs::read_dir(directory.path()).unwrap().count();
        let mut writer = CheckedWriter::create(&path).unwrap();
        writer.push(&content(3 * BUFFER)).unwrap();
        assert!(!path.exists());
        assert_eq!(names(), 1);
        drop(writer);
        assert_eq!(names(), 0);
        write(&path, b"abc");
        assert_eq!(names(), 1);
        assert_eq!(fs::read(&path).unwrap(), b"abc");
        let missing = directory.path().join("missing").join("file");
        assert!(matches!(CheckedWriter::create(&missing).err().unwrap(), Error::Io { .. }));
    }
}
