use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use uuid::Uuid;
use weir_model::outcomes::{DropReason, Warning};

use super::{CookielessKey, SENTINEL, is_cookieless_id};
use crate::decide::tests::{accepted_in, context};
use crate::{Context, Decision, RawEvent, decide, with_properties};

const KEY: Uuid = Uuid::from_u128(7);

fn visited() -> Context {
    let client_address = Some("192.0.2.7".to_owned());
    Context { client_address, cookieless_key: CookielessKey::of_visitor(|| KEY), ..context() }
}

/// An event as the library sends it, with these properties too.
fn page_view(host: &str, more: &str) -> String {
    format!(
        r#"{{"event":"$pageview","properties":{{"distinct_id":"$posthog_cookieless",
            "$device_id":null,"$cookieless_mode":true,"$host":"{host}",
            "$raw_user_agent":"Firefox"{more}}}}}"#
    )
}

#[test]
fn a_visitor_has_one_id_for_a_key_and_a_site() {
    let id = |raw: &str, context: &Context| accepted_in(raw, context).distinct_id;
    let first = id(&page_view("shop.example", ""), &visited());
    assert!(first.starts_with("cookieless_"), "{first}");
    assert_eq!(id(&page_view("shop.example", r#","a":1"#), &visited()), first);
    assert_ne!(id(&page_view("blog.example", ""), &visited()), first);
    let other = CookielessKey::of_visitor(|| Uuid::from_u128(8));
    let other = Context { cookieless_key: other, ..visited() };
    assert_ne!(id(&page_view("shop.example", ""), &other), first);
    // Beside the properties, and without the mode.
    let plain = r#"{"event":"a","distinct_id":"$posthog_cookieless",
        "properties":{"$host":"shop.example"}}"#;
    assert_eq!(id(plain, &visited()), first);
}

#[test]
fn nothing_that_tells_visitors_apart_is_stored() {
    let event =
        accepted_in(&page_view("shop.example", r#","$ip":"192.0.2.7","a":1.50"#), &visited());
    assert_eq!(
        event.properties,
        format!(
            r#"{{"distinct_id":"{}","$device_id":null,"$cookieless_mode":true,"$host":"shop.example","a":1.50}}"#,
            event.distinct_id
        )
    );
    let identified = r#"{"event":"a","distinct_id":"ada","properties":{"$cookieless_mode":true}}"#;
    let event = accepted_in(identified, &visited());
    assert_eq!(event.distinct_id, "ada");
    assert_eq!(event.properties, r#"{"$cookieless_mode":true}"#);
    let usual = r#"{"event":"a","distinct_id":"ada","properties":{"$cookieless_mode":false}}"#;
    assert!(accepted_in(usual, &visited()).properties.contains("192.0.2.7"));
}

#[test]
fn updates_of_the_person_have_no_traces_either() {
    let raw = r#"{"event":"$set","distinct_id":"$posthog_cookieless",
        "$set":{"$ip":"192.0.2.7","top":1},"properties":{"$cookieless_mode":true,
        "$set":{"$raw_user_agent":"Firefox","inner":2},"$set_once":{"\u0024ip":"192.0.2.7"}}}"#;
    let event = accepted_in(raw, &visited());
    assert_eq!(
        event.properties,
        r#"{"$cookieless_mode":true,"$set":{"inner":2,"top":1},"$set_once":{}}"#
    );
    // A transformation of the event gets no further.
    let traces = r#"{"$cookieless_mode":true,"$ip":"192.0.2.7","$set":{"$ip":"192.0.2.7"}}"#;
    let changed = with_properties(&event, traces, false).unwrap().unwrap();
    assert_eq!(changed.properties, r#"{"$cookieless_mode":true,"$set":{}}"#);
}

#[test]
fn the_uuid_does_not_follow_from_the_traces() {
    let uuid = |trace: &str| {
        let timed = page_view("shop.example", trace).replacen(
            '{',
            r#"{"timestamp":"2026-06-01T09:00:00Z","#,
            1,
        );
        accepted_in(&timed, &visited()).uuid
    };
    let without = uuid("");
    assert_eq!(uuid(r#","$ip":"192.0.2.7""#), without);
    assert_eq!(uuid(r#","$raw_user_agent":"Chrome""#), without);
    assert_ne!(uuid(r#","a":1"#), without);
}

#[test]
fn dropped_events_are_shown_without_traces() {
    let dropped = |raw: &str| match decide(&RawEvent::parse(raw).unwrap(), &visited()) {
        Decision::Drop(event) => event,
        Decision::Accept(event) => unreachable!("{event:?}"),
    };
    let traces = r#""$ip":"192.0.2.7","$raw_user_agent":"Firefox","$set":{"$ip":"192.0.2.7"}"#;
    let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
    for (fields, reason, shown) in [
        (
            format!(r#""uuid":"no","properties":{{"$cookieless_mode":true,{traces},"a":1}}"#),
            DropReason::InvalidUuid,
            r#"{"event":"a","distinct_id":"ada","uuid":"no","properties":{"$cookieless_mode":true,"$set":{},"a":1}}"#,
        ),
        (
            format!(r#""uuid":"no","properties":{{"alias":"$posthog_cookieless",{traces}}}"#),
            DropReason::InvalidUuid,
            r#"{"event":"a","distinct_id":"ada","uuid":"no","properties":{"alias":"$posthog_cookieless","$set":{}}}"#,
        ),
        (
            format!(r#""distinct_id":"$posthog_cookieless","uuid":"no","properties":{{{traces}}}"#),
            DropReason::InvalidUuid,
            r#"{"event":"a","distinct_id":"ada","distinct_id":"$posthog_cookieless","uuid":"no","properties":{"$set":{}}}"#,
        ),
        (
            r#""$set":{"$ip":1},"uuid":"no","properties":{"$cookieless_mode":true}"#.to_owned(),
            DropReason::InvalidUuid,
            r#"{"event":"a","distinct_id":"ada","$set":{},"uuid":"no","properties":{"$cookieless_mode":true}}"#,
        ),
        // Properties that are no object can hide an address.
        (
            r#""distinct_id":"$posthog_cookieless","properties":"{\"$ip\":\"192.0.2.7\"}""#
                .to_owned(),
            DropReason::InvalidProperties,
            "",
        ),
        // Other visitors are shown as they were sent.
        (
            r#""uuid":"no","properties":{"$cookieless_mode":false,"$ip":1}"#.to_owned(),
            DropReason::InvalidUuid,
            r#"{"event":"a","distinct_id":"ada","uuid":"no","properties":{"$cookieless_mode":false,"$ip":1}}"#,
        ),
    ] {
        let event = dropped(&format!(r#"{{"event":"a","distinct_id":"ada",{fields}}}"#));
        assert_eq!((event.reason, event.sample.as_str()), (reason, shown), "{fields}");
    }
    // An event beyond the limits is not read, but it is searched.
    let raw = page_view("shop.example", &format!(r#","deep":{deep}"#));
    let event = dropped(&raw);
    assert_eq!(event.reason, DropReason::TooDeep);
    assert!(event.sample.contains("shop.example"), "{}", event.sample);
    assert!(!event.sample.contains("Firefox"), "{}", event.sample);
}

#[test]
fn nothing_is_merged_with_visitors() {
    for (name, property) in [
        ("$identify", "$anon_distinct_id"),
        ("$create_alias", "alias"),
        ("$merge_dangerously", "alias"),
    ] {
        let raw = format!(
            r#"{{"event":"{name}","distinct_id":"ada","properties":
                {{"{property}":"$posthog_cookieless","$host":"shop.example"}}}}"#
        );
        let event = accepted_in(&raw, &visited());
        assert_eq!(event.distinct_id, "ada");
        assert_eq!(event.properties, r#"{"$host":"shop.example"}"#, "{name}");
        assert_eq!(event.warnings, [Warning::MergeIdIllegal], "{name}");
    }
    let visitor = accepted_in(&page_view("shop.example", ""), &visited()).distinct_id;
    for id in [SENTINEL, visitor.as_str()] {
        assert!(is_cookieless_id(id), "{id}");
    }
    for id in ["ada", "cookieless_ada", "$posthog_cookieless_", ""] {
        assert!(!is_cookieless_id(id), "{id}");
    }
}

#[test]
fn the_key_is_computed_once_and_only_if_needed() {
    let computed = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&computed);
    let cookieless_key = CookielessKey::of_visitor(move || {
        counter.fetch_add(1, Ordering::Relaxed);
        KEY
    });
    let context = Context { cookieless_key, ..context() };
    accepted_in(r#"{"event":"a","distinct_id":"ada"}"#, &context);
    accepted_in(
        r#"{"event":"a","distinct_id":"ada","properties":{"$cookieless_mode":true}}"#,
        &context,
    );
    assert_eq!(computed.load(Ordering::Relaxed), 0);
    for _ in 0..2 {
        accepted_in(&page_view("shop.example", ""), &context);
    }
    assert_eq!(computed.load(Ordering::Relaxed), 1);
    assert!(!format!("{context:?}").contains(&KEY.to_string()));
}

#[test]
fn without_a_key_the_event_has_no_distinct_id() {
    let raw = page_view("shop.example", "");
    match decide(&RawEvent::parse(&raw).unwrap(), &context()) {
        Decision::Drop(event) => assert_eq!(event.reason, DropReason::MissingDistinctId),
        Decision::Accept(event) => unreachable!("{event:?}"),
    }
}

#[test]
fn an_event_that_was_accepted_with_the_id_of_all_visitors_keeps_it() {
    let cookieless_key = CookielessKey::of_accepted(SENTINEL);
    let event =
        accepted_in(&page_view("shop.example", ""), &Context { cookieless_key, ..context() });
    assert_eq!(event.distinct_id, SENTINEL);
    assert!(event.properties.contains(r#""distinct_id":"$posthog_cookieless""#), "{event:?}");
    let changed =
        with_properties(&event, r#"{"distinct_id":"$posthog_cookieless","$ip":1}"#, false);
    assert_eq!(changed.unwrap().unwrap().properties, r#"{"distinct_id":"$posthog_cookieless"}"#);
}
