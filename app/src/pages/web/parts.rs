//! The parts of the page: the range, the filters, the numbers on top, and the tables.

use leptos::prelude::*;

use crate::server_fns::web::{
    NUMBERS, RANGE, RANGES, USUAL_RANGE, WebCard, WebNumber, WebRow, WebRows, WebSelection, WebView,
};
use crate::ui::icon::Icon;
use crate::ui::number::{Count, amount, grouped, percent, seconds};
use crate::ui::query::with_query;
use crate::ui::sections::Section;
use crate::ui::table::{Column, Table, TableRow, cell, truncated, truncated_link};

/// A text of so many characters may have been cut, so no filter finds the whole one.
const CUT: usize = 400;
/// Shares are written as parts of this.
const WHOLE: u64 = 100_000;

/// The range of the page.
pub(super) fn ranges(selection: &WebSelection) -> AnyView {
    let links = RANGES
        .into_iter()
        .map(|(date, label)| {
            let value = Some(date).filter(|date| *date != USUAL_RANGE);
            let href = with_query(&[(RANGE, value)]);
            let current = (date == selection.range()).then_some("true");
            view! { <a class="button" href=href aria-current=current>{label}</a> }
        })
        .collect_view();
    view! { <nav class="ranges" aria-label="Range">{links}</nav> }.into_any()
}

/// The filters, each with a link that removes it.
pub(super) fn filters(selection: &WebSelection) -> Option<AnyView> {
    let chips: Vec<AnyView> = selection
        .filters()
        .map(|(table, value)| {
            let href = with_query(&[(table.word, None)]);
            let text = format!("{}: {value}", table.label);
            let label = format!("Remove the filter {text}");
            view! {
                <li>
                    <a class="button button-quiet" href=href aria-label=label data-noscroll="">
                        <span class="cut"><span>{text}</span></span>
                        <Icon name="close" />
                    </a>
                </li>
            }
            .into_any()
        })
        .collect();
    (!chips.is_empty()).then(|| {
        view! { <ul class="plain web-filters" aria-label="Filters">{chips}</ul> }.into_any()
    })
}

/// The numbers on top, each with that of the period before.
pub(super) fn numbers(project: i64, found: &WebView) -> AnyView {
    let [visitors, views, sessions, length, bounces] = NUMBERS;
    let of = |at: usize| found.numbers.get(at).copied();
    let count = |number: f64| view! { <Count value=number as u64 /> }.into_any();
    let plain = |number: f64| grouped(number as u64);
    let share = |percent: f64| format!("{}%", amount((percent * 10.0).round() / 10.0));
    let live = found.live;
    let at_least = found.is_least.then_some("at least ");
    view! {
        <div class="overview-numbers">
            {number(visitors, of(0), count, plain)}
            {number(views, of(1), count, plain)}
            {number(sessions, of(2), count, plain)}
            {number(length, of(3), |of| seconds(of).into_any(), seconds)}
            {number(bounces, of(4), |of| share(of).into_any(), share)}
            <section class="card overview-number">
                <h2><a href=format!("/projects/{project}/events")>"Live visitors"</a></h2>
                <p class="overview-value">{at_least} <Count value=live /></p>
                <p class="hint">"Persons with an event in the last 5 minutes"</p>
            </section>
        </div>
    }
    .into_any()
}

/// A card with a number, and how it changed.
fn number(
    label: &'static str,
    number: Option<WebNumber>,
    value: impl Fn(f64) -> AnyView,
    text: impl Fn(f64) -> String,
) -> AnyView {
    let now = number.and_then(|number| number.value);
    let now = now.map_or_else(|| "-".into_any(), value);
    let hint = match number.and_then(|number| Some((number.before?, number.change))) {
        None => "Nothing in the period before".to_owned(),
        Some((before, None)) => format!("{} in the period before", text(before)),
        Some((before, Some(change))) => {
            format!("{} in the period before ({change:+}%)", text(before))
        }
    };
    view! {
        <section class="card overview-number">
            <h2>{label}</h2>
            <p class="overview-value">{now}</p>
            <p class="hint">{hint}</p>
        </section>
    }
    .into_any()
}

/// A card with one of its tables.
pub(super) fn card(selection: &WebSelection, of: &'static WebCard, found: WebRows) -> AnyView {
    let shown = selection.table(of);
    let first = of.tables.first().map_or("", |table| table.word);
    let tabs = of
        .tables
        .iter()
        .map(|table| {
            let value = Some(table.word).filter(|word| *word != first);
            let href = with_query(&[(of.name, value)]);
            let current = (table.word == shown.word).then_some("true");
            view! { <a href=href aria-current=current data-noscroll="">{table.tab}</a> }
        })
        .collect_view();
    let tabs = (of.tables.len() > 1).then(|| {
        let label = format!("Tables of {}", of.title);
        view! { <nav class="subnav" aria-label=label>{tabs}</nav> }
    });
    let WebRows { rows, has_more } = found;
    let content = match rows.is_empty() {
        true => view! { <p class="hint">"No view of this range has such a value."</p> }.into_any(),
        false => {
            let columns = vec![
                Column::text(shown.label),
                Column::number("Visitors"),
                Column::number("Views"),
                Column::number("Bounces"),
            ];
            let rows = rows.into_iter().map(|found| row(shown.word, found)).collect();
            view! { <Table caption=shown.label columns=columns rows=rows /> }.into_any()
        }
    };
    let more = has_more.then(|| {
        view! { <p class="hint">"There are more. The table has those with the most visitors."</p> }
    });
    view! {
        <Section id=of.name title=of.title>
            {tabs}
            {content}
            {more}
        </Section>
    }
    .into_any()
}

/// A row, whose value is a link that adds the filter with this word.
fn row(filter: &'static str, found: WebRow) -> TableRow {
    let WebRow { value, visitors, views, bounce_rate } = found;
    let name = match value {
        None => cell(view! { <span class="hint">"None"</span> }),
        // The site was entered without a link.
        Some(value) if value == "$direct" => {
            let href = with_query(&[(filter, Some(value.as_str()))]);
            truncated_link(href, "Direct".to_owned())
        }
        Some(value) if value.chars().count() >= CUT => truncated(value),
        Some(value) => {
            let href = with_query(&[(filter, Some(value.as_str()))]);
            truncated_link(href, value)
        }
    };
    let bounces = bounce_rate.map_or_else(
        || "-".to_owned(),
        |rate| percent((rate * WHOLE as f64).round() as u64, WHOLE),
    );
    TableRow::new(vec![name, cell(grouped(visitors)), cell(grouped(views)), cell(bounces)])
}
