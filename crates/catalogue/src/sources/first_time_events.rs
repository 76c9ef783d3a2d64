//! Marks first events. It is JavaScript because steps in Rust have no storage.

use crate::config::{Config, ConfigError};
use crate::entry::{Code, Direction, Entry, Item, Source, SourceFile};

pub(crate) const ENTRY: Entry = Entry {
    id: "first-time-events",
    name: "First time events",
    description: "Marks the first event with a name: in the project, and of each distinct id.",
    icon: Some("plus"),
    direction: Direction::In,
    items: &[Item::text("events", "Events", "Names, separated by commas.").required()],
    code: Code::Source(Source {
        files: &[SourceFile {
            name: "index.ts",
            text: include_str!("../../sources/first-time-events/index.ts"),
        }],
        methods: &["processEvent"],
        check,
    }),
};

fn check(config: &Config<'_>) -> Result<(), ConfigError> {
    config.needed_list("events").map(drop)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::sources::engine::Running;
    use crate::testing::fault;

    fn marks(running: &Running, event: &str, id: &str, uuid: &str) -> Value {
        let event =
            json!({"event": event, "distinct_id": id, "uuid": uuid, "properties": {"a": [null]}});
        running.call("processEvent", &event)["properties"].clone()
    }

    #[test]
    fn the_first_of_all_and_of_each_id_is_marked() {
        let running = Running::new("first-time-events", &json!({"events": "signup, Käufe"}));
        for (event, id, uuid, ever, for_user) in [
            ("signup", "a", "1", true, true),
            ("signup", "a", "2", false, false),
            ("signup", "ü", "3", false, true),
            ("Käufe", "a", "4", true, true),
            // A retry after a failure.
            ("signup", "a", "1", true, true),
        ] {
            assert_eq!(
                marks(&running, event, id, uuid),
                json!({"a": [null], "is_event_first_ever": ever, "is_event_first_for_user": for_user}),
                "{uuid}"
            );
        }
        assert_eq!(marks(&running, "other", "a", "5"), json!({"a": [null]}));
        let without_properties =
            json!({"event": "signup", "distinct_id": "b", "uuid": "6", "properties": null});
        assert_eq!(running.call("processEvent", &without_properties), without_properties);
    }

    #[test]
    fn a_mark_that_cannot_be_stored_is_missing() {
        let running = Running::new("first-time-events", &json!({"events": "signup"}));
        marks(&running, "signup", "first", "0");
        // The mark of the project is stored already, so it is known.
        let only_project = json!({"a": [null], "is_event_first_ever": false});
        let too_long_for_a_key = "x".repeat(200);
        assert_eq!(marks(&running, "signup", &too_long_for_a_key, "1"), only_project);
        // The storage has room for 1,000 keys. The project and `first` have one each.
        for n in 1..999 {
            let found = marks(&running, "signup", &n.to_string(), &format!("u{n}"));
            assert_eq!(found["is_event_first_for_user"], true, "{n}");
        }
        assert_eq!(marks(&running, "signup", "one more", "2"), only_project);
        // Known values are kept.
        assert_eq!(marks(&running, "signup", "first", "3")["is_event_first_for_user"], false);
    }

    #[test]
    fn faults() {
        assert_eq!(fault("first-time-events", &json!({"events": ""})).0, "events");
    }
}
