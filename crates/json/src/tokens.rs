//! The tokens of JSON text: strings and numbers at any depth.

use std::ops::Range;

use memchr::memchr2;

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Token {
    /// One of `{`, `}`, `[`, `]`, `,` and `:`.
    Mark(u8),
    /// A string, with its quotation marks.
    String,
    /// A number.
    Number,
    /// `true`, `false` or `null`.
    Word,
}

/// The tokens of a text, each with its range.
#[derive(Debug, Clone)]
pub struct Tokens<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Tokens<'a> {
    /// The tokens of a text.
    pub const fn of(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }
}

impl Iterator for Tokens<'_> {
    type Item = (Token, Range<usize>);

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.bytes.get(self.at..)?;
        let start = self.at + rest.iter().position(|byte| !is_blank(*byte))?;
        let rest = self.bytes.get(start..)?;
        let first = *rest.first()?;
        let word = || rest.iter().position(|byte| is_end(*byte)).unwrap_or(rest.len());
        let (token, length) = match first {
            b'{' | b'}' | b'[' | b']' | b',' | b':' => (Token::Mark(first), 1),
            b'"' => (Token::String, string_length(rest)),
            b'-' | b'0'..=b'9' => (Token::Number, word()),
            _ => (Token::Word, word()),
        };
        self.at = start + length;
        Some((token, start..self.at))
    }
}

const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}

/// Whether a number or a word ends before this byte.
const fn is_end(byte: u8) -> bool {
    is_blank(byte) || matches!(byte, b'{' | b'}' | b'[' | b']' | b',' | b':' | b'"')
}

/// The length of the string at the start, with its quotation marks.
fn string_length(bytes: &[u8]) -> usize {
    let mut at = 1;
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
        at += found;
        if bytes.get(at) == Some(&b'"') {
            return at + 1;
        }
        at += 2;
    }
    bytes.len()
}

/// Depth and numbers of the parts of a value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Weight {
    /// Nested objects and lists; the outermost one counts as 1.
    pub depth: usize,
    /// Members, summed over all levels.
    pub keys: usize,
    /// Values at all levels: objects, lists, strings, numbers and words.
    pub values: usize,
    /// The objects among them.
    pub objects: usize,
}

/// Measures a JSON text without recursion. Of a text that is not JSON, a parser has made
/// at most this many values when it finds the fault.
pub fn weigh(json: &[u8]) -> Weight {
    let mut weight = Weight::default();
    let mut last = None;
    for (token, depth) in depths(json) {
        weight.depth = weight.depth.max(depth);
        match token {
            Token::Mark(b':') => {
                weight.keys += 1;
                // The name was counted as a value. Other colons must not reduce the
                // number: a parser stops at them, with all values before them.
                weight.values -= usize::from(last == Some(Token::String));
            }
            Token::Mark(b'{') => {
                weight.values += 1;
                weight.objects += 1;
            }
            Token::Mark(b'[') | Token::String | Token::Number | Token::Word => weight.values += 1,
            Token::Mark(_) => {}
        }
        last = Some(token);
    }
    weight
}

/// Whether more than `limit` objects and lists are nested in a text that may not be JSON.
pub fn is_deeper_than(text: &[u8], limit: usize) -> bool {
    depths(text).any(|(_, depth)| depth > limit)
}

/// The tokens, each with the number of objects and lists that are open after it.
fn depths(text: &[u8]) -> impl Iterator<Item = (Token, usize)> {
    Tokens::of(text).scan(0_usize, |depth, (token, _)| {
        match token {
            Token::Mark(b'{' | b'[') => *depth += 1,
            Token::Mark(b'}' | b']') => *depth = depth.saturating_sub(1),
            _ => {}
        }
        Some((token, *depth))
    })
}
