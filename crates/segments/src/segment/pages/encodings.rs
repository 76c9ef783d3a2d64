//! Pages of a column, from their bytes to values.
//!
//! What belongs here: the encodings of texts, of codes and of levels. What does not: which
//! pages of a file are read (`pages`).

use std::collections::HashMap;
use std::ops::{ControlFlow, Range};

use bytes::buf::Reader;
use bytes::{Buf as _, Bytes};
use memchr::memmem::Finder;
use parquet::basic::Encoding;
use parquet::column::page::{Page, PageReader as _};
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;

use super::{Codes, NONE};
use crate::segment::read::missing;

/// The largest size of a page after decompression. A page has less than 1 MiB beside the
/// last block, and a block has at most 64 MiB.
const PAGE: u64 = 66 << 20;

/// Pages of a column whose values are decoded here.
pub(super) struct Pages {
    pub(super) reader: SerializedPageReader<ColumnBytes>,
    /// Rows that were not read.
    pub(super) left: usize,
    pub(super) has_dictionary: bool,
    pub(super) is_optional: bool,
}

impl Pages {
    /// The dictionary, which is the first page.
    pub(super) fn dictionary(&mut self) -> Result<Vec<Bytes>, ParquetError> {
        let page = self.reader.get_next_page()?;
        let Some(Page::DictionaryPage { buf, num_values, encoding: Encoding::PLAIN, .. }) = page
        else {
            return Err(wrong("a dictionary is missing"));
        };
        let count = num_values as usize;
        if count > self.left {
            return Err(wrong("a dictionary has more texts than rows"));
        }
        let (mut values, mut at) = (Vec::with_capacity(count), 0);
        for _ in 0..count {
            let text = text(&buf, at)?;
            at = text.end;
            values.push(buf.slice(text));
        }
        Ok(values)
    }

    fn next(&mut self) -> Result<Option<Data>, ParquetError> {
        let Some(page) = self.reader.get_next_page()? else {
            return match self.left {
                0 => Ok(None),
                _ => Err(missing()),
            };
        };
        let data = Data::of(page, self.is_optional)?;
        self.left =
            self.left.checked_sub(data.rows).ok_or_else(|| wrong("a column has too many rows"))?;
        Ok(Some(data))
    }

    pub(super) fn codes(&mut self) -> Result<Codes, ParquetError> {
        let mut values = match self.has_dictionary {
            true => self.dictionary()?,
            false => Vec::new(),
        };
        let mut codes = Vec::with_capacity(self.left);
        // Of pages without the dictionary.
        let mut known: HashMap<Bytes, u32> = HashMap::new();
        let (mut levels, mut found) = (Vec::new(), Vec::new());
        while let Some(data) = self.next()? {
            let count = data.levels(&mut levels)?;
            found.clear();
            match data.encoding {
                Encoding::RLE_DICTIONARY if count == 0 => {}
                Encoding::RLE_DICTIONARY => {
                    let (width, packed) =
                        data.values.split_first().ok_or_else(|| wrong("a page is cut"))?;
                    hybrid(packed, *width, count, &mut found)?;
                    if found.iter().any(|code| *code as usize >= values.len()) {
                        return Err(wrong("a code has no text"));
                    }
                }
                Encoding::PLAIN => {
                    if known.is_empty() {
                        known.extend(values.iter().cloned().zip(0..));
                    }
                    let mut at = 0;
                    for _ in 0..count {
                        let text = text(&data.values, at)?;
                        at = text.end;
                        let text = data.values.get(text).ok_or_else(missing)?;
                        if let Some(code) = known.get(text) {
                            found.push(*code);
                            continue;
                        }
                        let code = u32::try_from(values.len()).map_err(|_| missing())?;
                        // A slice would hold its page in memory.
                        let value = Bytes::copy_from_slice(text);
                        values.push(value.clone());
                        known.insert(value, code);
                        found.push(code);
                    }
                }
                _ => return Err(wrong("a page has an unknown encoding")),
            }
            match self.is_optional {
                false => codes.extend_from_slice(&found),
                true => {
                    let mut found = found.iter();
                    for level in &levels {
                        codes.push(match level {
                            0 => NONE,
                            _ => *found.next().ok_or_else(missing)?,
                        });
                    }
                }
            }
        }
        Ok(Codes { codes, values })
    }

    /// Calls `see` with each row and its text, until it breaks. `row` is the first one.
    pub(super) fn each_text(
        &mut self,
        mut row: u32,
        mut see: impl FnMut(u32, &[u8]) -> ControlFlow<()>,
    ) -> Result<(), ParquetError> {
        while let Some(data) = self.next()? {
            let data = data.plain()?;
            let mut at = 0;
            for _ in 0..data.rows {
                let text = text(&data.values, at)?;
                at = text.end;
                if see(row, data.values.get(text).ok_or_else(missing)?).is_break() {
                    return Ok(());
                }
                row += 1;
            }
        }
        Ok(())
    }

    pub(super) fn each_with(
        &mut self,
        needles: &[Finder<'_>],
        mut see: impl FnMut(u32, &[u8]),
    ) -> Result<(), ParquetError> {
        let mut first = 0;
        while let Some(data) = self.next()? {
            let data = data.plain()?;
            search(&data.values, data.rows, needles, |row, text| see(first + row, text))?;
            first += u32::try_from(data.rows).map_err(|_| missing())?;
        }
        Ok(())
    }
}

/// Calls `see` with the texts that contain a needle, and their numbers among all texts.
fn search(
    bytes: &[u8],
    rows: usize,
    needles: &[Finder<'_>],
    mut see: impl FnMut(u32, &[u8]),
) -> Result<(), ParquetError> {
    let find =
        |needle: &Finder<'_>, from: usize| needle.find(bytes.get(from..)?).map(|hit| from + hit);
    // The next place of each needle. It may be in a length, or continue in the next text.
    let mut hits: Vec<Option<usize>> = needles.iter().map(|needle| find(needle, 0)).collect();
    let (mut end, mut row) = (0, 0);
    while let Some(hit) = hits.iter().flatten().min().copied() {
        let found = loop {
            if row as usize >= rows {
                return Ok(());
            }
            let found = text(bytes, end)?;
            end = found.end;
            row += 1;
            if hit < end {
                break bytes.get(found).ok_or_else(missing)?;
            }
        };
        let mut is_in = false;
        for (needle, hit) in needles.iter().zip(&mut hits) {
            if hit.is_some_and(|hit| hit < end) {
                is_in = is_in || needle.find(found).is_some();
                *hit = find(needle, end);
            }
        }
        if is_in {
            see(row - 1, found);
        }
    }
    Ok(())
}

/// A data page of a column without lists.
#[derive(Debug)]
struct Data {
    rows: usize,
    /// Which rows have a value; `None`: all of them.
    levels: Option<Bytes>,
    values: Bytes,
    encoding: Encoding,
}

impl Data {
    fn of(page: Page, is_optional: bool) -> Result<Self, ParquetError> {
        let (buf, levels, begin, rows, encoding) = match page {
            Page::DataPage { buf, num_values, encoding, def_level_encoding, .. } => {
                let levels = match (is_optional, def_level_encoding) {
                    (true, Encoding::RLE) => text(&buf, 0)?,
                    (true, _) => return Err(wrong("a page has an unknown encoding")),
                    (false, _) => 0..0,
                };
                let begin = levels.end;
                (buf, levels, begin, num_values, encoding)
            }
            Page::DataPageV2 {
                buf,
                num_values,
                encoding,
                def_levels_byte_len,
                rep_levels_byte_len,
                ..
            } => {
                let from = rep_levels_byte_len as usize;
                let to = from.saturating_add(def_levels_byte_len as usize);
                (buf, from..to, to, num_values, encoding)
            }
            Page::DictionaryPage { .. } => return Err(wrong("a dictionary is not at the begin")),
        };
        if begin > buf.len() {
            return Err(wrong("a page is cut"));
        }
        Ok(Self {
            rows: rows as usize,
            levels: is_optional.then(|| buf.slice(levels)),
            values: buf.slice(begin..),
            encoding,
        })
    }

    /// It, if its values are plain.
    fn plain(self) -> Result<Self, ParquetError> {
        match self.encoding {
            Encoding::PLAIN if self.levels.is_none() => Ok(self),
            _ => Err(wrong("a page has an unknown encoding")),
        }
    }

    /// Reads which rows have a value, if some may have none. Returns the number of values.
    fn levels(&self, into: &mut Vec<u32>) -> Result<usize, ParquetError> {
        into.clear();
        let Some(levels) = &self.levels else { return Ok(self.rows) };
        hybrid(levels, 1, self.rows, into)?;
        Ok(into.iter().filter(|level| **level > 0).count())
    }
}

/// Where the text is that begins with its length at `at`.
#[inline]
fn text(bytes: &[u8], at: usize) -> Result<Range<usize>, ParquetError> {
    let cut = || wrong("a text is cut");
    let (length, rest) = bytes.get(at..).and_then(<[u8]>::split_first_chunk).ok_or_else(cut)?;
    let length = u32::from_le_bytes(*length) as usize;
    match length <= rest.len() {
        true => Ok(at + 4..at + 4 + length),
        false => Err(cut()),
    }
}

/// Decodes `count` numbers of `width` bits, which are repeated or stored bit by bit.
fn hybrid(bytes: &[u8], width: u8, count: usize, into: &mut Vec<u32>) -> Result<(), ParquetError> {
    let cut = || wrong("numbers are cut");
    if width > 32 {
        return Err(wrong("numbers have too many bits"));
    }
    let width = usize::from(width);
    let (mut rest, end) = (bytes, into.len() + count);
    while into.len() < end {
        let (head, after) = varint(rest).ok_or_else(cut)?;
        let left = end - into.len();
        let length = usize::try_from(head >> 1).map_err(|_| cut())?;
        if head & 1 == 0 {
            let (raw, after) = after.split_at_checked(width.div_ceil(8)).ok_or_else(cut)?;
            let mut value = [0; 4];
            value.get_mut(..raw.len()).ok_or_else(cut)?.copy_from_slice(raw);
            if length == 0 {
                return Err(cut());
            }
            into.resize(into.len() + length.min(left), u32::from_le_bytes(value));
            rest = after;
            continue;
        }
        // Groups of eight. The last one may be cut.
        let packed = length.checked_mul(width).ok_or_else(cut)?.min(after.len());
        let (packed, after) = after.split_at_checked(packed).ok_or_else(cut)?;
        let take = length.saturating_mul(8).min(left);
        if take == 0 || packed.len() * 8 < take * width {
            return Err(cut());
        }
        let mask = (1_u64 << width) - 1;
        let (mut bits, mut held) = (0_u64, 0);
        let mut packed = packed.iter();
        for _ in 0..take {
            while held < width {
                bits |= u64::from(*packed.next().ok_or_else(cut)?) << held;
                held += 8;
            }
            into.push(u32::try_from(bits & mask).map_err(|_| cut())?);
            bits >>= width;
            held -= width;
        }
        rest = after;
    }
    Ok(())
}

/// Reads a number in groups of seven bits, and what follows it.
fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut number = 0;
    for (at, byte) in bytes.iter().enumerate().take(9) {
        number |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Some((number, bytes.get(at + 1..)?));
        }
    }
    None
}

/// The size of a page after decompression, as the beginning of its header says: Thrift's
/// compact form of two numbers, the type of the page and this size.
fn page_size(header: &[u8]) -> Option<u64> {
    const NEXT_FIELD_IS_NUMBER: u8 = 0x15;
    let (_kind, rest) = varint(header.strip_prefix(&[NEXT_FIELD_IS_NUMBER])?)?;
    let (size, _) = varint(rest.strip_prefix(&[NEXT_FIELD_IS_NUMBER])?)?;
    // Odd numbers are negative.
    (size % 2 == 0).then_some(size / 2)
}

fn wrong(what: &str) -> ParquetError {
    ParquetError::General(what.to_owned())
}

pub(super) fn other_type() -> ParquetError {
    wrong("a column has another type")
}

/// Bytes of a column, under their positions in the file.
pub(super) struct ColumnBytes {
    pub(super) start: u64,
    pub(super) bytes: Bytes,
}

impl ColumnBytes {
    fn from(&self, start: u64) -> Result<Bytes, ParquetError> {
        let from = start.checked_sub(self.start).and_then(|from| usize::try_from(from).ok());
        match from.filter(|from| *from <= self.bytes.len()) {
            Some(from) => Ok(self.bytes.slice(from..)),
            None => Err(wrong("a page is not in its column")),
        }
    }
}

impl Length for ColumnBytes {
    fn len(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}

impl ChunkReader for ColumnBytes {
    type T = Reader<Bytes>;

    /// The reader of pages reads headers with it, and then decompresses the page.
    fn get_read(&self, start: u64) -> Result<Reader<Bytes>, ParquetError> {
        let bytes = self.from(start)?;
        match page_size(&bytes) {
            Some(size) if size <= PAGE => Ok(bytes.reader()),
            _ => Err(wrong("a page is too large, or has no size")),
        }
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let bytes = self.from(start)?;
        match length <= bytes.len() {
            true => Ok(bytes.slice(..length)),
            false => Err(wrong("a page is not in its column")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that look random, the same ones each time.
    fn random(mut state: u64) -> impl FnMut() -> u64 {
        move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state >> 31 ^ state << 7
        }
    }

    fn push_varint(bytes: &mut Vec<u8>, mut number: u64) {
        while number >= 0x80 {
            bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        bytes.push(number as u8);
    }

    /// Appends numbers in groups of eight, bit by bit.
    fn push_packed(bytes: &mut Vec<u8>, width: u8, numbers: &[u32]) {
        let groups = numbers.len().div_ceil(8);
        push_varint(bytes, (groups as u64) << 1 | 1);
        let mut bits = vec![false; groups * 8 * usize::from(width)];
        for (at, number) in numbers.iter().enumerate() {
            for bit in 0..usize::from(width) {
                bits[at * usize::from(width) + bit] = number >> bit & 1 == 1;
            }
        }
        let byte = |bits: &[bool]| (0..).zip(bits).map(|(at, bit)| u8::from(*bit) << at).sum();
        bytes.extend(bits.chunks(8).map(byte).collect::<Vec<u8>>());
    }

    fn push_repeated(bytes: &mut Vec<u8>, width: u8, count: u64, number: u32) {
        push_varint(bytes, count << 1);
        bytes.extend(&number.to_le_bytes()[..usize::from(width.div_ceil(8))]);
    }

    #[test]
    fn repeated_and_packed_numbers_of_every_width_are_read() {
        for width in 0..=32 {
            let mut next = random(u64::from(width) + 1);
            let mut number = || (next() & ((1 << width) - 1)) as u32;
            let (mut bytes, mut numbers) = (Vec::new(), Vec::new());
            for length in [8, 1, 160, 300] {
                let packed: Vec<u32> = (0..length * 8).map(|_| number()).collect();
                push_packed(&mut bytes, width, &packed);
                numbers.extend(packed);
                let repeated = number();
                push_repeated(&mut bytes, width, length, repeated);
                numbers.extend(vec![repeated; length as usize]);
            }
            // The last group has fewer.
            let last = [number(), number(), number()];
            push_packed(&mut bytes, width, &last);
            numbers.extend(last);
            let mut found = vec![7];
            hybrid(&bytes, width, numbers.len(), &mut found).unwrap();
            assert_eq!((found[0], &found[1..]), (7, &numbers[..]), "{width}");
            let most = numbers.len() + 6;
            assert!(hybrid(&bytes, width, most, &mut Vec::new()).is_err(), "{width}");
            for length in (0..bytes.len()).step_by(7) {
                let mut found = Vec::new();
                match hybrid(&bytes[..length], width, numbers.len(), &mut found) {
                    Ok(()) => assert_eq!(found, numbers),
                    Err(_) => assert!(numbers.starts_with(&found), "{width}, {length}"),
                }
            }
        }
    }

    #[test]
    fn bytes_that_are_no_numbers_give_an_error_and_no_more_than_was_wanted() {
        let mut next = random(9);
        for length in (0..60).cycle().take(20_000) {
            let bytes: Vec<u8> = (0..length).map(|_| next() as u8).collect();
            let mut found = Vec::new();
            let result = hybrid(&bytes, (next() % 40) as u8, 100, &mut found);
            assert!(found.len() <= 100);
            assert_eq!(result.is_ok(), found.len() == 100);
            // Any place, any text.
            for at in [0, length / 2, length, usize::MAX] {
                if let Ok(range) = text(&bytes, at) {
                    assert!(bytes.get(range).is_some());
                }
            }
            let page = |is_optional| {
                let page = Page::DataPage {
                    buf: bytes.clone().into(),
                    num_values: 100,
                    encoding: Encoding::PLAIN,
                    def_level_encoding: Encoding::RLE,
                    rep_level_encoding: Encoding::RLE,
                    statistics: None,
                };
                Data::of(page, is_optional)
            };
            let _ = page(true).map(|data| data.levels(&mut Vec::new()));
            let data = page(false).unwrap().plain().unwrap();
            let _ = search(&data.values, data.rows, &[Finder::new("\0")], |_, _| ());
        }
        let mut many = Vec::new();
        push_repeated(&mut many, 8, u64::MAX >> 2, 5);
        let mut found = Vec::new();
        hybrid(&many, 8, 10, &mut found).unwrap();
        assert_eq!(found, [5; 10]);
        for head in [0, 1] {
            assert!(hybrid(&[head, 0, 0, 0], 8, 1, &mut Vec::new()).is_err(), "nothing repeated");
        }
    }

    #[test]
    fn a_page_of_the_second_version_has_its_levels_before_its_values() {
        let page = |rep_levels_byte_len, def_levels_byte_len| Page::DataPageV2 {
            buf: Bytes::from_static(&[9, 0x03, 0b0000_0101, 4, 0, 0, 0]),
            num_values: 3,
            encoding: Encoding::RLE_DICTIONARY,
            num_nulls: 1,
            num_rows: 3,
            def_levels_byte_len,
            rep_levels_byte_len,
            is_compressed: true,
            statistics: None,
        };
        let data = Data::of(page(1, 2), true).unwrap();
        let mut levels = Vec::new();
        assert_eq!(data.levels(&mut levels).unwrap(), 2);
        assert_eq!(levels, [1, 0, 1]);
        assert_eq!(&data.values[..], [4, 0, 0, 0]);
        assert!(data.plain().is_err());
        assert_eq!(Data::of(page(0, 0), false).unwrap().values.len(), 7);
        for (repetitions, definitions) in [(8, 0), (0, 8), (1, 7), (u32::MAX, u32::MAX)] {
            assert!(Data::of(page(repetitions, definitions), true).is_err());
        }
    }

    #[test]
    fn a_page_that_would_be_too_large_is_not_decompressed() {
        let header = |size: u64| {
            let mut header = vec![0x15, 0, 0x15];
            push_varint(&mut header, size * 2);
            header.extend([0x15, 2]);
            header
        };
        let read = |header: Vec<u8>| {
            let bytes = ColumnBytes { start: 5, bytes: header.into() };
            bytes.get_read(5).is_ok()
        };
        assert!(read(header(0)));
        assert!(read(header(PAGE)));
        assert!(!read(header(PAGE + 1)));
        assert!(!read(header(u64::from(u32::MAX))));
        assert_eq!(page_size(&[0x15, 0, 0x15, 1]), None, "a negative size");
        for length in 0..4 {
            assert!(!read(header(PAGE)[..length].to_vec()));
        }
        assert!(!read(vec![0xff; 20]));
    }
}
