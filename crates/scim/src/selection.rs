//! Which attributes of a resource an answer has (RFC 7644, 3.9).

use serde_json::Value;

use crate::fault::{Fault, FaultKind};

/// Most names of attributes.
const NAMES_MAX: usize = 50;
/// Attributes that every answer has.
const ALWAYS: [&str; 2] = ["schemas", "id"];

/// The query parameters `attributes` and `excludedAttributes`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selection {
    only: Vec<String>,
    without: Vec<String>,
}

impl Selection {
    /// Reads the parameters.
    ///
    /// # Errors
    /// `invalidValue` when there are too many names.
    pub fn parse(only: Option<&str>, without: Option<&str>) -> Result<Self, Fault> {
        Ok(Self { only: names(only)?, without: names(without)? })
    }

    /// Whether an answer has this attribute.
    pub fn has(&self, name: &str) -> bool {
        let name = name.to_ascii_lowercase();
        let names = |list: &[String]| {
            list.iter().any(|one| one.split('.').next().is_some_and(|first| first == name))
        };
        if ALWAYS.contains(&name.as_str()) {
            return true;
        }
        // Only a part of the attribute is excluded: the attribute stays.
        let is_excluded = self.without.contains(&name);
        (self.only.is_empty() || names(&self.only)) && !is_excluded
    }

    /// Removes attributes that were not requested.
    pub fn apply(&self, resource: &mut Value) {
        let Value::Object(members) = resource else { return };
        members.retain(|name, _| self.has(name));
        for (name, value) in members {
            let name = name.to_ascii_lowercase();
            let of = |list: &[String]| -> Vec<String> {
                let part = |one: &String| one.strip_prefix(&format!("{name}.")).map(str::to_owned);
                list.iter().filter_map(part).collect()
            };
            let (mut only, without) = (of(&self.only), of(&self.without));
            if self.only.contains(&name) {
                only.clear();
            }
            let keeps = |part: &str| {
                let part = part.to_ascii_lowercase();
                (only.is_empty() || only.contains(&part)) && !without.contains(&part)
            };
            let parts = match value {
                Value::Object(parts) => vec![parts],
                Value::Array(values) => {
                    values.iter_mut().filter_map(Value::as_object_mut).collect()
                }
                _ => Vec::new(),
            };
            for parts in parts {
                parts.retain(|part, _| keeps(part));
            }
        }
    }
}

/// The names, in lower case and without their schemas.
fn names(list: Option<&str>) -> Result<Vec<String>, Fault> {
    let name = |name: &str| {
        let name = name.trim();
        let name = name.rsplit_once(':').map_or(name, |(_, name)| name);
        name.to_ascii_lowercase()
    };
    let names: Vec<String> = list.unwrap_or_default().split(',').map(name).collect();
    let names: Vec<String> = names.into_iter().filter(|name| !name.is_empty()).collect();
    if names.len() > NAMES_MAX {
        let detail = format!("At most {NAMES_MAX} attributes can be named.");
        return Err(Fault::new(FaultKind::InvalidValue, detail));
    }
    Ok(names)
}
