use std::io::Write;

use base64::prelude::{BASE64_STANDARD, Engine};
use bytes::Bytes;
use chrono::DateTime;
use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use proptest::prelude::*;
use serde_json::{Value, json};
use weir_model::outcomes::{DropReason, Warning};

use super::{
    Encoding, Fault, Headers, Library, Results, decide, decompress, drop_over_limit, shape,
};
use crate::decide::tests::{NOW, context};
use crate::{BODY_LIMIT, CaptureError, Context, Decision, Payload, RawEvent};

const UUID: &str = "880f267e-6093-4048-93c9-55f9b0a7978d";
const LIBRARY: Library<'static> = Library { name: "posthog-python", version: "7.91.1" };

const HEADERS: [(&str, &str); 7] = [
    ("Authorization", "Bearer phc_TestKey"),
    ("Content-Type", "application/json"),
    ("User-Agent", "posthog-python/7.91.1"),
    ("PostHog-Sdk-Info", "posthog-python/7.91.1"),
    ("PostHog-Attempt", "1"),
    ("PostHog-Request-Id", "cd497c5e-d34e-41e5-b50a-307bc0973d46"),
    ("PostHog-Request-Timestamp", "2026-06-01T10:00:00.595094+00:00"),
];

/// The headers with one value added or changed; without it if the value is `None`.
fn headers<'a>(changed: &'a str, value: Option<&'a str>) -> Result<Headers<'a>, Fault> {
    Headers::read(|name| {
        if name == changed {
            return value;
        }
        HEADERS.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    })
}

#[test]
fn headers_of_a_library() {
    let read = headers("", None).unwrap();
    assert_eq!(read.token, "phc_TestKey");
    assert_eq!(read.sent_at.timestamp_micros(), 1_780_308_000_595_094);
    assert_eq!(read.library, Some(LIBRARY));
    assert_eq!(read.encoding, Encoding::Identity);
}

#[test]
fn headers_that_must_be_there() {
    for (name, _) in HEADERS {
        let fault = headers(name, None).unwrap_err();
        if name == "Authorization" {
            assert_eq!(fault, Fault::Common(CaptureError::MissingApiKey));
        } else {
            assert_eq!(fault, Fault::MissingHeaders(vec![name]));
            assert!(fault.detail().contains(name));
        }
    }
}

#[test]
fn values_of_headers() {
    let long = format!("x/{}", "9".repeat(127));
    let (attempt, id, time) =
        ("PostHog-Attempt", "PostHog-Request-Id", "PostHog-Request-Timestamp");
    for (name, value, fault) in [
        ("Authorization", "bearer  phc_TestKey ", None),
        ("Authorization", "Basic phc_TestKey", Some(CaptureError::InvalidApiKey.into())),
        ("Authorization", "phc_TestKey", Some(CaptureError::InvalidApiKey.into())),
        ("Authorization", "Bearer", Some(CaptureError::InvalidApiKey.into())),
        ("Authorization", "Bearer phx_personal", Some(CaptureError::InvalidApiKey.into())),
        ("Content-Type", "Application/JSON; charset=utf-8", None),
        ("Content-Type", "text/plain", Some(Fault::UnsupportedContentType)),
        ("Content-Encoding", "GZIP", None),
        ("Content-Encoding", "identity", None),
        ("Content-Encoding", "lz4", Some(Fault::UnsupportedEncoding)),
        ("Content-Encoding", "gzip, br", Some(Fault::UnsupportedEncoding)),
        ("User-Agent", "", None),
        ("PostHog-Sdk-Info", "", None),
        ("PostHog-Sdk-Info", &long, None),
        (attempt, "3", None),
        (attempt, "0", Some(Fault::InvalidHeader(attempt))),
        (attempt, "first", Some(Fault::InvalidHeader(attempt))),
        (id, "7", Some(Fault::InvalidHeader(id))),
        (time, "noon", Some(Fault::InvalidHeader(time))),
    ] {
        assert_eq!(headers(name, Some(value)).err(), fault, "{name}: {value}");
    }
    for (text, library) in [
        ("posthog-python/7.91.1", Some(LIBRARY)),
        ("a/b/1.0", Some(Library { name: "a/b", version: "1.0" })),
        (" posthog-python / 7.91.1 ", Some(LIBRARY)),
        ("posthog-python", None),
        ("/1.0", None),
        ("posthog-python/", None),
        (&long, None),
    ] {
        assert_eq!(headers("PostHog-Sdk-Info", Some(text)).unwrap().library, library, "{text}");
    }
}

fn compressed(encoding: Encoding, text: &[u8]) -> Bytes {
    let written = "writing into memory cannot fail";
    match encoding {
        Encoding::Identity => text.to_vec(),
        Encoding::Gzip => {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(text).expect(written);
            encoder.finish().expect(written)
        }
        Encoding::Deflate => {
            let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(text).expect(written);
            encoder.finish().expect(written)
        }
        Encoding::Brotli => {
            let mut body = Vec::new();
            brotli::CompressorWriter::new(&mut body, 4096, 5, 22).write_all(text).expect(written);
            body
        }
        Encoding::Zstd => zstd::bulk::compress(text, 1).expect(written),
    }
    .into()
}

const ENCODINGS: [Encoding; 5] =
    [Encoding::Identity, Encoding::Gzip, Encoding::Deflate, Encoding::Brotli, Encoding::Zstd];

#[test]
fn every_encoding_decompresses_and_none_beyond_the_limit() {
    let too_large = Fault::Common(CaptureError::PayloadTooLarge { limit: BODY_LIMIT });
    let blanks = vec![b' '; BODY_LIMIT + 1];
    for encoding in ENCODINGS {
        let body = compressed(encoding, b"{\"a\":1}");
        assert_eq!(decompress(encoding, body).unwrap().text(), "{\"a\":1}", "{encoding:?}");
        let body = compressed(encoding, &blanks[1..]);
        assert_eq!(decompress(encoding, body).unwrap().text().len(), BODY_LIMIT, "{encoding:?}");
        assert_eq!(decompress(encoding, compressed(encoding, &blanks)), Err(too_large.clone()));
        assert_eq!(decompress(encoding, Bytes::new()), Err(Fault::EmptyBody));
        let binary = compressed(encoding, b"\xff\xfe");
        assert_eq!(decompress(encoding, binary), Err(Fault::Undecodable), "{encoding:?}");
        if encoding != Encoding::Identity {
            let plain = Bytes::from_static(b"{\"a\":1}");
            assert_eq!(decompress(encoding, plain), Err(Fault::Undecodable), "{encoding:?}");
        }
    }
    // gzip is recognized by its first bytes.
    let body = compressed(Encoding::Gzip, b"{}");
    assert_eq!(decompress(Encoding::Identity, body).unwrap().text(), "{}");
    // Base64 is not an encoding of this protocol, so the text is not JSON.
    let body = BASE64_STANDARD.encode("{}");
    let payload = decompress(Encoding::Identity, body.into()).unwrap();
    assert_eq!(shape(&payload).unwrap_err().tag(), "request_parsing_error");
}

fn event() -> Value {
    json!({
        "event": "order placed", "uuid": UUID, "distinct_id": "user-4711",
        "timestamp": "2026-06-01T09:59:59.594506+00:00",
    })
}

fn with(name: &str, value: Value) -> Value {
    let mut event = event();
    event[name] = value;
    event
}

fn body(events: &Value) -> Payload {
    let body = json!({"created_at": "2026-06-01T10:00:00.594820+00:00", "batch": events});
    Payload::from_text(body.to_string())
}

#[test]
fn batches() {
    let payload = body(&json!([event()]));
    let batch = shape(&payload).unwrap();
    assert_eq!((batch.historical_migration, batch.events.len()), (false, 1));
    let import = r#"{"historical_migration":true,"created_at":"2026-06-01T10:00:00Z","more":1,
        "batch":[{"uuid":"880f267e-6093-4048-93c9-55f9b0a7978d"},
                 {"uuid":"880F267E-6093-4048-93C9-55F9B0A7978E"}]}"#;
    let payload = Payload::from_text(import.to_owned());
    let batch = shape(&payload).unwrap();
    assert_eq!((batch.historical_migration, batch.events.len()), (true, 2));
}

#[test]
fn batches_that_are_refused() {
    let upper = UUID.to_uppercase();
    for (text, tag) in [
        ("", "request_parsing_error"),
        ("{", "request_parsing_error"),
        ("[]", "request_parsing_error"),
        ("7", "request_parsing_error"),
        (r#"{"created_at":"2026-06-01T10:00:00Z"}"#, "request_parsing_error"),
        (r#"{"created_at":"2026-06-01T10:00:00Z","batch":null}"#, "request_parsing_error"),
        (r#"{"created_at":"2026-06-01T10:00:00Z","batch":{}}"#, "request_parsing_error"),
        (r#"{"created_at":"2026-06-01T10:00:00Z","batch":[7]}"#, "request_parsing_error"),
        (r#"{"created_at":"2026-06-01T10:00:00Z","batch":[ ]}"#, "empty_batch"),
        (r#"{"batch":[{}]}"#, "invalid_batch"),
        (r#"{"created_at":null,"batch":[{}]}"#, "invalid_batch"),
        (r#"{"created_at":1780308000,"batch":[{}]}"#, "invalid_batch"),
        (r#"{"created_at":"now","batch":[{}]}"#, "invalid_batch"),
    ] {
        let fault = shape(&Payload::from_text(text.to_owned())).unwrap_err();
        assert_eq!(fault.tag(), tag, "{text}");
        assert!(fault.detail().ends_with('.'), "{text}");
    }
    for (uuid, tag) in [
        (Value::Null, "missing_event_uuid"),
        (json!(""), "missing_event_uuid"),
        (json!("17"), "invalid_event_uuid"),
        (json!(17), "invalid_event_uuid"),
        (json!(upper), "duplicate_event_uuid"),
    ] {
        let fault = shape(&body(&json!([event(), with("uuid", uuid.clone())]))).unwrap_err();
        assert_eq!(fault.tag(), tag, "{uuid}");
    }
}

/// Sent by a clock that is ten seconds ahead.
fn skewed() -> Context {
    Context { sent_at: DateTime::from_timestamp_micros(NOW + 10_000_000), ..context() }
}

fn decided(event: &Value) -> Decision {
    let text = event.to_string();
    decide(&RawEvent::parse(&text).unwrap(), Some(LIBRARY), &skewed())
}

#[track_caller]
fn accepted(event: &Value) -> (Value, Vec<Warning>) {
    match decided(event) {
        Decision::Accept(event) => {
            (serde_json::from_str(&event.properties).unwrap(), event.warnings)
        }
        Decision::Drop(dropped) => unreachable!("{event} was dropped: {dropped:?}"),
    }
}

#[test]
fn what_stands_beside_the_properties_is_put_into_them() {
    let mut event = event();
    event["properties"] = json!({"total": 5.0, "$lib": "forged", "$session_id": "old"});
    event["session_id"] = json!("0197c2f4-1b00-7a11-9b22-0c33d44e55f6");
    event["window_id"] = json!("0197c2f4-1b00-7a11-9b22-0c33d44e55f7");
    event["options"] = json!({
        "process_person_profile": false, "disable_skew_correction": true,
        "cookieless_mode": false, "product_tour_id": 17, "other": {},
    });
    let (properties, warnings) = accepted(&event);
    assert_eq!(
        properties,
        json!({
            "total": 5.0,
            "$session_id": "0197c2f4-1b00-7a11-9b22-0c33d44e55f6",
            "$window_id": "0197c2f4-1b00-7a11-9b22-0c33d44e55f7",
            "$process_person_profile": false, "$ignore_sent_at": true, "$cookieless_mode": false,
            "$product_tour_id": "17", "$lib": "posthog-python", "$lib_version": "7.91.1",
        })
    );
    assert_eq!(warnings, []);
    let lib = json!({"$lib": "posthog-python", "$lib_version": "7.91.1"});
    for properties in [Value::Null, json!({})] {
        assert_eq!(accepted(&with("properties", properties)), (lib.clone(), vec![]));
    }
    assert_eq!(accepted(&self::event()), (lib, vec![]));
}

#[test]
fn dropped_events_of_visitors_without_cookies_are_shown_without_traces() {
    let mut event = with("distinct_id", json!("d".repeat(201)));
    event["options"] = json!({"cookieless_mode": "true"});
    event["properties"] = json!({"$raw_user_agent": "Firefox", "a": 1});
    let Decision::Drop(dropped) = decided(&event) else { unreachable!("{event} was accepted") };
    assert_eq!(dropped.reason, DropReason::DistinctIdTooLarge);
    event["properties"] = json!({"a": 1});
    let shown: Value = serde_json::from_str(&dropped.sample).unwrap();
    assert_eq!(shown, event);
}

#[test]
fn numbers_keep_their_digits() {
    let text = format!(
        r#"{{"event":"a","uuid":"{UUID}","distinct_id":"d","timestamp":"2026-06-01T10:00:00Z",
            "properties":{{"big":12345678901234567890123,"e":1E400}},"session_id":"s"}}"#
    );
    let decision = decide(&RawEvent::parse(&text).unwrap(), None, &context());
    let Decision::Accept(event) = decision else { unreachable!("{decision:?}") };
    let expected = r#"{"big":12345678901234567890123,"e":1E400,"$session_id":"s"}"#;
    assert_eq!(event.properties, expected);
    let bare = text.replace(",\"session_id\":\"s\"", "");
    let decision = decide(&RawEvent::parse(&bare).unwrap(), None, &context());
    let Decision::Accept(event) = decision else { unreachable!("{decision:?}") };
    assert_eq!(event.properties, r#"{"big":12345678901234567890123,"e":1E400}"#);
}

#[test]
fn spellings_of_options() {
    for (value, written) in [
        (json!(true), json!(true)),
        (json!(" True "), json!(true)),
        (json!("1"), json!(true)),
        (json!(1), json!(true)),
        (json!(false), json!(false)),
        (json!("false"), json!(false)),
        (json!(0), json!(false)),
    ] {
        let options = json!({"process_person_profile": value});
        let (properties, warnings) = accepted(&with("options", options));
        assert_eq!((&properties["$process_person_profile"], warnings.len()), (&written, 0));
    }
    for event in [
        with("options", json!({"process_person_profile": "maybe"})),
        with("options", json!({"product_tour_id": {}})),
        with("options", json!([1])),
        with("options", json!("none")),
        with("session_id", json!(["s"])),
        with("window_id", json!(true)),
    ] {
        let (properties, warnings) = accepted(&event);
        assert_eq!(warnings, [Warning::InvalidOption], "{event}");
        assert_eq!(properties.as_object().unwrap().len(), 2, "{event}");
    }
    for event in [
        with("options", Value::Null),
        // PHP writes an object without members like this.
        with("options", json!([])),
        with("options", json!({"process_person_profile": null})),
        with("session_id", Value::Null),
    ] {
        assert_eq!(accepted(&event).1, [], "{event}");
    }
}

#[test]
fn time_is_corrected_by_the_time_of_the_request() {
    for (options, seconds) in
        [(json!({}), 11), (json!({"disable_skew_correction": true}), 1), (Value::Null, 11)]
    {
        let mut event = with("timestamp", json!("2026-06-01T09:59:59Z"));
        event["options"] = options;
        let Decision::Accept(accepted) = decided(&event) else { unreachable!("{event}") };
        assert_eq!(accepted.timestamp, NOW - seconds * 1_000_000, "{event}");
    }
}

#[test]
fn events_that_are_dropped() {
    use DropReason::*;
    let long = "é".repeat(201);
    let fits = "é".repeat(200);
    for (field, value, reason, tag) in [
        ("event", Value::Null, MissingEventName, "missing_event_name"),
        ("event", json!(""), MissingEventName, "missing_event_name"),
        ("event", json!(7), EventNameNotText, "event_name_not_text"),
        ("event", json!(long), EventNameTooLong, "event_name_too_long"),
        ("event", json!("$performance_event"), NotAnEvent, "not_an_event"),
        ("distinct_id", Value::Null, MissingDistinctId, "missing_distinct_id"),
        ("distinct_id", json!(" "), MissingDistinctId, "missing_distinct_id"),
        ("distinct_id", json!(long), DistinctIdTooLarge, "distinct_id_too_large"),
        ("timestamp", Value::Null, InvalidEventTimestamp, "invalid_event_timestamp"),
        ("timestamp", json!("noon"), InvalidEventTimestamp, "invalid_event_timestamp"),
        ("timestamp", json!({}), InvalidEventTimestamp, "invalid_event_timestamp"),
        ("properties", json!([1]), InvalidProperties, "malformed_event_properties"),
        ("properties", json!("{}"), InvalidProperties, "malformed_event_properties"),
        ("pad", json!("x".repeat(1 << 20)), EventTooLarge, "event_too_large"),
    ] {
        let event = with(field, value);
        let text = event.to_string();
        let decision = decided(&event);
        let Decision::Drop(dropped) = &decision else { unreachable!("{decision:?}") };
        assert_eq!(dropped.reason, reason);
        assert_eq!(dropped.uuid.unwrap().to_string(), UUID);
        assert!(text.starts_with(&dropped.sample), "shown as sent: {}", dropped.sample);
        let mut results = Results::default();
        results.push(&RawEvent::parse(&text).unwrap(), &decision);
        let results = serde_json::to_value(&results).unwrap();
        assert_eq!(results, json!({"results": {UUID: {"result": "drop", "details": tag}}}));
    }
    for (field, value) in [("event", json!(fits)), ("distinct_id", json!(fits))] {
        assert_eq!(accepted(&with(field, value)).1, []);
    }
}

#[test]
fn results_are_keyed_by_the_uuid_as_sent() {
    let upper = UUID.to_uppercase();
    let mut results = Results::default();
    for event in [
        event(),
        with("uuid", json!(upper)),
        with("options", json!(7)),
        with("event", json!("half \u{0}")),
    ] {
        let text = event.to_string();
        results.push(&RawEvent::parse(&text).unwrap(), &decided(&event));
    }
    assert_eq!(
        serde_json::to_string(&results).unwrap(),
        format!(r#"{{"results":{{"{UUID}":{{"result":"ok"}},"{upper}":{{"result":"ok"}},"#)
            + &format!(
                r#""{UUID}":{{"result":"warning","details":"invalid_option"}},"{UUID}":{{"result":"warning","details":"text_repaired"}}}}}}"#
            )
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_event_gets_a_sound_decision(
        fields in prop::collection::vec(
            (
                prop::sample::select(vec![
                    "event", "uuid", "distinct_id", "timestamp", "session_id", "window_id",
                    "options", "properties", "$set", "offset",
                ]),
                prop_oneof![
                    crate::any_json::any_json().prop_map(|value| value.to_string()),
                    Just("\"2026-06-01T09:00:00Z\"".to_owned()),
                    Just("{\"cookieless_mode\":\"\\ud83e\",\"product_tour_id\":1}".to_owned()),
                    Just("{\"\\u0000\":1}".to_owned()),
                ],
            ),
            0..12,
        ),
    ) {
        let fields: Vec<_> =
            fields.into_iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
        let raw = format!("{{{}}}", fields.join(","));
        let event = RawEvent::parse(&raw).unwrap();
        match decide(&event, Some(LIBRARY), &context()) {
            Decision::Accept(event) => {
                let properties: Value = serde_json::from_str(&event.properties).unwrap();
                prop_assert_eq!(&properties["$lib"], "posthog-python");
                prop_assert!(!event.properties.contains("\\u0000"));
            }
            Decision::Drop(event) => prop_assert_eq!(event.sample, &raw[..raw.len().min(4096)]),
        }
    }

    #[test]
    fn damaged_bodies_do_no_harm(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        encoding in prop::sample::select(&ENCODINGS[..]),
    ) {
        let text = body(&json!([event(), with("uuid", json!("880f267e-6093-4048-93c9-55f9b0a7978e"))]));
        let mut bytes = compressed(encoding, text.text().as_bytes()).to_vec();
        for (index, byte) in changes {
            let place = index.index(bytes.len());
            bytes[place] = byte;
        }
        if let Ok(payload) = decompress(encoding, bytes.into())
            && let Ok(batch) = shape(&payload)
        {
            for event in &batch.events {
                let _ = decide(&event, Some(LIBRARY), &context());
            }
        }
    }
}

#[test]
fn an_event_beyond_a_limit_is_dropped_and_hides_a_visitor_without_cookies() {
    let dropped = |event: &Value| {
        let text = event.to_string();
        let raw = RawEvent::parse(&text).unwrap();
        match drop_over_limit(&raw, DropReason::OverDiskLimit, Some(LIBRARY), &skewed()) {
            Decision::Drop(dropped) => dropped,
            Decision::Accept(event) => unreachable!("{event:?} was accepted"),
        }
    };
    assert_eq!(dropped(&event()).reason, DropReason::OverDiskLimit);
    let mut hidden = with("options", json!({"cookieless_mode": true}));
    hidden["properties"] = json!({"$ip": "192.0.2.7"});
    assert!(!dropped(&hidden).sample.contains("192.0.2.7"));
}
