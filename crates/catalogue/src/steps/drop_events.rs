//! Drops events that match a filter.

use serde_json::Value;

use crate::conditions::{Condition, Outcome};
use crate::config::{Config, ConfigError, shown};
use crate::entry::{Code, Direction, Entry, Item, Native, Step, StepDependencies};
use crate::event::{Flow, StepEvent};

const FILTER: &str = "filter";

pub(crate) const ENTRY: Entry = Entry {
    id: "drop-events",
    name: "Drop events",
    description: "Drops events by name and by conditions on their properties.",
    icon: Some("drop"),
    direction: Direction::Filtering,
    items: &[Item::json(
        FILTER,
        "Filter",
        "An object with \"events\", a list of names, and \"properties\", a list of conditions. \
         Events that have one of the names and meet all conditions are dropped.",
    )
    .required()],
    code: Code::Native(Native(make)),
};

fn make(config: &Config<'_>, _: &StepDependencies) -> Result<Box<dyn Step>, ConfigError> {
    let wrong = |text: &str| ConfigError::new(FILTER, text);
    let Some(Value::Object(filter)) = config.json(FILTER)? else {
        return Err(wrong("This must be an object with \"events\" or \"properties\"."));
    };
    if let Some(name) =
        filter.keys().find(|name| !["events", "properties"].contains(&name.as_str()))
    {
        return Err(wrong(&format!("{} means nothing here.", shown(name))));
    }
    let names = match filter.get("events") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(names)) => names
            .iter()
            .map(|name| name.as_str().filter(|name| !name.is_empty()).map(str::to_owned))
            .collect::<Option<_>>()
            .ok_or_else(|| wrong("\"events\" must be a list of names."))?,
        Some(_) => return Err(wrong("\"events\" must be a list of names.")),
    };
    let conditions = match filter.get("properties") {
        None | Some(Value::Null) => Vec::new(),
        Some(sent) => Condition::list(FILTER, sent)?,
    };
    if names.is_empty() && conditions.is_empty() {
        return Err(wrong("An empty filter would drop every event."));
    }
    Ok(Box::new(DropEvents { names, conditions }))
}

struct DropEvents {
    /// Empty: all names.
    names: Vec<String>,
    conditions: Vec<Condition>,
}

impl Step for DropEvents {
    fn apply(&self, event: &mut StepEvent<'_>) -> Flow {
        if !self.names.is_empty() && !self.names.iter().any(|name| name == event.name()) {
            return Flow::Keep;
        }
        let properties = event.properties_mut();
        let met = self.conditions.iter().all(|condition| condition.of(properties) == Outcome::True);
        if met { Flow::Drop } else { Flow::Keep }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::{after_named, assert_same, fault};

    #[test]
    fn name_and_all_conditions_must_be_met() {
        let config = json!({"filter": {
            "events": ["debug", "größe"],
            "properties": [
                {"property": "app.stage", "operator": "is_not", "value": "live"},
                {"property": "n", "operator": "gt", "value": 3},
            ],
        }});
        let is_dropped =
            |name: &str, sent: &str| after_named("drop-events", &config, name, sent).is_none();
        assert!(is_dropped("debug", r#"{"app": {"stage": "test"}, "n": 4}"#));
        assert!(is_dropped("größe", r#"{"app.stage": ["live"], "n": 12345678901234567890}"#));
        assert!(!is_dropped("debug2", r#"{"app": {"stage": "test"}, "n": 4}"#));
        assert!(!is_dropped("debug", r#"{"app": {"stage": "live"}, "n": 4}"#));
        assert!(!is_dropped("debug", r#"{"app": {"stage": "test"}, "n": null}"#));
        // A missing property satisfies no condition.
        assert!(!is_dropped("debug", r#"{"n": 4}"#));
    }

    #[test]
    fn either_half_is_enough() {
        let by_name = json!({"filter": r#"{"events": ["debug"]}"#});
        assert_eq!(after_named("drop-events", &by_name, "debug", "{}"), None);
        assert_same("drop-events", &by_name, &[r#"{"n": 12345678901234567890}"#]);
        let by_property =
            json!({"filter": {"properties": [{"property": "a", "operator": "is_not_set"}]}});
        assert_eq!(after_named("drop-events", &by_property, "any", "{}"), None);
        assert_same("drop-events", &by_property, &[r#"{"a": 1}"#]);
    }

    #[test]
    fn an_empty_filter_is_refused() {
        for filter in [
            json!(null),
            json!(""),
            json!({}),
            json!("{}"),
            json!([]),
            json!({"events": [], "properties": []}),
            json!({"events": [""]}),
            json!({"events": "debug"}),
            json!({"event": ["debug"]}),
            json!({"properties": [{}]}),
            json!("{"),
        ] {
            let (key, message) = fault("drop-events", &json!({"filter": filter}));
            assert!(key == "filter" && !message.is_empty(), "{filter}");
        }
        assert!(fault("drop-events", &json!({"filter": {}})).1.contains("every event"));
    }
}
