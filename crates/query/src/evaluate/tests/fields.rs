//! Tests of fields, and of the types of columns.

use uuid::Uuid;

use super::{TIME, text, value};
use crate::parse;
use crate::tree::Column;
use crate::value::{Kind, Value};

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
