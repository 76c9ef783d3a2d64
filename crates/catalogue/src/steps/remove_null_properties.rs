//! Removes properties without a value.

use crate::config::{Config, ConfigError};
use crate::entry::{Code, Direction, Entry, Item, Native, Step, StepDependencies};
use crate::event::{Flow, Object, StepEvent};

/// Maximum depth of nested objects that are searched.
const DEPTH: usize = 16;
/// Properties in which `null` has a special meaning.
const SPARED: [&str; 4] = ["$set", "$set_once", "$unset", "$groups"];

pub(crate) const ENTRY: Entry = Entry {
    id: "remove-null-properties",
    name: "Remove null properties",
    description: "Removes properties whose value is null.",
    icon: Some("drop"),
    direction: Direction::Filtering,
    items: &[
        Item::yes_no("nested", "In nested objects too", "Yes", "Lists are left as they are."),
        Item::yes_no("emptyTexts", "Empty texts too", "No", "Whether \"\" is removed as well."),
        Item::yes_no(
            "includeSetProperties",
            "Properties of persons too",
            "No",
            "Whether nulls in $set and $set_once are removed. Otherwise they clear the property.",
        ),
    ],
    code: Code::Native(Native(make)),
};

fn make(config: &Config<'_>, _: &StepDependencies) -> Result<Box<dyn Step>, ConfigError> {
    Ok(Box::new(RemoveNull {
        nested: config.yes("nested")?,
        texts: config.yes("emptyTexts")?,
        of_person: config.yes("includeSetProperties")?,
    }))
}

struct RemoveNull {
    nested: bool,
    texts: bool,
    of_person: bool,
}

impl Step for RemoveNull {
    fn apply(&self, event: &mut StepEvent<'_>) -> Flow {
        let properties = event.properties_mut();
        self.clean(properties, 0);
        if self.of_person {
            for name in super::OF_PERSON {
                if let Some(person) = properties.child(name) {
                    self.clean(person, 1);
                }
            }
        }
        Flow::Keep
    }
}

impl RemoveNull {
    fn clean(&self, object: &mut Object<'_>, depth: usize) {
        object.retain(|_, json| json != "null" && !(self.texts && json == "\"\""));
        if self.nested && depth < DEPTH {
            object.children(|name, child| {
                if depth > 0 || !SPARED.contains(&name) {
                    self.clean(child, depth + 1);
                }
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::{after, assert_same, fault};

    #[test]
    fn nulls_are_removed() {
        let sent = r#"{"a":null,"b":{"c":null,"ü":{"d":null}},"e":"","f":[null],"$set":{"g":null},"n":12345678901234567890}"#;
        assert_eq!(
            after("remove-null-properties", &json!({}), sent).unwrap(),
            r#"{"b":{"ü":{}},"e":"","f":[null],"$set":{"g":null},"n":12345678901234567890}"#
        );
        let config = json!({"nested": "No", "emptyTexts": "Yes", "includeSetProperties": "Yes"});
        assert_eq!(
            after("remove-null-properties", &config, sent).unwrap(),
            r#"{"b":{"c":null,"ü":{"d":null}},"f":[null],"$set":{},"n":12345678901234567890}"#
        );
    }

    #[test]
    fn other_values_stay() {
        assert_same(
            "remove-null-properties",
            &json!({}),
            &[
                "{}",
                r#"{ "a": "null", "b": 0, "c": false, "d": {}, "e": [] }"#,
                r#"{"$groups": {"a": null}}"#,
            ],
        );
    }

    #[test]
    fn deep_objects_end() {
        let deep = format!("{}null{}", r#"{"a":"#.repeat(60), "}".repeat(60));
        assert_same("remove-null-properties", &json!({}), &[&deep]);
    }

    #[test]
    fn faults() {
        assert_eq!(fault("remove-null-properties", &json!({"nested": "Perhaps"})).0, "nested");
    }
}
