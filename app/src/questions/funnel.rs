//! The question of the form for funnels.

use serde_json::{Value, json};

#[cfg(feature = "ssr")]
use super::{DAY_RANGES, text};
use super::{USUAL_RANGE, number, set_breakdown, set_range, value_or};

/// The word of the kind in addresses.
pub(super) const WORD: &str = "funnel";

/// The names of the fields, those of the steps first.
pub(super) const FIELDS: &[&str] = &[
    "step1",
    "step2",
    "step3",
    "step4",
    "step5",
    "step6",
    "step7",
    "step8",
    "step9",
    "step10",
    "order",
    "window",
    "unit",
    "range",
    "breakdown",
];
/// The names of the fields of the steps.
pub(crate) const STEPS: &[&str] = FIELDS.split_at(10).0;
/// Fewest steps.
pub(crate) const STEPS_MIN: usize = 2;

/// In which order persons do the steps: word and label.
pub(crate) const ORDERS: [(&str, &str); 3] = [
    ("ordered", "In their order"),
    ("strict", "In their order, nothing in between"),
    ("unordered", "In any order"),
];

/// The units of the conversion window: word and label.
pub(crate) const UNITS: [(&str, &str); 6] = [
    ("second", "Seconds"),
    ("minute", "Minutes"),
    ("hour", "Hours"),
    ("day", "Days"),
    ("week", "Weeks"),
    ("month", "Months"),
];

/// The values without a choice.
const USUAL_ORDER: &str = "ordered";
const USUAL_WINDOW: &str = "14";
const USUAL_UNIT: &str = "day";

/// The values of the form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FunnelForm {
    /// The names of the events. An empty field is no step.
    pub(crate) steps: Vec<String>,
    /// A word of [`ORDERS`].
    pub(crate) order: String,
    /// How many units a person may take for all steps.
    pub(crate) window: String,
    /// A word of [`UNITS`].
    pub(crate) unit: String,
    /// A date of [`DAY_RANGES`](super::DAY_RANGES).
    pub(crate) range: String,
    /// The property of events whose values divide the answer. Empty: nothing does.
    pub(crate) breakdown: String,
}

impl FunnelForm {
    pub(super) fn read(value: &dyn Fn(&str) -> String) -> Self {
        let steps = STEPS.iter().map(|name| value(name)).filter(|event| !event.is_empty());
        Self {
            steps: steps.collect(),
            order: value_or(value, "order", USUAL_ORDER),
            window: value_or(value, "window", USUAL_WINDOW),
            unit: value_or(value, "unit", USUAL_UNIT),
            range: value_or(value, "range", USUAL_RANGE),
            breakdown: value("breakdown"),
        }
    }

    pub(super) fn pairs(&self) -> Vec<(&'static str, String)> {
        let steps = STEPS.iter().copied().zip(self.steps.iter().cloned());
        let rest = [
            ("order", self.order.clone()),
            ("window", self.window.clone()),
            ("unit", self.unit.clone()),
            ("range", self.range.clone()),
            ("breakdown", self.breakdown.clone()),
        ];
        steps.chain(rest).collect()
    }

    pub(crate) fn query(&self) -> Value {
        let step = |event: &String| json!({ "kind": "EventsNode", "event": event });
        let series: Vec<Value> = self.steps.iter().map(step).collect();
        let mut query = json!({
            "kind": "FunnelsQuery",
            "series": series,
            "funnelsFilter": {
                "funnelOrderType": self.order,
                "funnelWindowInterval": number(&self.window),
                "funnelWindowIntervalUnit": self.unit,
            },
        });
        set_range(&mut query, &self.range);
        set_breakdown(&mut query, &self.breakdown);
        query
    }

    /// The form whose fields have the parts of a question. `None`: it has choices that the form
    /// has not.
    #[cfg(feature = "ssr")]
    pub(super) fn of_query(query: &Value) -> Option<Self> {
        let (series, filter) = (query["series"].as_array()?, &query["funnelsFilter"]);
        let form = Self {
            steps: series.iter().map(|step| text(&step["event"])).collect(),
            order: text(&filter["funnelOrderType"]),
            window: filter["funnelWindowInterval"].to_string(),
            unit: text(&filter["funnelWindowIntervalUnit"]),
            range: match text(&query["dateRange"]["date_from"]) {
                none if none.is_empty() => USUAL_RANGE.to_owned(),
                range => range,
            },
            breakdown: text(&query["breakdownFilter"]["breakdown"]),
        };
        let has_fields = form.steps.len() <= STEPS.len()
            && form.steps.iter().all(|event| !event.is_empty())
            && DAY_RANGES.iter().any(|(from, _)| *from == form.range);
        has_fields.then_some(form)
    }

    pub(crate) fn title(&self) -> String {
        let steps = self.steps.join(", ");
        match self.breakdown.as_str() {
            "" => format!("Funnel: {steps}"),
            property => format!("Funnel: {steps}, by {property}"),
        }
    }

    /// Whether it has enough steps.
    pub(crate) fn is_complete(&self) -> bool {
        self.steps.len() >= STEPS_MIN
    }
}

/// See [`super::QuestionForm::field_of`].
#[cfg(feature = "ssr")]
pub(super) const PARTS: &[(&str, &str)] = &[
    ("funnelsFilter__funnelOrderType", "order"),
    ("funnelsFilter__funnelWindowIntervalUnit", "unit"),
    ("funnelsFilter__funnelWindowInterval", "window"),
    ("dateRange", "range"),
    ("breakdownFilter", "breakdown"),
];

/// The field of the step that a fault of the series is at.
#[cfg(feature = "ssr")]
pub(super) fn step_of(attr: &str) -> Option<&'static str> {
    let Some(step) = attr.strip_prefix("series__") else {
        // There are too few steps.
        return STEPS.get(STEPS_MIN - 1).copied();
    };
    let number = step.split('_').next()?.parse::<usize>().ok()?;
    STEPS.get(number).copied()
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use serde_json::json;

    use super::super::tests::{canonical, fault_at, form, shown};
    use super::super::{DAY_RANGES, QuestionForm};
    use super::{ORDERS, STEPS, UNITS};

    const TWO: [(&str, &str); 3] = [("kind", "funnel"), ("step1", "seen"), ("step2", "paid")];

    /// The fields of a funnel of two steps, and more.
    fn with(more: &[(&'static str, &'static str)]) -> Vec<(&'static str, &'static str)> {
        TWO.iter().chain(more).copied().collect()
    }

    #[test]
    fn every_choice_is_a_question_that_the_form_shows_again() {
        for (order, _) in ORDERS {
            for (unit, _) in UNITS {
                for &(range, _) in DAY_RANGES {
                    let whole = form(&with(&[
                        ("order", order),
                        ("window", "3"),
                        ("unit", unit),
                        ("range", range),
                        ("breakdown", "plan"),
                    ]));
                    assert_eq!(shown(&whole), Some(whole), "{order} {unit} {range}");
                }
            }
        }
        let usual = form(&TWO);
        assert_eq!(shown(&usual), Some(usual));
        let mut fields = vec![("kind", "funnel")];
        fields.extend(STEPS.iter().map(|name| (*name, "seen")));
        let most = form(&fields);
        assert_eq!(shown(&most), Some(most));
    }

    #[test]
    fn an_empty_field_is_no_step() {
        let gap = form(&[("kind", "funnel"), ("step2", "seen"), ("step10", "paid")]);
        assert_eq!(gap, form(&TWO));
        let QuestionForm::Funnel(one) = form(&[("kind", "funnel"), ("step4", "seen")]) else {
            panic!("a funnel")
        };
        assert!(!one.is_complete());
    }

    #[test]
    fn a_question_with_more_is_not_shown() {
        let usual = canonical(&form(&TWO).query()).unwrap();
        let many = vec![json!({"event": "seen"}); STEPS.len() + 1];
        for more in [
            json!({"series": many}),
            json!({"series": [{"event": "seen"}, {"event": null}]}),
            json!({"series": [{"event": "seen"}, {"event": "paid", "custom_name": "Paid"}]}),
            json!({"dateRange": {"date_from": "-1h"}}),
            json!({"interval": "week"}),
            json!({"funnelsFilter": {"funnelVizType": "trends"}}),
            json!({"funnelsFilter": {"exclusions": [{"event": "left"}]}}),
            json!({"breakdownFilter": {"breakdown": "plan", "breakdown_limit": 3}}),
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
        let long = "x".repeat(401);
        let at = |more: &[(&'static str, &'static str)]| fault_at(&with(more));
        assert_eq!(at(&[("order", "sorted")]), Some("order"));
        assert_eq!(at(&[("window", "0")]), Some("window"));
        assert_eq!(at(&[("window", "long")]), Some("window"));
        assert_eq!(at(&[("unit", "year")]), Some("unit"));
        assert_eq!(at(&[("range", "soon")]), Some("range"));
        assert_eq!(fault_at(&[("kind", "funnel"), ("step1", "seen")]), Some("step2"));
        let last = [("kind", "funnel"), ("step1", "seen"), ("step2", "paid"), ("step3", &*long)];
        assert_eq!(fault_at(&last), Some("step3"));
        let whole = form(&TWO);
        assert_eq!(whole.field_of("series__9__event"), Some("step10"));
        assert_eq!(whole.field_of("query"), None);
        assert_eq!(whole.field_of("series__10__event"), None);
    }

    #[test]
    fn a_question_has_words() {
        assert_eq!(form(&TWO).title(), "Funnel: seen, paid");
        assert_eq!(form(&with(&[("breakdown", "plan")])).title(), "Funnel: seen, paid, by plan");
    }
}
