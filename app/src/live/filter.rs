//! The filter of the live list. It applies to the rows that the page already has, with
//! and without scripts.

use serde::{Deserialize, Serialize};

use super::row::Row;

/// The filter values.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Filter {
    /// `accepted`, `altered`, `dropped` or `rejected`. `None`: all.
    pub(crate) outcome: Option<String>,
    /// Part of the event name, distinct id, URL or screen, or client library.
    /// `name=value` matches a property of the payload.
    pub(crate) text: Option<String>,
}

impl Filter {
    /// Whether every row matches.
    pub(crate) fn is_open(&self) -> bool {
        self.outcome.is_none() && self.text.is_none()
    }

    /// Whether the row matches.
    pub(crate) fn admits(&self, row: &Row) -> bool {
        let outcome_fits = self
            .outcome
            .as_ref()
            .is_none_or(|word| row.outcome_label().text().eq_ignore_ascii_case(word));
        outcome_fits && self.text.as_ref().is_none_or(|text| text_fits(text, row))
    }
}

fn text_fits(text: &str, row: &Row) -> bool {
    if let Some((name, value)) = text.split_once('=') {
        return property_fits(name.trim(), value.trim(), &row.payload);
    }
    let wanted = text.to_lowercase();
    let has = |field: &Option<String>| {
        field.as_ref().is_some_and(|value| value.to_lowercase().contains(&wanted))
    };
    has(&row.event) || has(&row.distinct_id) || has(&row.url_or_screen) || has(&row.library)
}

/// Searches for `"name": value` or `"name": "value"` in a JSON text. Rows are filtered as
/// they arrive, so nothing is parsed here.
fn property_fits(name: &str, value: &str, json: &str) -> bool {
    let key = format!("\"{name}\"");
    json.match_indices(&key).any(|(at, _)| {
        let rest = json[at + key.len()..].trim_start();
        let Some(rest) = rest.strip_prefix(':') else { return false };
        let rest = rest.trim_start();
        let bare = rest.strip_prefix('"').unwrap_or(rest);
        let ends =
            |rest: &str| rest.is_empty() || rest.starts_with(['"', ',', '}', ']', ' ', '\n']);
        bare.strip_prefix(value).is_some_and(ends)
    })
}

#[cfg(test)]
mod tests {
    use weir_model::live::Outcome;

    use super::{Filter, Row};

    fn row() -> Row {
        Row {
            key: "1".to_owned(),
            received_at: String::new(),
            outcome: Outcome::Accepted,
            reasons: Vec::new(),
            detail: None,
            event: Some("Sign up".to_owned()),
            distinct_id: Some("ada".to_owned()),
            timestamp: None,
            url_or_screen: None,
            library: None,
            size: 0,
            payload: r#"{"properties": {"plan": "pro", "seats":12,"$lib":"web"}}"#.to_owned(),
            project_key: None,
            person: None,
            effects: Vec::new(),
        }
    }

    #[test]
    fn texts_and_properties() {
        for (text, expected) in [
            ("sign", true),
            ("ADA", true),
            ("unknown-id", false),
            ("plan=pro", true),
            ("plan = pro", true),
            ("plan=pr", false),
            ("seats=12", true),
            ("seats=1", false),
            ("$lib=web", true),
            ("absent=1", false),
        ] {
            let filter = Filter { outcome: None, text: Some(text.to_owned()) };
            assert_eq!(filter.admits(&row()), expected, "{text}");
        }
    }

    #[test]
    fn outcomes() {
        for (outcome, expected) in [("accepted", true), ("dropped", false), ("altered", false)] {
            let filter = Filter { outcome: Some(outcome.to_owned()), text: None };
            assert_eq!(filter.admits(&row()), expected, "{outcome}");
        }
        let rejected = Row { outcome: Outcome::Rejected, event: None, ..row() };
        for (outcome, expected) in [("rejected", true), ("dropped", false), ("accepted", false)] {
            let filter = Filter { outcome: Some(outcome.to_owned()), text: None };
            assert_eq!(filter.admits(&rejected), expected, "{outcome}");
        }
        assert!(Filter::default().admits(&row()));
    }
}
