//! JSON texts, laid out for reading.

/// The same JSON with line breaks and indentation. What is not JSON, such as a
/// payload that was cut, comes out as far as it can be told apart.
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

/// The rest of a text, up to and with its quotation mark.
fn copy_text(chars: &mut Chars<'_>, out: &mut String) {
    while let Some(c) = chars.next() {
        out.push(c);
        match c {
            '"' => return,
            '\\' => out.extend(chars.next()),
            _ => {}
        }
    }
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
    fn laying_out_twice_changes_nothing() {
        let once = pretty(r#"{"a":[1,{"b":"c"}]}"#);
        assert_eq!(pretty(&once), once);
    }
}
