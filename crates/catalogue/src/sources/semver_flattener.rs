//! Splits version numbers into parts.

use crate::config::{Config, ConfigError};
use crate::entry::{Code, Direction, Entry, Item, Source, SourceFile};

pub(crate) const ENTRY: Entry = Entry {
    id: "semver-flattener",
    name: "Semver flattener",
    description: "Splits versions such as 1.2.3-beta, so that you can compare their parts.",
    icon: Some("plus"),
    direction: Direction::In,
    items: &[Item::text("properties", "Properties", "Names, separated by commas.").required()],
    code: Code::Source(Source {
        files: &[SourceFile {
            name: "index.ts",
            text: include_str!("../../sources/semver-flattener/index.ts"),
        }],
        methods: &["processEvent"],
        check,
    }),
};

fn check(config: &Config<'_>) -> Result<(), ConfigError> {
    config.needed_list("properties").map(drop)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::sources::engine::Running;
    use crate::testing::fault;

    fn after(properties: Value) -> Value {
        let running = Running::new("semver-flattener", &json!({"properties": "v, app.v"}));
        let event = json!({"event": "e", "properties": properties});
        running.call("processEvent", &event)["properties"].clone()
    }

    #[test]
    fn versions_come_apart() {
        assert_eq!(
            after(json!({"v": "1.22.3-beta.4+build.5", "app.v": "v2.0"})),
            json!({
                "v": "1.22.3-beta.4+build.5", "v__major": 1, "v__minor": 22, "v__patch": 3,
                "v__prerelease": "beta.4", "v__build": "build.5",
                "app.v": "v2.0", "app.v__major": 2, "app.v__minor": 0,
            })
        );
    }

    #[test]
    fn other_values_stay() {
        for properties in [
            json!(null),
            json!({}),
            json!({"v": null}),
            json!({"v": 1.2}),
            json!({"v": ["1.2.3"]}),
            json!({"v": "1"}),
            json!({"v": "1.2.3.4"}),
            json!({"v": "12345678901234567890.1"}),
            json!({"v": "ünïcode"}),
            json!({"v": format!("1.2.3-{}", "a".repeat(5000))}),
        ] {
            assert_eq!(after(properties.clone()), properties);
        }
    }

    #[test]
    fn faults() {
        assert_eq!(fault("semver-flattener", &json!({})).0, "properties");
    }
}
