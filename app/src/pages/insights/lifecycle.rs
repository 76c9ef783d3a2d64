//! Lifecycles: the fields of their form, and the answer with a line and a row for each status.

use leptos::prelude::*;

use super::links::PersonLinks;
use super::question::{EVENTS, NAME_MAX, computed, notes};
use super::trends::summary;
use crate::questions::lifecycle::{DORMANT_NOTE, LifecycleForm, status_label};
use crate::questions::{INTERVALS, RANGES};
use crate::server_fns::insights::answers::{LifecycleView, StatusView};
use crate::ui::chart::{NamedLines, Series};
use crate::ui::field::{Field, Select, choices};
use crate::ui::form::FormResult;
use crate::ui::number::amount;
use crate::ui::table::{Column, Table, TableRow, cell};

/// What the form does not say in its labels.
pub(super) const HINT: &str = "Without an event, all events count.";

/// The fields of the form.
pub(super) fn fields(form: &LifecycleForm, result: FormResult) -> AnyView {
    let LifecycleForm { event, interval, range } = form.clone();
    view! {
        <Field result=result name="event" label="Event" value=event max=NAME_MAX required=false list=EVENTS />
        <Select result=result name="range" label="Range" choices=choices(RANGES) value=range />
        <Select result=result name="interval" label="Interval" choices=choices(&INTERVALS) value=interval />
    }
    .into_any()
}

/// The answer to the question of a form, in a project of this zone.
pub(super) fn answer(
    form: &LifecycleForm,
    found: LifecycleView,
    zone: &str,
    links: &PersonLinks,
    computed_at: String,
) -> AnyView {
    let LifecycleView { intervals, statuses } = found;
    let summary = summary(&intervals, zone);
    let series = statuses.iter().enumerate().map(|(number, one)| line(number, one)).collect();
    let row = |one: &StatusView| {
        let persons = one.sum.abs().round() as u64;
        let number = links.count(persons, &[("status", one.status.as_str())], amount(one.sum));
        TableRow::new(vec![cell(status_label(&one.status).to_owned()), number])
    };
    let rows = statuses.iter().map(row).collect();
    let columns = vec![Column::text("Status"), Column::number("Sum of the intervals")];
    view! {
        <div class="insight-answer">
            <NamedLines id="answer" title=form.title() summary=summary names=intervals series=series unit="persons" decimals=0 />
            <div>
                <Table caption="Persons of each status" columns=columns rows=rows />
                {notes([Some(DORMANT_NOTE.to_owned())])}
                {computed(computed_at)}
            </div>
        </div>
    }
    .into_any()
}

/// The line of a status.
fn line(number: usize, one: &StatusView) -> Series {
    let values = one.data.iter().map(|number| Some(number.abs().round() as u64)).collect();
    let texts = one.data.iter().map(|number| amount(*number)).collect();
    Series::numbered(status_label(&one.status).to_owned(), number, false, values, texts)
}
