//! Changes by PATCH (RFC 7644, 3.5.2), as Okta and Entra send them too: operations in
//! capitals, values to remove beside the path, and paths as names of members.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::fault::{Fault, FaultKind};
use crate::filter::Filter;
use crate::list::{List, PRIMARY, ReadLimit};
use crate::member;
use crate::path::Path;
use crate::resource_type::{Attribute, ResourceType, Shape};
use crate::resources::{is_main, is_true};

/// Most operations of a request.
pub const OPERATIONS_MAX: usize = 1000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Add,
    Replace,
    Remove,
}

/// Makes the changes of a body to a resource, all or none of them: the caller discards the
/// resource after a fault.
///
/// # Errors
/// The fault of the first wrong operation.
pub fn apply(
    resource_type: &ResourceType,
    resource: &mut Value,
    body: &Value,
) -> Result<(), Fault> {
    let wrong = |detail: &str| Fault::new(FaultKind::InvalidSyntax, detail);
    let operations = member(body, "Operations").and_then(Value::as_array);
    let operations = operations.ok_or_else(|| wrong("The body has no list `Operations`."))?;
    if operations.len() > OPERATIONS_MAX {
        let detail = format!("A request may have at most {OPERATIONS_MAX} operations.");
        return Err(Fault::new(FaultKind::TooMany, detail));
    }
    let Value::Object(resource) = resource else { return Err(wrong("No resource.")) };
    let mut lists = Lists { lists: BTreeMap::new(), limit: ReadLimit::new() };
    for each in operations {
        let name = member(each, "op").and_then(Value::as_str).unwrap_or_default();
        let operation = match name.to_ascii_lowercase().as_str() {
            "add" => Operation::Add,
            "replace" => Operation::Replace,
            "remove" => Operation::Remove,
            _ => return Err(wrong("`op` must be add, replace or remove.")),
        };
        let value = member(each, "value");
        let path = match member(each, "path") {
            None | Some(Value::Null) => None,
            Some(Value::String(path)) if path.is_empty() => None,
            Some(Value::String(path)) => Some(Path::parse(path)?),
            Some(_) => return Err(wrong("`path` must be a text.")),
        };
        match path {
            Some(path) => {
                change(resource_type, resource, &mut lists, operation, &path, value, true)?
            }
            None if operation == Operation::Remove => {
                let detail = "An operation that removes needs a path.";
                return Err(Fault::new(FaultKind::NoTarget, detail));
            }
            None => {
                let Some(Value::Object(members)) = value else {
                    return Err(wrong("An operation without a path needs an object as value."));
                };
                for (name, value) in members {
                    // The names of extensions are schemas, which no attribute has.
                    let Ok(path) = Path::parse(name) else { continue };
                    change(
                        resource_type,
                        resource,
                        &mut lists,
                        operation,
                        &path,
                        Some(value),
                        false,
                    )?;
                }
            }
        }
    }
    for (name, list) in lists.lists {
        resource.insert(name.to_owned(), list.into_value());
    }
    Ok(())
}

/// The lists of a resource that the operations change.
struct Lists {
    lists: BTreeMap<&'static str, List>,
    limit: ReadLimit,
}

impl Lists {
    fn of(
        &mut self,
        resource: &mut Map<String, Value>,
        attribute: &'static Attribute,
    ) -> (&mut List, &mut ReadLimit) {
        let stored = || List::of(resource.remove(attribute.name).unwrap_or_default());
        (self.lists.entry(attribute.name).or_insert_with(stored), &mut self.limit)
    }
}

/// Makes one change. `is_named`: the path was named, so it must be one that can change.
fn change(
    resource_type: &ResourceType,
    resource: &mut Map<String, Value>,
    lists: &mut Lists,
    operation: Operation,
    path: &Path,
    value: Option<&Value>,
    is_named: bool,
) -> Result<(), Fault> {
    let is_ours =
        path.schema.as_deref().is_none_or(|name| name.eq_ignore_ascii_case(resource_type.schema));
    let Some(attribute) = resource_type.attribute(&path.attribute).filter(|_| is_ours) else {
        return Ok(());
    };
    if attribute.is_read_only {
        return if is_named { Err(unchangeable(attribute)) } else { Ok(()) };
    }
    if operation == Operation::Remove {
        return remove(resource, lists, attribute, path, value);
    }
    let value = value.ok_or_else(|| {
        Fault::new(FaultKind::InvalidSyntax, "An operation that adds or replaces needs a value.")
    })?;
    let name = attribute.name.to_owned();
    match (attribute.shape, &path.part) {
        (Shape::Single, None) => {
            resource.insert(name, single(value).clone());
        }
        (Shape::Single, Some(_)) => return Err(no_part(attribute)),
        (Shape::Complex, None) => {
            let Value::Object(parts) = single(value) else {
                return Err(Fault::value(format!("`{name}` must be an object.")));
            };
            within_object(resource.entry(name).or_insert(Value::Null), |present| {
                for (part, value) in parts {
                    set_part(present, part, value.clone());
                }
            });
        }
        (Shape::Complex, Some(part)) => {
            within_object(resource.entry(name).or_insert(Value::Null), |present| {
                set_part(present, part, single(value).clone());
            });
        }
        (Shape::Many, part) => {
            let (present, limit) = lists.of(resource, attribute);
            match (&path.filter, part) {
                (None, None) => many(present, operation, value, limit)?,
                (filter, Some(part)) => each_part(present, filter.as_ref(), part, value, limit)?,
                (Some(filter), None) => matching(present, filter, value, limit)?,
            }
        }
    }
    Ok(())
}

/// Adds to a list, or replaces it.
fn many(
    present: &mut List,
    operation: Operation,
    value: &Value,
    limit: &mut ReadLimit,
) -> Result<(), Fault> {
    if operation == Operation::Replace {
        present.clear();
    }
    let mut main = None;
    for value in values(value) {
        let at = present.add(value)?.or_else(|| present.place_of(value));
        main = main.or(at.filter(|_| is_main(value)));
    }
    match main {
        Some(at) => present.make_main(at, limit),
        None => Ok(()),
    }
}

/// Sets a part of the values that a filter finds, or of all.
fn each_part(
    present: &mut List,
    filter: Option<&Filter>,
    part: &str,
    value: &Value,
    limit: &mut ReadLimit,
) -> Result<(), Fault> {
    let found = present.find(filter, limit)?;
    let makes_main = part.eq_ignore_ascii_case(PRIMARY) && is_true(single(value));
    for at in &found {
        present.change(*at, |each| {
            within_object(each, |parts| set_part(parts, part, single(value).clone()));
        });
    }
    if let Some(at) = found.first() {
        return if makes_main { present.make_main(*at, limit) } else { Ok(()) };
    }
    // Entra replaces `emails[type eq "work"].value` also where there is no such value yet.
    let mut new = Map::new();
    match filter.map(Filter::only_part) {
        None => {}
        Some(Some((name, text))) => {
            new.insert(name.to_owned(), Value::from(text));
        }
        Some(None) => return Err(no_target()),
    }
    set_part(&mut new, part, single(value).clone());
    match present.add(&Value::Object(new))? {
        Some(at) if makes_main => present.make_main(at, limit),
        _ => Ok(()),
    }
}

/// Changes the values that a filter finds.
fn matching(
    present: &mut List,
    filter: &Filter,
    value: &Value,
    limit: &mut ReadLimit,
) -> Result<(), Fault> {
    let found = present.find(Some(filter), limit)?;
    if found.is_empty() {
        return Err(no_target());
    }
    let Value::Object(parts) = single(value) else {
        return Err(Fault::value("The value of the operation must be an object."));
    };
    for at in &found {
        present.change(*at, |each| {
            within_object(each, |present| {
                for (part, value) in parts {
                    set_part(present, part, value.clone());
                }
            });
        });
    }
    match found.first() {
        Some(at) if is_main(single(value)) => present.make_main(*at, limit),
        _ => Ok(()),
    }
}

fn remove(
    resource: &mut Map<String, Value>,
    lists: &mut Lists,
    attribute: &'static Attribute,
    path: &Path,
    value: Option<&Value>,
) -> Result<(), Fault> {
    if attribute.is_required {
        return Err(unchangeable(attribute));
    }
    if attribute.shape == Shape::Many {
        return remove_values(resource, lists, attribute, path, value);
    }
    let Some(present) = resource.get_mut(attribute.name) else { return Ok(()) };
    match (attribute.shape, &path.filter, &path.part) {
        (Shape::Complex, None, Some(part)) => {
            within_object(present, |parts| remove_part(parts, part));
        }
        (_, None, None) => {
            resource.remove(attribute.name);
        }
        (_, None, Some(_)) | (_, Some(_), _) => return Err(no_part(attribute)),
    }
    Ok(())
}

/// Removes values of a list, or parts of them.
fn remove_values(
    resource: &mut Map<String, Value>,
    lists: &mut Lists,
    attribute: &'static Attribute,
    path: &Path,
    value: Option<&Value>,
) -> Result<(), Fault> {
    let (present, limit) = lists.of(resource, attribute);
    match (&path.filter, &path.part) {
        (filter, Some(part)) => {
            for at in present.find(filter.as_ref(), limit)? {
                present.change(at, |each| within_object(each, |parts| remove_part(parts, part)));
            }
        }
        (Some(filter), None) => {
            for at in present.find(Some(filter), limit)? {
                present.remove(at);
            }
        }
        (None, None) => match value {
            // Okta and Entra name the values to remove beside the path.
            Some(value) if !value.is_null() => {
                for gone in values(value) {
                    present.remove_like(gone);
                }
            }
            _ => present.clear(),
        },
    }
    Ok(())
}

fn values(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(values) => values.iter().collect(),
        value => vec![value],
    }
}

/// One value, which may be sent as a list of one.
fn single(value: &Value) -> &Value {
    match value {
        Value::Array(values) if values.len() == 1 => values.first().unwrap_or(value),
        value => value,
    }
}

/// Changes the members of an object; another value counts as an empty one.
fn within_object<T>(value: &mut Value, change: impl FnOnce(&mut Map<String, Value>) -> T) -> T {
    let mut members = match value.take() {
        Value::Object(members) => members,
        _ => Map::new(),
    };
    let result = change(&mut members);
    *value = Value::Object(members);
    result
}

fn set_part(parts: &mut Map<String, Value>, part: &str, value: Value) {
    remove_part(parts, part);
    parts.insert(part.to_owned(), value);
}

fn remove_part(parts: &mut Map<String, Value>, part: &str) {
    parts.retain(|name, _| !name.eq_ignore_ascii_case(part));
}

fn unchangeable(attribute: &Attribute) -> Fault {
    let what = if attribute.is_read_only { "cannot be changed" } else { "cannot be removed" };
    Fault::new(FaultKind::Mutability, format!("`{}` {what}.", attribute.name))
}

fn no_part(attribute: &Attribute) -> Fault {
    let detail = format!("`{}` has no parts.", attribute.name);
    Fault::new(FaultKind::InvalidPath, detail)
}

fn no_target() -> Fault {
    Fault::new(FaultKind::NoTarget, "The path of an operation finds no value.")
}
