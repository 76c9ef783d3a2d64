//! The time axis of a chart: labels at round times in the zone of the page, each with a
//! grid line.

use leptos::prelude::*;
use weir_model::Timestamp;

use super::scale::{SLOT, Tick, share, ticks, width};
use crate::days::month;
use crate::ui::time::in_page_zone;

const MINUTE: i64 = 60_000_000;
/// Limit of labels that are texts.
const NAMES: usize = 6;
/// The parts of the axis at its ends, in percent, where a text begins or ends at its line.
const EDGE: u64 = 5;
/// The same for times, which are short: the numbers beside the chart leave room for half of one.
const SHORT_EDGE: u64 = 2;

/// The axis. It is drawn again when the zone of the page changes.
pub(super) fn axis(times: Vec<String>) -> AnyView {
    let labels = move || {
        let slots = times.len();
        let ticks = ticks(&minutes(&times, in_page_zone));
        let labels =
            ticks.into_iter().map(|tick| label(width(tick.slot), slots, SHORT_EDGE, words(tick)));
        labels.collect_view().into_any()
    };
    view! { <svg class="chart-axis" aria-hidden="true" focusable="false">{labels}</svg> }.into_any()
}

/// The axis of times that have texts, with a label at the middle of every so many of them.
pub(super) fn named_axis(names: &[String]) -> AnyView {
    let slots = names.len();
    let shown = names.iter().enumerate().step_by(slots.div_ceil(NAMES).max(1));
    let labels = shown
        .map(|(at, name)| label(width(at) + SLOT / 2, slots, EDGE, without_year(name).to_owned()));
    let labels = labels.collect_view();
    view! { <svg class="chart-axis" aria-hidden="true" focusable="false">{labels}</svg> }.into_any()
}

/// `21 Aug` of `21 Aug 2026`, because a label has little room.
fn without_year(name: &str) -> &str {
    match name.rsplit_once(' ') {
        Some((day, year)) if day.contains(' ') && is_year(year) => day,
        _ => name,
    }
}

fn is_year(text: &str) -> bool {
    text.len() == 4 && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A label at a position, in units of the view box.
fn label(at: u64, slots: usize, edge: u64, text: String) -> AnyView {
    let x = share(at, width(slots));
    // A label at an end does not extend beyond it.
    let anchor = match at * 100 / width(slots).max(1) {
        part if part < edge => "start",
        part if part < 100 - edge => "middle",
        _ => "end",
    };
    view! {
        <g class="chart-tick">
            <line x1=x.clone() x2=x.clone() y1="0" y2="100%" />
            <text x=x y="100%" dy="-0.25em" text-anchor=anchor>{text}</text>
        </g>
    }
    .into_any()
}

/// `14:00`, or `21 Aug` where a day begins.
fn words(tick: Tick) -> String {
    let written = Timestamp::from_micros(tick.minute * MINUTE).to_string();
    if !tick.is_day {
        return written.get(11..16).unwrap_or_default().to_owned();
    }
    let number = |part: std::ops::Range<usize>| written.get(part)?.parse::<usize>().ok();
    let month = number(5..7).and_then(month);
    match (number(8..10), month) {
        (Some(day), Some(month)) => format!("{day} {month}"),
        _ => written,
    }
}

/// The times as the page shows them, in minutes. Usually their zone has one offset, and
/// then only the two ends are converted.
fn minutes(times: &[String], in_zone: impl Fn(&str) -> String) -> Vec<i64> {
    let minute = |written: &str| {
        let written = format!("{}Z", written.get(..19)?);
        Some(Timestamp::parse(&written)?.micros().div_euclid(MINUTE))
    };
    let shown = |iso: &str| minute(&in_zone(iso));
    let offset = |iso: Option<&String>| Some(shown(iso?)? - minute(iso?)?);
    let (first, last) = (offset(times.first()), offset(times.last()));
    let found = times.iter().filter_map(|iso| match first {
        Some(offset) if first == last => Some(minute(iso)? + offset),
        _ => shown(iso),
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::super::scale::Tick;
    use super::{minutes, without_year, words};

    #[test]
    fn labels_are_times_or_days() {
        let label = |minute, is_day| words(Tick { slot: 0, minute, is_day });
        assert_eq!(label(14 * 60 + 5, false), "14:05");
        assert_eq!(label(24 * 60, true), "2 Jan");
        assert_eq!(label(31 * 24 * 60, true), "1 Feb");
    }

    #[test]
    fn a_text_has_no_year() {
        let texts = ["21 Aug 2026", "21 Aug 14:00", "Aug 2026", "17–23 Aug"];
        assert_eq!(texts.map(without_year), ["21 Aug", "21 Aug 14:00", "Aug 2026", "17–23 Aug"]);
    }

    #[test]
    fn times_are_those_of_the_zone() {
        let times = ["1970-01-01T00:00:00Z", "1970-01-01T01:00:00Z"].map(str::to_owned);
        assert_eq!(minutes(&times, str::to_owned), [0, 60]);
        let later = |iso: &str| iso.replacen("T0", "T1", 1).replacen('Z', ".000", 1);
        assert_eq!(minutes(&times, later), [600, 660]);
        // The clocks are changed between the two.
        let changed = |iso: &str| iso.replacen("T01", "T02", 1);
        assert_eq!(minutes(&times, changed), [0, 120]);
    }
}
