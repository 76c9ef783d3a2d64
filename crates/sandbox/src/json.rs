//! Checks that JSON text is a valid event, without building a tree.

use std::borrow::Cow;

use serde::de::IgnoredAny;

/// Maximum depth of the result of a script (PLG-37).
pub(crate) const MAX_DEPTH: usize = 64;

/// The end of the string that begins at `from`, in valid JSON.
pub(crate) fn string_end(bytes: &[u8], from: usize) -> usize {
    let mut at = from + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Replaces escapes of single surrogates by U+FFFD. JavaScript engines write them, but
/// JSON parsers that store UTF-8 refuse them.
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

/// The value of a `\uXXXX` that begins at `at`.
fn half(bytes: &[u8], at: usize) -> Option<u16> {
    let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// The result of one pass over valid JSON: its depth (0 for a number, 1 for `{}`), and
/// the first bytes of the members that an event must have.
#[derive(Debug, Default)]
struct Shape {
    depth: usize,
    event: Option<u8>,
    distinct_id: Option<u8>,
    properties: Option<u8>,
}

impl Shape {
    fn of(text: &[u8]) -> Self {
        let mut shape = Self::default();
        let mut depth = 0_usize;
        // The last string among the outermost members: before a colon, it is a name.
        let mut name: &[u8] = &[];
        let mut at = 0;
        while let Some(byte) = text.get(at) {
            match byte {
                b'"' => {
                    let end = string_end(text, at);
                    if depth == 1 {
                        name = &text[at..end];
                    }
                    at = end;
                    continue;
                }
                b'{' | b'[' => {
                    depth += 1;
                    shape.depth = shape.depth.max(depth);
                }
                b'}' | b']' => depth = depth.saturating_sub(1),
                b':' if depth == 1 => {
                    let value = &text[at + 1..];
                    let first = value.iter().find(|byte| !byte.is_ascii_whitespace()).copied();
                    match name {
                        b"\"event\"" => shape.event = first,
                        b"\"distinct_id\"" => shape.distinct_id = first,
                        b"\"properties\"" => shape.properties = first,
                        _ => {}
                    }
                }
                _ => {}
            }
            at += 1;
        }
        shape
    }
}

/// Whether the output of an engine is an event; if not, the reason. It is parsed, because
/// scripts influence how values are written, and it is copied into a frame unchanged.
pub(crate) fn event_written(text: &str) -> Result<(), &'static str> {
    if text.starts_with('{') && serde_json::from_str::<IgnoredAny>(text).is_err() {
        return Err("what was returned is not an event");
    }
    event_shape(text)
}

/// Whether parsed JSON is an event; if not, the reason.
pub(crate) fn event_shape(text: &str) -> Result<(), &'static str> {
    if !text.starts_with('{') {
        return Err("what was returned is not an object");
    }
    let shape = Shape::of(text.as_bytes());
    if shape.event != Some(b'"') {
        return Err("the event that was returned has no text in `event`");
    }
    if shape.distinct_id != Some(b'"') {
        return Err("the event that was returned has no text in `distinct_id`");
    }
    if shape.properties != Some(b'{') {
        return Err("the event that was returned has no object in `properties`");
    }
    if shape.depth > MAX_DEPTH {
        return Err("the event that was returned is nested deeper than 64");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{MAX_DEPTH, Shape, event_shape, event_written, mend_surrogates};

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
        let depth = |text: &[u8]| Shape::of(text).depth;
        assert_eq!(depth(b"1"), 0);
        assert_eq!(depth(br#"{"a":[{"b":"[[[{\"[["}]}"#), 3);
        assert_eq!(depth(br#"["\\",["x"]]"#), 2);
    }

    #[test]
    fn an_event_has_a_name_an_id_and_properties() {
        for text in [
            r#"{"event":"a","distinct_id":"b","properties":{}}"#,
            r#"{ "properties" : { "event" : 1 } , "distinct_id" : "event" , "event" : "\"{" }"#,
            r#"{"a":{"event":1},"event":"a:","distinct_id":"b","properties":{},"b":["event"]}"#,
        ] {
            assert_eq!(event_shape(text), Ok(()), "{text}");
        }
        for text in [
            "1",
            "[]",
            r#"{"event":"a","distinct_id":"b"}"#,
            r#"{"event":1,"distinct_id":"b","properties":{}}"#,
            r#"{"event":"a","distinct_id":null,"properties":{}}"#,
            r#"{"event":"a","distinct_id":"b","properties":[]}"#,
            r#"{"a":{"event":"a"},"distinct_id":"b","properties":{}}"#,
            r#"{"a":"event","distinct_id":"b","properties":{}}"#,
            r#"{"\"event":"a","distinct_id":"b","properties":{}}"#,
        ] {
            assert!(event_shape(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_written_is_valid() {
        for text in [
            r#"{"event":"a","distinct_id":"b","properties":{}"#,
            r#"{"event":"a","distinct_id":"b","properties":{"n":1.}}"#,
            r#"{"event":"a","distinct_id":"b","properties":{}}}"#,
            "[]",
        ] {
            assert!(event_written(text).is_err(), "{text}");
        }
        assert_eq!(event_written(r#"{"event":"a","distinct_id":"b","properties":{}}"#), Ok(()));
    }

    #[test]
    fn an_event_is_not_too_deep() {
        let nested = |depth: usize| {
            let (open, close) = ("[".repeat(depth), "]".repeat(depth));
            format!(r#"{{"event":"a","distinct_id":"b","properties":{{"a":{open}{close}}}}}"#)
        };
        assert_eq!(event_shape(&nested(MAX_DEPTH - 2)), Ok(()));
        assert!(event_shape(&nested(MAX_DEPTH - 1)).is_err());
    }
}
