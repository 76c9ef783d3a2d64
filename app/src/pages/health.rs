//! Health of a project's events: traffic over time, delay and size, and the reasons for
//! dropped or altered events.

pub(crate) mod affected;
mod reasons;
mod unknown_senders;

use futures::future::try_join3;
use leptos::prelude::*;

use self::reasons::reasons;
use self::unknown_senders::{refusals, unknown_senders};
use super::project_in_path;
use crate::error::UiError;
use crate::server_fns::projects::{ProjectView, get_project};
use crate::server_fns::traffic::{Totals, TrafficView, between, get_traffic};
use crate::server_fns::warnings::{ReasonView, list_reasons};
use crate::ui::alert::Alert;
use crate::ui::bytes;
use crate::ui::chart::{Bars, Lines, Series};
use crate::ui::field::MomentField;
use crate::ui::form::FormResult;
use crate::ui::number::{counted, duration, grouped, percent};
use crate::ui::page::{PageHead, page};
use crate::ui::query::{in_query, with_query};
use crate::ui::sections::Section;
use crate::ui::status::Tone;
use crate::ui::table::{Column, Table, TableRow, cell};
use crate::ui::time::{ProjectZone, Time};

const TITLE: &str = "Health";
/// The default time range.
pub(super) const USUAL: &str = "24h";
/// Time ranges: value in the address, and label.
pub(super) const RANGES: [(&str, &str); 5] = [
    ("1h", "1 hour"),
    ("6h", "6 hours"),
    ("24h", "24 hours"),
    ("7d", "7 days"),
    ("30d", "30 days"),
];
/// Name in the address of the time that events are counted by. By default it is the time of
/// receipt.
const BY: &str = "by";
const EVENT_TIME: &str = "event-time";
/// Largest accepted request body, in bytes (ING-19).
const LIMIT: u64 = 20_000_000;

/// A chart shows sizes below this one in bytes.
const BYTES_UP_TO: u64 = 10 << 10;

/// The selection in the address.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Selection {
    project: i64,
    range: &'static str,
    compare: bool,
    /// Whether events are counted by their own time.
    by_event_time: bool,
    from: String,
    to: String,
}

#[component]
pub(crate) fn Health() -> impl IntoView {
    page(TITLE, selection, load, draw)
}

fn selection() -> Selection {
    let requested = in_query("range");
    Selection {
        project: project_in_path(),
        range: RANGES
            .into_iter()
            .find(|(name, _)| *name == requested)
            .map_or(USUAL, |(name, _)| name),
        compare: in_query("compare") == "1",
        by_event_time: in_query(BY) == EVENT_TIME,
        from: in_query("from"),
        to: in_query("to"),
    }
}

type Loaded = (ProjectView, TrafficView, Vec<ReasonView>);

async fn load(selection: Selection) -> Result<Loaded, UiError> {
    let Selection { project, range, compare, by_event_time, from, to } = selection;
    let traffic = get_traffic(project, range.to_owned(), from, to, compare, by_event_time);
    try_join3(get_project(project), traffic, list_reasons(project)).await
}

fn draw(selection: Selection, (project, traffic, found): Loaded) -> AnyView {
    let Selection { project: id, range, compare, by_event_time, from, to } = selection.clone();
    let zoomed = between(&from, &to).is_some();
    let is_unreadable = !(zoomed || from.is_empty() && to.is_empty());
    let (name, zone) = (project.name.clone(), project.timezone.clone());
    let why = reasons(&project, found, &traffic.trends);
    let refused = refusals(&traffic.total.refusals);
    let unknown_senders = unknown_senders(id, traffic.unknown_senders.clone());
    view! {
        <PageHead title=TITLE within=name>
            <a class="button" href=format!("/projects/{id}/health/events")>
                "Dropped and altered events"
            </a>
            <a class="button" href=format!("/projects/{id}/events")>"Events"</a>
        </PageHead>
        <ProjectZone zone=zone />
        {ranges(range, compare, by_event_time, zoomed)}
        {is_unreadable.then(unreadable)}
        {zoom(&selection, &traffic)}
        // The headings of the charts are one level below this one.
        <h2 class="hidden">"Traffic"</h2>
        {charts(&traffic, by_event_time)}
        {sums(&traffic, compare)}
        <div class="card-columns health-lists">
            <Section
                id="reasons"
                title="Drop reasons"
                hint="Why events were dropped or altered although their request was answered with 200. Counted since the project was created."
            >
                {why}
            </Section>
            {refused}
            {unknown_senders}
        </div>
    }
    .into_any()
}

fn ranges(range: &'static str, compare: bool, by_event_time: bool, zoomed: bool) -> AnyView {
    let links = RANGES
        .into_iter()
        .map(|(name, words)| {
            let name_in_query = Some(name).filter(|name| *name != USUAL);
            let href = with_query(&[("range", name_in_query), ("from", None), ("to", None)]);
            let current = (name == range && !zoomed).then_some("true");
            view! { <a class="button" href=href aria-current=current>{words}</a> }
        })
        .collect_view();
    let (word, value) =
        if compare { ("Do not compare", None) } else { ("Compare with previous", Some("1")) };
    let other = with_query(&[("compare", value)]);
    let (by_word, by_value) = match by_event_time {
        true => ("Count by time of receipt", None),
        false => ("Count by event time", Some(EVENT_TIME)),
    };
    let by = with_query(&[(BY, by_value)]);
    let whole = zoomed.then(|| {
        let href = with_query(&[("from", None), ("to", None)]);
        view! { <a class="button" href=href>"Zoom out"</a> }
    });
    view! {
        <nav class="ranges" aria-label="Range">
            {links}
            {whole}
            <a class="button button-quiet" href=other>{word}</a>
            <a class="button button-quiet" href=by>{by_word}</a>
        </nav>
    }
    .into_any()
}

/// Form for a custom time range. Dragging over a chart fills and sends it
/// (`behaviours::brush`).
fn zoom(selection: &Selection, traffic: &TrafficView) -> AnyView {
    let Selection { project: id, range, compare, by_event_time, .. } = *selection;
    let begin = traffic.times.first().cloned().unwrap_or_default();
    let end = traffic.end.clone();
    let none = FormResult::sample(None);
    let kept = [
        ("range", range, range != USUAL),
        ("compare", "1", compare),
        (BY, EVENT_TIME, by_event_time),
    ];
    let kept = kept
        .into_iter()
        .filter(|(_, _, is_set)| *is_set)
        .map(|(name, value, _)| view! { <input type="hidden" name=name value=value /> })
        .collect_view();
    view! {
        <form
            class="filter time-range"
            role="search"
            aria-label="Time range"
            method="get"
            action=format!("/projects/{id}/health")
            data-brush-form=""
        >
            {kept}
            <MomentField result=none name="from" label="From" value=begin required=true />
            <MomentField result=none name="to" label="To" value=end required=true />
            <button type="submit" class="button">"Zoom"</button>
        </form>
        <p class="hint">
            <span class="needs-scripts">"Drag over a chart to zoom. "</span>
            "Counts are kept by the minute for a day and by the hour for 30 days."
        </p>
    }
    .into_any()
}

fn unreadable() -> impl IntoView {
    view! {
        <Alert kind="note">
            <p>"The time range of the address cannot be read: it needs two times, the earlier one first. The whole range is shown."</p>
        </Alert>
    }
}

fn charts(traffic: &TrafficView, by_event_time: bool) -> AnyView {
    let Totals { accepted, dropped, rejected, requests, half, most, largest, .. } = &traffic.total;
    let is_silent = *accepted == 0 && *dropped == 0 && *rejected == 0 && *requests == 0;
    let silence = is_silent.then(|| {
        let last = match traffic.last_event.clone() {
            Some(iso) => view! { <p>"Last event: "<Time iso=iso /></p> }.into_any(),
            None => view! { <p>"No event is stored yet."</p> }.into_any(),
        };
        view! {
            <Alert kind="note">
                <p>"No traffic in this range."</p>
                {last}
            </Alert>
        }
    });
    let step = step(traffic.step_seconds);
    let events = match by_event_time {
        true => events_by_their_time(traffic, &step),
        false => events_by_receipt(traffic, &step),
    };
    let speed = match (half, most) {
        (Some(half), Some(most)) => format!(
            "Half of the requests were answered within {}, 95 of 100 within {}.",
            duration(*half),
            duration(*most)
        ),
        _ => "No request was answered in this range.".to_owned(),
    };
    let times_taken = vec![
        Series::new("Half (p50)", Tone::Good, traffic.half.clone()),
        Series::new("95 of 100 (p95)", Tone::Warn, traffic.most.clone()),
    ];
    let deepest = traffic.waiting.iter().copied().max().unwrap_or(0);
    let depth =
        format!("At most {} waited to be processed, in the whole instance.", bytes::text(deepest));
    let (waiting, queue_unit) = sizes_of(some(&traffic.waiting));
    let queue = vec![Series::new("Waiting", Tone::Busy, waiting)];
    let sizes = match *largest {
        0 => "No request had a body in this range.".to_owned(),
        largest => format!(
            "The largest body had {}, which is {} of the limit of {}.",
            bytes::text(largest),
            percent(largest, LIMIT),
            bytes::text(LIMIT)
        ),
    };
    let (largest_bodies, body_unit) = sizes_of(traffic.largest.clone());
    let bodies = vec![Series::new("Largest body", Tone::Busy, largest_bodies)];
    let times = || traffic.times.clone();
    let end = || traffic.end.clone();
    view! {
        {silence}
        <div class="charts">
            {events}
            <Lines id="speed" title="Processing time" summary=speed times=times() until=end() series=times_taken unit="ms" />
            <Lines id="queue" title="Queue depth" summary=depth times=times() until=end() series=queue unit=queue_unit />
            <Lines id="sizes" title="Body sizes" summary=sizes times=times() until=end() series=bodies unit=body_unit />
        </div>
    }
    .into_any()
}

/// What was received in a range, as a sentence.
pub(super) fn received(accepted: u64, dropped: u64, rejected: u64) -> String {
    format!(
        "{} accepted, {} dropped, and {} rejected.",
        counted(accepted, "event", "events"),
        grouped(dropped),
        counted(rejected, "request", "requests")
    )
}

fn events_by_receipt(traffic: &TrafficView, step: &str) -> AnyView {
    let Totals { accepted, dropped, rejected, .. } = &traffic.total;
    let summary = received(*accepted, *dropped, *rejected);
    let series = vec![
        Series::new("Accepted", Tone::Good, some(&traffic.accepted)),
        Series::new("Dropped", Tone::Warn, some(&traffic.dropped)),
        Series::new("Rejected requests", Tone::Bad, some(&traffic.rejected)),
    ];
    let (times, end) = (traffic.times.clone(), traffic.end.clone());
    view! {
        <Bars id="events" title=format!("Events per {step}") summary=summary times=times until=end series=series unit="events" />
    }
    .into_any()
}

/// Stored events by their own time, so that imported days are not one bar.
fn events_by_their_time(traffic: &TrafficView, step: &str) -> AnyView {
    let Some(counts) = &traffic.by_event_time else {
        return view! {
            <Alert kind="note">
                <p>"There are too many events in this range to count them by event time. Choose a shorter range."</p>
            </Alert>
        }
        .into_any();
    };
    let summary = format!(
        "About {} stored events have a time in this range. Events that were stored together are divided evenly.",
        grouped(counts.iter().sum())
    );
    let series = vec![Series::new("Stored", Tone::Good, some(counts))];
    let (times, end) = (traffic.times.clone(), traffic.end.clone());
    view! {
        <Bars id="events" title=format!("Events by event time, per {step}") summary=summary times=times until=end series=series unit="events" />
    }
    .into_any()
}

/// The totals of the range, next to those of the previous range.
fn sums(traffic: &TrafficView, compare: bool) -> AnyView {
    if !compare {
        return ().into_any();
    }
    let Some(before) = &traffic.before else {
        return view! {
            <Alert kind="note">
                <p>"Counts are kept by the minute for a day and by the hour for 30 days, so there is nothing before this range to compare with."</p>
            </Alert>
        }
        .into_any();
    };
    let now = &traffic.total;
    let time = |value: Option<u64>| value.map_or_else(|| "-".to_owned(), duration);
    let rows = vec![
        counts("Accepted events", now.accepted, before.accepted),
        counts("Dropped events", now.dropped, before.dropped),
        counts("Rejected requests", now.rejected, before.rejected),
        counts("Answered requests", now.requests, before.requests),
        texts("Half answered within", time(now.half), time(before.half)),
        texts("95 of 100 answered within", time(now.most), time(before.most)),
        texts("Largest body", bytes::text(now.largest), bytes::text(before.largest)),
        texts("Average body", bytes::text(now.mean), bytes::text(before.mean)),
    ];
    let columns = vec![
        Column::text("Count"),
        Column::number("This range"),
        Column::number("Previous"),
        Column::number("Change"),
    ];
    view! {
        <Section id="compare" title="Compared with previous">
            <Table caption="This range and the one before" columns=columns rows=rows />
        </Section>
    }
    .into_any()
}

fn counts(name: &'static str, now: u64, before: u64) -> TableRow {
    let change = match (now.checked_sub(before), before) {
        (_, 0) => "-".to_owned(),
        (Some(more), _) => format!("+{}", percent(more, before)),
        (None, _) => format!("-{}", percent(before - now, before)),
    };
    TableRow::new(vec![cell(name), cell(grouped(now)), cell(grouped(before)), cell(change)])
}

fn texts(name: &'static str, now: String, before: String) -> TableRow {
    TableRow::new(vec![cell(name), cell(now), cell(before), cell("-")])
}

/// Numbers of bytes in the unit of their chart, and the unit. Small ones stay bytes: a chart
/// has whole numbers, and would show 300 bytes as 1 KiB.
fn sizes_of(bytes: Vec<Option<u64>>) -> (Vec<Option<u64>>, &'static str) {
    let largest = bytes.iter().flatten().max().copied().unwrap_or(0);
    if largest < BYTES_UP_TO {
        return (bytes, "B");
    }
    let in_kib = |bytes: Option<u64>| bytes.map(|bytes| bytes.div_ceil(1 << 10));
    (bytes.into_iter().map(in_kib).collect(), "KiB")
}

fn some(values: &[u64]) -> Vec<Option<u64>> {
    values.iter().copied().map(Some).collect()
}

/// The length of a step as a text.
fn step(seconds: i64) -> String {
    match (seconds / 60, seconds / 3_600) {
        (1, _) => "minute".to_owned(),
        (minutes, 0) => format!("{minutes} minutes"),
        (_, 1) => "hour".to_owned(),
        (_, hours) => format!("{hours} hours"),
    }
}

#[cfg(test)]
mod tests {
    use super::{received, sizes_of, step};

    #[test]
    fn one_event_is_not_several() {
        assert_eq!(received(1, 2, 1), "1 event accepted, 2 dropped, and 1 request rejected.");
        assert_eq!(received(0, 0, 0), "0 events accepted, 0 dropped, and 0 requests rejected.");
    }

    #[test]
    fn small_sizes_are_not_rounded_up_to_kibibytes() {
        assert_eq!(sizes_of(vec![Some(345), None]), (vec![Some(345), None], "B"));
        assert_eq!(sizes_of(vec![Some(20 << 10), Some(1)]), (vec![Some(20), Some(1)], "KiB"));
        assert_eq!(sizes_of(Vec::new()), (Vec::new(), "B"));
    }

    #[test]
    fn steps_in_words() {
        for (seconds, words) in
            [(60, "minute"), (900, "15 minutes"), (3_600, "hour"), (21_600, "6 hours")]
        {
            assert_eq!(step(seconds), words);
        }
    }
}
