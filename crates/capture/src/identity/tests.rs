use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::Context;
use crate::decide::tests::{NOW, accepted, accepted_in, context};

#[test]
fn sent_uuids() {
    let expected = Uuid::parse_str("0197c2f4-1c10-7d20-8e30-4f5061728394").unwrap();
    for text in [
        "0197c2f4-1c10-7d20-8e30-4f5061728394",
        "0197C2F4-1C10-7D20-8E30-4F5061728394",
        "0197c2f41c107d208e304f5061728394",
        "{0197c2f4-1c10-7d20-8e30-4f5061728394}",
        "urn:uuid:0197c2f4-1c10-7d20-8e30-4f5061728394",
    ] {
        let raw = format!(r#"{{"event":"a","distinct_id":"d","uuid":"{text}"}}"#);
        assert_eq!(accepted(&raw).uuid, expected);
    }
}

#[test]
fn made_uuids_without_a_time_are_new() {
    for fields in
        ["", r#","uuid":"""#, r#","uuid":null"#, r#","timestamp":null"#, r#","offset":1000"#]
    {
        let raw = format!(r#"{{"event":"a","distinct_id":"d"{fields}}}"#);
        let (first, second) = (accepted(&raw), accepted(&raw));
        assert_ne!(first.uuid, second.uuid);
        assert_eq!(first.uuid.get_version_num(), 7);
        let millis = u64::try_from(first.timestamp / 1000).unwrap();
        assert_eq!((first.uuid.as_u128() >> 80) as u64, millis, "{fields}");
    }
    // Before 1970 there is no time part.
    let raw = r#"{"event":"a","distinct_id":"d","offset":1880308000000}"#;
    let event = accepted(raw);
    assert!(event.timestamp < 0);
    assert_eq!(event.uuid.as_u128() >> 80, 0);
}

#[test]
fn made_uuids_with_a_time_follow_from_the_content() {
    let base = r#"{"event":"a","distinct_id":"d","timestamp":"2026-06-01T09:00:00Z","properties":{"a":1,"b":2.0}}"#;
    let uuid = accepted(base).uuid;
    // A fixed value: it must be the same in every release.
    assert_eq!(uuid.to_string(), "befbf632-696b-568b-9cc6-913b37d1cc9b");
    let later = Context {
        received_at: DateTime::<Utc>::from_timestamp_micros(NOW + 5_000_000).unwrap(),
        sent_at: DateTime::<Utc>::from_timestamp_micros(NOW + 7_000_000),
        client_address: Some("192.0.2.7".to_owned()),
        ..context()
    };
    assert_eq!(accepted_in(base, &later).uuid, uuid);
    for (same, from, to) in [
        (true, "\"event\":\"a\"", " \"event\" : \"\\u0061\" "),
        (true, "{\"a\":1,\"b\":2.0}", "{ \"b\":2.0, \"a\":1 }"),
        (true, "\"event\"", "\"context\":{},\"event\""),
        (true, "\"event\"", "\"uuid\":\"\",\"event\""),
        (false, "\"a\",", "\"b\","),
        (false, "\"d\"", "\"e\""),
        (false, "09:00:00Z", "09:00:00.0Z"),
        (false, "2.0", "2.00"),
        (false, "{\"a\"", "{\"c\":null,\"a\""),
        (false, "\"event\"", "\"$set\":{},\"event\""),
    ] {
        assert!(base.contains(from), "{from}");
        let other = accepted(&base.replacen(from, to, 1)).uuid;
        assert_eq!(other == uuid, same, "{from} -> {to}");
    }
    assert_ne!(accepted_in(base, &Context { project: 2, ..context() }).uuid, uuid);
    // An unreadable time has the same text in a retry.
    let odd = base.replace("2026-06-01T09:00:00Z", "noon");
    assert_eq!(accepted(&odd).uuid, accepted(&odd).uuid);
}
