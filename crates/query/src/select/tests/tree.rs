//! Tests of the tree: what refers to what, and types.

use super::select;
use crate::{
    Aggregate, AggregateCall, Expression, Field, Function, Kind, LIMIT_DEFAULT, Literal, Source,
    Table,
};

#[test]
fn expressions_of_groups_refer_to_groups_and_aggregates() {
    let found = select(
        "SELECT lower(event) AS name, count() AS n, n_of_persons FROM \
         (SELECT event, uniq(person_id) AS n_of_persons FROM events GROUP BY event) \
         GROUP BY name, n_of_persons HAVING count() > 1 ORDER BY max(event), n DESC OFFSET 3",
    );
    assert_eq!(found.limit, Some(LIMIT_DEFAULT));
    assert_eq!(found.offset, 3);
    assert!(found.is_grouped());
    let Source::Select(inner) = &found.source else { panic!("{found:?}") };
    assert_eq!(inner.source, Source::Table(Table::Events));
    assert_eq!(inner.limit, None, "a subquery has all rows");
    assert_eq!(inner.items[0].expression, Expression::Key(0));
    assert_eq!(inner.groups, [Expression::Field(Field::Event)]);
    assert_eq!(inner.aggregates[0].arguments, [Expression::Field(Field::PersonId)]);
    // Each aggregate is there once.
    let of = |aggregate, arguments| AggregateCall { aggregate, arguments, condition: None };
    let event = || Expression::Column(0);
    assert_eq!(found.aggregates, [of(Aggregate::Count, vec![]), of(Aggregate::Max, vec![event()])]);
    assert_eq!(found.groups[1], Expression::Column(1));
    let items: Vec<_> = found.items.iter().map(|item| &item.expression).collect();
    assert_eq!(items, [&Expression::Key(0), &Expression::Aggregate(0), &Expression::Key(1)]);
    assert_eq!(found.order[0].expression, Expression::Aggregate(1));
    assert!(!found.order[0].is_descending && found.order[1].is_descending);
}

#[test]
fn a_query_without_groups_is_about_rows() {
    let found = select("SELECT event, 1 FROM events WHERE {filters} ORDER BY timestamp DESC");
    assert!(!found.is_grouped() && found.takes_filters);
    assert_eq!(found.filter, None);
    assert_eq!(found.items[1].expression, Expression::Literal(Literal::Integer(1)));
    assert_eq!(found.order[0].expression, Expression::Field(Field::Timestamp));
    // Aggregates without GROUP BY have one group.
    assert!(select("SELECT count() FROM events").is_grouped());
    // A constant needs no group.
    assert!(select("SELECT 'a', event FROM events GROUP BY event").is_grouped());
}

#[test]
fn subqueries_of_sets_are_there_once() {
    let found = select(
        "SELECT count() FROM events WHERE person_id IN (SELECT id FROM persons) \
         OR person_id IN (SELECT id FROM persons WHERE true) OR NOT person_id IN (SELECT id FROM persons)",
    );
    assert_eq!(found.sets.len(), 2);
    assert_eq!(found.sets[0].limit, None);
    let Some(Expression::Or(items)) = &found.filter else { panic!("{found:?}") };
    let set = |item: &Expression| match item {
        Expression::InSet { set, .. } => Some(*set),
        Expression::Not(inner) => match &**inner {
            Expression::InSet { set, .. } => Some(*set),
            _ => None,
        },
        _ => None,
    };
    let sets: Vec<_> = items.iter().map(set).collect();
    assert_eq!(sets, [Some(0), Some(1), Some(0)]);
}

#[test]
fn columns_of_a_result_have_types() {
    for (items, expected) in [
        ("event", Kind::Text),
        ("uuid", Kind::Uuid),
        ("person_id", Kind::Uuid),
        ("session.id", Kind::Text),
        ("group_0.properties", Kind::Json),
        ("properties.x", Kind::Text),
        ("NULL", Kind::Text),
        ("count()", Kind::Integer),
        ("uniq(event)", Kind::Integer),
        ("sum(1)", Kind::Integer),
        ("sum(properties.x)", Kind::Float),
        ("avg(1)", Kind::Float),
        ("median(properties.x)", Kind::Float),
        ("max(timestamp)", Kind::Timestamp),
        ("max(timestamp) - min(timestamp)", Kind::Float),
        ("argMax(uuid, timestamp)", Kind::Uuid),
        ("any(NULL)", Kind::Text),
        ("groupUniqArray(event)", Kind::Json),
        ("count() / 2", Kind::Float),
        ("count() + 2", Kind::Integer),
        ("count() > 2", Kind::Boolean),
        ("toYear(timestamp)", Kind::Integer),
        ("dateDiff('day', timestamp, now())", Kind::Integer),
        ("now() - INTERVAL 1 DAY", Kind::Timestamp),
        ("today()", Kind::Timestamp),
        ("match(event, 'a')", Kind::Boolean),
        ("extract(event, 'a')", Kind::Text),
        ("domain(properties.url)", Kind::Text),
        ("round(2)", Kind::Integer),
        ("round(properties.x)", Kind::Float),
        ("least(1, 2.5)", Kind::Float),
        ("event IN (SELECT event FROM events)", Kind::Boolean),
    ] {
        let found = select(&format!("SELECT {items} AS x FROM events"));
        assert_eq!(found.kinds(), [expected], "{items}");
    }
    let outer = "SELECT day, n + 1 AS m, p.x AS x, max(n) AS most FROM (SELECT toStartOfDay(timestamp) \
                 AS day, count() AS n, properties AS p FROM events GROUP BY 1, 3) GROUP BY day, n, p.x";
    assert_eq!(select(outer).kinds(), [Kind::Timestamp, Kind::Integer, Kind::Text, Kind::Integer]);
    for table in Table::ALL {
        let found = select(&format!("SELECT * FROM {}", table.name()));
        let expected: Vec<_> = table.columns().iter().map(|(_, kind)| *kind).collect();
        if table != Table::Events {
            assert_eq!(found.kinds(), expected);
        }
        assert_eq!(Table::of(table.name()), Some(table));
    }
}

#[test]
fn every_aggregate_is_known_by_its_name() {
    for aggregate in Aggregate::ALL {
        let (least, most) = aggregate.arguments();
        for count in least..=most {
            let arguments = vec!["properties.x"; count].join(", ");
            let name = aggregate.name().to_uppercase();
            let found = select(&format!("SELECT {name}({arguments}) FROM events"));
            assert_eq!(found.aggregates[0].aggregate, aggregate);
            let condition = if count == 0 { "true" } else { ", true" };
            let found = select(&format!("SELECT {name}IF({arguments}{condition}) FROM events"));
            assert_eq!(found.aggregates[0].aggregate, aggregate);
            assert_eq!(found.aggregates[0].arguments.len(), count);
            assert!(found.aggregates[0].condition.is_some());
        }
    }
}

#[test]
fn every_field_and_function_is_known_by_its_name() {
    for field in Field::ALL {
        let found = select(&format!("SELECT {} FROM events", field.name()));
        assert_eq!(found.items[0].expression, Expression::Field(field));
    }
    for function in Function::ALL {
        assert_eq!(Function::of(&function.name().to_uppercase()), Some(*function));
        let (least, most) = function.arguments();
        assert!(least <= most);
        let argument = |at: usize| match (function, at) {
            (Function::DateDiff, 0) => "'day'",
            _ => "properties.x",
        };
        let mut arguments: Vec<_> = (0..least).map(argument).collect();
        if matches!(function, Function::Match | Function::Extract) {
            arguments[1] = "'a'";
        }
        let found =
            select(&format!("SELECT {}({}) FROM events", function.name(), arguments.join(", ")));
        assert!(
            matches!(&found.items[0].expression, Expression::Call(called, _) if called == function)
        );
    }
}
