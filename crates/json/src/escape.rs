//! Strings and their escapes.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memchr;

/// What an escape sequence stands for. A pair of surrogates is one sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Escape {
    /// A character, except NUL.
    Char(char),
    /// NUL, which many databases cannot hold.
    Nul,
    /// Half of a surrogate pair, which no text in UTF-8 can hold.
    SingleSurrogate,
}

impl Escape {
    /// Whether it cannot be stored everywhere.
    pub const fn needs_repair(self) -> bool {
        !matches!(self, Self::Char(_))
    }

    /// Its character: U+FFFD if it needs repair.
    const fn lossy(self) -> char {
        match self {
            Self::Char(char) => char,
            Self::Nul | Self::SingleSurrogate => char::REPLACEMENT_CHARACTER,
        }
    }

    /// Its character, if there is one.
    const fn exact(self) -> Option<char> {
        match self {
            Self::Char(char) => Some(char),
            Self::Nul => Some('\0'),
            Self::SingleSurrogate => None,
        }
    }

    /// Parses the sequence at the start, which begins with a backslash; also returns its
    /// length.
    pub(crate) fn read(bytes: &[u8]) -> Option<(Self, usize)> {
        let char = match bytes.get(1)? {
            b'n' => '\n',
            b't' => '\t',
            b'r' => '\r',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'u' => return Self::read_unicode(bytes),
            simple @ (b'"' | b'\\' | b'/') => char::from(*simple),
            _ => return None,
        };
        Some((Self::Char(char), 2))
    }

    fn read_unicode(bytes: &[u8]) -> Option<(Self, usize)> {
        Some(match unicode_unit(bytes)? {
            0 => (Self::Nul, 6),
            high @ 0xD800..0xDC00 => match bytes.get(6..).and_then(unicode_unit) {
                Some(low @ 0xDC00..0xE000) => {
                    let code = 0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00);
                    (Self::Char(char::from_u32(code)?), 12)
                }
                _ => (Self::SingleSurrogate, 6),
            },
            unit => (char::from_u32(unit).map_or(Self::SingleSurrogate, Self::Char), 6),
        })
    }
}

/// The value of a `\uXXXX` at the start.
fn unicode_unit(bytes: &[u8]) -> Option<u32> {
    let digits = bytes.strip_prefix(b"\\u")?.get(..4)?;
    digits.iter().try_fold(0, |unit, digit| Some(unit << 4 | char::from(*digit).to_digit(16)?))
}

/// The escapes of a text with their ranges, in order. Invalid ones are passed over.
#[derive(Debug)]
pub(crate) struct Escapes<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Escapes<'a> {
    pub(crate) const fn of(text: &'a str) -> Self {
        Self { bytes: text.as_bytes(), at: 0 }
    }
}

impl Iterator for Escapes<'_> {
    type Item = (Escape, Range<usize>);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let rest = self.bytes.get(self.at..)?;
            let start = memchr(b'\\', rest)?;
            let read = Escape::read(rest.get(start..)?);
            let start = self.at + start;
            self.at = start + read.map_or(1, |(_, length)| length);
            if let Some((escape, _)) = read {
                return Some((escape, start..self.at));
            }
        }
    }
}

/// The text of a JSON string; `None` if the value is not a string, or has a single
/// surrogate.
pub fn string(json: &str) -> Option<Cow<'_, str>> {
    decode(inner(json)?, Escape::exact)
}

/// The text of a JSON string, with U+FFFD for NUL and single surrogates; `None` if the
/// value is not a string.
pub fn string_lossy(json: &str) -> Option<Cow<'_, str>> {
    inner(json).map(decode_lossy)
}

fn inner(json: &str) -> Option<&str> {
    json.strip_prefix('"')?.strip_suffix('"')
}

/// The text that is between the quotation marks of a JSON string.
pub(crate) fn decode_lossy(raw: &str) -> Cow<'_, str> {
    decode(raw, |escape| Some(escape.lossy())).unwrap_or(Cow::Borrowed(raw))
}

fn decode(raw: &str, char: impl Fn(Escape) -> Option<char>) -> Option<Cow<'_, str>> {
    let mut escapes = Escapes::of(raw).peekable();
    if escapes.peek().is_none() {
        return Some(Cow::Borrowed(raw));
    }
    let mut text = String::with_capacity(raw.len());
    let mut copied = 0;
    for (escape, range) in escapes {
        text.push_str(raw.get(copied..range.start)?);
        text.push(char(escape)?);
        copied = range.end;
    }
    text.push_str(raw.get(copied..)?);
    Some(Cow::Owned(text))
}
