//! Walking JSON text once, within limits.
//!
//! What belongs here: the members and elements of a value, their depth and number, and
//! whether an escape needs repair. What does not: changing the text (`members`, `edits`).

use std::borrow::Cow;
use std::ops::Range;

use memchr::memchr2;

use crate::escape::{self, Escape};

/// Why a walk stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// More nested objects and lists than allowed.
    TooDeep,
    /// More members, summed over all levels, than allowed.
    TooManyKeys,
    /// Not JSON, or not the expected type of value.
    Malformed,
}

/// The limits of a walk.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Nested objects and lists; the outermost one counts as 1.
    pub depth: usize,
    /// Members, summed over all levels.
    pub keys: usize,
}

impl Limits {
    /// The limits of one event, when it is sent, imported or written by a script.
    pub const EVENT: Self = Self { depth: 64, keys: 10_000 };
    /// No limits, for searching text whose limits are checked elsewhere.
    pub const NONE: Self = Self { depth: usize::MAX, keys: usize::MAX };
}

/// The name of a member, decoded only on request.
#[derive(Debug, Clone, Copy)]
pub struct Key<'a> {
    /// The text between the quotes, as sent.
    pub(crate) raw: &'a str,
    escaped: bool,
}

impl<'a> Key<'a> {
    /// The decoded name; U+FFFD for what needs repair.
    pub fn text(self) -> Cow<'a, str> {
        if self.escaped { escape::decode_lossy(self.raw) } else { Cow::Borrowed(self.raw) }
    }
}

/// A position in JSON text that only moves forward.
#[derive(Debug)]
pub struct Cursor<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    pub(crate) keys: usize,
    limits: Limits,
    needs_repair: bool,
}

impl<'a> Cursor<'a> {
    /// At the first value of `text`.
    pub fn new(text: &'a str, limits: Limits) -> Self {
        let mut cursor = Self { text, at: 0, depth: 0, keys: 0, limits, needs_repair: false };
        cursor.skip_blanks();
        cursor
    }

    /// Whether an escape so far was NUL or a single surrogate, which cannot be stored.
    pub fn needs_repair(&self) -> bool {
        self.needs_repair
    }

    /// Whether the next value is an object.
    pub fn at_object(&self) -> bool {
        self.peek() == Some(b'{')
    }

    /// Walks the next value, an object. `member` is called at every value and must read
    /// it with a method of this type.
    pub fn object(
        &mut self,
        mut member: impl FnMut(Key<'a>, &mut Self) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        self.expect(b'{')?;
        self.descend()?;
        loop {
            self.skip_blanks();
            match self.peek() {
                Some(b'}') => {
                    self.ascend();
                    return Ok(());
                }
                Some(b',') => self.at += 1,
                Some(b'"') => {
                    let from = self.at + 1;
                    let escaped = self.string()?;
                    let raw = self.slice(from..self.at - 1)?;
                    self.skip_blanks();
                    self.expect(b':')?;
                    self.count_key()?;
                    self.skip_blanks();
                    member(Key { raw, escaped }, self)?;
                }
                _ => return Err(Fault::Malformed),
            }
        }
    }

    /// Walks the next value, a list. `element` is called at every value and must read it
    /// with a method of this type.
    pub fn list(
        &mut self,
        mut element: impl FnMut(&mut Self) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        self.enter_list()?;
        while self.at_element()? {
            element(self)?;
        }
        Ok(())
    }

    /// Enters the next value, a list. After that, call [`Cursor::at_element`] and a
    /// method that reads a value in turn.
    pub fn enter_list(&mut self) -> Result<(), Fault> {
        self.expect(b'[')?;
        self.descend()
    }

    /// Moves to the next value of a list; returns `false` at its end.
    pub fn at_element(&mut self) -> Result<bool, Fault> {
        loop {
            self.skip_blanks();
            match self.peek() {
                Some(b']') => {
                    self.ascend();
                    return Ok(false);
                }
                Some(b',') => self.at += 1,
                Some(_) => return Ok(true),
                None => return Err(Fault::Malformed),
            }
        }
    }

    /// Reads the next value and returns its text.
    pub fn value(&mut self) -> Result<&'a str, Fault> {
        let range = self.range()?;
        self.slice(range)
    }

    /// Reads the next value and returns its range in the text.
    ///
    /// There is no recursion: depth costs a counter, not stack.
    pub fn range(&mut self) -> Result<Range<usize>, Fault> {
        let from = self.at;
        match self.peek() {
            Some(b'"') => {
                self.string()?;
            }
            Some(b'{' | b'[') => {
                let outside = self.depth;
                loop {
                    match self.peek() {
                        Some(b'"') => {
                            self.string()?;
                        }
                        Some(b'{' | b'[') => {
                            self.at += 1;
                            self.descend()?;
                        }
                        Some(b'}' | b']') => {
                            self.ascend();
                            if self.depth <= outside {
                                break;
                            }
                        }
                        Some(b':') => {
                            self.at += 1;
                            self.count_key()?;
                        }
                        Some(_) => self.at += 1,
                        None => return Err(Fault::Malformed),
                    }
                }
            }
            Some(b'}' | b']' | b',' | b':') | None => return Err(Fault::Malformed),
            Some(_) => {
                let ends = |b: &u8| matches!(b, b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t');
                let rest = self.text.as_bytes().get(from..).unwrap_or_default();
                self.at = from + rest.iter().position(ends).unwrap_or(rest.len());
            }
        }
        Ok(from..self.at)
    }

    pub(crate) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn slice(&self, range: Range<usize>) -> Result<&'a str, Fault> {
        self.text.get(range).ok_or(Fault::Malformed)
    }

    fn expect(&mut self, byte: u8) -> Result<(), Fault> {
        if self.peek() != Some(byte) {
            return Err(Fault::Malformed);
        }
        self.at += 1;
        Ok(())
    }

    fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    fn descend(&mut self) -> Result<(), Fault> {
        self.depth += 1;
        if self.depth > self.limits.depth { Err(Fault::TooDeep) } else { Ok(()) }
    }

    fn ascend(&mut self) {
        self.at += 1;
        self.depth = self.depth.saturating_sub(1);
    }

    fn count_key(&mut self) -> Result<(), Fault> {
        self.keys += 1;
        if self.keys > self.limits.keys { Err(Fault::TooManyKeys) } else { Ok(()) }
    }

    /// Reads a string with its quotes; returns whether it contains an escape.
    fn string(&mut self) -> Result<bool, Fault> {
        self.at += 1;
        let mut escaped = false;
        loop {
            let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
            let found = memchr2(b'"', b'\\', rest).ok_or(Fault::Malformed)?;
            let from = rest.get(found..).unwrap_or_default();
            self.at += found;
            if from.first() == Some(&b'"') {
                self.at += 1;
                return Ok(escaped);
            }
            let (escape, length) = Escape::read(from).ok_or(Fault::Malformed)?;
            self.at += length;
            self.needs_repair |= escape.needs_repair();
            escaped = true;
        }
    }
}
