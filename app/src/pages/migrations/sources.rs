//! Migrated events by source and day: amount, rate, order.

use leptos::prelude::*;

use crate::pages::columns_menu::ColumnsMenu;
use crate::server_fns::imports::SourceView;
use crate::ui::alert::Alert;
use crate::ui::columns::{OptionalColumn, shown};
use crate::ui::number::{counted, grouped};
use crate::ui::sections::Section;
use crate::ui::status::{Status, Tone};
use crate::ui::table::{Column, ROOMY, Table, TableRow, cell, truncated};
use crate::ui::time::{Ago, Time};

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

/// The columns that can be chosen. The source is always shown.
const COLUMNS: [OptionalColumn; 8] = [
    ("historical", "Historical", false),
    ("sent", "Sent", false),
    ("accepted", "Accepted", true),
    ("dropped", "Dropped", true),
    ("rate", "Per minute", true),
    ("times", "Event times", true),
    ("order", "Order", true),
    ("last", "Last request", false),
];
/// Those of numbers.
const NUMBERS: [&str; 4] = ["sent", "accepted", "dropped", "rate"];

/// The table of sources with the columns of the address. `open` is the shown plan.
pub(super) fn sources(
    project: i64,
    open: &str,
    asked: &[String],
    found: Vec<SourceView>,
) -> Option<AnyView> {
    if found.is_empty() {
        return None;
    }
    let offered = COLUMNS.into_iter().zip(shown(&COLUMNS, asked));
    let shown: Vec<(&'static str, &'static str)> = offered
        .clone()
        .filter_map(|((name, label, _), is_shown)| is_shown.then_some((name, label)))
        .collect();
    let headings = shown.iter().map(|(name, label)| {
        if NUMBERS.contains(name) { Column::number(label) } else { Column::text(label) }
    });
    let columns: Vec<Column> = std::iter::once(Column::text("Source")).chain(headings).collect();
    let can_scroll = columns.len() > ROOMY;
    let rows = found.into_iter().map(|source| row(&source, &shown)).collect();
    let offered = offered.map(|((name, label, _), is_shown)| (name, label, is_shown)).collect();
    let action = format!("/projects/{project}/migrations");
    let plan = (!open.is_empty())
        .then(|| view! { <input type="hidden" name="plan" value=open.to_owned() /> });
    let kept = plan.into_any();
    let view = view! {
        <Section
            id="sources"
            title="Events received"
            hint="By day, key and client library. Hosted services want notice before you send more than 10,000 events in a minute. Weir has no such limit."
        >
            <div class="events-view">
                <ColumnsMenu action=action kept=kept columns=offered />
            </div>
            <Table
                caption="Imported events by source"
                columns=columns
                rows=rows
                can_scroll=can_scroll
            />
        </Section>
    };
    Some(view.into_any())
}

fn row(source: &SourceView, shown: &[(&'static str, &'static str)]) -> TableRow {
    let (day, key) = (source.day.clone(), source.key.clone());
    let name = cell(view! {
        <span>{day}</span> " " <code>{key}</code> " " {truncated(source.library.clone())}
    });
    let cells = shown.iter().map(|(column, _)| value(source, column));
    TableRow::new(std::iter::once(name).chain(cells).collect())
}

/// The cell of a source in a column.
fn value(source: &SourceView, column: &str) -> AnyView {
    match column {
        "historical" if source.historical => cell(view! { <Status tone=Tone::Good label="Yes" /> }),
        "historical" => cell(view! { <Status tone=Tone::Warn label="No: old events" /> }),
        "sent" => cell(grouped(source.sent)),
        "accepted" => cell(grouped(source.accepted)),
        "dropped" => dropped(source),
        "rate" => rate(source),
        "times" => match source.times.clone() {
            Some((oldest, newest)) => {
                cell(view! { <Time iso=oldest /> " to " <Time iso=newest /> })
            }
            None => cell("-"),
        },
        "order" => order(source.out_of_order),
        _ => cell(view! { <Ago iso=source.last_at.clone() /> }),
    }
}

/// The number of dropped events, with the reasons.
fn dropped(source: &SourceView) -> AnyView {
    let why = source
        .reasons
        .iter()
        .map(|(code, times)| format!("{} {code}", grouped(*times)))
        .collect::<Vec<String>>()
        .join(", ");
    let why = (!why.is_empty()).then(|| view! { <span class="hint">" "{truncated(why)}</span> });
    cell(view! { {grouped(source.dropped)} {why} })
}

fn rate(source: &SourceView) -> AnyView {
    let fast = (source.peak > NOTED).then(|| view! { <span class="hint">" above 10,000"</span> });
    let peak = format!(" at most {}", grouped(source.peak));
    cell(view! { {grouped(source.rate)} <span class="hint">{peak}</span> {fast} })
}

fn order(out_of_order: u64) -> AnyView {
    match out_of_order {
        0 => cell(view! { <Status tone=Tone::Good label="In order" /> }),
        count => {
            let label = format!("{} out of order", grouped(count));
            cell(view! { <Status tone=Tone::Warn label=label /> })
        }
    }
}
