//! JSON that databases accept: without NUL and unpaired surrogates, and with numbers in
//! the range of the database.
//!
//! What belongs here: the text of JSON. What does not: whether it fits into its column
//! (`coerce`).

use std::borrow::Cow;

/// JSON for a database, and how it was altered.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Clean<'a> {
    pub(crate) json: Cow<'a, str>,
    /// A NUL, or an unpaired surrogate, was removed from a text.
    pub(crate) without_nul: bool,
    /// A number became a text with its digits.
    pub(crate) numbers_as_text: bool,
}

/// Cleans JSON. A number may have up to `digits_max` digits when it is written without an
/// exponent.
pub(crate) fn clean(json: &str, digits_max: usize) -> Clean<'_> {
    let mut clean = Rewriting { json, out: String::new(), copied: 0, at: 0 };
    let (mut without_nul, mut numbers_as_text) = (false, false);
    let mut in_text = false;
    while let Some(byte) = clean.peek(0) {
        match byte {
            b'\\' if in_text => without_nul |= clean.escape(),
            b'"' => {
                in_text = !in_text;
                clean.at += 1;
            }
            b'-' | b'0'..=b'9' if !in_text => numbers_as_text |= clean.number(digits_max),
            _ => clean.at += 1,
        }
    }
    Clean { json: clean.whole(), without_nul, numbers_as_text }
}

struct Rewriting<'a> {
    json: &'a str,
    out: String,
    /// The end of the text that was copied to `out`.
    copied: usize,
    at: usize,
}

impl<'a> Rewriting<'a> {
    fn peek(&self, ahead: usize) -> Option<u8> {
        self.json.as_bytes().get(self.at + ahead).copied()
    }

    /// Replaces the next bytes.
    fn replace(&mut self, bytes: usize, with: &str) {
        self.out.push_str(self.json.get(self.copied..self.at).unwrap_or_default());
        self.out.push_str(with);
        self.at += bytes;
        self.copied = self.at;
    }

    fn whole(mut self) -> Cow<'a, str> {
        if self.copied == 0 {
            return Cow::Borrowed(self.json);
        }
        self.out.push_str(self.json.get(self.copied..).unwrap_or_default());
        Cow::Owned(self.out)
    }

    /// Passes an escape or removes it. Returns whether it was removed.
    fn escape(&mut self) -> bool {
        match self.unit(0) {
            None => {
                self.at += 2;
                return false;
            }
            Some(0) => self.replace(6, ""),
            Some(0xd800..=0xdbff) => match self.unit(6) {
                Some(0xdc00..=0xdfff) => {
                    self.at += 12;
                    return false;
                }
                _ => self.replace(6, "\u{fffd}"),
            },
            Some(0xdc00..=0xdfff) => self.replace(6, "\u{fffd}"),
            Some(_) => {
                self.at += 6;
                return false;
            }
        }
        true
    }

    /// The UTF-16 unit of a `\u` escape.
    fn unit(&self, ahead: usize) -> Option<u32> {
        let from = self.at + ahead;
        let digits = self.json.get(from..from + 6)?.strip_prefix("\\u")?;
        u32::from_str_radix(digits, 16).ok()
    }

    /// Passes a number or makes it a text. Returns whether it became a text.
    fn number(&mut self, digits_max: usize) -> bool {
        let rest = self.json.get(self.at..).unwrap_or_default();
        let is_number = |c: char| matches!(c, '0'..='9' | '-' | '+' | '.' | 'e' | 'E');
        let length = rest.find(|c| !is_number(c)).unwrap_or(rest.len());
        let number = rest.get(..length).unwrap_or_default();
        if size(number) <= digits_max {
            self.at += length;
            return false;
        }
        self.replace(length, &format!("\"{number}\""));
        true
    }
}

/// The number of digits of a number when it is written without an exponent.
fn size(number: &str) -> usize {
    let Some((digits, exponent)) = number.split_once(['e', 'E']) else {
        return number.len();
    };
    let exponent: Option<i64> = exponent.parse().ok();
    let exponent = exponent.and_then(|exponent| usize::try_from(exponent.unsigned_abs()).ok());
    digits.len().saturating_add(exponent.unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cleaned(json: &str) -> (String, bool, bool) {
        let clean = clean(json, 20);
        (clean.json.into_owned(), clean.without_nul, clean.numbers_as_text)
    }

    #[test]
    fn what_is_good_stays_as_it_is() {
        for json in [
            "{}",
            r#"{"n": 9007199254740993, "f": -1.5e3, "t": "a\\u0000 \ud83d\ude00 \n \" 1e999"}"#,
            r#"["\\", "\\\\u0000", null, true, [[]]]"#,
        ] {
            assert_eq!(clean(json, 20).json, Cow::Borrowed(json), "{json}");
            assert_eq!(cleaned(json), (json.to_owned(), false, false));
        }
    }

    #[test]
    fn nul_and_halves_of_pairs_are_taken_out() {
        for (json, expected) in [
            (r#"{"a\u0000b": "\u0000"}"#, r#"{"ab": ""}"#),
            (r#""\\\u0000x""#, r#""\\x""#),
            (r#""\ud83d""#, "\"\u{fffd}\""),
            (r#""\ude00\ud83d\u0041""#, "\"\u{fffd}\u{fffd}\\u0041\""),
            (r#""\ud83d\ud83d\ude00""#, "\"\u{fffd}\\ud83d\\ude00\""),
        ] {
            assert_eq!(cleaned(json), (expected.to_owned(), true, false), "{json}");
            assert!(serde_json::from_str::<serde_json::Value>(expected).is_ok());
        }
    }

    #[test]
    fn numbers_beyond_bounds_become_texts() {
        for (json, expected) in [
            (r#"{"a": 1e400, "b": 1}"#, r#"{"a": "1e400", "b": 1}"#),
            ("[-1E-99999999999999999999]", r#"["-1E-99999999999999999999"]"#),
            ("123456789012345678901", r#""123456789012345678901""#),
        ] {
            assert_eq!(cleaned(json), (expected.to_owned(), false, true), "{json}");
        }
    }

    #[test]
    fn what_is_no_json_is_passed_without_a_panic() {
        for text in
            ["\"", "\\", "\"\\", "\"\\u", "\"\\u00", "\"\\ud83d\\u", "-", "é\\uü", "\"é\\ué"]
        {
            let _ = clean(text, 3);
        }
    }
}
