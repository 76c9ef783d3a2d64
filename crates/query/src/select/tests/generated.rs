//! Tests with generated queries.

use proptest::prelude::*;

use super::*;

/// Texts of expressions that are about one row.
fn expressions() -> impl Strategy<Value = String> {
    let texts = |texts: Vec<&'static str>| prop::sample::select(texts).prop_map(str::to_owned);
    let leaves = prop_oneof![
        8 => texts(vec![
            "event",
            "events.event",
            "e.distinct_id",
            "properties.a",
            "properties['a b'].c",
            "person.properties.`select`",
            "group_0.properties.x",
            "session.id",
            "1",
            "-2",
            "2.50",
            "1e30",
            "'it''s \\\\ \\n'",
            "'2026-06-01'",
            "NULL",
            "true",
            "{name}",
            "{number}",
            "{half}",
        ]),
        // Few operations can be applied to these.
        1 => texts(vec!["timestamp", "toString(person.id)", "toUnixTimestamp(now())", "today()"]),
    ];
    leaves.prop_recursive(4, 24, 3, |inner| {
        let two = (inner.clone(), inner.clone());
        let three = (inner.clone(), inner.clone(), inner.clone());
        prop_oneof![
            (
                two.clone(),
                prop::sample::select(vec![
                    "=",
                    "!=",
                    "<",
                    ">=",
                    "+",
                    "-",
                    "*",
                    "/",
                    "%",
                    "||",
                    "AND",
                    "OR",
                    "LIKE",
                    "NOT ILIKE",
                ])
            )
                .prop_map(|((left, right), sign)| format!("{left} {sign} {right}")),
            (two.clone(), prop::sample::select(vec!["+", "-", "AND", "OR", "=", "*", "||"]))
                .prop_map(|((left, right), sign)| format!("({left}) {sign} ({right})")),
            (
                inner.clone(),
                prop::sample::select(vec![
                    "-(#)",
                    "NOT (#)",
                    "(#) IS NULL",
                    "# IS NOT NULL",
                    "lower(#)",
                    "round(#, 2)",
                    "#::int",
                    "CAST(# AS String)",
                    "toString(#::date)",
                    "CAST(# AS Timestamp) IS NULL",
                    "# IN (1, -2, 'x', #)",
                    "# NOT IN (SELECT event FROM events)",
                    "toString((#) + INTERVAL 2 DAY)",
                    "lower(# - INTERVAL 1 month)",
                    "match(#, '^a+')",
                    "toHour(toStartOfWeek(#))",
                    "dateDiff('hours', #, now())",
                    "CASE # WHEN 1 THEN 'a' ELSE # END",
                    "abs(#)",
                    "# IN (SELECT max(#) FROM events WHERE {filters})",
                    "- - #",
                ])
            )
                .prop_map(|(inner, text)| text.replace('#', &inner)),
            three.clone().prop_map(|(a, b, c)| format!("CASE WHEN {a} THEN {b} ELSE {c} END")),
            three.clone().prop_map(|(a, b, c)| format!("multiIf({a}, {b}, {c})")),
            three.prop_map(|(a, b, c)| format!("({a}) BETWEEN ({b}) AND ({c})")),
        ]
    })
}

/// Texts of expressions that are about a group.
fn outputs() -> impl Strategy<Value = String> {
    (
        expressions(),
        prop::sample::select(vec![
            "count()",
            "uniq(#)",
            "count(DISTINCT #)",
            "sumIf(properties.x, #)",
            "quantile(0.25)(properties.x)",
            "max(#)",
            "argMin(#, timestamp)",
            "count() > 1 AND max(#) IS NULL",
            "sum(1) / countIf(#)",
            "-median(properties.x)",
            "lower(key)",
            "key",
            "key = 'a'",
            "any(#) || key",
        ]),
    )
        .prop_map(|(inner, text)| text.replace('#', &inner))
}

fn queries() -> impl Strategy<Value = String> {
    let rows = (
        prop::collection::vec(expressions(), 1..3),
        prop::option::of(expressions()),
        prop::collection::vec(expressions(), 0..3),
        any::<bool>(),
    )
        .prop_map(|(items, filter, order, is_distinct)| {
            let items = named(&items, ["event", "c1", "`group`"]);
            let distinct = if is_distinct { "DISTINCT " } else { "" };
            let filter = filter.map(|filter| format!(" WHERE {filter}")).unwrap_or_default();
            let order =
                clause(" ORDER BY ", &if is_distinct { vec!["event".to_owned()] } else { order });
            format!("SELECT {distinct}{items} FROM events e{filter}{order}")
        });
    let groups = (
        expressions(),
        prop::collection::vec(outputs(), 1..4),
        prop::option::of(outputs()),
        prop::collection::vec(outputs(), 0..3),
        any::<bool>(),
    )
        .prop_map(|(key, items, having, order, is_filtered)| {
            let key_of = |item: &String| item.replace("key", &format!("({key})"));
            let items: Vec<_> = items.iter().map(key_of).collect();
            let items = named(&items, ["c0", "event", "timestamp"]);
            let filter = if is_filtered { " WHERE {filters} AND event != 'x'" } else { "" };
            let having = having.map(|having| format!(" HAVING {having}")).unwrap_or_default();
            let order = clause(" ORDER BY ", &order);
            format!(
                "SELECT {key} AS key, {items} FROM events e{filter} GROUP BY key{having}{order}"
            )
        })
        .boxed();
    let nested = (groups.clone(), prop::sample::select(vec![
        "SELECT max(c0) AS m, key AS k FROM (#) s GROUP BY s.key HAVING m > 1 ORDER BY m DESC LIMIT 5",
        "SELECT * FROM (#) WHERE c0 > 1 ORDER BY 1 OFFSET 2",
        "SELECT DISTINCT c0 FROM (#)",
        "SELECT count(), lower(key) AS key FROM (#) GROUP BY key, t.key",
    ]))
        .prop_map(|(inner, text)| text.replace('#', &inner).replace("t.key", "2"));
    prop_oneof![rows, groups, nested]
}

fn named(items: &[String], names: [&str; 3]) -> String {
    let items = items.iter().zip(names).map(|(item, name)| format!("{item} AS {name}"));
    items.collect::<Vec<_>>().join(", ")
}

fn clause(name: &str, items: &[String]) -> String {
    if items.is_empty() { String::new() } else { format!("{name}{}", items.join(", ")) }
}

/// The normal form is parsed to the same tree.
#[track_caller]
fn assert_normal(text: &str, select: &Select) {
    let normal = select.normal_form();
    if normal.chars().count() > SQL_MAX {
        return;
    }
    match parse_select(&normal, &BTreeMap::new()) {
        Ok(read) => {
            assert_eq!(&read, select, "{text}\n{normal}");
            assert_eq!(read.normal_form(), normal, "{text}");
            assert_eq!(read.kinds(), select.kinds(), "{text}");
        }
        Err(error) => panic!("{text}\n{normal}\n{error}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn the_normal_form_is_parsed_to_the_same_tree(text in queries()) {
        match parse_select(&text, &values()) {
            Ok(select) => assert_normal(&text, &select),
            Err(error) => prop_assert!(error.position.line == 1 && error.position.column >= 1),
        }
    }

    #[test]
    fn any_text_is_a_query_or_a_fault(words in prop::collection::vec(prop::sample::select(vec![
        "SELECT", "DISTINCT", "FROM", "events", "persons", "WHERE", "GROUP", "BY", "HAVING", "ORDER",
        "LIMIT", "OFFSET", "AS", "x", "event", "properties", "properties.a", "count", "count()", "sum",
        "quantile", "(", ")", "[", "]", "{", "}", "{filters}", "{name}", ",", ".", "*", "+", "-", "/",
        "::", "int", "1", "0.5", "'a'", "`b`", "AND", "OR", "NOT", "IN", "IS", "NULL", "BETWEEN", "LIKE",
        "CASE", "WHEN", "THEN", "ELSE", "END", "INTERVAL", "DAY", "match", "dateDiff", ";", "--", "/*",
        "ä", "\n", "=", "<", "||",
    ]), 0..40)) {
        let text = words.join(" ");
        for text in [format!("SELECT event FROM events WHERE {text}"), format!("SELECT {text}"), text] {
            match parse_select(&text, &values()) {
                Ok(select) => assert_normal(&text, &select),
                Err(error) => {
                    let lines = text.lines().count().max(1) + usize::from(text.ends_with('\n'));
                    prop_assert!((1..=lines).contains(&error.position.line), "{text:?}: {error}");
                }
            }
        }
    }

    #[test]
    fn no_text_is_too_much(text in any::<String>()) {
        let _ = parse_select(&text, &values());
        let _ = parse_select(&format!("SELECT {text} FROM events"), &values());
    }
}

/// Otherwise the tests above would check little.
#[test]
fn most_generated_queries_are_valid() {
    use proptest::strategy::ValueTree as _;
    use proptest::test_runner::TestRunner;
    let (mut runner, queries) = (TestRunner::deterministic(), queries());
    let valid = (0..300)
        .filter(|_| {
            let text = queries.new_tree(&mut runner).unwrap().current();
            parse_select(&text, &values()).is_ok()
        })
        .count();
    assert!(valid > 150, "{valid} of 300");
}
