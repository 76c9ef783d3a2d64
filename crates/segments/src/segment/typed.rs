//! Typed columns: which properties get one, and the values in them.
//!
//! A property gets a column if at least a quarter of the sampled events have it, and all
//! its values there are of one type: text, number or boolean. `null` counts as no value. A
//! file has at most [`COLUMNS`] of them, the most frequent ones. There is none
//!
//! - for a name that is empty, longer than [`NAME`] characters or has control characters;
//! - for texts that are long on average ([`TEXT`]), or of which more than nine in ten differ
//!   from each other, because no query groups by them;
//! - for a name whose column would have the name of another one. SQL does not tell letters
//!   apart by their case. The more frequent property gets the column.
//!
//! The files of a project are one table, so a column keeps its type for ever. The caller
//! gives the columns that the table has. Such a property has its column whenever a sampled
//! event has a value of that type, or a merged file has the column, however rare its values
//! are. So a file may have more columns. Other properties get one only while the table has
//! fewer than [`TABLE_COLUMNS`].
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
use twox_hash::XxHash64;

/// The beginning of the names of typed columns.
const PREFIX: &str = "properties_";
/// The largest number of typed columns that a file gets without being asked.
const COLUMNS: usize = 32;
/// The largest number of typed columns of a table.
pub const TABLE_COLUMNS: usize = 200;
/// Characters of the longest name that gets a column.
const NAME: usize = 64;
/// Bytes of texts on average that get a column.
const TEXT: u64 = 512;
/// One in so many events must have the property.
const SHARE: u64 = 4;
/// Texts of a property that are compared with each other: the first ones.
const COMPARED: usize = 4_096;

/// The type of a typed column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ColumnType {
    /// UTF-8 text.
    Text,
    /// A double.
    Number,
    /// True or false.
    Boolean,
}

impl ColumnType {
    const ALL: [Self; 3] = [Self::Text, Self::Number, Self::Boolean];

    /// The name of the type, such as `text`. It does not change.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }

    /// The type of this [`name`](Self::name).
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// A column with the values of one property.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TypedColumn {
    /// The name of the property.
    pub property: String,
    /// The type of the column.
    pub kind: ColumnType,
}

impl TypedColumn {
    /// The name of the column: `properties_` and the name of the property, with `_`
    /// instead of each character that is not a letter, a digit, `_` or `$`.
    pub fn name(&self) -> String {
        name(&self.property)
    }
}

fn name(property: &str) -> String {
    let usable = |c: char| if c.is_alphanumeric() || c == '$' { c } else { '_' };
    PREFIX.chars().chain(property.chars().map(usable)).collect()
}

/// A value that a column can hold.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Scalar<'a> {
    Text(Cow<'a, str>),
    Number(f64),
    Boolean(bool),
}

/// The values of one property in the sampled events.
#[derive(Default)]
struct PropertySample {
    /// Events with a value.
    values: u64,
    texts: u64,
    numbers: u64,
    booleans: u64,
    /// Bytes of its texts.
    bytes: u64,
    /// Hashes of its first texts.
    hashes: HashSet<u64>,
    /// The type of a column that it has in a file with the same events.
    present: Option<ColumnType>,
}

impl PropertySample {
    fn add(&mut self, scalar: Option<Scalar<'_>>) {
        self.values += 1;
        match scalar {
            Some(Scalar::Text(text)) => {
                if self.texts < COMPARED as u64 {
                    self.hashes.insert(XxHash64::oneshot(0, text.as_bytes()));
                }
                self.texts += 1;
                self.bytes += text.len() as u64;
            }
            Some(Scalar::Number(_)) => self.numbers += 1,
            Some(Scalar::Boolean(_)) => self.booleans += 1,
            None => {}
        }
    }

    /// The type of a new column.
    fn kind(&self) -> Option<ColumnType> {
        match self.values {
            values if values == self.texts => {
                let compared = self.texts.min(COMPARED as u64);
                let is_long = self.bytes > TEXT.saturating_mul(values);
                let is_distinct = self.hashes.len() as u64 * 10 > compared * 9;
                (!is_long && !is_distinct).then_some(ColumnType::Text)
            }
            values if values == self.numbers => Some(ColumnType::Number),
            values if values == self.booleans => Some(ColumnType::Boolean),
            _ => None,
        }
    }

    fn has(&self, kind: ColumnType) -> bool {
        let values = match kind {
            ColumnType::Text => self.texts,
            ColumnType::Number => self.numbers,
            ColumnType::Boolean => self.booleans,
        };
        values > 0 || self.present == Some(kind)
    }
}

/// Counts the properties of events, to choose the columns. It holds the names of all
/// properties of the events that were added.
#[derive(Default)]
pub(super) struct Sample {
    events: u64,
    seen: HashMap<String, PropertySample>,
}

impl Sample {
    pub(super) fn add(&mut self, properties: &str) {
        self.events += 1;
        // What is not seen counts as absent.
        let _ = each(properties, |name, value| {
            let scalar = scalar(value);
            if scalar.is_none() && value == "null" {
                return;
            }
            if !self.seen.contains_key(name) {
                self.seen.insert(name.to_owned(), PropertySample::default());
            }
            let Some(seen) = self.seen.get_mut(name) else { return };
            seen.add(scalar);
        });
    }

    /// A column of a file with the same events. If it is known, it is made again, however
    /// rare its values are.
    pub(super) fn keep(&mut self, column: &TypedColumn) {
        self.seen.entry(column.property.clone()).or_default().present = Some(column.kind);
    }

    /// The properties that get a column, in the order of their names. `known` are the
    /// columns of the table.
    pub(super) fn columns(&self, known: &[TypedColumn]) -> Vec<TypedColumn> {
        let mut names = HashSet::new();
        let mut is_free = |property: &str| names.insert(name(property).to_lowercase());
        let known: Vec<&TypedColumn> = known
            .iter()
            .take(TABLE_COLUMNS)
            .filter(|column| is_usable(&column.property) && is_free(&column.property))
            .collect();
        let has = |column: &TypedColumn| {
            self.seen.get(&column.property).is_some_and(|seen| seen.has(column.kind))
        };
        let mut columns: Vec<TypedColumn> =
            known.iter().filter(|column| has(column)).copied().cloned().collect();
        let is_frequent = |seen: &PropertySample| seen.values.saturating_mul(SHARE) >= self.events;
        let mut new: Vec<_> = self
            .seen
            .iter()
            .filter(|(property, seen)| is_usable(property) && is_frequent(seen))
            .filter_map(|(property, seen)| Some((seen.values, property, seen.kind()?)))
            .collect();
        new.sort_unstable_by(|(one, property, _), (other, other_property, _)| {
            other.cmp(one).then_with(|| property.cmp(other_property))
        });
        let most = COLUMNS.saturating_sub(columns.len()).min(TABLE_COLUMNS - known.len());
        let new = new.into_iter().filter(|(_, property, _)| is_free(property)).take(most);
        columns.extend(
            new.map(|(_, property, kind)| TypedColumn { property: property.clone(), kind }),
        );
        columns.sort_unstable_by(|one, other| one.property.cmp(&other.property));
        columns
    }
}

fn is_usable(name: &str) -> bool {
    !name.is_empty()
        && name.chars().take(NAME + 1).count() <= NAME
        && !name.contains(char::is_control)
}

/// Calls `see` with the name and the JSON text of each property, until the object ends or
/// the text is not JSON. Returns whether it has seen all of them.
pub(super) fn each<'a>(properties: &'a str, see: impl FnMut(&str, &'a str)) -> bool {
    let mut json = serde_json::Deserializer::from_str(properties);
    json.deserialize_map(MemberVisitor(see)).is_ok()
}

struct MemberVisitor<F>(F);

impl<'de, F: FnMut(&str, &'de str)> Visitor<'de> for MemberVisitor<F> {
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

    use ColumnType::{Boolean, Number, Text};

    fn column(property: &str, kind: ColumnType) -> TypedColumn {
        TypedColumn { property: property.to_owned(), kind }
    }

    fn columns_beside(known: &[TypedColumn], events: &[&str]) -> Vec<TypedColumn> {
        let mut sample = Sample::default();
        for properties in events {
            sample.add(properties);
        }
        sample.columns(known)
    }

    fn columns(events: &[&str]) -> Vec<TypedColumn> {
        columns_beside(&[], events)
    }

    fn names(events: &[&str]) -> Vec<String> {
        columns(events).into_iter().map(|column| column.property).collect()
    }

    #[test]
    fn a_property_of_one_type_in_a_quarter_of_the_events_gets_a_column() {
        let events = [
            r#"{"text":"A","number":1,"yes":true,"mixed":1,"object":{},"list":[],"half":"\ud800"}"#,
            r#"{"text":"\u0041","number":-2.5e3,"yes":null,"mixed":"1","rare":1}"#,
            r#"{"text":null,"number":null,"nothing":null}"#,
            "{}",
        ];
        assert_eq!(
            columns(&events),
            [
                column("number", Number),
                column("rare", Number),
                column("text", Text),
                column("yes", Boolean),
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
        assert_eq!(names(&[&event, &event]), ["with.dot $".to_owned(), most]);
        let short = r#"{"long":""}"#;
        assert_eq!(names(&[&event, &event, short, short]).len(), 3, "short on average");
    }

    #[test]
    fn texts_that_nearly_all_differ_get_no_column() {
        let events = |distinct: usize| -> Vec<String> {
            (0..100)
                .map(|n| format!(r#"{{"id":"{}","n":{n},"same":""}}"#, n.min(distinct - 1)))
                .collect()
        };
        let names =
            |events: Vec<String>| names(&events.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(names(events(91)), ["n", "same"]);
        assert_eq!(names(events(90)), ["id", "n", "same"]);
        // The first texts decide.
        let many = (0..COMPARED * 2).map(|n| format!(r#"{{"id":"{}"}}"#, n.min(COMPARED)));
        assert_eq!(names(many.collect()), [""; 0]);
        let many = (0..COMPARED * 2).map(|n| format!(r#"{{"id":"{}"}}"#, n.max(COMPARED)));
        assert_eq!(names(many.collect()), ["id"]);
    }

    #[test]
    fn names_that_sql_does_not_tell_apart_share_the_column_of_the_more_frequent() {
        let events = [r#"{"Plan":1,"plan":"a","a b":1}"#, r#"{"Plan":1,"a_b":1,"a.b":1}"#];
        assert_eq!(names(&events), ["Plan", "a b"]);
        assert_eq!(names(&[events[0], events[1], r#"{"A":1,"a":1,"a_b":1}"#])[..2], ["A", "Plan"]);
    }

    #[test]
    fn a_column_has_letters_digits_and_two_signs_in_its_name() {
        for (property, expected) in [
            ("$browser", "properties_$browser"),
            ("$feature/new-nav", "properties_$feature_new_nav"),
            ("Größe (cm), 2.0", "properties_Größe__cm___2_0"),
            ("a=b;{c}`\"", "properties_a_b__c___"),
        ] {
            assert_eq!(column(property, Text).name(), expected);
        }
        for kind in ColumnType::ALL {
            assert_eq!(ColumnType::of_name(kind.name()), Some(kind));
        }
        assert_eq!(ColumnType::of_name("Text"), None);
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
    fn a_known_column_is_made_whenever_a_value_of_its_type_occurs() {
        let known = [
            column("rare", Number),
            column("mixed", Text),
            column("id", Text),
            column("absent", Text),
            column("other", Boolean),
            column("Case", Number),
            column("no\name", Number),
        ];
        let mut events = vec![
            r#"{"rare":1,"mixed":"a","id":"1","other":1,"case":1,"new":1}"#,
            r#"{"mixed":1,"id":"2","other":"true","case":1,"new":1}"#,
        ];
        let expected = |new: &[&str]| {
            let mut all = vec![column("id", Text), column("mixed", Text), column("rare", Number)];
            all.extend(new.iter().map(|name| column(name, Number)));
            all.sort_unstable_by(|one, other| one.property.cmp(&other.property));
            all
        };
        assert_eq!(columns_beside(&known, &events), expected(&["new"]));
        events.extend(["{}"; 100]);
        assert_eq!(columns_beside(&known, &events), expected(&[]), "however rare they are");
    }

    #[test]
    fn a_table_has_a_bounded_number_of_columns() {
        let known: Vec<_> =
            (0..TABLE_COLUMNS + 5).map(|n| column(&format!("k{n}"), Number)).collect();
        let all: Vec<String> = (0..known.len()).map(|n| format!(r#""k{n}":1"#)).collect();
        let all = format!(r#"{{{},"new":1}}"#, all.join(","));
        assert_eq!(columns_beside(&known, &[&all]).len(), TABLE_COLUMNS);
        // One is free in the table, but none in the file.
        assert_eq!(columns_beside(&known[6..], &[&all]).len(), TABLE_COLUMNS - 1);
        let few = r#"{"k0":1,"new":1,"other":1}"#;
        assert_eq!(columns_beside(&known[6..], &[few]), [column("k0", Number)]);
        assert_eq!(columns_beside(&known[..TABLE_COLUMNS], &[few]), [column("k0", Number)]);
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
