//! `/api/projects/{id}/sessions/`: the sessions of a person, computed from its events
//! (ING-54).

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;
use weir_model::Timestamp;
use weir_model::errors::FieldError;
use weir_model::pagination::{Envelope, Paged};
use weir_model::sessions::{Ends, Session};

use crate::app::App;
use crate::filters;
use crate::http::error::ApiResult;
use crate::http::extract::{Authorized, InProject};
use crate::http::guards::EventsRead;
use crate::http::pagination::Listing;

filters! {
    /// Selects the person.
    SessionFilters {
        "distinct_id": RequiredText, "Sessions of the person that this id leads to.";
    }
}

/// One page of sessions.
#[derive(Debug, Serialize, ToSchema)]
pub struct SessionList {
    /// Total number of sessions.
    pub count: u64,
    /// Link to the next page; null on the last one.
    pub next: Option<String>,
    /// Link to the previous page; null on the first.
    pub previous: Option<String>,
    /// The sessions of this page.
    pub results: Vec<SessionAnswer>,
    /// Only events since this time were searched; null when there are no older events.
    pub since: Option<Timestamp>,
    /// Number of session ids that were not counted, by reason.
    pub not_counted: BTreeMap<&'static str, u64>,
}

/// A session as the API shows it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Session)]
pub struct SessionAnswer {
    /// The session's id.
    pub session_id: Uuid,
    /// Distinct ids of the session's events.
    pub distinct_ids: Vec<String>,
    /// Time of the first event.
    pub start_timestamp: Timestamp,
    /// Time of the last event.
    pub end_timestamp: Timestamp,
    /// Seconds between the first and the last event.
    pub duration: f64,
    /// Whether the visit had one page view or screen, no autocaptured event, and lasted
    /// less than 10 seconds.
    pub is_bounce: bool,
    /// `$current_url` of the first event that has one.
    pub entry_current_url: Option<String>,
    /// `$current_url` of the last event that has one.
    pub exit_current_url: Option<String>,
    /// `$screen_name` of the first event that has one.
    pub entry_screen_name: Option<String>,
    /// `$screen_name` of the last event that has one.
    pub exit_screen_name: Option<String>,
    /// Number of `$pageview` events.
    pub pageview_count: u64,
    /// Number of `$screen` events.
    pub screen_count: u64,
    /// Number of `$autocapture` events.
    pub autocapture_count: u64,
    /// Number of all events.
    pub event_count: u64,
}

/// Sessions of the person that a distinct id leads to, newest first.
pub async fn list_sessions(
    auth: Authorized<EventsRead, InProject>,
    State(app): State<App>,
    listing: Listing<SessionFilters>,
) -> ApiResult<Json<SessionList>> {
    let distinct_id = listing
        .param("distinct_id")
        .filter(|id| !id.is_empty())
        .ok_or_else(|| FieldError::new("distinct_id", "required", "This field is required."))?;
    let found = app.services.sessions.list(&auth.ctx, distinct_id, listing.page()).await?;
    let Paged { count, results } = found.sessions;
    let results = results.into_iter().map(answer).collect();
    let not_counted = found.not_counted.into_iter().map(|(reason, n)| (reason.code(), n));
    let Envelope { count, next, previous, results } = listing.envelope(Paged { count, results });
    Ok(Json(SessionList {
        count,
        next,
        previous,
        results,
        since: found.since,
        not_counted: not_counted.collect(),
    }))
}

fn answer(session: Session) -> SessionAnswer {
    let (duration, is_bounce) = (session.seconds(), session.is_bounce());
    let (entry_current_url, exit_current_url) = both(session.urls);
    let (entry_screen_name, exit_screen_name) = both(session.screens);
    SessionAnswer {
        session_id: session.id,
        distinct_ids: session.distinct_ids,
        start_timestamp: session.start,
        end_timestamp: session.end,
        duration,
        is_bounce,
        entry_current_url,
        exit_current_url,
        entry_screen_name,
        exit_screen_name,
        pageview_count: session.counts.pageviews,
        screen_count: session.counts.screens,
        autocapture_count: session.counts.autocaptures,
        event_count: session.counts.all,
    }
}

fn both(ends: Option<Ends>) -> (Option<String>, Option<String>) {
    ends.map(|Ends { entry, exit }| (entry, exit)).unzip()
}
