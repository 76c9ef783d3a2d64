//! The island of the live page: toolbar, list, and the row that is open.

use std::sync::Arc;
use std::time::Duration;

use leptos::html;
use leptos::prelude::*;

use super::address;
use super::connection::{ConnectionState, LiveConnection};
use super::detail::{Around, HEADING, detail};
use super::filter::Filter;
use super::row::Row;
use super::row_list::{self, Opening, row_list};
use super::window::DrawWindow;
use crate::ui::icon::Icon;
use crate::ui::keyboard::on_key;
use crate::ui::time::ZoneName;

/// Message after a gap that was larger than the list, or was not filled.
const GAP: &str =
    " Rows in between are missing here. Health counts them; the events API has what was stored.";
/// Delay between the last key and filtering.
const PAUSE: Duration = Duration::from_millis(100);
/// Options of the outcome filter: value and label.
const OUTCOMES: [(&str, &str); 5] = [
    ("", "All outcomes"),
    ("accepted", "Accepted"),
    ("altered", "Altered"),
    ("dropped", "Dropped"),
    ("rejected", "Rejected"),
];

/// Everything that reaches a project, as it arrives.
#[component]
pub(crate) fn LiveList(
    /// Number of the project.
    project: i64,
    /// Scheme and host that events are sent to.
    host: String,
    /// Key of the project.
    key: String,
    /// The latest rows, newest first.
    rows: Vec<Row>,
    /// The filter in the address.
    filter: Filter,
    /// Key of the row in the address.
    open: Option<String>,
) -> impl IntoView {
    let drawing = DrawWindow::new(rows.len());
    let connection = LiveConnection::new(project, rows);
    let asked = filter;
    let reloads = open.is_none();
    let (filter, open) = (RwSignal::new(asked.clone()), RwSignal::new(open));
    let address = Callback::new(move |key: Option<String>| {
        filter.with_untracked(|filter| address::of(project, filter, key.as_deref()))
    });
    let opening = Opening { open, address };
    follow_history(filter, open, drawing);
    move_focus(open);
    on_key("Escape", move || {
        let is_open = open.with_untracked(Option::is_some);
        if is_open {
            opening.show(None);
        }
        is_open
    });

    let shown = Memo::new(move |_| {
        let filter = filter.get();
        connection.rows.with(|rows| {
            rows.iter().filter(|row| filter.admits(row)).cloned().collect::<Vec<Arc<Row>>>()
        })
    });
    let opened = Memo::new(move |_| {
        let key = open.get()?;
        connection.rows.with(|rows| rows.iter().find(|row| row.key == key).cloned())
    });
    let is_empty = Memo::new(move |_| shown.with(Vec::is_empty));
    let refine = Callback::new(move |(text, outcome)| {
        drawing.reset();
        filter.set(Filter { outcome, text });
        address::replace(&address.run(open.get_untracked()));
    });

    let around = StoredValue::new(Around { project, host, key });
    let the_detail =
        move || opened.get().map(|row| around.with_value(|around| detail(&row, around, opening)));
    let the_list = move || {
        if is_empty.get() {
            nothing(project, filter, connection)
        } else {
            row_list(shown, drawing, opening)
        }
    };
    view! {
        <div class="toolbar">
            {filter_form(project, asked, filter, refine)}
            {pause_button(connection)}
            {status(connection, reloads)}
        </div>
        {lost(connection)}
        {counts(connection, shown, filter)}
        <p class="hidden" role="status">{move || connection.summary.get()}</p>
        <div class=move || if opened.with(Option::is_some) { "live live-open" } else { "live" }>
            {the_detail}
            <div class="live-list">{the_list}</div>
        </div>
    }
    .into_any()
}

/// Moves the focus to the detail that was opened, and back to its row afterwards.
fn move_focus(open: RwSignal<Option<String>>) {
    Effect::new(move |before: Option<Option<String>>| {
        let now = open.get();
        // On the first run the browser sets the focus.
        let (target, otherwise) = match (before, &now) {
            (Some(before), Some(_)) if before != now => (HEADING.to_owned(), None),
            // New rows can have removed the row from the list.
            (Some(Some(key)), None) => (row_list::id(&key), Some(row_list::LIST)),
            _ => return now,
        };
        request_animation_frame(move || {
            if !row_list::focus(&target) {
                otherwise.map(row_list::focus);
            }
        });
        now
    });
}

/// Restores filter and row when the user goes back or forward in the history.
fn follow_history(filter: RwSignal<Filter>, open: RwSignal<Option<String>>, drawing: DrawWindow) {
    let asked = Memo::new(|_| address::read());
    Effect::new(move |_| {
        let (asked, row) = asked.get();
        if filter.with_untracked(|now| *now != asked) {
            drawing.reset();
            filter.set(asked);
        }
        if open.with_untracked(|now| *now != row) {
            open.set(row);
        }
    });
}

/// A form without scripts, an immediate filter with scripts.
fn filter_form(
    project: i64,
    asked: Filter,
    filter: RwSignal<Filter>,
    refine: Callback<(Option<String>, Option<String>)>,
) -> AnyView {
    let search = NodeRef::<html::Input>::new();
    on_key("/", move || {
        if let Some(search) = search.get_untracked() {
            let _ = search.focus();
        }
        true
    });
    // The fields follow the filter when the user goes back in the history.
    let select = NodeRef::<html::Select>::new();
    Effect::new(move |_| {
        let now = filter.get();
        if let Some(search) = search.get() {
            let text = now.text.unwrap_or_default();
            if search.value() != text {
                search.set_value(&text);
            }
        }
        if let Some(select) = select.get() {
            select.set_value(&now.outcome.unwrap_or_default());
        }
    });
    let apply = move || {
        let filled = |value: String| Some(value).filter(|value| !value.trim().is_empty());
        if let (Some(search), Some(select)) = (search.get_untracked(), select.get_untracked()) {
            refine.run((filled(search.value()), filled(select.value())));
        }
    };
    let mut apply_soon = debounce(PAUSE, move |()| apply());
    let chosen = asked.outcome.unwrap_or_default();
    let options = OUTCOMES
        .into_iter()
        .map(|(word, label)| {
            view! { <option value=word selected=chosen == word>{label}</option> }
        })
        .collect_view();
    view! {
        <form
            method="get"
            action=format!("/projects/{project}/live")
            class="filter"
            role="search"
            on:submit=move |event| event.prevent_default()
        >
            <label class="hidden" for="q">"Filter rows"</label>
            <input
                node_ref=search
                id="q"
                name="q"
                type="search"
                autocomplete="off"
                spellcheck="false"
                placeholder="Event, distinct id, or property = value"
                value=asked.text.unwrap_or_default()
                on:input=move |_| apply_soon(())
            />
            <label class="hidden" for="outcome">"Outcome"</label>
            <select
                node_ref=select
                id="outcome"
                name="outcome"
                on:change=move |_| apply()
            >
                {options}
            </select>
            <button type="submit" class="button needs-no-scripts">"Filter"</button>
        </form>
    }
    .into_any()
}

fn pause_button(connection: LiveConnection) -> AnyView {
    on_key(" ", move || {
        connection.toggle_pause();
        true
    });
    let icon = move || {
        let name = if connection.paused.get() { "play" } else { "pause" };
        view! { <Icon name=name /> }
    };
    let label = move || match (connection.paused.get(), connection.waiting.get()) {
        (false, _) => "Pause".to_owned(),
        (true, 0) => "Resume".to_owned(),
        (true, waiting) => format!("Resume ({waiting} new)"),
    };
    view! {
        <button type="button" class="button needs-scripts" on:click=move |_| connection.toggle_pause()>
            {icon}
            {label}
        </button>
    }
    .into_any()
}

/// The state of the connection, in a word.
fn status(connection: LiveConnection, reloads: bool) -> AnyView {
    let state = move || match (connection.state.get(), connection.paused.get()) {
        (ConnectionState::Live, false) => ("status status-live needs-scripts", "Live"),
        (ConnectionState::Live, true) => ("status status-paused needs-scripts", "Paused"),
        (ConnectionState::Connecting, _) => ("status needs-scripts", "Connecting"),
        (ConnectionState::Lost(_), _) => ("status status-lost needs-scripts", "Not connected"),
    };
    view! {
        <span class=move || state().0>{move || state().1}</span>
        {reloads.then(|| view! {
            <span class="status needs-no-scripts">"Reloads every 5 seconds"</span>
        })}
    }
    .into_any()
}

/// A banner while the connection is lost. Afterwards the gap is filled from the store, up
/// to the length of the list.
fn lost(connection: LiveConnection) -> AnyView {
    let gone = Memo::new(move |_| matches!(connection.state.get(), ConnectionState::Lost(_)));
    let wait = move || match connection.state.get() {
        ConnectionState::Lost(seconds @ 1..) => format!("Next try in {seconds} s"),
        ConnectionState::Lost(0) | ConnectionState::Connecting | ConnectionState::Live => {
            "Trying now".to_owned()
        }
    };
    let known = move || match connection.server_answers.get() {
        None => "",
        Some(true) => "The server answers. Events appear here as soon as the connection is back.",
        Some(false) => "The server does not answer, so it is unknown whether events arrive.",
    };
    let banner = move || {
        gone.get().then(|| {
            view! {
                <div class="alert alert-warning banner">
                    <Icon name="alert" />
                    <div class="alert-body">
                        <p role="alert">"The connection is lost. " {known}</p>
                        <p class="faint">{wait}</p>
                    </div>
                    <button type="button" class="button" on:click=move |_| connection.retry()>"Try now"</button>
                </div>
            }
        })
    };
    banner.into_any()
}

/// The number of shown rows, the time zone, and whether more rows arrived than the list
/// holds.
fn counts(
    connection: LiveConnection,
    shown: Memo<Vec<Arc<Row>>>,
    filter: RwSignal<Filter>,
) -> AnyView {
    let text = move || {
        let (all, some) = (connection.rows.with(Vec::len), shown.with(Vec::len));
        match (filter.with(Filter::is_open), all) {
            (true, 1) => "1 row. ".to_owned(),
            (true, _) => format!("{all} rows, newest first. "),
            (false, _) => format!("{some} of the latest {all} rows match. "),
        }
    };
    let gap = move || connection.has_gap.get().then_some(GAP);
    view! { <p class="counts">{text} "Times in " <ZoneName /> "." <span role="status">{gap}</span></p> }.into_any()
}

/// The text of an empty list: no match, paused, or no events yet.
fn nothing(project: i64, filter: RwSignal<Filter>, connection: LiveConnection) -> AnyView {
    if !filter.with(Filter::is_open) {
        return view! {
            <div class="empty">
                <p>"No row here matches. New rows are filtered as they arrive."</p>
                <p><a class="button" href=format!("/projects/{project}/live")>"Clear filters"</a></p>
            </div>
        }
        .into_any();
    }
    let paused = move || connection.paused.get().then_some("The list is paused.");
    view! {
        <div class="empty">
            <h2>"No event received yet"</h2>
            <p>"Every event that is sent with the key of this project appears here immediately, stored or not."</p>
            <p><strong>{paused}</strong></p>
            <p>
                <a class="button button-primary" href=format!("/projects/{project}/start")>
                    "Send the first event"
                </a>
            </p>
        </div>
    }
    .into_any()
}
