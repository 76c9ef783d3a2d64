//! A month of events of a web shop: page views and others of persons of whom a few do much,
//! some of them first without a name.

use std::fmt::Write as _;
use std::ops::Range;

use uuid::Uuid;

use super::{DAY, DAYS, Days, FREQUENT, RARE, STEPS, VIEW, time_text};
use crate::api::anonymous;
use crate::events::{People, Source};
use crate::random::{Random, mix};

/// Events of a person on average.
const EACH: u64 = 50;
/// One in so many persons is first without a name.
const MERGED: u64 = 20;
/// One in so many events has the rare property, which has so many values.
const RARE_IN: u64 = 100;
const RARE_VALUES: u64 = 5_000;
const PAGES: u64 = 400;

/// Names of events, and how many of a thousand have each.
const NAMES: [(&str, u64); 7] = [
    (VIEW, 600),
    ("$autocapture", 200),
    (STEPS[1], 110),
    ("cart updated", 50),
    ("checkout started", 24),
    (STEPS[2], 14),
    ("invite sent", 2),
];
/// Values of the frequent property, and how many of a hundred persons have each.
const BROWSERS: [(&str, u64); 6] = [
    ("Chrome", 58),
    ("Safari", 20),
    ("Firefox", 8),
    ("Microsoft Edge", 8),
    ("Opera", 3),
    ("Samsung Internet", 3),
];
const SYSTEMS: [(&str, u64); 5] =
    [("Windows", 45), ("Mac OS X", 22), ("Android", 15), ("iOS", 13), ("Linux", 5)];

/// Events with numbers from 0, in the order of their times. An event follows from its number
/// alone.
#[derive(Debug)]
pub struct History {
    source: Source,
    days: Days,
    events: u64,
    persons: u64,
    /// Microseconds from one event to the next.
    step: u64,
}

impl History {
    /// So many events in these days.
    pub fn new(days: Days, events: u64) -> Self {
        let span = u64::try_from(DAYS * DAY).unwrap_or(0);
        Self {
            source: Source::new(26, People::New),
            days,
            events,
            persons: (events / EACH).max(MERGED),
            step: (span / events.max(1)).max(1),
        }
    }

    /// The number of events.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// The number of persons who may send events.
    pub fn persons(&self) -> u64 {
        self.persons
    }

    /// The uuid of an event.
    pub fn uuid(&self, number: u64) -> Uuid {
        self.source.uuid(number)
    }

    /// A request with these events, as an import sends them.
    pub fn request(&self, key: &str, numbers: Range<u64>) -> Vec<u8> {
        let mut body = format!(r#"{{"api_key":"{key}","historical_migration":true,"batch":["#);
        for number in numbers.clone() {
            if number != numbers.start {
                body.push(',');
            }
            self.write(number, &mut body);
        }
        body.push_str("]}");
        anonymous("POST", "/batch/", &body)
    }

    /// Writes an event of about 1 kB, as the library for browsers sends it.
    fn write(&self, number: u64, text: &mut String) {
        let mut random = Random::new(number);
        let person = skewed(random.number(), self.persons);
        let id = mix(person);
        let offset = number * self.step + random.below(self.step);
        let time = self.days.begin() + i64::try_from(offset).unwrap_or(0);
        let (mut name, mut from) = (chosen(&NAMES, random.number()), "user");
        let mut more = String::new();
        if person.is_multiple_of(MERGED) {
            match random.below(16) {
                0 => {
                    name = "$identify";
                    more = format!(r#""$anon_distinct_id":"anon-{id:016x}","#);
                }
                1..=4 => from = "anon",
                _ => {}
            }
        }
        if random.one_in(RARE_IN) {
            let value = skewed(random.number(), RARE_VALUES);
            more.push_str(&format!(r#""{RARE}":"SAVE-{value:04}","#));
        }
        let page = skewed(random.number(), PAGES);
        let browser = chosen(&BROWSERS, mix(id));
        let system = chosen(&SYSTEMS, mix(!id));
        let uuid = self.uuid(number);
        let session = self.uuid(!(number / 8));
        let time = time_text(time);
        // Writing to a text cannot fail.
        let _ = write!(
            text,
            r#"{{"event":"{name}","distinct_id":"{from}-{id:016x}","uuid":"{uuid}","timestamp":"{time}","properties":{{{more}"{FREQUENT}":"{browser}","$browser_version":{version},"$os":"{system}","$os_version":"10.15.7","$device_type":"Desktop","$timezone":"Europe/Madrid","$browser_language":"es-ES","$current_url":"https://shop.example/products/{page}?utm_source=newsletter","$host":"shop.example","$pathname":"/products/{page}","$screen_height":1080,"$screen_width":1920,"$viewport_height":{height},"$viewport_width":1680,"$lib":"web","$lib_version":"1.434.18","$insert_id":"{insert:016x}","$device_id":"device-{id:016x}","$referrer":"https://news.example/issue/41","$referring_domain":"news.example","utm_source":"newsletter","$session_id":"{session}","$window_id":"{session}","title":"Product {page}","price":{price}.95,"currency":"EUR"}}}}"#,
            version = 120 + id % 20,
            height = 700 + random.below(300),
            insert = random.number(),
            price = 5 + page % 180,
        );
    }
}

/// A number below `count`. Small ones are frequent: the share of the numbers below `n` is the
/// root of that of `n` in `count`.
fn skewed(random: u64, count: u64) -> u64 {
    let share = u128::from(random >> 32);
    u64::try_from((u128::from(count) * share * share) >> 64).unwrap_or(0)
}

/// One of the choices, by their weights.
fn chosen(choices: &[(&'static str, u64)], random: u64) -> &'static str {
    let mut rest = random % choices.iter().map(|(_, weight)| weight).sum::<u64>();
    for &(choice, weight) in choices {
        if rest < weight {
            return choice;
        }
        rest -= weight;
    }
    ""
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use serde_json::Value;

    use super::{History, skewed};
    use crate::questions::tests::NOW;
    use crate::questions::{Days, time_text};

    const EVENTS: u64 = 20_000;

    fn history() -> History {
        History::new(Days::before(NOW), EVENTS)
    }

    fn events(history: &History) -> Vec<Value> {
        let text = String::from_utf8(history.request("phc_x", 0..EVENTS)).unwrap();
        let (_, body) = text.split_once("\r\n\r\n").unwrap();
        let mut body: Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["api_key"], "phc_x");
        assert_eq!(body["historical_migration"], true);
        serde_json::from_value(body["batch"].take()).unwrap()
    }

    fn counts(events: &[Value], of: impl Fn(&Value) -> &Value) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for value in events.iter().filter_map(|event| of(event).as_str()) {
            *counts.entry(value.to_owned()).or_default() += 1;
        }
        counts
    }

    #[test]
    fn events_follow_from_their_numbers() {
        let (history, again) = (history(), history());
        assert_eq!(history.request("phc_x", 40..60), again.request("phc_x", 40..60));
        assert_ne!(history.request("phc_x", 40..60), history.request("phc_x", 60..80));
        let found = events(&history);
        assert_eq!(found[7]["uuid"], history.uuid(7).to_string());
        let alone = String::from_utf8(history.request("phc_x", 7..8)).unwrap();
        assert!(alone.contains(found[7]["uuid"].as_str().unwrap()), "{alone}");
        assert!((800..1400).contains(&alone.len()), "{}", alone.len());
    }

    #[test]
    fn events_are_in_the_order_of_their_times_within_the_days() {
        let days = Days::before(NOW);
        let found = events(&history());
        let times: Vec<&str> =
            found.iter().map(|event| event["timestamp"].as_str().unwrap()).collect();
        assert!(times.is_sorted_by(|one, next| one < next));
        assert!(*times[0] >= *time_text(days.begin()));
        assert!(*times[times.len() - 1] < *time_text(days.end()));
        let dates: BTreeSet<&str> = times.iter().map(|time| &time[..10]).collect();
        assert_eq!(dates.len(), 30);
        let uuids: BTreeSet<&str> =
            found.iter().filter_map(|event| event["uuid"].as_str()).collect();
        assert_eq!(uuids.len(), found.len());
    }

    #[test]
    fn names_and_values_are_as_frequent_as_their_weights_say() {
        let found = events(&history());
        let names = counts(&found, |event| &event["event"]);
        assert!((11_500..12_500).contains(&names["$pageview"]), "{names:?}");
        assert!((150..400).contains(&names["order completed"]), "{names:?}");
        assert!((20..150).contains(&names["$identify"]), "{names:?}");
        let browsers = counts(&found, |event| &event["properties"]["$browser"]);
        assert_eq!(browsers.values().sum::<usize>(), found.len());
        assert_eq!(browsers.len(), 6);
        assert_eq!(browsers.iter().max_by_key(|(_, count)| **count).unwrap().0, "Chrome");
        let coupons = counts(&found, |event| &event["properties"]["coupon"]);
        assert!((140..260).contains(&coupons.values().sum::<usize>()), "{coupons:?}");
        assert!(coupons.len() > 50, "{coupons:?}");
    }

    #[test]
    fn a_few_persons_send_many_events_and_some_have_two_ids() {
        let history = history();
        let found = events(&history);
        let ids = counts(&found, |event| &event["distinct_id"]);
        let anonymous = ids.keys().filter(|id| id.starts_with("anon-")).count();
        let users = ids.len() - anonymous;
        assert!(
            anonymous > 5 && u64::try_from(users).unwrap() <= history.persons(),
            "{anonymous} {users}"
        );
        let most = ids.values().max().unwrap();
        assert!(*most > 500, "{most}");
        for event in found.iter().filter(|event| event["event"] == "$identify") {
            let id = event["distinct_id"].as_str().unwrap();
            let expected = id.replacen("user-", "anon-", 1);
            assert_eq!(event["properties"]["$anon_distinct_id"], expected);
        }
    }

    #[test]
    fn small_numbers_are_frequent() {
        assert_eq!((skewed(0, 7), skewed(u64::MAX, 7)), (0, 6));
        assert_eq!(skewed(u64::MAX / 2, 1_000), 249);
        assert_eq!(skewed(u64::MAX, u64::from(u32::MAX)), u64::from(u32::MAX) - 2);
    }
}
