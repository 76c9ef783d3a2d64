//! Sessions of visitors, computed from stored events (ING-54).
//!
//! What belongs here: finding the events of a person and grouping them. What does not:
//! what a session is and which sessions count (`weir_model::sessions`); the sign-in
//! sessions of the web app (`identity`).

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::Value;
use weir_model::events::EventQuery;
use weir_model::pagination::{Page, Paged};
use weir_model::sessions::{self, NotCounted, Session, SessionEvent};
use weir_model::{ProjectId, Timestamp};
use weir_store::events::StoredEvent;
use weir_store::{events, persons};

use crate::ctx::ProjectCtx;
use crate::{Core, Result};

/// The maximum number of events of a person that are read, newest first.
pub const EVENTS: usize = 5_000;
/// The maximum number of distinct ids of a person that are read.
pub const IDS: usize = 16;
/// How many events one query reads.
const PAGE: usize = 250;
/// Every id is read at least once.
const _: () = assert!(IDS * PAGE <= EVENTS);

/// The service for sessions of visitors.
#[derive(Clone)]
pub struct Sessions {
    core: Arc<Core>,
}

/// A page of sessions.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionPage {
    /// The sessions that count, newest first.
    pub sessions: Paged<Session>,
    /// How many session ids do not count, by reason.
    pub not_counted: BTreeMap<NotCounted, u64>,
    /// There are older events that were not read, so the answer contains only sessions
    /// that began after this time. `None`: all events were read.
    pub since: Option<Timestamp>,
}

impl Sessions {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// The sessions of the person behind a distinct id: a user who is identified in the
    /// middle of a session has it under two ids. Reads the newest [`EVENTS`] events of
    /// at most [`IDS`] distinct ids.
    pub async fn list(
        &self,
        project: &ProjectCtx,
        distinct_id: &str,
        page: Page,
    ) -> Result<SessionPage> {
        let ids = self.ids(project.project, distinct_id).await?;
        let (grouped, since) = self.newest(project.project, ids).await?;
        let mut found = Vec::new();
        let mut not_counted: BTreeMap<NotCounted, u64> = BTreeMap::new();
        for (id, events) in grouped {
            let is_cut = |since| sessions::made(&id).is_some_and(|made| made <= since);
            if since.is_some_and(is_cut) {
                continue;
            }
            match Session::of(&id, events) {
                Ok(session) => found.push(session),
                Err(reason) => *not_counted.entry(reason).or_default() += 1,
            }
        }
        found.sort_by_key(|session| Reverse((session.start, session.id)));
        let sessions = page.of(found);
        Ok(SessionPage { sessions, not_counted, since })
    }

    /// The distinct ids to read: the requested one, the main one of the person, and
    /// those that joined it last.
    async fn ids(&self, project: ProjectId, distinct_id: &str) -> Result<Vec<String>> {
        let person = persons::first_id(project, distinct_id);
        let mut found = persons::resolve(&self.core.store, project, [person]).await?;
        let mut ids = vec![distinct_id.to_owned()];
        if let Some(person) = found.remove(&person) {
            let (main, joined) = person.distinct_ids.split_at(1.min(person.distinct_ids.len()));
            for id in main.iter().chain(joined.iter().rev()) {
                if ids.len() < IDS && !ids.contains(id) {
                    ids.push(id.clone());
                }
            }
        }
        Ok(ids)
    }

    /// The newest events of these distinct ids by session id, and the time since which
    /// they are complete; `None`: they are complete from the beginning.
    async fn newest(
        &self,
        project: ProjectId,
        ids: Vec<String>,
    ) -> Result<(HashMap<String, Vec<SessionEvent>>, Option<Timestamp>)> {
        let mut grouped: HashMap<String, Vec<SessionEvent>> = HashMap::new();
        let of = |distinct_id| EventQuery { distinct_id: Some(distinct_id), ..Default::default() };
        let mut open: Vec<EventQuery> = ids.into_iter().map(of).collect();
        let mut room = EVENTS;
        // The id whose events reach back least is read next, so that all reach equally
        // far back.
        while room > 0
            && let Some(at) = (0..open.len()).max_by_key(|at| open.get(*at).map(reaches))
        {
            let mut query = open.swap_remove(at);
            query.limit = PAGE.min(room);
            let (found, more) = events::page(&self.core.store, project, &query).await?;
            room = room.saturating_sub(found.len());
            if let Some(last) = found.last().filter(|_| more) {
                query.before = Some(Timestamp::from_micros(last.timestamp));
                query.before_uuid = Some(last.uuid);
                open.push(query);
            }
            for (session, event) in found.into_iter().filter_map(read) {
                grouped.entry(session).or_default().push(event);
            }
        }
        let since = open.iter().filter_map(|query| query.before).max();
        Ok((grouped, since))
    }
}

/// Greater for a query that reaches less far back. A query that has not begun is the
/// greatest.
fn reaches(query: &EventQuery) -> (bool, Option<Timestamp>) {
    (query.before.is_none(), query.before)
}

/// The data that a session needs of an event, with the session id; `None`: the event
/// has no session id. An id that is not a text is kept as JSON, so that it is counted.
fn read(event: StoredEvent) -> Option<(String, SessionEvent)> {
    let mut properties: Value = serde_json::from_str(&event.properties).ok()?;
    let mut take = |name: &str| properties.get_mut(name).map(Value::take);
    let session = match take("$session_id")? {
        Value::Null => return None,
        Value::String(text) => text,
        other => other.to_string(),
    };
    let text = |value: Option<Value>| match value {
        Some(Value::String(text)) => Some(text),
        _ => None,
    };
    let event = SessionEvent {
        current_url: text(take("$current_url")),
        screen_name: text(take("$screen_name")),
        event: event.event,
        distinct_id: event.distinct_id,
        timestamp: Timestamp::from_micros(event.timestamp),
        arrival: event.arrival,
    };
    Some((session, event))
}
