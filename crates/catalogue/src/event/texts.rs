//! Texts within JSON text.

use std::borrow::Cow;

use weir_json::push_string;

/// A text as a JSON string.
pub(crate) fn json_of(text: &str) -> String {
    let mut json = String::with_capacity(text.len() + 2);
    push_string(&mut json, text);
    json
}

/// The text of a JSON string; `None` if the value is not a string.
pub(crate) fn text_of(json: &str) -> Option<Cow<'_, str>> {
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        serde_json::from_str(json).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(inner))
    }
}

/// Replaces texts in JSON text: `change` gets each string value and may return a new one.
/// `None` if there is no replacement.
pub(super) fn replace(
    json: &str,
    change: &mut dyn FnMut(&str) -> Option<String>,
) -> Option<String> {
    let mut out: Option<String> = None;
    let mut copied = 0;
    let mut at = 0;
    while let Some(start) = json.get(at..)?.find('"').map(|found| at + found) {
        let end = end_of_text(json, start)?;
        at = end;
        let after = json.get(end..)?;
        if after.trim_ascii_start().starts_with(':') {
            continue;
        }
        let text = text_of(json.get(start..end)?)?;
        if let Some(other) = change(&text).filter(|other| *other != text) {
            let out = out.get_or_insert_with(String::new);
            out.push_str(json.get(copied..start)?);
            push_string(out, &other);
            copied = end;
        }
    }
    let mut out = out?;
    out.push_str(json.get(copied..)?);
    Some(out)
}

/// The end of the string that begins at `start`.
fn end_of_text(json: &str, start: usize) -> Option<usize> {
    let mut escaped = false;
    json.bytes().enumerate().skip(start + 1).find_map(|(at, byte)| match byte {
        _ if escaped => {
            escaped = false;
            None
        }
        b'\\' => {
            escaped = true;
            None
        }
        b'"' => Some(at + 1),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::replace;

    #[test]
    fn only_values_are_replaced() {
        let mut upper = |text: &str| Some(text.to_uppercase());
        let json = r#"[ {"a" : "b\\", "c":["\"d\u00e4", 12345678901234567890]}, "", "E"]"#;
        assert_eq!(
            replace(json, &mut upper).unwrap(),
            r#"[ {"a" : "B\\", "c":["\"DÄ", 12345678901234567890]}, "", "E"]"#
        );
        assert_eq!(replace("[1, null]", &mut upper), None);
        assert_eq!(replace("\"A\"", &mut upper), None);
    }
}
