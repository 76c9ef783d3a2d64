//! Replaces values of URL parameters.

use std::collections::HashMap;

use serde_json::Value;

use super::with_person;
use crate::config::{Config, ConfigError};
use crate::entry::{Code, Direction, Entry, Item, Native, Step, StepDependencies};
use crate::event::{Flow, StepEvent};
use crate::urls::{Parts, parameter_name};

const PROPERTIES: &str = "urlProperties";

pub(crate) const ENTRY: Entry = Entry {
    id: "url-masking",
    name: "URL parameter masking",
    description: "Replaces values of chosen parameters in URLs, such as tokens and e-mail addresses.",
    icon: Some("alter"),
    direction: Direction::Filtering,
    items: &[
        Item::json(
            PROPERTIES,
            "Parameters by property",
            "An object: the name of a property, and the names of parameters in it.",
        )
        .or(r#"{"$current_url": "email, password, token, access_token, code", "$referrer": "email, password, token, access_token, code", "$initial_current_url": "email, password, token, access_token, code", "$initial_referrer": "email, password, token, access_token, code", "$session_entry_url": "email, password, token, access_token, code"}"#)
        .required(),
        Item::text("mask", "Replace with", "The text that replaces them.").or("[REDACTED]"),
    ],
    code: Code::Native(Native(make)),
};

fn make(config: &Config<'_>, _: &StepDependencies) -> Result<Box<dyn Step>, ConfigError> {
    let wrong = |text: &str| ConfigError::new(PROPERTIES, text);
    let Some(Value::Object(by_property)) = config.json(PROPERTIES)? else {
        return Err(wrong("This must be an object with names of parameters by property."));
    };
    let mut properties = HashMap::new();
    for (property, names) in by_property {
        let own = serde_json::Map::from_iter([(PROPERTIES.to_owned(), names)]);
        let names = Config::new(&own, &[]).needed_list(PROPERTIES)?;
        properties.insert(property, names.iter().map(|name| name.to_lowercase()).collect());
    }
    if properties.is_empty() {
        return Err(wrong("This must name at least one property."));
    }
    let mask = config.text("mask")?.unwrap_or_default();
    if mask.contains(['&', '#']) {
        return Err(ConfigError::new("mask", "This must not have & or # in it."));
    }
    Ok(Box::new(UrlMasking { properties, mask }))
}

struct UrlMasking {
    /// Parameters by property, in lower case.
    properties: HashMap<String, Vec<String>>,
    mask: String,
}

impl Step for UrlMasking {
    fn apply(&self, event: &mut StepEvent<'_>) -> Flow {
        with_person(event.properties_mut(), |object| {
            for (property, names) in &self.properties {
                let Some((holder, key)) = object.at(property) else { continue };
                if let Some(url) = holder.text(key).and_then(|url| self.masked(&url, names)) {
                    holder.set_text(key, &url);
                }
            }
        });
        Flow::Keep
    }
}

impl UrlMasking {
    fn masked(&self, url: &str, names: &[String]) -> Option<String> {
        let parts = Parts::of(url)?;
        let query = parts.query.map(|query| self.parameters(query, names));
        // Some sign-in pages put their answer behind the hash, and some apps have paths
        // with a query there.
        let fragment = parts.fragment.map(|fragment| match fragment.split_once('?') {
            Some((path, query)) => format!("{path}?{}", self.parameters(query, names)),
            None => self.parameters(fragment, names),
        });
        Some(parts.join(parts.path, query.as_deref(), fragment.as_deref()))
    }

    fn parameters(&self, query: &str, names: &[String]) -> String {
        let masked = |pair: &str| match pair.split_once('=') {
            Some((name, value))
                if !value.is_empty() && names.contains(&parameter_name(name).to_lowercase()) =>
            {
                format!("{name}={}", self.mask)
            }
            _ => pair.to_owned(),
        };
        query.split('&').map(masked).collect::<Vec<_>>().join("&")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::testing::{after, assert_same, fault};

    fn masked(url: &str) -> String {
        let config = json!({"urlProperties": {"u": "token, E-Mail,ü"}});
        let found = after("url-masking", &config, &json!({"u": url}).to_string()).unwrap();
        let found: Value = serde_json::from_str(&found).unwrap();
        found["u"].as_str().unwrap().to_owned()
    }

    #[test]
    fn values_of_the_named_parameters_are_replaced() {
        for (url, expected) in [
            (
                "https://e.org/a?token=1&x=token=2&TOKEN=3&e%2Dmail=a%40b",
                "https://e.org/a?token=[REDACTED]&x=token=2&TOKEN=[REDACTED]&e%2Dmail=[REDACTED]",
            ),
            ("/a?%C3%BC=1#token=2&y=3", "/a?%C3%BC=[REDACTED]#token=[REDACTED]&y=3"),
            ("https://e.org/#/in?token=1", "https://e.org/#/in?token=[REDACTED]"),
            ("https://e.org/a?token&token=&b=1", "https://e.org/a?token&token=&b=1"),
            ("no url?token=1", "no url?token=1"),
        ] {
            assert_eq!(masked(url), expected);
        }
    }

    #[test]
    fn there_are_defaults_and_persons() {
        let sent = r#"{"n":12345678901234567890,"$current_url":"https://e.org/?password=x","$set_once":{"$initial_current_url":"https://e.org/?email=x"}}"#;
        assert_eq!(
            after("url-masking", &json!({"mask": "…"}), sent).unwrap(),
            r#"{"n":12345678901234567890,"$current_url":"https://e.org/?password=…","$set_once":{"$initial_current_url":"https://e.org/?email=…"}}"#
        );
    }

    #[test]
    fn other_values_stay() {
        assert_same(
            "url-masking",
            &json!({}),
            &[
                "{}",
                r#"{"$current_url": null, "$referrer": {"token": 1}}"#,
                r#"{"$current_url": ["https://e.org/?token=1"]}"#,
                r#"{"$current_url": "https:\/\/e.org/?a=1"}"#,
            ],
        );
    }

    #[test]
    fn faults() {
        for config in [
            json!({"urlProperties": "{"}),
            json!({"urlProperties": "[]"}),
            json!({"urlProperties": {}}),
            json!({"urlProperties": {"a": ""}}),
            json!({"urlProperties": {"a": [1]}}),
            json!({"urlProperties": ""}),
        ] {
            assert_eq!(fault("url-masking", &config).0, "urlProperties", "{config}");
        }
        assert_eq!(fault("url-masking", &json!({"mask": "a&b"})).0, "mask");
    }
}
