//! The filter of the events page, as it is in the query of the page, and the check of one
//! row. The page, the live stream and the CSV file use the same filter.

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{LiveRow, Outcome};
use crate::time::Timestamp;

/// Ranges that end now: the name in an address, and seconds.
const RANGES: [(&str, i64); 5] =
    [("1h", 3_600), ("6h", 21_600), ("24h", 86_400), ("7d", 604_800), ("30d", 2_592_000)];

/// A filter as texts. Each may be empty. An invalid value counts as empty, as with other
/// lists.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct EventsFilter {
    /// Part of an event name. Upper and lower case are equal.
    pub event: String,
    /// `accepted`, `altered`, `dropped` or `rejected`.
    pub outcome: String,
    /// Name of a property.
    pub property: String,
    /// Value of the property.
    pub value: String,
    /// A distinct id.
    pub person: String,
    /// A range that ends now, such as `24h`. Empty: without a beginning.
    pub range: String,
    /// Received from this time on. It replaces the range.
    pub from: String,
    /// Received before this time.
    pub to: String,
}

impl EventsFilter {
    /// The names of the values in an address, and the values that are set.
    pub fn pairs(&self) -> Vec<(&'static str, &str)> {
        let all = [
            ("event", &self.event),
            ("outcome", &self.outcome),
            ("property", &self.property),
            ("value", &self.value),
            ("person", &self.person),
            ("range", &self.range),
            ("from", &self.from),
            ("to", &self.to),
        ];
        all.into_iter()
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, value)| (name, value.as_str()))
            .collect()
    }

    /// Sets the value of this name in an address. Unknown names are ignored.
    pub fn set(&mut self, name: &str, value: String) {
        let field = match name {
            "event" => &mut self.event,
            "outcome" => &mut self.outcome,
            "property" => &mut self.property,
            "value" => &mut self.value,
            "person" => &mut self.person,
            "range" => &mut self.range,
            "from" => &mut self.from,
            "to" => &mut self.to,
            _ => return,
        };
        *field = value;
    }

    /// Whether it has a name, a property or a distinct id, so that events have to be searched.
    pub fn searches(&self) -> bool {
        [&self.event, &self.property, &self.person].into_iter().any(|text| !text.trim().is_empty())
    }

    /// Whether a time is set that cannot be read, or the times are in the wrong order.
    pub fn has_invalid_times(&self) -> bool {
        let is_unread = |text: &str| !text.is_empty() && Timestamp::parse_lenient(text).is_none();
        let times = Timestamp::parse_lenient(&self.from).zip(Timestamp::parse_lenient(&self.to));
        is_unread(&self.from) || is_unread(&self.to) || times.is_some_and(|(from, to)| from >= to)
    }

    /// The times of receipt: from the first one (inclusive) to the second one (exclusive).
    /// Times that cannot be read do not count.
    pub fn times(&self, now: Timestamp) -> (Option<Timestamp>, Option<Timestamp>) {
        let is_valid = !self.has_invalid_times();
        let time = |text: &str| Timestamp::parse_lenient(text).filter(|_| is_valid);
        let (from, to) = (time(&self.from), time(&self.to));
        let seconds = RANGES.into_iter().find(|(name, _)| *name == self.range);
        let end = to.unwrap_or(now);
        let begin = seconds.map(|(_, seconds)| end.plus_seconds(-seconds));
        (from.or(begin), to)
    }

    /// The filter of rows.
    pub fn rows(&self, now: Timestamp) -> RowFilter {
        let set = |text: &str| Some(text.trim()).filter(|t| !t.is_empty()).map(str::to_owned);
        let (from, to) = self.times(now);
        RowFilter {
            event: set(&self.event).map(|name| name.to_lowercase()),
            outcome: OutcomeLabel::of_word(&self.outcome),
            property: set(&self.property).map(|name| PropertyFilter::new(&name, self.value.trim())),
            distinct_id: set(&self.person),
            from,
            to,
        }
    }
}

/// The outcome of an event in the words of the app.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutcomeLabel {
    /// Stored without changes.
    Accepted,
    /// Stored with changes.
    Altered,
    /// Not stored.
    Dropped,
    /// Not stored because its request was refused.
    Rejected,
}

impl OutcomeLabel {
    /// All labels.
    pub const ALL: [Self; 4] = [Self::Accepted, Self::Altered, Self::Dropped, Self::Rejected];

    /// The word in an address.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Altered => "altered",
            Self::Dropped => "dropped",
            Self::Rejected => "rejected",
        }
    }

    /// The label, which does not rely on colour.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Accepted => "Accepted",
            Self::Altered => "Altered",
            Self::Dropped => "Dropped",
            Self::Rejected => "Rejected",
        }
    }

    fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|label| label.word() == word)
    }

    /// The label of an event or request with this outcome, with or without reasons.
    pub const fn of(outcome: Outcome, has_reasons: bool) -> Self {
        match outcome {
            Outcome::Accepted if has_reasons => Self::Altered,
            Outcome::Accepted => Self::Accepted,
            Outcome::Dropped => Self::Dropped,
            Outcome::Rejected => Self::Rejected,
        }
    }
}

/// What the filter reads of a row.
#[derive(Debug, Clone, Copy)]
pub struct RowFacts<'a> {
    /// The outcome.
    pub label: OutcomeLabel,
    /// Event name.
    pub event: Option<&'a str>,
    /// Distinct id.
    pub distinct_id: Option<&'a str>,
    /// The event, or its properties, as JSON.
    pub json: &'a str,
    /// Time of receipt.
    pub received_at: Timestamp,
}

/// A filter of rows. Unset values take all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RowFilter {
    /// Part of the event name, in lower case.
    pub event: Option<String>,
    /// The outcome.
    pub outcome: Option<OutcomeLabel>,
    /// A property.
    pub property: Option<PropertyFilter>,
    /// The distinct id.
    pub distinct_id: Option<String>,
    /// Received at this time or later.
    pub from: Option<Timestamp>,
    /// Received before this time.
    pub to: Option<Timestamp>,
}

impl RowFilter {
    /// Whether rows with this label can match.
    pub fn takes_label(&self, label: OutcomeLabel) -> bool {
        self.outcome.is_none_or(|wanted| wanted == label)
    }

    /// Whether events of this name can match.
    pub fn takes_name(&self, name: &str) -> bool {
        self.event.as_ref().is_none_or(|part| name.to_lowercase().contains(part))
    }

    /// Whether the row matches.
    pub fn takes(&self, row: &RowFacts<'_>) -> bool {
        self.takes_label(row.label)
            && self.from.is_none_or(|from| row.received_at >= from)
            && self.to.is_none_or(|to| row.received_at < to)
            && self.distinct_id.as_deref().is_none_or(|id| row.distinct_id == Some(id))
            && (self.event.is_none() || row.event.is_some_and(|name| self.takes_name(name)))
            && self.property.as_ref().is_none_or(|wanted| wanted.is_in(row.json))
    }

    /// Whether the row of the list matches. Long payloads are checked as far as the row
    /// has them.
    pub fn takes_row(&self, row: &LiveRow) -> bool {
        self.takes(&RowFacts {
            label: OutcomeLabel::of(row.outcome, !row.reasons.is_empty()),
            event: row.event.as_deref(),
            distinct_id: row.distinct_id.as_deref(),
            json: &row.payload,
            received_at: row.received_at,
        })
    }
}

/// A property with a value, or with any value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PropertyFilter {
    /// The name as it is in a JSON text.
    name: String,
    /// The value. `None`: any value.
    value: Option<PropertyValue>,
}

/// A value as it is in a JSON text.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PropertyValue {
    /// As a string.
    text: String,
    /// As another value, such as a number. `None`: it can only be a string.
    other: Option<String>,
}

impl PropertyFilter {
    /// A filter for a property. Without a value, the property may have any value.
    pub fn new(name: &str, value: &str) -> Self {
        let quoted = |text: &str| Value::from(text).to_string();
        let is_other = !value.starts_with('"') && serde_json::from_str::<IgnoredAny>(value).is_ok();
        let value = (!value.is_empty()).then(|| PropertyValue {
            text: quoted(value),
            other: is_other.then(|| value.to_owned()),
        });
        Self { name: quoted(name), value }
    }

    /// Whether a JSON text has the property, at any depth. Many events are checked, so
    /// nothing is parsed here.
    fn is_in(&self, json: &str) -> bool {
        json.match_indices(&self.name).any(|(at, name)| {
            let (before, rest) = json.split_at(at);
            let rest = rest.strip_prefix(name).unwrap_or_default().trim_start();
            // An escaped quotation mark does not begin a name.
            let value = rest.strip_prefix(':').filter(|_| !before.ends_with('\\'));
            value.is_some_and(|value| {
                let value = value.trim_start();
                self.value.as_ref().is_none_or(|wanted| wanted.begins(value))
            })
        })
    }
}

impl PropertyValue {
    /// Whether this value is at the beginning of a JSON text.
    fn begins(&self, json: &str) -> bool {
        let ends = |rest: &str| rest.starts_with([',', '}', ']', ' ', '\t', '\r', '\n']);
        json.starts_with(&self.text)
            || self.other.as_ref().and_then(|other| json.strip_prefix(other)).is_some_and(ends)
    }
}

#[cfg(test)]
mod tests {
    use super::{EventsFilter, OutcomeLabel, PropertyFilter, RowFacts};
    use crate::time::Timestamp;

    const NOW: i64 = 1_780_000_000_000_000;

    fn facts() -> RowFacts<'static> {
        RowFacts {
            label: OutcomeLabel::Accepted,
            event: Some("Sign up"),
            distinct_id: Some("ada"),
            json: r#"{"plan": "pro", "seats":12,"$lib":"web"}"#,
            received_at: Timestamp::from_micros(NOW),
        }
    }

    fn filter(pairs: &[(&str, &str)]) -> EventsFilter {
        let mut filter = EventsFilter::default();
        for (name, value) in pairs {
            filter.set(name, (*value).to_owned());
        }
        filter
    }

    fn takes(pairs: &[(&str, &str)]) -> bool {
        filter(pairs).rows(Timestamp::from_micros(NOW)).takes(&facts())
    }

    #[test]
    fn values_of_the_address() {
        let pairs = [("event", "a b"), ("person", "ada"), ("to", "2026-08-21T14:05")];
        assert_eq!(filter(&pairs).pairs(), pairs);
        assert_eq!(filter(&[("selected", "x")]), EventsFilter::default());
        assert!(filter(&pairs[..2]).pairs().iter().all(|(name, _)| *name != "to"));
        assert!(filter(&pairs[..1]).searches() && !filter(&pairs[2..]).searches());
    }

    #[test]
    fn names_persons_and_properties() {
        let cases: &[(&[(&str, &str)], bool)] = &[
            (&[], true),
            (&[("event", "sign")], true),
            (&[("event", "SIGN UP ")], true),
            (&[("event", "sign out")], false),
            (&[("person", "ada")], true),
            (&[("person", "Ada")], false),
            (&[("property", "plan"), ("value", "pro")], true),
            (&[("property", "plan"), ("value", "pr")], false),
            (&[("property", "seats"), ("value", "12")], true),
            (&[("property", "seats"), ("value", "1")], false),
            (&[("property", "$lib"), ("value", "web")], true),
            (&[("property", "absent"), ("value", "1")], false),
            (&[("outcome", "accepted")], true),
            (&[("outcome", "altered")], false),
            (&[("outcome", "nonsense")], true),
        ];
        for (pairs, expected) in cases {
            assert_eq!(takes(pairs), *expected, "{pairs:?}");
        }
    }

    #[test]
    fn values_of_properties_match_as_a_whole() {
        let json = r#"{"plan": "pro plan", "seats":12,"ok":true,"none":null, "at":[1,2], "last":7
            ,"a\"plan":"x", "say \"hi\"":"a\\b\nc", "text": "\"seats\":9", "empty":""}"#;
        for (name, value, expected) in [
            ("plan", "pro plan", true),
            ("plan", "pro", false),
            ("plan", "plan", false),
            ("plan", "pro plan\"", false),
            ("plan", "x", false),
            ("seats", "12", true),
            ("seats", "1", false),
            ("seats", "9", false),
            ("ok", "true", true),
            ("ok", "tru", false),
            ("none", "null", true),
            ("at", "[1,2]", true),
            ("at", "[1", false),
            ("last", "7", true),
            ("a\"plan", "x", true),
            ("say \"hi\"", "a\\b\nc", true),
            ("say \"hi\"", "a\\b", false),
            ("say \"hi", "", false),
            // Without a value, any value matches.
            ("seats", "", true),
            ("plan", "", true),
            ("none", "", true),
            ("empty", "", true),
            ("absent", "", false),
        ] {
            let filter = PropertyFilter::new(name, value);
            assert_eq!(filter.is_in(json), expected, "{name}: {value}");
        }
        // The end of a truncated text does not end a number.
        assert!(!PropertyFilter::new("a", "1").is_in(r#"{"a":1"#));
    }

    #[test]
    fn refused_requests_have_no_event() {
        let refused =
            RowFacts { label: OutcomeLabel::Rejected, event: None, distinct_id: None, ..facts() };
        let now = Timestamp::from_micros(NOW);
        assert!(filter(&[("outcome", "rejected")]).rows(now).takes(&refused));
        assert!(!filter(&[("event", "a")]).rows(now).takes(&refused));
        assert!(!filter(&[("person", "ada")]).rows(now).takes(&refused));
    }

    #[test]
    fn times_and_ranges() {
        let now = Timestamp::from_micros(NOW);
        let hour = 3_600;
        assert_eq!(filter(&[]).times(now), (None, None));
        assert_eq!(filter(&[("range", "1h")]).times(now), (Some(now.plus_seconds(-hour)), None));
        let (from, to) = (now.plus_seconds(-2 * hour), now.plus_seconds(-hour));
        let (from_text, to_text) = (from.to_string(), to.to_string());
        let both = filter(&[("range", "24h"), ("from", &from_text), ("to", &to_text)]);
        assert_eq!(both.times(now), (Some(from), Some(to)));
        assert!(!both.has_invalid_times());
        assert!(!both.rows(now).takes(&facts()));
        let end = filter(&[("range", "1h"), ("to", &to_text)]);
        assert_eq!(end.times(now), (Some(from), Some(to)));
        let swapped = filter(&[("from", &to_text), ("to", &from_text)]);
        assert!(swapped.has_invalid_times());
        assert_eq!(swapped.times(now), (None, None));
        assert!(filter(&[("from", "tomorrow")]).has_invalid_times());
    }
}
