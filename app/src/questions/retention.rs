//! The question of the form for retention.

use serde_json::{Value, json};

#[cfg(feature = "ssr")]
use super::text;
use super::{number, value_or};

/// The word of the kind in addresses.
pub(super) const WORD: &str = "retention";

/// Most periods: the table of the answer has a column for each.
pub(crate) const TOTAL_MAX: u32 = 31;

/// Which persons begin in a period: word and label.
pub(crate) const TYPES: [(&str, &str); 2] =
    [("retention_recurring", "Each time"), ("retention_first_time", "The first time ever")];

/// The lengths of a period: word and label.
pub(crate) const PERIODS: [(&str, &str); 4] =
    [("Hour", "Hour"), ("Day", "Day"), ("Week", "Week"), ("Month", "Month")];

/// The values without a choice.
const USUAL_TYPE: &str = "retention_recurring";
const USUAL_PERIOD: &str = "Day";
const USUAL_TOTAL: &str = "8";

/// The names of the fields. In scripts, one named `target` would hide that member of its form.
pub(super) const FIELDS: &[&str] = &["target_event", "returning_event", "type", "period", "total"];

/// The values of the form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RetentionForm {
    /// The name of the events with which persons begin. Empty: all events.
    pub(crate) target: String,
    /// The name of the events with which they come back. Empty: all events.
    pub(crate) returning: String,
    /// A word of [`TYPES`].
    pub(crate) kind: String,
    /// A word of [`PERIODS`].
    pub(crate) period: String,
    /// How many periods there are, and how many of them a person is followed.
    pub(crate) total: String,
}

impl RetentionForm {
    pub(super) fn read(value: &dyn Fn(&str) -> String) -> Self {
        Self {
            target: value("target_event"),
            returning: value("returning_event"),
            kind: value_or(value, "type", USUAL_TYPE),
            period: value_or(value, "period", USUAL_PERIOD),
            total: value_or(value, "total", USUAL_TOTAL),
        }
    }

    pub(super) fn pairs(&self) -> Vec<(&'static str, String)> {
        vec![
            ("target_event", self.target.clone()),
            ("returning_event", self.returning.clone()),
            ("type", self.kind.clone()),
            ("period", self.period.clone()),
            ("total", self.total.clone()),
        ]
    }

    pub(crate) fn query(&self) -> Value {
        let entity = |event: &String| {
            let id = Some(event).filter(|event| !event.is_empty());
            json!({ "type": "events", "id": id })
        };
        json!({
            "kind": "RetentionQuery",
            "retentionFilter": {
                "retentionType": self.kind,
                "period": self.period,
                "totalIntervals": number(&self.total),
                "targetEntity": entity(&self.target),
                "returningEntity": entity(&self.returning),
            },
        })
    }

    /// The form whose fields have the parts of a question. `None`: it has more periods than the
    /// page shows.
    #[cfg(feature = "ssr")]
    pub(super) fn of_query(query: &Value) -> Option<Self> {
        let filter = &query["retentionFilter"];
        let total = filter["totalIntervals"].as_u64().filter(|it| *it <= u64::from(TOTAL_MAX))?;
        Some(Self {
            target: text(&filter["targetEntity"]["id"]),
            returning: text(&filter["returningEntity"]["id"]),
            kind: text(&filter["retentionType"]),
            period: text(&filter["period"]),
            total: total.to_string(),
        })
    }

    pub(crate) fn title(&self) -> String {
        let name = |event: &str| match event {
            "" => "any event".to_owned(),
            event => event.to_owned(),
        };
        format!("Retention: {}, then {}", name(&self.target), name(&self.returning))
    }

    /// Whether a person can begin in several periods.
    pub(crate) fn is_recurring(&self) -> bool {
        self.kind == USUAL_TYPE
    }

    /// The name of a period by its number, as results have it: `Day 1`.
    pub(crate) fn period_name(&self, number: usize) -> String {
        format!("{} {number}", self.period)
    }
}

/// See [`super::QuestionForm::field_of`].
#[cfg(feature = "ssr")]
pub(super) const PARTS: &[(&str, &str)] = &[
    ("retentionFilter__targetEntity", "target_event"),
    ("retentionFilter__returningEntity", "returning_event"),
    ("retentionFilter__retentionType", "type"),
    ("retentionFilter__period", "period"),
    ("retentionFilter__totalIntervals", "total"),
];

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use serde_json::json;

    use super::super::QuestionForm;
    use super::super::tests::{canonical, fault_at, form, shown};
    use super::{PERIODS, TOTAL_MAX, TYPES};

    const USUAL: (&str, &str) = ("kind", "retention");

    #[test]
    fn every_choice_is_a_question_that_the_form_shows_again() {
        let most = TOTAL_MAX.to_string();
        for (kind, _) in TYPES {
            for (period, _) in PERIODS {
                for total in ["1", &*most] {
                    let whole = form(&[
                        USUAL,
                        ("target_event", "seen"),
                        ("returning_event", "paid"),
                        ("type", kind),
                        ("period", period),
                        ("total", total),
                    ]);
                    assert_eq!(shown(&whole), Some(whole), "{kind} {period} {total}");
                }
            }
        }
        let usual = form(&[USUAL]);
        assert_eq!(shown(&usual), Some(usual));
    }

    #[test]
    fn a_question_with_more_is_not_shown() {
        let usual = canonical(&form(&[USUAL]).query()).unwrap();
        for (name, value) in [
            ("totalIntervals", json!(TOTAL_MAX + 1)),
            ("cumulative", json!(true)),
            ("minimumOccurrences", json!(2)),
            ("targetEntity", json!({"id": "seen", "custom_name": "Seen"})),
        ] {
            let mut query = usual.clone();
            query["retentionFilter"][name] = value;
            assert_eq!(QuestionForm::of_query(&canonical(&query).unwrap()), None, "{name}");
        }
        let mut query = usual;
        query["dateRange"] = json!({"date_from": "-30d"});
        assert_eq!(QuestionForm::of_query(&canonical(&query).unwrap()), None);
    }

    #[test]
    fn faults_are_at_fields_of_the_form() {
        let long = "x".repeat(401);
        assert_eq!(fault_at(&[USUAL, ("target_event", &*long)]), Some("target_event"));
        assert_eq!(fault_at(&[USUAL, ("returning_event", &*long)]), Some("returning_event"));
        assert_eq!(fault_at(&[USUAL, ("type", "once")]), Some("type"));
        assert_eq!(fault_at(&[USUAL, ("period", "Year")]), Some("period"));
        assert_eq!(fault_at(&[USUAL, ("total", "0")]), Some("total"));
        assert_eq!(fault_at(&[USUAL, ("total", "all")]), Some("total"));
        assert_eq!(form(&[USUAL]).field_of("query"), None);
    }

    #[test]
    fn a_question_has_words() {
        assert_eq!(form(&[USUAL]).title(), "Retention: any event, then any event");
        let named = form(&[USUAL, ("target_event", "seen"), ("returning_event", "paid")]);
        assert_eq!(named.title(), "Retention: seen, then paid");
        let QuestionForm::Retention(named) = named else { panic!("retention") };
        assert_eq!(named.period_name(3), "Day 3");
        assert!(named.is_recurring());
    }
}
