//! The list of the events page with what scripts add: new rows, pause, and the panel of a
//! row without loading the page.

use std::sync::Arc;

use leptos::prelude::*;
use leptos::task::spawn_local;
use weir_model::live::EventsFilter;

use super::address;
use super::columns::Columns;
use super::connection::{LiveConnection, MAX_ROWS};
use super::dynamic::dynamic;
use super::panel::{HEADING, panel};
use super::row::Row;
use super::row_table::{self, Opening, RowStyle, row_table};
use super::state::ConnectionState;
use super::window::DrawWindow;
use crate::server_fns::events::{EventView, get_event};
use crate::ui::alert::Alert;
use crate::ui::empty::first_event;
use crate::ui::icon::Icon;
use crate::ui::keyboard::on_key;
use crate::ui::time::ZoneName;

/// Message after a gap that was larger than the list, or was not filled.
const GAP: &str =
    " Rows in between are missing here. Health counts them; the events API has what was stored.";
/// Id of the first field of the filter.
const FILTER: &str = "event";

/// What the list is about, and how it is drawn.
#[derive(Clone)]
pub(crate) struct ListSettings {
    pub(crate) project: i64,
    /// The address of the page without a selected row.
    pub(crate) page: String,
    pub(crate) filter: EventsFilter,
    pub(crate) columns: Columns,
    /// The properties that have a column.
    pub(crate) properties: Vec<String>,
    /// Whether new rows are added.
    pub(crate) is_live: bool,
    /// Whether it begins paused.
    pub(crate) is_paused: bool,
    /// Whether the range has more than a day, so that times need their dates.
    pub(crate) has_dates: bool,
    /// The address with older rows.
    pub(crate) older: Option<String>,
    /// Whether the search ended before the page was full.
    pub(crate) is_early: bool,
    /// The text of the empty list.
    pub(crate) nothing: Nothing,
}

/// Why there are no rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Nothing {
    /// No event was ever received.
    Yet,
    /// There are none in the range. The address has all of them.
    InRange(String),
    /// There are no older ones. The address has the latest ones.
    Older(String),
    /// None matches the filter. The address is without it.
    Matches(String),
}

/// The state of the panel.
#[derive(Clone)]
enum Shown {
    Closed,
    Event(Arc<EventView>),
    /// The event of the address is not kept.
    Gone,
    Failed(String),
}

impl Shown {
    fn of(key: Option<&String>, found: Option<EventView>) -> Self {
        match (key, found) {
            (None, _) => Self::Closed,
            (Some(_), Some(event)) => Self::Event(Arc::new(event)),
            (Some(_), None) => Self::Gone,
        }
    }
}

/// The list, its state, and the panel of the selected row.
#[component]
pub(crate) fn EventList(
    settings: ListSettings,
    /// The first rows, newest first.
    rows: Vec<Row>,
    /// Key of the row in the address.
    selected: Option<String>,
    /// The event of that row, if it is kept.
    opened: Option<EventView>,
) -> impl IntoView {
    let ListSettings { project, columns, has_dates, is_live, .. } = settings;
    let drawing = DrawWindow::new(rows.len());
    let (filter, properties) = (settings.filter.clone(), settings.properties.clone());
    let connection = LiveConnection::new(project, filter, properties.clone(), rows, is_live);
    if settings.is_paused {
        connection.toggle_pause();
    }
    let shown = RwSignal::new(Shown::of(selected.as_ref(), opened));
    let reloads = is_live && !settings.is_paused && selected.is_none();
    let opening =
        Opening { open: RwSignal::new(selected), page: StoredValue::new(settings.page.clone()) };
    follow_history(opening.open);
    open_and_close(project, opening.open, shown);
    on_key("Escape", move || {
        let is_open = opening.open.with_untracked(Option::is_some);
        if is_open {
            opening.show(None);
        }
        is_open
    });
    on_key("/", || row_table::focus(FILTER));

    let is_empty = Memo::new(move |_| connection.rows.with(Vec::is_empty));
    let style = RowStyle { project, columns, properties: properties.len(), has_dates };
    let nothing = settings.nothing.clone();
    let the_list = dynamic(move || {
        if is_empty.get() {
            empty(project, &nothing, connection)
        } else {
            row_table(connection.rows, drawing, opening, style, &properties)
        }
    });
    let the_panel = dynamic(move || match shown.get() {
        Shown::Closed => ().into_any(),
        Shown::Event(event) => panel((*event).clone(), project, opening),
        Shown::Gone => note("This event is not kept any more, or it belongs to another project."),
        Shown::Failed(why) => note(why),
    });
    let switch = is_live.then(|| {
        view! {
            {pause_button(connection)}
            {status(connection, reloads)}
        }
    });
    view! {
        <div class="list-head">
            {switch}
            {counts(connection)}
        </div>
        {is_live.then(|| lost(connection))}
        <p class="hidden" role="status">{dynamic(move || connection.summary.get().into_any())}</p>
        <div class="live">
            {the_panel}
            <div class="live-list">
                {the_list}
                {further(settings, connection)}
            </div>
        </div>
    }
    .into_any()
}

fn note(text: impl Into<String>) -> AnyView {
    let text: String = text.into();
    view! { <Alert kind="note"><p>{text}</p></Alert> }.into_any()
}

/// Selects the row of the address when the user goes back or forward in the history.
fn follow_history(open: RwSignal<Option<String>>) {
    let asked = Memo::new(|_| address::selected());
    Effect::new(move |_| {
        let asked = asked.get();
        if open.with_untracked(|now| *now != asked) {
            open.set(asked);
        }
    });
}

/// Reads the event of a row that is selected, and moves the focus to its panel and back.
fn open_and_close(project: i64, open: RwSignal<Option<String>>, shown: RwSignal<Shown>) {
    Effect::new(move |before: Option<Option<String>>| {
        let now = open.get();
        match (before, &now) {
            (Some(before), Some(key)) if before != now => {
                let key = key.clone();
                spawn_local(async move {
                    let found = get_event(project, key.clone()).await;
                    let is_still_open = open.try_get_untracked().flatten().as_ref() == Some(&key);
                    if is_still_open {
                        let _ = shown.try_set(match found {
                            Ok(event) => Shown::of(Some(&key), event),
                            Err(error) => Shown::Failed(error.sentence()),
                        });
                        focus_soon(HEADING.to_owned());
                    }
                });
            }
            (Some(Some(key)), None) => {
                shown.set(Shown::Closed);
                focus_soon(row_table::id(&key));
            }
            _ => {}
        }
        now
    });
}

/// Moves the focus after the next drawing, to the list if the element is not there: new
/// rows can have removed a row.
fn focus_soon(id: String) {
    request_animation_frame(move || {
        if !row_table::focus(&id) {
            row_table::focus(row_table::LIST);
        }
    });
}

fn pause_button(connection: LiveConnection) -> AnyView {
    on_key(" ", move || {
        connection.toggle_pause();
        true
    });
    let label = dynamic(move || {
        let state = connection.state.get();
        let icon = if state.is_paused { "play" } else { "pause" };
        let text = match (state.is_paused, state.held_back) {
            (false, _) => "Pause".to_owned(),
            (true, 0) => "Resume".to_owned(),
            (true, held_back) => format!("Resume ({held_back} new)"),
        };
        view! {
            <Icon name=icon />
            {text}
        }
        .into_any()
    });
    view! {
        <button type="button" class="button needs-scripts" on:click=move |_| connection.toggle_pause()>
            {label}
        </button>
    }
    .into_any()
}

/// The state of the connection, in a word.
fn status(connection: LiveConnection, reloads: bool) -> AnyView {
    let state = dynamic(move || {
        let state = connection.state.get();
        let (class, text) = match (state.connection, state.is_paused) {
            (ConnectionState::Live, false) => ("status status-live needs-scripts", "Live"),
            (ConnectionState::Live, true) => ("status status-paused needs-scripts", "Paused"),
            (ConnectionState::Connecting, _) => ("status needs-scripts", "Connecting"),
            (ConnectionState::Lost(_), _) => ("status status-lost needs-scripts", "Not connected"),
        };
        view! { <span class=class>{text}</span> }.into_any()
    });
    view! {
        {state}
        {reloads.then(|| view! {
            <span class="status needs-no-scripts">"Reloads every 5 seconds"</span>
        })}
    }
    .into_any()
}

/// A banner while the connection is lost. Afterwards the gap is filled from the store, up
/// to the length of the list.
fn lost(connection: LiveConnection) -> AnyView {
    dynamic(move || {
        let state = connection.state.get();
        let wait = match state.connection {
            ConnectionState::Connecting | ConnectionState::Live => return ().into_any(),
            ConnectionState::Lost(0) => "Trying now".to_owned(),
            ConnectionState::Lost(seconds) => format!("Next try in {seconds} s"),
        };
        let known = match state.server_answers {
            None => "",
            Some(true) => {
                "The server answers, so events appear here as soon as the connection is back."
            }
            Some(false) => "The server does not answer, so it is unknown whether events arrive.",
        };
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
        .into_any()
    })
}

/// The number of rows, the time zone, and whether more rows arrived than the list holds.
fn counts(connection: LiveConnection) -> AnyView {
    let text = dynamic(move || {
        let rows = connection.rows.with(Vec::len);
        let text = match rows {
            0 => String::new(),
            1 => "1 row. ".to_owned(),
            _ => format!("{rows} rows, newest first. "),
        };
        text.into_any()
    });
    let gap = dynamic(move || connection.state.get().has_gap.then_some(GAP).into_any());
    view! {
        <p class="counts">
            {text} "Times in " <ZoneName /> "." <span role="status">{gap}</span>
        </p>
    }
    .into_any()
}

/// The link to older rows. When the list is full, rows between its end and the older ones
/// are missing, so the list must begin again.
fn further(settings: ListSettings, connection: LiveConnection) -> AnyView {
    let ListSettings { older, is_early, page, .. } = settings;
    let Some(older) = older else { return ().into_any() };
    if is_early {
        return view! {
            <Alert kind="note">
                <p>"Many events were searched, and there are more. The search stopped because it took too long."</p>
                <p><a class="button" href=older rel="next">"Search further"</a></p>
            </Alert>
        }
        .into_any();
    }
    let link = dynamic(move || {
        let is_full = connection.rows.with(Vec::len) >= usize::from(MAX_ROWS);
        let (href, label) = if is_full {
            (page.clone(), "Load the latest events again")
        } else {
            (older.clone(), "Older events")
        };
        view! { <a class="button" rel="next" href=href>{label}</a> }.into_any()
    });
    view! {
        <nav class="pager" aria-label="Pages of events">
            <div class="pager-ways">{link}</div>
        </nav>
    }
    .into_any()
}

/// The text of an empty list.
fn empty(project: i64, nothing: &Nothing, connection: LiveConnection) -> AnyView {
    match nothing {
        Nothing::Matches(clear) => view! {
            <div class="empty">
                <p>"No event matches the filter."</p>
                <p><a class="button" href=clear.clone()>"Clear filters"</a></p>
            </div>
        }
        .into_any(),
        Nothing::Older(latest) => view! {
            <div class="empty">
                <p>"There are no older events."</p>
                <p><a class="button" href=latest.clone()>"Latest events"</a></p>
            </div>
        }
        .into_any(),
        Nothing::InRange(all) => view! {
            <div class="empty">
                <p>"No event was received in this time range."</p>
                <p><a class="button" href=all.clone()>"Show all time"</a></p>
            </div>
        }
        .into_any(),
        Nothing::Yet => {
            let paused = dynamic(move || {
                connection.state.get().is_paused.then_some("The list is paused.").into_any()
            });
            view! {
                <div class="empty">
                    <h2>"No event received yet"</h2>
                    <p>"Events that are sent with the key of this project appear here immediately, dropped ones too."</p>
                    <p><strong>{paused}</strong></p>
                    {first_event(project)}
                </div>
            }
            .into_any()
        }
    }
}
