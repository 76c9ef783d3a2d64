//! Stories: several events that together result in one person or one group.
//!
//! Their events may be received in any order and repeatedly, with the same result. So
//! each property is set by only one event.
//!
//! What belongs here: the events of a story, and their result. What does not: sending
//! (`sending`) and comparing (`people`).

use serde_json::{Map, Value, json};

/// Group types of the stories; an instance numbers them in order of arrival.
const GROUP_TYPES: [&str; 3] = ["company", "team", "site"];
/// Distinct id, group type and group key of the counter.
pub(crate) const COUNTER: (&str, &str, &str) = ("counter", "counter", "all");

/// Transformations of all events: one in JavaScript, one of the catalogue.
pub(crate) const SCRIPT: &str = "export function processEvent(event) {
    event.properties.scripted = true
    return event
}";
pub(crate) const NATIVE: &str = "timestamp-parts";
/// The properties that the second one adds.
const PARTS: [&str; 6] = ["year", "month", "day", "day_of_the_week", "hour", "minute"];

/// Properties of an event, a person or a group.
pub(crate) type Properties = Map<String, Value>;

/// An event to send.
#[derive(Debug, Clone)]
pub(crate) struct StoryEvent {
    pub(crate) event: &'static str,
    pub(crate) distinct_id: String,
    pub(crate) properties: Properties,
}

/// A story, identified by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Story(pub(crate) u64);

/// The person that must exist if all events of a story were acknowledged.
#[derive(Debug)]
pub(crate) struct Person {
    /// The distinct ids, sorted.
    pub(crate) distinct_ids: Vec<String>,
    pub(crate) is_identified: bool,
    /// Without the properties that the service adds.
    pub(crate) properties: Properties,
}

/// The group that must exist if all events of a story were acknowledged.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) kind: &'static str,
    pub(crate) key: String,
    pub(crate) properties: Properties,
}

impl Story {
    /// Its events, in the order in which they happened.
    pub(crate) fn events(self) -> Vec<StoryEvent> {
        let [user, anonymous, other, other_anonymous] = self.ids();
        let step = |id: &str, properties| story_event("step", id, properties);
        let identify = |id: &str, anonymous: &str, properties: Value| {
            let mut story_event = story_event("$identify", id, properties);
            story_event.properties.insert("$anon_distinct_id".to_owned(), anonymous.into());
            story_event
        };
        match self.0 % 4 {
            0 => vec![
                step(&anonymous, json!({"$process_person_profile": false, "$set": {"not": 1}})),
                step(&anonymous, json!({"$set": {"seen": self.0}})),
                identify(&user, &anonymous, json!({"$set": {"plan": "pro"}})),
                step(&user, json!({"$process_person_profile": true, "$set": {"paid": self.0}})),
                step(&anonymous, json!({"$set_once": {"late": true}})),
            ],
            1 => vec![
                step(&user, json!({"$set": {"a": self.0}})),
                story_event(
                    "$create_alias",
                    &user,
                    json!({"alias": anonymous, "$set": {"b": 1.5}}),
                ),
                step(&anonymous, json!({"$set": {"c": [self.0]}})),
            ],
            2 => vec![
                step(&other_anonymous, json!({"$set": {"first": self.0}})),
                identify(&user, &anonymous, json!({"$set": {"one": 1}})),
                identify(&other, &other_anonymous, json!({"$set": {"two": 2}})),
                story_event("$merge_dangerously", &user, json!({"alias": other})),
                story_event("$set", &other, json!({"$set": {"three": {"deep": self.0}}})),
                step(&other_anonymous, json!({"$set": {"four": "4"}})),
            ],
            _ => {
                let kind = self.group_type();
                let about = |properties: Value| {
                    let key = self.group_key();
                    let group =
                        json!({"$group_type": kind, "$group_key": key, "$group_set": properties});
                    story_event("$groupidentify", &user, group)
                };
                vec![
                    about(json!({"name": self.group_key()})),
                    step(&user, json!({"$groups": {(kind): self.group_key()}, "$set": {"in": 1}})),
                    about(json!({"size": self.0})),
                ]
            }
        }
    }

    /// All distinct ids that it may contain.
    pub(crate) fn ids(self) -> [String; 4] {
        ["user", "anonymous", "other", "other-anonymous"]
            .map(|who| format!("story-{}-{who}", self.0))
    }

    /// The story of a distinct id.
    pub(crate) fn of_id(distinct_id: &str) -> Option<Self> {
        let (number, _) = distinct_id.strip_prefix("story-")?.split_once('-')?;
        number.parse().ok().map(Self)
    }

    /// The person of all its distinct ids.
    pub(crate) fn person(self) -> Person {
        let number = self.0;
        let (ids, properties) = match number % 4 {
            0 => (2, json!({"seen": number, "plan": "pro", "paid": number, "late": true})),
            1 => (2, json!({"a": number, "b": 1.5, "c": [number]})),
            2 => (
                4,
                json!({"first": number, "one": 1, "two": 2, "three": {"deep": number},
                       "four": "4"}),
            ),
            _ => (1, json!({"in": 1})),
        };
        let mut distinct_ids: Vec<String> = self.ids().into_iter().take(ids).collect();
        distinct_ids.sort();
        Person { distinct_ids, is_identified: ids > 1, properties: object(properties) }
    }

    /// Its group, if it has one.
    pub(crate) fn group(self) -> Option<Group> {
        (self.0 % 4 == 3).then(|| Group {
            kind: self.group_type(),
            key: self.group_key(),
            properties: object(json!({"name": self.group_key(), "size": self.0})),
        })
    }

    fn group_type(self) -> &'static str {
        let types = GROUP_TYPES.len() as u64;
        GROUP_TYPES[usize::try_from(self.0 / 4 % types).unwrap_or(0)]
    }

    fn group_key(self) -> String {
        format!("group of story {}", self.0)
    }
}

/// The events for a number of the counter: one for the person, one for the group. The
/// last ones determine the result.
pub(crate) fn count(number: u64) -> [StoryEvent; 2] {
    let (distinct_id, kind, key) = COUNTER;
    [
        story_event("$set", distinct_id, json!({"$set": {"count": number}})),
        story_event(
            "$groupidentify",
            distinct_id,
            json!({"$group_type": kind, "$group_key": key, "$group_set": {"count": number}}),
        ),
    ]
}

/// The properties of an event after processing: properties that only control processing
/// are removed, indexes of groups are added. `types`: names of the group types by index.
pub(crate) fn processed(mut properties: Properties, types: &[String]) -> Properties {
    if properties.get("$process_person_profile") == Some(&Value::Bool(false)) {
        for name in ["$set", "$set_once", "$unset"] {
            properties.remove(name);
        }
    } else {
        properties.remove("$process_person_profile");
    }
    if let Some(Value::Object(groups)) = properties.get("$groups").cloned() {
        for (kind, key) in groups {
            if let Some(index) = types.iter().position(|name| *name == kind) {
                properties.insert(format!("$group_{index}"), key);
            }
        }
    }
    properties
}

/// Removes the properties that the transformations added; returns whether both were
/// there.
pub(crate) fn untransformed(properties: &mut Properties) -> bool {
    let is_scripted = properties.remove("scripted") == Some(Value::Bool(true));
    // A filter, because `all` would stop at the first missing part and leave the rest.
    let parts = PARTS.iter().filter(|name| properties.remove(**name).is_some()).count();
    is_scripted && parts == PARTS.len()
}

fn story_event(event: &'static str, distinct_id: &str, properties: Value) -> StoryEvent {
    StoryEvent { event, distinct_id: distinct_id.to_owned(), properties: object(properties) }
}

fn object(value: Value) -> Properties {
    match value {
        Value::Object(members) => members,
        _ => Properties::new(),
    }
}
