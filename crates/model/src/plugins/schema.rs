//! The settings of a plugin (PLG-2).
//!
//! A schema is sent as a list of items, from a `plugin.json`, or as an object by key. It
//! is stored as an object; `order` stores the order of a list.

use serde_json::{Map, Value};

use super::object;
use crate::errors::FieldError;

/// The name of the field.
pub const FIELD: &str = "config_schema";

/// Converts a `config_schema` to an object.
///
/// # Errors
/// `invalid_input` at `attr` if it is neither a list nor an object, or if items of a list
/// are invalid or have the same key; `max_length` if it is too long.
pub fn read(attr: &str, sent: &Value) -> Result<Map<String, Value>, FieldError> {
    match sent {
        Value::Object(by_key) => object(attr, by_key.clone()),
        Value::Array(items) => object(attr, of_list(attr, items)?),
        _ => Err(wrong(attr, "Expected an object, or a list of objects.")),
    }
}

fn of_list(attr: &str, items: &[Value]) -> Result<Map<String, Value>, FieldError> {
    let mut by_key = Map::new();
    for (index, item) in items.iter().enumerate() {
        let Value::Object(item) = item else {
            return Err(wrong(attr, "Every item of the list must be an object."));
        };
        let key = match item.get("key") {
            Some(Value::String(key)) if !key.is_empty() => key.clone(),
            Some(Value::Null | Value::String(_)) | None => format!("_text_{index}"),
            Some(_) => return Err(wrong(attr, "The key of an item must be a string.")),
        };
        let mut item = item.clone();
        item.insert("order".to_owned(), Value::from(index));
        if by_key.insert(key.clone(), Value::Object(item)).is_some() {
            return Err(wrong(attr, &format!("The key \"{key}\" is there twice.")));
        }
    }
    Ok(by_key)
}

fn wrong(attr: &str, detail: &str) -> FieldError {
    FieldError::new(attr, "invalid_input", detail)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::read;

    #[test]
    fn a_list_becomes_an_object_in_its_order() {
        let list = json!([
            {"markdown": "# Read this"},
            {"key": "token", "type": "string", "secret": true},
            {"key": "path", "type": "string", "order": 7},
            {"key": null, "markdown": "And this"},
        ]);
        assert_eq!(
            Value::Object(read("config_schema", &list).unwrap()),
            json!({
                "_text_0": {"markdown": "# Read this", "order": 0},
                "token": {"key": "token", "type": "string", "secret": true, "order": 1},
                "path": {"key": "path", "type": "string", "order": 2},
                "_text_3": {"key": null, "markdown": "And this", "order": 3},
            })
        );
    }

    #[test]
    fn an_object_stays_as_it_is() {
        let object = json!({"token": {"type": "string"}, "odd": 7});
        assert_eq!(Value::Object(read("config_schema", &object).unwrap()), object);
    }

    #[test]
    fn faults() {
        for bad in [
            json!("x"),
            json!(7),
            json!([7]),
            json!([{"key": 7}]),
            json!([{"key": "a"}, {"key": "a"}]),
        ] {
            assert_eq!(read("config_schema", &bad).unwrap_err().code, "invalid_input", "{bad}");
        }
        let long = json!({"a": "x".repeat(70_000)});
        assert_eq!(read("config_schema", &long).unwrap_err().code, "max_length");
    }
}
