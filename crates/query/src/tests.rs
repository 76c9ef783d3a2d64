use serde_json::json;

use super::*;

fn normal(text: &str) -> String {
    parse(text).map(|query| query.normal_form()).unwrap_or_else(|error| error.to_string())
}

#[test]
fn queries_have_one_normal_form() {
    for (text, expected) in [
        ("SELECT event FROM events", "SELECT event FROM events"),
        ("select event as event, uuid id from events;", "SELECT event, uuid AS id FROM events"),
        (
            "SELECT properties.$browser AS browser, events.properties['a b'].c FROM events",
            "SELECT properties.$browser AS browser, properties.`a b`.c FROM events",
        ),
        (
            "SELECT e.person.properties.email, e.person.id AS p FROM events AS e WHERE e.event != 'x'",
            "SELECT person_properties.email, person_id AS p FROM events WHERE event != 'x'",
        ),
        (
            "SELECT event FROM events WHERE event = 'a' OR event = 'b' AND NOT (event = 'it''s')",
            "SELECT event FROM events WHERE (event = 'a') OR \
             ((event = 'b') AND (NOT (event = 'it\\'s')))",
        ),
        (
            "SELECT 1 + 2 * -3 AS n, -(1) AS m, 1.50 AS f, 'a' || 'b' || 'c' AS t FROM events",
            "SELECT 1 + (2 * -3) AS n, -1 AS m, 1.5 AS f, concat(concat('a', 'b'), 'c') AS t \
             FROM events",
        ),
        (
            "SELECT LOWER(event) AS l, if(event IS NOT NULL, 1, NULL) AS i FROM events \
             WHERE event not in ('a', 'b') AND event ILIKE '%x_' AND timestamp BETWEEN \
             toDateTime('2026-01-01') AND toDateTime('2026-02-01')",
            "SELECT lower(event) AS l, if(event IS NOT NULL, 1, NULL) AS i FROM events \
             WHERE (event NOT IN ('a', 'b')) AND (event ILIKE '%x_') AND (timestamp BETWEEN \
             toDateTime('2026-01-01') AND toDateTime('2026-02-01'))",
        ),
        (
            "/* all */ SELECT\n event -- the name\n, `select`.x AS y FROM `events` `select`",
            "Unknown field `select.x` (line 3, column 3)",
        ),
        (
            "SELECT event AS `a b`, uuid AS \"select\" FROM events",
            "SELECT event AS `a b`, uuid AS `select` FROM events",
        ),
        ("SELECT team_id, true AS yes FROM events", "SELECT team_id, true AS yes FROM events"),
    ] {
        let found = normal(text);
        assert_eq!(found, expected, "{text}");
        if found.starts_with("SELECT") {
            assert_eq!(normal(&found), found, "read again");
        }
    }
}

#[test]
fn faults_have_their_position() {
    for (text, expected) in [
        ("", "The query must begin with SELECT (line 1, column 1)"),
        ("DELETE FROM events", "The query must begin with SELECT (line 1, column 1)"),
        ("SELECT event", "The query must read FROM events (line 1, column 13)"),
        ("SELECT event,", "Expected an expression, found the end of the query (line 1, column 14)"),
        ("SELECT FROM events", "Expected an expression, found `FROM` (line 1, column 8)"),
        ("SELECT * FROM events", "Name the columns: `*` is not supported (line 1, column 8)"),
        ("SELECT nothing FROM events", "Unknown field `nothing` (line 1, column 8)"),
        ("SELECT event.x FROM events", "Unknown field `event.x` (line 1, column 8)"),
        ("SELECT person.name FROM events", "Unknown field `person.name` (line 1, column 8)"),
        ("SELECT\n  ä FROM events", "Unexpected character `ä` (line 2, column 3)"),
        ("SELECT 'ä', nothing FROM events", "Unknown field `nothing` (line 1, column 13)"),
        ("SELECT count() FROM events", "Unknown function `count` (line 1, column 8)"),
        (
            "SELECT lower(event, 1) FROM events",
            "`lower` takes 1 arguments, not 2 (line 1, column 8)",
        ),
        (
            "SELECT multiIf(true, 1, false, 2) FROM events",
            "`multiIf` takes a value behind each condition, and one more at the end \
             (line 1, column 8)",
        ),
        (
            "SELECT event FROM persons",
            "Only the table `events` can be exported (line 1, column 19)",
        ),
        (
            "SELECT event FROM events.x",
            "Only the table `events` can be exported (line 1, column 25)",
        ),
        ("SELECT event FROM (SELECT 1)", "Subqueries are not supported (line 1, column 19)"),
        ("SELECT (SELECT 1) FROM events", "Subqueries are not supported (line 1, column 9)"),
        (
            "SELECT event FROM events WHERE event IN (SELECT 1)",
            "Subqueries are not supported (line 1, column 42)",
        ),
        (
            "WITH a AS (SELECT 1) SELECT event FROM events",
            "CTEs are not supported (line 1, column 1)",
        ),
        (
            "SELECT event FROM events UNION ALL SELECT event FROM events",
            "UNION is not supported (line 1, column 26)",
        ),
        (
            "SELECT event FROM events JOIN persons ON 1",
            "Joins are not supported: an export reads from `events` alone (line 1, column 26)",
        ),
        (
            "SELECT event FROM events e, persons",
            "Joins are not supported: an export reads from `events` alone (line 1, column 27)",
        ),
        (
            "SELECT event FROM events LIMIT 1",
            "LIMIT is not supported: an export has all events of its interval (line 1, column 26)",
        ),
        (
            "SELECT event FROM events WHERE",
            "Expected an expression, found the end of the query (line 1, column 31)",
        ),
        (
            "SELECT event FROM events WHERE event = ",
            "Expected an expression, found the end of the query (line 1, column 40)",
        ),
        (
            "SELECT event FROM events; DROP TABLE x",
            "Expected the end of the query, found `DROP` (line 1, column 27)",
        ),
        ("SELECT 'abc FROM events", "The quotation does not end (line 1, column 8)"),
        ("SELECT event FROM events /* x", "The comment does not end (line 1, column 26)"),
        ("SELECT 99999999999999999999 FROM events", "The number is too large (line 1, column 8)"),
        ("SELECT 1x FROM events", "A number cannot be followed by letters (line 1, column 9)"),
        ("SELECT event, event FROM events", "Two columns are named `event` (line 1, column 15)"),
        (
            "SELECT CASE WHEN 1 THEN 2 END FROM events",
            "CASE is not supported; use `if` or `multiIf` (line 1, column 8)",
        ),
        ("SELECT (event FROM events", "Expected `)`, found `FROM` (line 1, column 15)"),
        (
            "SELECT properties[1] FROM events",
            "Expected a text in single quotation marks, found `1` (line 1, column 19)",
        ),
    ] {
        assert_eq!(normal(text), expected, "{text}");
    }
}

#[test]
fn depth_and_length_are_bounded() {
    let wrapped = |depth: usize| {
        format!("SELECT {}1{} AS x FROM events", "lower(".repeat(depth), ")".repeat(depth))
    };
    assert!(parse(&wrapped(31)).is_ok());
    assert!(normal(&wrapped(40)).starts_with("The expression is nested too deep"));
    assert!(normal(&wrapped(1000)).starts_with("The expression is nested too deep"));
    for many in [
        format!("SELECT {}1 AS x FROM events", "(".repeat(5000)),
        format!("SELECT {}1 AS x FROM events", "1 + ".repeat(2400)),
        format!("SELECT event FROM events WHERE {}1", "1 OR ".repeat(1999)),
        format!("SELECT event FROM events WHERE event IN ({}1)", "1,".repeat(3000)),
        format!("SELECT event FROM events WHERE 1{}", " IS NULL".repeat(1200)),
    ] {
        assert!(parse(&many).is_err(), "{}", many.len());
    }
    // Many redundant signs are parsed without depth.
    let signs =
        format!("SELECT {}1 AS x, {}true AS y FROM events", "- ".repeat(3000), "NOT ".repeat(800));
    assert_eq!(normal(&signs), "SELECT 1 AS x, true AS y FROM events");
    let long = format!("SELECT event FROM events WHERE event = '{}'", "x".repeat(10_000));
    assert!(normal(&long).starts_with("The query has more than 10000 characters"));
    // The normal form of every accepted query can be parsed.
    let chain = format!("SELECT {}1 AS x FROM events", "1 + ".repeat(30));
    assert_eq!(normal(&normal(&chain)), normal(&chain));
}

#[test]
fn the_schema_binds_texts() {
    let query = parse(
        "SELECT event, properties.$browser AS browser, lower('A') AS a FROM events \
         WHERE properties.plan.name = 'pro' AND team_id = 1",
    )
    .unwrap();
    assert_eq!(
        serde_json::to_value(schema(&query)).unwrap(),
        json!({
            "fields": [
                {"expression": "events.event", "alias": "event"},
                {
                    "expression": "JSONExtractString(events.properties, %(hogql_val_0)s)",
                    "alias": "browser",
                },
                {"expression": "lower(%(hogql_val_1)s)", "alias": "a"},
            ],
            "values": {
                "hogql_val_0": "$browser", "hogql_val_1": "A", "hogql_val_2": "plan",
                "hogql_val_3": "name", "hogql_val_4": "pro",
            },
            "hogql_query": "SELECT event, properties.$browser AS browser, lower('A') AS a \
                            FROM events WHERE (properties.plan.name = 'pro') AND (team_id = 1)",
            "filter": "(JSONExtractString(events.properties, %(hogql_val_2)s, %(hogql_val_3)s) \
                       = %(hogql_val_4)s) AND (events.team_id = 1)",
        })
    );
}

#[test]
fn every_field_and_function_is_known_by_its_name() {
    for field in Field::ALL {
        let query = parse(&format!("SELECT {} FROM events", field.name())).unwrap();
        assert_eq!(query.columns[0].expression, Expression::Field(field));
    }
    for function in Function::ALL.iter().filter(|function| function.is_for_exports()) {
        assert_eq!(Function::of(&function.name().to_uppercase()), Some(*function));
        let (least, most) = function.arguments();
        assert!(least <= most);
        let arguments = vec!["'a'"; least].join(", ");
        let text = format!("SELECT {}({arguments}) AS x FROM events", function.name());
        assert!(parse(&text).is_ok(), "{text}: {}", normal(&text));
    }
}
