use proptest::prelude::*;

use super::{RawEvent, shape};
use crate::{CaptureError, Payload};

fn payload(text: &str) -> Payload {
    Payload::from_text(text.to_owned())
}

/// Key and number of events, or code and message.
fn outcome(text: &str) -> Result<(String, usize), (&'static str, String)> {
    match shape(&payload(text)) {
        Ok(batch) => {
            assert_eq!(batch.events.iter().count(), batch.events.len());
            Ok((batch.token.into_owned(), batch.events.len()))
        }
        Err(error) => Err((error.code(), error.detail().into_owned())),
    }
}

#[test]
fn shapes_and_places_of_the_key() {
    for (text, events) in [
        // one event
        (r#"{"api_key":"k","event":"a"}"#, 1),
        (r#"{"token":"k","event":"a"}"#, 1),
        (r#"{"$token":"k","event":"a"}"#, 1),
        (r#"{"event":"a","properties":{"token":"k"}}"#, 1),
        (r#"{"api_key":null,"token":"k"}"#, 1),
        (r#"{"api_key":"k","token":"x","properties":{"token":"y"}}"#, 1),
        (r#"{"api_key":"k"}"#, 1),
        (" \n{\"api_key\":\"k\"}\r\n\t", 1),
        // array
        (r#"[{"event":"a","properties":{"token":"k"}},{"event":"b"}]"#, 2),
        (r#"[{"event":"a"},{"api_key":"k"},{"token":" k "}]"#, 3),
        (r#"[{"token":"k","properties":{"token":"other"}}]"#, 1),
        (r#"[{"token":"k"},{"properties":{"token":17}},{"properties":{"token":null}}]"#, 3),
        (r#"[{"token":"k"},{"properties":[]},{"properties":null}]"#, 3),
        (r#"[ {"token":"k"} ]"#, 1),
        // batch
        (r#"{"api_key":"k","batch":[{"event":"a"},{}]}"#, 2),
        (r#"{"token":"k","batch":[{"event":"a"}]}"#, 1),
        (r#"{"batch":[{"event":"a"}],"historical_migration":true,"api_key":"k"}"#, 1),
        (r#"{"api_key":"k","batch":[{"token":"x"},{"token":"y"}]}"#, 2),
        (r#"{"batch":[{"properties":{"token":"k"}},{"token":"k"}]}"#, 2),
        (r#"{"api_key":"k","batch":null,"batch":[{}]}"#, 1),
        (r#"{"api_key":"k","batch":[{}],"event":"a","type":1,"library":{},"context":[]}"#, 1),
        // with escapes
        (r#"{"api\u005fkey":"\u006b","b\u0061tch":[{}]}"#, 1),
        // the last of a duplicate name
        (r#"{"api_key":"x","api_key":"k"}"#, 1),
        // names and texts that are not valid text
        (r#"{"api_key":"k","\ud800":"\udfff","\u0000":{"\ud83e":0}}"#, 1),
        (r#"[{"properties":{"\ud800":1,"token":"k"}}]"#, 1),
    ] {
        assert_eq!(outcome(text), Ok(("k".to_owned(), events)), "{text}");
    }
}

#[test]
fn deep_or_large_events_do_not_hide_the_key() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for text in [
        format!(r#"{{"properties":{{"a":{deep},"token":"k"}}}}"#),
        format!(r#"{{"api_key":"k","batch":[{{"a":{deep}}}]}}"#),
    ] {
        assert_eq!(outcome(&text), Ok(("k".to_owned(), 1)));
    }
}

#[test]
fn payloads_that_are_refused() {
    for (text, part) in [
        ("", "empty"),
        (" ", "empty"),
        ("null", "neither"),
        ("1", "neither"),
        ("\"text\"", "neither"),
        ("eyJhIjoxfQ==", "neither"),
        ("[]", "no event"),
        ("{\"api_key\":\"k\",\"batch\":[]}", "no event"),
        ("{\"api_key\":\"k\",\"batch\":null}", "not a list"),
        ("{\"api_key\":\"k\",\"batch\":{}}", "not a list"),
        ("{\"api_key\":\"k\",\"batch\":\"[]\"}", "not a list"),
        ("{\"api_key\":\"k\",\"batch\":1}", "not a list"),
        ("{\"api_key\":\"k\",\"batch\":[{}],\"batch\":null}", "not a list"),
        ("[1]", "Item 0"),
        ("{\"api_key\":\"k\",\"batch\":[{},null]}", "Item 1"),
        ("{\"api_key\":\"k\",\"batch\":[[]]}", "Item 0"),
        ("{\"api_key\":\"k\",\"batch\":[\"{}\"]}", "Item 0"),
        ("{", "not valid JSON"),
        ("{\"api_key\":\"k\"", "not valid JSON"),
        ("{\"api_key\":\"k\"}x", "not valid JSON"),
        ("{\"api_key\":\"k\"}{}", "not valid JSON"),
        ("[{}", "not valid JSON"),
        ("[{},]", "not valid JSON"),
        ("{\"a\":01}", "not valid JSON"),
        ("{\"a\":NaN}", "not valid JSON"),
        ("{\"a\":\"\u{0}\"}", "not valid JSON"),
        ("{\"a\":\"\\x\"}", "not valid JSON"),
        ("{'a':1}", "not valid JSON"),
    ] {
        let (code, detail) = outcome(text).unwrap_err();
        assert_eq!(code, "invalid_payload", "{text}");
        assert!(detail.contains(part), "{text}: {detail}");
    }
}

#[test]
fn the_payload_comes_before_the_key() {
    for text in [
        r#"{"api_key":"phx_personal","batch":[]}"#,
        r#"{"api_key":7,"batch":[1]}"#,
        r#"[{"token":"a"},{"token":"b"},0]"#,
        r#"{"api_key":"","event":}"#,
    ] {
        assert_eq!(outcome(text).unwrap_err().0, "invalid_payload", "{text}");
    }
}

#[test]
fn keys() {
    let event = |key: &str| format!(r#"{{"api_key":{key},"event":"a"}}"#);
    let long = |length| format!("\"{}\"", "k".repeat(length));
    for (key, token) in [
        ("\"phc_Abc1\"", "phc_Abc1"),
        ("\" \\tphc_Abc1\\n \"", "phc_Abc1"),
        ("\"\u{a0}phc_Abc1\u{2003}\"", "phc_Abc1"),
        (long(64).as_str(), &"k".repeat(64)),
    ] {
        assert_eq!(outcome(&event(key)).unwrap().0, token);
    }
    let malformed = [
        "\"\"",
        "\"  \"",
        "\"phx_personal\"",
        "\" phx_personal\"",
        "\"clé\"",
        "\"a\\u0000b\"",
        "\"\\ud800\"",
        "7",
        "true",
        "{}",
        "[\"k\"]",
        &long(65),
    ];
    for key in malformed {
        for text in [event(key), format!("[{}]", event(key))] {
            let expected = ("invalid_api_key", "No project has this API key.".to_owned());
            assert_eq!(outcome(&text), Err(expected), "{text}");
        }
    }
    for text in [
        "{}",
        "[{}]",
        r#"{"event":"a","properties":{"token":7}}"#,
        r#"{"event":"a","properties":{"api_key":"k"}}"#,
        r#"{"api_key":null,"token":null,"batch":[{"event":"a"}]}"#,
    ] {
        assert_eq!(outcome(text).unwrap_err().0, "missing_api_key", "{text}");
    }
    for text in [
        r#"[{"token":"a"},{"token":"b"}]"#,
        r#"[{"token":"a"},{},{"properties":{"token":"b"}}]"#,
        r#"{"batch":[{"token":"a"},{"api_key":"b"}]}"#,
    ] {
        assert_eq!(shape(&payload(text)).unwrap_err(), CaptureError::ConflictingApiKeys, "{text}");
    }
}

#[test]
fn marks_of_the_batch() {
    let from_query = |text: &str| {
        let request = crate::CaptureRequest {
            path: crate::CapturePath::E,
            query: Some("_=1780308303000"),
            content_type: None,
            content_encoding: None,
            body: text.to_owned().into(),
        };
        crate::decode(request).unwrap()
    };
    // 2026-06-01T10:00:00Z from the body, 10:05:03 from the query.
    let (body, query) = (Some(1_780_308_000_000), Some(1_780_308_303_000));
    for (text, historical, alone, with_query) in [
        (r#"{"api_key":"k","batch":[{}]}"#, false, None, query),
        (r#"{"api_key":"k","batch":[{}],"historical_migration":true}"#, true, None, query),
        (r#"{"api_key":"k","batch":[{}],"historical_migration":false}"#, false, None, query),
        (r#"{"api_key":"k","batch":[{}],"historical_migration":"yes"}"#, false, None, query),
        (r#"{"api_key":"k","historical_migration":true}"#, false, None, query),
        (r#"{"api_key":"k","batch":[{}],"sent_at":"2026-06-01T10:00:00Z"}"#, false, body, body),
        (r#"{"api_key":"k","sent_at":"2026-06-01T12:00:00+02:00"}"#, false, body, body),
        (r#"{"api_key":"k","batch":[{}],"sent_at":"2026-06-01 10:00:00"}"#, false, body, body),
        (r#"{"api_key":"k","batch":[{}],"sent_at":"soon"}"#, false, None, query),
        (r#"{"api_key":"k","batch":[{}],"sent_at":1780308000000}"#, false, None, query),
        (r#"{"api_key":"k","batch":[{}],"sent_at":null}"#, false, None, query),
        (r#"{"api_key":"k","batch":[{}],"sentAt":"2026-06-01T10:00:00Z"}"#, false, None, query),
        (r#"[{"api_key":"k","sent_at":"2026-06-01T10:00:00Z"}]"#, false, None, query),
    ] {
        for (payload, expected) in [(payload(text), alone), (from_query(text), with_query)] {
            let batch = shape(&payload).unwrap();
            assert_eq!(batch.historical_migration, historical, "{text}");
            assert_eq!(batch.sent_at.map(|time| time.timestamp_millis()), expected, "{text}");
        }
    }
}

#[test]
fn events_keep_their_text_and_fields() {
    let text = r#"{"api_key":"k","batch":[ {"event" : "a", "event":"b","uuid":null,"x":{"event":1},
        "distinct_id":1.50,"$distinct_id":"o","properties":{ "p":1 },"timestamp":"t","offset":3,
        "$set":{},"$set_once":[],"$unset":"u"} , {}]}"#;
    let payload = payload(text);
    let batch = shape(&payload).unwrap();
    let events: Vec<_> = batch.events.iter().collect();
    let [event, empty] = events.as_slice() else { unreachable!("two events") };
    assert!(event.raw.starts_with("{\"event\" : \"a\"") && event.raw.ends_with("\"u\"}"));
    assert_eq!(empty.raw, "{}");
    assert!(empty.event.is_none() && empty.properties.is_none());
    let fields = [
        (event.event, "\"b\""),
        (event.uuid, "null"),
        (event.distinct_id, "1.50"),
        (event.dollar_distinct_id, "\"o\""),
        (event.properties, "{ \"p\":1 }"),
        (event.timestamp, "\"t\""),
        (event.offset, "3"),
        (event.set, "{}"),
        (event.set_once, "[]"),
        (event.unset, "\"u\""),
    ];
    for (field, expected) in fields {
        assert_eq!(field.unwrap().get(), expected);
    }
    for text in ["", "1", "[]", "{", "{}{}", "\"{}\""] {
        assert!(RawEvent::parse(text).is_err(), "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nonsense_does_no_harm(text in r#"[\[\]{}:,"\\u0d8é 1]{0,60}"#) {
        let _ = shape(&payload(&text));
    }

    #[test]
    fn any_json_is_judged(value in crate::any_json::any_json()) {
        let _ = shape(&payload(&value.to_string()));
        let batch = format!(r#"{{"api_key":"k","batch":{value}}}"#);
        let outcome = outcome(&batch);
        let is_batch = value.as_array()
            .is_some_and(|items| !items.is_empty() && items.iter().all(|item| item.is_object()));
        prop_assert_eq!(outcome.is_ok(), is_batch);
    }
}
