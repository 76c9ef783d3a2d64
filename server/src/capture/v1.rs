//! `/i/v1/analytics/events`: capture protocol V1 (ING-26).
//!
//! What belongs here: reading headers and writing results. What does not: the meaning of
//! both (`weir_capture::v1`).

use axum::Json;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use weir_capture::Context;
use weir_capture::v1::{self, Headers, Results};

use super::Endpoint;
use super::intake::{self, ContentCoding, Events, Gathering, Received};
use super::request_tally::RequestTally;
use crate::app::App;
use crate::http::error::ApiResult;

/// Bytes of memory for the result of one event and its part of the answer.
const RESULT_BYTES: usize = 256;

pub(super) async fn answer(app: &App, request: Request) -> ApiResult<Response> {
    let mut tally = RequestTally::open(app, &request);
    let stored = store(app, request, &mut tally).await;
    tally.close(app, Endpoint::EventsV1.pattern(), stored.as_ref().err());
    Ok(Json(stored?).into_response())
}

async fn store(app: &App, request: Request, tally: &mut RequestTally) -> ApiResult<Results> {
    let received = intake::receive(app, request).await?;
    tally.body(&received.body);
    let load = received.load(app);
    let (results, events, received) = load.run(app, decide(received)).await?;
    tally.project = Some(events.project);
    intake::append(app, events, received).await?;
    Ok(results)
}

/// Decodes a body, decides on its events and encodes them for the log.
async fn decide(mut received: Received) -> ApiResult<(Results, Events, Received)> {
    let body = std::mem::take(&mut received.body);
    let headers = Headers::read(|name| intake::text(&received.parts.headers, name))?;
    received.room.hold_text_of(&body, ContentCoding::Any)?;
    let payload = v1::decompress(headers.encoding, body)?;
    received.room.is_decompressed(&payload)?;
    let batch = v1::shape(&payload)?;
    received.room.keep(batch.events.len().saturating_mul(RESULT_BYTES))?;
    received.room.hold_events(payload.text().len(), batch.events.len())?;
    let rules = received.project(&headers.token).await?;
    let over = received.admit(&rules, batch.events.len())?;
    let context = Context {
        received_at: received.received_at.to_chrono(),
        sent_at: Some(headers.sent_at),
        project: rules.id.0,
        client_address: received.client_address(&rules),
        engage: false,
        person_processing_opt_out: rules.person_processing_opt_out,
        cookieless_key: received.cookieless_key(rules.id),
    };
    let nothing = received.batch(batch.historical_migration);
    let mut gathering = Gathering::begin(&mut received.room, &rules, &headers.token, nothing);
    let mut results = Results::default();
    for event in &batch.events {
        let decision = match over {
            Some(reason) => v1::drop_over_limit(&event, reason, headers.library, &context),
            None => v1::decide(&event, headers.library, &context),
        };
        results.push(&event, &decision);
        gathering.take(decision)?;
    }
    let events = gathering.end()?;
    Ok((results, events, received))
}
