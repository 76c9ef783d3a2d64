//! JSON as text: reading events without building a tree.
//!
//! What belongs here: a scanner that walks raw JSON text once and reports its members,
//! depth, number of keys and invalid escapes; and rewrites that keep every number and
//! every other byte as sent. What does not: the meaning of events (`decide`).
//!
//! Every function requires text that a JSON parser has accepted. For other text the
//! result is unspecified, but there is no panic and no endless loop.

mod escape;

use std::borrow::Cow;
use std::ops::Range;

use memchr::memchr2;

use escape::Escape;
pub use escape::{repair, string, unescape};
pub use weir_model::json::{is_empty_list, push_string};

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

/// The limits of a walk (ING-37).
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Nested objects and lists; the outermost one counts as 1.
    depth: usize,
    /// Members, summed over all levels.
    keys: usize,
}

impl Limits {
    /// The limits of one event.
    pub const EVENT: Self = Self { depth: 64, keys: 10_000 };
    /// The limits of the properties of an event that otherwise has only its name,
    /// distinct id and time.
    pub(super) const PROPERTIES: Self = Self { depth: 63, keys: 9_996 };
    /// No limits, for searching text whose limits are checked elsewhere.
    pub const NONE: Self = Self { depth: usize::MAX, keys: usize::MAX };
}

/// The name of a member, decoded only on request.
#[derive(Debug, Clone, Copy)]
pub struct Key<'a> {
    /// The text between the quotes, as sent.
    raw: &'a str,
    escaped: bool,
}

impl<'a> Key<'a> {
    /// The decoded name.
    pub fn text(self) -> Cow<'a, str> {
        if self.escaped { unescape(self.raw) } else { Cow::Borrowed(self.raw) }
    }
}

/// A position in JSON text that only moves forward.
#[derive(Debug)]
pub struct Cursor<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    keys: usize,
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

    fn peek(&self) -> Option<u8> {
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
            let escape = Escape::read(from).ok_or(Fault::Malformed)?;
            self.at += escape.length;
            self.needs_repair |= escape.broken;
            escaped = true;
        }
    }
}

/// Appends a member to an object.
pub fn with_member(object: &str, key: &str, value: &str) -> String {
    let body = object.trim_end().strip_suffix('}').unwrap_or(object);
    let mut out = String::with_capacity(object.len() + key.len() + value.len() + 6);
    out.push_str(body);
    if !body.trim_end().ends_with('{') {
        out.push(',');
    }
    push_string(&mut out, key);
    out.push(':');
    out.push_str(value);
    out.push('}');
    out
}

/// Removes the members of this name; returns the object and the text of the last of them.
pub fn take_member<'a>(object: &'a str, name: &str) -> Result<(String, &'a str), Fault> {
    let mut out = String::with_capacity(object.len());
    let mut taken = "null";
    Cursor::new(object, Limits::NONE).object(|key, cursor| {
        let value = cursor.value()?;
        if key.text() == name {
            taken = value;
            return Ok(());
        }
        push_member(&mut out, key, value);
        Ok(())
    })?;
    out.push_str(if out.is_empty() { "{}" } else { "}" });
    Ok((out, taken))
}

/// Removes the members of these names.
pub fn without_members(object: &str, names: &[&str]) -> Result<String, Fault> {
    let mut out = String::with_capacity(object.len());
    Cursor::new(object, Limits::NONE).object(|key, cursor| {
        let value = cursor.value()?;
        if !names.contains(&key.text().as_ref()) {
            push_member(&mut out, key, value);
        }
        Ok(())
    })?;
    out.push_str(if out.is_empty() { "{}" } else { "}" });
    Ok(out)
}

/// Adds a member to an unfinished object.
fn push_member(out: &mut String, key: Key<'_>, value: &str) {
    out.push(if out.is_empty() { '{' } else { ',' });
    out.push('"');
    out.push_str(key.raw);
    out.push_str("\":");
    out.push_str(value);
}

/// The same text for all forms of a value: no whitespace, names sorted, the last of equal
/// names, escapes only where needed. Numbers keep their digits.
///
/// # Errors
/// If the limits of an event are exceeded.
pub fn canonical(json: &str) -> Result<String, Fault> {
    let mut out = String::with_capacity(json.len());
    push_canonical(&mut out, &mut Cursor::new(json, Limits::EVENT))?;
    Ok(out)
}

/// Recursive, but never deeper than the depth limit.
fn push_canonical(out: &mut String, cursor: &mut Cursor<'_>) -> Result<(), Fault> {
    match cursor.peek() {
        Some(b'{') => {
            let start = out.len();
            let mut members = Vec::new();
            cursor.object(|key, cursor| {
                let from = out.len();
                let name = key.text();
                push_string(out, &name);
                out.push(':');
                push_canonical(out, cursor)?;
                members.push((name, from..out.len()));
                Ok(())
            })?;
            // A stable sort, so that the last of equal names stays last.
            members.sort_by(|(left, _), (right, _)| left.cmp(right));
            let mut sorted = String::with_capacity(out.len() - start + 2);
            for (index, (name, range)) in members.iter().enumerate() {
                if members.get(index + 1).is_some_and(|(next, _)| next == name) {
                    continue;
                }
                sorted.push(if sorted.is_empty() { '{' } else { ',' });
                sorted.push_str(out.get(range.clone()).unwrap_or_default());
            }
            out.truncate(start);
            out.push_str(if sorted.is_empty() { "{" } else { &sorted });
            out.push('}');
            Ok(())
        }
        Some(b'[') => {
            out.push('[');
            let mut first = true;
            cursor.list(|cursor| {
                if !std::mem::take(&mut first) {
                    out.push(',');
                }
                push_canonical(out, cursor)
            })?;
            out.push(']');
            Ok(())
        }
        _ => {
            let value = cursor.value()?;
            match string(value) {
                Some(text) => push_string(out, &text),
                None => out.push_str(value),
            }
            Ok(())
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
