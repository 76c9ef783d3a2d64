//! The island of the start page: shows recent events, or what is still missing, and ticks
//! the steps of the page.

use std::sync::Arc;

use leptos::prelude::*;

use super::address;
use super::badge::badge;
use super::feed::{Feed, Link};
use super::filter::Filter;
use super::row::Row;
use crate::ui::prose::prose;
use crate::ui::time::{Clock, provide_zone};

/// Maximum number of rows.
const ROWS: usize = 8;

/// Recent events.
#[island]
pub(crate) fn Arrivals(
    /// Number of the project.
    project: i64,
    /// The latest rows, newest first.
    rows: Vec<Row>,
    /// Scheme and host that events are sent to.
    host: String,
) -> impl IntoView {
    provide_zone();
    let feed = Feed::new(project, rows);
    let latest = Memo::new(move |_| {
        feed.rows.with(|rows| rows.iter().take(ROWS).cloned().collect::<Vec<Arc<Row>>>())
    });
    let none = Memo::new(move |_| latest.with(Vec::is_empty));
    tick_steps(feed);
    let list = move || {
        if none.get() {
            return waiting(&host, feed);
        }
        view! {
            <ol class="arrivals">
                <For each=move || latest.get() key=|row| row.key.clone() let:row>
                    {arrival(project, &row)}
                </For>
            </ol>
        }
        .into_any()
    };
    view! {
        <p class="hidden" role="status">{move || feed.summary.get()}</p>
        {list}
    }
    .into_any()
}

/// Ticks completed steps. The focus stays where it is.
fn tick_steps(feed: Feed) {
    Effect::new(move |_| {
        let (stored, dropped) = feed.rows.with(|rows| {
            (rows.iter().any(|row| row.is_stored()), rows.iter().any(|row| row.is_dropped()))
        });
        for (step, done) in [
            // Events that arrived, stored or dropped, were sent with the right key.
            ("key", stored || dropped),
            ("send", stored),
            ("see", stored || dropped),
            ("broken", dropped),
        ] {
            if done {
                tick(step);
            }
        }
    });
}

fn tick(step: &str) {
    let found = document().query_selector(&format!("[data-step=\"{step}\"]")).ok().flatten();
    if let Some(step) = found {
        let _ = step.class_list().add_1("step-done");
        if let Some(word) = step.query_selector("[data-tick]").ok().flatten() {
            let _ = word.remove_attribute("hidden");
        }
    }
}

fn waiting(host: &str, feed: Feed) -> AnyView {
    let state = move || match feed.link.get() {
        Link::Lost(_) => "The connection is lost; trying again",
        Link::Connecting | Link::Live => "Waiting for the first event",
    };
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

fn arrival(project: i64, row: &Row) -> AnyView {
    let href = address::of(project, &Filter::default(), Some(&row.key));
    let reasons = row
        .explained()
        .into_iter()
        .map(|explained| {
            view! {
                <p class="arrival-why">
                    <strong>{explained.sentence}</strong>
                    " "
                    {prose(explained.fix)}
                </p>
            }
        })
        .collect_view();
    let whom = row.distinct_id.clone().unwrap_or_default();
    let whom = match &row.person {
        Some(id) => {
            let href = address::person(project, id);
            view! { <a class="arrival-id" href=href>{whom}</a> }.into_any()
        }
        None => view! { <span class="arrival-id">{whom}</span> }.into_any(),
    };
    view! {
        <li class="arrival">
            {badge(row.fate())}
            <a class="arrival-name" href=href>{row.name()}</a>
            {whom}
            <Clock iso=row.received_at.clone() />
            {reasons}
            {row.detail.clone().map(|detail| view! { <p class="arrival-why">{detail}</p> })}
        </li>
    }
    .into_any()
}
