//! Writing a run.

use std::path::Path;

use super::filter::{Filter, hash};
use super::{BLOCK, Entry, FilterSize, HEADER, KEY, KeyBytes, MAGIC, SECTION, VERSION};
use crate::checked::{CHUNK, CheckedWriter};
use crate::error::{Error, Result};

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunWritten {
    /// The number of entries.
    pub entries: u64,
    /// The size of the file, bytes.
    pub bytes: u64,
    /// Checksums of the file, for [`Run::open`](super::Run::open): four bytes for each 16
    /// KiB, and five more.
    pub sums: Vec<u8>,
}

/// A run that is being written.
///
/// It holds the hashes of at most a million entries (8 MiB), and 24 bytes for each 431
/// entries. About 30 MiB more are used for a moment, to build a filter.
pub struct RunWriter {
    file: CheckedWriter,
    filter: FilterSize,
    entries: u64,
    last: Option<KeyBytes>,
    /// Entries in the block that is being filled.
    in_block: usize,
    /// Of the entries of the section that is being filled.
    hashes: Vec<u64>,
    section_begin: u64,
    /// What the index says of the sections.
    sections: Vec<[u64; 4]>,
    /// The first keys of the blocks.
    firsts: Vec<KeyBytes>,
}

impl RunWriter {
    /// Begins a run that will have this name. Until [`finish`](Self::finish) it is
    /// `<name>.tmp`, which is removed when the writer is dropped.
    ///
    /// # Errors
    /// When the file cannot be created.
    pub fn create(path: &Path, filter: FilterSize) -> Result<Self> {
        let mut file = CheckedWriter::create(path)?;
        // The header is written last, when its numbers are known.
        file.push(&[0; CHUNK])?;
        Ok(Self {
            section_begin: file.len(),
            file,
            filter,
            entries: 0,
            last: None,
            in_block: 0,
            hashes: Vec::new(),
            sections: Vec::new(),
            firsts: Vec::new(),
        })
    }

    /// Adds an entry. Its key must be greater than the one before.
    ///
    /// # Errors
    /// When the key is not greater, or the entry cannot be written.
    pub fn push(&mut self, entry: Entry) -> Result<()> {
        let key = entry.key.to_bytes();
        if self.last.is_some_and(|last| last >= key) {
            return Err(Error::NotInOrder {
                file: self.file.path().to_owned(),
                what: "a key is not greater than the key before",
            });
        }
        if self.in_block == BLOCK {
            self.file.align()?;
            self.in_block = 0;
            if self.hashes.len() == SECTION * BLOCK {
                self.close_section()?;
            }
        }
        if self.in_block == 0 {
            self.firsts.push(key);
        }
        self.file.push(&entry.to_bytes())?;
        self.hashes.push(hash(&key));
        self.last = Some(key);
        self.in_block += 1;
        self.entries += 1;
        Ok(())
    }

    /// Writes the filter of the entries since the section before.
    fn close_section(&mut self) -> Result<()> {
        let hashes = std::mem::take(&mut self.hashes);
        let entries = hashes.len() as u64;
        let filter = Filter::build(hashes, self.filter).ok_or_else(|| Error::Encode {
            file: self.file.path().to_owned(),
            reason: "no filter could be built".to_owned(),
        })?;
        let begin = self.file.len();
        let filter = filter.to_bytes();
        self.file.push(&filter)?;
        self.file.align()?;
        self.sections.push([self.section_begin, entries, begin, filter.len() as u64]);
        self.section_begin = self.file.len();
        Ok(())
    }

    /// Writes the rest, and gives the file its name. File and directory are synced.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn finish(mut self) -> Result<RunWritten> {
        self.file.align()?;
        if !self.hashes.is_empty() {
            self.close_section()?;
        }
        let index = self.file.len();
        for section in &self.sections {
            self.file.push(section.map(u64::to_be_bytes).as_flattened())?;
        }
        for keys in self.firsts.chunks(CHUNK / KEY) {
            self.file.push(keys.as_flattened())?;
        }
        let mut header = Vec::with_capacity(HEADER);
        header.extend(MAGIC);
        header.extend(VERSION.to_be_bytes());
        header.extend(self.filter.bits().to_be_bytes());
        header.extend(self.entries.to_be_bytes());
        header.extend(index.to_be_bytes());
        let (bytes, sums) = self.file.finish(&header)?;
        Ok(RunWritten { entries: self.entries, bytes, sums })
    }
}
