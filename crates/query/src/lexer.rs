//! From the text of a query to its tokens.

use super::error::{Position, QueryError};

/// A token with its position in the text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    /// First byte.
    pub(super) start: usize,
    /// Byte after the last one.
    pub(super) end: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum TokenKind {
    /// A word: a name or a keyword.
    Word(String),
    /// A quoted name: never a keyword.
    Quoted(String),
    /// A text in single quotes.
    Text(String),
    Integer(i64),
    Float(f64),
    /// A sign such as `<=`.
    Sign(&'static str),
    End,
}

/// Longest first, so that `<=` is not read as `<`.
const SIGNS: [&str; 23] = [
    "<=", ">=", "!=", "<>", "==", "||", "::", "(", ")", "[", "]", "{", "}", ",", ".", ";", "*",
    "=", "<", ">", "+", "-", "%",
];
const DIVIDE: &str = "/";

/// The tokens of a text, `End` last.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, QueryError> {
    let mut lexer = Lexer { text, at: 0 };
    let mut tokens = Vec::new();
    loop {
        lexer.skip_blanks()?;
        let start = lexer.at;
        let kind = lexer.next()?;
        let is_end = kind == TokenKind::End;
        tokens.push(Token { kind, start, end: lexer.at });
        if is_end {
            return Ok(tokens);
        }
    }
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn fault(&self, at: usize, detail: impl Into<String>) -> QueryError {
        QueryError { detail: detail.into(), position: Position::of(self.text, at) }
    }

    /// Skips whitespace and comments.
    fn skip_blanks(&mut self) -> Result<(), QueryError> {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start();
            self.at += rest.len() - trimmed.len();
            if trimmed.starts_with("--") {
                self.at += trimmed.find('\n').unwrap_or(trimmed.len());
            } else if trimmed.starts_with("/*") {
                let Some(end) = trimmed.find("*/") else {
                    return Err(self.fault(self.at, "The comment does not end"));
                };
                self.at += end + 2;
            } else {
                return Ok(());
            }
        }
    }

    fn next(&mut self) -> Result<TokenKind, QueryError> {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return Ok(TokenKind::End) };
        if is_word_start(first) {
            let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            self.at += end;
            return Ok(TokenKind::Word(rest.get(..end).unwrap_or_default().to_owned()));
        }
        match first {
            '\'' => self.quoted(first).map(TokenKind::Text),
            '`' | '"' => self.quoted(first).map(TokenKind::Quoted),
            '0'..='9' => self.number(),
            _ => {
                let sign = SIGNS.into_iter().chain([DIVIDE]).find(|sign| rest.starts_with(sign));
                let Some(sign) = sign else {
                    return Err(self.fault(self.at, format!("Unexpected character `{first}`")));
                };
                self.at += sign.len();
                Ok(TokenKind::Sign(sign))
            }
        }
    }

    /// A quoted text. The quote is doubled or escaped by a backslash.
    fn quoted(&mut self, mark: char) -> Result<String, QueryError> {
        let start = self.at;
        let mut text = String::new();
        let mut chars = self.rest().char_indices().skip(1).peekable();
        while let Some((at, c)) = chars.next() {
            if c == mark {
                match chars.peek() {
                    Some((_, next)) if *next == mark => {
                        chars.next();
                        text.push(mark);
                    }
                    _ => {
                        self.at = start + at + mark.len_utf8();
                        return Ok(text);
                    }
                }
            } else if c == '\\' {
                let Some((_, escaped)) = chars.next() else { break };
                text.push(match escaped {
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    '0' => return Err(self.fault(start + at, "Null characters are not allowed")),
                    other => other,
                });
            } else if c == '\0' {
                return Err(self.fault(start + at, "Null characters are not allowed"));
            } else {
                text.push(c);
            }
        }
        Err(self.fault(start, "The quotation does not end"))
    }

    fn number(&mut self) -> Result<TokenKind, QueryError> {
        let start = self.at;
        let rest = self.rest();
        let mut end = digits(rest, 0);
        let mut is_float = false;
        if rest.get(end..).is_some_and(|rest| rest.starts_with('.')) {
            let after = digits(rest, end + 1);
            if after > end + 1 {
                (end, is_float) = (after, true);
            }
        }
        let exponent = rest.get(end..).unwrap_or_default();
        if exponent.starts_with(['e', 'E']) {
            let signed = if exponent.get(1..).is_some_and(|rest| rest.starts_with(['+', '-'])) {
                2
            } else {
                1
            };
            let after = digits(rest, end + signed);
            if after > end + signed {
                (end, is_float) = (after, true);
            }
        }
        if rest.get(end..).is_some_and(|rest| rest.starts_with(is_word)) {
            return Err(self.fault(start + end, "A number cannot be followed by letters"));
        }
        self.at += end;
        let written = rest.get(..end).unwrap_or_default();
        let too_large = || self.fault(start, "The number is too large");
        if is_float {
            let number: f64 = written.parse().map_err(|_| too_large())?;
            return if number.is_finite() {
                Ok(TokenKind::Float(number))
            } else {
                Err(too_large())
            };
        }
        written.parse().map(TokenKind::Integer).map_err(|_| too_large())
    }
}

/// The end of the digits that begin at a byte.
fn digits(text: &str, from: usize) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    from + rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len())
}

/// Names of properties may begin with `$`.
pub(super) fn is_word_start(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_' || c == '$'
}

pub(super) fn is_word(c: char) -> bool {
    is_word_start(c) || c.is_ascii_digit()
}
