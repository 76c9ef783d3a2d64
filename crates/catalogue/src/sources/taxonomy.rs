//! Converts the names of events to one style, and those of properties if the config says so.

use crate::config::{Config, ConfigError};
use crate::entry::{Code, Direction, Entry, Item, Source, SourceFile};

pub(crate) const ENTRY: Entry = Entry {
    id: "taxonomy",
    name: "Taxonomy standardiser",
    description: "Writes names of events in one style, so that the same event has one name.",
    icon: Some("alter"),
    direction: Direction::Filtering,
    items: &[
        Item::choice("style", "Style", STYLES, "snake_case", "How names are written."),
        Item::yes_no(
            "renameProperties",
            "Properties too",
            "No",
            "Whether their names are changed as well.",
        ),
    ],
    code: Code::Source(Source {
        files: &[SourceFile {
            name: "index.ts",
            text: include_str!("../../sources/taxonomy/index.ts"),
        }],
        methods: &["processEvent"],
        check,
    }),
};

const STYLES: &[&str] =
    &["snake_case", "kebab-case", "camelCase", "PascalCase", "Title Case", "lower case"];

fn check(config: &Config<'_>) -> Result<(), ConfigError> {
    if !STYLES.contains(&config.needed("style")?.as_str()) {
        return Err(ConfigError::new(
            "style",
            format!("This must be one of {}.", STYLES.join(", ")),
        ));
    }
    config.yes("renameProperties").map(drop)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::STYLES;
    use crate::sources::engine::Running;
    use crate::testing::fault;

    #[test]
    fn every_style_has_one_name_for_the_same_event() {
        let expected = [
            "user_signed_up2",
            "user-signed-up2",
            "userSignedUp2",
            "UserSignedUp2",
            "User Signed Up2",
            "user signed up2",
        ];
        for (style, expected) in STYLES.iter().zip(expected) {
            let running = Running::new("taxonomy", &json!({"style": style}));
            for name in
                ["userSignedUp2", "User signed-up2", "USER_SIGNED_UP2", " user__Signed up2 "]
            {
                let event = running.call("processEvent", &json!({"event": name}));
                assert_eq!(event["event"], expected, "{style} {name}");
            }
        }
    }

    #[test]
    fn unicode_and_names_that_client_libraries_define() {
        let running = Running::new("taxonomy", &json!({"style": "snake_case"}));
        for (name, expected) in [
            ("ÜberSicht Öffnen", "über_sicht_öffnen"),
            ("HTTPRequest", "http_request"),
            ("$pageview", "$pageview"),
            ("$CamelCase", "$CamelCase"),
            ("__", "__"),
            ("日本", "日本"),
        ] {
            let event = running.call("processEvent", &json!({"event": name}));
            assert_eq!(event["event"], expected);
        }
    }

    #[test]
    fn a_property_keeps_its_name_if_the_new_one_is_taken() {
        let running =
            Running::new("taxonomy", &json!({"style": "snake_case", "renameProperties": "Yes"}));
        let sent = json!({"event": "e", "properties": {"planName": {"innerName": 1}, "plan_name": 2, "$libX": 3, "aB": null}});
        assert_eq!(
            running.call("processEvent", &sent)["properties"],
            json!({"planName": {"innerName": 1}, "plan_name": 2, "$libX": 3, "a_b": null})
        );
    }

    #[test]
    fn names_with_a_meaning_in_javascript_are_names() {
        let config = json!({"style": "snake_case", "renameProperties": "Yes"});
        let sent = json!({"event": "constructor", "properties": {"__proto__": 1, "proto": 2}});
        assert_eq!(Running::new("taxonomy", &config).call("processEvent", &sent), sent);
    }

    #[test]
    fn faults() {
        assert_eq!(fault("taxonomy", &json!({"style": "loud"})).0, "style");
    }
}
