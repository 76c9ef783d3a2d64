//! The document in a form that generators of clients understand.
//!
//! What belongs here: rewriting constructs that are valid JSON Schema but that
//! openapi-generator, orval, openapi-typescript, @hey-api/openapi-ts or
//! openapi-python-client refuse or turn into unusable types. What does not: changing the
//! meaning of a schema. After the rewrite each schema accepts the same values, or more.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::schemas::referred;

/// Rewrites the document.
pub(super) fn fit(document: &mut Value) {
    for place in ["/paths", "/components/responses"] {
        document.pointer_mut(place).into_iter().for_each(fit_schemas_in);
    }
    let mut used = BTreeSet::new();
    for place in ["/paths", "/components/responses"] {
        document.pointer(place).into_iter().for_each(|part| note_used(part, document, &mut used));
    }
    let schemas = document.pointer_mut("/components/schemas").and_then(Value::as_object_mut);
    if let Some(schemas) = schemas {
        // These schemas are parts of others, which now contain them.
        schemas.retain(|name, _| used.contains(name));
        schemas.values_mut().for_each(fit_schema);
    }
}

/// Rewrites the schemas within a part of the document that is not a schema itself.
fn fit_schemas_in(part: &mut Value) {
    match part {
        Value::Array(parts) => parts.iter_mut().for_each(fit_schemas_in),
        Value::Object(parts) => {
            for (name, part) in parts {
                match name.as_str() {
                    "schema" => fit_schema(part),
                    "example" => {}
                    _ => fit_schemas_in(part),
                }
            }
        }
        _ => {}
    }
}

fn note_used(part: &Value, document: &Value, used: &mut BTreeSet<String>) {
    if let Some(name) = referred(part)
        && used.insert(name.to_owned())
    {
        let schema = &document["components"]["schemas"][name];
        note_used(schema, document, used);
    }
    match part {
        Value::Array(parts) => parts.iter().for_each(|part| note_used(part, document, used)),
        Value::Object(parts) => parts.values().for_each(|part| note_used(part, document, used)),
        _ => {}
    }
}

fn fit_schema(schema: &mut Value) {
    let Some(parts) = schema.as_object_mut() else { return };
    for name in ["items", "additionalProperties"] {
        parts.get_mut(name).into_iter().for_each(fit_schema);
    }
    for name in ["oneOf", "anyOf", "allOf"] {
        let alternatives = parts.get_mut(name).and_then(Value::as_array_mut);
        alternatives.into_iter().flatten().for_each(fit_schema);
    }
    let properties = parts.get_mut("properties").and_then(Value::as_object_mut);
    properties.into_iter().flat_map(Map::values_mut).for_each(fit_schema);

    // Names of members are always texts.
    parts.remove("propertyNames");
    if parts.contains_key("enum") {
        for name in ["minLength", "maxLength", "pattern"] {
            parts.remove(name);
        }
    }
    let kinds: Vec<String> = match parts.get("type") {
        Some(Value::String(kind)) => vec![kind.clone()],
        Some(Value::Array(kinds)) => {
            kinds.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        }
        _ => return,
    };
    if kinds.iter().filter(|kind| *kind != "null").count() > 1 {
        split(parts, &kinds);
    } else if kinds.iter().any(|kind| kind == "object") {
        open(parts);
    }
}

/// Splits an object that can also be a list or null: each type gets its own schema.
fn split(parts: &mut Map<String, Value>, kinds: &[String]) {
    parts.remove("type");
    let items = parts.remove("items");
    let alternatives = kinds.iter().map(|kind| {
        let mut alternative = json!({"type": kind});
        if let (Some(items), "array") = (&items, kind.as_str()) {
            alternative["items"] = items.clone();
        }
        fit_schema(&mut alternative);
        alternative
    });
    let alternatives: Vec<Value> = alternatives.collect();
    parts.insert("anyOf".to_owned(), Value::Array(alternatives));
}

/// Makes it explicit that an object without named members has members of any name. Some
/// generators take a missing statement for an object without members. In addition to
/// named members, others may have any value, because a type for them would have to fit
/// the named ones too.
fn open(parts: &mut Map<String, Value>) {
    let is_named = parts.contains_key("properties");
    match parts.get_mut("additionalProperties") {
        Some(others) if is_named && others.is_object() => *others = json!(true),
        None if !is_named => {
            parts.insert("additionalProperties".to_owned(), json!(true));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::fit;

    fn fitted(schema: Value) -> Value {
        let mut document = json!({
            "paths": {"/": {"get": {"responses": {"200": {
                "$ref": "#/components/schemas/A",
                "example": {"schema": {"type": "object"}},
            }}}}},
            "components": {"responses": {}, "schemas": {"A": schema, "Unused": {}}},
        });
        fit(&mut document);
        assert_eq!(document.pointer("/components/schemas/Unused"), None);
        let example = document.pointer("/paths/~1/get/responses/200/example/schema").unwrap();
        assert_eq!(example, &json!({"type": "object"}));
        document["components"]["schemas"]["A"].take()
    }

    #[test]
    fn schemas_are_rewritten() {
        for (schema, expected) in [
            (json!({"type": "object"}), json!({"type": "object", "additionalProperties": true})),
            (
                json!({"type": ["object", "null"], "propertyNames": {"type": "string"},
                       "additionalProperties": {"type": "string"}}),
                json!({"type": ["object", "null"], "additionalProperties": {"type": "string"}}),
            ),
            (
                json!({"type": "object", "properties": {"type": {"type": "object"}},
                       "additionalProperties": {"type": "string"}}),
                json!({"type": "object", "additionalProperties": true, "properties": {
                       "type": {"type": "object", "additionalProperties": true}}}),
            ),
            (
                json!({"type": ["object", "array", "null"], "items": {"type": "object"}}),
                json!({"anyOf": [
                    {"type": "object", "additionalProperties": true},
                    {"type": "array",
                     "items": {"type": "object", "additionalProperties": true}},
                    {"type": "null"},
                ]}),
            ),
            (
                json!({"type": "string", "enum": ["a"], "maxLength": 9}),
                json!({"type": "string", "enum": ["a"]}),
            ),
        ] {
            assert_eq!(fitted(schema.clone()), expected, "{schema}");
        }
    }
}
