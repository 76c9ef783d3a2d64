//! Typed columns: which properties get one, and the values in them.
//!
//! A property gets a column if at least a quarter of the sampled events have it, and all
//! its values there are of one type: text, number or boolean. `null` counts as no value. A
//! file has at most [`COLUMNS`] of them, the most frequent ones. There is none for a name
//! that is empty, longer than [`NAME`] characters or has control characters, for texts that
//! are long on average ([`TEXT`]), or for a name that differs from a more frequent one only
//! in the case of its letters: SQL does not tell such columns apart.
//!
//! A later value of another type is null in the column, and so is everything that a column
//! cannot hold exactly as JSON means it, except that numbers are doubles: text with half a
//! surrogate pair, numbers beyond the range. If a name occurs twice in one object, the last
//! value counts. The column `properties` has all of them.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The largest number of typed columns.
const COLUMNS: usize = 32;
/// Characters of the longest name that gets a column.
const NAME: usize = 64;
/// Bytes of texts on average that get a column.
const TEXT: u64 = 512;
/// One in so many events must have the property.
const SHARE: u64 = 4;

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Number,
    Boolean,
}

/// A property with a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Property {
    pub(super) name: String,
    pub(super) kind: Kind,
}

/// A value that a column can hold.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Scalar<'a> {
    Text(Cow<'a, str>),
    Number(f64),
    Boolean(bool),
}

/// What the sampled events have of one property.
#[derive(Default)]
struct Seen {
    /// Events with a value.
    values: u64,
    texts: u64,
    numbers: u64,
    booleans: u64,
    /// Bytes of its texts.
    bytes: u64,
}

impl Seen {
    fn kind(&self) -> Option<Kind> {
        match self.values {
            values if values == self.texts => {
                (self.bytes <= TEXT.saturating_mul(values)).then_some(Kind::Text)
            }
            values if values == self.numbers => Some(Kind::Number),
            values if values == self.booleans => Some(Kind::Boolean),
            _ => None,
        }
    }
}

/// Counts the properties of events, to choose the columns. It holds the names of all
/// properties of the events that were added.
#[derive(Default)]
pub(super) struct Sample {
    events: u64,
    seen: HashMap<String, Seen>,
}

impl Sample {
    pub(super) fn add(&mut self, properties: &str) {
        self.events += 1;
        each(properties, |name, value| {
            let scalar = scalar(value);
            if scalar.is_none() && value == "null" {
                return;
            }
            if !self.seen.contains_key(name) {
                self.seen.insert(name.to_owned(), Seen::default());
            }
            let Some(seen) = self.seen.get_mut(name) else { return };
            seen.values += 1;
            match scalar {
                Some(Scalar::Text(text)) => {
                    seen.texts += 1;
                    seen.bytes += text.len() as u64;
                }
                Some(Scalar::Number(_)) => seen.numbers += 1,
                Some(Scalar::Boolean(_)) => seen.booleans += 1,
                None => {}
            }
        });
    }

    /// The properties that get a column, in the order of their names.
    pub(super) fn columns(&self) -> Vec<Property> {
        let is_frequent = |seen: &Seen| seen.values.saturating_mul(SHARE) >= self.events;
        let mut found: Vec<_> = self
            .seen
            .iter()
            .filter(|(name, seen)| is_usable(name) && is_frequent(seen))
            .filter_map(|(name, seen)| Some((seen.values, name, seen.kind()?)))
            .collect();
        found.sort_unstable_by(|(one, name, _), (other, other_name, _)| {
            other.cmp(one).then_with(|| name.cmp(other_name))
        });
        let mut names = HashSet::new();
        found.retain(|(_, name, _)| names.insert(name.to_lowercase()));
        found.truncate(COLUMNS);
        let mut columns: Vec<Property> = found
            .into_iter()
            .map(|(_, name, kind)| Property { name: name.clone(), kind })
            .collect();
        columns.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        columns
    }
}

fn is_usable(name: &str) -> bool {
    !name.is_empty()
        && name.chars().take(NAME + 1).count() <= NAME
        && !name.contains(char::is_control)
}

/// Calls `see` with the name and the JSON text of each property, until the text ends or is
/// not JSON.
pub(super) fn each<'a>(properties: &'a str, see: impl FnMut(&str, &'a str)) {
    let mut json = serde_json::Deserializer::from_str(properties);
    // Text that is not an object has no properties.
    let _ = json.deserialize_map(Each(see));
}

struct Each<F>(F);

impl<'de, F: FnMut(&str, &'de str)> Visitor<'de> for Each<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(Name(name)) = map.next_key()? {
            let value: &RawValue = map.next_value()?;
            (self.0)(&name, value.get());
        }
        Ok(())
    }
}

/// A name that is only copied if it has escape sequences.
struct Name<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(NameVisitor)
    }
}

struct NameVisitor;

impl<'de> Visitor<'de> for NameVisitor {
    type Value = Name<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Self::Value, E> {
        Ok(Name(Cow::Borrowed(name)))
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(Name(Cow::Owned(name.to_owned())))
    }
}

/// The value of valid JSON text, if a column can hold it.
pub(super) fn scalar(json: &str) -> Option<Scalar<'_>> {
    match json.as_bytes() {
        b"true" => Some(Scalar::Boolean(true)),
        b"false" => Some(Scalar::Boolean(false)),
        [b'"', ..] if json.contains('\\') => {
            serde_json::from_str(json).ok().map(|text: String| Scalar::Text(Cow::Owned(text)))
        }
        [b'"', ..] => {
            let text = json.strip_prefix('"')?.strip_suffix('"')?;
            Some(Scalar::Text(Cow::Borrowed(text)))
        }
        [b'-' | b'0'..=b'9', ..] => {
            json.parse().ok().filter(|number: &f64| number.is_finite()).map(Scalar::Number)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(events: &[&str]) -> Vec<(String, Kind)> {
        let mut sample = Sample::default();
        for properties in events {
            sample.add(properties);
        }
        sample.columns().into_iter().map(|column| (column.name, column.kind)).collect()
    }

    fn names(events: &[&str]) -> Vec<String> {
        columns(events).into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn a_property_of_one_type_in_a_quarter_of_the_events_gets_a_column() {
        let events = [
            r#"{"text":"a","number":1,"yes":true,"mixed":1,"object":{},"list":[],"half":"\ud800"}"#,
            r#"{"text":"\u0041","number":-2.5e3,"yes":null,"mixed":"1","rare":1}"#,
            r#"{"text":null,"number":null,"nothing":null}"#,
            "{}",
        ];
        assert_eq!(
            columns(&events),
            [
                ("number".to_owned(), Kind::Number),
                ("rare".to_owned(), Kind::Number),
                ("text".to_owned(), Kind::Text),
                ("yes".to_owned(), Kind::Boolean),
            ]
        );
        let more: Vec<&str> = events.into_iter().chain(["{}"]).collect();
        assert_eq!(names(&more), ["number", "text"], "one in five is rare");
        assert!(columns(&[]).is_empty());
    }

    #[test]
    fn some_names_and_long_texts_get_no_column() {
        let long = "n".repeat(NAME + 1);
        let most = "ö".repeat(NAME);
        let text = "x".repeat(600);
        let event = format!(
            r#"{{"":1,"{long}":1,"{most}":1,"a\tb":1,"a\u0000":1,"long":"{text}","with.dot $":1}}"#
        );
        assert_eq!(names(&[&event]), ["with.dot $".to_owned(), most]);
        assert_eq!(names(&[&event, r#"{"long":""}"#]).len(), 3, "short on average");
    }

    #[test]
    fn names_that_differ_in_case_alone_share_the_column_of_the_more_frequent() {
        let events = [r#"{"Plan":1,"plan":"a"}"#, r#"{"Plan":1}"#, r#"{"A":1,"a":1}"#];
        assert_eq!(names(&events), ["A", "Plan"]);
    }

    #[test]
    fn the_most_frequent_properties_get_the_columns() {
        let all: Vec<String> = (10..60).map(|n| format!(r#""p{n}":1"#)).collect();
        let all = format!("{{{}}}", all.join(","));
        let found = names(&[&all, r#"{"p59":1,"p58":2}"#]);
        assert_eq!(found.len(), COLUMNS);
        assert_eq!(found[0], "p10");
        assert_eq!(found[30..], ["p58", "p59"]);
    }

    #[test]
    fn texts_that_are_no_objects_have_no_properties() {
        for text in ["", "null", "[1]", "\"a\"", "{\"a\"", "{\"a\":1", "{a:1}", "{\"a\":nul}"] {
            let mut count = 0;
            each(text, |_, _| count += 1);
            assert!(count <= 1, "{text}");
            names(&[text]);
        }
    }

    #[test]
    fn values_are_exact_or_missing() {
        assert_eq!(scalar("1e400"), None);
        assert_eq!(scalar("-0.5"), Some(Scalar::Number(-0.5)));
        assert_eq!(scalar(r#""\ud83d\ude00\n""#), Some(Scalar::Text("😀\n".into())));
        assert_eq!(scalar(r#""\ud83d""#), None);
        assert_eq!(scalar(r#""""#), Some(Scalar::Text("".into())));
        for other in ["null", "{}", "[]"] {
            assert_eq!(scalar(other), None);
        }
    }

    #[test]
    fn deep_values_do_not_hide_the_other_properties() {
        let deep = format!(r#"{{"deep":{}1{},"a":1}}"#, "[".repeat(5_000), "]".repeat(5_000));
        assert_eq!(names(&[&deep]), ["a"]);
    }
}
