//! Sends events to a URL.

use serde_json::Value;

use super::destination_url;
use crate::config::{Config, ConfigError};
use crate::entry::{Code, Direction, Entry, Item, Source, SourceFile};

pub(crate) const ENTRY: Entry = Entry {
    id: "webhook",
    name: "Webhook",
    description: "Sends events as HTTP requests, with a body of your own.",
    icon: Some("play"),
    direction: Direction::Out,
    items: &[
        Item::text("url", "Address", "Where requests go.").required(),
        Item::choice("method", "Method", METHODS, "POST", "GET sends no body."),
        Item::json(
            "headers",
            "Headers",
            "An object with texts, as in {\"Authorization\": \"Bearer …\"}.",
        )
        .secret(),
        Item::json(
            "body",
            "Body",
            "JSON with {event}, {distinct_id}, {timestamp}, {uuid}, {properties.x}, \
             {person.properties.x} in its texts. When empty, the whole event.",
        ),
        Item::text("events", "Events", "Names, separated by commas; all when empty."),
    ],
    code: Code::Source(Source {
        files: &[SourceFile {
            name: "index.ts",
            text: concat!(
                include_str!("../../sources/webhook/index.ts"),
                include_str!("../../sources/shared/places.ts"),
            ),
        }],
        methods: &["composeWebhook"],
        check,
    }),
};

const METHODS: &[&str] = &["POST", "PUT", "PATCH", "GET", "DELETE"];
/// Headers that the sender of the request sets.
const OURS: [&str; 5] = ["host", "content-length", "connection", "transfer-encoding", "upgrade"];

fn check(config: &Config<'_>) -> Result<(), ConfigError> {
    destination_url(config, "url")?;
    if !METHODS.contains(&config.needed("method")?.as_str()) {
        return Err(ConfigError::new(
            "method",
            format!("This must be one of {}.", METHODS.join(", ")),
        ));
    }
    config.list("events")?;
    config.json("body")?;
    let wrong = |text: &str| ConfigError::new("headers", text);
    let headers = match config.json("headers") {
        Ok(None) => return Ok(()),
        Ok(Some(Value::Object(headers))) => headers,
        // The fault of a secret contains no position.
        _ => return Err(wrong("This must be a JSON object with texts.")),
    };
    for (name, value) in &headers {
        let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        if name.is_empty() || !name.chars().all(is_token) {
            return Err(wrong("This has a name that no header can have."));
        }
        if OURS.contains(&name.to_ascii_lowercase().as_str()) {
            return Err(wrong(&format!("{name} cannot be set.")));
        }
        let is_header = |text: &str| text.chars().all(|c| c == '\t' || !c.is_control());
        if !value.as_str().is_some_and(is_header) {
            return Err(wrong(&format!("{name} must be a text in one line.")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::sources::engine::Running;
    use crate::testing::{fault, map};

    fn composed(config: Value, event: &Value) -> Value {
        crate::find("webhook").unwrap().check(&map(&config)).unwrap();
        Running::new("webhook", &config).call("composeWebhook", event)
    }

    fn event() -> Value {
        json!({
            "event": "Käufe", "distinct_id": "d\"1", "uuid": "u", "timestamp": "2026-03-01T00:00:00.000Z",
            "properties": {"n": 5, "a": {"b": [1, null]}, "c.d": "dot", "quote": "\"}{event}"},
            "person": {"properties": {"email": "a@e.org"}},
        })
    }

    #[test]
    fn the_whole_event_is_sent() {
        let request = composed(json!({"url": "https://e.org/in", "method": "POST"}), &event());
        assert_eq!(request["url"], "https://e.org/in");
        assert_eq!(request["method"], "POST");
        assert_eq!(request["headers"], json!({"Content-Type": "application/json"}));
        let body: Value = serde_json::from_str(request["body"].as_str().unwrap()).unwrap();
        assert_eq!(body, event());
    }

    #[test]
    fn a_template_gets_values() {
        let config = json!({
            "url": "https://e.org", "method": "PUT",
            "headers": r#"{"content-type": "application/x+json", "X-Key": "k"}"#,
            "body": {
                "name": "{event} of {distinct_id} ({properties.quote})", "n": "{properties.n}",
                "list": ["{properties.a.b}", "{properties.a.b.c}", 7], "dot": "{properties.c.d}",
                "mail": "{person.properties.email}", "none": "{properties.x}", "text": "x{properties.x}y",
                "other": "{unknown}", "proto": "{properties.__proto__.constructor}",
                "two": "{properties.n}{properties.n}", "{event}": true,
            },
        });
        let request = composed(config, &event());
        assert_eq!(request["method"], "PUT");
        assert_eq!(request["headers"], json!({"content-type": "application/x+json", "X-Key": "k"}));
        let body: Value = serde_json::from_str(request["body"].as_str().unwrap()).unwrap();
        assert_eq!(
            body,
            json!({
                "name": "Käufe of d\"1 (\"}{event})", "n": 5, "list": [[1, null], null, 7],
                "dot": "dot", "mail": "a@e.org", "none": null, "text": "xy", "other": "{unknown}",
                "proto": null, "two": "55", "{event}": true,
            })
        );
    }

    #[test]
    fn other_events_are_passed_over() {
        let config = json!({"url": "https://e.org", "events": "a, b", "method": "GET"});
        assert_eq!(composed(config.clone(), &event()), Value::Null);
        let request = composed(config, &json!({"event": "b", "properties": null}));
        assert_eq!(request, json!({"url": "https://e.org", "method": "GET", "headers": {}}));
    }

    #[test]
    fn faults() {
        for url in [json!(null), json!("e.org"), json!("ftp://e.org"), json!("https://a:b@e.org")] {
            assert_eq!(fault("webhook", &json!({"url": url})).0, "url", "{url}");
        }
        for headers in [
            json!("{"),
            json!([]),
            json!({"a b": "c"}),
            json!({"a": 1}),
            json!({"a": "b\r\nc"}),
            json!({"Host": "c"}),
        ] {
            let config = json!({"url": "https://e.org", "headers": headers});
            assert_eq!(fault("webhook", &config).0, "headers", "{headers}");
        }
        let config = json!({"url": "https://e.org", "body": "{\"a\": {event}}"});
        assert_eq!(fault("webhook", &config).0, "body");
        let config = json!({"url": "https://e.org", "method": "TRACE"});
        assert_eq!(fault("webhook", &config).0, "method");
    }
}
