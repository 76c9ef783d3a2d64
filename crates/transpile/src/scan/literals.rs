//! Tokens that are skipped as a whole: whitespace, comments, strings, templates, numbers
//! and regular expressions.

use super::Scan;
use super::levels::Level;
use crate::error::Fault;

impl Scan<'_> {
    /// Skips whitespace and comments.
    pub(super) fn space(&mut self) -> Result<(), Fault> {
        loop {
            let rest = &self.text[self.at..];
            let Some(next) = rest.chars().next() else { return Ok(()) };
            if is_line_end(next) {
                self.new_line = true;
                self.at += next.len_utf8();
            } else if is_space(next) {
                self.at += next.len_utf8();
            } else if rest.starts_with("//") {
                self.skip_line();
            } else if let Some(comment) = rest.strip_prefix("/*") {
                let end = comment.find("*/").map(|end| end + 4);
                let end = end.ok_or_else(|| Fault::new("the comment has no end", self.at))?;
                self.new_line |= rest[..end].contains(is_line_end);
                self.at += end;
            } else {
                return Ok(());
            }
        }
    }

    pub(super) fn skip_line(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.find(is_line_end).unwrap_or(rest.len());
    }

    pub(super) fn string(&mut self, quote: u8) -> Result<(), Fault> {
        let start = self.at;
        self.at += 1;
        loop {
            match self.bytes.get(self.at) {
                Some(b'\\') => {
                    // An escaped line end may be two bytes.
                    self.at += if self.peek(1) == b'\r' && self.peek(2) == b'\n' { 3 } else { 2 };
                }
                Some(byte) if *byte == quote => {
                    self.at += 1;
                    return Ok(());
                }
                None | Some(b'\n' | b'\r') => {
                    return Err(Fault::new("the string has no end", start));
                }
                Some(_) => self.at += 1,
            }
        }
    }

    /// Scans a template up to its end or to its next expression.
    pub(super) fn template(&mut self) -> Result<(), Fault> {
        let start = self.at;
        loop {
            match self.bytes.get(self.at) {
                None => return Err(Fault::new("the template has no end", start)),
                Some(b'\\') => self.at += 2,
                Some(b'`') => {
                    self.at += 1;
                    self.operand();
                    return Ok(());
                }
                Some(b'$') if self.peek(1) == b'{' => {
                    self.at += 2;
                    // With a separate closing character: after it, the template
                    // continues.
                    self.push(Level::new(b'`', false))?;
                    return Ok(());
                }
                Some(_) => self.at += 1,
            }
        }
    }

    pub(super) fn number(&mut self) {
        while is_word(self.peek(0)) {
            self.at += 1;
        }
        // At most one dot: a second one is a property access.
        if self.peek(0) == b'.' {
            self.at += 1;
            while is_word(self.peek(0)) {
                self.at += 1;
            }
        }
    }

    pub(super) fn regex(&mut self) -> Result<(), Fault> {
        let start = self.at;
        self.at += 1;
        let mut class = false;
        loop {
            let Some(next) = self.text[self.at..].chars().next() else {
                return Err(Fault::new("the regular expression has no end", start));
            };
            match next {
                _ if is_line_end(next) => {
                    return Err(Fault::new("the regular expression has no end", start));
                }
                '\\' => {
                    self.at += 1;
                    match self.text[self.at..].chars().next() {
                        Some(escaped) if !is_line_end(escaped) => self.at += escaped.len_utf8(),
                        _ => {}
                    }
                    continue;
                }
                '[' => class = true,
                ']' => class = false,
                '/' if !class => {
                    self.at += 1;
                    while is_word(self.peek(0)) {
                        self.at += 1;
                    }
                    return Ok(());
                }
                _ => {}
            }
            self.at += next.len_utf8();
        }
    }
}

/// Bytes of names. All bytes outside of ASCII count as such.
pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'#' | 0x80..)
}

/// Whitespace within a line. Also characters that the language does not allow; the parser
/// refuses them.
pub(super) fn is_space(character: char) -> bool {
    !is_line_end(character) && character.is_whitespace()
        || matches!(character, '\u{180e}' | '\u{200b}' | '\u{feff}')
}

pub(super) fn is_line_end(character: char) -> bool {
    matches!(character, '\n' | '\r' | '\u{2028}' | '\u{2029}')
}
