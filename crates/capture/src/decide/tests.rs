use chrono::{DateTime, Utc};
use proptest::prelude::*;
use serde_json::Value;
use uuid::Uuid;
use weir_model::outcomes::{DropReason, Warning};

use super::{AcceptedEvent, Context, Decision, DroppedEvent, EVENT_LIMIT, decide, drop_over_limit};
use crate::{CookielessKey, RawEvent};

/// 2026-06-01T10:00:00Z
pub(crate) const NOW: i64 = 1_780_308_000_000_000;

pub(crate) fn context() -> Context {
    Context {
        received_at: DateTime::<Utc>::from_timestamp_micros(NOW).unwrap(),
        sent_at: None,
        project: 1,
        client_address: None,
        engage: false,
        person_processing_opt_out: false,
        cookieless_key: CookielessKey::Missing,
    }
}

fn decided(raw: &str, context: &Context) -> Decision {
    decide(&RawEvent::parse(raw).unwrap(), context)
}

#[track_caller]
pub(crate) fn accepted_in(raw: &str, context: &Context) -> AcceptedEvent {
    match decided(raw, context) {
        Decision::Accept(event) => event,
        Decision::Drop(event) => unreachable!("{raw} was dropped: {event:?}"),
    }
}

#[track_caller]
pub(crate) fn accepted(raw: &str) -> AcceptedEvent {
    accepted_in(raw, &context())
}

#[track_caller]
fn dropped(raw: &str) -> DroppedEvent {
    match decided(raw, &context()) {
        Decision::Drop(event) => event,
        Decision::Accept(event) => unreachable!("{raw} was accepted: {event:?}"),
    }
}

#[test]
fn an_element_chain_becomes_a_field_of_its_own() {
    let event = accepted(
        r#"{"event":"$autocapture","distinct_id":"d","properties":
            {"a\u0062":1,"$elements_chain":"button:text=\"Log in\"","b":[1.50]}}"#,
    );
    assert_eq!(event.elements_chain, r#"button:text="Log in""#);
    assert_eq!(event.properties, r#"{"a\u0062":1,"b":[1.50]}"#);
    let alone = accepted(
        r#"{"event":"a","distinct_id":"d","properties":{"$elements_chain":"a:href=\"/\""}}"#,
    );
    assert_eq!(alone.properties, "{}");
    // A value that is not a text stays in the properties.
    let odd = accepted(r#"{"event":"a","distinct_id":"d","properties":{"$elements_chain":7}}"#);
    assert_eq!(
        (odd.elements_chain.as_str(), odd.properties.as_str()),
        ("", r#"{"$elements_chain":7}"#)
    );
}

#[test]
fn what_is_dropped() {
    use DropReason::*;
    for (raw, reason) in [
        // the three drops of ING-30
        (r#"{"distinct_id":"d"}"#, MissingEventName),
        (r#"{"event":null,"distinct_id":"d"}"#, MissingEventName),
        (r#"{"event":"","distinct_id":"d"}"#, MissingEventName),
        (r#"{"event":"a"}"#, MissingDistinctId),
        (r#"{"event":"a","properties":{}}"#, MissingDistinctId),
        (r#"{"event":"a","distinct_id":null}"#, MissingDistinctId),
        (r#"{"event":"a","properties":{"distinct_id":null}}"#, MissingDistinctId),
        (r#"{"event":"a","distinct_id":""}"#, MissingDistinctId),
        (r#"{"event":"a","distinct_id":"  \t\u2003"}"#, MissingDistinctId),
        // an empty value at the top level takes precedence over the properties
        (r#"{"event":"a","distinct_id":"","properties":{"distinct_id":"d"}}"#, MissingDistinctId),
        // all others
        (r#"{"event":7,"distinct_id":"d"}"#, EventNameNotText),
        (r#"{"event":true,"distinct_id":"d"}"#, EventNameNotText),
        (r#"{"event":{"name":"a"},"distinct_id":"d"}"#, EventNameNotText),
        (r#"{"event":["a"],"distinct_id":"d"}"#, EventNameNotText),
        (r#"{"event":"a","distinct_id":"d","uuid":"no"}"#, InvalidUuid),
        (r#"{"event":"a","distinct_id":"d","uuid":7}"#, InvalidUuid),
        (r#"{"event":"a","distinct_id":"d","uuid":" "}"#, InvalidUuid),
        (
            r#"{"event":"a","distinct_id":"d","uuid":"0197c2f4-1c10-7d20-8e30-4f506172839"}"#,
            InvalidUuid,
        ),
        (r#"{"event":"a","distinct_id":"d","properties":[1]}"#, InvalidProperties),
        (r#"{"event":"a","distinct_id":"d","properties":"{}"}"#, InvalidProperties),
        (r#"{"event":"a","distinct_id":"d","properties":0}"#, InvalidProperties),
        (r#"{"event":"$performance_event","distinct_id":"d"}"#, NotAnEvent),
        (r#"{"event":"$snapshot","properties":{}}"#, NotAnEvent),
        (r#"{"event":"$snapshot_items","distinct_id":"d"}"#, NotAnEvent),
    ] {
        let event = dropped(raw);
        assert_eq!(event.reason, reason, "{raw}");
        assert_eq!(event.sample, raw);
    }
}

#[test]
fn a_project_without_persons_switches_them_off_for_every_event() {
    let off = Context { person_processing_opt_out: true, ..context() };
    for (sent, stored) in [
        (r"{}", r#"{"$process_person_profile":false}"#),
        (r#"{"a":1}"#, r#"{"a":1,"$process_person_profile":false}"#),
        (r#"{"$process_person_profile":true,"a":1}"#, r#"{"a":1,"$process_person_profile":false}"#),
        (r#"{"$process_person_profile":0,"a":1}"#, r#"{"a":1,"$process_person_profile":false}"#),
        (
            r#"{"$process_person_profile":false,"a":1}"#,
            r#"{"$process_person_profile":false,"a":1}"#,
        ),
    ] {
        let raw = format!(
            r#"{{"event":"a","distinct_id":"d","timestamp":"2026-06-01T09:00:00Z","properties":{sent}}}"#
        );
        let event = accepted_in(&raw, &off);
        assert_eq!(event.properties, stored, "{sent}");
        // A retry after the setting was changed is the same event.
        assert_eq!(event.uuid, accepted(&raw).uuid, "{sent}");
    }
    for name in ["$identify", "$create_alias", "$merge_dangerously", "$groupidentify"] {
        let raw = format!(r#"{{"event":"{name}","distinct_id":"d"}}"#);
        let Decision::Drop(event) = decided(&raw, &off) else {
            unreachable!("{name} was accepted")
        };
        assert_eq!(event.reason, DropReason::ProfileSwitchedOff, "{name}");
    }
}

#[test]
fn what_is_shown_of_dropped_events() {
    let uuid = "0197c2f4-1c10-7d20-8e30-4f5061728394";
    let all = format!(r#"{{"event":"a","properties":{{"distinct_id":7}},"uuid":"{uuid}","x":1"#);
    let deep = format!("{all},\"y\":{}{}}}", "[".repeat(64), "]".repeat(64));
    let event = dropped(&deep);
    assert_eq!(event.reason, DropReason::TooDeep);
    assert_eq!((event.event.as_deref(), event.uuid), (Some("a"), Uuid::parse_str(uuid).ok()));
    // No data is shown from within an event that exceeds the limits.
    assert_eq!(event.distinct_id, None);

    let event = dropped(r#"{"event":["a"],"distinct_id":{"b":1,"a":2},"uuid":"x"}"#);
    assert_eq!((event.event, event.uuid), (None, None));
    assert_eq!(event.distinct_id.as_deref(), Some(r#"{"a":2,"b":1}"#));

    let raw = format!(
        r#"{{"event":"{}","distinct_id":"{}\ud800","uuid":"x","pad":"{}"}}"#,
        "n".repeat(300),
        "d".repeat(199),
        "é".repeat(4000)
    );
    let event = dropped(&raw);
    assert_eq!(event.event.unwrap().len(), 200);
    assert_eq!(event.distinct_id.unwrap(), format!("{}\u{fffd}", "d".repeat(199)));
    // Truncated before the character that crosses the limit; raw, not repaired.
    assert!((4095..=4096).contains(&event.sample.len()) && raw.starts_with(&event.sample));
    assert!(event.sample.contains(r"\ud800"));
}

#[test]
fn limits_of_one_event() {
    let padded = |length: usize| {
        let frame = r#"{"event":"a","distinct_id":"d","properties":{"p":""}}"#;
        frame.replace("\"\"", &format!("\"{}\"", "x".repeat(length - frame.len())))
    };
    assert!(accepted(&padded(EVENT_LIMIT)).warnings.is_empty());
    let event = dropped(&padded(EVENT_LIMIT + 1));
    assert_eq!(event.reason, DropReason::EventTooLarge);
    assert_eq!((event.event.as_deref(), event.distinct_id.as_deref()), (Some("a"), Some("d")));
    assert_eq!(event.sample.len(), 4096);

    // The event and its properties are the first two levels.
    let nested = |depth: usize| {
        let inner = format!("{}{}", "[".repeat(depth - 2), "]".repeat(depth - 2));
        format!(r#"{{"event":"a","distinct_id":"d","properties":{{"p":{inner}}}}}"#)
    };
    assert!(accepted(&nested(64)).warnings.is_empty());
    assert_eq!(dropped(&nested(65)).reason, DropReason::TooDeep);
    assert_eq!(dropped(&nested(200_000)).reason, DropReason::TooDeep);

    let keys = |count: usize| {
        let inner: Vec<_> = (3..count).map(|key| format!("\"{key}\":0")).collect();
        format!(r#"{{"event":"a","distinct_id":"d","properties":{{{}}}}}"#, inner.join(","))
    };
    assert!(accepted(&keys(10_000)).warnings.is_empty());
    assert_eq!(dropped(&keys(10_001)).reason, DropReason::TooManyKeys);
}

#[test]
fn names() {
    let cut = "ñ".repeat(200);
    for (sent, name, warnings) in [
        ("$pageview", "$pageview", &[][..]),
        (" ", " ", &[]),
        (r"order \u00e9\n", "order é\n", &[]),
        (cut.as_str(), &cut, &[]),
        (&format!("{cut}x"), &cut, &[Warning::EventNameCut]),
        (r"a\u0000b\ud83e", "a\u{fffd}b\u{fffd}", &[Warning::TextRepaired]),
    ] {
        let event = accepted(&format!(r#"{{"event":"{sent}","distinct_id":"d"}}"#));
        assert_eq!((event.event.as_str(), event.warnings.as_slice()), (name, warnings));
    }
}

#[test]
fn engage_needs_no_name() {
    let context = Context { engage: true, ..context() };
    for (raw, name) in [
        (r#"{"$distinct_id":"d","$set":{"nickname":"Lu"}}"#, "$identify"),
        (r#"{"event":null,"distinct_id":"d"}"#, "$identify"),
        (r#"{"event":"a","distinct_id":"d"}"#, "a"),
    ] {
        assert_eq!(accepted_in(raw, &context).event, name, "{raw}");
    }
    let Decision::Drop(event) = decided(r#"{"event":"","distinct_id":"d"}"#, &context) else {
        unreachable!("an empty name is no missing name")
    };
    assert_eq!(event.reason, DropReason::MissingEventName);
}

#[test]
fn distinct_ids() {
    for (fields, id) in [
        // positions
        (r#""distinct_id":"d","$distinct_id":"x","properties":{"distinct_id":"y"}"#, "d"),
        (r#""$distinct_id":"d","properties":{"distinct_id":"y"}"#, "d"),
        (r#""distinct_id":null,"$distinct_id":"d""#, "d"),
        (r#""distinct_id":null,"$distinct_id":null,"properties":{"distinct_id":"d"}"#, "d"),
        (r#""properties":{"distinct_id":"d"}"#, "d"),
        (r#""properties":{"distinct_id":"x","distinct_id":"d"}"#, "d"),
        (r#""properties":{"distinct_id":"x"},"properties":{"distinct\u005fid":"d"}"#, "d"),
        // types
        (r#""distinct_id":12345"#, "12345"),
        (r#""distinct_id":23.4"#, "23.4"),
        (r#""distinct_id":-1.50e400"#, "-1.50e400"),
        (r#""distinct_id":12345678901234567890123"#, "12345678901234567890123"),
        (r#""distinct_id":true"#, "true"),
        (r#""distinct_id":false"#, "false"),
        (r#""distinct_id":[ "a", "b" ]"#, r#"["a","b"]"#),
        (r#""distinct_id":[]"#, "[]"),
        (r#""distinct_id":{"b":[1.0,2],"a":"\u0041"}"#, r#"{"a":"A","b":[1.0,2]}"#),
        (r#""properties":{"distinct_id":42}"#, "42"),
        // texts
        (r#""distinct_id":" padded ""#, " padded "),
        (r#""distinct_id":"null""#, "null"),
        (r#""distinct_id":"anonymous""#, "anonymous"),
        (r#""distinct_id":"\ud83e\udd86""#, "🦆"),
    ] {
        let event = accepted(&format!(r#"{{"event":"a",{fields}}}"#));
        assert_eq!(event.distinct_id, id, "{fields}");
        assert!(event.warnings.is_empty());
    }
    let cut = "🦆".repeat(200);
    for (sent, id, warning) in [
        (format!("\"{cut}{cut}\""), cut.as_str(), Warning::DistinctIdCut),
        (
            format!("[\"{}\"]", "x".repeat(300)),
            &format!("[\"{}", "x".repeat(198)),
            Warning::DistinctIdCut,
        ),
        (r#""\u0000""#.to_owned(), "\u{fffd}", Warning::TextRepaired),
        (r#""a\udc00""#.to_owned(), "a\u{fffd}", Warning::TextRepaired),
    ] {
        let event = accepted(&format!(r#"{{"event":"a","distinct_id":{sent}}}"#));
        assert_eq!((event.distinct_id.as_str(), event.warnings), (id, vec![warning]));
    }
}

#[test]
fn switches_among_the_properties() {
    let skewed =
        Context { sent_at: DateTime::<Utc>::from_timestamp_micros(NOW + 60_000_000), ..context() };
    for (properties, time) in [
        ("{}", "08:59:00"),
        (r#"{"$ignore_sent_at":true}"#, "09:00:00"),
        (r#"{"$ignore_sent_at":false}"#, "08:59:00"),
        (r#"{"$ignore_sent_at":"true"}"#, "08:59:00"),
        (r#"{"$ignore_sent_at":true,"$ignore_sent_at":1}"#, "08:59:00"),
        (r#"{"a":{"$ignore_sent_at":true}}"#, "08:59:00"),
    ] {
        let raw = format!(
            r#"{{"event":"a","distinct_id":"d","timestamp":"2026-06-01T09:00:00Z","properties":{properties}}}"#
        );
        let event = accepted_in(&raw, &skewed);
        let shown = DateTime::from_timestamp_micros(event.timestamp).unwrap();
        assert_eq!(shown.format("%H:%M:%S").to_string(), time, "{properties}");
    }
    for (value, odd) in
        [("true", false), ("false", false), ("null", true), ("1", true), ("\"true\"", true)]
    {
        let raw = format!(
            r#"{{"event":"a","distinct_id":"d","properties":{{"$cookieless_mode":{value}}}}}"#
        );
        let warnings = accepted(&raw).warnings;
        assert_eq!(warnings.contains(&Warning::CookielessModeNotBoolean), odd, "{value}");
    }
}

#[test]
fn an_empty_list_is_an_object_without_members() {
    for (fields, properties) in [
        (r#""properties":[]"#, "{}"),
        (r#""properties": [ ],"$set":{"a":1}"#, r#"{"$set":{"a":1}}"#),
        (r#""properties":{"b":1},"$set":[],"$set_once":[],"$unset":[]"#, r#"{"b":1,"$unset":[]}"#),
        (r#""properties":{"$set":[],"$groups":[]}"#, r#"{"$set":[],"$groups":[]}"#),
        (r#""properties":{"$set_once":[]},"$set_once":{"a":1}"#, r#"{"$set_once":{"a":1}}"#),
    ] {
        let event = accepted(&format!(r#"{{"event":"a","distinct_id":"d",{fields}}}"#));
        assert_eq!((event.properties.as_str(), event.warnings), (properties, vec![]), "{fields}");
    }
    let group = r#"{"event":"$groupidentify","distinct_id":"d","properties":
        {"$group_type":"company","$group_key":"acme","$group_set":[]}}"#;
    assert_eq!(accepted(group).warnings, []);
    let list = r#"{"event":"a","distinct_id":"d","properties":[[]]}"#;
    assert_eq!(dropped(list).reason, DropReason::InvalidProperties);
}

#[test]
fn one_event_has_several_warnings() {
    let raw = format!(
        r#"{{"event":"{}","distinct_id":"{}","timestamp":"noon","$set":1,
            "properties":{{"$cookieless_mode":"\ud800"}}}}"#,
        "n".repeat(201),
        "d".repeat(201)
    );
    assert_eq!(
        accepted(&raw).warnings,
        [
            Warning::TextRepaired,
            Warning::EventNameCut,
            Warning::DistinctIdCut,
            Warning::InvalidTimestamp,
            Warning::CookielessModeNotBoolean,
            Warning::InvalidPersonUpdate,
        ]
    );
    assert_eq!(accepted(&raw).timestamp, NOW);
}

/// An event whose fields have arbitrary types.
fn any_event() -> impl Strategy<Value = String> {
    let names = [
        "event",
        "distinct_id",
        "$distinct_id",
        "uuid",
        "properties",
        "timestamp",
        "offset",
        "$set",
        "$set_once",
        "$unset",
        "other",
    ];
    let value = prop_oneof![
        crate::any_json::any_json().prop_map(|value| value.to_string()),
        prop::sample::select(vec![
            "null",
            "\"\"",
            "\"a\"",
            "\"$snapshot\"",
            "{}",
            "{\"$set\":{\"a\":1},\"$unset\":[\"b\"]}",
            "{\"distinct_id\":\"d\",\"$ip\":1}",
            "\"2026-06-01T09:00:00Z\"",
            "1780308000",
            "\"\\ud83e\"",
            "{\"\\u0000\":\"\\udfff\"}",
            "[\"x\"]",
            "\"0197c2f4-1c10-7d20-8e30-4f5061728394\"",
        ])
        .prop_map(str::to_owned),
    ];
    let field = (prop::sample::select(names.to_vec()), value);
    prop::collection::vec(field, 0..12).prop_map(|fields| {
        let fields: Vec<_> =
            fields.into_iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
        format!("{{{}}}", fields.join(","))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_event_gets_a_sound_decision(raw in any_event(), engage in any::<bool>(), address in any::<bool>()) {
        let context = Context {
            engage,
            client_address: address.then(|| "192.0.2.7".to_owned()),
            sent_at: DateTime::<Utc>::from_timestamp_micros(NOW + 1),
            ..context()
        };
        match decided(&raw, &context) {
            Decision::Accept(event) => {
                prop_assert!((1..=200).contains(&event.event.chars().count()));
                prop_assert!((1..=200).contains(&event.distinct_id.chars().count()));
                let properties: Value = serde_json::from_str(&event.properties).unwrap();
                prop_assert!(properties.is_object());
                prop_assert_eq!(properties.get("$ip").is_some() || !address, true);
                prop_assert!(!event.event.contains('\0') && !event.distinct_id.contains('\0'));
                prop_assert!(!event.properties.contains("\\u0000"));
            }
            Decision::Drop(event) => prop_assert_eq!(event.sample, &raw[..raw.len().min(4096)]),
        }
    }
}

#[test]
fn an_event_beyond_a_limit_is_dropped_with_that_reason_unless_it_has_its_own() {
    for (raw, reason) in [
        (r#"{"event": "e", "distinct_id": "d"}"#, DropReason::OverMonthlyLimit),
        (r#"{"event": "e"}"#, DropReason::MissingDistinctId),
    ] {
        let event = RawEvent::parse(raw).unwrap();
        match drop_over_limit(&event, DropReason::OverMonthlyLimit, &context()) {
            Decision::Drop(dropped) => {
                assert_eq!((dropped.reason, dropped.sample.as_str()), (reason, raw));
            }
            Decision::Accept(event) => unreachable!("{raw} was accepted: {event:?}"),
        }
    }
}
