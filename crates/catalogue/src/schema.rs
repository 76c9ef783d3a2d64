//! A subset of JSON Schema for properties of events.
//!
//! Keywords: `type`, `required`, `properties`, `additionalProperties` (true or false),
//! `items` (one schema), `enum`, `const`, `minimum`, `maximum`, `minLength`, `maxLength`,
//! `pattern`, and keywords that only describe. Other keywords are refused, so that
//! members do not rely on a check that does not exist.

use regex::Regex;
use serde_json::{Map, Value};

use crate::config::{pattern, shown};
use crate::event::Object;

/// Maximum depth of nested schemas.
const DEPTH: usize = 16;
/// Maximum faults that are reported for an event.
pub(crate) const FAULTS_MAX: usize = 10;
/// Keywords without effect.
const WORDS: [&str; 7] =
    ["$schema", "$id", "$comment", "title", "description", "default", "examples"];
const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "null", "object", "array"];

/// The schema of a value.
#[derive(Debug, Default)]
pub(crate) struct Schema {
    types: Vec<String>,
    required: Vec<String>,
    properties: Vec<(String, Schema)>,
    /// Whether an object may only have the members of `properties`.
    is_closed: bool,
    items: Option<Box<Schema>>,
    one_of: Option<Vec<Value>>,
    minimum: Option<f64>,
    maximum: Option<f64>,
    min_length: Option<usize>,
    max_length: Option<usize>,
    pattern: Option<Regex>,
}

impl Schema {
    /// Parses a schema.
    ///
    /// # Errors
    /// The first fault as a message, with the path to it.
    pub(crate) fn read(key: &'static str, sent: &Value) -> Result<Self, String> {
        Self::read_at(key, sent, "", DEPTH)
    }

    fn read_at(key: &'static str, sent: &Value, path: &str, depth: usize) -> Result<Self, String> {
        let place = if path.is_empty() { "The schema" } else { path };
        let wrong = |text: &str| format!("{place}: {text}");
        let Value::Object(sent) = sent else { return Err(wrong("this must be an object.")) };
        let Some(depth) = depth.checked_sub(1) else {
            return Err(wrong("this is nested too deep."));
        };
        let mut schema = Self::default();
        for (word, value) in sent {
            let number =
                || value.as_f64().ok_or_else(|| wrong(&format!("{word} must be a number.")));
            let length = || {
                let length = value.as_u64().and_then(|length| usize::try_from(length).ok());
                length.ok_or_else(|| wrong(&format!("{word} must be a whole number.")))
            };
            match word.as_str() {
                "type" => {
                    schema.types = types(value).ok_or_else(|| {
                        wrong(&format!("type must be one or several of {}.", TYPES.join(", ")))
                    })?
                }
                "required" => {
                    schema.required =
                        texts(value).ok_or_else(|| wrong("required must be a list of names."))?
                }
                "properties" => {
                    let inner =
                        value.as_object().ok_or_else(|| wrong("properties must be an object."))?;
                    schema.properties = inner
                        .iter()
                        .map(|(name, inner)| {
                            let path = join(path, name);
                            Ok((name.clone(), Self::read_at(key, inner, &path, depth)?))
                        })
                        .collect::<Result<_, String>>()?;
                }
                "additionalProperties" => {
                    schema.is_closed = !value
                        .as_bool()
                        .ok_or_else(|| wrong("additionalProperties must be true or false."))?
                }
                "items" => {
                    let path = join(path, "items");
                    schema.items = Some(Box::new(Self::read_at(key, value, &path, depth)?));
                }
                "enum" => {
                    schema.one_of =
                        Some(value.as_array().ok_or_else(|| wrong("enum must be a list."))?.clone())
                }
                "const" => schema.one_of = Some(vec![value.clone()]),
                "minimum" => schema.minimum = Some(number()?),
                "maximum" => schema.maximum = Some(number()?),
                "minLength" => schema.min_length = Some(length()?),
                "maxLength" => schema.max_length = Some(length()?),
                "pattern" => {
                    let text = value.as_str().ok_or_else(|| wrong("pattern must be a text."))?;
                    schema.pattern =
                        Some(pattern(key, text).map_err(|fault| wrong(&fault.message))?);
                }
                word if WORDS.contains(&word) => {}
                word => return Err(wrong(&format!("{} is not known here.", shown(word)))),
            }
        }
        Ok(schema)
    }

    /// Number of its patterns.
    pub(crate) fn patterns(&self) -> usize {
        let inner = self.properties.iter().map(|(_, schema)| schema).chain(self.items.as_deref());
        inner.map(Self::patterns).sum::<usize>() + usize::from(self.pattern.is_some())
    }

    /// The faults of properties; empty if they match. Only properties that the schema
    /// names are checked. Properties that begin with `$` belong to client libraries and
    /// are always allowed.
    pub(crate) fn faults(&self, properties: &Object<'_>) -> Vec<String> {
        let mut faults = Vec::new();
        for name in &self.required {
            if !properties.has(name) {
                faults.push(format!("{name}: is missing"));
            }
        }
        for (name, schema) in &self.properties {
            if properties.has(name) {
                match properties.value(name) {
                    Some(value) => schema.check(&value, name, &mut faults),
                    None => faults.push(format!("{name}: cannot be read")),
                }
            }
        }
        if self.is_closed {
            for name in properties.keys().filter(|name| !name.starts_with('$')) {
                self.close(name, name, &mut faults);
            }
        }
        faults.truncate(FAULTS_MAX);
        faults
    }

    fn close(&self, name: &str, path: &str, faults: &mut Vec<String>) {
        if faults.len() < FAULTS_MAX && !self.properties.iter().any(|(known, _)| known == name) {
            faults.push(format!("{path}: is not expected"));
        }
    }

    fn check(&self, value: &Value, path: &str, faults: &mut Vec<String>) {
        // One fault per value is enough, up to the maximum of reported faults.
        if faults.len() >= FAULTS_MAX {
            return;
        }
        if let Some(fault) = self.fault(value) {
            faults.push(format!("{path}: {fault}"));
            return;
        }
        match value {
            Value::Object(object) => self.check_object(object, path, faults),
            Value::Array(values) => {
                let Some(schema) = &self.items else { return };
                for (index, value) in values.iter().enumerate() {
                    schema.check(value, &format!("{path}[{index}]"), faults);
                }
            }
            _ => {}
        }
    }

    fn check_object(&self, object: &Map<String, Value>, path: &str, faults: &mut Vec<String>) {
        for name in self.required.iter().filter(|name| !object.contains_key(*name)) {
            faults.push(format!("{}: is missing", join(path, name)));
        }
        for (name, schema) in &self.properties {
            if let Some(value) = object.get(name) {
                schema.check(value, &join(path, name), faults);
            }
        }
        if self.is_closed {
            for name in object.keys() {
                self.close(name, &join(path, name), faults);
            }
        }
    }

    fn fault(&self, value: &Value) -> Option<String> {
        if !self.types.is_empty() && !self.types.iter().any(|name| is_of(name, value)) {
            return Some(format!("is no {}", self.types.join(" or ")));
        }
        if self.one_of.as_ref().is_some_and(|values| !values.iter().any(|one| is_same(one, value)))
        {
            return Some("is none of the values".to_owned());
        }
        if let Some(number) = value.as_f64() {
            if let Some(minimum) = self.minimum.filter(|minimum| number < *minimum) {
                return Some(format!("is below {minimum}"));
            }
            if let Some(maximum) = self.maximum.filter(|maximum| number > *maximum) {
                return Some(format!("is above {maximum}"));
            }
        }
        let text = value.as_str()?;
        let length = text.chars().count();
        if self.min_length.is_some_and(|min| length < min) {
            return Some("is too short".to_owned());
        }
        if self.max_length.is_some_and(|max| length > max) {
            return Some("is too long".to_owned());
        }
        let fits = self.pattern.as_ref().is_none_or(|pattern| pattern.is_match(text));
        (!fits).then(|| "does not fit the pattern".to_owned())
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn texts(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|text| text.as_str().map(str::to_owned)).collect()
}

fn types(value: &Value) -> Option<Vec<String>> {
    let types = match value {
        Value::String(name) => vec![name.clone()],
        value => texts(value)?,
    };
    let are_known = !types.is_empty() && types.iter().all(|name| TYPES.contains(&name.as_str()));
    are_known.then_some(types)
}

fn is_of(name: &str, value: &Value) -> bool {
    match value {
        Value::Null => name == "null",
        Value::Bool(_) => name == "boolean",
        Value::String(_) => name == "string",
        Value::Array(_) => name == "array",
        Value::Object(_) => name == "object",
        Value::Number(number) => {
            let is_whole =
                || !number.is_f64() || number.as_f64().is_some_and(|number| number.fract() == 0.0);
            name == "number" || (name == "integer" && is_whole())
        }
    }
}

fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            one == other || one.as_f64() == other.as_f64()
        }
        (one, other) => one == other,
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use serde_json::{Value, json};

    use super::{FAULTS_MAX, Schema};
    use crate::event::Object;

    fn faults(schema: Value, properties: &str) -> Vec<String> {
        let object = Object::read(Cow::Borrowed(properties)).unwrap();
        Schema::read("k", &schema).unwrap().faults(&object)
    }

    #[test]
    fn each_keyword_is_checked() {
        for (schema, good, bad) in [
            (json!({"type": "string"}), vec!["\"\""], vec!["1", "null", "[]"]),
            (
                json!({"type": "integer"}),
                vec!["1", "12345678901234567890", "123456789012345678901", "1.0"],
                vec!["1.5", "\"1\""],
            ),
            (json!({"type": ["number", "null"]}), vec!["1.5", "null"], vec!["true", "{}"]),
            (
                json!({"enum": ["ä", 1, null]}),
                vec!["\"ä\"", "\"\\u00e4\"", "1.0", "null"],
                vec!["2", "\"a\""],
            ),
            (json!({"const": true}), vec!["true"], vec!["false"]),
            (json!({"minimum": 1, "maximum": 2}), vec!["1", "2", "\"7\""], vec!["0.9", "2.1"]),
            (json!({"minLength": 1, "maxLength": 2}), vec!["\"äö\"", "7"], vec!["\"\"", "\"abc\""]),
            (json!({"pattern": "^a+$"}), vec!["\"aa\"", "1"], vec!["\"b\""]),
            (json!({"items": {"type": "number"}}), vec!["[]", "[1]", "7"], vec!["[1, \"x\"]"]),
            (
                json!({"required": ["a"], "properties": {"a": {"type": "number"}}, "additionalProperties": false}),
                vec!["{\"a\": 1}", "7"],
                vec!["{}", "{\"a\": null}", "{\"a\": 1, \"b\": 1}"],
            ),
            (json!({"title": "x"}), vec!["1"], vec![]),
        ] {
            let schema = json!({"properties": {"v": schema}});
            for value in good {
                assert_eq!(
                    faults(schema.clone(), &format!("{{\"v\": {value}}}")),
                    [""; 0],
                    "{value}"
                );
            }
            for value in bad {
                assert_eq!(
                    faults(schema.clone(), &format!("{{\"v\": {value}}}")).len(),
                    1,
                    "{value}"
                );
            }
        }
    }

    #[test]
    fn faults_say_where() {
        let schema = json!({
            "required": ["id"], "additionalProperties": false,
            "properties": {"cart": {"items": {"properties": {"price": {"minimum": 0}}}}},
        });
        assert_eq!(
            faults(
                schema.clone(),
                r#"{"cart": [{"price": 1}, {"price": -1}], "x": 1, "$lib": "web"}"#
            ),
            ["id: is missing", "cart[1].price: is below 0", "x: is not expected"]
        );
        let many = format!("[{}]", vec![r#"{"price":-1}"#; 50].join(","));
        assert_eq!(faults(schema, &format!(r#"{{"cart":{many}}}"#)).len(), FAULTS_MAX);
    }

    #[test]
    fn what_is_not_known_is_refused() {
        let mut deep = json!({});
        for _ in 0..20 {
            deep = json!({"items": deep});
        }
        for schema in [
            json!(7),
            json!({"type": "text"}),
            json!({"type": []}),
            json!({"required": "a"}),
            json!({"properties": []}),
            json!({"properties": {"a": {"oneOf": []}}}),
            json!({"pattern": "("}),
            json!({"minLength": -1}),
            json!({"minimum": "1"}),
            json!({"additionalProperties": {}}),
            deep,
        ] {
            assert!(Schema::read("k", &schema).is_err(), "{schema}");
        }
        let fault = Schema::read("k", &json!({"properties": {"a": {"oneOf": []}}})).unwrap_err();
        assert!(fault.starts_with("a: "), "{fault}");
    }
}
