//! Answers match the document.

use serde_json::{Value, json};
use weir_testkit::schema_faults;

use super::fixtures::World;
use super::operations::{Operation, answer_schema, guarded};

#[tokio::test(flavor = "multi_thread")]
async fn good_answers_fit_their_schemas() {
    let world = World::new().await;
    let mut operations: Vec<Operation> =
        guarded().filter(|one| !one.is_refused() && !one.needs_mail()).collect();
    operations.sort_by_key(Operation::place);
    for operation in operations {
        let ids = world.ids(&operation).await;
        let body = world.good_body(&operation, &world.owner).await;
        let answer = operation.call_with(&world.owner, &ids, body).send().await;
        assert_eq!(Some(answer.status), operation.good(), "{}: {:?}", operation.id, answer.body);
        // The caller compares every answer with its schema.
        assert!(answer_schema(&operation).is_some() || answer.body.is_empty(), "{}", operation.id);
    }
}

#[test]
fn examples_fit_their_schemas() {
    for operation in guarded() {
        let body = &operation.item["requestBody"]["content"]["application/json"];
        if !body.is_null() {
            fits(&body["schema"], &body["example"], &operation.id);
        }
        for (status, answer) in operation.item["responses"].as_object().unwrap() {
            let content = &answer["content"]["application/json"];
            if !content.is_null() {
                fits(
                    &content["schema"],
                    &content["example"],
                    &format!("{} {status}", operation.id),
                );
            }
        }
    }
}

#[test]
fn what_differs_from_a_schema_is_a_fault() {
    let schema = json!({
        "type": "object", "required": ["id"],
        "properties": {
            "id": {"type": "string", "format": "uuid"},
            "level": {"type": ["integer", "null"], "enum": [1, null]},
        },
    });
    let id = "01979e3c-7a1e-7c34-b1d5-2f60a9b1c0de";
    for (value, expected) in [
        (json!({"id": id, "level": null}), 0),
        (json!({"id": id, "level": 2}), 1),
        (json!({"id": null}), 1),
        (json!({"id": "ada"}), 1),
        (json!({"level": 1}), 1),
        (json!({"id": id, "more": 1}), 1),
        (json!([id]), 1),
    ] {
        assert_eq!(schema_faults(&schema, &value).len(), expected, "{value}");
    }
}

#[track_caller]
fn fits(schema: &Value, value: &Value, at: &str) {
    assert_eq!(schema_faults(schema, value), Vec::<String>::new(), "{at}");
}
