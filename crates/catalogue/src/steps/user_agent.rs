//! Adds browser, system and device from the user agent.

use weir_json::quoted;

use crate::config::{Config, ConfigError};
use crate::entry::{Code, Direction, Entry, Item, Native, Step, StepDependencies};
use crate::event::{Flow, StepEvent};
use crate::user_agents::UserAgent;

/// Maximum bytes of a user agent that is parsed.
const LENGTH_MAX: usize = 4096;

pub(crate) const ENTRY: Entry = Entry {
    id: "user-agent",
    name: "User agent",
    description: "Adds browser, system and kind of device from the user agent.",
    icon: Some("plus"),
    direction: Direction::In,
    items: &[
        Item::text("property", "Property of the user agent", "A name or a dotted path.")
            .or("$raw_user_agent")
            .required(),
        Item::yes_no(
            "overwrite",
            "Replace what is there",
            "No",
            "Whether values that the library has sent are replaced.",
        ),
        Item::yes_no(
            "removeSource",
            "Remove the user agent",
            "No",
            "Whether the property itself is removed.",
        ),
    ],
    code: Code::Native(Native(make)),
};

fn make(config: &Config<'_>, _: &StepDependencies) -> Result<Box<dyn Step>, ConfigError> {
    Ok(Box::new(Parse {
        property: config.needed("property")?,
        overwrites: config.yes("overwrite")?,
        removes: config.yes("removeSource")?,
    }))
}

struct Parse {
    property: String,
    overwrites: bool,
    removes: bool,
}

impl Step for Parse {
    fn apply(&self, event: &mut StepEvent<'_>) -> Flow {
        let properties = event.properties_mut();
        let Some((holder, key)) = properties.at(&self.property) else { return Flow::Keep };
        let Some(found) = holder
            .text(key)
            .filter(|text| text.len() <= LENGTH_MAX)
            .map(|text| UserAgent::of(&text))
        else {
            return Flow::Keep;
        };
        if self.removes {
            holder.remove(key);
        }
        for (name, json) in [
            ("$browser", found.browser.map(quoted)),
            ("$browser_version", found.browser_version.map(|version| version.to_string())),
            ("$os", found.os.map(quoted)),
            ("$os_version", found.os_version.as_deref().map(quoted)),
            ("$device", found.device.map(quoted)),
            ("$device_type", found.device_type.map(quoted)),
        ] {
            let is_free = properties.raw(name).is_none_or(|value| value == "null");
            if let Some(json) = json.filter(|_| self.overwrites || is_free) {
                properties.set_raw(name, json);
            }
        }
        Flow::Keep
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::{after, assert_same, fault};

    const FIREFOX: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:121.0) Gecko/20100101 Firefox/121.0";

    #[test]
    fn what_is_known_is_added() {
        let sent = format!(
            r#"{{"n":12345678901234567890,"$raw_user_agent":"{FIREFOX}","$os":"mine","$device_type":null}}"#
        );
        assert_eq!(
            after("user-agent", &json!({}), &sent).unwrap(),
            format!(
                r#"{{"n":12345678901234567890,"$raw_user_agent":"{FIREFOX}","$os":"mine","$device_type":"Desktop","$browser":"Firefox","$browser_version":121}}"#
            )
        );
        let config = json!({"property": "http.agent", "overwrite": "Yes", "removeSource": "Yes"});
        assert_eq!(
            after(
                "user-agent",
                &config,
                &format!(r#"{{"http":{{"agent":"{FIREFOX}"}},"$os":"mine"}}"#)
            )
            .unwrap(),
            r#"{"http":{},"$os":"Linux","$browser":"Firefox","$browser_version":121,"$device_type":"Desktop"}"#
        );
    }

    #[test]
    fn what_is_not_known_stays() {
        let long = format!(r#"{{"$raw_user_agent": "{} Firefox/1.0"}}"#, "x".repeat(5000));
        assert_same(
            "user-agent",
            &json!({}),
            &[
                "{}",
                r#"{"$raw_user_agent": null}"#,
                r#"{"$raw_user_agent": ["Firefox/1.0"]}"#,
                r#"{"$raw_user_agent": "ünknown"}"#,
                &long,
            ],
        );
    }

    #[test]
    fn faults() {
        assert_eq!(fault("user-agent", &json!({"property": " "})).0, "property");
        assert_eq!(fault("user-agent", &json!({"overwrite": 1})).0, "overwrite");
    }
}
