//! The parts that all charts share: heading, summary, axes, legend, and the table with the
//! numbers, which behaviours read.

use std::borrow::Cow;

use leptos::prelude::*;

use super::Series;
use super::axis::{axis, named_axis};
use super::scale::{self, HEIGHT, SLOT};
use crate::ui::number::{amount, compact};
use crate::ui::table::{Align, class, table_class};
use crate::ui::time::{is_in_browser, is_local, title_now, to_the_minute};

/// The value of the slider before a time is chosen.
pub(crate) const READ: &str = "Arrow keys read the values";

/// What is along a chart, one for each value of a series.
pub(super) enum Slots {
    /// Times, in RFC 3339.
    Times(Vec<String>),
    /// Texts of times.
    Named(Vec<String>),
}

impl Slots {
    fn len(&self) -> usize {
        match self {
            Self::Times(all) | Self::Named(all) => all.len(),
        }
    }

    /// The texts without scripts.
    fn texts(&self) -> Vec<String> {
        match self {
            Self::Times(times) => times.iter().map(|iso| to_the_minute(iso, false)).collect(),
            Self::Named(names) => names.clone(),
        }
    }

    fn axis(&self) -> AnyView {
        match self {
            Self::Times(times) => axis(times.clone()),
            Self::Named(names) => named_axis(names),
        }
    }

    /// The markup of each row header in the table, in the zone of the page.
    fn headers(&self) -> Vec<String> {
        let of_time = |iso: &String| {
            let (text, title) = (to_the_minute(iso, is_local()), title_now(iso));
            let (iso, text, title) = (escaped(iso), escaped(&text), escaped(&title));
            format!(r#"<time class="time" datetime="{iso}" title="{title}">{text}</time>"#)
        };
        match self {
            Self::Times(times) => times.iter().map(of_time).collect(),
            Self::Named(names) => names.iter().map(|name| escaped(name)).collect(),
        }
    }
}

/// The data of a chart.
pub(super) struct Figure {
    pub(super) id: String,
    pub(super) title: String,
    pub(super) summary: String,
    pub(super) slots: Slots,
    pub(super) series: Vec<Series>,
    pub(super) unit: Cow<'static, str>,
    /// The value at the upper end of the scale.
    pub(super) ceiling: u64,
    /// How many digits of the values are behind the decimal point.
    pub(super) decimals: u32,
    pub(super) until: Option<String>,
}

impl Figure {
    /// The chart around the drawing of its values.
    ///
    /// With scripts, the drawing is a slider over the times (`behaviours::chart`): arrow
    /// keys and the pointer choose a time, and its values are shown and announced.
    pub(super) fn drawn(self, drawing: AnyView) -> AnyView {
        #[cfg(not(feature = "ssr"))]
        crate::behaviours::start_charts();
        let Self { id, title, summary, slots, series, unit, ceiling, decimals, until } = self;
        let count = slots.len();
        let heading = format!("{id}-title");
        let frame = frame(count);
        let levels = scale::levels(ceiling);
        let grid: String = levels
            .iter()
            .map(|level| {
                let y = HEIGHT - scale::height(*level, ceiling);
                format!("M0 {y}H{}", scale::width(count))
            })
            .collect();
        let levels = levels
            .into_iter()
            .map(|level| view! { <li>{written(level, decimals)}</li> })
            .collect_view();
        let legend = series
            .iter()
            .map(|series| view! { <li class=series.class>{series.label.clone()}</li> })
            .collect_view();
        let titles = titles(&slots, &series, &unit);
        let caption = format!("{title}, {unit}");
        let last = count.saturating_sub(1).to_string();
        let is_empty = count == 0;
        // Without scripts there is nothing to operate.
        let enhanced =
            |value: String| move || (is_in_browser() && !is_empty).then(|| value.clone());
        let name = enhanced(format!("Values of {title}"));
        // The selected time or range. Behaviours set its place.
        let mark = |class: &'static str| {
            let (slot, height) = (SLOT.to_string(), HEIGHT.to_string());
            view! { <rect class=class x="0" y="0" width=slot.clone() height=height data-slot=slot /> }
        };
        let brush = until.is_some().then(|| mark("chart-brush"));
        let axis = slots.axis();
        let numbers = numbers(caption, slots, &series);
        view! {
            <figure class="chart" id=id aria-labelledby=heading.clone()>
                <h3 id=heading.clone()>{title}</h3>
                <p>{summary}</p>
                <p class="chart-unit hint" aria-hidden="true">{unit}</p>
                <div class="chart-plot" data-brush=until>
                    <ol class="chart-levels" aria-hidden="true">{levels}</ol>
                    {axis}
                    <div
                        class="chart-drawing"
                        data-reader=""
                        tabindex=enhanced("0".to_owned())
                        role=enhanced("slider".to_owned())
                        aria-label=name
                        aria-valuemin=enhanced("0".to_owned())
                        aria-valuemax=enhanced(last.clone())
                        aria-valuenow=enhanced(last)
                        aria-valuetext=enhanced(READ.to_owned())
                    >
                        <svg viewBox=frame preserveAspectRatio="none" aria-hidden="true" focusable="false">
                            <path class="chart-grid" d=grid />
                            {drawing}
                            {titles}
                            {mark("chart-mark")}
                            {brush}
                        </svg>
                        <p class="chart-tip" aria-hidden="true"></p>
                    </div>
                </div>
                <ul class="legend">{legend}</ul>
                <details class="chart-numbers">
                    <summary>"Show the numbers"</summary>
                    {numbers}
                </details>
            </figure>
        }
        .into_any()
    }
}

/// The view box for so many values.
pub(super) fn frame(values: usize) -> String {
    format!("0 0 {} {HEIGHT}", scale::width(values).max(SLOT))
}

/// The values of each time as titles, for users without scripts; with scripts the tip has
/// them. Times without values have none.
fn titles(slots: &Slots, series: &[Series], unit: &str) -> AnyView {
    if is_in_browser() {
        return ().into_any();
    }
    let title = |(at, name): (usize, String)| {
        let known = series.iter().filter_map(|series| {
            series.values.get(at).copied().flatten().filter(|value| *value > 0)?;
            Some(format!("{}: {} {unit}", series.label, series.text(at)?))
        });
        let known: Vec<String> = known.collect();
        let text = format!("{name}\n{}", known.join("\n"));
        let (x, slot) = (scale::width(at).to_string(), SLOT.to_string());
        (!known.is_empty()).then(|| {
            view! {
                <rect class="chart-title" x=x width=slot height=HEIGHT.to_string()>
                    <title>{text}</title>
                </rect>
            }
        })
    };
    slots.texts().into_iter().enumerate().filter_map(title).collect_view().into_any()
}

/// A value of the scale.
fn written(level: u64, decimals: u32) -> String {
    match decimals {
        0 => compact(level),
        _ => amount(level as f64 / 10_f64.powi(decimals.cast_signed())),
    }
}

/// The table with the numbers of a chart, in the markup of `ui::table`. It is the largest part
/// of a chart, and usually closed. The browser reads it as text, which takes a fraction of the
/// time of making its elements one by one.
fn numbers(caption: String, slots: Slots, series: &[Series]) -> AnyView {
    let heading = |label: &str, align: Align| {
        let class = class(align);
        format!(r#"<th scope="col" role="columnheader" class="{class}">{}</th>"#, escaped(label))
    };
    let names = series.iter().map(|series| heading(&series.label, Align::End));
    let head: String = [heading("Time", Align::Start)].into_iter().chain(names).collect();
    let cells: Vec<String> = (0..slots.len()).map(|at| cells(at, series)).collect();
    let of_table = table_class(series.len() + 1);
    let html = move || {
        let mut html = format!(
            r#"<table class="{of_table}" role="table"><caption class="hidden">{}</caption><thead role="rowgroup"><tr role="row">{head}</tr></thead><tbody role="rowgroup">"#,
            escaped(&caption)
        );
        for (header, cells) in slots.headers().into_iter().zip(&cells) {
            html += &format!(
                r#"<tr role="row"><th scope="row" role="rowheader" class="{}"><div class="cell-content">{header}</div></th>{cells}</tr>"#,
                class(Align::Start)
            );
        }
        html + "</tbody></table>"
    };
    view! { <div class="table-frame" inner_html=html></div> }.into_any()
}

/// The cells of a time in the table with the numbers.
fn cells(at: usize, series: &[Series]) -> String {
    let cells = series.iter().map(|series| {
        let value = series.text(at).unwrap_or_else(|| "-".to_owned());
        format!(
            r#"<td role="cell" class="{}" data-label="{}"><div class="cell-content">{}</div></td>"#,
            class(Align::End),
            escaped(&series.label),
            escaped(&value)
        )
    });
    cells.collect()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::{Series, Slots, cells, escaped, written};
    use crate::ui::status::Tone;

    #[test]
    fn a_time_has_a_cell_for_each_series() {
        let series =
            |values: [Option<u64>; 2]| Series::new("Accepted", Tone::Good, values.to_vec());
        let all = [series([Some(1), None]), series([Some(2), Some(3)])];
        let text = |at| {
            let cells = cells(at, &all);
            let parts = cells.split(['<', '>']).filter(|part| !part.contains('='));
            parts.filter(|part| !part.is_empty() && !part.starts_with('/')).collect::<String>()
        };
        assert_eq!([text(0), text(1)], ["12", "-3"]);
    }

    #[test]
    fn numbers_can_have_texts_and_decimals() {
        let values = vec![Some(150), None];
        let texts = vec!["1.5".to_owned(), "never shown".to_owned()];
        let series = [Series::numbered("<b>".to_owned(), 0, false, values, texts)];
        assert!(cells(0, &series).contains(">1.5<") && cells(0, &series).contains("&lt;b>"));
        assert!(cells(1, &series).contains(">-<"));
        assert_eq!([written(150, 2), written(12_000, 0)], ["1.5", "12k"]);
        assert_eq!(Slots::Named(vec!["a&b".to_owned()]).headers(), ["a&amp;b"]);
    }

    #[test]
    fn texts_are_not_markup() {
        assert_eq!(escaped(r#"<a href="b">&"#), "&lt;a href=&quot;b&quot;>&amp;");
    }
}
