//! Events as JSON text, in the forms that scripts see (PLG-27), and in the form of their
//! results.

use chrono::SecondsFormat;
use serde_json::value::RawValue;
use weir_capture::AcceptedEvent;
use weir_json::{ObjectWriter, member, quoted, with_member};
use weir_model::persons::PersonRef;
use weir_model::{ProjectId, Timestamp};
use weir_store::events::StoredEvent;

/// Bytes of an event in addition to its properties, usually.
const SPARE: usize = 512;

/// An event for `processEvent`.
pub(crate) fn for_transformation(
    event: &AcceptedEvent,
    project: ProjectId,
    received_at: i64,
    site_url: &str,
) -> String {
    let mut text = String::with_capacity(event.properties.len() + SPARE);
    let mut object = ObjectWriter::begin(&mut text);
    object.text("uuid", &event.uuid.to_string());
    object.text("event", &event.event);
    object.text("distinct_id", &event.distinct_id);
    object.json("team_id", &project.to_string());
    object.json("ip", member(&event.properties, "$ip").unwrap_or("null"));
    object.text("site_url", site_url);
    object.text("now", &time(received_at));
    object.text("timestamp", &time(event.timestamp));
    object.json("properties", &event.properties);
    object.end();
    text
}

/// The result of a Rust step for an event.
pub(crate) fn rebuilt(event: &str, distinct_id: &str, timestamp: i64, properties: &str) -> String {
    let mut text = String::with_capacity(properties.len() + SPARE);
    let mut object = ObjectWriter::begin(&mut text);
    object.text("event", event);
    object.text("distinct_id", distinct_id);
    object.text("timestamp", &time(timestamp));
    object.json("properties", properties);
    object.end();
    text
}

/// A stored event for `onEvent`, `composeWebhook` and `exportEvents`.
pub(crate) fn for_delivery(
    event: &StoredEvent,
    project: ProjectId,
    person: Option<&PersonRef>,
    site_url: &str,
) -> String {
    let mut text = String::with_capacity(event.properties.len() + SPARE);
    let mut object = ObjectWriter::begin(&mut text);
    object.text("uuid", &event.uuid.to_string());
    object.text("event", &event.event);
    object.text("distinct_id", &event.distinct_id);
    object.json("team_id", &project.to_string());
    object.json("ip", member(&event.properties, "$ip").unwrap_or("null"));
    object.text("timestamp", &time(event.timestamp));
    for name in ["$set", "$set_once"] {
        if let Some(value) = member(&event.properties, name) {
            object.json(name, value);
        }
    }
    if event.elements_chain.is_empty() {
        object.json("properties", &event.properties);
    } else {
        let chain = quoted(&event.elements_chain);
        object.json("properties", &with_member(&event.properties, "$elements_chain", &chain));
    }
    if let Some(person) = person {
        let mut inner = ObjectWriter::begin(object.name("person"));
        inner.text("uuid", &person.id.to_string());
        inner.json("properties", &person.properties);
        let site = site_url.trim_end_matches('/');
        inner.text("posthog_url", &format!("{site}/project/{project}/persons/{}", person.id));
        inner.end();
    }
    object.end();
    text
}

/// An event as it is shown to members.
pub(crate) fn for_people(event: &AcceptedEvent) -> String {
    let mut text = String::with_capacity(event.properties.len() + SPARE);
    let mut object = ObjectWriter::begin(&mut text);
    object.text("uuid", &event.uuid.to_string());
    object.text("event", &event.event);
    object.text("distinct_id", &event.distinct_id);
    object.text("timestamp", &Timestamp::from_micros(event.timestamp).to_string());
    object.json("properties", &event.properties);
    object.end();
    text
}

/// JSON text in the form that is sent to the sandbox.
pub(crate) fn raw(text: String) -> Option<Box<RawValue>> {
    RawValue::from_string(text).ok()
}

/// A time as ISO text that is read back exactly.
pub(crate) fn time(micros: i64) -> String {
    Timestamp::from_micros(micros).to_chrono().to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use uuid::Uuid;
    use weir_capture::AcceptedEvent;
    use weir_model::ProjectId;

    use super::{for_transformation, time};

    #[test]
    fn a_script_sees_the_event_as_it_is() {
        let event = AcceptedEvent {
            uuid: Uuid::from_u128(7),
            event: "a \"name\"".to_owned(),
            distinct_id: "ada".to_owned(),
            timestamp: 1_780_000_000_000_001,
            properties: r#"{"$ip":"203.0.113.7","n":12345678901234567890}"#.to_owned(),
            elements_chain: String::new(),
            warnings: Vec::new(),
        };
        let text = for_transformation(&event, ProjectId(3), 0, "https://weir.example");
        let read: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(read["event"], "a \"name\"");
        assert_eq!((&read["team_id"], &read["ip"]), (&json!(3), &json!("203.0.113.7")));
        assert_eq!(read["now"], "1970-01-01T00:00:00Z");
        assert!(text.contains(&event.properties), "the properties are as they came");
    }

    #[test]
    fn times_keep_their_microseconds() {
        assert_eq!(time(1_780_000_000_000_001), "2026-05-28T20:26:40.000001Z");
        assert_eq!(time(1_780_000_000_120_000), "2026-05-28T20:26:40.120Z");
    }
}
