//! Compares an answer with the API document.
//!
//! What belongs here: finding the operation of a request, and a validator for the parts
//! of JSON Schema that the document uses. It is stricter than JSON Schema: a member that
//! the schema of an object does not name is a fault. So the document describes answers
//! completely.
//! What does not: whether the answer is correct, which the test itself checks.

use std::sync::LazyLock;

use http::{Method, Uri};
use serde_json::Value;
use uuid::Uuid;
use weir_model::Timestamp;
use weir_server::openapi::document;

use crate::caller::Answer;

/// Query parameters that ask for another form of the answer. The document has neither
/// the parameters nor that form (`ParameterKind::OtherForm`).
const OTHER_FORMS: [&str; 2] = ["expand", "raw"];
/// Most faults of one answer that are reported.
const TOLD: usize = 10;

/// Paths of the document in segments, with their operations.
static PATHS: LazyLock<Vec<(Vec<&'static str>, &'static Value)>> = LazyLock::new(|| {
    let paths = document().expect("there is a document")["paths"].as_object();
    let paths = paths.into_iter().flatten();
    paths.map(|(path, item)| (parts(path), item)).collect()
});

fn parts(path: &str) -> Vec<&str> {
    path.trim_matches('/').split('/').collect()
}

/// The faults of an answer. Empty if the document does not describe the operation.
pub(crate) fn faults(method: &Method, path_and_query: &str, answer: &Answer) -> Vec<String> {
    let (path, query) = path_and_query.split_once('?').unwrap_or((path_and_query, ""));
    let asks = |name: &str| query.split('&').any(|pair| pair.split('=').next() == Some(name));
    if OTHER_FORMS.into_iter().any(asks) {
        return Vec::new();
    }
    let Some(operation) = operation(method, path) else { return Vec::new() };
    let Some(described) = operation["responses"].get(answer.status.to_string()) else {
        let is_good = (200..300).contains(&answer.status);
        return Vec::from_iter(is_good.then(|| "the document has no such status".to_owned()));
    };
    let Some(schema) = resolved(described).pointer("/content/application~1json/schema") else {
        return Vec::new();
    };
    if answer.header("content-type") != Some("application/json") {
        return Vec::new();
    }
    let mut faults = schema_faults(schema, &answer.json());
    faults.truncate(TOLD);
    faults
}

/// The faults of a value by a schema of the document.
pub fn schema_faults(schema: &Value, value: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    check(schema, value, "", &mut faults);
    faults
}

/// The operation of a request. Of two paths that match, the one with fewer parameters.
fn operation(method: &Method, path: &str) -> Option<&'static Value> {
    let asked = parts(path);
    let is_parameter = |part: &str| part.starts_with('{');
    let fits = |known: &[&str]| {
        known.len() == asked.len()
            && known.iter().zip(&asked).all(|(known, part)| is_parameter(known) || known == part)
    };
    let fitting = PATHS.iter().filter(|(known, _)| fits(known));
    let (_, item) =
        fitting.min_by_key(|(known, _)| known.iter().filter(|part| is_parameter(part)).count())?;
    item.get(method.as_str().to_ascii_lowercase())
}

/// The target of a reference. Any other value is returned unchanged.
fn resolved(value: &Value) -> &Value {
    let Some(reference) = value["$ref"].as_str() else { return value };
    let document = document().expect("there is a document");
    document.pointer(reference.trim_start_matches('#')).expect("references lead somewhere")
}

fn check(schema: &Value, value: &Value, place: &str, faults: &mut Vec<String>) {
    let mut fault = |text: String| faults.push(format!("`{place}` {text}"));
    if let Some(choices) = schema["enum"].as_array()
        && !choices.contains(value)
    {
        fault(format!("is {value}, which is none of {choices:?}"));
    }
    let kinds: Vec<&str> = match &schema["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    if !kinds.is_empty() && !kinds.iter().any(|kind| is_of(value, kind)) {
        fault(format!("is {value}, which is none of {kinds:?}"));
        return;
    }
    if let Some(text) = value.as_str()
        && !has_format(text, schema["format"].as_str())
    {
        fault(format!("is {value}, which is no {}", schema["format"]));
    }
    if let (Some(number), Some(least)) = (value.as_f64(), schema["minimum"].as_f64())
        && number < least
    {
        fault(format!("is {value}, less than {least}"));
    }
    if schema.get("$ref").is_some() {
        check(resolved(schema), value, place, faults);
    }
    for name in ["oneOf", "anyOf"] {
        if let Some(alternatives) = schema[name].as_array() {
            check_alternatives(alternatives, value, place, faults);
        }
    }
    match value {
        Value::Array(items) => {
            let Some(schema) = schema.get("items") else { return };
            for (at, item) in items.iter().enumerate() {
                check(schema, item, &format!("{place}/{at}"), faults);
            }
        }
        Value::Object(_) if kinds.contains(&"object") => check_object(schema, value, place, faults),
        _ => {}
    }
}

fn check_alternatives(
    alternatives: &[Value],
    value: &Value,
    place: &str,
    faults: &mut Vec<String>,
) {
    let mut found = Vec::new();
    for alternative in alternatives {
        let mut of_alternative = Vec::new();
        check(alternative, value, place, &mut of_alternative);
        if of_alternative.is_empty() {
            return;
        }
        found.append(&mut of_alternative);
    }
    faults.append(&mut found);
}

fn check_object(schema: &Value, object: &Value, place: &str, faults: &mut Vec<String>) {
    let required = schema["required"].as_array().into_iter().flatten();
    for name in required.filter_map(Value::as_str).filter(|name| object.get(name).is_none()) {
        faults.push(format!("`{place}/{name}` is not there"));
    }
    for (name, value) in object.as_object().into_iter().flatten() {
        let place = format!("{place}/{name}");
        match (schema["properties"].get(name), &schema["additionalProperties"]) {
            (Some(schema), _) | (None, schema @ Value::Object(_)) => {
                check(schema, value, &place, faults);
            }
            (None, Value::Bool(true)) => {}
            (None, _) => faults.push(format!("`{place}` is not in the document")),
        }
    }
}

fn is_of(value: &Value, kind: &str) -> bool {
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

fn has_format(text: &str, format: Option<&str>) -> bool {
    match format {
        Some("uuid") => Uuid::parse_str(text).is_ok_and(|uuid| uuid.to_string() == text),
        Some("date-time") => Timestamp::parse(text).is_some(),
        Some("uri") => text.parse::<Uri>().is_ok_and(|uri| uri.host().is_some()),
        Some("email") => text.contains('@'),
        _ => true,
    }
}
