//! The question of the form for paths.

use serde_json::{Value, json};

#[cfg(feature = "ssr")]
use super::{DAY_RANGES, text};
use super::{USUAL_RANGE, number, set_range, value_or};

/// The word of the kind in addresses.
pub(super) const WORD: &str = "paths";

/// The names of the fields. `limit` is a parameter of lists, such as that of the persons behind a
/// number.
pub(super) const FIELDS: &[&str] = &["events", "start", "end", "length", "range"];

/// Which events are steps: word and label. Empty: all events.
pub(crate) const EVENTS: [(&str, &str); 4] = [
    ("", "All events"),
    ("$pageview", "Page views"),
    ("$screen", "Screen views"),
    ("custom_event", "Custom events"),
];

/// Most steps of a path without a choice.
const USUAL_LENGTH: &str = "5";

/// The values of the form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathsForm {
    /// A word of [`EVENTS`].
    pub(crate) events: String,
    /// The name of the step that paths begin with. Empty: any.
    pub(crate) start: String,
    /// The name of the step that paths end with. Empty: any.
    pub(crate) end: String,
    /// Most steps of a path.
    pub(crate) length: String,
    /// A date of [`DAY_RANGES`](super::DAY_RANGES).
    pub(crate) range: String,
}

impl PathsForm {
    pub(super) fn read(value: &dyn Fn(&str) -> String) -> Self {
        Self {
            events: value("events"),
            start: value("start"),
            end: value("end"),
            length: value_or(value, "length", USUAL_LENGTH),
            range: value_or(value, "range", USUAL_RANGE),
        }
    }

    pub(super) fn pairs(&self) -> Vec<(&'static str, String)> {
        vec![
            ("events", self.events.clone()),
            ("start", self.start.clone()),
            ("end", self.end.clone()),
            ("length", self.length.clone()),
            ("range", self.range.clone()),
        ]
    }

    pub(crate) fn query(&self) -> Value {
        let events = Some(&self.events).filter(|events| !events.is_empty());
        let events: Vec<&String> = events.into_iter().collect();
        let mut filter = json!({ "includeEventTypes": events, "stepLimit": number(&self.length) });
        for (name, point) in [("startPoint", &self.start), ("endPoint", &self.end)] {
            if !point.is_empty() {
                filter[name] = json!(point);
            }
        }
        let mut query = json!({ "kind": "PathsQuery", "pathsFilter": filter });
        set_range(&mut query, &self.range);
        query
    }

    /// The form whose fields have the parts of a question. `None`: it has choices that the form
    /// has not.
    #[cfg(feature = "ssr")]
    pub(super) fn of_query(query: &Value) -> Option<Self> {
        let filter = &query["pathsFilter"];
        let form = Self::read(&|name: &str| match name {
            "events" => text(&filter["includeEventTypes"][0]),
            "start" => text(&filter["startPoint"]),
            "end" => text(&filter["endPoint"]),
            "length" => filter["stepLimit"].to_string(),
            _ => text(&query["dateRange"]["date_from"]),
        });
        DAY_RANGES.iter().any(|(from, _)| *from == form.range).then_some(form)
    }

    pub(crate) fn title(&self) -> String {
        let label = EVENTS.iter().find(|(word, _)| *word == self.events).map(|(_, label)| *label);
        let mut title = format!("Paths: {}", label.unwrap_or(&self.events));
        for (word, point) in [("from", &self.start), ("to", &self.end)] {
            if !point.is_empty() {
                title.push_str(&format!(", {word} {point}"));
            }
        }
        title
    }
}

/// See [`super::QuestionForm::field_of`].
#[cfg(feature = "ssr")]
pub(super) const PARTS: &[(&str, &str)] = &[
    ("pathsFilter__includeEventTypes", "events"),
    ("pathsFilter__startPoint", "start"),
    ("pathsFilter__endPoint", "end"),
    ("pathsFilter__stepLimit", "length"),
    ("dateRange", "range"),
];

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use serde_json::json;

    use super::super::tests::{canonical, fault_at, form, shown};
    use super::super::{DAY_RANGES, QuestionForm};
    use super::EVENTS;

    const USUAL: (&str, &str) = ("kind", "paths");

    #[test]
    fn every_choice_is_a_question_that_the_form_shows_again() {
        for (events, _) in EVENTS {
            for &(range, _) in DAY_RANGES {
                let whole = form(&[
                    USUAL,
                    ("events", events),
                    ("start", "/home"),
                    ("end", "/pay"),
                    ("length", "20"),
                    ("range", range),
                ]);
                assert_eq!(shown(&whole), Some(whole), "{events} {range}");
            }
        }
        let usual = form(&[USUAL]);
        assert_eq!(shown(&usual), Some(usual));
    }

    #[test]
    fn a_question_with_more_is_not_shown() {
        let usual = canonical(&form(&[USUAL]).query()).unwrap();
        for (name, value) in [
            ("includeEventTypes", json!(["$pageview", "$screen"])),
            ("excludeEvents", json!(["/home"])),
            ("edgeLimit", json!(10)),
        ] {
            let mut query = usual.clone();
            query["pathsFilter"][name] = value;
            assert_eq!(QuestionForm::of_query(&canonical(&query).unwrap()), None, "{name}");
        }
    }

    #[test]
    fn faults_are_at_fields_of_the_form() {
        let long = "x".repeat(401);
        assert_eq!(fault_at(&[USUAL, ("events", "clicks")]), Some("events"));
        assert_eq!(fault_at(&[USUAL, ("start", &*long)]), Some("start"));
        assert_eq!(fault_at(&[USUAL, ("end", &*long)]), Some("end"));
        assert_eq!(fault_at(&[USUAL, ("length", "1")]), Some("length"));
        assert_eq!(fault_at(&[USUAL, ("range", "soon")]), Some("range"));
    }

    #[test]
    fn a_question_has_words() {
        assert_eq!(form(&[USUAL]).title(), "Paths: All events");
        let some = [USUAL, ("events", "$pageview"), ("start", "/home"), ("end", "/pay")];
        assert_eq!(form(&some).title(), "Paths: Page views, from /home, to /pay");
    }
}
