//! The names in use: event and property definitions.

use serde_json::{Value, json};
use weir_testkit::TestApp;

use crate::stored::{get, send};

fn field<'a>(list: &'a Value, name: &str) -> Vec<&'a Value> {
    list["results"].as_array().unwrap().iter().map(|result| &result[name]).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn names_in_use_are_listed() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["event_definition:read", "property_definition:read"]).await;
    send(
        &app,
        json!([
            {"event": "paid", "distinct_id": "u", "properties": {"price": 1, "$set": {"plan": "a"}}},
            {"event": "opened", "distinct_id": "u", "properties": {"price": 2}},
        ]),
    )
    .await;
    let events = get(&app, &caller, "event_definitions/").await;
    assert_eq!(
        (field(&events, "name"), &events["count"]),
        (vec![&json!("opened"), &json!("paid")], &json!(2))
    );
    let found = get(&app, &caller, "property_definitions/?search=PRI").await;
    assert_eq!(field(&found, "name"), ["price"]);
    assert_eq!(found["results"][0]["property_type"], "Numeric");
    let of_persons = get(&app, &caller, "property_definitions/?type=person").await;
    assert_eq!(field(&of_persons, "name"), ["plan"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_of_names_have_the_published_filters() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["event_definition:read", "property_definition:read"]).await;
    send(
        &app,
        json!([
            {"event": "paid", "distinct_id": "u",
             "properties": {"price": 1, "plan": "pro", "$feature/tea": true, "$set": {"age": 7}}},
            {"event": "opened", "distinct_id": "u", "properties": {"plan": "free"}},
            {"event": "$pageview", "distinct_id": "u", "properties": {"path": "/"}},
        ]),
    )
    .await;
    for (query, names) in [
        ("", vec!["$pageview", "opened", "paid"]),
        ("?event_type=all", vec!["$pageview", "opened", "paid"]),
        ("?event_type=event_custom", vec!["opened", "paid"]),
        ("?event_type=event_posthog", vec!["$pageview"]),
        ("?names=paid,missing", vec!["paid"]),
        ("?ordering=event,-name", vec!["paid", "opened", "$pageview"]),
        // All three were seen in the same hour.
        ("?ordering=-last_seen_at&search=PA", vec!["$pageview", "paid"]),
    ] {
        let found = get(&app, &caller, &format!("event_definitions/{query}")).await;
        assert_eq!(field(&found, "name"), names, "{query}");
    }

    let listed = "property_definitions/?type=event&properties=price,plan,path,%24feature/tea";
    let opened = "&event_names=%5B%22opened%22%5D";
    let both = "&event_names=%5B%22opened%22,%22%24pageview%22%5D&filter_by_event_names=true";
    for (query, names) in [
        ("", vec!["$feature/tea", "path", "plan", "price"]),
        ("&is_numerical=true", vec!["price"]),
        ("&is_numerical=false", vec!["$feature/tea", "path", "plan"]),
        ("&is_feature_flag=true", vec!["$feature/tea"]),
        ("&excluded_properties=%5B%22plan%22%5D", vec!["$feature/tea", "path", "price"]),
        (opened, vec!["$feature/tea", "path", "plan", "price"]),
        (both, vec!["path", "plan"]),
    ] {
        let found = get(&app, &caller, &format!("{listed}{query}")).await;
        assert_eq!(field(&found, "name"), names, "{query}");
    }
    let seen = get(&app, &caller, &format!("{listed}{opened}")).await;
    assert_eq!(field(&seen, "is_seen_on_filtered_events"), [false, false, true, false]);
    for unasked in [listed.to_owned(), format!("property_definitions/?type=person{opened}")] {
        let found = get(&app, &caller, &unasked).await;
        let seen = field(&found, "is_seen_on_filtered_events");
        assert!(!seen.is_empty() && seen.into_iter().all(Value::is_null), "{found}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_filters_name_their_parameter() {
    let app = TestApp::with_owner().await;
    let caller = app.owner().key(&["event_definition:read", "property_definition:read"]).await;
    let choice = |word: &str| format!("\"{word}\" is not a valid choice.");
    let list = || "Must be a JSON list of texts.".to_owned();
    let names = vec!["%22a%22"; 21].join(",");
    let many = format!("property_definitions/?event_names=%5B{names}%5D");
    for (query, code, detail, attr) in [
        ("event_definitions/?event_type=action", "invalid_choice", choice("action"), "event_type"),
        ("property_definitions/?type=x", "invalid_choice", choice("x"), "type"),
        ("property_definitions/?is_numerical=yes", "invalid_choice", choice("yes"), "is_numerical"),
        ("property_definitions/?event_names=paid", "invalid_input", list(), "event_names"),
        (
            "property_definitions/?excluded_properties=%5B1%5D",
            "invalid_input",
            list(),
            "excluded_properties",
        ),
        (
            many.as_str(),
            "max_length",
            "Ensure this field has no more than 20 elements.".to_owned(),
            "event_names",
        ),
    ] {
        let path = format!("/api/projects/{}/{query}", app.project());
        let answer = caller.get(&path).await;
        answer.assert_field_error(400, "validation_error", code, &detail, Some(attr));
    }
}
