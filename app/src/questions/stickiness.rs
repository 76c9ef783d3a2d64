//! The question of the form for stickiness.

use serde_json::{Value, json};

#[cfg(feature = "ssr")]
use super::{DAY_RANGES, text};
use super::{USUAL_INTERVAL, USUAL_RANGE, number, set_range, value_or};

/// The word of the kind in addresses.
pub(super) const WORD: &str = "stickiness";

/// The names of the fields. Faults are at all of them but the last.
pub(super) const FIELDS: &[&str] = &["event", "least", "interval", "range", "cumulative"];

/// Fewest events that make a person active in an interval.
const USUAL_LEAST: &str = "1";

/// The values of the form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StickinessForm {
    /// The name of the events. Empty: all events.
    pub(crate) event: String,
    /// How many events make a person active in an interval.
    pub(crate) least: String,
    /// A word of [`INTERVALS`](super::INTERVALS).
    pub(crate) interval: String,
    /// A date of [`DAY_RANGES`](super::DAY_RANGES).
    pub(crate) range: String,
    /// Whether a person with more intervals also counts for fewer.
    pub(crate) cumulative: bool,
}

impl StickinessForm {
    pub(super) fn read(value: &dyn Fn(&str) -> String) -> Self {
        Self {
            event: value("event"),
            least: value_or(value, "least", USUAL_LEAST),
            interval: value_or(value, "interval", USUAL_INTERVAL),
            range: value_or(value, "range", USUAL_RANGE),
            cumulative: !value("cumulative").is_empty(),
        }
    }

    pub(super) fn pairs(&self) -> Vec<(&'static str, String)> {
        let cumulative = if self.cumulative { "on" } else { "" };
        vec![
            ("event", self.event.clone()),
            ("least", self.least.clone()),
            ("interval", self.interval.clone()),
            ("range", self.range.clone()),
            ("cumulative", cumulative.to_owned()),
        ]
    }

    pub(crate) fn query(&self) -> Value {
        let event = Some(self.event.as_str()).filter(|event| !event.is_empty());
        let computed = if self.cumulative { "cumulative" } else { "non_cumulative" };
        let mut query = json!({
            "kind": "StickinessQuery",
            "series": [{ "kind": "EventsNode", "event": event }],
            "interval": self.interval,
            "stickinessFilter": {
                "stickinessCriteria": { "operator": "gte", "value": number(&self.least) },
                "computedAs": computed,
            },
        });
        set_range(&mut query, &self.range);
        query
    }

    /// The form whose fields have the parts of a question. `None`: it has choices that the form
    /// has not.
    #[cfg(feature = "ssr")]
    pub(super) fn of_query(query: &Value) -> Option<Self> {
        let filter = &query["stickinessFilter"];
        let form = Self::read(&|name: &str| match name {
            "event" => text(&query["series"][0]["event"]),
            "least" => filter["stickinessCriteria"]["value"].to_string(),
            "interval" => text(&query["interval"]),
            "range" => text(&query["dateRange"]["date_from"]),
            _ => match filter["computedAs"].as_str() {
                Some("cumulative") => "on".to_owned(),
                _ => String::new(),
            },
        });
        DAY_RANGES.iter().any(|(from, _)| *from == form.range).then_some(form)
    }

    pub(crate) fn title(&self) -> String {
        match self.event.as_str() {
            "" => "Stickiness: All events".to_owned(),
            event => format!("Stickiness: {event}"),
        }
    }
}

/// See [`super::QuestionForm::field_of`].
#[cfg(feature = "ssr")]
pub(super) const PARTS: &[(&str, &str)] = &[
    ("series__0__event", "event"),
    ("stickinessFilter__stickinessCriteria", "least"),
    ("interval", "interval"),
    ("dateRange", "range"),
];

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use serde_json::json;

    use super::super::tests::{canonical, fault_at, form, shown};
    use super::super::{DAY_RANGES, INTERVALS, QuestionForm};

    const USUAL: (&str, &str) = ("kind", "stickiness");

    #[test]
    fn every_choice_is_a_question_that_the_form_shows_again() {
        for (interval, _) in INTERVALS {
            for &(range, _) in DAY_RANGES {
                for cumulative in ["", "on"] {
                    let whole = form(&[
                        USUAL,
                        ("event", "seen"),
                        ("least", "3"),
                        ("interval", interval),
                        ("range", range),
                        ("cumulative", cumulative),
                    ]);
                    assert_eq!(shown(&whole), Some(whole), "{interval} {range} {cumulative}");
                }
            }
        }
        let usual = form(&[USUAL]);
        assert_eq!(shown(&usual), Some(usual));
    }

    #[test]
    fn a_question_with_more_is_not_shown() {
        let usual = canonical(&form(&[USUAL]).query()).unwrap();
        let most = json!({"stickinessCriteria": {"operator": "lte", "value": 1}});
        for (name, value) in [
            ("dateRange", json!({"date_from": "-5d"})),
            ("compareFilter", json!({"compare": true})),
            ("series", json!([{"event": "a"}, {"event": "b"}])),
            ("stickinessFilter", most),
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
        assert_eq!(fault_at(&[USUAL, ("least", "many")]), Some("least"));
        assert_eq!(fault_at(&[USUAL, ("interval", "year")]), Some("interval"));
        assert_eq!(fault_at(&[USUAL, ("range", "soon")]), Some("range"));
    }

    #[test]
    fn a_question_has_words() {
        assert_eq!(form(&[USUAL]).title(), "Stickiness: All events");
        assert_eq!(form(&[USUAL, ("event", "seen")]).title(), "Stickiness: seen");
    }
}
