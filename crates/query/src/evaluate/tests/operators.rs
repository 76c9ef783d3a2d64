//! Tests of arithmetic, comparisons, conditions, patterns.

use super::{event, text, value};
use crate::evaluate::WorkLimitReached;
use crate::parse;
use crate::value::Value;

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
    assert_eq!(query.matches(&event("{}")), Ok(false), "null takes no event");
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
    // Beyond the work limit, the result is unknown.
    let (long, pattern) = ("a".repeat(20_000), format!("%{}b%", "_".repeat(9_000)));
    let filter = format!("SELECT event FROM events WHERE properties.x LIKE '{pattern}'");
    let long = event(&format!("{{\"x\":\"{long}\"}}"));
    assert_eq!(parse(&filter).unwrap().matches(&long), Err(WorkLimitReached));
}
