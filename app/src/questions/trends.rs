//! The question of the form for trends.

use serde_json::{Value, json};

#[cfg(feature = "ssr")]
use super::{RANGES, text};
use super::{USUAL_INTERVAL, USUAL_RANGE, set_breakdown, set_range, value_or};
use crate::ui::chart::NUMBERED;

/// What is computed without a choice.
const USUAL_MATH: &str = "total";

/// What can be computed of events.
pub(crate) struct Math {
    /// The word in questions.
    pub(crate) word: &'static str,
    pub(crate) label: &'static str,
    /// The unit of the numbers.
    pub(crate) unit: &'static str,
    /// Whether it is computed of a property.
    pub(crate) has_property: bool,
}

impl Math {
    const fn of_events(word: &'static str, label: &'static str, unit: &'static str) -> Self {
        Self { word, label, unit, has_property: false }
    }

    const fn of_property(word: &'static str, label: &'static str, unit: &'static str) -> Self {
        Self { word, label, unit, has_property: true }
    }
}

/// All of them, in the order of the form.
pub(crate) static MATHS: [Math; 9] = [
    Math::of_events("total", "Number of events", "events"),
    Math::of_events("dau", "Unique persons", "persons"),
    Math::of_events("unique_session", "Unique sessions", "sessions"),
    Math::of_property("sum", "Sum", "sum"),
    Math::of_property("avg", "Average", "average"),
    Math::of_property("median", "Median", "median"),
    Math::of_property("p90", "90th percentile", "90th percentile"),
    Math::of_property("min", "Smallest value", "smallest value"),
    Math::of_property("max", "Largest value", "largest value"),
];

/// The names of the fields. Faults are at all of them but the last.
pub(crate) const FIELDS: &[&str] =
    &["event", "math", "property", "interval", "range", "breakdown", "compare"];

/// The values of the form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TrendsForm {
    /// The name of the events. Empty: all events.
    pub(crate) event: String,
    /// The word of a [`Math`].
    pub(crate) math: String,
    /// The property that it is computed of.
    pub(crate) property: String,
    /// A word of [`INTERVALS`](super::INTERVALS).
    pub(crate) interval: String,
    /// A date of [`RANGES`](super::RANGES).
    pub(crate) range: String,
    /// The property of events whose values divide the answer. Empty: nothing does.
    pub(crate) breakdown: String,
    /// Whether the period before is answered too.
    pub(crate) compare: bool,
}

impl TrendsForm {
    /// The form with the values of its fields. Empty ones have their usual values.
    pub(super) fn read(value: &dyn Fn(&str) -> String) -> Self {
        Self {
            event: value("event"),
            math: value_or(value, "math", USUAL_MATH),
            property: value("property"),
            interval: value_or(value, "interval", USUAL_INTERVAL),
            range: value_or(value, "range", USUAL_RANGE),
            breakdown: value("breakdown"),
            compare: !value("compare").is_empty(),
        }
    }

    /// Names and values of the fields.
    pub(super) fn pairs(&self) -> Vec<(&'static str, String)> {
        let compare = if self.compare { "on" } else { "" };
        vec![
            ("event", self.event.clone()),
            ("math", self.math.clone()),
            ("property", self.property.clone()),
            ("interval", self.interval.clone()),
            ("range", self.range.clone()),
            ("breakdown", self.breakdown.clone()),
            ("compare", compare.to_owned()),
        ]
    }

    /// How many series the chart draws. With the period before, each has two lines.
    pub(crate) fn drawn(&self) -> usize {
        if self.compare { NUMBERED / 2 } else { NUMBERED }
    }

    /// What is computed. `None`: the word is unknown.
    pub(crate) fn math(&self) -> Option<&'static Math> {
        MATHS.iter().find(|math| math.word == self.math)
    }

    /// The question.
    pub(crate) fn query(&self) -> Value {
        let event = Some(self.event.as_str()).filter(|event| !event.is_empty());
        let mut series = json!({ "kind": "EventsNode", "event": event, "math": self.math });
        if self.math().is_some_and(|math| math.has_property) && !self.property.is_empty() {
            series["math_property"] = json!(self.property);
        }
        let mut query = json!({
            "kind": "TrendsQuery",
            "series": [series],
            "interval": self.interval,
        });
        set_range(&mut query, &self.range);
        set_breakdown(&mut query, &self.breakdown);
        if self.compare {
            query["compareFilter"] = json!({ "compare": true });
        }
        query
    }

    /// The form whose fields have the parts of a question. `None`: it has choices that the form
    /// has not.
    #[cfg(feature = "ssr")]
    pub(super) fn of_query(query: &Value) -> Option<Self> {
        let series = &query["series"][0];
        let form = Self::read(&|name: &str| match name {
            "event" => text(&series["event"]),
            "math" => text(&series["math"]),
            "property" => text(&series["math_property"]),
            "interval" => text(&query["interval"]),
            "range" => text(&query["dateRange"]["date_from"]),
            "breakdown" => text(&query["breakdownFilter"]["breakdown"]),
            _ => match query["compareFilter"]["compare"].as_bool() {
                Some(true) => "on".to_owned(),
                _ => String::new(),
            },
        });
        let is_offered =
            form.math().is_some() && RANGES.iter().any(|(from, _)| *from == form.range);
        is_offered.then_some(form)
    }

    /// What is asked, in words: `Unique persons: signed up, by plan`.
    pub(crate) fn title(&self) -> String {
        let event = if self.event.is_empty() { "All events" } else { &self.event };
        let what = match self.math() {
            Some(math) if math.has_property => format!("{} of {}", math.label, self.property),
            Some(math) => math.label.to_owned(),
            None => self.math.clone(),
        };
        match self.breakdown.as_str() {
            "" => format!("{what}: {event}"),
            property => format!("{what}: {event}, by {property}"),
        }
    }
}

/// See [`super::QuestionForm::field_of`].
#[cfg(feature = "ssr")]
pub(super) const PARTS: &[(&str, &str)] = &[
    ("series__0__event", "event"),
    ("series__0__math_property", "property"),
    ("series__0__math", "math"),
    ("interval", "interval"),
    ("dateRange", "range"),
    ("breakdownFilter", "breakdown"),
];

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use serde_json::json;

    use super::super::tests::{canonical, fault_at, form, shown};
    use super::super::{INTERVALS, QuestionForm, RANGES, VALUES};
    use super::MATHS;

    #[test]
    fn every_choice_is_a_question_that_the_form_shows_again() {
        for math in &MATHS {
            for (interval, _) in INTERVALS {
                for &(range, _) in RANGES {
                    let whole = form(&[
                        ("event", "paid"),
                        ("math", math.word),
                        ("property", if math.has_property { "price" } else { "" }),
                        ("interval", interval),
                        ("range", range),
                        ("breakdown", "plan"),
                        ("compare", "on"),
                    ]);
                    assert_eq!(shown(&whole), Some(whole), "{} {interval} {range}", math.word);
                }
            }
        }
        let usual = form(&[]);
        assert_eq!(shown(&usual), Some(usual));
    }

    #[test]
    fn a_question_with_more_is_not_shown() {
        let usual = canonical(&form(&[]).query()).unwrap();
        assert_eq!(usual.get("breakdownFilter"), None);
        let divided = canonical(&form(&[("breakdown", "plan")]).query()).unwrap();
        assert_eq!(divided["breakdownFilter"]["breakdown_limit"], json!(VALUES));
        for more in [
            json!({"series": [{"event": "a"}, {"event": "b"}]}),
            json!({"series": [{"event": "a", "math": "p99", "math_property": "b"}]}),
            json!({"dateRange": {"date_from": "-5d"}}),
            json!({"properties": [{"key": "plan", "value": "pro", "operator": "exact"}]}),
            json!({"trendsFilter": {"display": "ActionsPie"}}),
        ] {
            let mut query = usual.clone();
            for (name, value) in more.as_object().unwrap() {
                query[name] = value.clone();
            }
            assert_eq!(QuestionForm::of_query(&canonical(&query).unwrap()), None, "{more}");
        }
    }

    #[test]
    fn faults_are_at_fields_of_the_form() {
        assert_eq!(fault_at(&[("math", "sum")]), Some("property"));
        assert_eq!(fault_at(&[("math", "most")]), Some("math"));
        assert_eq!(fault_at(&[("interval", "year")]), Some("interval"));
        assert_eq!(fault_at(&[("range", "soon")]), Some("range"));
        assert_eq!(form(&[]).field_of("query"), None);
    }

    #[test]
    fn a_question_has_words() {
        assert_eq!(form(&[]).title(), "Number of events: All events");
        let sum =
            [("event", "paid"), ("math", "sum"), ("property", "price"), ("breakdown", "plan")];
        assert_eq!(form(&sum).title(), "Sum of price: paid, by plan");
    }
}
