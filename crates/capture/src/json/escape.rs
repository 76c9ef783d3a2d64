//! Escapes of JSON strings: decoding and repairing them.

use std::borrow::Cow;

use memchr::memchr;

/// Decodes the text between the quotes of a JSON string. NUL and single surrogates become
/// U+FFFD.
pub fn unescape(raw: &str) -> Cow<'_, str> {
    if memchr(b'\\', raw.as_bytes()).is_none() {
        return Cow::Borrowed(raw);
    }
    let mut text = String::with_capacity(raw.len());
    for piece in Pieces(raw) {
        match piece {
            Piece::Plain(plain) => text.push_str(plain),
            Piece::Escape(escape, _) => text.push(escape.value),
        }
    }
    Cow::Owned(text)
}

/// The text of a JSON value if it is a string.
pub fn string(value: &str) -> Option<Cow<'_, str>> {
    value.strip_prefix('"')?.strip_suffix('"').map(unescape)
}

/// Replaces every escape of NUL or of a single surrogate by U+FFFD.
pub fn repair(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for piece in Pieces(json) {
        match piece {
            Piece::Plain(plain) => text.push_str(plain),
            Piece::Escape(escape, _) if escape.broken => text.push(escape.value),
            Piece::Escape(_, sent) => text.push_str(sent),
        }
    }
    text
}

/// One escape sequence; a surrogate pair counts as one.
pub(super) struct Escape {
    /// Bytes of the sequence.
    pub(super) length: usize,
    /// Its character; U+FFFD if broken.
    value: char,
    /// NUL, or a single surrogate.
    pub(super) broken: bool,
}

impl Escape {
    /// Parses the sequence at the start, which begins with a backslash.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let value = match bytes.get(1)? {
            b'n' => '\n',
            b't' => '\t',
            b'r' => '\r',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'u' => return Self::read_unicode(bytes),
            simple @ (b'"' | b'\\' | b'/') => char::from(*simple),
            _ => return None,
        };
        Some(Self { length: 2, value, broken: false })
    }

    fn read_unicode(bytes: &[u8]) -> Option<Self> {
        let broken = Self { length: 6, value: char::REPLACEMENT_CHARACTER, broken: true };
        match unicode_unit(bytes)? {
            0 => Some(broken),
            high @ 0xD800..0xDC00 => match bytes.get(6..).and_then(unicode_unit) {
                Some(low @ 0xDC00..0xE000) => {
                    let value = 0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00);
                    char::from_u32(value).map(|value| Self { length: 12, value, broken: false })
                }
                _ => Some(broken),
            },
            unit => Some(match char::from_u32(unit) {
                Some(value) => Self { length: 6, value, broken: false },
                None => broken,
            }),
        }
    }
}

/// The value of a `\uXXXX` at the start.
fn unicode_unit(bytes: &[u8]) -> Option<u32> {
    let digits = bytes.strip_prefix(b"\\u")?.get(..4)?;
    digits.iter().try_fold(0, |unit, digit| Some(unit << 4 | char::from(*digit).to_digit(16)?))
}

enum Piece<'a> {
    Plain(&'a str),
    Escape(Escape, &'a str),
}

/// Splits text at its escapes. An invalid escape is passed on unchanged.
struct Pieces<'a>(&'a str);

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        let bytes = self.0.as_bytes();
        let (length, escape) = match memchr(b'\\', bytes) {
            _ if bytes.is_empty() => return None,
            Some(0) => match Escape::read(bytes) {
                Some(escape) => (escape.length, Some(escape)),
                None => (bytes.len(), None),
            },
            Some(next) => (next, None),
            None => (bytes.len(), None),
        };
        let (piece, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(match escape {
            Some(escape) => Piece::Escape(escape, piece),
            None => Piece::Plain(piece),
        })
    }
}
