//! The table of rows. Each row has a link to its panel.

use std::borrow::Cow;
use std::sync::Arc;

use leptos::prelude::*;
use leptos::wasm_bindgen::JsCast as _;
use web_sys::{Element, HtmlElement, MouseEvent};

use super::address;
use super::badge::badge;
use super::columns::Columns;
use super::row::Row;
use super::window::DrawWindow;
use crate::ui::table::{
    Align, Column, TableRow, cell, heading, is_wide, row_view, truncated, truncated_link,
};
use crate::ui::time::{Clock, Time};

/// Id of the list.
pub(super) const LIST: &str = "live-rows";
/// The beginning of the id of the link of a row. Its key follows.
const LINK: &str = "row-";

/// The selected row, and the address of the page without it.
#[derive(Clone, Copy)]
pub(super) struct Opening {
    /// The key of the selected row.
    pub(super) open: RwSignal<Option<String>>,
    /// The address of the page.
    pub(super) page: StoredValue<String>,
}

impl Opening {
    /// The address with this row selected.
    pub(super) fn address(self, key: Option<&str>) -> String {
        self.page.with_value(|page| address::with_row(page, key))
    }

    /// Follows a link to a row, or to no row, without loading the page.
    pub(super) fn go(self, click: &MouseEvent, key: Option<String>) {
        if address::is_plain(click) {
            click.prevent_default();
            self.show(key);
        }
    }

    /// Selects a row, or closes the panel.
    pub(super) fn show(self, key: Option<String>) {
        address::push(&self.address(key.as_deref()));
        self.open.set(key);
    }

    /// A click on a row opens it, unless it is on another link.
    fn click(self, click: &MouseEvent) {
        let target = click.target().and_then(|target| target.dyn_into::<Element>().ok());
        let Some(target) = target else { return };
        let closest = |selector: &str| target.closest(selector).ok().flatten();
        let link = match closest("a, [tabindex='0']") {
            Some(link) if link.class_name() == "row-link" => Some(link),
            Some(_) => None,
            None => closest("tr").and_then(|row| row.query_selector(".row-link").ok().flatten()),
        };
        if let Some(link) = link
            && let Some(key) = link.id().strip_prefix(LINK)
        {
            self.go(click, Some(key.to_owned()));
        }
    }
}

/// Id of the link of a row.
pub(super) fn id(key: &str) -> String {
    format!("{LINK}{key}")
}

/// Focuses the element with this id. Returns whether it exists.
pub(super) fn focus(id: &str) -> bool {
    let found = document().get_element_by_id(id);
    let element = found.as_ref().and_then(|found| found.dyn_ref::<HtmlElement>());
    element.is_some_and(|element| element.focus().is_ok())
}

/// How rows are drawn.
#[derive(Clone, Copy)]
pub(super) struct RowStyle {
    pub(super) project: i64,
    pub(super) columns: Columns,
    /// The number of properties that have a column.
    pub(super) properties: usize,
    /// Whether times have their dates.
    pub(super) has_dates: bool,
}

/// Rows, newest first, up to the size of the window.
pub(super) fn row_table(
    rows: RwSignal<Vec<Arc<Row>>>,
    drawing: DrawWindow,
    opening: Opening,
    style: RowStyle,
    // The names of the properties that have a column.
    properties: &[String],
) -> AnyView {
    let drawn = move || {
        let is_reading = opening.open.with_untracked(Option::is_some);
        rows.with(|rows| drawing.drawn(rows, is_reading))
    };
    let mut columns = style.columns.headings();
    columns.extend(properties.iter().cloned().map(Column::named));
    let labels: Vec<(Cow<'static, str>, Align)> =
        columns.iter().map(|column| (column.label.clone(), column.align)).collect();
    let frame = match is_wide(labels.len()) {
        true => "table-frame table-frame-wide rows-frame",
        false => "table-frame",
    };
    let headings = columns.into_iter().map(heading).collect_view();
    view! {
        <div
            class=frame
            id=LIST
            role="group"
            aria-label="Events"
            tabindex="-1"
            on:click=move |event| opening.click(&event)
        >
            <table class="table rows" role="table">
                <caption class="hidden">"Events, newest first"</caption>
                <thead role="rowgroup">
                    <tr role="row">{headings}</tr>
                </thead>
                <tbody class="rows-list" role="rowgroup">
                    <For each=drawn key=|row| row.key.clone() let:row>
                        {entry(&row, opening, style, &labels)}
                    </For>
                </tbody>
            </table>
        </div>
        {drawing.more(rows)}
    }
    .into_any()
}

fn entry(
    row: &Row,
    opening: Opening,
    style: RowStyle,
    labels: &[(Cow<'static, str>, Align)],
) -> AnyView {
    let mut cells = vec![name(row, opening)];
    cells.extend(style.columns.names().map(|column| match column {
        "outcome" => badge(row.outcome_label()),
        "person" => distinct_id(row, style.project),
        "place" => text(&row.url_or_screen),
        "library" => text(&row.library),
        "size" => cell(row.size_text("≥")),
        "time" => time(row.timestamp.clone(), true),
        _ => time(Some(row.received_at.clone()), style.has_dates),
    }));
    cells.extend((0..style.properties).map(|at| text(row.properties.get(at).unwrap_or(&None))));
    let class = if row.is_stored() { "row" } else { "row row-dropped" };
    row_view(TableRow::new(cells).class(class), labels)
}

/// The name of the event as a link, and the first reason.
fn name(row: &Row, opening: Opening) -> AnyView {
    let key = row.key.clone();
    let is_open = move || opening.open.with(|open| open.as_deref() == Some(&key)).then_some("true");
    let why = row.meanings().into_iter().next().map(|meaning| {
        view! { <span class="row-why">{meaning.sentence}</span> }
    });
    view! {
        <a
            id=id(&row.key)
            class="row-link"
            href=opening.address(Some(&row.key))
            title=row.name()
            aria-current=is_open
        >
            {row.name()}
        </a>
        {why}
    }
    .into_any()
}

fn distinct_id(row: &Row, project: i64) -> AnyView {
    match (&row.distinct_id, &row.person) {
        (Some(id), Some(person)) => truncated_link(address::person(project, person), id.clone()),
        (id, _) => text(id),
    }
}

fn text(value: &Option<String>) -> AnyView {
    value.clone().map_or_else(|| cell("-"), truncated)
}

fn time(iso: Option<String>, has_date: bool) -> AnyView {
    match iso {
        None => cell("-"),
        Some(iso) if has_date => view! { <Time iso=iso /> }.into_any(),
        Some(iso) => view! { <Clock iso=iso /> }.into_any(),
    }
}
