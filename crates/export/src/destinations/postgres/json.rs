//! JSON that databases accept: without NUL and unpaired surrogates, and with numbers in
//! the range of the database.
//!
//! What belongs here: which parts of a JSON text the database refuses. What does not:
//! finding them (`weir-json`), and whether a text fits into its column (`coerce`).

use std::borrow::Cow;

use weir_json::{Escape, Part, rewrite};

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
    let (mut without_nul, mut numbers_as_text) = (false, false);
    let cleaned = rewrite(json, |part| match part {
        Part::Escape(Escape::Char(_)) => None,
        Part::Escape(broken) => {
            without_nul = true;
            Some(if broken == Escape::Nul { "" } else { "\u{fffd}" }.into())
        }
        Part::Number(number) => (size(number) > digits_max).then(|| {
            numbers_as_text = true;
            format!("\"{number}\"").into()
        }),
    });
    let json = cleaned.map_or(Cow::Borrowed(json), Cow::Owned);
    Clean { json, without_nul, numbers_as_text }
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
