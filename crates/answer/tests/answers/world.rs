//! Events, persons and questions that a number chooses.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::{Value, json};
use uuid::Uuid;
use weir_model::Timestamp;
use weir_questions::evaluate::PropertyValue;
use weir_questions::query::FilterGroup;
use weir_questions::time::{Calendar, WeekStart};
use weir_segments::OwnedEvent;

use crate::Case;
pub(crate) use crate::random::Random;
use crate::source::{Layout, TestSource};

pub(crate) const NAMES: [&str; 5] = ["$pageview", "$screen", "buy", "sign up", "ünlock"];
const ZONES: [&str; 4] = ["UTC", "Europe/Berlin", "America/St_Johns", "Asia/Kathmandu"];
/// After clocks were set back in Berlin.
const NOW: &str = "2026-10-28T14:05:30Z";
const HOUR: i64 = 3_600_000_000;

/// The number of the project.
pub(crate) const PROJECT: i64 = 7;
/// The type, key and properties of the groups.
pub(crate) const GROUPS: [(u8, &str, &str); 3] = [
    (0, "acme", r#"{"size":10,"town":"Kyiv"}"#),
    (0, "3", r#"{"size":2.50}"#),
    (1, "acme", r#"{"size":99}"#),
];

/// A person that has a record.
#[derive(Debug, Clone)]
pub(crate) struct Person {
    pub(crate) properties: String,
    pub(crate) created_at: i64,
    pub(crate) is_identified: bool,
    pub(crate) distinct_ids: Vec<String>,
}

/// An event that counts.
pub(crate) struct Event {
    pub(crate) name: String,
    pub(crate) time: i64,
    pub(crate) arrival: u64,
    /// The distinct id that stands for the person.
    pub(crate) person: String,
    properties: BTreeMap<String, Property>,
}

enum Property {
    Text(String),
    Integer(i128),
    Double(f64),
    Boolean(bool),
    Json(String),
}

impl Event {
    pub(crate) fn property(&self, name: &str) -> PropertyValue<'_> {
        match self.properties.get(name) {
            None => PropertyValue::Missing,
            Some(Property::Text(text)) => PropertyValue::Text(text),
            Some(Property::Integer(number)) => PropertyValue::Integer(*number),
            Some(Property::Double(number)) => PropertyValue::Double(*number),
            Some(Property::Boolean(flag)) => PropertyValue::Boolean(*flag),
            Some(Property::Json(json)) => PropertyValue::Json(json),
        }
    }

    /// The person or the group. `None`: it has no such group.
    pub(crate) fn actor(&self, group_type: Option<u8>) -> Option<String> {
        match group_type {
            None => Some(self.person.clone()),
            Some(at) => self.text(&format!("$group_{at}")),
        }
    }

    /// The text of a property that is not empty.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        self.property(name).text().map(|text| text.into_owned()).filter(|text| !text.is_empty())
    }
}

fn property(value: &Value) -> Option<Property> {
    Some(match value {
        Value::Null => return None,
        Value::String(text) => Property::Text(text.clone()),
        Value::Bool(flag) => Property::Boolean(*flag),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => Property::Integer(number.into()),
            (_, Some(number)) => Property::Integer(number.into()),
            _ => Property::Double(number.as_f64().unwrap()),
        },
        value => Property::Json(value.to_string()),
    })
}

/// The events and persons of a project.
pub(crate) struct World {
    /// All that are stored, in the order of their arrival.
    pub(crate) events: Vec<OwnedEvent>,
    /// What each distinct id was merged into.
    pub(crate) persons: HashMap<String, String>,
    /// Erased distinct ids: their events up to this arrival number do not count.
    pub(crate) erased: HashMap<String, u64>,
    /// Later events do not count.
    pub(crate) last: u64,
}

impl World {
    fn new(random: &mut Random, now: i64, ids: usize, size: usize) -> Self {
        let ids: Vec<String> = (0..ids).map(|at| format!("id-{at}")).collect();
        let mut persons = HashMap::new();
        for (at, id) in ids.iter().enumerate() {
            // Merged into an earlier one, which may be merged itself.
            let into = match random.one_in(3) {
                true => ids[random.below(at + 1)].clone(),
                false => id.clone(),
            };
            let into = persons.get(&into).cloned().unwrap_or(into);
            persons.insert(id.clone(), into);
        }
        let mut arrival = 0;
        let mut time = now;
        let events = (0..size).map(|_| {
            arrival += 1 + random.below(3) as u64;
            // Some have the time of the one before, or nearly.
            time = match random.below(6) {
                0 => time,
                1 => time + HOUR / 4,
                2 => now - HOUR * random.below(24 * 12) as i64,
                3 => now - random.below(12 * 24 * 3600) as i64 * 1_000_000,
                4 => now - HOUR * 24 * random.below(60) as i64,
                _ => time - random.below(90) as i64 * 60_000_000,
            };
            OwnedEvent {
                arrival,
                uuid: Uuid::from_u128(arrival.into()),
                event: (*random.pick(&NAMES)).to_owned(),
                distinct_id: random.pick(&ids).clone(),
                timestamp: time,
                received_at: time,
                properties: properties(random, arrival),
                elements_chain: String::new(),
                historical: false,
                warnings: Vec::new(),
            }
        });
        let events: Vec<OwnedEvent> = events.collect();
        let mut erased = HashMap::new();
        if random.one_in(3) {
            erased.insert(random.pick(&ids).clone(), random.below(arrival as usize + 1) as u64);
        }
        let later = if random.one_in(3) { arrival / 5 } else { 0 };
        Self { events, persons, erased, last: arrival - later }
    }

    /// The events that count.
    pub(crate) fn counted(&self) -> Vec<Event> {
        let counts = |event: &&OwnedEvent| {
            let erased = self.erased.get(&event.distinct_id);
            event.arrival <= self.last && erased.is_none_or(|bound| event.arrival > *bound)
        };
        let event = |event: &OwnedEvent| {
            let object: serde_json::Map<String, Value> =
                serde_json::from_str(&event.properties).unwrap();
            let properties = object.iter();
            Event {
                name: event.event.clone(),
                time: event.timestamp,
                arrival: event.arrival,
                person: self.persons[&event.distinct_id].clone(),
                properties: properties
                    .filter_map(|(name, value)| Some((name.clone(), property(value)?)))
                    .collect(),
            }
        };
        self.events.iter().filter(counts).map(event).collect()
    }

    /// The id of the person that a distinct id stands for.
    pub(crate) fn person_id(distinct_id: &str) -> Uuid {
        let number: u128 = distinct_id.trim_start_matches("id-").parse().unwrap();
        Uuid::from_u128(number + 0xABC0_0000)
    }

    /// The persons that have a record, by the distinct id that stands for them.
    pub(crate) fn records(&self) -> BTreeMap<String, Person> {
        let mut records = BTreeMap::new();
        for at in 0..self.persons.len() {
            let id = format!("id-{at}");
            let at = i64::try_from(at).unwrap();
            if self.persons[&id] != id || at % 4 == 3 {
                continue;
            }
            let tier = ["gold", "silver"][at as usize % 2];
            let mut own: Vec<String> = self
                .persons
                .iter()
                .filter(|(_, of)| **of == id)
                .map(|(id, _)| id.clone())
                .collect();
            own.sort();
            records.insert(
                id,
                Person {
                    properties: format!(r#"{{"tier":"{tier}","age":{at}.0,"o":{{"x":[{at}]}}}}"#),
                    created_at: 1_700_000_000_000_000 + at,
                    is_identified: at % 3 == 0,
                    distinct_ids: own,
                },
            );
        }
        records
    }

    /// The stored events that count, with the distinct ids that stand for their persons.
    pub(crate) fn counted_events<'a>(&'a self) -> Vec<(&'a OwnedEvent, &'a str)> {
        let counts = |event: &&OwnedEvent| {
            let erased = self.erased.get(&event.distinct_id);
            event.arrival <= self.last && erased.is_none_or(|bound| event.arrival > *bound)
        };
        let of = |event: &'a OwnedEvent| (event, self.persons[&event.distinct_id].as_str());
        self.events.iter().filter(counts).map(of).collect()
    }

    pub(crate) fn earliest(&self) -> Option<Timestamp> {
        let times = self.counted().into_iter().map(|event| event.time);
        times.min().map(Timestamp::from_micros)
    }
}

/// The case of a number, with fewer events than `size`.
pub(crate) fn case(random: &mut Random, size: usize) -> Case {
    let (ids, size) = (1 + random.below(12), random.below(size));
    let layouts =
        [(Layout::Blocks, 1), (Layout::Segments, 1), (Layout::Mixed, 3), (Layout::TableColumns, 2)];
    case_of(random, ids, size, &layouts)
}

/// A case of so many distinct ids and events.
pub(crate) fn case_of(
    random: &mut Random,
    ids: usize,
    size: usize,
    layouts: &[(Layout, usize)],
) -> Case {
    let now = Timestamp::parse(NOW).unwrap();
    let week = if random.one_in(2) { WeekStart::Sunday } else { WeekStart::Monday };
    let world = World::new(random, now.micros(), ids, size);
    let stored = layouts
        .iter()
        .map(|(layout, threads)| (TestSource::new(&world, *layout, random), *threads))
        .collect();
    Case {
        sources: stored,
        world,
        calendar: Calendar::new(ZONES[random.below(ZONES.len())], week).unwrap(),
        internal: filters_of(&json!([{ "key": "plan", "operator": "is_not", "value": "free" }])),
        now,
    }
}

fn filters_of(value: &Value) -> FilterGroup {
    let query = json!({ "kind": "LifecycleQuery", "series": [{}], "properties": value });
    match weir_questions::Query::read(&query).unwrap() {
        weir_questions::Query::Lifecycle(query) => query.scope.properties,
        _ => unreachable!(),
    }
}

/// Text of properties: in other orders, with names twice, escaped or missing, and with values
/// of other types.
fn properties(random: &mut Random, arrival: u64) -> String {
    let mut members: Vec<String> = Vec::new();
    if random.one_in(2) {
        members.push(format!("\"uuid\":\"u{arrival}\""));
    }
    let plans =
        [r#""pro""#, r#""free""#, r#""""#, "null", "5", "true", r#""pr\u006f""#, "[1,\"a\"]"];
    let prices = [
        "1",
        "2.5",
        "0.1",
        "1e3",
        "-0",
        "5",
        "5.0",
        "9007199254740993",
        "9007199254740992",
        "18446744073709551615",
        "1e300",
        "-1e300",
        r#""7""#,
        r#""x""#,
        "null",
        "-3.25",
    ];
    let urls = [r#""/""#, r#""/a""#, r#""/a/""#, r#""/b?""#, r#""/b#""#, r#""/c\\d""#];
    for (name, values, share) in [
        ("\"plan\"", &plans[..], 2),
        ("\"pl\\u0061n\"", &plans[..], 9),
        ("\"price\"", &prices[..], 2),
        ("\"$current_url\"", &urls[..], 2),
        ("\"$screen_name\"", &[r#""Home""#, r#""Cart""#][..], 2),
        ("\"$group_0\"", &[r#""acme""#, r#""corp""#, r#""""#, "3"][..], 2),
        ("\"$session_id\"", &[r#""s1""#, r#""s2""#, r#""s3""#, r#""s4""#][..], 2),
        ("\"$pathname\"", &[r#""/""#, r#""/a""#, r#""/b""#, r#""""#][..], 2),
        ("\"utm_source\"", &[r#""news""#, r#""ad""#][..], 3),
        ("\"count\"", &["1", "2", "3", "40"][..], 1),
        ("\"browser\"", &[r#""Chrome""#, r#""Firefox""#][..], 1),
        ("\"ok\"", &["true", "false"][..], 1),
        ("\"day\"", &[r#""2026-10-25""#, r#""2026-10-26T10:00:00Z""#, "1793000000"][..], 4),
        ("\"o\"", &[r#"{"plan":"inner"}"#][..], 5),
    ] {
        if random.one_in(share) {
            members.push(format!("{name}:{}", random.pick(values)));
        }
    }
    if random.one_in(8) {
        members.push(format!("\"plan\" : {}", random.pick(&plans)));
    }
    if random.one_in(3) && !members.is_empty() {
        let at = random.below(members.len());
        members.rotate_left(at);
    }
    format!("{{{}}}", members.join(","))
}

/// A property that questions filter and divide by.
pub(crate) fn any_property(random: &mut Random) -> &'static str {
    const NAMES: [&str; 8] =
        ["plan", "price", "count", "browser", "ok", "$current_url", "none", "o"];
    NAMES[random.below(NAMES.len())]
}

pub(crate) fn any_filters(random: &mut Random) -> Value {
    let filters: Vec<Value> = (0..random.below(3)).map(|_| any_filter(random)).collect();
    match random.below(4) {
        0 => json!({ "type": "OR", "values": filters }),
        1 => json!({ "type": "AND", "values": [{ "type": "OR", "values": filters }] }),
        _ => json!(filters),
    }
}

fn any_filter(random: &mut Random) -> Value {
    let operators = [
        "exact",
        "is_not",
        "icontains",
        "not_icontains",
        "regex",
        "not_regex",
        "is_set",
        "is_not_set",
        "gt",
        "lte",
        "between",
        "not_between",
        "is_date_before",
        "is_date_exact",
    ];
    let operator = *random.pick(&operators);
    let (key, value) = match operator {
        "gt" | "lte" => ("price", json!(random.pick(&["5", "9007199254740992", "2.5"]))),
        "between" | "not_between" => ("price", json!([1, 7])),
        "is_date_before" | "is_date_exact" => ("day", json!("2026-10-26")),
        "regex" | "not_regex" => ("$current_url", json!("^/[a-b]")),
        _ => (
            any_property(random),
            random
                .pick(&[json!("pro"), json!(["pro", "5"]), json!("C"), json!(5), json!(true)])
                .clone(),
        ),
    };
    json!({ "key": key, "operator": operator, "value": value })
}

pub(crate) fn any_dates(random: &mut Random) -> Value {
    random
        .pick(&[
            json!({}),
            json!({ "date_from": "-7d" }),
            json!({ "date_from": "-3d", "date_to": "-1d" }),
            json!({ "date_from": "-30h" }),
            json!({ "date_from": "2026-10-20T10:30:00", "date_to": "2026-10-27T11:00:00",
                "explicitDate": true }),
            json!({ "date_from": "mStart" }),
            json!({ "date_from": "-14d", "date_to": "2026-10-27" }),
        ])
        .clone()
}

/// An event of a series. `None`: all events.
pub(crate) fn any_event(random: &mut Random) -> Option<&'static str> {
    (!random.one_in(4)).then(|| *random.pick(&NAMES))
}

pub(crate) fn any_breakdown(random: &mut Random) -> Value {
    let limit = 1 + random.below(4);
    match random.below(5) {
        0 => json!({ "breakdown": any_property(random), "breakdown_limit": limit }),
        1 => json!({ "breakdown": "$current_url", "breakdown_normalize_url": true,
            "breakdown_limit": limit }),
        2 => json!({ "breakdowns": [{ "property": any_property(random) },
            { "property": any_property(random) }], "breakdown_limit": limit }),
        3 => json!({ "breakdown": any_property(random), "breakdown_limit": limit,
            "breakdown_hide_other_aggregation": true }),
        _ => json!({ "breakdowns": [{ "property": any_property(random) }] }),
    }
}

/// The different items, in the order in which they come.
pub(crate) fn different<T: Clone + Eq + std::hash::Hash>(
    items: impl IntoIterator<Item = T>,
) -> Vec<T> {
    let mut seen = HashSet::new();
    items.into_iter().filter(|item| seen.insert(item.clone())).collect()
}
