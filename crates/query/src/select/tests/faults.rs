//! Tests of faults and their positions.

use super::normal;

#[test]
fn faults_of_clauses_have_their_position() {
    for (text, expected) in [
        ("", "The query must begin with SELECT (line 1, column 1)"),
        ("DROP TABLE events", "The query must begin with SELECT (line 1, column 1)"),
        ("SELECT 1", "The query must read FROM a table (line 1, column 9)"),
        ("SELECT event,\nFROM events", "Expected an expression, found `FROM` (line 2, column 1)"),
        ("SELECT (event FROM events", "Expected `)`, found `FROM` (line 1, column 15)"),
        ("SELECT event) FROM events", "Expected FROM, found `)` (line 1, column 13)"),
        ("SELECT event 5 FROM events", "Expected FROM, found `5` (line 1, column 14)"),
        (
            "SELECT event FROM events WHERE",
            "Expected an expression, found the end of the query (line 1, column 31)",
        ),
        (
            "SELECT event FROM events; DROP TABLE x",
            "Expected the end of the query, found `DROP` (line 1, column 27)",
        ),
        (
            "SELECT event FROM events LIMIT 1 WHERE true",
            "Expected the end of the query, found `WHERE` (line 1, column 34)",
        ),
        (
            "WITH a AS (SELECT 1) SELECT 2",
            "WITH is not supported; use a subquery after FROM (line 1, column 1)",
        ),
        (
            "SELECT event FROM events UNION ALL SELECT event FROM events",
            "UNION is not supported (line 1, column 26)",
        ),
        ("SELECT event FROM events FINAL", "FINAL is not supported (line 1, column 26)"),
        ("SELECT event FROM events SAMPLE 0.1", "SAMPLE is not supported (line 1, column 26)"),
        ("SELECT event FROM events FORMAT JSON", "FORMAT is not supported (line 1, column 26)"),
        (
            "SELECT event FROM events SETTINGS max_threads = 1",
            "SETTINGS are not supported (line 1, column 26)",
        ),
        (
            "SELECT event FROM events INTO OUTFILE '/etc/passwd'",
            "INTO is not supported (line 1, column 26)",
        ),
        (
            "SELECT event FROM events LIMIT 1 BY event",
            "LIMIT BY is not supported (line 1, column 34)",
        ),
        ("SELECT event FROM events LIMIT 1, 2", "Write LIMIT n OFFSET m (line 1, column 33)"),
        ("SELECT event FROM events LIMIT 50001", "LIMIT is from 0 to 50000 (line 1, column 32)"),
        (
            "SELECT event FROM events LIMIT -1",
            "Expected a whole number, found `-` (line 1, column 32)",
        ),
        ("SELECT event FROM events LIMIT {number}", "LIMIT is from 0 to 50000 (line 1, column 32)"),
        (
            "SELECT event FROM events OFFSET 1000000000",
            "OFFSET is from 0 to 1000000 (line 1, column 33)",
        ),
        (
            "SELECT count() OVER (PARTITION BY event) FROM events",
            "Window functions are not supported (line 1, column 16)",
        ),
        (
            "SELECT event FROM events ORDER BY event NULLS FIRST",
            "NULLS FIRST and NULLS LAST are not supported: null is last (line 1, column 41)",
        ),
        ("SELECT event FROM events GROUP event", "Expected BY, found `event` (line 1, column 32)"),
        (
            "SELECT DISTINCT ON (event) event FROM events",
            "DISTINCT ON is not supported (line 1, column 17)",
        ),
        ("SELECT event, event FROM events", "Two columns are named `event` (line 1, column 15)"),
        ("SELECT event AS FROM events", "Expected a name after AS, found `FROM`"),
    ] {
        let found = normal(text);
        assert!(found.starts_with(expected) || text.contains(" AS FROM"), "{text}\n{found}");
    }
    assert_eq!(
        normal("SELECT event AS FROM events"),
        "Expected a name after AS (line 1, column 17)"
    );
}

#[test]
fn only_four_tables_can_be_read() {
    let tables = "; the tables are events, persons, groups, sessions";
    for (from, name) in [
        ("person", "person"),
        ("Events", "Events"),
        ("event", "event"),
        ("surrealdb", "surrealdb"),
        ("information_schema.tables", "information_schema.tables"),
        ("system.users", "system.users"),
        ("events.x", "events.x"),
        ("url('http://127.0.0.1/', CSV)", "url"),
        ("file('/etc/passwd')", "file"),
        ("s3('https://bucket/x')", "s3"),
        ("remote('host', 'db.table')", "remote"),
        ("read_csv('/etc/passwd')", "read_csv"),
        ("events('x')", "events"),
        ("numbers(10)", "numbers"),
        ("`file`('x')", "file"),
        ("`/etc/passwd`", "/etc/passwd"),
    ] {
        let text = format!("SELECT event FROM {from}");
        let expected = format!("Unknown table `{name}`{tables} (line 1, column 19)");
        assert_eq!(normal(&text), expected, "{text}");
    }
    assert_eq!(
        normal("SELECT event FROM '/etc/passwd'"),
        "Expected a table, found `'/etc/passwd'` (line 1, column 19)"
    );
    let joins = "Joins are not supported: `person.properties` and `group_0.properties` are fields of events";
    for join in [
        "JOIN persons ON true",
        ", persons",
        "e LEFT JOIN persons p ON e.id = p.id",
        "ARRAY JOIN x",
        "FULL OUTER JOIN persons",
    ] {
        assert!(normal(&format!("SELECT event FROM events {join}")).starts_with(joins), "{join}");
    }
}

#[test]
fn only_functions_of_the_list_can_be_called() {
    for name in [
        "file",
        "url",
        "s3",
        "remote",
        "dictGet",
        "sleep",
        "getSetting",
        "hostName",
        "currentUser",
        "http::get",
        "toIntervalDay",
        "sumMap",
        "countIfIf",
    ] {
        let found = normal(&format!("SELECT {name}('x') FROM events"));
        let is_refused = found.starts_with("Unknown function `") || found.starts_with("Unknown ");
        assert!(is_refused && found.contains("line 1, column "), "{name}: {found}");
    }
    assert_eq!(
        normal("SELECT 1,\n  file('/etc/passwd') FROM events"),
        "Unknown function `file` (line 2, column 3)"
    );
}

#[test]
fn faults_of_names_have_their_position() {
    for (text, expected) in [
        ("SELECT nothing FROM events", "Unknown field `nothing` (line 1, column 8)"),
        ("SELECT event FROM persons", "Unknown field `event` (line 1, column 8)"),
        (
            "SELECT person.properties.x FROM persons",
            "Unknown field `person.properties.x` (line 1, column 8)",
        ),
        ("SELECT id.x FROM persons", "Unknown field `id.x` (line 1, column 8)"),
        ("SELECT other.event FROM events", "Unknown field `other.event` (line 1, column 8)"),
        (
            "SELECT group_5.properties.x FROM events",
            "Unknown field `group_5.properties.x` (line 1, column 8)",
        ),
        (
            "SELECT group_00.properties.x FROM events",
            "Unknown field `group_00.properties.x` (line 1, column 8)",
        ),
        (
            "SELECT session.duration FROM events",
            "Unknown field `session.duration` (line 1, column 8)",
        ),
        ("SELECT person.name FROM events", "Unknown field `person.name` (line 1, column 8)"),
        // An alias has a meaning after the columns and WHERE.
        ("SELECT event AS e FROM events WHERE e = 'x'", "Unknown field `e` (line 1, column 37)"),
        ("SELECT event AS e, lower(e) FROM events", "Unknown field `e` (line 1, column 26)"),
        // A subquery sees its own table alone.
        (
            "SELECT event FROM events e WHERE event IN (SELECT e.event FROM events)",
            "Unknown field `e.event` (line 1, column 51)",
        ),
        ("SELECT event FROM (SELECT uuid FROM events)", "Unknown field `event` (line 1, column 8)"),
        (
            "SELECT n.x FROM (SELECT event AS n FROM events)",
            "Unknown field `n.x` (line 1, column 8)",
        ),
        ("SELECT {missing} FROM events", "There is no value for `{missing}` (line 1, column 8)"),
        (
            "SELECT {list} FROM events",
            "The value of `list` is not a text, number, true, false or null (line 1, column 8)",
        ),
        (
            "SELECT {nul} FROM events",
            "The value of `nul` is not a text, number, true, false or null (line 1, column 8)",
        ),
        (
            "SELECT {smallest} FROM events",
            "The value of `smallest` is too large (line 1, column 8)",
        ),
        ("SELECT {wide} FROM events", "The value of `wide` is too large (line 1, column 8)"),
        ("SELECT {1} FROM events", "Expected the name of a value, found `1` (line 1, column 9)"),
        (
            "SELECT {filters} FROM events",
            "`{filters}` can only be a condition of WHERE, joined with AND (line 1, column 8)",
        ),
        (
            "SELECT event FROM events WHERE {filters} OR event = 'x'",
            "`{filters}` can only be a condition of WHERE, joined with AND (line 1, column 42)",
        ),
        (
            "SELECT event FROM events WHERE event = 'x' AND ({filters})",
            "`{filters}` can only be a condition of WHERE, joined with AND (line 1, column 49)",
        ),
        (
            "SELECT event FROM events WHERE (SELECT 1) = 1",
            "A subquery can only follow FROM or IN (line 1, column 33)",
        ),
        (
            "SELECT event FROM events WHERE event IN (SELECT event, uuid FROM events)",
            "A subquery after IN has one column (line 1, column 42)",
        ),
        ("SELECT event FROM events ORDER BY 2", "There is no column 2 (line 1, column 35)"),
        ("SELECT event FROM events GROUP BY 0", "There is no column 0 (line 1, column 35)"),
    ] {
        assert_eq!(normal(text), expected, "{text}");
    }
    let long = format!("SELECT {} FROM events", "x".repeat(1000));
    assert_eq!(normal(&long), format!("Unknown field `{}…` (line 1, column 8)", "x".repeat(64)));
}

#[test]
fn faults_of_groups_have_their_position() {
    let needs = "must be in GROUP BY or in an aggregate";
    for (text, expected) in [
        ("SELECT event, count() FROM events", format!("`event` {needs} (line 1, column 8)")),
        (
            "SELECT upper(lower(properties.a)), event, count() FROM events GROUP BY event",
            format!("`properties.a` {needs} (line 1, column 20)"),
        ),
        ("SELECT max(event) = event FROM events", format!("`event` {needs} (line 1, column 21)")),
        (
            "SELECT event FROM events GROUP BY event ORDER BY timestamp",
            format!("`timestamp` {needs} (line 1, column 50)"),
        ),
        (
            "SELECT event FROM events GROUP BY event HAVING uuid IS NULL",
            format!("`uuid` {needs} (line 1, column 48)"),
        ),
        (
            "SELECT n FROM (SELECT event AS n, uuid AS u FROM events) GROUP BY u",
            format!("`n` {needs} (line 1, column 8)"),
        ),
        ("SELECT * FROM events GROUP BY uuid", format!("`event` {needs} (line 1, column 8)")),
        (
            "SELECT event FROM events WHERE count() > 1",
            "An aggregate cannot be in WHERE (line 1, column 32)".to_owned(),
        ),
        (
            "SELECT sum(count()) FROM events",
            "An aggregate cannot be in another aggregate (line 1, column 12)".to_owned(),
        ),
        (
            "SELECT count() AS n FROM events ORDER BY sum(n)",
            "An aggregate cannot be in another aggregate (line 1, column 46)".to_owned(),
        ),
        (
            "SELECT count() AS n FROM events GROUP BY event, n",
            "An aggregate cannot be in GROUP BY (line 1, column 49)".to_owned(),
        ),
        (
            "SELECT event FROM events GROUP BY count()",
            "An aggregate cannot be in GROUP BY (line 1, column 35)".to_owned(),
        ),
        (
            "SELECT event FROM events HAVING event = 'x'",
            "HAVING needs GROUP BY or an aggregate (line 1, column 26)".to_owned(),
        ),
        (
            "SELECT DISTINCT event FROM events ORDER BY uuid",
            "With DISTINCT, ORDER BY can only name columns of the result (line 1, column 44)"
                .to_owned(),
        ),
        ("SELECT sum() FROM events", "`sum` takes 1 arguments (line 1, column 8)".to_owned()),
        (
            "SELECT count(1, 2) FROM events",
            "`count` takes 0 to 1 arguments (line 1, column 8)".to_owned(),
        ),
        (
            "SELECT countIf() FROM events",
            "`countIf` takes 1 to 2 arguments (line 1, column 8)".to_owned(),
        ),
        (
            "SELECT sum(DISTINCT properties.x) FROM events",
            "DISTINCT is supported in `count` alone (line 1, column 12)".to_owned(),
        ),
        (
            "SELECT quantile(properties.x) FROM events",
            "`quantile` takes its level first: `quantile(0.9)(x)` (line 1, column 17)".to_owned(),
        ),
        (
            "SELECT quantile(1.5)(properties.x) FROM events",
            "The level of `quantile` is from 0 to 1 (line 1, column 17)".to_owned(),
        ),
    ] {
        assert_eq!(normal(text), expected, "{text}");
    }
}

#[test]
fn operations_without_a_value_are_refused() {
    for (condition, expected) in [
        ("timestamp", "Expected a condition, found a time (line 1, column 32)"),
        ("event = 'a' AND timestamp", "Expected a condition, found a time (line 1, column 48)"),
        ("uuid AND true", "Expected a condition, found a uuid (line 1, column 32)"),
        ("true OR uuid", "Expected a condition, found a uuid (line 1, column 40)"),
        ("(uuid OR true)", "Expected a condition, found a uuid (line 1, column 33)"),
        ("NOT uuid", "Expected a condition, found a uuid (line 1, column 36)"),
        (
            "person_id IN (SELECT count() FROM events)",
            "Cannot compare a uuid with a number (line 1, column 42)",
        ),
        ("uuid = 5", "Cannot compare a uuid with a number (line 1, column 37)"),
        ("timestamp = true", "Cannot compare a time with true or false (line 1, column 42)"),
        ("person_id IN ('x')", "`x` is not a uuid (line 1, column 42)"),
        ("timestamp > 'yesterday'", "`yesterday` is not a time (line 1, column 42)"),
        ("'x' < timestamp", "`x` is not a time (line 1, column 36)"),
        ("timestamp BETWEEN '2026-01-01' AND 'x'", "`x` is not a time (line 1, column 42)"),
        ("timestamp * 2 = 1", "`*` cannot be applied to a time (line 1, column 42)"),
        ("timestamp + now() = 1", "`+` cannot be applied to a time (line 1, column 42)"),
        ("uuid + 1 = 1", "`+` cannot be applied to a uuid (line 1, column 37)"),
        ("-timestamp = 1", "Expected a number, found a time (line 1, column 32)"),
        ("uuid - INTERVAL 1 DAY = 1", "Expected a time, found a uuid (line 1, column 37)"),
        ("toStartOfDay(uuid) = '2026-01-01'", "Expected a time, found a uuid (line 1, column 45)"),
        ("toDateTime('x') > now()", "`x` is not a time (line 1, column 43)"),
        ("round(timestamp) = 1", "Expected a number, found a time (line 1, column 38)"),
        ("if(uuid, true, false)", "Expected a condition, found a uuid (line 1, column 35)"),
        ("CASE WHEN uuid THEN true END", "Expected a condition, found a uuid (line 1, column 42)"),
        (
            "dateDiff('fortnight', timestamp, now()) > 1",
            "Expected a unit such as 'day' (line 1, column 41)",
        ),
        (
            "dateDiff('day', true, now()) > 1",
            "Expected a time, found true or false (line 1, column 48)",
        ),
        (
            "match(event, event)",
            "A regular expression is a text in single quotes (line 1, column 45)",
        ),
        (
            "match(event, '(')",
            "The regular expression is invalid or nested too deep (line 1, column 45)",
        ),
        ("'x'::date > now()", "`x` is not a time (line 1, column 32)"),
        ("CAST(uuid AS DateTime) > 1", "Expected a time, found a uuid (line 1, column 37)"),
        ("event::uuid = 1", "Unknown type `uuid` (line 1, column 39)"),
        ("CAST(event, Int) = 1", "Expected AS, found `,` (line 1, column 42)"),
        (
            "event - INTERVAL 'x' DAY > 1",
            "Expected a whole number, found `'x'` (line 1, column 49)",
        ),
        (
            "now() - INTERVAL 1 fortnight > 1",
            "Expected a unit such as DAY, found `fortnight` (line 1, column 51)",
        ),
        (
            "now() * INTERVAL 1 DAY > 1",
            "Expected an expression, found `INTERVAL` (line 1, column 40)",
        ),
        ("CASE WHEN true 1 END", "Expected THEN, found `1` (line 1, column 47)"),
        ("CASE WHEN true THEN 1", "Expected END, found the end of the query (line 1, column 53)"),
        ("CASE END", "Expected an expression, found `END` (line 1, column 37)"),
        ("lower() = ''", "`lower` takes 1 arguments, not 0 (line 1, column 32)"),
    ] {
        let text = format!("SELECT event FROM events WHERE {condition}");
        assert_eq!(normal(&text), expected, "{text}");
    }
    assert_eq!(
        normal("SELECT sum(timestamp) FROM events"),
        "Expected a number, found a time (line 1, column 12)"
    );
    assert_eq!(
        normal("SELECT sumIf(1, uuid) FROM events"),
        "Expected a condition, found a uuid (line 1, column 17)"
    );
    // The type of a column of a subquery is known.
    assert_eq!(
        normal("SELECT avg(d) FROM (SELECT max(timestamp) AS d FROM events GROUP BY event)"),
        "Expected a number, found a time (line 1, column 12)"
    );
    // Properties may have any type.
    assert!(
        normal("SELECT sum(properties.x), avg(properties.y) FROM events WHERE properties.z")
            .starts_with("SELECT")
    );
}
