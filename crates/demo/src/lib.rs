//! The demo: the events of a made-up shop, the same each time, at times relative to now.
//!
//! What belongs here: which requests the shop sends, and when. What does not: sending them,
//! and what an administrator of the shop does in Weir (`weir-server`).
//!
//! Invariant: names and counts depend on the number of days alone. The time decides only
//! when something happens: a day is the 24 hours before the same time of the next day, and
//! visits come at the hours at which people visit a shop.

mod random;
mod shop;
mod visits;

use std::collections::BTreeMap;

use serde_json::Value;
use weir_model::Timestamp;

use visits::Writer;

/// The longest time that the demo covers, in days.
pub const DAYS_MAX: u8 = 30;

/// Name of the organization.
pub const ORGANIZATION: &str = "Fernhill Tea";
/// Name of the project.
pub const PROJECT: &str = "Web shop";

/// Microseconds of a second.
const SECOND: i64 = 1_000_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
/// Events of this time are in one request. Those of the last day are sent more often,
/// because charts show that day by the minute.
const SLICE: i64 = HOUR;
const LAST_SLICE: i64 = 15 * MINUTE;

/// A user of Weir in the shop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Colleague {
    /// First name.
    pub name: &'static str,
    /// E-mail address.
    pub email: &'static str,
}

/// The owner of the organization.
pub const OWNER: Colleague = Colleague { name: "Ada", email: "ada@fernhill.example" };
/// Those whom the owner invites.
pub const COLLEAGUES: [Colleague; 2] = [
    Colleague { name: "Ben", email: "ben@fernhill.example" },
    Colleague { name: "Chloe", email: "chloe@fernhill.example" },
];

/// The content of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// Events, with the key of the project.
    Events(Vec<Value>),
    /// Events, with a key that no project has.
    UnknownKey(Vec<Value>),
    /// A body that is not JSON.
    Broken(&'static str),
}

/// A request that the shop sends.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// When it arrives.
    pub at: Timestamp,
    /// The day of the month, from 0.
    pub day: u8,
    /// What it contains.
    pub content: Content,
}

/// What the shop sends in a number of days.
#[derive(Debug, Clone, PartialEq)]
pub struct Month {
    /// When the first day begins.
    pub begin: Timestamp,
    /// When the last day ends.
    pub end: Timestamp,
    /// The number of days.
    pub days: u8,
    /// The requests, in the order of their times.
    pub requests: Vec<Request>,
}

impl Month {
    /// The days before `end`: at least one, and at most [`DAYS_MAX`].
    pub fn new(end: Timestamp, days: u8) -> Self {
        let days = days.clamp(1, DAYS_MAX);
        let begin = end.micros() - i64::from(days) * DAY;
        let mut writer = Writer::new(begin, end.micros());
        for day in 0..days {
            writer.write(day);
        }
        let day_of = |at: i64| {
            let day = u8::try_from((at - begin) / DAY).unwrap_or(0);
            day.min(days - 1)
        };
        let last_day = begin + i64::from(days - 1) * DAY;
        let mut slices: BTreeMap<i64, Vec<(i64, Value)>> = BTreeMap::new();
        for (at, event) in writer.events {
            let length = if at < last_day { SLICE } else { LAST_SLICE };
            let slice = (at - begin) / length * length;
            slices.entry(slice).or_default().push((at, event));
        }
        let mut requests: Vec<Request> = slices
            .into_values()
            .map(|mut events| {
                events.sort_by_key(|(at, _)| *at);
                let last = events.last().map_or(begin, |(at, _)| *at);
                let events = events.into_iter().map(|(_, event)| event).collect();
                request(last + SECOND, day_of(last), Content::Events(events))
            })
            .collect();
        let others = writer.others.into_iter();
        requests.extend(others.map(|(at, content)| request(at, day_of(at), content)));
        requests.sort_by_key(|request| request.at);
        Self { begin: Timestamp::from_micros(begin), end, days, requests }
    }
}

fn request(at: i64, day: u8, content: Content) -> Request {
    Request { at: Timestamp::from_micros(at), day, content }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn end(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    /// The events of a request with the key of the project.
    fn of(request: &Request) -> &[Value] {
        match &request.content {
            Content::Events(events) => events,
            Content::UnknownKey(_) | Content::Broken(_) => &[],
        }
    }

    fn events(month: &Month) -> Vec<&Value> {
        month.requests.iter().flat_map(of).collect()
    }

    /// How often each name and distinct id occurs.
    fn counts(month: &Month) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for event in events(month) {
            for part in ["event", "distinct_id", "uuid"] {
                *counts.entry(format!("{part} {}", event[part])).or_default() += 1;
            }
        }
        counts
    }

    #[test]
    fn names_and_counts_are_the_same_at_any_time() {
        for days in [1, 3, DAYS_MAX] {
            let month = Month::new(end("2026-06-01T10:00:00Z"), days);
            assert_eq!(month, Month::new(end("2026-06-01T10:00:00Z"), days));
            let other = Month::new(end("2027-02-11T23:59:59.5Z"), days);
            assert_eq!(counts(&month), counts(&other));
            let others = |month: &Month| {
                let is_other = |request: &&Request| !matches!(request.content, Content::Events(_));
                month.requests.iter().filter(is_other).count()
            };
            assert_eq!(others(&month), others(&other));
        }
    }

    #[test]
    fn nothing_is_before_the_begin_or_after_the_end() {
        for (now, days) in [("2026-06-01T00:00:00Z", 2), ("2026-06-01T19:20:00Z", DAYS_MAX)] {
            let month = Month::new(end(now), days);
            assert_eq!(month.end.micros() - month.begin.micros(), i64::from(days) * DAY);
            assert!(month.requests.is_sorted_by_key(|request| request.at));
            let mut on_days = vec![0; usize::from(days)];
            for request in &month.requests {
                assert!(month.begin < request.at && request.at <= month.end, "{}", request.at);
                on_days[usize::from(request.day)] += 1;
            }
            assert!(on_days.iter().all(|requests| *requests > 3), "{on_days:?}");
            for event in events(&month) {
                let time = event["timestamp"].as_str().and_then(Timestamp::parse);
                let is_within = |time: Timestamp| month.begin <= time && time < month.end;
                // One is not a time, on purpose.
                assert!(time.is_none_or(is_within), "{event}");
            }
        }
    }

    #[test]
    fn the_month_has_everything_that_the_demo_shows() {
        let month = Month::new(end("2026-06-01T10:00:00Z"), DAYS_MAX);
        let events = events(&month);
        assert!((5_000..15_000).contains(&events.len()), "{}", events.len());
        let count = |name: &str| events.iter().filter(|event| event["event"] == name).count();
        for (name, least) in [
            ("$pageview", 1_000),
            ("order placed", 100),
            ("order shipped", 80),
            ("$identify", 80),
            ("$create_alias", 3),
            ("$groupidentify", 6),
            ("$snapshot", 3),
            ("", 3),
        ] {
            assert!(count(name) >= least, "{name}: {}", count(name));
        }
        let bots = events
            .iter()
            .filter(|event| event["properties"]["$raw_user_agent"].as_str() == Some(shop::BOT));
        assert!(bots.count() >= 60);
        let without_id = events.iter().filter(|event| event.get("distinct_id").is_none());
        assert!(without_id.count() >= 10);
        // The failing plugin fails on the last day too.
        let failing = |day: u8| {
            let requests = month.requests.iter().filter(|request| request.day == day);
            let orders = requests.flat_map(of).filter(|event| event["event"] == "order placed");
            orders.filter(|order| order["properties"].get("delivery_slot").is_none()).count()
        };
        assert!((0..DAYS_MAX).map(failing).sum::<usize>() >= 25);
        assert!(failing(DAYS_MAX - 1) >= 1);
        let unknown = |request: &&Request| matches!(request.content, Content::UnknownKey(_));
        assert!(month.requests.iter().filter(unknown).count() >= 5);
    }
}
