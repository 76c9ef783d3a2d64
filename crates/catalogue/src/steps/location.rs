//! Adds the location of the IP address of an event.

use std::sync::Arc;

use crate::config::{Config, ConfigError};
use crate::entry::{Code, Direction, Entry, Item, Native, Step, StepDependencies};
use crate::event::{Flow, Object, StepEvent};
use crate::locate::{Locate, Precision};

pub(crate) const ENTRY: Entry = Entry {
    id: "location",
    name: "Location",
    description: "Adds city, country and position of the IP address to events and persons.",
    icon: Some("plus"),
    direction: Direction::In,
    items: &[
        Item::choice(
            "precision",
            "Precision",
            Precision::WORDS,
            "exact",
            "How exact the location may be.",
        ),
        Item::text(
            "skipLibraries",
            "Libraries to skip",
            "Values of $lib, separated by commas. Libraries of servers send the \
             server's address.",
        ),
    ],
    code: Code::Native(Native(make)),
};

fn make(
    config: &Config<'_>,
    dependencies: &StepDependencies,
) -> Result<Box<dyn Step>, ConfigError> {
    let precision = Precision::of(&config.needed("precision")?)
        .ok_or_else(|| ConfigError::new("precision", "This is none of the choices."))?;
    let skipped = config.list("skipLibraries")?;
    Ok(Box::new(Location { precision, skipped, locate: dependencies.locate.clone() }))
}

struct Location {
    precision: Precision,
    skipped: Vec<String>,
    locate: Option<Arc<dyn Locate>>,
}

impl Step for Location {
    fn apply(&self, event: &mut StepEvent<'_>) -> Flow {
        let Some(locate) = &self.locate else { return Flow::Keep };
        let properties = event.properties();
        if is_disabled(properties) || self.skips(properties) {
            return Flow::Keep;
        }
        let Some(address) = event.address().and_then(|text| text.trim().parse().ok()) else {
            return Flow::Keep;
        };
        let mut location = locate.locate(address);
        location.retain(|(part, _)| self.precision.shows(part));
        if location.is_empty() {
            return Flow::Keep;
        }
        let properties = event.properties_mut();
        for (part, json) in &location {
            properties.set_raw(&format!("$geoip_{part}"), json.clone());
        }
        let person = properties.child_or_new("$set");
        for (part, json) in &location {
            person.set_raw(&format!("$geoip_{part}"), json.clone());
        }
        let person = properties.child_or_new("$set_once");
        for (part, json) in location {
            person.set_raw(&format!("$initial_geoip_{part}"), json);
        }
        Flow::Keep
    }
}

impl Location {
    fn skips(&self, properties: &Object<'_>) -> bool {
        properties.text("$lib").is_some_and(|lib| self.skipped.iter().any(|name| *name == lib))
    }
}

fn is_disabled(properties: &Object<'_>) -> bool {
    properties.raw("$geoip_disable").is_some_and(|value| value == "true" || value == "\"true\"")
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::sync::Arc;

    use serde_json::{Value, json};
    use weir_model::time::Timestamp;

    use crate::entry::StepDependencies;
    use crate::event::{Flow, StepEvent};
    use crate::locate::Locate;
    use crate::testing::{assert_same, fault, step_with};

    struct Locations;

    impl Locate for Locations {
        fn locate(&self, address: IpAddr) -> Vec<(&'static str, String)> {
            if address.to_string() != "203.0.113.7" {
                return Vec::new();
            }
            vec![
                ("city_name", "\"Weirhaven\"".to_owned()),
                ("country_code", "\"WR\"".to_owned()),
                ("subdivision_1_code", "\"UW\"".to_owned()),
                ("latitude", "53.25".to_owned()),
            ]
        }
    }

    fn located(config: Value, ip: Option<&str>, properties: &str) -> (Value, bool) {
        let dependencies = StepDependencies { locate: Some(Arc::new(Locations)) };
        let step = step_with("location", &config, &dependencies).unwrap();
        let mut event = StepEvent::new("e", "d", ip, Timestamp::EPOCH, properties).unwrap();
        assert_eq!(step.apply(&mut event), Flow::Keep);
        (serde_json::from_str(&event.properties_text()).unwrap(), event.is_changed())
    }

    #[test]
    fn the_location_is_added_to_event_and_person() {
        let sent = r#"{"$ip": "203.0.113.7", "$set": {"a": 1}}"#;
        let expected = json!({
            "$ip": "203.0.113.7",
            "$geoip_city_name": "Weirhaven", "$geoip_country_code": "WR",
            "$geoip_subdivision_1_code": "UW", "$geoip_latitude": 53.25,
            "$set": {
                "a": 1,
                "$geoip_city_name": "Weirhaven", "$geoip_country_code": "WR",
                "$geoip_subdivision_1_code": "UW", "$geoip_latitude": 53.25,
            },
            "$set_once": {
                "$initial_geoip_city_name": "Weirhaven", "$initial_geoip_country_code": "WR",
                "$initial_geoip_subdivision_1_code": "UW", "$initial_geoip_latitude": 53.25,
            },
        });
        assert_eq!(located(json!({}), None, sent), (expected, true));
        let (beside, _) = located(json!({}), Some("203.0.113.7"), "{}");
        assert_eq!(beside["$geoip_country_code"], "WR");
    }

    #[test]
    fn it_may_be_less_exact() {
        let names = |precision: &str| {
            let config = json!({"precision": precision});
            let (found, _) = located(config, Some("203.0.113.7"), "{}");
            let names = found.as_object().unwrap().keys();
            names.filter(|name| name.starts_with("$geoip")).cloned().collect::<Vec<_>>()
        };
        assert_eq!(names("country"), ["$geoip_country_code"]);
        assert_eq!(names("region"), ["$geoip_country_code", "$geoip_subdivision_1_code"]);
        assert!(!names("city").contains(&"$geoip_latitude".to_owned()));
        assert_eq!(fault("location", &json!({"precision": "street"})).0, "precision");
    }

    #[test]
    fn events_without_a_location_are_unchanged() {
        let config = json!({"skipLibraries": "posthog-python, posthog-node"});
        for (ip, properties) in [
            (None, "{}"),
            (None, r#"{"$ip": null}"#),
            (None, r#"{"$ip": 7}"#),
            (None, r#"{"$ip": "nonsense"}"#),
            (None, r#"{"$ip": "2001:db8::1"}"#),
            (None, r#"{"$ip": "203.0.113.7", "$geoip_disable": true}"#),
            (None, r#"{"$ip": "203.0.113.7", "$lib": "posthog-node"}"#),
            // The address in the properties takes precedence.
            (Some("203.0.113.7"), r#"{"$ip": "198.51.100.1"}"#),
        ] {
            assert!(!located(config.clone(), ip, properties).1, "{properties}");
        }
        // Without a database.
        assert_same("location", &json!({}), &[r#"{"$ip": "203.0.113.7"}"#]);
    }
}
