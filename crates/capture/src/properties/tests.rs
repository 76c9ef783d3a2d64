use weir_model::outcomes::Warning;

use crate::Context;
use crate::decide::tests::{accepted, accepted_in, context};

#[test]
fn properties_stay_as_sent() {
    for sent in [
        "{}",
        r#"{"a":1}"#,
        r#"{ "big" : 12345678901234567890123, "e":1E400, "z":-0.0, "f":120.0 }"#,
        r#"{"$elements":"a","$elements_chain":7}"#,
        r#"{"a":1,"a":2}"#,
        r#"{"$set":{"x":1},"$set_once":7}"#,
    ] {
        let event = accepted(&format!(r#"{{"event":"a","distinct_id":"d","properties":{sent}}}"#));
        assert_eq!(event.properties, sent);
    }
    for fields in ["", r#","properties":null"#, r#","properties":{}"#] {
        assert_eq!(
            accepted(&format!(r#"{{"event":"a","distinct_id":"d"{fields}}}"#)).properties,
            "{}"
        );
    }
    let event = accepted(
        r#"{"event":"a","distinct_id":"d","properties":{"\u0000":"\ud83e\udd86","b":["\ud83e",1.50]}}"#,
    );
    assert_eq!(event.properties, "{\"\u{fffd}\":\"\\ud83e\\udd86\",\"b\":[\"\u{fffd}\",1.50]}");
    assert_eq!(event.warnings, [Warning::TextRepaired]);
}

#[test]
fn person_updates_move_into_the_properties() {
    const ODD: &[Warning] = &[Warning::InvalidPersonUpdate];
    for (top, properties, expected, warnings) in [
        // only one of the two
        (r#""$set":{"a":1}"#, "{}", r#"{"$set":{"a":1}}"#, &[][..]),
        (r#""$set":{"a":1}"#, r#"{"p":2}"#, r#"{"p":2,"$set":{"a":1}}"#, &[]),
        (r#""$set_once":{"a":1.0}"#, "{}", r#"{"$set_once":{"a":1.0}}"#, &[]),
        (r#""$unset":["a"]"#, "{}", r#"{"$unset":["a"]}"#, &[]),
        (r#""$unset":{"a":""}"#, "{}", r#"{"$unset":{"a":""}}"#, &[]),
        (
            r#""$set":{"a":1},"$set_once":{"b":2},"$unset":["c"]"#,
            "{}",
            r#"{"$set":{"a":1},"$set_once":{"b":2},"$unset":["c"]}"#,
            &[],
        ),
        // both: the top level takes precedence for each name
        (
            r#""$set":{"b":20,"c":30}"#,
            r#"{"$set":{"a":1,"b":2},"p":0}"#,
            r#"{"$set":{"a":1,"b":20,"c":30},"p":0}"#,
            &[],
        ),
        (
            r#""$set":{"\u0062":20}"#,
            r#"{"$set" : {"a" : 1.50, "b":2 } }"#,
            r#"{"$set" : {"a":1.50,"b":20} }"#,
            &[],
        ),
        (r#""$set":{}"#, r#"{"$set":{}}"#, r#"{"$set":{}}"#, &[]),
        (r#""$set":{"a":1}"#, r#"{"$set":7}"#, r#"{"$set":{"a":1}}"#, ODD),
        (r#""$unset":null"#, r#"{"$unset":"a"}"#, r#"{"$unset":"a"}"#, ODD),
        (r#""$set":{"a":1}"#, r#"{"$set":null}"#, r#"{"$set":{"a":1}}"#, &[]),
        (
            r#""$set":{"a":1}"#,
            r#"{"$set":{"b":0},"$set":{"c":0}}"#,
            r#"{"$set":{"b":0},"$set":{"c":0,"a":1}}"#,
            &[],
        ),
        (r#""$unset":["b","c"]"#, r#"{"$unset":["a","b"]}"#, r#"{"$unset":["a","b","c"]}"#, &[]),
        (r#""$unset":["b"]"#, r#"{"$unset":{"a":1}}"#, r#"{"$unset":["a","b"]}"#, &[]),
        // empty or invalid values
        (r#""$set":null,"$set_once":null,"$unset":null"#, r#"{"p":1}"#, r#"{"p":1}"#, &[]),
        (r#""$set":7,"$set_once":[]"#, r#"{"$set":{"a":1}}"#, r#"{"$set":{"a":1}}"#, ODD),
        (r#""$unset":"a""#, "{}", "{}", ODD),
    ] {
        let raw = format!(r#"{{"event":"a","distinct_id":"d","properties":{properties},{top}}}"#);
        let event = accepted(&raw);
        assert_eq!(event.properties, expected, "{raw}");
        assert_eq!(event.warnings, warnings, "{raw}");
        // The order of the fields makes no difference.
        let turned =
            format!(r#"{{{top},"properties":{properties},"distinct_id":"d","event":"a"}}"#);
        assert_eq!(accepted(&turned).properties, expected);
    }
}

#[test]
fn the_address_is_added_where_none_is() {
    let context = Context { client_address: Some("2001:db8::7".to_owned()), ..context() };
    for (properties, expected) in [
        ("{}", r#"{"$ip":"2001:db8::7"}"#),
        (r#"{"a":1}"#, r#"{"a":1,"$ip":"2001:db8::7"}"#),
        (r#"{"$ip":"198.51.100.1"}"#, r#"{"$ip":"198.51.100.1"}"#),
        (r#"{"\u0024ip":null}"#, r#"{"\u0024ip":null}"#),
        (r#"{"a":{"$ip":"x"}}"#, r#"{"a":{"$ip":"x"},"$ip":"2001:db8::7"}"#),
        // Not a special property here.
        (r#"{"capture_internal":true}"#, r#"{"capture_internal":true,"$ip":"2001:db8::7"}"#),
        (r#"{"$geoip_disable":true}"#, r#"{"$geoip_disable":true,"$ip":"2001:db8::7"}"#),
    ] {
        let raw = format!(r#"{{"event":"a","distinct_id":"d","properties":{properties}}}"#);
        assert_eq!(accepted_in(&raw, &context).properties, expected);
        assert_eq!(accepted(&raw).properties, properties);
    }
    let odd = Context { client_address: Some("\"\\".to_owned()), ..context };
    let event = accepted_in(r#"{"event":"a","distinct_id":"d","$set":{}}"#, &odd);
    assert_eq!(event.properties, r#"{"$set":{},"$ip":"\"\\"}"#);
}
