//! Migrated events by source and day: amount, rate, order.

use leptos::prelude::*;

use crate::server_fns::imports::SourceView;
use crate::ui::alert::Alert;
use crate::ui::number::{counted, grouped};
use crate::ui::sections::Section;
use crate::ui::status::{Status, Tone};
use crate::ui::table::{Column, Table, TableRow, cell};
use crate::ui::time::Time;

/// Above this rate, in events per minute, hosted services ask for notice in advance.
const NOTED: u64 = 10_000;

/// Warnings: old events that are not marked as historical, times in the future, and
/// events without a distinct id.
pub(super) fn suspects(sources: &[SourceView]) -> Option<AnyView> {
    let sum = |of: fn(&SourceView) -> u64| sources.iter().map(of).sum::<u64>();
    let unmarked = sum(|source| if source.historical { 0 } else { source.accepted });
    let future = sum(|source| source.future);
    let missing = sum(|source| source.missing_ids);
    let lines = [
        (
            unmarked,
            "event",
            "events",
            "more than a day old were sent without historical_migration. They count as live events: their order is not kept, and they can trigger alarms. If they belong to an import, stop it and send the rest with historical_migration. Devices that were offline send such events too.",
        ),
        (
            future,
            "event",
            "events",
            "had a time in the future and got the time of receipt. Check the clock and the time zone of the export.",
        ),
        (missing, "event", "events", "had no distinct id and were not stored."),
    ];
    let message = lines
        .into_iter()
        .filter(|(count, ..)| *count > 0)
        .map(|(count, one, many, what)| {
            view! { <p>{format!("{} {what}", counted(count, one, many))}</p> }.into_any()
        })
        .collect::<Vec<AnyView>>();
    (!message.is_empty()).then(|| view! { <Alert kind="warning">{message}</Alert> }.into_any())
}

/// The table of sources.
pub(super) fn sources(found: Vec<SourceView>) -> Option<AnyView> {
    if found.is_empty() {
        return None;
    }
    let columns = vec![
        Column::text("Source"),
        Column::text("Historical"),
        Column::number("Sent"),
        Column::number("Accepted"),
        Column::number("Dropped"),
        Column::number("Per minute"),
        Column::text("Event times"),
        Column::text("Order"),
        Column::text("Last request"),
    ];
    let rows = found.into_iter().map(row).collect();
    let view = view! {
        <Section
            id="sources"
            title="Events received"
            hint="By day, key and client library. Hosted services want notice before you send more than 10,000 events in a minute. Weir has no such limit."
        >
            <Table caption="Imported events by source" columns=columns rows=rows />
        </Section>
    };
    Some(view.into_any())
}

fn row(source: SourceView) -> TableRow {
    let why = source
        .reasons
        .iter()
        .map(|(code, times)| format!("{} {code}", grouped(*times)))
        .collect::<Vec<String>>()
        .join(", ");
    let why = (!why.is_empty()).then(|| view! { <span class="hint wrap">" "{why}</span> });
    let fast = (source.peak > NOTED).then(|| view! { <span class="hint">" above 10,000"</span> });
    let rate = grouped(source.rate);
    let peak = format!(" at most {}", grouped(source.peak));
    let times = match source.times {
        Some((oldest, newest)) => {
            view! { <Time iso=oldest /> " to " <Time iso=newest /> }.into_any()
        }
        None => "-".into_any(),
    };
    let order = match source.out_of_order {
        0 => view! { <Status tone=Tone::Good label="In order" /> }.into_any(),
        count => {
            let label = format!("{} out of order", grouped(count));
            view! { <Status tone=Tone::Warn label=label /> }.into_any()
        }
    };
    let marked = if source.historical {
        view! { <Status tone=Tone::Good label="Yes" /> }.into_any()
    } else {
        view! { <Status tone=Tone::Warn label="No: old events" /> }.into_any()
    };
    TableRow::new(vec![
        cell(view! {
            <span>{source.day}</span> " " <code>{source.key}</code> " " <span class="wrap">{source.library}</span>
        }),
        cell(marked),
        cell(grouped(source.sent)),
        cell(grouped(source.accepted)),
        cell(view! { {grouped(source.dropped)} {why} }),
        cell(view! { {rate} <span class="hint">{peak}</span> {fast} }),
        cell(times),
        cell(order),
        cell(view! { <Time iso=source.last_at /> }),
    ])
}
