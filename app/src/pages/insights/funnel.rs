//! Funnels: the fields of their form, and the answer with a bar for each step and a table.

use leptos::prelude::*;

use super::links::PersonLinks;
use super::question::{EVENTS, NAME_MAX, PROPERTIES, computed, notes};
use crate::questions::funnel::{FunnelForm, ORDERS, STEPS, UNITS};
use crate::questions::{DAY_RANGES, VALUES};
use crate::server_fns::insights::answers::{FunnelValue, FunnelView, StepView};
use crate::ui::chart::{NUMBERED, ShareBar, series_class};
use crate::ui::field::{Field, Select, choices};
use crate::ui::form::FormResult;
use crate::ui::number::{amount, counted, grouped, percent, seconds};
use crate::ui::table::{Column, Table, TableRow, cell, truncated};

/// What the form does not say in its labels.
pub(super) const HINT: &str =
    "A person converts by doing all steps within the conversion window. Empty a step to remove it.";
/// The query parameter with the number of steps that the form shows.
pub(super) const SHOWN: &str = "steps";
/// Fewest steps that the form shows.
const SHOWN_MIN: usize = 3;

/// How many steps the form shows: an empty one after those of the question, and at least as
/// many as were requested.
pub(super) fn shown(form: &FunnelForm, requested: usize) -> usize {
    (form.steps.len() + 1).max(requested).clamp(SHOWN_MIN, STEPS.len())
}

/// The fields of the form.
pub(super) fn fields(form: &FunnelForm, shown: usize, result: FormResult) -> AnyView {
    let FunnelForm { steps, order, window, unit, range, breakdown } = form.clone();
    let steps = STEPS.iter().copied().take(shown).enumerate().map(|(at, name)| {
        let event = steps.get(at).cloned().unwrap_or_default();
        view! {
            <Field result=result name=name label=format!("Step {}", at + 1) value=event max=NAME_MAX required=false list=EVENTS />
        }
    });
    let steps = steps.collect_view();
    view! {
        {steps}
        <Select result=result name="order" label="Order of steps" choices=choices(&ORDERS) value=order />
        <Field result=result name="window" label="Conversion window" value=window kind="number" required=false inputmode="numeric" />
        <Select result=result name="unit" label="Unit of the window" choices=choices(&UNITS) value=unit />
        <Select result=result name="range" label="Range" choices=choices(DAY_RANGES) value=range />
        <Field result=result name="breakdown" label="Break down by" value=breakdown max=NAME_MAX required=false list=PROPERTIES />
    }
    .into_any()
}

/// The button that shows one more step, if there can be one.
pub(super) fn add_step(shown: usize) -> Option<AnyView> {
    (shown < STEPS.len()).then(|| {
        let next = (shown + 1).to_string();
        view! { <button type="submit" class="button" name=SHOWN value=next>"Add step"</button> }
            .into_any()
    })
}

/// The answer to the question of a form.
pub(super) fn answer(
    form: &FunnelForm,
    found: FunnelView,
    links: &PersonLinks,
    computed_at: String,
) -> AnyView {
    let FunnelView { names, values, has_others } = found;
    if values.is_empty() {
        return view! {
            <div class="empty">
                <p>"No person did a step in the range, so there are no values to break it down by."</p>
            </div>
        }
        .into_any();
    }
    let is_divided = !form.breakdown.is_empty();
    let remarks = [
        (values.len() > NUMBERED)
            .then(|| format!("The bars show the first {NUMBERED} values of the table.")),
        has_others.then(|| format!("The first {VALUES} values have numbers of their own.")),
    ];
    let summary = match values.first() {
        Some(all) if !is_divided => summary(&all.steps),
        _ => format!("Persons by the first value of {} that they have.", form.breakdown),
    };
    view! {
        <div class="insight-answer funnel-answer">
            <figure class="chart" id="answer" aria-labelledby="answer-title">
                <h3 id="answer-title">{form.title()}</h3>
                <p>{summary}</p>
                <ol class="funnel">{bars(&names, &values)}</ol>
            </figure>
            <div>
                {table(form, &names, values, links)}
                {notes(remarks)}
                {computed(computed_at)}
            </div>
        </div>
    }
    .into_any()
}

/// How many persons did all steps.
fn summary(steps: &[StepView]) -> String {
    match (steps.first(), steps.last()) {
        (Some(first), Some(last)) if first.count > 0 => {
            let began = counted(first.count, "person", "persons");
            let share = percent(last.count, first.count);
            format!("{} of {began} did all steps: {share}.", grouped(last.count))
        }
        _ => "No person did a step.".to_owned(),
    }
}

/// The bars of each step, one for each of the first values. Their lengths are the numbers of
/// persons.
fn bars(names: &[String], values: &[FunnelValue]) -> AnyView {
    let drawn = || values.iter().take(NUMBERED).enumerate();
    let began = drawn().filter_map(|(_, value)| value.steps.first());
    let most = began.map(|step| step.count).max().unwrap_or(0);
    let step = |(at, name): (usize, &String)| {
        let bars = drawn().filter_map(|(number, value)| {
            let (first, step) = (value.steps.first()?, value.steps.get(at)?);
            let label = match value.label.as_str() {
                "" => String::new(),
                label => format!("{label}: "),
            };
            let share = percent(step.count, first.count);
            let text = format!("{label}{} ({share})", grouped(step.count));
            Some(view! {
                <div class="funnel-bar">
                    <ShareBar part=step.count whole=most class=series_class(number) />
                    <span>{text}</span>
                </div>
            })
        });
        let bars = bars.collect_view();
        view! {
            <li>
                <span class="funnel-step">{name.clone()}</span>
                {bars}
            </li>
        }
    };
    names.iter().enumerate().map(step).collect_view().into_any()
}

fn table(
    form: &FunnelForm,
    names: &[String],
    values: Vec<FunnelValue>,
    links: &PersonLinks,
) -> AnyView {
    let is_divided = !form.breakdown.is_empty();
    let of_value = is_divided.then(|| Column::named(form.breakdown.clone()));
    let columns = of_value.into_iter().chain([
        Column::text("Step"),
        Column::number("Persons"),
        Column::number("Stopped before"),
        Column::number("Of the first step"),
        Column::number("Of the step before"),
        Column::number("Median time"),
    ]);
    let rows = values.into_iter().flat_map(|value| rows(is_divided, names, &value, links));
    view! { <Table caption="Persons of each step" columns=columns.collect() rows=rows.collect() /> }
        .into_any()
}

/// The rows of a value.
fn rows(
    is_divided: bool,
    names: &[String],
    value: &FunnelValue,
    links: &PersonLinks,
) -> Vec<TableRow> {
    let raw = value.value.as_deref().unwrap_or_default();
    let persons = |count: u64, step: String| {
        links.count(count, &[("step", step.as_str()), ("value", raw)], grouped(count))
    };
    let counts: Vec<u64> = value.steps.iter().map(|step| step.count).collect();
    let first = counts.first().copied().unwrap_or(0);
    let row = |(at, (name, step)): (usize, (&String, &StepView))| {
        let before = at.checked_sub(1).and_then(|before| counts.get(before));
        let of_value = is_divided.then(|| truncated(value.label.clone()));
        let cells = of_value.into_iter().chain([
            truncated(name.clone()),
            persons(step.count, (at + 1).to_string()),
            match before {
                Some(before) => persons(before.saturating_sub(step.count), format!("-{}", at + 1)),
                None => cell("-"),
            },
            cell(percent(step.count, first)),
            cell(before.map_or_else(|| "-".to_owned(), |before| percent(step.count, *before))),
            time(step.median),
        ]);
        TableRow::new(cells.collect())
    };
    names.iter().zip(&value.steps).enumerate().map(row).collect()
}

/// A time in seconds. Its title has all digits.
fn time(time: Option<f64>) -> AnyView {
    let Some(time) = time else { return cell("-") };
    let title = format!("{} seconds", amount(time));
    view! { <data value=time.to_string() title=title>{seconds(time)}</data> }.into_any()
}

#[cfg(test)]
mod tests {
    use super::{FunnelForm, StepView, shown, summary};

    #[test]
    fn the_summary_has_the_persons_who_did_all_steps() {
        let of = |counts: &[u64]| {
            let steps = counts.iter().map(|count| StepView { count: *count, median: None });
            summary(&steps.collect::<Vec<_>>())
        };
        assert_eq!(of(&[1_200, 400, 300]), "300 of 1,200 persons did all steps: 25.0%.");
        assert_eq!(of(&[1, 0]), "0 of 1 person did all steps: 0.0%.");
        assert_eq!(of(&[0, 0]), "No person did a step.");
    }

    #[test]
    fn the_form_has_an_empty_step_at_its_end() {
        let of = |steps: usize, requested: usize| {
            let form = FunnelForm {
                steps: vec!["seen".to_owned(); steps],
                order: String::new(),
                window: String::new(),
                unit: String::new(),
                range: String::new(),
                breakdown: String::new(),
            };
            shown(&form, requested)
        };
        assert_eq!((of(0, 0), of(2, 0), of(3, 0), of(10, 0)), (3, 3, 4, 10));
        assert_eq!((of(2, 5), of(2, 99)), (5, 10));
    }
}
