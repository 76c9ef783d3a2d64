//! Examples in the API document, made from schemas: for every operation one of its body
//! and one of its answer.

use serde_json::{Map, Value, json};

use super::schemas::{Schemas, referred};

/// Deepest level of nested examples.
const DEPTH: usize = 8;

/// Example texts that are clearer than the name of their field.
const TEXTS: &[(&str, &str)] = &[
    ("api_token", "phc_8mSe7ahXnDZiJqLLFAN3O4FE1ejA0xLUjvlZHVZKWdY"),
    ("available_features", "group_analytics"),
    ("distinct_id", "018f2a6c-93a1-7c8e-9b52-63a1d0f4c7aa"),
    ("distinct_ids", "018f2a6c-93a1-7c8e-9b52-63a1d0f4c7aa"),
    ("domain", "acme.example"),
    ("email", "ada@mail.example"),
    ("event", "order placed"),
    ("first_name", "Ada"),
    ("label", "Nightly report"),
    ("last_name", "Lovelace"),
    ("mask_value", "phx_...ghij"),
    ("member_count", "3"),
    ("metadata", "{\"instance_tag\":\"none\"}"),
    ("name", "Acme Tea"),
    ("scopes", "organization:read"),
    ("slug", "acme-tea"),
    ("target_email", "ada@mail.example"),
    ("timezone", "Europe/Paris"),
    ("toolbar_mode", "disabled"),
    ("active", "DEFAULT"),
];

/// A value that fits a schema, for a field of this name.
pub(super) fn of(schema: &Value, name: &str, schemas: &Schemas) -> Value {
    make(schema, name, schemas, DEPTH)
}

fn make(schema: &Value, name: &str, schemas: &Schemas, depth: usize) -> Value {
    if let Some(example) = schema.get("example").or_else(|| schema.get("const")) {
        return example.clone();
    }
    if let Some(target) = referred(schema).and_then(|name| schemas.get(name)) {
        return if depth == 0 { json!({}) } else { make(target, name, schemas, depth - 1) };
    }
    let says = |text: &str| {
        schema.get("description").and_then(Value::as_str).is_some_and(|said| said.contains(text))
    };
    for key in ["oneOf", "anyOf"] {
        let parts = schema.get(key).and_then(Value::as_array).into_iter().flatten();
        let mut parts = parts.filter(|part| part["type"] != "null");
        if let Some(part) = parts.next() {
            return if says("Always null") {
                Value::Null
            } else {
                make(part, name, schemas, depth)
            };
        }
    }
    let kinds: Vec<&str> = match &schema["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let unset = says("lways null") || matches!(name, "next" | "previous");
    if kinds.contains(&"null") && unset {
        return Value::Null;
    }
    if let Some(first) = schema["enum"].as_array().and_then(|choices| choices.last()) {
        let some =
            schema["enum"].as_array().into_iter().flatten().rfind(|choice| !choice.is_null());
        return some.unwrap_or(first).clone();
    }
    match kinds.iter().find(|kind| **kind != "null").copied() {
        Some("object") => object(schema, schemas, depth),
        Some("array") if says("lways empty") => json!([]),
        Some("array") if depth > 0 => json!([make(&schema["items"], name, schemas, depth - 1)]),
        Some("array") => json!([]),
        Some("string") => text(schema, name),
        Some("boolean") => json!(says("lways true")),
        Some("integer") => schema.get("minimum").cloned().unwrap_or(json!(1)),
        Some("number") => json!(1.5),
        _ => Value::Null,
    }
}

fn object(schema: &Value, schemas: &Schemas, depth: usize) -> Value {
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let fields: Map<String, Value> = properties
        .map(|(name, schema)| (name.clone(), make(schema, name, schemas, depth)))
        .collect();
    Value::Object(fields)
}

fn text(schema: &Value, name: &str) -> Value {
    match schema["format"].as_str() {
        Some("uuid") => return json!("01979e3c-7a1e-7c34-b1d5-2f60a9b1c0de"),
        Some("date-time") => return json!("2026-06-01T10:00:00Z"),
        Some("uri") => return json!("https://weir.example/"),
        _ => {}
    }
    let known = TEXTS.iter().find(|(field, _)| *field == name);
    json!(known.map_or(name, |(_, text)| text))
}
