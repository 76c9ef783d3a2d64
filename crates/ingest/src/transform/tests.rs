//! What a transformation may change, and what it may not.

use serde_json::{Value, json};
use uuid::Uuid;

use super::*;

const NOON: i64 = 1_780_000_000_000_000;

fn given(properties: &Value) -> TransformInput {
    let event = AcceptedEvent {
        uuid: Uuid::from_u128(7),
        event: "seen".to_owned(),
        distinct_id: "ada".to_owned(),
        timestamp: NOON - 123_457,
        properties: properties.to_string(),
        elements_chain: "a.link".to_owned(),
        warnings: vec![Warning::EventNameCut],
    };
    TransformInput::single(event, NOON)
}

fn read(text: &Value) -> Result<AcceptedEvent, Invalid> {
    let given = given(&json!({"a": 1}));
    Changed::read(&given, given.event(), &text.to_string()).map(Changed::into_event)
}

#[test]
fn name_person_time_and_properties_may_change() {
    let changed = read(&json!({
        "event": "other", "distinct_id": "bob", "timestamp": "2026-05-28T20:26:40.000001Z",
        "properties": {"b": 2}, "$set": {"c": 3},
    }))
    .unwrap();
    assert_eq!((changed.event.as_str(), changed.distinct_id.as_str()), ("other", "bob"));
    assert_eq!(changed.timestamp, NOON + 1);
    let properties: Value = serde_json::from_str(&changed.properties).unwrap();
    assert_eq!(properties, json!({"b": 2, "$set": {"c": 3}}));
}

#[test]
fn uuid_warnings_and_elements_stay() {
    let changed = read(&json!({
        "event": "seen", "distinct_id": "ada", "uuid": "no uuid", "offset": 100_000,
        "properties": {},
    }))
    .unwrap();
    assert_eq!(changed.uuid, Uuid::from_u128(7));
    assert_eq!(changed.timestamp, NOON - 123_457, "without a time, the one it had");
    assert_eq!(changed.elements_chain, "a.link");
    assert_eq!(changed.warnings, [Warning::EventNameCut]);
}

#[test]
fn what_an_earlier_step_made_stays() {
    let given = given(&json!({"a": 1}));
    let text = json!({
        "event": "seen", "distinct_id": "ada", "timestamp": "2026-05-28T11:00:00Z",
        "properties": {"$elements_chain": "b.button"},
    });
    let first = Changed::read(&given, given.event(), &text.to_string()).unwrap();
    let first = first.into_event();
    assert_ne!(first.timestamp, given.event().timestamp);
    assert_eq!(first.elements_chain, "b.button");
    let text = json!({"event": "seen", "distinct_id": "ada", "properties": {"c": 3}}).to_string();
    let read = Changed::read(&given, &first, &text).unwrap().into_event();
    let quick = Changed::with_properties(&given, &first, r#"{"c":3}"#).unwrap().unwrap();
    for later in [read, quick.into_event()] {
        assert_eq!(later.elements_chain, "b.button");
        assert_eq!(later.timestamp, first.timestamp);
    }
}

#[test]
fn a_uuid_that_is_none_harms_nothing() {
    for uuid in [json!(5), json!("no uuid"), json!(null), json!("")] {
        let text = json!({
            "event": "seen", "distinct_id": "ada", "uuid": uuid,
            "timestamp": "2026-05-28T20:26:40Z", "properties": {"a": 1},
        });
        assert_eq!(read(&text).unwrap().uuid, Uuid::from_u128(7), "{text}");
    }
}

#[test]
fn long_names_are_cut_as_those_that_are_sent() {
    let long = "x".repeat(300);
    let changed = read(&json!({"event": long, "distinct_id": long, "properties": {}})).unwrap();
    assert_eq!((changed.event.len(), changed.distinct_id.len()), (200, 200));
}

#[test]
fn what_capture_refuses_is_no_event() {
    let deep = (0..70).fold(json!(1), |inner, _| json!([inner]));
    for (text, reason) in [
        (json!({"distinct_id": "a", "properties": {}}), DropReason::MissingEventName),
        (json!({"event": "", "distinct_id": "a"}), DropReason::MissingEventName),
        (json!({"event": 5, "distinct_id": "a"}), DropReason::EventNameNotText),
        (json!({"event": "a", "distinct_id": " "}), DropReason::MissingDistinctId),
        (json!({"event": "a", "distinct_id": "a", "properties": 1}), DropReason::InvalidProperties),
        (json!({"event": "$snapshot", "distinct_id": "a"}), DropReason::NotAnEvent),
        (json!({"event": "a", "distinct_id": "a", "properties": {"d": deep}}), DropReason::TooDeep),
    ] {
        assert_eq!(read(&text), Err(Invalid::Refused(reason)), "{text}");
    }
    assert_eq!(read(&json!([1])), Err(Invalid::NotAnObject));
    let too_late = json!({"event": "a", "distinct_id": "a", "timestamp": "2090-01-01T00:00:00Z"});
    assert_eq!(read(&too_late), Err(Invalid::Time(Warning::FutureTimestamp)));
    let unreadable = json!({"event": "a", "distinct_id": "a", "timestamp": "noon"});
    assert_eq!(read(&unreadable), Err(Invalid::Time(Warning::InvalidTimestamp)));
}

#[test]
fn persons_that_were_switched_off_stay_off() {
    let given = given(&json!({"$process_person_profile": false}));
    let text = json!({"event": "a", "distinct_id": "a", "properties": {"b": 1}}).to_string();
    let changed = Changed::read(&given, given.event(), &text).unwrap().into_event();
    assert!(changed.properties.contains(r#""$process_person_profile":false"#));
    let identify = json!({"event": "$identify", "distinct_id": "a", "properties": {}}).to_string();
    let refused = Changed::read(&given, given.event(), &identify);
    assert_eq!(refused, Err(Invalid::Refused(DropReason::ProfileSwitchedOff)));
}

#[test]
fn whether_there_is_a_person_is_found_in_any_spelling() {
    for (properties, is_off) in [
        (r#"{"$process_person_profile":false}"#, true),
        (r#"{"\u0024process_person_profile" : false}"#, true),
        (r#"{"$process_person_profile":true}"#, false),
        (r#"{"a":"$process_person_profile","b":false}"#, false),
        (r#"{"a":{"$process_person_profile":false}}"#, false),
        (r#"{"a":"\\","b":false}"#, false),
        ("{}", false),
    ] {
        assert_eq!(is_without_person(properties), is_off, "{properties}");
    }
}

/// The event with other properties: once without writing it as text, and once parsed.
fn both_ways(given: &TransformInput, properties: &str) -> [Option<Result<Changed, Invalid>>; 2] {
    let now = given.event();
    let time = DateTime::<Utc>::from_timestamp_micros(now.timestamp).unwrap();
    let text = format!(
        r#"{{"event":"{}","distinct_id":"{}","timestamp":"{}","properties":{properties}}}"#,
        now.event,
        now.distinct_id,
        time.to_rfc3339(),
    );
    let quick = Changed::with_properties(given, now, properties).transpose();
    [quick, Some(Changed::read(given, now, &text))]
}

#[test]
fn other_properties_come_to_the_same_either_way() {
    let nested = |depth: usize| format!(r#"{{"a":{}{}}}"#, "[".repeat(depth), "]".repeat(depth));
    let many = |count: usize| {
        let members: Vec<String> = (0..count).map(|number| format!(r#""{number}":1"#)).collect();
        format!("{{{}}}", members.join(","))
    };
    let all = [
        "{}".to_owned(),
        r#"{ "n": 12345678901234567890, "t": "\u00e9", "a": 1, "a": 2 }"#.to_owned(),
        r#"{"$elements_chain":"b:","c":1.50}"#.to_owned(),
        r#"{"$elements":[{"tag_name":"p"}],"c":1}"#.to_owned(),
        r#"{"$process_person_profile":true,"$set":{"a":1}}"#.to_owned(),
        r#"{"$process_person_profile":"odd","$set":5}"#.to_owned(),
        nested(62),
        nested(63),
        many(9_996),
        many(9_997),
    ];
    for event in ["seen", "$identify", "$groupidentify"] {
        for before in [r#"{"a":1}"#, r#"{"$process_person_profile":false}"#] {
            let event = AcceptedEvent {
                event: event.to_owned(),
                properties: before.to_owned(),
                ..given(&json!({})).event().clone()
            };
            let given = TransformInput::single(event, NOON);
            for properties in &all {
                let [quick, read] = both_ways(&given, properties);
                assert_eq!(quick, read, "{before} {properties:.200}");
            }
        }
    }
}

#[test]
fn events_of_visitors_without_cookies_stay_without_traces() {
    // An earlier version accepted events with the id of all visitors.
    for distinct_id in ["ada", "$posthog_cookieless"] {
        let before = json!({"$cookieless_mode": true});
        let event =
            AcceptedEvent { distinct_id: distinct_id.to_owned(), ..given(&before).event().clone() };
        let given = TransformInput::single(event, NOON);
        let made = r#"{"$cookieless_mode":true,"$ip":"192.0.2.7","$set":{"$ip":1,"a":2}}"#;
        let [quick, read] = both_ways(&given, made);
        assert_eq!(quick, read, "{distinct_id}");
        let changed = read.unwrap().unwrap().into_event();
        assert_eq!(changed.distinct_id, distinct_id);
        assert_eq!(changed.properties, r#"{"$cookieless_mode":true,"$set":{"a":2}}"#);
    }
    let all_visitors = json!({"event": "a", "distinct_id": "$posthog_cookieless"});
    assert_eq!(read(&all_visitors), Err(Invalid::Refused(DropReason::MissingDistinctId)));
}

#[test]
fn other_properties_are_read_where_they_need_a_closer_look() {
    let given = given(&json!({"a": 1}));
    let large = format!(r#"{{"a":"{}"}}"#, "x".repeat(600_000));
    for properties in [r#"{"a":"\u0000"}"#, r#"{"a":NaN}"#, "[]", "{}}", &large] {
        assert_eq!(both_ways(&given, properties)[0], None, "{properties:.200}");
    }
    let mut later = given.event().clone();
    later.timestamp = NOON + 1;
    assert_eq!(Changed::with_properties(&given, &later, "{}"), Ok(None));
}
