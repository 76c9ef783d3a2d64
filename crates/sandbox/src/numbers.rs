//! Restores numbers with more digits than JavaScript keeps. If a script left a number
//! unchanged, it gets its original digits back (ADR 9).
//!
//! "Unchanged" means: the same path still has the value that the original rounds to.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

use weir_json::{Edits, Token, Tokens};

/// Numbers with at most this many significant digits are never rounded.
const SAFE_DIGITS: usize = 15;

/// `made` with the digits of `original`; `None` if there is nothing to restore.
pub(crate) fn restore(original: &str, made: &str) -> Option<String> {
    if !has_long_digits(original.as_bytes()) {
        return None;
    }
    let mut long: HashMap<u64, &str> = HashMap::new();
    each_number(original, |place, at| {
        let text = &original[at];
        if has_long_digits(text.as_bytes()) {
            long.insert(place, text);
        }
    });
    let mut edits = Edits::of(made);
    each_number(made, |place, at| {
        let now = &made[at.clone()];
        if let Some(text) = long.get(&place)
            && *text != now
            && rounded(text) == rounded(now)
        {
            edits.replace(at, text);
        }
    });
    edits.finish()
}

/// Whether there is a sequence of too many digits, with at most points between them.
/// Digits in texts count too: this is only a quick check. Such a sequence is longer than
/// the steps of the search.
fn has_long_digits(text: &[u8]) -> bool {
    let is_of_row = |byte: u8| matches!(byte, b'0'..=b'9' | b'.');
    let mut at = SAFE_DIGITS;
    while let Some(byte) = text.get(at) {
        if is_of_row(*byte) {
            let (before, after) = text.split_at(at);
            let start = at - before.iter().rev().take_while(|byte| is_of_row(**byte)).count();
            at += after.iter().take_while(|byte| is_of_row(**byte)).count();
            let row = &text[start..at];
            if row.iter().filter(|byte| byte.is_ascii_digit()).count() > SAFE_DIGITS {
                return true;
            }
        }
        at += SAFE_DIGITS + 1;
    }
    false
}

fn rounded(text: &str) -> Option<u64> {
    text.parse::<f64>().ok().map(f64::to_bits)
}

/// Calls `found` for each number of valid JSON, with a hash of its path and its range.
fn each_number(text: &str, mut found: impl FnMut(u64, Range<usize>)) {
    // For each open bracket: the hash of its path, and what comes next in it.
    let mut open: Vec<(u64, Next)> = Vec::new();
    for (token, at) in Tokens::of(text.as_bytes()) {
        match token {
            Token::Mark(b'{') => open.push((place(&open), Next::Key)),
            Token::Mark(b'[') => open.push((place(&open), Next::Element(0))),
            Token::Mark(b'}' | b']') => {
                open.pop();
            }
            Token::Mark(b',') => match open.last_mut() {
                Some((_, Next::Element(index))) => *index += 1,
                Some((_, next)) => *next = Next::Key,
                None => {}
            },
            Token::String => {
                if let Some((_, next @ Next::Key)) = open.last_mut() {
                    *next = Next::Value(marked(&text[at]));
                }
            }
            Token::Number => found(place(&open), at),
            Token::Mark(_) | Token::Word => {}
        }
    }
}

enum Next {
    Key,
    Value(u64),
    Element(usize),
}

fn place(open: &[(u64, Next)]) -> u64 {
    open.last().map_or(0, |(above, next)| match next {
        Next::Key => *above,
        Next::Value(key) => marked(&(above, key)),
        Next::Element(index) => marked(&(above, index)),
    })
}

fn marked<T: Hash + ?Sized>(value: &T) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::{SAFE_DIGITS, has_long_digits, restore};

    #[test]
    fn digits_come_back_where_the_value_was_left_alone() {
        let original =
            r#"{"a":12345678901234567890,"b":[1,0.12345678901234567890],"c":9007199254740993}"#;
        let made =
            r#"{"c":9007199254740992,"b":[1,0.12345678901234568],"a":12345678901234567000,"n":1}"#;
        assert_eq!(
            restore(original, made).as_deref(),
            Some(
                r#"{"c":9007199254740993,"b":[1,0.12345678901234567890],"a":12345678901234567890,"n":1}"#
            )
        );
    }

    #[test]
    fn what_a_script_wrote_stays() {
        let original = r#"{"a":12345678901234567890,"b":"12345678901234567890"}"#;
        for made in [
            r#"{"a":12345678901234570000,"b":1}"#,
            r#"{"b":12345678901234567000}"#,
            r#"{"x":{"a":12345678901234567000}}"#,
            r#"{"a":"12345678901234567000"}"#,
            r#"{"a":[12345678901234567000]}"#,
        ] {
            assert_eq!(restore(original, made), None, "{made}");
        }
    }

    #[test]
    fn long_rows_are_found_wherever_they_stand() {
        // The result of counting byte by byte.
        let counted = |text: &str| {
            let rows = text.split(|c: char| !c.is_ascii_digit() && c != '.');
            rows.map(|row| row.replace('.', "").len()).any(|digits| digits > SAFE_DIGITS)
        };
        for before in 0..40 {
            for row in ["1".repeat(15), "1".repeat(16), "1".repeat(40), ".".repeat(40)] {
                for row in [row.clone(), format!("1.{row}"), format!("1 {row}.1")] {
                    for after in ["", "x", &" ".repeat(20), &format!(" {row}")] {
                        let text = format!("{}{row}{after}", "a".repeat(before));
                        assert_eq!(has_long_digits(text.as_bytes()), counted(&text), "{text}");
                    }
                }
            }
        }
    }

    #[test]
    fn short_numbers_are_not_checked() {
        assert_eq!(restore(r#"{"a":1.50}"#, r#"{"a":1.5}"#), None);
    }
}
