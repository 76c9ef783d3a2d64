//! Stickiness: the fields of its form, and the answer with a line and a table.

use leptos::prelude::*;

use super::links::PersonLinks;
use super::question::{EVENTS, NAME_MAX, computed};
use crate::questions::stickiness::StickinessForm;
use crate::questions::{DAY_RANGES, INTERVALS};
use crate::server_fns::insights::answers::StickinessView;
use crate::ui::chart::{NamedLines, Series};
use crate::ui::field::{Check, Field, Select, choices};
use crate::ui::form::FormResult;
use crate::ui::number::{counted, grouped, percent};
use crate::ui::table::{Column, Table, TableRow, cell};

/// What the form does not say in its labels.
pub(super) const HINT: &str = "A person counts by the number of intervals in which it is active. Without an event, all events count.";

/// The fields of the form.
pub(super) fn fields(form: &StickinessForm, result: FormResult) -> AnyView {
    let unchecked = FormResult::sample(None);
    let StickinessForm { event, least, interval, range, cumulative } = form.clone();
    view! {
        <Field result=result name="event" label="Event" value=event max=NAME_MAX required=false list=EVENTS />
        <Field result=result name="least" label="Events that make a person active" value=least kind="number" required=false inputmode="numeric" />
        <Select result=result name="range" label="Range" choices=choices(DAY_RANGES) value=range />
        <Select result=result name="interval" label="Interval" choices=choices(&INTERVALS) value=interval />
        <Check result=unchecked name="cumulative" label="Count persons with more intervals too" checked=cumulative />
    }
    .into_any()
}

/// The answer to the question of a form.
pub(super) fn answer(
    form: &StickinessForm,
    found: StickinessView,
    links: &PersonLinks,
    computed_at: String,
) -> AnyView {
    let StickinessView { labels, counts, total } = found;
    let values = counts.iter().map(|count| Some(*count)).collect();
    let texts = counts.iter().map(|count| grouped(*count)).collect();
    let line = Series::numbered("Persons".to_owned(), 0, false, values, texts);
    let summary = match total {
        0 => "No person was active.".to_owned(),
        1 => "1 person was active.".to_owned(),
        many => format!("{} were active.", counted(many, "person", "persons")),
    };
    let rows = labels.iter().zip(counts).enumerate().filter(|(_, (_, count))| *count > 0);
    let rows = rows.map(|(at, (label, count))| {
        let active = (at + 1).to_string();
        let persons = links.count(count, &[("active", active.as_str())], grouped(count));
        TableRow::new(vec![cell(label.clone()), persons, cell(percent(count, total))])
    });
    let rows = rows.collect();
    let columns = vec![
        Column::text("Active in"),
        Column::number("Persons"),
        Column::number("Of all persons"),
    ];
    view! {
        <div class="insight-answer">
            <NamedLines id="answer" title=form.title() summary=summary names=labels series=vec![line] unit="persons" decimals=0 />
            <div>
                <Table caption="Persons by their intervals" columns=columns rows=rows />
                {computed(computed_at)}
            </div>
        </div>
    }
    .into_any()
}
