//! `/api/projects/{id}/ingestion_warnings/`: what was dropped or altered on the
//! way in, by reason (DECISIONS "Reading data back").

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;
use weir_model::Timestamp;
use weir_model::live;
use weir_model::outcomes::Meaning;

use crate::app::App;
use crate::http::error::ApiResult;
use crate::http::extract::{Authorized, InProject};
use crate::http::guards::ProjectRead;

/// Samples shown of one reason.
const SAMPLES: usize = 10;

/// The answer.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = IngestionWarnings)]
pub struct Warnings {
    /// One entry per reason.
    pub results: Vec<WarningAnswer>,
}

/// What became of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Stored.
    Accepted,
    /// Not stored, although the request was answered with 200.
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

/// One reason.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = IngestionWarning)]
pub struct WarningAnswer {
    /// Machine code.
    pub code: String,
    /// Whether the events were dropped, or stored altered.
    pub outcome: Outcome,
    /// What happened, for people.
    pub detail: &'static str,
    /// What to do about it, for people.
    pub fix: &'static str,
    /// How often.
    pub count: u64,
    /// First time.
    pub first_at: Timestamp,
    /// Last time.
    pub last_at: Timestamp,
    /// Some of the events, newest first.
    pub samples: Vec<SampleAnswer>,
}

/// One dropped or altered event.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = IngestionSample)]
pub struct SampleAnswer {
    /// When it reached us.
    pub received_at: Timestamp,
    /// What the reason does not say: which transformation dropped it.
    pub detail: Option<String>,
    /// Name, if it had one.
    pub event: Option<String>,
    /// Whom it was about, if it said.
    pub distinct_id: Option<String>,
    /// As received (of a stored event: its properties), cut when long.
    pub payload: String,
}

/// Counts and samples by reason.
pub async fn list_ingestion_warnings(
    auth: Authorized<ProjectRead, InProject>,
    State(app): State<App>,
) -> ApiResult<Json<Warnings>> {
    let counts = app.services.events.warnings(&auth.ctx).await?;
    let results = counts
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
    Ok(Json(Warnings { results }))
}

/// A code that this program does not know was written by a newer one.
fn meaning(code: &str) -> Meaning {
    let unknown = Meaning { outcome: live::Outcome::Accepted, sentence: "", fix: "" };
    Meaning::of(code).unwrap_or(unknown)
}
