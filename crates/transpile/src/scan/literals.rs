//! Tokens whose content is not scanned: whitespace, comments, strings, the text of templates,
//! numbers and regular expressions.
//!
//! Each method moves the position from the first byte of a token to the byte after it. A
//! token without an end is a [`Fault`].

use super::Scan;
use super::levels::{Level, TEMPLATE_EXPRESSION};
use crate::error::Fault;

impl Scan<'_> {
    /// Skips whitespace and comments.
    pub(super) fn skip_space(&mut self) -> Result<(), Fault> {
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

    /// Skips the rest of a line, without its end.
    pub(super) fn skip_line(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.find(is_line_end).unwrap_or(rest.len());
    }

    /// Skips a string from its opening quote.
    pub(super) fn skip_string(&mut self, quote: u8) -> Result<(), Fault> {
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

    /// Skips the text of a template, up to its end or to its next expression. The position is
    /// after the opening backtick, or after the brace that closes an expression.
    pub(super) fn skip_template(&mut self) -> Result<(), Fault> {
        let start = self.at;
        loop {
            match self.bytes.get(self.at) {
                None => return Err(Fault::new("the template has no end", start)),
                Some(b'\\') => self.at += 2,
                Some(b'`') => {
                    self.at += 1;
                    self.finish_operand();
                    return Ok(());
                }
                Some(b'$') if self.peek(1) == b'{' => {
                    self.at += 2;
                    self.push_level(Level::new(TEMPLATE_EXPRESSION, false))?;
                    return Ok(());
                }
                Some(_) => self.at += 1,
            }
        }
    }

    /// Skips a number. A sign in an exponent is scanned as an operator, so that a chain
    /// appears longer than it is.
    pub(super) fn skip_number(&mut self) {
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

    /// Skips a regular expression from its first slash, with its flags.
    pub(super) fn skip_regex(&mut self) -> Result<(), Fault> {
        let start = self.at;
        self.at += 1;
        let mut is_in_class = false;
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
                '[' => is_in_class = true,
                ']' => is_in_class = false,
                '/' if !is_in_class => {
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

/// Whether a byte is part of a name, keyword or number. All bytes outside of ASCII are.
pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'#' | 0x80..)
}

/// Whether a character is whitespace within a line. Some of these characters are not allowed
/// in the language; the parser refuses them.
pub(super) fn is_space(character: char) -> bool {
    !is_line_end(character) && character.is_whitespace()
        || matches!(character, '\u{180e}' | '\u{200b}' | '\u{feff}')
}

pub(super) fn is_line_end(character: char) -> bool {
    matches!(character, '\n' | '\r' | '\u{2028}' | '\u{2029}')
}
