//! Schemas of resources and bodies in the API document.
//!
//! Derived schemas are changed to one plain form: every object with all of its
//! properties, properties that are always sent marked as required, and values that are
//! not objects written inline.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ArrayItems, Schema};

use super::document::Defect;
use crate::http::input::InputField;

/// Properties that an answer may omit. They are never null.
const OPTIONAL: &[(&str, &str)] = &[("BatchExport", "backfill_id"), ("Error", "extra")];

/// Properties that are null only in another type that has the same fields.
const NEVER_NULL: &[(&str, &str)] = &[("Plugin", "organization_id")];

const PREFIX: &str = "#/components/schemas/";

/// A reference to a named schema.
pub(super) fn reference(name: &str) -> Value {
    json!({"$ref": format!("{PREFIX}{name}")})
}

/// The name in a reference.
pub(super) fn referred(schema: &Value) -> Option<&str> {
    schema.get("$ref")?.as_str()?.strip_prefix(PREFIX)
}

/// Named schemas of the document that is being built.
#[derive(Debug, Default)]
pub(super) struct Schemas {
    named: BTreeMap<String, Value>,
    /// Resources that requests can change, with the fields that they can change.
    writable: BTreeMap<String, BTreeSet<String>>,
    /// Schemas that are not objects, to be written inline.
    values: BTreeMap<String, Value>,
}

impl Schemas {
    /// Adds derived schemas.
    pub(super) fn add(&mut self, derived: &[(String, RefOr<Schema>)]) -> Result<(), Defect> {
        for (name, schema) in derived {
            let mut value = plain(schema)?;
            for (_, property) in OPTIONAL.iter().filter(|(of, _)| of == name) {
                if let Some(required) = value.get_mut("required").and_then(Value::as_array_mut) {
                    required.retain(|other| other != property);
                }
                value["properties"].get_mut(*property).into_iter().for_each(remove_null);
            }
            match self.named.get(name) {
                Some(known) if *known != value => {
                    return Err(Defect::TwoSchemas { name: name.clone() });
                }
                Some(_) | None => {}
            }
            self.named.insert(name.clone(), value);
        }
        Ok(())
    }

    /// Records that a request with these fields changes the resource that it returns.
    pub(super) fn written(&mut self, resource: &str, fields: &[InputField]) {
        let names = fields.iter().map(|field| field.name.clone());
        self.writable.entry(resource.to_owned()).or_default().extend(names);
    }

    /// A schema of the body of a request. Fields that the answer also has get the
    /// answer's descriptions.
    pub(super) fn body(&self, fields: &[InputField], answer: Option<&str>) -> Value {
        let shown = answer.and_then(|name| self.named.get(name));
        let property = |field: &InputField| {
            let mut schema = field.schema.clone();
            let described = shown
                .and_then(|shown| shown.get("properties")?.get(&field.name)?.get("description"));
            if let Some(description) = described {
                schema["description"] = description.clone();
            }
            (field.name.clone(), schema)
        };
        let properties: Map<String, Value> = fields.iter().map(property).collect();
        let required: Vec<&str> =
            fields.iter().filter(|field| field.required).map(|field| field.name.as_str()).collect();
        let mut body = json!({"type": "object", "properties": properties});
        if !required.is_empty() {
            body["required"] = json!(required);
        }
        body
    }

    /// Adds a schema under a unique name.
    pub(super) fn insert(&mut self, name: String, schema: Value) {
        self.named.insert(name, schema);
    }

    /// A schema by its name.
    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.named.get(name)
    }

    /// Changes all derived schemas to the plain form.
    pub(super) fn settle(&mut self) {
        let names: Vec<String> = self.named.keys().cloned().collect();
        for name in &names {
            self.merge_parts(name);
        }
        self.values = self.without_objects();
        for schema in self.named.values_mut() {
            write_out(schema, &self.values);
            simplify(schema);
        }
        self.named.retain(|name, _| !self.values.contains_key(name));
        for (name, writable) in &self.writable {
            let schema = self.named.get_mut(name);
            let properties =
                schema.and_then(|schema| schema.get_mut("properties")?.as_object_mut());
            let Some(properties) = properties else { continue };
            // An object with none of the sent fields is not a resource.
            if !properties.keys().any(|property| writable.contains(property)) {
                continue;
            }
            for (_, schema) in properties.iter_mut().filter(|(name, _)| !writable.contains(*name)) {
                schema["readOnly"] = json!(true);
            }
        }
    }

    /// Changes one schema, also one outside the components.
    pub(super) fn settle_one(&self, schema: &mut Value) {
        write_out(schema, &self.values);
        simplify(schema);
    }

    /// Named schemas that are not objects: ids, times, levels.
    fn without_objects(&self) -> BTreeMap<String, Value> {
        let is_value =
            |schema: &Value| schema.get("properties").is_none() && schema["type"] != "object";
        let values = self.named.iter().filter(|(_, schema)| is_value(schema));
        values.map(|(name, schema)| (name.clone(), schema.clone())).collect()
    }

    /// All schemas by name.
    pub(super) fn into_map(self) -> Map<String, Value> {
        self.named.into_iter().collect()
    }

    /// Makes one object of a schema that is composed of several.
    fn merge_parts(&mut self, name: &str) {
        let Some(parts) = self.named.get(name).and_then(|schema| schema.get("allOf")).cloned()
        else {
            return;
        };
        let (mut properties, mut required, mut others) = (Map::new(), Vec::new(), None);
        for part in parts.as_array().into_iter().flatten() {
            if let Some(other) = referred(part) {
                let other = other.to_owned();
                self.merge_parts(&other);
            }
            let part = referred(part).and_then(|name| self.named.get(name)).unwrap_or(part);
            if let Some(more) = part.get("properties").and_then(Value::as_object) {
                properties.extend(more.clone());
            }
            if let Some(more) = part.get("required").and_then(Value::as_array) {
                required.extend(more.clone());
            }
            others = others.or_else(|| part.get("additionalProperties").cloned());
        }
        for (_, property) in NEVER_NULL.iter().filter(|(of, _)| *of == name) {
            properties.get_mut(*property).into_iter().for_each(remove_null);
        }
        if let Some(schema) = self.named.get_mut(name).and_then(Value::as_object_mut) {
            schema.remove("allOf");
            schema.insert("type".to_owned(), json!("object"));
            schema.insert("properties".to_owned(), Value::Object(properties));
            schema.insert("required".to_owned(), Value::Array(required));
            if let Some(others) = others {
                schema.insert("additionalProperties".to_owned(), others);
            }
        }
    }
}

/// A derived schema as JSON. All properties of an object are sent, so all are required,
/// in the order of the resource.
pub(super) fn plain(schema: &RefOr<Schema>) -> Result<Value, Defect> {
    let mut schema = schema.clone();
    if let RefOr::T(whole) = &mut schema {
        require_all(whole);
    }
    serde_json::to_value(&schema).map_err(Defect::Unwritable)
}

fn require_all(schema: &mut Schema) {
    match schema {
        Schema::Object(object) => object.required = object.properties.keys().cloned().collect(),
        Schema::AllOf(all) => {
            for part in &mut all.items {
                if let RefOr::T(part) = part {
                    require_all(part);
                }
            }
        }
        Schema::Array(list) => {
            if let ArrayItems::RefOrSchema(item) = &mut list.items
                && let RefOr::T(item) = &mut **item
            {
                require_all(item);
            }
        }
        _ => {}
    }
}

/// Removes null from the values of a derived schema.
fn remove_null(schema: &mut Value) {
    let Some(object) = schema.as_object_mut() else { return };
    if let Some(Value::Array(kinds)) = object.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [kind] = kinds.as_slice() {
            let kind = kind.clone();
            object.insert("type".to_owned(), kind);
        }
    }
    let Some(Value::Array(alternatives)) = object.get_mut("oneOf") else { return };
    alternatives.retain(|alternative| alternative["type"] != "null");
    if let [Value::Object(alternative)] = alternatives.as_slice() {
        let alternative = alternative.clone();
        object.remove("oneOf");
        for (key, value) in alternative {
            // The field's own description has priority.
            object.entry(key).or_insert(value);
        }
    }
}

/// Replaces references to named values by the values.
fn write_out(schema: &mut Value, values: &BTreeMap<String, Value>) {
    let value = referred(schema).and_then(|name| values.get(name)).cloned();
    if let (Some(Value::Object(value)), Some(object)) = (value, schema.as_object_mut()) {
        object.remove("$ref");
        for (key, value) in value {
            // The field's own description has priority.
            object.entry(key).or_insert(value);
        }
        // A named value may refer to another.
        write_out(schema, values);
        return;
    }
    match schema {
        Value::Object(parts) => parts.values_mut().for_each(|part| write_out(part, values)),
        Value::Array(parts) => parts.iter_mut().for_each(|part| write_out(part, values)),
        _ => {}
    }
}

/// Replaces `oneOf` null and a value by a nullable value. Removes formats that say no
/// more than their type.
fn simplify(schema: &mut Value) {
    match schema {
        Value::Array(parts) => return parts.iter_mut().for_each(simplify),
        Value::Object(parts) => parts.values_mut().for_each(simplify),
        _ => return,
    }
    // The field's description is next to the reference, not within it.
    let parts = schema.get_mut("oneOf").and_then(Value::as_array_mut);
    let said = parts.into_iter().flatten().find_map(|part| {
        part.get("$ref")?;
        part.as_object_mut()?.remove("description")
    });
    if let (Some(said), Some(object)) = (said, schema.as_object_mut()) {
        object.entry("description").or_insert(said);
    }
    let alternatives = schema.get("oneOf").and_then(Value::as_array).cloned().unwrap_or_default();
    let (nulls, others): (Vec<&Value>, Vec<&Value>) =
        alternatives.iter().partition(|part| part["type"] == "null");
    let ([_], [other]) = (&nulls[..], &others[..]) else { return };
    let Some(kind) = other.get("type").and_then(Value::as_str) else { return };
    let (Some(other), Some(object)) = (other.as_object(), schema.as_object_mut()) else { return };
    object.remove("oneOf");
    for (key, value) in other {
        object.entry(key.clone()).or_insert_with(|| value.clone());
    }
    object.insert("type".to_owned(), json!([kind, "null"]));
    if let Some(Value::Array(choices)) = object.get_mut("enum") {
        choices.push(Value::Null);
    }
}
