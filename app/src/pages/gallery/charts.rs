//! Charts, with and without data.

use leptos::prelude::*;

use crate::ui::chart::{Bars, Lines, MiniBars, NUMBERED, NamedLines, Series, ShareBar, Spark};
use crate::ui::number::amount;
use crate::ui::sections::Section;
use crate::ui::status::Tone;

const ACCEPTED: [u64; 12] = [120, 180, 260, 240, 310, 480, 520, 610, 430, 390, 210, 90];
const DROPPED: [u64; 12] = [0, 0, 4, 0, 1, 60, 12, 0, 0, 2, 0, 0];

/// The charts.
pub(super) fn sections() -> AnyView {
    let times: Vec<String> = (0..12).map(|hour| format!("2026-08-21T{hour:02}:00:00Z")).collect();
    let series = || {
        let all = |values: [u64; 12]| values.into_iter().map(Some).collect::<Vec<_>>();
        vec![
            Series::new("Accepted", Tone::Busy, all(ACCEPTED)),
            Series::new("Dropped", Tone::Bad, all(DROPPED)),
        ]
    };
    let latency = |label, tone, slower| {
        let values = ACCEPTED.into_iter().enumerate();
        let value = |(at, value): (usize, u64)| (at != 4).then_some(value / 10 + slower);
        Series::new(label, tone, values.map(value).collect())
    };
    let waits = vec![
        latency("Half of them", Tone::Good, 0),
        latency("95 of 100", Tone::Warn, 20),
        latency("99 of 100", Tone::Bad, 45),
    ];
    let browsers = |number: usize| {
        let values = ACCEPTED.map(|value| value * 10 / (number as u64 + 2));
        let texts = values.iter().map(|value| amount(*value as f64 / 10.0)).collect();
        let values = values.map(Some).to_vec();
        let is_before = number + 1 == NUMBERED;
        let (number, label) = match is_before {
            true => (0, "Browser 1, period before".to_owned()),
            false => (number, format!("Browser {}", number + 1)),
        };
        Series::numbered(label, number, is_before, values, texts)
    };
    let browsers = (0..NUMBERED).map(browsers).collect();
    let days = (1..13).map(|day| format!("{day} Aug 2026")).collect();
    let nothing = vec![Series::new("Accepted", Tone::Busy, Vec::new())];
    view! {
        <Section id="charts" title="Charts">
            <Bars
                id="chart-bars"
                title="Events by hour"
                summary="3,840 events were accepted and 79 dropped, most of them at 05:00."
                times=times.clone()
                series=series()
                unit="events"
            />
            <Lines
                id="chart-lines"
                title="How long requests took"
                summary="Half of the requests were answered within 61 ms. There are no values for 04:00."
                times=times
                series=waits
                unit="ms"
            />
            <NamedLines
                id="chart-named"
                title="Average by browser"
                summary="From 1 Aug 2026 to 12 Aug 2026, in UTC."
                names=days
                series=browsers
                unit="average"
                decimals=1
            />
            <Bars
                id="chart-empty"
                title="Nothing yet"
                summary="No event arrived."
                times=Vec::new()
                series=nothing
                unit="events"
            />
            <p>
                "Events of the day: "
                <Spark values=ACCEPTED.to_vec() summary="Up to 610 an hour, most around 07:00." />
            </p>
            <MiniBars values=ACCEPTED.map(Some).to_vec() summary="Up to 610 an hour." />
            <p>"A part of a whole: 3 of 8"</p>
            <ShareBar part=3 whole=8 />
        </Section>
    }
    .into_any()
}
