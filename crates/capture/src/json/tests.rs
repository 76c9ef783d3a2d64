use proptest::prelude::*;
use serde_json::Value;

use super::{Cursor, Fault, Limits, canonical, push_string, repair, string, unescape, with_member};

/// Walks one value; returns its text, the number of keys and whether it needs repair.
fn walk(json: &str, limits: Limits) -> Result<(&str, usize, bool), Fault> {
    let mut cursor = Cursor::new(json, limits);
    let text = cursor.value()?;
    Ok((text, cursor.keys, cursor.needs_repair()))
}

#[test]
fn values_end_where_they_end() {
    for (json, value) in [
        ("1,2", "1"),
        (" -1.5e+300 ", "-1.5e+300"),
        ("true}", "true"),
        ("null]", "null"),
        ("\"a,b\",1", "\"a,b\""),
        (r#""a\"}b" ,"#, r#""a\"}b""#),
        (r#"{"a":[1,{"b":"]}"}],"c":"\\"},2"#, r#"{"a":[1,{"b":"]}"}],"c":"\\"}"#),
        ("[[],[{}]] ", "[[],[{}]]"),
    ] {
        assert_eq!(walk(json, Limits::EVENT).unwrap().0, value, "{json}");
    }
}

#[test]
fn walks_members_in_order_and_keeps_repeats() {
    let json = r#" { "a" : 1 , "b\u0063" : { "x" : [ ] } , "a" : "2" , "" : null } "#;
    let mut seen = Vec::new();
    let mut cursor = Cursor::new(json, Limits::EVENT);
    let walked = cursor.object(|key, cursor| {
        seen.push((key.text().into_owned(), cursor.value()?));
        Ok(())
    });
    assert_eq!(walked, Ok(()));
    let expected = [("a", "1"), ("bc", r#"{ "x" : [ ] }"#), ("a", "\"2\""), ("", "null")];
    assert_eq!(seen, expected.map(|(key, value)| (key.to_owned(), value)));
    assert_eq!(cursor.keys, 5);
}

#[test]
fn depth_counts_objects_and_lists() {
    let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    assert!(walk(&nested(64), Limits::EVENT).is_ok());
    assert_eq!(walk(&nested(65), Limits::EVENT), Err(Fault::TooDeep));
    assert!(walk(&nested(100_000), Limits::NONE).is_ok());
    // Values next to each other are not nested.
    assert!(walk(&format!("[{}{{}}]", "[],{},".repeat(1000)), Limits::EVENT).is_ok());
}

#[test]
fn keys_count_over_all_levels() {
    let object = |keys: usize| {
        let inner: Vec<_> = (2..=keys).map(|key| format!("\"k{key}\":\":\"")).collect();
        format!("{{\"outer\":[{{{}}}]}}", inner.join(","))
    };
    assert_eq!(walk(&object(10_000), Limits::EVENT).unwrap().1, 10_000);
    assert_eq!(walk(&object(10_001), Limits::EVENT), Err(Fault::TooManyKeys));
    assert_eq!(walk(&object(10_001), Limits::NONE).unwrap().1, 10_001);
}

#[test]
fn repair_replaces_what_no_text_can_hold() {
    // Sent, repaired (`None`: nothing to repair), decoded.
    for (sent, repaired, text) in [
        (r"a\u0000b", Some("a\u{fffd}b"), "a\u{fffd}b"),
        (r"\uD83E", Some("\u{fffd}"), "\u{fffd}"),
        (r"\ud83e\n", Some("\u{fffd}\\n"), "\u{fffd}\n"),
        (r"\uDD86x", Some("\u{fffd}x"), "\u{fffd}x"),
        (r"\uDD86\uD83E", Some("\u{fffd}\u{fffd}"), "\u{fffd}\u{fffd}"),
        (r"\uD83E\uD83E\uDD86", Some("\u{fffd}\\uD83E\\uDD86"), "\u{fffd}🦆"),
        (r"\uD83E\u0041", Some("\u{fffd}\\u0041"), "\u{fffd}A"),
        (r"\ud83e\udd86", None, "🦆"),
        (r"\\u0000", None, r"\u0000"),
        (r"\\\u00e9\/\b\f\r\t", None, "\\é/\u{8}\u{c}\r\t"),
        (r"\u0001", None, "\u{1}"),
        ("plain é", None, "plain é"),
        ("", None, ""),
    ] {
        for json in [format!("\"{sent}\""), format!("{{\"{sent}\":[1]}}")] {
            assert_eq!(walk(&json, Limits::EVENT).unwrap().2, repaired.is_some(), "{json}");
            let expected = json.replace(sent, repaired.unwrap_or(sent));
            assert_eq!(repair(&json), expected);
            assert!(serde_json::from_str::<Value>(&expected).is_ok(), "{expected}");
        }
        assert_eq!(unescape(sent), text, "{sent}");
        assert_eq!(string(&format!("\"{sent}\"")).unwrap(), text);
    }
    for other in ["1", "null", "{\"a\":\"b\"}", "[\"a\"]", "\"", ""] {
        assert_eq!(string(other), None, "{other}");
    }
}

#[test]
fn canonical_text() {
    for (json, expected) in [
        ("23.4", "23.4"),
        ("23.40", "23.40"),
        ("12345678901234567890123", "12345678901234567890123"),
        (" true ", "true"),
        ("[ \"a\" , \"b\" ]", "[\"a\",\"b\"]"),
        ("{\"b\":1,\"a\":{\"d\":[],\"c\":{}}}", "{\"a\":{\"c\":{},\"d\":[]},\"b\":1}"),
        ("{\"a\":1,\"b\":2,\"\\u0061\":3}", "{\"a\":3,\"b\":2}"),
        ("\"\\u00e9\\/\\n\\u0001\"", "\"é/\\n\\u0001\""),
        ("{ }", "{}"),
        ("[ ]", "[]"),
    ] {
        assert_eq!(canonical(json).unwrap(), expected);
    }
    assert_eq!(canonical(&"[".repeat(65)), Err(Fault::TooDeep));
    for broken in ["", "{", "[1", "{\"a\"}", "{\"a\":}", "{1:2}", "\"a", "\"\\x\""] {
        assert_eq!(canonical(broken), Err(Fault::Malformed), "{broken}");
    }
}

#[test]
fn adding_a_member() {
    for (object, expected) in [
        ("{}", "{\"$k\":7}"),
        ("{ \n}", "{ \n\"$k\":7}"),
        ("{\"a\":{}}", "{\"a\":{},\"$k\":7}"),
        ("{\"a\":\"{\" } ", "{\"a\":\"{\" ,\"$k\":7}"),
    ] {
        assert_eq!(with_member(object, "$k", "7"), expected);
    }
}

/// JSON with all kinds of names, texts and numbers, a few levels deep.
pub(crate) fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "[a-z$\\\\\"\u{0}é🦆]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::hash_map(".{0,4}", inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn count_keys(value: &Value) -> usize {
    match value {
        Value::Object(map) => map.len() + map.values().map(count_keys).sum::<usize>(),
        Value::Array(list) => list.iter().map(count_keys).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn agrees_with_a_full_parser(value in any_json()) {
        let compact = value.to_string();
        let pretty = serde_json::to_string_pretty(&value).unwrap();
        for json in [&compact, &pretty] {
            let (text, keys, _) = walk(json, Limits::EVENT).unwrap();
            prop_assert_eq!(text, json);
            prop_assert_eq!(keys, count_keys(&value));
        }
        let once = canonical(&pretty).unwrap();
        prop_assert_eq!(&once, &canonical(&compact).unwrap());
        prop_assert_eq!(&once, &canonical(&once).unwrap());
        if !compact.contains("\\u0000") {
            // Both are parsed, because the parser rounds some floats.
            let [before, after] = [&compact, &once].map(|json| json.parse::<Value>().unwrap());
            prop_assert_eq!(before, after);
            prop_assert_eq!(repair(&compact), compact);
        }
    }

    #[test]
    fn texts_survive_quoting(text in any::<String>()) {
        let mut quoted = String::new();
        push_string(&mut quoted, &text);
        prop_assert_eq!(serde_json::from_str::<String>(&quoted).unwrap(), text.clone());
        prop_assert_eq!(string(&quoted).unwrap(), text.replace('\0', "\u{fffd}"));
    }

    #[test]
    fn any_escapes_become_readable(text in r#"(\\u[dD][89a-fA-F][0-9a-f]{2}|\\u00[0-9]{2}|\\n|x){0,12}"#) {
        let json = format!("{{\"{text}\":\"{text}\"}}");
        let repaired = repair(&json);
        let value: Value = serde_json::from_str(&repaired).unwrap();
        prop_assert!(!walk(&repaired, Limits::EVENT).unwrap().2);
        prop_assert_eq!(value[unescape(&text).as_ref()].as_str().unwrap(), unescape(&text));
    }

    #[test]
    fn nonsense_does_no_harm(text in r#"[\[\]{}:,"\\u0d8é 1]{0,60}"#) {
        let _ = walk(&text, Limits::EVENT);
        let _ = canonical(&text);
        let _ = repair(&text);
        let _ = unescape(&text);
        let _ = with_member(&text, "a", "1");
        let _ = Cursor::new(&text, Limits::NONE).object(|_, cursor| cursor.range().map(drop));
    }
}
