//! The list of rows: each one is a link to its detail.

use std::sync::Arc;

use leptos::prelude::*;

use super::badge::OutcomeBadge;
use super::row::Row;
use crate::ui::bytes;
use crate::ui::time::Clock;

/// Rows, newest first.
#[component]
pub(crate) fn RowList(
    /// The rows.
    #[prop(into)]
    rows: Signal<Vec<Arc<Row>>>,
    /// The key of the row that is open.
    #[prop(into)]
    open: Signal<Option<String>>,
    /// The address of a row's detail.
    link: Callback<String, String>,
) -> impl IntoView {
    view! {
        <div class="rows">
            <div class="rows-head" aria-hidden="true">
                <span>"Time"</span>
                <span>"Outcome"</span>
                <span>"Event"</span>
                <span>"Distinct id"</span>
                <span>"URL or screen"</span>
                <span>"Library"</span>
                <span class="number">"Size"</span>
            </div>
            <ol class="rows-list">
                <For each=move || rows.get() key=|row| row.key.clone() let:row>
                    {entry(&row, open, link)}
                </For>
            </ol>
        </div>
    }
}

fn entry(row: &Row, open: Signal<Option<String>>, link: Callback<String, String>) -> AnyView {
    let key = row.key.clone();
    let is_open = move || open.with(|open| open.as_deref() == Some(&key)).then_some("true");
    let class = if row.is_dropped() { "row row-dropped" } else { "row" };
    let why = row.explained().into_iter().next().map(|explained| {
        view! { <span class="row-why">{explained.sentence}</span> }
    });
    let cell = |class: &'static str, value: &Option<String>| {
        let text = value.clone().unwrap_or_else(|| "-".to_owned());
        view! { <span class=class title=text.clone()>{text.clone()}</span> }
    };
    view! {
        <li>
            <a class=class href=link.run(row.key.clone()) aria-current=is_open data-noscroll="">
                <span class="row-time"><Clock iso=row.received_at.clone() /></span>
                <OutcomeBadge row=row />
                <span class="row-event" class:faint=row.event.is_none()>{row.name()}</span>
                {cell("row-id", &row.distinct_id)}
                {cell("row-place", &row.place)}
                {cell("row-library", &row.library)}
                <span class="row-size number">{bytes::text(row.size)}</span>
                {why}
            </a>
        </li>
    }
    .into_any()
}
