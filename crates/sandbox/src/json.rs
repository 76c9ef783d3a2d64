//! Checks that JSON text is a valid event, without building a tree.
//!
//! What belongs here: the rules for the result of a script. What does not: reading and
//! changing JSON text (`weir-json`).

use serde::de::IgnoredAny;
use weir_json::{Cursor, Escape, Limits, replace_escapes, weigh};

/// Maximum depth of the result of a script (PLG-37).
pub(crate) const MAX_DEPTH: usize = Limits::EVENT.depth;

/// Replaces escapes of single surrogates by U+FFFD. JavaScript engines write them, but
/// JSON parsers that store UTF-8 refuse them.
pub(crate) fn mend_surrogates(text: String) -> String {
    let mended =
        replace_escapes(&text, |escape| (escape == Escape::SingleSurrogate).then_some("\\ufffd"));
    mended.unwrap_or(text)
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
    // The first bytes of the members that an event must have.
    let (mut event, mut distinct_id, mut properties) = (None, None, None);
    let walked = Cursor::new(text, Limits::NONE).object(|key, cursor| {
        let first = cursor.value()?.bytes().next();
        match key.text().as_ref() {
            "event" => event = first,
            "distinct_id" => distinct_id = first,
            "properties" => properties = first,
            _ => {}
        }
        Ok(())
    });
    if walked.is_err() {
        return Err("what was returned is not an event");
    }
    if event != Some(b'"') {
        return Err("the event that was returned has no text in `event`");
    }
    if distinct_id != Some(b'"') {
        return Err("the event that was returned has no text in `distinct_id`");
    }
    if properties != Some(b'{') {
        return Err("the event that was returned has no object in `properties`");
    }
    if weigh(text.as_bytes()).depth > MAX_DEPTH {
        return Err("the event that was returned is nested deeper than 64");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{MAX_DEPTH, event_shape, event_written, mend_surrogates};

    #[test]
    fn halves_of_pairs_are_replaced_and_pairs_stay() {
        for same in [r#""a""#, r#""\ud83d\ude00""#, r#""\\ud83d""#, r#""\u00e4""#] {
            assert_eq!(mend_surrogates(same.to_owned()), same);
        }
        let halves = r#""a\ud83db\ude00\ud83d\ude00\ud83d\u0000""#.to_owned();
        assert_eq!(mend_surrogates(halves), r#""a\ufffdb\ufffd\ud83d\ude00\ufffd\u0000""#);
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
