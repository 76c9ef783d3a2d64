//! Source files of plugins: what may be sent, and what `plugin.json` says
//! (plugins 4, "update_source", and 6.1).

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{FILE_NAME_MAX, FILES_MAX, MANIFEST, NAME_MAX, SOURCE_MAX, SourceChange, schema};
use crate::errors::FieldError;
use crate::json::{DEPTH, is_too_deep};
use crate::validate;

/// Whether a key of a body or of an answer names a file: fields of the record
/// have no dot.
#[must_use]
pub fn is_file_name(key: &str) -> bool {
    key.contains('.')
}

/// The name of a file.
///
/// # Errors
/// `max_length` or `null_characters_not_allowed` at the name.
pub fn file_name(name: &str) -> Result<String, FieldError> {
    validate::optional_text(name, name, FILE_NAME_MAX)
}

/// Source files after a change.
///
/// # Errors
/// `invalid_input` when there would be too many, or too much in them.
pub fn changed(
    files: &BTreeMap<String, String>,
    change: &SourceChange,
) -> Result<BTreeMap<String, String>, FieldError> {
    let mut after = files.clone();
    for (name, text) in change {
        match text {
            Some(text) => after.insert(name.clone(), text.clone()),
            None => after.remove(name),
        };
    }
    let bytes: usize = after.values().map(String::len).sum();
    if bytes > SOURCE_MAX {
        let detail = format!("All source files together may have {SOURCE_MAX} bytes.");
        return Err(FieldError::body("invalid_input", detail));
    }
    if after.len() > FILES_MAX {
        let detail = format!("A plugin may have {FILES_MAX} source files.");
        return Err(FieldError::body("invalid_input", detail));
    }
    Ok(after)
}

/// What a `plugin.json` says of the record.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Manifest {
    /// The plugin's name.
    pub name: Option<String>,
    /// What can be configured.
    pub config_schema: Option<Map<String, Value>>,
}

/// Reads a `plugin.json`.
///
/// # Errors
/// What is wrong with it, for its author.
pub fn manifest(text: &str) -> Result<Manifest, String> {
    if is_too_deep(text.as_bytes()) {
        return Err(format!("More than {DEPTH} nested objects and lists."));
    }
    let read: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let Value::Object(read) = read else { return Err("Expected an object.".to_owned()) };
    let at = |field: &str, fault: FieldError| format!("{field}: {}", fault.detail);
    let name = match read.get("name") {
        None | Some(Value::Null) => None,
        Some(Value::String(name)) => {
            let name = validate::optional_text("name", name, NAME_MAX);
            Some(name.map_err(|fault| at("name", fault))?)
        }
        Some(_) => return Err("name: Not a valid string.".to_owned()),
    };
    let config_schema = match read.get("config") {
        None | Some(Value::Null) => None,
        Some(config) => {
            Some(schema::read(schema::FIELD, config).map_err(|fault| at("config", fault))?)
        }
    };
    Ok(Manifest { name, config_schema })
}

/// What is wrong with source files, from the name of a file to a sentence, as far
/// as it can be told without running them.
#[must_use]
pub fn faults(files: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let fault = files.get(MANIFEST).and_then(|text| manifest(text).err());
    fault.map(|fault| (MANIFEST.to_owned(), fault)).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{Manifest, changed, faults, manifest};

    #[test]
    fn manifests() {
        assert_eq!(manifest("{}"), Ok(Manifest::default()));
        let read = manifest(r#"{"name": " Tea ", "config": [{"key": "cups"}], "main": "x"}"#);
        let read = read.unwrap();
        assert_eq!(read.name.as_deref(), Some("Tea"));
        assert_eq!(read.config_schema.unwrap()["cups"]["order"], 0);
        for bad in ["", "{", "[]", r#"{"name": 7}"#, r#"{"config": 7}"#] {
            assert!(manifest(bad).is_err(), "{bad}");
        }
        let deep = |depth| format!(r#"{{"main": {}1{}}}"#, "[".repeat(depth), "]".repeat(depth));
        assert!(manifest(&deep(63)).is_ok());
        assert_eq!(manifest(&deep(64)).unwrap_err(), "More than 64 nested objects and lists.");
        let long = format!(r#"{{"name": "{}"}}"#, "x".repeat(201));
        assert!(manifest(&long).unwrap_err().starts_with("name: "));
    }

    #[test]
    fn what_is_not_named_stays() {
        let files = |files: &[(&str, &str)]| -> BTreeMap<String, String> {
            files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
        };
        let before = files(&[("a.js", "1"), ("b.js", "2"), ("plugin.json", "{")]);
        let change = vec![
            ("a.js".to_owned(), Some("3".to_owned())),
            ("b.js".to_owned(), None),
            ("none.js".to_owned(), None),
        ];
        let after = changed(&before, &change).unwrap();
        assert_eq!(after, files(&[("a.js", "3"), ("plugin.json", "{")]));
        assert_eq!(faults(&after).keys().collect::<Vec<_>>(), ["plugin.json"]);
        let long = vec![("a.js".to_owned(), Some("x".repeat(600_000)))];
        assert!(changed(&before, &long).is_err());
        let many = (0..51).map(|n| (format!("{n}.js"), Some(String::new()))).collect();
        assert!(changed(&before, &many).is_err());
    }
}
