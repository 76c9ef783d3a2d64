//! `/capture`, `/batch` and their relatives: events in the older shapes
//! (ingestion 1.1, 2.1 to 2.5, 3). `/s` takes the same and keeps nothing.
//!
//! 200 means that every kept event is on stable storage.

use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use weir_capture::{self as capture, CapturePath, Context, Decision};
use weir_ingest::batch::Batch;

use super::intake::{self, Events, Received, Worked};
use super::{Endpoint, accepted};
use crate::app::App;
use crate::http::error::ApiResult;

pub(super) async fn answer(app: &App, path: CapturePath, request: Request) -> ApiResult<Response> {
    let beacon = is_beacon(request.uri().query());
    let route = Endpoint::Events(path).pattern();
    intake::take_events(app, route, request, move |app, received| {
        Box::pin(judge(app, path, received))
    })
    .await?;
    Ok(if beacon { StatusCode::NO_CONTENT.into_response() } else { accepted() })
}

/// Bytes that an event takes in memory beside its texts, twice: as it is and as
/// the log encodes it. Tiny events are mostly that.
const EVENT_BYTES: usize = 256;

/// Decodes a body, decides on its events and encodes them for the log.
async fn judge(app: &App, path: CapturePath, received: &mut Received) -> ApiResult<Worked<()>> {
    let payload = received.decode(path)?;
    let batch = capture::shape(&payload)?;
    received.room.hold_more(batch.events.len().saturating_mul(EVENT_BYTES))?;
    let rules = intake::project(app, &batch.token, received.sender()).await?;
    let address = received.client_address(&rules);
    let context = Context {
        received_at: received.received_at.to_chrono(),
        sent_at: batch.sent_at,
        project: rules.id.0,
        client_address: address.filter(|_| !payload.hides_address()),
        engage: path.is_engage(),
        person_processing_opt_out: rules.person_processing_opt_out,
    };
    let mut captured = Batch::new(received.received_at.micros(), batch.historical_migration);
    for event in &batch.events {
        if path == CapturePath::Recordings {
            captured.push_dropped(capture::drop_recording(&event));
            continue;
        }
        match capture::decide(&event, &context) {
            Decision::Accept(event) => captured.accepted.push(event),
            Decision::Drop(event) => captured.push_dropped(event),
        }
    }
    Ok(Worked { answer: (), events: Some(Events::of(rules.id, &batch.token, captured)) })
}

fn is_beacon(query: Option<&str>) -> bool {
    let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    pairs.into_iter().any(|(name, value)| name == "beacon" && value == "1")
}
