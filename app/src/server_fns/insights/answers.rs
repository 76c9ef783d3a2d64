//! Answers to the questions of the forms for insights, as the pages show them.
//!
//! What belongs here: the parts of results that pages show. What does not: the questions
//! (`questions`), and computing an answer (`weir-service`).

#[cfg(feature = "ssr")]
mod funnel;
#[cfg(feature = "ssr")]
mod lifecycle;
#[cfg(feature = "ssr")]
pub(crate) mod number;
#[cfg(feature = "ssr")]
mod paths;
#[cfg(feature = "ssr")]
pub(in crate::server_fns) mod retention;
#[cfg(feature = "ssr")]
mod stickiness;
#[cfg(feature = "ssr")]
pub(in crate::server_fns) mod trends;

use serde::{Deserialize, Serialize};
#[cfg(feature = "ssr")]
use weir_questions::results::BreakdownValue;
#[cfg(feature = "ssr")]
use weir_service::{ProjectCtx, Services};

#[cfg(feature = "ssr")]
use crate::error::UiError;
#[cfg(feature = "ssr")]
use crate::questions::QuestionForm;
#[cfg(feature = "ssr")]
use crate::server_fns::asking::{ask, read};

/// The most intervals that a page shows, because its chart has a number for each.
#[cfg(feature = "ssr")]
const INTERVALS_MAX: usize = 400;

/// The answer to a question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct AnswerView {
    /// What the answer has for its kind of question.
    pub(crate) results: ResultsView,
    /// When it was computed.
    pub(crate) computed_at: String,
}

/// What an answer has for its kind of question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ResultsView {
    Trends(TrendsView),
    Funnel(FunnelView),
    Retention(Vec<CohortView>),
    Stickiness(StickinessView),
    Lifecycle(LifecycleView),
    Paths(PathsView),
}

/// The results of trends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct TrendsView {
    /// The texts of the intervals, in the zone of the project.
    pub(crate) intervals: Vec<String>,
    /// The series, the largest first: one, or one for each value of the breakdown.
    pub(crate) series: Vec<SeriesView>,
    /// Whether the last series has all further values of the breakdown.
    pub(crate) has_others: bool,
}

/// A series of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct SeriesView {
    pub(crate) label: String,
    /// Its value of the breakdown, as questions have it. `None`: there is no breakdown.
    pub(crate) value: Option<String>,
    pub(crate) numbers: NumbersView,
    /// Those of the period before, if it is compared.
    pub(crate) before: Option<NumbersView>,
}

/// The numbers of a series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct NumbersView {
    /// One for each interval. Empty if the chart does not draw the series.
    pub(crate) data: Vec<f64>,
    /// The number of the whole range. `None`: it is not known.
    pub(crate) whole: Option<f64>,
}

/// The results of a funnel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct FunnelView {
    /// The names of the steps.
    pub(crate) names: Vec<String>,
    /// The persons of each value of the breakdown, the most first, or all persons.
    pub(crate) values: Vec<FunnelValue>,
    /// Whether the last value is all further ones of the breakdown.
    pub(crate) has_others: bool,
}

/// The persons of a value in a funnel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct FunnelValue {
    /// The value. Empty: there is no breakdown.
    pub(crate) label: String,
    /// The same as questions have it.
    pub(crate) value: Option<String>,
    pub(crate) steps: Vec<StepView>,
}

/// The persons who did a step and those before it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct StepView {
    pub(crate) count: u64,
    /// The median time since the step before, in seconds.
    pub(crate) median: Option<f64>,
}

/// The persons who begin in a period.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CohortView {
    /// The text of the period, in the zone of the project.
    pub(crate) label: String,
    /// How many persons begin, and how many of them come back in each period after it that has
    /// begun.
    pub(crate) counts: Vec<u64>,
}

/// The results of stickiness.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct StickinessView {
    /// The texts of the numbers of intervals, such as `2 days`.
    pub(crate) labels: Vec<String>,
    /// The persons who are active in so many intervals.
    pub(crate) counts: Vec<u64>,
    /// All persons.
    pub(crate) total: u64,
}

/// The results of a lifecycle.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct LifecycleView {
    /// The texts of the intervals, in the zone of the project.
    pub(crate) intervals: Vec<String>,
    pub(crate) statuses: Vec<StatusView>,
}

/// The persons of a status.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct StatusView {
    /// Its word.
    pub(crate) status: String,
    /// Persons in each interval. Those who stay away are negative numbers.
    pub(crate) data: Vec<f64>,
    /// The sum of the numbers.
    pub(crate) sum: f64,
}

/// The results of paths.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PathsView {
    /// The most frequent first.
    pub(crate) edges: Vec<EdgeView>,
    /// Whether there are more.
    pub(crate) has_others: bool,
}

/// A step of paths with the one after it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct EdgeView {
    /// The number of the first of both, from 1.
    pub(crate) step: u32,
    pub(crate) from: String,
    pub(crate) to: String,
    /// How often persons did one after the other.
    pub(crate) count: u64,
    /// The average time in between, in milliseconds.
    pub(crate) average: f64,
}

/// Answers the question of a form. A fault has the name of a field of the form.
#[cfg(feature = "ssr")]
pub(super) async fn answer(
    services: &Services,
    project: &ProjectCtx,
    form: &QuestionForm,
) -> Result<AnswerView, UiError> {
    let answer = match form {
        QuestionForm::Trends(form) => trends::answer(services, project, form).await,
        QuestionForm::Funnel(form) => funnel::answer(services, project, form).await,
        QuestionForm::Retention(form) => retention::answer(services, project, form).await,
        QuestionForm::Stickiness(form) => stickiness::answer(services, project, form).await,
        QuestionForm::Lifecycle(form) => lifecycle::answer(services, project, form).await,
        QuestionForm::Paths(form) => paths::answer(services, project, form).await,
    };
    answer.map_err(|error| at_field(form, error))
}

/// Moves the fault of a question to the field of its form.
#[cfg(feature = "ssr")]
fn at_field(form: &QuestionForm, error: UiError) -> UiError {
    use weir_model::errors::FieldError;

    match error {
        UiError::Field(fault) => {
            let attr = fault.attr.as_deref().and_then(|attr| match form.fields().contains(&attr) {
                true => Some(attr),
                false => form.field_of(attr),
            });
            let attr = attr.map(str::to_owned);
            UiError::Field(FieldError { attr, ..fault })
        }
        other => other,
    }
}

/// Refuses more intervals than a page shows.
#[cfg(feature = "ssr")]
fn check_intervals(intervals: &[String]) -> Result<(), UiError> {
    if intervals.len() <= INTERVALS_MAX {
        return Ok(());
    }
    let detail = format!(
        "The page shows at most {INTERVALS_MAX} intervals. Choose a longer interval or a shorter \
         range."
    );
    Err(UiError::field("interval", "max_length", &detail))
}

/// The label of a series or of a value of a breakdown, for readers. It can have the values of
/// several properties.
#[cfg(feature = "ssr")]
fn label(text: &str) -> String {
    use weir_questions::results::{BREAKDOWN_NULL, BREAKDOWN_OTHER};

    if text.is_empty() {
        return "Empty text".to_owned();
    }
    let label = text.replace(BREAKDOWN_OTHER, "All other values");
    label.replace(BREAKDOWN_NULL, "Without a value")
}

/// The label of a value of a breakdown. Empty: there is no breakdown.
#[cfg(feature = "ssr")]
pub(in crate::server_fns) fn value_label(value: Option<&BreakdownValue>) -> String {
    value.map(|value| label(&value.label())).unwrap_or_default()
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use weir_questions::results::{BREAKDOWN_NULL, BREAKDOWN_OTHER, BreakdownValue};

    use super::value_label;

    #[test]
    fn values_of_breakdowns_have_words() {
        let one = |text: &str| value_label(Some(&BreakdownValue::One(text.to_owned())));
        assert_eq!(one(BREAKDOWN_OTHER), "All other values");
        assert_eq!((one(""), one("pro")), ("Empty text".to_owned(), "pro".to_owned()));
        let both = [BREAKDOWN_NULL, "pro"].map(str::to_owned).to_vec();
        assert_eq!(value_label(Some(&BreakdownValue::Many(both))), "Without a value::pro");
        assert_eq!(value_label(None), "");
    }
}
