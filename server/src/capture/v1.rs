//! `/i/v1/analytics/events`: the newer protocol (ingestion 2.6).
//!
//! What belongs here: headers in, results out. What does not: what they mean
//! (`weir_capture::v1`).

use axum::Json;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use weir_capture::v1::{self, Headers, Results};
use weir_capture::{Context, Decision};
use weir_ingest::batch::Batch;

use super::Endpoint;
use super::intake::{self, Events, Received, Worked};
use crate::app::App;
use crate::http::error::ApiResult;

/// What the result of an event takes in memory, and then in the answer.
const RESULT_BYTES: usize = 256;

pub(super) async fn answer(app: &App, request: Request) -> ApiResult<Response> {
    let route = Endpoint::EventsV1.pattern();
    let results =
        intake::take_events(app, route, request, |app, received| Box::pin(judge(app, received)))
            .await?;
    Ok(Json(results).into_response())
}

/// Decodes a body, decides on its events and encodes them for the log.
async fn judge(app: &App, received: &mut Received) -> ApiResult<Worked<Results>> {
    let body = std::mem::take(&mut received.body);
    let headers = Headers::read(|name| intake::text(&received.parts.headers, name))?;
    let payload = v1::unpack(headers.encoding, body)?;
    received.room.hold_events_of(&payload)?;
    let batch = v1::shape(&payload)?;
    received.room.hold_more(batch.events.len().saturating_mul(RESULT_BYTES))?;
    let rules = intake::project(app, &headers.token, received.sender()).await?;
    let context = Context {
        received_at: received.received_at.to_chrono(),
        sent_at: Some(headers.sent_at),
        project: rules.id.0,
        client_address: received.client_address(&rules),
        engage: false,
        person_processing_opt_out: rules.person_processing_opt_out,
    };
    let mut captured = Batch::new(received.received_at.micros(), batch.historical_migration);
    let mut results = Results::default();
    for event in &batch.events {
        let decision = v1::decide(&event, headers.library, &context);
        results.push(&event, &decision);
        match decision {
            Decision::Accept(event) => captured.accepted.push(event),
            Decision::Drop(event) => captured.push_dropped(event),
        }
    }
    Ok(Worked { answer: results, events: Some(Events::of(rules.id, &headers.token, captured)) })
}
