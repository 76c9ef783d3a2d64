//! The question of the form for lifecycles.

use serde_json::{Value, json};

#[cfg(feature = "ssr")]
use super::{RANGES, text};
use super::{USUAL_INTERVAL, USUAL_RANGE, set_range, value_or};

/// The word of the kind in addresses.
pub(super) const WORD: &str = "lifecycle";

/// The names of the fields.
pub(super) const FIELDS: &[&str] = &["event", "interval", "range"];

/// The statuses: the word in results, and label.
const STATUSES: [(&str, &str); 4] = [
    ("new", "New"),
    ("returning", "Returning"),
    ("resurrecting", "Resurrecting"),
    ("dormant", "Dormant"),
];

/// What an answer does not say by its numbers.
pub(crate) const DORMANT_NOTE: &str = "Dormant persons were active in the interval before. Their numbers are negative, and the chart draws them above zero.";

/// The label of a status by its word.
pub(crate) fn status_label(status: &str) -> &str {
    STATUSES.iter().find(|(word, _)| *word == status).map_or(status, |(_, label)| *label)
}

/// The values of the form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LifecycleForm {
    /// The name of the events. Empty: all events.
    pub(crate) event: String,
    /// A word of [`INTERVALS`](super::INTERVALS).
    pub(crate) interval: String,
    /// A date of [`RANGES`](super::RANGES).
    pub(crate) range: String,
}

impl LifecycleForm {
    pub(super) fn read(value: &dyn Fn(&str) -> String) -> Self {
        Self {
            event: value("event"),
            interval: value_or(value, "interval", USUAL_INTERVAL),
            range: value_or(value, "range", USUAL_RANGE),
        }
    }

    pub(super) fn pairs(&self) -> Vec<(&'static str, String)> {
        vec![
            ("event", self.event.clone()),
            ("interval", self.interval.clone()),
            ("range", self.range.clone()),
        ]
    }

    pub(crate) fn query(&self) -> Value {
        let event = Some(self.event.as_str()).filter(|event| !event.is_empty());
        let mut query = json!({
            "kind": "LifecycleQuery",
            "series": [{ "kind": "EventsNode", "event": event }],
            "interval": self.interval,
        });
        set_range(&mut query, &self.range);
        query
    }

    /// The form whose fields have the parts of a question. `None`: it has choices that the form
    /// has not.
    #[cfg(feature = "ssr")]
    pub(super) fn of_query(query: &Value) -> Option<Self> {
        let form = Self::read(&|name: &str| match name {
            "event" => text(&query["series"][0]["event"]),
            "interval" => text(&query["interval"]),
            _ => text(&query["dateRange"]["date_from"]),
        });
        RANGES.iter().any(|(from, _)| *from == form.range).then_some(form)
    }

    pub(crate) fn title(&self) -> String {
        match self.event.as_str() {
            "" => "Lifecycle: All events".to_owned(),
            event => format!("Lifecycle: {event}"),
        }
    }
}

/// See [`super::QuestionForm::field_of`].
#[cfg(feature = "ssr")]
pub(super) const PARTS: &[(&str, &str)] =
    &[("series__0__event", "event"), ("interval", "interval"), ("dateRange", "range")];

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use serde_json::json;

    use super::super::tests::{canonical, fault_at, form, shown};
    use super::super::{INTERVALS, QuestionForm, RANGES};

    const USUAL: (&str, &str) = ("kind", "lifecycle");

    #[test]
    fn every_choice_is_a_question_that_the_form_shows_again() {
        for (interval, _) in INTERVALS {
            for &(range, _) in RANGES {
                let whole =
                    form(&[USUAL, ("event", "seen"), ("interval", interval), ("range", range)]);
                assert_eq!(shown(&whole), Some(whole), "{interval} {range}");
            }
        }
        let usual = form(&[USUAL]);
        assert_eq!(shown(&usual), Some(usual));
    }

    #[test]
    fn a_question_with_more_is_not_shown() {
        let usual = canonical(&form(&[USUAL]).query()).unwrap();
        for (name, value) in [
            ("dateRange", json!({"date_from": "-5d"})),
            ("properties", json!([{"key": "plan", "value": "pro", "operator": "exact"}])),
            ("series", json!([{"event": "seen", "custom_name": "Seen"}])),
        ] {
            let mut query = usual.clone();
            query[name] = value;
            assert_eq!(QuestionForm::of_query(&canonical(&query).unwrap()), None, "{name}");
        }
    }

    #[test]
    fn faults_are_at_fields_of_the_form() {
        let long = "x".repeat(401);
        assert_eq!(fault_at(&[USUAL, ("event", &*long)]), Some("event"));
        assert_eq!(fault_at(&[USUAL, ("interval", "year")]), Some("interval"));
        assert_eq!(fault_at(&[USUAL, ("range", "soon")]), Some("range"));
    }

    #[test]
    fn every_status_has_a_label() {
        for status in weir_questions::query::LifecycleStatus::ALL {
            assert_ne!(super::status_label(status.word()), status.word());
        }
    }

    #[test]
    fn a_question_has_words() {
        assert_eq!(form(&[USUAL]).title(), "Lifecycle: All events");
        assert_eq!(form(&[USUAL, ("event", "seen")]).title(), "Lifecycle: seen");
    }
}
