//! The time axis of a chart: labels at round times in the zone of the page, each with a
//! grid line.

use leptos::prelude::*;
use weir_model::Timestamp;

use super::scale::{Tick, share, ticks, width};
use crate::ui::time::in_page_zone;

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const MINUTE: i64 = 60_000_000;

/// The axis. It is drawn again when the zone of the page changes.
pub(super) fn axis(times: Vec<String>) -> AnyView {
    let labels = move || {
        let slots = times.len();
        let ticks = ticks(&minutes(&times, in_page_zone));
        ticks.into_iter().map(|tick| label(tick, slots)).collect_view().into_any()
    };
    view! { <svg class="chart-axis" aria-hidden="true" focusable="false">{labels}</svg> }.into_any()
}

fn label(tick: Tick, slots: usize) -> AnyView {
    let x = share(width(tick.slot), width(slots));
    // A label at an end does not extend beyond it.
    let anchor = match tick.slot * 100 / slots.max(1) {
        0..5 => "start",
        5..95 => "middle",
        _ => "end",
    };
    view! {
        <g class="chart-tick">
            <line x1=x.clone() x2=x.clone() y1="0" y2="100%" />
            <text x=x y="100%" dy="-0.25em" text-anchor=anchor>{words(tick)}</text>
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
    let month = number(5..7).and_then(|month| MONTHS.get(month.checked_sub(1)?));
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
    use super::{minutes, words};

    #[test]
    fn labels_are_times_or_days() {
        let label = |minute, is_day| words(Tick { slot: 0, minute, is_day });
        assert_eq!(label(14 * 60 + 5, false), "14:05");
        assert_eq!(label(24 * 60, true), "2 Jan");
        assert_eq!(label(31 * 24 * 60, true), "1 Feb");
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
