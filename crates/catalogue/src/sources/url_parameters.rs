//! Copies URL parameters into properties.

use crate::config::{Config, ConfigError};
use crate::entry::{Code, Direction, Entry, Item, Source, SourceFile};

pub(crate) const ENTRY: Entry = Entry {
    id: "url-parameters",
    name: "URL parameters to properties",
    description: "Copies chosen parameters of the page's address into properties.",
    icon: Some("plus"),
    direction: Direction::In,
    items: &[
        Item::text("parameters", "Parameters", "Names, separated by commas.").required(),
        Item::text("urlProperty", "Property of the address", "The property with the URL.")
            .or("$current_url"),
        Item::text("prefix", "Prefix", "The beginning of the names of the properties."),
        Item::yes_no("ignoreCase", "Ignore upper and lower case", "No", "For names of parameters."),
        Item::yes_no("setPerson", "Set at the person too", "No", "In $set, under the same name."),
        Item::yes_no(
            "setInitial",
            "Keep the first one at the person",
            "No",
            "In $set_once, with initial_ before the name.",
        ),
    ],
    code: Code::Source(Source {
        files: &[SourceFile {
            name: "index.ts",
            text: include_str!("../../sources/url-parameters/index.ts"),
        }],
        methods: &["processEvent"],
        check,
    }),
};

fn check(config: &Config<'_>) -> Result<(), ConfigError> {
    config.needed_list("parameters")?;
    for key in ["urlProperty", "prefix"] {
        config.text(key)?;
    }
    for key in ["ignoreCase", "setPerson", "setInitial"] {
        config.yes(key)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::sources::engine::Running;
    use crate::testing::fault;

    fn after(config: &Value, properties: Value) -> Value {
        let event = json!({"event": "e", "properties": properties});
        Running::new("url-parameters", config).call("processEvent", &event)["properties"].clone()
    }

    #[test]
    fn parameters_become_properties() {
        let config = json!({"parameters": "ref, plän,none"});
        let url = "https://e.org/?ref=a%20b+c&pl%C3%A4n=%zz&other=1&Ref=2#ref=3";
        assert_eq!(
            after(&config, json!({"$current_url": url})),
            json!({"$current_url": url, "ref": "a b c", "plän": "%zz"})
        );
        let config = json!({
            "parameters": "ref", "urlProperty": "u", "prefix": "p_", "ignoreCase": "Yes",
            "setPerson": "Yes", "setInitial": "Yes",
        });
        assert_eq!(
            after(&config, json!({"u": "?REF=1", "$set": {"a": 1}})),
            json!({
                "u": "?REF=1", "p_ref": "1", "$set": {"a": 1, "p_ref": "1"},
                "$set_once": {"initial_p_ref": "1"},
            })
        );
    }

    #[test]
    fn other_values_stay() {
        let config = json!({"parameters": "a"});
        for properties in [
            json!(null),
            json!({}),
            json!({"$current_url": null}),
            json!({"$current_url": ["?a=1"]}),
            json!({"$current_url": "https://e.org/a=1"}),
            json!({"$current_url": "https://e.org/?a&b=1"}),
        ] {
            assert_eq!(after(&config, properties.clone()), properties);
        }
    }

    #[test]
    fn faults() {
        assert_eq!(fault("url-parameters", &json!({"parameters": ","})).0, "parameters");
        assert_eq!(
            fault("url-parameters", &json!({"parameters": "a", "setPerson": 1})).0,
            "setPerson"
        );
    }
}
