//! Reading a run.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use uuid::Uuid;

use super::filter::{Filter, hash};
use super::{
    BLOCK, ENTRY, Entry, FilterSize, HEADER, KEY, Key, KeyBytes, MAGIC, Numbers, Place, SECTION,
    SECTION_ENTRY, VERSION,
};
use crate::checked::{CHUNK, CheckedFile};
use crate::error::{Error, Part, Result};

/// A run to search. A copy shares the file, the filters and the index.
///
/// It holds the filters (1.13 or 2.26 bytes for each entry), the first keys of blocks (24
/// bytes for each 431 entries), and four bytes for each 16 KiB of the file
/// ([`memory`](Self::memory)).
#[derive(Clone)]
pub struct Run {
    inner: Arc<Inner>,
}

struct Inner {
    index: Index,
    /// One for each section.
    filters: Vec<Filter>,
}

/// Where the entries are.
pub(super) struct Index {
    file: CheckedFile,
    entries: u64,
    filter: FilterSize,
    sections: Vec<Section>,
    /// The first keys of the blocks.
    firsts: Vec<KeyBytes>,
}

struct Section {
    begin: u64,
    entries: u64,
    filter: Range<u64>,
}

impl Run {
    /// Opens a run. `bytes` and `sums` are those of [`RunWritten`](super::RunWritten).
    ///
    /// # Errors
    /// When the file cannot be read, is damaged, or has an unknown format.
    pub fn open(path: &Path, bytes: u64, sums: &[u8]) -> Result<Self> {
        let index = Index::open(path, bytes, sums)?;
        let filter = |section: &Section| {
            let bytes = index.bytes(section.filter.clone())?;
            Filter::from_bytes(&bytes, index.filter).ok_or_else(|| index.wrong("a filter"))
        };
        let filters = index.sections.iter().map(filter).collect::<Result<_>>()?;
        Ok(Self { inner: Arc::new(Inner { index, filters }) })
    }

    /// The number of entries.
    pub fn len(&self) -> u64 {
        self.index().len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Roughly the memory that this run takes while it is open, bytes. Copies share it.
    pub fn memory(&self) -> usize {
        let Inner { index, filters } = &*self.inner;
        index.file.memory()
            + size_of_val(&index.sections[..])
            + size_of_val(&index.firsts[..])
            + filters.iter().map(Filter::memory).sum::<usize>()
    }

    /// The places of these keys, in the order of the keys; `None`: the run does not have the
    /// key. The keys need not be sorted.
    ///
    /// Only blocks that may have one of the keys are read, each of them once.
    ///
    /// # Errors
    /// When the run cannot be read, or is damaged.
    pub fn find(&self, keys: &[Key]) -> Result<Vec<Option<Place>>> {
        let index = self.index();
        let mut places = vec![None; keys.len()];
        let mut wanted: Vec<(KeyBytes, usize, usize)> = Vec::new();
        for (at, key) in keys.iter().enumerate() {
            let key = key.to_bytes();
            let Some(block) = index.block_of(&key) else { continue };
            let filter = self.inner.filters.get(block / SECTION);
            if filter.is_some_and(|filter| filter.may_have(hash(&key))) {
                wanted.push((key, block, at));
            }
        }
        wanted.sort_unstable();
        let mut last: Option<(usize, Bytes)> = None;
        for (key, block, at) in wanted {
            let bytes = match last.take() {
                Some((number, bytes)) if number == block => bytes,
                _ => index.block(block)?,
            };
            if let Some(place) = places.get_mut(at) {
                *place = search(&bytes, &key).map(|entry| entry.place);
            }
            last = Some((block, bytes));
        }
        Ok(places)
    }

    /// Where the entries are.
    pub(super) fn index(&self) -> &Index {
        &self.inner.index
    }

    /// All entries in order, one block of them in memory at a time. The iterator ends after
    /// an error.
    pub fn entries(&self) -> Entries<'_> {
        self.index().entries()
    }

    /// Whether it has an entry of this project.
    ///
    /// # Errors
    /// When the run cannot be read, or is damaged.
    pub fn has_project(&self, project: i64) -> Result<bool> {
        let index = self.index();
        let least = Key { project, uuid: Uuid::nil() }.to_bytes();
        // The first entry of the project is in the block that begins before it, or begins
        // the next one.
        let begin = index.block_of(&least).unwrap_or(0);
        for block in (begin..index.blocks()).take(2) {
            if decode(&index.block(block)?).any(|entry| entry.key.project == project) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Reads the whole file and compares it with its checksums, and the entries with the
    /// index.
    ///
    /// # Errors
    /// When the file cannot be read, or is damaged.
    pub fn verify(&self) -> Result<()> {
        let index = self.index();
        index.file.verify()?;
        // Checksums say that the bytes are as they were written, not that they are right.
        (0..index.blocks()).try_for_each(|block| index.sound_block(block).map(drop))
    }
}

impl Index {
    /// Opens a run without its filters.
    pub(super) fn open(path: &Path, bytes: u64, sums: &[u8]) -> Result<Self> {
        let file = CheckedFile::open(path, bytes, sums)?;
        let mut index = Self {
            file,
            entries: 0,
            filter: FilterSize::default(),
            sections: Vec::new(),
            firsts: Vec::new(),
        };
        let header = index.bytes(0..bytes.min(HEADER as u64))?;
        let begin = index.read_header(&header)?;
        let rest = index.bytes(begin..bytes)?;
        index.read_sections(&rest).ok_or_else(|| index.wrong("the index"))?;
        Ok(index)
    }

    /// Returns where the index begins.
    fn read_header(&mut self, header: &[u8]) -> Result<u64> {
        let unknown =
            |format: String| Error::UnknownFormat { file: self.file.path().to_owned(), format };
        let mut numbers = Numbers(header);
        if numbers.take() != Some(MAGIC) {
            return Err(unknown("no run".to_owned()));
        }
        let version = numbers.u32();
        if version != Some(VERSION) {
            return Err(unknown(version.unwrap_or(0).to_string()));
        }
        let bits = numbers.u32();
        self.filter = bits.and_then(FilterSize::of_bits).ok_or_else(|| self.wrong("the header"))?;
        self.entries = numbers.u64().ok_or_else(|| self.wrong("the header"))?;
        numbers.u64().ok_or_else(|| self.wrong("the header"))
    }

    /// `None`: the index contradicts itself.
    fn read_sections(&mut self, bytes: &[u8]) -> Option<()> {
        let blocks = usize::try_from(self.entries.div_ceil(BLOCK as u64)).ok()?;
        let sections = blocks.div_ceil(SECTION);
        let (of_sections, of_blocks) =
            bytes.split_at_checked(sections.checked_mul(SECTION_ENTRY)?)?;
        let mut numbers = Numbers(of_sections);
        let mut left = self.entries;
        for _ in 0..sections {
            let (begin, entries) = (numbers.u64()?, numbers.u64()?);
            let filter = numbers.u64()?;
            let filter = filter..filter.checked_add(numbers.u64()?)?;
            if entries != left.min((SECTION * BLOCK) as u64) {
                return None;
            }
            left -= entries;
            self.sections.push(Section { begin, entries, filter });
        }
        let (firsts, rest) = of_blocks.as_chunks::<KEY>();
        self.firsts = firsts.to_vec();
        (rest.is_empty() && firsts.len() == blocks && firsts.is_sorted()).then_some(())
    }

    /// The block that has this key, if one has it.
    fn block_of(&self, key: &KeyBytes) -> Option<usize> {
        self.firsts.partition_point(|first| first <= key).checked_sub(1)
    }

    /// The number of entries.
    pub(super) fn len(&self) -> u64 {
        self.entries
    }

    /// The number of blocks.
    pub(super) fn blocks(&self) -> usize {
        self.firsts.len()
    }

    /// The entries of a block, as they are in the file.
    pub(super) fn block(&self, block: usize) -> Result<Bytes> {
        let section = self.sections.get(block / SECTION);
        let section = section.ok_or_else(|| self.wrong("the index"))?;
        let before = (block % SECTION) as u64;
        let entries = section.entries.saturating_sub(before * BLOCK as u64).min(BLOCK as u64);
        let begin = section.begin.saturating_add(before * CHUNK as u64);
        self.bytes(begin..begin.saturating_add(entries * ENTRY as u64))
    }

    /// The entries of a block, as they are in the file, if they are in order and between the
    /// keys that the index has.
    pub(super) fn sound_block(&self, block: usize) -> Result<Bytes> {
        let bytes = self.block(block)?;
        let (entries, _) = bytes.as_chunks::<ENTRY>();
        let mut keys = entries.iter().filter_map(|entry| entry.first_chunk::<KEY>());
        let (first, next) = (self.firsts.get(block), self.firsts.get(block + 1));
        let is_sound = keys.clone().next() == first
            && keys.clone().is_sorted_by(|key, next| key < next)
            && next.is_none_or(|next| keys.next_back() < Some(next));
        match is_sound {
            true => Ok(bytes),
            false => Err(self.wrong("a block of entries")),
        }
    }

    /// The first key of a block; `None`: there is no such block.
    pub(super) fn first_key(&self, block: usize) -> Option<KeyBytes> {
        self.firsts.get(block).copied()
    }

    fn bytes(&self, range: Range<u64>) -> Result<Bytes> {
        let (begin, bytes) = self.file.read(range.clone())?;
        let cut = |at: u64| usize::try_from(at.saturating_sub(begin)).unwrap_or(usize::MAX);
        let (from, to) = (cut(range.start), cut(range.end));
        match from <= to && to <= bytes.len() {
            true => Ok(bytes.slice(from..to)),
            false => Err(self.wrong("the index")),
        }
    }

    pub(super) fn entries(&self) -> Entries<'_> {
        Entries { index: self, blocks: 0..self.blocks(), block: Bytes::new() }
    }

    fn wrong(&self, what: &str) -> Error {
        Error::damaged(self.file.path(), Part::Content(format!("{what} is wrong")))
    }
}

/// The entries of a block.
pub(super) fn decode(block: &[u8]) -> impl Iterator<Item = Entry> {
    let (entries, _) = block.as_chunks::<ENTRY>();
    entries.iter().filter_map(Entry::from_bytes)
}

/// The entry with this key in a block.
fn search(block: &[u8], key: &KeyBytes) -> Option<Entry> {
    let (entries, _) = block.as_chunks::<ENTRY>();
    let of = |entry: &[u8; ENTRY]| entry.first_chunk::<KEY>().cmp(&Some(key));
    let at = entries.binary_search_by(of).ok()?;
    Entry::from_bytes(entries.get(at)?)
}

/// The entries of a run, in order.
pub struct Entries<'a> {
    index: &'a Index,
    /// Blocks that are not read yet.
    blocks: Range<usize>,
    /// The rest of the block that was read last.
    block: Bytes,
}

impl Iterator for Entries<'_> {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.block.is_empty() {
            match self.index.block(self.blocks.next()?) {
                Ok(block) => self.block = block,
                Err(error) => {
                    self.blocks = 0..0;
                    return Some(Err(error));
                }
            }
        }
        let entry = self.block.first_chunk().and_then(Entry::from_bytes)?;
        self.block = self.block.slice(ENTRY..);
        Some(Ok(entry))
    }
}
