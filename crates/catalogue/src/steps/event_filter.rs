//! Keeps or drops events only by their names.

use std::collections::HashSet;

use crate::config::{Config, ConfigError};
use crate::entry::{Code, Direction, Entry, Item, Native, Step, StepDependencies};
use crate::event::{Flow, StepEvent};

pub(crate) const ENTRY: Entry = Entry {
    id: "event-filter",
    name: "Event filter",
    description: "Keeps only events with certain names, or drops those.",
    icon: Some("drop"),
    direction: Direction::Filtering,
    items: &[
        Item::text(
            "events",
            "Events",
            "Names, separated by commas. A name that ends with * stands for all that \
             begin so.",
        )
        .required(),
        Item::choice(
            "mode",
            "What happens to them",
            &["keep", "drop"],
            "keep",
            "Others are treated the other way.",
        ),
        Item::yes_no(
            "keepPersons",
            "Always keep events about persons",
            "Yes",
            "Events that identify, merge or describe persons and groups: without them Weir cannot merge people.",
        ),
    ],
    code: Code::Native(Native(make)),
};

/// Events that define persons and groups.
const OF_PERSONS: [&str; 6] =
    ["$identify", "$create_alias", "$merge_dangerously", "$set", "$groupidentify", "$unset"];

fn make(config: &Config<'_>, _: &StepDependencies) -> Result<Box<dyn Step>, ConfigError> {
    let names = config.needed_list("events")?;
    let (beginnings, names): (Vec<_>, Vec<_>) =
        names.into_iter().partition(|name| name.ends_with('*'));
    if beginnings.iter().any(|name| name.trim_end_matches('*').is_empty()) {
        return Err(ConfigError::new("events", "\"*\" alone would match all events."));
    }
    let keeps = match config.needed("mode")?.as_str() {
        "keep" => true,
        "drop" => false,
        _ => return Err(ConfigError::new("mode", "This must be \"keep\" or \"drop\".")),
    };
    Ok(Box::new(EventFilter {
        names: names.into_iter().collect(),
        beginnings: beginnings.iter().map(|name| name.trim_end_matches('*').to_owned()).collect(),
        keeps,
        spares_persons: config.yes("keepPersons")?,
    }))
}

struct EventFilter {
    names: HashSet<String>,
    beginnings: Vec<String>,
    keeps: bool,
    spares_persons: bool,
}

impl Step for EventFilter {
    fn apply(&self, event: &mut StepEvent<'_>) -> Flow {
        let name = event.name();
        let is_named = self.names.contains(name)
            || self.beginnings.iter().any(|beginning| name.starts_with(beginning));
        let is_spared = self.spares_persons && OF_PERSONS.contains(&name);
        if is_named == self.keeps || is_spared { Flow::Keep } else { Flow::Drop }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::testing::{after_named, fault};

    fn keeps(config: &Value, name: &str) -> bool {
        let sent = r#"{"n": 12345678901234567890}"#;
        let after = after_named("event-filter", config, name, sent);
        assert!(after.as_deref().is_none_or(|text| text == sent));
        after.is_some()
    }

    #[test]
    fn names_are_kept_or_dropped() {
        let config = json!({"events": "signup, Käufe, app_*"});
        for name in ["signup", "Käufe", "app_", "app_opened", "$identify"] {
            assert!(keeps(&config, name), "{name}");
        }
        for name in ["Signup", "käufe", "signups", "ap", "*", "$pageview"] {
            assert!(!keeps(&config, name), "{name}");
        }
        let config = json!({"events": ["$pageview", "$set"], "mode": "drop", "keepPersons": "No"});
        assert!(!keeps(&config, "$pageview"));
        assert!(!keeps(&config, "$set"));
        assert!(keeps(&config, "signup"));
    }

    #[test]
    fn faults() {
        for events in [json!(null), json!(""), json!(","), json!("*"), json!("a,**"), json!(7)] {
            let key = fault("event-filter", &json!({"events": events})).0;
            assert_eq!(key, "events", "{events}");
        }
        assert_eq!(fault("event-filter", &json!({"events": "a", "mode": "x"})).0, "mode");
    }
}
