//! The list of rows. Each row is a link to its detail.

use std::sync::Arc;

use leptos::prelude::*;
use leptos::wasm_bindgen::JsCast as _;
use web_sys::{HtmlElement, MouseEvent};

use super::address;
use super::badge::badge;
use super::row::Row;
use super::window::DrawWindow;
use crate::ui::time::Clock;

/// Id of the list.
pub(super) const LIST: &str = "live-rows";

/// The open row, and how to make the address of a row.
#[derive(Clone, Copy)]
pub(super) struct Opening {
    /// The key of the row that is open.
    pub(super) open: RwSignal<Option<String>>,
    /// Makes the address with this row open.
    pub(super) address: Callback<Option<String>, String>,
}

impl Opening {
    /// Follows a link to a row, or to no row, without loading the page.
    pub(super) fn go(self, click: &MouseEvent, key: Option<String>) {
        if address::is_plain(click) {
            click.prevent_default();
            self.show(key);
        }
    }

    /// Opens a row, or closes the one that is open.
    pub(super) fn show(self, key: Option<String>) {
        address::push(&self.address.run(key.clone()));
        self.open.set(key);
    }
}

/// Id of the link of a row.
pub(super) fn id(key: &str) -> String {
    format!("row-{key}")
}

/// Focuses the element with this id. Returns whether it exists.
pub(super) fn focus(id: &str) -> bool {
    let found = document().get_element_by_id(id);
    let element = found.as_ref().and_then(|found| found.dyn_ref::<HtmlElement>());
    element.is_some_and(|element| element.focus().is_ok())
}

/// Rows, newest first, up to the size of the window.
pub(super) fn row_list(
    rows: Memo<Vec<Arc<Row>>>,
    drawing: DrawWindow,
    opening: Opening,
) -> AnyView {
    let drawn = move || {
        let is_reading = opening.open.with_untracked(Option::is_some);
        rows.with(|rows| drawing.drawn(rows, is_reading))
    };
    view! {
        <div class="rows" id=LIST role="group" aria-label="Rows" tabindex="-1">
            <div class="rows-head" aria-hidden="true">
                <span>"Time"</span>
                <span>"Outcome"</span>
                <span>"Event"</span>
                <span>"Distinct id"</span>
                <span>"URL, screen or path"</span>
                <span>"Library"</span>
                <span class="number">"Size"</span>
            </div>
            <ol class="rows-list">
                <For each=drawn key=|row| row.key.clone() let:row>
                    {entry(&row, opening)}
                </For>
            </ol>
        </div>
        {drawing.more(rows)}
    }
    .into_any()
}

fn entry(row: &Row, opening: Opening) -> AnyView {
    let (key, same_key) = (row.key.clone(), row.key.clone());
    let is_open =
        move || opening.open.with(|open| open.as_deref() == Some(&same_key)).then_some("true");
    let class = if row.is_stored() { "row" } else { "row row-dropped" };
    let name_class = if row.event.is_some() { "row-event" } else { "row-event faint" };
    let why = row.meanings().into_iter().next().map(|meaning| {
        view! { <span class="row-why">{meaning.sentence}</span> }
    });
    view! {
        <li>
            <a
                id=id(&row.key)
                class=class
                href=opening.address.run(Some(row.key.clone()))
                aria-current=is_open
                on:click=move |event| opening.go(&event, Some(key.clone()))
            >
                <span class="row-time"><Clock iso=row.received_at.clone() /></span>
                {badge(row.outcome_label())}
                <span class=name_class title=row.name()>{row.name()}</span>
                {cell("row-id", &row.distinct_id)}
                {cell("row-place", &row.url_or_screen)}
                {cell("row-library", &row.library)}
                <span class="row-size number">{row.size_text("≥")}</span>
                {why}
            </a>
        </li>
    }
    .into_any()
}

fn cell(class: &'static str, value: &Option<String>) -> AnyView {
    let text = value.clone().unwrap_or_else(|| "-".to_owned());
    view! { <span class=class title=text.clone()>{text.clone()}</span> }.into_any()
}
