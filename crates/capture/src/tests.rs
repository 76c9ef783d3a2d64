//! Requests in the form of each client library, from the bytes to the decision.
//!
//! The bodies are reduced to what differs between libraries; data and keys are invented.

mod corpus;

use std::io::Write;

use base64::prelude::{BASE64_STANDARD, Engine};
use bytes::Bytes;
use chrono::{DateTime, Utc};
use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use weir_model::outcomes::{DropReason, Warning};

use super::{
    AcceptedEvent, CaptureError, CapturePath, CaptureRequest, Context, CookielessKey, Decision,
    DroppedEvent, decide, decode, shape,
};

const KEY: &str = "phc_TestKey";

/// The transport form of a body.
#[derive(Clone, Copy)]
enum Wire {
    Plain,
    Gzip,
    Base64Form,
    Lz64Form,
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

fn form(text: &str) -> Vec<u8> {
    let escaped = text.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
    format!("data={escaped}").into_bytes()
}

impl Wire {
    fn compress(self, body: &str) -> Bytes {
        match self {
            Self::Plain => body.as_bytes().to_vec(),
            Self::Gzip => gzip(body),
            Self::Base64Form => form(&BASE64_STANDARD.encode(body)),
            Self::Lz64Form => form(&lz_str::compress_to_base64(body)),
        }
        .into()
    }
}

/// One recorded request.
struct Call<'a> {
    path: CapturePath,
    query: &'a str,
    content_type: &'a str,
    content_encoding: Option<&'a str>,
    wire: Wire,
    received_at: &'a str,
    body: &'a str,
}

const CALL: Call<'static> = Call {
    path: CapturePath::Batch,
    query: "",
    content_type: "application/json",
    content_encoding: None,
    wire: Wire::Plain,
    received_at: "2026-06-01T10:00:00Z",
    body: "",
};

#[derive(Debug, Default)]
struct Outcome {
    historical: bool,
    accepted: Vec<AcceptedEvent>,
    dropped: Vec<DroppedEvent>,
}

impl Outcome {
    fn names(&self) -> Vec<&str> {
        self.accepted.iter().map(|event| event.event.as_str()).collect()
    }

    fn ids(&self) -> Vec<&str> {
        self.accepted.iter().map(|event| event.distinct_id.as_str()).collect()
    }

    fn times(&self) -> Vec<String> {
        let show = |event: &AcceptedEvent| {
            let time = DateTime::from_timestamp_micros(event.timestamp).unwrap();
            time.format("%Y-%m-%dT%H:%M:%S%.6f").to_string()
        };
        self.accepted.iter().map(show).collect()
    }
}

/// Runs all functions of this crate in the order of the server.
fn send(call: &Call<'_>) -> Result<Outcome, CaptureError> {
    let payload = decode(CaptureRequest {
        path: call.path,
        query: (!call.query.is_empty()).then_some(call.query),
        content_type: Some(call.content_type),
        content_encoding: call.content_encoding,
        body: call.wire.compress(call.body),
    })?;
    let batch = shape(&payload)?;
    assert_eq!(batch.token, KEY);
    let address = (!payload.hides_address()).then(|| "192.0.2.7".to_owned());
    let context = Context {
        received_at: call.received_at.parse::<DateTime<Utc>>().unwrap(),
        sent_at: batch.sent_at,
        project: 1,
        client_address: address,
        engage: call.path.is_engage(),
        person_processing_opt_out: false,
        cookieless_key: CookielessKey::Missing,
    };
    let mut outcome = Outcome { historical: batch.historical_migration, ..Outcome::default() };
    for event in &batch.events {
        match decide(&event, &context) {
            Decision::Accept(event) => outcome.accepted.push(event),
            Decision::Drop(event) => outcome.dropped.push(event),
        }
    }
    Ok(outcome)
}

/// The same, and asserts that everything is accepted without a warning.
#[track_caller]
fn smooth(call: &Call<'_>) -> Outcome {
    let outcome = send(call).unwrap();
    assert!(outcome.dropped.is_empty(), "{:?}", outcome.dropped);
    assert!(outcome.accepted.iter().all(|event| event.warnings.is_empty()));
    outcome
}

const BROWSER: &str = r#"{"api_key":"phc_TestKey","batch":[
    {"uuid":"0197c2f4-2a10-7b20-8c30-9d4051627384","event":"$identify",
     "properties":{"$lib":"web","$timezone_offset":-120,"$time":1780308000.412,
        "distinct_id":"user-1","token":"phc_TestKey","$anon_distinct_id":"0197c2f4-1a2b",
        "$process_person_profile":true},
     "$set":{"name":"Lucía"},"$set_once":{"$initial_gclid":null},
     "timestamp":"2026-06-01T09:59:58.412Z"},
    {"uuid":"0197c2f4-2a00-7111-8222-333344445556","event":"$autocapture",
     "properties":{"distinct_id":"0197c2f4-1a2b","token":"phc_TestKey",
        "$elements_chain":"button.btn:text=\"Log in\";form:nth-child=\"1\"","$ip":"198.51.100.9"},
     "timestamp":"2026-06-01T09:59:57.000Z"}],
    "sent_at":"2026-06-01T10:00:00.500Z"}"#;

#[test]
fn browser_library() {
    // Now: gzip without a declaration. Before: declared in the query. Without
    // compression, on unload: a base64 form.
    let gzip_text = Call {
        path: CapturePath::E,
        content_type: "text/plain",
        wire: Wire::Gzip,
        received_at: "2026-06-01T10:00:00.600Z",
        body: BROWSER,
        ..CALL
    };
    let unload = Call {
        query: "compression=base64",
        content_type: "application/x-www-form-urlencoded",
        wire: Wire::Base64Form,
        ..gzip_text
    };
    for call in [
        Call { ..gzip_text },
        Call { path: CapturePath::I0E, ..gzip_text },
        Call {
            query: "compression=gzip-js&ip=1&_=1780308300000&ver=1.200.0&beacon=1",
            ..gzip_text
        },
        Call { ..unload },
        Call { path: CapturePath::I0E, ..unload },
        Call { query: "", ..unload },
        Call { query: "compression=lz64&ip=1", wire: Wire::Lz64Form, ..unload },
    ] {
        let outcome = smooth(&call);
        assert_eq!(outcome.names(), ["$identify", "$autocapture"]);
        assert_eq!(outcome.ids(), ["user-1", "0197c2f4-1a2b"]);
        // 100 ms in transit.
        assert_eq!(outcome.times(), ["2026-06-01T09:59:58.512000", "2026-06-01T09:59:57.100000"]);
        let [identify, click] = outcome.accepted.as_slice() else { unreachable!("two events") };
        assert!(identify.properties.ends_with(
            r#","$set":{"name":"Lucía"},"$set_once":{"$initial_gclid":null},"$ip":"192.0.2.7"}"#
        ));
        assert!(identify.properties.contains(r#""$time":1780308000.412,"#));
        assert_eq!(click.uuid.to_string(), "0197c2f4-2a00-7111-8222-333344445556");
        assert!(click.properties.ends_with(r#","$ip":"198.51.100.9"}"#));
        assert!(click.elements_chain.starts_with("button.btn:text="));
    }
}

#[test]
fn older_browser_library() {
    // Array, key inside the properties, offset, time of sending in the query.
    let call = Call {
        path: CapturePath::E,
        query: "compression=gzip-js&ip=0&_=1780308303000&ver=1.105.0",
        content_type: "text/plain",
        wire: Wire::Gzip,
        body: r#"[{"uuid":"0197c2f4-3200-7111-8222-333344445562","event":"filter used","offset":2715,
            "properties":{"distinct_id":"0197c2f4-aaaa","token":"phc_TestKey","value":"<20"}}]"#,
        ..CALL
    };
    let outcome = smooth(&call);
    assert_eq!(outcome.times(), ["2026-06-01T09:59:57.285000"]);
    assert_eq!(outcome.ids(), ["0197c2f4-aaaa"]);
    assert!(!outcome.accepted[0].properties.contains("$ip"));
}

#[test]
fn python_library() {
    let body = r#"{"batch":[
        {"properties":{"amount":120.0,"$geoip_disable":true},"timestamp":"2026-06-01T10:10:00.118293+00:00",
         "distinct_id":"user-1","event":"invoice issued","uuid":"5d0a0f4e-6f0c-4d3e-9a53-0c5f1b0a7e11"},
        {"timestamp":"2026-06-01T10:10:00.000001+00:00","distinct_id":"user-2",
         "$set":{"email":"omar@mail.example"},"event":"$set","properties":{"$is_server":true},
         "uuid":"0f6d1f2e-54d1-4f35-8f44-7a8f3b8a1c01"},
        {"properties":{"distinct_id":"anon-77","alias":"user-2"},"timestamp":"2026-06-01T10:10:00+00:00",
         "event":"$create_alias","distinct_id":"anon-77","uuid":"0f6d1f2e-54d1-4f35-8f44-7a8f3b8a1c02"}],
        "historical_migration":false,"sent_at":"2026-06-01T10:10:00.650112+00:00","api_key":"phc_TestKey"}"#;
    let plain = Call { received_at: "2026-06-01T10:10:00.650112Z", body, ..CALL };
    for call in [
        Call { ..plain },
        Call { content_encoding: Some("gzip"), wire: Wire::Gzip, ..plain },
        Call { query: "compression=gzip", wire: Wire::Gzip, ..plain },
    ] {
        let outcome = smooth(&call);
        assert_eq!(outcome.names(), ["invoice issued", "$set", "$create_alias"]);
        assert_eq!(outcome.ids(), ["user-1", "user-2", "anon-77"]);
        assert_eq!(outcome.times()[0], "2026-06-01T10:10:00.118293");
        assert!(outcome.accepted[0].properties.starts_with(r#"{"amount":120.0,"#));
        assert!(outcome.accepted[1].properties.contains(r#""$set":{"email":"omar@mail.example"}"#));
        assert!(!outcome.historical);
    }
}

#[test]
fn python_library_without_uuids() {
    // `sentAt` is not `sent_at`; `context` has no meaning.
    let call = Call {
        received_at: "2026-06-01T10:16:05Z",
        body: r#"{"batch":[
            {"timestamp":"2026-06-01T10:16:00.1+00:00","context":{},"distinct_id":"user-3",
             "$set":{"email":"ines@mail.example"},"event":"$identify","properties":{}},
            {"properties":{"total":19.0},"timestamp":"2026-06-01T10:16:01.1+00:00","context":{},
             "distinct_id":"user-3","event":"order placed"}],
            "historical_migration":false,"sentAt":"2026-06-01T10:16:02+00:00","api_key":"phc_TestKey"}"#,
        ..CALL
    };
    let first = smooth(&call);
    assert_eq!(first.times(), ["2026-06-01T10:16:00.100000", "2026-06-01T10:16:01.100000"]);
    // A retry seconds later: the same uuids.
    let again = smooth(&Call { received_at: "2026-06-01T10:16:09Z", ..call });
    let uuids = |outcome: &Outcome| -> Vec<_> { outcome.accepted.iter().map(|e| e.uuid).collect() };
    assert_eq!(uuids(&first), uuids(&again));
    assert_ne!(uuids(&first)[0], uuids(&first)[1]);
}

#[test]
fn import_of_old_events() {
    let outcome = smooth(&Call {
        received_at: "2026-06-01T10:15:00.040Z",
        body: r#"{"batch":[
            {"properties":{"$geoip_disable":true},"timestamp":"2024-04-02T12:00:00+00:00",
             "distinct_id":"user-4","event":"$pageview","uuid":"018e9e5c-0000-7000-8000-000000000000"},
            {"properties":{"$ignore_sent_at":true},"timestamp":"2024-04-02T12:00:00+00:00",
             "distinct_id":"user-4","event":"$pageview","uuid":"018e9e5c-0000-7000-8000-000000000001"}],
            "historical_migration":true,"sent_at":"2026-06-01T10:15:00.000000+00:00","api_key":"phc_TestKey"}"#,
        ..CALL
    });
    assert!(outcome.historical);
    assert_eq!(outcome.times(), ["2024-04-02T12:00:00.040000", "2024-04-02T12:00:00.000000"]);
}

#[test]
fn node_and_ios_libraries() {
    let node = smooth(&Call {
        content_encoding: Some("gzip"),
        wire: Wire::Gzip,
        received_at: "2026-06-01T10:20:00.050Z",
        body: r#"{"api_key":"phc_TestKey","batch":[
            {"event":"$groupidentify","properties":{"$group_type":"company","$group_set":{"name":"Globex"}},
             "timestamp":"2026-06-01T10:20:00.002Z","uuid":"0197c305-0002-7a00-8b00-0c00d00e00f2",
             "distinct_id":"$company_globex"}],
            "sent_at":"2026-06-01T10:20:00.050Z"}"#,
        ..CALL
    });
    assert_eq!(node.ids(), ["$company_globex"]);
    let ios = smooth(&Call {
        content_type: "application/json; charset=utf-8",
        content_encoding: Some("gzip"),
        wire: Wire::Gzip,
        received_at: "2026-06-01T10:25:30Z",
        body: r#"{"api_key":"phc_TestKey","batch":[
            {"event":"$identify","distinct_id":"user-1","uuid":"0197C306-AAAA-7BBB-8CCC-DDDDEEEEFF03",
             "timestamp":"2026-06-01T10:25:09.500Z",
             "properties":{"$screen_width":393.0,"distinct_id":"user-1","$set":{"email":"l@mail.example"}}}],
            "sent_at":"2026-06-01T10:25:30.000Z"}"#,
        ..CALL
    });
    assert_eq!(ios.accepted[0].uuid.to_string(), "0197c306-aaaa-7bbb-8ccc-ddddeeeeff03");
    assert!(ios.accepted[0].properties.starts_with(r#"{"$screen_width":393.0,"#));
}

#[test]
fn rust_library() {
    let outcome = smooth(&Call {
        received_at: "2026-06-01T10:30:00.268688Z",
        body: r#"{"api_key":"phc_TestKey","historical_migration":false,
            "sent_at":"2026-06-01T10:30:00.268688670+00:00","batch":[
            {"uuid":"0197c30a-5c56-7525-8f7d-b94f8b322ffa","event":"job finished","distinct_id":"worker-7",
             "properties":{"ms":412},"timestamp":"2026-06-01T10:29:59.190384851Z"},
            {"uuid":"0197c30a-5c56-7525-8f7d-b94f8b322ffb","event":"job started","distinct_id":"worker-7",
             "properties":{},"timestamp":null}]}"#,
        ..CALL
    });
    assert_eq!(outcome.times(), ["2026-06-01T10:29:59.190384", "2026-06-01T10:30:00.268688"]);
}

#[test]
fn calls_by_hand() {
    let survey = smooth(&Call {
        path: CapturePath::Capture,
        body: r#"{"api_key":"phc_TestKey","event":"survey sent","distinct_id":"user-1",
            "properties":{"$survey_response":"Faster, please"},"timestamp":"2026-06-01T09:40:00Z"}"#,
        ..CALL
    });
    assert_eq!(survey.times(), ["2026-06-01T09:40:00.000000"]);
    let merge = smooth(&Call {
        path: CapturePath::Capture,
        body: r#"{"api_key":"phc_TestKey","event":"$merge_dangerously","distinct_id":"user-1",
            "properties":{"alias":"user-2"}}"#,
        ..CALL
    });
    assert_eq!(merge.accepted[0].properties, r#"{"alias":"user-2","$ip":"192.0.2.7"}"#);
    let engage = smooth(&Call {
        path: CapturePath::Engage,
        body: r#"{"token":"phc_TestKey","$distinct_id":"user-1","$set":{"nickname":"Lu"}}"#,
        ..CALL
    });
    assert_eq!((engage.names(), engage.ids()), (vec!["$identify"], vec!["user-1"]));
    assert!(engage.accepted[0].properties.starts_with(r#"{"$set":{"nickname":"Lu"},"#));
    // The replicator: an array without trailing slash, key and `$set` at the top level of
    // each event.
    let replicated = smooth(&Call {
        path: CapturePath::E,
        body: r#"[{"event":"a","token":"phc_TestKey","distinct_id":"d","$set":{"x":1},
            "uuid":"018e9e5c-0000-7000-8000-000000000000","timestamp":"2024-04-02T12:00:00Z",
            "properties":{},"$elements":[]}]"#,
        ..CALL
    });
    assert_eq!(replicated.times(), ["2024-04-02T12:00:00.000000"]);
}

#[test]
fn a_clock_five_hours_ahead() {
    let outcome = smooth(&Call {
        body: r#"{"api_key":"phc_TestKey","sent_at":"2026-06-01T15:00:00Z","batch":[
            {"event":"skewed","distinct_id":"user-9","timestamp":"2026-06-01T14:50:00Z"}]}"#,
        ..CALL
    });
    assert_eq!(outcome.times(), ["2026-06-01T09:50:00.000000"]);
}

#[test]
fn bad_items_do_not_fail_their_neighbours() {
    let outcome = send(&Call {
        body: r#"{"api_key":"phc_TestKey","batch":[
            {"event":"kept 1","distinct_id":"user-1"},
            {"event":"","distinct_id":"user-1"},
            {"distinct_id":"user-1","properties":{"a":1}},
            {"event":"no id","properties":{}},
            {"event":"empty id","distinct_id":""},
            {"event":"blank id","distinct_id":"   "},
            {"event":"null id","distinct_id":null},
            {"event":["list"],"distinct_id":"user-1"},
            {"event":"bad uuid","distinct_id":"user-1","uuid":"17"},
            {"event":"bad properties","distinct_id":"user-1","properties":"none"},
            {"event":"number id","distinct_id":12345},
            {"event":"half a pair \ud83e","distinct_id":"user-1"},
            {"event":"kept 2","properties":{"distinct_id":"user-1"}}]}"#,
        ..CALL
    })
    .unwrap();
    assert_eq!(outcome.names(), ["kept 1", "number id", "half a pair \u{fffd}", "kept 2"]);
    assert_eq!(outcome.ids(), ["user-1", "12345", "user-1", "user-1"]);
    assert_eq!(outcome.accepted[2].warnings, [Warning::TextRepaired]);
    let reasons: Vec<_> = outcome.dropped.iter().map(|event| event.reason).collect();
    assert_eq!(
        reasons,
        [
            DropReason::MissingEventName,
            DropReason::MissingEventName,
            DropReason::MissingDistinctId,
            DropReason::MissingDistinctId,
            DropReason::MissingDistinctId,
            DropReason::MissingDistinctId,
            DropReason::EventNameNotText,
            DropReason::InvalidUuid,
            DropReason::InvalidProperties,
        ]
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Random bytes rarely pass the parser, so real bodies are damaged instead.
    #[test]
    fn damaged_bodies_do_no_harm(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        compressed in any::<bool>(),
    ) {
        let mut body = if compressed { gzip(BROWSER) } else { BROWSER.as_bytes().to_vec() };
        for (index, byte) in changes {
            let place = index.index(body.len());
            body[place] = byte;
        }
        let payload = decode(CaptureRequest {
            path: CapturePath::E,
            query: None,
            content_type: None,
            content_encoding: None,
            body: body.into(),
        });
        if let Ok(batch) = payload.as_ref().map_err(Clone::clone).and_then(shape) {
            let context = Context {
                received_at: DateTime::UNIX_EPOCH,
                sent_at: batch.sent_at,
                project: 1,
                client_address: None,
                engage: false,
                person_processing_opt_out: false,
                cookieless_key: CookielessKey::Missing,
            };
            for event in &batch.events {
                let _ = decide(&event, &context);
            }
        }
    }
}
