//! Paths: the fields of their form, and the answer with a table of edges.

use leptos::prelude::*;

use super::links::PersonLinks;
use super::question::{NAME_MAX, computed, notes};
use crate::questions::DAY_RANGES;
use crate::questions::paths::{EVENTS, PathsForm};
use crate::server_fns::insights::answers::{EdgeView, PathsView};
use crate::ui::chart::ShareBar;
use crate::ui::field::{Field, Select, choices};
use crate::ui::form::FormResult;
use crate::ui::number::{amount, duration, grouped};
use crate::ui::table::{Column, Table, TableRow, cell, truncated};

/// What the form does not say in its labels.
pub(super) const HINT: &str = "The name of a step is the address of a page without the slash at its end, the name of a screen, or that of an event. Half an hour without an event ends a path.";

/// The fields of the form.
pub(super) fn fields(form: &PathsForm, result: FormResult) -> AnyView {
    let PathsForm { events, start, end, length, range } = form.clone();
    view! {
        <Select result=result name="events" label="Steps" choices=choices(&EVENTS) value=events />
        <Field result=result name="start" label="First step" value=start max=NAME_MAX required=false />
        <Field result=result name="end" label="Last step" value=end max=NAME_MAX required=false />
        <Field result=result name="length" label="Most steps of a path" value=length kind="number" required=false inputmode="numeric" />
        <Select result=result name="range" label="Range" choices=choices(DAY_RANGES) value=range />
    }
    .into_any()
}

/// The answer to the question of a form.
pub(super) fn answer(
    form: &PathsForm,
    found: PathsView,
    links: &PersonLinks,
    computed_at: String,
) -> AnyView {
    let PathsView { mut edges, has_others } = found;
    if edges.is_empty() {
        return view! {
            <div class="empty">
                <p>"No person did two such steps one after the other."</p>
            </div>
        }
        .into_any();
    }
    // Those of the same step stay in their order, the most frequent first.
    edges.sort_by_key(|edge| edge.step);
    let remarks = [has_others.then(|| format!("These are the {} most frequent.", edges.len()))];
    let most = edges.iter().map(|edge| edge.count).max().unwrap_or(0);
    let columns = vec![
        Column::text("From"),
        Column::text("To"),
        Column::number("Step"),
        Column::number("How often"),
        Column::number("Average time"),
    ];
    let rows = edges.into_iter().map(|edge| row(edge, most, links)).collect();
    view! {
        <h3>{form.title()}</h3>
        <Table caption="What persons do after what" columns=columns rows=rows />
        {notes(remarks)}
        {computed(computed_at)}
    }
    .into_any()
}

fn row(edge: EdgeView, most: u64, links: &PersonLinks) -> TableRow {
    let EdgeView { step, from, to, count, average } = edge;
    let next = step.saturating_add(1);
    let steps = (format!("{step}_{from}"), format!("{next}_{to}"));
    let persons = [("from", steps.0.as_str()), ("to", steps.1.as_str())];
    let persons = links.count(count, &persons, grouped(count));
    let title = format!("{} milliseconds", amount(average));
    let time = duration(average.round() as u64);
    TableRow::new(vec![
        truncated(from),
        truncated(to),
        cell(format!("{step} to {next}")),
        view! {
            {persons}
            <ShareBar part=count whole=most />
        }
        .into_any(),
        view! { <data value=average.to_string() title=title>{time}</data> }.into_any(),
    ])
}
