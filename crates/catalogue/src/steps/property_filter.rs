//! Removes properties.

use super::OF_PERSON;
use crate::config::{Config, ConfigError};
use crate::entry::{Code, Direction, Entry, Item, Native, Step, StepDependencies};
use crate::event::{Flow, StepEvent};

pub(crate) const ENTRY: Entry = Entry {
    id: "property-filter",
    name: "Property filter",
    description: "Removes properties from events.",
    icon: Some("drop"),
    direction: Direction::Filtering,
    items: &[
        Item::text(
            "properties",
            "Properties",
            "Names or dotted paths, separated by commas, as in $ip, $set.email.",
        )
        .required(),
        Item::yes_no(
            "includeSetProperties",
            "Properties of persons too",
            "No",
            "The same names in $set and $set_once.",
        ),
    ],
    code: Code::Native(Native(make)),
};

fn make(config: &Config<'_>, _: &StepDependencies) -> Result<Box<dyn Step>, ConfigError> {
    let mut paths = config.needed_list("properties")?;
    if config.yes("includeSetProperties")? {
        for index in 0..paths.len() {
            for name in OF_PERSON {
                paths.push(format!("{name}.{}", paths[index]));
            }
        }
    }
    Ok(Box::new(PropertyFilter { paths }))
}

struct PropertyFilter {
    paths: Vec<String>,
}

impl Step for PropertyFilter {
    fn apply(&self, event: &mut StepEvent<'_>) -> Flow {
        for path in &self.paths {
            if path == "$ip" {
                event.set_ip(None);
            }
            if let Some((holder, key)) = event.properties_mut().at(path) {
                holder.remove(key);
            }
        }
        Flow::Keep
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use weir_model::time::Timestamp;

    use crate::event::StepEvent;
    use crate::testing::{after, assert_same, fault, step};

    #[test]
    fn properties_are_removed() {
        let config = json!({"properties": "a, $set.email, b.c.d, ü"});
        let sent = r#"{"a":null,"$set":{"email":"x","n":12345678901234567890},"b":{"c":{"d":[1],"e":2}},"ü":1,"email":"y"}"#;
        assert_eq!(
            after("property-filter", &config, sent).unwrap(),
            r#"{"$set":{"n":12345678901234567890},"b":{"c":{"e":2}},"email":"y"}"#
        );
        let config = json!({"properties": ["email"], "includeSetProperties": "Yes"});
        assert_eq!(
            after(
                "property-filter",
                &config,
                r#"{"email":1,"$set":{"email":1},"$set_once":{"email":1}}"#
            )
            .unwrap(),
            r#"{"$set":{},"$set_once":{}}"#
        );
    }

    #[test]
    fn the_address_is_removed_from_event_and_person() {
        let step = step("property-filter", &json!({"properties": "$ip"})).unwrap();
        let properties = r#"{"$ip":"203.0.113.9"}"#;
        let when = Timestamp::EPOCH;
        let mut event = StepEvent::new("e", "d", Some("203.0.113.9"), when, properties).unwrap();
        let _ = step.apply(&mut event);
        assert_eq!((event.ip(), event.properties_text().as_ref()), (None, "{}"));
    }

    #[test]
    fn what_is_not_there_changes_nothing() {
        assert_same(
            "property-filter",
            &json!({"properties": "a.b,c"}),
            &["{}", r#"{"a": null}"#, r#"{"a": [{"b": 1}], "b": 1}"#, r#"{"a": "b"}"#],
        );
    }

    #[test]
    fn an_empty_list_is_refused() {
        for config in [json!({}), json!({"properties": " , "}), json!({"properties": {}})] {
            assert_eq!(fault("property-filter", &config).0, "properties");
        }
    }
}
