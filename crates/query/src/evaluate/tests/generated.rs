//! Tests with generated queries and events.

use std::cmp::Ordering;

use proptest::prelude::*;

use super::{Event, TIME};
use crate::evaluate::{TEXT_MAX, WorkLimit, compare, number, pattern};
use crate::fields::Field;
use crate::functions::Function;
use crate::parse;
use crate::tree::{Arithmetic, Column, Comparison, Expression, Literal, Query};
use crate::value::{Kind, Value};

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
                .prop_map(|(value, low, high, is_negated)| {
                    Expression::Between { value, low, high, is_negated }
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
            work_limit: WorkLimit::default(),
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
        // Conversions to every kind never panic.
        let _ = (value.integer(), value.float(), value.boolean(), value.timestamp(), value.uuid());
        if let Some(text) = value.clone().into_text() {
            prop_assert!(text.len() <= TEXT_MAX + event.properties.len() + event.elements.len());
        }
        let is_raw = matches!(value, Value::Json(_));
        if let Some(json) = value.clone().into_json().filter(|_| !is_raw) {
            prop_assert!(serde_json::from_str::<serde_json::Value>(&json).is_ok(), "{json}");
        }
        // A column of this kind has a value or a reason for null.
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
        // A few trees cannot be written as a query, because they are too long or too
        // deep.
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
        prop_assert_eq!(compare(&exact, &float, &super::event("{}")), Some(expected));
        prop_assert_eq!(compare(&float, &exact, &super::event("{}")), Some(expected.reverse()));
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
        prop_assert_eq!(pattern::matches(&text, &pattern, false, &WorkLimit::default()), Some(expected));
    }
}
