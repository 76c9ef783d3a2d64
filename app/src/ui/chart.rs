//! Charts, drawn by the server: a heading, a summary sentence, the drawing, and a table
//! with the numbers.
//!
//! The drawing is stretched to the available width, so its texts are outside of it.

mod scale;

use leptos::prelude::*;

use self::scale::{HEIGHT, SLOT};
use super::number::{compact, grouped};
use super::status::Tone;
use super::table::{Column, Table, TableRow, cell};
use super::time::Time;

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
        .zip(0_u64..)
        .map(|(at, place)| bar(place, &scale::stacked(&at_time(at), ceiling), &tones))
        .collect_view()
        .into_any();
    Chart { id, title, summary, times, series, unit, ceiling, until }.drawn(bars)
}

fn bar(place: u64, parts: &[(u64, u64)], tones: &[Tone]) -> AnyView {
    let x = place * SLOT + 1;
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
            let path = scale::path(&series.values, ceiling);
            view! { <path class=format!("line {}", series.tone.class()) d=path /> }
        })
        .collect_view()
        .into_any();
    Chart { id, title, summary, times, series, unit, ceiling, until }.drawn(lines)
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

fn frame(values: usize) -> String {
    format!("0 0 {} {HEIGHT}", scale::width(values))
}

/// Shared data of all charts.
struct Chart {
    id: &'static str,
    title: String,
    summary: String,
    times: Vec<String>,
    series: Vec<Series>,
    unit: &'static str,
    ceiling: u64,
    until: Option<String>,
}

impl Chart {
    fn drawn(self, drawing: AnyView) -> AnyView {
        let Self { id, title, summary, times, series, unit, ceiling, until } = self;
        let heading = format!("{id}-title");
        let frame = frame(times.len());
        let ends = [times.first(), times.last()];
        let ends = ends.map(|time| time.map(|iso| view! { <Time iso=iso.clone() /> }));
        let legend = series
            .iter()
            .map(|series| view! { <li class=series.tone.class()>{series.label}</li> })
            .collect_view();
        let caption = format!("{title}, {unit}");
        let (columns, rows) = table(&times, &series);
        // The selected range of a drag. Its initial width is one slot.
        let brush = until.is_some().then(|| {
            let (slot, height) = (SLOT.to_string(), HEIGHT.to_string());
            view! { <rect class="chart-brush" x="0" y="0" width=slot.clone() height=height data-slot=slot /> }
        });
        view! {
            <figure class="chart" id=id aria-labelledby=heading.clone()>
                <h3 id=heading.clone()>{title}</h3>
                <p>{summary}</p>
                <div class="chart-plot" data-brush=until>
                    <p class="chart-ceiling hint">{compact(ceiling)} " " {unit}</p>
                    <svg viewBox=frame preserveAspectRatio="none" aria-hidden="true" focusable="false">
                        {drawing}
                        {brush}
                    </svg>
                    <p class="chart-ends hint">{ends.collect_view()}</p>
                </div>
                <ul class="legend">{legend}</ul>
                <details class="chart-numbers">
                    <summary>"Show the numbers"</summary>
                    <Table caption=caption columns=columns rows=rows />
                </details>
            </figure>
        }
        .into_any()
    }
}

/// The table with the numbers of a chart.
fn table(times: &[String], series: &[Series]) -> (Vec<Column>, Vec<TableRow>) {
    let mut columns = vec![Column::text("Time")];
    columns.extend(series.iter().map(|series| Column::number(series.label)));
    let row = |(at, iso): (usize, &String)| {
        let mut cells = vec![cell(view! { <Time iso=iso.clone() /> })];
        cells.extend(series.iter().map(|series| {
            let value = series.values.get(at).copied().flatten();
            cell(value.map_or_else(|| "-".to_owned(), grouped))
        }));
        TableRow::new(cells)
    };
    (columns, times.iter().enumerate().map(row).collect())
}
