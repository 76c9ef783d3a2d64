use uuid::Uuid;
use weir_model::outcomes::DropReason;

use super::without_traces;
use crate::decide::tests::{accepted_in, context};
use crate::{Context, Decision, RawEvent, decide};

const KEY: Uuid = Uuid::from_u128(7);

fn visited() -> Context {
    Context { client_address: Some("192.0.2.7".to_owned()), cookieless_key: Some(KEY), ..context() }
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
    let other = Context { cookieless_key: Some(Uuid::from_u128(8)), ..visited() };
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
fn merges_name_the_visitor_and_never_all_visitors() {
    let visitor = accepted_in(&page_view("shop.example", ""), &visited()).distinct_id;
    for property in ["$anon_distinct_id", "alias"] {
        let raw = format!(
            r#"{{"event":"$identify","distinct_id":"ada","properties":
                {{"{property}":"$posthog_cookieless","$host":"shop.example"}}}}"#
        );
        let event = accepted_in(&raw, &visited());
        assert_eq!(event.distinct_id, "ada");
        assert!(event.properties.contains(&format!(r#""{property}":"{visitor}""#)), "{event:?}");
    }
    let removed = without_traces(r#"{"alias":"$posthog_cookieless","a":1}"#, None);
    assert_eq!(removed.unwrap(), r#"{"a":1}"#);
}

#[test]
fn without_a_key_the_event_has_no_distinct_id() {
    let raw = page_view("shop.example", "");
    match decide(&RawEvent::parse(&raw).unwrap(), &context()) {
        Decision::Drop(event) => assert_eq!(event.reason, DropReason::MissingDistinctId),
        Decision::Accept(event) => unreachable!("{event:?}"),
    }
}
