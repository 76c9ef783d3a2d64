//! Formats JSON texts for reading.

/// The JSON with line breaks and indentation, and with letters instead of their escapes:
/// `Bj\u00f8rn` becomes `Bjørn`. Invalid JSON, such as a truncated payload, is formatted
/// as far as possible.
pub(crate) fn pretty(json: &str) -> String {
    let mut out = String::with_capacity(json.len() * 2);
    let mut depth = 0usize;
    let mut chars = json.trim().chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' => {
                out.push(c);
                copy_text(&mut chars, &mut out);
            }
            '{' | '[' => {
                out.push(c);
                skip_blanks(&mut chars);
                if let Some(end) = chars.next_if(|next| matches!(next, '}' | ']')) {
                    out.push(end);
                } else {
                    depth += 1;
                    new_line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                new_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            c if c.is_ascii_whitespace() => {}
            c => out.push(c),
        }
    }
    out
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// The JSON with letters instead of their escapes.
#[cfg(feature = "ssr")]
pub(crate) fn written(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut chars = json.chars().peekable();
    while let Some(c) = chars.next() {
        out.push(c);
        if c == '"' {
            copy_text(&mut chars, &mut out);
        }
    }
    out
}

/// Copies the rest of a JSON string, including its closing quotation mark.
fn copy_text(chars: &mut Chars<'_>, out: &mut String) {
    while let Some(c) = chars.next() {
        match c {
            '"' => {
                out.push(c);
                return;
            }
            '\\' => match letter(chars) {
                Some(letter) => out.push(letter),
                None => {
                    out.push(c);
                    out.extend(chars.next());
                }
            },
            _ => out.push(c),
        }
    }
}

/// The character of an escape, if it is safe to show: not a character that ends a string
/// or is invisible.
fn letter(chars: &mut Chars<'_>) -> Option<char> {
    let mut ahead = chars.clone();
    let first = unit(&mut ahead)?;
    let code = match first {
        0xd800..0xdc00 => {
            let is_pair = ahead.next() == Some('\\');
            let second =
                unit(&mut ahead).filter(|low| is_pair && (0xdc00..0xe000).contains(low))?;
            0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00)
        }
        _ => first,
    };
    // Characters that change the writing direction or have no width can hide other text.
    let hides = matches!(code, 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x2069 | 0xfeff);
    let letter = char::from_u32(code).filter(|c| !c.is_control() && !matches!(c, '"' | '\\'));
    let letter = letter.filter(|_| !hides)?;
    *chars = ahead;
    Some(letter)
}

/// The code of a `u` escape with four digits.
fn unit(chars: &mut Chars<'_>) -> Option<u32> {
    chars.next_if_eq(&'u')?;
    let mut code = 0;
    for _ in 0..4 {
        code = code * 16 + chars.next()?.to_digit(16)?;
    }
    Some(code)
}

fn skip_blanks(chars: &mut Chars<'_>) {
    while chars.next_if(char::is_ascii_whitespace).is_some() {}
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
        #[cfg(feature = "ssr")]
        assert_eq!(super::written(r#"{"a": ["\u00f8"]}"#), r#"{"a": ["ø"]}"#);
    }

    #[test]
    fn formatting_twice_changes_nothing() {
        let once = pretty(r#"{"a":[1,{"b":"c"}]}"#);
        assert_eq!(pretty(&once), once);
    }
}
