//! Charts, drawn by the server: a heading, a summary sentence, the drawing with axes, and
//! a table with the numbers.
//!
//! The drawing is stretched to the available width, so its texts are outside of it.

mod axis;
mod figure;
mod scale;

use std::borrow::Cow;

use leptos::prelude::*;

#[cfg_attr(feature = "ssr", expect(unused_imports, reason = "behaviours use it"))]
pub(crate) use self::figure::READ;
use self::figure::{Figure, Slots, frame};
use self::scale::SLOT;
use super::number::grouped;
use super::status::Tone;

/// The most series of a chart whose lines have numbers.
pub(crate) const NUMBERED: usize = 6;
/// The classes of lines with numbers, and of the lines that they are compared with.
const NUMBERS: [[&str; 2]; NUMBERED] = [
    ["series-1", "series-1 series-before"],
    ["series-2", "series-2 series-before"],
    ["series-3", "series-3 series-before"],
    ["series-4", "series-4 series-before"],
    ["series-5", "series-5 series-before"],
    ["series-6", "series-6 series-before"],
];

/// A series of a chart.
pub(crate) struct Series {
    /// Label of the series.
    label: Cow<'static, str>,
    /// Class of the series, which defines its style.
    class: &'static str,
    /// A value for each time. `None`: unknown.
    values: Vec<Option<u64>>,
    /// What is written instead of the values.
    texts: Option<Vec<String>>,
}

impl Series {
    /// A series that says how good something is.
    pub(crate) fn new(label: &'static str, tone: Tone, values: Vec<Option<u64>>) -> Self {
        Self { label: Cow::Borrowed(label), class: tone.class(), values, texts: None }
    }

    /// One of several equal series, by its number from 0. `is_before`: it belongs to the series
    /// with the same number, which is compared with it. `texts`: the values as they are written.
    pub(crate) fn numbered(
        label: String,
        number: usize,
        is_before: bool,
        values: Vec<Option<u64>>,
        texts: Vec<String>,
    ) -> Self {
        let [_, before] = NUMBERS[number % NUMBERED];
        let class = if is_before { before } else { series_class(number) };
        Self { label: Cow::Owned(label), class, values, texts: Some(texts) }
    }

    /// Removes the values after so many.
    pub(crate) fn cut(&mut self, count: usize) {
        self.values.truncate(count);
    }

    /// The text of the value of a time. `None`: unknown.
    fn text(&self, at: usize) -> Option<String> {
        let value = self.values.get(at).copied().flatten()?;
        match &self.texts {
            Some(texts) => texts.get(at).cloned(),
            None => Some(grouped(value)),
        }
    }
}

/// Stacked bars, one for each time.
#[component]
pub(crate) fn Bars(
    id: &'static str,
    #[prop(into)] title: String,
    /// A sentence that summarizes the chart.
    #[prop(into)]
    summary: String,
    /// The times, in RFC 3339.
    times: Vec<String>,
    series: Vec<Series>,
    /// The unit, such as `events`.
    unit: &'static str,
    /// End time of the last step. With it, users can drag over the chart to zoom in.
    #[prop(into, optional)]
    until: Option<String>,
) -> impl IntoView {
    let at_time = |at: usize| -> Vec<Option<u64>> {
        series.iter().map(|series| series.values.get(at).copied().flatten()).collect()
    };
    let sum = |at: usize| {
        at_time(at).into_iter().flatten().fold(0, |sum: u64, value| sum.saturating_add(value))
    };
    let ceiling = scale::ceiling((0..times.len()).map(sum).max().unwrap_or(0));
    let classes: Vec<&str> = series.iter().map(|series| series.class).collect();
    let bars = (0..times.len())
        .map(|at| bar(at, &scale::stacked(&at_time(at), ceiling), &classes))
        .collect_view()
        .into_any();
    let slots = Slots::Times(times);
    let (id, unit) = (id.to_owned(), Cow::Borrowed(unit));
    Figure { id, title, summary, slots, series, unit, ceiling, decimals: 0, until }.drawn(bars)
}

fn bar(slot: usize, parts: &[(u64, u64)], classes: &[&'static str]) -> AnyView {
    let x = scale::width(slot) + 1;
    let seen = parts.iter().zip(classes).filter(|((_, height), _)| *height > 0);
    seen.map(|((y, height), class)| {
        let class = *class;
        view! {
            <rect
                class=class
                x=x.to_string()
                y=y.to_string()
                width=(SLOT - 2).to_string()
                height=height.to_string()
            />
        }
    })
    .collect_view()
    .into_any()
}

/// A line for each series.
#[component]
pub(crate) fn Lines(
    id: &'static str,
    #[prop(into)] title: String,
    /// A sentence that summarizes the chart.
    #[prop(into)]
    summary: String,
    /// The times, in RFC 3339.
    times: Vec<String>,
    series: Vec<Series>,
    /// The unit, such as `milliseconds`.
    unit: &'static str,
    /// End time of the last step. With it, users can drag over the chart to zoom in.
    #[prop(into, optional)]
    until: Option<String>,
) -> impl IntoView {
    let (ceiling, lines) = lines(&series);
    let slots = Slots::Times(times);
    let (id, unit) = (id.to_owned(), Cow::Borrowed(unit));
    Figure { id, title, summary, slots, series, unit, ceiling, decimals: 0, until }.drawn(lines)
}

/// A line for each series over times that have texts, such as days of the calendar.
#[component]
pub(crate) fn NamedLines(
    #[prop(into)] id: String,
    #[prop(into)] title: String,
    /// A sentence that summarizes the chart.
    #[prop(into)]
    summary: String,
    /// The texts of the times.
    names: Vec<String>,
    series: Vec<Series>,
    /// The unit, such as `events`.
    #[prop(into)]
    unit: Cow<'static, str>,
    /// How many digits of the values are behind the decimal point.
    decimals: u32,
) -> impl IntoView {
    let (ceiling, lines) = lines(&series);
    let slots = Slots::Named(names);
    Figure { id, title, summary, slots, series, unit, ceiling, decimals, until: None }.drawn(lines)
}

/// The value at the upper end of the scale, and the lines.
fn lines(series: &[Series]) -> (u64, AnyView) {
    let largest = series.iter().flat_map(|series| series.values.iter().flatten()).max();
    let ceiling = scale::ceiling(largest.copied().unwrap_or(0));
    let lines = series
        .iter()
        .map(|series| {
            let (line, dots) =
                (scale::path(&series.values, ceiling), scale::dots(&series.values, ceiling));
            let class = series.class;
            let dots =
                (!dots.is_empty()).then(|| view! { <path class=format!("dots {class}") d=dots /> });
            view! {
                <path class=format!("line {class}") d=line />
                {dots}
            }
        })
        .collect_view()
        .into_any();
    (ceiling, lines)
}

/// A line chart of the size of a word.
#[component]
pub(crate) fn Spark(
    /// The values, the oldest first.
    values: Vec<u64>,
    /// A sentence that summarizes the values.
    #[prop(into)]
    summary: String,
) -> impl IntoView {
    let ceiling = values.iter().max().copied().unwrap_or(0).max(1);
    let values: Vec<Option<u64>> = values.into_iter().map(Some).collect();
    let frame = frame(values.len());
    view! {
        <span class="spark" title=summary.clone()>
            <svg viewBox=frame preserveAspectRatio="none" aria-hidden="true" focusable="false">
                <path class="line tone-busy" d=scale::path(&values, ceiling) />
            </svg>
            <span class="hidden">{summary.clone()}</span>
        </span>
    }
    .into_any()
}

/// Bars without axes below a number, as wide as its card.
#[component]
pub(crate) fn MiniBars(
    /// The values, the oldest first. `None`: still to come.
    values: Vec<Option<u64>>,
    /// A sentence that summarizes the values.
    #[prop(into)]
    summary: String,
) -> impl IntoView {
    let ceiling = values.iter().flatten().max().copied().unwrap_or(0).max(1);
    let frame = frame(values.len());
    let bars = values
        .into_iter()
        .enumerate()
        .map(|(at, value)| bar(at, &scale::stacked(&[value], ceiling), &[Tone::Busy.class()]))
        .collect_view()
        .into_any();
    view! {
        <div class="mini-bars" title=summary.clone()>
            <svg viewBox=frame preserveAspectRatio="none" aria-hidden="true" focusable="false">
                {bars}
            </svg>
            <span class="hidden">{summary.clone()}</span>
        </div>
    }
    .into_any()
}

/// The class of one of several equal series, by its number from 0.
pub(crate) fn series_class(number: usize) -> &'static str {
    let [class, _] = NUMBERS[number % NUMBERED];
    class
}

/// A bar for a part of a whole, beside its number.
#[component]
pub(crate) fn ShareBar(
    part: u64,
    whole: u64,
    /// Class of the bar, which defines its colour.
    #[prop(default = "tone-busy")]
    class: &'static str,
) -> impl IntoView {
    let width = scale::share(part, whole);
    view! {
        <svg class="share-bar" aria-hidden="true" focusable="false">
            <rect class=class width=width height="100%" />
        </svg>
    }
    .into_any()
}
