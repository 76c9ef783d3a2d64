//! Properties of rows as columns of the events page.
//!
//! What belongs here: the values of chosen properties, and the names that many rows have.
//! What does not: the choice in the address (`weir_model::live`).

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::HashMap;

use weir_json::Members;
use weir_model::live::{LiveRow, Outcome};

/// The maximum number of names that are offered.
const OFFERED: usize = 20;
/// The maximum number of rows that are read for names.
const ROWS: usize = 100;
/// The maximum number of different names that are counted.
const COUNTED: usize = 1_000;
/// Upper bound of bytes in an offered name.
const NAME: usize = 100;
/// Upper bound of bytes in a value. The rest is cut off: a page has the values of five
/// properties of a hundred rows, and must stay small.
const VALUE: usize = 100;

/// The values of these properties as texts. `None`: the row does not have the property, or its
/// payload is cut.
pub fn property_values(row: &LiveRow, names: &[String]) -> Vec<Option<String>> {
    if names.is_empty() {
        return Vec::new();
    }
    let members = properties(row);
    names.iter().map(|name| members.get(name).map(text)).collect()
}

/// The names of properties that most of these rows have, at most 20. Those that client
/// libraries set come last.
pub fn frequent_properties(rows: &[LiveRow]) -> Vec<String> {
    let mut counts: HashMap<Cow<'_, str>, usize> = HashMap::new();
    for row in rows.iter().take(ROWS) {
        for (name, _) in properties(row) {
            let is_usable = !name.is_empty() && name.len() <= NAME;
            if is_usable && (counts.len() < COUNTED || counts.contains_key(&name)) {
                *counts.entry(name).or_default() += 1;
            }
        }
    }
    let mut found: Vec<(Cow<'_, str>, usize)> = counts.into_iter().collect();
    found.sort_by(|(one, of_one), (other, of_other)| {
        let key = |name: &str, count: usize| (name.starts_with('$'), Reverse(count));
        key(one, *of_one).cmp(&key(other, *of_other)).then_with(|| one.cmp(other))
    });
    found.into_iter().take(OFFERED).map(|(name, _)| name.into_owned()).collect()
}

/// The properties of a row. A cut payload has none.
fn properties(row: &LiveRow) -> Members<'_> {
    let members = Members::of(&row.payload);
    if row.outcome != Outcome::Dropped {
        return members;
    }
    // A dropped event is kept as it was sent: with its properties within, unless these are all
    // that is left of it.
    match members.get("properties").map(Members::parse) {
        Some(Ok(within)) => within,
        Some(Err(_)) | None => members,
    }
}

/// A JSON value as a text, cut when long. A text is without its quotation marks.
fn text(json: &str) -> String {
    let mut text = serde_json::from_str::<String>(json).unwrap_or_else(|_| json.to_owned());
    text.truncate(text.floor_char_boundary(VALUE));
    text
}

#[cfg(test)]
mod tests {
    use weir_model::Timestamp;

    use super::*;

    fn row(outcome: Outcome, payload: &str) -> LiveRow {
        LiveRow {
            key: "k".to_owned(),
            received_at: Timestamp::EPOCH,
            outcome,
            reasons: Vec::new(),
            detail: None,
            event: None,
            distinct_id: None,
            timestamp: None,
            place: None,
            library: None,
            size: 0,
            payload: payload.to_owned(),
            project_key: None,
            person: None,
            effects: Vec::new(),
        }
    }

    fn values(outcome: Outcome, payload: &str, names: &[&str]) -> Vec<Option<String>> {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        property_values(&row(outcome, payload), &names)
    }

    #[test]
    fn values_are_texts_in_the_order_of_the_names() {
        let some = |text: &str| Some(text.to_owned());
        let stored = r#"{"seats":12,"plan":"a \"pro\"","tags":["x"]}"#;
        let found = values(Outcome::Accepted, stored, &["plan", "seats", "none", "tags"]);
        assert_eq!(found, [some("a \"pro\""), some("12"), None, some(r#"["x"]"#)]);
        let sent = r#"{"event":"e","properties":{"plan":"pro"}}"#;
        assert_eq!(values(Outcome::Dropped, sent, &["plan", "event"]), [some("pro"), None]);
        assert_eq!(values(Outcome::Dropped, r#"{"plan":"pro"}"#, &["plan"]), [some("pro")]);
        assert_eq!(values(Outcome::Accepted, r#"{"plan":"pr"#, &["plan"]), [None::<String>]);
        assert_eq!(values(Outcome::Rejected, "", &["plan"]), [None::<String>]);
        assert!(values(Outcome::Accepted, stored, &[]).is_empty());
        let long = format!(r#"{{"a":"{}"}}"#, "é".repeat(VALUE));
        let found = values(Outcome::Accepted, &long, &["a"]);
        assert_eq!(found, [Some("é".repeat(VALUE / 2))]);
    }

    #[test]
    fn frequent_names_come_first_and_those_of_libraries_last() {
        let rows = [
            row(Outcome::Accepted, r#"{"$lib":"web","plan":"pro","size":1}"#),
            row(Outcome::Accepted, r#"{"$lib":"web","size":2}"#),
            row(Outcome::Dropped, r#"{"event":"e","properties":{"$lib":"web","cup":1}}"#),
            row(Outcome::Rejected, ""),
        ];
        assert_eq!(frequent_properties(&rows), ["size", "cup", "plan", "$lib"]);
    }
}
