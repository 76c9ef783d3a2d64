//! Stored events, skipped events and refused requests as rows of the live list. The
//! pipeline makes rows as it applies events, and capture as it refuses requests. The
//! first content of a page is made from stored data. All use this module, so that the
//! rows look the same.

use serde_json::Value;
use weir_model::live::{LiveRow, Outcome};
use weir_model::traffic::RefusedRequest;
use weir_model::{ProjectId, Timestamp};

use crate::events::StoredEvent;
use crate::persons;
use crate::warnings::Skipped;

/// Bytes of a payload that the live list carries.
const PAYLOAD: usize = 16 << 10;
/// Names that one effect lists.
const NAMES: usize = 8;

/// The row of a stored event.
pub fn accepted(project: ProjectId, event: &StoredEvent) -> LiveRow {
    let properties: Value = serde_json::from_str(&event.properties).unwrap_or_default();
    let effects = effects(&event.event, &properties);
    let has_person = properties.get("$process_person_profile") != Some(&Value::Bool(false));
    let person = has_person.then(|| persons::first_id(project, &event.distinct_id).to_string());
    LiveRow {
        key: event.uuid.to_string(),
        received_at: Timestamp::from_micros(event.received_at),
        outcome: Outcome::Accepted,
        reasons: event.warnings.clone(),
        detail: None,
        event: Some(event.event.clone()),
        distinct_id: Some(event.distinct_id.clone()),
        timestamp: Some(Timestamp::from_micros(event.timestamp)),
        place: text_of(&properties, &["$current_url", "$screen_name"]),
        library: text_of(&properties, &["$lib"]),
        size: event.properties.len() as u64,
        payload: cut(&event.properties),
        project_key: None,
        person,
        effects,
    }
}

/// The row of a skipped event.
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
        // The size of the kept sample. `weir_model::live::may_be_cut` says when the
        // payload may have been longer.
        size: skipped.payload.len() as u64,
        payload: cut(&skipped.payload),
        project_key: None,
        person: None,
        effects: Vec::new(),
    }
}

/// The row of a refused request.
pub fn rejected(request: RefusedRequest) -> LiveRow {
    LiveRow {
        key: request.key,
        received_at: request.at,
        outcome: Outcome::Rejected,
        reasons: vec![request.code],
        detail: request.detail,
        event: None,
        distinct_id: None,
        timestamp: None,
        place: Some(request.route),
        library: request.library,
        size: request.bytes,
        payload: String::new(),
        project_key: request.project_key,
        person: None,
        effects: Vec::new(),
    }
}

/// The changes that an event asks for on its person and groups, as sentences.
fn effects(event: &str, properties: &Value) -> Vec<String> {
    if properties.get("$process_person_profile") == Some(&Value::Bool(false)) {
        return vec!["Has no person: $process_person_profile is false.".to_owned()];
    }
    let mut effects = Vec::new();
    let mut tell = |what: &str, names: Vec<&str>| {
        if !names.is_empty() {
            let more = names.len().saturating_sub(NAMES);
            let shown = names.into_iter().take(NAMES).collect::<Vec<_>>().join(", ");
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            effects.push(format!("{what} {shown}{more}."));
        }
    };
    tell("Sets on the person:", names(properties, "$set"));
    tell("Sets once on the person:", names(properties, "$set_once"));
    tell("Removes from the person:", names(properties, "$unset"));
    let joined = match event {
        "$identify" => text(properties, "$anon_distinct_id"),
        "$create_alias" | "$merge_dangerously" => text(properties, "alias"),
        _ => None,
    };
    tell("Asks to join with the distinct id", joined.into_iter().collect());
    if event == "$groupidentify"
        && let (Some(kind), Some(key)) =
            (text(properties, "$group_type"), text(properties, "$group_key"))
    {
        let group = format!("{kind} {key}");
        tell("Makes or changes the group", vec![group.as_str()]);
        tell("Sets on the group:", names(properties, "$group_set"));
    }
    tell("Names groups of the types", names(properties, "$groups"));
    effects
}

/// The names in a property that is an object or a list.
fn names<'a>(properties: &'a Value, member: &str) -> Vec<&'a str> {
    match properties.get(member) {
        Some(Value::Object(members)) => members.keys().map(String::as_str).collect(),
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn text<'a>(properties: &'a Value, member: &str) -> Option<&'a str> {
    properties.get(member).and_then(Value::as_str)
}

/// The first of these properties that is a string.
fn text_of(properties: &Value, keys: &[&str]) -> Option<String> {
    keys.iter().find_map(|key| properties.get(key)?.as_str().map(str::to_owned))
}

fn cut(text: &str) -> String {
    let mut end = text.len().min(PAYLOAD);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::effects;

    #[test]
    fn effects_in_words() {
        let identify = json!({"$anon_distinct_id": "a-1", "$set": {"name": 2, "plan": 1},
                              "$unset": ["old"], "$groups": {"company": "acme"}});
        assert_eq!(
            effects("$identify", &identify),
            [
                "Sets on the person: name, plan.",
                "Removes from the person: old.",
                "Asks to join with the distinct id a-1.",
                "Names groups of the types company.",
            ]
        );
        let group = json!({"$group_type": "company", "$group_key": "acme", "$group_set": {"x": 1}});
        assert_eq!(
            effects("$groupidentify", &group),
            ["Makes or changes the group company acme.", "Sets on the group: x."]
        );
        let none = json!({"$process_person_profile": false, "$set": {"a": 1}});
        assert_eq!(effects("a", &none).len(), 1);
        assert!(effects("a", &json!({})).is_empty());
    }
}
