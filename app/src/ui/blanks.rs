//! Blanks in a JSON text: a string such as `"{name}"` stands for the value of a
//! form's field. The server writes them, scripts fill them in.
//!
//! A word after the name says what the text of the field becomes: `"{name:optional}"`
//! is `null` when it is empty, `"{name:time}"` too, `"{name:list}"` a list of its lines or
//! `null`,
//! `"{name:object}"` the JSON object that it holds, and `"{name:secret}"` never more
//! than three dots in its place.

/// What a field's text becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum As {
    /// A text.
    Text,
    /// A text; empty: `null`.
    Optional,
    /// A point in time; empty: `null`.
    Time,
    /// A list of the lines that are not empty; none: `null`.
    List,
    /// The JSON object; empty: one with nothing in it.
    Object,
    /// Dots in the place of a text that is not shown; empty: `null`.
    Secret,
}

/// The text with every blank that `value` knows replaced by what it gives for the
/// field's name.
pub(crate) fn fill(text: &str, mut value: impl FnMut(&str, As) -> Option<String>) -> String {
    const START: &str = "\"{";
    const END: &str = "}\"";
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(START) {
        let (before, found) = rest.split_at(at);
        filled.push_str(before);
        let inside = &found[START.len()..];
        let blank = inside.find(END).map(|end| &inside[..end]);
        let known = blank.and_then(|blank| {
            let (name, kind) = parts(blank)?;
            Some((blank, value(name, kind)?))
        });
        let passed = match known {
            Some((blank, value)) => {
                filled.push_str(&value);
                START.len() + blank.len() + END.len()
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

/// The name of the field and what its text becomes; anything else in braces is a value.
fn parts(blank: &str) -> Option<(&str, As)> {
    let (name, kind) = match blank.split_once(':') {
        None => (blank, As::Text),
        Some((name, "optional")) => (name, As::Optional),
        Some((name, "time")) => (name, As::Time),
        Some((name, "list")) => (name, As::List),
        Some((name, "object")) => (name, As::Object),
        Some((name, "secret")) => (name, As::Secret),
        Some(_) => return None,
    };
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'[' | b']');
    (!name.is_empty() && name.bytes().all(fits)).then_some((name, kind))
}

#[cfg(test)]
mod tests {
    use super::{As, fill};

    #[test]
    fn blanks_are_filled_in() {
        let known = |name: &str, kind| match (name, kind) {
            ("name", As::Text) => Some("\"Ada\"".to_owned()),
            ("name", As::Optional) => Some("null".to_owned()),
            ("config[n]", As::Text) => Some("5".to_owned()),
            ("config[n]", As::List) => Some("[5]".to_owned()),
            _ => None,
        };
        for (text, expected) in [
            ("", ""),
            (r#"{"name": "{name}", "n": "{config[n]}"}"#, r#"{"name": "Ada", "n": 5}"#),
            (r#"["{config[n]:list}", "{name:optional}"]"#, "[[5], null]"),
            (r#"["{name:object}", "{name:no}"]"#, r#"["{name:object}", "{name:no}"]"#),
            (r#"["{other}", "{name}"]"#, r#"["{other}", "Ada"]"#),
            (r#"{"a": "{not a name}"}"#, r#"{"a": "{not a name}"}"#),
            (r#""{name"#, r#""{name"#),
            (r#""{}" "{name}""#, r#""{}" "Ada""#),
        ] {
            assert_eq!(fill(text, known), expected, "{text}");
        }
    }
}
