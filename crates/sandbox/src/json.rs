//! What JSON text must be like to go on as an event, without building a tree.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

/// How deep the result of a script may be nested (SECURITY-NOTES 7).
pub(crate) const MAX_DEPTH: usize = 64;

/// How deep valid JSON is nested: 0 for a number, 1 for `{}`.
pub(crate) fn depth(text: &[u8]) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0_usize);
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => skip_string(&mut bytes),
            b'{' | b'[' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

fn skip_string(bytes: &mut std::slice::Iter<'_, u8>) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return,
            b'\\' => {
                bytes.next();
            }
            _ => {}
        }
    }
}

/// Replaces escapes of halves of surrogate pairs by that of U+FFFD. Engines write
/// them; readers of JSON that keep text as UTF-8 refuse them.
pub(crate) fn mend_surrogates(text: &str) -> Cow<'_, str> {
    if !text.contains("\\ud") && !text.contains("\\uD") {
        return Cow::Borrowed(text);
    }
    let bytes = text.as_bytes();
    let mut mended = String::new();
    let (mut from, mut at) = (0, 0);
    while at < bytes.len() {
        if bytes[at] != b'\\' {
            at += 1;
            continue;
        }
        match (half(bytes, at), half(bytes, at + 6)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => at += 12,
            (Some(0xD800..=0xDFFF), _) => {
                mended.push_str(&text[from..at]);
                mended.push_str("\\ufffd");
                at += 6;
                from = at;
            }
            _ => at += 2,
        }
    }
    if from == 0 {
        return Cow::Borrowed(text);
    }
    mended.push_str(&text[from..]);
    Cow::Owned(mended)
}

/// The number of a `\uXXXX` that begins at `at`.
fn half(bytes: &[u8], at: usize) -> Option<u16> {
    let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[derive(Deserialize)]
struct Shape<'a> {
    #[serde(borrow, default)]
    event: Option<&'a RawValue>,
    #[serde(borrow, default)]
    distinct_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    properties: Option<&'a RawValue>,
}

/// Whether JSON text is an event; if not, why not.
pub(crate) fn event_shape(text: &str) -> Result<(), &'static str> {
    let begins =
        |part: Option<&RawValue>, with: char| part.is_some_and(|part| part.get().starts_with(with));
    if !text.starts_with('{') {
        return Err("what was returned is not an object");
    }
    let shape: Shape<'_> =
        serde_json::from_str(text).map_err(|_| "what was returned is not an event")?;
    if !begins(shape.event, '"') {
        return Err("the event that was returned has no text in `event`");
    }
    if !begins(shape.distinct_id, '"') {
        return Err("the event that was returned has no text in `distinct_id`");
    }
    if !begins(shape.properties, '{') {
        return Err("the event that was returned has no object in `properties`");
    }
    if depth(text.as_bytes()) > MAX_DEPTH {
        return Err("the event that was returned is nested deeper than 64");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{depth, event_shape, mend_surrogates};

    #[test]
    fn halves_of_pairs_are_replaced_and_pairs_stay() {
        for same in [r#""a""#, r#""\ud83d\ude00""#, r#""\\ud83d""#, r#""\u00e4""#] {
            assert_eq!(mend_surrogates(same), same);
        }
        assert_eq!(mend_surrogates(r#""a\ud83db""#), r#""a\ufffdb""#);
        assert_eq!(
            mend_surrogates(r#""\ude00\ud83d\ude00\ud83d""#),
            r#""\ufffd\ud83d\ude00\ufffd""#
        );
    }

    #[test]
    fn brackets_in_strings_are_no_depth() {
        assert_eq!(depth(b"1"), 0);
        assert_eq!(depth(br#"{"a":[{"b":"[[[{\"[["}]}"#), 3);
        assert_eq!(depth(br#"["\\",["x"]]"#), 2);
    }

    #[test]
    fn an_event_has_a_name_an_id_and_properties() {
        assert_eq!(event_shape(r#"{"event":"a","distinct_id":"b","properties":{}}"#), Ok(()));
        for text in [
            "1",
            "[]",
            r#"{"event":"a","distinct_id":"b"}"#,
            r#"{"event":1,"distinct_id":"b","properties":{}}"#,
            r#"{"event":"a","distinct_id":null,"properties":{}}"#,
            r#"{"event":"a","distinct_id":"b","properties":[]}"#,
        ] {
            assert!(event_shape(text).is_err(), "{text}");
        }
    }
}
