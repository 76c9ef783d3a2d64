//! Blanks in a JSON text: a string such as `"{name}"` stands for the value of a form
//! field. The server writes them, and scripts fill them in.
//!
//! A word after the name defines the conversion of the field's text: `"{name:optional}"`
//! and `"{name:time}"` are `null` when the field is empty, `"{name:list}"` is a list of
//! its lines or `null`, `"{name:object}"` is the JSON object in the field, and
//! `"{name:secret}"` is three dots instead of the value.

/// The conversion of a field's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Conversion {
    Text,
    /// A text. Empty: `null`.
    Optional,
    /// A time. Empty: `null`.
    Time,
    /// A list of the lines that are not empty. No lines: `null`.
    List,
    /// A JSON object. Empty: an object without members.
    Object,
    /// Dots instead of a secret text. Empty: `null`.
    Secret,
}

/// Replaces the blanks in a text. `value` returns the value for a field name; blanks for
/// which it returns `None` stay.
pub(crate) fn fill(
    text: &str,
    mut value: impl FnMut(&str, Conversion) -> Option<String>,
) -> String {
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

/// The field name and the conversion of a blank. `None`: the braces are ordinary text.
fn parts(blank: &str) -> Option<(&str, Conversion)> {
    let (name, kind) = match blank.split_once(':') {
        None => (blank, Conversion::Text),
        Some((name, "optional")) => (name, Conversion::Optional),
        Some((name, "time")) => (name, Conversion::Time),
        Some((name, "list")) => (name, Conversion::List),
        Some((name, "object")) => (name, Conversion::Object),
        Some((name, "secret")) => (name, Conversion::Secret),
        Some(_) => return None,
    };
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'[' | b']');
    (!name.is_empty() && name.bytes().all(fits)).then_some((name, kind))
}

#[cfg(test)]
mod tests {
    use super::{Conversion, fill};

    #[test]
    fn blanks_are_filled_in() {
        let known = |name: &str, kind| match (name, kind) {
            ("name", Conversion::Text) => Some("\"Ada\"".to_owned()),
            ("name", Conversion::Optional) => Some("null".to_owned()),
            ("config[n]", Conversion::Text) => Some("5".to_owned()),
            ("config[n]", Conversion::List) => Some("[5]".to_owned()),
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
