//! Checks for tests and the fuzz targets `requests` and `events` (`fuzz/`): they hold for
//! every request and every event, valid or not.

use bytes::Bytes;
use chrono::{DateTime, Datelike, Utc};
use serde::de::IgnoredAny;
use weir_model::live::SAMPLE_LIMIT;
use weir_model::outcomes::DropReason;

use crate::{
    AcceptedEvent, BODY_LIMIT, Batch, CaptureError, CapturePath, CaptureRequest, Context,
    CookielessKey, Decision, DroppedEvent, EVENT_LIMIT, Payload, RawEvent, decide, decode, shape,
    v1,
};
use weir_json::{Cursor, Limits};

/// 2026-06-01T10:00:00Z
const NOW: i64 = 1_780_308_000_000_000;
/// Maximum characters of names and distinct ids (ING-28, ING-29).
const NAME_LIMIT: usize = 200;

/// Checks a file: the target of the request, its headers, an empty line, the body.
pub(super) fn check_request(file: &[u8]) {
    let end = file.windows(2).position(|pair| pair == b"\n\n").unwrap_or(file.len());
    let Ok(head) = std::str::from_utf8(&file[..end]) else { return };
    let body = Bytes::copy_from_slice(file.get(end + 2..).unwrap_or_default());
    let mut lines = head.lines();
    let target = lines.next().unwrap_or_default();
    let headers: Vec<_> = lines.filter_map(|line| line.split_once(": ")).collect();
    let header = |name: &str| {
        headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, text)| *text)
    };
    let (path, query) = match target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (target, None),
    };
    let path = match path.strip_suffix('/').unwrap_or(path) {
        "/i/v1/analytics/events" => return check_v1(header, body),
        "/capture" => CapturePath::Capture,
        "/e" => CapturePath::E,
        "/i/v0/e" => CapturePath::I0E,
        "/track" => CapturePath::Track,
        "/engage" => CapturePath::Engage,
        "/s" => CapturePath::Recordings,
        "/flags" | "/decide" => CapturePath::Settings,
        _ => CapturePath::Batch,
    };
    let decoded = decode(CaptureRequest {
        path,
        query,
        content_type: header("content-type"),
        content_encoding: header("content-encoding"),
        body,
    });
    match decoded {
        Ok(payload) => check_payload(&payload, path.is_engage()),
        Err(CaptureError::InvalidPayload { detail }) => assert!(!detail.is_empty()),
        Err(CaptureError::PayloadTooLarge { limit }) => assert_eq!(limit, BODY_LIMIT),
        Err(other) => panic!("decoding does not look at keys: {other:?}"),
    }
}

/// Checks the newer protocol.
fn check_v1<'a>(header: impl Fn(&str) -> Option<&'a str>, body: Bytes) {
    let check = |fault: v1::Fault| assert!(!fault.tag().is_empty() && !fault.detail().is_empty());
    let headers = match v1::Headers::read(header) {
        Ok(headers) => headers,
        Err(fault) => return check(fault),
    };
    check_key(&headers.token);
    let payload = match v1::decompress(headers.encoding, body) {
        Ok(payload) => payload,
        Err(fault) => return check(fault),
    };
    assert!(payload.text().len() <= BODY_LIMIT);
    let batch = match v1::shape(&payload) {
        Ok(batch) => batch,
        Err(fault) => return check(fault),
    };
    let context = context(Some(headers.sent_at), false);
    let mut results = v1::Results::default();
    for event in &batch.events {
        let decision = v1::decide(&event, headers.library, &context);
        check_decision(&event, &decision);
        results.push(&event, &decision);
    }
    serde_json::to_string(&results).unwrap();
}

/// Checks a decoded body.
pub(super) fn check_payload(payload: &Payload, engage: bool) {
    assert!(payload.text().len() <= BODY_LIMIT);
    let Batch { token, sent_at, events, .. } = match shape(payload) {
        Ok(batch) => batch,
        Err(error) => {
            assert!(!error.code().is_empty() && !error.detail().is_empty());
            return assert!(!matches!(error, CaptureError::PayloadTooLarge { .. }));
        }
    };
    check_key(&token);
    assert!(events.len() > 0);
    assert_eq!(events.iter().count(), events.len());
    let context = context(sent_at, engage);
    for event in &events {
        let decision = decide(&event, &context);
        check_decision(&event, &decision);
        check_same(&decision, &decide(&event, &context));
    }
}

fn context(sent_at: Option<DateTime<Utc>>, engage: bool) -> Context {
    Context {
        received_at: DateTime::from_timestamp_micros(NOW).unwrap(),
        sent_at,
        project: 1,
        client_address: Some("192.0.2.7".to_owned()),
        engage,
        person_processing_opt_out: false,
        cookieless_key: CookielessKey::Missing,
    }
}

fn check_key(token: &str) {
    assert!((1..=64).contains(&token.len()) && token.is_ascii() && !token.starts_with("phx_"));
}

fn check_decision(event: &RawEvent<'_>, decision: &Decision) {
    match decision {
        Decision::Accept(accepted) => {
            assert!(event.raw.len() <= EVENT_LIMIT);
            check_accepted(accepted);
        }
        Decision::Drop(dropped) => check_dropped(dropped),
    }
}

fn check_accepted(event: &AcceptedEvent) {
    for text in [&event.event, &event.distinct_id] {
        assert!((1..=NAME_LIMIT).contains(&text.chars().count()), "{text:?}");
        assert!(!text.contains('\0'), "{text:?}");
    }
    assert!(!event.distinct_id.trim().is_empty());
    let time = DateTime::from_timestamp_micros(event.timestamp).unwrap();
    assert!((0..=9999).contains(&time.year()), "{time}");
    assert!(event.properties.starts_with('{'), "{}", event.properties);
    serde_json::from_str::<IgnoredAny>(&event.properties).unwrap();
    // It contains only text that can be stored.
    let mut cursor = Cursor::new(&event.properties, Limits::NONE);
    cursor.range().unwrap();
    assert!(!cursor.needs_repair(), "{}", event.properties);
    assert!(!event.elements_chain.contains('\0'));
}

fn check_dropped(event: &DroppedEvent) {
    assert!(DropReason::ALL.contains(&event.reason));
    assert!(event.sample.len() <= SAMPLE_LIMIT);
    for text in event.event.iter().chain(&event.distinct_id) {
        assert!(text.chars().count() <= NAME_LIMIT);
    }
}

/// Checks that two decisions are the same, except for random uuids.
fn check_same(first: &Decision, second: &Decision) {
    match (first, second) {
        (Decision::Accept(first), Decision::Accept(second)) if first.uuid != second.uuid => {
            assert_eq!(first.uuid.get_version_num(), 7);
            assert_eq!(*first, AcceptedEvent { uuid: first.uuid, ..second.clone() });
        }
        _ => assert_eq!(first, second),
    }
}
