//! Keeps events whose properties satisfy conditions, and drops all others.
//!
//! Accepts configs of the well-known plugin of this name: a list of conditions that must
//! all be true, or a list of such lists of which one must be true.

use serde_json::Value;

use crate::conditions::{Condition, Outcome};
use crate::config::{Config, ConfigError};
use crate::entry::{Code, Direction, Entry, Item, Native, Step, StepDependencies};
use crate::event::{Flow, StepEvent};

const FILTERS: &str = "filters";
/// Maximum lists of conditions.
const GROUPS_MAX: usize = 10;

pub(crate) const ENTRY: Entry = Entry {
    id: "filter-out",
    name: "Filter out",
    description: "Drops events whose properties do not meet conditions.",
    icon: Some("drop"),
    direction: Direction::Filtering,
    items: &[
        Item::json(
            FILTERS,
            "Conditions for keeping",
            "A list of conditions, all of which must be met; or a list of such lists, one of \
             which must be met as a whole.",
        ),
        Item::text("eventsToDrop", "Events to drop", "Names, separated by commas."),
        Item::yes_no(
            "keepUndefinedProperties",
            "Missing properties meet conditions",
            "No",
            "Whether a condition on a property that is not there counts as met.",
        ),
    ],
    code: Code::Native(Native(make)),
};

fn make(config: &Config<'_>, _: &StepDependencies) -> Result<Box<dyn Step>, ConfigError> {
    let groups = match config.json(FILTERS)? {
        None => Vec::new(),
        Some(Value::Array(groups)) if groups.iter().any(Value::is_array) => groups
            .iter()
            .map(|group| match Condition::list(FILTERS, group)? {
                group if group.is_empty() => {
                    Err(ConfigError::new(FILTERS, "An empty list would keep every event."))
                }
                group => Ok(group),
            })
            .collect::<Result<_, _>>()?,
        Some(list) => match Condition::list(FILTERS, &list)? {
            group if group.is_empty() => Vec::new(),
            group => vec![group],
        },
    };
    if groups.len() > GROUPS_MAX {
        return Err(ConfigError::new(FILTERS, format!("At most {GROUPS_MAX} lists are possible.")));
    }
    let names = config.list("eventsToDrop")?;
    if groups.is_empty() && names.is_empty() {
        return Err(ConfigError::new(FILTERS, "There must be a condition or an event to drop."));
    }
    let missing_is_met = config.yes("keepUndefinedProperties")?;
    Ok(Box::new(FilterOut { groups, names, missing_is_met }))
}

struct FilterOut {
    /// Empty: all events are kept.
    groups: Vec<Vec<Condition>>,
    names: Vec<String>,
    missing_is_met: bool,
}

impl Step for FilterOut {
    fn apply(&self, event: &mut StepEvent<'_>) -> Flow {
        if self.names.iter().any(|name| name == event.name()) {
            return Flow::Drop;
        }
        let properties = event.properties_mut();
        let mut is_met = |condition: &Condition| match condition.of(properties) {
            Outcome::True => true,
            Outcome::False => false,
            Outcome::Missing => self.missing_is_met,
        };
        let is_kept =
            self.groups.is_empty() || self.groups.iter().any(|group| group.iter().all(&mut is_met));
        if is_kept { Flow::Keep } else { Flow::Drop }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::testing::{after_named, fault};

    fn keeps(config: &Value, properties: &str) -> bool {
        after_named("filter-out", config, "e", properties).is_some()
    }

    #[test]
    fn all_conditions_of_a_list_must_be_met() {
        let filters = json!([
            {"property": "email", "type": "string", "operator": "not_contains", "value": "@ours.org"},
            {"property": "n", "type": "number", "operator": "gte", "value": 18},
        ]);
        for filters in [filters.clone(), json!(filters.to_string()), json!([filters])] {
            let config = json!({"filters": filters});
            assert!(keeps(&config, r#"{"email": "ä@e.org", "n": 12345678901234567890}"#));
            assert!(!keeps(&config, r#"{"email": "a@ours.org", "n": 18}"#));
            assert!(!keeps(&config, r#"{"email": "a@e.org", "n": 17}"#));
            assert!(!keeps(&config, r#"{"email": "a@e.org", "n": null}"#));
            assert!(!keeps(&config, r#"{"n": 18}"#));
            assert!(!keeps(&config, "{}"));
        }
    }

    #[test]
    fn of_several_lists_one_is_enough() {
        let config = json!({"filters": [
            [{"property": "a", "operator": "is", "value": true}],
            [{"property": "b.c", "operator": "is", "value": "x"}],
        ]});
        assert!(keeps(&config, r#"{"a": true}"#));
        assert!(keeps(&config, r#"{"a": false, "b": {"c": "x"}}"#));
        assert!(!keeps(&config, r#"{"a": "true", "b": {"c": ["x"]}}"#));
    }

    #[test]
    fn what_is_missing_may_count_as_met() {
        let config = json!({
            "filters": [{"property": "n", "operator": "lt", "value": 5}],
            "keepUndefinedProperties": "Yes",
        });
        assert!(keeps(&config, "{}"));
        assert!(!keeps(&config, r#"{"n": 5}"#));
    }

    #[test]
    fn names_are_dropped_first() {
        let config = json!({"eventsToDrop": "e, f"});
        assert!(!keeps(&config, "{}"));
        let sent = r#"{"n": 12345678901234567890}"#;
        assert_eq!(after_named("filter-out", &config, "g", sent).as_deref(), Some(sent));
    }

    #[test]
    fn faults() {
        for filters in [
            json!(null),
            json!([]),
            json!([[]]),
            json!({}),
            json!("x"),
            json!([{"property": "a", "operator": "is", "value": 1}, []]),
            json!([{"property": "a", "type": "number", "operator": "contains", "value": 1}]),
        ] {
            assert_eq!(fault("filter-out", &json!({"filters": filters})).0, "filters", "{filters}");
        }
    }
}
