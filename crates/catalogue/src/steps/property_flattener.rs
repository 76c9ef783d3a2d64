//! Flattens nested properties.

use std::borrow::Cow;
use std::collections::HashSet;

use super::OF_PERSON;
use crate::config::{Config, ConfigError};
use crate::entry::{Code, Direction, Entry, Item, Native, Step, StepDependencies};
use crate::event::{Flow, Object, StepEvent};

/// Maximum depth of flattened objects.
const DEPTH: usize = 32;
/// Maximum members of the result (PLG-39).
const KEYS_MAX: usize = 10_000;
/// Maximum bytes of all names in the result: a name contains the names above it.
const NAMES_MAX: usize = 256 << 10;

pub(crate) const ENTRY: Entry = Entry {
    id: "property-flattener",
    name: "Property flattener",
    description: "Turns nested properties into flat ones, so that you can choose them in filters.",
    icon: Some("alter"),
    direction: Direction::Filtering,
    items: &[
        Item::text("separator", "Separator", "The text between the names.").or("__").required(),
        Item::yes_no(
            "keepNested",
            "Keep nested ones too",
            "No",
            "Whether the nested properties also stay.",
        ),
    ],
    code: Code::Native(Native(make)),
};

fn make(config: &Config<'_>, _: &StepDependencies) -> Result<Box<dyn Step>, ConfigError> {
    let separator = config.needed("separator")?;
    if separator.chars().count() > 8 {
        return Err(ConfigError::new("separator", "At most 8 characters are possible."));
    }
    Ok(Box::new(Flattener { separator, keeps: config.yes("keepNested")? }))
}

struct Flattener {
    separator: String,
    keeps: bool,
}

impl Step for Flattener {
    fn apply(&self, event: &mut StepEvent<'_>) -> Flow {
        let properties = event.properties_mut();
        self.flatten(properties);
        for name in OF_PERSON {
            if let Some(person) = properties.child(name) {
                self.flatten(person);
            }
        }
        Flow::Keep
    }
}

/// A flat member: name and JSON text.
type Flat = (String, String);

impl Flattener {
    fn flatten(&self, object: &mut Object<'_>) {
        let mut flat = Vec::new();
        let mut names = Vec::new();
        let mut room = NAMES_MAX;
        object.children(|name, child| {
            // Nested properties that begin with `$` have special meanings.
            if !name.starts_with('$') && !child.is_empty() {
                names.push(name.to_owned());
                self.collect(name, child, &mut flat, &mut room, DEPTH);
            }
        });
        if flat.is_empty() || room == 0 || object.len() + flat.len() > KEYS_MAX {
            return;
        }
        if !self.keeps {
            let names: HashSet<String> = names.into_iter().collect();
            object.retain(|name, json| !(json.starts_with('{') && names.contains(name)));
        }
        // A member that was sent flat takes precedence.
        let mut taken: HashSet<String> = object.keys().map(str::to_owned).collect();
        for (name, json) in flat {
            if taken.insert(name.clone()) {
                object.append(name, Cow::Owned(json));
            }
        }
    }

    /// `room` is 0 afterwards if it was too small.
    fn collect(
        &self,
        prefix: &str,
        object: &mut Object<'_>,
        flat: &mut Vec<Flat>,
        room: &mut usize,
        depth: usize,
    ) {
        let names: Vec<String> = object.keys().map(str::to_owned).collect();
        for name in names {
            let flat_name = format!("{prefix}{}{name}", self.separator);
            *room = room.saturating_sub(flat_name.len());
            if *room == 0 {
                return;
            }
            match object.child(&name) {
                Some(child) if depth > 0 && !child.is_empty() => {
                    self.collect(&flat_name, child, flat, room, depth - 1);
                }
                _ => {
                    if let Some(json) = object.raw(&name) {
                        flat.push((flat_name, json.into_owned()));
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::{after, assert_same, fault};

    #[test]
    fn nested_properties_become_flat() {
        let sent = r#"{"a":{"b":1.50,"c":{"ü":12345678901234567890,"e":null}},"f":[{"g":1}],"$set":{"h":{"i":"j"}},"k":{}}"#;
        assert_eq!(
            after("property-flattener", &json!({}), sent).unwrap(),
            r#"{"f":[{"g":1}],"$set":{"h__i":"j"},"k":{},"a__b":1.50,"a__c__ü":12345678901234567890,"a__c__e":null}"#
        );
        let config = json!({"separator": ".", "keepNested": "Yes"});
        assert_eq!(
            after("property-flattener", &config, r#"{"a":{"b":{"c":[]}}}"#).unwrap(),
            r#"{"a":{"b":{"c":[]}},"a.b.c":[]}"#
        );
    }

    #[test]
    fn what_was_sent_flat_wins() {
        let sent = r#"{"a__b":"sent","a":{"b":"nested","c":1}}"#;
        assert_eq!(
            after("property-flattener", &json!({}), sent).unwrap(),
            r#"{"a__b":"sent","a__c":1}"#
        );
    }

    #[test]
    fn what_is_flat_or_ours_stays() {
        assert_same(
            "property-flattener",
            &json!({}),
            &[
                "{}",
                r#"{ "a": 1, "b": [{"c": {}}], "d": null }"#,
                r#"{"$groups": {"a": {"b": 1}}, "e": {}}"#,
            ],
        );
    }

    #[test]
    fn what_would_grow_too_large_stays() {
        let many: Vec<String> = (0..10_001).map(|number| format!(r#""{number}":1"#)).collect();
        let long = "x".repeat(200_000);
        assert_same(
            "property-flattener",
            &json!({}),
            &[
                &format!(r#"{{"a":{{{}}}}}"#, many.join(",")),
                &format!(r#"{{"{long}":{{"a":1,"b":2}}}}"#),
            ],
        );
    }

    #[test]
    fn faults() {
        assert_eq!(fault("property-flattener", &json!({"separator": ""})).0, "separator");
        assert_eq!(fault("property-flattener", &json!({"separator": "123456789"})).0, "separator");
    }
}
