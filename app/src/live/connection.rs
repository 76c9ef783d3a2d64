//! The connection of a live list in the browser. It connects, detects a lost
//! connection, counts down to the next attempt, and fills gaps from the store up to the
//! length of the list. The server applies the filter. On the server, effects never run, so
//! this does nothing.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::select_all;
use gloo_net::eventsource::State;
use gloo_net::eventsource::futures::EventSource;
use leptos::prelude::*;
use leptos::task::spawn_local;
use send_wrapper::SendWrapper;
use weir_model::live::{EventsFilter, PROPERTY_COLUMN};

use super::row::Row;
use super::rows::{insert, meets};
use super::state::{ConnectionState, LiveState};
use crate::error::UiError;
use crate::local_path;
use crate::server_fns::events::{EventsPage, list_events};

/// Maximum number of rows in the page.
pub(crate) const MAX_ROWS: u16 = 1000;
/// Number of rows for filling a gap. If they do not reach back to known rows, [`MAX_ROWS`]
/// rows are requested.
const REFILL: u16 = 200;
const CONNECT_TIMEOUT_S: u32 = 5;
const MAX_RETRY_WAIT_S: u32 = 30;
const MIN_REDRAW_PAUSE_MS: u64 = 250;
/// The pause after a redraw is this many times its duration, so that a slow device stays
/// responsive.
const REDRAW_PAUSE_FACTOR: u64 = 3;
const MAX_REDRAW_PAUSE_MS: u64 = 2_000;
const SUMMARY_INTERVAL_S: u32 = 5;

/// The rows of a project and the state of their connection. All fields are copyable
/// handles.
#[derive(Clone, Copy)]
pub(super) struct LiveConnection {
    project: i64,
    /// The rows, newest first.
    pub(super) rows: RwSignal<Vec<Arc<Row>>>,
    /// State of the list.
    pub(super) state: RwSignal<LiveState>,
    /// Summary of recent rows in words, for screen readers.
    pub(super) summary: RwSignal<String>,
    inner: StoredValue<Inner>,
}

/// State that no view depends on.
#[derive(Default)]
struct Inner {
    filter: EventsFilter,
    /// The properties whose values the rows have.
    properties: Vec<String>,
    source: Option<SendWrapper<EventSource>>,
    /// Number of the current connection. Answers of earlier connections are ignored.
    number: u32,
    /// Seconds since the last answer.
    silence: u32,
    /// Seconds until the next attempt if the current one fails.
    wait: u32,
    seen: HashSet<String>,
    /// Rows that arrived since the last redraw, or since the list was paused.
    queued: Vec<Arc<Row>>,
    /// Whether a redraw is planned, or the pause after a redraw is not over.
    draw_planned: bool,
    /// For the next summary: rows, rows that were not stored, seconds since the last one.
    unsummarized: (usize, usize, u32),
}

impl LiveConnection {
    /// The rows that match a filter, with the values of these properties, beginning with the
    /// first rows. It connects when the page runs in the browser, if the list is live.
    pub(super) fn new(
        project: i64,
        filter: EventsFilter,
        properties: Vec<String>,
        first: Vec<Row>,
        is_live: bool,
    ) -> Self {
        let mut rows = Vec::new();
        for row in first {
            insert(&mut rows, Arc::new(row));
        }
        let inner = Inner {
            filter,
            properties,
            seen: rows.iter().map(|row| row.key.clone()).collect(),
            wait: 1,
            ..Inner::default()
        };
        let connection = Self {
            project,
            rows: RwSignal::new(rows),
            state: RwSignal::new(LiveState {
                connection: ConnectionState::Connecting,
                server_answers: None,
                is_paused: false,
                held_back: 0,
                has_gap: false,
            }),
            summary: RwSignal::new(String::new()),
            inner: StoredValue::new(inner),
        };
        Effect::new(move |_| {
            if !is_live {
                return;
            }
            connection.connect();
            if let Ok(ticking) =
                set_interval_with_handle(move || connection.tick(), Duration::from_secs(1))
            {
                on_cleanup(move || ticking.clear());
            }
        });
        connection
    }

    /// Pauses, or resumes and shows the rows held back.
    pub(super) fn toggle_pause(self) {
        let is_paused = !self.is_paused();
        self.change(|state| LiveState { is_paused, ..state });
        if !is_paused {
            self.flush();
        }
    }

    /// Whether new rows are held back. The list of a page that is gone counts as paused.
    fn is_paused(self) -> bool {
        self.state.try_get_untracked().is_none_or(|state| state.is_paused)
    }

    fn change(self, change: impl FnOnce(LiveState) -> LiveState) {
        if let Some(before) = self.state.try_get_untracked() {
            self.put(before, change(before));
        }
    }

    fn put(self, before: LiveState, now: LiveState) {
        if before != now {
            let _ = self.state.try_set(now);
        }
    }

    /// Connects immediately.
    pub(super) fn retry(self) {
        self.inner.try_update_value(|inner| inner.wait = 1);
        self.connect();
    }

    fn connect(self) {
        // The state stays `Lost` until there is an answer, so that the banner does not
        // flicker.
        self.change(|state| {
            let connection = match state.connection {
                ConnectionState::Lost(_) => ConnectionState::Lost(0),
                ConnectionState::Connecting | ConnectionState::Live => ConnectionState::Connecting,
            };
            LiveState { connection, ..state }
        });
        let Ok(mut source) = EventSource::new(&self.stream()) else {
            return self.lost();
        };
        let subscribed: Result<Vec<_>, _> = ["hello", "row", "behind", "again"]
            .into_iter()
            .map(|kind| source.subscribe(kind))
            .collect();
        let Ok(streams) = subscribed else { return self.lost() };
        let number = self.inner.try_update_value(|inner| {
            inner.number += 1;
            inner.silence = 0;
            // This drops the previous source, which closes its streams.
            inner.source = Some(SendWrapper::new(source));
            inner.number
        });
        let Some(number) = number else { return };
        spawn_local(async move {
            let mut messages = select_all(streams);
            while let Some(Ok((kind, message))) = messages.next().await {
                if self.number() != Some(number) {
                    return;
                }
                match kind.as_str() {
                    "row" => self.take(message.data().as_string().unwrap_or_default()),
                    "hello" => {
                        self.inner.try_update_value(|inner| inner.wait = 1);
                        self.change(|state| LiveState {
                            connection: ConnectionState::Live,
                            server_answers: None,
                            ..state
                        });
                        self.refill().await;
                    }
                    "again" => return self.connect(),
                    _ => self.refill().await,
                }
            }
            if self.number() == Some(number) {
                self.lost();
            }
        });
    }

    /// The address of the stream with the filter and the properties.
    fn stream(self) -> String {
        let query = self.inner.try_with_value(|inner| {
            let properties = inner.properties.iter().map(|name| (PROPERTY_COLUMN, name.as_str()));
            let pairs = inner.filter.pairs().into_iter().chain(properties);
            let pair = |(name, value)| format!("{name}={}", local_path::encode(value));
            pairs.map(pair).collect::<Vec<_>>().join("&")
        });
        format!("/_live/{}?{}", self.project, query.unwrap_or_default())
    }

    /// The latest rows that match.
    async fn latest(self, limit: u16) -> Result<EventsPage, UiError> {
        let asked = |inner: &Inner| (inner.filter.clone(), inner.properties.clone());
        let (filter, properties) = self.inner.try_with_value(asked).unwrap_or_default();
        list_events(self.project, filter, String::new(), limit, properties).await
    }

    fn number(self) -> Option<u32> {
        self.inner.try_with_value(|inner| inner.number)
    }

    fn lost(self) {
        let wait = self.inner.try_update_value(|inner| {
            inner.number += 1;
            let wait = inner.wait.max(1);
            inner.wait = (wait * 2).min(MAX_RETRY_WAIT_S);
            (wait, inner.source.take())
        });
        if let Some((wait, source)) = wait {
            drop(source);
            self.lost_for(wait);
            spawn_local(self.probe());
        }
    }

    fn lost_for(self, seconds: u32) {
        let connection = ConnectionState::Lost(seconds);
        self.change(|state| LiveState { connection, ..state });
    }

    /// Tests the server with another request, because an event stream reports neither a
    /// refusal nor an unreachable server. A user who lost access to the project is
    /// redirected to a page that says why.
    async fn probe(self) {
        match self.latest(1).await {
            Err(UiError::SignIn | UiError::NotFound) => {
                let _ = window().location().reload();
            }
            answer => {
                let server_answers = Some(answer.is_ok());
                self.change(|state| LiveState { server_answers, ..state });
            }
        }
    }

    /// Runs once a second. A browser that reconnects automatically sends no event, so the
    /// state of the connection is polled.
    fn tick(self) {
        let looked = self.inner.try_update_value(|inner| {
            inner.silence += 1;
            let source = inner.source.as_ref();
            (source.is_some_and(|source| source.state() == State::Open), inner.silence)
        });
        let Some((open, silence)) = looked else { return };
        match self.state.try_get_untracked().map(|state| state.connection) {
            Some(ConnectionState::Live) if !open => self.lost(),
            Some(ConnectionState::Connecting | ConnectionState::Lost(0))
                if silence > CONNECT_TIMEOUT_S =>
            {
                self.lost()
            }
            Some(ConnectionState::Lost(1)) => self.connect(),
            Some(ConnectionState::Lost(seconds @ 2..)) => self.lost_for(seconds - 1),
            Some(
                ConnectionState::Connecting | ConnectionState::Live | ConnectionState::Lost(0),
            )
            | None => {}
        }
        self.summarize();
    }

    fn summarize(self) {
        let paused = self.is_paused();
        let unsummarized = self.inner.try_update_value(|inner| {
            inner.unsummarized.2 += 1;
            let (rows, lost, seconds) = inner.unsummarized;
            let due = seconds >= SUMMARY_INTERVAL_S && rows > 0 && !paused;
            if due {
                inner.unsummarized = (0, 0, 0);
            }
            due.then_some((rows, lost))
        });
        if let Some(Some((rows, lost))) = unsummarized {
            let text = match lost {
                0 => format!("{rows} new"),
                _ => format!("{rows} new, {lost} not stored"),
            };
            let _ = self.summary.try_set(text);
        }
    }

    fn take(self, text: String) {
        // The parser of the answers of server functions, which is compiled anyway.
        if let Ok(row) = serde_json::from_slice::<Row>(text.as_bytes()) {
            self.add(vec![row]);
        }
    }

    async fn refill(self) {
        // Rows that arrive during the request must not count as known before it.
        let Some(newest) = self.newest() else { return };
        let mut is_filled = false;
        for limit in [REFILL, MAX_ROWS] {
            let Ok(page) = self.latest(limit).await else { break };
            is_filled = meets(newest.as_deref(), &page);
            let mut rows = page.rows;
            // What is older than the list belongs to its next page.
            let oldest =
                self.rows.try_with_untracked(|rows| rows.last().map(|row| row.key.clone()));
            let end = oldest.flatten().and_then(|key| rows.iter().position(|row| row.key == key));
            rows.truncate(end.unwrap_or(rows.len()));
            self.add(rows);
            if is_filled {
                break;
            }
        }
        self.change(|state| LiveState { has_gap: !is_filled, ..state });
    }

    /// The key of the newest known row, if there is one. The outer `None`: the page is
    /// gone.
    fn newest(self) -> Option<Option<String>> {
        let key = |rows: &Vec<Arc<Row>>| rows.first().map(|row| row.key.clone());
        let queued = self.inner.try_with_value(|inner| key(&inner.queued))?;
        self.rows.try_with_untracked(|rows| queued.or_else(|| key(rows)))
    }

    fn add(self, rows: Vec<Row>) {
        let plan = self.inner.try_update_value(|inner| {
            for row in rows {
                if inner.seen.insert(row.key.clone()) {
                    inner.unsummarized.0 += 1;
                    inner.unsummarized.1 += usize::from(!row.is_stored());
                    insert(&mut inner.queued, Arc::new(row));
                }
            }
            inner.queued.truncate(MAX_ROWS.into());
            !inner.queued.is_empty() && !std::mem::replace(&mut inner.draw_planned, true)
        });
        // Rows that arrive within one frame are drawn together.
        if plan == Some(true) {
            request_animation_frame(move || self.draw());
        }
    }

    /// Draws the new rows, and after a pause the rows that arrived in the meantime.
    fn draw(self) {
        if !self.is_paused() {
            self.flush();
        } else if let Some(held_back) = self.inner.try_with_value(|inner| inner.queued.len()) {
            self.change(|state| LiveState { held_back, ..state });
        }
        let began = now();
        // After the frame that shows the rows.
        request_animation_frame(move || {
            let done = move || {
                set_timeout(move || self.draw_again(), redraw_pause(now().saturating_sub(began)))
            };
            set_timeout(done, Duration::ZERO);
        });
    }

    fn draw_again(self) {
        // Rows that are already counted as held back, because the list is paused, need no
        // redraw.
        let reported = self.state.try_get_untracked().map_or(0, |state| state.held_back);
        let is_due = self.inner.try_update_value(|inner| {
            inner.draw_planned = inner.queued.len() > reported;
            inner.draw_planned
        });
        // A hidden tab is drawn when it becomes visible.
        if is_due == Some(true) {
            request_animation_frame(move || self.draw());
        }
    }

    fn flush(self) {
        let Some(queued) = self.inner.try_update_value(|inner| std::mem::take(&mut inner.queued))
        else {
            return;
        };
        self.change(|state| LiveState { held_back: 0, ..state });
        if queued.is_empty() {
            return;
        }
        self.rows.try_update(|rows| {
            for row in queued {
                insert(rows, row);
            }
            rows.truncate(MAX_ROWS.into());
            // Only kept rows need deduplication. Older rows of a refill are cut off in
            // the same way.
            self.inner.try_update_value(|inner| {
                if inner.seen.len() > 4 * usize::from(MAX_ROWS) {
                    inner.seen = rows.iter().map(|row| row.key.clone()).collect();
                }
            });
        });
    }
}

/// Milliseconds since the page was loaded.
fn now() -> u64 {
    window().performance().map_or(0, |clock| clock.now() as u64)
}

/// Pause after a redraw that took this many milliseconds.
fn redraw_pause(took: u64) -> Duration {
    Duration::from_millis(
        (took * REDRAW_PAUSE_FACTOR).clamp(MIN_REDRAW_PAUSE_MS, MAX_REDRAW_PAUSE_MS),
    )
}
