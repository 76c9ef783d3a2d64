use std::borrow::Cow;

use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::functions::Function;
use crate::json::Members;
use crate::tree::Column;
use crate::value::Kind;
use crate::{Literal, parse};

/// 2026-06-15T10:20:30.123456Z
const TIME: i64 = 1_781_518_830_123_456;

#[derive(Debug, Clone)]
struct Event {
    properties: String,
    elements: String,
    timestamp: i64,
    has_person: bool,
}

fn event(properties: &str) -> Event {
    Event {
        properties: properties.to_owned(),
        elements: String::new(),
        timestamp: TIME,
        has_person: true,
    }
}

impl Row for Event {
    fn field(&self, field: Field) -> Value<'_> {
        match field {
            Field::TeamId => Value::Integer(7),
            Field::Timestamp | Field::CreatedAt => Value::Timestamp(self.timestamp),
            Field::Event => Value::Text("Paid".into()),
            Field::DistinctId => Value::Text("ada".into()),
            Field::Uuid => Value::Uuid(Uuid::from_u128(1)),
            Field::ElementsChain => Value::Text(self.elements.as_str().into()),
            Field::PersonId if self.has_person => Value::Uuid(Uuid::from_u128(2)),
            Field::PersonProperties if self.has_person => Value::Json(r#"{"vip":true}"#.into()),
            Field::PersonId | Field::PersonProperties => Value::Null,
            Field::Properties => Value::Json(self.properties.as_str().into()),
        }
    }

    fn property(&self, field: Field, path: &[String]) -> Value<'_> {
        let json = match field {
            Field::Properties => self.properties.as_str(),
            Field::PersonProperties if self.has_person => r#"{"vip":true}"#,
            _ => "{}",
        };
        Members::of(json).at(path).map_or(Value::Null, Value::of_json)
    }
}

/// The value of an expression over an event with these properties.
fn value_of(expression: &str, properties: &str) -> Value<'static> {
    let query = parse(&format!("SELECT {expression} AS x FROM events")).unwrap();
    let event = event(properties);
    query.columns[0].expression.evaluate(&event).into_owned()
}

fn value(expression: &str) -> Value<'static> {
    value_of(
        expression,
        r#"{"n": 9007199254740993, "u": 18446744073709551615, "f": 1.50, "zero": 0, "neg": -3,
            "t": "Ünder_score 100%", "empty": "", "null": null, "yes": true, "no": false,
            "num": "12", "date": "2026-06-01", "o": {"a b": [10, {"c": "deep"}]}, "list": [1, "x"],
            "esc": "a\"\u00e4"}"#,
    )
}

fn text(text: &str) -> Value<'_> {
    Value::Text(Cow::Borrowed(text))
}

#[test]
fn fields_and_properties_keep_what_was_sent() {
    for (expression, expected) in [
        ("event", text("Paid")),
        ("team_id", Value::Integer(7)),
        ("timestamp", Value::Timestamp(TIME)),
        ("uuid", Value::Uuid(Uuid::from_u128(1))),
        ("person_id", Value::Uuid(Uuid::from_u128(2))),
        ("person.properties.vip", Value::Json("true".into())),
        ("properties.n", Value::Json("9007199254740993".into())),
        ("properties.f", Value::Json("1.50".into())),
        ("properties.t", text("Ünder_score 100%")),
        ("properties.esc", text("a\"ä")),
        ("properties.null", Value::Null),
        ("properties.nothing", Value::Null),
        ("properties.n.deeper", Value::Null),
        ("properties.o.`a b`", Value::Json("[10, {\"c\": \"deep\"}]".into())),
        ("properties.empty", text("")),
        ("-9223372036854775807", Value::Integer(-9_223_372_036_854_775_807)),
    ] {
        assert_eq!(value(expression), expected, "{expression}");
    }
}

#[test]
fn numbers_are_exact() {
    for (expression, expected) in [
        ("toInt(properties.n)", Value::Integer(9_007_199_254_740_993)),
        ("properties.n + 0", Value::Integer(9_007_199_254_740_993)),
        ("properties.n * 2 - properties.n", Value::Integer(9_007_199_254_740_993)),
        ("properties.n = 9007199254740993", Value::Boolean(true)),
        ("properties.n = 9007199254740992", Value::Boolean(false)),
        ("properties.n > 9007199254740992.0", Value::Boolean(true)),
        ("properties.u = '18446744073709551615'", Value::Boolean(true)),
        ("properties.u > 9223372036854775807", Value::Boolean(true)),
        ("properties.u - 9223372036854775807", Value::Null),
        ("properties.u % 10", Value::Integer(5)),
        ("toString(properties.u)", text("18446744073709551615")),
        ("toInt(properties.u)", Value::Null),
        ("9223372036854775807 + 1", Value::Null),
        ("9223372036854775807 * 9223372036854775807", Value::Null),
        ("-properties.neg", Value::Integer(3)),
        ("7 / 2", Value::Float(3.5)),
        ("1 / 0", Value::Null),
        ("1 % 0", Value::Null),
        ("1.5 % 0", Value::Null),
        ("-7 % 3", Value::Integer(-1)),
        ("0.1 + 0.2", Value::Float(0.1 + 0.2)),
        ("1e308 * 10", Value::Null),
        ("properties.num + 1", Value::Integer(13)),
        ("properties.t + 1", Value::Null),
        ("true + 1", Value::Integer(2)),
        ("toFloat(properties.f)", Value::Float(1.5)),
        ("toFloat('inf')", Value::Null),
        ("toFloat('x')", Value::Null),
        ("toInt(1.9)", Value::Integer(1)),
        ("toInt(-1.9)", Value::Integer(-1)),
        ("toInt(1e30)", Value::Null),
        ("toInt(' 12 ')", Value::Integer(12)),
        ("toInt('1.5')", Value::Null),
        ("toString(1e300)", text("1e300")),
        ("toString(2.0)", text("2")),
        ("toString(0.5)", text("0.5")),
    ] {
        assert_eq!(value(expression), expected, "{expression}");
    }
}

#[test]
fn null_spreads() {
    let (yes, no) = (Value::Boolean(true), Value::Boolean(false));
    for (expression, expected) in [
        ("NULL = NULL", Value::Null),
        ("properties.nothing != 'x'", Value::Null),
        ("NOT properties.nothing", Value::Null),
        ("properties.nothing AND false", no.clone()),
        ("properties.nothing AND true", Value::Null),
        ("properties.nothing OR true", yes.clone()),
        ("properties.nothing OR false", Value::Null),
        ("NULL IN (1, NULL)", Value::Null),
        ("1 IN (1, NULL)", yes.clone()),
        ("2 IN (1, NULL)", no.clone()),
        ("2 NOT IN (1, NULL)", yes.clone()),
        ("properties.nothing LIKE '%'", Value::Null),
        ("5 BETWEEN NULL AND 3", no.clone()),
        ("5 BETWEEN NULL AND 7", Value::Null),
        ("5 BETWEEN 5 AND 5", yes.clone()),
        ("5 NOT BETWEEN 1 AND 3", yes.clone()),
        ("properties.nothing IS NULL", yes.clone()),
        ("properties.null IS NOT NULL", no.clone()),
        ("isNull(properties.empty)", no.clone()),
        ("isNotNull(properties.empty)", yes.clone()),
        ("concat('a', properties.nothing)", Value::Null),
        ("lower(NULL)", Value::Null),
        ("coalesce(properties.nothing, NULL, 'x', 'y')", text("x")),
        ("ifNull(properties.nothing, 1)", Value::Integer(1)),
        ("ifNull(properties.zero, 1)", Value::Json("0".into())),
        ("nullIf(properties.t, 'x')", text("Ünder_score 100%")),
        ("nullIf(properties.zero, 0)", Value::Null),
        ("if(properties.nothing, 1, 2)", Value::Integer(2)),
        ("if(properties.yes, 1, 2)", Value::Integer(1)),
        ("multiIf(false, 1, NULL, 2, true, 3, 4)", Value::Integer(3)),
        ("multiIf(false, 1, 4)", Value::Integer(4)),
        ("empty(properties.empty)", yes.clone()),
        ("empty(properties.nothing)", Value::Null),
        ("notEmpty(properties.t)", yes.clone()),
    ] {
        assert_eq!(value(expression), expected, "{expression}");
    }
    let query = parse("SELECT event FROM events WHERE properties.nothing != 'x'").unwrap();
    assert!(!query.matches(&event("{}")), "null takes no event");
}

#[test]
fn values_of_different_kinds_are_compared() {
    for (expression, expected) in [
        ("event < 'Q'", Some(true)),
        ("event = 'paid'", Some(false)),
        ("properties.num = 12", Some(true)),
        ("properties.num = '12'", Some(true)),
        ("properties.zero = '0'", Some(true)),
        ("properties.f = 1.5", Some(true)),
        ("properties.f = '1.5'", Some(false)),
        ("properties.t > 1", None),
        ("properties.yes AND true", Some(true)),
        ("properties.yes = true", Some(true)),
        ("properties.yes = 'true'", Some(true)),
        ("properties.yes = 1", Some(true)),
        ("properties.no = false", Some(true)),
        ("'yes' = true", Some(true)),
        ("'perhaps' = true", None),
        ("timestamp > '2026-06-15'", Some(true)),
        ("timestamp < '2026-06-15T10:20:30.123457Z'", Some(true)),
        ("timestamp > 1781518830", Some(true)),
        ("timestamp > 'x'", None),
        ("timestamp > properties.date", Some(true)),
        ("toDate(timestamp) = '2026-06-15'", Some(true)),
        ("uuid = '00000000-0000-0000-0000-000000000001'", Some(true)),
        ("uuid = '00000000-0000-0000-0000-00000000000A'", Some(false)),
        ("uuid = 'x'", None),
        ("properties.list = '[1, \"x\"]'", Some(true)),
        ("properties.list = properties.list", Some(true)),
        ("properties.n = properties.u", Some(false)),
        ("properties.list > 1", None),
        ("event IN ('a', 'Paid')", Some(true)),
        ("properties.num IN [1, 12]", Some(true)),
    ] {
        let expected = expected.map_or(Value::Null, Value::Boolean);
        assert_eq!(value(expression), expected, "{expression}");
    }
}

#[test]
fn patterns_fit() {
    for (given, pattern, expected) in [
        ("", "", true),
        ("", "%", true),
        ("", "_", false),
        ("abc", "abc", true),
        ("abc", "ab", false),
        ("abc", "a%", true),
        ("abc", "%c", true),
        ("abc", "%b%", true),
        ("abc", "a%b", false),
        ("abc", "a_c", true),
        ("abc", "%_c", true),
        ("abc", "____", false),
        ("äbc", "_b%", true),
        ("aXbXc", "a%X%c", true),
        ("aab", "%ab", true),
        ("ab", "ab%ab", false),
        ("abab", "ab%ab", true),
        ("100%", "100\\\\%", true),
        ("100x", "100\\\\%", false),
        ("a_b", "a\\\\_b", true),
        ("axb", "a\\\\_b", false),
        ("a\\\\", "a\\\\", true),
        ("aaaaab", "%a_b%", true),
        ("xaYbz", "%a_b%z", true),
    ] {
        let found = value(&format!("'{given}' LIKE '{pattern}'"));
        assert_eq!(found, Value::Boolean(expected), "{given} LIKE {pattern}");
        let found = value(&format!("'{given}' NOT LIKE '{pattern}'"));
        assert_eq!(found, Value::Boolean(!expected), "{given} NOT LIKE {pattern}");
    }
    assert_eq!(value("properties.t ILIKE 'üNDER%'"), Value::Boolean(true));
    assert_eq!(value("properties.t LIKE 'ü%'"), Value::Boolean(false));
    assert_eq!(value("properties.n LIKE '900%'"), Value::Boolean(true));
    // So much work that nothing is said.
    let (long, pattern) = ("a".repeat(20_000), format!("%{}b%", "_".repeat(9_000)));
    let filter = format!("SELECT event FROM events WHERE properties.x LIKE '{pattern}'");
    assert!(!parse(&filter).unwrap().matches(&event(&format!("{{\"x\":\"{long}\"}}"))));
}

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
fn columns_have_one_kind() {
    for (expression, expected) in [
        ("event", Kind::Text),
        ("properties", Kind::Json),
        ("properties.a", Kind::Text),
        ("timestamp", Kind::Timestamp),
        ("uuid", Kind::Uuid),
        ("team_id", Kind::Integer),
        ("NULL", Kind::Text),
        ("1", Kind::Integer),
        ("1.0", Kind::Float),
        ("true", Kind::Boolean),
        ("event = 'a' OR false", Kind::Boolean),
        ("event IS NULL", Kind::Boolean),
        ("1 + 2", Kind::Integer),
        ("1 / 2", Kind::Float),
        ("1 + 2.0", Kind::Float),
        ("-team_id", Kind::Integer),
        ("-toFloat(event)", Kind::Float),
        ("properties.a + 1", Kind::Float),
        ("toInt(properties.a) + 1", Kind::Integer),
        ("timestamp + 1", Kind::Timestamp),
        ("timestamp - timestamp", Kind::Float),
        ("toDate(timestamp)", Kind::Timestamp),
        ("coalesce(NULL, 1)", Kind::Integer),
        ("coalesce(NULL, 1, 2.0)", Kind::Float),
        ("coalesce(properties.a, 1)", Kind::Text),
        ("nullIf(team_id, 1)", Kind::Integer),
        ("if(true, 1, NULL)", Kind::Integer),
        ("if(true, 1, 'a')", Kind::Text),
        ("multiIf(true, uuid, false, uuid, NULL)", Kind::Uuid),
        ("multiIf(true, timestamp, 1)", Kind::Text),
        ("JSONExtractRaw(properties, 'a')", Kind::Json),
        ("JSONExtractInt(properties, 'a')", Kind::Integer),
    ] {
        let query = parse(&format!("SELECT {expression} AS x FROM events")).unwrap();
        assert_eq!(query.columns[0].kind(), expected, "{expression}");
    }
    let query = parse("SELECT properties.$set AS set, event AS set_once FROM events").unwrap();
    let kinds: Vec<Kind> = query.columns.iter().map(Column::kind).collect();
    assert_eq!(kinds, [Kind::Json, Kind::Text]);
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

fn literals() -> impl Strategy<Value = Expression> {
    prop_oneof![
        Just(Literal::Null),
        any::<bool>().prop_map(Literal::Boolean),
        (-i64::MAX..).prop_map(Literal::Integer),
        any::<f64>().prop_filter("finite", |n| n.is_finite()).prop_map(Literal::Float),
        "[a-zä0-9%_\\\\ .:+-]{0,12}".prop_map(Literal::Text),
        Just(Literal::Text("2026-06-01 10:00".to_owned())),
    ]
    .prop_map(Expression::Literal)
}

fn leaves() -> impl Strategy<Value = Expression> {
    let path = prop::collection::vec("[abc ]{1,2}", 1..4);
    let with_properties = prop_oneof![Just(Field::Properties), Just(Field::PersonProperties)];
    prop_oneof![
        literals(),
        prop::sample::select(&Field::ALL[..]).prop_map(Expression::Field),
        (with_properties, path).prop_map(|(field, path)| Expression::Property(field, path)),
    ]
}

fn expressions() -> impl Strategy<Value = Expression> {
    leaves().prop_recursive(5, 40, 4, |inner| {
        let some = prop::collection::vec(inner.clone(), 2..4);
        let one = inner.clone().prop_map(Box::new);
        let comparisons = [
            Comparison::Equal,
            Comparison::NotEqual,
            Comparison::Less,
            Comparison::LessOrEqual,
            Comparison::Greater,
            Comparison::GreaterOrEqual,
        ];
        let arithmetics = [
            Arithmetic::Add,
            Arithmetic::Subtract,
            Arithmetic::Multiply,
            Arithmetic::Divide,
            Arithmetic::Remainder,
        ];
        let calls =
            (prop::sample::select(Function::ALL), prop::collection::vec(inner.clone(), 1..8))
                .prop_map(|(function, mut arguments)| {
                    let (least, most) = function.arguments();
                    while arguments.len() < least {
                        arguments.push(arguments[0].clone());
                    }
                    arguments.truncate(most);
                    if function == Function::MultiIf && arguments.len() % 2 == 0 {
                        arguments.pop();
                    }
                    Expression::Call(function, arguments)
                });
        prop_oneof![
            4 => calls,
            1 => some.clone().prop_map(Expression::And),
            1 => some.clone().prop_map(Expression::Or),
            1 => one.clone().prop_map(Expression::Not),
            1 => one.clone().prop_map(Expression::Negative),
            2 => (prop::sample::select(comparisons.to_vec()), one.clone(), one.clone())
                .prop_map(|(comparison, left, right)| Expression::Compare(comparison, left, right)),
            2 => (prop::sample::select(arithmetics.to_vec()), one.clone(), one.clone())
                .prop_map(|(arithmetic, left, right)| {
                    Expression::Arithmetic(arithmetic, left, right)
                }),
            1 => (one.clone(), some, any::<bool>())
                .prop_map(|(value, among, is_negated)| Expression::In { value, among, is_negated }),
            1 => (one.clone(), one.clone(), any::<bool>(), any::<bool>())
                .prop_map(|(value, pattern, ignores_case, is_negated)| {
                    Expression::Like { value, pattern, ignores_case, is_negated }
                }),
            1 => (one.clone(), one.clone(), one.clone(), any::<bool>())
                .prop_map(|(value, least, most, is_negated)| {
                    Expression::Between { value, least, most, is_negated }
                }),
            1 => (one, any::<bool>())
                .prop_map(|(value, is_negated)| Expression::IsNull { value, is_negated }),
        ]
    })
}

fn events() -> impl Strategy<Value = Event> {
    let properties = prop_oneof![
        Just(r#"{"a":{"b":[1,2.5,"x",null]},"b":"2026-06-01","c":1e400,"ab":-0}"#.to_owned()),
        Just(
            r#"{"a":9007199254740993,"b":true,"c":"","a b":"äö","bc":123456789012345678901}"#
                .to_owned()
        ),
        Just(r#"{"a":"12","a":"\ud83d","b":null,"c":[[[]]]}"#.to_owned()),
        any::<String>(),
    ];
    let timestamp = prop_oneof![any::<i64>(), Just(TIME), Just(i64::MIN), Just(i64::MAX)];
    (properties, any::<String>(), timestamp, any::<bool>()).prop_map(
        |(properties, elements, timestamp, has_person)| Event {
            properties,
            elements,
            timestamp,
            has_person,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn every_expression_has_a_value_within_bounds(
        expression in expressions(),
        event in events(),
    ) {
        let value = expression.evaluate(&event);
        if let Value::Float(number) = value {
            prop_assert!(number.is_finite());
        }
        // Whatever it is, it is asked for as every kind without a panic.
        let _ = (value.integer(), value.float(), value.boolean(), value.timestamp(), value.uuid());
        if let Some(text) = value.clone().into_text() {
            prop_assert!(text.len() <= TEXT_MAX + event.properties.len() + event.elements.len());
        }
        let is_raw = matches!(value, Value::Json(_));
        if let Some(json) = value.clone().into_json().filter(|_| !is_raw) {
            prop_assert!(serde_json::from_str::<serde_json::Value>(&json).is_ok(), "{json}");
        }
        // A column of its kind either has the value or has a reason not to.
        if expression.kind() == Kind::Boolean && !value.is_null() {
            prop_assert!(matches!(value, Value::Boolean(_)));
        }
    }

    #[test]
    fn the_normal_form_means_the_same(expression in expressions(), event in events()) {
        let query = Query {
            columns: vec![Column { expression, alias: "x".to_owned() }],
            filter: None,
        };
        // A few trees that cannot be written as a query are too long or too deep.
        if let Ok(read) = parse(&query.normal_form()) {
            let left = query.columns[0].expression.evaluate(&event);
            prop_assert_eq!(read.columns[0].expression.evaluate(&event), left);
        }
    }

    #[test]
    fn numbers_are_ordered_exactly(left in any::<i64>(), right in any::<i64>()) {
        let (exact, float) = (Value::Integer(left), Value::Float(right as f64));
        let wide = number::Number::Integer(i128::from(left));
        let expected = i128::from(left).cmp(&(right as f64 as i128));
        prop_assert_eq!(compare(&exact, &float), Some(expected));
        prop_assert_eq!(compare(&float, &exact), Some(expected.reverse()));
        prop_assert_eq!(wide.compare(wide), Ordering::Equal);
    }

    #[test]
    fn patterns_fit_as_the_plain_definition_says(
        text in "[ab_%ä]{0,8}",
        pattern in "[ab_%ä]{0,8}",
    ) {
        fn plain(text: &[char], pattern: &[char]) -> bool {
            match (pattern.split_first(), text.split_first()) {
                (None, rest) => rest.is_none(),
                (Some(('%', rest)), _) => {
                    (0..=text.len()).any(|from| plain(&text[from..], rest))
                }
                (Some(_), None) => false,
                (Some((wanted, pattern)), Some((found, text))) => {
                    (*wanted == '_' || wanted == found) && plain(text, pattern)
                }
            }
        }
        let chars = |text: &str| text.chars().collect::<Vec<_>>();
        let expected = plain(&chars(&text), &chars(&pattern));
        prop_assert_eq!(pattern::fits(&text, &pattern, false), Some(expected));
    }
}
