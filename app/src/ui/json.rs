//! Formats JSON texts for reading.

use std::borrow::Cow;

use weir_json::{Escape, Part, Token, Tokens, rewrite};

/// The JSON with line breaks and indentation, and with letters instead of their escapes:
/// `Bj\u00f8rn` becomes `Bjørn`. Invalid JSON, such as a truncated payload, is formatted
/// as far as possible.
pub(crate) fn pretty(json: &str) -> String {
    let json = written(json);
    let mut out = String::with_capacity(json.len() * 2);
    let mut depth = 0usize;
    let mut tokens = Tokens::of(json.as_bytes()).peekable();
    while let Some((token, at)) = tokens.next() {
        let text = json.get(at).unwrap_or_default();
        match token {
            Token::Mark(b'{' | b'[') => {
                out.push_str(text);
                let is_end = |next: &(Token, _)| matches!(next.0, Token::Mark(b'}' | b']'));
                if let Some((_, end)) = tokens.next_if(is_end) {
                    out.push_str(json.get(end).unwrap_or_default());
                } else {
                    depth += 1;
                    new_line(&mut out, depth);
                }
            }
            Token::Mark(b'}' | b']') => {
                depth = depth.saturating_sub(1);
                new_line(&mut out, depth);
                out.push_str(text);
            }
            Token::Mark(b',') => {
                out.push_str(text);
                new_line(&mut out, depth);
            }
            Token::Mark(b':') => out.push_str(": "),
            _ => out.push_str(text),
        }
    }
    out
}

/// The JSON with letters instead of their escapes.
pub(crate) fn written(json: &str) -> String {
    let written = rewrite(json, |part| match part {
        Part::Escape(Escape::Char(letter)) if is_shown(letter) => {
            Some(Cow::Owned(letter.to_string()))
        }
        _ => None,
    });
    written.unwrap_or_else(|| json.to_owned())
}

/// Whether a character may replace its escape: not one that ends a string or is invisible.
/// Those that change the writing direction or have no width can hide other text.
fn is_shown(letter: char) -> bool {
    let hides = matches!(
        letter,
        '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{2069}'
            | '\u{feff}'
    );
    !hides && !letter.is_control() && !matches!(letter, '"' | '\\' | '/')
}

fn new_line(out: &mut String, depth: usize) {
    out.push('\n');
    for _ in 0..depth {
        out.push_str("  ");
    }
}

#[cfg(test)]
mod tests {
    use super::pretty;

    #[test]
    fn layouts() {
        let cases = [
            (
                r#"{"a":1,"b":[true,null],"c":{},"d":[ ]}"#,
                "{\n  \"a\": 1,\n  \"b\": [\n    true,\n    null\n  ],\n  \"c\": {},\n  \"d\": []\n}",
            ),
            (r#"{"a":"x,{:\"}"}"#, "{\n  \"a\": \"x,{:\\\"}\"\n}"),
            (r#"{"a":"cut of"#, "{\n  \"a\": \"cut of"),
            ("}}", "\n}\n}"),
            ("", ""),
        ];
        for (json, expected) in cases {
            assert_eq!(pretty(json), expected, "{json}");
        }
    }

    #[test]
    fn escapes_become_letters() {
        for (json, expected) in [
            (r#""Bj\u00f8rn \u00D8""#, r#""Bjørn Ø""#),
            (r#"{"\u540d":"\ud83c\udf75"}"#, "{\n  \"名\": \"🍵\"\n}"),
            // Escapes of string ends, invisible characters and lone surrogates stay.
            (
                r#""\u0022 \u005c \u000a \u202e \ud83c \ud83cx \udf75""#,
                r#""\u0022 \u005c \u000a \u202e \ud83c \ud83cx \udf75""#,
            ),
            (r#""\\u00f8 \n \" \u00""#, r#""\\u00f8 \n \" \u00""#),
            (r#""cut \u00f"#, r#""cut \u00f"#),
        ] {
            assert_eq!(pretty(json), expected, "{json}");
        }
        assert_eq!(super::written(r#"{"a": ["\u00f8"]}"#), r#"{"a": ["ø"]}"#);
    }

    #[test]
    fn formatting_twice_changes_nothing() {
        let once = pretty(r#"{"a":[1,{"b":"c"}]}"#);
        assert_eq!(pretty(&once), once);
    }
}
