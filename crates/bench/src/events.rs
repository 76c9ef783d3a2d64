//! Requests with events of about 1 kB in the form of client libraries.
//!
//! A request is built once. Before each use its uuids, ids and times are overwritten in
//! place, so that every event is new at almost no cost.

use std::io::Write as _;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use flate2::Compression;
use flate2::write::GzEncoder;
use uuid::{Builder, Uuid};

use crate::clock::{self, TIME};
use crate::random::mix;

/// The kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A business event of a server library: it creates a person.
    Server,
    /// The same, and it sets person properties.
    Setting,
    /// A page view of an anonymous visitor in a browser: it creates no person.
    Browser,
}

/// The distinct ids of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum People {
    /// Each event has a new distinct id.
    New,
    /// This many distinct ids, repeatedly.
    Known(u64),
}

/// Numbers events, and derives uuid and distinct id from the number.
#[derive(Debug)]
pub struct Source {
    seed: u64,
    people: People,
    next: AtomicU64,
}

impl Source {
    /// A source; sources with different seeds have no event in common.
    pub fn new(seed: u64, people: People) -> Self {
        Self { seed, people, next: AtomicU64::new(0) }
    }

    /// Allocates numbers.
    pub fn take(&self, count: u64) -> Range<u64> {
        let first = self.next.fetch_add(count, Ordering::Relaxed);
        first..first + count
    }

    /// Number of allocated numbers.
    pub fn taken(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }

    /// The uuid of an event. It is random, like those of most libraries: the worst case
    /// for a store.
    pub fn uuid(&self, number: u64) -> Uuid {
        let high = mix(self.seed ^ mix(number));
        let bytes = (u128::from(high) << 64 | u128::from(mix(high ^ number))).to_be_bytes();
        Builder::from_random_bytes(bytes).into_uuid()
    }

    /// The distinct id of an event.
    pub fn distinct_id(&self, number: u64) -> String {
        format!("user-{:016x}", self.person(number))
    }

    /// The person of an event, as a number.
    fn person(&self, number: u64) -> u64 {
        match self.people {
            People::New => mix(self.seed.rotate_left(7) ^ number),
            People::Known(count) => mix(mix(number) % count),
        }
    }
}

/// A part of a text that differs between events.
#[derive(Debug, Clone, Copy)]
enum Field {
    /// The event's uuid.
    Uuid,
    /// Sixteen digits of the person.
    Who,
    /// Another uuid, the same for some consecutive events.
    Session,
    /// Twelve digits.
    Number,
    /// The event time.
    Time,
}

impl Field {
    const ALL: [(&'static str, Self, usize); 5] = [
        ("uuid", Self::Uuid, 36),
        ("who", Self::Who, 16),
        ("session", Self::Session, 36),
        ("number", Self::Number, 12),
        ("time", Self::Time, TIME),
    ];

    fn write(self, source: &Source, number: u64, time: i64, place: &mut [u8]) {
        match self {
            Self::Uuid => write_uuid(source.uuid(number), place),
            Self::Session => write_uuid(source.uuid(!(number / 8)), place),
            Self::Who => {
                for (index, byte) in place.iter_mut().enumerate() {
                    let digit = source.person(number) >> (4 * (15 - index)) & 15;
                    *byte = b"0123456789abcdef"[digit as usize];
                }
            }
            Self::Number => {
                let shown = mix(number ^ 5) % 1_000_000_000_000;
                clock::digits(i64::try_from(shown).unwrap_or(0), place);
            }
            Self::Time => clock::write_time(time, place),
        }
    }
}

fn write_uuid(uuid: Uuid, place: &mut [u8]) {
    if let Ok(place) = <&mut [u8; 36]>::try_from(place) {
        uuid.hyphenated().encode_lower(place);
    }
}

/// A request with parts to overwrite.
#[derive(Debug, Clone)]
pub struct Template {
    /// Header and body.
    bytes: Vec<u8>,
    /// Start of the body.
    body: usize,
    /// For each event the ranges in `bytes`.
    events: Vec<Vec<(Field, Range<usize>)>>,
    /// Bytes of the events without the text around them.
    raw: usize,
}

impl Template {
    /// A request of one event to `/capture/`.
    pub fn single(token: &str, shape: Shape) -> Self {
        let mut text = Text::default();
        text.begin_event();
        text.push(&format!(r#"{{"api_key":"{token}","#));
        let start = text.bytes.len();
        text.push(&event(shape, 0)[1..]);
        let raw = text.bytes.len() - start;
        text.into_request("/capture/", raw)
    }

    /// A request of several events to `/batch/`.
    pub fn batch(token: &str, shape: Shape, count: usize) -> Self {
        let mut text = Text::default();
        let mut raw = 0;
        text.push(&format!(r#"{{"api_key":"{token}","batch":["#));
        for index in 0..count {
            if index > 0 {
                text.push(",");
            }
            text.begin_event();
            let start = text.bytes.len();
            text.push(&event(shape, index));
            raw += text.bytes.len() - start;
        }
        text.push("]}");
        text.into_request("/batch/", raw)
    }

    /// Makes every event a new one; returns their numbers.
    pub fn stamp(&mut self, source: &Source) -> Range<u64> {
        let count = self.events.len() as u64;
        let numbers = source.take(count);
        let now = clock::micros();
        for (number, places) in numbers.clone().zip(&self.events) {
            // Events of a batch happened one after the other.
            let time = now - i64::try_from(numbers.end - number).unwrap_or(0);
            for (field, place) in places {
                field.write(source, number, time, &mut self.bytes[place.clone()]);
            }
        }
        numbers
    }

    /// The current request.
    pub fn request(&self) -> &[u8] {
        &self.bytes
    }

    /// The request with a compressed body, as libraries send it.
    ///
    /// # Errors
    /// Never in practice: the body is in memory.
    pub fn gzip(&self) -> Result<Vec<u8>> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(&self.bytes[self.body..])?;
        let body = encoder.finish()?;
        let mut request = head("/batch/", body.len(), "Content-Encoding: gzip\r\n");
        request.extend_from_slice(&body);
        Ok(request)
    }

    /// Bytes of the events, as JSON.
    pub fn raw_bytes(&self) -> usize {
        self.raw
    }

    /// Number of events in the request.
    pub fn count(&self) -> usize {
        self.events.len()
    }
}

/// Only the properties of an event, for code that writes to the store directly.
pub fn properties(source: &Source, number: u64, time: i64) -> String {
    let mut text = Text::default();
    text.begin_event();
    text.push(&server_properties(usize::try_from(number % 4).unwrap_or(0)));
    for (field, place) in text.events.iter().flatten() {
        field.write(source, number, time, &mut text.bytes[place.clone()]);
    }
    String::from_utf8(text.bytes).unwrap_or_default()
}

/// A text under construction: `<name>` in a pushed text marks a field.
#[derive(Default)]
struct Text {
    bytes: Vec<u8>,
    events: Vec<Vec<(Field, Range<usize>)>>,
}

impl Text {
    fn begin_event(&mut self) {
        self.events.push(Vec::new());
    }

    fn push(&mut self, text: &str) {
        let mut pieces = text.split('<');
        self.bytes.extend_from_slice(pieces.next().unwrap_or_default().as_bytes());
        for piece in pieces {
            let (name, rest) = piece.split_once('>').unwrap_or((piece, ""));
            let found = Field::ALL.into_iter().find(|(known, ..)| *known == name);
            if let (Some((_, field, width)), Some(places)) = (found, self.events.last_mut()) {
                let at = self.bytes.len();
                places.push((field, at..at + width));
                self.bytes.resize(at + width, b'0');
            }
            self.bytes.extend_from_slice(rest.as_bytes());
        }
    }

    fn into_request(self, path: &str, raw: usize) -> Template {
        let mut bytes = head(path, self.bytes.len(), "");
        let body = bytes.len();
        bytes.extend_from_slice(&self.bytes);
        let moved =
            |(field, place): (Field, Range<usize>)| (field, place.start + body..place.end + body);
        let events = self.events.into_iter().map(|e| e.into_iter().map(moved).collect()).collect();
        Template { bytes, body, events, raw }
    }
}

fn head(path: &str, length: usize, more: &str) -> Vec<u8> {
    format!(
        "POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: weir-bench\r\n\
         Content-Type: application/json\r\n{more}Content-Length: {length}\r\n\r\n"
    )
    .into_bytes()
}

/// Event `index` of a request: a few kinds alternate.
fn event(shape: Shape, index: usize) -> String {
    let names = ["order completed", "invoice issued", "report exported", "member invited"];
    let name = names[index % names.len()];
    let (name, properties) = match shape {
        Shape::Server => (name, server_properties(index)),
        Shape::Setting => {
            let set = r#"{"$set":{"last_order":"A-<number>","plan":"team"},"#;
            (name, server_properties(index).replacen('{', set, 1))
        }
        Shape::Browser => ("$pageview", browser_properties(index)),
    };
    format!(
        r#"{{"event":"{name}","properties":{properties},"timestamp":"<time>","uuid":"<uuid>","distinct_id":"user-<who>"}}"#
    )
}

fn server_properties(index: usize) -> String {
    let plan = ["team", "free", "scale", "trial"][index % 4];
    let country = ["ES", "PT", "FR", "DE", "IT"][index % 5];
    let title = ["Red kettle", "Linen towel", "Oak board", "Steel pan"][index / 2 % 4];
    format!(
        r#"{{"order_id":"A-<number>","amount":{}.95,"currency":"EUR","tax":{}.4,"plan":"{plan}","country":"{country}","payment_method":"card","first_order":false,"coupon":null,"items":[{{"sku":"KT-{}","title":"{title}","quantity":1,"price":89.95}},{{"sku":"TW-{}","title":"Tea towel, set of two","quantity":2,"price":19.5}}],"shipping":{{"method":"standard","days":3,"carrier":"blue parcel"}},"campaign":"spring newsletter","source":"newsletter","page":"/checkout/done","request_id":"<session>","experiment":"checkout-b","account":"acme-{}","region":"eu-south","api_version":"2026-05-01","app_version":"4.18.{}","duration_ms":{},"tags":["web","returning","{plan}"],"$session_id":"<session>","$lib":"posthog-node","$lib_version":"5.70.0","$is_server":true,"$geoip_disable":true}}"#,
        20 + index * 7 % 180,
        index * 3 % 40,
        1000 + index * 37 % 900,
        100 + index * 11 % 90,
        index % 50,
        index % 9,
        40 + index * 13 % 900,
    )
}

fn browser_properties(index: usize) -> String {
    let page = ["red-kettle", "linen-towel", "oak-board", "steel-pan"][index % 4];
    format!(
        r#"{{"$os":"Mac OS X","$os_version":"10.15.7","$browser":"Chrome","$browser_version":131,"$device_type":"Desktop","$timezone":"Europe/Madrid","$current_url":"https://shop.example/products/{page}?utm_source=newsletter","$host":"shop.example","$pathname":"/products/{page}","$browser_language":"es-ES","$screen_height":1080,"$screen_width":1920,"$viewport_height":{},"$viewport_width":1680,"$lib":"web","$lib_version":"1.434.18","$insert_id":"<number>","$device_id":"user-<who>","$referrer":"https://news.example/issue/41","$referring_domain":"news.example","utm_source":"newsletter","$session_id":"<session>","$window_id":"<session>","$pageview_id":"<uuid>","title":"{page}","$is_identified":false,"$process_person_profile":false}}"#,
        700 + index * 7 % 300,
    )
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use serde_json::Value;

    use super::{People, Shape, Source, Template, properties};

    fn body(request: &[u8]) -> Value {
        let text = std::str::from_utf8(request).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.ends_with(&format!("Content-Length: {}", body.len())), "{head}");
        serde_json::from_str(body).unwrap()
    }

    #[test]
    fn requests_are_json_and_every_event_is_one_of_its_own() {
        let source = Source::new(3, People::New);
        let mut single = Template::single("phc_x", Shape::Server);
        let numbers = single.stamp(&source);
        let event = body(single.request());
        assert_eq!(event["uuid"], source.uuid(numbers.start).to_string());
        assert_eq!(event["api_key"], "phc_x");
        assert!((900..1200).contains(&single.raw_bytes()), "{}", single.raw_bytes());

        for shape in [Shape::Server, Shape::Setting, Shape::Browser] {
            let mut batch = Template::batch("phc_x", shape, 50);
            let mut seen = HashSet::new();
            for _ in 0..2 {
                batch.stamp(&source);
                for event in body(batch.request())["batch"].as_array().unwrap() {
                    assert!(seen.insert(event["uuid"].to_string()));
                    assert!(seen.insert(event["distinct_id"].to_string()));
                }
            }
            assert_eq!(seen.len(), 200);
            let mean = batch.raw_bytes() / batch.count();
            assert!((900..1200).contains(&mean), "{mean}");
        }
        let alone: Value = serde_json::from_str(&properties(&source, 9, 0)).unwrap();
        assert_eq!(alone["$lib"], "posthog-node");
    }

    #[test]
    fn known_people_come_again() {
        let source = Source::new(3, People::Known(5));
        let people: HashSet<u64> = (0..100).map(|n| source.person(n)).collect();
        assert_eq!(people.len(), 5);
        let mut single = Template::single("phc_x", Shape::Server);
        let number = single.stamp(&source).start;
        assert_eq!(body(single.request())["distinct_id"], source.distinct_id(number));
    }
}
