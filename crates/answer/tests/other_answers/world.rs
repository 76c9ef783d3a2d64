//! Events and merges of persons that a number chooses.

use std::collections::HashMap;

use serde_json::{Value, json};
use uuid::Uuid;
use weir_model::Timestamp;
use weir_segments::OwnedEvent;

pub(crate) use crate::random::Random;

const EVENTS: usize = 3_000;
const IDS: usize = 400;
/// Ids of events are among these.
const IDS_WITH_EVENTS: usize = 370;
const MERGES: usize = 150;
/// After clocks were set back in Europe and in America.
const NOW: &str = "2026-11-03T14:05:30Z";
const SECOND: i64 = 1_000_000;
const HOUR: i64 = 3_600 * SECOND;
const WEEKS: usize = 6;

pub(crate) const NAMES: [&str; 6] =
    ["$pageview", "$screen", "buy", "sign up", "ünlock", "$autocapture"];

/// An event that counts.
pub(crate) struct Event {
    pub(crate) time: i64,
    /// The distinct id that stands for the person.
    pub(crate) person: String,
}

/// The events and persons of a project.
pub(crate) struct World {
    /// All that are stored, in the order of their arrival.
    pub(crate) events: Vec<OwnedEvent>,
    /// Distinct ids whose person was merged into that of another one.
    pub(crate) merges: Vec<(String, String)>,
    /// The distinct id that stands for the person of each distinct id.
    pub(crate) persons: HashMap<String, String>,
    /// Erased distinct ids: their events up to this arrival number do not count.
    pub(crate) erased: HashMap<String, u64>,
    /// Later events do not count.
    pub(crate) last: u64,
}

impl World {
    pub(crate) fn new(random: &mut Random) -> Self {
        let ids: Vec<String> = (0..IDS).map(|at| format!("id-{at}")).collect();
        let (merges, persons) = merged(random, &ids);
        let events = events(random, &ids[..IDS_WITH_EVENTS]);
        let arrival = events.last().map_or(0, |event| event.arrival);
        let erased = (0..8).map(|_| {
            let bound = random.below(usize::try_from(arrival).unwrap());
            (random.pick(&ids).clone(), u64::try_from(bound).unwrap())
        });
        Self { events, merges, persons, erased: erased.collect(), last: arrival - 20 }
    }

    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::parse(NOW).unwrap()
    }

    fn remaining(&self) -> impl Iterator<Item = &OwnedEvent> {
        self.events.iter().filter(|event| {
            let erased = self.erased.get(&event.distinct_id);
            event.arrival <= self.last && erased.is_none_or(|bound| event.arrival > *bound)
        })
    }

    /// The events that count.
    pub(crate) fn counted(&self) -> Vec<Event> {
        let event = |event: &OwnedEvent| Event {
            time: event.timestamp,
            person: self.persons[&event.distinct_id].clone(),
        };
        self.remaining().map(event).collect()
    }

    /// The events that count, for the other program.
    pub(crate) fn written(&self) -> Value {
        let event = |event: &OwnedEvent| {
            json!([
                event.event,
                event.timestamp,
                event.arrival,
                event.distinct_id,
                event.properties
            ])
        };
        self.remaining().map(event).collect()
    }

    pub(crate) fn earliest(&self) -> Option<Timestamp> {
        self.remaining().map(|event| event.timestamp).min().map(Timestamp::from_micros)
    }
}

type Merges = (Vec<(String, String)>, HashMap<String, String>);

/// Merges, and the id that stands for each person then.
fn merged(random: &mut Random, ids: &[String]) -> Merges {
    let mut persons: HashMap<String, String> =
        ids.iter().map(|id| (id.clone(), id.clone())).collect();
    let mut merges = Vec::new();
    while merges.len() < MERGES {
        let (from, into) = (random.pick(ids), random.pick(ids));
        let (from, person) = (persons[from].clone(), persons[into].clone());
        if from == person {
            continue;
        }
        for other in persons.values_mut().filter(|other| **other == from) {
            other.clone_from(&person);
        }
        merges.push((from, into.clone()));
    }
    (merges, persons)
}

fn events(random: &mut Random, ids: &[String]) -> Vec<OwnedEvent> {
    let now = Timestamp::parse(NOW).unwrap().micros();
    let mut events = Vec::new();
    let mut arrival = 0;
    while events.len() < EVENTS {
        let busy = if random.one_in(3) { 20 } else { ids.len() };
        let id = random.pick(&ids[..busy]);
        let week = if random.one_in(4) { 1 } else { WEEKS };
        let mut time = now - random.below(week * 7 * 24 * 3_600) as i64 * SECOND;
        if random.one_in(20) {
            // The clock of a sender was wrong.
            time += 24 * HOUR * (random.below(200) as i64 - 180);
        }
        if random.one_in(3) {
            time -= time.rem_euclid(HOUR);
        }
        for _ in 0..=random.below(7) {
            arrival += 1 + random.below(3) as u64;
            let name = if random.one_in(2) { random.below(3) } else { random.below(NAMES.len()) };
            events.push(OwnedEvent {
                arrival,
                uuid: Uuid::from_u128(arrival.into()),
                event: NAMES[name].to_owned(),
                distinct_id: id.clone(),
                timestamp: time,
                received_at: time,
                properties: properties(random),
                elements_chain: String::new(),
                historical: false,
                warnings: Vec::new(),
            });
            time += match random.below(8) {
                0 | 1 => 0,
                2 => HOUR / 2,
                3 => HOUR * random.below(60) as i64,
                4 => random.below(3_000_000) as i64,
                _ => SECOND * random.below(1_200) as i64,
            };
        }
    }
    events
}

/// Text of properties: with names twice, escaped or missing, and with values of other types.
fn properties(random: &mut Random) -> String {
    let plans = [
        r#""pro""#,
        r#""free""#,
        r#""team""#,
        r#""""#,
        "null",
        "5",
        "true",
        "5.5",
        r#""pr\u006f""#,
        r#""PRO""#,
        r#"[1,"a"]"#,
    ];
    let prices = [
        "1",
        "2.5",
        "0.1",
        "0.7",
        "1e3",
        "-0",
        "5",
        "5.0",
        "-3.25",
        "9007199254740993",
        "9007199254740992",
        "18446744073709551615",
        "18446744073709551616",
        "1e300",
        "-1e300",
        "1e-7",
        r#""7""#,
        r#""x""#,
        r#""05""#,
        "null",
        "false",
    ];
    let urls =
        [r#""/""#, r#""/a""#, r#""/a/""#, r#""/b?""#, r#""/b/c#""#, r#""/b/d""#, r#""/c\\d""#, "7"];
    let long = format!(r#""{}""#, "lä".repeat(230));
    let days = [
        r#""2026-10-25""#,
        r#""2026-10-26T10:00:00Z""#,
        r#""2026-10-25 02:30:00""#,
        "1793000000",
        "1793000000000",
        r#""soon""#,
    ];
    let numbers: Vec<String> = (0..12).map(|number| number.to_string()).collect();
    let numbers: Vec<&str> = numbers.iter().map(String::as_str).collect();
    let mut members: Vec<String> = Vec::new();
    for (name, values, share) in [
        ("\"plan\"", &plans[..], 2),
        ("\"pl\\u0061n\"", &plans[..], 9),
        ("\"price\"", &prices[..], 2),
        ("\"$current_url\"", &urls[..], 1),
        ("\"$screen_name\"", &[r#""Home""#, r#""Cart""#, r#""Über""#][..], 1),
        ("\"$group_0\"", &[r#""acme""#, r#""corp""#, r#""""#, "3"][..], 2),
        ("\"$group_1\"", &[r#""north""#, r#""south""#][..], 3),
        ("\"$group_2\"", &numbers[..], 4),
        ("\"$session_id\"", &[r#""s1""#, r#""s2""#, r#""s3""#, r#""s4""#, r#""s5""#][..], 2),
        ("\"$pathname\"", &urls[..], 1),
        ("\"$referring_domain\"", &[r#""a.example""#, r#""b.example""#, r#""""#][..], 2),
        ("\"utm_source\"", &[r#""news""#, r#""ad""#][..], 3),
        ("\"$browser\"", &[r#""Chrome""#, r#""Firefox""#, long.as_str()][..], 2),
        ("\"count\"", &numbers[..], 1),
        ("\"browser\"", &[r#""Chrome""#, r#""Firefox""#, r#""Größe""#][..], 1),
        ("\"ok\"", &["true", "false"][..], 1),
        ("\"day\"", &days[..], 3),
        ("\"o\"", &[r#"{"plan":"inner"}"#, long.as_str()][..], 5),
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
