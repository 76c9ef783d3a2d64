//! Tests of values of expressions that only questions have.

use super::*;
use crate::{Expression, Field, QueryInput, TimeUnit, Value, WorkLimit};

/// 2026-06-15T22:20:30.123456Z, a Monday. Clocks of the row are two hours ahead.
const TIME: i64 = 1_781_562_030_123_456;
const AHEAD: i64 = 7_200_000_000;
const DAY: i64 = 86_400_000_000;

#[derive(Default)]
struct Row {
    work_limit: WorkLimit,
}

impl QueryInput for Row {
    fn field(&self, field: Field) -> Value<'_> {
        match field {
            Field::Timestamp => Value::Timestamp(TIME),
            Field::Event => Value::Text("page view 12".into()),
            Field::SessionId => Value::Text("s".into()),
            _ => Value::Null,
        }
    }

    fn property(&self, field: Field, path: &[String]) -> Value<'_> {
        match (field, path) {
            (Field::GroupProperties(0), [name]) if name == "plan" => Value::Text("pro".into()),
            (Field::Properties, [name]) if name == "half" => Value::Json("2.5".into()),
            _ => Value::Null,
        }
    }

    fn work_limit(&self) -> &WorkLimit {
        &self.work_limit
    }

    fn column(&self, at: usize) -> Value<'_> {
        Value::Integer(i64::try_from(at).unwrap())
    }

    fn column_property(&self, at: usize, path: &[String]) -> Value<'_> {
        Value::Text(format!("{at}.{}", path.join(".")).into())
    }

    fn key(&self, at: usize) -> Value<'_> {
        Value::Integer(10 + i64::try_from(at).unwrap())
    }

    fn aggregate(&self, at: usize) -> Value<'_> {
        Value::Integer(20 + i64::try_from(at).unwrap())
    }

    fn set_has(&self, set: usize, value: &Value<'_>) -> Option<bool> {
        Some(set == 0 && *value == Value::Integer(1))
    }

    fn now(&self) -> Option<i64> {
        Some(TIME + 1)
    }

    fn local(&self, micros: i64) -> Option<i64> {
        micros.checked_add(AHEAD)
    }

    fn instant(&self, local: i64) -> Option<i64> {
        local.checked_sub(AHEAD)
    }

    fn start_of(&self, unit: TimeUnit, micros: i64) -> Option<i64> {
        // Days are enough for these tests.
        assert!(matches!(unit, TimeUnit::Day | TimeUnit::Week), "{unit:?}");
        let local = micros + AHEAD;
        let days = local.div_euclid(DAY);
        let back = if unit == TimeUnit::Week { (days + 3).rem_euclid(7) } else { 0 };
        Some((days - back) * DAY - AHEAD)
    }
}

/// An input without a time zone, a clock, groups and sets: as in exports.
#[derive(Default)]
struct Bare {
    work_limit: WorkLimit,
}

impl QueryInput for Bare {
    fn field(&self, _field: Field) -> Value<'_> {
        Value::Timestamp(TIME)
    }

    fn property(&self, _field: Field, _path: &[String]) -> Value<'_> {
        Value::Null
    }

    fn work_limit(&self) -> &WorkLimit {
        &self.work_limit
    }
}

fn value_of(expression: &str, row: &dyn QueryInput) -> Value<'static> {
    let found = select(&format!("SELECT {expression} AS x FROM events"));
    found.items[0].expression.evaluate(row).into_owned()
}

fn text(text: &str) -> Value<'static> {
    Value::Text(text.to_owned().into())
}

#[test]
fn functions_of_questions_have_values() {
    for (expression, expected) in [
        ("match(event, '^page.*\\\\d$')", Value::Boolean(true)),
        ("match(event, 'x')", Value::Boolean(false)),
        ("match('a\\nb', 'a.b')", Value::Boolean(true)),
        ("match(NULL, 'x')", Value::Null),
        ("extract(event, '(\\\\d)(\\\\d)')", text("1")),
        ("extract(event, '\\\\d+')", text("12")),
        ("extract(event, '(x)?p')", text("")),
        ("extract(event, 'x')", text("")),
        ("extract(concat('a', event), 'a(.)')", text("p")),
        ("domain('https://ada@www.example.com:80/a/b?c#d')", text("www.example.com")),
        ("domain('www.example.com/a')", text("www.example.com")),
        ("domain('//example.com')", text("example.com")),
        ("domain('http://[::1]:80/')", text("[::1]")),
        ("domain('/a?x=http://y')", text("")),
        ("domain('')", text("")),
        ("path('https://www.example.com/a/b?c#d')", text("/a/b")),
        ("path('https://www.example.com?c=/d')", text("")),
        ("path('/a#b')", text("/a")),
        ("round(2.5)", Value::Float(2.0)),
        ("round(3.5)", Value::Float(4.0)),
        ("round(-2.567, 2)", Value::Float(-2.57)),
        ("round(7, 2)", Value::Integer(7)),
        ("round(1e300, 15)", Value::Float(1e300)),
        ("round(1.5, 16)", Value::Null),
        ("round(1.5, -1)", Value::Null),
        ("round('x')", Value::Null),
        ("floor(-2.5)", Value::Float(-3.0)),
        ("ceil(-2.5)", Value::Float(-2.0)),
        ("ceil(properties.half)", Value::Float(3.0)),
        ("abs(-3)", Value::Integer(3)),
        ("abs(-2.5)", Value::Float(2.5)),
        ("least(2, 1.5, 3)", Value::Float(1.5)),
        ("greatest('a', 'b')", text("b")),
        ("greatest(2, NULL)", Value::Null),
        ("greatest(NULL, 2)", Value::Null),
        ("session.id", text("s")),
        ("group_0.properties.plan", text("pro")),
        ("CASE event WHEN 'x' THEN 1 END", Value::Null),
        ("'12'::int + 1", Value::Integer(13)),
        ("concat('a', 'b') || 'c'", text("abc")),
    ] {
        assert_eq!(value_of(expression, &Row::default()), expected, "{expression}");
    }
}

#[test]
fn functions_of_time_follow_the_time_zone() {
    let midnight = TIME - 30_123_456 - 20 * 60_000_000;
    for (expression, expected) in [
        ("now()", Value::Timestamp(TIME + 1)),
        // The next day has begun.
        ("toString(today())", text("2026-06-16")),
        ("toString(toDate(timestamp))", text("2026-06-16")),
        ("toStartOfDay(timestamp)", Value::Timestamp(midnight)),
        ("toStartOfWeek(timestamp)", Value::Timestamp(midnight - DAY)),
        ("toHour(timestamp)", Value::Integer(0)),
        ("toDayOfWeek(timestamp)", Value::Integer(2)),
        ("toYear(timestamp)", Value::Integer(2026)),
        ("toMonth(timestamp)", Value::Integer(6)),
        ("toDayOfWeek(toDate(timestamp))", Value::Integer(2)),
        ("dateDiff('day', timestamp - 3600, timestamp)", Value::Integer(1)),
        ("dateDiff('hour', timestamp - 3600, timestamp)", Value::Integer(1)),
        ("dateDiff('week', timestamp - INTERVAL 2 DAY, timestamp)", Value::Integer(1)),
        ("dateDiff('month', timestamp, timestamp + INTERVAL 1 YEAR)", Value::Integer(12)),
        ("dateDiff('quarter', timestamp, timestamp - INTERVAL 3 MONTH)", Value::Integer(-1)),
        ("dateDiff('second', timestamp, NULL)", Value::Null),
        ("toString(toDate(timestamp) + INTERVAL 1 DAY)", text("2026-06-17")),
        ("toString(toDate(timestamp) - INTERVAL 1 QUARTER)", text("2026-03-16")),
        ("timestamp + INTERVAL 1 DAY", Value::Timestamp(TIME + DAY)),
        ("timestamp - INTERVAL 2 WEEK", Value::Timestamp(TIME - 14 * DAY)),
        ("timestamp - INTERVAL 9000000000000000000 YEAR", Value::Null),
        ("timestamp + INTERVAL 9000000000000000000 SECOND", Value::Null),
        ("timestamp + INTERVAL 8000 YEAR", Value::Null),
    ] {
        assert_eq!(value_of(expression, &Row::default()), expected, "{expression}");
    }
    for (expression, expected) in [
        ("now()", Value::Null),
        ("today()", Value::Null),
        ("toHour(timestamp)", Value::Integer(22)),
        ("toString(toStartOfWeek(timestamp))", text("2026-06-15 00:00:00.000000")),
        ("toString(toStartOfMinute(timestamp))", text("2026-06-15 22:20:00.000000")),
        (
            "toString(toDateTime('2026-01-31') + INTERVAL 1 MONTH)",
            text("2026-02-28 00:00:00.000000"),
        ),
    ] {
        assert_eq!(value_of(expression, &Bare::default()), expected, "{expression}");
    }
}

#[test]
fn units_begin_where_the_calendar_says() {
    for (unit, expected) in [
        (TimeUnit::Second, "2026-06-15 22:20:30.000000"),
        (TimeUnit::Minute, "2026-06-15 22:20:00.000000"),
        (TimeUnit::Hour, "2026-06-15 22:00:00.000000"),
        (TimeUnit::Day, "2026-06-15 00:00:00.000000"),
        (TimeUnit::Week, "2026-06-15 00:00:00.000000"),
        (TimeUnit::Month, "2026-06-01 00:00:00.000000"),
        (TimeUnit::Quarter, "2026-04-01 00:00:00.000000"),
        (TimeUnit::Year, "2026-01-01 00:00:00.000000"),
    ] {
        let start = Bare::default().start_of(unit, TIME).unwrap();
        assert_eq!(Value::Timestamp(start).into_text().unwrap(), expected, "{unit:?}");
        assert_eq!(TimeUnit::of(&format!("{}S", unit.name())), Some(unit));
        for time in [i64::MIN, i64::MAX, 0, -1] {
            let _ = Bare::default().start_of(unit, time);
            let _ = Bare::default().shifted(time, i64::MIN, unit);
            let _ = Bare::default().shifted(time, i64::MAX, unit);
        }
    }
}

#[test]
fn references_have_the_values_of_the_row() {
    let row = Row::default();
    let found = select(
        "SELECT index, properties.a.b, index IN (SELECT 1 FROM events), 1 IN (SELECT 1 FROM \
         events), 1 NOT IN (SELECT 1 FROM events) FROM groups",
    );
    let values: Vec<_> = found.items.iter().map(|item| item.expression.evaluate(&row)).collect();
    let expected = [
        Value::Integer(0),
        text("2.a.b"),
        Value::Boolean(false),
        Value::Boolean(true),
        Value::Boolean(false),
    ];
    assert_eq!(values, expected);
    let found = select("SELECT event, count() + 1 FROM events GROUP BY event");
    let values: Vec<_> = found.items.iter().map(|item| item.expression.evaluate(&row)).collect();
    assert_eq!(values, [Value::Integer(10), Value::Integer(21)]);
    // Without them there is no value.
    let bare = Bare::default();
    for expression in [
        Expression::Column(0),
        Expression::ColumnProperty(0, vec!["a".to_owned()]),
        Expression::Key(0),
        Expression::Aggregate(0),
        Expression::InSet {
            value: Box::new(Expression::Field(Field::Timestamp)),
            set: 0,
            is_negated: true,
        },
    ] {
        assert_eq!(expression.evaluate(&bare), Value::Null);
    }
}

#[test]
fn the_work_of_regular_expressions_has_a_bound() {
    // The work follows from the size of the expression and of the text.
    let matching = |expression: &str, length: usize| {
        let found =
            select(&format!("SELECT match(properties.long, '{expression}') AS x FROM events"));
        let row = Long { text: "01".repeat(length / 2), work_limit: WorkLimit::default() };
        found.items[0].expression.evaluate(&row).into_owned()
    };
    let (small, large) = ("1[01]{9}2", "[01]*1[01]{400}2");
    assert_eq!(matching(small, 100_000), Value::Boolean(false));
    assert_eq!(matching(large, 1000), Value::Boolean(false));
    assert_eq!(matching(large, 1_000_000), Value::Null);
}

/// An event with one long property.
struct Long {
    text: String,
    work_limit: WorkLimit,
}

impl QueryInput for Long {
    fn field(&self, _field: Field) -> Value<'_> {
        Value::Null
    }

    fn property(&self, _field: Field, _path: &[String]) -> Value<'_> {
        Value::Text(self.text.as_str().into())
    }

    fn work_limit(&self) -> &WorkLimit {
        &self.work_limit
    }
}

#[test]
fn texts_without_an_offset_and_days_are_local() {
    // Clocks show 00:20:30 of the next day.
    for (expression, expected) in [
        ("toDateTime('2026-06-16 00:20:30.123456') = timestamp", Value::Boolean(true)),
        ("timestamp = '2026-06-16 00:20:30.123456'", Value::Boolean(true)),
        ("timestamp = '2026-06-15T22:20:30.123456Z'", Value::Boolean(true)),
        ("timestamp = '2026-06-16 00:20:30.123456+02:00'", Value::Boolean(true)),
        ("timestamp >= '2026-06-16'", Value::Boolean(true)),
        ("timestamp < '2026-06-16'", Value::Boolean(false)),
        ("timestamp >= toDate('2026-06-16')", Value::Boolean(true)),
        ("timestamp >= toDate('2026-06-17')", Value::Boolean(false)),
        ("timestamp BETWEEN '2026-06-16' AND '2026-06-16 00:21'", Value::Boolean(true)),
        ("timestamp IN ('2026-06-16 00:20:30.123456')", Value::Boolean(true)),
        (
            "toUnixTimestamp('2026-06-16 00:20:30') = toUnixTimestamp(timestamp)",
            Value::Boolean(true),
        ),
        ("toHour('2026-06-16 00:20:30')", Value::Integer(0)),
        ("toDate(timestamp) = '2026-06-16'", Value::Boolean(true)),
        ("toDate('2026-06-16') - toDate('2026-06-15')", Value::Float(86_400.0)),
        ("timestamp - toDate('2026-06-16')", Value::Float(1_230.123_456)),
        ("dateDiff('day', '2026-06-15 23:59', '2026-06-16 00:01')", Value::Integer(1)),
        ("toString(timestamp)", text("2026-06-16 00:20:30.123456")),
        ("toDateTime(toString(timestamp)) = timestamp", Value::Boolean(true)),
        ("toString(timestamp) LIKE '2026-06-16 00:%'", Value::Boolean(true)),
        ("least(timestamp, '2026-06-16') = '2026-06-16'", Value::Boolean(true)),
        // A number is an instant.
        ("toDateTime(0) = '1970-01-01 02:00:00'", Value::Boolean(true)),
        ("toDateTime('1781562030') = '2026-06-16 00:20:30'", Value::Boolean(true)),
    ] {
        assert_eq!(value_of(expression, &Row::default()), expected, "{expression}");
    }
    // Without a time zone, all of it is UTC.
    for expression in [
        "timestamp = '2026-06-15 22:20:30.123456'",
        "timestamp >= toDate('2026-06-15')",
        "toString(timestamp) = '2026-06-15 22:20:30.123456'",
    ] {
        assert_eq!(value_of(expression, &Bare::default()), Value::Boolean(true), "{expression}");
    }
}
