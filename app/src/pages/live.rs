//! Everything that reaches a project, as it arrives: stored or not, and why.

use std::sync::Arc;

use leptos::html;
use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::hooks::query_signal_with_options;

use super::project_in_path;
use crate::live::{Detail, Feed, Filter, Link, Row, RowList};
use crate::local_path;
use crate::server_fns::events::list_live_rows;
use crate::ui::icon::Icon;
use crate::ui::keyboard::on_key;
use crate::ui::page_head::PageHead;
use crate::ui::panel::Panel;
use crate::ui::time::ZoneName;

/// Rows in the first answer.
const FIRST: u16 = 100;
/// Choices of the outcome: word and label.
const OUTCOMES: [(&str, &str); 4] =
    [("", "All"), ("accepted", "Accepted"), ("altered", "Altered"), ("dropped", "Dropped")];

/// The page.
#[component]
pub(crate) fn Live() -> impl IntoView {
    let project = project_in_path();
    let data = Resource::new(
        move || project.get(),
        |id| async move { list_live_rows(id, FIRST).await.map(|rows| (id, rows)) },
    );
    let content = |(project, rows): (i64, Vec<Row>)| {
        view! { <Stream project=project first=rows /> }.into_any()
    };
    view! {
        <PageHead title=Signal::stored("Live".to_owned()) />
        <Panel data=data lines=12 view=content />
    }
    .into_any()
}

#[component]
fn Stream(project: i64, first: Vec<Row>) -> impl IntoView {
    let feed = Feed::new(project, first);
    let quiet = NavigateOptions { replace: true, scroll: false, ..NavigateOptions::default() };
    let (text, set_text) = query_signal_with_options::<String>("q", quiet.clone());
    let (outcome, set_outcome) = query_signal_with_options::<String>("outcome", quiet);
    let (open, _) = query_signal_with_options::<String>("row", NavigateOptions::default());

    let filter = Memo::new(move |_| {
        let filled = |value: Option<String>| value.filter(|value| !value.trim().is_empty());
        Filter { outcome: filled(outcome.get()), text: filled(text.get()) }
    });
    let shown = Memo::new(move |_| {
        let filter = filter.get();
        feed.rows.with(|rows| {
            rows.iter().filter(|row| filter.admits(row)).cloned().collect::<Vec<Arc<Row>>>()
        })
    });
    let opened = Memo::new(move |_| {
        let key = open.get()?;
        feed.rows.with(|rows| rows.iter().find(|row| row.key == key).cloned())
    });
    let address = move |key: Option<&str>| {
        let filter = filter.get_untracked();
        address(project, &filter, key)
    };
    let search = NodeRef::<html::Input>::new();
    on_key(" ", move || feed.toggle_pause());
    on_key("/", move || crate::ui::focus(search));

    let detail = move || opened.get().map(|row| view! { <Detail row=row close=address(None) /> });
    let list = move || {
        if shown.with(Vec::is_empty) {
            nothing(project, filter.get(), feed)
        } else {
            view! {
                <RowList rows=shown open=open link=Callback::new(move |key: String| address(Some(&key))) />
            }
            .into_any()
        }
    };
    view! {
        <div class="toolbar">
            <form method="get" action=format!("/projects/{project}/live") class="filter" role="search"
                on:submit=move |event| event.prevent_default()>
                <label class="hidden" for="q">"Filter rows"</label>
                <input
                    node_ref=search id="q" name="q" type="search" autocomplete="off" spellcheck="false"
                    placeholder="Event, distinct id, or property = value"
                    value=text.get_untracked().unwrap_or_default()
                    on:input=move |event| {
                        set_text.set(Some(event_target_value(&event)).filter(|text| !text.is_empty()));
                    }
                />
                <label class="hidden" for="outcome">"Outcome"</label>
                <select id="outcome" name="outcome"
                    on:change=move |event| {
                        set_outcome.set(Some(event_target_value(&event)).filter(|word| !word.is_empty()));
                    }>
                    {OUTCOMES.into_iter().map(|(word, label)| {
                        let selected = outcome.get_untracked().unwrap_or_default() == word;
                        view! { <option value=word selected=selected>{label}</option> }
                    }).collect_view()}
                </select>
                <noscript><button type="submit" class="button">"Filter"</button></noscript>
            </form>
            <PauseButton feed=feed />
            <Status feed=feed />
        </div>
        <Lost feed=feed />
        <Counts feed=feed shown=shown filter=filter />
        <p class="hidden" role="status" aria-live="polite">{move || feed.summary.get()}</p>
        <div class="live" class:live-open=move || opened.with(Option::is_some)>
            {detail}
            <div class="live-list">{list}</div>
        </div>
        <p class="hint needs-scripts">
            <kbd>"Space"</kbd> " pauses, " <kbd>"/"</kbd> " filters, " <kbd>"u"</kbd> " switches between UTC and your time zone."
        </p>
    }
}

/// The address of the page with this filter and row.
fn address(project: i64, filter: &Filter, row: Option<&str>) -> String {
    let pairs =
        [("q", filter.text.as_deref()), ("outcome", filter.outcome.as_deref()), ("row", row)];
    let query: Vec<String> = pairs
        .into_iter()
        .filter_map(|(name, value)| Some(format!("{name}={}", local_path::encode(value?))))
        .collect();
    if query.is_empty() {
        format!("/projects/{project}/live")
    } else {
        format!("/projects/{project}/live?{}", query.join("&"))
    }
}

#[component]
fn PauseButton(feed: Feed) -> impl IntoView {
    view! {
        <button
            type="button"
            class="button needs-scripts"
            aria-pressed=move || feed.paused.get().to_string()
            on:click=move |_| feed.toggle_pause()
        >
            {move || if feed.paused.get() {
                view! { <Icon name="play" /> }
            } else {
                view! { <Icon name="pause" /> }
            }}
            {move || match (feed.paused.get(), feed.waiting.get()) {
                (false, _) => "Pause".to_owned(),
                (true, 0) => "Resume".to_owned(),
                (true, waiting) => format!("Resume ({waiting} new)"),
            }}
        </button>
    }
}

/// The state of the connection, in a word.
#[component]
fn Status(feed: Feed) -> impl IntoView {
    let state = move || match (feed.link.get(), feed.paused.get()) {
        (Link::Live, false) => ("status status-live", "Live"),
        (Link::Live, true) => ("status status-paused", "Paused"),
        (Link::Connecting(_), _) => ("status", "Connecting"),
        (Link::Lost(_), _) => ("status status-lost", "Not connected"),
    };
    view! {
        <span class=move || format!("{} needs-scripts", state().0)>{move || state().1}</span>
        <noscript><span class="status">"Loads itself anew every 5 seconds"</span></noscript>
    }
}

/// A banner while the stream is gone. Nothing is missing afterwards: the gap is
/// filled from the store.
#[component]
fn Lost(feed: Feed) -> impl IntoView {
    let gone = Memo::new(move |_| matches!(feed.link.get(), Link::Lost(_)));
    move || {
        gone.get().then(|| {
            view! {
                <div class="alert alert-warning banner" role="alert">
                    <Icon name="alert" />
                    <div class="alert-body">
                        <p>"The connection is lost. Events still arrive; they appear here once it is back."</p>
                        <p class="faint" aria-live="off">
                            {move || match feed.link.get() {
                                Link::Lost(seconds) => format!("Next try in {seconds} s"),
                                Link::Connecting(_) | Link::Live => "Trying now".to_owned(),
                            }}
                        </p>
                    </div>
                    <button type="button" class="button" on:click=move |_| feed.retry()>"Try now"</button>
                </div>
            }
        })
    }
}

/// How many rows are shown of how many, and in which zone their times are.
#[component]
fn Counts(feed: Feed, shown: Memo<Vec<Arc<Row>>>, filter: Memo<Filter>) -> impl IntoView {
    let text = move || {
        let (all, some) = (feed.rows.with(Vec::len), shown.with(Vec::len));
        match (filter.with(Filter::is_open), all) {
            (true, 1) => "1 row, newest first. ".to_owned(),
            (true, _) => format!("{all} rows, newest first. "),
            (false, _) => format!("{some} of {all} rows on screen match. "),
        }
    };
    view! { <p class="counts">{text} "Times in " <ZoneName /> "."</p> }
}

/// Three different texts: nothing matches, paused, nothing yet.
fn nothing(project: i64, filter: Filter, feed: Feed) -> AnyView {
    if !filter.is_open() {
        return view! {
            <div class="empty">
                <p>"No row on screen matches. New rows are filtered as they arrive."</p>
                <p><a class="button" href=format!("/projects/{project}/live")>"Clear filters"</a></p>
            </div>
        }
        .into_any();
    }
    view! {
        <div class="empty">
            <h2>"Nothing has arrived yet"</h2>
            <p>"Whatever is sent with this project's key appears here at once, stored or not."</p>
            {move || feed.paused.get().then(|| view! { <p><strong>"The list is paused."</strong></p> })}
            <p>
                <a class="button button-primary" href=format!("/projects/{project}/start")>
                    "Send the first event"
                </a>
            </p>
        </div>
    }
    .into_any()
}
