//! Queries that try to cost more than a query may, or to reach what they must not.

use super::*;

/// The query is refused with a fault that begins with the text and has a position.
#[track_caller]
fn assert_refused(text: &str, fault: &str) {
    let found = normal(text);
    let start: String = text.chars().take(80).collect();
    assert!(found.starts_with(fault) && found.contains(" (line "), "{start}\n{found}");
}

#[test]
fn length_is_bounded() {
    let text = |length: usize| format!("SELECT '{}' AS x FROM events", "a".repeat(length - 26));
    assert!(normal(&text(SQL_MAX)).starts_with("SELECT"));
    assert_refused(&text(SQL_MAX + 1), "The query has more than 20000 characters");
    assert_refused(&"(".repeat(1 << 20), "The query has more than 20000 characters");
    assert_refused(
        &format!("SELECT event FROM events WHERE match(event, '{}')", "a".repeat(1001)),
        "The regular expression has more than 1000 characters",
    );
}

#[test]
fn depth_is_bounded() {
    let deep = "The expression is nested too deep";
    for text in [
        format!("SELECT {}1 AS x FROM events", "(".repeat(10_000)),
        format!("SELECT {}1{} AS x FROM events", "lower(".repeat(33), ")".repeat(33)),
        format!("SELECT 1 AS x FROM events WHERE {}1{}", "(".repeat(5000), ")".repeat(5000)),
        format!("SELECT {}1 AS x FROM events", "CASE WHEN ".repeat(1000)),
        format!("SELECT {}1 AS x FROM events", "CASE ".repeat(1000)),
        format!("SELECT {}1 AS x FROM events", "cast(".repeat(1000)),
        format!("SELECT 1{} AS x FROM events", "::int".repeat(1900)),
        format!("SELECT 1{} AS x FROM events", " IS NULL".repeat(1900)),
        format!("SELECT 1{} AS x FROM events", " + 1".repeat(990)),
        format!("SELECT now(){} AS x FROM events", " + INTERVAL 1 DAY".repeat(1000)),
        format!("SELECT sum({}1{}) AS x FROM events", "lower(".repeat(32), ")".repeat(32)),
        format!("SELECT event FROM events WHERE {}1{}", "lower(".repeat(32), ")".repeat(32)),
    ] {
        assert_refused(&text, deep);
    }
    // The alias is deep in a deep expression.
    let (open, close) = ("lower(".repeat(30), ")".repeat(30));
    let text = format!("SELECT {open}event{close} AS x FROM events ORDER BY {open}x{close}");
    assert_refused(&text, deep);
    // Aggregates and sets are deep in deep expressions.
    let (open, close) = ("lower(".repeat(22), ")".repeat(22));
    let set = format!("event IN (SELECT {open}event{close} AS y FROM events)");
    let text = format!("SELECT {open}sumIf(1, {open}{set}{close}){close} AS x FROM events");
    assert_refused(&text, "The query is nested too deep");
    let nested = |depth: usize| {
        let (open, close) = ("SELECT event FROM (".repeat(depth), ")".repeat(depth));
        format!("{open}SELECT event FROM events{close}")
    };
    assert!(normal(&nested(3)).starts_with("SELECT"));
    assert_refused(&nested(4), "The subqueries are nested too deep");
    assert_refused(&nested(700), "The subqueries are nested too deep");
    let sets = "SELECT event FROM events WHERE event IN (".repeat(400);
    assert_refused(&sets, "The subqueries are nested too deep");
    // Signs that do nothing are parsed without depth.
    let signs = format!("SELECT {}1 AS x FROM events", "- ".repeat(9000));
    assert!(normal(&signs).starts_with("SELECT 1 AS x"));
}

#[test]
fn numbers_of_parts_are_bounded() {
    let list = |count: usize, item: &dyn Fn(usize) -> String| {
        (0..count).map(item).collect::<Vec<_>>().join(", ")
    };
    let columns = |count| list(count, &|at| format!("{at} AS c{at}"));
    assert!(normal(&format!("SELECT {} FROM events", columns(256))).starts_with("SELECT"));
    assert_refused(
        &format!("SELECT {} FROM events", columns(257)),
        "There are more than 256 columns",
    );
    let many = "The query has too many expressions";
    assert_refused(&format!("SELECT 1 FROM events WHERE {}1", "1 OR ".repeat(3000)), many);
    assert_refused(
        &format!("SELECT concat({}) AS x FROM events", list(4000, &|_| "1".to_owned())),
        many,
    );
    // Texts that would double: an alias is charged for what it names.
    let long = "event || ".repeat(90);
    let text = format!("SELECT {long}event AS a FROM events ORDER BY {}1", "a || ".repeat(60));
    assert_refused(&text, many);
    let text =
        format!("SELECT CASE {long}event {}END AS a FROM events", "WHEN 'a' THEN 'b' ".repeat(40));
    assert_refused(&text, many);
    let numbers = |count| list(count, &|_| "1".to_owned()).replace(' ', "");
    let text = format!("SELECT 1 FROM events WHERE 1 IN ({})", numbers(9970));
    assert!(parse_select(&text, &values()).is_ok());
    let text = format!("SELECT 1 IN ({}) AS a FROM events ORDER BY a, a + 1", numbers(6000));
    assert_refused(&text, "Lists after IN have more than 10000 constants");
    let text = format!("SELECT {} FROM events", list(65, &|at| format!("sum({at})")));
    assert_refused(&text, "The query has more than 64 aggregates");
    let keys = |count| list(count, &|at| format!("properties.p{at}"));
    assert_refused(
        &format!("SELECT count() FROM events GROUP BY {}", keys(17)),
        "GROUP BY has more than 16 expressions",
    );
    assert_refused(
        &format!("SELECT event FROM events ORDER BY {}", keys(17)),
        "ORDER BY has more than 16 expressions",
    );
    let sets = "event IN (SELECT event FROM events) AND ".repeat(9);
    assert_refused(
        &format!("SELECT 1 FROM events WHERE {sets}true"),
        "The query has more than 8 subqueries",
    );
    let found = list(9, &|at| format!("match(event, 'a{at}') AS m{at}"));
    assert_refused(
        &format!("SELECT {found} FROM events"),
        "The query has more than 8 regular expressions",
    );
    let path = format!("SELECT properties{} FROM events", ".a".repeat(17));
    assert_refused(&path, "Unknown field");
    let name = format!("SELECT event AS {} FROM events", "a".repeat(129));
    assert_refused(&name, "Give the column a name of at most 128 characters");
}

#[test]
fn regular_expressions_are_bounded() {
    let matching =
        |pattern: &str| format!("SELECT event FROM events WHERE match(event, '{pattern}')");
    let usual = "^https?://[^/]+/(\\\\w+)/(\\\\w+)\\\\.(html?)\\\\?id=(\\\\d+)$";
    assert!(normal(&matching(usual)).starts_with("SELECT"));
    // It is matched in linear time.
    assert!(normal(&matching("(a+)+$")).starts_with("SELECT"));
    for pattern in ["a{1000}{1000}", "(a{1000}){1000}", "\\\\w{5000}", "((a{100}){100}){100}"] {
        assert_refused(&matching(pattern), "The regular expression is too large");
    }
    let invalid = "The regular expression is invalid or nested too deep";
    for pattern in ["(", "a{2,1}", "\\\\1", "(?=a)", "[z-a]"] {
        assert_refused(&matching(pattern), invalid);
    }
    assert_refused(&matching(&format!("{}{}", "(".repeat(300), ")".repeat(300))), invalid);
}

#[test]
fn texts_stay_texts() {
    for (text, fault) in [
        ("SELECT event\0 FROM events", "Unexpected character"),
        ("SELECT 'a\0' FROM events", "Null characters are not allowed"),
        ("SELECT '\\0' FROM events", "Null characters are not allowed"),
        ("SELECT event FROM events /* x", "The comment does not end"),
        ("SELECT 'x FROM events", "The quotation does not end"),
        ("SELECT event FROM events WHERE event = 'a' --\n; DELETE FROM events", "Expected the end"),
        ("SELECT \u{202e}event FROM events", "Unexpected character"),
        ("SELECT ｅvent FROM events", "Unexpected character"),
        ("SELECT 99999999999999999999 FROM events", "The number is too large"),
        ("SELECT 1e999 FROM events", "The number is too large"),
        ("SELECT $1 FROM events", "Unknown field"),
        ("SELECT ? FROM events", "Unexpected character"),
        ("SELECT @@version FROM events", "Unexpected character"),
        ("SELECT :name FROM events", "Unexpected character"),
    ] {
        assert_refused(text, fault);
    }
    // A value beside the query cannot end its text.
    let values = BTreeMap::from([("x".to_owned(), json!("' OR 1 = 1 --\n`\\"))]);
    let found = parse_select("SELECT event FROM events WHERE event = {x}", &values).unwrap();
    let text = found.normal_form();
    assert_eq!(text, "SELECT event FROM events WHERE event = '\\' OR 1 = 1 --\\n`\\\\' LIMIT 100");
    assert_eq!(parse_select(&text, &BTreeMap::new()), Ok(found));
}

#[test]
fn a_query_of_an_export_is_as_strict_as_before() {
    for (text, fault) in [
        ("SELECT now() AS x FROM events", "Unknown function `now`"),
        ("SELECT toYear(timestamp) AS x FROM events", "Unknown function `toYear`"),
        ("SELECT match(event, 'a') AS x FROM events", "Unknown function `match`"),
        ("SELECT count() AS x FROM events", "Unknown function `count`"),
        ("SELECT session.id FROM events", "Unknown field `session.id`"),
        ("SELECT group_0.properties.x FROM events", "Unknown field `group_0.properties.x`"),
        ("SELECT {x} FROM events", "Expected an expression, found `{`"),
        ("SELECT event::int AS x FROM events", "Expected FROM events, found `::`"),
        ("SELECT cast(event AS int) AS x FROM events", "Unknown function `cast`"),
        ("SELECT timestamp - INTERVAL 1 DAY AS x FROM events", "Unknown field `INTERVAL`"),
        ("SELECT event FROM events WHERE event IN (SELECT 1)", "Subqueries are not supported"),
        ("SELECT CASE WHEN 1 THEN 2 END AS x FROM events", "CASE is not supported"),
    ] {
        let found = crate::parse(text).unwrap_err().to_string();
        assert!(found.starts_with(fault), "{text}\n{found}");
    }
    for text in [
        // Words that only questions reserve.
        "SELECT event AS end, uuid AS format FROM events any",
        // Types are not checked: exports that were saved must stay valid.
        "SELECT event FROM events WHERE uuid = 5 OR timestamp > 'x'",
        "SELECT event || 'a' || 'b' AS x FROM events",
    ] {
        assert!(crate::parse(text).is_ok(), "{text}");
    }
}
