//! Questions whose expressions are sent one by one.

use super::*;

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn parsed(
    columns: &[&str],
    conditions: &[&str],
    order: &[&str],
) -> Result<SelectedFragments, FragmentError> {
    let (columns, conditions, order) = (texts(columns), texts(conditions), texts(order));
    parse_fragments(&Fragments {
        select: &columns,
        conditions: &conditions,
        order: &order,
        limit: 10,
        offset: 5,
    })
}

#[test]
fn texts_become_one_select() {
    for (columns, conditions, order, places, expected) in [
        (
            &["event", "timestamp"][..],
            &[][..],
            &[][..],
            &[0, 1][..],
            "SELECT event, timestamp FROM events LIMIT 10 OFFSET 5",
        ),
        (
            &["event", "properties.a AS x", "event"],
            &["x = 1 OR event = 'a'", "NOT empty(event)"],
            &["x DESC", "timestamp", "event ASC"],
            &[0, 1, 0],
            "",
        ),
        (
            &["event", "properties.a AS x"],
            &["properties.b = 1 OR event = 'a'", "timestamp > '2026-01-01'"],
            &["x DESC", "timestamp"],
            &[0, 1],
            "SELECT event, properties.a AS x FROM events WHERE (properties.b = 1 OR event = 'a') AND \
             timestamp > '2026-01-01' ORDER BY x DESC, timestamp LIMIT 10 OFFSET 5",
        ),
        (
            &["event", "count()", "upper(event)"],
            &["event != 'a'"],
            &["count() DESC", "event"],
            &[0, 1, 2],
            "SELECT event, count(), upper(event) FROM events WHERE event != 'a' GROUP BY event, \
             upper(event) ORDER BY count() DESC, event LIMIT 10 OFFSET 5",
        ),
        (
            &["count()"],
            &["person_id IN (SELECT id FROM persons)"],
            &[],
            &[0],
            "SELECT count() FROM events WHERE person_id IN (SELECT id FROM persons) LIMIT 10 OFFSET 5",
        ),
    ] {
        match parsed(columns, conditions, order) {
            Ok(found) => {
                assert_eq!(found.select.normal_form(), expected);
                assert_eq!(found.places, places);
                let again = parse_select(expected, &BTreeMap::new()).unwrap();
                assert_eq!(again, found.select);
            }
            Err(FragmentError::Condition(0, fault)) => {
                // Conditions are about events, and know no aliases.
                assert!(expected.is_empty() && fault.detail.contains("`x`"), "{fault}");
            }
            Err(other) => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_fault_has_its_text_and_position() {
    let shown = |found: Result<SelectedFragments, FragmentError>| match found.unwrap_err() {
        FragmentError::Select(at, fault) => format!("select {at}: {fault}"),
        FragmentError::Condition(at, fault) => format!("where {at}: {fault}"),
        FragmentError::Order(at, fault) => format!("order {at}: {fault}"),
    };
    for (found, expected) in [
        (
            parsed(&["event", "1 +"], &[], &[]),
            "select 1: Expected an expression, found the end of the query (line 1, column 4)",
        ),
        (
            parsed(&["event, timestamp"], &[], &[]),
            "select 0: Expected the end of the expression, found `,` (line 1, column 6)",
        ),
        (
            parsed(&["event"], &["timestamp"], &[]),
            "where 0: Expected a condition, found a time (line 1, column 1)",
        ),
        (
            parsed(&["event"], &["count() > 1"], &[]),
            "where 0: An aggregate cannot be in a condition (line 1, column 1)",
        ),
        (
            parsed(&["event"], &["event = 'a') OR (1 = 1"], &[]),
            "where 0: Expected the end of the expression, found `)` (line 1, column 12)",
        ),
        (
            parsed(&["event"], &[], &["event", "url('x')"]),
            "order 1: Unknown function `url` (line 1, column 1)",
        ),
        (
            parsed(&["event", "count()"], &[], &["timestamp"]),
            "order 0: `timestamp` must be in an aggregate (line 1, column 1)",
        ),
        (
            parsed(&["event", "timestamp AS event"], &[], &[]),
            "select 1: Two columns are named `event` (line 1, column 1)",
        ),
    ] {
        assert_eq!(shown(found), expected);
    }
}

#[test]
fn all_texts_share_the_bounds() {
    let many = vec!["event = 'a' AND event = 'b' AND event = 'c'"; 100];
    assert!(parsed(&["event"], &many, &[]).is_ok());
    let list: Vec<String> = (0..400).map(|at| at.to_string()).collect();
    let list = format!("event IN ({})", list.join(","));
    assert!(matches!(parsed(&["event"], &[&list], &[]), Err(FragmentError::Condition(0, _))));
    let sets = vec!["person_id IN (SELECT id FROM persons LIMIT 1)"; 9];
    assert!(matches!(parsed(&["event"], &sets, &[]), Err(FragmentError::Condition(8, _))));
    let long = "event = 'a' OR event = 'b' OR event = 'c' OR ".repeat(20) + "event = 'd'";
    let long = vec![long.as_str(); 20];
    assert!(matches!(parsed(&["event"], &long, &[]), Err(FragmentError::Condition(..))));
    let order = vec!["event"; 17];
    assert!(matches!(parsed(&["event"], &[], &order), Err(FragmentError::Order(16, _))));
}
