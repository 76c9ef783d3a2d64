//! From the data of a line to the event that is sent (ING-62).
//!
//! What belongs here: rules for events of every format, and the text of the event. What
//! does not: where a format stores the fields ([`crate::format`]).

use std::borrow::Cow;

use uuid::Uuid;
use weir_json::{self as json, Limits, ObjectWriter};
use weir_model::Timestamp;
use weir_model::persons::is_placeholder;

use crate::defect::{Defect, DefectKind, Effect};
use crate::identity;
use crate::object::LineObject;
use crate::time;

/// Maximum bytes of the text of one event: capture drops larger ones.
const EVENT_LIMIT: usize = 1_048_576;
/// Of a part that is compared as text: members are counted for the whole event.
const PART: Limits = Limits { depth: Limits::EVENT.depth - 1, keys: usize::MAX };
/// Maximum characters of an event name and of a distinct id.
const NAME_LIMIT: usize = 200;
/// How far in the future an event may be before capture uses the time of receipt.
const FUTURE_LIMIT_SECONDS: i64 = 23 * 3600;

/// Names that libraries send on event paths although they are not events.
const NOT_EVENTS: [&str; 3] = ["$performance_event", "$snapshot", "$snapshot_items"];

/// Events without a meaning if persons are not processed.
const ABOUT_PERSONS: [&str; 4] =
    ["$identify", "$create_alias", "$merge_dangerously", "$groupidentify"];

/// Maximum characters of the key of a group.
const GROUP_KEY_LIMIT: usize = 400;

/// Rules for the events of all formats.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    /// The time of the import.
    pub(crate) now: Timestamp,
    /// Whether an event without a time is sent with the time of the import.
    pub(crate) undated_as_now: bool,
}

/// The data of a line, independent of its format. Fields are JSON text; `None` if `null`.
#[derive(Debug, Default)]
pub(crate) struct Draft<'a> {
    pub(crate) name: Option<Cow<'a, str>>,
    pub(crate) distinct_id: Option<Cow<'a, str>>,
    pub(crate) time: Option<Cow<'a, str>>,
    pub(crate) properties: LineObject<'a>,
    /// Members next to the properties, such as `$set`.
    pub(crate) beside: LineObject<'a>,
    pub(crate) identity: Identity<'a>,
    /// An anonymous id that the same person used earlier.
    pub(crate) known_before_as: Option<String>,
    /// Defects that the format found.
    pub(crate) defects: Vec<Defect>,
}

/// The source of the uuid of an event.
#[derive(Debug, Default)]
pub(crate) enum Identity<'a> {
    /// The `uuid` of the line, as JSON text.
    Given(Cow<'a, str>),
    /// Computed from ids of the tool that wrote the line.
    Derived(Uuid),
    /// Computed from name, distinct id, time and properties.
    #[default]
    Content,
}

/// An event to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) uuid: Uuid,
    /// JSON text.
    pub(crate) text: String,
    pub(crate) link: Option<Link>,
}

/// Two ids of one person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Link {
    /// The earlier anonymous id.
    pub(crate) before: String,
    /// The id that remains.
    pub(crate) distinct_id: String,
    time: Option<Timestamp>,
}

impl Link {
    /// Computed only from the two ids.
    pub(crate) fn uuid(&self) -> Uuid {
        identity::of(&["link", &self.before, &self.distinct_id])
    }

    /// The event that merges the two ids, as JSON text.
    pub(crate) fn to_json(&self) -> String {
        let mut properties = LineObject::default();
        properties.add("$anon_distinct_id", json::quoted(&self.before));
        properties.add("$geoip_disable", "true");
        write(
            "$identify",
            &self.distinct_id,
            self.uuid(),
            self.time,
            &properties,
            &LineObject::default(),
        )
    }
}

impl Draft<'_> {
    /// The event, unless a defect prevents sending it; and all defects.
    pub(crate) fn finish(mut self, rules: &Rules) -> (Option<Event>, Vec<Defect>) {
        let mut defects = std::mem::take(&mut self.defects);
        let name = self.name(&mut defects);
        let distinct_id = self.distinct_id(&mut defects);
        let time = self.time(rules, &mut defects);
        let uuid = self.given_uuid(&mut defects);
        let stays = |defect: &Defect| defect.kind.effect() == Effect::Imported;
        // Deeper values must not be processed recursively.
        if (self.properties.depth() + 1).max(self.beside.depth()) > Limits::EVENT.depth {
            defects.push(DefectKind::TooDeep.into());
        }
        let (Some(name), Some(distinct_id)) = (name, distinct_id) else {
            return (None, defects);
        };
        self.judge_person_event(&name, &mut defects);
        if !defects.iter().all(stays) {
            return (None, defects);
        }
        let uuid = uuid.unwrap_or_else(|| self.content_uuid(&name, &distinct_id, time));
        let link = self.known_before_as.take().and_then(|before| {
            let usable = before != distinct_id
                && ![&before, &distinct_id].into_iter().any(|id| is_placeholder(id));
            usable.then(|| Link { before, distinct_id: distinct_id.clone(), time })
        });
        self.keep_place_of_sender_out();
        let text = write(&name, &distinct_id, uuid, time, &self.properties, &self.beside);
        let keys = json::weigh(text.as_bytes()).keys;
        if text.len() > EVENT_LIMIT {
            defects.push(Defect::with(
                DefectKind::EventTooLarge,
                format_args!("{} bytes", text.len()),
            ));
        }
        if keys > Limits::EVENT.keys {
            defects.push(Defect::with(DefectKind::TooManyKeys, format_args!("{keys} keys")));
        }
        let event = defects.iter().all(stays).then_some(Event { uuid, text, link });
        (event, defects)
    }

    fn name(&self, defects: &mut Vec<Defect>) -> Option<String> {
        let Some(value) = &self.name else {
            defects.push(DefectKind::MissingEventName.into());
            return None;
        };
        let Some(name) = json::string(value) else {
            defects.push(DefectKind::EventNameNotText.into());
            return None;
        };
        if name.is_empty() {
            defects.push(DefectKind::MissingEventName.into());
            return None;
        }
        if NOT_EVENTS.contains(&&*name) {
            defects.push(DefectKind::NotAnEvent.into());
            return None;
        }
        Some(cut(name, DefectKind::EventNameCut, defects))
    }

    fn distinct_id(&self, defects: &mut Vec<Defect>) -> Option<String> {
        let value = self.distinct_id.as_deref();
        // Other types are converted to JSON text, as in capture.
        let text = value.map(|value| {
            let other = || json::canonical(value, PART).map_or(value.into(), Cow::Owned);
            json::string(value).unwrap_or_else(other)
        });
        let Some(text) = text.filter(|text| !text.trim().is_empty()) else {
            defects.push(DefectKind::MissingDistinctId.into());
            return None;
        };
        if is_placeholder(&text) {
            defects.push(Defect::with(DefectKind::PlaceholderDistinctId, &text));
        }
        Some(cut(text, DefectKind::DistinctIdCut, defects))
    }

    fn time(&self, rules: &Rules, defects: &mut Vec<Defect>) -> Option<Timestamp> {
        let Some(value) = self.time.as_deref().filter(|value| *value != "\"\"") else {
            defects.push(if rules.undated_as_now {
                DefectKind::TimeOfImport.into()
            } else {
                DefectKind::MissingTimestamp.into()
            });
            return None;
        };
        let Some(time) = time::read(value) else {
            let shown: String = value.chars().take(40).collect();
            defects.push(Defect::with(DefectKind::InvalidTimestamp, shown));
            return None;
        };
        if time > rules.now.plus_seconds(FUTURE_LIMIT_SECONDS) {
            defects.push(Defect::with(DefectKind::FutureTimestamp, time));
        }
        Some(time)
    }

    fn given_uuid(&self, defects: &mut Vec<Defect>) -> Option<Uuid> {
        let value = match &self.identity {
            Identity::Given(value) => value,
            Identity::Derived(uuid) => return Some(*uuid),
            Identity::Content => return None,
        };
        let text = json::string(value);
        if text.as_deref() == Some("") {
            return None;
        }
        let uuid = text.and_then(|text| Uuid::parse_str(&text).ok());
        if uuid.is_none() {
            let shown: String = value.chars().take(60).collect();
            defects.push(Defect::with(DefectKind::InvalidUuid, shown));
        }
        uuid
    }

    /// Finds faults of events about persons and groups for which capture drops them.
    fn judge_person_event(&self, name: &str, defects: &mut Vec<Defect>) {
        if !ABOUT_PERSONS.contains(&name) {
            return;
        }
        if self.properties.get("$process_person_profile") == Some("false") {
            defects.push(DefectKind::ProfileSwitchedOff.into());
        }
        if name != "$groupidentify" {
            return;
        }
        let set = self.properties.get("$group_set");
        if set.is_some_and(|set| !set.starts_with('{') && !json::is_empty_list(set)) {
            defects.push(DefectKind::InvalidGroupSet.into());
        }
        let key = self.properties.text("$group_key");
        if key.is_some_and(|key| key.chars().count() > GROUP_KEY_LIMIT) {
            defects.push(DefectKind::GroupKeyTooLong.into());
        }
    }

    fn content_uuid(&self, name: &str, distinct_id: &str, time: Option<Timestamp>) -> Uuid {
        let micros = time.map(|time| time.micros().to_string()).unwrap_or_default();
        // Deeper ones were refused.
        let text = |object: &LineObject<'_>| {
            let text = object.to_json();
            json::canonical(&text, Limits { keys: usize::MAX, ..Limits::EVENT }).unwrap_or(text)
        };
        let (properties, beside) = (text(&self.properties), text(&self.beside));
        identity::of(&["content", name, distinct_id, &micros, &properties, &beside])
    }

    /// The location of the importing machine says nothing about the event: no location is
    /// added without an address, and a known location is kept.
    fn keep_place_of_sender_out(&mut self) {
        let placed = self.properties.names().any(|name| name.starts_with("$geoip_"));
        if placed || self.properties.get("$ip").is_none() {
            self.properties.add("$geoip_disable", "true");
        }
    }
}

/// Truncates a text to 200 characters.
fn cut(text: Cow<'_, str>, kind: DefectKind, defects: &mut Vec<Defect>) -> String {
    let mut text = text.into_owned();
    // A text never has more characters than bytes.
    if text.len() > NAME_LIMIT
        && let Some((end, _)) = text.char_indices().nth(NAME_LIMIT)
    {
        text.truncate(end);
        defects.push(kind.into());
    }
    text
}

fn write(
    name: &str,
    distinct_id: &str,
    uuid: Uuid,
    time: Option<Timestamp>,
    properties: &LineObject<'_>,
    beside: &LineObject<'_>,
) -> String {
    let mut out = String::new();
    let mut event = ObjectWriter::begin(&mut out);
    event.text("event", name);
    event.text("distinct_id", distinct_id);
    event.text("uuid", &uuid.to_string());
    if let Some(time) = time {
        event.text("timestamp", &time.to_string());
    }
    event.json("properties", &properties.to_json());
    beside.write_members(&mut event);
    event.end();
    out
}

#[cfg(test)]
mod tests;
