//! Charts, drawn by the server: a heading, a summary sentence, the drawing with axes, and
//! a table with the numbers.
//!
//! The drawing is stretched to the available width, so its texts are outside of it.

mod axis;
mod figure;
mod scale;

use leptos::prelude::*;

#[cfg_attr(feature = "ssr", expect(unused_imports, reason = "behaviours use it"))]
pub(crate) use self::figure::READ;
use self::figure::{Figure, frame};
use self::scale::SLOT;
use super::status::Tone;

/// A series of a chart.
pub(crate) struct Series {
    /// Label of the series.
    pub(crate) label: &'static str,
    /// Tone of the series, which defines its style.
    pub(crate) tone: Tone,
    /// A value for each time. `None`: unknown.
    pub(crate) values: Vec<Option<u64>>,
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
    let tones: Vec<Tone> = series.iter().map(|series| series.tone).collect();
    let bars = (0..times.len())
        .map(|at| bar(at, &scale::stacked(&at_time(at), ceiling), &tones))
        .collect_view()
        .into_any();
    Figure { id, title, summary, times, series, unit, ceiling, until }.drawn(bars)
}

fn bar(slot: usize, parts: &[(u64, u64)], tones: &[Tone]) -> AnyView {
    let x = scale::width(slot) + 1;
    let seen = parts.iter().zip(tones).filter(|((_, height), _)| *height > 0);
    seen.map(|((y, height), tone)| {
        view! {
            <rect
                class=tone.class()
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
    let largest = series.iter().flat_map(|series| series.values.iter().flatten()).max();
    let ceiling = scale::ceiling(largest.copied().unwrap_or(0));
    let lines = series
        .iter()
        .map(|series| {
            let (line, dots) =
                (scale::path(&series.values, ceiling), scale::dots(&series.values, ceiling));
            let tone = series.tone.class();
            let dots =
                (!dots.is_empty()).then(|| view! { <path class=format!("dots {tone}") d=dots /> });
            view! {
                <path class=format!("line {tone}") d=line />
                {dots}
            }
        })
        .collect_view()
        .into_any();
    Figure { id, title, summary, times, series, unit, ceiling, until }.drawn(lines)
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
        .map(|(at, value)| bar(at, &scale::stacked(&[value], ceiling), &[Tone::Busy]))
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

/// A bar for a part of a whole, beside its number.
#[component]
pub(crate) fn ShareBar(part: u64, whole: u64) -> impl IntoView {
    let width = scale::share(part, whole);
    view! {
        <svg class="share-bar" aria-hidden="true" focusable="false">
            <rect class="tone-busy" width=width height="100%" />
        </svg>
    }
    .into_any()
}
