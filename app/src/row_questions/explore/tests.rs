use serde_json::{Value, json};
use weir_questions::Query;
use weir_questions::time::Interval;

use super::{Exploration, ExploreFields, FieldError, LEADING, OPERATORS, file_columns};

fn fields(pairs: &[(&str, &str)]) -> ExploreFields {
    ExploreFields::read(|name| {
        let found = pairs.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned()).unwrap_or_default()
    })
}

fn explored(pairs: &[(&str, &str)]) -> Result<Value, FieldError> {
    let found = Exploration::new(&fields(pairs), 50, 0)?;
    Ok(json!(Query::Events(found.query)))
}

#[test]
fn fields_are_a_question_for_events() {
    let usual = explored(&[]).unwrap();
    assert_eq!(usual["select"].as_array().unwrap().len(), LEADING.len());
    assert_eq!((&usual["after"], &usual["orderBy"]), (&json!("-7d"), &json!(["timestamp DESC"])));
    let found = explored(&[
        ("event", "tea paid"),
        ("from", "2026-08-21"),
        ("to", "2026-08-31"),
        ("person", "it's \\ me"),
        ("group_type", "a`b"),
        ("group", "acme"),
        ("property2", "price"),
        ("operator2", "between"),
        ("value2", "1, 2.5"),
        ("where", "person.properties.plan = 'pro'"),
        ("columns", "plan, a b,,"),
        ("order", "a b"),
    ])
    .unwrap();
    let conditions = json!([
        "timestamp >= '2026-08-21'",
        "timestamp < '2026-09-01'",
        r"distinct_id = 'it\'s \\ me'",
        r"properties.$groups.`a\`b` = 'acme'",
        "person.properties.plan = 'pro'",
    ]);
    assert_eq!(found["where"], conditions);
    assert_eq!(found["properties"][0]["value"], json!([1, 2.5]));
    assert_eq!(found["orderBy"], json!(["properties.`a b` ASC"]));
    assert_eq!((&found["event"], found.get("after")), (&json!("tea paid"), None));
    let removed = explored(&[("order", "-plan"), ("columns", "price")]).unwrap();
    assert_eq!(removed["orderBy"], json!(["timestamp DESC"]));
    let person = "00000000-0000-4000-8000-000000000000";
    assert_eq!(explored(&[("person", person)]).unwrap()["personId"], person);
    let names = file_columns(&fields(&[("columns", "plan")]));
    assert_eq!(names.last().map(String::as_str), Some("plan"));
}

#[test]
fn every_operator_is_one_of_questions() {
    for (operator, _) in OPERATORS {
        let value = match operator {
            "between" | "not_between" => "1,2",
            "gt" | "gte" | "lt" | "lte" => "1",
            date if date.starts_with("is_date") => "2026-08-21",
            _ => "a",
        };
        let found = explored(&[("property1", "p"), ("operator1", operator), ("value1", value)]);
        assert_eq!(found.unwrap()["properties"][0]["operator"], operator);
    }
}

#[test]
fn faults_are_at_the_fields_of_the_page() {
    for (pairs, field) in [
        (&[("range", "-5d")][..], "range"),
        (&[("from", "soon")][..], "from"),
        (&[("to", "all")][..], "to"),
        (&[("group", "acme")][..], "group_type"),
        (&[("group_type", "company")][..], "group"),
        (&[("value3", "x")][..], "property3"),
        (&[("property2", "p"), ("operator2", "gt"), ("value2", "x")][..], "value2"),
        (&[("property2", "p"), ("operator2", "most"), ("value2", "x")][..], "operator2"),
    ] {
        let fault = explored(pairs).unwrap_err();
        assert_eq!(fault.attr.as_deref(), Some(field), "{fault:?}");
    }
    let pairs = [("from", "2026-08-21"), ("where", "nothing = 1")];
    let found = Exploration::new(&fields(&pairs), 50, 0).unwrap();
    let at = |attr: &str| found.at_field(FieldError::new(attr, "invalid_input", "x")).attr;
    assert_eq!(at("where__1").as_deref(), Some("where"));
    assert_eq!(at("where__0").as_deref(), Some("from"));
    assert_eq!(at("select__6").as_deref(), Some("columns"));
    assert_eq!(at("query").as_deref(), Some("query"));
}

#[test]
fn intervals_fit_the_range() {
    for (pairs, expected) in [
        (&[("range", "-1h")][..], Interval::Minute),
        (&[][..], Interval::Hour),
        (&[("range", "-90d")][..], Interval::Day),
        (&[("range", "all")][..], Interval::Week),
        (&[("from", "2026-08-21"), ("to", "2026-08-22")][..], Interval::Hour),
        (&[("from", "2026-08-21"), ("to", "2026-09-22")][..], Interval::Day),
        (&[("from", "2020-08-21"), ("to", "2026-09-22")][..], Interval::Week),
    ] {
        let found = Exploration::new(&fields(pairs), 50, 0).unwrap();
        assert_eq!(found.interval(), expected, "{pairs:?}");
        assert_eq!(found.counts().select.len(), 2);
    }
}
