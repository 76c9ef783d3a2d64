//! Stored and skipped events as rows of the live list. The pipeline makes them
//! as it applies events, the first fill of a page makes them from what is stored:
//! here, so that both look alike.

use weir_model::live::{LiveRow, Outcome};
use weir_model::{ProjectId, Timestamp};

use crate::events::StoredEvent;
use crate::persons;
use crate::warnings::Skipped;

/// Bytes of a payload that the live list carries.
const PAYLOAD: usize = 16 << 10;

/// The row of a stored event.
#[must_use]
pub fn accepted(project: ProjectId, event: &StoredEvent) -> LiveRow {
    LiveRow {
        key: event.uuid.to_string(),
        received_at: Timestamp::from_micros(event.received_at),
        outcome: Outcome::Accepted,
        reasons: event.warnings.clone(),
        detail: None,
        event: Some(event.event.clone()),
        distinct_id: Some(event.distinct_id.clone()),
        timestamp: Some(Timestamp::from_micros(event.timestamp)),
        place: text_of(&event.properties, &["$current_url", "$screen_name"]),
        library: text_of(&event.properties, &["$lib"]),
        size: event.properties.len() as u64,
        payload: cut(&event.properties),
        person: Some(persons::first_id(project, &event.distinct_id).to_string()),
    }
}

/// The row of a skipped event.
#[must_use]
pub fn dropped(skipped: Skipped) -> LiveRow {
    LiveRow {
        key: skipped.key,
        received_at: skipped.received_at,
        outcome: Outcome::Dropped,
        reasons: vec![skipped.code],
        detail: skipped.detail,
        event: skipped.event,
        distinct_id: skipped.distinct_id,
        timestamp: None,
        place: None,
        library: None,
        size: skipped.payload.len() as u64,
        payload: cut(&skipped.payload),
        person: None,
    }
}

/// The first of these properties that is a text.
fn text_of(properties: &str, keys: &[&str]) -> Option<String> {
    let object: serde_json::Value = serde_json::from_str(properties).ok()?;
    keys.iter().find_map(|key| object.get(key)?.as_str().map(str::to_owned))
}

fn cut(text: &str) -> String {
    let mut end = text.len().min(PAYLOAD);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default().to_owned()
}
