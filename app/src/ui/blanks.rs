//! Blanks in a JSON text: a string such as `"{name}"` stands for the value of a
//! form's field. The server writes them, scripts fill them in.

/// The text with every blank that `value` knows replaced by what it gives for the
/// field's name.
pub(crate) fn fill(text: &str, mut value: impl FnMut(&str) -> Option<String>) -> String {
    const START: &str = "\"{";
    const END: &str = "}\"";
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(START) {
        let (before, found) = rest.split_at(at);
        filled.push_str(before);
        let inside = &found[START.len()..];
        let name = inside.find(END).map(|end| &inside[..end]).filter(|name| is_name(name));
        let known = name.and_then(|name| Some((name, value(name)?)));
        let passed = match known {
            Some((name, value)) => {
                filled.push_str(&value);
                START.len() + name.len() + END.len()
            }
            None => {
                filled.push_str(START);
                START.len()
            }
        };
        rest = &found[passed..];
    }
    filled.push_str(rest);
    filled
}

/// What fields are called; anything else in braces is a value.
fn is_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'[' | b']');
    !name.is_empty() && name.bytes().all(fits)
}

#[cfg(test)]
mod tests {
    use super::fill;

    #[test]
    fn blanks_are_filled_in() {
        let known = |name: &str| match name {
            "name" => Some("\"Ada\"".to_owned()),
            "config[n]" => Some("5".to_owned()),
            _ => None,
        };
        for (text, expected) in [
            ("", ""),
            (r#"{"name": "{name}", "n": "{config[n]}"}"#, r#"{"name": "Ada", "n": 5}"#),
            (r#"["{other}", "{name}"]"#, r#"["{other}", "Ada"]"#),
            (r#"{"a": "{not a name}"}"#, r#"{"a": "{not a name}"}"#),
            (r#""{name"#, r#""{name"#),
            (r#""{}" "{name}""#, r#""{}" "Ada""#),
        ] {
            assert_eq!(fill(text, known), expected, "{text}");
        }
    }
}
