//! The decision on one event (ING-28, ING-29, ING-31, ING-37).
//!
//! What belongs here: the rules that need only the event, its request and the time of
//! receipt. [`decide`] is the table of them, from top to bottom. What does not: persons,
//! groups and merges, which depend on stored data (`weir-ingest`); and counting decisions
//! (the server).

use std::borrow::Cow;
use std::ops::Range;

use chrono::{DateTime, Utc};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use uuid::Uuid;
use weir_json::{self as json, Cursor, Fault, Limits};
use weir_model::live::SAMPLE_LIMIT;
use weir_model::outcomes::{DropReason, Warning};

use super::cookieless::{self, CookielessKey};
use super::elements;
use super::identity::{self, Content};
use super::properties;
use super::shape::{RawEvent, present};
use super::time::{self, Claims};

/// Maximum bytes of the text of one event, as sent (ING-37).
pub const EVENT_LIMIT: usize = 1_048_576;

/// The limits of the properties of an event that otherwise has only its name, distinct id
/// and time.
const PROPERTIES: Limits = Limits { depth: Limits::EVENT.depth - 1, keys: Limits::EVENT.keys - 4 };

/// Maximum characters of an event name and of a distinct id (ING-28, ING-29).
const NAME_LIMIT: usize = 200;

/// Names that libraries send on event paths although they are not events.
const NOT_EVENTS: [&str; 3] = ["$performance_event", "$snapshot", "$snapshot_items"];

/// The property that decides whether the event has a person.
const PROFILE: &str = "$process_person_profile";

/// Events without a meaning if persons are not processed.
const ABOUT_PERSONS: [&str; 4] =
    ["$identify", "$create_alias", "$merge_dangerously", "$groupidentify"];

/// Events that merge persons (ING-49).
const MERGES: [&str; 3] = ["$identify", "$create_alias", "$merge_dangerously"];

/// Maximum characters of the key of a group (ING-53).
const GROUP_KEY_LIMIT: usize = 400;

/// What the decision depends on, in addition to the event.
#[derive(Debug, Clone)]
pub struct Context {
    /// Time of receipt.
    pub received_at: DateTime<Utc>,
    /// Time of sending by the sender's clock: [`Batch::sent_at`](super::Batch::sent_at).
    pub sent_at: Option<DateTime<Utc>>,
    /// The project of the project key.
    pub project: i64,
    /// The IP address to store as `$ip`; `None` if the request hides it
    /// ([`Payload::hides_address`](super::Payload::hides_address)) or the project stores
    /// none.
    pub client_address: Option<String>,
    /// Whether an event without a name is a `$identify`
    /// ([`CapturePath::is_engage`](super::CapturePath::is_engage)).
    pub engage: bool,
    /// Whether the project processes no persons: its events are treated as if they
    /// disabled it themselves (ING-42).
    pub person_processing_opt_out: bool,
    /// Where the distinct id of a visitor without cookies comes from (ING-65).
    pub cookieless_key: CookielessKey,
}

/// The decision on an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It is appended to the log.
    Accept(AcceptedEvent),
    /// It is not stored. The answer to the request does not change.
    Drop(DroppedEvent),
}

/// An event ready for the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptedEvent {
    /// Unique id within the project: the uuid of the sender. Otherwise, if the event has
    /// a time, a uuid that is always the same for the same content. Otherwise a new v7
    /// (ING-6, ING-32).
    pub uuid: Uuid,
    /// Name: 1 to 200 characters.
    pub event: String,
    /// Distinct id: 1 to 200 characters, not blank.
    pub distinct_id: String,
    /// Event time by the clock of the service: microseconds since 1970 UTC.
    pub timestamp: i64,
    /// JSON object text. Numbers keep their digits. `$set`, `$set_once` and `$unset` from
    /// the top level are merged in. `$ip` is added if it is missing and to be stored.
    pub properties: String,
    /// The chain of clicked elements, removed from the properties, where it is a text or
    /// a list; usually empty (ING-34).
    pub elements_chain: String,
    /// Codes for what was altered or not understood; usually empty.
    pub warnings: Vec<Warning>,
}

/// A dropped event, with the data that can be shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DroppedEvent {
    /// The drop reason.
    pub reason: DropReason,
    /// Its name, if it is readable; truncated to 200 characters.
    pub event: Option<String>,
    /// Its distinct id, if there is one; truncated to 200 characters.
    pub distinct_id: Option<String>,
    /// Its uuid, if it has a valid one.
    pub uuid: Option<Uuid>,
    /// The beginning of its text as received, at most 4 KiB. The text of a visitor without
    /// cookies has no properties that tell visitors apart (ING-65), and is empty if they
    /// cannot be removed.
    pub sample: String,
}

/// Decides on one event. The result depends only on the arguments, except for the random
/// part of a new v7 uuid.
pub fn decide(event: &RawEvent<'_>, context: &Context) -> Decision {
    let verdict = if event.raw.len() > EVENT_LIMIT {
        Err(DropReason::EventTooLarge)
    } else {
        Facts::read(event.raw).and_then(|facts| {
            if facts.needs_repair {
                decide_repaired(event.raw, context)
            } else {
                accept(event, &facts, context, Vec::new())
            }
        })
    };
    match verdict {
        Ok(accepted) => Decision::Accept(accepted),
        Err(reason) => Decision::Drop(dropped(event, reason, context.engage, false)),
    }
}

/// Replaces the properties of an accepted event, with the result that [`decide`] would
/// have. `None` if only [`decide`] can tell: the properties are not JSON, may be too
/// large, or contain a text that cannot be stored.
///
/// # Errors
/// The reason for which [`decide`] would drop it.
pub fn with_properties(
    event: &AcceptedEvent,
    properties: &str,
    person_processing_opt_out: bool,
) -> Result<Option<AcceptedEvent>, DropReason> {
    // The other fields take much less than the other half.
    if properties.len() > EVENT_LIMIT / 2
        || !properties.starts_with('{')
        || serde_json::from_str::<IgnoredAny>(properties).is_err()
    {
        return Ok(None);
    }
    let mut facts = Facts::default();
    let mut cursor = Cursor::new(properties, PROPERTIES);
    facts.read_properties(properties, &mut cursor).map_err(refusal)?;
    if cursor.needs_repair() {
        return Ok(None);
    }
    refuse_for_persons(&event.event, &facts, person_processing_opt_out)?;
    let is_cookieless = facts.is_cookieless(&event.distinct_id);
    let all_visitors = event.distinct_id == cookieless::SENTINEL;
    let properties = match is_cookieless {
        true => without_traces(properties, all_visitors.then_some(event.distinct_id.as_str()))?,
        false => Cow::Borrowed(properties),
    };
    let (properties, elements_chain) = elements::take(properties, facts.elements);
    let properties = match person_processing_opt_out {
        true => without_person(properties, &facts),
        false => properties,
    };
    Ok(Some(AcceptedEvent {
        uuid: event.uuid,
        event: event.event.clone(),
        distinct_id: event.distinct_id.clone(),
        timestamp: event.timestamp,
        properties: properties.into_owned(),
        elements_chain,
        warnings: event.warnings.clone(),
    }))
}

/// The drop of an event that was sent to the path of recordings. No such event is stored
/// (ING-14).
pub fn drop_recording(event: &RawEvent<'_>) -> DroppedEvent {
    dropped(event, DropReason::NotAnEvent, false, false)
}

/// The drop of an event beyond a limit of its organization (ING-66). An event that would be
/// dropped anyway keeps its own reason.
pub fn drop_over_limit(event: &RawEvent<'_>, reason: DropReason, context: &Context) -> Decision {
    match decide(event, context) {
        Decision::Accept(_) => Decision::Drop(dropped(event, reason, context.engage, false)),
        own => own,
    }
}

/// The rare case that a text of the event cannot be stored.
fn decide_repaired(raw: &str, context: &Context) -> Result<AcceptedEvent, DropReason> {
    let repaired = json::repair(raw);
    // Repair keeps JSON valid, so parsing cannot fail here.
    let event = RawEvent::parse(&repaired).map_err(|_| DropReason::InvalidProperties)?;
    let facts = Facts::read(&repaired)?;
    accept(&event, &facts, context, vec![Warning::TextRepaired])
}

/// The rules, for an event whose texts can be stored.
fn accept(
    event: &RawEvent<'_>,
    facts: &Facts,
    context: &Context,
    mut warnings: Vec<Warning>,
) -> Result<AcceptedEvent, DropReason> {
    let name = event_name(event, context.engage, &mut warnings)?;
    if NOT_EVENTS.contains(&name.as_str()) {
        return Err(DropReason::NotAnEvent);
    }
    let sent_id = distinct_id(event, facts).ok_or(DropReason::MissingDistinctId)?;
    let is_cookieless = facts.is_cookieless(&sent_id);
    let all_visitors = sent_id == cookieless::SENTINEL;
    let distinct_id = match all_visitors {
        true => context.cookieless_key.distinct_id(&host(event, facts)),
        false => Some(cut(sent_id, Warning::DistinctIdCut, &mut warnings)),
    };
    let distinct_id = distinct_id.ok_or(DropReason::MissingDistinctId)?;
    refuse_for_persons(&name, facts, context.person_processing_opt_out)?;
    let sent_uuid = identity::sent(event)?;
    let sent_properties = match present(event.properties) {
        None => "{}",
        Some(object) if object.starts_with('{') => object,
        Some(list) if json::is_empty_list(list) => "{}",
        Some(_) => return Err(DropReason::InvalidProperties),
    };

    let timestamp = time::event_time(
        Claims {
            timestamp: present(event.timestamp),
            offset: present(event.offset),
            sent_at: context.sent_at,
            ignore_sent_at: facts.ignore_sent_at,
        },
        context.received_at,
        &mut warnings,
    );
    if facts.profile == Switch::Odd {
        warnings.push(Warning::InvalidProfileFlag);
    }
    if facts.odd_cookieless_mode {
        warnings.push(Warning::CookielessModeNotBoolean);
    }
    if facts.odd_person_update {
        warnings.push(Warning::InvalidPersonUpdate);
    }
    if facts.merges_all_visitors && MERGES.contains(&name.as_str()) {
        warnings.push(Warning::MergeIdIllegal);
    }
    let properties = properties::merge_top_level(event, sent_properties, &mut warnings);
    // Before computing the uuid: no one can find an address by trying which one leads to it.
    let properties = match is_cookieless {
        true => without_traces(&properties, all_visitors.then_some(distinct_id.as_str()))?,
        false => properties,
    };
    let uuid = match sent_uuid {
        Some(uuid) => uuid,
        None => match present(event.timestamp) {
            Some(sent_time) => Content {
                project: context.project,
                name: &name,
                distinct_id: &distinct_id,
                sent_time,
                properties: &properties,
            }
            .uuid(),
            None => identity::new(timestamp),
        },
    };
    let (properties, elements_chain) = elements::take(properties, facts.elements);
    // After computing the uuid: a retry is the same event even if the setting was changed
    // in between.
    let properties = match context.person_processing_opt_out {
        true => without_person(properties, facts),
        false => properties,
    };
    let properties = match &context.client_address {
        Some(address) if !facts.has_ip && !is_cookieless => {
            json::with_member(&properties, "$ip", &json::quoted(address))
        }
        _ => properties.into_owned(),
    };
    Ok(AcceptedEvent {
        uuid,
        event: name,
        distinct_id,
        timestamp,
        properties,
        elements_chain,
        warnings,
    })
}

/// The results of one walk over the text of an event.
#[derive(Debug, Default)]
struct Facts {
    needs_repair: bool,
    /// The range of `properties.distinct_id` in the text.
    distinct_id: Option<Range<usize>>,
    ignore_sent_at: bool,
    odd_cookieless_mode: bool,
    /// `$cookieless_mode` is on.
    cookieless_mode: bool,
    /// The id of all visitors without cookies is one that the event merges.
    merges_all_visitors: bool,
    /// The range of `$host` in the text.
    host: Option<Range<usize>>,
    /// `$process_person_profile`.
    profile: Switch,
    /// `$group_set` is neither an object nor absent.
    odd_group_set: bool,
    long_group_key: bool,
    /// A `$set`, `$set_once` or `$unset` among the properties has the wrong type.
    odd_person_update: bool,
    has_ip: bool,
    elements: elements::ChainForms,
}

impl Facts {
    fn read(raw: &str) -> Result<Self, DropReason> {
        Self::read_within(raw, Limits::EVENT)
    }

    fn read_within(raw: &str, limits: Limits) -> Result<Self, DropReason> {
        let mut facts = Self::default();
        let mut cursor = Cursor::new(raw, limits);
        let walked = cursor.object(|key, cursor| {
            if key.text() != "properties" {
                return cursor.range().map(drop);
            }
            // If properties are given twice, the last ones count.
            facts = Self::default();
            if cursor.at_object() {
                facts.read_properties(raw, cursor)
            } else {
                cursor.range().map(drop)
            }
        });
        facts.needs_repair = cursor.needs_repair();
        walked.map(|()| facts).map_err(refusal)
    }

    fn read_properties(&mut self, raw: &str, cursor: &mut Cursor<'_>) -> Result<(), Fault> {
        cursor.object(|key, cursor| {
            let range = cursor.range()?;
            let value = || raw.get(range.clone()).unwrap_or_default();
            match key.text().as_ref() {
                "distinct_id" => self.distinct_id = Some(range),
                "$ip" => self.has_ip = true,
                elements::CHAIN => self.elements.chain = value().starts_with('"'),
                elements::LIST => self.elements.list = value().starts_with('['),
                PROFILE => self.profile = Switch::of(value()),
                "$set" | "$set_once" => {
                    self.odd_person_update |= !is_object_or_nothing(value());
                }
                "$unset" => {
                    self.odd_person_update |= !value().starts_with(['{', '[']) && value() != "null";
                }
                "$group_set" => {
                    self.odd_group_set = !is_object_or_nothing(value());
                }
                "$group_key" => self.long_group_key = is_long_group_key(value()),
                "$ignore_sent_at" => self.ignore_sent_at = value() == "true",
                "$cookieless_mode" => {
                    self.odd_cookieless_mode = !matches!(value(), "true" | "false");
                    self.cookieless_mode |= value() == "true";
                }
                "$anon_distinct_id" | "alias" => {
                    self.merges_all_visitors |= cookieless::is_sentinel(value());
                }
                "$host" => self.host = Some(range),
                _ => {}
            }
            Ok(())
        })
    }

    /// Whether the event, with this distinct id as sent, is about a visitor without cookies.
    fn is_cookieless(&self, sent_id: &str) -> bool {
        self.cookieless_mode || self.merges_all_visitors || sent_id == cookieless::SENTINEL
    }
}

/// Whether an event is about a visitor without cookies, also if it exceeds the limits.
fn is_cookieless(event: &RawEvent<'_>) -> bool {
    cookieless::may_concern(event.raw)
        && Facts::read_within(event.raw, Limits::NONE)
            .is_ok_and(|facts| facts.is_cookieless(&distinct_id(event, &facts).unwrap_or_default()))
}

/// The properties of an event of a visitor without cookies as they are stored. `id` is the
/// distinct id that replaces the one of all visitors.
fn without_traces(properties: &str, id: Option<&str>) -> Result<Cow<'static, str>, DropReason> {
    cookieless::without_traces(properties, id).map(Cow::Owned).map_err(refusal)
}

/// The drop reason of an event whose text cannot be walked.
fn refusal(fault: Fault) -> DropReason {
    match fault {
        Fault::TooDeep => DropReason::TooDeep,
        Fault::TooManyKeys => DropReason::TooManyKeys,
        // Not reached: the text was parsed before.
        Fault::Malformed => DropReason::InvalidProperties,
    }
}

fn is_object_or_nothing(value: &str) -> bool {
    value.starts_with('{') || value == "null" || json::is_empty_list(value)
}

/// A property that is true, false, or another value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Switch {
    #[default]
    Absent,
    On,
    Off,
    Odd,
}

impl Switch {
    fn of(value: &str) -> Self {
        match value {
            "true" => Self::On,
            "false" => Self::Off,
            _ => Self::Odd,
        }
    }
}

/// Checks the requirements of an event about a person or a group (ING-41, ING-53).
fn refuse_for_persons(name: &str, facts: &Facts, opt_out: bool) -> Result<(), DropReason> {
    if !ABOUT_PERSONS.contains(&name) {
        return Ok(());
    }
    if facts.profile == Switch::Off || opt_out {
        return Err(DropReason::ProfileSwitchedOff);
    }
    if name == "$groupidentify" && facts.odd_group_set {
        return Err(DropReason::InvalidGroupSet);
    }
    if name == "$groupidentify" && facts.long_group_key {
        return Err(DropReason::GroupKeyTooLong);
    }
    Ok(())
}

/// The properties with `$process_person_profile: false`, replacing any value. It is
/// stored, so that the event does not change when the setting changes.
fn without_person<'a>(properties: Cow<'a, str>, facts: &Facts) -> Cow<'a, str> {
    let others = match facts.profile {
        Switch::Off => return properties,
        Switch::Absent => properties,
        // The text was parsed before. If it cannot be rewritten, it is kept and the
        // member is added: the last of equal names counts.
        Switch::On | Switch::Odd => {
            json::without_members(&properties, &[PROFILE]).map_or(properties, Cow::Owned)
        }
    };
    Cow::Owned(json::with_member(&others, PROFILE, "false"))
}

fn is_long_group_key(value: &str) -> bool {
    // A text never has more characters than bytes.
    value.len() > GROUP_KEY_LIMIT
        && match json::string_lossy(value) {
            Some(key) => key.chars().nth(GROUP_KEY_LIMIT).is_some(),
            None => value.chars().nth(GROUP_KEY_LIMIT).is_some(),
        }
}

fn event_name(
    event: &RawEvent<'_>,
    engage: bool,
    warnings: &mut Vec<Warning>,
) -> Result<String, DropReason> {
    let Some(value) = present(event.event) else {
        return if engage { Ok("$identify".to_owned()) } else { Err(DropReason::MissingEventName) };
    };
    let name = json::string_lossy(value).ok_or(DropReason::EventNameNotText)?;
    if name.is_empty() {
        return Err(DropReason::MissingEventName);
    }
    Ok(cut(name.into_owned(), Warning::EventNameCut, warnings))
}

/// The first of the three values that is not `null`, as text; `None` if it is blank.
fn distinct_id(event: &RawEvent<'_>, facts: &Facts) -> Option<String> {
    let inner = || facts.distinct_id.clone().and_then(|range| event.raw.get(range));
    let value = present(event.distinct_id)
        .or_else(|| present(event.dollar_distinct_id))
        .or_else(|| inner().filter(|value| *value != "null"))?;
    let text = match json::string_lossy(value) {
        Some(text) => text.into_owned(),
        None => json::canonical(value, Limits::EVENT).ok()?,
    };
    if text.trim().is_empty() { None } else { Some(text) }
}

/// The host of the page; empty if the event names none.
fn host<'a>(event: &RawEvent<'a>, facts: &Facts) -> Cow<'a, str> {
    let value = facts.host.clone().and_then(|range| event.raw.get(range));
    value.and_then(json::string_lossy).unwrap_or_default()
}

/// Truncates a text to 200 characters.
fn cut(mut text: String, warning: Warning, warnings: &mut Vec<Warning>) -> String {
    // A text never has more characters than bytes.
    if text.len() > NAME_LIMIT
        && let Some((end, _)) = text.char_indices().nth(NAME_LIMIT)
    {
        text.truncate(end);
        warnings.push(warning);
    }
    text
}

/// Collects the data of a dropped event that can be shown, even if the event is invalid.
/// `by_option` says that it is about a visitor without cookies, if an option says so that is
/// not in the properties.
pub(super) fn dropped(
    event: &RawEvent<'_>,
    reason: DropReason,
    engage: bool,
    by_option: bool,
) -> DroppedEvent {
    let mut ignored = Vec::new();
    let facts = Facts::read(event.raw).unwrap_or_default();
    DroppedEvent {
        reason,
        event: event_name(event, engage, &mut ignored).ok(),
        distinct_id: distinct_id(event, &facts)
            .map(|id| cut(id, Warning::DistinctIdCut, &mut ignored)),
        uuid: identity::sent(event).ok().flatten(),
        sample: match by_option || is_cookieless(event) {
            true => sample(&cookieless::shown(event.raw).unwrap_or_default()),
            false => sample(event.raw),
        },
    }
}

fn sample(text: &str) -> String {
    let end = text.floor_char_boundary(SAMPLE_LIMIT);
    text.get(..end).unwrap_or_default().to_owned()
}

#[cfg(test)]
pub(super) mod tests;
