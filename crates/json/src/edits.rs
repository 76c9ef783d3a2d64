//! Replacing parts of JSON text: all other bytes stay as they are.

use std::borrow::Cow;
use std::ops::Range;

use crate::escape::Escapes;
use crate::{Escape, Token, Tokens, quoted, string};

/// Replacements in a text, from its start to its end.
#[derive(Debug)]
pub struct Edits<'a> {
    text: &'a str,
    out: String,
    /// The end of the last replaced range.
    copied: usize,
}

impl<'a> Edits<'a> {
    /// A text without replacements.
    pub const fn of(text: &'a str) -> Self {
        Self { text, out: String::new(), copied: 0 }
    }

    /// Replaces a range, unless it begins before the end of one that was replaced.
    pub fn replace(&mut self, range: Range<usize>, with: &str) {
        if let Some(before) = self.text.get(self.copied..range.start) {
            self.out.push_str(before);
            self.out.push_str(with);
            self.copied = range.end;
        }
    }

    /// The text with its replacements; `None` if there are none.
    pub fn finish(mut self) -> Option<String> {
        if self.copied == 0 {
            return None;
        }
        self.out.push_str(self.text.get(self.copied..)?);
        Some(self.out)
    }
}

/// Replaces escapes of NUL and of single surrogates by U+FFFD.
pub fn repair(json: &str) -> Cow<'_, str> {
    let repaired = replace_escapes(json, |escape| escape.needs_repair().then_some("\u{fffd}"));
    repaired.map_or(Cow::Borrowed(json), Cow::Owned)
}

/// Replaces escapes for which `change` returns a text, which may be an escape. `None` if
/// there is no replacement.
pub fn replace_escapes(
    json: &str,
    mut change: impl FnMut(Escape) -> Option<&'static str>,
) -> Option<String> {
    let mut edits = Edits::of(json);
    for (escape, range) in Escapes::of(json) {
        if let Some(with) = change(escape) {
            edits.replace(range, with);
        }
    }
    edits.finish()
}

/// A part of JSON text that [`rewrite`] may replace.
#[derive(Debug)]
pub enum Part<'a> {
    /// An escape in a string or in a name.
    Escape(Escape),
    /// A number.
    Number(&'a str),
}

/// Replaces the escapes and numbers for which `change` returns a text, in one pass. `None`
/// if there is no replacement.
pub fn rewrite(
    json: &str,
    mut change: impl FnMut(Part<'_>) -> Option<Cow<'static, str>>,
) -> Option<String> {
    let mut edits = Edits::of(json);
    for (token, range) in Tokens::of(json.as_bytes()) {
        let text = json.get(range.clone()).unwrap_or_default();
        match token {
            Token::String => {
                for (escape, inner) in Escapes::of(text) {
                    if let Some(with) = change(Part::Escape(escape)) {
                        edits.replace(range.start + inner.start..range.start + inner.end, &with);
                    }
                }
            }
            Token::Number => {
                if let Some(with) = change(Part::Number(text)) {
                    edits.replace(range, &with);
                }
            }
            Token::Mark(_) | Token::Word => {}
        }
    }
    edits.finish()
}

/// Replaces the strings for which `change` returns another text; names stay. `None` if
/// there is no replacement.
pub fn replace_strings(
    json: &str,
    change: &mut dyn FnMut(&str) -> Option<String>,
) -> Option<String> {
    let mut edits = Edits::of(json);
    let mut tokens = Tokens::of(json.as_bytes()).peekable();
    while let Some((token, range)) = tokens.next() {
        let is_name = matches!(tokens.peek(), Some((Token::Mark(b':'), _)));
        if token != Token::String || is_name {
            continue;
        }
        let text = string(json.get(range.clone())?)?;
        if let Some(other) = change(&text).filter(|other| *other != text) {
            edits.replace(range, &quoted(&other));
        }
    }
    edits.finish()
}
