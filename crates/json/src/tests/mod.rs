use std::borrow::Cow;

use proptest::prelude::*;
use serde_json::Value;

use super::{
    Cursor, Edits, Escape, Fault, Limits, Members, ObjectWriter, Part, Token, Tokens, Weight,
    is_deeper_than, is_empty_list, member, push_string, quoted, repair, replace_escapes,
    replace_strings, rewrite, string, string_lossy, take_member, weigh, with_member,
    without_members,
};

mod any_json;

use any_json::any_json;

fn canonical(json: &str) -> Result<String, Fault> {
    super::canonical(json, Limits::EVENT)
}

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
        let json = format!("\"{sent}\"");
        assert_eq!(string_lossy(&json).unwrap(), text, "{sent}");
        // The exact text is the one that a full parser reads, if it reads one.
        assert_eq!(string(&json).map(Cow::into_owned), serde_json::from_str(&json).ok(), "{sent}");
    }
    for other in ["1", "null", "{\"a\":\"b\"}", "[\"a\"]", "\"", ""] {
        assert_eq!((string_lossy(other), string(other)), (None, None), "{other}");
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

#[test]
fn removing_members() {
    let object = r#"{ "a": 1.0, "b\u0063" : [2], "a":"x" , "d":{"a":3} }"#;
    assert_eq!(
        take_member(object, "a").unwrap(),
        (r#"{"b\u0063":[2],"d":{"a":3}}"#.into(), "\"x\"")
    );
    assert_eq!(take_member("{}", "a").unwrap(), ("{}".to_owned(), "null"));
    assert_eq!(without_members(object, &["bc", "a"]).unwrap(), r#"{"d":{"a":3}}"#);
    assert_eq!(without_members("[]", &["a"]), Err(Fault::Malformed));
    assert_eq!((member(object, "a"), member(object, "bc")), (Some("\"x\""), Some("[2]")));
    assert_eq!((member(object, "e"), member("[]", "a")), (None, None));
}

#[test]
fn members_are_read_with_their_digits() {
    let json = r#"{"a":12345678901234567890123,"b\u0041":{"x":{"y":1.10}},"c":null,"a":2}"#;
    let members = Members::parse(json).unwrap();
    assert_eq!((members.count(), members.get("a"), members.get("c")), (4, Some("2"), Some("null")));
    assert_eq!(members.at(&["bA".into(), "x".into(), "y".into()]), Some("1.10"));
    assert_eq!((members.at(&["a".into(), "x".into()]), members.at(&[])), (None, None));
    let first = members.into_iter().next();
    assert_eq!(first, Some((Cow::Borrowed("a"), "12345678901234567890123")));
    for other in ["[]", "1", "{", r#"{"\ud800":1}"#] {
        assert!(Members::parse(other).is_err(), "{other}");
        assert_eq!(Members::of(other).count(), 0, "{other}");
    }
}

#[test]
fn a_written_object_is_read_back() {
    let mut out = "[".to_owned();
    ObjectWriter::begin(&mut out).end();
    out.push(',');
    let mut object = ObjectWriter::begin(&mut out);
    object.json("a\"", "1.0");
    object.text("b", "x\n");
    ObjectWriter::begin(object.name("c")).end();
    object.end();
    assert_eq!(out, r#"[{},{"a\"":1.0,"b":"x\n","c":{}}"#);
}

#[test]
fn what_json_cannot_hold_is_escaped() {
    assert_eq!(quoted("a\"\\\n\r\t\u{1}ä\u{7f}"), "\"a\\\"\\\\\\n\\r\\t\\u0001ä\u{7f}\"");
    for (json, expected) in [("[]", true), (" [ \n] ", true), ("[1]", false), ("{}", false)] {
        assert_eq!(is_empty_list(json), expected, "{json}");
    }
}

#[test]
fn tokens_of_a_text() {
    let json = r#" {"a\"{":[-1.5e+3,true ,null]}"#;
    let tokens: Vec<_> =
        Tokens::of(json.as_bytes()).map(|(token, at)| (token, &json[at])).collect();
    let mark = |mark: &'static str| (Token::Mark(mark.as_bytes()[0]), mark);
    let expected = [
        mark("{"),
        (Token::String, r#""a\"{""#),
        mark(":"),
        mark("["),
        (Token::Number, "-1.5e+3"),
        mark(","),
        (Token::Word, "true"),
        mark(","),
        (Token::Word, "null"),
        mark("]"),
        mark("}"),
    ];
    assert_eq!(tokens, expected);
}

#[test]
fn structure_is_weighed_outside_of_texts() {
    for (json, depth, keys, values, objects) in [
        ("1", 0, 0, 1, 0),
        ("{}", 1, 0, 1, 1),
        (r#"{"a:{[":"\":{[","b":{"c":[[]]}}"#, 4, 3, 5, 2),
        (r#"["a\\",{"b":1}]"#, 2, 1, 4, 1),
        ("[true,null,-1e5]", 1, 0, 4, 0),
    ] {
        assert_eq!(weigh(json.as_bytes()), Weight { depth, keys, values, objects }, "{json}");
        assert!(is_deeper_than(json.as_bytes(), depth.saturating_sub(1)) == (depth > 0), "{json}");
        assert!(!is_deeper_than(json.as_bytes(), depth), "{json}");
    }
    assert!(!is_deeper_than(br#"{"a":"[[[[\"[["}"#, 1));
    assert!(is_deeper_than(b"\xff[[", 1));
}

#[test]
fn the_end_of_a_broken_text_hides_no_values() {
    let begins = r#"[{"":0},{"":0}"#;
    for end in ["::::::::", r#","":"":"":"#, "}}}}]]]]", r#"\":":"#, ":1:2:3"] {
        let weight = weigh(format!("{begins}{end}").as_bytes());
        assert!(weight.values >= 5 && weight.objects == 2, "{end} {weight:?}");
    }
    assert!(weigh(b"\xff[{}").values >= 3);
}

#[test]
fn only_what_is_replaced_changes() {
    let json = r#"{ "n\u0000" : [1.50, "2\ud83d", 3] }"#;
    assert_eq!(rewrite(json, |_| None), None);
    let changed = rewrite(json, |part| match part {
        Part::Escape(escape) => Some(if escape == Escape::Nul { "" } else { "?" }.into()),
        Part::Number(number) => (number == "1.50").then(|| format!("\"{number}\"").into()),
    });
    assert_eq!(changed.as_deref(), Some(r#"{ "n" : ["1.50", "2?", 3] }"#));
    for (json, expected) in [
        (r#""\\ud800 \u00e4 \ud83d\ude00 \\u0000 \n""#, None),
        (r#""\ude00ä\ud83d\ud83d\ude00\u0000b""#, Some(r#""\ufffdä\ufffd\ud83d\ude00\ufffdb""#)),
        // Not valid JSON.
        (r#""\ud83d\""#, Some(r#""\ufffd\""#)),
        (r#""\u+12 \ud83d""#, Some(r#""\u+12 \ufffd""#)),
    ] {
        let replaced = replace_escapes(json, |escape| escape.needs_repair().then_some("\\ufffd"));
        assert_eq!(replaced.as_deref(), expected, "{json}");
    }
    let mut edits = Edits::of("abcdef");
    edits.replace(1..4, "x");
    edits.replace(2..3, "inside of a replaced range");
    edits.replace(5..6, "");
    assert_eq!(edits.finish().as_deref(), Some("axe"));
}

#[test]
fn only_values_are_replaced() {
    let mut upper = |text: &str| Some(text.to_uppercase());
    let json = r#"[ {"a" : "b\\", "c":["\"d\u00e4", 12345678901234567890]}, "", "E"]"#;
    assert_eq!(
        replace_strings(json, &mut upper).unwrap(),
        r#"[ {"a" : "B\\", "c":["\"DÄ", 12345678901234567890]}, "", "E"]"#
    );
    assert_eq!(replace_strings("[1, null]", &mut upper), None);
    assert_eq!(replace_strings("\"A\"", &mut upper), None);
}

/// Values and objects at all levels.
fn count_values(value: &Value) -> (usize, usize) {
    let inner: Vec<&Value> = match value {
        Value::Object(map) => map.values().collect(),
        Value::Array(list) => list.iter().collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    };
    let this = (1, usize::from(value.is_object()));
    inner.into_iter().map(count_values).fold(this, |all, one| (all.0 + one.0, all.1 + one.1))
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
            let weight = weigh(json.as_bytes());
            prop_assert_eq!((weight.values, weight.objects), count_values(&value));
        }
        let once = canonical(&pretty).unwrap();
        prop_assert_eq!(&once, &canonical(&compact).unwrap());
        prop_assert_eq!(&once, &canonical(&once).unwrap());
        if !compact.contains("\\u0000") {
            // Both are parsed, because the parser rounds some floats.
            let [before, after] = [&compact, &once].map(|json| json.parse::<Value>().unwrap());
            prop_assert_eq!(before, after);
            prop_assert_eq!(repair(&compact), &*compact);
        }
    }

    #[test]
    fn texts_survive_quoting(text in any::<String>()) {
        let mut quoted = String::new();
        push_string(&mut quoted, &text);
        prop_assert_eq!(serde_json::from_str::<String>(&quoted).unwrap(), text.clone());
        prop_assert_eq!(string_lossy(&quoted).unwrap(), text.replace('\0', "\u{fffd}"));
        prop_assert_eq!(string(&quoted).unwrap(), text);
    }

    #[test]
    fn any_escapes_become_readable(text in r#"(\\u[dD][89a-fA-F][0-9a-f]{2}|\\u00[0-9]{2}|\\n|x){0,12}"#) {
        let json = format!("{{\"{text}\":\"{text}\"}}");
        let repaired = repair(&json);
        let value: Value = serde_json::from_str(&repaired).unwrap();
        prop_assert!(!walk(&repaired, Limits::EVENT).unwrap().2);
        let quoted = format!("\"{text}\"");
        let read = string_lossy(&quoted).unwrap();
        prop_assert_eq!(value[read.as_ref()].as_str().unwrap(), read.as_ref());
        let exact = serde_json::from_str::<String>(&quoted).ok();
        prop_assert_eq!(string(&quoted).map(Cow::into_owned), exact);
    }

    #[test]
    fn nonsense_does_no_harm(text in r#"[\[\]{}:,"\\u0d8é 1]{0,60}"#) {
        let _ = walk(&text, Limits::EVENT);
        let _ = canonical(&text);
        let _ = repair(&text);
        let _ = (string(&text), string_lossy(&text), weigh(text.as_bytes()), member(&text, "a"));
        let _ = (with_member(&text, "a", "1"), without_members(&text, &["a"]));
        let _ = rewrite(&text, |_| Some("x".into()));
        let _ = Cursor::new(&text, Limits::NONE).object(|_, cursor| cursor.range().map(drop));
    }
}
