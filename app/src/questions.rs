//! The questions of the forms for insights: the fields of each kind, and the same question as
//! JSON.
//!
//! What belongs here: the choices of the forms, and which questions they can show. What does
//! not: the answers (`server_fns::insights`), and the forms themselves (`pages::insights`).

pub(crate) mod funnel;
pub(crate) mod lifecycle;
pub(crate) mod paths;
pub(crate) mod retention;
pub(crate) mod stickiness;
pub(crate) mod trends;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use funnel::FunnelForm;
use lifecycle::LifecycleForm;
use paths::PathsForm;
use retention::RetentionForm;
use stickiness::StickinessForm;
use trends::TrendsForm;

/// The field with the kind of the question. Empty: trends.
pub(crate) const KIND: &str = "kind";

/// The kinds that have a form: the value of [`KIND`], and label.
pub(crate) const KINDS: [(&str, &str); 6] = [
    ("", "Trends"),
    (funnel::WORD, "Funnel"),
    (retention::WORD, "Retention"),
    (stickiness::WORD, "Stickiness"),
    (lifecycle::WORD, "Lifecycle"),
    (paths::WORD, "Paths"),
];

/// Number of values of a breakdown with a result of their own, as questions have it by default.
pub(crate) const VALUES: usize = 25;

/// The lengths of an interval: word and label.
pub(crate) const INTERVALS: [(&str, &str); 5] =
    [("minute", "Minute"), ("hour", "Hour"), ("day", "Day"), ("week", "Week"), ("month", "Month")];
const USUAL_INTERVAL: &str = "day";

/// The ranges: the date of their beginning, and label.
pub(crate) const RANGES: &[(&str, &str)] = &[
    ("-1h", "Last hour"),
    ("-24h", "Last 24 hours"),
    ("-7d", "Last 7 days"),
    ("-30d", "Last 30 days"),
    ("-90d", "Last 90 days"),
    ("mStart", "This month"),
    ("yStart", "This year"),
    ("all", "All time"),
];
/// Those that begin with a day.
pub(crate) const DAY_RANGES: &[(&str, &str)] = RANGES.split_at(2).1;
const USUAL_RANGE: &str = "-7d";

/// The fields of a form with their values, as addresses and requests have them. Empty ones are
/// missing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct QuestionFields(BTreeMap<String, String>);

impl QuestionFields {
    /// The question of these fields.
    pub(crate) fn form(&self) -> QuestionForm {
        QuestionForm::read(&|name: &str| self.0.get(name).cloned().unwrap_or_default())
    }
}

impl From<&QuestionForm> for QuestionFields {
    fn from(form: &QuestionForm) -> Self {
        let pairs = form.pairs().into_iter().filter(|(_, value)| !value.is_empty());
        Self(pairs.map(|(name, value)| (name.to_owned(), value)).collect())
    }
}

/// The values of the form of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum QuestionForm {
    Trends(TrendsForm),
    Funnel(FunnelForm),
    Retention(RetentionForm),
    Stickiness(StickinessForm),
    Lifecycle(LifecycleForm),
    Paths(PathsForm),
}

impl QuestionForm {
    /// The form with the values of its fields. Empty ones have their usual values.
    pub(crate) fn read(value: &dyn Fn(&str) -> String) -> Self {
        match value(KIND).as_str() {
            funnel::WORD => Self::Funnel(FunnelForm::read(value)),
            retention::WORD => Self::Retention(RetentionForm::read(value)),
            stickiness::WORD => Self::Stickiness(StickinessForm::read(value)),
            lifecycle::WORD => Self::Lifecycle(LifecycleForm::read(value)),
            paths::WORD => Self::Paths(PathsForm::read(value)),
            _ => Self::Trends(TrendsForm::read(value)),
        }
    }

    /// The word of its kind in addresses.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Trends(_) => "",
            Self::Funnel(_) => funnel::WORD,
            Self::Retention(_) => retention::WORD,
            Self::Stickiness(_) => stickiness::WORD,
            Self::Lifecycle(_) => lifecycle::WORD,
            Self::Paths(_) => paths::WORD,
        }
    }

    /// The names of its fields, without that of its kind.
    pub(crate) fn fields(&self) -> &'static [&'static str] {
        match self {
            Self::Trends(_) => trends::FIELDS,
            Self::Funnel(_) => funnel::FIELDS,
            Self::Retention(_) => retention::FIELDS,
            Self::Stickiness(_) => stickiness::FIELDS,
            Self::Lifecycle(_) => lifecycle::FIELDS,
            Self::Paths(_) => paths::FIELDS,
        }
    }

    /// Names and values of all of its fields.
    pub(crate) fn pairs(&self) -> Vec<(&'static str, String)> {
        let own = match self {
            Self::Trends(form) => form.pairs(),
            Self::Funnel(form) => form.pairs(),
            Self::Retention(form) => form.pairs(),
            Self::Stickiness(form) => form.pairs(),
            Self::Lifecycle(form) => form.pairs(),
            Self::Paths(form) => form.pairs(),
        };
        std::iter::once((KIND, self.kind().to_owned())).chain(own).collect()
    }

    /// The question.
    pub(crate) fn query(&self) -> Value {
        match self {
            Self::Trends(form) => form.query(),
            Self::Funnel(form) => form.query(),
            Self::Retention(form) => form.query(),
            Self::Stickiness(form) => form.query(),
            Self::Lifecycle(form) => form.query(),
            Self::Paths(form) => form.query(),
        }
    }

    /// What is asked, in words.
    pub(crate) fn title(&self) -> String {
        match self {
            Self::Trends(form) => form.title(),
            Self::Funnel(form) => form.title(),
            Self::Retention(form) => form.title(),
            Self::Stickiness(form) => form.title(),
            Self::Lifecycle(form) => form.title(),
            Self::Paths(form) => form.title(),
        }
    }

    /// The form of a saved question. `None`: the question has parts that no form has.
    #[cfg(feature = "ssr")]
    pub(crate) fn of_query(query: &Value) -> Option<Self> {
        let form = match query["kind"].as_str()? {
            "TrendsQuery" => Self::Trends(TrendsForm::of_query(query)?),
            "FunnelsQuery" => Self::Funnel(FunnelForm::of_query(query)?),
            "RetentionQuery" => Self::Retention(RetentionForm::of_query(query)?),
            "StickinessQuery" => Self::Stickiness(StickinessForm::of_query(query)?),
            "LifecycleQuery" => Self::Lifecycle(LifecycleForm::of_query(query)?),
            "PathsQuery" => Self::Paths(PathsForm::of_query(query)?),
            _ => return None,
        };
        let same = weir_questions::Query::read(&form.query()).ok()?;
        let same = serde_json::to_value(&same).ok()?;
        (same == *query).then_some(form)
    }

    /// The field of the form that a fault of the question is at. `None`: that of no field.
    #[cfg(feature = "ssr")]
    pub(crate) fn field_of(&self, attr: &str) -> Option<&'static str> {
        let parts = match self {
            Self::Trends(_) => trends::PARTS,
            Self::Funnel(_) if attr.starts_with("series") => return funnel::step_of(attr),
            Self::Funnel(_) => funnel::PARTS,
            Self::Retention(_) => retention::PARTS,
            Self::Stickiness(_) => stickiness::PARTS,
            Self::Lifecycle(_) => lifecycle::PARTS,
            Self::Paths(_) => paths::PARTS,
        };
        parts.iter().find(|(part, _)| attr.starts_with(part)).map(|(_, field)| *field)
    }
}

/// The value of a field, or another one if it is empty.
fn value_or(value: &dyn Fn(&str) -> String, name: &str, usual: &str) -> String {
    Some(value(name)).filter(|it| !it.is_empty()).unwrap_or_else(|| usual.to_owned())
}

/// A number as JSON. What is none stays a text, which the question then refuses.
fn number(text: &str) -> Value {
    text.trim().parse::<i64>().map_or_else(|_| json!(text), |number| json!(number))
}

/// Gives a question its range.
fn set_range(query: &mut Value, range: &str) {
    if range != USUAL_RANGE {
        query["dateRange"] = json!({ "date_from": range });
    }
}

/// Gives a question its breakdown by a property of events.
fn set_breakdown(query: &mut Value, property: &str) {
    if !property.is_empty() {
        query["breakdownFilter"] = json!({ "breakdown": property, "breakdown_type": "event" });
    }
}

/// A text of a saved question.
#[cfg(feature = "ssr")]
fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use serde_json::{Value, json};
    use weir_questions::Query;

    use super::{KINDS, QuestionFields, QuestionForm};

    /// The form with these fields.
    pub(super) fn form(fields: &[(&str, &str)]) -> QuestionForm {
        let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        QuestionFields(fields.collect()).form()
    }

    /// The form that shows the question of a form.
    pub(super) fn shown(form: &QuestionForm) -> Option<QuestionForm> {
        QuestionForm::of_query(&canonical(&form.query())?)
    }

    pub(super) fn canonical(query: &Value) -> Option<Value> {
        serde_json::to_value(Query::read(query).ok()?).ok()
    }

    /// The field of the fault of a question.
    pub(super) fn fault_at(fields: &[(&str, &str)]) -> Option<&'static str> {
        let form = form(fields);
        let fault = Query::read(&form.query()).err()?;
        form.field_of(&fault.attr?)
    }

    #[test]
    fn fields_lead_back_to_their_form() {
        for (kind, _) in KINDS {
            let usual = form(&[("kind", kind)]);
            assert_eq!(usual.kind(), kind);
            let some = form(&[("kind", kind), ("step1", "a"), ("step3", "b"), ("event", "c")]);
            for one in [usual, some] {
                assert_eq!(QuestionFields::from(&one).form(), one);
                let names = one.pairs().into_iter().map(|(name, _)| name);
                assert!(
                    names.filter(|name| *name != "kind").all(|name| one.fields().contains(&name))
                );
            }
        }
    }

    #[test]
    fn questions_of_other_kinds_have_no_form() {
        for query in [
            json!({"kind": "EventsQuery", "select": ["*"]}),
            json!({"kind": "HogQLQuery", "query": "SELECT count() FROM events"}),
        ] {
            assert_eq!(QuestionForm::of_query(&canonical(&query).unwrap()), None);
        }
    }
}
