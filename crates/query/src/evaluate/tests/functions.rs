//! Tests of functions of texts, times and JSON.

use super::{event, text, value, value_of};
use crate::evaluate::{MAX_WORK, QueryInput as _, WorkLimitReached, time};
use crate::parse;
use crate::value::Value;

#[test]
fn texts_are_made() {
    for (expression, expected) in [
        ("lower('ÄB')", text("äb")),
        ("upper(event)", text("PAID")),
        ("trim('  a b ')", text("a b")),
        ("length('äb')", Value::Integer(2)),
        ("length(properties.n)", Value::Integer(16)),
        ("concat(event, '-', team_id, '-', properties.yes)", text("Paid-7-true")),
        ("event || '!'", text("Paid!")),
        ("substring('äbcd', 2)", text("bcd")),
        ("substring('äbcd', 2, 2)", text("bc")),
        ("substring('äbcd', -2)", text("cd")),
        ("substring('äbcd', -9, 1)", text("ä")),
        ("substring('äbcd', 0)", text("")),
        ("substring('äbcd', 9)", text("")),
        ("substring('äbcd', 1, -1)", text("")),
        ("replaceAll('a.b.c', '.', '/')", text("a/b/c")),
        ("replaceAll('abc', '', 'x')", text("abc")),
        ("startsWith(event, 'Pa')", Value::Boolean(true)),
        ("endsWith(event, 'x')", Value::Boolean(false)),
        ("toString(timestamp)", text("2026-06-15 10:20:30.123456")),
        ("toString(toDate(timestamp))", text("2026-06-15")),
        ("toString(uuid)", text("00000000-0000-0000-0000-000000000001")),
        ("toString(true)", text("true")),
        ("toBool('on')", Value::Boolean(true)),
        ("toBool('x')", Value::Null),
        ("toBool(0)", Value::Boolean(false)),
        ("toBool(properties.list)", Value::Null),
    ] {
        assert_eq!(value(expression), expected, "{expression}");
    }
}

#[test]
fn times_are_read_and_moved() {
    let at = |text: &str| Value::Timestamp(time::read(text).unwrap());
    for (expression, expected) in [
        ("toDateTime('2026-06-01')", at("2026-06-01T00:00:00Z")),
        ("toDateTime(properties.date)", at("2026-06-01T00:00:00Z")),
        ("toDateTime('2026-06-01 02:00:00+02:00')", at("2026-06-01T00:00:00Z")),
        ("toDateTime('1780272000')", at("2026-06-01T00:00:00Z")),
        ("toDateTime('1780272000123')", at("2026-06-01T00:00:00.123Z")),
        ("toDateTime(1780272000)", at("2026-06-01T00:00:00Z")),
        ("toDateTime(1780272000.5)", at("2026-06-01T00:00:00.5Z")),
        ("toDateTime('yesterday')", Value::Null),
        ("toDateTime('2026-02-30')", Value::Null),
        ("toDateTime(1e30)", Value::Null),
        ("toDateTime(properties.n)", Value::Null),
        ("toDateTime('')", Value::Null),
        ("toDateTime(uuid)", Value::Null),
        ("toStartOfHour(timestamp)", at("2026-06-15T10:00:00Z")),
        ("toStartOfDay(timestamp)", at("2026-06-15T00:00:00Z")),
        ("toStartOfMonth(timestamp)", at("2026-06-01T00:00:00Z")),
        ("toStartOfMonth('1969-12-31 23:59:59')", at("1969-12-01")),
        ("toStartOfHour('1969-12-31 23:59:59')", at("1969-12-31T23:00:00Z")),
        ("toUnixTimestamp(timestamp)", Value::Integer(1_781_518_830)),
        ("toUnixTimestamp(toDate('1970-01-02'))", Value::Integer(86_400)),
        ("toInt(timestamp)", Value::Integer(1_781_518_830)),
        ("toDate('2026-06-15 23:59:59') = toDate(timestamp)", Value::Boolean(true)),
        ("timestamp + 0.5", at("2026-06-15T10:20:30.623456Z")),
        ("timestamp - 30", at("2026-06-15T10:20:00.123456Z")),
        ("30 + timestamp", at("2026-06-15T10:21:00.123456Z")),
        ("timestamp - toDateTime('2026-06-15 10:20:30')", Value::Float(0.123_456)),
        ("toString(toDate(timestamp) + 30)", text("2026-07-15")),
        ("toString(toDate(timestamp) - 15)", text("2026-05-31")),
        ("timestamp + 1e18", Value::Null),
        ("timestamp * 2", Value::Null),
        ("toDate(timestamp) + 9223372036854775807", Value::Null),
    ] {
        assert_eq!(value(expression), expected, "{expression}");
    }
}

#[test]
fn json_is_looked_into() {
    for (expression, expected) in [
        ("JSONExtractString(properties, 't')", text("Ünder_score 100%")),
        ("JSONExtractString(properties, 'n')", text("9007199254740993")),
        ("JSONExtractString(properties, 'o', 'a b', 2, 'c')", text("deep")),
        ("JSONExtractString(properties, 'o', 'a b', -1, 'c')", text("deep")),
        ("JSONExtractString(properties, 'nothing')", Value::Null),
        ("JSONExtractString(properties, 'null')", Value::Null),
        ("JSONExtractString(properties, NULL)", Value::Null),
        ("JSONExtractInt(properties, 'n')", Value::Integer(9_007_199_254_740_993)),
        ("JSONExtractInt(properties, 'list', 1)", Value::Integer(1)),
        ("JSONExtractInt(properties, 'list', 0)", Value::Null),
        ("JSONExtractInt(properties, 'list', 3)", Value::Null),
        ("JSONExtractInt(properties, 'list', -3)", Value::Null),
        ("JSONExtractInt(properties, 'list', -9223372036854775807)", Value::Null),
        ("JSONExtractInt(properties, 't')", Value::Null),
        ("JSONExtractFloat(properties, 'f')", Value::Float(1.5)),
        ("JSONExtractBool(properties, 'yes')", Value::Boolean(true)),
        ("JSONExtractRaw(properties, 'o', 'a b', 2)", Value::Json("{\"c\": \"deep\"}".into())),
        ("JSONExtractRaw(properties, 't')", Value::Json("\"Ünder_score 100%\"".into())),
        ("JSONHas(properties, 'null')", Value::Boolean(true)),
        ("JSONHas(properties, 'nothing')", Value::Boolean(false)),
        ("JSONHas(properties.o, 'a b')", Value::Boolean(true)),
        ("JSONExtractInt('[1,[2]]', 2, 1)", Value::Integer(2)),
        ("JSONExtractString('not json', 'a')", Value::Null),
        ("JSONExtractString(concat('{\"a\":', '\"b\"}'), 'a')", text("b")),
    ] {
        assert_eq!(value(expression), expected, "{expression}");
    }
}

#[test]
fn what_is_made_has_bounds() {
    let properties = format!("{{\"x\":\"{}\"}}", "y".repeat(1 << 20));
    for (expression, expected) in [
        ("length(concat(properties.x, properties.x))", Value::Integer(2 << 20)),
        ("concat(properties.x, properties.x, 'z')", Value::Null),
        ("replaceAll(properties.x, 'y', properties.x)", Value::Null),
        ("replaceAll(properties.x, 'y', '123')", Value::Null),
        ("length(replaceAll(properties.x, 'y', '12'))", Value::Integer(2 << 20)),
    ] {
        assert_eq!(value_of(expression, &properties), expected, "{expression}");
    }
}

#[test]
fn the_work_for_an_event_has_a_bound() {
    let properties = format!("{{\"x\":\"{}\"}}", "y".repeat(1 << 20));
    let many = |part: &str, count: usize| vec![part; count].join(" OR ");
    // Two megabytes each: one read and one created.
    let few = many("lower(properties.x) = 'a'", 20);
    assert_eq!(value_of(&few, &properties), Value::Boolean(false));
    // The value is read for each element of the list.
    let list = ["1"; 100].join(", ");
    for expression in [
        many("lower(properties.x) = 'a'", 40),
        format!("isNull({})", many("lower(properties.x) = 'a'", 40)),
        format!("coalesce({}, true)", many("lower(properties.x) = 'a'", 40)),
        format!("properties.x IN ({list})"),
        many("JSONHas(properties, 'a', 'b')", 40),
        many("properties.x LIKE '%_____b%'", 20),
    ] {
        assert_eq!(value_of(&expression, &properties), Value::Null, "{expression}");
    }
}

#[test]
fn what_is_in_an_event_is_there_when_its_work_limit_is_used_up() {
    let columns = "event, team_id, properties.x AS x, lower(event) AS low, 1 AS one";
    let query = parse(&format!("SELECT {columns} FROM events")).unwrap();
    let event = event(r#"{"x":"y"}"#);
    event.work_limit().charge(MAX_WORK);
    let values: Vec<_> =
        query.columns.iter().map(|column| column.expression.evaluate(&event)).collect();
    let expected = [text("Paid"), Value::Integer(7), text("y"), Value::Null, Value::Integer(1)];
    assert_eq!(values, expected);
    let filtered = parse("SELECT event FROM events WHERE isNull(lower(event))").unwrap();
    assert_eq!(filtered.matches(&event), Err(WorkLimitReached));
}
