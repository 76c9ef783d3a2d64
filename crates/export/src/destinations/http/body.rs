//! The body of a request to `/batch/`.
//!
//! What belongs here: from rows to JSON, and dividing a body into smaller ones. What does
//! not: sending (`http`).

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::value::RawValue;
use uuid::Uuid;
use weir_model::Timestamp;

use crate::columns::{Columns, Source};
use crate::destination::Failure;
use crate::rows::{Cell, Kind};

/// Tells receivers not to look up the location of the exporting machine.
const GEOIP: &str = "$geoip_disable";
/// The property in which receivers expect the chain of clicked elements.
const CHAIN: &str = "$elements_chain";

/// The columns, in the order in which [`Events::push`] reads them.
pub(super) fn columns() -> Columns {
    Columns::of(&[
        ("uuid", Kind::Uuid, Source::Uuid),
        ("distinct_id", Kind::Text, Source::DistinctId),
        ("timestamp", Kind::Timestamp, Source::Timestamp),
        ("event", Kind::Text, Source::Event),
        ("properties", Kind::Json, Source::Properties),
        ("elements_chain", Kind::Text, Source::ElementsChain),
    ])
}

/// Events in order, as JSON text.
#[derive(Debug, Default)]
pub(super) struct Events {
    /// The events, each followed by a comma.
    text: Vec<u8>,
    /// The end of each event in the text, before its comma.
    ends: Vec<usize>,
    uuids: Vec<Option<Uuid>>,
    arrivals: Vec<u64>,
}

impl Events {
    /// Number of events.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Bytes of text.
    pub(super) fn size(&self) -> usize {
        self.text.len()
    }

    /// The arrival number of an event.
    pub(super) fn arrival(&self, at: usize) -> Option<u64> {
        self.arrivals.get(at).copied()
    }

    /// The id of an event.
    pub(super) fn uuid(&self, at: usize) -> Option<Uuid> {
        self.uuids.get(at).copied().flatten()
    }

    /// Adds an event, given as a row of [`columns`].
    pub(super) fn push(&mut self, row: &[Cell], arrival: u64) -> Result<(), Failure> {
        let [uuid, distinct_id, timestamp, event, properties, chain] = row else {
            return Err(Failure::permanent("WrongColumns", "The rows are not those of events."));
        };
        let properties = match properties {
            Cell::Json(text) => text,
            _ => "{}",
        };
        let chain = match chain {
            Cell::Text(text) => text,
            _ => "",
        };
        for (name, cell) in [
            ("{\"uuid\":", uuid),
            (",\"distinct_id\":", distinct_id),
            (",\"timestamp\":", timestamp),
            (",\"event\":", event),
        ] {
            self.text.extend_from_slice(name.as_bytes());
            put(&mut self.text, cell);
        }
        self.text.extend_from_slice(b",\"properties\":");
        put_properties(&mut self.text, properties, chain);
        self.text.push(b'}');
        self.ends.push(self.text.len());
        self.text.push(b',');
        self.uuids.push(match uuid {
            Cell::Uuid(uuid) => Some(*uuid),
            _ => None,
        });
        self.arrivals.push(arrival);
        Ok(())
    }

    /// The text of a range of events, with commas between them.
    pub(super) fn text(&self, events: &Range<usize>) -> &[u8] {
        let start = match events.start.checked_sub(1) {
            Some(before) => self.ends.get(before).map_or(0, |end| end + 1),
            None => 0,
        };
        let end = events.end.checked_sub(1).and_then(|last| self.ends.get(last).copied());
        self.text.get(start..end.unwrap_or(start)).unwrap_or_default()
    }
}

/// The complete body with these events.
pub(super) fn whole(head: &[u8], events: &[u8]) -> Vec<u8> {
    [head, events, b"]}"].concat()
}

/// The text before the events in every body.
pub(super) fn head(token: &str) -> Vec<u8> {
    let mut head = b"{\"api_key\":".to_vec();
    put_text(&mut head, token);
    head.extend_from_slice(b",\"historical_migration\":true,\"batch\":[");
    head
}

fn put(out: &mut Vec<u8>, cell: &Cell) {
    match cell {
        Cell::Uuid(uuid) => put_text(out, &uuid.hyphenated().to_string()),
        Cell::Text(text) => put_text(out, text),
        Cell::Timestamp(micros) => {
            put_text(out, &Timestamp::from_micros(*micros).to_string());
        }
        // The columns have no other kinds.
        _ => out.extend_from_slice(b"null"),
    }
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(serde_json::Value::from(text).to_string().as_bytes());
}

/// Writes the text of an object with the properties that the receiver needs. The text of
/// numbers stays unchanged.
fn put_properties(out: &mut Vec<u8>, properties: &str, chain: &str) {
    let names_ours =
        properties.contains(GEOIP) || (!chain.is_empty() && properties.contains(CHAIN));
    let without;
    let properties = match names_ours.then(|| without_ours(properties, chain)).flatten() {
        Some(text) => {
            without = text;
            without.as_str()
        }
        None => properties,
    };
    let inner = properties.trim().strip_prefix('{').and_then(|text| text.strip_suffix('}'));
    let inner = inner.unwrap_or_default().trim();
    out.push(b'{');
    out.extend_from_slice(inner.as_bytes());
    if !inner.is_empty() {
        out.push(b',');
    }
    put_text(out, GEOIP);
    out.extend_from_slice(b":true");
    if !chain.is_empty() {
        out.push(b',');
        put_text(out, CHAIN);
        out.push(b':');
        put_text(out, chain);
    }
    out.push(b'}');
}

/// The text of an object without the properties that are added. A name that occurs twice
/// is read differently by different receivers.
fn without_ours(properties: &str, chain: &str) -> Option<String> {
    let mut all: BTreeMap<String, &RawValue> = serde_json::from_str(properties).ok()?;
    all.remove(GEOIP);
    if !chain.is_empty() {
        all.remove(CHAIN);
    }
    serde_json::to_string(&all).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn row(event: &str, properties: &str, chain: &str) -> Vec<Cell> {
        vec![
            Cell::Uuid(Uuid::from_u128(7)),
            Cell::Text("ann \"a\" \u{0}".to_owned()),
            Cell::Timestamp(1_782_900_000_123_456),
            Cell::Text(event.to_owned()),
            Cell::Json(properties.to_owned()),
            Cell::Text(chain.to_owned()),
        ]
    }

    fn text(properties: &str, chain: &str) -> String {
        let mut out = Vec::new();
        put_properties(&mut out, properties, chain);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_body_is_that_of_a_historical_migration() {
        let mut events = Events::default();
        events.push(&row("a", r#"{"n":1}"#, ""), 5).unwrap();
        events.push(&row("$autocapture", "{}", "a:href=\"/\""), 9).unwrap();
        let body = whole(&head("phc_\"x"), events.text(&(0..2)));
        let expected = json!({
            "api_key": "phc_\"x",
            "historical_migration": true,
            "batch": [
                {
                    "uuid": "00000000-0000-0000-0000-000000000007",
                    "distinct_id": "ann \"a\" \u{0}",
                    "timestamp": "2026-07-01T10:00:00.123456Z",
                    "event": "a",
                    "properties": {"n": 1, "$geoip_disable": true},
                },
                {
                    "uuid": "00000000-0000-0000-0000-000000000007",
                    "distinct_id": "ann \"a\" \u{0}",
                    "timestamp": "2026-07-01T10:00:00.123456Z",
                    "event": "$autocapture",
                    "properties": {"$geoip_disable": true, "$elements_chain": "a:href=\"/\""},
                },
            ],
        });
        assert_eq!(serde_json::from_slice::<Value>(&body).unwrap(), expected);
        assert_eq!((events.arrival(1), events.len()), (Some(9), 2));
    }

    #[test]
    fn a_body_is_cut_between_events() {
        let mut events = Events::default();
        for n in 0..5 {
            events.push(&row(&format!("e{n}"), r#"{"a":"},{"}"#, ""), n).unwrap();
        }
        for (start, end) in [(0, 5), (0, 2), (2, 5), (3, 4), (4, 5), (0, 0)] {
            let body = whole(&head("t"), events.text(&(start..end)));
            let body: Value = serde_json::from_slice(&body).unwrap();
            let names = body["batch"].as_array().unwrap().iter().map(|event| &event["event"]);
            let names: Vec<_> = names.map(|name| name.as_str().unwrap().to_owned()).collect();
            let expected: Vec<_> = (start..end).map(|n| format!("e{n}")).collect();
            assert_eq!(names, expected);
        }
    }

    #[test]
    fn numbers_and_nested_values_keep_their_text() {
        let properties =
            r#"{"big":9007199254740993,"f":1.10e2,"o":{"b":[null,1.0]},"s":"é\u0000"}"#;
        let inner = properties.strip_suffix('}').unwrap();
        let expected = format!("{inner},\"$geoip_disable\":true}}");
        assert_eq!(text(properties, ""), expected);
    }

    #[test]
    fn what_is_put_in_stands_there_once() {
        assert_eq!(text("{}", ""), r#"{"$geoip_disable":true}"#);
        assert_eq!(text(" { } ", ""), r#"{"$geoip_disable":true}"#);
        assert_eq!(
            text(r#"{"$geoip_disable":false,"b":9007199254740993}"#, ""),
            r#"{"b":9007199254740993,"$geoip_disable":true}"#
        );
        assert_eq!(
            text(r#"{"$elements_chain":7}"#, ""),
            r#"{"$elements_chain":7,"$geoip_disable":true}"#
        );
        assert_eq!(
            text(r#"{"$elements_chain":7}"#, "a:"),
            r#"{"$geoip_disable":true,"$elements_chain":"a:"}"#
        );
        // The word occurs as a value here, not as a name.
        assert_eq!(
            text(r#"{"a":"$geoip_disable"}"#, ""),
            r#"{"a":"$geoip_disable","$geoip_disable":true}"#
        );
    }

    #[test]
    fn rows_of_other_columns_are_refused() {
        assert!(Events::default().push(&[Cell::Null], 1).is_err());
    }
}
