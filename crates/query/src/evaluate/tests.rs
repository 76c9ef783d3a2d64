//! Tests of values of expressions for one event.

mod fields;
mod functions;
mod generated;
mod operators;

use std::borrow::Cow;

use uuid::Uuid;
use weir_json::Members;

use super::*;
use crate::parse;

/// 2026-06-15T10:20:30.123456Z
const TIME: i64 = 1_781_518_830_123_456;

#[derive(Debug, Clone)]
struct Event {
    properties: String,
    elements: String,
    timestamp: i64,
    has_person: bool,
    work_limit: WorkLimit,
}

fn event(properties: &str) -> Event {
    Event {
        properties: properties.to_owned(),
        elements: String::new(),
        timestamp: TIME,
        has_person: true,
        work_limit: WorkLimit::default(),
    }
}

impl QueryInput for Event {
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
            Field::PersonId
            | Field::PersonProperties
            | Field::SessionId
            | Field::GroupProperties(_) => Value::Null,
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

    fn work_limit(&self) -> &WorkLimit {
        &self.work_limit
    }
}

/// The value of an expression for an event with these properties.
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
