//! Answers are what the document says of them.

use serde_json::Value;
use weir_server::openapi::document;

use super::fixtures::World;
use super::operations::{Operation, answer_schema, guarded};

#[tokio::test(flavor = "multi_thread")]
async fn good_answers_fit_their_schemas() {
    let world = World::new().await;
    let mut operations: Vec<Operation> =
        guarded().filter(|operation| !operation.is_refused()).collect();
    operations.sort_by_key(Operation::place);
    for operation in operations {
        let ids = world.ids(&operation).await;
        let body = world.good_body(&operation, &world.owner).await;
        let answer = operation.call_with(&world.owner, &ids, body).send().await;
        assert_eq!(Some(answer.status), operation.good(), "{}: {:?}", operation.id, answer.body);
        match answer_schema(&operation) {
            Some(schema) => fits(&schema, &answer.json(), &operation.id),
            None => assert!(answer.body.is_empty(), "{}", operation.id),
        }
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

/// Fails unless the value is what the schema says, as far as our document uses
/// JSON Schema. What the schema does not name is a fault too.
#[track_caller]
fn fits(schema: &Value, value: &Value, at: &str) {
    assert_eq!(judge(schema, value, at), Ok(()));
}

fn judge(schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    if let Some(address) = schema["$ref"].as_str() {
        let target = document().unwrap().pointer(address.trim_start_matches('#')).unwrap();
        return judge(target, value, at);
    }
    for key in ["oneOf", "anyOf"] {
        if let Some(parts) = schema[key].as_array() {
            let fitting = parts.iter().filter(|part| judge(part, value, at).is_ok()).count();
            return match fitting {
                0 => Err(format!("{at}: {value} fits none of {schema}")),
                _ => Ok(()),
            };
        }
    }
    let kinds: Vec<&str> = match &schema["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().map(|kind| kind.as_str().unwrap()).collect(),
        _ => return Ok(()),
    };
    if !kinds.iter().any(|kind| is(kind, value)) {
        return Err(format!("{at}: {value} is not {kinds:?}"));
    }
    if let Some(choices) = schema["enum"].as_array()
        && !choices.contains(value)
    {
        return Err(format!("{at}: {value} is not among {choices:?}"));
    }
    match value {
        Value::String(text) => judge_text(schema, text, at),
        Value::Array(items) => {
            let mut items = items.iter().enumerate();
            items.try_for_each(|(n, item)| judge(&schema["items"], item, &format!("{at}[{n}]")))
        }
        Value::Object(fields) => {
            let Some(properties) = schema["properties"].as_object() else { return Ok(()) };
            for name in schema["required"].as_array().into_iter().flatten() {
                if !fields.contains_key(name.as_str().unwrap()) {
                    return Err(format!("{at} lacks {name}"));
                }
            }
            for (name, field) in fields {
                let others = &schema["additionalProperties"];
                let Some(property) =
                    properties.get(name).or_else(|| others.is_object().then_some(others))
                else {
                    return Err(format!("{at}.{name} is not in the document"));
                };
                judge(property, field, &format!("{at}.{name}"))?;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

fn is(kind: &str, value: &Value) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    }
}

fn judge_text(schema: &Value, text: &str, at: &str) -> Result<(), String> {
    let fits = match schema["format"].as_str() {
        Some("uuid") => text.parse::<uuid::Uuid>().is_ok() && text.len() == 36,
        Some("date-time") => weir_model::Timestamp::parse(text).is_some(),
        Some("uri") => text.parse::<http::Uri>().is_ok_and(|uri| uri.host().is_some()),
        Some("email") => text.contains('@'),
        _ => true,
    };
    if fits { Ok(()) } else { Err(format!("{at}: {text} is not {}", schema["format"])) }
}
