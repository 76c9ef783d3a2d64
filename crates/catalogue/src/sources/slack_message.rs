//! Sends messages to Slack, and to compatible services.

use super::destination_url;
use crate::config::{Config, ConfigError};
use crate::entry::{Code, Direction, Entry, Item, Source, SourceFile};

pub(crate) const ENTRY: Entry = Entry {
    id: "slack-message",
    name: "Slack message",
    description: "Sends a message about certain events to Slack, Mattermost or a compatible service.",
    icon: Some("play"),
    direction: Direction::Out,
    items: &[
        Item::text("webhookUrl", "Incoming webhook", "The address that Slack gives for a channel.")
            .required()
            .secret(),
        Item::text("events", "Events", "Names, separated by commas; * for all.").required(),
        Item::text(
            "message",
            "Message",
            "May have {event}, {distinct_id}, {timestamp}, {properties.x} and \
             {person.properties.x} in it.",
        )
        .or("*{event}* by {distinct_id}")
        .required(),
    ],
    code: Code::Source(Source {
        files: &[SourceFile {
            name: "index.ts",
            text: concat!(
                include_str!("../../sources/slack-message/index.ts"),
                include_str!("../../sources/shared/places.ts"),
            ),
        }],
        methods: &["composeWebhook"],
        check,
    }),
};

fn check(config: &Config<'_>) -> Result<(), ConfigError> {
    destination_url(config, "webhookUrl")?;
    config.needed_list("events")?;
    config.needed("message").map(drop)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::sources::engine::Running;
    use crate::testing::fault;

    fn text(message: &str, event: &Value) -> Option<String> {
        let config = json!({
            "webhookUrl": "https://hooks.example.org/x", "events": "signup, Käufe", "message": message,
        });
        let request = Running::new("slack-message", &config).call("composeWebhook", event);
        let body: Value = serde_json::from_str(request.get("body")?.as_str()?).unwrap();
        assert_eq!(request["url"], "https://hooks.example.org/x");
        Some(body["text"].as_str().unwrap().to_owned())
    }

    #[test]
    fn the_message_gets_values() {
        let event = json!({
            "event": "Käufe", "distinct_id": "u1",
            "properties": {"plan": "pro", "a": {"b": 5}, "list": [1], "null": null},
        });
        assert_eq!(
            text("*{event}* {distinct_id} {properties.plan} {properties.a.b} {properties.list}|{properties.null}|{properties.missing}|{x}", &event).unwrap(),
            "*Käufe* u1 pro 5 [1]|||{x}"
        );
    }

    #[test]
    fn values_cannot_mention_anyone() {
        let event =
            json!({"event": "signup", "distinct_id": "<!channel> & {event}", "properties": {}});
        assert_eq!(text("{distinct_id}", &event).unwrap(), "&lt;!channel&gt; &amp; {event}");
    }

    #[test]
    fn other_events_are_passed_over_and_long_texts_cut() {
        assert_eq!(text("x", &json!({"event": "other", "properties": {}})), None);
        let long = json!({"event": "signup", "distinct_id": "😀".repeat(5000)});
        assert_eq!(text("{distinct_id}", &long).unwrap().chars().count(), 3001);
    }

    #[test]
    fn faults() {
        let (key, message) =
            fault("slack-message", &json!({"webhookUrl": "geheim", "events": "a"}));
        assert!(key == "webhookUrl" && !message.contains("geheim"));
        let url = "https://hooks.example.org/x";
        assert_eq!(fault("slack-message", &json!({"webhookUrl": url})).0, "events");
        let config = json!({"webhookUrl": url, "events": "a", "message": ""});
        assert_eq!(fault("slack-message", &config).0, "message");
    }
}
