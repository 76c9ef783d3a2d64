//! `/api/projects/{id}/ingestion_warnings/`: dropped and altered events, counted by code,
//! and below `events/` the events themselves.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;
use weir_model::Timestamp;
use weir_model::errors::FieldError;
use weir_model::live;
use weir_model::outcomes::Meaning;
use weir_model::pagination::{Envelope, Paged};
use weir_model::warnings::AffectedQuery;
use weir_store::warnings::AffectedPage;

use super::events::time;
use crate::app::App;
use crate::filters;
use crate::http::error::ApiResult;
use crate::http::extract::{Authorized, InProject};
use crate::http::guards::ProjectRead;
use crate::http::pagination::Listing;

/// Most samples shown for one code.
const SAMPLES: usize = 10;

/// What happened to an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The event is stored.
    Accepted,
    /// The event is not stored, although the request was answered with 200.
    Dropped,
}

impl From<live::Outcome> for Outcome {
    fn from(outcome: live::Outcome) -> Self {
        match outcome {
            live::Outcome::Accepted => Self::Accepted,
            live::Outcome::Dropped | live::Outcome::Rejected => Self::Dropped,
        }
    }
}

/// A drop reason or warning with its counts.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = IngestionWarning)]
pub struct WarningAnswer {
    /// Machine-readable code of the reason.
    pub code: String,
    /// Whether the events were dropped, or stored with changes.
    pub outcome: Outcome,
    /// What happened, as text for people.
    pub detail: &'static str,
    /// How to fix it, as text for people.
    pub fix: &'static str,
    /// Number of events.
    pub count: u64,
    /// When it happened first.
    pub first_at: Timestamp,
    /// When it happened last.
    pub last_at: Timestamp,
    /// Some of the events, newest first.
    pub samples: Vec<SampleAnswer>,
}

/// One dropped or altered event.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = IngestionSample)]
pub struct SampleAnswer {
    /// When the event was received.
    pub received_at: Timestamp,
    /// Details in addition to the code, such as the transformation that dropped the
    /// event.
    pub detail: Option<String>,
    /// Name of the event, if it had one.
    pub event: Option<String>,
    /// Distinct id of the event, if it had one.
    pub distinct_id: Option<String>,
    /// The event as it was received, or the properties of a stored event. A long text is
    /// truncated.
    pub payload: String,
}

filters! {
    /// Filters for dropped and altered events.
    AffectedFilters {
        "after": Time, "Only events that reached us after this time.";
        "before": Time, "Only events that reached us before this time.";
        "behind": Text, "Where the page before ended; from `next`.";
        "code": Text, "Only events with this reason or warning.";
    }
}

/// One page of dropped and altered events.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AffectedEventList)]
pub struct AffectedList {
    /// Link to the next, older page.
    pub next: Option<String>,
    /// Always `null`: pages lead forward only.
    pub previous: Option<String>,
    /// The events of this page.
    pub results: Vec<AffectedAnswer>,
    /// Number of events that are missing on this page or the next, because their stored
    /// records are damaged.
    pub unreadable: u64,
}

/// One dropped or altered event.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AffectedEvent)]
pub struct AffectedAnswer {
    /// Id of the entry, unique within the project.
    pub id: String,
    /// Whether the event was dropped, or stored with changes.
    pub outcome: Outcome,
    /// The reason for dropping the event, or the warnings that it was stored with.
    pub codes: Vec<String>,
    /// Details in addition to the code, such as the transformation that dropped the
    /// event.
    pub detail: Option<String>,
    /// When the event was received.
    pub received_at: Timestamp,
    /// Name of the event, if it had one.
    pub event: Option<String>,
    /// Distinct id of the event, if it had one.
    pub distinct_id: Option<String>,
    /// Uuid of the event, if it had one.
    pub uuid: Option<Uuid>,
    /// The event as it was received, or the properties of a stored event. A long text is
    /// truncated.
    pub payload: String,
}

/// The dropped and altered events, newest first: at least the latest 100,000 of a
/// project, for 30 days.
pub async fn list_ingestion_warning_events(
    auth: Authorized<ProjectRead, InProject>,
    State(app): State<App>,
    listing: Listing<AffectedFilters>,
) -> ApiResult<Json<AffectedList>> {
    let text = |name: &str| listing.param(name).filter(|value| !value.is_empty());
    let behind = text("behind").map(|text| {
        text.parse()
            .map_err(|_| FieldError::new("behind", "invalid_input", "Use the link of a page."))
    });
    let page = listing.page();
    let number = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
    let query = AffectedQuery {
        code: text("code").map(str::to_owned),
        after: time(text("after"), "after")?,
        before: time(text("before"), "before")?,
        behind: behind.transpose()?,
        is_dropped: false,
        offset: number(page.offset),
        limit: number(page.limit),
    };
    let affected = app.services.events.affected(&auth.ctx, &query).await?;
    let AffectedPage { found, more, unreadable } = affected;
    let next = found.last().filter(|_| more).map(|(cursor, _)| {
        listing.link(&[
            ("limit", Some(page.limit.to_string())),
            ("offset", None),
            ("behind", Some(cursor.to_string())),
        ])
    });
    let results = found.into_iter().map(|(cursor, event)| AffectedAnswer {
        id: cursor.to_string(),
        outcome: if event.is_stored { Outcome::Accepted } else { Outcome::Dropped },
        codes: event.codes,
        detail: event.detail,
        received_at: cursor.received_at,
        event: event.event,
        distinct_id: event.distinct_id,
        uuid: event.uuid,
        payload: event.payload,
    });
    Ok(Json(AffectedList { next, previous: None, results: results.collect(), unreadable }))
}

/// Counts and samples of dropped and altered events, by code.
pub async fn list_ingestion_warnings(
    auth: Authorized<ProjectRead, InProject>,
    State(app): State<App>,
    listing: Listing,
) -> ApiResult<Json<Envelope<WarningAnswer>>> {
    let counts = app.services.events.warnings(&auth.ctx).await?;
    let count = counts.len() as u64;
    let results = listing
        .page()
        .slice(counts)
        .into_iter()
        .map(|counted| {
            let Meaning { outcome, sentence, fix } = meaning(&counted.code);
            let samples = counted.samples.into_iter().take(SAMPLES).map(|sample| SampleAnswer {
                received_at: sample.received_at,
                detail: sample.detail,
                event: sample.event,
                distinct_id: sample.distinct_id,
                payload: sample.payload,
            });
            WarningAnswer {
                outcome: outcome.into(),
                detail: sentence,
                fix,
                count: counted.count,
                first_at: counted.first_at,
                last_at: counted.last_at,
                samples: samples.collect(),
                code: counted.code,
            }
        })
        .collect();
    Ok(Json(listing.envelope(Paged { count, results })))
}

/// An unknown code was written by a newer version of the program.
fn meaning(code: &str) -> Meaning {
    let unknown = Meaning { outcome: live::Outcome::Accepted, sentence: "", fix: "" };
    Meaning::of(code).unwrap_or(unknown)
}
