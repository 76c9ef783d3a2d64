//! The live part of the start page: shows recent events, or that it waits for the first one,
//! and marks completed steps of the page.

use std::sync::Arc;

use leptos::prelude::*;
use weir_model::live::EventsFilter;

use super::address;
use super::badge::badge;
use super::connection::LiveConnection;
use super::dynamic::dynamic;
use super::row::Row;
use super::state::ConnectionState;
use crate::ui::prose::prose;
use crate::ui::time::Clock;

/// Maximum number of rows.
const ROWS: usize = 8;

#[component]
pub(crate) fn RecentEvents(
    /// Number of the project.
    project: i64,
    /// The latest rows, newest first.
    rows: Vec<Row>,
    /// Scheme and host that events are sent to.
    host: String,
) -> impl IntoView {
    let connection = LiveConnection::new(project, EventsFilter::default(), Vec::new(), rows, true);
    let latest = Memo::new(move |_| {
        connection.rows.with(|rows| rows.iter().take(ROWS).cloned().collect::<Vec<Arc<Row>>>())
    });
    let is_empty = Memo::new(move |_| latest.with(Vec::is_empty));
    mark_steps(connection);
    let list = dynamic(move || {
        if is_empty.get() {
            return waiting_box(&host, connection);
        }
        view! {
            <ol class="arrivals">
                <For each=move || latest.get() key=|row| row.key.clone() let:row>
                    {recent_event(project, &row)}
                </For>
            </ol>
        }
        .into_any()
    });
    view! {
        <p class="hidden" role="status">{dynamic(move || connection.summary.get().into_any())}</p>
        {list}
    }
    .into_any()
}

/// Marks completed steps. The focus stays where it is.
fn mark_steps(connection: LiveConnection) {
    Effect::new(move |_| {
        let (stored, dropped) = connection.rows.with(|rows| {
            (rows.iter().any(|row| row.is_stored()), rows.iter().any(|row| row.is_dropped()))
        });
        for (step, done) in [
            // Events that arrived, stored or dropped, were sent with the right key.
            ("key", stored || dropped),
            ("send", stored),
            ("check", stored || dropped),
            ("dropped", dropped),
        ] {
            if done {
                mark(step);
            }
        }
    });
}

fn mark(step: &str) {
    let found = document().query_selector(&format!("[data-step=\"{step}\"]")).ok().flatten();
    if let Some(step) = found {
        let _ = step.class_list().add_1("step-done");
        if let Some(word) = step.query_selector("[data-tick]").ok().flatten() {
            let _ = word.remove_attribute("hidden");
        }
    }
}

fn waiting_box(host: &str, connection: LiveConnection) -> AnyView {
    let state = dynamic(move || {
        let text = match connection.state.get().connection {
            ConnectionState::Lost(_) => "The connection is lost; trying again",
            ConnectionState::Connecting | ConnectionState::Live => "Waiting for the first event",
        };
        text.into_any()
    });
    view! {
        <div class="waiting">
            <span class="pulse" aria-hidden="true"></span>
            <div>
                <p><strong>{state}</strong></p>
                <p class="hint">
                    "Listening for anything sent with this key to " <code>{host.to_owned()}</code>
                </p>
            </div>
        </div>
    }
    .into_any()
}

fn recent_event(project: i64, row: &Row) -> AnyView {
    let href = address::with_row(&address::of(project, &[]), Some(&row.key));
    let reasons = row
        .meanings()
        .into_iter()
        .map(|meaning| {
            view! {
                <p class="arrival-why">
                    <strong>{meaning.sentence}</strong>
                    " "
                    {prose(meaning.fix)}
                </p>
            }
        })
        .collect_view();
    let distinct_id = row.distinct_id.clone().unwrap_or_default();
    let distinct_id = match &row.person {
        Some(id) => {
            let href = address::person(project, id);
            view! { <a class="arrival-id" href=href>{distinct_id}</a> }.into_any()
        }
        None => view! { <span class="arrival-id">{distinct_id}</span> }.into_any(),
    };
    view! {
        <li class="arrival">
            {badge(row.outcome_label())}
            <a class="arrival-name" href=href>{row.name()}</a>
            {distinct_id}
            <Clock iso=row.received_at.clone() />
            {reasons}
            {row.detail.clone().map(|detail| view! { <p class="arrival-why">{detail}</p> })}
        </li>
    }
    .into_any()
}
