use serde_json::json;

use super::*;

fn read(value: &Value) -> Result<FilterGroup, FieldError> {
    let mut left = FILTERS_MAX;
    FilterGroup::read(&Input::root(value), &mut left, 1)
}

#[test]
fn filters_have_one_form() {
    for (sent, written) in [
        (json!([]), json!([])),
        (json!([{}, { "key": null }]), json!([])),
        (
            json!([{ "key": "plan", "value": "pro" }]),
            json!([{ "type": "event", "key": "plan", "operator": "exact", "value": "pro" }]),
        ),
        (
            json!([{ "key": "plan", "value": ["pro"], "operator": "in", "label": "x" }]),
            json!([{ "type": "event", "key": "plan", "operator": "in", "value": "pro" }]),
        ),
        (
            json!([{ "key": "a", "type": "person", "operator": "is_set", "value": "is_set" }]),
            json!([{ "type": "person", "key": "a", "operator": "is_set" }]),
        ),
        (
            json!([{ "key": "a", "type": "group", "group_type_index": 2, "operator": "gt",
                "value": "12345678901234567" }]),
            json!([{ "type": "group", "key": "a", "operator": "gt",
                "value": 12_345_678_901_234_567_i64, "group_type_index": 2 }]),
        ),
        (
            json!([{ "key": "a", "operator": "between", "value": [1, "2.5"] }]),
            json!([{ "type": "event", "key": "a", "operator": "between", "value": [1, 2.5] }]),
        ),
        (
            json!([{ "key": "a", "operator": "icontains", "value": [7, true] }]),
            json!([{ "type": "event", "key": "a", "operator": "icontains",
                "value": ["7", "true"] }]),
        ),
        (
            json!([{ "key": "a", "operator": "min", "value": 1 },
                { "key": "a", "operator": "not_icontains_multi", "value": ["b", "c"] },
                { "key": "$feature/new", "type": "feature", "operator": null, "value": "on" }]),
            json!([{ "type": "event", "key": "a", "operator": "gte", "value": 1 },
                { "type": "event", "key": "a", "operator": "not_icontains",
                    "value": ["b", "c"] },
                { "type": "event", "key": "$feature/new", "operator": "exact",
                    "value": "on" }]),
        ),
        (
            json!([{ "key": "a", "operator": "is_date_after", "value": " -7d" }]),
            json!([{ "type": "event", "key": "a", "operator": "is_date_after",
                "value": "-7d" }]),
        ),
        (
            json!({ "type": "AND", "values": [
                { "type": "OR", "values": [{ "key": "a", "value": 1 }] },
                { "type": "AND", "values": [] },
            ] }),
            json!({ "type": "AND", "values": [
                { "type": "OR", "values": [
                    { "type": "event", "key": "a", "operator": "exact", "value": 1 },
                ] },
                { "type": "AND", "values": [] },
            ] }),
        ),
    ] {
        let group = read(&sent).unwrap();
        let value = serde_json::to_value(&group).unwrap();
        assert_eq!(value, written, "{sent}");
        assert_eq!(read(&value).unwrap(), group, "read again: {value}");
    }
}

#[test]
fn faults_name_their_filter() {
    for (sent, attr, code) in [
        (json!("x"), None, "invalid_input"),
        (json!([{ "type": "event" }]), Some("0__key"), "required"),
        (json!([7]), Some("0"), "invalid_input"),
        (json!([{ "value": 1 }]), Some("0__key"), "required"),
        (json!([{ "key": " ", "value": 1 }]), Some("0__key"), "blank"),
        (json!([{ "key": "a" }]), Some("0__value"), "required"),
        (json!([{ "key": "a", "value": [] }]), Some("0__value"), "required"),
        (json!([{ "key": "a", "value": { "b": 1 } }]), Some("0__value"), "invalid_input"),
        (json!([{ "key": "a", "value": [[1]] }]), Some("0__value__0"), "invalid_input"),
        (
            json!([{ "key": "a", "operator": "like", "value": 1 }]),
            Some("0__operator"),
            "invalid_choice",
        ),
        (json!([{ "key": "a", "type": "cohort", "value": 1 }]), Some("0__type"), "invalid_choice"),
        (
            json!([{ "key": "a", "type": "group", "value": 1 }]),
            Some("0__group_type_index"),
            "required",
        ),
        (
            json!([{ "key": "a", "operator": "gt", "value": "ten" }]),
            Some("0__value"),
            "invalid_input",
        ),
        (
            json!([{ "key": "a", "operator": "between", "value": [1] }]),
            Some("0__value"),
            "invalid_input",
        ),
        (
            json!([{ "key": "a", "operator": "is_date_before", "value": "soon" }]),
            Some("0__value"),
            "invalid_input",
        ),
        (
            json!([{ "key": "a", "operator": "not_between", "value": [2, "1.5"] }]),
            Some("0__value"),
            "invalid_input",
        ),
        (
            json!([{ "key": "a", "operator": "not_regex", "value": ["a", "("] }]),
            Some("0__value"),
            "invalid_input",
        ),
        (
            json!([{ "key": "a", "value": 1, "negation": true }]),
            Some("0__negation"),
            "invalid_input",
        ),
        (json!({ "type": "XOR", "values": [] }), Some("type"), "invalid_choice"),
    ] {
        let error = read(&sent).unwrap_err();
        assert_eq!((error.attr.as_deref(), error.code.as_str()), (attr, code), "{sent}");
    }
}

#[test]
fn number_and_depth_are_bounded() {
    let filter = json!({ "key": "a", "value": 1 });
    assert!(read(&json!(vec![filter.clone(); FILTERS_MAX])).is_ok());
    let error = read(&json!(vec![filter.clone(); FILTERS_MAX + 1])).unwrap_err();
    assert_eq!(error.code, "max_length");
    // Also when no group has too many.
    let half = json!({ "type": "OR", "values": vec![filter.clone(); 60] });
    let error = read(&json!([half.clone(), half])).unwrap_err();
    assert_eq!(error.code, "max_length");
    let nested = |depth: usize| {
        (1..depth).fold(
            json!({ "type": "OR", "values": [filter.clone()] }),
            |inner, _| json!({ "type": "AND", "values": [inner] }),
        )
    };
    assert!(read(&nested(FILTER_DEPTH_MAX)).is_ok());
    assert_eq!(read(&nested(FILTER_DEPTH_MAX + 1)).unwrap_err().code, "max_length");
    let patterns = json!({ "key": "a", "operator": "regex", "value": "b+" });
    assert!(read(&json!(vec![patterns.clone(); 20])).is_ok());
    assert_eq!(read(&json!(vec![patterns; 21])).unwrap_err().code, "max_length");
    let long = json!([{ "key": "a", "value": "x".repeat(VALUE_MAX + 1) }]);
    assert_eq!(read(&long).unwrap_err().code, "max_length");
}

#[test]
fn groups_are_joined() {
    let list = |key: &str| read(&json!([{ "key": key, "value": 1 }])).unwrap();
    let either = read(&json!({ "type": "OR", "values": [{ "key": "c", "value": 1 }] })).unwrap();
    let joined = list("a").and(list("b")).and(either.clone());
    assert_eq!((joined.logic, joined.filters.len()), (Logic::And, 3));
    assert_eq!(FilterGroup::default().and(either.clone()), either);
    let first = either.clone().and(list("a"));
    assert_eq!((first.logic, first.filters.len()), (Logic::And, 2));
}

#[test]
fn a_filter_has_its_date() {
    let group = read(&json!([{ "key": "a", "operator": "is_date_before", "value": "-7d" }]));
    let Some(Filter::Property(filter)) = group.unwrap().filters.pop() else { panic!() };
    assert_eq!(filter.date(), DateText::parse("-7d"));
}
