//! A number of an answer: its name in words, and its persons.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use weir_model::errors::FieldError;
use weir_questions::Query;
use weir_questions::query::ACTORS_LIMIT_MAX;
use weir_questions::results::{
    BreakdownValue, CompareLabel, LifecycleResult, RetentionResult, StickinessResult, TrendsResult,
};
use weir_service::persons::display_name;
use weir_service::questions::NumberPerson as Found;
use weir_service::{Error, ProjectCtx, Services};

use super::retention::period_labels;
use super::{INTERVALS_MAX, ask, read, value_label};
use crate::context::ui_error;
use crate::days;
use crate::error::UiError;
use crate::questions::QuestionForm;
use crate::questions::lifecycle::status_label;
use crate::server_fns::insights::persons::{NumberPerson, NumberView};

/// Most persons of a page.
pub(in crate::server_fns) const PERSONS_MAX: u32 = ACTORS_LIMIT_MAX;
/// Limit of distinct ids per person.
const IDS: usize = 3;

/// The parameters that name a number, and the members of the question for its persons. Beside
/// them `value` is a value of the breakdown, and `before` the period before.
const MEMBERS: [(&str, &str); 6] = [
    ("day", "day"),
    ("status", "status"),
    ("active", "day"),
    ("step", "funnelStep"),
    ("cohort", "interval"),
    ("return", "appearance"),
];

/// The parameters that name an edge of paths, and the members of the filter of its question.
const STEPS: [(&str, &str); 2] = [("from", "pathStartKey"), ("to", "pathEndKey")];

/// The parameters of an address.
type Parameters = BTreeMap<String, String>;

fn value<'p>(parameters: &'p Parameters, name: &str) -> Option<&'p str> {
    parameters.get(name).map(String::as_str).filter(|value| !value.is_empty())
}

/// The number that parameters name, with a page of its persons.
pub(in crate::server_fns) async fn view(
    services: &Services,
    project: &ProjectCtx,
    parameters: &Parameters,
    limit: u32,
    offset: u32,
) -> Result<NumberView, UiError> {
    let form = form(parameters);
    let query = question(parameters, limit, offset).map_err(|fault| ui_error(fault.into()))?;
    let text = serde_json::to_string(&query);
    let text = text.map_err(|error| ui_error(Error::Internal(error.to_string())))?;
    let end = offset.saturating_add(limit);
    let (mut persons, mut total, mut next) = (Vec::new(), 0, Some(query));
    // An answer has fewer persons if they have many properties.
    while let Some(query) = next.take() {
        let found = services.questions.persons(project, query).await.map_err(ui_error)?;
        total = found.total;
        persons.extend(found.persons.into_iter().map(person));
        if let Some(from) = found.next.filter(|from| *from < end) {
            let query = question(parameters, end - from, from);
            next = Some(query.map_err(|fault| ui_error(fault.into()))?);
        }
    }
    let (mut details, intervals) = words(services, project, &form, parameters).await?;
    if let Some(text) = value(parameters, "value") {
        details.push(value_label(Some(&BreakdownValue::One(text.to_owned()))));
    }
    if value(parameters, "before").is_some() {
        details.push("In the period before".to_owned());
    }
    Ok(NumberView { title: form.title(), details, intervals, total, persons, query: text })
}

fn form(parameters: &Parameters) -> QuestionForm {
    QuestionForm::read(&|name: &str| parameters.get(name).cloned().unwrap_or_default())
}

/// The question for the persons of the number that parameters name.
pub(crate) fn question(
    parameters: &Parameters,
    limit: u32,
    offset: u32,
) -> Result<Query, FieldError> {
    Query::read(&query(&form(parameters), parameters, limit, offset))
}

/// The same as JSON.
fn query(form: &QuestionForm, parameters: &Parameters, limit: u32, offset: u32) -> Value {
    let (kind, breakdown) = match form {
        QuestionForm::Funnel(_) => ("FunnelsActorsQuery", "funnelStepBreakdown"),
        _ => ("InsightActorsQuery", "breakdown"),
    };
    let mut source = json!({ "kind": kind, "source": form.query() });
    for (name, member) in MEMBERS.into_iter().chain([("value", breakdown)]) {
        if let Some(value) = value(parameters, name) {
            source[member] = json!(value);
        }
    }
    for (name, member) in STEPS {
        if let (QuestionForm::Paths(_), Some(value)) = (form, value(parameters, name)) {
            source["source"]["pathsFilter"][member] = json!(value);
        }
    }
    if value(parameters, "before").is_some() {
        source["compare"] = json!("previous");
    }
    let mut query = json!({ "kind": "ActorsQuery", "source": source, "select": ["person"],
        "limit": limit, "offset": offset });
    if matches!(form, QuestionForm::Trends(_)) {
        query["select"] = json!(["person", "event_count"]);
        query["orderBy"] = json!(["event_count DESC"]);
    }
    query
}

fn person(found: Found) -> NumberPerson {
    let Found { person, has_record, events } = found;
    NumberPerson {
        id: person.id.to_string(),
        name: display_name(&person),
        more_ids: person.distinct_ids.len().saturating_sub(IDS),
        is_identified: has_record.then_some(person.is_identified),
        distinct_ids: person.distinct_ids.into_iter().take(IDS).collect(),
        events,
    }
}

/// The name of a number in words, and the intervals that the answer has numbers for.
async fn words(
    services: &Services,
    project: &ProjectCtx,
    form: &QuestionForm,
    parameters: &Parameters,
) -> Result<(Vec<String>, Vec<(String, String)>), UiError> {
    let number = |name: &str| value(parameters, name).and_then(|text| text.parse::<i64>().ok());
    let place = |name: &str| number(name).and_then(|number| usize::try_from(number).ok());
    let of_form = || read(&form.query());
    let mut details = Vec::new();
    let mut intervals = Vec::new();
    match form {
        QuestionForm::Trends(_) => {
            let found = ask::<Vec<TrendsResult>>(services, project, of_form()?).await?.results;
            let is_before = value(parameters, "before").is_some();
            let of_range = |one: &TrendsResult| {
                (one.compare_label == Some(CompareLabel::Previous)) == is_before
            };
            let first = found.into_iter().find(of_range);
            intervals = first.map_or_else(Vec::new, |first| named(first.days, &first.labels));
        }
        QuestionForm::Lifecycle(_) => {
            let found = ask::<Vec<LifecycleResult>>(services, project, of_form()?).await?.results;
            let first = found.into_iter().next();
            intervals = first.map_or_else(Vec::new, |first| named(first.days, &first.labels));
            details.extend(value(parameters, "status").map(|word| status_label(word).to_owned()));
        }
        QuestionForm::Funnel(form) => {
            let step = number("step").unwrap_or(1);
            let at = usize::try_from(step.unsigned_abs()).unwrap_or(usize::MAX);
            let name = at.checked_sub(1).and_then(|at| form.steps.get(at));
            let name = name.cloned().unwrap_or_default();
            details.push(match step < 0 {
                true => format!("Stopped before step {at}: {name}"),
                false => format!("Did step {at}: {name}"),
            });
        }
        QuestionForm::Retention(form) => {
            let found = ask::<Vec<RetentionResult>>(services, project, of_form()?).await?;
            let period = match of_form()? {
                Query::Retention(query) => query.filter.period,
                _ => return Ok((details, intervals)),
            };
            let labels = period_labels(&found.results, period, &found.timezone, found.until);
            let began = place("cohort").and_then(|at| labels.get(at));
            details.extend(began.map(|label| format!("Began in {label}")));
            details.extend(
                place("return").map(|after| format!("Came back in {}", form.period_name(after))),
            );
        }
        QuestionForm::Stickiness(_) => {
            let found = ask::<Vec<StickinessResult>>(services, project, of_form()?).await?.results;
            let labels = found.first().map(|first| first.labels.as_slice()).unwrap_or_default();
            let label = place("active").and_then(|active| labels.get(active.checked_sub(1)?));
            details.extend(label.map(|label| format!("Active in {label}")));
        }
        QuestionForm::Paths(_) => {
            let step = |(name, label): (&str, &str)| {
                let (step, event) = value(parameters, name)?.split_once('_')?;
                Some(format!("{label} step {step}: {event}"))
            };
            details.extend([("from", "From"), ("to", "To")].into_iter().filter_map(step));
        }
    }
    if let Some(day) = value(parameters, "day") {
        let label = intervals.iter().find(|(named, _)| named == day);
        details.push(label.map_or(day, |(_, label)| label.as_str()).to_owned());
    }
    Ok((details, intervals))
}

/// Intervals by the texts that questions name them by. Too many for a list are none.
fn named(names: Vec<String>, labels: &[String]) -> Vec<(String, String)> {
    match names.len() <= INTERVALS_MAX {
        true => names.into_iter().zip(days::intervals(labels)).collect(),
        false => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_name_numbers() {
        for (kind, named, member) in [
            ("", &[("event", "paid"), ("day", "2026-08-21")][..], ("day", "2026-08-21")),
            ("", &[("breakdown", "plan"), ("value", "pro")][..], ("breakdown", "pro")),
            ("", &[("compare", "on"), ("before", "on")][..], ("compare", "previous")),
            ("funnel", &[("step1", "a"), ("step2", "b"), ("step", "-2")][..], ("funnelStep", "-2")),
            ("retention", &[("cohort", "3"), ("return", "1")][..], ("appearance", "1")),
            ("stickiness", &[("active", "2")][..], ("day", "2")),
            ("lifecycle", &[("status", "new")][..], ("status", "new")),
        ] {
            let first = ("kind", kind);
            let all = std::iter::once(&first).chain(named);
            let parameters: Parameters =
                all.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            let form =
                QuestionForm::read(&|name: &str| parameters.get(name).cloned().unwrap_or_default());
            let query = query(&form, &parameters, 50, 0);
            assert!(Query::read(&query).is_ok(), "{query}: {:?}", Query::read(&query));
            assert_eq!(query["source"][member.0], member.1, "{query}");
        }
    }

    #[test]
    fn steps_of_paths_are_in_their_filter() {
        let all = [("kind", "paths"), ("from", "1_/home"), ("to", "2_/pay")];
        let parameters: Parameters =
            all.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let query = query(&form(&parameters), &parameters, 50, 0);
        assert!(Query::read(&query).is_ok(), "{query}: {:?}", Query::read(&query));
        let filter = &query["source"]["source"]["pathsFilter"];
        assert_eq!(filter["pathStartKey"], "1_/home");
        assert_eq!(filter["pathEndKey"], "2_/pay");
    }
}
