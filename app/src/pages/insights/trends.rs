//! Trends: the fields of their form, and the answer with a chart and a table with the numbers
//! of the whole range.

use leptos::prelude::*;

use super::links::PersonLinks;
use super::question::{EVENTS, NAME_MAX, PROPERTIES, computed, notes};
use crate::questions::trends::{MATHS, TrendsForm};
use crate::questions::{INTERVALS, RANGES, VALUES};
use crate::server_fns::insights::answers::{NumbersView, SeriesView, TrendsView};
use crate::ui::chart::{NamedLines, Series};
use crate::ui::field::{Check, Choice, Field, Select, choices};
use crate::ui::form::FormResult;
use crate::ui::number::amount;
use crate::ui::table::{Column, Table, TableRow, cell, truncated};

/// What the form does not say in its labels.
pub(super) const HINT: &str = "Without an event, all events count. Sums, averages, percentiles and the smallest and largest values need a property.";

/// The largest number that a chart draws.
const LARGEST: f64 = 1e18;
/// Above this, a chart draws whole numbers.
const DECIMALS_UP_TO: f64 = 10_000.0;
/// Digits behind the decimal point that a chart draws.
const DECIMALS: u32 = 2;

/// The fields of the form.
pub(super) fn fields(form: &TrendsForm, result: FormResult) -> AnyView {
    let unchecked = FormResult::sample(None);
    let maths: Vec<Choice> = MATHS.iter().map(|math| Choice::new(math.word, math.label)).collect();
    let TrendsForm { event, math, property, interval, range, breakdown, compare } = form.clone();
    view! {
        <Field result=result name="event" label="Event" value=event max=NAME_MAX required=false list=EVENTS />
        <Select result=result name="math" label="Compute" choices=maths value=math />
        <Field result=result name="property" label="Of property" value=property max=NAME_MAX required=false list=PROPERTIES />
        <Select result=result name="range" label="Range" choices=choices(RANGES) value=range />
        <Select result=result name="interval" label="Interval" choices=choices(&INTERVALS) value=interval />
        <Field result=result name="breakdown" label="Break down by" value=breakdown max=NAME_MAX required=false list=PROPERTIES />
        <Check result=unchecked name="compare" label="Compare with the period before" checked=compare />
    }
    .into_any()
}

/// The answer to the question of a form, in a project of this zone.
pub(super) fn answer(
    form: &TrendsForm,
    found: TrendsView,
    zone: &str,
    links: &PersonLinks,
    computed_at: String,
) -> AnyView {
    let TrendsView { intervals, series, has_others } = found;
    if series.is_empty() {
        return view! {
            <div class="empty">
                <p>"No event of the range matches the question, so there are no values to break it down by."</p>
            </div>
        }
        .into_any();
    }
    let drawn = form.drawn();
    let is_cut = series.len() > drawn;
    let decimals = decimals(&series);
    let lines = series.iter().take(drawn).enumerate().flat_map(|(number, one)| {
        let now = line(one.label.clone(), number, false, &one.numbers, decimals);
        let before = one.before.as_ref().map(|before| {
            line(format!("{}, period before", one.label), number, true, before, decimals)
        });
        std::iter::once(now).chain(before)
    });
    let mut lines: Vec<Series> = lines.collect();
    // The period before can have more intervals.
    lines.iter_mut().for_each(|line| line.cut(intervals.len()));
    let unit = form.math().map_or("numbers", |math| math.unit);
    let interval = INTERVALS.into_iter().find(|(word, _)| *word == form.interval);
    let interval = interval.map_or_else(String::new, |(_, label)| label.to_lowercase());
    let title = format!("{}, per {interval}", form.title());
    let summary = summary(&intervals, zone);
    let has_negative = all_numbers(&series).any(|number| number < 0.0);
    let remarks = [
        is_cut.then(|| format!("The chart shows the first {drawn} series of the table.")),
        has_others.then(|| format!("The first {VALUES} values have numbers of their own.")),
        has_negative.then(|| "The chart draws numbers below zero at zero.".to_owned()),
    ];
    view! {
        <div class="insight-answer">
            <NamedLines id="answer" title=title summary=summary names=intervals series=lines unit=unit decimals=decimals />
            <div>
                {table(series, form.compare, links)}
                {notes(remarks)}
                {computed(computed_at)}
            </div>
        </div>
    }
    .into_any()
}

/// From where to where the chart reaches.
pub(in crate::pages) fn summary(intervals: &[String], zone: &str) -> String {
    match (intervals.first(), intervals.last()) {
        (Some(first), Some(last)) if first != last => format!("From {first} to {last}, in {zone}."),
        (Some(only), _) => format!("{only}, in {zone}."),
        _ => String::new(),
    }
}

fn all_numbers(series: &[SeriesView]) -> impl Iterator<Item = f64> {
    series
        .iter()
        .flat_map(|one| std::iter::once(&one.numbers).chain(&one.before))
        .flat_map(|numbers| numbers.data.iter().copied())
}

/// How many digits behind the decimal point the chart draws.
pub(in crate::pages) fn decimals(series: &[SeriesView]) -> u32 {
    let is_whole = all_numbers(series).all(|number| number.fract() == 0.0);
    let is_large = all_numbers(series).any(|number| number > DECIMALS_UP_TO);
    if is_whole || is_large { 0 } else { DECIMALS }
}

/// The line of a series in a chart.
pub(in crate::pages) fn line(
    label: String,
    number: usize,
    is_before: bool,
    numbers: &NumbersView,
    decimals: u32,
) -> Series {
    let scale = 10_f64.powi(decimals.cast_signed());
    let drawn = |number: &f64| Some((number * scale).round().clamp(0.0, LARGEST) as u64);
    let values = numbers.data.iter().map(drawn).collect();
    let texts = numbers.data.iter().map(|number| amount(*number)).collect();
    Series::numbered(label, number, is_before, values, texts)
}

fn table(series: Vec<SeriesView>, compares: bool, links: &PersonLinks) -> AnyView {
    let mut columns = vec![Column::text("Series"), Column::number("Whole range")];
    if compares {
        columns.extend([Column::number("Period before"), Column::number("Change")]);
    }
    let rows = series.into_iter().map(|one| row(one, compares, links)).collect();
    view! { <Table caption="Numbers of the whole range" columns=columns rows=rows /> }.into_any()
}

fn row(series: SeriesView, compares: bool, links: &PersonLinks) -> TableRow {
    let value = series.value.unwrap_or_default();
    let number = |number: Option<f64>, before: &str| match number {
        None => cell("-"),
        Some(number) if number != 0.0 => {
            links.number(&[("value", value.as_str()), ("before", before)], amount(number))
        }
        Some(number) => cell(amount(number)),
    };
    let now = series.numbers.whole;
    let mut cells = vec![truncated(series.label), number(now, "")];
    if compares {
        let before = series.before.and_then(|before| before.whole);
        cells.extend([number(before, "on"), cell(change(now, before))]);
    }
    TableRow::new(cells)
}

/// The change in percent, with its sign. `-` if there is nothing to compare with.
fn change(now: Option<f64>, before: Option<f64>) -> String {
    match (now, before) {
        (Some(now), Some(before)) if before > 0.0 => {
            let tenths = ((now - before) / before * 1000.0).round() / 10.0;
            let sign = if tenths > 0.0 { "+" } else { "" };
            format!("{sign}{}%", amount(tenths))
        }
        _ => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{NumbersView, SeriesView, change, decimals, summary};

    #[test]
    fn changes_have_a_sign() {
        for (now, before, expected) in [
            (Some(3.0), Some(2.0), "+50%"),
            (Some(2.0), Some(3.0), "-33.3%"),
            (Some(2.0), Some(2.0), "0%"),
            (Some(2.0), Some(0.0), "-"),
            (None, Some(2.0), "-"),
        ] {
            assert_eq!(change(now, before), expected);
        }
    }

    #[test]
    fn a_chart_has_decimals_if_its_numbers_are_small_fractions() {
        let of = |data: &[f64]| {
            let numbers = NumbersView { data: data.to_vec(), whole: None };
            decimals(&[SeriesView { label: String::new(), value: None, numbers, before: None }])
        };
        assert_eq!((of(&[1.0, 2.0]), of(&[1.0, 0.5]), of(&[20_000.5])), (0, 2, 0));
        assert_eq!(of(&[]), 0);
    }

    #[test]
    fn the_summary_names_the_range() {
        let days = ["20 Aug 2026", "21 Aug 2026"].map(str::to_owned);
        assert_eq!(summary(&days, "UTC"), "From 20 Aug 2026 to 21 Aug 2026, in UTC.");
        assert_eq!(summary(&days[..1], "UTC"), "20 Aug 2026, in UTC.");
    }
}
